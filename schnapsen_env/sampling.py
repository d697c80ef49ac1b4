"""Deals that a player may take for the true one: for search, and for the proof that nothing leaks.

:func:`sample_deal` makes a whole deal from what one player knows, its
:class:`~schnapsen_env.view.View`, which is all that an agent has. :func:`redeal` starts from the
true deal and deals anew the cards that one player cannot see; everything that player has ever been
shown stays.

Both choose uniformly among all deals that agree with the cards seen and with what replies in the
strict phase ruled out. How the opponent has played says more, and is left to the agent.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.cards import ALL_CARDS, HAND_SIZE, NUM_CARDS, TALON_SIZE
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import COMBINATIONS, count, lowest, member
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.engine.score import card_points
from schnapsen_env.rules import CODE_INDEX, SCHNEIDER_POINTS
from schnapsen_env.view import Cards, View, bit, never_seen

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

_TARGET: Final = CODE_INDEX["target"]


@compiled
def choose_cards(cards: int, size: int, chance: Record) -> int:
    """A uniformly random set of ``size`` of the ``cards``.

    Args:
        cards: a set of at least ``size`` cards.
        size: how many to choose.
        chance: a record, ``int64[RECORD_SIZE]``, whose random generator is used.
    """
    chosen = 0
    for _ in range(size):
        card = 1 << member(cards, draw_below(chance, count(cards)))
        chosen |= card
        cards ^= card
    return chosen


@compiled
def count_hands(seen: View) -> int:
    """How many other hands agree with a view; 0 if it is not that of a player of perfect memory."""
    cards = seen.cards
    size = count(cards.unseen) - seen.table.face_down
    held = count(cards.hand) - (0 if cards.led == r.NONE else 1)
    if not seen.table.to_move:
        held = count(cards.hand) + (0 if cards.led == r.NONE else 1)
    if seen.table.trump_suit < 0 or size < 0 or size + count(cards.other_known) != held:
        return 0
    return COMBINATIONS[count(cards.unseen & ~cards.other_cannot_hold), size]


@compiled
def accounts_for_cards(seen: View) -> bool:
    """Whether a view has every card in one place, and the card points of the cards won."""
    cards, tally = seen.cards, seen.tally
    places = (
        cards.hand,
        cards.own_won,
        cards.other_won,
        cards.other_known,
        cards.unseen,
        bit(cards.led),
        bit(cards.turned_up),
    )
    together = number = 0
    for place in places:
        together |= place
        number += count(place)
    return (
        together == ALL_CARDS
        and number == NUM_CARDS
        and cards.last_trick & ~(cards.own_won | cards.other_won) == 0
        and tally.own_card_points == card_points(cards.own_won)
        and tally.other_card_points == card_points(cards.other_won)
    )


@compiled
def with_hand(seen: View, index: int) -> View:
    """The view of a player who also knows the other hand, the ``index``-th that agrees with it.

    Args:
        seen: the view.
        index: 0 to ``count_hands(seen) - 1``; each gives another hand.
    """
    cards = seen.cards
    size = count(cards.unseen) - seen.table.face_down
    pool = cards.unseen & ~cards.other_cannot_hold
    chosen = 0
    while size > 0:
        card = lowest(pool)
        pool ^= 1 << card
        with_card = COMBINATIONS[count(pool), size - 1]  # so many hands hold this card
        if index < with_card:
            chosen |= 1 << card
            size -= 1
        else:
            index -= with_card
    known = Cards(
        cards.hand,
        cards.own_won,
        cards.other_won,
        cards.other_known | chosen,
        cards.other_cannot_hold,
        cards.unseen & ~chosen,
        cards.last_trick,
        cards.turned_up,
        cards.led,
    )
    return View(known, seen.table, seen.tally, seen.legal)


@compiled
def sample_deal(seen: View, codes: Codes, seat: int, record: Record) -> None:
    """Fill ``record`` with a running deal that looks to ``seat`` as ``seen`` does.

    The view is that of a player of perfect memory, to move or not, in a deal that runs. What it
    does not tell is left at its simplest: the opponent knows no card of the player's hand, the
    actions taken so far are not there, and the lower card of the last trick was led. Viewed by
    ``seat``, the result is ``seen`` again.

    Args:
        seen: the view.
        codes: ``Rules.codes()``.
        seat: the seat of the player who sees this.
        record: ``int64[RECORD_SIZE]``; its random generator chooses, and goes on with each call.

    Raises:
        ValueError: no deal looks like this.
    """
    other = 1 - seat
    cards, table, tally = seen.cards, seen.table, seen.tally
    size = count(cards.unseen) - table.face_down
    allowed = cards.unseen & ~cards.other_cannot_hold
    if size < 0 or size > count(allowed):
        raise ValueError("no deal looks like this view; is it of a player of perfect memory?")
    hidden = choose_cards(allowed, size, record)
    random_state = record[r.RANDOM]
    record[:] = 0
    record[r.RANDOM] = random_state
    lay_talon(record, cards.unseen & ~hidden, cards.turned_up, table.face_down)
    record[r.TO_MOVE] = seat if table.to_move else other
    record[r.LED] = cards.led
    record[r.LEADER] = seat if table.on_lead else other
    if cards.led != r.NONE:
        record[r.LEADER] = 1 - record[r.TO_MOVE]
    record[r.DECLARED] = table.declared
    record[r.TRUMP] = table.trump_suit
    record[r.TURNED_UP] = cards.turned_up
    record[r.FACE_DOWN] = table.face_down
    record[r.TALON_STATE] = table.talon_state
    record[r.HAND + seat] = cards.hand
    record[r.HAND + other] = hidden | cards.other_known
    record[r.WON + seat] = cards.own_won
    record[r.WON + other] = cards.other_won
    record[r.CARD_POINTS + seat] = tally.own_card_points
    record[r.CARD_POINTS + other] = tally.other_card_points
    record[r.TRICKS + seat] = tally.own_tricks
    record[r.TRICKS + other] = tally.other_tricks
    record[r.MARRIAGES + seat] = table.own_marriages
    record[r.MARRIAGES + other] = table.other_marriages
    record[r.KNOWN + other] = cards.other_known
    record[r.CANNOT_HOLD + other] = cards.other_cannot_hold
    record[r.DRAWN] = r.NOTHING_DRAWN
    record[r.DRAWN + 1] = r.NOTHING_DRAWN
    set_closing(record, seen, seat)
    record[r.LAST_LEAD] = r.NONE
    record[r.LAST_REPLY] = r.NONE
    if cards.last_trick:
        record[r.LAST_LEAD] = lowest(cards.last_trick)
        record[r.LAST_REPLY] = lowest(cards.last_trick & ~(1 << lowest(cards.last_trick)))
    record[r.FROM_POSITION] = 1
    record[r.WINNER] = r.NONE
    record[r.FOREHAND] = seat if table.is_forehand else other
    record[r.DEAL_NUMBER] = 1
    record[r.MATCH_SCORE + seat] = codes[_TARGET] - tally.own_needed
    record[r.MATCH_SCORE + other] = codes[_TARGET] - tally.other_needed


@compiled
def lay_talon(record: Record, cards: int, turned_up: int, face_down: int) -> None:
    """Lay ``face_down`` cards on the turned-up one in random order, as ``record[DECK + 1]``."""
    record[r.DECK + 1] = turned_up if turned_up != r.NONE else r.CARD_WORD
    for place in range(TALON_SIZE - face_down, TALON_SIZE):
        card = member(cards, draw_below(record, count(cards)))
        cards ^= 1 << card
        record[r.DECK + 1] |= card << (r.CARD_BITS * (1 + place))


@compiled
def set_closing(record: Record, seen: View, seat: int) -> None:
    """Who closed, and what the closer's opponent had then."""
    record[r.CLOSED_BY] = r.NONE
    if seen.table.closed_by == r.NONE:
        return
    closer = seat ^ seen.table.closed_by
    tally = seen.tally
    record[r.CLOSED_BY] = closer
    record[r.CLOSE_TRICKS] = tally.close_tricks
    record[r.CLOSE_POINTS] = tally.close_points
    record[r.CLOSE_CARD_POINTS] = tally.close_points
    # How many of these points were marriages matters only to rules that value a close at the
    # closing and by card points; there the value that the closer plays for tells enough.
    value = tally.own_win_value if closer == seat else tally.other_win_value
    if value == 2 and tally.close_points >= SCHNEIDER_POINTS:
        record[r.CLOSE_CARD_POINTS] = SCHNEIDER_POINTS - 1


