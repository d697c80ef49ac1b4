"""The record: one moment of a deal, its match and its random state, in a row of ``int64``.

Everything that the rules read or write is one of the fields below. A record is an
``int64[RECORD_SIZE]`` array and a batch of deals an ``int64[N, RECORD_SIZE]`` array, so copying a
deal is copying a row. Card sets are bit masks over card ids, suit sets over suits; a field of width
2 is indexed by seat: ``record[HAND + seat]``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: Talon states.
OPEN, CLOSED, EXHAUSTED = range(3)

#: "Nobody", "no card" and "no suit" in a record.
NONE: Final = -1


class Field(NamedTuple):
    """One row of the record table."""

    name: str
    offset: int
    width: int
    meaning: str


_table: list[Field] = []


def _field(name: str, width: int, meaning: str) -> int:
    """Append a field to the table and return its offset."""
    offset = _table[-1].offset + _table[-1].width if _table else 0
    _table.append(Field(name, offset, width, meaning))
    return offset


# Whose turn
TO_MOVE: Final = _field(
    "TO_MOVE", 1, "seat to move; once the deal is over who moved last, or won the last trick"
)
LEADER: Final = _field("LEADER", 1, "seat that leads the current trick")
LED: Final = _field("LED", 1, "card led and not yet answered, or -1")
DECLARED: Final = _field("DECLARED", 1, "suit of the marriage declared for this lead, or -1")
# The table
TRUMP: Final = _field("TRUMP", 1, "trump suit")
TURNED_UP: Final = _field("TURNED_UP", 1, "card under the talon, or -1 once it is drawn")
FACE_DOWN: Final = _field("FACE_DOWN", 1, "face-down talon cards: 9, 7, 5, 3, 1, 0")
TALON_STATE: Final = _field("TALON_STATE", 1, "OPEN, CLOSED or EXHAUSTED")
# By seat
HAND: Final = _field("HAND", 2, "cards in hand, a set")
WON: Final = _field("WON", 2, "cards in tricks won, a set")
CARD_POINTS: Final = _field("CARD_POINTS", 2, "card points in tricks won, with a last trick bonus")
TRICKS: Final = _field("TRICKS", 2, "tricks won")
MARRIAGES: Final = _field("MARRIAGES", 2, "suits of the marriages declared, a set")
KNOWN: Final = _field("KNOWN", 2, "cards in this hand that the other player knows, a set")
CANNOT_HOLD: Final = _field("CANNOT_HOLD", 2, "cards that strict-phase replies rule out, a set")
DRAWN: Final = _field("DRAWN", 2, "cards drawn, five bits each in order, all ones where none was")
# Closing
CLOSED_BY: Final = _field("CLOSED_BY", 1, "seat of the closer, or -1")
CLOSE_TRICKS: Final = _field("CLOSE_TRICKS", 1, "tricks of the closer's opponent at the closing")
CLOSE_POINTS: Final = _field("CLOSE_POINTS", 1, "points of the closer's opponent at the closing")
CLOSE_CARD_POINTS: Final = _field("CLOSE_CARD_POINTS", 1, "the same without marriages")
# What has happened
LAST_LEAD: Final = _field("LAST_LEAD", 1, "card led to the last completed trick, or -1")
LAST_REPLY: Final = _field("LAST_REPLY", 1, "card that answered it, or -1")
DECK: Final = _field("DECK", 2, "the deck, five bits a card: the two hands; turned-up and talon")
NUM_TAKEN: Final = _field("NUM_TAKEN", 1, "actions taken since the deal or the position began")
HISTORY: Final = _field("HISTORY", 3, "those actions and who took them, six bits each, in order")
FROM_POSITION: Final = _field("FROM_POSITION", 1, "1 if the record began mid-deal, else 0")
# The result
END_REASON: Final = _field("END_REASON", 1, "EndReason; 0 while the deal runs")
WINNER: Final = _field("WINNER", 1, "seat that won the deal, or -1")
GAME_POINTS: Final = _field("GAME_POINTS", 1, "game points of the winner")
# The match
FOREHAND: Final = _field("FOREHAND", 1, "seat that leads to the first trick of this deal")
DEAL_NUMBER: Final = _field("DEAL_NUMBER", 1, "deals begun in this match; 0 before the first")
MATCH_SCORE: Final = _field("MATCH_SCORE", 2, "game points won in this match")
# Chance
RANDOM: Final = _field("RANDOM", 1, "state of the deal's own random generator, never 0")

#: Every field with its offset, width and meaning, in order; the fields fill the record.
RECORD_TABLE: Final = tuple(_table)
RECORD_SIZE: Final = RECORD_TABLE[-1].offset + RECORD_TABLE[-1].width

#: Bits of a card in DECK and DRAWN, and cards that one word of DECK holds.
CARD_BITS: Final = 5
CARD_WORD: Final = (1 << CARD_BITS) - 1
#: DRAWN before the first of five draws.
NOTHING_DRAWN: Final = (1 << 5 * CARD_BITS) - 1
CARDS_PER_DECK_WORD: Final = 10
#: Bits of an entry of HISTORY (five for the action, one for the seat), and entries of one word.
HISTORY_BITS: Final = 6
HISTORY_PER_WORD: Final = 10
#: The most actions that a deal can take: 20 cards, 4 marriages, exchange, close, claim once each.
#: (The jack that an exchange lays under the talon cannot be exchanged again, and no claim leaves
#: the deal running.)
MAX_ACTIONS_PER_DEAL: Final = 27
