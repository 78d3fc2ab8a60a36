"""Kept replies of models: nothing is lost, nothing twice, and damaged lines hurt nobody."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.execution import replies
from runner.execution.replies import Spent, learn, rebuild, recount, replies_of, snapshot
from runner.model.errors import PlatformError
from tests.worlds import records


def line(n: int, text: str = "yes") -> bytes:
    return json.dumps({"key": f"{n:064x}", "model": "m", "reply": text, "usage": {}}).encode() + b"\n"


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def test_new_replies_are_added_once(tmp_path: Path) -> None:
    book = replies_of(tmp_path, "toy")
    assert learn(book, tmp_path / "absent.jsonl") == 0 and not book.exists()
    assert learn(book, write(tmp_path / "a.jsonl", line(1), line(2), line(1, "no"))) == 2
    assert learn(book, write(tmp_path / "b.jsonl", line(2, "other"), line(3))) == 1
    assert book.read_bytes() == line(1) + line(2) + line(3)
    with snapshot(book) as copy:
        assert copy is not None and copy.read_bytes() == book.read_bytes() and copy != book
    assert not copy.exists()


def test_an_answer_is_added_behind_a_refusal_and_never_the_other_way(tmp_path: Path) -> None:
    def refused(n: int) -> bytes:
        refusal = {"status": 400, "code": "content_filter", "message": "No."}
        return json.dumps({**json.loads(line(n, "")), "refused": refusal}).encode() + b"\n"

    book = replies_of(tmp_path, "toy")
    assert learn(book, write(tmp_path / "a.jsonl", refused(1), line(2), refused(1))) == 2
    assert learn(book, write(tmp_path / "b.jsonl", line(1), refused(2), refused(1))) == 1
    assert book.read_bytes() == refused(1) + line(2) + line(1)
    assert learn(book, write(tmp_path / "c.jsonl", line(1, 'says "refused"'), line(3, 'says "refused"'))) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40).filter(lambda raw: b"\n" not in raw),
            st.integers(0, 5).map(lambda n: line(n).rstrip(b"\n")),
            st.sampled_from([b"[" * 4000, b'{"key": 1}', b'{"key": "x", "reply": ""}', b"null", b"\xff"]),
        ),
        max_size=12,
    )
)
def test_what_is_no_reply_is_passed_over(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("replies")
    good = {raw for raw in lines if raw.startswith(b'{"key": "0000')}
    assert learn(folder / "book.jsonl", write(folder / "a.jsonl", b"\n".join(lines))) == len(good)
    kept = (folder / "book.jsonl").read_bytes().splitlines() if (folder / "book.jsonl").exists() else []
    assert set(kept) == good and len(kept) == len(good)


def test_a_line_that_a_killed_process_left_half_spoils_no_other(tmp_path: Path) -> None:
    book = tmp_path / "book.jsonl"
    write(book, line(1), line(2)[:30])
    assert learn(book, write(tmp_path / "a.jsonl", line(2), line(3))) == 2
    with snapshot(book) as copy:
        assert copy is not None and copy.read_bytes() == line(1) + line(2) + line(3)


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_LINE", 300)
    book = tmp_path / "book.jsonl"
    found = write(tmp_path / "a.jsonl", line(1, "x" * 5000), line(2))
    assert learn(book, found) == 1 and book.read_bytes() == line(2)


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    book = tmp_path / "replies" / "toy.jsonl"
    files = [write(tmp_path / f"{n}.jsonl", *(line(k) for k in range(n, n + 20))) for n in range(0, 60, 5)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda path: learn(book, path), files))
    assert sorted(json.loads(row)["key"] for row in book.read_bytes().splitlines()) == [
        f"{n:064x}" for n in range(75)
    ]


def test_too_much_is_said_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_BYTES", 100)
    book = write(tmp_path / "book.jsonl", line(1))
    with pytest.raises(PlatformError) as caught, snapshot(book):
        pass
    assert caught.value.code == "E306"


def test_nothing_kept_is_nothing_given(tmp_path: Path) -> None:
    for book in (None, tmp_path / "absent.jsonl", write(tmp_path / "empty.jsonl")):
        with snapshot(book) as copy:
            assert copy is None


@pytest.mark.parametrize("text", ["yes", "yes" * 5000], ids=["small", "in the content store"])
def test_the_book_is_made_again_from_the_archive(tmp_path: Path, text: str) -> None:
    world = records.World.make(tmp_path)
    attempt = world.attempt(world.register("alpha", "one"))
    staging = world.archive.begin_evaluation(attempt)
    write(staging.path / "replies.jsonl", line(1, text), line(2))
    calls = b"".join(
        json.dumps({"upstream": n, "prompt_tokens": 2}).encode() + b"\n" for n in range(len(text))
    )
    write(staging.path / "calls.jsonl", calls)
    record = {"run_id": attempt.run_id, "attempt": 1, "evaluation": staging.number}
    evaluation = world.archive.add_evaluation(attempt, staging, record)
    stored = {name for name, entry in evaluation.manifest().items() if "stored" in entry}
    assert stored == ({"replies.jsonl", "calls.jsonl"} if len(text) > 3 else set())
    home = world.config.home
    assert recount(replies_of(home, records.TASK)) == Spent(len(text), 2 * len(text), 0.0)
    assert rebuild(home, world.archive, records.TASK) == 2
    assert replies_of(home, records.TASK).read_bytes() == line(1, text) + line(2)
    assert rebuild(home, world.archive, records.TASK) == 2
    world.store.close()


def test_the_name_of_a_task_leads_nowhere_else(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        replies_of(tmp_path, "../x")
