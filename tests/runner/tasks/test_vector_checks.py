"""What ``runner task check`` says of the vectors in a service's data, from their headers; as strict as the index."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.model.sidecars import services_of_tasks
from runner.tasks.check_data import task_problems
from runner.tasks.check_services import vector_problems
from runner.tasks.load import load_task
from schemas.vectors import MAX_DIMENSIONS
from sidecars.search.errors import DataError
from sidecars.search.vectors import Matrix
from tests.worlds import definitions

LINES = b'{"id": "1"}\n\n{"id": "2"}\n{"id": "3"}'
F2 = np.float16
BROKEN = r"of search: .*\.npy.* \(.+\)$"  # with the error of numpy


def folder(tmp_path: Path, matrix: np.ndarray[Any, Any] | bytes) -> Path:
    (tmp_path / "arguments.jsonl").write_bytes(LINES)
    if isinstance(matrix, bytes):
        (tmp_path / "text.npy").write_bytes(matrix)
    else:
        np.save(tmp_path / "text.npy", matrix)
    return tmp_path


def said(data: Path) -> list[tuple[str, str]]:
    return list(vector_problems("search", {path.name: path for path in data.iterdir() if path.is_file()}))


CASES = [
    (np.zeros((3, 4), dtype=F2), ""),
    (np.zeros((3, MAX_DIMENSIONS), dtype=np.float32), ""),
    (np.zeros((2, 4), dtype=F2), r"2 .* 3 "),
    (np.zeros((4, 4), dtype=F2), r"4 .* 3 "),
    (np.zeros((3, 4)), "float64"),
    (np.zeros((3, 4), dtype=">f4"), ">f4"),
    (np.zeros(3, dtype=F2), r"\(3,\)"),
    (np.asfortranarray(np.zeros((3, 4), dtype=F2)), r"\(3, 4\)"),
    (np.zeros((3, MAX_DIMENSIONS + 1), dtype=F2), "4097 .* 4096 "),
    (b"version https://git-lfs.github.com/spec/v1\n", BROKEN),
    (b"", BROKEN),
    (np.array([[{}], [{}], [{}]]), BROKEN),
]


@pytest.mark.parametrize(("matrix", "says"), CASES)
def test_what_the_index_would_refuse_is_said_before(tmp_path: Path, matrix: Any, says: str) -> None:
    data = folder(tmp_path, matrix)
    found = said(data)
    if not says:
        assert found == []
        Matrix.open(data / "text.npy", 3)
        return
    (problem,) = found
    assert problem[0].startswith("text.npy of search") and re.search(says, problem[0])
    assert "numpy" in problem[1], "a way to mend it"
    with pytest.raises(DataError):
        Matrix.open(data / "text.npy", 3)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    data = folder(tmp_path, np.zeros((3, 4), dtype=F2))
    whole = (data / "text.npy").read_bytes()
    (data / "text.npy").write_bytes(whole[:-1])
    (problem,) = said(data)
    assert re.search(BROKEN, problem[0])


def test_only_headers_are_read(tmp_path: Path) -> None:
    """A matrix of 2 TiB that has no block on the disk is looked at like any other."""
    data = folder(tmp_path, np.zeros((3, 4), dtype=F2))
    header = {"descr": "<f2", "fortran_order": False, "shape": (2**28, 4096)}
    with (data / "text.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        file.truncate(file.tell() + 2**41)
    assert f"{2**28} " in said(data)[0][0]


def test_packed_arguments_are_counted_as_well(tmp_path: Path) -> None:
    data = folder(tmp_path, np.zeros((2, 4), dtype=F2))
    (data / "arguments.jsonl").unlink()
    (data / "arguments.jsonl.gz").write_bytes(gzip.compress(LINES))
    assert re.search(r"2 .*arguments\.jsonl\.gz.* 3 ", said(data)[0][0])
    (data / "arguments.jsonl.gz").write_bytes(gzip.compress(LINES)[:-9])
    assert "arguments.jsonl.gz of search" in said(data)[0][0]


def test_what_is_prepared_and_other_files_are_not_vectors(tmp_path: Path) -> None:
    data = folder(tmp_path, np.zeros((3, 4), dtype=F2))
    files = {path.name: path for path in data.iterdir()}
    assert list(vector_problems("user", {**files, "prepared/offsets.npy": data / "arguments.jsonl"})) == []


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(tmp_path_factory: pytest.TempPathFactory, rest: bytes) -> None:
    data = folder(tmp_path_factory.mktemp("fuzz"), b"\x93NUMPY\x01\x00" + rest)
    assert len(said(data)) == 1


@given(
    st.sampled_from(["descr", "shape", "fortran_order"]),
    st.sampled_from(["-1", "(-3, 4)", "(3, 10**30)", "'<f2'", "'O'", "()", "(3, 4, 5)", "None", "(True, 4)", "[('a', '<f2')]"]),
)  # fmt: skip
def test_any_header_gets_an_answer(tmp_path_factory: pytest.TempPathFactory, key: str, value: str) -> None:
    fields = {"descr": "'<f2'", "fortran_order": "False", "shape": "(3, 4)"} | {key: value}
    text = "{" + ", ".join(f"'{k}': {v}" for k, v in fields.items()) + "}"
    head = text.ljust(117).encode() + b"\n"
    data = folder(
        tmp_path_factory.mktemp("fuzz"),
        b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(24),
    )
    assert len(said(data)) == (0 if (key, value) == ("descr", "'<f2'") else 1)


def test_task_check_names_file_and_both_numbers(tmp_path: Path) -> None:
    config = definitions.project(tmp_path)
    services = {name: {"data": "services/arguments"} for name in ("search", "user")}
    path = definitions.write_task(
        config,
        workflow="interactive",
        output="simulations.jsonl",
        interaction={"mode": "debate"},
        services=services,
    )
    for dataset in ("dev", "test"):
        (path / f"datasets/{dataset}/inputs/claims.jsonl").write_text('{"id": "1", "claim": "x"}\n')
    data = path / "services/arguments"
    data.mkdir(parents=True)
    folder(data, np.zeros((2, 4), dtype=F2))
    found = [str(p) for p in task_problems(load_task(config, "toy"), config) if "rows" in str(p)]
    assert len(found) == 2 and all("tasks/toy/task.yaml:" in line for line in found)
    assert re.search(r"text\.npy of search: 2 .* 3 ", found[0])


def test_services_with_vectors_exist() -> None:
    assert {"search", "user"} <= set(services_of_tasks())
