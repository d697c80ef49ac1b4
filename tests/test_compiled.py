"""Where the machine code is kept: in a folder of these sources, never where numba would choose."""

from __future__ import annotations

import os
import runpy
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from tests.processes import ROOT, run_python

DAY = 24 * 3600.0


class Places:
    """A package of one module, the copy of ``compiled.py``, and all places for its cache."""

    def __init__(self, home: Path) -> None:
        self.package = home / "package"
        self.chosen = home / "chosen"
        self.caches = home / "caches"
        self.temporary = home / "temporary"
        self.package.mkdir()
        self.caches.mkdir()
        self.temporary.mkdir()
        shutil.copy(ROOT / "schnapsen_env" / "compiled.py", self.package)
        #: What holds one folder for each hash of sources, in the order in which they are tried.
        self.roots = [
            self.chosen / "schnapsen_env",
            self.package / "__pycache__" / "numba",
            self.caches / "schnapsen_env",
            self.temporary / f"schnapsen_env-{os.geteuid()}",
        ]

    def block(self, *numbers: int) -> None:
        """Put a file where a folder would have to be, which stops root as well."""
        for number in numbers:
            place = [self.chosen, self.package / "__pycache__", self.caches, self.temporary][number]
            shutil.rmtree(place, ignore_errors=True)
            place.touch()

    def start(self) -> dict[str, Any]:
        """The names of the module as a new process has them."""
        return runpy.run_path(str(self.package / "compiled.py"))

    def folder(self) -> Path:
        """The folder that a new process chooses."""
        folder = self.start()["_FOLDER"]
        assert isinstance(folder, Path)
        return folder

    def edit(self) -> None:
        with (self.package / "compiled.py").open("a", encoding="utf-8") as file:
            file.write("# edited\n")


@pytest.fixture(name="places")
def make_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    places = Places(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(places.chosen))
    monkeypatch.setenv("XDG_CACHE_HOME", str(places.caches))
    monkeypatch.setattr(tempfile, "tempdir", str(places.temporary))
    monkeypatch.setattr(config, "DISABLE_JIT", 0)
    return places


@contextmanager
def no_writing_in(closed: Path) -> Generator[None]:
    """Refuse to make files in a folder, as its mode would for any user but root."""
    make_file: Any = tempfile.TemporaryFile
    may = os.access

    def temporary_file(**options: Any) -> Any:
        if Path(options["dir"]).is_relative_to(closed):
            raise PermissionError(options["dir"])
        return make_file(**options)

    def access(path: Path, mode: int) -> bool:
        return may(path, mode) and not (mode & os.W_OK and path.is_relative_to(closed))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", temporary_file)
        patch.setattr(os, "access", access)
        yield


def add_one(number: float) -> float:
    return number + 1


def test_the_first_place_that_can_be_written_is_taken(places: Places) -> None:
    for number, root in enumerate(places.roots):
        folder = places.folder()
        assert folder.parent == root
        assert folder.is_dir()
        places.block(number)


