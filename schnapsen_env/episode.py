"""What every environment adds to the rules: settings, how an episode begins, what it rewards.

An *episode* is one deal or one match. The environments (:mod:`schnapsen_env.env`,
:mod:`schnapsen_env.single_agent` and its batch) differ in who is asked for actions and in the shape
of what they return; everything that they must agree on is here.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from schnapsen_env import engine
from schnapsen_env.actions import NUM_ACTIONS
from schnapsen_env.cards import NUM_CARDS
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.play import choose_forehand, shuffle
from schnapsen_env.integers import as_integer
from schnapsen_env.observation import Layout, Memory, Suits, encode, natural_action
from schnapsen_env.position import EndReason, read_position
from schnapsen_env.rules import Rules, resolve_rules

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]
Switches = npt.NDArray[np.int64]

#: The places of the settings in the array of :meth:`Settings.switches`.
MEMORY, SUITS, HISTORY, IS_MATCH, BY_WIN, RAISES, ALLOWS_REVOKE = range(7)
NUM_SWITCHES: Final = 7

Episode = Literal["deal", "match"]
Reward = Literal["game_points", "win"]
IllegalAction = Literal["lose", "raise", "revoke"]

#: What an illegal action costs with ``illegal_action="lose"``; the other player gets 0.
ILLEGAL_REWARD: Final = -3

_ILLEGAL: Final = int(EndReason.ILLEGAL_ACTION)
_REASON_TEXTS: Final = tuple(reason.text for reason in EndReason)


@dataclass(frozen=True)
class Settings:
    """What an environment was made with; none of it changes at a reset.

    Args:
        rules: the rule set.
        episode: ``"deal"`` or ``"match"``.
        reward: ``"game_points"`` - signed game points at the end of each deal; ``"win"`` - 1 or -1
            at the end of the episode, 0 if it was drawn.
        illegal_action: ``"lose"`` - the episode ends, the offender gets -3 and the other 0;
            ``"raise"`` - :class:`~schnapsen_env.engine.IllegalActionError`, nothing changes;
            ``"revoke"`` - a held card that the strict phase forbids costs the deal, anything else
            is treated as by ``"lose"``.
        layout: what observations hold.

    Raises:
        ValueError: an unknown value, or ``"revoke"`` under rules that do not know it.
    """

    rules: Rules
    episode: Episode
    reward: Reward
    illegal_action: IllegalAction
    layout: Layout

    def __post_init__(self) -> None:
        _choose("episode", self.episode, get_args(Episode))
        _choose("reward", self.reward, get_args(Reward))
        _choose("illegal_action", self.illegal_action, get_args(IllegalAction))
        if self.illegal_action == "revoke" and self.rules.revoke != "loses":
            raise ValueError(
                f"illegal_action='revoke' needs rules with revoke='loses', and {self.rules.name!r} "
                f"has revoke={self.rules.revoke!r}: choose rules='austrian', "
                "dataclasses.replace(rules, revoke='loses'), or illegal_action='lose'"
            )

    @property
    def is_match(self) -> bool:
        """Whether an episode is a match."""
        return self.episode == "match"

    def switches(self) -> Switches:
        """The settings as compiled functions read them, ``int64[NUM_SWITCHES]``; a new array."""
        switches = np.zeros(NUM_SWITCHES, dtype=np.int64)
        switches[MEMORY] = self.layout.memory_code
        switches[SUITS] = self.layout.suits_code
        switches[HISTORY] = self.layout.history_code
        switches[IS_MATCH] = self.is_match
        switches[BY_WIN] = self.reward == "win"
        switches[RAISES] = self.illegal_action == "raise"
        switches[ALLOWS_REVOKE] = self.illegal_action == "revoke"
        return switches

    @property
    def max_actions(self) -> int | None:
        """The most actions of an episode, or None if there is no bound.

        27 a deal. Each deal that is not drawn brings someone nearer to the target, so a match has
        at most ``2 * target - 1`` of them; where deals can be drawn a match has no bound.
        """
        if not self.is_match:
            return engine.MAX_ACTIONS_PER_DEAL
        if self.rules.exhausted == "claim_or_draw":
            return None
        return engine.MAX_ACTIONS_PER_DEAL * (2 * self.rules.target - 1)


def _choose(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(known)}")


def make_settings(
    rules: str | Rules,
    episode: Episode,
    *,
    reward: Reward,
    illegal_action: IllegalAction,
    memory: Memory,
    suits: Suits,
    history: bool,
    target: int | None,
) -> Settings:
    """Settings from the arguments of an environment.

    Args:
        rules: a name of :data:`~schnapsen_env.rules.RULES` or a rule set.
        episode: see :class:`Settings`.
        reward: see :class:`Settings`.
        illegal_action: see :class:`Settings`.
        memory: see :class:`~schnapsen_env.observation.Layout`.
        suits: see :class:`~schnapsen_env.observation.Layout`.
        history: see :class:`~schnapsen_env.observation.Layout`.
        target: game points that win a match, instead of those of ``rules``.

    Raises:
        ValueError: an unknown value or a combination that makes no sense.
        TypeError: ``rules`` is neither a name nor a rule set.
    """
    chosen = resolve_rules(rules)
    if target is not None:
        chosen = replace(chosen, target=target)
    return Settings(chosen, episode, reward, illegal_action, Layout(memory, suits, history))


# ---------------------------------------------------------------------------------- beginning


def random_seed() -> int:
    """A seed from the operating system, for a first reset without one."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def seed_number(seed: Any) -> int:
    """Check a seed and return it as a plain integer.

    Raises:
        TypeError: not an integer; a bool is none.
    """
    number = as_integer(seed)
    if number is None:
        raise TypeError(f"a seed is an integer or None, not {seed!r}: pass an int")
    return number


