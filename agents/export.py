"""Trained networks as ONNX and TorchScript files, for other programs and languages.

    python -m agents.export ppo:runs/quick --onnx quick.onnx --torchscript quick.pt

The exported graph takes ``observation``, ``float32[N, F]``, in the layout that the network was
trained with, and ``action_mask``, ``int8[N, 27]``. It gives ``log_probs``, ``float32[N, 27]``,
about -1e8 where masked, and ``value``, ``float32[N]``, the game points that the player to move
expects.
The metadata in the file says which layout that is. ``docs/integrations/export.md`` has the details.

Before a file gets its name it is loaded again and compared with the checkpoint on positions from
play.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.base import parse_spec
from agents.exported import (
    FORMAT_VERSION,
    INPUTS,
    METADATA_KEY,
    OUTPUTS,
    ExportedAgent,
    ExportError,
    OnnxAgent,
    TorchScriptAgent,
)
from agents.files import check_writable, is_special, replace_file, write_to_disk
from agents.limits import MASKED_LOGIT
from agents.ppo import PPOAgent
from agents.ppo.checkpoint import (
    CheckpointInfo,
    Weights,
    find_checkpoint,
    layer_name,
    read_checkpoint,
)
from schnapsen_env import Layout, __version__
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.rules import Rules
from schnapsen_env.vector import SchnapsenVectorEnv

#: The version of ONNX's operators that the graph is written in; every runtime since 2022 reads it.
OPSET: Final = 17
#: The version of the file format that belongs to it.
_IR_VERSION: Final = 8

#: Positions that an exported network is compared on, and the largest difference that is taken for
#: rounding: of log probabilities of legal actions and of values in game points.
POSITIONS: Final = 1000
TOLERANCE: Final = 1e-4

_LIBRARY_EXTRA: Final = {"onnx": "export", "onnxruntime": "export", "torch": "train"}


class Network(NamedTuple):
    """A checkpoint as it is exported."""

    info: CheckpointInfo
    weights: Weights

    @property
    def layers(self) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
        """Weight ``float32[after, before]`` and bias ``float32[after]`` of each layer."""
        return [
            (self.weights[layer_name(i, "weight")], self.weights[layer_name(i, "bias")])
            for i in range(len(self.weights) // 2)
        ]

    def metadata(self) -> dict[str, Any]:
        """What an exported file says of itself; JSON-able."""
        info = self.info
        return {
            "format": FORMAT_VERSION,
            "layout_version": info.layout_version,
            "suits": info.suits,
            "memory": "perfect",
            "history": False,
            "features": info.features,
            "rules": info.rules,
            "timesteps": info.timesteps,
            "seed": info.seed,
            "weights_sha256": info.weights_sha256,
            "package_version": info.package_version,
            "exported_by": __version__,
        }


class Comparison(NamedTuple):
    """How an exported network answers beside the checkpoint."""

    positions: int
    #: The largest difference of a legal action's log probability.
    log_prob_difference: float
    #: The largest difference of a value, in game points.
    value_difference: float
    #: Positions in which another action is chosen.
    other_actions: int


def read_network(spec: str) -> Network:
    """The network of a ``ppo:`` spec.

    Raises:
        ValueError: the spec is of another kind or has options.
        CheckpointError: the checkpoint cannot be read.
    """
    parsed = parse_spec(spec)
    if parsed.kind != "ppo" or parsed.options:
        raise ValueError(f"only a trained network can be exported: write ppo:path, not {spec!r}")
    return Network(*read_checkpoint(find_checkpoint(Path(parsed.target))))


# ------------------------------------------------------------------------------------- writing


def onnx_bytes(network: Network) -> bytes:
    """The network as an ONNX file, checked by ONNX's own checker.

    The graph is written node by node: it is the same for every release of torch and needs none.

    Raises:
        ModuleNotFoundError: onnx is missing.
    """
    library: Any = importlib.import_module("onnx")
    helper, numpy_helper, kind = library.helper, library.numpy_helper, library.TensorProto
    constants = [
        numpy_helper.from_array(np.float32(MASKED_LOGIT), "masked_logit"),
        numpy_helper.from_array(np.array([NUM_ACTIONS, 1], dtype=np.int64), "parts"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "last_axis"),
    ]
    nodes: list[Any] = []
    flow = INPUTS[0]
    for index, (weight, bias) in enumerate(network.layers):
        if index:
            nodes.append(helper.make_node("Relu", [flow], [f"active_{index}"]))
            flow = f"active_{index}"
        names = [layer_name(index, "weight"), layer_name(index, "bias")]
        constants += [numpy_helper.from_array(weight, names[0])]
        constants += [numpy_helper.from_array(bias, names[1])]
        nodes.append(helper.make_node("Gemm", [flow, *names], [f"layer_{index}"], transB=1))
        flow = f"layer_{index}"
    nodes += [
        helper.make_node("Split", [flow, "parts"], ["logits", "value_column"], axis=1),
        helper.make_node("Cast", [INPUTS[1]], ["is_legal"], to=kind.BOOL),
        helper.make_node("Where", ["is_legal", "logits", "masked_logit"], ["masked_logits"]),
        helper.make_node("LogSoftmax", ["masked_logits"], [OUTPUTS[0]], axis=1),
        helper.make_node("Squeeze", ["value_column", "last_axis"], [OUTPUTS[1]]),
    ]
    graph = helper.make_graph(
        nodes,
        "schnapsen_policy",
        [
            helper.make_tensor_value_info(INPUTS[0], kind.FLOAT, ["N", network.info.features]),
            helper.make_tensor_value_info(INPUTS[1], kind.INT8, ["N", NUM_ACTIONS]),
        ],
        [
            helper.make_tensor_value_info(OUTPUTS[0], kind.FLOAT, ["N", NUM_ACTIONS]),
            helper.make_tensor_value_info(OUTPUTS[1], kind.FLOAT, ["N"]),
        ],
        constants,
    )
    model = helper.make_model(
        graph,
        producer_name="schnapsen-env",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
    )
    helper.set_model_props(model, {METADATA_KEY: json.dumps(network.metadata())})
    library.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def torchscript_bytes(network: Network) -> bytes:
    """The network as a TorchScript archive.

    Raises:
        ModuleNotFoundError: torch is missing.
    """
    import io
    import warnings

    import torch

    library: Any = torch
    layers = [
        (library.from_numpy(weight.copy()), library.from_numpy(bias.copy()))
        for weight, bias in network.layers
    ]

    class Policy(torch.nn.Module):
        """The graph of this module's docstring."""

        def __init__(self) -> None:
            super().__init__()
            for index, (weight, bias) in enumerate(layers):
                self.register_buffer(f"weight_{index}", weight)
                self.register_buffer(f"bias_{index}", bias)

        def forward(self, observation: Any, action_mask: Any) -> Any:
            out = observation
            for index in range(len(layers)):
                weight = getattr(self, f"weight_{index}")
                bias = getattr(self, f"bias_{index}")
                out = library.nn.functional.linear(out.relu() if index else out, weight, bias)
            logits = library.where(action_mask != 0, out[:, :NUM_ACTIONS], MASKED_LOGIT)
            return logits.log_softmax(dim=-1), out[:, NUM_ACTIONS]

    examples = (
        library.zeros(2, network.info.features),
        library.ones(2, NUM_ACTIONS, dtype=library.int8),
    )
    buffer = io.BytesIO()
    with library.no_grad(), warnings.catch_warnings():
        # New releases of torch advise against TorchScript; who asks for it has a reason.
        warnings.filterwarnings("ignore", r".*torch\.jit", DeprecationWarning)
        traced = library.jit.trace(Policy().eval(), examples, check_trace=False)
        extra = {METADATA_KEY: json.dumps(network.metadata())}
        library.jit.save(traced, buffer, _extra_files=extra)
    return buffer.getvalue()


