"""What users of other turn-based environments with masks ran into, and what ours answers.

One test for each report, by its number in the list that the project keeps; the docstrings name the
public threads. Reports that need another library to show are in ``tests_integration``.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from schnapsen_env import RULES, describe, engine, schnapsen_v0
from schnapsen_env.actions import CLOSE, NUM_ACTIONS, declare, parse_action
from schnapsen_env.cards import card_text
from schnapsen_env.engine import record as r
from schnapsen_env.env import SchnapsenAECEnv
from schnapsen_env.observation import DEFAULT_LAYOUT, layout_table
from schnapsen_env.sampling import redeal
from schnapsen_env.vector import SchnapsenVectorEnv

ROOT = Path(__file__).resolve().parent.parent


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301 - what this test wrote


def begun(moves: int, seed: int = 3, **arguments: Any) -> SchnapsenAECEnv:
    """A deal of ``seed`` after some random actions, none of which closes."""
    env = schnapsen_v0.env(**arguments)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(moves):
        env.step(random_action(env, rng))
    return env


def random_action(env: SchnapsenAECEnv, rng: np.random.Generator) -> int:
    legal = np.flatnonzero(env.infos[env.agent_selection]["action_mask"])
    return int(rng.choice(legal[legal < CLOSE]))


def play_to_the_end(env: SchnapsenAECEnv, seed: int = 0) -> list[Any]:
    """Random play; everything that was seen and earned on the way."""
    rng = np.random.default_rng(seed)
    seen: list[Any] = []
    while not any(env.terminations.values()):
        agent = env.agent_selection
        seen.append((agent, env.observe(agent)["observation"].tolist()))
        env.step(random_action(env, rng))
    return [*seen, dict(env.rewards)]


COPIES: list[Callable[[Any], Any]] = [copy.deepcopy, pickled, SchnapsenAECEnv.clone]


@pytest.mark.parametrize("duplicate", COPIES, ids=["deepcopy", "pickle", "clone"])
def test_trap_01_a_copy_in_the_middle_of_a_deal_keeps_the_deal(
    duplicate: Callable[[Any], Any],
) -> None:
    """PettingZoo#1307, #1186, #1271: a copied environment had an empty board."""
    env = begun(6, render_mode="ansi")
    twin = duplicate(env)
    assert twin.render() == env.render()
    assert twin.state().tolist() == env.state().tolist()
    for agent in env.possible_agents:
        for key in ("observation", "action_mask"):
            assert twin.observe(agent)[key].tolist() == env.observe(agent)[key].tolist()
    # Independent, too: what is played in the copy does not happen in the original.
    before = env.render()
    played = play_to_the_end(twin)
    assert env.render() == before
    assert play_to_the_end(env) == played


@pytest.mark.parametrize("moves", [0, 1, 6])
def test_trap_02_a_pickled_environment_can_be_stepped(moves: int) -> None:
    """PettingZoo#345: it crashed at the next step."""
    twin = pickled(begun(moves))
    assert play_to_the_end(twin)[-1].keys() == {"player_0", "player_1"}
    never_reset = pickled(schnapsen_v0.env())
    never_reset.reset(seed=1)
    assert len(play_to_the_end(never_reset)) > 1


def test_trap_06_dead_steps_and_rewards_are_where_the_documents_say() -> None:
    """PettingZoo#1260, #355: what a dead step is, and when rewards appear."""
    env = begun(0, rules="pagat_auto")
    points = play_to_the_end(env)[-1]
    assert set(points.values()) != {0.0}
    assert sum(points.values()) == 0
    collected: dict[str, float] = {}
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        assert terminated
        assert not truncated
        assert observation is not None
        assert info["game_points"] == reward
        assert info["end_reason"] in {"sixty_six", "last_trick", "failed_close"}
        collected[agent] = reward
        with pytest.raises(ValueError, match=f"over for {agent}: pass None as its action"):
            env.step(0)
        env.step(None)
    assert collected == points
    assert env.agents == []
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    for key in ("game_points", "end_reason"):
        assert f"`{key}`" in page


