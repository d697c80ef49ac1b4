"""A whole run: iterations, log, evaluations, checkpoints, and how it ends."""

from __future__ import annotations

import errno
import shutil
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import torch
from filelock import FileLock, Timeout
from rich.console import Console

from agents.base import AgentError
from agents.evaluation import evaluate
from agents.files import write_json_file
from agents.ppo.agent import PPOAgent
from agents.ppo.checkpoint import (
    CHECKPOINTS_DIR,
    INFO_FILE,
    LATEST_FILE,
    CheckpointInfo,
    find_checkpoint,
    read_checkpoint,
    read_training,
    save_checkpoint,
)
from agents.ppo.config import (
    FIXED_ON_RESUME,
    PAST,
    Config,
    config_from_dict,
    config_to_dict,
    read_config,
    write_config,
)
from agents.ppo.errors import (
    CheckpointError,
    ConfigError,
    NonFiniteLossError,
    NothingToLearnError,
    RunDirError,
)
from agents.ppo.learner import Learner
from agents.ppo.logger import MetricsLog, Screen, check_tensorboard
from agents.ppo.watching import OPPONENTS, watch
from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.hidden import HIDDEN_SIZE
from schnapsen_env.observation import LAYOUT_VERSION, Layout
from schnapsen_env.rules import resolve_rules

CONFIG_FILE: Final = "config.yaml"
EVALUATION_FILE: Final = "evaluation.json"
#: What the deals of evaluations have beyond the seed, to differ from all others of the run.
_EVAL_STREAM: Final = 2
#: Locked while somebody trains in the folder.
LOCK_FILE: Final = ".lock"
#: Written, and removed at once, to see whether a folder can be written to.
_PROBE_FILE: Final = ".probe"

#: Beyond the checkpoints: logs, TensorBoard files, the evaluation.
_ROOM_FOR_LOGS: Final = 50 * 2**20
#: Weights and Adam's two moments.
_BYTES_PER_WEIGHT: Final = 12
#: An earlier self, or the magnet.
_BYTES_PER_COPY: Final = 4


class Outcome(Enum):
    """How :meth:`Trainer.run` ended."""

    FINISHED = "finished"
    STOPPED = "stopped"


