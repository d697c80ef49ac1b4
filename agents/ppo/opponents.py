"""Who decides in training where the learning policy does not: a pool of opponents, random openings.

A policy that only ever meets itself can go round in circles, and it never sees the mistakes that
others make. In a share of the deals one seat is therefore played by a member of a pool: an agent
such as the heuristic player, or an earlier self. And in a share of the deals the first few actions
are drawn at random, so that the policy also learns from positions that it would never bring about.

Neither kind of decision is learnt from, see ``learns`` in :mod:`agents.ppo.gae`.

Letters: ``N`` deals.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.base import Agent, load
from agents.evaluation.arena import Player, ask
from agents.ppo.agent import PPOAgent
from agents.ppo.checkpoint import Weights
from agents.ppo.config import PAST, Config
from agents.ppo.errors import ConfigError
from agents.renaming import name_forth
from schnapsen_env.actions import CLAIM
from schnapsen_env.engine import record as r
from schnapsen_env.observation import Layout
from schnapsen_env.opponents import RandomOpponent
from schnapsen_env.rules import resolve_rules

#: The most actions that open a deal at random: about a third of a deal.
LONGEST_OPENING: Final = 12


class Pool:
    """Takes decisions out of the learning policy's hands.

    The deals of the pool are the first rows of the batch, and deal i is played by opponent ``i mod
    k`` of the k opponents, at either seat in turn. Of the earlier selves one is drawn for each
    iteration; it draws its actions from its policy, as it did when it was learning.

    Args:
        config: the run: rules, numbers of deals, opponents, openings.
        layout: the observation that the network reads.
        seed: where all chance of the pool starts.

    Raises:
        ConfigError: an opponent that cannot be loaded.
    """

    def __init__(self, config: Config, layout: Layout, seed: int) -> None:
        self.config = config
        self.layout = layout
        self.seed = seed
        self.codes = resolve_rules(config.rules).codes()
        #: Earlier selves, the oldest first.
        self.past: list[Weights] = []
        #: ``int64[N]``, random actions that are still to come in the running deals.
        self.opening = np.zeros(config.num_envs, dtype=np.int64)
        self._players = [None if spec == PAST else self._load(spec) for spec in config.opponents]
        rows = np.arange(config.num_envs)
        kinds = max(len(config.opponents), 1)
        share = config.opponent_share if config.opponents else 0.0
        with_opponent = rows < round(share * config.num_envs)
        #: ``int64[N]``, who plays: an index of ``opponents``, or -1 for the policy alone.
        self.opponent_of = np.where(with_opponent, rows % kinds, -1)
        #: ``int64[N]``, the seat of that opponent.
        self.seat_of = rows // kinds % 2
        self.begin(0)

    def _load(self, spec: str) -> Player:
        try:
            return Player("of the pool", spec, load(spec, self.config.rules))
        except (ValueError, ModuleNotFoundError) as error:
            raise ConfigError(f"opponents: {error}") from error

    def begin(self, iteration: int) -> None:
        """Start the chance of an iteration anew, so that a resumed run draws the same.

        Args:
            iteration: counted from 1; 0 is for what is drawn before the first.
        """
        words = np.random.SeedSequence([self.seed, iteration]).generate_state(
            3 + len(self._players)
        )
        own, openings, past, *agents = (int(word) for word in words)
        self._rng = np.random.default_rng(own)
        self._random = RandomOpponent(openings)
        for seed, player in zip(agents, self._players, strict=True):
            if player is not None:
                player.reset(seed)
        #: The earlier self of this iteration; None as long as there is none.
        self._self: Player | None = None
        if self.past and PAST in self.config.opponents:
            weights = self.past[self._rng.integers(len(self.past))]
            agent: Agent = PPOAgent(weights, self.layout, sample=True, seed=past)
            self._self = Player("of the pool", PAST, agent)

    def remember(self, weights: Weights) -> None:
        """Add an earlier self; while there are too many, one of them goes, but not the newest."""
        self.past.append(weights)
        while len(self.past) > self.config.past_selves:
            del self.past[self._rng.integers(len(self.past) - 1)]

    def open_deals(self, new: npt.NDArray[np.bool_]) -> None:
        """Draw how many random actions open the deals that have just begun, ``bool[N]``."""
        count = int(new.sum())
        opened = self._rng.random(count) < self.config.random_openings
        self.opening[new] = opened * self._rng.integers(1, LONGEST_OPENING + 1, count)

    def leaves(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether the pool leaves the next decision of each deal to the policy, ``bool[N]``.

        Args:
            records: ``int64[N, RECORD_SIZE]``, the deals.
        """
        return (self.opening == 0) & ~self._is_opponents_turn(records)

    def _is_opponents_turn(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether an opponent sits where the next decision is due."""
        present = [self._player(number) is not None for number in range(len(self._players))]
        # The index -1, for nobody, is that of the last entry.
        return np.array([*present, False])[self.opponent_of] & (
            records[:, r.TO_MOVE] == self.seat_of
        )

    def _player(self, number: int) -> Player | None:
        """Who plays as opponent ``number`` in this iteration; None while there is no past."""
        return self._players[number] or self._self

    def take_over(
        self,
        records: npt.NDArray[np.int64],
        masks: npt.NDArray[np.int8],
        actions: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Replace the actions of all decisions that are not the policy's.

        Args:
            records: ``int64[N, RECORD_SIZE]``, the deals.
            masks: ``int8[N, 27]``, with the suits as the network calls them.
            actions: ``int64[N]``, likewise; changed in place.

        Returns:
            ``bool[N]``, whether the decision is still the policy's.

        Raises:
            AgentError: an opponent fails, or chooses an illegal action.
        """
        left = self.leaves(records)
        opening = self.opening > 0
        asked = ~left & ~opening
        for number in range(len(self._players)):
            player = self._player(number)
            rows = np.flatnonzero(asked & (self.opponent_of == number))
            if player is not None and rows.size:
                answers = ask(player, records, self.codes, rows)
                name_forth(records, self.codes, rows, self.layout.suits_code, answers)
                actions[rows] = answers
        if opening.any():
            legal = masks[opening].copy()
            # A careless claim only ends the deal. Who may claim may play a card as well.
            legal[:, CLAIM] = 0
            # Chance has no need of names: a legal action by either name is as likely.
            actions[opening] = self._random.act_batch(legal, legal)
            self.opening[opening] -= 1
        return left

    def state(self) -> dict[str, Any]:
        """What a continued run needs, as tensors."""
        past = [
            {name: torch.as_tensor(array) for name, array in weights.items()}
            for weights in self.past
        ]
        return {"past": past, "opening": torch.as_tensor(self.opening.copy())}

    def restore(self, state: dict[str, Any], network: Weights) -> None:
        """Go on from what :meth:`state` gave.

        Args:
            state: the state.
            network: the weights of the learning policy, which those of earlier selves must be like.

        Raises:
            ValueError: it is of another number of deals or of another network.
        """
        past: list[dict[str, Tensor]] = state["past"]
        opening: npt.NDArray[np.int64] = state["opening"].numpy()
        if opening.shape != self.opening.shape:
            raise ValueError(f"{opening.shape} random openings do not fit {self.opening.shape}")
        shapes = {name: array.shape for name, array in network.items()}
        for weights in past:
            if {name: tuple(tensor.shape) for name, tensor in weights.items()} != shapes:
                raise ValueError("an earlier self is of another network")
        self.past = [{name: t.numpy() for name, t in weights.items()} for weights in past]
        self.opening[:] = opening
