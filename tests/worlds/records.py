"""Builders of valid archives, events and tasks for tests of what stands on them: real files, a real database."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from runner.model.clock import FixedClock, stamp
from runner.model.config import Config
from runner.model.limits import Limits
from runner.model.pins import of_task, pins
from runner.model.run import run_id, submission_id
from runner.model.task import Cell, Dataset, Measure, Quota, Ranking, Scenario, Table, Task
from runner.model.verdict import Verdict
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.events import EventLog
from runner.records.files import write_json
from runner.records.store.connect import Store, open_store
from runner.records.store.database import database_url, make_engine
from runner.records.store.queries import submissions
from runner.records.store.tables import metadata
from schemas.details import Detail, read
from tests.worlds.definitions import definition

TASK = "toy"
NO_IMAGE = "sha256:" + "0" * 64
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MEASURES = ("ndcg", "rr")
DIGESTS = ("task", "inputs", "view", "sandbox")
WRITTEN = {"ndcg": "nDCG@10", "rr": "RR"}


def task(
    *,
    scores: str = "public",
    baseline: str | None = "baselines/bm25",
    cells: Sequence[Cell] = (Cell("test"),),
    direction: str = "higher",
    quota: Quota = Quota(),
) -> Task:
    """A task with a public ``dev`` and a blinded ``test`` dataset."""
    here = Path("tasks") / TASK
    return Task(
        id=TASK,
        title="A toy task",
        kind="adhoc",
        workflow="batch",
        folder=here,
        datasets={
            "dev": Dataset("dev", "public", here / "dev", here / "dev-truths"),
            "test": Dataset("test", "blinded", here / "test", here / "test-truths", scores=scores),  # type: ignore[arg-type]
        },
        scenarios={"default": Scenario()},
        measures={
            "ndcg": Measure("ndcg", "nDCG@10", "qrels.txt", direction),  # type: ignore[arg-type]
            "rr": Measure("rr", "RR", "qrels.txt"),
        },
        tables={"main": Table("main", tuple(cells), Ranking(("ndcg",)), MEASURES, baseline=baseline)},
        limits=Limits(),
        evaluator_limits=Limits(),
        quota=quota,
    )


def database_for(home: Path) -> str | None:
    """The address of the database of a data directory: none, which is SQLite in it. See ``either`` of tests.worlds.postgres."""
    return None


def config(tmp_path: Path, home: str = "home") -> Config:
    """A configuration with its data directory under ``tmp_path``."""
    place = tmp_path / home
    return Config(root=tmp_path, home=place, truths=None, database_url=database_for(place))


def sql(where: Config, *commands: str) -> None:
    """Change the database of a data directory behind the store's back; each command must hit something."""
    engine = make_engine(database_url(where))
    with engine.begin() as connection:
        for command in commands:
            assert connection.execute(sa.text(command)).rowcount, f"{command} hit nothing"
    engine.dispose()


def remove_store(where: Config) -> None:
    """Take the database away: the file of SQLite, or all tables of PostgreSQL."""
    if where.database_url is None:
        for file in where.home.glob("store.sqlite*"):
            file.unlink()
    else:
        sql(where, *(f'DROP TABLE "{name}" CASCADE' for name in metadata.tables))


def damage_store(where: Config) -> None:
    """Make the database one that cannot be used: no database in the file of SQLite, a lost table in PostgreSQL."""
    if where.database_url is None:
        where.database.write_bytes(b"no database, though it looks like one" * 200)
    else:
        sql(where, "ALTER TABLE meta DROP COLUMN value")


def per_topic(seed: str, topics: int = 30, mean: float = 0.5) -> dict[str, float]:
    """Made-up scores of one run, the same for the same seed."""
    dice = random.Random(seed)
    return {str(n): round(min(1.0, max(0.0, dice.gauss(mean, 0.2))), 4) for n in range(1, topics + 1)}


