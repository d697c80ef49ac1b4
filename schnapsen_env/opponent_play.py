"""One deal or match of a learner against an opponent: who is to move, and what is counted.

The opponent plays from its own observation and mask, in the default layout, whatever layout the
learner has chosen. The two built-in ones are played in compiled code: ``"random"`` draws from the
random stream of the deal, ``"heuristic"`` sees the view from which the observation is made.

:mod:`schnapsen_env.single_agent` is the environment around one row of this, and
:mod:`schnapsen_env.single_agent_vector` around many.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.episode import (
    RAISES,
    Codes,
    Record,
    Switches,
    action_number,
    counted_points,
    end_by_illegal_action,
    is_episode_over,
    reward_of,
    take,
)
from schnapsen_env.opponents import BUILT_IN, heuristic_action
from schnapsen_env.view import PERFECT, view

#: How an opponent is played: one of the built-in ones in compiled code, or an object with ``act``.
RANDOM, HEURISTIC = map(BUILT_IN.index, ("random", "heuristic"))
ASKED: Final = len(BUILT_IN)

#: Who is to move, if the episode is not over.
LEARNER, OPPONENT, OVER = range(3)

#: One row of what an environment keeps beside the record: the learner's seat, who is to move, and
#: what is counted between two returns to the learner - its reward, its game points, how many deals
#: ended, and how the last of them did.
SEAT, TURN, REWARD, GAME_POINTS, DEALS_ENDED, END_REASON = range(6)
LANE_SIZE: Final = 6

Lane = npt.NDArray[np.int64]


def opponent_kind(opponent: object) -> int:
    """How an opponent is played: RANDOM, HEURISTIC or ASKED.

    Raises:
        ValueError: an unknown name, or an object without ``act``; the known names are listed.
    """
    if isinstance(opponent, str) and opponent in BUILT_IN:
        return BUILT_IN.index(opponent)
    act = getattr(opponent, "act", None)
    if act is None or not callable(act):
        raise ValueError(
            f"opponent={opponent!r} is unknown: choose one of {', '.join(BUILT_IN)}, or an object "
            "with a method act(observation, action_mask), such as agents.load('ppo:PATH')"
        )
    return ASKED


def check_reply(opponent: object, action: Any, mask: npt.NDArray[np.int8]) -> int:
    """The action of an asked opponent, as a plain integer.

    Raises:
        TypeError: it is not an integer.
        ValueError: ``mask`` forbids it.
    """
    name = type(opponent).__name__
    try:
        number = action_number(action)
    except TypeError as error:
        raise TypeError(f"the opponent's {name}.act must return an action id: {error}") from None
    if not 0 <= number < NUM_ACTIONS or not mask[number]:
        allowed = np.flatnonzero(mask).tolist()
        raise ValueError(
            f"the opponent's {name}.act returned action {number}, but its action mask allows "
            f"{allowed}: an opponent must choose among them"
        )
    return number


# ------------------------------------------------------------------------------ compiled play


@compiled
def settle(record: Record, codes: Codes, switches: Switches, lane: Lane) -> int:
    """Count a deal that has ended and deal the next; returns LEARNER, OPPONENT or OVER."""
    seat = lane[SEAT]
    if record[r.END_REASON] != 0:
        lane[REWARD] += reward_of(record, codes, switches, seat)
        lane[GAME_POINTS] += counted_points(record, seat)
        lane[DEALS_ENDED] += 1
        lane[END_REASON] = record[r.END_REASON]
        if is_episode_over(record, codes, switches):
            return OVER
        engine.deal(record)
    return LEARNER if record[r.TO_MOVE] == seat else OPPONENT


@compiled
def built_in_action(record: Record, codes: Codes, kind: int) -> int:
    """The action of a built-in opponent, who is to move."""
    if kind == RANDOM:
        return engine.random_action(record, codes)
    return heuristic_action(view(record, codes, record[r.TO_MOVE], PERFECT))


@compiled
def play_on(record: Record, codes: Codes, switches: Switches, kind: int, lane: Lane) -> None:
    """After an action: go on until the learner, or an opponent that must be asked, is to move.

    Args:
        record: ``int64[RECORD_SIZE]``, changed in place.
        codes: ``Rules.codes()``.
        switches: ``Settings.switches()``.
        kind: how the opponent is played.
        lane: ``int64[LANE_SIZE]``; TURN is set, and what is counted is added to.
    """
    turn = settle(record, codes, switches, lane)
    while turn == OPPONENT and kind != ASKED:
        engine.step(record, codes, built_in_action(record, codes, kind))
        turn = settle(record, codes, switches, lane)
    lane[TURN] = turn


@compiled
def begin(
    record: Record, codes: Codes, switches: Switches, kind: int, fixed_seat: int, lane: Lane
) -> None:
    """Seat the learner in a deal that was just dealt, and :func:`play_on`.

    ``fixed_seat`` is the seat, or -1 for one by lot from the random stream of the deal.
    """
    lane[:] = 0
    lane[SEAT] = fixed_seat if fixed_seat >= 0 else draw_below(record, 2)
    play_on(record, codes, switches, kind, lane)


@compiled
def play_learner(
    record: Record, codes: Codes, switches: Switches, kind: int, action: int, lane: Lane
) -> bool:
    """Take the learner's action and :func:`play_on`.

    Returns:
        False, with nothing changed, for an illegal action that is to raise.
    """
    if not take(record, codes, switches, action):
        if switches[RAISES]:
            return False
        end_by_illegal_action(record)
    play_on(record, codes, switches, kind, lane)
    return True
