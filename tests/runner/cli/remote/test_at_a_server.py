"""The command line against a server, from a home of its own: real processes and HTTP. Work has no engine here."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.exchange.inbox import Inbox
from tests.e2e.test_server import until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import Project, Said, call


@dataclass
class Home:
    """A person elsewhere: a folder with nothing of the server's, where they have logged in."""

    project: Project
    config: Path

    def run(self, *words: str, expect: int | None = 0, token: str = "") -> Said:
        env = {"XDG_CONFIG_HOME": str(self.config)} | ({"RUNNER_TOKEN": token} if token else {})
        return call(self.project, *words, expect=expect, env=env)


@dataclass
class Served:
    """A running server, and the tokens of its teams."""

    project: Project
    url: str
    folder: Path

    def home(self, team: str, *, log_in: bool = True) -> Home:
        made = Home(
            Project(self.folder / team, self.folder / team / "home", self.folder / "none"),
            self.folder / f"{team}.config",
        )
        made.project.root.mkdir()
        if log_in:
            token = call(self.project, "team", "add", team).out.strip()
            made.run("login", self.url, token=token)
        return made


@pytest.fixture
def served(project: Project, tmp_path: Path) -> Iterator[Served]:
    project.write_task(uploads=True)
    process = project.start("serve", "--bind", "127.0.0.1:0")
    assert process.stdout is not None
    url = process.stdout.readline().split()[1]
    (tmp_path / "homes").mkdir()
    try:
        with httpx2.Client(base_url=url, trust_env=False) as client:
            until(lambda: "Mini" in client.get("/").text)
        yield Served(project, url, tmp_path / "homes")
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=90)
    assert "Traceback" not in out + err, out + err


def hand_in(served: Served, token: str, **more: Any) -> str:
    with httpx2.Client(
        base_url=served.url, trust_env=False, headers={"authorization": f"Bearer {token}"}
    ) as client:
        file = {"file": ("run.txt", run_text("dev", "one"))}
        said = client.post(
            "/tasks/mini/hand-in", data={"software": "one", "dataset": "dev", **more}, files=file
        )
        assert said.status_code == 202, said.text
        return str(said.json()["request"])


def registered(project: Project) -> str:
    """A run file of alpha that was registered beside work."""
    folder = project.root.parent / "files"
    folder.mkdir()
    (folder / "run.txt").write_text(run_text("dev", "one"))
    (folder / "runs.csv").write_text("team,run,file,dataset\nalpha,one,run.txt,dev\n")
    said = call(project, "register", "--table", str(folder / "runs.csv"), "--task", "mini", "--json")
    return str(said.json[0]["submission"])


def test_a_team_looks_withdraws_and_chooses_from_its_own_home(served: Served) -> None:
    alpha, beta = served.home("alpha", log_in=False), served.home("beta")
    refused = alpha.run("login", served.url, token="proctor_000000000000_" + "x" * 43, expect=2)
    assert "E105" in refused.err and not alpha.config.exists()
    token = call(served.project, "team", "add", "alpha").out.strip()
    said = alpha.run("login", served.url, token=token)
    assert "as alpha" in said.err and token not in said.all
    assert (alpha.config / "proctor/servers/local.json").stat().st_mode & 0o777 == 0o600

    request = hand_in(served, token)  # waits: a run file is checked by an engine
    assert "received" in alpha.run("status", request).out
    assert "one for mini" in alpha.run("status", "--to", "local").out
    submission = registered(served.project)
    until(lambda: alpha.run("runs", "--to", "local", "--json").json)
    assert submission in alpha.run("runs", "--to", "local").out
    assert alpha.run("runs", "--to", "local", "--dataset", "none").out == ""
    assert f"{submission}.dev" in alpha.run("show", submission, "--to", "local").out
    assert "E102" in alpha.run("logs", submission, "--to", "local", expect=2).err

    for verb in ("withdraw", "choose"):
        assert "E102" in beta.run(verb, submission, "--to", "local", expect=2).err
    assert "E102" in beta.run("status", request, expect=2).err
    assert "one for mini" not in beta.run("status").out and "refused (E102)" in beta.run("status").out
    alpha.run("choose", submission, "--to", "local")
    alpha.run("withdraw", submission, "--to", "local", "--reason", "wrong")
    assert "withdrawn" in alpha.run("choose", submission, "--to", "local", expect=2).err
    alpha.run("withdraw", submission, "--to", "local", "--uncharged", expect=2)

    call(served.project, "team", "rotate", "alpha")
    assert "E105" in alpha.run("status", expect=2).err
    alpha.run("logout", "local")
    assert "runner login" in alpha.run("status", expect=2).err
    assert not list(alpha.project.home.glob("*")), "nothing of a project is made for this"


def test_run_files_are_checked_here_and_sent(served: Served) -> None:
    """The file is in the inbox as it was sent, with what submission.yaml says; what is wrong is not sent at all."""
    alpha = served.home("alpha")
    alpha.project.write_task(uploads=True)
    folder = alpha.project.root / "submissions/alpha/mine"
    folder.mkdir(parents=True)
    definition = {"task": "mini", "run": [{"file": "out.txt", "dataset": "dev"}], "description": 'ümlaut "x"'}
    (folder / "submission.yaml").write_text(json.dumps(definition))
    submit = ("submit", "--team", "alpha", "--to", "local")
    (folder / "out.txt").write_text("dev-1 Q0 doc-01 1 nan x\n")
    assert "was not handed in" in alpha.run(*submit, expect=1).err
    (folder / "out.txt").write_text(run_text("dev", "one"))
    assert "not handed in" in alpha.run(*submit, "--dry-run").err
    assert not (served.project.config.inbox).exists() or not Inbox(served.project.config.inbox).waiting()
    [said] = alpha.run(*submit, "--json").json
    assert said["sha256"] == hashlib.sha256((folder / "out.txt").read_bytes()).hexdigest()
    assert said["request"] in alpha.run("status").out
    inbox = Inbox(served.project.config.inbox)
    [(name, _)] = inbox.waiting()  # work cannot check it without an engine
    taken = inbox.take(name, served.folder / "taken")
    assert taken.payload is not None and taken.payload.read_text() == run_text("dev", "one")
    expected = {"task": "mini", "software": "mine", "dataset": "dev", "scenario": "default", "tag": "mine"}
    assert taken.request.data == {
        **expected,
        "description": 'ümlaut "x"',
        "file": "out.txt",
        "method": "automatic",
    }
    other = alpha.run("submit", "--team", "beta", "--to", "local", expect=2)
    assert "E213" in other.err
    alpha.project.software("prog", team="alpha", image="x")
    assert "E301" in alpha.run(*submit, "--software", "prog", expect=3).err, "an image is packed by an engine"


def test_a_server_that_is_not_one_is_told_apart(served: Served) -> None:
    home = served.home("alpha")
    token = "proctor_000000000000_" + "x" * 43
    assert "E312" in home.run("login", "http://127.0.0.1:9", token=token, expect=3).err
    assert "https" in home.run("login", "http://task.example.org", token=token, expect=2).err
    assert "no token" in home.run("login", served.url, token="hunter2", expect=2).err
    assert "hunter2" not in home.run("login", served.url, token="hunter2", expect=2).all
