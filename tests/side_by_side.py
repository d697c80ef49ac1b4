"""The engine and the referee at one table: the same deal, action by action, everything compared.

:func:`play_deal` plays one random deal on both and returns the first difference as text, or None.
``tests/test_referee.py`` runs it in the test suite, ``tests/compare_million.py`` for as long as one
likes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE, action_text
from schnapsen_env.cards import NUM_CARDS, card_text, cards_of
from schnapsen_env.engine import record as r
from schnapsen_env.position import EndReason
from schnapsen_env.rules import Rules
from tests import referee

Record = npt.NDArray[np.int64]
Policy = Callable[[random.Random, referee.Deal, list[int]], int]

_TALON_STATES: Final = {
    referee.OPEN: r.OPEN,
    referee.CLOSED: r.CLOSED,
    referee.EXHAUSTED: r.EXHAUSTED,
}
_REASONS: Final = {reason.text: int(reason) for reason in EndReason}


# Ways to play -----------------------------------------------------------------------------------


def wild(rng: random.Random, _deal: referee.Deal, legal: list[int]) -> int:
    """Any legal action: most deals end early, by a closing or a wrong claim."""
    return rng.choice(legal)


def quiet(rng: random.Random, _deal: referee.Deal, legal: list[int]) -> int:
    """Cards, and seldom anything else: deals get to the last trick, marriages go undeclared."""
    cards = [action for action in legal if action < FIRST_DECLARE]
    return rng.choice(legal if rng.random() < 0.03 else cards)


def keen(rng: random.Random, deal: referee.Deal, legal: list[int]) -> int:
    """Declares and exchanges whenever it can, claims when it is right, closes now and then."""
    if legal[-1] == CLAIM:
        right = deal.points(deal.to_move) >= 66
        if rng.random() < (0.5 if right else 0.005):
            return CLAIM
        legal = legal[:-1]
    for action in legal:
        if FIRST_DECLARE <= action <= EXCHANGE and rng.random() < 0.8:
            return action
    if legal[-1] == CLOSE:
        if rng.random() < 0.1:
            return CLOSE
        legal = legal[:-1]
    return rng.choice(legal)


POLICIES: Final[tuple[Policy, ...]] = (wild, quiet, keen)


# What is compared --------------------------------------------------------------------------------


def _mask(items: Iterable[int]) -> int:
    return sum([1 << item for item in items])


def _or_none(value: int | None) -> int:
    return r.NONE if value is None else value


def expected_fields(deal: referee.Deal, score_before: Sequence[int]) -> list[tuple[int, int]]:
    """The record as the referee sees it: offset of a field and the value that should be there."""
    players = deal.players
    at_close = deal.at_close
    last_trick = deal.last_trick or (r.NONE, r.NONE)
    fields = [
        (r.LEADER, deal.leader),
        (r.LED, _or_none(deal.led)),
        (r.DECLARED, _or_none(deal.declared)),
        (r.TRUMP, deal.trump_suit),
        (r.TURNED_UP, _or_none(deal.turned_up)),
        (r.FACE_DOWN, deal.face_down_count),
        (r.TALON_STATE, _TALON_STATES[deal.talon_state]),
        (r.CLOSED_BY, _or_none(deal.closer)),
        (r.LAST_LEAD, last_trick[0]),
        (r.LAST_REPLY, last_trick[1]),
        (r.FOREHAND, deal.forehand),
    ]
    if at_close is not None:
        fields += [
            (r.CLOSE_TRICKS, at_close.tricks),
            (r.CLOSE_POINTS, at_close.points),
            (r.CLOSE_CARD_POINTS, at_close.card_points),
        ]
    for seat, player in enumerate(players):
        fields += [
            (r.HAND + seat, _mask(player.hand)),
            (r.WON + seat, _mask(player.won)),
            (r.CARD_POINTS + seat, player.card_points),
            (r.TRICKS + seat, player.tricks),
            (r.MARRIAGES + seat, _mask(player.marriages)),
            (r.KNOWN + seat, _mask(player.known)),
            (r.CANNOT_HOLD + seat, _mask(player.cannot_hold)),
        ]
    scores = list(score_before)
    if deal.result is None:
        fields += [(r.END_REASON, 0), (r.TO_MOVE, deal.to_move)]
    else:
        result = deal.result
        if result.winner is not None:
            scores[result.winner] += result.game_points
        fields += [
            (r.END_REASON, _REASONS[result.reason]),
            (r.WINNER, _or_none(result.winner)),
            (r.GAME_POINTS, result.game_points),
        ]
    fields += [(r.MATCH_SCORE, scores[0]), (r.MATCH_SCORE + 1, scores[1])]
    return fields


_FIELD_AT: Final = {
    field.offset + seat: field.name + (f"[{seat}]" if field.width == 2 else "")
    for field in engine.RECORD_TABLE
    for seat in range(field.width)
}
_CARD_SETS: Final = ("HAND", "WON", "KNOWN", "CANNOT_HOLD")


def _value_text(name: str, value: int) -> str:
    if name.partition("[")[0] in _CARD_SETS:
        return "{" + " ".join(map(card_text, cards_of(value))) + "}"
    return str(value)


def record_difference(
    record: Record, deal: referee.Deal, score_before: Sequence[int] = (0, 0)
) -> str | None:
    """The first field of ``record`` that is not what the referee says."""
    values = record.tolist()
    for offset, expected in expected_fields(deal, score_before):
        if values[offset] != expected:
            name = _FIELD_AT[offset]
            engine_text = _value_text(name, values[offset])
            return f"{name}: engine {engine_text}, referee {_value_text(name, expected)}"
    return None


def legal_difference(record: Record, codes: Record, deal: referee.Deal) -> str | None:
    """The legal actions that only one of the two has."""
    actual, expected = int(engine.legal(record, codes)), _mask(deal.legal_actions())
    if actual == expected:
        return None
    only = [
        f"only {who}: {' '.join(action_text(a) for a in range(27) if mask >> a & 1)}"
        for who, mask in (("engine", actual & ~expected), ("referee", expected & ~actual))
        if mask
    ]
    return f"legal actions, {', '.join(only)}"


def revoke_difference(record: Record, codes: Record, deal: referee.Deal) -> str | None:
    """A card that only one of the two calls a revoke."""
    revokes = deal.revokes()
    for card in range(NUM_CARDS):
        if bool(engine.is_revoke(record, codes, card)) != (card in revokes):
            return f"revoke with {card_text(card)}: the referee says {card in revokes}"
    return None


def position_difference(record: Record, deal: referee.Deal) -> str | None:
    """What the readable form of the record says otherwise than the referee."""
    position = engine.position_of(record)
    players = deal.players
    pairs: list[tuple[str, Any, Any]] = [
        ("talon", list(position.talon), deal.talon),
        ("turned_up", position.turned_up, deal.turned_up),
        ("talon_state", position.talon_state.lower(), deal.talon_state),
        ("hands", [set(hand) for hand in position.hands], [set(p.hand) for p in players]),
        ("won", [set(won) for won in position.won or ()], [set(p.won) for p in players]),
        ("points", [position.points(0), position.points(1)], [deal.points(0), deal.points(1)]),
        ("card_points", list(position.card_points), [p.card_points for p in players]),
        ("marriages", [set(m) for m in position.marriages], [set(p.marriages) for p in players]),
        ("known", [set(known) for known in position.known], [set(p.known) for p in players]),
        ("last_trick", position.last_trick, deal.last_trick),
        ("lead", position.lead, deal.led),
        ("at_close", position.at_close is None, deal.at_close is None),
    ]
    if deal.result is not None and position.result is not None:
        found = position.result
        pairs += [
            ("reason", found.end_reason.text, deal.result.reason),
            ("winner", found.winner, deal.result.winner),
            ("game_points", found.game_points, deal.result.game_points),
        ]
    for name, actual, expected in pairs:
        if actual != expected:
            return f"position {name}: engine {actual}, referee {expected}"
    return None


# One deal ----------------------------------------------------------------------------------------


def random_rules(rng: random.Random) -> Rules:
    """A rule set with a random value in every field."""
    chosen: dict[str, Any] = {
        rule.name: rng.choice(rule.metadata["values"])
        for rule in fields(Rules)
        if "values" in rule.metadata
    }
    return Rules(**chosen)


def play_deal(
    rules: Rules, rng: random.Random, *, reasons: Counter[str] | None = None
) -> str | None:
    """One random deal on both sides; the first difference as text, or None.

    The deck, the forehand, the way of playing and every choice come from ``rng``. ``reasons``
    counts how deals ended.
    """
    deck = list(range(NUM_CARDS))
    rng.shuffle(deck)
    forehand = rng.randrange(2)
    policy = rng.choice(POLICIES)
    # In one deal of four a strict reply may also be a revoke, where the rules let it happen.
    revoking = rules.revoke == "loses" and rng.random() < 0.25
    codes = rules.codes()
    record = engine.new_record(0)
    engine.deal_deck(record, np.array(deck, dtype=np.int64), forehand)
    deal = referee.Deal(rules, deck, forehand)
    actions: list[str] = []
    difference = record_difference(record, deal) or position_difference(record, deal)
    while difference is None and not deal.over:
        legal = deal.legal_actions()
        difference = legal_difference(record, codes, deal)
        if difference is None and deal.strict and deal.led is not None:
            difference = revoke_difference(record, codes, deal)
        if difference is not None:
            break
        revokes = deal.revokes() if revoking else []
        if revokes and rng.random() < 0.3:
            card = rng.choice(revokes)
            actions.append(f"revoke-{card_text(card)}")
            deal.revoke(card)
            engine.revoke(record, codes, card)
        else:
            action = policy(rng, deal, legal)
            actions.append(action_text(action))
            deal.apply(action)
            engine.step(record, codes, action)
        difference = record_difference(record, deal)
        if difference is None and rng.random() < 0.05:
            difference = position_difference(record, deal)
    if deal.result is not None:
        difference = difference or legal_difference(record, codes, deal)
        if reasons is not None:
            reasons[deal.result.reason] += 1
    if difference is None:
        return None
    return (
        f"{difference}\nafter: {' '.join(actions) or '(the deal)'}\nforehand: {forehand}\n"
        f"deck: {' '.join(map(card_text, deck))}\nrules: {rules}"
    )
