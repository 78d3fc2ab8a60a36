"""The identity of what was said: times do not count, words, order and arguments do."""

from __future__ import annotations

import copy
import hashlib
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from schemas import canonical
from schemas.debates import digest_of_lines, parse, transcript, transcript_digest

KEYS = ["simulation", "userTurns", "utterance", "systemResponse", "response", "arguments", "id", "text"]
# Halves of surrogate pairs too: JSON can hold them, UTF-8 cannot.
words = strategies.text(strategies.characters(exclude_categories=()))
values = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | words,
    lambda inner: (
        strategies.lists(inner)
        | strategies.dictionaries(
            strategies.sampled_from(KEYS),
            inner,
        )
    ),
)


def line(*turns: tuple[str, str, list[dict[str, Any]]]) -> dict[str, Any]:
    written = []
    for user, answer, arguments in turns:
        response = {"content": answer, "arguments": arguments}
        system = {"utterance": answer, "response": response, "milliseconds": 5.0}
        written.append({"utterance": user, "systemResponse": system})
    topic = {"topic": {"description": "t"}}
    return {"simulation": {"configuration": topic, "userTurns": written, "milliseconds": 12.0}}


FIRST = "Cars are bad"
ONE = line((FIRST, "No", [{"id": "1.2", "text": "Because", "score": 3.5}]), ("Yes", "", []))


def said(line: Any) -> list[list[Any]]:
    found, _ = parse(line)
    assert found is not None
    return transcript(found)


def test_what_counts() -> None:
    assert said(ONE) == [[FIRST, "No", [["1.2", "Because"]]], ["Yes", "", []]]
    assert said({}) == []
    assert digest_of_lines([ONE, {}]) == hashlib.sha256(canonical([said(ONE), []])).hexdigest()
    assert digest_of_lines([ONE, 5, {"none": 1}, {}]) == digest_of_lines([ONE, {}])
    assert digest_of_lines([]) == transcript_digest([]) == hashlib.sha256(b"[]").hexdigest()


def test_a_missing_answer_is_an_empty_one_and_a_missing_text_is_none() -> None:
    found = line(("U", "", [{"id": "1"}, {"text": "t"}, {}, 5]))  # type: ignore[list-item]
    del found["simulation"]["userTurns"][0]["systemResponse"]["utterance"]
    del found["simulation"]["userTurns"][0]["systemResponse"]["response"]["content"]
    assert said(found) == [["U", "", [["1", None], [None, "t"], [None, None], [None, None]]]]


def test_there_is_one_way_to_compute_it() -> None:
    """Who compares runs, labels and judgments has to mean the same by a transcript."""
    root = Path(__file__).parents[2]
    files = [
        path
        for part in ("schemas", "runner", "evaluator", "sidecars")
        for path in (root / part).rglob("*.py")
    ]
    places = [path for path in files if "def transcript_digest" in path.read_text(encoding="utf-8")]
    assert places == [root / "schemas/debates.py"]


def changed(where: list[Any], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(ONE)
    reduce(getitem, where[:-1], made)[where[-1]] = value
    return made


TURN = ["simulation", "userTurns", 0]
ARGUMENT = [*TURN, "systemResponse", "response", "arguments", 0]


@pytest.mark.parametrize(
    ("where", "same"),
    [
        (["simulation", "milliseconds"], True),
        (["simulation", "configuration"], True),
        ([*TURN, "systemResponse", "milliseconds"], True),
        ([*ARGUMENT, "score"], True),
        ([*TURN, "utterance"], False),
        ([*TURN, "systemResponse", "utterance"], False),
        ([*ARGUMENT, "id"], False),
        ([*ARGUMENT, "text"], False),
        ([*TURN, "systemResponse", "response", "arguments"], False),
        (["simulation", "userTurns"], False),
    ],
)
def test_times_do_not_count_and_words_do(where: list[Any], same: bool) -> None:
    assert (digest_of_lines([changed(where, "other")]) == digest_of_lines([ONE])) is same


def test_the_order_of_debates_counts() -> None:
    two = line(("Trams", "Yes", []))
    assert digest_of_lines([ONE, two]) != digest_of_lines([two, ONE])


@given(strategies.lists(strategies.dictionaries(strategies.just("simulation"), values) | values, max_size=4))
def test_anything_has_a_digest(lines: list[Any]) -> None:
    read = [found for one in lines if (found := parse(one)[0]) is not None]
    whole = hashlib.sha256(canonical([transcript(one) for one in read])).hexdigest()
    assert digest_of_lines(lines) == transcript_digest(read) == whole
