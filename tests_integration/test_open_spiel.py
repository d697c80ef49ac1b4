"""OpenSpiel: its own tests pass on our game, players go both ways, shimmy sees the same game."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schnapsen_env import RULES, engine, schnapsen_v0
from schnapsen_env.actions import CLOSE
from schnapsen_env.engine import record as r
from schnapsen_env.integrations import open_spiel as ours
from schnapsen_env.integrations.extras import require
from schnapsen_env.integrations.open_spiel import (
    AgentBot,
    BotAgent,
    SchnapsenGame,
    SchnapsenState,
    ismcts_agent,
    ismcts_bot,
    pyspiel,
)
from schnapsen_env.observation import Layout
from schnapsen_env.opponents import HeuristicOpponent, RandomOpponent
from schnapsen_env.sampling import redeal
from schnapsen_env.solver import solve
from tests.processes import run_python

ROOT = Path(__file__).resolve().parent.parent


def _game(**params: Any) -> SchnapsenGame:
    return pyspiel.load_game("python_schnapsen", params)


def _record(state: SchnapsenState) -> ours.Record:
    assert state.record is not None
    return state.record


def _sensible(legal: Any, rng: np.random.Generator) -> int:
    """A random action; claiming and closing, which end most deals at once, only now and then."""
    cards = [action for action in legal if action < CLOSE]
    return int(rng.choice(cards if rng.random() < 0.9 else legal))


def _play_randomly(state: SchnapsenState, rng: np.random.Generator, moves: int = 99) -> None:
    """Take chance outcomes, and up to ``moves`` actions of players, all at random."""
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(rng.choice(outcomes, p=odds)))
        elif moves > 0:
            moves -= 1
            state.apply_action(_sensible(state.legal_actions(), rng))
        else:
            return


# ------------------------------------------------------------------------------ the game itself


@pytest.mark.parametrize("chance", ["explicit", "sampled"])
@pytest.mark.parametrize("rules", list(RULES))
def test_random_simulation_of_open_spiel_passes(rules: str, chance: str) -> None:
    game = _game(rules=rules, chance=chance, deals=20)
    pyspiel.random_sim_test(game, num_sims=5, serialize=True, verbose=False)


def test_game_is_loaded_by_a_text_and_says_what_it_is() -> None:
    game = pyspiel.load_game("python_schnapsen(rules=pagat,chance=sampled,seed=3,deals=7)")
    assert isinstance(game, SchnapsenGame)
    assert game.constants.rules == RULES["pagat"]
    assert (game.min_utility(), game.max_utility(), game.utility_sum()) == (-3, 3, 0)
    assert game.num_distinct_actions() == 27
    assert game.max_chance_outcomes() == 7
    assert game.max_chance_nodes_in_history() == 1
    assert _game().max_chance_nodes_in_history() == 21
    assert _game(forehand=0).max_chance_nodes_in_history() == 20
    assert game.observation_tensor_shape() == [Layout().size]
    assert game.information_state_tensor_shape() == [Layout(history=True).size]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rules": "whist"}, "choose one of duel, last_trick_ten"),
        ({"chance": "dice"}, "choose one of explicit, sampled"),
        ({"forehand": 2}, "choose 0, 1, or -1"),
        ({"deals": 0}, "at least one deal"),
    ],
)
def test_unknown_values_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _game(**params)
    with pytest.raises(ValueError, match="no parameter 'colour': it takes rules, chance"):
        SchnapsenGame({"colour": 1})


def test_registering_again_changes_nothing() -> None:
    before = pyspiel.ISMCTSBot.step
    ours.register()
    assert pyspiel.registered_names().count("python_schnapsen") == 1
    assert pyspiel.ISMCTSBot.step is before


def test_actions_read_well_and_are_read_back() -> None:
    state = _game(rules="pagat").dealt_state(range(20), forehand=0)
    texts = {state.action_to_string(0, action) for action in range(27)}
    assert {"play TH", "declare H", "exchange", "close", "claim"} < texts
    assert len(texts) == 27
    assert state.string_to_action("play JC") == 0
    root = _game().new_initial_state()
    assert root.action_to_string(1) == "player 1 leads first"
    root.apply_action(1)
    assert root.action_to_string(13) == "deal TH"
    assert str(root) == "forehand=1 dealt=-"
    sampled = _game(chance="sampled", deals=3).new_initial_state()
    assert sampled.action_to_string(2) == "deal number 2"


@pytest.mark.parametrize("rules", list(RULES))
def test_tensors_and_returns_are_those_of_the_aec_environment(rules: str) -> None:
    rng = np.random.default_rng(5)
    for deal in range(6):
        deck = rng.permutation(20)
        forehand = deal % 2
        plain = schnapsen_v0.raw_env(rules=rules)
        recall = schnapsen_v0.raw_env(rules=rules, history=True)
        options = {"deck": deck, "forehand": forehand}
        plain.reset(options=options)
        recall.reset(options=options)
        state = _game(rules=rules).dealt_state(deck, forehand)
        while not state.is_terminal():
            assert f"player_{state.current_player()}" == plain.agent_selection
            for seat, agent in enumerate(plain.possible_agents):
                assert (
                    state.observation_tensor(seat) == plain.observe(agent)["observation"].tolist()
                )
                seen = recall.observe(agent)
                assert state.information_state_tensor(seat) == seen["observation"].tolist()
                assert state.legal_actions(seat) == np.flatnonzero(seen["action_mask"]).tolist()
            action = _sensible(state.legal_actions(), rng)
            plain.step(action)
            recall.step(action)
            state.apply_action(action)
        rewards = [plain.rewards[agent] for agent in plain.possible_agents]
        assert state.returns() == rewards
        assert state.rewards() == rewards


def test_numbered_deals_are_those_of_the_environment() -> None:
    game = _game(chance="sampled", seed=40, deals=5)
    for number in range(5):
        state = game.new_initial_state()
        state.apply_action(number)
        env = schnapsen_v0.raw_env()
        env.reset(seed=40 + number)
        assert f"player_{state.current_player()}" == env.agent_selection
        for seat, agent in enumerate(env.possible_agents):
            assert state.observation_tensor(seat) == env.observe(agent)["observation"].tolist()


def test_information_state_texts_and_tensors_tell_the_same_moments_apart() -> None:
    """Along many deals, with few enough decks that equal information states occur."""
    rng = np.random.default_rng(1)
    game = _game(chance="sampled", deals=2, forehand=0)
    tensor_of: dict[str, tuple[float, ...]] = {}
    count = 0
    for _ in range(150):
        state = game.new_initial_state()
        while not state.is_terminal():
            _play_randomly(state, rng, moves=1)
            for seat in (0, 1):
                count += 1
                text = state.information_state_string(seat)
                tensor = tuple(state.information_state_tensor(seat))
                assert tensor_of.setdefault(text, tensor) == tensor
    assert len(set(tensor_of.values())) == len(tensor_of) < count


def test_an_illegal_action_raises_and_changes_nothing() -> None:
    state = _game().dealt_state(range(20), forehand=0)
    before = str(state)
    with pytest.raises(ValueError, match=r"illegal action AS \(19\): seat 0 does not hold AS"):
        state.apply_action(19)
    assert str(state) == before
    root = _game(forehand=0).new_initial_state()
    root.apply_action(3)
    with pytest.raises(ValueError, match="card 3 cannot be dealt"):
        root.apply_action(3)


def test_serialised_and_pickled_states_go_on_as_the_original() -> None:
    rng = np.random.default_rng(2)
    for game in (_game(rules="austrian"), _game(chance="sampled", seed=9)):
        for moves in (0, 1, 6, 99):
            state = game.new_initial_state()
            _play_randomly(state, rng, moves)
            text = pyspiel.serialize_game_and_state(game, state)
            read_game, read = pyspiel.deserialize_game_and_state(text)
            assert str(read_game) == str(game)
            copies = [read, game.deserialize_state(state.serialize())]
            copies.append(pickle.loads(pickle.dumps(state)))  # noqa: S301 - what this test wrote
            for copy in copies:
                assert copy.history() == state.history()
                assert str(copy) == str(state)
                assert pickle.dumps(copy.record) == pickle.dumps(state.record)
                if not state.is_terminal():
                    copy.apply_action(copy.legal_actions()[0])
                    assert copy.history() != state.history()
    root = _game().new_initial_state()
    for action in (1, 4, 7):
        root.apply_action(action)
    read = root.get_game().deserialize_state(root.serialize())
    assert str(read) == str(root)
    assert read.chance_outcomes() == root.chance_outcomes()


def test_trap_27_a_clone_shares_what_never_changes_and_nothing_else() -> None:
    """open_spiel#641, #672, #88: clones of Python games were slow, and a kept game broke them."""
    state = _game().dealt_state(range(20), forehand=0)
    clone = state.clone()
    assert clone.constants is state.constants
    assert clone.constants.codes.flags.writeable is False
    before = str(state)
    _play_randomly(clone, np.random.default_rng(0))
    assert clone.is_terminal()
    assert str(state) == before
    # Little more than the record: 43 numbers.
    assert len(pickle.dumps(vars(state))) < 1000


