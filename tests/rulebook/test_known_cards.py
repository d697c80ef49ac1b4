"""Deal 9: what the opponent's observation shows of a hand, until the card is played."""

from __future__ import annotations

from typing import Any

import pytest

from schnapsen_env.observation import describe, observe
from tests.rulebook.helpers import Seat, Table, cards, every_rule_set


def seen_by(table: Table, seat: Seat) -> dict[str, Any]:
    observation, _mask = observe(table.record, table.codes, seat)
    return describe(observation)


@every_rule_set
def test_the_card_taken_in_an_exchange(rules: str) -> None:
    table = Table.deal(rules, "JH AS TS AC AD | QC KC JD QD KD | AH").play("exchange")
    assert seen_by(table, 1)["other_known"] == ["AH"]
    assert seen_by(table, 1)["turned_up"] == ["JH"]
    assert seen_by(table, 0)["other_known"] == []
    table.play("AS", "QC")
    assert seen_by(table, 1)["other_known"] == ["AH"]
    table.play("AH", "JD")
    assert seen_by(table, 1)["other_known"] == []


def test_the_card_taken_in_an_exchange_before_replying() -> None:
    table = Table.deal("french", "AS TS AC AD QC | JH KC JD QD KD | AH").play("AC", "exchange")
    assert seen_by(table, 0)["other_known"] == ["AH"]
    table.play("KC")
    assert seen_by(table, 0)["other_known"] == ["AH"]


@every_rule_set
def test_king_and_queen_of_a_marriage(rules: str) -> None:
    table = Table.deal(rules, "KS QS AC AD JD | JS KC QC TC JC | JH").play("declare-S")
    assert seen_by(table, 1)["other_known"] == cards("QS KS")
    table.play("KS")
    assert seen_by(table, 1)["other_known"] == ["QS"]
    table.play("JS", "QS")
    assert seen_by(table, 1)["other_known"] == []


@every_rule_set
def test_the_card_exchanged_into_a_marriage_is_known_once(rules: str) -> None:
    table = Table.deal(rules, "JH QH AC AD JD | JS KC QC TC JC | KH").play("exchange", "declare-H")
    assert seen_by(table, 1)["other_known"] == cards("QH KH")
    assert seen_by(table.play("KH", "JC"), 1)["other_known"] == ["QH"]


@every_rule_set
def test_the_turned_up_card_after_the_last_draw(rules: str) -> None:
    table = Table.at(
        rules,
        turned_up="QH",
        hands=("AH AC JC JD KS", "QC QD QS KD TD"),
        talon="JH",
        won=("JS KC TC TS", "AD KH AS TH"),
    ).play("AC", "QC")
    assert seen_by(table, 0)["other_known"] == ["QH"]
    assert seen_by(table, 1)["other_known"] == []
    assert seen_by(table.play("AH", "QH"), 0)["other_known"] == []


@every_rule_set
def test_nobody_learns_what_lies_under_a_closed_talon(rules: str) -> None:
    """The turned-up card is remembered; the nine others may as well be in the other hand."""
    table = Table.deal(rules, "AS TS AC AD QC | JH KC JD QD KD | AH").play("close", "AC")
    face_down = {"JC", "TC", "TD", "QH", "KH", "TH", "JS", "QS", "KS"}
    for own, other in ((table.hand(0), seen_by(table, 1)), (table.hand(1), seen_by(table, 0))):
        assert other["turned_up"] == ["AH"]
        assert set(other["unseen"]) == face_down | set(own)


@pytest.mark.parametrize("rules", ["last_trick_ten", "austrian", "pagat", "pagat_auto"])
def test_what_a_strict_reply_rules_out_is_shown(rules: str) -> None:
    """A jack under a queen: no king, no ten, no ace, as far as they have not been seen."""
    table = Table.deal(rules, "AS TS QC AD QS | JH JC JD QD KD | AH").play("close", "QC", "JC")
    assert seen_by(table, 0)["other_cannot_hold"] == cards("KC TC AC")
    assert seen_by(table, 1)["other_cannot_hold"] == []
