"""The opponents that are built in: random and heuristic.

An opponent sees what any agent sees, an observation of the default layout and its action mask.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.observation import BASE_SIZE, decode

__all__ = [
    "HeuristicOpponent",
    "Opponent",
    "RandomOpponent",
    "heuristic_action",
    "make_opponent",
]

_NOTHING_LEGAL: Final = (
    "the action mask is all zeros: the player is not to move, or the deal is over; "
    "ask an agent only when it is to move"
)


@runtime_checkable
class Opponent(Protocol):
    """Anything that can be asked for an action."""

    def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[np.int8]) -> int:
        """The action for one observation ``[F]`` and mask ``[27]``."""
        ...


class RandomOpponent:
    """Plays each legal action with the same chance."""

    def __init__(self, seed: int | None = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def reset(self, seed: int | None = None) -> None:
        """Start the random stream of ``seed``; None goes on with the present one."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)

    def act(
        self,
        observation: npt.NDArray[Any],  # noqa: ARG002 - what every agent is given
        action_mask: npt.NDArray[np.int8],
    ) -> int:
        """A random legal action.

        Raises:
            ValueError: nothing is legal.
        """
        legal = np.flatnonzero(action_mask)
        if legal.size == 0:
            raise ValueError(_NOTHING_LEGAL)
        return int(legal[self._rng.integers(legal.size)])

    def act_batch(
        self,
        observations: npt.NDArray[Any],  # noqa: ARG002 - what every agent is given
        action_masks: npt.NDArray[np.int8],
    ) -> npt.NDArray[np.int64]:
        """Random legal actions, ``int64[N]``, for masks ``[N, 27]``.

        Raises:
            ValueError: nothing is legal in some row.
        """
        running = np.cumsum(action_masks != 0, axis=1, dtype=np.int64)
        legal = running[:, -1]
        if (legal == 0).any():
            raise ValueError(_NOTHING_LEGAL)
        chosen = (self._rng.random(len(legal)) * legal).astype(np.int64)
        return (running > chosen[:, None]).argmax(axis=1)


def _check_shapes(
    observations: npt.NDArray[Any], action_masks: npt.NDArray[Any], rows: tuple[int, ...]
) -> None:
    """Compiled code reads without looking at bounds, so the shapes are checked before it runs.

    Raises:
        ValueError: the arrays are not of the default layout, or not of equally many rows.
    """
    wanted = ((*rows, BASE_SIZE), (*rows, NUM_ACTIONS))
    given = (np.shape(observations), np.shape(action_masks))
    if given != wanted:
        raise ValueError(
            f"the heuristic player takes observations and masks of shapes {wanted[0]} and "
            f"{wanted[1]} (the default layout, without history), not {given[0]} and {given[1]}"
        )


@compiled
def _decide(observation: Any, action_mask: Any) -> int:
    return heuristic_action(decode(observation, action_mask))


@compiled
def _decide_rows(observations: Any, action_masks: Any, actions: npt.NDArray[np.int64]) -> None:
    for row in range(len(actions)):
        actions[row] = _decide(observations[row], action_masks[row])


class HeuristicOpponent:
    """Plays by rules of thumb, see :mod:`schnapsen_env.heuristic`; the same in equal situations."""

    def reset(self, seed: int | None = None) -> None:
        """Do nothing: the player keeps no state."""

    def act(self, observation: npt.NDArray[np.float32], action_mask: npt.NDArray[np.int8]) -> int:
        """The action for one observation ``float32[F]`` of the default layout and its mask.

        Raises:
            ValueError: nothing is legal.
        """
        _check_shapes(observation, action_mask, ())
        action = int(_decide(observation, action_mask))
        if action < 0:
            raise ValueError(_NOTHING_LEGAL)
        return action

    def act_batch(
        self, observations: npt.NDArray[np.float32], action_masks: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int64]:
        """The actions, ``int64[N]``, for observations ``float32[N, F]`` and masks ``[N, 27]``.

        Raises:
            ValueError: nothing is legal in some row.
        """
        _check_shapes(observations, action_masks, (len(action_masks),))
        actions = np.empty(len(action_masks), dtype=np.int64)
        _decide_rows(observations, action_masks, actions)
        if (actions < 0).any():
            raise ValueError(_NOTHING_LEGAL)
        return actions


def make_opponent(spec: str | Opponent, seed: int | None = 0) -> Opponent:
    """The opponent of a name, or the object itself.

    Args:
        spec: ``"random"``, ``"heuristic"``, or anything with ``act``.
        seed: for the random stream of an opponent that has one.

    Raises:
        ValueError: an unknown name.
        TypeError: an object without ``act``.
    """
    if isinstance(spec, str):
        if spec == "random":
            return RandomOpponent(seed)
        if spec == "heuristic":
            return HeuristicOpponent()
        raise ValueError(
            f"unknown opponent {spec!r}: choose 'random', 'heuristic', or pass an object with "
            "act(observation, action_mask), such as agents.load('ppo:PATH')"
        )
    if not isinstance(spec, Opponent):
        raise TypeError(f"an opponent needs act(observation, action_mask); {spec!r} has none")
    return spec
