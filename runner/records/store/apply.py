"""How one event changes the store: the only code that writes rows.

What an event's ``data`` holds:

=======================  ================================================================================
submission-registered    submission, task, team, software, scenarios, tag, description, method, image, workflow,
                         cells (pairs of dataset and scenario; none: all)
submission-withdrawn     submission, reason, and uncharged (true) where its place in the quota was given back
quota-extended           task, team, submissions (how many more)
deadline-extended        task, team, until (a date with its zone)
attempt-committed        task, run, attempt, manifest (SHA-256 of manifest.json)
evaluation-committed     task, run, attempt, evaluation, manifest
run-cancelled            task, run, submission, dataset, scenario
dataset-published        task, dataset
run-released             task, run, attempt, reason: its team may see the words and figures of this attempt
run-closed               task, run, attempt: not any more
round-frozen             task, round, sha256 (of the snapshot), frozen
labels-imported          task, dataset, file (name in the truths), sha256 (of that file with them in it), count
loss-accepted            lost (where it was remembered, seq and hash of the event), count
=======================  ================================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from runner.model.dates import DateError, parse
from runner.model.errors import PlatformError
from runner.model.pins import Pins, of_request
from runner.model.verdict import read_verdict
from runner.records.archive import Evaluation, RunArchive, read_json
from runner.records.events import Event
from runner.records.snapshot import read_snapshot
from runner.records.store import tables as t
from schemas.details import read as read_detail

_BATCH = 2000
_MAX_COUNT = 2**53


def apply(connection: Connection, event: Event, archive: RunArchive) -> None:
    """Apply one event in the caller's transaction. Raises E307 when log and archive contradict each other."""
    try:
        _RULES[event.type](connection, event, archive)
    except (KeyError, TypeError, IntegrityError) as error:
        raise _contradiction(event, f"{type(error).__name__}: {error}") from error


