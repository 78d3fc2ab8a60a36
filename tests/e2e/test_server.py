"""The server from end to end: real processes, a real engine, real HTTP; a team hands in, work runs it, everybody sees it.

The front is held to what it may have: it runs without the rights of root, and the data directory belongs to somebody else.
"""

from __future__ import annotations

import io
import json
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

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.model.clock import SystemClock, stamp
from runner.records.store.connect import open_store
from runner.records.store.queries import submissions
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import TASK, Project, cli

NOBODY = 65534
SOON = 30.0  # seconds, on a machine that does other things too; alone it takes about 3
# Work on a scripted engine: what is killed in it is work, not containers.
SCRIPTED_WORK = """
from runner.execution.coordinator import Silent
from runner.execution.machine import Machine
from runner.model.config import load
from runner.work.loop import Work
from tests.runner.execution.test_pool import EVALUATOR, evaluator
from runner.engines.fake import FakeEngine
config = load()
engine = FakeEngine({EVALUATOR: evaluator})
Work(config, Silent(), machine=Machine(config, engine=engine, images={"evaluator": EVALUATOR})).run()
"""
# It is killed right behind the n-th thing that it writes down, whatever n is.
DYING = """
import os, signal, sys
from contextlib import contextmanager
from runner.records.events import EventLog
left = int(sys.argv[1])
def dying(append):
    @contextmanager
    def appending(*args, **more):
        global left
        with append(*args, **more) as made:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            yield made
    return appending
EventLog.appending = dying(EventLog.appending)
"""
FIELD = re.compile(r'name="form-token" value="([^"]+)"')


def until(what: Callable[[], Any], seconds: float = 120, every: float = 0.3) -> Any:
    """What a question gives once it gives something; it is asked ``every`` so many seconds."""
    last = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < last, "it never came"
        time.sleep(every)
    return found


@dataclass
class Server:
    """The server of a project: ``url``, and the processes."""

    project: Project
    exchange: Path
    url: str

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, trust_env=False, timeout=30, follow_redirects=True)

    def parts(self, token: str) -> list[str]:
        """What the server has of the images of the team with that token."""
        with self.client() as client:
            said = client.get("/api/v1/parts", headers={"authorization": f"Bearer {token}"})
        return list(said.json()["sha256"])

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
        server = Server(project, exchange, front.stdout.readline().split()[1])
        until(lambda: "/tasks/" in server.client().get("/").text)
        yield server
    finally:
        for process in (front, work):
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(60) for process in (front, work)]
        log.close()
    said = Path(log.name).read_text()
    assert codes == [0, 0] and "Traceback" not in said, said


@pytest.mark.slow
def test_a_team_hands_in_from_a_browser_and_everybody_sees_it(live: Project) -> None:
    live.write_task(uploads=True)
    with serving(live) as server:
        for path in (live.home / "events.jsonl", live.home / "archive", live.truths, live.private):
            said = subprocess.run(without_rights(["ls", str(path)]), capture_output=True, text=True)
            assert said.returncode != 0 and "Permission denied" in said.stderr, path
        token = cli(live, "team", "add", "alpha").out.strip()
        team = server.signed_in(token)

        page = team.get("/tasks/mini/hand-in")
        file = {"file": ("run.txt", run_text("test", "one"))}
        fields = {"form-token": form_of(page.text), "software": "one", "dataset": "test"}
        said = team.post("/tasks/mini/hand-in", data=fields, files=file)
        assert said.status_code == 200 and "SHA-256" in said.text
        where = str(said.url)
        run = until(lambda: re.search(r'href="(/runs/alpha\.one\.[^"]+)"', team.get(where).text))[1]
        until(lambda: re.search(r'class="badge good">.*?scored</span>', team.get("/team").text))
        assert "scored" in team.get(run).text

        public = server.client()
        assert public.get("/tasks/mini/main").status_code == 404, "its scores are not published"
        assert "sign-in" in str(public.get(run).url)
        cli(live, "publish", "mini", "test")
        board = until(lambda: (p := public.get("/tasks/mini/main")).status_code == 200 and p)
        assert "alpha" in board.text and "one" in board.text

        cli(live, "team", "rotate", "alpha")
        assert "sign-in" in str(team.get("/team").url), "a replaced token is invalid at once"


