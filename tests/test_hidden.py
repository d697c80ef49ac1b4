"""What a critic may see beside the observation: the other hand and the talon, in the same names."""

from __future__ import annotations

import numpy as np
import pytest

from schnapsen_env import RULES, engine
from schnapsen_env.cards import NUM_CARDS, TALON_SIZE
from schnapsen_env.engine import record as r
from schnapsen_env.hidden import HIDDEN_SIZE, write_hidden
from schnapsen_env.observation import Layout, Suits, observe
from schnapsen_env.vector import SchnapsenVectorEnv

LAYOUTS = (Layout(), Layout(suits="trump_first"), Layout(suits="canonical", history=True))


def hidden_of(record: np.ndarray, codes: np.ndarray, layout: Layout) -> np.ndarray:
    out = np.full((1, HIDDEN_SIZE), 7, dtype=np.uint8)
    layout_codes = (layout.memory_code, layout.suits_code, layout.history_code)
    write_hidden(record[None], codes, *layout_codes, out)
    return out[0].reshape(1 + TALON_SIZE, NUM_CARDS)


def cards(bits: int) -> set[int]:
    return {card for card in range(NUM_CARDS) if bits >> card & 1}


def test_it_is_the_other_hand_and_the_talon_in_drawing_order() -> None:
    codes = RULES["duel"].codes()
    record = engine.new_record(5)
    deck = np.random.default_rng(5).permutation(NUM_CARDS)
    engine.deal_deck(record, deck, 0)
    checked = 0
    while not engine.is_over(record):
        position = engine.position_of(record)
        hidden = hidden_of(record, codes, Layout())
        other = 1 - int(record[r.TO_MOVE])
        assert set(np.flatnonzero(hidden[0])) == set(position.hands[other])
        talon = [int(np.flatnonzero(row)[0]) for row in hidden[1:] if row.any()]
        assert talon == list(position.talon)
        assert not hidden[1 + len(talon) :].any()
        engine.step(record, codes, engine.random_action(record, codes))
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_suits_have_the_names_of_the_observation(layout: Layout) -> None:
    env = SchnapsenVectorEnv(64, rules="pagat_auto")
    env.reset(seed=1)
    codes = env.rules.codes()
    field = next(field for field in layout.fields if field.name == "unseen")
    known = next(field for field in layout.fields if field.name == "other_known")
    for _ in range(12):
        for record in env.records:
            seen, _ = observe(record, codes, int(record[r.TO_MOVE]), layout)
            hidden = hidden_of(record, codes, layout)
            in_hand_or_talon = set(np.flatnonzero(hidden.any(axis=0)))
            unseen = set(np.flatnonzero(seen[field.offset : field.offset + field.size]))
            unseen |= set(np.flatnonzero(seen[known.offset : known.offset + known.size]))
            assert in_hand_or_talon == unseen
        env.step(env.sample_actions())


@pytest.mark.parametrize("suits", ["canonical"])
def test_canonical_names_make_like_deals_alike(suits: Suits) -> None:
    codes = RULES["pagat_auto"].codes()
    layout = Layout(suits=suits)
    deck = np.random.default_rng(3).permutation(NUM_CARDS)
    renamed = (deck + 5) % NUM_CARDS  # every card in the next suit
    both: list[np.ndarray] = []
    for cards_dealt in (deck, renamed):
        record = engine.new_record(0)
        engine.deal_deck(record, cards_dealt, 1)
        both.append(hidden_of(record, codes, layout))
    assert (both[0] == both[1]).all()
