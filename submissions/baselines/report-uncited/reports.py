"""What the baselines of report generation share: read documents and requests, pick sentences, write reports.

The same file lies in all three folders, because an image is built from one folder alone. Plain Python; the same input
gives the same bytes.

Documents are ranked for a request with BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009. The sentences of the best ones are then taken one by one, each time the one with the most rare words
of the request that no sentence before it had (and much less for words that were there), as long as the limit allows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

K1, B = 1.2, 0.75
DEPTH = 8  # documents that sentences are taken from
PER_DOCUMENT = 2  # sentences of one document
AGAIN = 0.3  # what a word of the request counts when an earlier sentence had it
DEFAULT_LIMIT = 2000
OUTPUT = "reports.jsonl"
TEAM = "baselines"
_STOP = """
a about above after all also an and any are as at be been both but by can could cover did do does each for
from give had has have how i if in include including into is it its know made many may me more most much my
no not of on one only or other our out over part report say should so some such than that the their them
then there these they this those to up used want was we were what when where which while who whose why will
with would you
"""
STOP = frozenset(_STOP.split())
_WORD = re.compile(r"[a-z]+|\d[\d.,]*\d|\d")
# The Cranfield abstracts have a blank before their full stops; other texts have a capital letter after them.
_END = re.compile(r"\s+\.\s+|(?<=\w\w)[.!?]\s+(?=[A-Z])")

Cite = Callable[["Request", int, str, Sequence[str]], list[str]]
"""Which documents to cite: (request, position of the sentence, the document it is from, ids of all documents)."""


@dataclass(frozen=True)
class Document:
    """A document to take sentences from."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Request:
    """A request for a report; ``limit`` is in characters."""

    id: str
    text: str
    limit: int


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, which may be compressed; empty lines are skipped."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def read(folder: Path) -> tuple[list[Document], list[Request]]:
    """Documents and requests of a dataset."""
    documents = [Document(d["id"], d["title"], d["text"]) for d in lines(folder / "documents.jsonl.gz")]
    requests = []
    for row in lines(folder / "requests.jsonl"):
        text = f"{row['title']} {row['title']} {row['problem_statement']}"
        requests.append(Request(row["request_id"], text, row.get("limit") or DEFAULT_LIMIT))
    return documents, requests


def terms(text: str) -> list[str]:
    """Words in lower case without stop words; a plain plural loses its s."""
    words = (word for word in _WORD.findall(text.casefold()) if word not in STOP)
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words]


class Index:
    """An inverted index of the documents' titles and texts."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self._found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for number, document in enumerate(documents):
            counts = Counter(terms(f"{document.title} {document.text}"))
            lengths.append(counts.total())
            for term, count in counts.items():
                self._found[term].append((number, count))
        mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
        self._norms = [K1 * (1 - B + B * length / mean) for length in lengths]

    def rarity(self, term: str) -> float:
        """The inverse document frequency, which is never negative."""
        found = len(self._found.get(term, ()))
        return math.log(1 + (len(self.documents) - found + 0.5) / (found + 0.5))

    def best(self, query: Mapping[str, int], depth: int = DEPTH) -> list[tuple[float, Document]]:
        """The documents that suit best, best first; ties are in the order of the file."""
        scores: dict[int, float] = defaultdict(float)
        for term, weight in query.items():
            for number, count in self._found.get(term, ()):
                scores[number] += (
                    weight * self.rarity(term) * count * (K1 + 1) / (count + self._norms[number])
                )
        order = sorted(scores, key=lambda number: (-round(scores[number], 6), number))
        return [(scores[number], self.documents[number]) for number in order[:depth]]


def sentences(text: str) -> list[str]:
    """The sentences of a text, with a capital first and one full stop."""
    found = []
    for part in _END.split(text):
        part = " ".join(part.split()).strip(" .,;")
        if len(terms(part)) >= 4:
            found.append(part[0].upper() + part[1:] + ".")
    return found


def length(texts: Iterable[str]) -> int:
    """Characters as a request's limit counts them: of the sentences with a space between them, in the form NFKC."""
    return len(unicodedata.normalize("NFKC", " ".join(texts)))


def pick(index: Index, request: Request) -> list[tuple[str, str]]:
    """The sentences of a report with the documents that they are from."""
    query = Counter(terms(request.text))
    ranked = index.best(query)
    if not ranked:
        return []
    top = ranked[0][0]
    left = [(score / top, d.id, text) for score, d in ranked for text in sentences(d.text)]
    chosen: list[tuple[str, str]] = []
    covered: set[str] = set()
    taken: Counter[str] = Counter()
    while left:
        worths = [round(score * _worth(index, query, text, covered), 9) for score, _, text in left]
        if max(worths) <= 0:
            break
        _, source, text = left.pop(worths.index(max(worths)))  # the first of equals
        if taken[source] < PER_DOCUMENT and length([*(t for t, _ in chosen), text]) <= request.limit:
            chosen.append((text, source))
            taken[source] += 1
            covered |= set(terms(text))
    return chosen


def _worth(index: Index, query: Mapping[str, int], text: str, covered: set[str]) -> float:
    """How much of the request a sentence has that is not covered yet, for its length."""
    words = set(terms(text))
    found = sum(index.rarity(w) * (AGAIN if w in covered else 1.0) for w in sorted(words) if w in query)
    return found / math.sqrt(len(words))


def report(
    request: Request, chosen: Sequence[tuple[str, str]], run: str, cite: Cite, ids: Sequence[str]
) -> Any:
    """A report in the TREC form."""
    responses = [
        {"text": text, "citations": cite(request, position, source, ids)}
        for position, (text, source) in enumerate(chosen)
    ]
    return {
        "metadata": {"team_id": TEAM, "run_id": run, "topic_id": request.id, "type": "automatic"},
        "responses": responses,
        "references": list(dict.fromkeys(one for row in responses for one in row["citations"])),
    }


def command(run: str, description: str, cite: Cite) -> None:
    """Command line of a baseline; the defaults come from the environment that the platform sets."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--input", type=Path, default=os.environ.get("inputDataset"))
    parser.add_argument("--output", type=Path, default=os.environ.get("outputDir"))
    options = parser.parse_args()
    if options.input is None or options.output is None:
        parser.error("set $inputDataset and $outputDir, or give --input and --output")
    documents, requests = read(options.input)
    index, ids = Index(documents), [document.id for document in documents]
    with (options.output / OUTPUT).open("w", encoding="utf-8", newline="\n") as file:
        for request in requests:
            made = report(request, pick(index, request), run, cite, ids)
            file.write(json.dumps(made, ensure_ascii=False) + "\n")
    print(f"{len(requests)} reports from {len(documents):,} documents", file=sys.stderr)
