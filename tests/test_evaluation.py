"""The arena, its figures, and the command line around them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaluate as command
from agents import AgentError
from agents.evaluation import Deals, evaluate, evaluate_plays, play, prepare
from agents.evaluation.arena import pair_seeds
from agents.evaluation.report import write_json
from agents.evaluation.statistics import (
    mean_interval,
    rate_interval,
    ratio_interval,
    signed,
    unseen_share,
    wilson_interval,
)
from agents.files import check_writable
from schnapsen_env import RULES, Rules, engine
from schnapsen_env.actions import CLOSE, EXCHANGE, FIRST_DECLARE
from schnapsen_env.observation import DEFAULT_LAYOUT, FIELDS, observe
from schnapsen_env.position import EndReason, Position

ROOT = Path(__file__).resolve().parent.parent
Observations = npt.NDArray[np.float32]
Masks = npt.NDArray[np.int8]
Actions = npt.NDArray[np.int64]
Reply = Callable[[Observations, Masks], Any]


class Mixed:
    """No chance, no memory, and yet all kinds of actions: a weighing of what it sees decides."""

    def __init__(self, seed: int = 0) -> None:
        self.weights = np.random.default_rng(seed).normal(size=(DEFAULT_LAYOUT.size, 27))

    def act(self, observation: Observations, action_mask: Masks) -> int:
        return int(self.act_batch(observation[None], action_mask[None])[0])

    def act_batch(self, observations: Observations, action_masks: Masks) -> Actions:
        # Rounded, so that the answer for a row cannot depend on how a matrix product is blocked.
        liking = np.round(observations.astype(np.float64) @ self.weights, 6)
        return np.where(action_masks == 1, liking, -np.inf).argmax(axis=1)


class Spy(Mixed):
    """Notes everything that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: Counter[bytes] = Counter()

    def act_batch(self, observations: Observations, action_masks: Masks) -> Actions:
        self.shown.update(row.tobytes() for row in observations)
        return super().act_batch(observations, action_masks)


class Answer:
    """Gives whatever a function makes of the observations and masks."""

    def __init__(self, answer: Reply) -> None:
        self.answer = answer

    def act(self, observation: Observations, action_mask: Masks) -> int:
        raise NotImplementedError

    def act_batch(self, observations: Observations, action_masks: Masks) -> Any:
        return self.answer(observations, action_masks)


def rows(deals: Deals) -> list[tuple[int, ...]]:
    """The deals as sorted tuples."""
    columns = (getattr(deals, field.name).tolist() for field in fields(Deals))
    return sorted(zip(*columns, strict=True))


# ---------------------------------------------------------------------------------- statistics


def test_mean_interval_by_hand() -> None:
    # Squares of -1.5, -0.5, 0.5, 1.5 sum to 5; s = sqrt(5 / 3); 1.96 s / 2.
    value, half = mean_interval([1, 2, 3, 4])
    assert value == 2.5
    assert half == pytest.approx(1.265175, abs=1e-6)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.25, 3, "+0.250"), (-0.0004, 3, "+0.000"), (-0.0006, 3, "-0.001"), (-0.0, 2, "+0.00")],
)
def test_what_is_rounded_to_nothing_has_no_minus_sign(value: float, digits: int, text: str) -> None:
    assert signed(value, digits) == text


def test_ratio_interval_by_hand() -> None:
    # 12 / 6 = 2; residuals 0, -1, 1 over a mean of 2 are 0, -0.5, 0.5; s = 0.5; 1.96 s / sqrt(3).
    value, half = ratio_interval([2, 3, 7], [1, 2, 3])
    assert value == 2
    assert half == pytest.approx(0.565803, abs=1e-6)


def test_ratio_interval_over_equal_denominators_is_the_mean_interval() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert ratio_interval(values, np.full(50, 2)) == pytest.approx(mean_interval(values / 2))


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Method 3 in table I of Newcombe, "Two-sided confidence intervals for the single proportion",
    # Statistics in Medicine 17 (1998).
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_as_published(successes: int, trials: int, low: float, high: float) -> None:
    rate = wilson_interval(successes / trials, trials)
    assert (rate.low, rate.high) == pytest.approx((low, high), abs=6e-5)


def test_rate_interval_with_the_effective_number_of_trials_by_hand() -> None:
    # Pairs win 2, 1, 1, 0 of 2: share 0.5; residuals 0.5, 0, 0, -0.5; s^2 = 0.5 / 3; the squared
    # error s^2 / 4 = 1 / 24 makes 0.25 * 24 = 6 effective trials of the 8.
    rate = rate_interval([2, 1, 1, 0], [2, 2, 2, 2], paired=True)
    assert rate == pytest.approx(wilson_interval(0.5, 6))
    assert rate_interval([2, 1, 1, 0], [2, 2, 2, 2]) == pytest.approx(wilson_interval(0.5, 6))


