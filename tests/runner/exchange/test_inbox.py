"""The inbox: complete or not there, and opened as what an enemy wrote."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path

import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import Inbox, Ready, Refused, Request, answer, answered

TOKEN = Token.new()
WHEN = "2026-05-01T12:00:00Z"


def ask(root: Path, content: bytes | None = b"1 Q0 d 1 1 x\n") -> Request:
    request = Request.new("run-file", "a-" + "0" * 16, TOKEN.id, "alpha", WHEN, {"task": "mini"})
    return Inbox(root).put(request, TOKEN.key, None if content is None else io.BytesIO(content))


def only(root: Path) -> str:
    [(name, _)] = Inbox(root).waiting()
    return name


def test_requests_are_taken_in_their_order_with_what_was_sent(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    sent = [ask(inbox.root, f"{n}".encode()) for n in range(12)]
    waiting = inbox.waiting()
    assert [id for _, id in waiting] == [one.id for one in sent]
    taken = inbox.take(waiting[3][0], tmp_path / "mine")
    assert taken.request == sent[3] and taken.payload is not None and taken.payload.read_bytes() == b"3"
    assert taken.request.sha256 == hashlib.sha256(b"3").hexdigest() and taken.request.is_proven(TOKEN.key)
    assert not taken.request.is_proven(Token.new().key)
    inbox.remove(waiting[3][0])
    assert len(inbox.waiting()) == 11


def test_what_breaks_off_is_not_there(tmp_path: Path) -> None:
    class Cut(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("cut")

    request = Request.new("run-file", "a-" + "0" * 16, TOKEN.id, "alpha", WHEN, {})
    with pytest.raises(OSError, match="cut"):
        Inbox(tmp_path).put(request, TOKEN.key, Cut())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / f".{request.id}").mkdir()  # killed in the middle
    (tmp_path / "notes.txt").write_text("x")
    assert Inbox(tmp_path).waiting() == []
    Inbox(tmp_path).sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def link(folder: Path, secret: Path) -> None:
    (folder / "payload").unlink()
    (folder / "payload").symlink_to(secret)


def hard_link(folder: Path, secret: Path) -> None:
    (folder / "payload").unlink()
    os.link(secret, folder / "payload")


def pipe(folder: Path, secret: Path) -> None:
    (folder / "payload").unlink()
    os.mkfifo(folder / "payload")


def other(folder: Path, secret: Path) -> None:
    (folder / "payload").write_bytes(b"something else")


def longer(folder: Path, secret: Path) -> None:
    with (folder / "payload").open("ab") as file:
        file.write(b"more")


def gone(folder: Path, secret: Path) -> None:
    (folder / "payload").unlink()


def linked_request(folder: Path, secret: Path) -> None:
    (folder / "request.json").rename(secret.with_name("elsewhere"))
    (folder / "request.json").symlink_to(secret.with_name("elsewhere"))


def large_request(folder: Path, secret: Path) -> None:
    with (folder / "request.json").open("ab") as file:
        file.write(b" " * 70_000)


def deep_request(folder: Path, secret: Path) -> None:
    (folder / "request.json").write_text("[" * 60_000)


def another_id(folder: Path, secret: Path) -> None:
    data = json.loads((folder / "request.json").read_text())
    (folder / "request.json").write_text(json.dumps({**data, "id": "f" * 32}))


def whole_folder(folder: Path, secret: Path) -> None:
    folder.rename(secret.with_name("moved"))
    folder.symlink_to(secret.with_name("moved"))


def folder_for_request(folder: Path, secret: Path) -> None:
    (folder / "request.json").unlink()
    (folder / "request.json").mkdir()


def changed(**fields: object) -> object:
    def change(folder: Path, secret: Path) -> None:
        data = json.loads((folder / "request.json").read_text())
        (folder / "request.json").write_text(json.dumps(data | fields))

    change.__name__ = f"{next(iter(fields))}_{next(iter(fields.values()))!s:.20}"
    return change


def nested(depth: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


BAD = (
    folder_for_request,
    changed(arrival="9999-99-99T99:99:99Z"),
    changed(arrival="0000-01-01T00:00:00Z"),
    changed(size=13.0),
    changed(data={"a": float("nan")}),
    changed(data={"a": "\ud800"}),
    changed(data=nested(40)),
    link,
    hard_link,
    pipe,
    other,
    longer,
    gone,
    linked_request,
    large_request,
    deep_request,
    another_id,
    whole_folder,
)


@pytest.mark.parametrize("change", BAD, ids=lambda f: f.__name__)
def test_nothing_but_plain_files_of_the_front_is_opened(tmp_path: Path, change: object) -> None:
    secret = tmp_path / "truths.txt"
    secret.write_bytes(b"1 Q0 d 1 1 x\n")
    inbox = Inbox(tmp_path / "inbox")
    ask(inbox.root)
    name = only(inbox.root)
    change(inbox.root / name, secret)  # type: ignore[operator]
    with pytest.raises(Refused):
        inbox.take(name, tmp_path / "mine")
    assert secret.read_bytes() == b"1 Q0 d 1 1 x\n"
    inbox.remove(name)
    assert inbox.waiting() == [] and secret.exists()


def test_what_our_side_may_not_read_is_no_fault_of_the_request(tmp_path: Path) -> None:
    """Too many open files, a failing disk, a folder of the wrong group: nothing is thrown away."""
    import resource

    inbox = Inbox(tmp_path / "inbox")
    ask(inbox.root)
    name = only(inbox.root)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            inbox.take(name, tmp_path / "mine")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert inbox.take(name, tmp_path / "mine").payload is not None


def test_no_folder_is_walked_to_be_removed(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    ask(inbox.root)
    name = only(inbox.root)
    (inbox.root / name / "more").mkdir()
    assert inbox.remove(name) and inbox.waiting() == []
    [left] = inbox.root.iterdir()
    assert left.name.startswith(f".refused-{name}-")


def test_a_request_that_work_would_not_take_is_not_written(tmp_path: Path) -> None:
    request = Request.new("run-file", "a-" + "0" * 16, TOKEN.id, "alpha", WHEN, {"description": "x" * 70_000})
    with pytest.raises(Refused, match="bytes"):
        Inbox(tmp_path).put(request, TOKEN.key)
    assert list(tmp_path.iterdir()) == []


def test_the_first_requests_of_many_are_looked_at(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{50 - number:010}-{number:032x}").mkdir()
    assert [name[:10] for name, _ in Inbox(tmp_path).waiting(3)] == ["0000000001", "0000000002", "0000000003"]


def test_nobody_is_asked_for_a_payload_that_was_not_allowed(tmp_path: Path) -> None:
    def no(request: Request) -> None:
        raise Refused("not theirs")

    ask(tmp_path / "inbox")
    with pytest.raises(Refused, match="theirs"):
        Inbox(tmp_path / "inbox").take(only(tmp_path / "inbox"), tmp_path / "mine", allow=no)
    assert not (tmp_path / "mine").exists()


def test_sizes_are_bounded_before_anything_is_copied(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    ask(inbox.root, b"x" * 1000)
    with pytest.raises(Refused, match="larger"):
        inbox.take(only(inbox.root), tmp_path / "mine", most=999)
    assert not (tmp_path / "mine").exists()


def test_an_answer_is_there_once_it_is_written(tmp_path: Path) -> None:
    assert answered(tmp_path, "a" * 32) is None
    answer(tmp_path, "a" * 32, {"team": "alpha", "accepted": True})
    found = answered(tmp_path, "a" * 32)
    assert found is not None and found["accepted"] is True
    with pytest.raises(ValueError, match="id"):
        answered(tmp_path, "../current")


@pytest.mark.parametrize("fails", [1, 2])
@pytest.mark.parametrize("ready", [False, True])
def test_what_is_said_to_be_refused_is_not_there(tmp_path: Path, fails: int, ready: bool) -> None:
    """The disk refuses at the last steps, before or behind the renaming."""
    inbox, calls = Inbox(tmp_path / "inbox", lambda folder: failing(folder)), [0]

    def failing(folder: Path) -> None:
        calls[0] += 1
        if calls[0] == fails:
            raise OSError("refused")

    (tmp_path / "file").write_bytes(b"x")
    payload = Ready(tmp_path / "file", hashlib.sha256(b"x").hexdigest(), 1) if ready else io.BytesIO(b"x")
    request = Request.new("run-file", "a-" + "0" * 16, TOKEN.id, "alpha", WHEN, {})
    with pytest.raises(OSError, match="refused"):
        inbox.put(request, TOKEN.key, payload)
    assert list(inbox.root.iterdir()) == [] and (tmp_path / "file").read_bytes() == b"x"
    assert inbox.put(request, TOKEN.key, payload if ready else io.BytesIO(b"x")).size == 1
    assert [one for _, one in inbox.waiting()] == [request.id]


def test_what_work_has_taken_was_put_there(tmp_path: Path) -> None:
    """The disk refuses when work has decided it already: the answer is not that it was refused."""

    def failing(folder: Path) -> None:
        for name, _ in inbox.waiting():
            inbox.remove(name)
            raise OSError("refused")

    inbox = Inbox(tmp_path / "inbox", failing)
    request = Request.new("run-file", "a-" + "0" * 16, TOKEN.id, "alpha", WHEN, {})
    assert inbox.put(request, TOKEN.key, io.BytesIO(b"x")).id == request.id


def test_what_was_taken_away_and_comes_again_is_taken_away_again(tmp_path: Path) -> None:
    """A folder that holds more than a request, made anew under the name that was refused before."""
    inbox = Inbox(tmp_path / "inbox")
    name = f"{1:010}-{'d' * 32}"
    for _ in range(3):
        (inbox.root / name).mkdir(parents=True)
        (inbox.root / name / "more").touch()
        assert inbox.remove(name) and inbox.waiting() == []
