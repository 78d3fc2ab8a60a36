"""BM25 over the args.me corpus, with bm25s.

Reads the corpus and topics.xml in $inputDataset (or -i) and writes $outputDir/run.txt (or -o), a TREC run.

The topics are known before the corpus is read. So the index tells only their words apart: any other word is the same
filler, which keeps every document as long as it is. Scores are those of an index of all words, at a fraction of its
memory.
"""

from __future__ import annotations

import argparse
import os
import re
from array import array
from collections.abc import Iterator
from pathlib import Path

import bm25s
import numpy
import Stemmer
from argsme import corpus, topics
from bm25s.stopwords import STOPWORDS_EN

TAG = "argsme-bm25"
FILLER = 0
_STOP = -1
_WORD = re.compile(r"\w\w+")


class Words:
    """Turns text into numbers: those of the topics' word stems, in order of first use, and the filler."""

    def __init__(self) -> None:
        self._stemmer = Stemmer.Stemmer("english")
        self._stop = frozenset(STOPWORDS_EN)
        self.stems = {"": FILLER}
        self._known: dict[str, int] = {}

    def query(self, text: str) -> list[int]:
        """The stems of a topic; new ones get a number. To be called before :meth:`document`."""
        words = [word for word in _WORD.findall(text.lower()) if word not in self._stop]
        return [self.stems.setdefault(self._stemmer.stemWord(word), len(self.stems)) for word in words]

    def document(self, text: str) -> array[int]:
        """The words of a document without stop words; a document without words is one filler."""
        out = array("i")
        known = self._known
        for word in _WORD.findall(text.lower()):
            number = known.get(word)
            if number is None:
                number = _STOP if word in self._stop else self.stems.get(self._stemmer.stemWord(word), FILLER)
                if len(known) < 1_000_000:  # about 100 MB; what comes later is rare
                    known[word] = number
            if number != _STOP:
                out.append(number)
        return out or array("i", [FILLER])


def run(folder: Path, k1: float, b: float, depth: int) -> Iterator[str]:
    """The lines of the run: documents that share a term with the topic, best first.

    Ties are ordered as trec_eval orders them (document id descending), after rounding to four digits, which single
    precision keeps apart.
    """
    words = Words()
    queries = [(number, sorted(words.query(title))) for number, title in topics(folder / "topics.xml")]
    ids, texts = [], []
    for name, text in corpus(folder):
        ids.append(name)
        texts.append(words.document(text))
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index((texts, words.stems), show_progress=False)
    for number, query in queries:
        if not query:
            continue
        scores = index.get_scores_from_ids(query)
        found = numpy.flatnonzero(scores > 0)
        if len(found) > depth:  # all that could still tie with the last one, after rounding
            last = numpy.partition(scores[found], len(found) - depth)[len(found) - depth]
            found = found[scores[found] >= last - 1e-3]
        ranking = sorted(((round(float(scores[i]), 4), ids[i]) for i in found), reverse=True)
        for position, (score, document) in enumerate(ranking[:depth], start=1):
            yield f"{number} Q0 {document} {position} {score:.4f} {TAG}\n"


def main() -> None:
    """Command line; the defaults come from the environment that the platform sets."""
    parser = argparse.ArgumentParser(description="BM25 over args.me, with bm25s")
    parser.add_argument("-i", "--input", type=Path, default=os.environ.get("inputDataset"))
    parser.add_argument("-o", "--output", type=Path, default=os.environ.get("outputDir"))
    parser.add_argument("--k1", type=float, default=0.9)
    parser.add_argument("--b", type=float, default=0.4)
    parser.add_argument("--depth", type=int, default=1000)
    options = parser.parse_args()
    if options.input is None or options.output is None:
        parser.error("set $inputDataset and $outputDir, or give --input and --output")
    with (options.output / "run.txt").open("w", encoding="utf-8") as file:
        file.writelines(run(options.input, options.k1, options.b, options.depth))


if __name__ == "__main__":
    main()
