"""The luck of draws and of random actions: mean zero, and a narrower interval without it."""

from __future__ import annotations

import itertools
import json
import time
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import evaluate as command
from agents import AgentError, RandomOpponent
from agents.evaluation import Evaluation, evaluate, prepare
from agents.evaluation.arena import Plays, play
from agents.evaluation.report import evaluate_plays
from agents.evaluation.variance import (
    FOLDS,
    LUCK_NAMES,
    LuckWatcher,
    OwnLuckWatcher,
    face_down_cards,
    play_out,
    reduce_variance,
    value,
    without_luck,
)
from schnapsen_env import RULES, engine
from schnapsen_env.engine import record as r
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.view import PERFECT, view

CODES = RULES["pagat_auto"].codes()
DEALS = 600


class FirstLegal:
    """A player without chance that is not the heuristic one."""

    def act(self, observation: npt.NDArray[np.float32], action_mask: npt.NDArray[np.int8]) -> int:
        del observation
        return int(action_mask.argmax())


class NotAtRandom(RandomOpponent):
    """Inherits from the random player, and has a will of its own."""

    def act(self, observation: npt.NDArray[np.float32], action_mask: npt.NDArray[np.int8]) -> int:
        del observation
        return int(action_mask.argmax())

    def act_batch(
        self, observations: npt.NDArray[np.float32], action_masks: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int64]:
        del observations
        return action_masks.argmax(axis=1)


@cache
def watched(a: str, b: str, deals: int = DEALS) -> tuple[Plays, LuckWatcher]:
    contest = prepare(a, b, deals=deals, seed=11)
    watcher = LuckWatcher(contest, playouts=8)
    return play(contest, watchers=[watcher]), watcher


def before_the_last_chance(seed: int) -> tuple[npt.NDArray[np.int64], int] | None:
    """A record with three cards face down, and an action that completes the trick.

    None if the deal of this seed does not get that far.
    """
    record = engine.new_record(seed)
    engine.deal(record)
    while not engine.is_over(record):
        action = int(heuristic_action(view(record, CODES, int(record[r.TO_MOVE]), PERFECT)))
        after = record.copy()
        engine.step(after, CODES, action)
        if record[r.FACE_DOWN] == 3 and after[r.FACE_DOWN] == 1:
            return record, action
        record = after
    return None


# ------------------------------------------------------------------------------- the value of luck


def test_the_value_before_a_draw_is_the_mean_over_all_orders_of_the_talon() -> None:
    tried = 0
    for seed in range(40):
        found = before_the_last_chance(seed)
        if found is None:
            continue
        record, action = found
        results: list[int] = []
        cards = [card for card in range(20) if int(face_down_cards(record)) >> card & 1]
        assert len(cards) == 3
        for order in itertools.permutations(cards):
            work = record.copy()
            for place, card in enumerate(order):
                shift = r.CARD_BITS * (1 + 6 + place)
                work[r.DECK + 1] &= ~(r.CARD_WORD << shift)
                work[r.DECK + 1] |= card << shift
            engine.step(work, CODES, action)
            results.append(int(play_out(work, CODES, 0, False, False)))
        work = record.copy()
        number = 4000
        mean = value(record, CODES, action, 0, False, False, number, seed + 1, work)
        error = float(np.std(results)) / np.sqrt(number)
        assert abs(mean - np.mean(results)) <= 4.5 * error
        tried += error > 0
    assert tried >= 5


def test_a_value_leaves_the_record_alone_and_is_exact_without_chance() -> None:
    record = engine.new_record(3)
    engine.deal(record)
    while not engine.is_over(record):
        if record[r.FACE_DOWN] <= 1:
            before = record.copy()
            seat = int(record[r.TO_MOVE])
            result = int(play_out(record.copy(), CODES, seat, False, False))
            assert value(record, CODES, -1, seat, False, False, 3, 5, record.copy()) == result
            assert (record == before).all()
        action = int(heuristic_action(view(record, CODES, int(record[r.TO_MOVE]), PERFECT)))
        engine.step(record, CODES, action)
    expected = engine.game_points(record, 1)
    assert value(record, CODES, -1, 1, True, True, 3, 5, record.copy()) == expected


