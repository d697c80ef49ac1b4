"""Rule sets as values: what a field takes, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schnapsen_env import RULES, Rules, schnapsen_v0
from schnapsen_env.rules import parse_rules, resolve_rules, rules_text


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


def test_rules_are_read_from_a_text_and_written_as_one() -> None:
    assert resolve_rules("pagat") is RULES["pagat"]
    house = resolve_rules("duel,must_beat:True,target:5,claims:lead")
    assert house == replace(
        RULES["duel"],
        name="duel,must_beat:True,target:5,claims:lead",
        must_beat=True,
        target=5,
        claims="lead",
    )
    assert resolve_rules("duel,target:5,name:at our table: 3%2C 4").name == "at our table: 3, 4"
    for rules in (house, *RULES.values(), Rules(), replace(RULES["french"], name="é, ü")):
        assert parse_rules(rules_text(rules)) == rules
    assert rules_text(RULES["austrian"]) == "austrian"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dule", r"unknown rule set 'dule': choose one of duel, .*'duel,must_beat:True'"),
        ("", "unknown rule set ''"),
        ("duel,", "'' is no change of 'duel'"),
        ("duel,must_beat", "'must_beat' is no change of 'duel': write field:value"),
        ("duel,colour:red", "'colour:red' is no change .* must_beat, trick_by"),
        ("duel,must_beat:true", "must_beat:true is unknown: choose one of False, True"),
        ("duel,target:05", "target:05 is unknown: choose one of 3, 4"),
        ("duel,target:5,target:6", "target is given twice"),
        ("duel,name:", "non-empty string"),
    ],
)
def test_a_text_that_is_no_rule_set_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_rules(text)
