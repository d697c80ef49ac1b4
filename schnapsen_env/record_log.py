"""Deal records: everything that happened in a deal as one line of text, which can be played again.

A line holds the rules, who sat where, how the deal began, what was played and how it came out, and
closes with a checksum::

    schnapsen-deal/1 rules=duel seats=player_0,player_1 forehand=0 deck=JCQC... actions=AS,TS,...
    result=0/2/sixty_six check=5f0c7a11

(one line in truth). :func:`parse` refuses a line that was cut or altered and says where;
:func:`replay` plays it through the engine and refuses a deal that did not go that way.
``docs/records.md`` describes the format.
"""

from __future__ import annotations

import os
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import CLAIM, action_text, parse_action
from schnapsen_env.cards import NUM_CARDS, card_text, parse_card
from schnapsen_env.engine import record as r
from schnapsen_env.position import EndReason, Position, Result
from schnapsen_env.rules import UNQUOTED, Rules, parse_rules, rules_text
from schnapsen_env.view import event

Record = npt.NDArray[np.int64]

#: What every line begins with; the number changes when the format does.
HEADER: Final = "schnapsen-deal/1"

_FIELDS: Final = ("rules", "seats", "forehand", "score", "deck", "position", "actions", "result")
#: Fields that a line may leave out: no game points won before, and one of deck and position.
_OPTIONAL: Final = frozenset({"score", "deck", "position"})
_REASONS: Final = {reason.text: reason for reason in EndReason if reason is not EndReason.RUNNING}


@dataclass(frozen=True, kw_only=True)
class DealRecord:
    """One finished deal; ``str()`` of it is its line.

    Args:
        rules: the rule set.
        seats: the names of the players, seat 0 first.
        forehand: the seat that led to the first trick.
        match_score: game points of each seat before the deal.
        deck: the twenty cards in API order, or None if the deal began at ``position``.
        position: where the deal began, or None if it was dealt.
        actions: what was played, as action ids. An action that ended the deal as illegal is not
            among them; a revoke is, as the last.
        result: how it came out.

    Raises:
        ValueError: the parts contradict each other; the message names the field.
    """

    rules: Rules
    seats: tuple[str, str] = ("player_0", "player_1")
    forehand: int
    match_score: tuple[int, int] = (0, 0)
    deck: tuple[int, ...] | None = None
    position: Position | None = None
    actions: tuple[int, ...]
    result: Result

    def __post_init__(self) -> None:
        if (self.deck is None) == (self.position is None):
            raise _error("deck", "a deal begins with a deck or at a position, one of the two")
        if self.deck is not None and sorted(self.deck) != list(range(NUM_CARDS)):
            raise _error("deck", f"each of the 20 cards once, not {_deck_text(self.deck)}")
        if len(self.seats) != 2 or not all(self.seats):
            raise _error("seats", f"two names, not {self.seats!r}")
        if self.forehand not in (0, 1):
            raise _error("forehand", f"0 or 1, not {self.forehand!r}")
        if len(self.match_score) != 2 or min(self.match_score) < 0:
            raise _error("score", f"two game points from 0, not {self.match_score!r}")
        if self.position is not None:
            if self.position.result is not None:
                raise _error("position", "a deal cannot begin where it is over")
            of_position = (self.position.forehand, self.position.match_score)
            if of_position != (self.forehand, self.match_score):
                raise _error(
                    "position",
                    f"forehand and score of the position are {of_position[0]} and "
                    f"{of_position[1]}, those of the deal {self.forehand} and {self.match_score}",
                )
        if len(self.actions) > r.MAX_ACTIONS_PER_DEAL:
            raise _error("actions", f"at most {r.MAX_ACTIONS_PER_DEAL}, not {len(self.actions)}")
        if any(not 0 <= action <= CLAIM for action in self.actions):
            raise _error("actions", f"ids from 0 to {CLAIM}, not {self.actions!r}")
        _check_result(self.result)

    @classmethod
    def from_record(
        cls,
        record: Record,
        rules: Rules,
        *,
        seats: Sequence[str] = ("player_0", "player_1"),
        start: Position | None = None,
    ) -> DealRecord:
        """The record of a finished deal, from the engine's record of it.

        Args:
            record: ``int64[RECORD_SIZE]`` of a deal that is over.
            rules: the rules that it was played by.
            seats: the names of the players, seat 0 first.
            start: where it began, if that was in the middle of a deal; the engine does not keep it.

        Raises:
            ValueError: the deal still runs, or began at a position and ``start`` is missing.
        """
        values = [int(value) for value in record]
        if not values[r.END_REASON]:
            raise ValueError("the deal still runs: a deal record is of a finished deal")
        if values[r.FROM_POSITION] and start is None:
            raise ValueError("the deal began at a position: give that position as start")
        is_dealt = not values[r.FROM_POSITION]
        winner = None if values[r.WINNER] == r.NONE else values[r.WINNER]
        score = values[r.MATCH_SCORE : r.MATCH_SCORE + 2]
        if winner is not None:
            score[winner] -= values[r.GAME_POINTS]
        return cls(
            rules=rules,
            seats=(seats[0], seats[1]),
            forehand=values[r.FOREHAND],
            match_score=(score[0], score[1]),
            deck=tuple(_deck_of(values)) if is_dealt else None,
            position=None if is_dealt else start,
            actions=tuple(int(event(record, i)[0]) for i in range(values[r.NUM_TAKEN])),
            result=Result(winner, values[r.GAME_POINTS], EndReason(values[r.END_REASON])),
        )

    @classmethod
    def from_text(cls, line: str) -> DealRecord:
        """The record of a line, see :func:`parse`."""
        return parse(line)

    def __str__(self) -> str:
        values = {
            "rules": rules_text(self.rules),
            "seats": ",".join(quote(name, safe=UNQUOTED) for name in self.seats),
            "forehand": str(self.forehand),
            "score": ",".join(map(str, self.match_score)) if any(self.match_score) else None,
            "deck": None if self.deck is None else _deck_text(self.deck),
            "position": None if self.position is None else str(self.position).replace(" ", ";"),
            "actions": ",".join(map(action_text, self.actions)) or "-",
            "result": _result_text(self.result),
        }
        words = [f"{name}={values[name]}" for name in _FIELDS if values[name] is not None]
        return _sealed(" ".join([HEADER, *words]))


