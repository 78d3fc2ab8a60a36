"""Many records at once give what they give one after the other: findings, values, details, and errors of truths."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.kinds.records.kind import KIND
from evaluator.scores import Sink
from tests.evaluator.kinds.records.records_runs import records_request

MARK = b"\xef\xbb\xbf"  # before a line it changes nothing, but the line is read by itself
MEASURES = {
    "accuracy": "Accuracy(label)",
    "f1": "F1(label)",
    "mae": "MAE(score)",
    "tokens": "TokenF1(text)",
    "deep": "Accuracy(/more/label, truth=label)",
}
SCHEMAS: list[dict[str, Any]] = [
    {},
    {"required": ["id", "label", "score", "text", "more"]},
    {"properties": {"id": {"type": "string"}, "label": {"enum": ["a", "b"]}, "score": {"maximum": 2}}},
]
LABELS = st.sampled_from(["a", "b", 1, 1.0, True, None, 0.5, [], {}])
NUMBERS = st.sampled_from([0, 1, 0.25, -0.0, 10**39, 1e299, 1e301, True, None, "1", [2]])
TEXTS = st.sampled_from(["some words", "", None, 7, ["some"], "x" * 100_001])
FIELDS = st.fixed_dictionaries(
    {}, optional={"label": LABELS, "score": NUMBERS, "text": TEXTS, "more": st.sampled_from([None, {}, [1]])}
)
KEYS = st.sampled_from(["r0", "r1", "r139", "unknown", "r9999", 7, 7.5, True, None, [], "x" * 1001])
LINES = st.sampled_from(
    [b"", b" ", b"{", b"[]", b"7", b'{"id":"r1","id":"r1"}', b'{"id":NaN}', b"[" * 70, b'"\xff"']
)


def record(number: int) -> dict[str, Any]:
    label = "ab"[number % 3 % 2]
    fields = {"id": f"r{number}", "label": label, "score": number / 7}
    return {**fields, "text": "some words", "more": {"label": label}}


def written(changes: dict[int, Any], count: int, backwards: bool) -> list[bytes]:
    """Lines of ``count`` records, of which some are changed: a line instead, or other fields."""
    rows = [record(number) for number in range(count)][:: -1 if backwards else 1]
    made = [json.dumps(row).encode() for row in rows]
    for place, other in changes.items():
        if place < count:
            made[place] = other if isinstance(other, bytes) else json.dumps({**rows[place], **other}).encode()
    return made


def apart(lines: list[bytes]) -> list[bytes]:
    """The same lines, to be read one after the other."""
    return [lines[0], *(MARK + line if line.strip() else line for line in lines[1:])]


def outcome(run: list[bytes], truths: list[bytes], schema: dict[str, Any], *, topics: bool) -> Any:
    """All that comes of a run: findings and scores, or the error."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "run.jsonl").write_bytes(b"\n".join(run) + b"\n")
        (folder / "truths.jsonl").write_bytes(b"\n".join(truths) + b"\n")
        outputs = [{"path": "run.jsonl", "schema": schema}]
        request = records_request(folder, outputs, MEASURES, topics="truths.jsonl" if topics else None)
        log = Log("run.jsonl", {"F401": "defect", "F405": "warning", "F406": "warning", "F408": "warning"})
        sink = Sink(log)
        try:
            KIND.evaluate(folder / "run.jsonl", folder, folder, request, sink)
        except EvaluatorError as error:
            return str(error), error.fix
        alone = Log("run.jsonl")
        KIND.check(folder / "run.jsonl", folder, request, alone)
    return (
        log.sorted(), log.counts, log.lines, log.invalid, log.defects, alone.sorted(), alone.counts, alone.answered,
        sink.aggregates, list(sink.scores()), list(sink.details), list(sink.notes),
    )  # fmt: skip


PLACES = st.sampled_from([0, 1, 2, 5, 130, 139]) | st.integers(0, 139)
OTHERS = (
    LINES
    | FIELDS
    | st.builds(lambda key: {"id": key}, KEYS)
    | st.sampled_from([{"score": None}, {"label": 1}])
)
CHANGES = st.dictionaries(PLACES, OTHERS, max_size=3)
TWICE_NEAR, TWICE_FAR, UNKNOWN = {5: {"id": "r1"}}, {139: {"id": "r1"}}, {5: {"id": "other"}}


@pytest.mark.slow
@settings(max_examples=50)
@example(TWICE_NEAR, TWICE_NEAR, 140, False, {}, True)
@example(TWICE_FAR, TWICE_FAR, 140, False, {}, True)
@example(UNKNOWN, {5: {"label": None}}, 140, True, {}, False)
@example({5: {"score": 1e301}}, {5: {"score": 1e301}}, 140, False, {}, False)
@example({5: {"label": "c"}}, {5: {"id": None}}, 140, False, SCHEMAS[2], True)
@given(CHANGES, CHANGES, st.sampled_from([1, 3, 140]), st.booleans(), st.sampled_from(SCHEMAS), st.booleans())
def test_at_once_and_one_after_the_other(
    run: dict[int, Any],
    truths: dict[int, Any],
    count: int,
    backwards: bool,
    schema: dict[str, Any],
    topics: bool,
) -> None:
    mine, right = written(run, count, backwards), written({}, 140, False)
    one_by_one = outcome(apart(mine), right, schema, topics=topics)
    assert repr(outcome(mine, right, schema, topics=topics)) == repr(one_by_one)
    wrong = written(truths, 140, False)
    assert repr(outcome(mine, wrong, schema, topics=False)) == repr(
        outcome(mine, apart(wrong), schema, topics=False)
    )
