"""A server as programs see it: its API over HTTP, with a token, keeping what entity tags say is still so."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import schemas
from runner.exchange import answers
from runner.exchange.access import Token
from runner.model.errors import CODES, PlatformError, RunnerError

if TYPE_CHECKING:
    import requests

    from runner.exchange.http import Session

ROOT = "/api/v1"
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two parts of an answer
_SHOWN = 300  # characters of what a server says


class Server:
    """The server at ``url``, asked with ``token`` (None: as anybody).

    Args:
        url: Its address, such as ``https://task.example.org``; ``http`` only for this machine.
        token: A token, as the organiser gave it.

    Raises:
        RunnerError: E101 for an address that is none, or would send the token in the clear; E105 for what is no token.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url, here = _address(url)
        if token is not None and Token.read(token) is None:
            why = "A token begins with proctor_ and has 64 characters."
            raise RunnerError("E105", "that is no token", why=why, fix="copy it as the organiser gave it")
        self._token = None if token is None else token.strip()
        self._here = here
        self._known: dict[str, tuple[str, Any]] = {}
        self._lock = threading.Lock()
        self._kept: Session | None = None

    def __repr__(self) -> str:  # no notebook shows the token
        return f"Server({self.url!r})"

    def get(self, *path: str, **query: str | int | list[str]) -> Any:
        """The JSON data at ``/api/v1`` and the parts of ``path``. What has not changed is not sent again.

        Raises:
            RunnerError: What the server says, under its code; E309 where nobody answers, or nobody who speaks so.
        """
        return self._ask(_where(path, query))

    def all(self, *path: str, **query: str | int) -> Iterator[dict[str, Any]]:
        """Every entry of a list, page by page."""
        where, left = _where(path, {"limit": 500, **query}), answers.MOST_ENTRIES
        while where:
            page = self._ask(where, paged=True)
            left -= max(1, len(page["items"]))
            if left < 0:
                raise self._odd("A list does not end.")
            yield from page["items"]
            where = page["next"] or ""
            if where and not where.startswith(f"{ROOT}/"):
                raise self._odd("A page leads to another place.")

    def _ask(self, where: str, *, paged: bool = False) -> Any:
        known = self._known.get(where)
        headers = {**answers.ACCEPT, **({"If-None-Match": known[0]} if known else {})}
        said = self._send(where, headers)
        if said.status_code == 304 and known:
            return known[1]
        try:
            data = answers.data(said, paged=paged and said.status_code == 200)
        except answers.Odd as odd:
            raise self._odd(str(odd)) from None
        if said.status_code != 200:
            raise self._problem(said.status_code, data)
        if tag := said.headers.get("ETag"):
            self._known[where] = (tag, data)
        return data

    def _send(self, where: str, headers: dict[str, str]) -> requests.Response:
        import requests

        with self._lock:
            try:
                return self._session().get(self.url + where, headers=headers, timeout=TIMEOUT, stream=True)
            except requests.RequestException as error:
                why = schemas.show(str(error), _SHOWN)
                fix = "look whether the address is right and the server runs; what it says of itself is at /healthz"
                raise PlatformError(f"{self.url} does not answer", why=why, fix=fix, code="E309") from error

    def _session(self) -> Session:
        from runner.exchange.http import Session

        if self._kept is None:
            self._kept = Session()
            self._kept.trust_env = not self._here  # proxies are not asked for this machine
            self._kept.auth = self._signed  # or a .netrc would take the token's place
        return self._kept

    def _signed(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _problem(self, status: int, data: Any) -> RunnerError:
        if schemas.validate(data, "api-problem", more_keys=True) or data["code"] not in CODES:
            return self._odd(f"It answered {status} without a word that is known here.")
        what, why, fix = (schemas.show(data[name], _SHOWN) for name in ("what", "why", "fix"))
        return RunnerError(data["code"], f"{self.url}: {what}", why=why, fix=fix)

    def _odd(self, why: str) -> RunnerError:
        fix = "give the address of a server of this kind, without a path"
        return PlatformError(f"{self.url} answers in another way", why=why, fix=fix, code="E309")


def _where(path: Sequence[str], query: Mapping[str, str | int | list[str]]) -> str:
    where = "/".join((ROOT, *(quote(part, safe="") for part in path)))
    return f"{where}?{urlencode(query, doseq=True)}" if query else where


def _address(url: str) -> tuple[str, bool]:
    """The address as scheme, host and port, and whether it is this machine's. Raises E101."""
    try:
        at = urlsplit(url.strip())
        host, _ = at.hostname, at.port
    except ValueError:
        at, host = urlsplit(""), None
    if at.scheme not in ("http", "https") or not host or at.username or at.path.strip("/") or at.query:
        what, fix = f"no address of a server: {schemas.show(url, 100)}", "such as https://task.example.org"
        raise RunnerError("E101", what, fix=fix)
    here = _is_loopback(host)
    if at.scheme == "http" and not here:
        what, why = (
            f"{schemas.show(url, 100)} is not encrypted",
            "Tokens and scores would be open to everybody on the way.",
        )
        raise RunnerError("E101", what, why=why, fix="use https://")
    return f"{at.scheme}://{at.netloc}", here


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
