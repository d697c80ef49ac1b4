"""PPO by self-play in PufferLib's manner: flat buffers, a row an agent, masks in the observation.

PufferLib's own trainer knows no action masks, so this loop brings a policy that takes them out of
the observation. Advantages are the ordinary ones, as for one player: the row of a seat is followed
by the row of the same seat, whoever moves. Rows that are not to move (``env.masks``) have no legal
action, so they teach the value and leave the policy alone.

    pip install -e '.[train]'
    python examples/puffer/ppo.py

Letters in shapes: T steps, R = 2N rows, one a seat, M rows of a minibatch, F features, A actions.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (torch's own annotations leave parts of its interface unknown.)

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
import tyro
from torch import Tensor, nn

from schnapsen_env.integrations.puffer import SchnapsenPufferEnv


@dataclass
class Args:
    """The command line."""

    seed: int = 1
    """Seeds the weights, the deals and the choice of actions."""
    rules: str = "pagat_auto"
    """The rule set."""
    total_timesteps: int = 600_000
    """Decisions of both players together."""
    num_envs: int = 256
    """Deals that are played side by side."""
    num_steps: int = 32
    """Steps in each deal between two updates."""
    learning_rate: float = 1e-3
    """Of Adam, at the start; it falls to 0."""
    gae_lambda: float = 0.95
    """Decay of the advantage estimate; the discount is 1."""
    update_epochs: int = 3
    """Passes over each batch."""
    minibatch_size: int = 2048
    """Rows of a gradient step, about half of them idle."""
    clip_coef: float = 0.2
    """How far the ratio of new to old probability may move."""
    vf_coef: float = 0.5
    """Weight of the value's loss."""
    ent_coef: float = 0.02
    """Weight of the entropy."""
    uniform_kl_coef: float = 0.03
    """Weight of KL(uniform || policy), which keeps rare actions such as closing alive."""
    eval_deals: int = 2_000
    """Deals against the random opponent at the end."""


