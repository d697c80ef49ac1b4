"""The single-file examples: what they compute, and that they learn."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (torch's own annotations leave parts of its interface unknown.)

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from agents.ppo.gae import generalised_advantages
from tests_integration.conftest import ROOT, Referee

EXAMPLES = ["cleanrl/ppo_aec.py", "cleanrl/ppo_batch.py"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_advantages_are_those_of_the_reference_learner(
    load_example: Callable[[str], ModuleType], name: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(20, 8, generator=generator)
    values = torch.randn(21, 8, generator=generator)
    dones = torch.rand(20, 8, generator=generator) < 0.2
    seats = (torch.rand(21, 8, generator=generator) < 0.5).long()
    ours = load_example(name).turn_aware_gae(rewards, values, dones, seats, 0.99, 0.9)
    reference, _ = generalised_advantages(rewards, values, dones, seats, 0.99, 0.9)
    torch.testing.assert_close(ours, reference)


@pytest.mark.parametrize(
    ("name", "settings", "env"),
    [
        (EXAMPLES[0], {"num_envs": 32, "num_steps": 64}, "SchnapsenAECEnv"),
        (EXAMPLES[1], {"num_envs": 256, "num_steps": 16}, "SchnapsenVectorEnv"),
    ],
    ids=["aec", "batch"],
)
def test_a_short_training_learns_and_never_breaks_a_rule(
    load_example: Callable[[str], ModuleType],
    referee: Referee,
    name: str,
    settings: dict[str, int],
    env: str,
) -> None:
    example = load_example(name)
    args = example.Args(total_timesteps=80_000, eval_deals=1_000, **settings)
    torch.manual_seed(args.seed)
    before, _ = example.evaluate(example.Agent(238, 27), args)
    agent = example.train(args)
    after, _ = example.evaluate(agent, args)
    assert referee.actions[env] >= 73_000
    assert not referee.illegal.total()
    # Measured after 80,000 decisions: see docs/integrations/cleanrl.md.
    assert after > max(before + 0.4, 0.7)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_short_enough_to_be_read(name: str) -> None:
    path: Path = ROOT / "examples" / name
    assert len(path.read_text(encoding="utf-8").splitlines()) < 300
