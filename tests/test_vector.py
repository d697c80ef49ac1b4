"""The batch environment: the same as single environments row by row, and what comes on top."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schnapsen_env import RULES, batch, engine, schnapsen_v0, vector
from schnapsen_env.actions import CLOSE, NUM_ACTIONS
from schnapsen_env.engine import record as r
from schnapsen_env.observation import Layout, observe
from schnapsen_env.position import EndReason
from schnapsen_env.record_log import replay
from schnapsen_env.vector import BUFFERS, NO_ACTION, SchnapsenVectorEnv

NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)
MODES = (NEXT_STEP, SAME_STEP, DISABLED)
AGENTS = ("player_0", "player_1")

Masks = npt.NDArray[np.int8]
Actions = npt.NDArray[np.int64]


def legal_choice(rng: np.random.Generator, mask: Masks) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


class Singles:
    """N single environments, reset as a batch of the same autoreset mode resets its rows."""

    def __init__(self, num_envs: int, mode: AutoresetMode, seed: int, **settings: Any) -> None:
        self.mode = mode
        self.envs: list[Any] = [schnapsen_v0.env(**settings) for _ in range(num_envs)]
        for row, env in enumerate(self.envs):
            env.reset(seed=seed + row)

    def step(self, actions: Actions, out: dict[str, Any]) -> None:
        """Step each environment and compare all that the batch says of it."""
        for row, (env, action) in enumerate(zip(self.envs, actions.tolist(), strict=True)):
            rewards, ended = [0.0, 0.0], False
            if any(env.terminations.values()):
                assert self.mode == NEXT_STEP
                env.reset()
            else:
                env.step(action)
                rewards = [env.rewards[agent] for agent in AGENTS]
                ended = any(env.terminations.values())
                self.compare_infos(row, env, out["info"])
            assert out["rewards"][row].tolist() == rewards
            assert out["terminations"][row] == ended
            assert not out["truncations"][row]
            if ended:
                self.compare_end(row, env, out["info"])
                if self.mode == SAME_STEP:
                    env.reset()
        self.compare_views(out["obs"], out["info"]["to_play"])

    def compare_infos(self, row: int, env: Any, info: dict[str, Any]) -> None:
        single = env.infos["player_0"]
        assert ("end_reason" in single) == bool(info.get("_end_reason", self.none)[row])
        if "end_reason" in single:
            points = [env.infos[agent]["game_points"] for agent in AGENTS]
            assert info["game_points"][row].tolist() == points
            assert EndReason(info["end_reason"][row]).text == single["end_reason"]
        if "match_score" in single:
            assert info["match_score"][row].tolist() == single["match_score"]
        assert ("illegal_action" in single) == bool(info.get("illegal_action", self.none)[row])

    def compare_end(self, row: int, env: Any, info: dict[str, Any]) -> None:
        assert info["_episode"][row]
        result = env.infos["player_0"].get("match_result")
        if result is not None:
            episode = info["episode"]
            assert episode["match_winner"][row] == result["winner"]
            assert episode["schneider"][row] == result["schneider"]
            assert episode["rueckschneider"][row] == result["rueckschneider"]
        if self.mode == SAME_STEP:
            for seat, agent in enumerate(AGENTS):
                seen = env.observe(agent)["observation"]
                assert info["final_observation"][row, seat].tobytes() == seen.tobytes()
        else:
            assert "final_observation" not in info

    def compare_views(self, obs: dict[str, Any], to_play: Actions) -> None:
        for row, env in enumerate(self.envs):
            over = any(env.terminations.values())
            assert over or env.agent_selection == AGENTS[to_play[row]]
            seen = env.observe(AGENTS[to_play[row]])
            assert obs["observation"][row].tobytes() == seen["observation"].tobytes()
            expected = np.ones_like(seen["action_mask"]) if over else seen["action_mask"]
            assert obs["action_mask"][row].tobytes() == expected.tobytes()

    @property
    def none(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.envs), dtype=np.bool_)


def play_beside_singles(
    mode: AutoresetMode, steps: int, *, illegal: float = 0.0, **settings: Any
) -> int:
    """Play a batch and single environments with the same actions; how many episodes ended."""
    num_envs, seed = 5, 100
    singles = Singles(num_envs, mode, seed, **settings)
    vec = SchnapsenVectorEnv(num_envs, autoreset_mode=mode, **settings)
    obs, info = vec.reset(seed=seed)
    singles.compare_views(obs, info["to_play"])
    rng = np.random.default_rng(7)
    episodes = 0
    for _ in range(steps):
        actions = np.array([legal_choice(rng, mask) for mask in obs["action_mask"]])
        wild = rng.random(num_envs) < illegal
        actions[wild] = rng.integers(NUM_ACTIONS, size=num_envs)[wild]
        obs, rewards, terminations, truncations, info = vec.step(actions)
        singles.step(
            actions,
            {
                "obs": obs,
                "rewards": rewards,
                "terminations": terminations,
                "truncations": truncations,
                "info": info,
            },
        )
        episodes += int(terminations.sum())
        if mode == DISABLED and terminations.any():
            obs, info = vec.reset(options={"reset_mask": terminations})
            for row in np.flatnonzero(terminations):
                singles.envs[row].reset()
            singles.compare_views(obs, info["to_play"])
    return episodes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", RULES)
def test_equals_single_environments(rules: str, mode: AutoresetMode) -> None:
    assert play_beside_singles(mode, 60, rules=rules) > 8


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reward", ["game_points", "win"])
def test_equals_single_environments_in_matches(mode: AutoresetMode, reward: str) -> None:
    settings: dict[str, Any] = {"episode": "match", "target": 3, "reward": reward}
    settings["rules"] = "last_trick_ten"
    assert play_beside_singles(mode, 160, **settings) > 4


@pytest.mark.parametrize(
    "layout",
    [
        {"suits": "canonical"},
        {"suits": "trump_first", "history": True},
        {"memory": "none"},
        {"memory": "last_trick", "suits": "canonical"},
    ],
)
def test_equals_single_environments_in_every_layout(layout: dict[str, Any]) -> None:
    assert play_beside_singles(SAME_STEP, 60, rules="pagat", **layout) > 8


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("illegal_action", "rules", "suits"),
    [
        ("lose", "duel", "natural"),
        ("lose", "french", "canonical"),
        ("revoke", "austrian", "natural"),
    ],
)
def test_equals_single_environments_with_illegal_actions(
    mode: AutoresetMode, illegal_action: str, rules: str, suits: str
) -> None:
    settings = {"illegal_action": illegal_action, "rules": rules, "suits": suits}
    assert play_beside_singles(mode, 60, illegal=0.2, **settings) > 15


def test_a_revoke_costs_the_deal() -> None:
    vec = SchnapsenVectorEnv(200, rules="austrian", illegal_action="revoke")
    obs, _ = vec.reset(seed=0)
    reasons: list[int] = []
    rng = np.random.default_rng(0)
    for _ in range(30):
        held = obs["observation"][:, :20] > 0
        obs, rewards, _, _, info = vec.step(np.array([legal_choice(rng, row) for row in held]))
        if "end_reason" in info:
            reasons += info["end_reason"][info["_end_reason"]].tolist()
            revoked = info["end_reason"] == EndReason.REVOKE
            assert np.isin(np.abs(rewards[revoked]), [2, 3]).all()
    assert EndReason.REVOKE in reasons


# ------------------------------------------------------------------------------ forms of one step


def rollout(vec: SchnapsenVectorEnv, steps: int = 60, seed: int = 3) -> list[Any]:
    """Everything that a batch returns in some steps of random play, copied."""
    first = copy.deepcopy(vec.reset(seed=seed))
    return [first, *(copy.deepcopy(vec.step(vec.sample_actions())) for _ in range(steps))]


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        parts = cast("dict[str, Any]", one)
        assert parts.keys() == other.keys()
        for key, part in parts.items():
            assert_same(part, other[key])
    elif isinstance(one, list | tuple):
        for left, right in zip(cast("list[Any]", one), other, strict=True):
            assert_same(left, right)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES[:2])
def test_threads_change_nothing(mode: AutoresetMode) -> None:
    alone = SchnapsenVectorEnv(11, autoreset_mode=mode, episode="match", target=3)
    threads = SchnapsenVectorEnv(11, autoreset_mode=mode, episode="match", target=3, num_threads=3)
    assert_same(rollout(alone), rollout(threads))
    assert_same(alone.state(), threads.state())
    threads.close()


@pytest.mark.parametrize("mode", MODES[:2])
def test_copy_false_returns_the_same_numbers_in_the_same_arrays(mode: AutoresetMode) -> None:
    fresh = SchnapsenVectorEnv(7, autoreset_mode=mode)
    kept = SchnapsenVectorEnv(7, autoreset_mode=mode, copy=False)
    assert_same(rollout(fresh), rollout(kept))
    first, second = kept.step(kept.sample_actions()), kept.step(kept.sample_actions())
    assert first[0]["observation"] is second[0]["observation"]
    assert first[1] is second[1]


def test_fresh_arrays_stay_as_they_were() -> None:
    vec = SchnapsenVectorEnv(16)
    vec.reset(seed=0)
    held = [vec.step(vec.sample_actions()) for _ in range(20)]
    kept = copy.deepcopy(held)
    for _ in range(20):
        vec.step(vec.sample_actions())
    assert_same(held, kept)


def test_final_observations_that_were_changed_do_not_come_back() -> None:
    vec, plain = SchnapsenVectorEnv(64), SchnapsenVectorEnv(64)
    vec.reset(seed=0)
    plain.reset(seed=0)
    seen = 0
    for _ in range(40):
        actions = plain.sample_actions()
        info, expected = vec.step(actions)[-1], plain.step(actions)[-1]
        assert_same(info, expected)
        if "final_observation" in info:
            assert (info["final_observation"][~info["_final_observation"]] == 0).all()
            info["final_observation"][:] = 7  # the next one may get the same memory
            seen += 1
        del info
    assert seen > 20


def test_changing_what_was_returned_does_not_change_the_game() -> None:
    vec, other = SchnapsenVectorEnv(8), SchnapsenVectorEnv(8)
    vec.reset(seed=0)
    obs, _ = other.reset(seed=0)
    obs["observation"][:] = 0.5
    obs["action_mask"][:] = 1
    actions = vec.sample_actions()
    assert_same(vec.step(actions)[:4], other.step(actions)[:4])


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("rules", ["duel", "last_trick_ten"])
def test_uint8_times_scale_is_the_float_form_exactly(rules: str, history: bool) -> None:
    floats = SchnapsenVectorEnv(9, rules, history=history)
    whole = SchnapsenVectorEnv(9, rules, history=history, dtype=np.uint8)
    obs, _ = floats.reset(seed=1)
    raw, _ = whole.reset(seed=1)
    for _ in range(60):
        assert raw["observation"].dtype == np.uint8
        scaled = raw["observation"] * floats.layout.scale
        assert scaled.dtype == np.float32
        assert scaled.tobytes() == obs["observation"].tobytes()
        actions = floats.sample_actions()
        obs, _, _, _, info = floats.step(actions)
        raw, _, _, _, raw_info = whole.step(actions)
        if "final_observation" in info:
            scaled = raw_info["final_observation"] * floats.layout.scale
            assert scaled.tobytes() == info["final_observation"].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_observations_are_in_their_spaces(dtype: type) -> None:
    vec = SchnapsenVectorEnv(6, "last_trick_ten", dtype=dtype, history=True)
    assert vec.observation_space == batch_space(vec.single_observation_space, 6)
    assert vec.action_space == batch_space(vec.single_action_space, 6)
    for obs, *_ in rollout(vec, 40):
        assert obs in vec.observation_space
        row: dict[str, Any] = {key: array[0] for key, array in obs.items()}
        assert row in vec.single_observation_space


# -------------------------------------------------------------------------------------- buffers


def test_buffers_are_filled_in_place() -> None:
    n, size = 6, Layout().size
    buffers: dict[str, npt.NDArray[Any]] = {
        "observations": np.zeros((n, size), np.float32),
        "action_masks": np.zeros((n, NUM_ACTIONS), np.int8),
        "rewards": np.zeros((n, 2), np.float32),
        "terminals": np.zeros(n, np.bool_),
        "truncations": np.ones(n, np.bool_),
        "to_play": np.zeros(n, np.int64),
    }
    assert buffers.keys() == BUFFERS.keys()
    vec, plain = SchnapsenVectorEnv(n, buffers=buffers), SchnapsenVectorEnv(n)
    vec.reset(seed=0)
    plain.reset(seed=0)
    for _ in range(50):
        actions = plain.sample_actions()
        expected = plain.step(actions)
        obs, rewards, terminations, truncations, info = vec.step(actions)
        assert obs["observation"] is buffers["observations"]
        assert obs["action_mask"] is buffers["action_masks"]
        assert rewards is buffers["rewards"]
        assert terminations is buffers["terminals"]
        assert truncations is buffers["truncations"]
        assert info["to_play"] is buffers["to_play"]
        assert_same((obs, rewards, terminations, truncations, info), expected)


def test_a_buffer_may_be_a_part_of_a_larger_one() -> None:
    # As PufferLib has it: two agents a deal in flat arrays, masks beside the observations.
    n, size = 4, Layout().size
    rows = np.full((n, size + NUM_ACTIONS + 5), 99, np.uint8)
    rewards = np.zeros(2 * n, np.float32)
    vec = SchnapsenVectorEnv(
        n,
        dtype=np.uint8,
        copy=False,
        buffers={
            "observations": rows[:, :size],
            "action_masks": rows[:, size : size + NUM_ACTIONS].view(np.int8),
            "rewards": rewards.reshape(n, 2),
        },
    )
    plain = SchnapsenVectorEnv(n, dtype=np.uint8)
    vec.reset(seed=0)
    plain.reset(seed=0)
    for _ in range(40):
        actions = plain.sample_actions()
        vec.step(actions)
        obs, expected, *_ = plain.step(actions)
        np.testing.assert_array_equal(rows[:, :size], obs["observation"])
        np.testing.assert_array_equal(rows[:, size:-5], obs["action_mask"])
        np.testing.assert_array_equal(rewards, expected.ravel())
    assert (rows[:, -5:] == 99).all()


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ({"obs": np.zeros(1)}, "'obs' is unknown: choose from observations"),
        ({"rewards": [0.0]}, r"rewards is a numpy array float32\[2, 2\]"),
        ({"rewards": np.zeros(2, np.float32)}, r"rewards is float32\[2, 2\], not float32\[2\]"),
        ({"rewards": np.zeros((2, 2))}, r"rewards is float32\[2, 2\], not float64\[2, 2\]"),
        ({"rewards": np.zeros((2, 4), np.float32)[:, ::2]}, "rewards .* gaps"),
        ({"to_play": np.broadcast_to(np.int64(0), 2)}, "to_play is read-only"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(buffers: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SchnapsenVectorEnv(2, buffers=buffers)


# ---------------------------------------------------------------------------------------- resets


def test_row_i_of_seed_s_is_a_single_environment_of_seed_s_plus_i() -> None:
    vec = SchnapsenVectorEnv(8)
    vec.reset(seed=40)
    for row, record in enumerate(vec.records):
        single = engine.new_record(40 + row)
        engine.deal(single)
        np.testing.assert_array_equal(record, single)
    last = vec.records[7].copy()
    vec.reset(seed=[47] * 8)
    assert (vec.records == last).all()
    seed: Any = np.array(40)
    vec.reset(seed=seed)
    np.testing.assert_array_equal(vec.records[7], last)


@pytest.mark.parametrize(
    "seeds",
    [
        [-1, 0, 1],
        [2**63 - 1, 2**63, 2**63 + 1],
        [2**64 - 2, 2**64 - 1, 2**64],
        [2**63 + 5, 7, 2**63 + 6],
        np.array([2**63 + 5, 7, 2**63 + 6], dtype=np.uint64),
        np.array([-3, 0, 3]),
    ],
    ids=str,
)
def test_every_integer_is_a_seed_whatever_stands_beside_it(seeds: Any) -> None:
    vec = SchnapsenVectorEnv(3)
    vec.reset(seed=seeds)
    singles = [engine.new_record(int(seed)) for seed in seeds]
    for single in singles:
        engine.deal(single)
    np.testing.assert_array_equal(vec.records, singles)
    assert len({record.tobytes() for record in vec.records}) == 3


def test_resets_without_a_seed_go_on() -> None:
    vec, other = SchnapsenVectorEnv(3), SchnapsenVectorEnv(3)
    assert not (vec.reset()[0]["observation"] == other.reset()[0]["observation"]).all()
    vec.reset(seed=1)
    first = [vec.records.copy(), (vec.reset(), vec.records.copy())[1]]
    vec.reset(seed=1)
    again = [vec.records.copy(), (vec.reset(), vec.records.copy())[1]]
    assert_same(first, again)
    assert not (first[0] == first[1]).all(axis=1).any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_threads_work_in_a_process_that_was_forked() -> None:
    program = (
        "import os, sys\n"
        "from schnapsen_env import SchnapsenVectorEnv\n"
        "vec = SchnapsenVectorEnv(8, num_threads=2)\n"
        "vec.reset(seed=0)\n"
        "vec.step(vec.sample_actions())\n"
        "child = os.fork()\n"
        "vec.step(vec.sample_actions())\n"
        "if not child: os._exit(0)\n"
        "sys.exit(os.waitpid(child, 0)[1])\n"
    )
    # A child without threads of its own would wait for ever.
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP])
def test_a_reset_of_some_rows_clears_what_the_last_step_said_of_them(mode: AutoresetMode) -> None:
    buffers = {
        "rewards": np.zeros((2, 2), dtype=np.float32),
        "terminals": np.zeros(2, dtype=np.bool_),
    }
    vec = SchnapsenVectorEnv(2, autoreset_mode=mode, buffers=buffers)
    # Both deals are played alike, so they end together.
    vec.reset(seed=[3, 3])
    while not buffers["terminals"].all():
        vec.step(vec.observe()[0]["action_mask"].argmax(axis=1))
    assert buffers["rewards"].any(axis=1).all()
    assert set(vec.finished_deals()) == {0, 1}
    vec.reset(options={"reset_mask": np.array([True, False])})
    assert buffers["terminals"].tolist() == [False, True]
    assert buffers["rewards"].any(axis=1).tolist() == [False, True]
    assert set(vec.finished_deals()) == {1}
    vec.reset()
    assert not buffers["terminals"].any()
    assert not vec.finished_deals()


def test_decks_forehands_and_positions_begin_deals() -> None:
    n = 6
    rng = np.random.default_rng(0)
    decks = np.array([rng.permutation(20) for _ in range(n)])
    forehands = rng.integers(2, size=n)
    vec = SchnapsenVectorEnv(n)
    obs, info = vec.reset(seed=0, options={"decks": decks, "forehands": forehands, "other": 1})
    np.testing.assert_array_equal(info["to_play"], forehands)
    for row in range(n):
        env = schnapsen_v0.env()
        env.reset(seed=row, options={"deck": decks[row], "forehand": int(forehands[row])})
        seen = env.observe(env.agent_selection)["observation"]
        assert obs["observation"][row].tobytes() == seen.tobytes()
    positions: list[Any] = [None] * n
    positions[2] = engine.position_of(vec.records[1]).to_dict()
    obs, _ = vec.reset(seed=0, options={"positions": positions})
    assert engine.position_of(vec.records[2]).to_dict() == positions[2]
    plain, _ = SchnapsenVectorEnv(n).reset(seed=0)
    others = [row for row in range(n) if row != 2]
    np.testing.assert_array_equal(obs["observation"][others], plain["observation"][others])


def test_one_deck_for_all_rows() -> None:
    vec = SchnapsenVectorEnv(4)
    vec.reset(seed=0, options={"deck": list(range(20)), "forehand": 1})
    assert {str(engine.position_of(record)) for record in vec.records} == {
        str(engine.position_of(vec.records[0]))
    }
    assert vec.records[0, r.FOREHAND] == 1


def test_reset_options_hold_for_the_first_deal_only() -> None:
    vec, plain = SchnapsenVectorEnv(3), SchnapsenVectorEnv(3)
    options = {"deck": list(range(20))}
    vec.reset(seed=5, options=options)
    plain.reset(seed=5)
    vec.reset()
    plain.reset()
    np.testing.assert_array_equal(vec.records, plain.records)


def test_reset_mask_leaves_other_rows_alone() -> None:
    vec = SchnapsenVectorEnv(5, autoreset_mode=DISABLED)
    vec.reset(seed=0)
    for _ in range(3):
        vec.step(vec.sample_actions())
    before = vec.records.copy()
    options = {"reset_mask": np.array([0, 1, 0, 0, 1], dtype=np.bool_), "deck": list(range(20))}
    obs, _ = vec.reset(seed=9, options=options)
    assert "reset_mask" in options
    changed = (vec.records != before).any(axis=1)
    assert changed.tolist() == [False, True, False, False, True]
    codes = vec.rules.codes()
    for row, record in enumerate(vec.records):
        seen, _ = observe(record, codes, int(record[r.TO_MOVE]))
        assert obs["observation"][row].tobytes() == seen.tobytes()


def over(position_change: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """A deal's first position with something changed."""

    def position() -> dict[str, Any]:
        record = engine.new_record(0)
        engine.deal(record)
        return engine.position_of(record).to_dict() | position_change

    return position


