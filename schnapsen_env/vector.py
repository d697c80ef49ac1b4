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

import copy as copying
import operator
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.episode import (
    HISTORY,
    MEMORY,
    RAISES,
    SUITS,
    Codes,
    Episode,
    IllegalAction,
    Record,
    Reward,
    Switches,
    counted_points,
    end_by_illegal_action,
    illegal_action_error,
    is_episode_over,
    make_settings,
    random_seed,
    reward_of,
    seed_number,
    start,
    take_natural,
)
from schnapsen_env.observation import (
    STATE_SIZE,
    Layout,
    Memory,
    Suits,
    encode,
    encode_state,
    natural_action,
)
from schnapsen_env.position import EndReason, Position
from schnapsen_env.record_log import DealRecord
from schnapsen_env.rules import Rules

Rows = npt.NDArray[np.bool_]
Actions = npt.NDArray[np.int64]
Observations = dict[str, npt.NDArray[Any]]

#: The action for a row that is over and waits for its reset (``AutoresetMode.DISABLED``).
NO_ACTION: Final = -1

_MODES: Final = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
_NEXT_STEP, _SAME_STEP, _DISABLED = range(3)

#: Rows of ``Outputs.counts``.
_END_REASON, _DEAL_LENGTH, _EPISODE_LENGTH, _DEALS = range(4)
#: Rows of ``Outputs.pairs``.
_GAME_POINTS, _MATCH_SCORE = range(2)

#: The arrays that a caller may provide, and the field of :class:`Outputs` that each one is.
BUFFERS: Final = {
    "observations": "observations",
    "action_masks": "masks",
    "rewards": "rewards",
    "terminals": "terminations",
    "truncations": "truncations",
    "to_play": "to_play",
}


class Plan(NamedTuple):
    """How a batch plays, as compiled code reads it."""

    codes: Codes
    #: The places of :mod:`schnapsen_env.episode`.
    switches: Switches
    #: 1 if observations are float32, 0 if they are unscaled uint8.
    scaled: int
    #: NEXT_STEP, SAME_STEP or DISABLED.
    autoreset: int


class State(NamedTuple):
    """What a batch remembers between steps."""

    #: ``int64[N, R]``, the live deals.
    records: Record
    #: ``int64[N, R]``: row i holds the deal of row i that ended last, as it ended.
    finished: Record
    #: ``float32[N, 2]``, rewards of the running episode by seat.
    returns: npt.NDArray[np.float32]
    #: ``int64[N]``, actions of the running episode.
    lengths: npt.NDArray[np.int64]
    #: ``bool[N]``, episodes that are over and not yet reset.
    over: Rows
    #: ``int8[N, 27]``, what the players to move may do; kept apart from what callers get to hold.
    masks: npt.NDArray[np.int8]


class Outputs(NamedTuple):
    """What one step writes. ``counts``, ``pairs`` and ``returns`` are 0 where no deal ended."""

    observations: npt.NDArray[Any]
    masks: npt.NDArray[np.int8]
    rewards: npt.NDArray[np.float32]
    terminations: Rows
    truncations: Rows
    to_play: npt.NDArray[np.int64]
    #: ``bool[N]``, rows in which a deal ended.
    deal_ended: Rows
    #: ``int32[4, N]``: end reason and length of the deals that ended, length and number of deals of
    #: the episodes that ended.
    counts: npt.NDArray[np.int32]
    #: ``int32[2, N, 2]``: game points and match score of the deals that ended, by seat.
    pairs: npt.NDArray[np.int32]
    #: ``float32[N, 2]``, returns of the episodes that ended, by seat.
    returns: npt.NDArray[np.float32]


# ------------------------------------------------------------------------------ compiled loops


@compiled
def begin_episode(record: Record) -> None:
    """Deal the first deal of a new episode."""
    engine.new_match(record)
    engine.deal(record)


@compiled
def begin_rows(records: Record, rows: Rows) -> None:
    """Begin a new episode in the chosen rows, each with its own random stream."""
    for row in range(len(records)):
        if rows[row]:
            begin_episode(records[row])


