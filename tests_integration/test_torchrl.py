"""TorchRL: the native environment, the wrapper with masks, and PPO that learns on both."""

# pyright: basic
# pyright: reportMissingImports=false
# (TorchRL is not installed where the sources are checked.)

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from agents.ppo.gae import generalised_advantages
from schnapsen_env import SchnapsenVectorEnv, schnapsen_v0
from tests_integration.conftest import Referee

PLAYERS = {"player": ["player_0", "player_1"]}


def self_play_env(num_envs: int = 8, **settings: Any) -> Any:
    from schnapsen_env.integrations.torchrl import SchnapsenSelfPlayEnv

    return SchnapsenSelfPlayEnv(num_envs, **settings)


@pytest.mark.parametrize("settings", [{}, {"episode": "match"}, {"history": True}])
def test_specs_of_the_native_environment_hold(settings: dict[str, Any]) -> None:
    from torchrl.envs.utils import check_env_specs

    check_env_specs(self_play_env(rules="pagat_auto", **settings), seed=0)


def test_trap_23_torchrls_wrapper_may_observe_both_agents_at_any_time() -> None:
    # pytorch/rl#2990: observe() is called for all agents, not for the one to move.
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    env = PettingZooWrapper(schnapsen_v0.env(), use_mask=True, group_map=PLAYERS, return_state=True)
    check_env_specs(env, seed=0)


def test_trap_24_torchrls_wrapper_plays_on_after_agents_are_done(referee: Referee) -> None:
    # pytorch/rl#3702, #1471: KeyError for agents that are done, and masks without a legal action.
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper

    env = PettingZooWrapper(schnapsen_v0.env(), use_mask=True, group_map=PLAYERS)
    torch.manual_seed(0)
    rollout = env.rollout(120, break_when_any_done=False)
    assert rollout["next", "done"].sum() >= 3
    assert rollout["player", "action_mask"].any(-1).all()
    assert referee.actions["SchnapsenAECEnv"] == 120
    assert not referee.illegal.total()


def test_torchrls_own_wrapper_takes_the_gymnasium_view() -> None:
    from torchrl.envs import GymWrapper
    from torchrl.envs.utils import check_env_specs

    env = GymWrapper(gymnasium.make("schnapsen/Schnapsen-v0", observation="dict"))
    check_env_specs(env, seed=0)
    assert env.reset()["action_mask"].shape == (27,)


def test_a_rollout_is_the_play_of_the_batch_environment() -> None:
    env = self_play_env(4, rules="pagat_auto")
    env.set_seed(7)
    rng = np.random.default_rng(0)

    def act(tensordict: Any) -> Any:  # the name tells TorchRL what to pass
        mask = tensordict["action_mask"].numpy()
        choice = np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=1)
        return tensordict.set("action", torch.from_numpy(choice))

    rollout = env.rollout(60, act, break_when_any_done=False)
    batch = SchnapsenVectorEnv(4, rules="pagat_auto")
    seen, info = batch.reset(seed=7)
    for t in range(60):
        step = rollout[:, t]
        np.testing.assert_array_equal(step["observation"].numpy(), seen["observation"])
        np.testing.assert_array_equal(step["action_mask"].numpy(), seen["action_mask"] == 1)
        movers = info["to_play"]
        np.testing.assert_array_equal(step["to_play"].squeeze(-1).numpy(), movers)
        seen, rewards, dones, _, info = batch.step(step["action"].numpy())
        own = rewards[np.arange(4), movers]
        np.testing.assert_array_equal(step["next", "reward"].squeeze(-1).numpy(), own)
        np.testing.assert_array_equal(step["next", "terminated"].squeeze(-1).numpy(), dones)
    assert rollout["next", "done"].sum() >= 8


def test_random_actions_keep_to_the_mask_with_torchrls_transform(referee: Referee) -> None:
    from torchrl.envs import ActionMask, TransformedEnv

    env = TransformedEnv(self_play_env(16), ActionMask())
    rollout = env.rollout(100, break_when_any_done=False)
    assert rollout["action_mask"].any(-1).all()
    assert referee.actions["SchnapsenVectorEnv"] == 1600
    assert not referee.illegal.total()


def test_advantages_are_those_of_the_reference_learner() -> None:
    from schnapsen_env.integrations.torchrl import turn_aware_advantages

    rollout = self_play_env(16).rollout(40, break_when_any_done=False)
    generator = torch.Generator().manual_seed(0)
    rollout["state_value"] = torch.randn(16, 40, 1, generator=generator)
    last = torch.randn(16, 1, generator=generator)
    turn_aware_advantages(rollout, last, 0.99, 0.9)

    def by_time(values: torch.Tensor) -> torch.Tensor:
        return values.squeeze(-1).T

    next_to_play = rollout["next", "to_play"]
    # After an end the next row belongs to another deal; nothing of it reaches back.
    seats = torch.cat([rollout["to_play"], next_to_play[:, -1:]], dim=1)
    advantages, returns = generalised_advantages(
        by_time(rollout["next", "reward"]),
        by_time(torch.cat([rollout["state_value"], last[:, None]], dim=1)),
        by_time(rollout["next", "done"]),
        by_time(seats),
        0.99,
        0.9,
    )
    torch.testing.assert_close(by_time(rollout["advantage"]), advantages)
    torch.testing.assert_close(by_time(rollout["value_target"]), returns)


def test_a_row_that_is_over_must_be_reset_and_settings_of_the_class_are_fixed() -> None:
    with pytest.raises(TypeError, match="autoreset_mode"):
        self_play_env(2, autoreset_mode="SameStep")
    env = self_play_env(1)
    data = env.reset()
    while not data["done"].any():
        mask = data["action_mask"]
        data = env.step(data.set("action", mask.float().argmax(-1)))["next"]
    assert data["action_mask"].all()
    with pytest.raises(gymnasium.error.ResetNeeded, match="is over"):
        env.step(data.set("action", torch.zeros(1, dtype=torch.int64)))


@pytest.mark.parametrize(
    ("name", "settings", "env"),
    [
        (
            "ppo_batch",
            {"total_frames": 65_536, "num_envs": 256, "num_steps": 16},
            "SchnapsenVectorEnv",
        ),
        ("ppo_pettingzoo", {"total_frames": 12_000, "frames_per_batch": 2_000}, "SchnapsenAECEnv"),
    ],
)
def test_a_short_training_learns_and_never_breaks_a_rule(
    load_example: Callable[[str], ModuleType],
    referee: Referee,
    name: str,
    settings: dict[str, int],
    env: str,
) -> None:
    example = load_example(f"torchrl/{name}.py")
    args = example.Args(eval_deals=1_000, **settings)
    torch.manual_seed(args.seed)
    before, _ = example.evaluate(example.make_network(238, 27), args)
    after, _ = example.evaluate(example.train(args), args)
    assert referee.actions[env] >= args.total_frames
    assert not referee.illegal.total()
    # Measured: see docs/integrations/torchrl.md.
    assert after > before + 0.3
