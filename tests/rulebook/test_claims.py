"""Going out with 66: at the instant where that is automatic, by a claim elsewhere."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.rulebook.helpers import AUTOMATIC, EXPLICIT, Table, each_rule_set

DECK = "AH TH KH AC AD | JC QC JD QD JS | QH"


@each_rule_set(
    duel="never",
    last_trick_ten="any turn",
    austrian="any turn",
    french="never",
    pagat="on lead",
    pagat_auto="never",
)
@pytest.mark.parametrize("closed", [False, True])
def test_claims(rules: str, expected: str, closed: bool) -> None:
    """With however few points: the mask shows when a claim is possible, not whether it is right."""
    table = Table.deal(rules, DECK)
    if closed:
        table.play("close")
    assert ("claim" in table.legal) is (expected != "never")
    table.play("AC")
    assert table.to_move == 1
    assert ("claim" in table.legal) is (expected == "any turn")
    table.play("QC")
    assert table.to_move == 0
    assert ("claim" in table.legal) is (expected != "never")


# Reaching 66


def at_43(rules: str) -> Table:
    """The talon is open and five cards high. Seat 0 has 43 and leads, seat 1 has no trick."""
    return Table.at(
        rules,
        turned_up="JH",
        hands=("AH TH KH QC JC", "QD JD QS JS TC"),
        won=("AS TS AD AC", ""),
    )


@pytest.mark.parametrize("rules", AUTOMATIC)
def test_automatic_the_trick_that_makes_66_ends_the_deal_before_drawing(rules: str) -> None:
    table = at_43(rules).play("AH", "TC")
    assert table.points(0) == 64
    assert not table.over
    assert table.face_down == 3
    table.play("KH", "JS")
    assert table.points(0) == 70
    assert table.result == ("sixty_six", 0, 3)
    assert table.face_down == 3
    assert table.legal == set()


@pytest.mark.parametrize("rules", EXPLICIT)
def test_explicit_66_alone_ends_nothing(rules: str) -> None:
    table = at_43(rules).play("AH", "TC", "KH", "JS")
    assert table.points(0) == 70
    assert not table.over
    table.play("TH", "JD")
    assert table.points(0) == 82
    assert not table.over


# Right claims


def claimable(rules: str, points: Literal[65, 66]) -> Table:
    """Seat 0 has all four tricks so far and 65 or 66 points; the last draw is still to come."""
    last, other = ("QC", "KC") if points == 65 else ("KC", "QC")
    return Table.at(
        rules,
        turned_up="JH",
        hands=(f"JC QD TD JS {other}", "JD QS QH KH TH"),
        talon="TC",
        # 44 for the aces, 10, and 4 + 4 + 4 or 4 + 4 + 3.
        won=(f"AS AD AC AH TS KS KD {last}", ""),
    )


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_claim_with_66_is_right(rules: str) -> None:
    table = claimable(rules, 66)
    assert table.points(0) == 66
    assert table.play("claim").result == ("sixty_six", 0, 3)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_claim_with_65_is_wrong(rules: str) -> None:
    table = claimable(rules, 65)
    assert table.points(0) == 65
    assert table.play("claim").result == ("wrong_claim", 1, 3)


@pytest.mark.parametrize("rules", ["last_trick_ten", "austrian"])
def test_any_turn_includes_the_turn_to_reply(rules: str) -> None:
    table = claimable(rules, 66).play("JC", "TH", "JD")
    assert table.to_move == 0
    assert table.play("claim").result == ("sixty_six", 0, 2)


@pytest.mark.parametrize("rules", ["last_trick_ten", "austrian"])
def test_the_card_on_the_table_does_not_count(rules: str) -> None:
    """65, and the reply would bring more: the claim before it is wrong all the same."""
    table = claimable(rules, 65).play("JS", "QS", "JD")
    assert table.to_move == 0
    assert table.play("claim").result == ("wrong_claim", 1, 2)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_right_claim_after_declaring(rules: str) -> None:
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("KC QC JC JD JS", "QD QS TH KH QH"),
        talon="TD",
        won=("AS AD TS TC KS KD", "AC AH"),
    )
    assert table.points(0) == 50
    assert table.play("declare-C", "claim").result == ("sixty_six", 0, 2)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_the_opponents_unclaimed_66_does_not_matter(rules: str) -> None:
    """Both sit on 66; whoever has the turn may claim."""
    table = Table.at(
        rules,
        hands=("KC", "KD"),
        # 11 + 10 + 4 + 3 + 10 + 4 + 2 + 2 = 46, and a marriage; 66 for the other cards.
        won=("AS TS KS QS TH KH JH JD", "AH QH AC TC QC JC AD TD QD JS"),
        marriages=("S", ""),
    )
    assert (table.points(0), table.points(1)) == (66, 66)
    assert table.play("claim").result == ("sixty_six", 0, 1)


# Wrong claims

MIXED_DECK = "JC AS TS KH AH | AC JS JD QD TD | JH | QH KD KS QS TC QC KC TH AD"


@each_rule_set(duel=None, last_trick_ten=3, austrian=3, french=None, pagat=3, pagat_auto=None)
def test_wrong_claim_against_an_opponent_without_a_trick(rules: str, expected: int | None) -> None:
    """Whose trick counts is the opponent's: the claimer may have one."""
    for before in ((), ("AS", "JS")):
        table = Table.deal(rules, MIXED_DECK).play(*before)
        if expected is None:
            assert "claim" not in table.legal
        else:
            assert table.play("claim").result == ("wrong_claim", 1, expected)


