"""Attacks on what is recorded: each is found and named by ``store verify``, and nothing is printed over a damaged log."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.errors import Problem, RunnerError
from runner.records.backup import backup
from runner.records.commit import commit_orphans, coordinator
from runner.records.events import Event, EventLog
from runner.records.sealing import MANIFEST
from runner.records.store import connect
from runner.records.store.database import database_url, make_engine
from runner.records.store.verify import verify
from tests.runner.records.test_store import busy
from tests.worlds import records
from tests.worlds.mini import Project, Said, call_here
from tests.worlds.records import TASK, World

both = pytest.mark.usefixtures("either")  # what hangs on the database; all else is in SQLite
QUOTA = {"task": TASK, "team": "beta", "submissions": 1}
ROUNDS = [{"id": "final", "at": "2026-01-05 23:59 UTC"}]


@dataclass
class Place:
    """A data directory in which a bit of everything happened, with the project that it belongs to."""

    world: World
    project: Project
    run: str  # a scored one
    submission: str  # whose run it is
    capsys: pytest.CaptureFixture[str]

    @property
    def events(self) -> Path:
        return self.world.config.events

    @property
    def attempt(self) -> Path:
        return self.world.config.archive / TASK / self.run / "attempts" / "1"

    def lines(self) -> list[bytes]:
        return self.events.read_bytes().splitlines(keepends=True)

    def keep(self, lines: list[bytes]) -> None:
        self.events.write_bytes(b"".join(lines))

    def sql(self, command: str) -> None:
        records.sql(self.world.config, command)

    def call(self, *words: str, expect: int = 0) -> Said:
        said = call_here(self.project, words, self.capsys)
        assert said.code == expect, said.all
        return said

    def problems(self, *heads: str) -> list[str]:
        return [str(p) for p in verify(self.world.config, heads).problems]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of :class:`Place`, made once."""
    root = tmp_path_factory.mktemp("template") / "project"
    world = World.make(root)
    busy(world)
    world.store.close()
    names = {"ndcg": "nDCG@10", "rr": "RR"}
    measures = [{"id": key, "measure": name, "truths": "qrels.txt"} for key, name in names.items()]
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg"}
    project = Project(root, world.config.home, root.parent / "truths")
    project.write_task(TASK, measures=measures, tables=[table], rounds=ROUNDS)
    return root.parent


