"""Perfect-information Monte Carlo: solve many deals that may be the true one, take the best mean.

Each imagined deal is solved exactly with all cards open, closing, exchange and claims included, and
the action with the highest mean of game points is played (Ginsberg, "GIB: Imperfect information in
a computationally challenging game", JAIR 14, 2001, for bridge). Where no more deals are possible
than the agent would imagine, it takes each of them once: in the exhausted phase that is one, and
the choice is exact.

Not every value is needed to find the best mean. What an action loses in a deal against the best
action there only adds up, so the actions are looked at deal by deal, always the one that has lost
least so far; the first to get through all deals is the best one. Actions that lose equally little
are taken in the order: the choice of the heuristic player, then by number.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask, Actions, Observation
from agents.search.base import (
    NO_SUCH_DEAL,
    NOTHING_LEGAL,
    OTHER_RULES,
    Ints,
    SearchAgent,
    check_inputs,
    check_number,
    start_streams,
)
from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.observation import decode
from schnapsen_env.rules import Rules
from schnapsen_env.sampling import count_hands, sample_deal, with_hand
from schnapsen_env.solver import (
    MOST_GAME_POINTS,
    Workspace,
    new_memory,
    new_workspace,
    solve_actions,
    solve_within,
)
from schnapsen_env.view import View

DEFAULT_WORLDS: Final = 20
MOST_WORLDS: Final = 100_000
#: The agent decides for seat 0; a view does not depend on the seat.
_SEAT: Final = 0

_OFFSET: Final = {field.name: field.offset for field in engine.RECORD_TABLE}
_TO_MOVE: Final = _OFFSET["TO_MOVE"]
_RANDOM: Final = _OFFSET["RANDOM"]


@compiled_apart
def imagine(seen: View, codes: Ints, chance: int, worlds: Ints) -> int:
    """Fill ``worlds``, ``int64[W, R]``, with deals that agree with a view; how many there are.

    They are ``W`` independent ones; or each that there is, if that is fewer. (Deals that differ in
    the order of a talon from which nobody will draw, or of one card, are the same.)
    """
    hands = count_hands(seen)
    ordered = seen.table.talon_state == engine.OPEN and seen.table.face_down > 1
    if not ordered and hands <= len(worlds):
        for index in range(hands):
            worlds[index, _RANDOM] = chance
            sample_deal(with_hand(seen, index), codes, _SEAT, worlds[index])
        return hands
    for index in range(len(worlds)):
        worlds[index, _RANDOM] = chance
        sample_deal(seen, codes, _SEAT, worlds[index])
        chance = worlds[index, _RANDOM]
    return len(worlds)


@compiled
def find_error(seen: View, codes: Ints, world: Ints) -> int:
    """0, or the number of the error that keeps an agent from deciding; ``world`` is scratch."""
    if seen.legal == 0:
        return NOTHING_LEGAL
    if count_hands(seen) == 0:
        return NO_SUCH_DEAL
    world[_RANDOM] = 1
    sample_deal(seen, codes, _SEAT, world)
    return 0 if engine.legal(world, codes) == seen.legal else OTHER_RULES


@compiled_apart
def value_of_action(
    world: Ints, codes: Ints, action: int, most: int, space: Workspace, memory: int, child: Ints
) -> int:
    """The game points of an action in a deal in which no action gets more than ``most``."""
    if most == -MOST_GAME_POINTS:
        return most
    child[:] = world
    engine.step(child, codes, action)
    if child[_TO_MOVE] == world[_TO_MOVE]:
        value, _ = solve_within(child, codes, space, memory, -MOST_GAME_POINTS, most)
        return min(value, most)
    value, _ = solve_within(child, codes, space, memory, -most, MOST_GAME_POINTS)
    return min(-value, most)


@compiled_apart
def least_loss(worlds: Ints, codes: Ints, actions: int, first: int, space: Workspace) -> int:
    """The action that gets most in all ``worlds`` together.

    Args:
        worlds: ``int64[W, R]``.
        codes: ``Rules.codes()``.
        actions: the legal actions, a set.
        first: the action to prefer among equals.
        space: memory of the solver.
    """
    number = len(worlds)
    child = np.empty(engine.RECORD_SIZE, dtype=np.int64)
    memories = np.empty(number, dtype=np.int64)
    most = np.empty(number, dtype=np.int64)
    best = np.empty(number, dtype=np.int64)
    for index in range(number):
        memories[index] = new_memory(space)
        most[index], best[index] = solve_within(
            worlds[index], codes, space, memories[index], -MOST_GAME_POINTS, MOST_GAME_POINTS
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
                worlds[index], codes, action, most[index], space, memories[index], child
            )
            lost[action] += most[index] - value


@compiled_apart
def choose_actions(
    observations: Observation,
    masks: ActionMask,
    chances: Ints,
    codes: Ints,
    worlds: Ints,
    space: Workspace,
    out: Actions,
) -> None:
    """Write the action of each row, or the number of an error, into ``out``, ``int64[n]``."""
    for row in range(len(out)):
        seen = decode(observations[row], masks[row])
        out[row] = find_error(seen, codes, worlds[0])
        if out[row] < 0:
            continue
        if engine.count(seen.legal) == 1:
            out[row] = engine.lowest(seen.legal)
            continue
        number = imagine(seen, codes, chances[row], worlds)
        first = heuristic_action(seen)
        out[row] = least_loss(worlds[:number], codes, seen.legal, first, space)


@compiled_apart
def mean_values(
    observation: Observation,
    mask: ActionMask,
    chance: int,
    codes: Ints,
    worlds: Ints,
    space: Workspace,
    out: npt.NDArray[np.float64],
) -> int:
    """Write the mean value of each legal action into ``out``; 0, or the number of an error."""
    seen = decode(observation, mask)
    error = find_error(seen, codes, worlds[0])
    if error < 0:
        return error
    values = np.zeros(NUM_ACTIONS, dtype=np.int64)
    number = imagine(seen, codes, chance, worlds)
    out[:] = 0.0
    for index in range(number):
        solve_actions(worlds[index], codes, space, values)
        for action in range(NUM_ACTIONS):
            out[action] += values[action]
    for action in range(NUM_ACTIONS):
        out[action] = out[action] / number if seen.legal >> action & 1 else np.nan
    return 0


class PIMCAgent(SearchAgent):
    """Plays what is best on average over deals that it may be in, each solved with open cards.

    Args:
        rules: the rule set to be played.
        seed: where the drawing of the deals starts.
        worlds: deals to imagine for each decision.
        threads: threads that share the rows of a batch.

    Raises:
        ValueError: ``worlds`` is not in 1-100,000 or ``threads`` not in 1-256.
    """

    def __init__(
        self,
        rules: str | Rules = "pagat_auto",
        seed: int = 0,
        *,
        worlds: int = DEFAULT_WORLDS,
        threads: int = 1,
    ) -> None:
        super().__init__(rules, seed, threads=threads)
        self.worlds = check_number("worlds", worlds, MOST_WORLDS)

    def evaluate(
        self, observations: Observation, action_masks: ActionMask
    ) -> npt.NDArray[np.float64]:
        """The mean game points of each action over the imagined deals, ``float64[N, 27]``.

        Illegal actions have NaN. This takes longer than :meth:`act_batch`, which leaves out what
        does not matter for the choice.

        Raises:
            ValueError: as :meth:`act_batch`.
        """
        inputs, masks = check_inputs(observations, action_masks)
        chances = start_streams(self._seed, inputs, masks)
        means = np.empty((len(inputs), NUM_ACTIONS))
        memory = self._take_memory()
        for row in range(len(inputs)):
            error = mean_values(
                inputs[row], masks[row], chances[row], self._codes, *memory, means[row]
            )
            if error < 0:
                raise ValueError(self._complaint(error, row))
        self._idle.append(memory)
        return means

    def _new_memory(self) -> tuple[Ints, Workspace]:
        return np.zeros((self.worlds, engine.RECORD_SIZE), dtype=np.int64), new_workspace()

    def _decide(
        self, memory: Any, observations: Observation, masks: ActionMask, chances: Ints, out: Actions
    ) -> None:
        choose_actions(observations, masks, chances, self._codes, *memory, out)
