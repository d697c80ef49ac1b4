"""The pages of the integrations: what they show runs, and the files they name are there."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from agents.export import main as export
from agents.ppo import Config
from agents.ppo.checkpoint import CheckpointInfo, save_checkpoint
from agents.ppo.config import config_to_dict
from agents.ppo.network import PolicyValueNet
from schnapsen_env import RULES, Layout
from schnapsen_env.observation import LAYOUT_VERSION
from tests_integration.conftest import ROOT

#: What a page takes for granted before its first block.
NEEDS = {"rllib": "cluster", "export": "exported_network"}

PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))
#: AgileRL's pins exclude the other libraries; its page runs in `tests_integration_agilerl`.
ELSEWHERE = {"agilerl"}


@pytest.fixture
def exported_network(tmp_path: Path) -> None:
    """The file that the first command of the page of the export writes, of an untrained network."""
    layout = Layout(suits="canonical")
    network = PolicyValueNet(layout, (32,), torch.Generator().manual_seed(0))
    config = Config()
    info = CheckpointInfo(
        rules=asdict(RULES["pagat_auto"]),
        layout_version=LAYOUT_VERSION,
        suits="canonical",
        features=layout.size,
        hidden_sizes=(32,),
        seed=0,
        timesteps=0,
        config=config_to_dict(config),
    )
    weights = {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}
    save_checkpoint(tmp_path / "run", info, weights, {})
    assert export([f"ppo:{tmp_path / 'run'}", "--onnx", str(tmp_path / "quick.onnx")]) == 0


@pytest.mark.parametrize(
    "path", [page for page in PAGES if page.stem not in ELSEWHERE], ids=lambda path: path.stem
)
def test_python_on_the_page_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if path.stem in NEEDS:
        request.getfixturevalue(NEEDS[path.stem])
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        # The empty lines make a traceback point at the page's own line.
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(path), "exec"), names)  # noqa: S102 - our own page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_files_named_on_the_page_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:examples|schnapsen_env|tests|docs|configs)/[\w./-]*\w", text):
        assert (ROOT / name).exists(), name
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), target
