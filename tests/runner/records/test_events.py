"""The event log: chained, append-only, safe against crashes and many writers."""

from __future__ import annotations

import json
import multiprocessing
import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

import schemas
from runner.model.clock import FixedClock
from runner.model.config import Person
from runner.model.errors import PlatformError, RunnerError
from runner.records.events import COORDINATOR, EventLog, Position


def log_with(path: Path, count: int) -> EventLog:
    log = EventLog(path, clock=FixedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    for n in range(count):
        log.append("quota-extended", {"task": "t", "team": f"team-{n}", "submissions": n}, actor="organiser")
    return log


def test_events_come_back_in_order_and_chained(tmp_path: Path) -> None:
    log = log_with(tmp_path / "new" / "events.jsonl", 3)
    events = list(log)
    assert [e.seq for e in events] == [1, 2, 3]
    assert [e.prev for e in events] == ["", events[0].hash, events[1].hash]
    assert events[0].time == "2026-01-01T00:00:00Z"
    assert log.verify() == []


def test_every_line_matches_the_schema_and_its_documented_hash(tmp_path: Path) -> None:
    log_with(tmp_path / "events.jsonl", 2)
    for line in (tmp_path / "events.jsonl").read_text().splitlines():
        data = json.loads(line)
        assert schemas.validate(data, "event") == []
        assert schemas.digest({k: v for k, v in data.items() if k != "hash"}) == data["hash"]


def test_hostile_text_stays_one_line(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.append("submission-withdrawn", {"reason": "a\nb\u2028c\x00\x1b[31m"}, actor="x\ny")
    assert [e.data["reason"] for e in log] == ["a\nb\u2028c\x00\x1b[31m"]


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": "\ud800"}, {"x": object()}, {"x": "a" * 300_000}])
def test_what_cannot_be_written_leaves_the_log_as_it_was(tmp_path: Path, bad: dict[str, object]) -> None:
    log = log_with(tmp_path / "events.jsonl", 1)
    before = log.path.read_bytes()
    with pytest.raises((ValueError, TypeError)):
        log.append("quota-extended", bad, actor="organiser")
    assert log.path.read_bytes() == before
    with pytest.raises(ValueError):
        log.append("no-such-type", {}, actor="organiser")


def test_several_events_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    log, good = log_with(tmp_path / "events.jsonl", 1), {"task": "t", "team": "a", "submissions": 1}
    written = log.append_all([("quota-extended", good)] * 3, actor="organiser")
    assert [*log][1:] == written and [one.seq for one in written] == [2, 3, 4]
    before = log.path.read_bytes()
    for bad in (("no-such-type", good), ("quota-extended", {"x": "a" * 300_000})):
        with pytest.raises(ValueError):
            log.append_all([("quota-extended", good), bad], actor="organiser")
    assert log.path.read_bytes() == before


@pytest.mark.parametrize("room", [0.5, 2.5])
def test_a_write_that_finds_no_room_leaves_no_event(tmp_path: Path, room: float) -> None:
    log, good = log_with(tmp_path / "events.jsonl", 2), {"task": "t", "team": "team-2", "submissions": 2}
    size, line = log.path.stat().st_size, len(log.path.read_bytes().splitlines(keepends=True)[-1])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(room * line), limits[1]))
    try:
        with pytest.raises(RunnerError) as caught:
            log.append_all([("quota-extended", good)] * 3, actor="organiser")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.code == "E306"
    assert [one.seq for one in log] == [1, 2] and log.path.read_bytes().endswith(b"\n")
    assert log.append("quota-extended", good, actor="organiser").seq == 3
    assert log.verify() == []


def test_a_torn_first_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"seq":1,"ti')
    log = log_with(path, 1)
    assert [e.seq for e in log] == [1]