@pytest.mark.slow
def test_an_organiser_decides_on_the_web_what_needs_no_terminal(live: Project) -> None:
    """A review, a team closed and opened again, a submission withdrawn: by forms, done by work; no other message of hidden data."""
    live.write_task(uploads=True, review="required")
    live.software("mine", "print('nothing')", team="beta")
    cli(live, "submit", "--team", "beta", "--no-check")
    team = cli(live, "team", "add", "alpha").out.strip()
    token = cli(live, "account", "add", "organiser").out.strip()
    cli(live, "publish", "mini", "test")
    with serving(live) as server:
        client = server.signed_in(team)
        token_of_form = form_of(client.get("/tasks/mini/hand-in").text)
        fields = {"form-token": token_of_form, "software": "one", "dataset": "test"}
        file = {"file": ("run.txt", run_text("test", "one"))}
        client.post("/tasks/mini/hand-in", data=fields, files=file)
        console = server.signed_in(token)
        run = until(
            lambda: re.search(r'action="/runs/(alpha\.one\.[^"]+)/review"', console.get("/console").text)
        )[1]
        failed = next(r["run"] for r in cli(live, "runs", "--json").json if r["team"] == "beta")
        until(lambda: "failed" in cli(live, "runs", "--team", "beta").out)

        def decided(path: str, **data: str) -> str:
            """Return the error code of a decision; none if it was done."""
            said = console.post(path, data={"form-token": form_of(console.get("/console").text), **data})
            assert said.status_code == 200 and "/requests/" in str(said.url), said.text
            badge = until(
                lambda: re.search(r'class="notice (good|bad)" role="status"', console.get(str(said.url)).text)
            )[1]
            code = re.search(r"\((E\d\d\d)\)", console.get(str(said.url)).text)
            assert (badge == "bad") == (code is not None)
            return code[1] if code else ""

        public = server.client()
        assert "one" not in public.get("/tasks/mini/main").text
        assert decided(f"/runs/{run}/review", state="approved") == ""
        until(lambda: "alpha" in public.get("/tasks/mini/main").text)
        assert decided(f"/runs/{failed}/rerun", reason="the machine was full") == "E103", (
            "its data are hidden"
        )
        assert decided("/console/team", team="alpha", action="close", reason="asked for") == ""
        assert "sign-in" in str(client.get("/team").url)
        assert decided("/console/team", team="alpha", action="reopen", reason="a mistake") == ""
        assert decided("/console/withdraw", submission=run.rpartition(".")[0], reason="its wish") == ""
        until(lambda: "alpha" not in public.get("/tasks/mini/main").text)
        assert decided("/console/withdraw", submission="nobody.x.00000000", reason="x") == "E102"
    log = [json.loads(line) for line in (live.home / "events.jsonl").read_text().splitlines()]
    done = [one for one in log if one.get("person", {}).get("named_by") == "account"]
    kinds = ["run-reviewed", "account-closed", "account-reopened", "submission-withdrawn"]
    assert [one["type"] for one in done] == kinds and len({one["person"]["name"] for one in done}) == 1


