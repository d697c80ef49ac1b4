"""Many deals at once, the compiled part: what a batch remembers and writes, and its loops.

:class:`~schnapsen_env.vector.SchnapsenVectorEnv` is the environment around it.

Letters in shapes: N rows, F features of an observation, G features of the full state, R the width
of a record.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.episode import (
    HISTORY,
    MEMORY,
    RAISES,
    SUITS,
    Codes,
    Record,
    Switches,
    counted_points,
    end_by_illegal_action,
    is_episode_over,
    reward_of,
    take_natural,
)
from schnapsen_env.observation import encode, encode_state, natural_action

Rows = npt.NDArray[np.bool_]
Actions = npt.NDArray[np.int64]
Observations = dict[str, npt.NDArray[Any]]

#: The action for a row that is over and waits for its reset (``AutoresetMode.DISABLED``).
NO_ACTION: Final = -1

#: The autoreset modes by their numbers in :class:`Plan`.
AUTORESET_MODES: Final = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)
_NEXT_STEP, _SAME_STEP, _DISABLED = range(3)

#: Rows of ``Outputs.counts``.
END_REASON, DEAL_LENGTH, EPISODE_LENGTH, DEALS = range(4)
#: Rows of ``Outputs.pairs``.
GAME_POINTS, MATCH_SCORE = range(2)


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


def new_outputs(num_envs: int, size: int, dtype: np.dtype[Any]) -> Outputs:
    """Arrays for N rows and F = ``size`` features, to be filled."""
    n = num_envs
    return Outputs(
        observations=np.empty((n, size), dtype=dtype),
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


# ------------------------------------------------------------------------------ compiled loops


@compiled
def begin_episode(record: Record) -> None:
    """Deal the first deal of a new episode."""
    engine.new_match(record)
    engine.deal(record)


@compiled
def begin_rows(records: Record, rows: Rows) -> None:
    """Begin a new episode in the chosen rows, each with its own random stream."""
    records = borrowed(records)
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


# The loops below borrow their arrays out of the tuples first: references that are counted within a
# loop take longer than the rules do, see schnapsen_env.borrowed.


@compiled
def act_rows(
    plan: Plan, state: State, out: Outputs, actions: Actions, start: int, stop: int
) -> None:
    """Take the actions in rows ``start`` to ``stop``; begin episodes where it is time."""
    codes, switches = borrowed(plan.codes), borrowed(plan.switches)
    records, masks = borrowed(state.records), borrowed(state.masks)
    lengths, over, terminations = state.lengths, state.over, out.terminations
    autoreset = plan.autoreset
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
    codes, switches = borrowed(plan.codes), borrowed(plan.switches)
    records, finished, over = borrowed(state.records), state.finished, state.over
    autoreset = plan.autoreset
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
        counts[END_REASON, row] = record[r.END_REASON]
        counts[DEAL_LENGTH, row] = record[r.NUM_TAKEN]
        for seat in range(2):
            pairs[GAME_POINTS, row, seat] = counted_points(record, seat)
            pairs[MATCH_SCORE, row, seat] = record[r.MATCH_SCORE + seat]
            rewards[row, seat] = reward_of(record, codes, switches, seat)
            returns[row, seat] += rewards[row, seat]
        if not is_episode_over(record, codes, switches):
            engine.deal(record)
            continue
        terminations[row] = True
        counts[EPISODE_LENGTH, row] = lengths[row]
        counts[DEALS, row] = record[r.DEAL_NUMBER]
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
    out.rewards[start:stop] = 0
    out.terminations[start:stop] = False
    out.truncations[start:stop] = False
    out.deal_ended[start:stop] = False
    out.counts[:, start:stop] = 0
    out.pairs[:, start:stop] = 0
    out.returns[start:stop] = 0


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
    codes, scaled, switches = borrowed(plan.codes), plan.scaled, plan.switches
    memory, suits, history = switches[MEMORY], switches[SUITS], switches[HISTORY]
    records, masks = borrowed(state.records), borrowed(state.masks)
    observations, to_play = borrowed(out.observations), out.to_play
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
    codes, scaled = borrowed(plan.codes), plan.scaled
    finished, out, no_mask = borrowed(finished), borrowed(out), borrowed(no_mask)
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
    records, codes, out = borrowed(records), borrowed(codes), borrowed(out)
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


@compiled
def show_both(
    records: Record,
    codes: Codes,
    layout: tuple[int, int, int, int],
    to_play: Actions,
    seen: npt.NDArray[Any],
    action_masks: npt.NDArray[np.int8],
    out: npt.NDArray[Any],
    live: Rows,
    no_mask: npt.NDArray[np.int8],
) -> None:
    """Write a row for each seat of N deals: what it sees, and its action mask behind that.

    Args:
        records: ``int64[N, R]``, the deals.
        codes: ``Rules.codes()``.
        layout: memory, suits and history as ``Layout`` has them, and 1 for float observations.
        to_play: ``int64[N]``, the seats to move.
        seen: ``[N, F]``, what those see.
        action_masks: ``int8[N, A]``, what they may do.
        out: ``[2N, F + A]``.
        live: ``bool[2N]``, which agents are to move.
        no_mask: ``int8[A]``, scratch for masks of zeros.
    """
    memory, suits, history, scaled = layout
    records, codes = borrowed(records), borrowed(codes)
    out, no_mask = borrowed(out), borrowed(no_mask)
    size = seen.shape[1]
    for deal in range(len(records)):
        for seat in range(2):
            agent = 2 * deal + seat
            is_live = seat == to_play[deal]
            live[agent] = is_live
            if is_live:
                for feature in range(size):
                    out[agent, feature] = seen[deal, feature]
            else:
                view = out[agent, :size]
                encode(records[deal], codes, seat, memory, suits, history, scaled, view, no_mask)
            for action in range(NUM_ACTIONS):
                out[agent, size + action] = action_masks[deal, action] if is_live else 0
