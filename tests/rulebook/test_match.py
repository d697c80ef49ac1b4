"""A match (Bummerl): deals until someone has the target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from schnapsen_env import engine
from schnapsen_env.cards import parse_card
from schnapsen_env.rules import RULES, Rules
from tests.rulebook.helpers import Seat, Table, each_rule_set, every_rule_set, rules_with


def won_by(
    rules: str | Rules, winner: Seat, game_points: int, score: tuple[int, int] = (0, 0)
) -> Table:
    """A deal of a match that stands at ``score``, just won for 1, 2 or 3 game points."""
    loser_won = {1: "AH TH KH QH QC JC", 2: "JC JD", 3: ""}[game_points]
    hands, winner_won, turned_up = {
        1: (("JH KS KC QD", "QS JS JD KD"), "AS TS AC TC AD TD", None),
        2: (("AH TH QH KC QC", "QD KD QS KS TC"), "AS TS AC AD KH JS", "JH"),
        3: (("KS TH QH KC QC", "QD KD QS JD TC"), "AS TS AC AD KH JS", "JH"),
    }[game_points]
    swap = winner == 1
    table = Table.at(
        rules,
        turned_up=turned_up,
        hands=(hands[1], hands[0]) if swap else hands,
        won=(loser_won, winner_won) if swap else (winner_won, loser_won),
        leader=winner,
        match_score=list(score),
    )
    tricks = {1: ("KS", "JS"), 2: ("AH", "TC"), 3: ("TH", "TC")}[game_points]
    table.play(*tricks).claim_if_needed()
    assert table.result == ("sixty_six", winner, game_points)
    return table


def score_of(table: Table) -> tuple[int, int]:
    return table.position.match_score


def winner_of(table: Table) -> int | None:
    winner = int(engine.match_winner(table.record, table.codes))
    return None if winner < 0 else winner


@every_rule_set
@pytest.mark.parametrize("winner", [0, 1])
@pytest.mark.parametrize("game_points", [1, 2, 3])
def test_the_winner_of_a_deal_scores_its_game_points(
    rules: str, winner: Seat, game_points: int
) -> None:
    """Counted up from 0 whatever the players count, and nothing is taken from the loser."""
    table = won_by(rules, winner, game_points, score=(3, 2))
    expected = [3, 2]
    expected[winner] += game_points
    assert list(score_of(table)) == expected


@each_rule_set(duel=7, last_trick_ten=7, austrian=7, french=7, pagat=7, pagat_auto=7)
def test_target(rules: str, expected: int) -> None:
    assert winner_of(won_by(rules, 0, 1, score=(expected - 2, 6))) is None
    assert winner_of(won_by(rules, 0, 1, score=(expected - 1, 6))) == 0
    assert winner_of(won_by(rules, 1, 1, score=(6, expected - 1))) == 1


def test_target_of_the_short_austrian_match_is_5() -> None:
    rules = replace(RULES["austrian"], target=5)
    assert winner_of(won_by(rules, 0, 1, score=(3, 4))) is None
    assert winner_of(won_by(rules, 0, 1, score=(4, 4))) == 0


@pytest.mark.parametrize("target", range(3, 12))
def test_target_may_be_3_to_11(target: int) -> None:
    rules = rules_with("duel", target=target)
    assert winner_of(won_by(rules, 1, 1, score=(0, target - 2))) is None
    assert winner_of(won_by(rules, 1, 1, score=(0, target - 1))) == 1


@pytest.mark.parametrize("target", [-1, 0, 2, 12])
def test_no_other_target(target: int) -> None:
    with pytest.raises(ValueError, match="target"):
        rules_with("duel", target=target)


def test_more_than_the_target_wins_too() -> None:
    table = won_by("duel", 0, 3, score=(6, 6))
    assert score_of(table) == (9, 6)
    assert winner_of(table) == 0


@each_rule_set(
    duel="up", last_trick_ten="up", austrian="down", french="down", pagat="down", pagat_auto="down"
)
def test_counting(rules: str, expected: str) -> None:
    """How people count changes what is shown, never the score or its end."""
    assert RULES[rules].counting == expected
    other = replace(RULES[rules], counting="down" if expected == "up" else "up")
    assert (won_by(rules, 0, 2).record == won_by(other, 0, 2).record).all()
    assert (RULES[rules].codes() == other.codes()).all()


@every_rule_set
def test_the_deal_alternates_and_the_score_is_kept(rules: str) -> None:
    deck = "KH QH JC JD JS AH TH AC AD AS JH TC QC TD QD TS QS KC KD KS".split()
    record = engine.new_record(0)
    table = Table(rules, record)
    engine.deal_deck(record, np.array([parse_card(card) for card in deck]), 1)
    # Seat 1 is forehand, seat 0 wins every trick: 3 game points.
    table.play("KH", "AH", "AC", "JC", "AD", "JD", "AS", "JS", "TC", "QC")
    assert table.points(0) == 67
    table.claim_if_needed()
    assert score_of(table) == (3, 0)
    engine.deal(record)
    assert table.position.forehand == 0
    assert score_of(table) == (3, 0)
    assert not table.over
    engine.deal(record)
    assert table.position.forehand == 1


def test_a_drawn_deal_scores_nothing() -> None:
    table = Table.at(
        "last_trick_ten",
        hands=("AC", "JC"),
        won=("AD TD AH TH", "rest"),
        match_score=[6, 6],
    ).play("AC", "JC")
    assert table.result == ("drawn", None, 0)
    assert score_of(table) == (6, 6)
    assert winner_of(table) is None


# What is reported of a finished match


@every_rule_set
def test_the_loser_gets_the_bummerl(rules: str) -> None:
    table = won_by(rules, 1, 2, score=(3, 5))
    result = engine.match_result(table.record, table.rules)
    assert result["winner"] == 1
    assert result["bummerl"] == 0
    assert result["score"] == [3, 7]
    assert not result["schneider"]
    assert not result["rueckschneider"]


@every_rule_set
def test_schneider_a_loser_without_a_game_point(rules: str) -> None:
    for loser_score, schneider in ((0, True), (1, False)):
        table = won_by(rules, 0, 1, score=(6, loser_score))
        assert engine.match_result(table.record, table.rules)["schneider"] is schneider


@every_rule_set
def test_rueckschneider_a_loser_who_stood_at_one_to_go(rules: str) -> None:
    """He needed one more, and from there on lost every deal."""
    for loser_score, rueckschneider in ((6, True), (5, False), (0, False)):
        table = won_by(rules, 0, 1, score=(6, loser_score))
        assert engine.match_result(table.record, table.rules)["rueckschneider"] is rueckschneider


def test_a_running_match_has_no_result() -> None:
    table = won_by("french", 0, 1, score=(5, 5))
    with pytest.raises(ValueError, match="not over"):
        engine.match_result(table.record, table.rules)