# ----------------------------------------------------------------------------------- resampling


@pytest.mark.parametrize("rules", ["duel", "pagat", "french"])
def test_resampled_states_look_the_same_now_and_at_every_earlier_moment(rules: str) -> None:
    rng = np.random.default_rng(3)
    changed = 0
    for _ in range(8):
        state = _game(rules=rules).new_initial_state()
        _play_randomly(state, rng, moves=int(rng.integers(0, 14)))
        for player in (0, 1):
            other = state.resample_from_infostate(player, rng.random)
            # Both histories are played again from the root, which checks each action.
            first, second = (state.get_game().new_initial_state() for _ in range(2))
            for a, b in zip(state.history(), other.history(), strict=True):
                first.apply_action(a)
                second.apply_action(b)
                if first.is_chance_node():
                    continue
                for see in ("information_state_string", "information_state_tensor"):
                    assert getattr(first, see)(player) == getattr(second, see)(player)
                if first.current_player() == player:
                    assert first.legal_actions() == second.legal_actions()
            assert str(second) == str(other)
            changed += str(other) != str(state)
    assert changed >= 8


def test_resampling_is_the_redeal_of_the_core_and_uniform() -> None:
    state = _game().dealt_state(range(20), forehand=0)
    numbers = iter([0.25, 0.5] * 2)
    sampled = state.resample_from_infostate(0, lambda: next(numbers))
    expected = _record(state).copy()
    chance = engine.new_record(int(0.25 * 2**32) << 32 | int(0.5 * 2**32))
    redeal(expected, 0, chance)
    same = [field for field in range(r.RECORD_SIZE) if field != r.RANDOM]
    assert np.array_equal(_record(sampled)[same], expected[same])

    rng = np.random.default_rng(4)
    draws = 800
    held = np.zeros(20)
    for _ in range(draws):
        hand = int(_record(state.resample_from_infostate(0, rng.random))[r.HAND + 1])
        held += [hand >> card & 1 for card in range(20)]
    # The dealer's five cards come from 14 unseen ones; five standard deviations.
    share = 5 / 14
    slack = 5 * np.sqrt(share * (1 - share) / draws)
    unseen = [card for card in range(20) if not 0 <= card < 5 and card != 10]
    assert np.abs(held[unseen] / draws - share).max() < slack
    assert held[[0, 1, 2, 3, 4, 10]].sum() == 0