BAD_RESETS: list[tuple[Any, Any, type[Exception], str]] = [
    ([1, 2], {}, ValueError, "2 seeds do not fit 3 rows"),
    (1.5, {}, TypeError, "a seed is an integer"),
    (None, {"decks": [[0] * 20] * 3}, ValueError, "row 0: deck must be a permutation"),
    (
        None,
        {"decks": [list(range(20))]},
        ValueError,
        r"decks must have shape \(3, 20\).* not \(1, 20\)",
    ),
    (None, {"decks": 5}, ValueError, r"decks must have shape \(3, 20\), one deck a row, not 5"),
    (None, {"decks": [[0, 1]] * 3}, ValueError, r"\(3, 20\).* but row 0 has shape \(2,\)"),
    (None, {"forehands": 1}, ValueError, r"forehands must have shape \(3,\).* not 1: give fore"),
    (None, {"forehands": np.array(1)}, ValueError, r"forehands must .* \(3,\).* not array\(1\)"),
    (None, {"forehands": [[0], [1], [1]]}, ValueError, r"\(3,\).* but row 0 has shape \(1,\)"),
    (None, {"forehands": [0, 1]}, ValueError, r"forehands must have shape \(3,\).* not \(2,\)"),
    (None, {"forehand": np.array([0, 1])}, ValueError, "row 0: forehand is 0 or 1, not array"),
    (None, {"positions": 5}, ValueError, r"positions must have shape \(3,\).* not 5: give pos"),
    (None, {"positions": "abc"}, ValueError, "not 'abc': give position for all rows alike"),
    (None, {"positions": {1: 1, 2: 2, 3: 3}}, ValueError, "give position for all rows alike"),
    (None, [1], ValueError, r"options is a dict from names to values, or None, not \[1\]"),
    (None, 0, ValueError, "options is a dict .* not 0"),
    (None, {"deck": [1], "decks": [[1]] * 3}, ValueError, "deck for all rows or decks, not both"),
    (None, {"forehands": [0, 2, 1]}, ValueError, "row 1: forehand is 0 or 1, not 2"),
    (None, {"positions": [None, {"trump": "X"}, None]}, ValueError, "row 1: position"),
    (None, {"reset_mask": [True, False]}, ValueError, "reset_mask must be a bool array"),
    (None, {"reset_mask": np.zeros(3, np.bool_)}, ValueError, "with a True in it"),
    (None, {"reset_mask": np.ones(3)}, ValueError, "reset_mask must be a bool array"),
]


