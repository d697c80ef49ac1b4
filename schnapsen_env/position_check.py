"""Whether the parts of a position agree with each other and with some course of play.

Nothing here depends on a rule set. A position that play can reach under any of them passes, and so
does all that play can make of a position that has passed; what is refused, no deal under any rules
can have brought about. (What one rule set excludes, such as going on with 66 points where claims
are automatic, :func:`schnapsen_env.engine.record_of` refuses.)

One thing passes that play cannot bring about: forehand on lead without a trick when the other seat
has some. The texts' question what a closer without a trick pays to an opponent who had one begins
there.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any, Final, NoReturn, cast

from schnapsen_env.cards import (
    ALL_CARDS,
    CARD_POINTS,
    HAND_SIZE,
    KING,
    NUM_CARDS,
    NUM_RANKS,
    QUEEN,
    SUITS,
    TALON_SIZE,
    card_set,
    card_text,
    marriage_value,
    set_card_points,
)
from schnapsen_env.integers import as_integer
from schnapsen_env.position_parts import AtClose, EndReason, Pair, Parts, Result
from schnapsen_env.rules import (
    LAST_TRICK_VALUE,
    MAX_LAST_TRICK_BONUS,
    OUT_POINTS,
    value_of_fault,
)

#: The largest ``match_score``: nine digits, far beyond any match and safe to go on adding to.
MOST_MATCH_SCORE: Final = 999_999_999
#: The largest of all other counts; none comes near it.
_MOST_POINTS: Final = 999
_NUM_SUITS: Final = len(SUITS)


def _refuse(reason: str) -> NoReturn:
    raise ValueError(f"position: {reason}")


def check(position: Parts) -> None:
    """Raise ValueError unless the parts agree; all numbers are plain integers, see :func:`plain`.

    The message begins with ``position:`` and says which parts do not agree.
    """
    _check_places(position)
    _check_talon(position)
    _check_hand_sizes(position)
    _check_last_trick(position)
    _check_tricks(position)
    _check_leader(position)
    _check_marriages(position)
    _check_leads(position)
    _check_knowledge(position)
    _check_closing(position)
    _check_result(position)


# ------------------------------------------------------------------------------------ numbers


def _number(name: str, value: Any, most: int, allowed: str) -> int:
    number = as_integer(value)
    if number is None or not 0 <= number <= most:
        _refuse(f"{name} is {allowed}, not {value!r}")
    return number


def _seat(name: str, value: Any) -> int:
    return _number(name, value, 1, "0 or 1")


def _card(value: Any) -> int:
    card = as_integer(value)
    if card is None or not 0 <= card < NUM_CARDS:
        _refuse(f"{value!r} is not a card id")
    return card


def _suit(name: str, value: Any) -> int:
    return _number(name, value, _NUM_SUITS - 1, "0-3")


def _items(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        _refuse(f"{name} is a tuple, not {value!r}")
    return tuple(cast("Iterable[Any]", value))


def _pair(name: str, value: Any) -> Pair[Any]:
    items = _items(name, value)
    if len(items) != 2:
        _refuse(f"{name} has two items, one a seat, not {value!r}")
    return items[0], items[1]


def _cards(name: str, value: Any) -> tuple[int, ...]:
    return tuple(_card(card) for card in _items(name, value))


def _suits(name: str, value: Any) -> tuple[int, ...]:
    return tuple(_suit(name, suit) for suit in _items(name, value))


def _at_close(value: Any) -> AtClose:
    if not isinstance(value, AtClose):
        _refuse(f"at_close is an AtClose, not {value!r}")
    counts = (value.tricks, value.points, value.card_points)
    return AtClose(*(_number("at_close", count, _MOST_POINTS, "counts from 0") for count in counts))


def _result(value: Any) -> Result:
    if not isinstance(value, Result):
        _refuse(f"result is a Result, not {value!r}")
    if not isinstance(cast("Any", value.end_reason), EndReason):
        _refuse(f"the end_reason of result is an EndReason, not {value.end_reason!r}")
    winner = None if value.winner is None else _seat("the winner of result", value.winner)
    points = _number("result", value.game_points, _MOST_POINTS, "0 to 3 game points")
    return Result(winner, points, value.end_reason)


def plain(position: Parts) -> dict[str, Any]:
    """All fields with their numbers as plain integers and their lists as tuples.

    Raises:
        ValueError: a number is a float, a bool or out of its range; the message names the field.
    """

    def optional(read: Any, *arguments: Any) -> Any:
        return None if arguments[-1] is None else read(*arguments)

    fields: dict[str, Any] = {
        "trump_suit": _suit("trump_suit", position.trump_suit),
        "turned_up": optional(_card, position.turned_up),
        "talon": _cards("talon", position.talon),
        "at_close": optional(_at_close, position.at_close),
        "leader": _seat("leader", position.leader),
        "lead": optional(_card, position.lead),
        "declared": optional(_suit, "declared", position.declared),
        "last_trick": optional(_pair, "last_trick", position.last_trick),
        "forehand": _seat("forehand", position.forehand),
        "result": optional(_result, position.result),
    }
    if fields["last_trick"] is not None:
        fields["last_trick"] = _cards("last_trick", fields["last_trick"])
    if position.closed_by is not None:
        closer = _number("closed_by", position.closed_by, 1, "null, 0 or 1")
        fields["closed_by"] = closer
    for name in ("hands", "won", "known", "cannot_hold"):
        if (value := getattr(position, name)) is not None:
            fields[name] = tuple(_cards(name, cards) for cards in _pair(name, value))
    for name in ("card_points", "tricks", "match_score"):
        most = MOST_MATCH_SCORE if name == "match_score" else _MOST_POINTS
        fields[name] = tuple(
            _number(name, count, most, f"two whole numbers from 0 to {most}")
            for count in _pair(name, getattr(position, name))
        )
    fields["marriages"] = tuple(
        _suits("marriages", suits) for suits in _pair("marriages", position.marriages)
    )
    return fields


# ------------------------------------------------------------------------------------- places


def _places(position: Parts) -> list[tuple[str, Iterable[int]]]:
    places: list[tuple[str, Iterable[int]]] = [
        ("the hand of seat 0", position.hands[0]),
        ("the hand of seat 1", position.hands[1]),
        ("the talon", position.talon),
    ]
    if position.turned_up is not None:
        places.append(("turned_up", (position.turned_up,)))
    if position.lead is not None:
        places.append(("lead", (position.lead,)))
    if position.won is not None:
        places += [
            ("the tricks of seat 0", position.won[0]),
            ("the tricks of seat 1", position.won[1]),
        ]
    return places


def _check_places(position: Parts) -> None:
    seen: dict[int, str] = {}
    for place, cards in _places(position):
        for card in cards:
            if card in seen:
                _refuse(f"{card_text(card)} is in {seen[card]} and in {place}")
            seen[card] = place
    tricks_won = sum(position.tricks)
    if position.won is None and len(seen) + 2 * tricks_won != NUM_CARDS:
        _refuse(
            f"{len(seen)} cards and two in each of {tricks_won} tricks make "
            f"{len(seen) + 2 * tricks_won} cards, not {NUM_CARDS}"
        )
    if position.won is not None and len(seen) != NUM_CARDS:
        missing = min(set(range(NUM_CARDS)) - set(seen))
        _refuse(f"{card_text(missing)} is nowhere")


def _check_talon(position: Parts) -> None:
    face_down = len(position.talon)
    if face_down > TALON_SIZE or (face_down and face_down % 2 == 0):
        _refuse(f"the talon holds 9, 7, 5, 3, 1 or 0 face-down cards, not {face_down}")
    if (position.turned_up is None) != (face_down == 0):
        _refuse("turned_up is null exactly when the talon is empty")
    if position.turned_up is not None and position.turned_up // NUM_RANKS != position.trump_suit:
        _refuse(f"turned_up {card_text(position.turned_up)} is not of the trump suit")
    if position.closed_by is not None and face_down == 0:
        _refuse("a closed talon still has its face-down cards")


def _tricks_with_draw(position: Parts) -> int:
    return (TALON_SIZE - len(position.talon) + 1) // 2


def _check_hand_sizes(position: Parts) -> None:
    sizes = [len(hand) for hand in position.hands]
    if position.lead is not None:
        sizes[position.leader] += 1
    if sizes[0] != sizes[1]:
        _refuse(f"hands of {len(position.hands[0])} and {len(position.hands[1])} cards do not fit")
    face_down = len(position.talon)
    without_draw = sum(position.tricks) - _tricks_with_draw(position)
    most_without_draw = HAND_SIZE
    if position.talon_state == "OPEN":  # nobody draws after the trick that ends a deal
        most_without_draw = 0 if position.result is None else 1
    if not 0 <= without_draw <= most_without_draw:
        _refuse(f"{sum(position.tricks)} tricks and {face_down} face-down cards do not fit")
    if sizes[0] != HAND_SIZE - without_draw:
        _refuse(f"{sum(position.tricks)} tricks and hands of {sizes[0]} cards do not fit")
    if position.result is None and not any(sizes):
        _refuse("both hands are empty and no result is given")


# ----------------------------------------------------------------------------- tricks and leads


def _check_last_trick(position: Parts) -> None:
    if position.last_trick is None:
        return
    if len(set(position.last_trick)) != 2 or sum(position.tricks) == 0:
        _refuse("last_trick is two cards of a completed trick")
    if card_set(position.last_trick) & ~played_cards(position):
        _refuse("a card of last_trick has not been played")
    won = position.won
    if won is not None and not any(set(position.last_trick) <= set(cards) for cards in won):
        _refuse("the cards of last_trick are not in the tricks of one player")
    if won is not None and not set(position.last_trick) <= set(won[position.leader]):
        winner = 1 - position.leader
        _refuse(f"seat {winner} has won last_trick, so it leads, not seat {position.leader}")


def _check_tricks(position: Parts) -> None:
    tricks, card_points, won = position.tricks, position.card_points, position.won
    if won is None:
        if split_won(position) is None:
            _refuse(
                f"no {tricks[0]} and {tricks[1]} tricks of the cards played, which count "
                f"{set_card_points(played_cards(position))}, make {card_points}"
            )
        return
    for seat in (0, 1):
        if len(won[seat]) != 2 * tricks[seat]:
            _refuse(f"seat {seat} has {tricks[seat]} tricks and {len(won[seat])} cards in them")
        bonus = card_points[seat] - set_card_points(card_set(won[seat]))
        if not 0 <= bonus <= _most_bonus(position, seat):
            _refuse(
                f"the tricks of seat {seat} make {card_points[seat] - bonus} card points, "
                f"not {card_points[seat]}"
            )


def _is_played_out(position: Parts) -> bool:
    return not any(position.hands) and position.talon_state == "EXHAUSTED"


def _most_bonus(position: Parts, seat: int) -> int:
    """The most card points that no cards explain: what some rules give for the last trick."""
    return MAX_LAST_TRICK_BONUS if _is_played_out(position) and seat == position.leader else 0


def played_cards(position: Parts) -> int:
    """The cards in completed tricks, a set, whether or not ``won`` says whose they are."""
    elsewhere = 0
    for place, cards in _places(position):
        if not place.startswith("the tricks"):
            elsewhere |= card_set(cards)
    return ALL_CARDS & ~elsewhere


def split_won(position: Parts) -> Pair[tuple[int, ...]] | None:
    """The cards won by each seat: as given, or one division of the played cards that fits.

    None if no division of the played cards has the tricks and card points of the position, and the
    last trick with the leader. Points beyond those of the cards are a bonus for the last trick.
    """
    if position.won is not None:
        return position.won
    played = [card for card in range(NUM_CARDS) if played_cards(position) >> card & 1]
    bonus = sum(position.card_points) - sum(CARD_POINTS[card] for card in played)
    if not 0 <= bonus <= _most_bonus(position, position.leader):
        return None
    last = position.last_trick or ()
    first_has = last if position.leader == 0 else ()
    # (cards taken, points) -> the first choice of cards for seat 0 that makes them
    reached = {(len(first_has), set_card_points(card_set(first_has))): tuple(first_has)}
    for card in played:
        if card in last:
            continue
        for (size, total), cards in list(reached.items()):
            reached.setdefault((size + 1, total + CARD_POINTS[card]), (*cards, card))
    first_points = position.card_points[0] - (bonus if position.leader == 0 else 0)
    first = reached.get((2 * position.tricks[0], first_points))
    if first is None:
        return None
    return first, tuple(card for card in played if card not in first)


def _check_leader(position: Parts) -> None:
    """Forehand leads to the first trick, and then the winner of each trick to the next."""
    leader, forehand = position.leader, position.forehand
    if leader == forehand:
        return
    if sum(position.tricks) == 0:
        _refuse(f"no trick has been played, so forehand (seat {forehand}) leads, not seat {leader}")
    if position.tricks[leader] == 0:
        _refuse(f"seat {leader} cannot lead: it has won no trick, and seat {forehand} is forehand")


def is_on_lead(position: Parts, seat: int) -> bool:
    """Whether ``seat`` is about to lead; so it is, too, after the trick that has ended a deal."""
    return position.lead is None and position.leader == seat


def leads_made(position: Parts, seat: int) -> int:
    """How many cards ``seat`` has led: one as forehand, and one after each of its tricks."""
    leads = position.tricks[seat] + (position.forehand == seat)
    return leads - is_on_lead(position, seat)


# ---------------------------------------------------------------------------------- marriages


def _check_marriages(position: Parts) -> None:
    if set(position.marriages[0]) & set(position.marriages[1]):
        _refuse("both players have declared the same marriage")
    for seat in (0, 1):
        if len(set(position.marriages[seat])) != len(position.marriages[seat]):
            _refuse(f"seat {seat} has declared a marriage twice")
        for suit in position.marriages[seat]:
            for card in (NUM_RANKS * suit + QUEEN, NUM_RANKS * suit + KING):
                never_held = (*position.hands[1 - seat], *position.talon, position.turned_up)
                led_by_other = card == position.lead and position.leader != seat
                if card in never_held or led_by_other:
                    _refuse(
                        f"seat {seat} cannot have declared the marriage of {SUITS[suit]}: "
                        f"{card_text(card)} was never in that hand"
                    )
    suit = position.declared
    if suit is not None:
        if suit not in position.marriages[position.leader]:
            _refuse(f"declared {SUITS[suit]} is not among the marriages of the leader")
        if position.lead is not None or not _holds_marriage(position, position.leader, suit):
            _refuse(
                f"declared {SUITS[suit]} needs king and queen in the hand of the leader on lead"
            )


def _holds_marriage(position: Parts, seat: int, suit: int) -> bool:
    return {NUM_RANKS * suit + QUEEN, NUM_RANKS * suit + KING} <= set(position.hands[seat])


def _check_leads(position: Parts) -> None:
    """A marriage is declared on lead, one a lead, and its king or queen is led at once."""
    for seat in (0, 1):
        for suit in position.marriages[seat]:
            is_declared_now = seat == position.leader and suit == position.declared
            if _holds_marriage(position, seat, suit) and not is_declared_now:
                _refuse(
                    f"seat {seat} holds king and queen of {SUITS[suit]} and cannot have declared "
                    f"that marriage: one of the two would have been led (if it is declared for the "
                    f"coming lead, say so with declared)"
                )
        declared_before = len(position.marriages[seat])
        if seat == position.leader and position.declared is not None:
            declared_before -= 1
        leads = leads_made(position, seat)
        if declared_before > leads:
            _refuse(
                f"seat {seat} has declared {declared_before} marriages before this lead and has "
                f"led only {leads} times: forehand (seat {position.forehand}) leads to the first "
                "trick, and then the winner of each"
            )


# ---------------------------------------------------------------------------------- knowledge


def _check_knowledge(position: Parts) -> None:
    for name in ("known", "cannot_hold"):
        for seat, cards in enumerate(getattr(position, name)):
            for index, card in enumerate(cards):
                if card in cards[:index]:
                    _refuse(f"{name} has {card_text(card)} twice for seat {seat}")
    for seat in (0, 1):
        for card in position.known[seat]:
            if card not in position.hands[seat]:
                _refuse(f"known {card_text(card)} is not in the hand of seat {seat}")
        for card in position.cannot_hold[seat]:
            if card in position.hands[seat]:
                _refuse(f"cannot_hold {card_text(card)} is in the hand of seat {seat}")
        if position.cannot_hold[seat] and position.talon_state == "OPEN":
            _refuse("cannot_hold comes from strict-phase replies, and the talon is open")
        if position.cannot_hold[seat] and sum(position.tricks) == _tricks_with_draw(position):
            _refuse("cannot_hold comes from strict-phase replies, and there has been none")


# ------------------------------------------------------------------------------------ closing


def _check_closing(position: Parts) -> None:
    closer, at_close = position.closed_by, position.at_close
    if (closer is None) != (at_close is None):
        _refuse("at_close is given exactly when closed_by is")
    if closer is None or at_close is None:
        return
    if at_close.tricks == 0 and at_close.points:
        _refuse("at_close has points without a trick")
    other = 1 - closer
    if not (possible := _possible_tricks(position, at_close.tricks)):
        _refuse(f"the closer's opponent cannot have had {at_close.tricks} tricks at the closing")
    if not any(_was_on_lead(position, tricks) for tricks in possible):
        _refuse(
            f"seat {closer} cannot have closed: it had won no trick, and seat {other} was "
            "forehand, so it was never on lead"
        )
    if sum(position.tricks) == _tricks_with_draw(position) and position.leader != closer:
        _refuse(
            f"no trick has been played since seat {closer} closed, so it leads, not seat {other}"
        )
    if at_close.card_points not in card_points_at_close(position, at_close.tricks, at_close.points):
        _refuse(
            f"the closer's opponent cannot have had {at_close.points} points "
            f"({at_close.card_points} without marriages) at the closing"
        )


def _possible_tricks(position: Parts, stated: int) -> range:
    """How many tricks the closer's opponent can have had at the closing, if ``stated`` are stated.

    The rules ask only whether there were any, and published positions say 1 for "some". So a number
    above 0 may be too small, but not too large, and 0 is 0.
    """
    closer = position.closed_by or 0
    # All tricks before the closing were followed by a draw, and none after it.
    before = _tricks_with_draw(position)
    least = max(stated, before - position.tricks[closer])
    most = min(position.tricks[1 - closer], before)
    return range(least, (most if stated else 0) + 1)


def _was_on_lead(position: Parts, tricks: int) -> bool:
    """Whether the closer has ever led before the closing, its opponent having won ``tricks``."""
    closer = position.closed_by or 0
    return closer == position.forehand or tricks < _tricks_with_draw(position)


def card_points_at_close(position: Parts, tricks: int, points: int) -> list[int]:
    """The card points that the closer's opponent can have had at the closing, likeliest first.

    The likeliest is that as few of its marriages as possible came before the closing.

    Args:
        position: a closed one; its ``at_close`` is not read.
        tricks: the opponent's tricks at the closing, or fewer.
        points: its points at the closing.
    """
    if tricks == 0:
        return [] if points else [0]
    other = 1 - (position.closed_by or 0)
    possible = [n for n in _possible_tricks(position, tricks) if _was_on_lead(position, n)]
    suits = position.marriages[other]
    found: list[int] = []
    for number in range(len(suits) + 1):
        for earlier in combinations(suits, number):
            worth = sum(marriage_value(suit, position.trump_suit) for suit in earlier)
            if any(_is_course(position, n, earlier, points - worth) for n in possible):
                found.append(points - worth)
    return list(dict.fromkeys(found))


def _is_course(position: Parts, tricks: int, earlier: tuple[int, ...], card_points: int) -> bool:
    """Whether the closer's opponent can have had just this at the closing.

    Args:
        position: a closed one.
        tricks: its tricks.
        earlier: its marriages.
        card_points: its card points.
    """
    other = 1 - (position.closed_by or 0)
    later = position.tricks[other] - tricks
    on_lead = is_on_lead(position, other)
    if on_lead and position.declared in earlier:
        return False
    leads_later = later - (on_lead and position.declared is None)
    return (
        len(earlier) <= tricks + (position.forehand == other)
        and len(position.marriages[other]) - len(earlier) <= leads_later
        and _is_possible(card_points, tricks)
        and _is_possible(position.card_points[other] - card_points, later)
    )


def _is_possible(card_points: int, tricks: int) -> bool:
    """Whether some cards of so many tricks can have so many card points at all."""
    ordered = sorted(CARD_POINTS)
    return sum(ordered[: 2 * tricks]) <= card_points <= sum(ordered[NUM_CARDS - 2 * tricks :])


# ------------------------------------------------------------------------------------- result


def _check_result(position: Parts) -> None:
    result = position.result
    if result is None:
        return
    if (result.winner is None) != (result.game_points == 0):
        _refuse("a result has a winner exactly when it has game points")
    won = result.end_reason not in (EndReason.DRAWN, EndReason.ILLEGAL_ACTION)
    known = result.end_reason is not EndReason.RUNNING
    if not known or won != (result.winner is not None) or not 0 <= result.game_points <= 3:
        _refuse(f"{result} is not the result of a deal")
    if missing := _missing_for(position, result):
        _refuse(f"{result} is not the result of this deal: {missing}")


def _missing_for(position: Parts, result: Result) -> str:
    """What speaks against a deal having ended like this, or nothing."""
    reason, winner = result.end_reason, result.winner
    if winner is None:
        if reason is EndReason.DRAWN and not _is_played_out(position):
            return "a draw needs all cards to be played and the talon to be drawn"
        return _missing_mover(position) if reason is EndReason.ILLEGAL_ACTION else ""
    loser = 1 - winner
    if reason is EndReason.FAILED_CLOSE:
        return "" if position.closed_by == loser else f"seat {loser} has not closed"
    if position.closed_by == loser:
        return f"seat {loser} has closed, so the reason is failed_close"
    if reason is EndReason.SIXTY_SIX:
        points = position.points(winner)
        return "" if points >= OUT_POINTS else f"seat {winner} has only {points} points"
    if reason is EndReason.LAST_TRICK:
        is_last = _is_played_out(position) and position.leader == winner
        if is_last and result.game_points == LAST_TRICK_VALUE:
            return ""
        return "1 game point is for the winner of the last trick of a drawn talon"
    # A wrong claim or a revoke of the player to move.
    if position.to_move != loser:
        return f"seat {winner} was to move, not seat {loser}"
    if result.game_points != value_of_fault(position.tricks[winner]):
        return "it is worth 3 to a winner without a trick and 2 to others"
    if reason is EndReason.WRONG_CLAIM and position.points(loser) >= OUT_POINTS:
        return f"seat {loser} has {position.points(loser)} points, so its claim was right"
    if reason is EndReason.REVOKE and (position.lead is None or position.talon_state == "OPEN"):
        return "a revoke is a reply in the strict phase"
    return _missing_mover(position)


def _missing_mover(position: Parts) -> str:
    return "" if position.hands[position.to_move] else "nobody was to move any more"
