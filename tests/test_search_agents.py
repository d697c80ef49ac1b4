"""The search agents and the exact endgame: legal, repeatable, blind to hidden cards, and right."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

import agents
from agents.endgame import ExactEndgame
from agents.search import ISMCTSAgent, PIMCAgent, RdeepAgent
from agents.search.base import SearchAgent
from agents.search.ismcts import best_child, grow_tree
from schnapsen_env import RULES, Layout, Position, Rules, engine
from schnapsen_env.actions import CLAIM, CLOSE, NUM_ACTIONS, parse_action
from schnapsen_env.cards import NUM_CARDS
from schnapsen_env.engine import record as r
from schnapsen_env.observation import observe
from schnapsen_env.sampling import redeal
from schnapsen_env.solver import new_workspace, solve
from schnapsen_env.view import PERFECT, view
from tests.random_play import running

SPECS = (
    "rdeep:samples=4,depth=3",
    "pimc:worlds=2",
    "ismcts:iterations=40,rollout=random",
    "ismcts:iterations=10",
    "heuristic:endgame=exact",
)


def positions(rules: Rules, deals: int, seed: int, every: int = 1) -> list[Any]:
    """Records of random deals, at every so many decisions."""
    return list(running(rules, deals, seed))[::every]


def seen(records: list[Any], rules: Rules) -> tuple[Any, Any]:
    """What the players to move see, ``[N, F]`` and ``[N, 27]``."""
    codes = rules.codes()
    pairs = [observe(record, codes, int(record[r.TO_MOVE])) for record in records]
    observations, masks = zip(*pairs, strict=True)
    return np.stack(observations), np.stack(masks)


def see(names: dict[str, Any], rules: str = "pagat_auto") -> tuple[Any, Any]:
    """What the player to move of a written position sees, one row each."""
    return seen([engine.record_of(Position.from_dict(names), RULES[rules])], RULES[rules])


# ------------------------------------------------------------------------- what all must keep to


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("spec", SPECS)
def test_legal_and_the_same_alone_in_any_order_and_from_any_number_of_threads(
    spec: str, name: str
) -> None:
    rules = RULES[name]
    observations, masks = seen(positions(rules, 5, seed=3, every=4), rules)
    rows = np.arange(len(masks))
    assert len(rows) > 10
    agent = agents.load(spec, rules=rules, seed=7)
    chosen = agent.act_batch(observations, masks)
    assert chosen.dtype == np.int64
    assert masks[rows, chosen].all()
    assert np.array_equal(agent.act_batch(observations[::-1], masks[::-1])[::-1], chosen)
    if isinstance(agent, SearchAgent):
        threaded = agents.load(f"{spec},threads=3", rules=rules, seed=7)
        assert np.array_equal(threaded.act_batch(observations, masks), chosen)
    alone = agent.act(observations[-1], masks[-1])
    assert type(alone) is int
    assert alone == chosen[-1]


@pytest.mark.parametrize("spec", SPECS)
def test_hidden_cards_do_not_matter(spec: str) -> None:
    rules = RULES["pagat"]
    records = positions(rules, 4, seed=5, every=3)
    chance = engine.new_record(1)
    redealt = [record.copy() for record in records]
    for record in redealt:
        redeal(record, int(record[r.TO_MOVE]), chance)
    assert any((a != b).any() for a, b in zip(records, redealt, strict=True))
    agent = agents.load(spec, rules=rules)
    before = agent.act_batch(*seen(records, rules))
    assert np.array_equal(agent.act_batch(*seen(redealt, rules)), before)


@pytest.mark.parametrize("spec", ["rdeep:samples=1", "pimc:worlds=1", "ismcts:iterations=5"])
def test_the_seed_decides(spec: str) -> None:
    rules = RULES["duel"]
    shown = seen(positions(rules, 6, seed=4, every=3), rules)
    agent = agents.load(spec, rules=rules, seed=1)
    first = agent.act_batch(*shown)
    assert not np.array_equal(agents.load(spec, rules=rules, seed=2).act_batch(*shown), first)
    agents.reset_agent(agent, 2)
    assert not np.array_equal(agent.act_batch(*shown), first)
    agents.reset_agent(agent, 1)
    assert np.array_equal(agent.act_batch(*shown), first)
    copies = (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent)))  # noqa: S301 - what this test wrote
    for same in copies:
        assert np.array_equal(same.act_batch(*shown), first)


# ---------------------------------------------------------------------------- perfect information

#: One trick to go in a closed deal. The ten of clubs makes 66 unless the other player holds the ace
#: of clubs, or the queen of trumps and with it no club: two of the ten unseen cards.
LAST_CARD: dict[str, Any] = {
    "trump": "H",
    "turned_up": "JH",
    "hands": [["TC"], ["QS"]],
    "talon": ["AC", "QC", "JC", "AD", "TD", "QD", "JD", "QH", "JS"],
    "closed_by": 0,
    "at_close": {"tricks": 0, "points": 0},
    "leader": 0,
    "card_points": [58, 0],
    "tricks": [4, 0],
    "won": [["AH", "TH", "AS", "TS", "KH", "KS", "KD", "KC"], []],
}


def test_pimc_means_what_one_counts_by_hand() -> None:
    agent = PIMCAgent("pagat_auto", worlds=10)
    means = agent.evaluate(*see(LAST_CARD))
    ten = parse_action("TC")
    assert abs(means[0, ten] - (8 * 3 - 2 * 3) / 10) < 1e-9
    assert np.isnan(np.delete(means[0], ten)).all()


def test_what_a_reply_ruled_out_is_not_imagined() -> None:
    """A heart led and not followed: the other player holds no trump; a club: not the ace."""
    ruled_out = LAST_CARD | {"cannot_hold": [[], ["AC", "QH"]]}
    for worlds in (3, 10):  # drawn, and taken in turn
        means = PIMCAgent("pagat_auto", worlds=worlds).evaluate(*see(ruled_out))
        assert means[0, parse_action("TC")] == 3
    without_ace = LAST_CARD | {"cannot_hold": [[], ["AC"]]}
    means = PIMCAgent("pagat_auto", worlds=10).evaluate(*see(without_ace))
    assert abs(means[0, parse_action("TC")] - (8 * 3 - 3) / 9) < 1e-9


def test_drawn_deals_have_the_mean_of_all_deals() -> None:
    """Nine of the ten deals are not all of them, so they are drawn."""
    ten = parse_action("TC")
    shown = see(LAST_CARD)
    means = [
        PIMCAgent("pagat_auto", seed=seed, worlds=9).evaluate(*shown)[0, ten] for seed in range(60)
    ]
    assert {round(9 * mean) for mean in means} <= {6 * good - 27 for good in range(10)}
    assert len(set(means)) > 2
    deviation = 6 * np.sqrt(0.8 * 0.2)  # of one deal
    assert abs(np.mean(means) - 1.8) < 4 * deviation / np.sqrt(9 * 60)


@pytest.mark.parametrize("name", RULES)
def test_pimc_is_exact_when_the_talon_is_exhausted(name: str) -> None:
    rules = RULES[name]
    records = [
        record for record in positions(rules, 40, seed=6) if record[r.TALON_STATE] == r.EXHAUSTED
    ]
    assert len(records) > 20
    shown = seen(records, rules)
    agent = PIMCAgent(rules, worlds=20)
    means, chosen = agent.evaluate(*shown), agent.act_batch(*shown)
    for row, record in enumerate(records):
        solution = solve(engine.position_of(record), rules)
        exact = np.full(NUM_ACTIONS, np.nan)
        exact[list(solution.action_values)] = list(solution.action_values.values())
        np.testing.assert_array_equal(means[row], exact)
        assert solution.action_values[int(chosen[row])] == solution.value
    exact_too = ISMCTSAgent(rules, iterations=1).act_batch(*shown)
    assert np.array_equal(exact_too, chosen)


@pytest.mark.parametrize("name", ["pagat_auto", "last_trick_ten", "french"])
def test_leaving_out_values_does_not_change_the_choice(name: str) -> None:
    rules = RULES[name]
    shown = seen(positions(rules, 4, seed=8, every=2), rules)
    agent = PIMCAgent(rules, worlds=4)
    means, chosen = agent.evaluate(*shown), agent.act_batch(*shown)
    rows = np.flatnonzero(shown[1].sum(axis=1) > 1)
    assert len(rows) > 10
    np.testing.assert_array_equal(means[rows, chosen[rows]], np.nanmax(means[rows], axis=1))


# ----------------------------------------------------------------------------------- forced wins

#: 49 points: the marriage in spades makes 69, at once or with the talon closed before.
MARRIAGE: dict[str, Any] = {
    "trump": "H",
    "turned_up": "JH",
    "hands": [["KS", "QS", "QC", "JC", "JD"], ["AH", "TH", "KH", "AS", "TS"]],
    "talon": ["KD", "QD", "JS"],
    "leader": 0,
    "card_points": [49, 0],
    "tricks": [3, 0],
    "won": [["AD", "AC", "TC", "TD", "KC", "QH"], []],
}


def test_searchers_find_the_marriage_that_goes_out() -> None:
    values = solve(MARRIAGE, "pagat_auto").action_values
    wins = {action for action, value in values.items() if value == 3}
    assert wins == {parse_action("declare-S"), CLOSE}
    shown = see(MARRIAGE)
    for spec in ("pimc:worlds=5", "ismcts:iterations=200", "rdeep:samples=8"):
        assert agents.load(spec).act_batch(*shown)[0] in wins, spec


def test_all_claim_when_they_have_66() -> None:
    declared = MARRIAGE | {"marriages": [["S"], []], "declared": "S"}
    for rules in ("pagat", "austrian"):
        shown = see(declared, rules)
        assert shown[1][0, CLAIM]
        for spec in SPECS:
            agent = agents.load(spec.replace("=10", "=30"), rules=rules)
            assert agent.act_batch(*shown)[0] == CLAIM, spec


def test_ismcts_finds_a_win_two_tricks_deep() -> None:
    """Draw the last trump first, then the ten is safe; the ten first is trumped."""
    names = LAST_CARD | {
        "hands": [["AH", "TC"], ["QH", "QS"]],
        "talon": ["AC", "QC", "JC", "AD", "TD", "QD", "JD", "KS", "JS"],
        "card_points": [43, 0],
        "tricks": [3, 0],
        "won": [["TH", "AS", "TS", "KH", "KD", "KC"], []],
        "cannot_hold": [[], ["AC", "QC", "JC", "AD", "TD", "QD", "JD"]],
    }
    values = solve(names, "pagat_auto").action_values
    assert values[parse_action("AH")] == 3 > values[parse_action("TC")]
    for agent in (
        ISMCTSAgent("pagat_auto", iterations=200, rollout="random"),
        ISMCTSAgent("pagat_auto", iterations=200),
        PIMCAgent("pagat_auto", worlds=20),
    ):
        assert agent.act_batch(*see(names))[0] == parse_action("AH")


def test_ismcts_visits_the_child_of_the_best_score_by_hand() -> None:
    # Columns: first child, next, action, available, visits, game points of who took the action.
    tree = np.array(
        [
            [1, 0, 0, 0, 6, 0],
            [0, 2, 4, 9, 4, 6],
            [0, 3, 7, 9, 2, 0],
            [0, 0, 9, 1, 1, 3],
        ]
    )
    # Actions 4 and 7 can be had, 9 cannot, and 11 was never tried.
    wanted = 1 << 4 | 1 << 7 | 1 << 11
    # Means 6 / 24 + 1/2 = 0.75 and 0.5; with c = 0.1 and 10 chances to take them the scores are
    # 0.75 + 0.1 sqrt(ln 10 / 4) = 0.826 and 0.5 + 0.1 sqrt(ln 10 / 2) = 0.607.
    assert best_child(tree, 0, wanted, 0.1) == (1, 1 << 11)
    assert tree[1:, 3].tolist() == [10, 10, 1]
    # With c = 2: 0.75 + 2 sqrt(ln 11 / 4) = 2.299 and 0.5 + 2 sqrt(ln 11 / 2) = 2.690.
    assert best_child(tree, 0, wanted, 2.0) == (2, 1 << 11)


def test_ismcts_counts_what_an_action_brings_to_who_took_it() -> None:
    """What comes to a node's player from below is what the other player loses there."""
    rules, iterations = RULES["pagat_auto"], 400
    tree = np.zeros((iterations + 1, 6), dtype=np.int64)
    record = engine.record_of(Position.from_dict(MARRIAGE), rules)
    seen_by = view(record, rules.codes(), 0, PERFECT)
    grow_tree(seen_by, rules.codes(), 77, iterations, 1, 0.7, tree, new_workspace(10))
    child, checked = tree[0, 0], 0
    while child:
        below, visits, total = tree[child, 0], 0, 0
        while below:
            visits, total = visits + tree[below, 4], total + tree[below, 5]
            below = tree[below, 1]
        if tree[child, 2] < NUM_CARDS and visits:  # a card: the other player replies
            # The first visit ended at the node itself, with at most three game points.
            assert visits == tree[child, 4] - 1
            assert abs(tree[child, 5] + total) <= 3
            checked += abs(total) > 20
        child = tree[child, 1]
    assert checked  # with the wrong sign the sum would be twice the total


