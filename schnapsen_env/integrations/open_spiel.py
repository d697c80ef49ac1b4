"""OpenSpiel: Schnapsen as a Python game, and players in both directions.

Importing this module registers ``python_schnapsen``; ``pyspiel.load_game("python_schnapsen")`` then
finds it. It needs the extra ``openspiel``. Players:

* :class:`AgentBot` - one of our agents as a ``pyspiel.Bot``.
* :class:`BotAgent` - an OpenSpiel bot as one of our agents.
* :func:`ismcts_bot`, :func:`ismcts_agent` - OpenSpiel's information-set tree search, either way.

The information state is the observation with history, which is of perfect recall; the observation
is the default one. Both equal what the AEC environment gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import (
    EXCHANGE,
    FIRST_DECLARE,
    NUM_ACTIONS,
    action_text,
)
from schnapsen_env.cards import HAND_SIZE, NUM_CARDS, SUITS, card_text, cards_of
from schnapsen_env.engine import record as r
from schnapsen_env.episode import make_settings, start
from schnapsen_env.integrations.extras import require
from schnapsen_env.observation import DEFAULT_LAYOUT, Layout, decode, describe, encode
from schnapsen_env.rules import RULES, Rules, resolve_rules
from schnapsen_env.sampling import redeal, sample_deal
from schnapsen_env.view import event, first_turned_up, own_draw

pyspiel: Any = require("pyspiel", "openspiel")

Record = npt.NDArray[np.int64]

NAME: Final = "python_schnapsen"
#: ``explicit`` - a chance node for each card dealt; ``sampled`` - one chance node whose outcomes
#: are numbered deals.
CHANCE_MODES: Final = ("explicit", "sampled")
#: Who leads to the first trick: a seat, or this for a choice by lot.
BY_LOT: Final = -1
#: Parameters of the game and their defaults.
PARAMETERS: Final = MappingProxyType(
    {"rules": "duel", "chance": "explicit", "forehand": BY_LOT, "seed": 0, "deals": 1000}
)
#: No deal is worth more game points.
MOST_GAME_POINTS: Final = 3.0

_INFORMATION_STATE: Final = Layout(history=True)
_DEFAULT_CODES: Final = (
    DEFAULT_LAYOUT.memory_code,
    DEFAULT_LAYOUT.suits_code,
    DEFAULT_LAYOUT.history_code,
)


def _game_type() -> Any:
    kind = pyspiel.GameType
    return kind(
        short_name=NAME,
        long_name="Schnapsen",
        dynamics=kind.Dynamics.SEQUENTIAL,
        # Numbered deals are explicit chance as well. The bindings for Python games have no place
        # for the random state that OpenSpiel's own mode SAMPLED_STOCHASTIC has to serialise.
        chance_mode=kind.ChanceMode.EXPLICIT_STOCHASTIC,
        information=kind.Information.IMPERFECT_INFORMATION,
        utility=kind.Utility.ZERO_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=2,
        min_num_players=2,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification=dict(PARAMETERS),
    )


_GAME_TYPE: Final = _game_type()


class Constants:
    """What all states of a game share.

    OpenSpiel deep-copies every attribute of a state on each clone. This one is copied by reference,
    and pickled as the parameters that it was made from.
    """

    __slots__ = ("chance", "codes", "deals", "forehand", "parameters", "rules", "seed", "settings")

    def __init__(self, rules: str, chance: str, forehand: int, seed: int, deals: int) -> None:
        if rules not in RULES:
            raise ValueError(f"rules={rules!r} is unknown: choose one of {', '.join(RULES)}")
        if chance not in CHANCE_MODES:
            raise ValueError(
                f"chance={chance!r} is unknown: choose one of {', '.join(CHANCE_MODES)}"
            )
        if forehand not in (0, 1, BY_LOT):
            raise ValueError(f"forehand={forehand!r} is unknown: choose 0, 1, or -1 for a lot")
        if deals < 1:
            raise ValueError(f"deals={deals!r}: a sampled game needs at least one deal")
        self.parameters = (rules, chance, forehand, seed, deals)
        self.chance = chance
        self.forehand = forehand
        self.seed = seed
        self.deals = deals
        self.rules = RULES[rules]
        #: The rules as the engine reads them.
        self.codes = self.rules.codes()
        self.settings = make_settings(
            self.rules,
            "deal",
            reward="game_points",
            illegal_action="raise",
            memory="perfect",
            suits="natural",
            history=True,
            target=None,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Constants:
        return self

    def __copy__(self) -> Constants:
        return self

    def __reduce__(self) -> tuple[Callable[..., Constants], tuple[Any, ...]]:
        return _constants, self.parameters


@lru_cache(maxsize=64)
def _constants(rules: str, chance: str, forehand: int, seed: int, deals: int) -> Constants:
    return Constants(rules, chance, forehand, seed, deals)


class SchnapsenGame(pyspiel.Game):
    """One deal of Schnapsen.

    Args:
        params: some of :data:`PARAMETERS`. ``rules`` - a name of
            :data:`~schnapsen_env.rules.RULES`; ``chance`` - one of :data:`CHANCE_MODES`;
            ``forehand`` - the player who leads first, or -1: by lot; ``seed`` and ``deals`` - with
            ``chance="sampled"``, outcome ``k`` of ``deals`` is the deal that an environment makes
            of the seed ``seed + k``.

    Raises:
        ValueError: an unknown parameter or value; the message names what is allowed.
    """

    constants: Constants

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        given = dict(params or {})
        if unknown := sorted(set(given) - set(PARAMETERS)):
            raise ValueError(
                f"{NAME} has no parameter {unknown[0]!r}: it takes {', '.join(PARAMETERS)}"
            )
        chosen = {name: given.get(name, default) for name, default in PARAMETERS.items()}
        constants = _constants(**chosen)
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_ACTIONS,
            max_chance_outcomes=(NUM_CARDS if constants.chance == "explicit" else constants.deals),
            num_players=2,
            min_utility=-MOST_GAME_POINTS,
            max_utility=MOST_GAME_POINTS,
            utility_sum=0.0,
            max_game_length=engine.MAX_ACTIONS_PER_DEAL,
        )
        super().__init__(_GAME_TYPE, info, given)  # pyright: ignore[reportUnknownMemberType]
        self.constants = constants

    def new_initial_state(self, *_unused: object) -> SchnapsenState:
        """The state before the deal."""
        return SchnapsenState(self)

    def max_chance_nodes_in_history(self) -> int:
        """How many chance nodes a history has."""
        if self.constants.chance == "sampled":
            return 1
        return NUM_CARDS + (self.constants.forehand == BY_LOT)

    def make_py_observer(
        self, iig_obs_type: Any = None, params: Mapping[str, Any] | None = None
    ) -> SchnapsenObserver:
        """Writes what one player knows: with perfect recall or, by default, without.

        Raises:
            ValueError: another kind of observation was asked for.
        """
        if params:
            raise ValueError(f"{NAME} has no observation parameters, not {dict(params)}")
        recall = False
        if iig_obs_type is not None:
            own = pyspiel.PrivateInfoType.SINGLE_PLAYER
            if not iig_obs_type.public_info or iig_obs_type.private_info != own:
                raise ValueError(
                    f"{NAME} shows public and one player's private information together: "
                    "ask for public_info=True and private_info=SINGLE_PLAYER"
                )
            recall = iig_obs_type.perfect_recall
        return SchnapsenObserver(_INFORMATION_STATE if recall else DEFAULT_LAYOUT)

    def dealt_state(self, deck: Iterable[int], forehand: int = 0) -> SchnapsenState:
        """The state after the deal of one deck, with that deal in its history.

        Args:
            deck: 20 card ids: the hands of forehand and dealer, the turned-up card, the talon in
                drawing order.
            forehand: the player who leads first.

        Raises:
            ValueError: the deck is no permutation of 0-19, the game is of another forehand, or its
                deals are numbered (``chance="sampled"``).
        """
        constants = self.constants
        if constants.chance == "sampled":
            raise ValueError("a deck can be chosen with chance='explicit' only")
        if forehand not in (0, 1) or constants.forehand not in (forehand, BY_LOT):
            raise ValueError(
                f"forehand={forehand!r} in a game that was loaded with "
                f"forehand={constants.forehand}"
            )
        state = self.new_initial_state()
        if constants.forehand == BY_LOT:
            state.apply_action(forehand)
        for card in engine.parse_deck(list(deck)).tolist():
            state.apply_action(card)
        return state

    def state_from_record(self, record: Record) -> SchnapsenState:
        """The state of a record, ``int64[RECORD_SIZE]``; its OpenSpiel history is empty."""
        state = self.new_initial_state()
        state.record = record.copy()
        return state


class SchnapsenState(pyspiel.State):
    """One moment of a deal.

    A clone costs what copying the record costs: nothing else that changes is stored.
    """

    #: The engine's record, ``int64[RECORD_SIZE]``, or None until the cards are dealt. Read only.
    record: Record | None

    def __init__(self, game: SchnapsenGame) -> None:
        super().__init__(game)  # pyright: ignore[reportUnknownMemberType]
        self.constants = game.constants
        self.record = None
        forehand = game.constants.forehand
        self._forehand: int | None = None if forehand == BY_LOT else forehand
        # Bytes, which a deep copy takes as they are.
        self._dealt = b""

    # --------------------------------------------------------------------------- whose turn

    def current_player(self) -> Any:
        """The seat to move, or OpenSpiel's number for chance or for the end."""
        record = self.record
        if record is None:
            return pyspiel.PlayerId.CHANCE
        if record[r.END_REASON]:
            return pyspiel.PlayerId.TERMINAL
        return int(record[r.TO_MOVE])

    def is_terminal(self) -> bool:
        """Whether the deal is over."""
        return self.record is not None and bool(self.record[r.END_REASON])

    def returns(self) -> list[float]:
        """Game points of both players; 0 while the deal runs."""
        record = self.record
        if record is None or not record[r.END_REASON]:
            return [0.0, 0.0]
        return [float(engine.game_points(record, seat)) for seat in (0, 1)]

    # ------------------------------------------------------------------------------ actions

    def _legal_actions(self, player: int) -> list[int]:  # noqa: ARG002 - OpenSpiel's signature
        record = self._running("legal_actions()")
        legal = int(engine.legal(record, self.constants.codes))
        return [action for action in range(NUM_ACTIONS) if legal >> action & 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes of this chance node and their probabilities."""
        constants = self.constants
        if constants.chance == "sampled":
            return [(number, 1 / constants.deals) for number in range(constants.deals)]
        if self._forehand is None:
            return [(0, 0.5), (1, 0.5)]
        left = [card for card in range(NUM_CARDS) if card not in self._dealt]
        return [(card, 1 / len(left)) for card in left]

    def _apply_action(self, action: int) -> None:
        if self.record is not None:
            # OpenSpiel's apply_action is the one that does not check; the engine must not be asked
            # for what is illegal.
            engine.apply(self.record, self.constants.rules, action)
        elif self.constants.chance == "sampled":
            self._deal_number(action)
        elif self._forehand is None:
            self._forehand = action
        elif not 0 <= action < NUM_CARDS or action in self._dealt:
            raise ValueError(f"card {action} cannot be dealt: it is none of {self.legal_actions()}")
        else:
            self._dealt += bytes([action])
            if len(self._dealt) == NUM_CARDS:
                self.record = engine.new_record(self.constants.seed)
                deck = np.array(list(self._dealt), dtype=np.int64)
                engine.deal_deck(self.record, deck, self._forehand)
                self._dealt = b""

    def _deal_number(self, number: int) -> None:
        constants = self.constants
        if not 0 <= number < constants.deals:
            raise ValueError(f"deal {number}: deals are numbered from 0 to {constants.deals - 1}")
        forehand = {} if constants.forehand == BY_LOT else {"forehand": constants.forehand}
        self.record = start(None, constants.settings, constants.seed + number, forehand)

    def _action_to_string(self, player: int, action: int) -> str:
        if player != pyspiel.PlayerId.CHANCE:
            return _ACTION_TEXTS[action]
        if self.constants.chance == "sampled":
            return f"deal number {action}"
        if self._forehand is None:
            return f"player {action} leads first"
        return f"deal {card_text(action)}"

    # ------------------------------------------------------------------------------- others

    def __str__(self) -> str:
        if self.record is None:
            dealt = " ".join(card_text(card) for card in self._dealt)
            forehand = "" if self._forehand is None else f"forehand={self._forehand} "
            return f"{forehand}dealt={dealt or '-'}"
        return str(engine.position_of(self.record))

    def resample_from_infostate(
        self, player_id: int, sampler: Callable[[], float]
    ) -> SchnapsenState:
        """A state that looks the same to ``player_id``, the cards that it cannot see dealt anew.

        Uniform among all deals that agree with the cards seen and with what replies in the strict
        phase ruled out. With ``chance="explicit"`` the history is that of the new deal; otherwise
        it still names the number of the true one.

        Args:
            player_id: the player who must not notice.
            sampler: gives uniform numbers from [0, 1); two are drawn.

        Raises:
            ValueError: the cards are not dealt yet.
        """
        record = self._running("resample_from_infostate()").copy()
        seed = int(sampler() * 2**32) << 32 | int(sampler() * 2**32)
        redeal(record, player_id, engine.new_record(seed))
        if self.constants.chance == "sampled" or record[r.FROM_POSITION]:
            state = self.clone()
            state.record = record
            return state
        game: SchnapsenGame = self.get_game()
        state = game.dealt_state(_deck_of(record), int(record[r.FOREHAND]))
        for index in range(int(record[r.NUM_TAKEN])):
            state.apply_action(event(record, index)[0])
        return state

    def _running(self, caller: str) -> Record:
        if self.record is None:
            raise ValueError(f"{caller} at a chance node: deal the cards first")
        return self.record


class SchnapsenObserver:
    """What one player knows, in the form of OpenSpiel's observers.

    Args:
        layout: which observation; its features are ``tensor``, ``float32[F]``, and
            ``dict["observation"]``. They are zeros until the cards are dealt.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.tensor = np.zeros(layout.size, dtype=np.float32)
        self.dict = {"observation": self.tensor}
        self._mask = np.empty(NUM_ACTIONS, dtype=np.int8)
        self._layout_codes = (layout.memory_code, layout.suits_code, layout.history_code)

    def set_from(self, state: SchnapsenState, player: int) -> None:
        """Write what ``player`` knows into :attr:`tensor`."""
        if state.record is None:
            self.tensor.fill(0)
            return
        codes = state.constants.codes
        encode(state.record, codes, player, *self._layout_codes, 1, self.tensor, self._mask)

    def string_from(self, state: SchnapsenState, player: int) -> str:
        """The same as text: equal texts where the features are equal, and only there."""
        if state.record is None:
            return f"player={player} dealing"
        if self.layout.history:
            return _information_state_text(state.record, state.constants, player)
        self.set_from(state, player)
        words = [f"player={player}"]
        for name, value in describe(self.tensor, self.layout).items():
            if isinstance(value, list):
                names = cast("list[str]", value)
                words.append(f"{name}={''.join(names) or '-'}")
            else:
                words.append(f"{name}={value}")
        return " ".join(words)


_ACTION_TEXTS: Final = tuple(
    f"play {action_text(action)}"
    if action < FIRST_DECLARE
    else f"declare {SUITS[action - FIRST_DECLARE]}"
    if action < EXCHANGE
    else action_text(action)
    for action in range(NUM_ACTIONS)
)


def _information_state_text(record: Record, constants: Constants, player: int) -> str:
    """All that ``player`` has been shown, in order: a text of perfect recall.

    The hand is the present one; with the draws and the actions it gives the hand at the deal.
    """

    def texts(cards: Iterable[int]) -> str:
        return "".join(card_text(card) for card in cards if card != r.NONE) or "-"

    words = [
        f"player={player}",
        f"forehand={int(record[r.FOREHAND])}",
        f"turned_up={texts([int(first_turned_up(record))])}",
        f"hand={texts(cards_of(int(record[r.HAND + player])))}",
        f"draws={texts(int(own_draw(record, player, trick)) for trick in range(HAND_SIZE))}",
    ]
    if record[r.FROM_POSITION]:
        # What was known when the record began is in no list of actions, so the observation is
        # added: its whole numbers, two digits each.
        numbers = np.empty(DEFAULT_LAYOUT.size, dtype=np.uint8)
        mask = np.empty(NUM_ACTIONS, dtype=np.int8)
        encode(record, constants.codes, player, *_DEFAULT_CODES, 0, numbers, mask)
        words.append(f"seen={numbers.tobytes().hex()}")
    for index in range(int(record[r.NUM_TAKEN])):
        action, seat = event(record, index)
        words.append(f"{int(seat)}:{action_text(int(action))}")
    return " ".join(words)


def _deck_of(record: Record) -> list[int]:
    """The deck of a dealt record, 20 card ids in the order of the deal."""
    return [
        int(record[r.DECK + word]) >> (r.CARD_BITS * place) & r.CARD_WORD
        for word in range(2)
        for place in range(r.CARDS_PER_DECK_WORD)
    ]


# ------------------------------------------------------------------------------------- players


class AgentBot(pyspiel.Bot):
    """One of our agents as an OpenSpiel bot.

    Args:
        agent: anything with ``act(observation, action_mask)``, such as ``agents.load("heuristic")``
            or :class:`~schnapsen_env.opponents.HeuristicOpponent`.

    Raises:
        TypeError: the agent has no ``act``.
    """

    def __init__(self, agent: Any) -> None:
        if not callable(getattr(agent, "act", None)):
            raise TypeError(f"an agent needs act(observation, action_mask); {agent!r} has none")
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.agent = agent

    def step(self, state: SchnapsenState) -> int:
        """The agent's action for the player to move.

        Raises:
            TypeError: the state is of another game.
            ValueError: it is at a chance node or at its end, or the agent's action is illegal.
        """
        record = _record_to_move(state)
        observation = np.empty(DEFAULT_LAYOUT.size, dtype=np.float32)
        mask = np.empty(NUM_ACTIONS, dtype=np.int8)
        seat = int(record[r.TO_MOVE])
        encode(record, state.constants.codes, seat, *_DEFAULT_CODES, 1, observation, mask)
        action = int(self.agent.act(observation, mask))
        if not 0 <= action < NUM_ACTIONS or not mask[action]:
            legal = " ".join(str(number) for number in np.flatnonzero(mask))
            name = type(self.agent).__name__
            raise ValueError(f"{name} has answered with {action}, but legal are {legal}")
        return action

    def provides_policy(self) -> bool:
        """No: an agent gives an action, not probabilities."""
        return False

    def restart_at(self, state: Any) -> None:
        """Do nothing: an agent carries nothing from one position to the next."""

    def restart(self) -> None:
        """Do nothing, for the same reason."""


def _record_to_move(state: Any) -> Record:
    if not isinstance(state, SchnapsenState):
        raise TypeError(f"the bot plays {NAME}, it cannot be asked about {type(state).__name__}")
    if state.record is None or state.record[r.END_REASON]:
        raise ValueError("the bot was asked where no player is to move")
    return state.record


class BotAgent:
    """An OpenSpiel bot as one of our agents: ``act`` and ``act_batch``.

    An agent is shown an observation, a bot a state. The bot therefore gets a state that looks to
    the player to move as the observation says, with the hidden cards dealt at random; a bot that
    looks at hidden cards sees nothing true. The state has no OpenSpiel history.

    Args:
        bot: a bot that answers from the state alone, and at either seat. If it has
            ``reseed(seed)``, :meth:`reset` calls that.
        game: the game that the bot was made for, and whose rules are played.
        seed: where the random choice of hidden cards starts.

    Raises:
        TypeError: the bot is a search of OpenSpiel's C++ library, which ends the process on a game
            written in Python.
    """

    def __init__(self, bot: Any, game: SchnapsenGame, seed: int = 0) -> None:
        if isinstance(bot, _CRASHING):
            raise TypeError(_refusal(type(bot).__name__))
        self.bot = bot
        self.game = game
        self._sampled = engine.new_record(seed)

    def reset(self, seed: int) -> None:
        """Begin the random choices anew: those of hidden cards, and the bot's by its ``reseed``."""
        self._sampled = engine.new_record(seed)
        if callable(reseed := getattr(self.bot, "reseed", None)):
            reseed(seed)

    def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[np.int8]) -> int:
        """The bot's action for one observation ``[F]`` of the default layout and mask ``[27]``.

        Raises:
            ValueError: a shape is wrong, or nothing is legal.
        """
        shapes = (np.shape(observation), np.shape(action_mask))
        if shapes != ((DEFAULT_LAYOUT.size,), (NUM_ACTIONS,)):
            raise ValueError(
                f"an observation of the default layout has shape ({DEFAULT_LAYOUT.size},) and a "
                f"mask ({NUM_ACTIONS},), not {shapes[0]} and {shapes[1]}"
            )
        if not np.any(action_mask):
            raise ValueError("the action mask is all zeros: ask an agent only when it is to move")
        seen = decode(
            np.ascontiguousarray(observation, dtype=np.float32),
            np.ascontiguousarray(action_mask, dtype=np.int8),
        )
        sample_deal(seen, self.game.constants.codes, 0, self._sampled)
        return int(self.bot.step(self.game.state_from_record(self._sampled)))

    def act_batch(
        self, observations: npt.NDArray[Any], action_masks: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int64]:
        """The actions for observations ``[N, F]`` and masks ``[N, 27]``, ``int64[N]``.

        Raises:
            ValueError: as for :meth:`act`.
        """
        rows = zip(observations, action_masks, strict=True)
        return np.array([self.act(seen, mask) for seen, mask in rows], dtype=np.int64)


