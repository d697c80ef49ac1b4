"""A position: everything about one moment of a deal, readable, checked, and one line of text.

A position is what people and tests write down; the engine plays on records
(:mod:`schnapsen_env.engine`) that are made from positions and read back into them. The text form is
what ``str(position)`` gives, what errors show and what :meth:`Position.from_text` reads: words of
``key=value``, cards run together, a comma between the seats, defaults left out::

    trump=S turned_up=JS leader=1 lead=TD hands=KSQSASJHAC,THADKDQC talon=QHJDKC ...
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import index
from typing import Any, Final, SupportsIndex, TypeVar, cast

from schnapsen_env.cards import (
    ALL_CARDS,
    CARD_POINTS,
    HAND_SIZE,
    KING,
    NUM_CARDS,
    NUM_RANKS,
    QUEEN,
    SUITS,
    TALON_SIZE,
    card_set,
    card_text,
    marriage_value,
    parse_card,
    parse_suit,
    set_card_points,
)

_T = TypeVar("_T")
_D = TypeVar("_D")
Pair = tuple[_T, _T]


class EndReason(enum.IntEnum):
    """Why a deal ended."""

    RUNNING = 0
    SIXTY_SIX = 1
    LAST_TRICK = 2
    FAILED_CLOSE = 3
    WRONG_CLAIM = 4
    REVOKE = 5
    DRAWN = 6
    ILLEGAL_ACTION = 7

    @property
    def text(self) -> str:
        """The name in infos and records, such as ``"sixty_six"``."""
        return self.name.lower()


@dataclass(frozen=True)
class AtClose:
    """What the closer's opponent had at the moment of closing."""

    tricks: int
    points: int
    #: Points without marriages. They matter only where a rule set values a close at the closing and
    #: compares card points with 33; everywhere else ``points`` is all that the rules read.
    card_points: int


@dataclass(frozen=True)
class Result:
    """How a finished deal came out: ``winner`` is None when it was drawn."""

    winner: int | None
    game_points: int
    end_reason: EndReason


