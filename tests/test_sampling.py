"""Deals consistent with what a player knows: they look the same, and all are equally likely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import comb, factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from schnapsen_env import RULES, Position, Rules, engine
from schnapsen_env.cards import ALL_CARDS, card_set
from schnapsen_env.engine import record as r
from schnapsen_env.observation import decode, observe
from schnapsen_env.sampling import (
    accounts_for_cards,
    choose_cards,
    count_hands,
    redeal,
    sample_deal,
    with_hand,
)
from schnapsen_env.view import NO_MEMORY, PERFECT, never_seen, view
from tests.random_play import choose, moments, running

Record = npt.NDArray[np.int64]

#: Valued at the closing and by card points, the one case in which a view does not hold all of it.
CLOSE_BY_CARD_POINTS = Rules(
    name="close by card points", close_valued_at="closing", schneider_by="card_points"
)
ALL_RULES = [*RULES.values(), CLOSE_BY_CARD_POINTS]


def chi_square_bound(cells: int) -> float:
    """Six standard deviations above the mean of a chi-square sum of ``cells`` cells."""
    freedom = cells - 1
    return freedom + 6 * (2 * freedom) ** 0.5


def assert_uniform(draw: Callable[[], Any], cells: int, per_cell: int = 60) -> None:
    """``draw`` must give each of ``cells`` values equally often, and no other value."""
    counts = Counter(draw() for _ in range(cells * per_cell))
    assert len(counts) == cells
    squares = sum((count - per_cell) ** 2 for count in counts.values()) / per_cell
    assert squares <= chi_square_bound(cells)


# ---------------------------------------------------------------------------------- consistency


@pytest.mark.parametrize("rules", ALL_RULES, ids=lambda rules: rules.name)
def test_a_view_accounts_for_every_card(rules: Rules) -> None:
    for record in running(rules, 25, seed=5):
        for seat in range(2):
            assert accounts_for_cards(view(record, rules.codes(), seat, PERFECT))


#: What cannot be, made from the cards and the tally of a view.
IMPOSSIBLE: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "twice": lambda cards, tally: (cards._replace(own_won=cards.own_won | cards.hand), tally),
    "missing": lambda cards, tally: (cards._replace(unseen=0), tally),
    "last trick": lambda cards, tally: (cards._replace(last_trick=cards.hand), tally),
    "own points": lambda cards, tally: (cards, tally._replace(own_card_points=2)),
    "other points": lambda cards, tally: (cards, tally._replace(other_card_points=2)),
}


@pytest.mark.parametrize("change", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_view_that_does_not_add_up_is_noticed(
    change: Callable[[Any, Any], tuple[Any, Any]],
) -> None:
    rules = RULES["pagat_auto"]
    record = next(iter(running(rules, 1, seed=1)))
    seen: Any = view(record, rules.codes(), int(record[r.TO_MOVE]), PERFECT)
    assert accounts_for_cards(seen)
    cards, tally = change(seen.cards, seen.tally)
    assert not accounts_for_cards(seen._replace(cards=cards, tally=tally))


@pytest.mark.parametrize("rules", ALL_RULES, ids=lambda rules: rules.name)
def test_a_sampled_deal_looks_the_same_to_the_player(rules: Rules) -> None:
    codes = rules.codes()
    sample = engine.new_record(1)
    for record in running(rules, 25, seed=2):
        for seat in range(2):
            seen = view(record, codes, seat, PERFECT)
            sample_deal(seen, codes, seat, sample)
            assert view(sample, codes, seat, PERFECT) == seen
            obs, mask = observe(record, codes, seat)
            again, mask_again = observe(sample, codes, seat)
            assert again.tobytes() == obs.tobytes()
            assert mask_again.tobytes() == mask.tobytes()


@pytest.mark.parametrize("rules", ALL_RULES, ids=lambda rules: rules.name)
def test_a_sampled_deal_is_a_valid_position_and_can_be_played_out(rules: Rules) -> None:
    codes = rules.codes()
    rng = np.random.default_rng(0)
    sample = engine.new_record(1)
    for number, record in enumerate(running(rules, 8, seed=3)):
        seat = number % 2
        sample_deal(view(record, codes, seat, PERFECT), codes, seat, sample)
        position = engine.position_of(sample)
        assert engine.position_of(engine.record_of(position, rules)) == position
        assert position.hands[seat] == engine.position_of(record).hands[seat]
        while not engine.is_over(sample):
            engine.step(sample, codes, choose(rng, int(engine.legal(sample, codes))))


def test_an_agent_can_sample_from_its_observation() -> None:
    rules = RULES["pagat"]
    codes = rules.codes()
    sample = engine.new_record(0)
    for record in running(rules, 5, seed=4):
        seat = int(record[r.TO_MOVE])
        obs, mask = observe(record, codes, seat)
        sample_deal(decode(obs, mask), codes, seat, sample)
        assert observe(sample, codes, seat)[0].tobytes() == obs.tobytes()


def test_sampling_goes_on_with_the_generator_of_the_record() -> None:
    rules = RULES["duel"]
    codes = rules.codes()
    seen = view(next(iter(running(rules, 1))), codes, 0, PERFECT)
    first, again = engine.new_record(5), engine.new_record(5)
    hands: set[int] = set()
    for _ in range(10):
        sample_deal(seen, codes, 0, first)
        sample_deal(seen, codes, 0, again)
        np.testing.assert_array_equal(first, again)
        hands.add(int(first[r.HAND + 1]))
    assert len(hands) > 5


def test_a_view_that_no_deal_has_is_refused() -> None:
    rules = RULES["duel"]
    codes = rules.codes()
    seen = view(next(iter(running(rules, 1))), codes, 0, PERFECT)
    impossible = seen._replace(cards=seen.cards._replace(other_cannot_hold=ALL_CARDS))
    with pytest.raises(ValueError, match="no deal looks like this view"):
        sample_deal(impossible, codes, 0, engine.new_record(0))


# ------------------------------------------------------------------------------------ uniformity


@pytest.mark.parametrize(("cards", "size"), [(0b1011, 2), (0b1, 1), (0b111, 0), (ALL_CARDS, 2)])
def test_sets_of_cards_are_chosen_uniformly(cards: int, size: int) -> None:
    chance = engine.new_record(0)
    cells = comb(int(cards).bit_count(), size)
    assert_uniform(lambda: int(choose_cards(cards, size, chance)), cells)


def late(closed: bool) -> tuple[Record, npt.NDArray[np.int64], int]:
    """A deal late enough to count all deals that seat 0 cannot tell from it; how many they are."""
    rules = replace(RULES["pagat_auto"], name="custom")
    names: dict[str, Any] = {
        "trump": "H",
        "turned_up": "JH",
        "leader": 0,
        "known": [[], ["KH"]],
        "won": [["AC", "TC", "KC", "QC", "KD", "QD"], ["TD", "JD"]],
        "card_points": [35, 12],
        "tricks": [3, 1],
    }
    if closed:
        # Seat 1 holds KH and two of TS KS QS JS JC AD AS less what its replies ruled out.
        names |= {
            "hands": [["AH", "TH", "QH"], ["KH", "TS", "JC"]],
            "talon": ["KS", "QS", "JS", "AD", "AS"],
            "closed_by": 0,
            "at_close": {"tricks": 0, "points": 0},
            "cannot_hold": [[], ["AS", "AD"]],
        }
        return record_at(names, rules), rules.codes(), comb(5, 2) * factorial(5)
    names |= {
        "turned_up": "QH",
        "hands": [["AH", "TH", "AD", "AS", "TS"], ["KH", "JH", "JC", "JS", "KS"]],
        "talon": ["QS"],
        "known": [[], ["KH", "JH"]],
    }
    return record_at(names, rules), rules.codes(), comb(4, 3)


def record_at(names: dict[str, Any], rules: Rules) -> Record:
    return engine.record_of(Position.from_dict(names), rules)


def hidden_cards(record: Record) -> tuple[int, tuple[int, ...]]:
    """The other hand and the talon."""
    position = engine.position_of(record)
    return card_set(position.hands[1]), position.talon


@pytest.mark.parametrize("closed", [False, True])
def test_sampled_deals_are_uniform(closed: bool) -> None:
    record, codes, cells = late(closed)
    seen = view(record, codes, 0, PERFECT)
    sample = engine.new_record(7)

    def draw() -> Any:
        sample_deal(seen, codes, 0, sample)
        return hidden_cards(sample)

    assert_uniform(draw, cells, per_cell=12 if closed else 200)


@pytest.mark.parametrize("closed", [False, True])
def test_redealt_deals_are_uniform(closed: bool) -> None:
    record, _, cells = late(closed)
    chance = engine.new_record(7)

    def draw() -> Any:
        again = record.copy()
        redeal(again, 0, chance)
        return hidden_cards(again)

    assert_uniform(draw, cells, per_cell=12 if closed else 200)


# -------------------------------------------------------------------------------------- redealing


@pytest.mark.parametrize("rules", ALL_RULES, ids=lambda rules: rules.name)
def test_a_redealt_deal_is_one_that_could_have_been_dealt(rules: Rules) -> None:
    """Dealt from its own deck, the same actions must lead to the redealt record."""
    chance = engine.new_record(3)
    for number, record in enumerate(moments(rules, 12, seed=5)):
        again = record.copy()
        redeal(again, number % 2, chance)
        deck = [
            int(again[r.DECK + i // 10] >> (r.CARD_BITS * (i % 10))) & r.CARD_WORD
            for i in range(20)
        ]
        assert sorted(deck) == list(range(20))
        replayed = engine.new_record(0)
        replayed[r.MATCH_SCORE : r.MATCH_SCORE + 2] = again[r.MATCH_SCORE : r.MATCH_SCORE + 2]
        winner = int(again[r.WINNER])
        if engine.is_over(again) and winner != r.NONE:
            replayed[r.MATCH_SCORE + winner] -= again[r.GAME_POINTS]
        engine.deal_deck(replayed, np.array(deck), int(again[r.FOREHAND]))
        for index in range(int(again[r.NUM_TAKEN])):
            entry = int(again[r.HISTORY + index // r.HISTORY_PER_WORD])
            entry >>= r.HISTORY_BITS * (index % r.HISTORY_PER_WORD)
            engine.apply(replayed, rules, entry & 31)
        same = np.delete(again == replayed, [r.RANDOM, r.DEAL_NUMBER])
        assert same.all()


@pytest.mark.parametrize("rules", RULES.values(), ids=lambda rules: rules.name)
def test_redealing_moves_the_hidden_cards_and_no_other(rules: Rules) -> None:
    chance = engine.new_record(3)
    moved = 0
    for record in moments(rules, 6, seed=6):
        for seat in range(2):
            again = record.copy()
            redeal(again, seat, chance)
            hidden = int(never_seen(record, seat))
            assert never_seen(again, seat) == hidden
            assert again[r.RANDOM] == record[r.RANDOM]
            before, after = engine.position_of(record), engine.position_of(again)
            assert after.hands[seat] == before.hands[seat]
            assert card_set(after.hands[1 - seat]) & ~hidden == (
                card_set(before.hands[1 - seat]) & ~hidden
            )
            moved += before != after
    assert moved > 20


def test_redealing_covers_positions_too() -> None:
    record, codes, _ = late(closed=False)
    again, chance = record.copy(), engine.new_record(1)
    seen = view(record, codes, 0, PERFECT)
    for _ in range(20):
        redeal(again, 0, chance)
        assert view(again, codes, 0, PERFECT) == seen
        engine.position_of(again)


# ------------------------------------------------------------------------------------ all hands


@pytest.mark.parametrize("closed", [False, True])
def test_every_hand_that_agrees_with_a_view_comes_once(closed: bool) -> None:
    record, codes, _ = late(closed)
    seen = view(record, codes, 0, PERFECT)
    number = int(count_hands(seen))
    assert number == (comb(5, 2) if closed else comb(4, 3))
    sample = engine.new_record(0)
    hands: set[int] = set()
    for index in range(number):
        sample_deal(with_hand(seen, index), codes, 0, sample)
        hand = int(sample[r.HAND + 1])
        assert hand & seen.cards.other_known == seen.cards.other_known
        assert hand & seen.cards.other_cannot_hold == 0
        engine.position_of(sample)
        hands.add(hand)
    assert len(hands) == number


@pytest.mark.parametrize("rules", ALL_RULES, ids=lambda rules: rules.name)
def test_the_true_hand_is_among_those_that_are_counted(rules: Rules) -> None:
    codes = rules.codes()
    for record in running(rules, 6, seed=9):
        for seat in range(2):
            seen = view(record, codes, seat, PERFECT)
            number = int(count_hands(seen))
            assert number >= 1
            if number <= 30:
                true_hand = int(record[r.HAND + 1 - seat])
                hands = [with_hand(seen, index).cards.other_known for index in range(number)]
                assert true_hand in hands
            if record[r.TALON_STATE] == r.EXHAUSTED:
                assert number == 1


def test_no_hand_agrees_with_the_view_of_a_forgetful_player() -> None:
    rules = RULES["pagat_auto"]
    records = [
        record for record in running(rules, 6, seed=9) if record[r.TRICKS : r.TRICKS + 2].any()
    ]
    assert len(records) > 10
    for record in records:
        assert count_hands(view(record, rules.codes(), 0, NO_MEMORY)) == 0
