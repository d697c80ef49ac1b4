"""The one decorator that compiles: plain Python functions in, machine code out, cached on disk.

numba keys its cache on the file of a function, not on the files of the functions that it calls, so
an edited rule could go on running from an old cache inside an unedited caller. :func:`compiled`
therefore gives this package a cache folder of its own, named after a hash of the sources that
compiled functions can be in.

Set ``NUMBA_DISABLE_JIT=1`` to run everything as plain Python, for a debugger or a proof that the
compiled answers are the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import numba
from numba.core import config as numba_config

if TYPE_CHECKING:
    from collections.abc import Generator

_P = ParamSpec("_P")
_R = TypeVar("_R")

_PACKAGE: Final = Path(__file__).parent

#: Folders of sources that define nothing compiled: an edit there leaves the machine code as it is.
_WITHOUT_COMPILED_CODE: Final = ("integrations",)


def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    for source in sorted(_PACKAGE.rglob("*.py")):
        name = source.relative_to(_PACKAGE)
        if name.parts[0] in _WITHOUT_COMPILED_CODE:
            continue
        digest.update(name.as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old_caches(root: Path) -> None:
    """Remove the folders of other sources that were last compiled more than a week ago."""
    week_ago = time.time() - 7 * 24 * 3600
    for folder in root.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < week_ago:
            shutil.rmtree(folder, ignore_errors=True)


def _cache_folder() -> Path | None:
    """Where compiled code is kept; None leaves the choice to numba (a read-only installation)."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    root = Path(chosen) / "schnapsen_env" if chosen else _PACKAGE / "__pycache__" / "numba"
    folder = root / _hash_of_sources()
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _forget_old_caches(root)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


_FOLDER: Final = _cache_folder()


@contextmanager
def _own_cache_folder() -> Generator[None]:
    """Point numba at our folder while a function is registered, which is when numba looks."""
    settings: Any = numba_config
    before = settings.CACHE_DIR
    if _FOLDER is not None:
        settings.CACHE_DIR = str(_FOLDER)
    try:
        yield
    finally:
        settings.CACHE_DIR = before


def _register(function: Callable[_P, _R], *, inline: bool) -> Callable[_P, _R]:
    with _own_cache_folder():
        jit: Any = numba.njit(cache=True, nogil=True, forceinline=inline)
        return jit(function)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile ``function`` on its first call, without the GIL, and cache the machine code on disk.

    It is inlined wherever compiled code calls it. Most functions here are small and take arrays, so
    a call would cost more than what it does: this was measured at 1.4 times the speed.
    """
    return _register(function, inline=True)


def compiled_apart(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same for a long function: it stays a call, and its callers do not compile it again."""
    return _register(function, inline=False)


def compiled_recursive(signature: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """The same for a function that calls itself, with its numba signature written down.

    Where numba has to infer the types of a recursion, code that calls it from another module cannot
    be loaded from the cache. With a signature the function is compiled when its module is imported.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        with _own_cache_folder():
            jit: Any = numba.njit(signature, cache=True, nogil=True)
            return jit(function)

    return decorate
