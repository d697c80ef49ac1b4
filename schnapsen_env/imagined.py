"""Deals that a player imagines, and what actions are worth in them: the parts of search agents.

Everything starts from a :class:`~schnapsen_env.view.View`, that is from what one player knows.
The imagined deals agree with it (:mod:`schnapsen_env.sampling`), and the solver or random play says
what becomes of an action there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.actions import CLAIM, CLOSE, NUM_ACTIONS
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import count, member
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.engine.play import legal, step
from schnapsen_env.engine.score import is_out
from schnapsen_env.sampling import accounts_for_cards, count_hands, sample_deal, with_hand
from schnapsen_env.solver import (
    MOST_GAME_POINTS,
    Workspace,
    new_memory,
    solve_actions,
    solve_within,
)
from schnapsen_env.view import View

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

#: The seat of the imagining player in an imagined deal; what a view says does not depend on it.
OWN_SEAT: Final = 0
#: Why nothing can be imagined: see :func:`find_error`.
NOTHING_LEGAL, NO_SUCH_DEAL, OTHER_RULES = -1, -2, -3


@compiled_apart
def imagine(seen: View, codes: Codes, chance: int, worlds: Record) -> int:
    """Fill ``worlds``, ``int64[W, R]``, with deals that agree with a view; how many there are.

    They are ``W`` independent ones; or each that there is, if that is fewer. (Deals that differ in
    the order of a talon from which nobody will draw, or of one card, are the same.)
    """
    hands = count_hands(seen)
    ordered = seen.table.talon_state == r.OPEN and seen.table.face_down > 1
    if not ordered and hands <= len(worlds):
        for index in range(hands):
            worlds[index, r.RANDOM] = chance
            sample_deal(with_hand(seen, index), codes, OWN_SEAT, worlds[index])
        return hands
    for index in range(len(worlds)):
        worlds[index, r.RANDOM] = chance
        sample_deal(seen, codes, OWN_SEAT, worlds[index])
        chance = worlds[index, r.RANDOM]
    return len(worlds)


@compiled
def find_error(seen: View, codes: Codes, world: Record) -> int:
    """0, or the reason for which no deal can be imagined.

    ``NOTHING_LEGAL`` - the player is not to move; ``NO_SUCH_DEAL`` - the view is not that of a
    player of perfect memory, or its cards and card points do not add up; ``OTHER_RULES`` - the
    legal actions are others under these rules.

    Args:
        seen: the view.
        codes: ``Rules.codes()``.
        world: ``int64[R]``, overwritten.
    """
    if seen.legal == 0:
        return NOTHING_LEGAL
    if count_hands(seen) == 0 or not accounts_for_cards(seen):
        return NO_SUCH_DEAL
    world[r.RANDOM] = 1
    sample_deal(seen, codes, OWN_SEAT, world)
    return 0 if legal(world, codes) == seen.legal else OTHER_RULES


@compiled_apart
def solve_by_guessing(
    world: Record, codes: Codes, space: Workspace, memory: int, guess: int
) -> tuple[int, int]:
    """The value of a deal and an action of that value, -1 if it is known without a search.

    Asks only whether the value is at least so much, beginning with a guess (MTD(f): Plaat,
    Schaeffer, Pijls, de Bruin, "Best-first fixed-depth minimax algorithms", AIJ 87, 1996). Deals
    that agree with one view are alike, so the value of one is a good guess for the next: this takes
    a quarter less time than one search with an open window.
    """
    low, high = -MOST_GAME_POINTS, MOST_GAME_POINTS
    best = -1
    while low < high:
        wanted = max(guess, low + 1)
        value, action = solve_within(world, codes, space, memory, wanted - 1, wanted)
        guess = value
        if value < wanted:
            high = value
        else:
            low, best = value, action
    return low, best


@compiled_apart
def value_of_action(
    world: Record,
    codes: Codes,
    action: int,
    most: int,
    space: Workspace,
    memory: int,
    child: Record,
) -> int:
    """The game points of an action in a deal in which no action gets more than ``most``."""
    if most == -MOST_GAME_POINTS:
        return most
    child[:] = world
    step(child, codes, action)
    if child[r.TO_MOVE] == world[r.TO_MOVE]:
        value, _ = solve_within(child, codes, space, memory, -MOST_GAME_POINTS, most)
        return min(value, most)
    value, _ = solve_within(child, codes, space, memory, -most, MOST_GAME_POINTS)
    return min(-value, most)


@compiled_apart
def least_loss(worlds: Record, codes: Codes, actions: int, first: int, space: Workspace) -> int:
    """The action that gets most in all ``worlds`` together, with all cards open.

    Not every value is needed to find it. What an action loses in a deal against the best action
    there only adds up, so the actions are looked at deal by deal, always the one that has lost
    least so far; the first to get through all deals is the best one.

    Args:
        worlds: ``int64[W, R]``.
        codes: ``Rules.codes()``.
        actions: the legal actions, a set.
        first: the action to prefer among equals; otherwise it is the one of the lowest number.
        space: memory of a solver.
    """
    number = len(worlds)
    child = np.empty(r.RECORD_SIZE, dtype=np.int64)
    memories = np.empty(number, dtype=np.int64)
    most = np.empty(number, dtype=np.int64)
    best = np.empty(number, dtype=np.int64)
    for index in range(number):
        memories[index] = new_memory(space)
        guess = most[index - 1] if index > 0 else 1
        most[index], best[index] = solve_by_guessing(
            worlds[index], codes, space, memories[index], guess
        )
    lost = np.zeros(NUM_ACTIONS, dtype=np.int64)
    looked_at = np.zeros(NUM_ACTIONS, dtype=np.int64)
    while True:
        action = first
        for other in range(NUM_ACTIONS):
            if actions >> other & 1 and lost[other] < lost[action]:
                action = other
        index = looked_at[action]
        if index == number:
            return action
        looked_at[action] += 1
        if action != best[index]:
            value = value_of_action(
                worlds[index], codes, action, int(most[index]), space, int(memories[index]), child
            )
            lost[action] += most[index] - value


@compiled_apart
def add_values(worlds: Record, codes: Codes, space: Workspace, totals: Record) -> None:
    """Add the open-card value of every action in every deal of ``worlds`` to ``totals[27]``."""
    values = np.zeros(NUM_ACTIONS, dtype=np.int64)
    for index in range(len(worlds)):
        solve_actions(worlds[index], codes, space, values)
        totals += values


@compiled_apart
def optimal_actions(world: Record, codes: Codes, space: Workspace) -> int:
    """The actions of the highest value in a deal with all cards open, a set."""
    values = np.zeros(NUM_ACTIONS, dtype=np.int64)
    solve_actions(world, codes, space, values)
    actions = legal(world, codes)
    best, optimal = -MOST_GAME_POINTS - 1, 0
    for action in range(NUM_ACTIONS):
        if actions >> action & 1:
            if values[action] > best:
                best, optimal = values[action], 0
            if values[action] == best:
                optimal |= 1 << action
    return optimal


@compiled
def careless_action(record: Record, codes: Codes) -> int:
    """A random action of a player who never closes, and claims when and only when it has 66.

    Rollouts that close and claim at random say little: most of them would end by that.
    """
    actions = legal(record, codes)
    if actions >> CLAIM & 1 and is_out(record, record[r.TO_MOVE]):
        return CLAIM
    actions &= ~(1 << CLAIM | 1 << CLOSE)
    return member(actions, draw_below(record, count(actions)))
