"""The player on lead: what may come before the card, and which card may follow."""

from __future__ import annotations

import pytest

from tests.rulebook.helpers import AUTOMATIC, EXPLICIT, Table, cards, every_rule_set

# Forehand has the trump jack, half of the trump marriage whose king lies face up, and a
# complete marriage of spades.
DECK = "JH QH KS QS AC | TC QC AD JD KD | KH | JC KC QD TD TH AH JS TS AS"


@every_rule_set
def test_any_card_may_be_led(rules: str) -> None:
    assert Table.deal(rules, DECK).legal_cards == cards("JH QH KS QS AC")


@every_rule_set
def test_any_card_may_be_led_in_the_strict_phase_too(rules: str) -> None:
    assert Table.deal(rules, DECK).play("close").legal_cards == cards("JH QH KS QS AC")


@every_rule_set
def test_the_first_turn_offers_exchange_close_and_the_marriage_in_hand(rules: str) -> None:
    table = Table.deal(rules, DECK)
    assert table.legal - set(table.legal_cards) - {"claim"} == {"exchange", "close", "declare-S"}


@every_rule_set
def test_exchange_close_and_declare_in_one_turn(rules: str) -> None:
    """Deal 11: all three in this order, and the card exchanged for completes the marriage."""
    table = Table.deal(rules, DECK)
    assert "declare-H" not in table.legal
    table.play("exchange")
    assert table.to_move == 0
    assert table.hand(0) == cards("KH QH KS QS AC")
    assert {"close", "declare-H", "declare-S"} <= table.legal
    table.play("close")
    assert table.to_move == 0
    assert {"declare-H", "declare-S"} <= table.legal
    assert not {"exchange", "close"} & table.legal
    table.play("declare-H")
    assert table.to_move == 0
    assert table.legal_cards == cards("QH KH")
    table.play("QH")
    assert table.to_move == 1
    assert [list(suits) for suits in table.position.marriages] == [[2], []]


@every_rule_set
def test_close_then_declare_without_exchanging(rules: str) -> None:
    table = Table.deal(rules, DECK).play("close", "declare-S", "KS")
    assert table.to_move == 1


@every_rule_set
def test_after_declaring_only_king_or_queen_of_the_suit_may_be_led(rules: str) -> None:
    table = Table.deal(rules, DECK).play("declare-S")
    claim = {"claim"} if rules in EXPLICIT else set[str]()
    assert table.legal == {"KS", "QS"} | claim


@every_rule_set
def test_at_most_one_marriage_a_lead(rules: str) -> None:
    table = Table.deal(rules, DECK).play("exchange")
    assert {"declare-H", "declare-S"} <= table.legal
    table.play("declare-S")
    assert "declare-H" not in table.legal
    # The king of spades wins the trick; the other marriage can be declared on the next lead.
    table.play("KS", "QC")
    assert table.to_move == 0
    assert "declare-H" in table.legal


@every_rule_set
def test_king_or_queen_may_be_led_without_declaring(rules: str) -> None:
    """No marriage, no points, and the chance is gone with the card."""
    table = Table.deal(rules, DECK).play("KS", "QC")
    assert table.points(0) == 7
    assert [list(suits) for suits in table.position.marriages] == [[], []]
    assert "declare-S" not in table.legal


@every_rule_set
def test_the_follower_can_neither_close_nor_declare(rules: str) -> None:
    table = Table.deal(rules, "JC AC JD AS TS | KH QH KS QS TC | TH").play("JC")
    assert not {"close", "declare-H", "declare-S"} & table.legal


@pytest.mark.parametrize("rules", AUTOMATIC)
def test_automatic_rule_sets_never_offer_a_claim(rules: str) -> None:
    table = Table.deal(rules, DECK)
    assert "claim" not in table.legal
    assert "claim" not in table.play("AC").legal
