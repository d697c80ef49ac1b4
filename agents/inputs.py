"""What agents are shown, checked once and made ready for compiled code.

Shapes: ``N`` positions, ``F`` features of the default observation, 27 actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.base import ActionMask, Observation
from schnapsen_env.opponents import check_observations


def checked_inputs(
    player: str, observations: Any, action_masks: Any
) -> tuple[Observation, ActionMask]:
    """Observations and masks as compiled code takes them.

    Args:
        player: what the player is called in an error.
        observations: ``[N, F]`` of the default layout, floats in [0, 1].
        action_masks: ``[N, 27]``, integers or bools, 0 or 1.

    Returns:
        ``float32[N, F]`` and ``int8[N, 27]``, contiguous and writable; the given arrays themselves
        where they are so already.

    Raises:
        TypeError: the observations are not floats, or the masks neither integers nor bools.
        ValueError: a shape or a number is wrong: see
            :func:`schnapsen_env.opponents.check_observations`.
    """
    given, given_masks = np.asarray(observations), np.asarray(action_masks)
    check_observations(player, given, given_masks)
    # The compiled code is made for contiguous, writable arrays of these types and no others.
    inputs: Observation = np.require(given, np.float32, ["C", "W"])
    masks: ActionMask = np.require(given_masks, np.int8, ["C", "W"])
    return inputs, masks


def require_legal(action_masks: ActionMask) -> None:
    """Make sure that each mask, ``int8[N, 27]``, allows an action.

    Raises:
        ValueError: one does not; the message has its position.
    """
    nothing = ~action_masks.any(axis=1)
    if nothing.any():
        raise ValueError(f"the mask of position {int(nothing.argmax())} allows no action")
