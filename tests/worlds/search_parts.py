"""The interface without HTTP, and the server as a process: what the tests of the argument index ask."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from sidecars.search.api import Api, Call
from sidecars.search.prepared import open_collection

ROOT = Path(__file__).parents[2]


def words(error: Exception) -> set[str]:
    """Return the words and numbers of a message. A path is one word."""
    return {word.strip("'").rstrip(".") for word in re.split(r"[\s:,;()\[\]]+", str(error))}


class Asked:
    """The interface without HTTP: `ask(path, body)` gives (status, JSON)."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def __call__(self, path: str, body: Any = None, method: str = "POST", **headers: str) -> tuple[int, Any]:
        address, _, query = path.partition("?")
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        form, accept = headers.get("content_type", "application/json"), headers.get("accept", "")
        call = Call(method, address, parse_qsl(query, keep_blank_values=True), raw, form, accept)
        answer = self.api.answer(call)
        json.dumps(answer.content, allow_nan=False)
        return answer.status, answer.content

    def search(self, body: Any, address: str = "") -> Any:
        """The answer to a search that has to succeed."""
        status, content = self(f"/arguments/claimrev/_search{address}", body)
        assert status == 200, content
        return content

    def ids(self, query: Any, **more: Any) -> list[str]:
        """The ids that a query finds, best first."""
        return [hit["_id"] for hit in self.search({"query": query, **more})["hits"]["hits"]]

    def refusal(self, body: Any, address: str = "") -> str:
        """The reason for which a search is refused with status 400."""
        status, content = self(f"/claimrev/_search{address}", body)
        assert status == 400, content
        assert content["status"] == 400
        assert content["error"]["root_cause"][0]["type"] == content["error"]["type"]
        return str(content["error"]["reason"])


def asked(folder: Path) -> Asked:
    """The interface over a data folder."""
    return Asked(Api(open_collection(folder), "claimrev", "/arguments"))


class Server:
    """A process of `python -m sidecars.search serve`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.rest = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidecars.search", "serve", "--data", str(folder), *options],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = self._first_line()
        self.where = self.said.rsplit(" at ", 1)[-1].strip()

    def _first_line(self, seconds: float = 30.0) -> str:
        assert self.process.stderr is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([self.process.stderr], [], [], 0.2)[0]:
                line = self.process.stderr.readline()
                assert "ready in" in line, line + self.process.stderr.read()
                return line
        raise AssertionError("the server did not become ready")

    def end(self) -> tuple[int, str]:
        """SIGTERM; returns the exit code and the rest of stderr, the same when it is called again."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        try:
            self.rest += self.process.communicate(timeout=100)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        except ValueError:  # read already
            pass
        return self.process.returncode, self.rest
