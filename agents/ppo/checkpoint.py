"""What a run leaves on disk, and how it is read back. Nothing here runs code from a file.

.. code-block:: text

    runs/quick/
      config.yaml                       the settings in effect
      latest                            the name of the newest checkpoint
      checkpoints/step-000008000000/
        weights.safetensors             the network
        checkpoint.json                 what it is: rules, layout, sizes, seed, steps, versions
        training.pt                     optimiser, random generator and running deals, to go on from
      metrics.jsonl                     one line for each logged iteration
      tensorboard/
      evaluation.json                   the evaluation at the end

The first two files of a checkpoint are all that playing needs. Files are written beside their place
and then renamed, so what stands under its final name is whole. Reading the first two brings no
torch.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from agents.files import replace_text, write_to_disk
from agents.options import first_line
from agents.ppo.errors import CheckpointError
from schnapsen_env import __version__
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.observation import LAYOUT_VERSION, Layout
from schnapsen_env.rules import Rules

Weights = dict[str, npt.NDArray[np.float32]]

#: Raised whenever the files change their meaning.
FORMAT_VERSION: Final = 2
WEIGHTS_FILE: Final = "weights.safetensors"
INFO_FILE: Final = "checkpoint.json"
TRAINING_FILE: Final = "training.pt"
LATEST_FILE: Final = "latest"
CHECKPOINTS_DIR: Final = "checkpoints"


@dataclass(frozen=True)
class CheckpointInfo:
    """What a checkpoint is; the content of ``checkpoint.json``."""

    #: All fields of the rule set that was played.
    rules: dict[str, Any]
    #: Version, ``suits`` and size of the observation that the network reads.
    layout_version: int
    suits: str
    features: int
    hidden_sizes: tuple[int, ...]
    seed: int
    timesteps: int
    #: The whole configuration of the run.
    config: dict[str, Any]
    #: Of the two other files.
    weights_sha256: str = ""
    training_sha256: str = ""
    package_version: str = __version__
    format: int = FORMAT_VERSION
    #: Of everything above, see :func:`info_text`.
    info_sha256: str = ""


# ------------------------------------------------------------------------------------- writing


def save_checkpoint(
    run_dir: Path,
    info: CheckpointInfo,
    weights: Weights,
    training: dict[str, Any],
    keep: int = 0,
) -> Path:
    """Write a checkpoint and make it the latest of its run.

    Args:
        run_dir: the folder of the run.
        info: what it is; the hashes are filled in here.
        weights: ``float32`` arrays by name.
        training: tensors and plain values to go on from.
        keep: older checkpoints beyond this number are deleted; 0 keeps all.

    Returns:
        Its folder.

    Raises:
        OSError: it cannot be written; the checkpoints that were there are untouched.
    """
    import torch

    folder = run_dir / CHECKPOINTS_DIR / f"step-{info.timesteps:012d}"
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    weights_blob = save_safetensors(weights)
    buffer = io.BytesIO()
    torch.save(training, buffer)
    training_blob = buffer.getvalue()
    info = replace(
        info,
        weights_sha256=_sha256(weights_blob),
        training_sha256=_sha256(training_blob),
    )
    write_to_disk(unfinished / WEIGHTS_FILE, weights_blob)
    write_to_disk(unfinished / TRAINING_FILE, training_blob)
    write_to_disk(unfinished / INFO_FILE, info_text(info).encode())
    if folder.exists():  # left by a run that was interrupted and then resumed from further back
        shutil.rmtree(folder)
    unfinished.rename(folder)
    replace_text(run_dir / LATEST_FILE, f"{folder.name}\n")
    if keep:
        for old in sorted(folder.parent.glob("step-*"))[:-keep]:
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
    return folder


def info_text(info: CheckpointInfo) -> str:
    """The content of ``checkpoint.json``, with its own hash filled in."""
    values = asdict(info)
    values["info_sha256"] = info_sha256(values)
    return json.dumps(values, indent=2)


def info_sha256(values: Mapping[str, Any]) -> str:
    """The hash of all values but itself, whatever their order and the white space between."""
    rest = {name: value for name, value in values.items() if name != "info_sha256"}
    return _sha256(json.dumps(rest, sort_keys=True).encode())


def _sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


# ------------------------------------------------------------------------------------- reading


def find_checkpoint(path: Path) -> Path:
    """The checkpoint folder that ``path`` means: a run, a checkpoint, or a file of one.

    Raises:
        CheckpointError: there is none, or the path cannot be looked at.
    """
    try:
        return _find(path)
    except OSError as error:  # a name that is too long, or a folder that may not be read
        shown = text if len(text := str(path)) <= 200 else f"{text[:200]}..."
        raise CheckpointError(
            f"there is no checkpoint at {shown}: {error.strerror or error}"
        ) from error


def _find(path: Path) -> Path:
    if path.is_file():
        path = path.parent
    if not path.is_dir():
        raise CheckpointError(f"there is no checkpoint at {path}: no such file or folder")
    pointer = path / LATEST_FILE
    if pointer.is_file():
        name = pointer.read_text(encoding="utf-8", errors="replace").strip()
        folder = path / CHECKPOINTS_DIR / name
        # The pointer is a bare name: it cannot lead out of the run.
        if name != Path(name).name or not (folder / INFO_FILE).is_file():
            raise CheckpointError(f"{pointer} names the checkpoint {name!r}, which is not there")
        return folder
    if (path / INFO_FILE).is_file():
        return path
    if (path / CHECKPOINTS_DIR).is_dir():
        raise CheckpointError(f"the run {path} has no checkpoint yet")
    raise CheckpointError(
        f"{path} is no checkpoint: it holds neither {LATEST_FILE} nor {INFO_FILE}"
    )


def read_checkpoint(path: Path) -> tuple[CheckpointInfo, Weights]:
    """Read and check a checkpoint.

    Args:
        path: as :func:`find_checkpoint` takes it.

    Raises:
        CheckpointError: a file is missing, cut short or altered, the parts do not fit each other,
            or rules or observation are of another version than this program's.
    """
    folder = find_checkpoint(path)
    info = _read_info(folder / INFO_FILE)
    _check_rules(info, folder)
    _check_layout(info, folder)
    weights = _read_weights(folder / WEIGHTS_FILE, info.weights_sha256)
    _check_shapes(info, weights, folder)
    return info, weights


def read_training(folder: Path) -> dict[str, Any]:
    """What :func:`save_checkpoint` was given as ``training``; only tensors and plain values load.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    import torch

    path = folder / TRAINING_FILE
    if not path.exists():
        raise CheckpointError(
            f"{folder} can be played but not continued: it has no {TRAINING_FILE}"
        )
    blob = _read_whole(path, _read_info(folder / INFO_FILE).training_sha256)
    try:
        return torch.load(io.BytesIO(blob), map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path} is not to be trusted: {first_line(error)}") from error


