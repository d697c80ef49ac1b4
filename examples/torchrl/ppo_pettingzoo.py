"""TorchRL's PPO by self-play on the PettingZoo environment, through PettingZooWrapper with masks.

Both agents are in one group and share one network. The wrapper gives the observations of both after
every step, so each agent has a stream of its own with one value a step, and TorchRL's stock GAE is
right: no sign changes anywhere, whoever moves next. Only the mover's action counts, so the policy
learns from the rows of the mover ("mask"), and the value from all of them.

    pip install 'schnapsen-env[torchrl]'
    python examples/torchrl/ppo_pettingzoo.py
"""

# pyright: basic
# pyright: reportMissingImports=false
# (TorchRL's annotations are incomplete, and it is not installed where the sources are checked.)

import sys
import time
from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
import tyro
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs.libs.pettingzoo import PettingZooWrapper
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from schnapsen_env import schnapsen_v0


@dataclass
class Args:
    """The command line."""

    seed: int = 1
    """Seeds the weights, the deals and the choice of actions."""
    rules: str = "pagat_auto"
    """The rule set."""
    total_frames: int = 60_000
    """Decisions of both players together."""
    frames_per_batch: int = 4_000
    """Decisions between two updates."""
    learning_rate: float = 1e-3
    """Of Adam, at the start; it falls to 0."""
    epochs: int = 6
    """Passes over each batch."""
    minibatch_size: int = 500
    """Rows of a gradient step."""
    entropy_coeff: float = 0.02
    """Weight of the entropy."""
    eval_deals: int = 2_000
    """Deals against the random opponent at the end."""


def make_network(num_features: int, num_outputs: int) -> nn.Module:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(num_features, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, num_outputs),
    )


def normalised(advantages: torch.Tensor) -> torch.Tensor:
    """Advantages of mean 0 and deviation 1."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def train(args: Args) -> nn.Module:
    """Let the policy play itself for ``total_frames`` decisions; returns its network."""
    torch.manual_seed(args.seed)
    env = PettingZooWrapper(
        schnapsen_v0.env(rules=args.rules),
        use_mask=True,
        group_map={"player": ["player_0", "player_1"]},
    )
    env.set_seed(args.seed)
    observation = ("player", "observation", "observation")
    num_features = env.observation_spec[observation].shape[-1]
    policy = make_network(num_features, env.full_action_spec["player", "action"].space.n)
    actor = ProbabilisticActor(
        TensorDictModule(policy, in_keys=[observation], out_keys=[("player", "logits")]),
        in_keys={"logits": ("player", "logits"), "mask": ("player", "action_mask")},
        out_keys=[("player", "action")],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
        log_prob_key=("player", "log_prob"),
    )
    critic = ValueOperator(
        make_network(num_features, 1), in_keys=[observation], out_keys=[("player", "state_value")]
    )
    gae = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
    loss_module = ClipPPOLoss(
        actor, critic, entropy_coeff=args.entropy_coeff, critic_coeff=0.5, normalize_advantage=False
    )
    keys = {
        name: ("player", name)
        for name in ("reward", "done", "terminated", "advantage", "value_target")
    }
    gae.set_keys(value=("player", "state_value"), **keys)
    loss_module.set_keys(
        value=("player", "state_value"),
        action=("player", "action"),
        sample_log_prob=("player", "log_prob"),
        **keys,
    )
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=args.learning_rate, eps=1e-5)
    batch = args.frames_per_batch
    iterations = max(1, args.total_frames // batch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-3, total_iters=iterations)
    collector = Collector(
        env,
        actor,
        frames_per_batch=batch,
        total_frames=iterations * batch,
        auto_register_policy_transforms=False,
    )
    started = time.perf_counter()
    for iteration, rollout in enumerate(collector):
        with torch.no_grad():
            gae(rollout)
        # One of the two agents moves in each step, and only its row is a decision.
        moves = rollout["player"][rollout["player", "mask"]]
        moves["advantage"] = normalised(moves["advantage"])
        decisions = TensorDict({"player": moves}, batch_size=[batch])
        for _ in range(args.epochs):
            for rows in torch.randperm(batch).split(args.minibatch_size):
                losses = loss_module(decisions[rows])
                value_loss = loss_module(rollout[rows])["loss_critic"]  # of both agents
                loss = losses["loss_objective"] + losses["loss_entropy"] + value_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
                optimizer.step()
        schedule.step()
        if iteration % 5 == 0 or iteration == iterations - 1:
            frames = (iteration + 1) * batch
            speed = frames / (time.perf_counter() - started)
            sys.stdout.write(f"{frames:>9,} decisions, {speed:7,.0f} a second\n")
    collector.shutdown()
    return policy


def evaluate(policy: nn.Module, args: Args) -> tuple[float, float]:
    """Game points a deal against the random opponent, and the half width of their 95 % interval."""
    envs = gymnasium.make_vec(
        "schnapsen/Schnapsen-v0", num_envs=256, opponent="random", rules=args.rules
    )
    observations, info = envs.reset(seed=args.seed + 1_000_000)
    points: list[float] = []
    # Of each environment as many deals: those that are over first are the short ones.
    left = np.full(envs.num_envs, -(-args.eval_deals // envs.num_envs))
    while left.any():
        with torch.no_grad():
            masks = torch.from_numpy(info["action_mask"]).bool()
            logits = policy(torch.from_numpy(observations)).where(masks, -torch.inf)
        observations, _, dones, _, info = envs.step(logits.argmax(1).numpy())
        counted = dones & (left > 0)
        if counted.any():
            points.extend(info["game_points"][counted].tolist())
            left[counted] -= 1
    return float(np.mean(points)), float(1.96 * np.std(points) / np.sqrt(len(points)))


def main(args: Args) -> float:
    """Train and evaluate; returns the game points a deal against random."""
    torch.set_num_threads(1)  # more get in each other's way on a network of this size
    started = time.perf_counter()
    policy = train(args)
    mean, half = evaluate(policy, args)
    sys.stdout.write(
        f"against random: {mean:+.2f} +- {half:.2f} game points a deal, "
        f"after {time.perf_counter() - started:.0f} s\n"
    )
    return mean


if __name__ == "__main__":
    main(tyro.cli(Args))
