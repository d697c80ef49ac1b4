"""The engine against the referee: random deals, action by action, under every kind of rule set."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest

from schnapsen_env import engine
from schnapsen_env.actions import CLAIM
from schnapsen_env.rules import RULES, Rules
from tests import referee
from tests.side_by_side import (
    legal_difference,
    play_deal,
    quiet,
    random_rules,
    record_difference,
)

#: Deals per named rule set; ``tests/compare_million.py`` plays as many as one likes.
DEALS: Final = 5000

REASONS: Final = {
    "duel": {"sixty_six", "last_trick", "failed_close"},
    "last_trick_ten": {"sixty_six", "failed_close", "wrong_claim", "drawn"},
    "austrian": {"sixty_six", "last_trick", "failed_close", "wrong_claim", "revoke"},
    "french": {"sixty_six", "last_trick", "failed_close"},
    "pagat": {"sixty_six", "last_trick", "failed_close", "wrong_claim"},
    "pagat_auto": {"sixty_six", "last_trick", "failed_close"},
}


@pytest.mark.parametrize("name", RULES)
def test_random_deals_agree_action_by_action(name: str) -> None:
    rng = random.Random(f"deals {name}")  # noqa: S311  # no secret depends on it
    reasons = Counter[str]()
    for number in range(DEALS):
        difference = play_deal(RULES[name], rng, reasons=reasons)
        assert difference is None, f"deal {number}: {difference}"
    assert set(reasons) == REASONS[name], "the deals are to end in every way the rule set has"


def test_random_deals_agree_under_random_rule_sets() -> None:
    rng = random.Random("rule sets")  # noqa: S311  # no secret depends on it
    reasons = Counter[str]()
    for _ in range(600):
        rules = random_rules(rng)
        for _ in range(6):
            difference = play_deal(rules, rng, reasons=reasons)
            assert difference is None, difference
    assert set(reasons) == set[str]().union(*REASONS.values())


#: Another value for each field of ``duel`` that the play of a deal depends on. (Left out: how a
#: revoke is allowed is the caller's business, and a match reads the target.)
CHANGES: Final[dict[str, Any]] = {
    "must_beat": True,
    "trick_by": "value",
    "claims": "turn",
    "exchange_min": 1,
    "exchange_when": "turn",
    "close_min": 3,
    "last_trick_bonus": 10,
    "exhausted": "claim_or_draw",
    "schneider_by": "card_points",
    "close_valued_at": "closing",
    "close_failure": "by_points",
}


@pytest.mark.parametrize("field", CHANGES)
def test_the_comparison_notices_a_change_of_any_field(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine keeps the rule set, the referee plays another one: some deal has to differ."""
    rules = RULES["duel"]
    changed = replace(rules, **{field: CHANGES[field]})
    original = referee.Deal.__init__

    def play_by_other_rules(
        self: referee.Deal, _rules: Rules, deck: list[int], forehand: int
    ) -> None:
        original(self, changed, deck, forehand)

    monkeypatch.setattr(referee.Deal, "__init__", play_by_other_rules)
    rng = random.Random(f"change of {field}")  # noqa: S311  # no secret depends on it
    assert any(play_deal(rules, rng) is not None for _ in range(2000))


@pytest.mark.parametrize("name", RULES)
def test_matches_agree_deal_by_deal(name: str) -> None:
    """Whole matches: who deals, the score, who wins, and what is reported of the loser."""
    rng = random.Random(f"matches {name}")  # noqa: S311  # no secret depends on it
    reported = set[str]()
    for number in range(120):
        rules = replace(RULES[name], target=rng.choice((3, 5, 7, 11)))
        record = engine.new_record(number)
        match: referee.Match | None = None
        while match is None or match.winner is None:
            engine.deal(record)
            position = engine.position_of(record)
            if match is None:
                match = referee.Match(rules, position.forehand)
            assert position.forehand == match.forehand
            assert list(position.match_score) == match.scores
            assert position.turned_up is not None
            first, second = position.hands[match.forehand], position.hands[1 - match.forehand]
            deal = match.deal([*first, *second, position.turned_up, *position.talon])
            assert play_out(record, deal, match.scores, rng) is None
            assert deal.result is not None
            match.add(deal.result)
            expected_winner = -1 if match.winner is None else match.winner
            assert engine.match_winner(record, rules.codes()) == expected_winner
        expected: dict[str, Any] = {
            "winner": match.winner,
            "score": match.scores,
            "bummerl": match.bummerl,
            "schneider": match.schneider,
            "rueckschneider": match.rueckschneider,
        }
        assert engine.match_result(record, rules) == expected
        reported |= {mark for mark in ("schneider", "rueckschneider") if expected[mark]}
    assert reported == {"schneider", "rueckschneider"}


def play_out(record: Any, deal: referee.Deal, scores: list[int], rng: random.Random) -> str | None:
    """Plays a deal of a match to its end on both sides; the first difference as text, or None."""
    codes = deal.rules.codes()
    while not deal.over:
        legal = deal.legal_actions()
        difference = legal_difference(record, codes, deal)
        if difference is not None:
            return difference
        action = quiet(rng, deal, legal)
        if legal[-1] == CLAIM and deal.points(deal.to_move) >= 66:
            action = CLAIM
        deal.apply(action)
        engine.step(record, codes, action)
        difference = record_difference(record, deal, scores)
        if difference is not None:
            return difference
    return None
