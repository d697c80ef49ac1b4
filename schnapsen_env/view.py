"""What one player may know: the privacy boundary.

This module is the only place where hidden information is left out. Observations, masks and agents
are made from a :class:`View` and, where the order of events is shown, from :func:`event`,
:func:`first_turned_up` and :func:`own_draw`. All of it is computed from public events and the
player's own cards, so re-dealing the cards that a player cannot see leaves it unchanged, which a
test holds.

Players may have to count in their heads: ``memory`` says what of the past a player may look at.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from schnapsen_env.cards import ALL_CARDS, MARRIAGE_SET, NUM_RANKS
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.play import legal
from schnapsen_env.engine.score import (
    going_out_value,
    pending,
    points,
    short_of_33,
)
from schnapsen_env.rules import CODE_INDEX, OUT_POINTS

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

#: ``perfect`` - all cards and points that were public at any time; ``last_trick`` - only the last
#: completed trick may be looked at; ``none`` - not even that. In the last two, points, trick counts
#: and what replies ruled out are not shown, and a card that a marriage showed is visible only while
#: it lies on the table.
MEMORIES: Final = ("perfect", "last_trick", "none")
PERFECT, LAST_TRICK, NO_MEMORY = range(3)

_TARGET: Final = CODE_INDEX["target"]


class Cards(NamedTuple):
    """Where the cards are, as far as the player knows: sets as bit masks, single cards as ids."""

    hand: int
    own_won: int
    other_won: int
    #: Cards known to be in the other hand.
    other_known: int
    #: Unseen cards that the other hand cannot hold, by its replies in the strict phase.
    other_cannot_hold: int
    #: Cards not seen yet: in the other hand or face down. Does not contain ``other_known``.
    unseen: int
    #: Both cards of the last completed trick.
    last_trick: int
    #: The turned-up trump, or -1; it stays known when the talon is closed.
    turned_up: int
    #: The card led and not yet answered, or -1.
    led: int


class Table(NamedTuple):
    """What else lies open on the table."""

    trump_suit: int
    #: Suits of the marriages declared, sets.
    own_marriages: int
    other_marriages: int
    #: The suit declared for the coming lead, or -1.
    declared: int
    talon_state: int
    #: -1 nobody, 0 own, 1 other.
    closed_by: int
    face_down: int
    to_move: int
    on_lead: int
    is_forehand: int


class Tally(NamedTuple):
    """The counts of both players, which a player of limited memory is not shown."""

    own_is_out: int
    own_trickless: int
    other_trickless: int
    own_points: int
    other_points: int
    own_card_points: int
    other_card_points: int
    own_to_66: int
    other_to_66: int
    #: What each still lacks to 33, in the points that this rule set compares with 33.
    own_to_33: int
    other_to_33: int
    #: Marriage points that wait for a first trick.
    own_pending: int
    other_pending: int
    own_tricks: int
    other_tricks: int
    #: What the closer's opponent had at the closing; 0 while nobody has closed.
    close_tricks: int
    close_points: int
    #: Game points for going out at this moment, for either player.
    own_win_value: int
    other_win_value: int
    #: Game points still needed to win the match; shown to every player.
    own_needed: int
    other_needed: int


class View(NamedTuple):
    """One player's knowledge. ``own`` is the viewing player and ``other`` the opponent."""

    cards: Cards
    table: Table
    tally: Tally
    #: Legal actions, a set over action ids; 0 for the player who is not to move.
    legal: int


@compiled
def bit(card: int) -> int:
    """The set of one card, or the empty set for -1."""
    return 1 << card if card != r.NONE else 0


@compiled
def flag(condition: bool) -> int:
    """1 or 0."""
    return 1 if condition else 0


@compiled
def shown_by_marriage(record: Record, seat: int) -> int:
    """King and queen that a marriage of ``seat`` keeps on the table at this moment, a set."""
    suit = record[r.DECLARED]
    if suit == r.NONE and record[r.LED] != r.NONE:
        suit = record[r.LED] // NUM_RANKS
    if suit == r.NONE or record[r.LEADER] != seat:
        return 0
    pair = MARRIAGE_SET << (NUM_RANKS * suit)
    just_led = record[r.LED] == r.NONE or bit(record[r.LED]) & pair != 0
    return pair if just_led and record[r.MARRIAGES + seat] >> suit & 1 else 0


