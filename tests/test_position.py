"""Positions: dict, text and record forms read back, and what contradicts itself is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schnapsen_env import RULES, Position, Rules, engine
from schnapsen_env.actions import EXCHANGE
from schnapsen_env.cards import CARD_POINTS, parse_card
from schnapsen_env.engine import record as r
from schnapsen_env.observation import observe
from schnapsen_env.position import AtClose, EndReason, Result
from schnapsen_env.solver import solve
from tests.random_play import choose, finished, moments

#: Each rule set, and one with everything that the named ones do not combine.
ALL_RULES = [
    *RULES.values(),
    Rules(
        name="all at once",
        trick_by="value",
        claims="turn",
        exchange_min=1,
        exchange_when="turn",
        last_trick_bonus=20,
        exhausted="claim_or_draw",
        schneider_by="card_points",
        close_valued_at="closing",
        close_failure="by_points",
        revoke="loses",
    ),
]


@cache
def reached(rules: Rules, seed: int) -> tuple[Any, ...]:
    """All moments of a match's first deals."""
    return tuple(moments(rules, 4, seed))


@st.composite
def reachable(draw: st.DrawFn) -> tuple[Rules, Any]:
    """A rule set and a record that play has reached, the deal's end included."""
    rules = draw(st.sampled_from(ALL_RULES))
    records = reached(rules, draw(st.integers(0, 60)))
    return rules, draw(st.sampled_from(records))


# ------------------------------------------------------------------------------------ round trips


@settings(max_examples=250, deadline=None)
@given(reachable())
def test_dict_and_text_read_back(moment: tuple[Rules, Any]) -> None:
    position = engine.position_of(moment[1])
    assert Position.from_dict(position.to_dict()) == position
    assert Position.from_dict(json.loads(json.dumps(position.to_dict()))) == position
    assert Position.from_text(str(position)) == position
    assert repr(position) == str(position)
    assert "\n" not in str(position)
    assert str(position).isascii()


@settings(max_examples=250, deadline=None)
@given(reachable())
def test_records_read_back_and_look_the_same(moment: tuple[Rules, Any]) -> None:
    rules, record = moment
    position = engine.position_of(record)
    again = engine.record_of(position, rules)
    assert engine.position_of(again) == position
    assert engine.legal(again, rules.codes()) == engine.legal(record, rules.codes())
    for seat in range(2):
        obs, mask = observe(record, rules.codes(), seat)
        obs_again, mask_again = observe(again, rules.codes(), seat)
        assert obs.tobytes() == obs_again.tobytes()
        assert mask.tobytes() == mask_again.tobytes()


@settings(max_examples=100, deadline=None)
@given(reachable(), st.integers(0, 1000))
def test_play_goes_on_from_a_position_as_it_would_have(
    moment: tuple[Rules, Any], seed: int
) -> None:
    rules, record = moment
    record = record.copy()
    again = engine.record_of(Position.from_text(str(engine.position_of(record))), rules)
    rng = np.random.default_rng(seed)
    while not engine.is_over(record):
        action = choose(rng, int(engine.legal(record, rules.codes())))
        engine.apply(record, rules, action)
        engine.apply(again, rules, action)
        assert engine.position_of(again) == engine.position_of(record)


def test_words_that_say_nothing_are_left_out() -> None:
    record = engine.new_record(0)
    engine.deal_deck(record, np.arange(20), 0)
    assert str(engine.position_of(record)) == (
        "trump=H turned_up=JH leader=0 hands=JCQCKCTCAC,JDQDKDTDAD talon=QHKHTHAHJSQSKSTSAS "
        "won=-,- forehand=0"
    )


def test_optional_keys_may_be_missing() -> None:
    position = Position.from_dict({"trump": "H", "hands": [["AH"], ["AS"]], "leader": 1} | PLAYED)
    assert position.forehand == 1
    assert position.match_score == (0, 0)
    assert position.known == ((), ())
    assert position.won is None
    record = engine.record_of(position, RULES["duel"])
    assert record[r.CARD_POINTS : r.CARD_POINTS + 2].tolist() == [49, 49]
    assert engine.position_of(record).tricks == (4, 5)


#: Nine tricks, whose cards are all but AH and AS.
PLAYED: dict[str, Any] = {"card_points": [49, 49], "tricks": [4, 5]}


