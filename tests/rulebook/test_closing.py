"""Closing the talon: when, what follows from it, and what success and failure are worth."""

from __future__ import annotations

import pytest

from schnapsen_env.rules import Rules
from tests.rulebook.helpers import (
    EXPLICIT,
    Table,
    each_rule_set,
    every_rule_set,
    rules_with,
)


def on_lead(rules: str | Rules, face_down: int) -> Table:
    """Seat 0 leads from an open talon that is ``face_down`` cards high."""
    won = "JC QC JD QD JS QS KC KD".split()[: 9 - face_down]
    return Table.at(
        rules,
        turned_up="AH",
        hands=("JH AS TS QH KH", "TC TD AC AD TH"),
        won=(" ".join(won), ""),
    )


# When


@each_rule_set(duel=1, last_trick_ten=1, austrian=1, french=1, pagat=1, pagat_auto=1)
@pytest.mark.parametrize("face_down", [9, 7, 5, 3, 1])
def test_close_min(rules: str, expected: int, face_down: int) -> None:
    assert ("close" in on_lead(rules, face_down).legal) is (face_down >= expected)


@pytest.mark.parametrize(("least", "heights"), [(3, {9, 7, 5, 3}), (8, {9}), (99, set[int]())])
def test_close_min_can_be_any_height_or_forbid_it(least: int, heights: set[int]) -> None:
    rules = rules_with("duel", close_min=least)
    assert {h for h in (9, 7, 5, 3, 1) if "close" in on_lead(rules, h).legal} == heights


@every_rule_set
def test_only_the_player_on_lead_closes(rules: str) -> None:
    assert "close" not in on_lead(rules, 5).play("AS").legal


@every_rule_set
def test_a_closed_talon_stays_closed(rules: str) -> None:
    table = on_lead(rules, 5).play("close")
    assert "close" not in table.legal
    table.play("AS", "TH")
    assert "close" not in table.legal
    assert table.position.closed_by == 0
    assert table.turned_up == "AH"
    assert table.face_down == 5


@every_rule_set
def test_no_closing_after_a_marriage_is_declared(rules: str) -> None:
    assert "close" not in on_lead(rules, 5).play("declare-H").legal


# What is remembered


@every_rule_set
def test_the_opponents_tricks_and_points_are_remembered(rules: str) -> None:
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("AC TC AD TD KH", "KS JC JD QC QD"),
        won=("JS AS", "QS TS"),
        marriages=("", "S"),
        known=([], ["KS"]),
    ).play("close")
    at_close = table.position.at_close
    assert at_close is not None
    assert (at_close.tricks, at_close.points) == (1, 13 + 20)


@every_rule_set
def test_a_pending_marriage_is_no_point_at_the_closing(rules: str) -> None:
    table = Table.deal(rules, "KS QS JC AD JD | AS KC QC TC JS | JH")
    at_close = table.play("declare-S", "QS", "AS", "close").position.at_close
    assert at_close is not None
    assert (at_close.tricks, at_close.points) == (0, 0)


# Success


@each_rule_set(duel=2, last_trick_ten=2, austrian=2, french=2, pagat=3, pagat_auto=3)
def test_close_valued_at_an_opponent_without_a_trick_at_the_closing(
    rules: str, expected: int
) -> None:
    """He takes 13 later: at the end he has a trick, at the closing he had none."""
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("JD AH TH JC KH", "AD TD QD KD QC"),
        won=("AS TS AC TC KS KC", ""),
    )
    table.play("close", "JD", "AD", "TD", "AH").claim_if_needed()
    assert (table.points(0), table.points(1)) == (50 + 21, 13)
    assert table.result == ("sixty_six", 0, expected)


@each_rule_set(duel=1, last_trick_ten=1, austrian=1, french=1, pagat=2, pagat_auto=2)
def test_close_valued_at_an_opponent_under_33_at_the_closing(rules: str, expected: int) -> None:
    """He has 7 at the closing and exactly 33 at the end."""
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("JD JS TH QH JC", "AD QD AS TS KS"),
        won=("AC TC KC QC AH KH", "KD QS"),
    )
    assert (table.points(0), table.points(1)) == (43, 7)
    table.play("close", "JD", "AD", "AS", "JS")
    assert table.points(1) == 7 + 13 + 13
    table.play("TS", "TH", "QH", "KS").claim_if_needed()
    assert table.points(0) == 43 + 20 + 7
    assert table.result == ("sixty_six", 0, expected)


