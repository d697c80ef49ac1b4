"""Self-play: one policy plays both seats of N deals for T steps.

Letters: ``T`` steps, ``N`` deals, ``F`` features of an observation, ``A = 27`` actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from agents.ppo.checkpoint import Weights
from agents.ppo.config import Config
from agents.ppo.masking import MaskedPolicy
from agents.ppo.network import PolicyValueNet, StateCritic
from agents.ppo.opponents import Pool
from schnapsen_env.actions import CLOSE, EXCHANGE, FIRST_DECLARE, NUM_ACTIONS
from schnapsen_env.cards import KING, NUM_RANKS, NUM_SUITS, QUEEN
from schnapsen_env.engine import record as r
from schnapsen_env.hidden import HIDDEN_SIZE, write_hidden
from schnapsen_env.solver import new_workspace, solve_exhausted
from schnapsen_env.vector import SchnapsenVectorEnv

#: The cards of each suit's marriage, ``[4, 2]``.
_MARRIAGE_CARDS: Final = np.array(
    [[NUM_RANKS * suit + QUEEN, NUM_RANKS * suit + KING] for suit in range(NUM_SUITS)]
)
#: Enough for endgames of five cards.
_ENDGAME_TABLE_BITS: Final = 10


@dataclass
class Rollout:
    """What N deals gave in T steps, on the network's device. One step is one decision.

    Observations are kept as whole numbers: 2,048 deals by 32 steps take 16 MB, as float32 62 MB.
    """

    #: ``uint8[T + 1, N, F]``, of the player to move; the last row is the bootstrap's.
    observations: Tensor
    #: ``int8[T, N, A]``
    masks: Tensor
    #: ``int64[T, N]``, drawn from the policy.
    actions: Tensor
    #: ``float32[T, N]``, of those actions at that time.
    log_probs: Tensor
    #: ``float32[T, N]``, game points that the step brought to the player who made it.
    rewards: Tensor
    #: ``bool[T, N]``, whether the step ended its deal.
    dones: Tensor
    #: ``bool[T + 1, N]``, whether the policy takes the decision, and not an opponent or chance.
    learns: Tensor
    #: ``float32[T + 1, N]``, of the player to move.
    values: Tensor
    #: ``bool[T + 1, N]``, whether a value is not an estimate but the true one.
    exact: Tensor
    #: ``int8[T + 1, N]``, the seat to move.
    to_play: Tensor
    #: ``uint8[T + 1, N, H]``, what the player to move cannot see; H = 0 without a critic for it.
    hidden: Tensor

    @classmethod
    def empty(
        cls, steps: int, deals: int, features: int, hidden: int, device: torch.device
    ) -> Rollout:
        """A rollout to be filled."""

        def new(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            observations=new(steps + 1, deals, features, dtype=torch.uint8),
            masks=new(steps, deals, NUM_ACTIONS, dtype=torch.int8),
            actions=new(steps, deals, dtype=torch.int64),
            log_probs=new(steps, deals, dtype=torch.float32),
            rewards=new(steps, deals, dtype=torch.float32),
            dones=new(steps, deals, dtype=torch.bool),
            learns=new(steps + 1, deals, dtype=torch.bool),
            values=new(steps + 1, deals, dtype=torch.float32),
            exact=new(steps + 1, deals, dtype=torch.bool),
            to_play=new(steps + 1, deals, dtype=torch.int8),
            hidden=new(steps + 1, deals, hidden, dtype=torch.uint8),
        )


def led_undeclared(masks: npt.NDArray[Any], actions: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each action leads a king or queen whose marriage could have been declared.

    Args:
        masks: ``int8[B, A]``.
        actions: ``int64[B]``.
    """
    declarable = masks[:, FIRST_DECLARE : FIRST_DECLARE + NUM_SUITS] != 0
    suits = np.minimum(actions // NUM_RANKS, NUM_SUITS - 1)
    from_pair = (_MARRIAGE_CARDS[suits] == actions[:, None]).any(axis=1)
    return from_pair & declarable[np.arange(len(actions)), suits]


class PlayCounts:
    """How often the players did what a learner easily unlearns; both seats together."""

    def __init__(self) -> None:
        self.deals = 0
        self.steps = 0
        self.closes = 0
        self.closes_ended = 0
        self.closes_won = 0
        self.exchanges = 0
        self.declarations = 0
        self.undeclared_leads = 0

    def count_actions(self, masks: npt.NDArray[Any], actions: npt.NDArray[Any]) -> None:
        """Count one step, whoever took it: ``int8[N, A]`` and ``int64[N]``."""
        self.steps += len(actions)
        self.closes += int((actions == CLOSE).sum())
        self.exchanges += int((actions == EXCHANGE).sum())
        self.declarations += int(((actions >= FIRST_DECLARE) & (actions < EXCHANGE)).sum())
        self.undeclared_leads += int(led_undeclared(masks, actions).sum())

    def count_deals(
        self,
        dones: npt.NDArray[np.bool_],
        closers: npt.NDArray[np.int64],
        rewards: npt.NDArray[np.float32],
    ) -> None:
        """Count the deals that ended: ``bool[N]``, ``int64[N]`` (-1: nobody), ``float32[N, 2]``."""
        self.deals += int(dones.sum())
        closed = np.flatnonzero(dones & (closers >= 0))
        self.closes_ended += len(closed)
        self.closes_won += int((rewards[closed, closers[closed]] > 0).sum())

    def rates(self) -> dict[str, float]:
        """Figures a player and deal, so that 0.5 closings would be one in every deal."""
        hands = max(2 * self.deals, 1)
        figures = {
            "closing_rate": self.closes / hands,
            "exchange_rate": self.exchanges / hands,
            "marriage_rate": self.declarations / hands,
            "undeclared_lead_rate": self.undeclared_leads / hands,
            "deal_length": self.steps / max(self.deals, 1),
        }
        if self.closes_ended:
            figures["closing_success"] = self.closes_won / self.closes_ended
        return figures


class Collector:
    """Plays deals with the network and writes them down.

    Args:
        config: rule set, suits, numbers of deals and steps, opponents.
        seed: of the cards.
        pool_seed: of the opponents and the random openings.
        generator: draws the actions; a CPU generator, whatever the device is.
        device: where the network is, and the rollout is kept.
    """

    def __init__(
        self,
        config: Config,
        seed: int,
        pool_seed: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self.env = SchnapsenVectorEnv(
            config.num_envs,
            rules=config.rules,
            suits=config.suits,
            dtype=np.uint8,
            autoreset_mode=AutoresetMode.SAME_STEP,
            copy=False,
            final_observation=False,
        )
        self.num_steps = config.num_steps
        self.generator = generator
        self.device = device
        self.sees_all = config.critic == "state"
        self.solves = config.exact_endgames
        self.rollout = Rollout.empty(
            config.num_steps,
            config.num_envs,
            self.env.layout.size,
            HIDDEN_SIZE if self.sees_all else 0,
            device,
        )
        self.pool = Pool(config, self.env.layout, pool_seed)
        self.codes = self.env.rules.codes()
        self.workspace = new_workspace(_ENDGAME_TABLE_BITS)
        self.env.reset(seed=seed)
        self.pool.open_deals(np.ones(config.num_envs, dtype=np.bool_))

    @torch.inference_mode()
    def collect(
        self, network: PolicyValueNet, critic: StateCritic | None = None
    ) -> tuple[Rollout, PlayCounts]:
        """Play T steps in every deal, going on where the last call stopped.

        Args:
            network: chooses the actions.
            critic: estimates the values in the network's place.

        Returns:
            The rollout, whose arrays the next call fills anew, and counts of what was played.

        Raises:
            AgentError: an opponent fails.
        """
        rollout, counts = self.rollout, PlayCounts()
        obs, info = self.env.observe()
        for t in range(self.num_steps):
            self._note_turn(t, obs, info)
            logits, values = network(rollout.observations[t])
            self._note_values(t, values, critic)
            policy = MaskedPolicy(logits, rollout.masks[t])
            rollout.actions[t] = actions = policy.sample(self.generator)
            rollout.log_probs[t] = policy.log_prob(actions)

            chosen = actions.cpu().numpy().copy()
            learns = self.pool.take_over(self.env.records, obs["action_mask"], chosen)
            rollout.learns[t] = torch.as_tensor(learns)
            movers = info["to_play"].copy()
            closers = self.env.records[:, r.CLOSED_BY].copy()
            counts.count_actions(obs["action_mask"], chosen)
            # A deal that ends is dealt anew within the step: the next row is of another deal.
            obs, rewards, terminations, _, info = self.env.step(chosen)
            counts.count_deals(terminations, closers, rewards)
            self.pool.open_deals(terminations)
            own = rewards[np.arange(len(movers)), movers]
            rollout.rewards[t] = torch.as_tensor(own)
            rollout.dones[t] = torch.as_tensor(terminations)
        self._note_turn(self.num_steps, obs, info)
        rollout.learns[self.num_steps] = torch.as_tensor(self.pool.leaves(self.env.records))
        _, values = network(rollout.observations[self.num_steps])
        self._note_values(self.num_steps, values, critic)
        return rollout, counts

    def _note_turn(self, t: int, obs: dict[str, npt.NDArray[Any]], info: dict[str, Any]) -> None:
        """Write down what the players to move see, and what they do not."""
        self.rollout.observations[t] = torch.as_tensor(obs["observation"])
        self.rollout.to_play[t] = torch.as_tensor(info["to_play"])
        if t < self.num_steps:
            self.rollout.masks[t] = torch.as_tensor(obs["action_mask"])
        if self.sees_all:
            layout = self.env.layout
            codes = (layout.memory_code, layout.suits_code, layout.history_code)
            hidden = np.empty((len(self.env.records), HIDDEN_SIZE), dtype=np.uint8)
            write_hidden(self.env.records, self.codes, *codes, hidden)
            self.rollout.hidden[t] = torch.as_tensor(hidden)

    def _note_values(self, t: int, values: Tensor, critic: StateCritic | None) -> None:
        """Write down the values: the network's, the critic's, and the solver's where it knows."""
        if critic is not None:
            values = critic(self.rollout.observations[t], self.rollout.hidden[t])
        self.rollout.values[t] = values
        if self.solves:
            exact_values = np.zeros(len(self.env.records), dtype=np.float32)
            solved = np.zeros(len(self.env.records), dtype=np.bool_)
            solve_exhausted(self.env.records, self.codes, self.workspace, exact_values, solved)
            self.rollout.exact[t] = torch.as_tensor(solved)
            known = torch.as_tensor(exact_values).to(self.device)
            self.rollout.values[t] = torch.where(self.rollout.exact[t], known, values)

    def state(self) -> dict[str, Any]:
        """The running deals with their random states, ``int64[N, R]``, and the pool."""
        return {"records": torch.as_tensor(self.env.records.copy()), "pool": self.pool.state()}

    def restore(self, state: dict[str, Any], network: Weights) -> None:
        """Go on from what :meth:`state` gave.

        Args:
            state: the state.
            network: the weights of the learning policy.

        Raises:
            ValueError: it is of another number of deals, or of another network.
        """
        records: npt.NDArray[np.int64] = state["records"].numpy()
        if records.shape != self.env.records.shape:
            raise ValueError(f"{records.shape} deals do not fit {self.env.records.shape}")
        self.env.records[:] = records
        self.pool.restore(state["pool"], network)
