"""The front on another machine, as work calls it: over HTTPS, bounded, and believed in nothing.

Answers are read to a bound and never unpacked, redirects are not followed, and nothing that comes names a file of ours: where
it goes is decided by :mod:`runner.work.link`. Certificates are those that the system or ``REQUESTS_CA_BUNDLE`` trusts, a
proxy that of ``HTTPS_PROXY``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from runner.exchange.link import Key
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    import requests

    from runner.exchange.http import Session

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_ANSWER = 1024 * 1024  # bytes of an answer in JSON
SLICE = (
    4 * 1024 * 1024
)  # bytes of a request that are fetched in one go; between two the link does everything else
TIMEOUT = (10.0, 30.0)  # seconds to connect, and without a byte
_PART = 256 * 1024


class LinkDown(Exception):
    """The front cannot be reached, or does not do what a front does; the text says why."""


def check_front(url: str) -> str:
    """The address of a front, without its path. Raises E101 where it could not prove itself: not by TLS, not on this machine."""
    at = urlsplit(url)
    if at.scheme not in ("http", "https") or not at.hostname:
        raise RunnerError("E101", f"{url!r} is no address", fix="such as --front https://task.example.org")
    if at.scheme == "http" and at.hostname not in LOOPBACK:
        why = "Without TLS somebody in between could be the front."
        raise RunnerError("E101", f"{url} has no TLS", why=why, fix=f"--front https://{at.netloc}")
    return f"{at.scheme}://{at.netloc}"


class Front:
    """One front at a time. ``stopped`` says whether to give up in the middle of something."""

    def __init__(self, url: str, key: Key, stopped: Callable[[], bool] = lambda: False) -> None:
        self.url, self._key, self.stopped = check_front(url), key, stopped
        self._http: Session | None = None

    def drop(self) -> None:
        """Begin anew with the next call."""
        if self._http is not None:
            self._http.close()
        self._http = None

    @property
    def known(self) -> bool:
        """Whether it has let us in, and nothing went wrong since."""
        return self._http is not None

    def enter(self) -> None:
        """Prove that we are work, unless that was done. Raises LinkDown."""
        if self._http is not None:
            return
        from runner.exchange.http import Session

        self._http = Session()
        self._http.headers["Accept-Encoding"] = "identity"
        self._http.auth = _as_it_is  # so that no .netrc is asked
        try:
            nonce = str(self.ask("GET", "hello").get("nonce", ""))
            signed = {"nonce": nonce, "signature": self._key.sign(self.url, nonce)}
            session = str(self.ask("POST", "hello", signed).get("session", ""))
            self._http.headers["Authorization"] = f"Exchange {session}"
        except (LinkDown, ValueError) as error:
            self.drop()
            raise LinkDown(str(error)) from None

    def ask(self, method: str, what: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that it answers. Raises LinkDown."""
        body = None if data is None else json.dumps(data).encode()
        with closing(self._call(method, what, body)) as answer:
            found = self._read(answer, MOST_ANSWER)
        try:
            said = json.loads(found)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise LinkDown(f"its answer to {what} is no JSON object")
        return said

    def send(self, name: str, digest: str, file: BinaryIO) -> None:
        """Send something published. Raises LinkDown, also when it is not taken."""
        with closing(self._call("POST", f"published/{name}?sha256={digest}", file)) as answer:
            self._read(answer, MOST_ANSWER)

    def fetch(self, entry: str, name: str, size: int, into: BinaryIO) -> None:
        """Add to a file what it has not yet of a request's file of ``size`` bytes, at most :data:`SLICE` of it.

        Raises LinkDown, OSError of our disk.
        """
        have = into.seek(0, 2)
        until = min(size, have + SLICE)
        ranged = {"Range": f"bytes={have}-{until - 1}"}
        with closing(self._call("GET", f"inbox/{entry}/{name}", None, ranged)) as answer:
            if not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                into.truncate(0)
                have = 0
            while have < until and (part := self._part(answer, min(_PART, until - have))):
                into.write(part)
                have += len(part)
        if have < until:
            raise LinkDown(f"{name} of a request ended early")

    def _read(self, answer: requests.Response, most: int) -> bytes:
        found = bytearray()
        while part := self._part(answer, _PART):
            found += part
            if len(found) > most:
                raise LinkDown(f"an answer has more than {most} bytes")
        return bytes(found)

    def _part(self, answer: requests.Response, most: int) -> bytes:
        """The next bytes of an answer, packed as they came; none at its end."""
        import urllib3

        if self.stopped():
            raise LinkDown("work ends")
        try:
            return bytes(answer.raw.read1(most, decode_content=False))
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise LinkDown(f"the connection broke: {error}") from None

    def _call(
        self, method: str, what: str, body: bytes | BinaryIO | None, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        import requests

        assert self._http is not None, "enter() comes first"
        try:
            answer = self._http.request(
                method,
                f"{self.url}/exchange/{what}",
                data=body,
                headers=dict(headers or {}),
                stream=True,
                timeout=TIMEOUT,
            )
        except (requests.RequestException, OSError, ValueError) as error:
            raise LinkDown(f"{self.url}: {error}") from None
        if answer.status_code not in (200, 206):
            with closing(answer):
                raise LinkDown(self._refused(what, answer))
        return answer

    def _refused(self, what: str, answer: requests.Response) -> str:
        said = ""
        if answer.headers.get("Content-Type") == "application/json":
            said = self._read(answer, MOST_ANSWER)[:300].decode("utf-8", "replace")
        if what == "hello" and answer.status_code in (403, 404):
            why = {404: "it knows no key of work", 403: "it has another key, or goes by another address"}
            return f"{why[answer.status_code]}: runner front --url {self.url} --work-key {self._key.public}"
        return f"it answers {answer.status_code} to {what.split('?')[0]} {said}".rstrip()


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
