"""Short evaluations during a run, with the habits that self-play easily unlearns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agents.base import ActionMask, Actions, BatchAgent, Observation
from agents.evaluation import evaluate
from agents.ppo.agent import PPOAgent
from agents.ppo.rollout import led_undeclared
from schnapsen_env.rules import Rules

#: Whom the learner is watched against; both play without a network, so it costs little.
OPPONENTS: Final = ("random", "heuristic")


@dataclass
class _Watched(BatchAgent):
    """Passes questions on to an agent and counts the marriages that it leads from undeclared."""

    agent: PPOAgent
    undeclared_leads: int = 0

    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        actions = self.agent.act_batch(observations, action_masks)
        self.undeclared_leads += int(led_undeclared(action_masks, actions).sum())
        return actions


def watch(agent: PPOAgent, rules: Rules, deals: int, seed: int) -> dict[str, float]:
    """Figures of ``agent`` against each of :data:`OPPONENTS`, by name.

    Args:
        agent: the player.
        rules: what is played.
        deals: different deals against each opponent, each played twice with seats swapped.
        seed: of the cards; with equal seeds the deals are the same.

    Returns:
        ``eval_random/game_points`` and so on: mean game points a deal with the half width of their
        95 % interval, how often a deal the agent closes, exchanges, declares and leads a king or
        queen whose marriage it could have declared, and how many of the deals that it closed it
        won (left out if it closed none).
    """
    figures: dict[str, float] = {}
    for opponent in OPPONENTS:
        watched = _Watched(agent)
        result = evaluate(watched, opponent, rules=rules, deals=deals, seed=seed)
        habits = result.habits[0]
        named: dict[str, float | None] = {
            "game_points": result.game_points.value,
            "game_points_ci95": result.game_points.ci95,
            "closing_rate": habits.closes.value,
            "closing_success": habits.closes_won.value if habits.closes_won else None,
            "exchange_rate": habits.exchanges.value,
            "marriage_rate": habits.marriages.value,
            "undeclared_lead_rate": watched.undeclared_leads / result.deals_played,
        }
        figures |= {f"eval_{opponent}/{k}": v for k, v in named.items() if v is not None}
    return figures