def test_rate_interval_at_its_ends() -> None:
    assert rate_interval([0, 0], [0, 0]) is None
    everything = rate_interval([2, 2, 2], [2, 2, 2], paired=True)
    assert everything == wilson_interval(1.0, 6)
    assert everything is not None
    assert everything.low < 0.7
    # Each pair is split evenly: an accident if they are not paired. If they are, others may win or
    # lose both plays, as many as can be there when none of 30 does.
    assert rate_interval(np.ones(30), np.full(30, 2), paired=True) == pytest.approx(
        (0.5, 0.5 * (1 - unseen_share(30)), 0.5 * (1 + unseen_share(30))), abs=1e-3
    )
    # A few pairs that balance by chance say little.
    few = rate_interval(np.ones(29), np.full(29, 2), paired=True)
    assert few == wilson_interval(0.5, 58)
    assert rate_interval([1, 1, 1], [2, 2, 2]) == wilson_interval(0.5, 6)


def test_what_none_of_n_trials_had_may_still_be_there() -> None:
    # Wilson's upper end for 0 of n: z^2 / (n + z^2), with z = 1.96.
    assert unseen_share(96.1584) == pytest.approx(3.8416 / 100)
    # All alike: the share that may differ, as far as from 1 to -3.
    assert mean_interval(np.ones(50), 3) == pytest.approx((1.0, 4 * unseen_share(50)))
    assert ratio_interval(np.full(50, 2), np.full(50, 2), 3) == pytest.approx(
        (1.0, 4 * unseen_share(50))
    )
    # One of 50 differs by 1, and another might by 4: s^2 = 0.02, and d^2 = (1 + 16) / 2.
    error = (0.02 / 50 + 3.8416 * 8.5 / 53.8416**2) ** 0.5
    assert mean_interval([1.0] * 49 + [2.0], 3) == pytest.approx((1.02, 1.96 * error))
    # If nothing is said of what is possible, the spread alone counts.
    assert mean_interval(np.ones(50)).ci95 == 0.0
    assert mean_interval([1.0] * 49 + [2.0]).ci95 == pytest.approx(1.96 * 0.02)
    # Where pairs differ as a rule, the allowance is next to nothing.
    spread = np.random.default_rng(0).choice([-3.0, -1.0, 1.0, 2.0], size=5000)
    assert mean_interval(spread, 3).ci95 == pytest.approx(mean_interval(spread).ci95, rel=1e-3)


def test_pairs_that_all_balance_are_no_certainty() -> None:
    """Two different players: in 5,000 pairs some come out uneven, in these 30 none does."""
    few = evaluate("heuristic:endgame=exact", "heuristic", rules="duel", deals=30, seed=1)
    many = evaluate("heuristic:endgame=exact", "heuristic", rules="duel", deals=5_000, seed=6)
    assert few.game_points.value == 0.0
    assert many.game_points.value - many.game_points.ci95 > 0.0
    assert few.game_points.ci95 > many.game_points.value
    assert few.win_rate.low < many.win_rate.value < few.win_rate.high


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_interval([1.0]),
        lambda: mean_interval([[1.0, 2.0]]),
        lambda: ratio_interval([1, 2], [1, 2, 3]),
        lambda: ratio_interval([1, 2], [0, 0]),
        lambda: wilson_interval(1.1, 5),
        lambda: wilson_interval(0.5, 0),
    ],
)
def test_statistics_refuse_what_has_no_interval(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"interval|shapes|denominators"):
        call()


def coverage(inside: Callable[[np.random.Generator], bool]) -> float:
    random = np.random.default_rng(20)
    return float(np.mean([inside(random) for _ in range(2000)]))


def test_intervals_cover_the_truth_in_95_of_100_cases() -> None:
    def mean(random: np.random.Generator) -> bool:
        value, half = mean_interval(random.choice([-3, -1, 1, 3], p=[0.1, 0.3, 0.2, 0.4], size=150))
        return abs(value - 0.8) <= half

    def ratio(random: np.random.Generator) -> bool:
        lengths = random.integers(4, 13, size=150)
        value, half = ratio_interval(lengths * 0.3 + random.normal(size=150), lengths)
        return abs(value - 0.3) <= half

    def paired_rate(random: np.random.Generator) -> bool:
        # Two plays of a pair that balance each other; 0.55 of all are won.
        wins = random.choice([0, 1, 2], p=[0.1, 0.7, 0.2], size=150)
        rate = rate_interval(wins, np.full(150, 2), paired=True)
        return rate is not None and rate.low <= 0.55 <= rate.high

    def rare_rate(random: np.random.Generator) -> bool:
        trials = random.binomial(2, 0.1, size=300)
        rate = rate_interval(random.binomial(trials, 0.9), trials)
        return rate is not None and rate.low <= 0.9 <= rate.high

    for figure in (mean, ratio, paired_rate, rare_rate):
        assert 0.935 <= coverage(figure) <= 0.975, figure.__name__


