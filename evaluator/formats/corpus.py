"""The ids of a corpus, to find documents that a run invented.

JSON lines (``docno``, ``doc_id``, ``docid``, ``id`` or ``_id``), TREC's ``<DOCNO>``, or a plain list of ids.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.files import Source, organisers
from evaluator.formats.lines import id_of_object
from evaluator.formats.ranked import KnownDocuments

LARGE = 20_000_000  # bytes of a corpus, from which on its ids are looked up in an index
KEYS = ("docno", "doc_id", "docid", "id", "_id")
WITHOUT = 'give every document a "docno"'
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


def read_corpus(path: Path, name: str | None = None) -> KnownDocuments:
    """Return the document ids of a plain or gzip file; those of a large one come from an index that is made once.

    Raises :class:`EvaluatorError` for files that are unreadable or hold no ids.
    """
    name = name or path.name
    if (index := _index(path, name)) is not None:
        return index
    ids = {doc for _, doc in corpus_ids(path, name)}
    if not ids:
        raise EvaluatorError(f"the corpus {name} holds no document ids", fix=WITHOUT)
    return DocumentIds(ids)


def _index(path: Path, name: str) -> KnownDocuments | None:
    """The index of a large corpus; None for a small one, and one that it cannot hold. Raises :class:`EvaluatorError`."""
    with organisers(f"the corpus {name}"), Source(path, follow=True) as source:
        if source.size < LARGE:
            return None
        from evaluator.formats.fast.ids import in_batches, of_lines, open_index

        form = next((form for line in source.lines() if (form := _form(line, name))), "")

    def ids() -> Iterator[bytes]:
        return (doc for _, doc in corpus_ids(path, name))

    with organisers(f"the corpus {name}"), Source(path, follow=True) as source:
        return open_index(
            path, form or "plain", of_lines(source.read) if form == "plain" else in_batches(ids()), ids
        )


def _raise(number: int, error: EvaluatorError) -> None:
    raise error


def corpus_ids(
    path: Path,
    name: str,
    *,
    broken: Callable[[int, EvaluatorError], None] = _raise,
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[tuple[int, bytes]]:
    """The line and id of every document of a plain or gzip file, of which only a piece is held at a time.

    Args:
        path: The file.
        name: What messages call it.
        broken: Told of a line without an id, and why it has none; the default raises that.
        progress: Told now and then which share of the file has been read.

    Raises:
        EvaluatorError: The file is unreadable.
    """
    form = ""
    with organisers(f"the corpus {name}"), Source(path, follow=True) as source:
        for number, line in enumerate(source.lines(), 1):
            form = form or _form(line, name)
            if not number & 0xFFFF:
                progress(source.share())
            try:
                for doc in _ids_in(line, form, name, number):
                    yield number, doc
            except EvaluatorError as error:
                broken(number, error)


def survey(
    path: Path,
    name: str,
    seen: Callable[[bytes], object],
    *,
    broken: Callable[[int, EvaluatorError], None],
    progress: Callable[[float], None],
) -> tuple[int, Iterator[tuple[bytes, int, int]]]:
    """Read a corpus with 8 bytes of memory for each document, whose id is shown to ``seen``.

    Returns:
        How many documents there are; and each id that is given again, its line, and that on which it stands first (the
        file is read again for that, if there may be some).

    Raises:
        EvaluatorError: The file is unreadable.
    """
    hashes = array("q")
    for _, doc in corpus_ids(path, name, broken=broken, progress=progress):
        hashes.append(hash(doc))
        seen(doc)
    return len(hashes), _repeated(path, name, hashes, progress)


def _repeated(
    path: Path, name: str, hashes: array[int], progress: Callable[[float], None]
) -> Iterator[tuple[bytes, int, int]]:
    import numpy as np

    ordered = np.frombuffer(hashes, dtype=np.int64)
    ordered.sort()
    equal = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    first: dict[bytes, int] = {}
    for number, doc in corpus_ids(path, name, broken=lambda *_: None, progress=progress) if equal else ():
        if hash(doc) in equal and (before := first.setdefault(doc, number)) != number:
            yield doc, number, before


def _ids_in(line: bytes, form: str, name: str, number: int) -> Sequence[bytes]:
    """The ids on a line of a corpus of this form. Raises :class:`EvaluatorError` for a line of JSON without one."""
    if form == "json":
        match = _FIRST.match(line)
        if match is not None:
            return (match[2],)
        wrong = f"the corpus {name} is not JSON lines", f"the corpus {name} lacks an id", WITHOUT
        return (id_of_object(line, f"{name}:{number}", KEYS, wrong),) if line.strip() else ()
    return _DOCNO.findall(line) if form == "trec" else line.split(None, 1)[:1]


def _form(line: bytes, name: str) -> str:
    """What a corpus is by its first line that is not blank: json, trec or plain; the name counts if that says nothing."""
    stem, first = name.removesuffix(".gz"), line.strip()[:1]
    if first == b"{" or (first and stem.endswith((".jsonl", ".ndjson"))):
        return "json"
    if first == b"<" or (first and stem.endswith((".trec", ".sgml", ".xml"))):
        return "trec"
    return "plain" if first else ""
