"""Many deals at once: a self-play batch that is stepped by one compiled loop.

Each row is one environment. Whoever is to move in a row is asked for an action, so one policy plays
both seats, or one policy a seat, and ``info["to_play"]`` says which seat that is::

    vec = SchnapsenVectorEnv(1024, rules="pagat_auto")
    obs, info = vec.reset(seed=0)
    while True:
        actions = policy(obs["observation"], obs["action_mask"])  # int[N]
        obs, rewards, terminations, truncations, info = vec.step(actions)

Letters in shapes: N environments, F features of an observation, G features of the full state, R the
width of a record.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schnapsen_env import batch, engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.batch import (
    NO_ACTION,
    Actions,
    Observations,
    Outputs,
    Plan,
    Rows,
    State,
    begin_rows,
    new_outputs,
    refused_row,
    run_rows,
    sample_masked,
    show_finished,
    write_states,
)
from schnapsen_env.batch_input import (
    BUFFERS,
    check_actions,
    check_autoreset_mode,
    check_buffers,
    check_dtype,
    check_reset_mask,
    first_deals,
    row_seeds,
    start_row,
    whole_number,
)
from schnapsen_env.engine import record as r
from schnapsen_env.env_base import BaseEnv, observation_space, reset_needed
from schnapsen_env.episode import (
    Episode,
    IllegalAction,
    Record,
    Reward,
    check_options,
    illegal_action_error,
    make_settings,
)
from schnapsen_env.kept_state import check_arrays, check_parts
from schnapsen_env.observation import STATE_SIZE, Memory, Suits
from schnapsen_env.position import EndReason, Position
from schnapsen_env.record_log import DealRecord
from schnapsen_env.rules import Rules

__all__ = ["BUFFERS", "NO_ACTION", "SchnapsenVectorEnv"]


class SchnapsenVectorEnv(BaseEnv, VectorEnv[Observations, Any, npt.NDArray[Any]]):
    """N deals or matches that are played side by side, both seats by the caller.

    A gymnasium vector environment, with two differences that self-play needs: ``rewards`` is
    ``float32[N, 2]``, by seat, and observations are those of the player to move,
    ``info["to_play"]``. Wrappers that add up rewards therefore do not apply; the environment keeps
    its own statistics.

    Row ``i`` plays exactly as an AEC environment with the seed ``seed + i`` would.

    Args:
        num_envs: N.
        rules: a name of :data:`~schnapsen_env.rules.RULES`, or a rule set.
        episode: ``"deal"`` or ``"match"``.
        autoreset_mode: when a new episode follows one that ended. ``SAME_STEP``: in the same step;
            the last observations of both players are in ``info["final_observation"]``.
            ``NEXT_STEP``: in the next step, which ignores the action of that row and gives no
            reward. ``DISABLED``: when the caller resets the row, see :meth:`reset`.
        dtype: ``np.float32``, or ``np.uint8`` for whole numbers, unscaled, in a quarter of the
            memory.
        memory: how much of the past an observation shows, see
            :class:`~schnapsen_env.observation.Layout`.
        suits: how suits are named in observations, masks and actions.
        history: whether observations hold the order of the actions.
        reward: ``"game_points"`` - signed game points at the end of each deal; ``"win"`` - 1 or -1
            at the end of the episode.
        target: game points that win a match; None takes those of ``rules``.
        illegal_action: ``"lose"``, ``"raise"`` or ``"revoke"``, see
            :class:`~schnapsen_env.episode.Settings`. With ``"raise"`` no row is stepped.
        num_threads: threads that share the rows; results do not depend on it.
        copy: True gives new arrays in every step. False, the fastest way, fills the same ones.
        buffers: arrays to fill in place instead of own ones, by the names of :data:`BUFFERS`; any
            of ``observations`` ``[N, F]``, ``action_masks`` ``int8[N, 27]``, ``rewards``
            ``float32[N, 2]``, ``terminals`` and ``truncations`` ``bool[N]``, ``to_play``
            ``int64[N]``. They may be parts of larger arrays, if the last axis has no gaps.
        final_observation: False leaves ``info["final_observation"]`` out. Episodes are never cut
            off, so most learners can do without, and a step is faster.

    Raises:
        ValueError: an unknown value, a combination that makes no sense, or a buffer that does not
            fit; the message names it.
        TypeError: ``rules`` is neither a name nor a rule set.
    """

    _RECALLED = frozenset(
        {"_plan", "_kept", "_masks", "_kept_final", "_no_mask", "_pool", "_buffers"}
    )
    #: On the class too: Gymnasium 1.2 also closes what the constructor has refused.
    _pool: ThreadPoolExecutor | None = None

    def __init__(
        self,
        num_envs: int,
        rules: str | Rules = "duel",
        episode: Episode = "deal",
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        dtype: npt.DTypeLike = np.float32,
        memory: Memory = "perfect",
        suits: Suits = "natural",
        history: bool = False,
        reward: Reward = "game_points",
        target: int | None = None,
        illegal_action: IllegalAction = "lose",
        num_threads: int = 1,
        copy: bool = True,
        buffers: Mapping[str, npt.NDArray[Any]] | None = None,
        final_observation: bool = True,
    ) -> None:
        self.num_envs = whole_number("num_envs", num_envs)
        self.num_threads = whole_number("num_threads", num_threads)
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
        self.dtype = check_dtype(dtype)
        self._mode = check_autoreset_mode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self.single_observation_space: spaces.Space[Any] = observation_space(
            self.layout, self.dtype
        )
        self.single_action_space: spaces.Space[Any] = spaces.Discrete(NUM_ACTIONS)
        self._size = self.layout.size
        self._copy = copy
        self._has_final = final_observation and self._mode is AutoresetMode.SAME_STEP
        n = self.num_envs
        self._state = State(
            records=np.zeros((n, r.RECORD_SIZE), dtype=np.int64),
            finished=np.zeros((n, r.RECORD_SIZE), dtype=np.int64),
            returns=np.zeros((n, 2), dtype=np.float32),
            lengths=np.zeros(n, dtype=np.int64),
            over=np.zeros(n, dtype=np.bool_),
            masks=np.zeros((n, NUM_ACTIONS), dtype=np.int8),
        )
        self._chance = engine.new_record(0)
        self._is_dealt = False
        #: Where running deals and the deals that ended last began, if it was at a position.
        self._starts: dict[int, Position] = {}
        self._finished_starts: dict[int, Position] = {}
        #: Rows in which a deal ended in the last step.
        self._deal_ended: Rows = np.zeros(n, dtype=np.bool_)
        self._buffers: dict[str, npt.NDArray[Any]] = {}
        self._buffers = check_buffers(buffers or {}, self._new_outputs())
        self._recall_constants()

    def _recall_constants(self) -> None:
        """What no copy of this environment shares: settings for compiled code, arrays, threads."""
        self._plan = Plan(
            codes=self.rules.codes(),
            switches=self._settings.switches(),
            scaled=int(self.dtype == np.float32),
            autoreset=batch.AUTORESET_MODES.index(self._mode),
        )
        self._kept = self._new_outputs()._replace(**self._buffers)
        self._masks: npt.NDArray[np.int8] = np.zeros((self.num_envs, NUM_ACTIONS), dtype=np.int8)
        self._kept_final: tuple[npt.NDArray[Any], Rows] | None = None
        self._no_mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        self._pool = None
        self._pool_process = 0

    @property
    def records(self) -> Record:
        """The live deals, ``int64[N, R]``, for :mod:`schnapsen_env.engine` and for search."""
        return self._state.records

    # The spaces of the whole batch hold bounds for every number in it, megabytes that hardly
    # anybody reads, so they are made when they are asked for.

    @cached_property
    def observation_space(self) -> spaces.Space[Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The space of a batch of observations."""
        return batch_space(self.single_observation_space, self.num_envs)

    @cached_property
    def action_space(self) -> spaces.Space[Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The space of a batch of actions."""
        return batch_space(self.single_action_space, self.num_envs)

    # ------------------------------------------------------------------------------------ arrays

    def _new_outputs(self) -> Outputs:
        return new_outputs(self.num_envs, self._size, self.dtype)

    def _outputs(self) -> Outputs:
        """The arrays to fill now."""
        if not self._copy:
            return self._kept
        out = self._new_outputs()
        return out._replace(**self._buffers) if self._buffers else out

    def _final_arrays(self) -> tuple[npt.NDArray[Any], Rows]:
        """Where final observations go, and which of its rows are not 0."""
        if self._kept_final is not None:
            return self._kept_final
        final = np.zeros((self.num_envs, 2, self._size), dtype=self.dtype)
        written = np.zeros(self.num_envs, dtype=np.bool_)
        if not self._copy:
            self._kept_final = final, written
        # Otherwise nothing here holds it, so that its memory, a megabyte or two, is free for the
        # next one as soon as the caller is done with it.
        return final, written

    def _run(self, out: Outputs, actions: Actions) -> int:
        """:func:`run_rows` for all rows, in parts if there are threads for them."""
        plan, state = self._plan, self._state
        if self.num_threads == 1:
            ended = run_rows(plan, state, out, actions, 0, self.num_envs, True)
        else:
            ended = self._run_in_threads(out, actions)
        if ended >= 0:
            np.copyto(out.masks, state.masks)
            if self._mode is not AutoresetMode.SAME_STEP:
                # Where an episode is over nothing is legal, yet a policy samples an action for that
                # row too, which will not be played; so the mask that it gets is all ones.
                out.masks[state.over] = 1
        return ended

    def _run_in_threads(self, out: Outputs, actions: Actions) -> int:
        plan, state = self._plan, self._state
        row = refused_row(plan, state, actions)
        if row >= 0:
            return -1 - row
        if self._pool is None or self._pool_process != os.getpid():
            # A fork copies the pool, but none of its threads: a child needs its own.
            self._pool = ThreadPoolExecutor(self.num_threads, thread_name_prefix="schnapsen")
            self._pool_process = os.getpid()

        def part(number: int) -> int:
            start = self.num_envs * number // self.num_threads
            stop = self.num_envs * (number + 1) // self.num_threads
            return run_rows(plan, state, out, actions, start, stop, False)

        return sum(self._pool.map(part, range(self.num_threads)))

    # ------------------------------------------------------------------------------------- reset

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin a new episode in every row, or in those of ``options["reset_mask"]``.

        Args:
            seed: row ``i`` gets ``seed + i``; or one seed (or None) a row. Without a seed the
                random stream of a row goes on; a first reset draws a seed from the system.
            options: for the first deal ``decks`` ``[N, 20]``, ``forehands`` ``[N]`` and
                ``positions`` ``[N]``, in which None stands for "as the seed has it"; or ``deck``,
                ``forehand``, ``position`` for all rows alike. Each as for the AEC environment.
                ``reset_mask`` ``bool[N]``: the rows to reset; the others stay as they are. Unknown
                keys are ignored.

        Returns:
            What :meth:`observe` does, for all rows.

        Raises:
            TypeError: a seed is not an integer.
            ValueError: an option makes no deal, or something is not of length N; nothing has
                changed.
            ResetNeeded: a ``reset_mask`` before the first reset.
        """
        n = self.num_envs
        options = check_options(options)
        rows = check_reset_mask(options.get("reset_mask"), n, is_dealt=self._is_dealt)
        deals = first_deals(options, n)
        seeds = row_seeds(seed, n, is_dealt=self._is_dealt)
        chosen = np.flatnonzero(rows).tolist()
        given = {
            row: start_row(row, self.records[row], self._settings, seeds[row], deals[row])
            for row in chosen
            if deals[row]
        }
        seeded = [row for row in chosen if row not in given and seeds[row] is not None]
        if seeded:
            self.records[seeded] = engine.new_records([seeds[row] for row in seeded])
        dealt = rows.copy()
        for row, record in given.items():
            self.records[row] = record
            dealt[row] = False
        begin_rows(self.records, dealt)
        for row in chosen:
            self._starts.pop(row, None)
            if row in given and deals[row].get("position") is not None:
                self._starts[row] = engine.position_of(self.records[row])
        if seed is not None or not self._is_dealt:
            self._chance = engine.new_record((seeds[0] or 0) ^ _SAMPLER)
        self._is_dealt = True
        for array in (self._state.returns, self._state.lengths, self._state.over):
            array[rows] = 0
        self._deal_ended = self._deal_ended & ~rows
        # What the last step said of these rows, where the caller still holds it.
        for array in (self._kept.rewards, self._kept.terminations, self._kept.truncations):
            array[rows] = 0
        return self.observe()

    # -------------------------------------------------------------------------------------- step

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Observations, npt.NDArray[np.float32], Rows, Rows, dict[str, Any]]:
        """Take one action a row.

        Args:
            actions: integers ``[N]``, each of the player to move. In a row that is over,
                ``NEXT_STEP`` ignores it, and ``DISABLED`` takes :data:`NO_ACTION` only, which
                leaves the row as it is.

        Returns:
            Observations for the players to move; ``rewards`` ``float32[N, 2]`` by seat;
            ``terminations`` and ``truncations`` (all False), ``bool[N]``; and the info, arrays that
            are 0 in the rows where ``"_key"`` says that ``"key"`` is not given:

            - always: ``to_play`` ``int64[N]``;
            - if a deal ended: ``game_points`` ``[N, 2]``, signed, by seat, ``end_reason`` ``[N]``
              as in :class:`~schnapsen_env.position.EndReason`, ``deal_length`` ``[N]`` and
              ``match_score`` ``[N, 2]``;
            - if an illegal action ended an episode: ``illegal_action`` ``bool[N]``;
            - if an episode ended: ``episode``, a dict of ``r`` ``[N, 2]``, the return of each seat,
              ``l`` ``[N]``, its number of actions, ``deals`` ``[N]``, and ``game_points``,
              ``end_reason`` and ``match_score`` of its last deal; in matches also ``match_winner``
              ``[N]``, -1 if an illegal action ended it, ``schneider`` and ``rueckschneider``
              ``bool[N]``; under ``SAME_STEP`` also ``final_observation`` ``[N, 2, F]``, by seat.

        Raises:
            IllegalActionError: an id outside 0-26, or an illegal action with
                ``illegal_action="raise"``; the message names the row. Nothing has changed.
            TypeError: the actions are not integers.
            ValueError: not one action a row.
            ResetNeeded: before the first reset, or in ``DISABLED`` mode, an action for a row that
                is over.
        """
        if not self._is_dealt:
            raise reset_needed("step()")
        given, numbers = check_actions(actions, self.num_envs)
        out = self._outputs()
        deals_ended = self._run(out, numbers)
        if deals_ended < 0:
            raise self._refusal(-1 - deals_ended, given)
        self._masks, self._deal_ended = out.masks, out.deal_ended
        info: dict[str, Any] = {"to_play": out.to_play}
        if deals_ended:
            self._add_statistics(out, info)
        observations: Observations = {"observation": out.observations, "action_mask": out.masks}
        return observations, out.rewards, out.terminations, out.truncations, info

    def _refusal(self, row: int, actions: npt.NDArray[Any]) -> Exception:
        """The error for the action that :func:`refused_row` found."""
        action = int(actions[row])
        if self._state.over[row]:
            return ResetNeeded(
                f"row {row} is over: call reset(options={{'reset_mask': ...}}) for it, or leave it "
                f"with the action {NO_ACTION}; it was given {action}"
            )
        return illegal_action_error(self.records[row], self._settings, action, row)

    def _add_statistics(self, out: Outputs, info: dict[str, Any]) -> None:
        """Say of the deals and episodes that ended what is to be said."""
        deal_ended = out.deal_ended
        last_deal = {
            "game_points": out.pairs[batch.GAME_POINTS],
            "end_reason": out.counts[batch.END_REASON],
            "match_score": out.pairs[batch.MATCH_SCORE],
        }
        info |= last_deal
        info["deal_length"] = out.counts[batch.DEAL_LENGTH]
        for key in ("game_points", "end_reason", "match_score", "deal_length"):
            info[f"_{key}"] = deal_ended
        if self._starts:
            over = [row for row in self._starts if deal_ended[row]]
            self._finished_starts = {row: self._starts.pop(row) for row in over}
        ended = deal_ended & out.terminations
        if self._settings.is_match and not ended.any():
            return
        illegal = out.counts[batch.END_REASON] == _ILLEGAL
        if illegal.any():
            info["illegal_action"] = info["_illegal_action"] = illegal
        episode = {
            "r": out.returns,
            "l": out.counts[batch.EPISODE_LENGTH],
            "deals": out.counts[batch.DEALS],
        }
        info["episode"], info["_episode"] = episode | last_deal, ended
        if self._settings.is_match:
            info["episode"] |= self._match_results(ended & ~illegal, last_deal["match_score"])
        if self._has_final:
            final, written = self._final_arrays()
            show_finished(self._plan, self._state.finished, ended, written, final, self._no_mask)
            info["final_observation"], info["_final_observation"] = final, ended

    def _match_results(self, won: Rows, score: npt.NDArray[np.int32]) -> dict[str, Any]:
        """As :func:`schnapsen_env.engine.match_result`, for the rows whose match was won."""
        reached = engine.has_won(score, self.rules.target)
        schneider, rueckschneider = engine.defeats(score.min(axis=1), self.rules.target)
        return {
            "match_winner": np.where(won, reached.argmax(axis=1), r.NONE).astype(np.int32),
            "schneider": won & schneider,
            "rueckschneider": won & rueckschneider,
        }

    # ----------------------------------------------------------------------------------- looking

    def observe(self) -> tuple[Observations, dict[str, Any]]:
        """What the players to move see, and ``{"to_play": int64[N]}``.

        The masks of rows that are over are all ones, so that a policy can sample for them too.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_deals("observe()")
        out = self._outputs()
        self._run(out, _NO_ACTIONS)
        self._masks = out.masks
        return (
            {"observation": out.observations, "action_mask": out.masks},
            {"to_play": out.to_play},
        )

    def state(self) -> npt.NDArray[np.float32]:
        """The full information on each deal, ``float32[N, G]``, for critics that may see it.

        By seat, whoever is to move, see :func:`~schnapsen_env.observation.encode_state`; a new
        array.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_deals("state()")
        out = np.empty((self.num_envs, STATE_SIZE), dtype=np.float32)
        write_states(self.records, self._plan.codes, out)
        return out

    def sample_actions(self, action_masks: npt.NDArray[np.int8] | None = None) -> Actions:
        """A uniformly random allowed action a row, ``int64[N]``.

        The generator is seeded by :meth:`reset`, and is not one of those that deal.

        Args:
            action_masks: ``int8[N, 27]``; None takes the masks of the last step. A row of zeros
                gets :data:`NO_ACTION`, and so does in ``DISABLED`` mode a row that is over.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_deals("sample_actions()")
        actions = np.empty(self.num_envs, dtype=np.int64)
        sample_masked(self._masks if action_masks is None else action_masks, self._chance, actions)
        if self._mode is AutoresetMode.DISABLED:
            actions[self._state.over] = NO_ACTION
        return actions

    def finished_deals(
        self, seats: tuple[str, str] = ("player_0", "player_1")
    ) -> dict[int, DealRecord]:
        """The deals that ended in the last step as records to write down, by row.

        Args:
            seats: the names of the players, seat 0 first.
        """
        return {
            row: DealRecord.from_record(
                self._state.finished[row],
                self.rules,
                seats=seats,
                start=self._finished_starts.get(row),
            )
            for row in np.flatnonzero(self._deal_ended).tolist()
        }

    def _require_deals(self, reader: str) -> None:
        if not self._is_dealt:
            raise reset_needed(reader)

    # ------------------------------------------------------------------------------------ copies

    def get_state(self) -> dict[str, Any]:
        """This moment, random states included, as a value that can be kept and pickled.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_deals("get_state()")
        return {
            "settings": self._settings,
            "autoreset_mode": self._mode.value,
            "arrays": {name: array.copy() for name, array in self._state._asdict().items()},
            "kept": {name: deepcopy(getattr(self, name)) for name in _KEPT},
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to a moment that :meth:`get_state` gave, of this or a like environment.

        Raises:
            ValueError: not such a state, or the state of an environment with other settings or
                another number of rows; nothing has changed.
        """
        arrays = self._check_state(state)
        for name, array in self._state._asdict().items():
            array[:] = arrays[name]
        for name, value in state["kept"].items():
            setattr(self, name, deepcopy(value))
        self._is_dealt = True

    def _check_state(self, state: Any) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays of a state that fits this environment."""
        parts = check_parts("state", state, ("settings", "autoreset_mode", "arrays", "kept"))
        arrays = check_parts("state['arrays']", parts["arrays"], State._fields)
        kept = check_parts("state['kept']", parts["kept"], _KEPT)
        rows = np.size(arrays["over"])
        if parts["settings"] != self._settings or rows != self.num_envs:
            raise ValueError(
                f"the state is of {rows} rows with {parts['settings']}, this environment has "
                f"{self.num_envs} with {self._settings}: make an environment with the same "
                "arguments"
            )
        if parts["autoreset_mode"] != self._mode.value:
            raise ValueError(
                f"the state is of an environment with autoreset_mode={parts['autoreset_mode']!r}, "
                f"this one has {self._mode.value!r}: make an environment with the same arguments"
            )
        check_arrays("state['arrays']", arrays, self._state._asdict())
        own = {name: getattr(self, name) for name in ("_chance", "_masks", "_deal_ended")}
        check_arrays("state['kept']", kept, own)
        return arrays

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_kept_masks": self._masks}

    def __setstate__(self, state: dict[str, Any]) -> None:
        masks = state.pop("_kept_masks")
        self._buffers = {}  # a copy fills its own arrays, never those of a caller
        super().__setstate__(state)
        self._masks = masks

    def close_extras(self, **_kwargs: Any) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


#: A plain integer: numpy takes 2 us longer, of a step's 110, to compare with a member of an enum.
_ILLEGAL: Final = int(EndReason.ILLEGAL_ACTION)
#: What changes in play, beside the arrays of :class:`State`.
_KEPT: Final = ("_chance", "_masks", "_starts", "_finished_starts", "_deal_ended")
_NO_ACTIONS: Final = np.zeros(0, dtype=np.int64)
#: Sets the random stream of ``sample_actions`` apart from that of row 0.
_SAMPLER: Final = 1 << 62
