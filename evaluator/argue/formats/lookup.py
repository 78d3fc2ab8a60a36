"""Several collections as one: look a document up in each of them in order, the first hit wins.

A look-up folder (``-C`` or ``DOC_LOOKUP``) holds one file per collection. The collection ``neuclir/1/ru`` may be
``neuclir/1/ru.jsonl``, ``neuclir_1_ru.jsonl``, ``ru.jsonl`` or ``doc_mapping_ru.jsonl``, also with ``.gz``; the language may be
written with two letters or with three (``rus``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import schemas
from evaluator.argue.formats.documents import Collection, open_collection
from evaluator.argue.formats.report import Report
from evaluator.argue.models import Document
from evaluator.errors import EvaluatorError
from evaluator.formats.files import Closing, files_in

DEFAULT_COLLECTIONS = ("neuclir/1/ru", "neuclir/1/fa", "neuclir/1/zh")
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.gzip", ".ndjson", ".ndjson.gz")
PREFIX = "doc_mapping_"  # of the files that Auto-ARGUE reads
_LANGUAGES = (("ru", "rus"), ("fa", "fas"), ("zh", "zho"))
_ALIASES = {a: b for pair in _LANGUAGES for a, b in (pair, pair[::-1])}


class Source(Protocol):
    """What documents can come from."""

    def get(self, doc_id: str) -> Document | None:
        """The document with this id, or None."""
        ...


class Lookup(Closing):
    """Documents from several sources in order. Keeps what it found, for as long as it lives, up to ``keep``."""

    def __init__(self, sources: Sequence[Source], *, missing: Sequence[str] = (), keep: int = 10_000) -> None:
        self.sources = tuple(sources)
        self.missing = tuple(missing)  # collections that the folder does not have
        self._keep = keep
        self._found: dict[str, Document | None] = {}

    def get(self, doc_id: str) -> Document | None:
        """The document with this id from the first source that has it, or None."""
        if doc_id in self._found:
            return self._found[doc_id]
        found = next((d for s in self.sources if (d := s.get(doc_id)) is not None), None)
        if len(self._found) >= self._keep:
            self._found.pop(next(iter(self._found)))
        self._found[doc_id] = found
        return found

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and self.get(doc_id) is not None

    def text(self, doc_id: str) -> str | None:
        """The text that a judge is shown, None for a document that nobody has."""
        found = self.get(doc_id)
        return None if found is None else found.judged_text

    def within(self, report: Report) -> Lookup:
        """This look-up, and behind it the documents that the report itself carries.

        Only for data whose reports are trusted: otherwise a participant makes up the documents that support it.
        """
        return Lookup([*self.sources, report.documents]) if report.documents else self

    def unknown(self, report: Report) -> tuple[str, ...]:
        """The cited documents that nobody has, in the order of first mention."""
        return tuple(d for d in report.cited if d not in self)

    def close(self) -> None:
        """Close the collections."""
        for source in self.sources:
            if isinstance(source, Collection):
                source.close()


def open_lookup(
    place: Path,
    collections: Iterable[str] | None = None,
    *,
    cache: Path | None = None,
    strict: bool = False,
    small: int = 0,
) -> Lookup:
    """Open the collections of a folder, or the one file that ``place`` is.

    Args:
        place: a folder with one file per collection, or one file.
        collections: names such as ``neuclir/1/ru``. Without them those of the default that are there, else every file of
            the folder. Named ones that are not there are in ``Lookup.missing``.
        cache: as for :func:`evaluator.argue.formats.documents.open_collection`.
        strict: every named collection has to be there.
        small: as for :func:`evaluator.argue.formats.documents.open_collection`.

    Raises:
        EvaluatorError: a collection that has to be there is not, or one cannot be read.
    """
    if not place.is_dir():
        return Lookup([open_collection(place, cache=cache, small=small)])
    named = tuple(dict.fromkeys(DEFAULT_COLLECTIONS if collections is None else collections))
    found: Mapping[str, Path | None] = {name: find(place, name) for name in named}
    files = list(dict.fromkeys(path for path in found.values() if path is not None))
    missing = [name for name, path in found.items() if path is None]
    if collections is None:
        missing = []
        files = files or files_in(place, ENDINGS)
    if not files or (strict and missing):
        raise _nothing(place, missing or list(named))
    return Lookup([open_collection(p, cache=cache, small=small) for p in files], missing=missing)


def find(folder: Path, collection: str) -> Path | None:
    """The file of a collection, None if there is none. Raises :class:`EvaluatorError` for a name that leaves the folder."""
    for stem in _stems(collection):
        for ending in ENDINGS:
            path = folder / (stem + ending)
            if path.is_file():
                return path
    return None


def _stems(collection: str) -> Iterator[str]:
    parts = collection.split("/")
    if (
        not collection
        or any(p in ("", ".", "..") for p in parts)
        or "\0" in collection
        or len(collection) > 200
    ):
        raise EvaluatorError(
            f"{schemas.show(collection)} is no collection", "it is a name such as neuclir/1/ru", usage=True
        )
    last = parts[-1]
    for name in dict.fromkeys((last, _ALIASES.get(last, last))):
        whole = [*parts[:-1], name]
        yield "/".join(whole)
        for stem in dict.fromkeys(("_".join(whole), "-".join(whole), name)):
            yield stem
            yield PREFIX + stem


def _nothing(place: Path, missing: Sequence[str]) -> EvaluatorError:
    pickled = sorted(p.name for p in place.glob("*.pkl"))
    names = ", ".join(schemas.show(m) for m in missing[:5])
    if pickled:
        return EvaluatorError(
            f"the look-up folder {place.name} holds pickled files, which are not loaded",
            f"such as {schemas.show(pickled[0])}",
            "convert each of them once: runner data convert-lookup FILE.pkl FILE.jsonl.gz (evaluator convert-lookup: without a container)",
        )
    return EvaluatorError(
        f"the look-up folder {place.name} lacks the documents of {names}",
        f"for example the file {next(_stems(missing[0]))}.jsonl",
        "put one JSON Lines file per collection there, or name the collections that are there (-c)",
    )
