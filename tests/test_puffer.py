"""The environment in PufferLib's shape, against the batch environment and the single ones."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.error import ResetNeeded

from schnapsen_env import SchnapsenVectorEnv, schnapsen_v0
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.engine.convert import IllegalActionError
from schnapsen_env.integrations.puffer import BUFFERS, SchnapsenPufferEnv

N = 6


def new_buffers(num_envs: int = N, dtype: npt.DTypeLike = np.uint8) -> dict[str, Any]:
    """What PufferLib hands over: parts of arrays for several environments."""
    rows, width = 2 * num_envs, 238 + NUM_ACTIONS
    arrays: dict[str, npt.NDArray[Any]] = {
        "observations": np.full((2 * rows, width), 77, dtype=dtype),
        "rewards": np.full(2 * rows, 77, dtype=np.float32),
        "terminals": np.ones(2 * rows, dtype=np.bool_),
        "truncations": np.ones(2 * rows, dtype=np.bool_),
        "masks": np.ones(2 * rows, dtype=np.bool_),
        "actions": np.full(2 * rows, 77, dtype=np.int32),
    }
    return arrays


def legal_actions(env: SchnapsenPufferEnv, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """A random legal action where there is one; 99, which is none, for agents that wait."""
    masks = env.observations[:, env.num_features :]
    chosen = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)
    return np.where(env.masks, chosen, 99)


def check_rows(env: SchnapsenPufferEnv, seen: dict[str, npt.NDArray[Any]], info: Any) -> None:
    """The live rows are those of the batch, the others have nothing to do."""
    live = env.masks.reshape(N, 2)
    to_play = info["to_play"]
    np.testing.assert_array_equal(live, np.arange(2) == to_play[:, None])
    expected = np.concatenate([seen["observation"], seen["action_mask"]], axis=1)
    np.testing.assert_array_equal(env.observations[env.masks], expected)
    assert not env.observations[~env.masks, env.num_features :].any()


@pytest.mark.parametrize(
    "settings",
    [
        {"dtype": np.uint8, "rules": "pagat_auto"},
        {"dtype": np.float32, "episode": "match", "rules": "duel"},
        {"suits": "canonical", "num_threads": 2},
    ],
    ids=["bytes", "match", "canonical"],
)
def test_rows_are_those_of_the_batch_environment(settings: dict[str, Any]) -> None:
    env = SchnapsenPufferEnv(N, **settings)
    same: dict[str, Any] = {"dtype": np.uint8, **settings}
    batch = SchnapsenVectorEnv(N, **same)
    env.reset(seed=3)
    seen, info = batch.reset(seed=3)
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(120 if settings.get("episode") != "match" else 600):
        check_rows(env, seen, info)
        actions = legal_actions(env, rng)
        _, rewards, terminals, truncations, infos = env.step(actions)
        seen, theirs, over, _, info = batch.step(actions.reshape(N, 2)[range(N), info["to_play"]])
        np.testing.assert_array_equal(rewards.reshape(N, 2), theirs)
        np.testing.assert_array_equal(terminals, over.repeat(2))
        assert not truncations.any()
        assert bool(infos) == bool(over.any())
        if infos:
            ended = info["_episode"]
            assert infos[0]["episodes"] == ended.sum()
            assert infos[0]["episode_length"] == info["episode"]["l"][ended].mean()
            assert infos[0]["reward_seat_0"] == pytest.approx(info["episode"]["r"][ended, 0].mean())
            assert infos[0]["illegal_action"] == 0
        ends += int(over.sum())
    assert ends > N


def test_each_row_is_what_its_seat_sees_in_the_aec_environment() -> None:
    env = SchnapsenPufferEnv(1, rules="pagat_auto")
    env.reset(seed=5)
    aec = schnapsen_v0.raw_env(rules="pagat_auto")
    aec.reset(seed=5)
    rng = np.random.default_rng(1)
    steps = 0
    while not any(aec.terminations.values()):
        for seat, agent in enumerate(aec.possible_agents):
            row = env.observations[seat]
            theirs: Any = aec.observe(agent)
            np.testing.assert_allclose(
                row[: env.num_features] * env.scale, theirs["observation"], rtol=1e-6
            )
            np.testing.assert_array_equal(row[env.num_features :], theirs["action_mask"])
            assert env.masks[seat] == (agent == aec.agent_selection)
        actions = legal_actions(env, rng)
        aec.step(int(actions[env.masks][0]))
        env.step(actions)
        steps += 1
    assert steps > 5
    assert env.terminals.all()
    assert env.rewards.tolist() == [aec.rewards[agent] for agent in aec.possible_agents]


def test_the_callers_buffers_are_filled_and_nothing_else() -> None:
    arrays = new_buffers()
    rows = 2 * N
    buf = {name: array[:rows] for name, array in arrays.items()}
    env = SchnapsenPufferEnv(N, buf=buf, seed=4)
    own = SchnapsenPufferEnv(N)
    env.reset()
    own.reset(seed=4)
    rng = np.random.default_rng(2)
    for _ in range(60):
        actions = legal_actions(own, rng)
        returned = env.step(actions)
        own.step(actions)
        for name, given in zip(BUFFERS[:4], returned, strict=False):
            assert given is buf[name]
        for name in BUFFERS:
            assert getattr(env, name) is buf[name]
            np.testing.assert_array_equal(buf[name], getattr(own, name))
    for name, untouched in new_buffers().items():
        np.testing.assert_array_equal(arrays[name][rows:], untouched[rows:])


def test_no_step_makes_new_arrays() -> None:
    env = SchnapsenPufferEnv(N)
    first, _ = env.reset(seed=0)
    kept = {name: getattr(env, name) for name in BUFFERS}
    addresses = {name: array.ctypes.data for name, array in kept.items()}
    rng = np.random.default_rng(0)
    for _ in range(60):
        observations, *_ = env.step(legal_actions(env, rng))
        assert observations is first
    again, _ = env.reset(seed=1)
    assert again is first
    for name, array in kept.items():
        assert getattr(env, name) is array
        assert array.ctypes.data == addresses[name]
    assert env.recv()[0] is first


def test_both_halves_of_a_step_are_the_step() -> None:
    whole, halves = SchnapsenPufferEnv(N), SchnapsenPufferEnv(N)
    whole.reset(seed=9)
    halves.async_reset(seed=9)
    rng = np.random.default_rng(3)
    reports = 0
    for _ in range(60):
        actions = legal_actions(whole, rng)
        step = whole.step(actions)
        halves.send(actions)
        received = halves.recv()
        for one, other in zip(step[:4], received[:4], strict=True):
            np.testing.assert_array_equal(one, other)
        assert received[4] == step[4]
        reports += len(step[4])
        np.testing.assert_array_equal(received[5], np.arange(2 * N))
        np.testing.assert_array_equal(received[6], whole.masks)
    assert reports > 5


def test_spaces_hold_what_is_seen() -> None:
    for dtype in (np.uint8, np.float32):
        env = SchnapsenPufferEnv(N, dtype=dtype)
        env.reset(seed=0)
        assert env.num_agents == env.agents_per_batch == env.agent_per_batch == 2 * N
        assert env.driver_env is env
        assert env.single_observation_space.shape == (238 + NUM_ACTIONS,)
        assert env.single_action_space.n == NUM_ACTIONS
        assert env.observation_space.shape == (2 * N, 238 + NUM_ACTIONS)
        assert env.action_space.shape == (2 * N,)
        rng = np.random.default_rng(0)
        for _ in range(40):
            assert env.observation_space.contains(env.observations)
            env.step(legal_actions(env, rng))


def illegal_action(env: SchnapsenPufferEnv) -> npt.NDArray[np.int64]:
    """Legal actions, but for the agent that is to move in deal 2."""
    actions = legal_actions(env, np.random.default_rng(0))
    agent = int(np.flatnonzero(env.masks)[2])
    actions[agent] = int(env.observations[agent, env.num_features :].argmin())
    return actions


def test_an_illegal_action_loses_the_deal_for_its_own_agent() -> None:
    env = SchnapsenPufferEnv(N)
    env.reset(seed=0)
    agent = int(np.flatnonzero(env.masks)[2])
    *_, infos = env.step(illegal_action(env))
    assert env.rewards[agent] == -3
    assert env.rewards[agent ^ 1] == 0
    assert env.terminals[4:6].all()
    assert env.terminals.sum() == 2
    assert infos[0]["illegal_action"] == 1


def test_illegal_actions_raise_if_they_are_to_and_change_nothing() -> None:
    env = SchnapsenPufferEnv(N, illegal_action="raise")
    env.reset(seed=0)
    before = {name: getattr(env, name).copy() for name in BUFFERS}
    with pytest.raises(IllegalActionError, match="row 2"):
        env.step(illegal_action(env))
    for name in BUFFERS:
        np.testing.assert_array_equal(getattr(env, name), before[name])


def test_copies_go_on_alike_and_fill_arrays_of_their_own() -> None:
    env = SchnapsenPufferEnv(N)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    env.step(legal_actions(env, rng))
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):  # noqa: S301 - our own
        assert not np.shares_memory(other.observations, env.observations)
        twin = copy.deepcopy(env)
        for _ in range(30):
            actions = legal_actions(twin, rng)
            twin.step(actions)
            other.step(actions)
            np.testing.assert_array_equal(other.observations, twin.observations)
            np.testing.assert_array_equal(other.rewards, twin.rewards)


def test_mistakes_are_named() -> None:
    with pytest.raises(TypeError, match="copy is set by SchnapsenPufferEnv"):
        SchnapsenPufferEnv(N, copy=True)
    env = SchnapsenPufferEnv(N)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(np.zeros(2 * N, dtype=int))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="one for each of the 12 agents"):
        env.step(np.zeros(N, dtype=int))
    with pytest.raises(TypeError, match="integers"):
        env.step(np.zeros(2 * N))
    buf = {name: array[: 2 * N] for name, array in new_buffers().items()}
    with pytest.raises(ValueError, match="masks is missing"):
        SchnapsenPufferEnv(N, buf={name: buf[name] for name in BUFFERS if name != "masks"})
    with pytest.raises(ValueError, match=r"observations is float32\[12, 265\], not uint8"):
        SchnapsenPufferEnv(N, buf=buf, dtype=np.float32)
    strided = buf | {"rewards": np.zeros((2 * N, 2), dtype=np.float32)[:, 0]}
    with pytest.raises(ValueError, match="rewards is read-only or has gaps"):
        SchnapsenPufferEnv(N, buf=strided)


def test_the_library_is_not_imported() -> None:
    code = (
        "import sys, schnapsen_env.integrations.puffer\n"
        "assert not {'pufferlib', 'torch'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
