"""Turn the papers of ACLSum into this task's datasets.

    python tasks/acl-outcomes/convert.py aclsum/dataset [DEST]

The folder lies in the package aclsum 0.1.2 on PyPI; DEST defaults to ``datasets/`` beside this file. ``dev`` are its splits train
and val, ``test`` is its test. Only papers of 2016 and later are taken: older ones have another licence (README.md). The
output is a function of the source alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SPLITS = {"dev": ("train", "val"), "test": ("test",)}
PAPERS = {"dev": 70, "test": 42}
FIRST_YEAR = 2016


def year(paper: str) -> int:
    """The year in an identifier of the ACL Anthology, such as 2020.acl-main.47 or P19-1306."""
    if paper[:4].isdigit():
        return int(paper[:4])
    short = int(paper[1:3])
    return 1900 + short if short > 50 else 2000 + short


def main(source: Path, target: Path) -> None:
    for dataset, splits in SPLITS.items():
        lines = [line for split in splits for line in (source / f"{split}.jsonl").open(encoding="utf-8")]
        papers = [paper for paper in map(json.loads, lines) if year(paper["id"]) >= FIRST_YEAR]
        if len(papers) != PAPERS[dataset]:
            raise SystemExit(f"{source} is not what the README names: {len(papers)} papers for {dataset}")
        sides = {
            "inputs": [
                {"id": p["id"], "title": p["title"], "abstract": " ".join(p["sentences"]["abstract"])}
                for p in papers
            ],
            "truths": [{"id": p["id"], "outcome": p["summary"]["outcome"]} for p in papers],
        }
        for side, rows in sides.items():
            path = target / dataset / side / "abstracts.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    here = Path(__file__).parent
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else here / "datasets")
