"""Stable-Baselines3: the batch of Gymnasium environments as a ``VecEnv``.

Stable-Baselines3 has its own kind of vector environment and asks each row for its action mask by
itself. Here one compiled loop steps all rows, and the masks come from the same step::

    envs = SB3VecEnv(gymnasium.make_vec("schnapsen/Schnapsen-v0", num_envs=64, opponent="random"))
    MaskablePPO("MlpPolicy", envs).learn(100_000)

A single environment, ``gymnasium.make("schnapsen/Schnapsen-v0")``, needs no adapter.

Letters in shapes: N environments, F features of an observation.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (Stable-Baselines3 is optional, so its classes are unknown where the sources are checked.)

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from schnapsen_env.integrations.extras import require
from schnapsen_env.single_agent_vector import SchnapsenOpponentVectorEnv

_VEC_ENV: Final[Any] = require("stable_baselines3.common.vec_env", extra="sb3")

#: The wrappers that keep statistics of episodes, which this environment keeps itself.
_STATISTICS: Final = ("Monitor", "VecMonitor")

Infos = list[dict[str, Any]]
Indices = int | Iterable[int] | None


class SB3VecEnv(_VEC_ENV.VecEnv):
    """N environments against an opponent for Stable-Baselines3 and sb3-contrib.

    The infos of rows in which an episode ended hold what Stable-Baselines3 expects,
    ``"terminal_observation"``, ``"TimeLimit.truncated"`` and ``"episode"`` (return, length and
    time), and ``"game_points"`` and ``"end_reason"``. No ``VecMonitor`` is needed.

    Args:
        envs: what ``gymnasium.make_vec("schnapsen/Schnapsen-v0", ...)`` makes, in its default
            autoreset mode.

    Raises:
        TypeError: ``envs`` is something else.
        ValueError: its autoreset mode is not ``SAME_STEP``.
    """

    def __init__(self, envs: Any) -> None:
        batch: object = getattr(envs, "unwrapped", envs)
        if not isinstance(batch, SchnapsenOpponentVectorEnv):
            raise TypeError(
                "SB3VecEnv takes the vector environment of "
                'gymnasium.make_vec("schnapsen/Schnapsen-v0", num_envs=..., opponent=...), not '
                f"{type(batch).__name__}"
            )
        if envs is not batch:
            raise TypeError(
                f"SB3VecEnv takes the vector environment without wrappers, not "
                f"{type(envs).__name__}: wrap the SB3VecEnv in wrappers of Stable-Baselines3"
            )
        if batch.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP:
            raise ValueError(
                "Stable-Baselines3 begins new episodes in the step in which the old ones end: "
                "leave autoreset_mode of make_vec at SAME_STEP"
            )
        self.envs = batch
        self._masks: npt.NDArray[np.bool_] | None = None
        self._actions: npt.NDArray[np.int64] | None = None
        self._started = time.time()
        super().__init__(batch.num_envs, batch.single_observation_space, batch.single_action_space)

    # ------------------------------------------------------------------------------------ playing

    def reset(self) -> Any:
        """Begin a new episode in every row.

        Seeds of :meth:`seed` and options of :meth:`set_options` apply to this reset only.

        Returns:
            Observations ``float32[N, F]``, or a dict of them and the masks.

        Raises:
            ValueError: the options differ from row to row, or make no deal.
        """
        seeds: list[int | None] = self._seeds
        options: list[dict[str, Any]] = self._options
        self._reset_seeds()
        self._reset_options()
        if any(one != options[0] for one in options):
            raise ValueError("set_options: all rows take the same options; pass one dict")
        seed = None if seeds[0] is None else seeds
        observations, info = self.envs.reset(seed=seed, options=options[0])
        self._masks = info["action_mask"].astype(np.bool_)
        self.reset_infos = [{"seat": seat} for seat in info["seat"].tolist()]
        return observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions, integers ``[N]``, for :meth:`step_wait`."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], Infos]:
        """Take the actions.

        Returns:
            Observations; rewards ``float32[N]``; which episodes ended, ``bool[N]``; an info a row.

        Raises:
            RuntimeError: no actions are waiting.
            Others: as :meth:`~schnapsen_env.SchnapsenOpponentVectorEnv.step`.
        """
        if self._actions is None:
            raise RuntimeError("step_wait() without step_async(): call step(actions)")
        actions, self._actions = self._actions, None
        observations, rewards, dones, _, info = self.envs.step(actions)
        self._masks = info["action_mask"].astype(np.bool_)
        infos: Infos = [{} for _ in range(self.num_envs)]
        if "game_points" in info:
            for row in np.flatnonzero(info["_game_points"]).tolist():
                infos[row]["game_points"] = int(info["game_points"][row])
                infos[row]["end_reason"] = str(info["end_reason"][row])
        elapsed = round(time.time() - self._started, 6)
        for row in np.flatnonzero(dones).tolist():
            episode = info["episode"]
            infos[row]["episode"] = {
                "r": float(episode["r"][row]),
                "l": int(episode["l"][row]),
                "t": elapsed,
            }
            infos[row]["terminal_observation"] = _row(info["final_obs"], row)
            infos[row]["TimeLimit.truncated"] = False
        return observations, rewards.astype(np.float32), dones, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """What the learner may do in each row, ``bool[N, 27]``.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        if self._masks is None:
            return self.envs.action_masks().astype(np.bool_)
        return self._masks

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    # ----------------------------------------------------- what Stable-Baselines3 asks of the rows

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The attribute of the batch, once for each chosen row.

        Raises:
            AttributeError: there is none.
        """
        return [getattr(self.envs, attr_name)] * len(self._rows(indices))

    def set_attr(
        self,
        attr_name: str,
        value: Any,  # noqa: ARG002 - what Stable-Baselines3 passes
        indices: Indices = None,  # noqa: ARG002
    ) -> None:
        """Refuse: settings are fixed when the environments are made.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"{attr_name} cannot be set: the rows of a batch share one compiled program. Make new "
            "environments, or give an opponent object that changes itself"
        )

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """What a method gives for each chosen row.

        Args:
            method_name: ``"action_masks"``, ``"state"`` or ``"render"``.
            *method_args: none; the methods take no arguments.
            indices: rows, or None for all of them.
            **method_kwargs: none.

        Raises:
            AttributeError: another method; rows of a batch have no methods of their own.
            TypeError: arguments were given.
        """
        methods = {
            "action_masks": self.action_masks,
            "state": self.envs.state,
            "render": self.envs.render,
        }
        if method_name not in methods:
            raise AttributeError(
                f"the rows of a batch have no method {method_name}: there are {', '.join(methods)}"
            )
        if method_args or method_kwargs:
            raise TypeError(f"{method_name} takes no arguments")
        given = methods[method_name]()
        return [None if given is None else given[row] for row in self._rows(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Whether the rows do what a wrapper does: keep statistics, yes; everything else, no."""
        keeps = wrapper_class.__name__ in _STATISTICS
        return [keeps] * len(self._rows(indices))

    def _rows(self, indices: Indices) -> list[int]:
        return list(self._get_indices(indices))


def _row(observations: Any, row: int) -> Any:
    """One row of a batch of observations."""
    if isinstance(observations, dict):
        both = cast("dict[str, npt.NDArray[Any]]", observations)
        return {key: values[row] for key, values in both.items()}
    return observations[row]
