"""Game points lost against exact play once the talon is exhausted.

From then on a player who has counted knows both hands, so every decision has an exact value under
perfect play of both sides (:mod:`schnapsen_env.solver`). The *regret* of a decision is the value of
the best legal action less the value of the action taken: 0 for perfect play, never negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.evaluation.arena import Contest, Deals, Ints, Table
from agents.evaluation.statistics import Mean, ratio_interval
from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.solver import MOST_GAME_POINTS, Workspace, new_workspace, solve_actions

Floats = npt.NDArray[np.float64]

#: Table of the solver; ample for the ten cards that are left.
_TABLE_BITS: Final = 12
#: The most that one decision can lose: from winning all to losing all. It is taken for a deal too,
#: where mistakes could add up, if only where both players make them in turn.
_MOST_LOST: Final = 2 * MOST_GAME_POINTS
#: Columns of the counts: decisions, those with a choice, those that lost something, points lost.
_DECISIONS, _CHOICES, _BLUNDERS, _LOST = range(4)


@dataclass(frozen=True)
class Regret:
    """What one agent gave away while the talon was exhausted."""

    #: Decisions made then, forced ones included, and those with more than one legal action.
    decisions: int
    choices: int
    #: Decisions that lost at least one game point.
    blunders: int
    #: Game points lost, for a decision and for a deal. None if no deal came so far.
    per_decision: Mean | None
    per_deal: Mean

    def to_dict(self) -> dict[str, Any]:
        """The figures as the JSON file holds them."""
        per_decision = self.per_decision
        return {
            "decisions": self.decisions,
            "choices": self.choices,
            "blunders": self.blunders,
            "per_decision": None if per_decision is None else per_decision.value,
            "per_decision_ci95": None if per_decision is None else per_decision.ci95,
            "per_deal": self.per_deal.value,
            "per_deal_ci95": self.per_deal.ci95,
        }


@compiled
def _judge(
    records: Ints,
    codes: Ints,
    rows: Ints,
    actions: Ints,
    pairs: Ints,
    space: Workspace,
    values: Ints,
    counts: Ints,
) -> None:
    """Add the decisions of the exhausted phase to ``counts``, ``int64[pairs, 4]``."""
    for i in range(len(rows)):
        record = records[rows[i]]
        if record[r.TALON_STATE] != engine.EXHAUSTED:
            continue
        row = counts[pairs[rows[i]]]
        row[_DECISIONS] += 1
        legal = engine.legal(record, codes)
        if legal & (legal - 1) == 0:
            continue
        row[_CHOICES] += 1
        solve_actions(record, codes, space, values)
        best = values[actions[i]]
        for action in range(NUM_ACTIONS):
            if legal >> action & 1:
                best = max(best, values[action])
        lost = best - values[actions[i]]
        row[_LOST] += lost
        if lost:
            row[_BLUNDERS] += 1


class RegretWatcher:
    """Counts the regret of both agents of a contest while it is played."""

    def __init__(self, contest: Contest) -> None:
        #: By side, pair and column.
        self._counts = np.zeros((2, contest.pairs, 4), dtype=np.int64)
        self._space = new_workspace(_TABLE_BITS)
        self._values = np.zeros(NUM_ACTIONS, dtype=np.int64)

    def decided(self, table: Table, rows: Ints, actions: Ints, side: int) -> None:
        """See :class:`agents.evaluation.arena.Watcher`."""
        _judge(
            table.records,
            table.codes,
            rows,
            actions,
            table.pairs,
            self._space,
            self._values,
            self._counts[side],
        )

    def result(self, deals: Deals) -> tuple[Regret, Regret]:
        """The regret of A and of B; ``deals`` are all deals of the contest."""
        played = np.bincount(deals.pair, minlength=self._counts.shape[1])
        return (_regret(self._counts[0], played), _regret(self._counts[1], played))


def _regret(counts: Ints, played: npt.NDArray[np.integer[Any]]) -> Regret:
    decisions, choices, blunders, lost = counts.T
    return Regret(
        decisions=int(decisions.sum()),
        choices=int(choices.sum()),
        blunders=int(blunders.sum()),
        per_decision=ratio_interval(lost, decisions, _most_per_decision(decisions, played))
        if decisions.any()
        else None,
        per_deal=ratio_interval(lost, played, _MOST_LOST),
    )


def _most_per_decision(decisions: Ints, played: npt.NDArray[np.integer[Any]]) -> float:
    """The most that a decision can lose on average, where a deal can lose no more than one can."""
    return _MOST_LOST * float(played[decisions > 0].sum() / decisions.sum())
