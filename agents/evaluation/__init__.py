"""Compare agents on the same cards, and say how sure the answer is."""

from __future__ import annotations

from collections.abc import Callable

from agents.evaluation.arena import (
    PAIRS_AT_ONCE,
    Contest,
    Deals,
    Plays,
    Table,
    Watcher,
    play,
    prepare,
)
from agents.evaluation.league import League, play_league, prepare_league, render_league
from agents.evaluation.regret import Regret
from agents.evaluation.report import (
    Evaluation,
    evaluate_contest,
    evaluate_plays,
    render,
    write_json,
)
from agents.evaluation.variance import Reduction
from agents.files import check_writable, write_json_file
from schnapsen_env.rules import Rules

__all__ = [
    "Contest",
    "Deals",
    "Evaluation",
    "League",
    "Plays",
    "Reduction",
    "Regret",
    "Table",
    "Watcher",
    "check_writable",
    "evaluate",
    "evaluate_contest",
    "evaluate_plays",
    "play",
    "play_league",
    "prepare",
    "prepare_league",
    "render",
    "render_league",
    "write_json",
    "write_json_file",
]


def evaluate(
    a: str | object,
    b: str | object,
    *,
    rules: str | Rules = "pagat_auto",
    episode: str = "deal",
    deals: int = 2000,
    seed: int = 0,
    endgame_regret: bool = False,
    variance_reduction: bool = False,
    own_playouts: bool = False,
    pairs_at_once: int = PAIRS_AT_ONCE,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Agent ``a`` against agent ``b``.

    The arguments and what is raised: :func:`agents.evaluation.arena.prepare` and
    :func:`agents.evaluation.report.evaluate_contest`.
    """
    contest = prepare(a, b, rules=rules, episode=episode, deals=deals, seed=seed)
    return evaluate_contest(
        contest,
        endgame_regret=endgame_regret,
        variance_reduction=variance_reduction,
        own_playouts=own_playouts,
        pairs_at_once=pairs_at_once,
        progress=progress,
    )