def write_project(root: Path, *, scores: str = "public", baseline: str | None = None) -> None:
    """The files of a project with the toy task, for the command line and whoever else loads it from its folder."""
    place = root / "tasks" / TASK
    for dataset in ("dev", "test"):
        for part, name in (("inputs", "topics.jsonl"), ("truths", "qrels.txt")):
            (place / "datasets" / dataset / part).mkdir(parents=True)
            (place / "datasets" / dataset / part / name).write_text("")
    data = definition(
        datasets=[
            {"id": "dev", "visibility": "public"},
            {"id": "test", "visibility": "blinded", "scores": scores},
        ],
        measures=[{"id": id, "measure": name, "truths": "qrels.txt"} for id, name in WRITTEN.items()],
        tables=[
            {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg"}
            | ({"baseline": baseline} if baseline else {})
        ],
    )
    (place / "task.yaml").write_text(json.dumps(data))
    (root / "submissions").mkdir()


@dataclass
class World:
    """A data directory with a store, and short ways to make things happen in it, an hour apart."""

    config: Config
    store: Store
    clock: FixedClock
    locks: dict[str, dict[str, Any]] = field(default_factory=dict)
    by: Task | None = None  # by whose definitions evaluations are made; None: the toy task's
    pinned: bool = True  # whether they keep these
    of: str = TASK  # the task of all that happens

    @classmethod
    def make(cls, tmp_path: Path, home: str = "home") -> World:
        where = config(tmp_path, home)
        clock = FixedClock(START)
        store = open_store(where)
        store.log = EventLog(where.events, clock=clock)
        return cls(where, store, clock)

    @property
    def archive(self) -> RunArchive:
        return self.store.archive

    def commit(self, type: str, **data: Any) -> None:
        self.clock.at += timedelta(hours=1)
        self.store.commit(type, data, actor="organiser")

    def register(
        self,
        team: str,
        software: str,
        *,
        tag: str = "",
        version: int = 1,
        scenarios: Sequence[str] = ("default",),
        **more: Any,
    ) -> str:
        """Register a submission; returns its id."""
        eight = hashlib.sha256(f"{team}/{software}/{version}".encode()).hexdigest()[:8]
        id = submission_id(team, software, eight)
        self.commit(
            "submission-registered",
            submission=id,
            task=self.of,
            team=team,
            software=software,
            scenarios=list(scenarios),
            tag=tag or software,
            **{"description": "a software", "method": "automatic", "image": {"id": NO_IMAGE}, **more},
        )
        return id

    def who(self, submission: str) -> tuple[str, str]:
        """Team and software of a registered submission."""
        (found,) = [one for one in submissions(self.store) if one.id == submission]
        return found.team, found.software

    def attempt(
        self,
        submission: str,
        *,
        dataset: str = "test",
        scenario: str = "default",
        commit: bool = True,
        **facts: Any,
    ) -> Attempt:
        """Archive (and commit) an attempt; ``facts`` are those of :func:`fill_attempt`."""
        staging = self.archive.begin(self.of, run_id(submission, dataset, scenario))
        facts |= {"dataset": dataset, "scenario": scenario, "who": self.who(submission), "task": self.of}
        attempt = fill_attempt(self.archive, staging, submission, at=self.clock.at, **facts)
        if commit:
            self.commit_attempt(attempt)
        return attempt

    def commit_attempt(self, attempt: Attempt) -> None:
        self.commit(
            "attempt-committed",
            task=self.of,
            run=attempt.run_id,
            attempt=attempt.number,
            manifest=attempt.manifest_digest(),
        )

    def evaluation(
        self,
        attempt: Attempt,
        scores: Mapping[str, Mapping[str, float]] | None = None,
        *,
        status: str = "valid",
        codes: Mapping[str, tuple[str, int]] = {},
        findings: Sequence[Mapping[str, Any]] = (),
        message: str = "",
        exit: Mapping[str, Any] | None = None,
        default: bool = True,
        truths: str = "t" * 64,
        commit: bool = True,
        more: Mapping[str, Any] | None = None,
        by: Task | None = None,
        pinned: bool = True,
        fault: str | None = None,
        by_facet: Sequence[Mapping[str, Any]] = (),
        unanswered: Collection[str] = (),
    ) -> Evaluation:
        """Archive (and commit) an evaluation; ``scores`` is measure → topic → value, ``more`` other keys of the result.

        ``by`` is the task with the definitions (default: the toy task); without ``pinned``, they are not stored.
        """
        staging = self.archive.begin_evaluation(attempt)
        now = stamp(self.clock.at)
        counts = {s: sum(n for sev, n in codes.values() if sev == s) for s in ("error", "defect", "warning")}
        if status != "error":
            result = {
                "schema_version": 1,
                "status": status,
                "evaluator": {"name": "fake", "version": "1"},
                "measures": {
                    m: {
                        "value": sum(v.values()) / len(v),
                        "topics": len(v),
                        "covered": len(v) - (len(unanswered) or 1),
                        "interval": [min(v.values()), max(v.values())],
                    }
                    for m, v in (scores or {}).items()
                },
                "findings": {
                    **counts,
                    "codes": {
                        c: {"severity": s, "count": n, "title": f"title of {c}"}
                        for c, (s, n) in codes.items()
                    },
                },
                "run_tag": "tag",
                "message": message,
                **(more or {}),
            }
            write_json(staging.path / "result.json", result)
            lines = [
                {"measure": m, "topic": t, "value": x, **({"answered": False} if t in unanswered else {})}
                for m, v in (scores or {}).items()
                for t, x in v.items()
            ] + list(by_facet)
            _write_lines(staging.path / "scores.jsonl", lines)
            _write_lines(staging.path / "findings.jsonl", findings)
        write_json(staging.path / "request.json", {"schema_version": 1})
        (staging.path / "logs").mkdir()
        (staging.path / "logs" / "stderr.log").write_bytes(b"evaluator\n")
        record: dict[str, Any] = {
            "schema_version": 1,
            "run_id": attempt.run_id,
            "attempt": attempt.number,
            "evaluation": staging.number,
            "evaluator": {"image_id": "sha256:" + "e" * 64, "default": default},
            "truths_digest": truths,
            "started": now,
            "finished": now,
            "status": status,
            "exit": {
                "code": int(status == "error"),
                "oom_killed": False,
                **dict.fromkeys(("killed", "start_error", "outside")),
                **(exit or {}),
            },
            "message": message,
        }
        if pinned and self.pinned:
            record["asked"] = of_task(by or self.by or task())
            record["pins"] = pins(record["asked"])
        if fault is not None:
            record["fault"] = fault
        evaluation = self.archive.add_evaluation(attempt, staging, record)
        if commit:
            self.commit_evaluation(evaluation)
        return evaluation

    def commit_evaluation(self, evaluation: Evaluation) -> None:
        self.commit(
            "evaluation-committed",
            task=self.of,
            run=evaluation.run_id,
            attempt=evaluation.attempt,
            evaluation=evaluation.number,
            manifest=evaluation.manifest_digest(),
        )

    def scored(
        self,
        team: str,
        software: str,
        *,
        mean: float = 0.5,
        topics: int = 30,
        version: int = 1,
        tag: str = "",
        datasets: Sequence[str] = ("test",),
        scores: Mapping[str, float] | None = None,
    ) -> str:
        """A submission that was registered, run and scored; returns its id."""
        submission = self.register(team, software, version=version, tag=tag)
        for dataset in datasets:
            values = dict(scores) if scores is not None else per_topic(f"{submission}{dataset}", topics, mean)
            self.evaluation(self.attempt(submission, dataset=dataset), {"ndcg": values, "rr": values})
        return submission


def _verdict(
    name: str, detail: Detail | str, refused: Sequence[tuple[str, str]], warnings: Sequence[Detail | str]
) -> dict[str, Any]:
    shown = [*warnings, *(Detail("refused-file", file=file, why=why) for file, why in refused)]
    typed = [one if isinstance(one, Detail) else read(None, one) for one in shown]
    made = Verdict(name, read(None, detail) if isinstance(detail, str) else detail, tuple(typed)).as_dict()
    if not any(isinstance(one, Detail) for one in (detail, *warnings)):
        del made["details"]
    return made


def fill_attempt(
    archive: RunArchive,
    staging: Any,
    submission: str,
    *,
    dataset: str = "test",
    verdict: str = "ok",
    detail: Detail | str = "",
    warnings: Sequence[Detail | str] = (),
    refused: Sequence[tuple[str, str]] = (),
    log: bytes = b"hello\n",
    wall: float = 1.5,
    at: datetime = START,
    scenario: str = "default",
    output: Mapping[str, str] | None = None,
    workflow: str = "batch",
    memory: int = 50 * 2**20,
    exit_code: int | None = None,
    who: tuple[str, str] = ("alpha", "x"),
    task: str = TASK,
) -> Attempt:
    """Write the files of an attempt into ``staging`` and seal it. ``output``: its files, the run file first.

    Without a :class:`Detail` among ``detail`` and ``warnings``, the verdict is as in archives from before there were details.
    """
    team, software = who
    lock = {
        "schema_version": 1,
        "run_id": staging.run_id,
        "submission_id": submission,
        "team": team,
        "software": software,
        "task": task,
        "dataset": dataset,
        "scenario": scenario,
        "workflow": workflow,
        "image": {"id": NO_IMAGE, "repo_digest": None, "platform": "linux/amd64"},
        "command": ["/run"],
        "env": {},
        "limits": {"memory": 2**31, "cpus": 1.0, "pids": 256, "wall_clock": 600.0},
        "exceptions": {},
        "seed": 0,
        "digests": {name: letter * 64 for name, letter in zip(DIGESTS, "abcd", strict=True)}
        | {"models": {}, "input_runs": {}},
    }
    digest = hashlib.sha256(json.dumps(lock, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    write_json(staging.path / "lock.json", lock)
    (staging.path / "output").mkdir()
    (staging.path / "logs").mkdir()
    (staging.path / "logs" / "stdout.log").write_bytes(log)
    (staging.path / "logs" / "stderr.log").write_bytes(b"")
    files: list[dict[str, Any]] = []
    if verdict == "ok":
        for name, text in (output or {"run.txt": f"1 Q0 d1 1 1.0 {software}\n"}).items():
            content = text.encode()
            (staging.path / "output" / name).write_bytes(content)
            digest_ = hashlib.sha256(content).hexdigest()
            files.append({"name": name, "size": len(content), "sha256": digest_})
    now = stamp(at)
    code = exit_code if exit_code is not None else int(verdict != "ok")
    resources = {"wall_seconds": wall, "cpu_seconds": wall / 2, "memory_peak": memory}
    record = {
        "schema_version": 1,
        "run_id": staging.run_id,
        "attempt": staging.number,
        "lock_digest": digest,
        "started": now,
        "finished": now,
        "verdict": _verdict(verdict, detail, refused, warnings),
        "exit": {"code": code, "oom_killed": False, "killed": None, "start_error": None},
        "resources": resources | {"memory_source": "exact"},
        "log_truncated": False,
        "output": {
            "file": files[0]["name"] if files else None,
            "files": files,
            "refused": [list(r) for r in refused],
            "bytes": sum(f["size"] for f in files),
            "full": False,
        },
        "engine": {
            "name": "fake",
            "version": "1",
            "cgroup_version": "2",
            "cgroup_driver": "systemd",
            "platform": "linux/amd64",
        },
        "host": "secret-host",
        "runner_version": "0",
    }
    return archive.seal(staging, record)


def _write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def with_scores(one: Task, dataset: str, scores: str) -> Task:
    """``one`` with another rule about who sees the scores of ``dataset``."""
    changed = replace(one.datasets[dataset], scores=scores)  # type: ignore[arg-type]
    return replace(one, datasets={**one.datasets, dataset: changed})