def test_rdeep_does_not_close_and_prefers_points() -> None:
    rules = RULES["pagat"]
    shown = seen(positions(rules, 20, seed=2), rules)
    may_close = shown[1][:, CLOSE] == 1
    assert may_close.sum() > 20
    chosen = RdeepAgent(rules, samples=2).act_batch(*shown)
    assert not (chosen == CLOSE).any()
    # Last card of a closed deal: the follower's reply wins or not, whatever chance says.
    names = LAST_CARD | {"hands": [["TC", "JC"], ["QS", "QC"]]}
    names |= {"won": [["AH", "TH", "AS", "TS", "KH", "KS"], []], "card_points": [50, 0]}
    names |= {"talon": ["AC", "KC", "KD", "AD", "TD", "QD", "JD", "QH", "JS"], "tricks": [3, 0]}
    names |= {"cannot_hold": [[], ["AC", "KC", "QH"]]}
    shown = see(names)
    assert RdeepAgent("pagat_auto", samples=64, depth=1).act_batch(*shown)[0] == parse_action("TC")


# ------------------------------------------------------------------------------- exact endgame


class Stubborn:
    """Plays the legal action of the highest number."""

    def act(self, observation: Any, action_mask: Any) -> int:  # noqa: ARG002
        return int(np.flatnonzero(action_mask)[-1])


