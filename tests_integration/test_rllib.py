"""RLlib: a real local Ray with two env runners, training, checkpoints, and traps users report.

python -m pytest tests_integration/test_rllib.py, with the extra `rllib`
"""
# pyright: basic
# pyright: reportMissingImports=false, reportOptionalMemberAccess=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import pickle
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from packaging.requirements import Requirement
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

import agents
import schnapsen_env
from agents.evaluation import evaluate
from agents.rllib_agent import RLlibAgent
from schnapsen_env import engine
from schnapsen_env.integrations import rllib
from schnapsen_env.observation import observe
from tests.processes import run_python

ROOT = Path(__file__).resolve().parent.parent
SEATS = ("player_0", "player_1")

#: Ray and RLlib warn of their own insides; ours stay errors.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def ppo(batch: int = 4000, **env_config: Any) -> PPOConfig:
    """PPO with two env runners, and settings that learn quickly."""
    return (
        PPOConfig()
        .environment(rllib.register(), env_config={"rules": "pagat_auto", **env_config})
        .env_runners(num_env_runners=2, num_envs_per_env_runner=32)
        .training(
            train_batch_size_per_learner=batch,
            minibatch_size=min(batch, 512),
            num_epochs=4,
            lr=1e-3,
            gamma=1.0,
            lambda_=0.9,
            clip_param=0.2,
            entropy_coeff=0.01,
            use_kl_loss=False,
        )
        .debugging(seed=1)
    )


def weights(algorithm: Algorithm, name: str) -> dict[str, np.ndarray]:
    """A copy of what the learner holds of a module, but for RLlib's constants."""
    state = algorithm.learner_group.get_weights(module_ids=[name])[name]
    return {key: np.array(value) for key, value in state.items() if not key.endswith("_const")}


def weights_of_runners(algorithm: Algorithm, name: str) -> list[dict[str, np.ndarray]]:
    """The policy that each of the two processes that play holds of a module."""
    return algorithm.env_runner_group.foreach_env_runner(
        lambda runner: runner.module[name].get_state(inference_only=True),
        local_env_runner=False,
    )


def are_equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Whether the parameters that both have are the same."""
    shared = one.keys() & other.keys()
    assert shared
    return all(np.array_equal(one[key], other[key]) for key in shared)


def play_in_runners(algorithm: Algorithm, episodes: int) -> list[Any]:
    """Episodes that the two processes play now, with exploration."""
    results = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: runner.sample(num_episodes=episodes, explore=True), local_env_runner=False
    )
    assert len(results) == 2
    return [episode for result in results for episode in result]


def count_actions(episodes: list[Any]) -> tuple[int, int]:
    """How many actions were taken, and how many of them the mask forbade."""
    taken = forbidden = 0
    for episode in episodes:
        for part in episode.agent_episodes.values():
            chosen = np.asarray(part.get_actions(), dtype=np.int64)
            masks = np.asarray(part.get_observations()["action_mask"])[: len(chosen)]
            taken += len(chosen)
            forbidden += int((masks[np.arange(len(chosen)), chosen] == 0).sum())
    return taken, forbidden


def positions(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of random play: ``float32[N, F]`` and ``int8[N, 27]``."""
    rng = np.random.default_rng(5)
    env = schnapsen_env.schnapsen_v0.env(rules="pagat_auto")
    seen: list[Any] = []
    seed = 0
    while len(seen) < number:
        env.reset(seed=seed)
        seed += 1
        while env.agents and not env.terminations[env.agent_selection]:
            observation = env.observe(env.agent_selection)
            seen.append((observation["observation"], observation["action_mask"]))
            env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
    observations, masks = zip(*seen[:number], strict=True)
    return np.stack(observations), np.stack(masks)


