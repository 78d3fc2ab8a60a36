"""What single tracks demand of reports: data (``tracks.json``), or a file of an organiser in the same form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import schemas
from evaluator.errors import EvaluatorError

# category -> the finding that reports it
CATEGORIES: Mapping[str, str] = {
    "metadata": "F303",
    "citation_format": "F307",
    "reference_index": "F308",
    "citation_score": "F309",
    "duplicate_topics": "F310",
    "new_topics": "F311",
    "missing_topics": "F312",
    "empty_answer": "F314",
    "blank_sentence": "F315",
    "citation_count": "F316",
    "length": "F317",
    "docid_pattern": "F318",
    "references_present": "F319",
    "references_duplicate": "F320",
    "references_missing": "F321",
    "references_uncited": "F322",
    "references_max": "F323",
    "metadata_recommended": "F324",
    "run_id_length": "F325",
    "narrative": "F326",
    "sentence_key": "F337",
}
_ALWAYS_WARNINGS = frozenset({"metadata_recommended"})


@dataclass(frozen=True)
class Track:
    """The rules of one track. ``references``: ``retrieved`` has to hold every cited document, ``cited`` just those.

    ``length_limit`` None with a ``length_unit`` takes the limit of the request. ``warnings`` are the categories that
    are no errors.
    """

    name: str
    title: str
    sentences: str
    citations: tuple[str, ...]
    metadata: tuple[str, ...]
    recommended: tuple[str, ...]
    references: Literal["retrieved", "cited", "unchecked"]
    max_references: int | None
    max_citations: int | None
    length_unit: Literal["characters", "words"]
    length_limit: int | None
    document_pattern: re.Pattern[str] | None
    run_id_length: int | None
    narrative: bool
    warnings: frozenset[str]

    def severities(self) -> dict[str, str]:
        """The severity of every finding that the track decides about, for :class:`evaluator.findings.Log`."""
        mild = self.warnings | _ALWAYS_WARNINGS
        return {code: "warning" if name in mild else "error" for name, code in CATEGORIES.items()}


def names() -> list[str]:
    """The tracks that are known by name."""
    return sorted(_shipped())


def track(name: str) -> Track:
    """The track of that name, or of a JSON file of one track. Raises :class:`EvaluatorError`."""
    if name in _shipped():
        return _track(name, _shipped()[name])
    path = Path(name)
    if path.suffix != ".json":
        near = schemas.closest(name, names()).strip()
        raise EvaluatorError(
            f"there is no track called {schemas.show(name)}",
            f"known are {', '.join(names())}, or the name of a .json file",
            near,
            usage=True,
        )
    doc = schemas.load_json(path, max_bytes=1 << 20)
    problems = [str(p) for p in doc.problems] or _wrong(doc.data)
    if problems:
        raise EvaluatorError(f"the track {path.name} cannot be used", "; ".join(problems))
    return _track(path.stem, doc.data)


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("tracks.json").read_text("utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


_NUMBER = (int, type(None))
_FIELDS: dict[str, tuple[type, ...]] = {
    "title": (str,),
    "sentences": (str,),
    "citations": (list,),
    "metadata": (list,),
    "recommended": (list,),
    "references": (str,),
    "max_references": _NUMBER,
    "max_citations": _NUMBER,
    "length": (dict, type(None)),
    "document_pattern": (str, type(None)),
    "run_id_length": _NUMBER,
    "narrative": (bool,),
    "warnings": (list,),
}


def _wrong(data: Any) -> list[str]:
    """Everything wrong with an organiser's track."""
    if not isinstance(data, dict):
        return ["it is not an object"]
    found = [f"it has an unknown key {schemas.show(k)}" for k in data if k not in _FIELDS]
    for key, types in _FIELDS.items():
        if key not in data:
            found.append(f"it lacks {key}")
        elif not isinstance(data[key], types) or (isinstance(data[key], bool) and bool not in types):
            found.append(f"{key} has the wrong type")
        elif isinstance(data[key], list) and not all(isinstance(v, str) for v in data[key]):
            found.append(f"{key} has to be a list of text")
    if found:
        return found
    if data["sentences"] not in ("responses", "answer"):
        found.append("sentences has to be responses or answer")
    if not data["citations"] or not set(data["citations"]) <= {"list", "scores", "index"}:
        found.append("citations has to name list, scores or index")
    if data["references"] not in ("retrieved", "cited", "unchecked"):
        found.append("references has to be retrieved, cited or unchecked")
    if unknown := sorted(set(data["warnings"]) - set(CATEGORIES)):
        found.append(f"warnings has the unknown {', '.join(schemas.show(u) for u in unknown)}")
    length = data["length"] or {"unit": "words", "limit": "request"}
    limit = length.get("limit")
    if length.get("unit") not in ("characters", "words") or not (
        limit == "request" or (isinstance(limit, int) and not isinstance(limit, bool) and limit > 0)
    ):
        found.append('length has to be like {"unit": "words", "limit": 250}, or with the limit "request"')
    try:
        re.compile(data["document_pattern"] or "")
    except (re.error, RecursionError, OverflowError):
        found.append("document_pattern is not a regular expression")
    return found


def _track(name: str, data: Mapping[str, Any]) -> Track:
    length = data["length"] or {"unit": "characters", "limit": "request"}
    pattern = data["document_pattern"]
    return Track(
        name=name,
        title=data["title"],
        sentences=data["sentences"],
        citations=tuple(data["citations"]),
        metadata=tuple(data["metadata"]),
        recommended=tuple(data["recommended"]),
        references=data["references"],
        max_references=data["max_references"],
        max_citations=data["max_citations"],
        length_unit=length["unit"],
        length_limit=None if length["limit"] == "request" else length["limit"],
        document_pattern=None if pattern is None else re.compile(pattern),
        run_id_length=data["run_id_length"],
        narrative=data["narrative"],
        warnings=frozenset(data["warnings"]),
    )
