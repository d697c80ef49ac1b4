"""The board as text, for terminals and logs: render modes ``"ansi"`` and ``"human"``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TextIO

import gymnasium
import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE, NUM_ACTIONS
from schnapsen_env.cards import ALL_CARDS, NUM_RANKS, PACKS, Pack, marriage_value
from schnapsen_env.engine import record as r
from schnapsen_env.observation import Memory
from schnapsen_env.position import EndReason, Position
from schnapsen_env.rules import Rules
from schnapsen_env.view import MEMORIES, PERFECT, view

Record = npt.NDArray[np.int64]
PackName = Literal["french", "german"]

#: A card that the viewer does not know.
HIDDEN: Final = "??"

_ENDINGS: Final = {
    EndReason.SIXTY_SIX: "66 reached",
    EndReason.LAST_TRICK: "last trick",
    EndReason.FAILED_CLOSE: "the close failed",
    EndReason.WRONG_CLAIM: "wrong claim",
    EndReason.REVOKE: "revoke",
}


def check_render_mode(mode: str | None, known: Sequence[str]) -> str | None:
    """``mode``, if it is None or known.

    Raises:
        ValueError: neither.
    """
    if mode is not None and mode not in known:
        raise ValueError(f"render_mode={mode!r} is unknown: choose None, {' or '.join(known)}")
    return mode


def board(
    record: Record,
    rules: Rules,
    pack: PackName = "french",
    seat: int | None = None,
    memory: Memory = "perfect",
) -> str:
    """One moment of a deal as a few lines of text, without a newline at the end.

    Args:
        record: ``int64[RECORD_SIZE]``.
        rules: the rule set of the deal.
        pack: the pack whose names and symbols are shown.
        seat: the player who looks and sees what its :func:`~schnapsen_env.view.view` holds; None
            shows everything.
        memory: what that player remembers, see :data:`~schnapsen_env.view.MEMORIES`.

    Raises:
        ValueError: there is no such pack.
    """
    if pack not in PACKS:
        raise ValueError(f"pack={pack!r} is unknown: choose one of {', '.join(PACKS)}")
    return _Board(record, rules, PACKS[pack], seat, MEMORIES.index(memory)).text()


class TextScreen:
    """Shows the boards of one environment.

    Args:
        rules: the rule set of the environment.
        pack: the pack that is shown.
        seat: the player who looks, see :func:`board`; may be set later.
        memory: what that player remembers.

    Raises:
        ValueError: there is no such pack.
    """

    def __init__(
        self,
        rules: Rules,
        pack: PackName = "french",
        seat: int | None = None,
        memory: Memory = "perfect",
    ) -> None:
        if pack not in PACKS:
            raise ValueError(f"pack={pack!r} is unknown: choose one of {', '.join(PACKS)}")
        self.seat = seat
        self._rules = rules
        self._pack: PackName = pack
        self._memory: Memory = memory
        self._written = ""

    def show(self, record: Record, render_mode: str | None) -> str | None:
        """What ``render()`` does in a mode: text for "ansi", written and None for "human"."""
        if render_mode is None:
            gymnasium.logger.warn(
                "render() does nothing without a render mode: make the environment with "
                "render_mode='ansi' or 'human'"
            )
            return None
        if render_mode == "ansi":
            return self.text(record)
        self.write(record, sys.stdout)
        return None

    def text(self, record: Record) -> str:
        """The board of a record."""
        return board(record, self._rules, self._pack, self.seat, self._memory)

    def write(self, record: Record, out: TextIO) -> None:
        """Write the board to ``out``, unless it is what was written last."""
        text = self.text(record)
        if text != self._written:
            out.write(f"{text}\n\n")
            out.flush()
            self._written = text


class _Board:
    """Composes the lines of a board."""

    def __init__(
        self, record: Record, rules: Rules, pack: Pack, seat: int | None, memory: int
    ) -> None:
        self._record = record
        self._rules = rules
        self._pack = pack
        self._seat = seat
        self._position: Position = engine.position_of(record)
        #: What the player who looks may know; None for somebody who sees everything.
        self._view = None if seat is None else view(record, rules.codes(), seat, memory)
        self._shows_counts = seat is None or memory == PERFECT

    def text(self) -> str:
        """All lines."""
        lines = [self._match(), self._talon(), *self._players(), self._trick()]
        return "\n".join([*(line for line in lines if line), self._last_line()])

    def _cards(self, cards: Iterable[int]) -> str:
        return " ".join(self._pack.card_symbol(card) for card in cards)

    def _match(self) -> str:
        score, target = self._position.match_score, self._rules.target
        if self._rules.counting == "down":
            told = f"{target - score[0]} : {target - score[1]} to go"
        else:
            told = f"{score[0]} : {score[1]} of {target}"
        return f"Schnapsen, {self._rules.name} rules, match {told}"

    def _talon(self) -> str:
        position = self._position
        suit = self._pack.suit_symbols[position.trump_suit]
        talon = {
            "OPEN": f"{len(position.talon)} face down",
            "CLOSED": f"closed by player_{position.closed_by}, {len(position.talon)} face down",
            "EXHAUSTED": "all cards drawn",
        }[position.talon_state]
        under = "" if position.turned_up is None else f" on {self._cards([position.turned_up])}"
        return f"trump {suit}   talon: {talon}{under}"

    def _players(self) -> list[str]:
        return [self._player(seat) for seat in (1, 0)]

    def _player(self, seat: int) -> str:
        position = self._position
        known = ALL_CARDS
        if self._view is not None and seat != self._seat:
            known = self._view.cards.other_known
        hand = [
            self._pack.card_symbol(card) if known >> card & 1 else HIDDEN
            for card in position.hands[seat]
        ]
        hand.sort(key=lambda text: text == HIDDEN)
        tricks = position.tricks[seat]
        counted = f"{tricks} trick{'' if tricks == 1 else 's'}, {position.points(seat)} points"
        if not tricks and position.marriages[seat]:
            counted += f" ({position.marriage_points(seat)} pending)"
        marriages = " ".join(self._marriage(suit) for suit in position.marriages[seat])
        arrow = ">" if position.to_move == seat and position.result is None else " "
        cards = " ".join(hand) or "no cards"
        parts = [cards, counted if self._shows_counts else "", marriages]
        return f"{arrow} player_{seat}: " + "   ".join(part for part in parts if part)

    def _marriage(self, suit: int) -> str:
        worth = marriage_value(suit, self._position.trump_suit)
        return f"{worth}{self._pack.suit_symbols[suit]}"

    def _trick(self) -> str:
        position = self._position
        parts: list[str] = []
        if position.lead is not None:
            parts.append(f"player_{position.leader} led {self._cards([position.lead])}")
        if position.declared is not None:
            parts.append(f"player_{position.leader} declared {self._marriage(position.declared)}")
        remembers = self._view is None or self._view.cards.last_trick != 0
        if position.last_trick is not None and remembers:
            parts.append(f"last trick {self._cards(position.last_trick)}")
        return "  " + "   ".join(parts) if parts else ""

    def _last_line(self) -> str:
        result = self._position.result
        if result is None:
            mover = self._position.to_move
            if self._seat not in (None, mover):  # the choices would show the cards
                return f"player_{mover} to move"
            return f"player_{mover} to move: {self._choices()}"
        if result.end_reason is EndReason.ILLEGAL_ACTION:
            return f"player_{int(self._record[r.TO_MOVE])} loses: illegal action"
        if result.winner is None:
            return "the deal is drawn"
        why = _ENDINGS[result.end_reason]
        points = "game point" if result.game_points == 1 else "game points"
        return f"player_{result.winner} wins {result.game_points} {points}: {why}"

    def _choices(self) -> str:
        legal = int(engine.legal(self._record, self._rules.codes()))
        return ", ".join(self._choice(a) for a in range(NUM_ACTIONS) if legal >> a & 1)

    def _choice(self, action: int) -> str:
        if action < FIRST_DECLARE:
            return self._cards([action])
        if action < EXCHANGE:
            return f"declare {self._marriage(action - FIRST_DECLARE)}"
        return {
            EXCHANGE: f"exchange {self._cards([NUM_RANKS * self._position.trump_suit])}",
            CLOSE: "close",
            CLAIM: "claim 66",
        }[action]
