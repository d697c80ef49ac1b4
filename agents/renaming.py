"""Suits as a network calls them: what an agent is shown renamed, and the chosen actions named back.

Agents are shown natural suits, while a network may have been trained with others (``suits=``). This
is for networks that are called from outside; :mod:`agents.ppo.agent` does the same within its own
compiled loop.

Letters: ``N`` positions, ``F`` features, ``A = 27`` actions.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask, Actions, Observation, SamplingAgent
from agents.inputs import checked_inputs, require_legal
from schnapsen_env.compiled import compiled
from schnapsen_env.observation import action_in_natural_order, named_action, relabel
from schnapsen_env.view import PERFECT


@compiled
def rename_rows(
    observations: Observation,
    masks: ActionMask,
    suits_code: int,
    out: Observation,
    out_masks: ActionMask,
    orders: Actions,
) -> None:
    """Rename the suits of many positions.

    Args:
        observations: ``float32[N, F]`` in the default layout.
        masks: ``int8[N, A]``.
        suits_code: how the network names suits.
        out: ``float32[N, F]``, filled with the renamed observations.
        out_masks: ``int8[N, A]``, filled with their masks.
        orders: ``int64[N]``, filled with the orders of suits.
    """
    for row in range(len(observations)):
        orders[row] = relabel(observations[row], masks[row], suits_code, out[row], out_masks[row])


@compiled
def name_back(orders: Actions, actions: Actions) -> None:
    """Give actions, ``int64[N]``, their natural ids, in place."""
    for row in range(len(orders)):
        actions[row] = action_in_natural_order(orders[row], actions[row])


@compiled
def name_forth(
    records: Actions, codes: Actions, rows: Actions, suits_code: int, actions: Actions
) -> None:
    """Give natural ``actions``, ``int64[k]``, the ids by which a network calls them, in place.

    Args:
        records: ``int64[N, RECORD_SIZE]``.
        codes: ``Rules.codes()``.
        rows: ``int64[k]``, the records of the actions, in which their players are to move.
        suits_code: how the network names suits.
        actions: ``int64[k]``.
    """
    for i in range(len(rows)):
        actions[i] = named_action(records[rows[i]], codes, PERFECT, suits_code, 0, actions[i])


def renamed_inputs(
    player: str, observations: Any, action_masks: Any, suits_code: int
) -> tuple[Observation, ActionMask, Actions]:
    """What an agent is shown, checked and renamed.

    Args:
        player: what the player is called in an error.
        observations: see :func:`agents.inputs.checked_inputs`.
        action_masks: likewise.
        suits_code: how the network names suits.

    Returns:
        ``float32[N, F]``, ``int8[N, A]``, and the orders of suits for :func:`name_back`,
        ``int64[N]``.

    Raises:
        TypeError, ValueError: see :func:`agents.inputs.checked_inputs`.
    """
    given, masks = checked_inputs(player, observations, action_masks)
    inputs, renamed_masks = np.empty_like(given), np.empty_like(masks)
    orders: Actions = np.empty(len(given), dtype=np.int64)
    rename_rows(given, masks, suits_code, inputs, renamed_masks, orders)
    return inputs, renamed_masks, orders


class RenamingAgent(SamplingAgent):
    """A player whose network is called from Python and names suits in its own way.

    Args:
        suits_code: how the network names suits.
        sample: draw from the policy instead of taking its most probable action.
        seed: where the drawing starts.
    """

    #: What the player is called in an error.
    name = "network"

    def __init__(self, suits_code: int, *, sample: bool = False, seed: int = 0) -> None:
        super().__init__(sample=sample, seed=seed)
        self._suits_code = suits_code

    @abstractmethod
    def _scores(self, observations: Observation, action_masks: ActionMask) -> npt.NDArray[Any]:
        """Logits, ``float[N, A]``, for positions in the network's own names, one or more."""

    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        """The actions for many positions: ``float32[N, F]``, ``int8[N, 27]`` to ``int64[N]``.

        Raises:
            TypeError: an array is of another kind, see :func:`agents.inputs.checked_inputs`.
            ValueError: a shape or a number is wrong, likewise; or a mask allows nothing.
        """
        seen, masks, orders = renamed_inputs(
            self.name, observations, action_masks, self._suits_code
        )
        if not len(seen):
            return orders
        require_legal(masks)
        scores = self._scores(seen, masks)
        if self.sample:  # the largest logit with Gumbel noise is a sample of the policy
            scores = scores + self._rng.gumbel(size=scores.shape)
        actions: Actions = np.where(masks != 0, scores, -np.inf).argmax(axis=1).astype(np.int64)
        name_back(orders, actions)
        return actions