def _read_info(path: Path) -> CheckpointInfo:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        values = cast("dict[str, Any]", content if isinstance(content, dict) else {})
        own_hash = info_sha256(values)
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        raise CheckpointError(f"{path} is damaged or unreadable: {first_line(error)}") from error
    expected = {field.name for field in fields(CheckpointInfo)}
    if not isinstance(values.get("format"), int):
        raise CheckpointError(f"{path} does not describe a checkpoint of this program")
    if values["format"] != FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format {values['format']}, this program reads format {FORMAT_VERSION}: "
            "train again, or use the version of schnapsen-env that wrote it"
        )
    if missing := sorted(expected - set(values)):
        raise CheckpointError(f"{path} is damaged: it lacks {', '.join(missing)}")
    if values["info_sha256"] != own_hash:
        raise CheckpointError(f"{path} is damaged: it is not the file that was written (SHA-256)")
    hints = get_type_hints(CheckpointInfo)
    for name in expected:
        given = values[name]
        if hints[name] == tuple[int, ...]:
            items = cast("list[Any]", given if isinstance(given, list) else [None])
            values[name] = tuple(items)
            fits = all(type(item) is int for item in items)
        else:
            fits = type(given) is (get_origin(hints[name]) or hints[name])
        if not fits:
            raise CheckpointError(f"{path} is damaged: {name} cannot be {given!r}")
    return CheckpointInfo(**{name: values[name] for name in expected})


def _check_rules(info: CheckpointInfo, folder: Path) -> None:
    known = {field.name for field in fields(Rules)}
    differing = known.symmetric_difference(info.rules)
    if differing:
        raise CheckpointError(
            f"{folder} was trained under rules of another version of this program, which differ in "
            f"{', '.join(sorted(differing))}: train again, or install schnapsen-env "
            f"{info.package_version}"
        )
    try:
        Rules(**info.rules)
    except ValueError as error:
        raise CheckpointError(f"{folder / INFO_FILE} is damaged: {error}") from error


def _check_layout(info: CheckpointInfo, folder: Path) -> None:
    if info.layout_version != LAYOUT_VERSION:
        raise CheckpointError(
            f"{folder} was trained on version {info.layout_version} of the observation, this "
            f"program gives version {LAYOUT_VERSION}: train again, or install schnapsen-env "
            f"{info.package_version}"
        )
    try:
        layout = Layout(suits=info.suits)  # pyright: ignore[reportArgumentType] - it checks itself
    except ValueError as error:
        raise CheckpointError(f"{folder / INFO_FILE} is damaged: {error}") from error
    if info.features != layout.size:
        raise CheckpointError(
            f"{folder} was trained on {info.features} features, an observation has {layout.size}"
        )


def _read_whole(path: Path, sha256: str) -> bytes:
    try:
        blob = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from error
    if _sha256(blob) != sha256:
        raise CheckpointError(f"{path} is damaged: it is not the file that was written (SHA-256)")
    return blob


def _read_weights(path: Path, sha256: str) -> Weights:
    blob = _read_whole(path, sha256)
    try:
        return load_safetensors(blob)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged: {first_line(error)}") from error


def layer_name(index: int, part: str) -> str:
    """The name of a layer's ``weight`` or ``bias`` in the weights file."""
    return f"layers.{index}.{part}"


def _check_shapes(info: CheckpointInfo, weights: Weights, folder: Path) -> None:
    sizes = (info.features, *info.hidden_sizes, NUM_ACTIONS + 1)
    expected: dict[str, tuple[int, ...]] = {}
    for index, (before, after) in enumerate(pairwise(sizes)):
        expected[layer_name(index, "weight")] = (after, before)
        expected[layer_name(index, "bias")] = (after,)
    if {name: array.shape for name, array in weights.items()} != expected or any(
        array.dtype != np.float32 for array in weights.values()
    ):
        raise CheckpointError(
            f"{folder}: the weights are not those of a float32 network with layers {sizes}"
        )
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise CheckpointError(f"{folder}: a weight is infinite or not a number")
