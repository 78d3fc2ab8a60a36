"""Whether the pages in a folder hold together: every link leads to a file or a place in one, nothing is asked of elsewhere."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "manifest"}


@dataclass(frozen=True)
class Broken:
    """A link of a page that does not do: ``page`` relative to the folder, its line, the link, and why."""

    page: str
    line: int
    link: str
    why: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.link}: {self.why}"


@dataclass
class _Page(HTMLParser):
    """What is read of a page: places in it, and its links with their lines and whether a browser fetches them by itself."""

    places: set[str] = field(default_factory=set)
    links: list[tuple[int, str, bool]] = field(default_factory=list)
    posts: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names and links to."""
        given = {name: value or "" for name, value in attrs}
        line = self.getpos()[0]
        self.places |= {given[name] for name in ("id", *(["name"] if tag == "a" else [])) if name in given}
        fetched = tag not in ("a", "area") and (
            tag != "link" or bool(_FETCHED & set(given.get("rel", "").lower().split()))
        )
        for name in ("href", "xlink:href", "src", "poster", "data"):
            if name in given:
                self.links.append((line, given[name], fetched))
        if tag == "form" and given.get("method", "").lower() == "post":
            self.posts.append((line, given.get("action", "")))


def check(folder: Path) -> tuple[int, list[Broken]]:
    """How many pages there are in ``folder``, and what of them does not hold together, by page and line. Raises OSError."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text("utf-8", errors="replace"))
        page.close()
        pages[path.relative_to(folder).as_posix()] = page
    return len(pages), [one for name, page in pages.items() for one in _broken(folder, name, page, pages)]


def _broken(folder: Path, name: str, page: _Page, pages: dict[str, _Page]) -> Iterator[Broken]:
    for line, link, fetched in page.links:
        if why := _why(folder, name, link, fetched, pages):
            yield Broken(name, line, link, why)
    for line, action in page.posts:
        yield Broken(name, line, action, "a form that needs a server")


def _why(folder: Path, name: str, link: str, fetched: bool, pages: dict[str, _Page]) -> str:
    """What is wrong with a link of the page ``name``; empty where nothing is."""
    try:
        at = urlsplit(link)
    except ValueError:
        return "no address"
    if at.scheme or at.netloc:
        return "fetched from elsewhere" if fetched and at.scheme != "data" else ""
    if at.path.startswith("/"):
        return "leads out of the folder"
    target = (
        posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(at.path))) if at.path else name
    )
    if target.startswith("../") or target == "..":
        return "leads out of the folder"
    if "\0" in target or not (folder / target).is_file():
        return "no such file"
    place = unquote(at.fragment)
    if place and place != "top" and target in pages and place not in pages[target].places:
        return "no such place in the page"
    return ""