def test_trap_07_one_player_may_act_several_times_in_a_row() -> None:
    """PettingZoo#1233: alternation was assumed where a turn has several actions."""
    env = schnapsen_v0.raw_env(rules="duel")
    # Forehand holds the jack of trumps and a marriage, and wins the trick that it leads.
    hands = "JH KS QS AH AD", "JC QC KC JD QD"
    rest = "TH TC AC KD TD JS TS AS QH KH"
    deck = [parse_action(card) for text in (*hands, rest) for card in text.split()]
    env.reset(options={"deck": deck, "forehand": 1})
    movers: list[str] = []
    for action in ("exchange", "declare-S", "KS", "JD", "AH"):
        movers.append(env.agent_selection)
        env.step(parse_action(action))
    # Exchange, declaration and lead are three actions of one player; the winner leads again.
    assert movers == ["player_1", "player_1", "player_1", "player_0", "player_1"]
    assert env.agent_selection == "player_0"


OPTIONS: list[dict[str, Any]] = [
    {"rules": "pagat"},
    {"episode": "match", "target": 3},
    {"reward": "win"},
    {"illegal_action": "raise"},
    {"memory": "none"},
    {"suits": "canonical"},
    {"history": True},
]


@pytest.mark.parametrize("arguments", OPTIONS, ids=lambda arguments: next(iter(arguments)))
def test_trap_10_no_option_reverts_on_a_seeded_reset(arguments: dict[str, Any]) -> None:
    """PettingZoo#1312, #1335, #1367: configured rewards went back to the defaults."""
    env, new = schnapsen_v0.env(**arguments), schnapsen_v0.env(**arguments)
    for seed in (1, 2):
        env.reset(seed=seed)
        play_to_the_end(env)
    env.reset(seed=5)
    new.reset(seed=5)
    assert env.get_state().settings == new.get_state().settings
    assert play_to_the_end(env) == play_to_the_end(new)


def test_trap_11_the_documented_layout_is_the_layout() -> None:
    """PettingZoo#1301, #235, #479: tables written by hand were wrong."""
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert layout_table() in page
    env = begun(6)
    agent = env.agent_selection
    seen = env.observe(agent)["observation"]
    words = describe(seen, env.layout)
    assert list(words) == [field.name for field in DEFAULT_LAYOUT.fields]
    hand = next(field for field in DEFAULT_LAYOUT.fields if field.name == "hand")
    held = np.flatnonzero(seen[hand.offset : hand.offset + hand.size])
    assert words["hand"] == [card_text(card) for card in held.tolist()]
    playable = np.flatnonzero(env.infos[agent]["action_mask"][:20])
    assert set(playable) <= set(held)


@pytest.mark.parametrize("rules", list(RULES))
def test_trap_12_the_hidden_cards_are_in_nothing_that_an_agent_gets(rules: str) -> None:
    """PettingZoo#233: the opponent's hand was in the observation.

    Deals that look the same to a player are played side by side: ``last()`` must be the same.
    """
    rng = np.random.default_rng(4)
    chance = engine.new_record(6)
    hands: set[int] = set()
    for seed in range(8):
        env = begun(0, seed=seed, rules=rules)
        for _ in range(12):
            if any(env.terminations.values()):
                break
            agent = env.agent_selection
            state = env.get_state()
            seat = env.possible_agents.index(agent)
            redeal(state.record, seat, chance)
            hands.add(int(state.record[r.HAND + 1 - seat]))
            other = schnapsen_v0.env(rules=rules)
            other.reset()
            other.set_state(state)
            for one, two in zip(env.last(), other.last(), strict=True):
                assert str(one) == str(two)
            env.step(random_action(env, rng))
    assert len(hands) > 20  # the hidden cards did differ


