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
from schnapsen_env.cards import (
    MARRIAGE_POINTS,
    NUM_RANKS,
    PACKS,
    TRUMP_MARRIAGE_POINTS,
    Pack,
)
from schnapsen_env.engine import record as r
from schnapsen_env.position import EndReason, Position
from schnapsen_env.rules import Rules

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


def board(record: Record, rules: Rules, pack: PackName = "french", seat: int | None = None) -> str:
    """One moment of a deal as a few lines of text, without a newline at the end.

    Args:
        record: ``int64[RECORD_SIZE]``.
        rules: the rule set of the deal.
        pack: the pack whose names and symbols are shown.
        seat: the player who looks, whose opponent's hand shows only the cards known to that player;
            None shows both hands.

    Raises:
        ValueError: there is no such pack.
    """
    if pack not in PACKS:
        raise ValueError(f"pack={pack!r} is unknown: choose one of {', '.join(PACKS)}")
    return _Board(record, rules, PACKS[pack], seat).text()


class TextScreen:
    """Shows the boards of one environment.

    Args:
        rules: the rule set of the environment.
        pack: the pack that is shown.
        seat: the player who looks, see :func:`board`; may be set later.

    Raises:
        ValueError: there is no such pack.
    """

    def __init__(self, rules: Rules, pack: PackName = "french", seat: int | None = None) -> None:
        if pack not in PACKS:
            raise ValueError(f"pack={pack!r} is unknown: choose one of {', '.join(PACKS)}")
        self.seat = seat
        self._rules = rules
        self._pack: PackName = pack
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
        return board(record, self._rules, self._pack, self.seat)

    def write(self, record: Record, out: TextIO) -> None:
        """Write the board to ``out``, unless it is what was written last."""
        text = self.text(record)
        if text != self._written:
            out.write(f"{text}\n\n")
            out.flush()
            self._written = text


class _Board:
    """Composes the lines of a board."""

    def __init__(self, record: Record, rules: Rules, pack: Pack, seat: int | None) -> None:
        self._record = record
        self._rules = rules
        self._pack = pack
        self._seat = seat
        self._position: Position = engine.position_of(record)

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
        hand: list[str] = []
        for card in position.hands[seat]:
            is_known = self._seat in (None, seat) or card in position.known[seat]
            hand.append(self._pack.card_symbol(card) if is_known else HIDDEN)
        hand.sort(key=lambda text: text == HIDDEN)
        tricks = position.tricks[seat]
        counted = f"{tricks} trick{'' if tricks == 1 else 's'}, {position.points(seat)} points"
        if not tricks and position.marriages[seat]:
            counted += f" ({position.marriage_points(seat)} pending)"
        marriages = " ".join(self._marriage(suit) for suit in position.marriages[seat])
        arrow = ">" if position.to_move == seat and position.result is None else " "
        cards = " ".join(hand) or "no cards"
        return f"{arrow} player_{seat}: {cards}   {counted}" + (
            f"   {marriages}" if marriages else ""
        )

    def _marriage(self, suit: int) -> str:
        is_trump = suit == self._position.trump_suit
        worth = TRUMP_MARRIAGE_POINTS if is_trump else MARRIAGE_POINTS
        return f"{worth}{self._pack.suit_symbols[suit]}"

    def _trick(self) -> str:
        position = self._position
        parts: list[str] = []
        if position.lead is not None:
            parts.append(f"player_{position.leader} led {self._cards([position.lead])}")
        if position.declared is not None:
            parts.append(f"player_{position.leader} declared {self._marriage(position.declared)}")
        if position.last_trick is not None:
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
