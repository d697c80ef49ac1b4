"""The AEC environment: turns, rewards, infos, options, copies and errors."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import schnapsen_env
from schnapsen_env import RULES, Position, engine, schnapsen_v0
from schnapsen_env.actions import CLAIM, NUM_ACTIONS, parse_action
from schnapsen_env.cards import NUM_CARDS
from schnapsen_env.engine import IllegalActionError
from schnapsen_env.engine import record as r
from schnapsen_env.env import AGENTS, SchnapsenAECEnv
from schnapsen_env.observation import describe
from schnapsen_env.single_agent import SchnapsenEnv
from tests.processes import run_python

ROOT = Path(__file__).resolve().parent.parent
SETS = list(RULES)

#: A strict-phase reply: diamonds led, the follower holds two of them and other cards.
MUST_FOLLOW = {
    "trump": "H",
    "hands": [["AC", "KH"], ["JD", "AD", "JS"]],
    "leader": 0,
    "lead": "TD",
    "card_points": [50, 30],
    "tricks": [4, 3],
}


def choose(rng: np.random.Generator, mask: np.ndarray) -> int:
    """A random action that a mask allows."""
    return int(rng.choice(np.flatnonzero(mask)))


def play(env: SchnapsenAECEnv, rng: np.random.Generator) -> Iterator[str]:
    """Play to the end, yielding the agent after each of its steps (not the dead ones)."""
    for agent in env.agent_iter():
        if env.terminations[agent]:
            env.step(None)
        else:
            env.step(choose(rng, env.infos[agent]["action_mask"]))
            yield agent


def trace(env: SchnapsenAECEnv, seed: int) -> list[Any]:
    """Everything that is seen while an episode is played on with random actions."""
    rng = np.random.default_rng(seed)
    seen: list[Any] = []
    while env.agents:
        observation, reward, terminated, truncated, info = env.last()
        assert observation is not None
        seen.append(
            (
                env.agent_selection,
                observation["observation"].tolist(),
                observation["action_mask"].tolist(),
                reward,
                dict(env.rewards),
                terminated,
                truncated,
                {key: str(value) for key, value in info.items()},
                env.state().tolist(),
            )
        )
        env.step(None if terminated else choose(rng, observation["action_mask"]))
    return seen


def opening(env: SchnapsenAECEnv) -> tuple[Any, ...]:
    """What identifies a deal: the record without its random state and counters."""
    return tuple(env.record[: r.RANDOM].tolist())


# -------------------------------------------------------------------------------- turns and masks


@pytest.mark.parametrize("suits", ["natural", "trump_first", "canonical"])
@pytest.mark.parametrize("rules", SETS)
def test_the_mask_is_what_the_engine_calls_legal(rules: str, suits: Any) -> None:
    env = schnapsen_v0.env(rules=rules, suits=suits)
    codes = env.rules.codes()
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            record = env.record
            for seat, other in enumerate(AGENTS):
                mask = env.observe(other)["action_mask"]
                assert mask.dtype == np.int8
                if other in env.agents:
                    np.testing.assert_array_equal(env.infos[other]["action_mask"], mask)
                is_mover = other == agent and not env.terminations[agent]
                assert mask.any() == is_mover
                if is_mover:
                    assert seat == record[r.TO_MOVE]
                    assert mask.sum() == int(engine.legal(record, codes)).bit_count()
                if is_mover and suits == "natural":
                    bits = [int(engine.legal(record, codes)) >> a & 1 for a in range(NUM_ACTIONS)]
                    assert mask.tolist() == bits
            if env.terminations[agent]:
                env.step(None)
            else:
                env.step(choose(rng, env.infos[agent]["action_mask"]))


@pytest.mark.parametrize("suits", ["trump_first", "canonical"])
def test_every_action_of_a_mask_with_renamed_suits_can_be_taken(suits: Any) -> None:
    rng = np.random.default_rng(1)
    env = schnapsen_v0.raw_env(suits=suits, rules="austrian")
    for seed in range(5):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            mask = env.infos[env.agent_selection]["action_mask"]
            for action in range(NUM_ACTIONS):
                trial = env.clone()
                if mask[action]:
                    trial.step(action)
                else:
                    with pytest.raises(IllegalActionError):
                        trial.step(action)
            env.step(choose(rng, mask))


def test_one_agent_may_act_several_times_in_a_row() -> None:
    env = schnapsen_v0.raw_env(rules="duel")
    position = {
        "trump": "H",
        "turned_up": "AH",
        "hands": [["JH", "QS", "KS", "TC", "TD"], ["JC", "QC", "KC", "AC", "JD"]],
        "talon": ["QD", "KD", "AD", "QH", "KH", "TH", "JS", "TS", "AS"],
        "leader": 0,
    }
    env.reset(options={"position": position})
    for action in ("exchange", "close", "declare-S", "KS"):
        assert env.agent_selection == "player_0"
        env.step(parse_action(action))
    assert env.agent_selection == "player_1"


def test_observations_are_new_arrays_and_within_the_space() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    first, again = env.observe("player_0"), env.observe("player_0")
    for key in ("observation", "action_mask"):
        assert not np.shares_memory(first[key], again[key])
        assert not np.shares_memory(first[key], env.infos["player_0"]["action_mask"])
    assert first in env.observation_space("player_0")
    for agent in AGENTS:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
    assert env.action_space("player_0") is not env.action_space("player_1")


def test_infos_of_the_past_do_not_change() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    info = env.last()[4]
    before = info["action_mask"].copy()
    env.step(int(before.argmax()))
    np.testing.assert_array_equal(info["action_mask"], before)


def test_layout_describes_the_observations() -> None:
    env = schnapsen_v0.env(history=True, suits="trump_first")
    env.reset(seed=0)
    observation = env.observe(env.agent_selection)["observation"]
    assert observation.shape == (env.layout.size,)
    assert len(describe(observation, env.layout)["hand"]) == 5


def test_both_agents_can_be_observed_after_the_end() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    for _ in play(env, np.random.default_rng(0)):
        pass
    assert env.agents == []
    for agent in AGENTS:
        assert env.observe(agent) in env.observation_space(agent)
    assert env.state() in env.state_space


# ------------------------------------------------------------------------------------- rewards


class Readers:
    """Plays an episode and adds up rewards in each way that somebody may read them."""

    def __init__(self, env: SchnapsenAECEnv, rng: np.random.Generator) -> None:
        self.env = env
        self.by_last: dict[str, float] = defaultdict(float)
        self.by_rewards: dict[str, float] = defaultdict(float)
        self.game_points: dict[str, int] = defaultdict(int)
        self.deals: list[dict[str, Any]] = []
        for agent in env.agent_iter():
            self.check_keys()
            _, reward, terminated, truncated, _ = env.last()
            self.by_last[agent] += reward
            assert type(terminated) is bool
            assert truncated is False
            if terminated:
                env.step(None)
                assert not any(env.rewards.values())
            else:
                env.step(choose(rng, env.infos[agent]["action_mask"]))
                self.read_rewards()

    def check_keys(self) -> None:
        env = self.env
        assert set(env.agents) == set(env.rewards) == set(env.infos)
        assert set(env.agents) == set(env.terminations) == set(env.truncations)

    def read_rewards(self) -> None:
        env = self.env
        assert sum(env.rewards.values()) == 0
        for agent in AGENTS:
            assert type(env.rewards[agent]) is float
            self.by_rewards[agent] += env.rewards[agent]
        infos = [env.infos[agent] for agent in AGENTS]
        if "game_points" not in infos[0]:
            assert not any(env.rewards.values())
            return
        self.deals.append(infos[0])
        assert infos[0].get("match_score") == infos[1].get("match_score")
        for agent in AGENTS:
            self.game_points[agent] += env.infos[agent]["game_points"]


@pytest.mark.parametrize("reward", ["game_points", "win"])
@pytest.mark.parametrize("rules", SETS)
def test_all_readers_of_the_rewards_of_a_deal_agree(rules: str, reward: Any) -> None:
    env = schnapsen_v0.env(rules=rules, reward=reward)
    rng = np.random.default_rng(7)
    for seed in range(12):
        env.reset(seed=seed)
        read = Readers(env, rng)
        assert read.by_last == read.by_rewards
        assert len(read.deals) == 1
        assert "match_score" not in read.deals[0]
        points = read.game_points["player_0"]
        assert read.game_points["player_1"] == -points
        assert abs(points) <= 3
        assert read.by_last["player_0"] == (np.sign(points) if reward == "win" else points)
        ending = read.deals[0]["end_reason"]
        assert ending in {"sixty_six", "last_trick", "failed_close", "wrong_claim", "drawn"}
        assert (ending == "drawn") == (points == 0)


@pytest.mark.parametrize("reward", ["game_points", "win"])
@pytest.mark.parametrize("rules", SETS)
def test_all_readers_of_the_rewards_of_a_match_agree(rules: str, reward: Any) -> None:
    env = schnapsen_v0.env(rules=rules, episode="match", reward=reward, target=4)
    rng = np.random.default_rng(7)
    for seed in range(6):
        env.reset(seed=seed)
        read = Readers(env, rng)
        assert read.by_last == read.by_rewards
        assert len(read.deals) > 1
        score = read.deals[-1]["match_score"]
        result = read.deals[-1]["match_result"]
        assert not any("match_result" in deal for deal in read.deals[:-1])
        assert max(score) >= 4 > min(score)
        assert score[0] - score[1] == read.game_points["player_0"]
        assert result["score"] == score
        assert result["winner"] == score.index(max(score))
        won = 1 if result["winner"] == 0 else -1
        assert read.by_last["player_0"] == (won if reward == "win" else score[0] - score[1])


@pytest.mark.parametrize("rules", SETS)
def test_last_brings_each_agent_the_result_of_each_deal_of_a_match_once(rules: str) -> None:
    env = schnapsen_v0.env(rules=rules, episode="match")
    rng = np.random.default_rng(11)
    for seed in range(4):
        env.reset(seed=seed)
        told: dict[str, list[int]] = {agent: [] for agent in AGENTS}
        score = [0, 0]
        for agent in env.agent_iter():
            observation, reward, over, _, info = env.last()
            assert observation is not None
            assert reward == info.get("game_points", 0)
            if "game_points" in info:
                told[agent].append(info["game_points"])
                score = info["match_score"]
                assert info["end_reason"]
            mask = observation["action_mask"]
            env.step(None if over else int(rng.choice(np.flatnonzero(mask))))
        # Where a wrong claim ended a deal at once, one of them had no turn in it.
        assert min(map(len, told.values())) > 1
        assert sum(told["player_0"]) == -sum(told["player_1"]) == score[0] - score[1]


def test_the_next_deal_of_a_match_begins_in_the_same_step_and_the_dealer_alternates() -> None:
    env = schnapsen_v0.env(episode="match")
    env.reset(seed=3)
    forehands = [int(env.record[r.FOREHAND])]
    for _ in play(env, np.random.default_rng(3)):
        if env.agents and "end_reason" in env.infos["player_0"]:
            if any(env.terminations.values()):
                break
            record = env.record
            assert record[r.NUM_TAKEN] == 0
            assert record[r.FACE_DOWN] == 9
            forehands.append(int(record[r.FOREHAND]))
            assert env.agent_selection == AGENTS[forehands[-1]]
            assert env.infos[env.agent_selection]["action_mask"].any()
    assert len(forehands) > 3
    assert all(a != b for a, b in pairwise(forehands))


def test_infos_speak_of_a_deal_only_in_the_step_that_ended_it() -> None:
    env = schnapsen_v0.env(episode="match")
    env.reset(seed=5)
    told = False
    for _ in play(env, np.random.default_rng(5)):
        tells = "game_points" in env.infos["player_0"]
        assert not (told and tells)
        assert tells == ("game_points" in env.infos["player_1"])
        told = tells


@pytest.mark.parametrize("rules", SETS)
def test_no_deal_and_no_match_is_longer_than_stated(rules: str) -> None:
    rng = np.random.default_rng(11)
    deal = schnapsen_v0.env(rules=rules)
    assert deal.max_actions == 27
    for seed in range(40):
        deal.reset(seed=seed)
        assert sum(1 for _ in play(deal, rng)) <= 27
    match = schnapsen_v0.env(rules=rules, episode="match", target=4)
    if RULES[rules].exhausted == "claim_or_draw":
        assert match.max_actions is None
        return
    assert match.max_actions == 27 * 7
    for seed in range(5):
        match.reset(seed=seed)
        assert sum(1 for _ in play(match, rng)) <= match.max_actions


# ------------------------------------------------------------------------------ illegal actions


@pytest.mark.parametrize("reward", ["game_points", "win"])
@pytest.mark.parametrize("episode", ["deal", "match"])
@pytest.mark.parametrize("offender", [0, 1])
def test_lose(offender: int, episode: Any, reward: Any) -> None:
    env = schnapsen_v0.env(episode=episode, reward=reward)
    env.reset(seed=0, options={"forehand": offender})
    assert env.agent_selection == AGENTS[offender]
    env.step(CLAIM)  # never legal under automatic claims
    other = AGENTS[1 - offender]
    assert env.rewards == {AGENTS[offender]: -3.0, other: 0.0}
    assert env.terminations == dict.fromkeys(AGENTS, True)
    assert env.truncations == dict.fromkeys(AGENTS, False)
    assert env.infos[AGENTS[offender]]["illegal_action"] is True
    assert env.infos[other]["illegal_action"] is False
    for agent in AGENTS:
        assert env.infos[agent]["end_reason"] == "illegal_action"
        assert env.infos[agent]["game_points"] == env.rewards[agent]
        assert "match_result" not in env.infos[agent]
        assert not env.observe(agent)["action_mask"].any()
    by_last: dict[str, float] = {}
    for agent in env.agent_iter():
        by_last[agent] = env.last()[1]
        env.step(None)
    assert by_last == {AGENTS[offender]: -3.0, other: 0.0}
    env.reset(seed=0)
    assert not any(env.terminations.values())


@pytest.mark.parametrize("suits", ["natural", "canonical"])
def test_raise_names_action_and_position_and_changes_nothing(suits: Any) -> None:
    env = schnapsen_v0.raw_env(suits=suits, episode="match")
    env.reset(seed=1)
    for agent in play(env, np.random.default_rng(1)):
        if not env.agents or env.terminations[agent]:
            break
        before = env.get_state()
        text = str(engine.position_of(env.record))
        for action in np.flatnonzero(env.infos[env.agent_selection]["action_mask"] == 0):
            with pytest.raises(IllegalActionError) as caught:
                env.step(int(action))
            assert text in str(caught.value)
            assert "illegal action" in str(caught.value)
        after = env.get_state()
        np.testing.assert_array_equal(after.record, before.record)
        assert {k: str(v) for k, v in after.turn.items()} == {
            k: str(v) for k, v in before.turn.items()
        }


def test_an_illegal_action_in_a_worker_process_arrives_as_it_was_raised() -> None:
    env = schnapsen_v0.raw_env(suits="canonical")
    env.reset(seed=1)
    with pytest.raises(IllegalActionError, match="it may choose") as caught:
        env.step(int(np.argmin(env.infos[env.agent_selection]["action_mask"])))
    for arrived in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):  # noqa: S301
        assert str(arrived) == str(caught.value)
        assert vars(arrived) == vars(caught.value)
        assert arrived.position == engine.position_of(env.record)


@pytest.mark.parametrize("mode", ["lose", "raise"])
@pytest.mark.parametrize("action", [-1, 27, 1000, 2**70])
def test_an_id_out_of_range_raises_in_every_mode(mode: Any, action: int) -> None:
    env = schnapsen_v0.env(illegal_action=mode)
    env.reset(seed=0)
    before = env.record
    with pytest.raises(IllegalActionError, match="0 to 26"):
        env.step(action)
    np.testing.assert_array_equal(env.record, before)
    assert not any(env.terminations.values())


def test_a_revoke_costs_the_deal() -> None:
    env = schnapsen_v0.env(rules="austrian", illegal_action="revoke")
    env.reset(options={"position": MUST_FOLLOW})
    env.step(parse_action("JS"))  # a card of another suit, with two diamonds in hand
    assert env.infos["player_0"]["end_reason"] == "revoke"
    assert env.rewards == {"player_0": 2.0, "player_1": -2.0}
    assert "illegal_action" not in env.infos["player_1"]


def test_what_is_no_revoke_loses_under_revoke() -> None:
    env = schnapsen_v0.env(rules="austrian", illegal_action="revoke")
    env.reset(options={"position": MUST_FOLLOW})
    env.step(parse_action("AS"))  # not in the hand
    assert env.infos["player_1"]["end_reason"] == "illegal_action"
    assert env.rewards == {"player_0": 0.0, "player_1": -3.0}


def test_a_revoke_is_illegal_in_the_other_modes() -> None:
    lose = schnapsen_v0.env(rules="austrian")
    lose.reset(options={"position": MUST_FOLLOW})
    lose.step(parse_action("JS"))
    assert lose.infos["player_1"]["end_reason"] == "illegal_action"
    refuse = schnapsen_v0.raw_env(rules="austrian")
    refuse.reset(options={"position": MUST_FOLLOW})
    with pytest.raises(IllegalActionError, match="strict phase"):
        refuse.step(parse_action("JS"))


def test_revoke_needs_rules_that_know_it() -> None:
    with pytest.raises(ValueError, match=r"revoke='loses'.*austrian"):
        schnapsen_v0.env(rules="duel", illegal_action="revoke")
    schnapsen_v0.env(rules=replace(RULES["duel"], revoke="loses"), illegal_action="revoke")


# ----------------------------------------------------------------------------- kinds of actions


class FakeTensor:
    """What a torch tensor without dimensions shows of itself."""

    def __init__(self, value: Any, dtype: str, shape: tuple[int, ...] = ()) -> None:
        self.value, self.dtype, self.shape = value, dtype, shape

    def __index__(self) -> int:
        if "int" not in self.dtype and "bool" not in self.dtype:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.value)


def int64_tensor(action: int) -> FakeTensor:
    return FakeTensor(action, "torch.int64")


@pytest.mark.parametrize(
    "make",
    [int, np.int8, np.int32, np.int64, np.uint8, np.array, int64_tensor],
    ids=["int", "int8", "int32", "int64", "uint8", "0-d", "tensor"],
)
def test_integers_of_all_kinds_are_taken(make: Callable[[int], Any]) -> None:
    env = schnapsen_v0.raw_env()
    env.reset(seed=0)
    action = int(env.infos[env.agent_selection]["action_mask"].argmax())
    env.step(make(action))
    assert env.record[r.LED] == action


@pytest.mark.parametrize(
    ("action", "fix"),
    [
        (1.0, r"int\(action\)"),
        (np.float32(1), r"int\(action\)"),
        (FakeTensor(1.0, "torch.float32"), r"int\(action\)"),
        (True, "not the bool"),
        (np.True_, "not the bool"),
        (np.array(True), "not the bool"),
        (FakeTensor(True, "torch.bool"), "not the bool"),
        (np.array([1]), "one integer, not an array"),
        (FakeTensor(1, "torch.int64", (1,)), "one integer, not an array"),
        ("TH", r"parse_action\('TH'\)"),
        (None, "pass an action id"),
        ([1], r"int\(action\)"),
    ],
    ids=repr,
)
def test_everything_else_is_refused_by_name(action: Any, fix: str) -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    before = env.record
    with pytest.raises(TypeError, match=fix):
        env.step(action)
    np.testing.assert_array_equal(env.record, before)


def test_torch_tensors() -> None:
    torch: Any = pytest.importorskip("torch")
    env = schnapsen_v0.raw_env()
    env.reset(seed=0)
    action = int(env.infos[env.agent_selection]["action_mask"].argmax())
    for bad in (torch.tensor(1.0), torch.tensor(True), torch.tensor([action])):
        with pytest.raises(TypeError):
            env.step(bad)
    env.step(torch.tensor(action))
    assert env.record[r.LED] == action


# ------------------------------------------------------------------------------ order of calls


def test_methods_before_the_first_reset() -> None:
    env = schnapsen_v0.env(render_mode="ansi")
    calls: dict[str, Callable[[], Any]] = {
        "step": lambda: env.step(0),
        "step of a done agent": lambda: env.step(None),
        "observe": lambda: env.observe("player_0"),
        "state": env.state,
        "render": env.render,
        "agent_iter": env.agent_iter,
        "get_state": env.get_state,
        "record": lambda: env.record,
    }
    for call in calls.values():
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            call()


@pytest.mark.parametrize(
    "name",
    [
        "agents",
        "num_agents",
        "agent_selection",
        "rewards",
        "terminations",
        "truncations",
        "infos",
    ],
)
def test_attributes_before_the_first_reset(name: str) -> None:
    env = schnapsen_v0.env()
    with pytest.raises(AttributeError, match=rf"{name}.*call reset\(\)"):
        getattr(env, name)
    assert env.possible_agents == list(AGENTS)
    assert env.max_num_agents == 2


def test_unknown_attributes_are_still_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = schnapsen_v0.env().nonsense  # type: ignore[attr-defined]


def test_after_the_end() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    while not any(env.terminations.values()):
        env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    with pytest.raises(ValueError, match="pass None"):
        env.step(0)
    env.step(None)
    env.step(None)
    assert env.agents == []
    for call in (lambda: env.step(None), lambda: env.step(0), env.last):
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            call()
    env.reset()
    assert env.agents == list(AGENTS)


def test_agent_iter_wants_a_step() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="not stepped"):
        for _ in env.agent_iter():
            pass


def test_agent_iter_ends_after_max_iter() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    count = 0
    for agent in env.agent_iter(5):
        env.step(int(env.infos[agent]["action_mask"].argmax()))
        count += 1
    assert count == 5


def test_unknown_arguments_name_the_known_ones() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"rules": "bridge"}, "pagat_auto"),
        ({"episode": "evening"}, "match"),
        ({"reward": "money"}, "game_points"),
        ({"illegal_action": "ignore"}, "raise"),
        ({"memory": "some"}, "last_trick"),
        ({"suits": "random"}, "canonical"),
        ({"target": 99}, "11"),
        ({"render_mode": "rgb_array"}, "ansi"),
        ({"pack": "swiss"}, "german"),
        ({"history": True, "memory": "none"}, "history"),
    ]
    for arguments, known in cases:
        with pytest.raises(ValueError, match=known):
            schnapsen_v0.env(**arguments)
    with pytest.raises(TypeError, match="Rules"):
        schnapsen_v0.env(rules=3)  # type: ignore[arg-type]


# --------------------------------------------------------------------------- seeds and options


def test_equal_seeds_give_equal_deals_reset_after_reset() -> None:
    first, second = schnapsen_v0.env(), schnapsen_v0.env(rules="duel", episode="match")
    first.reset(seed=42)
    second.reset(seed=42)
    deals = [opening(first)]
    assert opening(second) == deals[0]
    for _ in range(20):
        first.reset()
        second.reset()
        deals.append(opening(first))
        assert opening(second) == deals[-1]
    assert len(set(deals)) == 21
    first.reset(seed=43)
    assert opening(first) != deals[0]


def test_a_seed_deals_as_the_engine_does() -> None:
    env = schnapsen_v0.env()
    for seed in (0, 1, 2**40, np.int64(7)):
        env.reset(seed=seed)  # type: ignore[arg-type]
        record = engine.new_record(int(seed))
        engine.deal(record)
        np.testing.assert_array_equal(env.record, record)


def test_the_first_reset_without_a_seed_is_random() -> None:
    deals: set[tuple[Any, ...]] = set()
    for _ in range(5):
        env = schnapsen_v0.env()
        env.reset()
        deals.add(opening(env))
    assert len(deals) == 5


def test_nothing_global_is_drawn_from() -> None:
    np.random.seed(0)  # noqa: NPY002 - the global generator is what must not be touched
    before = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    env = schnapsen_v0.env(render_mode="ansi")
    env.reset()
    for _ in play(env, np.random.default_rng(0)):
        env.render()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]  # noqa: NPY002


@pytest.mark.parametrize("seed", [1.5, True, np.True_, "1", [1], np.array([1, 2])], ids=repr)
def test_a_seed_that_is_no_integer(seed: Any) -> None:
    for env in (schnapsen_v0.env(), SchnapsenEnv()):
        with pytest.raises(TypeError, match=r"a seed is an integer or None, not .*: pass an int"):
            env.reset(seed=seed)


def test_integers_of_numpy_are_seeds_and_seats() -> None:
    env, twin = schnapsen_v0.env(), schnapsen_v0.env()
    env.reset(seed=np.int64(3), options={"forehand": np.uint8(1)})  # type: ignore[arg-type]
    twin.reset(seed=3, options={"forehand": 1})
    np.testing.assert_array_equal(env.record, twin.record)


@pytest.mark.parametrize("options", [[1], 5, "deck"], ids=repr)
def test_options_that_are_no_dict(options: Any) -> None:
    for env in (schnapsen_v0.env(), SchnapsenEnv()):
        with pytest.raises(ValueError, match="options is a dict from names to values, or None"):
            env.reset(options=options)


@pytest.mark.parametrize("state", [5, None, {}, {"settings": 1}, [1]], ids=repr)
def test_a_state_that_is_none(state: Any) -> None:
    with pytest.raises(ValueError, match=r"set_state\(\) takes what get_state\(\) gave"):
        schnapsen_v0.env().set_state(state)
    with pytest.raises(
        ValueError, match=r"state must be a dict with .*, as get_state\(\) gives it"
    ):
        SchnapsenEnv().set_state(state)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rules": "pagat", "target": 5},
        {"episode": "match", "rules": "french"},
        {"reward": "win"},
        {"illegal_action": "raise"},
        {"illegal_action": "revoke", "rules": "austrian"},
        {"memory": "none"},
        {"suits": "canonical"},
        {"history": True},
        {"render_mode": "ansi", "pack": "german"},
    ],
    ids=str,
)
def test_arguments_survive_seeded_resets(arguments: dict[str, Any]) -> None:
    """An environment that was reset often plays as a new one does."""
    used, new = schnapsen_v0.env(**arguments), schnapsen_v0.env(**arguments)
    for seed in range(3):
        used.reset(seed=seed)
        for _ in play(used, np.random.default_rng(seed)):
            pass
    used.reset(seed=9)
    new.reset(seed=9)
    assert used.rules == new.rules
    assert used.layout == new.layout
    if used.render_mode:
        assert used.render() == new.render()
    assert trace(used, 9) == trace(new, 9)
    plain = schnapsen_v0.env()
    plain.reset(seed=9)
    if arguments.keys() & {"memory", "suits", "history"}:
        assert trace(plain, 9) != trace(new.clone(), 9)
    for env in (used, new):
        env.reset(seed=9, options={"position": MUST_FOLLOW})
    illegal = parse_action("AS") if "suits" not in arguments else CLAIM
    outcomes: list[Any] = []
    for env in (used, new):
        try:
            env.step(illegal)
            outcomes.append(env.rewards)
        except IllegalActionError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], str) == (arguments.get("illegal_action") == "raise")


def test_deck_and_forehand() -> None:
    env = schnapsen_v0.env()
    deck = list(range(NUM_CARDS))[::-1]
    for forehand in (0, 1):
        env.reset(seed=0, options={"deck": deck, "forehand": forehand, "options": 1})
        position = engine.position_of(env.record)
        assert position.forehand == position.leader == forehand
        assert set(position.hands[forehand]) == set(deck[:5])
        assert set(position.hands[1 - forehand]) == set(deck[5:10])
        assert position.turned_up == deck[10]
        assert list(position.talon) == deck[11:]
        assert env.agent_selection == AGENTS[forehand]
    env.reset(options={"deck": np.array(deck)})
    assert engine.position_of(env.record).turned_up == deck[10]


def test_one_option_leaves_the_rest_to_the_seed() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=5)
    plain = env.record
    forehand = int(plain[r.FOREHAND])
    env.reset(seed=5, options={"forehand": 1 - forehand})
    np.testing.assert_array_equal(env.record[r.DECK : r.DECK + 2], plain[r.DECK : r.DECK + 2])
    assert env.record[r.FOREHAND] == 1 - forehand
    env.reset(seed=5, options={"deck": list(range(NUM_CARDS))})
    assert env.record[r.FOREHAND] == forehand
    assert env.record[r.RANDOM] == plain[r.RANDOM]


def test_options_hold_for_the_first_deal_only() -> None:
    env = schnapsen_v0.env(episode="match")
    deck = list(range(NUM_CARDS))
    env.reset(seed=0, options={"deck": deck, "forehand": 1})
    first = env.record[r.DECK : r.DECK + 2].tolist()
    for _ in play(env, np.random.default_rng(0)):
        if env.agents and "end_reason" in env.infos["player_0"]:
            break
    assert env.record[r.FOREHAND] == 0
    assert env.record[r.DECK : r.DECK + 2].tolist() != first
    env.reset(seed=0)
    assert env.record[r.DECK : r.DECK + 2].tolist() != first


def test_a_position_as_dict_text_and_object() -> None:
    env = schnapsen_v0.env(rules="austrian")
    position = Position.from_dict(MUST_FOLLOW)
    for form in (MUST_FOLLOW, position, str(position), position.to_dict()):
        env.reset(seed=3, options={"position": form})
        now = engine.position_of(env.record)
        assert now.hands == position.hands
        assert now.lead == position.lead
        assert env.agent_selection == "player_1"
        assert env.record[r.RANDOM] == engine.new_record(3)[r.RANDOM]


def test_a_match_can_begin_from_a_position() -> None:
    env = schnapsen_v0.env(rules="austrian", episode="match")
    env.reset(options={"position": {**MUST_FOLLOW, "match_score": [6, 4]}})
    for _ in play(env, np.random.default_rng(2)):
        if "match_score" in env.infos.get("player_0", {}):
            assert sum(env.infos["player_0"]["match_score"]) > 10
            break
    else:
        pytest.fail("no deal ended")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deck": [0] * 20}, "permutation"),
        ({"deck": list(range(19))}, "permutation"),
        ({"deck": [float(c) for c in range(20)]}, "permutation"),
        ({"forehand": 2}, "0 or 1"),
        ({"forehand": True}, "0 or 1"),
        ({"forehand": 1.0}, "forehand is 0 or 1, not 1.0"),
        ({"forehand": np.array([0, 1])}, r"forehand is 0 or 1, not array\(\[0, 1\]\)"),
        ({"deck": [[1, 2], [3]]}, "permutation"),
        (
            {"position": {**MUST_FOLLOW, "match_score": [2**63, 0]}},
            "match_score is two .* 999999999",
        ),
        ({"position": {**MUST_FOLLOW, "leader": 0.0}}, "leader: a seat is 0 or 1, not 0.0"),
        ({"forehand": "player_0"}, "0 or 1"),
        ({"position": {"trump": "H"}}, "missing"),
        ({"position": {**MUST_FOLLOW, "lead": "AD"}}, "AD is in"),
        ({"position": "trump=H"}, "missing"),
        ({"position": MUST_FOLLOW, "forehand": 0}, "not both"),
        ({"position": MUST_FOLLOW, "deck": list(range(20))}, "not both"),
    ],
    ids=str,
)
def test_options_that_make_no_deal(options: dict[str, Any], message: str) -> None:
    env = schnapsen_v0.env(rules="austrian")
    env.reset(seed=0)
    before = env.record
    for seed in (1, None):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=seed, options=options)
        np.testing.assert_array_equal(env.record, before)
    env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))


def test_positions_that_are_over_are_refused() -> None:
    env = schnapsen_v0.env(rules="austrian", episode="match")
    with pytest.raises(ValueError, match="the match is over"):
        env.reset(options={"position": {**MUST_FOLLOW, "match_score": [7, 0]}})
    env.reset(seed=0)
    for _ in play(env, np.random.default_rng(0)):
        pass
    with pytest.raises(ValueError, match="the deal is over"):
        env.reset(options={"position": engine.position_of(env.record)})
    with pytest.raises(TypeError, match="its dict or its text"):
        env.reset(options={"position": 7})
    with pytest.raises(TypeError, match="its dict or its text"):
        env.reset(options={"position": [1]})
    with pytest.raises(ValueError, match="automatic claims"):
        schnapsen_v0.env().reset(
            options={"position": {**MUST_FOLLOW, "marriages": [["C"], []]}}  # 50 + 20
        )


# -------------------------------------------------------------------------------------- copies


def pickled(env: SchnapsenAECEnv) -> SchnapsenAECEnv:
    return pickle.loads(pickle.dumps(env))  # noqa: S301  # the test's own bytes


def restored(env: SchnapsenAECEnv) -> SchnapsenAECEnv:
    """Another environment, in the middle of something else, set to the state of ``env``."""
    other = schnapsen_v0.env(rules="pagat", episode="match", suits="canonical", target=3)
    other.reset(seed=99)
    other.step(int(other.infos[other.agent_selection]["action_mask"].argmax()))
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))  # noqa: S301  # the test's own bytes
    return other


@pytest.mark.parametrize(
    "make_copy", [copy.deepcopy, SchnapsenAECEnv.clone, pickled, restored], ids=lambda f: f.__name__
)
def test_a_copy_continues_as_the_original_would(
    make_copy: Callable[[SchnapsenAECEnv], SchnapsenAECEnv],
) -> None:
    env = schnapsen_v0.env(rules="pagat", episode="match", suits="canonical", target=3)
    for steps in (0, 1, 7, 30, 10_000):
        env.reset(seed=steps)
        rng = np.random.default_rng(steps)
        for _, _ in zip(range(steps), play(env, rng), strict=False):
            pass
        twin = make_copy(env)
        assert twin.agents == env.agents
        for agent in AGENTS:
            for key in ("observation", "action_mask"):
                np.testing.assert_array_equal(twin.observe(agent)[key], env.observe(agent)[key])
        np.testing.assert_array_equal(twin.state(), env.state())
        before = env.record
        seen = trace(twin, 1)
        np.testing.assert_array_equal(env.record, before)  # the copy is independent
        assert trace(env, 1) == seen
        for one in (env, twin):  # the random stream was copied too
            one.reset()
        assert opening(env) == opening(twin)


def test_copies_before_the_first_reset() -> None:
    for make_copy in (copy.deepcopy, SchnapsenAECEnv.clone, pickled):
        twin = make_copy(schnapsen_v0.env(rules="french"))
        twin.reset(seed=0)
        assert twin.rules.name == "french"


def test_a_state_can_be_set_again_and_again() -> None:
    env = schnapsen_v0.env()
    env.reset(seed=0)
    state = env.get_state()
    first = trace(env, 0)
    env.set_state(state)
    assert trace(env, 0) == first
    env.set_state(state)
    assert trace(env, 0) == first


def test_a_state_of_other_settings_is_refused() -> None:
    env = schnapsen_v0.env(rules="pagat")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="same arguments"):
        schnapsen_v0.env(rules="duel").set_state(env.get_state())


def test_a_state_that_was_cut_or_altered_is_refused_and_changes_nothing() -> None:
    env = schnapsen_v0.env(episode="match")
    env.reset(seed=0)
    while env.finished_deal() is None:
        env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    state = env.get_state()
    before = env.record
    for damaged, message in (
        (replace(state, record=state.record[:5]), r"state\['record'\] must be int64\[\d+\]"),
        (replace(state, record=state.record.astype(float)), "not float64"),
        (replace(state, turn={}), r"state\.turn must be a dict with"),
        (replace(state, turn=state.turn | {"_finished": before[1:]}), r"\['_finished'\] must be"),
        (pickle.dumps(state), "takes what get_state"),
    ):
        with pytest.raises(ValueError, match=message):
            env.set_state(damaged)  # pyright: ignore[reportArgumentType] - which is the fault
        np.testing.assert_array_equal(env.record, before)
    env.set_state(state)


def test_a_copy_does_not_compile_the_engine_again() -> None:
    """Copied arrays must be of the types that the engine is compiled for already."""
    env = schnapsen_v0.env()
    env.reset(seed=0)
    env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
    advance: Any = sys.modules["schnapsen_env.episode"].advance
    signatures = list(getattr(advance, "signatures", []))
    for twin in (env.clone(), pickled(env)):
        twin.step(int(twin.infos[twin.agent_selection]["action_mask"].argmax()))
    assert list(getattr(advance, "signatures", [])) == signatures


# ------------------------------------------------------------------------------------- package


def test_import_loads_no_compiler_and_registers() -> None:
    loaded = run_python(
        "-c",
        "import sys, gymnasium, schnapsen_env\n"
        "assert 'schnapsen/Schnapsen-v0' in gymnasium.registry\n"
        "heavy = {'numba', 'torch', 'matplotlib', 'pygame', 'PIL'}\n"
        "print(*(heavy | {'schnapsen_env.render', 'schnapsen_env.integrations'})"
        " & set(sys.modules))",
    )
    assert loaded.split() == []


def test_public_names() -> None:
    for name in schnapsen_env.__all__:
        assert getattr(schnapsen_env, name) is not None
        assert name in dir(schnapsen_env)
    assert schnapsen_env.schnapsen_v0 is schnapsen_v0
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = schnapsen_env.nonsense  # type: ignore[attr-defined]


def test_the_environment_module_has_no_rule_of_its_own() -> None:
    """The shells know neither card points nor suits; all of that is the engine's."""
    for name in ("env", "single_agent", "single_agent_vector"):
        source = (ROOT / "schnapsen_env" / f"{name}.py").read_text(encoding="utf-8")
        for word in ("schnapsen_env.cards", "RULES[", "must_beat", "MARRIAGE", "66"):
            assert word not in source, f"{name}.py mentions {word}"


