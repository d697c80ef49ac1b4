"""The checkers of PettingZoo, for every rule set and both kinds of episode."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.utils.wrappers import (
    AssertOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)

from schnapsen_env import RULES, schnapsen_v0

with warnings.catch_warnings():
    # Where PettingZoo's own games are installed, its checkers import one in a deprecated way.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pettingzoo.test

#: The checkers, which have no types.
checks: Any = pettingzoo.test

CASES = [
    pytest.param({"rules": rules, "episode": episode}, id=f"{rules}-{episode}")
    for rules in RULES
    for episode in ("deal", "match")
]
OPTIONS = [
    pytest.param(options, id="-".join(map(str, options.values())))
    for options in (
        {"memory": "none"},
        {"memory": "last_trick", "suits": "trump_first"},
        {"suits": "canonical", "history": True, "rules": "pagat"},
        {"reward": "win", "episode": "match", "target": 3},
        {"illegal_action": "revoke", "rules": "austrian"},
    )
]


@pytest.mark.parametrize("options", [*CASES, *OPTIONS])
def test_api(options: dict[str, Any]) -> None:
    checks.api_test(schnapsen_v0.env(**options), num_cycles=200)


@pytest.mark.parametrize("options", CASES)
def test_api_of_raw_env(options: dict[str, Any]) -> None:
    checks.api_test(schnapsen_v0.raw_env(**options), num_cycles=200)


@pytest.mark.parametrize("options", [*CASES, *OPTIONS])
def test_seed(options: dict[str, Any]) -> None:
    checks.seed_test(partial(schnapsen_v0.env, **options), num_cycles=200)


@pytest.mark.parametrize("options", [*CASES, *OPTIONS])
def test_parallel_api(options: dict[str, Any]) -> None:
    checks.parallel_api_test(schnapsen_v0.parallel_env(**options), num_cycles=200)


@pytest.mark.parametrize("options", CASES)
def test_parallel_seed(options: dict[str, Any]) -> None:
    checks.parallel_seed_test(partial(schnapsen_v0.parallel_env, **options), num_cycles=200)


@pytest.mark.parametrize("options", [*CASES, *OPTIONS])
def test_state(options: dict[str, Any]) -> None:
    checks.state_test(schnapsen_v0.env(**options), schnapsen_v0.parallel_env(**options))


@pytest.mark.parametrize("options", CASES)
def test_render(options: dict[str, Any]) -> None:
    checks.render_test(partial(schnapsen_v0.env, **options))


@pytest.mark.parametrize("options", CASES)
def test_the_usual_wrappers_fit_around_raw_env(options: dict[str, Any]) -> None:
    wrapped = OrderEnforcingWrapper(
        AssertOutOfBoundsWrapper(
            TerminateIllegalWrapper(schnapsen_v0.raw_env(**options), illegal_reward=-3)
        )
    )
    checks.api_test(wrapped, num_cycles=100)


@pytest.mark.skipif(
    not hasattr(pettingzoo, "register"),
    reason="the wrappers of PettingZoo before 1.27 go wrong after an illegal action",
)
def test_env_does_what_the_usual_wrappers_do() -> None:
    """Same seed, same legal actions and one illegal one: env() against the wrapped raw_env()."""
    wrapped = OrderEnforcingWrapper(
        AssertOutOfBoundsWrapper(TerminateIllegalWrapper(schnapsen_v0.raw_env(), illegal_reward=-3))
    )
    built_in = schnapsen_v0.env()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        illegal_at = int(rng.integers(25))
        wrapped.reset(seed=seed)
        built_in.reset(seed=seed)
        for turn, (agent, other) in enumerate(
            zip(wrapped.agent_iter(), built_in.agent_iter(), strict=True)
        ):
            observation, reward, terminated, _, _ = wrapped.last()
            same, own_reward, own_terminated, _, _ = built_in.last()
            assert own_terminated == terminated
            if terminated:
                break
            assert agent == other
            assert own_reward == reward
            assert observation is not None
            assert same is not None
            np.testing.assert_array_equal(same["observation"], observation["observation"])
            np.testing.assert_array_equal(same["action_mask"], observation["action_mask"])
            wanted = 0 if turn == illegal_at else 1
            action = int(rng.choice(np.flatnonzero(same["action_mask"] == wanted)))
            wrapped.step(action)
            built_in.step(action)
        assert last_rewards(built_in) == last_rewards(wrapped)
        assert not wrapped.agents
        assert not built_in.agents


def last_rewards(env: Any) -> dict[str, float]:
    """What each agent gets by ``last()`` after the end; takes the agents out."""
    rewards: dict[str, float] = {}
    while env.agents:
        rewards[env.agent_selection] = env.last()[1]
        env.step(None)
    return rewards


def test_parallel_steps_that_are_no_steps() -> None:
    env: Any = schnapsen_v0.parallel_env()
    with pytest.raises(ResetNeeded, match=r"step\(\) before the first reset"):
        env.step({"player_0": 0, "player_1": 0})
    env.reset(seed=0)
    mover = env.aec_env.agent_selection
    (waiting,) = set(env.agents) - {mover}
    with pytest.raises(ValueError, match=f"no action for {mover}"):
        env.step({waiting: 0})
    while env.agents:
        mask = env.aec_env.observe(env.aec_env.agent_selection)["action_mask"]
        env.step(dict.fromkeys(env.agents, int(mask.argmax())))
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_parallel_env_asks_the_mover() -> None:
    env = schnapsen_v0.parallel_env(rules="pagat_auto")
    observations, infos = env.reset(seed=4)
    total = 0.0
    while env.agents:
        movers = [agent for agent in env.agents if infos[agent]["action_mask"].any()]
        assert len(movers) == 1
        mask = observations[movers[0]]["action_mask"]
        actions: dict[str, int | None] = dict.fromkeys(env.agents, int(mask.argmax()))
        observations, rewards, terminations, _, infos = env.step(actions)
        total += sum(abs(reward) for reward in rewards.values())
        assert all(terminations.values()) == (not env.agents)
    assert total >= 2


def test_registered_in_pettingzoo() -> None:
    if not hasattr(pettingzoo, "register"):
        pytest.skip("this PettingZoo has no registry")
    for name in ("schnapsen/schnapsen_v0", "schnapsen/schnapsen-v0", "schnapsen/schnapsen"):
        env: Any = pettingzoo.make("aec", name, rules="french", episode="match")
        assert env.rules.name == "french"
    parallel: Any = pettingzoo.make("parallel", "schnapsen/schnapsen_v0", target=3)
    assert parallel.aec_env.rules.target == 3


def test_metadata() -> None:
    env = schnapsen_v0.env()
    assert env.metadata["name"] == "schnapsen_v0"
    assert env.metadata["render_modes"] == ["human", "ansi"]
    assert env.metadata["is_parallelizable"] is False
    assert env.metadata["render_fps"] > 0
    assert str(env) == "schnapsen_v0"
