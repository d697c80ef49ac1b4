"""A player of rules of thumb: what a good club player does without calculating.

It decides from its own :class:`~schnapsen_env.view.View` and nothing else. Each rule of thumb is
one function; :func:`heuristic_action` asks them in order. How much each is worth was measured, see
``docs/heuristic.md``.

The player does not know the rule set. It plans for the usual one (whoever cannot beat must follow,
whoever cannot follow must trump) and never plays what its mask forbids.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE
from schnapsen_env.cards import (
    ALL_CARDS,
    CARD_POINTS,
    KING,
    MARRIAGE_SET,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    QUEEN,
    SUIT_SET,
    TRUMP_MARRIAGE_POINTS,
)
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import count, lowest
from schnapsen_env.view import View

_POINTS: Final = np.array(CARD_POINTS, dtype=np.int64)

#: Points that a forced reply brings on the average; forced replies are mostly low cards.
_REPLY_POINTS: Final = 5.5
#: Close if the hand promises this many points.
_CLOSE_FROM: Final = 66.0


# ------------------------------------------------------------------------------- counting cards


@compiled
def suit_set(suit: int) -> int:
    """All cards of a suit."""
    return SUIT_SET << (NUM_RANKS * suit)


@compiled
def above(card: int) -> int:
    """The cards of the same suit that beat ``card``."""
    return suit_set(card // NUM_RANKS) & ~((2 << card) - 1)


@compiled
def may_hold(seen: View) -> int:
    """The cards that the other player may hold, as far as the player can tell."""
    return (seen.cards.unseen & ~seen.cards.other_cannot_hold) | seen.cards.other_known


@compiled
def chance_of_none(wanted: int, among: int, drawn: int) -> float:
    """The chance that ``drawn`` cards out of ``among`` contain none of ``wanted`` of them."""
    chance = 1.0
    for i in range(drawn):
        if among - i > 0:
            chance *= max(among - wanted - i, 0) / (among - i)
    return chance


@compiled
def hand_size_of_other(seen: View) -> int:
    """How many cards the other player holds."""
    return count(seen.cards.hand) - (0 if seen.cards.led == r.NONE else 1)


@compiled
def chance_lead_wins(seen: View, card: int, trumps_drawn: int) -> float:
    """The chance that ``card``, led in the strict phase, wins its trick.

    ``trumps_drawn`` is how many rounds of trumps have been led before it in the plan.
    """
    others = may_hold(seen)
    if others & above(card):
        return 0.0
    trump_suit = seen.table.trump_suit
    suit = card // NUM_RANKS
    trumps = count(others & suit_set(trump_suit))
    if suit == trump_suit or trumps <= trumps_drawn:
        return 1.0
    in_suit = count(others & suit_set(suit))
    among, held = count(others), hand_size_of_other(seen)
    void = chance_of_none(in_suit, among, held)
    trumpless = chance_of_none(trumps - trumps_drawn, among, held)
    return 1.0 - void * (1.0 - trumpless)


@compiled
def promised_points(seen: View) -> float:
    """The points that the hand should reach by leading its winners in the strict phase."""
    trump_suit = seen.table.trump_suit
    total = float(seen.tally.own_points + seen.tally.own_pending)
    hand = seen.cards.hand
    trumps_led = 0
    for rank in range(NUM_RANKS):  # trumps first, from the top
        card = NUM_RANKS * trump_suit + NUM_RANKS - 1 - rank
        if hand >> card & 1 and chance_lead_wins(seen, card, 0) == 1.0:
            total += _POINTS[card] + _REPLY_POINTS
            trumps_led += 1
    for card in range(NUM_CARDS):
        if hand >> card & 1 and card // NUM_RANKS != trump_suit:
            chance = chance_lead_wins(seen, card, trumps_led)
            total += chance * chance * (_POINTS[card] + _REPLY_POINTS)
    return total + marriage_points_in_hand(seen)


@compiled
def marriage_points_in_hand(seen: View) -> int:
    """What the marriages in hand would still bring."""
    worth = 0
    for suit in range(NUM_SUITS):
        pair = MARRIAGE_SET << (NUM_RANKS * suit)
        if seen.cards.hand & pair == pair and not seen.table.own_marriages >> suit & 1:
            worth += TRUMP_MARRIAGE_POINTS if suit == seen.table.trump_suit else 20
    return worth


# --------------------------------------------------------------------------------- what to keep


@compiled
def keeping_value(seen: View, card: int) -> int:
    """How much the player would rather keep ``card``: its points, and what it may still do."""
    suit, rank = card // NUM_RANKS, card % NUM_RANKS
    value = int(_POINTS[card])
    if suit == seen.table.trump_suit:
        value += 10
    if rank in (KING, QUEEN):
        partner = NUM_RANKS * suit + (QUEEN if rank == KING else KING)
        still_to_declare = not seen.table.own_marriages >> suit & 1
        if seen.cards.hand >> partner & 1 and still_to_declare:
            value += 20
        elif seen.cards.unseen >> partner & 1 and seen.table.talon_state == r.OPEN:
            value += 3
    return value


@compiled
def least_valuable(seen: View, cards: int) -> int:
    """The card of a set that is missed least."""
    best, least = -1, 1_000
    for card in range(NUM_CARDS):
        if cards >> card & 1 and keeping_value(seen, card) < least:
            best, least = card, keeping_value(seen, card)
    return best


@compiled
def most_points(cards: int) -> int:
    """The card of most card points of a set."""
    best = -1
    for card in range(NUM_CARDS):
        if cards >> card & 1 and (best < 0 or _POINTS[card] > _POINTS[best]):
            best = card
    return best


# -------------------------------------------------------------------------------- rules of thumb


@compiled
def should_close(seen: View) -> bool:
    """Close when the hand promises 66, and the opponent is not about to lose more by going on."""
    return seen.legal >> CLOSE & 1 == 1 and promised_points(seen) >= _CLOSE_FROM


@compiled
def marriage_to_declare(seen: View) -> int:
    """Declare a marriage whenever there is one, trumps first; -1 if there is none."""
    declarable = seen.legal >> FIRST_DECLARE & ((1 << NUM_SUITS) - 1)
    if declarable >> seen.table.trump_suit & 1:
        return FIRST_DECLARE + seen.table.trump_suit
    return FIRST_DECLARE + lowest(declarable) if declarable else -1


@compiled
def lead_in_open_talon(seen: View, cards: int) -> int:
    """Lead the card that is missed least, and hold back what the other could profit from."""
    return least_valuable(seen, cards)


@compiled
def lead_in_strict_phase(seen: View, cards: int) -> int:
    """Lead sure winners, trumps before plain suits while the other may still trump; else low."""
    trump_suit = seen.table.trump_suit
    others = may_hold(seen)
    best, best_score = -1, 0.0
    for card in range(NUM_CARDS):
        if not cards >> card & 1:
            continue
        chance = chance_lead_wins(seen, card, 0)
        score = chance * (_POINTS[card] + _REPLY_POINTS) - (1.0 - chance) * (_POINTS[card] + 6.0)
        is_trump = card // NUM_RANKS == trump_suit
        if is_trump and chance == 1.0 and others & suit_set(trump_suit):
            score += 20.0
        elif is_trump and chance < 1.0:
            score -= 4.0
        if best < 0 or score > best_score:
            best, best_score = card, score
    return best


@compiled
def winning_replies(seen: View, cards: int) -> int:
    """The cards of a set that win the trick on the table."""
    led = seen.cards.led
    winners = cards & above(led)
    if led // NUM_RANKS != seen.table.trump_suit:
        winners |= cards & suit_set(seen.table.trump_suit)
    return winners


@compiled
def reply_that_goes_out(seen: View, winners: int) -> int:
    """A winning card that makes 66 at once, or -1."""
    card = most_points(winners)
    if card < 0:
        return -1
    gained = _POINTS[card] + _POINTS[seen.cards.led] + seen.tally.own_pending
    return card if seen.tally.own_points + gained >= 66 else -1


@compiled
def reply_in_open_talon(seen: View, cards: int) -> int:
    """Win with a plain ten or ace, trump what is valuable, and otherwise throw the least away."""
    led = seen.cards.led
    winners = winning_replies(seen, cards)
    trumps = suit_set(seen.table.trump_suit)
    plain_winners = winners & ~trumps
    if plain_winners:
        card = most_points(plain_winners)
        if _POINTS[card] >= 10 or keeping_value(seen, card) < 8:
            return card
    if led // NUM_RANKS != seen.table.trump_suit and winners & trumps and _POINTS[led] >= 10:
        return least_valuable(seen, winners & trumps)
    if led // NUM_RANKS == seen.table.trump_suit and winners and _POINTS[led] >= 3:
        return least_valuable(seen, winners)
    losers = cards & ~winners
    return least_valuable(seen, losers if losers else winners)


@compiled
def reply_in_strict_phase(seen: View, cards: int) -> int:
    """Win with the card that is missed least, or give the fewest points away."""
    winners = winning_replies(seen, cards)
    return least_valuable(seen, winners if winners else cards)


@compiled
def heuristic_action(seen: View) -> int:
    """The action of the rule-of-thumb player; -1 if there is no legal action."""
    if seen.legal == 0:
        return -1
    if seen.legal >> CLAIM & 1 and seen.tally.own_is_out:
        return CLAIM
    cards = seen.legal & ALL_CARDS
    if seen.cards.led == r.NONE:
        if seen.legal >> EXCHANGE & 1:
            return EXCHANGE
        if should_close(seen):
            return CLOSE
        marriage = marriage_to_declare(seen)
        if marriage >= 0:
            return marriage
        if seen.table.talon_state == r.OPEN:
            return lead_in_open_talon(seen, cards)
        return lead_in_strict_phase(seen, cards)
    winner = reply_that_goes_out(seen, winning_replies(seen, cards))
    if winner >= 0:
        return winner
    if seen.table.talon_state == r.OPEN:
        return reply_in_open_talon(seen, cards)
    return reply_in_strict_phase(seen, cards)
