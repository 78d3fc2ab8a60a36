"""The file of replies: its keys, its lines, and what an interrupted or hostile writer leaves."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.judges.replies import Replies
from schemas.documents import Problem
from schemas.replies import Refusal, StoredReply, read_replies, reply_key

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
QUESTION = "Is it so?"
MESSAGES = [{"role": "user", "content": QUESTION}]


def test_a_key_is_what_was_asked_and_not_how_it_was_written() -> None:
    parameters: dict[str, Any] = {"temperature": 0, "max_tokens": 10}
    key = reply_key("m", MESSAGES, parameters)
    assert key == reply_key("m", MESSAGES, {"max_tokens": 10, "temperature": 0.0, "n": 1, "stream": False})
    assert key == reply_key("m", [{"content": QUESTION, "role": "user"}], {**parameters, "stop": None})
    for other in (
        reply_key("n", MESSAGES, parameters),
        reply_key("m", [*MESSAGES, *MESSAGES], parameters),
        reply_key("m", MESSAGES, {**parameters, "temperature": 0.5}),
        reply_key("m", MESSAGES, {**parameters, "n": 2}),
    ):
        assert other != key and len(other) == 64


@given(st.lists(st.tuples(TEXT, TEXT, st.integers(0, 10**9)), max_size=8))
def test_what_is_kept_comes_back(rows: list[tuple[str, str, int]]) -> None:
    stored = [
        StoredReply(f"k{n}", model, text, "stop", count, 1) for n, (model, text, count) in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replies.jsonl"
        with Replies(path) as replies:
            for reply in stored:
                replies.put(reply)
                replies.put(StoredReply(reply.key, "m", "another"))
        with Replies(path) as replies:
            assert [replies.get(reply.key) for reply in stored] == stored and len(replies) == len(stored)
        assert not rows or list(read_replies(path)) == stored


def test_half_a_line_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "replies.jsonl"
    with Replies(path) as replies:
        replies.put(StoredReply("a", "m", "YES"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key":"b","mod')
    with Replies(path) as replies:
        assert len(replies) == 1
        replies.put(StoredReply("c", "m", "NO"))
    assert [item.key for item in read_replies(path) if isinstance(item, StoredReply)] == ["a", "c"]
    assert path.read_bytes().startswith(whole)
    path.write_bytes(b'{"key":"b"')  # nothing but half a line
    with Replies(path) as replies:
        replies.put(StoredReply("d", "m", "NO"))
    assert len(path.read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"key":"k","model":"m"}',
        b'{"key":"k","model":"m","reply":5}',
        b'{"key":"k","model":"m","reply":"x","usage":{"prompt_tokens":-1}}',
        b'{"key":"k","model":"m","reply":"x","usage":{"prompt_tokens":true}}',
        b'{"key":"k","key":"l","model":"m","reply":"x"}',
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_a_line_that_is_no_reply_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_bytes(StoredReply("a", "m", "YES").line() + line + b"\n")
    read = list(read_replies(path))
    assert isinstance(read[0], StoredReply) and isinstance(read[1], Problem) and read[1].line == 2
    with pytest.raises(EvaluatorError) as error:
        Replies(path)
    assert "replies.jsonl:2" in error.value.why


def test_a_line_without_usage_is_a_reply(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text(json.dumps({"key": "k", "model": "m", "reply": "x", "more": [1]}) + "\n\n")
    assert list(read_replies(path)) == [StoredReply("k", "m", "x")]


def test_what_cannot_be_written_is_an_error_of_the_organisers_files() -> None:
    with pytest.raises(EvaluatorError):
        Replies(Path("/dev/full/x")).put(StoredReply("a", "m", "YES"))


def test_replies_can_stay_in_memory() -> None:
    replies: Any = Replies()
    replies.put(StoredReply("a", "m", "YES"))
    assert replies.get("a").text == "YES" and replies.get("b") is None


def test_a_refusal_is_a_line_of_its_own_and_an_answer_counts_more(tmp_path: Path) -> None:
    refused = StoredReply("a" * 64, "m", "", "refused", refused=Refusal(400, "content_filter", "No."))
    answered = StoredReply("a" * 64, "m", "YES")
    path = tmp_path / "replies.jsonl"
    for order in ((refused, answered), (answered, refused)):
        path.write_bytes(b"".join(one.line() for one in order))
        assert list(read_replies(path)) == list(order)
        assert Replies(path).get("a" * 64) == answered
    assert "refused" not in json.loads(answered.line())  # as it always was
    odd: list[Any] = [None, {}, *({"status": status, "code": "", "message": ""} for status in (200, 400.0))]
    for value in odd:
        path.write_text(json.dumps({**json.loads(answered.line()), "refused": value}) + "\n")
        [problem] = read_replies(path)
        assert isinstance(problem, Problem)