@pytest.mark.parametrize(("seed", "options", "error", "message"), BAD_RESETS)
def test_bad_resets_change_nothing(
    seed: Any, options: Any, error: type[Exception], message: str
) -> None:
    vec = SchnapsenVectorEnv(3)
    vec.reset(seed=0)
    vec.step(vec.sample_actions())
    before = vec.get_state()
    with pytest.raises(error, match=message):
        vec.reset(seed=seed, options=options)
    assert_same(vec.get_state()["arrays"], before["arrays"])


def test_nothing_works_before_the_first_reset() -> None:
    vec = SchnapsenVectorEnv(2)
    calls: list[Callable[[], Any]] = [
        lambda: vec.step(np.zeros(2, np.int64)),
        vec.observe,
        vec.state,
        vec.sample_actions,
        vec.get_state,
        lambda: vec.reset(options={"reset_mask": np.array([True, False])}),
    ]
    for call in calls:
        with pytest.raises(ResetNeeded, match="first reset"):
            call()


# --------------------------------------------------------------------------------------- actions


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_integer_actions_of_every_width(dtype: Any) -> None:
    vec, plain = SchnapsenVectorEnv(4), SchnapsenVectorEnv(4)
    vec.reset(seed=0)
    plain.reset(seed=0)
    actions = plain.sample_actions()
    expected = plain.step(actions)
    assert_same(vec.step(actions.astype(dtype)), expected)