def test_finished_deals_of_every_end_read_back() -> None:
    ends: set[EndReason] = set()
    for rules in ALL_RULES:
        for record in finished(rules, 60, seed=3):
            position = engine.position_of(record)
            assert position.result is not None
            ends.add(position.result.end_reason)
            assert Position.from_text(str(position)) == position
            assert engine.position_of(engine.record_of(position, rules)) == position
            assert not engine.legal(engine.record_of(position, rules), rules.codes())
    assert {
        EndReason.SIXTY_SIX,
        EndReason.LAST_TRICK,
        EndReason.FAILED_CLOSE,
        EndReason.WRONG_CLAIM,
    } <= ends


def test_drawn_revoked_and_illegal_deals_read_back() -> None:
    closed, drawn = Position.from_dict(CLOSED), Position.from_dict(PLAYED_OUT)
    replying = Position.from_dict(EXHAUSTED)
    for position, result in (
        (drawn, Result(None, 0, EndReason.DRAWN)),
        (closed, Result(None, 0, EndReason.ILLEGAL_ACTION)),
        (replying, Result(1, 2, EndReason.REVOKE)),
        (closed, Result(1, 3, EndReason.FAILED_CLOSE)),
    ):
        ended = replace(position, result=result)
        assert Position.from_text(str(ended)) == ended
        assert Position.from_dict(ended.to_dict()) == ended


# ----------------------------------------------------------------------------- inconsistent ones

#: Two tricks played, the talon open; every part is there, so that each can be spoilt. Seat 0 has
#: led JD and lost it to KH; seat 1 has declared in spades and led QS; seat 0 has exchanged.
OPEN: dict[str, Any] = {
    "trump": "H",
    "turned_up": "JH",
    "leader": 0,
    "hands": [["KC", "QC", "AD", "TS", "AH"], ["JC", "TD", "KS", "JS", "TH"]],
    "talon": ["KD", "QD", "TC", "AC", "QH"],
    "won": [["AS", "QS"], ["KH", "JD"]],
    "card_points": [14, 6],
    "tricks": [1, 1],
    "known": [["AH"], ["KS"]],
    "marriages": [[], ["S"]],
    "last_trick": ["QS", "AS"],
    "forehand": 0,
    "match_score": [1, 0],
}
#: The same deal, closed and a trick later: KC led, JC from a player who must beat if he can.
CLOSED: dict[str, Any] = OPEN | {
    "hands": [["QC", "AD", "TS", "AH"], ["TD", "KS", "JS", "TH"]],
    "won": [["AS", "QS", "KC", "JC"], ["KH", "JD"]],
    "card_points": [20, 6],
    "tricks": [2, 1],
    "closed_by": 0,
    "at_close": {"tricks": 1, "points": 26, "card_points": 6},
    "cannot_hold": [[], ["TC", "AC"]],
    "last_trick": ["KC", "JC"],
}
#: The talon is drawn, the seventh trick begun.
EXHAUSTED: dict[str, Any] = {
    "trump": "H",
    "leader": 1,
    "lead": "TC",
    "hands": [["KC", "QC", "TS", "AH"], ["JC", "QS", "TH"]],
    "won": [["AD", "TD", "AS", "KS", "KD", "QD"], ["KH", "JD", "JH", "QH", "AC", "JS"]],
    "card_points": [43, 24],
    "tricks": [3, 3],
    "known": [[], ["TH"]],
}

#: Nothing is played yet.
DEALT: dict[str, Any] = {
    "trump": "H",
    "turned_up": "JH",
    "leader": 0,
    "hands": [["KC", "QC", "KS", "QS", "AH"], ["JC", "TD", "AD", "JS", "TH"]],
    "talon": ["KD", "QD", "TC", "AC", "QH", "KH", "JD", "AS", "TS"],
    "forehand": 0,
}
#: Seat 0 has won both tricks.
TRICKLESS: dict[str, Any] = OPEN | {
    "hands": [["JC", "JS", "AD", "TS", "AH"], ["KC", "KD", "TD", "KS", "TH"]],
    "talon": ["TC", "AC", "QH", "JD", "KH"],
    "won": [["AS", "QS", "QC", "QD"], []],
    "card_points": [20, 0],
    "tricks": [2, 0],
    "known": [[], []],
    "marriages": [[], []],
    "last_trick": None,
}
#: OPEN, closed by the player on lead.
JUST_CLOSED: dict[str, Any] = OPEN | {
    "closed_by": 0,
    "at_close": {"tricks": 1, "points": 26, "card_points": 6},
}

#: All cards are played, and nobody has reached 66.
PLAYED_OUT: dict[str, Any] = {
    "trump": "H",
    "leader": 1,
    "hands": [[], []],
    "won": [
        ["AC", "AD", "AH", "AS", "TC", "TD"],
        ["TH", "TS", *"KC KD KH KS QC QD".split(), *"QH QS JC JD JH JS".split()],
    ],
    "card_points": [64, 56],
    "tricks": [3, 7],
    "result": {"winner": 1, "game_points": 1, "end_reason": "last_trick"},
}


