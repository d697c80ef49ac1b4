"""PufferLib: self-play in the shape of its native environments, buffers filled in place.

Each seat of each deal is an agent, with a row of its own in flat buffers, yours or new ones::

    env = SchnapsenPufferEnv(1024, rules="pagat_auto")
    env.reset(seed=0)
    while True:
        actions = policy(env.observations)  # int[2N], the action mask is in the observation
        env.step(actions)  # observations, rewards, terminals, truncations and masks are filled

Why both seats, though only one of them moves: PufferLib's trainer takes the next observation of a
row for what follows the last one, for the same player. In a row for whoever is to move, the next
player would often be the other one, and the trainer knows of no change of sign. In a row for each
seat it is always the same player, so its targets are right as they are.

Nothing here imports PufferLib, which many systems cannot install; its interface is that of 3.0.

Letters in shapes: N deals, F features of an observation, A = 27 actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.batch import show_both
from schnapsen_env.kept_state import form_of
from schnapsen_env.vector import SchnapsenVectorEnv

__all__ = ["BUFFERS", "SchnapsenPufferEnv"]

#: The arrays that PufferLib shares with an environment.
BUFFERS: Final = ("observations", "rewards", "terminals", "truncations", "masks", "actions")

Infos = list[dict[str, float]]
Flags = npt.NDArray[np.bool_]
Step = tuple[npt.NDArray[Any], npt.NDArray[np.float32], Flags, Flags, Infos]


class SchnapsenPufferEnv:
    """N deals or matches as 2N agents; agent ``2 * deal + seat`` has the row of that number.

    A row of ``observations`` holds the F features that this seat sees and then its action mask,
    since PufferLib has no other place for it. The seat that is not to move has a mask of zeros and
    ``masks`` False; its action is ignored. Cut a row with :attr:`num_features`.

    Deals are those of :class:`~schnapsen_env.SchnapsenVectorEnv` with the same arguments and seed.
    A new episode begins in the step in which the old one ends, as PufferLib wants it: ``terminals``
    is True and ``rewards`` are given for both seats, and ``observations`` are of the new episode.

    Args:
        num_envs: N.
        buf: the arrays to fill, by the names of :data:`BUFFERS`: ``observations``
            ``[2N, F + A]``, ``rewards`` ``float32[2N]``, ``terminals``, ``truncations`` and
            ``masks`` ``bool[2N]``, ``actions`` ``int32[2N]``. None makes them.
        seed: for the first reset, if that has none; None takes one from the system.
        dtype: ``np.uint8`` for whole numbers, PufferLib's habit, which the policy multiplies by
            :attr:`scale`; ``np.float32`` for numbers in ``[0, 1]``.
        **settings: as for :class:`~schnapsen_env.SchnapsenVectorEnv`, such as ``rules``,
            ``episode``, ``reward``, ``illegal_action``, ``suits`` or ``num_threads``.

    Raises:
        TypeError: a setting that fixes how this class uses the batch environment.
        ValueError: as the batch environment, or a buffer that is missing or does not fit; the
            message names it.
    """

    #: For PufferLib: this is no wrapper around another environment,
    emulated: Final = False
    #: and it resets itself.
    done: Final = False

    def __init__(
        self,
        num_envs: int = 1024,
        buf: Mapping[str, npt.NDArray[Any]] | None = None,
        seed: int | None = None,
        *,
        dtype: npt.DTypeLike = np.uint8,
        **settings: Any,
    ) -> None:
        for name in ("autoreset_mode", "copy", "buffers", "final_observation"):
            if name in settings:
                raise TypeError(f"{name} is set by SchnapsenPufferEnv: leave it out")
        #: The batch environment that plays the deals.
        self.envs = SchnapsenVectorEnv(
            num_envs, dtype=dtype, copy=False, final_observation=False, **settings
        )
        layout = self.envs.layout
        is_scaled = self.envs.dtype == np.float32
        #: F, where the action mask of a row begins.
        self.num_features = layout.size
        #: ``float32[F]``: features times this are in ``[0, 1]``.
        self.scale: npt.NDArray[np.float32] = (
            np.ones(layout.size, np.float32) if is_scaled else layout.scale.astype(np.float32)
        )
        self.num_agents = 2 * self.envs.num_envs
        self.single_observation_space = _flat_space(self.envs.single_observation_space)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.agent_ids = np.arange(self.num_agents)
        self._layout = (
            layout.memory_code,
            layout.suits_code,
            layout.history_code,
            int(is_scaled),
        )
        self._no_mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        self._movers = np.zeros(self.envs.num_envs, dtype=np.int64)
        self._seed = seed
        self.infos: Infos = []
        own = self._new_buffers()
        given = own if buf is None else _check_buffers(buf, own)
        self.observations: npt.NDArray[Any] = given["observations"]
        self.rewards: npt.NDArray[np.float32] = given["rewards"]
        self.terminals: Flags = given["terminals"]
        self.truncations: Flags = given["truncations"]
        self.masks: Flags = given["masks"]
        self.actions: npt.NDArray[np.int32] = given["actions"]

    def _new_buffers(self) -> dict[str, npt.NDArray[Any]]:
        shape = (self.num_agents, self.num_features + NUM_ACTIONS)
        return {
            "observations": np.zeros(shape, dtype=self.envs.dtype),
            "rewards": np.zeros(self.num_agents, dtype=np.float32),
            "terminals": np.zeros(self.num_agents, dtype=np.bool_),
            "truncations": np.zeros(self.num_agents, dtype=np.bool_),
            "masks": np.zeros(self.num_agents, dtype=np.bool_),
            "actions": np.zeros(self.num_agents, dtype=np.int32),
        }

    # The spaces of all agents hold bounds for every number, so they are made when they are wanted.

    @property
    def observation_space(self) -> spaces.Box:
        """The space of ``observations``."""
        one, times = self.single_observation_space, (self.num_agents, 1)
        low, high = np.tile(one.low, times), np.tile(one.high, times)
        return spaces.Box(low, high, dtype=self.envs.dtype.type)

    @property
    def action_space(self) -> spaces.MultiDiscrete:
        """The space of ``actions``."""
        return spaces.MultiDiscrete([NUM_ACTIONS] * self.num_agents)

    @property
    def driver_env(self) -> SchnapsenPufferEnv:
        """This environment, where PufferLib asks a group for the first of its kind."""
        return self

    @property
    def agents_per_batch(self) -> int:
        """2N: every step is of all agents."""
        return self.num_agents

    @property
    def agent_per_batch(self) -> int:
        """2N, by the other name that PufferLib has for it."""
        return self.num_agents

    def reset(self, seed: int | None = None) -> tuple[npt.NDArray[Any], Infos]:
        """Begin a new episode in every deal.

        Args:
            seed: deal ``i`` gets ``seed + i``; None lets the random streams go on, or, in a first
                reset, takes the seed of the constructor.

        Returns:
            The buffer of observations and an empty list.
        """
        if seed is None:
            seed = self._seed
        self._seed = None
        observations, info = self.envs.reset(seed=seed)
        for array in (self.rewards, self.terminals, self.truncations):
            array[:] = 0
        self._show(observations, info)
        return self.observations, []

    def step(self, actions: npt.ArrayLike) -> Step:
        """Take the actions of the agents that are to move.

        Args:
            actions: integers ``[2N]``. An illegal one is treated as ``illegal_action`` says.

        Returns:
            The buffers ``observations``, ``rewards``, ``terminals`` and ``truncations`` (all
            False), the same arrays in every step; and a list that is empty, or, if episodes ended,
            holds a dict of their number, ``episodes``, and of means over them:
            ``episode_length``, ``illegal_action``, the share that one ended, ``reward_seat_0``, the
            return of seat 0, and ``game_points``, what the winner of the last deal won.

        Raises:
            IllegalActionError, TypeError: as :meth:`~schnapsen_env.SchnapsenVectorEnv.step`;
                the row it names is that of the deal. Nothing has changed.
            ValueError: not one action an agent.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        given = np.asarray(actions)
        if given.shape != (self.num_agents,):
            raise ValueError(
                f"actions: one for each of the {self.num_agents} agents, of either seat, not an "
                f"array of shape {given.shape}"
            )
        observations, rewards, terminations, _, info = self.envs.step(given[self._movers])
        self.actions[:] = given
        self.rewards.reshape(-1, 2)[:] = rewards
        self.terminals.reshape(-1, 2)[:] = terminations[:, None]
        self._show(observations, info)
        infos = [_summary(info)] if "episode" in info else []
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def _show(self, observations: dict[str, npt.NDArray[Any]], info: dict[str, Any]) -> None:
        """Fill ``observations`` and ``masks``."""
        to_play = info["to_play"]
        np.multiply(np.arange(self.envs.num_envs), 2, out=self._movers)
        self._movers += to_play
        show_both(
            self.envs.records,
            self.envs.rules.codes(),
            self._layout,
            to_play,
            observations["observation"],
            observations["action_mask"],
            self.observations,
            self.masks,
            self._no_mask,
        )

    # ---------------------------------------------------------- the same in two halves, and the end

    def async_reset(self, seed: int | None = None) -> None:
        """:meth:`reset`, whose outcome :meth:`recv` returns."""
        _, self.infos = self.reset(seed)

    def send(self, actions: npt.ArrayLike) -> None:
        """:meth:`step`, whose outcome :meth:`recv` returns."""
        self.infos = self.step(actions)[4]

    def recv(
        self,
    ) -> tuple[
        npt.NDArray[Any], npt.NDArray[np.float32], Flags, Flags, Infos, npt.NDArray[np.int64], Flags
    ]:
        """Observations, rewards, terminals, truncations, infos, ids of the agents, and masks."""
        return (
            self.observations,
            self.rewards,
            self.terminals,
            self.truncations,
            self.infos,
            self.agent_ids,
            self.masks,
        )

    def close(self) -> None:
        """End the threads of the batch environment."""
        self.envs.close()


