"""Two agents play the same cards twice, with seats swapped.

A *pair* is one seed and two plays: in the first, agent A has seat 0, in the second seat 1. Deck and
forehand come from the seed alone, so that whatever luck the cards hold, each agent has it once. In
match episodes a play is a whole match, and the two matches of a pair draw their decks and their
first dealer from the same stream.

All plays run as one batch of engine records. At each turn the rows in which an agent is to move are
gathered, shown to it as observations and masks, and stepped with its answers.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from agents.base import Actions, Agent, AgentError, as_agent, checked_answer, load, reset_agent
from agents.limits import MOST_PAIRS
from agents.options import first_line
from schnapsen_env import engine
from schnapsen_env.actions import EXCHANGE, NUM_ACTIONS, action_text
from schnapsen_env.borrowed import borrowed
from schnapsen_env.cards import NUM_SUITS
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.integers import as_integer
from schnapsen_env.observation import DEFAULT_LAYOUT, encode
from schnapsen_env.rules import Rules, resolve_rules
from schnapsen_env.view import event

Ints = npt.NDArray[np.int64]

EPISODES: Final = ("deal", "match")
#: Pairs that are played at the same time; 4,096 pairs take some 40 MB.
PAIRS_AT_ONCE: Final = 4096

_MEMORY: Final = DEFAULT_LAYOUT.memory_code
_SUITS: Final = DEFAULT_LAYOUT.suits_code
_HISTORY: Final = DEFAULT_LAYOUT.history_code


@dataclass(frozen=True)
class Deals:
    """All deals of an evaluation, a row each in no order, every field ``int64[D]``.

    The order of the fields is the order in which :func:`_summarise` writes them.
    """

    #: Index of the pair, 0 to n - 1.
    pair: Ints
    #: Seat of agent A: 0 in the first play of a pair, 1 in the second.
    seat_of_a: Ints
    #: Deals begun in this play, this one included; always 1 in deal episodes.
    number: Ints
    #: Signed game points of A.
    game_points: Ints
    #: ``EndReason`` of the deal.
    end_reason: Ints
    #: Actions taken by both players.
    length: Ints
    #: Who led to the first trick: 0 A, 1 B.
    forehand: Ints
    #: Who closed the talon: 0 A, 1 B, -1 nobody.
    closer: Ints
    #: How often each has exchanged the trump jack, 0 or 1.
    exchanges_a: Ints
    exchanges_b: Ints
    #: Marriages declared by each.
    marriages_a: Ints
    marriages_b: Ints


_NUM_COLUMNS: Final = len(fields(Deals))


@compiled
def _deal_all(records: Ints) -> None:
    for row in range(len(records)):
        engine.deal(records[row])


@compiled
def _observe(
    records: Ints,
    codes: Ints,
    rows: Ints,
    observations: npt.NDArray[np.float32],
    masks: npt.NDArray[np.int8],
) -> None:
    """Write what the player to move sees in each of ``rows``."""
    records, codes = borrowed(records), borrowed(codes)
    observations, masks = borrowed(observations), borrowed(masks)
    for i in range(len(rows)):
        record = records[rows[i]]
        encode(
            record,
            codes,
            record[r.TO_MOVE],
            _MEMORY,
            _SUITS,
            _HISTORY,
            1,
            observations[i],
            masks[i],
        )


@compiled
def _first_illegal(records: Ints, codes: Ints, rows: Ints, actions: Ints) -> int:
    """The first index into ``rows`` whose action is not legal, or -1."""
    for i in range(len(rows)):
        action = actions[i]
        if action < 0 or action >= NUM_ACTIONS:
            return i
        if engine.legal(records[rows[i]], codes) >> action & 1 == 0:
            return i
    return -1


@compiled
def _summarise(record: Ints, seat_of_a: int, out: Ints) -> None:
    """Write the finished deal as the fields of :class:`Deals` from ``seat_of_a`` on."""
    out[:] = 0
    out[0] = seat_of_a
    out[1] = record[r.DEAL_NUMBER]
    out[2] = engine.game_points(record, seat_of_a)
    out[3] = record[r.END_REASON]
    out[4] = record[r.NUM_TAKEN]
    out[5] = record[r.FOREHAND] ^ seat_of_a
    out[6] = record[r.CLOSED_BY]
    if out[6] != -1:
        out[6] ^= seat_of_a
    for index in range(record[r.NUM_TAKEN]):
        action, seat = event(record, index)
        if action == EXCHANGE:
            out[7 + (seat ^ seat_of_a)] += 1
    for side in range(2):
        for suit in range(NUM_SUITS):
            out[9 + side] += record[r.MARRIAGES + (side ^ seat_of_a)] >> suit & 1


@compiled
def _step(
    records: Ints,
    codes: Ints,
    rows: Ints,
    actions: Ints,
    seats_of_a: Ints,
    matches: bool,
    over: npt.NDArray[np.bool_],
    out: Ints,
) -> int:
    """Take the actions; in a running match deal again.

    Args:
        records: ``int64[M, RECORD_SIZE]``, changed in place.
        codes: ``Rules.codes()``.
        rows: ``int64[k]``, the records to step.
        actions: ``int64[k]``, legal ones.
        seats_of_a: ``int64[M]``.
        matches: whether the episode is a match.
        over: ``bool[M]``, set for the plays that end.
        out: ``int64[k, 1 + fields]``, a row for each deal that ends, its first column the record.

    Returns:
        The number of deals that have ended.
    """
    records, codes, out = borrowed(records), borrowed(codes), borrowed(out)
    ended = 0
    for i in range(len(rows)):
        record = records[rows[i]]
        engine.step(record, codes, actions[i])
        if not engine.is_over(record):
            continue
        out[ended, 0] = rows[i]
        _summarise(record, int(seats_of_a[rows[i]]), out[ended, 1:])
        ended += 1
        if matches and engine.match_winner(record, codes) == -1:
            engine.deal(record)
        else:
            over[rows[i]] = True
    return ended


@dataclass(frozen=True)
class Table:
    """The plays of one batch: ``P`` pairs, ``M = 2 P`` records."""

    #: ``int64[M, RECORD_SIZE]``: first all plays with A in seat 0, then the same pairs swapped.
    records: Ints
    #: ``Rules.codes()``.
    codes: Ints
    #: ``int64[M]``: seat of A.
    seats_of_a: Ints
    #: ``int64[M]``: index of the pair, counted over all batches.
    pairs: Ints


class Watcher(Protocol):
    """Looks on at the decisions of a contest; it must leave the table as it is."""

    def decided(self, table: Table, rows: Ints, actions: Ints, side: int) -> None:
        """Agent ``side`` (0 A, 1 B) is about to take the legal ``actions`` in ``rows``.

        Args:
            table: all plays of the batch, before the actions.
            rows: ``int64[k]``, indices into the table.
            actions: ``int64[k]``.
            side: who decides.
        """
        ...


class Player:
    """An agent at the table: asked for actions, checked, and timed.

    Args:
        name: ``"A"`` or ``"B"``, for messages.
        spec: the text that stands for the agent in reports.
        agent: the agent itself.
    """

    def __init__(self, name: str, spec: str, agent: Agent) -> None:
        self.name = name
        self.spec = spec
        self.agent = agent
        self.decisions = 0
        self.seconds = 0.0
        self._first_decisions = 0
        self._first_seconds = 0.0

    def __str__(self) -> str:
        return f"agent {self.name} ({self.spec})"

    def reset(self, seed: int) -> None:
        """Start the agent's random stream, if it has one.

        Raises:
            AgentError: the agent has raised an error.
        """
        with self._failures_named("reset"):
            reset_agent(self.agent, seed)

    @contextmanager
    def _failures_named(self, method: str) -> Generator[None, None, None]:
        """Turn an error of the agent into an AgentError that says whose it is, and where."""
        try:
            yield
        except AgentError as error:  # it says what is wrong
            raise AgentError(f"{self}: {error}") from error
        except (Exception, SystemExit) as error:
            what = type(error).__name__
            if str(error):
                what = f"{what}: {first_line(error)}"
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise AgentError(
                f"{self} has failed in {method} with {what} ({last.filename}, line {last.lineno})"
            ) from error

    @property
    def decisions_per_second(self) -> float | None:
        """The rate after the agent's first call, which may compile; None without a later call."""
        seconds = self.seconds - self._first_seconds
        decisions = self.decisions - self._first_decisions
        return decisions / seconds if decisions and seconds > 0 else None

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.int8]) -> Actions:
        """The agent's answers, ``int64[k]``, not yet known to be legal.

        Raises:
            AgentError: the agent has raised an error, or its answer has another shape or does not
                hold integers.
        """
        count = len(observations)
        start = time.perf_counter()
        with self._failures_named("act_batch"):
            answer = np.asarray(self.agent.act_batch(observations, masks))
        seconds = time.perf_counter() - start
        if not self.decisions:
            self._first_decisions, self._first_seconds = count, seconds
        self.decisions += count
        self.seconds += seconds
        return checked_answer(answer, count, str(self))


