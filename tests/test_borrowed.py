"""Borrowed arrays: the same numbers, no reference counted, none lost."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest

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


def test_what_is_no_array_is_refused_by_name() -> None:
    @numba.njit
    def borrow(pair: Any) -> Any:
        return borrowed(pair)

    with pytest.raises(numba.TypingError, match="borrowed takes an array, not UniTuple"):
        borrow((1, 2))


ROOT = Path(__file__).parent.parent
SOURCES = [
    path
    for folder in ("schnapsen_env", "agents", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "borrowed(" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_what_the_caller_holds_is_borrowed(path: Path) -> None:
    """An array that a function has made may be freed while it is borrowed."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        held = {argument.arg for argument in function.args.args}
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "borrowed":
                owner = call.args[0]
                while isinstance(owner, ast.Attribute):
                    owner = owner.value
                assert isinstance(owner, ast.Name), ast.unparse(call)
                assert owner.id in held, f"{function.name}: {ast.unparse(call)}"


def test_uncompiled_it_is_the_array_itself() -> None:
    code = (
        "import numpy as np\n"
        "from schnapsen_env.borrowed import borrowed\n"
        "array = np.zeros(3)\n"
        "print(borrowed(array) is array)"
    )
    assert run_python("-c", code, NUMBA_DISABLE_JIT="1").split() == ["True"]
