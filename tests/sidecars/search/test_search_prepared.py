from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecars.search.api import Api
from sidecars.search.errors import DataError
from sidecars.search.prepared import open_collection, prepare
from tests.worlds.search_arguments import ARGUMENTS, VECTOR_FIELDS, argument, write
from tests.worlds.search_parts import Asked

PREPARED = "from prepared files"  # the note of an index that was not made again


def opened(folder: Path) -> tuple[bool, list[Any]]:
    """Return whether prepared files were used, and everything that the index answers."""
    with open_collection(folder) as collection:
        ask = Asked(Api(collection, "claimrev", "/arguments"))
        found = ask.search({"query": {"match": {"text": "cars"}}, "min_score": 0.01})["hits"]["hits"]
        knn = {"field": VECTOR_FIELDS[1], "query_vector": [1, 2, 3, 4], "k": 3}
        near = ask.search({"knn": knn})["hits"]["hits"] if collection.matrices else []
        everything = ask.search({"size": 100})["hits"]["hits"]
        return collection.note == PREPARED, [found, near, everything]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The six arguments of the tests, and their vectors."""
    return write(tmp_path / "data")


def test_prepared_or_not_the_answers_are_the_same(folder: Path) -> None:
    is_prepared, before = opened(folder)
    assert not is_prepared
    for _ in range(2):
        assert prepare(folder)["arguments"] == 6
        assert opened(folder) == (True, before)
    names = ["arguments.jsonl", "prepared", *(f"{field}.npy" for field in VECTOR_FIELDS)]
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


def test_a_prepared_folder_can_be_moved(folder: Path, tmp_path: Path) -> None:
    _, before = opened(folder)
    prepare(folder)
    folder.rename(tmp_path / "moved")
    assert opened(tmp_path / "moved") == (True, before)


def test_packed_arguments(folder: Path) -> None:
    _, before = opened(folder)
    text = (folder / "arguments.jsonl").read_bytes()
    (folder / "arguments.jsonl").unlink()
    (folder / "arguments.jsonl.gz").write_bytes(gzip.compress(text))
    assert opened(folder) == (False, before)
    prepare(folder)
    assert opened(folder) == (True, before)


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    prepare(folder)
    modes = {path.stat().st_mode & 0o777 for path in (folder / "prepared").rglob("*")}
    assert modes == {0o644, 0o755}
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert opened(folder)[0]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_files_that_were_prepared_from_other_data_are_not_used(folder: Path) -> None:
    prepare(folder)
    about = json.loads((folder / "prepared" / "prepared.json").read_text())
    with (folder / "arguments.jsonl").open("a") as file:
        file.write("\n")
    assert not opened(folder)[0]
    write(folder)
    assert opened(folder)[0]
    matrix = np.load(folder / f"{VECTOR_FIELDS[2]}.npy")
    np.save(folder / f"{VECTOR_FIELDS[2]}.npy", matrix[::-1].copy())
    assert not opened(folder)[0]
    write(folder)
    for change in ({"analysis": 0}, {"format": 99}, {"fields": None}):
        (folder / "prepared" / "prepared.json").write_text(json.dumps({**about, **change}))
        assert not opened(folder)[0]
    (folder / "prepared" / "prepared.json").write_text("{")
    assert not opened(folder)[0]


def test_prepared_files_that_are_broken_are_an_error(folder: Path) -> None:
    prepare(folder)
    (folder / "prepared" / "text" / "meta.json").unlink()
    with pytest.raises(DataError):
        open_collection(folder)


def test_a_failed_preparation_leaves_nothing_and_keeps_what_was_there(folder: Path) -> None:
    prepare(folder)
    (folder / "arguments.jsonl").write_text('{"id": 1}\n')
    names = sorted(p.name for p in folder.iterdir())
    with pytest.raises(DataError):
        prepare(folder)
    assert sorted(p.name for p in folder.iterdir()) == names


def problems(folder: Path) -> list[str]:
    """Return the problems for which a folder cannot be opened, without its path."""
    with pytest.raises(DataError) as caught:
        open_collection(folder)
    return [problem.removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_every_wrong_line_of_the_arguments_is_reported(tmp_path: Path) -> None:
    (tmp_path / "arguments.jsonl").write_text(
        '{"id": "1"}\n\nnope\n[]\n{"id": 7}\n{"id": "1"}\n{"id": "a\\u001b"}\n{"id": "2", "x": NaN}\n'
        '{"id": "3", "x": 1e999}\n{"id": ""}\n' + "[" * 100_000 + "\n"
    )
    assert [problem.split(":")[1] for problem in problems(tmp_path)] == [str(line) for line in range(3, 12)]


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"a.b": "text"}, ["a.b"]),
        ({"": "text"}, ["''"]),
        ({f"f{i}": "x" for i in range(70)}, ["78", "64"]),
    ],
)
def test_fields_that_cannot_be_searched(tmp_path: Path, change: dict[str, str], values: list[str]) -> None:
    folder = write(tmp_path / "data", [argument("1", "a", references=["b"], **change)], vectors=False)
    [problem] = problems(folder)
    assert all(value in problem for value in values)


def test_files_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    np.save(folder / "text.npy", np.zeros((6, 2), "f4"))
    np.save(folder / "short.npy", np.zeros((5, 2), "f4"))
    names_and_numbers = [re.findall(r"\w+\.npy|\d+", problem) for problem in problems(folder)]
    assert names_and_numbers == [["short.npy", "5", "6"], ["text.npy"]]
    arguments, packed = folder / "arguments.jsonl", folder / "arguments.jsonl.gz"
    packed.write_bytes(b"\x1f\x8b")
    assert len(problems(folder)) == 1, "there are two files of arguments"
    arguments.unlink()
    assert len(problems(folder)) == 1, "one is damaged"
    packed.write_bytes(gzip.compress(b"\n\n"))
    assert len(problems(folder)) == 1, "it holds nothing"
    packed.unlink()
    arguments.write_text('{"id": "1", "text": "' + "x" * (1 << 20) + '"}\n')
    assert problems(folder)[0].startswith("arguments.jsonl:1:")


def test_other_fields_come_back_as_they_are(tmp_path: Path) -> None:
    more = {"nested": {"a": [1, {"b": None}]}, "number": 1.5, "mixed": ["a", 1], "half": "\ud800"}
    (tmp_path / "arguments.jsonl").write_text(json.dumps({**ARGUMENTS[0], **more}) + "\n")
    _, [_, _, [hit]] = opened(tmp_path)
    assert hit["_source"] == {**ARGUMENTS[0], **more}


def test_four_thousand_arguments_are_ready_after_four_seconds_of_processor_time(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    words = [f"word{i}" for i in range(3000)]
    arguments = [argument(f"{i}", " ".join(random.choice(words, 29))) for i in range(4000)]
    folder = write(tmp_path / "data", arguments, vectors=False)
    began = os.times().user
    with open_collection(folder) as collection:
        assert collection.text.count == 4000
    assert os.times().user - began < 4, "processor time, because other tests run at the same time"
