"""Reading answers: nothing that comes in can do more than fail by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies

import schemas
from schemas.words import count_words
from sidecars.driver.answers import read_answer, read_judgment
from sidecars.peer import Failure

numbers = strategies.integers(-(10**30), 10**30) | strategies.floats(allow_nan=False, allow_infinity=False)
scalars = strategies.none() | strategies.booleans() | numbers | strategies.text()
values = strategies.recursive(
    scalars, lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner)
)


@given(strategies.binary() | strategies.text().map(str.encode) | values.map(lambda v: json.dumps(v).encode()))
def test_anything_is_an_answer_or_a_failure(body: bytes) -> None:
    for read in (read_answer, read_judgment):
        try:
            read(body)
        except Failure as failure:
            assert failure.detail and failure.detail.isprintable() and len(failure.detail) <= 300
            assert failure.kind in ("empty", "not-json", "wrong-type", "no-content")


@pytest.mark.slow
@given(strategies.dictionaries(strategies.text(), values), strategies.text(min_size=1))
def test_a_good_answer_is_kept_whole_and_can_be_read_again(extra: dict[str, Any], content: str) -> None:
    data = {
        **extra,
        "content": "x" + content,
        "arguments": [{"id": "1.2", "text": content, **extra, "id2": 1}],
    }
    data["arguments"][0] |= {"id": "1.2", "text": content}
    try:
        answer = read_answer(json.dumps(data).encode())
    except Failure as failure:
        assert failure.kind == "not-json"
        return
    assert json.loads(answer.encoded) == data
    assert answer.words == count_words("x" + content)
    doc = schemas.load_json(answer.encoded)
    assert doc.problems == [] and doc.data == data


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((f'{{"score": {score}}}', "wrong-type") for score in ('"0.7"', "true", "7", "-0.01")),
        ('{"score": NaN}', "not-json"),
        ('{"value": 1}', "no-content"),
        ("[1]", "wrong-type"),
        ("", "empty"),
    ],
)
def test_judgments_that_cannot_be_used(text: str, kind: str) -> None:
    with pytest.raises(Failure) as caught:
        read_judgment(text.encode())
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("text", "score"), [("0", 0.0), ("1", 1.0), ("0.5", 0.5), ("null", None), ("1.0", 1.0)]
)
def test_judgments(text: str, score: float | None) -> None:
    judgment = read_judgment(f'\ufeff{{"score": {text}, "explanation": "because"}}'.encode())
    assert judgment.score == score and judgment.data["explanation"] == "because"
