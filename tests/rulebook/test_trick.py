"""Who wins a trick, what it is worth, and the values that the texts work out."""

from __future__ import annotations

import pytest

from schnapsen_env.cards import TRUMP_MARRIAGE_POINTS, card_set, parse_card, set_card_points
from tests.rulebook.helpers import Table, each_rule_set, every_rule_set


def first_trick(rules: str, lead: str, reply: str) -> Table:
    """Hearts are trumps; seat 0 leads ``lead`` to the first trick and seat 1 answers ``reply``."""
    spare = [c for c in "JC QC JD QD JS QS KC KD KS TC".split() if c not in (lead, reply)]
    hands = f"{lead} {' '.join(spare[:4])} | {reply} {' '.join(spare[4:8])}"
    turned_up = next(card for card in ("QH", "KH") if card not in (lead, reply))
    return Table.deal(rules, f"{hands} | {turned_up}").play(lead, reply)


def winner_of(table: Table) -> int:
    tricks = tuple(table.position.tricks)
    assert tricks in ((1, 0), (0, 1))
    return tricks.index(1)


@every_rule_set
@pytest.mark.parametrize(
    ("lead", "reply", "winner"),
    [
        ("QS", "JS", 0),
        ("QS", "KS", 1),
        ("KS", "TS", 1),
        ("TS", "AS", 1),
        ("AS", "TS", 0),
        ("TS", "KS", 0),
    ],
)
def test_the_higher_card_of_the_suit_wins(rules: str, lead: str, reply: str, winner: int) -> None:
    assert winner_of(first_trick(rules, lead, reply)) == winner


@every_rule_set
@pytest.mark.parametrize(
    ("lead", "reply", "winner"),
    [("AS", "JH", 1), ("JH", "AS", 0), ("TH", "AH", 1), ("AH", "TH", 0), ("QH", "TC", 0)],
)
def test_a_trump_beats_everything_but_a_higher_trump(
    rules: str, lead: str, reply: str, winner: int
) -> None:
    assert winner_of(first_trick(rules, lead, reply)) == winner


@each_rule_set(duel=0, last_trick_ten=0, austrian=0, french=1, pagat=0, pagat_auto=0)
def test_trick_by_a_plain_ace_on_a_plain_king_of_another_suit(rules: str, expected: int) -> None:
    assert winner_of(first_trick(rules, "KC", "AD")) == expected


@each_rule_set(duel=0, last_trick_ten=0, austrian=0, french=0, pagat=0, pagat_auto=0)
def test_trick_by_two_plain_cards_of_one_value_go_to_the_first(rules: str, expected: int) -> None:
    assert winner_of(first_trick(rules, "KC", "KD")) == expected


@each_rule_set(duel=0, last_trick_ten=0, austrian=0, french=0, pagat=0, pagat_auto=0)
def test_trick_by_a_plain_lower_card_of_another_suit_loses(rules: str, expected: int) -> None:
    assert winner_of(first_trick(rules, "KC", "QD")) == expected


@each_rule_set(duel=0, last_trick_ten=0, austrian=0, french=1, pagat=0, pagat_auto=0)
def test_trick_by_holds_in_the_strict_phase_too(rules: str, expected: int) -> None:
    table = Table.deal(rules, "KC QC JD QD JS | AD TD AS TS KS | JH").play("close", "KC", "AD")
    assert winner_of(table) == expected


@every_rule_set
def test_the_winner_takes_both_cards_and_leads_next(rules: str) -> None:
    table = first_trick(rules, "KS", "TS")
    position = table.position
    assert tuple(position.card_points) == (0, 14)
    assert position.won == ((), (parse_card("KS"), parse_card("TS")))
    assert position.leader == 1
    assert table.to_move == 1


@every_rule_set
def test_the_last_trick_is_remembered(rules: str) -> None:
    last_trick = first_trick(rules, "KS", "TS").position.last_trick
    assert last_trick is not None
    assert {parse_card("KS"), parse_card("TS")} <= set(last_trick)


# The worked values of the texts. German names: Unter J, Ober Q; acorns C, bells D, leaves S.


def test_worked_value_two_aces_two_tens_a_king_and_a_trump_marriage_make_86() -> None:
    cards = card_set(map(parse_card, ["AS", "AC", "TS", "TC", "KD"]))
    assert set_card_points(cards) + TRUMP_MARRIAGE_POINTS == 86


def test_worked_value_86_is_past_66_so_the_deal_ends() -> None:
    """The same cards, a jack that fell on the king, and the marriage: over before the lead."""
    table = Table.at(
        "duel",
        turned_up="AH",
        hands=("KH QH JC JS QS", "TD AD QD KC KS"),
        won=("AS AC TS TC KD JD", ""),
    )
    assert table.points(0) == 48
    table.play("declare-H")
    assert table.points(0) == 86 + 2
    assert table.result == ("sixty_six", 0, 3)


@every_rule_set
def test_worked_values_of_the_example_deal(rules: str) -> None:
    """Hearts are trumps; player 1 is forehand, seat 0.

    Ten of leaves trumped by the Unter: 12. King of acorns taken by the ace: 15. A twenty: 35.
    Ober of bells taken by the ace: 14, together 26.
    """
    table = Table.deal(rules, "TS AC KD QD JS | JH KC AD JC JD | KH")
    table.play("TS", "JH")
    assert (table.points(0), table.points(1)) == (0, 12)
    table.play("KC", "AC")
    assert (table.points(0), table.points(1)) == (15, 12)
    table.play("declare-D")
    assert (table.points(0), table.points(1)) == (35, 12)
    table.play("QD", "AD")
    assert (table.points(0), table.points(1)) == (35, 26)


@every_rule_set
def test_all_tricks_together_hold_120_card_points(rules: str) -> None:
    """From a used-up talon to the last trick, with 60 card points on either side."""
    table = Table.at(
        rules,
        hands=("AC JD", "JC QD"),
        # 11 + 3 + 10 + 4 + 10 + 4 + 2 + 3 = 47, and 55 for the other cards.
        won=("AD QC TC KC TD KD JS QS", "AH TH KH QH JH AS TS KS"),
    )
    assert tuple(table.position.card_points) == (47, 55)
    table.play("AC", "JC")
    assert tuple(table.position.card_points) == (60, 55)
    table.play("JD", "QD")
    bonus = 10 if rules == "last_trick_ten" else 0
    assert tuple(table.position.card_points) == (60, 60 + bonus)
