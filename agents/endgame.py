"""Any agent, with the exact solver for the exhausted phase.

Once the talon is exhausted, whoever has counted knows every card. There the solver leaves the agent
no choice but that among the actions of the highest value. Where there is only one action, by the
solver or by the rules, it is played without asking.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from agents.base import (
    ActionMask,
    Actions,
    Agent,
    BatchAgent,
    Observation,
    as_agent,
    checked_answer,
    reset_agent,
)
from agents.inputs import checked_inputs
from agents.search.base import Ints, complaint
from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.compiled import compiled_apart
from schnapsen_env.imagined import OWN_SEAT, find_error, optimal_actions
from schnapsen_env.observation import decode
from schnapsen_env.opponents import put_state, state_of
from schnapsen_env.rules import Rules, resolve_rules
from schnapsen_env.sampling import sample_deal
from schnapsen_env.solver import Workspace, new_workspace

#: Five-card endgames need no larger table.
_TABLE_BITS: Final = 10


@compiled_apart
def restrict_to_best(
    observations: Observation, masks: ActionMask, codes: Ints, space: Workspace, errors: Ints
) -> None:
    """Take every action out of ``masks`` that is not best in a row with an exhausted talon.

    Args:
        observations: ``float32[N, F]``.
        masks: ``int8[N, 27]``, changed in place.
        codes: ``Rules.codes()``.
        space: memory of a solver.
        errors: ``int64[N]``, filled with 0 or the number of an error.
    """
    world = np.zeros(engine.RECORD_SIZE, dtype=np.int64)
    for row in range(len(observations)):
        seen = decode(observations[row], masks[row])
        errors[row] = 0
        if seen.table.talon_state != engine.EXHAUSTED:
            continue
        errors[row] = find_error(seen, codes, world)
        if errors[row] < 0:
            continue
        sample_deal(seen, codes, OWN_SEAT, world)
        best = optimal_actions(world, codes, space)
        for action in range(NUM_ACTIONS):
            masks[row, action] = best >> action & 1


class ExactEndgame(BatchAgent):
    """Asks an agent, in the exhausted phase for its choice among the best actions only.

    Args:
        agent: any agent.
        rules: the rule set to be played.

    Raises:
        ValueError: the agent has no ``act``, or the rules are unknown.
    """

    def __init__(self, agent: Any, rules: str | Rules = "pagat_auto") -> None:
        self.agent: Agent = as_agent(agent, type(agent).__name__)
        self.rules = resolve_rules(rules)

    def reset(self, seed: int) -> None:
        """Pass the seed on."""
        reset_agent(self.agent, seed)

    def get_state(self) -> Any:
        """The agent's own state, see :func:`schnapsen_env.opponents.state_of`."""
        return state_of(self.agent)

    def set_state(self, state: Any) -> None:
        """Pass the state on."""
        put_state(self.agent, state)

    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        """The actions for many positions: ``float32[N, F]``, ``int8[N, 27]`` to ``int64[N]``.

        Raises:
            TypeError: an array is of another kind, see :func:`agents.inputs.checked_inputs`.
            ValueError: a shape or a number is wrong, likewise; or the observation or mask of an
                exhausted phase is not that of the rules. What the agent itself raises.
            AgentError: the agent's answer is not an integer for each position.
        """
        inputs, masks = checked_inputs("endgame", observations, action_masks)
        masks = masks.copy()
        errors = np.empty(len(inputs), dtype=np.int64)
        space = new_workspace(_TABLE_BITS)
        restrict_to_best(inputs, masks, self.rules.codes(), space, errors)
        if len(errors) and errors.min() < 0:
            row = int(np.flatnonzero(errors < 0)[0])
            raise ValueError(complaint(int(errors[row]), row, self.rules))
        # One action needs no agent, which might have no answer: the best action can be a wrong
        # claim, and players of rules of thumb make none of those.
        out = masks.argmax(axis=1)
        asked = np.flatnonzero((masks != 0).sum(axis=1) != 1)
        if len(asked):
            answer = self.agent.act_batch(inputs[asked], masks[asked])
            out[asked] = checked_answer(answer, len(asked), type(self.agent).__name__)
        return out


def with_endgame(agent: Any, endgame: str | None, rules: str | Rules) -> Any:
    """The agent with the option ``endgame`` of its spec: None or ``"exact"``.

    Raises:
        ValueError: another value.
    """
    if endgame is None:
        return agent
    if endgame != "exact":
        raise ValueError(f"the option endgame can only be exact, not {endgame!r}")
    return ExactEndgame(agent, rules)
