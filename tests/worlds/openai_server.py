"""A scripted OpenAI-compatible server. One file of the standard library, which also runs as a process or in an image."""

from __future__ import annotations

import argparse
import json
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODES = {
    "exact": "the text, as it is",
    "wrong-case": "the text in lower case",
    "chatty": "the text once, with words around it",
    "both": "the text, and YES and NO beside it: nothing that a parser can decide",
    "empty": "an empty text",
    "null": "content is null",
    "429-then-good": "429 with Retry-After for the first time that a content is asked, then the text",
    "500-then-good": "500 for the first time that a content is asked, then the text",
    "cut-then-good": "a truncated body for the first time that a content is asked, then the text",
    "always-429": "429 with Retry-After, every time",
    "always-500": "500 with an HTML page, every time",
    "401": "401, as for a wrong key; the message repeats the key that came",
    "400": "400, as for parameters that the model does not know",
    "slow": "the text after `delay` seconds",
    "hang": "never an answer, until the client or the server goes away",
    "close": "the connection is closed without an answer",
    "truncated": "a body that is shorter than its Content-Length",
    "cut-off": "the first words of the text, with finish_reason length",
    "not-json": "status 200 and a page of HTML",
    "wrong-json": "status 200 and JSON without choices",
    "no-usage": "the text, without the count of tokens",
    "huge": "a reply of 16 MiB",
    "redirect": "307 to `location`",
    "stream": "the text as server-sent events, although nobody asked for them",
}


@dataclass
class Request:
    """One request as it arrived. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    json: Any = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.json.get("messages", []) if isinstance(self.json, dict) else []

    @property
    def last(self) -> str:
        """The content of the last message."""
        return str(self.messages[-1].get("content", "")) if self.messages else ""

    @property
    def prompt(self) -> str:
        """All messages' contents, one after the other."""
        return "\n".join(str(message.get("content", "")) for message in self.messages)


@dataclass
class Answer:
    """What is sent. ``cut`` sends only that many bytes of the body and closes the connection."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    type: str = "application/json"


Text = str | Callable[[Request], "str | Answer"]


def completion(request: Request, text: str | None, finish: str = "stop", usage: bool = True) -> Answer:
    """A chat completion in OpenAI's form. Tokens are counted as words."""
    model = request.json.get("model", "") if isinstance(request.json, dict) else ""
    prompt, words = len(request.prompt.split()), len((text or "").split())
    data: dict[str, Any] = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
    }
    if usage:
        data["usage"] = {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words}
    return Answer(json.dumps(data).encode())


