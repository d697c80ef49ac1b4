"""The second stage: each library plays and learns for real, with nothing left out or pretended.

`.ci/integrations` installs the libraries and runs this folder. A library that is missing is an
error here, not a test to skip.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schnapsen_env.env import SchnapsenAECEnv
from schnapsen_env.single_agent import SchnapsenEnv
from schnapsen_env.single_agent_vector import SchnapsenOpponentVectorEnv
from schnapsen_env.vector import SchnapsenVectorEnv

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Other libraries' warnings are theirs; ours stay errors."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore", "error:::schnapsen_env"))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """More threads get in each other's way on networks of this size."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A Ray of two CPUs; a busy machine can miss Ray's own limit for its start, so twice more."""
    ray: Any = importlib.import_module("ray")
    # By default Ray's workers give way to all others, and on a busy machine they hardly run.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Tests report to nobody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    for attempt in range(3):
        try:
            ray.init(
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
            )
        except Exception:
            ray.shutdown()
            if attempt == 2:
                raise
        else:
            break
    yield
    ray.shutdown()


@pytest.fixture
def load_example() -> Callable[[str], ModuleType]:
    """Imports a file of ``examples``, by its path there."""

    def load(name: str) -> ModuleType:
        path = ROOT / "examples" / name
        module_name = f"example_{path.parent.name}_{path.stem}"
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
        return module

    return load


class Referee:
    """Watches every action that reaches an environment, before it is taken."""

    def __init__(self) -> None:
        #: Actions by class of environment.
        self.actions: Counter[str] = Counter()
        #: Those that the mask of the moment forbids.
        self.illegal: Counter[str] = Counter()

    def check(self, env: object, actions: Any, masks: Any) -> None:
        """Count actions ``[N]`` and those that masks ``[N, 27]`` forbid."""
        name = type(env).__name__
        chosen = np.asarray(actions, dtype=np.int64).reshape(-1, 1)
        self.actions[name] += len(chosen)
        allowed = np.take_along_axis(np.atleast_2d(masks), chosen, axis=1)
        self.illegal[name] += int((allowed == 0).sum())


@pytest.fixture
def referee(monkeypatch: pytest.MonkeyPatch) -> Referee:
    """Puts a referee on all four environments."""
    watching = Referee()

    def watch(cls: type[Any], masks_of: Callable[[Any], Any]) -> None:
        step = cls.step

        @functools.wraps(step)
        def watched(env: Any, action: Any) -> Any:
            if action is not None:
                watching.check(env, action, masks_of(env))
            return step(env, action)

        monkeypatch.setattr(cls, "step", watched)

    watch(SchnapsenAECEnv, lambda env: env.infos[env.agent_selection]["action_mask"])
    watch(SchnapsenEnv, lambda env: env.action_masks())
    watch(SchnapsenOpponentVectorEnv, lambda env: env.action_masks())
    watch(SchnapsenVectorEnv, lambda env: env.observe()[0]["action_mask"])
    return watching
