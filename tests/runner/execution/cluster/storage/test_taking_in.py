"""What a host delivers is compared with what was asked for, and nothing is sealed that the archive cannot read."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import FakeEngine
from runner.execution.attempt import perform
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.taking import take_in
from runner.execution.job import Job
from runner.execution.plan import plan
from runner.execution.workflows.beside import Sizes, with_files
from runner.model.errors import PlatformError
from runner.model.run import Selection
from runner.records.archive import Attempt
from runner.records.files import MAX_JSON, file_sha256, walk
from tests.runner.execution.test_pool import World
from tests.worlds import interactive_jobs
from tests.worlds.interactive_jobs import make_job
from tests.worlds.mini import Project

KEY = b"of this attempt"
Change = Callable[[Path, dict[str, Any]], object]


class Delivering:
    """A world with one run, which was executed as a host does it and is then delivered with some change."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.world = World(project)
        self.world.hand_in("alpha")
        desk = self.world.desk()
        (planned,) = plan(desk, Selection()).work
        self.job: Job = desk.job(planned.run)
        self.folder, self.artefacts = folder / "host", Artefacts(f"file://{folder / 'store'}")
        self.folder.mkdir()
        self.execute(self.world.engine)

    def execute(self, engine: FakeEngine) -> None:
        """Execute the job in an empty folder."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.record = perform(self.job, None, 1, self.folder, engine)

    def deliver(self, change: Change = lambda *_: None) -> Attempt:
        """Deliver and take in."""
        facts: dict[str, Any] = {"record": self.record}
        change(self.folder, facts)
        self.artefacts.deliver("home/one", dict(walk(self.folder)), facts, KEY)
        archive = self.world.store.archive
        staging = archive.begin("mini", self.job.run_id)
        try:
            return take_in(self.artefacts, "home/one", KEY, staging, archive, self.job)
        except BaseException:
            archive.discard(staging)
            raise

    def listing(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the list of files of what was delivered, as a host can."""
        manifest = self.artefacts.manifest("home/one", KEY)
        change(manifest["files"])
        self.write(json.dumps(manifest), KEY)

    def write(self, text: str, key: bytes) -> None:
        """Put another manifest in its place, signed by a key."""
        proof = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        self.place().write_text(json.dumps({"manifest": text, "proof": proof}))

    def place(self) -> Path:
        """Where the manifest lies."""
        return Path(self.artefacts.address.removeprefix("file://")) / "attempts/home/one/manifest.json"

    def refused(self) -> PlatformError:
        """Why it is not taken in; nothing stays of it."""
        archive = self.world.store.archive
        staging = archive.begin("mini", self.job.run_id)
        with pytest.raises(PlatformError) as error:
            take_in(self.artefacts, "home/one", KEY, staging, archive, self.job)
        archive.discard(staging)
        assert error.value.code == "E313"
        return error.value


class Talking(Delivering):
    """The same with a run whose software is a server."""

    def __init__(self, project: Project, folder: Path) -> None:
        super().__init__(project, folder)
        known = {"run_id": self.job.run_id, "lock": self.job.lock, "lock_digest": self.job.lock_digest}
        self.job = with_files(replace(make_job(folder / "task"), **known))
        self.execute(interactive_jobs.engine())


@pytest.fixture
def delivering(project: Project, tmp_path: Path) -> Delivering:
    return Delivering(project, tmp_path)


def test_what_was_asked_for_is_an_attempt_as_any_other(delivering: Delivering) -> None:
    attempt = delivering.deliver()
    assert attempt.lock() == dict(delivering.job.lock)
    assert set(attempt.files("output")) == {"run.txt"}


def recorded(**keys: Any) -> Change:
    """Deliver a record with other values under these keys."""
    return lambda _, facts: facts.update(record={**facts["record"], **keys})


def locked(text: str) -> Change:
    """Deliver another file as the lock."""
    return lambda folder, _: (folder / "lock.json").write_text(text)


def other_lock(folder: Path, facts: dict[str, Any]) -> None:
    lock = json.loads((folder / "lock.json").read_text())
    locked(json.dumps({**lock, "seed": 1}))(folder, facts)


def another_file(folder: Path, facts: dict[str, Any]) -> None:
    (folder / "evaluations").mkdir()
    (folder / "evaluations" / "1").write_text("x")


def too_many(folder: Path, facts: dict[str, Any]) -> None:
    for number in range(2000):
        (folder / "logs" / f"{number}.txt").touch()


