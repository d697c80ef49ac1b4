"""RLlib: the environment for two agents, a module that masks, and self-play against past selves.

For RLlib's current API stack (RLModules, EnvRunners, Learners). RLlib keeps one trajectory for each
agent, from its turn to its next turn, so values need no change of sign here: an agent's own later
positions follow its own earlier ones, and both agents get the reward of the last step.

``docs/integrations/rllib.md`` shows the whole; ``examples/rllib/self_play.py`` runs it.

Letters: ``N`` positions, ``F`` features of an observation, ``A = 27`` actions.
"""

# RLlib and torch leave many of their types open.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

import functools
import json
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from gymnasium import spaces

from schnapsen_env import __version__, schnapsen_v0
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.env import AGENTS, SchnapsenAECEnv
from schnapsen_env.integrations.extras import require
from schnapsen_env.observation import LAYOUT_VERSION, SUIT_ORDERS, Layout
from schnapsen_env.view import MEMORIES

for _library in ("ray", "torch", "ray.rllib"):
    require(_library, "rllib")

import numpy as np  # noqa: E402
import ray  # noqa: E402
import torch  # noqa: E402
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig  # noqa: E402
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog  # noqa: E402
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import (  # noqa: E402
    DefaultPPOTorchRLModule,
)
from ray.rllib.callbacks.callbacks import RLlibCallback  # noqa: E402
from ray.rllib.core.columns import Columns  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv  # noqa: E402
from ray.tune.registry import register_env  # noqa: E402

__all__ = [
    "MAIN",
    "MaskedCatalog",
    "PastSelves",
    "RLlibCheckpointError",
    "SchnapsenMaskedModule",
    "SchnapsenMultiAgentEnv",
    "add_training",
    "load_module",
    "make_env",
    "make_model_config",
    "policy_names",
    "register",
    "use_past_selves",
    "use_separate_policies",
    "use_shared_policy",
]

#: The module that is trained, where there is only one.
MAIN: Final = "main"

_MASK: Final = "action_mask"
_Config = TypeVar("_Config", bound=AlgorithmConfig)


# ------------------------------------------------------------------------------ the environment