def test_intervals_cover_the_truth_with_few_pairs() -> None:
    for pairs in (5, 10, 30):

        def mean(random: np.random.Generator, pairs: int = pairs) -> bool:
            points = random.choice([-3, -1, 1, 3], p=[0.1, 0.3, 0.2, 0.4], size=pairs)
            value, half = mean_interval(points, 3)
            return abs(value - 0.8) <= half

        assert coverage(mean) >= 0.935, pairs


def test_a_rate_near_its_end_has_the_interval_of_its_plays() -> None:
    """Where plays do not balance, there is nothing to allow for that Wilson's interval does not."""
    for won in (0.99, 0.999):
        widths: list[float] = []

        def rate(random: np.random.Generator, won: float = won, widths: Any = widths) -> bool:
            found = rate_interval(random.binomial(2, won, size=1000), np.full(1000, 2), paired=True)
            assert found is not None
            widths.append(found.high - found.low)
            return found.low <= won <= found.high

        assert coverage(rate) >= 0.92, won
        expected = wilson_interval(won, 2000)
        assert np.mean(widths) < 1.3 * (expected.high - expected.low)
    # A single play that is not won does not make a lead ten times less certain.
    all_won = rate_interval(np.full(1000, 2), np.full(1000, 2), paired=True)
    one_drawn = rate_interval([1.5] + [2] * 999, np.full(1000, 2), paired=True)
    assert all_won is not None
    assert one_drawn is not None
    assert one_drawn.low == pytest.approx(all_won.low, abs=0.002)


def test_one_pair_that_differs_makes_no_jump() -> None:
    sizes = np.random.default_rng(0).integers(1, 9, size=1000)
    for denominators in (np.full(1000, 2), sizes, sizes * (sizes > 5)):
        lost = np.zeros(1000)
        none = ratio_interval(lost, denominators, 6).ci95
        lost[int(denominators.argmax())] = 1
        assert 0.5 * none < ratio_interval(lost, denominators, 6).ci95 < 1.1 * none
    even = np.full(1000, 1.0)
    none_won = rate_interval(even, np.full(1000, 2), paired=True)
    even[0] = 2.0
    one_won = rate_interval(even, np.full(1000, 2), paired=True)
    assert none_won is not None
    assert one_won is not None
    assert one_won.high - one_won.low == pytest.approx(none_won.high - none_won.low, rel=0.5)


@pytest.mark.parametrize("differing", [0.3, 1, 3, 10, 30])
@pytest.mark.parametrize("pairs", [50, 1000])
def test_intervals_cover_the_truth_where_few_pairs_differ(pairs: int, differing: float) -> None:
    """As where two agents hardly differ, and where an agent makes hardly a mistake."""
    share = differing / pairs

    def mean(random: np.random.Generator) -> bool:
        sizes = random.choice([-1, -0.5, 0.5, 1], p=[0.1, 0.2, 0.4, 0.3], size=pairs)
        value, half = mean_interval(sizes * (random.random(pairs) < share), 3)
        return abs(value - 0.3 * share) <= half

    def paired_rate(random: np.random.Generator) -> bool:
        both = random.choice([0, 2], p=[0.3, 0.7], size=pairs)
        wins = np.where(random.random(pairs) < share, both, 1)
        rate = rate_interval(wins, np.full(pairs, 2), paired=True)
        return rate is not None and rate.low <= 0.5 + 0.2 * share <= rate.high

    def regret(random: np.random.Generator) -> bool:
        lost = random.choice([1, 2], size=pairs) * (random.random(pairs) < share)
        value, half = ratio_interval(lost, np.full(pairs, 2), 6)
        return abs(value - 0.75 * share) <= half

    def regret_of_decisions(random: np.random.Generator) -> bool:
        decisions = random.integers(0, 9, size=pairs)
        lost = random.choice([1, 2], size=pairs) * (random.random(pairs) < share) * (decisions > 0)
        value, half = ratio_interval(lost, decisions, 6)
        return abs(value - 1.5 * share * (8 / 9) / 4) <= half

    for figure in (mean, paired_rate, regret, regret_of_decisions):
        assert coverage(figure) >= 0.935, figure.__name__


# --------------------------------------------------------------------------------------- arena


