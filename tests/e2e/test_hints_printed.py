"""The hint is the last line that try, show and submit print; the docker run line only when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from runner.provision.base import carries_wheels
from tests.worlds.mini import GOOD, Project, Said

pytestmark = pytest.mark.engine
# Python prints the last line of a traceback only.
BROKEN = "import json, sys; sys.tracebacklimit = 0\njson.loads('{}')['title']"
HELPS = "a field or name is not there. The inputs hold documents.jsonl.gz (docno, text), queries.jsonl (qid, query)"


def last(text: str) -> str:
    """The last paragraph, as one line."""
    return " ".join(text.rstrip().rpartition("\n\n")[2].split())


def test_try_submit_and_show(live: Project, runner_cli: Callable[..., Said]) -> None:
    live.software("broken", BROKEN)
    tried = runner_cli("try", "-t", "alpha", expect=1)
    assert last(tried.out) == f"hint: {HELPS}" and "docker run" not in tried.all
    asked = runner_cli("try", "-t", "alpha", "--command-line", expect=1)
    assert "docker run" in asked.out and last(asked.out) == f"hint: {HELPS}"
    refused = runner_cli("submit", "-t", "alpha", expect=1)
    assert last(refused.out) == f"hint: {HELPS}" and "was not submitted" in refused.err
    runner_cli("submit", "-t", "alpha", "--no-check")
    runner_cli("evaluate", "--all", expect=None)
    run = runner_cli("runs", "--json").json[0]["run"]
    told = runner_cli(
        "show", run
    )  # the organiser sees the log: what is said of the inputs is public all the same
    assert "The inputs are like those of dev, which hold" in last(told.out)
    team = runner_cli("show", run, "--as", "team:alpha", "--json").json
    assert team["hint"] == "" and "hint" not in runner_cli("show", run, "--as", "team:alpha").out


def test_a_good_run_has_no_hint(live: Project, runner_cli: Callable[..., Said]) -> None:
    live.software("good", GOOD)
    tried = runner_cli("try", "-t", "alpha")
    assert "hint" not in tried.out and "docker run" not in tried.out


def test_a_build_that_wants_the_network(live: Project, runner_cli: Callable[..., Said]) -> None:
    live.software("built", image=None, build={"context": "."})
    (live.root / "submissions" / "alpha" / "built" / "Dockerfile").write_text(
        f"FROM {live.image}\nRUN "
        + json.dumps(
            [
                "python3",
                "-c",
                "import socket, sys; sys.tracebacklimit = 0; socket.getaddrinfo('example.org', 80)",
            ]
        )
    )
    said = runner_cli("submit", "-t", "alpha", "--no-check", expect=None)
    assert "E203" in said.err
    assert (
        "name packages in requirements.txt" if carries_wheels(live.config) else "network: true"
    ) in said.err
    assert "correct the Dockerfile" not in said.err
