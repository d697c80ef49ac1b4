"""Tianshou 2: the PettingZoo environment in Tianshou's wrapper.

Tianshou's own ``PettingZooEnv`` reads the masks and the rewards correctly, and keeps the infos in
its replay buffer. There the entries that are given only when a deal ends, such as the text
``end_reason``, leave gaps, which its trainer takes for not-a-number and refuses::

    env = SchnapsenTianshouEnv(schnapsen_v0.env(rules="pagat_auto"))
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (Tianshou is optional, so its classes are unknown where the sources are checked.)

from __future__ import annotations

from typing import Any, Final

from schnapsen_env.env import SchnapsenAECEnv
from schnapsen_env.integrations.extras import require

_ENV: Final[Any] = require("tianshou.env", extra="tianshou")


class SchnapsenTianshouEnv(_ENV.PettingZooEnv):
    """Tianshou's ``PettingZooEnv``, with empty infos.

    Args:
        env: ``schnapsen_v0.env(...)``.

    Raises:
        TypeError: another kind of environment.
    """

    def __init__(self, env: SchnapsenAECEnv) -> None:
        if not isinstance(env, SchnapsenAECEnv):
            raise TypeError(
                f"SchnapsenTianshouEnv takes schnapsen_v0.env(...), not {type(env).__name__}"
            )
        super().__init__(env)

    def reset(self, *args: Any, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Deal; the observation of the agent to move (``agent_id``, ``obs`` and ``mask``)."""
        observation, _ = super().reset(*args, **kwargs)
        return observation, {}

    def step(self, action: Any) -> tuple[dict[str, Any], list[float], bool, bool, dict[str, Any]]:
        """Take an action for the agent to move.

        Returns:
            Observation of the agent to move next, rewards of this step by seat, terminated,
            truncated and an empty info.
        """
        observation, rewards, terminated, truncated, _ = super().step(int(action))
        # A list of the caller's own: Tianshou's is filled anew in every step.
        return observation, list(rewards), terminated, truncated, {}
