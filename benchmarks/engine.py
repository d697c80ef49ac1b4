"""Measures the engine and its environments beside other libraries, in one run.

    python benchmarks/engine.py --json engine.json

Every case runs for ``--seconds`` and the whole list is gone through ``--repetitions`` times, so
that a burst of other work on the machine falls on all cases alike. A rate is the median over the
repetitions; a ratio is the median of the ratios within each repetition, which is what survives a
busy machine. The unit is decisions: actions that a player chose. Dealing, dead steps and resets
take time and count for nothing.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from agents.files import check_writable, write_json_file
from schnapsen_env import engine, schnapsen_v0
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled
from schnapsen_env.engine.record import END_REASON
from schnapsen_env.observation import DEFAULT_LAYOUT
from schnapsen_env.rules import resolve_rules
from schnapsen_env.vector import SchnapsenVectorEnv

Dtype = type[np.float32] | type[np.uint8]

BENCH_EXTRA: Final = "pip install -e '.[bench]'"
LEDUC: Final = "PettingZoo leduc_holdem env()"
#: Decisions between two looks at the clock in compiled loops and in Python loops.
COMPILED_CHUNK, PYTHON_CHUNK = 100_000, 200


@dataclass(frozen=True)
class Settings:
    """What to measure, and for how long."""

    rules: str = "duel"
    """Rule set of all Schnapsen cases."""
    seconds: float = 0.5
    """Length of one run of one case."""
    repetitions: int = 5
    """How often the list of cases is gone through."""
    deals: tuple[int, ...] = (1, 64, 1_024, 16_384)
    """Batch sizes."""
    threads: tuple[int, ...] = (1, 2)
    """Threads that share the rows of a batch."""
    cold_starts: int = 1
    """First calls measured with an empty cache of compiled code; each one compiles everything."""
    warm_starts: int = 5
    """First calls measured with a filled cache."""
    json: Path | None = None
    """Where to write all figures with every sample."""


@dataclass(frozen=True)
class Case:
    """One thing to measure: ``run(seconds)`` returns decisions a second."""

    group: str
    name: str
    run: Callable[[float], float]
    #: The case that the ratio is taken to, by name.
    reference: str | None = None


@dataclass(frozen=True)
class Result:
    """Median, extremes and samples of a case; ``ratio`` is to the case named ``reference``."""

    group: str
    name: str
    unit: str
    median: float
    low: float
    high: float
    samples: list[float]
    reference: str | None = None
    ratio: float | None = None


# ------------------------------------------------------------------------------------ the engine


@compiled
def play(record: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], decisions: int) -> None:
    """Plays so many random legal decisions, dealing anew whenever a deal is over."""
    record, codes = borrowed(record), borrowed(codes)
    for _ in range(decisions):
        if record[END_REASON] != 0:
            engine.deal(record)
        engine.step(record, codes, engine.random_action(record, codes))


def timed_chunks(chunk: Callable[[], int], seconds: float) -> float:
    """Calls ``chunk``, which returns its decisions, until the time is over; decisions a second."""
    decisions = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        decisions += chunk()
    return decisions / elapsed


def rules_alone(settings: Settings) -> Case:
    """The compiled rules by themselves: choose at random, step, deal when over."""
    rules = resolve_rules(settings.rules)
    record, codes = engine.new_record(seed=0), rules.codes()
    engine.deal(record)
    play(record, codes, 1)

    def chunk() -> int:
        play(record, codes, COMPILED_CHUNK)
        return COMPILED_CHUNK

    return Case("rules", "rules alone", lambda seconds: timed_chunks(chunk, seconds))


def floor_name(deals: int, dtype: Dtype) -> str:
    """The name of the memory-write floor of a batch size and a dtype."""
    return f"write floor, {deals:,} rows of {np.dtype(dtype).name}"


def write_floor(deals: int, dtype: Dtype, features: int) -> Case:
    """Observation and mask rows copied from the cache by numpy, with no rules at all.

    Blocks of up to 64 rows, which the cache holds, because a copy of single rows would measure the
    calls that copy them.
    """
    block = min(deals, 64)
    rows = np.ones(block * features, dtype=dtype)
    mask_rows = np.ones(block * NUM_ACTIONS, dtype=np.int8)
    out = np.zeros((deals // block, block * features), dtype=dtype)
    mask_out = np.zeros((deals // block, block * NUM_ACTIONS), dtype=np.int8)
    repeats = max(1, 4_096 // deals)

    def chunk() -> int:
        for _ in range(repeats):
            out[:] = rows
            mask_out[:] = mask_rows
        return repeats * mask_out.size // NUM_ACTIONS

    return Case("floor", floor_name(deals, dtype), lambda seconds: timed_chunks(chunk, seconds))


def batch_case(name: str, env: SchnapsenVectorEnv, reference: str) -> Case:
    """A batch with random legal actions; only the time inside ``step`` counts."""
    env.reset(seed=0)

    def run(seconds: float) -> float:
        in_step, steps = 0.0, 0
        end = time.perf_counter() + seconds
        while True:
            actions = env.sample_actions()
            start = time.perf_counter()
            env.step(actions)
            now = time.perf_counter()
            in_step += now - start
            steps += 1
            if now >= end:
                return steps * env.num_envs / in_step

    run(0.0)
    return Case("batch", name, run, reference)


def batch_cases(settings: Settings) -> list[Case]:
    """All batch sizes and dtypes, ways to get the arrays and numbers of threads, and the floors."""
    ways: list[tuple[str, int, dict[str, Any]]] = [
        ("new arrays", 1, {}),
        ("same arrays", 1, {"copy": False}),
    ]
    for threads in settings.threads:
        how = "same arrays, no final ones" + (f", {threads} threads" if threads > 1 else "")
        ways.append((how, threads, {"copy": False, "final_observation": False}))
    cases: list[Case] = []
    for deals, dtype in product(settings.deals, (np.float32, np.uint8)):
        floor = floor_name(deals, dtype)
        for how, threads, arguments in ways:
            if threads <= deals:
                env = SchnapsenVectorEnv(
                    deals, settings.rules, dtype=dtype, num_threads=threads, **arguments
                )
                name = f"{deals:,} deals, {np.dtype(dtype).name}, {how}"
                cases.append(batch_case(name, env, floor))
        cases.append(write_floor(deals, dtype, DEFAULT_LAYOUT.size))
    return cases


# ------------------------------------------------------------- one decision at a time, in Python


def random_member(legal: Sequence[Any]) -> Any:
    """A random element; the same cheap choice for every library."""
    return legal[int(random.random() * len(legal))]  # noqa: S311  # no secret depends on it


def aec_chunk(env: Any) -> Callable[[], int]:
    """Masked random play of a PettingZoo AEC environment, the loop of its performance_benchmark."""
    env.reset(seed=0)

    def chunk() -> int:
        decisions = 0
        while decisions < PYTHON_CHUNK:
            env.reset()  # unseeded: some environments are built anew by every seed
            for _ in env.agent_iter():
                observation, *_ = env.last()
                env.step(random_member(np.flatnonzero(observation["action_mask"]).tolist()))
                decisions += 1
                if all(env.terminations.values()):
                    break
        return decisions

    return chunk


def open_spiel_chunk(spiel: Any, *, tensors: bool) -> Callable[[], int]:
    """Random play of OpenSpiel's leduc_poker from Python, with or without what a network needs."""
    game = spiel.load_game("leduc_poker")

    def chunk() -> int:
        decisions = 0
        while decisions < PYTHON_CHUNK:
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    state.apply_action(random_member(state.chance_outcomes())[0])
                    continue
                if tensors:
                    np.asarray(state.information_state_tensor(), dtype=np.float32)
                    np.asarray(state.legal_actions_mask(), dtype=np.int8)
                state.apply_action(random_member(state.legal_actions()))
                decisions += 1
        return decisions

    return chunk