def test_registration_in_gymnasium_names_both_entry_points() -> None:
    spec = gymnasium.spec("schnapsen/Schnapsen-v0")
    assert spec.entry_point == "schnapsen_env.single_agent:SchnapsenEnv"
    assert spec.vector_entry_point is not None


def test_parallel_env_copies_continue_alike() -> None:
    env: Any = schnapsen_v0.parallel_env(rules="pagat")
    env.reset(seed=4)
    state = env.get_state()
    copies = [env, env.clone(), copy.deepcopy(env), pickle.loads(pickle.dumps(env))]  # noqa: S301  # the test's own bytes
    restored: Any = schnapsen_v0.parallel_env(rules="pagat")
    restored.reset(seed=9)
    restored.set_state(state)
    copies.append(restored)
    for _ in range(12):
        legal = np.flatnonzero(env.aec_env.infos[env.aec_env.agent_selection]["action_mask"])
        action = int(legal[-1] if legal[-1] < 20 else legal[0])
        seen = [one.step(dict.fromkeys(AGENTS, action)) for one in copies]
        for observations, rewards, terminations, *_ in seen[1:]:
            assert rewards == seen[0][1]
            assert terminations == seen[0][2]
            for agent, observation in observations.items():
                expected = seen[0][0][agent]["observation"]
                np.testing.assert_array_equal(observation["observation"], expected)
        if not env.agents:
            break