def ended(winner: int | None, game_points: int, end_reason: str) -> dict[str, Any]:
    """The dict form of a result."""
    return {"winner": winner, "game_points": game_points, "end_reason": end_reason}


#: What is changed, in which position, and what the refusal must name.
INCONSISTENT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # Forms
    (OPEN, {"colour": "H"}, "unknown key 'colour'; known are trump"),
    (OPEN, {"trump": "X"}, "trump: 'X' is not a suit"),
    (OPEN, {"trump": 2}, "trump: 2 is not a suit"),
    (OPEN, {"turned_up": "11H"}, "turned_up: '11H' is not a card"),
    (OPEN, {"hands": [["AH"]]}, "hands: .*two"),
    (OPEN, {"hands": "AHKH"}, "hands: .*AHKH"),
    (OPEN, {"hands": [["ZZ"], []]}, "hands: 'ZZ' is not a card"),
    (OPEN, {"talon": "KD"}, "talon: .*KD"),
    (OPEN, {"leader": 2}, "leader: a seat is 0 or 1, not 2"),
    (OPEN, {"leader": True}, "leader: a seat is 0 or 1, not True"),
    (OPEN, {"closed_by": "0"}, "closed_by: a seat is 0 or 1, not '0'"),
    (OPEN, {"card_points": [21]}, "card_points: .*two"),
    (OPEN, {"card_points": [21.0, 6]}, "card_points: a count is a whole number from 0, not 21.0"),
    (OPEN, {"tricks": [1, -1]}, "tricks: a count is a whole number from 0, not -1"),
    (OPEN, {"match_score": [0, -2]}, "match_score: a count is a whole number from 0, not -2"),
    (OPEN, {"marriages": [["Z"], []]}, "marriages: 'Z' is not a suit"),
    (OPEN, {"last_trick": ["KH"]}, "last_trick: .*two"),
    (OPEN, {"forehand": 5}, "forehand: a seat is 0 or 1, not 5"),
    (CLOSED, {"at_close": 3}, "at_close: "),
    (
        CLOSED,
        {"at_close": {"tricks": 1, "points": 26, "cards": 6}},
        "at_close: unknown key 'cards'",
    ),
    (OPEN, {"result": {"winner": 0}}, "result: winner, game_points and end_reason are needed"),
    (
        OPEN,
        {"result": {"winner": 0, "game_points": 1, "end_reason": "boredom"}},
        "result: end_reason 'boredom' is none of sixty_six",
    ),
    # Cards in their places
    (OPEN, {"hands": [["KC", "QC", "AD", "TS", "TH"], OPEN["hands"][1]]}, "TH is in .* and in"),
    (OPEN, {"talon": ["KD", "QD", "TC", "AC", "AC"]}, "AC is in the talon and in the talon"),
    (OPEN, {"turned_up": "AH"}, "AH is in the hand of seat 0 and in turned_up"),
    (OPEN, {"lead": "AH"}, "AH is in the hand of seat 0 and in lead"),
    (OPEN, {"won": [["AS", "QS"], ["KH", "AD"]]}, "AD is in the hand of seat 0 and in the tricks"),
    (OPEN, {"won": [["AS", "QS"], ["KH"]]}, "JD is nowhere"),
    (
        OPEN | {"won": None},
        {"tricks": [2, 1]},
        "16 cards and two in each of 3 tricks make 22 cards",
    ),
    # The talon
    (OPEN, {"turned_up": None}, "JH is nowhere"),
    (OPEN, {"talon": [*OPEN["talon"], "JH"], "turned_up": None}, "not 6"),
    (
        EXHAUSTED,
        {"turned_up": "TH", "hands": [EXHAUSTED["hands"][0], ["JC", "QS"]], "known": [[], []]},
        "turned_up is null exactly when the talon is empty",
    ),
    (OPEN, {"trump": "S", "marriages": [[], []]}, "turned_up JH is not of the trump suit"),
    (
        OPEN,
        {"talon": ["KD", "QD", "TC", "AC"], "hands": [["QH", *OPEN["hands"][0]], OPEN["hands"][1]]},
        "the talon holds 9, 7, 5, 3, 1 or 0 face-down cards, not 4",
    ),
    (
        OPEN,
        {
            "talon": OPEN["talon"][:3],
            "hands": [["AC", *OPEN["hands"][0]], ["QH", *OPEN["hands"][1]]],
        },
        "2 tricks and 3 face-down cards do not fit",
    ),
    (
        OPEN,
        {
            "talon": OPEN["talon"][:3],
            "hands": [["AC", "QH", *OPEN["hands"][0]], OPEN["hands"][1]],
        },
        "hands of 7 and 5 cards do not fit",
    ),
    (
        EXHAUSTED,
        {"closed_by": 0, "at_close": {"tricks": 0, "points": 0}},
        "a closed talon still has",
    ),
    (
        OPEN,
        {
            "talon": [*OPEN["talon"], "JC", "TD"],
            "hands": [["KC", "QC", "AD", "TS"], ["KS", "JS", "TH", "AH"]],
        },
        "2 tricks and 7 face-down cards do not fit",
    ),
    (
        OPEN,
        {"talon": [*OPEN["talon"], "JC", "TD"], "hands": [OPEN["hands"][0], ["KS", "JS", "TH"]]},
        "hands of 5 and 3 cards do not fit",
    ),
    (
        PLAYED_OUT,
        {"result": None},
        "both hands are empty and no result is given",
    ),
    # Tricks and points
    (OPEN, {"tricks": [2, 0]}, "seat 0 has 2 tricks and 2 cards in them"),
    (OPEN, {"tricks": [2, 1]}, "3 tricks and 5 face-down cards do not fit"),
    (OPEN, {"last_trick": ["KH", "AH"]}, "a card of last_trick has not been played"),
    (OPEN, {"last_trick": ["JD", "KH"]}, "seat 1 has won last_trick, so it leads, not seat 0"),
    (OPEN, {"card_points": [15, 6]}, "the tricks of seat 0 make 14 card points, not 15"),
    (OPEN, {"card_points": [14, 5]}, "the tricks of seat 1 make 6 card points, not 5"),
    (OPEN, {"card_points": [34, 6]}, "the tricks of seat 0 make 14 card points, not 34"),
    (
        OPEN | {"won": None},
        {"card_points": [19, 1]},
        "no 1 and 1 tricks of the cards played, which count 20, make",
    ),
    (
        OPEN | {"won": None},
        {"card_points": [14, 7]},
        "no 1 and 1 tricks of the cards played, which count 20, make",
    ),
    (
        OPEN | {"won": None, "last_trick": None},
        {"last_trick": ["KH", "JD"]},
        "no 1 and 1 tricks of the cards played, which count 20, make",
    ),
    (PLAYED_OUT, {"card_points": [74, 56]}, "the tricks of seat 0 make 64 card points, not 74"),
    (PLAYED_OUT, {"card_points": [64, 77]}, "the tricks of seat 1 make 56 card points, not 77"),
    (OPEN, {"last_trick": ["KH", "KH"]}, "last_trick is two cards of a completed trick"),
    (OPEN, {"last_trick": ["AS", "KH"]}, "the cards of last_trick are not in the tricks of one"),
    (
        OPEN | {"won": None},
        {"last_trick": ["AC", "KH"]},
        "a card of last_trick has not been played",
    ),
    (CLOSED, {"tricks": [3, 1], "won": None}, "14 cards and .* make 22 cards, not 20"),
    # Leads
    (DEALT, {"leader": 1}, "no trick has been played, so forehand .seat 0. leads, not seat 1"),
    (
        TRICKLESS,
        {"forehand": 0, "leader": 1},
        "seat 1 cannot lead: it has won no trick, and seat 0 is forehand",
    ),
    # Marriages
    (OPEN, {"marriages": [["C"], ["C"]]}, "both players have declared the same marriage"),
    (OPEN, {"marriages": [["C", "C"], []]}, "seat 0 has declared a marriage twice"),
    (OPEN, {"marriages": [["S"], []]}, "seat 0 cannot have declared the marriage of S: KS was"),
    (OPEN, {"marriages": [[], ["D"]]}, "seat 1 cannot have declared the marriage of D"),
    (OPEN, {"marriages": [["H"], []]}, "cannot have declared the marriage of H: QH was never in"),
    (
        EXHAUSTED
        | {"lead": "KC", "leader": 0, "hands": [["QC", "TS", "AH"], ["JC", "QS", "TH", "TC"]]},
        {"marriages": [[], ["C"]]},
        "seat 1 cannot have declared the marriage of C",
    ),
    (OPEN, {"declared": "C"}, "declared C is not among the marriages of the leader"),
    (
        EXHAUSTED | {"hands": [["KC", "QC", "TS", "AH"], ["JC", "QS", "TH"]]},
        {"declared": "C", "marriages": [["C"], []], "leader": 1},
        "declared C is not among the marriages of the leader",
    ),
    (
        OPEN,
        {
            "declared": "S",
            "leader": 1,
            "marriages": [["C"], ["S"]],
            "hands": [OPEN["hands"][0], ["JC", "TD", "KS", "JS", "TH"]],
            "last_trick": None,
        },
        "declared S needs king and queen in the hand of the leader on lead",
    ),
    (OPEN, {"marriages": [["C"], ["S"]]}, "seat 0 holds king and queen of C and cannot have"),
    (
        DEALT,
        {"marriages": [["C", "S"], []], "declared": "C"},
        "seat 0 holds king and queen of S and cannot have declared that marriage",
    ),
    (
        TRICKLESS,
        {"marriages": [[], ["C"]], "forehand": 0},
        "seat 1 has declared 1 marriages before this lead and has led only 0 times",
    ),
    (
        TRICKLESS,
        {"marriages": [[], ["C", "D"]]},
        "seat 1 has declared 2 marriages before this lead and has led only [01] times",
    ),
    # Knowledge
    (OPEN, {"known": [["AH", "AH"], ["KS"]]}, "known has AH twice for seat 0"),
    (CLOSED, {"cannot_hold": [[], ["TC", "AC", "TC"]]}, "cannot_hold has TC twice for seat 1"),
    (OPEN, {"known": [["TH"], []]}, "known TH is not in the hand of seat 0"),
    (OPEN, {"known": [[], ["QH"]]}, "known QH is not in the hand of seat 1"),
    (CLOSED, {"cannot_hold": [[], ["TD"]]}, "cannot_hold TD is in the hand of seat 1"),
    (OPEN, {"cannot_hold": [[], ["AC"]]}, "cannot_hold comes from strict-phase replies"),
    (
        JUST_CLOSED,
        {"cannot_hold": [[], ["AC"]]},
        "cannot_hold comes from strict-phase replies, and there has been none",
    ),
    # Closing
    (
        DEALT,
        {"closed_by": 1, "at_close": {"tricks": 0, "points": 0}},
        "seat 1 cannot have closed: .* it was never on lead",
    ),
    (
        TRICKLESS,
        {"closed_by": 1, "at_close": {"tricks": 2, "points": 20}, "forehand": 0},
        "seat 1 cannot have closed: .* it was never on lead",
    ),
    (
        JUST_CLOSED
        | {"marriages": [[], []], "at_close": {"tricks": 1, "points": 6}, "last_trick": None},
        {"leader": 1},
        "no trick has been played since seat 0 closed",
    ),
    (CLOSED, {"at_close": {"tricks": 0, "points": 0}, "tricks": [1, 2]}, "seat 0 has 1 tricks"),
    (JUST_CLOSED, {"at_close": {"tricks": 0, "points": 0}}, "cannot have had 0 tricks"),
    (JUST_CLOSED, {"at_close": {"tricks": 1, "points": 6}}, "cannot have had 6 points"),
    (CLOSED, {"at_close": {"tricks": 1, "points": 25}}, "cannot have had 25 points"),
    (CLOSED, {"at_close": None}, "at_close is given exactly when closed_by is"),
    (OPEN, {"at_close": {"tricks": 0, "points": 0}}, "at_close is given but closed_by is not"),
    (CLOSED, {"at_close": {"tricks": 2, "points": 26}}, "cannot have had 2 tricks at the closing"),
    (
        CLOSED,
        {"at_close": {"tricks": 1, "points": 40}},
        "cannot have had 40 points .40 without marriages. at the closing",
    ),
    (
        CLOSED,
        {"at_close": {"tricks": 1, "points": 6, "card_points": 26}},
        "cannot have had 6 points .26 without marriages. at the closing",
    ),
    (CLOSED, {"at_close": {"tricks": 0, "points": 6}}, "at_close has points without a trick"),
    # Results
    (
        CLOSED,
        {"result": {"winner": None, "game_points": 2, "end_reason": "sixty_six"}},
        "a result has a winner exactly when it has game points",
    ),
    (
        CLOSED,
        {"result": {"winner": 0, "game_points": 0, "end_reason": "drawn"}},
        "a result has a winner exactly when it has game points",
    ),
    (
        CLOSED,
        {"result": {"winner": 0, "game_points": 4, "end_reason": "sixty_six"}},
        "is not the result of a deal",
    ),
    (
        CLOSED,
        {"result": {"winner": 0, "game_points": 1, "end_reason": "drawn"}},
        "is not the result of a deal",
    ),
    (
        CLOSED,
        {"result": {"winner": None, "game_points": 0, "end_reason": "sixty_six"}},
        "is not the result of a deal",
    ),
    (CLOSED, {"result": ended(0, 1, "sixty_six")}, "deal: seat 0 has only 20 points"),
    (CLOSED, {"result": ended(1, 2, "sixty_six")}, "deal: seat 0 has closed, so the reason is"),
    (CLOSED, {"result": ended(0, 2, "failed_close")}, "deal: seat 1 has not closed"),
    (CLOSED, {"result": ended(None, 0, "drawn")}, "deal: a draw needs all cards"),
    (CLOSED, {"result": ended(0, 2, "wrong_claim")}, "deal: seat 0 was to move, not seat 1"),
    (EXHAUSTED, {"result": ended(1, 3, "revoke")}, "deal: it is worth 3 to a winner without a"),
    (OPEN, {"result": ended(1, 2, "revoke")}, "deal: a revoke is a reply in the strict phase"),
    (EXHAUSTED, {"result": ended(1, 1, "last_trick")}, "deal: 1 game point is for the winner"),
    (PLAYED_OUT, {"result": ended(0, 1, "last_trick")}, "deal: 1 game point is for the winner"),
    (PLAYED_OUT, {"result": ended(None, 0, "illegal_action")}, "deal: nobody was to move any more"),
    (PLAYED_OUT, {"result": ended(0, 2, "wrong_claim")}, "deal: nobody was to move any more"),
]


