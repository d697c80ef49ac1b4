"""The networks that come with the repository: what they claim to be, and that they play.

And the scripts that make the tables and the picture of their strength.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from agents.evaluation import evaluate
from agents.ppo.checkpoint import read_checkpoint
from agents.ppo.config import Config, config_from_dict, config_to_dict, read_config, write_config
from benchmarks import curves, networks
from schnapsen_env import RULES

ROOT = Path(__file__).resolve().parent.parent
#: The configuration that makes the network of a rule set.
CONFIGURATION = dict.fromkeys(RULES, "ppo_duel.yaml") | {"pagat_auto": "ppo.yaml"}
#: What the command beside it in docs/training.md changes, but for rules and folder.
CHANGED: dict[str, dict[str, Any]] = {
    rules: {} if rules in ("duel", "pagat_auto") else {"total_timesteps": 120_000_000}
    for rules in RULES
}
MOST_BYTES = 8_000_000
#: Least game points a deal against random; deals of french are won by less.
LEAST = dict.fromkeys(RULES, 1.5) | {"french": 1.2}


@pytest.fixture(params=RULES)
def rules(request: pytest.FixtureRequest) -> str:
    return request.param


def folder_of(rules: str) -> Path:
    return ROOT / "agents" / "checkpoints" / rules


def test_every_rule_set_has_one() -> None:
    assert {path.name for path in folder_of("duel").parent.iterdir()} == set(RULES)
    assert set(networks.SHIPPED) == set(RULES)


def test_it_is_small_and_holds_what_playing_needs(rules: str) -> None:
    names = {path.name for path in folder_of(rules).iterdir()} - {"training.pt"}
    assert names == {"checkpoint.json", "weights.safetensors"}
    assert sum((folder_of(rules) / name).stat().st_size for name in names) < MOST_BYTES


def test_its_configuration_is_the_one_that_is_said_to_make_it(rules: str) -> None:
    info, _ = read_checkpoint(folder_of(rules))
    kept = config_to_dict(config_from_dict(info.config))
    told = config_to_dict(read_config(ROOT / "configs" / CONFIGURATION[rules]))
    told |= {"rules": rules} | CHANGED[rules]
    # Where it was written to, and how often it was looked at, leave the weights alone.
    watching = {name for name in kept if name.startswith(("eval_", "final_eval", "checkpoint_"))}
    for name in watching | {"run_dir", "log_interval", "tensorboard", "keep_checkpoints"}:
        del kept[name], told[name]
    assert kept == told
    assert info.timesteps >= kept["total_timesteps"]
    assert info.rules == asdict(RULES[rules])


def test_it_beats_the_random_player(rules: str) -> None:
    result = evaluate(f"ppo:{folder_of(rules)}", "random", rules=rules, deals=300, seed=3)
    assert result.game_points.value > LEAST[rules]
    # A random player who must claim soon claims wrongly: there is less to close for.
    assert result.habits[0].closes.value > 0.15


def test_it_is_level_with_the_heuristic_or_better(rules: str) -> None:
    agent = f"ppo:{folder_of(rules)}"
    result = evaluate(agent, "heuristic", rules=rules, deals=2_000, seed=4)
    assert result.game_points.value > 0.1


# ------------------------------------------------------------------ what the README says of them


def figures_of(name: str) -> dict[str, Any]:
    """What evaluate.py wrote; the command is in docs/training.md."""
    return json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def points_text(name: str) -> str:
    figures = figures_of(name)
    # No minus sign before what is rounded to 0.
    points = round(figures["mean_game_points"], 2) + 0.0
    return f"{points:+.2f} ± {figures['ci95']:.2f}"


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "opponent"), networks.games(networks.Settings()), ids=lambda name: name
)
def test_the_files_of_the_table_are_of_the_games_that_it_names(name: str, opponent: str) -> None:
    """The figures themselves are compared by the test of generated tables."""
    figures, entry = figures_of(f"{name}-{opponent}"), networks.ENTRIES[name]
    other = networks.OPPONENTS[opponent]
    assert figures["specs"] == {"A": entry.spec, "B": other.spec}
    assert (figures["rules"], figures["seed"]) == (entry.rules, networks.SEED)
    assert figures["deals"] == networks.LONGER.get((name, opponent), other.deals)


def test_the_readme_has_the_figure_against_the_longer_search() -> None:
    figures = figures_of("pagat_auto-ismcts-4000")
    agent, rules = networks.ENTRIES["pagat_auto"]
    assert figures["specs"] == {"A": agent, "B": "ismcts:iterations=4000"}
    assert figures["rules"] == rules
    text = (
        rf"{re.escape(points_text('pagat_auto-ismcts-4000'))}\s+over\s+{figures['deals']:,}\s+deals"
    )
    assert re.search(rf"`ismcts:iterations=4000`\s+by\s+{text}", readme())


@pytest.mark.parametrize(
    ("name", "opponent", "sentence"),
    [
        ("answer-to-heuristic", "heuristic", r"nobody\s+but\s+`heuristic`\s+gets\s+{}"),
        (
            "answer-to-network",
            "ppo:agents/checkpoints/pagat_auto",
            r"the\s+network\s+of\s+`pagat_auto`,\s+it\s+gets\s+{}",
        ),
    ],
)
def test_the_readme_has_the_figures_of_the_best_answers(
    name: str, opponent: str, sentence: str
) -> None:
    figures = figures_of(name)
    assert figures["specs"] == {"A": f"ppo:runs/{name}", "B": opponent}
    assert figures["rules"] == "pagat_auto"
    assert re.search(sentence.format(re.escape(points_text(name))), readme())


def test_the_readme_has_what_exact_play_would_win() -> None:
    pairing = figures_of("league")["pairings"][0]
    assert pairing["specs"] == {"A": "ppo:agents/checkpoints/pagat_auto", "B": "heuristic"}
    lost = pairing["endgame_regret"]["A"]["per_deal"]
    assert re.search(
        rf"loses\s+{lost:.3f}\s+game\s+points\s+a\s+deal\s+to\s+exact\s+play", readme()
    )


def test_the_curves_are_those_of_the_networks_that_are_here(rules: str) -> None:
    info, _ = read_checkpoint(folder_of(rules))
    runs = [run for run in figures_of("curves")["runs"] if run["rules"] == rules]
    assert runs[0]["seed"] == info.seed
    assert {run["points"][-1]["timesteps"] for run in runs} == {info.timesteps}
    # Where more was trained, with other seeds, the page compares them.
    assert [run["seed"] for run in runs] == [*range(1, len(runs) + 1)]


def test_the_page_of_agents_has_the_figures_of_the_readme() -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line.split("|") for line in page.splitlines() if " ± " in line}

    def shown(mean: float, ci95: float) -> str:
        return f" {mean:+.2f} ± {ci95:.2f} "

    for name in ("pimc", "ismcts"):
        figures = figures_of(f"heuristic-{name}")  # seen from the other side
        text = shown(-figures["mean_game_points"], figures["ci95"])
        assert rows[networks.OPPONENTS[name].spec][5] == text
    rdeep = "rdeep:samples=16,depth=4"
    games = {
        (game["specs"]["A"], game["specs"]["B"]): game for game in figures_of("league")["pairings"]
    }
    for column, opponent in ((4, "random"), (5, "heuristic")):
        sign = 1 if (rdeep, opponent) in games else -1
        figures = games.get((rdeep, opponent)) or games[opponent, rdeep]
        text = shown(sign * figures["mean_game_points"], figures["ci95"])
        assert rows[rdeep][column] == text


# --------------------------------------------------------------------------------- the scripts


def test_a_game_that_fails_ends_the_script_with_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(networks, "RESULTS", tmp_path)
    commands: list[list[str]] = []
    status = 1

    def played(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(arguments)
        return subprocess.CompletedProcess(arguments, status)

    monkeypatch.setattr(subprocess, "run", played)
    settings = networks.Settings(entries=("duel",), opponents=("random", "heuristic"))
    assert networks.main(settings) == 1
    assert "duel against random has failed; the table is as it was" in capsys.readouterr().err
    assert len(commands) == 1
    status = 0
    assert networks.main(settings) == 0
    files = [arguments[-1] for arguments in commands[1:-1]]
    assert files == [str(tmp_path / f"duel-{name}.json") for name in ("random", "heuristic")]
    assert commands[-1][-1].endswith("update_tables.py")


def test_the_command_of_a_game_is_the_one_that_is_documented() -> None:
    command = networks.play_command("duel", "heuristic", Path("docs/results/duel-heuristic.json"))
    pages = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    told = " ".join(pages.replace("\\\n", " ").split())
    assert " ".join(["python evaluate.py", *command[2:]]) in told


def test_nobody_plays_himself_and_unknown_names_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ("heuristic", "heuristic") not in networks.games(networks.Settings())
    assert networks.main(networks.Settings(entries=("skat",))) == 2
    assert "'skat' is not one of quick, pagat_auto" in capsys.readouterr().err


def run_of(folder: Path, *, evaluated: bool) -> Path:
    """The folder of a run that was logged twice, as train.py leaves it."""
    folder.mkdir()
    write_config(Config(rules="duel", seed=3, eval_deals=10), folder / "config.yaml")
    lines: list[dict[str, float]] = []
    for timesteps in (20_054_016, 40_108_032):
        line: dict[str, float] = {"timesteps": timesteps, "charts/cpu_seconds": 5.0}
        for number, who in enumerate(curves.OPPONENTS if evaluated else ()):
            line |= {f"eval_{who}/{name}": 0.25 + number for name in curves.KEPT}
        lines.append(line)
    lines[0].pop("eval_heuristic/closing_success", None)  # it had closed nothing by then
    text = "\n".join(json.dumps(line) for line in lines)
    (folder / "metrics.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_curves_are_those_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "RESULTS", tmp_path)

    def done(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(arguments, 0)

    monkeypatch.setattr(subprocess, "run", done)
    run = run_of(tmp_path / "run", evaluated=True)
    assert curves.main(curves.Settings(runs=(run, run))) == 0
    written = json.loads((tmp_path / "curves.json").read_text(encoding="utf-8"))
    first, second = written["runs"]
    assert first == second
    assert (first["rules"], first["seed"], first["eval_deals"]) == ("duel", 3, 10)
    assert [point["timesteps"] for point in first["points"]] == [20_054_016, 40_108_032]
    for number, who in enumerate(curves.OPPONENTS):
        assert [point[who]["game_points"] for point in first["points"]] == [0.25 + number] * 2
    last = 0.25 + curves.OPPONENTS.index("heuristic")
    closing = [point["heuristic"]["closing_success"] for point in first["points"]]
    assert closing == [None, last]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_was_never_evaluated_has_no_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "run", evaluated=False)
    assert curves.main(curves.Settings(runs=(run,))) == 2
    assert "has no evaluation: train with --eval-interval" in capsys.readouterr().err
    assert curves.main(curves.Settings(runs=(tmp_path / "none",))) == 2
    assert "none" in capsys.readouterr().err