@pytest.mark.parametrize(("a", "b"), [("heuristic", "random"), ("random", "random")])
def test_luck_has_mean_zero(a: str, b: str) -> None:
    _, watcher = watched(a, b)
    spread = watcher.lucks.std(axis=0, ddof=1)
    assert (spread > 0.05).all()
    # Ten such means: beyond 4 standard errors once in 1,600 seeds; this seed is fixed.
    assert (np.abs(watcher.lucks.mean(axis=0)) < 4 * spread / np.sqrt(DEALS)).all()


def test_the_agents_own_playouts_tell_more() -> None:
    """Between two players of which the heuristic player sits in badly for one."""
    contest = prepare("heuristic", FirstLegal(), deals=300, seed=4)
    shares: list[float] = []
    for watcher in (LuckWatcher(contest, playouts=16), OwnLuckWatcher(contest, playouts=16)):
        plain = evaluate_plays(play(contest, watchers=[watcher]))
        watcher.finish()
        spread = watcher.lucks.std(axis=0, ddof=1)
        assert (np.abs(watcher.lucks.mean(axis=0)) <= 4 * spread / np.sqrt(300)).all()
        reduction = reduce_variance(plain.pair_points, watcher)
        shares.append(reduction.share_of_ci95)
        error = (plain.pair_points - reduction.pair_points).std() / np.sqrt(300)
        assert abs(plain.game_points.value - reduction.game_points.value) < 4 * error
    assert shares[1] < shares[0] - 0.05


def test_own_playouts_are_part_of_the_work_that_is_shown_and_timed() -> None:
    steps: list[int] = []
    half: list[float] = []

    def progress(number: int) -> None:
        steps.append(number)
        if sum(steps) >= 200 and not half:
            half.append(time.perf_counter())

    evaluation = evaluate(
        "random",
        "random",
        deals=200,
        variance_reduction=True,
        own_playouts=True,
        progress=progress,
    )
    rest = time.perf_counter() - half[0]
    assert sum(steps) == 400
    assert all(type(step) is int for step in steps)
    assert len(steps) > 20
    assert evaluation.seconds > 0.5 * rest
    with pytest.raises(ValueError, match="own_playouts belongs to variance_reduction"):
        evaluate("random", "random", deals=200, own_playouts=True)


def test_an_error_in_reset_before_the_own_playouts_says_whose_it_is() -> None:
    class Worn(RandomOpponent):
        def reset(self, seed: int | None = None) -> None:  # noqa: ARG002 - as every agent's
            raise RuntimeError("worn out")

    watcher = OwnLuckWatcher(prepare("random", Worn(), deals=100), playouts=1)
    with pytest.raises(AgentError, match=r"agent B \(Worn\) has failed in reset .*worn out"):
        watcher.finish()


def test_own_playouts_of_a_random_player() -> None:
    contest = prepare("heuristic", "random", deals=200, seed=6)
    watcher = OwnLuckWatcher(contest, playouts=8)
    plain = evaluate_plays(play(contest, watchers=[watcher]))
    watcher.finish()
    spread = watcher.lucks.std(axis=0, ddof=1)
    assert (spread > 0.05).all()
    assert (np.abs(watcher.lucks.mean(axis=0)) < 4 * spread / np.sqrt(200)).all()
    # The quick playouts play exactly as these two do, so they must come to about the same.
    quick = LuckWatcher(contest, playouts=8)
    play(contest, watchers=[quick])
    own_share, quick_share = (
        reduce_variance(plain.pair_points, each).share_of_ci95 for each in (watcher, quick)
    )
    assert own_share == pytest.approx(quick_share, abs=0.1)
    assert own_share < 0.9
    assert plain.game_points == evaluate("heuristic", "random", deals=200, seed=6).game_points


def test_two_equal_players_without_chance_have_no_luck_in_a_pair() -> None:
    plays, watcher = watched("heuristic", "heuristic", 200)
    assert (watcher.lucks == 0).all()
    reduction = reduce_variance(evaluate_plays(plays).pair_points, watcher)
    assert reduction.game_points.value == 0
    assert reduction.share_of_ci95 == 1


def test_a_longer_run_begins_with_the_luck_of_the_shorter() -> None:
    lucks: list[npt.NDArray[np.float64]] = []
    for deals, at_once in ((100, 30), (150, 150)):
        watcher = LuckWatcher(prepare("heuristic", FirstLegal(), deals=deals, seed=2), playouts=4)
        play(watcher.contest, watchers=[watcher], pairs_at_once=at_once)
        lucks.append(watcher.lucks)
    assert lucks[0].any()
    assert (lucks[0] == lucks[1][:100]).all()


