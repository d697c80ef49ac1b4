"""Many deals against an opponent, the compiled part: loops over the rows of a batch.

:class:`~schnapsen_env.single_agent_vector.SchnapsenOpponentVectorEnv` is the environment around
them. What one row does is in :mod:`schnapsen_env.opponent_play`.

Letters in shapes: N rows, F features of an observation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.batch import Actions, Rows
from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled
from schnapsen_env.episode import HISTORY, MEMORY, SUITS, Codes, Record, Switches, take
from schnapsen_env.observation import encode
from schnapsen_env.opponent_play import ASKED, Lane, begin, play_learner, play_on


@compiled
def seat_rows(
    records: Record,
    codes: Codes,
    switches: Switches,
    kind: int,
    rows: Rows,
    fixed_seat: int,
    lanes: Lane,
) -> None:
    """:func:`~schnapsen_env.opponent_play.begin` in the chosen rows, which are dealt."""
    records, codes = borrowed(records), borrowed(codes)
    switches, lanes = borrowed(switches), borrowed(lanes)
    for i in range(len(records)):
        if rows[i]:
            begin(records[i], codes, switches, kind, fixed_seat, lanes[i])


@compiled
def first_illegal(
    records: Record, codes: Codes, switches: Switches, rows: Rows, actions: Actions
) -> int:
    """The first chosen row whose action is illegal, or -1; nothing changes."""
    for i in range(len(records)):
        if rows[i] and not take(records[i].copy(), codes, switches, actions[i]):
            return i
    return -1


@compiled
def step_rows(
    records: Record,
    codes: Codes,
    switches: Switches,
    kind: int,
    rows: Rows,
    actions: Actions,
    lanes: Lane,
) -> None:
    """Take the learner's action in the chosen rows, in which the learner is to move."""
    records, codes = borrowed(records), borrowed(codes)
    switches, lanes = borrowed(switches), borrowed(lanes)
    for i in range(len(records)):
        if rows[i]:
            play_learner(records[i], codes, switches, kind, actions[i], lanes[i])


@compiled
def reply_rows(
    records: Record,
    codes: Codes,
    switches: Switches,
    chosen: Actions,
    actions: Actions,
    lanes: Lane,
) -> None:
    """Take the actions of an asked opponent in the rows whose numbers are ``chosen``."""
    records, codes = borrowed(records), borrowed(codes)
    switches, lanes = borrowed(switches), borrowed(lanes)
    for k in range(len(chosen)):
        i = chosen[k]
        engine.step(records[i], codes, actions[k])
        play_on(records[i], codes, switches, ASKED, lanes[i])


@compiled
def observe_rows(
    records: Record,
    codes: Codes,
    switches: Switches,
    chosen: Actions,
    seats: Actions,
    out: npt.NDArray[np.float32],
    masks: npt.NDArray[np.int8],
) -> None:
    """Write what ``seats[k]`` sees in row ``chosen[k]`` into ``out[k]`` and ``masks[k]``."""
    memory, suits, history = switches[MEMORY], switches[SUITS], switches[HISTORY]
    records, codes = borrowed(records), borrowed(codes)
    out, masks = borrowed(out), borrowed(masks)
    for k in range(len(chosen)):
        record = records[chosen[k]]
        encode(record, codes, seats[k], memory, suits, history, 1, out[k], masks[k])
