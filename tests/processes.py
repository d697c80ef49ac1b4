"""Python in a process of its own, for what has to be seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_python(*arguments: str, warnings: str = "error", **environment: str) -> str:
    """Run Python in the repository's folder; its standard output. It has to succeed.

    Args:
        arguments: of Python, such as ``"-c"`` and a program, or a file.
        warnings: what Python's ``-W`` is given.
        environment: variables to set beside those of this process.
    """
    done = subprocess.run(
        [sys.executable, "-W", warnings, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