def test_actions_may_be_a_list_or_a_strided_array() -> None:
    vec = SchnapsenVectorEnv(4)
    vec.reset(seed=0)
    vec.step(vec.sample_actions().tolist())
    vec.step(np.repeat(vec.sample_actions(), 2)[::2])


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        (np.zeros(2), TypeError, r"not float64: pass actions.astype\(np.int64\)"),
        (np.zeros(2, np.bool_), TypeError, "not bool"),
        (np.zeros((2, 1), np.int64), ValueError, r"shape \(2,\), not \(2, 1\)"),
        (np.zeros(3, np.int64), ValueError, r"shape \(2,\), not \(3,\)"),
        ([0, 27], engine.IllegalActionError, r"row 1: illegal action 27 .*actions are 0 to 26"),
        ([-1, 0], engine.IllegalActionError, r"row 0: illegal action -1 .*trump="),
        (np.array([2**63 + 5, 0], np.uint64), engine.IllegalActionError, f"row 0: .*{2**63 + 5}"),
        (np.array([0, 2**64 - 1], np.uint64), engine.IllegalActionError, f"row 1: .*{2**64 - 1}"),
        ([2**64, 0], TypeError, "actions must be integers"),
    ],
)
def test_what_is_no_action_is_refused_and_nothing_is_stepped(
    actions: Any, error: type[Exception], message: str
) -> None:
    vec = SchnapsenVectorEnv(2, copy=False)
    obs, info = vec.reset(seed=0)
    kept = copy.deepcopy((obs, info, vec.get_state()["arrays"]))
    with pytest.raises(error, match=message):
        vec.step(actions)
    assert_same((obs, info, vec.get_state()["arrays"]), kept)


