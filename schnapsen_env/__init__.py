"""Schnapsen for reinforcement learning: exact rules, a compiled engine, and environments.

Importing this package registers ``schnapsen/Schnapsen-v0`` in Gymnasium and, where PettingZoo has a
registry, ``schnapsen/schnapsen_v0`` there. The engine and the environments are loaded when they are
first used, so that the import itself stays quick.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import pettingzoo

from schnapsen_env.position import EndReason, Position
from schnapsen_env.rules import RULES, Rules

if TYPE_CHECKING:
    from schnapsen_env import engine, schnapsen_v0
    from schnapsen_env.engine import IllegalActionError
    from schnapsen_env.env import SchnapsenAECEnv
    from schnapsen_env.observation import Layout, describe
    from schnapsen_env.single_agent import SchnapsenEnv
    from schnapsen_env.single_agent_vector import SchnapsenOpponentVectorEnv
    from schnapsen_env.vector import SchnapsenVectorEnv

__all__ = [
    "RULES",
    "EndReason",
    "IllegalActionError",
    "Layout",
    "Position",
    "Rules",
    "SchnapsenAECEnv",
    "SchnapsenEnv",
    "SchnapsenOpponentVectorEnv",
    "SchnapsenVectorEnv",
    "__version__",
    "describe",
    "engine",
    "schnapsen_v0",
]

#: Public name -> the module that has it, or is it.
_LAZY: Final = {
    "IllegalActionError": "schnapsen_env.engine",
    "Layout": "schnapsen_env.observation",
    "SchnapsenAECEnv": "schnapsen_env.env",
    "SchnapsenEnv": "schnapsen_env.single_agent",
    "SchnapsenOpponentVectorEnv": "schnapsen_env.single_agent_vector",
    "SchnapsenVectorEnv": "schnapsen_env.vector",
    "describe": "schnapsen_env.observation",
    "engine": "schnapsen_env.engine",
    "schnapsen_v0": "schnapsen_env.schnapsen_v0",
}

try:
    __version__ = importlib.metadata.version("schnapsen-env")
except importlib.metadata.PackageNotFoundError:
    # The sources were put on the path without being installed.
    __version__ = "0+not.installed"


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    value = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register() -> None:
    """Register the environments, once; a second registration would warn."""
    if "schnapsen/Schnapsen-v0" not in gymnasium.registry:
        gymnasium.register(  # pyright: ignore[reportUnknownMemberType]
            id="schnapsen/Schnapsen-v0",
            entry_point="schnapsen_env.single_agent:SchnapsenEnv",
            vector_entry_point="schnapsen_env.single_agent_vector:SchnapsenOpponentVectorEnv",
        )
    if not hasattr(pettingzoo, "register"):  # before 1.27
        return
    # PettingZoo writes the suffix of its ids with a hyphen, and finds them with either.
    if "schnapsen/schnapsen-v0" not in pettingzoo.aec_registry:
        pettingzoo.register("aec", "schnapsen/schnapsen_v0", "schnapsen_env.schnapsen_v0:env")
    if "schnapsen/schnapsen-v0" not in pettingzoo.parallel_registry:
        pettingzoo.register(
            "parallel", "schnapsen/schnapsen_v0", "schnapsen_env.schnapsen_v0:parallel_env"
        )


_register()