def test_a_user_without_a_home_has_the_folder_of_temporary_files(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/are/to/be/ignored")
    monkeypatch.setattr(Path, "home", home)
    places.block(0, 1)
    assert places.folder().parent == places.roots[3]


@pytest.mark.parametrize("fault", ["closed", "missing"])
def test_a_place_that_cannot_even_be_looked_at_is_passed_over(
    places: Places, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The home of another user; no folder for temporary files, not even the current one."""
    look = Path.stat

    def stat(path: Path, **options: Any) -> os.stat_result:
        if path.is_relative_to(places.caches):
            raise PermissionError(path)
        return look(path, **options)

    def no_folder() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    places.block(0, 1)
    if fault == "closed":
        monkeypatch.setattr(Path, "stat", stat)
        assert places.folder().parent == places.roots[3]
    else:
        places.block(2)
        monkeypatch.setattr(tempfile, "gettempdir", no_folder)
        with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
            assert places.start()["_FOLDER"] is None


def test_without_a_folder_it_is_said_once_how_to_have_one(places: Places) -> None:
    places.block(0, 1, 2, 3)
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR to a folder that can") as said:
        assert places.start()["_FOLDER"] is None
    assert len(said) == 1


def test_compiled_functions_work_without_a_folder(places: Places) -> None:
    """As in a container whose package and home cannot be written."""
    places.block(0, 1, 2, 3)
    (places.package / "functions.py").write_text(
        "from package.compiled import compiled, compiled_apart, compiled_recursive\n"
        "\n\n@compiled\ndef double(x):\n    return 2 * x\n"
        "\n\n@compiled_apart\ndef more(x):\n    return double(x) + 1\n"
        "\n\n@compiled_recursive('int64(int64)')\ndef factorial(n):\n"
        "    return n * factorial(n - 1) if n > 1 else 1\n",
        encoding="utf-8",
    )
    home = places.package.parent
    printed = run_python(
        "-c",
        "import sys, tempfile, warnings\n"
        f"tempfile.tempdir = {str(places.temporary)!r}\n"
        f"sys.path.insert(0, {str(home)!r})\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    from package.functions import factorial, more\n"
        "    print(more(20), factorial(5), len(more.signatures))\n"
        "print(*[warning.category.__name__ for warning in said])\n",
        NUMBA_DISABLE_JIT="0",
        HOME=str(places.caches),
    )
    assert printed.splitlines() == ["41 120 1", "RuntimeWarning"]
    assert not [*home.rglob("*.nb[ci]")]


@pytest.mark.parametrize("closed", ["folder", "inside"])
def test_a_filled_folder_that_cannot_be_written_is_copied(places: Places, closed: str) -> None:
    """An image is built as root and run by another user."""
    filled = places.folder()
    inside = filled / "package_12"
    inside.mkdir()
    (inside / "add-1.py311.nbi").write_bytes(b"index")
    (inside / "add-1.py311.1.nbc").write_bytes(b"code")
    places.block(1)
    with no_writing_in(filled if closed == "folder" else inside):
        folder = places.folder()
    assert folder.parent == places.roots[2]
    assert (folder / "package_12" / "add-1.py311.nbi").read_bytes() == b"index"
    assert (folder / "package_12" / "add-1.py311.1.nbc").read_bytes() == b"code"
    assert [*folder.parent.iterdir()] == [folder], "nothing else is left there"


def test_numba_does_not_choose_the_folder(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "InTreeCacheLocator")
    names = places.start()
    function: Any = names["compiled"](add_one)
    assert Path(function.stats.cache_path).parent == names["_FOLDER"]
    assert config.CACHE_LOCATOR_CLASSES == "InTreeCacheLocator"  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", ["mode", "owner", "link", "above"])
def test_code_that_others_could_have_written_is_not_loaded(
    places: Places, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    places.block(0, 1, 2)
    root = places.roots[3]
    places.temporary.chmod(0o1777)
    folder = places.folder()
    assert folder.parent == root
    assert root.stat().st_mode & 0o777 == 0o700
    if fault == "mode":
        root.chmod(0o770)
    elif fault == "owner":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        root.rename(places.temporary / "schnapsen_env-12345")
    elif fault == "link":
        root.rename(places.temporary / "elsewhere")
        root.symlink_to(places.temporary / "elsewhere")
    else:
        places.temporary.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        assert places.start()["_FOLDER"] is None


def old_cache(root: Path, number: int, days: float) -> Path:
    """The folder of other sources, with one compiled function, last used some days ago."""
    folder = root / f"{number:016x}"
    inside = folder / "package_12"
    inside.mkdir(parents=True)
    (inside / "add-1.py311.nbi").touch()
    (inside / "add-1.py311.1.nbc").touch()
    then = time.time() - days * DAY
    for part in (*inside.iterdir(), inside, folder):
        os.utime(part, (then, then))
    return folder


def test_old_caches_are_emptied_but_for_those_used_last(places: Places) -> None:
    root = places.roots[0]
    old = [old_cache(root, number, days=number) for number in range(1, 11)]
    (root / "notes").mkdir()
    current = places.folder()
    assert [len([*folder.rglob("*.nb[ci]")]) for folder in old] == [2] * 5 + [0] * 5
    # A process may run for days, so that its folders stay for a while.
    assert [(folder / "package_12").is_dir() for folder in old] == [True] * 6 + [False] * 4
    assert {*root.iterdir()} == {current, root / "notes", *old[:6]}


def test_what_was_used_last_counts_not_what_was_made_last(places: Places) -> None:
    folder = places.folder()
    (folder / "add-1.py311.nbi").touch()
    then = time.time() - 8 * DAY
    os.utime(folder, (then, then))
    assert places.folder() == folder
    for number in range(1, 9):
        old_cache(places.roots[0], number, days=number / 10)
    places.edit()
    assert places.folder() != folder
    assert (folder / "add-1.py311.nbi").exists()


def test_a_process_whose_cache_is_emptied_compiles_again(places: Places) -> None:
    names = places.start()
    function: Any = names["compiled"](add_one)
    assert function(1) == 2
    folder: Path = names["_FOLDER"]
    assert [*folder.rglob("*.nbi")]
    for number in range(1, 9):
        old_cache(places.roots[0], number, days=0)
    then = time.time() - DAY
    os.utime(folder, (then, then))
    places.edit()
    assert places.folder() != folder
    assert not [*folder.rglob("*.nb[ci]")]
    assert function(1.5) == 2.5
    assert [*folder.rglob("*.nbi")]


def test_a_fault_of_the_clean_up_costs_nothing(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("another process was faster")

    for number in range(1, 9):
        old_cache(places.roots[0], number, days=30)
    monkeypatch.setattr(shutil, "rmtree", remove)
    assert places.folder().parent == places.roots[0]
