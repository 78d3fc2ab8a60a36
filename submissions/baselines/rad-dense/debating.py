"""What a debating system needs beside its wits: the server of sub-task 1, and a client of the argument index.

``serve(answer)`` calls ``answer(messages)`` for every turn: the whole dialogue so far, oldest first, as objects with
``role`` ("user" for whom we debate with, "assistant" for us) and ``content``. It returns what to say and the
arguments of the collection that this rests on. Nothing is remembered between two calls: debates are held at the same
time, and nothing in a request says which one it belongs to. Plain Python, nothing to install.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_BODY = 4 << 20
WORDS = 60
CONCEDE = "I have found no argument against that, so I leave the point to you."
Row = dict[str, Any]
Answer = Callable[[Sequence[Mapping[str, str]]], "tuple[str, list[Row]]"]


def search(request: Mapping[str, Any]) -> list[Row]:
    """The arguments that answer a request in Elasticsearch's language, best first, with ``id`` and ``score``."""
    base = os.environ.get("ARGUMENTS_URL", "http://127.0.0.1:9200/arguments").rstrip("/")
    address = f"{base}/{os.environ.get('ARGUMENTS_INDEX', 'claimrev')}/_search"
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(address, json.dumps(request).encode(), headers)  # noqa: S310
    # Without the system's proxies: the index is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=20) as response:
        hits = json.load(response)["hits"]["hits"]
    return [
        {**hit["_source"], "id": hit["_id"], "key": key, "score": hit["_score"]}
        for key, hit in enumerate(hits, start=1)
    ]


def shortened(text: str, limit: int = WORDS) -> str:
    """A text's first sentences that have at most ``limit`` words together; a longer first sentence is cut."""
    words = text.split()
    if len(words) <= limit:
        return text
    ends = [n for n in range(1, limit + 1) if words[n - 1].rstrip("\"')").endswith((".", "!", "?"))]
    return " ".join(words[: ends[-1] if ends else limit])


def serve(answer: Answer) -> None:
    """Answer at $PORT (8080) until somebody stops it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > MAX_BODY:
                self.close_connection = True
                return self.say(413, {"error": "a body of known length, please, and not too long"})
            try:
                messages = json.loads(self.rfile.read(int(length)))["messages"]
                well = messages[-1]["role"] == "user" and all(isinstance(m["content"], str) for m in messages)
            except (ValueError, LookupError, TypeError):
                well = False
            if not well:
                return self.say(400, {"error": "messages, please, the last of them by the user"})
            try:
                content, arguments = answer(messages)
            except OSError as error:
                print(f"the index did not answer: {error}", file=sys.stderr, flush=True)
                return self.say(503, {"error": "the index did not answer"})
            self.say(200, {"content": content, "arguments": arguments})

        def say(self, status: int, data: Row) -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, form: str, *values: Any) -> None:
            """Say nothing: the log is short."""

    # Whoever asks comes from this container's loopback in the graded room, and from outside elsewhere.
    with ThreadingHTTPServer(("0.0.0.0", int(os.environ.get("PORT", "8080"))), Handler) as server:  # noqa: S104
        print(f"listening on {server.server_address[1]}", file=sys.stderr, flush=True)
        server.serve_forever()
