"""Play Schnapsen in the terminal against any agent, a match to the target.

python examples/play.py
python examples/play.py ppo:agents/checkpoints/pagat_auto --rules pagat_auto --seat 0 --seed 4

You see your own cards only. Write what is offered, such as ``TH`` for the ten of hearts or
``declare-H``; ``quit``, or the end of the input, ends the game.
"""

import argparse
import sys

import gymnasium
import numpy as np

import agents
import schnapsen_env  # noqa: F401  # pyright: ignore[reportUnusedImport] - registers it
from schnapsen_env.actions import action_text


def choose(mask: np.ndarray) -> int | None:
    """Ask until a legal action is written; None to leave."""
    offered = {action_text(int(action)).lower(): int(action) for action in np.flatnonzero(mask)}
    while True:
        sys.stdout.write(f"{' '.join(offered)} > ".upper().replace("DECLARE", "declare"))
        sys.stdout.flush()
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if not line or answer == "quit":
            return None
        if answer in offered:
            return offered[answer]
        sys.stdout.write(f"{answer!r} is not offered\n")


def main() -> int:
    """Play a match, and say how it came out."""
    parser = argparse.ArgumentParser(description="Play Schnapsen against an agent.")
    parser.add_argument("agent", nargs="?", default="heuristic", help="as for evaluate.py")
    parser.add_argument("--rules", default="duel")
    parser.add_argument("--seat", type=int, choices=(0, 1), help="yours; by lot if left out")
    parser.add_argument("--seed", type=int, help="of the cards")
    arguments = parser.parse_args()
    env = gymnasium.make(
        "schnapsen/Schnapsen-v0",
        opponent=agents.load(arguments.agent, rules=arguments.rules),
        rules=arguments.rules,
        episode="match",
        seat=arguments.seat,
        render_mode="ansi",
    )
    _, info = env.reset(seed=arguments.seed)
    over = False
    while not over:
        sys.stdout.write(f"\n{env.render()}\n")
        action = choose(info["action_mask"])
        if action is None:
            return 0
        _, _, over, _, info = env.step(action)
        if "game_points" in info:
            sys.stdout.write(
                f"\n{info['end_reason']}: {info['game_points']:+d} game points for you\n"
            )
            yours, others = info["match_score"][info["seat"]], info["match_score"][1 - info["seat"]]
            sys.stdout.write(f"the match stands at {yours} : {others}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