def test_the_positions_to_spoil_are_right() -> None:
    for position in (OPEN, CLOSED, EXHAUSTED, PLAYED_OUT, DEALT, TRICKLESS, JUST_CLOSED):
        assert Position.from_dict(Position.from_dict(position).to_dict())
    assert len(INCONSISTENT) >= 40


@pytest.mark.parametrize(
    ("position", "change", "message"), INCONSISTENT, ids=[case[2][:50] for case in INCONSISTENT]
)
def test_what_contradicts_itself_is_refused_by_name(
    position: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    Position.from_dict(position)
    with pytest.raises(ValueError, match="position") as caught:
        Position.from_dict(position | change)
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("key", ["trump", "hands", "leader"])
def test_keys_that_cannot_be_guessed_must_be_there(key: str) -> None:
    with pytest.raises(ValueError, match=f"the key '{key}' is missing"):
        Position.from_dict({name: value for name, value in OPEN.items() if name != key})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trump", "'trump' is not key=value with a known key"),
        ("trump=H trump=H", "'trump' is given twice"),
        ("colour=H", "'colour=H' is not key=value with a known key"),
        ("trump=H leader=zero hands=-,-", "leader: 'zero' is not a whole number"),
        ("trump=H leader=0 hands=AHKHQ,-", "'Q' is not a card"),
        ("trump=H leader=0 hands=AH,- result=0/1", "is not winner/game_points/end_reason"),
        ("trump=H leader=0 hands=AH,- at_close=0", "at_close='0' is not tricks/points or "),
        ("trump=H leader=0 hands=AH,- at_close=0/0/0/9/77", "at_close='0/0/0/9/77' is not tricks"),
        ("trump=H leader=0", "the key 'hands' is missing"),
        ("", "the key 'trump' is missing"),
    ],
)
def test_texts_that_are_no_position_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="position") as caught:
        Position.from_text(text)
    assert re.search(message, str(caught.value)), str(caught.value)