def replay(players: dict[int, Mixed], rules: Rules, seed: int) -> tuple[int, ...]:
    """One deal through the checked engine, step by step; the fields of Deals from game_points on.

    ``players`` by seat; seat 0 is taken for A.
    """
    codes = rules.codes()
    record = engine.new_record(seed)
    engine.deal(record)
    forehand = engine.position_of(record).leader
    closer, length, exchanges, marriages = -1, 0, [0, 0], [0, 0]
    while not engine.is_over(record):
        observed = [observe(record, codes, seat) for seat in (0, 1)]
        seat = 0 if observed[0][1].any() else 1
        action = players[seat].act(*observed[seat])
        length += 1
        closer = seat if action == CLOSE else closer
        exchanges[seat] += action == EXCHANGE
        marriages[seat] += FIRST_DECLARE <= action < EXCHANGE
        engine.apply(record, rules, action)
    result = engine.position_of(record).result
    assert result is not None
    points = int(engine.game_points(record, 0))
    return (points, int(result.end_reason), length, forehand, closer, *exchanges, *marriages)


@pytest.mark.parametrize("name", list(RULES))
def test_deals_are_what_the_checked_engine_plays_step_by_step(name: str) -> None:
    a, b = Mixed(1), Mixed(2)
    played = play(prepare(a, b, rules=name, deals=25, seed=4))
    found = {row[:2]: row[3:] for row in rows(played.deals)}
    assert len(found) == 50
    for pair, seed in enumerate(pair_seeds(4, 25).tolist()):
        assert found[pair, 0] == replay({0: a, 1: b}, RULES[name], seed)
        # Seat 0 is B in the second play; turn its result round.
        points, reason, length, forehand, closer, *others = replay({0: b, 1: a}, RULES[name], seed)
        closer = closer if closer == -1 else 1 - closer
        turned = [others[index] for index in (1, 0, 3, 2)]
        assert found[pair, 1] == (-points, reason, length, 1 - forehand, closer, *turned)


def test_the_player_of_these_tests_uses_every_kind_of_action() -> None:
    deals = play(prepare(Mixed(1), Mixed(2), deals=200)).deals
    assert set(deals.closer.tolist()) == {-1, 0, 1}
    for column in (deals.exchanges_a, deals.exchanges_b, deals.marriages_a, deals.marriages_b):
        assert column.any()


@pytest.mark.parametrize("episode", ["deal", "match"])
def test_both_agents_get_the_same_cards(episode: str) -> None:
    # Equal players without chance: if deck and forehand are the same in both plays, whatever one of
    # them was shown, the other was shown as well.
    one, two = Spy(), Spy()
    play(prepare(one, two, episode=episode, deals=40, seed=2))
    assert one.shown.total() > 400
    assert one.shown == two.shown


def test_the_two_matches_of_a_pair_are_dealt_alike_with_different_players_too() -> None:
    hand = next(field for field in FIELDS if field.name == "hand")
    face_down = next(field for field in FIELDS if field.name == "face_down")

    class Dealt(Mixed):
        """Notes the hands that it is dealt; never exchanges or closes."""

        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self.hands: set[bytes] = set()

        def act_batch(self, observations: Observations, action_masks: Masks) -> Actions:
            untouched = observations[:, face_down.offset + 5] == 1
            hands = observations[untouched, hand.offset : hand.offset + hand.size]
            self.hands |= {row.tobytes() for row in hands}
            return super().act_batch(observations, action_masks * (np.arange(27) < EXCHANGE))

    one, two = Dealt(1), Dealt(2)
    deals = play(prepare(one, two, episode="match", deals=30)).deals
    forehand = {row[:3]: row[6] ^ row[1] for row in rows(deals)}  # the seat, by play and number
    first = [key for key in forehand if key[1] == 0]
    both = [key for key in first if (key[0], 1, key[2]) in forehand]
    assert len(both) > 100
    assert all(forehand[key] == forehand[key[0], 1, key[2]] for key in both)
    # Each agent has held both hands of a deal that both matches had. Of a deal that only the longer
    # match had, each agent knows one hand, and the other agent the other one; hands may coincide.
    assert len(one.hands ^ two.hands) <= 2 * (len(forehand) - 2 * len(both))


@pytest.mark.parametrize("episode", ["deal", "match"])
def test_an_agent_without_chance_against_itself_comes_out_at_exactly_zero(episode: str) -> None:
    for agent in (Mixed(), "heuristic"):
        result = evaluate(agent, agent, episode=episode, deals=60)
        assert result.game_points.value == 0
        assert result.win_rate.value == 0.5
        assert result.habits[0] == result.habits[1]
        histogram = result.histogram
        assert all(histogram[points] == histogram[-points] for points in range(4))


