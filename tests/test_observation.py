"""The observation: its table, its inverse, the orders of suits, and what limited memories hide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest

from schnapsen_env import RULES, Layout, Position, Rules, describe, engine
from schnapsen_env.actions import EXCHANGE, FIRST_DECLARE, NUM_ACTIONS, action_text, parse_action
from schnapsen_env.cards import (
    HAND_SIZE,
    NUM_CARDS,
    SUITS,
    TALON_SIZE,
    card_text,
    cards_of,
    parse_card,
)
from schnapsen_env.engine import record as r
from schnapsen_env.observation import (
    DEFAULT_LAYOUT,
    STATE_SIZE,
    Field,
    Memory,
    Suits,
    decode,
    encode,
    encode_state,
    layout_table,
    natural_action,
    observe,
)
from schnapsen_env.view import PERFECT, view
from tests.random_play import moments, running

Record = npt.NDArray[np.int64]

LAYOUTS = [
    Layout(memory, suits, history)
    for memory, suits, history in product(get_args(Memory), get_args(Suits), (False, True))
    if memory == "perfect" or not history
]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)
every_rule_set = pytest.mark.parametrize("rules", RULES.values(), ids=lambda rules: rules.name)


def write(
    record: Record, codes: npt.NDArray[np.int64], seat: int, layout: Layout, dtype: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Observation and mask in either form, over arrays that hold something else before."""
    out: npt.NDArray[Any] = np.full(layout.size, 77, dtype=dtype)
    mask = np.full(NUM_ACTIONS, 77, dtype=np.int8)
    memory, suits, history = layout.memory_code, layout.suits_code, layout.history_code
    encode(record, codes, seat, memory, suits, history, int(dtype == np.float32), out, mask)
    return out, mask


# ------------------------------------------------------------------------------------- the table


@every_layout
def test_the_fields_follow_each_other_without_gaps(layout: Layout) -> None:
    offset = 0
    for field in layout.fields:
        assert field.offset == offset
        assert field.size > 0
        assert field.meaning
        offset += field.size
    assert offset == layout.size == len(layout.scale)
    assert len({field.name for field in layout.fields}) == len(layout.fields)


def test_sizes() -> None:
    assert {layout.size for layout in LAYOUTS if not layout.history} == {Layout().size}
    more = Layout(history=True).size - Layout().size
    assert more == 20 + 5 * 20 + engine.MAX_ACTIONS_PER_DEAL * (NUM_ACTIONS + 1)
    assert 2 * Layout().size + TALON_SIZE * NUM_CARDS == STATE_SIZE


def test_the_table_in_the_documentation_has_a_row_for_each_field() -> None:
    rows = layout_table(Layout(history=True)).splitlines()[2:]
    assert len(rows) == len(Layout(history=True).fields)
    assert rows[0] == "| 0-19 | `hand` |  | own hand |"
    assert any("| `own_to_66` | 1/66 |" in row for row in rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": "half"}, "memory='half' is unknown: choose one of perfect, last_trick, none"),
        ({"suits": "french"}, "suits='french' is unknown: choose one of natural, trump_first"),
        ({"history": 1}, "history=1 is unknown"),
        ({"history": True, "memory": "none"}, "history=True cannot be combined with memory='none'"),
    ],
)
def test_layouts_that_do_not_exist_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Layout(**settings)


# ------------------------------------------------------------------------------------- the numbers


@every_layout
@every_rule_set
def test_whole_numbers_times_scale_are_the_float_form_exactly(rules: Rules, layout: Layout) -> None:
    codes = rules.codes()
    for record in moments(rules, 3, seed=1):
        for seat in range(2):
            floats, mask = write(record, codes, seat, layout, np.float32)
            whole, same_mask = write(record, codes, seat, layout, np.uint8)
            assert (whole * layout.scale).tobytes() == floats.tobytes()
            assert mask.tobytes() == same_mask.tobytes()
            assert floats.min() >= 0
            assert floats.max() <= 1
            assert set(mask.tolist()) <= {0, 1}


@every_rule_set
def test_decode_is_the_inverse(rules: Rules) -> None:
    codes = rules.codes()
    for record in moments(rules, 15, seed=2):
        for seat in range(2):
            obs, mask = observe(record, codes, seat)
            assert decode(obs, mask) == view(record, codes, seat, PERFECT)


