"""The one place where action masks meet logits.

Letters: ``B`` positions, ``A = 27`` actions.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from agents.limits import MASKED_LOGIT

#: Half of the smallest positive number that ``torch.rand`` gives; it also gives 0.
_SMALLEST: Final = 2.0**-25


class MaskedPolicy:
    """A distribution over the legal actions of each position.

    Masked actions have probability 0, are never sampled, and add nothing to entropy, KL or any
    gradient. Everything is computed in float32, whatever the network computes in.

    Args:
        logits: ``float[B, A]``.
        mask: ``[B, A]``, nonzero where an action is legal; each row needs one legal action.
    """

    def __init__(self, logits: Tensor, mask: Tensor) -> None:
        self.legal = mask.bool()
        masked = torch.where(self.legal, logits.float(), MASKED_LOGIT)
        #: ``float32[B, A]``: log probabilities, about -1e8 where masked.
        self.log_probs = masked.log_softmax(dim=-1)
        #: ``float32[B, A]``: probabilities, 0 where masked.
        self.probs = masked.softmax(dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """The log probabilities ``float32[B]`` of ``actions``, ``int64[B]``."""
        return self.log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """The entropy of each row in nats, ``float32[B]``."""
        return -(self.probs * self.log_probs).sum(dim=-1)

    def kl_from_uniform(self) -> Tensor:
        """KL(uniform over the legal actions || policy) of each row, ``float32[B]``.

        It is the mean of ``-log p`` over the legal actions, less the logarithm of their number. An
        action that the policy has nearly given up keeps a gradient of full size here; in the
        entropy its gradient vanishes with its probability.
        """
        count = self.legal.sum(dim=-1)
        total = torch.where(self.legal, self.log_probs, 0.0).sum(dim=-1)
        return -total / count - count.log()

    def kl_to(self, log_probs: Tensor) -> Tensor:
        """KL(policy || other) of each row, ``float32[B]``.

        Args:
            log_probs: ``float32[B, A]`` of the other policy under the same masks; with no columns
                there is no other policy, and the distance is 0.
        """
        if log_probs.shape[-1] == 0:
            return torch.zeros_like(self.log_probs[:, 0])
        apart = torch.where(self.legal, self.log_probs - log_probs, 0.0)
        return (self.probs * apart).sum(dim=-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One action of each row, ``int64[B]``.

        The Gumbel trick: with noise ``-log(-log(u))`` for uniform ``u``, ``argmax(log p + noise)``
        is a sample of ``p``. The noise lies between -3 and 17, so no masked action can win.

        Args:
            generator: a generator of the CPU, whatever device the policy is on.
        """
        uniform = torch.rand(self.log_probs.shape, generator=generator).clamp_min_(_SMALLEST)
        noise = uniform.log_().neg_().log_().neg_().to(self.log_probs.device)
        return (self.log_probs + noise).argmax(dim=-1)

    def mode(self) -> Tensor:
        """The most probable action of each row, ``int64[B]``."""
        return self.log_probs.argmax(dim=-1)