@pytest.mark.parametrize("name", RULES)
def test_exact_endgame_plays_the_best_action_that_its_agent_likes_best(name: str) -> None:
    rules = RULES[name]
    records = positions(rules, 30, seed=11)
    observations, masks = seen(records, rules)
    agent = ExactEndgame(Stubborn(), rules)
    kept = masks.copy()
    chosen = agent.act_batch(observations, masks)
    np.testing.assert_array_equal(masks, kept)
    changed = 0
    for row, record in enumerate(records):
        own = int(np.flatnonzero(masks[row])[-1])
        if record[r.TALON_STATE] != r.EXHAUSTED:
            assert chosen[row] == own
            continue
        solution = solve(engine.position_of(record), rules)
        best = [a for a, value in solution.action_values.items() if value == solution.value]
        assert chosen[row] == max(best)
        changed += chosen[row] != own
    assert changed > 3


#: Every reply loses three game points, since the other player takes all tricks; a wrong claim two.
CLAIM_IS_BEST: dict[str, Any] = {
    "trump": "H",
    "hands": [["TH", "KC", "AS", "TC"], ["JC", "QC", "JD", "QD", "JS"]],
    "lead": "AH",
    "leader": 0,
    "card_points": [62, 0],
    "tricks": [5, 0],
    "won": [["JH", "QH", "KH", "AC", "KD", "TD", "AD", "QS", "KS", "TS"], []],
}


