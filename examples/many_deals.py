"""Self-play in a batch of 1,024 deals: the loop that a learner of your own would stand in.

python examples/many_deals.py
"""

import numpy as np

from schnapsen_env.opponents import HeuristicOpponent
from schnapsen_env.vector import SchnapsenVectorEnv


def main(num_envs: int = 1024, num_steps: int = 200) -> float:
    """Let the heuristic player play itself; returns the mean game points of player_0."""
    envs = SchnapsenVectorEnv(num_envs, rules="pagat_auto")
    player = HeuristicOpponent()
    observations, info = envs.reset(seed=0)
    game_points: list[np.ndarray] = []
    for _ in range(num_steps):
        actions = player.act_batch(observations["observation"], observations["action_mask"])
        observations, rewards, terminations, _truncations, info = envs.step(actions)
        game_points.append(rewards[terminations, 0])
    points = np.concatenate(game_points)
    print(  # noqa: T201 - the point of an example
        f"{len(points):,} deals, player_0 {points.mean():+.3f} game points a deal, "
        f"next to move in deal 0: player_{info['to_play'][0]}"
    )
    return float(points.mean())


if __name__ == "__main__":
    main()
