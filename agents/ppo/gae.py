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
            at: the rest of the deal could only add noise. (Where somebody else decides, what that
            player makes of the position counts instead, which may be worse.)
        learns: ``bool[T + 1, N]``, whether the policy takes the decision. One that somebody else
            takes is a part of the game like the turn of a card: the estimate passes through it,
            since what the policy would expect in that player's place says nothing about what that
            player does.

    Returns:
        Advantages and returns, ``float32[T, N]`` each, in the view of the player who moved; the
        advantages of decisions that are not :func:`learnable` are 0. The return of an exact row is
        that of the action taken, which a mistake makes smaller than the exact value.
    """
    carry = turn_signs(to_play) * gamma * ~dones
    decay = carry * gae_lambda
    if exact is not None:
        decay = decay * ~exact[1:]
    learnt = learnable(learns, dones) if learns is not None else None
    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[0])
    values = values.clone()
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + carry[t] * values[t + 1] - values[t]
        if learns is not None and learnt is not None:
            passed = rewards[t] + carry[t] * values[t + 1] + decay[t] * last
            last = torch.where(learnt[t], delta + decay[t] * last, 0.0)
            values[t] = torch.where(learns[t], values[t], passed)
        else:
            last = delta + decay[t] * last
        advantages[t] = last
    return advantages, advantages + values[:-1]


def learnable(learns: Tensor, dones: Tensor) -> Tensor:
    """Which decisions of the policy have an outcome within the rollout.

    That is the end of the deal or a later decision of the policy, whose value is known. One that
    only others follow has none: its own value has to do as the bootstrap of those before it.

    Args:
        learns: ``bool[T + 1, N]``, whether the policy takes the decision.
        dones: ``bool[T, N]``.

    Returns:
        ``bool[T, N]``; where the policy takes all decisions, all of them.
    """
    learnt = torch.zeros_like(dones)
    open_end = ~learns[-1]
    for t in reversed(range(len(dones))):
        open_end = open_end & ~dones[t]
        learnt[t] = learns[t] & ~open_end
        open_end = open_end & ~learns[t]
    return learnt
