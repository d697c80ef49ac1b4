"""The pages of the integrations: what they show runs, and the files they name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests_integration.conftest import ROOT

PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))
#: AgileRL's pins exclude the other libraries; its page runs in `tests_integration_agilerl`.
ELSEWHERE = {"agilerl"}


@pytest.mark.parametrize(
    "path", [page for page in PAGES if page.stem not in ELSEWHERE], ids=lambda path: path.stem
)
def test_python_on_the_page_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        # The empty lines make a traceback point at the page's own line.
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(path), "exec"), names)  # noqa: S102 - our own page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_files_named_on_the_page_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:examples|schnapsen_env|tests|docs|configs)/[\w./-]*\w", text):
        assert (ROOT / name).exists(), name
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), target
