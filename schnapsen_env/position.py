"""A position: everything about one moment of a deal, readable, checked, and one line of text.

A position is what people and tests write down; the engine plays on records
(:mod:`schnapsen_env.engine`) that are made from positions and read back into them. The text form is
what ``str(position)`` gives, what errors show and what :meth:`Position.from_text` reads: words of
``key=value``, cards run together, a comma between the seats, defaults left out::

    trump=S turned_up=JS leader=1 lead=TD hands=KSQSASJHAC,THADKDQC talon=QHJDKC ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar, cast

from schnapsen_env.cards import SUITS, card_text, parse_card, parse_suit
from schnapsen_env.integers import as_integer
from schnapsen_env.position_check import card_points_at_close, check, plain
from schnapsen_env.position_parts import AtClose, EndReason, Pair, Parts, Result

__all__ = ["AtClose", "EndReason", "Position", "Result", "read_position"]

_T = TypeVar("_T")
_D = TypeVar("_D")


@dataclass(frozen=True, kw_only=True)
class Position(Parts):
    """One moment of a deal, cards as ids, pairs by seat; the fields are those of ``Parts``.

    Numbers may be of any integer type and are kept as plain ones, lists as tuples.

    Raises:
        ValueError: a number is none or out of range, or the parts contradict each other: a card in
            two places, hands of wrong sizes, points that no tricks make, a marriage whose cards
            cannot have been held, a closer who was never on lead, and so on. The message says
            which.
    """

    def __post_init__(self) -> None:
        for name, value in plain(self).items():
            object.__setattr__(self, name, value)
        check(self)

    # ------------------------------------------------------------------------------ dict

    @classmethod
    def from_dict(cls, position: Mapping[str, Any]) -> Position:
        """Read the dict form of ``docs/positions.md`` (cards and suits as text).

        Where ``forehand`` is not given it is the leader, or the other seat if only that can be.

        Raises:
            TypeError: not a dict.
            ValueError: a key is missing or unknown, a value is of the wrong form, or the position
                is inconsistent.
        """
        if not isinstance(cast("Any", position), Mapping):
            raise TypeError(f"position: a dict is needed, not {position!r}")
        unknown = sorted(map(repr, set(position) - set(_KEYS)))
        if unknown:
            raise ValueError(f"position: unknown key {unknown[0]}; known are {', '.join(_KEYS)}")
        missing = [key for key in _REQUIRED if key not in position]
        if missing:
            raise ValueError(f"position: the key {missing[0]!r} is missing")
        read = _Reader(position)
        leader = read.seat("leader")
        parts = Parts(
            trump_suit=read.get("trump", parse_suit),
            turned_up=read.optional("turned_up", parse_card, None),
            hands=read.get("hands", _card_pair),
            talon=read.optional("talon", _cards, ()),
            closed_by=read.optional("closed_by", _seat, None),
            at_close=read.optional("at_close", _at_close, None),
            leader=leader,
            lead=read.optional("lead", parse_card, None),
            card_points=read.optional("card_points", _count_pair, (0, 0)),
            tricks=read.optional("tricks", _count_pair, (0, 0)),
            marriages=read.optional("marriages", _suit_pair, ((), ())),
            declared=read.optional("declared", parse_suit, None),
            won=read.optional("won", _card_pair, None),
            known=read.optional("known", _card_pair, ((), ())),
            cannot_hold=read.optional("cannot_hold", _card_pair, ((), ())),
            last_trick=read.optional("last_trick", _trick, None),
            forehand=read.optional("forehand", _seat, leader),
            match_score=read.optional("match_score", _count_pair, (0, 0)),
            result=read.optional("result", _result, None),
        )
        if position.get("forehand") is not None:
            return cls._of(parts)
        try:
            return cls._of(parts)
        except ValueError as fault:
            try:
                return cls._of(replace(parts, forehand=1 - leader))
            except ValueError:
                raise fault from None

    @classmethod
    def _of(cls, parts: Parts) -> Position:
        """The position of unchecked parts, in which -1 stands for unknown card points at_close."""
        at_close = parts.at_close
        if at_close is not None and at_close.card_points < 0:
            if parts.closed_by is None:
                raise ValueError("position: at_close is given but closed_by is not")
            possible = card_points_at_close(parts, at_close.tricks, at_close.points)
            card_points = possible[0] if possible else at_close.points
            parts = replace(parts, at_close=replace(at_close, card_points=card_points))
        return cls(**{field.name: getattr(parts, field.name) for field in fields(parts)})

    def to_dict(self) -> dict[str, Any]:
        """The JSON-able dict form; :meth:`from_dict` reads it back to an equal position."""
        position: dict[str, Any] = {
            "trump": SUITS[self.trump_suit],
            "turned_up": None if self.turned_up is None else card_text(self.turned_up),
            "hands": [_texts(hand) for hand in self.hands],
            "talon": _texts(self.talon),
            "closed_by": self.closed_by,
            "at_close": None,
            "leader": self.leader,
            "lead": None if self.lead is None else card_text(self.lead),
            "card_points": list(self.card_points),
            "tricks": list(self.tricks),
            "marriages": [[SUITS[suit] for suit in suits] for suits in self.marriages],
            "declared": None if self.declared is None else SUITS[self.declared],
            "known": [_texts(cards) for cards in self.known],
            "cannot_hold": [_texts(cards) for cards in self.cannot_hold],
            "last_trick": None if self.last_trick is None else _texts(self.last_trick),
            "forehand": self.forehand,
            "match_score": list(self.match_score),
        }
        if self.at_close is not None:
            at_close = self.at_close
            position["at_close"] = {"tricks": at_close.tricks, "points": at_close.points}
            if at_close.card_points != at_close.points:
                position["at_close"]["card_points"] = at_close.card_points
        if self.won is not None:
            position["won"] = [_texts(cards) for cards in self.won]
        if self.result is not None:
            position["result"] = {
                "winner": self.result.winner,
                "game_points": self.result.game_points,
                "end_reason": self.result.end_reason.text,
            }
        return position

    # ------------------------------------------------------------------------------ text

    def __str__(self) -> str:
        position = self.to_dict()
        words = [f"{key}={_value_text(key, position[key])}" for key in _KEYS if key in position]
        return " ".join(word for word in words if word not in _DEFAULT_WORDS)

    __repr__ = __str__

    @classmethod
    def from_text(cls, text: str) -> Position:
        """Read the one-line text form back.

        Raises:
            TypeError: not a text.
            ValueError: a word is not ``key=value`` with a known key, or the position is
                inconsistent.
        """
        if not isinstance(cast("Any", text), str):
            raise TypeError(f"position: a text is needed, not {text!r}")
        position: dict[str, Any] = {}
        for word in text.split():
            key, equals, value = word.partition("=")
            if not equals or key not in _KEYS:
                raise ValueError(f"position text: {word!r} is not key=value with a known key")
            if key in position:
                raise ValueError(f"position text: {key!r} is given twice")
            position[key] = _parse_value(key, value)
        return cls.from_dict(position)


def read_position(given: Any) -> Position:
    """The position that is given as one, as its dict or as its text.

    Raises:
        TypeError: none of the three.
        ValueError: the dict or the text is no position, see :meth:`Position.from_dict`.
    """
    if isinstance(given, Position):
        return given
    if isinstance(given, str):
        return Position.from_text(given)
    if isinstance(given, Mapping):
        return Position.from_dict(cast("Mapping[str, Any]", given))
    hint = (
        ": read a record of the engine with engine.position_of" if hasattr(given, "shape") else ""
    )
    raise TypeError(
        f"position is a Position, its dict or its text, not {type(given).__name__}{hint}"
    )


_REQUIRED: Final = ("trump", "hands", "leader")
#: The keys of the dict form, and the order of the words of the text form.
_KEYS: Final = (
    "trump",
    "turned_up",
    "leader",
    "lead",
    "declared",
    "hands",
    "talon",
    "card_points",
    "tricks",
    "marriages",
    "closed_by",
    "at_close",
    "won",
    "known",
    "cannot_hold",
    "last_trick",
    "forehand",
    "match_score",
    "result",
)
#: Words that say what their absence says; the text form leaves them out.
_DEFAULT_WORDS: Final = frozenset(
    {
        "turned_up=-",
        "lead=-",
        "declared=-",
        "talon=-",
        "card_points=0,0",
        "tricks=0,0",
        "marriages=-,-",
        "closed_by=-",
        "at_close=-",
        "known=-,-",
        "cannot_hold=-,-",
        "last_trick=-",
        "match_score=0,0",
    }
)


# ---------------------------------------------------------------------------------- reading


def _texts(cards: Iterable[int]) -> list[str]:
    return [card_text(card) for card in cards]


def _seat(value: Any) -> int:
    seat = as_integer(value)
    if seat not in (0, 1):
        raise ValueError(f"a seat is 0 or 1, not {value!r}")
    return seat


def _count(value: Any) -> int:
    count = as_integer(value)
    if count is None or count < 0:
        raise ValueError(f"a count is a whole number from 0, not {value!r}")
    return count


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"a list is needed, not {value!r}")
    return cast("Sequence[Any]", value)


def _cards(value: Any) -> tuple[int, ...]:
    return tuple(parse_card(card) for card in _list(value))


def _suits(value: Any) -> tuple[int, ...]:
    return tuple(parse_suit(suit) for suit in _list(value))


def _pair_of(read: Callable[[Any], _T]) -> Callable[[Any], Pair[_T]]:
    """A reader of two items, one a seat, each read by ``read``."""

    def read_pair(value: Any) -> Pair[_T]:
        items = _list(value)
        if len(items) != 2:
            raise ValueError(f"two items are needed, one a seat, not {len(items)}")
        return read(items[0]), read(items[1])

    return read_pair


_card_pair: Final = _pair_of(_cards)
_suit_pair: Final = _pair_of(_suits)
_count_pair: Final = _pair_of(_count)
_trick: Final = _pair_of(parse_card)


def _at_close(value: Any) -> AtClose:
    if not isinstance(value, Mapping) or not {"tricks", "points"} <= value.keys():
        raise ValueError(f'{{"tricks": n, "points": n}} is needed, not {value!r}')
    parts = cast("Mapping[str, Any]", value)
    unknown = sorted(map(repr, set(parts) - {"tricks", "points", "card_points"}))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]}")
    card_points = _count(parts["card_points"]) if "card_points" in parts else -1
    return AtClose(_count(parts["tricks"]), _count(parts["points"]), card_points)


_RESULT_KEYS: Final = {"winner", "game_points", "end_reason"}


def _result(value: Any) -> Result:
    if not isinstance(value, Mapping) or set(cast("Mapping[str, Any]", value)) != _RESULT_KEYS:
        raise ValueError(f"winner, game_points and end_reason are needed, not {value!r}")
    parts = cast("Mapping[str, Any]", value)
    reasons = {reason.text: reason for reason in EndReason if reason is not EndReason.RUNNING}
    if not isinstance(parts["end_reason"], str) or parts["end_reason"] not in reasons:
        raise ValueError(f"end_reason {parts['end_reason']!r} is none of {', '.join(reasons)}")
    winner = None if parts["winner"] is None else _seat(parts["winner"])
    return Result(winner, _count(parts["game_points"]), reasons[parts["end_reason"]])


class _Reader:
    """Reads values of the dict form and names the key in each error."""

    def __init__(self, position: Mapping[str, Any]) -> None:
        self._position = position

    def get(self, key: str, read: Callable[[Any], _T]) -> _T:
        try:
            return read(self._position[key])
        except ValueError as error:
            raise ValueError(f"position: {key}: {error}") from None

    def optional(self, key: str, read: Callable[[Any], _T], default: _D) -> _T | _D:
        return default if self._position.get(key) is None else self.get(key, read)

    def seat(self, key: str) -> int:
        return self.get(key, _seat)


# The text of a value: cards run together, "-" for nothing, "," between seats, "/" inside a group.


def _value_text(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value).values()
        return "/".join("-" if part is None else str(part) for part in parts)
    if key in ("talon", "last_trick"):
        return "".join(value) or "-"
    return ",".join(map(_part_text, value))


def _part_text(part: Any) -> str:
    return ("".join(cast("list[str]", part)) or "-") if isinstance(part, list) else str(part)


def _parse_value(key: str, text: str) -> Any:
    if key in ("hands", "won", "known", "cannot_hold"):
        return [_split_cards(part) for part in text.split(",")]
    if key == "marriages":
        return [[] if part == "-" else list(part) for part in text.split(",")]
    if text == "-":
        return None
    if key in ("talon", "last_trick"):
        return _split_cards(text)
    if key in ("leader", "forehand", "closed_by"):
        return _whole(key, text)
    if key in ("card_points", "tricks", "match_score"):
        return [_whole(key, part) for part in text.split(",")]
    if key == "at_close":
        names, counts = ("tricks", "points", "card_points"), text.split("/")
        if len(counts) not in (2, 3):
            raise ValueError(
                f"position text: at_close={text!r} is not tricks/points or "
                "tricks/points/card_points"
            )
        return {name: _whole(key, count) for name, count in zip(names, counts, strict=False)}
    if key == "result":
        parts = text.split("/")
        if len(parts) != 3:
            raise ValueError(f"position text: result={text!r} is not winner/game_points/end_reason")
        return {
            "winner": None if parts[0] == "-" else _whole(key, parts[0]),
            "game_points": _whole(key, parts[1]),
            "end_reason": parts[2],
        }
    return text


def _whole(key: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"position text: {key}: {text!r} is not a whole number")
    return int(text)


def _split_cards(text: str) -> list[str]:
    return [] if text == "-" else [text[i : i + 2] for i in range(0, len(text), 2)]
