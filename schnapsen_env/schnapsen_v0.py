"""Schnapsen under PettingZoo's usual names: ``env``, ``raw_env`` and ``parallel_env``.

All three take the arguments of :class:`~schnapsen_env.env.SchnapsenAECEnv`. They differ in one
default: an illegal action ends the episode in ``env`` and ``parallel_env``, and raises in
``raw_env``.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pettingzoo import ParallelEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from schnapsen_env.env import EnvState, Observation, SchnapsenAECEnv
from schnapsen_env.env_base import reset_needed

__all__ = ["env", "parallel_env", "raw_env"]

#: The AEC environment in which an illegal action loses the episode.
env = SchnapsenAECEnv

#: The same, but an illegal action raises ``IllegalActionError`` and changes nothing.
raw_env = partial(SchnapsenAECEnv, illegal_action="raise")


if TYPE_CHECKING:
    _Parallel = turn_based_aec_to_parallel_wrapper[str, Observation, int | None]
else:  # not generic in every release of PettingZoo
    _Parallel = turn_based_aec_to_parallel_wrapper


class SchnapsenParallelEnv(_Parallel):
    """PettingZoo's parallel form of the AEC environment, with the copies that all ours offer."""

    aec_env: SchnapsenAECEnv

    def step(self, actions: dict[str, int | None]) -> Any:
        """Take the action of the agent that is to move.

        Args:
            actions: from agents to their actions; only that of the agent to move counts.

        Returns:
            Observations, rewards, terminations, truncations and infos by agent; all of them empty
            once the episode is over.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: there is no action for the agent that is to move.
            IllegalActionError, TypeError: as the AEC environment's ``step``.
        """
        if not hasattr(self, "agents"):
            raise reset_needed("step()")
        if not self.agents:  # PettingZoo's own gives four, and a parallel environment five
            return {}, {}, {}, {}, {}
        mover = self.aec_env.agent_selection
        if mover not in actions:
            raise ValueError(
                f"there is no action for {mover}, who is to move: give one for each of "
                f"{', '.join(self.agents)}; only that of the mover counts"
            )
        return cast("Any", super()).step(actions)

    def clone(self) -> SchnapsenParallelEnv:
        """An independent copy that continues exactly as this environment would."""
        return copy.deepcopy(self)

    def get_state(self) -> tuple[EnvState, list[str]]:
        """This moment, random state included, as a value that can be kept and pickled."""
        return self.aec_env.get_state(), list(self.agents)

    def set_state(self, state: tuple[EnvState, list[str]]) -> None:
        """Go to a moment that :meth:`get_state` gave, of this or a like environment."""
        turn, agents = state
        self.aec_env.set_state(turn)
        self.agents = list(agents)


def parallel_env(*args: Any, **kwargs: Any) -> ParallelEnv[str, Observation, int | None]:
    """The parallel form of ``env``: a step takes a dict of actions and uses that of the mover."""
    return SchnapsenParallelEnv(env(*args, **kwargs))