@pytest.mark.parametrize("suits", ["natural", "canonical"])
def test_raise_names_row_action_and_position_and_steps_nothing(suits: Any) -> None:
    vec = SchnapsenVectorEnv(3, illegal_action="raise", suits=suits)
    obs, _ = vec.reset(seed=0)
    actions = vec.sample_actions()
    actions[1] = int(np.flatnonzero(obs["action_mask"][1] == 0)[0])
    before = vec.records.copy()
    with pytest.raises(engine.IllegalActionError, match="row 1: illegal action") as caught:
        vec.step(actions)
    assert str(engine.position_of(vec.records[1])) in str(caught.value)
    np.testing.assert_array_equal(vec.records, before)
    vec.step(vec.sample_actions())


def test_lose_ends_the_episode_and_costs_three() -> None:
    vec = SchnapsenVectorEnv(2, episode="match")
    obs, info = vec.reset(seed=0)
    offender = int(info["to_play"][0])
    actions = vec.sample_actions()
    actions[0] = int(np.flatnonzero(obs["action_mask"][0] == 0)[0])
    _, rewards, terminations, _, info = vec.step(actions)
    assert rewards[0, offender] == -3
    assert rewards[0, 1 - offender] == 0
    assert terminations.tolist() == [True, False]
    assert info["illegal_action"].tolist() == [True, False]
    assert info["episode"]["match_winner"][0] == -1
    assert EndReason(info["episode"]["end_reason"][0]) is EndReason.ILLEGAL_ACTION


