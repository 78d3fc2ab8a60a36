"""The rows of one evaluation, from what the runner and the evaluator wrote of it.

Whatever stands in a result was checked when it was made; it is read once more with suspicion, because archives are old.
"""

from __future__ import annotations

import json
import math
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DataError, IntegrityError

from runner.model.errors import PlatformError
from runner.model.pins import Pins
from runner.records.archive import Evaluation, RunArchive
from runner.records.events import Event
from runner.records.store import tables as t
from runner.records.store.rows import as_count, as_number, as_text, check_manifest, insert_many
from schemas.details import read as read_detail

_BATCH = 2000


WRONG = (KeyError, TypeError, ValueError, OverflowError, IntegrityError, DataError)
UNREADABLE = (*WRONG, AttributeError, PlatformError)
Rows = Iterable[tuple[Table, Iterable[dict[str, Any]]]]


def rows_of(event: Event, evaluation: Evaluation, record: dict[str, Any]) -> Rows:
    """The rows of an evaluation, by their tables.

    Args:
        event: The event that commits the evaluation.
        evaluation: Its files.
        record: Its ``evaluation.json``.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError, PlatformError: the result cannot be read, or contradicts the
            record; some of it only when the rows are asked for.
    """
    if record["status"] == "error":
        return [(t.evaluations, [_evaluation_row(event, record, {}, None)])]
    result = evaluation.result()
    if result is None or result["status"] != record["status"]:
        raise ValueError("status")
    key = {"run": evaluation.run_id, "attempt": evaluation.attempt, "evaluation": evaluation.number}
    row = _evaluation_row(
        event, record, result, None if record.get("asked") is None else Pins.made(record["asked"])
    )
    measured = sorted(result["measures"].items())
    pending, codes = result.get("pending") or {}, result["findings"].get("codes", {})
    # All but scores at once, so that nothing holds the result any more: several are written together.
    parts: Rows = (
        (t.measures, [_measure_row(name, m) for name, m in measured]),
        (t.resamples, [_resamples_row(n, m["resamples"]) for n, m in measured if m.get("resamples")]),
        (t.pending, [{"measure": name, "reason": str(why)} for name, why in sorted(pending.items())]),
        (t.findings, [_finding_row(code, f) for code, f in sorted(codes.items())]),
    )
    scores = (_score_row(key, line) for line in evaluation.scores() if not line.get("facets"))
    return [
        (t.evaluations, [row]),
        *((table, ({**key, **row} for row in rows)) for table, rows in parts),
        (t.topic_scores, scores),
    ]


def insert_rows(connection: Connection, parts: Iterable[Rows]) -> None:
    """Write the rows of evaluations, those of a table together.

    ``connection`` is in a transaction that the caller rolls back when this raises: as :func:`rows_of`, and IntegrityError.
    """
    by_table = defaultdict[Table, list[Iterable[dict[str, Any]]]](list)
    for rows in parts:
        for table, some in rows:
            by_table[table].append(some)
    for table, several in by_table.items():
        all_rows = chain.from_iterable(several)
        while batch := list(islice(all_rows, _BATCH)):
            insert_many(connection, table, batch)


def evaluation_of(event: Event, archive: RunArchive) -> tuple[Evaluation, dict[str, Any]]:
    """The evaluation that an event commits, and its record. Raises E307 where the archive holds others."""
    d = event.data
    evaluation = archive.attempt(d["task"], d["run"], d["attempt"]).evaluation(d["evaluation"])
    check_manifest(event, evaluation.manifest_digest())
    return evaluation, evaluation.record(check=False)


def insert_evaluations(connection: Connection, events: Sequence[Event], archive: RunArchive) -> None:
    """Write the rows of the evaluations that events commit, those of a table together. Raises as :func:`insert_rows`."""
    insert_rows(connection, (rows_of(event, *evaluation_of(event, archive)) for event in events))


def settle_evaluations(
    connection: Connection, waiting: Iterable[Sequence[Any]], *, accepted: bool = True
) -> bool:
    """Accept or discard evaluations that wait, each a triple of run, attempt and number.

    Returns:
        True if all exist, and none was discarded before or, where they are discarded, counts already.
    """
    c, found = t.evaluations.c, True
    counts, allowed = (True, c.counts.is_not(None)) if accepted else (None, c.counts.is_(False))
    for run, attempt, number in waiting:
        here = (c.run == run, c.attempt == attempt, c.number == number, allowed)
        found &= connection.execute(t.evaluations.update().where(*here).values(counts=counts)).rowcount == 1
    return found


def _evaluation_row(
    event: Event, record: dict[str, Any], result: dict[str, Any], pins: Pins | None
) -> dict[str, Any]:
    d = event.data
    counts = result.get("findings") or {}
    evaluator = result.get("evaluator") or {}
    image = record.get("evaluator") or {}
    return {
        **{name: d[name] for name in ("run", "attempt", "manifest")},
        "number": d["evaluation"],
        "seq": event.seq,
        **{name: as_text(record[name]) for name in ("status", "started", "finished")},
        "final": record["status"] != "error"
        or record.get("final") is True
        or _cannot_help(record.get("exit")),
        "message": str(record.get("message") or ""),
        "evaluator": f"{evaluator.get('name', '')} {evaluator.get('version', '')}".strip(),
        "image": str(image.get("image_id") or ""),
        "default_image": bool(image.get("default")),
        "counts": d.get("proposed") is not True,
        "truths_digest": str(record.get("truths_digest") or ""),
        "run_tag": None if result.get("run_tag") is None else as_text(result["run_tag"]),
        "judge": json.dumps(result["judge"], sort_keys=True) if result.get("judge") else None,
        "asked": None if pins is None else pins.text(),
        "fault": _fault(record),
        "notes": json.dumps(_notes(result), sort_keys=True),
        **{f"{severity}s": as_count(counts.get(severity, 0)) for severity in ("error", "defect", "warning")},
    }


def _notes(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The notes of a result as details; those of another evaluator, and of before there were details, are texts."""
    lines = [str(line) for line in result.get("notes") or []]
    stored = result.get("note_details") or []
    return [read_detail(*pair).as_dict() for pair in zip_longest(stored[: len(lines)], lines)]


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
    return bool(
        exit_.get("code") == 0 or exit_.get("oom_killed") or exit_.get("killed") in ("time", "processor")
    )


def _measure_row(name: str, m: dict[str, Any]) -> dict[str, Any]:
    low, high = m.get("interval") or (None, None)
    return {
        "measure": name,
        "value": as_number(m["value"]),
        "topics": as_count(m["topics"]),
        "covered": as_count(m["covered"]),
        "low": None if low is None else as_number(low),
        "high": None if high is None else as_number(high),
    }


def _resamples_row(name: str, resamples: dict[str, Any]) -> dict[str, Any]:
    values = [math.nan if one is None else as_number(one) for one in resamples["values"]]
    return {
        "measure": name,
        "drawn": str(resamples["drawn"])[:64],
        "values": struct.pack(f"<{len(values)}d", *values),
    }


def _finding_row(code: object, finding: dict[str, Any]) -> dict[str, Any]:
    return {
        "code": str(code)[:20],
        "severity": str(finding["severity"]),
        "count": as_count(finding["count"]),
        "title": str(finding.get("title") or ""),
    }


def _score_row(key: Mapping[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    return {
        **key,
        "measure": str(line["measure"]),
        "topic": str(line["topic"]),
        "value": as_number(line["value"]),
        "answered": line.get("answered") is not False,
    }
