"""The one table of actions: ids, ranges and names.

=========================  =======
action                     id
=========================  =======
play card ``c``            ``c``, 0-19
declare marriage of ``s``  20 + ``s``
exchange the trump jack    24
close the talon            25
claim 66                   26
=========================  =======
"""

from __future__ import annotations

from typing import Final

from schnapsen_env.cards import NUM_CARDS, NUM_SUITS, SUITS, card_text, parse_card, parse_suit

FIRST_DECLARE: Final = NUM_CARDS
EXCHANGE: Final = FIRST_DECLARE + NUM_SUITS
CLOSE: Final = EXCHANGE + 1
CLAIM: Final = CLOSE + 1
NUM_ACTIONS: Final = CLAIM + 1

#: The texts of the actions that are neither a card nor a marriage.
WORDS: Final = {EXCHANGE: "exchange", CLOSE: "close", CLAIM: "claim"}
_IDS: Final = {word: action for action, word in WORDS.items()}
#: What the text of a marriage begins with; the suit follows.
DECLARE_WORD: Final = "declare-"


def declare(suit: int) -> int:
    """The action id of declaring the marriage of ``suit`` (0-3)."""
    return FIRST_DECLARE + suit


def action_text(action: int) -> str:
    """The text of an action id: a card, ``"declare-H"``, ``"exchange"``, ``"close"``, ``"claim"``.

    Raises:
        ValueError: ``action`` is not in 0-26.
    """
    if not 0 <= action < NUM_ACTIONS:
        raise ValueError(f"{action} is not an action: ids run from 0 to {NUM_ACTIONS - 1}")
    if action < FIRST_DECLARE:
        return card_text(action)
    if action < EXCHANGE:
        return DECLARE_WORD + SUITS[action - FIRST_DECLARE]
    return WORDS[action]


def parse_action(text: str) -> int:
    """The action id of a text that :func:`action_text` writes.

    Raises:
        ValueError: the text is no such action.
    """
    if text in _IDS:
        return _IDS[text]
    if text.startswith(DECLARE_WORD):
        return declare(parse_suit(text.removeprefix(DECLARE_WORD)))
    try:
        return parse_card(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not an action: write a card such as 'TH', 'declare-H', "
            "'exchange', 'close' or 'claim'"
        ) from None
