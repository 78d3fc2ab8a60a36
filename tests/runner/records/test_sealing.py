"""What is sealed is on the disk before anybody is told of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.records.archive import RunArchive
from runner.records.contents import Content
from tests.worlds.records import TASK, fill_attempt

SUBMISSION = "alpha.x.00000000"
RUN = f"{SUBMISSION}.test"


def test_contents_are_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, done = RunArchive(tmp_path), list[str]()
    fsync, rename = os.fsync, os.rename
    link = "/proc/self/fd/{}".format
    monkeypatch.setattr("os.fsync", lambda n: (done.append(os.readlink(link(n))), fsync(n))[1])
    monkeypatch.setattr("os.rename", lambda *a, **k: (done.append(f"to {a[1]}"), rename(*a, **k))[1])
    begun = archive.begin(TASK, RUN)
    attempt = fill_attempt(archive, begun, SUBMISSION)
    again = archive.begin_evaluation(attempt)
    evaluation = archive.add_evaluation(attempt, again, {"run_id": RUN, "attempt": 1, "evaluation": 1})
    for staging, what, above in ((begun, attempt, 4), (again, evaluation, 1)):
        moved = done.index(f"to {what.path}")
        there = {p for p in what.path.rglob("*") if "evaluations" not in p.relative_to(what.path).parts}
        wanted = {staging.path / p.relative_to(what.path) for p in there if p.is_dir() or p.stat().st_size}
        assert {str(p) for p in wanted | {staging.path}} == {
            p for p in done[:moved] if p.startswith(str(staging.path))
        }
        assert {str(p) for p in what.path.parents[:above]} <= set(done[moved:])


def test_known_hashes_give_the_same_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"output/run.txt": b"1 2\n", "logs/stdout.txt": b"", "logs/stderr.txt": b"x" * 5000}
    files["lock.json"] = b"{}\n"
    known = {name: Content(hashlib.sha256(data).hexdigest(), len(data)) for name, data in files.items()}

    def sealed(place: str, known: Mapping[str, Content]) -> tuple[dict[str, object], set[str]]:
        synced, fsync = set[str](), os.fsync
        archive = RunArchive(tmp_path / place)
        staging = archive.begin(TASK, RUN)
        for name, data in files.items():
            (staging.path / name).parent.mkdir(exist_ok=True)
            (staging.path / name).write_bytes(data)

        def note(descriptor: int) -> None:
            synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
            fsync(descriptor)

        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", note)
            attempt = archive.seal(staging, {"run_id": RUN, "attempt": 1}, known)
        sizes = {name: file.size for name, file in attempt.files().items() if name in files}
        assert sizes == {name: len(data) for name, data in files.items()}
        modes = {str(p.relative_to(attempt.path)): p.stat().st_mode for p in attempt.path.rglob("*")}
        manifest = (attempt.path / "manifest.json").read_bytes()
        return {"manifest": manifest, **modes}, synced & {"lock.json", "run.json", "manifest.json"}

    assert sealed("a", known) == sealed("b", {})