@pytest.fixture
def place(template: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    world = World.make(tmp_path / "project")
    world.store.close()
    config = world.config
    project = Project(config.root, config.home, tmp_path / "truths", database=config.database_url)
    run = next(r for _, r in world.archive.runs() if r.startswith("alpha.x."))
    return Place(world, project, run, world.archive.attempt(TASK, run, 1).submission(), capsys)


def every_reader(place: Place, tmp_path: Path) -> list[tuple[str, ...]]:
    return [
        ("runs",),
        ("runs", "--json", "--as", "team:alpha"),
        ("leaderboard", TASK),
        ("leaderboard", TASK, "--format", "csv"),
        ("leaderboard", TASK, "--round", "final", "--json"),
        ("show", place.run),
        ("logs", place.run),
        ("export", place.run, str(tmp_path / "exported")),
        ("round", "list"),
    ]


def all_refuse(place: Place, tmp_path: Path, *, all_of_them: bool = False) -> None:
    """No command prints anything; without ``all_of_them``, one is called and the door that all go through is tried."""
    with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
        connect.open_store(place.world.config)
    for command in every_reader(place, tmp_path)[: None if all_of_them else 1]:
        said = place.call(*command, expect=3)
        assert "E307" in said.err and said.out == "", command
    assert not (tmp_path / "exported").exists()


def test_the_readers_read_a_store_that_is_sound(place: Place, tmp_path: Path) -> None:
    for command in every_reader(place, tmp_path):
        place.call(*command)
    assert place.problems() == []
    said = place.call("store", "verify")
    assert json.loads(place.lines()[-1])["hash"] in said.err


def test_a_deleted_log(place: Place, tmp_path: Path) -> None:
    place.events.unlink()
    wheres = {problem.partition(": ")[0] for problem in place.problems()}
    assert {"the database", "snapshots/toy/final.json", f"archive/toy/{place.submission}"} <= wheres
    said = place.call("store", "verify", expect=3)
    assert "E307" in said.err
    all_refuse(place, tmp_path)
    # Also when nothing but the archive and the rounds remembers it.
    records.remove_store(place.world.config)
    assert place.problems()
    all_refuse(place, tmp_path)
    with pytest.raises(RunnerError) as caught:
        connect.rebuild(place.world.config)
    assert caught.value.code == "E307" and caught.value.problems


@pytest.mark.parametrize("count", [1, 2, 5])
def test_cut_lines(place: Place, tmp_path: Path, count: int) -> None:
    lines = place.lines()
    place.keep(lines[:-count])
    assert any(f"event {len(lines)} " in p for p in place.problems())
    all_refuse(place, tmp_path)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
        connect.rebuild(place.world.config)
    # A rebuild that was refused left everything as it was.
    place.keep(lines)
    assert place.problems() == []


@both
def test_lines_cut_off_while_the_store_is_open_are_not_written_over(place: Place) -> None:
    lines = place.lines()
    with connect.open_store(place.world.config) as store:
        place.keep(lines[:-1])
        with pytest.raises(RunnerError) as caught:
            store.commit("quota-extended", QUOTA, actor="organiser")
    assert caught.value.code == "E307"
    assert place.lines() == lines[:-1]


@pytest.mark.parametrize("more", [b'{"actor":"runner","da', b"{", b'{"x": 1}'])
def test_a_torn_write_after_a_crash_is_mended_as_ever(place: Place, more: bytes) -> None:
    before = len(place.lines())
    with place.events.open("ab") as log:
        log.write(more)
    assert place.problems() == []
    place.call("runs")
    with connect.open_store(place.world.config) as store:
        store.commit("quota-extended", QUOTA, actor="organiser")
    assert len(place.lines()) == before + 1
    assert place.problems() == []


def test_half_of_an_acknowledged_line_is_no_torn_write(place: Place, tmp_path: Path) -> None:
    place.events.write_bytes(place.events.read_bytes()[:-40])
    assert any(p.startswith("the database: ") for p in place.problems())
    all_refuse(place, tmp_path)


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.97])
def test_a_flipped_byte(place: Place, tmp_path: Path, part: float) -> None:
    data = place.events.read_bytes()
    at = int(len(data) * part)
    place.events.write_bytes(flip(data, at))
    number = data[:at].count(b"\n") + 1
    assert any(f"events.jsonl:{number}:" in p for p in place.problems())
    all_refuse(place, tmp_path, all_of_them=part == 0.3)


def test_no_flipped_byte_stays_unseen(place: Place) -> None:
    """Each 97th byte of the log, one after the other, by the check that every command makes."""
    data = place.events.read_bytes()
    for at in range(0, len(data), 97):
        place.events.write_bytes(flip(data, at))
        with pytest.raises(RunnerError) as caught:
            connect.open_store(place.world.config).close()
        assert caught.value.code == "E307", at
    place.events.write_bytes(data)
    connect.open_store(place.world.config).close()


def rechained(lines: list[bytes], change: Callable[[dict[str, Any]], None], at: int) -> list[bytes]:
    """The log with one event changed and every hash behind it made to fit."""
    events = [json.loads(line) for line in lines]
    change(events[at])
    before = events[at - 1]["hash"] if at else ""
    for event in events[at:]:
        event["prev"] = before
        del event["hash"]
        event["hash"] = before = schemas.digest(event)
    return [schemas.canonical(event) + b"\n" for event in events]


def test_a_log_written_anew_with_hashes_that_fit(place: Place, tmp_path: Path) -> None:
    lines = place.lines()
    receipt = json.loads(lines[0])["hash"]

    def forge(event: dict[str, Any]) -> None:
        event["data"]["description"] = "another one"

    place.keep(rechained(lines, forge, 0))
    assert {"the database", "snapshots/toy/final.json"} <= {p.partition(": ")[0] for p in place.problems()}
    all_refuse(place, tmp_path)
    # Who changes the database and the rounds too is caught by whoever kept a receipt.
    records.remove_store(place.world.config)
    assert any(receipt[:12] in p for p in place.problems(receipt))
    assert receipt[:12] in place.call("store", "verify", "--head", receipt, expect=3).err


