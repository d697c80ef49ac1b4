"""The PettingZoo AEC environment: whose turn it is, rewards and infos. No rule of the game is here.

``schnapsen_env.schnapsen_v0`` has the constructors that people use. The class gives the guarantees
of PettingZoo's usual wrappers (order of calls, actions in bounds, illegal actions) itself, so that
no chain of wrappers stands between an agent and the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable, AECIterator

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.engine import record as r
from schnapsen_env.env_base import BaseEnv, observation_space, reset_needed
from schnapsen_env.episode import (
    REFUSED,
    Episode,
    IllegalAction,
    Record,
    Reward,
    action_number,
    advance,
    deal_info,
    end_by_illegal_action,
    illegal_action_error,
    is_episode_over,
    make_settings,
    reward_of,
    start,
)
from schnapsen_env.kept_state import check_arrays, check_parts
from schnapsen_env.observation import STATE_SIZE, Memory, Suits, encode
from schnapsen_env.observation import encode_state as write_state
from schnapsen_env.position import Position
from schnapsen_env.record_log import DealRecord
from schnapsen_env.render import PackName, TextScreen, check_render_mode
from schnapsen_env.rules import Rules

#: The agents by seat.
AGENTS: Final = ("player_0", "player_1")
_NO_MOVES: Final = np.zeros(NUM_ACTIONS, dtype=np.int8)
_SEATS: Final = {agent: seat for seat, agent in enumerate(AGENTS)}

#: What does not exist before the first reset.
_AFTER_RESET: Final = frozenset(
    {"agents", "num_agents", "agent_selection", "rewards", "terminations", "truncations", "infos"}
)


class Observation(TypedDict):
    """What an agent gets: ``float32[F]`` and ``int8[27]``."""

    observation: npt.NDArray[np.float32]
    action_mask: npt.NDArray[np.int8]


def _action_space() -> spaces.Space[Any]:
    return spaces.Discrete(NUM_ACTIONS)


@dataclass(frozen=True)
class EnvState:
    """A moment of an environment, for :meth:`SchnapsenAECEnv.set_state`; not for reading."""

    settings: object
    record: Record
    turn: dict[str, Any] = field(repr=False)


class _Turns(AECIterable[str, Any, Any]):
    """What ``agent_iter`` returns; it insists on a step between two agents."""

    def __init__(self, env: SchnapsenAECEnv, max_iter: int) -> None:
        self._env = env
        self._max_iter = max_iter

    def __iter__(self) -> AECIterator[str, Any, Any]:
        return _TurnIterator(self._env, self._max_iter)


class _TurnIterator(AECIterator[str, Any, Any]):
    def __init__(self, env: SchnapsenAECEnv, max_iter: int) -> None:
        self._env = env
        self._left = max_iter

    def __next__(self) -> str:
        env = self._env
        if not env.agents or self._left <= 0:
            raise StopIteration
        if not env.has_moved:
            raise RuntimeError("agent_iter() has given an agent that was not stepped: call step()")
        env.has_moved = False
        self._left -= 1
        return env.agent_selection


class SchnapsenAECEnv(BaseEnv, AECEnv[str, Any, Any]):
    """Schnapsen for two agents that take turns as the rules say.

    Args:
        rules: a name of :data:`~schnapsen_env.rules.RULES`, or a rule set.
        episode: ``"deal"`` or ``"match"``.
        reward: ``"game_points"`` - signed game points at the end of each deal; ``"win"`` - 1 or -1
            at the end of the episode.
        illegal_action: ``"lose"``, ``"raise"`` or ``"revoke"``, see
            :class:`~schnapsen_env.episode.Settings`.
        memory: how much of the past an observation shows.
        suits: how suits are named in observations, masks and actions.
        history: whether observations hold the order of the actions.
        target: game points that win a match; None takes those of ``rules``.
        render_mode: None, ``"ansi"`` (``render()`` returns text) or ``"human"`` (text is written
            to the standard output after each step).
        pack: ``"french"`` or ``"german"`` cards, for rendering only.

    Raises:
        ValueError: an unknown value or a combination that makes no sense; the message says what to
            choose.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "name": "schnapsen_v0",
        "render_modes": ["human", "ansi"],
        "is_parallelizable": False,
        "render_fps": 2,
    }
    _RECALLED = frozenset({"_codes", "_switches", "_ready"})

    def __init__(
        self,
        rules: str | Rules = "duel",
        episode: Episode = "deal",
        *,
        reward: Reward = "game_points",
        illegal_action: IllegalAction = "lose",
        memory: Memory = "perfect",
        suits: Suits = "natural",
        history: bool = False,
        target: int | None = None,
        render_mode: str | None = None,
        pack: PackName = "french",
    ) -> None:
        super().__init__()
        self._settings = make_settings(
            rules,
            episode,
            reward=reward,
            illegal_action=illegal_action,
            memory=memory,
            suits=suits,
            history=history,
            target=target,
        )
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self._screen = TextScreen(self._settings.rules, pack, memory=memory)
        self.possible_agents = list(AGENTS)
        layout = self._settings.layout
        self.observation_spaces = {agent: observation_space(layout) for agent in AGENTS}
        self.action_spaces = {agent: _action_space() for agent in AGENTS}
        self.state_space = spaces.Box(0.0, 1.0, (STATE_SIZE,), np.float32)
        self._record: Record | None = None
        #: The deal that ended last, as it ended; and where it began, if it was at a position.
        self._finished: Record | None = None
        self._start: Position | None = None
        #: What the infos said of deals that ended, for agents without a turn since.
        self._untold: dict[str, dict[str, Any]] = {}
        #: Whether agent_iter may give the next agent.
        self.has_moved = False
        self._is_running = False
        self._recall_constants()

    def _recall_constants(self) -> None:
        super()._recall_constants()
        layout = self._settings.layout
        self._memory, self._suits = layout.memory_code, layout.suits_code
        self._history, self._size = layout.history_code, layout.size
        self._ready: tuple[str, Observation] | None = None

    @property
    def record(self) -> Record:
        """A copy of the engine's record of this moment, ``int64[RECORD_SIZE]``, for search.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._current_record("record").copy()

    def finished_deal(self, seats: tuple[str, str] = AGENTS) -> DealRecord | None:
        """The deal of this episode that ended last, to be written down; None before the first.

        Args:
            seats: the names of the players, seat 0 first.
        """
        if self._finished is None:
            return None
        return DealRecord.from_record(self._finished, self.rules, seats=seats, start=self._start)

    def _current_record(self, reader: str) -> Record:
        if self._record is None:
            raise reset_needed(reader)
        return self._record

    if not TYPE_CHECKING:  # otherwise type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            if name in _AFTER_RESET:
                raise AttributeError(f"{name} does not exist before reset(): call reset() first")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ------------------------------------------------------------------------------- spaces

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent, the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent, the same object each time."""
        return self.action_spaces[agent]

    # -------------------------------------------------------------------------------- turns

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Deal, and begin a new episode.

        Args:
            seed: determines this and all following episodes. Without it the random stream of the
                environment goes on; a first reset draws a seed from the operating system.
            options: may hold ``deck``, ``forehand`` or ``position`` for the first deal, see
                ``docs/environment.md``. Unknown keys are ignored.

        Raises:
            TypeError: the seed is not an integer.
            ValueError: an option makes no deal, and why, or ``options`` is not a dict. The
                environment stays as it was.
        """
        self._record = start(self._record, self._settings, seed, options)
        self._ready = None
        is_dealt = not self._record[r.FROM_POSITION]
        self._start = None if is_dealt else engine.position_of(self._record)
        self._finished = None
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = {agent: {} for agent in AGENTS}
        self._untold = {}
        self._skip_agent_selection = None
        self._has_rewards = False
        self._is_running = True
        self._begin_turn(int(self._record[r.TO_MOVE]))
        if self.render_mode == "human":
            self.render()

    def _begin_turn(self, seat: int) -> None:
        """Let ``seat`` move: agent_selection, and fresh infos with both masks."""
        self.has_moved = True
        mover, waiting = AGENTS if seat == 0 else _REVERSED
        self.agent_selection = mover
        if self._is_running:
            seen = self.observe(mover)
            self._ready = mover, seen
            self.infos[mover] = {"action_mask": seen["action_mask"].copy()}
        else:
            self.infos[mover] = {"action_mask": _NO_MOVES.copy()}
        self.infos[waiting] = {"action_mask": _NO_MOVES.copy()}

    def step(self, action: Any) -> None:
        """Take an action for ``agent_selection``; None if that agent is done.

        Args:
            action: an id in 0-26 that the agent's mask allows: a Python, numpy or torch integer.

        Raises:
            IllegalActionError: an id outside 0-26, or an illegal action with
                ``illegal_action="raise"``. Nothing has changed.
            TypeError: not an integer.
            ValueError: an action for an agent that is done.
            ResetNeeded: before the first reset, or after the end.
        """
        record = self._record
        if record is None or not self._is_running:
            self._step_done_agent(action)
            return
        number = action if type(action) is int else action_number(action)
        if not 0 <= number < NUM_ACTIONS:
            raise illegal_action_error(record, self._settings, number)
        out = np.empty(self._size, dtype=np.float32)
        mask = np.empty(NUM_ACTIONS, dtype=np.int8)
        outcome = advance(record, self._codes, self._switches, number, out, mask)
        if outcome == REFUSED and self._settings.illegal_action == "raise":
            raise illegal_action_error(record, self._settings, number)
        if self._has_rewards:
            self._clear_rewards()
            self._has_rewards = False
        self._cumulative_rewards[self.agent_selection] = 0.0
        if self._untold:
            self._untold.pop(self.agent_selection, None)
        self._ready = None
        if outcome == REFUSED:
            end_by_illegal_action(record)
            self._end_deal(record)
        elif outcome > 1:
            self._end_deal(record)
        else:
            # The same as _begin_turn, with the observation and the mask that are there already.
            self.has_moved = True
            mover, waiting = AGENTS if outcome == 0 else _REVERSED
            self.agent_selection = mover
            self._ready = mover, {"observation": out, "action_mask": mask}
            self.infos[mover] = {"action_mask": mask.copy()}
            self.infos[waiting] = {"action_mask": _NO_MOVES.copy()}
        if self.render_mode == "human":
            self.render()

    def _clear_rewards(self) -> None:
        for agent in self.rewards:  # PettingZoo's own would make them integers
            self.rewards[agent] = 0.0

    def _end_deal(self, record: Record) -> None:
        """The deal is over: rewards and infos; then the end of the episode, or the next deal."""
        codes, switches = self._codes, self._switches
        self._finished = record.copy()
        for seat, agent in enumerate(AGENTS):
            self.rewards[agent] = float(reward_of(record, codes, switches, seat))
        self._has_rewards = True
        self._accumulate_rewards()
        deal_infos = [deal_info(record, self._settings, seat) for seat in range(2)]
        if is_episode_over(record, codes, switches):
            self._is_running = False
            self.terminations = dict.fromkeys(AGENTS, True)
            self._begin_turn(0)
        else:
            if self.render_mode == "human":
                self.render()  # how it came out, before the board of the next deal
            engine.deal(record)
            self._begin_turn(int(record[r.TO_MOVE]))
        for agent, info in zip(AGENTS, deal_infos, strict=True):
            self.infos[agent].update(info)
            earlier = self._untold.get(agent, _NO_POINTS)["game_points"]
            self._untold[agent] = info | {"game_points": earlier + info["game_points"]}

    def _step_done_agent(self, action: Any) -> None:
        """A step while no deal runs: None removes a finished agent, everything else is an error."""
        if self._record is None:
            raise reset_needed("step()")
        if not self.agents:
            raise ResetNeeded("the episode is over and both agents are gone: call reset()")
        if action is not None:
            raise ValueError(
                f"the episode is over for {self.agent_selection}: pass None as its action, "
                "or call reset()"
            )
        self._was_dead_step(None)
        self._has_rewards = False
        self.has_moved = True

    def last(
        self, observe: bool = True
    ) -> tuple[Observation | None, float, bool, bool, dict[str, Any]]:
        """What the agent to move gets before it acts.

        Args:
            observe: False leaves the observation out (None).

        Returns:
            Observation, reward since its last action, terminated, truncated (always False), and the
            info, also of a deal that has ended since its last action: of several, the end of the
            last and the sum of the game points.

        Raises:
            ResetNeeded: both agents are gone.
        """
        agent = self.agent_selection
        if agent not in self.infos:
            raise ResetNeeded("the episode is over and both agents are gone: call reset()")
        observation = None
        if observe:
            # As in observe(), without the call: this is where an environment spends its time.
            ready, self._ready = self._ready, None
            observation = ready[1] if ready and ready[0] == agent else self.observe(agent)
        info = self.infos[agent]
        if agent in self._untold:  # where the other player has moved since
            info |= self._untold[agent]  # in place: PettingZoo wants the two to be the same
        return (
            observation,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            info,
        )

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Any, Any]:
        """The agents in the order of their turns; call ``step`` or ``reset`` for each of them.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._current_record("agent_iter()")
        return _Turns(self, max_iter)

    # --------------------------------------------------------------------------- what is seen

    def observe(self, agent: str) -> Observation:
        """What an agent knows, in new arrays, whoever is to move and also after the end.

        Raises:
            KeyError: there is no such agent.
            ResetNeeded: before the first reset.
        """
        record = self._record
        if record is None:
            raise reset_needed("observe()")
        if self._ready is not None and self._ready[0] == agent:
            # What step() wrote for the next player is given away once; then arrays are new again.
            ready, self._ready = self._ready[1], None
            return ready
        out = np.empty(self._size, dtype=np.float32)
        mask = np.empty(NUM_ACTIONS, dtype=np.int8)
        encode(
            record,
            self._codes,
            _SEATS[agent],
            self._memory,
            self._suits,
            self._history,
            1,
            out,
            mask,
        )
        return {"observation": out, "action_mask": mask}

    def state(self) -> npt.NDArray[np.float32]:
        """The full information on the deal, ``float32[G]``, for critics that may see everything.

        Raises:
            ResetNeeded: before the first reset.
        """
        out = np.empty(STATE_SIZE, dtype=np.float32)
        write_state(self._current_record("state()"), self._codes, out)
        return out

    def render(self) -> str | None:
        """The board with all cards: text with ``"ansi"``, written and None with ``"human"``.

        Raises:
            ResetNeeded: before the first reset.
        """
        record = self._current_record("render()")
        return self._screen.show(record, self.render_mode)

    def close(self) -> None:
        """Nothing has to be released."""

    # -------------------------------------------------------------------------------- copies

    def get_state(self) -> EnvState:
        """This moment, random state included, as a value that can be kept and pickled.

        Raises:
            ResetNeeded: before the first reset.
        """
        record = self._current_record("get_state()").copy()
        turn = {name: copy.deepcopy(getattr(self, name)) for name in _TURN}
        return EnvState(self._settings, record, turn)

    def set_state(self, state: EnvState) -> None:
        """Go to a moment that :meth:`get_state` gave, of this or a like environment.

        Raises:
            ValueError: it is nothing that :meth:`get_state` gave, or the state of an environment
                with other settings; nothing has changed.
        """
        if not isinstance(cast("Any", state), EnvState):
            raise ValueError(f"set_state() takes what get_state() gave, not {state!r}")
        check_parts("state.turn", state.turn, _TURN)
        record = np.empty(r.RECORD_SIZE, dtype=np.int64)
        check_arrays("state", {"record": state.record}, {"record": record})
        if state.turn["_finished"] is not None:
            check_arrays("state.turn", state.turn, {"_finished": record})
        if state.settings != self._settings:
            raise ValueError(
                f"the state is of an environment with {state.settings}, this one has "
                f"{self._settings}: make an environment with the same arguments"
            )
        self._record = state.record.copy()
        self._ready = None
        for name, value in state.turn.items():
            setattr(self, name, copy.deepcopy(value))


_REVERSED: Final = AGENTS[::-1]
_NO_POINTS: Final = {"game_points": 0}
#: What changes from turn to turn, beside the record.
_TURN: Final = (
    "agents",
    "agent_selection",
    "rewards",
    "terminations",
    "truncations",
    "infos",
    "has_moved",
    "_cumulative_rewards",
    "_skip_agent_selection",
    "_has_rewards",
    "_is_running",
    "_untold",
    "_finished",
    "_start",
)