@dataclass(frozen=True)
class Contest:
    """Two agents, and what they are about to play; all of it checked."""

    specs: tuple[str, str]
    agents: tuple[Agent, Agent]
    #: What ``reset`` of each agent is given, 32 bits.
    agent_seeds: tuple[int, int]
    rules: Rules
    episode: str
    #: Different deals or matches; each is played twice.
    pairs: int
    seed: int


@dataclass(frozen=True)
class Plays:
    """What was played, and by whom."""

    contest: Contest
    players: tuple[Player, Player]
    deals: Deals
    seconds: float


def prepare(
    a: str | object,
    b: str | object,
    *,
    rules: str | Rules = "pagat_auto",
    episode: str = "deal",
    deals: int = 2000,
    seed: int = 0,
) -> Contest:
    """Check the arguments and load the agents; nothing is played yet.

    Args:
        a: a spec or an object with ``act``.
        b: the other one.
        rules: a name of ``RULES`` or a ``Rules`` object.
        episode: ``"deal"`` or ``"match"``.
        deals: different deals (or matches); each is played twice.
        seed: of the cards and of the agents, 0 or more.

    Raises:
        ValueError: an argument is wrong; the message says which and what is allowed.
        ModuleNotFoundError: an agent needs a library that is not installed.
    """
    chosen = resolve_rules(rules)
    if episode not in EPISODES:
        raise ValueError(f"unknown episode {episode!r}: choose one of {', '.join(EPISODES)}")
    deals = _whole("deals", deals)
    if deals < 2:
        raise ValueError(f"deals={deals} gives no interval: play 2 or more")
    if deals > MOST_PAIRS:
        raise ValueError(
            f"deals={deals} is more than one evaluation holds: play {MOST_PAIRS:,} or fewer"
        )
    seed = _whole("seed", seed)
    if seed < 0:
        raise ValueError(f"seed={seed} is negative: choose 0 or more")
    # 32 bits, which every random generator takes as its seed.
    seed_a, seed_b = (int(word) for word in np.random.SeedSequence(seed).generate_state(2))
    spec_a, agent_a = _named(a, "A", chosen, seed_a)
    spec_b, agent_b = _named(b, "B", chosen, seed_b)
    return Contest(
        specs=(spec_a, spec_b),
        agents=(agent_a, agent_b),
        agent_seeds=(seed_a, seed_b),
        rules=chosen,
        episode=episode,
        pairs=deals,
        seed=seed,
    )