def check_options(options: Any) -> dict[str, Any]:
    """A copy of the options of a reset; none if they are None.

    Raises:
        ValueError: not a dict.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ValueError(f"options is a dict from names to values, or None, not {options!r}")
    return dict(cast("Mapping[str, Any]", options))


def start(
    record: Record | None, settings: Settings, seed: int | None, options: Mapping[str, Any] | None
) -> Record:
    """The record of a new episode, ``int64[RECORD_SIZE]``; ``record`` itself is left alone.

    Args:
        record: the record of the last episode, whose random stream goes on; None for a first one.
        settings: the settings of the environment.
        seed: starts a new random stream.
        options: ``deck`` (20 card ids), ``forehand`` (0 or 1) or ``position`` (a
            :class:`~schnapsen_env.position.Position`, its dict or its text) of the first deal.
            Other keys are ignored.

    Raises:
        TypeError: ``seed`` is not an integer, or ``position`` is none of the three.
        ValueError: ``options`` is no dict, or an option makes no deal, and why.
    """
    options = check_options(options)
    if seed is not None:
        new = engine.new_record(seed_number(seed))
    elif record is None:
        new = engine.new_record(random_seed())
    else:
        new = record.copy()
    engine.new_match(new)
    for many in ("decks", "forehands", "positions"):
        if options.get(many) is not None:
            one = many.removesuffix("s")
            raise ValueError(f"options: {many} is for many deals at once: give {one} here")
    position, deck, forehand = (options.get(key) for key in ("position", "deck", "forehand"))
    if position is not None:
        if deck is not None or forehand is not None:
            raise ValueError("options: give a position, or a deck and a forehand, not both")
        return _start_from_position(new, settings, position)
    if deck is None and forehand is None:
        engine.deal(new)
        return new
    # Both are drawn even if one is given, so that the other is what the seed deals without options.
    drawn_forehand = choose_forehand(new)
    drawn_deck = np.empty(NUM_CARDS, dtype=np.int64)
    shuffle(new, drawn_deck)
    engine.deal_deck(
        new,
        drawn_deck if deck is None else engine.parse_deck(deck),
        drawn_forehand if forehand is None else _parse_forehand(forehand),
    )
    return new


def _parse_forehand(forehand: Any) -> int:
    seat = as_integer(forehand)
    if seat not in (0, 1):
        raise ValueError(f"forehand is 0 or 1, not {forehand!r}")
    return seat


def _start_from_position(record: Record, settings: Settings, given: Any) -> Record:
    position = read_position(given)
    if position.result is not None:
        raise ValueError(f"position: the deal is over, nothing can be played: {position}")
    new = engine.record_of(position, settings.rules)
    new[r.RANDOM] = record[r.RANDOM]
    if settings.is_match and engine.match_winner(new, settings.rules.codes()) != r.NONE:
        raise ValueError(
            f"position: match_score {position.match_score} has reached the target "
            f"{settings.rules.target}, the match is over"
        )
    return new


# -------------------------------------------------------------------------------------- acting


def action_number(action: Any) -> int:
    """Check the kind of an action and return it as a plain integer, of whatever size.

    Python, numpy and torch integers are taken, and arrays and tensors without a dimension.

    Raises:
        TypeError: a float, a bool, a text, None, or an array with a dimension; the message says
            what to pass instead.
    """
    if type(action) is int:
        return action
    if action is None:
        raise TypeError(
            "None is the action of an agent that is done; this one is to move: pass an action id "
            "that its action mask allows"
        )
    if isinstance(action, str):
        raise TypeError(
            f"an action is an integer, not the text {action!r}: pass "
            f"schnapsen_env.actions.parse_action({action!r})"
        )
    if isinstance(action, bool) or "bool" in str(getattr(action, "dtype", "")):
        raise TypeError(f"an action is an integer, not the bool {action!r}: pass int(action)")
    shape = tuple(getattr(action, "shape", ()))
    if shape:
        raise TypeError(
            f"an action is one integer, not an array of shape {shape}: pass int(action.item()), or "
            "step each environment with its own element"
        )
    try:
        return operator.index(action)
    except TypeError:
        kind = getattr(action, "dtype", type(action).__name__)
        raise TypeError(
            f"an action is an integer, not {action!r} of type {kind}: pass int(action)"
        ) from None


def illegal_action_error(
    record: Record, settings: Settings, action: int, row: int | None = None
) -> Exception:
    """The error for an action that the player to move may not take, out of range or not.

    ``row`` is where the deal stands in a batch, and None if it stands in none.
    """
    natural = action
    layout = settings.layout
    if 0 <= action < NUM_ACTIONS:
        codes = settings.rules.codes()
        natural = natural_action(
            record, codes, layout.memory_code, layout.suits_code, layout.history_code, action
        )
    try:
        engine.apply(record.copy(), settings.rules, int(natural))
    except engine.IllegalActionError as error:
        if natural != action:
            error.add_note(f"The action was given as {action}, with suits={layout.suits!r}.")
        if row is not None:
            error.args = (f"row {row}: {error}",)
        return error
    return RuntimeError(f"action {action} is legal")


@compiled
def take(record: Record, codes: Codes, switches: Switches, action: int) -> bool:
    """Take ``action``, named in the mover's own order of suits, if it may be taken.

    Args:
        record: a running deal, ``int64[RECORD_SIZE]``; changed in place.
        codes: ``Rules.codes()``.
        switches: ``Settings.switches()``.
        action: 0-26.

    Returns:
        False, with the record untouched, if it is illegal.
    """
    natural = natural_action(
        record, codes, switches[MEMORY], switches[SUITS], switches[HISTORY], action
    )
    is_legal = engine.legal(record, codes) >> natural & 1
    return take_natural(record, codes, switches, natural, is_legal)


@compiled
def take_natural(
    record: Record, codes: Codes, switches: Switches, natural: int, is_legal: int
) -> bool:
    """:func:`take` for a natural action of which it is known whether it is legal."""
    if is_legal:
        engine.step(record, codes, natural)
        return True
    if switches[ALLOWS_REVOKE] and engine.is_revoke(record, codes, natural):
        engine.revoke(record, codes, natural)
        return True
    return False


@compiled
def end_by_illegal_action(record: Record) -> None:
    """End the episode: the player to move has taken an illegal action."""
    record[r.END_REASON] = _ILLEGAL
    record[r.WINNER] = r.NONE
    record[r.GAME_POINTS] = 0


#: What :func:`advance` answers to an illegal action.
REFUSED: Final = -1


@compiled
def advance(
    record: Record,
    codes: Codes,
    switches: Switches,
    action: int,
    out: npt.NDArray[np.float32],
    mask: npt.NDArray[np.int8],
) -> int:
    """:func:`take`, and write what the next player sees; one call, for the AEC environment.

    Args:
        record: as for :func:`take`.
        codes: as for :func:`take`.
        switches: as for :func:`take`.
        action: as for :func:`take`.
        out: ``float32[F]``, for the observation of the next player.
        mask: ``int8[27]``, for its mask.

    Returns:
        ``2 * end_reason + seat to move``, or :data:`REFUSED`.
    """
    if not take(record, codes, switches, action):
        return REFUSED
    to_move = record[r.TO_MOVE]
    memory, suits, history = switches[MEMORY], switches[SUITS], switches[HISTORY]
    encode(record, codes, to_move, memory, suits, history, 1, out, mask)
    return 2 * record[r.END_REASON] + to_move


# -------------------------------------------------------------------------------------- ending


@compiled
def is_episode_over(record: Record, codes: Codes, switches: Switches) -> bool:
    """Whether the episode is over; asked after an action."""
    reason = record[r.END_REASON]
    if not switches[IS_MATCH] or reason in (0, _ILLEGAL):
        return reason != 0
    return engine.match_winner(record, codes) != r.NONE


@compiled
def counted_points(record: Record, seat: int) -> int:
    """Signed game points of ``seat`` for the finished deal, -3 or 0 after an illegal action."""
    if record[r.END_REASON] == _ILLEGAL:
        return ILLEGAL_REWARD if record[r.TO_MOVE] == seat else 0
    return engine.game_points(record, seat)


@compiled
def reward_of(record: Record, codes: Codes, switches: Switches, seat: int) -> int:
    """The reward of ``seat`` for the finished deal."""
    counted = counted_points(record, seat)
    if not switches[BY_WIN] or record[r.END_REASON] == _ILLEGAL:
        return counted
    if switches[IS_MATCH] and engine.match_winner(record, codes) == r.NONE:
        return 0
    return min(max(counted, -1), 1)


def deal_info(record: Record, settings: Settings, seat: int) -> dict[str, Any]:
    """What infos say to ``seat`` about a deal in the step that ended it."""
    reason = int(record[r.END_REASON])
    info: dict[str, Any] = {
        "game_points": int(counted_points(record, seat)),
        "end_reason": _REASON_TEXTS[reason],
    }
    if reason == _ILLEGAL:
        info["illegal_action"] = bool(record[r.TO_MOVE] == seat)
    return info | match_info(record, settings)


def match_info(record: Record, settings: Settings) -> dict[str, Any]:
    """What infos say about the match, in the step that ended one of its deals."""
    if not settings.is_match:
        return {}
    info: dict[str, Any] = {
        "match_score": [int(record[r.MATCH_SCORE]), int(record[r.MATCH_SCORE + 1])]
    }
    if engine.match_winner(record, settings.rules.codes()) != r.NONE:
        info["match_result"] = engine.match_result(record, settings.rules)
    return info