@compiled
def never_seen(record: Record, seat: int) -> int:
    """The cards that ``seat`` has never seen, a set: in the other hand, or face down."""
    other = 1 - seat
    seen = record[r.HAND + seat] | record[r.WON + seat] | record[r.WON + other]
    seen |= record[r.KNOWN + other] | bit(record[r.LED]) | bit(record[r.TURNED_UP])
    return ALL_CARDS & ~seen


@compiled
def view(record: Record, codes: Codes, seat: int, memory: int) -> View:
    """What ``seat`` may know of a deal; ``memory`` is an index of :data:`MEMORIES`."""
    other = 1 - seat
    perfect = memory == PERFECT
    hand = record[r.HAND + seat]
    led = record[r.LED]
    turned_up = record[r.TURNED_UP]
    last_trick = bit(record[r.LAST_LEAD]) | bit(record[r.LAST_REPLY])
    known = record[r.KNOWN + other]
    own_won = record[r.WON + seat]
    other_won = record[r.WON + other]
    unseen = never_seen(record, seat)
    cannot_hold = record[r.CANNOT_HOLD + other] & unseen
    if not perfect:
        if memory == NO_MEMORY:
            last_trick = 0
        known &= shown_by_marriage(record, other)
        own_won = other_won = cannot_hold = 0
        unseen = ALL_CARDS & ~(hand | known | bit(led) | bit(turned_up) | last_trick)
    closed_by = record[r.CLOSED_BY]
    if closed_by != r.NONE:
        closed_by ^= seat
    to_move = flag(record[r.TO_MOVE] == seat and record[r.END_REASON] == 0)
    actions = legal(record, codes) if to_move else 0
    counts = 1 if perfect else 0  # what a player must otherwise count in the head is 0
    own_tricks, other_tricks = record[r.TRICKS + seat], record[r.TRICKS + other]
    own_points, other_points = points(record, seat), points(record, other)
    cards = Cards(hand, own_won, other_won, known, cannot_hold, unseen, last_trick, turned_up, led)
    table = Table(
        record[r.TRUMP],
        counts * record[r.MARRIAGES + seat],
        counts * record[r.MARRIAGES + other],
        record[r.DECLARED],
        record[r.TALON_STATE],
        closed_by,
        record[r.FACE_DOWN],
        to_move,
        flag(record[r.LEADER] == seat and led == r.NONE),
        flag(record[r.FOREHAND] == seat),
    )
    tally = Tally(
        counts * flag(own_points >= OUT_POINTS),
        counts * flag(own_tricks == 0),
        counts * flag(other_tricks == 0),
        counts * own_points,
        counts * other_points,
        counts * record[r.CARD_POINTS + seat],
        counts * record[r.CARD_POINTS + other],
        counts * max(OUT_POINTS - own_points, 0),
        counts * max(OUT_POINTS - other_points, 0),
        counts * short_of_33(record, codes, seat),
        counts * short_of_33(record, codes, other),
        counts * pending(record, seat),
        counts * pending(record, other),
        counts * own_tricks,
        counts * other_tricks,
        counts * record[r.CLOSE_TRICKS],
        counts * record[r.CLOSE_POINTS],
        counts * going_out_value(record, codes, seat),
        counts * going_out_value(record, codes, other),
        max(codes[_TARGET] - record[r.MATCH_SCORE + seat], 0),
        max(codes[_TARGET] - record[r.MATCH_SCORE + other], 0),
    )
    return View(cards, table, tally, actions)


@compiled
def event(record: Record, index: int) -> tuple[int, int]:
    """The action taken ``index``-th in this deal, and its seat; everything taken is public."""
    word, place = divmod(index, r.HISTORY_PER_WORD)
    entry = record[r.HISTORY + word] >> (r.HISTORY_BITS * place)
    seat_bit = r.HISTORY_BITS - 1
    return entry & ((1 << seat_bit) - 1), entry >> seat_bit & 1


@compiled
def first_turned_up(record: Record) -> int:
    """The card turned up when the deal or the position began, or -1."""
    card = record[r.DECK + 1] & r.CARD_WORD
    return card if card != r.CARD_WORD else r.NONE


@compiled
def own_draw(record: Record, seat: int, trick: int) -> int:
    """The card that ``seat`` drew after ``trick``, counted from 0, or -1 if it has not (yet)."""
    card = record[r.DRAWN + seat] >> (r.CARD_BITS * trick) & r.CARD_WORD
    return card if card != r.CARD_WORD else r.NONE