def _whole(name: str, value: object) -> int:
    number = as_integer(value)
    if number is None:
        raise ValueError(f"{name}={value!r} is not a whole number: pass an int")
    return number


def _named(given: str | object, name: str, rules: Rules, seed: int) -> tuple[str, Agent]:
    if isinstance(given, str):
        return given, load(given, rules, seed)
    spec = type(given).__name__
    return spec, as_agent(given, f"agent {name} ({spec})")


def play(
    contest: Contest,
    *,
    pairs_at_once: int = PAIRS_AT_ONCE,
    progress: Callable[[int], object] | None = None,
    watchers: Sequence[Watcher] = (),
) -> Plays:
    """Play the contest.

    Equal contests give equal results, as long as the agents draw their random numbers from the seed
    that they are given. Different seeds give different deals throughout: those of seed 8 are not
    those of seed 7 moved by one.

    Args:
        contest: who plays what.
        pairs_at_once: pairs in one batch, 1 or more.
        progress: called with the number of plays that have just ended.
        watchers: told of every decision; they change nothing about the result.

    Raises:
        ValueError: ``pairs_at_once`` is not a whole number from 1.
        AgentError: an agent raises an error, which is then the cause of this one, or answers with
            something that is no legal action.
    """
    pairs_at_once = _whole("pairs_at_once", pairs_at_once)
    if pairs_at_once < 1:
        raise ValueError(f"pairs_at_once={pairs_at_once} plays nothing: choose 1 or more")
    players = (
        Player("A", contest.specs[0], contest.agents[0]),
        Player("B", contest.specs[1], contest.agents[1]),
    )
    for player, seed in zip(players, contest.agent_seeds, strict=True):
        player.reset(seed)
    seeds = pair_seeds(contest.seed, contest.pairs)
    tables: list[Ints] = []
    start = time.perf_counter()
    for first in range(0, contest.pairs, pairs_at_once):
        batch = seeds[first : first + pairs_at_once]
        tables.append(_play_batch(players, contest, batch, first, progress, watchers))
    seconds = time.perf_counter() - start
    return Plays(contest, players, Deals(*np.concatenate(tables).T), seconds)


