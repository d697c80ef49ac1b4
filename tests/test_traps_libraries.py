"""Traps that users of other libraries report for masked, turn-based environments, one test each.

Each test's comment names public reports of the trap. The numbers run from 1 to 28; those missing
here are in `tests/test_traps_core.py`, or, where a library itself is needed, in
`tests_integration`, in which a few of these appear once more with the library at work.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# (Gymnasium's own annotations leave parts of its interface unknown.)

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FrameStackObservation, NormalizeObservation, RescaleObservation

from agents.base import AgentError
from agents.evaluation import evaluate
from schnapsen_env import (
    SchnapsenEnv,
    SchnapsenOpponentVectorEnv,
    SchnapsenVectorEnv,
    schnapsen_v0,
)
from schnapsen_env.integrations.extras import require

ROOT = Path(__file__).resolve().parent.parent
ID = "schnapsen/Schnapsen-v0"


def random_legal(rng: np.random.Generator, masks: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """A random legal action of each row, ``int64[N]``, for masks ``int8[N, 27]``."""
    return np.where(masks == 1, rng.random(masks.shape), -1.0).argmax(axis=1)


def test_trap_03_an_aec_environment_is_not_what_single_agent_libraries_want() -> None:
    # PettingZoo#716: "'function' object has no attribute 'shape'".
    aec = schnapsen_v0.env()
    assert not isinstance(aec, gymnasium.Env)
    # The environment for those libraries has spaces, not functions, and the documents name it.
    env = gymnasium.make(ID, opponent="random")
    assert env.observation_space.shape == (238,)
    assert isinstance(env.action_space, spaces.Discrete)
    for page in ("README.md", "docs/environment.md"):
        table = (ROOT / page).read_text(encoding="utf-8")
        row = next(line for line in table.splitlines() if line.startswith("| ") and ID in line)
        assert "Gymnasium" in row


def test_trap_04_wrappers_that_know_no_dicts_take_the_flat_observation() -> None:
    # PettingZoo#551, SuperSuit#252: wrappers fail on an observation that holds a mask.
    for wrap in (
        lambda env: FrameStackObservation(env, 3),
        NormalizeObservation,
        lambda env: RescaleObservation(env, np.float32(-1.0), np.float32(1.0)),
    ):
        env: gymnasium.Env[Any, Any] = wrap(SchnapsenEnv(opponent="random"))
        observation, info = env.reset(seed=0)
        rng = np.random.default_rng(0)
        for _ in range(40):
            assert env.observation_space.contains(observation)
            # The mask is still at hand, in the info and from the method.
            masks = env.get_wrapper_attr("action_masks")()
            np.testing.assert_array_equal(info["action_mask"], masks)
            action = random_legal(rng, masks[None])[0]
            observation, _, done, _, info = env.step(action)
            assert "illegal_action" not in info
            if done:
                observation, info = env.reset()


class Blind:
    """An agent that was trained with masks and is asked without: it plays what it likes."""

    def act(self, observation: npt.NDArray[Any], action_mask: npt.NDArray[np.int8]) -> int:  # noqa: ARG002
        return 19


def test_trap_05_an_agent_that_ignores_the_mask_is_stopped_with_the_legal_actions() -> None:
    # PettingZoo#863, tianshou#786: illegal moves when the trained agent plays.
    with pytest.raises(AgentError, match=r"Blind.*illegal action.*legal: "):
        evaluate(Blind(), "random", deals=10)
    env = gymnasium.make(ID, opponent=Blind())
    with pytest.raises(ValueError, match=r"Blind\.act returned action 19.*choose among them"):
        play_until_an_end(env, deals=20)
    # And a learner's own illegal action is told from a lost deal.
    strict = gymnasium.make(ID, illegal_action="raise")
    _, info = strict.reset(seed=0)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    with pytest.raises(Exception, match="illegal") as caught:
        strict.step(illegal)
    assert type(caught.value).__name__ == "IllegalActionError"


def play_until_an_end(env: gymnasium.Env[Any, Any], deals: int) -> None:
    rng = np.random.default_rng(0)
    for seed in range(deals):
        _, info = env.reset(seed=seed)
        done = False
        while not done:
            _, _, done, _, info = env.step(random_legal(rng, info["action_mask"][None])[0])


def test_trap_08_there_is_one_flat_discrete_action_space_everywhere() -> None:
    # PettingZoo#1298, #1328: masks for structured actions break checks and samplers.
    aec = schnapsen_v0.env()
    vec = SchnapsenVectorEnv(2)
    made = gymnasium.make_vec(ID, num_envs=2)
    assert [
        aec.action_space("player_0"),
        aec.action_space("player_1"),
        gymnasium.make(ID).action_space,
        vec.single_action_space,
        made.single_action_space,
    ] == [spaces.Discrete(27)] * 5


def test_trap_09_masks_are_int8_and_spaces_sample_with_them() -> None:
    # PettingZoo#1038, #1339: bool masks and lists end in an assertion of Discrete.sample.
    aec = schnapsen_v0.env()
    aec.reset(seed=0)
    single = gymnasium.make(ID)
    vec, made = SchnapsenVectorEnv(3), gymnasium.make_vec(ID, num_envs=3)
    masks = [
        aec.observe("player_0")["action_mask"],
        aec.infos["player_1"]["action_mask"],
        single.reset(seed=0)[1]["action_mask"],
        single.get_wrapper_attr("action_masks")(),
        *vec.reset(seed=0)[0]["action_mask"],
        *made.reset(seed=0)[1]["action_mask"],
    ]
    for mask in masks:
        assert isinstance(mask, np.ndarray)
        assert mask.dtype == np.int8
        if mask.any():
            space = spaces.Discrete(27, seed=0)
            assert all(mask[space.sample(mask)] for _ in range(20))


def _requirements() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def test_trap_17_no_requirement_is_pinned_or_capped() -> None:
    # ray#59382, ray#34396: RLlib's exact pin of Gymnasium excludes whatever else is exact.
    for extra, requirements in _requirements().items():
        for requirement in requirements:
            versions, _, _ = requirement.partition(";")
            assert not re.search(r"==|<|~=|!=", versions), f"{extra}: {requirement}"
            if not requirement.startswith("schnapsen-env["):
                assert ">=" in versions, f"{extra}: {requirement} takes releases of any age"
    # RLlib's exact pin, and what AgileRL stays below, are allowed by our bounds.
    floors = dict(one.split(">=") for one in _requirements()[""])
    assert tuple(map(int, floors["gymnasium"].split("."))) <= (1, 2, 2)
    assert tuple(map(int, floors["pettingzoo"].split("."))) < (1, 27)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_trap_18_no_mask_that_a_learner_samples_from_is_empty(mode: AutoresetMode) -> None:
    # sb3-contrib#322, #81, #195: "Simplex()" and not-a-number in MaskablePPO.
    made = gymnasium.make_vec(ID, num_envs=64, autoreset_mode=mode)
    observations, info = made.reset(seed=0)
    rng = np.random.default_rng(0)
    done = np.zeros(64, dtype=bool)
    ends = 0
    for _ in range(80):
        if mode is AutoresetMode.DISABLED and done.any():
            observations, info = made.reset(options={"reset_mask": done})
        assert info["action_mask"].any(axis=1).all()
        assert observations.dtype == np.float32
        assert np.isfinite(observations).all()
        assert observations.min() >= 0.0
        assert observations.max() <= 1.0
        actions = random_legal(rng, info["action_mask"])
        observations, _, done, _, info = made.step(actions)
        ends += int(done.sum())
        if "final_info" in info:
            assert info["final_info"]["action_mask"][done].all()
    assert ends > 64


def test_trap_18_the_extra_asks_for_a_release_without_the_drift() -> None:
    assert "sb3-contrib>=2.9" in _requirements()["sb3"]


def test_trap_19_there_is_an_example_for_each_library_and_a_page_that_names_it() -> None:
    # sb3-contrib#250, #72: no example of masks with several agents.
    for library in ("cleanrl", "open_spiel", "rllib", "sb3", "tianshou", "torchrl"):
        page = (ROOT / "docs" / "integrations" / f"{library}.md").read_text(encoding="utf-8")
        examples = sorted((ROOT / "examples" / library).glob("*.py"))
        assert examples
        for path in examples:
            assert f"examples/{library}/{path.name}" in page


def test_trap_20_a_batch_gives_all_masks_at_once() -> None:
    # SB3#2087, sb3-contrib#279: one call of a method a row is slow.
    made = gymnasium.make_vec(ID, num_envs=5)
    _, info = made.reset(seed=0)
    assert info["action_mask"].shape == (5, 27)
    assert isinstance(made, SchnapsenOpponentVectorEnv)
    masks = made.action_masks()
    np.testing.assert_array_equal(masks, info["action_mask"])


@pytest.mark.parametrize("seed", range(5))
def test_trap_21_the_rewards_of_both_players_arrive_by_either_way(seed: int) -> None:
    # tianshou#900, #1137: one agent's reward is lost, since a wrapper reads `rewards`.
    env = schnapsen_v0.env()
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    while not any(env.terminations.values()):
        assert set(env.rewards.values()) == {0.0}
        mask = env.infos[env.agent_selection]["action_mask"]
        env.step(random_legal(rng, mask[None])[0])
    step_rewards = dict(env.rewards)
    assert step_rewards["player_0"] == -step_rewards["player_1"] != 0
    received: dict[str, float] = {}
    for agent in env.agent_iter():
        _, reward, terminated, _, _ = env.last()
        assert terminated
        received[agent] = reward
        env.step(None)
    assert received == step_rewards


def test_trap_22_self_play_is_one_loop_in_which_one_policy_plays_both_seats() -> None:
    # tianshou#381, #446: how to let an agent play itself, and with which signs.
    vec = SchnapsenVectorEnv(32)
    seen, info = vec.reset(seed=0)
    rng = np.random.default_rng(0)
    same, changed = 0, 0
    for _ in range(60):
        movers = info["to_play"]
        actions = random_legal(rng, seen["action_mask"])
        seen, rewards, dones, _, info = vec.step(actions)
        # The sign that a bootstrapped value takes is known from the batch alone.
        stayed = info["to_play"][~dones] == movers[~dones]
        same, changed = same + int(stayed.sum()), changed + int((~stayed).sum())
        assert (rewards[:, 0] == -rewards[:, 1]).all()
    assert 0.1 < same / (same + changed) < 0.5
    assert "its sign exactly where" in " ".join(
        (ROOT / "docs" / "vector.md").read_text(encoding="utf-8").split()
    )


def test_every_number_has_a_test() -> None:
    names = [
        re.search(r"^def test_trap_(\d\d)_", line)
        for folder in ("tests", "tests_integration")
        for path in sorted((ROOT / folder).glob("test_*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert {int(name[1]) for name in names if name} == set(range(1, 29))


# ------------------------------------------------------------------------------ missing libraries


def test_a_missing_library_is_answered_with_the_extra_that_brings_it() -> None:
    with pytest.raises(ImportError, match=re.escape("pip install 'schnapsen-env[some]'")) as caught:
        require("no_such_library.part", extra="some")
    assert caught.value.name == "no_such_library.part"
    assert require("gymnasium.spaces", extra="some") is spaces


def test_a_library_that_is_broken_itself_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_a_library.py").write_text("import its_missing_half\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_missing_half"):
        require("half_a_library", extra="some")


@pytest.mark.parametrize(
    ("adapter", "library", "extra"),
    [
        ("open_spiel", "pyspiel", "openspiel"),
        ("rllib", "ray", "rllib"),
        ("sb3", "stable_baselines3", "sb3"),
        ("tianshou", "tianshou", "tianshou"),
        ("torchrl", "torchrl", "torchrl"),
    ],
)
def test_each_adapter_without_its_library_names_the_extra(
    adapter: str, library: str, extra: str
) -> None:
    # A module that is None in sys.modules cannot be imported, installed or not.
    code = (
        f"import sys; sys.modules[{library!r}] = None\nimport schnapsen_env.integrations.{adapter}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"pip install 'schnapsen-env[{extra}]'" in done.stderr.splitlines()[-1]


def test_the_package_itself_imports_none_of_the_libraries() -> None:
    code = (
        "import sys, schnapsen_env, schnapsen_env.vector, schnapsen_env.single_agent_vector\n"
        "import schnapsen_env.schnapsen_v0, schnapsen_env.integrations\n"
        "print(*{'torch', 'stable_baselines3', 'sb3_contrib', 'tianshou', 'torchrl', 'tensordict',"
        " 'ray', 'pyspiel', 'shimmy', 'onnx', 'onnxruntime'}"
        " & {name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
