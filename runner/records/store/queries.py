"""What can be asked of the store. Everything returned here is for the organiser's eyes: what others may see
of it is decided in :mod:`runner.views.audience`, and nowhere else."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Connection, select

from runner.model.errors import RunnerError, no_such
from runner.model.outcome import AGAIN_FAILED, WAITING, AttemptFacts, EvaluationFacts, derive
from runner.model.pins import Changes, Pins, changes
from runner.model.run import Run, Submission, cells, run_id
from runner.model.task import Cell, Task
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.decisions import reviews_in
from runner.records.store.rows import Scope, ask
from schemas.details import read as read_detail

_OF_ATTEMPT = (
    *("wall_seconds", "cpu_seconds", "first_seconds", "memory_peak"),
    *("lock_digest", "started", "finished"),
)


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
        found = _submissions(connection, among=(id,))
    if not found:
        raise no_such("submission", id, fix="runner runs lists them", limit=120)
    return found[0]


def _submissions(
    connection: Connection,
    *,
    withdrawn: bool = True,
    among: Collection[str] | None = None,
    **equal: str | None,
) -> list[Submission]:
    """Submissions, all or those ``among`` some ids; of these alone anything is read."""
    query = _SUBMISSIONS if withdrawn else _STANDING
    rows = ask(connection, query, t.submissions, {**equal, "id": among}).mappings().all()
    teams = None if among is None else {str(row["team"]) for row in rows}
    shown = display_names_in(connection, teams)
    chosen: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for choice in ask(connection, _CHOICES, t.choices, {"submission": among}):
        chosen[choice.submission].append((choice.seq, choice.at))
    return [
        Submission(
            **{
                **row,
                "chosen": tuple(chosen[row["id"]]),
                "display_name": shown.get((row["team"], row["software"]), ""),
                "team_display_name": shown.get((row["team"], ""), ""),
                "limits": json.loads(row["limits"] or "{}"),
                "scenarios": tuple(json.loads(row["scenarios"])),
                "source": json.loads(row["source"]) if row["source"] else None,
                "cells": None if row["cells"] is None else tuple(Cell(*c) for c in json.loads(row["cells"])),
            }
        )
        for row in rows
    ]


def display_names_in(
    connection: Connection, teams: Collection[str] | None = None
) -> dict[tuple[str, str], str]:
    """The display names by team and software, those of teams without a software; of all ``teams``, or of some."""
    rows = ask(connection, _DISPLAY_NAMES, t.display_names, {"team": teams})
    return {(row.team, row.software): row.display_name for row in rows}


_SUBMISSIONS = select(t.submissions).order_by(t.submissions.c.seq)
_STANDING = _SUBMISSIONS.where(t.submissions.c.withdrawn.is_(None))
_CHOICES = select(t.choices).order_by(t.choices.c.seq)
_DISPLAY_NAMES = select(t.display_names).order_by(*t.display_names.primary_key)
_RUNS = select(t.runs).order_by(t.runs.c.id)
_RELEASES = select(t.releases.c.run, t.releases.c.attempt)
_VERIFIED = select(t.verifications.c.run, t.verifications.c.attempt).where(t.verifications.c.same)


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

    Args:
        store: The open store.
        tasks: For these, runs that a registered submission still has to do are listed too (pending).
        task: Only runs of the task of this id.
        team: Only runs of this team.
        submission: Only runs of this submission.
        running: Ids of runs that are being executed (``archive.live()``).
    """
    with store.read() as connection:
        return runs_in(connection, tasks, task=task, team=team, submission=submission, running=running)


def runs_in(
    connection: Connection,
    tasks: Iterable[Task] = (),
    *,
    task: str | None = None,
    team: str | None = None,
    submission: str | None = None,
    ids: Collection[str] | None = None,
    running: Collection[str] = (),
) -> list[Run]:
    """:func:`runs` in a connection that reads other things, too; with ``ids`` those of these ids alone."""
    among: tuple[str, ...] | None = None if submission is None else (submission,)
    if ids is not None:  # an id begins with that of its submission, and nothing else is read
        among = tuple({id[:place] for id in ids for place, letter in enumerate(id) if letter == "."})
    known = {s.id: s for s in _submissions(connection, task=task, team=team, among=among)}
    wanted: dict[str, tuple[Submission, str, str]] = {}
    by_task = {one.id: one for one in tasks}
    for s in known.values():
        if s.task in by_task:
            for cell in s.cells_of(by_task[s.task]):
                wanted[run_id(s.id, cell.dataset, cell.scenario)] = (s, cell.dataset, cell.scenario)
    cancelled: dict[str, int | None] = {}
    restarted: dict[str, int | None] = {}
    scope = {"task": task, "submission": submission, "id": ids}
    for row in ask(connection, _RUNS, t.runs, scope).mappings():
        if row["submission"] in known:
            wanted[row["id"]] = (known[row["submission"]], row["dataset"], row["scenario"])
            cancelled[row["id"]], restarted[row["id"]] = row["cancelled_seq"], row["restarted_seq"]
    if ids is not None:
        wanted = {id: value for id, value in wanted.items() if id in ids}
    attempts = rows_of(connection, t.attempts, scope)
    evaluations = rows_of(connection, t.evaluations, scope)
    opened, same = released_in(connection, ids), _verified_in(connection, ids)
    reviews = reviews_in(connection, ids)
    since = _Changed(by_task)
    found = []
    for id, parts in wanted.items():
        commands = (cancelled.get(id), restarted.get(id))
        run_ = _run(id, *parts, attempts[id], evaluations[id], commands, id in running, since)
        decided = (id, run_.outcome.attempt or 0)
        found.append(
            replace(run_, released=decided in opened, verified=decided in same, review=reviews.get(decided))
        )
    order = {cell: n for one in by_task.values() for n, cell in enumerate(cells(one))}
    return sorted(
        found, key=lambda r: (r.submission.seq, order.get(r.cell, len(order)), r.dataset, r.scenario)
    )


