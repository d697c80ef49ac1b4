"""Stored deals and action counts, replayed on the engine and on the referee."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS, action_text, parse_action
from schnapsen_env.cards import parse_card
from schnapsen_env.position import EndReason
from schnapsen_env.rules import RULES
from tests import referee
from tests.golden_files import (
    REVOKE,
    GoldenDeal,
    Perft,
    read_deals,
    read_perft,
    referee_deal,
    referee_perft,
    referee_perft_by_action,
)

DEALS = read_deals()
PERFTS = read_perft()
#: The depth up to which the referee counts again; the engine counts all the way.
REFEREE_DEPTH = 3

every_deal = pytest.mark.parametrize("deal", DEALS, ids=[d.title.replace(" ", "-") for d in DEALS])
every_perft = pytest.mark.parametrize(
    "perft", PERFTS, ids=[f"{number}-{perft.rules.name}" for number, perft in enumerate(PERFTS)]
)


def test_the_golden_deals_cover_every_rule_set_and_every_end() -> None:
    assert len(DEALS) >= 20
    assert {deal.rules.name for deal in DEALS} == set(RULES)
    env_only = {EndReason.RUNNING, EndReason.ILLEGAL_ACTION}
    assert {deal.reason for deal in DEALS} == {r.text for r in set(EndReason) - env_only}
    assert {deal.game_points for deal in DEALS} == {0, 1, 2, 3}


@every_deal
def test_golden_deal_on_the_engine(deal: GoldenDeal) -> None:
    record = engine.new_record(0)
    engine.deal_deck(record, np.array(deal.deck, dtype=np.int64), deal.forehand)
    for action in deal.actions:
        assert not engine.is_over(record)
        if action.startswith(REVOKE):
            card = parse_card(action.removeprefix(REVOKE))
            assert engine.is_revoke(record, deal.rules.codes(), card)
            engine.revoke(record, deal.rules.codes(), card)
        else:
            engine.apply(record, deal.rules, parse_action(action))
    position = engine.position_of(record)
    assert (position.points(0), position.points(1)) == deal.points
    assert tuple(position.tricks) == deal.tricks
    assert position.result is not None
    assert position.result.end_reason.text == deal.reason
    assert position.result.winner == deal.winner
    assert position.result.game_points == deal.game_points


@every_deal
def test_golden_deal_on_the_referee(deal: GoldenDeal) -> None:
    table = referee.Deal(deal.rules, deal.deck, deal.forehand)
    for action in deal.actions:
        if action.startswith(REVOKE):
            table.revoke(parse_card(action.removeprefix(REVOKE)))
        else:
            table.apply(parse_action(action))
    assert (table.points(0), table.points(1)) == deal.points
    assert tuple(player.tricks for player in table.players) == deal.tricks
    assert table.result == (deal.reason, deal.winner, deal.game_points)


# Perft: the number of action sequences by depth --------------------------------------------------


def engine_deal(perft: Perft) -> npt.NDArray[np.int64]:
    record = engine.new_record(0)
    engine.deal_deck(record, np.array(perft.deck, dtype=np.int64), perft.forehand)
    for action in perft.actions:
        engine.apply(record, perft.rules, action)
    return record


def legal_actions(record: npt.NDArray[np.int64], codes: npt.NDArray[np.int64]) -> list[int]:
    mask = int(engine.legal(record, codes))
    return [action for action in range(NUM_ACTIONS) if mask >> action & 1]


def engine_perft(record: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], depth: int) -> int:
    """The number of ways to take ``depth`` actions, by the engine."""
    if engine.is_over(record) or depth == 0:
        return 1
    if depth == 1:
        return int(engine.legal(record, codes)).bit_count()
    return sum(engine_perft_by_action(record, codes, depth).values())


def engine_perft_by_action(
    record: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], depth: int
) -> dict[str, int]:
    """The same, split by the first action."""
    counts: dict[str, int] = {}
    for action in legal_actions(record, codes):
        after = record.copy()
        engine.step(after, codes, action)
        counts[action_text(action)] = engine_perft(after, codes, depth - 1)
    return counts


def test_perft_covers_every_rule_set_and_at_least_12_decks() -> None:
    assert len({perft.deck for perft in PERFTS}) >= 12
    assert min(Counter(perft.rules.name for perft in PERFTS).values()) >= 2
    assert {perft.rules.name for perft in PERFTS} == set(RULES)


@every_perft
def test_perft_of_the_engine(perft: Perft) -> None:
    record, codes = engine_deal(perft), perft.rules.codes()
    for depth, expected in enumerate(perft.counts, start=1):
        found = engine_perft(record, codes, depth)
        if found != expected:
            by_action = engine_perft_by_action(record, codes, depth)
            by_referee = referee_perft_by_action(referee_deal(perft), depth)
            actions = sorted({*by_action, *by_referee}, key=parse_action)
            lines = [
                f"  {text}: engine {by_action.get(text, 0)}, referee {by_referee.get(text, 0)}"
                for text in actions
            ]
            report = "\n".join([f"depth {depth}: {found}, expected {expected}", *lines])
            pytest.fail(f"{report}\nposition: {engine.position_of(record)}")


@every_perft
def test_perft_of_the_referee(perft: Perft) -> None:
    deal = referee_deal(perft)
    for depth, expected in enumerate(perft.counts[:REFEREE_DEPTH], start=1):
        assert referee_perft(deal, depth) == expected
