"""What counts as an integer: Python's, numpy's and torch's own, and neither a bool nor a float."""

from __future__ import annotations

import operator
from typing import Any


def as_integer(value: Any) -> int | None:
    """``value`` as a plain integer, or None if it is none.

    Bools are refused although Python counts them among the integers: a True where a seat or a seed
    belongs is a mistake. Arrays and tensors are integers if they have no dimension.
    """
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        return None
    if getattr(value, "shape", ()):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