CHANGES: dict[str, Change] = {
    "other run": recorded(run_id="beta.one.00000000.test"),
    "other number": recorded(attempt=2),
    "other lock": other_lock,
    "no lock": locked("{"),
    "lock of no text": locked(json.dumps({"lock": "\ud800"})),
    "lies about output": lambda folder, _: (folder / "output" / "run.txt").write_text("another\n"),
    "no record": lambda _, facts: facts.update(record={"verdict": "ok"}),
    "another file": another_file,
    "too many": too_many,
}


def not_taken(delivering: Delivering, change: Change) -> PlatformError:
    """Return why a delivery is not taken; nothing of it stays in the archive."""
    with pytest.raises(PlatformError) as error:
        delivering.deliver(change)
    assert error.value.code == "E313"
    archive = delivering.world.store.archive
    assert archive.attempts("mini", delivering.job.run_id) == [] and archive.live() == {}
    return error.value


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_not_asked_for_is_not_taken(delivering: Delivering, change: Change) -> None:
    not_taken(delivering, change)


def detail(**reason: Any) -> dict[str, Any]:
    """A verdict for this reason."""
    said = {"name": "time-limit", "blame": "participant", "detail": "killed after 5 s", "warnings": []}
    return {**said, "details": {"reason": reason, "warnings": []}}


DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = {"deeper": DEEP}
FIRST = {"topics": 1, "wall_seconds": 1.0, "cpu_seconds": None}


@pytest.fixture
def talking(project: Project, tmp_path: Path) -> Talking:
    return Talking(project, tmp_path)


def test_what_driver_and_index_of_a_server_wrote_is_taken(talking: Talking) -> None:
    assert set(talking.deliver().files("output")) == {"simulations.jsonl", "turns.jsonl", "served.jsonl"}


def says_of_output(folder: Path, facts: dict[str, Any]) -> None:
    """Say of the output what lies there."""
    files = [
        {"name": path.name, "size": path.stat().st_size, "sha256": file_sha256(path)}
        for path in sorted((folder / "output").iterdir())
    ]
    size = sum(one["size"] for one in files)
    output = {**facts["record"]["output"], "files": files, "bytes": size}
    facts["record"] = {**facts["record"], "output": output}


@pytest.mark.parametrize("name", ["simulations.jsonl", "turns.jsonl", "served.jsonl"])
def test_no_file_is_larger_than_who_writes_it_can_make_it(talking: Talking, name: str) -> None:
    most = Sizes.of(talking.job).files("simulations.jsonl")[name]
    assert most < Sizes.of(talking.job).most, "the file alone is within what all may have"

    def larger(by: int) -> Change:
        def change(folder: Path, facts: dict[str, Any]) -> None:
            (folder / "output" / name).chmod(0o644)
            os.truncate(folder / "output" / name, most + by)
            says_of_output(folder, facts)

        return change

    assert name in not_taken(talking, larger(1)).what
    assert name in talking.deliver(larger(0)).files("output")


@pytest.mark.parametrize("name", ["more.jsonl", "simulations.jsonl.gz", "ir-metadata.yml", "run.txt"])
def test_beside_what_driver_and_index_write_nothing_is_taken(talking: Talking, name: str) -> None:
    def more(folder: Path, facts: dict[str, Any]) -> None:
        (folder / "output" / name).write_text("x")
        says_of_output(folder, facts)

    assert name in not_taken(talking, more).what


def test_of_a_software_that_writes_its_output_the_named_files_are_taken(delivering: Delivering) -> None:
    def more(*names: str) -> Change:
        def change(folder: Path, facts: dict[str, Any]) -> None:
            for name in names:
                (folder / "output" / name).write_text("x")
            says_of_output(folder, facts)

        return change

    assert "turns.jsonl" in not_taken(delivering, more("turns.jsonl")).what
    (delivering.folder / "output" / "turns.jsonl").unlink()
    names = {"run.txt.gz", "ir-metadata.yml"}
    assert set(delivering.deliver(more(*names)).files("output")) == {"run.txt", *names}


LIES: list[tuple[str, Any]] = [
    ("output.file", "/etc/hostname"),
    ("output.file", "../lock.json"),
    ("output.file", "missing.txt"),
    ("output.file", None),  # of a verdict that says that it is there
    ("resources.memory_peak", 2**70),
    ("resources.wall_seconds", float("nan")),
    ("resources.cpu_seconds", float("inf")),
    ("resources.cpu_seconds", -1.0),
    ("resources.wall_seconds", 1.7e308),
    ("resources.cpu_seconds", 1.7e308),
    ("exit.waited", 1.7e308),
    ("machine.energy", 1.7e308),
    ("first_cases", {**FIRST, "verdict": "ok", "wall_seconds": 1.7e308}),
    ("first_cases", {**FIRST, "verdict": "ok", "cpu_seconds": 1.7e308}),
    ("started", None),
    ("started", "yesterday"),
    ("started", "9999-12-31T23:59:59Z"),
    ("finished", "9999-12-31T23:59:59Z"),
    ("finished", "1999-12-31T23:59:59Z"),  # before it started
    ("finished", "2026-13-01T00:00:00Z"),
    ("verdict.name", "won"),
    ("verdict.blame", "platform"),
    ("verdict", detail(kind="wall-clock", limit=10**400)),
    ("verdict", detail(kind="wall-clock", limit=7)),
    ("verdict", detail(kind="unheard-of")),
    ("verdict", detail(kind="wall-clock", limit=5, more=DEEP)),
    ("first_cases", {**FIRST, "verdict": "won"}),
    ("engine.name", "\ud800"),
    ("host", "a\0b"),
]


