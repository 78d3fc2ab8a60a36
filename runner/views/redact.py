"""What an audience gets to see of a run: redacted copies, made by the rules of :mod:`runner.views.audience`.

What renders runs for people, files or pages takes a :class:`RunView`, and only this module can make one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from runner.model.names import ABOUT, DISPLAYED, MAX_ADDRESS, MAX_DISPLAY
from runner.model.verdict import TABLE, next_with_log, read_verdict
from runner.views import coarse
from runner.views.audience import (
    PUBLIC,
    Audience,
    Permissions,
    comments_for,
    escape,
    excerpts_for,
    not_for,
    permissions_for,
    permissions_of,
    review_of,
    visible,
)
from runner.views.irmetadata import given
from runner.views.logs import MAX_LINE, last_lines, sidecar_logs
from runner.views.scores import run_notes, run_scores, run_topics
from schemas.details import read as read_detail
from schemas.findings import in_order

if TYPE_CHECKING:
    from runner.model.run import FindingCount, Run
    from runner.model.task import Dataset
    from runner.records.store.run_detail import RunDetail

MAX_FINDINGS = 1000
MAX_DETAILS = 32 << 20  # bytes of the details of an evaluation: an evaluator at a host may write 256 MiB
MAX_RECEIVED = 64 * 1024  # characters of a text
_DEPTH = 40  # levels of JSON data that are looked at
_FROM_REDACTION = object()


class RunView(Mapping[str, Any]):
    """What one audience may see of a run: plain data, ready for JSON. Only :func:`redact_run` and :func:`redact_row` make
    one, :func:`published_before` one that they made before, and :func:`received` one that a server sent, which they made there.

    ``hidden`` names the sections that were left out for this audience. Text in it was escaped: it holds no
    control characters.
    """

    def __init__(self, data: Mapping[str, Any], audience: Audience, *, made_by: object) -> None:
        if made_by is not _FROM_REDACTION:
            raise TypeError("a RunView is made by redact_run only")
        self._data = dict(data)
        self.audience = audience

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def redact_row(run: Run, audience: Audience, dataset: Dataset, published: bool = False) -> RunView | None:
    """One line of a list of runs for ``audience``; None when it may not know of this run."""
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return RunView(_row(run, may, audience), audience, made_by=_FROM_REDACTION) if may.run else None


def redact_run(found: RunDetail, audience: Audience, dataset: Dataset) -> RunView:
    """Everything that ``audience`` may see of a run. Raises E103 when that is nothing."""
    run = found.run
    may = permissions_of(found, audience, dataset)
    if not may.run:
        raise not_for(audience, f"run {run.id}")
    shown = run if may.free_text else without_free_text(run, dataset)
    judge = {k: v for k, v in (shown.judge or {}).items() if k != "note_detail"}
    view: dict[str, Any] = {
        **_row(run, may, audience),
        "comments": _comments(found, audience),
        "excerpts": [
            {
                **_fields(one, "stream", "first", "last"),
                "lines": [escape(line, MAX_LINE) for line in one.text.split("\n")],
            }
            for one in excerpts_for(found, audience)
        ],
        "description": escape(run.submission.description, 2000),
        **{key: escape(text, MAX_ADDRESS) for key in ABOUT if (text := getattr(run.submission, key))},
        "image": run.submission.image,
        "scores": _scores(found, audience, dataset) if may.scores else {},
        "pending": _pending(found, may) if may.scores else {},
        "judge": _escaped(judge) if may.scores and shown.judge is not None else None,
        "notes": [escape(note, 2000) for note in (*run_notes(found, audience, dataset), *shown.notes)]
        if may.scores
        else [],
        "topic_scores": topics_escaped(run_topics(found, audience)) if may.topics else {},
        "limits": dict(found.lock.get("limits") or {}),
        **({"asked": dict(run.submission.limits)} if run.submission.limits else {}),
        "exceptions": dict(found.lock.get("exceptions") or {}),
        "command": _escaped(found.lock.get("command")),
        "verdict": _verdict(found.record, may),
        **(_exact(found) if may.free_text else _coarse(found)),
        **_metadata(found, may),
        "hidden": may.hidden(),
    }
    if may.platform:
        view["inside"] = _platform(found)
    return RunView(view, audience, made_by=_FROM_REDACTION)


def received(data: Mapping[str, Any], team: str) -> RunView:
    """What a server sent a team (empty: somebody else) of a run: made there by :func:`redact_run` or :func:`redact_row`, and escaped here again."""

    def plain(value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return escape(value, MAX_RECEIVED)
        if depth > _DEPTH:
            return None
        if isinstance(value, Mapping):
            return {escape(str(key)): plain(one, depth + 1) for key, one in value.items()}
        return [plain(one, depth + 1) for one in value] if isinstance(value, list) else value

    view = {str(key): plain(value) for key, value in data.items()}
    return RunView(view, Audience("team", team) if team else PUBLIC, made_by=_FROM_REDACTION)


def published_before(data: Mapping[str, Any], audience: Audience) -> RunView:
    """What :func:`redact_run` made for ``audience`` and work published, as it was read back."""
    return RunView(data, audience, made_by=_FROM_REDACTION)


def redact_findings(
    run: Run, found: Iterable[FindingCount], audience: Audience, dataset: Dataset, published: bool = False
) -> dict[str, dict[str, Any]]:
    """What ``audience`` may know of the findings of a run: by code its severity, title, and ``count`` or ``amount``.

    Empty when it may not know of the run. On hidden data only the gravest code is shown, with few or many.
    """
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return _codes(run, found, may.free_text, run.ours) if may.run else {}


def without_free_text(run: Run, dataset: Dataset) -> Run:
    """A run as everybody's boards show it: about hidden data without counts and without what an evaluator that is not ours
    wrote. Ours writes details; another could repeat what it saw of the truths, or what a software carried out."""
    if dataset.visibility == "public":
        return run
    judge = run.judge
    if judge is not None:
        note = visible([read_detail(judge.get("note_detail"))] if run.ours else (), free_text=False)
        judge = {**judge, "note": "".join(map(str, note))}
    return replace(run, judge=judge, notes=visible(run.notes if run.ours else (), free_text=False))


def topics_escaped(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Scores by measure and topic with escaped topics: their names come from the evaluator."""
    return {
        measure: {escape(topic, 200): value for topic, value in by_topic.items()}
        for measure, by_topic in scores.items()
    }


