"""What the web shows of a task beside its facts: its README as a piece of a page, and its dates, also for calendars (iCalendar).

The README is Markdown without HTML: what looks like tags stays words; comments are cut where Markdown has them, so not in code. Pictures are left out, for pages fetch nothing from elsewhere, and so
are links to files beside it, which are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import schemas
from runner.exchange.published import Object

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    from runner.exchange.published import Publisher
    from runner.model.dates import ZonedTime
    from runner.model.task import Task
    from runner.views.overview.facts import Overview

MOST = 256 * 1024  # characters of a README
_ELSEWHERE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_TITLE = re.compile(
    r"\A(?>\s*<!--.*?-->)*\s*# [^\n]*\n", re.DOTALL
)  # the first heading, and comments above it
_FOLD = 73  # bytes of a line of a calendar, without its end
_HOME = 16  # hexadecimal digits that tell publishers apart


@dataclass(frozen=True)
class Entry:
    """A date of a task: ``id`` names it within the task, ``what`` it is in words, ``at`` when."""

    id: str
    what: str
    at: ZonedTime

    def as_dict(self) -> dict[str, str]:
        """For a page: the moment in UTC, and as it was announced."""
        return {"what": self.what, "utc": f"{self.at.at:%Y-%m-%dT%H:%M:%SZ}", "own": self.at.own}


def description(task: Task) -> str:
    """The README of a task as HTML, without its first heading (the page has one); empty where there is none."""
    try:
        text = (task.folder / "README.md").read_text("utf-8", errors="replace")[:MOST]
    except OSError:
        return ""
    return _html(_TITLE.sub("", text))


@lru_cache(maxsize=64)  # it is published to each team
def _html(text: str) -> str:
    """Markdown as HTML."""
    reader = _reader()
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{max(3, min(6, int(token.tag[1]) + 1))}"
        if token.children:
            token.children = list(_links(token.children))
    made = str(reader.renderer.render(tokens, reader.options, {}))
    scroll = '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
    made = made.replace("<table>", scroll).replace("</table>", "</table></div>")
    return made.replace("<pre>", '<pre tabindex="0">')


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    ends = ["paragraph", "reference", "blockquote"]
    reader.block.ruler.before("html_block", "comment", _comment_of_lines, {"alt": ends})
    reader.inline.ruler.before("autolink", "comment", _comment_in_line)
    return reader


def _comment_of_lines(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Cut a comment that begins a line, also over blank lines and, where it is never closed, to the end; what follows it stays."""
    begin = state.bMarks[first] + state.tShift[first]
    if state.is_code_block(first) or not state.src.startswith("<!--", begin):
        return False
    for line in range(first, end):
        place = begin + 2 if line == first else state.bMarks[line]
        found = state.src.find("-->", place, state.eMarks[line])
        if found >= 0:
            break
    follows = found >= 0 and bool(state.src[found + 3 : state.eMarks[line]].strip())
    if follows and line == first:
        return False  # a paragraph with a comment in it
    if not silent:
        state.line = line if follows else line + 1
    if follows and not silent:
        state.bMarks[line], state.tShift[line], state.sCount[line] = found + 3, 0, state.blkIndent
    return True


def _comment_in_line(state: StateInline, silent: bool) -> bool:
    """Cut a comment within a paragraph."""
    if not state.src.startswith("<!--", state.pos):
        return False
    end = state.src.find("-->", state.pos + 2)
    if end < 0:
        return False
    state.pos = end + 3
    return True


def _links(tokens: list[Token]) -> Iterator[Token]:
    """The tokens of a line, with links that lead to other servers; of others the words."""
    left: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            left.append(bool(_ELSEWHERE.match(str(token.attrGet("href") or ""))))
            token.attrSet("rel", "nofollow noopener")
        if token.type in ("link_open", "link_close") and not (
            left[-1] if token.type == "link_open" else left.pop()
        ):
            continue
        yield token


def entries(of: Overview) -> list[Entry]:
    """The dates of a task, in the order in which they come."""
    dates, found = of.dates, list[Entry]()

    def add(id: str, what: str, at: ZonedTime | None) -> None:
        if at is not None:
            found.append(Entry(id, what, at))

    add("opens", "opens", dates.opens)
    add("closes", "closes", dates.closes)
    if dates.registration is not None:
        add("registration/opens", "registration opens", dates.registration.opens)
        add("registration/closes", "registration closes", dates.registration.closes)
    for name, phase in dates.phases.items():
        add(f"dataset/{name}/opens", f"{name} opens", phase.opens)
        add(f"dataset/{name}/closes", f"{name} closes", phase.closes)
    for one in dates.rounds.values():
        add(f"round/{one.id}", f"round: {one.title or one.id}", one.at)
    for name, at in dates.publish.items():
        add(f"dataset/{name}/scores", f"scores on {name} are opened", at)
    return sorted(found, key=lambda one: (one.at.at, one.id))


def objects(of: Overview, to: Publisher, home: str = "") -> tuple[Object, ...]:
    """What is published of it: README and dates for the page, and the dates for calendars (``home`` as in :func:`icalendar`); a task without
    dates has no calendar."""
    data = schemas.canonical({"dates": [one.as_dict() for one in entries(of)]})
    readme, dates = to.keep(description(of.task).encode()), icalendar(of, home).encode()
    about = Object(f"about/{of.task.id}", "about", of.task.title, to.keep(data), readme)
    if not dates:
        return (about,)
    return about, Object(f"calendar/{of.task.id}", "calendar", of.task.title, to.keep(b"{}"), to.keep(dates))


def icalendar(of: Overview, home: str = "") -> str:
    """The dates as a calendar (RFC 5545): each a moment in UTC, with the zone of its announcement in the description.

    ``home`` tells who publishes it from others who have a task of this id: dates of two are two (section 3.8.4.7), such as the key of a server.

    Empty without dates: a calendar holds at least one (section 3.6). DTSTAMP says when task.yaml, where they stand, was last changed (3.8.7.2).
    """
    found = entries(of)
    if not found:
        return ""
    changed = datetime.fromtimestamp((of.task.folder / "task.yaml").stat().st_mtime, UTC)
    place = (
        f"{of.task.id}.{schemas.digest(home)[:_HOME]}.proctor.invalid"
        if home
        else f"{of.task.id}.proctor.invalid"
    )
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Proctor//Task//EN",
        f"X-WR-CALNAME:{_text(of.task.title)}",
    ]
    for one in found:
        lines += [
            "BEGIN:VEVENT",
            f"UID:{one.id}@{place}",
            f"DTSTAMP:{_stamp(changed)}",
            f"DTSTART:{_stamp(one.at.at)}",
            f"DTEND:{_stamp(one.at.at + timedelta(seconds=one.at.seconds))}",
            f"SUMMARY:{_text(f'{of.task.title}: {one.what}')}",
            f"DESCRIPTION:{_text(one.at.own)}",
            "TRANSP:TRANSPARENT",
            "END:VEVENT",
        ]
    return "".join(f"{_folded(line)}\r\n" for line in (*lines, "END:VCALENDAR"))


def _stamp(at: datetime) -> str:
    return f"{at:%Y%m%dT%H%M%SZ}"


def _text(text: str) -> str:
    """A text of a calendar: control characters and line ends are blanks, what has a meaning there is escaped."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    return re.sub(r"([\\;,])", r"\\\1", plain)


def _folded(line: str) -> str:
    """A line in parts of at most 75 bytes, none within a character."""
    parts = [""]
    for one in line:
        if len((parts[-1] + one).encode()) > _FOLD:
            parts.append("")
        parts[-1] += one
    return "\r\n ".join(parts)
