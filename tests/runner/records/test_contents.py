"""The content store: every content once, under its digest, whole or not at all, and exactly as it was when it comes out."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from runner.records.contents import KEPT, Content, ContentStore
from runner.records.integrity import needed, verify
from tests.worlds.records import TASK, World

ROOT = Path(__file__).parents[3]
DRAW = random.Random(1)
TEXT = "".join(f"{n} Q0 d{DRAW.getrandbits(32)} 1 {DRAW.random()} tag\n" for n in range(5000)).encode()


def put(store: ContentStore, path: Path, content: bytes) -> Content:
    path.write_bytes(content)
    return store.put(path)


def read(store: ContentStore, content: Content) -> bytes:
    with store.open(content) as file:
        return file.read()


def copy(store: ContentStore, content: Content, target: Path) -> None:
    with store.open(content) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)


def stored(store: ContentStore, content: Content) -> Path:
    path = store.find(content.sha256)
    assert path is not None
    return path


def age(path: Path) -> None:
    old = time.time() - KEPT - 60
    os.utime(path, (old, old))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=2000), st.integers(1, 400))
def test_contents_are_unchanged(tmp_path_factory: pytest.TempPathFactory, piece: bytes, times: int) -> None:
    folder = tmp_path_factory.mktemp("store")
    for content in (piece * times, gzip.compress(piece), b""):
        store = ContentStore(folder / "archive")
        found = put(store, folder / "file", content)
        assert found == (hashlib.sha256(content).hexdigest(), len(content))
        assert read(store, found) == content
        assert store.problem(found) == ""


def test_a_content_is_there_once_and_nobody_else_can_write_it(tmp_path: Path) -> None:
    store, source = ContentStore(tmp_path / "archive"), tmp_path / "run.txt"
    first = put(store, source, TEXT)
    path = stored(store, first)
    before = path.stat()
    assert put(store, tmp_path / "other-name", TEXT) == first
    assert [found for _, found in store.contents()] == [path] and path.stat().st_ino == before.st_ino
    assert path.stat().st_mode & 0o777 == 0o444
    # It is a copy: what becomes of the file that was handed in changes nothing.
    assert path.stat().st_nlink == 1 and path.stat().st_ino != source.stat().st_ino
    source.write_bytes(b"another run\n")
    assert read(store, first) == TEXT
    assert path.name.startswith(first.sha256) and path.parent.name == first.sha256[:2]


def test_it_is_compressed_where_that_pays(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "archive")
    text = put(store, tmp_path / "a", TEXT)
    packed = put(store, tmp_path / "b", gzip.compress(TEXT))
    noise = put(store, tmp_path / "c", DRAW.randbytes(100_000))
    assert stored(store, text).suffix == ".gz" and stored(store, text).stat().st_size < 0.6 * len(TEXT)
    for content in (packed, noise):
        assert stored(store, content).suffix == "" and stored(store, content).stat().st_size == content.size
    assert gzip.decompress(stored(store, text).read_bytes()) == TEXT  # any tool reads it


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_only_regular_files_are_taken(tmp_path: Path, kind: str) -> None:
    store, secret, path = ContentStore(tmp_path / "archive"), tmp_path / "secret", tmp_path / "run.txt"
    secret.write_text("qrels")
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(OSError):
        store.put(path)
    assert list(store.contents()) == []


@pytest.mark.parametrize("name", ["../../secret", "ab", "", "A" * 64, "/etc/passwd"])
def test_only_a_digest_is_looked_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlatformError, check=lambda error: error.code == "E307"):
        ContentStore(tmp_path).find(name)


def damage(path: Path, how: str) -> None:
    path.chmod(0o644)
    data = path.read_bytes()
    half = len(data) // 2
    if how == "missing":
        path.unlink()
        return
    forms = {
        "changed": data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :],
        "cut": data[:-20],
        "empty": b"",
        "longer": data + b"x",
        "another": gzip.compress(b"something else") if path.suffix else b"something else",
        "another of this length": gzip.compress(TEXT[::-1]) if path.suffix else data[::-1],
    }
    path.write_bytes(forms[how])


DAMAGES = ["missing", "changed", "cut", "empty", "longer", "another", "another of this length"]


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
@pytest.mark.parametrize("how", DAMAGES)
def test_damage_is_seen_before_anything_is_made_of_it(tmp_path: Path, how: str, packed: bool) -> None:
    store = ContentStore(tmp_path / "archive")
    content = put(store, tmp_path / "a", TEXT if packed else gzip.compress(TEXT))
    damage(stored(store, content), how)
    assert store.problem(content).split()[-1] == ("missing" if how == "missing" else "damaged")
    with pytest.raises(PlatformError, check=lambda error: error.code == "E307"):
        read(store, content)
    with pytest.raises(PlatformError):
        copy(store, content, tmp_path / "out")


@pytest.mark.parametrize("form", ["same", "other"])
def test_bytes_that_are_handed_in_replace_damaged_ones(tmp_path: Path, form: str) -> None:
    store, source = ContentStore(tmp_path / "archive"), tmp_path / "run.txt"
    content = put(store, source, TEXT)
    path = stored(store, content)
    path.unlink()
    broken = path if form == "same" else path.with_suffix("")
    broken.write_bytes(TEXT[:-1] if form == "other" else gzip.compress(TEXT)[:-9])
    assert store.problem(content)
    assert store.put(source) == content
    assert read(store, content) == TEXT and [p for _, p in store.contents()] == [path]
    assert path.stat().st_mode & 0o777 == 0o444


def test_no_more_is_unpacked_than_was_recorded(tmp_path: Path) -> None:
    """Somebody put a file that unpacks to a gigabyte under the name of a small one."""
    store = ContentStore(tmp_path / "archive")
    content = put(store, tmp_path / "a", b"x" * 10_000)
    path = stored(store, content)
    path.chmod(0o644)
    with gzip.open(path, "wb", 1) as file:
        for _ in range(64):
            file.write(bytes(1 << 24))
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(PlatformError):
        copy(store, content, tmp_path / "out")
    used = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20 and used < 1
    assert (tmp_path / "out").stat().st_size <= content.size


def test_large_files_are_not_read_into_memory(tmp_path: Path) -> None:
    store, large = ContentStore(tmp_path / "archive"), tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    copy(store, store.put(large), tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20 and (tmp_path / "out").stat().st_size == 64 << 20


HALF = """
import os, signal, sys
from pathlib import Path
from runner.records.contents import ContentStore

