"""What hosts say of themselves is shown, and looked through, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runner.cli import context
from runner.execution.cluster import line
from runner.execution.cluster.joining import named
from tests.runner.execution.cluster.test_hosts import machine
from tests.runner.execution.test_pool import World
from tests.worlds.cluster import Cluster
from tests.worlds.mini import Said, call_here

SAID: list[Any] = [
    ["a list"],
    None,
    {"name": "h1", "at_work": 5, "labels": {"a": 1}, "full": ["x"]},
    {"name": "h1", "memory": 10**400, "cached": float("nan"), "room": float("inf"), "cpus": True},
    {"name": "h1", "address": "tls://ours:1", "why_not": "", "cluster": "evaluations", "made_up": 1},
    {"name": "\ud800\x1b[2J", "steps": "many", "protocol": [], "error": {"what": 1}},
]


Show = Callable[..., Said]


@pytest.fixture
def show(
    world: World, sound: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Show:
    """The command that shows the hosts, which a scheduler names with these problems."""
    where = machine(world, sound)
    monkeypatch.setattr(context, "config", lambda *_: where.config)
    monkeypatch.setattr(context, "machine", lambda *_: where)

    def call(hosts: dict[str, Any], problems: list[str], *more: str) -> Said:
        monkeypatch.setattr(line, "hosts_now", lambda *_: (hosts, problems))
        return call_here(world.project, ["cluster", "show", *more], capsys)

    return call


@pytest.mark.parametrize("said", SAID, ids=range(len(SAID)))
def test_what_a_host_says_is_shown_as_far_as_it_has_a_form(show: Show, said: Any) -> None:
    hosts = {"tls://10.0.0.9:1": said}
    found = show(hosts, [], "--json")
    assert found.code == 0, found.err
    (row,) = found.json
    assert (row["address"], row["cluster"]) == ("tls://10.0.0.9:1", "software") and row["why_not"]
    assert row.keys() <= {"address", "cluster", "why_not", "name"}
    table = show(hosts, [])
    assert table.code == 0 and "10.0.0.9" in table.out and "\x1b" not in table.out, table.err


@pytest.mark.parametrize(
    ("problem", "code"), [("CAUTION: this kernel does not close files", 0), ("tls://h:1 does not answer", 3)]
)
def test_a_scheduler_that_does_not_answer_is_no_cluster_without_hosts(
    show: Show, problem: str, code: int
) -> None:
    found = show({}, [problem])
    assert found.code == code and problem in found.err
    assert ("runner worker" in found.err) == (code == 0), "a cluster without hosts needs workers"
    assert show({}, [problem], "--json").code == code


def test_a_host_that_is_called_as_another_ones_address_is_not_that_one() -> None:
    there = {"tls://h1:1": {"name": "h1"}, "tls://h2:1": {"name": "tls://h1:1"}, "tls://h3:1": ["h1"]}
    assert list(named(there, "tls://h1:1")) == ["tls://h1:1"]
    assert list(named(there, "h1")) == ["tls://h1:1"]
