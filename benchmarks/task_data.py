"""What ``evaluator data`` (``runner task check``) costs on corpora of growing size: memory must not grow with the file.

``python -m benchmarks.task_data [--documents 1000,100000,500000]`` prints a table; half a million documents are 500 MB.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.trec import cost

TEXT = "x" * 1000


def write_dataset(folder: Path, documents: int) -> Path:
    """A dataset with so many documents of 1 KB and 1,000 judgments at most; returns the request for it."""
    for side in ("inputs", "truths"):
        (folder / side).mkdir(parents=True, exist_ok=True)
    with (folder / "inputs/documents.jsonl").open("w") as file:
        file.writelines(f'{{"docno": "doc-{n:08}", "text": "{TEXT}"}}\n' for n in range(documents))
    (folder / "inputs/queries.jsonl").write_text('{"qid": "1", "query": "x"}\n')
    judged = range(0, documents, max(1, documents // 1000))
    (folder / "truths/qrels.txt").write_text("".join(f"1 0 doc-{n:08} 1\n" for n in judged))
    paths = {name: str(folder) for name in ("run", "output")}
    paths |= {name: str(folder / name) for name in ("inputs", "truths")}
    request = {
        "schema_version": 1, "kind": "adhoc", "visibility": "public", "paths": paths, "run_file": "run.txt",
        "topics": "queries.jsonl", "corpus": "documents.jsonl",
        "measures": [{"id": "ap", "measure": "AP", "truths": "qrels.txt"}],
    }  # fmt: skip
    path = folder / "request.json"
    path.write_text(json.dumps(request))
    return path


def main() -> int:
    """Print one table, as Markdown; 1 when memory grew by more than 32 bytes for each document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.task_data")
    parser.add_argument("--documents", default="1000,100000,500000")
    counts = [int(text) for text in parser.parse_args().documents.split(",")]
    print("| documents | MiB | CPU s | peak MiB |\n|---|---|---|---|")
    peaks = []
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="task-data-") as scratch:
            request = write_dataset(Path(scratch), count)
            size = (Path(scratch) / "inputs/documents.jsonl").stat().st_size / 2**20
            seen = cost([sys.executable, "-m", "evaluator", "data", "--request", str(request)])
        peaks.append(seen.peak)
        print(f"| {count:,} | {size:,.0f} | {seen.cpu:.1f} | {seen.peak:.0f} |")
    grown = (peaks[-1] - peaks[0]) * 2**20
    if grown > 32 * counts[-1] + 32 * 2**20:
        print(f"GOAL MISSED: memory grew by {grown / counts[-1]:.0f} bytes for each document")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
