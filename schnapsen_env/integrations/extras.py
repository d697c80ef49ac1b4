"""Optional libraries: imported where they are used, with a clear answer where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library.

    Args:
        module: its module, such as ``"sb3_contrib"`` or ``"stable_baselines3.common.vec_env"``.
        extra: the extra of this package that installs it.

    Returns:
        The module.

    Raises:
        ImportError: the library is not installed; the message says how to install it. A library
            that is there and fails to import something else raises its own error.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ImportError(
            f"{module} is not installed; pip install 'schnapsen-env[{extra}]'", name=module
        ) from error
