"""The twenty cards: ids, names, card points, packs, and sets of cards as bit masks.

A card id is ``5 * suit + rank`` with suits clubs, diamonds, hearts, spades = 0..3 and ranks
jack, queen, king, ten, ace = 0..4, so that within a suit the larger id beats the smaller.
A set of cards is an ``int`` whose bit ``c`` stands for card ``c``.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final, NamedTuple

NUM_SUITS: Final = 4
NUM_RANKS: Final = 5
NUM_CARDS: Final = NUM_SUITS * NUM_RANKS
HAND_SIZE: Final = 5
#: Face-down talon cards right after the deal, without the turned-up trump that lies under them.
TALON_SIZE: Final = NUM_CARDS - 2 * HAND_SIZE - 1

SUITS: Final = "CDHS"
RANKS: Final = "JQKTA"
JACK, QUEEN, KING, TEN, ACE = range(NUM_RANKS)

#: Card points by rank: jack, queen, king, ten, ace.
RANK_POINTS: Final = (2, 3, 4, 10, 11)
#: Card points by card id.
CARD_POINTS: Final = tuple(RANK_POINTS[card % NUM_RANKS] for card in range(NUM_CARDS))
#: All card points in the pack: 120.
TOTAL_CARD_POINTS: Final = sum(CARD_POINTS)

#: The set of all twenty cards.
ALL_CARDS: Final = (1 << NUM_CARDS) - 1
#: The five cards of suit 0 as a set; shift left by ``5 * suit`` for another suit.
SUIT_SET: Final = (1 << NUM_RANKS) - 1
#: King and queen of suit 0 as a set; shift left by ``5 * suit`` for another suit.
MARRIAGE_SET: Final = (1 << KING) | (1 << QUEEN)

MARRIAGE_POINTS: Final = 20
TRUMP_MARRIAGE_POINTS: Final = 40


def marriage_value(suit: int, trump_suit: int) -> int:
    """What the marriage of ``suit`` is worth; the engine compiles this very function."""
    return TRUMP_MARRIAGE_POINTS if suit == trump_suit else MARRIAGE_POINTS


class Pack(NamedTuple):
    """How a pack of cards is shown to people; ids and the two-letter text never change."""

    suit_symbols: tuple[str, str, str, str]
    rank_symbols: tuple[str, str, str, str, str]

    def card_symbol(self, card: int) -> str:
        """The short form of ``card`` for boards and logs, such as ``"10♥"``."""
        return f"{self.rank_symbols[card % NUM_RANKS]}{self.suit_symbols[card // NUM_RANKS]}"


FRENCH_PACK: Final = Pack(
    suit_symbols=("♣", "♦", "♥", "♠"),
    rank_symbols=("J", "Q", "K", "10", "A"),
)
GERMAN_PACK: Final = Pack(
    suit_symbols=("🌰", "🔔", "♥", "🍃"),
    rank_symbols=("U", "O", "K", "10", "A"),
)
#: The packs by the name that renderers take.
PACKS: Final = MappingProxyType({"french": FRENCH_PACK, "german": GERMAN_PACK})


def card_text(card: int) -> str:
    """The two-letter text of a card id, rank then suit: ``13 -> "TH"``."""
    return RANKS[card % NUM_RANKS] + SUITS[card // NUM_RANKS]


def parse_card(text: str) -> int:
    """The card id of a two-letter text such as ``"TH"``.

    Raises:
        ValueError: ``text`` is not a rank of ``JQKTA`` followed by a suit of ``CDHS``.
    """
    if not isinstance(text, str) or len(text) != 2 or text[0] not in RANKS or text[1] not in SUITS:
        raise ValueError(
            f"{text!r} is not a card: write a rank of {RANKS} and a suit of {SUITS}, such as 'TH'"
        )
    return NUM_RANKS * SUITS.index(text[1]) + RANKS.index(text[0])


def parse_suit(text: str) -> int:
    """The suit number of one letter of ``CDHS``.

    Raises:
        ValueError: ``text`` is not such a letter.
    """
    if not isinstance(text, str) or len(text) != 1 or text not in SUITS:
        raise ValueError(f"{text!r} is not a suit: write one letter of {SUITS}")
    return SUITS.index(text)


def card_set(cards: Iterable[int]) -> int:
    """The bit mask of some card ids."""
    mask = 0
    for card in cards:
        mask |= 1 << card
    return mask


def cards_of(mask: int) -> list[int]:
    """The card ids of a bit mask, in ascending order."""
    return [card for card in range(NUM_CARDS) if mask >> card & 1]


def set_card_points(mask: int) -> int:
    """The sum of the card points of a set of cards."""
    return sum(CARD_POINTS[card] for card in cards_of(mask))
