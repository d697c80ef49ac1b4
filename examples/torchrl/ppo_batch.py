"""TorchRL's PPO by self-play on the batch environment as a native TorchRL environment.

One policy plays both seats of a few hundred deals. Everything is TorchRL's own but for the
advantages: its estimators take the next step for one of the same player, so the ones here come from
turn_aware_advantages.

    pip install 'schnapsen-env[torchrl]'
    python examples/torchrl/ppo_batch.py
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
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss

from schnapsen_env.integrations.torchrl import SchnapsenSelfPlayEnv, turn_aware_advantages


@dataclass
class Args:
    """The command line."""

    seed: int = 1
    """Seeds the weights, the deals and the choice of actions."""
    rules: str = "pagat_auto"
    """The rule set."""
    total_frames: int = 500_000
    """Decisions of both players together."""
    num_envs: int = 512
    """Deals that are played side by side."""
    num_steps: int = 32
    """Steps in each deal between two updates."""
    learning_rate: float = 1e-3
    """Of Adam, at the start; it falls to 0."""
    epochs: int = 3
    """Passes over each batch."""
    minibatch_size: int = 1024
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
    env = SchnapsenSelfPlayEnv(args.num_envs, rules=args.rules)
    env.set_seed(args.seed)
    num_features = env.observation_spec["observation"].shape[-1]
    policy = make_network(num_features, env.action_spec.space.n)
    actor = ProbabilisticActor(
        TensorDictModule(policy, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        out_keys=["action"],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(make_network(num_features, 1), in_keys=["observation"])
    loss_module = ClipPPOLoss(
        actor, critic, entropy_coeff=args.entropy_coeff, critic_coeff=0.5, normalize_advantage=False
    )
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=args.learning_rate, eps=1e-5)
    batch = args.num_envs * args.num_steps
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
            critic(rollout)
            last_value = critic(rollout[:, -1]["next"].clone())["state_value"]
        turn_aware_advantages(rollout, last_value)
        decisions = rollout.reshape(-1)
        decisions["advantage"] = normalised(decisions["advantage"])
        for _ in range(args.epochs):
            for rows in torch.randperm(batch).split(args.minibatch_size):
                losses = loss_module(decisions[rows])
                loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
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
