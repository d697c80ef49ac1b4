"""Plays a fixed set of deals through everything that is compiled, and prints a digest of it all.

Run by ``test_uncompiled.py`` with and without compilation; a program of its own because numba reads
``NUMBA_DISABLE_JIT`` once, when it is imported.
"""

from __future__ import annotations

import hashlib
import sys
from itertools import cycle, product
from typing import Any, cast, get_args

import numpy as np
from gymnasium.vector import AutoresetMode

from schnapsen_env import RULES, Layout, Rules, engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.observation import STATE_SIZE, Memory, Suits, decode, encode, encode_state
from schnapsen_env.record_log import DealRecord, replay
from schnapsen_env.sampling import redeal, sample_deal
from schnapsen_env.vector import SchnapsenVectorEnv
from tests.random_play import moments

LAYOUTS = [
    Layout(memory, suits, history)
    for memory, suits, history in product(get_args(Memory), get_args(Suits), (False, True))
    if memory == "perfect" or not history
]
VALUED_BY_CARDS = Rules(
    name="custom",
    trick_by="value",
    claims="turn",
    exchange_when="turn",
    last_trick_bonus=10,
    exhausted="claim_or_draw",
    schneider_by="card_points",
    close_valued_at="closing",
)


class Digest:
    """A hash of numbers and of the bytes of arrays, each with its dtype."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *values: Any) -> None:
        for value in values:
            array = np.asarray(value)
            self._hash.update(array.dtype.str.encode())
            self._hash.update(array.tobytes())

    def add_tree(self, tree: Any) -> None:
        """Add what an environment returns."""
        if isinstance(tree, dict):
            for _, part in sorted(cast("dict[str, Any]", tree).items()):
                self.add_tree(part)
        elif isinstance(tree, tuple):
            for part in cast("tuple[Any, ...]", tree):
                self.add_tree(part)
        else:
            self.add(tree)

    def __str__(self) -> str:
        return self._hash.hexdigest()


def add_deals(digest: Digest, rules: Rules) -> None:
    """Moments of deals: what is legal, what is seen in every form, what is sampled."""
    codes = rules.codes()
    chance, sample = engine.new_record(1), engine.new_record(2)
    layouts = cycle(LAYOUTS)
    for number, record in enumerate(moments(rules, 4, seed=11)):
        digest.add(record, np.int64(engine.legal(record, codes)))
        layout = next(layouts)
        memory, suits, history = layout.memory_code, layout.suits_code, layout.history_code
        for seat, dtype in product(range(2), (np.float32, np.uint8)):
            out = np.empty(layout.size, dtype=dtype)
            mask = np.empty(NUM_ACTIONS, dtype=np.int8)
            scaled = int(dtype == np.float32)
            encode(record, codes, seat, memory, suits, history, scaled, out, mask)
            digest.add(out, mask)
        if number % 3 == 0 and not engine.is_over(record):
            out = np.empty(Layout().size, dtype=np.float32)
            mask = np.empty(NUM_ACTIONS, dtype=np.int8)
            encode(record, codes, 0, 0, 0, 0, 1, out, mask)
            sample_deal(decode(out, mask), codes, 0, sample)
            again = record.copy()
            redeal(again, 1, chance)
            state = np.empty(STATE_SIZE, dtype=np.float32)
            encode_state(again, codes, state)
            digest.add(sample, again, state)
        if engine.is_over(record):
            digest.add(replay(str(DealRecord.from_record(record, rules))))


def add_batches(digest: Digest) -> None:
    """The batch environment in each autoreset mode."""
    for number, mode in enumerate(AutoresetMode):
        vec = SchnapsenVectorEnv(
            3,
            "austrian",
            "match",
            target=3,
            autoreset_mode=mode,
            dtype=(np.float32, np.uint8)[number % 2],
            suits=("natural", "canonical", "trump_first")[number],
            illegal_action=("lose", "revoke", "raise")[number],
        )
        digest.add_tree(vec.reset(seed=5))
        for step in range(50):
            actions = vec.sample_actions()
            if step % 20 == 7 and number < 2:
                actions[0] = step % NUM_ACTIONS
            digest.add_tree(vec.step(actions))
        digest.add(vec.state())


def main() -> None:
    digest = Digest()
    for rules in (*RULES.values(), VALUED_BY_CARDS):
        add_deals(digest, rules)
    add_batches(digest)
    sys.stdout.write(str(digest))


if __name__ == "__main__":
    main()
