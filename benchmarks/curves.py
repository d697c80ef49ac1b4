"""Learning curves of finished runs, as the table and the picture of ``docs/training.md``.

    python benchmarks/curves.py runs/ppo runs/second runs/third

Reads what ``train.py`` has evaluated on the way, writes ``docs/results/curves.json`` and
``docs/results/curves.png`` (needs the extra ``league``), and updates the page.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import tyro
from matplotlib.figure import Figure

# As a script: the folder of `agents`, which is not installed, and of this one.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from agents.files import replace_file, write_json_file
from agents.ppo.config import read_config
from agents.ppo.logger import METRICS_FILE
from benchmarks.results import RESULTS, update_pages

#: What is kept of each evaluation, by its name in the log after ``eval_OPPONENT/``.
KEPT: Final = ("game_points", "game_points_ci95", "closing_rate", "closing_success")
OPPONENTS: Final = ("random", "heuristic")


@dataclass(frozen=True)
class Settings:
    """Which runs."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs."""


def curve(run: Path) -> dict[str, Any]:
    """What a run was, and how strong it was on the way.

    Raises:
        ValueError: the folder has no log, or the log no evaluation.
    """
    config, log = read_config(run / "config.yaml"), run / METRICS_FILE
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    points = [
        {
            "timesteps": line["timesteps"],
            "cpu_seconds": line["charts/cpu_seconds"],
            # A player that closed nothing has no success in it.
            **{who: {name: line.get(f"eval_{who}/{name}") for name in KEPT} for who in OPPONENTS},
        }
        for line in lines
        if f"eval_{OPPONENTS[0]}/{KEPT[0]}" in line
    ]
    if not points:
        raise ValueError(f"{log} has no evaluation: train with --eval-interval")
    return {
        "rules": config.rules,
        "seed": config.seed,
        "eval_deals": config.eval_deals,
        "points": points,
    }


def draw(curves: Sequence[dict[str, Any]], path: Path) -> None:
    """The picture: game points against ``heuristic`` above, closing below.

    The rule sets side by side; the seeds of a set share a panel.
    """
    sets = list(dict.fromkeys(run["rules"] for run in curves))
    figure: Any = Figure(figsize=(2.2 + 2.4 * len(sets), 6.0), dpi=120, layout="constrained")
    panels = figure.subplots(2, len(sets), sharex="col", sharey="row", squeeze=False)
    for column, rules in enumerate(sets):
        of_set = [run for run in curves if run["rules"] == rules]
        _draw_points(panels[0, column], of_set)
        _draw_closing(panels[1, column], of_set)
        panels[0, column].set_title(rules)
        panels[1, column].set_xlabel("million decisions")
    panels[0, 0].set_ylabel("game points a deal against\nheuristic, 95 % interval")
    panels[1, 0].set_ylabel("deals closed (line),\nof which won (dashes)")
    replace_file(path, figure.savefig)


def _draw_points(panel: Any, runs: Sequence[dict[str, Any]]) -> None:
    for run in runs:
        steps, mean, half = (
            _column(run, "timesteps", scale=1e-6),
            _column(run, "heuristic", "game_points"),
            _column(run, "heuristic", "game_points_ci95"),
        )
        low = [m - h for m, h in zip(mean, half, strict=True)]
        high = [m + h for m, h in zip(mean, half, strict=True)]
        (line,) = panel.plot(steps, mean, label=f"seed {run['seed']}")
        panel.fill_between(steps, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    panel.legend(loc="lower right", frameon=False)


def _draw_closing(panel: Any, runs: Sequence[dict[str, Any]]) -> None:
    for run in runs:
        steps = _column(run, "timesteps", scale=1e-6)
        (line,) = panel.plot(steps, _column(run, "heuristic", "closing_rate"))
        won = _column(run, "heuristic", "closing_success")
        panel.plot(steps, won, color=line.get_color(), linestyle="--")
    panel.set_ylim(0.0, 1.0)


def _column(run: dict[str, Any], *names: str, scale: float = 1.0) -> list[float]:
    """One number of each point of a run, by its path of names; NaN where there is none."""
    column: list[float] = []
    for point in run["points"]:
        value = point
        for name in names:
            value = value[name]
        column.append(math.nan if value is None else value * scale)
    return column


def main(settings: Settings) -> int:
    """Write file and picture and update the page; the exit status of what has failed, or 0."""
    try:
        curves = [curve(run) for run in settings.runs]
        write_json_file({"format": 1, "runs": curves}, RESULTS / "curves.json")
        draw(curves, RESULTS / "curves.png")
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return update_pages()


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Settings, description=__doc__)))
