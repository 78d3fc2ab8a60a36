"""Commands that write, given while `runner work` runs: each is done, or says that work is there, and pages follow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from runner.cli.app import app
from runner.cli.main import load_commands
from runner.exchange.published import Published
from runner.records.commit import coordinator
from runner.records.store.connect import open_store
from tests.e2e.test_server import until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import Project, Said, cli

if TYPE_CHECKING:
    import subprocess

# What writes into the data directory, in an order in which it can be done; {x} and {y} are submissions, {account} is one.
DONE: tuple[tuple[str, str], ...] = (
    ("register", "--table {table} --task mini"),
    ("submit", "--team beta --no-check"),
    ("review", "{x}.dev --flag same-output"),
    ("choose", "{x}"),
    ("release", "{y}.test --reason nothing-in-it"),
    ("withdraw", "{y} --reason wrong-file"),
    ("cancel", "{beta}.test"),
    ("extend", "mini alpha --submissions 2"),
    ("name", "alpha Alphabet"),
    ("publish", "mini test"),
    ("unpublish", "mini test"),
    ("task pause", "mini"),
    ("task resume", "mini"),
    ("round freeze", "mini first --anyway"),
    ("team add", "gamma"),
    ("team people", "gamma --member Ada"),
    ("team link", "gamma --url https://task.example.org"),
    ("team rotate", "gamma"),
    ("team texts", "alpha --clear-texts"),
    ("team close", "gamma"),
    ("team reopen", "gamma"),
    ("account add", "assistant"),
    ("account people", "{account} --contact ada@example.org"),
    ("account link", "{account} --url https://task.example.org"),
    ("account rotate", "{account}"),
    ("account close", "{account}"),
    ("account erase", "{account}"),
    ("store verify", ""),
    ("store backup", "{scratch}/backup.tar.gz"),
    ("store rebuild", ""),
    ("gc", ""),
)

# Commands that are refused while work has runs, with the exit code and the error code.
REFUSED: tuple[tuple[str, str, int, str], ...] = (
    ("evaluate", "--all", 3, "E306"),
    ("reevaluate", "--all", 3, "E306"),
    ("work", "", 3, "E306"),
    ("store restore", "{scratch}/backup.tar.gz", 2, "E101"),
)

# What writes as those above do, and needs more around it: where it is tried.
ELSEWHERE = {
    "requests approve": "tests/runner/work/test_proposals.py",
    "requests reject": "tests/runner/work/test_proposals.py",
    "team approve": "tests/runner/web/test_registering.py",
    "team reject": "tests/runner/web/test_registering.py",
    "account tie": "tests/runner/web/test_oidc.py",
    "account untie": "tests/runner/web/test_oidc.py",
    "data stage": "tests/runner/execution/test_stages.py",
    "release-log": "tests/runner/views/test_excerpts.py",
}

# What writes nothing into the data directory that work has: it reads, or writes what is its caller's own.
READS = {
    *(
        "check",
        "compare",
        "doctor",
        "events",
        "export",
        "leaderboard",
        "logs",
        "pack",
        "plot",
        "runs",
        "setup",
    ),
    *("show", "try", "verify", "login", "logout", "status", "notices", "receipt get", "receipt verify"),
    *("front", "serve", "demo", "data convert-lookup", "data import", "data get", "data pull"),
    *("labels agreement", "labels export", "labels import", "account list", "site build", "worker"),
    *("requests list", "requests show", "round list", "round show", "team list", "team waiting"),
    *("task check", "task estimate", "task hide", "task kit", "task list", "task new", "task show"),
    *("cluster show", "cluster scheduler", "cluster certificates", "cluster reap"),
}


def _leaves(group: Any, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        full = f"{above} {name}".strip()
        if hasattr(command, "commands"):
            yield from _leaves(command, full)
        elif not command.hidden:
            yield full


def test_of_every_command_it_is_decided_what_it_does_beside_work() -> None:
    load_commands()
    tried = {name for name, *_ in (*DONE, *REFUSED)}
    sets = (tried, set(ELSEWHERE), READS)
    assert set(_leaves(typer.main.get_command(app))) == set.union(*sets)
    assert sum(map(len, sets)) == len(set.union(*sets)), "one stands in two lists"
    root = Path(__file__).parents[2]
    for name, where in ELSEWHERE.items():
        assert re.search(name.rpartition(" ")[2].replace("-", ".?"), (root / where).read_text()), where


@contextmanager
def _working(project: Project) -> Iterator[subprocess.Popen[str]]:
    """``runner work``, which ends whatever becomes of the test."""
    with project.start("work") as work:
        try:
            yield work
        finally:
            work.terminate()


def _submissions(said: Said) -> dict[str, str]:
    return {row["software"]: row["submission"] for row in said.json}


@pytest.mark.slow
def test_commands_beside_work_are_done_or_refused(live: Project, tmp_path: Path) -> None:
    live.write_task(uploads=True, rounds=[{"id": "first", "at": "2020-01-01 00:00 UTC"}])
    live.software("sleeps", "import time; time.sleep(300)", team="beta")
    for name in ("x", "y"):
        for dataset in ("dev", "test"):
            (tmp_path / f"{name}-{dataset}.txt").write_text(run_text(dataset, name))
    rows = [f"alpha,{n},{n}-{d}.txt,{d}" for n in ("x", "y") for d in ("dev", "test")]
    for table, lines in (("before", rows), ("runs", ["alpha,z,x-dev.txt,dev"])):
        (tmp_path / f"{table}.csv").write_text("\n".join(["team,run,file,dataset", *lines]))
    known = {"table": str(tmp_path / "runs.csv"), "scratch": str(tmp_path)}
    published = Published(live.config.exchange / "published")

    def given(name: str, arguments: str, expect: int) -> Said:
        return cli(live, *name.split(), *arguments.format(**known).split(), expect=expect)

    known |= _submissions(given("register", "--table {scratch}/before.csv --task mini --json", 0))
    with _working(live) as work:
        until(lambda: "public" in published.pointer())
        until(lambda: cli(live, "runs", expect=None).out.count("scored") == 4)
        for name, arguments in DONE:
            form = " --json" if name in ("register", "submit", "account add") else ""
            said = given(name, arguments + form, 0)
            if name == "submit":
                known["beta"] = _submissions(said)["sleeps"]
            elif name == "account add":
                known["account"] = said.json["account"]
        # As work has it while it executes and evaluates.
        with open_store(live.config) as store, coordinator(live.config, store, is_work=True):
            for name, arguments, code, why in REFUSED:
                said = given(name, arguments, code)
                assert why in said.err, f"runner {name}: {said.err}"
        events = (live.home / "events.jsonl").read_text()
        cli(live, "team", "add", "delta")
        until(lambda: "team:delta" in published.pointer())
        assert work.poll() is None
        work.terminate()
        out, err = work.communicate(timeout=60)
    assert "Traceback" not in out + err and work.returncode == 0, err
    for one in ("dataset-published", "submission-withdrawn", "run-cancelled", "account-erased"):
        assert one in events