@compiled
def refused_row(plan: Plan, state: State, actions: Actions) -> int:
    """The first row whose action stops the whole step before it begins, or -1.

    That is an action that is no action at all, one for a row that waits for its reset, and, under
    ``illegal_action="raise"``, one that the rules forbid.
    """
    raises, over, masks = plan.switches[RAISES], state.over, state.masks
    for row in range(len(actions)):
        action = actions[row]
        if over[row]:
            if plan.autoreset == _DISABLED and action != NO_ACTION:
                return row
        elif action < 0 or action >= NUM_ACTIONS or (raises and not masks[row, action]):
            return row
    return -1


@compiled
def take_unusual(
    record: Record, codes: Codes, switches: Switches, action: int, is_allowed: int
) -> None:
    """Take an action that is illegal, or names suits in another order than the natural one."""
    natural = natural_action(
        record, codes, switches[MEMORY], switches[SUITS], switches[HISTORY], action
    )
    if not take_natural(record, codes, switches, natural, is_allowed):
        end_by_illegal_action(record)


# The loops below take their arrays out of the tuples first. numba counts references to every array
# of a tuple that is passed on, which within a loop would take as long as the rules do.


@compiled
def act_rows(
    plan: Plan, state: State, out: Outputs, actions: Actions, start: int, stop: int
) -> None:
    """Take the actions in rows ``start`` to ``stop``; begin episodes where it is time."""
    codes, switches, autoreset = plan.codes, plan.switches, plan.autoreset
    records, masks, lengths, over = state.records, state.masks, state.lengths, state.over
    terminations = out.terminations
    natural = switches[SUITS] == 0
    for row in range(start, stop):
        if not over[row]:
            lengths[row] += 1
            action = actions[row]
            is_allowed = masks[row, action]
            if natural and is_allowed:
                engine.step(records[row], codes, action)
            else:
                take_unusual(records[row], codes, switches, action, is_allowed)
        elif autoreset == _NEXT_STEP:
            over[row] = False
            begin_episode(records[row])
        else:
            terminations[row] = True


@compiled
def end_rows(plan: Plan, state: State, out: Outputs, start: int, stop: int) -> int:
    """Reward and report the deals that have just ended in rows ``start`` to ``stop``.

    Where a deal or an episode follows at once, it is dealt. Returns how many deals have ended.
    """
    codes, switches, autoreset = plan.codes, plan.switches, plan.autoreset
    records, finished, over = state.records, state.finished, state.over
    returns, lengths = state.returns, state.lengths
    rewards, terminations, deal_ended = out.rewards, out.terminations, out.deal_ended
    counts, pairs, episode_returns = out.counts, out.pairs, out.returns
    ended = 0
    for row in range(start, stop):
        record = records[row]
        if record[r.END_REASON] == 0 or over[row]:
            continue
        ended += 1
        deal_ended[row] = True
        for field in range(r.RECORD_SIZE):
            finished[row, field] = record[field]
        counts[_END_REASON, row] = record[r.END_REASON]
        counts[_DEAL_LENGTH, row] = record[r.NUM_TAKEN]
        for seat in range(2):
            pairs[_GAME_POINTS, row, seat] = counted_points(record, seat)
            pairs[_MATCH_SCORE, row, seat] = record[r.MATCH_SCORE + seat]
            rewards[row, seat] = reward_of(record, codes, switches, seat)
            returns[row, seat] += rewards[row, seat]
        if not is_episode_over(record, codes, switches):
            engine.deal(record)
            continue
        terminations[row] = True
        counts[_EPISODE_LENGTH, row] = lengths[row]
        counts[_DEALS, row] = record[r.DEAL_NUMBER]
        lengths[row] = 0
        for seat in range(2):
            episode_returns[row, seat] = returns[row, seat]
            returns[row, seat] = 0
        if autoreset == _SAME_STEP:
            begin_episode(record)
        else:
            over[row] = True
    return ended


