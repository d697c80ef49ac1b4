"""The opponents that are built in: random and heuristic.

An opponent sees what any agent sees, an observation of the default layout and its action mask.
"""

from __future__ import annotations

import copy
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.borrowed import borrowed
from schnapsen_env.compiled import compiled
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.observation import BASE_SIZE, FIELDS, decode

__all__ = [
    "BUILT_IN",
    "DrawingPlayer",
    "HeuristicOpponent",
    "Opponent",
    "RandomOpponent",
    "check_observations",
    "heuristic_action",
    "make_opponent",
    "put_state",
    "state_of",
]

#: The opponents that have a name.
BUILT_IN: Final = ("random", "heuristic")

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


def state_of(player: object) -> Any:
    """What the player's ``get_state()`` gives; None for one without that method."""
    get_state = getattr(player, "get_state", None)
    return get_state() if callable(get_state) else None


def put_state(player: object, state: Any) -> None:
    """Give the player's ``set_state`` what :func:`state_of` gave; nothing if it has none."""
    set_state = getattr(player, "set_state", None)
    if callable(set_state):
        set_state(state)


class DrawingPlayer:
    """A player with a random stream of its own, which can be kept and put back."""

    def __init__(self, seed: int | None = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def reset(self, seed: int | None = None) -> None:
        """Start the random stream of ``seed``; None goes on with the present one."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)

    def get_state(self) -> Any:
        """Where the random stream stands, for :meth:`set_state`."""
        return copy.deepcopy(self._rng.bit_generator.state)

    def set_state(self, state: Any) -> None:
        """Put the random stream where it stood.

        Raises:
            ValueError: nothing that :meth:`get_state` gave.
        """
        try:
            self._rng.bit_generator.state = state
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"set_state() takes what get_state() gave, not {state!r}") from error


class RandomOpponent(DrawingPlayer):
    """Plays each legal action with the same chance."""

    def act(
        self,
        observation: npt.NDArray[Any],  # noqa: ARG002 - what every agent is given
        action_mask: npt.NDArray[np.int8],
    ) -> int:
        """A random legal action.

        Raises:
            TypeError: the mask is neither of integers nor of bools.
            ValueError: the mask has another shape or other entries than 0 and 1; or nothing is
                legal.
        """
        _check_masks("random", np.asarray(action_mask)[None])
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
            TypeError: the masks are neither integers nor bools.
            ValueError: the masks have another shape or other entries than 0 and 1; or nothing is
                legal in some row.
        """
        _check_masks("random", np.asarray(action_masks))
        running = np.cumsum(action_masks != 0, axis=1, dtype=np.int64)
        legal = running[:, -1]
        if (legal == 0).any():
            raise ValueError(_NOTHING_LEGAL)
        chosen = (self._rng.random(len(legal)) * legal).astype(np.int64)
        return (running > chosen[:, None]).argmax(axis=1)


@compiled
def _are_unit(numbers: Any) -> bool:
    """Whether all numbers of a matrix lie in [0, 1]; NaN does not."""
    fits = True
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):  # no way out in between, so that it vectorises
            number = numbers[row, column]
            fits &= (number >= 0) & (number <= 1)
    return fits


def check_observations(
    player: str, observations: npt.NDArray[Any], action_masks: npt.NDArray[Any]
) -> None:
    """Check what a player is shown; compiled code reads without looking.

    Args:
        player: what the player is called in an error.
        observations: ``[N, F]`` of the default layout, float32 or float64.
        action_masks: ``[N, 27]``, integers or bools, 0 or 1.

    Raises:
        ValueError: a shape is wrong, a number is not in [0, 1], or an entry of a mask is neither 0
            nor 1: the first such is named.
        TypeError: the observations are not floats (those of a batch made with ``dtype=np.uint8``
            hold other numbers), or the masks neither integers nor bools.
    """
    shapes = np.shape(observations), np.shape(action_masks)
    rows = shapes[1][:1]
    wanted = ((*rows, BASE_SIZE), (*rows, NUM_ACTIONS))
    if shapes != wanted:
        raise ValueError(
            f"the {player} player takes observations of shape [N, {BASE_SIZE}] (the default "
            f"layout, without history) and masks of shape [N, {NUM_ACTIONS}], or one of each, "
            f"not {shapes[0]} and {shapes[1]}"
        )
    if observations.dtype.type not in (np.float32, np.float64):
        raise TypeError(
            f"the {player} player takes observations of dtype float32, not {observations.dtype}: "
            "make the environment with dtype=np.float32"
        )
    if not _are_unit(observations):
        row, column = _first_outside(observations)
        raise ValueError(
            f"the {player} player was shown observations[{row}, {column}] ({_field_at(column)}) = "
            f"{observations[row, column]}, which is not in [0, 1]: show it what the environment "
            "gives, unchanged"
        )
    _check_masks(player, action_masks)