def test_disabled_rows_wait_for_their_reset() -> None:
    vec = SchnapsenVectorEnv(4, autoreset_mode=DISABLED)
    obs, _ = vec.reset(seed=0)
    over = np.zeros(4, np.bool_)
    finals: dict[int, float] = {}
    for _ in range(30):
        actions = vec.sample_actions()
        assert (actions[over] == NO_ACTION).all()
        obs, rewards, terminations, _, _ = vec.step(actions)
        assert (terminations >= over).all()
        assert not rewards[over].any()
        finals |= {row: rewards[row, 0] for row in np.flatnonzero(terminations & ~over).tolist()}
        over = terminations
    assert len(finals) == 4
    assert over.all()
    assert (obs["action_mask"] == 1).all()
    with pytest.raises(ResetNeeded, match="row 0 is over"):
        vec.step(np.zeros(4, np.int64))
    vec.reset(options={"reset_mask": over})
    vec.step(vec.sample_actions())


# ------------------------------------------------------------------------------------ statistics


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("episode", ["deal", "match"])
def test_statistics_agree_with_what_was_returned(mode: AutoresetMode, episode: Any) -> None:
    n = 20
    vec = SchnapsenVectorEnv(n, "austrian", episode, autoreset_mode=mode, target=3)
    _, info = vec.reset(seed=0)
    returns, lengths, deals = np.zeros((n, 2)), np.zeros(n, int), np.zeros(n, int)
    waiting = np.zeros(n, np.bool_)
    episodes = 0
    for _ in range(150):
        _, rewards, terminations, _, info = vec.step(vec.sample_actions())
        returns += rewards
        lengths += ~waiting
        ended = info.get("_game_points", np.zeros(n, np.bool_))
        deals += ended
        assert "episode" not in info or episode == "match" or (info["_episode"] == ended).all()
        assert ("episode" in info) == terminations.any()
        if terminations.any():
            stats, mask = info["episode"], info["_episode"]
            np.testing.assert_array_equal(mask, terminations)
            np.testing.assert_array_equal(stats["r"], np.where(mask[:, None], returns, 0))
            np.testing.assert_array_equal(stats["l"], np.where(mask, lengths, 0))
            np.testing.assert_array_equal(stats["deals"], np.where(mask, deals, 0))
            np.testing.assert_array_equal(stats["r"], np.where(mask[:, None], stats["r"], 0))
            assert (stats["game_points"].sum(axis=1) == 0).all()
            if episode == "match":
                winners = stats["match_winner"][mask]
                assert (stats["match_score"][mask, winners] >= 3).all()
            returns[mask], lengths[mask], deals[mask] = 0, 0, 0
            episodes += int(mask.sum())
        waiting = terminations if mode == NEXT_STEP else waiting
    assert episodes > 40
    assert not any(
        isinstance(value, dict) for value in info.values() if value is not info.get("episode")
    )


