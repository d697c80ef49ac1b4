"""The text board: both packs, what each viewer sees, and that looking changes nothing."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import gymnasium
import numpy as np
import pytest

from schnapsen_env import RULES, Position, engine, schnapsen_v0
from schnapsen_env.actions import parse_action
from schnapsen_env.cards import NUM_CARDS, PACKS, parse_card
from schnapsen_env.observation import Memory
from schnapsen_env.render import TextScreen, board
from tests.test_leak import redealt

ROOT = Path(__file__).resolve().parent.parent

CLOSED = {
    "trump": "H",
    "turned_up": "AH",
    "hands": [["JH", "QS", "KS", "TD"], ["JC", "KC", "AC", "KD"]],
    "talon": ["AD", "QH", "KH", "TH", "JS", "TS", "AS"],
    "leader": 0,
    "closed_by": 1,
    "at_close": {"tricks": 0, "points": 0},
    "won": [["TC", "QC"], ["JD", "QD"]],
    "card_points": [13, 5],
    "tricks": [1, 1],
    "marriages": [[], ["C"]],
    "known": [["JH"], ["KC"]],
    "last_trick": ["QC", "TC"],
    "match_score": [3, 0],
}


def record_of(position: dict[str, Any], rules: str = "pagat") -> Any:
    return engine.record_of(Position.from_dict(position), RULES[rules])


def test_a_board_in_full() -> None:
    assert board(record_of(CLOSED), RULES["pagat"]) == (
        "Schnapsen, pagat rules, match 4 : 7 to go\n"
        "trump ♥   talon: closed by player_1, 7 face down on A♥\n"
        "  player_1: J♣ K♣ A♣ K♦   1 trick, 25 points   20♣\n"
        "> player_0: 10♦ J♥ Q♠ K♠   1 trick, 13 points\n"
        "  last trick Q♣ 10♣\n"
        "player_0 to move: 10♦, J♥, Q♠, K♠, declare 20♠, claim 66"
    )


def test_a_board_in_the_german_pack() -> None:
    text = board(record_of(CLOSED), RULES["duel"], pack="german")
    assert "match 3 : 0 of 7" in text
    assert "player_1: U🌰 K🌰 A🌰 K🔔" in text
    assert "last trick O🌰 10🌰" in text
    assert "declare 20🍃" in text


@pytest.mark.parametrize(("seat", "hidden"), [(0, 3), (1, 3)])
def test_a_player_sees_of_the_other_hand_what_is_known(seat: int, hidden: int) -> None:
    text = board(record_of(CLOSED), RULES["pagat"], seat=seat)
    assert text.count("??") == hidden
    own, other = (f"player_{s}:" for s in (seat, 1 - seat))
    own_line = next(line for line in text.split("\n") if own in line)
    other_line = next(line for line in text.split("\n") if other in line)
    assert "??" not in own_line
    assert ("K♣" if seat == 0 else "J♥") in other_line
    # The choices of the player to move are cards of that player.
    assert ("to move: " in text) == (seat == 0)


def test_a_board_shows_nothing_that_the_viewer_does_not_know() -> None:
    """Cards that a player may not know are nowhere in that player's board."""
    env = schnapsen_v0.env(rules="pagat_auto")
    rng = np.random.default_rng(0)
    for seed in range(20):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            position = engine.position_of(env.record)
            for seat in (0, 1):
                shown = board(env.record, env.rules, seat=seat)
                secret = set(position.hands[1 - seat]) - set(position.known[1 - seat])
                for card in secret | set(position.talon):
                    assert PACKS["french"].card_symbol(card) not in shown
            mask = env.infos[env.agent_selection]["action_mask"]
            env.step(int(rng.choice(np.flatnonzero(mask))))


@pytest.mark.parametrize("memory", get_args(Memory))
@pytest.mark.parametrize("rules", list(RULES))
def test_a_board_is_the_same_whatever_the_player_does_not_see(rules: str, memory: Any) -> None:
    compared = 0
    for record, other, seat in redealt(RULES[rules], 6):
        shown = [board(one, RULES[rules], seat=seat, memory=memory) for one in (record, other)]
        assert shown[0] == shown[1]
        compared += record.tobytes() != other.tobytes()
    assert compared > 50


def test_a_player_without_memory_is_shown_no_more_than_its_observation_holds() -> None:
    hidden = {"perfect": 0, "last_trick": 0, "none": 0}
    for memory in get_args(Memory):
        env: Any = gymnasium.make(
            "schnapsen/Schnapsen-v0", memory=memory, render_mode="ansi", disable_env_checker=True
        ).unwrapped
        rng = np.random.default_rng(2)
        for seed in range(15):
            _, info = env.reset(seed=seed)
            over = False
            while not over:
                text = env.render()
                hidden[memory] += "tricks," not in text and "trick," not in text
                assert ("last trick" in text) <= (memory != "none")
                action = int(rng.choice(np.flatnonzero(info["action_mask"])))
                _, _, over, _, info = env.step(action)
            assert "points" in env.render()  # a deal that is over is laid open
    assert hidden["perfect"] == 0
    assert hidden["last_trick"] > 60
    assert hidden["none"] > 60


