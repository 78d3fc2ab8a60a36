"""A run as one HTML page: no script, nothing loaded from elsewhere, every text escaped.

The page's policy allows its own style sheet by its hash and nothing else, so that words of a participant that slipped
through would still be only words.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.audience import RunView
from runner.show import text
from runner.show.debates import Argument, Debate, Debates, Turn
from runner.show.reports import Judgment, Report, Reports, Sentence

_STYLE = """
:root { color-scheme: light dark; --line: #8887; --soft: #8882; --bad: #b3261e; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9d94; --good: #7fd8a2; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; }
a { color: LinkText; }
a.skip { position: absolute; left: -100rem; }
a.skip:focus { position: static; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
h4 { font-size: 1rem; margin: 1rem 0 .25rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; }
dl.facts dt { font-weight: 600; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.number { text-align: right; }
.said { white-space: pre-line; overflow-wrap: anywhere; margin: .4rem 0; padding: .5rem .8rem; border-radius: .4rem; }
.user { background: var(--soft); margin-right: 12%; }
.system { border: 1px solid var(--line); margin-left: 12%; }
.claim { white-space: pre-line; overflow-wrap: anywhere; font-style: italic; }
.who { font-weight: 600; font-size: .85rem; display: block; }
.about { font-size: .85rem; margin: .2rem 0; overflow-wrap: anywhere; }
.system + .about, .failed + .about, .about + details, details.arguments { margin-left: 12%; }
.failed { border: 2px solid var(--bad); margin-left: 12%; }
.bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); font-weight: 600; }
details > summary { cursor: pointer; }
details li { margin: .4rem 0; overflow-wrap: anywhere; }
li .words { white-space: pre-line; }
ol.sentences > li { margin: .9rem 0; padding: .3rem .6rem; border-left: 4px solid var(--line); overflow-wrap: anywhere; }
ol.sentences > li.reward { border-left-color: var(--good); }
ol.sentences > li.penalty { border-left-color: var(--bad); }
ul.plain { list-style: none; padding-left: .5rem; margin: .2rem 0; font-size: .9rem; }
pre { overflow-x: auto; background: var(--soft); padding: .5rem; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { body { max-width: none; } .system, .user, li { break-inside: avoid; } nav { display: none; } }
"""
_SIGNS = {"reward": "reward", "penalty": "penalty", "none": "no effect"}


def page(view: RunView, debates: Debates | None = None, reports: Reports | None = None) -> str:
    """One self-contained page of a run, with its debates or reports where its audience may see them."""
    return "\n".join(_page(view, debates, reports)) + "\n"


def policy() -> str:
    """The page's content security policy."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _page(view: RunView, debates: Debates | None, reports: Reports | None) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_h(policy())}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield '<meta name="robots" content="noindex">'
    yield f"<title>{_h(view['run'])}</title>"
    yield f"<style>{_STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#main">To the run</a>'
    yield '<main id="main">'
    yield f"<h1>{_h(view['run'])}</h1>"
    yield from _facts(view)
    yield from _scores(view)
    yield from _findings(view)
    if debates is not None:
        yield from _debates(debates)
    if reports is not None:
        yield from _reports(reports)
    yield from _logs(view)
    if view["hidden"]:
        yield f"<p>Not shown to {_h(view.audience)}: {_h(', '.join(view['hidden']))}.</p>"
    yield "</main>"
    yield "</body>"
    yield "</html>"


# -- the run --------------------------------------------------------------------------------------------------


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
        "description": view["description"],
    }
    yield '<dl class="facts">'
    for name, value in facts.items():
        if value:
            yield f'<dt>{_h(name)}</dt><dd dir="auto">{_h(value)}</dd>'
    yield "</dl>"


def _scores(view: RunView) -> Iterator[str]:
    if not view["scores"] and not view["pending"]:
        return
    yield "<h2>Scores</h2>"
    rows = []
    for name, score in view["scores"].items():
        interval = score["interval"]
        bounds = f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval else ""
        rows.append((name, f"{score['value']:.4f}", bounds, f"{score['covered']} of {score['topics']}"))
    rows += [(name, "–", "", why) for name, why in view["pending"].items()]
    yield from _table(
        "Means over topics", ("measure", "mean", "95 % interval", "topics answered"), rows, number=(1,)
    )
    judge = view["judge"]
    if judge:
        facts = [str(judge["name"])]
        facts += [f"model {judge['model']}"] if judge.get("model") else []
        facts += [f"prompts {judge['prompts'][:12]}"] if judge.get("prompts") else []
        facts += [f"{name} {value:.4g}" for name, value in (judge.get("reliability") or {}).items()]
        note = f". {judge['note']}" if judge.get("note") else ""
        yield f"<p>Judged by: {_h(', '.join(facts) + note)}</p>"
    for note in view["notes"]:
        yield f"<p>Note: {_h(note)}</p>"


def _findings(view: RunView) -> Iterator[str]:
    findings = view["findings"]
    if not findings["codes"]:
        return
    yield "<h2>Findings</h2>"
    rows = [(code, f["severity"], f"{f['count']:,}", f["title"]) for code, f in findings["codes"].items()]
    yield from _table("What is wrong in the output", ("code", "severity", "count", "what"), rows, number=(2,))
    if findings["lines"]:
        yield f"<details><summary>{len(findings['lines']):,} findings with their places</summary>"
        yield "<ul>"
        for line in findings["lines"]:
            place = line.get("file", "") + (f":{line['line']}" if line.get("line") else "")
            yield f'<li dir="auto">{_h(place)}: {_h(line["code"])} {_h(line["severity"])}: {_h(line["message"])}</li>'
        yield "</ul></details>"


def _logs(view: RunView) -> Iterator[str]:
    for stream, lines in view["log"].items():
        if lines:
            yield f"<h2>Last lines of {_h(stream)}</h2>"
            joined = "\n".join(lines)
            yield f'<pre tabindex="0">{_h(joined)}</pre>'


# -- debates --------------------------------------------------------------------------------------------------


def _debates(found: Debates) -> Iterator[str]:
    counts = found.counts
    yield "<h2>Debates</h2>"
    line = f"{counts['debates']:,} debates with {counts['turns']:,} turns: {counts['answered']:,} answered, {counts['failed']:,} failed."
    yield f"<p>{_h(line)}</p>"
    if counts["failures"]:
        rows = [(name, f"{count:,}") for name, count in counts["failures"].items()]
        yield from _table("Failed answers", ("why", "turns"), rows, number=(1,))
    if found.debates is None:
        yield f"<p>Claims and transcripts of a blinded dataset are not shown to {_h(found.audience)}.</p>"
        return
    for note in found.notes:
        yield f"<p>Note: {_h(note)}</p>"
    yield '<nav aria-label="Debates"><ol>'
    for one in found.debates:
        state = f"{one.answered} of {len(one.turns)} answered"
        yield f'<li value="{one.number}"><a href="#d{one.number}" dir="auto">{_h(one.claim[:200])}</a> ({state})</li>'
    yield "</ol></nav>"
    for one in found.debates:
        yield from _debate(one)


def _debate(one: Debate) -> Iterator[str]:
    yield f'<section id="d{one.number}" aria-labelledby="h{one.number}">'
    yield f'<h3 id="h{one.number}">Debate {one.number}: {_h(one.id)}</h3>'
    yield f'<p class="claim" dir="auto">{_h(one.claim)}</p>'
    if one.scores:
        yield f'<p class="about">Scores: {_h(_figures(one.scores))}</p>'
    for turn in one.turns:
        yield from _turn(turn)
    yield "</section>"


def _turn(turn: Turn) -> Iterator[str]:
    target = f" – attacks answer {turn.target}" if turn.target else ""
    yield f"<h4>Turn {turn.number}</h4>"
    yield f'<div class="said user"><span class="who">User{target}</span><span dir="auto">{_h(turn.user)}</span></div>'
    if turn.failed:
        yield f'<div class="said failed"><span class="who bad">No answer</span><span dir="auto">{_h(text.failure_of(turn))}</span></div>'
    else:
        yield f'<div class="said system"><span class="who">System</span><span dir="auto">{_h(turn.answer)}</span></div>'
    about = [text.facts_of(turn)] + ([f"scores: {_figures(turn.scores)}"] if turn.scores else [])
    if any(about):
        yield f'<p class="about">{_h("; ".join(filter(None, about)))}</p>'
    if turn.arguments:
        bad = sum(text.faulty(a) for a in turn.arguments)
        more = f", the first {len(turn.arguments)} are shown" if turn.listed > len(turn.arguments) else ""
        wrong = f', <span class="bad">{bad} not in order</span>' if bad else ""
        yield f'<details class="arguments"><summary>{turn.listed:,} arguments{more}{wrong}</summary><ul>'
        yield from map(_argument, turn.arguments)
        yield "</ul></details>"


def _argument(one: Argument) -> str:
    css = "bad" if text.faulty(one) else "good"
    marks = f'<span class="{css}">{_h(", ".join(text.marks_of(one)))}</span>'
    words = f'<br><span class="words" dir="auto">{_h(one.text)}</span>' if one.text else ""
    return f'<li><span dir="auto">{_h(one.id or "(no id)")}</span>: {marks}{words}</li>'


# -- reports --------------------------------------------------------------------------------------------------


def _reports(found: Reports) -> Iterator[str]:
    yield "<h2>Reports</h2>"
    if found.reports is None:
        yield f"<p>Sentences and nuggets of a blinded dataset are not shown to {_h(found.audience)}.</p>"
        return
    for note in found.notes:
        yield f"<p>Note: {_h(note)}</p>"
    yield '<nav aria-label="Reports"><ul>'
    for one in found.reports:
        yield f'<li><a href="#r{one.number}">{_h(one.topic)}</a>: {_h(text.summary_of(one))}</li>'
    yield "</ul></nav>"
    for one in found.reports:
        yield from _report(one)


def _report(one: Report) -> Iterator[str]:
    yield f'<section id="r{one.number}" aria-labelledby="t{one.number}">'
    yield f'<h3 id="t{one.number}">Topic {_h(one.topic)}</h3>'
    yield f"<p>{_h(text.summary_of(one))}</p>"
    if one.measures:
        yield f'<p class="about">{_h(_figures(one.measures))}</p>'
    yield '<ol class="sentences">'
    for sentence in one.sentences:
        yield from _sentence(sentence)
    yield "</ol>"
    if one.nuggets:
        rows = []
        for n in one.nuggets:
            answers = "; ".join(f"{a} ({'given' if given else 'not given'})" for a, given in n.answers)
            kind = ", ".join(part for part in (n.aggregator, n.importance) if part)
            rows.append(
                ("yes" if n.correct else "no", n.question, kind, answers, ", ".join(map(str, n.sentences)))
            )
        heads = ("counted", "question", "kind", "answers", "sentences")
        yield from _table("Nuggets", heads, rows)
    yield "</section>"


def _sentence(one: Sentence) -> Iterator[str]:
    kinds = {e.kind for e in one.effects}
    css = "penalty" if "penalty" in kinds else "reward" if "reward" in kinds else "none"
    yield f'<li value="{one.number}" class="{css}"><span class="words" dir="auto">{_h(one.text)}</span>'
    if one.citations:
        cited = ", ".join(f"<cite>{_h(c)}</cite>" for c in one.citations)
        yield f'<p class="about" dir="auto">Cites {cited}</p>'
    if one.effects:
        yield '<ul class="plain">'
        for effect in one.effects:
            mark = {"reward": "good", "penalty": "bad"}.get(effect.kind, "")
            yield f'<li><span class="{mark}">{_SIGNS[effect.kind]}</span>: <span dir="auto">{_h(effect.text or effect.code)}</span></li>'
        yield "</ul>"
    if one.judgments:
        yield f"<details><summary>{len(one.judgments)} judgments</summary><ul>"
        yield from map(_judgment, one.judgments)
        yield "</ul></details>"
    yield "</li>"


def _judgment(one: Judgment) -> str:
    of = f" of {one.doc_id}" if one.doc_id else ""
    by = f" ({one.evaluator})" if one.evaluator else ""
    return f'<li dir="auto">{_h(one.type.lower().replace("_", " ") + of)}: {_h(one.said + by)}</li>'


# -- pieces ---------------------------------------------------------------------------------------------------


def _table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, number: Sequence[int] = ()
) -> Iterator[str]:
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{_h(caption)}">'
    yield f"<table><caption>{_h(caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{_h(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = "".join(
            f'<td{" class=number" if i in number else ""} dir="auto">{_h(cell)}</td>'
            for i, cell in enumerate(row[1:], 1)
        )
        yield f'<tr><th scope="row" dir="auto">{_h(row[0])}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _figures(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in sorted(scores.items()))


def _h(value: object) -> str:
    return html.escape(str(value), quote=True)
