"""The line to a cluster: long wishes are written as a whole, and a process that does not read them is ended."""

from __future__ import annotations

import socket
from itertools import count
from typing import Any

import pytest

from runner.execution.cluster import line as at_line
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
