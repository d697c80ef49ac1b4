"""What agents of a trained network share: their options, and a look at the rules of training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from schnapsen_env.rules import Rules, rules_text

#: Rules that a single deal does not depend on: a network may play under others.
_NOT_OF_A_DEAL: Final = frozenset({"name", "target", "counting"})
_SWITCHES: Final = {"true": True, "false": False, True: True, False: False}


def check_rules(
    trained: Mapping[str, Any], rules: Rules, path: Path, error: type[ValueError]
) -> None:
    """Refuse a network that was trained under rules that play a deal differently.

    The name of a rule set, its match target and the way of counting do not matter.

    Args:
        trained: the fields of the rule set of the training.
        rules: what is to be played.
        path: where the network is, for the message.
        error: what to raise.

    Raises:
        ValueError: a rule differs; an ``error`` that names it.
    """
    differing = [
        f"{name}={trained.get(name, 'unknown')!r} instead of {value!r}"
        for name, value in asdict(rules).items()
        if name not in _NOT_OF_A_DEAL and trained.get(name, "unknown") != value
    ]
    if differing:
        name = trained.get("name", "unknown")
        under = f"the rules {name!r}, not {rules.name!r}"
        if name == rules.name:
            under = f"other rules of the name {name!r}"
        raise error(
            f"{path} was trained under {under} ({', '.join(differing)}): "
            f"{_advice(trained)}the option any_rules=true plays it anyway"
        )


def _advice(trained: Mapping[str, Any]) -> str:
    """How to ask for the rules of a training, if this program knows all of them."""
    try:
        return f"play under --rules {rules_text(Rules(**trained))}; "
    except (TypeError, ValueError):
        return ""


def read_switches(
    kind: str, options: Mapping[str, str | bool], others: tuple[str, ...] = ()
) -> tuple[bool, bool]:
    """The options ``sample`` and ``any_rules``, both false unless given.

    Args:
        kind: of the agent, for the message.
        options: as given, texts or bools.
        others: names of options that are read elsewhere, for the message.

    Raises:
        ValueError: an unknown option or value.
    """
    switches = {"sample": False, "any_rules": False}
    for name, value in options.items():
        if name not in switches:
            known = ", ".join([*switches, *others])
            raise ValueError(f"{kind} has no option {name!r}: it takes {known}")
        if value not in _SWITCHES:
            raise ValueError(f"the option {name} is true or false, not {value!r}")
        switches[name] = _SWITCHES[value]
    return switches["sample"], switches["any_rules"]


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not empty, or the name of its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0]
