"""Deterministic TREC runs and judgements of any size (numpy only, same bytes everywhere).

All content is synthetic: ids are words of a seeded generator, scores are invented.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Size(NamedTuple):
    """How many topics and documents per topic a run has, and how many documents of a topic are judged."""

    topics: int
    depth: int
    judged: tuple[int, int]
    corpus: int


SIZES = {
    "small": Size(50, 1000, (50, 100), 390_001),
    "medium": Size(1000, 1000, (20, 40), 390_001),
    "large": Size(6980, 1000, (1, 2), 8_841_823),
}


def names(numbers: np.ndarray[Any, Any]) -> list[str]:
    """Document ids of 19 to 31 characters, like those of collections of arguments."""
    import numpy as np

    with np.errstate(over="ignore"):
        mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(31)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
    out = []
    for number, value in zip(numbers.tolist(), mixed.tolist(), strict=True):
        part = f"__PREMISE__{number % 40}" if number % 3 else ""
        out.append(f"S{value >> 32:08x}-A{value & 0xFFFFFFFF:08x}" + (f"[{part}]" if part else ""))
    return out


def generate(folder: Path, size: str) -> tuple[Path, Path]:
    """Write ``<size>.run`` and ``<size>.qrels`` into ``folder`` unless they are there; returns both paths."""
    spec = SIZES[size]
    import numpy as np

    run, qrels = folder / f"{size}.run", folder / f"{size}.qrels"
    if run.exists() and qrels.exists():
        return run, qrels
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20_260_101)
    with (folder / f"{size}.tmp").open("w") as runs, qrels.open("w") as judgements:
        for t in range(spec.topics):
            topic = 1_000_000 + t * 7 if size == "large" else t + 1
            start = int(rng.integers(0, spec.corpus))
            # Multiples of a prime modulo the size of the corpus: no document comes twice.
            numbers = (start + np.arange(spec.depth, dtype=np.int64) * 104_729) % spec.corpus
            docs = names(numbers)
            steps = rng.random(spec.depth) * 0.02
            steps[rng.random(spec.depth) < 0.125] = 0.0  # one score in eight ties with the one before
            scores = 25.0 - np.cumsum(steps)
            runs.writelines(
                f"{topic} Q0 {doc} {rank} {score:.6f} synthetic-{size}\n"
                for rank, (doc, score) in enumerate(zip(docs, scores.tolist(), strict=True), 1)
            )
            count = int(rng.integers(spec.judged[0], spec.judged[1] + 1))
            inside = rng.choice(spec.depth, size=max(1, count * 3 // 4), replace=False)
            outside = (
                start + 1 + rng.choice(spec.depth, size=count - len(inside), replace=False)
            ) % spec.corpus
            judged = [docs[i] for i in sorted(inside.tolist())]
            judged += [name for name in names(np.unique(outside)) if name not in set(judged)]
            grades = rng.choice(4, size=len(judged), p=[0.4, 0.3, 0.2, 0.1])
            judgements.writelines(
                f"{topic} 0 {doc} {g}\n" for doc, g in zip(judged, grades.tolist(), strict=True)
            )
    (folder / f"{size}.tmp").rename(run)
    return run, qrels


def main() -> None:
    """Write the files of the named sizes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", default="small,medium")
    args = parser.parse_args()
    for size in args.sizes.split(","):
        print(*generate(args.folder, size))


if __name__ == "__main__":
    main()
