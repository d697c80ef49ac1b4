"""What the environments of all libraries share: settings, copies, moments to go back to."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.episode import Settings
from schnapsen_env.kept_state import check_arrays, check_parts
from schnapsen_env.observation import Layout
from schnapsen_env.opponents import put_state, state_of
from schnapsen_env.rules import Rules


def reset_needed(reader: str) -> ResetNeeded:
    """The error of a method that needs a deal, before there is one."""
    return ResetNeeded(f"{reader} before the first reset: call reset() first")


def observation_space(layout: Layout, dtype: npt.DTypeLike = np.float32) -> spaces.Dict:
    """The space of an observation ``[F]`` with its action mask ``int8[27]``.

    Args:
        layout: what observations hold.
        dtype: float32 for numbers from 0 to 1, or uint8 for the whole numbers behind them.
    """
    high = np.ones(layout.size) if dtype == np.float32 else np.rint(1 / layout.scale)
    low = np.zeros(layout.size, dtype)
    return spaces.Dict(
        {
            "observation": spaces.Box(low, high.astype(dtype), dtype=low.dtype.type),
            "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    )


class BaseEnv:
    """An environment that was made with :class:`~schnapsen_env.episode.Settings`.

    A subclass sets ``_settings`` and then calls ``_recall_constants``.
    """

    #: What ``_recall_constants`` sets, anew in a copy: a copied read-only array would be writable,
    #: which is another type to numba and would compile the engine once more.
    _RECALLED: ClassVar[frozenset[str]] = frozenset({"_codes", "_switches"})

    _settings: Settings

    def _recall_constants(self) -> None:
        """Set what follows from the settings and is read in each step."""
        self._codes = self._settings.rules.codes()
        self._switches = self._settings.switches()

    @property
    def rules(self) -> Rules:
        """The rule set, with the target of this environment."""
        return self._settings.rules

    @property
    def layout(self) -> Layout:
        """What the numbers of an observation mean, for ``observation.describe``."""
        return self._settings.layout

    @property
    def max_actions(self) -> int | None:
        """The most actions of an episode, or None for a match without a bound."""
        return self._settings.max_actions

    def clone(self) -> Self:
        """An independent copy, also of an opponent, that continues as this environment would."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self._RECALLED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._recall_constants()


class OpponentEnv(BaseEnv):
    """An environment in which an opponent plays one seat."""

    #: What changes in play. The first of them is None before the first reset.
    _KEPT: ClassVar[tuple[str, ...]]

    opponent: object

    @abstractmethod
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays of the form that those of ``_KEPT`` have once there is a deal."""

    def get_state(self) -> dict[str, Any]:
        """This moment, random states included, as a value that can be kept and pickled.

        An opponent that is an object is asked for its own state, if it has ``get_state``.

        Raises:
            ResetNeeded: before the first reset.
        """
        if getattr(self, self._KEPT[0]) is None:
            raise reset_needed("get_state()")
        return {
            "settings": self._settings,
            "opponent": state_of(self.opponent),
            "kept": {name: copy.deepcopy(getattr(self, name)) for name in self._KEPT},
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to a moment that :meth:`get_state` gave, of this or a like environment.

        Raises:
            ValueError: not such a state, or that of an environment with other settings or another
                number of rows; nothing has changed.
        """
        parts = check_parts("state", state, ("settings", "opponent", "kept"))
        kept = check_parts("state['kept']", parts["kept"], self._KEPT)
        if parts["settings"] != self._settings:
            raise ValueError(
                f"the state is of an environment with {parts['settings']}, this one has "
                f"{self._settings}: make an environment with the same arguments"
            )
        check_arrays("state['kept']", kept, self._arrays())
        for name, value in kept.items():
            setattr(self, name, copy.deepcopy(value))
        put_state(self.opponent, parts["opponent"])