@pytest.mark.parametrize("episode", ["deal", "match"])
def test_heuristic_beats_random_from_either_side(episode: str) -> None:
    better = evaluate("heuristic", "random", episode=episode, deals=200, seed=1)
    worse = evaluate("random", "heuristic", episode=episode, deals=200, seed=1)
    assert better.game_points.value - better.game_points.ci95 > 0.5
    assert worse.game_points.value + worse.game_points.ci95 < -0.5
    assert better.win_rate.low > 0.55
    assert worse.win_rate.high < 0.45


def test_deals_do_not_depend_on_how_many_run_at_once() -> None:
    contest = prepare(Mixed(1), Mixed(2), episode="match", deals=20)
    assert rows(play(contest, pairs_at_once=3).deals) == rows(play(contest).deals)


def test_the_seed_decides_everything_and_seeds_share_no_deals() -> None:
    first, again = (play(prepare("random", "random", deals=50, seed=7)) for _ in range(2))
    assert rows(first.deals) == rows(again.deals)
    assert set(pair_seeds(7, 5000).tolist()).isdisjoint(pair_seeds(8, 5000).tolist())
    assert pair_seeds(7, 10).tolist() == pair_seeds(7, 5000)[:10].tolist()
    contest = prepare("random", "random", deals=50, seed=7)
    assert rows(play(contest).deals) == rows(play(contest).deals)  # played again, reset again


def test_an_agent_cannot_change_the_game_through_its_arrays() -> None:
    honest = Mixed(1)

    def scribble(observations: Observations, action_masks: Masks) -> Actions:
        actions = honest.act_batch(observations, action_masks)
        observations[:] = 7
        action_masks[:] = 1
        return actions

    scribbled = play(prepare(Answer(scribble), Mixed(2), deals=30))
    assert rows(scribbled.deals) == rows(play(prepare(honest, Mixed(2), deals=30)).deals)


def test_matches_are_played_to_the_target() -> None:
    plays = play(prepare(Mixed(1), Mixed(2), rules="duel", episode="match", deals=30))
    score: dict[tuple[int, int], list[int]] = {}
    for pair, seat, _, points, *_ in rows(plays.deals):  # sorted, so in order of their number
        won = score.setdefault((pair, seat), [0, 0])
        assert max(won) < 7
        won[points < 0] += abs(points)
    assert len(score) == 60
    assert all(max(won) >= 7 for won in score.values())
    result = evaluate_plays(plays)
    assert result.win_rate.value == sum(won[0] >= 7 for won in score.values()) / 60
    points = [won[0] - won[1] for won in score.values()]
    assert result.game_points.value == pytest.approx(sum(points) / len(plays.deals.pair))


def test_figures_are_those_of_the_deals() -> None:
    plays = play(prepare(Mixed(1), Mixed(2), rules="last_trick_ten", deals=300, seed=3))
    plays.deals.game_points[::41] = 0  # drawn deals are too rare to come by themselves
    result = evaluate_plays(plays)
    assert result.histogram[0] == 15
    table = rows(plays.deals)
    points = [row[3] for row in table]
    assert result.deals == 300
    assert result.deals_played == 600 == sum(result.histogram.values())
    assert result.game_points.value == pytest.approx(sum(points) / 600)
    pairs = np.add.reduceat(points, np.arange(0, 600, 2)) / 2
    assert result.game_points == pytest.approx(mean_interval(pairs, 3))
    won = sum(1 if value > 0 else 0.5 if value == 0 else 0 for value in points)
    assert result.win_rate.value == pytest.approx(won / 600)
    assert result.histogram == {value: points.count(value) for value in range(-3, 4)}
    reasons = Counter(EndReason(row[4]).text for row in table)
    assert result.end_reasons == reasons
    assert result.mean_length == pytest.approx(np.mean([row[5] for row in table]))
    for side, habits in enumerate(result.habits):
        wins = {row[:2] for row in table if (row[3] < 0 if side else row[3] > 0)}
        closed = [row[:2] for row in table if row[7] == side]
        exchanged = [row[:2] for row in table if row[8 + side]]
        declared = [row[:2] for row in table if row[10 + side]]
        assert habits.closes.value == pytest.approx(len(closed) / 600)
        assert habits.exchanges.value == pytest.approx(len(exchanged) / 600)
        assert habits.marriages.value == pytest.approx(sum(row[10 + side] for row in table) / 600)
        for deals, rate in (
            (closed, habits.closes_won),
            (exchanged, habits.exchanges_won),
            (declared, habits.marriages_won),
        ):
            assert rate is not None
            assert rate.value == pytest.approx(sum(deal in wins for deal in deals) / len(deals))
    decisions = sum(speed.decisions for speed in result.speed)
    assert decisions == sum(row[5] for row in table)


