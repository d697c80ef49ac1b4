"""Variance reduction: take the luck of each draw out of the result.

All chance of a deal is its shuffle, but the players see the talon card by card. Agents act on
observations, and no observation depends on the order of the face-down cards. So, given everything
that has happened and both hands, every order of them is equally likely, and each draw is a chance
event of a known distribution. With any value function ``V`` of game points for agent A,

    luck of a draw = V(hands after the draw) - mean of V over all equally likely draws

has mean zero, whoever plays. The random agent's actions are chance events of a known distribution
as well, and so

    luck of an action = V(after the action) - mean of V over the legal actions.

Both are the correction terms of Burch, Schmid, Moravcik, Morrill and Bowling, "AIVAT: A new
variance reduction technique for agent evaluation in imperfect information games" (AAAI 2018).

Here ``V`` is the mean of playouts from the position, face-down cards shuffled. In a
:class:`LuckWatcher` they are :data:`PLAYOUTS` quick ones in compiled code, where the heuristic
player sits in for every agent but the random one; in an :class:`OwnLuckWatcher` they are
:data:`OWN_PLAYOUTS` by the agents themselves. The mean over the draws is estimated by as many
playouts, so a luck is exact in expectation, not in value. The terms of a pair become regressors
(control variates) whose coefficients come from the *other* pairs, in :data:`FOLDS` folds; so they
are independent of the luck that they are multiplied with, and the estimate stays unbiased.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.evaluation.arena import Contest, Ints, Player, Table, ask
from agents.evaluation.statistics import Mean, mean_interval
from schnapsen_env import engine
from schnapsen_env.cards import ALL_CARDS, TALON_SIZE
from schnapsen_env.compiled import compiled, compiled_apart
from schnapsen_env.engine import record as r
from schnapsen_env.heuristic import heuristic_action
from schnapsen_env.opponents import RandomOpponent
from schnapsen_env.sampling import lay_talon
from schnapsen_env.solver import MOST_GAME_POINTS
from schnapsen_env.view import PERFECT, bit, view

Floats = npt.NDArray[np.float64]

#: Playouts behind each of the two values of a luck. More of them bring little: 16, 64 and 256 left
#: 80 %, 77 % and 76 % of the interval between a trained network and the heuristic player.
PLAYOUTS: Final = 64
#: The same where the agents themselves play.
OWN_PLAYOUTS: Final = 32
#: Records that they play at once.
_AT_ONCE: Final = 65_536
#: Parts of the data in turn left out when the coefficients are estimated.
FOLDS: Final = 10
#: Fewer pairs make the coefficients worthless.
FEWEST_PAIRS: Final = 100
#: More pairs than these could take over 1.5 GB until the playouts of :class:`OwnLuckWatcher`.
MOST_OWN_PAIRS: Final = 50_000

#: Regressors: the luck of the four draws that leave something to chance (at the fifth one card lies
#: face down), and of the random agent's actions.
DRAWS: Final = 4
_ACTIONS: Final = DRAWS
_NUM_LUCKS: Final = DRAWS + 1
LUCK_NAMES: Final = ("draw_1", "draw_2", "draw_3", "draw_4", "actions")

#: The first action of a playout that leaves it to the player to move.
_OPEN: Final = -1


@compiled
def face_down_cards(record: Ints) -> int:
    """The cards that neither player has seen, a set."""
    seen = record[r.HAND] | record[r.HAND + 1] | record[r.WON] | record[r.WON + 1]
    return ALL_CARDS & ~(seen | bit(record[r.LED]) | bit(record[r.TURNED_UP]))


@compiled
def play_out(record: Ints, codes: Ints, seat_of_a: int, chance_a: bool, chance_b: bool) -> int:
    """Play the deal to its end, in place; game points of A."""
    while not engine.is_over(record):
        seat = record[r.TO_MOVE]
        by_chance = chance_a if seat == seat_of_a else chance_b
        if by_chance:
            action = engine.random_action(record, codes)
        else:
            action = heuristic_action(view(record, codes, seat, PERFECT))
        engine.step(record, codes, action)
    return engine.game_points(record, seat_of_a)


@compiled
def begin_playout(
    work: Ints, record: Ints, codes: Ints, cards: int, stream: int, action: int
) -> None:
    """Make ``work`` the deal ``record`` with its face-down ``cards`` shuffled, and act.

    Args:
        work: ``int64[RECORD_SIZE]``, overwritten.
        record: ``int64[RECORD_SIZE]``; the deal may be over.
        codes: ``Rules.codes()``.
        cards: :func:`face_down_cards` of the record.
        stream: random state to start from, not 0.
        action: what the player to move does first, -1 to leave it open.
    """
    work[:] = record
    work[r.RANDOM] = stream
    if record[r.FACE_DOWN] > 1 and not engine.is_over(record):
        lay_talon(work, cards, record[r.TURNED_UP], record[r.FACE_DOWN])
    if action != _OPEN:
        engine.step(work, codes, action)


@compiled_apart
def value(
    record: Ints,
    codes: Ints,
    action: int,
    seat_of_a: int,
    chance_a: bool,
    chance_b: bool,
    playouts: int,
    stream: int,
    work: Ints,
) -> float:
    """The mean result for A of ``playouts`` playouts from a record, face-down cards shuffled.

    Args:
        record: ``int64[RECORD_SIZE]``, left as it is; the deal may be over.
        codes: ``Rules.codes()``.
        action: what the player to move does first, -1 to leave it to the playout.
        seat_of_a: 0 or 1.
        chance_a: A plays at random in the playouts; otherwise by the heuristic.
        chance_b: the same for B.
        playouts: how many, 1 or more.
        stream: random state to start from, not 0.
        work: ``int64[RECORD_SIZE]``, overwritten.
    """
    cards = face_down_cards(record)
    total = 0
    for _ in range(playouts):
        begin_playout(work, record, codes, cards, stream, action)
        total += play_out(work, codes, seat_of_a, chance_a, chance_b)
        stream = work[r.RANDOM]
    return total / playouts


@compiled
def _add_lucks(
    records: Ints,
    codes: Ints,
    rows: Ints,
    actions: Ints,
    seats_of_a: Ints,
    pairs: Ints,
    streams: Ints,
    chance_a: bool,
    chance_b: bool,
    chooses_by_chance: bool,
    playouts: int,
    lucks: Floats,
) -> None:
    """Add the luck of ``actions``, and of the draws that they bring, to ``lucks``, ``[n, 5]``."""
    after = records[0].copy()
    work = records[0].copy()
    for i in range(len(rows)):
        record = records[rows[i]]
        seat_of_a = int(seats_of_a[rows[i]])
        pair = pairs[rows[i]]
        face_down = record[r.FACE_DOWN]
        # Both plays of a pair use the same random numbers: as long as they run alike, the errors
        # of their lucks cancel.
        stream = int(streams[pair, record[r.NUM_TAKEN]])
        action = int(actions[i])
        after[:] = record
        engine.step(after, codes, action)
        draws = after[r.FACE_DOWN] != face_down and face_down > 1
        if not draws and not chooses_by_chance:
            continue
        sides = (seat_of_a, chance_a, chance_b)
        of_action = value(record, codes, action, *sides, playouts, stream, work)
        if chooses_by_chance:
            before = value(record, codes, _OPEN, *sides, playouts, stream, work)
            lucks[pair, _ACTIONS] += (of_action - before) / 2
        if draws:
            of_draw = value(after, codes, _OPEN, *sides, playouts, stream, work)
            lucks[pair, (TALON_SIZE - face_down) // 2] += (of_draw - of_action) / 2


class LuckWatcher:
    """Adds up the luck of each pair while a contest is played.

    Raises:
        ValueError: the contest is of matches, or too short.
    """

    def __init__(self, contest: Contest, playouts: int = PLAYOUTS) -> None:
        check(contest)
        self.contest = contest
        # Of a subclass nobody knows how it chooses.
        self.chance = tuple(type(agent) is RandomOpponent for agent in contest.agents)
        self.playouts = playouts
        #: ``float64[n, 5]``: mean luck of A in the two plays of each pair, by :data:`LUCK_NAMES`.
        self.lucks: Floats = np.zeros((contest.pairs, _NUM_LUCKS))
        # Independent of the deals and of the agents, who have the children before this one.
        source = np.random.SeedSequence(contest.seed).spawn(2)[1]
        shape = (contest.pairs, engine.MAX_ACTIONS_PER_DEAL)
        self._streams = np.random.default_rng(source).integers(
            1, np.iinfo(np.int64).max, shape, dtype=np.int64
        )

    def decided(self, table: Table, rows: Ints, actions: Ints, side: int) -> None:
        """See :class:`agents.evaluation.arena.Watcher`."""
        _add_lucks(
            table.records,
            table.codes,
            rows,
            actions,
            table.seats_of_a,
            table.pairs,
            self._streams,
            self.chance[0],
            self.chance[1],
            self.chance[side],
            self.playouts,
            self.lucks,
        )

    def finish(self, progress: Callable[[float], object] | None = None) -> None:
        """Called when all is played.

        Args:
            progress: called with the shares of what is left to do, which add up to 1.
        """


class _Events:
    """Chance events, a row each: where they happened, and the position to play on from."""

    def __init__(self) -> None:
        self._parts: deque[tuple[Ints, ...]] = deque()

    def add(self, *columns: Ints) -> None:
        """Records, first actions (or -1), streams, seats of A, pairs, lucks, and signs."""
        self._parts.append(columns)

    def __len__(self) -> int:
        return sum(len(part[0]) for part in self._parts)

    def take(self, size: int) -> Generator[tuple[Ints, ...]]:
        """Hand everything over, column by column, some ``size`` rows at a time, and forget it."""
        while self._parts:
            parts: list[tuple[Ints, ...]] = []
            while self._parts and sum(len(part[0]) for part in parts) < size:
                parts.append(self._parts.popleft())
            yield tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


@compiled
def _step_each(records: Ints, codes: Ints, rows: Ints, actions: Ints) -> None:
    for i in range(len(rows)):
        engine.step(records[rows[i]], codes, actions[i])


@compiled
def _begin_playouts(
    sources: Ints, codes: Ints, actions: Ints, streams: Ints, playouts: int, out: Ints
) -> None:
    """Fill ``out``, ``[k * playouts, R]``, with each source after a shuffle and its action."""
    for i in range(len(sources)):
        cards = face_down_cards(sources[i])
        stream = streams[i]
        for j in range(playouts):
            work = out[i * playouts + j]
            begin_playout(work, sources[i], codes, cards, stream, actions[i])
            stream = work[r.RANDOM]  # no action draws from it


@compiled
def _results(records: Ints, seats_of_a: Ints, out: Floats) -> None:
    for i in range(len(records)):
        out[i] = engine.game_points(records[i], seats_of_a[i])


class OwnLuckWatcher(LuckWatcher):
    """The same with playouts by the agents themselves, after the contest.

    They tell the luck far better than the heuristic player does, and take as long as
    :data:`OWN_PLAYOUTS` times some four deals.

    Raises:
        ValueError: the contest is of matches, too short, or too long: until the end, when the
            agents are free, 5 to 28 kB are kept of each pair, most if both play at random.
    """

    def __init__(self, contest: Contest, playouts: int = OWN_PLAYOUTS) -> None:
        check(contest, own_playouts=True)
        super().__init__(contest, playouts)
        self._events = _Events()

    def decided(self, table: Table, rows: Ints, actions: Ints, side: int) -> None:
        """See :class:`agents.evaluation.arena.Watcher`."""
        before = table.records[rows].copy()
        after = before.copy()
        everything = np.arange(len(rows), dtype=np.int64)
        _step_each(after, table.codes, everything, actions)
        face_down = before[:, r.FACE_DOWN]
        draws = (after[:, r.FACE_DOWN] != face_down) & (face_down > 1)
        pairs, seats = table.pairs[rows], table.seats_of_a[rows]
        streams = self._streams[pairs, before[:, r.NUM_TAKEN]]
        of_draw = (TALON_SIZE - face_down) // 2
        nothing = np.full(len(rows), _OPEN, dtype=np.int64)

        def add(records: Ints, first: Ints, lucks: Ints, sign: int, which: Any) -> None:
            signs = np.full(len(rows), sign, dtype=np.int64)
            columns = (records, first, streams, seats, pairs, lucks, signs)
            self._events.add(*(column[which] for column in columns))

        add(after, nothing, of_draw, 1, draws)
        add(before, actions, of_draw, -1, draws)
        if self.chance[side]:
            of_action = np.full(len(rows), _ACTIONS, dtype=np.int64)
            add(before, actions, of_action, 1, slice(None))
            add(before, nothing, of_action, -1, slice(None))

    def finish(self, progress: Callable[[float], object] | None = None) -> None:
        """Play all playouts, and add up the lucks."""
        contest = self.contest
        players = tuple(
            Player(name, spec, agent)
            for name, spec, agent in zip("AB", contest.specs, contest.agents, strict=True)
        )
        # A third and a fourth stream, so that a playout does not repeat the play.
        seeds = np.random.SeedSequence(contest.seed).generate_state(4)[2:]
        for player, seed in zip(players, seeds, strict=True):
            player.reset(int(seed))
        step = max(1, _AT_ONCE // self.playouts)
        total = len(self._events)
        for part in self._events.take(step):
            for first in range(0, len(part[0]), step):
                rows = (column[first : first + step] for column in part)
                records, actions, streams, seats, pairs, lucks, signs = rows
                values = self._play(players, records, actions, streams, seats)
                np.add.at(self.lucks, (pairs, lucks), signs * values / 2)
                if progress is not None:
                    progress(len(records) / total)

    def _play(
        self, players: tuple[Player, ...], sources: Ints, actions: Ints, streams: Ints, seats: Ints
    ) -> Floats:
        """The mean result for A of the playouts from each source, ``float64[k]``."""
        codes = self.contest.rules.codes()
        number = self.playouts
        records = np.empty((len(sources) * number, engine.RECORD_SIZE), dtype=np.int64)
        _begin_playouts(sources, codes, actions, streams, number, records)
        seats_of_a = np.repeat(seats, number)
        running = np.flatnonzero(records[:, r.END_REASON] == 0)
        while running.size:
            for side, player in enumerate(players):
                rows = running[records[running, r.TO_MOVE] == seats_of_a[running] ^ side]
                if rows.size:
                    _step_each(records, codes, rows, ask(player, records, codes, rows))
                    running = running[records[running, r.END_REASON] == 0]
        results = np.empty(len(records))
        _results(records, seats_of_a, results)
        return results.reshape(len(sources), number).mean(axis=1)


def check(contest: Contest, *, own_playouts: bool = False) -> None:
    """Find out whether the luck of a contest can be measured.

    Args:
        contest: what is to be played.
        own_playouts: whether by an :class:`OwnLuckWatcher`.

    Raises:
        ValueError: it is of matches, too short, or too long.
    """
    if own_playouts and contest.pairs > MOST_OWN_PAIRS:
        raise ValueError(
            f"deals={contest.pairs} is too many for own playouts: play {MOST_OWN_PAIRS:,} or fewer"
        )
    if contest.episode != "deal":
        raise ValueError("variance reduction works on single deals: use episode 'deal'")
    if contest.pairs < FEWEST_PAIRS:
        raise ValueError(
            f"deals={contest.pairs} is too few for variance reduction: play {FEWEST_PAIRS} or more"
        )


@dataclass(frozen=True)
class Reduction:
    """The mean of the pairs without their luck."""

    #: Game points of A for a deal.
    game_points: Mean
    #: Half width of the interval, as a share of the one without the reduction.
    share_of_ci95: float
    #: Mean of each luck, which chance alone keeps from 0.
    lucks: dict[str, Mean]
    #: How much of each luck is taken out, mean over the folds.
    coefficients: dict[str, float]
    playouts: int
    #: ``float64[n]``, the pairs without their luck.
    pair_points: Floats = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The figures as the JSON file holds them."""
        return {
            "mean_game_points": self.game_points.value,
            "ci95": self.game_points.ci95,
            "share_of_ci95": self.share_of_ci95,
            "lucks": {name: list(mean) for name, mean in self.lucks.items()},
            "coefficients": self.coefficients,
            "playouts": self.playouts,
        }


