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
from evaluator.argue.formats.lines import refused
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
    """The rules of a track.

    Args:
        name: ``rag26``, ``ragtime25`` …, or a ``.json`` file with one track (``schemas/argue-track.schema.json``).

    Raises:
        EvaluatorError: there is no such track, or its file cannot be used.
    """
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
    doc = schemas.load_json(path, path.name, max_bytes=1 << 20)
    problems = list(doc.problems) or schemas.validate(doc, "argue-track")
    if problems:
        raise refused(f"the track {path.name} cannot be used", problems)
    return _track(path.stem, doc.data)


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("tracks.json").read_text("utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def _track(name: str, data: Mapping[str, Any]) -> Track:
    """The track of checked data. Raises :class:`EvaluatorError` for a pattern that is no regular expression."""
    length = data["length"] or {"unit": "characters", "limit": "request"}
    pattern = data["document_pattern"]
    try:
        compiled = None if pattern is None else re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        what = "document_pattern is not a regular expression"
        raise EvaluatorError(f"the track {name}.json cannot be used", what) from None
    tuples: dict[str, Any] = {key: tuple(data[key]) for key in ("citations", "metadata", "recommended")}
    return Track(
        **{k: data[k] for k in data if k not in ("length", "document_pattern", "warnings", *tuples)},
        **tuples,
        name=name,
        length_unit=length["unit"],
        length_limit=None if length["limit"] == "request" else length["limit"],
        document_pattern=compiled,
        warnings=frozenset(data["warnings"]),
    )
