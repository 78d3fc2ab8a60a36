"""A run as one HTML page: no script, nothing loaded from elsewhere, every text escaped.

The page's policy allows its own style sheet by its hash and nothing else, so that words of a participant that slipped
through would still be only words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from runner.views.redact import RunView
from runner.views.show import page_debates, page_reports
from runner.views.show.debates import Debates
from runner.views.show.markup import h, table
from runner.views.show.reports import Reports
from runner.views.show.style import STYLE, policy

MAX_INSIDE = 8_000_000  # characters of debates or reports: what browsers still open at once


def page(
    view: RunView,
    debates: Debates | None = None,
    reports: Reports | None = None,
    wanted: Collection[int] | None = None,
) -> str:
    """One self-contained page of a run, with its debates or reports where its audience may see them.

    ``wanted``: the numbers of those that are to be on it; None for all of them. It says so when not all have room.
    """
    return "\n".join(_page(view, debates, reports, wanted)) + "\n"


def _page(
    view: RunView, debates: Debates | None, reports: Reports | None, wanted: Collection[int] | None
) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{h(policy())}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield '<meta name="robots" content="noindex">'
    yield f"<title>{h(view['run'])}</title>"
    yield f"<style>{STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#main">To scores and contents</a>'
    yield "<header>"
    yield f"<h1>{h(view['run'])}</h1>"
    yield from _facts(view)
    yield "</header>"
    yield '<main id="main">'
    yield from _scores(view)
    yield from _findings(view)
    if debates is not None:
        yield from page_debates.sections(debates, wanted, MAX_INSIDE)
    if reports is not None:
        yield from page_reports.sections(reports, wanted, MAX_INSIDE)
    yield from _logs(view)
    yield "</main>"
    yield "<footer>"
    hidden = f" Not shown: {', '.join(view['hidden'])}." if view["hidden"] else ""
    yield f"<p>The run as {h(view.audience)} may see it.{h(hidden)}</p>"
    yield "</footer>"
    yield "</body>"
    yield "</html>"


def _facts(view: RunView) -> Iterator[str]:
    outcome, verdict, used = view["outcome"], view["verdict"], view["resources"]
    facts: dict[str, Any] = {
        "task": view["task"],
        "dataset": view["dataset"],
        "team": view["team"],
        "software": view["software"],
        "outcome": f"{outcome['name']} – {outcome['says']}" if outcome["says"] else outcome["name"],
        "why": outcome["reason"],
        "what next": outcome["next"],
        "verdict": f"{verdict['name']} – {verdict['says']} {verdict['detail']}" if verdict else "",
        "warnings": "; ".join(verdict["warnings"]) if verdict else "",
        "started": view["started"],
        "time": "" if used["wall_seconds"] is None else f"{used['wall_seconds']:.1f} s",
        "memory": "" if used["memory_peak"] is None else f"{used['memory_peak'] / 2**20:.0f} MiB",
        **(view["steps"] or {}),
        "description": view["description"],
    }
    yield '<dl class="facts">'
    for name, value in facts.items():
        if value:
            yield f'<dt>{h(name)}</dt><dd dir="auto">{h(value)}</dd>'
    yield "</dl>"


def _scores(view: RunView) -> Iterator[str]:
    if not view["scores"] and not view["pending"]:
        return
    yield "<h2>Scores</h2>"
    rows = []
    for name, score in view["scores"].items():
        interval = score["interval"]
        bounds = f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval else ""
        topics = f"{score['covered']} of {score['topics']}"
        rows.append((name, score.get("measure") or "", f"{score['value']:.4f}", bounds, topics))
    rows += [(name, "", "–", "", why) for name, why in view["pending"].items()]
    heads = ("measure", "computed", "mean", "95 % interval", "topics answered")
    yield from table("Means over topics", heads, rows, number=(2,))
    for line in view["stale"]:
        yield f"<p><strong>Stale: {h(line)}</strong></p>"
    judge = view["judge"]
    if judge:
        facts = [str(judge["name"])]
        facts += [f"model {judge['model']}"] if judge.get("model") else []
        facts += [f"prompts {judge['prompts'].removeprefix('sha256:')[:12]}"] if judge.get("prompts") else []
        facts += [f"{name} {value:.4g}" for name, value in (judge.get("reliability") or {}).items()]
        note = f". {judge['note']}" if judge.get("note") else ""
        yield f"<p>Judged by: {h(', '.join(facts) + note)}</p>"
    for note in view["notes"]:
        yield f"<p>Note: {h(note)}</p>"


def _findings(view: RunView) -> Iterator[str]:
    findings = view["findings"]
    if not findings["codes"]:
        return
    yield "<h2>Findings</h2>"
    rows = [
        (code, f["severity"], f["amount"] if f["count"] is None else f"{f['count']:,}", f["title"])
        for code, f in findings["codes"].items()
    ]
    yield from table("What is wrong in the output", ("code", "severity", "count", "what"), rows, number=(2,))
    if findings["lines"]:
        yield f"<details><summary>{len(findings['lines']):,} findings with their places</summary>"
        yield "<ul>"
        for line in findings["lines"]:
            place = line.get("file", "") + (f":{line['line']}" if line.get("line") else "")
            yield f'<li dir="auto">{h(place)}: {h(line["code"])} {h(line["severity"])}: {h(line["message"])}</li>'
        yield "</ul></details>"


def _logs(view: RunView) -> Iterator[str]:
    for stream, lines in view["log"].items():
        if lines:
            yield f"<h2>Last lines of {h(stream)}</h2>"
            joined = "\n".join(lines)
            yield f'<pre tabindex="0">{h(joined)}</pre>'
