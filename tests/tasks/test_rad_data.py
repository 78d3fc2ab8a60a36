"""The data of rad-2025-debate: as many as said, of the form of the official index, and what is committed belongs together."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest

from evaluator.formats.labels import read_folder
from runner.model import config
from runner.tasks.load import load_task
from tests.tasks.test_vaswani import module

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "tasks" / "rad-2025-debate"
ARGUMENTS = TASK / "services" / "arguments"
FIELDS = ["id", "topic", "tags", "attacks", "supports", "text", "references", "original"]


@pytest.fixture(scope="module")
def lines() -> bytes:
    return gzip.decompress((ARGUMENTS / "arguments.jsonl.gz").read_bytes())


@pytest.fixture(scope="module")
def rows(lines: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.decode().splitlines()]


def test_the_arguments_have_the_form_of_the_official_index(rows: list[dict[str, Any]]) -> None:
    assert len(rows) >= 4000
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert list(row) == FIELDS, row["id"]
        assert re.fullmatch(r"\d+\.\d+", row["id"])
        assert row["original"] in ("attacks", "supports")
        assert row["text"] and row["attacks"] != row["supports"]
        assert 1 <= len(row["text"].split()) <= 70
    words = [len(row["text"].split()) for row in rows]
    assert 20 <= sum(words) / len(words) <= 35


def test_provenance_says_what_is_there(lines: bytes, rows: list[dict[str, Any]]) -> None:
    said = json.loads((TASK / "provenance.json").read_text("utf-8"))
    assert said["sha256"] == hashlib.sha256(lines).hexdigest()
    assert said["arguments"] == len(rows) == sum(group["count"] for group in said["groups"].values())

    def group(row: dict[str, Any]) -> str:
        debate, number = map(int, row["id"].split("."))
        if debate < 30000:
            return "genirsim"
        return "args.me" if debate < 40000 and number < 1001 else "generated"

    assert Counter(map(group, rows)) == {name: g["count"] for name, g in said["groups"].items()}
    readme = (TASK / "README.md").read_text("utf-8")
    for count in (len(rows), *(g["count"] for g in said["groups"].values())):
        assert f"{count:,}" in readme


def test_the_generated_arguments_are_what_the_script_makes(rows: list[dict[str, Any]]) -> None:
    program = module(TASK / "generate.py")
    made = list(program.generated())
    assert made == rows[-len(made) :]
    for name, chosen, first in (("train", program.TRAIN, 1), ("test", program.TEST, len(program.TRAIN) + 1)):
        text = (TASK / "datasets" / name / "inputs" / "claims.jsonl").read_text("utf-8")
        assert program.claims(chosen, first) == text


def test_generated_arguments_come_in_pairs_against_each_other(rows: list[dict[str, Any]]) -> None:
    generated = [row for row in rows if row["original"] == "attacks" and int(row["id"].split(".")[0]) > 40000]
    for one, other in zip(generated[::2], generated[1::2], strict=True):
        assert (one["attacks"], one["supports"]) == (other["supports"], other["attacks"])


def test_vectors_belong_to_the_arguments(rows: list[dict[str, Any]]) -> None:
    """A row for each, of length 1; equal texts have equal vectors, and the files are small enough for a repository."""
    for name in ("attacks", "text"):
        path = ARGUMENTS / f"{name}_embedding_minilm.npy"
        matrix = numpy.load(path)
        assert matrix.shape == (len(rows), 384) and matrix.dtype == numpy.float16
        assert path.stat().st_size <= 4_000_000
        assert numpy.abs(numpy.linalg.norm(matrix.astype("f4"), axis=1) - 1).max() < 0.01
        first: dict[str, int] = {}
        for place, row in enumerate(rows):
            known = first.setdefault(row[name], place)
            assert known == place or (matrix[known] == matrix[place]).all()


def test_two_datasets_of_claims_and_demonstration_labels_of_one() -> None:
    task = load_task(config.load(cwd=ROOT), "rad-2025-debate")
    claims = {}
    for name, dataset in task.datasets.items():
        text = (dataset.inputs / "claims.jsonl").read_text("utf-8")
        claims[name] = [json.loads(line) for line in text.splitlines()]
    every = [row for rows in claims.values() for row in rows]
    assert len(every) >= 20 and len(claims["test"]) >= 14
    assert len({row["id"] for row in every}) == len({row["claim"] for row in every}) == len(every)
    labels = read_folder(TASK / "datasets" / "train" / "truths" / "labels")
    assert {label.annotator for label in labels} == {"demo"}
    assert len(labels) == len(claims["train"]) * 5
    assert read_folder(TASK / "datasets" / "test" / "truths" / "labels") == []
