"""Rule sets as data: one frozen dataclass, and the named sets that people play.

A rule set is a value, never a subclass. Every field may be set on its own::

    from dataclasses import replace
    from schnapsen_env import RULES, Rules

    house_rules = replace(RULES["duel"], name="house", must_beat=True, target=5)

Or as a text, wherever a rule set is asked for: ``"duel,must_beat:True,target:5,name:house"``.

The engine receives a rule set as a small integer array (:meth:`Rules.codes`), so all rule sets run
through the same compiled functions. The sources of the sets, and each choice that was made where a
source is silent, are in ``docs/rules.md``.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from schnapsen_env.cards import TALON_SIZE

#: Points at which a player is out.
OUT_POINTS: Final = 66
#: A loser below this counts as Schneider: the winner gets two game points instead of one.
SCHNEIDER_POINTS: Final = 33
#: ``close_min`` or ``exchange_min`` of a rule set in which nobody may close or exchange.
FORBIDDEN: Final = 99
#: The shortest and the longest match.
MIN_TARGET, MAX_TARGET = 3, 11
#: The most card points that a rule set may give for the last trick.
MAX_LAST_TRICK_BONUS: Final = 20
#: What stands for itself in the text of names, beside letters and digits.
UNQUOTED: Final = "/:.@+~"
#: Game points for the last trick of an exhausted talon, where nobody has gone out.
LAST_TRICK_VALUE: Final = 1


def value_of_fault(tricks: int) -> int:
    """Game points for the fault of the other player, to one with so many tricks: 3 or 2.

    The engine compiles this very function.
    """
    return 3 if tricks == 0 else 2


def _choice(*values: str, doc: str) -> Any:
    """A rule that takes one of a few words; the default is the first."""
    return field(default=values[0], metadata={"values": values, "doc": doc})


def _flag(default: bool, doc: str) -> Any:
    return field(default=default, metadata={"values": (False, True), "doc": doc})


def _number(default: int, values: tuple[int, ...], doc: str) -> Any:
    return field(default=default, metadata={"values": values, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Rules:
    """One rule set. The defaults are those of ``RULES["duel"]``.

    Raises:
        ValueError: a field has a value that does not exist; the message names the field and the
            values that are allowed. (Any combination of allowed values is a playable game. What an
            environment cannot combine with a rule set, it refuses itself.)
    """

    name: str = field(default="custom", metadata={"doc": "The name shown in logs and records."})
    must_beat: bool = _flag(
        False,
        "Strict phase: False - follow suit with any card, else trump, else anything. "
        "True - beat in suit if able, else follow, else trump (any trump), else anything.",
    )
    trick_by: str = _choice(
        "suit",
        "value",
        doc="Who wins a trick without a trump: 'suit' - the higher card of the suit led; "
        "'value' - the card of more card points whatever its suit, in a tie the card led.",
    )
    claims: str = _choice(
        "automatic",
        "lead",
        "turn",
        doc="How 66 ends a deal: 'automatic' - at the instant of reaching it; 'lead' - by an "
        "explicit claim on lead; 'turn' - by an explicit claim on any own turn.",
    )
    exchange_min: int = _number(
        2,
        (*range(1, TALON_SIZE + 1), FORBIDDEN),
        "The fewest face-down talon cards with which the trump jack may still be exchanged; "
        f"{FORBIDDEN} forbids it.",
    )
    exchange_when: str = _choice(
        "lead",
        "turn",
        doc="When the trump jack may be exchanged: 'lead' - on lead; 'turn' - before replying too.",
    )
    close_min: int = _number(
        1,
        (*range(1, TALON_SIZE + 1), FORBIDDEN),
        "The fewest face-down talon cards with which the talon may still be closed; "
        f"{FORBIDDEN} forbids closing.",
    )
    last_trick_bonus: int = _number(
        0,
        tuple(range(MAX_LAST_TRICK_BONUS + 1)),
        f"Card points (0-{MAX_LAST_TRICK_BONUS}) for winning the last trick of an exhausted talon.",
    )
    exhausted: str = _choice(
        "last_trick",
        "claim_or_draw",
        doc="An exhausted deal in which nobody went out: 'last_trick' - the last trick's winner "
        "gets 1; 'claim_or_draw' - the other player, if at 66, is taken to have claimed, and "
        "otherwise the deal is drawn.",
    )
    schneider_by: str = _choice(
        "points",
        "card_points",
        doc="What is compared with 33: 'points' - with marriages; 'card_points' - tricks alone.",
    )
    close_valued_at: str = _choice(
        "end",
        "closing",
        doc="Which state of the opponent values a closer's win: at the 'end' or at the 'closing'.",
    )
    close_failure: str = _choice(
        "two_or_three",
        "by_points",
        doc="What a closer who fails pays: 'two_or_three' - 3 if the opponent had no trick at the "
        "closing, else 2; 'by_points' - 3, 2 or 1 by the closer's own tricks and card points.",
    )
    revoke: str = _choice(
        "refused",
        "loses",
        doc="A held card that the strict phase forbids: 'refused' - cannot be played; 'loses' - "
        "the offender loses the deal, in an environment made with illegal_action='revoke'.",
    )
    target: int = _number(
        7, tuple(range(MIN_TARGET, MAX_TARGET + 1)), "Game points that win the match."
    )
    counting: str = _choice(
        "up", "down", doc="Whether people count game points up to the target or down from it."
    )

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"Rules.name must be a non-empty string, not {self.name!r}")
        for rule in fields(self):
            allowed = rule.metadata.get("values")
            value: Any = getattr(self, rule.name)
            if isinstance(value, np.generic):  # numpy's numbers are kept as plain ones
                value = cast("Any", value).item()
                object.__setattr__(self, rule.name, value)
            # type() and not isinstance(): True would pass for 1.
            if allowed is not None and (
                type(value) is not type(allowed[0]) or value not in allowed
            ):
                raise ValueError(
                    f"Rules.{rule.name}={value!r} is unknown: choose one of "
                    + ", ".join(map(repr, allowed))
                )

    def codes(self) -> npt.NDArray[np.int64]:
        """The rules as the engine reads them, ``int64[len(CODE_INDEX)]``, read-only.

        Words become their index among the field's allowed values, see :data:`CODE_INDEX`.
        """
        return _codes(self)


_CODED: Final = tuple(rule.name for rule in fields(Rules) if rule.name not in ("name", "counting"))
#: Field name -> index in the array of :meth:`Rules.codes`.
CODE_INDEX: Final = MappingProxyType({name: index for index, name in enumerate(_CODED)})


@lru_cache(maxsize=256)
def _codes(rules: Rules) -> npt.NDArray[np.int64]:
    codes = np.zeros(len(_CODED), dtype=np.int64)
    for rule in fields(rules):
        if rule.name in CODE_INDEX:
            value = getattr(rules, rule.name)
            codes[CODE_INDEX[rule.name]] = (
                rule.metadata["values"].index(value) if isinstance(value, str) else value
            )
    codes.flags.writeable = False
    return codes


def code_of(rule: str, word: str) -> int:
    """The number that stands for ``word`` in the array of :meth:`Rules.codes`.

    Raises:
        KeyError: there is no such rule.
        ValueError: the rule does not take this word.
    """
    values = {each.name: each.metadata.get("values", ()) for each in fields(Rules)}[rule]
    return values.index(word)


_PAGAT = Rules(
    name="pagat",
    must_beat=True,
    claims="lead",
    exchange_min=1,
    close_valued_at="closing",
    counting="down",
)

#: The named rule sets. ``duel`` is the default; compare strength under ``pagat_auto``.
RULES: Final = MappingProxyType(
    {
        rules.name: rules
        for rules in (
            Rules(name="duel"),
            Rules(
                name="last_trick_ten",
                must_beat=True,
                claims="turn",
                exchange_min=1,
                last_trick_bonus=10,
                exhausted="claim_or_draw",
            ),
            Rules(
                name="austrian",
                must_beat=True,
                claims="turn",
                exchange_min=2,
                revoke="loses",
                counting="down",
            ),
            Rules(
                name="french",
                must_beat=True,
                trick_by="value",
                exchange_min=1,
                exchange_when="turn",
                schneider_by="card_points",
                close_failure="by_points",
                counting="down",
            ),
            _PAGAT,
            replace(_PAGAT, name="pagat_auto", claims="automatic"),
        )
    }
)


def rules_text(rules: Rules) -> str:
    """A rule set in one word, as :func:`parse_rules` reads it.

    It is a name of :data:`RULES`, followed by ``,field:value`` for every field that differs from
    that set.
    """
    base = RULES.get(rules.name, RULES["duel"])
    changed = [
        f"{rule.name}:{quote(str(getattr(rules, rule.name)), safe=UNQUOTED)}"
        for rule in fields(Rules)
        if getattr(rules, rule.name) != getattr(base, rule.name)
    ]
    return ",".join([base.name, *changed])


def parse_rules(text: str) -> Rules:
    """The rule set of a text such as ``"duel"`` or ``"duel,must_beat:True,name:house"``.

    Raises:
        ValueError: an unknown name, field or value; the known ones are listed.
    """
    name, *changes = text.split(",")
    if name not in RULES:
        raise ValueError(
            f"unknown rule set {name!r}: choose one of {', '.join(RULES)}, or change one of them, "
            "as in 'duel,must_beat:True'"
        )
    known = {rule.name: rule for rule in fields(Rules)}
    values: dict[str, Any] = {}
    for change in changes:
        field_name, colon, value = change.partition(":")
        if not colon or field_name not in known:
            raise ValueError(
                f"{change!r} is no change of {name!r}: write field:value with one of the fields "
                + ", ".join(known)
            )
        if field_name in values:
            raise ValueError(f"{field_name} is given twice: {text!r}")
        values[field_name] = _value_of(known[field_name], unquote(value))
    return replace(RULES[name], **values) if values else RULES[name]


def _value_of(rule: Field[Any], text: str) -> Any:
    """The value of a rule that is written so."""
    allowed = rule.metadata.get("values")
    if allowed is None:
        return text
    for value in allowed:
        if str(value) == text:
            return value
    raise ValueError(f"{rule.name}:{text} is unknown: choose one of {', '.join(map(str, allowed))}")


def resolve_rules(rules: str | Rules) -> Rules:
    """The rule set of a name, or ``rules`` itself.

    A name may be followed by changes, see :func:`parse_rules`; the whole text is then the name of
    the new set, unless the changes give one.

    Raises:
        ValueError: a name that :data:`RULES` does not have, or a change that makes no sense.
        TypeError: neither a text nor :class:`Rules`.
    """
    if isinstance(rules, Rules):
        return rules
    if not isinstance(rules, str):
        raise TypeError(f"rules must be a name or a Rules object, not {type(rules).__name__}")
    parsed = parse_rules(rules)
    is_named = rules in RULES or parsed.name not in RULES
    return parsed if is_named else replace(parsed, name=rules)