def test_any_other_change_is_e307(tmp_path: Path) -> None:
    log = log_with(tmp_path / "events.jsonl", 4)
    lines = log.path.read_bytes().splitlines(keepends=True)
    forged = json.loads(lines[1])
    forged["data"]["submissions"] = 999
    rehashed = {**forged, "hash": schemas.digest({k: v for k, v in forged.items() if k != "hash"})}
    changes = {
        "changed": [lines[0], lines[1].replace(b'"submissions":1', b'"submissions":7'), *lines[2:]],
        "changed and hashed anew": [lines[0], schemas.canonical(rehashed) + b"\n", *lines[2:]],
        "taken out": [lines[0], *lines[2:]],
        "swapped": [lines[1], lines[0], *lines[2:]],
        "twice": [*lines[:2], *lines[1:]],
        "an empty line": [lines[0], b"\n", *lines[1:]],
        "not an object": [lines[0], b"[1]\n", *lines[1:]],
        "last line with a newline but damaged": [*lines[:3], lines[3][:-9] + b"\n"],
        "deeply nested": [*lines, b"[" * 100_000 + b"\n"],
    }
    for what, changed in changes.items():
        log.path.write_bytes(b"".join(changed))
        with pytest.raises(PlatformError) as caught:
            list(log)
        assert caught.value.code == "E307", what
        assert len(log.verify()) == 1, what


def test_nothing_is_appended_behind_a_damaged_end(tmp_path: Path) -> None:
    log = log_with(tmp_path / "events.jsonl", 2)
    damaged = log.path.read_bytes()[:-9] + b"\n"
    log.path.write_bytes(damaged)
    with pytest.raises(PlatformError, check=lambda error: error.code == "E307"):
        log.append("quota-extended", {}, actor="organiser")
    assert log.path.read_bytes() == damaged


def test_reading_goes_on_from_a_position(tmp_path: Path) -> None:
    log = log_with(tmp_path / "events.jsonl", 3)
    places = [behind for _, behind in log.after(Position())]
    assert [e.seq for e, _ in log.after(places[0])] == [2, 3]
    assert list(log.after(places[2])) == []
    assert log.end() == places[2]
    log.path.write_bytes(b"")
    with pytest.raises(PlatformError):
        list(log.after(places[0]))


def _writer(path: str, count: int) -> None:
    log = EventLog(Path(path))
    for _ in range(count):
        log.append("quota-extended", {"task": "t", "team": "x", "submissions": 1}, actor="organiser")


def test_many_processes_append_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_writer, args=(str(path), 20)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [e.seq for e in EventLog(path)] == list(range(1, 61))


def test_a_log_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "else").write_text("")
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "else")
    with pytest.raises(PlatformError, check=lambda error: error.code == "E306"):
        log_with(tmp_path / "events.jsonl", 1)
    assert (tmp_path / "else").read_text() == ""


def test_an_event_names_the_person_of_its_command(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", person=Person("anna"))
    log.append("round-frozen", {}, actor="organiser")
    log.append("attempt-committed", {}, actor=COORDINATOR)
    log.person = Person("root", "system")
    log.append("round-frozen", {}, actor="organiser")
    assert [str(e.person) for e in log] == ["anna", "None", "root (system user)"]
    for event in log:
        assert schemas.validate(event.as_dict(), "event") == []
    lines = (tmp_path / "events.jsonl").read_text()
    assert '"person":{"name":"anna","named_by":"setting"}' in lines and lines.count('"person"') == 2
    (tmp_path / "events.jsonl").write_text(lines.replace("anna", "bert"))
    assert len(log.verify()) == 1


def test_a_log_without_persons_is_read_and_continued(tmp_path: Path) -> None:
    log = log_with(tmp_path / "events.jsonl", 2)
    assert "person" not in log.path.read_text()
    log.person = Person("anna")
    log.append("round-frozen", {}, actor="organiser")
    assert [e.person for e in log] == [None, None, Person("anna")] and log.verify() == []


@pytest.mark.parametrize("person", ["anna", None, {}, {"name": "x"}, {"name": 1, "named_by": "system"}])
def test_a_person_of_another_shape_is_no_event(tmp_path: Path, person: object) -> None:
    log = log_with(tmp_path / "events.jsonl", 1)
    line = json.loads(log.path.read_text()) | {"person": person}
    line["hash"] = schemas.digest({k: v for k, v in line.items() if k != "hash"})
    log.path.write_text(json.dumps(line) + "\n")
    assert len(log.verify()) == 1 and log.survey()[0] == []