def halfway(descriptor):
    print("half", flush=True)
    sys.stdin.readline()
os.fsync = halfway
ContentStore(Path(sys.argv[1])).put(Path(sys.argv[2]))
"""


def test_what_the_dead_left_half_is_named_and_removed_and_the_living_keep_theirs(tmp_path: Path) -> None:
    archive, source = RunArchive(tmp_path / "archive"), tmp_path / "run.txt"
    source.write_bytes(TEXT)
    command = [sys.executable, "-c", HALF, str(archive.root), str(source)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"half\n"
        (part,) = archive.tmp.glob("*.part")
        assert archive.sweep() == [] and part.is_file()
        process.kill()
    assert archive.sweep(dry_run=True) == [part.name] and part.is_file()
    assert archive.sweep() == [part.name] and not part.exists()
    assert archive.sweep() == [] and list(archive.contents.contents()) == []


MANY = """
import sys
from pathlib import Path
from runner.records.contents import ContentStore
store, name = ContentStore(Path(sys.argv[1])), sys.argv[2]
for n in range(40):
    path = Path(sys.argv[1]) / f"{name}-{n}"
    path.write_bytes(b"the same line of every process\\n" * (2000 + n))
    content = store.put(path)
    assert store.problem(content) == "", n
    path.unlink()
