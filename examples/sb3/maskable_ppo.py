"""sb3-contrib's MaskablePPO against a built-in opponent: on one environment, or on a batch of them.

With one environment Stable-Baselines3 does everything by itself. The batch gives the same deals and
masks many rows at a time, and is the faster way.

    pip install 'schnapsen-env[sb3]'
    python examples/sb3/maskable_ppo.py
    python examples/sb3/maskable_ppo.py --num-envs 1 --total-timesteps 20_000
    python examples/sb3/maskable_ppo.py --opponent heuristic --total-timesteps 1_000_000
"""

# pyright: basic
# pyright: reportMissingImports=false
# (Neither library is installed where the sources are checked.)

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import torch
import tyro
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

import schnapsen_env  # noqa: F401 - registers the environment
from schnapsen_env.integrations.sb3 import SB3VecEnv


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
    """Environments in the batch; 1 takes a single environment without the adapter."""
    eval_deals: int = 1_000
    """Deals at the end."""
    save: Path | None = None
    """Where to write the model, as MaskablePPO.load reads it."""


def make_envs(args: Args) -> gymnasium.Env | SB3VecEnv:
    """One environment, or the batch as a VecEnv."""
    settings: dict[str, Any] = {"opponent": args.opponent, "rules": args.rules}
    if args.num_envs == 1:
        return gymnasium.make("schnapsen/Schnapsen-v0", **settings)
    return SB3VecEnv(
        gymnasium.make_vec("schnapsen/Schnapsen-v0", num_envs=args.num_envs, **settings)
    )


def make_model(args: Args) -> MaskablePPO:
    """The learner, which makes 4,096 decisions between two updates."""
    return MaskablePPO(
        "MlpPolicy",
        make_envs(args),
        n_steps=4096 // args.num_envs,
        batch_size=1024,
        n_epochs=4,
        learning_rate=1e-3,
        gamma=1.0,  # a deal is at most 27 actions long, and its result is all that counts
        ent_coef=0.01,
        policy_kwargs={"net_arch": [256, 256]},
        seed=args.seed,
    )


def train(args: Args) -> MaskablePPO:
    """Learn for ``total_timesteps`` decisions."""
    model = make_model(args)
    model.learn(args.total_timesteps)
    return model


def main(args: Args) -> float:
    """Train and evaluate; returns the game points a deal."""
    torch.set_num_threads(1)  # more get in each other's way on a network of this size
    started = time.perf_counter()
    model = train(args)
    mean, deviation = evaluate_policy(model, model.get_env(), n_eval_episodes=args.eval_deals)
    half = 1.96 * deviation / args.eval_deals**0.5
    sys.stdout.write(
        f"against {args.opponent}: {mean:+.2f} +- {half:.2f} game points a deal, "
        f"after {time.perf_counter() - started:.0f} s\n"
    )
    if args.save is not None:
        model.save(args.save)
    return mean


if __name__ == "__main__":
    main(tyro.cli(Args))