def test_resampling_before_the_deal_is_refused() -> None:
    with pytest.raises(ValueError, match="deal the cards first"):
        _game().new_initial_state().resample_from_infostate(0, lambda: 0.5)


# --------------------------------------------------------------------------------------- players


def _paired_points(game: SchnapsenGame, bot: Any, other: Any, deals: int) -> float:
    """Mean game points of ``bot``; every deck is played from both seats."""
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(deals):
        deck = rng.permutation(20)
        for seat in (0, 1):
            bots = (bot, other) if seat == 0 else (other, bot)
            returns = pyspiel.evaluate_bots(game.dealt_state(deck), list(bots), 0)
            assert sum(returns) == 0
            assert returns[0] != 0
            total += returns[seat]
    return total / (2 * deals)


class _Uniform(pyspiel.Bot):
    """OpenSpiel's own uniform random bots, one for each seat, since each plays a single one."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._bots = [pyspiel.make_uniform_random_bot(seat, 7) for seat in (0, 1)]

    def step(self, state: Any) -> int:
        return self._bots[state.current_player()].step(state)

    def restart_at(self, state: Any) -> None: ...


def test_our_agents_play_as_bots_of_open_spiel() -> None:
    game = _game(rules="pagat_auto")
    assert _paired_points(game, AgentBot(HeuristicOpponent()), _Uniform(), 25) > 1.0


def test_search_of_open_spiel_beats_the_random_player_and_plays_the_heuristic_one() -> None:
    game = _game(rules="pagat_auto")
    search = ismcts_bot(simulations=40, seed=1)
    assert _paired_points(game, search, AgentBot(RandomOpponent(2)), 6) > 0.5
    assert -3 <= _paired_points(game, search, AgentBot(HeuristicOpponent()), 1) <= 3


def test_search_with_both_hands_known_finds_the_best_action() -> None:
    """With the talon used up the hidden cards are certain, so the search solves the position."""
    rng = np.random.default_rng(8)
    game = _game(rules="pagat_auto")
    found = 0
    for _ in range(60):
        state = game.new_initial_state()
        while not (state.is_terminal() or (not state.is_chance_node() and _is_late(state))):
            _play_randomly(state, rng, moves=1)
        if state.is_terminal() or len(state.legal_actions()) < 2:
            continue
        values = solve(engine.position_of(_record(state)), game.constants.rules).action_values
        if len(set(values.values())) == 1:
            continue
        found += 1
        action = ismcts_bot(simulations=600, seed=1).step(state)
        assert values[action] == max(values.values())
        if found == 3:
            return
    pytest.fail("no position to solve came up")


def _is_late(state: SchnapsenState) -> bool:
    record = _record(state)
    return (
        record[r.TALON_STATE] == r.EXHAUSTED
        and record[r.LED] == r.NONE
        and int(record[r.HAND]).bit_count() == 3
    )


def _play_aec(players: list[Any], deck: Any, rules: str) -> list[float]:
    env = schnapsen_v0.raw_env(rules=rules)  # raises if an action is illegal
    env.reset(options={"deck": deck, "forehand": 0})
    while not any(env.terminations.values()):
        seat = int(env.agent_selection == "player_1")
        seen = env.observe(env.agent_selection)
        env.step(players[seat].act(seen["observation"], seen["action_mask"]))
    return [env.rewards[agent] for agent in env.possible_agents]


def test_bots_of_open_spiel_play_as_our_agents() -> None:
    rng = np.random.default_rng(6)
    total = 0.0
    for deal in range(6):
        deck = rng.permutation(20)
        search = ismcts_agent("pagat_auto", seed=deal, simulations=40)
        uniform = BotAgent(_Uniform(), _game(rules="pagat_auto"), seed=deal)
        first = _play_aec([search, uniform], deck, "pagat_auto")
        second = _play_aec([uniform, search], deck, "pagat_auto")
        assert first[0] == -first[1] != 0
        total += first[0] + second[1]
    assert total / 12 > 0.3


def test_agents_made_of_bots_repeat_themselves_and_take_batches() -> None:
    env = schnapsen_v0.raw_env(rules="duel")
    env.reset(seed=4)
    seen = env.observe(env.agent_selection)
    observations = np.stack([seen["observation"]] * 3)
    masks = np.stack([seen["action_mask"]] * 3)
    batches = [
        ismcts_agent("duel", seed=5, simulations=20).act_batch(observations, masks)
        for _ in range(2)
    ]
    assert batches[0].dtype == np.int64
    assert batches[0].tolist() == batches[1].tolist()


@pytest.mark.parametrize("seed", [7, 2**40 + 7, -7])
def test_agents_made_of_bots_repeat_themselves_after_a_reset(seed: int) -> None:
    env = schnapsen_v0.raw_env(rules="duel")
    env.reset(seed=4)
    seen = env.observe(env.agent_selection)
    observations = np.stack([seen["observation"]] * 12)
    masks = np.stack([seen["action_mask"]] * 12)
    agent = ismcts_agent("duel", seed=seed, simulations=3)
    fresh = agent.act_batch(observations, masks).tolist()
    assert len(set(fresh)) > 1
    for _ in range(2):
        agent.reset(seed)
        assert agent.act_batch(observations, masks).tolist() == fresh
    agent.reset(seed + 1)
    assert agent.act_batch(observations, masks).tolist() != fresh


def test_a_bot_shown_an_observation_sees_nothing_of_the_true_hidden_cards() -> None:
    """Two deals that look the same to the player give the bot the same states."""

    class Recorder(pyspiel.Bot):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.states: list[str] = []

        def step(self, state: Any) -> int:
            self.states.append(str(state))
            assert state.legal_actions()[0] in range(27)
            return state.legal_actions()[0]

    game = _game(rules="duel")
    state = game.dealt_state(np.random.default_rng(9).permutation(20))
    other = state.resample_from_infostate(0, np.random.default_rng(10).random)
    assert str(other) != str(state)
    shown: list[list[str]] = []
    for deal in (state, other):
        recorder = Recorder()
        agent = BotAgent(recorder, game, seed=11)
        mask = np.array(deal.legal_actions_mask(0), dtype=np.int8)
        for _ in range(3):
            agent.act(np.array(deal.observation_tensor(0), dtype=np.float32), mask)
        shown.append(recorder.states)
    assert shown[0] == shown[1]
    assert len(set(shown[0])) > 1


def test_players_say_what_is_wrong() -> None:
    game = _game()
    bot = AgentBot(HeuristicOpponent())
    with pytest.raises(ValueError, match="no player is to move"):
        bot.step(game.new_initial_state())
    with pytest.raises(TypeError, match="plays python_schnapsen"):
        bot.step(pyspiel.load_game("kuhn_poker").new_initial_state())
    with pytest.raises(TypeError, match="needs act"):
        AgentBot("heuristic")

    class Wrong:
        def act(self, _observation: Any, _mask: Any) -> int:
            return 26

    with pytest.raises(ValueError, match="Wrong has answered with 26, but legal are"):
        AgentBot(Wrong()).step(game.dealt_state(range(20)))
    agent = BotAgent(_Uniform(), game)
    with pytest.raises(ValueError, match="shape"):
        agent.act(np.zeros(3), np.ones(27, dtype=np.int8))
    with pytest.raises(ValueError, match="all zeros"):
        agent.act(np.zeros(Layout().size), np.zeros(27, dtype=np.int8))


_STEP_OF_A_CPP_BOT = """
import pyspiel
from schnapsen_env.integrations.open_spiel import SchnapsenGame
game = SchnapsenGame()
state = game.dealt_state(range(20))
evaluator = pyspiel.RandomRolloutEvaluator(1, 0)
bots = {
    "ISMCTSBot": lambda game: pyspiel.ISMCTSBot(0, evaluator, 2.0, 10),
    "MCTSBot": lambda game: pyspiel.MCTSBot(game, evaluator, 2.0, 10, 1000, False, 0, False),
}
for name, make in bots.items():
    try:
        make(game).step(state)
    except TypeError as error:
        print(error)
