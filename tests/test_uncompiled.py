"""The rules mean the same compiled and as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def digest_of_play(**environment: str) -> str:
    """What ``digest_of_play.py`` prints in a new process; warnings there are errors."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.digest_of_play"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_same_deals_come_out_without_compilation() -> None:
    compiled = digest_of_play(NUMBA_DISABLE_JIT="0")
    assert len(compiled) == 64
    assert digest_of_play(NUMBA_DISABLE_JIT="1") == compiled
