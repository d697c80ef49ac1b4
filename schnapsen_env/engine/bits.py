"""Small integers as sets: counting, lowest member, k-th member.

Plain arithmetic that never leaves the range of a signed 64-bit integer, so that it means the same
compiled and uncompiled. Sets have at most 32 members.
"""

from __future__ import annotations

from math import comb
from typing import Final

import numpy as np

from schnapsen_env.cards import NUM_CARDS
from schnapsen_env.compiled import compiled

#: ``COMBINATIONS[n, k]``: how many sets of k members there are among n cards.
COMBINATIONS: Final = np.array(
    [[comb(n, k) for k in range(NUM_CARDS + 1)] for n in range(NUM_CARDS + 1)], dtype=np.int64
)

#: A de Bruijn sequence: each 5-bit window is different (Leiserson, Prokop, Randall 1998).
_DE_BRUIJN: Final = 0x077CB531
_BIT_OF_WINDOW: Final = np.zeros(32, dtype=np.int64)
for _bit in range(32):
    _BIT_OF_WINDOW[((1 << _bit) * _DE_BRUIJN & 0xFFFFFFFF) >> 27] = _bit


@compiled
def count(members: int) -> int:
    """How many members a set of at most 32 has (parallel bit count)."""
    pairs = members - ((members >> 1) & 0x55555555)
    fours = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333)
    bytes_ = (fours + (fours >> 4)) & 0x0F0F0F0F
    return ((bytes_ * 0x01010101) & 0xFFFFFFFF) >> 24


@compiled
def lowest(members: int) -> int:
    """The smallest member of a set that is not empty."""
    return _BIT_OF_WINDOW[(((members & -members) * _DE_BRUIJN) & 0xFFFFFFFF) >> 27]


@compiled
def member(members: int, k: int) -> int:
    """The ``k``-th smallest member, counted from 0, of a set with more than ``k`` members."""
    for _ in range(k):
        members &= members - 1
    return lowest(members)
