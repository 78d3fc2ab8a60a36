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
from tests.runner.web.test_routes import form_of
from tests.worlds.mini import Project, Said, call, call_here


@dataclass
class Home:
    """A person elsewhere: a folder with nothing of the server's, where they have logged in. Commands run in this process."""

    project: Project
    config: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str, expect: int = 0, token: str = "") -> Said:
        self.project.env = {"XDG_CONFIG_HOME": str(self.config), "RUNNER_TOKEN": token}
        said = call_here(self.project, words, self.capsys)
        assert said.code == expect, said.all
        return said


@dataclass
class Served:
    """A running server, and how one gets a home and an account there."""

    project: Project
    url: str
    folder: Path

    def token(self, team: str) -> str:
        return call(self.project, "team", "add", team).out.strip()

    def home(self, team: str, capsys: pytest.CaptureFixture[str], *, log_in: bool = True) -> Home:
        root = self.folder / team
        project = Project(root, root / "home", self.folder / "none")
        made = Home(project, self.folder / f"{team}.config", capsys)
        made.project.root.mkdir()
        if log_in:
            made.run("login", self.url, token=self.token(team))
        return made

    def waiting(self) -> dict[str, str]:
        """The requests that wait, by id the names of their folders. Work cannot check run files without an engine."""
        return {id: name for name, id in Inbox(self.project.config.inbox).waiting()}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    project = Project(folder / "project", folder / "home", folder / "truths")
    project.write_task(uploads=True)
    process = project.start("serve", "--bind", "127.0.0.1:0")
    assert process.stdout is not None
    url = process.stdout.readline().split()[1]
    (folder / "homes").mkdir()
    try:
        with httpx2.Client(base_url=url, trust_env=False, timeout=60) as client:
            until(lambda: "Mini" in client.get("/").text)
        yield Served(project, url, folder / "homes")
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=90)
    assert "Traceback" not in out + err, out + err


def hand_in(served: Served, token: str, **more: Any) -> str:
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=served.url, trust_env=False, timeout=60, headers=headers) as client:
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


