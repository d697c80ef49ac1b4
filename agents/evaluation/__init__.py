"""Compare two agents on the same cards, and say how sure the answer is."""

from __future__ import annotations

from collections.abc import Callable

from agents.evaluation.arena import PAIRS_AT_ONCE, Contest, Deals, Plays, play, prepare
from agents.evaluation.report import (
    Evaluation,
    check_json_path,
    evaluate_plays,
    render,
    write_json,
)
from schnapsen_env.rules import Rules

__all__ = [
    "Contest",
    "Deals",
    "Evaluation",
    "Plays",
    "check_json_path",
    "evaluate",
    "evaluate_plays",
    "play",
    "prepare",
    "render",
    "write_json",
]


def evaluate(
    a: str | object,
    b: str | object,
    *,
    rules: str | Rules = "pagat_auto",
    episode: str = "deal",
    deals: int = 2000,
    seed: int = 0,
    pairs_at_once: int = PAIRS_AT_ONCE,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Agent ``a`` against agent ``b``.

    The arguments and what is raised: :func:`agents.evaluation.arena.prepare` and
    :func:`agents.evaluation.arena.play`.
    """
    contest = prepare(a, b, rules=rules, episode=episode, deals=deals, seed=seed)
    return evaluate_plays(play(contest, pairs_at_once=pairs_at_once, progress=progress))
