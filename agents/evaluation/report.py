"""What an evaluation found: figures with intervals, as a table on screen and as JSON."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

import schnapsen_env
from agents.evaluation.arena import PAIRS_AT_ONCE, Contest, Deals, Player, Plays, Watcher, play
from agents.evaluation.regret import Regret, RegretWatcher
from agents.evaluation.statistics import Mean, Rate, rate_interval, ratio_interval, signed
from agents.evaluation.variance import LuckWatcher, OwnLuckWatcher, Reduction, reduce_variance
from agents.files import write_json_file
from schnapsen_env.cards import NUM_SUITS
from schnapsen_env.observation import LAYOUT_VERSION
from schnapsen_env.position import EndReason
from schnapsen_env.rules import Rules
from schnapsen_env.solver import MOST_GAME_POINTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Group
    from rich.table import Table

Floats = npt.NDArray[np.float64]

#: Raised whenever a key of the JSON changes its meaning.
FORMAT_VERSION: Final = 1


@dataclass(frozen=True)
class Habits:
    """What one agent does besides playing cards, and how its deals with it end.

    ``closes`` and ``exchanges`` are shares of all deals in which the agent did so, ``marriages`` is
    the mean number declared in a deal. The ``..._won`` are the shares of just these deals that the
    agent won (deals with a marriage, however many); None where there are no such deals.
    """

    closes: Rate
    closes_won: Rate | None
    exchanges: Rate
    exchanges_won: Rate | None
    marriages: Mean
    marriages_won: Rate | None


@dataclass(frozen=True)
class Speed:
    """The work of one agent; ``decisions_per_second`` leaves out its first call."""

    decisions: int
    seconds: float
    decisions_per_second: float | None


@dataclass(frozen=True)
class Evaluation:
    """Agent A against agent B. Two-element tuples are by agent, A first."""

    specs: tuple[str, str]
    rules: Rules
    episode: str
    #: Different deals, or matches in match episodes, each played twice.
    deals: int
    #: Single deals played in all.
    deals_played: int
    seed: int
    #: Of A, for a deal.
    game_points: Mean
    #: Of A: deals won, or matches in match episodes; a drawn deal is half a win.
    win_rate: Rate
    habits: tuple[Habits, Habits]
    #: Game points of A in a deal -> number of deals.
    histogram: dict[int, int]
    #: Text of the end reason -> number of deals.
    end_reasons: dict[str, int]
    #: Actions in a deal, of both agents together.
    mean_length: float
    speed: tuple[Speed, Speed]
    #: Of the whole evaluation.
    seconds: float
    #: ``float64[n]`` of each pair, A's: mean game points of its deals, and the share of its two
    #: deals (matches) that were won.
    pair_points: Floats = field(repr=False, compare=False)
    pair_wins: Floats = field(repr=False, compare=False)
    #: Of both agents in the exhausted phase, if it was asked for.
    regret: tuple[Regret, Regret] | None = None
    #: The mean without the luck of the draws, if it was asked for.
    reduction: Reduction | None = None

    @property
    def best_game_points(self) -> Mean:
        """Game points of A with the narrowest interval that there is."""
        return self.game_points if self.reduction is None else self.reduction.game_points

    @property
    def best_pair_points(self) -> Floats:
        """``float64[n]``, the pairs behind :attr:`best_game_points`."""
        return self.pair_points if self.reduction is None else self.reduction.pair_points

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as the JSON file holds it; only the last keys depend on the clock."""
        low, high = self.win_rate.low, self.win_rate.high
        return {
            "format": FORMAT_VERSION,
            "specs": by_agent(self.specs),
            "rules": self.rules.name,
            "rule_fields": {
                name: value for name, value in asdict(self.rules).items() if name != "name"
            },
            "episode": self.episode,
            "deals": self.deals,
            "deals_played": self.deals_played,
            "seed": self.seed,
            "mean_game_points": self.game_points.value,
            "ci95": self.game_points.ci95,
            "win_rate": self.win_rate.value,
            "win_rate_ci95": (high - low) / 2,
            "win_rate_interval": [low, high],
            "rates": by_agent(tuple(_habits_to_dict(habits) for habits in self.habits)),
            "histogram": {str(points): count for points, count in self.histogram.items()},
            "end_reasons": self.end_reasons,
            "mean_length": self.mean_length,
            "decisions": by_agent(tuple(speed.decisions for speed in self.speed)),
            "endgame_regret": self.regret
            and by_agent(tuple(regret.to_dict() for regret in self.regret)),
            "variance_reduction": self.reduction and self.reduction.to_dict(),
            "versions": versions(),
            "seconds": {
                "total": self.seconds,
                **by_agent(tuple(speed.seconds for speed in self.speed)),
            },
            "decisions_per_second": by_agent(
                tuple(speed.decisions_per_second for speed in self.speed)
            ),
        }


