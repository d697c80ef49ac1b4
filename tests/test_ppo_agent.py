"""The agent that plays: same answers as in training, and checkpoints that are checked."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import agents
from agents.ppo import CheckpointError, Config, PPOAgent, load_agent
from agents.ppo.checkpoint import (
    CheckpointInfo,
    Weights,
    info_sha256,
    read_checkpoint,
    read_training,
    save_checkpoint,
)
from agents.ppo.config import config_to_dict
from agents.ppo.masking import MaskedPolicy
from agents.ppo.network import PolicyValueNet
from schnapsen_env import RULES, Layout
from schnapsen_env.actions import EXCHANGE, NUM_ACTIONS
from schnapsen_env.cards import NUM_CARDS, NUM_RANKS
from schnapsen_env.observation import (
    DEFAULT_LAYOUT,
    LAYOUT_VERSION,
    action_in_natural_order,
    natural_action,
    relabel,
)
from schnapsen_env.vector import SchnapsenVectorEnv

SUITS = ("natural", "trump_first", "canonical")
RULE_SETS = ("pagat_auto", "french", "last_trick_ten")


def make_network(suits: Any, seed: int = 0, hidden: tuple[int, ...] = (32, 16)) -> PolicyValueNet:
    network = PolicyValueNet(Layout(suits=suits), hidden, torch.Generator().manual_seed(seed))
    with torch.no_grad():  # a policy with opinions
        network.linear_layers()[-1].weight.mul_(50)
    return network


def weights_of(network: PolicyValueNet) -> Weights:
    return {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}


def play_both(suits: Any, rules: str = "pagat_auto") -> Any:
    """Random deals seen in the default layout and, beside it, as an env with ``suits=`` shows them.

    Yields the default batch, the other one, and the environments.
    """
    natural = SchnapsenVectorEnv(32, rules=rules)
    other = SchnapsenVectorEnv(32, rules=rules, suits=suits, dtype=np.uint8)
    shown, _ = natural.reset(seed=11)
    renamed, _ = other.reset(seed=11)
    for _ in range(60):
        yield shown, renamed, natural, other
        actions = natural.sample_actions()
        shown, *_ = natural.step(actions)
        other.records[:] = natural.records
        renamed, _ = other.observe()


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("suits", SUITS)
def test_relabelling_gives_what_the_environment_gives(suits: Any, rules: str) -> None:
    layout = Layout(suits=suits)
    out = np.empty(layout.size, dtype=np.float32)
    mask = np.empty(NUM_ACTIONS, dtype=np.int8)
    codes = RULES[rules].codes()
    for shown, renamed, natural, _ in play_both(suits, rules):
        for row in range(32):
            order = relabel(
                shown["observation"][row], shown["action_mask"][row], layout.suits_code, out, mask
            )
            np.testing.assert_array_equal(out, renamed["observation"][row] * layout.scale)
            np.testing.assert_array_equal(mask, renamed["action_mask"][row])
            for action in np.flatnonzero(mask).tolist():
                back = action_in_natural_order(order, action)
                assert shown["action_mask"][row, back] == 1
                assert back == natural_action(
                    natural.records[row], codes, 0, layout.suits_code, 0, action
                )


@pytest.mark.parametrize("suits", SUITS)
def test_agent_thinks_what_the_trained_network_thinks(suits: Any) -> None:
    network = make_network(suits)
    agent = PPOAgent(weights_of(network), Layout(suits=suits))
    codes = RULES["pagat_auto"].codes()
    for shown, renamed, natural, _ in play_both(suits):
        with torch.inference_mode():
            logits, values = network(torch.as_tensor(renamed["observation"]))
            policy = MaskedPolicy(logits, torch.as_tensor(renamed["action_mask"]))
        probabilities, expected = agent.evaluate(shown["observation"], shown["action_mask"])
        actions = agent.act_batch(shown["observation"], shown["action_mask"])
        np.testing.assert_allclose(expected, values.numpy(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(
            np.sort(probabilities), np.sort(policy.probs.numpy()), rtol=1e-3, atol=1e-5
        )
        for row, action in enumerate(policy.mode().numpy().tolist()):
            record = natural.records[row]
            chosen = natural_action(record, codes, 0, Layout(suits=suits).suits_code, 0, action)
            assert actions[row] == chosen
            assert probabilities[row].argmax() == chosen


def test_suits_have_no_names_for_a_canonical_agent() -> None:
    """Renaming the suits of what it sees renames its answer, and changes nothing else."""
    agent = PPOAgent(weights_of(make_network("canonical")), Layout(suits="canonical"))
    order = [2, 0, 3, 1]

    def rename(array: Any, kind: str) -> Any:
        out = array.copy()
        for new, old in enumerate(order):
            if kind == "cards":
                width = slice(NUM_RANKS * new, NUM_RANKS * (new + 1))
                out[..., width] = array[..., NUM_RANKS * old : NUM_RANKS * (old + 1)]
            else:
                out[..., new] = array[..., old]
        return out

    for shown, *_ in play_both("natural"):
        observations, masks = shown["observation"].copy(), shown["action_mask"].copy()
        before = agent.act_batch(observations, masks)
        _, values = agent.evaluate(observations, masks)
        for field in DEFAULT_LAYOUT.fields:
            if field.kind in ("cards", "suits"):
                part = slice(field.offset, field.offset + field.size)
                observations[:, part] = rename(observations[:, part], field.kind)
        masks[:, :NUM_CARDS] = rename(masks[:, :NUM_CARDS], "cards")
        masks[:, NUM_CARDS:EXCHANGE] = rename(masks[:, NUM_CARDS:EXCHANGE], "suits")
        one_hot = np.eye(NUM_ACTIONS, dtype=np.int8)[before]
        one_hot[:, :NUM_CARDS] = rename(one_hot[:, :NUM_CARDS], "cards")
        one_hot[:, NUM_CARDS:EXCHANGE] = rename(one_hot[:, NUM_CARDS:EXCHANGE], "suits")
        after = agent.act_batch(observations, masks)
        # Suits of which the player sees just the same are interchangeable.
        same = after == one_hot.argmax(axis=1)
        assert same.mean() > 0.9
        np.testing.assert_array_equal(agent.evaluate(observations, masks)[1], values)


def test_answers_do_not_depend_on_the_batch() -> None:
    agent = PPOAgent(weights_of(make_network("canonical")), Layout(suits="canonical"))
    for shown, *_ in play_both("natural"):
        together = agent.act_batch(shown["observation"], shown["action_mask"])
        alone = [agent.act(*row) for row in zip(*shown.values(), strict=True)]
        assert together.tolist() == alone


def test_match_score_does_not_reach_a_network_trained_on_deals() -> None:
    agent = PPOAgent(weights_of(make_network("canonical")), Layout(suits="canonical"))
    (shown, *_) = next(play_both("natural"))
    changed = shown["observation"].copy()
    for field in DEFAULT_LAYOUT.fields:
        if field.name in ("own_needed", "other_needed"):
            changed[:, field.offset] = 1 / field.most
    for before, after in zip(
        agent.evaluate(*shown.values()),
        agent.evaluate(changed, shown["action_mask"]),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)


def test_sampling_agent_draws_from_its_policy_and_from_its_seed() -> None:
    agent = PPOAgent(
        weights_of(make_network("canonical")), Layout(suits="canonical"), sample=True, seed=5
    )
    (shown, *_) = next(play_both("natural"))
    observation = np.repeat(shown["observation"][:1], 50_000, axis=0)
    mask = np.repeat(shown["action_mask"][:1], 50_000, axis=0)
    actions = agent.act_batch(observation, mask)
    probabilities, _ = agent.evaluate(observation[:1], mask[:1])
    shares = np.bincount(actions, minlength=NUM_ACTIONS) / len(actions)
    np.testing.assert_allclose(shares, probabilities[0], atol=0.01)
    agent.reset(5)
    np.testing.assert_array_equal(agent.act_batch(observation, mask), actions)
    agent.reset(6)
    assert (agent.act_batch(observation, mask) != actions).any()


def test_wrong_shapes_and_empty_masks_are_refused() -> None:
    agent = PPOAgent(weights_of(make_network("natural")), Layout())
    size = DEFAULT_LAYOUT.size
    with pytest.raises(ValueError, match=rf"observations of shape \[N, {size}\]"):
        agent.act(np.zeros(size - 1, dtype=np.float32), np.ones(NUM_ACTIONS, dtype=np.int8))
    with pytest.raises(ValueError, match=rf"masks of shape \[N, {NUM_ACTIONS}\]"):
        agent.act(np.zeros(size, dtype=np.float32), np.ones(NUM_ACTIONS - 1, dtype=np.int8))
    (shown, *_) = next(play_both("natural"))
    with pytest.raises(ValueError, match="position 0 allows no action"):
        agent.act(shown["observation"][0], np.zeros(NUM_ACTIONS, dtype=np.int8))
    masks = shown["action_mask"].copy()
    masks[1] = 0
    with pytest.raises(ValueError, match="position 1 allows no action"):
        agent.evaluate(shown["observation"], masks)


def test_numbers_that_no_environment_shows_are_refused_by_entry() -> None:
    agent = PPOAgent(weights_of(make_network("natural")), Layout())
    (shown, *_) = next(play_both("natural"))
    observations, masks = shown["observation"], shown["action_mask"]
    for number in (np.nan, np.inf, -0.5, 1.5):
        spoilt = observations.copy()
        spoilt[1, 7] = number
        for call in (agent.act_batch, agent.evaluate):
            with pytest.raises(ValueError, match=r"observations\[1, 7\] \(hand\) = .*unchanged"):
                call(spoilt, masks)
    spoilt_mask = masks.copy()
    spoilt_mask[0, 26] = 2
    with pytest.raises(ValueError, match=r"action_masks\[0, 26\] = 2"):
        agent.act_batch(observations, spoilt_mask)
    whole: Any = observations.astype(np.uint8)
    with pytest.raises(TypeError, match=r"dtype float32, not uint8: .*dtype=np.float32"):
        agent.act_batch(whole, masks)
    floats: Any = masks.astype(np.float32)
    with pytest.raises(TypeError, match="action masks of dtype int8, not float32"):
        agent.act_batch(observations, floats)
    # Wider floats and bools say the same as what the environment gives.
    other: Any = observations.astype(np.float64), masks.astype(np.bool_)
    np.testing.assert_array_equal(agent.act_batch(*other), agent.act_batch(observations, masks))


# ---------------------------------------------------------------------------------- checkpoints


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    network = make_network("canonical")
    config = Config(rules="pagat_auto", hidden_sizes=(32, 16))
    for timesteps in (1000, 2000):
        info = CheckpointInfo(
            rules=asdict(RULES["pagat_auto"]),
            layout_version=LAYOUT_VERSION,
            suits="canonical",
            features=DEFAULT_LAYOUT.size,
            hidden_sizes=(32, 16),
            seed=1,
            timesteps=timesteps,
            config=config_to_dict(config),
        )
        save_checkpoint(tmp_path / "run", info, weights_of(network), {"iteration": 7}, keep=2)
    return tmp_path / "run"


def latest(run_dir: Path) -> Path:
    return run_dir / "checkpoints" / (run_dir / "latest").read_text().strip()


def edit_info(run_dir: Path, **changes: Any) -> None:
    """Change what a checkpoint says of itself, as somebody does who knows of the hash."""
    path = latest(run_dir) / "checkpoint.json"
    values = json.loads(path.read_text()) | changes
    values["info_sha256"] = info_sha256(values)
    path.write_text(json.dumps(values))


def test_an_edited_description_is_refused(run_dir: Path) -> None:
    path = latest(run_dir) / "checkpoint.json"
    text = path.read_text()
    assert '"suits": "canonical"' in text
    path.write_text(json.dumps(json.loads(text)))  # the same in one line
    load_agent(run_dir)
    path.write_text(text.replace('"suits": "canonical"', '"suits": "trump_first"', 1))
    assert "checkpoint.json is damaged: it is not the file that was written" in refusal(run_dir)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frobnicate": 3}, "rules of another version of this program, which differ in frobnicate"),
        ({"must_beat": 1}, "is damaged: Rules.must_beat=1 is unknown"),
    ],
)
def test_rules_that_are_not_to_be_had_are_refused(
    run_dir: Path, changes: dict[str, Any], message: str
) -> None:
    edit_info(run_dir, rules=asdict(RULES["pagat_auto"]) | changes)
    assert message in refusal(run_dir)
    rules = asdict(RULES["pagat_auto"])
    del rules["claims"]
    edit_info(run_dir, rules=rules)
    assert "which differ in claims" in refusal(run_dir)


def test_checkpoint_comes_back_as_it_was(run_dir: Path) -> None:
    info, weights = read_checkpoint(run_dir)
    assert info.timesteps == 2000
    assert info.rules == asdict(RULES["pagat_auto"])
    assert info.hidden_sizes == (32, 16)
    for name, array in weights_of(make_network("canonical")).items():
        np.testing.assert_array_equal(weights[name], array)
    assert read_training(latest(run_dir)) == {"iteration": 7}
    assert not list(run_dir.rglob(".*"))


def test_agent_is_found_by_run_checkpoint_and_file(run_dir: Path) -> None:
    (shown, *_) = next(play_both("natural"))
    folder = latest(run_dir)
    expected = PPOAgent(weights_of(make_network("canonical")), Layout(suits="canonical"))
    for path in (run_dir, folder, folder / "weights.safetensors", folder / "checkpoint.json"):
        agent = agents.load(f"ppo:{path}", rules="pagat_auto")
        np.testing.assert_array_equal(
            agent.act_batch(*shown.values()), expected.act_batch(*shown.values())
        )
    assert load_agent(str(run_dir), sample="true").sample


def test_old_checkpoints_are_deleted_but_for_those_to_keep(run_dir: Path) -> None:
    info, weights = read_checkpoint(run_dir)
    for timesteps in (3000, 4000):
        save_checkpoint(run_dir, replace(info, timesteps=timesteps), weights, {}, keep=2)
    names = sorted(path.name for path in (run_dir / "checkpoints").iterdir())
    assert names == ["step-000000003000", "step-000000004000"]


def test_checkpoint_that_cannot_be_written_leaves_the_last_one(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, weights = read_checkpoint(run_dir)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(run_dir, replace(info, timesteps=3000), weights, {}, keep=1)
    assert read_checkpoint(run_dir)[0].timesteps == 2000


def refusal(path: Path, rules: Any = "pagat_auto", **options: Any) -> str:
    with pytest.raises(CheckpointError) as error:
        load_agent(path, rules, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_another_version_of_the_observation_is_refused(run_dir: Path) -> None:
    edit_info(run_dir, layout_version=LAYOUT_VERSION + 1)
    assert f"version {LAYOUT_VERSION + 1} of the observation" in refusal(run_dir)


def test_another_rule_set_is_refused_unless_asked_for(run_dir: Path) -> None:
    message = refusal(run_dir, "duel")
    assert "trained under the rules 'pagat_auto', not 'duel'" in message
    assert "must_beat=True instead of False" in message
    assert "): play under --rules pagat_auto; the option any_rules=true" in message
    load_agent(run_dir, "duel", any_rules="true")


def test_rules_are_compared_by_what_a_deal_depends_on(run_dir: Path) -> None:
    same = replace(RULES["pagat_auto"], name="mine", target=5, counting="up")
    load_agent(run_dir, same)
    assert "last_trick_bonus=0 instead of 10" in refusal(
        run_dir, replace(same, name="pagat_auto", last_trick_bonus=10)
    )


def test_damaged_weights_are_refused(run_dir: Path) -> None:
    path = latest(run_dir) / "weights.safetensors"
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
        path.write_bytes(damaged)
        assert "weights.safetensors is damaged" in refusal(run_dir)
    path.unlink()
    assert "cannot read " in refusal(run_dir)


def test_weights_of_another_network_are_refused(run_dir: Path) -> None:
    edit_info(run_dir, hidden_sizes=[32, 32])
    assert "the weights are not those of a float32 network" in refusal(run_dir)


def test_weights_that_are_no_numbers_are_refused(run_dir: Path) -> None:
    info, weights = read_checkpoint(run_dir)
    weights["layers.1.bias"][3] = np.nan
    save_checkpoint(run_dir, info, weights, {})
    assert "infinite or not a number" in refusal(run_dir)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged or unreadable"),
        ("[]", "does not describe a checkpoint"),
        ('{"format": 99}', "has format 99"),
        ('{"format": 2}', "it lacks config, features"),
        ("[" * 100_000, "damaged or unreadable"),
        ('{"format": ' + "9" * 5000 + "}", "damaged or unreadable"),
    ],
)
def test_damaged_description_is_refused(run_dir: Path, content: str, message: str) -> None:
    (latest(run_dir) / "checkpoint.json").write_text(content)
    assert message in refusal(run_dir)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_sizes": "big"},
        {"rules": None},
        {"suits": 3},
        {"layout_version": "1"},
        {"suits": "sorted"},
    ],
)
def test_values_of_the_wrong_type_are_refused(run_dir: Path, changes: dict[str, Any]) -> None:
    edit_info(run_dir, **changes)
    assert "is damaged" in refusal(run_dir)


def test_missing_checkpoints_are_named(run_dir: Path, tmp_path: Path) -> None:
    assert "no such file or folder" in refusal(tmp_path / "nothing")
    assert "is no checkpoint" in refusal(tmp_path)
    for name in ("a" * 5000, "a" * 300, "\0"):
        assert "there is no checkpoint at" in refusal(tmp_path / name)
        assert len(refusal(tmp_path / name)) < 400
    (run_dir / "latest").write_text("a" * 5000)
    assert "there is no checkpoint at" in refusal(run_dir)
    (run_dir / "latest").write_text("step-9\n")
    assert "which is not there" in refusal(run_dir)
    (run_dir / "latest").write_text("../../elsewhere\n")
    assert "which is not there" in refusal(run_dir)
    (run_dir / "latest").unlink()
    assert "no checkpoint yet" in refusal(run_dir)


def test_loading_runs_no_code(run_dir: Path, tmp_path: Path) -> None:
    witness = tmp_path / "witness"

    class Attack:
        def __reduce__(self) -> Any:
            return (Path.touch, (witness,))

    folder = latest(run_dir)
    path = folder / "training.pt"
    path.write_bytes(pickle.dumps(Attack(), protocol=2))
    with pytest.raises(CheckpointError, match=r"training\.pt is damaged"):
        read_training(folder)
    for torch_file in (False, True):
        if torch_file:
            torch.save({"iteration": Attack()}, path)
        edit_info(run_dir, training_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
        with pytest.raises(CheckpointError, match=r"training\.pt is not to be trusted"):
            read_training(folder)
    load_agent(run_dir)  # which does not look at that file
    shutil.copy(folder / "training.pt", folder / "weights.safetensors")
    refusal(run_dir)
    assert not witness.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"greedy": "true"}, "no option 'greedy': it takes sample, any_rules"),
        ({"sample": "maybe"}, "sample is true or false, not 'maybe'"),
    ],
)
def test_unknown_options_are_refused(run_dir: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_agent(run_dir, **options)
