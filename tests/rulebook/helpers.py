"""A deal on the engine, with every card, action and result written as text.

The tests of the rule book set a position or a deck, play some actions, and compare with values
that were worked out by hand::

    table = Table.deal("duel", "KS QS JC AC JD | JS KC QC TC AS | JH")
    table.play("declare-S", "KS", "JS")
    assert table.points(0) == 26
    assert table.legal_cards == ["JC", "AC", "JD", "QD", "QS"]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pytest

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS, action_text, parse_action
from schnapsen_env.cards import CARD_POINTS, NUM_CARDS, card_text, parse_card
from schnapsen_env.position import Position
from schnapsen_env.rules import RULES, Rules, resolve_rules

#: All the cards that are named nowhere else in the position.
REST: Final = "rest"

RULE_SETS: Final = tuple(RULES)
#: The rule sets by what their table says about claims; the tests of claims prove it by play.
AUTOMATIC: Final = ("duel", "french", "pagat_auto")
EXPLICIT: Final = ("last_trick_ten", "austrian", "pagat")

Seat = Literal[0, 1]
Pair = tuple[str, str]


def rules_with(rules: str = "duel", **changes: Any) -> Rules:
    """A named rule set with some fields changed."""
    return replace(RULES[rules], name="custom", **changes)


def each_rule_set(**expected: Any) -> pytest.MarkDecorator:
    """One row of the table of rules: a test for each rule set with the value of its cell.

    The test takes ``rules`` and ``expected``. All six rule sets have to be named.
    """
    if tuple(expected) != RULE_SETS:
        raise ValueError(f"name {RULE_SETS} in this order, not {tuple(expected)}")
    return pytest.mark.parametrize(("rules", "expected"), expected.items(), ids=RULE_SETS)


#: A test that holds for every rule set alike.
every_rule_set = pytest.mark.parametrize("rules", RULE_SETS)


def cards(text: str) -> list[str]:
    """``"AH KH"`` as a list of card texts, in ascending order of id."""
    return sorted(text.split(), key=parse_card)


class Table:
    """One deal on the engine; see the module's text."""

    def __init__(self, rules: str | Rules, record: npt.NDArray[np.int64]) -> None:
        self.rules = resolve_rules(rules)
        self.codes = self.rules.codes()
        self.record = record

    @classmethod
    def deal(cls, rules: str | Rules, deck: str, forehand: Seat = 0) -> Table:
        """A deal from a deck; cards that ``deck`` does not name fill it up in order of id."""
        named = [parse_card(card) for card in deck.replace("|", " ").split()]
        ids = named + [card for card in range(NUM_CARDS) if card not in named]
        record = engine.new_record(0)
        engine.deal_deck(record, np.array(ids, dtype=np.int64), forehand)
        return cls(rules, record)

    @classmethod
    def at(
        cls,
        rules: str | Rules,
        *,
        hands: Pair,
        trump: str = "H",
        turned_up: str | None = None,
        talon: str = "",
        won: Pair = ("", ""),
        leader: Seat = 0,
        lead: str | None = None,
        marriages: Pair = ("", ""),
        declared: str | None = None,
        closed_by: Seat | None = None,
        at_close: tuple[int, int] | None = None,
        **more: Any,
    ) -> Table:
        """A position in the middle of a deal.

        ``won`` holds the cards in each player's tricks; tricks and card points follow from it.
        ``at_close`` is (tricks, points) of the closer's opponent. With ``turned_up`` set and no
        talon named, the talon is all the cards that are named nowhere else. One side of ``won``
        may be ``REST`` instead.
        """
        if turned_up is not None and not talon and REST not in won:
            talon = REST
        groups = {"0": hands[0], "1": hands[1], "talon": talon, "won 0": won[0], "won 1": won[1]}
        placed = {card for text in groups.values() if text != REST for card in text.split()}
        placed |= {card for card in (turned_up, lead) if card is not None}
        rest = [card_text(card) for card in range(NUM_CARDS) if card_text(card) not in placed]
        lists = {name: rest if text == REST else text.split() for name, text in groups.items()}
        won_lists = [lists["won 0"], lists["won 1"]]
        fields: dict[str, Any] = {
            "trump": trump,
            "turned_up": turned_up,
            "hands": [lists["0"], lists["1"]],
            "talon": lists["talon"],
            "closed_by": closed_by,
            "at_close": None,
            "leader": leader,
            "lead": lead,
            "card_points": [sum(CARD_POINTS[parse_card(c)] for c in side) for side in won_lists],
            "tricks": [len(side) // 2 for side in won_lists],
            "marriages": [list(marriages[0]), list(marriages[1])],
            "declared": declared,
            "won": won_lists,
            **more,
        }
        if at_close is not None:
            fields["at_close"] = {"tricks": at_close[0], "points": at_close[1]}
        rule_set = resolve_rules(rules)
        return cls(rule_set, engine.record_of(Position.from_dict(fields), rule_set))

    # What happens

    def play(self, *actions: str) -> Table:
        """Plays actions through the checked entrance of the engine; returns the table itself."""
        for action in actions:
            engine.apply(self.record, self.rules, parse_action(action))
        return self

    def claim_if_needed(self) -> Table:
        """Claims where 66 has to be claimed; elsewhere the deal is expected to be over already."""
        if self.rules.claims != "automatic":
            self.play("claim")
        return self

    def revoke(self, card: str) -> Table:
        engine.revoke(self.record, self.codes, parse_card(card))
        return self

    # What there is to see

    @property
    def legal(self) -> set[str]:
        mask = int(engine.legal(self.record, self.codes))
        return {action_text(action) for action in range(NUM_ACTIONS) if mask >> action & 1}

    @property
    def legal_cards(self) -> list[str]:
        """The legal cards alone, in ascending order of id."""
        return [text for text in map(card_text, range(NUM_CARDS)) if text in self.legal]

    @property
    def position(self) -> Position:
        return engine.position_of(self.record)

    @property
    def to_move(self) -> int:
        position = self.position
        return position.leader if position.lead is None else 1 - position.leader

    def hand(self, seat: Seat) -> list[str]:
        return [card_text(card) for card in sorted(self.position.hands[seat])]

    def known(self, seat: Seat) -> list[str]:
        """The cards of a hand that the other player has seen."""
        return [card_text(card) for card in sorted(self.position.known[seat])]

    def cannot_hold(self, seat: Seat) -> set[str]:
        return {card_text(card) for card in self.position.cannot_hold[seat]}

    @property
    def turned_up(self) -> str | None:
        turned_up = self.position.turned_up
        return None if turned_up is None else card_text(turned_up)

    @property
    def face_down(self) -> int:
        return len(self.position.talon)

    def points(self, seat: Seat) -> int:
        """Points as the rules count them, from what the position says."""
        position = self.position
        if position.tricks[seat] == 0:
            return 0
        trumps = position.trump_suit in position.marriages[seat]
        return position.card_points[seat] + 20 * len(position.marriages[seat]) + 20 * trumps

    @property
    def over(self) -> bool:
        return bool(engine.is_over(self.record))

    @property
    def result(self) -> tuple[str, int | None, int] | None:
        """(end reason, winner or None, game points), or None while the deal runs."""
        result = self.position.result
        assert self.over == (result is not None)
        if result is None:
            return None
        for seat in (0, 1):
            sign = 0 if result.winner is None else 1 if result.winner == seat else -1
            assert engine.game_points(self.record, seat) == sign * result.game_points
        return result.end_reason.text, result.winner, result.game_points
