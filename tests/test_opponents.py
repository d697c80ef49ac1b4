"""The built-in opponents: legal, fair, repeatable, and playing as a beginner's book says."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from schnapsen_env import RULES, engine
from schnapsen_env.actions import CLOSE, EXCHANGE, FIRST_DECLARE, NUM_ACTIONS, action_text
from schnapsen_env.engine import record as r
from schnapsen_env.heuristic import WEIGHTS, decide, heuristic_action, other_hand_is_known
from schnapsen_env.observation import BASE_SIZE, observe
from schnapsen_env.opponents import HeuristicOpponent, RandomOpponent, make_opponent
from schnapsen_env.position import Position
from schnapsen_env.solver import solve
from schnapsen_env.view import MEMORIES, PERFECT, view

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


#: Poor cards against a talon that holds the aces and tens.
QUIET: dict[str, Any] = changed(OPEN_DEAL, turned_up="JH")
#: The same with two tricks played, one by each.
MIDGAME: dict[str, Any] = changed(
    QUIET,
    talon=["AC", "QC", "AD", "KS", "JS"],
    tricks=[1, 1],
)

BOOK: list[tuple[str, dict[str, Any], str, str]] = [
    ("the trump jack is exchanged at once", OPEN_DEAL, "pagat_auto", "exchange"),
    (
        "a poor hand does not close; the jack of a short suit is led",
        changed(
            QUIET,
            hands=[["QH", "JS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QS", "AD", "TD", "AS", "KS"],
        ),
        "pagat_auto",
        "JC",
    ),
    (
        "a ten is not led while its ace and the trumps are out",
        changed(
            QUIET,
            hands=[["TS", "JS", "QC", "KD", "QH"], ["KC", "AS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "JC", "AD", "TD", "KS", "QS"],
        ),
        "pagat_auto",
        "JS",
    ),
    (
        "a marriage is declared",
        changed(
            QUIET,
            hands=[["KS", "QS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "AS", "JS"],
        ),
        "pagat_auto",
        "declare-S",
    ),
    (
        "after declaring, the queen is led and the king kept",
        changed(
            QUIET,
            hands=[["KS", "QS", "KD", "JC", "QC"], ["KC", "TS", "JD", "QD", "KH"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "AS", "JS"],
            marriages=[["S"], []],
            declared="S",
        ),
        "pagat_auto",
        "QS",
    ),
    (
        "two marriages close: sixty points wait for any trick",
        changed(
            QUIET,
            hands=[["KS", "QS", "KH", "QH", "JC"], ["KC", "TS", "JD", "QD", "KD"]],
            talon=["TH", "AH", "AC", "TC", "QC", "AD", "TD", "AS", "JS"],
        ),
        "pagat_auto",
        "close",
    ),
    (
        "then forty comes before twenty",
        changed(
            QUIET,
            hands=[["KS", "QS", "KH", "QH", "JC"], ["KC", "TS", "JD", "QD", "KD"]],
            talon=["TH", "AH", "AC", "TC", "QC", "AD", "TD", "AS", "JS"],
            closed_by=0,
            at_close={"tricks": 0, "points": 0},
        ),
        "pagat_auto",
        "declare-H",
    ),
    (
        "a hand that reaches 66 by itself closes",
        changed(
            QUIET,
            hands=[["AH", "TH", "KH", "QH", "AS"], ["KC", "TS", "JD", "QD", "KD"]],
            talon=["KS", "QS", "QC", "TC", "AC", "AD", "TD", "JC", "JS"],
        ),
        "pagat_auto",
        "close",
    ),
    (
        "once closed, the highest trump is led first",
        changed(
            QUIET,
            hands=[["AH", "TH", "AC", "AS", "TS"], ["KC", "QH", "JD", "QD", "KD"]],
            talon=["KS", "QS", "QC", "TC", "KH", "AD", "TD", "JC", "JS"],
            closed_by=0,
            at_close={"tricks": 0, "points": 0},
        ),
        "pagat_auto",
        "AH",
    ),
    (
        "a marriage is not broken to win a jack",
        changed(
            QUIET,
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
            QUIET,
            leader=1,
            lead="TS",
            hands=[["AS", "QD", "KD", "JC", "QC"], ["KC", "KS", "JD", "QS"]],
            talon=["TH", "AH", "AC", "TC", "QH", "AD", "TD", "JS", "KH"],
        ),
        "pagat_auto",
        "AS",
    ),
    (
        "a ten takes a king while its ace is out",
        changed(
            QUIET,
            leader=1,
            lead="KS",
            hands=[["TS", "QH", "QC", "KD", "JC"], ["KC", "QS", "JD", "QD"]],
            talon=["TH", "AH", "AC", "TC", "KH", "AD", "TD", "AS", "JS"],
        ),
        "pagat_auto",
        "TS",
    ),
    (
        "an ace is worth a trump",
        changed(
            QUIET,
            leader=1,
            lead="AS",
            hands=[["QH", "KD", "JC", "QC", "QD"], ["KC", "KS", "JD", "QS"]],
            talon=["TS", "AH", "AC", "TC", "TH", "AD", "TD", "JS", "KH"],
        ),
        "pagat_auto",
        "QH",
    ),
    (
        "a jack is not",
        changed(
            QUIET,
            leader=1,
            lead="JS",
            hands=[["TH", "QH", "KD", "JC", "QC"], ["KC", "KS", "JD", "QS"]],
            talon=["TS", "AH", "AC", "TC", "QD", "AD", "TD", "AS", "KH"],
        ),
        "pagat_auto",
        "JC",
    ),
    (
        "a twenty that makes 66 is declared, whatever else there is",
        changed(
            MIDGAME,
            hands=[["KS", "QS", "AH", "JC", "QD"], ["KC", "TS", "JD", "QH", "KH"]],
            talon=["TC", "QC", "AC", "JS", "AD"],
            tricks=[2, 0],
            won=[["AS", "TH", "TD", "KD"], []],
            card_points=[35, 0],
            marriages=[["D"], []],
        ),
        "pagat_auto",
        "declare-S",
    ),
    (
        "a reply that makes 66 wins the trick, with a trump if need be",
        changed(
            MIDGAME,
            leader=1,
            lead="TS",
            hands=[["KS", "QS", "AH", "JC", "QD"], ["KC", "JD", "QH", "KH"]],
            talon=["TC", "QC", "AC", "JS", "AD"],
            tricks=[2, 0],
            won=[["AS", "TH", "TD", "KD"], []],
            card_points=[35, 0],
            marriages=[["D"], []],
        ),
        "pagat_auto",
        "AH",
    ),
    (
        "the other player is kept from 66 at any price",
        changed(
            MIDGAME,
            leader=1,
            lead="TS",
            hands=[["KS", "QC", "AH", "JC", "KC"], ["QS", "JD", "QD", "KH"]],
            talon=["TC", "QH", "AC", "JS", "AD"],
            tricks=[0, 2],
            won=[[], ["AS", "TH", "TD", "KD"]],
            card_points=[0, 35],
            marriages=[[], ["D"]],
        ),
        "pagat_auto",
        "AH",
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
        "66 is claimed in reply where that is allowed",
        changed(
            EXHAUSTED,
            leader=1,
            lead="QH",
            hands=[["JC", "JD", "QC", "QD", "QS"], ["JS", "KC", "KD", "KS"]],
            card_points=[84, 6],
            tricks=[4, 1],
            won=[["AS", "TS", "AC", "TC", "AD", "AH", "TD", "TH"], ["KH", "JH"]],
        ),
        "austrian",
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


def test_numbers_that_no_environment_shows_are_refused_by_entry() -> None:
    player = HeuristicOpponent()
    record = engine.new_record(1)
    engine.deal(record)
    observation, mask = observe(record, RULES["duel"].codes(), int(record[r.TO_MOVE]))
    for number in (np.nan, np.inf, -0.5, 1.5):
        spoilt = observation.copy()
        spoilt[3] = number
        with pytest.raises(ValueError, match=r"heuristic .* observations\[0, 3\] \(hand\) = "):
            player.act(spoilt, mask)
        with pytest.raises(ValueError, match=r"heuristic .* observations\[1, 3\] \(hand\) = "):
            player.act_batch(np.stack([observation, spoilt]), np.stack([mask, mask]))
    spoilt_mask = mask.copy()
    spoilt_mask[5] = -1
    with pytest.raises(ValueError, match=r"action_masks\[0, 5\] = -1"):
        player.act(observation, spoilt_mask)
    whole: Any = observation.astype(np.uint8)
    with pytest.raises(TypeError, match="dtype float32, not uint8"):
        player.act(whole, mask)
    floats: Any = mask.astype(np.float32)
    with pytest.raises(TypeError, match="action masks of dtype int8, not float32"):
        player.act(observation, floats)
    wrong: Any
    for wrong in (observation[:-1], np.stack([observation]), np.float32(0)):
        with pytest.raises(ValueError, match="heuristic player takes observations of shape"):
            player.act(wrong, mask)


def test_the_random_player_takes_masks_of_0_and_1_only() -> None:
    player = RandomOpponent(1)
    observation = np.zeros(BASE_SIZE, np.float32)
    for entry in (-1, 2, 256):
        mask: Any = np.ones(27, np.int64)
        mask[4] = entry
        with pytest.raises(ValueError, match=rf"random .*\[0, 4\] = {entry}, .* 0 nor"):
            player.act(observation, mask)
        both: Any = np.stack([np.ones(27, np.int64), mask])
        with pytest.raises(ValueError, match=rf"random .*\[1, 4\] = {entry}, .* 0 nor"):
            player.act_batch(np.stack([observation] * 2), both)
    halves: Any = np.full(27, 0.5)
    with pytest.raises(TypeError, match="action masks of dtype int8, not float64"):
        player.act(observation, halves)
    with pytest.raises(ValueError, match=r"random player takes masks of shape \[N, 27\]"):
        player.act(observation, np.ones(28, np.int8))


def test_floats_that_compiled_code_cannot_read_are_refused() -> None:
    short: Any = np.zeros(BASE_SIZE, np.float16)
    with pytest.raises(TypeError, match="dtype float32, not float16"):
        HeuristicOpponent().act(short, np.ones(27, np.int8))


def test_make_opponent_names_what_it_knows() -> None:
    with pytest.raises(ValueError, match="choose one of random, heuristic"):
        make_opponent("stockfish")
    with pytest.raises(TypeError, match="needs act"):
        make_opponent(cast("Any", 3))
    player = HeuristicOpponent()
    assert make_opponent(player) is player


@pytest.mark.parametrize("closing", [False, True], ids=["exhausted", "closed"])
def test_the_last_tricks_with_known_hands_are_played_exactly(closing: bool) -> None:
    """Every choice is one of the solver's best, where both know everything."""
    codes = RULES["pagat_auto"].codes()
    player = HeuristicOpponent()
    record = engine.new_record(77)
    checked = 0
    while checked < 300:
        engine.deal(record)
        while not engine.is_over(record):
            seat = int(record[r.TO_MOVE])
            seen = view(record, codes, seat, PERFECT)
            if other_hand_is_known(seen) and (record[r.TALON_STATE] == r.CLOSED) == closing:
                values = solve(engine.position_of(record), "pagat_auto").action_values
                chosen = player.act(*observe(record, codes, seat))
                assert values[chosen] == max(values.values()), str(engine.position_of(record))
                checked += 1
            engine.step(record, codes, engine.random_action(record, codes))


