"""Generalised advantage estimation for two players who do not take turns strictly.

Schulman, Moritz, Levine, Jordan, Abbeel, "High-Dimensional Continuous Control Using Generalized
Advantage Estimation" (2016), equations 11-16, with one change. A value is always that of the player
to move. The winner of a trick leads to the next, and who declares, exchanges or closes plays
afterwards, so every third or fourth decision is followed by one of the *same* player. In a game
where one player wins what the other loses, the value of the next position is

* ``+V`` to the player who has just moved if the same player moves again,
* ``-V`` if the other one does.

Letters: ``T`` steps, ``N`` deals.
"""

from __future__ import annotations

import torch
from torch import Tensor


def turn_signs(to_play: Tensor) -> Tensor:
    """+1 where the next step is the same player's, -1 where it is the other's.

    Args:
        to_play: ``int[T + 1, N]``, the seat to move at each step, and after the last one.

    Returns:
        ``float32[T, N]``.
    """
    same = to_play[1:] == to_play[:-1]
    return same.float() * 2.0 - 1.0


def generalised_advantages(
    rewards: Tensor,
    values: Tensor,
    dones: Tensor,
    to_play: Tensor,
    gamma: float,
    gae_lambda: float,
    exact: Tensor | None = None,
    learns: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Advantages and the value targets that go with them.

    Args:
        rewards: ``float32[T, N]``, what each step brought to the player who made it.
        values: ``float32[T + 1, N]``, of the player to move; the last row is the bootstrap.
        dones: ``bool[T, N]``, whether the step ended a deal. The next row then belongs to a new
            deal, and nothing of it reaches back.
        to_play: ``int[T + 1, N]``, the seat to move.
        gamma: discount.
        gae_lambda: decay of the estimate.
        exact: ``bool[T + 1, N]``, whether a value is the true one. Nothing beyond it is then looked
            at: the rest of the deal could only add noise.
        learns: ``bool[T, N]``, whether the policy took the decision. One that somebody else took is
            a part of the game like the turn of a card: the estimate passes through it, since what
            the policy would expect in that player's place says nothing about what that player does.

    Returns:
        Advantages and returns, ``float32[T, N]`` each, in the view of the player who moved; the
        advantages of decisions that others took are 0.
    """
    carry = turn_signs(to_play) * gamma * ~dones
    decay = carry * gae_lambda
    if exact is not None:
        decay = decay * ~exact[1:]
    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[0])
    values = values.clone()
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + carry[t] * values[t + 1] - values[t]
        last = delta + decay[t] * last
        if learns is not None:
            values[t] = torch.where(learns[t], values[t], values[t] + last)
            last = torch.where(learns[t], last, 0.0)
        advantages[t] = last
    return advantages, advantages + values[:-1]