@settings(max_examples=300, deadline=None)
@given(reachable(), st.data())
def test_a_damaged_text_is_refused_or_is_another_position(
    moment: tuple[Rules, Any], data: st.DataObject
) -> None:
    """Never any other kind of error."""
    text = str(engine.position_of(moment[1]))
    place = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.sampled_from("CDHSJQKTA0123456789-,/= x"))
    fault, position = "", None
    try:
        position = Position.from_text(text[:place] + put + text[place + 1 :])
    except ValueError as error:
        fault = str(error)
    assert position is not None or fault.startswith(("position: ", "position text: "))
    assert position is None or Position.from_text(str(position)) == position


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trump_suit": 4}, "trump_suit is 0-3, not 4"),
        ({"leader": 2}, "leader is 0 or 1, not 2"),
        ({"forehand": -1}, "forehand is 0 or 1, not -1"),
        ({"closed_by": 7}, "closed_by is null, 0 or 1, not 7"),
        ({"match_score": (-1, 0)}, "match_score is two whole numbers from 0 to 999999999, not -1"),
        ({"match_score": (0, 2**63)}, "match_score is two whole numbers from 0 to 999999999"),
        ({"match_score": (0, 1.0)}, "match_score is two whole numbers from 0 to 999999999"),
        ({"match_score": 3}, "match_score is a tuple, not 3"),
        ({"leader": True}, "leader is 0 or 1, not True"),
        ({"leader": 0.0}, "leader is 0 or 1, not 0.0"),
        ({"forehand": 1.0}, "forehand is 0 or 1, not 1.0"),
        ({"forehand": np.array([0, 1])}, "forehand is 0 or 1, not array([0, 1])"),
        ({"trump_suit": 2.0}, "trump_suit is 0-3, not 2.0"),
        ({"lead": 3.0}, "3.0 is not a card id"),
        ({"declared": 4}, "declared is 0-3, not 4"),
        ({"marriages": ((), (7,))}, "marriages is 0-3, not 7"),
        ({"cannot_hold": ((), (25,))}, "25 is not a card id"),
        ({"won": ((), (), ())}, "won has two items, one a seat"),
        ({"tricks": (10**30, 0)}, "tricks is two whole numbers from 0 to 999"),
        ({"result": 3}, "result is a Result, not 3"),
        ({"at_close": (0, 0, 0)}, "at_close is an AtClose, not (0, 0, 0)"),
        ({"hands": ((20,), ())}, "20 is not a card id"),
        ({"tricks": (-1, 0)}, "tricks"),
        ({"result": Result(0, 1, EndReason.RUNNING)}, "is not the result of a deal"),
        ({"at_close": AtClose(0, 0, 0)}, "at_close is given exactly when closed_by is"),
    ],
)
def test_the_constructor_checks_too(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="position: ") as caught:
        replace(Position.from_dict(OPEN), **changes)
    assert message in str(caught.value)


