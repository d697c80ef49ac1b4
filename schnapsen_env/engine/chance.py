"""The deal's own random generator: xorshift with 64 bits of state kept in the record.

It lives in the record, so a copied deal continues exactly as the original would, and nothing global
is read. The step is the (13, 7, 17) triple of Marsaglia, "Xorshift RNGs" (2003): shifts and
exclusive-ors only, which mean the same in compiled code and in plain Python on signed integers.
Bounded draws take the upper 31 bits; the bias for 20 outcomes is below 1e-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.compiled import compiled
from schnapsen_env.engine.record import RANDOM

_MASK_57: Final = (1 << 57) - 1
_MASK_31: Final = (1 << 31) - 1


@compiled
def draw_below(record: npt.NDArray[np.int64], n: int) -> int:
    """A uniform integer in ``[0, n)`` for ``1 <= n <= 2**31``; advances the record's generator."""
    x = record[RANDOM]
    x ^= x << 13
    x ^= (x >> 7) & _MASK_57  # a logical shift: the sign must not be copied
    x ^= x << 17
    record[RANDOM] = x
    return (((x >> 33) & _MASK_31) * n) >> 31


def random_states(seeds: Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Well-mixed generator states, ``int64[N]``, for seeds that may be neighbours.

    The mix is the output function of SplitMix64 (Steele, Lea, Flood 2014), a bijection, so
    different seeds in ``[0, 2**64)`` start different streams. Larger or negative seeds are taken
    modulo ``2**64``.
    """
    if isinstance(seeds, np.ndarray):
        numbers = seeds.astype(np.uint64)
    else:  # with its type: numpy makes floats of a list with numbers below and above 2**63
        numbers = np.array([int(seed) % (1 << 64) for seed in seeds], dtype=np.uint64)
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    z[z == 0] = np.uint64(0x9E3779B97F4A7C15)  # xorshift stands still at 0
    return z.view(np.int64)
