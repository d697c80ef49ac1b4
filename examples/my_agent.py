"""An agent of your own, evaluated: docs/evaluate-my-agent.md.

python examples/my_agent.py
python evaluate.py python:examples.my_agent:MyAgent heuristic --deals 500
"""

import numpy as np

from agents.evaluation import evaluate
from schnapsen_env.actions import CLAIM
from schnapsen_env.observation import describe


class MyAgent:
    """Claims when it has 66, declares marriages, and else plays its highest legal card id."""

    def act(self, observation: np.ndarray, action_mask: np.ndarray) -> int:
        """The action for one position: ``float32[F]`` and ``int8[27]`` to an id in 0-26."""
        legal = np.flatnonzero(action_mask).tolist()
        if CLAIM in legal and describe(observation)["own_points"] >= 66:
            return CLAIM
        return max(action for action in legal if action < CLAIM - 2)


def main() -> None:
    """Play 200 different deals, each from both seats, against the random player."""
    result = evaluate(MyAgent(), "random", rules="pagat_auto", deals=200, seed=7)
    points = result.game_points
    print(  # noqa: T201 - the point of an example
        f"my agent, as player_0 and player_1: {points.value:+.2f} +- {points.ci95:.2f} game points"
    )


if __name__ == "__main__":
    main()
