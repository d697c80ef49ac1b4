"""Plays the games of the README's table of networks and updates it.

    python benchmarks/networks.py                    # everything: 105 minutes of one core
    python benchmarks/networks.py french duel --opponents random heuristic

Every game goes to a file of ``docs/results``, such as ``french-heuristic.json``. ``quick`` is the
network that the README's first command leaves in ``runs/quick``.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

import tyro

# As a script: the folder that this one lies in.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.results import RESULTS, ROOT, update_pages

#: Of the cards and of the agents.
SEED: Final = 7


class Opponent(NamedTuple):
    """Somebody the agents of the table play against."""

    spec: str
    #: Different deals; each is played twice.
    deals: int


class Entry(NamedTuple):
    """An agent of the table."""

    spec: str
    rules: str


#: By the name in the files, in the order of the columns.
OPPONENTS: Final = MappingProxyType(
    {
        "random": Opponent("random", 5_000),
        "heuristic": Opponent("heuristic", 5_000),
        "pimc": Opponent("pimc:worlds=20", 800),
        "ismcts": Opponent("ismcts:iterations=1000", 1_000),
    }
)
#: Different deals of single games, where the row of a page is to be surer than the others.
LONGER: Final = MappingProxyType({("pagat_auto", "pimc"): 2_000})
#: The rule sets that have a network, each under ``agents/checkpoints``.
SHIPPED: Final = ("pagat_auto", "duel", "last_trick_ten", "austrian", "french", "pagat")
#: By the name in the files, in the order of the rows.
ENTRIES: Final = MappingProxyType(
    {"quick": Entry("ppo:runs/quick", "pagat_auto")}
    | {rules: Entry(f"ppo:agents/checkpoints/{rules}", rules) for rules in SHIPPED}
    | {"heuristic": Entry("heuristic", "pagat_auto")}
)


@dataclass(frozen=True)
class Settings:
    """What to play."""

    entries: Annotated[tuple[str, ...], tyro.conf.Positional] = tuple(ENTRIES)
    """Names of agents of the table."""
    opponents: tuple[str, ...] = tuple(OPPONENTS)
    """Names of opponents."""


def games(settings: Settings) -> list[tuple[str, str]]:
    """The pairs of names that are to be played; nobody plays himself.

    Raises:
        ValueError: a name that the table does not have.
    """
    for known, chosen in ((ENTRIES, settings.entries), (OPPONENTS, settings.opponents)):
        for name in chosen:
            if name not in known:
                raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    return [(a, b) for a in settings.entries for b in settings.opponents if a != b]


def play_command(name: str, opponent: str, file: Path) -> list[str]:
    """The command that plays one game of the table into ``file``."""
    entry, other = ENTRIES[name], OPPONENTS[opponent]
    play = [sys.executable, str(ROOT / "evaluate.py"), entry.spec, other.spec]
    deals = LONGER.get((name, opponent), other.deals)
    play += ["--rules", entry.rules, "--deals", str(deals), "--seed", str(SEED)]
    return [*play, "--json", str(file)]


def main(settings: Settings) -> int:
    """Play and update the page; the exit status of what has failed, or 0."""
    try:
        chosen = games(settings)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for name, opponent in chosen:
        # evaluate.py puts a file there when the game is over, and leaves the old one until then.
        command = play_command(name, opponent, RESULTS / f"{name}-{opponent}.json")
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            sys.stderr.write(f"{name} against {opponent} has failed; the table is as it was\n")
            return status
    return update_pages()


if __name__ == "__main__":
    try:
        raise SystemExit(main(tyro.cli(Settings, description=__doc__)))
    except KeyboardInterrupt:
        raise SystemExit("interrupted; the games before are written") from None
