"""Stable-Baselines3: the adapter row by row, the library's checks, and MaskablePPO that learns."""

# pyright: basic
# pyright: reportMissingImports=false
# (The libraries are not installed where the sources are checked.)

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as check_gymnasium_env

from schnapsen_env import schnapsen_v0
from tests_integration.conftest import ROOT, Referee

ID = "schnapsen/Schnapsen-v0"


def make_vec_env(num_envs: int = 8, **settings: Any) -> Any:
    from schnapsen_env.integrations.sb3 import SB3VecEnv

    return SB3VecEnv(gymnasium.make_vec(ID, num_envs=num_envs, **settings))


def random_actions(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    return np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("observation", ["flat", "dict"])
def test_environment_checkers_find_nothing_not_even_a_warning(observation: str) -> None:
    from stable_baselines3.common.env_checker import check_env as check_sb3_env

    env = gymnasium.make(ID, opponent="random", observation=observation)
    check_gymnasium_env(env.unwrapped, skip_render_check=True)
    check_sb3_env(env.unwrapped)


@pytest.mark.parametrize("observation", ["flat", "dict"])
def test_rows_are_the_single_environments_of_a_dummy_vec_env(observation: str) -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3.common.env_util import make_vec_env as make_dummy_vec_env

    settings = {"opponent": "heuristic", "rules": "pagat_auto", "observation": observation}
    ours = make_vec_env(5, **settings)
    # Without render_mode, Stable-Baselines3 would ask for pictures.
    theirs = make_dummy_vec_env(ID, n_envs=5, env_kwargs={**settings, "render_mode": None})
    assert is_masking_supported(ours)
    for envs in (ours, theirs):
        envs.seed(11)
    seen = [ours.reset(), theirs.reset()]
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(60):
        np.testing.assert_equal(*seen)
        masks = get_action_masks(theirs)
        np.testing.assert_array_equal(get_action_masks(ours), masks)
        actions = random_actions(rng, masks)
        steps = [envs.step(actions) for envs in (ours, theirs)]
        seen = [step[0] for step in steps]
        np.testing.assert_array_equal(steps[0][1], steps[1][1])
        np.testing.assert_array_equal(steps[0][2], steps[1][2])
        for row, (one, other) in enumerate(zip(steps[0][3], steps[1][3], strict=True)):
            if not steps[0][2][row]:
                assert "episode" not in one
                continue
            ends += 1
            np.testing.assert_equal(one["terminal_observation"], other["terminal_observation"])
            assert one["TimeLimit.truncated"] is other["TimeLimit.truncated"] is False
            assert {"r", "l"} <= one["episode"].keys()
            assert one["episode"]["r"] == other["episode"]["r"] == one["game_points"]
            assert one["episode"]["l"] == other["episode"]["l"]
    assert ends > 20


def test_trap_20_masks_are_asked_for_once_a_step_and_not_once_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # SB3#2087, sb3-contrib#279: one call of a method a row is slow.
    from sb3_contrib.common.maskable.utils import get_action_masks

    envs = make_vec_env(64)
    envs.reset()
    calls = []
    monkeypatch.setattr(envs.envs, "_observe", lambda *_: calls.append(1))
    assert get_action_masks(envs).shape == (64, 27)
    assert calls == []


@pytest.mark.parametrize("make", ["env", "raw_env", "parallel_env"])
def test_trap_03_an_environment_for_two_agents_is_refused_by_name(make: str) -> None:
    # PettingZoo#716: "'function' object has no attribute 'shape'".
    from sb3_contrib import MaskablePPO

    from schnapsen_env.integrations.sb3 import SB3VecEnv

    env = getattr(schnapsen_v0, make)()
    # The library looks at the type alone before it asks anything of an environment, so the first
    # answer is its own. The page quotes it, and says what to take.
    with pytest.raises(ValueError, match="not a Gymnasium environment") as caught:
        MaskablePPO("MlpPolicy", env)
    assert type(env).__name__ in str(caught.value)
    page = (ROOT / "docs" / "integrations" / "sb3.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if "not a Gymnasium environment" in line)
    assert type(env).__name__ in row
    # Ours names the environment to take.
    with pytest.raises(TypeError, match=r"takes the vector environment of gymnasium\.make_vec\("):
        SB3VecEnv(env)


def test_what_does_not_fit_is_refused_with_the_remedy() -> None:
    from schnapsen_env.integrations.sb3 import SB3VecEnv

    with pytest.raises(TypeError, match="make_vec"):
        SB3VecEnv(gymnasium.make(ID))
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.make_vec(ID, num_envs=2))
    with pytest.raises(TypeError, match="without wrappers"):
        SB3VecEnv(wrapped)
    with pytest.raises(ValueError, match="SAME_STEP"):
        make_vec_env(2, autoreset_mode="NextStep")
    envs = make_vec_env(2)
    with pytest.raises(AttributeError, match="cannot be set"):
        envs.set_attr("opponent", "random")
    with pytest.raises(AttributeError, match="action_masks"):
        envs.env_method("step")
    with pytest.raises(RuntimeError, match="step_async"):
        envs.step_wait()
    envs.set_options([{"forehand": 0}, {"forehand": 1}])
    with pytest.raises(ValueError, match="same options"):
        envs.reset()


def test_maskable_ppo_learns_from_the_batch_and_never_breaks_a_rule(
    load_example: Callable[[str], ModuleType], referee: Referee, tmp_path: Any
) -> None:
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.evaluation import evaluate_policy

    example = load_example("sb3/maskable_ppo.py")
    args = example.Args(total_timesteps=50_000, save=tmp_path / "model.zip")
    untrained = MaskablePPO("MlpPolicy", example.make_envs(args), seed=1)
    before, _ = evaluate_policy(untrained, untrained.get_env(), n_eval_episodes=500)
    after = example.main(args)
    assert referee.actions["SchnapsenOpponentVectorEnv"] > 50_000
    assert not referee.illegal.total()
    # Measured after 50,000 decisions: see docs/integrations/sb3.md.
    assert after > max(before + 0.4, 0.7)
    # What was saved plays, alone, on a single environment.
    model = MaskablePPO.load(tmp_path / "model.zip")
    env = gymnasium.make(ID, opponent="random", rules="pagat_auto", illegal_action="raise")
    points = [play_deal(model, env, seed) for seed in range(100)]
    assert np.mean(points) > 0.3


def play_deal(model: Any, env: gymnasium.Env[Any, Any], seed: int) -> float:
    observation, info = env.reset(seed=seed)
    while True:
        action, _ = model.predict(observation, action_masks=info["action_mask"], deterministic=True)
        observation, reward, done, _, info = env.step(action)
        if done:
            return float(reward)


def test_maskable_ppo_trains_on_a_single_environment(
    load_example: Callable[[str], ModuleType], referee: Referee
) -> None:
    example = load_example("sb3/maskable_ppo.py")
    args = example.Args(total_timesteps=4_096, num_envs=1)
    fresh = [example.make_model(args).policy.state_dict() for _ in range(2)]
    assert all(torch.equal(fresh[0][name], fresh[1][name]) for name in fresh[0])
    model = example.train(args)
    assert model.num_timesteps == 4_096
    assert referee.actions["SchnapsenEnv"] >= 4_096
    assert not referee.illegal.total()
    trained = model.policy.state_dict()
    assert not any(torch.equal(trained[name], fresh[0][name]) for name in trained)