def _flat_space(space: Any) -> spaces.Box:
    """The space of a row, features and mask behind each other, from the space of a dict of both."""
    features: spaces.Box = space["observation"]
    low = np.zeros(NUM_ACTIONS, features.dtype)
    return spaces.Box(
        np.concatenate([features.low, low]),
        np.concatenate([features.high, low + 1]),
        dtype=features.dtype.type,
    )


def _check_buffers(
    buf: Mapping[str, npt.NDArray[Any]], wanted: Mapping[str, npt.NDArray[Any]]
) -> Mapping[str, npt.NDArray[Any]]:
    """``buf``, if its arrays are such as ``wanted``.

    Raises:
        ValueError: one is missing or does not fit.
    """
    for name in BUFFERS:
        if name not in buf:
            raise ValueError(f"buf: {name} is missing; it has {', '.join(BUFFERS)}")
        array: object = buf[name]
        form = form_of(wanted[name])
        if not isinstance(array, np.ndarray) or form_of(array) != form:
            found = form_of(array) if isinstance(array, np.ndarray) else repr(array)
            raise ValueError(f"buf: {name} is {form}, not {found}")
        if not array.flags.writeable or not array.flags.c_contiguous:
            raise ValueError(f"buf: {name} is read-only or has gaps")
    return buf


def _summary(info: Mapping[str, Any]) -> dict[str, float]:
    """Means over the episodes that ended, for a logger."""
    ended, episode = info["_episode"], info["episode"]
    illegal = info.get("illegal_action")
    return {
        "episodes": float(ended.sum()),
        "episode_length": float(episode["l"][ended].mean()),
        "reward_seat_0": float(episode["r"][ended, 0].mean()),
        "game_points": float(episode["game_points"][ended].max(axis=1).mean()),
        "illegal_action": 0.0 if illegal is None else float(illegal[ended].mean()),
    }
