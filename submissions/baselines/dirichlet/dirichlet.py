"""Query likelihood with Dirichlet smoothing, in plain Python.

Reads documents.jsonl.gz and queries.jsonl in $inputDataset and writes $outputDir/run.txt, a TREC run.

A document is scored by the log probability that its language model, smoothed with the collection's, generates
the query (Zhai and Lafferty, "A study of smoothing methods for language models applied to ad hoc information
retrieval", SIGIR 2001). With tf the term's count in the document, p its probability in the collection and n the
document's length, the part of the sum that differs between documents is

    sum over query terms of log(1 + tf / (mu * p))  +  |query| * log(mu / (n + mu))
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

MU = 50.0  # abstracts are short; the best AP of 10, 25, 50, 75, 100, 250, 500 and 1000 on the topics of `dev`
_STOP_WORDS = """
a an and are as at be been but by can for from has have if in into is it its may more no not of on or some such
than that the their then there these they this to was were when where which will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[a-z0-9]+")


def tokens(text: str) -> list[str]:
    """Lower-case words without stop words; a plural s is cut off, which is all the stemming there is."""
    words = (word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)
    return [
        word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word for word in words
    ]


class Index:
    """Counts of a collection: postings by term, document lengths, collection frequencies."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        self.ids: list[str] = []
        self.lengths: list[int] = []
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.frequency: Counter[str] = Counter()
        for number, (docno, text) in enumerate(documents):
            counts = Counter(tokens(text))
            self.ids.append(docno)
            self.lengths.append(sum(counts.values()))
            self.frequency.update(counts)
            for term, count in counts.items():
                self.postings[term].append((number, count))
        self.total = sum(self.lengths)

    def rank(self, query: str, mu: float, depth: int) -> list[tuple[float, str]]:
        """(score, document) of documents that share a term with the query, best first.

        Terms that the collection does not hold say nothing about its documents and are left out. Ties are
        ordered as trec_eval orders them (document id descending), after rounding to what is written.
        """
        terms = Counter(term for term in tokens(query) if term in self.postings)
        length = sum(terms.values())
        scores: dict[int, float] = defaultdict(float)
        for term, weight in terms.items():
            prior = mu * self.frequency[term] / self.total
            for number, count in self.postings[term]:
                scores[number] += weight * math.log(1 + count / prior)
        ranking = [
            (round(score + length * math.log(mu / (self.lengths[number] + mu)), 6), self.ids[number])
            for number, score in scores.items()
        ]
        return sorted(ranking, reverse=True)[:depth]


def read(path: Path, id_key: str, text_key: str) -> Iterator[tuple[str, str]]:
    """(id, text) of each line of a .jsonl or .jsonl.gz file."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            record = json.loads(line)
            yield record[id_key], record[text_key]


def main() -> None:
    """Command line; the defaults come from the environment that the platform sets."""
    parser = argparse.ArgumentParser(description="query likelihood with Dirichlet smoothing")
    parser.add_argument("--input", type=Path, default=os.environ.get("inputDataset"))
    parser.add_argument("--output", type=Path, default=os.environ.get("outputDir"))
    parser.add_argument("--mu", type=float, default=MU)
    parser.add_argument("--depth", type=int, default=1000)
    options = parser.parse_args()
    if options.input is None or options.output is None:
        parser.error("set $inputDataset and $outputDir, or give --input and --output")
    index = Index(read(options.input / "documents.jsonl.gz", "docno", "text"))
    with (options.output / "run.txt").open("w", encoding="utf-8") as run:
        for topic, query in read(options.input / "queries.jsonl", "qid", "query"):
            for position, (score, document) in enumerate(
                index.rank(query, options.mu, options.depth), start=1
            ):
                run.write(f"{topic} Q0 {document} {position} {score:.6f} dirichlet\n")


if __name__ == "__main__":
    main()
