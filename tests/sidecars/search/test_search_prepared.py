from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sidecars.search.api import Api
from sidecars.search.errors import DataError
from sidecars.search.prepared import open_collection, prepare
from tests.worlds.search_arguments import ARGUMENTS, VECTOR_FIELDS, argument, write
from tests.worlds.search_parts import Asked


def opened(folder: Path) -> tuple[str, list[Any]]:
    """How a folder was opened, and everything that is in it."""
    with open_collection(folder) as collection:
        ask = Asked(Api(collection, "claimrev", "/arguments"))
        found = ask.search({"query": {"match": {"text": "cars"}}, "min_score": 0.01})["hits"]["hits"]
        knn = {"field": VECTOR_FIELDS[1], "query_vector": [1, 2, 3, 4], "k": 3}
        near = ask.search({"knn": knn})["hits"]["hits"] if collection.matrices else []
        everything = ask.search({"size": 100})["hits"]["hits"]
        return collection.note, [found, near, everything]


def test_prepared_or_not_the_answers_are_the_same(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    note, before = opened(folder)
    assert note == "indexed now (nothing is prepared)"
    told = prepare(folder, folder)
    assert told["arguments"] == 6
    assert opened(folder) == ("from prepared files", before)
    assert prepare(folder, folder)["arguments"] == 6
    assert opened(folder) == ("from prepared files", before)
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["arguments.jsonl", "prepared", *(f"{field}.npy" for field in VECTOR_FIELDS)]
    )


def test_into_another_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    _, before = opened(folder)
    prepare(folder, tmp_path / "out")
    assert not (folder / "prepared").exists()
    shutil.rmtree(folder)
    assert opened(tmp_path / "out") == ("from prepared files", before)
    (tmp_path / "out").rename(tmp_path / "moved")
    assert opened(tmp_path / "moved") == ("from prepared files", before)


def test_matrices_in_half_precision(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    prepare(folder, tmp_path / "out", "float16")
    matrix = np.load(tmp_path / "out" / f"{VECTOR_FIELDS[0]}.npy")
    assert matrix.dtype == np.float16
    _, [_, before, _] = opened(folder)
    note, [_, after, _] = opened(tmp_path / "out")
    assert note == "from prepared files"
    assert [hit["_id"] for hit in after] == [hit["_id"] for hit in before]
    assert [hit["_score"] for hit in after] == pytest.approx([hit["_score"] for hit in before], abs=1e-3)
    with pytest.raises(DataError, match="in place"):
        prepare(folder, folder, "float16")


@pytest.mark.parametrize("where", ["data", "out"])
def test_packed_arguments(tmp_path: Path, where: str) -> None:
    folder = write(tmp_path / "data")
    _, before = opened(folder)
    text = (folder / "arguments.jsonl").read_bytes()
    (folder / "arguments.jsonl").unlink()
    (folder / "arguments.jsonl.gz").write_bytes(gzip.compress(text))
    assert opened(folder) == ("indexed now (nothing is prepared)", before)
    prepare(folder, tmp_path / where)
    assert opened(tmp_path / where) == ("from prepared files", before)


def test_from_a_folder_that_nobody_may_write(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    prepare(folder, folder)
    modes = {path.stat().st_mode & 0o777 for path in (folder / "prepared").rglob("*")}
    assert modes == {0o644, 0o755}
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert opened(folder)[0] == "from prepared files"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_what_was_prepared_from_something_else_is_not_used(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    prepare(folder, folder)
    about = json.loads((folder / "prepared" / "prepared.json").read_text())
    with (folder / "arguments.jsonl").open("a") as file:
        file.write("\n")
    assert opened(folder)[0] == "indexed now (what is prepared was made from other arguments)"
    write(folder)
    assert opened(folder)[0] == "from prepared files"
    matrix = np.load(folder / f"{VECTOR_FIELDS[2]}.npy")
    np.save(folder / f"{VECTOR_FIELDS[2]}.npy", matrix[::-1].copy())
    assert opened(folder)[0] == "indexed now (what is prepared was made from other vectors)"
    write(folder)
    for change, note in [
        ({"analysis": 0}, "made from other analysis"),
        ({"format": 99}, "made from other format"),
        ({"fields": None}, "is damaged"),
    ]:
        (folder / "prepared" / "prepared.json").write_text(json.dumps({**about, **change}))
        assert note in opened(folder)[0]
    (folder / "prepared" / "prepared.json").write_text("{")
    assert "cannot be read" in opened(folder)[0]


def test_prepared_files_that_are_broken_are_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    prepare(folder, folder)
    (folder / "prepared" / "text" / "meta.json").unlink()
    with pytest.raises(DataError, match="cannot be opened"):
        open_collection(folder)


def test_a_failed_preparation_leaves_nothing_and_keeps_what_was_there(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    prepare(folder, folder)
    (folder / "arguments.jsonl").write_text('{"id": 1}\n')
    names = sorted(p.name for p in folder.iterdir())
    with pytest.raises(DataError):
        prepare(folder, folder)
    assert sorted(p.name for p in folder.iterdir()) == names


def test_all_that_is_wrong_with_the_arguments_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "arguments.jsonl").write_text(
        '{"id": "1"}\n\nnope\n[]\n{"id": 7}\n{"id": "1"}\n{"id": "a\\u001b"}\n{"id": "2", "x": NaN}\n'
        '{"id": "3", "x": 1e999}\n{"id": ""}\n' + "[" * 100_000 + "\n"
    )
    with pytest.raises(DataError) as caught:
        open_collection(tmp_path)
    lines = [
        problem.removeprefix(f"{tmp_path}/arguments.jsonl:").split(":")[0]
        for problem in caught.value.problems
    ]
    assert lines == ["3", "4", "5", "6", "7", "8", "9", "10", "11"]
    assert "id 1 is there twice" in caught.value.problems[3]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"a.b": "text"}, "'a.b' cannot be the name of a searchable field"),
        ({"": "text"}, "'' cannot be the name"),
        ({f"f{i}": "x" for i in range(70)}, "78 searchable fields; 64 is the most"),
    ],
)
def test_fields_that_cannot_be_searched(tmp_path: Path, change: dict[str, str], what: str) -> None:
    folder = write(tmp_path / "data", [argument("1", "a", references=["b"], **change)], vectors=False)
    with pytest.raises(DataError, match=what):
        open_collection(folder)