class SchnapsenMultiAgentEnv(PettingZooEnv):
    """``schnapsen_v0.env`` for RLlib: the agent to move observes, both get the last reward.

    It is RLlib's own wrapper for PettingZoo with two repairs: agents come in the order of their
    seats, and ``render()`` works.

    Args:
        config: arguments of :class:`~schnapsen_env.env.SchnapsenAECEnv`, such as ``{"rules":
            "pagat_auto"}``, and ``obs_key``: the name of the array beside ``action_mask`` in an
            observation (``"observation"``; RLlib's stock masking module wants
            ``"observations"``). This is what RLlib calls ``env_config``.

    Raises:
        TypeError: an unknown argument.
        ValueError: an argument that makes no environment, or ``illegal_action="raise"``.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        settings = dict(config or {})
        self._obs_key = str(settings.pop("obs_key", "observation"))
        if self._obs_key == _MASK:
            raise ValueError(f"obs_key={_MASK!r} is the name of the mask: choose another")
        if settings.get("illegal_action") == "raise":
            raise ValueError(
                "illegal_action='raise' cannot work here: RLlib checks an environment with random "
                "actions that no mask has seen; leave illegal_action at 'lose'"
            )
        env = schnapsen_v0.env(**settings)
        super().__init__(env)
        self.render_mode = env.render_mode
        self.agents = list(AGENTS)
        self.possible_agents = list(AGENTS)
        seen: dict[Any, Any] = {
            agent: spaces.Dict(self._renamed(env.observation_space(agent))) for agent in AGENTS
        }
        taken: dict[Any, Any] = {agent: env.action_space(agent) for agent in AGENTS}
        self.observation_spaces, self.observation_space = seen, spaces.Dict(seen)
        self.action_spaces, self.action_space = taken, spaces.Dict(taken)

    def _renamed(self, observation: Any) -> dict[str, Any]:
        """An observation, or its space, with the array under ``obs_key``."""
        return {self._obs_key: observation["observation"], _MASK: observation[_MASK]}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode; observations and infos hold the agent to move only.

        Args:
            seed: as in :meth:`schnapsen_env.env.SchnapsenAECEnv.reset`.
            options: likewise.
        """
        observations, infos = super().reset(seed=seed, options=options)
        return {agent: self._renamed(seen) for agent, seen in observations.items()}, infos

    def step(
        self, action: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Play the action of the agent to move, ``{agent: 0-26}``.

        Returns:
            Observations, rewards, terminations, truncations and infos: those of the next agent to
            move, and in the last step those of both.
        """
        observations, rewards, terminations, truncations, infos = super().step(action)
        renamed = {agent: self._renamed(seen) for agent, seen in observations.items()}
        return renamed, rewards, terminations, truncations, infos

    def render(self) -> str | None:
        """The board as ``render_mode`` says, see the AEC environment."""
        return self.env.render()


def make_env(config: Mapping[str, Any] | None = None) -> SchnapsenMultiAgentEnv:
    """The environment from RLlib's ``env_config``; see :class:`SchnapsenMultiAgentEnv`."""
    return SchnapsenMultiAgentEnv(config)


def register(name: str = "schnapsen_v0") -> str:
    """Let RLlib and Tune know the environment as ``name``, on all nodes; returns the name."""
    register_env(name, make_env)
    return name


# ----------------------------------------------------------------------------------- the module


def _observation_key(space: object) -> str:
    """The name of the array beside the mask.

    Raises:
        ValueError: the space is not a dict of one array and a mask.
    """
    names = list(space.spaces) if isinstance(space, spaces.Dict) else []
    others = [name for name in names if name != _MASK]
    if len(names) != 2 or len(others) != 1:
        raise ValueError(
            f"SchnapsenMaskedModule needs observations {{'observation': array, {_MASK!r}: int8[A]}}"
            f", not {space}: take the environment of schnapsen_env.integrations.rllib, and no "
            "connector that flattens observations"
        )
    return others[0]


class MaskedCatalog(PPOCatalog):
    """Builds the networks for the array of an observation, without its mask."""

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        model_config_dict: dict[str, Any],
    ) -> None:
        array = observation_space[_observation_key(observation_space)]
        super().__init__(array, action_space, model_config_dict)