def test_heads_that_are_on_the_chain_and_what_is_no_head(place: Place) -> None:
    hashes = [json.loads(line)["hash"] for line in place.lines()]
    assert place.problems(*hashes) == []
    assert place.problems(hashes[3][:12]) == []
    assert place.problems("0" * 64) != []
    place.call("store", "verify", "--head", hashes[-1])
    for wrong in ("", "xyz", "abc", hashes[0][:11], hashes[0].upper(), "--" + hashes[0]):
        assert "E101" in place.call("store", "verify", f"--head={wrong}", expect=2).err


FORGED = {
    "scores": ("UPDATE measures SET value = 0.99 WHERE run LIKE 'alpha.x.%' AND measure = 'ndcg'", "measures of"),
    "one topic": ("UPDATE topic_scores SET value = 1 WHERE run LIKE 'alpha.x.%' AND topic = '7' AND measure = 'rr'", "topic_scores of"),
    "a failure undone": ("UPDATE attempts SET verdict = 'ok' WHERE verdict = 'run-error'", "attempts of"),
    "an invalid run": ("UPDATE evaluations SET status = 'valid' WHERE status = 'invalid'", "evaluations of"),
    "a withdrawal": ("UPDATE submissions SET withdrawn = NULL WHERE withdrawn IS NOT NULL", "submissions beta"),
    "a run taken out": ("DELETE FROM topic_scores WHERE run LIKE 'alpha.x.%'", "is not in the database"),
    "a publication": ("DELETE FROM publications", "publications toy"),
    "scores closed": ("UPDATE publications SET open = false", "publications toy"),
    "another key": ("UPDATE keys SET key = '00'", "key is another one"),
    "names hidden": ("DELETE FROM opened_names", "opened_names toy"),
    "a choice": ("DELETE FROM choices", "choices"),
    "quota": ("UPDATE extensions SET submissions = 50", "extensions"),
    "a place given back": ("UPDATE submissions SET uncharged = true", "uncharged is True instead of False"),
    "a deadline": ("UPDATE deadlines SET until = '2027-01-01 23:59 UTC'", "deadlines"),
    "a round": ("UPDATE rounds SET frozen = '2026-01-01T00:00:00Z'", "rounds toy"),
    "a finding": ("DELETE FROM findings WHERE code = 'F012'", "findings of"),
    "an added team": ("INSERT INTO extensions (seq, task, team, submissions) VALUES (999, 'toy', 'mallory', 99)", "neither in the log"),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", FORGED)
def test_forged_rows_of_the_database(place: Place, name: str) -> None:
    command, expected = FORGED[name]
    place.sql(command)
    problems = place.problems()
    assert problems and all("database" in p for p in problems)
    assert any(expected in p for p in problems), problems
    connect.rebuild(place.world.config)
    assert place.problems() == []


# The commands that change the schema, for both databases or by database, and the place that verify names.
PLANTED = {
    "a trigger": (
        {
            "sqlite": ["CREATE TRIGGER planted AFTER INSERT ON measures BEGIN UPDATE measures SET value = 1 WHERE run LIKE 'mallory.%'; END"],
            "postgresql": [
                "CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.value := 1; RETURN NEW; END $$",
                "CREATE TRIGGER planted BEFORE INSERT ON measures FOR EACH ROW EXECUTE FUNCTION act()",
            ],
        },
        "database, trigger ",
    ),
    "a view": (["CREATE VIEW planted AS SELECT * FROM measures"], "database, view planted"),
    "a table": (["CREATE TABLE planted (x INTEGER)"], "database, table planted"),
    "an index": (["CREATE UNIQUE INDEX planted ON runs (task, dataset, scenario, submission)"], "database, index planted"),
    "no index": (["DROP INDEX runs_by_submission"], "database, index runs_by_submission"),
    "a column": (["ALTER TABLE runs ADD COLUMN planted TEXT"], "database, "),
    "no table": (["DROP TABLE pauses"], "database, table pauses"),
}  # fmt: skip
PLANTED_IN_POSTGRESQL = {
    "a rule": ("CREATE RULE planted AS ON UPDATE TO measures DO INSTEAD NOTHING", "database, rule measures.planted"),
    "a policy": ("CREATE POLICY planted ON measures USING (false)", "database, policy measures.planted"),
    "a default": ("ALTER TABLE measures ALTER COLUMN value SET DEFAULT 1", "database, column measures.value"),
    "no key": ("ALTER TABLE releases DROP CONSTRAINT releases_run_attempt_fkey", "database, constraint releases.releases_run_attempt_fkey"),
    "a null": ("ALTER TABLE measures ALTER COLUMN value DROP NOT NULL", "database, column measures.value"),
    "an unlogged table": ("ALTER TABLE pauses SET UNLOGGED", "database, table pauses"),
}  # fmt: skip


def change_schema(place: Place, *commands: str) -> None:
    engine = make_engine(database_url(place.world.config))
    with engine.begin() as connection:
        for command in commands:
            connection.exec_driver_sql(command)
    engine.dispose()


def refuse_backup(place: Place, target: Path) -> list[str]:
    with pytest.raises(RunnerError) as caught:
        backup(place.world.config, target, lambda _: False)
    assert caught.value.code == "E307" and not target.exists()
    return [one.where for one in caught.value.problems]


@both
@pytest.mark.parametrize("name", PLANTED)
def test_a_changed_schema_is_found_and_no_backup_is_made(
    place: Place, either: str, name: str, tmp_path: Path
) -> None:
    assert place.problems() == []
    commands, expected = PLANTED[name]
    change_schema(place, *(commands[either] if isinstance(commands, dict) else commands))
    assert any(p.startswith(expected) for p in place.problems()), place.problems()
    assert any(p.startswith(expected) for p in refuse_backup(place, tmp_path / "backup"))
    if either == "sqlite":
        connect.rebuild(place.world.config)
        assert place.problems() == []
        backup(place.world.config, tmp_path / "backup", lambda _: False)


@pytest.mark.parametrize("either", ["postgresql"], indirect=True)
@pytest.mark.parametrize("name", PLANTED_IN_POSTGRESQL)
def test_changed_schemas_of_postgresql(either: str, place: Place, name: str, tmp_path: Path) -> None:
    command, expected = PLANTED_IN_POSTGRESQL[name]
    change_schema(place, command)
    assert any(p.startswith(expected) for p in place.problems()), place.problems()
    assert expected in refuse_backup(place, tmp_path / "backup")
    connect.rebuild(place.world.config)
    assert place.problems() == []


@pytest.mark.parametrize("either", ["postgresql"], indirect=True)
def test_coordinators_are_a_part_of_a_store_in_postgresql(either: str, place: Place) -> None:
    with connect.open_store(place.world.config) as store, coordinator(place.world.config, store):
        assert place.problems() == []
    change_schema(place, "ALTER TABLE coordinators DROP CONSTRAINT coordinators_pkey")
    assert place.problems() != []


def test_no_backup_is_made_of_a_damaged_log_archive_or_round(place: Place, tmp_path: Path) -> None:
    backup(place.world.config, tmp_path / "whole", lambda _: False)
    scores = place.attempt / "evaluations" / "1" / "scores.jsonl"
    whole = scores.read_bytes()
    scores.chmod(0o644)
    scores.write_bytes(flip(whole, 30))
    assert any("scores.jsonl" in one for one in refuse_backup(place, tmp_path / "backup"))
    scores.write_bytes(whole)
    (frozen,) = (place.world.config.home / "snapshots").rglob("*.json")
    text = frozen.read_bytes()
    frozen.unlink()
    assert any(frozen.name in one for one in refuse_backup(place, tmp_path / "backup"))
    frozen.write_bytes(text)
    place.keep([*place.lines()[:2], *place.lines()[3:]])
    assert any(one.startswith("events.jsonl:") for one in refuse_backup(place, tmp_path / "backup"))


def test_everything_at_once(place: Place) -> None:
    place.sql(FORGED["scores"][0])
    place.sql(FORGED["a withdrawal"][0])
    scores = place.attempt / "evaluations" / "1" / "scores.jsonl"
    scores.chmod(0o644)
    scores.write_bytes(flip(scores.read_bytes(), 30))
    data = place.events.read_bytes()
    place.events.write_bytes(flip(data, len(data) // 2))
    said = place.call("store", "verify", "--json", expect=3)
    found = " | ".join(f"{p['where']}: {p['what']}" for p in said.json["problems"])
    for part in ("measures of", "submissions beta", "scores.jsonl: was changed", "events.jsonl:"):
        assert part in found


def test_a_deleted_evaluation(place: Place) -> None:
    folder = place.attempt / "evaluations"
    folder.chmod(0o755)
    (folder / "1").chmod(0o755)
    shutil.rmtree(folder / "1")
    (problem,) = place.problems()
    assert "evaluations/1: " in problem


@both
def test_an_added_evaluation_and_attempt(place: Place) -> None:
    world = place.world
    world.store = connect.open_store(world.config)
    attempt = world.archive.attempts(TASK, place.run)[0]
    world.evaluation(attempt, {"ndcg": {"1": 1.0}, "rr": {"1": 1.0}}, commit=False)
    problems = place.problems()
    assert len(problems) == 1 and "evaluations/2: " in problems[0]
    assert commit_orphans(world.store) == 1  # it may come from a command that was killed
    assert place.problems() == []
    world.store.close()


def test_a_swapped_archive(place: Place, tmp_path: Path) -> None:
    """Files of another run, with a manifest that fits them."""
    world = World.make(tmp_path / "other")
    world.scored("alpha", "x", mean=0.99)
    other = world.config.archive / TASK / place.run
    target = place.world.config.archive / TASK / place.run
    for folder in [target, *target.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)
    shutil.rmtree(target)
    shutil.copytree(other, target)
    assert any(place.run in problem.partition(": ")[0] for problem in place.problems())
    said = place.call("export", place.run, str(tmp_path / "out"), expect=3)
    assert "E307" in said.err


@both
def test_a_damaged_database_and_a_missing_one(place: Place) -> None:
    records.remove_store(place.world.config)
    found = verify(place.world.config)
    assert found.problems == () and "no database" in found.notes[0]
    connect.open_store(place.world.config).close()
    records.damage_store(place.world.config)
    assert any("the database" in p for p in place.problems())


@both
def test_a_loss_that_was_accepted_is_written_down(place: Place) -> None:
    lines = place.lines()
    place.keep(lines[:-3])
    said = place.call("store", "rebuild", expect=3)
    assert "E307" in said.err and "--accept-loss" in said.err
    place.call("store", "rebuild", "--accept-loss")
    last = json.loads(place.lines()[-1])
    assert last["type"] == "loss-accepted"
    assert json.loads(lines[-1])["hash"] in json.dumps(last["data"])
    place.call("runs")
    # The frozen round of that time is still named: nobody vouches for it any more.
    assert all("final" in p for p in place.problems())


def test_runs_of_unknown_submissions_never_get_into_the_log(place: Place) -> None:
    """A log that lost a registration: taking over its runs would leave an event that nothing can apply."""
    world = place.world
    world.store = connect.open_store(world.config)
    submission = "zeta.new.00000000"
    staging = world.archive.begin(TASK, f"{submission}.test")
    records.fill_attempt(world.archive, staging, submission)
    before = place.lines()
    assert commit_orphans(world.store) == 0
    assert place.lines() == before
    assert any("zeta.new.00000000: has runs" in p for p in place.problems())
    world.store.close()


@both
def test_an_older_store_is_filled_anew_only_from_a_log_that_holds_what_it_knew(place: Place) -> None:
    place.sql("UPDATE meta SET value = '1' WHERE key = 'rules'")
    place.sql("DELETE FROM meta WHERE key = 'prefix'")
    lines = place.lines()
    forged = rechained(lines, lambda event: event.update(actor="mallory"), len(lines) - 2)
    for log in (lines[:-1], forged):
        place.keep(log)
        with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
            connect.open_store(place.world.config)
    place.keep(lines)
    connect.open_store(place.world.config).close()
    assert place.problems() == []


def test_a_round_says_where_the_log_stood(place: Place) -> None:
    said: Said = place.call("round", "show", TASK, "final", "--json")
    head = said.json["snapshot"]["events"]["hash"]
    assert place.problems(head) == []
    assert head in place.call("round", "show", TASK, "final").out
    again = place.call("round", "freeze", TASK, "final", "--json")
    assert again.json["head"]["hash"] == json.loads(place.lines()[-1])["hash"]


@both
@pytest.mark.parametrize("database", ["as it was", "none"])
def test_inapplicable_events_at_the_end_are_found(tmp_path: Path, database: str) -> None:
    """The chain is whole and the database has not taken them yet: the next command would stumble over them."""
    world = World.make(tmp_path)
    world.store.log.append("attempt-committed", {"run": 5}, actor="x")
    world.store.log.append("submission-registered", {}, actor="x")
    if database == "none":
        world.store.close()
        records.remove_store(world.config)
    found = verify(world.config)
    assert [p.where for p in found.problems] == ["events.jsonl:1", "events.jsonl:2"]


@both
@pytest.mark.parametrize(
    ("type", "data", "what"),
    [
        ("quota-extended", {"task": TASK, "team": "alpha"}, "'submissions'"),
        ("quota-extended", {"task": TASK, "team": "alpha", "submissions": "many"}, "data"),
        ("log-excerpt-released", {"text": None}, "data"),
        ("moon-landed", {}, "moon-landed"),
    ],
)
def test_inapplicable_events_are_named(place: Place, type: str, data: dict[str, Any], what: str) -> None:
    """It is well formed and has the right hash: another version wrote it, or a defect of ours."""
    lines = place.lines()
    before = json.loads(lines[-1])
    bad = {**before, "seq": before["seq"] + 1, "type": type, "data": data, "prev": before["hash"]}
    del bad["hash"]
    place.keep([*lines, schemas.canonical({**bad, "hash": schemas.digest(bad)}) + b"\n"])
    line = f"events.jsonl:{bad['seq']}"
    for words in (["runs"], ["store", "rebuild"], ["evaluate", "--all"]):
        said = place.call(*words, expect=3)
        assert "E307" in said.err and f"{line} ({type}): " in said.err, said.err
        assert what in " ".join(said.err.split()) and "runner store verify" in " ".join(said.err.split())
    assert len([p for p in place.problems() if p.startswith(line)]) == 1
    place.keep(lines)
    place.call("store", "verify")
    place.call("runs")


@both
def test_attempts_that_are_recorded_while_verify_reads_are_no_damage(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, survey = World.make(tmp_path / "project"), EventLog.survey

    def survey_first(log: EventLog) -> tuple[list[Event], list[Problem]]:
        events = survey(log)
        world.attempt(place.submission, verdict="run-error", detail="exit code 3")
        return events

    with world.store:
        monkeypatch.setattr(EventLog, "survey", survey_first)
        assert place.problems() == []
        monkeypatch.undo()
        assert place.problems() == []


def test_sealed_attempts_without_an_event_are_damage_unless_a_command_runs(
    place: Place, tmp_path: Path
) -> None:
    with World.make(tmp_path / "project").store as store:
        world = World(store=store, config=place.world.config, clock=place.world.clock)
        world.attempt(place.submission, verdict="run-error", detail="exit code 3", commit=False)
        with coordinator(world.config, store):
            result = verify(world.config)
            assert not result.problems and len(result.notes) == 1
        wheres = [f"{TASK}/{place.run}/attempts/2"]
        assert [problem.where for problem in verify(world.config).problems] == wheres
        manifest = world.archive.attempt(TASK, place.run, 2).path / MANIFEST
        os.utime(manifest, (0, 0))
        with coordinator(world.config, store):  # which would have recorded it long ago
            assert [problem.where for problem in verify(world.config).problems] == wheres
