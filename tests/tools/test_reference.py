"""The generated reference pages: up to date, and every field and code is there."""

from __future__ import annotations

from pathlib import Path

import pytest

import schemas
from runner.model.errors import CODES
from tools import docs as reference


@pytest.mark.slow
def test_committed_pages_are_generated() -> None:
    assert reference.main(["--check"]) == 0, "run: python -m tools.docs"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("task.md", ["task"]),
        ("submission.md", ["submission"]),
        ("evaluator-contract.md", ["request", "result", "score", "finding"]),
    ],
)
def test_every_field_is_on_its_page(page: str, names: list[str]) -> None:
    text = reference.pages()[page]
    for name in names:
        for path, node, _ in reference.fields_of(schemas.schema(name)):
            assert f"| `{path}` |" in text
            assert node.get("description"), path


def test_every_kind_is_on_the_task_page() -> None:
    for kind in schemas.kinds():
        assert f"`{kind}`" in reference.task()


def test_every_code_is_on_the_errors_page() -> None:
    text = reference.errors()
    for code, entry in CODES.items():
        assert f"{code} | {entry.exit} | {entry.text}" in text


def test_writing_and_checking(tmp_path: Path) -> None:
    said: list[str] = []
    assert reference.main(["--check"], tmp_path, said.append) == 1
    assert len(said) == len(reference.pages())
    assert reference.main([], tmp_path, said.append) == 0
    assert reference.main(["--check"], tmp_path, said.append) == 0
    (tmp_path / "task.md").write_text("old")
    assert reference.main(["--check"], tmp_path, said.append) == 1
    assert reference.main(["--help"], tmp_path, said.append) == 2
