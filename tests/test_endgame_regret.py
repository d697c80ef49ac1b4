"""Game points lost against exact play, once the talon is exhausted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaluate as command
from agents.evaluation import Table, evaluate, prepare
from agents.evaluation.arena import Deals, play
from agents.evaluation.regret import RegretWatcher
from schnapsen_env import RULES, engine
from schnapsen_env.actions import parse_action
from schnapsen_env.position import Position
from schnapsen_env.solver import solve

Ints = npt.NDArray[np.int64]
ROOT = Path(__file__).resolve().parent.parent
#: Published endgames in which the talon is exhausted.
ENDGAMES: list[dict[str, Any]] = [
    endgame
    for endgame in json.loads((ROOT / "tests/golden/endgames.json").read_text(encoding="utf-8"))
    if endgame["position"]["closed_by"] is None and not endgame["position"]["talon"]
]


class Slow:
    """Counts the regret by positions and the public solver, one decision at a time."""

    def __init__(self, rules: str) -> None:
        self.rules = rules
        self.counts = np.zeros((2, 4), dtype=np.int64)

    def decided(self, table: Table, rows: Ints, actions: Ints, side: int) -> None:
        for row, action in zip(rows, actions, strict=True):
            position = engine.position_of(table.records[row])
            if position.talon or position.turned_up or position.closed_by is not None:
                continue
            values = solve(position, self.rules).action_values
            lost = max(values.values()) - values[int(action)]
            self.counts[side] += (1, len(values) > 1, lost > 0, lost)


@pytest.mark.parametrize("rules", ["pagat_auto", "duel"])
def test_the_counts_agree_with_the_public_solver(rules: str) -> None:
    contest = prepare("heuristic", "random", rules=rules, deals=25, seed=4)
    slow, fast = Slow(rules), RegretWatcher(contest)
    plays = play(contest, watchers=[slow, fast])
    regrets = fast.result(plays.deals)
    for regret, expected in zip(regrets, slow.counts, strict=True):
        decisions, choices, blunders, lost = expected.tolist()
        assert (regret.decisions, regret.choices, regret.blunders) == (decisions, choices, blunders)
        assert regret.per_deal.value == pytest.approx(lost / 50)
        assert regret.per_decision is not None
        assert regret.per_decision.value == pytest.approx(lost / decisions)
    assert slow.counts[1, 3] > 0  # chance does lose points


def endgame_watcher(endgame: dict[str, Any], action: int) -> tuple[RegretWatcher, Deals]:
    """A watcher that has seen one decision, in one of the published endgames."""
    rules = RULES[endgame["rules"]]
    contest = prepare("random", "random", rules=rules, deals=2)
    watcher = RegretWatcher(contest)
    record = engine.record_of(Position.from_dict(endgame["position"]), rules)
    seats, pairs = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    table = Table(record[None], rules.codes(), seats, pairs)
    watcher.decided(table, pairs, np.array([action]), side=1)
    return watcher, play(contest).deals


@pytest.mark.parametrize("endgame", ENDGAMES, ids=lambda endgame: endgame["id"])
def test_published_values(endgame: dict[str, Any]) -> None:
    published = endgame["game_points_for_the_player_to_act"]
    values = {parse_action(text): value for text, value in published.items()}
    for action, value in values.items():
        watcher, deals = endgame_watcher(endgame, action)
        none, regret = watcher.result(deals)
        assert none.decisions == 0
        assert none.per_decision is None
        assert regret.per_deal.value == pytest.approx((max(values.values()) - value) / 4)
        assert regret.blunders == (value < max(values.values()))


def test_open_and_closed_talons_are_left_out() -> None:
    contest = prepare("random", "random", deals=30, seed=1)
    watcher = RegretWatcher(contest)

    class NotExhausted:
        def decided(self, table: Table, rows: Ints, actions: Ints, side: int) -> None:
            offset = next(f.offset for f in engine.RECORD_TABLE if f.name == "TALON_STATE")
            others = table.records[rows, offset] != 2
            watcher.decided(table, rows[others], actions[others], side)

    deals = play(contest, watchers=[NotExhausted()]).deals
    assert [regret.decisions for regret in watcher.result(deals)] == [0, 0]


def test_a_decision_and_a_deal_allow_for_the_same_mistake_that_was_not_seen() -> None:
    regret = evaluate("heuristic:endgame=exact", "random", deals=300, endgame_regret=True).regret
    assert regret is not None
    none, some = regret
    assert none.blunders == 0 < some.blunders
    assert none.per_decision is not None
    # So many game points, lost in one play of 600.
    unseen = none.per_deal.ci95 * 600
    assert none.per_decision.ci95 * none.decisions == pytest.approx(unseen)
    assert 6 < unseen < 60


def test_it_changes_nothing_else() -> None:
    plain = evaluate("heuristic", "random", deals=40, seed=3)
    watched = evaluate("heuristic", "random", deals=40, seed=3, endgame_regret=True)
    assert watched.game_points == plain.game_points
    assert watched.histogram == plain.histogram
    assert plain.regret is None
    assert watched.regret is not None


def test_table_and_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    line = f"heuristic random --deals 30 --seed 2 --endgame-regret --json {path}"
    assert command.main(line.split()) == 0
    regret = json.loads(path.read_text(encoding="utf-8"))["endgame_regret"]
    assert set(regret["B"]) == {
        *("decisions", "choices", "blunders", "per_decision", "per_decision_ci95"),
        *("per_deal", "per_deal_ci95"),
    }
    assert regret["B"]["blunders"] <= regret["B"]["choices"] <= regret["B"]["decisions"]
    assert 0 <= regret["A"]["per_deal"] <= regret["B"]["per_deal"]
    shown = capsys.readouterr().out
    assert "talon exhausted" in shown
    assert f"{regret['B']['per_deal']:.4f}" in shown