@pytest.mark.slow
def test_a_team_manages_its_submissions(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    alpha, beta = served.home("alpha", capsys, log_in=False), served.home("beta", capsys)
    refused = alpha.run("login", served.url, token="proctor_000000000000_" + "x" * 43, expect=2)
    assert "E105" in refused.err and not alpha.config.exists()
    token = served.token("alpha")
    said = alpha.run("login", served.url, token=token)
    assert "alpha" in said.err and token not in said.all
    assert (alpha.config / "proctor/servers/local.json").stat().st_mode & 0o777 == 0o600

    request = hand_in(served, token)  # waits: a run file is checked by an engine
    assert "received" in alpha.run("status", request).out
    asked = alpha.run("status", "--to", "local")
    assert request in asked.out and "1 of 100" in asked.err and "48 GiB" in asked.err
    submission = registered(served.project)
    until(lambda: alpha.run("runs", "--to", "local", "--json").json)
    assert submission in alpha.run("runs", "--to", "local").out
    assert alpha.run("runs", "--to", "local", "--dataset", "none").out == ""
    assert f"{submission}.dev" in alpha.run("show", submission, "--to", "local").out
    assert "E102" in alpha.run("logs", submission, "--to", "local", expect=2).err

    for verb in ("withdraw", "choose"):
        assert "E102" in beta.run(verb, submission, "--to", "local", expect=2).err
    assert "E102" in beta.run("status", request, expect=2).err
    assert request not in beta.run("status").out and "E102" in beta.run("status").out
    alpha.run("choose", submission, "--to", "local")
    alpha.run("withdraw", submission, "--to", "local", "--reason", "wrong")
    assert "withdrawn" in alpha.run("choose", submission, "--to", "local", expect=2).err
    alpha.run("withdraw", submission, "--to", "local", "--uncharged", expect=2)

    call(served.project, "team", "rotate", "alpha")
    assert "E105" in alpha.run("status", expect=2).err
    alpha.run("logout", "local")
    assert "runner login" in alpha.run("status", expect=2).err
    assert not list(alpha.project.home.glob("*")), "nothing of a project is made for this"


def test_run_files_are_checked_here_and_sent(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is in the inbox as it was sent, with what submission.yaml says; what is wrong is not sent at all."""
    gamma = served.home("gamma", capsys)
    gamma.project.write_task(uploads=True)
    folder = gamma.project.root / "submissions/gamma/mine"
    folder.mkdir(parents=True)
    definition = {"task": "mini", "run": [{"file": "out.txt", "dataset": "dev"}], "description": 'ümlaut "x"'}
    (folder / "submission.yaml").write_text(json.dumps(definition))
    before = served.waiting()
    submit = ("submit", "--team", "gamma", "--to", "local")
    (folder / "out.txt").write_text("dev-1 Q0 doc-01 1 nan x\n")
    gamma.run(*submit, expect=1)
    (folder / "out.txt").write_text(run_text("dev", "one"))
    gamma.run(*submit, "--dry-run")
    assert served.waiting() == before
    [said] = gamma.run(*submit, "--json").json
    assert said["sha256"] == hashlib.sha256((folder / "out.txt").read_bytes()).hexdigest()
    assert said["request"] in gamma.run("status").out
    name = served.waiting()[said["request"]]
    taken = Inbox(served.project.config.inbox).take(name, served.folder / "taken")
    assert taken.payload is not None and taken.payload.read_text() == run_text("dev", "one")
    expected = {"task": "mini", "software": "mine", "dataset": "dev", "scenario": "default", "tag": "mine"}
    about = {"description": definition["description"], "file": "out.txt", "method": "automatic"}
    assert taken.request.data == expected | about
    other = gamma.run("submit", "--team", "beta", "--to", "local", expect=2)
    assert "E213" in other.err
    gamma.project.software("prog", team="gamma", image="x")
    assert "E301" in gamma.run(*submit, "--software", "prog", expect=3).err, "an image is packed by an engine"


def test_a_server_that_is_not_one_is_told_apart(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    home = served.home("delta", capsys)
    token = "proctor_000000000000_" + "x" * 43
    assert "E312" in home.run("login", "http://127.0.0.1:9", token=token, expect=3).err
    assert "https" in home.run("login", "http://task.example.org", token=token, expect=2).err
    refused = home.run("login", served.url, token="hunter2", expect=2)
    assert "E101" in refused.err and "hunter2" not in refused.all
    call(served.project, "team", "add", "epsilon")
    link = call(served.project, "team", "link", "epsilon").out.strip()
    assert link.startswith(f"{served.url}/link/"), "where this front is"
    mistyped = home.run("login", served.url, token=token, expect=2).err
    assert "E105" in mistyped and "link" not in mistyped
    for given, code in ((link, "E101"), (link.rpartition("/")[2], "E105")):
        linked = home.run("login", served.url, token=given, expect=2).err
        assert code in linked and "link" in linked


@pytest.mark.slow
def test_teams_choose_among_allowed_notices(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"url": served.url, "mail": {"host": "127.0.0.1", "from": "task@example.org", "teams": True}}
    settings["mail"]["about"] = ["done", "held"]  # type: ignore[index]
    (served.project.root / "notices.yaml").write_text(json.dumps(settings))
    zeta = served.home("zeta", capsys)

    def shown() -> Any:
        return zeta.run("notices", "--json").json

    call(served.project, "team", "people", "zeta", "--contact", "ada@example.org")
    zeta.run("notices", "on", "--about", "held", "--about", "deadline", "--mail", "grace@example.org")
    until(lambda: shown() == {"may": ["done", "held"], "about": ["held"], "to": "g…@example.org"})
    assert call(served.project, "team", "people", "zeta", "--json").json["contact"] == "grace@example.org"
    with httpx2.Client(base_url=served.url, trust_env=False, timeout=60) as browser:
        form = form_of(browser.get("/sign-in").text)
        browser.post("/sign-in", data={"form-token": form, "token": served_token(zeta)})
        page = browser.get("/team").text
        assert "g…@example.org" in page and 'value="held" checked' in page
        assert 'value="done"> ' in page and 'value="deadline"' not in page and "grace" not in page
        said = browser.post("/notices", data={"form-token": form_of(page)})
        assert said.status_code == 303
    until(lambda: shown()["about"] == [])
    zeta.run("notices", "on")
    until(lambda: shown()["about"] == ["done", "held"])
    assert "E101" in zeta.run("notices", "on", "--mail", "nobody", expect=2).err
    assert "E101" in zeta.run("notices", "off", "--about", "held", expect=2).err
    assert "E201" in zeta.run("notices", "on", "--about", "everything", expect=2).err
    assert "grace" not in served.project.config.events.read_text()


def served_token(home: Home) -> str:
    return str(json.loads((home.config / "proctor/servers/local.json").read_text())["token"])
