"""The hint is the last line that try, show and submit print; the docker run line only when it is asked for."""

from __future__ import annotations

import json

import pytest

from runner.provision.base import carries_wheels
from tests.worlds.mini import GOOD, Project, cli

pytestmark = pytest.mark.engine
# Python prints the last line of a traceback only.
BROKEN = "import json, sys; sys.tracebacklimit = 0\njson.loads('{}')['title']"
INPUTS = ("documents.jsonl.gz (docno, text)", "queries.jsonl (qid, query)")


def hinted(text: str) -> bool:
    """True if the last paragraph is a hint that names what the inputs hold."""
    last = " ".join(text.rstrip().rpartition("\n\n")[2].split())
    return last.startswith("hint: ") and all(name in last for name in INPUTS)


@pytest.mark.slow
def test_try_submit_and_show(live: Project) -> None:
    live.software("broken", BROKEN)
    tried = cli(live, "try", "-t", "alpha", expect=1)
    assert hinted(tried.out) and "docker run" not in tried.all
    asked = cli(live, "try", "-t", "alpha", "--command-line", expect=1)
    assert "docker run" in asked.out and hinted(asked.out)
    refused = cli(live, "submit", "-t", "alpha", expect=1)
    assert hinted(refused.out) and cli(live, "runs", "--json").json == []
    cli(live, "submit", "-t", "alpha", "--no-check")
    cli(live, "evaluate", "--all", expect=None)
    run = cli(live, "runs", "--json").json[0]["run"]
    told = cli(live, "show", run)  # the organiser sees the log; the hint names public data only
    assert " dev" in told.out.rpartition("hint: ")[2] and INPUTS[1] in " ".join(told.out.split())
    team = cli(live, "show", run, "--as", "team:alpha", "--json").json
    assert team["hint"] == "" and "hint" not in cli(live, "show", run, "--as", "team:alpha").out


def test_a_good_run_has_no_hint(live: Project) -> None:
    live.software("good", GOOD)
    tried = cli(live, "try", "-t", "alpha")
    assert "hint" not in tried.out and "docker run" not in tried.out


def test_a_build_that_wants_the_network(live: Project) -> None:
    live.software("built", image=None, build={"context": "."})
    code = "import socket, sys; sys.tracebacklimit = 0; socket.getaddrinfo('example.org', 80)"
    command = json.dumps(["python3", "-c", code])
    folder = live.root / "submissions" / "alpha" / "built"
    (folder / "Dockerfile").write_text(f"FROM {live.image}\nRUN {command}")
    said = cli(live, "submit", "-t", "alpha", "--no-check", expect=None)
    assert "E203" in said.err
    assert ("requirements.txt" if carries_wheels(live.config) else "network: true") in said.err
