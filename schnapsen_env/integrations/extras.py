"""Optional libraries: imported where they are used, with an error that says how to get them."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library.

    Args:
        module: its name, such as ``"pyspiel"``.
        extra: the extra of this package that brings it.

    Raises:
        ImportError: it is not installed; the message holds the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name != module.partition(".")[0]:
            raise
        raise ImportError(
            f"{module} is not installed; pip install 'schnapsen-env[{extra}]'"
        ) from error
