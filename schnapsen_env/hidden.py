"""What a player cannot see, for critics that may: the other hand and the order of the talon.

It is written in the player's own names of the suits, so that it can stand beside the observation of
the same layout as the input of a value network. Never give it to a policy. The full information in
natural suits and by seat, without regard to a player, is
:func:`schnapsen_env.observation.encode_state`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.bitstore import store_bits
from schnapsen_env.cards import NUM_CARDS, TALON_SIZE
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.engine import record as r
from schnapsen_env.engine.play import talon_card
from schnapsen_env.observation import order_of, rename_cards
from schnapsen_env.view import bit, view

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

#: Features H: the other hand, and each face-down card in drawing order, 20 numbers each.
HIDDEN_SIZE: Final = NUM_CARDS * (1 + TALON_SIZE)


@compiled
def encode_hidden(
    record: Record,
    codes: Codes,
    seat: int,
    memory: int,
    suits_code: int,
    history: int,
    out: npt.NDArray[np.uint8],
) -> None:
    """Write what ``seat`` cannot see into ``out``, ``uint8[H]``.

    In order: the other player's hand, and the face-down cards in drawing order, a row of 20 each (a
    row of zeros where none is left). The layout is given by its codes, as to
    :func:`schnapsen_env.observation.encode`, and names the suits as that does.
    """
    order = order_of(record, seat, view(record, codes, seat, memory), suits_code, history)
    store_bits(out, 0, rename_cards(record[r.HAND + 1 - seat], order), NUM_CARDS)
    for row in range(TALON_SIZE):
        place = TALON_SIZE - record[r.FACE_DOWN] + row
        card = talon_card(record, place) if row < record[r.FACE_DOWN] else r.NONE
        store_bits(out, NUM_CARDS * (1 + row), rename_cards(bit(card), order), NUM_CARDS)


@compiled_apart
def write_hidden(
    records: Record,
    codes: Codes,
    memory: int,
    suits_code: int,
    history: int,
    out: npt.NDArray[np.uint8],
) -> None:
    """Write what the player to move cannot see in each of N deals into ``out``, ``uint8[N, H]``.

    Args:
        records: ``int64[N, R]``.
        codes: ``Rules.codes()``.
        memory: ``Layout.memory_code``.
        suits_code: ``Layout.suits_code``.
        history: ``Layout.history_code``.
        out: is filled.
    """
    for row in range(len(records)):
        record = records[row]
        encode_hidden(record, codes, record[r.TO_MOVE], memory, suits_code, history, out[row])
