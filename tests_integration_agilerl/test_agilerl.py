"""AgileRL: PPO that learns within the masks, and IPPO that steps two agents."""

# pyright: basic
# pyright: reportMissingImports=false
# (The library is not installed where the sources are checked.)

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from schnapsen_env.single_agent_vector import SchnapsenOpponentVectorEnv

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "integrations" / "agilerl.md"

# Other libraries' warnings are theirs; ours stay errors.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.filterwarnings("error:::schnapsen_env"),
]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = ROOT / "examples" / "agilerl" / "ppo.py"
    spec = importlib.util.spec_from_file_location("example_agilerl_ppo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["example_agilerl_ppo"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every action that reaches the batch, whether the mask of the moment allows it."""
    allowed: list[bool] = []
    step = SchnapsenOpponentVectorEnv.step

    def watched(env: SchnapsenOpponentVectorEnv, given: Any) -> Any:
        chosen = np.asarray(given).reshape(-1, 1)
        allowed.extend(np.take_along_axis(env.action_masks(), chosen, axis=1).ravel() == 1)
        return step(env, given)

    monkeypatch.setattr(SchnapsenOpponentVectorEnv, "step", watched)
    return allowed


def test_ppo_learns_and_never_chooses_a_masked_action(
    example: ModuleType, actions: list[bool], tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    args = example.Args(total_timesteps=50_000, eval_deals=500, save=tmp_path / "agent.pt")
    before, _ = example.evaluate(example.make_agent(args), args)
    after = example.main(args)
    assert len(actions) > 49_000
    assert all(actions)
    assert after > max(before + 0.4, 0.7)
    # What was saved plays the same.
    loaded = example.PPO.load(str(args.save))
    assert example.evaluate(loaded, args)[0] > 0.7


def test_python_on_the_page_runs_from_top_to_bottom(actions: list[bool]) -> None:
    torch.set_num_threads(1)
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert len(actions) >= 4_096
    assert all(actions)
