"""A few calls of the Docker Engine API over the standard library: what setup needs before an engine is there.

Everything that runs containers goes through :mod:`runner.engines`. This module only asks whether an engine
answers, looks at images without ever pulling them by accident, pulls a base image, and imports one.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from runner.model.errors import PlatformError

_ANSWER_CAP = 16 * 1024 * 1024


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(host: str, timeout: float) -> http.client.HTTPConnection:
    """A connection to ``host`` (``unix://`` or ``tcp://``). Raises ValueError for other schemes."""
    parts = urlsplit(host)
    if parts.scheme == "unix":
        return _UnixConnection(parts.path, timeout)
    if parts.scheme in ("tcp", "http", "https") and parts.hostname:
        certificates = os.environ.get("DOCKER_CERT_PATH")
        if os.environ.get("DOCKER_TLS_VERIFY") or parts.scheme == "https":
            folder = Path(certificates) if certificates else Path.home() / ".docker"
            context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
            context.load_cert_chain(str(folder / "cert.pem"), str(folder / "key.pem"))
            return http.client.HTTPSConnection(
                parts.hostname, parts.port or 2376, timeout=timeout, context=context
            )
        return http.client.HTTPConnection(parts.hostname, parts.port or 2375, timeout=timeout)
    raise ValueError(f"{host!r} is neither unix:// nor tcp://")


def answers(host: str, timeout: float = 3.0) -> bool:
    """Whether an engine answers at ``host`` within ``timeout`` seconds. Never raises."""
    try:
        connection = _connection(host, timeout)
        try:
            connection.request("GET", "/_ping")
            return connection.getresponse().status == 200
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError):
        return False


def get(host: str, path: str, timeout: float = 20.0) -> dict[str, Any] | None:
    """The JSON object at ``path``, None when the engine says 404. Raises PlatformError otherwise."""
    answer = _ask(host, path, timeout)
    if answer is not None and not isinstance(answer, dict):
        raise PlatformError("the container engine gave a strange answer", why=f"GET {path}: not an object")
    return answer


def get_list(host: str, path: str, timeout: float = 20.0) -> list[Any]:
    """The JSON list at ``path``. Raises PlatformError."""
    answer = _ask(host, path, timeout)
    if not isinstance(answer, list):
        raise PlatformError("the container engine gave a strange answer", why=f"GET {path}: not a list")
    return answer


def _ask(host: str, path: str, timeout: float) -> Any:
    """The parsed answer to a GET, None for 404."""
    try:
        connection = _connection(host, timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read(_ANSWER_CAP)
        finally:
            connection.close()
        if response.status == 404:
            return None
        answer = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise PlatformError(
            "the container engine does not answer",
            why=f"GET {path} at {host}: {error}",
            fix="run `make setup` (or `runner doctor` to see what is wrong)",
            code="E301",
        ) from error
    if response.status != 200:
        raise PlatformError(
            "the container engine refused a question", why=f"GET {path}: HTTP {response.status}"
        )
    return answer


def image(host: str, name: str) -> dict[str, Any] | None:
    """What the engine knows about an image that it has; None when it does not have it. Never pulls."""
    return get(host, f"/images/{quote(name, safe='/:@')}/json")


def _stream(
    host: str,
    path: str,
    *,
    body: Iterable[bytes] | IO[bytes] | None,
    headers: Mapping[str, str],
    silence: float,
    on_line: Callable[[str], None] | None = None,
) -> None:
    """POST and read the engine's progress lines. Raises PlatformError with the engine's own error text."""
    try:
        connection = _connection(host, silence)
        try:
            connection.request(
                "POST", path, body=body, headers=dict(headers), encode_chunked=body is not None
            )
            response = connection.getresponse()
            if response.status != 200:
                raise PlatformError(
                    "the container engine refused an image",
                    why=response.read(2000).decode("utf-8", "replace").strip(),
                )
            while line := response.readline(1024 * 1024):
                note = json.loads(line) if line.strip() else {}
                if not isinstance(note, dict):
                    continue
                if "error" in note:
                    raise PlatformError(
                        "the container engine could not get the image", why=str(note["error"])[:500]
                    )
                if on_line is not None and note.get("status"):
                    on_line(str(note["status"]))
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise PlatformError("the container engine broke off", why=f"{path.split('?')[0]}: {error}") from error


def pull(host: str, name: str, tag: str, *, silence: float) -> None:
    """Pull an image; give up when the engine says nothing for ``silence`` seconds. Raises PlatformError."""
    _stream(
        host,
        "/images/create?" + urlencode({"fromImage": name, "tag": tag}),
        body=None,
        headers={},
        silence=silence,
    )


def import_image(
    host: str, archive: Path, name: str, tag: str, changes: Iterable[str], *, silence: float
) -> None:
    """Make an image of one layer from a tar archive of a root file system. Raises PlatformError."""
    query = urlencode([("fromSrc", "-"), ("repo", name), ("tag", tag), *(("changes", c) for c in changes)])
    with archive.open("rb") as stream:
        _stream(
            host,
            "/images/create?" + query,
            body=stream,
            headers={"Content-Type": "application/x-tar", "Transfer-Encoding": "chunked"},
            silence=silence,
        )
