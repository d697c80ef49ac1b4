"""The shape of the project: layers, imports, versions, systems, and documents that run."""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import itertools
import re
import runpy
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import schnapsen_env
from agents.ppo.config import read_config
from schnapsen_env import RULES, engine
from schnapsen_env.position import EndReason
from tests.processes import run_python

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "schnapsen_env"
RULES_PAGE = ROOT / "docs" / "rules.md"


def _table_after(heading: str, path: Path) -> list[list[str]]:
    """The cells of the first table after a heading of a document, without its two head lines."""
    _, found, rest = path.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert found, f"{path.name} has no heading {heading!r}"
    rows: list[list[str]] = []
    for line in rest.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


#: Row of each module. A module imports from rows above its own only; the modules of a subpackage
#: share a row and may import one another.
ROW_OF = {
    module: row
    for row, (modules, _) in enumerate(_table_after("Layers", ROOT / "docs" / "architecture.md"))
    for module in re.findall(r"`(\w+)`", modules)
}


def _module_name(path: Path, root: Path = ROOT) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every import of a file as (module, name or None), those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: line {node.lineno}: write absolute imports"
            assert node.module is not None
            for alias in node.names:
                yield node.module, alias.name


def _own_targets(path: Path) -> set[str]:
    """The modules of schnapsen_env that a file imports, by their full names."""
    modules = {_module_name(source) for source in _sources(PACKAGE)}
    targets: set[str] = set()
    for module, name in _imports(path):
        if module.split(".")[0] != "schnapsen_env":
            continue
        submodule = f"{module}.{name}"
        targets.add(submodule if submodule in modules else module)
    return targets


def _row_name(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@pytest.mark.parametrize("path", _sources(PACKAGE), ids=_module_name)
def test_a_module_imports_only_from_rows_above_it(path: Path) -> None:
    own = _row_name(_module_name(path))
    assert own in ROW_OF, f"{own} has no row yet: give it one in docs/architecture.md"
    for target in _own_targets(path):
        other = _row_name(target)
        same_package = own == other and (PACKAGE / own).is_dir()
        assert ROW_OF[other] < ROW_OF[own] or same_package, (
            f"{_module_name(path)} (row {ROW_OF[own]}) imports {target} (row {ROW_OF[other]})"
        )


@pytest.mark.parametrize("path", _sources(PACKAGE / "integrations"), ids=_module_name)
def test_adapters_compile_nothing(path: Path) -> None:
    # They are no part of the key of the cache, so an old one would outlive an edit.
    for module, name in _imports(path):
        assert module.split(".")[0] != "numba"
        assert "compiled" not in {module.split(".")[-1], name}


def test_the_cache_is_new_after_an_edit_of_the_engine_and_not_of_an_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, cache = tmp_path / "copy", tmp_path / "cache"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))

    def caches() -> int:
        runpy.run_path(str(copy / "compiled.py"))
        return len(list((cache / "schnapsen_env").iterdir()))

    def edit(name: str) -> None:
        with (copy / name).open("a", encoding="utf-8") as file:
            file.write("# edited\n")

    assert caches() == 1
    edit("integrations/rllib.py")
    assert caches() == 1
    edit("engine/__init__.py")
    assert caches() == 2
    edit("cards.py")
    assert caches() == 3