# ------------------------------------------------------------------------------------- one line


def parse(line: str) -> DealRecord:
    """Read the line of a deal.

    Args:
        line: what ``str(deal)`` gave, with or without a line break.

    Raises:
        ValueError: the line was cut or altered; the message names the field and what belongs there.
    """
    line = line.rstrip("\r\n")
    if not line.isascii():
        odd = next(letter for letter in line if not letter.isascii())
        raise ValueError(f"deal record: a line holds ASCII letters only, not {odd!r}")
    words = line.split(" ")
    if words[0] != HEADER:
        raise ValueError(f"deal record: a line begins with {HEADER!r}, not {words[0][:40]!r}")
    values = _fields_of(words[1:])
    deal = DealRecord(
        rules=_read("rules", values, parse_rules),
        seats=_read("seats", values, _read_seats),
        forehand=_read("forehand", values, _read_number),
        match_score=_read("score", values, _read_score) if "score" in values else (0, 0),
        deck=_read("deck", values, _read_deck) if "deck" in values else None,
        position=_read("position", values, _read_position) if "position" in values else None,
        actions=_read("actions", values, _read_actions),
        result=_read("result", values, _read_result),
    )
    # Last, so that a damage that shows is named where it is.
    _check_seal(line, words[-1])
    return deal


def _error(field: str, reason: str) -> ValueError:
    return ValueError(f"deal record: {field}: {reason}")


def _fields_of(words: list[str]) -> dict[str, str]:
    """The values by field, if every field is there, once, and in order."""
    values: dict[str, str] = {}
    expected = [*_FIELDS, "check"]
    for word in words:
        name, equals, value = word.partition("=")
        while expected and expected[0] != name and expected[0] in _OPTIONAL:
            expected.pop(0)
        if not expected:
            raise ValueError(f"deal record: nothing follows the field 'check', but {word[:40]!r}")
        if not equals or name != expected[0]:
            raise _error(expected[0], f"{expected[0]}=... is expected, not {word[:40]!r}")
        values[expected.pop(0)] = value
    if expected:
        missing = next(name for name in expected if name not in _OPTIONAL)
        raise _error(missing, "the line ends before it; it was cut")
    return values