perfect = pyspiel.load_game("tic_tac_toe").new_initial_state()
print(bots["MCTSBot"](perfect.get_game()).step(perfect) in range(9))
"""


def test_bots_that_would_end_the_process_are_refused_with_the_way_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STEP_OF_A_CPP_BOT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ismcts, mcts, others = done.stdout.splitlines()
    assert "use open_spiel.python.algorithms.ismcts.ISMCTSBot" in ismcts
    assert "use open_spiel.python.algorithms.mcts.MCTSBot" in mcts
    assert others == "True"
    evaluator = pyspiel.RandomRolloutEvaluator(1, 0)
    with pytest.raises(TypeError, match="ends the process"):
        BotAgent(pyspiel.ISMCTSBot(0, evaluator, 2.0, 10), _game())


def test_a_rule_set_without_a_name_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(ValueError, match="loaded by name"):
        ismcts_agent(replace(RULES["duel"], must_beat=True))


# ---------------------------------------------------------------------------------------- shimmy


def _runs(env: Any) -> bool:
    return not any(env.terminations.values())


@pytest.mark.parametrize("rules", list(RULES))
def test_shimmy_makes_of_our_game_what_our_aec_environment_is(rules: str) -> None:
    shimmy: Any = require("shimmy.openspiel_compatibility", "openspiel")
    rng = np.random.default_rng(7)
    lengths: list[int] = []
    for seed in range(8):
        config = {"rules": rules, "chance": "sampled", "seed": seed, "deals": 1}
        theirs: Any = shimmy.OpenSpielCompatibilityV0(game_name="python_schnapsen", config=config)
        env = schnapsen_v0.raw_env(rules=rules)
        theirs.reset()
        env.reset(seed=seed)
        assert theirs.possible_agents == env.possible_agents
        length = 0
        while True:
            assert theirs.agent_selection == env.agent_selection or not _runs(env)
            assert theirs.terminations == env.terminations
            assert theirs.truncations == env.truncations
            assert theirs.rewards == env.rewards
            if not _runs(env):
                break
            for agent in env.possible_agents:
                seen = env.observe(agent)
                assert np.array_equal(theirs.infos[agent]["action_mask"], seen["action_mask"])
                assert np.array_equal(theirs.observe(agent), seen["observation"])
            action = _sensible(np.flatnonzero(env.infos[env.agent_selection]["action_mask"]), rng)
            theirs.step(action)
            env.step(action)
            length += 1
        assert set(env.rewards.values()) != {0.0} or rules != "pagat_auto"
        # Of player_0 only: shimmy adds up the last rewards once more when that agent is removed.
        assert theirs.agent_selection == env.agent_selection == "player_0"
        assert theirs.last(observe=False)[1] == env.last(observe=False)[1]
        lengths.append(length)
    assert max(lengths) > 10


# ---------------------------------------------------------------------------------------- documents


def test_examples_run() -> None:
    deal = run_python("examples/open_spiel/play_a_deal.py", warnings="default")
    assert "player_0: play" in deal
    assert "game points: [" in deal
    match = run_python("examples/open_spiel/ismcts_against_heuristic.py", "1", warnings="default")
    assert "game points in 2 deals" in match


def test_python_in_the_page_runs() -> None:
    page = (ROOT / "docs" / "integrations" / "open_spiel.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        assert "player=0 forehand=0" in run_python("-c", block, warnings="default")


def test_the_spec_of_the_page_is_an_agent() -> None:
    import agents

    agent = agents.load("python:schnapsen_env.integrations.open_spiel:ismcts_agent", "pagat")
    assert isinstance(agent, BotAgent)
    assert agent.game.constants.rules == RULES["pagat"]
