"""The Gymnasium environment: one seat is learned, an opponent plays the other.

How the opponent plays is in :mod:`schnapsen_env.opponent_play`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.engine import record as r
from schnapsen_env.env_base import OpponentEnv, observation_space, reset_needed
from schnapsen_env.episode import (
    Episode,
    IllegalAction,
    Record,
    Reward,
    Settings,
    action_number,
    illegal_action_error,
    make_settings,
    match_info,
    seed_number,
    start,
)
from schnapsen_env.integers import as_integer
from schnapsen_env.observation import STATE_SIZE, Layout, Memory, Suits, encode_state, observe
from schnapsen_env.opponent_play import (
    DEALS_ENDED,
    END_REASON,
    GAME_POINTS,
    LANE_SIZE,
    LEARNER,
    OPPONENT,
    OVER,
    REWARD,
    SEAT,
    TURN,
    Lane,
    begin,
    check_reply,
    opponent_kind,
    play_learner,
    play_on,
)
from schnapsen_env.position import EndReason
from schnapsen_env.render import PackName, TextScreen, check_render_mode
from schnapsen_env.rules import Rules

ObservationForm = Literal["flat", "dict"]


def check_seat(seat: Any) -> int | None:
    """``seat`` as 0, 1 or None.

    Raises:
        ValueError: anything else.
    """
    if seat is None:
        return None
    number = as_integer(seat)
    if number not in (0, 1):
        raise ValueError(f"seat={seat!r} is unknown: choose 0, 1, or None for a seat by lot")
    return number


def single_observation_space(layout: Layout, form: str) -> spaces.Box | spaces.Dict:
    """The observation space: a Box, or a Dict with the mask.

    Raises:
        ValueError: ``form`` is neither ``"flat"`` nor ``"dict"``.
    """
    if form not in ("flat", "dict"):
        raise ValueError(f"observation={form!r} is unknown: choose one of flat, dict")
    both = observation_space(layout)
    return cast("spaces.Box", both["observation"]) if form == "flat" else both


def ended_info(record: Record, settings: Settings, lane: Lane) -> dict[str, Any]:
    """What the info says of the deals that ended in a step."""
    reason = EndReason(int(lane[END_REASON]))
    info: dict[str, Any] = {"game_points": int(lane[GAME_POINTS]), "end_reason": reason.text}
    if reason is EndReason.ILLEGAL_ACTION:
        info["illegal_action"] = True
    return info | match_info(record, settings)


class SchnapsenEnv(OpponentEnv, gymnasium.Env[Any, Any]):
    """Schnapsen against an opponent.

    Args:
        opponent: ``"random"``, ``"heuristic"``, or an object with
            ``act(observation float32[F], action_mask int8[27]) -> int``. If it has ``reset(seed)``,
            a seeded reset calls that.
        rules: a name of :data:`~schnapsen_env.rules.RULES`, or a rule set.
        episode: ``"deal"`` or ``"match"``.
        seat: the learner's seat, 0 or 1; None draws it by lot in each episode.
        observation: ``"flat"`` - ``float32[F]``, the mask is in the info and from
            :meth:`action_masks`; ``"dict"`` - a dict of ``"observation"`` and ``"action_mask"``.
        reward: as in :class:`~schnapsen_env.env.SchnapsenAECEnv`, for the learner.
        illegal_action: likewise.
        memory: likewise; the opponent always has a perfect memory.
        suits: likewise.
        history: likewise.
        target: likewise.
        render_mode: None, ``"ansi"`` or ``"human"``. The opponent's cards are hidden until the end.
        pack: ``"french"`` or ``"german"`` cards, for rendering only.

    Raises:
        ValueError: an unknown value or a combination that makes no sense; the message says what to
            choose.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": ["human", "ansi"],
        "render_fps": 2,
    }
    _KEPT = ("_record", "_lane", "_is_done", "_np_random", "_np_random_seed")

    def __init__(
        self,
        opponent: object = "random",
        rules: str | Rules = "duel",
        episode: Episode = "deal",
        *,
        seat: int | None = None,
        observation: ObservationForm = "flat",
        reward: Reward = "game_points",
        illegal_action: IllegalAction = "lose",
        memory: Memory = "perfect",
        suits: Suits = "natural",
        history: bool = False,
        target: int | None = None,
        render_mode: str | None = None,
        pack: PackName = "french",
    ) -> None:
        self._settings = make_settings(
            rules,
            episode,
            reward=reward,
            illegal_action=illegal_action,
            memory=memory,
            suits=suits,
            history=history,
            target=target,
        )
        self.opponent = opponent
        self._kind = opponent_kind(opponent)
        self._fixed_seat = check_seat(seat)
        self._is_flat = observation == "flat"
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self._screen = TextScreen(self._settings.rules, pack, memory=memory)
        self.observation_space = single_observation_space(self._settings.layout, observation)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.state_space = spaces.Box(0.0, 1.0, (STATE_SIZE,), np.float32)
        self._record: Record | None = None
        self._lane = np.zeros(LANE_SIZE, dtype=np.int64)
        self._lane[SEAT] = self._fixed_seat or 0
        self._is_done = True
        self._recall_constants()

    @property
    def seat(self) -> int:
        """The learner's seat in this episode."""
        return int(self._lane[SEAT])

    @property
    def record(self) -> Record:
        """A copy of the engine's record of this moment, ``int64[RECORD_SIZE]``, for search.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._current_record("record").copy()

    def _current_record(self, reader: str) -> Record:
        if self._record is None:
            raise reset_needed(reader)
        return self._record

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Deal, and let the opponent play until the learner is to move.

        Args:
            seed: determines this and all following episodes.
            options: may hold ``deck``, ``forehand`` or ``position`` for the first deal.

        Returns:
            Observation and info. If the opponent ends the episode before the learner's first move
            (by a wrong claim, say), the mask is all ones, and the first step, whatever its action,
            ends the episode and brings the reward.

        Raises:
            TypeError: the seed is not an integer.
            ValueError: an option makes no deal, with which nothing has changed; or the opponent has
                chosen an illegal action.
        """
        if seed is not None:
            seed = seed_number(seed)  # before anything changes
        record = start(self._record, self._settings, seed, options)
        super().reset(seed=seed)
        if seed is not None and callable(reset_opponent := getattr(self.opponent, "reset", None)):
            reset_opponent(seed)
        self._record = record
        self._is_done = False
        fixed = -1 if self._fixed_seat is None else self._fixed_seat
        begin(record, self._codes, self._switches, self._kind, fixed, self._lane)
        self._ask_opponent(record)
        observation, mask = self._observe(record)
        self._show()
        return observation, {"action_mask": mask, "seat": self.seat}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action, and let the opponent play until the learner is to move again.

        Args:
            action: an id in 0-26 that the mask allows: a Python, numpy or torch integer.

        Returns:
            Observation, reward, terminated, truncated (always False) and info. The info has
            ``"action_mask"`` (all ones at the end) and ``"seat"``, and in a step in which a deal
            ended ``"game_points"``, ``"end_reason"`` and what ``docs/environment.md`` lists.

        Raises:
            IllegalActionError: an id outside 0-26, or an illegal action with
                ``illegal_action="raise"``. Nothing has changed.
            TypeError: the action is not an integer.
            ValueError: the opponent has chosen an illegal action.
            ResetNeeded: before the first reset, after the end, or after an error of the opponent.
        """
        record = self._current_record("step()")
        if self._is_done:
            raise ResetNeeded("the episode is over: call reset()")
        if self._lane[TURN] == OPPONENT:
            raise ResetNeeded("the opponent has failed in the middle of a deal: call reset()")
        number = action_number(action)
        if not 0 <= number < NUM_ACTIONS:
            raise illegal_action_error(record, self._settings, number)
        if self._lane[TURN] == LEARNER:
            if not play_learner(
                record, self._codes, self._switches, self._kind, number, self._lane
            ):
                raise illegal_action_error(record, self._settings, number)
            self._ask_opponent(record)
        reward = float(self._lane[REWARD])
        self._is_done = bool(self._lane[TURN] == OVER)
        observation, mask = self._observe(record)
        info: dict[str, Any] = {"action_mask": mask, "seat": self.seat}
        if self._lane[DEALS_ENDED]:
            info.update(ended_info(record, self._settings, self._lane))
            self._lane[REWARD:] = 0
        self._show()
        return observation, reward, self._is_done, False, info

    def _ask_opponent(self, record: Record) -> None:
        """Play an opponent that is an object until the learner is to move or the end."""
        opponent: Any = self.opponent
        while self._lane[TURN] == OPPONENT:
            observation, mask = observe(record, self._codes, 1 - self.seat)
            action = check_reply(opponent, opponent.act(observation, mask), mask)
            engine.step(record, self._codes, action)
            play_on(record, self._codes, self._switches, self._kind, self._lane)

    def _observe(self, record: Record) -> tuple[Any, npt.NDArray[np.int8]]:
        """The observation in its form, and the mask once more."""
        observation, mask = observe(record, self._codes, self.seat, self._settings.layout)
        if self._lane[TURN] == OVER:
            mask[:] = 1
        if self._is_flat:
            return observation, mask
        return {"observation": observation, "action_mask": mask.copy()}, mask

    def action_masks(self) -> npt.NDArray[np.int8]:
        """The legal actions of the learner, ``int8[27]``; all ones at the end.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._observe(self._current_record("action_masks()"))[1]

    def state(self) -> npt.NDArray[np.float32]:
        """The full information on the deal, ``float32[G]``, by seat, for critics.

        Raises:
            ResetNeeded: before the first reset.
        """
        out = np.empty(STATE_SIZE, dtype=np.float32)
        encode_state(self._current_record("state()"), self._codes, out)
        return out

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def render(self) -> Any:
        """The learner's board: text with ``"ansi"``, written and None with ``"human"``.

        Raises:
            ResetNeeded: before the first reset.
        """
        record = self._current_record("render()")
        self._screen.seat = None if self._lane[TURN] == OVER else self.seat
        return self._screen.show(record, self.render_mode)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"_lane": self._lane, "_record": np.empty(r.RECORD_SIZE, dtype=np.int64)}