def without_luck(points: npt.ArrayLike, lucks: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The results of the pairs with their luck taken out, and the coefficients used.

    Cross-fitting: the coefficients for a pair are the least squares ones of the pairs outside its
    fold. Control variates: Owen, "Monte Carlo theory, methods and examples" (2013), section 8.9.

    Args:
        points: ``float[n]``, A's mean game points of each pair.
        lucks: ``float[n, 5]``, each of expectation 0.

    Returns:
        ``float64[n]``, and ``float64[FOLDS, 5]``.
    """
    results = np.asarray(points, dtype=np.float64)
    regressors = np.asarray(lucks, dtype=np.float64)
    folds = np.arange(len(results)) % FOLDS
    cleaned = np.empty_like(results)
    coefficients = np.zeros((FOLDS, regressors.shape[1]))
    for fold in range(FOLDS):
        held_out = folds == fold
        others = regressors[~held_out]
        centred = results[~held_out] - results[~held_out].mean()
        coefficients[fold] = np.linalg.lstsq(others - others.mean(axis=0), centred, rcond=None)[0]
        cleaned[held_out] = results[held_out] - regressors[held_out] @ coefficients[fold]
    return cleaned, coefficients


def reduce_variance(points: npt.ArrayLike, watcher: LuckWatcher) -> Reduction:
    """The figures without luck; ``points`` are A's mean game points of each pair, ``float[n]``."""
    cleaned, coefficients = without_luck(points, watcher.lucks)
    plain = mean_interval(points, MOST_GAME_POINTS)
    reduced = mean_interval(cleaned, MOST_GAME_POINTS)
    means = coefficients.mean(axis=0).tolist()
    return Reduction(
        game_points=reduced,
        share_of_ci95=reduced.ci95 / plain.ci95 if plain.ci95 else 1.0,
        lucks={
            name: mean_interval(watcher.lucks[:, index]) for index, name in enumerate(LUCK_NAMES)
        },
        coefficients=dict(zip(LUCK_NAMES, means, strict=True)),
        playouts=watcher.playouts,
        pair_points=cleaned,
    )
