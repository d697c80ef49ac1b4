"""A league as a picture: the cross table as a heat map beside the ratings. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from agents.evaluation.league import League, Rating, by_rating
from agents.files import check_writable, replace_file

#: What matplotlib is asked to write, by suffix.
FORMATS: Final = (".png", ".svg", ".pdf")
#: Game points at which a colour is full.
_FULL: Final = 2.4
_LONGEST_NAME: Final = 28


def check_picture(path: Path) -> None:
    """Find out before the first deal whether the picture can be made.

    Raises:
        ValueError: an unknown suffix, or a file that cannot be written.
        ModuleNotFoundError: matplotlib is not installed; the message names the extra.
    """
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"cannot write {path}: the name must end in one of {', '.join(FORMATS)}")
    check_writable(path)
    _figure_class()


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a picture needs {error.name}: pip install -e '.[league]'", name=error.name
        ) from error
    return Figure


def draw_league(league: League, ratings: Sequence[Rating] | None, path: Path) -> None:
    """Write the picture; an existing file is replaced, in one step.

    Raises:
        OSError: the file cannot be written.
        ModuleNotFoundError: matplotlib is not installed.
    """
    order = by_rating(league, ratings)
    count = len(order)
    # A Figure of its own rather than pyplot: no window, no global state.
    figure = _figure_class()(
        figsize=(4.4 + 1.9 * count, 2.0 + 0.62 * count), dpi=150, layout="constrained"
    )
    table, scale = figure.subplots(1, 2, width_ratios=[1.15 * count, count + 1.0])
    names = [_short(league.specs[agent]) for agent in order]
    _draw_table(table, league, order, names)
    _draw_ratings(scale, ratings, order)
    figure.suptitle(
        f"{league.rules.name}, {league.deals:,} deals for each pairing, played twice with seats "
        "swapped, 95 % intervals",
        fontsize=10,
    )
    replace_file(path, figure.savefig)


def _short(spec: str) -> str:
    return spec if len(spec) <= _LONGEST_NAME else f"…{spec[1 - _LONGEST_NAME :]}"


def _draw_table(axes: Any, league: League, order: Sequence[int], names: Sequence[str]) -> None:
    count = len(order)
    means = [[league.against(agent, other) for other in order] for agent in order]
    values = np.array([[np.nan if m is None else m.value for m in row] for row in means])
    axes.set_facecolor("0.93")
    axes.imshow(values, cmap="RdBu", vmin=-_FULL, vmax=_FULL, aspect="auto")
    for row in range(count):
        for column in range(count):
            mean = means[row][column]
            if mean is None:
                continue
            axes.text(
                column,
                row,
                f"{mean.value:+.2f}\n± {mean.ci95:.2f}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if abs(mean.value) > 0.65 * _FULL else "black",
            )
    axes.set_xticks(range(count), [str(number + 1) for number in range(count)])
    # Names are no formulas, even with dollars in them.
    labels = [f"{name}  {n + 1}" for n, name in enumerate(names)]
    axes.set_yticks(range(count), labels, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(count + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(count + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="minor", length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title("game points a deal, row against column", fontsize=10)


def _draw_ratings(axes: Any, ratings: Sequence[Rating] | None, order: Sequence[int]) -> None:
    axes.set_title("rating in Elo points, mean 0", fontsize=10)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_yticks(range(len(order)), [str(number + 1) for number in range(len(order))])
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="0.88")
    axes.set_axisbelow(True)
    if ratings is None:
        axes.text(0.5, 0.5, "too few pairings", transform=axes.transAxes, ha="center")
        axes.set_xticks([])
        return
    for row, agent in enumerate(order):
        rating = ratings[agent]
        spread = None
        if rating.interval is not None:
            spread = [[rating.elo - rating.interval[0]], [rating.interval[1] - rating.elo]]
        axes.errorbar(rating.elo, row, xerr=spread, fmt="o", color="#1f4e79", capsize=3)
        axes.annotate(
            f"{rating.elo:+.0f}",
            (rating.elo, row),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    axes.margins(x=0.15)