@compiled
def clear_rows(out: Outputs, start: int, stop: int) -> None:
    """Set to 0 what :func:`act_rows` and :func:`end_rows` write only here and there."""
    rewards, terminations, truncations = out.rewards, out.terminations, out.truncations
    deal_ended, counts, pairs, returns = out.deal_ended, out.counts, out.pairs, out.returns
    for row in range(start, stop):
        terminations[row] = truncations[row] = deal_ended[row] = False
        for seat in range(2):
            rewards[row, seat] = returns[row, seat] = 0
            pairs[0, row, seat] = pairs[1, row, seat] = 0
    for count in range(len(counts)):
        for row in range(start, stop):
            counts[count, row] = 0


@compiled
def run_rows(
    plan: Plan,
    state: State,
    out: Outputs,
    actions: Actions,
    start: int,
    stop: int,
    check: bool,
) -> int:
    """Step rows ``start`` to ``stop`` and write what the players to move see, masks to ``state``.

    One function for all that a batch is asked for, since each function that encodes takes seconds
    to compile.

    Args:
        plan: the settings of the batch.
        state: its state.
        out: where everything goes.
        actions: ``int64[N]``, or ``int64[0]`` to step nothing and only write what is seen.
        start: the first row.
        stop: the row after the last.
        check: whether to look for an action that is refused, in all rows, before anything is done.

    Returns:
        How many deals ended, or ``-1 - row`` for a refused action.
    """
    ended = 0
    if len(actions):
        if check:
            row = refused_row(plan, state, actions)
            if row >= 0:
                return -1 - row
        clear_rows(out, start, stop)
        act_rows(plan, state, out, actions, start, stop)
        ended = end_rows(plan, state, out, start, stop)
    codes, scaled, switches = plan.codes, plan.scaled, plan.switches
    memory, suits, history = switches[MEMORY], switches[SUITS], switches[HISTORY]
    records, masks = state.records, state.masks
    observations, to_play = out.observations, out.to_play
    for row in range(start, stop):
        record, view = records[row], observations[row]
        seat = record[r.TO_MOVE]
        to_play[row] = seat
        encode(record, codes, seat, memory, suits, history, scaled, view, masks[row])
    return ended


@compiled
def show_finished(
    plan: Plan,
    finished: Record,
    ended: Rows,
    written: Rows,
    out: npt.NDArray[Any],
    no_mask: npt.NDArray[np.int8],
) -> None:
    """Write both players' observations of the deals that ended an episode, and 0 elsewhere.

    Args:
        plan: the settings of the batch.
        finished: ``int64[N, R]``, the deals.
        ended: ``bool[N]``, rows to write.
        written: ``bool[N]``, rows of ``out`` that are not 0 already; kept up to date.
        out: ``[N, 2, F]``.
        no_mask: ``int8[27]``, scratch for masks that nobody reads.
    """
    memory, suits, history = plan.switches[MEMORY], plan.switches[SUITS], plan.switches[HISTORY]
    codes, scaled = plan.codes, plan.scaled
    for row in range(len(ended)):
        if ended[row]:
            for seat in range(2):
                record, view = finished[row], out[row, seat]
                encode(record, codes, seat, memory, suits, history, scaled, view, no_mask)
        elif written[row]:
            for seat in range(2):
                for feature in range(out.shape[2]):
                    out[row, seat, feature] = 0
        written[row] = ended[row]


@compiled
def write_states(records: Record, codes: Codes, out: npt.NDArray[np.float32]) -> None:
    """Write the full information on each deal into ``out``, ``float32[N, G]``."""
    for row in range(len(records)):
        encode_state(records[row], codes, out[row])


@compiled
def sample_masked(masks: npt.NDArray[np.int8], chance: Record, out: Record) -> None:
    """Draw a uniformly random action that each row of ``masks`` allows.

    Args:
        masks: ``int8[N, 27]``.
        chance: a record, of which only the random generator is used.
        out: ``int64[N]``; :data:`NO_ACTION` where nothing is allowed.
    """
    for row in range(len(out)):
        allowed = 0
        for action in range(NUM_ACTIONS):
            allowed += masks[row, action]
        out[row] = NO_ACTION
        if allowed:
            skip = draw_below(chance, allowed)
            for action in range(NUM_ACTIONS):
                if masks[row, action]:
                    if skip == 0:
                        out[row] = action
                        break
                    skip -= 1


