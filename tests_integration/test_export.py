"""Exported networks answer as their checkpoints, and files that cannot be used say why."""

# pyright: reportUnknownMemberType=false
# (torch's own annotations leave parts of its interface unknown.)

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import agents
from agents import export as exporting
from agents.export import compare, main, onnx_bytes, positions_of_play, read_network
from agents.exported import METADATA_KEY, ExportedAgent, ExportError, OnnxAgent, TorchScriptAgent
from agents.ppo import Config, PPOAgent
from agents.ppo.checkpoint import CheckpointInfo, save_checkpoint
from agents.ppo.config import config_to_dict
from agents.ppo.network import PolicyValueNet
from schnapsen_env import RULES, Layout
from schnapsen_env.observation import DEFAULT_LAYOUT, LAYOUT_VERSION
from schnapsen_env.vector import SchnapsenVectorEnv

SUITS = ("natural", "trump_first", "canonical")
KINDS = ("onnx", "torchscript")


def make_checkpoint(folder: Path, suits: Any = "canonical", rules: str = "pagat_auto") -> Path:
    """A run with one checkpoint of a network that has opinions."""
    sizes = (48, 32)
    network = PolicyValueNet(Layout(suits=suits), sizes, torch.Generator().manual_seed(1))
    with torch.no_grad():
        network.linear_layers()[-1].weight.mul_(50)
    weights = {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}
    info = CheckpointInfo(
        rules=asdict(RULES[rules]),
        layout_version=LAYOUT_VERSION,
        suits=suits,
        features=DEFAULT_LAYOUT.size,
        hidden_sizes=sizes,
        seed=0,
        timesteps=1000,
        config=config_to_dict(Config()),
    )
    save_checkpoint(folder, info, weights, {})
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each order of suits, and its two exported files."""
    folder = tmp_path_factory.mktemp("exported")
    for suits in SUITS:
        make_checkpoint(folder / suits, suits)
        files = ["--onnx", str(folder / f"{suits}.onnx")]
        files += ["--torchscript", str(folder / f"{suits}.torchscript")]
        assert main([f"ppo:{folder / suits}", *files]) == 0
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suits", SUITS)
def test_a_thousand_positions_of_play_are_answered_alike(
    exported: Path, suits: str, kind: str
) -> None:
    original = agents.load(f"ppo:{exported / suits}")
    player = agents.load(f"{kind}:{exported / suits}.{kind}")
    assert isinstance(original, PPOAgent)
    assert isinstance(player, OnnxAgent | TorchScriptAgent)
    network = read_network(f"ppo:{exported / suits}")
    layout = Layout(suits=suits)  # pyright: ignore[reportArgumentType]
    seen, masks = positions_of_play(network.weights, layout, RULES["pagat_auto"], 1000, seed=3)
    assert len(np.unique(seen, axis=0)) > 900
    probs, values = original.evaluate(seen, masks)
    other_probs, other_values = player.evaluate(seen, masks)
    np.testing.assert_allclose(other_probs, probs, rtol=0, atol=1e-5)
    np.testing.assert_allclose(other_values, values, rtol=0, atol=1e-4)
    assert np.all(other_probs[masks == 0] == 0)
    np.testing.assert_array_equal(player.act_batch(seen, masks), original.act_batch(seen, masks))
    for row in range(20):
        assert player.act(seen[row], masks[row]) == original.act(seen[row], masks[row])


@pytest.mark.parametrize("kind", KINDS)
def test_a_sampling_player_draws_legal_actions_from_the_policy(exported: Path, kind: str) -> None:
    spec = f"{kind}:{exported / 'canonical'}.{kind},sample=true"
    env = SchnapsenVectorEnv(1, rules="pagat_auto")
    shown, _ = env.reset(seed=2)
    seen = np.repeat(shown["observation"], 4000, axis=0)
    masks = np.repeat(shown["action_mask"], 4000, axis=0)
    player = agents.load(spec, seed=5)
    assert isinstance(player, OnnxAgent | TorchScriptAgent)
    drawn = player.act_batch(seen, masks)
    probs, _ = player.evaluate(seen[:1], masks[:1])
    share = np.bincount(drawn, minlength=27) / 4000
    assert np.abs(share - probs[0]).max() < 0.04
    player.reset(5)
    np.testing.assert_array_equal(player.act_batch(seen, masks), drawn)


def test_the_onnx_file_says_what_it_is_and_stands_alone(exported: Path) -> None:
    library: Any = importlib.import_module("onnx")
    runtime: Any = importlib.import_module("onnxruntime")
    model = library.load(exported / "canonical.onnx")
    assert [(item.domain, item.version) for item in model.opset_import] == [("", exporting.OPSET)]
    metadata = json.loads({item.key: item.value for item in model.metadata_props}[METADATA_KEY])
    network = read_network(f"ppo:{exported / 'canonical'}")
    assert metadata == network.metadata()
    assert metadata["rules"] == asdict(RULES["pagat_auto"])
    assert metadata["suits"] == "canonical"
    # An environment with the layout of the training needs nothing of ours but the file.
    session = runtime.InferenceSession(str(exported / "canonical.onnx"))
    env = SchnapsenVectorEnv(16, rules="pagat_auto", suits="canonical")
    shown, _ = env.reset(seed=0)
    for _ in range(30):
        log_probs, value = session.run(["log_probs", "value"], dict(shown))
        assert log_probs.shape == (16, 27)
        assert value.shape == (16,)
        np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, atol=1e-5)
        actions = log_probs.argmax(axis=1)
        assert np.all(shown["action_mask"][np.arange(16), actions] == 1)
        shown, *_ = env.step(actions)


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_cannot_be_used_say_why(exported: Path, kind: str, tmp_path: Path) -> None:
    whole = (exported / f"natural.{kind}").read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExportError, match="cut is damaged or no"):
        agents.load(f"{kind}:{cut}")
    with pytest.raises(ExportError, match=r"cannot read .*: No such file"):
        agents.load(f"{kind}:{tmp_path / 'nothing'}")
    with pytest.raises(ExportError, match="under the rules 'pagat_auto', not 'duel'"):
        agents.load(f"{kind}:{exported / 'natural'}.{kind}", rules="duel")
    agents.load(f"{kind}:{exported / 'natural'}.{kind},any_rules=true", rules="duel")
    with pytest.raises(ValueError, match="no option 'speed': it takes sample, any_rules"):
        agents.load(f"{kind}:{exported / 'natural'}.{kind},speed=9")
    with pytest.raises(ValueError, match="true or false, not 'maybe'"):
        agents.load(f"{kind}:{exported / 'natural'}.{kind},sample=maybe")


def test_foreign_and_outdated_files_are_refused(exported: Path, tmp_path: Path) -> None:
    library: Any = importlib.import_module("onnx")
    model = library.load(exported / "natural.onnx")
    metadata = json.loads(model.metadata_props[0].value)
    wrong: list[tuple[dict[str, Any] | None, str]] = [
        (None, "not written by agents.export"),
        ({}, "the metadata is damaged"),
        (metadata | {"format": 99}, "has format 99"),
        (metadata | {"layout_version": 99}, "version 99 of the observation"),
        (metadata | {"memory": "none"}, "memory='none'"),
        (metadata | {"suits": "sorted"}, "suits='sorted' is unknown"),
        (metadata | {"rules": []}, "the metadata is damaged: of another type"),
        (metadata | {"format": True}, "the metadata is damaged: of another type"),
    ]
    path = tmp_path / "wrong.onnx"
    for content, message in wrong:
        del model.metadata_props[:]
        if content is not None:
            library.helper.set_model_props(model, {METADATA_KEY: json.dumps(content)})
        path.write_bytes(model.SerializeToString())
        with pytest.raises(ExportError, match=message):
            OnnxAgent(path)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_masks_are_checked(exported: Path, kind: str) -> None:
    player = agents.load(f"{kind}:{exported / 'natural'}.{kind}")
    size = DEFAULT_LAYOUT.size
    with pytest.raises(ValueError, match=rf"observations of shape \[N, {size}\]"):
        player.act(np.zeros(3, np.float32), np.ones(27, np.int8))
    with pytest.raises(ValueError, match=r"masks of shape \[N, 27\]"):
        player.act(np.zeros(size, np.float32), np.ones(26, np.int8))
    wrong: Any = np.zeros(size, np.uint8)
    with pytest.raises(TypeError, match=r"exported player .* dtype float32, not uint8"):
        player.act(wrong, np.ones(27, np.int8))
    with pytest.raises(ValueError, match=r"observations\[0, 0\] .* = nan"):
        player.act(np.full(size, np.nan, np.float32), np.ones(27, np.int8))
    with pytest.raises(ValueError, match="position 0 allows no action"):
        player.act(np.zeros(size, np.float32), np.zeros(27, np.int8))
    assert isinstance(player, ExportedAgent)
    with pytest.raises(ValueError, match="position 0 allows no action"):
        player.evaluate(np.zeros((1, size), np.float32), np.zeros((1, 27), np.int8))
    nothing = player.act_batch(np.zeros((0, size), np.float32), np.zeros((0, 27), np.int8))
    assert nothing.shape == (0,)


def test_a_network_that_would_answer_differently_is_not_written(
    exported: Path, tmp_path: Path
) -> None:
    network = read_network(f"ppo:{exported / 'natural'}")
    path = tmp_path / "old.onnx"
    path.write_bytes(b"what was there")

    def wrong_bytes(right: exporting.Network) -> bytes:
        weights = dict(right.weights)
        weights["layers.0.bias"] = weights["layers.0.bias"] + np.float32(0.1)
        return onnx_bytes(exporting.Network(right.info, weights))

    with pytest.raises(ExportError, match="would answer differently from the checkpoint"):
        exporting.export(network, path, wrong_bytes, OnnxAgent, positions=64)
    assert path.read_bytes() == b"what was there"
    assert [file.name for file in tmp_path.iterdir()] == ["old.onnx"]
    done = exporting.export(network, path, onnx_bytes, OnnxAgent, positions=64)
    assert done.positions == 64
    assert done == compare(network, OnnxAgent(path), 64)


def test_the_command_says_what_is_wrong(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = f"ppo:{exported / 'natural'}"
    wrong = [
        ([run], "name a file"),
        (["heuristic", "--onnx", "x"], "write ppo:path, not 'heuristic'"),
        ([f"ppo:{tmp_path / 'no'}", "--onnx", "x"], "there is no checkpoint"),
        ([run, "--onnx", str(tmp_path / "no" / "x")], "cannot write"),
        ([run, "--torchscript", str(tmp_path)], "it is a folder"),
        ([run, "--onnx", "x", "--torchscript", "x"], "--onnx and --torchscript both name x"),
    ]
    for arguments, message in wrong:
        assert main(arguments) == exporting.FAILED
        assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_a_link_stays_a_link_and_a_pipe_is_refused(exported: Path, tmp_path: Path) -> None:
    run = f"ppo:{exported / 'natural'}"
    (tmp_path / "target.pt").write_bytes(b"old")
    (tmp_path / "link.pt").symlink_to("target.pt")
    assert main([run, "--torchscript", str(tmp_path / "link.pt")]) == 0
    assert (tmp_path / "link.pt").is_symlink()
    assert (tmp_path / "target.pt").read_bytes() != b"old"
    os.mkfifo(tmp_path / "pipe.pt")
    assert main([run, "--torchscript", str(tmp_path / "pipe.pt")]) == exporting.FAILED
    assert (tmp_path / "pipe.pt").is_fifo()


def test_a_missing_library_is_named_with_its_extra(
    exported: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for library in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, library, None)
    run = f"ppo:{exported / 'natural'}"
    assert main([run, "--onnx", str(tmp_path / "x.onnx")]) == exporting.FAILED
    assert "pip install -e '.[export]'" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e '\.\[export\]'"):
        agents.load(f"onnx:{exported / 'natural'}.onnx")


def test_another_rule_set_is_exported_with_its_own_positions(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "run", rules="last_trick_ten")
    assert main([f"ppo:{tmp_path / 'run'}", "--onnx", str(tmp_path / "x.onnx")]) == 0
    agents.load(f"onnx:{tmp_path / 'x.onnx'}", rules="last_trick_ten")
    other_target = replace(RULES["last_trick_ten"], name="short", target=3)
    agents.load(f"onnx:{tmp_path / 'x.onnx'}", rules=other_target)
