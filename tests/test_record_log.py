"""Deal records: they read back, replay to the same deal, and refuse every damage."""

from __future__ import annotations

import re
import string
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schnapsen_env import RULES, Position, Rules, engine, schnapsen_v0
from schnapsen_env.actions import parse_action
from schnapsen_env.engine import record as r
from schnapsen_env.position import EndReason, Result
from schnapsen_env.record_log import DealRecord, append, parse, read, replay, replay_steps, write
from tests.random_play import choose, finished, running

HOUSE_RULES = Rules(
    name="at our table: 3, und 7%", must_beat=True, target=5, exhausted="claim_or_draw"
)


def deal_records(rules: Rules, deals: int, seed: int = 0) -> list[DealRecord]:
    return [DealRecord.from_record(record, rules) for record in finished(rules, deals, seed)]


def from_middle(rules: Rules, seed: int) -> DealRecord:
    """A deal that began at a position in its middle."""
    records = list(running(rules, 4, seed))
    start = engine.position_of(records[len(records) // 2])
    record, codes = engine.record_of(start, rules), rules.codes()
    rng = np.random.default_rng(seed)
    while not engine.is_over(record):
        engine.step(record, codes, choose(rng, int(engine.legal(record, codes))))
    return DealRecord.from_record(record, rules, start=start, seats=("ppo:runs/a b", "ünïcode,=,"))


def sealed(line: str) -> str:
    """A line with the checksum that belongs to what it says."""
    body = re.sub(r" check=[0-9a-f]*$", "", line)
    return f"{body} check={zlib.crc32(body.encode()):08x}"


LINES = [
    str(deal)
    for rules in (*RULES.values(), HOUSE_RULES)
    for deal in (*deal_records(rules, 3, seed=5), from_middle(rules, seed=6))
]

line = st.sampled_from(LINES)
letter = st.sampled_from(string.ascii_letters + string.digits + "=,./;:-%& \t\n\r♥ß")


@pytest.mark.parametrize("rules", [*RULES.values(), HOUSE_RULES], ids=lambda rules: rules.name)
def test_a_line_reads_back_and_replays_to_the_same_deal(rules: Rules) -> None:
    for record in finished(rules, 40, seed=1):
        deal = DealRecord.from_record(record, rules, seats=("heuristic", "ppo:runs/7"))
        assert str(deal).isascii()
        assert "\n" not in str(deal)
        assert parse(str(deal)) == deal
        assert DealRecord.from_text(f"{deal}\n") == deal
        again = replay(str(deal))
        same = np.delete(again == record, [r.RANDOM, r.DEAL_NUMBER])
        assert same.all()


@pytest.mark.parametrize("rules", [*RULES.values(), HOUSE_RULES], ids=lambda rules: rules.name)
def test_a_deal_from_a_position_reads_back_and_replays(rules: Rules) -> None:
    for seed in range(8):
        deal = from_middle(rules, seed)
        assert deal.deck is None
        assert deal.position is not None
        assert parse(str(deal)) == deal
        steps = list(replay_steps(deal))
        assert len(steps) == len(deal.actions) + 1
        assert engine.position_of(steps[0]) == deal.position
        assert engine.is_over(steps[-1])


def test_the_form_of_a_line() -> None:
    deal = DealRecord(
        rules=replace(RULES["pagat_auto"], target=5),
        seats=("player_0", "a b"),
        forehand=0,
        match_score=(2, 0),
        deck=tuple(range(20)),
        actions=(1, 6),
        result=Result(0, 3, EndReason.SIXTY_SIX),
    )
    assert str(deal) == (
        "schnapsen-deal/1 rules=pagat_auto,target:5 seats=player_0,a%20b forehand=0 score=2,0 "
        "deck=JCQCKCTCACJDQDKDTDADJHQHKHTHAHJSQSKSTSAS actions=QC,QD result=0/3/sixty_six "
        "check=" + str(deal)[-8:]
    )


@settings(max_examples=300, deadline=None)
@given(line, st.data())
def test_any_altered_letter_is_refused(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text) - 1))
    altered = text[:place] + data.draw(letter) + text[place + 1 :]
    if altered == text:
        return
    with pytest.raises(ValueError, match="deal record: "):
        parse(altered)


