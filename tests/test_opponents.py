"""The built-in opponents: legal, fair, repeatable, and playing as a beginner's book says."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from schnapsen_env import RULES, engine
from schnapsen_env.actions import NUM_ACTIONS, action_text
from schnapsen_env.engine import record as r
from schnapsen_env.observation import BASE_SIZE, observe
from schnapsen_env.opponents import HeuristicOpponent, RandomOpponent, make_opponent
from schnapsen_env.position import Position

OPEN_DEAL: dict[str, Any] = {
    "trump": "H",
    "turned_up": "TH",
    "hands": [["AS", "TS", "KD", "JC", "JH"], ["KC", "QS", "JD", "QD", "KH"]],
    "talon": ["QH", "AH", "AC", "TC", "QC", "AD", "TD", "KS", "JS"],
    "leader": 0,
}

#: After the last draw: hands, won cards and card points that fit together.
EXHAUSTED: dict[str, Any] = {
    "trump": "H",
    "turned_up": None,
    "talon": [],
    "leader": 0,
    "tricks": [3, 2],
}


def choice(position: dict[str, Any], rules: str = "pagat_auto") -> str:
    """What the heuristic player does in a position, as text."""
    record = engine.record_of(Position.from_dict(position), RULES[rules])
    seat = int(record[r.TO_MOVE])
    action = HeuristicOpponent().act(*observe(record, RULES[rules].codes(), seat))
    assert engine.legal(record, RULES[rules].codes()) >> action & 1
    return action_text(action)


def changed(position: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**position, **changes}


BOOK: list[tuple[str, dict[str, Any], str, str]] = [
    ("the trump jack is exchanged at once", OPEN_DEAL, "pagat_auto", "exchange"),
    (
        "nothing is exchanged without the jack; the lowest plain card is led",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            hands=[["AS", "TS", "KD", "JC", "QH"], ["KC", "QS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QC", "AD", "TD", "KS", "JS"],
        ),
        "pagat_auto",
        "JC",
    ),
    (
        "a marriage is declared",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            hands=[["KS", "QS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "AS", "JS"],
        ),
        "pagat_auto",
        "declare-S",
    ),
    (
        "forty before twenty",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            hands=[["KS", "QS", "KH", "QH", "QC"], ["KC", "TS", "JD", "QD", "KD"]],
            talon=["TH", "AH", "AC", "TC", "JC", "AD", "TD", "AS", "JS"],
        ),
        "pagat_auto",
        "declare-H",
    ),
    (
        "after declaring, the queen is led and the king kept",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            hands=[["KS", "QS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "AS", "JS"],
            marriages=[["S"], []],
            declared="S",
        ),
        "pagat_auto",
        "QS",
    ),
    (
        "a marriage is not broken to win a jack",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            leader=1,
            lead="JS",
            hands=[["KS", "QS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "AS", "KH"],
        ),
        "pagat_auto",
        "JC",
    ),
    (
        "an ace takes a ten",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            leader=1,
            lead="TS",
            hands=[["AS", "QD", "KD", "JC", "QC"], ["KC", "KS", "JD", "QS"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "JS", "KH"],
        ),
        "pagat_auto",
        "AS",
    ),
    (
        "an ace that cannot be beaten in suit is trumped with the lowest trump",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            leader=1,
            lead="AS",
            hands=[["TH", "QH", "KD", "JC", "QC"], ["KC", "KS", "JD", "QS"]],
            talon=["TS", "AH", "AC", "TC", "QD", "AD", "TD", "JS", "KH"],
        ),
        "pagat_auto",
        "QH",
    ),
    (
        "a jack is not worth a trump",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            leader=1,
            lead="JS",
            hands=[["TH", "QH", "KD", "JC", "QC"], ["KC", "KS", "JD", "QS"]],
            talon=["TS", "AH", "AC", "TC", "QD", "AD", "TD", "AS", "KH"],
        ),
        "pagat_auto",
        "JC",
    ),
    (
        "a hand that reaches 66 by itself closes",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            hands=[["AH", "TH", "KH", "AS", "AC"], ["KC", "TS", "JD", "QD", "KD"]],
            talon=["KS", "QS", "QC", "TC", "QH", "AD", "TD", "JC", "JS"],
        ),
        "pagat_auto",
        "close",
    ),
    (
        "a poor hand does not close",
        changed(
            OPEN_DEAL,
            turned_up="JH",
            hands=[["QH", "JS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QS", "AD", "TD", "AS", "KS"],
        ),
        "pagat_auto",
        "JC",
    ),
    (
        "66 is claimed where it must be",
        changed(
            EXHAUSTED,
            hands=[["JC", "JD", "QC", "QD", "QS"], ["JS", "KC", "KD", "KS", "QH"]],
            card_points=[84, 6],
            tricks=[4, 1],
            won=[["AS", "TS", "AC", "TC", "AD", "AH", "TD", "TH"], ["KH", "JH"]],
        ),
        "pagat",
        "claim",
    ),
    (
        "in the exhausted phase the sure winner is led before the loser",
        changed(
            EXHAUSTED,
            hands=[["AC", "JD", "QC", "QD", "QS"], ["JS", "KC", "KD", "KS", "TC"]],
            card_points=[32, 42],
            won=[["AS", "TS", "QH", "JC", "JH", "KH"], ["AD", "TD", "AH", "TH"]],
        ),
        "pagat_auto",
        "AC",
    ),
]


@pytest.mark.parametrize(
    ("reason", "position", "rules", "expected"), BOOK, ids=[b[0] for b in BOOK]
)
def test_plays_as_the_book_says(
    reason: str, position: dict[str, Any], rules: str, expected: str
) -> None:
    assert choice(position, rules) == expected, reason


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", ["random", "heuristic"])
def test_plays_legally_and_batches_alike(rules: str, name: str) -> None:
    codes = RULES[rules].codes()
    player, batch_player = make_opponent(name, seed=3), cast("Any", make_opponent(name, seed=3))
    record = engine.new_record(1)
    observations: list[Any] = []
    masks: list[Any] = []
    actions: list[int] = []
    for _ in range(100):
        engine.deal(record)
        while not engine.is_over(record):
            observation, mask = observe(record, codes, int(record[r.TO_MOVE]))
            action = player.act(observation, mask)
            assert type(action) is int
            assert mask[action] == 1
            observations.append(observation)
            masks.append(mask)
            actions.append(action)
            engine.step(record, codes, action)
    chosen = batch_player.act_batch(np.array(observations), np.array(masks))
    assert chosen.dtype == np.int64
    assert np.array(masks)[np.arange(len(chosen)), chosen].all()
    if name == "heuristic":
        assert chosen.tolist() == actions


def test_random_is_uniform_over_the_mask_and_seeded() -> None:
    mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
    mask[[3, 7, 25]] = 1
    masks = np.tile(mask, (30_000, 1))
    drawn = RandomOpponent(5).act_batch(np.zeros((30_000, BASE_SIZE), np.float32), masks)
    counts = np.bincount(drawn, minlength=NUM_ACTIONS)
    assert counts[[3, 7, 25]].sum() == 30_000
    assert (np.abs(counts[[3, 7, 25]] - 10_000) < 5 * np.sqrt(30_000 * 2 / 9)).all()
    first, again, other = RandomOpponent(5), RandomOpponent(9), RandomOpponent(6)
    again.reset(5)
    runs = [[p.act(np.zeros(BASE_SIZE), mask) for _ in range(50)] for p in (first, again, other)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    "player", [RandomOpponent(), HeuristicOpponent()], ids=["random", "heuristic"]
)
def test_nothing_legal_is_an_error(player: Any) -> None:
    record = engine.new_record(1)
    engine.deal(record)
    observation, mask = observe(record, RULES["duel"].codes(), 1 - int(record[r.TO_MOVE]))
    with pytest.raises(ValueError, match="mask is all zeros"):
        player.act(observation, mask)
    with pytest.raises(ValueError, match="mask is all zeros"):
        player.act_batch(observation[None], mask[None])


def test_make_opponent_names_what_it_knows() -> None:
    with pytest.raises(ValueError, match="'random', 'heuristic'"):
        make_opponent("stockfish")
    with pytest.raises(TypeError, match="needs act"):
        make_opponent(cast("Any", 3))
    player = HeuristicOpponent()
    assert make_opponent(player) is player


@pytest.mark.parametrize(("rules", "least"), [("pagat_auto", 1.55), ("duel", 1.5), ("french", 1.0)])
def test_beats_random_play(rules: str, least: float) -> None:
    """Paired deals: each is played twice with seats swapped."""
    codes = RULES[rules].codes()
    heuristic, chance = HeuristicOpponent(), RandomOpponent(0)
    record = engine.new_record(12)
    total, pairs = 0, 400
    for _ in range(pairs):
        engine.deal(record)
        dealt = record.copy()
        for seat in (0, 1):
            record[:] = dealt
            while not engine.is_over(record):
                to_move = int(record[r.TO_MOVE])
                player = heuristic if to_move == seat else chance
                engine.step(record, codes, player.act(*observe(record, codes, to_move)))
            total += engine.game_points(record, seat)
    assert total / (2 * pairs) > least


def test_wrong_shapes_are_refused_before_compiled_code_reads_them() -> None:
    player = HeuristicOpponent()
    observation, mask = np.zeros(BASE_SIZE, np.float32), np.ones(NUM_ACTIONS, np.int8)
    for bad in ((observation[:10], mask), (observation, mask[:3]), (observation[None], mask)):
        with pytest.raises(ValueError, match="shapes"):
            player.act(*bad)
    with pytest.raises(ValueError, match="shapes"):
        player.act_batch(observation[None], np.ones((5, NUM_ACTIONS), np.int8))
