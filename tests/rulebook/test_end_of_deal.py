"""The end of a deal that nobody closed, and what it is worth."""

from __future__ import annotations

import pytest

from tests.rulebook.helpers import (
    EXPLICIT,
    REST,
    Table,
    each_rule_set,
    every_rule_set,
    rules_with,
)

# A win by 66


@each_rule_set(duel=1, last_trick_ten=1, austrian=1, french=1, pagat=1, pagat_auto=1)
def test_value_against_exactly_33(rules: str, expected: int) -> None:
    """Deal 5."""
    table = Table.at(
        rules,
        hands=("JH KS KC QD", "QS JS JD KD"),
        won=("AS TS AC TC AD TD", "AH TH KH QH QC JC"),
    )
    assert (table.points(0), table.points(1)) == (63, 33)
    assert table.play("KS", "JS").claim_if_needed().result == ("sixty_six", 0, expected)


@each_rule_set(duel=2, last_trick_ten=2, austrian=2, french=2, pagat=2, pagat_auto=2)
def test_value_against_32(rules: str, expected: int) -> None:
    """Deal 5."""
    table = Table.at(
        rules,
        hands=("JH KS KC QD", "QS JS QC KD"),
        won=("AS TS AC TC AD TD", "AH TH KH QH JC JD"),
    )
    assert (table.points(0), table.points(1)) == (63, 32)
    assert table.play("KS", "JS").claim_if_needed().result == ("sixty_six", 0, expected)


@each_rule_set(duel=3, last_trick_ten=3, austrian=3, french=3, pagat=3, pagat_auto=3)
def test_value_against_a_marriage_without_a_trick(rules: str, expected: int) -> None:
    """Deal 5: a 20 declared, but no trick."""
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("AH TH KH KC KD", "KS JC JD QC QD"),
        won=("AS QS AC TC AD TD", ""),
        marriages=("", "S"),
    )
    assert (table.points(0), table.points(1)) == (56, 0)
    assert table.play("AH", "JC").claim_if_needed().result == ("sixty_six", 0, expected)


@each_rule_set(duel=1, last_trick_ten=1, austrian=1, french=2, pagat=1, pagat_auto=1)
def test_schneider_by(rules: str, expected: int) -> None:
    """Deal 5: 13 in tricks and a 20 are 33 points, or 13 where marriages do not protect."""
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("TC KC KD KH QH", "KS JS JD QD QC"),
        won=("TS QS AD TD AH TH", "AC JC"),
        marriages=("", "S"),
    )
    assert (table.points(0), table.points(1)) == (55, 33)
    assert table.play("TC", "QC").claim_if_needed().result == ("sixty_six", 0, expected)


@each_rule_set(duel=2, last_trick_ten=2, austrian=2, french=2, pagat=2, pagat_auto=2)
def test_a_trick_of_few_points_is_a_trick(rules: str, expected: int) -> None:
    """Two jacks: 4 points, and so 2 and not 3."""
    table = Table.at(
        rules,
        turned_up="KH",
        hands=("AH TH QH KC QC", "QD KD QS KS TC"),
        won=("AS TS AC AD", "JC JD"),
    )
    assert table.points(1) == 4
    table.play("AH", "TC", "QH", "QS").claim_if_needed()
    assert table.points(0) == 43 + 21 + 6
    assert table.result == ("sixty_six", 0, expected)


# Played out with the talon used up


@each_rule_set(
    duel=("last_trick", 0, 1),
    last_trick_ten=("drawn", None, 0),
    austrian=("last_trick", 0, 1),
    french=("last_trick", 0, 1),
    pagat=("last_trick", 0, 1),
    pagat_auto=("last_trick", 0, 1),
)
def test_exhausted_and_nobody_out(rules: str, expected: tuple[str, int | None, int]) -> None:
    """55 against 65. The ten card points for the last trick make it 65 : 65, and that is drawn."""
    table = Table.at(rules, hands=("AC", "JC"), won=("AD TD AH TH", REST))
    assert (table.points(0), table.points(1)) == (42, 65)
    assert table.play("AC", "JC").result == expected
    bonus = 10 if rules == "last_trick_ten" else 0
    assert (table.points(0), table.points(1)) == (55 + bonus, 65)


