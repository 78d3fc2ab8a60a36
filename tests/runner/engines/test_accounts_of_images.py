"""Images whose account files are known: looked at once, also by processes that come later; refused ones again by each."""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.engines import accounts
from runner.engines.accounts import Accounts
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.images import reference
from runner.engines.tarstream import header
from runner.model.container import ImageRef
from runner.model.errors import PlatformError

SOUND, FIFO = ImageRef(f"sha256:{'a' * 64}"), ImageRef(f"sha256:{'b' * 64}")
OTHER = ImageRef(f"sha256:{'c' * 64}")
PIPE = "the image cannot be run: /etc/passwd is not a file"


class Api:
    """An engine with containers whose account files are missing (``sound``) or named pipes (``fifo``); it counts the looks."""

    base_url, api_version = "http+docker://localhost", "1.41"

    def __init__(self) -> None:
        self.looks = 0
        self.there: list[str] = []

    def head(self, url: str, *, params: dict[str, str], timeout: float) -> Any:
        """What is at a path."""
        self.looks += 1
        if "sound" in url:
            return SimpleNamespace(status_code=404)
        facts = base64.b64encode(json.dumps({"mode": 1 << 25, "size": 0}).encode())
        return SimpleNamespace(status_code=200, headers={accounts.STAT: facts})

    def create_container_from_config(self, options: dict[str, str]) -> dict[str, str]:
        """A container of that name."""
        self.there.append(options["name"])
        return {"Id": options["name"]}

    def remove_container(self, container: str, **_: Any) -> None:
        """Away with it."""
        self.there.remove(container)


@dataclass
class Look:
    """What processes say of images at one engine, each anew."""

    folder: Path
    api: Api = field(default_factory=Api)

    def __call__(
        self, mounted: str, image: ImageRef, *places: str, bare: str = "sound", engine: str = "one"
    ) -> str | None:
        known = Accounts(lambda: self.folder, lambda: engine)
        alone = known.facts(self.api, image, {"name": bare})
        said = alone.refusal or known.refusal(self.api, mounted, image, places)
        assert self.api.there == []
        return said


def test_an_image_is_looked_at_once_whichever_process_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Look(tmp_path)
    assert [look("sound", SOUND) for _ in range(3)] == [None] * 3
    assert look.api.looks == 8  # two files by themselves and with mounts, their links and root's home, once
    assert look("sound", SOUND, "/cache") is None
    assert look.api.looks == 10  # a link may lead to where something is mounted
    assert look("fifo", SOUND, "/in") == PIPE
    assert look("fifo", OTHER) == PIPE  # it is of that image alone
    monkeypatch.setattr(accounts, "RULES", accounts.RULES + 1)
    looked = look.api.looks
    assert look("sound", SOUND) is None
    assert look.api.looks == looked + 8


@pytest.mark.parametrize(("mounted", "bare"), [("fifo", "sound"), ("sound", "fifo"), ("fifo", "fifo")])
def test_a_refused_image_is_never_remembered_as_sound(tmp_path: Path, mounted: str, bare: str) -> None:
    """Neither what the runtime sees, below the mounts, nor what the daemon sees, in the image's own root."""
    look = Look(tmp_path)
    assert [look(mounted, FIFO, "/in", bare=bare) for _ in range(2)] == [PIPE] * 2


def test_what_is_sound_at_one_engine_and_platform_is_looked_at_again_at_others(tmp_path: Path) -> None:
    """One identity may be that of an index, out of which each takes an image of its own."""
    look = Look(tmp_path)
    assert look("sound", SOUND, bare="sound") is None
    assert look("fifo", SOUND, bare="fifo") is None
    assert look("fifo", SOUND, bare="fifo", engine="other") == PIPE
    assert look("fifo", replace(SOUND, platform="linux/arm64/v8"), bare="fifo") == PIPE


@pytest.mark.parametrize("name", ["evil:latest", "sha256:../../x", f"sha256:{'A' * 64}"])
def test_what_is_no_digest_of_content_is_not_remembered(tmp_path: Path, name: str) -> None:
    look = Look(tmp_path)
    assert [look("sound", ImageRef(name)) for _ in range(2)] == [None] * 2
    assert look.api.looks == 16
    assert list(tmp_path.iterdir()) == []


PASSWD = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nme:x:20007:20007::/home/me:/bin/sh",
    "/etc/group": "root:x:0:",
}


@pytest.mark.parametrize(
    ("uid", "home", "name", "first"),
    [
        (0, "/tmp", "root", None),
        (20007, "/tmp", "me", None),
        (20008, "/opt/x", "sandbox", "sandbox:x:20008:20008:sandbox:/opt/x:/bin/sh"),
    ],
)
def test_an_account_is_added_where_the_image_has_none(
    uid: int, home: str, name: str, first: str | None
) -> None:
    said, files = accounts.with_user(PASSWD, uid, home)
    assert said == name
    if first is None:
        assert files == {}
    else:
        lines = files["/etc/passwd"].decode().split("\n")
        assert lines == [first, *PASSWD["/etc/passwd"].split("\n")]
        assert files["/etc/group"].decode().split("\n") == ["sandbox:x:20008:", "root:x:0:"]


