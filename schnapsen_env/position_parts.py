"""The parts of a position, not yet checked: what there is to say of one moment of a deal."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeVar

from schnapsen_env.cards import marriage_value

_T = TypeVar("_T")
Pair = tuple[_T, _T]


class EndReason(enum.IntEnum):
    """Why a deal ended."""

    RUNNING = 0
    SIXTY_SIX = 1
    LAST_TRICK = 2
    FAILED_CLOSE = 3
    WRONG_CLAIM = 4
    REVOKE = 5
    DRAWN = 6
    ILLEGAL_ACTION = 7

    @property
    def text(self) -> str:
        """The name in infos and records, such as ``"sixty_six"``."""
        return self.name.lower()


@dataclass(frozen=True)
class AtClose:
    """What the closer's opponent had at the moment of closing."""

    #: The rules ask only whether there were any, so 1 may stand for more.
    tricks: int
    points: int
    #: Points without marriages. They matter only where a rule set values a close at the closing and
    #: compares card points with 33; everywhere else ``points`` is all that the rules read.
    card_points: int


@dataclass(frozen=True)
class Result:
    """How a finished deal came out: ``winner`` is None when it was drawn."""

    winner: int | None
    game_points: int
    end_reason: EndReason


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The fields of a :class:`~schnapsen_env.position.Position`, cards as ids, pairs by seat."""

    trump_suit: int
    turned_up: int | None
    hands: Pair[tuple[int, ...]]
    #: Face-down cards in drawing order; those that lie under a closed talon too.
    talon: tuple[int, ...]
    closed_by: int | None = None
    at_close: AtClose | None = None
    leader: int
    #: The card led to the current trick, no longer in the hand.
    lead: int | None = None
    card_points: Pair[int] = (0, 0)
    tricks: Pair[int] = (0, 0)
    marriages: Pair[tuple[int, ...]] = ((), ())
    #: The suit declared for the coming lead.
    declared: int | None = None
    #: Cards won; None if unknown, then ``card_points`` are taken as given.
    won: Pair[tuple[int, ...]] | None = None
    #: Cards in each hand that the other player knows.
    known: Pair[tuple[int, ...]] = ((), ())
    #: Cards that each player's replies in the strict phase rule out.
    cannot_hold: Pair[tuple[int, ...]] = ((), ())
    #: The last completed trick: the card led and the reply.
    last_trick: Pair[int] | None = None
    forehand: int
    match_score: Pair[int] = (0, 0)
    #: Set once the deal is over.
    result: Result | None = None

    @property
    def to_move(self) -> int:
        """The seat to move."""
        return self.leader if self.lead is None else 1 - self.leader

    @property
    def talon_state(self) -> str:
        """``"OPEN"``, ``"CLOSED"`` or ``"EXHAUSTED"``."""
        if self.closed_by is not None:
            return "CLOSED"
        return "OPEN" if self.talon else "EXHAUSTED"

    def points(self, seat: int) -> int:
        """Points toward 66 of ``seat``; marriages count once it has won a trick."""
        if self.tricks[seat] == 0:
            return 0
        return self.card_points[seat] + self.marriage_points(seat)

    def marriage_points(self, seat: int) -> int:
        """What the marriages of ``seat`` are worth, pending or not."""
        return sum(marriage_value(suit, self.trump_suit) for suit in self.marriages[seat])
