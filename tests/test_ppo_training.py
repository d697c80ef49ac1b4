"""Whole runs: learning, stopping and going on, and what happens when something is wrong."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock
from rich.console import Console

import train
from agents.evaluation import evaluate
from agents.evaluation.statistics import Mean
from agents.ppo import (
    CheckpointError,
    Config,
    ConfigError,
    NonFiniteLossError,
    PPOAgent,
    RunDirError,
    load_agent,
)
from agents.ppo import trainer as trainer_module
from agents.ppo.checkpoint import info_sha256, read_checkpoint
from agents.ppo.config import write_config
from agents.ppo.errors import NothingToLearnError
from agents.ppo.learner import Coefficients, Learner, Losses, Minibatch, choose_device
from agents.ppo.logger import MetricsLog
from agents.ppo.trainer import (
    LOCK_FILE,
    Outcome,
    StopRequest,
    Trainer,
    check_new_run_dir,
    resumed_config,
)
from schnapsen_env import engine
from schnapsen_env.solver import solve

ROOT = Path(__file__).resolve().parent.parent

TINY = Config(
    rules="pagat_auto",
    num_envs=32,
    num_steps=16,
    minibatch_size=128,
    hidden_sizes=(32,),
    learning_rate=6e-4,
    learning_rate_final=0.0,
    total_timesteps=6 * 512,
    eval_interval=1024,
    eval_deals=20,
    final_eval_deals=20,
    checkpoint_interval=1024,
    tensorboard=False,
)


def start(run_dir: Path, **changes: Any) -> Trainer:
    return Trainer.start(replace(TINY, run_dir=str(run_dir), **changes))


def log_of(run_dir: Path) -> list[dict[str, float]]:
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def assert_same_weights(first: Path, second: Path) -> None:
    (_, weights), (_, others) = read_checkpoint(first), read_checkpoint(second)
    for name, array in weights.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


def test_a_resumed_run_equals_one_that_never_stopped(tmp_path: Path) -> None:
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    assert start(whole).run() is Outcome.FINISHED
    assert start(halves).run(until=3 * 512) is Outcome.STOPPED
    trainer = Trainer.resume(halves, resumed_config(halves))
    assert trainer.learner.timesteps == 3 * 512
    assert trainer.run() is Outcome.FINISHED
    assert_same_weights(whole, halves)
    clock = ("charts/SPS", "charts/cpu_seconds")
    untimed = [
        [{name: value for name, value in line.items() if name not in clock} for line in log_of(run)]
        for run in (whole, halves)
    ]
    assert untimed[0] == untimed[1]
    assert [line["timesteps"] for line in untimed[0]] == [512 * (i + 1) for i in range(6)]


def test_a_critic_that_sees_all_cards_is_resumed_too(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "critic": "state",
        "critic_hidden_sizes": (24,),
        "exact_endgames": True,
        "eval_interval": 0,
        "final_eval_deals": 0,
    }
    whole = start(tmp_path / "whole", **settings)
    whole.run()
    first = start(tmp_path / "parts", **settings)
    first.run(until=2 * 512)
    second = Trainer.resume(tmp_path / "parts", resumed_config(tmp_path / "parts"))
    second.run()
    assert whole.learner.critic is not None
    assert second.learner.critic is not None
    for one, other in zip(whole.learner.parameters(), second.learner.parameters(), strict=True):
        assert torch.equal(one, other)
    before = Learner(whole.config).critic
    assert before is not None
    moved = [
        not torch.equal(one, other)
        for one, other in zip(before.parameters(), whole.learner.critic.parameters(), strict=True)
    ]
    assert all(moved)


def test_values_of_exhausted_deals_are_the_solvers() -> None:
    learner = Learner(replace(TINY, exact_endgames=True))
    rollout, _ = learner.collector.collect(learner.network)
    assert rollout.exact.any()
    assert not rollout.exact.all()
    known = rollout.values[rollout.exact]
    assert torch.equal(known, known.round())
    # The last row is of the deals as they stand.
    exhausted = np.flatnonzero(rollout.exact[-1].numpy())
    for row in exhausted:
        position = engine.position_of(learner.collector.env.records[row])
        assert rollout.values[-1, row] == solve(position, TINY.rules).value
    solved = {float(rollout.values[-1, row]) for row in exhausted}
    assert min(solved) < 0 < max(solved)
    plain = Learner(TINY).collector.collect(Learner(TINY).network)[0]
    assert not plain.exact.any()
    assert torch.equal(plain.values[~rollout.exact], rollout.values[~rollout.exact])


# --------------------------------------------------------------------- the terms of the objective


def minibatch_of(learner: Learner, advantages: list[float], **columns: list[float]) -> Minibatch:
    """As many decisions, taken as the network would, with what is to be learnt from them."""
    rollout, _ = learner.collector.collect(learner.network)
    size = len(advantages)

    def column(name: str, given: torch.Tensor) -> torch.Tensor:
        return torch.tensor(columns[name]) if name in columns else given.clone()

    return Minibatch(
        observations=rollout.observations[0, :size],
        hidden=rollout.hidden[0, :size],
        masks=rollout.masks[0, :size],
        actions=rollout.actions[0, :size],
        log_probs=column("log_probs", rollout.log_probs[0, :size]),
        values=column("values", rollout.values[0, :size]),
        magnet_log_probs=torch.zeros((size, 0)),
        advantages=torch.tensor(advantages),
        returns=column("returns", rollout.values[0, :size]),
    )


def test_norm_adv_scales_the_advantages_of_a_minibatch() -> None:
    """With ratios of 1.1 and 0.9, which are not clipped.

    Advantages 1 and 5 count 1.1 and 4.5. They have the mean 3 and the standard deviation 8 ** 0.5,
    and so become -(0.5 ** 0.5) and 0.5 ** 0.5.
    """
    moved = torch.tensor([1.1, 0.9]).log()
    root = 0.5**0.5
    for norm_adv, expected in ((False, -(1.1 + 4.5) / 2), (True, -(-1.1 * root + 0.9 * root) / 2)):
        learner = Learner(replace(TINY, norm_adv=norm_adv))
        batch = minibatch_of(learner, [1.0, 5.0])
        losses = learner.losses(replace(batch, log_probs=batch.log_probs - moved))
        assert losses.policy_loss.item() == pytest.approx(expected, abs=1e-5)


def test_the_loss_rewards_entropy_and_pulls_towards_uniform_and_magnet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equation 9: what is minimised, term by term with its sign, and the step that is taken."""
    learner = Learner(replace(TINY, vf_coef=0.5, magnet_coef=0.25))
    minimised: list[float] = []

    def note(loss: torch.Tensor) -> None:
        minimised.append(loss.item())
        for parameter in learner.parameters():
            parameter.grad = torch.ones_like(parameter)

    monkeypatch.setattr(torch.autograd, "backward", note)
    losses = Losses(
        policy_loss=torch.tensor(1.0),
        value_loss=torch.tensor(20.0),
        entropy=torch.tensor(300.0),
        uniform_kl=torch.tensor(4000.0),
        magnet_kl=torch.tensor(50000.0),
        approx_kl=torch.tensor(7.0),
        clip_frac=torch.tensor(7.0),
    )
    before = learner.weights()
    learner.descend(losses, Coefficients(learning_rate=1e-3, ent_coef=0.1, uniform_kl_coef=0.2))
    assert minimised == [pytest.approx(1.0 + 10.0 - 30.0 + 800.0 + 12500.0)]
    # Adam's first step has the size of the learning rate, against the gradient.
    for name, array in learner.weights().items():
        np.testing.assert_allclose(before[name] - array, 1e-3, rtol=1e-2)


