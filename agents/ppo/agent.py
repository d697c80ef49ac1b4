"""The agent that plays with a trained network: numpy and compiled code, no torch.

An agent is shown the default observation, with suits under their own names. The network was trained
with suits renamed (``suits=``), so the observation is renamed first and the chosen action last, as
the training environment does it.

Positions are taken one at a time in compiled code that skips inputs that are 0, which most are. For
one position that is far quicker than any matrix library, for thousands about as quick; and the
answer to a position never depends on what else is in its batch.

Letters: ``N`` positions, ``F`` features, ``A = 27`` actions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask, Actions, SamplingAgent
from agents.inputs import checked_inputs, require_legal
from agents.options import check_rules, read_switches
from agents.ppo.checkpoint import Weights, find_checkpoint, layer_name, read_checkpoint
from agents.ppo.errors import CheckpointError
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled
from schnapsen_env.observation import Layout, action_in_natural_order, relabel
from schnapsen_env.rules import Rules, resolve_rules

Floats = npt.NDArray[np.float32]

_NO_NOISE: Final = np.zeros((0, NUM_ACTIONS), dtype=np.float32)


@compiled
def apply_network(
    observation: Floats,
    matrices: tuple[Floats, ...],
    biases: tuple[Floats, ...],
    first: Floats,
    second: Floats,
) -> Floats:
    """The outputs of the network for one observation, ``float32[A + 1]``: logits and value.

    Args:
        observation: ``float32[F]`` with the suits as in training.
        matrices: ``float32[before, after]`` of each layer.
        biases: ``float32[after]`` of each layer.
        first: room for the widest layer; the outputs are a part of one of the two.
        second: likewise.
    """
    before = observation
    for layer in range(len(matrices)):
        matrix, bias = matrices[layer], biases[layer]
        after = first[: len(bias)] if layer % 2 == 0 else second[: len(bias)]
        for j in range(len(bias)):
            after[j] = bias[j]
        for i in range(len(before)):
            strength = before[i]
            if layer > 0 and strength < 0:  # ReLU, but not of the observation
                strength = np.float32(0)
            if strength != 0:
                for j in range(len(bias)):
                    after[j] += strength * matrix[i, j]
        before = after
    return before


@compiled
def make_room(
    biases: tuple[Floats, ...], features: int
) -> tuple[Floats, Floats, Floats, ActionMask]:
    """What the work on one position is written into, position after position.

    Returns:
        Two arrays for the widest layer, one for ``float32[F]`` and one for ``int8[A]`` with the
        suits as in training.
    """
    widest = 0
    for bias in biases:
        widest = max(widest, len(bias))
    first = np.empty(widest, dtype=np.float32)
    second = np.empty(widest, dtype=np.float32)
    renamed = np.empty(features, dtype=np.float32)
    mask = np.empty(NUM_ACTIONS, dtype=np.int8)
    return first, second, renamed, mask


@compiled
def choose_actions(
    observations: Floats,
    masks: ActionMask,
    suits_code: int,
    matrices: tuple[Floats, ...],
    biases: tuple[Floats, ...],
    noise: Floats,
    out: Actions,
) -> None:
    """Write the best legal action of each position into ``out``, ``int64[N]``.

    Args:
        observations: ``float32[N, F]`` in the default layout.
        masks: ``int8[N, A]``.
        suits_code: how the network names suits.
        matrices: see :func:`apply_network`.
        biases: likewise.
        noise: ``float32[N, A]``, added to the logits: Gumbel noise samples from the policy. With no
            rows nothing is added.
        out: ``int64[N]``.
    """
    first, second, renamed, mask = make_room(biases, observations.shape[1])
    for row in range(len(observations)):
        order = relabel(observations[row], masks[row], suits_code, renamed, mask)
        logits = apply_network(renamed, matrices, biases, first, second)
        best = -1
        best_score = np.float32(0)
        for action in range(NUM_ACTIONS):
            if mask[action] != 0:
                score = logits[action]
                if len(noise) > 0:
                    score += noise[row, action]
                if best == -1 or score > best_score:
                    best, best_score = action, score
        out[row] = action_in_natural_order(order, best) if best >= 0 else -1


@compiled
def compute_outputs(
    observations: Floats,
    masks: ActionMask,
    suits_code: int,
    matrices: tuple[Floats, ...],
    biases: tuple[Floats, ...],
    out: Floats,
) -> None:
    """Write the outputs, by natural actions, into ``out``, ``float32[N, A + 1]``."""
    first, second, renamed, mask = make_room(biases, observations.shape[1])
    for row in range(len(observations)):
        order = relabel(observations[row], masks[row], suits_code, renamed, mask)
        outputs = apply_network(renamed, matrices, biases, first, second)
        for action in range(NUM_ACTIONS):
            out[row, action_in_natural_order(order, action)] = outputs[action]
        out[row, NUM_ACTIONS] = outputs[NUM_ACTIONS]


class PPOAgent(SamplingAgent):
    """Plays with a trained network.

    Args:
        weights: ``layers.I.weight`` and ``layers.I.bias``, as in a checkpoint.
        layout: the observation that the network reads; only its ``suits`` may differ from the
            default.
        sample: draw from the policy instead of taking its most probable action.
        seed: where the drawing starts.
    """

    def __init__(
        self, weights: Weights, layout: Layout, *, sample: bool = False, seed: int = 0
    ) -> None:
        super().__init__(sample=sample, seed=seed)
        layers = range(len(weights) // 2)
        self._matrices = tuple(
            np.ascontiguousarray(weights[layer_name(i, "weight")].T) for i in layers
        )
        self._biases = tuple(np.ascontiguousarray(weights[layer_name(i, "bias")]) for i in layers)
        self._suits_code = layout.suits_code

    def act_batch(self, observations: Floats, action_masks: ActionMask) -> Actions:
        """The actions for many positions: ``float32[N, F]``, ``int8[N, 27]`` to ``int64[N]``.

        Raises:
            TypeError: an array is of another kind.
            ValueError: a shape or a number is wrong, or a mask allows nothing.
        """
        inputs, masks = checked_inputs("ppo", observations, action_masks)
        noise = _NO_NOISE
        if self.sample:
            noise = self._rng.gumbel(size=masks.shape).astype(np.float32)
        out = np.empty(len(inputs), dtype=np.int64)
        choose_actions(inputs, masks, self._suits_code, self._matrices, self._biases, noise, out)
        if len(out) and out.min() < 0:
            require_legal(masks)
        return out

    def evaluate(self, observations: Floats, action_masks: ActionMask) -> tuple[Floats, Floats]:
        """What the network thinks of positions.

        Returns:
            The probabilities of the actions, ``float32[N, 27]``, 0 where illegal, and the game
            points that the player to move expects, ``float32[N]``.

        Raises:
            TypeError: an array is of another kind.
            ValueError: a shape or a number is wrong, or a mask allows nothing.
        """
        inputs, masks = checked_inputs("ppo", observations, action_masks)
        require_legal(masks)
        outputs = np.empty((len(inputs), NUM_ACTIONS + 1), dtype=np.float32)
        compute_outputs(inputs, masks, self._suits_code, self._matrices, self._biases, outputs)
        logits = np.where(masks != 0, outputs[:, :NUM_ACTIONS], -np.inf)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True), outputs[:, NUM_ACTIONS]


def load_agent(
    path: str | Path, rules: str | Rules = "pagat_auto", seed: int = 0, **options: str | bool
) -> PPOAgent:
    """The agent of a checkpoint.

    Args:
        path: a run (its latest checkpoint), a checkpoint folder, or a file in one.
        rules: what is to be played.
        seed: where a sampling agent's randomness starts.
        options: ``sample`` - ``"true"`` draws from the policy, the default takes its most probable
            action; ``any_rules`` - ``"true"`` plays under other rules than the trained ones.

    Raises:
        CheckpointError: it cannot be read, is damaged, is of another version of the observation, or
            was trained under other rules. No code of a file is ever run.
        ValueError: an unknown option or value.
    """
    sample, any_rules = read_switches("ppo", options, ("endgame",))
    folder = find_checkpoint(Path(path))
    info, weights = read_checkpoint(folder)
    if not any_rules:
        check_rules(info.rules, resolve_rules(rules), folder, CheckpointError)
    layout = Layout(suits=info.suits)  # pyright: ignore[reportArgumentType] - checked on reading
    return PPOAgent(weights, layout, sample=sample, seed=seed)
