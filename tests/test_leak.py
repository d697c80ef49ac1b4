"""Nothing leaks: dealing anew what a player cannot see leaves observation and mask as they were.

Bytes are compared, in every rule set, memory and order of suits, with and without history, for both
players at every moment of many deals. The test itself is tested on encoders that do leak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import get_args

import numpy as np
import numpy.typing as npt
import pytest

from schnapsen_env import RULES, Layout, Rules, engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.engine import record as r
from schnapsen_env.observation import Memory, Suits, encode
from schnapsen_env.sampling import redeal
from tests.random_play import moments

Record = npt.NDArray[np.int64]
Encoder = Callable[[Record, npt.NDArray[np.int64], int, Layout], bytes]

LAYOUTS = [
    Layout(memory, suits, history)
    for memory, suits, history in product(get_args(Memory), get_args(Suits), (False, True))
    if memory == "perfect" or not history
]


def seen_by(record: Record, codes: npt.NDArray[np.int64], seat: int, layout: Layout) -> bytes:
    """Observation and mask of a player, as bytes."""
    out = np.full(layout.size, np.nan, dtype=np.float32)
    mask = np.full(NUM_ACTIONS, 99, dtype=np.int8)
    memory, suits, history = layout.memory_code, layout.suits_code, layout.history_code
    encode(record, codes, seat, memory, suits, history, 1, out, mask)
    return out.tobytes() + mask.tobytes()


def redealt(rules: Rules, deals: int) -> Iterator[tuple[Record, Record, int]]:
    """Moments of deals, each beside the same one with what a seat cannot see dealt anew."""
    chance = engine.new_record(17)
    for record in moments(rules, deals, seed=8):
        for seat in range(2):
            again = record.copy()
            redeal(again, seat, chance)
            yield record, again, seat


def leaks(rules: Rules, layout: Layout, encoder: Encoder, deals: int = 6) -> int:
    """At how many moments ``encoder`` tells a deal from one that looks the same."""
    codes = rules.codes()
    return sum(
        encoder(record, codes, seat, layout) != encoder(again, codes, seat, layout)
        for record, again, seat in redealt(rules, deals)
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("rules", RULES.values(), ids=lambda rules: rules.name)
def test_no_layout_leaks(rules: Rules, layout: Layout) -> None:
    assert leaks(rules, layout, seen_by) == 0


@pytest.mark.parametrize("rules", RULES.values(), ids=lambda rules: rules.name)
def test_redealing_changes_what_the_other_player_sees(rules: Rules) -> None:
    """Otherwise the test above would compare a deal with itself."""
    layout = Layout()
    codes = rules.codes()
    changed = [
        seen_by(record, codes, 1 - seat, layout) != seen_by(again, codes, 1 - seat, layout)
        for record, again, seat in redealt(rules, 6)
    ]
    assert np.mean(changed) > 0.3


def leaky(*hidden: Callable[[Record, int], int]) -> Encoder:
    """The encoder with a number more that the player cannot know."""

    def encoder(record: Record, codes: npt.NDArray[np.int64], seat: int, layout: Layout) -> bytes:
        more = b"".join(int(number(record, seat)).to_bytes(8) for number in hidden)
        return seen_by(record, codes, seat, layout) + more

    return encoder


LEAKS: dict[str, Callable[[Record, int], int]] = {
    "the other hand": lambda record, seat: record[r.HAND + 1 - seat],
    "one card of the other hand": lambda record, seat: record[r.HAND + 1 - seat] >> 14 & 1,
    "the legal actions of the other": lambda record, seat: (
        engine.legal(record, RULES["pagat"].codes()) * (record[r.TO_MOVE] != seat)
    ),
    "the next card of the talon": lambda record, _: (
        engine.position_of(record).talon[0] if record[r.FACE_DOWN] else 0
    ),
    "the order of the talon": lambda record, _: record[r.DECK + 1],
    "the hands as dealt": lambda record, _: record[r.DECK],
    "what the other drew": lambda record, seat: record[r.DRAWN + 1 - seat],
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found(name: str) -> None:
    assert leaks(RULES["pagat"], Layout(), leaky(LEAKS[name])) > 0


def test_what_is_public_is_no_leak() -> None:
    public = leaky(
        lambda record, seat: record[r.KNOWN + 1 - seat],
        lambda record, seat: record[r.CANNOT_HOLD + 1 - seat],
        lambda record, _: record[r.HISTORY],
        lambda record, _: record[r.HISTORY + 1],
        lambda record, _: record[r.TURNED_UP] & 31,
        lambda record, seat: record[r.DRAWN + seat],
    )
    assert leaks(RULES["pagat"], Layout(), public) == 0


def test_a_rank_deduced_for_one_player_does_not_reach_the_other() -> None:
    """After an off-suit reply in a closed deal, the player who replied learns nothing from it."""
    rules = RULES["pagat"]
    codes = rules.codes()
    found = 0
    for record in moments(rules, 60, seed=9):
        if record[r.TALON_STATE] != r.CLOSED:
            continue
        for seat in range(2):
            without = record.copy()
            without[r.CANNOT_HOLD + seat] = 0
            found += bool(record[r.CANNOT_HOLD + seat])
            assert seen_by(without, codes, seat, Layout()) == seen_by(record, codes, seat, Layout())
    assert found > 20
