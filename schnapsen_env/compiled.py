"""The one decorator that compiles: plain Python functions in, machine code out, cached on disk.

numba keys its cache on the file of a function, not on the files of the functions that it calls, so
an edited rule could go on running from an old cache inside an unedited caller. :func:`compiled`
therefore gives this package a cache folder of its own, named after a hash of the sources that
compiled functions can be in. It is made in the first of these that can be written, and where none
can, each process compiles for itself and says so; numba's own choice of a folder is never taken:

- ``$NUMBA_CACHE_DIR/schnapsen_env``
- ``__pycache__/numba`` beside this file
- ``schnapsen_env`` in the user's folder of caches (``$XDG_CACHE_HOME`` or ``~/.cache``)
- ``schnapsen_env-`` and the user's number in the folder of temporary files

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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import numba
from numba.core import config as numba_config

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_P = ParamSpec("_P")
_R = TypeVar("_R")

_PACKAGE: Final = Path(__file__).parent

#: numba's own settings; without the type, because numba makes them at run time.
_SETTINGS: Final[Any] = numba_config

#: Folders of sources that define nothing compiled: an edit there leaves the machine code as it is.
_WITHOUT_COMPILED_CODE: Final = ("integrations",)

#: Length of the hash that names a folder.
_HASH_DIGITS: Final = 16
#: How many folders of other sources are kept. One takes about 20 MB.
_OTHERS_KEPT: Final = 5


def _hash_of_sources() -> str | None:
    """The name of the cache; None where the package is not installed as files, as in an archive."""
    sources = sorted(_PACKAGE.rglob("*.py"))
    if not sources:
        return None
    digest = hashlib.sha256()
    for source in sources:
        name = source.relative_to(_PACKAGE)
        if name.parts[0] in _WITHOUT_COMPILED_CODE:
            continue
        digest.update(name.as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:_HASH_DIGITS]


def _private_roots() -> list[Path]:
    """Where to keep caches of this user alone, best first."""
    if sys.platform == "win32":
        # Temporary files are in the same folder there.
        local = os.environ.get("LOCALAPPDATA")
        return [Path(local) / "schnapsen_env"] if local else []
    roots: list[Path] = []
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    with suppress(RuntimeError):  # the user has no home
        if not caches.is_absolute():  # not set, or to be ignored by the rules of XDG
            caches = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
        roots.append(caches / "schnapsen_env")
    with suppress(OSError):  # there is no folder of temporary files
        roots.append(Path(tempfile.gettempdir()) / f"schnapsen_env-{os.geteuid()}")
    return roots


def _roots() -> Iterator[tuple[Path, bool]]:
    """Where to keep caches, best first, and whether others must be kept out of there.

    Whoever can write to a cache can have this process run machine code. The first two are as safe
    as the person who chose them made them, and as the package itself.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen).absolute() / "schnapsen_env", False
    yield _PACKAGE / "__pycache__" / "numba", False
    for root in _private_roots():
        yield root, True


def _make_private(root: Path) -> None:
    """Make a folder of this user alone; OSError where others could have put something into it."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform == "win32":
        return  # the folder of a profile is its user's alone
    user = os.geteuid()
    # Not of what a link leads to: whoever made the link can turn it.
    found, above = root.lstat(), root.parent.stat()
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    # Others cannot rename it where they cannot write, or may only touch what is theirs.
    is_kept = above.st_uid in {0, user} and (
        not above.st_mode & stat.S_IWOTH or above.st_mode & stat.S_ISVTX
    )
    if not (is_own and is_kept):
        raise PermissionError(f"{root} is open to other users")


def _make_folder(folder: Path, filled: Path | None) -> None:
    """Make the folder of a cache, as a copy of a filled one that cannot be written, if any."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if filled is not None:
        # A copy appears whole or not at all, since other processes may look for it. Where it cannot
        # be made, or another process was faster, nothing is lost but time.
        with (
            suppress(OSError),
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as scratch,
        ):
            copy = Path(scratch) / "copy"
            for source in filled.rglob("*.nb[ci]"):
                target = copy / source.relative_to(filled)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            copy.rename(folder)
    folder.mkdir(exist_ok=True)


