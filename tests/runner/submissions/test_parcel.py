"""Parcels: an image taken apart and put together again; what hostile ones are refused for."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import Exit
from runner.engines.fake import FakeEngine
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.submissions.bundle import MAX_IMAGE, Bundle, write_bundle
from runner.submissions.parcel import Part, note_bases, note_parts, parcel, parts_for, parts_of, unpack
from tests.runner.submissions.test_bundle import DATA
from tests.worlds.definitions import told

LAYERS = [os.urandom(200_000), os.urandom(100_000)]


def archive(path: Path, layers: list[bytes], more: bytes = b"{}") -> Path:
    """A file in the form of ``docker save``, with a link as it writes for equal layers."""
    with tarfile.open(path, "w") as tar:
        for n, content in enumerate([*layers, more]):
            name = f"{n}/layer.tar" if n < len(layers) else "config.json"
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        entry = tarfile.TarInfo("9/layer.tar")
        entry.type, entry.linkname = tarfile.SYMTYPE, "../0/layer.tar"
        tar.addfile(entry)
    return path


def bundle(folder: Path, layers: list[bytes], software: str = "one") -> Bundle:
    folder.mkdir(parents=True)
    data = DATA | {"software": software}
    (folder / "submission.yaml").write_text("task: mini\n")
    files = {"submission.yaml": folder / "submission.yaml", "image.tar": archive(folder / "i", layers)}
    return write_bundle(folder / "bundle", data, files)


def members(path: Path) -> list[tuple[str, bytes | str]]:
    with tarfile.open(path) as tar:
        return [(m.name, m.linkname if m.issym() else tar.extractfile(m).read()) for m in tar]  # type: ignore[union-attr]


def written(tmp_path: Path, made: Bundle, there: list[str] | None = None) -> Path:
    sent = parcel(made, there or [])
    path = tmp_path / "parcel"
    path.write_bytes(io.BufferedReader(sent, 4096).read())
    assert path.stat().st_size == sent.size and hashlib.sha256(path.read_bytes()).hexdigest() == sent.sha256
    return path


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    made = bundle(tmp_path / "a", LAYERS)
    found = unpack(written(tmp_path, made), {}, tmp_path / "there")
    assert found.submission_id == made.submission_id and found.digest == made.digest
    assert members(found.folder / "image.tar") == members(made.folder / "image.tar")


def test_parts_of_the_teams_own_hand_ins_are_not_sent(tmp_path: Path) -> None:
    first, registered = bundle(tmp_path / "a", LAYERS), tmp_path / "registered"
    (registered / "x").mkdir(parents=True)
    first.folder.rename(registered / "x" / "bundle")
    note_parts(registered / "x")
    own = parts_of(registered, ["x", "gone"])
    assert set(own) == {digest(layer) for layer in LAYERS} and parts_of(registered, []) == {}
    new = os.urandom(1000)
    made = bundle(tmp_path / "b", [*LAYERS, new], "two")
    path = written(tmp_path, made, list(own))
    assert path.stat().st_size < 10_000
    found = unpack(path, own, tmp_path / "there")
    assert members(found.folder / "image.tar") == members(made.folder / "image.tar")
    with (registered / "x/bundle/image.tar").open("r+b") as file:  # our own copy was damaged meanwhile
        file.seek(1000)
        file.write(b"damage")
    with pytest.raises(RunnerError):
        unpack(path, own, tmp_path / "again")


def test_what_was_claimed_and_not_sent_is_refused_and_named(tmp_path: Path) -> None:
    """Whoever knows the digest of somebody's layer has not got the layer."""
    made = bundle(tmp_path / "a", LAYERS)
    path = written(tmp_path, made, [digest(LAYERS[0])])
    with pytest.raises(RunnerError) as error:
        unpack(path, {}, tmp_path / "there")
    assert error.value.code == "E205" and digest(LAYERS[0]) in error.value.problems[0].what
    other = Part(tmp_path / "a/i", 0, 5, digest(LAYERS[0]))
    with pytest.raises(RunnerError):
        unpack(path, {digest(LAYERS[0]): other}, tmp_path / "there")