def test_a_deal_that_the_rules_would_have_ended_is_refused() -> None:
    rich = EXHAUSTED | {"hands": [["KC", "JC", "TS", "AH"], ["QS", "TC", "TH"]], "lead": "JS"}
    rich |= {"won": None, "card_points": [68, 0], "tricks": [6, 0], "leader": 1, "forehand": 1}
    rich |= {"known": [[], []], "marriages": [["C"], []]}
    with pytest.raises(ValueError, match="seat 0 has 88 points, so under 'duel'"):
        engine.record_of(Position.from_dict(rich), RULES["duel"])
    engine.record_of(Position.from_dict(rich), RULES["pagat"])
    with pytest.raises(ValueError, match=r"the talon is closed with 5 .* close_min=99"):
        engine.record_of(Position.from_dict(CLOSED), replace(RULES["pagat"], close_min=99))


# ---------------------------------------------------------------------- what is taken nevertheless


def test_integers_of_every_kind_are_kept_as_plain_ones() -> None:
    position = Position.from_dict(OPEN)
    other = replace(
        position,
        leader=np.int64(0),
        forehand=np.array(0),
        trump_suit=np.int8(2),
        hands=tuple([np.int64(card) for card in hand] for hand in position.hands),  # type: ignore[arg-type]
        match_score=(np.uint8(1), np.int64(0)),
    )
    assert other == position
    assert hash(other) == hash(position)
    assert json.loads(json.dumps(other.to_dict())) == position.to_dict()


