"""TorchRL: the batch environment as a native ``EnvBase`` for self-play.

One policy, or one a seat, plays both seats of N deals. A step gives the reward of the player who
has just moved and the observation of the player to move, who may be the same one. TorchRL's own
value estimators know nothing of two players; :func:`turn_aware_advantages` takes their place::

    env = SchnapsenSelfPlayEnv(256, rules="pagat_auto")
    rollout = env.rollout(32, policy, break_when_any_done=False)
    turn_aware_advantages(rollout, last_value)

Letters in shapes: N deals, T steps, F features of an observation.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (TorchRL is optional, so its classes are unknown where the sources are checked.)

from __future__ import annotations

from typing import Any, Final

import numpy as np
from gymnasium.vector import AutoresetMode

from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.integrations.extras import require
from schnapsen_env.vector import SchnapsenVectorEnv

_TORCH: Final[Any] = require("torch", extra="torchrl")
_TENSORDICT: Final[Any] = require("tensordict", extra="torchrl")
_DATA: Final[Any] = require("torchrl.data", extra="torchrl")
_ENVS: Final[Any] = require("torchrl.envs", extra="torchrl")

TensorDict = Any
Tensor = Any


class SchnapsenSelfPlayEnv(_ENVS.EnvBase):
    """N deals or matches at once, both seats by the caller, of batch size ``[N]``.

    Entries: ``"observation"`` ``float32[N, F]``, ``"action_mask"`` ``bool[N, 27]`` and
    ``"to_play"`` ``int64[N, 1]``, the seat to move, whose observation and mask these are;
    ``"action"`` ``int64[N]``; and, under ``"next"``, ``"reward"`` ``float32[N, 1]``, of the player
    who has moved. What one player wins the other loses. Where an episode is over, the mask is all
    ones.

    Collectors and rollouts reset the rows that are done, as TorchRL does with all environments.
    ``env.append_transform(ActionMask())`` makes ``env.rand_action`` keep to the mask.

    Args:
        num_envs: N.
        device: where the entries go; the deals themselves are played on the CPU.
        **settings: as for :class:`~schnapsen_env.SchnapsenVectorEnv`, such as ``rules``,
            ``episode``, ``reward``, ``suits`` or ``num_threads``.

    Raises:
        TypeError: a setting that fixes how this class uses the batch environment.
        ValueError: as the batch environment.
    """

    def __init__(self, num_envs: int, *, device: Any = "cpu", **settings: Any) -> None:
        for name in ("autoreset_mode", "dtype", "copy", "buffers", "final_observation"):
            if name in settings:
                raise TypeError(f"{name} is set by SchnapsenSelfPlayEnv: leave it out")
        #: The batch environment. TorchRL resets the rows that are over, so it does not itself.
        self.envs = SchnapsenVectorEnv(
            num_envs, autoreset_mode=AutoresetMode.DISABLED, copy=True, **settings
        )
        super().__init__(device=device, batch_size=_TORCH.Size([self.envs.num_envs]))
        self._next_seed: int | None = None
        self._to_play = np.zeros(num_envs, dtype=np.int64)
        self._make_specs()

    def _make_specs(self) -> None:
        n, torch = self.envs.num_envs, _TORCH
        place: dict[str, Any] = {"device": self.device}

        def flag(*shape: int) -> Any:
            return _DATA.Categorical(2, shape=torch.Size(shape), dtype=torch.bool, **place)

        self.observation_spec = _DATA.Composite(
            observation=_DATA.Bounded(
                0.0,
                1.0,
                shape=torch.Size([n, self.envs.layout.size]),
                dtype=torch.float32,
                **place,
            ),
            action_mask=flag(n, NUM_ACTIONS),
            to_play=_DATA.Categorical(2, shape=torch.Size([n, 1]), dtype=torch.int64, **place),
            shape=self.batch_size,
            **place,
        )
        self.action_spec = _DATA.Categorical(
            NUM_ACTIONS, shape=self.batch_size, dtype=torch.int64, **place
        )
        self.reward_spec = _DATA.Unbounded(shape=torch.Size([n, 1]), dtype=torch.float32, **place)
        self.done_spec = _DATA.Composite(
            done=flag(n, 1),
            terminated=flag(n, 1),
            truncated=flag(n, 1),
            shape=self.batch_size,
            **place,
        )

    # TorchRL calls these three.

    def _set_seed(self, seed: int | None) -> None:
        """Row ``i`` gets ``seed + i`` at the next reset of all rows."""
        self._next_seed = seed

    def _reset(self, tensordict: TensorDict | None = None, **options: Any) -> TensorDict:
        """Begin new episodes in the rows of ``"_reset"``, or in all of them."""
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        if chosen is not None and not chosen.all():
            rows = chosen.reshape(self.envs.num_envs).cpu().numpy()
            seen, info = self.envs.reset(options={**options, "reset_mask": rows})
        else:
            seed, self._next_seed = self._next_seed, None
            seen, info = self.envs.reset(seed=seed, options=options)
        return self._entries(seen, info, np.zeros(self.envs.num_envs, dtype=np.bool_))

    def _step(self, tensordict: TensorDict) -> TensorDict:
        """Take ``"action"`` in each row.

        Raises:
            gymnasium.error.ResetNeeded: a row is over and was not reset.
        """
        movers = self._to_play
        actions = tensordict.get("action").reshape(self.envs.num_envs).cpu().numpy()
        seen, rewards, terminations, _, info = self.envs.step(actions)
        entries = self._entries(seen, info, terminations)
        own = np.take_along_axis(rewards, movers[:, None], axis=1)
        return entries.set("reward", _TORCH.from_numpy(own).to(self.device))

    def _entries(self, seen: Any, info: Any, over: Any) -> TensorDict:
        """What is seen and whether it is the end, as one TensorDict."""
        self._to_play = info["to_play"].copy()  # apart from what callers get to hold
        torch, n = _TORCH, self.envs.num_envs
        done = torch.from_numpy(over.copy()).reshape(n, 1)
        return _TENSORDICT.TensorDict(
            {
                "observation": torch.from_numpy(seen["observation"]),
                "action_mask": torch.from_numpy(seen["action_mask"]).bool(),
                "to_play": torch.from_numpy(info["to_play"]).reshape(n, 1),
                "done": done,
                "terminated": done.clone(),
                "truncated": torch.zeros_like(done),
            },
            batch_size=self.batch_size,
        ).to(self.device)


def turn_aware_advantages(
    rollout: TensorDict, last_value: Tensor, gamma: float = 1.0, gae_lambda: float = 0.95
) -> TensorDict:
    """Add generalised advantages and value targets for two players who do not strictly alternate.

    TorchRL's ``GAE`` takes each step's successor for one of the same player. Here the value of the
    next position counts with its sign changed where the next player is the other one, and only
    there, and nothing counts beyond the end of an episode.

    Args:
        rollout: of batch size ``[N, T]``, with ``"state_value"`` ``float32[N, T, 1]``, the value of
            each observation to the player to move; ``"advantage"`` and ``"value_target"``, of the
            same shape, are added to it.
        last_value: ``float32[N, 1]``, the same of the observations after the last step.
        gamma: discount.
        gae_lambda: decay of the estimate.

    Returns:
        ``rollout``.
    """
    torch = _TORCH
    values, rewards = rollout.get("state_value"), rollout.get(("next", "reward"))
    to_play, next_to_play = rollout.get("to_play"), rollout.get(("next", "to_play"))
    same = to_play == next_to_play
    carry = torch.where(same, 1.0, -1.0) * gamma * ~rollout.get(("next", "done"))
    advantages = torch.zeros_like(rewards)
    last, next_value = torch.zeros_like(last_value), last_value
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + carry[:, t] * next_value - values[:, t]
        last = delta + carry[:, t] * gae_lambda * last
        advantages[:, t] = last
        next_value = values[:, t]
    return rollout.update({"advantage": advantages, "value_target": advantages + values})
