"""The university-course baseline: try each action in imagined deals and play on at random.

After the player of that name in the Schnapsen platform of the course "Intelligent Systems" of the
Vrije Universiteit Amsterdam: for each legal action, ``samples`` times, imagine the hidden cards,
take the action, play ``depth`` tricks at random, the present one included, and look at the points;
the action with the best mean is played. That platform has neither closing nor claims. What is made
of it here, under full rules:

- A deal that is cut off after ``depth`` tricks counts ``(own - other) / (own + other)`` points, the
  share of the points that the original takes, on a scale from -1 to 1. A deal that ends before
  counts its game points, which the rules are about.
- It never closes, in imagination or in truth: random play shows no difference between an open and a
  closed talon. Imagined players claim when they have 66 and not before, and so does it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from agents.base import ActionMask, Actions, Observation
from agents.search.base import Ints, SearchAgent, check_number
from schnapsen_env import engine
from schnapsen_env.actions import CLAIM, CLOSE, NUM_ACTIONS
from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.engine import record as r
from schnapsen_env.imagined import OWN_SEAT, careless_action, find_error
from schnapsen_env.observation import decode
from schnapsen_env.rules import Rules
from schnapsen_env.sampling import sample_deal

DEFAULT_SAMPLES: Final = 16
DEFAULT_DEPTH: Final = 4
MOST_SAMPLES: Final = 100_000
#: Tricks of a deal.
MOST_DEPTH: Final = 10


@compiled
def play_on(world: Ints, codes: Ints, depth: int) -> None:
    """Play at random until ``depth`` more tricks are complete, or the deal is over."""
    world, codes = borrowed(world), borrowed(codes)
    last = world[r.TRICKS] + world[r.TRICKS + 1] + depth
    while not engine.is_over(world) and world[r.TRICKS] + world[r.TRICKS + 1] < last:
        engine.step(world, codes, careless_action(world, codes))


@compiled
def assess(world: Ints) -> float:
    """How well the imagining player stands: game points, or the margin while the deal runs."""
    if engine.is_over(world):
        return float(engine.game_points(world, OWN_SEAT))
    own, other = engine.points(world, OWN_SEAT), engine.points(world, 1 - OWN_SEAT)
    return (own - other) / (own + other) if own + other > 0 else 0.0


@compiled_apart
def choose_actions(
    observations: Observation,
    masks: ActionMask,
    chances: Ints,
    codes: Ints,
    samples: int,
    depth: int,
    out: Actions,
) -> None:
    """Write the action of each row, or the number of an error, into ``out``, ``int64[n]``."""
    world = np.zeros(engine.RECORD_SIZE, dtype=np.int64)
    for row in range(len(out)):
        seen = decode(observations[row], masks[row])
        out[row] = find_error(seen, codes, world)
        if out[row] < 0:
            continue
        if seen.legal >> CLAIM & 1 and seen.tally.own_is_out:
            out[row] = CLAIM
            continue
        world[r.RANDOM] = chances[row]
        actions = seen.legal & ~(1 << CLAIM | 1 << CLOSE)
        most = 0.0
        for action in range(NUM_ACTIONS):
            if not actions >> action & 1:
                continue
            total = 0.0
            for _ in range(samples):
                sample_deal(seen, codes, OWN_SEAT, world)
                before = world[r.TRICKS] + world[r.TRICKS + 1]
                engine.step(world, codes, action)
                complete = world[r.TRICKS] + world[r.TRICKS + 1] - before
                play_on(world, codes, depth - complete)
                total += assess(world)
            if out[row] == 0 or total > most:
                out[row], most = action + 1, total
        out[row] -= 1


class RdeepAgent(SearchAgent):
    """Plays what does best when imagined deals are played on at random for some tricks.

    Args:
        rules: the rule set to be played.
        seed: where the agent's randomness starts.
        samples: imagined deals for each action.
        depth: tricks that are played in them; 10 is to the end of any deal.
        threads: threads that share the rows of a batch.

    Raises:
        ValueError: ``samples`` is not in 1-100,000, ``depth`` not in 1-10 or ``threads`` not in
            1-256.
    """

    name = "rdeep"
    rows_at_once = 16

    def __init__(
        self,
        rules: str | Rules = "pagat_auto",
        seed: int = 0,
        *,
        samples: int | str = DEFAULT_SAMPLES,
        depth: int | str = DEFAULT_DEPTH,
        threads: int | str = 1,
    ) -> None:
        super().__init__(rules, seed, threads=threads)
        self.samples = check_number("samples", samples, MOST_SAMPLES)
        self.depth = check_number("depth", depth, MOST_DEPTH)

    def _new_memory(self) -> None:
        return None

    def _decide(
        self, memory: Any, observations: Observation, masks: ActionMask, chances: Ints, out: Actions
    ) -> None:
        del memory
        choose_actions(observations, masks, chances, self._codes, self.samples, self.depth, out)
