"""Information-set Monte Carlo tree search with a single observer (SO-ISMCTS).

Cowling, Powley, Whitehouse, "Information set Monte Carlo tree search", IEEE Transactions on
Computational Intelligence and AI in Games 4 (2), 2012. Each iteration imagines another deal and
walks down one tree that all iterations share. A node is what has been done since the present
position; an action that the imagined deal does not allow is passed over, and the exploration term
counts how often an action was to be had instead of how often its parent was visited:

    mean + c * sqrt(ln(available) / visits)

with rewards from 0 to 1, which are game points from -3 to 3. A new node is added where an action
was never tried; the deal is then played on without the tree. Play goes to the most visited action.

A node does not tell what the player itself will draw, so what is learnt in it is an average over
draws. Once the talon is exhausted both players know all cards, and the exact value takes the place
of further play; the agent's own decisions there are exact.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, Final

import numpy as np

from agents.base import ActionMask, Actions, Observation
from agents.search.base import Ints, SearchAgent, check_fraction, check_number
from schnapsen_env import engine
from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.engine import record as r
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.imagined import OWN_SEAT, careless_action, find_error, imagine, least_loss
from schnapsen_env.observation import decode
from schnapsen_env.rules import Rules
from schnapsen_env.sampling import sample_deal
from schnapsen_env.solver import MOST_GAME_POINTS, Workspace, new_workspace, solve_record
from schnapsen_env.view import PERFECT, View, view

DEFAULT_ITERATIONS: Final = 1000
MOST_ITERATIONS: Final = 10_000_000
#: How the deal is played on below the tree.
ROLLOUTS: Final = ("random", "heuristic")
_BY_HEURISTIC: Final = 1
#: Worth 0.15 game points a deal against the heuristic player more than random ones.
DEFAULT_ROLLOUT: Final = "heuristic"
#: The constant c; the paper's value.
EXPLORATION: Final = 0.7
#: The solver only sees five-card endgames.
_TABLE_BITS: Final = 10


# Columns of the tree, a row for each node; row 0 is the root.
(
    _FIRST,  # first child, 0 if none
    _NEXT,  # next child of the same parent, 0 if none
    _ACTION,  # that led here
    _AVAILABLE,  # how often the action was to be had
    _VISITS,
    _TOTAL,  # game points of the player who took the action, over all visits
    _NODE_SIZE,
) = range(6 + 1)


@compiled
def is_decided(world: Ints) -> bool:
    """Whether the deal is over, or all cards are known to both players."""
    return engine.is_over(world) or world[r.TALON_STATE] == engine.EXHAUSTED


@compiled
def best_child(tree: Ints, node: int, actions: int, exploration: float) -> tuple[int, int]:
    """The child to visit next, and the actions never tried, a set; counts who was available."""
    best, best_score = 0, 0.0
    child = tree[node, _FIRST]
    while child != 0:
        action = tree[child, _ACTION]
        if actions >> action & 1:
            actions ^= 1 << action
            tree[child, _AVAILABLE] += 1
            visits = tree[child, _VISITS]
            mean = tree[child, _TOTAL] / (2 * MOST_GAME_POINTS * visits) + 0.5
            score = mean + exploration * sqrt(log(tree[child, _AVAILABLE]) / visits)
            if best == 0 or score > best_score:
                best, best_score = child, score
        child = tree[child, _NEXT]
    return best, actions


@compiled
def add_child(tree: Ints, node: int, new: int, action: int) -> None:
    """Make row ``new`` a child of ``node``."""
    tree[new] = 0
    tree[new, _NEXT] = tree[node, _FIRST]
    tree[node, _FIRST] = new
    tree[new, _ACTION] = action
    tree[new, _AVAILABLE] = 1


@compiled
def play_out(world: Ints, codes: Ints, rollout: int, space: Workspace) -> int:
    """Play on without the tree; the game points of the imagining player."""
    while not is_decided(world):
        if rollout == _BY_HEURISTIC:
            action = heuristic_action(view(world, codes, world[r.TO_MOVE], PERFECT))
        else:
            action = careless_action(world, codes)
        engine.step(world, codes, action)
    if engine.is_over(world):
        return engine.game_points(world, OWN_SEAT)
    value = solve_record(world, codes, space)
    return value if world[r.TO_MOVE] == OWN_SEAT else -value


@compiled_apart
def grow_tree(
    seen: View,
    codes: Ints,
    chance: int,
    iterations: int,
    rollout: int,
    exploration: float,
    tree: Ints,
    space: Workspace,
) -> None:
    """Run all iterations from the player's view.

    Args:
        seen: the view; the talon is not exhausted.
        codes: ``Rules.codes()``.
        chance: state of the random generator.
        iterations: deals to imagine.
        rollout: index of :data:`ROLLOUTS`.
        exploration: the constant c.
        tree: ``int64[iterations + 1, 6]``, overwritten.
        space: memory of a solver.
    """
    world = np.zeros(engine.RECORD_SIZE, dtype=np.int64)
    world[r.RANDOM] = chance
    steps = np.empty((2, engine.MAX_ACTIONS_PER_DEAL), dtype=np.int64)
    tree[0] = 0
    iterate(seen, codes, iterations, rollout, exploration, tree, world, steps, space)


@compiled_apart
def iterate(
    seen: View,
    codes: Ints,
    iterations: int,
    rollout: int,
    exploration: float,
    tree: Ints,
    world: Ints,
    steps: Ints,
    space: Workspace,
) -> None:
    """The loop of :func:`grow_tree`, apart from it, so that it can borrow its arrays."""
    codes, tree, world = borrowed(codes), borrowed(tree), borrowed(world)
    path, movers = borrowed(steps)[0], borrowed(steps)[1]
    size = 1
    for _ in range(iterations):
        sample_deal(seen, codes, OWN_SEAT, world)
        node, depth, new = 0, 0, False
        while not new and not is_decided(world):
            child, untried = best_child(tree, node, engine.legal(world, codes), exploration)
            if untried != 0:
                action = engine.member(untried, engine.draw_below(world, engine.count(untried)))
                add_child(tree, node, size, action)
                child, new = size, True
                size += 1
            path[depth], movers[depth] = child, world[r.TO_MOVE]
            depth += 1
            node = child
            engine.step(world, codes, tree[child, _ACTION])
        value = play_out(world, codes, rollout, space)
        for place in range(depth):
            tree[path[place], _VISITS] += 1
            tree[path[place], _TOTAL] += value if movers[place] == OWN_SEAT else -value


@compiled
def most_visited(tree: Ints) -> int:
    """The action of the root's most visited child; the better mean decides between equals."""
    best = tree[0, _FIRST]
    child = best
    while child != 0:
        more = tree[child, _VISITS] - tree[best, _VISITS]
        if more > 0 or (more == 0 and tree[child, _TOTAL] > tree[best, _TOTAL]):
            best = child
        child = tree[child, _NEXT]
    return tree[best, _ACTION]


