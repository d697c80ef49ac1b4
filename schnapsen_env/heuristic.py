"""A player of rules of thumb, the yardstick of this project. Version 1, frozen.

It decides from its own :class:`~schnapsen_env.view.View` and nothing else. On its turn it does the
first of these that it can:

1. claim 66, or go out with a marriage or a trick;
2. exchange the trump jack;
3. close the talon with a hand that promises 66;
4. with the other hand known, think the last tricks through to the end;
5. weigh the legal actions and take the one that scores most.

The score of an action is a sum of rules of thumb: each is a few lines below and has its weight in
:class:`Weights`. What each of them is worth was measured, see ``docs/heuristic.md``.

The player does not know the rule set. It plans for the usual one (beat if you can, else follow,
else trump) and never plays what its mask forbids.

Trained agents are measured against this player, so its play must not change by the way: whoever
changes it raises :data:`VERSION` and measures everything again that names it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE
from schnapsen_env.cards import (
    ALL_CARDS,
    MARRIAGE_SET,
    NUM_RANKS,
    NUM_SUITS,
    QUEEN,
)
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.endgame import (
    MORE_THAN_ALL,
    Side,
    best_value,
    in_marriage,
)
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import COMBINATIONS, count, lowest
from schnapsen_env.engine.play import above, reply_wins, suit_set
from schnapsen_env.engine.score import POINTS_OF, card_points, marriage_value
from schnapsen_env.rules import OUT_POINTS, SCHNEIDER_POINTS, code_of
from schnapsen_env.view import View, flag

#: The version of this player's play.
VERSION: Final = 1

_BY_SUIT: Final = code_of("trick_by", "suit")
#: Card points of an average card that is thrown away.
_DISCARD: Final = 3.0


class Weights(NamedTuple):
    """How much each rule of thumb counts, in hundredths of a game point where not said otherwise.

    The values were found by playing, see ``docs/heuristic.md``. 0 switches a rule off.
    """

    # Rules that are followed or not.
    exchange: float = 1.0
    go_out: float = 1.0
    look_ahead: float = 1.0

    # Closing, in points: close from this promise on; what a trump behind the sure ones adds to it,
    # and what is added if the sure trumps draw all others.
    close_from: float = 70.0
    small_trump: float = 5.0
    trumps_drawn: float = 4.0

    # While the talon is open, what a card is worth in the hand: jack, queen, king, ten, ace,
    plain: tuple[float, float, float, float, float] = (0.0, 10.0, 11.0, 13.0, 44.0)
    trump: tuple[float, float, float, float, float] = (78.0, 63.0, 66.0, 67.0, 110.0)
    # and half of a marriage in addition.
    marriage: float = 40.0
    # Each card point of a trick, for its winner and against its loser.
    card_point: float = 3.5
    # Declaring twenty and forty; winning a trick with one in hand is worth as much.
    declare: float = 48.0
    declare_trumps: float = 80.0
    # Against a lead: each of its card points that may be trumped; as a trump, each trump that is
    # out; each card of its suit that is out, and that is in the own hand.
    trumped: float = 3.2
    into_trumps: float = 6.0
    into_suit: float = 10.0
    from_suit: float = 5.0
    # For a reply: reaching 33, or keeping the other player from it; keeping it from 66.
    mark_33: float = 18.0
    concede_66: float = 100.0

    # In the strict phase: the same things, and losing a trick to a trump that the other player must
    # then spend.
    strict_card_point: float = 4.5
    strict_declare: float = 20.0
    strict_declare_trumps: float = 48.0
    pull_trump: float = 40.0


WEIGHTS: Final = Weights()


# ------------------------------------------------------------------------------- counting cards


@compiled
def hidden(seen: View) -> int:
    """The unseen cards that the other player may hold or not."""
    return seen.cards.unseen & ~seen.cards.other_cannot_hold


@compiled
def may_hold(seen: View) -> int:
    """The cards that the other player may hold, those known to be there included."""
    return hidden(seen) | seen.cards.other_known


@compiled
def other_hand_size(seen: View) -> int:
    """How many cards the other player holds."""
    return count(seen.cards.hand) - (0 if seen.cards.led == r.NONE else 1)


@compiled
def chance_of_at_most(seen: View, most: int, cards: int, absent: int) -> float:
    """The chance that the other player holds at most ``most`` of ``cards``.

    ``absent`` are cards that it is supposed not to hold. Every hand that fits what was seen counts
    as equally likely.
    """
    most -= count(seen.cards.other_known & cards)
    if most < 0:
        return 0.0
    pool = hidden(seen) & ~absent
    among, wanted = count(pool), count(pool & cards)
    drawn = other_hand_size(seen) - count(seen.cards.other_known)
    if drawn <= 0 or drawn > among:
        return 1.0
    ways = 0.0
    for held in range(min(most, wanted, drawn) + 1):
        ways += COMBINATIONS[wanted, held] * COMBINATIONS[among - wanted, drawn - held]
    return ways / COMBINATIONS[among, drawn]


@compiled
def chance_of_none(seen: View, cards: int) -> float:
    """The chance that the other player holds none of ``cards``."""
    return chance_of_at_most(seen, 0, cards, 0)


@compiled
def chance_to_be_trumped(seen: View, card: int, rounds: int) -> float:
    """The chance that the other player must trump ``card``, a plain card led in the strict phase.

    ``rounds`` rounds of trumps have been led before it.
    """
    suit = suit_set(card // NUM_RANKS)
    void = chance_of_none(seen, suit)
    if void == 0.0:
        return 0.0
    trumps = suit_set(seen.table.trump_suit)
    return void * (1.0 - chance_of_at_most(seen, rounds, trumps, suit))


@compiled
def is_trump(seen: View, card: int) -> bool:
    """Whether ``card`` is a trump."""
    return card // NUM_RANKS == seen.table.trump_suit


@compiled
def has_marriage(seen: View, hand: int, suit: int) -> bool:
    """Whether ``hand`` holds king and queen of ``suit`` that the player has not declared yet."""
    pair = MARRIAGE_SET << (NUM_RANKS * suit)
    return hand & pair == pair and seen.table.own_marriages >> suit & 1 == 0


@compiled
def own_points(seen: View) -> int:
    """The own points, with those that wait for a first trick."""
    return seen.tally.own_points + seen.tally.own_pending


@compiled
def other_points(seen: View) -> int:
    """The other player's points, with those that wait for a first trick."""
    return seen.tally.other_points + seen.tally.other_pending


