"""A scheduler that cannot be reached: why is said, once, and a worker that looks for it ends when it is told to."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runner.execution.cluster import reaching
from runner.execution.cluster.certificates import make
from runner.execution.cluster.client import security
from runner.execution.cluster.line import hosts_now
from runner.execution.cluster.reaching import unreachable
from tests.worlds.cluster import Cluster


@pytest.fixture
def nobody() -> str:
    """Where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def why(address: str, certificates: Path | None) -> str:
    return asyncio.run(unreachable(address, security(str(certificates) if certificates else None)))


@pytest.mark.slow
def test_what_keeps_from_a_scheduler_is_said(sound: Cluster, nobody: str, tmp_path: Path) -> None:
    assert why(sound.address, sound.certificates) == ""
    (other,) = make(tmp_path / "other", ["127.0.0.1"])
    places = (f"tls://{nobody}", "tls://nowhere.invalid:8786", "tls://a..b:8786")
    reasons = {why(place, sound.certificates) for place in places} | {why(sound.address, other)}
    assert len(reasons) == 4 and "" not in reasons, "each cause has its own words"
    assert "ca.pem" in why(sound.address, other) and "tls://" in why(
        sound.address.replace("tls", "tcp"), None
    )
    found, problems = hosts_now(sound.address, other)
    assert not found and len(problems) == 1 and "ca.pem" in problems[0]


@pytest.mark.parametrize("says", [b"SSH-2.0-OpenSSH_9.2\r\n", b""])
def test_whoever_else_listens_there_is_no_scheduler(says: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "ANSWERING", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:
        stopped = threading.Event()

        def answer() -> None:
            kept = []
            with suppress(OSError):
                while not stopped.is_set():
                    kept.append(other.accept()[0])
                    kept[-1].sendall(says)

        threading.Thread(target=answer, daemon=True).start()
        found = why(f"tcp://127.0.0.1:{other.getsockname()[1]}", None)
        stopped.set()
    assert found and "listens" not in found, found


def test_a_host_of_a_name_that_is_there_is_told_so(hosts: Cluster) -> None:
    hosts.start_host("h1", twin="again")
    hosts.said("again", "another host has this name")


@pytest.mark.slow
def test_a_worker_that_waits_for_its_scheduler_says_why_once_and_ends_when_it_is_told_to(
    hosts: Cluster,
) -> None:
    hosts.kill("scheduler")
    hosts.said("h1", "nothing listens")
    time.sleep(5)  # some more looks
    assert hosts.said("h1", r"(?s).*").count("nothing listens") == 1
    begun = time.monotonic()
    hosts.kill("h1", signal.SIGTERM)
    assert time.monotonic() - begun < 20
    hosts.start_scheduler()
    hosts.said("h2", r"(?s)does not answer.*takes 2 at once")