def test_explained_variance_is_that_of_the_network() -> None:
    """What the solver knows does not count, and values that are all wrong explain nothing."""
    learner = Learner(replace(TINY, exact_endgames=True, learning_rate=1e-30))
    with torch.no_grad():
        head = learner.network.linear_layers()[-1]
        head.weight[-1] = 0.0
        head.bias[-1] = 5.0
    metrics, _ = learner.iterate()
    assert learner.collector.rollout.exact.any()
    assert metrics["losses/explained_variance"] == pytest.approx(0.0, abs=1e-3)


def test_the_ratio_is_clipped_where_that_makes_the_objective_smaller() -> None:
    """Equation 7 with ratios of 2 and 1/2 and clip_coef 0.2, by hand.

    Advantages 1, 1, -1, -1 with ratios 2, 1/2, 2, 1/2 count 1.2, 0.5, -2 and -0.8.
    """
    learner = Learner(replace(TINY, norm_adv=False))
    batch = minibatch_of(learner, [1.0, 1.0, -1.0, -1.0])
    moved = torch.tensor([2.0, 0.5, 2.0, 0.5]).log()
    losses = learner.losses(replace(batch, log_probs=batch.log_probs - moved))
    assert losses.policy_loss.item() == pytest.approx(-(1.2 + 0.5 - 2.0 - 0.8) / 4, abs=1e-5)
    assert losses.clip_frac.item() == 1.0


