"""The talon: who draws when, how high it stands, and the last draw."""

from __future__ import annotations

import pytest

from tests.rulebook.helpers import Table, cards, every_rule_set

DECK = "AH TH KH AC AD | JC QC JD QD JS | QH | KC KD TC TD QS KS TS AS JH"


@every_rule_set
def test_the_winner_draws_first_then_the_loser(rules: str) -> None:
    table = Table.deal(rules, DECK).play("KH", "JC")
    assert table.hand(0) == cards("AH TH AC AD KC")
    assert table.hand(1) == cards("QC JD QD JS KD")
    table = Table.deal(rules, "JC QC JD QD JS | AH TH KH AC AD | QH | KC KD").play("JC", "AC")
    assert table.hand(1) == cards("AH TH KH AD KC")
    assert table.hand(0) == cards("QC JD QD JS KD")


@every_rule_set
def test_the_face_down_count_runs_9_7_5_3_1_0(rules: str) -> None:
    """Small tricks, so that nobody is out before the talon is used up."""
    talon = "JH TC KH TS TH AC AH AD AS"
    table = Table.deal(rules, f"JC QC KC QS KS | JD QD KD JS TD | QH | {talon}")
    counts = [table.face_down]
    for lead, reply in [("JC", "JD"), ("QC", "QD"), ("KC", "KD"), ("QS", "JS"), ("JH", "TD")]:
        table.play(lead, reply)
        counts.append(table.face_down)
    assert counts == [9, 7, 5, 3, 1, 0]


@every_rule_set
def test_nobody_draws_once_the_talon_is_closed(rules: str) -> None:
    table = Table.deal(rules, DECK).play("close", "KH", "JC")
    assert table.hand(0) == cards("AH TH AC AD")
    assert table.hand(1) == cards("QC JD QD JS")
    assert table.face_down == 9
    assert table.turned_up == "QH"


def before_the_last_draw(rules: str, *, jack_in_hand: bool = False) -> Table:
    """One card lies face down, the queen of trumps under it; seat 0 leads.

    The trump jack is the card face down, or in seat 0's hand.
    """
    held, face_down = ("JH", "KS") if jack_in_hand else ("KS", "JH")
    return Table.at(
        rules,
        turned_up="QH",
        hands=(f"AH AC JC JD {held}", "QC QD QS KD TD"),
        talon=face_down,
        won=("JS KC TC TS", "AD KH AS TH"),
    )


@every_rule_set
def test_at_the_last_draw_the_loser_gets_the_turned_up_card(rules: str) -> None:
    """Deal 6: the winner of the trick takes the face-down card."""
    table = before_the_last_draw(rules).play("AC", "QC")
    assert table.hand(0) == cards("AH JC JD KS JH")
    assert table.hand(1) == cards("QD QS KD TD QH")
    assert table.face_down == 0
    assert table.turned_up is None


@every_rule_set
def test_at_the_last_draw_the_leader_may_be_the_loser(rules: str) -> None:
    table = before_the_last_draw(rules).play("JD", "TD")
    assert table.hand(1) == cards("QC QD QS KD JH")
    assert table.hand(0) == cards("AH AC JC KS QH")


@pytest.mark.parametrize("rules", ["last_trick_ten", "french", "pagat", "pagat_auto"])
def test_the_loser_gets_the_jack_if_it_was_exchanged(rules: str) -> None:
    """Deal 6, where the jack may still be exchanged over one face-down card."""
    table = before_the_last_draw(rules, jack_in_hand=True).play("exchange", "AC", "QC")
    assert table.hand(0) == cards("AH JC JD QH KS")
    assert table.hand(1) == cards("QD QS KD TD JH")


@every_rule_set
def test_the_winner_of_the_last_draw_knows_the_turned_up_card(rules: str) -> None:
    """Deal 9: it is known until it is played. The face-down card is known to nobody else."""
    table = before_the_last_draw(rules).play("AC", "QC")
    assert table.known(1) == ["QH"]
    assert table.known(0) == []
    table.play("AH", "QH")
    assert table.known(1) == []


@every_rule_set
def test_replies_are_bound_once_the_talon_is_used_up(rules: str) -> None:
    table = before_the_last_draw(rules)
    assert table.play("AC").legal_cards == cards("QC QD QS KD TD")
    table.play("QC", "JD")
    assert set(table.legal_cards) == {"QD", "KD", "TD"}


@every_rule_set
def test_a_used_up_talon_can_be_neither_closed_nor_exchanged_from(rules: str) -> None:
    table = before_the_last_draw(rules).play("AC", "QC")
    assert "JH" in table.hand(0)
    assert not {"close", "exchange"} & table.legal