def test_trap_13_nothing_global_is_drawn_from_or_seeded() -> None:
    """rlcard#113, #125: games could not be seeded, for they drew from global generators."""

    def deal() -> list[Any]:
        env = begun(0, seed=11)
        return [env.state().tolist(), play_to_the_end(env)]

    first = deal()
    np.random.seed(99)  # noqa: NPY002 - whatever a user does
    random.seed(99)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    assert deal() == first
    after = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    assert after == before


@pytest.mark.parametrize("last_mover", ["player_0", "player_1"])
def test_trap_15_both_players_get_their_last_reward_and_observation(last_mover: str) -> None:
    """ray#9029, #31156: the reward of the player who did not move last was lost."""
    ended_by: set[str] = set()
    for seed in range(40):
        env = begun(0, seed=seed, rules="pagat_auto")
        mover = ""
        rng = np.random.default_rng(seed)
        while not any(env.terminations.values()):
            mover = env.agent_selection
            env.step(random_action(env, rng))
        ended_by.add(mover)
        if mover != last_mover:
            continue
        assert env.terminations == {"player_0": True, "player_1": True}
        waiting = env.possible_agents[1 - env.possible_agents.index(mover)]
        assert env.rewards[waiting] == -env.rewards[mover] != 0
        got = {}
        for agent in env.agent_iter():
            observation, reward, *_ = env.last()
            assert env.observation_space(agent).contains(observation)
            got[agent] = reward
            env.step(None)
        assert got[waiting] == -got[mover] != 0
        parallel = schnapsen_v0.parallel_env(rules="pagat_auto")
        parallel.reset(seed=seed)
        rng = np.random.default_rng(seed)
        rewards: dict[str, float] = {}
        last: dict[str, Any] = {}
        while parallel.agents:
            action = random_action(parallel.aec_env, rng)  # type: ignore[attr-defined]
            last, rewards, *_ = parallel.step(dict.fromkeys(parallel.agents, action))
        assert rewards == got
        assert last.keys() == got.keys()
        return
    pytest.fail(f"no deal was ended by {last_mover}, only by {ended_by}")


def test_trap_23_observing_both_players_at_any_time_changes_nothing() -> None:
    """pytorch/rl#2990: a library asks for the observations of all agents after every step."""
    quiet, asked = begun(0, seed=8), begun(0, seed=8)
    rng, again = np.random.default_rng(8), np.random.default_rng(8)
    while not any(quiet.terminations.values()):
        for agent in (*asked.possible_agents, *reversed(asked.possible_agents)):
            first, second = asked.observe(agent), asked.observe(agent)
            assert first["observation"].tolist() == second["observation"].tolist()
            assert first["action_mask"].any() == (agent == asked.agent_selection)
            first["observation"][:] = -1  # the arrays are the caller's
        assert str(quiet.last()) == str(asked.last())
        quiet.step(random_action(quiet, rng))
        asked.step(random_action(asked, again))
    assert quiet.rewards == asked.rewards


def test_trap_24_finished_players_are_still_observed_and_live_masks_are_never_empty() -> None:
    """pytorch/rl#3702, #1471: a KeyError for agents that are done, and masks without an action."""
    for seed in range(10):
        env = begun(0, seed=seed, rules="pagat")
        rng = np.random.default_rng(seed)
        while not any(env.terminations.values()):
            observation, *_, info = env.last()
            assert observation is not None
            assert observation["action_mask"].any()
            assert info["action_mask"].tolist() == observation["action_mask"].tolist()
            env.step(random_action(env, rng))
        while True:
            for agent in env.possible_agents:
                seen = env.observe(agent)
                assert env.observation_space(agent).contains(seen)
                assert not seen["action_mask"].any()
            if not env.agents:
                break
            env.step(None)