def ismcts_bot(simulations: int = 100, seed: int = 0, exploration: float = 2.0) -> Any:
    """OpenSpiel's information-set Monte Carlo tree search (its Python form) for this game.

    Args:
        simulations: deals played out for each decision.
        seed: of its random choices and of the hidden cards that it deals.
        exploration: the constant of UCT, in game points.
    """
    ismcts: Any = require("open_spiel.python.algorithms.ismcts", "openspiel")
    mcts: Any = require("open_spiel.python.algorithms.mcts", "openspiel")
    chance = np.random.RandomState()

    def reseed(seed: int) -> None:
        low, high = seed % 2**32, seed % 2**64 >> 32  # RandomState takes words of 32 bits
        chance.seed([low, high] if high else low)

    reseed(seed)

    class Search(ismcts.ISMCTSBot):
        """Each search starts from nothing, so there is nothing to do before a deal."""

        def restart(self) -> None:
            self.reset()

        def restart_at(self, state: Any) -> None:  # noqa: ARG002 - OpenSpiel's signature
            self.reset()

        def reseed(self, seed: int) -> None:
            """Begin the random choices anew, as those of a bot made with ``seed``."""
            reseed(seed)

    bot: Any = Search(
        game=None,
        evaluator=mcts.RandomRolloutEvaluator(n_rollouts=1, random_state=chance),
        uct_c=exploration,
        max_simulations=simulations,
        random_state=chance,
    )

    def resample(state: SchnapsenState, player: int) -> SchnapsenState:
        return state.resample_from_infostate(player, chance.random_sample)

    bot.set_resampler(resample)
    return bot