def test_clip_vloss_holds_values_near_their_old_estimates() -> None:
    """Values that have moved by 1 and 0.1 away from old estimates; the returns are the new values.

    Without the clipping the error is 0. With it the first counts as moved by 0.2, 0.8 short.
    """
    for clip, expected in ((False, 0.0), (True, 0.5 * 0.8**2 / 2)):
        learner = Learner(replace(TINY, clip_vloss=clip))
        batch = minibatch_of(learner, [0.0, 0.0])
        old = replace(batch, values=batch.values - torch.tensor([1.0, 0.1]))
        assert learner.losses(old).value_loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("target", "epochs"), [(None, 3), (1e-9, 1)])
def test_target_kl_ends_the_epochs(
    target: float | None, epochs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner(replace(TINY, target_kl=target, update_epochs=3))
    steps: list[object] = []
    descend = learner.descend

    def counted(*arguments: Any) -> Any:
        steps.append(arguments)
        return descend(*arguments)

    monkeypatch.setattr(learner, "descend", counted)
    learner.iterate()
    assert len(steps) == epochs * TINY.batch_size // TINY.minibatch_size


def test_going_on_from_an_earlier_checkpoint_drops_the_later_lines(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run).run()
    (run / "latest").write_text("step-000000001024\n")
    trainer = Trainer.resume(run, resumed_config(run))
    trainer.run(until=1536)
    assert [line["timesteps"] for line in log_of(run)] == [512, 1024, 1536]


def test_seeds_make_runs(tmp_path: Path) -> None:
    weights: list[Any] = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        start(tmp_path / name, seed=seed).run(until=512)
        weights.append(read_checkpoint(tmp_path / name)[1]["layers.0.weight"])
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


def test_a_run_leaves_its_figures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in vars(TINY).items()
        if name
        in (
            "rules",
            "num_envs",
            "num_steps",
            "minibatch_size",
            "eval_deals",
            "total_timesteps",
            "eval_interval",
            "final_eval_deals",
        )
    ]
    assert train.main([*arguments, "--run-dir", str(run), "--hidden-sizes", "32"]) == 0
    lines = log_of(run)
    for name in (
        "charts/SPS charts/learning_rate charts/ent_coef charts/uniform_kl_coef charts/cpu_seconds "
        "losses/policy_loss losses/value_loss losses/entropy losses/uniform_kl losses/approx_kl "
        "losses/clip_frac losses/explained_variance losses/grad_norm "
        "selfplay/closing_rate selfplay/deal_length"
    ).split():
        assert name in lines[0], name
    evaluated = [line["timesteps"] for line in lines if "eval_random/game_points" in line]
    assert evaluated == [1024, 2048, 3072]
    for (
        figure
    ) in "game_points closing_rate exchange_rate marriage_rate undeclared_lead_rate".split():
        assert f"eval_heuristic/{figure}" in lines[1]
    summary = json.loads((run / "evaluation.json").read_text())
    assert set(summary["opponents"]) == {"random", "heuristic"}
    assert summary["opponents"]["random"]["deals"] == 20
    assert list((run / "tensorboard").iterdir())
    assert not load_agent(run).sample


