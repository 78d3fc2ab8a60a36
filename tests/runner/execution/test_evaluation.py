"""The contract of evaluators: they are given what was sealed, and what they write is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.execution.contract import contract_problem, files_for_evaluator
from runner.model.errors import PlatformError
from runner.model.task import Task
from runner.records.archive import RunArchive
from runner.tasks.load import load_task
from tests.worlds import definitions
from tests.worlds.records import TASK, fill_attempt

MEASURES = {m: {"value": 0.5, "topics": 3, "covered": 3, "interval": None} for m in ("ndcg_10", "ap")}
RESULT: dict[str, Any] = {
    "schema_version": 1,
    "status": "valid",
    "evaluator": {"name": "x", "version": "1"},
    "measures": MEASURES,
    "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
    "run_tag": None,
    "message": "",
}
SCORE: dict[str, Any] = {"measure": "ap", "topic": "1", "value": 0.5}
FINDING: dict[str, Any] = {
    "code": "F001",
    "severity": "warning",
    "file": "run.txt",
    "line": 1,
    "message": "m",
    "fix": "f",
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    config = definitions.project(tmp_path_factory.mktemp("project"))
    definitions.write_task(config)
    return load_task(config, "toy")


def _problem(
    task: Task,
    folder: Path,
    result: str | bytes | None = None,
    scores: str | bytes | None = None,
    findings: str | bytes | None = None,
) -> str:
    texts = {
        "result.json": json.dumps(RESULT) if result is None else result,
        "scores.jsonl": json.dumps(SCORE) if scores is None else scores,
        "findings.jsonl": json.dumps(FINDING) if findings is None else findings,
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    said = contract_problem(folder, task)
    assert said.isprintable() and len(said) < 1000
    return said


def test_what_keeps_the_contract_is_believed(task: Task, tmp_path: Path) -> None:
    assert _problem(task, tmp_path) == ""
    assert _problem(task, tmp_path, scores="", findings="\n\n") == ""
    assert _problem(task, tmp_path, json.dumps({**RESULT, "status": "invalid", "measures": {}})) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "null",
        "{",
        "[" * 5000,
        '{"a":' * 5000,
        b"\xff\xfe",
        json.dumps(RESULT)[:-1] + ', "schema_version": 1}',
        json.dumps({**RESULT, "schema_version": 2}),
        json.dumps({**RESULT, "extra": 1}),
        json.dumps({**RESULT, "status": "fine"}),
        json.dumps({**RESULT, "measures": {}}),
        json.dumps({**RESULT, "measures": {**MEASURES, "other": MEASURES["ap"]}}),
        json.dumps({**RESULT, "measures": {**MEASURES, "\x1b[2J": MEASURES["ap"]}}),
        json.dumps({**RESULT, "measures": {**MEASURES, "ap": {**MEASURES["ap"], "value": float("nan")}}}),
        json.dumps({**RESULT, "measures": {**MEASURES, "ap": {**MEASURES["ap"], "value": "0.5"}}}),
        json.dumps({**RESULT, "measures": {**MEASURES, "ap": {**MEASURES["ap"], "value": 1}}}).replace(
            '"value": 1,', '"value": 1e999,'
        ),
        json.dumps({**RESULT, "measures": {**MEASURES, "ap": {**MEASURES["ap"], "value": 10**400}}}),
        json.dumps({**RESULT, "measures": {**MEASURES, "ap": {**MEASURES["ap"], "covered": -1}}}),
        json.dumps({**RESULT, "findings": {}}),
        " " * 5_000_000 + json.dumps(RESULT),
    ],
    ids=lambda text: str(text[:20]),
)
def test_a_bad_result_is_found(text: str | bytes, task: Task, tmp_path: Path) -> None:
    assert "result.json" in _problem(task, tmp_path, result=text)


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "1",
        "[]",
        b"\xff",
        "[" * 5000,
        '{"measure":"ap","topic":"1","value":' + "9" * 500 + "}",
        '{"measure":"ap","topic":"1","value":' + "9" * 5000 + "}",
        '{"measure":"ap","topic":"1","value":1e999}',
        '{"measure":"ap","topic":"1","value":-Infinity}',
        json.dumps({**SCORE, "value": float("nan")}),
        json.dumps({**SCORE, "value": True}),
        json.dumps({**SCORE, "value": None}),
        json.dumps({**SCORE, "measure": "other"}),
        json.dumps({**SCORE, "measure": ["ap"]}),
        json.dumps({**SCORE, "topic": 1}),
        json.dumps({**SCORE, "facets": 1}),
        "x" * 3_000_000,
    ],
    ids=lambda line: str(line[:20]),
)
def test_a_bad_score_is_found_with_its_line(line: str | bytes, task: Task, tmp_path: Path) -> None:
    text = json.dumps(SCORE).encode() + b"\n" + (line if isinstance(line, bytes) else line.encode())
    assert _problem(task, tmp_path, scores=text).startswith("scores.jsonl:2: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"code": 1},
        {"code": None},
        {"message": ["m"]},
        {"severity": "fatal"},
        {"severity": ["error"]},
        {"line": "1"},
        {"line": True},
        {"line": 1.5},
        {"file": {"a": 1}},
        {"fix": None},
        {"topic": 3},
        {"deep": [[[]]]},
        {"\x1b": ""},
    ],
    ids=str,
)
def test_a_bad_finding_is_found_with_its_line(changes: dict[str, Any], task: Task, tmp_path: Path) -> None:
    assert _problem(task, tmp_path, findings=json.dumps({**FINDING, **changes})).startswith(
        "findings.jsonl:1: "
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    part=st.sampled_from(["result", "scores", "findings"]),
    key=st.sampled_from([*RESULT, *SCORE, *FINDING, "facets", "other"]),
    value=JSON,
)
def test_whatever_it_writes_there_is_an_answer(
    part: str, key: str, value: Any, task: Task, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Never an exception; and what is believed can be shown."""
    base = {"result": RESULT, "scores": SCORE, "findings": FINDING}[part]
    folder = tmp_path_factory.mktemp("fuzz", numbered=True)
    _problem(task, folder, **{part: json.dumps({**base, key: value})})