class Policy(nn.Module):
    """Two hidden layers over a row of the buffer, ``uint8[M, F + A]``."""

    scale: Tensor

    def __init__(self, env: SchnapsenPufferEnv) -> None:
        super().__init__()
        self.num_features, num_actions = env.num_features, int(env.single_action_space.n)
        self.register_buffer("scale", torch.from_numpy(env.scale))
        # Whether it is to move is known from the mask and told to the value.
        self.trunk = nn.Sequential(
            nn.Linear(self.num_features + 1, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()
        )
        self.actor = nn.Linear(256, num_actions)
        self.critic = nn.Linear(256, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # the first policy is close to uniform

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log probabilities ``float[M, A]``, values ``float[M]`` and masks ``bool[M, A]``."""
        features = rows[:, : self.num_features] * self.scale
        masks = rows[:, self.num_features :].bool()
        is_live = masks.any(-1, keepdim=True).float()
        hidden = self.trunk(torch.cat([features, is_live], -1))
        # Where nothing is legal this is uniform and a constant: no gradient, no not-a-number.
        logits = torch.where(masks, self.actor(hidden), -1e8)
        return logits.log_softmax(-1), self.critic(hidden).squeeze(-1), masks


def gae(rewards: Tensor, values: Tensor, dones: Tensor, gae_lambda: float) -> Tensor:
    """Generalised advantages ``float[T, R]`` without a discount.

    Args:
        rewards: ``float[T, R]``.
        values: ``float[T + 1, R]``.
        dones: ``bool[T, R]``, whether the step ended a deal.
        gae_lambda: decay of the estimate.
    """
    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        goes_on = ~dones[t]
        last = rewards[t] + goes_on * (values[t + 1] + gae_lambda * last) - values[t]
        advantages[t] = last
    return advantages


def train(args: Args) -> Policy:  # noqa: PLR0915 - to be read from top to bottom
    """Let the policy play itself for ``total_timesteps`` decisions and learn from them."""
    torch.manual_seed(args.seed)
    env = SchnapsenPufferEnv(args.num_envs, seed=args.seed, rules=args.rules)
    env.reset()
    # The buffers stay the same arrays, so these tensors see every step.
    rows, rewards = torch.from_numpy(env.observations), torch.from_numpy(env.rewards)
    terminals, live = torch.from_numpy(env.terminals), torch.from_numpy(env.masks)
    policy = Policy(env)
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.learning_rate, eps=1e-5)
    shape = (args.num_steps, env.num_agents)
    batch = args.num_steps * args.num_envs  # decisions; the rows are twice as many
    iterations = max(1, args.total_timesteps // batch)
    started = time.perf_counter()

    b_rows = torch.zeros(*shape, rows.shape[1], dtype=torch.uint8)
    b_actions = torch.zeros(shape, dtype=torch.long)
    b_log_probs, b_rewards = torch.zeros(shape), torch.zeros(shape)
    b_dones, b_live = torch.zeros(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.bool)
    b_values = torch.zeros(args.num_steps + 1, env.num_agents)

    for iteration in range(iterations):
        left = 1.0 - iteration / iterations
        optimizer.param_groups[0]["lr"] = left * args.learning_rate

        # Play.
        for t in range(args.num_steps):
            with torch.no_grad():
                log_probs, values, _ = policy(rows)
            actions = log_probs.exp().multinomial(1)
            b_rows[t], b_live[t], b_values[t] = rows, live, values
            b_actions[t] = actions.squeeze(1)
            b_log_probs[t] = log_probs.gather(1, actions).squeeze(1)
            env.step(b_actions[t].numpy())
            b_rewards[t], b_dones[t] = rewards, terminals
        with torch.no_grad():
            b_values[-1] = policy(rows)[1]

        # Learn.
        advantages = gae(b_rewards, b_values, b_dones, args.gae_lambda)
        returns = (advantages + b_values[:-1]).flatten()
        decided = advantages[b_live]
        advantages = ((advantages - decided.mean()) / (decided.std() + 1e-8)).flatten()
        flat_rows, flat_live = b_rows.flatten(0, 1), b_live.flatten()
        flat_actions, flat_log_probs = b_actions.flatten(), b_log_probs.flatten()
        for _ in range(args.update_epochs):
            for chosen in torch.randperm(2 * batch).split(args.minibatch_size):
                log_probs, values, masks = policy(flat_rows[chosen])
                value_loss = 0.5 * (values - returns[chosen]).square().mean()
                moves = flat_live[chosen]
                decisions = chosen[moves]
                log_probs, masks = log_probs[moves], masks[moves]
                taken = log_probs.gather(1, flat_actions[decisions, None]).squeeze(1)
                ratio = (taken - flat_log_probs[decisions]).exp()
                clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                advantage = advantages[decisions]
                policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
                entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
                count = masks.sum(-1)
                uniform_kl = -log_probs.where(masks, 0.0).sum(-1) / count - count.log()
                loss = (
                    policy_loss
                    + args.vf_coef * value_loss
                    - left * args.ent_coef * entropy
                    + left**2 * args.uniform_kl_coef * uniform_kl.mean()
                )
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                optimizer.step()

        if iteration % 10 == 0 or iteration == iterations - 1:
            done = (iteration + 1) * batch
            unexplained = (returns - b_values[:-1].flatten()).var() / returns.var()
            sys.stdout.write(
                f"{done:>9,} decisions, {done / (time.perf_counter() - started):7,.0f} a second, "
                f"explained variance {1 - unexplained:.2f}\n"
            )
    env.close()
    return policy


def evaluate(policy: Policy, args: Args) -> tuple[float, float]:
    """Game points a deal against the random opponent, and the half width of their 95 % interval."""
    envs = gymnasium.make_vec(
        "schnapsen/Schnapsen-v0", num_envs=256, opponent="random", rules=args.rules
    )
    observations, info = envs.reset(seed=args.seed + 1_000_000)
    points: list[float] = []
    # Of each environment as many deals: those that are over first are the short ones.
    left = np.full(envs.num_envs, -(-args.eval_deals // envs.num_envs))
    while left.any():
        # That environment gives numbers in [0, 1]; the policy was trained on whole ones.
        whole = np.rint(observations / policy.scale.numpy())
        rows = np.concatenate([whole, info["action_mask"]], axis=1).astype(np.uint8)
        with torch.no_grad():
            actions = policy(torch.from_numpy(rows))[0].argmax(1)
        observations, _, dones, _, info = envs.step(actions.numpy())
        counted = dones & (left > 0)
        if counted.any():
            points.extend(info["game_points"][counted].tolist())
            left[counted] -= 1
    return float(np.mean(points)), float(1.96 * np.std(points) / np.sqrt(len(points)))


def main(args: Args) -> float:
    """Train and evaluate; returns the game points a deal against random."""
    torch.set_num_threads(1)  # more get in each other's way on a network of this size
    started = time.process_time()
    policy = train(args)
    mean, half = evaluate(policy, args)
    sys.stdout.write(
        f"against random: {mean:+.2f} +- {half:.2f} game points a deal, "
        f"after {time.process_time() - started:.0f} s of processor time\n"
    )
    return mean


if __name__ == "__main__":
    main(tyro.cli(Args))