@each_rule_set(duel=0, last_trick_ten=10, austrian=0, french=0, pagat=0, pagat_auto=0)
@pytest.mark.parametrize("winner", [0, 1])
def test_last_trick_bonus(rules: str, expected: int, winner: int) -> None:
    hands = ("AC", "JC") if winner == 0 else ("JC", "AC")
    table = Table.at(rules, hands=hands, won=("AD TD AH TH", REST))
    table.play(*hands)
    card_points = [42, 65]
    card_points[winner] += 13 + expected
    assert list(table.position.card_points) == card_points


def test_last_trick_bonus_is_no_part_of_an_earlier_trick() -> None:
    table = Table.at("last_trick_ten", hands=("AC JD", "JC QD"), won=("AD TD AH TH", REST))
    table.play("AC", "JC")
    assert table.position.card_points[0] == 55


def test_last_trick_bonus_may_bring_a_player_out() -> None:
    """42 + 13 are 55, and 11 more are 66: at once where that is automatic."""
    for bonus, reason in ((10, "last_trick"), (11, "sixty_six")):
        rules = rules_with("duel", last_trick_bonus=bonus)
        table = Table.at(rules, hands=("AC", "JC"), won=("AD TD AH TH", REST)).play("AC", "JC")
        assert table.result == (reason, 0, 1)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_played_out_the_winner_of_the_last_trick_is_taken_to_have_claimed(rules: str) -> None:
    """66 exactly with the last trick (76 with the ten for it)."""
    table = Table.at(rules, hands=("AC", "JC"), won=("AD AH TD TH JD JH QD KH", REST))
    assert (table.points(0), table.points(1)) == (53, 54)
    assert table.play("AC", "JC").result == ("sixty_six", 0, 1)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_played_out_the_claim_for_the_last_trick_is_worth_2_against_fewer_than_33(
    rules: str,
) -> None:
    """Unclaimed until the end; the last trick alone would be worth 1."""
    table = Table.at(rules, hands=("AC", "JC"), won=(REST, "AH TH KH QH"))
    assert table.points(1) == 28
    assert table.play("AC", "JC").result == ("sixty_six", 0, 2)


@each_rule_set(
    duel=None,
    last_trick_ten=("sixty_six", 1, 1),
    austrian=("last_trick", 0, 1),
    french=None,
    pagat=("last_trick", 0, 1),
    pagat_auto=None,
)
def test_played_out_and_the_other_player_has_66(
    rules: str, expected: tuple[str, int, int] | None
) -> None:
    """54 (64 with the ten) takes the last trick against an unclaimed 66."""
    if expected is None:
        return  # 66 is out at once there.
    table = Table.at(rules, hands=("AC", "JC"), won=("AD TD AH KH QH JH", REST))
    assert (table.points(0), table.points(1)) == (41, 66)
    assert table.play("AC", "JC").result == expected


def test_played_out_both_have_66_and_the_last_trick_decides() -> None:
    """``last_trick_ten``: the winner of the last trick comes first."""
    table = Table.at(
        "last_trick_ten",
        hands=("AC", "JC"),
        won=("AS TS KS QS TH KH JH JD", REST),
        marriages=("S", ""),
    )
    assert (table.points(0), table.points(1)) == (66, 61)
    assert table.play("AC", "JC").result == ("sixty_six", 0, 1)
    table = Table.at(
        "last_trick_ten",
        hands=("JC", "AC"),
        won=("AS TS KS QS TH KH JH JD", REST),
        marriages=("S", ""),
    )
    assert table.play("JC", "AC").result == ("sixty_six", 1, 1)


@every_rule_set
def test_nothing_is_legal_after_the_end(rules: str) -> None:
    table = Table.at(rules, hands=("AC", "JC"), won=("AD TD AH TH", REST)).play("AC", "JC")
    assert table.legal == set()


def test_automatic_claims_with_claim_or_draw_leave_a_draw() -> None:
    rules = rules_with("duel", exhausted="claim_or_draw")
    table = Table.at(rules, hands=("AC", "JC"), won=("AD TD AH TH", REST)).play("AC", "JC")
    assert table.result == ("drawn", None, 0)