def by_agent(values: tuple[Any, ...]) -> dict[str, Any]:
    """A pair of values as a dict with the keys ``"A"`` and ``"B"``."""
    return dict(zip("AB", values, strict=True))


def versions() -> dict[str, Any]:
    """What has to be the same for a run to be repeated exactly."""
    return {
        "schnapsen_env": schnapsen_env.__version__,
        "observation": LAYOUT_VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": importlib.metadata.version("numba"),
    }


def _habits_to_dict(habits: Habits) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, figure in vars(habits).items():
        if isinstance(figure, Mean):
            figures[name], figures[f"{name}_ci95"] = figure
        else:
            figures[name] = None if figure is None else figure.value
            figures[f"{name}_interval"] = None if figure is None else [figure.low, figure.high]
    return figures


# ---------------------------------------------------------------------------------- the figures


def in_whole_numbers(progress: Callable[[int], object], unit: float) -> Callable[[float], None]:
    """``progress`` for work that is counted in another unit; it is called with whole numbers.

    Args:
        progress: what is to be called.
        unit: how much of what ``progress`` counts one of the new units is.
    """
    done, told = 0.0, 0

    def advance(number: float) -> None:
        nonlocal done, told
        done += number * unit
        news = round(done) - told
        told += news
        if news:
            progress(news)

    return advance