def rlcard_chunk(rlcard: Any) -> Callable[[], int]:
    """Random play of RLCard's leduc-holdem."""
    env = rlcard.make("leduc-holdem", config={"seed": 0})

    def chunk() -> int:
        decisions = 0
        while decisions < PYTHON_CHUNK:
            state, _ = env.reset()
            while not env.is_over():
                state, _ = env.step(random_member(list(state["legal_actions"])))
                decisions += 1
        return decisions

    return chunk


def python_cases(settings: Settings) -> tuple[list[Case], list[str]]:
    """The AEC environments and the libraries to compare with; and a line for each missing one."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    chunks: dict[str, Callable[[], int]] = {
        "Schnapsen env()": aec_chunk(schnapsen_v0.env(rules=settings.rules)),
        "Schnapsen raw_env()": aec_chunk(schnapsen_v0.raw_env(rules=settings.rules)),
    }
    missing: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PettingZoo's own games warn about how they are made
            chunks[LEDUC] = aec_chunk(
                importlib.import_module("pettingzoo.classic.leduc_holdem_v4").env()
            )
    except ImportError as error:
        missing.append(f"{LEDUC}: {error}")
    try:
        spiel = importlib.import_module("pyspiel")
        chunks["OpenSpiel leduc_poker, actions only"] = open_spiel_chunk(spiel, tensors=False)
        chunks["OpenSpiel leduc_poker, tensors and mask"] = open_spiel_chunk(spiel, tensors=True)
    except ImportError as error:
        missing.append(f"OpenSpiel leduc_poker: {error}")
    try:
        chunks["RLCard leduc-holdem"] = rlcard_chunk(importlib.import_module("rlcard"))
    except ImportError as error:
        missing.append(f"RLCard leduc-holdem: {error}")

    def case(name: str, chunk: Callable[[], int]) -> Case:
        chunk()
        return Case(
            "one at a time",
            name,
            lambda seconds: timed_chunks(chunk, seconds),
            reference=LEDUC if LEDUC in chunks and name != LEDUC else None,
        )

    return [case(name, chunk) for name, chunk in chunks.items()], missing


# -------------------------------------------------------------------------------------- start-up

_START_UP: Final = """
import json, sys, time
start = time.perf_counter()
import numba
numba_at = time.perf_counter()
import schnapsen_env
from schnapsen_env import schnapsen_v0
import_at = time.perf_counter()
env = schnapsen_v0.env(rules={rules!r})
env.reset(seed=0)
observation = env.last()[0]
env.step(int(observation["action_mask"].argmax()))
aec_at = time.perf_counter()
from schnapsen_env.vector import SchnapsenVectorEnv
import numpy
batch = SchnapsenVectorEnv(64, rules={rules!r})
observations, _ = batch.reset(seed=0)
batch.step(observations["action_mask"].argmax(axis=1))
batch_at = time.perf_counter()
assert "torch" not in sys.modules
print(json.dumps({{
    "import numba": numba_at - start,
    "import schnapsen_env, numba and all": import_at - start,
    "first AEC reset and step": aec_at - import_at,
    "first batch reset and step": batch_at - aec_at,
}}))
"""


def start_up(settings: Settings) -> list[Result]:
    """Import and first calls in new processes, with an empty and with a filled cache."""
    code = _START_UP.format(rules=settings.rules)
    samples: dict[str, list[float]] = {}

    def measure(cache: str, label: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            cwd=Path(__file__).resolve().parent.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for what, seconds in json.loads(done.stdout).items():
            samples.setdefault(f"{what}, {label}", []).append(seconds)

    for _ in range(settings.cold_starts):
        with tempfile.TemporaryDirectory() as cache:
            measure(cache, "empty cache")
    with tempfile.TemporaryDirectory() as cache:
        for repetition in range(settings.warm_starts + 1):
            measure(cache, "filled cache" if repetition else "empty cache")
    return [summary("start-up", name, "s", values) for name, values in samples.items()]


# ------------------------------------------------------------------------------------ the report


def summary(group: str, name: str, unit: str, samples: list[float]) -> Result:
    """Median and extremes of some samples."""
    return Result(
        group, name, unit, statistics.median(samples), min(samples), max(samples), samples
    )


def measure_rates(cases: Sequence[Case], settings: Settings, console: Console) -> list[Result]:
    """Goes through all cases again and again; ratios are taken within a repetition."""
    rates: dict[str, list[float]] = {case.name: [] for case in cases}
    rounds = [case for _ in range(settings.repetitions) for case in cases]
    for case in track(rounds, description="measuring", console=console, transient=True):
        rates[case.name].append(case.run(settings.seconds))
    results: list[Result] = []
    for case in cases:
        plain = summary(case.group, case.name, "decisions/s", rates[case.name])
        if case.reference is None:
            results.append(plain)
            continue
        pairs = zip(rates[case.name], rates[case.reference], strict=True)
        ratio = statistics.median(rate / reference for rate, reference in pairs)
        results.append(replace(plain, reference=case.reference, ratio=ratio))
    return results


def processor() -> str:
    """The processor's name where the system tells it."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of what was measured; a library that is not there is left out."""
    found = {"python": platform.python_version()}
    for name in ("schnapsen-env", "numpy", "numba", "pettingzoo", "open_spiel", "rlcard"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def load() -> list[float] | None:
    """The one, five and fifteen minute load averages where the system has them."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def amount(value: float, unit: str) -> str:
    """A figure as people read it."""
    return f"{value:.3f} s" if unit == "s" else f"{value:,.0f}"


def tables(results: Sequence[Result]) -> list[Table]:
    """A table for each group, in the order of measuring."""
    titles = {
        "rules": "Rules alone, decisions/s, one core",
        "batch": "Batch environment, step with observation and mask, decisions/s",
        "floor": "Memory-write floor: the same rows copied from the cache, rows/s",
        "one at a time": "One decision at a time from Python, decisions/s",
        "start-up": "Start-up",
    }
    shown: list[Table] = []
    for group, title in titles.items():
        table = Table(title=title, title_justify="left")
        for column in ("", "median", "lowest", "highest", "ratio", "to"):
            table.add_column(column, justify="left" if column in ("", "to") else "right")
        for result in results:
            if result.group == group:
                table.add_row(
                    result.name,
                    *(amount(x, result.unit) for x in (result.median, result.low, result.high)),
                    "" if result.ratio is None else f"{result.ratio:.2f}",
                    result.reference or "",
                )
        if table.rows:
            shown.append(table)
    return shown


def main(settings: Settings) -> None:
    """Measures everything, shows it, and writes it to ``settings.json``."""
    if settings.json is not None:
        check_writable(settings.json)
    console = Console()
    before = load()
    python, missing = python_cases(settings)
    cases = [rules_alone(settings), *batch_cases(settings), *python]
    results = [*measure_rates(cases, settings, console), *start_up(settings)]
    report = {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.system()},
        "load_average": {"before": before, "after": load()},
        "versions": versions(),
        "settings": {**asdict(settings), "json": None},
        "not_measured": missing,
        "results": [asdict(result) for result in results],
    }
    console.print(*tables(results), sep="\n")
    for line in missing:
        console.print(f"not measured - {line}; {BENCH_EXTRA} brings it", markup=False)
    console.print(
        f"{report['machine']}, load average {report['load_average']}, {report['versions']}"
    )
    if settings.json is not None:
        write_json_file(report, settings.json)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
