"""The process that connects the coordinator with Dask, and its settings."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from itertools import count
from typing import Any

import pytest

from runner.execution.cluster import line as at_line
from runner.execution.cluster.client import settle
from runner.execution.cluster.line import MAX_WISH, Line
from runner.records.contents import Content
from tests.e2e.test_server import until

ORDER = Content("0" * 64, 1)


def test_a_process_that_reads_nothing_is_ended_and_what_it_was_told_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(at_line, "WRITING", 0.5)
    told: list[dict[str, Any]] = []
    names = (str(n) for n in count())
    with socket.create_server(("127.0.0.1", 0)) as scheduler:  # one that never answers
        line = Line(f"tcp://127.0.0.1:{scheduler.getsockname()[1]}", None, lambda _: None)

        def taken(url: str = "") -> bool:
            line.begin(name := next(names), "tcp://127.0.0.1:9", ORDER, b"key", url=url)
            return not any(one.get("lost") == name for one in told)

        line.start(told.append, "home")
        try:
            until(taken, 60, every=0.05)
            assert not taken("x" * MAX_WISH), "what could never be read is not written"
            wishes = [taken("x" * (MAX_WISH - 1000)) for _ in range(20)]
            assert wishes[0] and not all(wishes)
            begun = int(next(names))
            until(lambda: sum("lost" in one for one in told) == begun, 60, every=0.05)
        finally:
            line.close()


WORKER = """
import asyncio, json
from distributed import Worker
from runner.execution.cluster.client import settle

async def main():
    before = set(Worker("tcp://127.0.0.1:1", dashboard_address="127.0.0.1:0").periodic_callbacks)
    settle()
    print(json.dumps(sorted(before - set(Worker("tcp://127.0.0.1:1", dashboard_address="127.0.0.1:0").periodic_callbacks))))

asyncio.run(main())
"""


def test_a_host_does_not_look_at_what_its_threads_do_all_the_time():
    ended = subprocess.run(
        [sys.executable, "-c", WORKER], check=True, stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert json.loads(ended.stdout) == ["profile", "profile-cycle"]


def test_a_setting_that_dask_does_not_know_is_refused():
    with pytest.raises(KeyError):
        settle({"worker.profile.on": False})