def test_trap_25_libraries_without_a_turn_based_interface_have_a_parallel_one() -> None:
    """BenchMARL#76: environments whose agents take turns could not be used."""
    env = schnapsen_v0.parallel_env(rules="pagat_auto")
    observations, infos = env.reset(seed=2)
    rng = np.random.default_rng(2)
    total = dict.fromkeys(env.possible_agents, 0.0)
    steps = 0
    while env.agents:
        assert observations.keys() == infos.keys() == set(env.agents)
        movers = [agent for agent in env.agents if observations[agent]["action_mask"].any()]
        assert len(movers) == 1
        legal = np.flatnonzero(observations[movers[0]]["action_mask"])
        # Whatever the waiting player answers is not used.
        actions: dict[str, int | None] = dict.fromkeys(env.agents, NUM_ACTIONS - 1)
        actions[movers[0]] = int(rng.choice(legal))
        observations, rewards, _, _, infos = env.step(actions)
        steps += 1
        for agent, reward in rewards.items():
            total[agent] += reward
    assert steps >= 2
    assert total["player_0"] == -total["player_1"] != 0


def test_trap_26_the_autoreset_is_declared_and_keeps_the_last_observation() -> None:
    """Gymnasium#1265, #1103, #389, cleanrl#499: silent resets, and last observations lost."""
    for mode in AutoresetMode:
        env = SchnapsenVectorEnv(4, autoreset_mode=mode)
        assert env.metadata["autoreset_mode"] is mode
    with pytest.raises(ValueError, match="AutoresetMode"):
        SchnapsenVectorEnv(4, autoreset_mode="Sometimes")
    env = SchnapsenVectorEnv(8, autoreset_mode=AutoresetMode.SAME_STEP)
    # The same deals one at a time, which say what the last observations are.
    singles = [schnapsen_v0.env() for _ in range(8)]
    env.reset(seed=20)
    for row, single in enumerate(singles):
        single.reset(seed=20 + row)
    waiting = set(range(8))
    while waiting:
        actions = env.sample_actions()
        _, _, terminations, _, info = env.step(actions)
        for row in sorted(waiting):
            singles[row].step(int(actions[row]))
            if terminations[row]:
                waiting.remove(row)
                assert info["_final_observation"][row]
                for seat, agent in enumerate(singles[row].possible_agents):
                    last = singles[row].observe(agent)["observation"]
                    assert info["final_observation"][row, seat].tolist() == last.tolist()


def test_trap_28_every_environment_uses_the_same_two_keys_and_renaming_is_a_line() -> None:
    """sample-factory#305, ray#44780: other libraries look for other keys."""
    keys = {"observation", "action_mask"}
    aec = begun(0)
    assert aec.observe(aec.agent_selection).keys() == keys
    parallel, _ = schnapsen_v0.parallel_env().reset(seed=0)
    assert all(seen.keys() == keys for seen in parallel.values())
    single = gymnasium.make("schnapsen/Schnapsen-v0", opponent="random", observation="dict")
    seen, info = single.reset(seed=0)
    assert seen.keys() == keys
    assert info["action_mask"].tolist() == seen["action_mask"].tolist()
    batch, _ = SchnapsenVectorEnv(2).reset(seed=0)
    assert batch.keys() == keys
    names = {"observation": "obs", "action_mask": "mask"}
    space: Any = single.observation_space

    def rename(given: dict[str, Any]) -> dict[str, Any]:
        return {names[key]: value for key, value in given.items()}

    wrappers: Any = gymnasium.wrappers
    renamed = wrappers.TransformObservation(
        single,
        rename,
        gymnasium.spaces.Dict({names[key]: space[key] for key in space}),
    )
    again, _ = renamed.reset(seed=0)
    assert again["obs"].tolist() == seen["observation"].tolist()
    assert renamed.observation_space.contains(again)


def test_marriages_have_the_ids_of_the_table() -> None:
    """The decks above are written with action texts; this is what they stand for."""
    assert parse_action("declare-S") == declare(3) == 23
