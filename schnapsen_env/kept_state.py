"""Checks of what callers hand to ``set_state``: is it what ``get_state`` gives?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt


def check_parts(what: str, given: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """``given``, which is a dict with exactly these keys.

    Args:
        what: what messages call it.
        given: part of what a caller hands to ``set_state``.
        names: the keys.

    Raises:
        ValueError: it is something else.
    """
    wanted = sorted(names)
    if not isinstance(given, Mapping):
        got = f"a {type(given).__name__}"
    else:
        parts = cast("Mapping[str, Any]", given)
        if sorted(parts) == wanted:
            return parts
        got = f"one with {', '.join(map(str, parts)) or 'nothing'}"
    raise ValueError(
        f"{what} must be a dict with {', '.join(wanted)}, as get_state() gives it, not {got}"
    )


def check_arrays(what: str, given: Mapping[str, Any], own: Mapping[str, npt.NDArray[Any]]) -> None:
    """Check that each of ``given`` is an array of the same form as that of ``own``.

    Raises:
        ValueError: one is not, and which.
    """
    for name, array in own.items():
        value = given[name]
        got = form_of(cast("Any", value)) if isinstance(value, np.ndarray) else repr(value)
        if got != form_of(array):
            raise ValueError(
                f"{what}[{name!r}] must be {form_of(array)}, not {got}: pass what "
                "get_state() of an environment with the same arguments gave"
            )


def form_of(array: npt.NDArray[Any]) -> str:
    """Dtype and shape in one word, as ``int8[64, 27]``."""
    return f"{array.dtype}{list(array.shape)}"
