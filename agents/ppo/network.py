"""The networks: one trunk with policy and value side by side, and a critic that sees all cards.

Letters: ``B`` positions, ``F`` features of an observation, ``A = 27`` actions.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.hidden import HIDDEN_SIZE
from schnapsen_env.observation import Layout

#: What single deals never vary. The network is not connected to these features, so that a match
#: score, which it has not been trained on, cannot confuse it.
UNUSED_FIELDS: Final = ("own_needed", "other_needed")


class Perceptron(nn.Module):
    """Linear layers with ReLU between them, for whole-number inputs.

    Args:
        scale: ``float32[I]``, what an input is multiplied with; 0 leaves it out.
        hidden_sizes: widths of the hidden layers.
        outputs: how many there are.
        generator: draws the initial weights (orthogonal, as is usual for PPO; biases are 0).
    """

    #: ``float32[I]``
    scale: Tensor

    def __init__(
        self,
        scale: Tensor,
        hidden_sizes: tuple[int, ...],
        outputs: int,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.register_buffer("scale", scale, persistent=False)
        self.layers = nn.ModuleList()
        for before, after in pairwise((len(scale), *hidden_sizes, outputs)):
            layer = nn.Linear(before, after)
            nn.init.orthogonal_(layer.weight, gain=math.sqrt(2), generator=generator)
            nn.init.zeros_(layer.bias)
            self.layers.append(layer)

    def linear_layers(self) -> list[nn.Linear]:
        """The layers from first to last."""
        return cast("list[nn.Linear]", list(self.layers))

    def apply_layers(self, inputs: Tensor) -> Tensor:
        """The outputs ``float[B, O]`` for ``uint8[B, I]``."""
        first, *others = self.linear_layers()
        dtype = first.weight.dtype
        if torch.is_autocast_enabled(inputs.device.type):
            dtype = torch.get_autocast_dtype(inputs.device.type)
        # The scale goes to the weights, which are few; whole numbers below 256 are exact in bf16.
        out = linear(inputs.to(dtype), first.weight * self.scale, first.bias)
        for layer in others:
            out = layer(out.relu())
        return out


class PolicyValueNet(Perceptron):
    """From observations to action logits and a value.

    Args:
        layout: which observation it reads.
        hidden_sizes: widths of the hidden layers.
        generator: draws the initial weights.
    """

    def __init__(
        self,
        layout: Layout,
        hidden_sizes: tuple[int, ...],
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(_input_scale(layout), hidden_sizes, NUM_ACTIONS + 1, generator)
        with torch.no_grad():
            # A policy close to uniform, and values of the size of game points.
            head = self.linear_layers()[-1].weight
            nn.init.orthogonal_(head[:NUM_ACTIONS], gain=0.01, generator=generator)
            nn.init.orthogonal_(head[NUM_ACTIONS:], gain=1.0, generator=generator)
            # Without an input there is no gradient, so these columns stay 0 for ever.
            self.linear_layers()[0].weight[:, self.scale == 0] = 0.0

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Logits ``float[B, A]`` and values ``float32[B]`` of the player to move, in game points.

        Args:
            observations: ``uint8[B, F]``, an observation's whole numbers.
        """
        out = self.apply_layers(observations)
        return out[:, :NUM_ACTIONS], out[:, NUM_ACTIONS].float()


class StateCritic(Perceptron):
    """From an observation and all hidden cards to a value; training only.

    It may see what the players do not, since its estimates are compared with results and never
    reach an action. What is left to chance in its eyes is only what the players choose, so that
    advantages are far less noisy than with a critic that has to guess the talon.

    Args:
        layout: of the observation, one part of its input.
        hidden_sizes: widths of the hidden layers.
        generator: draws the initial weights.
    """

    def __init__(
        self,
        layout: Layout,
        hidden_sizes: tuple[int, ...],
        generator: torch.Generator | None = None,
    ) -> None:
        scale = torch.cat([_input_scale(layout), torch.ones(HIDDEN_SIZE)])
        super().__init__(scale, hidden_sizes, 1, generator)
        with torch.no_grad():
            nn.init.orthogonal_(self.linear_layers()[-1].weight, gain=1.0, generator=generator)

    def forward(self, observations: Tensor, hidden: Tensor) -> Tensor:
        """Values ``float32[B]`` of the player to move, in game points.

        Args:
            observations: ``uint8[B, F]``.
            hidden: ``uint8[B, H]``, see :mod:`schnapsen_env.hidden`.
        """
        return self.apply_layers(torch.cat([observations, hidden], dim=1)).squeeze(1).float()


def _input_scale(layout: Layout) -> Tensor:
    """``float32[F]``: whole numbers of an observation to inputs in [0, 1]; 0 for unused fields."""
    scale = torch.as_tensor(layout.scale)
    for field in layout.fields:
        if field.name in UNUSED_FIELDS:
            scale[field.offset : field.offset + field.size] = 0.0
    return scale
