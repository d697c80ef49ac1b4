"""PufferLib's manner: the training loop on flat buffers learns and keeps to the masks."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (torch's own annotations leave parts of its interface unknown.)

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch

from schnapsen_env.integrations.puffer import SchnapsenPufferEnv
from tests_integration.conftest import Referee


def test_ppo_on_the_buffers_learns_and_never_breaks_a_rule(
    load_example: Callable[[str], ModuleType], referee: Referee
) -> None:
    example = load_example("puffer/ppo.py")
    args = example.Args(total_timesteps=100_000, num_steps=16, eval_deals=1_000)
    torch.manual_seed(args.seed)
    before, _ = example.evaluate(example.Policy(SchnapsenPufferEnv(1)), args)
    policy = example.train(args)
    after, _ = example.evaluate(policy, args)
    assert referee.actions["SchnapsenVectorEnv"] >= 98_000
    assert not referee.illegal.total()
    assert after > max(before + 0.4, 0.7)


def test_advantages_of_a_seat_are_those_of_the_turn_aware_learner(
    load_example: Callable[[str], ModuleType],
) -> None:
    # A row of its own whose value is minus that of the other seat: the same numbers as with signs.
    from agents.ppo.gae import generalised_advantages

    generator = torch.Generator().manual_seed(0)
    deals, steps = 8, 20
    seats = (torch.rand(steps + 1, deals, generator=generator) < 0.5).long()
    of_seat_0 = torch.randn(steps + 1, deals, generator=generator)
    reward_0 = torch.randn(steps, deals, generator=generator)
    dones = torch.rand(steps, deals, generator=generator) < 0.2
    sign = 1.0 - 2.0 * seats
    expected, _ = generalised_advantages(
        reward_0 * sign[:-1], of_seat_0 * sign, dones, seats, 1.0, 0.9
    )
    rewards = torch.stack([reward_0, -reward_0], dim=2).flatten(1)
    values = torch.stack([of_seat_0, -of_seat_0], dim=2).flatten(1)
    both = load_example("puffer/ppo.py").gae(rewards, values, dones.repeat_interleave(2, 1), 0.9)
    ours = both.view(steps, deals, 2).gather(2, seats[:-1, :, None]).squeeze(2)
    torch.testing.assert_close(ours, expected)
