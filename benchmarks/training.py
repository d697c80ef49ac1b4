"""Training throughput: ours beside a CleanRL-style loop and MaskablePPO, in one run.

    python benchmarks/training.py

Each trainer is started as its own process with the same network (two hidden layers of 256), one
torch thread and its own tuned batch, twice: for a number of decisions, and for three times as many.
What the longer run takes beyond the shorter one is playing and learning only; imports, compiling
and the like are in both. The unit is decisions a second of processor time, so that a machine with
other work gives the same figures.

Speed is not strength: ``benchmarks/README.md`` says what the trainers reach in which time.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from agents.files import check_writable, write_json_file

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Trainer:
    """A way to train, and how to start it."""

    name: str
    #: What it learns from in one update, and how often.
    batch: str
    #: Decisions of the shorter run.
    decisions: int
    #: Arguments of Python for a number of decisions and an empty folder.
    arguments: Callable[[int, Path], list[str]]
    #: Modules that it needs.
    needs: tuple[str, ...] = ()


def _ours(decisions: int, folder: Path) -> list[str]:
    return [
        *("train.py", "--config", "configs/ppo.yaml", "--run-dir", str(folder / "run")),
        *("--total-timesteps", str(decisions), "--eval-interval", "0", "--final-eval-deals", "0"),
        "--no-tensorboard",
    ]


def _cleanrl(decisions: int, _folder: Path) -> list[str]:
    return [
        *("examples/cleanrl/ppo_aec.py", "--total-timesteps", str(decisions)),
        *("--eval-deals", "2"),
    ]


def _cleanrl_alone(decisions: int, folder: Path) -> list[str]:
    return [*_cleanrl(decisions, folder), "--num-envs", "1", "--num-steps", "8192"]


def _maskable(decisions: int, _folder: Path) -> list[str]:
    return [
        *("examples/sb3/maskable_ppo.py", "--total-timesteps", str(decisions)),
        *("--eval-deals", "2"),
    ]


TRAINERS = (
    Trainer(
        "train.py, configs/ppo.yaml",
        "65,536 decisions, 2 epochs, minibatch 1,024, bfloat16 where fast",
        2_097_152,
        _ours,
    ),
    Trainer(
        "CleanRL style, 64 AEC environments in step",
        "8,192 decisions, 3 epochs, minibatch 1,024",
        262_144,
        _cleanrl,
    ),
    Trainer(
        "CleanRL style, one AEC environment",
        "8,192 decisions, 3 epochs, minibatch 1,024",
        65_536,
        _cleanrl_alone,
    ),
    Trainer(
        "sb3-contrib MaskablePPO, batch",
        "4,096 decisions, 4 epochs, minibatch 1,024",
        98_304,
        _maskable,
        ("sb3_contrib",),
    ),
)


def processor_seconds(arguments: list[str]) -> float:
    """Processor time of a Python process with these arguments, run from the repository root.

    Raises:
        subprocess.CalledProcessError: it failed; its output is shown.
    """
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], check=True, cwd=ROOT, env=environment, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def throughput(trainer: Trainer) -> float:
    """Decisions a second of processor time, start and end of the process left out."""
    seconds: list[float] = []
    for decisions in (trainer.decisions, 3 * trainer.decisions):
        with tempfile.TemporaryDirectory() as folder:
            seconds.append(processor_seconds(trainer.arguments(decisions, Path(folder))))
    return 2 * trainer.decisions / (seconds[1] - seconds[0])


def main(
    output: Annotated[Path | None, tyro.conf.arg(name="json", metavar="FILE")] = None,
) -> None:
    """Measure all trainers whose libraries are installed.

    Args:
        output: write the figures to this file.
    """
    if output is not None:
        check_writable(output)
    console = Console()
    table = Table("trainer", "an update", "decisions/s", "ours is")
    figures: dict[str, float] = {}
    for trainer in TRAINERS:
        if any(importlib.util.find_spec(module) is None for module in trainer.needs):
            console.print(f"{trainer.name}: not installed ({', '.join(trainer.needs)}), left out")
            continue
        figures[trainer.name] = rate = throughput(trainer)
        times = figures[TRAINERS[0].name] / rate
        table.add_row(trainer.name, trainer.batch, f"{rate:,.0f}", f"{times:.1f} times")
    console.print(table)
    if output is not None:
        write_json_file(figures, output)


if __name__ == "__main__":
    tyro.cli(main)