def ismcts_agent(
    rules: str | Rules = "duel", seed: int = 0, simulations: int = 100, exploration: float = 2.0
) -> BotAgent:
    """:func:`ismcts_bot` as an agent, for ``python:`` specs as well.

    Args:
        rules: one of the named rule sets.
        seed: see :func:`ismcts_bot`.
        simulations: see :func:`ismcts_bot`.
        exploration: see :func:`ismcts_bot`.

    Raises:
        ValueError: a rule set that has no name in :data:`~schnapsen_env.rules.RULES`.
    """
    chosen = resolve_rules(rules)
    if RULES.get(chosen.name) != chosen:
        raise ValueError(
            f"OpenSpiel games are loaded by name, so the rule set {chosen.name!r} cannot be "
            f"played: choose one of {', '.join(RULES)}"
        )
    game = SchnapsenGame({"rules": chosen.name})
    return BotAgent(ismcts_bot(simulations, seed, exploration), game, seed)


# ------------------------------------------------------------------------------- registration

#: Bots of OpenSpiel's C++ library whose ``step`` gives the interpreter's lock away and then calls
#: the game's Python code, which ends the process (OpenSpiel 2.0.2).
_CRASHING: Final = tuple(
    getattr(pyspiel, name) for name in ("ISMCTSBot", "MCTSBot") if hasattr(pyspiel, name)
)


def _refusal(bot: str) -> str:
    return (
        f"pyspiel.{bot} ends the process on games written in Python: use "
        f"open_spiel.python.algorithms.{bot.removesuffix('Bot').lower()}.{bot}, or ismcts_bot() "
        "of schnapsen_env.integrations.open_spiel"
    )


def _refuse_our_states(bot: Any) -> None:
    """Make a C++ bot raise a ``TypeError`` for our states; it plays others as before."""
    step = bot.step
    if inspect.isfunction(step):  # done by an earlier import
        return

    @wraps(step)
    def checked_step(self: Any, state: Any) -> Any:
        if isinstance(state, SchnapsenState):
            raise TypeError(_refusal(bot.__name__))
        return step(self, state)

    bot.step = checked_step


def register() -> None:
    """Register the game in OpenSpiel, once."""
    if NAME not in pyspiel.registered_names():
        pyspiel.register_game(_GAME_TYPE, SchnapsenGame)
    for bot in _CRASHING:
        _refuse_our_states(bot)


register()
