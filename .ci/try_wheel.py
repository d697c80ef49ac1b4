"""Tries an installed wheel from outside the repository: its contents, an import, one random deal.

``.ci/run`` runs it as ``python -I try_wheel.py WHEEL`` in an environment that holds the wheel and
its dependencies and nothing else.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import gymnasium

import schnapsen_env
from schnapsen_env import schnapsen_v0


def fail(why: str) -> NoReturn:
    """Ends with ``why`` on standard error and exit status 1."""
    raise SystemExit(f"wheel check: {why}")


def check_contents(wheel: Path) -> None:
    """The wheel ships the package, its type marker and its metadata, and no second package."""
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    metadata = {name for name in top if name.endswith(".dist-info")}
    if top - metadata != {"schnapsen_env"} or len(metadata) != 1:
        fail(f"{wheel.name} ships {sorted(top)}, expected schnapsen_env and its metadata only")
    if "schnapsen_env/py.typed" not in names:
        fail("schnapsen_env/py.typed is missing, so type checkers would ignore every annotation")
    adapters = {f"schnapsen_env/integrations/{name}.py" for name in ("extras", "open_spiel")}
    if missing := sorted(adapters - set(names)):
        fail(f"adapters are missing: {missing}")
    if stray := [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))]:
        fail(f"compiled code was packed: {stray[:3]}")


def check_environment() -> None:
    """The installed package is of the wheel's version and runs without torch."""
    if find_spec("torch") is not None:
        fail("torch is installed here, so this says nothing about an environment without it")
    if schnapsen_env.__version__ != version("schnapsen-env"):
        fail(f"__version__ is {schnapsen_env.__version__}, the wheel {version('schnapsen-env')}")
    gymnasium.make("schnapsen/Schnapsen-v0", opponent="random").reset(seed=0)


def check_adapters() -> None:
    """An adapter whose library is not installed says how to get it."""
    try:
        importlib.import_module("schnapsen_env.integrations.open_spiel")
    except ImportError as error:
        if "pip install 'schnapsen-env[openspiel]'" in str(error):
            return
        fail(f"the adapter for OpenSpiel does not name its extra: {error}")
    fail("OpenSpiel is installed here, so this says nothing about an environment without it")


def play_random_deal() -> int:
    """Plays one deal through the AEC environment; returns the number of actions."""
    env = schnapsen_v0.env()
    env.reset(seed=0)
    actions = 0
    game_points = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        game_points[agent] += reward
        if terminated or truncated:
            env.step(None)
        else:
            env.step(env.action_space(agent).sample(observation["action_mask"]))
            actions += 1
    if not actions or not any(game_points.values()) or sum(game_points.values()):
        fail(f"a random deal of {actions} actions ended with {game_points}")
    return actions


if __name__ == "__main__":
    check_contents(Path(sys.argv[1]))
    check_environment()
    check_adapters()
    sys.stdout.write(f"wheel check: passed, one random deal of {play_random_deal()} actions\n")
