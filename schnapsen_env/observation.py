"""The observation: a player's :class:`~schnapsen_env.view.View` as a flat array of numbers.

An observation is made of the named fields of :data:`FIELDS`. Sets of cards are 20 numbers, one a
card, in the order of card ids; numbers such as points are scaled into ``[0, 1]``. As ``float32``
the array is ready for a network; as ``uint8`` it holds the unscaled whole numbers in a quarter of
the memory, and ``uint8 * layout.scale`` is the float form exactly.

With ``suits="trump_first"`` or ``"canonical"`` the suits are renamed before anything is written, in
observation, mask and actions alike, so that deals that differ only in the names of suits look the
same to a learner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from schnapsen_env.actions import (
    DECLARE_WORD,
    EXCHANGE,
    FIRST_DECLARE,
    NUM_ACTIONS,
    WORDS,
)
from schnapsen_env.bitstore import store_bits
from schnapsen_env.cards import (
    MARRIAGE_POINTS,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    RANKS,
    SUIT_SET,
    SUITS,
    TALON_SIZE,
    TOTAL_CARD_POINTS,
    TRUMP_MARRIAGE_POINTS,
)
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import lowest
from schnapsen_env.engine.play import talon_card
from schnapsen_env.rules import MAX_LAST_TRICK_BONUS, MAX_TARGET, OUT_POINTS, SCHNEIDER_POINTS
from schnapsen_env.view import (
    MEMORIES,
    PERFECT,
    Cards,
    Table,
    Tally,
    View,
    bit,
    event,
    first_turned_up,
    own_draw,
    view,
)

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

#: Raised whenever the meaning of any number changes; checkpoints store it and refuse another.
LAYOUT_VERSION: Final = 1

#: ``natural`` - clubs, diamonds, hearts, spades; ``trump_first`` - trump is suit 0, the others keep
#: their order; ``canonical`` - trump is suit 0 and the others are sorted by what the player sees of
#: them, so that all 24 ways to name the suits look the same.
SUIT_ORDERS: Final = ("natural", "trump_first", "canonical")
NATURAL, TRUMP_FIRST, CANONICAL = range(3)

Memory = Literal["perfect", "last_trick", "none"]
Suits = Literal["natural", "trump_first", "canonical"]


class Field(NamedTuple):
    """One named part of the observation."""

    name: str
    #: ``cards``, ``suits``, ``actions``, ``flag``, ``count``, ``number`` or ``events``.
    kind: str
    offset: int
    size: int
    #: The whole number that is written as 1.0; 1 for everything that is only present or absent.
    most: int
    meaning: str


#: All four marriages.
_MOST_PENDING: Final = TRUMP_MARRIAGE_POINTS + (NUM_SUITS - 1) * MARRIAGE_POINTS
#: Points with all marriages and the largest bonus for the last trick.
_MOST_POINTS: Final = TOTAL_CARD_POINTS + _MOST_PENDING + MAX_LAST_TRICK_BONUS
#: The most tricks of one player, and the most that a closer's opponent can have at the closing.
_MOST_TRICKS: Final = 10
_MOST_CLOSE_TRICKS: Final = 4
_EVENT_SIZE: Final = NUM_ACTIONS + 1
_NUM_DRAWS: Final = 5

_table: list[Field] = []


def _field(name: str, kind: str, size: int, meaning: str, most: int = 1) -> int:
    """Append a field to the table and return its offset."""
    offset = _table[-1].offset + _table[-1].size if _table else 0
    _table.append(Field(name, kind, offset, size, most, meaning))
    return offset


_HAND: Final = _field("hand", "cards", 20, "own hand")
_OWN_WON: Final = _field("own_won", "cards", 20, "cards in own tricks")
_OTHER_WON: Final = _field("other_won", "cards", 20, "cards in the other player's tricks")
_OTHER_KNOWN: Final = _field("other_known", "cards", 20, "cards known to be in the other hand")
_CANNOT_HOLD: Final = _field(
    "other_cannot_hold", "cards", 20, "unseen cards that the other hand cannot hold, by its replies"
)
_UNSEEN: Final = _field(
    "unseen", "cards", 20, "cards not seen: unknown ones of the other hand, and face-down ones"
)
_LAST: Final = _field("last_trick", "cards", 20, "both cards of the last completed trick")
_TURNED_UP: Final = _field("turned_up", "cards", 20, "the card under the talon")
_LED: Final = _field("led", "cards", 20, "the card led and not yet answered")
# The fields from here to the numbers are written as one word of bits, see _flags().
_FLAGS: Final = _field("trump_suit", "suits", 4, "the trump suit")
_OWN_MARRIAGES: Final = _field("own_marriages", "suits", 4, "marriages declared by the player")
_OTHER_MARRIAGES: Final = _field("other_marriages", "suits", 4, "marriages of the other player")
_DECLARED: Final = _field("declared", "suits", 4, "the marriage declared for the coming lead")
_LEGAL: Final = _field(
    "legal_declarations", "suits", 4, "marriages that may be declared now (0 when not to move)"
)
_field("legal_special", "actions", 3, "whether exchange, close, claim are legal now")
_TALON_STATE: Final = _field("talon_state", "count", 3, "one of OPEN, CLOSED, EXHAUSTED")
_CLOSED_BY: Final = _field("closed_by", "count", 2, "the closer: own, other")
_FACE_DOWN: Final = _field(
    "face_down", "count", 6, "face-down cards without the turned-up one: 0, 1, 3, 5, 7 or 9"
)
_TO_MOVE: Final = _field("to_move", "flag", 1, "the player is to move")
_ON_LEAD: Final = _field("on_lead", "flag", 1, "the player leads to the next trick")
_IS_FOREHAND: Final = _field("is_forehand", "flag", 1, "the player led to the first trick")
_OWN_IS_OUT: Final = _field("own_is_out", "flag", 1, "the player has 66 points")
_OWN_TRICKLESS: Final = _field("own_trickless", "flag", 1, "the player has won no trick")
_OTHER_TRICKLESS: Final = _field("other_trickless", "flag", 1, "the other has won no trick")
_NUMBERS: Final = _field("own_points", "number", 1, "points, marriages included", _MOST_POINTS)
_field("other_points", "number", 1, "points of the other player", _MOST_POINTS)
_field("own_card_points", "number", 1, "card points in own tricks", _MOST_POINTS)
_field("other_card_points", "number", 1, "card points in the other's tricks", _MOST_POINTS)
_field("own_to_66", "number", 1, "points missing to 66", OUT_POINTS)
_field("other_to_66", "number", 1, "points that the other player misses to 66", OUT_POINTS)
_field("own_to_33", "number", 1, "points missing to be safe from Schneider", SCHNEIDER_POINTS)
_field("other_to_33", "number", 1, "the same for the other player", SCHNEIDER_POINTS)
_field("own_pending", "number", 1, "marriage points that wait for a first trick", _MOST_PENDING)
_field("other_pending", "number", 1, "the same for the other player", _MOST_PENDING)
_field("own_tricks", "number", 1, "tricks won", _MOST_TRICKS)
_field("other_tricks", "number", 1, "tricks won by the other player", _MOST_TRICKS)
_field(
    "close_tricks",
    "number",
    1,
    "tricks of the closer's opponent at the closing",
    _MOST_CLOSE_TRICKS,
)
_field("close_points", "number", 1, "points of the closer's opponent at the closing", _MOST_POINTS)
_field("own_win_value", "number", 1, "game points for going out now", 3)
_field("other_win_value", "number", 1, "game points of the other player for going out now", 3)
_field("own_needed", "number", 1, "game points missing to win the match", MAX_TARGET)
_field("other_needed", "number", 1, "the same for the other player", MAX_TARGET)

_NUM_FLAGS: Final = _NUMBERS - _FLAGS
#: The fields of every observation, in order.
FIELDS: Final = tuple(_table)
#: Features of an observation without history.
BASE_SIZE: Final = FIELDS[-1].offset + FIELDS[-1].size

_FIRST_TURNED_UP: Final = _field("first_turned_up", "cards", 20, "the card turned up at the deal")
_DRAWS: Final = _field(
    "own_draws", "events", _NUM_DRAWS * NUM_CARDS, "own drawn cards, one row of 20 a draw, in order"
)
_EVENTS: Final = _field(
    "history",
    "events",
    r.MAX_ACTIONS_PER_DEAL * _EVENT_SIZE,
    "the actions of this deal in order, a row each: 27 for the action, 1 if the player took it",
)
#: The further fields of an observation with ``history=True``, which make it an information state of
#: perfect recall.
HISTORY_FIELDS: Final = tuple(_table[len(FIELDS) :])
_FULL_SIZE: Final = HISTORY_FIELDS[-1].offset + HISTORY_FIELDS[-1].size


@dataclass(frozen=True)
class Layout:
    """Which observation an environment gives.

    Args:
        memory: what of the past a player may look at, see :data:`schnapsen_env.view.MEMORIES`.
        suits: how the suits are named, see :data:`SUIT_ORDERS`.
        history: append the order of actions and own draws (:data:`HISTORY_FIELDS`).

    Raises:
        ValueError: an unknown value, or ``history`` for a player who may not look back.
    """

    memory: Memory = "perfect"
    suits: Suits = "natural"
    history: bool = False

    def __post_init__(self) -> None:
        if self.memory not in MEMORIES:
            raise ValueError(
                f"memory={self.memory!r} is unknown: choose one of {', '.join(MEMORIES)}"
            )
        if self.suits not in SUIT_ORDERS:
            raise ValueError(
                f"suits={self.suits!r} is unknown: choose one of {', '.join(SUIT_ORDERS)}"
            )
        if not isinstance(self.history, bool):
            raise ValueError(f"history={self.history!r} is unknown: choose True or False")
        if self.history and self.memory != "perfect":
            raise ValueError(
                f"history=True cannot be combined with memory={self.memory!r}: the history is a "
                "perfect memory; choose one of the two"
            )

    @property
    def fields(self) -> tuple[Field, ...]:
        """The named fields in order."""
        return FIELDS + HISTORY_FIELDS if self.history else FIELDS

    @property
    def size(self) -> int:
        """The number of features F."""
        return _FULL_SIZE if self.history else BASE_SIZE

    @property
    def scale(self) -> npt.NDArray[np.float32]:
        """The factor from whole numbers to the float form, ``float32[F]``."""
        return np.concatenate(
            [np.full(field.size, 1 / field.most, dtype=np.float32) for field in self.fields]
        )

    @property
    def memory_code(self) -> int:
        """The index in :data:`schnapsen_env.view.MEMORIES`, for compiled functions."""
        return MEMORIES.index(self.memory)

    @property
    def suits_code(self) -> int:
        """The index in :data:`SUIT_ORDERS`, for compiled functions."""
        return SUIT_ORDERS.index(self.suits)

    @property
    def history_code(self) -> int:
        """1 with history, for compiled functions."""
        return int(self.history)


#: Perfect memory, natural suits, no history: what agents take.
DEFAULT_LAYOUT: Final = Layout()


# ------------------------------------------------------------------------------ names of suits
#
# An order of suits is an integer: two bits a new suit, saying which natural suit it is.

_NATURAL_ORDER: Final = 0b11_10_01_00


@compiled
def natural_suit(order: int, suit: int) -> int:
    """The natural suit that ``order`` calls ``suit``."""
    return order >> (2 * suit) & 3


@compiled
def _sort_key(seen: View, suit: int) -> int:
    """Everything that a player sees of the cards of a suit; equal only for like suits."""
    shift = NUM_RANKS * suit
    key = seen.cards.hand >> shift & SUIT_SET
    key = key << NUM_RANKS | (bit(seen.cards.led) >> shift & SUIT_SET)
    key = key << NUM_RANKS | (seen.cards.other_known >> shift & SUIT_SET)
    key = key << NUM_RANKS | (seen.cards.unseen >> shift & SUIT_SET)
    key = key << NUM_RANKS | (seen.cards.other_cannot_hold >> shift & SUIT_SET)
    key = key << NUM_RANKS | (seen.cards.own_won >> shift & SUIT_SET)
    key = key << NUM_RANKS | (seen.cards.other_won >> shift & SUIT_SET)
    key = key << NUM_RANKS | (seen.cards.last_trick >> shift & SUIT_SET)
    key = key << 1 | (seen.table.own_marriages >> suit & 1)
    key = key << 1 | (seen.table.other_marriages >> suit & 1)
    # A short memory has forgotten the marriage, and the table still shows that it must be led.
    return key << 1 | int(seen.table.declared == suit)


@compiled
def _first_seen(record: Record, seat: int) -> int:
    """When each suit was first played or declared, and first drawn by ``seat``: a byte a suit.

    Suits of which a player sees the same cards may still differ in their history. No two suits have
    the same byte, but those that have no history at all.
    """
    seen = 0
    for suit in range(NUM_SUITS):
        first, drawn = 31, 7
        for index in range(record[r.NUM_TAKEN] - 1, -1, -1):
            action, _ = event(record, index)
            if action // NUM_RANKS == suit or action == FIRST_DECLARE + suit:
                first = index
        for trick in range(_NUM_DRAWS - 1, -1, -1):
            card = own_draw(record, seat, trick)
            if card != r.NONE and card // NUM_RANKS == suit:
                drawn = trick
        seen |= (first << 3 | drawn) << (8 * suit)
    return seen


@compiled
def suit_order(seen: View, suits_code: int, first_seen: int) -> int:
    """The order of suits for one player's view.

    Args:
        seen: the view.
        suits_code: an index of :data:`SUIT_ORDERS`.
        first_seen: what decides, in canonical order, between suits of which the same is seen: the
            smaller byte of the two first; 0 for observations without history, in which such suits
            look the same.
    """
    if suits_code == NATURAL:
        return _NATURAL_ORDER
    trump_suit = seen.table.trump_suit
    order = trump_suit
    if suits_code == TRUMP_FIRST:
        place = 1
        for suit in range(NUM_SUITS):
            if suit != trump_suit:
                order |= suit << (2 * place)
                place += 1
        return order
    for suit in range(NUM_SUITS):
        if suit != trump_suit:
            place = 1  # after each suit with a larger key, or the same key and seen earlier
            for rival in range(NUM_SUITS):
                if rival != trump_suit and rival != suit:
                    mine, theirs = _sort_key(seen, suit), _sort_key(seen, rival)
                    if theirs == mine:
                        mine, theirs = (
                            first_seen >> (8 * rival) & 255,
                            first_seen >> (8 * suit) & 255,
                        )
                    if theirs > mine or (theirs == mine and rival < suit):
                        place += 1
            order |= suit << (2 * place)
    return order


@compiled
def order_of(record: Record, seat: int, seen: View, suits_code: int, history: int) -> int:
    """The order of suits in which ``seat``, who has the view ``seen``, is told of a deal."""
    first_seen = _first_seen(record, seat) if suits_code == CANONICAL and history else 0
    return suit_order(seen, suits_code, first_seen)


@compiled
def rename_cards(cards: int, order: int) -> int:
    """A set of cards by the names that ``order`` gives the suits."""
    if order == _NATURAL_ORDER:
        return cards
    renamed = 0
    for suit in range(NUM_SUITS):
        row = cards >> (NUM_RANKS * natural_suit(order, suit)) & SUIT_SET
        renamed |= row << (NUM_RANKS * suit)
    return renamed


@compiled
def _rename_suits(suits: int, order: int) -> int:
    if order == _NATURAL_ORDER:
        return suits
    renamed = 0
    for suit in range(NUM_SUITS):
        renamed |= (suits >> natural_suit(order, suit) & 1) << suit
    return renamed


@compiled
def _rename_actions(actions: int, order: int) -> int:
    if order == _NATURAL_ORDER:
        return actions
    cards = rename_cards(actions & ((1 << NUM_CARDS) - 1), order)
    suits = _rename_suits(actions >> FIRST_DECLARE & ((1 << NUM_SUITS) - 1), order)
    return cards | suits << FIRST_DECLARE | (actions >> EXCHANGE) << EXCHANGE


@compiled
def natural_action(
    record: Record, codes: Codes, memory: int, suits_code: int, history: int, action: int
) -> int:
    """The natural id of an ``action`` that the player to move named in its own order of suits.

    The layout is given by its codes, as to :func:`encode`.
    """
    if suits_code == NATURAL or action >= EXCHANGE:
        return action
    seat = record[r.TO_MOVE]
    seen = view(record, codes, seat, memory)
    return action_in_natural_order(order_of(record, seat, seen, suits_code, history), action)


@compiled
def named_action(
    record: Record, codes: Codes, memory: int, suits_code: int, history: int, action: int
) -> int:
    """What the player to move calls the action with the natural id ``action``.

    The inverse of :func:`natural_action`.
    """
    if suits_code == NATURAL or action >= EXCHANGE:
        return action
    seat = record[r.TO_MOVE]
    seen = view(record, codes, seat, memory)
    order = order_of(record, seat, seen, suits_code, history)
    return lowest(_rename_actions(1 << action, order))


@compiled
def action_in_natural_order(order: int, action: int) -> int:
    """The natural id of an ``action`` whose suits are named by ``order``."""
    if action >= EXCHANGE:
        return action
    if action >= FIRST_DECLARE:
        return FIRST_DECLARE + natural_suit(order, action - FIRST_DECLARE)
    return NUM_RANKS * natural_suit(order, action // NUM_RANKS) + action % NUM_RANKS


# ------------------------------------------------------------------------------------ writing


@compiled
def _write_number(out: Any, index: int, value: int, most: int, scaled: int) -> None:
    unit = np.float32(1 / most) if scaled else np.float32(1)
    out[index] = np.float32(value) * unit


@compiled
def _one_of(index: int, shift: int) -> int:
    """A single bit at ``shift + index``, or none for -1."""
    return 1 << (shift + index) if index >= 0 else 0


@compiled
def _flags(seen: View, order: int) -> int:
    """All fields between the card sets and the numbers, as one word of bits."""
    first = _FLAGS
    word = _rename_suits(1 << seen.table.trump_suit, order)
    word |= _rename_suits(seen.table.own_marriages, order) << (_OWN_MARRIAGES - first)
    word |= _rename_suits(seen.table.other_marriages, order) << (_OTHER_MARRIAGES - first)
    word |= _rename_suits(bit(seen.table.declared), order) << (_DECLARED - first)
    word |= (_rename_actions(seen.legal, order) >> FIRST_DECLARE) << (_LEGAL - first)
    word |= _one_of(seen.table.talon_state, _TALON_STATE - first)
    word |= _one_of(seen.table.closed_by, _CLOSED_BY - first)
    word |= _one_of((seen.table.face_down + 1) // 2, _FACE_DOWN - first)
    word |= seen.table.to_move << (_TO_MOVE - first)
    word |= seen.table.on_lead << (_ON_LEAD - first)
    word |= seen.table.is_forehand << (_IS_FOREHAND - first)
    word |= seen.tally.own_is_out << (_OWN_IS_OUT - first)
    word |= seen.tally.own_trickless << (_OWN_TRICKLESS - first)
    return word | seen.tally.other_trickless << (_OTHER_TRICKLESS - first)


@compiled
def _write_view(seen: View, order: int, scaled: int, out: Any) -> None:
    store_bits(out, _HAND, rename_cards(seen.cards.hand, order), NUM_CARDS)
    store_bits(out, _OWN_WON, rename_cards(seen.cards.own_won, order), NUM_CARDS)
    store_bits(out, _OTHER_WON, rename_cards(seen.cards.other_won, order), NUM_CARDS)
    store_bits(out, _OTHER_KNOWN, rename_cards(seen.cards.other_known, order), NUM_CARDS)
    store_bits(out, _CANNOT_HOLD, rename_cards(seen.cards.other_cannot_hold, order), NUM_CARDS)
    store_bits(out, _UNSEEN, rename_cards(seen.cards.unseen, order), NUM_CARDS)
    store_bits(out, _LAST, rename_cards(seen.cards.last_trick, order), NUM_CARDS)
    store_bits(out, _TURNED_UP, rename_cards(bit(seen.cards.turned_up), order), NUM_CARDS)
    store_bits(out, _LED, rename_cards(bit(seen.cards.led), order), NUM_CARDS)
    store_bits(out, _FLAGS, _flags(seen, order), _NUM_FLAGS)
    n = _NUMBERS
    _write_number(out, n, seen.tally.own_points, _MOST_POINTS, scaled)
    _write_number(out, n + 1, seen.tally.other_points, _MOST_POINTS, scaled)
    _write_number(out, n + 2, seen.tally.own_card_points, _MOST_POINTS, scaled)
    _write_number(out, n + 3, seen.tally.other_card_points, _MOST_POINTS, scaled)
    _write_number(out, n + 4, seen.tally.own_to_66, OUT_POINTS, scaled)
    _write_number(out, n + 5, seen.tally.other_to_66, OUT_POINTS, scaled)
    _write_number(out, n + 6, seen.tally.own_to_33, SCHNEIDER_POINTS, scaled)
    _write_number(out, n + 7, seen.tally.other_to_33, SCHNEIDER_POINTS, scaled)
    _write_number(out, n + 8, seen.tally.own_pending, _MOST_PENDING, scaled)
    _write_number(out, n + 9, seen.tally.other_pending, _MOST_PENDING, scaled)
    _write_number(out, n + 10, seen.tally.own_tricks, _MOST_TRICKS, scaled)
    _write_number(out, n + 11, seen.tally.other_tricks, _MOST_TRICKS, scaled)
    _write_number(out, n + 12, seen.tally.close_tricks, _MOST_CLOSE_TRICKS, scaled)
    _write_number(out, n + 13, seen.tally.close_points, _MOST_POINTS, scaled)
    _write_number(out, n + 14, seen.tally.own_win_value, 3, scaled)
    _write_number(out, n + 15, seen.tally.other_win_value, 3, scaled)
    _write_number(out, n + 16, seen.tally.own_needed, MAX_TARGET, scaled)
    _write_number(out, n + 17, seen.tally.other_needed, MAX_TARGET, scaled)


@compiled
def _write_history(record: Record, seat: int, order: int, out: Any) -> None:
    store_bits(out, _FIRST_TURNED_UP, rename_cards(bit(first_turned_up(record)), order), NUM_CARDS)
    out[_DRAWS:_FULL_SIZE] = 0
    for trick in range(_NUM_DRAWS):
        if own_draw(record, seat, trick) != r.NONE:
            drawn = rename_cards(bit(own_draw(record, seat, trick)), order)
            store_bits(out, _DRAWS + NUM_CARDS * trick, drawn, NUM_CARDS)
    for index in range(record[r.NUM_TAKEN]):
        action, actor = event(record, index)
        row = _EVENTS + _EVENT_SIZE * index
        store_bits(out, row, _rename_actions(1 << action, order), NUM_ACTIONS)
        out[row + NUM_ACTIONS] = 1 if actor == seat else 0


@compiled
def encode(
    record: Record,
    codes: Codes,
    seat: int,
    memory: int,
    suits_code: int,
    history: int,
    scaled: int,
    out: Any,
    mask: npt.NDArray[np.int8],
) -> None:
    """Write the observation of ``seat`` into ``out`` and its action mask into ``mask``.

    Args:
        record: ``int64[RECORD_SIZE]``.
        codes: ``Rules.codes()``.
        seat: the player who looks.
        memory: ``Layout.memory_code``.
        suits_code: ``Layout.suits_code``.
        history: ``Layout.history_code``.
        scaled: 1 for the float form, 0 for whole numbers.
        out: ``float32[F]`` or ``uint8[F]``, without gaps: compiled code does not look at strides.
        mask: ``int8[27]``; all zeros unless ``seat`` is to move.
    """
    seen = view(record, codes, seat, memory)
    order = order_of(record, seat, seen, suits_code, history)
    _write_view(seen, order, scaled, out)
    if history:
        _write_history(record, seat, order, out)
    store_bits(mask, 0, _rename_actions(seen.legal, order), NUM_ACTIONS)


def observe(
    record: Record, codes: Codes, seat: int, layout: Layout = DEFAULT_LAYOUT
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """The observation ``float32[F]`` and the action mask ``int8[27]`` of one player."""
    out = np.empty(layout.size, dtype=np.float32)
    mask = np.empty(NUM_ACTIONS, dtype=np.int8)
    memory, suits, history = layout.memory_code, layout.suits_code, layout.history_code
    encode(record, codes, seat, memory, suits, history, 1, out, mask)
    return out, mask


# --------------------------------------------------------------------------- full information

#: Features G of the full-information state: both players' observations and the talon.
STATE_SIZE: Final = 2 * BASE_SIZE + TALON_SIZE * NUM_CARDS


@compiled
def encode_state(record: Record, codes: Codes, out: npt.NDArray[np.float32]) -> None:
    """Write the full information on a deal into ``out``, ``float32[G]``.

    In order: the observation of seat 0, the observation of seat 1, and the face-down cards in
    drawing order, a row of 20 each (a row of zeros where none is left).
    """
    for seat in range(2):
        seen = view(record, codes, seat, PERFECT)
        start = seat * BASE_SIZE
        _write_view(seen, _NATURAL_ORDER, 1, out[start : start + BASE_SIZE])
    for row in range(TALON_SIZE):
        place = TALON_SIZE - record[r.FACE_DOWN] + row
        card = talon_card(record, place) if row < record[r.FACE_DOWN] else r.NONE
        store_bits(out, 2 * BASE_SIZE + NUM_CARDS * row, bit(card), NUM_CARDS)


# ------------------------------------------------------------------------------------ reading


@compiled
def _read_bits(observation: Any, offset: int, width: int) -> int:
    bits = 0
    for i in range(width):
        if observation[offset + i] != 0:
            bits |= 1 << i
    return bits


@compiled
def _read_index(observation: Any, offset: int, width: int) -> int:
    """Which one of ``width`` numbers is set, or -1."""
    for i in range(width):
        if observation[offset + i] != 0:
            return i
    return -1


@compiled
def _read_number(observation: Any, index: int, most: int) -> int:
    return int(observation[_NUMBERS + index] * most + 0.5)


@compiled
def decode(observation: Any, mask: Any) -> View:
    """The view that an observation of the default layout was made from.

    Args:
        observation: ``float32[F]`` in the default layout.
        mask: ``int8[27]``, the action mask that came with it.
    """
    cards = Cards(
        _read_bits(observation, _HAND, NUM_CARDS),
        _read_bits(observation, _OWN_WON, NUM_CARDS),
        _read_bits(observation, _OTHER_WON, NUM_CARDS),
        _read_bits(observation, _OTHER_KNOWN, NUM_CARDS),
        _read_bits(observation, _CANNOT_HOLD, NUM_CARDS),
        _read_bits(observation, _UNSEEN, NUM_CARDS),
        _read_bits(observation, _LAST, NUM_CARDS),
        _read_index(observation, _TURNED_UP, NUM_CARDS),
        _read_index(observation, _LED, NUM_CARDS),
    )
    table = Table(
        _read_index(observation, _FLAGS, NUM_SUITS),
        _read_bits(observation, _OWN_MARRIAGES, NUM_SUITS),
        _read_bits(observation, _OTHER_MARRIAGES, NUM_SUITS),
        _read_index(observation, _DECLARED, NUM_SUITS),
        _read_index(observation, _TALON_STATE, 3),
        _read_index(observation, _CLOSED_BY, 2),
        max(2 * _read_index(observation, _FACE_DOWN, 6) - 1, 0),
        _read_bits(observation, _TO_MOVE, 1),
        _read_bits(observation, _ON_LEAD, 1),
        _read_bits(observation, _IS_FOREHAND, 1),
    )
    tally = Tally(
        _read_bits(observation, _OWN_IS_OUT, 1),
        _read_bits(observation, _OWN_TRICKLESS, 1),
        _read_bits(observation, _OTHER_TRICKLESS, 1),
        _read_number(observation, 0, _MOST_POINTS),
        _read_number(observation, 1, _MOST_POINTS),
        _read_number(observation, 2, _MOST_POINTS),
        _read_number(observation, 3, _MOST_POINTS),
        _read_number(observation, 4, OUT_POINTS),
        _read_number(observation, 5, OUT_POINTS),
        _read_number(observation, 6, SCHNEIDER_POINTS),
        _read_number(observation, 7, SCHNEIDER_POINTS),
        _read_number(observation, 8, _MOST_PENDING),
        _read_number(observation, 9, _MOST_PENDING),
        _read_number(observation, 10, _MOST_TRICKS),
        _read_number(observation, 11, _MOST_TRICKS),
        _read_number(observation, 12, _MOST_CLOSE_TRICKS),
        _read_number(observation, 13, _MOST_POINTS),
        _read_number(observation, 14, 3),
        _read_number(observation, 15, 3),
        _read_number(observation, 16, MAX_TARGET),
        _read_number(observation, 17, MAX_TARGET),
    )
    return View(cards, table, tally, _read_bits(mask, 0, NUM_ACTIONS))


@compiled
def relabel(
    observation: Any,
    mask: Any,
    suits_code: int,
    out: npt.NDArray[np.float32],
    out_mask: npt.NDArray[np.int8],
) -> int:
    """Write an observation of the default layout, and its mask, again with the suits renamed.

    For agents that were trained with ``suits=`` and are shown the default layout. The result is
    what an environment with that option gives.

    Args:
        observation: ``float32[F]`` in the default layout.
        mask: ``int8[27]``, the action mask that came with it.
        suits_code: ``Layout.suits_code`` of the names that are wanted.
        out: ``float32[F]``, filled with the observation.
        out_mask: ``int8[27]``, filled with the mask.

    Returns:
        The order of suits, for :func:`action_in_natural_order`.
    """
    seen = decode(observation, mask)
    order = suit_order(seen, suits_code, 0)
    _write_view(seen, order, 1, out)
    store_bits(out_mask, 0, _rename_actions(seen.legal, order), NUM_ACTIONS)
    return order


_WORDS: Final = {
    "talon_state": ("OPEN", "CLOSED", "EXHAUSTED"),
    "closed_by": ("own", "other"),
    "face_down": (0, 1, 3, 5, 7, 9),
}


def describe(observation: npt.ArrayLike, layout: Layout = DEFAULT_LAYOUT) -> dict[str, Any]:
    """Every field of one observation by name, in words.

    Args:
        observation: ``float32[F]`` or ``uint8[F]`` of ``layout``.
        layout: the layout that the environment was made with.

    Returns:
        Card and suit sets as lists of texts (with renamed suits as digits, ``"T0"`` being the ten
        of trumps), flags as bool, numbers as unscaled int, histories as lists.

    Raises:
        ValueError: the shape is not that of ``layout``.
    """
    array = np.asarray(observation)
    if array.shape != (layout.size,):
        raise ValueError(
            f"an observation of {layout} has shape ({layout.size},), not {array.shape}; "
            "describe one observation at a time"
        )
    whole = array.astype(np.int64)
    if array.dtype != np.uint8:
        whole = np.rint(array / layout.scale).astype(np.int64)
    suit_names = SUITS if layout.suits == "natural" else "0123"
    return {
        field.name: _describe_field(
            field, whole[field.offset : field.offset + field.size], suit_names
        )
        for field in layout.fields
    }


def _describe_field(field: Field, values: npt.NDArray[np.int64], suit_names: str) -> Any:
    def card(index: int) -> str:
        return RANKS[index % NUM_RANKS] + suit_names[index // NUM_RANKS]

    present = [int(index) for index in np.flatnonzero(values)]
    if field.kind == "cards":
        return [card(index) for index in present]
    if field.kind == "suits":
        return [suit_names[index] for index in present]
    if field.kind == "actions":
        return [WORDS[EXCHANGE + index] for index in present]
    if field.kind == "count":
        return _WORDS[field.name][present[0]] if present else None
    if field.kind == "flag":
        return bool(values[0])
    if field.kind == "number":
        return int(values[0])
    if field.name == "own_draws":
        return [card(index % NUM_CARDS) for index in present]
    rows = values.reshape(-1, _EVENT_SIZE)
    return [_describe_event(row, card, suit_names) for row in rows if row[:NUM_ACTIONS].any()]


def _describe_event(row: npt.NDArray[np.int64], card: Any, suit_names: str) -> str:
    action = int(row[:NUM_ACTIONS].argmax())
    player = "own" if row[NUM_ACTIONS] else "other"
    if action < FIRST_DECLARE:
        return f"{player} {card(action)}"
    if action < EXCHANGE:
        return f"{player} {DECLARE_WORD}{suit_names[action - FIRST_DECLARE]}"
    return f"{player} {WORDS[action]}"


def layout_table(layout: Layout = DEFAULT_LAYOUT) -> str:
    """The table of fields in Markdown, as the documentation shows it."""
    rows = ["| index | field | scaled by | meaning |", "|---|---|---|---|"]
    for field in layout.fields:
        last = field.offset + field.size - 1
        index = f"{field.offset}" if field.size == 1 else f"{field.offset}-{last}"
        scaled = f"1/{field.most}" if field.most > 1 else ""
        rows.append(f"| {index} | `{field.name}` | {scaled} | {field.meaning} |")
    return "\n".join(rows) + "\n"