@pytest.mark.slow
def test_what_is_wrong_with_a_run_file_is_told_while_runs_go_on(live: Project) -> None:
    """By curl alone: a broken file is refused with every line within ten seconds, and costs nothing; a good one is taken."""
    live.write_task(uploads=True, limits={**TASK["limits"], "wall_clock": "200s"})
    live.write_task("other", limits={**TASK["limits"], "wall_clock": "200s"})
    sleeper = "import time; print('asleep', flush=True); time.sleep(150)"
    live.software("long", sleeper, task="other", team="beta")
    cli(live, "submit", "--team", "beta", "--no-check")
    folder = live.home.parent / "sent"
    folder.mkdir()
    (folder / "broken.txt").write_text("dev-1 Q0 doc-01 1 nan x\n\ndev-1 Q0 doc-02 2 1 x\nno line at all\n")
    (folder / "good.txt").write_text(run_text("dev", "one"))
    token = cli(live, "team", "add", "alpha").out.strip()
    with serving(live) as server:
        until(lambda: [r["outcome"]["name"] for r in cli(live, "runs", "--json").json] == ["running"])

        def curl(*arguments: str) -> Any:
            command = ["curl", "-sS", "--noproxy", "*", "-H", f"Authorization: Bearer {token}", *arguments]
            said = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)
            assert said.returncode == 0, said.stderr
            return json.loads(said.stdout)

        def hand_in(file: str) -> tuple[Any, float]:
            began = time.monotonic()
            fields = ["-F", f"file=@{file}", "-F", "software=one", "-F", "dataset=dev"]
            taken = curl(*fields, f"{server.url}/tasks/mini/hand-in")
            answer = until(lambda: curl(f"{server.url}{taken['at']}")["answer"], 60)
            return answer, time.monotonic() - began

        def used() -> int:
            return len([r for r in cli(live, "runs", "--json").json if r["team"] == "alpha"])

        keys = curl(f"{server.url}/keys")
        answer, took = hand_in("broken.txt")
        print(f"findings after {took:.1f} s")
        assert (answer["accepted"], answer["code"], used()) == (False, "E219", 0)
        places = {(one["file"], one["line"]) for one in answer["findings"]}
        assert places >= {("broken.txt", 1), ("broken.txt", 4)}
        assert took < SOON, f"it took {took:.1f} s"
        receipt = folder / "receipt.json"
        receipt.write_text(json.dumps(curl(f"{server.url}/requests/{answer['id']}/receipt")))
        held = cli(live, "receipt", "verify", str(receipt), "--key", keys["front"], "--key", keys["work"])
        assert "good " in held.out and "(E219)" in held.out
        good, took = hand_in("good.txt")
        assert good["accepted"] is True and good["checked"] == "inputs" and good["findings"] == []
        rows = cli(live, "runs", "--json").json
        assert took < SOON and [r["outcome"]["name"] for r in rows if r["team"] == "beta"] == ["running"]


@pytest.mark.slow
def test_hand_ins_survive_work_that_is_killed_again_and_again(project: Project) -> None:
    """Killed right behind each thing that it writes down: every hand-in is registered and answered once, and costs once."""
    project.write_task(uploads=True)
    exchange = project.config.exchange
    tokens = [Token.read(cli(project, "team", "add", team).out) for team in ("alpha", "beta", "gamma")]
    asked = []
    for token in tokens * 2:
        assert token is not None
        grant = Access.read(exchange / "published").grant(token)
        assert grant is not None
        data = {"task": "mini", "software": f"s{len(asked)}", "dataset": "dev", "file": "run.txt"}
        now = stamp(SystemClock().now())
        request = Request.new("run-file", grant.account, token.id, grant.team, now, data)
        content = io.BytesIO(run_text("dev", data["software"]).encode())
        asked.append(Inbox(exchange / "inbox").put(request, token.key, content))
    kills = 0
    while Inbox(exchange / "inbox").waiting():
        work = subprocess.Popen(
            [sys.executable, "-c", DYING + SCRIPTED_WORK, str(1 + kills % 4)],
            env=project.environment(PYTHONPATH=str(Path(__file__).parents[2])),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: work.poll() is not None or not Inbox(exchange / "inbox").waiting(), every=0.05)
            assert work.poll() in (None, -signal.SIGKILL)
            kills += work.poll() == -signal.SIGKILL  # by itself
        finally:
            work.kill()
            work.wait()
    with open_store(project.config) as store:
        until(lambda: all(answered(exchange / "published", one.id) for one in asked))
        found = [answered(exchange / "published", one.id) for one in asked]
        log = [(event.type, event.data) for event in store.log]
        entries = submissions(store)
    assert kills >= 3, "it was killed while it still had work"
    assert sorted(one.software for one in entries) == sorted(str(one.data["software"]) for one in asked)
    decided = [str(data["request"]) for name, data in log if name == "request-decided"]
    assert sorted(decided) == sorted(one.id for one in asked)
    assert [one["accepted"] for one in found if one] == [True] * 6
    assert {one["submission"] for one in found if one} == {entry.id for entry in entries}


def test_one_command_serves_and_ends_in_order(project: Project) -> None:
    """Work has no engine here: what is handed in waits, and pages are there all the same."""
    process = project.start("serve", "--bind", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        with httpx2.Client(base_url=url, trust_env=False, timeout=60) as client:
            until(lambda: "Mini" in client.get("/").text, 60)
            until(lambda: client.get("/healthz").text == "ok\n", 60)
            took = [client.get("/healthz").elapsed.total_seconds() for _ in range(20)]
            assert min(took) < 0.03, "no answer waits for an acknowledgement (40 ms)"
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err and "E306" not in err, out + err
