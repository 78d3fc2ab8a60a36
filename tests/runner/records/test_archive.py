"""The run archive: write-once, hashed, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.errors import PlatformError
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.archive_lock import hold, locked
from runner.records.events import EventLog
from runner.records.integrity import uncommitted, verify
from tests.worlds.records import TASK, World, fill_attempt

SUBMISSION = "alpha.x.00000000"
RUN = f"{SUBMISSION}.test"


def sealed(archive: RunArchive) -> Attempt:
    return fill_attempt(archive, archive.begin(TASK, RUN), SUBMISSION)


def content_of(sealed: Attempt | Evaluation, name: str) -> Path:
    """Where the bytes of a file of the archive are in the content store."""
    path = sealed.contents.find(sealed.manifest()[name]["sha256"])
    assert path is not None
    return path


def test_an_attempt_is_sealed_whole_hashed_and_read_only(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path / "archive")
    attempt = sealed(archive)
    assert attempt.path == tmp_path / "archive" / TASK / RUN / "attempts" / "1"
    assert attempt.id == f"{RUN}#1"
    manifest = json.loads((attempt.path / "manifest.json").read_text())
    assert schemas.validate(manifest, "manifest") == []
    logs = ["logs/stderr.log", "logs/stdout.log"]
    assert sorted(manifest["files"]) == ["lock.json", *logs, "output/run.txt", "run.json"]
    assert attempt.record()["verdict"]["name"] == "ok"
    assert attempt.lock()["team"] == "alpha"
    assert (attempt.path / "run.json").stat().st_mode & 0o222 == 0
    assert (attempt.path / "output").stat().st_mode & 0o222 == 0
    assert verify(archive) == []
    assert [p.name for p in archive.tmp.iterdir()] == [".lock"]


def test_attempts_and_evaluations_count_from_one(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.register("alpha", "x")
    first, second = sealed(world.archive), sealed(world.archive)
    assert (first.number, second.number) == (1, 2)
    assert [a.number for a in world.archive.attempts(TASK, RUN)] == [1, 2]
    one = world.evaluation(first, status="error", commit=False)
    two = world.evaluation(first, status="error", commit=False)
    assert [(e.attempt, e.number) for e in (one, two)] == [(1, 1), (1, 2)]
    assert [e.number for e in first.evaluations()] == [1, 2]
    assert two.record()["evaluation"] == 2
    assert world.archive.runs() == [(TASK, RUN)]
    assert verify(world.archive) == []


def test_one_run_is_begun_by_one_process_at_a_time(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    staging = archive.begin(TASK, RUN)
    assert archive.live() == {RUN: 1}
    with pytest.raises(PlatformError, check=lambda error: error.code == "E306"):
        RunArchive(tmp_path).begin(TASK, RUN)
    assert archive.sweep() == []
    archive.discard(staging)
    assert archive.live() == {}
    assert archive.begin(TASK, RUN).number == 1


@pytest.mark.parametrize("method", ["mkdir", "exists"])
def test_a_failed_begin_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    archive, done = RunArchive(tmp_path), getattr(Path, method)
    archive.tmp.mkdir(parents=True)

    def full(path: Path, *args: Any, **options: Any) -> Any:
        if "~" in path.name or path.parent.name == "attempts":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return done(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, method, full)
        with pytest.raises(PlatformError, check=lambda error: error.code == "E306"):
            archive.begin(TASK, RUN)
    assert archive.live() == {} and archive.begin(TASK, RUN).number == 1


@pytest.mark.parametrize("method", ["chmod", "unlink"])
def test_unremovable_folders_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    archive = RunArchive(tmp_path)
    staging = archive.begin(TASK, RUN)

    def read_only(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, method, read_only)
        with pytest.raises(OSError) as caught:
            archive.discard(staging)
        assert caught.value.errno == errno.EROFS
    assert archive.live() == {} and archive.begin(TASK, RUN).number == 1


def test_run_json_must_be_of_the_attempt_that_was_begun(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    staging = archive.begin(TASK, RUN)
    with pytest.raises(ValueError):
        archive.seal(staging, {"run_id": RUN, "attempt": 2})


def test_begin_does_not_list_other_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, listed = RunArchive(tmp_path), list[str]()
    scandir = os.scandir
    monkeypatch.setattr("os.scandir", lambda path: (listed.append(str(path)), scandir(path))[1])
    attempt = sealed(archive)
    archive.discard(archive.begin(TASK, f"{RUN}.other"))
    archive.discard(archive.begin_evaluation(attempt))
    assert listed and str(archive.tmp) not in listed


def test_a_beginning_waits_for_a_look_at_the_locks(tmp_path: Path) -> None:
    """A look takes the locks of single numbers under the lock of the archive, and a beginning waits for it."""
    archive, begun = RunArchive(tmp_path), list[int]()
    other = threading.Thread(target=lambda: begun.append(archive.begin(TASK, RUN).number))
    with locked(archive.tmp):
        held = hold(archive.tmp / f"a~{TASK}~{RUN}~1.lock")
        assert held is not None
        other.start()
        other.join(0.5)
        assert other.is_alive()
        held.release()
    other.join(60)
    assert begun == [1]


@pytest.mark.parametrize("name", ["../x", "a/b", "", "A", ".x", "a..b"])
def test_no_name_leaves_the_archive(tmp_path: Path, name: str) -> None:
    for task, run in ((TASK, name), (name, RUN)):
        with pytest.raises(ValueError):
            RunArchive(tmp_path / "archive").begin(task, run)
    assert not list(tmp_path.rglob("attempts"))


@pytest.mark.parametrize("kind", ["link", "fifo", "not utf-8"])
def test_only_regular_files_with_utf8_names_are_kept(tmp_path: Path, kind: str) -> None:
    archive = RunArchive(tmp_path / "archive")
    staging = archive.begin(TASK, RUN)
    secret = tmp_path / "secret"
    secret.write_text("qrels")
    if kind == "link":
        (staging.path / "run.txt").symlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(staging.path / "run.txt")
    else:
        (staging.path / os.fsdecode(b"run\xff.txt")).write_text("x")
    with pytest.raises(PlatformError):
        fill_attempt(archive, staging, SUBMISSION)
    assert archive.attempts(TASK, RUN) == []
    archive.discard(staging)
    assert archive.sweep() == []


def test_verify_names_what_was_changed(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    submission = world.register("alpha", "x")
    attempt = world.attempt(submission)
    evaluation = world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    assert verify(world.archive, world.store.log) == []
    changes = [
        (content_of(attempt, "output/run.txt"), b"1 Q0 d1 1 9.9 x\n", "damaged"),
        (evaluation.path / "scores.jsonl", b"", "changed"),
        (attempt.path / "output" / "more\x1b.txt", b"", "added"),
        (attempt.path / "manifest.json", b"{}", "damaged"),
    ]
    for path, content, word in changes:
        before = path.read_bytes() if path.exists() else None
        path.parent.chmod(0o755)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        problems = verify(world.archive, world.store.log)
        assert any(word in p.what for p in problems), word
        assert not any("\x1b" in str(p) for p in problems)
        path.unlink()
        assert any("missing" in p.what for p in verify(world.archive, world.store.log)) or before is None
        if before is not None:
            path.write_bytes(before)
    assert verify(world.archive, world.store.log) == []


def test_a_manifest_forged_with_its_files_contradicts_the_event_log(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    attempt = world.attempt(world.register("alpha", "x"))
    manifest = json.loads((attempt.path / "manifest.json").read_text())
    attempt.path.chmod(0o755)
    (attempt.path / "manifest.json").unlink()
    del manifest["files"]["output/run.txt"]
    (attempt.path / "manifest.json").write_text(json.dumps(manifest))
    assert verify(world.archive) == []
    assert ["committed" in p.what for p in verify(world.archive, world.store.log)] == [True]


def test_what_was_sealed_but_not_committed_is_found(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    submission = world.register("alpha", "x")
    attempt = world.attempt(submission, commit=False)
    evaluation = world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}}, commit=False)
    assert uncommitted(world.archive, world.store.log) == [attempt, evaluation]
    world.commit_attempt(attempt)
    assert uncommitted(world.archive, world.store.log) == [evaluation]
    world.commit_evaluation(evaluation)
    assert uncommitted(world.archive, world.store.log) == []


def test_records_that_break_their_schema_are_e307(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    staging = archive.begin(TASK, RUN)
    attempt = archive.seal(staging, {"run_id": RUN, "attempt": 1})
    with pytest.raises(PlatformError, check=lambda error: error.code == "E307"):
        attempt.record()
    assert attempt.record(check=False)["attempt"] == 1


def test_large_files_are_not_read_into_memory(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path)
    staging = archive.begin(TASK, RUN)
    with (staging.path / "run.txt").open("wb") as stream:
        stream.truncate(64 * 2**20)
    tracemalloc.start()
    archive.seal(staging, {"run_id": RUN, "attempt": 1})
    verify(archive)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


KILLED = """
import fcntl, os, signal, sys
from pathlib import Path
import runner.records.archive as a
from tests.worlds.records import *

