"""The networks that come with the repository: what they claim to be, and that they play."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

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