"""


def test_many_processes_put_the_same_at_once(tmp_path: Path) -> None:
    """Also while another one removes what nothing needs, and what the dead left."""
    tmp_path.joinpath(".tmp").mkdir()
    command = [sys.executable, "-c", MANY, str(tmp_path)]
    running = [subprocess.Popen([*command, str(n)], cwd=ROOT, stderr=subprocess.PIPE) for n in range(4)]
    store = ContentStore(tmp_path)
    while any(process.poll() is None for process in running):
        store.sweep_parts()
        store.sweep(set())
    assert [process.communicate()[1] for process in running] == [b""] * 4
    assert [process.returncode for process in running] == [0] * 4
    assert len(list(store.contents())) == 40
    assert not list(tmp_path.rglob("*.part"))


FULL = """
import sys
from pathlib import Path
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from tests.worlds.records import TASK

root = Path(sys.argv[1])
archive = RunArchive(root)
staging = archive.begin(TASK, "alpha.x.00000000.test")
(staging.path / "output").mkdir()
for name in "ab":
    (staging.path / "output" / name).write_bytes(__import__("random").Random(name).randbytes(1_600_000))
try:
    archive.seal(staging, {"run_id": staging.run_id, "attempt": 1})
except PlatformError as error:
    assert error.code == "E306", error
else:
    raise SystemExit("it fitted")
assert not archive.attempts(TASK, staging.run_id)
assert sorted(p.name for p in (staging.path / "output").iterdir()) == ["a", "b"], "nothing of the attempt is gone"
assert not list(root.rglob("*.part"))
for digest, path in archive.contents.contents():
    assert __import__("hashlib").sha256(path.read_bytes()).hexdigest() == digest, "what is there is whole"
