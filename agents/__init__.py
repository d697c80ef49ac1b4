"""Players, their names as text, and the means to compare them.

``load("heuristic")`` makes an agent from a spec; see :mod:`agents.base`. Importing this package
brings no torch, and neither does playing with ``ppo:``; ``torchscript:`` and ``rllib:`` need it.
"""

from agents.base import (
    Agent,
    AgentError,
    BatchAgent,
    OneByOne,
    SamplingAgent,
    as_agent,
    load,
    parse_spec,
    reset_agent,
)
from schnapsen_env.opponents import HeuristicOpponent, RandomOpponent

__all__ = [
    "Agent",
    "AgentError",
    "BatchAgent",
    "HeuristicOpponent",
    "OneByOne",
    "RandomOpponent",
    "SamplingAgent",
    "as_agent",
    "load",
    "parse_spec",
    "reset_agent",
]
