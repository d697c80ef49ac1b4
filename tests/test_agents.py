"""Agent specs, and objects that serve as agents."""

from __future__ import annotations

import io
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.base import KINDS
from schnapsen_env import RULES, Rules, engine
from schnapsen_env.observation import observe


def positions(number: int) -> tuple[np.ndarray, np.ndarray]:
    """What forehand sees at the beginning of so many deals: ``[N, F]`` and ``[N, 27]``."""
    codes = RULES["pagat_auto"].codes()
    seen: list[Any] = []
    for seed in range(number):
        record = engine.new_record(seed)
        engine.deal_deck(record, np.random.default_rng(seed).permutation(20), 0)
        seen.append(observe(record, codes, 0))
    observations, masks = zip(*seen, strict=True)
    return np.stack(observations), np.stack(masks)


@pytest.mark.parametrize("spec", ["random", "heuristic"])
def test_a_loaded_agent_plays_legal_actions_one_by_one_and_in_batches(spec: str) -> None:
    agent = agents.load(spec, rules="duel", seed=3)
    assert isinstance(agent, agents.Agent)
    observations, masks = positions(50)
    together = agent.act_batch(observations, masks)
    assert together.shape == (50,)
    assert together.dtype == np.int64
    assert masks[np.arange(50), together].all()
    alone = agent.act(observations[0], masks[0])
    assert type(alone) is int
    assert masks[0, alone]