def rows_of(connection: Connection, table: Any, scope: Scope) -> defaultdict[str, list[Mapping[str, Any]]]:
    """Rows of attempts or evaluations by run, oldest first."""
    grouped: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    query = select(table).join(t.runs, t.runs.c.id == table.c.run).order_by(table.c.seq)
    for row in ask(connection, query, t.runs, scope).mappings():
        grouped[row["run"]].append(dict(row))
    return grouped


def _run(
    id: str,
    submission: Submission,
    dataset: str,
    scenario: str,
    attempts: list[Mapping[str, Any]],
    evaluations: list[Mapping[str, Any]],
    commanded: tuple[int | None, int | None],  # events by which it was cancelled and restarted last
    running: bool,
    changed: _Changed,
) -> Run:
    attempts = sorted(attempts, key=lambda a: a["number"])
    # Only the last evaluation of an attempt may wait, and a failure before one that gave a result says nothing any more.
    last = {e["attempt"]: e for e in evaluations}
    results = {e["attempt"]: e["number"] for e in evaluations if e["status"] != "error"}
    evaluations = [
        e
        for e in evaluations
        if e["counts"] and not (e["status"] == "error" and e["number"] < results.get(e["attempt"], 0))
    ]
    outcome = derive(
        [_facts(a, evaluations) for a in attempts],
        running=running,
        cancelled_seq=commanded[0],
        restarted_seq=commanded[1],
        withdrawn=submission.withdrawn,
        uncharged=submission.uncharged,
    )
    chosen: Mapping[str, Any] = next((a for a in attempts if a["number"] == outcome.attempt), {})
    judged: Mapping[str, Any] = next(
        (e for e in evaluations if (e["attempt"], e["number"]) == (outcome.attempt, outcome.evaluation)), {}
    )
    pins, since = changed.since(submission.task, judged.get("asked"))
    if outcome.name == "withdrawn":
        since = Changes()
    newest = last.get(outcome.attempt)
    waiting = newest["number"] if newest is not None and newest["counts"] is False else None
    used: dict[str, Any] = {name: chosen.get(name) for name in _OF_ATTEMPT}
    return Run(
        id,
        submission,
        dataset,
        scenario,
        outcome,
        attempts=len(attempts),
        **used,
        memory_source=chosen.get("memory_source", "none"),
        first_started=attempts[0]["started"] if attempts else None,
        truths_digest=judged.get("truths_digest", ""),
        evaluator_image=judged.get("image", ""),
        judge=json.loads(judged["judge"]) if judged.get("judge") else None,
        notes=tuple(map(read_detail, json.loads(judged.get("notes") or "[]"))),
        ours=bool(judged.get("default_image", True)),
        pins=pins,
        stale=((AGAIN_FAILED,) if outcome.old else ())
        + ((WAITING,) if waiting is not None else ())
        + since.says,
        changed=since.measures,
        waiting=waiting,
    )


