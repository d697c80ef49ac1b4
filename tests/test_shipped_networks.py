"""The networks that come with the repository: what they claim to be, and that they play."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from agents import load
from agents.evaluation import evaluate
from agents.ppo.checkpoint import read_checkpoint
from agents.ppo.config import config_from_dict, config_to_dict, read_config
from schnapsen_env import RULES

ROOT = Path(__file__).resolve().parent.parent
#: Network, and the configuration that makes it.
SHIPPED = {"pagat_auto": "ppo.yaml", "duel": "ppo_duel.yaml"}
MOST_BYTES = 8_000_000


@pytest.fixture(params=SHIPPED)
def rules(request: pytest.FixtureRequest) -> str:
    return request.param


def folder_of(rules: str) -> Path:
    return ROOT / "agents" / "checkpoints" / rules


def test_it_is_small_and_holds_what_playing_needs(rules: str) -> None:
    names = {path.name for path in folder_of(rules).iterdir()} - {"training.pt"}
    assert names == {"checkpoint.json", "weights.safetensors"}
    assert sum((folder_of(rules) / name).stat().st_size for name in names) < MOST_BYTES


def test_its_configuration_is_the_one_that_is_said_to_make_it(rules: str) -> None:
    info, _ = read_checkpoint(folder_of(rules))
    kept = config_to_dict(config_from_dict(info.config))
    told = config_to_dict(read_config(ROOT / "configs" / SHIPPED[rules]))
    # Where it was written to, and how often it was looked at, leave the weights alone.
    watching = {name for name in kept if name.startswith(("eval_", "final_eval", "checkpoint_"))}
    for name in watching | {"run_dir", "log_interval", "tensorboard", "keep_checkpoints"}:
        del kept[name], told[name]
    assert kept == told
    assert info.timesteps >= kept["total_timesteps"]
    assert info.rules == asdict(RULES[rules])


def test_it_beats_the_random_player(rules: str) -> None:
    result = evaluate(f"ppo:{folder_of(rules)}", "random", rules=rules, deals=300, seed=3)
    assert result.game_points.value > 1.5
    assert result.habits[0].closes.value > 0.3


def test_it_is_level_with_the_heuristic_or_better(rules: str) -> None:
    agent = f"ppo:{folder_of(rules)}"
    result = evaluate(agent, "heuristic", rules=rules, deals=2_000, seed=4)
    assert result.game_points.value > 0.1
    assert load(agent, rules=rules) is not None


# ------------------------------------------------------------------ what the README says of them


def figures_of(name: str) -> dict[str, Any]:
    """What evaluate.py wrote; the command is in docs/training.md."""
    return json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def points_text(name: str) -> str:
    figures = figures_of(name)
    return f"{figures['mean_game_points']:+.2f} ± {figures['ci95']:.2f}"


def closing_text(name: str) -> str:
    rates = figures_of(name)["rates"]["A"]
    return f"{rates['closes']:.0%}, {rates['closes_won']:.0%}".replace("%", " %")


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_the_figures_of_the_networks(rules: str) -> None:
    row = (
        f"| `ppo:agents/checkpoints/{rules}` | `{rules}` | {points_text(f'{rules}-random')} "
        f"| {points_text(f'{rules}-heuristic')} | {closing_text(f'{rules}-heuristic')} |"
    )
    assert row in readme()
    for other in ("random", "heuristic"):
        figures = figures_of(f"{rules}-{other}")
        assert figures["specs"] == {"A": f"ppo:agents/checkpoints/{rules}", "B": other}
        assert (figures["rules"], figures["deals"]) == (rules, 5_000)


def test_the_readme_has_the_figures_of_the_heuristic() -> None:
    name = "heuristic-random"
    row = f"| `pagat_auto` | {points_text(name)} | - | {closing_text(name)} |"
    assert f"| `heuristic`, version 1 {row}" in readme()


@pytest.mark.parametrize(
    ("network", "search", "deals"),
    [
        ("pagat_auto", "pimc", 2_000),
        ("pagat_auto", "ismcts", 1_000),
        ("pagat_auto", "ismcts-4000", 1_500),
        ("duel", "pimc", 800),
        ("duel", "ismcts", 1_000),
    ],
)
def test_the_readme_has_the_figures_against_search(network: str, search: str, deals: int) -> None:
    name = f"{network}-{search}"
    spec = re.escape(figures_of(name)["specs"]["B"])
    figures = rf"{re.escape(points_text(name))}\s+over\s+{deals:,}\s+deals"
    assert re.search(rf"`{spec}`\s+by\s+{figures}", readme())
    assert figures_of(name)["deals"] == deals
    assert figures_of(name)["specs"]["A"] == f"ppo:agents/checkpoints/{network}"
    assert figures_of(name)["rules"] == network
