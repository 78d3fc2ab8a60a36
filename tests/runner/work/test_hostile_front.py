"""A front in the attacker's hands, as another user: nothing hidden is had, nothing done, and work goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.access import Access
from runner.exchange.inbox import Inbox, answered
from runner.exchange.published import Published
from runner.work.members.accounts import open_accounts, publish_access
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import World
from tests.runner.work.test_loop import ask, at_work, outcomes, team, until
from tests.worlds import hostile_front
from tests.worlds.mini import Project

NOBODY = 65534


@pytest.fixture
def world() -> Iterator[World]:
    """A project whose inbox is another user's, and of which all else that matters is closed to them."""
    if os.getuid() != 0:
        pytest.fail("two users are needed here, and only root can be both: run it as root", pytrace=False)
    root = Path(tempfile.mkdtemp(prefix="hostile-front-"))  # pytest closes its own folders to other users
    try:
        project = Project(root / "project", root / "home", root / "truths")
        project.write_task(uploads=True)
        config = project.config
        for path in (config.exchange, config.published, config.inbox):
            path.mkdir(parents=True, exist_ok=True)
        os.chown(config.inbox, NOBODY, NOBODY)
        for path in (root, config.home):
            path.chmod(0o711)
        made = World(project)
        yield made
        made.close()
    finally:
        subprocess.run(["rm", "-rf", str(root)], check=True)  # deeper than Python can go


def attack(folder: Path, facts: dict[str, Any]) -> list[str]:
    """What the front had of what was closed to it."""
    said = folder / "facts.json"
    said.write_text(json.dumps(facts))
    program = folder / "front.py"
    program.write_text(Path(hostile_front.__file__).read_text())
    for path in (said, program):
        path.chmod(0o644)
    options = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"]
    command = ["setpriv", *options, "--no-new-privs", sys.executable, str(program), str(folder), str(said)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd="/")
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def size(root: Path, without: Path) -> int:
    """The bytes of a folder without one in it."""
    found = 0
    for here, folders, files in os.walk(root):
        if Path(here) == without:
            folders.clear()
        else:
            found += sum((Path(here) / name).lstat().st_size for name in files)
    return found


def emptied(inbox: Inbox, notes: Notes) -> None:
    """Wait until nothing waits; what could not be looked at is tried again after a minute."""
    try:
        until(lambda: not inbox.waiting(), 180)
    except AssertionError:
        raise AssertionError((inbox.waiting()[:5], notes.problems, notes.lines[-5:])) from None


def assert_reported(folder: Path, notes: Notes, accepted: set[str]) -> None:
    """Refused folders are printed by their ids and logged with reasons, a bounded number of them."""
    entries = [json.loads(line) for line in (folder / "security.jsonl").read_text().splitlines()]
    reasons = {entry["request"]: entry["why"] for entry in entries if entry["what"] == "request refused"}
    printed = {id for line in notes.lines for id in re.findall(r"\b[0-9a-f]{32}\b", line)}
    assert reasons.keys() <= printed - accepted and len(set(reasons.values())) > 1, reasons
    assert len(notes.lines) < 200


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_a_front_that_does_its_worst_gets_nothing_and_stops_nobody(world: World) -> None:
    config, token = world.project.config, team(world)
    folder = config.exchange
    with open_accounts(config) as accounts:
        account, theirs = accounts.add("team", "beta")
        publish_access(config, accounts)
    grant = Access.read(config.published).grant(token)
    assert grant is not None
    hidden = world.project.private / "mini/test/inputs/queries.jsonl"
    closed = [
        hidden,
        config.home / "accounts.sqlite",
        config.home / "store.sqlite",
        config.home / "events.jsonl",
    ]
    for path in closed:
        path.touch()
        path.chmod(0o600)
    with at_work(world) as notes:
        before = ask(world, token, inbox=folder / "beside")
        [made] = (folder / "beside").iterdir()
        seen = [json.loads((made / "request.json").read_text()), (made / "payload").read_text()]
        made.rename(config.inbox / made.name)
        until(lambda: answered(config.published, before.id))
        until(lambda: outcomes(world) == ["scored"])
        facts = {
            "closed": [str(path) for path in closed],
            "grant": {"account": account.id, "token": theirs.id, "team": "beta", "key": theirs.key},
            "others": {"account": grant.account, "token": token.id},
            "seen": [seen],
        }
        pointer = Published(config.published).pointer()
        opened = len(os.listdir("/proc/self/fd"))
        used = size(config.home, config.inbox)
        assert attack(folder, facts) == []
        emptied(Inbox(config.inbox), notes)
        assert len(os.listdir("/proc/self/fd")) < opened + 10
        later = ask(world, token, software="two")
        found = until(lambda: answered(config.published, later.id))
        assert found["accepted"] is True and found["new"] is True
        until(lambda: outcomes(world) == ["scored"] * 2)
        assert (Published(config.published).age() or 0) < 30
    assert Published(config.published).pointer()["public"] == pointer["public"]
    log = [(event.type, event.data, event.actor) for event in world.store.log]
    assert [data["team"] for kind, data, _ in log if kind == "submission-registered"] == ["alpha"] * 2
    decided = [data for kind, data, _ in log if kind == "request-decided"]
    assert [data["accepted"] for data in decided if data["team"] == "alpha"] == [True] * 2
    assert not any(data["accepted"] for data in decided if data["team"] == "beta")
    after = size(config.home, config.inbox)
    assert after - used < 3_000_000, "its disk use is bounded"
    assert_reported(config.home, notes, {data["request"] for data in decided if data["accepted"]})
    assert notes.problems == []
