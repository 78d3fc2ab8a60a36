"""BM25 over a dataset in the ir_datasets/TIRA layout, with bm25s.

Reads documents.jsonl.gz and queries.jsonl in $inputDataset and writes $outputDir/run.txt, a TREC run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import bm25s
import numpy
import Stemmer


def read_texts(path: Path, id_key: str, text_key: str) -> tuple[list[str], list[str]]:
    """Ids and texts of a .jsonl or .jsonl.gz file, in file order."""
    ids, texts = [], []
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            record = json.loads(line)
            ids.append(record[id_key])
            texts.append(record[text_key])
    return ids, texts


def rank(dataset: Path, k1: float, b: float, depth: int) -> Iterator[tuple[str, list[tuple[float, str]]]]:
    """Each topic with its ranking: (score, document), best first, only documents that share a term with it.

    Ties are ordered as trec_eval orders them (document id descending), after rounding to what is written.
    """
    documents, texts = read_texts(dataset / "documents.jsonl.gz", "docno", "text")
    topics, queries = read_texts(dataset / "queries.jsonl", "qid", "query")
    stemmer = Stemmer.Stemmer("english")
    tokenizer = bm25s.tokenization.Tokenizer(stemmer=stemmer, stopwords="en")
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index(tokenizer.tokenize(texts, return_as="tuple", show_progress=False), show_progress=False)
    for topic, query in zip(topics, queries, strict=True):
        terms = tokenizer.tokenize([query], update_vocab=False, return_as="ids", show_progress=False)[0]
        if not terms:
            yield topic, []
            continue
        scores = index.get_scores_from_ids(terms)
        found = numpy.flatnonzero(scores > 0)
        ranking = sorted(((round(float(scores[i]), 6), documents[i]) for i in found), reverse=True)
        yield topic, ranking[:depth]


def main() -> None:
    """Command line; the defaults come from the environment that the platform sets."""
    parser = argparse.ArgumentParser(description="BM25 with bm25s")
    parser.add_argument("--input", type=Path, default=os.environ.get("inputDataset"))
    parser.add_argument("--output", type=Path, default=os.environ.get("outputDir"))
    parser.add_argument("--k1", type=float, default=0.9)
    parser.add_argument("--b", type=float, default=0.4)
    parser.add_argument("--depth", type=int, default=1000)
    options = parser.parse_args()
    if options.input is None or options.output is None:
        parser.error("set $inputDataset and $outputDir, or give --input and --output")
    with (options.output / "run.txt").open("w", encoding="utf-8") as run:
        for topic, ranking in rank(options.input, options.k1, options.b, options.depth):
            for position, (score, document) in enumerate(ranking, start=1):
                run.write(f"{topic} Q0 {document} {position} {score:.6f} bm25\n")


if __name__ == "__main__":
    main()