def test_progress_counts_every_play_once() -> None:
    ended: list[int] = []
    play(prepare("random", "random", episode="match", deals=7), progress=ended.append)
    assert sum(ended) == 14


WRONG_ANSWERS: list[tuple[Reply, list[str]]] = [
    (lambda _, masks: (1 - masks).argmax(axis=1), ["chose the illegal action", "legal: "]),
    (lambda _, masks: np.full(len(masks), 27), ["illegal action 27;"]),
    (lambda _, masks: np.full(len(masks), -1), ["illegal action -1;"]),
    (lambda _, masks: masks.argmax(axis=1)[:-1], ["integers, one for each position"]),
    (lambda _, masks: masks.argmax(axis=1) * 1.0, ["float64"]),
    (lambda _, masks: int(masks[0].argmax()), ["shape ()"]),
]


@pytest.mark.parametrize(("answer", "words"), WRONG_ANSWERS)
def test_an_illegal_answer_names_the_agent_and_the_action(answer: Reply, words: list[str]) -> None:
    with pytest.raises(AgentError) as caught:
        evaluate(Mixed(), Answer(answer), deals=10)
    for word in ["agent B (Answer)", *words]:
        assert word in str(caught.value)


def test_an_illegal_action_comes_with_the_position() -> None:
    """The agent plays well until the talon is exhausted, and then a card that it does not hold."""
    state = next(field for field in FIELDS if field.name == "talon_state")

    def late(observations: Observations, action_masks: Masks) -> Actions:
        actions = Mixed().act_batch(observations, action_masks)
        strict = observations[:, state.offset + 2] == 1
        return np.where(strict, (1 - action_masks[:, :20]).argmax(axis=1), actions)

    with pytest.raises(AgentError, match="agent A") as caught:
        evaluate(Answer(late), Mixed(), rules="duel", deals=50)
    position = Position.from_text(str(caught.value).partition(" is to move in: ")[2])
    assert position.turned_up is None
    action = int(re.findall(r"illegal action \w\w \((\d+)\)", str(caught.value))[0])
    record = engine.record_of(position, RULES["duel"])
    with pytest.raises(engine.IllegalActionError):
        engine.apply(record, RULES["duel"], action)


def test_an_error_inside_an_agent_says_whose_it_is_and_stays_the_cause() -> None:
    broken = Answer(lambda _, masks: 1 // (len(masks) * 0))
    for pair, name in (((broken, "random"), "A"), (("random", broken), "B")):
        with pytest.raises(
            AgentError,
            match=f"agent {name} .Answer. has failed in act_batch with "
            r"ZeroDivisionError: .*test_evaluation\.py, line \d+",
        ) as caught:
            evaluate(*pair, deals=2)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("value", [10.5, "10", True, None])
@pytest.mark.parametrize("name", ["deals", "seed"])
def test_numbers_that_are_not_whole_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name}={value!r} is not a whole number"):
        prepare("random", "random", **{name: value})


@pytest.mark.parametrize(
    ("number", "words"), [(0, "plays nothing"), (-3, "plays nothing"), (2.5, "not a whole number")]
)
def test_a_batch_needs_a_pair(number: Any, words: str) -> None:
    with pytest.raises(ValueError, match=rf"pairs_at_once={number} .*{words}"):
        play(prepare("random", "random", deals=2), pairs_at_once=number)


# --------------------------------------------------------------------------------- command line


def without_clock(path: Path) -> dict[str, Any]:
    result = json.loads(path.read_text(encoding="utf-8"))
    assert set(result.pop("seconds")) == {"total", "A", "B"}
    assert set(result.pop("decisions_per_second")) == {"A", "B"}
    return result


def test_equal_commands_write_equal_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    line = f"random random --rules duel --episode match --deals 20 --seed 5 --json {path}"
    assert command.main(line.split()) == 0
    first = without_clock(path)
    assert command.main(line.split()) == 0  # replaces the file
    assert without_clock(path) == first
    assert command.main([*line.split(), "--seed", "6"]) == 0
    assert without_clock(path)["mean_game_points"] != first["mean_game_points"]
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]
    assert "game points a deal" in capsys.readouterr().out