def failure(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Answer:
    """An error in OpenAI's form."""
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return Answer(json.dumps(body).encode(), status, headers or {})


class _Quiet(socketserver.BaseServer):
    """Clients that go away are part of the play."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Unix(_Quiet, socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    def get_request(self) -> tuple[Any, Any]:
        connection, _ = super().get_request()
        return connection, ("unix", 0)


class _Tcp(_Quiet, ThreadingHTTPServer):
    pass


class OpenAIServer:
    """The server, with everything it was asked in ``requests``. ``with`` starts and stops it.

    A list of modes (names of :data:`MODES`) is used one per request, the last one for all that follow. ``text`` is the
    good reply, or a function from :class:`Request` to it or to an :class:`Answer`.
    """

    def __init__(
        self,
        mode: str | Sequence[str] = "exact",
        *,
        text: Text = "YES",
        host: str = "127.0.0.1",
        port: int = 0,
        socket: Path | str | None = None,
        models: Sequence[str] = ("test-model",),
        retry_after: str = "0",
        delay: float = 2.0,
        location: str = "http://127.0.0.1:9/",
        record: Path | None = None,
    ) -> None:
        self.modes = [mode] if isinstance(mode, str) else list(mode)
        unknown = [name for name in self.modes if name not in MODES]
        if unknown or not self.modes:
            raise ValueError(f"unknown modes {unknown}; there are: {', '.join(MODES)}")
        self.text, self.models, self.retry_after = text, list(models), retry_after
        self.delay, self.location, self.record = delay, location, record
        self.requests: list[Request] = []
        self.most_at_once = 0
        self._now = 0
        self._seen: set[bytes] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.socket = Path(socket) if socket else None
        handler = type("Handler", (_Handler,), {"owner": self})
        if self.socket:
            self.socket.unlink(missing_ok=True)
            self._server: Any = _Unix(str(self.socket), handler)
            self.socket.chmod(0o666)
            self.base_url = "http://localhost/v1"
        else:
            self._server = _Tcp((host, port), handler)
            self.port = self._server.server_address[1]
            self.base_url = f"http://{host}:{self.port}/v1"

    def __enter__(self) -> OpenAIServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        if self.socket:
            self.socket.unlink(missing_ok=True)

    def serve(self) -> None:
        """Serve until the process ends."""
        self._server.serve_forever()

    @property
    def chats(self) -> list[Request]:
        """The requests that asked a model something."""
        return [request for request in self.requests if request.target.endswith("/chat/completions")]

    def answer(self, request: Request) -> Answer | None:
        """What ``request`` gets; None closes the connection."""
        with self._lock:
            self.requests.append(request)
            if self.record:
                with self.record.open("a") as out:
                    line = {"method": request.method, "target": request.target, "headers": request.headers}
                    out.write(json.dumps({**line, "body": request.body.decode("utf-8", "replace")}) + "\n")
            path = request.target.partition("?")[0]
            if request.method == "GET" and path.endswith("/models"):
                listed = [{"id": model, "object": "model", "owned_by": "test"} for model in self.models]
                return Answer(json.dumps({"object": "list", "data": listed}).encode())
            if request.method != "POST" or not path.endswith("/chat/completions"):
                return failure(404, "not_found", f"nothing is at {path}")
            content = json.dumps(request.json, sort_keys=True).encode()
            again = content in self._seen
            self._seen.add(content)
            mode = self.modes.pop(0) if len(self.modes) > 1 else self.modes[0]
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            return self._answer(mode, request, again)
        finally:
            with self._lock:
                self._now -= 1

    def _answer(self, mode: str, request: Request, again: bool) -> Answer | None:
        if mode in ("hang", "close"):
            if mode == "hang":
                self._ended.wait(600)
            return None
        if mode == "slow":
            self._ended.wait(self.delay)
        if mode == "always-429" or (mode == "429-then-good" and not again):
            return failure(429, "rate_limit_exceeded", "too many requests", {"Retry-After": self.retry_after})
        if mode == "always-500" or (mode == "500-then-good" and not again):
            return Answer(b"<html>Internal Server Error</html>", 500, type="text/html")
        if mode == "401":
            came = request.headers.get("authorization", "")
            return failure(401, "invalid_api_key", f"incorrect key provided: {came}")
        if mode == "400":
            return failure(400, "unsupported_parameter", "max_tokens is not supported with this model")
        if mode == "not-json":
            return Answer(b"<html>Welcome</html>", type="text/html")
        if mode == "wrong-json":
            return Answer(b'{"object":"chat.completion","choices":[]}')
        if mode == "redirect":
            return Answer(b"", 307, {"Location": self.location})
        made = self.text(request) if callable(self.text) else self.text
        if isinstance(made, Answer):
            return made
        return self._spoken(mode, request, made, again)

    def _spoken(self, mode: str, request: Request, text: str, again: bool) -> Answer:
        if mode == "stream":
            chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})
            return Answer(f"data: {chunk}\n\ndata: [DONE]\n\n".encode(), type="text/event-stream")
        said = {
            "wrong-case": text.lower(),
            "chatty": f"I read it with care, and my answer is **{text}**. Tell me if I can help further!",
            "both": f"{text}. It could be YES, and it could be NO.",
            "empty": "",
            "null": None,
            "huge": "x" * (16 << 20),
            "cut-off": " ".join(text.split()[: max(1, len(text.split()) // 2)]),
        }.get(mode, text)
        made = completion(request, said, "length" if mode == "cut-off" else "stop", mode != "no-usage")
        if mode == "truncated" or (mode == "cut-then-good" and not again):
            made.cut = len(made.body) // 2
        return made


class _Handler(BaseHTTPRequestHandler):
    owner: OpenAIServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = False

    def setup(self) -> None:
        super().setup()
        if self.request.family != socket.AF_UNIX:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            parts = []
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _handle(self) -> None:
        body = self._body()
        try:
            data = json.loads(body) if body else None
        except ValueError:
            data = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.owner.answer(Request(self.command, self.path, headers, body, data))
        if answer is None:
            self.close_connection = True
            return
        try:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.type)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])
        except OSError:
            self.close_connection = True
        if answer.cut is not None:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = _handle

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    """The server as a program. Prints one line with its address when it listens."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--socket", help="a Unix socket instead of host and port")
    parser.add_argument("--mode", action="append", choices=list(MODES), help="may be repeated: one a request")
    parser.add_argument("--text", default="YES", help="the good reply")
    parser.add_argument("--echo", action="store_true", help="the good reply is the last message")
    parser.add_argument("--delay", type=float, default=2.0)
    parser.add_argument("--retry-after", default="0")
    parser.add_argument("--record", type=Path, help="a file that gets one JSON line a request")
    given = parser.parse_args()
    server = OpenAIServer(
        given.mode or "exact",
        text=(lambda request: request.last) if given.echo else given.text,
        host=given.host,
        port=given.port,
        socket=given.socket,
        delay=given.delay,
        retry_after=given.retry_after,
        record=given.record,
    )
    print(f"listening {server.socket or server.base_url}", flush=True)
    try:
        server.serve()
    except KeyboardInterrupt:
        sys.stderr.write("ended\n")
        os._exit(0)


if __name__ == "__main__":
    main()
