"""The agent that plays with a policy from a checkpoint of RLlib.

RLlib's own ways to restore a checkpoint unpickle whole objects, which can run code that somebody
put there. This agent reads weights and a description only, through
:func:`schnapsen_env.integrations.rllib.load_module`, and runs no code of the checkpoint. That is
also why it can play the module of this package, and no other.

Letters: ``N`` positions, ``F`` features of the default observation, ``A = 27`` actions.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask
from agents.options import check_rules, read_switches
from agents.renaming import RenamingAgent
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.integrations import rllib
from schnapsen_env.observation import DEFAULT_LAYOUT, Layout
from schnapsen_env.rules import Rules, resolve_rules

Floats = npt.NDArray[np.float32]


class RLlibAgent(RenamingAgent):
    """Plays the best legal action of a module, or samples from its policy.

    Args:
        module: what :func:`~schnapsen_env.integrations.rllib.load_module` gives, or
            ``Algorithm.get_module`` while training. One that does not say how it was trained is
            taken to read the default observation.
        sample: True draws from the policy instead of taking the action of the highest logit.
        seed: where the random stream of ``sample`` starts.

    Raises:
        ValueError: the module reads other observations than agents are shown.
    """

    name = "rllib"

    def __init__(
        self, module: rllib.SchnapsenMaskedModule, *, sample: bool = False, seed: int = 0
    ) -> None:
        section = module.get_metadata()["schnapsen_env"]
        layout = _trained_layout(section["training"])
        if (layout.memory, layout.history) != (DEFAULT_LAYOUT.memory, DEFAULT_LAYOUT.history):
            raise ValueError(
                f"the module was trained with memory={layout.memory!r}, history={layout.history}, "
                f"and agents are shown memory={DEFAULT_LAYOUT.memory!r}, "
                f"history={DEFAULT_LAYOUT.history}: train it with those"
            )
        if section["features"] != layout.size:
            raise ValueError(
                f"the module reads {section['features']} features, and agents are shown "
                f"{layout.size}: train with the environment of schnapsen_env.integrations.rllib"
            )
        super().__init__(layout.suits_code, sample=sample, seed=seed)
        self._module = module
        self._key: str = section["observation_key"]

    @classmethod
    def from_checkpoint(
        cls,
        path: str | Path,
        policy: str | None = None,
        *,
        rules: str | Rules = "pagat_auto",
        any_rules: bool = False,
        sample: bool = False,
        seed: int = 0,
    ) -> RLlibAgent:
        """The agent of a checkpoint.

        Args:
            path: as in :func:`~schnapsen_env.integrations.rllib.load_module`.
            policy: likewise.
            rules: what is to be played.
            any_rules: True plays under other rules than the trained ones, and takes a checkpoint
                that does not say how it was trained.
            sample: see the class.
            seed: see the class.

        Raises:
            RLlibCheckpointError: the checkpoint cannot be read, is of another module, was trained
                under other rules, or does not name them.
            ValueError: its module reads other observations than agents are shown.
        """
        module = rllib.load_module(path, policy)
        if not any_rules:
            training = module.get_metadata()["schnapsen_env"]["training"]
            if training is None:
                raise rllib.RLlibCheckpointError(
                    f"{path} does not say under which rules and with which observation it was "
                    "trained: write that into it by schnapsen_env.integrations.rllib.add_training("
                    "path, env_config), and train with use_shared_policy or make_model_config, "
                    "which note it; the option any_rules=true plays it as it is"
                )
            error = rllib.RLlibCheckpointError
            check_rules(training["rules"], resolve_rules(rules), Path(path), error)
        return cls(module, sample=sample, seed=seed)

    def _scores(self, observations: Floats, action_masks: ActionMask) -> npt.NDArray[np.float64]:
        import torch

        shown = {
            self._key: torch.from_numpy(observations),
            "action_mask": torch.from_numpy(action_masks),
        }
        batch: dict[str, Any] = {"obs": shown}
        with torch.inference_mode():
            outputs = self._module.forward_inference(batch)
        logits: Floats = outputs["action_dist_inputs"].numpy()
        if logits.shape != (len(observations), NUM_ACTIONS):
            raise ValueError(f"the module's logits have the shape {logits.shape}, not (N, 27)")
        return logits.astype(np.float64)


def _trained_layout(training: dict[str, Any] | None) -> Layout:
    """The observation of the training, the default one if it is not known."""
    if training is None:
        return DEFAULT_LAYOUT
    return Layout(training["memory"], training["suits"], training["history"])


def load_agent(
    path: str, rules: str | Rules, seed: int, policy: str | None = None, **options: str | bool
) -> RLlibAgent:
    """The agent of a spec ``rllib:PATH,policy=NAME,sample=true``.

    Args:
        path: of the checkpoint.
        rules: what is to be played.
        seed: of the agent's own randomness.
        policy: the name of a module.
        options: ``sample`` and ``any_rules``, see :meth:`RLlibAgent.from_checkpoint`.

    Raises:
        RLlibCheckpointError: the checkpoint cannot be read, is of another module, was trained under
            other rules, or does not name them.
        ValueError: an unknown option or value; or the module reads other observations.
    """
    sample, any_rules = read_switches("an rllib agent", options, ("policy",))
    return RLlibAgent.from_checkpoint(
        path, policy, rules=rules, any_rules=any_rules, sample=sample, seed=seed
    )