class _Changed:
    """What of tasks has changed since evaluations were made; the same definitions are compared once."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self._tasks = tasks
        self._known: dict[tuple[str, str | None], tuple[Pins | None, Changes]] = {}

    def since(self, task: str, asked: str | None) -> tuple[Pins | None, Changes]:
        """The definitions that an evaluation was ``asked`` for, as the store keeps them, and what is otherwise now."""
        if (task, asked) not in self._known:
            pins = Pins.read(asked)
            defined = self._tasks.get(task)
            self._known[task, asked] = pins, Changes() if defined is None else changes(defined, pins)
        return self._known[task, asked]


def _facts(attempt: Mapping[str, Any], evaluations: list[Mapping[str, Any]]) -> AttemptFacts:
    own = sorted((e for e in evaluations if e["attempt"] == attempt["number"]), key=lambda e: e["number"])
    return AttemptFacts(
        attempt["number"],
        attempt["verdict"],
        read_detail(json.loads(attempt["detail"])) if attempt["detail"] else None,
        attempt["seq"],
        tuple(
            EvaluationFacts(**{field.name: e[field.name] for field in fields(EvaluationFacts)}) for e in own
        ),
        any(one.get("kind") == "first-cases" for one in json.loads(attempt["warnings"])),
    )


def no_run(id: str) -> RunnerError:
    """The error for a run that is not there, or of which this audience may not know."""
    return no_such("run", id, fix="runner runs lists them", limit=200)


def find_run(store: Store, id: str, tasks: Iterable[Task] = (), *, running: Collection[str] = ()) -> Run:
    """One run by its id (``#n`` is ignored). Raises E102."""
    with store.read() as connection:
        return find_run_in(connection, id.partition("#")[0], tasks, running=running)


def find_run_in(
    connection: Connection, id: str, tasks: Iterable[Task] = (), *, running: Collection[str] = ()
) -> Run:
    """As :func:`find_run`, in the caller's transaction."""
    found = runs_in(connection, tasks, ids=(id,), running=running)
    if not found:
        raise no_run(id)
    return found[0]


def find_runs(store: Store, ids: Collection[str], tasks: Iterable[Task]) -> dict[str, Run]:
    """Runs by their ids, as they stand now. Raises E102 where one is not there."""
    if not ids:
        return {}
    with store.read() as connection:
        found = {run.id: run for run in runs_in(connection, tasks, ids=ids)}
    for id in ids:
        if id not in found:
            raise no_run(id)
    return found


def released_in(connection: Connection, runs: Collection[str] | None = None) -> set[tuple[str, int]]:
    """The attempts (run, number) that the organiser has opened to their teams, all or those of some runs."""
    return {(row.run, row.attempt) for row in ask(connection, _RELEASES, t.releases, {"run": runs})}


def _verified_in(connection: Connection, runs: Collection[str] | None) -> set[tuple[str, int]]:
    """The attempts (run, number) that were the same when they were executed again, all or those of some runs."""
    return {(row.run, row.attempt) for row in ask(connection, _VERIFIED, t.verifications, {"run": runs})}


def registered_softwares(store: Store, task: str) -> frozenset[str]:
    """Return the systems with a submission for a task that was not withdrawn, as ``team/name``."""
    return frozenset(f"{s.team}/{s.software}" for s in submissions(store, task=task, withdrawn=False))


def published(store: Store, task: str) -> frozenset[str]:
    """The datasets of a task whose scores the organiser has published."""
    with store.read() as connection:
        return published_in(connection, task)


def published_in(connection: Connection, task: str) -> frozenset[str]:
    """As :func:`published`, in the caller's transaction."""
    return frozenset(name for name, decided in publications_in(connection, task).items() if decided.open)


@dataclass(frozen=True)
class Publication:
    """Whether the scores on a dataset are ``open`` to everybody, by the last event about it, and its time."""

    open: bool
    since: str


def publications_in(connection: Connection, task: str) -> dict[str, Publication]:
    """What was decided last about the scores of a task's datasets, where anything was."""
    c = t.publications.c
    rows = connection.execute(select(c.dataset, c.open, c.since).where(c.task == task).order_by(c.dataset))
    return {row.dataset: Publication(row.open, row.since) for row in rows}


def key_in(connection: Connection, task: str) -> str:
    """The random key of a task; empty as long as none was drawn."""
    return str(connection.execute(select(t.keys.c.key).where(t.keys.c.task == task)).scalar() or "")


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


def pauses(store: Store) -> dict[tuple[str, str], str]:
    """What is paused, by task and dataset (empty: the whole task), with the reason."""
    with store.read() as connection:
        return {(row.task, row.dataset): row.reason for row in connection.execute(_PAUSES)}


_PAUSES = select(t.pauses).order_by(*t.pauses.primary_key)


def team_limits(store: Store) -> dict[tuple[str, str], dict[str, Any]]:
    """The limits that events gave single teams, by task and team: those that differ from the task's, seconds and bytes."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with store.read() as connection:
        for row in connection.execute(select(t.team_limits).order_by(t.team_limits.c.seq)):
            granted = {"wall_clock": row.wall_clock, "memory": row.memory}
            own = found.setdefault((row.task, row.team), {})
            own |= {name: value for name, value in granted.items() if value is not None}
    return found


def deadlines(store: Store, task: str, dataset: str = "") -> dict[str, str]:
    """The last extension of the deadline of each team for the task or a dataset, as it was written."""
    c = t.deadlines.c
    with store.read() as connection:
        rows = connection.execute(
            select(c.team, c.until).where(c.task == task, c.dataset == dataset).order_by(c.seq)
        )
        return {row.team: row.until for row in rows}
