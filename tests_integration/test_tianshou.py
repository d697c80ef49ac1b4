"""Tianshou: masks, rewards and infos as it reads them, and masked DQN that learns."""

# pyright: basic
# pyright: reportMissingImports=false
# (Tianshou is not installed where the sources are checked.)

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch

from schnapsen_env import schnapsen_v0
from tests_integration.conftest import Referee


def test_trap_21_each_step_shows_the_mover_its_mask_and_both_rewards_arrive() -> None:
    # tianshou#900, #1137: only the reward of one agent arrives.
    from schnapsen_env.integrations.tianshou import SchnapsenTianshouEnv

    env = SchnapsenTianshouEnv(schnapsen_v0.raw_env(rules="pagat_auto"))
    rng = np.random.default_rng(0)
    total = np.zeros(2)
    for seed in range(20):
        seen, info = env.reset(seed=seed)
        done = False
        while not done:
            assert info == {}
            mask = np.array(seen["mask"])
            assert seen["agent_id"] == env.env.agent_selection
            assert mask.dtype == bool
            assert mask.any()
            seen, rewards, done, _, info = env.step(rng.choice(np.flatnonzero(mask)))
        assert rewards[0] == -rewards[1] != 0
        total += np.abs(rewards)
    assert total.min() >= 20


def test_the_stock_wrapper_leaves_gaps_in_its_buffer_and_ours_does_not() -> None:
    """Why there is an adapter at all. If this fails because the gap is gone, so may the adapter."""
    from tianshou.data import Batch
    from tianshou.env import PettingZooEnv

    from schnapsen_env.integrations.tianshou import SchnapsenTianshouEnv

    def infos(env: PettingZooEnv) -> list[dict]:
        rng = np.random.default_rng(0)
        seen, info = env.reset(seed=1)
        found, done = [info], False
        while not done:
            seen, _, done, _, info = env.step(rng.choice(np.flatnonzero(seen["mask"])))
            found.append(info)
        return found

    assert Batch.stack(
        [Batch(info=info) for info in infos(PettingZooEnv(schnapsen_v0.raw_env()))]
    ).hasnull()
    assert not Batch.stack(
        [Batch(info=info) for info in infos(SchnapsenTianshouEnv(schnapsen_v0.raw_env()))]
    ).hasnull()


def test_another_environment_is_refused() -> None:
    from schnapsen_env.integrations.tianshou import SchnapsenTianshouEnv

    with pytest.raises(TypeError, match=r"schnapsen_v0\.env"):
        SchnapsenTianshouEnv(schnapsen_v0.parallel_env())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("self_play", [False, True], ids=["against-random", "self-play"])
def test_trap_22_masked_dqn_learns_also_in_self_play_and_never_breaks_a_rule(
    load_example: Callable[[str], ModuleType], referee: Referee, self_play: bool
) -> None:
    # tianshou#381, #446: how to let an agent play itself.
    example = load_example("tianshou/dqn_marl.py")
    args = example.Args(self_play=self_play, epochs=1, epoch_steps=12_000, eval_deals=1_000)
    torch.manual_seed(args.seed)
    untrained = example.make_learner(example.make_env(args.rules), args)
    before, _ = example.evaluate(untrained, args)
    learner = example.train(args)
    after, _ = example.evaluate(learner, args)
    assert referee.actions["SchnapsenAECEnv"] >= 12_000
    assert not referee.illegal.total()
    assert any(
        not torch.equal(one, other)
        for one, other in zip(
            untrained.policy.parameters(), learner.policy.parameters(), strict=True
        )
    )
    # Measured after 12,000 decisions: see docs/integrations/tianshou.md.
    assert after > before + 0.3
