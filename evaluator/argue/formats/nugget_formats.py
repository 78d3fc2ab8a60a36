"""Loading nuggets from a file or a folder, in v3 or in one of its sibling formats.

=====================  =========================================================================================
format                 a line or file
=====================  =========================================================================================
v3                     ``{"query_id", "nugget_bank": {...}}``; files are called ``..._TOPIC.v3.json``
RAGTIME 2026 bank      ``{"metadata": {"topic_id", ...}, "nugget_bank": [...]}``; nothing is lost
old                    ``{"query_id", "items": [{"question_text", "gold_answers": [...]}]}``; no documents
reference reports      ``{"request_id", "questions": [[question, [[answer, [documents]], ...]], ...]}``
collaborator map       ``nuggets_TOPIC.json``: ``{question: ["OR", {answer: [documents]}]}``
=====================  =========================================================================================

Nuggetizer files hold statements with their assignments, no questions: see :mod:`evaluator.argue.scoring.nuggetizer`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.formats.lines import Lines, refused
from evaluator.argue.formats.nuggets import MAX_BYTES, SUFFIX, as_v3, bank_of, read_v3, topic_of_name
from evaluator.argue.models import Bank
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.files import files_in
from schemas import Problem
from schemas.jsonl import kind_of

MAX_FILES = 100_000
MAX_LINE = 64 << 20
_LINES = (".jsonl", ".jsonl.gz", ".jsonl.gzip", ".ndjson", ".ndjson.gz")


def load_nuggets(path: Path) -> dict[str, Bank]:
    """The banks of a file or folder by their topic.

    Args:
        path: a file in any of the formats, or a folder of such files.

    Raises:
        EvaluatorError: lists every problem; also for a place that holds no topic.
    """
    banks, problems = read_nuggets(path)
    if problems:
        raise refused(f"the nuggets {path.name} cannot be used", problems)
    if not banks:
        raise EvaluatorError(
            f"the nuggets {path.name} hold no topic",
            f"files are called like nuggets_388{SUFFIX}, or end in .jsonl",
        )
    return banks


def read_nuggets(path: Path) -> tuple[dict[str, Bank], list[Problem]]:
    """The banks by topic, and every problem. In a folder the ``query_id`` inside counts; names have to agree."""
    place = Lines(path.name)
    banks: dict[str, Bank] = {}
    for file in _files(path, place):
        found, problems = _read_file(file)
        place.problems += problems
        for bank in found:
            if bank.topic_id in banks:
                other = schemas.show(banks[bank.topic_id].source, 100)
                twice = Lines(bank.source)
                what = f"has the topic {show(bank.topic_id)}, which {other} has, too"
                twice.add(what, "keep one file per topic")
                place.problems += twice.problems
            else:
                banks[bank.topic_id] = bank
    return banks, place.problems


def _files(path: Path, place: Lines) -> list[Path]:
    if not path.exists():
        place.add("does not exist", f"name a file such as nuggets_388{SUFFIX}, or the folder with such files")
        return []
    if not path.is_dir():
        return [path]
    files = files_in(path, (".json", *_LINES))
    if len(files) > MAX_FILES:
        place.add(f"holds more than {MAX_FILES:,} files")
        return []
    return files


def _read_file(path: Path) -> tuple[list[Bank], list[Problem]]:
    if path.name.endswith(_LINES):
        return _read_lines(path)
    data: Any = None
    if not path.name.endswith(SUFFIX) and path.name.endswith(".json"):
        data = schemas.load_json(path, path.name, max_bytes=MAX_BYTES).data
    if is_collaborator_map(data):
        topic = path.name.removesuffix(".json").rsplit("_", 1)[-1]
        bank, problems = bank_of(from_collaborator(data, topic), path.name)
    else:
        bank, problems = read_v3(path)
    return ([] if bank is None else [bank]), problems


def _read_lines(path: Path) -> tuple[list[Bank], list[Problem]]:
    banks: list[Bank] = []
    lines = Lines(path.name)
    for value in lines.values(path, MAX_LINE):
        data, linked, reason = to_v3(value)
        if data is None:
            lines.add(reason)
            continue
        bank, problems = bank_of(data, path.name, line=lines.line, linked=linked)
        lines.problems += problems
        banks += [] if bank is None else [bank]
    return banks, lines.problems


def to_v3(data: Any) -> tuple[dict[str, Any] | None, bool, str]:
    """One line of any format as v3 data, whether its answers can have documents, and the reason if it is None."""
    if not isinstance(data, dict):
        return None, True, f"there is {kind_of(data)}, not an object"
    if isinstance(data.get("metadata"), dict) and "nugget_bank" in data:
        return from_ragtime(data), True, ""
    if "nugget_bank" in data:
        return data, True, ""
    if isinstance(data.get("items"), list):
        return from_old(data), False, ""
    if isinstance(data.get("questions"), list):
        return from_reference(data), True, ""
    if isinstance(data.get("nuggets"), list):
        return None, True, "it holds statements with assignments (Nuggetizer), not questions with answers"
    return None, True, "it is of no known format: there is no nugget_bank, items or questions"


def from_ragtime(data: Mapping[str, Any]) -> dict[str, Any]:
    """v3 data of one line of a RAGTIME 2026 submission bank; its metadata is kept as it was."""
    metadata = data["metadata"]
    rest = {k: v for k, v in data.items() if k not in ("metadata", "nugget_bank")}
    topic = metadata.get("topic_id")
    return {"query_id": topic, **rest, "metadata": metadata, "nugget_bank": data["nugget_bank"]}


def from_old(data: Mapping[str, Any]) -> dict[str, Any]:
    """v3 data of one line of the old format; its answers never had documents."""
    rows = []
    for item in data["items"]:
        if not isinstance(item, dict):
            rows.append(item)
            continue
        info = item.get("info")
        golden = item.get("gold_answers")
        rows.append(
            {
                "question": item.get("question_text"),
                "question_id": item.get("question_id"),
                "importance": info.get("importance") if isinstance(info, dict) else None,
                "answers": golden if isinstance(golden, list) else [],
            }
        )
    header = {k: v for k, v in data.items() if k not in ("items", "query_id", "query_text")}
    return {
        "query_id": data.get("query_id"),
        "full_query": data.get("query_text"),
        **header,
        "nugget_bank": rows,
    }


def from_reference(data: Mapping[str, Any]) -> dict[str, Any]:
    """v3 data of the questions of a reference report; an answer without documents is kept out by the filter."""
    rows: list[Any] = []
    for entry in data["questions"]:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], list)):
            rows.append(entry)
            continue
        answers: list[Any] = []
        for answer in entry[1]:
            pair = isinstance(answer, list) and len(answer) == 2
            answers.append({"answer": answer[0], "references": answer[1]} if pair else answer)
        rows.append({"question": entry[0], "aggregator_type": "OR", "answers": answers})
    topic = data.get("request_id", data.get("query_id"))
    header = {"collection_ids": data["collection_ids"]} if "collection_ids" in data else {}
    return {"query_id": topic, **header, "nugget_bank": rows}


def is_collaborator_map(data: Any) -> bool:
    """Whether this is an object of questions with pairs of an aggregator and answers."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(isinstance(v, list) and len(v) == 2 and isinstance(v[1], dict) for v in data.values())
    )


def from_collaborator(data: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """v3 data of a collaborator map of one topic."""
    bank = {
        question: {
            "question": question,
            "aggregator_type": pair[0],
            "answers": [{"answer": a, "references": docs} for a, docs in pair[1].items()],
        }
        for question, pair in data.items()
    }
    return {"query_id": topic, "nugget_bank": bank}


def write_v3(banks: Iterable[Bank], folder: Path, prefix: str = "nuggets") -> list[Path]:
    """Write one ``PREFIX_TOPIC.v3.json`` per bank and return the paths.

    Raises :class:`EvaluatorError` for a topic whose id cannot be the end of such a name.
    """
    made = []
    for bank in banks:
        name = f"{prefix}_{bank.topic_id}{SUFFIX}"
        if "/" in bank.topic_id or len(name.encode()) > 255 or topic_of_name(name) != bank.topic_id:
            raise EvaluatorError(
                f"the topic {show(bank.topic_id)} cannot be the end of a file name",
                "it holds an underscore or a slash, or is too long",
            )
        made.append(folder / name)
        text = json.dumps(as_v3(bank), ensure_ascii=False, allow_nan=False, indent=1)
        made[-1].write_text(text + "\n", encoding="utf-8")
    return made