# --------------------------------------------------------------------------------- the environment


class SchnapsenVectorEnv(VectorEnv[Observations, Any, npt.NDArray[Any]]):
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
        self.num_envs = _whole("num_envs", num_envs)
        self.num_threads = _whole("num_threads", num_threads)
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
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.uint8)):
            raise ValueError(f"dtype={self.dtype} is unknown: choose float32 or uint8")
        self._mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self.single_observation_space: spaces.Space[Any] = _observation_space(
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
        self._buffers = self._check_buffers(buffers or {})
        self._make_the_rest()

    def _make_the_rest(self) -> None:
        """What no copy of this environment shares: settings for compiled code, arrays, threads."""
        # A copied read-only array would be writable, which is another type to numba and would
        # compile everything once more; so the codes are fetched, not copied.
        self._plan = Plan(
            codes=self.rules.codes(),
            switches=self._settings.switches(),
            scaled=int(self.dtype == np.float32),
            autoreset=_MODES.index(self._mode),
        )
        self._kept = self._new_outputs()._replace(**self._buffers)
        self._masks: npt.NDArray[np.int8] = np.zeros((self.num_envs, NUM_ACTIONS), dtype=np.int8)
        self._final: npt.NDArray[Any] | None = None
        self._final_written: Rows = np.zeros(self.num_envs, dtype=np.bool_)
        self._no_mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        self._pool: ThreadPoolExecutor | None = None

    @property
    def rules(self) -> Rules:
        """The rule set, with the target of this environment."""
        return self._settings.rules

    @property
    def layout(self) -> Layout:
        """What the numbers of an observation mean, for ``observation.describe``."""
        return self._settings.layout

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

    def _check_buffers(self, buffers: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        """The caller's arrays by field of :class:`Outputs`."""
        own = self._new_outputs()
        checked: dict[str, npt.NDArray[Any]] = {}
        for name, buffer in buffers.items():
            if name not in BUFFERS:
                raise ValueError(f"buffers: {name!r} is unknown: choose from {', '.join(BUFFERS)}")
            wanted: npt.NDArray[Any] = getattr(own, BUFFERS[name])
            form = f"{wanted.dtype}{list(wanted.shape)}"
            if not isinstance(buffer, np.ndarray):
                raise ValueError(f"buffers: {name} is a numpy array {form}, not {buffer!r}")
            array = cast("npt.NDArray[Any]", buffer)
            if array.shape != wanted.shape or array.dtype != wanted.dtype:
                raise ValueError(f"buffers: {name} is {form}, not {array.dtype}{list(array.shape)}")
            if not array.flags.writeable or array.strides[-1] != array.itemsize:
                raise ValueError(f"buffers: {name} is read-only or has gaps in its last axis")
            checked[BUFFERS[name]] = array
        return checked

    def _new_outputs(self) -> Outputs:
        n = self.num_envs
        return Outputs(
            observations=np.empty((n, self._size), dtype=self.dtype),
            masks=np.empty((n, NUM_ACTIONS), dtype=np.int8),
            rewards=np.empty((n, 2), dtype=np.float32),
            terminations=np.empty(n, dtype=np.bool_),
            truncations=np.empty(n, dtype=np.bool_),
            to_play=np.empty(n, dtype=np.int64),
            deal_ended=np.empty(n, dtype=np.bool_),
            counts=np.empty((4, n), dtype=np.int32),
            pairs=np.empty((2, n, 2), dtype=np.int32),
            returns=np.empty((n, 2), dtype=np.float32),
        )

    def _outputs(self) -> Outputs:
        """The arrays to fill now."""
        if not self._copy:
            return self._kept
        out = self._new_outputs()
        return out._replace(**self._buffers) if self._buffers else out

    def _final_arrays(self) -> tuple[npt.NDArray[Any], Rows]:
        """Where final observations go, and which of its rows are not 0."""
        if self._final is None or self._copy:
            self._final = np.zeros((self.num_envs, 2, self.layout.size), dtype=self.dtype)
            self._final_written = np.zeros(self.num_envs, dtype=np.bool_)
        return self._final, self._final_written

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
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.num_threads, thread_name_prefix="schnapsen")

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
        options = dict(options or {})
        rows = self._rows_to_reset(options.get("reset_mask"))
        deals = self._first_deals(options)
        seeds = self._row_seeds(seed)
        chosen = np.flatnonzero(rows).tolist()
        given = {row: self._start(row, seeds[row], deals[row]) for row in chosen if deals[row]}
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
        self._deal_ended = np.zeros(self.num_envs, dtype=np.bool_)
        return self.observe()

    def _rows_to_reset(self, mask: Any) -> Rows:
        n = self.num_envs
        if mask is None:
            return np.ones(n, dtype=np.bool_)
        rows = np.asarray(mask)
        if rows.shape != (n,) or rows.dtype != np.bool_ or not rows.any():
            raise ValueError(
                f"reset_mask must be a bool array of shape ({n},) with a True in it, not {mask!r}"
            )
        if not self._is_dealt and not rows.all():
            raise ResetNeeded("reset_mask before the first reset: call reset() for all rows first")
        return rows

    def _first_deals(self, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The options of each row as the AEC environment takes them."""
        deals: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for one in ("deck", "forehand", "position"):
            many = f"{one}s"
            if options.get(one) is not None and options.get(many) is not None:
                raise ValueError(f"options: give {one} for all rows or {many}, not both")
            values = options.get(many)
            if options.get(one) is not None:
                values = [options[one]] * self.num_envs
            if values is None:
                continue
            if len(values) != self.num_envs:
                raise ValueError(f"options: {len(values)} {many} do not fit {self.num_envs} rows")
            for deal, value in zip(deals, values, strict=True):
                if value is not None:
                    deal[one] = value
        return deals

    def _row_seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        n = self.num_envs
        if seed is None:
            if self._is_dealt:
                return [None] * n
            seed = random_seed()
        if not isinstance(seed, Sequence | np.ndarray):
            first = seed_number(seed)
            return [first + row for row in range(n)]
        if len(seed) != n:
            raise ValueError(f"{len(seed)} seeds do not fit {n} rows")
        return [
            seed_number(one) if one is not None else None if self._is_dealt else random_seed()
            for one in seed
        ]

    def _start(self, row: int, seed: int | None, deal: Mapping[str, Any]) -> Record:
        try:
            return start(self.records[row], self._settings, seed, deal)
        except (ValueError, TypeError) as error:
            raise type(error)(f"row {row}: {error}") from error

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
        numbers = self._check_actions(actions)
        out = self._outputs()
        deals_ended = self._run(out, numbers)
        if deals_ended < 0:
            raise self._refusal(-1 - deals_ended, numbers)
        self._masks, self._deal_ended = out.masks, out.deal_ended
        info: dict[str, Any] = {"to_play": out.to_play}
        if deals_ended:
            self._add_statistics(out, info)
        observations: Observations = {"observation": out.observations, "action_mask": out.masks}
        return observations, out.rewards, out.terminations, out.truncations, info

    def _check_actions(self, actions: npt.ArrayLike) -> Actions:
        if not self._is_dealt:
            raise ResetNeeded("step() before the first reset: call reset() first")
        given = np.asarray(actions)
        if given.shape != (self.num_envs,):
            raise ValueError(f"actions must have shape ({self.num_envs},), not {given.shape}")
        if given.dtype.kind not in "iu":
            raise TypeError(
                f"actions must be integers, not {given.dtype}: pass actions.astype(np.int64)"
            )
        return np.ascontiguousarray(given, dtype=np.int64)

    def _refusal(self, row: int, actions: Actions) -> Exception:
        """The error for the action that :func:`refused_row` found."""
        action = int(actions[row])
        if self._state.over[row]:
            return ResetNeeded(
                f"row {row} is over: call reset(options={{'reset_mask': ...}}) for it, or leave it "
                f"with the action {NO_ACTION}; it was given {action}"
            )
        error = illegal_action_error(self.records[row], self._settings, action)
        error.args = (f"row {row}: {error}",)
        return error

    def _add_statistics(self, out: Outputs, info: dict[str, Any]) -> None:
        """Say of the deals and episodes that ended what is to be said."""
        deal_ended = out.deal_ended
        last_deal = {
            "game_points": out.pairs[_GAME_POINTS],
            "end_reason": out.counts[_END_REASON],
            "match_score": out.pairs[_MATCH_SCORE],
        }
        info |= last_deal
        info["deal_length"] = out.counts[_DEAL_LENGTH]
        for key in ("game_points", "end_reason", "match_score", "deal_length"):
            info[f"_{key}"] = deal_ended
        if self._starts:
            over = [row for row in self._starts if deal_ended[row]]
            self._finished_starts = {row: self._starts.pop(row) for row in over}
        ended = deal_ended & out.terminations
        if self._settings.is_match and not ended.any():
            return
        illegal = out.counts[_END_REASON] == EndReason.ILLEGAL_ACTION
        if illegal.any():
            info["illegal_action"] = info["_illegal_action"] = illegal
        episode = {"r": out.returns, "l": out.counts[_EPISODE_LENGTH], "deals": out.counts[_DEALS]}
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
            raise ResetNeeded(f"{reader} before the first reset: call reset() first")

    # ------------------------------------------------------------------------------------ copies

    def clone(self) -> SchnapsenVectorEnv:
        """An independent copy that continues exactly as this environment would.

        It fills its own arrays, never the caller's buffers of the original.
        """
        return copying.deepcopy(self)

    def get_state(self) -> dict[str, Any]:
        """This moment, random states included, as a value that can be kept and pickled.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_deals("get_state()")
        return {
            "settings": self._settings,
            "arrays": {name: array.copy() for name, array in self._state._asdict().items()},
            "kept": {name: copying.deepcopy(getattr(self, name)) for name in _KEPT},
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to a moment that :meth:`get_state` gave, of this or a like environment.

        Raises:
            ValueError: the state is of an environment with other settings or another number of
                rows.
        """
        arrays: Mapping[str, npt.NDArray[Any]] = state["arrays"]
        if state["settings"] != self._settings or len(arrays["over"]) != self.num_envs:
            raise ValueError(
                f"the state is of {len(arrays['over'])} rows with {state['settings']}, this "
                f"environment has {self.num_envs} with {self._settings}: make an environment with "
                "the same arguments"
            )
        for name, array in self._state._asdict().items():
            array[:] = arrays[name]
        for name, value in state["kept"].items():
            setattr(self, name, copying.deepcopy(value))
        self._is_dealt = True

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in _NOT_KEPT}
        return kept | {"_kept_masks": self._masks}

    def __setstate__(self, state: dict[str, Any]) -> None:
        masks = state.pop("_kept_masks")
        vars(self).update(state)
        self._buffers = {}
        self._make_the_rest()
        self._masks = masks

    def close_extras(self, **_kwargs: Any) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


#: What changes in play, beside the arrays of :class:`State`.
_KEPT: Final = ("_chance", "_masks", "_starts", "_finished_starts", "_deal_ended")
_NO_ACTIONS: Final = np.zeros(0, dtype=np.int64)
#: Made anew in a copy, see ``_make_the_rest``.
_NOT_KEPT: Final = frozenset(
    {"_plan", "_kept", "_masks", "_final", "_final_written", "_no_mask", "_pool", "_buffers"}
)
#: Sets the random stream of ``sample_actions`` apart from that of row 0.
_SAMPLER: Final = 1 << 62


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"{name} is a whole number from 1, not {value!r}")
    return number


def _observation_space(layout: Layout, dtype: np.dtype[Any]) -> spaces.Space[Any]:
    scaled = dtype == np.float32
    high = np.ones(layout.size) if scaled else np.rint(1 / layout.scale)
    low = np.zeros(layout.size, dtype)
    return spaces.Dict(
        {
            "observation": spaces.Box(low, high.astype(dtype), dtype=dtype.type),
            "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    )
