"""Tianshou 2 on the PettingZoo environment: masked DQN against a random player, or against itself.

Tianshou's buffer holds the steps of both agents in the order of play, so the step after an agent's
own is often the opponent's, and a value bootstrapped from it would have the wrong sign. A return
horizon longer than a deal leaves nothing to bootstrap: targets are the results of the deals.

    pip install 'schnapsen-env[tianshou]'
    python examples/tianshou/dqn_marl.py
    python examples/tianshou/dqn_marl.py --self-play
"""

# pyright: basic
# pyright: reportMissingImports=false
# (Tianshou is not installed where the sources are checked.)

import sys
import time
from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
import tyro
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from schnapsen_env import schnapsen_v0
from schnapsen_env.integrations.tianshou import SchnapsenTianshouEnv

#: No deal has more actions (docs/environment.md).
LONGEST_DEAL = 27


@dataclass
class Args:
    """The command line."""

    seed: int = 1
    """Seeds the weights, the deals and the choice of actions."""
    rules: str = "pagat_auto"
    """The rule set."""
    self_play: bool = False
    """Both agents are the learner, with one network; otherwise player_1 is random."""
    epochs: int = 4
    """Rounds of training."""
    epoch_steps: int = 12_000
    """Decisions of both agents in each."""
    num_envs: int = 16
    """Environments that are stepped in turn."""
    learning_rate: float = 1e-3
    """Of Adam."""
    exploration: float = 0.15
    """Share of random actions in training."""
    eval_deals: int = 2_000
    """Deals against the random opponent at the end."""


def make_env(rules: str) -> SchnapsenTianshouEnv:
    """The AEC environment in Tianshou's wrapper, which passes the masks on."""
    return SchnapsenTianshouEnv(schnapsen_v0.env(rules=rules))


def make_learner(env: SchnapsenTianshouEnv, args: Args) -> DQN:
    """Stock DQN; the mask in the observation is all it needs."""
    network = Net(
        state_shape=env.observation_space["observation"].shape,
        action_shape=env.action_space.n,
        hidden_sizes=(256, 256),
    )
    policy = DiscreteQLearningPolicy(
        model=network,
        action_space=env.action_space,
        observation_space=env.observation_space,
        eps_training=args.exploration,
    )
    return DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=args.learning_rate),
        gamma=1.0,
        n_step_return_horizon=LONGEST_DEAL,
    )


def train(args: Args) -> DQN:
    """Train for ``epochs`` rounds; returns the learner."""
    np.random.seed(args.seed)  # noqa: NPY002 - Tianshou explores with numpy's global generator
    torch.manual_seed(args.seed)
    env = make_env(args.rules)
    learner = make_learner(env, args)
    other = (
        learner if args.self_play else MARLRandomDiscreteMaskedOffPolicyAlgorithm(env.action_space)
    )
    algorithm = MultiAgentOffPolicyAlgorithm(algorithms=[learner, other], env=env)
    envs = DummyVectorEnv([lambda: make_env(args.rules) for _ in range(args.num_envs)])
    envs.seed(args.seed)
    buffer = VectorReplayBuffer(20_000, args.num_envs)
    collector = Collector(algorithm, envs, buffer, exploration_noise=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=args.epochs,
            epoch_num_steps=args.epoch_steps,
            collection_step_num_env_steps=40 * args.num_envs,
            update_step_num_gradient_steps_per_sample=1 / 40,
            batch_size=512,
            test_in_training=False,
        )
    )
    return learner


def evaluate(learner: DQN, args: Args) -> tuple[float, float]:
    """Game points a deal against the random opponent, and the half width of their 95 % interval."""
    envs = gymnasium.make_vec(
        "schnapsen/Schnapsen-v0", num_envs=256, opponent="random", rules=args.rules
    )
    observations, info = envs.reset(seed=args.seed + 1_000_000)
    points: list[float] = []
    # Of each environment as many deals: those that are over first are the short ones.
    left = np.full(envs.num_envs, -(-args.eval_deals // envs.num_envs))
    while left.any():
        seen = Batch(obs=Batch(obs=observations, mask=info["action_mask"].astype(bool)), info={})
        with torch.no_grad():
            actions = learner.policy(seen).act
        observations, _, dones, _, info = envs.step(actions)
        counted = dones & (left > 0)
        if counted.any():
            points.extend(info["game_points"][counted].tolist())
            left[counted] -= 1
    return float(np.mean(points)), float(1.96 * np.std(points) / np.sqrt(len(points)))


def main(args: Args) -> float:
    """Train and evaluate; returns the game points a deal against random."""
    torch.set_num_threads(1)  # more get in each other's way on a network of this size
    started = time.perf_counter()
    learner = train(args)
    mean, half = evaluate(learner, args)
    sys.stdout.write(
        f"against random: {mean:+.2f} +- {half:.2f} game points a deal, "
        f"after {time.perf_counter() - started:.0f} s\n"
    )
    return mean


if __name__ == "__main__":
    main(tyro.cli(Args))