def _sealed(text: str) -> str:
    return f"{text} check={zlib.crc32(text.encode()):08x}"


def _check_seal(line: str, last_word: str) -> None:
    body = line.removesuffix(f" {last_word}")
    if not re.fullmatch(r"check=[0-9a-f]{8}", last_word):
        raise _error("check", f"eight digits of 0-9a-f, not {last_word.removeprefix('check=')!r}")
    if _sealed(body) != line:
        expected = _sealed(body)[-8:]
        raise _error("check", f"{expected} belongs to this line, not {line[-8:]}: it was altered")


def _read(field: str, values: dict[str, str], reader: Any) -> Any:
    try:
        return reader(values[field])
    except ValueError as error:
        raise _error(field, str(error)) from None


# ------------------------------------------------------------------------------- single values


def _read_seats(text: str) -> tuple[str, str]:
    names = [unquote(name) for name in text.split(",")]
    if len(names) != 2:
        raise ValueError(f"two names with a comma between them, not {text!r}")
    return names[0], names[1]


def _read_number(text: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,5}", text):
        raise ValueError(f"a whole number, not {text!r}")
    return int(text)


def _read_score(text: str) -> tuple[int, int]:
    numbers = [_read_number(part) for part in text.split(",")]
    if len(numbers) != 2:
        raise ValueError(f"two numbers with a comma between them, not {text!r}")
    return numbers[0], numbers[1]


def _deck_of(values: Sequence[int]) -> Iterator[int]:
    for i in range(NUM_CARDS):
        word, place = divmod(i, r.CARDS_PER_DECK_WORD)
        yield values[r.DECK + word] >> (r.CARD_BITS * place) & r.CARD_WORD


def _deck_text(deck: Iterable[int]) -> str:
    return "".join(card_text(card) if 0 <= card < NUM_CARDS else "??" for card in deck)


def _read_deck(text: str) -> tuple[int, ...]:
    if len(text) != 2 * NUM_CARDS:
        raise ValueError(f"{2 * NUM_CARDS} letters for {NUM_CARDS} cards, not {len(text)}")
    return tuple(parse_card(text[i : i + 2]) for i in range(0, len(text), 2))


def _read_position(text: str) -> Position:
    return Position.from_text(text.replace(";", " "))


