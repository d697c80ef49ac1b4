"""Agents that play from an exported file, ONNX or TorchScript: see :mod:`agents.export`.

An exported graph takes observations in the layout of its training, where suits may be renamed: see
:mod:`agents.renaming`. This module needs onnxruntime for ``onnx:`` and torch for
``torchscript:``, and nothing of the training code.

Letters: ``N`` positions, ``F`` features, ``A = 27`` actions.
"""

from __future__ import annotations

import importlib
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask
from agents.inputs import require_legal
from agents.options import check_rules, first_line, read_switches
from agents.renaming import RenamingAgent, name_back, renamed_inputs
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.observation import DEFAULT_LAYOUT, LAYOUT_VERSION, SUIT_ORDERS
from schnapsen_env.rules import Rules, resolve_rules

Floats = npt.NDArray[np.float32]

#: Raised whenever the interface of exported graphs changes.
FORMAT_VERSION: Final = 1
#: The name of the metadata in an ONNX file and of the extra file in a TorchScript archive.
METADATA_KEY: Final = "schnapsen_env"
INPUTS: Final = ("observation", "action_mask")
OUTPUTS: Final = ("log_probs", "value")

_NEEDED: Final = ("format", "layout_version", "suits", "memory", "history", "features", "rules")


class ExportError(ValueError):
    """An exported file that cannot be written, read or used; the message says which and why."""


def parse_metadata(text: str | None, path: Path) -> dict[str, Any]:
    """Read and check what an exported file says of itself.

    Args:
        text: the metadata, JSON; None if the file has none.
        path: the file, for errors.

    Raises:
        ExportError: there is none, or the file is of another format or layout of the observation.
    """
    if not text:
        raise ExportError(f"{path} was not written by agents.export: it has no metadata of ours")
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        raise ExportError(f"{path}: the metadata is damaged: {first_line(error)}") from error
    if not isinstance(content, dict) or any(key not in content for key in _NEEDED):
        raise ExportError(f"{path}: the metadata is damaged: it needs {', '.join(_NEEDED)}")
    metadata = cast("dict[str, Any]", content)
    if not isinstance(metadata["rules"], dict) or type(metadata["format"]) is not int:
        raise ExportError(f"{path}: the metadata is damaged: of another type than expected")
    if metadata["format"] != FORMAT_VERSION:
        raise ExportError(
            f"{path} has format {metadata['format']}, this program reads format {FORMAT_VERSION}"
        )
    layout = (metadata["layout_version"], metadata["features"])
    if layout != (LAYOUT_VERSION, DEFAULT_LAYOUT.size):
        raise ExportError(
            f"{path} reads version {layout[0]} of the observation with {layout[1]} features, this "
            f"program gives version {LAYOUT_VERSION} with {DEFAULT_LAYOUT.size}: export it again"
        )
    if (metadata["memory"], metadata["history"]) != ("perfect", False):
        raise ExportError(f"{path} reads memory={metadata['memory']!r}, agents see perfect memory")
    if metadata["suits"] not in SUIT_ORDERS:
        raise ExportError(f"{path}: suits={metadata['suits']!r} is unknown")
    return metadata


class ExportedAgent(RenamingAgent):
    """Plays with an exported network.

    Args:
        metadata: of the file.
        sample: draw from the policy instead of taking its most probable action.
        seed: where the drawing starts.
    """

    name = "exported"

    def __init__(self, metadata: Mapping[str, Any], *, sample: bool = False, seed: int = 0) -> None:
        super().__init__(SUIT_ORDERS.index(metadata["suits"]), sample=sample, seed=seed)
        self.metadata = metadata

    @abstractmethod
    def run(self, observations: Floats, action_masks: ActionMask) -> tuple[Floats, Floats]:
        """Call the graph as it is, on positions in the layout of its training.

        Args:
            observations: ``float32[N, F]``.
            action_masks: ``int8[N, A]``.

        Returns:
            Log probabilities ``float32[N, A]``, about -1e8 where masked, and values ``float32[N]``.
        """

    def _scores(self, observations: Floats, action_masks: ActionMask) -> Floats:
        return self.run(observations, action_masks)[0]

    def evaluate(self, observations: Floats, action_masks: ActionMask) -> tuple[Floats, Floats]:
        """What the network thinks of positions.

        Returns:
            The probabilities of the actions, ``float32[N, 27]``, 0 where illegal, and the game
            points that the player to move expects, ``float32[N]``.

        Raises:
            TypeError: an array is of another kind.
            ValueError: a shape or a number is wrong, or a mask allows nothing.
        """
        inputs, masks, orders = renamed_inputs(
            self.name, observations, action_masks, self._suits_code
        )
        require_legal(masks)
        log_probs, values = self.run(inputs, masks)
        probs = np.zeros_like(log_probs)
        for action in range(NUM_ACTIONS):
            natural = np.full(len(orders), action, dtype=np.int64)
            name_back(orders, natural)
            probs[np.arange(len(orders)), natural] = np.exp(log_probs[:, action])
        return probs, values


