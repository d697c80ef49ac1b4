"""Leagues: the same deals for every pairing, ratings, the picture, and what can go wrong."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console

import evaluate as command
from agents import AgentError
from agents.evaluation import Evaluation, League, evaluate, play_league, prepare_league
from agents.evaluation.league import (
    ELO,
    PRIOR_DRAWS,
    Entry,
    Rating,
    by_rating,
    markdown,
    render_league,
)
from agents.evaluation.picture import draw_league
from benchmarks import results
from schnapsen_env import RULES

Floats = npt.NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent

#: Agents of the tests, written to a module that `python:...` specs name.
AGENTS = """
import numpy as np

class First:
    def act(self, observation, action_mask):
        return int(action_mask.argmax())

class Again(First):
    pass

class Raises(First):
    def act(self, observation, action_mask):
        raise ZeroDivisionError("of a test")

class Cheats(First):
    def act(self, observation, action_mask):
        return 26

class Interrupted(First):
    def act(self, observation, action_mask):
        raise KeyboardInterrupt
"""


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "league_agents.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


FIRST = "python:league_agents:First"


@functools.cache
def one_evaluation() -> Evaluation:
    """Of whom does not matter."""
    return evaluate("random", "random", deals=2)


def synthetic(wins: dict[tuple[int, int], Floats], specs: tuple[str, ...]) -> League:
    """A league whose pairings have these shares of won deals."""
    template = one_evaluation()
    deals = len(next(iter(wins.values())))
    entries = tuple(
        Entry(a, b, template, points=2 * share - 1, wins=share) for (a, b), share in wins.items()
    )
    return League(specs, RULES["pagat_auto"], deals, 1, entries)


def elo(ratings: tuple[Rating, ...] | None) -> list[float]:
    assert ratings is not None
    return [rating.elo for rating in ratings]


# -------------------------------------------------------------------------------------- ratings


def test_the_rating_of_two_is_the_log_odds() -> None:
    wins = np.array([1.0] * 60 + [0.5] * 20 + [0.0] * 20)  # 70 of 100
    a, b = elo(synthetic({(0, 1): wins}, ("a", "b")).ratings(resamples=2))
    odds = (70 + PRIOR_DRAWS / 2) / (30 + PRIOR_DRAWS / 2)
    assert a - b == pytest.approx(400 * math.log10(odds), abs=1e-3)
    assert a + b == pytest.approx(0, abs=1e-6)


def test_ratings_are_found_again_from_their_own_probabilities() -> None:
    true = np.array([150.0, 40.0, -30.0, -160.0])
    deals = 200_000
    wins: dict[tuple[int, int], Floats] = {}
    for a in range(4):
        for b in range(a + 1, 4):
            share = 1 / (1 + 10 ** ((true[b] - true[a]) / 400))
            wins[a, b] = np.full(deals, share)
    league = synthetic(wins, ("a", "b", "c", "d"))
    assert elo(league.ratings(resamples=1)) == pytest.approx(true, abs=0.05)


def test_the_interval_is_the_one_of_the_log_odds() -> None:
    rng = np.random.default_rng(5)
    wins = (rng.random(2000) < 0.6).astype(np.float64)
    ratings = synthetic({(0, 1): wins}, ("a", "b")).ratings()
    assert ratings is not None
    share = wins.mean()
    # The delta method for half of the log odds; each of the two has half of the distance.
    expected = 1.96 * ELO / 2 / math.sqrt(2000 * share * (1 - share))
    for rating in ratings:
        assert rating.interval is not None
        low, high = rating.interval
        assert low < rating.elo < high
        assert (high - low) / 2 == pytest.approx(expected, rel=0.12)


def test_an_agent_that_wins_everything_has_a_rating() -> None:
    a, b = elo(synthetic({(0, 1): np.ones(100)}, ("a", "b")).ratings(resamples=2))
    assert a - b == pytest.approx(400 * math.log10(100.5 / 0.5), abs=1e-2)


def rating_rows(league: League) -> list[str]:
    """The lines of the table of ratings."""
    lines = shown(league).splitlines()
    (first,) = [number for number, line in enumerate(lines) if "points a deal" in line][:1]
    return lines[first + 2 :][: len(league.specs)]


@pytest.mark.parametrize("beaten", [{(0, 1), (0, 2), (0, 3)}, {(0, 2), (0, 3), (1, 2), (1, 3)}])
def test_where_some_have_won_everything_no_rating_has_an_interval(
    beaten: set[tuple[int, int]],
) -> None:
    """How far they are ahead cannot be told, though every resample would say the same."""
    even = np.tile([0.0, 1.0], 50)
    pairs = list(itertools.combinations(range(4), 2))
    wins = {pair: np.ones(100) if pair in beaten else even for pair in pairs}
    league = synthetic(wins, ("a", "b", "c", "d"))
    ratings = league.ratings(resamples=20)
    assert ratings is not None
    assert all(rating.interval is None for rating in ratings)
    content = league.to_dict(ratings)
    assert content["ratings"][0]["elo_interval"] is None
    assert "(-)" in markdown(content).splitlines()[2]
    assert not any(" to " in row for row in rating_rows(league))
    # Some deals lost are a bound, and a single one is none: a third of the resamples lack it.
    pair = min(beaten)
    for lost, bounds in ((1, False), (8, True)):
        wins[pair] = np.r_[np.zeros(lost), np.ones(100 - lost)]
        league = synthetic(wins, ("a", "b", "c", "d"))
        assert league.is_bounded() is bounds
        assert all((" to " in row) is bounds for row in rating_rows(league))


def test_no_ratings_before_the_pairings_connect_all() -> None:
    half = np.full(10, 0.5)
    one = synthetic({(0, 1): half}, ("a", "b", "c"))
    assert not one.complete
    assert one.ratings() is None
    assert one.field(2) is None
    two = synthetic({(0, 1): half, (0, 2): half}, ("a", "b", "c"))
    assert elo(two.ratings(resamples=2)) == pytest.approx([0, 0, 0], abs=1e-6)


def difference(league: League, a: int, b: int, resamples: int = 300) -> Floats:
    """The rating of ``a`` less that of ``b`` in each resample, in Elo points."""
    found = league.bootstrap(resamples)
    assert found is not None
    _, samples = found
    return ELO * (samples[:, a] - samples[:, b])


def width(values: Floats) -> float:
    """Of the 95 % interval."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(high - low)


