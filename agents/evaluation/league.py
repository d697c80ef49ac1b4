"""Several agents, each against each other on the same deals, and one rating for each.

A rating is that of the Bradley-Terry model: agent i wins a deal against agent j with probability
``1 / (1 + exp(r_j - r_i))`` (Bradley and Terry, "Rank analysis of incomplete block designs",
Biometrika 39, 1952). A deal counts as won if it brings game points, however many; a drawn deal is
half a win for both. The library choix finds the ratings of maximum likelihood. They are shown on
the scale of Elo, where 400 points are odds of ten to one, with the mean of the league at 0.

The intervals come from a bootstrap over deals: all pairings share their deals, so a deal is drawn
with everything that was played on it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from agents.base import AgentError
from agents.evaluation.arena import Contest, prepare
from agents.evaluation.report import Evaluation, evaluate_contest, versions
from agents.evaluation.statistics import Mean, mean_interval, signed
from agents.evaluation.variance import check as check_variance_reduction
from schnapsen_env.rules import Rules
from schnapsen_env.solver import MOST_GAME_POINTS

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Raised whenever a key of the JSON changes its meaning.
LEAGUE_FORMAT_VERSION: Final = 2
#: Resamples of the bootstrap.
RESAMPLES: Final = 500
#: Of the intervals.
LEVEL: Final = 0.95
#: Elo points of one unit of log-odds.
ELO: Final = 400 / math.log(10)
#: Drawn deals added to each pairing, so that an agent that has won everything still has a rating.
PRIOR_DRAWS: Final = 1.0


@dataclass(frozen=True)
class Entry:
    """One cell of the upper half of the cross table: agent ``first`` against agent ``second``."""

    #: Indices of the agents in the league, ``first < second``.
    first: int
    second: int
    evaluation: Evaluation
    #: ``float64[n]``: mean game points of ``first`` in the two plays of each deal, without luck
    #: where that was taken out.
    points: Floats
    #: ``float64[n]``: share of these two plays that it won, a drawn deal being half a win.
    wins: Floats


@dataclass(frozen=True)
class Rating:
    """The rating of one agent on the scale of Elo."""

    elo: float
    #: Its 95 % interval; None where the results do not bound the ratings, see
    #: :meth:`League.is_bounded`.
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class League:
    """What was played so far; ``entries`` are in the order of play."""

    specs: tuple[str, ...]
    rules: Rules
    deals: int
    seed: int
    entries: tuple[Entry, ...]

    @property
    def complete(self) -> bool:
        """Whether every agent has met every other."""
        return len(self.entries) == math.comb(len(self.specs), 2)

    def against(self, agent: int, other: int) -> Mean | None:
        """Game points a deal of ``agent`` against ``other``; None if they have not met."""
        for entry in self.entries:
            mean = entry.evaluation.best_game_points
            if (entry.first, entry.second) == (agent, other):
                return mean
            if (entry.second, entry.first) == (agent, other):
                return Mean(0.0 - mean.value, mean.ci95)  # 0 has no minus sign
        return None

    def field(self, agent: int) -> Mean | None:
        """Game points a deal of ``agent``, mean over those it has met; None if it met nobody."""
        points = [
            entry.points if entry.first == agent else -entry.points
            for entry in self.entries
            if agent in (entry.first, entry.second)
        ]
        return mean_interval(np.mean(points, axis=0), MOST_GAME_POINTS) if points else None

    def ratings(self, resamples: int = RESAMPLES) -> tuple[Rating, ...] | None:
        """The rating of each agent; None while the pairings played do not connect them all.

        Args:
            resamples: of the bootstrap.

        Raises:
            ModuleNotFoundError: choix is not installed.
        """
        found = self.bootstrap(resamples)
        if found is None:
            return None
        point, samples = found
        low, high = np.quantile(samples, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
        # Rounding, or very few resamples, must not leave a rating outside its own interval.
        low, high = np.minimum(low, point), np.maximum(high, point)
        bounded = self.is_bounded(resamples)
        return tuple(
            Rating(
                float(ELO * point[agent]),
                (float(ELO * low[agent]), float(ELO * high[agent])) if bounded else None,
            )
            for agent in range(len(self.specs))
        )

    def _is_connected(self) -> bool:
        """Whether the pairings played connect all agents."""
        met: dict[int, set[int]] = {agent: set() for agent in range(len(self.specs))}
        for entry in self.entries:
            met[entry.first].add(entry.second)
            met[entry.second].add(entry.first)
        return len(_reached(met, 0)) == len(met)

    def is_bounded(self, resamples: int = RESAMPLES) -> bool:
        """Whether the results bound the ratings from both sides, and nearly all resamples do.

        They do if, however the agents are split into two groups, somebody of the first has won
        something against somebody of the second (Ford, "Solution of a ranking problem from binary
        comparisons", American Mathematical Monthly 64, 1957). Where one group has won everything,
        how far it is ahead is a matter of :data:`PRIOR_DRAWS`; and so are all ratings, since their
        mean is 0. An end of an interval is as meaningless if more resamples are without bounds
        than lie beyond it.

        Args:
            resamples: of the bootstrap.
        """
        if not self.entries:
            return False
        wins = np.stack([entry.wins for entry in self.entries])
        if not self._bounds(wins.sum(axis=1)):
            return False
        without = sum(not self._bounds(wins @ times) for times in self._resamples(resamples))
        return without <= resamples * (1 - LEVEL) / 2

    def _bounds(self, wins: Floats) -> bool:
        """Whether so many deals won, by pairing, bound the ratings."""
        beats: dict[int, set[int]] = {agent: set() for agent in range(len(self.specs))}
        for entry, won in zip(self.entries, wins, strict=True):
            if won > 0:
                beats[entry.first].add(entry.second)
            if won < self.deals:
                beats[entry.second].add(entry.first)
        return all(len(_reached(beats, agent)) == len(beats) for agent in beats)

    def _resamples(self, number: int) -> Iterator[Ints]:
        """How often each deal occurs in each resample of the bootstrap, ``int64[deals]``."""
        draw = np.random.default_rng(np.random.SeedSequence(self.seed).spawn(3)[2])
        for _ in range(number):
            yield draw.multinomial(self.deals, np.full(self.deals, 1 / self.deals))

    def bootstrap(self, resamples: int = RESAMPLES) -> tuple[Floats, Floats] | None:
        """The ratings, and those of resampled deals; None as in :meth:`ratings`.

        What two agents share, such as lucky cards, is in the same row of the resamples for both. So
        the interval of a difference is that of ``resamples[:, a] - resamples[:, b]``; it does not
        follow from the intervals of the two.

        Args:
            resamples: how many.

        Returns:
            ``float64[agents]`` and ``float64[resamples, agents]``, log-odds with mean 0.

        Raises:
            ModuleNotFoundError: choix is not installed.
        """
        if not self._is_connected():
            return None
        wins = np.stack([entry.wins for entry in self.entries])
        point = _bradley_terry(self, wins.sum(axis=1), None)
        samples = np.empty((resamples, len(self.specs)))
        for index, times in enumerate(self._resamples(resamples)):
            samples[index] = _bradley_terry(self, wins @ times, point)
        return point, samples

    def to_dict(self, ratings: Sequence[Rating] | None) -> dict[str, Any]:
        """The league as the JSON file holds it."""
        return {
            "format": LEAGUE_FORMAT_VERSION,
            "specs": list(self.specs),
            "rules": self.rules.name,
            "deals": self.deals,
            "seed": self.seed,
            "complete": self.complete,
            "ratings": None
            if ratings is None
            else [
                {
                    "spec": spec,
                    "elo": rating.elo,
                    "elo_interval": None if rating.interval is None else list(rating.interval),
                    "log_odds": rating.elo / ELO,
                }
                for spec, rating in zip(self.specs, ratings, strict=True)
            ],
            "mean_game_points": [_mean_to_list(self.field(i)) for i in range(len(self.specs))],
            "pairings": [entry.evaluation.to_dict() for entry in self.entries],
            "versions": versions(),
        }


def _mean_to_list(mean: Mean | None) -> list[float] | None:
    return None if mean is None else list(mean)


def _reached(steps: Mapping[int, set[int]], start: int) -> set[int]:
    """Where the steps lead to from ``start``, one after another; itself included."""
    found, new = {start}, {start}
    while new:
        new = set[int]().union(*(steps[agent] for agent in new)) - found
        found |= new
    return found


def _bradley_terry(league: League, wins: Floats, start: Floats | None) -> Floats:
    """The ratings of maximum likelihood in log-odds, mean 0; ``wins`` are deals, by pairing."""
    choix = import_choix()
    number = len(league.specs)
    won = np.zeros((number, number))
    for entry, share in zip(league.entries, wins, strict=True):
        # The two plays of a deal are one comparison here: they share their cards.
        won[entry.first, entry.second] = share + PRIOR_DRAWS / 2
        won[entry.second, entry.first] = league.deals - share + PRIOR_DRAWS / 2
    return np.asarray(choix.ilsr_pairwise_dense(won, initial_params=start), dtype=np.float64)


def import_choix() -> Any:
    """The library choix.

    Raises:
        ModuleNotFoundError: it is not installed; the message names the extra.
    """
    try:
        import choix
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"ratings need {error.name}: pip install -e '.[league]'", name=error.name
        ) from error
    return choix


# ---------------------------------------------------------------------------------------- play


def prepare_league(
    specs: Sequence[str],
    *,
    rules: str | Rules = "pagat_auto",
    deals: int = 2000,
    seed: int = 0,
    variance_reduction: bool = False,
    own_playouts: bool = False,
) -> tuple[Contest, ...]:
    """Check the arguments and load the agents of every pairing; nothing is played yet.

    Each pairing is the contest that its two agents would have alone, with the same seed.

    Raises:
        ValueError: fewer than two agents, one of them twice, or what
            :func:`agents.evaluation.arena.prepare` raises.
        ModuleNotFoundError: an agent or the ratings need a library that is not installed.
    """
    if len(specs) < 2:
        raise ValueError(f"a league needs two agents or more, not {len(specs)}")
    twice = [spec for index, spec in enumerate(specs) if spec in specs[:index]]
    if twice:
        raise ValueError(f"agent {twice[0]!r} is in the league twice: name each once")
    import_choix()
    contests = tuple(
        prepare(a, b, rules=rules, deals=deals, seed=seed)
        for a, b in itertools.combinations(specs, 2)
    )
    if variance_reduction:
        check_variance_reduction(contests[0], own_playouts=own_playouts)
    return contests


def play_league(
    contests: Sequence[Contest],
    *,
    endgame_regret: bool = False,
    variance_reduction: bool = False,
    own_playouts: bool = False,
    progress: Callable[[int], object] | None = None,
    after_pairing: Callable[[League], object] | None = None,
) -> League:
    """Play all pairings.

    Args:
        contests: from :func:`prepare_league`.
        endgame_regret: see :func:`agents.evaluation.report.evaluate_contest`.
        variance_reduction: the same.
        own_playouts: the same.
        progress: called with the number of plays that have just ended.
        after_pairing: called with the league so far after each pairing.

    Raises:
        AgentError: an agent has raised an error, or answered with something that is no legal
            action; the message names it and the pairing.
    """
    specs = tuple(dict.fromkeys(spec for contest in contests for spec in contest.specs))
    first = contests[0]
    league = League(specs, first.rules, first.pairs, first.seed, ())
    for contest in contests:
        try:
            entry = _play(
                contest, league, endgame_regret, variance_reduction, own_playouts, progress
            )
        except Exception as error:
            raise AgentError(_named(error, contest)) from error
        league = replace(league, entries=(*league.entries, entry))
        if after_pairing is not None:
            after_pairing(league)
    return league


def _play(
    contest: Contest,
    league: League,
    endgame_regret: bool,
    variance_reduction: bool,
    own_playouts: bool,
    progress: Callable[[int], object] | None,
) -> Entry:
    evaluation = evaluate_contest(
        contest,
        endgame_regret=endgame_regret,
        variance_reduction=variance_reduction,
        own_playouts=own_playouts,
        progress=progress,
    )
    return Entry(
        *(league.specs.index(spec) for spec in contest.specs),
        evaluation=evaluation,
        points=evaluation.best_pair_points,
        wins=evaluation.pair_wins,
    )


def _named(error: Exception, contest: Contest) -> str:
    """What went wrong in which pairing, and whose fault it is."""
    pairing = " against ".join(contest.specs)
    if isinstance(error, AgentError):
        return f"{pairing}: {error}"
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    return f"{pairing}: {type(error).__name__}: {error}{notes}"


# ------------------------------------------------------------------------------------ the tables


def by_rating(league: League, ratings: Sequence[Rating] | None) -> list[int]:
    """The agents, strongest first; in the order given while there are no ratings."""
    order = list(range(len(league.specs)))
    return order if ratings is None else sorted(order, key=lambda agent: -ratings[agent].elo)


def render_league(league: League, ratings: Sequence[Rating] | None) -> Group:
    """The league for a rich console. Needs the library rich."""
    from rich.console import Group
    from rich.text import Text

    order = by_rating(league, ratings)
    head = (
        f"{len(league.specs)} agents, {league.deals:,} deals for each pairing, each played twice "
        f"with seats swapped; rules {league.rules.name}, seed {league.seed}"
    )
    parts: list[RenderableType] = [Text(head)]
    if not league.complete:
        pairings = math.comb(len(league.specs), 2)
        parts.append(Text(f"interrupted: {len(league.entries)} of {pairings} pairings were played"))
    parts.append(_ratings_table(league, ratings, order))
    parts.append(_cross_table(league, order))
    if any(entry.evaluation.regret is not None for entry in league.entries):
        parts.append(_regrets_table(league, order))
    return Group(*parts)


def _table(title: str, columns: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    return table


def _add_row(table: Table, *cells: str) -> None:
    """Add cells as they are: an agent's path may look like rich's markup."""
    from rich.text import Text

    table.add_row(*map(Text, cells))


def _ratings_table(league: League, ratings: Sequence[Rating] | None, order: Sequence[int]) -> Table:
    table = _table(
        "Bradley-Terry ratings, Elo points", ["", "agent", "rating", "95 %", "points a deal"]
    )
    for number, agent in enumerate(order):
        rating = None if ratings is None else ratings[agent]
        _add_row(
            table,
            str(number + 1),
            league.specs[agent],
            "-" if rating is None else f"{rating.elo:+.0f}",
            "" if rating is None else interval_text(rating.interval),
            mean_text(league.field(agent)),
        )
    return table


def _cross_table(league: League, order: Sequence[int]) -> Table:
    table = _table(
        "game points a deal of the agent on the left against the one of that number",
        ["", *(str(number + 1) for number in range(len(order)))],
    )
    for number, agent in enumerate(order):
        # Two lines a cell, so that eight agents fit into 80 columns.
        cells = [mean_text(league.against(agent, other)).replace(" ", "\n", 1) for other in order]
        _add_row(table, f"{number + 1} {league.specs[agent]}", *cells)
    return table


def interval_text(interval: Sequence[float] | None) -> str:
    """An interval of ratings, or a dash."""
    return "-" if interval is None else f"{interval[0]:+.0f} to {interval[1]:+.0f}"


def mean_text(mean: Mean | None) -> str:
    """A mean with its half width, or a dash."""
    return "-" if mean is None else f"{signed(mean.value)} +- {mean.ci95:.3f}"


def _regrets_table(league: League, order: Sequence[int]) -> Table:
    table = _table(
        "talon exhausted: game points lost against exact play; decisions that lost",
        ["agent", "against", "a decision", "a deal", "lost", "of"],
    )
    for number, agent in enumerate(order):
        for entry in league.entries:
            regrets = entry.evaluation.regret
            if regrets is None or agent not in (entry.first, entry.second):
                continue
            side = 0 if agent == entry.first else 1
            regret = regrets[side]
            lost = regret.per_decision
            _add_row(
                table,
                f"{number + 1} {league.specs[agent]}",
                str(order.index(entry.second if side == 0 else entry.first) + 1),
                "-" if lost is None else f"{lost.value:.3f} +- {lost.ci95:.3f}",
                f"{regret.per_deal.value:.3f} +- {regret.per_deal.ci95:.3f}",
                f"{regret.blunders:,}",
                f"{regret.choices:,}",
            )
    return table


def markdown(league: Mapping[str, Any]) -> str:
    """The cross table of a league's JSON file in Markdown, strongest agent first.

    Args:
        league: what :meth:`League.to_dict` gave, of a complete league.

    Raises:
        ValueError: the league was interrupted.
    """
    if not league["complete"] or league["ratings"] is None:
        raise ValueError("the league was interrupted: play it again to its end")
    specs: list[str] = league["specs"]
    ratings = {row["spec"]: row for row in league["ratings"]}
    order = sorted(specs, key=lambda spec: -ratings[spec]["elo"])
    cells: dict[tuple[str, str], tuple[float, float]] = {}
    for pairing in league["pairings"]:
        best = pairing["variance_reduction"] or pairing
        a, b = pairing["specs"]["A"], pairing["specs"]["B"]
        cells[a, b] = best["mean_game_points"], best["ci95"]
        cells[b, a] = -best["mean_game_points"], best["ci95"]
    lines = [
        "| | rating | " + " | ".join(f"against `{spec}`" for spec in order) + " |",
        "|---" * (len(order) + 2) + "|",
    ]
    for spec in order:
        rating = f"{ratings[spec]['elo']:+.0f} ({interval_text(ratings[spec]['elo_interval'])})"
        row = [_cell(cells.get((spec, other))) for other in order]
        lines.append(f"| `{spec}` | {rating} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def _cell(mean: tuple[float, float] | None) -> str:
    return "-" if mean is None else f"{signed(mean[0])} ± {mean[1]:.3f}"
