"""Schnapsen under PettingZoo's usual names: ``env``, ``raw_env`` and ``parallel_env``.

All three take the arguments of :class:`~schnapsen_env.env.SchnapsenAECEnv`. They differ in one
default: an illegal action ends the episode in ``env`` and ``parallel_env``, and raises in
``raw_env``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pettingzoo import ParallelEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from schnapsen_env.env import Observation, SchnapsenAECEnv

__all__ = ["env", "parallel_env", "raw_env"]

#: The AEC environment in which an illegal action loses the episode.
env = SchnapsenAECEnv

#: The same, but an illegal action raises ``IllegalActionError`` and changes nothing.
raw_env = partial(SchnapsenAECEnv, illegal_action="raise")


def parallel_env(*args: Any, **kwargs: Any) -> ParallelEnv[str, Observation, int | None]:
    """The parallel form of ``env``: a step takes a dict of actions and uses that of the mover."""
    return turn_based_aec_to_parallel(env(*args, **kwargs))