def shuffled(league: League) -> League:
    """The same cells with their deals in different orders, so that no deal is shared."""
    rng = np.random.default_rng(3)
    entries = tuple(replace(entry, wins=rng.permutation(entry.wins)) for entry in league.entries)
    return replace(league, entries=entries)


def test_two_copies_of_an_agent_differ_by_nothing() -> None:
    """Each is uncertain against the third, both in the same way."""
    specs = (FIRST, "python:league_agents:Again", "heuristic")
    league = play_league(prepare_league(specs, deals=150, seed=9))
    copies, first, again = (entry.wins for entry in league.entries)
    assert np.array_equal(copies, np.full(150, 0.5))
    assert np.array_equal(first, again)
    assert np.var(first) > 0
    ratings = league.ratings()
    assert ratings is not None
    assert width(difference(league, 0, 1)) < 1e-3
    for copy in (0, 1):
        assert ratings[copy].elo == pytest.approx(ratings[1 - copy].elo, abs=1e-3)
        interval = ratings[copy].interval
        assert interval is not None
        assert interval[1] - interval[0] > 20
        assert width(difference(league, copy, 2)) > 30
    # Cells of their own deals know nothing of that.
    assert width(difference(shuffled(league), 0, 1)) > 20


def related(rng: np.random.Generator, deals: int = 300) -> League:
    """Two agents that win the same deals against a third, but for every tenth or so."""
    luck = rng.normal(size=deals)
    first, second = (luck + 0.3 * rng.normal(size=deals) > -0.4 for _ in range(2))
    between = np.where(rng.random(deals) < 0.1, rng.integers(0, 2, deals), 0.5)
    wins: dict[tuple[int, int], Floats] = {
        (0, 1): between.astype(np.float64),
        (0, 2): first.astype(np.float64),
        (1, 2): second.astype(np.float64),
    }
    return synthetic(wins, ("a", "b", "c"))