# --- the sections of a view -----------------------------------------------------------------------------------------


def _row(run: Run, may: Permissions, audience: Audience) -> dict[str, Any]:
    outcome, s, review = run.outcome, run.submission, review_of(run, audience)
    figures = ("wall_seconds", "cpu_seconds", "memory_peak")
    return {
        "run": run.id,
        "submission": s.id,
        **_fields(s, "task", "team", "software"),
        **{name: escape(text, MAX_DISPLAY) for name in DISPLAYED if (text := getattr(s, name))},
        "tag": escape(s.tag, 80),
        **_fields(s, "method", "how"),
        **_fields(run, "dataset", "scenario"),
        "registered": s.registered,
        **({"source": _escaped(dict(s.source))} if s.source else {}),
        "attempts": run.attempts if may.free_text else None,
        "started": run.started if may.free_text else coarse.day(run.first_started),
        "finished": run.finished if may.free_text else None,
        "outcome": {
            **_fields(outcome, "name", "says"),
            "reason": escape(outcome.reason) if may.free_text or may.platform else "",
            "blame": outcome.blame,
            "next": outcome.next_for(organiser=may.platform, log=may.free_text),
            **_fields(outcome, "ranked", "costs_quota", "verdict"),
        },
        "stale": list(run.stale),
        "review": None
        if review is None
        else {"state": review.state, "reason": escape(review.reason), "to": review.to},
        "resources": {
            **{name: getattr(run, name) if may.free_text else None for name in figures},
            "memory_source": run.memory_source if may.free_text else "none",
        },
        "steps": None if may.free_text else coarse.steps_of(run),
    }


