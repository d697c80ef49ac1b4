"""The Gymnasium environments against an opponent: one, and many at once."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from schnapsen_env import RULES, SchnapsenEnv, SchnapsenOpponentVectorEnv, engine, schnapsen_v0
from schnapsen_env.actions import CLAIM, NUM_ACTIONS, parse_action
from schnapsen_env.engine import IllegalActionError
from schnapsen_env.engine import record as r
from schnapsen_env.observation import BASE_SIZE, DEFAULT_LAYOUT, decode
from schnapsen_env.opponents import HeuristicOpponent, RandomOpponent

NAME = "schnapsen/Schnapsen-v0"
MODES = list(AutoresetMode)

#: The opponent (seat 0) replies last and wins: a trick of theirs makes 66.
LAST_TRICKS = {
    "trump": "H",
    "hands": [["AC", "KH"], ["JD", "AD", "JS"]],
    "leader": 0,
    "lead": "TD",
    "card_points": [50, 30],
    "tricks": [4, 3],
}


class Lowest:
    """Plays the legal action with the smallest id, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]] = []
        self.seeds: list[int] = []

    def act(self, observation: npt.NDArray[np.float32], action_mask: npt.NDArray[np.int8]) -> int:
        self.shown.append((observation, action_mask))
        return int(action_mask.argmax())

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)


class LowestBatch:
    """The same for many rows at once; it must never be asked one by one."""

    def act(self, observation: object, action_mask: object) -> int:
        raise NotImplementedError

    def act_batch(
        self, observations: npt.NDArray[np.float32], action_masks: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int64]:
        assert observations.shape == (len(action_masks), BASE_SIZE)
        assert action_masks.any(axis=1).all()
        return action_masks.argmax(axis=1)


def make(**arguments: Any) -> SchnapsenEnv:
    env = gymnasium.make(NAME, **arguments).unwrapped
    assert isinstance(env, SchnapsenEnv)
    return env


def two(**arguments: Any) -> SchnapsenOpponentVectorEnv:
    return SchnapsenOpponentVectorEnv(2, **arguments)


def choose(rng: np.random.Generator, mask: npt.NDArray[np.int8]) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def play(env: SchnapsenEnv, rng: np.random.Generator) -> tuple[float, dict[str, Any]]:
    """Play to the end; the return and the last info."""
    total = 0.0
    while True:
        _, reward, terminated, truncated, info = env.step(choose(rng, env.action_masks()))
        total += reward
        assert truncated is False
        if terminated:
            return total, info


# ------------------------------------------------------------------------------- one environment