def _try_to_write(folder: Path) -> None:
    """Raise OSError unless numba can write to a folder and to those that it made in there."""
    for part in (folder, *folder.iterdir()):
        if part.is_dir():
            with tempfile.TemporaryFile(dir=part):
                pass


def _forget_old_caches(current: Path) -> None:
    """Empty the folders of other sources, all but those that were used last.

    A process of such sources may still be running. numba compiles anew what it finds deleted, but
    it fails if a folder goes in the instant before it writes there. So the files are deleted, and
    their folders only when no process has started or written there for a week.
    """
    of_any_sources = "[0-9a-f]" * _HASH_DIGITS + "*"  # and copies that were never finished
    others = [folder for folder in current.parent.glob(of_any_sources) if folder != current]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    week_ago = time.time() - 7 * 24 * 3600
    for folder in others[_OTHERS_KEPT:]:
        parts = [folder, *folder.rglob("*")]
        if max(part.stat().st_mtime for part in parts) < week_ago:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            for part in parts:
                if part.suffix in {".nbi", ".nbc"}:
                    part.unlink(missing_ok=True)


def _cache_folder() -> Path | None:
    """Where compiled code is kept; None, with a warning, where it cannot be."""
    name = _hash_of_sources()
    if name is None:
        _warn_of_no_cache("it is not installed as files")
        return None
    filled: Path | None = None
    for root, is_private in _roots():
        folder = root / name
        is_new = True
        try:
            if is_private:
                _make_private(root)
            is_new = not folder.is_dir()
            if is_new:
                _make_folder(folder, filled)
            _try_to_write(folder)
        except OSError:
            # numba writes where it reads, so what is here can be copied but not used in place.
            if filled is None and not is_new:
                filled = folder
            continue
        with suppress(OSError):  # a fault in the clean-up must not cost the cache
            os.utime(folder)  # used just now
            if is_new:
                _forget_old_caches(folder)
        return folder
    _warn_of_no_cache("set NUMBA_CACHE_DIR to a folder that can be written")
    return None


def _warn_of_no_cache(why: str) -> None:
    if not _SETTINGS.DISABLE_JIT:
        warnings.warn(
            "schnapsen_env cannot keep its compiled code, so each process compiles it again, which "
            f"takes some seconds: {why}",
            RuntimeWarning,
            stacklevel=2,
        )


_FOLDER: Final = _cache_folder()


@contextmanager
def _own_cache_folder() -> Generator[None]:
    """Point numba at our folder while a function is registered, which is when numba looks."""
    before = _SETTINGS.CACHE_DIR, _SETTINGS.CACHE_LOCATOR_CLASSES
    if _FOLDER is not None:
        _SETTINGS.CACHE_DIR = str(_FOLDER)
        # Without this numba looks for another place by itself if that folder has gone meanwhile.
        _SETTINGS.CACHE_LOCATOR_CLASSES = "UserProvidedCacheLocator"
    try:
        yield
    finally:
        _SETTINGS.CACHE_DIR, _SETTINGS.CACHE_LOCATOR_CLASSES = before


def _register(function: Callable[_P, _R], *signature: Any, **options: bool) -> Callable[_P, _R]:
    with _own_cache_folder():
        jit: Any = numba.njit(*signature, cache=_FOLDER is not None, nogil=True, **options)
        return jit(function)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile ``function`` on its first call, without the GIL, and cache the machine code on disk.

    It is inlined wherever compiled code calls it. Most functions here are small and take arrays, so
    a call would cost more than what it does: this was measured at 1.4 times the speed.
    """
    return _register(function, forceinline=True)


def compiled_apart(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same for a long function: it stays a call, and its callers do not compile it again."""
    return _register(function)


def compiled_recursive(signature: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """The same for a function that calls itself, with its numba signature written down.

    Where numba has to infer the types of a recursion, code that calls it from another module cannot
    be loaded from the cache. With a signature the function is compiled when its module is imported.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        return _register(function, signature)

    return decorate
