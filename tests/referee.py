"""A second referee: the whole game again, slowly and in the order of the rule text.

The engine is compiled and keeps its cards in bit masks. This file plays the same game with lists
of card ids and one short method for each clause, so that it can be read beside ``docs/rules.md``
and be believed. It shares nothing with the engine but the names of cards, actions and rule fields.
``tests/test_referee.py`` plays both side by side.

A :class:`Deal` is one distribution of the cards, a :class:`Match` is deals up to the target::

    deal = Deal(RULES["pagat"], deck, forehand=0)
    while not deal.over:
        deal.apply(choose(deal.legal_actions()))
    deal.result  # Result(reason="sixty_six", winner=1, game_points=2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, FIRST_DECLARE
from schnapsen_env.cards import CARD_POINTS, JACK, KING, NUM_CARDS, NUM_RANKS, NUM_SUITS, QUEEN
from schnapsen_env.rules import Rules

OPEN, CLOSED, EXHAUSTED = "open", "closed", "exhausted"

SIXTY_SIX = "sixty_six"
LAST_TRICK = "last_trick"
FAILED_CLOSE = "failed_close"
WRONG_CLAIM = "wrong_claim"
REVOKE = "revoke"
DRAWN = "drawn"


class Result(NamedTuple):
    """How a deal ended: the reason, the winner's seat (None: drawn) and what it is worth to him."""

    reason: str
    winner: int | None
    game_points: int


class Standing(NamedTuple):
    """What a player has at one moment; it decides whether his opponent wins 1, 2 or 3."""

    tricks: int
    card_points: int
    points: int


# The cards -------------------------------------------------------------------------------------