def _comments(found: RunDetail, audience: Audience) -> list[dict[str, str]]:
    """The comments that an audience may read; who of the organisers wrote them is for organisers."""
    return [
        {
            **_fields(one, "at", "to"),
            "who": escape(one.who, 100) if audience.kind == "organiser" else "organiser",
            "text": escape(one.text, 2000),
        }
        for one in comments_for(found, audience)
    ]


def _fields(of: object, *names: str) -> dict[str, Any]:
    """Fields of an object by name, in this order."""
    return {name: getattr(of, name) for name in names}


def _metadata(found: RunDetail, may: Permissions) -> dict[str, Any]:
    """What its team says of the experiment, where it says anything: free text, and a software may have written it."""
    said = given(found) if may.free_text else None
    return {} if said is None else {"ir_metadata": said.as_dict()}


def _exact(found: RunDetail) -> dict[str, Any]:
    """What only those may see who may see free text."""
    row = _evaluation_row(found)
    return {
        "attempt": None if found.attempt is None else found.attempt.number,
        "attempt_list": [
            {k: row[k] for k in ("number", "verdict", "started", "finished", "wall_seconds")}
            for row in found.attempt_rows
        ],
        "output": _output(found.record),
        "findings": {
            "counts": {name: row.get(f"{name}s", 0) for name in coarse.SEVERITIES},
            "codes": _codes(found.run, found.findings, True, bool(row.get("default_image"))),
            "lines": _finding_lines(found),
        },
        "run_tag": escape(row.get("run_tag") or "", 80),
        "log": last_lines(found),
        "lock_digest": found.record.get("lock_digest"),
    }


def _coarse(found: RunDetail) -> dict[str, Any]:
    """The same in few values. The lock's digest is left out: it depends on runs that a stage takes, and on hidden files."""
    ours = bool(_evaluation_row(found).get("default_image"))
    return {
        "attempt": None,
        "attempt_list": [],
        "output": None,
        "steps": {**coarse.steps_of(found.run), "size": coarse.size_of(found.run, found.record)},
        "findings": {"counts": {}, "codes": _codes(found.run, found.findings, False, ours), "lines": []},
        "run_tag": None,
        "log": {},
        "lock_digest": None,
    }


def _platform(found: RunDetail) -> dict[str, Any]:
    record = found.record
    return {
        "exit": _escaped(record.get("exit")),
        **{name: record.get(name) for name in ("engine", "host", "runner_version")},
        "folder": None if found.attempt is None else str(found.attempt.path),
        "sidecar_logs": list(sidecar_logs(found)),
        "evaluations": [
            {
                **{k: _escaped(v) for k, v in row.items() if k != "counts"},
                "default_image": bool(row["default_image"]),
                **({} if row["counts"] else {"counts": False}),  # it waits to be accepted
                "notes": _notes(row),
            }
            for row in found.evaluation_rows
        ],
    }


def _notes(row: Mapping[str, Any]) -> str:
    """The notes of an evaluation's row, in words: a JSON list."""
    return json.dumps([escape(read_detail(note), 2000) for note in json.loads(row["notes"])])


def _verdict(record: Mapping[str, Any], may: Permissions) -> dict[str, Any] | None:
    """How the attempt ended, with the details that may be seen."""
    if not record.get("verdict"):
        return None
    verdict = read_verdict(record["verdict"])
    row = TABLE[verdict.name]
    detail = visible([verdict.detail] if verdict.detail else [], free_text=may.free_text)
    return {
        "name": verdict.name,
        "says": row.says,
        "detail": escape("".join(map(str, detail))),
        "blame": row.blame,
        "next": (may.platform and row.organiser)
        or (may.free_text and next_with_log(verdict.name, verdict.detail))
        or row.next,
        "warnings": [escape(one) for one in visible(verdict.warnings, free_text=may.free_text)],
    }


