"""Two agents, the same cards twice with seats swapped, and figures with 95 % intervals.

    python evaluate.py heuristic random --rules pagat_auto --deals 2000 --seed 7 --json out.json

docs/evaluation.md explains every figure, the JSON file, and how to evaluate an agent of your own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents import AgentError
from agents.evaluation import (
    check_json_path,
    evaluate_plays,
    play,
    prepare,
    render,
    write_json,
)

#: Exit codes: the command is wrong and nothing was played; or an agent has failed or played
#: something illegal, or the file could not be written.
WRONG_COMMAND, FAILED = 2, 1


@dataclass(frozen=True)
class Command:
    """The command line."""

    a: str
    b: str
    rules: str
    episode: Literal["deal", "match"]
    deals: int
    seed: int
    json: Path | None


def parse(
    a: str,
    b: str,
    /,
    *,
    rules: str = "pagat_auto",
    episode: Literal["deal", "match"] = "deal",
    deals: int = 2000,
    seed: int = 0,
    json: Path | None = None,
) -> Command:
    """Let two agents play the same cards twice, with seats swapped, and compare them.

    Args:
        a: The agent in question: random, heuristic, ppo:path or python:module:Class.
        b: The agent that it plays against.
        rules: The name of the rule set.
        episode: Single deals, or matches to the target of the rules.
        deals: How many different deals (or matches); each is played twice.
        seed: Of the cards and of the agents; the same seed gives the same result.
        json: Write the figures to this file as well; an existing one is replaced.
    """
    return Command(a, b, rules, episode, deals, seed, json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (those of the process if None); the exit code.

    Raises:
        SystemExit: the arguments cannot be parsed (code 2), or ask for help (code 0).
    """
    try:
        import tyro
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError as error:
        return _complain(
            f"this command needs {error.name}: pip install 'schnapsen-env[train]'", WRONG_COMMAND
        )
    command = tyro.cli(parse, prog="evaluate.py", args=arguments)
    try:
        if command.json is not None:
            check_json_path(command.json)
        contest = prepare(
            command.a,
            command.b,
            rules=command.rules,
            episode=command.episode,
            deals=command.deals,
            seed=command.seed,
        )
    except (ValueError, OSError, ModuleNotFoundError) as error:
        return _complain(str(error), WRONG_COMMAND)
    # The bar goes to the error stream, and only where somebody watches it.
    screen = Console(stderr=True)
    try:
        with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
            task = bar.add_task("playing", total=2 * contest.pairs)
            plays = play(contest, progress=lambda ended: bar.advance(task, ended))
    except AgentError as error:
        return _complain(str(error), FAILED)
    except KeyboardInterrupt:
        return _complain("interrupted, nothing was written", FAILED)
    evaluation = evaluate_plays(plays)
    Console().print(render(evaluation))
    if command.json is not None:
        try:
            write_json(evaluation, command.json)
        except OSError as error:
            return _complain(f"cannot write {command.json}: {error.strerror}", FAILED)
    return 0


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"evaluate.py: error: {message}\n")
    return code


if __name__ == "__main__":
    # As with `python -m`: python:module:Class finds modules of the folder one stands in.
    sys.path.append(str(Path.cwd()))
    raise SystemExit(main())