@every_layout
@every_rule_set
def test_the_mask_holds_the_legal_actions_of_the_player_to_move(
    rules: Rules, layout: Layout
) -> None:
    codes = rules.codes()
    for record in moments(rules, 4, seed=3):
        to_move = int(record[r.TO_MOVE])
        legal = int(engine.legal(record, codes))
        _, mask = observe(record, codes, to_move, layout)
        codes_of_layout = (layout.memory_code, layout.suits_code, layout.history_code)
        named = np.flatnonzero(mask).tolist()
        natural = [natural_action(record, codes, *codes_of_layout, action) for action in named]
        assert sum(1 << int(action) for action in natural) == legal
        assert len(set(natural)) == len(named)
        _, mask = observe(record, codes, 1 - to_move, layout)
        assert not mask.any()


@every_layout
def test_natural_actions_are_a_renaming(layout: Layout) -> None:
    rules = RULES["pagat"]
    codes = rules.codes()
    codes_of_layout = (layout.memory_code, layout.suits_code, layout.history_code)
    for record in running(rules, 3, seed=4):
        natural = [
            int(natural_action(record, codes, *codes_of_layout, action))
            for action in range(NUM_ACTIONS)
        ]
        assert sorted(natural) == list(range(NUM_ACTIONS))
        assert [action % 5 for action in natural[:FIRST_DECLARE]] == [0, 1, 2, 3, 4] * 4
        if layout.suits != "natural":
            assert natural[0] // 5 == natural[FIRST_DECLARE] - FIRST_DECLARE == record[r.TRUMP]
        assert natural[EXCHANGE:] == list(range(EXCHANGE, NUM_ACTIONS))


# --------------------------------------------------------------------------------- names of suits


