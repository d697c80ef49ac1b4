"""Plays the engine against the referee for as many random deals as one likes.

    python tests/compare_million.py --deals 1000000 --processes 2
    python tests/compare_million.py --rules duel french --deals 20000 --seed 3
    python tests/compare_million.py --custom --deals 100000

Every deal is compared action by action, as in ``tests/test_referee.py``. Prints one line a rule set
and the first difference as text; exits with 1 if there was one.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from schnapsen_env.rules import RULES
from tests.side_by_side import play_deal, random_rules

#: Deals of one task of a worker. Each has its own random generator, so the number of processes
#: does not change which deals are played.
CHUNK: Final = 1000
CUSTOM: Final = "custom"


@dataclass(frozen=True)
class Options:
    """What to compare."""

    deals: int = 1_000_000
    """Deals of each rule set."""
    processes: int = 1
    """Worker processes."""
    rules: tuple[str, ...] = tuple(RULES)
    """Names of rule sets."""
    custom: bool = False
    """Also as many deals under random rule sets, a new one every ten deals."""
    seed: int = 0
    """Other deals for another seed."""


class Task(NamedTuple):
    """Some deals of one rule set."""

    rules: str
    seed: int
    number: int
    deals: int


class Outcome(NamedTuple):
    """What a task found: deals by reason, and the first difference as text."""

    reasons: Counter[str]
    difference: str | None


def compare(task: Task) -> Outcome:
    """Plays the deals of a task; stops at the first difference."""
    rng = random.Random(f"{task.rules} {task.seed} {task.number}")  # noqa: S311  # no secret depends on it
    reasons = Counter[str]()
    rules = random_rules(rng) if task.rules == CUSTOM else RULES[task.rules]
    for number in range(task.deals):
        if task.rules == CUSTOM and number % 10 == 0:
            rules = random_rules(rng)
        difference = play_deal(rules, rng, reasons=reasons)
        if difference is not None:
            return Outcome(reasons, difference)
    return Outcome(reasons, None)


def tasks_of(options: Options, rules: str) -> Iterator[Task]:
    for number, start in enumerate(range(0, options.deals, CHUNK)):
        yield Task(rules, options.seed, number, min(CHUNK, options.deals - start))


def main(options: Options) -> int:
    """Returns the exit status: 0 when everything agreed."""
    names = options.rules + ((CUSTOM,) if options.custom else ())
    unknown = set(options.rules) - set(RULES)
    if unknown:
        sys.stderr.write(f"unknown rule set {min(unknown)!r}: choose from {', '.join(RULES)}\n")
        return 2
    with ProcessPoolExecutor(options.processes) as workers:
        for name in names:
            start = time.perf_counter()
            reasons = Counter[str]()
            for outcome in workers.map(compare, tasks_of(options, name)):
                reasons += outcome.reasons
                if outcome.difference is not None:
                    workers.shutdown(cancel_futures=True)
                    sys.stdout.write(f"{name}: a difference\n{outcome.difference}\n")
                    return 1
            ends = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
            seconds = time.perf_counter() - start
            sys.stdout.write(
                f"{name}: {reasons.total():,} deals agree in {seconds:.0f} s ({ends})\n"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options, description=__doc__)))