def _check_masks(player: str, action_masks: npt.NDArray[Any]) -> None:
    """The part of :func:`check_observations` that is about the masks."""
    if action_masks.ndim != 2 or action_masks.shape[1] != NUM_ACTIONS:
        raise ValueError(
            f"the {player} player takes masks of shape [N, {NUM_ACTIONS}], or one of "
            f"{NUM_ACTIONS}, not {action_masks.shape}"
        )
    if action_masks.dtype.kind not in "iub":
        raise TypeError(
            f"the {player} player takes action masks of dtype int8, not {action_masks.dtype}"
        )
    if not _are_unit(action_masks):  # integers in [0, 1] are 0 and 1
        row, column = _first_outside(action_masks)
        raise ValueError(
            f"the {player} player was shown action_masks[{row}, {column}] = "
            f"{action_masks[row, column]}, which is neither 0 nor 1: show it what the environment "
            "gives, unchanged"
        )


def _first_outside(numbers: npt.NDArray[Any]) -> tuple[int, int]:
    """Row and column of the first number that is not in [0, 1]."""
    row, column = np.argwhere(~((numbers >= 0) & (numbers <= 1)))[0]
    return int(row), int(column)


def _field_at(column: int) -> str:
    return next(
        field.name for field in FIELDS if field.offset <= column < field.offset + field.size
    )


@compiled
def _decide(observation: Any, action_mask: Any) -> int:
    return heuristic_action(decode(observation, action_mask))


@compiled
def _decide_rows(observations: Any, action_masks: Any, actions: npt.NDArray[np.int64]) -> None:
    observations, action_masks = borrowed(observations), borrowed(action_masks)
    for row in range(len(actions)):
        actions[row] = _decide(observations[row], action_masks[row])


class HeuristicOpponent:
    """Plays by rules of thumb, see :mod:`schnapsen_env.heuristic`; the same in equal situations."""

    def reset(self, seed: int | None = None) -> None:
        """Do nothing: the player keeps no state."""

    def act(self, observation: npt.NDArray[np.float32], action_mask: npt.NDArray[np.int8]) -> int:
        """The action for one observation ``float32[F]`` of the default layout and its mask.

        Raises:
            TypeError: an array is of another kind, see :func:`check_observations`.
            ValueError: a shape or a number is wrong, likewise; or nothing is legal.
        """
        check_observations(
            "heuristic", np.asarray(observation)[None], np.asarray(action_mask)[None]
        )
        action = int(_decide(observation, action_mask))
        if action < 0:
            raise ValueError(_NOTHING_LEGAL)
        return action

    def act_batch(
        self, observations: npt.NDArray[np.float32], action_masks: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int64]:
        """The actions, ``int64[N]``, for observations ``float32[N, F]`` and masks ``[N, 27]``.

        Raises:
            TypeError: an array is of another kind, see :func:`check_observations`.
            ValueError: a shape or a number is wrong, likewise; or nothing is legal in some row.
        """
        check_observations("heuristic", observations, action_masks)
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
        if spec not in BUILT_IN:
            raise ValueError(
                f"unknown opponent {spec!r}: choose one of {', '.join(BUILT_IN)}, or pass an "
                "object with act(observation, action_mask), such as agents.load('ppo:PATH')"
            )
        return RandomOpponent(seed) if spec == "random" else HeuristicOpponent()
    if not isinstance(spec, Opponent):
        raise TypeError(f"an opponent needs act(observation, action_mask); {spec!r} has none")
    return spec
