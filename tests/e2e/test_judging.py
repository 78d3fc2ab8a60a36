"""Judges as servers in the room, from their submission to the board: good ones, partial ones, and one that misbehaves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from runner.model.container import ImageRef
from tests.worlds.baselines import baseline_folder
from tests.worlds.mini import Project, cli

ROOT = Path(__file__).resolve().parents[2]
TASK = "rad-2025-judging"
# One thing wrong in each criterion: yes as it should be, status 500, no JSON, and death after a while.
MISBEHAVES = """
import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
seen = []
class Judge(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        seen.append(self.path)
        if self.path == "/manner" and seen.count("/manner") > 6:
            os._exit(0)
        body = b"<html>" if self.path == "/relation" else json.dumps({"score": 1}).encode()
        self.send_response(500 if self.path == "/quality" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Judge).serve_forever()
"""


def baseline(project: Project, name: str, **keys: Any) -> None:
    """A baseline of the tree, its two modules given to an image that exists already."""
    folder = baseline_folder(name)
    project.of_the_tree(folder, "judging", "judge", team="baselines", task=TASK, tag=name, **keys)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(600)
def test_judges_in_the_room(live: Project, sidecars_image: ImageRef) -> None:
    shutil.copytree(ROOT / "tasks" / TASK, live.root / "tasks" / TASK)
    baseline(live, "rad-judge-1")
    baseline(live, "rad-judge-relation")
    baseline(live, "rad-judge-1-batch", workflow="batch")
    live.software("misbehaves", MISBEHAVES, task=TASK, tag="misbehaves")
    said = cli(live, "submit", "--team", "baselines", "--no-check", "--json")
    said = cli(live, "submit", "--team", "alpha", "--no-check", "--json")
    assert said.code == 0
    done = cli(live, "evaluate", "--all", expect=None)
    print(done.all)  # shown if what follows fails

    def board(table: str) -> tuple[list[str], dict[str, Any]]:
        found = cli(live, "leaderboard", TASK, "--table", table, "--json").json
        rows = {f"{r['team']}/{r['software']}": r for r in found["rows"]}
        return list(rows), rows

    order, rows = board("dev")
    assert "baselines/rad-judge-relation" not in order, "it has no Score"
    server, batch, bad = (
        rows[n]["scores"]
        for n in ("baselines/rad-judge-1", "baselines/rad-judge-1-batch", "alpha/misbehaves")
    )
    assert server["score"]["mean"] == batch["score"]["mean"] == pytest.approx(0.8149, abs=5e-5)
    assert bad["f1_quality"]["mean"] == bad["f1_relation"]["mean"] == 0, "failures are no's, not excuses"
    assert 0 < bad["f1_quantity"]["mean"] < server["f1_quantity"]["mean"], "what came before its death counts"
    order, rows = board("relation")
    assert set(order) >= {"baselines/rad-judge-relation", "baselines/rad-judge-1"}

    runs = {r["run"]: r for r in cli(live, "runs", "--json").json}
    (name,) = (n for n in runs if ".misbehaves." in n and n.endswith(".dev"))
    shown = cli(live, "show", name, "--json").json
    assert runs[name]["outcome"]["name"] == "scored", "its failures are its own, judgment by judgment"
    assert "status" in json.dumps(shown) and "server-ended" in json.dumps(shown)
