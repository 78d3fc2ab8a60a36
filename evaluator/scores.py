"""Where a kind puts what it finds out, and how that becomes the three result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from evaluator import __version__
from evaluator.findings import Log, plain
from schemas.details import Detail


class Sink:
    """Collects findings, scores by topic and aggregates of one run.

    ``findings`` is the log; ``run_tag`` is what the run calls itself; ``pending`` says why a measure has no value yet
    (its truths are still to be made); ``judge`` are the facts about who judged, if somebody or something did;
    ``noted`` is what a reader has to know beside the scores (:meth:`note`); ``details`` say what the scores are made of, one
    object a topic.
    """

    def __init__(self, findings: Log) -> None:
        self.findings = findings
        self.run_tag: str | None = None
        self.aggregates: dict[str, dict[str, Any]] = {}
        self.pending: dict[str, str] = {}
        self.judge: dict[str, Any] | None = None
        self.noted: list[Detail] = []
        self.details: list[Mapping[str, Any]] = []
        self._scores: list[tuple[str, str, float, Mapping[str, Any]]] = []
        self._unanswered: set[tuple[str, str]] = set()

    def note(self, kind: str, /, **fields: Any) -> None:
        """Say something beside the scores, once: a note of the kind of task (``x-notes`` of its schema) and its fields.

        What none of them says is of kind ``text``, which only those see who see the run's own words. Raises ValueError.
        """
        detail = Detail(kind, **fields)
        if detail not in self.noted:
            self.noted.append(detail)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted, in words of at most 300 characters each."""
        return tuple(str(detail)[:300] for detail in self.noted)

    def score(
        self,
        measure: str,
        topic: str,
        value: float,
        facets: Mapping[str, Any] | None = None,
        *,
        answered: bool = True,
    ) -> None:
        """Note one measure's value for one topic, and whether the run ``answered`` that. Raises ValueError unless it is finite."""
        if not isfinite(value):
            raise ValueError(f"{measure} is not finite")
        if not answered:
            self._unanswered.add((measure, topic))
        self._scores.append((measure, topic, value, facets or {}))

    def scores(self) -> Iterator[tuple[str, str, float, Mapping[str, Any]]]:
        """What was noted: measure, topic, value and facets, in order."""
        return iter(self._scores)

    def aggregate(
        self,
        measure: str,
        value: float,
        *,
        topics: int,
        covered: int,
        interval: tuple[float, float] | None = None,
        resamples: Mapping[str, Any] | None = None,
    ) -> None:
        """Note one measure's value over all ``topics`` judged topics; ``covered`` of them have a result.

        ``resamples``: its values in resamples of the topics, as ``result.json`` has them, where single topics have none.
        """
        if not isfinite(value):
            raise ValueError(f"{measure} is not finite")
        self.aggregates[measure] = {
            "value": value,
            "topics": topics,
            "covered": covered,
            "interval": None if interval is None else list(interval),
            **({} if resamples is None else {"resamples": resamples}),
        }

    def _notes(self) -> dict[str, Any]:
        return {"notes": self.notes, "note_details": [detail.as_dict() for detail in self.noted]}

    def write(self, output: Path, *, status: str | None = None, message: str = "") -> None:
        """Write ``scores.jsonl``, ``findings.jsonl`` and, last, ``result.json`` into ``output``.

        ``status`` is ``valid`` or ``invalid`` by the findings when None; only valid runs have scores.
        """
        status = status or ("invalid" if self.findings.invalid else "valid")
        valid = status == "valid"
        with (output / "scores.jsonl").open("w", encoding="utf-8") as file:
            for measure, topic, value, facets in self._scores if valid else ():
                row: dict[str, Any] = {"measure": measure, "topic": topic, "value": value}
                if facets:
                    row["facets"] = dict(facets)
                elif (measure, topic) in self._unanswered:
                    row["answered"] = False
                file.write(_json(row) + "\n")
        if valid and self.details:
            _write_details(output / "details.jsonl", self.details)
        with (output / "findings.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(_json(f.as_json()) + "\n" for f in self.findings.sorted())
        result = {
            "schema_version": 1,
            "status": status,
            "evaluator": {"name": "proctor", "version": __version__},
            "measures": self.aggregates if valid else {},
            **({"pending": self.pending} if valid and self.pending else {}),
            **({"judge": self.judge} if valid and self.judge else {}),
            **(self._notes() if valid and self.noted else {}),
            "findings": self.findings.as_json(),
            "run_tag": None if self.run_tag is None else plain(self.run_tag, 40),
            "message": message or self.findings.summary(),
        }
        (output / "result.json").write_text(_json(result) + "\n", encoding="utf-8")


MAX_DETAIL = 900_000  # bytes of a line of details.jsonl; the runner reads lines of 1 MiB
MAX_DETAILS = 64 << 20  # bytes of the file


def _write_details(path: Path, details: Iterable[Mapping[str, Any]]) -> None:
    """Write ``details.jsonl``; what would be too large is replaced by its topic and a remark."""
    left = MAX_DETAILS
    with path.open("wb") as file:
        for one in details:
            line = _json(one).encode("utf-8", "backslashreplace") + b"\n"
            if len(line) > min(MAX_DETAIL, left):
                line = _json({"topic": plain(str(one.get("topic")), 200), "truncated": True}).encode() + b"\n"
            left -= len(line)
            if left < 0:
                return
            file.write(line)


# One encoder for all lines: json.dumps would make one for each.
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
