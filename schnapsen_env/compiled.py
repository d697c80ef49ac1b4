"""The one decorator that compiles: plain Python functions in, machine code out, cached on disk.

numba keys its cache on the file of a function, not on the files of the functions that it calls, so
an edited rule could go on running from an old cache inside an unedited caller. :func:`compiled`
therefore gives this package a cache folder of its own, named after a hash of the sources that
compiled functions can be in: under ``NUMBA_CACHE_DIR``, beside the package, in the user's cache or
in a temporary folder of the user, wherever it can be written first. Where it cannot, nothing is
cached; numba's own choice of a place would not know of the other sources.

Set ``NUMBA_DISABLE_JIT=1`` to run everything as plain Python, for a debugger or a proof that the
compiled answers are the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
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

#: The number of the user; None on Windows, whose folder of temporary files is the user's own.
_USER: Final[int | None] = getattr(os, "getuid", lambda: None)()
_DAY: Final = 24 * 3600
_MOST_CACHES: Final = 10
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


def _roots() -> Generator[Path]:
    """Folders that caches may lie in, the best first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "schnapsen_env"
    yield _PACKAGE / "__pycache__" / "numba"
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - without a home it stays as it is
    if home and Path(home).is_absolute():
        yield Path(home) / "schnapsen_env" / "numba"
    if _USER is not None:
        yield Path(tempfile.gettempdir()) / f"schnapsen_env-{_USER}"


def _make(folder: Path) -> bool:
    """Make a cache folder in its root, if nobody else can write there; whether it can be used."""
    root = folder.parent
    try:
        if root.parent == Path(tempfile.gettempdir()):
            # Anybody may write there, and machine code of others is not to be run.
            root.mkdir(exist_ok=True, mode=0o700)
            found = root.lstat()
            if found.st_uid != _USER or found.st_mode != stat.S_IFDIR | 0o700:
                return False
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _forget_old_caches(root: Path, current: Path) -> None:
    """Remove folders of other sources: those a week old, and all but ten that are a day old."""
    now = time.time()
    try:
        ages = sorted(
            (now - folder.stat().st_mtime, folder)
            for folder in root.iterdir()
            if folder.is_dir() and folder != current
        )
    except OSError:  # somebody else is tidying up
        return
    for number, (age, folder) in enumerate(ages):
        # A program that began with them may still be running and compile one more function.
        if age > 7 * _DAY or (age > _DAY and number >= _MOST_CACHES):
            shutil.rmtree(folder, ignore_errors=True)


def _cache_folder() -> Path | None:
    """Where compiled code is kept; None if there is no place for it.

    numba cannot read a cache where it cannot write, so a folder that is there but read-only does
    not count.
    """
    name = _hash_of_sources()
    for root in _roots():
        folder = root / name
        is_new = not folder.exists()
        if _make(folder):
            if is_new:
                _forget_old_caches(root, folder)
            return folder
    warnings.warn(
        "compiled code cannot be kept on this machine, so that every program compiles anew, for a "
        "minute or so: set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=2,
    )
    return None


_FOLDER: Final = _cache_folder()


@contextmanager
def _own_cache_folder() -> Generator[None]:
    """Point numba at our folder while a function is registered, which is when numba looks."""
    settings: Any = numba_config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(_FOLDER)
    try:
        yield
    finally:
        settings.CACHE_DIR = before


def _register(function: Callable[_P, _R], *, inline: bool) -> Callable[_P, _R]:
    with _own_cache_folder():
        jit: Any = numba.njit(cache=_FOLDER is not None, nogil=True, forceinline=inline)
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
            jit: Any = numba.njit(signature, cache=_FOLDER is not None, nogil=True)
            return jit(function)

    return decorate