@settings(max_examples=150, deadline=None)
@given(line, st.data())
def test_any_cut_line_is_refused(text: str, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ValueError, match="deal record: "):
        parse(text[:end])


@settings(max_examples=200, deadline=None)
@given(line, st.data())
def test_letters_put_in_left_out_or_swapped_are_refused(text: str, data: st.DataObject) -> None:
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text) - 1)] * 2)))
    middle = data.draw(st.sampled_from(["", text[first:last][::-1], "=", ",", " ", "-"]))
    altered = text[:first] + middle + text[last:]
    if altered.rstrip("\r\n") == text:
        return
    with pytest.raises(ValueError, match="deal record: "):
        parse(altered)


@settings(max_examples=200, deadline=None)
@given(line, st.data())
def test_a_forged_line_is_refused_or_is_another_true_deal(text: str, data: st.DataObject) -> None:
    """With a checksum that fits, what remains to check is whether a deal can have gone that way."""
    place = data.draw(st.integers(0, len(text) - 16))
    forged = sealed(text[:place] + data.draw(letter) + text[place + 1 :])
    fault, again = "", None
    try:
        deal = parse(forged)
        record = replay(deal)
        again = DealRecord.from_record(record, deal.rules, seats=deal.seats, start=deal.position)
    except ValueError as error:
        fault = str(error)
    assert again is not None or fault.startswith("deal record: ")
    assert again is None or again == parse(forged)


def good_line() -> str:
    """A line of a deal that has been dealt and takes more than ten actions."""
    return next(text for text in LINES if "rules=duel " in text and text.count(",") > 10)


DAMAGES: list[tuple[str, str, str]] = [
    (r"^\S+", "schnapsen-deal/9", "a line begins with 'schnapsen-deal/1', not 'schnapsen-deal/9'"),
    (r" rules=\S+", "", "rules: rules=... is expected, not 'seats="),
    (
        r"rules=duel",
        "rules=doel",
        "rules: unknown rule set 'doel': choose one of duel, ",
    ),
    (
        r"rules=duel",
        "rules=duel,beat:1",
        "rules: 'beat:1' is no change of 'duel': write",
    ),
    (r"rules=duel", "rules=duel,target:x", "rules: target:x is unknown: choose one of 3, 4"),
    (r"rules=duel", "rules=duel,target:99", "rules: target:99 is unknown: choose one of 3, 4"),
    (
        r"rules=duel",
        "rules=duel,must_beat:yes",
        "rules: must_beat:yes is unknown: choose",
    ),
    (r"rules=duel", "rules=duel,target:5,target:6", "rules: target is given twice"),
    (r"seats=\S+", "seats=one", "seats: two names with a comma between them, not 'one'"),
    (r"seats=\S+", "seats=,b", "seats: two names"),
    (r"forehand=\d", "forehand=2", "forehand: 0 or 1, not 2"),
    (r"forehand=\d", "forehand=x", "forehand: a whole number, not 'x'"),
    (r" deck=", " score=1 deck=", "score: two numbers with a comma"),
    (r"deck=..", "deck=", "deck: 40 letters for 20 cards, not 38"),
    (r"deck=..", "deck=XX", "deck: 'XX' is not a card"),
    (r"deck=(..)(..)", r"deck=\1\1", "deck: each of the 20 cards once"),
    (r" deck=\S+", "", "deck: a deal begins with a deck or at a position"),
    (r"deck=(\S+)", r"deck=\1 position=trump=H", "position: .*missing"),
    (r"actions=\w+", "actions=ZZ", "actions: 'ZZ' is not an action"),
    (r"actions=\S+", "actions=" + ",".join(["QC"] * 28), "actions: at most 27, not 28"),
    (r"actions=\S+", "actions=-", "actions: the deal is not over after 0 of them"),
    (r"actions=\S+", "actions=claim", "actions: number 1: illegal action claim .* trump="),
    (r",\w+ result", " result", "actions: the deal is not over after"),
    (r" result", ",QC result", "actions: number .*: illegal action QC .*the deal is over"),
    (r"result=\S+", "result=0/2", "result: winner/game_points/end_reason with one of sixty_six"),
    (r"result=\S+", "result=0/2/running", "result: winner/game_points/end_reason"),
    (r"result=\S+", "result=0/9/sixty_six", "result: 0/9/sixty_six is not the result of a deal"),
    (r"result=\S+", "result=-/0/sixty_six", "result: -/0/sixty_six is not the result of a deal"),
    (r"result=\S+", "result=0/1/drawn", "result: 0/1/drawn is not the result of a deal"),
    (r"result=\S+", "result=0/3/failed_close", "comes out, not 0/3/failed_close"),
    (r" result=\S+", "", "result: result=... is expected, not 'check="),
]


