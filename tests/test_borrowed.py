"""Borrowed arrays: the same numbers, no reference counted, none lost."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled
from tests.processes import run_python

Ints = npt.NDArray[np.int64]


@compiled
def _add_to_rows(table: Ints, number: int) -> int:
    """Add ``number`` to each row behind a jump, where references would be counted."""
    table = borrowed(table)
    total = 0
    for i in range(len(table)):
        row = table[i]
        if row[0] >= 0:
            row += number
        total += row.sum()
    return total


@compiled
def _add_to_made(number: int) -> int:
    """The same for an array that lives in the caller of the borrower."""
    table = np.ones((3, 4), dtype=np.int64)
    return _add_to_rows(table, number) + table[2, 3]


def test_a_borrowed_array_is_the_same_array() -> None:
    table = np.arange(12, dtype=np.int64).reshape(3, 4)
    wanted = table + 5
    assert _add_to_rows(table, 5) == wanted.sum()
    np.testing.assert_array_equal(table, wanted)
    part = table[1:, ::2]  # neither contiguous nor an owner of its memory
    assert _add_to_rows(part, 1) == (wanted[1:, ::2] + 1).sum()


def test_no_reference_is_lost_or_left() -> None:
    table: Any = np.zeros((50, 4), dtype=np.int64)
    before = sys.getrefcount(table)
    for _ in range(10_000):
        _add_to_rows(table, 1)
    assert sys.getrefcount(table) == before
    assert (table == 10_000).all()


def test_memory_of_the_caller_stays_until_it_returns() -> None:
    assert {_add_to_made(number) for number in [7] * 10_000} == {3 * 4 * 8 + 8}


def test_uncompiled_it_is_the_array_itself() -> None:
    code = (
        "import numpy as np\n"
        "from schnapsen_env.borrowed import borrowed\n"
        "array = np.zeros(3)\n"
        "print(borrowed(array) is array)"
    )
    assert run_python("-c", code, NUMBA_DISABLE_JIT="1").split() == ["True"]