def test_the_documentation_lists_every_key_of_info() -> None:
    page = (Path(__file__).parent.parent / "docs" / "vector.md").read_text(encoding="utf-8")
    vec = SchnapsenVectorEnv(32, episode="match", target=3)
    obs, _ = vec.reset(seed=0)
    keys: set[str] = set()
    for step in range(40):
        actions = vec.sample_actions()
        if step == 20:
            actions[0] = int(np.flatnonzero(obs["action_mask"][0] == 0)[0])
        obs, _, _, _, info = vec.step(actions)
        keys |= info.keys() | info.get("episode", {}).keys()
    assert {"illegal_action", "match_winner", "final_observation"} <= keys
    named = {key for key in keys if not key.startswith("_")}
    assert not [key for key in named if f"`{key}`" not in page and f'"{key}"' not in page]
    assert all(f"_{key}" in keys for key in named & {"game_points", "episode", "illegal_action"})


def test_final_observations_can_be_left_out() -> None:
    vec = SchnapsenVectorEnv(32, final_observation=False)
    plain = SchnapsenVectorEnv(32)
    for without, with_final in zip(rollout(vec, 20), rollout(plain, 20), strict=True):
        info = {k: v for k, v in with_final[-1].items() if "final_observation" not in k}
        assert_same(without[-1], info)


def test_finished_deals_can_be_written_down() -> None:
    vec = SchnapsenVectorEnv(10, "french", "match", target=3)
    vec.reset(seed=0)
    position = engine.position_of(vec.records[4])
    vec.reset(seed=3, options={"positions": [position] * 5 + [None] * 5})
    began_at_position = found = 0
    for _ in range(100):
        *_, info = vec.step(vec.sample_actions())
        deals = vec.finished_deals(seats=("left", "right"))
        assert set(deals) == set(np.flatnonzero(info.get("_end_reason", [])).tolist())
        for row, deal in deals.items():
            found += 1
            began_at_position += deal.position is not None
            assert deal.seats == ("left", "right")
            assert len(deal.actions) == info["deal_length"][row]
            finished = replay(str(deal))
            assert engine.game_points(finished, 0) == info["game_points"][row, 0]
            assert finished[r.MATCH_SCORE] == info["match_score"][row, 0]
    assert began_at_position == 5
    assert found > 60


# ---------------------------------------------------------------------------------------- copies


def through_pickle(vec: SchnapsenVectorEnv) -> SchnapsenVectorEnv:
    return pickle.loads(pickle.dumps(vec))  # noqa: S301  # the test's own bytes


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("duplicate", [SchnapsenVectorEnv.clone, copy.deepcopy, through_pickle])
def test_copies_continue_exactly(mode: AutoresetMode, duplicate: Any) -> None:
    vec = SchnapsenVectorEnv(6, autoreset_mode=mode, num_threads=2, copy=False)
    vec.reset(seed=0)
    for _ in range(17):
        vec.step(vec.sample_actions())
    twin: SchnapsenVectorEnv = duplicate(vec)
    assert_same(vec.observe(), twin.observe())
    assert twin.metadata == vec.metadata
    for _ in range(40):
        actions = vec.sample_actions()
        np.testing.assert_array_equal(twin.sample_actions(), actions)
        assert_same(copy.deepcopy(vec.step(actions)), twin.step(actions))
    assert twin.records is not vec.records
    vec.close()
    twin.close()


def test_get_and_set_state_go_back() -> None:
    vec = SchnapsenVectorEnv(5, "pagat", "match")
    vec.reset(seed=0)
    for _ in range(9):
        vec.step(vec.sample_actions())
    state = vec.get_state()
    first = [vec.step(vec.sample_actions()) for _ in range(60)]
    vec.set_state(pickle.loads(pickle.dumps(state)))  # noqa: S301  # the test's own bytes
    assert_same([vec.step(vec.sample_actions()) for _ in range(60)], first)
    fresh = SchnapsenVectorEnv(5, "pagat", "match")
    fresh.set_state(state)
    assert_same([fresh.step(fresh.sample_actions()) for _ in range(60)], first)
    with pytest.raises(ValueError, match="the state is of 5 rows"):
        SchnapsenVectorEnv(4, "pagat", "match").set_state(state)
    with pytest.raises(ValueError, match="make an environment with the same arguments"):
        SchnapsenVectorEnv(5, "duel", "match").set_state(state)
    with pytest.raises(ValueError, match="autoreset_mode='SameStep', this one has 'Disabled'"):
        SchnapsenVectorEnv(5, "pagat", "match", autoreset_mode="Disabled").set_state(state)


def changed(state: dict[str, Any], part: str, **values: Any) -> dict[str, Any]:
    """A state with something else in one of its parts."""
    return state | {part: state[part] | values}


