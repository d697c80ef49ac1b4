"""The rules mean the same compiled and as plain Python."""

from __future__ import annotations

from tests.processes import run_python


def digest_of_play(**environment: str) -> str:
    """What ``digest_of_play.py`` prints in a new process; warnings there are errors."""
    return run_python("-m", "tests.digest_of_play", **environment)


def test_the_same_deals_come_out_without_compilation() -> None:
    compiled = digest_of_play(NUMBA_DISABLE_JIT="0")
    assert len(compiled) == 64
    assert digest_of_play(NUMBA_DISABLE_JIT="1") == compiled