def _read_actions(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(parse_action(word) for word in text.split(","))


def _result_text(result: Result) -> str:
    winner = "-" if result.winner is None else str(result.winner)
    return f"{winner}/{result.game_points}/{result.end_reason.text}"


def _read_result(text: str) -> Result:
    parts = text.split("/")
    if len(parts) != 3 or parts[2] not in _REASONS:
        raise ValueError(
            f"winner/game_points/end_reason with one of {', '.join(_REASONS)}, not {text!r}"
        )
    winner = None if parts[0] == "-" else _read_number(parts[0])
    return Result(winner, _read_number(parts[1]), _REASONS[parts[2]])


def _check_result(result: Result) -> None:
    won = result.winner in (0, 1) and 1 <= result.game_points <= 3
    nobody = result.winner is None and result.game_points == 0
    has_winner = result.end_reason not in (EndReason.DRAWN, EndReason.ILLEGAL_ACTION)
    if result.end_reason is EndReason.RUNNING or not (won if has_winner else nobody):
        raise _error("result", f"{_result_text(result)} is not the result of a deal")


# ------------------------------------------------------------------------------------ replaying


def replay(deal: DealRecord | str) -> Record:
    """Play a deal again, through the engine, and check that it goes as recorded.

    Args:
        deal: the record, or its line.

    Returns:
        The finished deal, ``int64[RECORD_SIZE]``.

    Raises:
        ValueError: the line is damaged, an action is illegal where it stands, or the deal comes out
            otherwise.
    """
    return list(replay_steps(deal))[-1]


def replay_steps(deal: DealRecord | str) -> Iterator[Record]:
    """Play a deal again step by step.

    Args:
        deal: the record, or its line.

    Yields:
        The deal before the first action and after each one, copies of ``int64[RECORD_SIZE]``; after
        an illegal action that ended it, once more with that result.

    Raises:
        ValueError: as for :func:`replay`, when the fault is reached.
    """
    if isinstance(deal, str):
        deal = parse(deal)
    record = _first_record(deal)
    yield record.copy()
    for number, action in enumerate(deal.actions, start=1):
        _play(record, deal, number, action)
        yield record.copy()
    if deal.result.end_reason is EndReason.ILLEGAL_ACTION and not engine.is_over(record):
        record[r.END_REASON] = EndReason.ILLEGAL_ACTION
        yield record.copy()
    if not engine.is_over(record):
        raise _error("actions", f"the deal is not over after {len(deal.actions)} of them")
    winner = None if record[r.WINNER] == r.NONE else int(record[r.WINNER])
    result = Result(winner, int(record[r.GAME_POINTS]), EndReason(int(record[r.END_REASON])))
    if result != deal.result:
        raise _error("result", f"{_result_text(result)} comes out, not {_result_text(deal.result)}")


def _first_record(deal: DealRecord) -> Record:
    if deal.position is not None:
        try:
            return engine.record_of(deal.position, deal.rules)
        except ValueError as error:
            raise _error("position", str(error)) from None
    record = engine.new_record(0)
    record[r.MATCH_SCORE], record[r.MATCH_SCORE + 1] = deal.match_score
    engine.deal_deck(record, np.array(deal.deck, dtype=np.int64), deal.forehand)
    return record


def _play(record: Record, deal: DealRecord, number: int, action: int) -> None:
    codes = deal.rules.codes()
    if (
        deal.rules.revoke == "loses"
        and number == len(deal.actions)
        and engine.is_revoke(record, codes, action)
    ):
        engine.revoke(record, codes, action)
        return
    try:
        engine.apply(record, deal.rules, action)
    except engine.IllegalActionError as error:
        raise _error("actions", f"number {number}: {error}") from None


# ---------------------------------------------------------------------------------------- files


def write(path: str | os.PathLike[str], deals: Iterable[DealRecord]) -> int:
    """Write a file of deals, a line each, in place of what ``path`` held; how many they were.

    The file appears when it is complete: until then the old one stays, also after a crash.
    """
    target = Path(path).resolve()  # a link goes on pointing to its file
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    written = 0
    try:
        with unfinished.open("w", encoding="ascii", newline="\n") as file:
            for deal in deals:
                file.write(f"{deal}\n")
                written += 1
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return written


def append(path: str | os.PathLike[str], deals: Iterable[DealRecord]) -> int:
    """Append deals to a file, a line each, making it if need be; how many they were.

    All lines go to the system in one piece, so several programs may append to one file. After a
    line that a crash has cut, a new one is begun, so that no more than the cut one is lost.

    Raises:
        OSError: not everything could be written, on a full disk for instance; how much was.
    """
    lines = [f"{deal}\n" for deal in deals]
    with Path(path).open("ab+", buffering=0) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                lines.insert(0, "\n")
        content = "".join(lines).encode("ascii")
        written = 0
        try:
            # The system may take a part; the reason is what it answers to the rest.
            while written < len(content):
                written += file.write(content[written:])
        except OSError as error:
            text = f"{error.strerror}, after {written:,} of {len(content):,} bytes"
            raise OSError(error.errno, text, str(path)) from error
    return sum(line != "\n" for line in lines)


def read(
    path: str | os.PathLike[str], *, check: bool = True, damaged: list[str] | None = None
) -> Iterator[DealRecord]:
    """The deals of a file, one after the other.

    Args:
        path: a file of :func:`write` or :func:`append`. Empty lines are passed over.
        check: also replay each deal; False saves the time.
        damaged: if given, lines that cannot be read are passed over too, and what is wrong with
            them is appended here.

    Yields:
        The deals in order.

    Raises:
        ValueError: a line is damaged or its deal cannot have gone that way; with the number of the
            line.
    """
    with Path(path).open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                deal = parse(line)
                if check:
                    replay(deal)
            except ValueError as error:
                fault = f"{path}, line {number}: {error}"
                if damaged is None:
                    raise ValueError(fault) from None
                damaged.append(fault)
            else:
                yield deal
