"""The rules engine: compiled functions over one small integer record.

A *record* is an ``int64[RECORD_SIZE]`` array that holds one deal, its match and its random state;
``codes`` is the array of :meth:`schnapsen_env.rules.Rules.codes`. All functions but the converters,
``defeats`` and ``match_result`` are compiled and may be called from compiled code.
"""

from schnapsen_env.engine import record
from schnapsen_env.engine.bits import count, lowest, member
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.engine.convert import (
    IllegalActionError,
    apply,
    new_record,
    new_records,
    parse_deck,
    position_of,
    record_of,
)
from schnapsen_env.engine.match import (
    defeats,
    game_points,
    has_won,
    is_over,
    match_result,
    match_winner,
    new_match,
)
from schnapsen_env.engine.play import (
    deal,
    deal_deck,
    is_revoke,
    legal,
    random_action,
    revoke,
    step,
)
from schnapsen_env.engine.record import (
    CLOSED,
    EXHAUSTED,
    MAX_ACTIONS_PER_DEAL,
    OPEN,
    RECORD_SIZE,
    RECORD_TABLE,
)
from schnapsen_env.engine.score import points

__all__ = [
    "CLOSED",
    "EXHAUSTED",
    "MAX_ACTIONS_PER_DEAL",
    "OPEN",
    "RECORD_SIZE",
    "RECORD_TABLE",
    "IllegalActionError",
    "apply",
    "count",
    "deal",
    "deal_deck",
    "defeats",
    "draw_below",
    "game_points",
    "has_won",
    "is_over",
    "is_revoke",
    "legal",
    "lowest",
    "match_result",
    "match_winner",
    "member",
    "new_match",
    "new_record",
    "new_records",
    "parse_deck",
    "points",
    "position_of",
    "random_action",
    "record",
    "record_of",
    "revoke",
    "step",
]