@each_rule_set(duel=None, last_trick_ten=2, austrian=2, french=None, pagat=2, pagat_auto=None)
def test_wrong_claim_against_an_opponent_with_a_trick(rules: str, expected: int | None) -> None:
    table = Table.deal(rules, MIXED_DECK).play("JC", "AC", "JS", "AS")
    assert tuple(table.position.tricks) == (1, 1)
    if expected is None:
        assert "claim" not in table.legal
    else:
        assert table.play("claim").result == ("wrong_claim", 1, expected)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_wrong_claim_by_the_closer_is_a_failed_close(rules: str) -> None:
    """The opponent has a trick by now, but had none at the closing: 3, not 2."""
    table = Table.deal(rules, MIXED_DECK).play("close", "JC", "AC", "JS", "AS")
    assert tuple(table.position.tricks) == (1, 1)
    assert table.play("claim").result == ("failed_close", 1, 3)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_wrong_claim_by_the_closer_against_a_trick_at_the_closing(rules: str) -> None:
    table = Table.deal(rules, MIXED_DECK).play("JC", "AC", "JS", "AS", "close", "claim")
    assert table.result == ("failed_close", 1, 2)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_wrong_claim_by_the_closers_opponent_is_an_ordinary_wrong_claim(rules: str) -> None:
    """It is worth 3 while the closer has no trick, else 2."""
    table = Table.deal(rules, MIXED_DECK).play("close", "JC", "AC", "claim")
    assert table.result == ("wrong_claim", 0, 3)
    table = Table.deal(rules, MIXED_DECK).play("close", "AS", "JS", "JC", "AC", "claim")
    assert table.result == ("wrong_claim", 0, 2)


@pytest.mark.parametrize("rules", EXPLICIT)
@pytest.mark.parametrize(("at_close", "game_points"), [((1, 21), 2), ((0, 0), 3)])
def test_a_right_claim_by_the_closers_opponent_is_a_failed_close(
    rules: str, at_close: tuple[int, int], game_points: int
) -> None:
    table = Table.at(
        rules,
        turned_up="JH",
        hands=("QC", "KC"),
        won=("JC JD JS QS", "AS AD AC AH TS TD KS KD"),
        closed_by=0,
        at_close=at_close,
        leader=1,
    )
    assert table.points(1) == 72
    assert table.play("claim").result == ("failed_close", 1, game_points)


@pytest.mark.parametrize("rules", EXPLICIT)
def test_a_pending_marriage_is_no_help_to_a_claim(rules: str) -> None:
    table = Table.deal(rules, "KH QH JC AD JD | AH KC QC TC AC | JH").play("declare-H")
    assert table.play("claim").result == ("wrong_claim", 1, 3)
