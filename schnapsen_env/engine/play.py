"""Dealing, legality and the effect of each action: the rules of play, each written once.

All functions take a record (:mod:`schnapsen_env.engine.record`) and, where the rules differ between
rule sets, the array of :meth:`schnapsen_env.rules.Rules.codes`. They are compiled and can be called
from compiled code, by a solver on a copied record for instance.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE
from schnapsen_env.cards import (
    HAND_SIZE,
    JACK,
    MARRIAGE_SET,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    SUIT_SET,
    TALON_SIZE,
)
from schnapsen_env.compiled import compiled
from schnapsen_env.engine import record as r
from schnapsen_env.engine.bits import count, member
from schnapsen_env.engine.chance import draw_below
from schnapsen_env.engine.score import (
    POINTS_OF,
    go_out,
    go_out_if_automatic,
    is_out,
    lose_by_rule,
    play_out,
    points,
)
from schnapsen_env.position import EndReason
from schnapsen_env.rules import CODE_INDEX, code_of

Record = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

_MUST_BEAT: Final = CODE_INDEX["must_beat"]
_TRICK_BY: Final = CODE_INDEX["trick_by"]
_CLAIMS: Final = CODE_INDEX["claims"]
_EXCHANGE_MIN: Final = CODE_INDEX["exchange_min"]
_EXCHANGE_WHEN: Final = CODE_INDEX["exchange_when"]
_CLOSE_MIN: Final = CODE_INDEX["close_min"]
_LAST_TRICK_BONUS: Final = CODE_INDEX["last_trick_bonus"]

_BY_VALUE: Final = code_of("trick_by", "value")
_EXCHANGE_ON_TURN: Final = code_of("exchange_when", "turn")
_CLAIM_ON_LEAD: Final = code_of("claims", "lead")
_CLAIM_ON_TURN: Final = code_of("claims", "turn")

_WRONG_CLAIM: Final = int(EndReason.WRONG_CLAIM)
_REVOKE: Final = int(EndReason.REVOKE)


# ------------------------------------------------------------------------------------- dealing


@compiled
def deal_deck(record: Record, deck: Record, forehand: int) -> None:
    """Begin a deal from ``deck``, ``int64[20]``, led by ``forehand``.

    Deck order: forehand's five cards, dealer's five, the turned-up trump, the nine talon cards in
    drawing order. The match score and the random state stay as they are.
    """
    random_state = record[r.RANDOM]
    score_0, score_1 = record[r.MATCH_SCORE], record[r.MATCH_SCORE + 1]
    deal_number = record[r.DEAL_NUMBER] + 1
    record[:] = 0
    record[r.RANDOM] = random_state
    record[r.MATCH_SCORE], record[r.MATCH_SCORE + 1] = score_0, score_1
    record[r.DEAL_NUMBER] = deal_number
    for i in range(HAND_SIZE):
        record[r.HAND + forehand] |= 1 << deck[i]
        record[r.HAND + 1 - forehand] |= 1 << deck[HAND_SIZE + i]
    for i in range(NUM_CARDS):
        word, place = divmod(i, r.CARDS_PER_DECK_WORD)
        record[r.DECK + word] |= deck[i] << (r.CARD_BITS * place)
    turned_up = deck[2 * HAND_SIZE]
    record[r.TRUMP] = turned_up // NUM_RANKS
    record[r.TURNED_UP] = turned_up
    record[r.FACE_DOWN] = TALON_SIZE
    record[r.FOREHAND] = forehand
    record[r.LEADER] = forehand
    record[r.TO_MOVE] = forehand
    record[r.LED] = r.NONE
    record[r.DECLARED] = r.NONE
    record[r.CLOSED_BY] = r.NONE
    record[r.LAST_LEAD] = r.NONE
    record[r.LAST_REPLY] = r.NONE
    record[r.WINNER] = r.NONE
    record[r.DRAWN] = r.NOTHING_DRAWN
    record[r.DRAWN + 1] = r.NOTHING_DRAWN


@compiled
def choose_forehand(record: Record) -> int:
    """Who leads the next deal: by lot in the first of a match, then in turn."""
    if record[r.DEAL_NUMBER] == 0:
        return draw_below(record, 2)
    return 1 - record[r.FOREHAND]


@compiled
def shuffle(record: Record, deck: Record) -> None:
    """Fill ``deck``, ``int64[20]``, with a uniformly random order (Fisher-Yates)."""
    for i in range(NUM_CARDS):
        j = draw_below(record, i + 1)
        deck[i] = deck[j]
        deck[j] = i


@compiled
def deal(record: Record) -> None:
    """Begin a deal with the record's own random generator."""
    forehand = choose_forehand(record)
    deck = np.empty(NUM_CARDS, dtype=np.int64)
    shuffle(record, deck)
    deal_deck(record, deck, forehand)


