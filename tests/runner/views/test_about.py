"""What the web shows of a task beside its facts: hostile READMEs stay words, and dates are those of the task."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from icalendar import Calendar

from runner.exchange.published import Published, Publisher
from runner.exchange.receipts import KEY, Signer, publish_key
from runner.records.store.connect import open_store
from runner.tasks.load import load_tasks
from runner.views.overview.about import description, entries, icalendar, objects
from runner.views.overview.facts import overview
from runner.work.publishing import Desk
from tests.worlds.mini import TASK, Project
from tests.worlds.site import serving

TITLE = "Final, at last; really"
DATES: dict[str, Any] = {
    "opens": "2031-01-01 00:00 UTC",
    "closes": "2031-05-01 23:59 AoE",
    "registration": {"closes": "2031-03-01 12:00 CET"},
    "rounds": [{"id": "final", "at": "2031-05-01 23:59 AoE", "title": TITLE}],
}
DEV, TEST = TASK["datasets"]
GOOD = """# Mini

Find *documents*. See [the paper](https://example.org/x?a=1&b=2) and [a file](datasets/x.txt).

## Data

| set | size |
| --- | --- |
| dev | 4 |

```
runner try
```
"""


def said(project: Project, text: str, **changes: Any) -> str:
    folder = project.write_task(**changes)
    (folder / "README.md").write_text(text)
    return description(load_tasks(project.config)[0]["mini"])


def test_a_readme_is_shown_below_the_pages_own_headings(project: Project) -> None:
    text = said(project, GOOD)
    assert "<em>documents</em>" in text and "<h3>Data</h3>" in text
    assert "<h1" not in text and "<h2" not in text
    assert '<a href="https://example.org/x?a=1&amp;b=2" rel="nofollow noopener">the paper</a>' in text
    assert "a file" in text and "datasets/x.txt" not in text, "what is not there is no link"
    assert 'role="region"' in text and '<pre tabindex="0"><code>runner try' in text
    (project.config.tasks / "mini/README.md").unlink()
    assert description(load_tasks(project.config)[0]["mini"]) == ""


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "![x](https://evil.example/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](//evil.example)",
        '[x](https://a.example/"onmouseover="alert(1))',
        "<https://a.example/<script>>",
        "```\n</code></pre><script>alert(1)</script>\n```",
        "|a|\n|-|\n|<svg onload=alert(1)>|",
        "# <iframe src=//evil.example>",
        "[a [b](javascript:x)](https://a.example)",
        "[x]: javascript:alert(1)\n\n[x]",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_hostile_text_stays_words(project: Project, evil: str) -> None:
    text = said(project, f"words\n\n{evil}\n")
    tags = re.findall(r"<[^>]*>", text)
    known = r"</?(?:p|em|strong|code|pre(?: tabindex=\"0\")?|h[3-6]|ul|ol|li|a|table|thead|tbody|tr|th|td|div|blockquote)(?: [^<>]*)?>"
    assert all(re.fullmatch(known, tag) for tag in tags), tags
    assert not re.search(r"<[^>]*\son\w+=|<[^>]*javascript:|<script|<img|<svg|<iframe", text, re.IGNORECASE)
    assert all(
        href.startswith(("https://", "http://", "mailto:")) for href in re.findall(r'href="([^"]*)', text)
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <!-- note --> b", "<p>a  b</p>"),
        ("<!-- note --> b", "<p> b</p>"),
        ("a\n<!-- note\n\nnote --> b\n\nc", "<p>a</p>\n<p>b</p>\n<p>c</p>"),
        ("a <!-- note\nnote --> b", "<p>a  b</p>"),
        ("a\n<!-- note\n\n# note\n\n```\nnote\n-->\nb", "<p>a</p>\n<p>b</p>"),
        ("<!--\nnote\n\n- note --> *b*", "<p><em>b</em></p>"),
        ("## a <!-- note -->\n<!---->\n<!-- note -->", "<h3>a </h3>"),
        ("- a\n  <!-- note\n\n  note -->\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("> a\n> <!-- note\n> note -->", "<blockquote>\n<p>a</p>\n</blockquote>"),
        ("a\n\n<!-- note\n\nnote, to the end", "<p>a</p>"),
        ("<!-- note -->\n\n# Mini\n\na", "<p>a</p>"),
        ("<!-- note --> a <!-- note -->\n# b", "<p> a </p>\n<h3>b</h3>"),
        ("`<!-- code -->`", "<p><code>&lt;!-- code --&gt;</code></p>"),
        ("```\n<!-- code\n-->\n```", '<pre tabindex="0"><code>&lt;!-- code\n--&gt;\n</code></pre>'),
        ("    <!-- code -->", '<pre tabindex="0"><code>&lt;!-- code --&gt;\n</code></pre>'),
        ("1 <!-- 2", "<p>1 &lt;!-- 2</p>"),
    ],
)
def test_comments_are_cut_and_code_keeps_them(project: Project, text: str, left: str) -> None:
    assert said(project, text).strip() == left


def test_the_calendar_has_every_date_at_its_moment(project: Project) -> None:
    project.write_task(title="Mini, the; task", **DATES)
    of = overview(load_tasks(project.config)[0]["mini"])
    dates = [DATES["opens"], DATES["registration"]["closes"], DATES["closes"], DATES["rounds"][0]["at"]]
    assert [one.at.own for one in entries(of)] == dates and entries(of)[-1].what.endswith(TITLE)
    text = icalendar(of)
    lines = text.split("\r\n")
    assert lines[0] == "BEGIN:VCALENDAR" and lines[-2:] == ["END:VCALENDAR", ""]
    assert "\n" not in text.replace("\r\n", "") and all(len(line.encode()) <= 75 for line in lines)
    whole = text.replace("\r\n ", "")
    starts = ["20310101T000000Z", "20310301T110000Z", "20310502T115900Z", "20310502T115900Z"]
    assert re.findall("DTSTART:(.*)\r", whole) == starts
    assert r"SUMMARY:Mini\, the\; task: " in whole and r"Final\, at last\; really" in whole
    assert len(set(re.findall("UID:(.*)\r", whole))) == 4
    long = overview(load_tasks(project.config)[0]["mini"])
    assert icalendar(long) == text, "the same dates are the same file"


def test_a_kept_reader_of_calendars_finds_each_date_once(project: Project) -> None:
    """A dataset may be called as anything else is; every UID is one date's, and DTSTAMP is the time of the last change."""
    datasets = [
        {**DEV, "id": "registration", "opens": "2031-01-02 00:00 UTC"},
        {**DEV, "id": "round-final", "opens": "2031-01-03 00:00 UTC"},
        {**TEST, "publish_at": "2031-06-01 12:00 CEST"},
    ]
    opens = {"opens": "2031-01-01 00:00 UTC", "closes": "2031-03-01 12:00 CET"}
    rounds = [
        {"id": "final-opens", "at": "2031-04-01 00:00 UTC"},
        {"id": "final", "at": "2031-05-01 23:59 AoE"},
    ]
    folder = project.write_task(**{**DATES, "registration": opens, "rounds": rounds, "datasets": datasets})
    changed = datetime(2030, 12, 24, 18, 0, 7, tzinfo=UTC)
    os.utime(folder / "task.yaml", (changed.timestamp(), changed.timestamp() + 0.5))
    of = overview(load_tasks(project.config)[0]["mini"])
    found = Calendar.from_ical(icalendar(of))
    assert isinstance(found, Calendar) and not found.errors
    events = found.events
    assert len({one.uid for one in events}) == len(events) == len(entries(of)) == 9
    assert {one.DTSTAMP for one in events} == {changed}
    assert [(one.start, one["SUMMARY"]) for one in events] == [
        (one.at.at, f"{of.task.title}: {one.what}") for one in entries(of)
    ]
    elsewhere = Calendar.from_ical(icalendar(of, "https://task.example.org"))
    assert not {one.uid for one in events} & {one.uid for one in elsewhere.events}, (
        "of another server with this task"
    )
    assert not [one for one in events if one.errors or any(not one.get(key) for key in one.required)]


def test_a_task_without_dates_has_no_calendar(project: Project) -> None:
    """RFC 5545 knows none without anything in it (section 3.6)."""
    project.write_task()
    of = overview(load_tasks(project.config)[0]["mini"])
    assert icalendar(of) == ""
    assert [one.kind for one in objects(of, Publisher(project.config.published))] == ["about"]


def test_the_page_has_description_dates_and_commands_to_copy(project: Project) -> None:
    said(project, GOOD + "\n<script>alert(1)</script>\n", **{**DATES, "opens": "2021-01-01 00:00 UTC"})
    with open_store(project.config) as store:
        to = Publisher(project.config.published)
        publish_key(project.config.published, signer := Signer.load(project.home / KEY))
        Desk(store, load_tasks(project.config)[0], to, pytest.fail).publish(["alpha"])
        to.alive()
    assert Published(project.config.published).view("public").get("about/mini") is not None
    with (
        serving(project.config.exchange, project.home / "front") as url,
        httpx2.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        page, file = client.get("/tasks/mini").text, client.get("/tasks/mini/calendar.ics")
    assert "<h3>Data</h3>" in page and "&lt;script&gt;alert(1)" in page and "<script>" not in page
    assert "2031-05-01 23:59 AoE" in page and "2 May 2031, 11:59 UTC" in page and "in " in page
    assert f"runner login {url} --name mini" in page and "--to mini" in page
    assert (file.status_code, file.headers["content-type"]) == (200, "text/calendar; charset=utf-8")
    of = overview(load_tasks(project.config)[0]["mini"])
    assert file.text == icalendar(of, signer.public), "each server has its own"
    assert "SUMMARY:" in file.text and "last-modified" not in file.headers