def test_learning(tmp_path: Path) -> None:
    trainer = start(
        tmp_path / "run",
        num_envs=256,
        num_steps=32,
        minibatch_size=1024,
        hidden_sizes=(128, 128),
        learning_rate=2e-3,
        total_timesteps=250_000,
        eval_interval=0,
        checkpoint_interval=1_000_000,
    )

    def strength() -> Mean:
        # The policy itself: the best action of a network that knows nothing beats random already,
        # since it seldom is to close.
        agent = PPOAgent(trainer.learner.weights(), trainer.learner.layout, sample=True)
        return evaluate(agent, "random", rules=trainer.rules, deals=500, seed=3).game_points

    before = strength()
    assert abs(before.value) < 0.3
    trainer.run()
    after = strength()
    assert after.value - after.ci95 > 0.8
    assert log_of(tmp_path / "run")[-1]["losses/explained_variance"] > 0.3


def test_a_request_to_stop_is_heard_after_the_iteration(tmp_path: Path) -> None:
    trainer = start(tmp_path / "run")
    assert trainer.run(StopRequest(signal.SIGTERM)) is Outcome.STOPPED
    assert trainer.learner.iteration == 0
    assert Trainer.resume(tmp_path / "run", resumed_config(tmp_path / "run")).saved_at == 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_interrupting_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [
        sys.executable,
        str(ROOT / "train.py"),
        "--run-dir",
        str(run),
        "--num-envs",
        "32",
        "--num-steps",
        "16",
        "--minibatch-size",
        "128",
        "--total-timesteps",
        "100000000",
        "--hidden-sizes",
        "32",
        "--no-tensorboard",
        "--eval-interval",
        "0",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300  # compiling may come first
    log = run / "metrics.jsonl"
    while time.monotonic() < deadline and not (log.exists() and log.read_text().count("\n") > 2):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert process.returncode == train.STOPPED + signal.SIGINT
    assert f"python train.py --resume {run}" in text
    assert "Traceback" not in text
    saved = read_checkpoint(run)[0].timesteps
    assert saved >= 3 * 512
    assert Trainer.resume(run, resumed_config(run)).learner.timesteps == saved


# -------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize("term", ["value_loss", "policy_loss"])
def test_a_loss_that_is_not_finite_names_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    run = tmp_path / "run"
    trainer = start(run)
    trainer.run(until=1024)
    good = trainer.learner.weights()
    losses = trainer.learner.losses

    def poisoned(minibatch: Any) -> Any:
        fine = losses(minibatch)
        return replace(fine, **{term: getattr(fine, term) * float("nan")})

    monkeypatch.setattr(trainer.learner, "losses", poisoned)
    with pytest.raises(NonFiniteLossError) as error:
        trainer.run()
    text = str(error.value)
    assert f"{term} = nan in iteration 3 (after 1,024 decisions, learning rate 0.0004)" in text
    assert f"the last good checkpoint is {run / 'checkpoints' / 'step-000000001024'}" in text
    for name, array in trainer.learner.weights().items():
        np.testing.assert_array_equal(array, good[name])


def test_a_step_too_large_ends_the_run(tmp_path: Path) -> None:
    """Loss and gradient are finite, and the weights after the step are not."""
    settings = {"minibatch_size": 512, "update_epochs": 1, "total_timesteps": 512}
    trainer = start(tmp_path / "run", learning_rate=1e38, **settings)
    with pytest.raises(NonFiniteLossError, match="a weight is infinite or not a number in iter"):
        trainer.run()
    assert not (tmp_path / "run" / "latest").exists()


def test_the_disk_must_hold_all_checkpoints_that_will_be(tmp_path: Path) -> None:
    config = replace(TINY, hidden_sizes=(2048, 2048), keep_checkpoints=0)

    def needed(settings: Config) -> int:
        return trainer_module._bytes_needed(settings)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    run = start(tmp_path / "run", hidden_sizes=(2048, 2048), keep_checkpoints=0, eval_interval=0)
    run.run(until=1024)
    written = sum(file.stat().st_size for file in (tmp_path / "run").rglob("*") if file.is_file())
    # Two more are to come, and room for another.
    assert 3 * written < needed(config) < 4.5 * written + 60 * 2**20
    assert needed(replace(config, total_timesteps=60 * 512)) > 5 * needed(config)
    # Not more than one an iteration, however short the interval.
    assert needed(replace(config, checkpoint_interval=1)) < 3 * needed(config)
    critic = replace(config, critic="state", critic_hidden_sizes=(2048, 2048))
    assert needed(critic) > 1.8 * (needed(config) - 50 * 2**20)


def test_weights_that_overflow_are_reported_before_any_checkpoint(tmp_path: Path) -> None:
    trainer = start(tmp_path / "run")
    with torch.no_grad():
        trainer.learner.network.linear_layers()[-1].weight.fill_(1e30)
    with pytest.raises(NonFiniteLossError, match="there is no checkpoint yet"):
        trainer.run()


def test_an_existing_run_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    start(run).run(until=512)
    assert train.main(["--run-dir", str(run)]) == train.WRONG_COMMAND
    text = capsys.readouterr().err
    assert f"exists and is not empty: continue it with --resume {run}" in text
    assert text.count("\n") == 1


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = start(run)
    with pytest.raises(RunDirError, match="exists and is not empty"):
        start(run)
    first.run(until=512)
    with FileLock(run / LOCK_FILE), pytest.raises(RunDirError, match="another process is training"):
        Trainer.resume(run, resumed_config(run))
    with FileLock(run / LOCK_FILE), pytest.raises(RunDirError, match="another process is training"):
        first.run(until=1024)
    with pytest.raises(RunDirError, match="there is no such folder"):
        Trainer.resume(tmp_path / "none", TINY)
    assert not (tmp_path / "none").exists()
    # Whoever is done, or could not begin, gives the folder free.
    second = Trainer.resume(run, resumed_config(run))
    second.run(until=1024)
    assert first.run(until=512) is Outcome.STOPPED


def test_a_new_run_in_a_folder_that_somebody_is_just_taking(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with FileLock(run / LOCK_FILE), pytest.raises(RunDirError, match="another process is training"):
        start(run)
    assert start(run).run(until=512) is Outcome.STOPPED


def test_without_tensorboard_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    line = ["--run-dir", str(tmp_path / "run"), "--total-timesteps", "512"]
    assert train.main(line) == train.WRONG_COMMAND
    assert "tensorboard" in capsys.readouterr().err
    # The folder is free for the corrected command.
    start(tmp_path / "run").run(until=512)
    config = resumed_config(tmp_path / "run")
    with pytest.raises(ModuleNotFoundError):
        Trainer.resume(tmp_path / "run", replace(config, tensorboard=True))
    assert Trainer.resume(tmp_path / "run", config).run(until=1024) is Outcome.STOPPED


def test_a_damaged_checkpoint_comes_with_the_older_ones(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run).run(until=2048)
    newest = read_checkpoint(run)[0].timesteps
    folder = run / "checkpoints" / f"step-{newest:012d}"
    with pytest.raises(RunDirError, match="it is a checkpoint; give the folder of its run"):
        resumed_config(folder)
    (folder / "training.pt").write_bytes(b"cut")
    older = folder.with_name("step-000000001024")
    # What a run leaves that is killed while it writes.
    (run / "checkpoints" / ".step-000000003072.unfinished").mkdir()
    (run / "checkpoints" / ".step-000000003072.unfinished" / "checkpoint.json").write_text("{")
    with pytest.raises(CheckpointError, match=rf"write its name into .*latest: {older.name}$"):
        resumed_config(run)
    (run / "latest").write_text(older.name)
    assert Trainer.resume(run, resumed_config(run)).learner.timesteps == 1024


def test_going_on_leaves_a_whole_log_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not take the lines that are there."""
    run = tmp_path / "run"
    start(run, log_interval=1).run(until=1024)
    before = (run / "metrics.jsonl").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    MetricsLog(run, 1024, tensorboard=False).close()
    assert (run / "metrics.jsonl").read_bytes() == before
    with pytest.raises(OSError, match=r"metrics\.jsonl"):
        MetricsLog(run, 512, tensorboard=False)
    assert (run / "metrics.jsonl").read_bytes() == before
    monkeypatch.undo()
    # A byte that is no text spoils its line and no more.
    (run / "metrics.jsonl").write_bytes(before + b'{"timesteps": 3\xff}\n')
    MetricsLog(run, 1024, tensorboard=False).close()
    assert (run / "metrics.jsonl").read_bytes() == before


def test_too_little_memory_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def too_much(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(Trainer, "start", too_much)
    assert train.main(["--run-dir", str(tmp_path / "run")]) == train.FAILED
    assert "out of memory (Unable to allocate 9 TiB): lower num_envs" in capsys.readouterr().err

    def too_much_for_torch(*_: object) -> None:
        torch.empty(2**57, dtype=torch.float32)

    monkeypatch.setattr(Trainer, "start", too_much_for_torch)
    assert train.main(["--run-dir", str(tmp_path / "run")]) == train.FAILED
    assert "out of memory (" in capsys.readouterr().err

    def broken(*_: object) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr(Trainer, "start", broken)
    with pytest.raises(RuntimeError, match="something else"):
        train.main(["--run-dir", str(tmp_path / "run")])


def test_opponents_that_take_all_decisions_end_the_run(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"opponents": ("random",), "opponent_share": 1.0}
    sizes = {"num_envs": 2, "num_steps": 1, "minibatch_size": 2}
    trainer = start(tmp_path / "run", **settings, **sizes, norm_adv=False)
    with pytest.raises(NothingToLearnError, match=r"decisions to learn from.*no checkpoint yet"):
        trainer.run()


def test_stopping_in_the_last_iteration_leaves_the_evaluation_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    play = Trainer._iterate  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def play_and_stop(trainer: Trainer) -> Any:
        done = play(trainer)
        if trainer.learner.iteration == trainer.config.num_iterations:
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    monkeypatch.setattr(Trainer, "_iterate", play_and_stop)
    write_config(replace(TINY, run_dir=str(run)), tmp_path / "tiny.yaml")
    code = train.main(["--config", str(tmp_path / "tiny.yaml")])
    assert code == train.STOPPED + signal.SIGTERM
    assert "continue with: python train.py --resume" in capsys.readouterr().err
    assert not (run / "evaluation.json").exists()
    monkeypatch.undo()
    assert train.main(["--resume", str(run)]) == 0
    assert (run / "evaluation.json").exists()


def test_folders_that_cannot_be_used_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RunDirError, match="exists and is not empty"):
        check_new_run_dir(replace(TINY, run_dir=str(file)))
    with pytest.raises(RunDirError, match="cannot write to run_dir"):
        check_new_run_dir(replace(TINY, run_dir=str(file / "below")))

    def full_disk(_: object) -> SimpleNamespace:
        return SimpleNamespace(free=1 << 20)

    monkeypatch.setattr("shutil.disk_usage", full_disk)
    with pytest.raises(RunDirError, match="the disk has 1 MB left"):
        check_new_run_dir(replace(TINY, run_dir=str(tmp_path / "new")))


def test_a_disk_that_fills_up_ends_the_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = start(tmp_path / "run")
    trainer.run(until=1024)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(
        OSError, match=r"No space left on device; the last good checkpoint is .*1024"
    ):
        trainer.run()


def test_what_makes_a_run_cannot_change_on_resuming(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run).run(until=512)
    config = resumed_config(run)
    with pytest.raises(ConfigError, match="keeps its num_envs: it is 32 and cannot become 64"):
        Trainer.resume(run, replace(config, num_envs=64))
    longer = Trainer.resume(run, replace(config, total_timesteps=10 * 512))
    assert longer.config.num_iterations == 10
    longer.lock.release()
    # It has not come to a checkpoint, and yet what it was told is not lost.
    assert resumed_config(run) == longer.config
    written = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(written.replace("total_timesteps: 5120", "total_timesteps: 1"))
    assert resumed_config(run).total_timesteps == 1
    (run / "config.yaml").write_text(written.replace("num_envs: 32", "num_envs: 64"))
    with pytest.raises(
        ConfigError, match=r"config\.yaml: a resumed run keeps its num_envs: it is 32"
    ):
        resumed_config(run)
    # What is left out of the file is as it was, and not the default.
    (run / "config.yaml").write_text("total_timesteps: 5120\n")
    assert resumed_config(run) == replace(config, total_timesteps=5120)
    (run / "config.yaml").unlink()
    assert resumed_config(run) == config


def test_a_run_that_is_done_says_so_and_keeps_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    start(run).run()
    settings = (run / "config.yaml").read_text()
    assert train.main(["--resume", str(run), "--total-timesteps", "1000", "--adam-eps", "1"]) == 0
    words = "nothing is left to train: 3,072 decisions are made, and total_timesteps=1,000"
    assert words in " ".join(capsys.readouterr().err.split())
    assert (run / "config.yaml").read_text() == settings


def test_every_setting_that_may_change_on_resuming_does(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run).run(until=512)
    changed = replace(resumed_config(run), adam_eps=0.1, learning_rate=1e-2)
    trainer = Trainer.resume(run, changed)
    assert [group["eps"] for group in trainer.learner.optimizer.param_groups] == [0.1]
    trainer.run(until=1024)
    assert read_checkpoint(run)[0].config["adam_eps"] == 0.1
    other = tmp_path / "other"
    start(other).run(until=512)
    usual = replace(resumed_config(other), learning_rate=1e-2)
    Trainer.resume(other, usual).run(until=1024)
    (_, first), (_, second) = read_checkpoint(run), read_checkpoint(other)
    assert any((first[name] != second[name]).any() for name in first)


def test_a_run_that_was_killed_before_it_named_its_checkpoint(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run).run(until=512)
    (run / "latest").unlink()
    with pytest.raises(
        CheckpointError,
        match=r"no checkpoint yet; to go on from one that is there, write its name into .*"
        r"latest: step-000000000512",
    ):
        resumed_config(run)
    (run / "latest").write_text("step-000000000512\n")
    assert resumed_config(run).seed == TINY.seed
    with pytest.raises(RunDirError, match=rf"give the folder of the run, {re.escape(str(run))}$"):
        resumed_config(run / "checkpoints")
    # In the middle of the very first one there is nothing to go on from.
    (run / "latest").unlink()
    folder = run / "checkpoints" / "step-000000000512"
    folder.rename(folder.with_name(".step-000000000512.unfinished"))
    with pytest.raises(RunDirError, match="has no checkpoint; begin it anew"):
        resumed_config(run)


def test_a_damaged_training_state_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    trainer = start(run)
    trainer.run(until=512)
    folder = run / "checkpoints" / "step-000000000512"
    state = folder / "training.pt"
    torch.save({"iteration": 1}, state)
    info = json.loads((folder / "checkpoint.json").read_text())
    info["training_sha256"] = hashlib.sha256(state.read_bytes()).hexdigest()
    info["info_sha256"] = info_sha256(info)
    (folder / "checkpoint.json").write_text(json.dumps(info))
    with pytest.raises(CheckpointError, match="cannot be continued"):
        Trainer.resume(run, resumed_config(run))
    state.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"training\.pt is damaged"):
        Trainer.resume(run, resumed_config(run))
    state.unlink()
    with pytest.raises(CheckpointError, match="can be played but not continued"):
        Trainer.resume(run, resumed_config(run))


def test_plain_output_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = start(tmp_path / "run")
    trainer.console = Console(stderr=True, force_terminal=False)
    trainer.run()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "random " in lines[-1]
    assert "heuristic " in lines[-1]


def test_bfloat16_trains(tmp_path: Path) -> None:
    trainer = start(tmp_path / "run", amp="bf16")
    trainer.run(until=1024)
    assert trainer.learner.amp_dtype == torch.bfloat16
    assert all(array.dtype == np.float32 for array in trainer.learner.weights().values())


def test_a_gpu_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert choose_device(replace(TINY, device="auto")).type == "cpu"
    with pytest.raises(ConfigError, match="device=cuda, but this torch"):
        Learner(replace(TINY, device="cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_training_on_a_gpu(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start(run, device="cuda", amp="bf16").run(until=1024)
    trainer = Trainer.resume(run, replace(resumed_config(run), device="cpu"))
    assert trainer.run() is Outcome.FINISHED
