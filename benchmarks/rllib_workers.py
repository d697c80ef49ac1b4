"""RLlib with one env runner and with two, by the clock, in one run.

    pip install -e '.[rllib,bench]'
    python benchmarks/rllib_workers.py

Trains with the configuration of ``examples/rllib/self_play.py --pool``, with each number of env
runners in turn, several times over, on a Ray of this machine. A first iteration, in which processes
start and code compiles, is left out. Of the others it takes the time in which the env runners play
(what they send back and the waiting for the slowest included), the time in which the driver learns,
and the whole.

Ray's workers get the niceness of all others (``RAY_worker_niceness=0``), and the times are those of
the clock: run this on a machine that does nothing else, or mind what it prints: the load, and
which share of the sampling a runner had a core. Less than about 90 % is the work of others.
Beside other work Linux may keep two env runners on one core for long; ``--pin`` gives each its own.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# (Ray is optional, so its classes are unknown where the sources are checked.)

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from agents.files import check_writable, write_json_file

# Read by Ray when it starts.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.rllib.algorithms.ppo import ppo

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "rllib" / "self_play.py"


@dataclass
class Run:
    """Some iterations of training; seconds by the clock."""

    runners: int
    #: Environment steps that were played and learned from.
    steps: int = 0
    sampling: float = 0.0
    learning: float = 0.0
    whole: float = 0.0
    #: Processor time of the env runner that took most of it.
    processor: float = 0.0
    #: The load average of the last minute, at the end of the run.
    load: float = field(default=0.0)


class Stopwatch:
    """Adds up the seconds that a function takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        started = time.perf_counter()
        try:
            return self._function(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - started


def load_example() -> ModuleType:
    """The module of the example."""
    spec = importlib.util.spec_from_file_location("self_play", EXAMPLE)
    if spec is None or spec.loader is None:
        raise ImportError(f"{EXAMPLE} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keep_on_one_core(runner: Any) -> None:
    """Keep the process of an env runner on one core; workers are numbered from 1."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(runner.worker_index - 1) % len(cores)]})


def processor_time(_runner: Any) -> float:
    """Processor seconds of the process of an env runner so far."""
    return time.process_time()


def train(
    example: ModuleType, runners: int, iterations: int, arguments: list[str], *, is_pinned: bool
) -> Run:
    """Train with a number of env runners, one iteration that does not count first."""
    chosen = [*arguments, "--num-env-runners", str(runners)]
    algorithm = example.configure(example.parse(chosen)).build_algo()
    # PPO calls the one by its name in its module and the other on its learner group.
    original = ppo.synchronous_parallel_sample
    sampling = ppo.synchronous_parallel_sample = Stopwatch(original)
    learning = algorithm.learner_group.update = Stopwatch(algorithm.learner_group.update)
    try:
        if is_pinned:
            algorithm.env_runner_group.foreach_env_runner(keep_on_one_core, local_env_runner=False)
        before = int(algorithm.train()["num_env_steps_sampled_lifetime"])
        sampling.seconds = learning.seconds = 0.0
        group = algorithm.env_runner_group
        processor = [group.foreach_env_runner(processor_time, local_env_runner=False)]
        started = time.perf_counter()
        after = before
        for _ in range(iterations):
            after = int(algorithm.train()["num_env_steps_sampled_lifetime"])
        whole = time.perf_counter() - started
        processor.append(group.foreach_env_runner(processor_time, local_env_runner=False))
    finally:
        ppo.synchronous_parallel_sample = original
        algorithm.stop()
    return Run(
        runners,
        after - before,
        sampling.seconds,
        learning.seconds,
        whole,
        max(b - a for a, b in zip(*processor, strict=True)),
        os.getloadavg()[0],
    )


def report(runs: list[Run], runners: tuple[int, ...], console: Console) -> None:
    """Print each run, and the medians of each number of runners."""
    table = Table(
        *("env runners", "steps/s played", "steps/s in all", "sampling", "learning"),
        *("core of a runner", "load"),
    )
    for run in runs:
        table.add_row(
            str(run.runners),
            f"{run.steps / run.sampling:,.0f}",
            f"{run.steps / run.whole:,.0f}",
            f"{run.sampling / run.whole:.0%}",
            f"{run.learning / run.whole:.0%}",
            f"{run.processor / run.sampling:.0%}",
            f"{run.load:.1f}",
        )
    console.print(table)
    medians: dict[int, tuple[float, float]] = {}
    for number in runners:
        mine = [run for run in runs if run.runners == number]
        played = statistics.median(run.steps / run.sampling for run in mine)
        whole = statistics.median(run.steps / run.whole for run in mine)
        medians[number] = played, whole
        console.print(
            f"{number} env runners, median of {len(mine)}: {played:,.0f} steps/s played "
            f"({played / medians[runners[0]][0]:.2f} times), {whole:,.0f} steps/s in all "
            f"({whole / medians[runners[0]][1]:.2f} times)"
        )


def main(
    runners: tuple[int, ...] = (1, 2),
    repetitions: int = 3,
    iterations: int = 5,
    batch_size: int = 4000,
    pin: bool = False,
    output: Annotated[Path | None, tyro.conf.arg(name="json", metavar="FILE")] = None,
) -> None:
    """Measure each number of env runners in turn.

    Args:
        runners: the numbers of env runners; ratios are to the first.
        repetitions: how often each is measured.
        iterations: of training, in each measurement.
        batch_size: steps of an iteration.
        pin: keep each env runner on a core of its own (Linux).
        output: write all runs to this file.
    """
    if output is not None:
        check_writable(output)
    console = Console()
    example = load_example()
    arguments = ["--pool", "--batch-size", str(batch_size)]
    ray.init(
        num_cpus=max(runners) + 1,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}},
    )
    runs: list[Run] = []
    try:
        for _ in range(repetitions):
            for number in runners:
                runs.append(train(example, number, iterations, arguments, is_pinned=pin))
                console.print(f"{number} env runners: {asdict(runs[-1])}")
    finally:
        ray.shutdown()
    report(runs, runners, console)
    if output is not None:
        write_json_file({"runs": [asdict(run) for run in runs]}, output)


if __name__ == "__main__":
    tyro.cli(main)