def test_the_table_shows_each_agents_own_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    assert command.main(["heuristic", "random", "--deals", "50", "--json", str(path)]) == 0
    content = json.loads(path.read_text(encoding="utf-8"))
    lines = capsys.readouterr().out.splitlines()
    for label, name in (("deals with a close", "closes"), ("  of these won", "closes_won")):
        row = next(line for line in lines if line.startswith(f" {label}"))
        shares = re.findall(r"([\d.]+) % +[\d.]+-[\d.]+ %", row)
        assert shares == [f"{100 * content['rates'][side][name]:.1f}" for side in "AB"]
        assert shares[0] != shares[1]
    row = next(line for line in lines if line.startswith(" decisions "))
    assert row.split()[1:] == [f"{content['decisions'][side]:,}" for side in "AB"]


def test_the_agents_draw_from_streams_of_their_own() -> None:
    """Two random players with one stream would make the same choices in the same positions."""
    first, second = prepare("random", "random", deals=2, seed=1).agent_seeds
    assert first != second


def test_the_file_has_the_documented_keys(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write_json(evaluate("heuristic", "random", deals=30, seed=2), path)
    result = json.loads(path.read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    table = text.partition("## The JSON file\n")[2].partition("\n## ")[0]
    first_cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(first_cells)) == [*documented_order(result)]
    assert result["deals"] == 30
    assert result["rules"] == "pagat_auto"
    assert result["specs"] == {"A": "heuristic", "B": "random"}
    low, high = result["win_rate_interval"]
    assert low <= result["win_rate"] <= high
    assert result["win_rate_ci95"] == pytest.approx((high - low) / 2)
    assert set(result["rates"]["A"]) == {
        *(f"{name}_interval" for name in ("closes", "exchanges")),
        *(f"{name}_won" for name in ("closes", "exchanges", "marriages")),
        *(f"{name}_won_interval" for name in ("closes", "exchanges", "marriages")),
        *("closes", "exchanges", "marriages", "marriages_ci95"),
    }


def documented_order(result: dict[str, Any]) -> list[str]:
    """The keys of the file in the order in which the document lists them."""
    keys = list(result)
    keys.remove("deals_played")
    keys.insert(keys.index("seed") + 1, "deals_played")
    keys.remove("win_rate_ci95")
    keys.insert(keys.index("win_rate_interval") + 1, "win_rate_ci95")
    return keys


def test_a_failed_write_leaves_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    path.write_text("earlier", encoding="utf-8")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    result = evaluate("random", "random", deals=2)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_json(result, path)
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]
    assert path.read_text(encoding="utf-8") == "earlier"


def test_a_full_disk_is_named_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")  # as a write says it, without a name

    monkeypatch.setattr("os.fsync", full)
    path = tmp_path / "out.json"
    assert command.main(f"random random --deals 2 --json {path}".split()) == command.FAILED
    assert f"error: cannot write {path}: No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")
def test_a_link_goes_on_pointing_to_its_file_and_a_pipe_stays_one(tmp_path: Path) -> None:
    result = evaluate("random", "random", deals=2)
    target, link, pipe = tmp_path / "target.json", tmp_path / "link.json", tmp_path / "pipe"
    target.write_text("earlier", encoding="utf-8")
    link.symlink_to(target)
    write_json(result, link)
    assert link.is_symlink()
    assert json.loads(target.read_text(encoding="utf-8"))["deals"] == 2
    os.mkfifo(pipe)
    check_writable(pipe)
    with ThreadPoolExecutor(1) as pool:  # who writes waits for who reads
        text = pool.submit(pipe.read_text, encoding="utf-8")
        write_json(result, pipe)
        assert json.loads(text.result(timeout=60))["deals"] == 2
    assert pipe.is_fifo()
    write_json(result, Path(os.devnull))
    assert not Path(os.devnull).is_file()
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    with pytest.raises(ValueError, match=r"cannot write .*loop"):
        check_writable(loop)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no such device")
def test_the_file_may_be_the_standard_output() -> None:
    line = [sys.executable, str(ROOT / "evaluate.py"), "random", "random", "--deals", "2"]
    line += ["--json", "/dev/stdout"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=300)
    figures, _ = json.JSONDecoder().raw_decode(done.stdout)
    assert figures["deals"] == 2
    assert "game points a deal" in done.stdout