NO_STATES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda _: None, "state must be a dict with arrays, .*, kept, settings.* not a NoneType"),
    (lambda state: [state], "not a list"),
    (lambda _: {}, "not one with nothing"),
    (lambda _: {"settings": 1, "kept": 2}, "not one with settings, kept"),
    (lambda state: state | {"arrays": 7}, r"state\['arrays'\] must be a dict .* not a int"),
    (lambda state: state | {"kept": {"_chance": 1}}, r"state\['kept'\] must be a dict"),
    (lambda state: changed(state, "arrays", over=None), "the state is of 1 rows"),
    (
        lambda state: changed(state, "arrays", lengths=np.zeros(3)),
        r"state\['arrays'\]\['lengths'\] must be int64\[3\], not float64\[3\]",
    ),
    (
        lambda state: changed(state, "arrays", masks=[1, 2]),
        r"\['masks'\] must be int8\[3, 27\], not \[1, 2\]",
    ),
    (lambda state: changed(state, "kept", _masks=None), r"\['kept'\]\['_masks'\] must be int8"),
]


@pytest.mark.parametrize(("spoil", "message"), NO_STATES)
def test_what_is_no_state_is_refused_and_changes_nothing(
    spoil: Callable[[dict[str, Any]], Any], message: str
) -> None:
    vec = SchnapsenVectorEnv(3)
    vec.reset(seed=0)
    vec.step(vec.sample_actions())
    state = vec.get_state()
    with pytest.raises(ValueError, match=message):
        vec.set_state(spoil(vec.get_state()))
    assert_same(vec.get_state()["arrays"], state["arrays"])
    assert_same(vec.get_state()["kept"], state["kept"])


def test_a_copy_never_fills_the_buffers_of_the_original() -> None:
    rewards = np.zeros((2, 2), np.float32)
    vec = SchnapsenVectorEnv(2, buffers={"rewards": rewards})
    vec.reset(seed=0)
    twin = vec.clone()
    rewards[:] = 7
    twin.step(twin.sample_actions())
    assert (rewards == 7).all()


# ------------------------------------------------------------------------------- the rest of it


def test_it_is_a_gymnasium_vector_environment_that_declares_its_autoreset() -> None:
    for mode in MODES:
        vec = SchnapsenVectorEnv(2, autoreset_mode=mode)
        assert isinstance(vec, VectorEnv)
        assert vec.metadata["autoreset_mode"] is mode
        assert vec.num_envs == 2
    assert SchnapsenVectorEnv(2, autoreset_mode="NextStep").metadata["autoreset_mode"] is NEXT_STEP


def test_state_is_that_of_the_single_environments() -> None:
    vec = SchnapsenVectorEnv(3)
    vec.reset(seed=11)
    for row, state in enumerate(vec.state()):
        env = schnapsen_v0.env()
        env.reset(seed=11 + row)
        np.testing.assert_array_equal(state, env.state())


def test_sampled_actions_are_legal_and_uniform() -> None:
    n = 4_000
    vec = SchnapsenVectorEnv(n)
    obs, _ = vec.reset(seed=0, options={"deck": list(range(20)), "forehand": 0})
    counts = np.bincount(vec.sample_actions(), minlength=NUM_ACTIONS)
    legal = obs["action_mask"][0] == 1
    assert not counts[~legal].any()
    assert (np.abs(counts[legal] - n / legal.sum()) < 5 * np.sqrt(n / legal.sum())).all()
    assert counts[CLOSE] > 0
    masks = np.zeros((n, NUM_ACTIONS), np.int8)
    masks[1:, 3] = 1
    assert vec.sample_actions(masks).tolist() == [NO_ACTION] + [3] * (n - 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs is a whole number from 1"),
        ({"num_envs": True}, "num_envs is a whole number from 1"),
        ({"num_threads": 0}, "num_threads is a whole number from 1"),
        ({"dtype": np.float64}, "dtype=float64 is unknown: choose float32 or uint8"),
        ({"dtype": "float99"}, "dtype=float99 is unknown: choose float32 or uint8"),
        (
            {"autoreset_mode": "same_step"},
            r"'same_step' is unknown: choose .*SAME_STEP \('SameStep'\)",
        ),
        ({"rules": "poker"}, "unknown rule set 'poker': choose one of duel"),
        ({"episode": "night"}, "episode='night' is unknown"),
        ({"reward": "gold"}, "reward='gold' is unknown"),
        ({"illegal_action": "cry"}, "illegal_action='cry' is unknown"),
        ({"illegal_action": "revoke"}, "needs rules with revoke='loses'"),
        ({"memory": "some"}, "memory='some' is unknown"),
        ({"target": 99}, "Rules.target=99"),
        ({"autoreset_mode": "sometimes"}, "sometimes"),
    ],
)
def test_settings_that_do_not_exist_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SchnapsenVectorEnv(settings.pop("num_envs", 2), **settings)


def test_what_the_constructor_has_refused_can_be_closed() -> None:
    # Gymnasium 1.2 does so when the object is collected.
    SchnapsenVectorEnv.__new__(SchnapsenVectorEnv).close()


def test_states_and_buffers_pickled_by_name_are_found_where_they_were() -> None:
    # The classes have moved to another module; pickles of before name this one.
    for name in ("Plan", "State", "Outputs"):
        assert getattr(vector, name) is getattr(batch, name)


def test_a_target_of_its_own() -> None:
    vec = SchnapsenVectorEnv(2, "austrian", "match", target=5)
    assert vec.rules.target == 5
    assert RULES["austrian"].target == 7