def test_the_interval_of_related_agents_is_as_wide_as_new_leagues_differ() -> None:
    rng = np.random.default_rng(1)
    leagues = [related(rng) for _ in range(200)]
    points = np.array([found[0] for league in leagues if (found := league.bootstrap(0))])
    real = ELO * np.std(points[:, 0] - points[:, 1])
    by_deals = np.mean([np.std(difference(league, 0, 1, 200)) for league in leagues[:10]])
    by_cells = np.mean([np.std(difference(shuffled(league), 0, 1, 200)) for league in leagues[:10]])
    assert by_deals == pytest.approx(real, rel=0.2)
    assert by_cells > 1.5 * real
    # Against the third nothing is won by knowing of each other, and nothing is lost.
    real = ELO * np.std(points[:, 0] - points[:, 2])
    by_deals = np.mean([np.std(difference(league, 0, 2, 200)) for league in leagues[:10]])
    assert by_deals == pytest.approx(real, rel=0.2)


# ----------------------------------------------------------------------------------------- play


def league_of_three() -> League:
    return play_league(prepare_league(("random", "heuristic", FIRST), deals=60, seed=9))


def figures(evaluation: Evaluation) -> dict[str, Any]:
    result = evaluation.to_dict()
    return {key: result[key] for key in ("specs", "mean_game_points", "ci95", "histogram")}


def test_every_pairing_is_what_the_two_would_play_alone() -> None:
    league = league_of_three()
    assert league.complete
    for entry in league.entries:
        a, b = league.specs[entry.first], league.specs[entry.second]
        alone = evaluate(a, b, deals=60, seed=9)
        assert figures(entry.evaluation) == figures(alone)
        assert entry.points.mean() == pytest.approx(alone.game_points.value)
        assert entry.wins.mean() == pytest.approx(alone.win_rate.value)
    for agent in range(3):
        assert league.against(agent, agent) is None
        means: list[float] = []
        for other in {0, 1, 2} - {agent}:
            mean, back = league.against(agent, other), league.against(other, agent)
            assert mean is not None
            assert back is not None
            assert mean.value == -back.value
            means.append(mean.value)
        field = league.field(agent)
        assert field is not None
        assert field.value == pytest.approx(np.mean(means))


def test_variance_reduction_reaches_the_cross_table() -> None:
    contests = prepare_league(("heuristic", "random"), deals=100, variance_reduction=True)
    league = play_league(contests, variance_reduction=True)
    reduction = league.entries[0].evaluation.reduction
    assert reduction is not None
    assert league.against(0, 1) == reduction.game_points
    field = league.field(0)
    assert field is not None
    assert field.value == pytest.approx(reduction.game_points.value)
    value, ci95 = reduction.game_points
    assert ci95 < league.entries[0].evaluation.game_points.ci95
    content = json.loads(json.dumps(league.to_dict(league.ratings(resamples=5))))
    assert f"{value:+.3f} ± {ci95:.3f}" in markdown(content)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Raises", ["ZeroDivisionError: of a test", "agent B", "has failed in act_batch"]),
        ("Cheats", ["agent B", "illegal action claim (26)"]),
    ],
)
def test_an_agent_that_fails_is_named_with_its_pairing(agent: str, words: list[str]) -> None:
    spec = f"python:league_agents:{agent}"
    with pytest.raises(AgentError) as caught:
        play_league(prepare_league(("heuristic", spec), deals=3))
    for word in [f"heuristic against {spec}: ", *words]:
        assert word in str(caught.value)


# --------------------------------------------------------------------------- tables and picture