def _registered(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    connection.execute(
        t.submissions.insert().values(
            id=d["submission"],
            task=d["task"],
            team=d["team"],
            software=d["software"],
            scenarios=json.dumps(list(d.get("scenarios") or ["default"])),
            tag=d.get("tag") or "",
            description=d.get("description") or "",
            method=d.get("method") or "automatic",
            image=_image_id(d.get("image")),
            # Events of before there were uploads beside software say neither.
            workflow=d.get("workflow") or ("batch" if d.get("image") else "upload"),
            cells=None if d.get("cells") is None else json.dumps([list(pair) for pair in d["cells"]]),
            # When it was handed in; taking in a large image after that may last.
            registered=d.get("received") or event.time,
            seq=event.seq,
        )
    )


def _image_id(image: Any) -> str | None:
    return image.get("id") if isinstance(image, dict) else image


def _withdrawn(connection: Connection, event: Event, _: RunArchive) -> None:
    done = connection.execute(
        t.submissions.update()
        .where(t.submissions.c.id == event.data["submission"])
        .values(
            withdrawn=event.time,
            withdrawn_reason=str(event.data.get("reason") or ""),
            uncharged=event.data.get("uncharged") is True,
        )
    )
    if done.rowcount != 1:
        raise _contradiction(event, "it withdraws a submission that was never registered")


def _extended(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    connection.execute(
        t.extensions.insert().values(
            seq=event.seq, task=d["task"], team=d["team"], submissions=int(d["submissions"])
        )
    )


def _deadline(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    try:
        parse(d["until"])
    except (DateError, AttributeError) as error:
        raise _contradiction(event, f"its date cannot be read: {error}") from error
    connection.execute(
        t.deadlines.insert().values(seq=event.seq, task=d["task"], team=d["team"], until=d["until"])
    )


def _published(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    where = (t.publications.c.task == d["task"]) & (t.publications.c.dataset == d["dataset"])
    connection.execute(t.publications.delete().where(where))
    connection.execute(
        t.publications.insert().values(
            task=d["task"], dataset=d["dataset"], published=event.time, seq=event.seq
        )
    )


def _cancelled(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    _ensure_run(connection, d["run"], d["submission"], d["task"], d["dataset"], d["scenario"])
    connection.execute(t.runs.update().where(t.runs.c.id == d["run"]).values(cancelled_seq=event.seq))


def _ensure_run(
    connection: Connection, run: str, submission: str, task: str, dataset: str, scenario: str
) -> None:
    if connection.execute(select(t.runs.c.id).where(t.runs.c.id == run)).first() is None:
        connection.execute(
            t.runs.insert().values(
                id=run, submission=submission, task=task, dataset=dataset, scenario=scenario
            )
        )


def _released(connection: Connection, event: Event, archive: RunArchive) -> None:
    _take_back(connection, event)
    connection.execute(
        t.releases.insert().values(run=event.data["run"], attempt=event.data["attempt"], seq=event.seq)
    )


def _closed(connection: Connection, event: Event, _: RunArchive) -> None:
    if not _take_back(connection, event):
        raise _contradiction(event, "it closes an attempt that was never released")


def _take_back(connection: Connection, event: Event) -> bool:
    where = (t.releases.c.run == event.data["run"]) & (t.releases.c.attempt == event.data["attempt"])
    return connection.execute(t.releases.delete().where(where)).rowcount == 1


def _attempt(connection: Connection, event: Event, archive: RunArchive) -> None:
    d = event.data
    attempt = archive.attempt(d["task"], d["run"], d["attempt"])
    _check_manifest(event, attempt.manifest_digest())
    run, lock = attempt.record(check=False), attempt.lock(check=False)
    _ensure_run(connection, d["run"], lock["submission_id"], d["task"], lock["dataset"], lock["scenario"])
    used, verdict = run.get("resources") or {}, read_verdict(run["verdict"])
    connection.execute(
        t.attempts.insert().values(
            run=d["run"],
            number=d["attempt"],
            lock_digest=run["lock_digest"],
            started=run["started"],
            finished=run["finished"],
            verdict=verdict.name,
            detail="" if verdict.detail is None else json.dumps(verdict.detail.as_dict(), sort_keys=True),
            warnings=json.dumps([warning.as_dict() for warning in verdict.warnings], sort_keys=True),
            wall_seconds=used.get("wall_seconds"),
            cpu_seconds=used.get("cpu_seconds"),
            memory_peak=used.get("memory_peak"),
            memory_source=used.get("memory_source") or "none",
            manifest=d["manifest"],
            seq=event.seq,
        )
    )


def _evaluation(connection: Connection, event: Event, archive: RunArchive) -> None:
    d = event.data
    attempt = archive.attempt(d["task"], d["run"], d["attempt"])
    path = attempt.path / "evaluations" / str(d["evaluation"])
    evaluation = Evaluation(d["task"], d["run"], d["attempt"], d["evaluation"], path)
    _check_manifest(event, evaluation.manifest_digest())
    record = evaluation.record(check=False)
    if record["status"] != "error":
        try:
            with connection.begin_nested():
                _insert_evaluated(connection, event, evaluation, record)
            return
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            IntegrityError,
            PlatformError,
        ) as error:
            # Checked before it was committed; a result that still cannot be read is the evaluator's error,
            # never a reason for the store to stand still.
            what = type(error).__name__
            record = {
                **record,
                "status": "error",
                "message": f"the evaluator's result cannot be read ({what})",
            }
            record["exit"] = {"code": 0}
    connection.execute(t.evaluations.insert().values(_evaluation_row(event, record, {}, None)))


def _insert_evaluated(
    connection: Connection, event: Event, evaluation: Evaluation, record: dict[str, Any]
) -> None:
    result = evaluation.result()
    if result is None or result["status"] != record["status"]:
        raise ValueError("status")
    key = {"run": evaluation.run_id, "attempt": evaluation.attempt, "evaluation": evaluation.number}
    connection.execute(
        t.evaluations.insert().values(_evaluation_row(event, record, result, _pins(evaluation, record)))
    )
    rows = [{**key, **_measure_row(name, m)} for name, m in sorted(result["measures"].items())]
    if rows:
        connection.execute(t.measures.insert(), rows)
    waiting = [
        {**key, "measure": name, "reason": str(reason)}
        for name, reason in sorted((result.get("pending") or {}).items())
    ]
    if waiting:
        connection.execute(t.pending.insert(), waiting)
    codes = [
        {
            **key,
            "code": str(code)[:20],
            "severity": str(f["severity"]),
            "count": _count(f["count"]),
            "title": str(f.get("title") or ""),
        }
        for code, f in sorted(result["findings"].get("codes", {}).items())
    ]
    if codes:
        connection.execute(t.findings.insert(), codes)
    scores = ({**key, **_score_row(line)} for line in evaluation.scores())
    for batch in _batches(scores):
        connection.execute(t.topic_scores.insert(), batch)


def _evaluation_row(
    event: Event, record: dict[str, Any], result: dict[str, Any], pins: Pins | None
) -> dict[str, Any]:
    d = event.data
    counts = result.get("findings") or {}
    evaluator = result.get("evaluator") or {}
    image = record.get("evaluator") or {}
    return {
        "run": d["run"],
        "attempt": d["attempt"],
        "number": d["evaluation"],
        "status": record["status"],
        "final": record["status"] != "error"
        or record.get("final") is True
        or _cannot_help(record.get("exit")),
        "message": str(record.get("message") or ""),
        "evaluator": f"{evaluator.get('name', '')} {evaluator.get('version', '')}".strip(),
        "image": str(image.get("image_id") or ""),
        "default_image": bool(image.get("default")),
        "truths_digest": str(record.get("truths_digest") or ""),
        "run_tag": result.get("run_tag"),
        "judge": json.dumps(result["judge"], sort_keys=True) if result.get("judge") else None,
        "asked": None if pins is None else pins.text(),
        "fault": _fault(record),
        "notes": json.dumps(_notes(result), sort_keys=True),
        "errors": _count(counts.get("error", 0)),
        "defects": _count(counts.get("defect", 0)),
        "warnings": _count(counts.get("warning", 0)),
        "started": record["started"],
        "finished": record["finished"],
        "manifest": d["manifest"],
        "seq": event.seq,
    }


def _notes(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The notes of a result as details; those of another evaluator, and of before there were details, are texts."""
    lines = [str(line) for line in result.get("notes") or []]
    stored = result.get("note_details") or []
    return [read_detail(*pair).as_dict() for pair in zip_longest(stored[: len(lines)], lines)]


def _pins(evaluation: Evaluation, record: dict[str, Any]) -> Pins | None:
    """By which definitions an evaluation was made. One of before they were kept says so by its request, if that is there."""
    asked = record.get("asked")
    if asked is None:
        path = evaluation.path / "request.json"
        try:
            asked = of_request(read_json(path, None)) if path.is_file() else None
        except (PlatformError, KeyError, TypeError):
            asked = None
    return None if asked is None else Pins.made(asked)


def _fault(record: dict[str, Any]) -> str:
    """Whose fault a failed evaluation is; of a record of before that was kept, by how the container ended."""
    if record["status"] != "error":
        return ""
    if record.get("fault") in ("organiser", "platform"):
        return str(record["fault"])
    exit_ = record.get("exit")
    return "organiser" if isinstance(exit_, dict) and exit_.get("code") == 0 else "platform"


def _cannot_help(exit_: Any) -> bool:
    """Whether evaluating again would end the same way: the evaluator ended well and said "error" (or broke
    the contract), or the run drove it to its limits."""
    if not isinstance(exit_, dict):
        return False
    return bool(exit_.get("code") == 0 or exit_.get("oom_killed") or exit_.get("killed") == "time")


def _measure_row(name: str, m: dict[str, Any]) -> dict[str, Any]:
    low, high = m.get("interval") or (None, None)
    return {
        "measure": name,
        "value": _number(m["value"]),
        "topics": _count(m["topics"]),
        "covered": _count(m["covered"]),
        "low": None if low is None else _number(low),
        "high": None if high is None else _number(high),
    }


def _score_row(line: dict[str, Any]) -> dict[str, Any]:
    facets = line.get("facets")
    return {
        "measure": str(line["measure"]),
        "topic": str(line["topic"]),
        "facets": json.dumps(facets, sort_keys=True, separators=(",", ":")) if facets else "",
        "value": _number(line["value"]),
    }


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_COUNT:
        raise ValueError("not a count")
    return value


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _frozen(connection: Connection, event: Event, archive: RunArchive) -> None:
    """The round's file (``snapshots/`` beside the archive) must be the one that was frozen."""
    d = event.data
    read_snapshot(archive.root.parent, d["task"], d["round"], d["sha256"])
    connection.execute(
        t.rounds.insert().values(
            task=d["task"], round=d["round"], digest=d["sha256"], frozen=d["frozen"], seq=event.seq
        )
    )


def _labels(_: Connection, event: Event, __: RunArchive) -> None:
    """Labels lie in the truths and reach the store through evaluations; the log keeps when they came, and which."""
    if not {"task", "dataset", "file", "sha256", "count"} <= event.data.keys():
        raise KeyError("the facts of an import")


def _loss(_: Connection, event: Event, __: RunArchive) -> None:
    """Nothing to store: the log keeps that a part of it was given up, and :mod:`runner.records.store.history` reads it there."""
    if not {"lost", "count"} <= event.data.keys():
        raise KeyError("what was lost")


def _check_manifest(event: Event, digest: str) -> None:
    if digest != event.data["manifest"]:
        raise _contradiction(event, "the archive holds other files than those that were committed")


def _contradiction(event: Event, why: str) -> PlatformError:
    return PlatformError(
        "the archive and the event log contradict each other",
        why=f"Event {event.seq} ({event.type}): {why}.",
        fix="restore the archive and events.jsonl from the same backup",
        code="E307",
    )


_RULES: dict[str, Callable[[Connection, Event, RunArchive], None]] = {
    "submission-registered": _registered,
    "submission-withdrawn": _withdrawn,
    "quota-extended": _extended,
    "deadline-extended": _deadline,
    "attempt-committed": _attempt,
    "evaluation-committed": _evaluation,
    "run-cancelled": _cancelled,
    "dataset-published": _published,
    "run-released": _released,
    "run-closed": _closed,
    "round-frozen": _frozen,
    "labels-imported": _labels,
    "loss-accepted": _loss,
}