@pytest.mark.parametrize("rules", ["austrian", "last_trick_ten"])
def test_exact_endgame_plays_a_wrong_claim_that_its_agent_would_never_make(rules: str) -> None:
    values = solve(CLAIM_IS_BEST, rules).action_values
    assert {action for action, value in values.items() if value == -2} == {CLAIM}
    shown = see(CLAIM_IS_BEST, rules)
    assert agents.load("heuristic", rules=rules).act_batch(*shown)[0] != CLAIM
    assert agents.load("heuristic:endgame=exact", rules=rules).act_batch(*shown)[0] == CLAIM


class Careless(Stubborn):
    """Always gives the same answer, however many positions it is asked about."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act_batch(self, observations: Any, action_masks: Any) -> Any:  # noqa: ARG002
        return self.answer


@pytest.mark.parametrize("answer", [[3], 3, [[3, 4]], ["3"]])
def test_exact_endgame_refuses_answers_that_are_none(answer: Any) -> None:
    shown = seen(positions(RULES["pagat_auto"], 3, seed=11), RULES["pagat_auto"])
    with pytest.raises(agents.AgentError, match=r"Careless: act_batch must return \d\d integers"):
        ExactEndgame(Careless(answer), "pagat_auto").act_batch(*shown)
    single = shown[0][:1], shown[1][:1]
    with pytest.raises(agents.AgentError, match="act_batch must return 1 integers"):
        ExactEndgame(Careless([3.5]), "pagat_auto").act_batch(*single)


def test_a_network_can_have_the_exact_endgame(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def load_agent(path: str, rules: Rules, seed: int, **options: str) -> object:
        given.append((path, rules.name, seed, options))
        return Stubborn()

    monkeypatch.setattr("agents.ppo.load_agent", load_agent)
    agent = agents.load("ppo:x,sample=true,endgame=exact", rules="duel", seed=2)
    assert isinstance(agent, ExactEndgame)
    assert given == [("x", "duel", 2, {"sample": "true"})]


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("pimc:worlds=0", "option worlds is a whole number of 1 to 100,000, not 0"),
        ("pimc:worlds=-3", "not -3"),
        ("pimc:worlds=2.5", "not 2.5"),
        ("pimc:worlds=many", "agent 'pimc:worlds=many': the option worlds"),
        ("pimc:worlds=" + 30 * "9", "1 to 100,000"),
        ("pimc:depth=2", "no option 'depth': pimc takes worlds, threads"),
        ("pimc:20", "'20' is not an option; write pimc:worlds=20"),
        ("pimc:threads=0", "option threads"),
        ("rdeep:depth=11", "option depth is a whole number of 1 to 10"),
        ("rdeep:samples=1e3", "not 1e3"),
        ("ismcts:iterations=0", "option iterations"),
        ("ismcts:iterations=99999999999", "1 to 10,000,000"),
        ("ismcts:rollout=clever", "random, heuristic, not 'clever'"),
        ("ismcts:exploration=0", "exploration is a number above 0"),
        ("ismcts:exploration=nan", "not nan"),
        (
            "heuristic:endgame=no",
            "agent 'heuristic:endgame=no': the option endgame can only be exact",
        ),
        ("random:endgame=exact", "no option 'endgame'"),
    ],
)
def test_a_wrong_option_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        agents.load(spec)


@pytest.mark.parametrize("spec", SPECS[:3])
def test_other_observations_are_refused(spec: str) -> None:
    rules = RULES["pagat"]
    records = [record for record in positions(rules, 6, seed=1) if record[r.TRICKS :][:2].sum() > 1]
    record = records[0]
    seat = int(record[r.TO_MOVE])
    agent: Any = agents.load(spec, rules=rules)
    observation, mask = observe(record, rules.codes(), seat)
    agent.act(observation, mask)
    with pytest.raises(TypeError, match="dtype float32, not uint8"):
        agent.act(observation.astype(np.uint8), mask)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=f"the {agent.name} player takes observations of shape"):
        agent.act(observation[:-1], mask)
    with pytest.raises(ValueError, match=r"masks of shape \[N, 27\]"):
        agent.act(observation, mask[:20])
    for number in (np.nan, 5.0):
        spoilt = observation.copy()
        spoilt[3] = number
        with pytest.raises(ValueError, match=rf"{agent.name} .* observations\[0, 3\] \(hand\) = "):
            agent.act(spoilt, mask)
    for entry in (-1, 2, 256):  # 256 would be 0 in int8
        wide: Any = mask.astype(np.int64)
        wide[5] = entry
        with pytest.raises(ValueError, match=rf"action_masks\[0, 5\] = {entry}, .* 0 nor 1"):
            agent.act(observation, wide)
    floats: Any = mask.astype(np.float32)
    with pytest.raises(TypeError, match="action masks of dtype int8, not float32"):
        agent.act(observation, floats)
    with pytest.raises(ValueError, match="no deal looks like the observation of position 0"):
        agent.act(*observe(record, rules.codes(), seat, Layout(memory="none")))
    with pytest.raises(ValueError, match="allows no action"):
        agent.act(*observe(record, rules.codes(), 1 - seat))
    shown = seen(records, rules)  # manual claims, in which an agent of automatic ones sees no sense
    with pytest.raises(ValueError, match="not that of the rules 'pagat_auto'"):
        agents.load(spec, rules="pagat_auto").act_batch(*shown)


@pytest.mark.parametrize("seed", [1.7, True, "1", None])
def test_a_seed_is_an_integer(seed: Any) -> None:
    agent = RdeepAgent(seed=np.int64(-1))  # pyright: ignore[reportArgumentType] - an integer too
    with pytest.raises(ValueError, match=f"the seed of an agent is an integer, not {seed!r}"):
        agent.reset(seed)


class FailsInOneThread(SearchAgent):
    """Whichever thread comes as number ``failing`` fails; the other one is slow."""

    name = "fails"

    def __init__(self, failing: int) -> None:
        super().__init__("pagat_auto", threads=2)
        self.failing = failing
        self.numbers = itertools.count()
        self.both = threading.Barrier(2)
        self.decided: list[int] = []

    def _new_memory(self) -> int:
        return next(self.numbers)

    def _decide(
        self,
        memory: Any,
        observations: Any,  # noqa: ARG002
        masks: Any,
        chances: Any,  # noqa: ARG002
        out: Any,
    ) -> None:
        if memory not in self.decided:  # the first part of this thread: wait for the other's
            self.both.wait(timeout=60)
        self.decided.append(memory)
        if memory == self.failing:
            raise KeyboardInterrupt
        time.sleep(0.05)
        out[:] = masks.argmax(axis=1)


@pytest.mark.parametrize("failing", [0, 1])
def test_threads_stop_when_one_of_them_fails(failing: int) -> None:
    shown = seen(positions(RULES["pagat_auto"], 20, seed=1), RULES["pagat_auto"])
    assert len(shown[0]) > 200
    agent = FailsInOneThread(failing)
    with pytest.raises(KeyboardInterrupt):
        agent.act_batch(*shown)
    assert len(agent.decided) < 100


@pytest.mark.parametrize("spec", SPECS)
def test_no_positions_need_no_answers(spec: str) -> None:
    size = Layout().size
    nothing = np.empty((0, size), dtype=np.float32), np.empty((0, NUM_ACTIONS), dtype=np.int8)
    assert agents.load(spec).act_batch(*nothing).shape == (0,)