def renamed_deals(
    rules: Rules, names: tuple[int, ...], deals: int, seed: int
) -> Iterator[tuple[Record, Record]]:
    """The same deals twice, the second time with suit ``s`` called ``names[s]``."""

    def renamed(action: int) -> int:
        if action < FIRST_DECLARE:
            return 5 * names[action // 5] + action % 5
        return FIRST_DECLARE + names[action - FIRST_DECLARE] if action < EXCHANGE else action

    rng = np.random.default_rng(seed)
    codes = rules.codes()
    for number in range(deals):
        deck = rng.permutation(NUM_CARDS)
        record, other = engine.new_record(0), engine.new_record(0)
        engine.deal_deck(record, deck, number % 2)
        engine.deal_deck(other, np.array([renamed(int(card)) for card in deck]), number % 2)
        while not engine.is_over(record):
            yield record, other
            legal = int(engine.legal(record, codes))
            actions = [action for action in range(NUM_ACTIONS) if legal >> action & 1]
            action = int(rng.choice(actions))
            engine.step(record, codes, action)
            engine.step(other, codes, renamed(action))
        yield record, other


@pytest.mark.parametrize("memory", get_args(Memory))
@pytest.mark.parametrize("rules", ["duel", "pagat"])
def test_canonical_observations_do_not_know_how_suits_are_called(rules: str, memory: Any) -> None:
    layout = Layout(memory, "canonical")
    codes = RULES[rules].codes()
    for names in permutations(range(4)):
        for record, other in renamed_deals(RULES[rules], names, 2, seed=sum(names[:2])):
            for seat in range(2):
                obs, mask = observe(record, codes, seat, layout)
                obs_renamed, mask_renamed = observe(other, codes, seat, layout)
                assert obs.tobytes() == obs_renamed.tobytes()
                assert mask.tobytes() == mask_renamed.tobytes()


@pytest.mark.parametrize("memory", get_args(Memory))
def test_canonical_suits_know_which_marriage_must_be_led(memory: Any) -> None:
    """Of two marriages in hand, the declared one is the same suit, whatever its name."""
    layout = Layout(memory, "canonical")
    codes = RULES["duel"].codes()
    hand = [parse_card(name) for name in ("KC", "QC", "KD", "QD", "JS")]
    trump = parse_card("AH")
    others = [card for card in range(NUM_CARDS) if card not in (*hand, trump)]
    deck = [*hand, *others[:HAND_SIZE], trump, *others[HAND_SIZE:]]
    seen: list[bytes] = []
    for suit in (0, 1):
        record = engine.new_record(0)
        engine.deal_deck(record, np.array(deck), 0)
        engine.step(record, codes, FIRST_DECLARE + suit)
        obs, mask = observe(record, codes, 0, layout)
        seen.append(obs.tobytes() + mask.tobytes())
    assert seen[0] == seen[1]


def test_canonical_histories_do_not_know_how_suits_are_called() -> None:
    """Also where the same is seen of two suits, and only their histories differ."""
    layout = Layout(suits="canonical", history=True)
    codes = RULES["pagat"].codes()
    for names in permutations(range(4)):
        for record, other in renamed_deals(RULES["pagat"], names, 25, seed=names[0]):
            for seat in range(2):
                obs, _ = observe(record, codes, seat, layout)
                obs_renamed, _ = observe(other, codes, seat, layout)
                assert obs.tobytes() == obs_renamed.tobytes()


def reordered(obs: npt.NDArray[Any], fields: tuple[Field, ...], order: tuple[int, ...]) -> bytes:
    """An observation with its suits in another order."""
    out = obs.copy()
    for field in fields:
        part = obs[field.offset : field.offset + field.size]
        if field.kind in ("cards", "suits"):
            blocks = part.reshape(4, -1)
            out[field.offset : field.offset + field.size] = blocks[list(order)].ravel()
    return out.tobytes()


def test_trump_first_differs_in_the_order_of_the_other_suits_only() -> None:
    layout = Layout(suits="trump_first")
    codes = RULES["duel"].codes()
    orders = [(0, *order) for order in permutations((1, 2, 3))]
    for names in permutations(range(4)):
        for record, other in renamed_deals(RULES["duel"], names, 1, seed=names[0]):
            obs, _ = observe(record, codes, 0, layout)
            again, _ = observe(other, codes, 0, layout)
            assert again.tobytes() in {reordered(obs, layout.fields, order) for order in orders}


def test_trump_first_is_suit_zero_and_the_others_keep_their_order() -> None:
    record = engine.new_record(0)
    deck = [*range(15, 20), *range(5), 10, 11, 12, 13, 14, *range(5, 10)]
    engine.deal_deck(record, np.array(deck), 0)
    obs, _ = observe(record, RULES["duel"].codes(), 0, Layout(suits="trump_first"))
    seen = describe(obs, Layout(suits="trump_first"))
    assert seen["trump_suit"] == ["0"]
    assert seen["turned_up"] == ["J0"]
    assert seen["hand"] == ["J3", "Q3", "K3", "T3", "A3"]


# ------------------------------------------------------------------------------------- in words


def test_describe_says_what_the_position_says() -> None:
    for rules in RULES.values():
        codes = rules.codes()
        for record in moments(rules, 4, seed=5):
            position = engine.position_of(record)
            for seat in range(2):
                other = 1 - seat
                obs, mask = observe(record, codes, seat)
                seen = describe(obs)
                assert list(seen) == [field.name for field in DEFAULT_LAYOUT.fields]
                assert seen["hand"] == [card_text(card) for card in position.hands[seat]]
                assert position.won is not None
                assert seen["own_won"] == [card_text(card) for card in position.won[seat]]
                assert seen["other_won"] == [card_text(card) for card in position.won[other]]
                assert seen["other_known"] == [card_text(card) for card in position.known[other]]
                assert seen["trump_suit"] == [SUITS[position.trump_suit]]
                assert seen["led"] == [card_text(c) for c in (position.lead,) if c is not None]
                assert seen["face_down"] == len(position.talon)
                assert seen["talon_state"] == position.talon_state
                assert seen["own_points"] == position.points(seat)
                assert seen["other_points"] == position.points(other)
                assert seen["own_tricks"] == position.tricks[seat]
                assert seen["own_to_66"] == max(66 - position.points(seat), 0)
                assert seen["is_forehand"] == (position.forehand == seat)
                assert seen["to_move"] == bool(mask.any())
                closed = {None: None, seat: "own", other: "other"}[position.closed_by]
                assert seen["closed_by"] == closed
                declarable = [SUITS[s] for s in range(4) if mask[FIRST_DECLARE + s]]
                assert seen["legal_declarations"] == declarable
                special = [action_text(a) for a in range(EXCHANGE, NUM_ACTIONS) if mask[a]]
                assert seen["legal_special"] == special
                hidden = {*position.hands[other], *position.talon} - {*position.known[other]}
                assert seen["unseen"] == [card_text(card) for card in sorted(hidden)]


def expected_tally(position: Position, rules: Rules, seat: int) -> dict[str, Any]:
    """The counts of a player by the words of the rules, without the other player's."""
    tricks = position.tricks[seat]
    measure = (
        position.card_points[seat] if rules.schneider_by == "card_points" else position.points(seat)
    )
    return {
        "trickless": tricks == 0,
        "points": position.points(seat),
        "card_points": position.card_points[seat],
        "to_66": max(66 - position.points(seat), 0),
        "to_33": max(33 - measure, 0),
        "pending": position.marriage_points(seat) if tricks == 0 else 0,
        "tricks": tricks,
        "needed": max(rules.target - position.match_score[seat], 0),
        "marriages": [SUITS[suit] for suit in position.marriages[seat]],
    }


@every_rule_set
def test_describe_gives_both_players_counts(rules: Rules) -> None:
    for record in moments(rules, 8, seed=7):
        position = engine.position_of(record)
        for seat in range(2):
            seen = describe(observe(record, rules.codes(), seat)[0])
            for whose, player in (("own", seat), ("other", 1 - seat)):
                for name, value in expected_tally(position, rules, player).items():
                    assert seen[f"{whose}_{name}"] == value, (name, position)
            assert seen["own_is_out"] == (position.points(seat) >= 66)
            declared = [SUITS[suit] for suit in (position.declared,) if suit is not None]
            assert seen["declared"] == declared
            turned_up = [card_text(c) for c in (position.turned_up,) if c is not None]
            assert seen["turned_up"] == turned_up
            last_trick = [card_text(card) for card in sorted(position.last_trick or ())]
            assert seen["last_trick"] == last_trick
            at_close = position.at_close
            assert seen["close_tricks"] == (at_close.tricks if at_close else 0)
            assert seen["close_points"] == (at_close.points if at_close else 0)


def test_a_marriage_is_pending_until_the_first_trick() -> None:
    hands = ["KS QS AC JC JD", "JS QC KC QD KD"]
    talon = "TS AS TC AD TD QH KH TH AH"
    record = engine.new_record(0)
    cards = [parse_action(text) for text in " ".join([*hands, "JH", talon]).split()]
    engine.deal_deck(record, np.array(cards, dtype=np.int64), 0)
    shown: list[tuple[str, int, int]] = []
    for action in ("declare-S", "KS", "JS"):
        engine.apply(record, RULES["duel"], parse_action(action))
        for seat, whose in ((0, "own"), (1, "other")):
            seen = describe(observe(record, RULES["duel"].codes(), seat)[0])
            shown.append((action, seen[f"{whose}_pending"], seen[f"{whose}_points"]))
    assert shown == [
        ("declare-S", 20, 0),
        ("declare-S", 20, 0),
        ("KS", 20, 0),
        ("KS", 20, 0),
        ("JS", 0, 26),
        ("JS", 0, 26),
    ]


def test_describe_reads_both_forms_alike() -> None:
    layout = Layout("perfect", "canonical", True)
    rules = RULES["french"]
    for record in running(rules, 2, seed=6):
        floats, _ = write(record, rules.codes(), 0, layout, np.float32)
        whole, _ = write(record, rules.codes(), 0, layout, np.uint8)
        assert describe(floats, layout) == describe(whole, layout)


def test_describe_refuses_another_shape() -> None:
    with pytest.raises(ValueError, match=r"shape \(238,\), not \(2, 238\); describe one"):
        describe(np.zeros((2, Layout().size), np.float32))
    with pytest.raises(ValueError, match="describe one observation at a time"):
        describe(np.zeros(Layout().size, np.float32), Layout(history=True))


def test_the_history_holds_every_action_and_the_own_draws_in_order() -> None:
    layout = Layout(history=True)
    rules = RULES["pagat_auto"]
    codes = rules.codes()
    played: list[tuple[int, str]] = []
    draws: list[list[str]] = [[], []]
    turned_up = ""
    before: Position | None = None
    for record in moments(rules, 10, seed=7):
        position = engine.position_of(record)
        if not record[r.NUM_TAKEN]:
            played, draws, before = [], [[], []], None
            assert position.turned_up is not None
            turned_up = card_text(position.turned_up)
        if before is not None:
            entry = int(record[r.HISTORY + (len(played) // 10)]) >> (6 * (len(played) % 10))
            played.append((before.to_move, action_text(entry & 31)))
            if len(position.talon) < len(before.talon):
                for seat in range(2):
                    played_now = {before.lead, parse_action(played[-1][1])}
                    new = set(position.hands[seat]) - set(before.hands[seat]) - played_now
                    draws[seat] += [card_text(card) for card in new]
        before = position
        for seat in range(2):
            seen = describe(observe(record, codes, seat, layout)[0], layout)
            who = ("own", "other") if seat == 0 else ("other", "own")
            assert seen["history"] == [f"{who[actor]} {text}" for actor, text in played]
            assert seen["own_draws"] == draws[seat]
            assert seen["first_turned_up"] == [turned_up]


# ------------------------------------------------------------------------------- limited memories

#: Nothing that a player of limited memory must have counted is shown.
COUNTED = (
    "own_is_out",
    "own_trickless",
    "other_trickless",
    "own_points",
    "other_points",
    "own_card_points",
    "other_card_points",
    "own_to_66",
    "other_to_66",
    "own_to_33",
    "other_to_33",
    "own_pending",
    "other_pending",
    "own_tricks",
    "other_tricks",
    "close_tricks",
    "close_points",
    "own_win_value",
    "other_win_value",
)
#: Nor are the cards and marriages of earlier tricks.
PAST = ("own_won", "other_won", "other_cannot_hold", "own_marriages", "other_marriages")


def seen_at(position: dict[str, Any], seat: int, memory: Memory, rules: str = "pagat") -> Any:
    record = engine.record_of(Position.from_dict(position), RULES[rules])
    layout = Layout(memory)
    return describe(observe(record, RULES[rules].codes(), seat, layout)[0], layout)


MIDDLE: dict[str, Any] = {
    "trump": "H",
    "turned_up": "JH",
    "leader": 0,
    "hands": [["KC", "QC", "AD", "TS", "AH"], ["JC", "TD", "KS", "JS", "TH"]],
    "talon": ["KD", "QD", "TC", "AC", "QH"],
    "won": [["AS", "QS"], ["KH", "JD"]],
    "card_points": [14, 6],
    "tricks": [1, 1],
    "known": [["AH"], ["TH", "KS"]],
    "marriages": [[], ["S"]],
    "last_trick": ["QS", "AS"],
}


def test_a_perfect_memory_holds_everything_that_was_public() -> None:
    seen = seen_at(MIDDLE, 0, "perfect")
    assert seen["own_won"] == ["QS", "AS"]
    assert seen["other_won"] == ["JD", "KH"]
    assert seen["last_trick"] == ["QS", "AS"]
    assert seen["other_known"] == ["TH", "KS"]
    assert seen["unseen"] == ["JC", "TC", "AC", "QD", "KD", "TD", "QH", "JS"]
    assert seen["other_marriages"] == ["S"]
    assert seen["own_points"] == 14
    assert seen["other_points"] == 26


@pytest.mark.parametrize("memory", ["last_trick", "none"])
def test_a_limited_memory_holds_neither_counts_nor_the_past(memory: Memory) -> None:
    seen = seen_at(MIDDLE, 0, memory)
    for name in COUNTED:
        assert not seen[name], name
    for name in PAST:
        assert seen[name] == [], name
    assert seen["other_known"] == []
    last_trick = ["QS", "AS"] if memory == "last_trick" else []
    assert seen["last_trick"] == last_trick
    everything_else = {card_text(card) for card in range(NUM_CARDS)}
    everything_else -= {*seen["hand"], *last_trick, "JH"}
    assert set(seen["unseen"]) == everything_else


@pytest.mark.parametrize("memory", ["last_trick", "none"])
def test_a_limited_memory_still_sees_the_table_and_its_own_hand(memory: Memory) -> None:
    limited, perfect = seen_at(MIDDLE, 1, memory), seen_at(MIDDLE, 1, "perfect")
    for name in ("hand", "turned_up", "led", "trump_suit", "talon_state", "face_down"):
        assert limited[name] == perfect[name]
    for name in ("to_move", "on_lead", "is_forehand", "own_needed", "other_needed"):
        assert limited[name] == perfect[name]


@pytest.mark.parametrize("memory", get_args(Memory))
def test_a_marriage_is_seen_while_it_lies_on_the_table(memory: Memory) -> None:
    rules = RULES["pagat"]
    position: dict[str, Any] = MIDDLE | {"leader": 0, "marriages": [[], []], "known": [[], []]}
    record = engine.record_of(Position.from_dict(position), rules)
    layout = Layout(memory)

    def known() -> list[str]:
        return describe(observe(record, rules.codes(), 1, layout)[0], layout)["other_known"]

    assert known() == []
    engine.apply(record, rules, parse_action("declare-C"))
    assert known() == ["QC", "KC"]
    engine.apply(record, rules, parse_action("QC"))
    # The queen is led and lies as "led"; her partner was shown with her.
    assert known() == ["KC"]
    engine.apply(record, rules, parse_action("JC"))
    assert known() == (["KC"] if memory == "perfect" else [])


@pytest.mark.parametrize("memory", get_args(Memory))
def test_an_exchanged_or_last_drawn_card_is_remembered_by_a_perfect_memory_only(
    memory: Memory,
) -> None:
    seen = seen_at(MIDDLE, 1, memory)
    assert seen["other_known"] == (["AH"] if memory == "perfect" else [])


@pytest.mark.parametrize("memory", get_args(Memory))
def test_what_replies_rule_out_is_remembered_by_a_perfect_memory_only(memory: Memory) -> None:
    rules = RULES["pagat"]
    record = engine.record_of(Position.from_dict(MIDDLE), rules)
    for action in ("close", "AD", "TD"):
        engine.apply(record, rules, parse_action(action))
    layout = Layout(memory)
    seen = describe(observe(record, rules.codes(), 0, layout)[0], layout)
    # A reply in the suit that does not beat an ace tells nothing new.
    assert seen["other_cannot_hold"] == []
    engine.apply(record, rules, parse_action("QC"))
    engine.apply(record, rules, parse_action("JC"))
    # JC under QC: no higher club is in that hand.
    seen = describe(observe(record, rules.codes(), 0, layout)[0], layout)
    assert seen["other_cannot_hold"] == (["TC", "AC"] if memory == "perfect" else [])


# ------------------------------------------------------------------------------- full information


def test_the_full_state_is_both_observations_and_the_talon() -> None:
    rules = RULES["pagat"]
    codes = rules.codes()
    size = Layout().size
    for record in moments(rules, 4, seed=8):
        out = np.full(STATE_SIZE, np.nan, dtype=np.float32)
        encode_state(record, codes, out)
        for seat in range(2):
            obs, _ = observe(record, codes, seat)
            np.testing.assert_array_equal(out[seat * size : (seat + 1) * size], obs)
        talon = out[2 * size :].reshape(TALON_SIZE, NUM_CARDS)
        face_down = engine.position_of(record).talon
        assert talon[: len(face_down)].argmax(axis=1).tolist() == list(face_down)
        assert talon.sum() == len(face_down)


def test_the_mask_of_a_finished_deal_is_empty() -> None:
    rules = RULES["duel"]
    ended = 0
    for record in moments(rules, 5):
        if engine.is_over(record):
            ended += 1
            assert not observe(record, rules.codes(), 0)[1].any()
            assert not observe(record, rules.codes(), 1)[1].any()
    assert ended == 5


def test_card_sets_are_in_the_order_of_card_ids() -> None:
    record = engine.new_record(1)
    engine.deal(record)
    obs, _ = observe(record, RULES["duel"].codes(), 0)
    assert np.flatnonzero(obs[:20]).tolist() == cards_of(int(record[r.HAND]))
