"""Moments of deals that random players reach, for tests of properties."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import CLAIM, CLOSE, NUM_ACTIONS
from schnapsen_env.rules import Rules

Record = npt.NDArray[np.int64]


def choose(rng: np.random.Generator, legal: int) -> int:
    """A random legal action that closes and claims less often, so that deals go on for longer."""
    weights = np.array([legal >> action & 1 for action in range(NUM_ACTIONS)], dtype=np.float64)
    weights[CLOSE] *= 0.3
    weights[CLAIM] *= 0.1
    return int(rng.choice(NUM_ACTIONS, p=weights / weights.sum()))


def moments(rules: Rules, deals: int, seed: int = 0) -> Iterator[Record]:
    """The records of some deals of one match after another: at every decision, and at the end."""
    rng = np.random.default_rng(seed)
    codes = rules.codes()
    record = engine.new_record(seed)
    for _ in range(deals):
        if engine.match_winner(record, codes) >= 0:
            engine.new_match(record)
        engine.deal(record)
        yield record.copy()
        while not engine.is_over(record):
            engine.step(record, codes, choose(rng, int(engine.legal(record, codes))))
            yield record.copy()


def finished(rules: Rules, deals: int, seed: int = 0) -> Iterator[Record]:
    """The records of some finished deals."""
    return (record for record in moments(rules, deals, seed) if engine.is_over(record))


def running(rules: Rules, deals: int, seed: int = 0) -> Iterator[Record]:
    """The records of some deals at every decision."""
    return (record for record in moments(rules, deals, seed) if not engine.is_over(record))
