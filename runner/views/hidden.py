"""Texts of hidden topics and truths, and whether they are in what everybody sees.

They are looked for as whole lines and values, and within longer texts where they have some words.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from runner.tasks.data_files import within

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task

CANARY = 12  # characters of a text that can be told from chance
WORDS = 4  # of a text that is looked for within longer ones
MOST = 20_000  # lines of a file
LONGEST, LARGEST = (
    4 * 1024 * 1024,
    64 * 1024 * 1024,
)  # bytes of a line, and of a file that is read as one JSON text
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^>]*>")
_JSON = tuple('{["')


def search_for(task: Task) -> Search:
    """A search for texts of the blinded datasets of ``task``; stages hide nothing of a tree.

    Left out are texts that topics and truths of public datasets have, too, and truths that stand in a public corpus: nuggets and
    judgments quote its documents, and name them. A hidden topic that stands there is looked for everywhere but in the corpus.
    """
    public = [d for d in task.datasets.values() if d.visibility == "public"]
    known = {text for d in public for text in _texts_of([*_truths(d), *_topics(d)])}
    hidden = [d for d in task.datasets.values() if d.visibility == "blinded" and d.stage is None]
    truths = {d.id: _texts_of(_truths(d)) - known for d in hidden}
    corpora = {
        d.inputs / d.corpus for d in public if d.corpus is not None and (d.inputs / d.corpus).is_file()
    }
    for corpus in corpora:
        texts, whole = _texts(corpus.name, corpus)
        truths = {name: some - texts - Canaries(some, 1).within(whole) for name, some in truths.items()}
    return Search(
        {d.id: Canaries(truths[d.id] | _texts_of(_topics(d)) - known) for d in hidden},
        [corpus.relative_to(task.folder).as_posix() for corpus in corpora if within(corpus, task.folder)],
    )


class Canaries:
    """Texts of hidden files, and whether they are within others, however these are wrapped, cased or punctuated."""

    def __init__(self, texts: set[str], least: int = WORDS) -> None:
        self.texts, self._least = texts, least
        self._by_beginning: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for text in texts:
            words = _words(text)
            if len(words) >= least:
                self._by_beginning.setdefault(tuple(words[:WORDS]), []).append((f" {' '.join(words)} ", text))

    def within(self, text: str) -> set[str]:
        """Those of at least ``least`` words that are in ``text``."""
        words = _words(text)
        begun: set[tuple[str, ...]] = set()
        for count in range(self._least, WORDS + 1):
            begun |= set(zip(*(words[n:] for n in range(count)), strict=False)) & self._by_beginning.keys()
        if not begun:
            return set()
        whole = f" {' '.join(words)} "
        return {one for key in begun for spoken, one in self._by_beginning[key] if spoken in whole}


class Search:
    """Where the canaries of each dataset were ``found``, by name; ``corpora`` are files, as paths end, that are passed over."""

    def __init__(self, looked_for: Mapping[str, Canaries], corpora: Sequence[str] = ()) -> None:
        self.looked_for, self._corpora = looked_for, tuple(corpora)
        self.found: dict[str, set[str]] = {dataset: set() for dataset in looked_for}

    def text(self, name: str, text: str) -> None:
        """Look into what people read: any canary in it is one."""
        for dataset, canaries in self.looked_for.items():
            if any(one in text for one in canaries.texts) or canaries.within(text):
                self.found[dataset].add(name)

    def file(self, name: str, data: bytes | Path, place: str | None = None) -> None:
        """Look into the file ``name`` (its bytes, or where it lies): short texts are looked for as whole lines and values only; ``place`` is what it is called."""
        if any(f"/{name}".endswith(f"/{corpus}") for corpus in self._corpora):
            return
        texts, whole = _texts(name, data)
        for dataset, canaries in self.looked_for.items():
            if not texts.isdisjoint(canaries.texts) or canaries.within(whole):
                self.found[dataset].add(place or name)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def values_of(data: Any) -> Iterator[str]:
    """The texts in JSON data, however deep."""
    if isinstance(data, str):
        yield data.strip()
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from values_of(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from values_of(value)


def _truths(dataset: Dataset) -> list[Path]:
    return [path for path in sorted(dataset.truths.rglob("*")) if path.is_file()]


def _topics(dataset: Dataset) -> list[Path]:
    file = dataset.inputs / dataset.topics if dataset.topics else None
    return [file] if file is not None and file.is_file() else []


def _texts_of(files: Iterable[Path]) -> set[str]:
    return {text for file in files for text in _texts(file.name, file)[0]}


def _texts(name: str, data: bytes | Path) -> tuple[set[str], str]:
    """Texts by which the beginning of a file would be known again (values of JSON, lines without tags; no short ones), and all of it."""
    whole: list[str] = []
    found: set[str] = set()
    if name.endswith(".json") and (not isinstance(data, Path) or data.stat().st_size <= LARGEST):
        try:
            found.update(values_of(json.loads(data.read_bytes() if isinstance(data, Path) else data)))
        except (ValueError, RecursionError):
            pass
        else:
            return {text for text in found if len(text) >= CANARY}, "\n".join(found)
    for line in islice(_lines(name, data), MOST):
        text = line.decode("utf-8", "replace").strip()
        try:
            values = list(values_of(json.loads(text))) if text[:1] in _JSON else None
        except (ValueError, RecursionError):
            values = None
        if values is None:
            values = [_TAG.sub(" ", text).strip() if "<" in text else text]
        found.update(values)
        whole += values
    return {text for text in found if len(text) >= CANARY}, "\n".join(whole)


def _lines(name: str, data: bytes | Path) -> Iterator[bytes]:
    """The lines of a file (of long ones parts), unpacked where its name says that it is; as far as they can be read."""
    with ExitStack() as stack:
        stream: IO[bytes] = stack.enter_context(data.open("rb") if isinstance(data, Path) else BytesIO(data))
        packed = name.endswith(".gz")
        lines = stack.enter_context(gzip.open(stream)) if packed else stream
        try:
            while line := lines.readline(LONGEST):
                yield line
        except (OSError, EOFError, zlib.error):
            return