# -------------------------------------------------------------------------------------- closing


@compiled
def sure_trumps(seen: View) -> int:
    """How many trumps of the hand nothing can beat."""
    trumps = seen.cards.hand & suit_set(seen.table.trump_suit)
    sure = 0
    while trumps:
        if not may_hold(seen) & above(lowest(trumps)):
            sure += 1
        trumps &= trumps - 1
    return sure


@compiled
def expected_reply(seen: View, card: int) -> float:
    """The card points of the card that falls to ``card`` in the strict phase, if ``card`` wins."""
    beaten = may_hold(seen) & suit_set(card // NUM_RANKS) & ~above(card)
    if not beaten:
        return _DISCARD
    void = chance_of_none(seen, may_hold(seen) & suit_set(card // NUM_RANKS))
    return (1.0 - void) * card_points(beaten) / count(beaten) + void * _DISCARD


@compiled
def promised_points(seen: View, weights: Weights) -> float:
    """The points that the hand should reach if the talon is closed now.

    It counts the own points, the marriages, and for each card the trick that it should win.
    Doubtful tricks count less than their average, since one that fails may lose the rest.
    """
    trumps = suit_set(seen.table.trump_suit)
    rounds = sure_trumps(seen)
    drawn = chance_of_at_most(seen, rounds, trumps, 0)
    small = count(seen.cards.hand & trumps) - rounds
    total = own_points(seen) + weights.small_trump * small + weights.trumps_drawn * drawn
    hand = seen.cards.hand
    while hand:
        card = lowest(hand)
        hand &= hand - 1
        chance = chance_of_none(seen, above(card))
        if is_trump(seen, card):
            chance = max(chance, drawn)
        else:
            chance *= 1.0 - chance_to_be_trumped(seen, card, rounds)
        total += chance * chance * (POINTS_OF[card] + expected_reply(seen, card))
    for suit in range(NUM_SUITS):
        if has_marriage(seen, seen.cards.hand, suit):
            total += marriage_value(suit, seen.table.trump_suit)
    return total


@compiled
def should_close(seen: View, weights: Weights) -> bool:
    """Close when the hand promises 66, with a little in reserve."""
    return promised_points(seen, weights) >= weights.close_from


# -------------------------------------------------------------------------------- going out now


@compiled
def marriage_that_goes_out(seen: View) -> int:
    """A declaration that makes 66, or -1."""
    if seen.tally.own_tricks == 0:
        return -1
    for suit in range(NUM_SUITS):
        total = own_points(seen) + marriage_value(suit, seen.table.trump_suit)
        if seen.legal >> (FIRST_DECLARE + suit) & 1 and total >= OUT_POINTS:
            return FIRST_DECLARE + suit
    return -1


@compiled
def wins_trick(seen: View, card: int) -> bool:
    """Whether ``card`` as a reply wins the trick, by the usual rules."""
    return reply_wins(seen.cards.led, card, seen.table.trump_suit, _BY_SUIT)


@compiled
def trick_that_goes_out(seen: View) -> int:
    """A reply that wins the trick and makes 66, or -1."""
    cards = seen.legal & ALL_CARDS
    while cards:
        card = lowest(cards)
        cards &= cards - 1
        gain = POINTS_OF[card] + POINTS_OF[seen.cards.led]
        if wins_trick(seen, card) and own_points(seen) + gain >= OUT_POINTS:
            return card
    return -1


# ------------------------------------------------------------------------------- the last tricks


@compiled
def other_hand_is_known(seen: View) -> bool:
    """Whether counting tells the other hand card by card."""
    return seen.table.talon_state != r.OPEN and count(may_hold(seen)) == other_hand_size(seen)


@compiled
def look_ahead(seen: View, action: int) -> int:
    """The game points of ``action``, the other hand being known and both playing their best."""
    tally, table = seen.tally, seen.table
    somebody_closed = table.closed_by != r.NONE
    own_stake = tally.own_win_value if somebody_closed else 0
    other_stake = tally.other_win_value if somebody_closed else 0
    marriages = table.own_marriages
    cards = 1 << action
    if action >= FIRST_DECLARE:
        cards = MARRIAGE_SET << (NUM_RANKS * (action - FIRST_DECLARE))
    elif seen.cards.led == r.NONE:
        # The card alone is led: to declare its marriage is another action.
        marriages |= 1 << (action // NUM_RANKS)
    own_closed, other_closed = flag(table.closed_by == 0), flag(table.closed_by == 1)
    hand, points = seen.cards.hand, own_points(seen)
    own = Side(hand, points, tally.own_tricks, marriages, own_stake, own_closed)
    hand, points, marriages = may_hold(seen), other_points(seen), table.other_marriages
    other = Side(hand, points, tally.other_tricks, marriages, other_stake, other_closed)
    led, trump_suit = seen.cards.led, table.trump_suit
    return best_value(own, other, led, cards, trump_suit, -MORE_THAN_ALL, MORE_THAN_ALL)


# ------------------------------------------------------------------------------------- weighing


@compiled
def worth_in_hand(seen: View, card: int, weights: Weights) -> float:
    """What ``card`` is worth in the hand while the talon is open."""
    rank = card % NUM_RANKS
    worth = weights.trump[rank] if is_trump(seen, card) else weights.plain[rank]
    if in_marriage(seen.cards.hand, seen.table.own_marriages, card):
        worth += weights.marriage
    return worth


@compiled
def score_open_lead(seen: View, card: int, weights: Weights) -> float:
    """Lead what is not missed and cannot be taken well.

    That is: of a suit of which few cards are out, no ten or ace that may be trumped, no trump.
    """
    suit = suit_set(card // NUM_RANKS)
    trumps = suit_set(seen.table.trump_suit)
    points = POINTS_OF[card]
    high_enough = chance_of_none(seen, above(card))
    out_there = count(may_hold(seen) & suit)
    score = weights.card_point * points * (2.0 * high_enough - 1.0)
    score -= weights.into_suit * out_there
    score -= worth_in_hand(seen, card, weights)
    if is_trump(seen, card):
        return score - weights.into_trumps * out_there * high_enough
    has_trumps = 1.0 - chance_of_none(seen, trumps)
    score -= weights.trumped * points * high_enough * has_trumps
    return score - weights.from_suit * count(seen.cards.hand & suit)


@compiled
def score_strict_lead(seen: View, card: int, weights: Weights) -> float:
    """Lead what wins, the most points first; a winner that a trump takes has at least pulled it."""
    high_enough = chance_of_none(seen, above(card))
    trumped = 0.0
    if not is_trump(seen, card):
        trumped = high_enough * chance_to_be_trumped(seen, card, 0)
    wins = high_enough - trumped
    score = weights.strict_card_point * POINTS_OF[card] * (2.0 * wins - 1.0)
    return score + weights.pull_trump * trumped


@compiled
def score_lead(seen: View, card: int, weights: Weights) -> float:
    """The score of leading ``card``."""
    if seen.table.talon_state == r.OPEN:
        return score_open_lead(seen, card, weights)
    return score_strict_lead(seen, card, weights)


@compiled
def worth_of_declaring(seen: View, suit: int, weights: Weights) -> float:
    """What it is worth to declare the marriage of ``suit``."""
    trumps = suit == seen.table.trump_suit
    if seen.table.talon_state == r.OPEN:
        return weights.declare_trumps if trumps else weights.declare
    return weights.strict_declare_trumps if trumps else weights.strict_declare


@compiled
def score_declaration(seen: View, suit: int, weights: Weights) -> float:
    """Declare, unless the queen that must be led then costs too much."""
    score = score_lead(seen, NUM_RANKS * suit + QUEEN, weights)
    if seen.table.talon_state == r.OPEN:
        score += weights.marriage  # a declared marriage is not broken
    return score + worth_of_declaring(seen, suit, weights)


@compiled
def best_marriage_after(seen: View, card: int, weights: Weights) -> float:
    """What the best marriage that is left to declare once ``card`` is played will be worth."""
    hand = seen.cards.hand & ~(1 << card)
    best = 0.0
    for suit in range(NUM_SUITS):
        if has_marriage(seen, hand, suit):
            best = max(best, worth_of_declaring(seen, suit, weights))
    return best


@compiled
def score_open_reply(seen: View, card: int, weights: Weights) -> float:
    """Take points cheaply, take the lead for a marriage, and mind 33 and 66."""
    gain = POINTS_OF[card] + POINTS_OF[seen.cards.led]
    score = -worth_in_hand(seen, card, weights)
    if wins_trick(seen, card):
        score += weights.card_point * gain + best_marriage_after(seen, card, weights)
        return score + (weights.mark_33 if own_points(seen) + gain >= SCHNEIDER_POINTS else 0.0)
    conceded = other_points(seen) + gain
    score -= weights.card_point * gain
    score -= weights.mark_33 if conceded >= SCHNEIDER_POINTS else 0.0
    return score - (weights.concede_66 if conceded >= OUT_POINTS else 0.0)


@compiled
def score_strict_reply(card: int) -> float:
    """Duty leaves little choice: win with the lowest card, or give the fewest points away."""
    return float(-POINTS_OF[card])


@compiled
def score(seen: View, action: int, weights: Weights) -> float:
    """How good ``action`` looks by the rules of thumb."""
    if action >= FIRST_DECLARE:
        return score_declaration(seen, action - FIRST_DECLARE, weights)
    if seen.cards.led == r.NONE:
        return score_lead(seen, action, weights)
    if seen.table.talon_state == r.OPEN:
        return score_open_reply(seen, action, weights)
    return score_strict_reply(action)


@compiled
def best_by_weight(seen: View, actions: int, weights: Weights) -> int:
    """The action of the highest score; with the other hand known, of the most game points first."""
    known = weights.look_ahead != 0 and other_hand_is_known(seen)
    best, highest = -1, 0.0
    while actions:
        action = lowest(actions)
        actions &= actions - 1
        total = score(seen, action, weights)
        if known:
            total += 10_000.0 * look_ahead(seen, action)
        if best < 0 or total > highest:
            best, highest = action, total
    return best


@compiled
def decide(seen: View, weights: Weights) -> int:
    """The action of a player with these weights; -1 if there is no legal action."""
    legal = seen.legal
    if legal == 0:
        return -1
    if legal >> CLAIM & 1 and seen.tally.own_is_out:
        return CLAIM
    if weights.go_out != 0:
        on_lead = seen.cards.led == r.NONE
        winner = marriage_that_goes_out(seen) if on_lead else trick_that_goes_out(seen)
        if winner >= 0:
            return winner
    if legal >> EXCHANGE & 1 and weights.exchange != 0:
        return EXCHANGE
    if legal >> CLOSE & 1 and should_close(seen, weights):
        return CLOSE
    return best_by_weight(seen, legal & ~(1 << CLAIM | 1 << CLOSE | 1 << EXCHANGE), weights)


@compiled_apart
def heuristic_action(seen: View) -> int:
    """The action of the rule-of-thumb player; -1 if there is no legal action."""
    return decide(seen, WEIGHTS)
