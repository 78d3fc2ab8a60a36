"""Waiting for a decision of work that was stopped: who waits is told, and does not wait for ever."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock

from runner.cli.remote import client as asking
from runner.cli.remote.asking import decided
from runner.cli.remote.client import Client
from runner.cli.remote.servers import Server
from runner.exchange.published import ALIVE
from runner.model.errors import RunnerError
from runner.records import commit
from tests.e2e.test_server import until
from tests.worlds.mini import Project, call_here
from tests.worlds.site import serving


@pytest.mark.slow
def test_a_waiting_client_is_told_that_work_has_stopped_and_gets_the_later_answer(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in (("ASK_AGAIN", 0.05), ("LOOK", 0.1), ("GIVEN_UP", 1.0)):
        monkeypatch.setattr(asking, name, seconds)
    token = call_here(project, ["team", "add", "alpha"], capsys).out.strip()
    work = project.start("work")
    alive = project.config.published / ALIVE
    try:
        until(alive.exists)
        with (
            serving(project.config.exchange, tmp_path / "state") as url,
            Client(Server("lab", url, token, "alpha")) as client,
        ):
            work.send_signal(signal.SIGSTOP)
            sent = str(client.post("api-asked", "submissions", "alpha.x.00000000", "withdraw")["request"])
            assert client.decision(sent, 0.5) is None
            assert "nobody" not in capsys.readouterr().err, "work was heard of a moment ago"
            os.utime(alive, (time.time() - 90,) * 2)
            with pytest.raises(RunnerError) as error:
                decided(client, sent)
            said = capsys.readouterr().err
            assert error.value.code == "E312" and "runner work" in error.value.why
            assert said.count("nobody") == 1
            assert "nobody" in client.send("GET", "healthz").text and "2 min" in client.send("GET").text
            work.send_signal(signal.SIGCONT)
            until(lambda: time.time() - alive.stat().st_mtime < 60)  # work has gone on
            answer = client.decision(sent)
            assert answer is not None and answer["code"] == "E102", "no such submission: it was decided"
    finally:
        work.send_signal(signal.SIGCONT)
        work.send_signal(signal.SIGTERM)
        out, err = work.communicate(timeout=60)
    assert work.returncode == 0 and "Traceback" not in err, out + err


def test_waiting_for_a_registration_ends(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "REGISTERING", 0.2)
    project.config.locks.mkdir(parents=True)
    held = FileLock(project.config.locks / "register.lock", thread_local=False)
    threading.Thread(target=held.acquire).start()
    until(lambda: held.is_locked)
    with (
        pytest.raises(RunnerError) as error,
        commit.registering(project.config),
    ):
        pass
    assert error.value.code == "E306" and "kill -CONT" in error.value.fix
    held.release()
    with commit.registering(project.config):
        pass
