"""Self-play with RLlib's PPO, on one machine or on a Ray cluster.

python examples/rllib/self_play.py --pool --num-env-runners 2 --iterations 30
python evaluate.py rllib:runs/rllib random --deals 1000

A cluster needs no change here, see cluster.md beside this file.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false
# (Ray is optional, so its classes are unknown where the sources are checked.)

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import ray
from ray.rllib.algorithms.ppo import PPOConfig

from schnapsen_env.integrations import rllib


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, that of the process if None."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--shared", action="store_true", help="one policy for both seats (default)")
    who.add_argument("--separate", action="store_true", help="a policy for each seat")
    who.add_argument("--pool", action="store_true", help="one policy, also against its past selves")
    parser.add_argument("--rules", default="pagat_auto", help="a rule set of schnapsen_env.RULES")
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=4000, help="steps of an iteration")
    parser.add_argument("--num-env-runners", type=int, default=2, help="processes that play")
    parser.add_argument("--num-envs-per-env-runner", type=int, default=32)
    parser.add_argument("--num-learners", type=int, default=0, help="0: the driver learns")
    parser.add_argument("--num-gpus-per-learner", type=float, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--checkpoint", default="runs/rllib", help="where to save: a folder or a URI such as s3://"
    )
    return parser.parse_args(arguments)


def configure(args: argparse.Namespace) -> PPOConfig:
    """PPO for two agents, with the policies that the command line asks for."""
    config = (
        PPOConfig()
        .environment(rllib.register(), env_config={"rules": args.rules})
        .env_runners(
            num_env_runners=args.num_env_runners,
            num_envs_per_env_runner=args.num_envs_per_env_runner,
        )
        .learners(num_learners=args.num_learners, num_gpus_per_learner=args.num_gpus_per_learner)
        .training(
            train_batch_size_per_learner=args.batch_size,
            minibatch_size=min(512, args.batch_size),
            num_epochs=4,
            lr=1e-3,
            gamma=1.0,
            lambda_=0.9,
            clip_param=0.2,
            entropy_coeff=0.01,
            use_kl_loss=False,
        )
        .debugging(seed=args.seed)
    )
    if args.separate:
        return rllib.use_separate_policies(config)
    if args.pool:
        return rllib.use_past_selves(config, slots=4, every=5)
    return rllib.use_shared_policy(config)


def main() -> None:
    """Train, and save what evaluate.py plays."""
    args = parse()
    ray.init()  # joins the cluster that RAY_ADDRESS or `ray job submit` names, or starts Ray here
    algorithm = configure(args).build_algo()
    started = time.perf_counter()
    for _ in range(args.iterations):
        result = algorithm.train()
        steps = int(result["num_env_steps_sampled_lifetime"])
        seconds = time.perf_counter() - started
        line = f"{result['training_iteration']:4d}  {steps:9,d} steps  {steps / seconds:6,.0f}/s"
        against_past = result["env_runners"].get("game_points_against_past")
        if against_past is not None:
            line += f"  {against_past:+.2f} against {result['past_selves']} past selves"
        print(line, flush=True)  # noqa: T201 - the point of an example
    # RLlib wants a whole path, or a URI that names a file system.
    place = args.checkpoint if "://" in args.checkpoint else str(Path(args.checkpoint).resolve())
    print(f"saved {algorithm.save_to_path(place)}")  # noqa: T201
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
