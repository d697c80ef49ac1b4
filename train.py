"""Train a player by self-play.

    python train.py --config configs/quick.yaml
    python train.py --config configs/ppo.yaml --seed 2 --run-dir runs/second
    python train.py --resume runs/second

docs/training.md explains settings, files, log and figures.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.ppo import Config

# Everything else is imported where it is used. A missing library can then be named, and torch,
# which takes seconds to load, comes only when the command is known to make sense.

#: Exit codes, beside 0: the run has failed; the command is wrong and nothing was trained; stopped
#: by a signal (plus its number, as shells count).
FAILED, WRONG_COMMAND, STOPPED = 1, 2, 128


def parse(arguments: Sequence[str]) -> tuple[Config, Path | None]:
    """The configuration that a command line asks for, and the run to resume, if any.

    Raises:
        ConfigError: a file or a value that cannot be used.
        CheckpointError, RunDirError: there is nothing to resume.
        SystemExit: an argument that does not exist, or ``--help``.
    """
    import tyro

    from agents.ppo.config import Config, ConfigError, read_config

    sources = argparse.ArgumentParser(prog="train.py", add_help=False, allow_abbrev=False)
    sources.add_argument("--config", type=Path)
    sources.add_argument("--resume", type=Path)
    known, rest = sources.parse_known_args(arguments)
    if known.config is not None and known.resume is not None:
        raise ConfigError("--resume takes the configuration from the run: leave --config out")
    base = Config()
    if known.config is not None:
        base = read_config(known.config)
    if known.resume is not None:
        from agents.ppo.trainer import resumed_config

        base = resumed_config(known.resume)
    description = (
        "Train a player by self-play. --config FILE reads settings from a YAML file, --resume "
        "RUN_DIR continues a run; the settings below override both."
    )
    config = tyro.cli(Config, args=rest, default=base, prog="train.py", description=description)
    if known.resume is not None and config.run_dir != base.run_dir:
        raise ConfigError("a resumed run stays where it is: leave --run-dir out")
    return config, known.resume


def train(config: Config, resume: Path | None) -> int:
    """Run the training to its end, or until a signal asks to stop; the exit code.

    Raises:
        ConfigError, CheckpointError, RunDirError: it cannot begin.
        NonFiniteLossError, NothingToLearnError, AgentError, OSError: it has failed.
    """
    from agents.ppo.trainer import EVALUATION_FILE, Outcome, Trainer, stop_on_signal

    with stop_on_signal() as stop:
        trainer = Trainer.start(config) if resume is None else Trainer.resume(resume, config)
        run_dir, learner = trainer.run_dir, trainer.learner
        trainer.say(f"{run_dir}: rules {config.rules}, seed {config.seed}, {learner.device}")
        outcome = trainer.run(stop)
        if outcome is Outcome.STOPPED or (stop and config.final_eval_deals):
            # Also in the last iteration: whoever asks to stop does not wait for an evaluation.
            trainer.say(
                f"stopped and saved after {learner.timesteps:,} decisions; "
                f"continue with: python train.py --resume {run_dir}"
            )
            return STOPPED + (stop.signal or signal.SIGINT)
    trainer.say(f"trained on {learner.timesteps:,} decisions")
    if config.final_eval_deals:
        trainer.final_evaluation()
        trainer.say(f"the figures are in {run_dir / EVALUATION_FILE}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process if None); the exit code.

    Raises:
        SystemExit: an argument that does not exist (code 2), or ``--help`` (code 0).
    """
    try:
        return _parse_and_train(sys.argv[1:] if arguments is None else arguments)
    except ModuleNotFoundError as error:
        return _complain(
            f"training needs the library {error.name!r}, which is not installed: "
            "pip install -e '.[train]'",
            WRONG_COMMAND,
        )
    except KeyboardInterrupt:
        return _complain(
            "interrupted at once; checkpoints that were written are whole", STOPPED + signal.SIGINT
        )


def _parse_and_train(arguments: Sequence[str]) -> int:
    from agents.base import AgentError
    from agents.ppo.errors import (
        CheckpointError,
        ConfigError,
        NonFiniteLossError,
        NothingToLearnError,
        RunDirError,
    )

    try:
        return train(*parse(arguments))
    except (ConfigError, CheckpointError, RunDirError) as error:
        return _complain(str(error), WRONG_COMMAND)
    except (NonFiniteLossError, NothingToLearnError, AgentError) as error:
        return _complain(str(error), FAILED)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _complain(f"out of memory ({error}): lower num_envs or num_steps", FAILED)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return _complain(f"{error.strerror or error}{place}", FAILED)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether numpy or torch, which has words for it instead of a class, lacks memory."""
    return isinstance(error, MemoryError) or any(
        words in str(error)
        for words in (
            "can't allocate memory",
            "out of memory",
            "Storage size calculation overflowed",
        )
    )


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"train.py: {message}\n")
    return code


if __name__ == "__main__":
    # As with `python -m`: python:module:Class finds modules of the folder one stands in.
    sys.path.append(str(Path.cwd()))
    sys.exit(main())