def _output(record: Mapping[str, Any]) -> dict[str, Any] | None:
    output = record.get("output")
    if not output:
        return None
    return {
        "file": _escaped(output.get("file")),
        **{name: _escaped(output.get(name) or []) for name in ("files", "refused")},
        **{name: output.get(name) for name in ("bytes", "full")},
    }


def _evaluation_row(found: RunDetail) -> Mapping[str, Any]:
    if found.evaluation is None:
        return {}
    wanted = (found.evaluation.attempt, found.evaluation.number)
    return next((r for r in found.evaluation_rows if (r["attempt"], r["number"]) == wanted), {})


def _scores(found: RunDetail, audience: Audience, dataset: Dataset) -> dict[str, Any]:
    shown = {} if audience.kind == "organiser" else found.decimals
    return {
        name: {
            **_fields(m, "value", "topics", "covered"),
            "measure": m.measure or None,
            "interval": None if m.low is None else [m.low, m.high],
            **({"precision": shown[name]} if name in shown else {}),
        }
        for name, m in run_scores(found, audience, dataset).items()
    }


def _pending(found: RunDetail, may: Permissions) -> dict[str, str]:
    return {m: escape(why, 300) if may.free_text else "not judged yet" for m, why in found.pending.items()}


def _codes(run: Run, found: Iterable[FindingCount], free_text: bool, ours: bool) -> dict[str, dict[str, Any]]:
    """The codes of findings: all with their counts, or without ``free_text`` the gravest one, in few values."""
    if free_text:
        return {
            escape(f.code, 80): {
                "severity": escape(f.severity, 20),
                "count": f.count,
                "amount": None,
                "title": escape(f.title, 120),
            }
            for f in found
        }
    judged = run.outcome.name in ("scored", "invalid")
    return {
        escape(code, 20): {**one, "title": escape(one["title"], 120)}
        for code, one in coarse.gravest(found if judged else (), ours).items()
    }


def _finding_lines(found: RunDetail) -> list[dict[str, Any]]:
    if found.evaluation is None:
        return []
    return in_order([_escaped(row) for row in islice(found.evaluation.findings(), MAX_FINDINGS)])


def _escaped(value: Any, depth: int = _DEPTH) -> Any:
    """``value`` (JSON data) with every string in it escaped; what is nested deeper than 40 levels becomes "…"."""
    if isinstance(value, str):
        return escape(value, 2000)
    if depth == 0 and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        return {escape(k, 200): _escaped(v, depth - 1) for k, v in value.items()}
    return [_escaped(v, depth - 1) for v in value] if isinstance(value, list | tuple) else value


# --- what scores are made of ---------------------------------------------------------------------------------------


def details(found: RunDetail, audience: Audience, dataset: Dataset) -> Iterator[dict[str, Any]]:
    """What the scores of a run are made of, topic by topic, where the evaluator says so; escaped, line by line, of :data:`MAX_DETAILS` bytes.

    Raises E103 when this audience may not see single topics; empty when the evaluator left nothing.
    """
    if not permissions_for(audience, found.run.submission.team, dataset, found.published).content:
        raise not_for(audience, "what the scores on a blinded dataset are made of")
    evaluation = found.evaluation
    return iter(()) if evaluation is None else map(_escaped, evaluation.lines("details.jsonl", MAX_DETAILS))


def cut(found: RunDetail, rest: Iterator[object]) -> bool:
    """Whether there are more details of a run than were taken from those that ``rest`` still gives."""
    file = None if found.evaluation is None else found.evaluation.file("details.jsonl")
    return next(rest, None) is not None or (file is not None and file.size > MAX_DETAILS)