@compiled_apart
def choose_actions(
    observations: Observation,
    masks: ActionMask,
    chances: Ints,
    codes: Ints,
    iterations: int,
    rollout: int,
    exploration: float,
    worlds: Ints,
    tree: Ints,
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
        elif seen.table.talon_state == engine.EXHAUSTED:
            imagine(seen, codes, chances[row], worlds)
            out[row] = least_loss(worlds, codes, seen.legal, heuristic_action(seen), space)
        else:
            grow_tree(seen, codes, chances[row], iterations, rollout, exploration, tree, space)
            out[row] = most_visited(tree)


class ISMCTSAgent(SearchAgent):
    """Grows one tree over many imagined deals and plays the action that it visited most.

    Args:
        rules: the rule set to be played.
        seed: where the agent's randomness starts.
        iterations: deals to imagine for each decision.
        rollout: ``"random"`` or ``"heuristic"``, how deals are played on below the tree.
        threads: threads that share the rows of a batch.
        exploration: the constant c of the search.

    Raises:
        ValueError: ``iterations`` is not in 1-10,000,000, ``threads`` not in 1-256, ``rollout``
            unknown, or ``exploration`` not a positive number.
    """

    name = "ismcts"

    def __init__(
        self,
        rules: str | Rules = "pagat_auto",
        seed: int = 0,
        *,
        iterations: int | str = DEFAULT_ITERATIONS,
        rollout: str = DEFAULT_ROLLOUT,
        threads: int | str = 1,
        exploration: float | str = EXPLORATION,
    ) -> None:
        super().__init__(rules, seed, threads=threads)
        self.iterations = check_number("iterations", iterations, MOST_ITERATIONS)
        if rollout not in ROLLOUTS:
            raise ValueError(f"the option rollout is one of {', '.join(ROLLOUTS)}, not {rollout!r}")
        self.rollout = rollout
        self.exploration = check_fraction("exploration", exploration)

    def _new_memory(self) -> tuple[Ints, Ints, Workspace]:
        return (
            np.zeros((1, engine.RECORD_SIZE), dtype=np.int64),
            np.zeros((self.iterations + 1, _NODE_SIZE), dtype=np.int64),
            new_workspace(_TABLE_BITS),
        )

    def _decide(
        self, memory: Any, observations: Observation, masks: ActionMask, chances: Ints, out: Actions
    ) -> None:
        worlds, tree, space = memory
        choose_actions(
            observations,
            masks,
            chances,
            self._codes,
            self.iterations,
            ROLLOUTS.index(self.rollout),
            self.exploration,
            worlds,
            tree,
            space,
            out,
        )
