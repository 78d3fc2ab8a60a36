"""What a judge of debates needs beside its judgment: the server of sub-task 2, and reading and writing files.

``run(judge)`` calls ``judge(criterion, simulation, turn)`` for every answer: ``criterion`` is quantity, quality, relation or
manner, ``turn`` counts from 0 and is None when the debate as a whole is asked for. It returns a number from 0 to 1 (yes
from 0.5 on), or None for what it does not judge.

As a server (the default) it answers POST /quantity, /quality, /relation and /manner on $PORT (8080). As a batch it reads
$inputDataset/debates.jsonl and writes $outputDir/evaluations.jsonl. Plain Python, nothing to install.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CRITERIA = ("quantity", "quality", "relation", "manner")
MAX_BODY = 64 << 20
Judge = Callable[[str, dict[str, Any], "int | None"], "float | None"]


def run(judge: Judge) -> None:
    """Be a batch if there is a folder to write to, else a server."""
    if "outputDir" in os.environ and "inputDataset" in os.environ and "--serve" not in sys.argv:
        batch(judge, Path(os.environ["inputDataset"]), Path(os.environ["outputDir"]))
    else:
        serve(judge, int(os.environ.get("PORT", "8080")))


def batch(judge: Judge, inputs: Path, output: Path) -> None:
    """Judge all debates of a folder. One line per debate, in the same order; a criterion without a score is left out."""
    with (inputs / "debates.jsonl").open(encoding="utf-8") as debates:
        lines = [json.loads(line) for line in debates if line.strip()]
    with (output / "evaluations.jsonl").open("w", encoding="utf-8") as out:
        for line in lines:
            simulation = line.get("simulation", {})
            turns = []
            for turn in range(len(simulation.get("userTurns", []))):
                scores = {c.capitalize(): judge(c, simulation, turn) for c in CRITERIA}
                turns.append({c: {"score": score} for c, score in scores.items() if score is not None})
            out.write(json.dumps({"userTurnsEvaluations": turns}) + "\n")


def serve(judge: Judge, port: int) -> None:
    """Answer until somebody stops it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            criterion = self.path.strip("/")
            length = self.headers.get("Content-Length", "")
            if criterion not in CRITERIA:
                self.close_connection = True
                return self.say(404, {"error": f"there are /{', /'.join(CRITERIA)}"})
            if not length.isdigit() or int(length) > MAX_BODY:
                self.close_connection = True
                return self.say(413, {"error": "a body of known length, please, and not too long"})
            try:
                asked = json.loads(self.rfile.read(int(length)))
                simulation, turn = asked["simulation"], asked.get("userTurnIndex")
                if turn is not None:
                    simulation["userTurns"][turn]["systemResponse"]["utterance"]
            except (ValueError, LookupError, TypeError, AttributeError):
                return self.say(400, {"error": "that is not a simulation with such a turn"})
            self.say(200, {"score": judge(criterion, simulation, turn)})

        def say(self, status: int, data: dict[str, Any]) -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, form: str, *values: Any) -> None:
            """Say nothing: the log is short."""

    # Whoever asks comes from this container's loopback in the graded room, and from outside elsewhere.
    with ThreadingHTTPServer(("0.0.0.0", port), Handler) as server:  # noqa: S104
        print(f"listening on {server.server_address[1]}", file=sys.stderr, flush=True)
        server.serve_forever()
