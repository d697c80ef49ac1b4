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
#: Where a league is until it is whole; git ignores it.
UNFINISHED = ROOT / "runs" / "league"
#: What evaluate.py writes, by the option that names it.
FILES = {"json": "league.json", "picture": "league.png"}


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


def play_command(settings: Settings, folder: Path) -> list[str]:
    """The command that plays the league into two files of ``folder``."""
    play = [sys.executable, str(ROOT / "evaluate.py"), "--league", *settings.agents]
    play += ["--rules", settings.rules, "--deals", str(settings.deals)]
    play += ["--seed", str(settings.seed), "--endgame-regret"]
    play += ["--variance-reduction"] if settings.variance_reduction else []
    return [*play, *(f"--{option}={folder / name}" for option, name in FILES.items())]


def update_pages() -> int:
    """Write what stands in ``docs/results`` into the pages; the exit status."""
    update = [sys.executable, str(ROOT / "docs" / "update_tables.py")]
    return subprocess.run(update, cwd=ROOT, check=False).returncode


def main(settings: Settings) -> int:
    """Play and update the page; the exit status of what has failed, or 0."""
    RESULTS.mkdir(exist_ok=True)
    # An interrupted league is written as well, and must not take the place of a whole one.
    UNFINISHED.mkdir(parents=True, exist_ok=True)
    status = subprocess.run(play_command(settings, UNFINISHED), cwd=ROOT, check=False).returncode
    if status:
        sys.stderr.write(f"{RESULTS} is as it was; what was finished is in {UNFINISHED}\n")
        return status
    for file in FILES.values():
        (UNFINISHED / file).replace(RESULTS / file)
    return update_pages()


if __name__ == "__main__":
    try:
        raise SystemExit(main(tyro.cli(Settings, description=__doc__)))
    except KeyboardInterrupt:
        raise SystemExit(f"interrupted; {RESULTS} is as it was") from None
