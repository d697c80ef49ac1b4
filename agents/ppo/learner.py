"""Proximal policy optimisation, top to bottom, in the order of the paper.

Schulman, Wolski, Dhariwal, Radford, Klimov, "Proximal Policy Optimization Algorithms" (2017),
Algorithm 1. :meth:`Learner.iterate` is one round of its loop:

1. run the policy in N deals for T steps (:mod:`agents.ppo.rollout`),
2. compute advantage estimates (:mod:`agents.ppo.gae`),
3. optimise the clipped surrogate (equations 7 and 9) for K epochs of minibatches.

Two things are particular to this game. The value changes its sign exactly when the player to move
changes, see :mod:`agents.ppo.gae`. And the loss has a further term, KL(uniform || policy), against
unlearning to close the talon before knowing how, see :mod:`agents.ppo.masking`.

Letters: ``T`` steps, ``N`` deals, ``M`` decisions of a minibatch.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from agents.ppo.checkpoint import Weights, read_checkpoint
from agents.ppo.config import PAST, Config
from agents.ppo.errors import (
    CheckpointError,
    ConfigError,
    NonFiniteLossError,
    NothingToLearnError,
)
from agents.ppo.gae import generalised_advantages, learnable
from agents.ppo.masking import MaskedPolicy
from agents.ppo.network import PolicyValueNet, StateCritic
from agents.ppo.rollout import Collector, PlayCounts, Rollout
from schnapsen_env.observation import Layout

#: Keeps the division defined when all advantages of a minibatch are alike.
_ADVANTAGE_EPS: Final = 1e-8
#: Raised whenever :meth:`Learner.state` changes its meaning.
TRAINING_FORMAT: Final = 2
#: A standard deviation needs two.
_FEWEST_DECISIONS: Final = 2


@dataclass(frozen=True)
class Coefficients:
    """What changes in the course of a run."""

    learning_rate: float
    ent_coef: float
    uniform_kl_coef: float


def coefficients(config: Config, done: float) -> Coefficients:
    """The coefficients when the share ``done``, from 0 to 1, of the run lies behind."""
    left = 1.0 - done

    def linear(start: float, final: float) -> float:
        return final + (start - final) * left

    return Coefficients(
        learning_rate=linear(config.learning_rate, config.learning_rate_final),
        ent_coef=linear(config.ent_coef, config.ent_coef_final),
        uniform_kl_coef=config.uniform_kl_coef * left**2 + config.uniform_kl_floor,
    )


@dataclass(frozen=True)
class Minibatch:
    """M decisions, and what is to be learnt from them."""

    #: ``uint8[M, F]``
    observations: Tensor
    #: ``uint8[M, H]``
    hidden: Tensor
    #: ``int8[M, A]``
    masks: Tensor
    #: ``int64[M]``
    actions: Tensor
    #: ``float32[M]`` each, as they were when the actions were taken.
    log_probs: Tensor
    values: Tensor
    #: ``float32[M, A]``, of the magnet; ``[M, 0]`` without one.
    magnet_log_probs: Tensor
    #: ``float32[M]`` each.
    advantages: Tensor
    returns: Tensor


@dataclass(frozen=True)
class Losses:
    """The terms of the loss, and what else is worth watching; scalars."""

    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    uniform_kl: Tensor
    magnet_kl: Tensor
    approx_kl: Tensor
    clip_frac: Tensor


class Learner:
    """A network, the deals it plays against itself, and the optimiser that improves it.

    Args:
        config: the run.
        fresh: whether the run begins here. One that goes on gets everything by :meth:`restore`, and
            the file of ``initial_weights`` may be gone by then.

    Raises:
        ConfigError: the device or the arithmetic that the configuration asks for is not there, an
            opponent cannot be loaded, or ``initial_weights`` cannot be used.
    """

    def __init__(self, config: Config, *, fresh: bool = True) -> None:
        torch.set_num_threads(config.torch_threads)
        self.config = config
        self.device = choose_device(config)
        self.amp_dtype = choose_amp(config, self.device)
        # Streams that have nothing to do with each other, nor with those of a neighbouring seed.
        weights, cards, chance, critic_weights, pool = (
            int(word) for word in np.random.SeedSequence(config.seed).generate_state(5)
        )
        self.layout = Layout(suits=config.suits)
        self.network = PolicyValueNet(
            self.layout, config.hidden_sizes, torch.Generator().manual_seed(weights)
        ).to(self.device)
        if config.initial_weights and fresh:
            self._take_weights(Path(config.initial_weights))
        #: A slow copy of the policy that it is held near to; None for none.
        self.magnet = copy.deepcopy(self.network) if config.magnet_coef > 0 else None
        #: Sees all cards; None where policy and value share the network.
        self.critic: StateCritic | None = None
        if config.critic == "state":
            generator = torch.Generator().manual_seed(critic_weights)
            self.critic = StateCritic(self.layout, config.critic_hidden_sizes, generator)
            self.critic.to(self.device)
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
            self.parameters(), lr=config.learning_rate, eps=config.adam_eps, fused=True
        )
        #: Draws actions and minibatches; on the CPU, so that a run can move between devices.
        self.generator = torch.Generator().manual_seed(chance)
        self.collector = Collector(config, cards, pool, self.generator, self.device)
        self.iteration = 0

    def parameters(self) -> list[nn.Parameter]:
        """Everything that is learnt: the network's weights, and the critic's if there is one."""
        learnt = list(self.network.parameters())
        return learnt + (list(self.critic.parameters()) if self.critic is not None else [])

    @property
    def timesteps(self) -> int:
        """Decisions made so far."""
        return self.iteration * self.config.batch_size

    def has_passed(self, interval: int) -> bool:
        """Whether the last iteration has passed a multiple of ``interval`` decisions."""
        return self.timesteps // interval > (self.timesteps - self.config.batch_size) // interval

    # ------------------------------------------------------------------------------ Algorithm 1

    def iterate(self) -> tuple[dict[str, float], PlayCounts]:
        """One iteration: N * T decisions are made and learnt from.

        Returns:
            Metrics by their usual names, and counts of what was played.

        Raises:
            NonFiniteLossError: a loss or gradient is not finite, before its step reaches the
                weights; or a weight after the last step.
            AgentError: an opponent of the pool fails.
            NothingToLearnError: opponents and chance left the policy nothing to learn from.
        """
        config = self.config
        now = coefficients(config, self.iteration / config.num_iterations)

        self.collector.pool.begin(self.iteration + 1)
        with self._autocast():
            rollout, counts = self.collector.collect(self.network, self.critic)

        advantages, returns = generalised_advantages(
            rollout.rewards,
            rollout.values,
            rollout.dones,
            rollout.to_play,
            config.gamma,
            config.gae_lambda,
            rollout.exact,
            rollout.learns,
        )

        batch = _flatten(rollout, advantages, returns, self._magnet_log_probs(rollout))
        learnt = learnable(rollout.learns, rollout.dones)
        learnt_from = learnt.flatten().nonzero().squeeze(1)
        if len(learnt_from) < _FEWEST_DECISIONS:
            raise NothingToLearnError(
                f"num_envs * num_steps = {config.batch_size}: opponents and random openings left "
                f"the policy {len(learnt_from)} decisions to learn from; choose more deals or steps"
            )
        history: list[dict[str, Tensor]] = []
        for _ in range(config.update_epochs):
            order = torch.randperm(len(learnt_from), generator=self.generator).to(self.device)
            for chosen in self._minibatches(learnt_from[order]):
                with self._autocast():
                    losses = self.losses(_take(batch, chosen))
                grad_norm = self.descend(losses, now)
                terms = {name: value.detach() for name, value in vars(losses).items()}
                history.append(terms | {"grad_norm": grad_norm})
            if config.target_kl is not None and history[-1]["approx_kl"] > config.target_kl:
                break

        self._require_finite_weights(now)
        self.iteration += 1
        self._move_magnet()
        if PAST in self.config.opponents and self.has_passed(self.config.past_interval):
            self.collector.pool.remember(self.weights())
        return _metrics(history, rollout, returns, learnt, now), counts

    def losses(self, minibatch: Minibatch) -> Losses:
        """The terms of the objective (equations 7 and 9) for one minibatch."""
        config = self.config
        logits, values = self.network(minibatch.observations)
        policy = MaskedPolicy(logits, minibatch.masks)

        # The clipped surrogate, equation 7, as a loss.
        log_ratio = policy.log_prob(minibatch.actions) - minibatch.log_probs
        ratio = log_ratio.exp()
        clipped_ratio = ratio.clamp(1.0 - config.clip_coef, 1.0 + config.clip_coef)
        advantages = minibatch.advantages
        if config.norm_adv:
            advantages = (advantages - advantages.mean()) / (advantages.std() + _ADVANTAGE_EPS)
        policy_loss = -torch.minimum(ratio * advantages, clipped_ratio * advantages).mean()

        # The value, in game points.
        squared_error = (values - minibatch.returns) ** 2
        if config.clip_vloss:
            moved = (values - minibatch.values).clamp(-config.clip_coef, config.clip_coef)
            clipped_error = (minibatch.values + moved - minibatch.returns) ** 2
            squared_error = torch.maximum(squared_error, clipped_error)
        value_loss = 0.5 * squared_error.mean()
        if self.critic is not None:
            # The network goes on learning the value as well: it shapes what the policy sees.
            estimates = self.critic(minibatch.observations, minibatch.hidden)
            value_loss = value_loss + 0.5 * ((estimates - minibatch.returns) ** 2).mean()

        with torch.no_grad():
            # The low-variance estimate of KL(old || new): http://joschu.net/blog/kl-approx.html
            approx_kl = (ratio - 1.0 - log_ratio).mean()
            clip_frac = ((ratio - 1.0).abs() > config.clip_coef).float().mean()
        return Losses(
            policy_loss=policy_loss,
            value_loss=value_loss,
            entropy=policy.entropy().mean(),
            uniform_kl=policy.kl_from_uniform().mean(),
            magnet_kl=policy.kl_to(minibatch.magnet_log_probs).mean(),
            approx_kl=approx_kl,
            clip_frac=clip_frac,
        )

    def descend(self, losses: Losses, now: Coefficients) -> Tensor:
        """One gradient step on equation 9 with the exploration term; returns the gradient's norm.

        Raises:
            NonFiniteLossError: the weights are left as they were.
        """
        config = self.config
        loss = (
            losses.policy_loss
            + config.vf_coef * losses.value_loss
            - now.ent_coef * losses.entropy
            + now.uniform_kl_coef * losses.uniform_kl
            + config.magnet_coef * losses.magnet_kl
        )
        self._require_finite(loss, losses, now)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        grad_norm = nn.utils.clip_grad_norm_(self.parameters(), config.max_grad_norm)
        if not torch.isfinite(grad_norm):
            raise NonFiniteLossError(f"the gradient is {grad_norm.item()} {self._moment(now)}")
        for group in self.optimizer.param_groups:
            group["lr"] = now.learning_rate
        self.optimizer.step()
        return grad_norm

    # --------------------------------------------------------------------------------- the rest

    def weights(self) -> Weights:
        """The network's weights as numpy arrays, a copy."""
        state = self.network.state_dict()
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in state.items()}

    def _take_weights(self, path: Path) -> None:
        """Begin with the weights of a checkpoint.

        Raises:
            ConfigError: they cannot be read, or are of another network.
        """
        try:
            info, weights = read_checkpoint(path)
        except CheckpointError as error:
            raise ConfigError(f"initial_weights: {error}") from error
        for name, own, given in (
            ("suits", self.layout.suits, info.suits),
            ("hidden_sizes", self.config.hidden_sizes, info.hidden_sizes),
        ):
            if own != given:
                raise ConfigError(f"initial_weights: {path} has {name}={given}, this run {own}")
        state = {name: torch.as_tensor(array) for name, array in weights.items()}
        self.network.load_state_dict(state)

    def _minibatches(self, order: Tensor) -> list[Tensor]:
        """The decisions to learn from in the order given, in minibatches of one size."""
        size = self.config.minibatch_size
        parts = list(torch.split(order, size))
        # A last one that is much smaller would be a step as long on far less evidence.
        return [part for part in parts if len(part) == size] or parts

    @torch.no_grad()
    def _magnet_log_probs(self, rollout: Rollout) -> Tensor:
        """What the magnet thinks of each decision: ``float32[N * T, A]``, no columns without it."""
        observations = rollout.observations[:-1].flatten(0, 1)
        if self.magnet is None:
            return torch.zeros((len(observations), 0), device=self.device)
        masks = rollout.masks.flatten(0, 1)
        size = self.config.num_envs
        with self._autocast():
            parts = [
                MaskedPolicy(self.magnet(observations[i : i + size])[0], masks[i : i + size])
                for i in range(0, len(observations), size)
            ]
        return torch.cat([part.log_probs for part in parts])

    @torch.no_grad()
    def _move_magnet(self) -> None:
        if self.magnet is not None:
            pairs = zip(self.magnet.parameters(), self.network.parameters(), strict=True)
            for slow, fast in pairs:
                slow.lerp_(fast, self.config.magnet_rate)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, self.amp_dtype, enabled=self.amp_dtype != torch.float32
        )

    def _require_finite(self, loss: Tensor, losses: Losses, now: Coefficients) -> None:
        if torch.isfinite(loss):
            return
        terms = {name: value.item() for name, value in vars(losses).items()}
        culprits = [f"{name} = {value}" for name, value in terms.items() if not isfinite(value)]
        raise NonFiniteLossError(f"{', '.join(culprits) or 'the loss'} {self._moment(now)}")

    def _require_finite_weights(self, now: Coefficients) -> None:
        """A step of finite gradients can still be too large."""
        if not all(bool(torch.isfinite(weight).all()) for weight in self.parameters()):
            raise NonFiniteLossError(f"a weight is infinite or not a number {self._moment(now)}")

    def _moment(self, now: Coefficients) -> str:
        return (
            f"in iteration {self.iteration + 1} (after {self.timesteps:,} decisions, "
            f"learning rate {now.learning_rate:.3g})"
        )

    def state(self) -> dict[str, Any]:
        """Everything beside the weights that a continued run needs: tensors and plain values."""
        return {
            "format": TRAINING_FORMAT,
            "iteration": self.iteration,
            "critic": self.critic.state_dict() if self.critic is not None else {},
            "magnet": self.magnet.state_dict() if self.magnet is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "deals": self.collector.state(),
        }

    def restore(self, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on from weights and what :meth:`state` gave, exactly as if the run had not stopped.

        Raises:
            ValueError, RuntimeError, KeyError: they are of another network, another run, or another
                version of this program.
        """
        if state.get("format") != TRAINING_FORMAT:
            raise ValueError(
                "its optimiser and deals are of another version of this program; its weights are "
                "good to begin a new run with: --initial-weights"
            )
        self.network.load_state_dict(weights)
        if self.critic is not None:
            self.critic.load_state_dict(state["critic"])
        if self.magnet is not None:
            # A run that is given a magnet on the way starts it where the policy stands.
            self.magnet.load_state_dict(state["magnet"] or weights)
        self.optimizer.load_state_dict(state["optimizer"])
        for group in self.optimizer.param_groups:
            group["eps"] = self.config.adam_eps  # which may have been changed
        self.generator.set_state(state["generator"])
        self.collector.restore(state["deals"], self.weights())
        self.iteration = state["iteration"]


def _flatten(
    rollout: Rollout, advantages: Tensor, returns: Tensor, magnet_log_probs: Tensor
) -> Minibatch:
    """The N * T decisions of a rollout as one batch."""
    return Minibatch(
        observations=rollout.observations[:-1].flatten(0, 1),
        hidden=rollout.hidden[:-1].flatten(0, 1),
        masks=rollout.masks.flatten(0, 1),
        actions=rollout.actions.flatten(),
        log_probs=rollout.log_probs.flatten(),
        values=rollout.values[:-1].flatten(),
        magnet_log_probs=magnet_log_probs,
        advantages=advantages.flatten(),
        returns=returns.flatten(),
    )


def _take(batch: Minibatch, rows: Tensor) -> Minibatch:
    return Minibatch(**{name: array.index_select(0, rows) for name, array in vars(batch).items()})


def _metrics(
    history: list[dict[str, Tensor]],
    rollout: Rollout,
    returns: Tensor,
    learnt: Tensor,
    now: Coefficients,
) -> dict[str, float]:
    """What is logged of an iteration: means over its gradient steps, and the coefficients."""
    metrics = {
        f"losses/{name}": torch.stack([terms[name] for terms in history]).mean().item()
        for name in history[0]
    }
    # What the solver knows is no merit of the network's.
    estimated = learnt & ~rollout.exact[:-1]
    metrics["losses/explained_variance"] = _explained_variance(
        rollout.values[:-1][estimated], returns[estimated]
    )
    metrics["charts/learnt_share"] = learnt.float().mean().item()
    return metrics | {f"charts/{name}": value for name, value in vars(now).items()}


def _explained_variance(values: Tensor, returns: Tensor) -> float:
    """The share of the variance of the returns that the values foresee, ``float32[M]`` each."""
    if len(returns) < _FEWEST_DECISIONS or not (spread := returns.var().item()):
        return 0.0  # there is nothing to foresee
    return 1.0 - (returns - values).var().item() / spread


def choose_device(config: Config) -> torch.device:
    """The device that the configuration names; auto is a GPU if torch finds one.

    Raises:
        ConfigError: ``cuda`` where there is none.
    """
    has_gpu = torch.cuda.is_available()
    if config.device == "cuda" and not has_gpu:
        raise ConfigError(
            "device=cuda, but this torch "
            + ("finds no GPU" if torch.version.cuda else "is a build without CUDA")
            + "; use device=cpu, or auto"
        )
    wants_gpu = config.device == "cuda" or (config.device == "auto" and has_gpu)
    return torch.device("cuda" if wants_gpu else "cpu")


def choose_amp(config: Config, device: torch.device) -> torch.dtype:
    """float32, or bfloat16 if the configuration asks for it; auto takes it where it is fast."""
    if config.amp == "auto":
        fast = torch.cuda.is_bf16_supported() if device.type == "cuda" else _cpu_has_bf16()
        return torch.bfloat16 if fast else torch.float32
    return torch.bfloat16 if config.amp == "bf16" else torch.float32


def _cpu_has_bf16() -> bool:
    """Whether the processor has bfloat16 instructions; emulated they are slower than float32."""
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        probe = getattr(torch.cpu, name, None)
        if probe is not None and probe():
            return True
    return False