def test_the_largest_match_score_reads_back() -> None:
    position = Position.from_dict(OPEN | {"match_score": [999_999_999, 1000]})
    assert Position.from_text(str(position)) == position
    record = engine.record_of(position, RULES["duel"])
    assert engine.position_of(record).match_score == (999_999_999, 1000)


def test_forehand_is_the_leader_or_else_whoever_it_can_have_been() -> None:
    def forehand(position: dict[str, Any]) -> int:
        return Position.from_dict(
            {key: value for key, value in position.items() if key != "forehand"}
        ).forehand

    assert forehand(TRICKLESS) == 0
    # Only on the first lead can seat 1, without a trick, have declared or closed.
    assert forehand(TRICKLESS | {"marriages": [[], ["C"]]}) == 1
    closed = {"closed_by": 1, "at_close": {"tricks": 0, "points": 0}}
    hands = [["JC", "JS", "AD"], ["KC", "KD", "TD"]]
    talon = ["TC", "AC", "QH", "JD", "KH", "TS", "AH", "KS", "TH"]
    assert forehand(TRICKLESS | closed | {"hands": hands, "talon": talon}) == 1


def test_the_card_points_at_a_closing_follow_where_only_one_number_can_be() -> None:
    at_close = {"tricks": 1, "points": 26}
    for position in (CLOSED, JUST_CLOSED):
        assert Position.from_dict(position | {"at_close": at_close}) == Position.from_dict(position)


def test_a_last_trick_without_won_goes_to_the_leader() -> None:
    """Whatever else is divided in some way that fits the card points."""
    for rules in ALL_RULES:
        for record in reached(rules, 1):
            position = engine.position_of(record)
            assert_read_back_without_won(position, rules)