def test_a_person_who_watches_a_match_sees_how_each_deal_came_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = schnapsen_v0.env(episode="match", render_mode="human")
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    ended = 0
    while env.agents and not any(env.terminations.values()):
        mask = env.infos[env.agent_selection]["action_mask"]
        env.step(int(rng.choice(np.flatnonzero(mask))))
        ended += "end_reason" in env.infos["player_0"]
    shown = capsys.readouterr().out
    assert ended > 2
    assert len(re.findall(r"^player_\d wins \d game points?: ", shown, re.MULTILINE)) == ended


@pytest.mark.parametrize("rules", list(RULES))
@pytest.mark.parametrize("pack", ["french", "german"])
def test_every_moment_of_random_deals_has_a_board(pack: Any, rules: str) -> None:
    rng = np.random.default_rng(3)
    env = schnapsen_v0.env(rules=rules, pack=pack, render_mode="ansi")
    endings: set[str] = set()
    for seed in range(15):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            text = env.render()
            assert text is not None
            position = engine.position_of(env.record)
            for card in (*position.hands[0], *position.hands[1]):
                assert PACKS[pack].card_symbol(card) in text
            assert f"player_{position.to_move} to move: " in text
            mask = env.infos[env.agent_selection]["action_mask"]
            assert text.split("to move: ")[1].count(", ") + 1 == mask.sum()
            env.step(int(rng.choice(np.flatnonzero(mask))))
        text = env.render()
        assert text is not None
        endings.add(text.splitlines()[-1].split(": ")[-1])
    assert endings <= {
        "66 reached",
        "last trick",
        "the close failed",
        "wrong claim",
        "the deal is drawn",
    }


def test_illegal_action_and_revoke_are_named() -> None:
    env = schnapsen_v0.env(rules="austrian", illegal_action="revoke", render_mode="ansi")
    strict = {
        "trump": "H",
        "hands": [["AC", "KH"], ["JD", "AD", "JS"]],
        "leader": 0,
        "lead": "TD",
        "card_points": [50, 30],
        "tricks": [4, 3],
    }
    for action, ending in (
        ("JS", "player_0 wins 2 game points: revoke"),
        ("TS", "player_1 loses: illegal action"),
    ):
        env.reset(options={"position": strict})
        env.step(parse_action(action))
        text = env.render()
        assert text is not None
        assert text.endswith(ending)


def test_rendering_changes_nothing() -> None:
    seen, unseen = (schnapsen_v0.env(episode="match", render_mode="ansi") for _ in range(2))
    seen.reset(seed=8)
    unseen.reset(seed=8)
    rng = np.random.default_rng(8)
    while not any(seen.terminations.values()):
        seen.render()
        np.testing.assert_array_equal(seen.record, unseen.record)
        action = int(rng.choice(np.flatnonzero(seen.infos[seen.agent_selection]["action_mask"])))
        seen.step(action)
        unseen.step(action)


def test_human_mode_writes_each_board_once(capsys: pytest.CaptureFixture[str]) -> None:
    env = schnapsen_v0.env(render_mode="human")
    env.reset(seed=0)
    first = capsys.readouterr().out
    assert first == board(env.record, env.rules) + "\n\n"
    assert env.render() is None
    assert capsys.readouterr().out == ""
    env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    assert capsys.readouterr().out == board(env.record, env.rules) + "\n\n"
    env.close()


def test_no_render_mode_warns_and_returns_nothing() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert env.render() is None


def test_screen_writes_to_any_stream() -> None:
    out = io.StringIO()
    screen = TextScreen(RULES["pagat"], "german", seat=0)
    screen.write(record_of(CLOSED), out)
    assert out.getvalue().count("??") == 3
    with pytest.raises(ValueError, match="french, german"):
        TextScreen(RULES["pagat"], "swiss")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="french, german"):
        board(record_of(CLOSED), RULES["pagat"], "swiss")  # type: ignore[arg-type]


def test_the_packs_tell_all_cards_apart() -> None:
    for pack in PACKS.values():
        assert len({pack.card_symbol(card) for card in range(NUM_CARDS)}) == NUM_CARDS
    assert PACKS["german"].card_symbol(parse_card("QC")) == "O🌰"


def test_rendering_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'matplotlib', 'PIL', 'pygame', 'rich'}"
    code = f"import sys, schnapsen_env.render; print(*{heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
