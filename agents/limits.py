"""Limits that agents, training and evaluation have in common."""

from __future__ import annotations

from typing import Final

#: The most threads that an agent or a training run may be told to use.
MOST_THREADS: Final = 256
#: The most different deals of one evaluation: the rows of both plays, 12 numbers each, take 2 GB.
MOST_PAIRS: Final = 10_000_000
