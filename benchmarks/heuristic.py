"""Measures the heuristic player: each rule of thumb switched off, and its strength against chance.

    python benchmarks/heuristic.py --deals 60000

prints the tables of ``docs/heuristic.md``. Every deal is played twice with seats swapped; intervals
are 95 % over these pairs. Everything runs in one compiled loop, at millions of decisions a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console

from schnapsen_env import RULES, engine
from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE
from schnapsen_env.cards import NUM_CARDS, NUM_SUITS
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import count, member
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.engine.play import shuffle
from schnapsen_env.heuristic import VERSION, WEIGHTS, Weights, decide
from schnapsen_env.view import PERFECT, View, view

#: Who the heuristic player meets: another one, any legal action, or chance with some sense.
HEURISTIC, RANDOM, WARY = range(3)
_ALL_DECLARATIONS: Final = ((1 << NUM_SUITS) - 1) << FIRST_DECLARE
_NEVER: Final = 1_000.0
_NO_CARDS: Final = (0.0, 0.0, 0.0, 0.0, 0.0)

#: What is switched off, and the weights that do it.
WITHOUT: Final = {
    "going out at once": {"go_out": 0.0},
    "exchanging": {"exchange": 0.0},
    "closing": {"close_from": _NEVER},
    "counting small trumps for closing": {
        "small_trump": 0.0,
        "trumps_drawn": 0.0,
        "close_from": 66.0,
    },
    "thinking the last tricks through": {"look_ahead": 0.0},
    "telling cards apart in the hand": {"plain": _NO_CARDS, "trump": _NO_CARDS},
    "telling plain cards apart, and trumps": {
        "plain": _NO_CARDS,
        "trump": (75.0, 75.0, 75.0, 75.0, 75.0),
    },
    "keeping marriages": {"marriage": 0.0},
    "wanting to declare": {
        "declare": 0.0,
        "declare_trumps": 0.0,
        "strict_declare": 0.0,
        "strict_declare_trumps": 0.0,
    },
    "counting the card points of a trick": {"card_point": 0.0},
    "fearing trumps on tens and aces": {"trumped": 0.0},
    "sparing trumps on lead": {"into_trumps": 0.0},
    "leading suits of which little is out": {"into_suit": 0.0},
    "leading short suits": {"from_suit": 0.0},
    "minding 33 and 66": {"mark_33": 0.0, "concede_66": 0.0},
    "leading winners in the strict phase": {"strict_card_point": 0.0},
    "pulling trumps in the strict phase": {"pull_trump": 0.0},
}


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    deals: int = 20_000
    """Different deals of each comparison; each is played twice."""
    rules: str = "pagat_auto"
    """Rule set of the ablation. Strength is measured under all of them."""
    seed: int = 1
    """Of the cards and of random play."""


class Outcome(NamedTuple):
    """One comparison, from the first player's side."""

    mean: float
    ci95: float
    closes: float
    closes_won: float


@numba.njit(nogil=True)
def chance_action(record: Any, seen: View, opponent: int) -> int:
    """A random legal action; the wary one never closes and always exchanges, declares, claims."""
    legal = seen.legal
    if opponent == WARY:
        if legal >> EXCHANGE & 1:
            return EXCHANGE
        if legal >> CLAIM & 1 and seen.tally.own_is_out:
            return CLAIM
        legal &= ~(1 << CLOSE | 1 << CLAIM)
        if legal & _ALL_DECLARATIONS:
            legal &= _ALL_DECLARATIONS
    return member(legal, draw_below(record, count(legal)))


@numba.njit(nogil=True)
def play_pairs(
    weights: tuple[Weights, Weights], opponent: int, codes: Any, record: Any, results: Any
) -> None:
    """Fill ``results``, ``float64[N, 3]``: game points, closings, successes; seats added up."""
    deck = np.empty(NUM_CARDS, dtype=np.int64)
    for pair in range(len(results)):
        shuffle(record, deck)
        for seat in range(2):
            engine.deal_deck(record, deck, 0)
            while record[r.END_REASON] == 0:
                to_move = record[r.TO_MOVE]
                seen = view(record, codes, to_move, PERFECT)
                if to_move == seat:
                    action = decide(seen, weights[0])
                elif opponent == HEURISTIC:
                    action = decide(seen, weights[1])
                else:
                    action = chance_action(record, seen, opponent)
                engine.step(record, codes, action)
            results[pair, 0] += engine.game_points(record, seat)
            if record[r.CLOSED_BY] == seat:
                results[pair, 1] += 1
                results[pair, 2] += record[r.WINNER] == seat


def compare(weights: Weights, opponent: int, rules: str, settings: Settings) -> Outcome:
    """The player with ``weights`` against the full one, or against chance."""
    results: npt.NDArray[np.float64] = np.zeros((settings.deals, 3))
    codes = RULES[rules].codes()
    play_pairs((weights, WEIGHTS), opponent, codes, engine.new_record(settings.seed), results)
    points = results[:, 0] / 2
    closes, won = float(results[:, 1].sum()), float(results[:, 2].sum())
    return Outcome(
        float(points.mean()),
        1.96 * float(points.std(ddof=1)) / math.sqrt(settings.deals),
        closes / (2 * settings.deals),
        won / max(closes, 1.0),
    )


def row(name: str, outcome: Outcome) -> str:
    """A row of a table in Markdown."""
    won = f"{outcome.closes_won:.0%}".replace("%", " %") if outcome.closes else "-"
    return f"| {name} | {outcome.mean:+.3f} ± {outcome.ci95:.3f} | {outcome.closes:.2f} | {won} |"


def main(settings: Settings) -> None:
    """Print all tables as they are measured."""
    if settings.deals < 2:
        raise SystemExit("--deals must be 2 or more")
    if settings.rules not in RULES:
        raise SystemExit(f"--rules must be one of {', '.join(RULES)}, not {settings.rules}")
    console = Console(markup=False, highlight=False, soft_wrap=True)
    console.print(f"heuristic version {VERSION}, {settings.deals} paired deals a row")
    console.print(
        f"\n| without ({settings.rules}) | mean | closes | of which won |\n|---|---|---|---|"
    )
    for name, changes in WITHOUT.items():
        weights = WEIGHTS._replace(**changes)
        console.print(row(name, compare(weights, HEURISTIC, settings.rules, settings)))
    for opponent, title in ((RANDOM, "against random"), (WARY, "against wary random")):
        console.print(f"\n| {title} | mean | closes | of which won |\n|---|---|---|---|")
        for rules in RULES:
            console.print(row(f"`{rules}`", compare(WEIGHTS, opponent, rules, settings)))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
