"""BM25 for Perspective Argument Retrieval, in plain Python.

Reads a release in $inputDataset and writes $outputDir/predictions.jsonl. Arguments are ranked by their text; where
the scenario shows the authors' profiles, those with the wanted property come first (see perspective.py).

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the inverse
document frequency ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from perspective import command

K1, B = 1.5, 0.75
_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """Words in lower case without accents; no stemming and no stop words, for the texts have three languages."""
    plain = unicodedata.normalize("NFD", text.casefold())
    return _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))


def bm25(
    arguments: Sequence[str], queries: Sequence[str], k1: float = K1, b: float = B
) -> Iterator[array[float]]:
    """For each query the score of each argument, 0 where they share no word."""
    lengths = array("l")
    postings: dict[str, tuple[array[int], array[int]]] = defaultdict(lambda: (array("l"), array("l")))
    for number, text in enumerate(arguments):
        counts = Counter(tokens(text))
        lengths.append(counts.total())
        for term, count in counts.items():
            numbers, frequencies = postings[term]
            numbers.append(number)
            frequencies.append(count)
    total = len(lengths)
    mean = sum(lengths) / total if total else 1.0
    norms = array("d", (k1 * (1 - b + b * length / (mean or 1.0)) for length in lengths))
    for query in queries:
        scores = array("d", bytes(8 * total))
        for term, weight in Counter(tokens(query)).items():
            if term in postings:
                numbers, frequencies = postings[term]
                rarity = math.log(1 + (total - len(numbers) + 0.5) / (len(numbers) + 0.5))
                for number, count in zip(numbers, frequencies, strict=True):
                    scores[number] += weight * rarity * count * (k1 + 1) / (count + norms[number])
        yield scores


if __name__ == "__main__":
    command("BM25 over the texts of the arguments", bm25)