# ----------------------------------------------------------------------------------- the estimate


def test_the_estimate_agrees_with_the_plain_one_and_is_sharper() -> None:
    plays, watcher = watched("heuristic", "random")
    plain = evaluate_plays(plays)
    reduction = reduce_variance(plain.pair_points, watcher)
    difference = plain.pair_points - reduction.pair_points
    error = difference.std(ddof=1) / np.sqrt(DEALS)
    assert abs(difference.mean()) < 4 * error
    assert reduction.game_points.value == pytest.approx(reduction.pair_points.mean())
    assert reduction.share_of_ci95 < 0.75
    assert reduction.share_of_ci95 == pytest.approx(
        reduction.game_points.ci95 / plain.game_points.ci95
    )


def test_the_estimate_is_unbiased_where_the_truth_is_known() -> None:
    """400 small studies whose luck is correlated with a result of mean 1."""
    rng = np.random.default_rng(0)
    estimates: list[float] = []
    for _ in range(400):
        lucks = rng.normal(size=(100, len(LUCK_NAMES)))
        skewed = rng.exponential(size=100) - 1
        # A square of the luck is what makes coefficients from the same pairs biased.
        points = 1 + lucks @ [1, 0.5, 0, 0, -1] + 0.7 * (lucks[:, 0] ** 2 - 1) + skewed
        estimates.append(float(without_luck(points, lucks)[0].mean()))
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - 1) < 4 * error
    assert error < 0.75 * np.sqrt((2.25 + 2 * 0.49 + 1) / 100 / 400)


def test_no_pair_decides_on_its_own_coefficients() -> None:
    rng = np.random.default_rng(1)
    lucks, points = rng.normal(size=(100, 5)), rng.normal(size=100)
    cleaned, coefficients = without_luck(points, lucks)
    changed = points.copy()
    changed[::FOLDS] += 5  # the pairs of fold 0
    again, changed_coefficients = without_luck(changed, lucks)
    assert (changed_coefficients[0] == coefficients[0]).all()
    assert not np.allclose(changed_coefficients[1], coefficients[1])
    assert again[::FOLDS] == pytest.approx(cleaned[::FOLDS] + 5)


def test_it_changes_nothing_else() -> None:
    def comparable(evaluation: Evaluation) -> dict[str, object]:
        figures = evaluation.to_dict()
        for key in ("seconds", "decisions_per_second", "variance_reduction"):
            del figures[key]
        return figures

    plain = evaluate("heuristic", "random", deals=100, seed=3)
    reduced = evaluate("heuristic", "random", deals=100, seed=3, variance_reduction=True)
    assert comparable(plain) == comparable(reduced)
    assert plain.reduction is None
    assert plain.best_game_points == plain.game_points
    assert reduced.reduction is not None
    assert reduced.best_game_points == reduced.reduction.game_points


def test_table_and_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    line = f"heuristic random --deals 100 --variance-reduction --json {path}"
    assert command.main(line.split()) == 0
    figures = json.loads(path.read_text(encoding="utf-8"))
    reduction = figures["variance_reduction"]
    assert set(reduction["lucks"]) == set(reduction["coefficients"]) == set(LUCK_NAMES)
    assert reduction["ci95"] == pytest.approx(reduction["share_of_ci95"] * figures["ci95"])
    assert f"{reduction['mean_game_points']:+.3f}" in capsys.readouterr().out


def test_only_the_random_player_itself_acts_by_chance() -> None:
    """Of a subclass nobody knows how it chooses: its actions are no luck."""
    contest = prepare("heuristic", NotAtRandom(), deals=100, seed=3)
    watcher = LuckWatcher(contest, playouts=2)
    play(contest, watchers=[watcher])
    assert np.all(watcher.lucks[:, LUCK_NAMES.index("actions")] == 0)
    assert np.any(watcher.lucks != 0)
    by_chance = LuckWatcher(prepare("heuristic", RandomOpponent(), deals=100, seed=3), playouts=2)
    assert by_chance.chance == (False, True)


def test_too_many_deals_for_own_playouts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    line = "random heuristic --deals 50001 --variance-reduction --own-playouts"
    assert command.main(line.split()) == command.WRONG_COMMAND
    assert "too many for own playouts: play 50,000 or fewer" in capsys.readouterr().err
