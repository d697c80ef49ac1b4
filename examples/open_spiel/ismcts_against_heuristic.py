"""OpenSpiel's information-set tree search against our heuristic player, each deck from both seats.

python examples/open_spiel/ismcts_against_heuristic.py [DECKS]
"""

import sys

import numpy as np

# The module pyspiel is OpenSpiel itself, with a type that lets checkers pass: it ships none.
from schnapsen_env.integrations.open_spiel import AgentBot, ismcts_bot, pyspiel
from schnapsen_env.opponents import HeuristicOpponent


def main(decks: int = 5) -> None:
    """Play ``decks`` decks twice and print the mean game points of the search."""
    game = pyspiel.load_game("python_schnapsen(rules=pagat_auto)")
    search, heuristic = ismcts_bot(simulations=100, seed=0), AgentBot(HeuristicOpponent())
    rng = np.random.default_rng(0)
    points: list[float] = []
    for _ in range(decks):
        deck = rng.permutation(20)
        first = pyspiel.evaluate_bots(game.dealt_state(deck), [search, heuristic], 0)
        second = pyspiel.evaluate_bots(game.dealt_state(deck), [heuristic, search], 0)
        points += [first[0], second[1]]
    print(  # noqa: T201 - the point of an example
        f"ISMCTS as player_0 and player_1: {np.mean(points):+.2f} game points in {2 * decks} deals"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
