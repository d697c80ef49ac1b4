"""PPO by self-play on the PettingZoo environment, in one file and in the manner of CleanRL.

One network plays both seats of a few dozen AEC environments. What differs from PPO for a single
player is marked "two players" below: the reward is that of the player who has just moved, and a
value changes its sign exactly where the player to move changes, which is not at every step.

    pip install -e '.[train]'
    python examples/cleanrl/ppo_aec.py

Letters in shapes: T steps, N environments, M rows of a minibatch, F features, A = 27 actions.
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

from schnapsen_env import schnapsen_v0


@dataclass
class Args:
    """The command line."""

    seed: int = 1
    """Seeds the weights, the deals and the choice of actions."""
    rules: str = "pagat_auto"
    """The rule set."""
    total_timesteps: int = 500_000
    """Decisions of both players together."""
    num_envs: int = 64
    """Environments that are stepped in turn."""
    num_steps: int = 128
    """Steps in each environment between two updates."""
    learning_rate: float = 1e-3
    """Of Adam, at the start; it falls to 0."""
    gamma: float = 1.0
    """Discount; a deal is at most 27 actions long."""
    gae_lambda: float = 0.95
    """Decay of the advantage estimate."""
    update_epochs: int = 3
    """Passes over each batch."""
    minibatch_size: int = 1024
    """Rows of a gradient step."""
    clip_coef: float = 0.2
    """How far the ratio of new to old probability may move."""
    vf_coef: float = 0.5
    """Weight of the value's loss."""
    ent_coef: float = 0.02
    """Weight of the entropy."""
    uniform_kl_coef: float = 0.03
    """Weight of KL(uniform || policy), which keeps rare actions such as closing alive."""
    max_grad_norm: float = 0.5
    """Gradients are cut to this norm."""
    eval_deals: int = 2_000
    """Deals against the random opponent at the end."""


