"""What an evaluation of reports begins with: the requests, the documents, the nuggets and the reports themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.formats.checking import Rules, load_reports
from evaluator.argue.formats.lookup import Lookup
from evaluator.argue.formats.report import Report
from evaluator.argue.formats.requests import Unit, limit_of, read_requests, truncate
from evaluator.argue.formats.tracks import Track, track
from evaluator.argue.models import Bank, ReportRequest
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.files import Closing
from evaluator.request import Request

REQUESTS = "requests.jsonl"
COLLECTIONS = ("documents.jsonl", "documents.jsonl.gz")
NUGGETS = "nuggets"


class Kept(NamedTuple):
    """A report that is judged, and how many of its sentences were cut off."""

    report: Report
    cut: int


class Reading(Closing):
    """What the software saw (``requests`` by topic, the documents in ``lookup``), and its reports. A context manager."""

    def __init__(self, inputs: Path, request: Request, options: Mapping[str, Any]) -> None:
        self.request, self.options = request, options
        self.requests: Mapping[str, ReportRequest] = read_requests(
            inputs / (options.get("requests") or request.topics or REQUESTS)
        )
        named = options.get("track")
        self.track: Track | None = None if named in (None, "none") else track(named)
        self.limit: tuple[int, Unit] | None = (
            (options["limit"], options["length"]) if "limit" in options else None
        )
        self.lookup = _open(inputs, request, options)

    def reports(self, run: Path, log: Log) -> list[Kept]:
        """The reports that may be judged, cut to their limits; what is wrong is in the log."""
        if self.track is not None:
            log.severity.update({**self.track.severities(), **self.request.severities})
        rules = Rules(
            topics=self.requests,
            documents=self.lookup,
            carried=self.options["documents_in_reports"],
            track=self.track,
            limit=self.limit,
            cut=self.options["truncate"],
            suggest=self.request.public,
        )
        found = load_reports(run, log, rules, max_bytes=self.request.max_bytes)
        zero = {t.decode("utf-8", "backslashreplace") for t in log.defects}
        run_id = found[0].run_id if found else ""
        kept = []
        for report in found:
            if report.topic_id not in zero:
                short = self._cut(report)
                kept.append(Kept(replace(short, run_id=run_id), len(report.sentences) - len(short.sentences)))
        return kept

    def _cut(self, report: Report) -> Report:
        limit = limit_of(self.requests.get(report.topic_id)) or self.limit
        if self.track is not None and self.track.length_limit is not None:
            limit = self.track.length_limit, self.track.length_unit
        return truncate(report, *limit) if limit is not None and self.options["truncate"] else report

    def text(self, report: Report) -> Any:
        """The function that gives the text of a document that ``report`` cites."""
        lookup = self.lookup.within(report) if self.options["documents_in_reports"] else self.lookup
        return lookup.text

    def close(self) -> None:
        """Close the collections."""
        self.lookup.close()


def collections_of(inputs: Path, request: Request, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the dataset's collections; none where there is none."""
    named = options.get("collection") or request.corpus or ()
    names = (named,) if isinstance(named, str) else tuple(named)
    return names or tuple(n for n in COLLECTIONS if (inputs / n).is_file())[:1]


def _open(inputs: Path, request: Request, options: Mapping[str, Any]) -> Lookup:
    from evaluator.argue.formats.documents import open_collection

    names = collections_of(inputs, request, options)
    if not names:
        raise EvaluatorError(
            "the task names no collection",
            fix="name it in task.yaml: options: {collection: documents.jsonl.gz}",
        )
    return Lookup([open_collection(inputs / name, name=name) for name in names])


def read_banks(
    truths: Path, request: Request, options: Mapping[str, Any], requests: Mapping[str, ReportRequest]
) -> dict[str, Bank]:
    """The nuggets of the topics of this dataset. Raises :class:`EvaluatorError` when there are none."""
    from evaluator.argue.formats.nugget_formats import load_nuggets

    named = {m.truths for m in request.measures}
    if "nuggets" not in options and len(named) > 1:
        raise EvaluatorError(
            "the measures name several truths",
            ", ".join(sorted(named)),
            "name one: options: {nuggets: nuggets}",
        )
    banks = load_nuggets(truths / (options.get("nuggets") or next(iter(named), NUGGETS)))
    found = {topic: banks[topic] for topic in requests if topic in banks and banks[topic].nuggets}
    if not found:
        raise EvaluatorError("no topic of the dataset has nuggets", f"there are {len(requests):,} requests")
    return found
