"""Marriages: what they are worth, when they count, and what they show."""

from __future__ import annotations

import pytest

from schnapsen_env.position import Position
from tests.rulebook.helpers import AUTOMATIC, EXPLICIT, Table, cards, every_rule_set


@every_rule_set
@pytest.mark.parametrize(("suit", "value"), [("S", 20), ("H", 40)])
def test_a_marriage_is_worth_20_and_40_in_trumps(rules: str, suit: str, value: int) -> None:
    table = Table.at(
        rules,
        turned_up="JH",
        hands=(f"K{suit} Q{suit} JC JD JS", "AC TC AD TD AS"),
        won=("QC KC", ""),
    )
    assert table.points(0) == 7
    table.play(f"declare-{suit}")
    assert table.points(0) == 7 + value
    assert table.points(1) == 0


@every_rule_set
def test_a_marriage_counts_only_from_the_first_own_trick_on(rules: str) -> None:
    """Pending until then, also when the tricks that follow are won much later."""
    table = Table.deal(rules, "KS QS JC AD JD | AS KC QC TC JS | JH | TD KD").play("declare-S")
    assert table.points(0) == 0
    table.play("QS", "AS")
    assert (table.points(0), table.points(1)) == (0, 14)
    table.play("KC", "AD" if rules == "french" else "JC")
    if rules == "french":  # An ace of another suit takes the king there.
        assert table.points(0) == 20 + 15
    else:
        assert table.points(0) == 0


@every_rule_set
def test_a_marriage_counts_at_once_when_its_own_card_wins_the_first_trick(rules: str) -> None:
    table = Table.deal(rules, "KS QS JC AD JD | JS KC QC TC AC | JH").play("declare-S", "KS", "JS")
    assert table.points(0) == 20 + 6


@every_rule_set
def test_a_trickless_declarer_ends_with_nothing(rules: str) -> None:
    """Deal 2: 40 declared on trick 1 and no trick after it: 0 points, and the others win 3."""
    table = Table.deal(rules, "KH QH JC JD JS | AH TH AC AD AS | JH | TC QC TD QD TS QS KC KD KS")
    table.play("declare-H", "KH", "AH")
    assert table.points(1) == 15
    table.play("AC", "JC", "AD", "JD", "AS", "JS")
    assert table.points(1) == 54
    table.play("TC", "QC").claim_if_needed()
    assert table.points(1) == 67
    assert table.points(0) == 0
    assert table.result == ("sixty_six", 1, 3)


def thirty_and_a_trick(rules: str) -> Table:
    """The talon is used up. Seat 0 has 30 and the trump marriage; seat 1 has 57 and the ace."""
    return Table.at(
        rules,
        hands=("KH QH QC KD", "AH QD QS JH"),
        won=("AS AC KS KC", "TS TC TD TH AD JS JC JD"),
    )


@pytest.mark.parametrize("rules", AUTOMATIC)
def test_declaring_ends_the_deal_before_the_reply(rules: str) -> None:
    """Deal 1: 30 and a trick, 40 declared: out with 70, though the reply would make 66 as well."""
    table = thirty_and_a_trick(rules).play("declare-H")
    assert table.points(0) == 70
    assert table.result == ("sixty_six", 0, 1)
    assert table.hand(0) == cards("KH QH QC KD")
    assert table.legal == set()


@pytest.mark.parametrize("rules", EXPLICIT)
def test_declaring_lets_the_declarer_claim_before_the_reply(rules: str) -> None:
    """Deal 1 where 66 has to be claimed: now, or the reply may bring the opponent out."""
    table = thirty_and_a_trick(rules).play("declare-H")
    assert not table.over
    assert table.play("claim").result == ("sixty_six", 0, 1)
    late = thirty_and_a_trick(rules).play("declare-H", "QH", "AH")
    assert (late.points(0), late.points(1)) == (70, 57 + 14)
    assert late.play("claim").result == ("sixty_six", 1, 1)


@every_rule_set
def test_both_leads_are_offered_after_a_marriage(rules: str) -> None:
    """Deal 8: 40 and a trick, 20 declared: the king over a jack makes 66, the queen 65."""

    def sixty_declared() -> Table:
        return Table.at(
            rules,
            turned_up="JH",
            hands=("KS QS JC JD AC", "JS QC QD KC KD"),
            won=("TC TD TH TS", ""),
        ).play("declare-S")

    table = sixty_declared()
    assert table.points(0) == 60
    assert table.legal_cards == cards("QS KS")
    with_the_king = sixty_declared().play("KS", "JS")
    assert with_the_king.points(0) == 66
    assert with_the_king.claim_if_needed().result == ("sixty_six", 0, 3)
    with_the_queen = sixty_declared().play("QS", "JS")
    assert with_the_queen.points(0) == 65
    assert not with_the_queen.over


@every_rule_set
def test_both_cards_are_known_until_they_are_played(rules: str) -> None:
    """Deal 9: the opponent has seen king and queen."""
    table = Table.deal(rules, "KS QS AC AD JD | JS KC QC TC JC | JH").play("declare-S")
    assert table.known(0) == cards("KS QS")
    assert table.known(1) == []
    table.play("KS", "JS")
    assert table.known(0) == ["QS"]
    table.play("QS", "JC")
    assert table.known(0) == []


@every_rule_set
def test_marriages_may_be_declared_in_the_strict_phase(rules: str) -> None:
    closed = Table.deal(rules, "KS QS AC AD JD | JS KC QC TC JC | JH").play("close")
    assert "declare-S" in closed.legal
    used_up = thirty_and_a_trick(rules)
    assert "declare-H" in used_up.legal


@every_rule_set
def test_both_players_may_declare(rules: str) -> None:
    table = Table.deal(rules, "KS QS JC JD TD | AS KC QC TC JS | JH | TH KD AC AD")
    table.play("declare-S", "QS", "AS", "declare-C", "KC", "JC")
    assert [list(suits) for suits in table.position.marriages] == [[3], [0]]
    assert table.points(1) == 14 + 20 + 6


@every_rule_set
def test_a_queen_alone_is_no_marriage(rules: str) -> None:
    table = Table.deal(rules, "QS AC AD JD TS | KS JS KC TC JC | JH")
    assert "declare-S" not in table.legal


def test_the_same_marriage_cannot_be_declared_twice() -> None:
    """It would need both cards in hand after one of them was led: no such position exists."""
    fields = thirty_and_a_trick("duel").position.to_dict()
    fields["marriages"] = [["H", "H"], []]
    with pytest.raises(ValueError, match="declared a marriage twice"):
        Position.from_dict(fields)
