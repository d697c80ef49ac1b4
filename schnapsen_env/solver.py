"""The exact value of a deal with all cards known: alpha-beta over the engine's own step.

:func:`solve` answers for a :class:`~schnapsen_env.position.Position` of any rule set, from the deal
to the last trick. :func:`solve_record` is the same for records and may be called from compiled
code, by a search agent that determinises thousands of deals for instance.

The search is a negamax whose sign changes when the player to move changes. Three things make it
fast. Values are whole game points from -3 to 3, and what a player can still win only shrinks as the
opponent takes tricks and points, so most windows close early (:func:`value_bounds`). Positions on
lead are remembered in a table that stores bounds under their complete state, so that a wrong hit is
impossible. Moves that usually decide (going out, exchanging, closing, sure winners) come first.

The path is kept in arrays and walked by a loop, since numba cannot cache a function that calls
itself.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE, NUM_ACTIONS
from schnapsen_env.borrowed import borrowed
from schnapsen_env.cards import NUM_RANKS, SUIT_SET
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.engine import record as r
from schnapsen_env.engine.match import game_points
from schnapsen_env.engine.play import legal, reply_wins, step
from schnapsen_env.engine.score import POINTS_OF, going_out_value, is_out, sixty_six_value
from schnapsen_env.position import Position, read_position
from schnapsen_env.rules import CODE_INDEX, Rules, resolve_rules

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

#: The most that a deal can be worth.
MOST_GAME_POINTS: Final = 3
#: Entries of the table, as a power of two, that :func:`solve` works with (6 MiB).
TABLE_BITS: Final = 18

_TRICK_BY: Final = CODE_INDEX["trick_by"]
_PLIES: Final = engine.MAX_ACTIONS_PER_DEAL + 1

# Columns of Workspace.frames: what the search remembers of each position on its path.
(
    _ACTIONS,  # actions not tried yet, a set
    _ALPHA,  # the window at entry
    _BETA,
    _FLOOR,  # the best value that the player to move is sure of
    _BEST,  # the best value seen
    _BEST_ACTION,
    _TRIED,  # the action that is being tried
    _LOW,  # bounds that hold whatever the window
    _HIGH,
    _PLACE,  # where the position belongs in the table, or -1
    _FIRST,  # its two words of state
    _SECOND,
    _FRAME_SIZE,
) = range(13)

# Columns of Workspace.table.
_WORD_1, _WORD_2, _ENTRY = range(3)
# An entry: low + 3, high + 3, best action.
_BOUND_BITS: Final = 3
_BOUND_MASK: Final = 7

# Workspace.counters.
_GENERATION, _NODES = range(2)


class Workspace(NamedTuple):
    """The memory of one solver; every thread needs its own."""

    #: ``int64[P, R]``, the positions on the path.
    path: Record
    #: ``int64[P, 12]``, the state of the search on the path.
    frames: npt.NDArray[np.int64]
    #: ``int64[P, 27]``, guesses how good the actions on the path are.
    guesses: npt.NDArray[np.int64]
    #: ``int64[S, 3]``, S a power of two: two words of state, bounds and best action.
    table: npt.NDArray[np.int64]
    #: ``int64[2]``: a number that marks the table entries of the present search; nodes visited.
    counters: npt.NDArray[np.int64]


def new_workspace(table_bits: int = TABLE_BITS) -> Workspace:
    """Memory for a solver with a table of ``2**table_bits`` entries of 24 bytes.

    Endgames of five cards need no more than 10 bits, whole deals profit up to 20.

    Raises:
        ValueError: ``table_bits`` is not in 4-26.
    """
    if not 4 <= table_bits <= 26:
        raise ValueError(
            f"table_bits must be 4 to 26 (entries are a power of two), not {table_bits}"
        )
    return Workspace(
        path=np.zeros((_PLIES, engine.RECORD_SIZE), dtype=np.int64),
        frames=np.zeros((_PLIES, _FRAME_SIZE), dtype=np.int64),
        guesses=np.zeros((_PLIES, NUM_ACTIONS), dtype=np.int64),
        table=np.zeros((1 << table_bits, 3), dtype=np.int64),
        counters=np.zeros(2, dtype=np.int64),
    )


# --------------------------------------------------------------------- what a position depends on


@compiled
def value_bounds(record: Record, codes: Codes) -> tuple[int, int]:
    """Bounds on the value for the player to move.

    Nobody can win more than for going out at this moment, since what the opponent has only grows.
    (An opponent may pay more for a failed close or a wrong claim, but is never forced to either.)
    """
    seat = record[r.TO_MOVE]
    return -going_out_value(record, codes, 1 - seat), going_out_value(record, codes, seat)


@compiled
def state_words(record: Record, codes: Codes, generation: int) -> tuple[int, int]:
    """Everything that the future of a deal depends on, in two words.

    Only positions on lead of one and the same deal are compared, so the order of the talon is given
    by the number of its cards, and of the tricks only whether there are any matters.
    """
    turned_up = record[r.TURNED_UP]
    rank = 0 if turned_up == r.NONE else turned_up - NUM_RANKS * record[r.TRUMP] + 1
    closer = record[r.CLOSED_BY]
    first = record[r.HAND] | record[r.HAND + 1] << 20 | rank << 40 | record[r.TO_MOVE] << 43
    first |= (record[r.DECLARED] + 1) << 44 | record[r.FACE_DOWN] << 47 | (closer + 1) << 51
    first |= record[r.MARRIAGES] << 53 | record[r.MARRIAGES + 1] << 57
    second = record[r.CARD_POINTS] | record[r.CARD_POINTS + 1] << 8
    second |= (1 if record[r.TRICKS] else 0) << 16 | (1 if record[r.TRICKS + 1] else 0) << 17
    if closer != r.NONE:
        second |= (1 if record[r.CLOSE_TRICKS] else 0) << 18
        second |= sixty_six_value(record, codes, closer) << 19
    return first, second | generation << 21


@compiled
def place_of(first: int, second: int, size: int) -> int:
    """Where a state belongs in a table of ``size`` entries, a power of two."""
    mixed = (first ^ (first >> 29) ^ (second << 3) ^ (second >> 13)) & 0x7FFFFFFF
    mixed = mixed * 0x2545F491 & 0x7FFFFFFF
    mixed ^= (first >> 20 & 0xFFFFF) * 0x9E37
    mixed ^= mixed >> 15
    mixed = mixed * 0x45D9F3B & 0x7FFFFFFFFFFF
    return mixed >> 16 & (size - 1)


# ------------------------------------------------------------------------------- order of moves


@compiled
def guess_lead(card: int, trump_suit: int, other_hand: int, talon_state: int) -> int:
    """How good a lead looks: sure winners by their points, otherwise low cards."""
    suit = card // NUM_RANKS
    in_suit = other_hand >> (NUM_RANKS * suit) & SUIT_SET
    trumps = other_hand >> (NUM_RANKS * trump_suit) & SUIT_SET
    is_trump = suit == trump_suit
    beaten = in_suit >> (card - NUM_RANKS * suit) != 0
    must_follow = talon_state != r.OPEN and in_suit != 0
    if not beaten and (is_trump or must_follow or trumps == 0):
        return 200 + POINTS_OF[card] + (50 if is_trump and talon_state != r.OPEN else 0)
    return -POINTS_OF[card] - (20 if is_trump else 0)


@compiled
def guess_reply(record: Record, codes: Codes, card: int) -> int:
    """How good a reply looks: tricks of many points, won without a trump if possible."""
    gain = POINTS_OF[record[r.LED]] + POINTS_OF[card]
    if not reply_wins(record[r.LED], card, record[r.TRUMP], codes[_TRICK_BY]):
        return -gain
    return 100 + gain - (30 if card // NUM_RANKS == record[r.TRUMP] else 0)


@compiled
def guess(record: Record, codes: Codes, action: int) -> int:
    """How good an action looks; the best looking is tried first."""
    if action == CLAIM:
        return 9_000 if is_out(record, record[r.TO_MOVE]) else -9_000
    if action == EXCHANGE:
        return 8_000
    if action == CLOSE:  # a small tree, and decisive if it wins
        return 7_000
    if action >= FIRST_DECLARE:
        return 6_000 if action - FIRST_DECLARE == record[r.TRUMP] else 5_000
    if record[r.LED] != r.NONE:
        return guess_reply(record, codes, action)
    other_hand = int(record[r.HAND + 1 - int(record[r.TO_MOVE])])
    return guess_lead(action, record[r.TRUMP], other_hand, record[r.TALON_STATE])


@compiled
def best_looking(actions: int, guesses: Any) -> int:
    """The action of a set that is not empty which looks best."""
    best = -1
    for action in range(NUM_ACTIONS):
        if actions >> action & 1 and (best < 0 or guesses[action] > guesses[best]):
            best = action
    return best


# -------------------------------------------------------------------------------------- search


@compiled_apart
def enter(space: Workspace, codes: Codes, ply: int, alpha: int, beta: int) -> bool:
    """Begin the position at ``ply`` with a window; True if its value is known at once.

    The value is then in the frame's ``_BEST``.
    """
    codes = borrowed(codes)
    record, frame = borrowed(space.path)[ply], borrowed(space.frames)[ply]
    space.counters[_NODES] += 1
    if record[r.END_REASON] != 0:
        frame[_BEST] = game_points(record, record[r.TO_MOVE])
        return True
    low, high = value_bounds(record, codes)
    remembered_action = -1
    frame[_PLACE] = -1
    if record[r.LED] == r.NONE:
        first, second = state_words(record, codes, space.counters[_GENERATION])
        place = place_of(first, second, len(space.table))
        frame[_PLACE], frame[_FIRST], frame[_SECOND] = place, first, second
        if space.table[place, _WORD_1] == first and space.table[place, _WORD_2] == second:
            entry = space.table[place, _ENTRY]
            low = max(low, (entry & _BOUND_MASK) - MOST_GAME_POINTS)
            high = min(high, (entry >> _BOUND_BITS & _BOUND_MASK) - MOST_GAME_POINTS)
            remembered_action = entry >> (2 * _BOUND_BITS)
    if low >= beta or low == high:
        frame[_BEST] = low
        return True
    if high <= alpha:
        frame[_BEST] = high
        return True
    frame[_LOW], frame[_HIGH] = low, high
    frame[_ALPHA], frame[_BETA] = max(alpha, low), min(beta, high)
    frame[_FLOOR] = frame[_ALPHA]
    frame[_BEST] = -MOST_GAME_POINTS - 1
    frame[_BEST_ACTION] = -1
    frame[_ACTIONS] = legal(record, codes)
    for action in range(NUM_ACTIONS):
        if frame[_ACTIONS] >> action & 1:
            space.guesses[ply, action] = guess(record, codes, action)
    if remembered_action >= 0:
        space.guesses[ply, remembered_action] = 10_000
    return False


@compiled_apart
def descend(space: Workspace, codes: Codes, ply: int) -> bool:
    """Try the best looking action at ``ply``; True if what follows has a value at once."""
    path, codes = borrowed(space.path), borrowed(codes)
    record, frame, child = path[ply], borrowed(space.frames)[ply], path[ply + 1]
    action = best_looking(frame[_ACTIONS], borrowed(space.guesses)[ply])
    frame[_ACTIONS] &= ~(1 << action)
    frame[_TRIED] = action
    child[:] = record
    step(child, codes, action)
    if child[r.TO_MOVE] == record[r.TO_MOVE]:
        return enter(space, codes, ply + 1, frame[_FLOOR], frame[_BETA])
    return enter(space, codes, ply + 1, -frame[_BETA], -frame[_FLOOR])


@compiled
def absorb(space: Workspace, ply: int) -> bool:
    """Take note of the value of the action tried; True if ``ply`` needs no further one."""
    frame = borrowed(space.frames)[ply]
    value = space.frames[ply + 1, _BEST]
    if space.path[ply + 1, r.TO_MOVE] != space.path[ply, r.TO_MOVE]:
        value = -value
    if value > frame[_BEST]:
        frame[_BEST], frame[_BEST_ACTION] = value, frame[_TRIED]
        frame[_FLOOR] = max(frame[_FLOOR], value)
    return value >= frame[_BETA] or frame[_ACTIONS] == 0


@compiled
def leave(space: Workspace, ply: int) -> None:
    """Store what was learnt about the position at ``ply``."""
    frame = borrowed(space.frames)[ply]
    if frame[_PLACE] < 0:
        return
    best, low, high = frame[_BEST], frame[_LOW], frame[_HIGH]
    if best < frame[_BETA]:  # not cut off, so nothing is better
        high = min(high, best)
    if best > frame[_ALPHA]:  # inside the window or above it
        low = max(low, best)
    row = borrowed(space.table)[frame[_PLACE]]
    row[_WORD_1], row[_WORD_2] = frame[_FIRST], frame[_SECOND]
    bounds = (low + MOST_GAME_POINTS) | (high + MOST_GAME_POINTS) << _BOUND_BITS
    row[_ENTRY] = bounds | frame[_BEST_ACTION] << (2 * _BOUND_BITS)


@compiled_apart
def search(space: Workspace, codes: Codes, root: int, alpha: int, beta: int) -> int:
    """The value of the position at ``space.path[root]`` for its player to move.

    It is exact inside the window; at or below ``alpha`` it is an upper bound, at or above ``beta``
    a lower one.
    """
    ply = root
    finished = enter(space, codes, root, alpha, beta)
    while not (finished and ply == root):
        if not finished:
            finished = descend(space, codes, ply)
            ply += 1
        else:
            ply -= 1
            finished = absorb(space, ply)
            if finished:
                leave(space, ply)
    return space.frames[root, _BEST]


@compiled_apart
def solve_record(record: Record, codes: Codes, space: Workspace) -> int:
    """The value of a deal for the player to move, in game points, with all cards known.

    Args:
        record: ``int64[R]``, left as it is.
        codes: ``Rules.codes()``.
        space: from :func:`new_workspace`; not shared between threads.
    """
    space.counters[_GENERATION] += 1
    space.path[0] = record
    return search(space, codes, 0, -MOST_GAME_POINTS, MOST_GAME_POINTS)


@compiled_apart
def solve_actions(
    record: Record, codes: Codes, space: Workspace, values: npt.NDArray[np.int64]
) -> None:
    """Write the value of each legal action, for the player to move, into ``values``, ``int64[27]``.

    The other numbers of ``values`` are left as they are.
    """
    space.counters[_GENERATION] += 1
    actions = legal(record, codes)
    for action in range(NUM_ACTIONS):
        if actions >> action & 1:
            child = space.path[0]
            child[:] = record
            step(child, codes, action)
            same_player = child[r.TO_MOVE] == record[r.TO_MOVE]
            value = search(space, codes, 0, -MOST_GAME_POINTS, MOST_GAME_POINTS)
            values[action] = value if same_player else -value


@compiled_apart
def solve_exhausted(
    records: Record,
    codes: Codes,
    space: Workspace,
    values: npt.NDArray[np.float32],
    solved: npt.NDArray[np.bool_],
) -> None:
    """Solve those of N running deals whose talon is exhausted, where both hands are known.

    Args:
        records: ``int64[N, R]``, left as they are.
        codes: ``Rules.codes()``.
        space: from :func:`new_workspace`; 10 table bits suffice.
        values: ``float32[N]``; game points for the player to move are written where solved.
        solved: ``bool[N]``, is filled: whether the talon is exhausted.
    """
    for row in range(len(records)):
        record = records[row]
        solved[row] = record[r.TALON_STATE] == r.EXHAUSTED and record[r.END_REASON] == 0
        if solved[row]:
            values[row] = solve_record(record, codes, space)


@compiled
def new_memory(space: Workspace) -> int:
    """A number for a deal that was not solved before in ``space``; for :func:`solve_within`."""
    space.counters[_GENERATION] += 1
    return space.counters[_GENERATION]


@compiled_apart
def solve_within(
    record: Record, codes: Codes, space: Workspace, memory: int, alpha: int, beta: int
) -> tuple[int, int]:
    """The value of a deal inside a window, and an action that is worth as much.

    For callers that ask several questions about one deal: what was found out in earlier calls of
    the same ``memory`` is used again, whatever other deals were solved in between.

    Args:
        record: ``int64[R]``, left as it is.
        codes: ``Rules.codes()``.
        space: from :func:`new_workspace`; not shared between threads.
        memory: from :func:`new_memory`; another number for each deal.
        alpha: values at or below it need not be told apart.
        beta: nor values at or above it; ``alpha < beta``.

    Returns:
        The value for the player to move, exact inside the window and a bound outside; and the best
        action found, or -1 if the value was known without a search.
    """
    newest = space.counters[_GENERATION]
    space.counters[_GENERATION] = memory
    space.path[0] = record
    space.frames[0, _BEST_ACTION] = -1
    value = search(space, codes, 0, alpha, beta)
    space.counters[_GENERATION] = newest
    return value, space.frames[0, _BEST_ACTION]


# ---------------------------------------------------------------------------- for Python callers


class _Memory(threading.local):
    """One workspace a thread, made on first use."""

    space: Workspace | None = None


_memory = _Memory()


@dataclass(frozen=True)
class Solution:
    """The value of a position for the player to act, and of each of its legal actions."""

    #: Game points, -3 to 3.
    value: int
    #: Legal action id -> game points.
    action_values: dict[int, int]


def solve(position: Position | Mapping[str, Any] | str, rules: str | Rules = "duel") -> Solution:
    """Solve a position exactly, hands and talon known to both players.

    Args:
        position: a running deal, as a :class:`Position`, its dict or its text.
        rules: a name of :data:`schnapsen_env.RULES` or a rule set.

    Raises:
        TypeError: ``position`` is none of the three, or ``rules`` neither a name nor a rule set.
        ValueError: the position is inconsistent, impossible under the rules, or already over.
    """
    rules = resolve_rules(rules)
    position = read_position(position)
    if position.result is not None:
        raise ValueError(f"nothing to solve, the deal is over: {position}")
    if _memory.space is None:
        _memory.space = new_workspace()
    record = engine.record_of(position, rules)
    values = np.zeros(NUM_ACTIONS, dtype=np.int64)
    solve_actions(record, rules.codes(), _memory.space, values)
    legal_actions = int(legal(record, rules.codes()))
    action_values = {
        action: int(values[action]) for action in range(NUM_ACTIONS) if legal_actions >> action & 1
    }
    return Solution(max(action_values.values()), action_values)
