"""The inbox: complete or not there, and opened as what an enemy wrote."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import Inbox, Ready, Refused, Request, answer, answered

TOKEN = Token.new()
WHEN = "2026-05-01T12:00:00Z"


def new_request(**data: object) -> Request:
    return Request.new("run-file", "a-" + "0" * 16, TOKEN.id, "alpha", WHEN, data)


def ask(root: Path, content: bytes | None = b"1 Q0 d 1 1 x\n") -> Request:
    return Inbox(root).put(
        new_request(task="mini"), TOKEN.key, None if content is None else io.BytesIO(content)
    )


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
            raise EOFError

    request = new_request()
    with pytest.raises(EOFError):
        Inbox(tmp_path).put(request, TOKEN.key, Cut())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / f".{request.id}").mkdir()  # killed in the middle
    (tmp_path / "notes.txt").write_text("x")
    assert Inbox(tmp_path).waiting() == []
    Inbox(tmp_path).sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def nested(depth: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


Change = Callable[[Path, Path], object]


def replaced(name: str, make: Change = lambda path, secret: None) -> Change:
    """Put what ``make`` creates in the place of a file of the request."""

    def change(folder: Path, secret: Path) -> None:
        (folder / name).unlink()
        make(folder / name, secret)

    return change


def linked(name: str) -> Change:
    """Put a symbolic link in the place of a file of the request, or of the whole folder."""

    def change(folder: Path, secret: Path) -> None:
        (folder / name).rename(secret.with_name("elsewhere"))
        (folder / name).symlink_to(secret.with_name("elsewhere"))

    return change


def longer(name: str, content: bytes) -> Change:
    return lambda folder, secret: (folder / name).write_bytes((folder / name).read_bytes() + content)


def with_fields(**fields: object) -> Change:
    def change(folder: Path, secret: Path) -> None:
        data = json.loads((folder / "request.json").read_text())
        (folder / "request.json").write_text(json.dumps(data | fields))

    return change


BAD: dict[str, Change] = {
    "impossible arrival": with_fields(arrival="9999-99-99T99:99:99Z"),
    "arrival in year zero": with_fields(arrival="0000-01-01T00:00:00Z"),
    "size as a float": with_fields(size=13.0),
    "nan": with_fields(data={"a": float("nan")}),
    "half a surrogate pair": with_fields(data={"a": "\ud800"}),
    "deep data": with_fields(data=nested(40)),
    "another id": with_fields(id="f" * 32),
    "folder as request": replaced("request.json", lambda path, secret: path.mkdir()),
    "deep request": replaced("request.json", lambda path, secret: path.write_text("[" * 60_000)),
    "large request": longer("request.json", b" " * 70_000),
    "linked request": linked("request.json"),
    "linked folder": linked(""),
    "linked payload": replaced("payload", lambda path, secret: path.symlink_to(secret)),
    "hard link": replaced("payload", lambda path, secret: path.hardlink_to(secret)),
    "pipe": replaced("payload", lambda path, secret: os.mkfifo(path)),
    "other payload": replaced("payload", lambda path, secret: path.write_bytes(b"something else")),
    "longer payload": longer("payload", b"more"),
    "no payload": replaced("payload"),
}


@pytest.mark.parametrize("change", BAD)
def test_only_plain_files_that_fit_the_request_are_opened(tmp_path: Path, change: str) -> None:
    secret = tmp_path / "truths.txt"
    secret.write_bytes(b"1 Q0 d 1 1 x\n")
    inbox = Inbox(tmp_path / "inbox")
    ask(inbox.root)
    name = only(inbox.root)
    BAD[change](inbox.root / name, secret)
    with pytest.raises(Refused):
        inbox.take(name, tmp_path / "mine")
    assert secret.read_bytes() == b"1 Q0 d 1 1 x\n"
    inbox.remove(name)
    assert inbox.waiting() == [] and secret.exists()


def test_what_our_side_may_not_read_is_no_fault_of_the_request(tmp_path: Path) -> None:
    """Too many open files, a failing disk, a folder of the wrong group: nothing is thrown away."""
    inbox = Inbox(tmp_path / "inbox")
    ask(inbox.root)
    name = only(inbox.root)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(OSError) as caught:
            inbox.take(name, tmp_path / "mine")
        assert caught.value.errno == errno.EMFILE
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
    with pytest.raises(Refused):
        Inbox(tmp_path).put(new_request(description="x" * 70_000), TOKEN.key)
    assert list(tmp_path.iterdir()) == []


def test_the_first_requests_of_many_are_looked_at(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{50 - number:010}-{number:032x}").mkdir()
    assert [name[:10] for name, _ in Inbox(tmp_path).waiting(3)] == ["0000000001", "0000000002", "0000000003"]


def test_a_payload_that_is_not_allowed_or_too_large_is_not_copied(tmp_path: Path) -> None:
    refusal, inbox = Refused("not theirs"), Inbox(tmp_path / "inbox")

    def refuse(request: Request) -> None:
        raise refusal

    ask(inbox.root, b"x" * 1000)
    with pytest.raises(Refused) as caught:
        inbox.take(only(inbox.root), tmp_path / "mine", allow=refuse)
    assert caught.value is refusal
    with pytest.raises(Refused) as caught:
        inbox.take(only(inbox.root), tmp_path / "mine", most=999)
    assert " 999 " in str(caught.value) and not (tmp_path / "mine").exists()


def test_an_answer_is_there_once_it_is_written(tmp_path: Path) -> None:
    assert answered(tmp_path, "a" * 32) is None
    answer(tmp_path, "a" * 32, {"team": "alpha", "accepted": True})
    found = answered(tmp_path, "a" * 32)
    assert found is not None and found["accepted"] is True
    with pytest.raises(ValueError):
        answered(tmp_path, "../current")


@pytest.mark.parametrize("fails", [1, 2])
@pytest.mark.parametrize("ready", [False, True])
def test_what_is_said_to_be_refused_is_not_there(tmp_path: Path, fails: int, ready: bool) -> None:
    """The disk refuses at the last steps, before or behind the renaming."""
    inbox, calls = Inbox(tmp_path / "inbox", lambda folder: failing(folder)), [0]

    def failing(folder: Path) -> None:
        calls[0] += 1
        if calls[0] == fails:
            raise PermissionError

    (tmp_path / "file").write_bytes(b"x")
    payload = Ready(tmp_path / "file", hashlib.sha256(b"x").hexdigest(), 1) if ready else io.BytesIO(b"x")
    request = new_request()
    with pytest.raises(PermissionError):
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
    request = new_request()
    assert inbox.put(request, TOKEN.key, io.BytesIO(b"x")).id == request.id


def test_what_was_taken_away_and_comes_again_is_taken_away_again(tmp_path: Path) -> None:
    """A folder that holds more than a request, made anew under the name that was refused before."""
    inbox = Inbox(tmp_path / "inbox")
    name = f"{1:010}-{'d' * 32}"
    for _ in range(3):
        (inbox.root / name).mkdir(parents=True)
        (inbox.root / name / "more").touch()
        assert inbox.remove(name) and inbox.waiting() == []
