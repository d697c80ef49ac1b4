"""Writes the generated tables into the documents: ``python docs/update_tables.py``.

With ``--check`` nothing is written, and the exit status is 1 if a table is out of date, which a
test looks for.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from schnapsen_env.observation import DEFAULT_LAYOUT, Layout, layout_table

ROOT = Path(__file__).resolve().parent.parent
#: The pages with generated tables.
PAGES = (ROOT / "docs" / "environment.md", ROOT / "README.md")
#: The league of the README's table, written by benchmarks/results.py.
LEAGUE = ROOT / "docs" / "results" / "league.json"


def tables() -> dict[str, str]:
    """The table of each name that stands in a ``<!-- generated: name -->`` mark."""
    from agents.evaluation.league import markdown

    head, whole = layout_table(DEFAULT_LAYOUT), layout_table(Layout(history=True))
    title = "".join(head.splitlines(keepends=True)[:2])
    league = json.loads(LEAGUE.read_text(encoding="utf-8"))
    return {
        "layout": head,
        "history": title + whole.removeprefix(head),
        "league": markdown(league),
    }


def updated(page: str, generated: dict[str, str]) -> str:
    """The text of a page with all its tables as ``generated`` by :func:`tables`."""
    for name, table in generated.items():
        mark = f"<!-- generated: {name} -->\n"
        page = re.sub(
            rf"{re.escape(mark)}.*?<!-- end -->",
            lambda _, text=f"{mark}\n{table}\n<!-- end -->": text,
            page,
            flags=re.DOTALL,
        )
    return page


def main(arguments: list[str]) -> int:
    """Update or check the pages; returns the exit status."""
    status, generated = 0, tables()
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        after = updated(before, generated)
        if after == before:
            continue
        if "--check" in arguments:
            sys.stderr.write(f"{path.name} is out of date: run python docs/update_tables.py\n")
            status = 1
        else:
            path.write_text(after, encoding="utf-8")
    return status


if __name__ == "__main__":
    # As a script: the folder of `agents`, which is not installed.
    sys.path.append(str(ROOT))
    raise SystemExit(main(sys.argv[1:]))