def test_other_mistakes(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    np.save(folder / "text.npy", np.zeros((6, 2), "f4"))
    np.save(folder / "short.npy", np.zeros((5, 2), "f4"))
    with pytest.raises(DataError) as caught:
        open_collection(folder)
    assert [p.rpartition("/")[2] for p in caught.value.problems] == [
        "short.npy: 5 rows, but the folder holds 6 arguments",
        "text.npy: 'text' cannot be the name of a field of vectors",
    ]
    (folder / "arguments.jsonl.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(DataError, match="both"):
        open_collection(folder)
    (folder / "arguments.jsonl").unlink()
    with pytest.raises(DataError, match="cannot be unpacked"):
        open_collection(folder)
    (folder / "arguments.jsonl.gz").write_bytes(gzip.compress(b"\n\n"))
    with pytest.raises(DataError, match="no arguments"):
        open_collection(folder)


def test_a_line_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "arguments.jsonl").write_text('{"id": "1", "text": "' + "x" * (1 << 20) + '"}\n')
    with pytest.raises(DataError, match=r"arguments.jsonl:1: longer than"):
        open_collection(tmp_path)


def test_other_fields_come_back_as_they_are(tmp_path: Path) -> None:
    more = {"nested": {"a": [1, {"b": None}]}, "number": 1.5, "mixed": ["a", 1], "half": "\ud800"}
    (tmp_path / "arguments.jsonl").write_text(json.dumps({**ARGUMENTS[0], **more}) + "\n")
    _, [_, _, [hit]] = opened(tmp_path)
    assert hit["_source"] == {**ARGUMENTS[0], **more}


def test_four_thousand_arguments_are_ready_in_two_seconds(tmp_path: Path) -> None:
    import time

    random = np.random.default_rng(1)
    words = [f"word{i}" for i in range(3000)]
    arguments = [argument(f"{i}", " ".join(random.choice(words, 29))) for i in range(4000)]
    folder = write(tmp_path / "data", arguments, vectors=False)
    began = os.times()
    began_wall = time.monotonic()
    with open_collection(folder) as collection:
        assert collection.text.count == 4000
    used = os.times()
    # Processor time, since other tests run beside this one.
    assert used.user - began.user < 4
    assert time.monotonic() - began_wall < 20