def evaluate_contest(
    contest: Contest,
    *,
    endgame_regret: bool = False,
    variance_reduction: bool = False,
    own_playouts: bool = False,
    pairs_at_once: int = PAIRS_AT_ONCE,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Play a contest and work out its figures.

    Args:
        contest: who plays what.
        endgame_regret: also compare all decisions of the exhausted phase with the exact solver.
        variance_reduction: also take the luck of the draws out of the mean.
        own_playouts: measure that luck by playouts of the agents rather than of the heuristic
            player; only with ``variance_reduction``.
        pairs_at_once: pairs in one batch.
        progress: called with the number of plays that have just ended. With ``own_playouts`` the
            playouts, which take longer, count for as much as the plays: each is half of the work.

    Raises:
        AgentError: an agent answers with something that is no legal action.
        ValueError: the contest is of matches, or too short, for ``variance_reduction``; or
            ``own_playouts`` without it.
    """
    if own_playouts and not variance_reduction:
        raise ValueError("own_playouts belongs to variance_reduction: give both")
    regret = RegretWatcher(contest) if endgame_regret else None
    luck = None
    if variance_reduction:
        luck = OwnLuckWatcher(contest) if own_playouts else LuckWatcher(contest)
    watchers: list[Watcher] = [watcher for watcher in (regret, luck) if watcher is not None]
    share = 0.5 if own_playouts else 1.0
    playing = progress and in_whole_numbers(progress, share)
    finishing = progress and in_whole_numbers(progress, 2 * contest.pairs * (1 - share))
    plays = play(contest, pairs_at_once=pairs_at_once, progress=playing, watchers=watchers)
    evaluation = evaluate_plays(plays)
    start = time.perf_counter()
    if luck is not None:
        luck.finish(finishing)
    return replace(
        evaluation,
        seconds=evaluation.seconds + time.perf_counter() - start,
        regret=regret and regret.result(plays.deals),
        reduction=luck and reduce_variance(evaluation.pair_points, luck),
    )


def evaluate_plays(plays: Plays) -> Evaluation:
    """The figures of what was played. All intervals are over pairs."""
    deals = plays.deals
    contest = plays.contest
    counts = _Counts(deals, contest.pairs)
    won = np.where(deals.game_points > 0, 1.0, np.where(deals.game_points == 0, 0.5, 0.0))
    if contest.episode == "match":
        # The match goes to whoever wins its last deal, and each pair is two matches.
        last = np.zeros(2 * contest.pairs, dtype=np.int64)
        np.maximum.at(last, 2 * deals.pair + deals.seat_of_a, deals.number)
        won = won * (deals.number == last[2 * deals.pair + deals.seat_of_a])
    win_rate = rate_interval(counts.of(won), np.full(contest.pairs, 2), paired=True)
    if win_rate is None:
        raise ValueError("nothing was played")
    points, number = np.unique(deals.game_points, return_counts=True)
    histogram = dict.fromkeys(range(-MOST_GAME_POINTS, MOST_GAME_POINTS + 1), 0)
    histogram |= dict(zip(points.tolist(), number.tolist(), strict=True))
    reasons = np.bincount(deals.end_reason, minlength=len(EndReason)).tolist()
    return Evaluation(
        specs=contest.specs,
        rules=contest.rules,
        episode=contest.episode,
        deals=contest.pairs,
        deals_played=len(deals.pair),
        seed=contest.seed,
        game_points=ratio_interval(counts.of(deals.game_points), counts.of_all, MOST_GAME_POINTS),
        win_rate=win_rate,
        habits=(_habits(deals, counts, 0), _habits(deals, counts, 1)),
        histogram=histogram,
        end_reasons={reason.text: reasons[reason] for reason in EndReason if reasons[reason]},
        mean_length=float(deals.length.mean()),
        speed=(_speed(plays.players[0]), _speed(plays.players[1])),
        seconds=plays.seconds,
        pair_points=counts.of(deals.game_points) / counts.of_all,
        pair_wins=counts.of(won) / 2,
    )


def _speed(player: Player) -> Speed:
    return Speed(player.decisions, player.seconds, player.decisions_per_second)


class _Counts:
    """Sums over the deals of each pair."""

    def __init__(self, deals: Deals, pairs: int) -> None:
        self._pair = deals.pair
        self._pairs = pairs
        self.of_all = self.of(np.ones(len(deals.pair)))

    def of(self, values: npt.ArrayLike) -> Floats:
        """``values`` (``[D]``, one for each deal) summed by pair, ``float64[n]``."""
        weights = np.asarray(values, dtype=np.float64)
        return np.bincount(self._pair, weights, self._pairs).astype(np.float64)


def _habits(deals: Deals, counts: _Counts, side: int) -> Habits:
    won = (deals.game_points > 0) if side == 0 else (deals.game_points < 0)
    closed = deals.closer == side
    exchanged = (deals.exchanges_a, deals.exchanges_b)[side] > 0
    marriages = (deals.marriages_a, deals.marriages_b)[side]
    declared = marriages > 0

    def share(of: npt.NDArray[np.bool_]) -> Rate:
        rate = rate_interval(counts.of(of), counts.of_all)
        if rate is None:
            raise ValueError("nothing was played")
        return rate

    def success(of: npt.NDArray[np.bool_]) -> Rate | None:
        return rate_interval(counts.of(of & won), counts.of(of))

    return Habits(
        closes=share(closed),
        closes_won=success(closed),
        exchanges=share(exchanged),
        exchanges_won=success(exchanged),
        marriages=ratio_interval(counts.of(marriages), counts.of_all, NUM_SUITS),
        marriages_won=success(declared),
    )


# ------------------------------------------------------------------------------------- the file


def write_json(evaluation: Evaluation, path: Path) -> None:
    """Write the evaluation; an existing file is replaced, in one step.

    Raises:
        OSError: the file cannot be written; an earlier one is then still there.
    """
    write_json_file(evaluation.to_dict(), path)


# ------------------------------------------------------------------------------------ the table


def render(evaluation: Evaluation) -> Group:
    """The evaluation for a rich console. Needs the library rich."""
    from rich.console import Group
    from rich.text import Text

    unit = "deals" if evaluation.episode == "deal" else "matches"
    head = (
        f"A = {evaluation.specs[0]}, B = {evaluation.specs[1]}: {evaluation.deals:,} {unit}, each "
        f"played twice with seats swapped; rules {evaluation.rules.name}, seed {evaluation.seed}"
    )
    regret = [] if evaluation.regret is None else [_regret_table(evaluation.regret)]
    return Group(
        Text(head),
        _main_table(evaluation),
        _agents_table(evaluation),
        *regret,
        _results_table(evaluation),
        Text(f"{evaluation.deals_played:,} deals played in {evaluation.seconds:.1f} s"),
    )


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    return table


def _main_table(evaluation: Evaluation) -> Table:
    unit = "deals" if evaluation.episode == "deal" else "matches"
    table = _table("A against B", "", "95 %")
    points = evaluation.game_points
    table.add_row("game points a deal", signed(points.value), f"+- {points.ci95:.3f}")
    if evaluation.reduction is not None:
        points = evaluation.reduction.game_points
        table.add_row("  luck taken out", signed(points.value), f"+- {points.ci95:.3f}")
    table.add_row(f"{unit} won", *_percent(evaluation.win_rate))
    return table


def _percent(rate: Rate | None) -> tuple[str, str]:
    """A share and its interval; a dash for one that does not exist."""
    if rate is None:
        return "-", ""
    return f"{100 * rate.value:.1f} %", f"{100 * rate.low:.1f}-{100 * rate.high:.1f} %"


def _agents_table(evaluation: Evaluation) -> Table:
    table = _table("", "A", "95 %", "B", "95 %")

    def rates(label: str, name: str) -> None:
        both = (getattr(habits, name) for habits in evaluation.habits)
        table.add_row(label, *(cell for rate in both for cell in _percent(rate)))

    rates("deals with a close", "closes")
    rates("  of these won", "closes_won")
    rates("deals with an exchange", "exchanges")
    rates("  of these won", "exchanges_won")
    marriages = [habits.marriages for habits in evaluation.habits]
    cells = ((f"{mean.value:.3f}", f"+- {mean.ci95:.3f}") for mean in marriages)
    table.add_row("marriages a deal", *(cell for pair in cells for cell in pair))
    rates("  deals with any, won", "marriages_won")
    table.add_row(
        "decisions", *(cell for speed in evaluation.speed for cell in (f"{speed.decisions:,}", ""))
    )
    speeds = [speed.decisions_per_second for speed in evaluation.speed]
    texts = ("-" if rate is None else f"{rate:,.0f}" for rate in speeds)
    table.add_row("decisions a second", *(cell for text in texts for cell in (text, "")))
    return table


def _regret_table(regrets: tuple[Regret, Regret]) -> Table:
    table = _table("talon exhausted", "A", "95 %", "B", "95 %")

    def row(label: str, cells: list[tuple[str, str]]) -> None:
        table.add_row(label, *(cell for pair in cells for cell in pair))

    row("decisions", [(f"{regret.decisions:,}", "") for regret in regrets])
    row("  with a choice", [(f"{regret.choices:,}", "") for regret in regrets])
    row("  that lost points", [(f"{regret.blunders:,}", "") for regret in regrets])
    row("lost a decision", [_mean(regret.per_decision) for regret in regrets])
    row("lost a deal", [_mean(regret.per_deal) for regret in regrets])
    return table


def _mean(mean: Mean | None) -> tuple[str, str]:
    return ("-", "") if mean is None else (f"{mean.value:.4f}", f"+- {mean.ci95:.4f}")


def _results_table(evaluation: Evaluation) -> Table:
    table = _table("how deals end", "deals", "share")
    total = evaluation.deals_played

    def row(label: str, count: int) -> None:
        table.add_row(label, f"{count:,}", f"{100 * count / total:.1f} %")

    for points, count in evaluation.histogram.items():
        row(f"A gets {points:+d}" if points else "A gets 0", count)
    table.add_section()
    for reason, count in evaluation.end_reasons.items():
        row(reason, count)
    table.add_section()
    table.add_row("actions in a deal, mean", f"{evaluation.mean_length:.1f}", "")
    return table