def pair_seeds(seed: int, pairs: int) -> npt.NDArray[np.uint64]:
    """The engine seeds of the pairs, ``uint64[pairs]``; a longer list begins with the shorter."""
    entropy = np.random.SeedSequence(seed).spawn(1)[0]
    first = entropy.generate_state(1, np.uint64)
    return first + np.arange(pairs, dtype=np.uint64)  # wraps around, as it should


def _play_batch(
    players: tuple[Player, Player],
    contest: Contest,
    seeds: npt.NDArray[np.uint64],
    first_pair: int,
    progress: Callable[[int], object] | None,
    watchers: Sequence[Watcher],
) -> Ints:
    """Play the pairs of ``seeds`` to their ends; a row of :class:`Deals` fields for each deal."""
    pairs = len(seeds)
    codes = contest.rules.codes()
    matches = contest.episode == "match"
    records = engine.new_records(np.concatenate([seeds, seeds]))
    _deal_all(records)
    seats_of_a = np.repeat(np.arange(2, dtype=np.int64), pairs)
    indices = first_pair + np.tile(np.arange(pairs, dtype=np.int64), 2)
    seen = Table(records, codes, seats_of_a, indices)
    over = np.zeros(2 * pairs, dtype=np.bool_)
    running = np.arange(2 * pairs, dtype=np.int64)
    tables: list[Ints] = []
    while running.size:
        for side, player in enumerate(players):
            rows = running[records[running, r.TO_MOVE] == seats_of_a[running] ^ side]
            if not rows.size:
                continue
            actions = ask(player, records, codes, rows)
            for watcher in watchers:
                watcher.decided(seen, rows, actions, side)
            out = np.empty((rows.size, _NUM_COLUMNS), dtype=np.int64)
            ended = _step(records, codes, rows, actions, seats_of_a, matches, over, out)
            tables.append(out[:ended].copy())
            before = running.size
            running = running[~over[running]]
            if progress is not None:
                progress(before - running.size)
    table = np.concatenate(tables)
    table[:, 0] = indices[table[:, 0]]
    return table


def ask(player: Player, records: Ints, codes: Ints, rows: Ints) -> Actions:
    """The player's actions in ``rows``, all of them legal.

    Raises:
        AgentError: one of them is not.
    """
    # New arrays each time: an agent may keep or change what it was given.
    observations = np.empty((rows.size, DEFAULT_LAYOUT.size), dtype=np.float32)
    masks = np.empty((rows.size, NUM_ACTIONS), dtype=np.int8)
    _observe(records, codes, rows, observations, masks)
    actions = player.choose(observations, masks)
    illegal = _first_illegal(records, codes, rows, actions)
    if illegal >= 0:
        raise AgentError(_complaint(player, records[rows[illegal]], codes, int(actions[illegal])))
    return actions


def _complaint(player: Player, record: Ints, codes: Ints, action: int) -> str:
    legal = int(engine.legal(record, codes))
    allowed = [action_text(other) for other in range(NUM_ACTIONS) if legal >> other & 1]
    name = f"{action_text(action)} ({action})" if 0 <= action < NUM_ACTIONS else str(action)
    return (
        f"{player} chose the illegal action {name}; legal: {', '.join(allowed)}; "
        f"seat {record[r.TO_MOVE]} is to move in: {engine.position_of(record)}"
    )