def shown(league: League, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(render_league(league, league.ratings(resamples=20)))
    return capture.get()


def test_tables_put_the_strongest_first() -> None:
    league = league_of_three()
    ratings = league.ratings(resamples=20)
    assert ratings is not None
    order = by_rating(league, ratings)
    assert order[0] == league.specs.index("heuristic")
    assert elo(ratings)[order[0]] == max(elo(ratings))
    text = shown(league)
    rows = [line.split()[:2] for line in text.splitlines()]
    assert rows.index(["1", "heuristic"]) < rows.index(["2", league.specs[order[1]]])
    mean = league.against(order[0], order[1])
    assert mean is not None
    assert f"{mean.value:+.3f}" in text
    assert f"+- {mean.ci95:.3f}" in text


def test_the_table_of_regrets_is_of_the_agent_on_the_left() -> None:
    contests = prepare_league(("random", "heuristic", FIRST), deals=60, seed=9)
    league = play_league(contests, endgame_regret=True)
    order = by_rating(league, league.ratings(resamples=20))
    table = shown(league, width=120).partition("talon exhausted")[2]
    found = {tuple(line.split()[1:3]): line.split() for line in table.splitlines() if "+-" in line}
    for entry in league.entries:
        assert entry.evaluation.regret is not None
        sides = ((entry.first, entry.second), (entry.second, entry.first))
        for (agent, other), regret in zip(sides, entry.evaluation.regret, strict=True):
            row = found[league.specs[agent], str(order.index(other) + 1)]
            assert row[-2:] == [f"{regret.blunders:,}", f"{regret.choices:,}"]
            assert f"{regret.per_deal.value:.3f}" in row


def test_the_picture_shows_who_won_against_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    league = league_of_three()
    ratings = league.ratings(resamples=20)
    assert ratings is not None
    drawn: list[Any] = []

    def keep(figure: Any, path: Path) -> None:
        path.write_bytes(b"")
        drawn.append(figure)

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", keep)
    draw_league(league, ratings, tmp_path / "league.png")
    table, scale = drawn[0].axes
    order = by_rating(league, ratings)
    names = [label.get_text().split()[0] for label in table.get_yticklabels()]
    assert [name[-9:] for name in names] == [league.specs[agent][-9:] for agent in order]
    cells = {tuple(text.get_position()): text.get_text() for text in table.texts}
    marks = {text.xy[1]: text.get_text() for text in scale.texts}
    for row, agent in enumerate(order):
        assert marks[row] == f"{ratings[agent].elo:+.0f}"
        for column, other in enumerate(order):
            mean = league.against(agent, other)
            text = None if mean is None else f"{mean.value:+.2f}\n± {mean.ci95:.2f}"
            assert cells.get((column, row)) == text


def test_markdown_of_the_file() -> None:
    league = league_of_three()
    ratings = league.ratings(resamples=20)
    content = json.loads(json.dumps(league.to_dict(ratings)))
    lines = markdown(content).splitlines()
    assert len(lines) == 2 + 3
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| `heuristic` | +")
    mean = league.against(1, 0)
    assert mean is not None
    assert f"{mean.value:+.3f} ± {mean.ci95:.3f}" in lines[2]
    interrupted = replace(league, entries=league.entries[:2])
    with pytest.raises(ValueError, match="the league was interrupted"):
        markdown(interrupted.to_dict(interrupted.ratings(resamples=5)))


def test_names_of_agents_are_shown_as_they_are(tmp_path: Path) -> None:
    """Neither as markup of the console nor as formulas of the picture."""
    names = ("ppo:run[/x]", "ppo:run[best]", r"ppo:$\x$y")
    league = replace(league_of_three(), specs=names)
    text = shown(league)
    for name in names:
        assert text.count(name) == 2
    draw_league(league, league.ratings(resamples=5), tmp_path / "league.svg")
    assert (tmp_path / "league.svg").stat().st_size > 1000


def test_json_and_picture_are_two_files(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--league random heuristic --json a.png --picture a.png"
    assert command.main(line.split()) == command.WRONG_COMMAND
    assert "--json and --picture are both a.png: name two files" in capsys.readouterr().err


def test_an_interrupted_league_does_not_replace_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, unfinished = tmp_path / "results", tmp_path / "unfinished"
    monkeypatch.setattr(results, "RESULTS", kept)
    monkeypatch.setattr(results, "UNFINISHED", unfinished)
    kept.mkdir()
    (kept / "league.json").write_text("whole")
    status = command.FAILED

    def played(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        for text in arguments:
            if text.startswith(("--json=", "--picture=")):
                Path(text.partition("=")[2]).write_text("new")
        return subprocess.CompletedProcess(arguments, status)

    monkeypatch.setattr(subprocess, "run", played)
    assert results.main(results.Settings()) == command.FAILED
    assert (kept / "league.json").read_text() == "whole"
    assert (unfinished / "league.json").read_text() == "new"
    assert f"what was finished is in {unfinished}" in capsys.readouterr().err
    status = 0
    assert results.main(results.Settings()) == 0
    assert (kept / "league.json").read_text() == (kept / "league.png").read_text() == "new"


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_picture_is_written_in_one_step(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"league.{suffix}"
    path.write_bytes(b"earlier")
    league = league_of_three()
    draw_league(league, league.ratings(resamples=5), path)
    assert path.read_bytes().startswith(start)
    draw_league(replace(league, entries=league.entries[:1]), None, path)
    assert path.read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == [path.name]


# --------------------------------------------------------------------------------- command line


def test_the_command_writes_file_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = tmp_path / "league.json", tmp_path / "league.png"
    line = f"--league random heuristic {FIRST} --deals 50 --seed 3 --endgame-regret"
    assert command.main([*line.split(), "--json", str(path), "--picture", str(picture)]) == 0
    first = json.loads(path.read_text(encoding="utf-8"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    section = text.partition("## The JSON file of a league")[2].partition("\n## ")[0]
    assert [row.split("`")[1] for row in section.splitlines() if row.startswith("| `")] == [*first]
    assert first["complete"]
    assert first["specs"] == ["random", "heuristic", FIRST]
    assert len(first["pairings"]) == 3
    assert first["pairings"][0]["endgame_regret"]["A"]["decisions"] > 0
    for rating in first["ratings"]:
        low, high = rating["elo_interval"]
        assert low <= rating["elo"] <= high
        assert rating["log_odds"] == pytest.approx(rating["elo"] / ELO)
    assert "Bradley-Terry" in capsys.readouterr().out
    assert command.main([*line.split(), "--json", str(path)]) == 0
    again = json.loads(path.read_text(encoding="utf-8"))
    assert again["ratings"] == first["ratings"]
    assert again["mean_game_points"] == first["mean_game_points"]


@pytest.mark.parametrize(
    ("agent", "words", "code"),
    [
        ("Interrupted", "interrupted", command.INTERRUPTED),
        ("Raises", "ZeroDivisionError: of a test", command.FAILED),
    ],
)
def test_what_was_finished_before_a_failure_is_kept(
    agent: str, words: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "league.json"
    line = f"--league random heuristic python:league_agents:{agent} --deals 20 --json {path}"
    assert command.main(line.split()) == code
    output = capsys.readouterr()
    assert words in output.err
    assert output.err.count("\n") == 1
    assert "1 of 3 pairings were played" in " ".join(output.out.split())
    league = json.loads(path.read_text(encoding="utf-8"))
    assert not league["complete"]
    assert league["ratings"] is None
    assert [pairing["specs"] for pairing in league["pairings"]] == [
        {"A": "random", "B": "heuristic"}
    ]
    alone = evaluate("random", "heuristic", deals=20)
    assert league["pairings"][0]["mean_game_points"] == alone.game_points.value


def test_a_failure_in_the_first_pairing_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "league.json"
    line = f"--league random python:league_agents:Interrupted --deals 20 --json {path}"
    assert command.main(line.split()) == command.INTERRUPTED == 130
    assert "evaluate.py: error: interrupted\n" in capsys.readouterr().err
    assert not path.exists()


def failing_league(
    agents: str, path: Path, capsys: pytest.CaptureFixture[str], code: int = command.FAILED
) -> tuple[str, str]:
    """What a league that fails puts out, and its errors."""
    line = f"--league {agents} --deals 20 --json {path}"
    assert command.main(line.split()) == code
    output = capsys.readouterr()
    return output.out, output.err


def test_an_interruption_of_the_ratings_keeps_the_pairings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(League, "ratings", interrupted)
    path = tmp_path / "league.json"
    text, errors = failing_league("random heuristic", path, capsys, command.INTERRUPTED)
    assert "interrupted; the pairings are kept, without ratings" in errors
    assert "heuristic" in text
    assert json.loads(path.read_text(encoding="utf-8"))["complete"]


def test_a_disk_that_fills_up_leaves_what_was_finished_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[Path] = []

    def fills_up(content: object, path: Path) -> None:
        written.append(path)
        if len(written) > 1:
            raise OSError(28, "No space left on device", str(path))
        assert content

    monkeypatch.setattr(command, "write_json_file", fills_up)
    path = tmp_path / "league.json"
    text, errors = failing_league(f"random heuristic {FIRST}", path, capsys)
    assert f"cannot write {path}: No space left on device; the pairings finished" in errors
    assert "2 of 3 pairings were played" in " ".join(text.split())


def test_tables_are_whole_where_the_screen_is_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And where there is none: what is sent to a file has 80 columns."""
    monkeypatch.setenv("COLUMNS", "40")
    specs = ["random", "heuristic", FIRST, "python:league_agents:Again"]
    assert command.main(["--league", *specs, "--deals", "20"]) == 0
    text = capsys.readouterr().out
    assert "…" not in text
    for spec in specs:
        assert text.count(spec) >= 2  # in the ratings and in the cross table
    # One for each agent, and one for each of twelve cells.
    assert len(re.findall(r"[+-]\d\.\d{3}", text)) >= 16
    assert len(re.findall(r"\+- \d\.\d{3}", text)) >= 16


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--league random", ["two agents or more, not 1"]),
        ("--league random heuristic random", ["'random' is in the league twice"]),
        ("--league random nobody", ["unknown agent 'nobody'"]),
        ("--league random heuristic:x=1", ["no option 'x'"]),
        ("random --league random heuristic", ["not both"]),
        ("--league random heuristic --episode match", ["leave --episode out"]),
        ("--league random heuristic --deals 1", ["deals=1"]),
        ("--league random heuristic --deals 50 --variance-reduction", ["deals=50", "100 or more"]),
        ("--league random heuristic --json no/such/x.json", ["no folder"]),
        ("--league random heuristic --picture no/such/x.png", ["no folder"]),
        ("--league random heuristic --picture x.jpg", ["x.jpg", ".png, .svg"]),
    ],
)
def test_a_wrong_command_is_one_sentence_and_code_2(
    line: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def play_nothing(*_: object, **__: object) -> None:
        pytest.fail("a deal was played")

    monkeypatch.setattr(command, "play_league", play_nothing)
    assert command.main(line.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("evaluate.py: error: ")
    assert output.err.count("\n") == 1
    for word in words:
        assert word in output.err


@pytest.mark.parametrize(
    ("library", "line"),
    [
        ("choix", "--league random heuristic"),
        ("matplotlib.figure", "--league random heuristic --picture x.png"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    library: str,
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    assert command.main(line.split()) == 2
    error = capsys.readouterr().err
    assert library in error
    assert "pip install -e '.[league]'" in error


def test_a_duel_needs_neither_library() -> None:
    code = (
        "import sys, evaluate; evaluate.main('random random --deals 2'.split());"
        "sys.exit(any(name in sys.modules for name in ('choix', 'matplotlib')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
