"""Reading the deals and the action counts that are stored as text in ``tests/golden``.

A golden deal is a block of ``key: value`` lines, blocks are separated by an empty line, and ``#``
opens a comment. The deck is stored and never a seed. A line of ``perft.txt`` is::

    rules | forehand | deck | actions played first, or - | counts for depth 1, 2, ...

where a count is the number of ways to take so many actions; a deal that is over before counts as
one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from schnapsen_env.actions import action_text, parse_action
from schnapsen_env.cards import parse_card
from schnapsen_env.rules import RULES, Rules
from tests.referee import Deal

FOLDER: Final = Path(__file__).resolve().parent / "golden"
REVOKE: Final = "revoke-"


@dataclass(frozen=True)
class GoldenDeal:
    """One complete deal with its expected result."""

    title: str
    rules: Rules
    forehand: int
    deck: tuple[int, ...]
    #: Action texts; a revoke is written ``revoke-KH``.
    actions: tuple[str, ...]
    #: Points at the end by seat, as the rules count them.
    points: tuple[int, int]
    tricks: tuple[int, int]
    reason: str
    winner: int | None
    game_points: int


class Perft(NamedTuple):
    """The counts of one fixed deck."""

    rules: Rules
    forehand: int
    deck: tuple[int, ...]
    actions: tuple[int, ...]
    counts: tuple[int, ...]


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [line.split("#")[0].strip() for line in text.splitlines()]


def _deck(text: str) -> tuple[int, ...]:
    return tuple(parse_card(card) for card in text.replace("/", " ").split())


def _pair(text: str) -> tuple[int, int]:
    first, second = text.split()
    return int(first), int(second)


def read_deals() -> list[GoldenDeal]:
    """All golden deals of all files."""
    paths = sorted(path for path in FOLDER.glob("*.txt") if path.stem in RULES)
    return [_read_deal(block) for path in paths for block in _blocks(path)]


def _blocks(path: Path) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    for line in [*_lines(path), ""]:
        if line:
            key, _, value = line.partition(":")
            block[key] = value.strip()
        elif block:
            yield block
            block = {}


def _read_deal(block: dict[str, str]) -> GoldenDeal:
    reason, winner, game_points = block["result"].split()
    return GoldenDeal(
        title=block["deal"],
        rules=RULES[block["rules"]],
        forehand=int(block["forehand"]),
        deck=_deck(block["deck"]),
        actions=tuple(block["actions"].replace("/", " ").split()),
        points=_pair(block["points"]),
        tricks=_pair(block["tricks"]),
        reason=reason,
        winner=None if winner == "nobody" else int(winner),
        game_points=int(game_points),
    )


def read_perft() -> list[Perft]:
    """The lines of ``perft.txt``."""
    perfts: list[Perft] = []
    for line in _lines(FOLDER / "perft.txt"):
        if line:
            name, forehand, deck, actions, counts = (part.strip() for part in line.split("|"))
            played = () if actions == "-" else tuple(map(parse_action, actions.split()))
            whole = tuple(int(count) for count in counts.split())
            perfts.append(Perft(RULES[name], int(forehand), _deck(deck), played, whole))
    return perfts


def referee_deal(perft: Perft) -> Deal:
    """The deal of a line on the referee, its first actions played."""
    deal = Deal(perft.rules, perft.deck, perft.forehand)
    for action in perft.actions:
        deal.apply(action)
    return deal


def referee_perft(deal: Deal, depth: int) -> int:
    """The number of ways to take ``depth`` actions, by the referee."""
    if deal.over or depth == 0:
        return 1
    legal = deal.legal_actions()
    if depth == 1:
        return len(legal)
    return sum(referee_perft(_after(deal, action), depth - 1) for action in legal)


def referee_perft_by_action(deal: Deal, depth: int) -> dict[str, int]:
    """The same, split by the first action."""
    return {
        action_text(action): referee_perft(_after(deal, action), depth - 1)
        for action in deal.legal_actions()
    }


def _after(deal: Deal, action: int) -> Deal:
    after = deal.copy()
    after.apply(action)
    return after
