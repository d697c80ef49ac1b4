"""Writes the generated tables into the documents: ``python docs/update_tables.py``.

With ``--check`` nothing is written, and the exit status is 1 if a table is out of date, which a
test looks for.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from agents.evaluation.statistics import signed
from schnapsen_env.observation import DEFAULT_LAYOUT, Layout, layout_table

ROOT = Path(__file__).resolve().parent.parent
#: The pages with generated tables.
PAGES = (
    ROOT / "docs" / "environment.md",
    ROOT / "docs" / "training.md",
    ROOT / "README.md",
)
RESULTS = ROOT / "docs" / "results"
#: The league of the README's table, written by benchmarks/results.py.
LEAGUE = RESULTS / "league.json"
#: The curves of docs/training.md, written by benchmarks/curves.py.
CURVES = RESULTS / "curves.json"
#: Million decisions between two columns of their table.
_CURVE_STEP = 20


def tables() -> dict[str, str]:
    """The table of each name that stands in a ``<!-- generated: name -->`` mark."""
    from agents.evaluation.league import markdown

    head, whole = layout_table(DEFAULT_LAYOUT), layout_table(Layout(history=True))
    title = "".join(head.splitlines(keepends=True)[:2])
    league = json.loads(LEAGUE.read_text(encoding="utf-8"))
    return {
        "layout": head,
        "history": title + whole.removeprefix(head),
        "league": markdown(league),
        "networks": networks(),
        "curves": curves(json.loads(CURVES.read_text(encoding="utf-8"))["runs"]),
    }


def networks() -> str:
    """The table of the games that benchmarks/networks.py plays."""
    from benchmarks.networks import ENTRIES, OPPONENTS

    heads = [f"against `{opponent.spec}`" for opponent in OPPONENTS.values()]
    lines = [_row(["agent", "rules", *heads, "closes, of which won"]), _row(["---"] * 7)]
    for name, entry in ENTRIES.items():
        found = {
            opponent: json.loads((RESULTS / f"{name}-{opponent}.json").read_text(encoding="utf-8"))
            for opponent in OPPONENTS
            if opponent != name
        }
        points = [
            _points(found[opponent]["mean_game_points"], found[opponent]["ci95"])
            if opponent in found
            else "-"
            for opponent in OPPONENTS
        ]
        rates = found["random" if name == "heuristic" else "heuristic"]["rates"]["A"]
        closing = _closing(rates["closes"], rates["closes_won"])
        lines.append(_row([f"`{entry.spec}`", f"`{entry.rules}`", *points, closing]))
    return "\n".join(lines) + "\n"


def curves(runs: list[dict[str, Any]]) -> str:
    """The table of learning curves against ``heuristic``, a row for each run.

    Args:
        runs: as benchmarks/curves.py writes them.
    """
    found = [{round(point["timesteps"] / 1e6): point for point in run["points"]} for run in runs]
    longest = max(max(points) for points in found)
    marks = range(_CURVE_STEP, longest + 1, _CURVE_STEP)
    title = ["million decisions", *(str(mark) for mark in marks), "closes, of which won"]
    lines = [_row(title), _row(["---"] * len(title))]
    for run, points in zip(runs, found, strict=True):
        means = [
            signed(points[mark]["heuristic"]["game_points"], 2) if mark in points else ""
            for mark in marks
        ]
        end = points[max(points)]["heuristic"]
        closing = _closing(end["closing_rate"], end["closing_success"])
        lines.append(_row([f"`{run['rules']}`, seed {run['seed']}", *means, closing]))
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _points(mean: float, ci95: float) -> str:
    return f"{signed(mean, 2)} ± {ci95:.2f}"


def _closing(closes: float, won: float | None) -> str:
    """Who has closed nothing has won none of it."""
    share = "-" if won is None else f"{won:.0%}"
    return f"{closes:.0%}, {share}".replace("%", " %")


def updated(page: str, generated: dict[str, str]) -> str:
    """The text of a page with all its tables as ``generated`` by :func:`tables`."""
    for name, table in generated.items():
        mark = f"<!-- generated: {name} -->\n"
        page = re.sub(
            rf"{re.escape(mark)}.*?<!-- end -->",
            lambda _, text=f"{mark}\n{table}\n<!-- end -->": text,
            page,
            flags=re.DOTALL,
        )
    return page


def main(arguments: list[str]) -> int:
    """Update or check the pages; returns the exit status."""
    status, generated = 0, tables()
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        after = updated(before, generated)
        if after == before:
            continue
        if "--check" in arguments:
            sys.stderr.write(f"{path.name} is out of date: run python docs/update_tables.py\n")
            status = 1
        else:
            path.write_text(after, encoding="utf-8")
    return status


if __name__ == "__main__":
    # As a script: the folder of `agents`, which is not installed.
    sys.path.append(str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
