"""Positions to records and back, and the checked step for callers that are not compiled."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.actions import FIRST_DECLARE, NUM_ACTIONS, action_text
from schnapsen_env.cards import NUM_SUITS, TALON_SIZE, card_set, card_text, cards_of
from schnapsen_env.engine import play, score
from schnapsen_env.engine import record as r
from schnapsen_env.engine.chance import random_states
from schnapsen_env.position import AtClose, EndReason, Position, Result
from schnapsen_env.position_check import split_won
from schnapsen_env.rules import Rules

Record = npt.NDArray[np.int64]

_STATES: Final = {"OPEN": r.OPEN, "CLOSED": r.CLOSED, "EXHAUSTED": r.EXHAUSTED}


class IllegalActionError(ValueError):
    """An action that the rules do not allow; the message holds the action and the position."""

    action: int
    position: Position

    # No __init__ of its own: Python unpickles an error, as one from a worker process, by its
    # message alone and sets the attributes afterwards.
    @classmethod
    def of(cls, action: int, reason: str, position: Position) -> IllegalActionError:
        """The error for ``action`` in ``position``."""
        name = action_text(action) if 0 <= action < NUM_ACTIONS else str(action)
        error = cls(f"illegal action {name} ({action}): {reason}; position: {position}")
        error.action = action
        error.position = position
        return error


def new_records(seeds: Any) -> Record:
    """Records with nothing dealt yet, ``int64[N, RECORD_SIZE]``, one for each integer seed."""
    records = np.zeros((len(seeds), r.RECORD_SIZE), dtype=np.int64)
    records[:, r.RANDOM] = random_states(seeds)
    return records


def new_record(seed: int) -> Record:
    """One record with nothing dealt yet, ``int64[RECORD_SIZE]``."""
    return new_records([seed])[0]


def parse_deck(deck: Any) -> Record:
    """Check a deck in API order and return it as ``int64[20]``.

    Raises:
        ValueError: not a permutation of the card ids 0-19.
    """
    fault = f"deck must be a permutation of the card ids 0-19, not {deck!r}"
    try:
        given = np.asarray(deck)
    except ValueError:  # lists of different lengths in a list
        raise ValueError(fault) from None
    if (
        given.shape != (20,)
        or given.dtype.kind not in "iu"
        or sorted(given.tolist()) != list(range(20))
    ):
        raise ValueError(fault)
    return given.astype(np.int64)


def position_of(record: Record) -> Position:
    """The position that a record holds."""
    value = [int(field) for field in record]

    def cards(offset: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(cards_of(value[offset])), tuple(cards_of(value[offset + 1]))

    def numbers(offset: int) -> tuple[int, int]:
        return value[offset], value[offset + 1]

    def optional(offset: int) -> int | None:
        return None if value[offset] == r.NONE else value[offset]

    def suits(offset: int) -> tuple[int, ...]:
        return tuple(suit for suit in range(NUM_SUITS) if value[offset] >> suit & 1)

    at_close = None
    if value[r.CLOSED_BY] != r.NONE:
        at_close = AtClose(value[r.CLOSE_TRICKS], value[r.CLOSE_POINTS], value[r.CLOSE_CARD_POINTS])
    result = None
    if value[r.END_REASON]:
        result = Result(optional(r.WINNER), value[r.GAME_POINTS], EndReason(value[r.END_REASON]))
    face_down = value[r.FACE_DOWN]
    return Position(
        trump_suit=value[r.TRUMP],
        turned_up=optional(r.TURNED_UP),
        hands=cards(r.HAND),
        talon=tuple(
            int(play.talon_card(record, place))
            for place in range(TALON_SIZE - face_down, TALON_SIZE)
        ),
        closed_by=optional(r.CLOSED_BY),
        at_close=at_close,
        leader=value[r.LEADER],
        lead=optional(r.LED),
        card_points=numbers(r.CARD_POINTS),
        tricks=numbers(r.TRICKS),
        marriages=(suits(r.MARRIAGES), suits(r.MARRIAGES + 1)),
        declared=optional(r.DECLARED),
        won=cards(r.WON),
        known=cards(r.KNOWN),
        cannot_hold=cards(r.CANNOT_HOLD),
        last_trick=(
            None if value[r.LAST_LEAD] == r.NONE else (value[r.LAST_LEAD], value[r.LAST_REPLY])
        ),
        forehand=value[r.FOREHAND],
        match_score=numbers(r.MATCH_SCORE),
        result=result,
    )


def record_of(position: Position, rules: Rules, seed: int = 0) -> Record:
    """The record of a position, ``int64[RECORD_SIZE]``, with the random state of ``seed``.

    Where the position does not say who won which cards, one division that fits the card points is
    taken.

    Raises:
        ValueError: under ``rules`` the deal would have ended before this position.
    """
    record = new_record(seed)
    for seat in (0, 1):
        record[r.HAND + seat] = card_set(position.hands[seat])
        record[r.WON + seat] = card_set((split_won(position) or ((), ()))[seat])
        record[r.CARD_POINTS + seat] = position.card_points[seat]
        record[r.TRICKS + seat] = position.tricks[seat]
        record[r.MARRIAGES + seat] = sum(1 << suit for suit in position.marriages[seat])
        record[r.KNOWN + seat] = card_set(position.known[seat])
        record[r.CANNOT_HOLD + seat] = card_set(position.cannot_hold[seat])
        record[r.MATCH_SCORE + seat] = position.match_score[seat]
        record[r.DRAWN + seat] = r.NOTHING_DRAWN

    def optional(value: int | None) -> int:
        return r.NONE if value is None else value

    record[r.TO_MOVE] = position.to_move
    record[r.LEADER] = position.leader
    record[r.LED] = optional(position.lead)
    record[r.DECLARED] = optional(position.declared)
    record[r.TRUMP] = position.trump_suit
    record[r.TURNED_UP] = optional(position.turned_up)
    record[r.FACE_DOWN] = len(position.talon)
    record[r.TALON_STATE] = _STATES[position.talon_state]
    record[r.CLOSED_BY] = optional(position.closed_by)
    if position.at_close is not None:
        record[r.CLOSE_TRICKS] = position.at_close.tricks
        record[r.CLOSE_POINTS] = position.at_close.points
        record[r.CLOSE_CARD_POINTS] = position.at_close.card_points
    last_lead, last_reply = position.last_trick or (r.NONE, r.NONE)
    record[r.LAST_LEAD], record[r.LAST_REPLY] = last_lead, last_reply
    for place, card in enumerate(position.talon, start=TALON_SIZE - len(position.talon)):
        record[r.DECK + 1] |= card << (r.CARD_BITS * (1 + place))
    record[r.DECK + 1] |= r.CARD_WORD if position.turned_up is None else position.turned_up
    record[r.FROM_POSITION] = 1
    record[r.FOREHAND] = position.forehand
    record[r.DEAL_NUMBER] = 1
    record[r.WINNER] = r.NONE
    if position.result is not None:
        record[r.END_REASON] = position.result.end_reason
        record[r.WINNER] = optional(position.result.winner)
        record[r.GAME_POINTS] = position.result.game_points
    else:
        _check_running(record, position, rules)
    return record


def _check_running(record: Record, position: Position, rules: Rules) -> None:
    """Raise unless the deal can still be running under ``rules``."""
    for seat in (0, 1):
        if rules.claims == "automatic" and score.is_out(record, seat):
            raise ValueError(
                f"position: seat {seat} has {score.points(record, seat)} points, so under "
                f"{rules.name!r} (automatic claims) the deal is over: {position}"
            )
    if position.closed_by is not None and len(position.talon) < rules.close_min:
        raise ValueError(
            f"position: the talon is closed with {len(position.talon)} face-down cards, but "
            f"{rules.name!r} has close_min={rules.close_min}: {position}"
        )


def apply(record: Record, rules: Rules, action: int) -> None:
    """Take ``action`` for the player to move, in place, after checking it.

    Raises:
        IllegalActionError: the action is not legal; the record is untouched.
    """
    codes = rules.codes()
    action = int(action)
    if not 0 <= action < NUM_ACTIONS or not play.legal(record, codes) >> action & 1:
        reason = _why_illegal(record, codes, action)
        raise IllegalActionError.of(action, reason, position_of(record))
    play.step(record, codes, action)


def _why_illegal(record: Record, codes: npt.NDArray[np.int64], action: int) -> str:
    if not 0 <= action < NUM_ACTIONS:
        return f"actions are 0 to {NUM_ACTIONS - 1}"
    if record[r.END_REASON]:
        return "the deal is over"
    seat = int(record[r.TO_MOVE])
    legal = int(play.legal(record, codes))
    choice = "it may choose " + " ".join(
        action_text(a) for a in range(NUM_ACTIONS) if legal >> a & 1
    )
    if action < FIRST_DECLARE and not record[r.HAND + seat] >> action & 1:
        return f"seat {seat} does not hold {card_text(action)}, {choice}"
    if play.is_revoke(record, codes, action):
        return f"the strict phase asks seat {seat} for another card, {choice}"
    return f"seat {seat} is to move, {choice}"
