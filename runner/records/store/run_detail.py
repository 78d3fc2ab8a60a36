"""Everything about one run: from the store, and from the archive where that is as it was committed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.model.errors import no_such
from runner.model.run import FindingCount, MeasureValue, Run
from runner.model.task import Task
from runner.records.archive import Attempt, Evaluation
from runner.records.integrity import check_manifest
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.decisions import Comment, Given, comments_in, excerpts_in
from runner.records.store.queries import find_run_in, key_in, published_in, released_in, rows_of
from runner.records.store.results import findings_in, measures_in, pending_in, topics_in, unanswered_in


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
    unanswered: Mapping[str, Collection[str]] = field(default_factory=dict)  # measure -> topics
    findings: tuple[FindingCount, ...] = ()
    pending: Mapping[str, str] = field(default_factory=dict)  # measure -> why it has no value yet
    released: bool = False  # the organiser has opened this attempt to its team
    decimals: Mapping[str, int] = field(
        default_factory=dict
    )  # that others than the organiser see, by measure
    key: str = ""  # of its task (runner.records.split); empty: none was drawn
    comments: tuple[Comment, ...] = ()  # of organisers
    declared: Path | None = None  # where what its team says in ir-metadata.yml lies, if it does
    excerpts: tuple[Given, ...] = ()  # of this attempt's logs, that its team was given

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


def _decimals(run: Run, tasks: Iterable[Task], measures: Iterable[str]) -> dict[str, int]:
    task = next((task for task in tasks if task.id == run.submission.task), None)
    return {} if task is None else task.decimals(measures)


def _ordered(found: Mapping[str, MeasureValue], run: Run, tasks: Iterable[Task]) -> dict[str, MeasureValue]:
    """Measures in the order of the run's task; those that it has no more come last."""
    known = next((list(task.measures) for task in tasks if task.id == run.submission.task), [])
    order = {name: place for place, name in enumerate(known)}
    return dict(sorted(found.items(), key=lambda pair: (order.get(pair[0], len(order)), pair[0])))


def _declared(store: Store, run: Run) -> Path:
    """Where a registered submission keeps what its team says of its experiment."""
    return store.archive.root.parent / "submissions" / run.submission.id / "bundle" / "ir-metadata.yml"


def _counting(evaluations: Iterable[Mapping[str, Any]], attempt: int) -> int | None:
    """The last evaluation of an attempt that does not wait to be accepted."""
    return max((e["number"] for e in evaluations if e["attempt"] == attempt and e["counts"]), default=None)


def detail(
    store: Store,
    id: str,
    tasks: Iterable[Task] = (),
    *,
    attempt: int | None = None,
    running: Collection[str] = (),
) -> RunDetail:
    """Everything about one run.

    Args:
        store: The open store; its archive is read too.
        id: A run id, or ``<run id>#n`` for its attempt ``n``.
        tasks: The tasks that there are: a run is stale by their definitions.
        attempt: Another attempt than the one that decides the outcome.
        running: Ids of runs that are being executed.

    Raises:
        RunnerError: E102 when there is no such run or attempt, E307 when the archive is damaged.
    """
    wanted, _, number = id.partition("#")
    if attempt is None and re.fullmatch(r"[0-9]{1,6}", number):
        attempt = int(number)
    with store.read() as connection:
        run = find_run_in(connection, wanted, tasks := list(tasks), running=running)
        attempts = rows_of(connection, t.attempts, {"id": wanted}).get(wanted, [])
        evaluations = rows_of(connection, t.evaluations, {"id": wanted}).get(wanted, [])
        published = run.dataset in published_in(connection, run.submission.task)
        found = RunDetail(run, published, tuple(attempts), tuple(evaluations))
        found = replace(found, declared=_declared(store, run), comments=comments_in(connection, wanted))
        judged = run.outcome.evaluation
        if attempt is not None and all(a["number"] != attempt for a in attempts):
            raise no_such("attempt", attempt, of=wanted, fix=f"runner show {wanted} lists them")
        chosen = run.outcome.attempt if attempt is None else attempt
        if chosen is None:
            return found
        judged = judged if attempt is None else _counting(evaluations, chosen)
        numbers = [e["number"] for e in evaluations if e["attempt"] == chosen]
        archived = store.archive.attempt(run.submission.task, wanted, chosen)
        evaluation = None if judged is None else archived.evaluation(judged)
        found = replace(found, attempt=archived, evaluation=evaluation)
        for sealed, manifest in found.sealed():
            check_manifest(sealed, manifest)
        key = (wanted, chosen, judged)
        measures, topics = measures_in(connection, key), topics_in(connection, key)
        return replace(
            found,
            newest=archived.evaluation(max(numbers)) if numbers else None,
            record=archived.record(check=False),
            lock=archived.lock(check=False),
            measures=_ordered(measures, run, tasks),
            topics=topics,
            unanswered=unanswered_in(connection, key),
            decimals=_decimals(run, tasks, {**measures, **topics}),
            findings=findings_in(connection, key),
            pending=pending_in(connection, key),
            released=(wanted, chosen) in released_in(connection, (wanted,)),
            excerpts=tuple(one for one in excerpts_in(connection, wanted) if one.attempt == chosen),
            key=key_in(connection, run.submission.task),
        )