@pytest.mark.parametrize("value", [1.1e150, -1.7e308])
def test_what_no_mean_could_be_taken_of_is_found(value: float, task: Task, tmp_path: Path) -> None:
    def with_(**changed: Any) -> str:
        return json.dumps({**RESULT, "measures": {**MEASURES, "ap": {**MEASURES["ap"], **changed}}})

    resamples = {"drawn": "0" * 64, "values": [None, 0.5, value]}
    for text in (with_(value=value), with_(interval=[0.5, value]), with_(resamples=resamples)):
        assert "1e150" in _problem(task, tmp_path, text) and "result.json" in _problem(task, tmp_path, text)
    for more in ({}, {"answered": True}):
        assert "1e150" in _problem(task, tmp_path, scores=json.dumps({**SCORE, **more, "value": value}))


@pytest.mark.parametrize("value", [1e150, -1e150, 10**39, 0, 5e-324])
def test_the_largest_values_are_believed(value: float, task: Task, tmp_path: Path) -> None:
    measure = {**MEASURES["ap"], "value": value, "interval": [-1e150, 1e150]}
    result = json.dumps({**RESULT, "measures": {**MEASURES, "ap": measure}})
    assert _problem(task, tmp_path, result, json.dumps({**SCORE, "value": value})) == ""


OUTPUT = {"run.txt": "1 Q0 d1 1 1.0 x\n", "extra.jsonl": '{"a": 1}\n', "more.jsonl": "x" * 50}


def test_other_files_are_handed_as_far_as_they_fit(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    attempt = fill_attempt(archive, archive.begin(TASK, "a.x.00000000.test"), "a.x.00000000", output=OUTPUT)
    with attempt.output() as output:
        found = files_for_evaluator(output, "run.txt", 30)
        read = {name: path.read_text() for name, path in found.items()}
        # The last one is larger than what is left.
        assert read == {name: OUTPUT[name] for name in ("run.txt", "extra.jsonl")}
        for name in ("none.txt", "../run.json", ""):
            with pytest.raises(PlatformError) as error:
                files_for_evaluator(output, name, 30)
            assert error.value.code == "E307"


def test_what_is_not_what_was_sealed_is_handed_to_nobody(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    attempt = fill_attempt(archive, archive.begin(TASK, "a.x.00000000.test"), "a.x.00000000", output=OUTPUT)
    (content,) = [path for _, path in archive.contents.contents() if path.read_bytes() == b"x" * 50] or [
        path for _, path in archive.contents.contents() if path.suffix == ".gz"
    ]
    content.chmod(0o644)
    content.write_bytes(b"y" * 50)
    with pytest.raises(PlatformError) as error, attempt.output():
        pass
    assert error.value.code == "E307"
