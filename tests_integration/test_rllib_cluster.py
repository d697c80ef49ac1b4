"""RLlib on a Ray of two nodes: the example unchanged, started as examples/rllib/cluster.md says.

Both nodes are on this machine, each with its own scheduler, object store and processes, as on two
machines. `ray stop` is not used: it would end every Ray of this machine.

python -m pytest tests_integration/test_rllib_cluster.py, with the extra `rllib`
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import agents
from tests_integration.conftest import ROOT

#: Asks the cluster which node each env runner was on; those that have ended are still listed.
WHERE = """
import json, ray
ray.init(log_to_driver=False)
from ray._private.state import actors
runners = [actor for actor in actors().values() if actor["ActorClassName"] == "MultiAgentEnvRunner"]
print(json.dumps([actor["Address"]["NodeID"] for actor in runners]))
"""


@dataclass(frozen=True)
class TwoNodes:
    """A running cluster."""

    address: str
    #: The environment of processes that use it.
    environment: dict[str, str]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def ray_node(environment: dict[str, str], *arguments: str) -> Generator[Path]:
    """`ray start --block`, which ends all processes of its node when it ends; yields its log."""
    with tempfile.NamedTemporaryFile(suffix=".log", delete=False) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *arguments],
            env=environment,
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield wait_until_started(process, Path(log.name))
    finally:
        process.terminate()
        process.wait(timeout=60)
        Path(log.name).unlink()


def wait_until_started(process: subprocess.Popen[bytes], log: Path) -> Path:
    """Return when Ray says that the node runs."""
    for _ in range(240):
        text = log.read_text(encoding="utf-8", errors="replace")
        if "Ray runtime started" in text:
            return log
        assert process.poll() is None, text
        time.sleep(0.5)
    raise AssertionError(f"after two minutes Ray has not started:\n{log.read_text()}")


@pytest.fixture
def two_nodes() -> Iterator[TwoNodes]:
    """A head with one CPU and a second node with two."""
    # Sockets have short names, so not in pytest's long folder.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as scratch:
        port = free_port()
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_TMPDIR": scratch,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
        }
        environment.pop("RAY_ADDRESS", None)
        head = ("--head", f"--port={port}", "--num-cpus=1", "--include-dashboard=false")
        client = f"--ray-client-server-port={free_port()}"
        address = f"127.0.0.1:{port}"
        local = "--node-ip-address=127.0.0.1"
        with (
            ray_node(environment, *head, client, local),
            ray_node(environment, f"--address={address}", "--num-cpus=2", local),
        ):
            yield TwoNodes(address, environment | {"RAY_ADDRESS": address})


def run(arguments: list[str], environment: dict[str, str]) -> str:
    """What a Python process with these arguments prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_runs_unchanged_on_two_nodes(two_nodes: TwoNodes, tmp_path: Path) -> None:
    told = run(
        [
            *("examples/rllib/self_play.py", "--pool", "--num-env-runners", "3"),
            *("--num-envs-per-env-runner", "8", "--iterations", "2", "--batch-size", "600"),
            *("--checkpoint", str(tmp_path / "saved")),
        ],
        two_nodes.environment,
    )
    assert "saved" in told
    where: list[str] = json.loads(run(["-c", WHERE], two_nodes.environment).splitlines()[-1])
    # The head has room for one env runner, the second node for two.
    assert len(where) == 3
    assert sorted(where.count(node) for node in set(where)) == [1, 2]
    agents.load(f"rllib:{tmp_path / 'saved'}")