@compiled
def redeal(record: Record, seat: int, chance: Record) -> None:
    """Deal anew, in place, every card that ``seat`` cannot see.

    Each hidden card takes the place of another, in the deck, in the other hand, among the other
    player's draws and in the talon, so the whole record stays that of one deal. What ``seat`` has
    seen, every observation of it included, is unchanged.

    Args:
        record: ``int64[RECORD_SIZE]``; its own random state is left alone.
        seat: the player who must not notice.
        chance: a record whose random generator chooses.
    """
    other = 1 - seat
    hidden = never_seen(record, seat)
    in_hand = record[r.HAND + other] & hidden
    allowed = hidden & ~record[r.CANNOT_HOLD + other]
    new_hand = choose_cards(allowed, count(in_hand), chance)
    new_name = np.arange(NUM_CARDS)
    rename(new_name, in_hand, new_hand, chance)
    rename(new_name, hidden & ~in_hand, hidden & ~new_hand, chance)
    record[r.HAND + other] = record[r.HAND + other] & ~in_hand | new_hand
    record[r.DECK] = renamed_cards(record[r.DECK], r.CARDS_PER_DECK_WORD, new_name)
    record[r.DECK + 1] = renamed_cards(record[r.DECK + 1], r.CARDS_PER_DECK_WORD, new_name)
    record[r.DRAWN + other] = renamed_cards(record[r.DRAWN + other], HAND_SIZE, new_name)


@compiled
def rename(new_name: Record, old: int, new: int, chance: Record) -> None:
    """Give each card of the set ``old`` one of the set ``new`` at random, in ``new_name``."""
    while old:
        card = lowest(old)
        old ^= 1 << card
        new_name[card] = member(new, draw_below(chance, count(new)))
        new ^= 1 << new_name[card]


@compiled
def renamed_cards(word: int, size: int, new_name: Record) -> int:
    """A word of ``size`` cards with their new names; places without a card stay so."""
    renamed = 0
    for place in range(size):
        shift = r.CARD_BITS * place
        card = word >> shift & r.CARD_WORD
        renamed |= (card if card == r.CARD_WORD else new_name[card]) << shift
    return renamed