def export(
    network: Network,
    path: Path,
    make_bytes: Callable[[Network], bytes],
    load: Callable[[Path], ExportedAgent],
    positions: int = POSITIONS,
) -> Comparison:
    """Write an exported network, load it again, compare it, and give the file its name.

    Args:
        network: what is exported.
        path: the file; an existing one is replaced.
        make_bytes: :func:`onnx_bytes` or :func:`torchscript_bytes`.
        load: the agent of a file, :class:`~agents.exported.OnnxAgent` for one.
        positions: how many positions are compared.

    Raises:
        ExportError: the file cannot be written, or does not answer as the checkpoint does. A file
            that was there before is untouched.
        ModuleNotFoundError: a library is missing.
    """
    blob = make_bytes(network)
    comparisons: list[Comparison] = []

    def write(unfinished: Path) -> None:
        write_to_disk(unfinished, blob)
        comparison = compare(network, load(unfinished), positions)
        difference = max(comparison.log_prob_difference, comparison.value_difference)
        if comparison.other_actions or not difference <= TOLERANCE:
            raise ExportError(
                f"{path} was not written: it would answer differently from the checkpoint, by "
                f"{difference:.2g} and in {comparison.other_actions} of {positions} actions"
            )
        comparisons.append(comparison)

    try:
        check_writable(path)
        if is_special(path):
            raise ExportError(f"cannot write {path}: it is no file")
        replace_file(path, write)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}") from error
    return comparisons[0]