def test_no_import_cycle() -> None:
    graph = {_module_name(path): _own_targets(path) for path in _sources(PACKAGE)}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module not in done:
            for target in graph[module]:
                # A subpackage's __init__ imports its own modules; that they name their package in
                # a full import path is no cycle.
                if not module.startswith(f"{target}."):
                    visit(target, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", _sources(ROOT / "agents"), ids=_module_name)
def test_agents_import_public_names_only(path: Path) -> None:
    modules = {_module_name(source) for source in _sources(PACKAGE)}
    for module, name in _imports(path):
        if module.split(".")[0] != "schnapsen_env":
            continue
        imported = f"{module}.{name}" if name else module
        private = [part for part in imported.split(".") if re.match(r"_(?!_)", part)]
        assert not private, imported
        if module == "schnapsen_env.engine" and name in engine.__all__:
            continue
        deepest = imported if imported in modules else module
        depth = 3 if deepest.startswith("schnapsen_env.integrations.") else 2
        assert len(deepest.split(".")) <= depth, f"{imported} is inside a package: import that"


#: Modules that Windows lacks, or has without what programs use them for.
POSIX_MODULES = frozenset(
    "crypt curses fcntl grp nis ossaudiodev posix pty pwd resource spwd syslog termios tty".split()
)
#: Processes begin in another way there.
PROCESS_MODULES = frozenset({"multiprocessing", "subprocess"})
#: Likewise of the module `os`.
POSIX_FUNCTIONS = frozenset(
    "chown chroot fork forkpty getgid getloadavg getpgid getuid kill killpg mkfifo mknod nice "
    "openpty sched_getaffinity sched_setaffinity setsid symlink sysconf uname wait waitpid".split()
)
SHIPPED = [
    *(ROOT / name for name in ("train.py", "evaluate.py")),
    *(path for name in ("schnapsen_env", "agents", "examples") for path in _sources(ROOT / name)),
]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_that_windows_lacks(path: Path) -> None:
    for module, name in _imports(path):
        assert module.split(".")[0] not in POSIX_MODULES | PROCESS_MODULES, module
        assert (module, name) not in {("os", function) for function in POSIX_FUNCTIONS}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "os" or node.attr not in POSIX_FUNCTIONS, ast.unparse(node)
        if isinstance(node, ast.Call):
            assert _names_encoding(node), (
                f"line {node.lineno}: {ast.unparse(node)}: name an encoding"
            )


def _names_encoding(call: ast.Call) -> bool:
    """False for a call that reads or writes text in the encoding of the machine."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("open", "read_text", "write_text"):
        return True
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = [value.value for value in given if isinstance(value, ast.Constant)]
    is_binary = name == "open" and any(re.fullmatch("[rwax+]*b[+]?", str(mode)) for mode in modes)
    return is_binary or any(keyword.arg == "encoding" for keyword in call.keywords)


@pytest.mark.parametrize(
    ("code", "is_fine"),
    [
        ("path.read_text()", False),
        ("path.open()", False),
        ("open(path, 'w')", False),
        ("path.write_text('b')", False),
        ("path.read_text(encoding='utf-8')", True),
        ("path.open('ab+', buffering=0)", True),
        ("path.read_bytes()", True),
    ],
)
def test_the_check_of_encodings(code: str, is_fine: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert _names_encoding(call) == is_fine


def test_import_brings_no_heavy_library() -> None:
    """Scipy is not on the list: numba imports it by itself where it is installed."""
    heavy = run_python(
        "-c",
        "import sys, schnapsen_env, schnapsen_env.vector\n"
        "print(*{'torch', 'matplotlib', 'PIL', 'pygame', 'tensorboard', 'tyro', 'rich'}"
        " & {name.split('.')[0] for name in sys.modules})",
    )
    assert heavy.split() == []


def test_agents_load_without_torch() -> None:
    loaded = run_python(
        "-c",
        "import sys, agents\n"
        "agents.load('random'); agents.load('heuristic')\n"
        "print('torch' in sys.modules)",
    )
    assert loaded.split() == ["False"]


def test_importing_twice_and_reloading_warns_of_nothing() -> None:
    run_python(
        "-c",
        "import importlib, sys, schnapsen_env\n"
        "importlib.reload(schnapsen_env)\n"
        "for name in [name for name in sys.modules if name.split('.')[0] == 'schnapsen_env']:\n"
        "    del sys.modules[name]\n"
        "import schnapsen_env",
    )


def test_public_names_exist_and_are_listed_once() -> None:
    names = schnapsen_env.__all__
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(schnapsen_env, name), name


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    citation = re.search(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert citation is not None
    assert citation[1] == version
    assert schnapsen_env.__version__ == version
    assert importlib.metadata.version("schnapsen-env") == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _python_blocks(path: Path) -> list[tuple[int, str]]:
    """The fenced python blocks of a document as (first line, code)."""
    text = path.read_text(encoding="utf-8")
    return [
        (text[: block.start(1)].count("\n"), block[1])
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "benchmarks" / "README.md",
]


@pytest.mark.parametrize(
    ("path", "line", "code"),
    [
        pytest.param(path, line, code, id=f"{path.name}:{line + 1}")
        for path in DOCUMENTS
        for line, code in _python_blocks(path)
    ],
)
def test_python_in_documents_runs(
    path: Path, line: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The empty lines make a traceback point at the document's own line.
    exec(compile("\n" * line + code, str(path), "exec"), {"__name__": "__main__"})  # noqa: S102  # the project's own documents


def test_readme_has_a_runnable_example() -> None:
    assert _python_blocks(ROOT / "README.md")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_files_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_rules_table_in_documents_matches_the_rule_sets() -> None:
    head = re.search(r"^\| field \|(.*)\|$", RULES_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert head is not None
    names = re.findall(r"`(\w+)`", head[1])
    assert names == list(RULES)
    documented = {
        (name, field.strip("`")): value.strip("`")
        for field, *values in _table_after("The rule sets", RULES_PAGE)
        for name, value in zip(names, values, strict=True)
    }
    assert documented == {
        (name, rule.name): repr(getattr(rules, rule.name))
        for name, rules in RULES.items()
        for rule in dataclasses.fields(rules)
        if rule.name != "name"
    }


def test_end_reasons_in_documents_are_all_there_are() -> None:
    documented = {cells[0].strip("`") for cells in _table_after("How a deal ends", RULES_PAGE)}
    assert documented == {reason.text for reason in EndReason if reason is not EndReason.RUNNING}


def test_tree_in_readme_shows_what_is_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = re.search(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert tree is not None
    folder = ""
    for line in tree[1].splitlines():
        name = line.split()[0]
        folder = folder if line.startswith(" ") else ""
        assert (ROOT / folder / name).exists(), folder + name
        if name.endswith("/") and not line.startswith(" "):
            folder = name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name
)
def test_configuration_is_valid_and_opens_with_its_command(path: Path) -> None:
    read_config(path)
    comments = itertools.takewhile(
        lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines()
    )
    assert f"python train.py --config configs/{path.name}" in "\n".join(comments)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_named_in_documents_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    folders = "schnapsen_env|agents|tests|configs|docs|examples|benchmarks"
    for name in re.findall(rf"(?<![\w./-])(?:(?:{folders})/[\w./-]*\w|\w+\.py)", text):
        assert any((folder / name).exists() for folder in (ROOT, PACKAGE, path.parent)), (
            f"{path.name}: {name}"
        )


def _repository_files() -> list[Path]:
    """The text files that git tracks or would track, or all but build leftovers without git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607  # git, wherever it is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        files = [path for path in ROOT.rglob("*") if "__pycache__" not in path.parts]
    binary = {".png", ".safetensors"}
    return [path for path in files if path.is_file() and path.suffix not in binary]


def test_no_file_names_a_path_of_one_machine() -> None:
    # A leading slash and one of these folders: somebody's home or a mount of one machine.
    folders = "home|root|Users|work|opt|mnt|srv"
    machine_path = re.compile(rf"(?<![\w./~-])/(?:{folders})/\w|\b[A-Z]:\\\\?Users\\")
    found: list[str] = []
    for path in _repository_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if machine_path.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path) -> None:
    assert "player_0" in run_python(str(path))