def assert_read_back_without_won(position: Position, rules: Rules) -> None:
    given = {key: value for key, value in position.to_dict().items() if key != "won"}
    again = engine.position_of(engine.record_of(Position.from_dict(given), rules))
    assert replace(again, won=None) == replace(position, won=None)


def points_of_cards(position: Position) -> list[int]:
    return [sum(CARD_POINTS[card] for card in cards) for cards in position.won or ()]


def test_played_out_deals_with_a_bonus_read_back_without_won() -> None:
    """The bonus for the last trick is in the leader's card points, and no cards explain it."""
    leaders: set[int] = set()
    for rules in (RULES["last_trick_ten"], ALL_RULES[-1]):
        for record in finished(rules, 60, seed=5):
            position = engine.position_of(record)
            seat, cards = position.leader, points_of_cards(position)
            if position.card_points[seat] > cards[seat]:
                leaders.add(seat)
                assert position.card_points[seat] == cards[seat] + rules.last_trick_bonus
                assert_read_back_without_won(position, rules)
    assert leaders == {0, 1}


@pytest.mark.parametrize(
    ("tricks", "card_points", "fits"),
    [
        ([0, 10], [0, 120], True),
        ([0, 10], [0, 140], True),
        ([0, 10], [0, 141], False),
        ([0, 10], [0, 119], False),
        ([0, 10], [10, 120], False),
    ],
)
def test_a_bonus_without_won_is_the_leaders_and_at_most_20(
    tricks: list[int], card_points: list[int], fits: bool
) -> None:
    played_out = PLAYED_OUT | {"card_points": card_points, "tricks": tricks}
    del played_out["won"]
    if fits:
        position = Position.from_dict(played_out)
        record = engine.record_of(position, RULES["last_trick_ten"])
        assert points_of_cards(engine.position_of(record)) == [0, 120]
    else:
        with pytest.raises(ValueError, match="no 0 and 10 tricks of the cards"):
            Position.from_dict(played_out)


def test_what_is_no_dict_and_no_text_is_refused_by_type() -> None:
    wrong: Any
    for wrong in (None, 5, [1], "trump=H"):
        with pytest.raises(TypeError, match="a dict is needed"):
            Position.from_dict(wrong)
    for wrong in (None, 5, OPEN):
        with pytest.raises(TypeError, match="a text is needed"):
            Position.from_text(wrong)
    mixed: Any = {3: 4, "x": 5}
    with pytest.raises(ValueError, match="unknown key"):
        Position.from_dict(mixed)
    no_reason: list[str] = []
    result: dict[str, Any] = ended(0, 1, "drawn") | {"end_reason": no_reason}
    with pytest.raises(ValueError, match=r"end_reason \[\] is none of"):
        Position.from_dict(OPEN | {"result": result})


def test_one_trick_at_the_closing_may_stand_for_more() -> None:
    """As published endgames have it, whose writers ask only whether there were any."""
    closed = TRICKLESS | {
        "closed_by": 1,
        "leader": 1,
        "forehand": 1,
        "at_close": {"tricks": 1, "points": 20},
    }
    position = Position.from_dict(closed)
    assert position.at_close == AtClose(1, 20, 20)
    assert Position.from_text(str(position)) == position
    with pytest.raises(ValueError, match="cannot have had 19 points"):
        Position.from_dict(closed | {"at_close": {"tricks": 1, "points": 19}})


def test_a_known_jack_is_no_longer_in_the_hand_after_its_exchange() -> None:
    """No play makes the trump jack known before its exchange, but a position may say that it is."""
    rules = RULES["duel"]
    position = Position.from_text(
        "trump=H turned_up=KH leader=0 lead=TD hands=JCADJHJS,QDKDAHKSTS talon=JDQHQSTHQCASAC "
        "card_points=14,0 tricks=1,0 known=JH,- last_trick=TCKC forehand=0"
    )
    record = engine.record_of(position, rules)
    for action in (parse_card("QD"), EXCHANGE):
        engine.apply(record, rules, action)
    after = engine.position_of(record)
    assert after.turned_up == parse_card("JH")
    assert after.known == ((parse_card("KH"),), ())


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parent.parent / "docs" / "positions.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    with pytest.raises(ValueError, match="known are") as caught:
        Position.from_dict({"colour": 1})
    known = str(caught.value).partition("known are ")[2].split(", ")
    assert sorted(named) == sorted(known)


def test_a_record_is_no_position_and_the_message_says_how_to_read_it() -> None:
    record: Any = engine.new_record(0)
    with pytest.raises(TypeError, match=r"not ndarray: .*engine\.position_of"):
        solve(record)
