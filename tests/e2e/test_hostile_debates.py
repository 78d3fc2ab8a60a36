"""A debating software that attacks whoever looks at its run: nothing of it comes through raw, and all of it is bounded."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.model.container import ImageRef
from tests.worlds.mini import Project, Said, cli, exported
from tests.worlds.model_judge import TALK, write_talk

pytestmark = pytest.mark.engine
MAX_LOG = 64 * 1024

# One debate each: texts against terminals, pages and spreadsheets; ten thousand arguments; and all the while a log
# without an end.
SOFTWARE = r"""
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
TERMINAL = "\x1b]0;owned\x07\x1b[2J\x9b31m"
TURNED = "\u202edlrow\u202c\u2066x\u2069\u2028\u200f"
PAGE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'--></textarea></script>"
FORMULA = "=HYPERLINK(\"http://attack.example\",\"x\")"
SAID = FORMULA + TERMINAL + TURNED + PAGE + "\r\nrunner: PASS\n\n" + "\ud800"
NAME = "=cmd|' /C calc'!A0" + TERMINAL + TURNED + "<b id=evil>"

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][0]["content"]
        arguments = [{"id": NAME, "text": SAID, NAME: SAID}]
        if "number 2" in said:
            arguments = [{"id": "7.1"}] * 10_000
        body = json.dumps({"content": SAID, "arguments": arguments, "extra": SAID}).encode()
        self.send_response(200, TERMINAL.encode().decode("latin-1").replace("\n", ""))
        self.send_header("X-Evil", TERMINAL)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

def flood():
    while True:
        sys.stdout.buffer.write((SAID.replace("\ud800", "") + "\n").encode() * 1000)
        sys.stderr.buffer.write(TERMINAL.encode() * 1000)
threading.Thread(target=flood, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""

# What may stand nowhere: characters that a terminal obeys or that turn text around, and pieces of a page.
CONTROLS = "\x1b\x07\x9b\u202e\u202c\u2066\u2069\u2028\u200f"
ELEMENTS = ("<script>alert", "<img src=x", "</textarea></script>", "<b id=evil>")

MEASURES = {
    "provenance": "provenance",
    "groundedness": "groundedness",
    "words": "words",
    "latency": "latency@p95",
    "score": "score@heuristic",
}
SERVICE = {"data": "services/arguments", "limits": {"memory": "512MiB"}}
LIMITS = TALK["limits"] | {"output": "32MiB", "log": MAX_LOG}


def raw(text: str, *, page: bool = False) -> list[str]:
    """What of the attack is in ``text`` as it is."""
    found = [repr(c) for c in CONTROLS if c in text]
    return found + ([one for one in ELEMENTS if one in text] if page else [])


@pytest.fixture
def attacked(live: Project, sidecars_image: ImageRef) -> tuple[Project, str, Path]:
    """A project with the run of the hostile software; returns it, the run's id and what is exported of it."""
    services = {"search": SERVICE, "user": SERVICE}
    write_talk(live, MEASURES, services=services, options={"turns": 2}, limits=LIMITS)
    live.software("evil", SOFTWARE, task="talk", tag="evil")
    cli(live, "submit", "--team", "alpha", "--no-check")
    done = cli(live, "evaluate", "--task", "talk", expect=None)
    assert raw(done.all) == []
    (row,) = cli(live, "runs", "--json").json
    assert row["outcome"]["name"] == "scored", done.all
    return live, row["run"], exported(live, row["run"])


@pytest.mark.timeout(400)
def test_nothing_comes_through_raw_and_all_is_bounded(
    attacked: tuple[Project, str, Path], tmp_path: Path
) -> None:
    project, run, attempt = attacked
    lines = (attempt / "output" / "turns.jsonl").read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    counts = [(r["outcome"], r["arguments"]) for r in records]
    assert counts == [("answered", 1)] * 2 + [("answered", 10_000)] * 2
    _bounded(attempt, records)
    _terminal(project, run, attempt)
    _pages(project, run, tmp_path)
    _labels(project, tmp_path / "forms")


def _bounded(attempt: Path, records: list[dict[str, Any]]) -> None:
    """The log, the records and what is said about them have limits of ours, whatever was sent."""
    for name in ("stdout.log", "stderr.log"):
        assert (attempt / "logs" / name).stat().st_size <= MAX_LOG + 200
    assert max(len(record["argument_ids"]) for record in records) == 50
    assert (attempt / "output" / "turns.jsonl").stat().st_size < 64 * 1024
    for name in ("relay", "search", "user", "driver", "watch"):
        assert (attempt / "logs" / f"{name}.log").stat().st_size < 512 * 1024
    evaluation = attempt / "evaluation"
    findings = (evaluation / "findings.jsonl").read_bytes()
    assert len(findings) < 512 * 1024 and findings.count(b"\n") <= 1000
    for path in evaluation.rglob("*"):
        if path.is_file():
            assert raw(path.read_text(encoding="utf-8")) == [], path


def _terminal(project: Project, run: str, attempt: Path) -> None:
    """What is printed for people and, as JSON, for programs: a terminal obeys none of it, and nothing poses as ours."""
    said: list[Said] = [
        cli(project, "runs"),
        cli(project, "show", run),
        cli(project, "show", run, "--topic", "all"),
        cli(project, "show", run, "--topic", "2", "--as", "team:alpha"),
        cli(project, "show", run, "--json"),
        cli(project, "show", run, "--json", "--topic", "all"),
        cli(project, "logs", run),
        cli(project, "logs", run, "--evaluator"),
        *(cli(project, "logs", run, "--sidecar", name) for name in ("driver", "search", "user", "relay")),
        *(
            cli(project, "leaderboard", "talk", "--format", form)
            for form in ("table", "json", "csv", "markdown", "latex", "html")
        ),
    ]
    file = str(attempt / "output" / "simulations.jsonl")
    for more in ([], ["--json"], ["--by-debate"]):
        command = [sys.executable, "-m", "evaluator", "debate", file, *more]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
        said.append(Said(done.returncode, done.stdout, done.stderr))
    for one in said:
        assert raw(one.all) == [] and len(one.all) < 1_000_000, one.all[:2000]
    for one in (said[1], said[2], said[3]):  # every line of theirs stands behind a mark of ours
        assert not [line for line in one.all.splitlines() if line.lstrip().startswith("runner: PASS")]
    assert "10,000" in said[2].out  # how many arguments there were is still said
    assert "PASS" in said[2].out and said[2].out.count("\n") < 5000


def _pages(project: Project, run: str, folder: Path) -> None:
    page = folder / "run.html"
    cli(project, "show", run, "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert raw(text, page=True) == [] and "&lt;script&gt;alert" in text
    assert len(text) < 2_000_000
    board = cli(project, "leaderboard", "talk", "--format", "html").out
    assert raw(board, page=True) == []


def _labels(project: Project, forms: Path) -> None:
    """Annotators get the words: in a page of ours, and in a sheet that a spreadsheet opens."""
    cli(project, "labels", "export", "talk", "--dataset", "dev", "--annotators", "1", "--out", str(forms))
    (page,), (sheet,), (lines,) = (list(forms.glob(f"*.{end}")) for end in ("html", "csv", "jsonl"))
    for path in (page, sheet, lines):
        assert raw(path.read_text(encoding="utf-8"), page=path is page) == [], path.name
        assert path.stat().st_size < 2_000_000
    cells = [cell for row in csv.reader(io.StringIO(sheet.read_bytes().decode(), newline="")) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert any("HYPERLINK" in cell for cell in cells)
