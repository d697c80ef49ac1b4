"""The reply: free while the talon is open, bound once it is closed or used up."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.rulebook.helpers import Table, cards, each_rule_set, every_rule_set, rules_with

PHASES = pytest.mark.parametrize("phase", ["closed", "exhausted"])
Phase = Literal["closed", "exhausted"]


def strict_reply(rules: str, phase: Phase, lead: str, reply_hand: str) -> Table:
    """Seat 0 has led ``lead`` in the strict phase, hearts are trumps; seat 1 holds ``reply_hand``.

    The deal is three tricks old and closed after the second, or six tricks old and used up.
    """
    every_card = "JC JD JS QC QD QS KC KD KS TC TD TS AC AD AS JH QH KH TH AH".split()
    spare = [card for card in every_card if card not in {lead, *reply_hand.split()}]
    held = len(reply_hand.split())
    others, spare = spare[: held - 1], spare[held - 1 :]
    if phase == "closed":
        turned_up = next(card for card in spare if card[1] == "H")
        spare.remove(turned_up)
        won, talon = spare[: 2 * (7 - held)], spare[2 * (7 - held) :]
        return Table.at(
            rules,
            hands=(" ".join(others), reply_hand),
            turned_up=turned_up,
            talon=" ".join(talon),
            won=(" ".join(won), ""),
            lead=lead,
            closed_by=0,
            at_close=(0, 0),
        )
    half = len(spare) // 4 * 2
    won_0, won_1 = spare[:half], spare[half:]
    return Table.at(
        rules,
        hands=(" ".join(others), reply_hand),
        won=(" ".join(won_0), " ".join(won_1)),
        lead=lead,
    )


@every_rule_set
def test_any_card_may_answer_while_the_talon_is_open(rules: str) -> None:
    table = Table.deal(rules, "QS JC JD QD AD | AS JS JH TC KC | QH").play("QS")
    assert table.legal_cards == cards("AS JS JH TC KC")


@each_rule_set(
    duel="JS AS", last_trick_ten="AS", austrian="AS", french="AS", pagat="AS", pagat_auto="AS"
)
@PHASES
def test_must_beat(rules: str, expected: str, phase: Phase) -> None:
    """Deal 7: a queen is led; with ace and jack of the suit only the ace will do, or either."""
    table = strict_reply(rules, phase, lead="QS", reply_hand="AS JS JH TC")
    assert table.legal_cards == cards(expected)


@every_rule_set
@PHASES
def test_follow_suit_when_the_lead_cannot_be_beaten(rules: str, phase: Phase) -> None:
    table = strict_reply(rules, phase, lead="TS", reply_hand="JS KS AH TC")
    assert table.legal_cards == cards("JS KS")


@every_rule_set
@PHASES
def test_void_in_the_suit_a_trump_is_forced_even_the_jack(rules: str, phase: Phase) -> None:
    """Deal 7, second part."""
    table = strict_reply(rules, phase, lead="QS", reply_hand="JH AC TC AD")
    assert table.legal_cards == ["JH"]


@every_rule_set
@PHASES
def test_void_in_the_suit_any_trump_will_do(rules: str, phase: Phase) -> None:
    table = strict_reply(rules, phase, lead="QS", reply_hand="JH AH TC AD")
    assert table.legal_cards == cards("JH AH")


@every_rule_set
@PHASES
def test_without_suit_and_trump_anything_goes(rules: str, phase: Phase) -> None:
    table = strict_reply(rules, phase, lead="QS", reply_hand="AC JC TD JD")
    assert table.legal_cards == cards("AC JC TD JD")


@each_rule_set(
    duel="JH AH", last_trick_ten="AH", austrian="AH", french="AH", pagat="AH", pagat_auto="AH"
)
@PHASES
def test_a_led_trump_has_to_be_beaten_like_any_suit(
    rules: str, expected: str, phase: Phase
) -> None:
    table = strict_reply(rules, phase, lead="TH", reply_hand="JH AH TC AD")
    assert table.legal_cards == cards(expected)


@every_rule_set
@PHASES
def test_void_in_trumps_anything_answers_a_led_trump(rules: str, phase: Phase) -> None:
    table = strict_reply(rules, phase, lead="TH", reply_hand="JC AC TC AD")
    assert table.legal_cards == cards("JC AC TC AD")


@PHASES
def test_the_duty_to_beat_is_one_of_the_suit_led_even_where_value_wins(phase: Phase) -> None:
    """``french``: an ace of another suit would take the trick, but only spades are asked for."""
    table = strict_reply("french", phase, lead="QS", reply_hand="AC AD JS TC")
    assert table.legal_cards == ["JS"]


@each_rule_set(
    duel=False, last_trick_ten=True, austrian=True, french=True, pagat=True, pagat_auto=True
)
@PHASES
def test_a_low_reply_shows_that_nothing_higher_is_held(
    rules: str, expected: bool, phase: Phase
) -> None:
    """Where beating is a duty, a jack under a king says: neither the ten nor the ace."""
    table = strict_reply(rules, phase, lead="KS", reply_hand="JS AH TC AD").play("JS")
    assert ({"TS", "AS"} <= table.cannot_hold(1)) is expected
    assert not {"JH", "JC", "JD"} & table.cannot_hold(1)
    assert table.cannot_hold(0) == set()


@every_rule_set
@PHASES
def test_a_trump_reply_shows_that_the_suit_is_missing(rules: str, phase: Phase) -> None:
    table = strict_reply(rules, phase, lead="KS", reply_hand="JH TC AD QD").play("JH")
    assert {"JS", "QS", "TS", "AS"} <= table.cannot_hold(1)
    assert not {"QH", "KH", "TH", "AH", "AC", "KD"} & table.cannot_hold(1)


@every_rule_set
@PHASES
def test_an_off_suit_reply_shows_that_suit_and_trumps_are_missing(rules: str, phase: Phase) -> None:
    table = strict_reply(rules, phase, lead="KS", reply_hand="JC TC AD QD").play("JC")
    assert {"JS", "QS", "TS", "AS", "JH", "QH", "KH", "TH", "AH"} <= table.cannot_hold(1)
    assert not {"QC", "AC", "KD"} & table.cannot_hold(1)


@every_rule_set
def test_replies_show_nothing_while_the_talon_is_open(rules: str) -> None:
    table = Table.deal(rules, "QS JC JD QD AD | AS JS JH TC KC | QH").play("QS", "TC")
    assert table.cannot_hold(1) == set()


def test_the_duty_alone_can_be_set() -> None:
    strict_duel = rules_with("duel", must_beat=True)
    table = Table.deal(strict_duel, "QS JC JD QD AD | AS JS JH TC KC | QH").play("close", "QS")
    assert table.legal == {"AS"}