def greedy(module: Any, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """What the module itself holds best."""
    batch = {
        "obs": {
            "observation": torch.from_numpy(observations),
            "action_mask": torch.from_numpy(masks),
        }
    }
    return module.forward_inference(batch)["action_dist_inputs"].argmax(dim=1).numpy()


# --------------------------------------------------------------------------------- environment


def play_at_random(env: rllib.SchnapsenMultiAgentEnv, seed: int) -> Iterator[tuple[Any, ...]]:
    """The steps of an episode of legal random actions: (who acted, what step returned)."""
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    while True:
        ((agent, seen),) = observations.items()
        action = int(rng.choice(np.flatnonzero(seen["action_mask"])))
        step = env.step({agent: action})
        yield agent, action, step
        observations = step[0]
        if step[2]["__all__"]:
            return


def test_rllibs_own_check_finds_nothing_wrong() -> None:
    env = rllib.make_env({"rules": "duel"})
    for _ in range(20):  # it plays one random action each time, legal or not
        check_multiagent_environments(env)
    assert env.agents == list(SEATS)
    for agent in SEATS:
        assert env.get_observation_space(agent)["action_mask"].shape == (27,)


def test_the_environment_is_that_of_pettingzoo_and_renders() -> None:
    env = rllib.make_env({"rules": "duel", "render_mode": "ansi"})
    plain = schnapsen_env.schnapsen_v0.env(rules="duel", render_mode="ansi")
    plain.reset(seed=3)
    for agent, action, step in play_at_random(env, seed=3):
        assert plain.agent_selection == agent
        plain.step(action)
        assert env.render() == plain.render()
        for other, seen in step[0].items():
            expected = plain.observe(other)
            assert np.array_equal(seen["observation"], expected["observation"])
            assert np.array_equal(seen["action_mask"], expected["action_mask"])


def test_wrong_settings_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="leave illegal_action at 'lose'"):
        rllib.make_env({"illegal_action": "raise"})
    with pytest.raises(ValueError, match="choose another"):
        rllib.make_env({"obs_key": "action_mask"})
    with pytest.raises(ValueError, match="unknown rule set 'bridge'"):
        rllib.make_env({"rules": "bridge"})
    with pytest.raises(TypeError, match="rule_set"):
        rllib.make_env({"rule_set": "duel"})
    config = ppo()
    with pytest.raises(ValueError, match="slots must be at least 1, not 0"):
        rllib.use_past_selves(config, slots=0)
    with pytest.raises(ValueError, match="every must be at least 1"):
        rllib.use_past_selves(config, every=0)
    with pytest.raises(ValueError, match="latest_share must be from 0 to 1"):
        rllib.use_past_selves(config, latest_share=2)


# -------------------------------------------------------------------------------------- module


def make_module(describe: bool = False, **kwargs: Any) -> rllib.SchnapsenMaskedModule:
    env_config = {"rules": "pagat_auto", **kwargs}
    env = rllib.make_env(env_config)
    networks = DefaultModelConfig(fcnet_hiddens=[32])
    return rllib.SchnapsenMaskedModule(
        observation_space=env.get_observation_space("player_0"),
        action_space=env.get_action_space("player_0"),
        model_config=rllib.make_model_config(env_config, networks)
        if describe
        else {"fcnet_hiddens": [32]},
    )


@pytest.mark.parametrize("forward", ["forward_inference", "forward_exploration", "forward_train"])
def test_forbidden_actions_have_probability_0_and_the_batch_stays_whole(forward: str) -> None:
    module = make_module()
    observations, masks = positions(200)
    batch = {
        "obs": {
            "observation": torch.from_numpy(observations),
            "action_mask": torch.from_numpy(masks),
        }
    }
    logits = getattr(module, forward)(batch)["action_dist_inputs"]
    shares = torch.softmax(logits, dim=1)
    assert (shares[torch.from_numpy(masks) == 0] == 0).all()
    assert torch.allclose(shares.sum(dim=1), torch.ones(200))
    assert (shares > 0).sum() == (masks != 0).sum()
    assert set(batch["obs"]) == {"observation", "action_mask"}
    assert module.compute_values(batch).shape == (200,)


