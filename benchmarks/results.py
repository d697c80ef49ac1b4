"""Makes the README's table of results: plays the league, writes it down, updates the page.

    python benchmarks/results.py ppo:runs/ppo heuristic random --deals 5000

The league goes to ``docs/results/league.json`` and ``docs/results/league.png``. Options that are
not named here are those of ``evaluate.py``.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Settings:
    """What to play."""

    agents: Annotated[tuple[str, ...], tyro.conf.Positional] = ("heuristic", "random")
    """Specs of the agents, two or more."""
    deals: int = 5000
    """Different deals of each pairing; each is played twice."""
    rules: str = "pagat_auto"
    """The name of the rule set."""
    seed: int = 7
    """Of the cards and of the agents."""
    variance_reduction: bool = False
    """Take the luck of the draws out of the means."""


def commands(settings: Settings) -> list[list[str]]:
    """The two commands that make the table, to be run in the repository's folder."""
    play = [sys.executable, str(ROOT / "evaluate.py"), "--league", *settings.agents]
    play += ["--rules", settings.rules, "--deals", str(settings.deals)]
    play += ["--seed", str(settings.seed), "--endgame-regret"]
    play += ["--variance-reduction"] if settings.variance_reduction else []
    play += ["--json", str(RESULTS / "league.json"), "--picture", str(RESULTS / "league.png")]
    return [play, [sys.executable, str(ROOT / "docs" / "update_tables.py")]]


def main(settings: Settings) -> int:
    """Run them; the exit status of the first that fails, or 0."""
    RESULTS.mkdir(exist_ok=True)
    for command in commands(settings):
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Settings, description=__doc__)))