@pytest.mark.parametrize(
    ("valued_at", "schneider_by", "game_points"),
    [
        ("closing", "points", 1),  # 13 and a marriage: 33 at the closing.
        ("closing", "card_points", 2),  # The marriage does not protect.
        ("end", "points", 1),
        ("end", "card_points", 1),  # 13 + 22 = 35 in tricks at the end.
    ],
)
def test_the_33_at_the_closing_follows_schneider_by(
    valued_at: str, schneider_by: str, game_points: int
) -> None:
    rules = rules_with("duel", close_valued_at=valued_at, schneider_by=schneider_by)
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("TD AH TH QH KC", "AD KS JD JC QC"),
        won=("AS JS AC TC", "QS TS"),
        marriages=("", "S"),
        known=([], ["KS"]),
    )
    assert (table.points(0), table.points(1)) == (34, 33)
    table.play("close", "TD", "AD")
    assert table.position.card_points[1] == 13 + 21
    table.play("KS", "AH", "TH", "JD", "QH", "JC")
    assert table.points(0) == 34 + 15 + 12 + 5
    assert table.result == ("sixty_six", 0, game_points)


# Failure


def closed_against_a_trickless_opponent(rules: str | Rules) -> Table:
    """Seat 0 has two tricks and 42, closes, and will lose every trick."""
    return Table.at(
        rules,
        turned_up="JH",
        hands=("JC QC JD QD JS", "AC TC AD TD KS"),
        won=("AS TS AH TH", ""),
    ).play("close")


@each_rule_set(duel=3, last_trick_ten=3, austrian=3, french=1, pagat=3, pagat_auto=3)
def test_close_failure_against_an_opponent_without_a_trick_at_the_closing(
    rules: str, expected: int
) -> None:
    """Deal 3: tricks taken later do not lower the 3. ``french`` looks at the closer's 42."""
    table = closed_against_a_trickless_opponent(rules)
    table.play("JC", "AC", "TC", "QC", "AD", "JD", "TD", "QD", "KS")
    assert not table.over
    table.play("JS")
    assert (table.points(0), table.points(1)) == (42, 58)
    assert table.result == ("failed_close", 1, expected)


@each_rule_set(duel=2, last_trick_ten=2, austrian=2, french=3, pagat=2, pagat_auto=2)
def test_close_failure_of_a_closer_with_nothing_against_an_opponent_with_a_trick(
    rules: str, expected: int
) -> None:
    """Deal 3, second part: the closer ends with 0, but the opponent had a trick: 2.

    ``french`` values the closer's own tricks, and he has none.
    """
    table = Table.at(
        rules,
        turned_up="KH",
        hands=("JC QC JD QD JS", "AC TC AD TD AS"),
        won=("", "TS KS"),
        leader=0,
    )
    table.play("close", "JC", "AC", "TC", "QC", "AD", "JD", "TD", "QD").claim_if_needed()
    assert (table.points(0), table.points(1)) == (0, 14 + 13 + 13 + 13 + 13)
    assert table.result == ("failed_close", 1, expected)


@each_rule_set(duel=2, last_trick_ten=2, austrian=2, french=1, pagat=2, pagat_auto=2)
def test_close_failure_when_the_opponent_is_out_first(rules: str, expected: int) -> None:
    """Deal 4: at once, with cards left to play; no win by 66, though the closer has only 33."""
    table = Table.at(
        rules,
        turned_up="KH",
        hands=("JC QC JD QD JS", "AC TC AD TD KS"),
        # 10 + 4 + 10 + 2 + 3 + 4 = 33 for seat 0.
        won=("TH KD TS JH QH KC", "AS AH"),
    ).play("close")
    assert (table.points(0), table.points(1)) == (33, 22)
    table.play("JC", "AC", "TC", "QC", "AD", "JD")
    assert table.points(1) == 22 + 13 + 13 + 13
    assert not table.over
    table.play("TD", "QD").claim_if_needed()
    assert table.points(1) == 74
    assert table.result == ("failed_close", 1, expected)
    assert table.hand(0) == ["JS"]


@each_rule_set(duel=3, last_trick_ten=3, austrian=3, french=2, pagat=3, pagat_auto=3)
def test_close_failure_when_a_trickless_opponent_is_out_first(rules: str, expected: int) -> None:
    """Deal 4 with 3 game points: he had no trick at the closing and is out all the same.

    ``french``: the closer has a trick and fewer than 33.
    """
    table = Table.at(
        rules,
        turned_up="KH",
        hands=("QC TC JD JS TS", "AC KC AD AS TD"),
        won=("JH QH", ""),
    )
    table.play("close", "TC", "AC", "AD", "JD", "AS", "TS")
    assert table.points(1) == 21 + 13 + 21
    assert not table.over
    table.play("TD", "QC").claim_if_needed()
    assert table.points(1) == 55 + 13
    assert table.result == ("failed_close", 1, expected)
    assert table.hand(0) == ["JS"]


