"""What the misbehaving softwares share: a run that is fine, to be spoiled by each in its own way."""

# ruff: noqa: SIM112  (the names of the variables are the platform's)

import gzip
import json
import os

INPUT = os.environ.get("inputDataset", "")
OUTPUT = os.environ.get("outputDir", "")
TAG = "case"


def topics() -> list[str]:
    """The topics' ids."""
    with open(f"{INPUT}/queries.jsonl", encoding="utf-8") as lines:
        return [json.loads(line)["qid"] for line in lines]


def documents() -> list[str]:
    """The documents' ids."""
    with gzip.open(f"{INPUT}/documents.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["docno"] for line in lines]


def good_lines(depth: int = 10) -> list[str]:
    """The lines of a valid run: the first documents for every topic."""
    chosen = documents()[:depth]
    return [
        f"{topic} Q0 {document} {rank} {depth - rank + 1} {TAG}"
        for topic in topics()
        for rank, document in enumerate(chosen, start=1)
    ]


def write(content: "bytes | str | list[str]", name: str = "run.txt") -> None:
    """Write lines, text or bytes into the output directory."""
    if isinstance(content, list):
        content = "".join(line + "\n" for line in content)
    if isinstance(content, str):
        content = content.encode()
    with open(f"{OUTPUT}/{name}", "wb") as file:
        file.write(content)


if __name__ == "__main__":
    print("\n".join(good_lines()))
