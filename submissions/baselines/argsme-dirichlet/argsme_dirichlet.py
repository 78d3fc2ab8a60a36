"""Query likelihood with Dirichlet smoothing over the args.me corpus, in plain Python.

Reads the corpus and topics.xml in $inputDataset (or -i) and writes $outputDir/run.txt (or -o), a TREC run.

An argument is scored by the log probability that its language model, smoothed with the collection's, generates the
title (Zhai and Lafferty, "A study of smoothing methods for language models applied to ad hoc information retrieval",
SIGIR 2001). With tf the term's count in the argument, p its probability in the collection and n the argument's
length, the part of the sum that differs between arguments is

    sum over query terms of log(1 + tf / (mu * p))  +  |query| * log(mu / (n + mu))

The topics are known before the corpus is read, so only the counts of their words are kept, in arrays.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from argsme import corpus, topics

MU = 2000.0  # near the best for long texts in the paper above, and what most search engines have as their default
TAG = "argsme-dirichlet"
_STOP_WORDS = """
a an and are as at be been but by can could do does for from had has have how if in into is it its may more no not of
on or our shall should so some such than that the their then there these they this those to us was we were what when
where which who why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[a-z0-9]+")


def words(text: str) -> list[str]:
    """Lower-case words as they stand, with stop words."""
    return _WORD.findall(text.lower())


def stem(word: str) -> str:
    """The word without a plural s, which is all the stemming there is."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


class Index:
    """Counts of some terms in a collection, and the length of every document."""

    def __init__(self, documents: Iterable[tuple[str, str]], terms: Iterable[str]) -> None:
        wanted = {form: term for term in set(terms) for form in (term, term + "s") if stem(form) == term}
        self.ids: list[str] = []
        self.lengths = array("i")
        self.where: dict[str, array[int]] = defaultdict(lambda: array("i"))
        self.counts: dict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, (name, text) in enumerate(documents):
            length = 0
            found: Counter[str] = Counter()
            for word in words(text):
                if word in wanted:
                    found[wanted[word]] += 1
                    length += 1
                elif word not in STOP_WORDS:
                    length += 1
            self.ids.append(name)
            self.lengths.append(length)
            for term, count in found.items():
                self.where[term].append(number)
                self.counts[term].append(count)
        self.total = sum(self.lengths)

    def rank(self, query: Counter[str], mu: float, depth: int) -> list[tuple[float, str]]:
        """(score, document) of documents that share a term with the query, best first.

        Terms that the collection does not hold say nothing about its documents and are left out. Ties are ordered
        as trec_eval orders them (document id descending), after rounding to four digits, which single precision
        keeps apart.
        """
        scores: dict[int, float] = defaultdict(float)
        length = 0
        for term, weight in sorted(query.items()):
            if term not in self.where:
                continue
            length += weight
            prior = mu * sum(self.counts[term]) / self.total
            parts = {count: weight * math.log1p(count / prior) for count in set(self.counts[term])}
            for number, count in zip(self.where[term], self.counts[term], strict=True):
                scores[number] += parts[count]
        ranking = (
            (round(score + length * math.log(mu / (self.lengths[number] + mu)), 4), self.ids[number])
            for number, score in scores.items()
        )
        return heapq.nlargest(depth, ranking)


def run(folder: Path, mu: float, depth: int) -> Iterator[str]:
    """The lines of the run."""
    queries = [
        (number, Counter(stem(w) for w in words(title) if w not in STOP_WORDS))
        for number, title in topics(folder / "topics.xml")
    ]
    index = Index(corpus(folder), (term for _, query in queries for term in query))
    for number, query in queries:
        for position, (score, document) in enumerate(index.rank(query, mu, depth), start=1):
            yield f"{number} Q0 {document} {position} {score:.4f} {TAG}\n"


def main() -> None:
    """Command line; the defaults come from the environment that the platform sets."""
    parser = argparse.ArgumentParser(description="query likelihood with Dirichlet smoothing over args.me")
    parser.add_argument("-i", "--input", type=Path, default=os.environ.get("inputDataset"))
    parser.add_argument("-o", "--output", type=Path, default=os.environ.get("outputDir"))
    parser.add_argument("--mu", type=float, default=MU)
    parser.add_argument("--depth", type=int, default=1000)
    options = parser.parse_args()
    if options.input is None or options.output is None:
        parser.error("set $inputDataset and $outputDir, or give --input and --output")
    with (options.output / "run.txt").open("w", encoding="utf-8") as file:
        file.writelines(run(options.input, options.mu, options.depth))


if __name__ == "__main__":
    main()
