"""Files of results: refused early if they cannot be written, and never half there."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def check_writable(path: Path) -> None:
    """Find out before the first deal whether a result can be written.

    Raises:
        ValueError: ``path`` is a folder, or lies in a folder that is missing or not writable.
    """
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if is_special(path):
        return
    try:
        trial = _unfinished(path.resolve())
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from error
    except RuntimeError as error:  # what pathlib raises for a link that leads to itself
        raise ValueError(f"cannot write {path}: {error}") from error


def is_special(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written to as it is."""
    return path.exists() and not path.is_file()


def write_to_disk(path: Path, content: bytes) -> None:
    """Write a file, and come back when it lies on the disk, if it is a file.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fsync(file.fileno())


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, then rename it to ``path`` in one step.

    A link goes on pointing to its file, and a device or a pipe is written to as it is.

    Raises:
        OSError: the file cannot be written; an earlier one is then still there.
    """
    try:
        if is_special(path):
            write(path)
        else:
            _write_beside(path.resolve(), write)
    except OSError as error:
        # A write that fails, on a full disk for instance, does not say where.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _write_beside(path: Path, write: Callable[[Path], object]) -> None:
    unfinished = _unfinished(path)
    try:
        write(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write ``text`` so that ``path`` holds either the old content or all of the new.

    Raises:
        OSError: see :func:`replace_file`.
    """
    replace_file(path, lambda unfinished: write_to_disk(unfinished, text.encode()))


def write_json_file(content: Mapping[str, Any], path: Path) -> None:
    """Write ``content`` as JSON in one step.

    Raises:
        OSError: see :func:`replace_file`.
        ValueError: a number is not finite.
    """
    replace_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def _unfinished(path: Path) -> Path:
    # The last suffix stays, since matplotlib goes by it.
    return path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