@pytest.mark.parametrize(
    ("entry", "home"),
    [
        ("HOME=/opt/x", "/opt/x"),
        ("HOME=", ""),
        ("HOME=x", ""),
        ("HOME=/a:b", ""),
        ("HOME=/a\nb", ""),
        ("HOME=/漢", ""),
        ("HOME=//opt/./x/", "/opt/x"),
        ("HOME=/x/../in", ""),
        ("X=/y", ""),
    ],
)
def test_the_home_that_an_image_sets(entry: str, home: str) -> None:
    assert accounts.home_of(ImageRef("sha256:x", env=("PATH=/bin", entry))) == home


def test_volumes_of_an_image_are_named_as_engines_clean_them() -> None:
    volumes = dict.fromkeys(("/data", "/data/", "//in", "/x/../out", "data"))
    image = reference({"Id": "sha256:x", "Config": {"Volumes": volumes}})
    assert image.volumes == ("/data", "/in", "/out", "data")


def test_folders_that_the_platform_needs_are_not_copied() -> None:
    engine = DockerEngine("unix:///missing.sock", local=False)
    folders = ["/sbin", "/sbin/x", "/in/x", "/etc", "/proc", "/taken/x", "/", "/some"]
    assert engine.image_mounts(ImageRef("sha256:x"), folders, ["/taken", "/some/x"]) == []


class Folders(Api):
    """An engine with an image in which every path is a folder with the same ``archive``."""

    def __init__(self, archive: bytes, repeated: bytes = b"") -> None:
        super().__init__()
        self.archive, self.repeated = archive, repeated
        self.read = 0
        self.timeouts: list[float | None] = []

    def head(self, url: str, *, params: dict[str, str], timeout: float) -> Any:
        """Return the facts of a folder that is closed to others."""
        facts = base64.b64encode(json.dumps({"mode": accounts.FOLDER | 0o700, "size": 0}).encode())
        return SimpleNamespace(status_code=200, headers={accounts.STAT: facts})

    def get(self, url: str, *, timeout: float | None = None, **_: Any) -> Any:
        """Return the archive, with an endless repetition at its end if one is set."""
        self.timeouts.append(timeout)

        def chunks(_: int) -> Iterator[bytes]:
            yield self.archive
            while self.repeated:
                self.read += len(self.repeated)
                yield self.repeated

        return SimpleNamespace(raise_for_status=lambda: None, iter_content=chunks, close=lambda: None)


FOLDER = header(".", kind=tarfile.DIRTYPE)
END = bytes(1024)


def find(api: Folders, *volumes: str) -> list[str]:
    """Return the folders of an image that hold files."""
    return list(accounts.find_contents(api, "x", ImageRef("sha256:x", volumes=volumes)))


def test_few_volumes_of_an_image_are_looked_at() -> None:
    api = Folders(FOLDER + END)
    assert find(api, *(f"/v{number}" for number in range(50))) == []
    assert api.timeouts == [accounts.SECONDS] * (accounts.MAX_FOLDERS + 1)  # and its home


@pytest.mark.parametrize(("bytes_", "entries"), [(1 << 20, 1 << 30), (1 << 30, 2000)])
def test_all_folders_together_are_read_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, bytes_: int, entries: int
) -> None:
    monkeypatch.setattr(accounts, "MAX_LOOKED_AT", bytes_)
    monkeypatch.setattr(accounts, "MAX_ENTRIES", entries)
    api = Folders(b"", header("folder", kind=tarfile.DIRTYPE) * 100)
    assert find(api, "/a", "/b", "/c") == ["/a", "/b", "/c", accounts.ROOT_HOME]
    assert api.read <= (1 << 20) + 100_000


def test_a_folder_whose_archive_ends_early_is_not_taken_for_an_empty_one() -> None:
    with pytest.raises(PlatformError):
        find(Folders(FOLDER), "/a")


class Texts(Api):
    """An engine with an image whose account files hold ``text``."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self.text = text

    def head(self, url: str, *, params: dict[str, str], timeout: float) -> Any:
        """Return the facts of a file."""
        facts = {"mode": 0o644, "size": len(self.text)}
        coded = base64.b64encode(json.dumps(facts).encode())
        return SimpleNamespace(status_code=200, headers={accounts.STAT: coded})

    def get_archive(self, container: str, path: str) -> tuple[list[bytes], None]:
        """Return an archive of the file."""
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            info = tarfile.TarInfo("file")
            info.size = len(self.text)
            archive.addfile(info, io.BytesIO(self.text))
        return [file.getvalue()], None


@pytest.mark.parametrize(("size", "named"), [(64 * 1024, True), (64 * 1024 + 1, False)])
def test_large_account_files_are_not_kept(size: int, named: bool) -> None:
    facts = accounts.examine(Texts(b"#" * size), "x", SOUND)
    assert facts.refusal is None and (facts.texts is not None) is named


def test_old_facts_are_removed(tmp_path: Path) -> None:
    look = Look(tmp_path)
    assert (look("sound", SOUND), look("sound", OTHER)) == (None, None)
    files = sorted(tmp_path.iterdir())
    for path in files[:3]:
        os.utime(path, (0, 0))
    for name in ("uid-1.lock", "data-1.lock"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    Accounts(lambda: tmp_path, str).remove_old()
    assert sorted(tmp_path.iterdir()) == [*files[3:], tmp_path / "uid-1.lock"]


def test_few_facts_are_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MAX_HELD", 2)
    known, api = Accounts(lambda: tmp_path, str), Api()
    for image in (SOUND, OTHER, FIFO, SOUND):
        assert known.facts(api, image, {"name": "sound"}).refusal is None
    assert known.held <= 2