def test_the_file_is_written_even_if_nobody_reads_the_table(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    line = [sys.executable, str(ROOT / "evaluate.py"), "random", "random", "--deals", "2"]
    with subprocess.Popen([*line, "--json", str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=300)
    assert json.loads(path.read_text(encoding="utf-8"))["deals"] == 2


def test_file_and_picture_are_told_apart_by_where_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = f"--league random heuristic --json L.png --picture {tmp_path / 'L.png'}"
    assert command.main(line.split()) == command.WRONG_COMMAND
    assert "name two files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nobody random", ["unknown agent 'nobody'", "heuristic"]),
        ("random heuristic:x=1", ["no option 'x'"]),
        ("random random --rules whist", ["unknown rule set 'whist'", "pagat_auto"]),
        ("random random --deals 1", ["deals=1", "2 or more"]),
        ("random random --seed -1", ["seed=-1 is negative"]),
        ("random random --json no/such/folder/x.json", ["no folder", "folder"]),
        ("random", ["name two agents", "--league A B C"]),
        ("", ["name two agents", "--league A B C"]),
        ("random random --picture x.png", ["--picture draws a league"]),
        ("random random --variance-reduction --episode match", ["single deals"]),
        ("random random --own-playouts", ["belongs to --variance-reduction"]),
        ("random random --variance-reduction --deals 99", ["deals=99", "100 or more"]),
        ("random random --json .", ["cannot write .", "it is a folder"]),
        ("random random --json /proc/x.json", ["cannot write /proc/x.json"]),
        ("random python:nothing_here:X", ["importing 'nothing_here'"]),
    ],
)
def test_a_wrong_command_is_one_sentence_and_code_2(
    line: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "/proc/" in line and not Path("/proc").is_dir():
        pytest.skip("there is no folder here that nobody can write to")

    def play_nothing(*_: object, **__: object) -> None:
        pytest.fail("a deal was played")

    monkeypatch.setattr(command, "evaluate_contest", play_nothing)
    assert command.main(line.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("evaluate.py: error: ")
    assert output.err.count("\n") == 1
    for word in words:
        assert word in output.err


@pytest.mark.parametrize("line", ["random random --episode year", "a b --deals many"])
def test_a_command_that_cannot_be_parsed_is_code_2(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(line.split())
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_broken_agent_is_one_sentence_and_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cheats_of_a_test.py").write_text(
        "class Cheat:\n    def act(self, observation, action_mask):\n        return 26\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert command.main("random python:cheats_of_a_test:Cheat --deals 3".split()) == 1
    error = capsys.readouterr().err
    assert "agent B (python:cheats_of_a_test:Cheat) chose the illegal action claim (26)" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (
            "def act(self, observation, action_mask): raise KeyError('lost')",
            1,
            ["agent B (python:fails_in_a_test:Agent) has failed in act_batch with KeyError: 'l"],
        ),
        (
            "def act(self, observation, action_mask): raise SystemExit(0)",
            1,
            ["agent B (python:fails_in_a_test:Agent) has failed in act_batch with SystemExit: 0"],
        ),
        (
            "def act(self, observation, action_mask): raise KeyError('two\\nlines')",
            1,
            ["agent B (python:fails_in_a_test:Agent) has failed in act_batch with KeyError: 't"],
        ),
        (
            "def act(self, observation, action_mask): return 0.0",
            1,
            ["agent B (python:fails_in_a_test:Agent): Agent.act must return one integer, not 0.0"],
        ),
        (
            "def __init__(self): raise SystemExit(0)",
            2,
            ["agent 'python:fails_in_a_test:Agent': building Agent fails with SystemExit: 0"],
        ),
        (
            "raise SystemExit(0)",
            2,
            ["importing 'fails_in_a_test' fails with SystemExit: 0"],
        ),
        (
            "def act(self, observation, action_mask): return [[1], [2, 3]]",
            1,
            ["agent B (python:fails_in_a_test:Agent) has failed in act_batch with ValueError"],
        ),
        (
            "def reset(self, seed): raise RuntimeError\n    act = None.__str__",
            1,
            ["agent B (python:fails_in_a_test:Agent) has failed in reset with RuntimeError"],
        ),
        (
            "def __init__(self): raise OSError('no model')",
            2,
            ["agent 'python:fails_in_a_test:Agent': building Agent fails with OSError: no model"],
        ),
    ],
)
def test_an_agent_that_raises_is_named_and_no_file_is_left(
    body: str,
    code: int,
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "fails_in_a_test.py").write_text(f"class Agent:\n    {body}\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "fails_in_a_test", raising=False)
    arguments = ["random", "python:fails_in_a_test:Agent", "--deals", "3"]
    assert command.main([*arguments, "--json", str(tmp_path / "out.json")]) == code
    error = capsys.readouterr().err
    for word in words:
        assert word in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("*.json*"))


def test_the_documented_agent_plays_from_another_folder(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?class HighestCard.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    (tmp_path / "my_agent.py").write_text(block[1], encoding="utf-8")
    line = re.search(r"^python evaluate.py (python:my_agent:HighestCard .*)$", text, re.MULTILINE)
    assert line is not None
    arguments = [*line[1].split(), "--deals", "20", "--json", "out.json"]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "evaluate.py"), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # nobody watches, so no progress bar
    assert "20 deals, each played twice" in re.sub(r"\s+", " ", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "…" not in done.stdout
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["deals"] == 20
