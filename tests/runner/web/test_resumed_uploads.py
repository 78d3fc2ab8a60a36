"""Uploads that go on after a cut: the protocol tus 1.0.0 over real HTTP, bounds, and whose they are."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import os
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
from runner.web.uploads import SURE, Bounds, Full, Uploads
from tests.e2e.test_server import until
from tests.runner.web.test_routes import Front, grant
from tests.worlds.proxy import Proxy, proxy
from tests.worlds.site import serving
from tests.worlds.small_disk import small_disk

CONTENT = os.urandom(3_000_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
TUS = {"Tus-Resumable": "1.0.0"}
PART = {**TUS, "Content-Type": "application/offset+octet-stream"}


def metadata(digest: str = DIGEST) -> str:
    return f"filename {base64.b64encode(b'x').decode()},sha256 {base64.b64encode(digest.encode()).decode()}"


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


def begin(team: httpx2.Client, size: int = len(CONTENT), digest: str = DIGEST) -> str:
    headers = {**TUS, "Upload-Length": str(size), "Upload-Metadata": metadata(digest)}
    said = team.post("/api/v1/uploads", headers=headers)
    assert said.status_code == 201 and said.headers["upload-expires"], said.text
    return str(said.headers["location"])


def patch(team: httpx2.Client, where: str, part: bytes, at: int, **more: str) -> httpx2.Response:
    return team.patch(where, content=part, headers={**PART, "Upload-Offset": str(at), **more})


def test_what_is_offered_is_said_and_another_version_is_refused(front: Front) -> None:
    with front.client() as anybody:
        said = anybody.options("/api/v1/uploads")
        assert said.headers["tus-version"] == "1.0.0" and int(said.headers["tus-max-size"]) > 2**30
        assert set(said.headers["tus-extension"].split(",")) == {
            "creation",
            "expiration",
            "checksum",
            "termination",
        }
    with front.client("team") as team:
        assert team.post("/api/v1/uploads", headers={"Tus-Resumable": "0.2"}).status_code == 412
        for headers in (
            {},
            {"Upload-Length": "x"},
            {"Upload-Length": "5"},
            {"Upload-Length": "5", "Upload-Metadata": "sha256 !"},
        ):
            said = team.post("/api/v1/uploads", headers={**TUS, **headers})
            assert said.status_code == 400 and "Upload-Length" in said.json()["why"]


def test_an_upload_in_parts_is_handed_in_and_belongs_to_its_team(front: Front) -> None:
    with front.client("team") as team, front.client("other") as other:
        where = begin(team)
        assert team.head(where).headers["upload-offset"] == "0"
        assert patch(team, where, CONTENT[:1000], 5).status_code == 409, "not where it is"
        assert team.patch(where, content=b"x", headers=TUS).status_code == 415
        assert patch(team, where, CONTENT[:1000], 0).headers["upload-offset"] == "1000"
        for said in (other.head(where), patch(other, where, b"x", 1000), other.delete(where)):
            assert said.status_code == 404
        assert other.get("/api/v1/uploads").json()["items"] == []
        good = base64.b64encode(hashlib.sha1(CONTENT[1000:2000]).digest()).decode()
        assert (
            patch(team, where, CONTENT[2000:3000], 1000, **{"Upload-Checksum": f"sha1 {good}"}).status_code
            == 460
        )
        assert team.head(where).headers["upload-offset"] == "1000", "what was wrong is gone"
        assert (
            patch(team, where, CONTENT[1000:2000], 1000, **{"Upload-Checksum": f"sha1 {good}"}).status_code
            == 204
        )
        assert patch(team, where, CONTENT[2000:] + b"more", 2000).status_code == 413
        form = {"software": "one", "upload": where.rpartition("/")[2], "name": "run.txt"}
        assert team.post("/api/v1/tasks/mini/run-files", data=form).status_code == 400, "not whole yet"
        assert patch(team, where, CONTENT[2000:], 2000).headers["upload-offset"] == str(len(CONTENT))
        assert other.post("/api/v1/tasks/mini/run-files", data=form).status_code == 400
        taken = team.post("/api/v1/tasks/mini/run-files", data=form)
        assert taken.status_code == 202 and taken.json()["sha256"] == DIGEST
        assert team.head(where).status_code == 404, "it is handed in once"
        assert team.get("/api/v1/uploads").json()["items"] == []
    inbox = Inbox(front.exchange / "inbox")
    [(name, _)] = inbox.waiting()
    found = inbox.take(name, front.exchange / "mine")
    assert found.payload is not None and found.payload.read_bytes() == CONTENT
    assert found.request.data["file"] == "run.txt"


def test_what_is_not_what_was_announced_is_not_kept(front: Front) -> None:
    with front.client("team") as team:
        where = begin(team, 5, hashlib.sha256(b"right").hexdigest())
        assert patch(team, where, b"wrong", 0).status_code == 460
        assert team.head(where).status_code == 404
        where = begin(team, 0, hashlib.sha256(b"").hexdigest())
        assert team.delete(where).status_code == 204 and team.head(where).status_code == 404


def test_a_cut_in_the_middle_loses_nothing_also_for_another_process(
    front: Front, line: Proxy, client: Client
) -> None:
    """The line breaks behind the first million bytes: what came stays, and the next one that asks goes on there."""
    with front.client("team") as team:
        where = begin(team)
        line.cut_at = line.passed + 1_000_000
        with pytest.raises(httpx2.HTTPError):
            patch(team, where, CONTENT, 0)
    with front.client("team") as team:  # the front may still be writing what came
        at = until(lambda: (n := int(team.head(where).headers["upload-offset"])) > 900_000 and n, every=0.02)
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


def test_bounds_are_told_with_numbers_and_time_ends_uploads(tmp_path: Path) -> None:
    clock, steady = FixedClock(datetime.fromtimestamp(1e9, UTC)), [0.0]
    bounds = Bounds(each=100, team=150, open=3, lasts=60.0, free=0)
    uploads = Uploads(tmp_path / "uploads", bounds, clock, lambda: steady[0])

    def full(team: str, size: int) -> tuple[int, str]:
        with pytest.raises(Full) as error:
            uploads.create(team, size, DIGEST, "")
        return error.value.status, str(error.value)

    assert full("alpha", 101)[0] == 413 and "100 B" in full("alpha", 101)[1]
    first = uploads.create("alpha", 100, DIGEST, "")
    assert full("alpha", 51)[0] == 413 and "150 B" in full("alpha", 51)[1]
    for _ in range(2):
        uploads.create("alpha", 1, DIGEST, "")
    assert full("alpha", 1)[0] == 429 and "3 uploads" in full("alpha", 1)[1]
    assert uploads.create("beta", 100, DIGEST, ""), "another team's are not counted"
    for path in (tmp_path / "uploads").iterdir():
        os.utime(path, (1e9, 1e9))
    clock.at += timedelta(days=365)  # set wrong, and corrected
    assert uploads.get("alpha", first.id) is None and not uploads.sweep()
    clock.at -= timedelta(days=365)
    assert uploads.get("alpha", first.id) == first and not uploads.sweep()
    clock.at += timedelta(seconds=61)
    assert uploads.get("alpha", first.id) is None and uploads.of("alpha") == []
    uploads.create("alpha", 100, DIGEST, "")
    steady[0] += SURE
    assert uploads.sweep() and len(list((tmp_path / "uploads").iterdir())) == 2, "what is over takes no room"
    none = Uploads(tmp_path / "more", Bounds(free=2**62))
    with pytest.raises(Full) as error:
        none.create("alpha", 1, DIGEST, "")
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
    first = uploads.create("alpha", free // 4, DIGEST, "")
    with pytest.raises(Full) as error:
        uploads.create("beta", free // 3, DIGEST, "")
    assert error.value.status == 507
    uploads.remove(first)
    uploads.create("beta", free // 3, DIGEST, "")
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
        assert patch(team, where, CONTENT[:1000], 0).status_code == 204
        none = front.exchange / "inbox/.uploads"
        with small_disk(front.exchange / "small", 1) as disk:  # its free bytes are below what has to stay
            moved = disk.path / "uploads"
            shutil.copytree(none, moved)
            shutil.rmtree(none)
            none.symlink_to(moved)
            said = patch(team, where, CONTENT[1000:], 1000)
            assert said.status_code == 507 and team.head(where).headers["upload-offset"] == "1000"
            none.unlink()
            shutil.copytree(moved, none)
        assert patch(team, where, CONTENT[1000:], 1000).status_code == 204
