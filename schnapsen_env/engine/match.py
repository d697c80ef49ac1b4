"""The match: deals until someone has the target."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.rules import CODE_INDEX, Rules

Record = npt.NDArray[np.int64]

_TARGET: Final = CODE_INDEX["target"]


@compiled
def is_over(record: Record) -> bool:
    """Whether the deal is over."""
    return record[r.END_REASON] != 0


@compiled
def game_points(record: Record, seat: int) -> int:
    """Signed game points of ``seat`` for the finished deal; 0 while it runs or when drawn."""
    if record[r.WINNER] == r.NONE:
        return 0
    return record[r.GAME_POINTS] if record[r.WINNER] == seat else -record[r.GAME_POINTS]


@compiled
def has_won(score: Any, target: Any) -> Any:
    """Whether a score, or each of an array, has reached the target."""
    return score >= target


def defeats(loser_score: Any, target: int) -> tuple[Any, Any]:
    """Whether a lost match is a Schneider and a Rueckschneider, for a score or an array of them.

    Schneider: the loser won no game point. Rueckschneider: the loser stood one game point from
    winning, and the winner has won every later deal; had the loser won one, the match would be
    the loser's.
    """
    return loser_score == 0, loser_score == target - 1


@compiled
def match_winner(record: Record, codes: npt.NDArray[np.int64]) -> int:
    """The seat that has reached the target, or -1."""
    for seat in range(2):
        if has_won(record[r.MATCH_SCORE + seat], codes[_TARGET]):
            return seat
    return r.NONE


@compiled
def new_match(record: Record) -> None:
    """Forget the match score and the dealer; the next deal is the first of a match."""
    record[r.MATCH_SCORE] = 0
    record[r.MATCH_SCORE + 1] = 0
    record[r.DEAL_NUMBER] = 0


def match_result(record: Record, rules: Rules) -> dict[str, Any]:
    """What people report of a finished match; none of it is scored.

    ``winner`` and ``bummerl`` (the loser's mark) are seats, ``score`` the game points by seat.
    ``schneider`` and ``rueckschneider`` are those of :func:`defeats`.

    Raises:
        ValueError: nobody has reached the target yet.
    """
    winner = int(match_winner(record, rules.codes()))
    if winner == r.NONE:
        raise ValueError(f"the match is not over: nobody has reached {rules.target} game points")
    score = [int(record[r.MATCH_SCORE]), int(record[r.MATCH_SCORE + 1])]
    loser = 1 - winner
    schneider, rueckschneider = defeats(score[loser], rules.target)
    return {
        "winner": winner,
        "score": score,
        "bummerl": loser,
        "schneider": schneider,
        "rueckschneider": rueckschneider,
    }
