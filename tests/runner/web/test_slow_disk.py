"""Readers during uploads: while the disk holds uploads and submissions up, pages are answered, and most threads are free."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.web import uploads as uploads_module
from runner.web.door import DIGEST_SLOTS, DISK_SLOTS, Door
from runner.web.sessions import Sessions
from runner.web.uploads import Bounds, Uploads
from tests.runner.web.test_killed_uploads import forget_digest
from tests.runner.web.test_resumed_uploads import ask, begin, put
from tests.runner.web.test_routes import Front, front

__all__ = ["front"]
CONTENT = b"1 Q0 d1 1 1.0 t\n"
UPLOADS_OF_A_TEAM = 16
Send = Callable[[httpx2.Client], httpx2.Response]


@dataclass
class Disk:
    """A disk that holds up every call of some functions until it is released."""

    released: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    calls: int = 0
    most_calls: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hold(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        """Hold up the function of that name."""
        original = getattr(owner, name)

        def held(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.calls += 1
                self.most_calls = max(self.most_calls, self.calls)
            self.waiting.release()
            assert self.released.wait(60)
            try:
                return original(*args, **kwargs)
            finally:
                with self._lock:
                    self.calls -= 1

        monkeypatch.setattr(owner, name, held)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def senders(disk: Disk) -> Iterator[ThreadPoolExecutor]:
    """Threads that send requests; the disk is released before they are waited for."""
    with ThreadPoolExecutor(2 * UPLOADS_OF_A_TEAM) as pool:
        yield pool
        disk.released.set()


def prepare_create(team: httpx2.Client) -> Send:
    return begin_again


def begin_again(team: httpx2.Client) -> httpx2.Response:
    begin(team)
    return team.get("/api/v1/uploads")


def prepare_append(team: httpx2.Client) -> Send:
    size = len(CONTENT) + 1
    where = begin(team, size, secrets.token_hex(32))
    return partial(put, where=where, part=CONTENT, at=0, size=size)


def prepare_removal(team: httpx2.Client) -> Send:
    where = begin(team)
    return lambda client: client.delete(where)


def prepare_submission(team: httpx2.Client) -> Send:
    return lambda client: client.post(
        "/api/v1/tasks/mini/run-files", data={"software": "one"}, files={"file": ("run.txt", CONTENT)}
    )


def send(front: Front, role: str, request: Send) -> int:
    with front.client(role) as client:
        return request(client).status_code


@pytest.mark.parametrize("in_threads", [True, False], ids=["in threads", "in the event loop"])
@pytest.mark.parametrize(
    ("prepare", "owner", "name"),
    [
        (prepare_create, os, "fsync"),
        (prepare_append, os, "fsync"),
        (prepare_removal, Uploads, "forget"),
        (prepare_submission, os, "fsync"),
        (prepare_submission, Sessions, "note"),
    ],
    ids=["create", "append", "remove", "submit", "note"],
)
def test_a_page_does_not_wait_for_the_disk_of_an_upload(
    front: Front,
    disk: Disk,
    senders: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[httpx2.Client], Send],
    owner: Any,
    name: str,
    *,
    in_threads: bool,
) -> None:
    if not in_threads:

        async def run_in_event_loop(self: Door, function: Callable[..., Any], *args: Any) -> Any:
            return function(*args)

        monkeypatch.setattr(Door, "on_disk", run_in_event_loop)
    with front.client("team") as team:
        request = prepare(team)
        disk.hold(monkeypatch, owner, name)
        sent = senders.submit(send, front, "team", request)
        assert disk.waiting.acquire(timeout=60)
        with front.client() as reader:
            if in_threads:
                assert reader.get("/tasks/mini").status_code == 200
                assert team.get("/tasks/mini/main").status_code == 200, "signed in"
            else:
                with pytest.raises(httpx2.ReadTimeout):
                    reader.get("/tasks/mini", timeout=1)
        assert not sent.done()
        disk.released.set()
        assert sent.result(60) < 300


@pytest.mark.slow
def test_uploads_take_few_of_the_threads(
    front: Front,
    disk: Disk,
    senders: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = []
    for role in ("team", "other"):
        with front.client(role) as client:
            requests += [(role, prepare_append(client)) for _ in range(UPLOADS_OF_A_TEAM)]
    disk.hold(monkeypatch, os, "fsync")
    sent: list[Future[int]] = [senders.submit(send, front, role, request) for role, request in requests]
    for _ in range(DISK_SLOTS):
        assert disk.waiting.acquire(timeout=60)
    assert not disk.waiting.acquire(timeout=1), "the others wait without a thread"
    disk.released.set()
    assert [one.result(60) for one in sent] == [200] * len(sent)
    assert disk.most_calls == DISK_SLOTS


def prepare_last_byte(front: Front, team: httpx2.Client) -> Send:
    content = os.urandom(len(CONTENT))
    where = begin(team, len(content), hashlib.sha256(content).hexdigest())
    return partial(put, where=where, part=content, at=0, size=len(content))


def sent(front: Front, team: httpx2.Client) -> tuple[str, str]:
    """The id and the digest of a complete upload."""
    response = prepare_last_byte(front, team)(team)
    assert response.status_code == 200
    return response.json()["id"], response.json()["sha256"]


def prepare_question(front: Front, team: httpx2.Client) -> Send:
    id, digest = sent(front, team)
    forget_digest(front, id)
    return partial(ask, size=len(CONTENT), digest=digest)


def submit_upload(team: httpx2.Client, id: str) -> httpx2.Response:
    data = {"upload": id, "software": "one", "dataset": "dev", "name": "r.txt"}
    return team.post("/api/v1/tasks/mini/run-files", data=data)


def prepare_upload(front: Front, team: httpx2.Client) -> Send:
    id, _ = sent(front, team)
    forget_digest(front, id)
    return partial(submit_upload, id=id)


@pytest.mark.parametrize("prepare", [prepare_last_byte, prepare_question, prepare_upload])
def test_digests_of_uploads_leave_the_disk_to_others(
    front: Front,
    disk: Disk,
    senders: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Front, httpx2.Client], Send],
) -> None:
    """The digest of 32 GiB takes minutes."""
    with front.client("team") as team, front.client("other") as other:
        requests = [prepare(front, team) for _ in range(DISK_SLOTS + 1)]
        complete, _ = sent(front, other)
        disk.hold(monkeypatch, uploads_module, "file_sha256")
        answers = [senders.submit(send, front, "team", request) for request in requests]
        for _ in range(DIGEST_SLOTS):
            assert disk.waiting.acquire(timeout=60)
        assert other.get("/api/v1/uploads").status_code == 200
        assert begin(other, 5, "0" * 64)
        assert submit_upload(other, complete).status_code < 300
        assert not disk.waiting.acquire(timeout=0.5), "the other digests wait without a thread"
        disk.released.set()
        assert all(answer.result(60) < 500 for answer in answers)
    assert disk.most_calls == DIGEST_SLOTS


def test_uploads_that_begin_at_once_stay_within_the_bounds(
    tmp_path: Path, disk: Disk, senders: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = Uploads(tmp_path, Bounds(open=1))
    disk.hold(monkeypatch, os, "fsync")
    begun = [senders.submit(uploads.begin, "alpha", 1, f"{n:064}", "now") for n in range(4)]
    assert disk.waiting.acquire(timeout=60)
    assert not disk.waiting.acquire(timeout=0.5), "the others wait for the first"
    disk.released.set()
    errors = [upload.exception(60) for upload in begun]
    assert sorted(str(getattr(error, "status", None)) for error in errors) == ["429"] * 3 + ["None"]
    assert len(uploads.of("alpha")) == 1
