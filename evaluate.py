"""Agents on the same cards, each deal twice with seats swapped, and figures with 95 % intervals.

    python evaluate.py heuristic random --rules pagat_auto --deals 2000 --seed 7 --json out.json
    python evaluate.py --league ppo:runs/quick heuristic random --json league.json

docs/evaluation.md explains every figure, the JSON files, and how to evaluate an agent of your own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agents import AgentError
from agents.evaluation import (
    Contest,
    League,
    check_writable,
    evaluate_contest,
    play_league,
    prepare,
    prepare_league,
    render,
    render_league,
    write_json,
    write_json_file,
)
from agents.evaluation.picture import check_picture, draw_league
from agents.evaluation.variance import check as check_variance_reduction

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console, Group

    from agents.evaluation.league import Rating

#: Exit codes: the command is wrong and nothing was played; or an agent has failed or played
#: something illegal, or the file could not be written; or Ctrl-C, by the number that shells know.
WRONG_COMMAND, FAILED, INTERRUPTED = 2, 1, 130

Advance = Callable[[int], object]
#: Columns of a screen that holds any table.
_UNLIMITED = 100_000


@dataclass(frozen=True)
class Command:
    """The command line."""

    agents: tuple[str, ...]
    league: bool
    rules: str
    episode: Literal["deal", "match"]
    deals: int
    seed: int
    json: Path | None
    picture: Path | None
    endgame_regret: bool
    variance_reduction: bool
    own_playouts: bool


def parse(
    a: str | None = None,
    b: str | None = None,
    /,
    *,
    league: tuple[str, ...] = (),
    rules: str = "pagat_auto",
    episode: Literal["deal", "match"] = "deal",
    deals: int = 2000,
    seed: int = 0,
    json: Path | None = None,
    picture: Path | None = None,
    endgame_regret: bool = False,
    variance_reduction: bool = False,
    own_playouts: bool = False,
) -> Command:
    """Let agents play the same cards twice, with seats swapped, and compare them.

    Args:
        a: A, the agent in question: random, heuristic, rdeep, pimc:worlds=20,
            ismcts:iterations=1000, ppo:path, python:module:Class and others, see docs/agents.md.
        b: B, the agent that it plays against.
        league: Instead of two agents: two or more, each against each other on the same deals.
        rules: The rule set: a name, also with changes as in duel,must_beat:True.
        episode: Single deals, or matches to the target of the rules (not in a league).
        deals: How many different deals (or matches); each is played twice in every pairing.
        seed: Of the cards and of the agents; the same seed gives the same result.
        json: Write the figures to this file as well; an existing one is replaced.
        picture: Draw the league into this file: png, svg or pdf.
        endgame_regret: Also measure the game points lost against exact play in the exhausted phase.
        variance_reduction: Also take the luck of the draws out of the mean; costs some 4 ms a deal.
        own_playouts: For variance reduction: the agents themselves play where the heuristic player
            sits in for them. Sharper, and costs some 130 times the play: for fast agents.
    """
    agents = league or tuple(agent for agent in (a, b) if agent is not None)
    command = Command(
        agents,
        bool(league),
        rules,
        episode,
        deals,
        seed,
        json,
        picture,
        endgame_regret,
        variance_reduction,
        own_playouts,
    )
    _check_combination(command, alone=a is None)
    return command


def _check_combination(command: Command, *, alone: bool) -> None:
    """Find options that do not go together.

    Raises:
        ValueError: the message says which.
    """
    if command.own_playouts and not command.variance_reduction:
        raise ValueError("--own-playouts belongs to --variance-reduction: give both")
    if not command.league:
        if len(command.agents) < 2:
            raise ValueError("name two agents, A and B, or a league: --league A B C")
        if command.picture is not None:
            raise ValueError("--picture draws a league: name the agents with --league A B C")
        return
    if not alone:
        raise ValueError("name two agents or a --league, not both")
    if command.json and command.picture and command.json.resolve() == command.picture.resolve():
        raise ValueError(f"--json and --picture are both {command.json}: name two files")
    if command.episode != "deal":
        raise ValueError("a league is of single deals: leave --episode out")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (those of the process if None); the exit code.

    Raises:
        SystemExit: the arguments cannot be parsed (code 2), or ask for help (code 0).
    """
    try:
        import tyro
        from rich.console import Console
    except ModuleNotFoundError as error:
        return _complain(
            f"this command needs {error.name}: pip install -e '.[play]'", WRONG_COMMAND
        )
    try:
        command = tyro.cli(parse, prog="evaluate.py", args=arguments)
        contests = _prepare(command)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        return _complain(str(error), WRONG_COMMAND)
    try:
        if command.league:
            return _run_league(command, contests, Console())
        return _run_duel(command, contests[0], Console())
    except (AgentError, OSError, KeyboardInterrupt) as error:
        return _complain(_reason(error), _code(error))


