"""The solver against a plain minimax, published endgames, and its own contract."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from schnapsen_env import RULES, engine
from schnapsen_env.actions import NUM_ACTIONS, parse_action
from schnapsen_env.engine import record as r
from schnapsen_env.engine.match import game_points
from schnapsen_env.engine.play import legal, step
from schnapsen_env.position import Position
from schnapsen_env.solver import (
    new_workspace,
    solve,
    solve_actions,
    solve_exhausted,
    solve_record,
)
from schnapsen_env.vector import SchnapsenVectorEnv
from tests.random_play import running

ENDGAMES = json.loads((Path(__file__).parent / "golden" / "endgames.json").read_text())


@numba.njit
def minimax(path: Any, codes: Any, ply: int) -> int:
    """The value for the player to move by trying everything: no window, no table, no order."""
    record = path[ply]
    seat = record[r.TO_MOVE]
    if record[r.END_REASON] != 0:
        return game_points(record, seat)
    best = -4
    actions = legal(record, codes)
    for action in range(NUM_ACTIONS):
        if actions >> action & 1:
            child = path[ply + 1]
            child[:] = record
            step(child, codes, action)
            value = minimax(path, codes, ply + 1)
            best = max(best, value if child[r.TO_MOVE] == seat else -value)
    return best


def late_positions(rules: Any, seed: int, number: int, most_cards: int) -> list[Any]:
    """Running positions of random deals with at most ``most_cards`` cards still to be played."""
    codes = rules.codes()
    record = engine.new_record(seed)
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    while len(found) < number:
        engine.deal(record)
        while not engine.is_over(record):
            cards = int(record[r.HAND] | record[r.HAND + 1]).bit_count()
            drawable = 0 if record[r.TALON_STATE] != r.OPEN else int(record[r.FACE_DOWN]) + 1
            if cards + drawable <= most_cards and rng.random() < 0.5:
                found.append(record.copy())
            # Claims and closings are rare here, so that deals reach their last tricks.
            action = engine.random_action(record, codes)
            if action >= 25 and rng.random() < 0.9:
                continue
            engine.step(record, codes, action)
    return found[:number]


@pytest.mark.parametrize("name", RULES)
def test_equals_plain_minimax(name: str) -> None:
    codes = RULES[name].codes()
    path = np.zeros((engine.MAX_ACTIONS_PER_DEAL + 1, engine.RECORD_SIZE), dtype=np.int64)
    space = new_workspace(table_bits=8)  # small, so that entries are overwritten all the time
    reached: set[int] = set()
    for most_cards, number in ((6, 600), (8, 200), (10, 20)):
        for record in late_positions(RULES[name], 10 * most_cards, number, most_cards):
            path[0] = record
            expected = minimax(path, codes, 0)
            assert solve_record(record, codes, space) == expected, engine.position_of(record)
            reached.add(expected)
    assert len(reached) >= 4  # the positions are not all alike


@numba.njit
def alpha_beta(path: Any, codes: Any, ply: int, alpha: int, beta: int) -> int:
    """The value for the player to move by a window alone: no table, no bounds, no good order."""
    record = path[ply]
    seat = record[r.TO_MOVE]
    if record[r.END_REASON] != 0:
        return game_points(record, seat)
    best = -4
    actions = legal(record, codes)
    for action in range(NUM_ACTIONS - 1, -1, -1):
        if actions >> action & 1 and best < beta:
            child = path[ply + 1]
            child[:] = record
            step(child, codes, action)
            if child[r.TO_MOVE] == seat:
                best = max(best, alpha_beta(path, codes, ply + 1, max(alpha, best), beta))
            else:
                best = max(best, -alpha_beta(path, codes, ply + 1, -beta, -max(alpha, best)))
    return best


def open_positions(rules: Any, seed: int, number: int, face_down: int) -> list[Any]:
    """Positions of random deals with so many cards face down in an open talon."""
    found = (
        record.copy()
        for record in running(rules, 40 * number, seed)
        if record[r.TALON_STATE] == r.OPEN and record[r.FACE_DOWN] == face_down
    )
    return list(itertools.islice(found, number))


@pytest.mark.parametrize("name", RULES)
def test_equals_alpha_beta_while_the_talon_is_open(name: str) -> None:
    """With draws, exchanges and closing still to come; a minimax would take too long here."""
    codes = RULES[name].codes()
    path = np.zeros((engine.MAX_ACTIONS_PER_DEAL + 1, engine.RECORD_SIZE), dtype=np.int64)
    space = new_workspace(table_bits=8)
    positions = open_positions(RULES[name], 3, 40, face_down=1)
    assert len(positions) == 40
    reached: set[int] = set()
    for record in positions:
        path[0] = record
        expected = alpha_beta(path, codes, 0, -3, 3)
        assert solve_record(record, codes, space) == expected, engine.position_of(record)
        reached.add(expected)
    assert len(reached) >= 4


def test_equals_plain_minimax_under_odd_rules() -> None:
    """Combinations that no named set has: each changes what bounds and table must know."""
    base = RULES["pagat"]
    odd = (
        replace(base, close_failure="by_points"),
        replace(base, schneider_by="card_points", claims="turn"),
        replace(base, exhausted="claim_or_draw", last_trick_bonus=10),
        replace(base, trick_by="value", claims="automatic", must_beat=False),
    )
    path = np.zeros((engine.MAX_ACTIONS_PER_DEAL + 1, engine.RECORD_SIZE), dtype=np.int64)
    space = new_workspace(table_bits=10)
    for rules in odd:
        for record in late_positions(rules, 5, 200, 8):
            path[0] = record
            expected = minimax(path, rules.codes(), 0)
            assert solve_record(record, rules.codes(), space) == expected, (
                rules,
                engine.position_of(record),
            )


@pytest.mark.parametrize("endgame", ENDGAMES, ids=lambda endgame: endgame["id"])
def test_published_endgame(endgame: dict[str, Any]) -> None:
    solution = solve(endgame["position"], endgame["rules"])
    expected = {
        parse_action(text): points
        for text, points in endgame["game_points_for_the_player_to_act"].items()
    }
    assert {action: solution.action_values[action] for action in expected} == expected
    assert solution.value == max(solution.action_values.values())


@pytest.mark.parametrize("name", RULES)
def test_whole_deals_agree_with_their_actions(name: str) -> None:
    """Value == max(action_values), and playing the best action keeps the value, to the end."""
    codes = RULES[name].codes()
    record = engine.new_record(3)
    space = new_workspace()
    for _ in range(3):
        engine.deal(record)
        value, seat = solve_record(record, codes, space), int(record[r.TO_MOVE])
        while not engine.is_over(record):
            values = np.full(NUM_ACTIONS, -9)
            solve_actions(record, codes, space, values)
            assert {a for a in range(NUM_ACTIONS) if values[a] != -9} == {
                a for a in range(NUM_ACTIONS) if engine.legal(record, codes) >> a & 1
            }
            signed = value if record[r.TO_MOVE] == seat else -value
            assert values.max() == signed
            engine.step(record, codes, int(values.argmax()))
        assert engine.game_points(record, seat) == value


def test_table_size_does_not_change_the_value() -> None:
    codes = RULES["pagat_auto"].codes()
    record = engine.new_record(8)
    spaces = [new_workspace(table_bits=bits) for bits in (4, 12, 18)]
    for _ in range(5):
        engine.deal(record)
        assert len({solve_record(record, codes, space) for space in spaces}) == 1


def test_record_is_left_alone_and_threads_do_not_meet() -> None:
    codes = RULES["duel"].codes()
    positions: list[Position] = []
    record = engine.new_record(4)
    for _ in range(8):
        engine.deal(record)
        positions.append(engine.position_of(record))
    before = record.copy()
    solve_record(record, codes, new_workspace())
    assert np.array_equal(before, record)
    one_by_one = [solve(position, "duel") for position in positions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(solve, positions)) == one_by_one


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown rule set 'skat'"):
        solve(ENDGAMES[0]["position"], "skat")
    hands = [["KS", "AH", "QH", "QC", "JC"], ["KS", "JH", "AD", "QD", "JD"]]
    with pytest.raises(ValueError, match="is in the hand of seat 0 and in the hand of seat 1"):
        solve(ENDGAMES[0]["position"] | {"hands": hands}, "pagat_auto")
    with pytest.raises(ValueError, match="table_bits"):
        new_workspace(table_bits=40)
    record = engine.new_record(1)
    engine.deal(record)
    while not engine.is_over(record):
        engine.step(
            record, RULES["duel"].codes(), engine.random_action(record, RULES["duel"].codes())
        )
    with pytest.raises(ValueError, match="deal is over"):
        solve(Position.from_text(str(engine.position_of(record))), "duel")


def test_exhausted_deals_of_a_batch_are_solved() -> None:
    env = SchnapsenVectorEnv(256, rules="pagat_auto")
    env.reset(seed=4)
    codes, space = env.rules.codes(), new_workspace(10)
    solved_deals = 0
    for _ in range(25):
        values, solved = np.full(256, 9.0, dtype=np.float32), np.zeros(256, dtype=np.bool_)
        before = env.records.copy()
        solve_exhausted(env.records, codes, space, values, solved)
        assert (env.records == before).all()
        exhausted = env.records[:, r.TALON_STATE] == r.EXHAUSTED
        assert (solved == exhausted).all()
        assert (values[~solved] == 9.0).all()
        for row in np.flatnonzero(solved)[:4]:
            assert values[row] == solve(engine.position_of(env.records[row]), "pagat_auto").value
            solved_deals += 1
        env.step(env.sample_actions())
    assert solved_deals > 20


def test_a_position_may_be_given_as_its_text_and_nothing_else() -> None:
    record = late_positions(RULES["duel"], 1, 1, 6)[0]
    position = engine.position_of(record)
    assert solve(str(position), "duel") == solve(position, "duel")
    wrong: Any
    for wrong in (None, 5, [1]):
        with pytest.raises(TypeError, match="a Position, its dict or its text, not"):
            solve(wrong, "duel")
    with pytest.raises(ValueError, match="'text' is not key=value"):
        solve("text", "duel")
