"""docs/environment.md against the code: tables, numbers and arguments."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from schnapsen_env import RULES, SchnapsenEnv, SchnapsenOpponentVectorEnv, schnapsen_v0
from schnapsen_env.actions import CLAIM, CLOSE, EXCHANGE, NUM_ACTIONS, declare
from schnapsen_env.env import SchnapsenAECEnv
from schnapsen_env.episode import ILLEGAL_REWARD
from schnapsen_env.observation import DEFAULT_LAYOUT, STATE_SIZE, Layout
from schnapsen_env.position import EndReason

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")


def row(name: str) -> str:
    """The text of a row of the table at the head of the page."""
    found = re.search(rf"^\| {re.escape(name)} \| (.*) \|$", PAGE, re.MULTILINE)
    assert found is not None, name
    return found[1]


def section(heading: str) -> str:
    """The text under a heading of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def test_generated_tables_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/update_tables.py", "--check"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_shapes_and_spaces() -> None:
    full = Layout(history=True).size
    assert (
        row("Observation shape") == f"`({DEFAULT_LAYOUT.size},)`, with `history=True` `({full},)`"
    )
    assert row("State shape") == f"`({STATE_SIZE},)`"
    env = schnapsen_v0.env()
    assert row("Action values") == f"`{env.action_space('player_0')}`"
    assert row("Agents") == '`agents = ["player_0", "player_1"]`'
    assert env.possible_agents == ["player_0", "player_1"]


def test_action_table() -> None:
    table = section("Action space")
    assert f"| 20-{declare(3)} |" in table
    assert f"| {EXCHANGE} | exchange" in table
    assert f"| {CLOSE} | close" in table
    assert f"| {CLAIM} | claim" in table
    assert CLAIM == NUM_ACTIONS - 1


def test_lengths() -> None:
    text = section("Length")
    match = schnapsen_v0.env(episode="match")
    assert match.rules.target == 7
    assert f"at most {schnapsen_v0.env().max_actions} actions" in text
    assert f"at most {match.max_actions} actions to a target of 7" in text
    unbounded = [
        name for name in RULES if schnapsen_v0.env(rules=name, episode="match").max_actions is None
    ]
    assert re.findall(r"drawn \(`(\w+)`\)", text) == unbounded


def test_illegal_reward_and_end_reasons() -> None:
    assert f"gets {ILLEGAL_REWARD} and" in section("Illegal actions")
    reasons = {reason.text for reason in EndReason if reason is not EndReason.RUNNING}
    line = next(line for line in PAGE.splitlines() if line.startswith("| `end_reason` |"))
    assert set(re.findall(r'`"(\w+)"`', line)) == reasons


def test_arguments() -> None:
    code = re.search(r"schnapsen_v0\.env\(\n(.*?)\n\)\n", section("Arguments"), re.DOTALL)
    assert code is not None
    documented = dict(line.strip().rstrip(",").split("=") for line in code[1].splitlines())
    parameters = inspect.signature(SchnapsenAECEnv).parameters.values()
    assert documented == {
        parameter.name: repr(parameter.default).replace("'", '"') for parameter in parameters
    }
    for name in RULES:
        assert f'`"{name}"`' in section("Arguments")


@pytest.mark.parametrize("cls", [SchnapsenEnv, SchnapsenOpponentVectorEnv])
def test_every_argument_of_the_single_agent_environments_is_named(cls: type) -> None:
    text = section("Against an opponent") + section("Arguments")
    for name in inspect.signature(cls).parameters:
        assert f"`{name}`" in text or f"{name}=" in text, name
