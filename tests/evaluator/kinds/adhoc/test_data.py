"""``evaluator data``: topics, corpus and judgments read against one another, by file and line, all at once."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.task_data import write_dataset
from benchmarks.trec import cost
from evaluator.__main__ import main

TOPICS = '{"qid": "1"}\n{"qid": "2"}\n'
CORPUS = "d1\nd2\nd3\n"


Read = Callable[..., dict[str, Any]]


@pytest.fixture
def read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Read:
    """Return a function that writes a dataset and returns what ``evaluator data`` prints of it."""

    def write_and_read(
        qrels: str | bytes,
        topics: str | bytes = TOPICS,
        corpus: str | bytes = CORPUS,
        folder: Path = tmp_path,
    ) -> dict[str, Any]:
        contents = {"inputs/topics.jsonl": topics, "inputs/corpus.txt": corpus, "truths/qrels.txt": qrels}
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        paths = {"run": str(folder), "output": str(folder)}
        paths |= {side: str(folder / side) for side in ("inputs", "truths")}
        request = {
            "schema_version": 1, "kind": "adhoc", "visibility": "blinded", "paths": paths, "run_file": "run.txt",
            "topics": "topics.jsonl", "corpus": "corpus.txt",
            "measures": [{"id": "ap", "measure": "AP", "truths": "qrels.txt"}],
        }  # fmt: skip
        (folder / "request.json").write_text(json.dumps(request))
        assert main(["data", "--request", str(folder / "request.json")]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return write_and_read


QRELS = "truths/qrels.txt"


def places(found: dict[str, Any], *, grave: bool = True) -> list[tuple[str, int | None]]:
    return [(one["file"], one["line"]) for one in found["problems"] if one["grave"] is grave]


def test_good_data_give_statistics_alone(read: Read) -> None:
    found = read("1 0 d1 1\n1 0 d2 0\n2 0 d3 2\n")
    assert found["checked"] is True and found["problems"] == []
    counts = {"topics": 2, "documents": 3}
    truths = {"file": "qrels.txt", "judgments": 3, **counts, "grades": {"0": 1, "1": 1, "2": 1}}
    assert found["statistics"] == {**counts, "nouns": {}, "truths": [truths]}


def test_everything_wrong_with_judgments_is_said_at_once(read: Read) -> None:
    found = read("1 0 d1 1\n1 d2 0\n1 0 d2 nan\n9 0 d2 1\n1 0 d7 1\n1 0 d1 2\n1 0 d3 -1\n")
    assert places(found) == [(QRELS, line) for line in (2, 3, 4, 6)]
    assert places(found, grave=False) == [("inputs/topics.jsonl", 2), (QRELS, 5), (QRELS, 7)]
    numbers = {(one["file"], one["line"]): re.findall(r"\d+", one["what"]) for one in found["problems"]}
    assert numbers[QRELS, 4][0] == "9" and numbers[QRELS, 5][:2] == ["1", "4"] and "1" in numbers[QRELS, 6]


def test_the_same_judgment_twice_is_only_a_warning(read: Read) -> None:
    found = read("1 0 d1 1\n1 0 d1 1\n2 0 d1 1\n")
    assert places(found) == [] and places(found, grave=False) == [(QRELS, 2)]


def test_topics_and_documents_that_stand_twice_or_have_no_id(read: Read) -> None:
    topics = '{"qid": "1"}\nno JSON\n{"qid": "2"}\n{"text": "x"}\n{"qid": "1"}\n'
    corpus = gzip.compress(b'{"docno": "d1"}\n{"docno": "d2"}\n{}\n{"docno": "d1"}\n')
    found = read("1 0 d1 1\n2 0 d2 1\n", topics, corpus)
    expected = [("inputs/corpus.txt", 3)]
    assert places(found) == expected + [("inputs/topics.jsonl", line) for line in (2, 4, 5)]
    assert places(found, grave=False) == [("inputs/corpus.txt", 4)]
    assert found["statistics"]["documents"] == 3


def test_many_of_one_sort_are_counted_and_not_listed(read: Read) -> None:
    found = read("1 0 d1 1\n2 0 d1 1\n" + "".join(f"1 0 x{i}\n" for i in range(1000)))
    assert len(found["problems"]) == 5 and " 995 " in found["problems"][-1]["what"]


def test_a_later_version_of_the_corpus_is_only_a_warning(read: Read) -> None:
    """As in TREC-COVID: its list of documents repeats ids, and its last version lacks judged documents."""
    found = read("1 0 d1 1\n1 0 d8 0\n2 0 d9 1\n", corpus="d1\nd2\nd3\nd2\n")
    assert places(found) == []
    assert places(found, grave=False) == [("inputs/corpus.txt", 4), (QRELS, 2)]


def test_another_corpus_than_the_judged_one_is_an_error(read: Read) -> None:
    found = read("1 0 x1 1\n2 0 x2 1\n")
    assert places(found) == [(QRELS, 1)]


def test_of_truths_only_ids_are_named(read: Read) -> None:
    found = read("1 0 d1 77.5\n1 secret 78\n")
    assert places(found) and not any(text in json.dumps(found) for text in ("77", "78", "secret"))


@pytest.mark.parametrize("damaged", [b"\x1f\x8b damaged", b""])
def test_files_that_cannot_be_read_are_problems_too(read: Read, damaged: bytes) -> None:
    found = read(damaged, topics="", corpus=damaged)
    assert {file for file, _ in places(found)} == {QRELS, "inputs/topics.jsonl", "inputs/corpus.txt"}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"PK\x03\x04\x14\0\0\0\x08\0__MACOSX", "zip"),
        (b"\xfd7zXZ\0\0\x04", "xz"),
        ("1 0 d1 1\n".encode("utf-16"), "UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "LFS"),
        (b"<!DOCTYPE html>\n<html><body>Sign in\n</body></html>", "HTML"),
    ],
)
def test_files_of_another_sort_are_named_in_one_problem(read: Read, content: bytes, word: str) -> None:
    found = read(content, topics=content)
    for file in (QRELS, "inputs/topics.jsonl"):
        (problem,) = [one for one in found["problems"] if one["file"] == file]
        assert word in problem["what"] and problem["line"] is None


def test_sampled_judgments_are_named(read: Read) -> None:
    found = read("1 d1 2 1 0.25\n1 0 d1 2 x\n")
    named = [one["line"] for one in found["problems"] if "prel" in one["what"]]
    assert named == [1] and {1, 2} <= {one["line"] for one in found["problems"]}


def test_several_requests_are_answered_in_order(
    read: Read, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = {"good": "1 0 d1 1\n", "bad": "1 0 d9 1\n"}
    alone = [read(qrels, folder=tmp_path / name) for name, qrels in contents.items()]
    options = [word for name in contents for word in ("--request", str(tmp_path / name / "request.json"))]
    assert main(["data", *options]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == alone


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """40 times the bytes, and no more than a few MiB of memory beside one piece of the file."""
    peaks = []
    for count in (1_000, 40_000):
        request = write_dataset(tmp_path / str(count), count)
        peaks.append(cost([sys.executable, "-m", "evaluator", "data", "--request", str(request)]).peak)
    assert (tmp_path / "40000/inputs/documents.jsonl").stat().st_size > 40_000_000
    assert peaks[1] - peaks[0] < 30, peaks