class SchnapsenMaskedModule(DefaultPPOTorchRLModule):
    """PPO's default networks; an action that the mask forbids has probability 0.

    The mask holds for inference, exploration and training. ``model_config`` is RLlib's own
    (``DefaultModelConfig`` or a dict of its fields), with or without what
    :func:`make_model_config` adds to it: the rules and the observation of the training, so that a
    checkpoint knows them.

    Args:
        observation_space: a dict of an array ``[F]`` and ``action_mask`` ``[A]``.
        action_space: ``Discrete(A)``.
        kwargs: as in RLlib's ``RLModule``.

    Raises:
        ValueError: another observation space.
    """

    def __init__(self, *, observation_space: spaces.Dict, **kwargs: Any) -> None:
        self._key = _observation_key(observation_space)
        kwargs["catalog_class"] = kwargs.get("catalog_class") or MaskedCatalog
        super().__init__(observation_space=observation_space, **kwargs)

    def _without_mask(self, batch: dict[str, Any]) -> dict[str, Any]:
        # The batch itself stays whole: the value function is asked with the same one later.
        return {**batch, Columns.OBS: batch[Columns.OBS][self._key]}

    @staticmethod
    def _masked(outputs: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
        """Set the logits ``float32[N, A]`` of forbidden actions to the least number there is.

        Where nothing is allowed, as in the row that RLlib adds after the end, all are alike and
        finite, so that the loss, which leaves the row out, has finite gradients.
        """
        logits = outputs[Columns.ACTION_DIST_INPUTS]
        allowed = batch[Columns.OBS][_MASK] != 0
        least = torch.finfo(logits.dtype).min
        return {**outputs, Columns.ACTION_DIST_INPUTS: logits.masked_fill(~allowed, least)}

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._masked(super()._forward(self._without_mask(batch), **kwargs), batch)

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._masked(super()._forward_train(self._without_mask(batch), **kwargs), batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """The values of the positions, ``float32[N]``."""
        return super().compute_values(self._without_mask(batch), embeddings)

    def get_metadata(self) -> dict[str, Any]:
        """RLlib's metadata, and what :func:`load_module` has to know to build the networks."""
        config = self.model_config
        settings: dict[str, Any] = (
            asdict(config) if isinstance(config, DefaultModelConfig) else dict(config or {})
        )
        array = self.observation_space[self._key]
        return {
            **super().get_metadata(),
            _SECTION: {
                "format": _FORMAT,
                "package_version": __version__,
                "layout_version": LAYOUT_VERSION,
                "features": array.shape[0],
                "observation_key": self._key,
                _TRAINING: settings.pop(_TRAINING, None),
                # Initial values of weights may be functions; a trained network has no need of them.
                "model_config": {
                    name: value for name, value in settings.items() if _is_plain(value)
                },
            },
        }


def _is_plain(value: object) -> bool:
    """Whether JSON can hold the value."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, cast("list[object]", value)))
    return value is None or isinstance(value, (str, int, float))


# -------------------------------------------------------------------- who plays, and who is trained


def _describe_training(env_config: Mapping[str, Any]) -> dict[str, Any]:
    """The rules (all their fields) and the observation of an environment, as JSON can hold them.

    Raises:
        TypeError: an unknown argument.
        ValueError: arguments that make no environment.
    """
    env = cast("SchnapsenAECEnv", make_env({**env_config, "render_mode": None}).env)
    return {"rules": asdict(env.rules), **asdict(env.layout)}


def make_model_config(
    env_config: Mapping[str, Any], networks: DefaultModelConfig | None = None
) -> dict[str, Any]:
    """The ``model_config`` of a module whose checkpoints name the rules and the observation.

    Args:
        env_config: of the training, see :class:`SchnapsenMultiAgentEnv`.
        networks: RLlib's settings; None takes two layers of 256 for policy and value each.

    Returns:
        The fields of ``networks``, and ``"training"``: the rule set and the observation's
        ``memory``, ``suits`` and ``history``.

    Raises:
        TypeError: an unknown argument of the environment.
        ValueError: arguments that make no environment.
    """
    chosen = networks or DefaultModelConfig(
        fcnet_hiddens=[256, 256], fcnet_activation="relu", vf_share_layers=False
    )
    return {**asdict(chosen), _TRAINING: _describe_training(env_config)}


def _spec(config: AlgorithmConfig, model_config: DefaultModelConfig | None) -> RLModuleSpec:
    if config.env is None:
        raise ValueError(
            "set config.environment(rllib.register(), env_config=...) first: checkpoints record "
            "the rules and the observation of the training"
        )
    return RLModuleSpec(
        module_class=SchnapsenMaskedModule,
        model_config=make_model_config(config.env_config, model_config),
    )


def _check_training(*, algorithm: Any, **kwargs: Any) -> None:  # noqa: ARG001 - RLlib's call
    """Refuse to train with another ``env_config`` than the one that checkpoints would name.

    Raises:
        ValueError: ``env_config`` has changed since a function of this module took it.
    """
    config: AlgorithmConfig = algorithm.config
    played = _describe_training(config.env_config)
    modules = config.rl_module_spec
    specs = modules.rl_module_specs if isinstance(modules, MultiRLModuleSpec) else {}
    for name, spec in cast("dict[str, RLModuleSpec]", specs).items():
        settings = spec.model_config if isinstance(spec.model_config, dict) else {}
        if settings.get(_TRAINING, played) != played:
            raise ValueError(
                f"env_config is not the one that the checkpoints of {name!r} would name: call "
                "use_shared_policy, use_separate_policies or use_past_selves after "
                "config.environment(...)"
            )


def _watch_training(config: AlgorithmConfig) -> None:
    """Add :func:`_check_training` to what runs when an algorithm has been built."""
    before = config.callbacks_on_algorithm_init or []
    others = [each for each in _as_list(before) if each is not _check_training]
    config.callbacks(on_algorithm_init=[*others, _check_training])


def _as_list(callbacks: Any) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]


def _all_to_main(agent_id: Any, episode: Any, **kwargs: Any) -> str:  # noqa: ARG001 - RLlib's call
    return MAIN


def _each_to_itself(agent_id: Any, episode: Any, **kwargs: Any) -> str:  # noqa: ARG001 - likewise
    return agent_id


def use_shared_policy(
    config: _Config, *, model_config: DefaultModelConfig | None = None
) -> _Config:
    """One policy, ``"main"``, plays both seats and learns from both.

    Args:
        config: changed in place; set its ``environment`` first. A check is added to its callbacks
            ``on_algorithm_init``: setting these later takes it away.
        model_config: the networks; None takes two layers of 256 for policy and value each.

    Returns:
        ``config``.

    Raises:
        ValueError: ``config`` has no environment yet, or arguments that make none.
    """
    config.multi_agent(policies={MAIN}, policy_mapping_fn=_all_to_main, policies_to_train=[MAIN])
    config.rl_module(
        rl_module_spec=MultiRLModuleSpec(rl_module_specs={MAIN: _spec(config, model_config)})
    )
    _watch_training(config)
    return config


def use_separate_policies(
    config: _Config, *, model_config: DefaultModelConfig | None = None
) -> _Config:
    """Each seat has a policy of its own, ``"player_0"`` and ``"player_1"``; both learn.

    Args:
        config: as in :func:`use_shared_policy`.
        model_config: likewise.

    Returns:
        ``config``.

    Raises:
        ValueError: as in :func:`use_shared_policy`.
    """
    names = list(AGENTS)
    config.multi_agent(
        policies=set(names), policy_mapping_fn=_each_to_itself, policies_to_train=names
    )
    config.rl_module(
        rl_module_spec=MultiRLModuleSpec(
            rl_module_specs={name: _spec(config, model_config) for name in names}
        )
    )
    _watch_training(config)
    return config


def _past(slot: int) -> str:
    return f"past_{slot}"


def _draw_players(
    agent_id: Any,
    episode: Any,
    *,
    slots: int,
    latest_share: float,
    **kwargs: Any,  # noqa: ARG001 - RLlib's call
) -> str:
    """Who plays for ``agent_id`` in this episode: drawn from its id, so that both seats agree."""
    number = zlib.crc32(str(episode.id_).encode())
    main_seat, number = number % 2, number // 2
    slot, number = number % slots, number // slots
    if AGENTS.index(agent_id) == main_seat or number % 1000 < 1000 * latest_share:
        return MAIN
    return _past(slot)


class PastSelves(RLlibCallback):
    """Keeps frozen copies of ``"main"``, and reports how it does against them.

    The pool has a fixed number of slots, so that workers, learners and checkpoints hold the same
    modules from first to last, and one that restarts lacks none. At first all hold the untrained
    network; every ``every`` iterations the present one takes the place of the oldest.

    Results have ``past_selves``, how many copies were taken so far, and under ``env_runners``
    ``game_points_against_past``, those of ``"main"`` a deal against the pool.

    Args:
        slots: how many past selves the pool holds.
        every: training iterations between two copies.
    """

    def __init__(self, slots: int, every: int) -> None:
        super().__init__()
        self._slots = slots
        self._every = every

    def _keep(self, algorithm: Any, slots: list[str]) -> None:
        """Copy ``"main"`` into the slots, in the learners and in all workers."""
        learners, runners = algorithm.learner_group, algorithm.env_runner_group
        main = learners.get_weights(module_ids=[MAIN])[MAIN]
        state = {"rl_module": dict.fromkeys(slots, main)}
        learners.set_state({"learner": state})
        # Not sync_weights(): it sends the number of the last update along, which workers have seen
        # by now, and they ignore weights that come with an old number.
        sent = ray.put(state)

        def take(runner: Any) -> None:
            runner.set_state(ray.get(sent))

        runners.foreach_env_runner(take)

    def on_algorithm_init(self, *, algorithm: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Fill the pool with the untrained network."""
        self._keep(algorithm, [_past(slot) for slot in range(self._slots)])

    def on_train_result(
        self,
        *,
        algorithm: Any,
        result: dict[str, Any],
        **kwargs: Any,  # noqa: ARG002 - RLlib's call
    ) -> None:
        """Take a copy if it is time."""
        iteration: int = result["training_iteration"]
        copies = iteration // self._every
        if iteration % self._every == 0:
            self._keep(algorithm, [_past((copies - 1) % self._slots)])
        result["past_selves"] = copies

    def on_episode_end(
        self,
        *,
        episode: Any,
        metrics_logger: Any = None,
        prev_episode_chunks: list[Any] | None = None,
        **kwargs: Any,  # noqa: ARG002 - RLlib's call
    ) -> None:
        """Note the result of a game against the pool."""
        mains = [agent for agent in AGENTS if episode.module_for(agent) == MAIN]
        if len(mains) != 1:
            return
        # An agent that never came to move is in no chunk; what it gets is what the other loses.
        points = 0.0
        for chunk in [*(prev_episode_chunks or []), episode]:
            returns = {name: part.get_return() for name, part in chunk.agent_episodes.items()}
            points += returns.get(mains[0], -sum(returns.values()))
        metrics_logger.log_value("game_points_against_past", points, window=500)


def use_past_selves(
    config: _Config,
    *,
    slots: int = 4,
    every: int = 10,
    latest_share: float = 0.5,
    model_config: DefaultModelConfig | None = None,
) -> _Config:
    """Self-play against a pool: ``"main"`` plays itself and frozen copies of its past.

    The copies are called ``"past_0"``, ``"past_1"``, and so on; see :class:`PastSelves`.

    Args:
        config: as in :func:`use_shared_policy`. Its callbacks are set.
        slots: how many past selves there are, at least 1.
        every: training iterations between two copies, at least 1.
        latest_share: the share of games in which ``"main"`` plays both seats, 0 to 1.
        model_config: as in :func:`use_shared_policy`.

    Returns:
        ``config``.

    Raises:
        ValueError: a number outside its range, or as in :func:`use_shared_policy`.
    """
    for name, number in (("slots", slots), ("every", every)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
    if not 0 <= latest_share <= 1:
        raise ValueError(f"latest_share must be from 0 to 1, not {latest_share}")
    names = [MAIN, *(_past(slot) for slot in range(slots))]
    config.multi_agent(
        policies=set(names),
        policy_mapping_fn=functools.partial(_draw_players, slots=slots, latest_share=latest_share),
        policies_to_train=[MAIN],
    )
    config.rl_module(
        rl_module_spec=MultiRLModuleSpec(
            rl_module_specs={name: _spec(config, model_config) for name in names}
        )
    )
    config.callbacks(cast("Any", functools.partial(PastSelves, slots=slots, every=every)))
    _watch_training(config)
    return config


# ---------------------------------------------------------------------------------- checkpoints

#: What a module adds to its ``metadata.json``, and the version of that.
_SECTION: Final = "schnapsen_env"
_FORMAT: Final = 2
#: In a module's ``model_config`` and in its section: the rules and the observation of the training.
_TRAINING: Final = "training"
_METADATA: Final = "metadata.json"
_STATE: Final = "module_state.pkl"
#: Where the modules are, seen from the folder of an Algorithm, a LearnerGroup, a Learner, or from
#: their own.
_MODULE_FOLDERS: Final = (
    "learner_group/learner/rl_module",
    "learner/rl_module",
    "rl_module",
    ".",
)
#: All that a file of arrays calls when it is unpickled. None of it runs code of the file.
_ARRAY_PARTS: Final = frozenset(
    {
        ("collections", "OrderedDict"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.numeric", "_frombuffer"),
    }
)


class RLlibCheckpointError(ValueError):
    """A checkpoint that cannot be read or must not be used; the message says which and why."""


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickles numpy arrays and refuses to import anything else."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or function ``name`` of ``module``, if arrays are made of it."""
        if (module, name) not in _ARRAY_PARTS:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no part of an array")
        return super().find_class(module, name)


def _modules_in(folder: Path) -> dict[str, Path]:
    """The folders of modules in an RLlib checkpoint by name; empty if it is none.

    For the folder of a run of Tune, those of its newest checkpoint.
    """
    for place in _MODULE_FOLDERS:
        found = {
            state.parent.name: state.parent
            for state in sorted((folder / place).glob(f"*/{_STATE}"))
        }
        if found:
            return found
    runs = sorted(folder.glob("checkpoint_*/"))
    return _modules_in(runs[-1]) if runs else {}


def policy_names(path: str | Path) -> list[str]:
    """The names of the policies in a checkpoint of RLlib, sorted.

    Raises:
        RLlibCheckpointError: there is no such checkpoint.
    """
    return list(_find_modules(Path(path)))


def _find_modules(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise RLlibCheckpointError(
            f"there is no folder {folder}: give that of Algorithm.save_to_path(), "
            "on this machine's disk"
        )
    modules = _modules_in(folder)
    if not modules:
        old = (folder / "algorithm_state.pkl").exists() and (folder / "policies").is_dir()
        reason = (
            "is of RLlib's old API stack, whose networks cannot be read: train with the current one"
            if old
            else f"holds no checkpoint of RLlib: there is no {_MODULE_FOLDERS[0]}/NAME/{_STATE}"
        )
        raise RLlibCheckpointError(f"{folder} {reason}")
    return modules


def _choose(modules: dict[str, Path], policy: str | None, folder: Path) -> Path:
    names = ", ".join(modules)
    if policy is not None:
        if policy not in modules:
            raise RLlibCheckpointError(f"{folder} has no policy {policy!r}: it has {names}")
        return modules[policy]
    if len(modules) == 1:
        return next(iter(modules.values()))
    if MAIN not in modules:
        raise RLlibCheckpointError(f"{folder} has several policies, choose one of {names}")
    return modules[MAIN]


def _read_section(folder: Path) -> dict[str, Any]:
    """What our module wrote about itself, checked."""
    path = folder / _METADATA
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RLlibCheckpointError(f"{path} cannot be read: {error}") from error
    content = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    section = content.get(_SECTION)
    if not isinstance(section, dict):
        raise RLlibCheckpointError(
            f"{folder} is not of a SchnapsenMaskedModule, and another module cannot be built "
            "without running code from the checkpoint: load it yourself and evaluate "
            "python:module:Class"
        )
    section = cast("dict[str, Any]", section)
    for name, ours in (("format", _FORMAT), ("layout_version", LAYOUT_VERSION)):
        if section.get(name) != ours:
            raise RLlibCheckpointError(
                f"{path} has {name} {section.get(name)!r}, this version of schnapsen-env reads "
                f"{ours}: train again, or use the schnapsen-env that wrote it "
                f"({section.get('package_version')})"
            )
    kinds = {"features": int, "observation_key": str, "model_config": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(section.get(name), kind)]
    if wrong:
        raise RLlibCheckpointError(f"{path} is damaged: {wrong[0]} is {section.get(wrong[0])!r}")
    if section.get(_TRAINING) is not None:
        _check_description(section[_TRAINING], path)
    return section


def _check_description(training: object, path: Path) -> None:
    """Check the kinds of what :func:`_describe_training` wrote; whether it fits, others ask."""
    known: dict[str, Any] = cast("dict[str, Any]", training) if isinstance(training, dict) else {}
    fine = (
        isinstance(known.get("rules"), dict)
        and known.get("memory") in MEMORIES
        and known.get("suits") in SUIT_ORDERS
        and isinstance(known.get("history"), bool)
    )
    if not fine:
        raise RLlibCheckpointError(f"{path} is damaged: {_TRAINING} is {training!r}")


def add_training(path: str | Path, env_config: Mapping[str, Any]) -> None:
    """Write into a checkpoint which rules and observation it was trained with.

    For checkpoints of a :class:`SchnapsenMaskedModule` that a spec without
    :func:`make_model_config` made. All policies of the checkpoint get the same; one that has a
    description already must have this one.

    Args:
        path: as in :func:`load_module`.
        env_config: of the training.

    Raises:
        RLlibCheckpointError: there is no checkpoint, it is damaged, or it has another description.
        TypeError: an unknown argument of the environment.
        ValueError: arguments that make no environment, or one with other observations.
    """
    training = _describe_training(env_config)
    layout = Layout(**{name: training[name] for name in ("memory", "suits", "history")})
    sections: dict[Path, dict[str, Any]] = {}
    for folder in _find_modules(Path(path)).values():
        section = _read_section(folder)
        if section["features"] != layout.size:
            raise ValueError(
                f"{folder} reads {section['features']} features, and this env_config gives "
                f"{layout.size}"
            )
        if section.get(_TRAINING) not in (None, training):
            raise RLlibCheckpointError(f"{folder} says already that it was trained otherwise")
        sections[folder / _METADATA] = {**section, _TRAINING: training}
    for file, section in sections.items():
        metadata = json.loads(file.read_text(encoding="utf-8"))
        unfinished = file.with_name(f".{file.name}.unfinished")
        unfinished.write_text(json.dumps({**metadata, _SECTION: section}), encoding="utf-8")
        unfinished.replace(file)


def _read_arrays(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            state = _ArrayUnpickler(file).load()
    except Exception as error:  # unpickling damaged bytes can raise anything
        raise RLlibCheckpointError(f"{path} cannot be read: {error}") from error
    arrays = cast("dict[Any, Any]", state) if isinstance(state, dict) else {}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            raise RLlibCheckpointError(f"{path} is no file of weights: {name!r} is no float array")
        if not np.isfinite(array).all():
            raise RLlibCheckpointError(f"{path}: {name} has values that are not finite")
    if not arrays:
        raise RLlibCheckpointError(f"{path} is no file of weights")
    return arrays


def load_module(path: str | Path, policy: str | None = None) -> SchnapsenMaskedModule:
    """A trained module, to play with: no Ray is started, no environment made.

    RLlib writes checkpoints with pickle, and ``Algorithm.from_checkpoint`` or
    ``RLModule.from_checkpoint`` run whatever code a checkpoint contains: load only your own with
    them. This function opens two files of it. ``metadata.json`` says how to build the networks, and
    ``module_state.pkl`` is unpickled by a reader that knows arrays and refuses everything else, so
    that no code of the checkpoint is run.

    Args:
        path: the folder of ``Algorithm.save_to_path()``, of one of its parts that hold modules, or
            of a run of Tune (its newest checkpoint is taken).
        policy: which module; None takes the only one, or ``"main"``.

    Returns:
        The module, without its value function, in evaluation mode. ``forward_inference({"obs":
        {"observation": float32[N, F], "action_mask": int8[N, A]}})["action_dist_inputs"]`` are the
        masked logits ``[N, A]``. ``model_config["training"]`` are the rules and the observation of
        the training, see :func:`make_model_config`; None if the checkpoint does not say.

    Raises:
        RLlibCheckpointError: there is no checkpoint, it is damaged, or it is of another module.
    """
    folder = _choose(_find_modules(Path(path)), policy, Path(path))
    section = _read_section(folder)
    arrays = _read_arrays(folder / _STATE)
    space = spaces.Dict(
        {
            section["observation_key"]: spaces.Box(0.0, 1.0, (section["features"],), np.float32),
            _MASK: spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    )
    try:
        module = SchnapsenMaskedModule(
            observation_space=space,
            action_space=spaces.Discrete(NUM_ACTIONS),
            inference_only=True,
            model_config={**section["model_config"], _TRAINING: section.get(_TRAINING)},
        )
        module.set_state(arrays)
    except Exception as error:
        raise RLlibCheckpointError(
            f"the weights in {folder / _STATE} do not fit the networks that {_METADATA} describes: "
            f"{error}"
        ) from error
    module.eval()
    return module
