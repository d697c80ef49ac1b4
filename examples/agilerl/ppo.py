"""AgileRL's PPO against a built-in opponent, on the batch of Gymnasium environments.

AgileRL takes action masks from the infos, where this environment has them too, and keeps them in
its rollout buffer, so nothing needs to be adapted.

    pip install 'schnapsen-env[agilerl]'      # in an environment of its own, see the page
    python examples/agilerl/ppo.py
"""

# pyright: basic
# pyright: reportMissingImports=false
# (The library is not installed where the sources are checked.)

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import gymnasium
import numpy as np
import torch
import tyro
from agilerl.algorithms import PPO
from agilerl.rollouts import collect_rollouts

import schnapsen_env  # noqa: F401 - registers the environment


@dataclass
class Args:
    """The command line."""

    seed: int = 1
    """Seeds the weights, the deals and the choice of actions."""
    rules: str = "pagat_auto"
    """The rule set."""
    opponent: Literal["random", "heuristic"] = "random"
    """Whom the learner plays against, in training and at the end."""
    total_timesteps: int = 200_000
    """Decisions of the learner."""
    num_envs: int = 64
    """Deals that are played side by side."""
    eval_deals: int = 1_000
    """Deals at the end."""
    save: Path | None = None
    """Where to write the agent, as PPO.load reads it."""


def make_envs(args: Args) -> gymnasium.vector.VectorEnv:
    """The batch of environments."""
    return gymnasium.make_vec(
        "schnapsen/Schnapsen-v0",
        num_envs=args.num_envs,
        opponent=args.opponent,
        rules=args.rules,
    )


def make_agent(args: Args) -> PPO:
    """The learner, which makes 4,096 decisions between two updates."""
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002 - AgileRL draws its minibatches from it
    envs = make_envs(args)
    hidden = {"hidden_size": [256]}
    return PPO(
        envs.single_observation_space,
        envs.single_action_space,
        net_config={
            "latent_dim": 256,
            "max_latent_dim": 256,
            "encoder_config": hidden,
            "head_config": hidden,
        },
        num_envs=args.num_envs,
        learn_step=4096,
        batch_size=1024,
        lr=1e-3,
        gamma=1.0,  # a deal is at most 27 actions long, and its result is all that counts
        ent_coef=0.01,
    )


def train(args: Args) -> PPO:
    """Learn for ``total_timesteps`` decisions."""
    agent, envs = make_agent(args), make_envs(args)
    observations, info = envs.reset(seed=args.seed)
    done, scores = np.zeros(args.num_envs), np.zeros(args.num_envs)
    for update in range(max(1, args.total_timesteps // agent.learn_step)):
        finished, observations, done, scores, info = collect_rollouts(
            agent,
            envs,
            last_obs=observations,
            last_done=done,
            last_scores=scores,
            last_info=info,
        )
        agent.learn()
        if update % 10 == 0:
            decisions = (update + 1) * agent.learn_step
            sys.stdout.write(f"{decisions:>9,} decisions, {np.mean(finished):+.2f} a deal\n")
    return agent


def evaluate(agent: PPO, args: Args) -> tuple[float, float]:
    """Game points a deal and the half width of their 95 % interval."""
    agent.set_training_mode(False)
    envs = make_envs(args)
    observations, info = envs.reset(seed=args.seed + 1_000_000)
    points: list[float] = []
    # Of each environment as many deals: those that are over first are the short ones.
    left = np.full(envs.num_envs, -(-args.eval_deals // envs.num_envs))
    while left.any():
        # The mask belongs to playing as much as to learning.
        actions, *_ = agent.get_action(observations, action_mask=info["action_mask"])
        observations, _, dones, _, info = envs.step(actions)
        counted = dones & (left > 0)
        if counted.any():
            points.extend(info["game_points"][counted].tolist())
            left[counted] -= 1
    return float(np.mean(points)), float(1.96 * np.std(points) / np.sqrt(len(points)))


def main(args: Args) -> float:
    """Train and evaluate; returns the game points a deal."""
    torch.set_num_threads(1)  # more get in each other's way on a network of this size
    started = time.process_time()
    agent = train(args)
    mean, half = evaluate(agent, args)
    sys.stdout.write(
        f"against {args.opponent}: {mean:+.2f} +- {half:.2f} game points a deal, "
        f"after {time.process_time() - started:.0f} s of processor time\n"
    )
    if args.save is not None:
        agent.save_checkpoint(str(args.save))
    return mean


if __name__ == "__main__":
    main(tyro.cli(Args))