@pytest.mark.parametrize(("pattern", "put", "message"), DAMAGES)
def test_a_refusal_says_which_field_and_what_belongs_there(
    pattern: str, put: str, message: str
) -> None:
    damaged, changes = re.subn(pattern, put, good_line(), count=1)
    assert changes == 1
    with pytest.raises(ValueError, match="deal record: ") as caught:
        replay(sealed(damaged))
    assert re.search(message, str(caught.value)), str(caught.value)


def test_a_refused_checksum_says_which_one_belongs_there() -> None:
    text = good_line()
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
    with pytest.raises(
        ValueError, match=f"check: {text[-8:]} belongs to this line, not {wrong[-8:]}"
    ):
        parse(wrong)
    with pytest.raises(ValueError, match="check: eight digits of 0-9a-f, not"):
        parse(text[:-1])
    with pytest.raises(ValueError, match="result: the line ends before it; it was cut"):
        parse(text[: text.index(" result")])
    with pytest.raises(ValueError, match="nothing follows the field 'check', but 'more'"):
        parse(f"{text} more")
    with pytest.raises(ValueError, match="ASCII letters only, not '♥'"):
        parse(text + "♥")


def test_revokes_and_illegal_actions_are_recorded() -> None:
    rules = RULES["austrian"]
    position = Position.from_dict(
        {
            "trump": "H",
            "hands": [["AS", "KS"], ["TS", "JC"]],
            "leader": 0,
            "card_points": [33, 60],
            "tricks": [4, 4],
        }
    )
    record = engine.record_of(position, rules)
    engine.apply(record, rules, parse_action("AS"))
    engine.revoke(record, rules.codes(), parse_action("JC"))
    deal = DealRecord.from_record(record, rules, start=position)
    assert deal.result == Result(0, 2, EndReason.REVOKE)
    assert parse(str(deal)) == deal
    assert EndReason(int(replay(str(deal))[r.END_REASON])) is EndReason.REVOKE
    tolerant = replace(deal, rules=replace(rules, revoke="refused"))
    with pytest.raises(ValueError, match="actions: number 2: illegal action JC"):
        replay(tolerant)

    env = schnapsen_v0.env(rules="austrian")
    env.reset(seed=3)
    env.step(int(np.flatnonzero(env.observe(env.agent_selection)["action_mask"] == 0)[0]))
    deal = DealRecord.from_record(env.record, rules)
    assert deal.result == Result(None, 0, EndReason.ILLEGAL_ACTION)
    assert deal.actions == ()
    assert " actions=- result=-/0/illegal_action " in str(deal)
    again = replay(str(deal))
    assert again[r.END_REASON] == EndReason.ILLEGAL_ACTION


def test_a_deal_of_the_aec_environment() -> None:
    env = schnapsen_v0.env(rules="french")
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            mask = env.observe(env.agent_selection)["action_mask"]
            env.step(int(rng.choice(np.flatnonzero(mask))))
        deal = DealRecord.from_record(env.record, env.rules, seats=("a", "b"))
        assert env.finished_deal(("a", "b")) == deal
        assert parse(str(deal)) == deal
        finished_record = replay(str(deal))
        for seat, agent in enumerate(("player_0", "player_1")):
            points = engine.game_points(finished_record, seat)
            assert points == env.infos[agent]["game_points"]


def test_every_deal_of_a_match_of_the_aec_environment() -> None:
    env = schnapsen_v0.env(rules="pagat", episode="match")
    env.reset(seed=1)
    position = engine.position_of(env.record)
    env.reset(seed=2, options={"position": position})
    assert env.finished_deal() is None
    rng = np.random.default_rng(0)
    deals: list[DealRecord] = []
    while not any(env.terminations.values()):
        mask = env.observe(env.agent_selection)["action_mask"]
        env.step(int(rng.choice(np.flatnonzero(mask))))
        if "end_reason" in env.infos["player_0"]:
            deal = env.finished_deal()
            assert deal is not None
            assert env.clone().finished_deal() == deal
            deals.append(deal)
            score = replay(str(deal))[r.MATCH_SCORE : r.MATCH_SCORE + 2].tolist()
            assert score == env.infos["player_0"]["match_score"]
    assert len(deals) > 1
    assert deals[0].position == position
    assert all(deal.deck is not None for deal in deals[1:])


