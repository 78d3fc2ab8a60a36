"""The data of bundled tasks of every kind, made wrong in several ways: all of it is said at once, by file and line."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.model.config import Config
from runner.tasks.check_contents import Contents, read_contents
from runner.tasks.load import load_task
from tests.worlds.definitions import project

TASKS = Path(__file__).parents[3] / "tasks"
Edit = Callable[[list[str]], None]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "project")


def taken(config: Config, name: str) -> Path:
    """A bundled task in this project; returns the folder of its datasets."""
    shutil.copytree(TASKS / name, config.tasks / name)
    return config.tasks / name / "datasets"


def edit(path: Path, change: Edit) -> None:
    """Change a file's lines."""
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def put(line: int, text: str | dict[str, Any]) -> Edit:
    """Put another text, or an object with some other fields, at a line (from 1)."""

    def change(lines: list[str]) -> None:
        lines[line - 1] = text if isinstance(text, str) else json.dumps(json.loads(lines[line - 1]) | text)

    return change


def contents(config: Config, task: str, dataset: str) -> Contents:
    found = read_contents(load_task(config, task), config, lambda _: None)
    return next(one for one in found if one.dataset == dataset)


def said(config: Config, task: str, dataset: str) -> list[str]:
    """Problems, then warnings, each with its place below the dataset's folder."""
    one = contents(config, task, dataset)
    return [str(p).replace(f"tasks/{task}/datasets/{dataset}/", "") for p in (*one.problems, *one.warnings)]


@pytest.mark.parametrize(
    "name", sorted(path.name for path in TASKS.iterdir() if (path / "task.yaml").is_file())
)
def test_bundled_data_are_read_and_fine(config: Config, name: str) -> None:
    taken(config, name)
    for one in read_contents(load_task(config, name), config, lambda _: None):
        assert one.problems == [] and not one.unchecked, list(map(str, one.problems))
        assert one.statistics is not None and one.statistics["topics"] and len(one.lines()) >= 2


def test_perspective(config: Config) -> None:
    folder = taken(config, "perspective-2024") / "test-1"
    edit(folder / "truths/corpus.jsonl", put(3, "{oops"))
    edit(folder / "truths/corpus.jsonl", put(5, {"stance": 7}))
    edit(folder / "truths/baseline-queries/queries_test.jsonl", put(1, {"relevant_candidates": [1]}))
    edit(folder / "truths/baseline-queries/queries_test.jsonl", put(2, {"relevant_candidates": []}))
    edit(folder / "truths/perspective-queries/queries_test.jsonl", lambda lines: lines.append(lines[0]))
    edit(folder / "inputs/perspective-queries/queries_test.jsonl", put(1, {"query_id": 5}))
    edit(folder / "inputs/baseline-queries/queries_test.jsonl", put(3, {"relevant_candidates": [1]}))
    found = "\n".join(said(config, "perspective-2024", "test-1"))
    for part in (
        "truths/corpus.jsonl:3: ",
        "truths/corpus.jsonl:5: stance",
        "truths/baseline-queries/queries_test.jsonl:1: relevant_candidates",
        "truths/baseline-queries/queries_test.jsonl:2: the query ",
        'inputs/perspective-queries/queries_test.jsonl:1: the query "5" ',
        "truths/perspective-queries/queries_test.jsonl:1: the query ",
        "query_id",
        "inputs/baseline-queries/queries_test.jsonl:3: relevant_candidates",
    ):
        assert part in found, (part, found)


def test_debates(config: Config) -> None:
    folder = taken(config, "rad-2025-debate") / "train"
    edit(folder / "inputs/claims.jsonl", put(2, {"claim": ""}))
    edit(folder / "inputs/claims.jsonl", put(4, "[]"))
    edit(folder / "truths/labels/labels.jsonl", put(3, {"quality": 2}))
    edit(folder / "truths/labels/labels.jsonl", put(5, {"debate": 99}))
    edit(folder / "truths/labels/labels.jsonl", put(7, "nonsense"))
    edit(folder / "truths/labels/labels.jsonl", lambda lines: lines.append(lines[0]))
    found = "\n".join(said(config, "rad-2025-debate", "train"))
    for part in (
        "inputs/claims.jsonl:2: ",
        "inputs/claims.jsonl:4: ",
        "truths/labels/labels.jsonl:3: ",
        "debate 99",
        "truths/labels/labels.jsonl:7: ",
        "labels.jsonl: turn 1 of debate 1",
    ):
        assert part in found, (part, found)
    assert contents(config, "rad-2025-debate", "train").lines()[0] == "train: 4 claims"


def broken_reports(config: Config) -> str:
    """Return the problems of a damaged task of reports."""
    folder = taken(config, "report-generation") / "test"
    edit(folder / "inputs/requests.jsonl", put(2, "{"))
    edit(folder / "inputs/requests.jsonl", put(3, {"limit": -1}))
    edit(folder / "inputs/requests.jsonl", put(4, {"request_id": "never-judged"}))
    (folder / "truths/nuggets/nuggets_28.v3.json").write_text("{")
    packed = folder / "inputs/documents.jsonl.gz"
    documents = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
    packed.write_bytes(gzip.compress(b"".join([*documents[:-700], b'{"no": "id"}\n', documents[0]])))
    return "\n".join(said(config, "report-generation", "test"))


def test_reports_and_judging(config: Config, golden: Callable[[str, str], None]) -> None:
    folder = taken(config, "rad-2025-judging") / "dev"
    edit(folder / "truths/debates-labels.jsonl", put(1, "[1]"))
    edit(folder / "truths/debates-labels.jsonl", put(3, "[]"))
    edit(folder / "truths/debates-labels.jsonl", put(4, '[{"quantity": 7}]'))
    edit(folder / "truths/debates-labels.jsonl", put(5, "{}"))
    edit(folder / "truths/debates-labels.jsonl", lambda lines: lines.append("[]"))
    found = "\n".join(said(config, "rad-2025-judging", "dev"))
    golden("check-problems.txt", f"{broken_reports(config)}\n\n{found}\n")
    assert "9 debates" in found
    edit(folder / "inputs/debates.jsonl", put(2, "x"))
    found = "\n".join(said(config, "rad-2025-judging", "dev"))
    assert "inputs/debates.jsonl:2: " in found
    assert "9 debates" not in found, "with broken debates they cannot be compared"