@pytest.mark.parametrize(
    ("won", "expected"),
    [
        (("AS TS AH TH", ""), 1),  # The closer has 42.
        (("TS TH QC KC QS KS", "JS AH"), 1),  # 34.
        (("AH KS", ""), 2),  # 15.
    ],
)
def test_close_failure_by_points_counts_the_closers_own_card_points(
    won: tuple[str, str], expected: int
) -> None:
    """The opponent's tricks do not matter."""
    rules = rules_with("pagat", close_failure="by_points")
    hands = ("JC TC JD QD KD", "AC TD AD QH KH")
    table = Table.at(rules, turned_up="JH", hands=hands, won=won)
    assert table.play("close", "claim").result == ("failed_close", 1, expected)


def test_close_failure_by_points_leaves_out_the_closers_marriages() -> None:
    """32 in tricks and a marriage of 20: still under 33."""
    rules = rules_with("pagat", close_failure="by_points")
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("KS JC JD QC QD", "AC TC AD TD KC"),
        # 3 + 2 + 11 + 10 = 26, and 4 + 2 = 6 more.
        won=("QS JS AH TH", ""),
        marriages=("S", ""),
        known=(["KS"], []),
    )
    assert table.position.card_points[0] == 26
    assert table.points(0) == 46
    assert table.play("close", "claim").result == ("failed_close", 1, 2)


# The last trick of a closed deal


def one_card_each(rules: str | Rules, hands: tuple[str, str], won: tuple[str, str]) -> Table:
    """Seat 0 has closed after the first trick, which was his; each hand has one card left."""
    return Table.at(rules, turned_up="JH", hands=hands, won=won, closed_by=0, at_close=(0, 0))


@each_rule_set(duel=2, last_trick_ten=2, austrian=2, french=2, pagat=3, pagat_auto=3)
def test_the_closer_wins_the_last_trick_and_has_66_exactly(rules: str, expected: int) -> None:
    """Deal 10: success. Seat 1 has 7, all of it taken after the closing."""
    table = one_card_each(rules, ("KS", "JS"), ("AC TC AD TD AS JC JD QS", "KC QC"))
    assert (table.points(0), table.points(1)) == (60, 7)
    table.play("KS", "JS")
    assert table.points(0) == 66
    assert table.result == ("sixty_six", 0, expected)


@each_rule_set(duel=3, last_trick_ten=3, austrian=3, french=1, pagat=3, pagat_auto=3)
def test_the_closer_wins_the_last_trick_and_has_65(rules: str, expected: int) -> None:
    """Deal 10: failed. A closed deal has no bonus for the last trick under any rules."""
    table = one_card_each(rules, ("QD", "JS"), ("AC TC AD TD AS JC JD QS", "KC QC"))
    table.play("QD", "JS")
    assert (table.points(0), table.points(1)) == (65, 7)
    assert table.result == ("failed_close", 1, expected)


@each_rule_set(duel=3, last_trick_ten=3, austrian=3, french=1, pagat=3, pagat_auto=3)
def test_the_opponent_wins_the_last_trick_and_nobody_has_66(rules: str, expected: int) -> None:
    """Deal 10: failed."""
    table = one_card_each(rules, ("JS", "KS"), ("AC TC AD TD AS JC JD QS", "KC QC"))
    table.play("JS", "KS")
    assert (table.points(0), table.points(1)) == (60, 13)
    assert table.result == ("failed_close", 1, expected)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_the_closer_has_failed_even_with_an_unclaimed_66(rules: str) -> None:
    """He forgot to claim, and the opponent took the last trick."""
    table = one_card_each(rules, ("JS", "KS"), ("AC TC AD TD AS KD TS JD", "KC QC"))
    assert table.points(0) == 69
    table.play("JS", "KS")
    assert table.result == ("failed_close", 1, 3)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_an_unclaimed_66_of_the_closer_counts_when_he_takes_the_last_trick(rules: str) -> None:
    table = one_card_each(rules, ("KS", "JS"), ("AC TC AD TD AS KD TS JD", "KC QC"))
    table.play("KS", "JS")
    assert table.result == ("sixty_six", 0, 3 if rules == "pagat" else 2)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_an_opponent_at_66_on_the_last_trick_makes_the_closer_fail(rules: str) -> None:
    table = one_card_each(rules, ("JS", "KS"), ("JC JD", "AC TC AD TD AS KD QS QC"))
    assert table.points(1) == 63
    table.play("JS", "KS")
    assert table.points(1) == 69
    assert table.result == ("failed_close", 1, 3)