"""


def on_small_disk(folder: Path, code: str, *arguments: str, **env: str) -> None:
    """Run ``code`` where ``folder`` is a disk of 5 MB; the mount is this process's own."""
    unshare = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    mount = f"mount -t tmpfs -o size=5m none {folder}"
    program = [*unshare, "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, "-c", code, *arguments]
    env = {**os.environ, **env}
    done = subprocess.run(program, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_disk_that_is_full_in_the_middle_leaves_nothing_half(tmp_path: Path) -> None:
    on_small_disk(tmp_path, FULL, str(tmp_path))


FULL_COPIES = """
import sys, tempfile
from pathlib import Path
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from tests.worlds.records import TASK

(attempt,) = RunArchive(Path(sys.argv[1])).attempts(TASK, sys.argv[2])
try:
    with attempt.output():
        pass
except PlatformError as error:
    assert error.code == "E306" and tempfile.gettempdir() in error.why, error
else:
    raise SystemExit("it fitted")
assert not list(Path(tempfile.gettempdir()).iterdir())
"""


def test_a_full_disk_for_copies_is_named(world: World, tmp_path: Path) -> None:
    attempt = world.attempt(world.register("alpha", "x"), output={"run.txt": "1 Q0 d1 1 1.0 x\n" * 500_000})
    small = tmp_path / "small"
    small.mkdir()
    on_small_disk(small, FULL_COPIES, str(world.config.archive), attempt.run_id, TMPDIR=str(small))


# --- what needs a content, and what nothing needs ------------------------------------------------------------------


def test_a_damaged_content_is_named_once_with_all_that_need_it(world: World) -> None:
    output = {"run.txt": "1 Q0 d1 1 1.0 same\n"}
    first = world.attempt(world.register("alpha", "x"), output=output)
    second = world.attempt(world.register("beta", "y"), output=output)
    assert verify(world.archive, world.store.log) == []
    (content,) = needed(world.archive, world.config.registered)
    path = stored(world.archive.contents, content)
    for how, word in (("missing", "missing"), ("cut", "damaged")):
        before = path.read_bytes()
        damage(path, how)
        (problem,) = verify(world.archive, world.store.log)
        assert content.sha256 in problem.where and word in problem.what
        assert f"{first.id} (output/run.txt), {second.id} (output/run.txt)" in problem.what
        with pytest.raises(PlatformError) as caught, first.output():
            pass
        assert caught.value.code == "E307"
        path.write_bytes(before)
    assert verify(world.archive, world.store.log) == []


def test_only_old_contents_that_nothing_needs_are_removed(world: World, tmp_path: Path) -> None:
    world.attempt(world.register("alpha", "x"))
    store = world.archive.contents
    old, young = (put(store, tmp_path / "file", text) for text in (b"left by a crash", b"just put there"))
    again = put(store, tmp_path / "file", b"put there again")
    for _, path in store.contents():
        if not path.name.startswith(young.sha256):
            age(path)
    put(store, tmp_path / "file", b"put there again")  # it is about to be named somewhere
    wanted = {content.sha256 for content in needed(world.archive, world.config.registered)}
    assert store.sweep(wanted, dry_run=True) == [old.sha256] == store.sweep(wanted)
    assert store.sweep(wanted) == []
    left = {digest for digest, _ in store.contents()}
    assert left == wanted | {young.sha256, again.sha256}


def test_nothing_is_removed_while_a_manifest_cannot_be_read(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    manifest = attempt.path / "manifest.json"
    manifest.chmod(0o644)
    without_size = '{"schema_version": 1, "files": {"a": {"stored": true}}}'
    for text in ("{", "[]", '{"schema_version": 1}', without_size):
        manifest.write_text(text)
        with pytest.raises(PlatformError, check=lambda error: error.code == "E307"):
            needed(world.archive, world.config.registered)


# --- what is read through it -----------------------------------------------------------------------------------------


def test_large_logs_and_scores_are_in_it_too_and_read_as_before(world: World) -> None:
    log = b"".join(b"line %d\n" % n for n in range(3000))
    attempt = world.attempt(world.register("alpha", "x"), log=log)
    scores = {"ndcg": {str(n): n / 1000 for n in range(1000)}, "rr": {str(n): 0.5 for n in range(1000)}}
    evaluation = world.evaluation(attempt, scores)
    manifest = attempt.manifest()
    assert "stored" in manifest["logs/stdout.log"] and "stored" not in manifest["run.json"]
    assert "stored" in evaluation.manifest()["scores.jsonl"]
    assert not any((attempt.path / name).exists() for name in ("logs/stdout.log", "output/run.txt"))
    file = attempt.file("logs/stdout.log")
    assert file is not None and file.size == len(log)
    with file.open() as stream:
        assert stream.read() == log
    lines = [line for line in evaluation.scores() if line["measure"] == "ndcg"]
    assert {line["topic"]: line["value"] for line in lines} == scores["ndcg"]
    assert list(attempt.files("logs")) == ["stderr.log", "stdout.log"]
    assert verify(world.archive, world.store.log) == []


def test_a_file_that_lies_where_a_stored_one_belongs_is_found(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    folder = attempt.path / "output"
    folder.chmod(0o755)
    (folder / "run.txt").write_text("1 Q0 better 1 9.9 x\n")
    (problem,) = verify(world.archive, world.store.log)
    assert "output/run.txt" in problem.where and "added" in problem.what


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "output/../../../escaped"])
def test_no_name_of_a_manifest_leaves_the_folder_of_copies(world: World, name: str) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    manifest = json.loads((attempt.path / "manifest.json").read_text())
    manifest["files"][f"output/{name}"] = manifest["files"]["output/run.txt"]
    (attempt.path / "manifest.json").chmod(0o644)
    (attempt.path / "manifest.json").write_text(json.dumps(manifest))
    (read,) = RunArchive(world.config.archive).attempts(TASK, attempt.run_id)
    with pytest.raises(PlatformError) as caught, read.output():
        pass
    assert caught.value.code == "E307"


def test_copies_are_removed_with_the_context(world: World) -> None:
    output = {"run.txt": "1 Q0 d1 1 1.0 x\n", "more.txt": "x"}
    attempt = world.attempt(world.register("alpha", "x"), output=output)
    with attempt.output() as folder:
        assert {p.name: p.read_text() for p in folder.iterdir()} == output
        (folder / "run.txt").write_text("whatever a reader does to its copy")
    assert not folder.exists()
    with attempt.output() as folder:
        assert (folder / "run.txt").read_text() == output["run.txt"]
