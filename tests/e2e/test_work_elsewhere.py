"""Front and work on two machines, as far as one machine can show it: real processes, no common folder, a line that breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from runner.exchange.inbox import Inbox
from tests.e2e.test_server import until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import Project, cli
from tests.worlds.ports import free_port
from tests.worlds.proxy import Proxy, proxy


@contextmanager
def front(folder: Path, key: str, line: Proxy) -> Iterator[subprocess.Popen[str]]:
    """A front that knows nothing of the project, at the other end of a line."""
    line.target = free_port()
    options = ["--bind", f"127.0.0.1:{line.target}", "--url", f"http://127.0.0.1:{line.port}"]
    options += ["--exchange", str(folder), "--work-key", key]
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "front", *options],
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("ready")
        yield process
    finally:
        process.kill()
        process.wait()


def assert_delay_is_reported(url: str, late: str, in_time: str) -> None:
    """Both messages name the front; only the late one goes on with what the delay means."""
    (delayed, *consequences), (prompt, *more) = (
        said[said.index(url) :].splitlines() for said in (late, in_time)
    )
    assert delayed != prompt and consequences and not more


@pytest.mark.slow
def test_work_calls_a_front_that_it_shares_nothing_with(live: Project, tmp_path: Path) -> None:
    """A hand-in arrives while work is away; work is killed, the front is killed, the line breaks: it is decided once."""
    live.write_task(uploads=True)
    key = cli(live, "work", "--key").out.strip()
    assert cli(live, "work", "--key").out.strip() == key
    away, token = tmp_path / "away", cli(live, "team", "add", "alpha").out.strip()
    with proxy() as line, httpx2.Client(trust_env=False, timeout=30) as client:
        url = f"http://127.0.0.1:{line.port}"
        # People have another line to the front.
        headers = {"authorization": f"Bearer {token}", "host": f"127.0.0.1:{line.port}"}
        with front(away, key, line):
            near = f"http://127.0.0.1:{line.target}"
            work = live.start("work", "--front", url)
            until(lambda: client.get(f"{near}/team", headers=headers).status_code == 200)
            until(lambda: "Mini" in client.get(near, headers=headers).text)
            work.kill()
            work.communicate()
            file = {"file": ("run.txt", run_text("dev", "one"))}
            fields = {"software": "one", "dataset": "dev"}
            taken = client.post(f"{near}/tasks/mini/hand-in", data=fields, files=file, headers=headers)
            at = taken.json()["at"]
        with front(away, key, line):
            near = f"http://127.0.0.1:{line.target}"
            line.cut_at = line.passed + 3000
            with live.start("work", "--front", url) as work:
                until(lambda: "alpha.one." in client.get(f"{near}{at}", headers=headers).text)
                until(lambda: Inbox(away / "inbox").waiting() == [])
                assert line.cuts == 1
                line.down = True
                until(lambda: "no link" in (work.stderr.readline() if work.stderr else ""))
                os.utime(live.home / "link.json", (0, 0))
                late = cli(live, "team", "rotate", "alpha").err
                line.down = False
                until(lambda: client.get(f"{near}/team", headers=headers).status_code == 303)
                in_time = cli(live, "team", "close", "alpha").err
                work.terminate()
                out, err = work.communicate(timeout=60)
    assert "Traceback" not in out + err, err
    assert_delay_is_reported(url, late, in_time)
    kept = (live.home / "events.jsonl").read_text()
    assert kept.count("submission-registered") == kept.count("request-decided") == 1, kept


def test_what_cannot_be_a_link_is_refused_at_the_start(project: Project, tmp_path: Path) -> None:
    refused = cli(project, "work", "--front", "http://task.example.org", expect=2).err
    assert "E101" in refused and "https://task.example.org" in refused
    refused = cli(project, "front", "--exchange", str(tmp_path), "--work-key", "x", expect=2).err
    assert "E101" in refused and "'x'" in refused and "work --key" in refused
