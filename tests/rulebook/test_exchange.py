"""The exchange of the trump jack."""

from __future__ import annotations

from typing import Literal

import pytest

from schnapsen_env.rules import Rules
from tests.rulebook.helpers import Table, cards, each_rule_set, every_rule_set, rules_with

Height = Literal[9, 7, 5, 3, 1]


def jack_in_hand(rules: str | Rules, face_down: Height, *, lead: str | None = None) -> Table:
    """The talon is open and ``face_down`` cards high, the trump ace under it.

    The player to move holds the trump jack: seat 0, or seat 1 once seat 0 has led ``lead``.
    """
    won = "JC QC JD QD JS QS KC KD".split()[: 9 - face_down]
    hands = ("JH AS TS QH KH", "TC TD AC AD TH")
    if lead is not None:
        hands = ("AS TS QH KH", "JH TC TD AC TH")
    return Table.at(
        rules, turned_up="AH", hands=hands, won=(" ".join(won), ""), lead=lead, leader=0
    )


@each_rule_set(duel=3, last_trick_ten=1, austrian=3, french=1, pagat=1, pagat_auto=1)
@pytest.mark.parametrize("face_down", [9, 7, 5, 3, 1])
def test_exchange_min(rules: str, expected: int, face_down: Height) -> None:
    """At least two face-down cards means three, for the talon has an odd height; elsewhere one."""
    table = jack_in_hand(rules, face_down)
    assert ("exchange" in table.legal) is (face_down >= expected)


@each_rule_set(
    duel=False, last_trick_ten=False, austrian=False, french=True, pagat=False, pagat_auto=False
)
def test_exchange_when_the_opponent_has_led(rules: str, expected: bool) -> None:
    table = jack_in_hand(rules, 5, lead="AD")
    assert table.to_move == 1
    assert ("exchange" in table.legal) is expected


def test_exchange_before_replying_and_reply_with_the_card_taken() -> None:
    """``french``: the exchange is no reply; the card taken may be the reply."""
    table = jack_in_hand("french", 5, lead="AD").play("exchange")
    assert table.to_move == 1
    assert table.turned_up == "JH"
    assert table.known(1) == ["AH"]
    assert "exchange" not in table.legal
    table.play("AH")
    assert table.points(1) == 22
    assert table.known(1) == []


@pytest.mark.parametrize("face_down", [3, 1])
def test_exchange_before_replying_needs_the_same_height(face_down: Height) -> None:
    rules = rules_with("french", exchange_min=2)
    table = jack_in_hand(rules, face_down, lead="AD")
    assert ("exchange" in table.legal) is (face_down == 3)


@every_rule_set
def test_the_jack_takes_the_place_of_the_card(rules: str) -> None:
    table = jack_in_hand(rules, 5).play("exchange")
    assert table.turned_up == "JH"
    assert table.hand(0) == cards("AH AS TS QH KH")
    assert table.to_move == 0
    assert "exchange" not in table.legal


@every_rule_set
def test_the_opponent_knows_the_card_taken_until_it_is_played(rules: str) -> None:
    """Deal 9."""
    table = jack_in_hand(rules, 7).play("exchange")
    assert table.known(0) == ["AH"]
    table.play("AS", "TC")
    assert table.known(0) == ["AH"]
    table.play("AH", "TD")
    assert table.known(0) == []


@every_rule_set
def test_no_exchange_without_the_jack(rules: str) -> None:
    table = Table.at(
        rules, turned_up="AH", hands=("JC AS TS QH KH", "JH TC TD AC AD"), won=("", "")
    )
    assert "exchange" not in table.legal


@every_rule_set
def test_a_turned_up_jack_stays(rules: str) -> None:
    assert "exchange" not in Table.deal(rules, "AS TS QH KH AC | TC TD AD KD QD | JH").legal


@every_rule_set
def test_no_exchange_from_a_closed_talon(rules: str) -> None:
    assert "exchange" not in jack_in_hand(rules, 5).play("close").legal


@every_rule_set
def test_no_exchange_by_the_follower_of_a_closed_deal(rules: str) -> None:
    table = Table.deal(rules, "AC AD AS TC TD | JH JS QS KS TS | AH").play("close", "AC")
    assert "exchange" not in table.legal


@every_rule_set
def test_no_exchange_after_a_marriage_is_declared(rules: str) -> None:
    table = jack_in_hand(rules, 5)
    assert {"exchange", "declare-H"} <= table.legal
    assert "exchange" not in table.play("declare-H").legal


@pytest.mark.parametrize(("least", "allowed"), [(9, {9}), (8, {9}), (6, {9, 7}), (99, set[int]())])
def test_exchange_min_can_be_any_height_or_forbid_it(least: int, allowed: set[int]) -> None:
    heights: tuple[Height, ...] = (9, 7, 5, 3, 1)
    rules = rules_with("duel", exchange_min=least)
    assert {h for h in heights if "exchange" in jack_in_hand(rules, h).legal} == allowed
