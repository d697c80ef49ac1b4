"""Where the figures of a run go: a JSON line each time, TensorBoard if wanted, and the screen."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agents.files import replace_text

METRICS_FILE: Final = "metrics.jsonl"
TENSORBOARD_DIR: Final = "tensorboard"


class MetricsLog:
    """``metrics.jsonl`` and the TensorBoard files of a run.

    Args:
        run_dir: the folder of the run.
        timesteps: where the run begins or continues; later lines, of the part that a continued run
            repeats, are dropped.
        tensorboard: write TensorBoard files as well.

    Raises:
        ModuleNotFoundError: TensorBoard is wanted and not installed.
        OSError: the files cannot be written.
    """

    def __init__(self, run_dir: Path, timesteps: int, tensorboard: bool) -> None:
        path = run_dir / METRICS_FILE
        if path.exists():
            before = path.read_text(encoding="utf-8", errors="replace")
            lines = before.splitlines()
            kept = "".join(f"{line}\n" for line in lines if _steps(line) <= timesteps)
            if kept != before:
                replace_text(path, kept)
        self._file = path.open("a", encoding="utf-8")
        self._tensorboard: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._tensorboard = SummaryWriter(
                str(run_dir / TENSORBOARD_DIR), purge_step=timesteps + 1
            )

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, timesteps: int, metrics: Mapping[str, float]) -> None:
        """Log the metrics of one moment."""
        self._file.write(json.dumps({"timesteps": timesteps, **metrics}) + "\n")
        self._file.flush()
        if self._tensorboard is not None:
            for name, value in metrics.items():
                self._tensorboard.add_scalar(name, value, timesteps)

    def close(self) -> None:
        """Finish the files."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def check_tensorboard() -> None:
    """Find out before the training whether TensorBoard is there.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    importlib.import_module("torch.utils.tensorboard")


def _steps(line: str) -> float:
    """The moment of a line; a line that a crash cut short is of no moment."""
    try:
        return json.loads(line)["timesteps"]
    except (ValueError, KeyError, TypeError):
        return float("inf")


class Screen:
    """A progress bar with the figures that matter, and a line for each evaluation.

    Args:
        console: where to write. Off a terminal there is no bar, but a plain line now and then.
        total: decisions of the whole run.
        done: decisions that lie behind.
    """

    #: The longest silence in seconds, where there is no terminal.
    PLAIN_INTERVAL: Final = 30.0

    def __init__(self, console: Console, total: int, done: int) -> None:
        self._console = console
        self._total = total
        self._figures = ""
        self._last_line = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.completed:>11,.0f} decisions"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=total, completed=done, figures="")

    def __enter__(self) -> Screen:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, timesteps: int, metrics: Mapping[str, float], evaluated: bool) -> None:
        """Show a moment; ``evaluated`` says that it holds a new evaluation."""
        if evaluated:
            self._figures = describe_evaluation(metrics)
        line = f"{metrics['charts/SPS']:,.0f}/s  {self._figures}"
        self._progress.update(self._task, completed=timesteps, figures=line)
        now = time.monotonic()
        waited = not self._console.is_terminal and now - self._last_line > self.PLAIN_INTERVAL
        if evaluated or waited:
            self._last_line = now
            share = timesteps / self._total
            self._console.print(
                f"{timesteps:>11,} decisions {share:4.0%}  {line}", soft_wrap=True, highlight=False
            )


def describe_evaluation(metrics: Mapping[str, float]) -> str:
    """``random +1.85  heuristic +0.10 (closes 25%, wins 84% of those)``."""
    parts: list[str] = []
    for name, value in metrics.items():
        group, _, figure = name.partition("/")
        if figure != "game_points" or not group.startswith("eval_"):
            continue
        part = f"{group.removeprefix('eval_')} {value:+.2f}"
        if group == "eval_heuristic" and f"{group}/closing_rate" in metrics:
            part += f" (closes {metrics[f'{group}/closing_rate']:.0%}"
            if f"{group}/closing_success" in metrics:
                part += f", wins {metrics[f'{group}/closing_success']:.0%} of those"
            part += ")"
        parts.append(part)
    return "  ".join(parts)
