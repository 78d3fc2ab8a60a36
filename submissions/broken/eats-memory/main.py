"""Keeps the corpus in memory again and again until the sandbox ends it."""

import gzip
import os
from pathlib import Path

kept = []
while True:
    with gzip.open(Path(os.environ["inputDataset"], "documents.jsonl.gz")) as corpus:
        kept.append(bytearray(corpus.read()) * 16)