_SUIT: Final = [card // NUM_RANKS for card in range(NUM_CARDS)]


def card_of(rank: int, suit: int) -> int:
    return NUM_RANKS * suit + rank


def suit_of(card: int) -> int:
    return _SUIT[card]


def same_suit_and_higher(card: int, than: int) -> bool:
    """Jack, queen, king, ten, ace: ids of one suit stand in the order of strength."""
    return _SUIT[card] == _SUIT[than] and card > than


class Player:
    """One seat: the hand, what lies in front of it, and what the table has learnt about it."""

    def __init__(self, hand: Sequence[int]) -> None:
        self.hand = list(hand)
        self.won: list[int] = []  # The cards of the tricks won.
        self.bonus = 0  # Card points for the last trick, where the rules have them.
        self.marriages: list[int] = []  # The suits declared.
        self.known: list[int] = []  # Cards of this hand that the opponent has seen.
        self.cannot_hold: list[int] = []  # Cards that its replies have shown to be missing.

    @property
    def tricks(self) -> int:
        return len(self.won) // 2

    @property
    def card_points(self) -> int:
        return sum([CARD_POINTS[card] for card in self.won]) + self.bonus

    def copy(self) -> Player:
        other = Player(self.hand)
        other.won = self.won[:]
        other.bonus = self.bonus
        other.marriages = self.marriages[:]
        other.known = self.known[:]
        other.cannot_hold = self.cannot_hold[:]
        return other


# One deal --------------------------------------------------------------------------------------


class Deal:
    """One deal from the deck to its result.

    ``deck`` holds the twenty cards as ids: the forehand's five, the dealer's five, the turned-up
    trump, and the nine face-down cards in the order in which they will be drawn.
    """

    def __init__(self, rules: Rules, deck: Sequence[int], forehand: int) -> None:
        if sorted(deck) != list(range(NUM_CARDS)):
            raise ValueError(f"not the twenty cards, each once: {deck}")
        self.rules = rules
        self.forehand = forehand
        first, second = Player(deck[0:5]), Player(deck[5:10])
        self.players = [first, second] if forehand == 0 else [second, first]
        self.turned_up: int | None = deck[10]
        self.trump_suit = suit_of(deck[10])
        self.talon = list(deck[11:20])  # Face down; the next card to be drawn comes first.
        self.talon_state = OPEN
        self.closer: int | None = None
        self.at_close: Standing | None = None  # The closer's opponent when the talon was closed.
        self.leader = forehand
        self.led: int | None = None  # The card on the table, waiting for the reply.
        self.declared: int | None = None  # The suit just declared and not yet led.
        self.last_trick: tuple[int, int] | None = None  # The card led and the reply.
        self.result: Result | None = None

    def copy(self) -> Deal:
        other: Deal = object.__new__(Deal)
        other.__dict__.update(self.__dict__)
        other.players = [player.copy() for player in self.players]
        other.talon = self.talon[:]
        return other

    # What everyone at the table can see

    @property
    def over(self) -> bool:
        return self.result is not None

    @property
    def to_move(self) -> int:
        return self.leader if self.led is None else 1 - self.leader

    @property
    def strict(self) -> bool:
        """The replies have duties as soon as the talon is closed or used up."""
        return self.talon_state != OPEN

    @property
    def face_down_count(self) -> int:
        return len(self.talon)

    def points(self, seat: int) -> int:
        """Card points and own marriages; a player without a trick has nothing yet."""
        player = self.players[seat]
        if player.tricks == 0:
            return 0
        return player.card_points + sum([self.marriage_value(suit) for suit in player.marriages])

    def marriage_value(self, suit: int) -> int:
        return 40 if suit == self.trump_suit else 20

    def standing(self, seat: int) -> Standing:
        player = self.players[seat]
        return Standing(player.tricks, player.card_points, self.points(seat))

    # What the player to move may do

    def legal_actions(self) -> list[int]:
        """The ids of all legal actions in ascending order; none once the deal is over."""
        if self.over:
            return []
        seat = self.to_move
        actions = self.cards_to_lead(seat) if self.led is None else self.cards_to_reply(seat)
        actions += self.marriages_to_declare(seat)
        if self.may_exchange(seat):
            actions.append(EXCHANGE)
        if self.may_close():
            actions.append(CLOSE)
        if self.may_claim():
            actions.append(CLAIM)
        return actions

    def cards_to_lead(self, seat: int) -> list[int]:
        """Any card; after a marriage only its king or its queen."""
        if self.declared is not None:
            return [card_of(QUEEN, self.declared), card_of(KING, self.declared)]
        return sorted(self.players[seat].hand)

    def cards_to_reply(self, seat: int) -> list[int]:
        """Any card while the talon is open; then the first duty that the hand can meet."""
        hand = sorted(self.players[seat].hand)
        if not self.strict:
            return hand
        for duty in self.duties():
            able = [card for card in hand if card in duty]
            if able:
                return able
        return hand

    def duties(self) -> list[list[int]]:
        """What a strict reply has to be, the first duty first: sets of cards to choose from."""
        assert self.led is not None
        led_suit = [card_of(rank, suit_of(self.led)) for rank in range(NUM_RANKS)]
        trumps = [card_of(rank, self.trump_suit) for rank in range(NUM_RANKS)]
        higher = [card for card in led_suit if same_suit_and_higher(card, self.led)]
        if self.rules.must_beat:
            return [higher, led_suit, trumps]
        return [led_suit, trumps]

    def marriages_to_declare(self, seat: int) -> list[int]:
        """On lead, one a lead, king and queen both in hand, each suit once."""
        if self.led is not None or self.declared is not None:
            return []
        player = self.players[seat]
        return [
            FIRST_DECLARE + suit
            for suit in range(NUM_SUITS)
            if card_of(KING, suit) in player.hand
            and card_of(QUEEN, suit) in player.hand
            and suit not in player.marriages
        ]

    def may_exchange(self, seat: int) -> bool:
        """The trump jack for the turned-up card: the talon open and still high enough."""
        my_turn_allows_it = self.led is None or self.rules.exchange_when == "turn"
        return (
            my_turn_allows_it
            and self.declared is None
            and self.talon_state == OPEN
            and self.face_down_count >= self.rules.exchange_min
            and card_of(JACK, self.trump_suit) in self.players[seat].hand
        )

    def may_close(self) -> bool:
        """On lead only, the talon open and still high enough."""
        return (
            self.led is None
            and self.declared is None
            and self.talon_state == OPEN
            and self.face_down_count >= self.rules.close_min
        )

    def may_claim(self) -> bool:
        """Whenever the rule's timing allows it, with however few points."""
        if self.rules.claims == "automatic":
            return False
        return self.led is None or self.rules.claims == "turn"

    def revokes(self) -> list[int]:
        """The held cards that nothing but the duty of a strict reply forbids."""
        if self.over or self.led is None:
            return []
        allowed = self.cards_to_reply(self.to_move)
        return [card for card in sorted(self.players[self.to_move].hand) if card not in allowed]

    # What happens then

    def apply(self, action: int) -> None:
        """Plays a legal action for the player to move."""
        seat = self.to_move
        if action not in self.legal_actions():
            raise ValueError(f"action {action} is not legal for seat {seat}")
        if action == CLAIM:
            self.claim(seat)
        elif action == CLOSE:
            self.close(seat)
        elif action == EXCHANGE:
            self.exchange(seat)
        elif action >= FIRST_DECLARE:
            self.declare(seat, action - FIRST_DECLARE)
        elif self.led is None:
            self.lead(seat, action)
        else:
            self.reply(seat, action)

    def exchange(self, seat: int) -> None:
        """The jack takes the place under the talon; the opponent knows the card that was taken."""
        player, jack, taken = self.players[seat], card_of(JACK, self.trump_suit), self.turned_up
        assert taken is not None
        player.hand.remove(jack)
        player.hand.append(taken)
        player.known.append(taken)
        self.turned_up = jack

    def close(self, seat: int) -> None:
        """Nobody draws any more; what the opponent has now may decide what the deal is worth."""
        self.talon_state = CLOSED
        self.closer = seat
        self.at_close = self.standing(1 - seat)

    def declare(self, seat: int, suit: int) -> None:
        """Both cards are shown; with a trick the marriage counts at once and may end the deal."""
        player = self.players[seat]
        player.marriages.append(suit)
        for card in (card_of(QUEEN, suit), card_of(KING, suit)):
            if card not in player.known:
                player.known.append(card)
        self.declared = suit
        self.out_at_once(seat)

    def lead(self, seat: int, card: int) -> None:
        self.take_from_hand(seat, card)
        self.led = card
        self.declared = None

    def reply(self, seat: int, card: int) -> None:
        if self.strict:
            self.learn_from_reply(seat, card)
        self.take_from_hand(seat, card)
        self.finish_trick(card)

    def take_from_hand(self, seat: int, card: int) -> None:
        player = self.players[seat]
        player.hand.remove(card)
        if card in player.known:
            player.known.remove(card)

    def learn_from_reply(self, seat: int, card: int) -> None:
        """Each duty that a reply passed over shows that the hand has no card to meet it."""
        player = self.players[seat]
        for duty in self.duties():
            if card in duty:
                return
            player.cannot_hold += [lacked for lacked in duty if lacked not in player.cannot_hold]

    def reply_wins(self, reply: int) -> bool:
        """Trumps before all else; otherwise by the suit led, or by value in whatever suit."""
        assert self.led is not None
        led, trump = self.led, self.trump_suit
        if suit_of(led) == trump or suit_of(reply) == trump:
            return suit_of(led) != trump or same_suit_and_higher(reply, led)
        if self.rules.trick_by == "value":
            return CARD_POINTS[reply] > CARD_POINTS[led]
        return same_suit_and_higher(reply, led)

    def finish_trick(self, reply: int) -> None:
        """The winner takes both cards, may be out with them, draws first, and leads next."""
        assert self.led is not None
        winner = 1 - self.leader if self.reply_wins(reply) else self.leader
        self.players[winner].won += [self.led, reply]
        self.last_trick = (self.led, reply)
        self.led = None
        self.leader = winner
        played_out = not self.players[0].hand and not self.players[1].hand
        if played_out and self.talon_state == EXHAUSTED:
            self.players[winner].bonus = self.rules.last_trick_bonus
        self.out_at_once(winner)
        if self.over:
            return
        if played_out:
            self.end_played_out(winner)
        elif self.talon_state == OPEN:
            self.draw(winner)

    def draw(self, winner: int) -> None:
        """The winner draws first. The last card of all is the turned-up one, for the loser."""
        loser = self.players[1 - winner]
        self.players[winner].hand.append(self.talon.pop(0))
        if self.talon:
            loser.hand.append(self.talon.pop(0))
            return
        assert self.turned_up is not None
        loser.hand.append(self.turned_up)
        loser.known.append(self.turned_up)
        self.turned_up = None
        self.talon_state = EXHAUSTED

    # How a deal ends, and what it is worth

    def out_at_once(self, seat: int) -> None:
        """Automatic claims: whoever reaches 66 is out at that instant."""
        if self.rules.claims == "automatic" and self.points(seat) >= 66:
            self.out(seat)

    def claim(self, seat: int) -> None:
        """Right with 66 points now, whatever the opponent has; wrong with fewer."""
        if self.points(seat) >= 66:
            self.out(seat)
        elif seat == self.closer:
            self.closer_fails()
        else:
            self.lose_by_fault(seat, WRONG_CLAIM)

    def revoke(self, card: int) -> None:
        """The player to move plays ``card`` against his duty, where that costs the deal."""
        seat = self.to_move
        if card not in self.revokes():
            raise ValueError(f"card {card} is no revoke for seat {seat}")
        if seat == self.closer:
            self.closer_fails()
        else:
            self.lose_by_fault(seat, REVOKE)

    def out(self, seat: int) -> None:
        """66 points: 3 against no trick, 2 against fewer than 33, 1 otherwise.

        A closer whose opponent is out first has failed, which has a price of its own.
        """
        if self.closer == 1 - seat:
            self.closer_fails()
            return
        loser = self.standing(1 - seat)
        if self.closer == seat and self.rules.close_valued_at == "closing":
            assert self.at_close is not None
            loser = self.at_close
        by_card_points = self.rules.schneider_by == "card_points"
        counted = loser.card_points if by_card_points else loser.points
        self.result = Result(SIXTY_SIX, seat, three_two_one(loser.tricks, counted))

    def closer_fails(self) -> None:
        """The opponent scores by his tricks at the closing, or by what the closer has taken."""
        assert self.closer is not None
        assert self.at_close is not None
        if self.rules.close_failure == "two_or_three":
            game_points = 3 if self.at_close.tricks == 0 else 2
        else:
            closer = self.standing(self.closer)
            game_points = three_two_one(closer.tricks, closer.card_points)
        self.result = Result(FAILED_CLOSE, 1 - self.closer, game_points)

    def lose_by_fault(self, seat: int, reason: str) -> None:
        """A wrong claim or a revoke: the opponent gets 2, or 3 while he has no trick yet."""
        opponent = 1 - seat
        game_points = 3 if self.players[opponent].tricks == 0 else 2
        self.result = Result(reason, opponent, game_points)

    def end_played_out(self, winner: int) -> None:
        """Both hands are empty and nobody has gone out; ``winner`` took the last trick."""
        if self.points(winner) >= 66:  # Counts as claimed.
            self.out(winner)
        elif self.talon_state == CLOSED:
            self.closer_fails()
        elif self.rules.exhausted == "last_trick":
            self.result = Result(LAST_TRICK, winner, 1)
        elif self.points(1 - winner) >= 66:  # Counts as claimed, too.
            self.out(1 - winner)
        else:
            self.result = Result(DRAWN, None, 0)


def three_two_one(tricks: int, points: int) -> int:
    """What a deal is worth against a loser with so many tricks and points."""
    if tricks == 0:
        return 3
    return 2 if points < 33 else 1


# A match ---------------------------------------------------------------------------------------


class Match:
    """Deals until one player has won ``rules.target`` game points; the deal alternates."""

    def __init__(self, rules: Rules, first_forehand: int) -> None:
        self.rules = rules
        self.forehand = first_forehand  # Of the next deal.
        self.scores = [0, 0]  # Game points won, counted up whatever the players count.
        self.history: list[
            tuple[int | None, list[int]]
        ] = []  # Each deal's winner, scores after it.

    def deal(self, deck: Sequence[int]) -> Deal:
        return Deal(self.rules, deck, self.forehand)

    def add(self, result: Result) -> None:
        if self.winner is not None:
            raise ValueError("the match is over")
        if result.winner is not None:
            self.scores[result.winner] += result.game_points
        self.history.append((result.winner, self.scores[:]))
        self.forehand = 1 - self.forehand

    @property
    def winner(self) -> int | None:
        for seat in (0, 1):
            if self.scores[seat] >= self.rules.target:
                return seat
        return None

    @property
    def bummerl(self) -> int | None:
        """The seat that has lost the match and so gets a Bummerl."""
        return None if self.winner is None else 1 - self.winner

    @property
    def schneider(self) -> bool:
        """The loser has not won a single game point."""
        return self.bummerl is not None and self.scores[self.bummerl] == 0

    @property
    def rueckschneider(self) -> bool:
        """The loser stood at one game point to go, and the winner won every deal after that.

        A drawn deal was won by nobody and breaks no run.
        """
        loser = self.bummerl
        if loser is None:
            return False
        stood_at_one = False
        for winner, scores in self.history:
            if stood_at_one and winner == loser:
                return False
            stood_at_one = stood_at_one or self.rules.target - scores[loser] == 1
        return stood_at_one
