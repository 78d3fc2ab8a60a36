"""The ids of a corpus, to find documents that a run invented.

JSON lines (``docno``, ``doc_id``, ``docid``, ``id`` or ``_id``), TREC's ``<DOCNO>``, or a plain list of ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.blocks import BOM
from evaluator.formats.files import Damaged, Source, Unreadable

KEYS = ("docno", "doc_id", "docid", "id", "_id")
_FIRST = re.compile(rb'\{"(docno|doc_id|docid|id|_id)": ?"([^"\\]*)"')
_DOCNO = re.compile(rb"<DOCNO>\s*([^<]*?)\s*</DOCNO>", re.IGNORECASE)


class DocumentIds:
    """The ids of a corpus in a set (about 90 bytes each)."""

    def __init__(self, ids: set[bytes]) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    def missing(self, docs: Collection[bytes]) -> Collection[bytes]:
        """Return those of ``docs`` that are not in the corpus."""
        return () if self._ids.issuperset(docs) else set(docs) - self._ids

    def ids(self) -> Iterator[bytes]:
        """Every id."""
        return iter(self._ids)


def read_corpus(path: Path, name: str | None = None) -> DocumentIds:
    """Return the document ids of a plain or gzip file.

    Raises :class:`EvaluatorError` for files that are unreadable or hold no ids.
    """
    name = name or path.name
    form = ""
    ids: set[bytes] = set()
    try:
        for number, line in enumerate(_lines(path), 1):
            form = form or _form(line, name)
            if form == "json":
                match = _FIRST.match(line)
                if match is not None:
                    ids.add(match[2])
                elif line.strip():
                    ids.add(_json_id(line, name, number))
            elif form == "trec":
                ids.update(_DOCNO.findall(line))
            elif words := line.split(None, 1):
                ids.add(words[0])
    except (Unreadable, Damaged) as error:
        raise EvaluatorError(
            f"the corpus {name} cannot be read",
            str(error),
            "correct the path where it was given: task.yaml or the command line",
        ) from None
    if not ids:
        raise EvaluatorError(f"the corpus {name} holds no document ids", fix='give every document a "docno"')
    return DocumentIds(ids)


def _form(line: bytes, name: str) -> str:
    """What a corpus is by its first line that is not blank: json, trec or plain; the name counts if that says nothing."""
    stem, first = name.removesuffix(".gz"), line.strip()[:1]
    if first == b"{" or (first and stem.endswith((".jsonl", ".ndjson"))):
        return "json"
    if first == b"<" or (first and stem.endswith((".trec", ".sgml", ".xml"))):
        return "trec"
    return "plain" if first else ""


def _lines(path: Path) -> Iterator[bytes]:
    with Source(path, follow=True) as source:
        rest = b""
        first = True
        while piece := source.read(1 << 22):
            lines = (rest + (piece.removeprefix(BOM) if first else piece)).split(b"\n")
            first = False
            rest = lines.pop()
            yield from lines
        if rest:
            yield rest


def _json_id(line: bytes, name: str, number: int) -> bytes:
    try:
        record = json.loads(line)
    except ValueError:
        raise EvaluatorError(f"the corpus {name} is not JSON lines", f"{name}:{number}: not JSON") from None
    key = next((k for k in KEYS if isinstance(record, dict) and isinstance(record.get(k), str | int)), None)
    if key is None:
        raise EvaluatorError(
            f"the corpus {name} lacks an id",
            f"{name}:{number}: none of {', '.join(KEYS)}",
            'give every document a "docno"',
        )
    return str(record[key]).encode()