@pytest.mark.parametrize(
    "arguments",
    [
        *({"rules": rules, "episode": episode} for rules in RULES for episode in ("deal", "match")),
        {"opponent": "heuristic"},
        {"opponent": Lowest(), "seat": 1},
        {"observation": "dict"},
        {"observation": "dict", "suits": "canonical", "history": True},
        {"memory": "none", "reward": "win", "seat": 0},
        {"rules": "austrian", "illegal_action": "revoke"},
        {"pack": "german"},
    ],
    ids=str,
)
def test_gymnasium_checker(arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    check_env(make(**arguments))
    assert "Schnapsen" in capsys.readouterr().out  # the human mode was tried


def test_spaces_and_masks() -> None:
    flat = make()
    observation, info = flat.reset(seed=0)
    assert observation.shape == (BASE_SIZE,)
    assert observation in flat.observation_space
    mask = flat.action_masks()
    assert mask.dtype == np.int8
    np.testing.assert_array_equal(mask, info["action_mask"])
    assert not np.shares_memory(mask, info["action_mask"])
    as_dict = make(observation="dict")
    observation, info = as_dict.reset(seed=0)
    assert observation in as_dict.observation_space
    np.testing.assert_array_equal(observation["action_mask"], info["action_mask"])


@pytest.mark.parametrize("form", ["flat", "dict"])
@pytest.mark.parametrize("rules", list(RULES))
def test_masks_are_all_ones_exactly_at_the_end(rules: str, form: Any) -> None:
    env = make(rules=rules, observation=form)
    rng = np.random.default_rng(0)
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        terminated = False
        while not terminated:
            was_over = bool(env.action_masks().all())
            observation, _, terminated, _, info = env.step(choose(rng, env.action_masks()))
            assert terminated or not was_over
            assert info["action_mask"].all() == terminated
            assert env.action_masks().all() == terminated
            if form == "dict":
                assert observation["action_mask"].all() == terminated


@pytest.mark.parametrize("episode", ["deal", "match"])
@pytest.mark.parametrize("opponent", ["random", "heuristic", "object"])
def test_rewards_are_the_learners_game_points(opponent: str, episode: Any) -> None:
    env = make(opponent=Lowest() if opponent == "object" else opponent, episode=episode)
    rng = np.random.default_rng(0)
    seats: Counter[int] = Counter()
    for seed in range(30):
        env.reset(seed=seed)
        seats[env.seat] += 1
        total, info = play(env, rng)
        assert info["seat"] == env.seat
        if episode == "deal":
            assert total == info["game_points"]
            assert total == engine.game_points(env.record, env.seat)
        else:
            own, other = info["match_score"][env.seat], info["match_score"][1 - env.seat]
            assert total == own - other
            assert (info["match_result"]["winner"] == env.seat) == (own > other)
    assert set(seats) == {0, 1}


@pytest.mark.parametrize("episode", ["deal", "match"])
def test_reward_win(episode: Any) -> None:
    env = make(reward="win", episode=episode, target=3)
    rng = np.random.default_rng(0)
    totals: set[float] = set()
    for seed in range(20):
        env.reset(seed=seed)
        total, info = play(env, rng)
        totals.add(total)
        if episode == "deal":
            assert total == np.sign(info["game_points"])
        else:
            assert total == (1 if info["match_result"]["winner"] == env.seat else -1)
    assert totals == {1.0, -1.0}


def test_it_deals_as_the_aec_environment_does() -> None:
    aec = schnapsen_v0.env()
    for seat in (None, 0, 1):
        env = make(seat=seat)
        for seed in range(10):
            env.reset(seed=seed)
            aec.reset(seed=seed)
            ours = env.record
            np.testing.assert_array_equal(
                ours[r.DECK : r.DECK + 2], aec.record[r.DECK : r.DECK + 2]
            )
            assert ours[r.FOREHAND] == aec.record[r.FOREHAND]
            assert seat is None or env.seat == seat


def test_the_seat_is_drawn_from_the_seed() -> None:
    env = make()
    drawn = [env.reset(seed=seed)[1]["seat"] for seed in range(40)]
    assert drawn == [env.reset(seed=seed)[1]["seat"] for seed in range(40)]
    assert 8 < sum(drawn) < 32


def test_options() -> None:
    env = make(seat=1, opponent=Lowest(), rules="austrian")
    _, info = env.reset(options={"position": LAST_TRICKS, "unknown": 1})
    assert np.flatnonzero(info["action_mask"]).tolist() == [parse_action("AD"), CLAIM]
    deck = list(range(20))
    env.reset(seed=0, options={"deck": deck, "forehand": 1})
    assert env.record[r.HAND + 1] == 0b11111
    with pytest.raises(ValueError, match="permutation"):
        env.reset(options={"deck": [1]})


def test_the_opponent_gets_its_own_default_observation_and_nothing_else() -> None:
    """Whatever the learner's layout, and never the learner's hand."""
    opponent = Lowest()
    env = make(opponent=opponent, memory="none", suits="canonical", history=False)
    rng = np.random.default_rng(0)
    for seed in range(10):
        env.reset(seed=seed)
        opponent.shown.clear()
        play(env, rng)
        for observation, mask in opponent.shown:
            assert observation.shape == (DEFAULT_LAYOUT.size,)
            assert mask.any()
            seen = decode(observation, mask)
            assert seen.table.to_move == 1
            legal_cards = int(seen.legal) & ((1 << 20) - 1)
            assert legal_cards & ~int(seen.cards.hand) == 0
    assert opponent.seeds == list(range(10))


def test_the_built_in_heuristic_plays_as_one_that_is_asked() -> None:
    """Playing it in compiled code shows it no more than its observation does."""
    built_in = make(opponent="heuristic", rules="pagat_auto", episode="match")
    asked = make(opponent=HeuristicOpponent(), rules="pagat_auto", episode="match")
    for seed in range(5):
        built_in.reset(seed=seed)
        asked.reset(seed=seed)
        results = [play(env, np.random.default_rng(seed)) for env in (built_in, asked)]
        assert str(results[0]) == str(results[1])


class Faulty:
    """Answers what it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, observation: object, action_mask: object) -> Any:
        del observation, action_mask
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (CLAIM, ValueError, r"Faulty.act returned action 26.*allows \["),
        (99, ValueError, "Faulty.act returned action 99"),
        (1.0, TypeError, r"Faulty.act must return an action id.*int\(action\)"),
        (None, TypeError, "Faulty.act must return an action id"),
    ],
)
def test_an_opponent_that_answers_wrongly(answer: Any, error: Any, message: str) -> None:
    env = make(opponent=Faulty(answer), seat=0)
    with pytest.raises(error, match=message):
        env.reset(seed=0, options={"forehand": 1})
    with pytest.raises(ResetNeeded, match="the opponent has failed"):
        env.step(0)
    vector = SchnapsenOpponentVectorEnv(4, opponent=Faulty(answer), seat=0)
    with pytest.raises(error, match=message):
        vector.reset(seed=0, options={"forehand": 1})
    with pytest.raises(ResetNeeded, match="the opponent has failed"):
        vector.step([0, 0, 0, 0])


def test_opponents_that_are_none() -> None:
    for opponent in ("strong", 3, object()):
        with pytest.raises(ValueError, match="random, heuristic, or an object"):
            make(opponent=opponent)


def test_unknown_arguments() -> None:
    for arguments, known in (
        ({"seat": 2}, "0, 1, or None"),
        ({"seat": True}, "0, 1, or None"),
        ({"observation": "image"}, "flat, dict"),
        ({"rules": "bridge"}, "pagat_auto"),
        ({"illegal_action": "revoke"}, "austrian"),
        ({"render_mode": "rgb_array"}, "ansi"),
    ):
        with pytest.raises(ValueError, match=known):
            SchnapsenEnv(**arguments)  # type: ignore[arg-type]


def test_illegal_actions() -> None:
    lose = make(episode="match")
    lose.reset(seed=0)
    _, reward, terminated, _, info = lose.step(CLAIM)
    assert (reward, terminated, info["illegal_action"]) == (-3.0, True, True)
    assert info["end_reason"] == "illegal_action"
    assert info["action_mask"].all()
    refuse = make(illegal_action="raise")
    refuse.reset(seed=0)
    before = pickle.dumps(refuse.get_state()["kept"])
    with pytest.raises(IllegalActionError, match="illegal action claim"):
        refuse.step(CLAIM)
    assert pickle.dumps(refuse.get_state()["kept"]) == before
    revoke = make(rules="austrian", illegal_action="revoke", seat=1)
    revoke.reset(options={"position": LAST_TRICKS})
    _, reward, _, _, info = revoke.step(parse_action("JS"))
    assert (reward, info["end_reason"]) == (-2.0, "revoke")
    assert "illegal_action" not in info


def test_wrong_kinds_of_actions() -> None:
    env = make()
    env.reset(seed=0)
    for action in (1.0, True, None, np.array([1])):
        with pytest.raises(TypeError, match="pass"):
            env.step(action)
    for number in (-1, 27):
        with pytest.raises(IllegalActionError, match="0 to 26"):
            env.step(number)
    env.step(np.int64(env.action_masks().argmax()))


def test_order_of_calls() -> None:
    env = make(render_mode="ansi")
    for call in (lambda: env.step(0), env.action_masks, env.state, env.render, env.get_state):
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            call()
    env.reset(seed=0)
    play(env, np.random.default_rng(0))
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step(0)
    assert env.state() in env.state_space


def test_a_deal_that_the_opponent_ends_before_the_learner_can_act() -> None:
    """A random opponent may claim wrongly at once: the first step then brings the reward."""
    env = make(rules="austrian", opponent="random", seat=0)
    vector = SchnapsenOpponentVectorEnv(1, rules="austrian", opponent="random", seat=0)
    found = 0
    for seed in range(60):
        options = {"forehand": 1}
        _, info = env.reset(seed=seed, options=options)
        _, vector_info = vector.reset(seed=seed, options=options)
        np.testing.assert_array_equal(vector_info["action_mask"][0], info["action_mask"])
        assert "end_reason" not in info
        if info["action_mask"].all():
            found += 1
            _, reward, terminated, _, info = env.step(11)
            assert (reward, terminated, info["end_reason"]) == (3.0, True, "wrong_claim")
            _, rewards, terminations, _, vector_info = vector.step([11])
            assert (rewards[0], terminations[0]) == (3.0, True)
            assert vector_info["end_reason"][0] == "wrong_claim"
            assert vector_info["episode"]["r"][0] == 3.0
    assert found > 3


def pickled(env: SchnapsenEnv) -> SchnapsenEnv:
    return pickle.loads(pickle.dumps(env))  # noqa: S301  # the test's own bytes


@pytest.mark.parametrize(
    "make_copy",
    [copy.deepcopy, SchnapsenEnv.clone, pickled],
    ids=["deepcopy", "clone", "pickle"],
)
@pytest.mark.parametrize("opponent", ["random", "heuristic", "object"])
def test_copies_continue_alike(
    make_copy: Callable[[SchnapsenEnv], SchnapsenEnv], opponent: str
) -> None:
    env = make(
        opponent=Lowest() if opponent == "object" else opponent,
        episode="match",
        suits="trump_first",
    )
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(5):
        env.step(choose(rng, env.action_masks()))
    twin = make_copy(env)
    restored = make(episode="match", suits="trump_first", opponent=env.opponent)
    restored.set_state(env.get_state())
    results = [play(one, np.random.default_rng(1)) for one in (env, twin, restored)]
    assert str(results[0]) == str(results[1]) == str(results[2])
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])
    with pytest.raises(ValueError, match="same arguments"):
        make().set_state(env.get_state())


@pytest.mark.parametrize("make_env", [make, two])
def test_going_back_takes_the_random_stream_of_the_opponent_along(make_env: Any) -> None:
    env = make_env(opponent=RandomOpponent(3), episode="match", seat=0)
    env.reset(seed=0)
    state = pickle.loads(pickle.dumps(env.get_state()))  # noqa: S301  # the test's own bytes
    boards: list[str] = []
    for _ in range(3):
        env.set_state(state)
        steps = [env.step(np.asarray(env.action_masks()).argmax(axis=-1)) for _ in range(9)]
        boards.append(str(steps))
    assert boards[0] == boards[1] == boards[2]
    with pytest.raises(ValueError, match="takes what get_state"):
        env.set_state(state | {"opponent": {"state": 1}})


@pytest.mark.parametrize("make_env", [make, two])
def test_a_refused_reset_changes_nothing(make_env: Any) -> None:
    opponent = Lowest()
    env = make_env(opponent=opponent)
    env.reset(seed=0)
    before = pickle.dumps(env.get_state()["kept"])
    seeds = list(opponent.seeds)
    refused: list[tuple[Any, str]] = [
        ({"deck": [0] * 20}, "deck"),
        ({"forehand": 7}, "forehand"),
        ({"position": "nowhere"}, "position"),
        ([1], "options is a dict"),
    ]
    for options, message in refused:
        with pytest.raises(ValueError, match=message):
            env.reset(seed=5, options=options)
        assert pickle.dumps(env.get_state()["kept"]) == before
        assert opponent.seeds == seeds


def test_options_for_many_deals_are_for_many_deals() -> None:
    rng = np.random.default_rng(2)
    decks = np.array([rng.permutation(20) for _ in range(3)])
    vector = SchnapsenOpponentVectorEnv(3, seat=0)
    vector.reset(seed=0, options={"decks": decks, "forehands": [0, 0, None]})
    for row, record in enumerate(vector.records):
        env = make(seat=0)
        env.reset(seed=row, options={"deck": decks[row]} | ({"forehand": 0} if row < 2 else {}))
        np.testing.assert_array_equal(record, env.record)
    with pytest.raises(ValueError, match=r"decks must have shape \(3, 20\)"):
        vector.reset(options={"decks": decks[:2]})
    with pytest.raises(ValueError, match=r"row 1: .*deck"):
        vector.reset(options={"decks": [decks[0], np.zeros(20, dtype=int), decks[2]]})
    for env in (make(), schnapsen_v0.env()):
        for name in ("decks", "forehands", "positions"):
            with pytest.raises(ValueError, match=f"{name} is for many deals at once: give"):
                env.reset(options={name: [None]})


def test_a_fixed_seat_is_known_before_the_first_reset() -> None:
    assert make(seat=1).seat == 1
    assert SchnapsenOpponentVectorEnv(2, seat=1).seats.tolist() == [1, 1]


def test_board_of_the_learner() -> None:
    env = make(render_mode="ansi", seat=0)
    env.reset(seed=0)
    assert env.render().count("??") in (4, 5)
    play(env, np.random.default_rng(0))
    assert "??" not in env.render()
    silent = make()
    silent.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        silent.render()


def test_gymnasium_statistics_wrapper() -> None:
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(NAME))
    _, info = env.reset(seed=0)
    terminated = False
    total = 0.0
    while not terminated:
        _, reward, terminated, _, info = env.step(int(info["action_mask"].argmax()))
        total += float(reward)
    assert info["episode"]["r"] == total


# -------------------------------------------------------------------------------- many at once


def equal_parts(ours: Any, theirs: Any, row: int) -> None:
    """The part of a batched value that belongs to ``row``, against a single one."""
    if isinstance(theirs, dict):
        for key, value in cast("dict[str, Any]", theirs).items():
            equal_parts(ours[key], value, row)
    else:
        np.testing.assert_array_equal(np.asarray(ours[row]), np.asarray(theirs))


class Rows:
    """N single environments that do what a batch should do, and compare."""

    def __init__(self, singles: list[SchnapsenEnv], mode: AutoresetMode) -> None:
        self.singles = singles
        self.mode = mode
        self.waiting = np.zeros(len(singles), dtype=np.bool_)
        self.returns = np.zeros(len(singles))
        self.lengths = np.zeros(len(singles), dtype=np.int64)
        self.episodes = 0

    def compare_reset(self, given: tuple[Any, ...], row: int, seed: int | None = None) -> None:
        """Reset a row; ``given`` begins with the observations and ends with the info."""
        observation, info = self.singles[row].reset(seed=seed)
        equal_parts(given[0], observation, row)
        equal_parts(given[-1], info, row)
        self.waiting[row] = False

    def compare_step(self, given: tuple[Any, ...], row: int, action: int) -> None:
        _, rewards, terminations, truncations, infos = given
        assert not truncations[row]
        if self.waiting[row]:  # NEXT_STEP: this step has begun a new episode
            assert rewards[row] == 0
            assert not terminations[row]
            self.compare_reset(given, row)
            return
        observation, reward, terminated, _, info = self.singles[row].step(action)
        assert rewards[row] == reward
        assert terminations[row] == terminated
        self.returns[row] += reward
        self.lengths[row] += 1
        self.compare_ended_deals(infos, info, row)
        assert bool("_episode" in infos and infos["_episode"][row]) == terminated
        if not terminated:
            equal_parts(given[0], observation, row)
            equal_parts(infos["action_mask"], info["action_mask"], row)
            return
        self.compare_statistics(infos, info, row)
        if self.mode is not AutoresetMode.SAME_STEP:
            equal_parts(given[0], observation, row)
            equal_parts(infos["action_mask"], info["action_mask"], row)
            self.waiting[row] = True
            return
        assert infos["_final_obs"][row]
        assert infos["_final_info"][row]
        equal_parts(infos["final_obs"], observation, row)
        for key in ("action_mask", "game_points", "seat"):
            equal_parts(infos["final_info"][key], info[key], row)
        self.compare_reset(given, row)

    def compare_ended_deals(self, infos: dict[str, Any], info: dict[str, Any], row: int) -> None:
        for key in ("game_points", "end_reason", "match_score", "illegal_action"):
            told = key in infos and bool(infos[f"_{key}"][row])
            assert told == (key in info)
            if told:
                equal_parts(infos[key], info[key], row)
        if "match_result" in info:
            result = {k: v for k, v in info["match_result"].items() if k != "score"}
            equal_parts(infos["match_result"], result, row)

    def compare_statistics(self, infos: dict[str, Any], info: dict[str, Any], row: int) -> None:
        self.episodes += 1
        assert infos["episode"]["r"][row] == self.returns[row]
        assert infos["episode"]["l"][row] == self.lengths[row]
        assert infos["episode"]["seat"][row] == info["seat"]
        self.returns[row] = self.lengths[row] = 0


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"opponent": "heuristic", "rules": "pagat", "episode": "match", "target": 3},
        {"opponent": LowestBatch, "rules": "austrian", "observation": "dict"},
        {"opponent": Lowest, "suits": "canonical", "episode": "match", "target": 3},
        {"rules": "last_trick_ten", "reward": "win", "seat": 1, "history": True},
    ],
    ids=str,
)
def test_rows_are_played_as_single_environments(
    arguments: dict[str, Any], mode: AutoresetMode
) -> None:
    """Against N single environments, step by step, with some illegal actions on the way."""
    num_envs = 6
    given = dict(arguments)
    opponent: Any = given.pop("opponent", "random")
    single: Any = Lowest if opponent is LowestBatch else opponent
    if not isinstance(opponent, str):
        opponent, single = opponent(), single()
    rows = Rows([SchnapsenEnv(opponent=single, **given) for _ in range(num_envs)], mode)
    vector = SchnapsenOpponentVectorEnv(num_envs, opponent, autoreset_mode=mode, **given)
    rng = np.random.default_rng(5)
    reset = vector.reset(seed=10)
    for row in range(num_envs):
        rows.compare_reset(reset, row, seed=10 + row)
    for _ in range(120):
        if mode is AutoresetMode.DISABLED and rows.waiting.any():
            chosen = np.flatnonzero(rows.waiting).tolist()
            reset = vector.reset(options={"reset_mask": rows.waiting.copy()})
            for row in chosen:
                rows.compare_reset(reset, row)
        masks = vector.action_masks()
        actions = [
            int(rng.integers(NUM_ACTIONS)) if rng.random() < 0.02 else choose(rng, mask)
            for mask in masks
        ]
        step = vector.step(actions)
        for row in range(num_envs):
            rows.compare_step(step, row, actions[row])
        np.testing.assert_array_equal(vector.state(), [env.state() for env in rows.singles])
    assert rows.episodes > 10


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_make_vec(mode: AutoresetMode) -> None:
    vector: Any = gymnasium.make_vec(NAME, num_envs=8, opponent="heuristic", autoreset_mode=mode)
    assert isinstance(vector.unwrapped, SchnapsenOpponentVectorEnv)
    assert vector.metadata["autoreset_mode"] is mode
    observations, info = vector.reset(seed=0)
    assert observations in vector.observation_space
    actions = np.array([int(mask.argmax()) for mask in info["action_mask"]])
    assert actions in vector.action_space
    observations, rewards, *_ = vector.step(actions)
    assert observations in vector.observation_space
    assert rewards.shape == (8,)
    vector.close()


def test_make_vec_of_single_environments() -> None:
    vector = gymnasium.make_vec(NAME, num_envs=2, vectorization_mode="sync", seat=0)
    assert isinstance(vector, SyncVectorEnv)
    _, info = vector.reset(seed=0)
    assert info["action_mask"].shape == (2, NUM_ACTIONS)
    assert np.array(vector.call("action_masks")).shape == (2, NUM_ACTIONS)
    vector.close()


def test_vector_seeds() -> None:
    first, second = (SchnapsenOpponentVectorEnv(4) for _ in range(2))
    np.testing.assert_array_equal(first.reset(seed=3)[0], second.reset(seed=[3, 4, 5, 6])[0])
    for _ in range(5):
        np.testing.assert_array_equal(first.reset()[0], second.reset()[0])
    assert not np.array_equal(first.reset(seed=4)[0], second.reset(seed=3)[0])
    assert not np.array_equal(
        SchnapsenOpponentVectorEnv(4).reset()[0], SchnapsenOpponentVectorEnv(4).reset()[0]
    )
    with pytest.raises(ValueError, match="2 seeds"):
        first.reset(seed=[1, 2])
    with pytest.raises(ValueError, match=r"options is a dict .* not \[1\]"):
        first.reset(options=[1])  # pyright: ignore[reportArgumentType] - which is the fault


@pytest.mark.parametrize(
    ("seed", "given"),
    [
        (5, [5]),
        (np.int64(5), [5]),
        ([5, 6], [5]),
        (np.array([5, 6]), [5]),
        ([None, 6], [6]),
        (None, []),
        ([None, None], []),
    ],
)
def test_vector_seeds_reach_the_opponent_in_every_form(seed: Any, given: list[int]) -> None:
    opponent = Lowest()
    vector: Any = gymnasium.make_vec(NAME, num_envs=2, opponent=opponent)
    vector.reset(seed=seed)
    assert opponent.seeds == given
    assert all(type(one) is int for one in opponent.seeds)
    vector.reset()
    assert opponent.seeds == given


def test_vector_steps_that_are_refused_change_nothing() -> None:
    vector = SchnapsenOpponentVectorEnv(3, illegal_action="raise", seat=0)
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        vector.step([0, 0, 0])
    _, info = vector.reset(seed=0, options={"forehand": 0})
    legal = info["action_mask"].argmax(axis=1)
    before = pickle.dumps(vector.get_state()["kept"])
    for actions, error, message in (
        ([*legal[:2], CLAIM], IllegalActionError, "row 2: illegal action claim"),
        ([*legal[:2], 27], IllegalActionError, "0 to 26"),
        ([-1, *legal[1:]], IllegalActionError, "0 to 26"),
        (np.array([0, 0, 2**63 + 5], np.uint64), IllegalActionError, f"illegal action {2**63 + 5}"),
        (legal[:2], ValueError, "shape"),
        (legal.astype(float), TypeError, "astype"),
    ):
        with pytest.raises(error, match=message):
            vector.step(actions)
        assert pickle.dumps(vector.get_state()["kept"]) == before
    vector.step(legal)


def test_vector_reset_masks() -> None:
    vector = SchnapsenOpponentVectorEnv(3, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ResetNeeded, match="all rows first"):
        vector.reset(options={"reset_mask": np.array([True, False, False])})
    before = vector.reset(seed=0)[0]
    for mask in ([True], np.array([1, 0, 0]), np.zeros(3, dtype=bool)):
        with pytest.raises(ValueError, match="reset_mask must be a bool array"):
            vector.reset(options={"reset_mask": mask})
    after = vector.reset(options={"reset_mask": np.array([False, True, False])})[0]
    assert (before == after).all(axis=1).tolist() == [True, False, True]
    terminations = np.zeros(3, dtype=bool)
    while not terminations.any():
        _, _, terminations, _, _ = vector.step(vector.action_masks().argmax(axis=1))
    with pytest.raises(ResetNeeded, match="reset_mask"):
        vector.step([0, 0, 0])


def test_vector_batches_that_answer_wrongly() -> None:
    class Scalar(LowestBatch):
        def act_batch(self, observations: Any, action_masks: Any) -> Any:
            del observations, action_masks
            return 3

    vector = SchnapsenOpponentVectorEnv(3, opponent=Scalar(), seat=0)
    with pytest.raises(TypeError, match=r"Scalar\.act_batch must return one integer a row"):
        vector.reset(seed=0, options={"forehand": 1})


@pytest.mark.parametrize("opponent", ["random", "object"])
def test_vector_copies_continue_alike(opponent: str) -> None:
    vector = SchnapsenOpponentVectorEnv(
        5, opponent=LowestBatch() if opponent == "object" else opponent, episode="match"
    )
    vector.reset(seed=0)
    for _ in range(4):
        vector.step(vector.action_masks().argmax(axis=1))
    twins = [vector.clone(), pickle.loads(pickle.dumps(vector))]  # noqa: S301  # the test's own bytes
    twins.append(SchnapsenOpponentVectorEnv(5, opponent=vector.opponent, episode="match"))
    twins[-1].set_state(vector.get_state())
    for _ in range(60):
        actions = vector.action_masks().argmax(axis=1)
        observations, rewards, *_ = vector.step(actions)
        for twin in twins:
            same, same_rewards, *_ = twin.step(actions)
            np.testing.assert_array_equal(same, observations)
            np.testing.assert_array_equal(same_rewards, rewards)
    with pytest.raises(ValueError, match="same arguments"):
        SchnapsenOpponentVectorEnv(4, episode="match").set_state(vector.get_state())


@pytest.mark.parametrize("make", [SchnapsenEnv, lambda: SchnapsenOpponentVectorEnv(2)])
def test_what_is_no_state_is_refused(make: Any) -> None:
    env = make()
    env.reset(seed=0)
    state = env.get_state()
    array = "_lane" if isinstance(env, SchnapsenEnv) else "_lanes"
    refused: list[tuple[Any, str]] = [
        (5, "state must be a dict with kept, opponent, settings, .* not a int"),
        ({}, "not one with nothing"),
        (state | {"kept": None}, r"state\['kept'\] must be a dict .* not a NoneType"),
        (state | {"kept": {}}, r"state\['kept'\] must be a dict .* not one with nothing"),
        (state | {"kept": state["kept"] | {array: 1}}, rf"\['{array}'\] must be int64\[.*, not 1"),
    ]
    for junk, message in refused:
        with pytest.raises(ValueError, match=message):
            env.set_state(junk)
    env.set_state(state)


def test_vector_boards_and_arguments() -> None:
    vector = SchnapsenOpponentVectorEnv(2, render_mode="ansi")
    vector.reset(seed=0)
    boards = vector.render()
    assert boards is not None
    assert len(boards) == 2
    assert all("??" in text for text in boards)
    assert vector.seats.shape == (2,)
    assert vector.records.shape == (2, r.RECORD_SIZE)
    assert vector.rules is RULES["duel"]
    assert vector.layout.size == BASE_SIZE
    with pytest.raises(ValueError, match="num_envs is a whole number from 1, not 0"):
        SchnapsenOpponentVectorEnv(0)
    silent = SchnapsenOpponentVectorEnv(2)
    silent.reset()
    assert silent.render() is None


class Counting:
    """An opponent with a state of its own: it plays the legal action that its counter points at."""

    def __init__(self) -> None:
        self.asked = 0

    def act(
        self,
        observation: Any,  # noqa: ARG002 - what every opponent is given
        action_mask: Any,
    ) -> int:
        legal = np.flatnonzero(action_mask)
        self.asked += 1
        return int(legal[self.asked % len(legal)])

    def get_state(self) -> int:
        return self.asked

    def set_state(self, state: int) -> None:
        self.asked = state


@pytest.mark.parametrize("number", [1, 3])
def test_the_opponents_own_state_is_kept_and_put_back(number: int) -> None:
    opponent = Counting()
    env: Any = (
        SchnapsenEnv(opponent=opponent)
        if number == 1
        else SchnapsenOpponentVectorEnv(number, opponent=opponent)
    )
    env.reset(seed=3)
    state, asked = env.get_state(), opponent.asked
    for _ in range(4):
        legal = env.action_masks().argmax(axis=-1)
        env.step(int(legal) if number == 1 else legal)
    assert opponent.asked > asked
    env.set_state(state)
    assert opponent.asked == asked
