"""Files of results: refused early if they cannot be written, and never half there."""

from __future__ import annotations

import json
import os
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
    trial = _unfinished(path)
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from error


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, then rename it to ``path`` in one step.

    Raises:
        OSError: the file cannot be written; an earlier one is then still there.
    """
    unfinished = _unfinished(path)
    try:
        write(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json_file(content: Mapping[str, Any], path: Path) -> None:
    """Write ``content`` as JSON in one step.

    Raises:
        OSError: see :func:`replace_file`.
        ValueError: a number is not finite.
    """
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    replace_file(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))


def _unfinished(path: Path) -> Path:
    # The last suffix stays, since matplotlib goes by it.
    return path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