def test_a_row_in_which_nothing_is_allowed_has_finite_gradients() -> None:
    module = make_module()
    observations, masks = positions(4)
    masks[1:3] = 0
    batch = {
        "obs": {
            "observation": torch.from_numpy(observations),
            "action_mask": torch.from_numpy(masks),
        }
    }
    logits = module.forward_train(batch)["action_dist_inputs"]
    distribution = module.get_train_action_dist_cls().from_logits(logits)
    chosen = torch.from_numpy(masks.argmax(axis=1))
    (distribution.entropy().sum() + distribution.logp(chosen)[[0, 3]].sum()).backward()
    gradients = [p.grad for p in module.pi.parameters() if p.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


def test_observations_without_a_mask_are_refused() -> None:
    with pytest.raises(ValueError, match="no connector that flattens"):
        rllib.SchnapsenMaskedModule(
            observation_space=gymnasium.spaces.Box(0, 1, (5,)),
            action_space=gymnasium.spaces.Discrete(27),
        )


def test_the_agent_refuses_what_compiled_code_cannot_read() -> None:
    agent = RLlibAgent(make_module())
    observations, masks = positions(3)
    with pytest.raises(ValueError, match="rllib player takes observations of shape"):
        agent.act_batch(observations[:, :20], masks)
    with pytest.raises(ValueError, match="rllib player takes observations of shape"):
        agent.act(observations[0, :20], masks[0])
    with pytest.raises(TypeError, match="dtype float32, not uint8"):
        agent.act_batch(observations.astype(np.uint8), masks)
    spoilt = masks.astype(np.int64)
    spoilt[1, 4] = 256
    with pytest.raises(ValueError, match=r"action_masks\[1, 4\] = 256"):
        agent.act_batch(observations, spoilt)


# ------------------------------------------------------------------------------------ training


@dataclass
class Trained:
    """One policy for both seats, before and after training, and the last checkpoint."""

    before: Path
    after: Path
    has_moved: bool
    runners_follow: bool
    taken: int
    forbidden: int
    lengths: list[float]
    choices: np.ndarray


@pytest.fixture(scope="module")
def trained(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Trained:  # noqa: ARG001
    folder = tmp_path_factory.mktemp("shared")
    algorithm = rllib.use_shared_policy(ppo()).build_algo()
    try:
        before = weights(algorithm, rllib.MAIN)
        algorithm.save_to_path(str(folder / "before"))
        taken, forbidden = count_actions(play_in_runners(algorithm, 20))
        lengths = [algorithm.train()["env_runners"]["episode_len_mean"] for _ in range(5)]
        more, more_forbidden = count_actions(play_in_runners(algorithm, 20))
        algorithm.save_to_path(str(folder / "after"))
        after = weights(algorithm, rllib.MAIN)
        observations, masks = positions(300)
        return Trained(
            before=folder / "before",
            after=folder / "after",
            has_moved=not any(np.array_equal(before[key], after[key]) for key in before),
            runners_follow=all(
                are_equal(held, after) for held in weights_of_runners(algorithm, rllib.MAIN)
            ),
            taken=taken + more,
            forbidden=forbidden + more_forbidden,
            lengths=lengths,
            choices=greedy(algorithm.get_module(rllib.MAIN), observations, masks),
        )
    finally:
        algorithm.stop()


def test_two_workers_train_and_never_play_a_masked_action(trained: Trained) -> None:
    assert trained.has_moved
    assert trained.runners_follow
    assert trained.taken > 1000
    assert trained.forbidden == 0
    assert all(length > 5 for length in trained.lengths)  # an illegal action would end the deal


def test_training_moves_game_points_against_random(trained: Trained) -> None:
    before = evaluate(f"rllib:{trained.before}", "random", deals=300).game_points
    after = evaluate(f"rllib:{trained.after}", "random", deals=300).game_points
    # 20,000 steps have brought +1.2 +- 0.15, and the untrained network stands near 0.
    assert after.value - after.ci95 > 0.5
    assert after.value - after.ci95 > before.value + before.ci95


def test_trap_16_a_checkpoint_plays_as_its_module_did(trained: Trained) -> None:
    observations, masks = positions(300)
    agent = agents.load(f"rllib:{trained.after}", seed=1)
    chosen = agent.act_batch(observations, masks)
    assert chosen.dtype == np.int64
    assert masks[np.arange(300), chosen].all()
    assert np.array_equal(chosen, trained.choices)
    alone = agent.act(observations[7], masks[7])
    assert type(alone) is int
    assert alone == chosen[7]
    # ... and from the other folders that people give
    for place in ("learner_group", "learner_group/learner/rl_module"):
        again = RLlibAgent.from_checkpoint(trained.after / place, rllib.MAIN)
        assert np.array_equal(again.act_batch(observations, masks), chosen)


def test_a_sampling_agent_follows_the_policy_and_its_seed(trained: Trained) -> None:
    observations, masks = positions(1)
    observations, masks = observations.repeat(4000, axis=0), masks.repeat(4000, axis=0)
    spec = f"rllib:{trained.before},policy=main,sample=true"
    chosen = agents.load(spec, seed=1).act_batch(observations, masks)
    again = agents.load(spec, seed=1).act_batch(observations, masks)
    other = agents.load(spec, seed=2).act_batch(observations, masks)
    assert np.array_equal(chosen, again)
    assert not np.array_equal(chosen, other)
    module = rllib.load_module(trained.before)
    batch = {
        "obs": {
            "observation": torch.from_numpy(observations[:1]),
            "action_mask": torch.from_numpy(masks[:1]),
        }
    }
    policy = torch.softmax(module.forward_inference(batch)["action_dist_inputs"][0], dim=0)
    shares = np.bincount(chosen, minlength=27) / len(chosen)
    assert np.abs(shares - policy.numpy()).max() < 0.03  # four standard errors


def test_the_command_line_evaluates_a_checkpoint(trained: Trained) -> None:
    done = subprocess.run(
        [sys.executable, "evaluate.py", f"rllib:{trained.after}", "random", "--deals", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "game points" in done.stdout


# ------------------------------------------------------------------------------ past selves


class _Episode:
    def __init__(self, name: str) -> None:
        self.id_ = name


def test_opponents_are_drawn_by_episode_and_from_the_whole_pool() -> None:
    config = rllib.use_past_selves(ppo(), slots=3, latest_share=0.25)
    draw: Any = config.policy_mapping_fn
    pairs = [
        tuple(draw(agent, _Episode(f"episode {number}")) for agent in SEATS)
        for number in range(4000)
    ]
    assert pairs[:50] == [
        tuple(draw(agent, _Episode(f"episode {number}")) for agent in SEATS) for number in range(50)
    ]
    assert all(rllib.MAIN in pair for pair in pairs)
    latest = sum(pair == (rllib.MAIN, rllib.MAIN) for pair in pairs) / len(pairs)
    assert 0.2 < latest < 0.3
    for slot in range(3):
        for pair in ((rllib.MAIN, f"past_{slot}"), (f"past_{slot}", rllib.MAIN)):
            assert 0.09 < pairs.count(pair) / len(pairs) < 0.16


def test_the_pool_takes_in_past_selves_which_then_stay_as_they_were(
    cluster: None,  # noqa: ARG001 - the Ray that this runs on
    tmp_path: Path,
) -> None:
    config = rllib.use_past_selves(ppo(batch=1000), slots=2, every=1)
    algorithm = config.build_algo()
    try:
        untrained = weights(algorithm, rllib.MAIN)
        for slot in ("past_0", "past_1"):
            assert are_equal(weights(algorithm, slot), untrained)
        kept: list[dict[str, np.ndarray]] = []
        points: list[float] = []
        for iteration in range(1, 4):
            result = algorithm.train()
            assert result["past_selves"] == iteration
            points.append(result["env_runners"]["game_points_against_past"])
            kept.append(weights(algorithm, rllib.MAIN))
            assert not are_equal(kept[-1], kept[-2] if len(kept) > 1 else untrained)
        assert all(-3 <= value <= 3 for value in points)
        assert any(points)
        # The third has taken the place of the first; the second has stayed while main learnt on.
        for slot, copy in (("past_0", kept[2]), ("past_1", kept[1])):
            assert are_equal(weights(algorithm, slot), copy)
            assert all(are_equal(held, copy) for held in weights_of_runners(algorithm, slot))
        episodes = play_in_runners(algorithm, 20)
        players = {episode.module_for(agent) for episode in episodes for agent in SEATS}
        assert players == {rllib.MAIN, "past_0", "past_1"}
        taken, forbidden = count_actions(episodes)
        assert taken > 300
        assert forbidden == 0
        checkpoint = algorithm.save_to_path(str(tmp_path / "pool"))
    finally:
        algorithm.stop()

    assert rllib.policy_names(checkpoint) == [rllib.MAIN, "past_0", "past_1"]
    observations, masks = positions(100)
    chosen = {
        name: agents.load(f"rllib:{checkpoint}{option}").act_batch(observations, masks)
        for name, option in (("default", ""), ("main", ",policy=main"), ("old", ",policy=past_1"))
    }
    assert np.array_equal(chosen["default"], chosen["main"])
    assert not np.array_equal(chosen["main"], chosen["old"])

    restored = Algorithm.from_checkpoint(checkpoint)
    try:
        for name, copy in ((rllib.MAIN, kept[2]), ("past_0", kept[2]), ("past_1", kept[1])):
            assert are_equal(weights(restored, name), copy)
            assert all(are_equal(held, copy) for held in weights_of_runners(restored, name))
        assert restored.train()["past_selves"] == 4
        assert are_equal(weights(restored, "past_1"), weights(restored, rllib.MAIN))
    finally:
        restored.stop()


# --------------------------------------------------------------------------- separate policies


def test_separate_policies_both_learn_and_a_checkpoint_names_them(
    cluster: None,  # noqa: ARG001 - the Ray that this runs on
    tmp_path: Path,
) -> None:
    algorithm = rllib.use_separate_policies(ppo(batch=1000, suits="canonical")).build_algo()
    try:
        before = {name: weights(algorithm, name) for name in SEATS}
        assert not are_equal(before["player_0"], before["player_1"])
        algorithm.train()
        for name in SEATS:
            assert not are_equal(weights(algorithm, name), before[name])
        episodes = play_in_runners(algorithm, 5)
        assert all(episode.module_for(agent) == agent for episode in episodes for agent in SEATS)
        assert count_actions(episodes)[1] == 0
        checkpoint = algorithm.save_to_path(str(tmp_path / "separate"))
        modules = {name: algorithm.get_module(name) for name in SEATS}
        with pytest.raises(ValueError, match="choose one of player_0, player_1"):
            agents.load(f"rllib:{checkpoint}")
        # These were trained with suits renamed: the agent renames them, and its choice, by itself.
        env = rllib.make_env({"rules": "pagat_auto", "suits": "canonical"})
        plain = schnapsen_env.schnapsen_v0.env(rules="pagat_auto")
        for name in SEATS:
            agent = agents.load(f"rllib:{checkpoint},policy={name}")
            for seed in range(5):
                observations, _ = env.reset(seed=seed)
                plain.reset(seed=seed)
                while True:
                    ((mover, seen),) = observations.items()
                    action = int(
                        greedy(modules[name], seen["observation"][None], seen["action_mask"][None])[
                            0
                        ]
                    )
                    shown = plain.observe(mover)
                    chosen = agent.act(shown["observation"], shown["action_mask"])
                    assert shown["action_mask"][chosen]
                    observations, rewards, ends, *_ = env.step({mover: action})
                    plain.step(chosen)
                    if ends["__all__"]:
                        break
                    # The same card was played in both, or the next mover sees something else.
                    assert plain.agent_selection == next(iter(observations))
                    assert np.array_equal(plain.state(), env.env.state()), (
                        "the two games went apart"
                    )
                assert rewards == plain.rewards
    finally:
        algorithm.stop()


# ------------------------------------------------------------------------------- checkpoints


class _Boom:
    """What unpickles to a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def checkpoint(trained: Trained, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(trained.after, tmp_path / "checkpoint"))


MODULE = "learner_group/learner/rl_module/main"


def refused(path: Path, words: str, option: str = "") -> None:
    with pytest.raises(ValueError, match=words) as caught:
        agents.load(f"rllib:{path}{option}")
    assert isinstance(caught.value, rllib.RLlibCheckpointError)


def test_a_checkpoint_that_is_none_is_refused_with_the_reason(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "there is no folder .*nowhere")
    refused(tmp_path, "holds no checkpoint of RLlib")
    (tmp_path / "policies").mkdir()
    (tmp_path / "algorithm_state.pkl").write_bytes(b"")
    refused(tmp_path, "old API stack")


def test_a_damaged_checkpoint_is_refused_with_the_reason(checkpoint: Path) -> None:
    refused(checkpoint, "no policy 'maim': it has main", ",policy=maim")
    with pytest.raises(ValueError, match="option sample is true or false"):
        agents.load(f"rllib:{checkpoint},sample=yes")
    state, metadata = (
        checkpoint / MODULE / "module_state.pkl",
        checkpoint / MODULE / "metadata.json",
    )
    whole, description = state.read_bytes(), json.loads(metadata.read_text())
    for damage in (b"", whole[:1000], b"\x00" * 50, pickle.dumps([1]), pickle.dumps({"a": 1})):
        state.write_bytes(damage)
        refused(checkpoint, "module_state.pkl")
    arrays = pickle.loads(whole)  # noqa: S301 - a file this test wrote
    state.write_bytes(pickle.dumps({key: value * np.nan for key, value in arrays.items()}))
    refused(checkpoint, "not finite")
    state.write_bytes(pickle.dumps(dict(list(arrays.items())[1:])))
    refused(checkpoint, "do not fit")
    state.write_bytes(pickle.dumps({key: value[:1] for key, value in arrays.items()}))
    refused(checkpoint, "do not fit")
    state.write_bytes(whole)
    section = description["schnapsen_env"]
    for name, value, words in (
        ("format", 99, "has format 99"),
        ("layout_version", 0, "train again, or use the schnapsen-env that wrote it"),
        ("features", "many", "features is 'many'"),
        ("features", 10, "do not fit"),
        ("training", "duel", "training is 'duel'"),
        ("training", {**section["training"], "suits": "red"}, "is damaged: training is"),
        ("training", {**section["training"], "rules": None}, "is damaged: training is"),
    ):
        metadata.write_text(json.dumps({**description, "schnapsen_env": {**section, name: value}}))
        with pytest.raises(ValueError, match=words):
            agents.load(f"rllib:{checkpoint}")
    del description["schnapsen_env"]
    metadata.write_text(json.dumps(description))
    refused(checkpoint, "not of a SchnapsenMaskedModule")
    metadata.write_text("{")
    refused(checkpoint, "metadata.json cannot be read")


def test_a_checkpoint_plays_by_its_own_rules_only(trained: Trained) -> None:
    spec = f"rllib:{trained.after}"
    observations, masks = positions(50)
    chosen = agents.load(spec, "pagat_auto").act_batch(observations, masks)
    # What a single deal does not depend on may differ, as it may for ppo:.
    longer = dataclasses.replace(schnapsen_env.RULES["pagat_auto"], name="longer", target=11)
    assert np.array_equal(agents.load(spec, longer).act_batch(observations, masks), chosen)
    with pytest.raises(
        rllib.RLlibCheckpointError,
        match=r"was trained under the rules 'pagat_auto', not 'duel' \(.*any_rules=true plays it",
    ):
        agents.load(spec, "duel")
    with pytest.raises(rllib.RLlibCheckpointError, match="not 'pagat'"):
        agents.load(f"{spec},policy=main,any_rules=false", "pagat")
    anyway = agents.load(f"{spec},any_rules=true", "duel")
    assert np.array_equal(anyway.act_batch(observations, masks), chosen)
    training = rllib.load_module(trained.after).model_config["training"]
    assert training["rules"] == dataclasses.asdict(schnapsen_env.RULES["pagat_auto"])
    assert training | {"rules": None} == {
        "rules": None,
        "memory": "perfect",
        "suits": "natural",
        "history": False,
    }


def save_alone(module: rllib.SchnapsenMaskedModule, folder: Path) -> Path:
    """A folder of modules as RLlib writes it, with one module."""
    module.save_to_path(str(folder / "rl_module" / "main"))
    return folder


@pytest.mark.parametrize(
    ("env_config", "words"),
    [
        ({"memory": "none"}, "memory='none', history=False, and agents are shown memory='perfect'"),
        ({"memory": "last_trick"}, "memory='last_trick'"),
        ({"history": True}, "history=True, and agents are shown .*history=False"),
    ],
)
def test_a_policy_of_other_observations_is_refused(
    tmp_path: Path, env_config: dict[str, Any], words: str
) -> None:
    module = make_module(describe=True, **env_config)
    folder = save_alone(module, tmp_path)
    for option in ("", ",any_rules=true"):
        with pytest.raises(ValueError, match=words):
            agents.load(f"rllib:{folder}{option}")
    with pytest.raises(ValueError, match=words):
        RLlibAgent(module)


def test_a_checkpoint_that_does_not_say_how_it_was_trained_is_refused(tmp_path: Path) -> None:
    observations, masks = positions(50)
    folder = save_alone(make_module(suits="canonical"), tmp_path)
    refused(folder, r"does not say .*add_training\(.*any_rules=true plays it as it is")
    as_it_is = agents.load(f"rllib:{folder},any_rules=true").act_batch(observations, masks)
    with pytest.raises(ValueError, match="this env_config gives"):
        rllib.add_training(folder, {"history": True})
    with pytest.raises(ValueError, match="unknown rule set 'bridge'"):
        rllib.add_training(folder, {"rules": "bridge"})
    rllib.add_training(folder, {"rules": "duel", "suits": "canonical"})
    rllib.add_training(folder, {"rules": "duel", "suits": "canonical"})  # the same again is fine
    with pytest.raises(rllib.RLlibCheckpointError, match="says already that it was trained"):
        rllib.add_training(folder, {"rules": "duel"})
    renamed = agents.load(f"rllib:{folder}", "duel").act_batch(observations, masks)
    assert masks[np.arange(50), renamed].all()
    assert not np.array_equal(renamed, as_it_is)  # now suits are renamed for it
    refused(folder, "was trained under the rules 'duel', not 'pagat_auto'")
    with pytest.raises(rllib.RLlibCheckpointError, match="there is no folder"):
        rllib.add_training(tmp_path / "nowhere", {})


@pytest.mark.parametrize(
    "use", [rllib.use_shared_policy, rllib.use_separate_policies, rllib.use_past_selves]
)
def test_what_is_recorded_is_what_is_played(
    cluster: None,  # noqa: ARG001 - the Ray that this runs on
    use: Any,
) -> None:
    with pytest.raises(ValueError, match=r"set config.environment\(.*\) first"):
        use(PPOConfig())
    config = use(ppo(batch=100).env_runners(num_env_runners=0))
    specs = config.rl_module_spec.rl_module_specs.values()
    assert all(spec.model_config["training"]["rules"]["name"] == "pagat_auto" for spec in specs)
    config.environment(env_config={"rules": "duel"})
    with pytest.raises(ValueError, match=r"use_past_selves after config.environment"):
        config.build_algo()


@pytest.mark.parametrize(
    "use", [rllib.use_shared_policy, rllib.use_separate_policies, rllib.use_past_selves]
)
def test_callbacks_of_the_user_are_kept(use: Any) -> None:
    def mine(**_kwargs: Any) -> None: ...

    config = ppo().callbacks(on_algorithm_init=mine)
    use(use(config))
    first, *others = config.callbacks_on_algorithm_init
    assert first is mine
    assert len(others) == 1  # the check, once


def test_loading_runs_no_code_of_the_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    bomb = pickle.dumps(_Boom(tmp_path / "boom"))
    for path in checkpoint.rglob("*.pkl"):
        if path.name != "module_state.pkl":
            path.write_bytes(bomb)
    agents.load(f"rllib:{checkpoint}")
    (checkpoint / MODULE / "module_state.pkl").write_bytes(bomb)
    refused(checkpoint, r"mkdir, which is no part of an array")
    assert not (tmp_path / "boom").exists()


def test_without_ray_the_message_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import agents\n"
        "try: agents.load('rllib:x')\n"
        "except ModuleNotFoundError as error: print(error)\n"
        "try: import schnapsen_env.integrations.rllib\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"agent 'rllib:x': {second}"
    assert second == "ray is not installed; pip install 'schnapsen-env[rllib]'"


# --------------------------------------------------------------- traps that users have reported


def stock_module(**env_config: Any) -> Any:
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

    env = rllib.make_env(env_config)
    return ActionMaskingTorchRLModule(
        observation_space=env.get_observation_space("player_0"),
        action_space=env.get_action_space("player_0"),
        model_config={"fcnet_hiddens": [16]},
        catalog_class=rllib.PPOCatalog,
    )


def test_trap_14_the_masking_module_reads_observations_as_they_are() -> None:
    """ray#32850, #44452, #44780: RLlib's example module asks for another key."""
    with pytest.raises(KeyError, match="observations"):
        stock_module()
    observations, masks = positions(100)
    chosen = greedy(make_module(), observations, masks)
    assert masks[np.arange(100), chosen].all()


def test_trap_15_both_agents_get_the_last_reward_and_observation() -> None:
    """ray#9029: the agent that acts is not the one that observes, and rewards were lost."""
    env = rllib.make_env({"rules": "pagat_auto"})
    twice_in_a_row = 0
    for seed in range(20):
        observations, infos = env.reset(seed=seed)
        episode = MultiAgentEpisode(
            observation_space=env.observation_spaces,
            action_space=env.action_spaces,
            agent_to_module_mapping_fn=lambda *_: "main",
        )
        episode.add_env_reset(observations=observations, infos=infos)
        last = None
        for agent, action, step in play_at_random(env, seed):
            seen, rewards, terminations, truncations, infos = step
            episode.add_env_step(
                observations=seen,
                actions={agent: action},
                rewards=rewards,
                infos=infos,
                terminateds=terminations,
                truncateds=truncations,
            )
            twice_in_a_row += agent == last
            last = agent
            if not terminations["__all__"]:
                assert len(seen) == 1
                assert set(rewards.values()) == {0.0}
        assert set(seen) == set(SEATS)
        assert sum(rewards.values()) == 0
        assert all(rewards[agent] == infos[agent]["game_points"] for agent in SEATS)
        assert episode.is_done
        for agent, part in episode.agent_episodes.items():
            assert part.is_terminated
            assert part.get_return() == infos[agent]["game_points"]
    assert twice_in_a_row > 20


def test_trap_17_the_gymnasium_that_ray_pins_is_allowed_and_works() -> None:
    """ray#59382, #34396: exact pins of one library keep another out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = {need.name: need for need in map(Requirement, project["dependencies"])}
    for need in ours.values():
        assert all(bound.operator == ">=" for bound in need.specifier), str(need)
    pins = [
        need
        for need in map(Requirement, importlib.metadata.requires("ray") or [])
        if need.name == "gymnasium" and need.marker and need.marker.evaluate({"extra": "rllib"})
    ]
    assert pins
    assert gymnasium.__version__ in pins[0].specifier
    assert gymnasium.__version__ in ours["gymnasium"].specifier
    env = gymnasium.make("schnapsen/Schnapsen-v0", opponent="random")
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))
    many = gymnasium.make_vec("schnapsen/Schnapsen-v0", num_envs=3)
    _, info = many.reset(seed=0)
    many.step(info["action_mask"].argmax(axis=1))


def test_trap_28_observations_come_under_the_key_that_a_module_wants() -> None:
    """ray#44780, sample-factory PR#305: there is no standard name."""
    module = stock_module(rules="pagat_auto", obs_key="observations")
    env = rllib.make_env({"rules": "pagat_auto", "obs_key": "observations"})
    observations, _ = env.reset(seed=0)
    ((agent, seen),) = observations.items()
    assert env.get_observation_space(agent).contains(seen)
    batch = {"obs": {key: torch.from_numpy(value)[None] for key, value in seen.items()}}
    chosen = int(module.forward_inference(batch)["action_dist_inputs"].argmax())
    assert seen["action_mask"][chosen]
    ours = make_module(obs_key="observations")
    assert ours.get_metadata()["schnapsen_env"]["observation_key"] == "observations"


# ------------------------------------------------------------------------ documents and examples


def test_the_example_trains_a_pool_and_saves_what_can_be_played(tmp_path: Path) -> None:
    told = run_python(
        "examples/rllib/self_play.py",
        *("--pool", "--num-env-runners", "1", "--num-envs-per-env-runner", "8"),
        *("--iterations", "1", "--batch-size", "200"),
        *("--checkpoint", str(tmp_path / "saved")),
        warnings="default",
    )
    assert "against 0 past selves" in told
    agent = agents.load(f"rllib:{tmp_path / 'saved'}")
    record = engine.new_record(0)
    engine.deal_deck(record, np.random.default_rng(0).permutation(20), 0)
    observation, mask = observe(record, schnapsen_env.RULES["pagat_auto"].codes(), 0)
    assert mask[agent.act(observation, mask)]