def test_random_agents_of_one_seed_agree_and_of_two_seeds_do_not() -> None:
    observations, masks = positions(100)
    first, same, other = (
        agents.load("random", seed=seed).act_batch(observations, masks) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_options_are_read_from_the_end_and_commas_stay_in_the_path() -> None:
    spec = agents.parse_spec("ppo:runs/a,b/lr=0.1,endgame=exact,threads=2")
    assert (spec.kind, spec.target) == ("ppo", "runs/a,b/lr=0.1")
    assert dict(spec.options) == {"endgame": "exact", "threads": "2"}
    assert agents.parse_spec("ppo:C:\\runs\\x").target == "C:\\runs\\x"
    assert agents.parse_spec("ppo:name=x").target == "name=x"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", list(KINDS)),
        ("randm", ["unknown agent 'randm'", "random", "heuristic", "ppo:path", "python:module"]),
        ("random:speed=3", ["no option 'speed'", "random takes no options"]),
        ("heuristic:fast", ["'fast' is not an option", "write heuristic"]),
        ("heuristic:", ["is not an option"]),
        ("ppo", ["incomplete", "ppo:path"]),
        ("ppo:", ["incomplete", "ppo:path"]),
        ("ppo:x,a=1,a=2", ["'a' twice"]),
        ("ppo:x,a=", ["'a' has no value"]),
        ("python:os", ["incomplete", "python:module:Class"]),
        ("python:os:", ["incomplete"]),
        ("python:no_such_module_at_all:X", ["importing 'no_such_module_at_all'"]),
        ("python:os:NoSuchClass", ["'os' has no class 'NoSuchClass'"]),
        ("python:os:sep", ["'os' has no class 'sep'"]),
        ("python:collections:Counter", ["no method act"]),
        ("python:fractions:Fraction,seed=1", ["no option 'seed'"]),
    ],
)
def test_a_wrong_spec_is_refused_with_the_reason(spec: str, words: list[str]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words below are the match
        agents.load(spec)
    for word in words:
        assert word in str(caught.value)


def test_other_types_and_unknown_rules_are_refused() -> None:
    with pytest.raises(TypeError, match="a string, not int"):
        agents.load(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown rule set 'bridge'"):
        agents.load("random", rules="bridge")
    for spec in ("random", "heuristic", "rdeep", "ppo:agents/checkpoints/pagat_auto"):
        for seed in (-1, 1.5, None, True):
            with pytest.raises(ValueError, match="the seed of an agent is an integer from 0 on"):
                agents.load(spec, seed=seed)  # type: ignore[arg-type]
    agents.load("random", seed=np.int64(3))  # type: ignore[arg-type]


MODULE = """
class Base:
    def act(self, observation, action_mask):
        return int(action_mask.argmax())

class Plain(Base):
    pass

class WithBoth(Base):
    def __init__(self, *, rules, seed):
        self.got = (rules.name, seed)

class WithSeed(Base):
    def __init__(self, seed=5):
        self.got = seed

class WithAny(Base):
    def __init__(self, **given):
        self.got = sorted(given)

class Demanding(Base):
    def __init__(self, size):
        pass

class NotAPlayer:
    pass
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "players_of_a_test.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_in_a_test.py").write_text("import nowhere_to_be_found", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "players_of_a_test", raising=False)
    return "players_of_a_test"


def test_a_class_gets_the_keywords_that_it_accepts(module: str) -> None:
    def got(name: str) -> object:
        player: Any = agents.load(f"python:{module}:{name}", rules="french", seed=9)
        return player.player.got

    assert got("WithBoth") == ("french", 9)
    assert got("WithSeed") == 9
    assert got("WithAny") == ["rules", "seed"]


def test_a_class_without_act_batch_is_asked_row_by_row(module: str) -> None:
    agent = agents.load(f"python:{module}:Plain")
    observations, masks = positions(20)
    assert np.array_equal(agent.act_batch(observations, masks), masks.argmax(axis=1))
    assert agent.act(observations[0], masks[0]) == masks[0].argmax()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("python:players_of_a_test:Demanding", "missing a required argument: 'size'"),
        ("python:players_of_a_test:NotAPlayer", "no method act"),
        ("python:broken_in_a_test:X", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    ],
)
@pytest.mark.usefixtures("module")
def test_a_class_that_cannot_play_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        agents.load(spec)


@pytest.mark.parametrize("answer", [1.0, True, None, [1], "1"])
def test_one_by_one_refuses_what_is_no_integer(answer: object) -> None:
    class Odd:
        def act(self, observation: object, action_mask: object) -> object:  # noqa: ARG002
            return answer

    agent = agents.as_agent(Odd(), "odd")
    with pytest.raises(agents.AgentError, match=r"Odd\.act must return one integer"):
        agent.act_batch(*positions(1))


def test_one_by_one_takes_any_integer_and_passes_the_seed_on() -> None:
    class Seeded:
        def reset(self, seed: int) -> None:
            self.seed = seed

        def act(self, observation: object, action_mask: object) -> object:  # noqa: ARG002
            return np.array(self.seed, dtype=np.uint8)

    player = Seeded()
    agent = agents.as_agent(player, "seeded")
    agents.reset_agent(agent, 4)
    assert agent.act_batch(*positions(2)).tolist() == [4, 4]
    agents.reset_agent(object(), 4)  # an agent without randomness needs no reset


def test_a_player_of_batches_answers_for_one_position_too() -> None:
    class LastLegal(agents.BatchAgent):
        def act_batch(self, observations: np.ndarray, action_masks: np.ndarray) -> np.ndarray:
            assert observations.shape == (len(action_masks), positions(1)[0].shape[1])
            return 26 - action_masks[:, ::-1].argmax(axis=1)

    agent = agents.as_agent(LastLegal(), "last")
    assert isinstance(agent, LastLegal)
    observations, masks = positions(3)
    alone = [agent.act(*position) for position in zip(observations, masks, strict=True)]
    assert alone == agent.act_batch(observations, masks).tolist()
    assert alone == [int(np.flatnonzero(mask)[-1]) for mask in masks]
    assert isinstance(agents.load("pimc", rules="duel"), agents.BatchAgent)


def test_where_a_sampling_agent_stands_can_be_kept_and_put_back() -> None:
    agent: Any = agents.load("ppo:agents/checkpoints/pagat_auto,sample=true,endgame=exact", seed=1)
    observations, masks = positions(60)
    state = agent.get_state()
    first = agent.act_batch(observations, masks)
    second = agent.act_batch(observations, masks)
    assert (first != second).any()
    agent.set_state(state)
    np.testing.assert_array_equal(agent.act_batch(observations, masks), first)
    np.testing.assert_array_equal(agent.act_batch(observations, masks), second)
    one_by_one = agents.OneByOne(agent)
    one_by_one.set_state(state)
    assert str(one_by_one.get_state()) == str(state)
    np.testing.assert_array_equal(agent.act_batch(observations, masks), first)
    assert agents.OneByOne(agents.load("heuristic")).get_state() is None


def test_a_missing_library_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def needs(library: str) -> Callable[..., object]:
        def load_agent(*_: object, **__: object) -> object:
            raise ModuleNotFoundError(f"No module named {library!r}", name=library)

        return load_agent

    monkeypatch.setattr("agents.ppo.load_agent", needs("safetensors.numpy"))
    with pytest.raises(
        ModuleNotFoundError, match=r"'safetensors.numpy'.*pip install -e '\.\[play\]'"
    ):
        agents.load("ppo:somewhere")
    # No extra brings a module of this repository: that is a fault of ours, and stays as it is.
    monkeypatch.setattr("agents.ppo.load_agent", needs("agents.ppo.lost"))
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'agents\.ppo\.lost'$"):
        agents.load("ppo:somewhere")


def test_options_of_ppo_reach_its_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def load_agent(path: str, rules: Rules, seed: int, **options: str) -> object:
        given.extend([path, rules.name, seed, options])
        return agents.HeuristicOpponent()

    monkeypatch.setattr("agents.ppo.load_agent", load_agent)
    agents.load("ppo:runs/x,sample=true", rules="duel", seed=8)
    assert given == ["runs/x", "duel", 8, {"sample": "true"}]


def test_a_missing_checkpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="no checkpoint at nowhere/at/all"):
        agents.load("ppo:nowhere/at/all")


def test_a_person_can_play_a_match(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = [f"{rank}{suit}" for suit in "CDHS" for rank in "JQKTA"]
    program: Any = runpy.run_path("examples/play.py")
    monkeypatch.setattr(sys, "argv", ["play.py", "--rules", "pagat_auto,target:3", "--seed", "5"])
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("10C\n" + "".join(f"{card.lower()}\n" for card in cards) * 400)
    )
    assert program["main"]() == 0
    shown = capsys.readouterr().out
    assert "'10c' is not offered" in shown
    assert "game points for you" in shown
    score = re.findall(r"the match stands at (\d+) : (\d+)", shown)[-1]
    assert max(map(int, score)) >= 3
    for input_ in ("quit\n", ""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(input_))
        assert program["main"]() == 0
