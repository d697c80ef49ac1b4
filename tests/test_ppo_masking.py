"""Masked actions have no probability, no entropy, no part in the KL and no gradient."""

from __future__ import annotations

import math

import pytest
import torch

from agents.ppo.masking import MaskedPolicy
from schnapsen_env.actions import NUM_ACTIONS


@pytest.fixture
def logits() -> torch.Tensor:
    # Masked actions get the highest logits of all, so that a leak would show.
    return torch.randn(512, NUM_ACTIONS, generator=torch.Generator().manual_seed(3)) * 3


@pytest.fixture
def mask() -> torch.Tensor:
    mask = (torch.rand(512, NUM_ACTIONS, generator=torch.Generator().manual_seed(4)) < 0.2).to(
        torch.int8
    )
    mask[:, 25] |= (mask.sum(dim=1) == 0).to(torch.int8)
    return mask


def test_no_masked_action_is_ever_sampled(logits: torch.Tensor, mask: torch.Tensor) -> None:
    policy = MaskedPolicy(torch.where(mask == 0, logits + 50, logits), mask)
    generator = torch.Generator().manual_seed(5)
    for _ in range(200):
        actions = policy.sample(generator)
        assert bool((mask.gather(1, actions[:, None]) == 1).all())
    assert bool((mask.gather(1, policy.mode()[:, None]) == 1).all())


def test_samples_follow_the_probabilities() -> None:
    rows = 200_000
    mask = torch.zeros(1, NUM_ACTIONS, dtype=torch.int8)
    mask[0, [2, 9, 25]] = 1
    odds = torch.zeros(1, NUM_ACTIONS)
    odds[0, [2, 9, 25]] = torch.tensor([0.0, 1.0, -2.0])
    policy = MaskedPolicy(odds.expand(rows, -1), mask.expand(rows, -1))
    counts = torch.bincount(policy.sample(torch.Generator().manual_seed(6)), minlength=NUM_ACTIONS)
    expected = torch.tensor([0.0, 1.0, -2.0]).softmax(0)
    assert counts.sum() == counts[[2, 9, 25]].sum()
    torch.testing.assert_close(counts[[2, 9, 25]] / rows, expected, atol=0.005, rtol=0)


def test_entropy_is_that_of_the_legal_actions_alone(
    logits: torch.Tensor, mask: torch.Tensor
) -> None:
    policy = MaskedPolicy(logits, mask)
    for row in range(20):
        legal = logits[row][mask[row] == 1]
        expected = torch.distributions.Categorical(logits=legal).entropy()
        torch.testing.assert_close(policy.entropy()[row], expected)


def test_kl_is_from_the_uniform_policy_over_legal_actions(
    logits: torch.Tensor, mask: torch.Tensor
) -> None:
    policy = MaskedPolicy(logits, mask)
    for row in range(20):
        legal = logits[row][mask[row] == 1]
        uniform = torch.distributions.Categorical(logits=torch.zeros_like(legal))
        given = torch.distributions.Categorical(logits=legal)
        expected = torch.distributions.kl_divergence(uniform, given)
        torch.testing.assert_close(policy.kl_from_uniform()[row], expected, atol=1e-5, rtol=1e-5)


def test_one_legal_action_has_no_entropy_and_no_kl() -> None:
    mask = torch.zeros(1, NUM_ACTIONS, dtype=torch.int8)
    mask[0, 7] = 1
    policy = MaskedPolicy(torch.full((1, NUM_ACTIONS), 30.0), mask)
    assert policy.entropy().item() == 0
    assert policy.kl_from_uniform().item() == 0
    assert policy.sample(torch.Generator().manual_seed(0)).item() == 7


def test_masked_logits_get_no_gradient(logits: torch.Tensor, mask: torch.Tensor) -> None:
    logits.requires_grad_()
    policy = MaskedPolicy(logits, mask)
    actions = policy.sample(torch.Generator().manual_seed(7))
    total = policy.log_prob(actions) + policy.entropy() + policy.kl_from_uniform()
    torch.autograd.backward(total.sum())
    assert logits.grad is not None
    assert bool((logits.grad[mask == 0] == 0).all())
    assert bool((logits.grad[mask == 1] != 0).any())


def test_the_pull_to_uniform_does_not_fade_with_the_probability() -> None:
    """Why exploration rests on this KL: the entropy's gradient vanishes where it is needed most."""
    mask = torch.zeros(1, NUM_ACTIONS, dtype=torch.int8)
    mask[0, [3, 25]] = 1

    def pull(term: str, logit: float) -> float:
        logits = torch.zeros(1, NUM_ACTIONS)
        logits[0, 25] = logit  # closing
        logits.requires_grad_()
        getattr(MaskedPolicy(logits, mask), term)().sum().backward()
        assert logits.grad is not None
        return abs(float(logits.grad[0, 25]))

    assert pull("entropy", -12.0) < 1e-4
    assert math.isclose(pull("kl_from_uniform", -12.0), 0.5, abs_tol=1e-3)


def test_bfloat16_logits_are_taken_in_float32(logits: torch.Tensor, mask: torch.Tensor) -> None:
    policy = MaskedPolicy(logits.bfloat16(), mask)
    assert policy.log_probs.dtype == torch.float32
    torch.testing.assert_close(policy.probs.sum(dim=1), torch.ones(512))