@pytest.mark.parametrize(
    ("place", "value"), LIES, ids=[f"{place}-{number}" for number, (place, _) in enumerate(LIES)]
)
def test_a_record_that_no_reader_could_have_is_not_taken(
    delivering: Delivering, place: str, value: Any
) -> None:
    *above, last = place.split(".")

    def lie(folder: Path, facts: dict[str, Any]) -> None:
        facts["record"] = inner = json.loads(json.dumps(facts["record"]))
        for key in above:
            inner = inner[key]
        inner[last] = value

    not_taken(delivering, lie)


@pytest.mark.parametrize(
    "name",
    [
        "output/" + 64 * "long",
        "output/\ud800",
        "../../escaped",
        "output/../../escaped",
        "/etc/escaped",
        "output/a/b",
        "output/",
        "logs/..",
        "run.json",
        "a\0b",
    ],
)
def test_names_of_files_lead_nowhere_else(delivering: Delivering, name: str, tmp_path: Path) -> None:
    delivering.deliver()
    delivering.listing(lambda files: files.update({name: files["lock.json"]}))
    delivering.refused()
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "{}", '{"files": {}}', '{"files": {"lock.json": 1}}', "[" * 100_000]
)
def test_a_list_of_files_that_is_none(delivering: Delivering, text: str) -> None:
    delivering.deliver()
    delivering.write(text, KEY)
    delivering.refused()
    delivering.place().write_text(text)
    delivering.refused()


@pytest.mark.parametrize("size", [False, True, 0.0])
def test_a_size_is_a_whole_number(delivering: Delivering, size: object) -> None:
    """JSON's true and false are numbers to Python, and none to who reads the sealed list later."""
    delivering.deliver()
    delivering.listing(lambda files: files.__setitem__("logs/stdout.txt", ["0" * 64, size]))
    assert "logs/stdout.txt" in delivering.refused().what


def test_who_can_write_to_the_store_and_is_not_that_host_changes_nothing(delivering: Delivering) -> None:
    delivering.deliver()
    manifest = json.dumps(delivering.artefacts.manifest("home/one", KEY))
    delivering.write(manifest, b"of another attempt")
    delivering.refused()
    delivering.place().unlink()
    os.mkfifo(delivering.place())  # nobody waits at it
    delivering.refused()


def named(keys: int, value: Any) -> Change:
    """Say as many things of the engine."""

    def change(folder: Path, facts: dict[str, Any]) -> None:
        more = {f"{key:x}": value for key in range(keys)}
        facts["record"] = {**facts["record"], "engine": {**facts["record"]["engine"], **more}}

    return change


@pytest.mark.slow
def test_a_record_that_grows_beyond_what_the_archive_reads_is_not_taken(delivering: Delivering) -> None:
    """Its manifest is read: there, 1e15 has four characters, and eighteen where the archive writes it."""
    delivering.deliver(named(700_000, 0))
    text = delivering.place().read_text()
    assert len(text) < MAX_JSON
    manifest = json.loads(json.loads(text)["manifest"])
    engine = json.dumps(manifest["record"]["engine"], separators=(",", ":"))
    manifest["record"]["engine"] = "here"
    short = json.dumps(manifest, separators=(",", ":"))
    delivering.write(short.replace('"here"', engine.replace(":0,", ":1e15,")), KEY)
    assert delivering.place().stat().st_size < MAX_JSON
    assert "archive" in delivering.refused().why


@pytest.mark.parametrize("text", ["x" * 20_000_000, "\x01" * 1_000_000, "é" * 1_000_000], ids=len)
def test_a_record_of_long_texts_is_taken_as_far_as_the_archive_reads_it(
    delivering: Delivering, text: str
) -> None:
    if len(text) > MAX_JSON:
        with pytest.raises(PlatformError) as error:
            delivering.deliver(named(1, text))
        assert error.value.code == "E313"
        return
    assert delivering.deliver(named(1, text)).record()["engine"]["0"] == text