@dataclass(frozen=True, kw_only=True)
class Position:
    """One moment of a deal, cards as ids, pairs by seat.

    Raises:
        ValueError: the parts contradict each other: a card in two places, hands of wrong sizes,
            points that no tricks make, a marriage whose cards cannot have been held, and so on. The
            message says which.
    """

    trump_suit: int
    turned_up: int | None
    hands: Pair[tuple[int, ...]]
    #: Face-down cards in drawing order; those that lie under a closed talon too.
    talon: tuple[int, ...]
    closed_by: int | None = None
    at_close: AtClose | None = None
    leader: int
    #: The card led to the current trick, no longer in the hand.
    lead: int | None = None
    card_points: Pair[int] = (0, 0)
    tricks: Pair[int] = (0, 0)
    marriages: Pair[tuple[int, ...]] = ((), ())
    #: The suit declared for the coming lead.
    declared: int | None = None
    #: Cards won; None if unknown, then ``card_points`` are taken as given.
    won: Pair[tuple[int, ...]] | None = None
    #: Cards in each hand that the other player knows.
    known: Pair[tuple[int, ...]] = ((), ())
    #: Cards that each player's replies in the strict phase rule out.
    cannot_hold: Pair[tuple[int, ...]] = ((), ())
    #: The last completed trick: the card led and the reply.
    last_trick: Pair[int] | None = None
    forehand: int
    match_score: Pair[int] = (0, 0)
    #: Set once the deal is over.
    result: Result | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def to_move(self) -> int:
        """The seat to move."""
        return self.leader if self.lead is None else 1 - self.leader

    @property
    def talon_state(self) -> str:
        """``"OPEN"``, ``"CLOSED"`` or ``"EXHAUSTED"``."""
        if self.closed_by is not None:
            return "CLOSED"
        return "OPEN" if self.talon else "EXHAUSTED"

    def points(self, seat: int) -> int:
        """Points toward 66 of ``seat``; marriages count once it has won a trick."""
        if self.tricks[seat] == 0:
            return 0
        return self.card_points[seat] + self.marriage_points(seat)

    def marriage_points(self, seat: int) -> int:
        """What the marriages of ``seat`` are worth, pending or not."""
        return sum(marriage_value(suit, self.trump_suit) for suit in self.marriages[seat])

    # ------------------------------------------------------------------------------ dict

    @classmethod
    def from_dict(cls, position: Mapping[str, Any]) -> Position:
        """Read the dict form described in the documentation (cards and suits as text).

        Raises:
            ValueError: a key is missing or unknown, a value is of the wrong form, or the position
                is inconsistent.
        """
        unknown = sorted(set(position) - set(_KEYS))
        if unknown:
            raise ValueError(f"position: unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}")
        missing = [key for key in _REQUIRED if key not in position]
        if missing:
            raise ValueError(f"position: the key {missing[0]!r} is missing")
        read = _Reader(position)
        leader = read.seat("leader")
        marriages = read.optional("marriages", _suit_pair, ((), ()))
        won = read.optional("won", _card_pair, None)
        trump_suit = read.get("trump", parse_suit)
        tricks = read.optional("tricks", _count_pair, (0, 0))
        closed_by = read.optional("closed_by", _seat, None)
        at_close = None
        if position.get("at_close") is not None:
            at_close = read.get("at_close", _at_close)
            if at_close.card_points < 0:
                if closed_by is None:
                    raise ValueError("position: at_close is given but closed_by is not")
                at_close = AtClose(
                    at_close.tricks,
                    at_close.points,
                    _likely_card_points(at_close, marriages[1 - closed_by], trump_suit),
                )
        return cls(
            trump_suit=trump_suit,
            turned_up=read.optional("turned_up", parse_card, None),
            hands=read.get("hands", _card_pair),
            talon=read.optional("talon", _cards, ()),
            closed_by=closed_by,
            at_close=at_close,
            leader=leader,
            lead=read.optional("lead", parse_card, None),
            card_points=read.optional("card_points", _count_pair, (0, 0)),
            tricks=tricks,
            marriages=marriages,
            declared=read.optional("declared", parse_suit, None),
            won=won,
            known=read.optional("known", _card_pair, ((), ())),
            cannot_hold=read.optional("cannot_hold", _card_pair, ((), ())),
            last_trick=read.optional("last_trick", _trick, None),
            forehand=read.optional("forehand", _seat, leader),
            match_score=read.optional("match_score", _count_pair, (0, 0)),
            result=read.optional("result", _result, None),
        )

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
            ValueError: a word is not ``key=value`` with a known key, or the position is
                inconsistent.
        """
        position: dict[str, Any] = {}
        for word in text.split():
            key, equals, value = word.partition("=")
            if not equals or key not in _KEYS:
                raise ValueError(f"position text: {word!r} is not key=value with a known key")
            if key in position:
                raise ValueError(f"position text: {key!r} is given twice")
            position[key] = _parse_value(key, value)
        return cls.from_dict(position)


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
    if isinstance(value, bool) or value not in (0, 1):
        raise ValueError(f"a seat is 0 or 1, not {value!r}")
    return int(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < 0:
        raise ValueError(f"a count is a whole number from 0, not {value!r}")
    return index(value)


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
    unknown = set(parts) - {"tricks", "points", "card_points"}
    if unknown:
        raise ValueError(f"unknown key {min(unknown)!r}")
    card_points = _count(parts["card_points"]) if "card_points" in parts else -1
    return AtClose(_count(parts["tricks"]), _count(parts["points"]), card_points)


def _likely_card_points(at_close: AtClose, marriages: Iterable[int], trump_suit: int) -> int:
    """The card points at the closing where only the points are given.

    Marriages of the closer's opponent may have been declared before or after; unless ``points``
    can only be reached with one, they are taken to have come after.
    """
    if at_close.tricks == 0:
        return 0
    most = _most_card_points(at_close.tricks)
    values = [marriage_value(suit, trump_suit) for suit in marriages]
    for size in range(len(values) + 1):
        for chosen in combinations(values, size):
            if at_close.points - sum(chosen) <= most:
                return at_close.points - sum(chosen)
    return at_close.points


def _most_card_points(tricks: int) -> int:
    return sum(sorted(CARD_POINTS, reverse=True)[: 2 * tricks])


_RESULT_KEYS: Final = {"winner", "game_points", "end_reason"}


def _result(value: Any) -> Result:
    if not isinstance(value, Mapping) or set(cast("Mapping[str, Any]", value)) != _RESULT_KEYS:
        raise ValueError(f"winner, game_points and end_reason are needed, not {value!r}")
    parts = cast("Mapping[str, Any]", value)
    reasons = {reason.text: reason for reason in EndReason if reason is not EndReason.RUNNING}
    if parts["end_reason"] not in reasons:
        raise ValueError(f"end_reason {value['end_reason']!r} is none of {', '.join(reasons)}")
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
        names = ("tricks", "points", "card_points")
        return {name: _whole(key, part) for name, part in zip(names, text.split("/"), strict=False)}
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
    if not re.fullmatch(r"\d{1,3}", text):
        raise ValueError(f"position text: {key}: {text!r} is not a whole number")
    return int(text)


def _split_cards(text: str) -> list[str]:
    return [] if text == "-" else [text[i : i + 2] for i in range(0, len(text), 2)]


# --------------------------------------------------------------------------------- checking


def _refuse(reason: str) -> None:
    raise ValueError(f"position: {reason}")


def _check(position: Position) -> None:
    """Raise ValueError unless the parts of a position agree with each other."""
    _check_values(position)
    _check_places(position)
    _check_talon(position)
    _check_hand_sizes(position)
    _check_tricks(position)
    _check_marriages(position)
    _check_knowledge(position)
    _check_closing(position)
    _check_result(position)


def _check_values(position: Position) -> None:
    for name in ("leader", "forehand"):
        if getattr(position, name) not in (0, 1):
            _refuse(f"{name} is 0 or 1, not {getattr(position, name)!r}")
    if position.closed_by not in (None, 0, 1):
        _refuse(f"closed_by is null, 0 or 1, not {position.closed_by!r}")
    if position.trump_suit not in range(len(SUITS)):
        _refuse(f"trump_suit is 0-3, not {position.trump_suit!r}")
    if any(score < 0 for score in position.match_score):
        _refuse("match_score is negative")


def _places(position: Position) -> list[tuple[str, Iterable[int]]]:
    places: list[tuple[str, Iterable[int]]] = [
        ("the hand of seat 0", position.hands[0]),
        ("the hand of seat 1", position.hands[1]),
        ("the talon", position.talon),
    ]
    if position.turned_up is not None:
        places.append(("turned_up", (position.turned_up,)))
    if position.lead is not None:
        places.append(("lead", (position.lead,)))
    if position.won is not None:
        places += [
            ("the tricks of seat 0", position.won[0]),
            ("the tricks of seat 1", position.won[1]),
        ]
    return places


def _check_places(position: Position) -> None:
    seen: dict[int, str] = {}
    for place, cards in _places(position):
        for card in cards:
            if not 0 <= card < NUM_CARDS:
                _refuse(f"{card!r} is not a card id")
            if card in seen:
                _refuse(f"{card_text(card)} is in {seen[card]} and in {place}")
            seen[card] = place
    tricks_won = sum(position.tricks)
    if position.won is None and len(seen) + 2 * tricks_won != NUM_CARDS:
        _refuse(f"{len(seen)} cards and {tricks_won} tricks do not make 20 cards")
    if position.won is not None and len(seen) != NUM_CARDS:
        missing = min(set(range(NUM_CARDS)) - set(seen))
        _refuse(f"{card_text(missing)} is nowhere")


def _check_talon(position: Position) -> None:
    face_down = len(position.talon)
    if face_down > TALON_SIZE or (face_down and face_down % 2 == 0):
        _refuse(f"the talon holds 9, 7, 5, 3, 1 or 0 face-down cards, not {face_down}")
    if (position.turned_up is None) != (face_down == 0):
        _refuse("turned_up is null exactly when the talon is empty")
    if position.turned_up is not None and position.turned_up // NUM_RANKS != position.trump_suit:
        _refuse(f"turned_up {card_text(position.turned_up)} is not of the trump suit")
    if position.closed_by is not None and face_down == 0:
        _refuse("a closed talon still has its face-down cards")


def _check_hand_sizes(position: Position) -> None:
    sizes = [len(hand) for hand in position.hands]
    if position.lead is not None:
        sizes[position.leader] += 1
    if sizes[0] != sizes[1]:
        _refuse(f"hands of {len(position.hands[0])} and {len(position.hands[1])} cards do not fit")
    face_down = len(position.talon)
    tricks_with_draw = (TALON_SIZE - face_down + 1) // 2
    without_draw = sum(position.tricks) - tricks_with_draw
    most_without_draw = HAND_SIZE
    if position.talon_state == "OPEN":  # nobody draws after the trick that ends a deal
        most_without_draw = 0 if position.result is None else 1
    if not 0 <= without_draw <= most_without_draw:
        _refuse(f"{sum(position.tricks)} tricks and {face_down} face-down cards do not fit")
    if sizes[0] != HAND_SIZE - without_draw:
        _refuse(f"{sum(position.tricks)} tricks and hands of {sizes[0]} cards do not fit")
    if position.result is None and not any(sizes):
        _refuse("both hands are empty and no result is given")


def _check_tricks(position: Position) -> None:
    tricks, card_points, won = position.tricks, position.card_points, position.won
    if min(tricks) < 0 or min(card_points) < 0:
        _refuse("tricks and card_points are not negative")
    if won is not None:
        for seat in (0, 1):
            if len(won[seat]) != 2 * tricks[seat]:
                _refuse(f"seat {seat} has {tricks[seat]} tricks and {len(won[seat])} cards in them")
            bonus = card_points[seat] - set_card_points(card_set(won[seat]))
            if bonus and not (position.result and bonus > 0 and not any(position.hands)):
                _refuse(
                    f"the tricks of seat {seat} make {card_points[seat] - bonus} card points, "
                    f"not {card_points[seat]}"
                )
    elif split_won(position) is None:
        _refuse(f"no {tricks[0]} and {tricks[1]} tricks of the cards played make {card_points}")
    if position.last_trick is not None:
        if len(set(position.last_trick)) != 2 or sum(tricks) == 0:
            _refuse("last_trick is two cards of a completed trick")
        holders = [set(cards) for cards in (won or split_won(position) or ((), ()))]
        if won is not None and not any(set(position.last_trick) <= cards for cards in holders):
            _refuse("the cards of last_trick are not in the tricks of one player")
        if not set(position.last_trick) <= holders[0] | holders[1]:
            _refuse("a card of last_trick has not been played")


def played_cards(position: Position) -> int:
    """The cards in completed tricks, a set, whether or not ``won`` says whose they are."""
    elsewhere = 0
    for place, cards in _places(position):
        if not place.startswith("the tricks"):
            elsewhere |= card_set(cards)
    return ALL_CARDS & ~elsewhere


def split_won(position: Position) -> Pair[tuple[int, ...]] | None:
    """The cards won by each seat: as given, or one division of the played cards that fits.

    None if no division of the played cards has the tricks and card points of the position.
    """
    if position.won is not None:
        return position.won
    played = [card for card in range(NUM_CARDS) if played_cards(position) >> card & 1]
    if sum(CARD_POINTS[card] for card in played) != sum(position.card_points):
        return None
    # (cards taken, points) -> the first choice of cards for seat 0 that makes them
    reached: dict[tuple[int, int], tuple[int, ...]] = {(0, 0): ()}
    for card in played:
        for (size, total), cards in list(reached.items()):
            reached.setdefault((size + 1, total + CARD_POINTS[card]), (*cards, card))
    first = reached.get((2 * position.tricks[0], position.card_points[0]))
    if first is None:
        return None
    return first, tuple(card for card in played if card not in first)


def _check_marriages(position: Position) -> None:
    if set(position.marriages[0]) & set(position.marriages[1]):
        _refuse("both players have declared the same marriage")
    for seat in (0, 1):
        if len(set(position.marriages[seat])) != len(position.marriages[seat]):
            _refuse(f"seat {seat} has declared a marriage twice")
        for suit in position.marriages[seat]:
            for card in (NUM_RANKS * suit + QUEEN, NUM_RANKS * suit + KING):
                never_held = (*position.hands[1 - seat], *position.talon, position.turned_up)
                led_by_other = card == position.lead and position.leader != seat
                if card in never_held or led_by_other:
                    _refuse(
                        f"seat {seat} cannot have declared the marriage of {SUITS[suit]}: "
                        f"{card_text(card)} was never in that hand"
                    )
    suit = position.declared
    if suit is not None:
        if suit not in position.marriages[position.leader]:
            _refuse(f"declared {SUITS[suit]} is not among the marriages of the leader")
        pair = {NUM_RANKS * suit + QUEEN, NUM_RANKS * suit + KING}
        if position.lead is not None or not pair <= set(position.hands[position.leader]):
            _refuse(
                f"declared {SUITS[suit]} needs king and queen in the hand of the leader on lead"
            )


def _check_knowledge(position: Position) -> None:
    for seat in (0, 1):
        for card in position.known[seat]:
            if card not in position.hands[seat]:
                _refuse(f"known {card_text(card)} is not in the hand of seat {seat}")
        for card in position.cannot_hold[seat]:
            if card in position.hands[seat]:
                _refuse(f"cannot_hold {card_text(card)} is in the hand of seat {seat}")
        if position.cannot_hold[seat] and position.talon_state == "OPEN":
            _refuse("cannot_hold comes from strict-phase replies, and the talon is open")


def _check_closing(position: Position) -> None:
    at_close = position.at_close
    if (position.closed_by is None) != (at_close is None):
        _refuse("at_close is given exactly when closed_by is")
    if position.closed_by is None or at_close is None:
        return
    other = 1 - position.closed_by
    if at_close.tricks > min(position.tricks[other], (TALON_SIZE - len(position.talon)) // 2):
        _refuse(f"the closer's opponent cannot have had {at_close.tricks} tricks at the closing")
    if at_close.points > position.points(other) or at_close.card_points > at_close.points:
        _refuse(f"the closer's opponent cannot have had {at_close.points} points at the closing")
    if at_close.tricks == 0 and at_close.points:
        _refuse("at_close has points without a trick")


def _check_result(position: Position) -> None:
    result = position.result
    if result is None:
        return
    if (result.winner is None) != (result.game_points == 0):
        _refuse("a result has a winner exactly when it has game points")
    won = result.end_reason not in (EndReason.DRAWN, EndReason.ILLEGAL_ACTION)
    known = result.end_reason is not EndReason.RUNNING
    if not known or won != (result.winner is not None) or not 0 <= result.game_points <= 3:
        _refuse(f"{result} is not the result of a deal")