def test_what_cannot_be_recorded_is_refused() -> None:
    rules = RULES["duel"]
    record = next(iter(running(rules, 1)))
    with pytest.raises(ValueError, match="the deal still runs"):
        DealRecord.from_record(record, rules)
    middle = next(iter(finished(rules, 1)))
    middle[r.FROM_POSITION] = 1
    with pytest.raises(ValueError, match="give that position as start"):
        DealRecord.from_record(middle, rules)


def changed(**changes: Any) -> DealRecord:
    return replace(parse(good_line()), **changes)


def test_a_deal_record_checks_its_parts() -> None:
    position = engine.position_of(next(iter(running(RULES["duel"], 1))))
    over = engine.position_of(next(iter(finished(RULES["duel"], 1))))
    with pytest.raises(ValueError, match="deck: a deal begins with a deck or at a position"):
        changed(position=position)
    with pytest.raises(ValueError, match="position: forehand and score"):
        changed(deck=None, position=position, match_score=(1, 1))
    with pytest.raises(ValueError, match="position: a deal cannot begin where it is over"):
        changed(deck=None, position=over)
    with pytest.raises(ValueError, match="seats: two names"):
        changed(seats=("a",))
    with pytest.raises(ValueError, match="actions: ids from 0 to 26"):
        changed(actions=(27,))
    with pytest.raises(ValueError, match="score: two game points"):
        changed(match_score=(-1, 0))


# ----------------------------------------------------------------------------------------- files


def test_files_are_written_appended_and_read(tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    deals = [parse(text) for text in LINES]
    assert append(path, deals[:3]) == 3
    assert append(path, deals[3:5]) == 2
    assert list(read(path)) == deals[:5]
    assert write(path, deals) == len(deals)
    assert list(read(path)) == deals
    assert [entry.name for entry in tmp_path.iterdir()] == ["deals.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    deals = [parse(text) for text in LINES[:2]]
    write(path, deals)

    def failing() -> Any:
        yield deals[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, failing())
    assert list(read(path)) == deals
    assert [entry.name for entry in tmp_path.iterdir()] == ["deals.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="no links or permissions as in Unix")
def test_a_file_that_is_written_anew_keeps_its_link_and_may_be_read_by_others(
    tmp_path: Path,
) -> None:
    path, link = tmp_path / "deals.txt", tmp_path / "link.txt"
    path.touch()
    usual = path.stat().st_mode
    link.symlink_to(path)
    write(link, [parse(LINES[0])])
    assert link.is_symlink()
    assert path.stat().st_mode == usual
    assert len(list(read(path))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of resources")
def test_what_does_not_fit_on_the_disk_is_an_error_that_says_how_much_did(tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    program = (
        "import resource, sys\n"
        "from schnapsen_env.record_log import append, parse\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "append(sys.argv[1], [parse(sys.argv[2])] * 9)\n"
    )
    arguments = [sys.executable, "-c", program, str(path), LINES[0]]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert re.search(r"OSError: .*after 1,000 of [\d,]+ bytes.*deals\.txt", ended.stderr)
    assert path.stat().st_size == 1000


def test_a_line_that_a_crash_cut_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    deals = [parse(text) for text in LINES[:3]]
    write(path, deals[:2])
    path.write_bytes(path.read_bytes()[:-30])
    assert append(path, deals[2:]) == 1
    with pytest.raises(ValueError, match=r"deals.txt, line 2: deal record: result"):
        list(read(path))
    damaged: list[str] = []
    assert list(read(path, damaged=damaged)) == [deals[0], deals[2]]
    assert len(damaged) == 1


def test_reading_replays_unless_told_not_to(tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    deal = changed(actions=())
    write(path, [deal])
    assert list(read(path, check=False)) == [deal]
    with pytest.raises(ValueError, match="line 1: deal record: actions: the deal is not over"):
        list(read(path))
