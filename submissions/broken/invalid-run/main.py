"""Writes a run file with mistakes that run files really have."""

import json
import os
from pathlib import Path

topics = [
    json.loads(line)["qid"]
    for line in Path(os.environ["inputDataset"], "queries.jsonl").read_text().splitlines()
]
lines = []
for topic in topics:
    lines.append(f"{topic} Q0 1 1 0.9 invalid-run")
    lines.append(f"{topic} Q0 1 2 0.8 invalid-run")  # the same document again
lines.append("999999 Q0 1 1 0.9 invalid-run")  # a topic that does not exist
lines.append(f"{topics[0]} Q0 no-such-document 3 0.7 invalid-run")
lines.append(f"{topics[0]} Q0 2 4 nan invalid-run")  # not a score
lines.append(f"{topics[0]} Q0 3 5 0.5")  # no run tag
Path(os.environ["outputDir"], "run.txt").write_text("\n".join(lines) + "\n")
