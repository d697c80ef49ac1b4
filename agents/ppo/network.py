"""The network: one trunk, and policy and value side by side in its last layer.

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
from schnapsen_env.observation import Layout

#: What single deals never vary. The network is not connected to these features, so that a match
#: score, which it has not been trained on, cannot confuse it.
UNUSED_FIELDS: Final = ("own_needed", "other_needed")


class PolicyValueNet(nn.Module):
    """A multilayer perceptron with ReLU from observations to action logits and a value.

    Args:
        layout: which observation it reads.
        hidden_sizes: widths of the hidden layers.
        generator: draws the initial weights (orthogonal, as is usual for PPO).
    """

    #: ``float32[F]``: whole numbers of an observation to inputs in [0, 1]; 0 for unused features.
    scale: Tensor

    def __init__(
        self,
        layout: Layout,
        hidden_sizes: tuple[int, ...],
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        scale = torch.as_tensor(layout.scale)
        for field in layout.fields:
            if field.name in UNUSED_FIELDS:
                scale[field.offset : field.offset + field.size] = 0.0
        self.register_buffer("scale", scale, persistent=False)
        sizes = (layout.size, *hidden_sizes, NUM_ACTIONS + 1)
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self._initialise(generator)

    def linear_layers(self) -> list[nn.Linear]:
        """The layers from first to last."""
        return cast("list[nn.Linear]", list(self.layers))

    def _initialise(self, generator: torch.Generator | None) -> None:
        layers = self.linear_layers()
        with torch.no_grad():
            for layer in layers:
                nn.init.orthogonal_(layer.weight, gain=math.sqrt(2), generator=generator)
                nn.init.zeros_(layer.bias)
            # A policy close to uniform, and values of the size of game points.
            head = layers[-1].weight
            nn.init.orthogonal_(head[:NUM_ACTIONS], gain=0.01, generator=generator)
            nn.init.orthogonal_(head[NUM_ACTIONS:], gain=1.0, generator=generator)
            # Without an input there is no gradient, so these columns stay 0 for ever.
            layers[0].weight[:, self.scale == 0] = 0.0

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Logits ``float[B, A]`` and values ``float32[B]`` of the player to move, in game points.

        Args:
            observations: ``uint8[B, F]``, an observation's whole numbers.
        """
        first, *others = self.linear_layers()
        dtype = first.weight.dtype
        if torch.is_autocast_enabled(observations.device.type):
            dtype = torch.get_autocast_dtype(observations.device.type)
        # The scale goes to the weights, which are few; whole numbers below 256 are exact in bf16.
        out = linear(observations.to(dtype), first.weight * self.scale, first.bias)
        for layer in others:
            out = layer(out.relu())
        return out[:, :NUM_ACTIONS], out[:, NUM_ACTIONS].float()
