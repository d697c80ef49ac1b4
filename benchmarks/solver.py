"""Measures the exact solver: whole deals with all 20 cards known, and five-card endgames.

    python benchmarks/solver.py --deals 200

Both for the value alone and for the values of all legal actions, in processor time of one core, as
median, mean and 95 % quantile over random deals. A whole deal is the moment after the distribution,
closing and exchanging included; an endgame is the moment at which random play exhausts the talon.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console
from rich.table import Table

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.engine import record as r
from schnapsen_env.rules import Rules, resolve_rules
from schnapsen_env.solver import new_workspace, solve_actions, solve_record

Record = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]


def dealt(seed: int) -> Record:
    """A deal of 20 cards before the first action."""
    record = engine.new_record(seed)
    engine.deal(record)
    return record


def exhausted(seed: int, rules: Rules) -> Record:
    """The first deal of a random stream whose talon random play exhausts, at that moment."""
    codes = rules.codes()
    record = engine.new_record(seed)
    while True:
        engine.deal(record)
        while not engine.is_over(record):
            if record[r.TALON_STATE] == engine.EXHAUSTED:
                return record
            engine.step(record, codes, engine.random_action(record, codes))


def milliseconds(
    task: Callable[[Record], object], records: list[Record]
) -> npt.NDArray[np.float64]:
    """Processor time of a task for each record, after one call that does not count."""
    task(records[0])
    times: list[float] = []
    for record in records:
        start = time.thread_time_ns()
        task(record)
        times.append((time.thread_time_ns() - start) / 1e6)
    return np.array(times)


def main(
    deals: Annotated[int, tyro.conf.arg(metavar="N")] = 200,
    rules: str = "pagat_auto",
    seed: int = 0,
) -> None:
    """Print the table.

    Args:
        deals: random deals of each kind.
        rules: name of the rule set.
        seed: of the deals.
    """
    if deals < 2:
        raise SystemExit("--deals must be 2 or more")
    try:
        resolved = resolve_rules(rules)
    except ValueError as error:
        raise SystemExit(f"--rules: {error}") from error
    codes, space = resolved.codes(), new_workspace()
    values = np.zeros(NUM_ACTIONS, dtype=np.int64)

    def value(record: Record) -> object:
        return solve_record(record, codes, space)

    def action_values(record: Record) -> object:
        return solve_actions(record, codes, space, values)

    table = Table("positions", "asked for", "median ms", "mean ms", "95 % below ms")
    whole = [dealt(seed + i) for i in range(deals)]
    late = [exhausted(seed + i, resolved) for i in range(deals)]
    for name, records in (("whole deals", whole), ("talon exhausted", late)):
        for asked, task in (("value", value), ("all action values", action_values)):
            times = milliseconds(task, records)
            row = (np.median(times), times.mean(), np.quantile(times, 0.95))
            table.add_row(name, asked, *(f"{number:,.3f}" for number in row))
    console = Console()
    console.print(table)
    console.print(f"{deals} deals each, {rules}, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