steps = 0
def wrap(owner, name):
    # Every call of the file system that sealing makes is a step; the process dies before the n-th.
    old = getattr(owner, name)
    def new(*args, **kw):
        global steps
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return old(*args, **kw)
    setattr(owner, name, new)

calls = (
    (os, "fsync"), (os, "fchmod"), (os, "utime"), (os, "open"), (fcntl, "flock"),
    (Path, "mkdir"), (Path, "rename"), (Path, "chmod"), (Path, "write_text"), (Path, "unlink"),
)
for n in range(0, 500, 2):
    child = os.fork()
    if child == 0:
        for owner, name in calls:
            wrap(owner, name)
        steps = n
        archive = a.RunArchive(Path(sys.argv[1]) / str(n))
        fill_attempt(archive, archive.begin(TASK, "alpha.x.00000000.test"), "alpha.x.00000000")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
"""


def test_killed_at_any_step_leaves_nothing_half_written(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, timeout=120, check=True)
    folders = sorted(tmp_path.iterdir(), key=lambda p: int(p.name))
    assert len(folders) > 10
    for where in folders:
        archive = RunArchive(where)
        attempts = archive.attempts(TASK, RUN)
        assert len(attempts) <= 1
        assert verify(archive) == []  # what is there is whole
        for attempt in attempts:
            attempt.record()
            attempt.lock()
            archive.discard(archive.begin_evaluation(attempt))
        assert archive.live() == {}
        archive.sweep()
        assert {p.name for p in archive.tmp.glob("*")} <= {".lock"}
        assert archive.begin(TASK, RUN).number == len(attempts) + 1
    assert attempts


def test_sweep_spares_the_living_and_takes_the_dead(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    code = (
        "import sys,time\nfrom pathlib import Path\nfrom runner.records.archive import RunArchive\n"
        f"s=RunArchive(Path(sys.argv[1])).begin('{TASK}','{RUN}')\nprint('ready',flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        archive = RunArchive(tmp_path)
        assert archive.sweep() == []
        assert archive.live() == {RUN: 1}
        process.kill()
        process.wait(60)
        assert archive.live() == {}
        assert archive.sweep() == [RUN]
    assert archive.begin(TASK, RUN).number == 1


def test_the_builders_make_what_the_schemas_ask_for(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.scored("alpha", "x", topics=3)
    for task, run in world.archive.runs():
        for attempt in world.archive.attempts(task, run):
            attempt.record()
            attempt.lock()
            for evaluation in attempt.evaluations():
                evaluation.record()
                assert schemas.validate(evaluation.result(), "result") == []
    assert EventLog(world.config.events).verify() == []
