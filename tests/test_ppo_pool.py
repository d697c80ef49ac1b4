"""Decisions in training that are not the policy's: opponents, earlier selves, random openings."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from gymnasium.vector import AutoresetMode

from agents.base import AgentError, load
from agents.ppo import CheckpointError, Config, ConfigError, RunDirError
from agents.ppo import trainer as trainer_module
from agents.ppo.checkpoint import read_checkpoint, read_training
from agents.ppo.config import read_config, write_config
from agents.ppo.errors import NothingToLearnError
from agents.ppo.gae import generalised_advantages, learnable
from agents.ppo.learner import Learner
from agents.ppo.masking import MaskedPolicy
from agents.ppo.opponents import LONGEST_OPENING, Pool
from agents.ppo.trainer import Outcome, Trainer, check_new_run_dir, resumed_config
from agents.renaming import name_forth
from schnapsen_env.actions import CLAIM
from schnapsen_env.engine import record as r
from schnapsen_env.observation import Layout, natural_action
from schnapsen_env.rules import RULES
from schnapsen_env.vector import SchnapsenVectorEnv
from schnapsen_env.view import PERFECT

TINY = Config(
    rules="pagat_auto",
    num_envs=48,
    num_steps=24,
    minibatch_size=128,
    hidden_sizes=(32,),
    total_timesteps=4 * 1152,
    eval_interval=0,
    final_eval_deals=0,
    checkpoint_interval=1152,
    tensorboard=False,
)


def column(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers)[:, None]


def test_the_estimate_passes_through_decisions_of_others_by_hand() -> None:
    # Seat 0 decides (t=0), an opponent in seat 1 twice (t=1, 2), seat 0 again (t=3) and wins 2.
    # With gamma 1 and lambda 1/2; the opponent's values (9) must not matter.
    # t=3: A = 2 - 0.6 = 1.4, return 2
    # t=2: no advantage; its estimate is -(0.6) - 0.5 * 1.4 = -1.3
    # t=1: no advantage; its estimate is +(-1.3)
    # t=0: A = -(-1.3) - 0.5 = 0.8
    to_play = torch.tensor([0, 1, 1, 0, 1])[:, None]
    dones = torch.tensor([False, False, False, True])[:, None]
    learns = torch.tensor([True, False, False, True, True])[:, None]
    advantages, returns = generalised_advantages(
        column(0.0, 0.0, 0.0, 2.0),
        column(0.5, 9.0, 9.0, 0.6, 0.3),
        dones,
        to_play,
        gamma=1.0,
        gae_lambda=0.5,
        learns=learns,
    )
    torch.testing.assert_close(advantages, column(0.8, 0.0, 0.0, 1.4))
    torch.testing.assert_close(returns[learns[:-1]], torch.tensor([1.3, 2.0]))


def test_a_decision_without_an_outcome_is_the_bootstrap_by_hand() -> None:
    # Seat 0 decides at t=0 and t=1, the opponent in seat 1 at t=2 and when the rollout ends. What
    # came of t=1 is not known, so it is not learnt from, and its value stands for the rest.
    # t=0: A = +0.4 - 0.5 = -0.1; the opponent's values (9) and rewards (7) must not matter.
    to_play = torch.tensor([0, 0, 1, 1])[:, None]
    dones = torch.zeros((3, 1), dtype=torch.bool)
    learns = torch.tensor([True, True, False, False])[:, None]
    advantages, _ = generalised_advantages(
        column(0.0, 0.0, 7.0),
        column(0.5, 0.4, 9.0, 9.0),
        dones,
        to_play,
        gamma=1.0,
        gae_lambda=0.5,
        learns=learns,
    )
    torch.testing.assert_close(advantages, column(-0.1, 0.0, 0.0))
    assert torch.equal(learnable(learns, dones)[:, 0], torch.tensor([True, False, False]))
    # Had the deal ended at t=2, t=1 would have an outcome.
    dones[2] = True
    assert torch.equal(learnable(learns, dones)[:, 0], torch.tensor([True, True, False]))


def test_where_the_policy_takes_all_decisions_nothing_changes() -> None:
    generator = torch.Generator().manual_seed(3)
    rewards, values = torch.randn(20, 6, generator=generator), torch.randn(21, 6)
    dones = torch.rand(20, 6, generator=generator) < 0.1
    to_play = torch.randint(2, (21, 6), generator=generator)
    plain = generalised_advantages(rewards, values, dones, to_play, 1.0, 0.9)
    all_own = torch.ones_like(to_play, dtype=torch.bool)
    assert learnable(all_own, dones).all()
    with_flags = generalised_advantages(rewards, values, dones, to_play, 1.0, 0.9, learns=all_own)
    for first, second in zip(plain, with_flags, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("suits", ["natural", "trump_first", "canonical"])
def test_actions_are_named_and_named_back(suits: Any) -> None:
    layout = Layout(suits=suits)
    env = SchnapsenVectorEnv(200, rules="pagat_auto", suits=suits, dtype=np.uint8)
    codes = RULES["pagat_auto"].codes()
    env.reset(seed=4)
    seen: set[int] = set()
    for _ in range(40):
        obs, _ = env.observe()
        named = env.sample_actions(obs["action_mask"])
        natural = np.array(
            [
                natural_action(record, codes, PERFECT, layout.suits_code, 0, action)
                for record, action in zip(env.records, named, strict=True)
            ]
        )
        seen |= set(natural.tolist())
        back = natural.copy()
        name_forth(env.records, codes, np.arange(200), layout.suits_code, back)
        np.testing.assert_array_equal(back, named)
        env.step(named)
    assert len(seen) >= 26  # every action but, perhaps, a rare one


def _played(pool: Pool, steps: int, rules: str = "pagat_auto") -> list[tuple[Any, ...]]:
    """Records, policy's actions (the first legal one), what the pool made of them, and flags."""
    env = SchnapsenVectorEnv(
        48,
        rules=rules,
        suits="canonical",
        dtype=np.uint8,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    obs, _ = env.reset(seed=1)
    pool.open_deals(np.ones(48, dtype=np.bool_))
    history: list[tuple[Any, ...]] = []
    for _ in range(steps):
        own: npt.NDArray[np.int64] = obs["action_mask"].argmax(axis=1).astype(np.int64)
        actions = own.copy()
        records = env.records.copy()
        learns = pool.take_over(env.records, obs["action_mask"], actions)
        history.append((records, own, actions, learns))
        obs, _, terminations, *_ = env.step(actions)
        pool.open_deals(terminations)
    return history


def test_an_opponent_plays_one_seat_of_its_share_of_the_deals() -> None:
    layout = Layout(suits="canonical")
    config = replace(TINY, opponents=("heuristic",), opponent_share=0.5)
    pool = Pool(config, layout, seed=5)
    heuristic = load("heuristic")
    shadow = SchnapsenVectorEnv(48, rules="pagat_auto")
    shadow.reset(seed=0)
    asked = 0
    for records, own, actions, learns in _played(pool, 30):
        np.testing.assert_array_equal(actions[learns], own[learns])
        assert learns[24:].all()  # half of 48 deals
        shadow.records[:] = records
        obs, info = shadow.observe()
        to_play = info["to_play"]
        np.testing.assert_array_equal(~learns[:24], to_play[:24] == np.arange(24) % 2)
        rows = np.flatnonzero(~learns)
        expected = heuristic.act_batch(obs["observation"][rows], obs["action_mask"][rows])
        name_forth(records, pool.codes, rows, layout.suits_code, expected)
        np.testing.assert_array_equal(actions[rows], expected)
        asked += rows.size
    assert asked > 200


def test_random_openings_come_first_and_end() -> None:
    pool = Pool(replace(TINY, random_openings=0.5), Layout(suits="canonical"), seed=5)
    begun = np.zeros(48, dtype=np.int64)
    lengths: list[int] = []
    number = np.full(48, -1)
    for records, _, _, learns in _played(pool, 120):
        fresh = records[:, r.NUM_TAKEN] == 0
        lengths += begun[fresh & (number >= 0)].tolist()
        begun[fresh], number[fresh] = 0, 0
        # Once the policy has decided in a deal, chance does not come back.
        decided = records[:, r.NUM_TAKEN] > begun
        assert learns[decided].all()
        begun += ~learns
    drawn = np.array(lengths)
    assert 0.35 < (drawn > 0).mean() < 0.65
    assert drawn.max() <= LONGEST_OPENING
    assert len(set(drawn.tolist())) > 8


def test_an_earlier_self_plays_once_there_is_one() -> None:
    learner = Learner(
        replace(TINY, opponents=("past",), opponent_share=1.0, past_interval=1152, past_selves=2)
    )
    pool = learner.collector.pool
    learner.iterate()
    assert learner.collector.rollout.learns.all()
    for _ in range(3):
        learner.iterate()
        share = learner.collector.rollout.learns.float().mean().item()
        assert 0.4 < share < 0.6
    assert len(pool.past) == 2
    newest = learner.weights()
    for name, array in pool.past[-1].items():
        np.testing.assert_array_equal(array, newest[name])


def test_without_a_pool_the_policy_decides_everything() -> None:
    learner = Learner(TINY)
    metrics, _ = learner.iterate()
    assert learner.collector.rollout.learns.all()
    assert metrics["charts/learnt_share"] == 1.0


def test_only_own_decisions_reach_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the rows of others may be anything."""
    config = replace(TINY, opponents=("random",), opponent_share=1.0)
    weights: list[dict[str, npt.NDArray[np.float32]]] = []
    for spoil in (False, True):
        learner = Learner(config)
        collect = learner.collector.collect

        def spoiled(*args: Any, collect: Any = collect, spoil: bool = spoil) -> Any:
            rollout, counts = collect(*args)
            if spoil:
                others = ~rollout.learns
                rollout.actions[others[:-1]] = 26
                rollout.log_probs[others[:-1]] = -50.0
                rollout.values[others] = 1e3
            return rollout, counts

        monkeypatch.setattr(learner.collector, "collect", spoiled)
        learner.iterate()
        weights.append(learner.weights())
    for name, array in weights[0].items():
        np.testing.assert_array_equal(array, weights[1][name], err_msg=name)


def test_a_resumed_run_with_all_of_it_equals_one_that_never_stopped(tmp_path: Path) -> None:
    config = replace(
        TINY,
        opponents=("heuristic", "past", "random"),
        opponent_share=0.6,
        past_interval=1152,
        random_openings=0.3,
        magnet_coef=0.1,
    )
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    assert Trainer.start(replace(config, run_dir=str(whole))).run() is Outcome.FINISHED
    first = Trainer.start(replace(config, run_dir=str(halves)))
    assert first.run(until=2 * 1152) is Outcome.STOPPED
    assert Trainer.resume(halves, resumed_config(halves)).run() is Outcome.FINISHED
    (_, weights), (_, others) = read_checkpoint(whole), read_checkpoint(halves)
    for name, array in weights.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


def test_the_distance_to_another_policy_by_hand() -> None:
    mask = torch.tensor([[1, 1, 0]])
    policy = MaskedPolicy(torch.log(torch.tensor([[0.5, 0.5, 0.9]])), mask)
    other = MaskedPolicy(torch.log(torch.tensor([[0.25, 0.75, 0.1]])), mask)
    # 0.5 ln(0.5 / 0.25) + 0.5 ln(0.5 / 0.75)
    expected = 0.5 * np.log(2.0) + 0.5 * np.log(2.0 / 3.0)
    torch.testing.assert_close(policy.kl_to(other.log_probs), torch.tensor([expected]).float())
    assert policy.kl_to(policy.log_probs).item() == 0.0
    assert policy.kl_to(torch.zeros((1, 0))).item() == 0.0


def test_the_magnet_follows_slowly_and_holds_back() -> None:
    moved: dict[float, float] = {}
    for coef in (1e-9, 30.0):
        learner = Learner(replace(TINY, magnet_coef=coef, magnet_rate=0.25, ent_coef=0.0))
        assert learner.magnet is not None
        before = learner.network.linear_layers()[0].weight.detach().clone()
        learner.iterate()
        after = learner.network.linear_layers()[0].weight.detach()
        slow = learner.magnet.linear_layers()[0].weight
        torch.testing.assert_close(slow, before + 0.25 * (after - before))
        metrics, _ = learner.iterate()
        moved[coef] = metrics["losses/magnet_kl"]
    assert moved[30.0] < 0.5 * moved[1e-9]


def test_a_run_begins_with_the_weights_it_is_given(tmp_path: Path) -> None:
    first = Trainer.start(replace(TINY, run_dir=str(tmp_path / "first")))
    first.run(until=1152)
    given = Learner(replace(TINY, seed=9, initial_weights=str(tmp_path / "first"))).weights()
    for name, array in first.learner.weights().items():
        np.testing.assert_array_equal(array, given[name])


def test_a_run_goes_on_without_the_weights_it_began_with(tmp_path: Path) -> None:
    Trainer.start(replace(TINY, run_dir=str(tmp_path / "first"))).run(until=1152)
    begun = replace(TINY, initial_weights=str(tmp_path / "first"), run_dir=str(tmp_path / "second"))
    Trainer.start(begun).run(until=1152)
    shutil.rmtree(tmp_path / "first")
    second = tmp_path / "second"
    assert Trainer.resume(second, resumed_config(second)).run() is Outcome.FINISHED


def test_fewer_earlier_selves_after_resuming(tmp_path: Path) -> None:
    config = replace(TINY, opponents=("past",), past_interval=1152, run_dir=str(tmp_path / "run"))
    Trainer.start(config).run(until=3 * 1152)
    trainer = Trainer.resume(
        tmp_path / "run", replace(resumed_config(tmp_path / "run"), past_selves=1)
    )
    assert len(trainer.learner.collector.pool.past) == 3
    trainer.run()
    assert len(trainer.learner.collector.pool.past) == 1


def _without_format(state: dict[str, Any]) -> None:
    del state["format"]


def _with_an_empty_self(state: dict[str, Any]) -> None:
    state["deals"]["pool"]["past"].append({})


def _with_one_opening(state: dict[str, Any]) -> None:
    state["deals"]["pool"]["opening"] = torch.tensor(3)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without_format, "another version of this program.*--initial-weights"),
        (_with_an_empty_self, "of another network"),
        (_with_one_opening, r"\(\) random openings do not fit \(48,\)"),
    ],
)
def test_a_state_of_another_kind_cannot_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Any, message: str
) -> None:
    run = tmp_path / "run"
    Trainer.start(replace(TINY, run_dir=str(run))).run(until=1152)

    def spoiled(folder: Path) -> dict[str, Any]:
        state = read_training(folder)
        spoil(state)
        return state

    monkeypatch.setattr(trainer_module, "read_training", spoiled)
    with pytest.raises(CheckpointError, match=f"cannot be continued: .*{message}"):
        Trainer.resume(run, resumed_config(run))


def test_a_refused_setting_leaves_the_folder_free(tmp_path: Path) -> None:
    config = replace(TINY, run_dir=str(tmp_path / "run"))
    with pytest.raises(ConfigError, match="heuristc"):
        Trainer.start(replace(config, opponents=("heuristc",)))
    Trainer.start(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opponents": ("random",) * 8}, "opponent_share=0.25: it gives 12 of 48 deals to 8 opp"),
        ({"opponents": ("random",), "opponent_share": 0.0}, "opponent_share=0.0: it gives 0 of 48"),
        ({"opponents": "heuristic"}, "opponents='heuristic': it must be a list of texts"),
    ],
)
def test_opponents_that_would_not_play_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(TINY, **changes)


def test_openings_never_claim() -> None:
    """A careless claim would only end the deal."""
    config = replace(TINY, rules="austrian", random_openings=1.0)
    pool = Pool(config, Layout(suits="canonical"), seed=5)
    claims = 0
    for _, _, actions, learns in _played(pool, 60, "austrian"):
        claims += int((actions[~learns] == CLAIM).sum())
    assert claims == 0


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    Trainer.start(replace(TINY, run_dir=str(tmp_path / "first"))).run(until=1152)
    begun = replace(TINY, initial_weights=str(tmp_path / "first"))
    with pytest.raises(ConfigError, match=r"initial_weights: .*hidden_sizes=\(32,\).*\(16,\)"):
        Learner(replace(begun, hidden_sizes=(16,)))
    with pytest.raises(ConfigError, match="suits=canonical, this run natural"):
        Learner(replace(begun, suits="natural"))
    with pytest.raises(ConfigError, match="initial_weights: there is no checkpoint at"):
        Learner(replace(TINY, initial_weights=str(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    ("spec", "named"),
    [("heuristc", "heuristc"), ("ppo:nowhere", "nowhere"), ("rdeep:samples=no", "samples=no")],
)
def test_an_opponent_that_cannot_be_loaded_is_named(spec: str, named: str) -> None:
    with pytest.raises(ConfigError, match=f"opponents: .*{named}"):
        Learner(replace(TINY, opponents=(spec,)))


def test_room_for_earlier_selves_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(TINY, hidden_sizes=(512, 512), keep_checkpoints=3, run_dir=str(tmp_path / "r"))
    free = 100 * 2**20  # enough for four checkpoints of the policy alone, not of 17 of them

    def usage(_path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    check_new_run_dir(config)
    with pytest.raises(
        RunDirError, match=r"the disk has 100 MB left, the run may need 1[0-9][0-9] "
    ):
        check_new_run_dir(replace(config, opponents=("past",)))


class Stubborn:
    """Always claims, legal or not."""

    def act(self, _observation: Any, _mask: Any) -> int:
        return 26


def test_an_opponent_that_fails_ends_the_run_and_names_the_checkpoint(tmp_path: Path) -> None:
    spec = f"python:{__name__}:Stubborn"
    trainer = Trainer.start(replace(TINY, run_dir=str(tmp_path / "run"), opponents=(spec,)))
    with pytest.raises(AgentError, match=r"Stubborn.*illegal action claim.*no checkpoint yet"):
        trainer.run()


def test_a_policy_that_has_nothing_to_decide_is_an_error() -> None:
    learner = Learner(replace(TINY, num_envs=2, num_steps=1, minibatch_size=2, random_openings=1.0))
    with pytest.raises(NothingToLearnError, match=r"num_envs \* num_steps = 2: .*0 decisions"):
        learner.iterate()


def test_opponents_survive_a_configuration_file(tmp_path: Path) -> None:
    config = replace(TINY, opponents=("heuristic", "past"), opponent_share=0.1)
    write_config(config, tmp_path / "config.yaml")
    assert read_config(tmp_path / "config.yaml") == config
    (tmp_path / "config.yaml").write_text("opponents: heuristic\n")
    with pytest.raises(ConfigError, match="opponents must be a list of texts"):
        read_config(tmp_path / "config.yaml")
