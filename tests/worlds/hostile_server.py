"""A server that answers programs with the worst that it can think of, over a real socket."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ID = "d" * 32
RUN = "alpha.one.00000000.dev"
TIME = "2031-05-01T12:00:00Z"
SHA = "e" * 64
_OUTCOME = {
    **{"name": "scored", "says": "", "reason": "", "blame": None, "next": "", "ranked": True},
    **{"costs_quota": True, "verdict": "ok"},
}
ROW: dict[str, Any] = {
    **{"run": RUN, "submission": "alpha.one.00000000", "task": "mini", "team": "alpha", "software": "one"},
    **{"tag": "one", "method": "automatic", "how": "uploaded", "dataset": "dev", "scenario": "default"},
    **{"registered": TIME, "attempts": 1, "started": TIME, "finished": TIME, "outcome": _OUTCOME},
    **{"stale": [], "review": None, "steps": None},
    "resources": {"wall_seconds": 1.0, "cpu_seconds": 1.0, "memory_peak": 5, "memory_source": "none"},
}
ANSWER = {
    **{"schema_version": 1, "id": ID, "team": "alpha", "kind": "run-file", "accepted": True},
    **{"arrival": TIME, "sha256": SHA, "submission": "alpha.one.00000000", "runs": [RUN]},
}
FILE = {"name": "inputs/a.txt", "size": 5, "sha256": SHA, "to": "teams", "open": True}
_SAID = dict.fromkeys(("description", "licence", "terms", "contact", "citation"), "")
DATA = {
    **{"task": "mini", "title": "Mini", "terms": None, "accepted": False, "coming": 0},
    "datasets": [{"id": "dev", **_SAID, "files": [FILE], "elsewhere": []}],
}
REQUEST = {"id": ID, "arrival": TIME, "sha256": SHA, "size": 5, "what": "a file", "answer": ANSWER}


def good(method: str, path: str) -> Any:
    """What a server of ours answers, in short."""
    parts = path.partition("?")[0].removeprefix("/api/v1/").split("/")
    if method == "POST" and parts[-1] in ("withdraw", "choose"):
        return {"request": ID, "arrival": TIME, "at": f"/api/v1/requests/{ID}"}
    if parts[-1] in ("run-files", "softwares"):
        taken = {"request": ID, "arrival": TIME, "sha256": SHA, "size": 5}
        return {**taken, "at": f"/api/v1/requests/{ID}"}
    known = {
        "me": {"role": "team", "team": "alpha", "audience": "team:alpha", "scopes": ["read"]},
        "runs": {"items": [ROW], "next": None},
        "requests": {"items": [REQUEST], "next": None},
        "uploads": {"items": [], "next": None},
        "tasks": {"items": [], "next": None},
        "log": {"stdout": ["x"], "stderr": []},
        "parts": {"sha256": []},
        "data": DATA,
    }
    return known.get(parts[-1], REQUEST if parts[0] == "requests" else ROW)


@dataclass
class Answer:
    """Status, headers and body of an answer; ``raw`` in the place of all three, ``endless`` parts behind them."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    endless: bytes = b""


Making = Callable[[str, str], Answer]


def as_json(change: Callable[[Any], Any]) -> Making:
    """What is good, changed, as JSON."""
    return lambda method, path: Answer(json.dumps(change(good(method, path))).encode())


def always(body: bytes | str = b"", status: int = 200, **headers: str) -> Making:
    """The same to everything."""
    text = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda method, path: Answer(text, status, named)


def every(value: Any) -> Callable[[Any], Any]:
    """Every single value that is neither a list nor a mapping in another one's place."""

    def change(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: change(one) for name, one in data.items()}
        return [change(one) for one in data] if isinstance(data, list) else value

    return change


def replaced(value: Any) -> Callable[[Any], Any]:
    """The value of every key in the first level, and of every entry of a list of entries."""

    def change(data: Any) -> Any:
        if isinstance(data, dict) and "items" in data:
            return {**data, "items": [dict.fromkeys(one, value) for one in data["items"] or [ROW]]}
        return dict.fromkeys(data, value)

    return change


def bomb(size: int = 200_000_000) -> bytes:
    """JSON of so many blanks, compressed."""
    pack, found = zlib.compressobj(9, wbits=31), bytearray()
    for _ in range(size // 1_000_000):
        found += pack.compress(b" " * 1_000_000)
    return bytes(found + pack.flush())


@contextmanager
def hostile(making: Making, asked: list[tuple[str, bytes]] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Its address, and the tokens that it was sent; ``asked`` gets the path and the body of each request."""
    seen: list[str] = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if asked is not None:
                asked.append((self.path, body))
            said = making(self.command, self.path)
            self.close_connection = True
            with suppress(OSError):
                if said.raw is not None:
                    self.wfile.write(said.raw)
                    return
                self.send_response(said.status)
                for name, value in {"Content-Length": str(len(said.body)), **said.headers}.items():
                    if not (said.endless and name == "Content-Length"):
                        self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(said.body)
                while said.endless and self.command != "HEAD" and not over.is_set():
                    self.wfile.write(said.endless)

        do_GET = do_POST = do_PATCH = do_HEAD = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
