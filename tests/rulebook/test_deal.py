"""The deal: who gets which cards of a deck, what is trump, who leads."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from schnapsen_env import engine
from schnapsen_env.cards import NUM_CARDS, card_text
from tests.rulebook.helpers import Seat, Table, cards, every_rule_set

DECK = "AC KC JD TH QS | TC QC AD JH KS | KH | JC QD KD TD QH AH JS TS AS"


@every_rule_set
@pytest.mark.parametrize("forehand", [0, 1])
def test_the_deck_is_dealt_forehand_then_dealer_then_trump_then_talon(
    rules: str, forehand: Seat
) -> None:
    dealer: Seat = 1 if forehand == 0 else 0
    table = Table.deal(rules, DECK, forehand)
    assert table.hand(forehand) == cards("AC KC JD TH QS")
    assert table.hand(dealer) == cards("TC QC AD JH KS")
    assert table.turned_up == "KH"
    assert [card_text(card) for card in table.position.talon] == DECK.split(" | ")[3].split()


@every_rule_set
def test_the_turned_up_card_names_trump_and_lies_under_nine_cards(rules: str) -> None:
    table = Table.deal(rules, DECK)
    assert table.position.trump_suit == 2
    assert table.face_down == 9


@every_rule_set
@pytest.mark.parametrize("forehand", [0, 1])
def test_forehand_leads_to_the_first_trick(rules: str, forehand: Seat) -> None:
    table = Table.deal(rules, DECK, forehand)
    assert table.position.forehand == forehand
    assert table.position.leader == forehand
    assert table.to_move == forehand


@every_rule_set
def test_nobody_has_anything_at_the_start(rules: str) -> None:
    position = Table.deal(rules, DECK).position
    assert tuple(position.tricks) == (0, 0)
    assert tuple(position.card_points) == (0, 0)
    assert [list(suits) for suits in position.marriages] == [[], []]
    assert [list(known) for known in position.known] == [[], []]
    assert position.closed_by is None
    assert position.last_trick is None
    assert tuple(position.match_score) == (0, 0)


def test_the_first_forehand_is_drawn_by_lot_and_then_the_deal_alternates() -> None:
    firsts = Counter[int]()
    for seed in range(400):
        record = engine.new_record(seed)
        engine.deal(record)
        forehand = engine.position_of(record).forehand
        firsts[forehand] += 1
        for _ in range(3):
            engine.deal(record)
            assert engine.position_of(record).forehand == 1 - forehand
            forehand = 1 - forehand
    # 400 fair draws: outside this range less than once in 10,000 changes of the generator.
    assert 160 < firsts[0] < 240


def test_every_card_is_as_likely_in_every_place() -> None:
    rounds = 2000
    turned_up, last_drawn, in_hand = (np.zeros(NUM_CARDS, dtype=int) for _ in range(3))
    record = engine.new_record(1)
    for _ in range(rounds):
        engine.deal(record)
        position = engine.position_of(record)
        turned_up[position.turned_up] += 1
        last_drawn[position.talon[-1]] += 1
        in_hand[list(position.hands[0])] += 1
    # Mean and five standard deviations of a binomial with chance 1/20, and 1/4 for a hand.
    assert np.abs(turned_up - rounds / 20).max() < 5 * (rounds / 20 * 19 / 20) ** 0.5
    assert np.abs(last_drawn - rounds / 20).max() < 5 * (rounds / 20 * 19 / 20) ** 0.5
    assert np.abs(in_hand - rounds / 4).max() < 5 * (rounds / 4 * 3 / 4) ** 0.5
