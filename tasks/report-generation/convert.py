"""Make this task's datasets from the documents of the Cranfield collection and the files in topics/.

    python tasks/report-generation/convert.py SOURCE [DEST]

SOURCE is ``corpus.jsonl.gz`` (README.md says from where, and its SHA-256); DEST defaults to ``datasets/`` beside this
file. For every split it writes ``inputs/documents.jsonl.gz`` (id, title, text), ``inputs/requests.jsonl`` and
``truths/nuggets/nuggets_<topic>.v3.json``. The same source gives the same bytes with the same zlib.

Texts lose their line breaks, and the title that the source repeats at their beginning; nothing else is changed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
DOCUMENTS = 1_400  # of the complete collection
COLLECTION = "cranfield"
REQUEST = ("title", "background", "problem_statement", "limit")
CREATOR = [{"is_human": False, "format": "v3"}]  # no assessor has seen them: README.md

Topic = Mapping[str, Any]


def read_documents(source: Path) -> list[dict[str, str]]:
    """The documents in file order. Raises ValueError when it is not the complete collection."""
    found = []
    with gzip.open(source, "rb") as lines:
        for line in lines:
            original = json.loads(line)["original_document"]
            title, text = (" ".join(original[key].split()) for key in ("title", "text"))
            while title and text.startswith(title):
                text = text.removeprefix(title).strip()
            found.append({"id": original["doc_id"], "title": title, "text": text})
    if len(found) != DOCUMENTS:
        raise ValueError(f"expected {DOCUMENTS:,} documents, found {len(found):,}")
    return found


def read_topics(folder: Path) -> list[Topic]:
    """The topics with their nuggets, in the order of their ids."""
    topics = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("*.yaml")]
    return sorted(topics, key=lambda topic: int(topic["id"]))


def request(topic: Topic) -> dict[str, Any]:
    """What software is shown of a topic."""
    shown = {key: topic[key] for key in REQUEST}
    return {"request_id": topic["id"], "collection_ids": [COLLECTION], **shown}


def bank(topic: Topic) -> dict[str, Any]:
    """The nuggets of a topic in the v3 form; wrong answers become answers that no document attests."""
    nuggets = {}
    for nugget in topic["nuggets"]:
        question = nugget["q"]
        answers = {**nugget["answers"], **{text: [] for text in nugget.get("wrong", [])}}
        nuggets[question] = {
            "question": question,
            "question_id": hashlib.md5(question.encode(), usedforsecurity=False).hexdigest(),
            "query_id": topic["id"],
            "aggregator_type": nugget.get("type", "OR"),
            "importance": nugget["importance"],
            "answers": {
                text: {"answer": text, "references": [{"doc_id": str(one)} for one in documents]}
                for text, documents in answers.items()
            },
        }
    if len(nuggets) != len(topic["nuggets"]):
        raise ValueError(f"topic {topic['id']} has a question twice")
    return {
        "query_id": topic["id"],
        "title_query": topic["title"],
        "full_query": topic["problem_statement"],
        "full_background": topic["background"],
        "test_collection": COLLECTION,
        "format_version": "v3",
        "creator": CREATOR,
        "nugget_bank": nuggets,
    }


def lines(rows: list[dict[str, Any]]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def files(source: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the datasets: its path below DEST, and what it holds."""
    packed = gzip.compress(lines(read_documents(source)).encode(), compresslevel=9, mtime=0)
    topics = read_topics(HERE / "topics")
    for split in ("train", "test"):
        chosen = [topic for topic in topics if topic["split"] == split]
        yield f"{split}/inputs/documents.jsonl.gz", packed
        yield f"{split}/inputs/requests.jsonl", lines([request(topic) for topic in chosen]).encode()
        for topic in chosen:
            text = json.dumps(bank(topic), ensure_ascii=False, indent=1) + "\n"
            yield f"{split}/truths/nuggets/nuggets_{topic['id']}.v3.json", text.encode()


def main(arguments: list[str]) -> int:
    """Command line: SOURCE [DEST]. Exit code 0 when written, 1 for a wrong source, 2 for a wrong call."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    dest = Path(arguments[1]) if len(arguments) == 2 else HERE / "datasets"
    try:
        made = dict(files(Path(arguments[0])))
    except (OSError, ValueError, KeyError) as error:
        print(f"convert: {error}", file=sys.stderr)
        return 1
    for name, content in made.items():
        (dest / name).parent.mkdir(parents=True, exist_ok=True)
        (dest / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
