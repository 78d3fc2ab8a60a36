"""The server from end to end: real processes, a real engine, real HTTP; a team hands in, work runs it, everybody sees it.

The front is held to what it may have: it runs without the rights of root, and the data directory belongs to somebody else.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import Project, call

NOBODY = 65534
FIELD = re.compile(r'name="form-token" value="([^"]+)"')


def until(what: Callable[[], Any], seconds: float = 120) -> Any:
    """What a question gives once it gives something."""
    last = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < last, "it never came"
        time.sleep(0.3)
    return found


@dataclass
class Server:
    """The server of a project: ``url``, and the processes."""

    project: Project
    exchange: Path
    url: str

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, trust_env=False, timeout=30, follow_redirects=True)

    def signed_in(self, token: str) -> httpx2.Client:
        client = self.client()
        form = form_of(client.get("/sign-in").text)
        said = client.post("/sign-in", data={"form-token": form, "token": token})
        assert said.status_code == 200, said.text
        return client


def form_of(text: str) -> str:
    found = FIELD.search(text)
    assert found, text
    return found[1]


def without_rights(command: list[str]) -> list[str]:
    """A command of root's without what makes root more than others: files that are not its own stay closed to it."""
    assert os.getuid() == 0, "this test changes owners: run it as root"
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *command]


@contextmanager
def serving(project: Project) -> Iterator[Server]:
    """Work as root, the front without rights, the data directory and all that is hidden closed to the front."""
    exchange = project.home.parent / "exchange"
    exchange.mkdir()
    project.env["RUNNER_WEB"] = str(exchange)
    project.home.mkdir(exist_ok=True)
    for path in (project.home, project.truths, project.private, project.root):
        shutil.chown(path, NOBODY)
        path.chmod(0o700)
    log = (project.home.parent / "work.log").open("w")
    work = subprocess.Popen(
        [sys.executable, "-m", "runner", "work"], env=project.environment(), stdout=log, stderr=log
    )
    front = subprocess.Popen(
        without_rights(
            [sys.executable, "-m", "runner", "front", "--bind", "127.0.0.1:0", "--exchange", str(exchange)]
        ),
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert front.stdout is not None
        url = front.stdout.readline().split()[1]
        yield Server(project, exchange, url)
    finally:
        for process in (front, work):
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(60) for process in (front, work)]
        log.close()
    said = Path(log.name).read_text()
    assert codes == [0, 0] and "Traceback" not in said, said


def test_a_team_hands_in_from_a_browser_and_everybody_sees_it(live: Project) -> None:
    live.write_task(uploads=True)
    with serving(live) as server:
        for path in (live.home / "events.jsonl", live.home / "archive", live.truths, live.private):
            said = subprocess.run(without_rights(["ls", str(path)]), capture_output=True, text=True)
            assert said.returncode != 0 and "Permission denied" in said.stderr, path
        until(lambda: "Mini" in server.client().get("/").text)
        token = call(live, "team", "add", "alpha").out.strip()
        team = server.signed_in(token)

        page = team.get("/tasks/mini/hand-in")
        file = {"file": ("run.txt", run_text("test", "one"))}
        fields = {"form-token": form_of(page.text), "software": "one", "dataset": "test"}
        said = team.post("/tasks/mini/hand-in", data=fields, files=file)
        assert said.status_code == 200 and "SHA-256" in said.text
        where = str(said.url)
        run = until(lambda: re.search(r'href="(/runs/alpha\.one\.[^"]+)"', team.get(where).text))[1]
        until(lambda: "scored" in team.get("/team").text)
        assert "scored" in team.get(run).text

        public = server.client()
        assert public.get("/tasks/mini/main").status_code == 404, "its scores are not published"
        assert "sign-in" in str(public.get(run).url)
        call(live, "publish", "mini", "test")
        board = until(lambda: (p := public.get("/tasks/mini/main")).status_code == 200 and p)
        assert "alpha" in board.text and "one" in board.text

        call(live, "team", "rotate", "alpha")
        assert "sign-in" in str(team.get("/team").url), (
            "a token that was replaced opens nothing from that moment"
        )


@pytest.mark.parametrize("end", [signal.SIGTERM])
def test_one_command_serves_and_ends_in_order(project: Project, end: signal.Signals) -> None:
    """Work has no engine here: what is handed in waits, and pages are there all the same."""
    process = project.start("serve", "--bind", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        with httpx2.Client(base_url=url, trust_env=False) as client:
            until(lambda: "Mini" in client.get("/").text, 60)
            until(lambda: client.get("/healthz").text == "ok\n", 60)
    finally:
        process.send_signal(end)
        out, err = process.communicate(timeout=60)
    assert "CAUTION" in err and "Traceback" not in out + err, out + err
