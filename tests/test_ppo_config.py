"""Settings: where they come from, and what is said about wrong ones."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import train
from agents.ppo import config as config_module
from agents.ppo.config import (
    Config,
    config_from_dict,
    config_to_dict,
    read_config,
    write_config,
)
from agents.ppo.errors import ConfigError
from agents.ppo.learner import coefficients

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_shipped_configurations_can_be_read(path: Path) -> None:
    config = read_config(path)
    assert config.run_dir.startswith("runs/")
    head = path.read_text(encoding="utf-8").splitlines()[0]
    assert f"python train.py --config configs/{path.name}" in head


def test_every_field_has_a_sentence() -> None:
    (body,) = [
        node.body
        for node in ast.parse(inspect.getsource(config_module)).body
        if isinstance(node, ast.ClassDef) and node.name == "Config"
    ]
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert documented, ast.unparse(node.target)


def test_configuration_survives_its_file(tmp_path: Path) -> None:
    config = Config(hidden_sizes=(64, 32), learning_rate=3e-5, target_kl=0.02, suits="natural")
    write_config(config, tmp_path / "config.yaml")
    assert read_config(tmp_path / "config.yaml") == config
    assert config_from_dict(config_to_dict(config)) == config


def test_numbers_may_be_written_as_people_do(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("learning_rate: 5e-4\ntotal_timesteps: 3_000_000\ngamma: 1\ntarget_kl: null\n")
    config = read_config(path)
    assert config.learning_rate == 5e-4
    assert config.total_timesteps == 3_000_000
    assert config.gamma == 1.0
    assert config.target_kl is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rat: 0.1", "no setting 'learning_rat'; did you mean 'learning_rate'"),
        ("zzz: 1", "no setting 'zzz': choose from run_dir, "),
        ("num_envs: many", "num_envs must be a whole number, not 'many'"),
        ("num_envs: 10.5", "num_envs must be a whole number, not 10.5"),
        ("num_envs: true", "num_envs must be a whole number, not True"),
        ("gamma: '1'", "gamma must be a number, not '1'"),
        ("gamma: .nan", "gamma must be a number, not nan"),
        ("norm_adv: 1", "norm_adv must be true or false, not 1"),
        ("suits: sorted", "suits must be one of natural, trump_first, canonical, not 'sorted'"),
        ("hidden_sizes: 256", "hidden_sizes must be a list of whole numbers, not 256"),
        ("hidden_sizes: [256, x]", "hidden_sizes must be a list of whole numbers"),
        ("target_kl: low", "target_kl must be a number or null, not 'low'"),
        ("gamma: 1.5", "gamma=1.5: it must lie between 0 and 1"),
        ("num_envs: 0", "num_envs=0: it must be more than 0"),
        ("clip_vloss: true\ncritic: state", "clip_vloss=True: it needs critic=shared"),
        ("clip_vloss: true\nexact_endgames: true", "clip_vloss=True: it needs critic=shared"),
        ("gamma: 0.9\nexact_endgames: true", "gamma=0.9: it must be 1 with exact_endgames"),
        ("critic_hidden_sizes: []", "critic_hidden_sizes=(): it needs one layer or more"),
        (
            "minibatch_size: 1000",
            "minibatch_size=1000: it must divide num_envs * num_steps = 32768",
        ),
        ("rules: whist", "unknown rule set 'whist'"),
        ("gamma: 1\ngamma: 0.5", "'gamma' is given twice"),
        ("- gamma", "must hold 'name: value' lines"),
        ("gamma: [", "is not valid YAML"),
        ("eval_deals: 0", "eval_deals=0: it must be 2 or more, or eval_interval 0"),
        ("eval_deals: 10000001", "eval_deals=10000001: it must be at most 10000000"),
        ("final_eval_deals: 10000001", "final_eval_deals=10000001: it must be at most"),
        ("{a: 1}: 3", "the name of a setting is a text"),
        ("gamma: 1" + "0" * 400, "gamma must be a number"),
        ("total_timesteps: 1" + "0" * 400, "it must be at most 1e+15"),
        ("clip_coef: 1.0e+300", "clip_coef=1e+300: it must be at most 3e+38"),
        (
            "{num_envs: 1, num_steps: 1, minibatch_size: 1, norm_adv: false}",
            "num_steps=1: it must be 2 or more with num_envs=1",
        ),
        ('run_dir: "a\\0b"', "must not hold the character 0"),
    ],
)
def test_wrong_settings_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert message in str(error.value)
    assert "config.yaml" in str(error.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        read_config(tmp_path / "nowhere.yaml")


def test_command_line_overrides_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("num_envs: 64\nnum_steps: 16\nminibatch_size: 64\nrules: french\n")
    arguments = "--num-steps 32 --hidden-sizes 8 8 --no-tensorboard --target-kl 0.1".split()
    config, resume = train.parse(["--config", str(path), *arguments])
    assert resume is None
    assert (config.num_envs, config.num_steps, config.rules) == (64, 32, "french")
    assert (config.hidden_sizes, config.tensorboard, config.target_kl) == ((8, 8), False, 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--num-env 5", "--num-env"),
        ("--num-envs many", "--num-envs"),
        ("--suits sorted", "--suits"),
        ("--minibatch-size 7", "minibatch_size=7"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        train.main(arguments.split())
    assert error.value.code == train.WRONG_COMMAND
    assert message in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--config nowhere.yaml", "nowhere.yaml"),
        ("--config configs/quick.yaml --resume runs/x", "leave --config out"),
        ("--resume nowhere", "no such folder"),
    ],
)
def test_refusals_are_one_line(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(arguments.split()) == train.WRONG_COMMAND
    text = capsys.readouterr().err
    assert text.startswith("train.py: ")
    assert message in text
    assert text.count("\n") == 1


def test_schedules() -> None:
    config = Config(
        learning_rate=4e-4,
        learning_rate_final=2e-4,
        ent_coef=0.03,
        ent_coef_final=0.01,
        uniform_kl_coef=0.06,
        uniform_kl_floor=0.002,
    )
    start, middle, end = (coefficients(config, done) for done in (0.0, 0.5, 1.0))
    assert vars(start) == pytest.approx(
        {"learning_rate": 4e-4, "ent_coef": 0.03, "uniform_kl_coef": 0.062}
    )
    assert vars(middle) == pytest.approx(
        {"learning_rate": 3e-4, "ent_coef": 0.02, "uniform_kl_coef": 0.06 / 4 + 0.002}
    )
    assert vars(end) == pytest.approx(
        {"learning_rate": 2e-4, "ent_coef": 0.01, "uniform_kl_coef": 0.002}
    )


def test_derived_numbers_are_no_settings() -> None:
    config = Config(num_envs=64, num_steps=16, minibatch_size=64, total_timesteps=1025)
    assert config.batch_size == 1024
    assert config.num_iterations == 2
    names: set[Any] = {field.name for field in fields(config)}
    assert not names & {"batch_size", "num_iterations"}
    assert replace(config, num_envs=128).batch_size == 2048


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": float("inf")}, "learning_rate=inf: it must be finite"),
        ({"vf_coef": float("nan")}, "vf_coef=nan: it must"),
        ({"torch_threads": 100_000_000}, "torch_threads=100000000: it must be at most 256"),
    ],
)
def test_numbers_that_the_command_line_lets_through_are_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Config(**change)
