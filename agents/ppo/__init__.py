"""Self-play PPO, and the agent that plays with what it has learnt.

Importing this package brings no torch; training and the modules it needs do.
"""

from agents.ppo.agent import PPOAgent, load_agent
from agents.ppo.config import Config
from agents.ppo.errors import CheckpointError, ConfigError, NonFiniteLossError, RunDirError

__all__ = [
    "CheckpointError",
    "Config",
    "ConfigError",
    "NonFiniteLossError",
    "PPOAgent",
    "RunDirError",
    "load_agent",
]
