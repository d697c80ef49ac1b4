"""Perfect-information Monte Carlo: solve many deals that may be the true one, take the best mean.

Each imagined deal is solved exactly with all cards open, closing, exchange and claims included, and
the action with the highest mean of game points is played (Ginsberg, "GIB: Imperfect information in
a computationally challenging game", JAIR 14, 2001, for bridge). Where no more deals are possible
than the agent would imagine, it takes each of them once: in the exhausted phase that is one, and
the choice is exact. Among equal actions it takes the heuristic player's choice, then the first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask, Actions, Observation
from agents.inputs import checked_inputs
from agents.search.base import (
    Ints,
    SearchAgent,
    check_number,
    complaint,
    start_streams,
)
from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled_apart
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.imagined import add_values, find_error, imagine, least_loss
from schnapsen_env.observation import decode
from schnapsen_env.rules import Rules
from schnapsen_env.solver import Workspace, new_workspace

DEFAULT_WORLDS: Final = 20
MOST_WORLDS: Final = 100_000


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
def add_up(
    observation: Observation,
    mask: ActionMask,
    chance: int,
    codes: Ints,
    worlds: Ints,
    space: Workspace,
    totals: Ints,
) -> int:
    """Add the values in all imagined deals to ``totals``; their number, or that of an error."""
    seen = decode(observation, mask)
    error = find_error(seen, codes, worlds[0])
    if error < 0:
        return error
    number = imagine(seen, codes, chance, worlds)
    add_values(worlds[:number], codes, space, totals)
    return number


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

    name = "pimc"

    def __init__(
        self,
        rules: str | Rules = "pagat_auto",
        seed: int = 0,
        *,
        worlds: int | str = DEFAULT_WORLDS,
        threads: int | str = 1,
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
            TypeError: as :meth:`act_batch`.
            ValueError: likewise.
        """
        inputs, masks = checked_inputs(self.name, observations, action_masks)
        chances = start_streams(self._seed, inputs, masks)
        means = np.full((len(inputs), NUM_ACTIONS), np.nan)
        memory = self._take_memory()
        worlds, space = memory
        for row, mask in enumerate(masks):
            totals = np.zeros(NUM_ACTIONS, dtype=np.int64)
            number = add_up(inputs[row], mask, chances[row], self._codes, worlds, space, totals)
            if number < 0:
                raise ValueError(complaint(number, row, self.rules))
            means[row, mask != 0] = totals[mask != 0] / number
        self._idle.append(memory)
        return means

    def _new_memory(self) -> tuple[Ints, Workspace]:
        return np.zeros((self.worlds, engine.RECORD_SIZE), dtype=np.int64), new_workspace()

    def _decide(
        self, memory: Any, observations: Observation, masks: ActionMask, chances: Ints, out: Actions
    ) -> None:
        worlds, space = memory
        choose_actions(observations, masks, chances, self._codes, worlds, space, out)
