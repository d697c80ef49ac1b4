"""Many single-agent environments at once: what ``gymnasium.make_vec`` makes.

Row ``i`` is played exactly as a :class:`~schnapsen_env.single_agent.SchnapsenEnv` with the seed
``seed + i`` would be, in each of Gymnasium's three autoreset modes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.batch import Actions, Rows, begin_rows, write_states
from schnapsen_env.batch_input import (
    check_actions,
    check_autoreset_mode,
    check_reset_mask,
    first_deals,
    first_seed,
    row_seeds,
    start_row,
    whole_number,
)
from schnapsen_env.engine import record as r
from schnapsen_env.env_base import OpponentEnv, reset_needed
from schnapsen_env.episode import (
    NUM_SWITCHES,
    RAISES,
    Episode,
    IllegalAction,
    Record,
    Reward,
    check_options,
    illegal_action_error,
    make_settings,
)
from schnapsen_env.observation import BASE_SIZE, STATE_SIZE, Memory, Suits
from schnapsen_env.opponent_batch import (
    first_illegal,
    observe_rows,
    reply_rows,
    seat_rows,
    step_rows,
)
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
    check_reply,
    opponent_kind,
)
from schnapsen_env.position import EndReason
from schnapsen_env.render import PackName, TextScreen, check_render_mode
from schnapsen_env.rules import Rules
from schnapsen_env.single_agent import ObservationForm, check_seat, single_observation_space

_Info = dict[str, Any]

_REASON_TEXTS: Final = np.array([reason.text for reason in EndReason])
_ILLEGAL: Final = int(EndReason.ILLEGAL_ACTION)


#: The switches of observe_rows for the opponent, who has the default layout.
_DEFAULT_SWITCHES: Final = np.zeros(NUM_SWITCHES, dtype=np.int64)


class SchnapsenOpponentVectorEnv(OpponentEnv, VectorEnv[Any, Any, npt.NDArray[Any]]):
    """N environments in each of which one seat is learned and an opponent plays the other.

    Args:
        num_envs: N.
        opponent: ``"random"``, ``"heuristic"``, or one object with ``act`` for all rows; its
            ``act_batch(float32[n, F], int8[n, 27]) -> int64[n]`` is used if it has one. It is asked
            for rows in any order and must not carry anything from one to the next.
        rules: as in :class:`~schnapsen_env.single_agent.SchnapsenEnv`, and so are the others below.
        episode: likewise.
        autoreset_mode: ``AutoresetMode.SAME_STEP``, ``NEXT_STEP`` or ``DISABLED`` (then
            ``reset(options={"reset_mask": bool[N]})`` begins new episodes).
        seat: likewise.
        observation: likewise.
        reward: likewise.
        illegal_action: likewise.
        memory: likewise.
        suits: likewise.
        history: likewise.
        target: likewise.
        render_mode: None or ``"ansi"``.
        pack: likewise.

    Raises:
        ValueError: an unknown value or a combination that makes no sense; the message says what to
            choose.
    """

    _KEPT = ("_records", "_lanes", "_done", "_returns", "_lengths")

    def __init__(
        self,
        num_envs: int = 1,
        opponent: object = "random",
        rules: str | Rules = "duel",
        episode: Episode = "deal",
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
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
        self.num_envs = whole_number("num_envs", num_envs)
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
        self._mode = check_autoreset_mode(autoreset_mode)
        self.metadata = {"render_modes": ["ansi"], "autoreset_mode": self._mode}
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self._screen = TextScreen(self._settings.rules, pack, memory=memory)
        self.single_observation_space = single_observation_space(self._settings.layout, observation)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._records: Record | None = None
        self._lanes = np.zeros((num_envs, LANE_SIZE), dtype=np.int64)
        self._lanes[:, SEAT] = self._fixed_seat or 0
        #: Rows whose episode is over and not begun anew.
        self._done = np.ones(num_envs, dtype=np.bool_)
        self._returns = np.zeros(num_envs, dtype=np.float64)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._recall_constants()

    @property
    def seats(self) -> Actions:
        """The learner's seat in each row, ``int64[N]``."""
        return self._lanes[:, SEAT].copy()

    @property
    def records(self) -> Record:
        """A copy of the engine's records of this moment, ``int64[N, RECORD_SIZE]``.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._current_records("records").copy()

    def _current_records(self, reader: str) -> Record:
        if self._records is None:
            raise reset_needed(reader)
        return self._records

    # ------------------------------------------------------------------------------ episodes

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, _Info]:
        """Begin a new episode in every row, or in those of ``options["reset_mask"]``.

        Args:
            seed: row ``i`` gets ``seed + i``; or one seed (or None) a row. The first that is given
                also goes to the opponent's ``reset``, if it has one.
            options: ``reset_mask`` (``bool[N]``), and for the first deal of all rows ``deck``,
                ``forehand`` or ``position`` as for the single environment, or ``decks``,
                ``forehands`` or ``positions`` with one entry a row.

        Returns:
            Observations ``[N, F]`` (or a dict with ``[N, F]`` and ``[N, 27]``) and the info.

        Raises:
            TypeError: a seed is not an integer.
            ValueError: an option makes no deal, or seeds, mask or an option are not of length N;
                nothing has changed.
        """
        options = check_options(options)
        given_rows = options.pop("reset_mask", None)
        rows = check_reset_mask(given_rows, self.num_envs, is_dealt=self._records is not None)
        seeds = row_seeds(seed, self.num_envs, is_dealt=self._records is not None)
        first = first_seed(seed)
        started = self._start_rows(rows, seeds, options)  # raises before anything changes
        super().reset(seed=first)
        if first is not None and callable(reset_opponent := getattr(self.opponent, "reset", None)):
            reset_opponent(first)
        self._records = started
        self._begin(rows)
        observations, masks = self._observe(np.arange(self.num_envs))
        return self._in_form(observations, masks), self._live_info(masks)

    def _start_rows(self, rows: Rows, seeds: list[int | None], options: _Info) -> Record:
        """New records; kept apart from the old ones until all of them are made."""
        old = self._records
        deals = first_deals(options, self.num_envs)
        new = (
            np.zeros((self.num_envs, r.RECORD_SIZE), dtype=np.int64) if old is None else old.copy()
        )
        if old is not None and not any(deals) and all(one is None for one in seeds):
            begin_rows(new, rows)
            return new
        for i in np.flatnonzero(rows).tolist():
            record = None if old is None else old[i]
            new[i] = start_row(i, record, self._settings, seeds[i], deals[i])
        return new

    def _begin(self, rows: Rows) -> None:
        """Seat the learner in the rows, which are dealt, and play to its first move."""
        records = self._current_records("reset()")
        fixed = -1 if self._fixed_seat is None else self._fixed_seat
        seat_rows(records, self._codes, self._switches, self._kind, rows, fixed, self._lanes)
        self._returns[rows] = 0.0
        self._lengths[rows] = 0
        self._done[rows] = False
        self._ask_opponent(records)

    def _ask_opponent(self, records: Record) -> None:
        """Play an opponent that is an object, all waiting rows at a time."""
        while True:
            chosen = np.flatnonzero(self._lanes[:, TURN] == OPPONENT)
            if not chosen.size:
                return
            observations = np.empty((len(chosen), BASE_SIZE), dtype=np.float32)
            masks = np.empty((len(chosen), NUM_ACTIONS), dtype=np.int8)
            seats = 1 - self._lanes[chosen, SEAT]
            observe_rows(
                records, self._codes, _DEFAULT_SWITCHES, chosen, seats, observations, masks
            )
            actions = self._replies(observations, masks)
            reply_rows(records, self._codes, self._switches, chosen, actions, self._lanes)

    def _replies(
        self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.int8]
    ) -> Actions:
        opponent: Any = self.opponent
        if not callable(getattr(opponent, "act_batch", None)):
            answers = [
                check_reply(opponent, opponent.act(observation, mask), mask)
                for observation, mask in zip(observations, masks, strict=True)
            ]
            return np.array(answers, dtype=np.int64)
        given = np.asarray(opponent.act_batch(observations, masks))
        if given.shape != (len(masks),) or given.dtype.kind not in "iu":
            raise TypeError(
                f"the opponent's {type(opponent).__name__}.act_batch must return one integer a "
                f"row, shape ({len(masks)},), not {given.dtype} of shape {given.shape}"
            )
        actions = given.astype(np.int64)
        for action, mask in zip(actions.tolist(), masks, strict=True):
            check_reply(opponent, action, mask)
        return actions

    # --------------------------------------------------------------------------------- steps

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], _Info]:
        """Take one action a row and play until the learner is to move again.

        Args:
            actions: integers ``[N]``. In a row that is begun anew by this step (``NEXT_STEP``) the
                action is ignored.

        Returns:
            Observations, rewards ``float64[N]``, terminations, truncations (all False) and the
            info: arrays of length N, with ``"_key"`` saying in which rows ``"key"`` is given.

        Raises:
            IllegalActionError: an id outside 0-26, or an illegal action with
                ``illegal_action="raise"``. Nothing has changed.
            TypeError: the actions are not integers.
            ValueError: not one action a row, or an opponent has chosen an illegal action.
            ResetNeeded: before the first reset; in ``DISABLED`` mode, when a row is over; or after
                an error of the opponent.
        """
        records = self._current_records("step()")
        given, numbers = check_actions(actions, self.num_envs)
        if self._mode is AutoresetMode.DISABLED and self._done.any():
            raise ResetNeeded(
                f"rows {np.flatnonzero(self._done).tolist()} are over: call "
                'reset(options={"reset_mask": ...}) for them'
            )
        if (self._lanes[:, TURN] == OPPONENT).any():
            raise ResetNeeded("the opponent has failed in the middle of a deal: call reset()")
        begun = self._done.copy()
        stepped = ~begun
        self._check_legal(records, stepped, given, numbers)
        if begun.any():
            begin_rows(records, begun)
            self._begin(begun)
        moving = stepped & (self._lanes[:, TURN] == LEARNER)
        step_rows(records, self._codes, self._switches, self._kind, moving, numbers, self._lanes)
        self._ask_opponent(records)
        rewards = np.where(stepped, self._lanes[:, REWARD], 0).astype(np.float64)
        self._returns += rewards
        self._lengths += stepped
        done = stepped & (self._lanes[:, TURN] == OVER)
        info = self._ended_info(records, stepped, done)
        self._lanes[stepped, REWARD:] = 0
        self._done = done.copy()
        observations, masks = self._observe(np.arange(self.num_envs))
        if self._mode is AutoresetMode.SAME_STEP and done.any():
            info |= self._final_info(observations, info, done)
            begin_rows(records, done)
            self._begin(done)
            observations[done], masks[done] = self._observe(np.flatnonzero(done))
        info |= self._live_info(masks)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        return self._in_form(observations, masks), rewards, done.copy(), truncations, info

    def _check_legal(
        self, records: Record, rows: Rows, given: npt.NDArray[Any], actions: Actions
    ) -> None:
        """Raise for the first action that may not be taken, before anything changes."""
        outside = rows & ((actions < 0) | (actions >= NUM_ACTIONS))
        bad = int(outside.argmax()) if outside.any() else -1
        if bad < 0 and self._switches[RAISES]:
            moving = rows & (self._lanes[:, TURN] == LEARNER)
            bad = int(first_illegal(records, self._codes, self._switches, moving, actions))
        if bad >= 0:
            raise illegal_action_error(records[bad], self._settings, int(given[bad]), bad)

    # ---------------------------------------------------------------------------------- infos

    def _live_info(self, masks: npt.NDArray[np.int8]) -> _Info:
        everywhere = np.ones(self.num_envs, dtype=np.bool_)
        return {
            "action_mask": masks,
            "_action_mask": everywhere,
            "seat": self._lanes[:, SEAT].copy(),
            "_seat": everywhere.copy(),
        }

    def _ended_info(self, records: Record, stepped: Rows, done: Rows) -> _Info:
        """What is said of the deals and the episodes that ended in this step."""
        ended = stepped & (self._lanes[:, DEALS_ENDED] > 0)
        info: _Info = {}
        if not ended.any():
            return info

        def tell(key: str, values: npt.NDArray[Any], rows: Rows) -> None:
            info[key], info[f"_{key}"] = values, rows.copy()

        tell("game_points", np.where(ended, self._lanes[:, GAME_POINTS], 0), ended)
        reasons = np.where(ended, self._lanes[:, END_REASON], 0)
        tell("end_reason", np.where(ended, _REASON_TEXTS[reasons], ""), ended)
        if (reasons == _ILLEGAL).any():
            tell("illegal_action", reasons == _ILLEGAL, reasons == _ILLEGAL)
        if self._settings.is_match:
            score = records[:, r.MATCH_SCORE : r.MATCH_SCORE + 2]
            tell("match_score", np.where(ended[:, None], score, 0), ended)
            for i in np.flatnonzero(done & (reasons != _ILLEGAL)).tolist():
                result = engine.match_result(records[i], self._settings.rules)
                self._add_info(info, {"match_result": result}, i)
        if done.any():
            episode = {
                "r": np.where(done, self._returns, 0.0),
                "l": np.where(done, self._lengths, 0),
                "seat": np.where(done, self._lanes[:, SEAT], 0),
            }
            info["episode"] = episode | {f"_{key}": done.copy() for key in episode}
            info["_episode"] = done.copy()
        return info

    def _final_info(self, observations: npt.NDArray[np.float32], ended: _Info, done: Rows) -> _Info:
        """The last observation and info of episodes that are begun anew in the same step."""
        last = np.zeros_like(observations)
        last[done] = observations[done]
        masks = np.zeros((self.num_envs, NUM_ACTIONS), dtype=np.int8)
        masks[done] = 1
        final: _Info = {
            "action_mask": masks,
            "_action_mask": done.copy(),
            "seat": np.where(done, self._lanes[:, SEAT], 0),
            "_seat": done.copy(),
        }
        for key, values in ended.items():
            final[key] = values & done if key.startswith("_") else values
        return {
            "final_obs": self._in_form(last, masks),
            "_final_obs": done.copy(),
            "final_info": final,
            "_final_info": done.copy(),
        }

    # --------------------------------------------------------------------------- what is seen

    def _observe(self, chosen: Actions) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
        """What the learner sees in the rows whose numbers are ``chosen``, in new arrays."""
        observations = np.empty((len(chosen), self._settings.layout.size), dtype=np.float32)
        masks = np.empty((len(chosen), NUM_ACTIONS), dtype=np.int8)
        records = self._current_records("action_masks()")
        lanes = self._lanes[chosen]
        seats = lanes[:, SEAT].copy()
        observe_rows(records, self._codes, self._switches, chosen, seats, observations, masks)
        masks[lanes[:, TURN] == OVER] = 1
        return observations, masks

    def _in_form(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.int8]) -> Any:
        """The observations as this environment gives them."""
        if self._is_flat:
            return observations
        return {"observation": observations, "action_mask": masks.copy()}

    def action_masks(self) -> npt.NDArray[np.int8]:
        """The legal actions, ``int8[N, 27]``; all ones in a row that is over.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._observe(np.arange(self.num_envs))[1]

    def state(self) -> npt.NDArray[np.float32]:
        """The full information on each deal, ``float32[N, G]``, by seat, for critics.

        Raises:
            ResetNeeded: before the first reset.
        """
        records = self._current_records("state()")
        out = np.empty((self.num_envs, STATE_SIZE), dtype=np.float32)
        write_states(records, self._codes, out)
        return out

    def render(self) -> tuple[str, ...] | None:
        """The learner's board of each row as text, with ``render_mode="ansi"``; otherwise None.

        Raises:
            ResetNeeded: before the first reset.
        """
        records = self._current_records("render()")
        if self.render_mode is None:
            return None
        boards: list[str] = []
        for record, lane in zip(records, self._lanes, strict=True):
            self._screen.seat = None if lane[TURN] == OVER else int(lane[SEAT])
            boards.append(self._screen.text(record))
        return tuple(boards)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays = {name: getattr(self, name) for name in ("_lanes", "_done", "_returns", "_lengths")}
        return arrays | {"_records": np.empty((self.num_envs, r.RECORD_SIZE), dtype=np.int64)}