def test_few_bytes_do_not_become_a_huge_image(tmp_path: Path) -> None:
    """A part may stand in an image again and again; how much that is together, is known before anything is written."""
    path = written(tmp_path, bundle(tmp_path / "a", LAYERS))
    (tmp_path / "own").touch()
    own = Part(tmp_path / "own", 0, MAX_IMAGE // 4, "0" * 64)
    named = [{"name": f"{n}/layer.tar", "size": own.size, "sha256": own.sha256} for n in range(5)]
    with pytest.raises(RunnerError) as error:
        unpack(changed(path, image=named), {own.sha256: own}, tmp_path / "there")
    assert error.value.code == "E205" and "32 GiB" in told(error.value)
    assert not (tmp_path / "there.parts").exists()


def changed(path: Path, **keys: Any) -> Path:
    line, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(line), **keys}).encode() + b"\n" + rest)
    return path


def hostile(path: Path, how: str) -> None:
    raw = path.read_bytes()
    head = json.loads(raw.partition(b"\n")[0])
    one = {"sha256": digest(b"{}"), "size": 2}
    image: list[dict[str, Any]] = {
        "up": [{"name": "../../up", **one}],
        "absolute": [{"name": "/etc/x", **one}],
        "link": [{"name": "l", "link": "../../../etc/passwd"}],
        "size": [{"name": "x", "sha256": one["sha256"], "size": 10**15}],
    }.get(how, head["image"])
    if how in ("up", "absolute", "link", "size"):
        changed(path, image=image)
    elif how == "names":
        changed(path, files=[*head["files"], {"name": "manifest.json", **one}])
    elif how == "twice":
        changed(path, files=[*head["files"], head["files"][0]])
    elif how == "no bundle":
        changed(path, files=[])
    elif how == "cut":
        path.write_bytes(raw[:-1])
    elif how == "longer":
        path.write_bytes(raw + b"x")
    elif how == "content":
        path.write_bytes(raw[:-50] + bytes(50))
    elif how == "line":
        path.write_bytes(b"[" * 5_000_000)
    else:
        path.write_bytes(b"")


HEADS = ["up", "absolute", "link", "size", "names", "twice", "no bundle"]


@pytest.mark.parametrize("how", [*HEADS, "cut", "longer", "content", "line", "empty"])
def test_what_is_no_parcel_is_refused(tmp_path: Path, how: str) -> None:
    path = written(tmp_path, bundle(tmp_path / "a", LAYERS))
    hostile(path, how)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E205"):
        unpack(path, {}, tmp_path / "deep/er/there")
    assert not (tmp_path / "deep/er/there").exists() and not (tmp_path / "up").exists()


class _Saving(FakeEngine):
    """An engine that saves an image as a real archive."""

    saved = 0

    def save(self, image: ImageRef, to: Path) -> None:
        self.saved += 1
        archive(to, LAYERS)


def test_layers_of_the_organisers_base_images_need_not_be_sent_by_anybody(tmp_path: Path) -> None:
    engine = _Saving({"base:1": Exit(0)})
    base = engine.resolve("base:1").id
    note_bases(tmp_path, engine, ["base:1", "not:there"])
    note_bases(tmp_path, engine, ["base:1"])
    assert engine.saved == 1, "once an image"
    found = parts_for(tmp_path, [])
    assert set(found) == {digest(layer) for layer in LAYERS}
    made = bundle(tmp_path / "b", [*LAYERS, b"mine"])
    unpacked = unpack(written(tmp_path, made, list(found)), found, tmp_path / "there")
    assert members(unpacked.folder / "image.tar") == members(made.folder / "image.tar")
    assert (tmp_path / "bases" / base.removeprefix("sha256:")).is_dir()
    note_bases(tmp_path, engine, [])
    assert parts_for(tmp_path, []) == {}, "what is named no more goes"
