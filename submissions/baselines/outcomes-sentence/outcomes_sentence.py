"""The sentence that says the outcome: the one of the abstract with most words that results are told with.

Reads abstracts.jsonl in $inputDataset and writes $outputDir/outcomes.jsonl. If the dataset has passages.jsonl, as that of a new
task of spans has, it writes $outputDir/spans.jsonl with the place of that sentence.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

LONGEST = 100  # words; what is longer is a table or a list
# Beginnings of words, chosen by hand on the public dataset.
TELLING = ("achiev", "experiment", "gain", "improv", "outperform", "perform", "result", "show", "state-of")


def outcome(abstract: str) -> str:
    """The sentence with most such words, of several the last one."""
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", abstract.strip())
    sentences = [s for s in sentences if len(s.split()) <= LONGEST] or sentences[:1]
    found = [sum(word.startswith(TELLING) for word in s.lower().split()) for s in sentences]
    return sentences[max(range(len(sentences)), key=lambda n: (found[n], n))]


def main() -> None:
    """Write the outcomes; the folders come from the environment that the platform sets."""
    dataset, output = Path(os.environ["inputDataset"]), Path(os.environ["outputDir"])
    marks = (dataset / "passages.jsonl").exists()
    source, target = ("passages.jsonl", "spans.jsonl") if marks else ("abstracts.jsonl", "outcomes.jsonl")
    with (
        (dataset / source).open(encoding="utf-8") as lines,
        (output / target).open("w", encoding="utf-8") as outcomes,
    ):
        for line in lines:
            paper = json.loads(line)
            sentence = outcome(paper["abstract"])
            start = paper["abstract"].index(sentence)
            span = {"start": start, "end": start + len(sentence), "label": "outcome"}
            found = {"spans": [span]} if marks else {"outcome": sentence}
            outcomes.write(json.dumps({"id": paper["id"], **found}) + "\n")


if __name__ == "__main__":
    main()