@compiled
def talon_card(record: Record, place: int) -> int:
    """The talon card at ``place`` of the drawing order, 0-8, counted from the deal."""
    return (record[r.DECK + 1] >> (r.CARD_BITS * (1 + place))) & r.CARD_WORD


# ------------------------------------------------------------------------------------ legality


@compiled
def suit_set(suit: int) -> int:
    """All cards of a suit."""
    return SUIT_SET << (NUM_RANKS * suit)


@compiled
def above(card: int) -> int:
    """The cards of the same suit that beat ``card``."""
    return suit_set(card // NUM_RANKS) & ~((2 << card) - 1)


@compiled
def reply_duties(led: int, trump_suit: int, must_beat: int) -> tuple[int, int, int]:
    """What the strict phase asks of a reply, as three card sets in order of duty.

    The reply must come from the first of them in which the player holds a card, and is free if
    there is none: cards that beat the led one in its suit (the whole suit where nobody must beat),
    cards of the suit, trumps.
    """
    follow = suit_set(led // NUM_RANKS)
    return above(led) if must_beat else follow, follow, suit_set(trump_suit)


@compiled
def dutiful_replies(hand: int, led: int, trump_suit: int, must_beat: int) -> int:
    """The cards of ``hand`` that may answer ``led`` in the strict phase."""
    beat, follow, trumps = reply_duties(led, trump_suit, must_beat)
    if hand & beat:
        return hand & beat
    if hand & follow:
        return hand & follow
    if hand & trumps:
        return hand & trumps
    return hand


@compiled
def ruled_out_by_reply(led: int, reply: int, trump_suit: int, must_beat: int) -> int:
    """The cards that a strict-phase reply shows its player not to hold: the duties passed over."""
    beat, follow, trumps = reply_duties(led, trump_suit, must_beat)
    if beat >> reply & 1:
        return 0
    if follow >> reply & 1:
        return beat
    if trumps >> reply & 1:
        return beat | follow
    return beat | follow | trumps


@compiled
def is_on_lead(record: Record) -> bool:
    """Whether the player to move leads, rather than replies."""
    return record[r.LED] == r.NONE


@compiled
def playable(record: Record, codes: Codes) -> int:
    """The cards that the player to move may play, a set."""
    hand = int(record[r.HAND + int(record[r.TO_MOVE])])
    if not is_on_lead(record):
        if record[r.TALON_STATE] == r.OPEN:
            return hand
        return dutiful_replies(hand, record[r.LED], record[r.TRUMP], codes[_MUST_BEAT])
    if record[r.DECLARED] != r.NONE:
        return hand & (MARRIAGE_SET << (NUM_RANKS * record[r.DECLARED]))
    return hand


@compiled
def declarable(record: Record) -> int:
    """The suits whose marriage the player to move may declare, a set."""
    if not is_on_lead(record) or record[r.DECLARED] != r.NONE:
        return 0
    seat = int(record[r.TO_MOVE])
    hand = record[r.HAND + seat]
    suits = 0
    for suit in range(NUM_SUITS):
        pair = MARRIAGE_SET << (NUM_RANKS * suit)
        if hand & pair == pair:
            suits |= 1 << suit
    return suits & ~record[r.MARRIAGES + seat]


@compiled
def may_exchange(record: Record, codes: Codes) -> bool:
    """Whether the player to move may exchange the trump jack for the turned-up card."""
    if record[r.TALON_STATE] != r.OPEN or record[r.FACE_DOWN] < codes[_EXCHANGE_MIN]:
        return False
    if record[r.DECLARED] != r.NONE:
        return False
    if codes[_EXCHANGE_WHEN] != _EXCHANGE_ON_TURN and not is_on_lead(record):
        return False
    trump_jack = NUM_RANKS * record[r.TRUMP] + JACK
    return (record[r.HAND + record[r.TO_MOVE]] >> trump_jack) & 1 == 1


@compiled
def may_close(record: Record, codes: Codes) -> bool:
    """Whether the player to move may close the talon."""
    return (
        record[r.TALON_STATE] == r.OPEN
        and record[r.FACE_DOWN] >= codes[_CLOSE_MIN]
        and is_on_lead(record)
        and record[r.DECLARED] == r.NONE
    )


@compiled
def may_claim(record: Record, codes: Codes) -> bool:
    """Whether the player to move may claim 66, rightly or wrongly."""
    claims = codes[_CLAIMS]
    return claims == _CLAIM_ON_TURN or (claims == _CLAIM_ON_LEAD and is_on_lead(record))


@compiled
def legal(record: Record, codes: Codes) -> int:
    """The legal actions of the player to move, a set over action ids; 0 once the deal is over."""
    if record[r.END_REASON] != 0:
        return 0
    actions = playable(record, codes) | (declarable(record) << FIRST_DECLARE)
    if may_exchange(record, codes):
        actions |= 1 << EXCHANGE
    if may_close(record, codes):
        actions |= 1 << CLOSE
    if may_claim(record, codes):
        actions |= 1 << CLAIM
    return actions


@compiled
def random_action(record: Record, codes: Codes) -> int:
    """A uniformly random legal action, from the record's own generator; the deal must run."""
    actions = legal(record, codes)
    return member(actions, draw_below(record, count(actions)))


@compiled
def is_revoke(record: Record, codes: Codes, action: int) -> bool:
    """Whether ``action`` plays a held card that only the duties of the strict phase forbid."""
    if record[r.END_REASON] != 0 or action >= FIRST_DECLARE or is_on_lead(record):
        return False
    held = record[r.HAND + record[r.TO_MOVE]] >> action & 1
    return held == 1 and playable(record, codes) >> action & 1 == 0


# ------------------------------------------------------------------------------ what actions do


@compiled
def reply_wins(led: int, reply: int, trump_suit: int, trick_by: int) -> bool:
    """Whether ``reply`` beats ``led``."""
    led_suit, reply_suit = led // NUM_RANKS, reply // NUM_RANKS
    if led_suit == reply_suit:
        return reply > led
    if led_suit == trump_suit or reply_suit == trump_suit:
        return reply_suit == trump_suit
    # Ranks are ordered by card points, so the higher rank is the card of higher value.
    return trick_by == _BY_VALUE and reply % NUM_RANKS > led % NUM_RANKS


@compiled
def remember(record: Record, action: int) -> None:
    """Append the action and its player to the history."""
    word, place = divmod(record[r.NUM_TAKEN], r.HISTORY_PER_WORD)
    entry = action | record[r.TO_MOVE] << (r.HISTORY_BITS - 1)
    record[r.HISTORY + word] |= entry << (r.HISTORY_BITS * place)
    record[r.NUM_TAKEN] += 1


@compiled
def receive(record: Record, seat: int, card: int, trick: int) -> None:
    """Put the card drawn after ``trick``, counted from 0, into the hand of ``seat``."""
    record[r.HAND + seat] |= 1 << card
    record[r.DRAWN + seat] ^= (r.CARD_WORD ^ card) << (r.CARD_BITS * trick)


@compiled
def draw(record: Record, winner: int) -> None:
    """Both players draw, the winner of the trick first; the last card is the turned-up one."""
    loser = 1 - winner
    place = TALON_SIZE - record[r.FACE_DOWN]
    trick = place // 2
    receive(record, winner, talon_card(record, place), trick)
    if record[r.FACE_DOWN] > 1:
        receive(record, loser, talon_card(record, place + 1), trick)
        record[r.FACE_DOWN] -= 2
    else:
        turned_up = record[r.TURNED_UP]
        receive(record, loser, turned_up, trick)
        record[r.KNOWN + loser] |= 1 << turned_up
        record[r.TURNED_UP] = r.NONE
        record[r.FACE_DOWN] = 0
        record[r.TALON_STATE] = r.EXHAUSTED


@compiled
def complete_trick(record: Record, codes: Codes, reply: int) -> None:
    """The reply is on the table: who wins, what it scores, whether the deal ends, what is drawn."""
    led = record[r.LED]
    leader = record[r.LEADER]
    winner = leader
    if reply_wins(led, reply, record[r.TRUMP], codes[_TRICK_BY]):
        winner = 1 - leader
    record[r.WON + winner] |= 1 << led | 1 << reply
    record[r.CARD_POINTS + winner] += POINTS_OF[led] + POINTS_OF[reply]
    record[r.TRICKS + winner] += 1
    record[r.LAST_LEAD] = led
    record[r.LAST_REPLY] = reply
    record[r.LED] = r.NONE
    record[r.LEADER] = winner
    record[r.TO_MOVE] = winner
    played_out = record[r.HAND] | record[r.HAND + 1] == 0
    if played_out and record[r.TALON_STATE] == r.EXHAUSTED:
        record[r.CARD_POINTS + winner] += codes[_LAST_TRICK_BONUS]
    go_out_if_automatic(record, codes, winner)
    if record[r.END_REASON] != 0:
        return
    if played_out:
        play_out(record, codes, winner)
    elif record[r.TALON_STATE] == r.OPEN:
        draw(record, winner)


@compiled
def play_card(record: Record, codes: Codes, card: int) -> None:
    """Lead ``card``, or reply with it."""
    seat = record[r.TO_MOVE]
    record[r.HAND + seat] &= ~(1 << card)
    record[r.KNOWN + seat] &= ~(1 << card)
    if is_on_lead(record):
        record[r.LED] = card
        record[r.DECLARED] = r.NONE
        record[r.TO_MOVE] = 1 - seat
        return
    if record[r.TALON_STATE] != r.OPEN:
        record[r.CANNOT_HOLD + seat] |= ruled_out_by_reply(
            record[r.LED], card, record[r.TRUMP], codes[_MUST_BEAT]
        )
    complete_trick(record, codes, card)


@compiled
def declare_marriage(record: Record, codes: Codes, suit: int) -> None:
    """Show king and queen of ``suit``; with a trick already won this may reach 66."""
    seat = record[r.TO_MOVE]
    record[r.MARRIAGES + seat] |= 1 << suit
    record[r.KNOWN + seat] |= MARRIAGE_SET << (NUM_RANKS * suit)
    record[r.DECLARED] = suit
    go_out_if_automatic(record, codes, seat)


@compiled
def exchange_jack(record: Record) -> None:
    """Swap the trump jack for the turned-up card; the opponent has seen which card that is."""
    seat = record[r.TO_MOVE]
    turned_up = record[r.TURNED_UP]
    trump_jack = NUM_RANKS * record[r.TRUMP] + JACK
    record[r.HAND + seat] = (record[r.HAND + seat] & ~(1 << trump_jack)) | 1 << turned_up
    # (No play makes the jack a known card before its exchange, but a position may say it is.)
    record[r.KNOWN + seat] = (record[r.KNOWN + seat] & ~(1 << trump_jack)) | 1 << turned_up
    record[r.TURNED_UP] = trump_jack


@compiled
def close_talon(record: Record) -> None:
    """Turn the talon over; what the opponent has at this moment is remembered."""
    seat = record[r.TO_MOVE]
    other = 1 - seat
    record[r.TALON_STATE] = r.CLOSED
    record[r.CLOSED_BY] = seat
    record[r.CLOSE_TRICKS] = record[r.TRICKS + other]
    record[r.CLOSE_POINTS] = points(record, other)
    record[r.CLOSE_CARD_POINTS] = record[r.CARD_POINTS + other]


@compiled
def claim(record: Record, codes: Codes) -> None:
    """Claim 66: right with 66 points at this moment, a lost deal otherwise."""
    seat = record[r.TO_MOVE]
    if is_out(record, seat):
        go_out(record, codes, seat)
    else:
        lose_by_rule(record, codes, seat, _WRONG_CLAIM)


@compiled
def step(record: Record, codes: Codes, action: int) -> None:
    """Take ``action`` for the player to move, in place.

    The action must be legal: this function does not check, see :func:`schnapsen_env.engine.apply`.
    """
    remember(record, action)
    if action < FIRST_DECLARE:
        play_card(record, codes, action)
    elif action < EXCHANGE:
        declare_marriage(record, codes, action - FIRST_DECLARE)
    elif action == EXCHANGE:
        exchange_jack(record)
    elif action == CLOSE:
        close_talon(record)
    else:
        claim(record, codes)


@compiled
def revoke(record: Record, codes: Codes, card: int) -> None:
    """Lose the deal by playing ``card``, a held card that the strict phase forbids."""
    remember(record, card)
    lose_by_rule(record, codes, record[r.TO_MOVE], _REVOKE)
