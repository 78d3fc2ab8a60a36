"""The pages that everybody may see, as files that need no server: asked of the application in this process, linked by relative addresses.

The front makes them from the templates of all pages, without what needs a server (:attr:`runner.web.rules.Visitor.kept`).
"""

from __future__ import annotations

import asyncio
import json
import posixpath
import re
import secrets
import shutil
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

Application = Callable[..., Awaitable[None]]
_TAG = re.compile("<[a-zA-Z][^<>]*>")  # no text has one: what could begin it is escaped everywhere
_LINK = re.compile(r'(?<= )(href|src)="([^"]*)"')  # in a tag; in values quotes are escaped
_API = "/api/v1/"
_PLOT = re.compile("/plots/([0-9a-f]+).json")
_DATA = "application/octet-stream"
_PARTS = ("robots.txt",)  # what no page links to


@dataclass(frozen=True)
class Got:
    """An answer of the front: its media type, whether it is to be saved and not shown, and its content; data that are downloaded lie in
    a ``file`` instead."""

    media: str
    saved: bool
    content: bytes
    file: Path | None = None

    @property
    def is_page(self) -> bool:
        """Whether it is one of the site's pages, which have the ending ``.html`` here."""
        return self.media == "text/html" and not self.saved

    @property
    def links(self) -> list[str]:
        """The links in it that are followed."""
        if not self.is_page and self.media != "application/atom+xml":
            return []
        tags = _TAG.findall(self.content.decode())
        return [unescape(found[2]) for tag in tags for found in _LINK.finditer(tag)]


@dataclass(frozen=True)
class Missing:
    """An address that a page links to and that has no answer."""

    page: str
    link: str
    status: int


def collect(application: Application, host: str, scratch: Path) -> tuple[dict[str, Got], list[Missing]]:
    """What the front answers at ``/``, and at every address of it that a page so found links to, by its path.

    Args:
        application: The front; it knows itself as ``host``.
        host: Goes into the header of that name.
        scratch: A folder in which data that are downloaded are kept until they are written.

    Returns:
        The answers, and the links that lead nowhere.
    """
    found: dict[str, Got] = {}
    missing: list[Missing] = []
    waiting = [("/", "/"), *(("/", f"/{name}") for name in _PARTS)]
    seen = {link for _, link in waiting}
    while waiting:
        page, link = waiting.pop()
        status, got = asyncio.run(_ask(application, host, link, scratch))
        if status != 200:
            missing.append(Missing(page, link, status))
            continue
        path = urlsplit(link).path
        found[path] = got
        for other in map(_own, got.links):
            if other and other not in seen:
                seen.add(other)
                waiting.append((path, other))
    return found, missing


def write(found: dict[str, Got], folder: Path) -> None:
    """Write answers as files into ``folder``, with links that lead from file to file. Raises ValueError for two at one place."""
    places: dict[str, str] = {}
    taken: set[str] = set()
    for path, got in found.items():
        place = place_of(path, got.is_page)
        if place.casefold() in taken:
            raise ValueError(f"two pages are one file: {place}")
        taken.add(place.casefold())
        places[path] = place
    for path, got in found.items():
        content = got.content
        if got.links:
            content = _rewritten(content.decode(), places[path], places).encode()
        target = folder / places[path]
        target.parent.mkdir(parents=True, exist_ok=True)
        if got.file is not None:
            shutil.copyfile(got.file, target)
        else:
            target.write_bytes(content)
        if plot := _PLOT.fullmatch(path):
            target.with_suffix(".js").write_text(_as_script(plot[1], content.decode()), "utf-8")


def _as_script(digest: str, specification: str) -> str:
    """A plot's specification as a script: a page that is opened from a folder can read no other file (``plots.js``)."""
    return f'(self.specifications ??= {{}})["{digest}"] = {json.dumps(specification)};\n'


def place_of(path: str, is_page: bool) -> str:
    """The file for the address ``path`` of the front, relative to the folder; the JSON of a page stands beside it.

    Raises ValueError for an address that would lead elsewhere.
    """
    if path == "/":
        return "index.html"
    name = unquote(path).removeprefix("/")
    if path.startswith(_API):
        name = unquote(path).removeprefix(_API)
        name = "index.json" if name == "tasks" else f"{re.sub('(^|/)boards/', '/', name)}.json"
    elif is_page:
        name += ".html"
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in name.split("/")):
        raise ValueError(f"no place for {path}")
    return name


def _own(link: str) -> str | None:
    """What to ask the front for; None for a link within a page or to elsewhere."""
    at = urlsplit(link)
    if at.scheme or at.netloc or not at.path.startswith("/"):
        return None
    return at.path + (f"?{at.query}" if at.query else "")


def _rewritten(text: str, place: str, places: dict[str, str]) -> str:
    def relative(match: re.Match[str]) -> str:
        at = urlsplit(unescape(match[2]))
        target = places.get(at.path)
        if _own(unescape(match[2])) is None or target is None:
            return match[0]
        other = quote(posixpath.relpath(target, posixpath.dirname(place) or "."))
        return f'{match[1]}="{escape(other + (f"#{at.fragment}" if at.fragment else ""))}"'

    return _TAG.sub(lambda tag: _LINK.sub(relative, tag[0]), text)


async def _ask(application: Application, host: str, link: str, scratch: Path) -> tuple[int, Got]:
    """What the application answers to a GET without anybody's token."""
    at = urlsplit(link)
    scope: MutableMapping[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(at.path),
        "raw_path": at.path.encode(),
        "query_string": at.query.encode(),
        "root_path": "",
        "headers": [(b"host", host.encode())],
        "client": ("127.0.0.1", 0),
        "server": (host, 80),
    }
    head: list[MutableMapping[str, Any]] = []
    content, file = bytearray(), scratch / secrets.token_hex(8)

    asked: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        if not asked:  # nobody goes away while it answers
            await asyncio.Event().wait()
        return asked.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            head.append(message)
        elif _header(head[0], b"content-type") == _DATA:
            with file.open("ab") as kept:
                kept.write(message.get("body", b""))
        else:
            content.extend(message.get("body", b""))

    await application(scope, receive, send)
    media = _header(head[0], b"content-type").partition(";")[0]
    saved = _header(head[0], b"content-disposition").startswith("attachment")
    return int(head[0]["status"]), Got(media, saved, bytes(content), file if file.exists() else None)


def _header(head: MutableMapping[str, Any], name: bytes) -> str:
    headers = {key.lower(): value.decode("latin-1") for key, value in head["headers"]}
    return str(headers.get(name, ""))
