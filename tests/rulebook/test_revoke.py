"""A revoke: a held card that the strict phase forbids."""

from __future__ import annotations

import pytest

from schnapsen_env import engine, schnapsen_v0
from schnapsen_env.actions import parse_action
from schnapsen_env.cards import parse_card
from tests.rulebook.helpers import Table, each_rule_set, every_rule_set

DECK = "JC AS TS KH AH | AC JS JD QC TD | JH | QH KD KS QS TC QD KC TH AD"


def revokes(table: Table) -> set[str]:
    return {
        card
        for card in "JC QC KC TC AC JD QD KD TD AD JH QH KH TH AH JS QS KS TS AS".split()
        if engine.is_revoke(table.record, table.codes, parse_card(card))
    }


@each_rule_set(
    duel="JS JD TD",
    last_trick_ten="JS JD TD",
    austrian="JS JD TD",
    french="JS JD TD",
    pagat="JS JD TD",
    pagat_auto="JS JD TD",
)
def test_a_revoke_is_a_held_card_against_the_duty(rules: str, expected: str) -> None:
    table = Table.deal(rules, DECK).play("close", "JC")
    assert revokes(table) == set(expected.split())
    assert not revokes(table) & table.legal


def test_not_beating_is_a_revoke_where_beating_is_a_duty() -> None:
    deck = "QC AS TS KH AH | AC JC JD QD TD | JH"
    assert "JC" in revokes(Table.deal("austrian", deck).play("close", "QC"))
    assert "JC" not in revokes(Table.deal("duel", deck).play("close", "QC"))


@every_rule_set
def test_there_is_no_revoke_while_the_talon_is_open_or_on_lead(rules: str) -> None:
    table = Table.deal(rules, DECK)
    assert revokes(table) == set()
    assert revokes(table.play("JC")) == set()
    closed = Table.deal(rules, "KS QS JC JD AH | AC JS TD QC TC | JH").play("close", "declare-S")
    assert revokes(closed) == set()  # The suit to lead after a marriage is another duty.


@every_rule_set
def test_a_revoke_is_never_offered_and_refused_when_played(rules: str) -> None:
    table = Table.deal(rules, DECK).play("close", "JC")
    before = table.record.copy()
    with pytest.raises(engine.IllegalActionError, match="JS"):
        engine.apply(table.record, table.rules, parse_action("JS"))
    assert (table.record == before).all()


@each_rule_set(
    duel="refused",
    last_trick_ten="refused",
    austrian="loses",
    french="refused",
    pagat="refused",
    pagat_auto="refused",
)
def test_revoke(rules: str, expected: str) -> None:
    """An environment may let a revoke happen only where the rules say what it costs."""
    if expected == "refused":
        with pytest.raises(ValueError, match="revoke"):
            schnapsen_v0.raw_env(rules=rules, illegal_action="revoke")
        return
    env = schnapsen_v0.raw_env(rules=rules, illegal_action="revoke")
    deck = [parse_card(card) for card in DECK.replace("|", " ").split()]
    env.reset(seed=0, options={"deck": deck, "forehand": 0})
    for action in ("close", "JC", "JD"):
        env.step(parse_action(action))
    assert env.infos["player_0"]["end_reason"] == "revoke"
    assert env.infos["player_0"]["game_points"] == 3
    assert env.infos["player_1"]["game_points"] == -3


def test_revoke_against_an_opponent_without_a_trick_costs_3() -> None:
    """Seat 1 revokes in the first trick of a deal that seat 0 has closed."""
    table = Table.deal("austrian", DECK).play("close", "JC").revoke("JD")
    assert table.result == ("revoke", 0, 3)


def test_revoke_against_an_opponent_with_a_trick_costs_2() -> None:
    """Whose trick counts is the opponent's."""
    table = Table.deal("austrian", DECK).play("close", "AS", "JS", "JC").revoke("JD")
    assert table.result == ("revoke", 0, 2)


def test_revoke_by_the_closer_is_a_failed_close() -> None:
    """The opponent had no trick at the closing: 3, though he has one now."""
    table = Table.deal("austrian", DECK).play("close", "JC", "AC", "JS").revoke("KH")
    assert table.result == ("failed_close", 1, 3)


def test_revoke_by_the_closer_against_a_trick_at_the_closing() -> None:
    table = Table.deal("austrian", DECK).play("JC", "AC", "JS", "AS", "close", "KD", "TD")
    # Seat 0 is void in clubs and holds king and ace of trumps.
    table.play("QC").revoke("TS")
    assert table.result == ("failed_close", 1, 2)


def test_revoke_with_the_talon_used_up() -> None:
    table = Table.at(
        "austrian",
        hands=("KC QD", "AC JD"),
        won=("AS TS KS QS JS TH KH JH", "AH QH TC QC AD TD KD JC"),
    )
    assert table.play("KC").revoke("JD").result == ("revoke", 0, 2)
