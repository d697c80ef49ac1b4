"""Writes the generated tables into the documents: ``python docs/update_tables.py``.

With ``--check`` nothing is written, and the exit status is 1 if a table is out of date, which a
test looks for.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from schnapsen_env.observation import DEFAULT_LAYOUT, Layout, layout_table

PAGE = Path(__file__).parent / "environment.md"


def tables() -> dict[str, str]:
    """The table of each name that stands in a ``<!-- generated: name -->`` mark."""
    head, whole = layout_table(DEFAULT_LAYOUT), layout_table(Layout(history=True))
    title = "".join(head.splitlines(keepends=True)[:2])
    return {"layout": head, "history": title + whole.removeprefix(head)}


def updated(page: str) -> str:
    """The text of a page with all its generated tables as they should be."""
    for name, table in tables().items():
        mark = f"<!-- generated: {name} -->\n"
        page = re.sub(
            rf"{re.escape(mark)}.*?<!-- end -->",
            lambda _, text=f"{mark}\n{table}\n<!-- end -->": text,
            page,
            flags=re.DOTALL,
        )
    return page


def main(arguments: list[str]) -> int:
    """Update or check the page; returns the exit status."""
    before = PAGE.read_text(encoding="utf-8")
    after = updated(before)
    if "--check" not in arguments:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        sys.stderr.write(f"{PAGE.name} is out of date: run python docs/update_tables.py\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
