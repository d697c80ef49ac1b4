"""One deal in OpenSpiel: the search of OpenSpiel against a random bot, action by action.

python examples/open_spiel/play_a_deal.py
"""

import numpy as np

# The module pyspiel is OpenSpiel itself, with a type that lets checkers pass: it ships none.
from schnapsen_env.integrations.open_spiel import ismcts_bot, pyspiel


def main() -> None:
    """Deal at the chance nodes, play, and print the returns."""
    game = pyspiel.load_game("python_schnapsen(rules=pagat_auto)")
    bots = [ismcts_bot(simulations=50, seed=1), pyspiel.make_uniform_random_bot(1, 2)]
    chance = np.random.default_rng(3)
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(chance.choice(outcomes, p=odds)))
            continue
        player = state.current_player()
        action = bots[player].step(state)
        print(f"player_{player}: {state.action_to_string(player, action)}")  # noqa: T201
        state.apply_action(action)
    print(f"game points: {state.returns()}")  # noqa: T201 - the point of an example


if __name__ == "__main__":
    main()