def _prepare(command: Command) -> tuple[Contest, ...]:
    """Check everything that can be checked before the first deal.

    Raises:
        ValueError, OSError, ModuleNotFoundError: something is wrong; the message says what.
    """
    if command.json is not None:
        check_writable(command.json)
    if command.picture is not None:
        check_picture(command.picture)
    if command.league:
        return prepare_league(
            command.agents,
            rules=command.rules,
            deals=command.deals,
            seed=command.seed,
            variance_reduction=command.variance_reduction,
            own_playouts=command.own_playouts,
        )
    contest = prepare(
        *command.agents,
        rules=command.rules,
        episode=command.episode,
        deals=command.deals,
        seed=command.seed,
    )
    if command.variance_reduction:
        check_variance_reduction(contest, own_playouts=command.own_playouts)
    return (contest,)


@contextmanager
def _bar(plays: int) -> Generator[Advance]:
    """A bar on the error stream, and only where somebody watches it."""
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("playing", total=plays)
        yield lambda ended: bar.advance(task, ended)


def _run_duel(command: Command, contest: Contest, console: Console) -> int:
    with _bar(2 * contest.pairs) as advance:
        evaluation = evaluate_contest(
            contest,
            endgame_regret=command.endgame_regret,
            variance_reduction=command.variance_reduction,
            own_playouts=command.own_playouts,
            progress=advance,
        )
    # The file first: nobody may be listening any more.
    if command.json is not None:
        write_json(evaluation, command.json)
    _show(render(evaluation), console)
    return 0


def _show(figures: Group, console: Console) -> None:
    """Print tables whole, however narrow the screen is, or the file that takes its place."""
    from rich.table import Table

    unlimited = console.options.update(width=_UNLIMITED)
    tables = [part for part in figures.renderables if isinstance(part, Table)]
    widths = [console.measure(table, options=unlimited).maximum for table in tables]
    console.width = max(console.width, *widths)
    console.print(figures)


def _run_league(command: Command, contests: Sequence[Contest], console: Console) -> int:
    """Play the league; what is finished when it fails or is interrupted is shown and kept."""
    finished: list[League] = []
    ratings: tuple[Rating, ...] | None = None
    problems: list[str] = []
    code = 0
    try:
        _play_league(command, contests, finished)
    except (AgentError, OSError, KeyboardInterrupt) as error:
        if not finished:
            raise
        problems.append(f"{_reason(error)}; the pairings finished before are kept")
        code = max(code, _code(error))
    league = finished[-1]
    try:
        ratings = league.ratings()
    except KeyboardInterrupt as error:
        problems.append(f"{_reason(error)}; the pairings are kept, without ratings")
        code = max(code, _code(error))
    # Neither file depends on the other, and the tables on none.
    if command.json is not None:
        try:
            write_json_file(league.to_dict(ratings), command.json)
        except (OSError, KeyboardInterrupt) as error:
            problems.append(_reason(error))
            code = max(code, _code(error))
    if command.picture is not None:
        try:
            draw_league(league, ratings, command.picture)
        except (OSError, KeyboardInterrupt) as error:
            problems.append(_reason(error))
            code = max(code, _code(error))
    _show(render_league(league, ratings), console)
    for problem in problems:
        _complain(problem, code)
    return code


def _play_league(command: Command, contests: Sequence[Contest], finished: list[League]) -> None:
    """Play the pairings, and add the league to ``finished``, and to its file, after each."""

    def keep(league: League) -> None:
        finished.append(league)
        if command.json is not None:
            write_json_file(league.to_dict(None), command.json)

    with _bar(2 * sum(contest.pairs for contest in contests)) as advance:
        play_league(
            contests,
            endgame_regret=command.endgame_regret,
            variance_reduction=command.variance_reduction,
            own_playouts=command.own_playouts,
            progress=advance,
            after_pairing=keep,
        )


def _code(error: AgentError | OSError | KeyboardInterrupt) -> int:
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED


def _reason(error: AgentError | OSError | KeyboardInterrupt) -> str:
    """Why something ended, in words."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError):
        # What is written to without a name is the screen, or where it has been sent to.
        return f"cannot write {error.filename or 'the standard output'}: {error.strerror}"
    return str(error)


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"evaluate.py: error: {message}\n")
    return code


if __name__ == "__main__":
    # As with `python -m`: python:module:Class finds modules of the folder one stands in.
    sys.path.append(str(Path.cwd()))
    raise SystemExit(main())
