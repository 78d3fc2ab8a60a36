"""Ends with an error after half of the topics, as programs do that never met an odd query."""

import json
import os
from pathlib import Path

topics = [
    json.loads(line) for line in Path(os.environ["inputDataset"], "queries.jsonl").read_text().splitlines()
]
with Path(os.environ["outputDir"], "run.txt").open("w") as run:
    for number, topic in enumerate(topics):
        if number == len(topics) // 2:
            raise ValueError(f"cannot parse the query of topic number {number}")
        run.write(f"{topic['qid']} Q0 1 1 1.0 crashes\n")
