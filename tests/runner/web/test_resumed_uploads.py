"""Uploads that continue after a cut: over real HTTP, bounds, and whose they are."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from runner.cli.remote.client import Client
from runner.cli.remote.servers import Server
from runner.cli.remote.uploading import upload
from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox
from runner.exchange.published import Publisher
from runner.model.clock import FixedClock
from runner.model.errors import RunnerError
from runner.web.routes.handing_in import LARGE
from runner.web.uploads import SURE, Bounds, Full, Upload, Uploads
from tests.e2e.test_server import until
from tests.runner.web.test_routes import Front, grant
from tests.worlds.proxy import Proxy, proxy
from tests.worlds.site import serving
from tests.worlds.small_disk import small_disk

CONTENT = os.urandom(3_000_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
UPLOADS = "/api/v1/uploads"


@pytest.fixture
def line() -> Iterator[Proxy]:
    with proxy() as made:
        yield made


@pytest.fixture
def front(tmp_path: Path, line: Proxy) -> Iterator[Front]:
    exchange = tmp_path / "exchange"
    Publisher(exchange / "published").publish({})
    tokens = {"team": Token.new(), "other": Token.new()}
    Access({t.id: grant(t, name) for name, t in tokens.items()}).write(exchange / "published")
    with serving(exchange, tmp_path / "state", 16_000_000, through=line) as url:
        yield Front(exchange, url, tokens, "")


@pytest.fixture
def client(front: Front) -> Iterator[Client]:
    with Client(Server("local", front.url, str(front.tokens["team"]), "alpha")) as made:
        yield made


def ask(team: httpx2.Client, size: int = len(CONTENT), digest: str = DIGEST) -> httpx2.Response:
    """Begin an upload, or ask how far it is."""
    return team.put(f"{UPLOADS}/{digest}", headers={"Content-Range": f"bytes */{size}"})


def begin(team: httpx2.Client, size: int = len(CONTENT), digest: str = DIGEST) -> str:
    said = ask(team, size, digest)
    assert said.status_code == 200, said.text
    return f"{UPLOADS}/{digest}"


def put(
    team: httpx2.Client, where: str, part: bytes, at: int, size: int = len(CONTENT), **more: str
) -> httpx2.Response:
    headers = {"Content-Range": f"bytes {at}-{at + len(part) - 1}/{size}", **more}
    return team.put(where, content=part, headers=headers)


def listed(team: httpx2.Client, where: str) -> dict[str, object] | None:
    """What the server says of an upload in its list; None if it is not there."""
    items = team.get(UPLOADS).json()["items"]
    return next((one for one in items if where.endswith(one["sha256"])), None)


def id_of(team: httpx2.Client, where: str) -> str:
    return str((listed(team, where) or {})["id"])


def offset(team: httpx2.Client, where: str) -> object:
    return (listed(team, where) or {}).get("offset")


@pytest.mark.parametrize(
    ("digest", "range_"),
    [
        ("0" * 64, ""),
        ("0" * 64, "bytes 0-0/*"),
        ("0" * 64, "bytes 0-1/5"),
        ("0" * 64, "bytes 5-5/5"),
        ("0" * 64, "bytes 1-0/5"),
        ("0" * 64, "bytes */5"),
        ("0" * 64, "bytes ²-²/5"),
        ("0" * 63, "bytes 0-0/5"),
        ("A" * 64, "bytes 0-0/5"),
    ],
)
def test_what_is_no_part_is_refused(front: Front, digest: str, range_: str) -> None:
    with front.client("team") as team:
        headers = {"Content-Range": range_.encode()} if range_ else {}
        said = team.put(f"{UPLOADS}/{digest}", content=b"x", headers=headers)
        assert said.status_code == 400 and team.get(UPLOADS).json()["items"] == []


def test_an_upload_in_parts_is_handed_in_and_belongs_to_its_team(front: Front) -> None:
    with front.client("team") as team, front.client("other") as other:
        where = begin(team)
        assert ask(team).json()["offset"] == 0
        assert put(team, where, CONTENT[:1000], 5).status_code == 409, "not where it is"
        assert put(team, where, CONTENT[:1000], 0, len(CONTENT) + 1).status_code == 409, "another size"
        assert put(team, where, CONTENT[:1000], 0).json()["offset"] == 1000
        assert other.delete(where).status_code == 404 and listed(other, where) is None
        assert put(other, where, CONTENT[1000:2000], 1000).status_code == 409, "it has none"
        assert offset(team, where) == 1000
        form = {"software": "one", "upload": id_of(team, where), "name": "run.txt"}
        assert team.post("/api/v1/tasks/mini/run-files", data=form).status_code == 400, "not whole yet"
        assert put(team, where, CONTENT[1000:], 1000).json()["offset"] == len(CONTENT)
        assert other.post("/api/v1/tasks/mini/run-files", data=form).status_code == 400
        taken = team.post("/api/v1/tasks/mini/run-files", data=form)
        assert taken.status_code == 202 and taken.json()["sha256"] == DIGEST
        assert listed(team, where) is None, "it is handed in once"
    inbox = Inbox(front.exchange / "inbox")
    [(name, _)] = inbox.waiting()
    found = inbox.take(name, front.exchange / "mine")
    assert found.payload is not None and found.payload.read_bytes() == CONTENT
    assert found.request.data["file"] == "run.txt"


def test_what_is_not_what_was_announced_is_not_kept(front: Front) -> None:
    with front.client("team") as team:
        where = begin(team, 5, hashlib.sha256(b"right").hexdigest())
        assert put(team, where, b"wrong", 0, 5).status_code == 422
        assert listed(team, where) is None
        where = begin(team, 0, hashlib.sha256(b"").hexdigest())
        assert team.delete(where).status_code == 204 and listed(team, where) is None


def test_a_cut_in_the_middle_loses_nothing_also_for_another_process(
    front: Front, line: Proxy, client: Client
) -> None:
    """The line breaks behind the first million bytes: what came stays, and the next one that asks goes on there."""
    with front.client("team") as team:
        where = begin(team)
        line.cut_at = line.passed + 1_000_000
        with pytest.raises(httpx2.HTTPError):
            put(team, where, CONTENT, 0)
    with front.client("team") as team:  # the front may still be writing what came
        at = until(lambda: (n := int(str(offset(team, where)))) > 900_000 and n, every=0.02)
    assert at < 1_000_000 and line.cuts == 1
    there: list[int] = []
    before = line.passed
    upload(client, io.BytesIO(CONTENT), len(CONTENT), DIGEST, there.append, lambda _: None)
    assert there[0] >= at and there[-1] == len(CONTENT)
    assert line.passed - before < len(CONTENT) - at + 20_000, "only what was missing was sent"


def test_the_client_goes_on_by_itself(line: Proxy, client: Client) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        time.sleep(0.3)  # the front has to see that the line is cut
        if len(waited) < 3:
            line.cut_at = line.passed + 700_000

    line.cut_at = line.passed + 1_200_000
    upload(client, io.BytesIO(CONTENT), len(CONTENT), DIGEST, lambda _: None, wait, chunk=500_000)
    assert line.cuts >= 2 and len(waited) >= line.cuts
    line.down = True
    with pytest.raises(RunnerError) as error:
        upload(client, io.BytesIO(b"x"), 1, hashlib.sha256(b"x").hexdigest(), lambda _: None, waited.append)
    assert error.value.code == "E312"


def create(uploads: Uploads, team: str, size: int) -> Upload:
    """Begin an upload of another content."""
    return uploads.begin(team, size, secrets.token_hex(32), "")


def test_bounds_are_told_with_numbers_and_time_ends_uploads(tmp_path: Path) -> None:
    clock, steady = FixedClock(datetime.fromtimestamp(1e9, UTC)), [0.0]
    bounds = Bounds(each=100, team=150, open=3, lasts=60.0, free=0)
    uploads = Uploads(tmp_path / "uploads", bounds, clock, lambda: steady[0])

    def full(team: str, size: int) -> tuple[int, str]:
        with pytest.raises(Full) as error:
            create(uploads, team, size)
        return error.value.status, str(error.value)

    assert full("alpha", 101)[0] == 413 and "100 B" in full("alpha", 101)[1]
    first = create(uploads, "alpha", 100)
    assert full("alpha", 51)[0] == 413 and "150 B" in full("alpha", 51)[1]
    for _ in range(2):
        create(uploads, "alpha", 1)
    assert full("alpha", 1)[0] == 429 and "3 uploads" in full("alpha", 1)[1]
    assert create(uploads, "beta", 100), "another team's are not counted"
    for path in (tmp_path / "uploads").iterdir():
        os.utime(path, (1e9, 1e9))
    clock.at += timedelta(days=365)  # set wrong, and corrected
    assert uploads.get("alpha", first.id) is None and not uploads.sweep()
    clock.at -= timedelta(days=365)
    assert uploads.get("alpha", first.id) == first and not uploads.sweep()
    clock.at += timedelta(seconds=61)
    assert uploads.get("alpha", first.id) is None and uploads.of("alpha") == []
    create(uploads, "alpha", 100)
    steady[0] += SURE
    assert uploads.sweep() and len(list((tmp_path / "uploads").iterdir())) == 2, "what is over takes no room"
    none = Uploads(tmp_path / "more", Bounds(free=2**62))
    with pytest.raises(Full) as error:
        create(none, "alpha", 1)
    assert error.value.status == 507


@pytest.mark.slow
def test_who_sends_faster_than_the_server_takes_waits_as_it_says(client: Client) -> None:
    """A large image on a fast line is more requests than a token may send at once: that ends no upload."""
    content = os.urandom(330)
    digest = hashlib.sha256(content).hexdigest()
    there: list[int] = []
    upload(client, io.BytesIO(content), len(content), digest, there.append, lambda _: None, chunk=1)
    assert there[-1] == len(content)


def test_what_is_on_its_way_is_counted_and_leaves_room(tmp_path: Path) -> None:
    """Each upload alone would fit; all that was announced would not. What others write meanwhile is seen before each part."""
    free = shutil.disk_usage(tmp_path).free
    uploads = Uploads(tmp_path / "uploads", Bounds(each=free, team=free, free=free // 2))
    first = create(uploads, "alpha", free // 4)
    with pytest.raises(Full) as error:
        create(uploads, "beta", free // 3)
    assert error.value.status == 507
    uploads.forget(first.id)
    create(uploads, "beta", free // 3)
    uploads.keep_free(free // 4)
    with pytest.raises(OSError) as full:
        uploads.keep_free(free)
    assert full.value.errno == errno.ENOSPC


def test_a_file_in_a_form_leaves_what_stays_free(front: Front, tmp_path: Path) -> None:
    data, path = {"software": "one", "dataset": "dev"}, "/api/v1/tasks/mini/run-files"
    with (
        small_disk(front.exchange / "inbox", 530),
        serving(front.exchange, tmp_path / "other", 10**8) as url,
        replace(front, url=url).client("team") as team,
    ):
        taken = team.post(path, data=data, files={"file": ("run.txt", bytes(1_000_000))})
        assert taken.status_code == 202, taken.text
        said = team.post(path, data=data, files={"file": ("run.txt", bytes(LARGE))})
        assert said.status_code == 507 and len(Inbox(front.exchange / "inbox").waiting()) == 1


def test_a_part_that_would_take_what_stays_free_is_refused(front: Front) -> None:
    """An upload that was begun while there was room; the disk fills up then."""
    with front.client("team") as team:
        where = begin(team)
        assert put(team, where, CONTENT[:1000], 0).status_code == 200
        none = front.exchange / "inbox/.uploads"
        with small_disk(front.exchange / "small", 1) as disk:  # its free bytes are below what has to stay
            moved = disk.path / "uploads"
            shutil.copytree(none, moved)
            shutil.rmtree(none)
            none.symlink_to(moved)
            said = put(team, where, CONTENT[1000:], 1000)
            assert said.status_code == 507 and offset(team, where) == 1000
            none.unlink()
            shutil.copytree(moved, none)
        assert put(team, where, CONTENT[1000:], 1000).status_code == 200