@dataclass
class StopRequest:
    """Set by the first SIGINT or SIGTERM; the run stops after the iteration at hand."""

    signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def stop_on_signal() -> Generator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a :class:`StopRequest`; a second one ends at once."""
    request = StopRequest()
    caught = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in caught}

    def note(number: int, _frame: FrameType | None) -> None:
        request.signal = signal.Signals(number)
        for each in caught:
            signal.signal(each, before[each])

    for number in caught:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number in caught:
            signal.signal(number, before[number])


def lock_run_dir(run_dir: Path) -> FileLock:
    """Keep every other process from training in a folder, until the lock is released.

    Raises:
        RunDirError: another process trains there, or the folder is not there or cannot be written
            to.
    """
    if not run_dir.is_dir():
        raise RunDirError(f"run_dir {run_dir}: there is no such folder")
    try:
        # Of the process and not of a thread: a run may go on in another one.
        lock = FileLock(run_dir / LOCK_FILE, timeout=0, thread_local=False)
        lock.acquire()
    except Timeout as error:
        raise RunDirError(
            f"run_dir {run_dir}: another process is training there; wait for it, or choose another "
            "--run-dir"
        ) from error
    except OSError as error:
        raise RunDirError(f"cannot write to run_dir {run_dir}: {error.strerror}") from error
    return lock


def make_run_dir(config: Config) -> Path:
    """Make the folder of a new run.

    Raises:
        RunDirError: it holds something already, or cannot be made.
    """
    run_dir = Path(config.run_dir)
    if run_dir.exists() and (not run_dir.is_dir() or _holds_something(run_dir)):
        advice = "choose another --run-dir, or delete it"
        if (run_dir / LATEST_FILE).exists():
            advice = f"continue it with --resume {run_dir}, or choose another --run-dir"
        raise RunDirError(f"run_dir {run_dir} exists and is not empty: {advice}")
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(f"cannot write to run_dir {run_dir}: {error.strerror}") from error
    return run_dir


def check_new_run_dir(config: Config) -> Path:
    """Make the folder of a new run, and see that it can hold the run.

    Raises:
        RunDirError: it holds something already, cannot be made or written to, or the disk is full.
    """
    run_dir = make_run_dir(config)
    probe = run_dir / _PROBE_FILE
    try:
        probe.write_bytes(b"\0" * 4096)
        probe.unlink()
        free = shutil.disk_usage(run_dir).free
    except OSError as error:
        raise RunDirError(f"cannot write to run_dir {run_dir}: {error.strerror}") from error
    needed = _bytes_needed(config)
    if free < needed:
        raise RunDirError(
            f"run_dir {run_dir}: the disk has {free / 2**20:,.0f} MB left, the run may need "
            f"{needed / 2**20:,.0f} MB"
        )
    return run_dir


def _holds_something(run_dir: Path) -> bool:
    """Whether there is anything in a folder beside what an earlier try has left."""
    return any(path.name not in (LOCK_FILE, _PROBE_FILE) for path in run_dir.iterdir())


def _bytes_needed(config: Config) -> int:
    features = Layout(suits=config.suits).size
    network = _weights_of(features, *config.hidden_sizes, NUM_ACTIONS + 1)
    critic = 0
    if config.critic == "state":
        critic = _weights_of(features + HIDDEN_SIZE, *config.critic_hidden_sizes, 1)
    copies = (config.past_selves if PAST in config.opponents else 0) + (config.magnet_coef > 0)
    checkpoint = (
        (network + critic) * _BYTES_PER_WEIGHT
        + network * copies * _BYTES_PER_COPY
        + config.num_envs * 8 * engine.RECORD_SIZE
    )
    # At most one in each iteration.
    interval = max(config.checkpoint_interval, config.batch_size)
    written = -(-config.num_iterations * config.batch_size // interval)
    kept = min(config.keep_checkpoints or written, written)
    # One more, since the oldest goes when the newest is there.
    return (kept + 1) * checkpoint + _ROOM_FOR_LOGS


def _weights_of(*sizes: int) -> int:
    """The weights and biases of layers of these widths."""
    return sum((before + 1) * after for before, after in pairwise(sizes))


@contextmanager
def _released_on_failure(lock: FileLock) -> Generator[None]:
    try:
        yield
    except BaseException:
        lock.release()
        raise


@dataclass
class Trainer:
    """One run in progress. Made by :meth:`start` or :meth:`resume`.

    Args:
        config: the settings in effect.
        run_dir: its folder.
        learner: what learns.
        lock: keeps other processes out of the folder, until :meth:`run` ends.
        seconds: processor time that earlier sessions of the run took.
        saved_at: decisions at the newest checkpoint, or -1.
    """

    config: Config
    run_dir: Path
    learner: Learner
    lock: FileLock
    seconds: float = 0.0
    saved_at: int = -1
    console: Console = field(default_factory=lambda: Console(stderr=True))

    def __post_init__(self) -> None:
        self.rules = resolve_rules(self.config.rules)
        entropy = np.random.SeedSequence([self.config.seed, _EVAL_STREAM])
        #: Of the deals of all evaluations in this run, so that its curve compares like with like.
        self.eval_seed = int(entropy.generate_state(1)[0])
        self._seconds_at_start = time.process_time()

    @classmethod
    def start(cls, config: Config) -> Trainer:
        """A new run.

        Raises:
            RunDirError: its folder cannot be used.
            ConfigError: the device, an opponent or the initial weights are not there.
            ModuleNotFoundError: TensorBoard is wanted and not installed.
        """
        lock = lock_run_dir(make_run_dir(config))
        with _released_on_failure(lock):
            # Looks again, since another process may have been there in between.
            run_dir = check_new_run_dir(config)
            # First what may be refused, so that the folder is still free for the corrected command.
            if config.tensorboard:
                check_tensorboard()
            learner = Learner(config)
            write_config(config, run_dir / CONFIG_FILE)
        return cls(config, run_dir, learner, lock)

    @classmethod
    def resume(cls, run_dir: Path, config: Config) -> Trainer:
        """The run in ``run_dir``, from its latest checkpoint.

        Args:
            run_dir: its folder.
            config: its settings, from :func:`resumed_config`, with what is to be changed.

        Raises:
            CheckpointError: there is no checkpoint, or it is damaged.
            ConfigError: a setting is changed that cannot be.
            ModuleNotFoundError: TensorBoard is wanted and not installed.
            RunDirError: another process trains there, or there is no such folder.
        """
        lock = lock_run_dir(run_dir)
        with _released_on_failure(lock):
            folder = find_checkpoint(run_dir)
            info, weights = read_checkpoint(folder)
            check_changes(config_from_dict(info.config, str(folder)), config)
            state = read_training(folder)
            if config.tensorboard:
                check_tensorboard()
            learner = Learner(config, fresh=False)
            try:
                learner.restore(
                    {name: torch.as_tensor(array) for name, array in weights.items()}, state
                )
                seconds = float(state["seconds"])
            except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
                raise CheckpointError(f"{folder} cannot be continued: {error}") from error
            trainer = cls(config, run_dir, learner, lock, seconds, learner.timesteps)
            if learner.iteration < config.num_iterations:
                write_config(config, run_dir / CONFIG_FILE)
            else:  # settings with which nothing is learnt are not those of the run
                trainer.say(
                    f"nothing is left to train: {learner.timesteps:,} decisions are made, and "
                    f"total_timesteps={config.total_timesteps:,} asks for no more"
                )
        return trainer

    def say(self, text: str) -> None:
        """Print a line, without breaking it: paths and commands are to be copied."""
        self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    # ------------------------------------------------------------------------------------- loop

    def run(self, stop: StopRequest | None = None, until: int | None = None) -> Outcome:
        """Train to the end of the run, or until asked to stop; either way a checkpoint is written.

        Args:
            stop: checked after each iteration.
            until: stop after this many decisions of the run.

        Raises:
            NonFiniteLossError: training has failed; the message names the last good checkpoint.
            NothingToLearnError: opponents took all decisions of an iteration; likewise.
            AgentError: an opponent has failed; likewise.
            OSError: the disk is full or gone; likewise.
            RunDirError: another process trains in the folder by now.
        """
        learner, config = self.learner, self.config
        if not self.lock.is_locked:
            self.lock = lock_run_dir(self.run_dir)
        total = config.num_iterations * config.batch_size
        try:
            with (
                MetricsLog(self.run_dir, learner.timesteps, config.tensorboard) as log,
                Screen(self.console, total, learner.timesteps) as screen,
            ):
                while learner.iteration < config.num_iterations:
                    if stop or (until is not None and learner.timesteps >= until):
                        break
                    metrics, evaluated = self._iterate()
                    if learner.iteration % config.log_interval == 0 or evaluated:
                        log.write(learner.timesteps, metrics)
                    screen.show(learner.timesteps, metrics, evaluated)
                    if self._is_due(config.checkpoint_interval):
                        self.save()
            if self.saved_at != learner.timesteps:
                self.save()
        except (NonFiniteLossError, NothingToLearnError, AgentError) as error:
            raise type(error)(f"{error}; {self._last_good()}") from error
        except OSError as error:
            raise OSError(
                error.errno or errno.EIO,
                f"cannot write to {self.run_dir}: {error.strerror or error}; {self._last_good()}",
            ) from error
        finally:
            self.lock.release()
        done = learner.iteration >= config.num_iterations
        return Outcome.FINISHED if done else Outcome.STOPPED

    def _iterate(self) -> tuple[dict[str, float], bool]:
        """One iteration, and an evaluation if one is due; the metrics, and whether it was."""
        start = time.perf_counter()
        metrics, counts = self.learner.iterate()
        metrics["charts/SPS"] = self.config.batch_size / (time.perf_counter() - start)
        metrics["charts/cpu_seconds"] = self._cpu_seconds()
        metrics |= {f"selfplay/{name}": value for name, value in counts.rates().items()}
        due = self._is_due(self.config.eval_interval)
        if due:
            metrics |= watch(self.agent(), self.rules, self.config.eval_deals, self.eval_seed)
        return metrics, due

    def _is_due(self, interval: int) -> bool:
        """Whether something that happens every ``interval`` decisions is due; 0 for never."""
        return bool(interval) and self.learner.has_passed(interval)

    def _cpu_seconds(self) -> float:
        return self.seconds + time.process_time() - self._seconds_at_start

    def _last_good(self) -> str:
        try:
            folder = find_checkpoint(self.run_dir)
        except CheckpointError:
            return "there is no checkpoint yet"
        return (
            f"the last good checkpoint is {folder} (--resume {self.run_dir} goes on from it, with "
            f"the settings in {CONFIG_FILE} there)"
        )

    # ------------------------------------------------------------------------------ what it gives

    def agent(self) -> PPOAgent:
        """The agent that plays with the weights of this moment."""
        return PPOAgent(self.learner.weights(), self.learner.layout)

    def save(self) -> Path:
        """Write a checkpoint and make it the latest; returns its folder.

        Raises:
            OSError: it cannot be written.
        """
        info = CheckpointInfo(
            rules=asdict(self.rules),
            layout_version=LAYOUT_VERSION,
            suits=self.config.suits,
            features=self.learner.layout.size,
            hidden_sizes=self.config.hidden_sizes,
            seed=self.config.seed,
            timesteps=self.learner.timesteps,
            config=config_to_dict(self.config),
        )
        training = self.learner.state() | {"seconds": self._cpu_seconds()}
        folder = save_checkpoint(
            self.run_dir, info, self.learner.weights(), training, self.config.keep_checkpoints
        )
        self.saved_at = info.timesteps
        return folder

    def final_evaluation(self) -> dict[str, Any]:
        """Play the final paired deals and write ``evaluation.json``.

        Returns:
            For each opponent what :meth:`agents.evaluation.Evaluation.to_dict` gives.
        """
        results: dict[str, Any] = {}
        for opponent in OPPONENTS:
            result = evaluate(
                self.agent(),
                opponent,
                rules=self.rules,
                deals=self.config.final_eval_deals,
                seed=self.eval_seed,
            )
            results[opponent] = result.to_dict()
            closes = result.habits[0].closes
            won = result.habits[0].closes_won
            success = f", {won.value:.0%} of them won" if won else ""
            self.say(
                f"against {opponent}: {result.game_points.value:+.3f} +- "
                f"{result.game_points.ci95:.3f} game points a deal, "
                f"closes {closes.value:.0%} of deals{success}"
            )
        summary = {
            "timesteps": self.learner.timesteps,
            "cpu_seconds": self._cpu_seconds(),
            "opponents": results,
        }
        write_json_file(summary, self.run_dir / EVALUATION_FILE)
        return summary


# ------------------------------------------------------------------------------------ resuming


def resumed_config(run_dir: Path) -> Config:
    """The settings that the run in ``run_dir`` goes on with.

    They are those of its ``config.yaml``. It may have been edited, and it also holds what an
    earlier resumption has changed that did not live to write a checkpoint. Without that file they
    are those of the latest checkpoint.

    Raises:
        RunDirError: there is no such folder.
        CheckpointError: the run has no checkpoint, or it is damaged.
        ConfigError: the settings are of another version of this program, or a setting was edited
            that no run can change.
    """
    if not run_dir.is_dir():
        raise RunDirError(f"cannot resume {run_dir}: there is no such folder")
    if (run_dir / INFO_FILE).is_file():
        raise RunDirError(
            f"cannot resume {run_dir}: it is a checkpoint; give the folder of its run, which goes "
            f"on from the checkpoint that its file {LATEST_FILE!r} names"
        )
    if (run_dir.parent / CHECKPOINTS_DIR).resolve() == run_dir.resolve():
        raise RunDirError(
            f"cannot resume {run_dir}: it holds the checkpoints of a run; give the folder of the "
            f"run, {run_dir.parent}"
        )
    if not _checkpoints(run_dir):
        raise RunDirError(f"cannot resume {run_dir}: the run has no checkpoint; begin it anew")
    try:
        folder = find_checkpoint(run_dir)
        info, _ = read_checkpoint(folder)
        read_training(folder)
    except CheckpointError as error:
        raise CheckpointError(f"{error}{_other_checkpoints(run_dir)}") from error
    config = config_from_dict(info.config, str(folder))
    settings = run_dir / CONFIG_FILE
    if settings.exists():
        written = read_config(settings, base=config)
        try:
            check_changes(config, written)
        except ConfigError as error:
            raise ConfigError(f"{settings}: {error}") from error
        config = written
    return replace(config, run_dir=str(run_dir))


def _other_checkpoints(run_dir: Path) -> str:
    """What can be done about a damaged checkpoint, if there are others."""
    latest = run_dir / LATEST_FILE
    damaged: set[str] = set()
    if latest.is_file():  # a run that was killed before it wrote this file may have checkpoints
        damaged = {latest.read_text(encoding="utf-8", errors="replace").strip()}
    names = sorted(_checkpoints(run_dir) - damaged)
    if not names:
        return ""
    another = "another one" if damaged else "one that is there"
    return f"; to go on from {another}, write its name into {latest}: {', '.join(names)}"


def _checkpoints(run_dir: Path) -> set[str]:
    """The names of the checkpoints of a run, damaged ones among them."""
    return {path.parent.name for path in run_dir.glob(f"{CHECKPOINTS_DIR}/step-*/{INFO_FILE}")}


def check_changes(before: Config, after: Config) -> None:
    """Refuse changes that no run can go on with.

    Raises:
        ConfigError: the message names the setting.
    """
    for name in FIXED_ON_RESUME:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            raise ConfigError(
                f"a resumed run keeps its {name}: it is {old!r} and cannot become {new!r}"
            )
