"""A front says when it is older than what is installed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner.web.pages import load
from runner.web.program import EVERY, Program
from tests.worlds.mini import Project


def test_files_that_were_replaced_are_noticed_after_a_minute(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "a.pyc").write_text("x")
    now = [0.0]
    program = Program([tmp_path], lambda: now[0])
    (tmp_path / "a.pyc").write_text("byte code comes by itself")
    now[0] += EVERY
    assert not program.older
    (tmp_path / "page.html").write_text("another")
    assert not program.older, "not looked at with every request"
    now[0] += EVERY
    assert program.older


def test_every_template_is_there_before_the_first_request() -> None:
    assert {"layout.html", "console.html"} <= set(load())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_serve_starts_both_anew_when_it_is_told_to(project: Project) -> None:
    command = [
        sys.executable,
        "-m",
        "runner",
        "serve",
        "--bind",
        "127.0.0.1:0",
        "--url",
        "http://127.0.0.1:1",
    ]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=project.environment(), **quiet) as serve:  # type: ignore[call-overload]
        try:
            assert serve.stdout.readline().startswith("ready ")
            serve.send_signal(signal.SIGHUP)
            assert serve.stdout.readline().startswith("ready "), "another front"
        finally:
            serve.send_signal(signal.SIGINT)
        said = serve.communicate(timeout=100)[1]
    assert serve.returncode == 0 and "Traceback" not in said, said
