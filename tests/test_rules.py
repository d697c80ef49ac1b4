"""Rule sets as values: what a field takes, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schnapsen_env import RULES, Rules, schnapsen_v0


def test_values_of_numpy_are_kept_as_plain_ones() -> None:
    given: Any = {
        "target": np.int64(7),
        "close_min": np.uint8(1),
        "must_beat": np.bool_(True),
        "claims": np.str_("lead"),
    }
    rules = Rules(**given)
    assert rules == Rules(target=7, close_min=1, must_beat=True, claims="lead")
    assert [type(getattr(rules, name)) for name in given] == [int, int, bool, str]
    target: Any = np.int64(5)
    assert replace(RULES["pagat"], target=target).target == 5
    assert schnapsen_v0.env(target=target).rules.target == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", 7.0),
        ("target", np.float64(7)),
        ("target", True),
        ("target", np.bool_(True)),
        ("target", 12),
        ("target", np.int64(2)),
        ("must_beat", 1),
        ("must_beat", np.int64(1)),
        ("claims", "never"),
        ("claims", None),
        ("last_trick_bonus", 21),
    ],
)
def test_other_values_are_refused_with_the_allowed_ones(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"Rules\.{field}=.* is unknown: choose one of"):
        Rules(**{field: value})