class Agent(nn.Module):
    """Two hidden layers; logits and the value of the player to move."""

    def __init__(self, num_features: int, num_actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(num_features, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()
        )
        self.actor = nn.Linear(256, num_actions)
        self.critic = nn.Linear(256, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)  # the first policy is close to uniform

    def forward(self, observations: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Log probabilities ``float[M, A]``, about -1e8 where illegal, and values ``float[M]``."""
        hidden = self.trunk(observations)
        # Not minus infinity: 0 * inf in the entropy would be not-a-number.
        logits = torch.where(masks, self.actor(hidden), -1e8)
        return logits.log_softmax(-1), self.critic(hidden).squeeze(-1)


class SelfPlay:
    """N AEC environments, always at the moment in which somebody is to move."""

    def __init__(self, args: Args) -> None:
        self.envs = [schnapsen_v0.raw_env(rules=args.rules) for _ in range(args.num_envs)]
        for row, env in enumerate(self.envs):
            env.reset(seed=args.seed * 100_003 + row)

    def observe(self) -> tuple[Tensor, Tensor, Tensor]:
        """Observations ``float[N, F]``, masks ``bool[N, A]`` and seats ``int[N]`` to move."""
        seen = [env.observe(env.agent_selection) for env in self.envs]
        observations = np.stack([one["observation"] for one in seen])
        masks = np.stack([one["action_mask"] for one in seen]).astype(bool)
        seats = [env.possible_agents.index(env.agent_selection) for env in self.envs]
        return torch.from_numpy(observations), torch.from_numpy(masks), torch.tensor(seats)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Rewards ``float[N]`` of those who have moved, and whether their deals are over."""
        rewards, dones = torch.zeros(len(self.envs)), torch.zeros(len(self.envs), dtype=torch.bool)
        for row, (env, action) in enumerate(zip(self.envs, actions.tolist(), strict=True)):
            mover = env.agent_selection
            env.step(action)
            # Two players: the reward belongs to the player who moved, whoever is next.
            rewards[row] = env.rewards[mover]
            dones[row] = env.terminations[mover]
            if dones[row]:
                env.reset()
        return rewards, dones


def turn_aware_gae(
    rewards: Tensor, values: Tensor, dones: Tensor, seats: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Generalised advantages ``float[T, N]`` for two players who do not strictly alternate.

    Args:
        rewards: ``float[T, N]``, of the player who moved.
        values: ``float[T + 1, N]``, of the player to move.
        dones: ``bool[T, N]``, whether the step ended a deal.
        seats: ``int[T + 1, N]``, who is to move.
        gamma: discount.
        gae_lambda: decay of the estimate.
    """
    # Two players: what is good for the next player is bad for me, unless the next player is me.
    sign = torch.where(seats[1:] == seats[:-1], 1.0, -1.0) * ~dones
    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * sign[t] * values[t + 1] - values[t]
        last = delta + gamma * gae_lambda * sign[t] * last
        advantages[t] = last
    return advantages


def train(args: Args) -> Agent:  # noqa: PLR0915 - to be read from top to bottom
    """Let the agent play itself for ``total_timesteps`` decisions and learn from them."""
    torch.manual_seed(args.seed)
    play = SelfPlay(args)
    observations, masks, seats = play.observe()
    agent = Agent(observations.shape[1], masks.shape[1])
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    steps, envs = args.num_steps, args.num_envs
    batch = steps * envs
    iterations = max(1, args.total_timesteps // batch)
    started = time.perf_counter()

    b_observations = torch.zeros(steps, *observations.shape)
    b_masks = torch.zeros(steps, *masks.shape, dtype=torch.bool)
    b_actions = torch.zeros(steps, envs, dtype=torch.long)
    b_log_probs = torch.zeros(steps, envs)
    b_rewards = torch.zeros(steps, envs)
    b_dones = torch.zeros(steps, envs, dtype=torch.bool)
    b_values = torch.zeros(steps + 1, envs)
    b_seats = torch.zeros(steps + 1, envs, dtype=torch.long)

    for iteration in range(iterations):
        left = 1.0 - iteration / iterations
        optimizer.param_groups[0]["lr"] = left * args.learning_rate

        # Play.
        for t in range(steps):
            with torch.no_grad():
                log_probs, values = agent(observations, masks)
            actions = log_probs.exp().multinomial(1)
            b_observations[t], b_masks[t], b_seats[t] = observations, masks, seats
            b_actions[t], b_values[t] = actions.squeeze(1), values
            b_log_probs[t] = log_probs.gather(1, actions).squeeze(1)
            b_rewards[t], b_dones[t] = play.step(b_actions[t])
            observations, masks, seats = play.observe()
        with torch.no_grad():
            b_values[-1] = agent(observations, masks)[1]
        b_seats[-1] = seats

        # Learn.
        advantages = turn_aware_gae(
            b_rewards, b_values, b_dones, b_seats, args.gamma, args.gae_lambda
        )
        returns = (advantages + b_values[:-1]).flatten()
        flat_observations, flat_masks = b_observations.flatten(0, 1), b_masks.flatten(0, 1)
        flat_actions, flat_log_probs = b_actions.flatten(), b_log_probs.flatten()
        flat_advantages = advantages.flatten()
        for _ in range(args.update_epochs):
            for rows in torch.randperm(batch).split(args.minibatch_size):
                legal = flat_masks[rows]
                log_probs, values = agent(flat_observations[rows], legal)
                taken = log_probs.gather(1, flat_actions[rows, None]).squeeze(1)
                ratio = (taken - flat_log_probs[rows]).exp()
                advantage = flat_advantages[rows]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
                value_loss = 0.5 * (values - returns[rows]).square().mean()
                entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
                count = legal.sum(-1)
                uniform_kl = -log_probs.where(legal, 0.0).sum(-1) / count - count.log()
                loss = (
                    policy_loss
                    + args.vf_coef * value_loss
                    - left * args.ent_coef * entropy
                    + left**2 * args.uniform_kl_coef * uniform_kl.mean()
                )
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        if iteration % 10 == 0 or iteration == iterations - 1:
            done = (iteration + 1) * batch
            unexplained = (returns - b_values[:-1].flatten()).var() / returns.var()
            sys.stdout.write(
                f"{done:>9,} decisions, {done / (time.perf_counter() - started):7,.0f} a second, "
                f"explained variance {1 - unexplained:.2f}\n"
            )
    return agent


def evaluate(agent: Agent, args: Args) -> tuple[float, float]:
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
            log_probs, _ = agent(torch.from_numpy(observations), masks)
        observations, _, dones, _, info = envs.step(log_probs.argmax(1).numpy())
        counted = dones & (left > 0)
        if counted.any():
            points.extend(info["game_points"][counted].tolist())
            left[counted] -= 1
    return float(np.mean(points)), float(1.96 * np.std(points) / np.sqrt(len(points)))


def main(args: Args) -> float:
    """Train and evaluate; returns the game points a deal against random."""
    torch.set_num_threads(1)  # more get in each other's way on a network of this size
    started = time.perf_counter()
    agent = train(args)
    mean, half = evaluate(agent, args)
    sys.stdout.write(
        f"against random: {mean:+.2f} +- {half:.2f} game points a deal, "
        f"after {time.perf_counter() - started:.0f} s\n"
    )
    return mean


if __name__ == "__main__":
    main(tyro.cli(Args))
