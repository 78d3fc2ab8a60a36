"""What can be asked of the store. Everything returned here is for the organiser's eyes: what others may see
of it is decided in :mod:`runner.views.audience`, and nowhere else."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Select, select

from runner.model.errors import RunnerError, no_such
from runner.model.outcome import AGAIN_FAILED, AttemptFacts, EvaluationFacts, derive
from runner.model.pins import Changes, Pins, changes
from runner.model.run import FindingCount, MeasureValue, QuotaUse, Run, Submission, cells, run_id
from runner.model.task import Cell, Task
from runner.records.archive import Attempt, Evaluation
from runner.records.integrity import check_manifest
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.history import submission_of
from schemas.details import read as read_detail


@dataclass(frozen=True)
class RunDetail:
    """Everything about one run: the row, the attempt that decides (or the one asked for) and its evaluation."""

    run: Run
    published: bool
    attempt_rows: tuple[Mapping[str, Any], ...] = ()
    evaluation_rows: tuple[Mapping[str, Any], ...] = ()
    attempt: Attempt | None = None
    evaluation: Evaluation | None = None
    newest: Evaluation | None = None  # the last evaluation of that attempt, which may have failed
    record: Mapping[str, Any] = field(default_factory=dict)  # run.json
    lock: Mapping[str, Any] = field(default_factory=dict)  # lock.json
    measures: Mapping[str, MeasureValue] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # measure -> topic -> value
    findings: tuple[FindingCount, ...] = ()
    pending: Mapping[str, str] = field(default_factory=dict)  # measure -> why it has no value yet
    released: bool = False  # the organiser has opened this attempt to its team

    def sealed(self) -> list[tuple[Attempt | Evaluation, str]]:
        """The attempt and the evaluation, each with the SHA-256 of its manifest as it was committed."""
        found: list[tuple[Attempt | Evaluation, str]] = []
        if (attempt := self.attempt) is not None:
            rows = [row for row in self.attempt_rows if row["number"] == attempt.number]
            found += [(attempt, row["manifest"]) for row in rows]
        if (evaluation := self.evaluation) is not None:
            key = (evaluation.attempt, evaluation.number)
            judged = [row for row in self.evaluation_rows if (row["attempt"], row["number"]) == key]
            found += [(evaluation, row["manifest"]) for row in judged]
        return found


def submissions(
    store: Store,
    *,
    task: str | None = None,
    team: str | None = None,
    software: str | None = None,
    withdrawn: bool = True,
) -> list[Submission]:
    """Registered submissions, oldest first; without withdrawn ones on request."""
    with store.read() as connection:
        return _submissions(connection, task=task, team=team, software=software, withdrawn=withdrawn)


def submission(store: Store, id: str) -> Submission:
    """One submission. Raises E102."""
    with store.read() as connection:
        found = _submissions(connection, id=id)
    if not found:
        raise no_such("submission", id, fix="runner runs lists them", limit=120)
    return found[0]


def _submissions(connection: Connection, *, withdrawn: bool = True, **equal: str | None) -> list[Submission]:
    query = _where(select(t.submissions), t.submissions, equal).order_by(t.submissions.c.seq)
    if not withdrawn:
        query = query.where(t.submissions.c.withdrawn.is_(None))
    return [
        Submission(
            **{
                **row,
                "scenarios": tuple(json.loads(row["scenarios"])),
                "cells": None if row["cells"] is None else tuple(Cell(*c) for c in json.loads(row["cells"])),
            }
        )
        for row in connection.execute(query).mappings()
    ]


def _where(query: Select[Any], table: Any, equal: Mapping[str, str | None]) -> Select[Any]:
    for name, value in equal.items():
        if value is not None:
            query = query.where(table.c[name] == value)
    return query


def runs(
    store: Store,
    tasks: Iterable[Task] = (),
    *,
    task: str | None = None,
    team: str | None = None,
    submission: str | None = None,
    running: Collection[str] = (),
) -> list[Run]:
    """Runs with their outcomes, in the order of registration.

    For the ``tasks`` given, runs that a registered submission still has to do are listed too (pending).
    ``running`` are the ids of runs that are being executed (``archive.live()``).
    """
    with store.read() as connection:
        return _runs(connection, tasks, task=task, team=team, submission=submission, running=running)


def _runs(
    connection: Connection,
    tasks: Iterable[Task] = (),
    *,
    task: str | None = None,
    team: str | None = None,
    submission: str | None = None,
    run: str | None = None,
    running: Collection[str] = (),
) -> list[Run]:
    if run is not None:  # of one run only its submission is read
        submission = submission_of(run)
    known = {s.id: s for s in _submissions(connection, task=task, team=team, id=submission)}
    wanted: dict[str, tuple[Submission, str, str]] = {}
    by_task = {one.id: one for one in tasks}
    for s in known.values():
        if s.task in by_task:
            for cell in s.cells_of(by_task[s.task]):
                wanted[run_id(s.id, cell.dataset, cell.scenario)] = (s, cell.dataset, cell.scenario)
    cancelled: dict[str, int | None] = {}
    scope = {"task": task, "submission": submission, "id": run}
    for row in connection.execute(_where(select(t.runs), t.runs, scope).order_by(t.runs.c.id)).mappings():
        if row["submission"] in known:
            wanted[row["id"]] = (known[row["submission"]], row["dataset"], row["scenario"])
            cancelled[row["id"]] = row["cancelled_seq"]
    if run is not None:
        wanted = {id: value for id, value in wanted.items() if id == run}
    attempts = _rows(connection, t.attempts, scope)
    evaluations = _rows(connection, t.evaluations, scope)
    found = [
        _run(
            id,
            *parts,
            attempts.get(id, []),
            evaluations.get(id, []),
            cancelled.get(id),
            id in running,
            by_task.get(parts[0].task),
        )
        for id, parts in wanted.items()
    ]
    opened = _released(connection)
    found = [replace(run, released=True) if (run.id, run.outcome.attempt) in opened else run for run in found]
    order = {cell: n for one in by_task.values() for n, cell in enumerate(cells(one))}
    return sorted(
        found, key=lambda r: (r.submission.seq, order.get(r.cell, len(order)), r.dataset, r.scenario)
    )


def _rows(
    connection: Connection, table: Any, scope: Mapping[str, str | None]
) -> dict[str, list[Mapping[str, Any]]]:
    """Rows of attempts or evaluations by run, oldest first."""
    query = _where(select(table).join(t.runs, t.runs.c.id == table.c.run), t.runs, scope).order_by(
        table.c.seq
    )
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        grouped[row["run"]].append(dict(row))
    return grouped


def _run(
    id: str,
    submission: Submission,
    dataset: str,
    scenario: str,
    attempts: list[Mapping[str, Any]],
    evaluations: list[Mapping[str, Any]],
    cancelled_seq: int | None,
    running: bool,
    task: Task | None,
) -> Run:
    attempts = sorted(attempts, key=lambda a: a["number"])
    outcome = derive(
        [_facts(a, evaluations) for a in attempts],
        running=running,
        cancelled_seq=cancelled_seq,
        withdrawn=submission.withdrawn,
        uncharged=submission.uncharged,
    )
    chosen: Mapping[str, Any] = next((a for a in attempts if a["number"] == outcome.attempt), {})
    judged: Mapping[str, Any] = next(
        (e for e in evaluations if (e["attempt"], e["number"]) == (outcome.attempt, outcome.evaluation)), {}
    )
    pins = Pins.read(judged.get("asked"))
    since = Changes() if task is None or outcome.name == "withdrawn" else changes(task, pins)
    return Run(
        id,
        submission,
        dataset,
        scenario,
        outcome,
        attempts=len(attempts),
        wall_seconds=chosen.get("wall_seconds"),
        cpu_seconds=chosen.get("cpu_seconds"),
        memory_peak=chosen.get("memory_peak"),
        memory_source=chosen.get("memory_source", "none"),
        lock_digest=chosen.get("lock_digest"),
        started=chosen.get("started"),
        first_started=attempts[0]["started"] if attempts else None,
        finished=chosen.get("finished"),
        truths_digest=judged.get("truths_digest", ""),
        evaluator_image=judged.get("image", ""),
        judge=json.loads(judged["judge"]) if judged.get("judge") else None,
        notes=tuple(map(read_detail, json.loads(judged.get("notes") or "[]"))),
        ours=bool(judged.get("default_image", True)),
        pins=pins,
        stale=((AGAIN_FAILED,) if outcome.old else ()) + since.says,
        changed=since.measures,
    )


def _facts(attempt: Mapping[str, Any], evaluations: list[Mapping[str, Any]]) -> AttemptFacts:
    mine = sorted((e for e in evaluations if e["attempt"] == attempt["number"]), key=lambda e: e["number"])
    return AttemptFacts(
        attempt["number"],
        attempt["verdict"],
        read_detail(json.loads(attempt["detail"])) if attempt["detail"] else None,
        attempt["seq"],
        tuple(
            EvaluationFacts(
                e["number"],
                e["status"],
                e["final"],
                e["message"],
                e["errors"],
                e["defects"],
                e["warnings"],
                e["fault"],
            )
            for e in mine
        ),
    )


def no_run(id: str) -> RunnerError:
    """The error for a run that is not there, or of which this audience may not know."""
    return no_such("run", id, fix="runner runs lists them", limit=200)


def find_run(store: Store, id: str, tasks: Iterable[Task] = (), *, running: Collection[str] = ()) -> Run:
    """One run by its id (``#n`` is ignored). Raises E102."""
    wanted = id.partition("#")[0]
    with store.read() as connection:
        found = _runs(connection, tasks, run=wanted, running=running)
    if not found:
        raise no_run(wanted)
    return found[0]


def detail(
    store: Store,
    id: str,
    tasks: Iterable[Task] = (),
    *,
    attempt: int | None = None,
    running: Collection[str] = (),
) -> RunDetail:
    """Everything about one run. ``attempt`` chooses another attempt than the one that decides the outcome
    (``<run id>#n`` does the same). Raises E102, and E307 when the archive is damaged."""
    wanted, _, number = id.partition("#")
    if attempt is None and re.fullmatch(r"[0-9]{1,6}", number):
        attempt = int(number)
    with store.read() as connection:
        found = _runs(connection, tasks, run=wanted, running=running)
        if not found:
            raise no_run(wanted)
        run = found[0]
        attempts = _rows(connection, t.attempts, {"id": wanted}).get(wanted, [])
        evaluations = _rows(connection, t.evaluations, {"id": wanted}).get(wanted, [])
        is_published = run.dataset in _published(connection, run.submission.task)
        k: int | None
        if attempt is None:
            n, k = run.outcome.attempt, run.outcome.evaluation
        else:
            if all(a["number"] != attempt for a in attempts):
                raise no_such("attempt", attempt, of=wanted, fix=f"runner show {wanted} lists them")
            n, k = attempt, max((e["number"] for e in evaluations if e["attempt"] == attempt), default=None)
        if n is None:
            return RunDetail(run, is_published, tuple(attempts), tuple(evaluations))
        archived = store.archive.attempt(run.submission.task, wanted, n)
        evaluation = None
        if k is not None:
            evaluation = archived.evaluation(k)
        last = max((e["number"] for e in evaluations if e["attempt"] == n), default=None)
        newest = None if last is None else archived.evaluation(last)
        shell = RunDetail(run, is_published, tuple(attempts), tuple(evaluations), archived, evaluation)
        for sealed, manifest in shell.sealed():
            check_manifest(sealed, manifest)
        return RunDetail(
            run,
            is_published,
            tuple(attempts),
            tuple(evaluations),
            archived,
            evaluation,
            newest,
            archived.record(check=False),
            archived.lock(check=False),
            _measures(connection, wanted, n, k),
            _topics(connection, wanted, n, k),
            _findings(connection, wanted, n, k),
            _pending(connection, wanted, n, k),
            (wanted, n) in _released(connection),
        )


def _released(connection: Connection) -> set[tuple[str, int]]:
    """The attempts (run, number) that the organiser has opened to their teams."""
    return {
        (row.run, row.attempt) for row in connection.execute(select(t.releases.c.run, t.releases.c.attempt))
    }


def _of(table: Any, run: str, attempt: int, evaluation: int | None) -> Any:
    return (table.c.run == run) & (table.c.attempt == attempt) & (table.c.evaluation == evaluation)


def _measures(
    connection: Connection, run: str, attempt: int, evaluation: int | None
) -> dict[str, MeasureValue]:
    query = select(t.measures).where(_of(t.measures, run, attempt, evaluation)).order_by(t.measures.c.measure)
    c = t.evaluations.c
    where = (c.run == run) & (c.attempt == attempt) & (c.number == evaluation)
    pins = Pins.read(connection.execute(select(c.asked).where(where)).scalar())
    names = {} if pins is None else {name: measure for name, (measure, _) in pins.measures.items()}
    return {
        row.measure: MeasureValue(
            row.value, row.topics, row.covered, row.low, row.high, names.get(row.measure, "")
        )
        for row in connection.execute(query)
    }


def _pending(connection: Connection, run: str, attempt: int, evaluation: int | None) -> dict[str, str]:
    query = select(t.pending).where(_of(t.pending, run, attempt, evaluation)).order_by(t.pending.c.measure)
    return {row.measure: row.reason for row in connection.execute(query)}


def _topics(
    connection: Connection, run: str, attempt: int, evaluation: int | None
) -> dict[str, dict[str, float]]:
    c = t.topic_scores.c
    query = select(c.measure, c.topic, c.value).where(
        _of(t.topic_scores, run, attempt, evaluation), c.facets == ""
    )
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for measure, topic, value in connection.execute(query.order_by(c.measure, c.topic)):
        scores[measure][topic] = value
    return dict(scores)


def _findings(
    connection: Connection, run: str, attempt: int, evaluation: int | None
) -> tuple[FindingCount, ...]:
    c = t.findings.c
    query = (
        select(c.code, c.severity, c["count"], c.title)
        .where(_of(t.findings, run, attempt, evaluation))
        .order_by(c.code)
    )
    return tuple(FindingCount(**row) for row in connection.execute(query).mappings())


def measures(store: Store, run: Run) -> dict[str, MeasureValue]:
    """The aggregates of the evaluation that decided ``run``'s outcome; empty when there is none.

    Values of measures that the task defines otherwise now are left out: they would stand under a wrong name.
    """
    return {name: value for name, value in values(store, run).items() if name not in run.changed}


def values(store: Store, run: Run) -> dict[str, MeasureValue]:
    """As :func:`measures`, with what was computed by other definitions than the task has now (see their ``measure``)."""
    if run.outcome.attempt is None:
        return {}
    with store.read() as connection:
        return _measures(connection, run.id, run.outcome.attempt, run.outcome.evaluation)


def pending_measures(store: Store, run: Run) -> dict[str, str]:
    """The measures that the evaluation that decided ``run``'s outcome has no value for yet, with the reasons."""
    if run.outcome.attempt is None:
        return {}
    with store.read() as connection:
        return _pending(connection, run.id, run.outcome.attempt, run.outcome.evaluation)


def topic_scores(store: Store, run: Run, measure: str) -> dict[str, float]:
    """The scores of ``run`` topic by topic for one measure; empty when there are none, or none by the task's definition."""
    c = t.topic_scores.c
    if run.outcome.attempt is None or measure in run.changed:
        return {}
    where = _of(t.topic_scores, run.id, run.outcome.attempt, run.outcome.evaluation)
    query = select(c.topic, c.value).where(where, c.measure == measure, c.facets == "").order_by(c.topic)
    with store.read() as connection:
        return {row.topic: row.value for row in connection.execute(query)}


def all_topic_scores(store: Store, run: Run) -> dict[str, dict[str, float]]:
    """The scores of ``run`` by measure and topic, as :func:`topic_scores` gives them for one measure."""
    if run.outcome.attempt is None:
        return {}
    with store.read() as connection:
        found = _topics(connection, run.id, run.outcome.attempt, run.outcome.evaluation)
    return {measure: scores for measure, scores in found.items() if measure not in run.changed}


def findings(store: Store, run: Run) -> tuple[FindingCount, ...]:
    """What was found in the output of ``run`` by the evaluation that decided its outcome: one entry a code, by name."""
    if run.outcome.attempt is None:
        return ()
    with store.read() as connection:
        return _findings(connection, run.id, run.outcome.attempt, run.outcome.evaluation)


def published(store: Store, task: str) -> frozenset[str]:
    """The datasets of a task whose scores the organiser has published."""
    with store.read() as connection:
        return _published(connection, task)


def _published(connection: Connection, task: str) -> frozenset[str]:
    query = select(t.publications.c.dataset).where(t.publications.c.task == task)
    return frozenset(connection.execute(query).scalars())


@dataclass(frozen=True)
class FrozenRound:
    """A round that was frozen: when, and the SHA-256 of its snapshot."""

    frozen: str
    digest: str


def frozen_rounds(store: Store, task: str) -> dict[str, FrozenRound]:
    """The rounds of a task that were frozen, by their ids."""
    c = t.rounds.c
    with store.read() as connection:
        rows = connection.execute(select(c.round, c.frozen, c.digest).where(c.task == task).order_by(c.seq))
        return {row.round: FrozenRound(row.frozen, row.digest) for row in rows}


def deadlines(store: Store, task: str) -> dict[str, str]:
    """The last extension of the deadline of each team, as it was written."""
    c = t.deadlines.c
    with store.read() as connection:
        rows = connection.execute(select(c.team, c.until).where(c.task == task).order_by(c.seq))
        return {row.team: row.until for row in rows}


def evaluation_manifests(store: Store, runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Which evaluation decided each of ``runs``: its attempt, number and the SHA-256 of its manifest."""
    c = t.evaluations.c
    found = []
    with store.read() as connection:
        for run in runs:
            n, k = run.outcome.attempt, run.outcome.evaluation
            where = (c.run == run.id) & (c.attempt == n) & (c.number == k)
            manifest = connection.execute(select(c.manifest).where(where)).scalar_one()
            found.append({"run": run.id, "attempt": n, "evaluation": k, "manifest": manifest})
    return found


def quota(store: Store, task: Task, team: str) -> QuotaUse:
    """How much of its quota a team has used for a task.

    A submission costs once one of its runs has an outcome that costs. One that is still pending or running
    is counted as open, so that nobody can hand in more than the quota by being quick. Runs that ended on the
    platform's side (held), and cancelled ones, cost nothing; nor does a submission that was withdrawn uncharged.
    """
    with store.read() as connection:
        found = _runs(connection, [task], task=task.id, team=team)
        extra = connection.execute(
            select(t.extensions.c.submissions).where(
                t.extensions.c.task == task.id, t.extensions.c.team == team
            )
        ).scalars()
        limit = task.quota.teams.get(team, task.quota.submissions) + sum(extra)
        used = {r.submission.id for r in found if r.outcome.costs_quota}
        open_ = {r.submission.id for r in found if r.outcome.name in ("pending", "running")} - used
        return QuotaUse(limit, len(used), len(open_))


def settled_lock(store: Store, lock_digest: str) -> Run | None:
    """The run whose deciding attempt was made under this lock and is settled (so the work need not be done)."""
    with store.read() as connection:
        query = select(t.attempts.c.run).where(t.attempts.c.lock_digest == lock_digest).distinct()
        for id in sorted(connection.execute(query).scalars()):
            found = _runs(connection, run=id)
            if found and found[0].lock_digest == lock_digest and found[0].outcome.todo != "run":
                return found[0]
    return None
