"""Bundles: what is written can be read, and nothing that was changed is believed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.records.files import file_sha256
from runner.submissions.bundle import bundle_digest, read_bundle, write_bundle
from tests.worlds.definitions import told

DATA: dict[str, Any] = {
    "schema_version": 1,
    "team": "alpha",
    "software": "one",
    "task": "mini",
    "scenarios": ["default"],
    "image": {"id": "sha256:" + "1" * 64, "archive": "image.tar", "repo_digest": None, "platform": "linux/amd64"},
    "runs": [],
    "command": ["true"],
    "tag": "one",
    "description": "",
    "method": "automatic",
    "inputs": {},
    "check": None,
    "packed": "2026-01-01T00:00:00Z",
}  # fmt: skip
FORGED = json.dumps({**DATA, "team": "beta"})
UPLOAD = {"file": "run.txt", "dataset": "dev", "scenario": "default", "sha256": "2" * 64}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.write_bytes(b"image" * 1000)
    write_bundle(tmp_path / "b", DATA, {"image.tar": source, "submission.yaml": source})
    return tmp_path / "b"


def _resign(folder: Path, data: dict[str, Any]) -> None:
    (folder / "bundle.json").write_text(json.dumps(data))
    files = {
        str(p.relative_to(folder)): {"sha256": file_sha256(p), "size": p.stat().st_size}
        for p in folder.rglob("*")
        if p.is_file() and p.name != "manifest.json"
    }
    (folder / "manifest.json").write_text(json.dumps({"schema_version": 1, "files": files}))


def test_what_is_written_can_be_read(bundle: Path) -> None:
    read = read_bundle(bundle)
    assert read.data == DATA and read.submission_id == f"alpha.one.{read.digest[:8]}"
    assert read.digest == bundle_digest({**DATA, "packed": "later", "check": {"x": 1}})
    assert read.digest != bundle_digest({**DATA, "command": ["false"]})
    assert [p.name for p in bundle.parent.iterdir() if p.name.startswith(".")] == []


def test_writing_again_replaces_it_and_spares_what_is_not_ours(bundle: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_bundle(bundle, {**DATA, "tag": "two"}, {"image.tar": source})
    assert read_bundle(bundle).data["tag"] == "two"
    assert not (bundle / "submission.yaml").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("a thesis")
    with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
        write_bundle(tmp_path / "mine", DATA, {})
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "a thesis"


def test_a_failed_write_leaves_the_old_one(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_bundle(bundle, {**DATA, "tag": "two"}, {"image.tar": tmp_path / "missing"})
    assert read_bundle(bundle).data["tag"] == "one"
    assert [p.name for p in bundle.parent.iterdir() if p.name.startswith(".")] == []


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def _link(path: Path) -> None:
    path.rename(path.parent.parent / "x")
    path.symlink_to(path.parent.parent / "x")


TAMPER: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a changed byte": (lambda b: _flip(b / "image.tar"), "image.tar: "),
    "a longer file": (lambda b: (b / "image.tar").open("a").write("x"), "image.tar: "),
    "a missing file": (lambda b: (b / "image.tar").unlink(), "image.tar: "),
    "an extra file": (lambda b: (b / "extra").write_text("x"), "extra: "),
    "an extra file in a folder": (lambda b: ((b / "d").mkdir(), (b / "d/x").touch()), "d/x: "),
    "a link": (lambda b: (b / "l").symlink_to("/etc/passwd"), "l: "),
    "a linked folder": (lambda b: (b / "l").symlink_to("/etc"), "l: "),
    "a link for a file": (lambda b: _link(b / "image.tar"), "image.tar: "),
    "a pipe": (lambda b: os.mkfifo(b / "p"), "p: "),
    "a hostile name": (lambda b: (b / "\x1b[2J").touch(), "\\x1b[2J: "),
    "a changed bundle.json": (lambda b: (b / "bundle.json").write_text(FORGED), "bundle.json: "),
    "a linked bundle.json": (lambda b: _link(b / "bundle.json"), "bundle.json"),
    "no manifest": (lambda b: (b / "manifest.json").unlink(), "manifest.json"),
    "a manifest that is none": (lambda b: (b / "manifest.json").write_text("[]"), "manifest.json"),
    "no JSON": (lambda b: (b / "bundle.json").write_bytes(b"\xff{"), "bundle.json"),
    "no folder": (shutil.rmtree, "--to"),
    "much JSON": (lambda b: (b / "bundle.json").write_text(" " * 2**21), "bundle.json"),
}


@pytest.mark.parametrize("case", TAMPER)
def test_tampering_is_found(case: str, bundle: Path) -> None:
    tamper, expected = TAMPER[case]
    tamper(bundle)
    with pytest.raises(RunnerError) as caught:
        read_bundle(bundle)
    assert caught.value.code == "E205"
    assert expected in told(caught.value)
    assert told(caught.value).replace("\n", "").isprintable()


def test_all_problems_at_once(bundle: Path) -> None:
    for case in ("a changed byte", "an extra file", "a link", "a pipe"):
        TAMPER[case][0](bundle)
    (bundle / "submission.yaml").unlink()
    with pytest.raises(RunnerError) as caught:
        read_bundle(bundle)
    assert len(caught.value.problems) == 5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"team": "../x"}, "team"),
        ({"task": ""}, "task"),
        ({"image": {"id": "python:3.11-slim"}}, "id"),
        ({"image": {"id": "sha256:" + "1" * 64, "archive": "../../etc/passwd"}}, "archive"),
        ({"image": None}, "image"),
        ({"runs": [UPLOAD | {"file": "../run.txt"}]}, "file"),
        ({"runs": [UPLOAD]}, "runs/run.txt"),
        ({"image": None, "runs": [UPLOAD]}, "runs/run.txt"),
        ({"inputs": {"x": 1}}, '"x"'),
        ({"tag": "a b\x1b"}, "tag"),
        ({"surprise": 1}, "surprise"),
        ({"packed": None}, "packed"),
    ],
)
def test_right_hashes_do_not_make_it_right(changes: dict[str, Any], expected: str, bundle: Path) -> None:
    _resign(bundle, {**DATA, **changes})
    with pytest.raises(RunnerError) as caught:
        read_bundle(bundle)
    assert caught.value.code == "E205" and expected in told(caught.value)
    assert told(caught.value).replace("\n", "").isprintable()


def test_files_that_a_manifest_smuggles_in_are_refused(bundle: Path) -> None:
    (bundle / "runs").mkdir()
    for name in ("payload.bin", "runs/stray.txt"):
        (bundle / name).write_bytes(b"x")
    _resign(bundle, DATA)
    with pytest.raises(RunnerError) as caught:
        read_bundle(bundle)
    assert [p.where for p in caught.value.problems] == ["payload.bin", "runs/stray.txt"]
