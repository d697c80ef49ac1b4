"""The sign of the bootstrapped value: it changes exactly when the player to move changes."""

from __future__ import annotations

import torch

from agents.ppo.config import Config
from agents.ppo.gae import generalised_advantages, turn_signs
from agents.ppo.learner import Learner


def column(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers)[:, None]


#: Seat 0 moves twice (it closes, say, and then leads), seat 1 replies, seat 0 leads again and wins
#: the deal. Then a new deal: seat 1 twice, and seat 0 is to move when the rollout ends.
TO_PLAY = torch.tensor([0, 0, 1, 0, 1, 1, 0])[:, None]
DONES = torch.tensor([False, False, False, True, False, False])[:, None]
REWARDS = column(0.0, 0.0, 0.0, 2.0, 0.0, 0.0)
VALUES = column(0.5, 0.4, -0.3, 0.6, 0.2, -0.1, 0.7)


def test_signs_of_a_repeated_player() -> None:
    signs = torch.tensor([1.0, -1.0, -1.0, -1.0, 1.0, -1.0])
    assert torch.equal(turn_signs(TO_PLAY)[:, 0], signs)


def test_advantages_by_hand() -> None:
    # From the end, with gamma 1 and lambda 1/2; the sign is + where the same player moves again.
    # t=5: delta = -0.7 - (-0.1)     = -0.6                      A = -0.6
    # t=4: delta = +(-0.1) - 0.2     = -0.3   A = -0.3 + 0.5 * (-0.6) = -0.6
    # t=3: the deal ends: delta = 2 - 0.6     A = 1.4, and nothing of the next deal comes back
    # t=2: delta = -0.6 - (-0.3)     = -0.3   A = -0.3 - 0.5 * 1.4    = -1.0
    # t=1: delta = -(-0.3) - 0.4     = -0.1   A = -0.1 - 0.5 * (-1.0) = 0.4
    # t=0: delta = +0.4 - 0.5        = -0.1   A = -0.1 + 0.5 * 0.4    = 0.1
    advantages, returns = generalised_advantages(
        REWARDS, VALUES, DONES, TO_PLAY, gamma=1.0, gae_lambda=0.5
    )
    expected = column(0.1, 0.4, -1.0, 1.4, -0.6, -0.6)
    torch.testing.assert_close(advantages, expected)
    torch.testing.assert_close(returns, expected + VALUES[:-1])


def test_nothing_beyond_an_exact_value_is_looked_at() -> None:
    # As above, but the value at t=2 is exact: what comes after it does not reach t=1.
    # t=2: A = -1.0 as before
    # t=1: delta = -(-0.3) - 0.4     = -0.1   A = -0.1
    # t=0: delta = +0.4 - 0.5        = -0.1   A = -0.1 + 0.5 * (-0.1) = -0.15
    exact = torch.tensor([False, False, True, False, False, False, False])[:, None]
    advantages, _ = generalised_advantages(
        REWARDS, VALUES, DONES, TO_PLAY, gamma=1.0, gae_lambda=0.5, exact=exact
    )
    torch.testing.assert_close(advantages, column(-0.15, -0.1, -1.0, 1.4, -0.6, -0.6))


def test_discount_by_hand() -> None:
    # gamma 0.9, lambda 1/2: t=3 gives 1.4 as before, then
    # t=2: delta = -0.9 * 0.6 + 0.3 = -0.24   A = -0.24 - 0.45 * 1.4     = -0.87
    # t=1: delta = 0.9 * 0.3 - 0.4  = -0.13   A = -0.13 + 0.45 * 0.87    = 0.2615
    # t=0: delta = 0.9 * 0.4 - 0.5  = -0.14   A = -0.14 + 0.45 * 0.2615  = -0.022325
    advantages, _ = generalised_advantages(
        REWARDS, VALUES, DONES, TO_PLAY, gamma=0.9, gae_lambda=0.5
    )
    torch.testing.assert_close(advantages[:4], column(-0.022325, 0.2615, -0.87, 1.4))


def test_deals_of_a_batch_do_not_mix() -> None:
    both = [torch.cat([array, array.flip(0)], dim=1) for array in (REWARDS, VALUES, DONES, TO_PLAY)]
    together, _ = generalised_advantages(*both, gamma=1.0, gae_lambda=0.95)
    for deal in range(2):
        alone, _ = generalised_advantages(
            *(array[:, deal : deal + 1] for array in both), gamma=1.0, gae_lambda=0.95
        )
        torch.testing.assert_close(together[:, deal : deal + 1], alone)


def test_without_trust_in_values_the_returns_are_the_results_of_the_deals() -> None:
    """With lambda 1 the target of a decision is what its player really got, in real deals."""
    learner = Learner(Config(rules="pagat_auto", num_envs=64, num_steps=48, minibatch_size=64))
    rollout, counts = learner.collector.collect(learner.network)
    _, returns = generalised_advantages(
        rollout.rewards, rollout.values, rollout.dones, rollout.to_play, gamma=1.0, gae_lambda=1.0
    )
    checked = 0
    for deal in range(64):
        result = None  # of the running deal, seen from its end: (winner's view, seat)
        for t in reversed(range(48)):
            if rollout.dones[t, deal]:
                result = (float(rollout.rewards[t, deal]), int(rollout.to_play[t, deal]))
            if result is not None:
                points, seat = result
                sign = 1 if int(rollout.to_play[t, deal]) == seat else -1
                assert abs(float(returns[t, deal]) - sign * points) < 1e-4
                checked += 1
    assert counts.deals > 64
    assert checked > 1000
    same_again = (rollout.to_play[1:] == rollout.to_play[:-1])[~rollout.dones].float().mean()
    assert 0.2 < float(same_again) < 0.4  # "every third or fourth", as the documents say