# ----------------------------------------------------------------------------------- comparing


def compare(network: Network, exported: ExportedAgent, positions: int = POSITIONS) -> Comparison:
    """Ask the checkpoint and an exported network about positions from the checkpoint's own play."""
    layout = Layout(suits=network.info.suits)  # pyright: ignore[reportArgumentType] - was checked
    original = PPOAgent(network.weights, layout)
    rules = Rules(**network.info.rules)
    observations, masks = positions_of_play(network.weights, layout, rules, positions)
    probs, values = original.evaluate(observations, masks)
    other_probs, other_values = exported.evaluate(observations, masks)
    legal = masks != 0
    # Where a probability is too small for float32 there is no logarithm to compare.
    certain = legal & (probs > np.finfo(np.float32).tiny) & (other_probs > 0)
    logs = np.log(probs[certain]) - np.log(other_probs[certain])
    chosen = original.act_batch(observations, masks)
    other_chosen = exported.act_batch(observations, masks)
    # Of two actions with equal probabilities in float32 either may come first.
    rows = np.arange(len(chosen))
    gap = probs[rows, chosen] - probs[rows, other_chosen]
    return Comparison(
        positions=len(chosen),
        log_prob_difference=float(np.abs(logs).max()),
        value_difference=float(np.abs(values - other_values).max()),
        other_actions=int(np.count_nonzero((chosen != other_chosen) & (gap > 0))),
    )


def positions_of_play(
    weights: Weights, layout: Layout, rules: Rules, count: int, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """Positions from deals that a network plays against itself, drawing from its policy.

    Returns:
        Observations ``float32[count, F]`` of the default layout, and masks ``int8[count, 27]``.
    """
    player = PPOAgent(weights, layout, sample=True, seed=seed)
    env = SchnapsenVectorEnv(32, rules=rules)
    shown, _ = env.reset(seed=seed)
    observations: list[npt.NDArray[np.float32]] = []
    masks: list[npt.NDArray[np.int8]] = []
    while 32 * len(observations) < count:
        observations.append(shown["observation"])
        masks.append(shown["action_mask"])
        shown, *_ = env.step(player.act_batch(shown["observation"], shown["action_mask"]))
    return np.concatenate(observations)[:count], np.concatenate(masks)[:count]


# ------------------------------------------------------------------------------------- command

#: Exit code of a command that wrote nothing.
FAILED: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (those of the process if None); the exit code.

    Raises:
        SystemExit: the arguments cannot be parsed (code 2), or ask for help (code 0).
    """
    parser = argparse.ArgumentParser(
        prog="python -m agents.export", description="Write a trained network for other programs."
    )
    parser.add_argument("agent", help="the checkpoint, ppo:path")
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="write an ONNX file")
    parser.add_argument("--torchscript", type=Path, metavar="FILE", help="write a TorchScript file")
    parsed = parser.parse_args(arguments)
    if parsed.onnx is None and parsed.torchscript is None:
        return _complain("name a file: --onnx FILE, --torchscript FILE, or both")
    try:
        if parsed.onnx is not None and parsed.onnx == parsed.torchscript:
            raise ExportError(f"--onnx and --torchscript both name {parsed.onnx}")
        network = read_network(parsed.agent)
        for path, make_bytes, load in (
            (parsed.onnx, onnx_bytes, OnnxAgent),
            (parsed.torchscript, torchscript_bytes, TorchScriptAgent),
        ):
            if path is not None:
                done = export(network, path, make_bytes, load)
                sys.stdout.write(
                    f"{path}: on {done.positions} positions of play log probabilities differ by at "
                    f"most {done.log_prob_difference:.1e}, values by {done.value_difference:.1e}, "
                    "and the same actions are chosen\n"
                )
    except ModuleNotFoundError as error:
        extra = _LIBRARY_EXTRA.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        return _complain(f"{error.name} is not installed; pip install -e '.[{extra}]'")
    except (ValueError, OSError) as error:
        return _complain(str(error))
    return 0


def _complain(message: str) -> int:
    sys.stderr.write(f"agents.export: error: {message}\n")
    return FAILED


if __name__ == "__main__":
    raise SystemExit(main())