def wary_action(record: Any, legal: int, chance: RandomOpponent) -> int:
    """Random play that never closes, always exchanges and always declares."""
    if legal >> EXCHANGE & 1:
        return EXCHANGE
    declarations = legal & (0b1111 << FIRST_DECLARE)
    legal = declarations if declarations else legal & ~(1 << CLOSE)
    mask = np.array([legal >> action & 1 for action in range(NUM_ACTIONS)], dtype=np.int8)
    return chance.act(record, mask)


@pytest.mark.parametrize(
    ("rules", "wary", "least"),
    [
        ("pagat_auto", False, 1.7),
        ("duel", False, 1.6),
        ("french", False, 1.1),
        ("pagat_auto", True, 1.35),
    ],
)
def test_beats_random_play(rules: str, wary: bool, least: float) -> None:
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
                if to_move == seat:
                    action = heuristic.act(*observe(record, codes, to_move))
                elif wary:
                    action = wary_action(record, int(engine.legal(record, codes)), chance)
                else:
                    action = int(engine.random_action(record, codes))
                engine.step(record, codes, action)
            total += engine.game_points(record, seat)
    assert total / (2 * pairs) > least


@pytest.mark.parametrize("rules", RULES)
def test_decides_by_what_it_may_know(rules: str) -> None:
    """With less memory the view is poorer, and the player still finds a legal action."""
    codes = RULES[rules].codes()
    record = engine.new_record(4)
    for _ in range(30):
        engine.deal(record)
        while not engine.is_over(record):
            for memory in range(len(MEMORIES)):
                seen = view(record, codes, int(record[r.TO_MOVE]), memory)
                assert engine.legal(record, codes) >> heuristic_action(seen) & 1
            engine.step(record, codes, engine.random_action(record, codes))


def test_a_weight_of_nothing_switches_a_rule_off() -> None:
    record = engine.record_of(Position.from_dict(OPEN_DEAL), RULES["pagat_auto"])
    seen = view(record, RULES["pagat_auto"].codes(), 0, PERFECT)
    assert decide(seen, WEIGHTS) == EXCHANGE
    assert decide(seen, WEIGHTS._replace(exchange=0.0)) != EXCHANGE
