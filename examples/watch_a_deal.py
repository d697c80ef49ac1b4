"""Two built-in players play one deal, with the board shown before every action.

python examples/watch_a_deal.py
"""

from schnapsen_env import schnapsen_v0
from schnapsen_env.actions import action_text
from schnapsen_env.opponents import make_opponent


def main() -> None:
    """Play the deal of seed 2: the heuristic player against a random one."""
    env = schnapsen_v0.env(rules="pagat_auto", render_mode="human")
    players = {"player_0": make_opponent("heuristic"), "player_1": make_opponent("random", seed=2)}
    env.reset(seed=2)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, _ = env.last(observe=False)
        if terminated or truncated:
            print(f"{agent}: {reward:+.0f} game points")  # noqa: T201 - the point of an example
            env.step(None)
            continue
        seen = env.observe(agent)
        action = players[agent].act(seen["observation"], seen["action_mask"])
        print(f"{agent}: {action_text(action)}")  # noqa: T201
        env.step(action)


if __name__ == "__main__":
    main()