class OnnxAgent(ExportedAgent):
    """Plays from an ONNX file, with onnxruntime on one thread.

    Args:
        path: the file.
        sample: see :class:`ExportedAgent`.
        seed: see :class:`ExportedAgent`.

    Raises:
        ExportError: the file cannot be read, is damaged, or was not written by ``agents.export``.
        ModuleNotFoundError: onnxruntime is missing.
    """

    def __init__(self, path: Path, *, sample: bool = False, seed: int = 0) -> None:
        runtime: Any = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what goes wrong is raised here, in words
        try:
            self._session = runtime.InferenceSession(
                _read(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            # The runtime's own exceptions have no common class but this one.
            raise ExportError(f"{path} is damaged or no ONNX file: {first_line(error)}") from error
        text = self._session.get_modelmeta().custom_metadata_map.get(METADATA_KEY)
        metadata = parse_metadata(text, path)
        names = (
            tuple(put.name for put in self._session.get_inputs()),
            tuple(put.name for put in self._session.get_outputs()),
        )
        if names != (INPUTS, OUTPUTS):
            raise ExportError(f"{path}: the graph has inputs and outputs {names}")
        super().__init__(metadata, sample=sample, seed=seed)

    def run(self, observations: Floats, action_masks: ActionMask) -> tuple[Floats, Floats]:
        """See :meth:`ExportedAgent.run`."""
        inputs = dict(zip(INPUTS, (observations, action_masks), strict=True))
        log_probs, values = self._session.run(list(OUTPUTS), inputs)
        return log_probs, values


class TorchScriptAgent(ExportedAgent):
    """Plays from a TorchScript file, on the CPU.

    Args:
        path: the file. TorchScript is a program: load it from sources that you trust.
        sample: see :class:`ExportedAgent`.
        seed: see :class:`ExportedAgent`.

    Raises:
        ExportError: the file cannot be read, is damaged, or was not written by ``agents.export``.
        ModuleNotFoundError: torch is missing.
    """

    def __init__(self, path: Path, *, sample: bool = False, seed: int = 0) -> None:
        import io
        import warnings

        import torch

        self._torch: Any = torch
        extra = {METADATA_KEY: ""}
        blob = io.BytesIO(_read(path))
        try:
            with warnings.catch_warnings():
                # New releases of torch advise against TorchScript; who asks for it has a reason.
                warnings.filterwarnings("ignore", r".*torch\.jit", DeprecationWarning)
                self._module: Any = self._torch.jit.load(blob, "cpu", _extra_files=extra)
        except (RuntimeError, ValueError) as error:
            raise ExportError(
                f"{path} is damaged or no TorchScript file: {first_line(error)}"
            ) from error
        text: str | bytes = extra[METADATA_KEY]
        if isinstance(text, bytes):
            text = text.decode("utf-8", errors="replace")
        super().__init__(parse_metadata(text, path), sample=sample, seed=seed)

    def run(self, observations: Floats, action_masks: ActionMask) -> tuple[Floats, Floats]:
        """See :meth:`ExportedAgent.run`."""
        torch = self._torch
        with torch.inference_mode():
            log_probs, values = self._module(
                torch.from_numpy(observations), torch.from_numpy(action_masks)
            )
        return log_probs.numpy(), values.numpy()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}") from error


def load_exported(
    make: Callable[..., ExportedAgent],
    path: str | Path,
    rules: str | Rules = "pagat_auto",
    seed: int = 0,
    **options: str | bool,
) -> ExportedAgent:
    """The agent of an exported file.

    Args:
        make: :class:`OnnxAgent` or :class:`TorchScriptAgent`.
        path: the file.
        rules: what is to be played.
        seed: where a sampling agent's randomness starts.
        options: ``sample`` - ``"true"`` draws from the policy; ``any_rules`` - ``"true"`` plays
            under other rules than the trained ones.

    Raises:
        ExportError: the file cannot be used, or was trained under other rules.
        ValueError: an unknown option or value.
    """
    sample, any_rules = read_switches("an exported agent", options)
    agent = make(Path(path), sample=sample, seed=seed)
    if not any_rules:
        check_rules(agent.metadata["rules"], resolve_rules(rules), Path(path), ExportError)
    return agent
