"""A random run: for each topic 1,000 documents in an order that depends on the topic's id alone.

Reads documents.jsonl.gz and queries.jsonl in $inputDataset and writes $outputDir/run.txt, a TREC run.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

DEPTH = 1000


def main() -> None:
    """Write the run; the folders come from the environment that the platform sets."""
    dataset, output = Path(os.environ["inputDataset"]), Path(os.environ["outputDir"])
    with gzip.open(dataset / "documents.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = sorted(json.loads(line)["docno"] for line in lines)
    with (dataset / "queries.jsonl").open(encoding="utf-8") as lines:
        topics = [json.loads(line)["qid"] for line in lines]
    with (output / "run.txt").open("w", encoding="utf-8") as run:
        for topic in topics:
            drawn = random.Random(topic).sample(documents, min(DEPTH, len(documents)))
            for position, document in enumerate(drawn, start=1):
                run.write(f"{topic} Q0 {document} {position} {DEPTH - position + 1} random\n")


if __name__ == "__main__":
    main()
