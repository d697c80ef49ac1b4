"""The last tricks with both hands known: looking ahead to the end.

Once the talon is exhausted, a player who has counted knows the other hand, and five tricks are few
enough to think through. The rule-of-thumb player does so here. It has neither a record nor the rule
set, so it takes the usual rules: beat if you can, else follow, else trump; 66 ends the deal. The
exact value of any position under any rules is :mod:`schnapsen_env.solver`'s business.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from numba import types

from schnapsen_env.cards import (
    KING,
    NUM_CARDS,
    NUM_RANKS,
    QUEEN,
    SUIT_SET,
)
from schnapsen_env.compiled import compiled, compiled_recursive
from schnapsen_env.engine import record as r
from schnapsen_env.engine.play import dutiful_replies, reply_wins
from schnapsen_env.engine.score import (
    POINTS_OF,
    has_66,
    marriage_value,
    value_against,
)
from schnapsen_env.rules import LAST_TRICK_VALUE, code_of

_MUST_BEAT: Final = 1
_BY_SUIT: Final = code_of("trick_by", "suit")
#: More game points than any deal is worth.
MORE_THAN_ALL: Final = 4


class Side(NamedTuple):
    """One player in the last tricks."""

    hand: int
    #: Card points and marriages; they count once there is a trick.
    points: int
    tricks: int
    #: Suits of the marriages declared, a set.
    marriages: int
    #: Game points for going out where somebody has closed; 0 where nobody has, and they depend on
    #: the other side's points.
    stake: int
    #: 1 for the player who has closed.
    closed: int


_SIDE: Final[Any] = types.NamedUniTuple(types.int64, len(Side._fields), Side)


@compiled
def in_marriage(hand: int, marriages: int, card: int) -> bool:
    """Whether ``card`` is half of a marriage in ``hand`` that is not among the declared ones."""
    suit, rank = card // NUM_RANKS, card % NUM_RANKS
    if rank != QUEEN and rank != KING:
        return False
    partner = NUM_RANKS * suit + QUEEN + KING - rank
    return hand >> partner & 1 == 1 and marriages >> suit & 1 == 0


@compiled
def out(side: Side) -> bool:
    """Whether ``side`` has 66."""
    return has_66(side.tricks, side.points)


@compiled
def going_out(winner: Side, loser: Side) -> int:
    """Game points that ``winner`` gets for going out now."""
    if winner.stake:
        return winner.stake
    return value_against(loser.tricks, loser.points)


@compiled
def last_trick(winner: Side, loser: Side) -> int:
    """Game points of the winner of the last trick if it leaves nobody out; a closer has failed."""
    if winner.closed:
        return -loser.stake
    return winner.stake if loser.closed else LAST_TRICK_VALUE


@compiled
def takes(side: Side, gain: int) -> Side:
    """``side`` after winning a trick worth ``gain``."""
    points, tricks = side.points + gain, side.tricks + 1
    return Side(side.hand, points, tricks, side.marriages, side.stake, side.closed)


@compiled
def plays(side: Side, card: int) -> Side:
    """``side`` without ``card``."""
    hand = side.hand & ~(1 << card)
    return Side(hand, side.points, side.tricks, side.marriages, side.stake, side.closed)


@compiled
def declares(side: Side, suit: int, trump_suit: int) -> Side:
    """``side`` after declaring the marriage of ``suit``."""
    points = side.points + marriage_value(suit, trump_suit)
    marriages = side.marriages | 1 << suit
    return Side(side.hand, points, side.tricks, marriages, side.stake, side.closed)


@compiled
def next_card(cards: int, led: int, trump_suit: int) -> int:
    """Which card to try next: a lead from the top and trumps first, a reply from the bottom."""
    if led != r.NONE:
        card = 0
        while not cards >> card & 1:
            card += 1
        return card
    trumps = cards & (SUIT_SET << (NUM_RANKS * trump_suit))
    cards = trumps if trumps else cards
    card = NUM_CARDS - 1
    while not cards >> card & 1:
        card -= 1
    return card


@compiled_recursive(types.int64(_SIDE, _SIDE, *[types.int64] * 5))
def best_value(
    mover: Side, other: Side, led: int, cards: int, trump_suit: int, alpha: int, beta: int
) -> int:
    """Game points for ``mover`` with best play on both sides, exact inside (``alpha``, ``beta``).

    Args:
        mover: the player to move.
        other: the other player; if it has led, without the card led.
        led: the card to reply to, or -1 on lead.
        cards: what ``mover`` may choose from. A king or queen is led with its marriage declared,
            which can only help.
        trump_suit: the trump suit.
        alpha: what ``mover`` can have elsewhere.
        beta: what the other player would not allow.
    """
    most = going_out(mover, other)
    if led == r.NONE:
        # Both sides only gain points and tricks, so no later win is worth more than one now.
        least = -going_out(other, mover)
        if least >= beta or most <= alpha:
            return least if least >= beta else most
        alpha, beta = max(alpha, least), min(beta, most)
    best = -MORE_THAN_ALL
    while cards and best < beta:
        card = next_card(cards, led, trump_suit)
        cards &= ~(1 << card)
        rest = plays(mover, card)
        if led == r.NONE:
            if in_marriage(mover.hand, mover.marriages, card):
                rest = declares(rest, card // NUM_RANKS, trump_suit)
                if out(rest):
                    return most
            replies = dutiful_replies(other.hand, card, trump_suit, _MUST_BEAT)
            value = -best_value(other, rest, card, replies, trump_suit, -beta, -alpha)
        else:
            wins = reply_wins(led, card, trump_suit, _BY_SUIT)
            gain = POINTS_OF[led] + POINTS_OF[card]
            winner = takes(rest, gain) if wins else takes(other, gain)
            loser = other if wins else rest
            if out(winner):
                value = going_out(winner, loser)
            elif winner.hand == 0:
                value = last_trick(winner, loser)
            elif wins:
                value = best_value(winner, loser, r.NONE, winner.hand, trump_suit, alpha, beta)
            else:
                value = best_value(winner, loser, r.NONE, winner.hand, trump_suit, -beta, -alpha)
            value = value if wins else -value
        best = max(best, value)
        alpha = max(alpha, best)
    return best
