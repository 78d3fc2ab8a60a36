"""A row of a leaderboard is computed once more from its record: archived output, evaluator's image and truths, all by digest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

import schemas
from runner.execution.attempt import engine_attempt
from runner.execution.contract import RunFiles
from runner.execution.evaluation import EvaluationJob
from runner.execution.evaluator import Evaluator
from runner.execution.machine import Machine
from runner.execution.replies import replies_of
from runner.model.errors import PlatformError, Problem, RunnerError, no_such
from runner.model.run import Run
from runner.model.task import Dataset, Measure, Task
from runner.records.archive import Attempt, Evaluation
from runner.records.contents import KeptFile
from runner.records.files import read_json, read_lines
from runner.records.integrity import whole
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.queries import find_run
from runner.records.store.results import all_topic_scores, measures
from runner.views.audience import ORGANISER
from runner.views.leaderboard.rows import LeaderboardTable, Row, software_of
from runner.views.leaderboard.table import build

Key = tuple[str, str, str]  # measure, topic (empty: the aggregate), facets as JSON
MOST = 5  # values that are named of those that differ


@dataclass(frozen=True)
class RunChecked:
    """One run of a row: how many ``values`` were computed again, what is wrong with its record, and what was not computed, and why."""

    run: str
    values: int = 0
    wrong: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True)
class RowChecked:
    """A row beside what its record gives. ``rank`` and ``values`` (by measure): on the board, and computed again (None: could
    not be); ``wrong`` is what contradicts of the row itself."""

    row: str
    rank: tuple[int, int | None]
    values: Mapping[str, tuple[float, float | None]]
    runs: tuple[RunChecked, ...]
    wrong: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether everything was computed again, and is what the board shows."""
        return not self.wrong and not any(run.wrong or run.missing for run in self.runs)


def verify_row(machine: Machine, store: Store, tasks: Mapping[str, Task], name: str) -> RowChecked:
    """Compute the row ``TASK/TABLE/ROW`` again, topic by topic; nothing is recorded.

    The files of each run are compared with their manifests, these with the event log, the database with the files; then the
    evaluator judges the archived output again, by the definitions that the evaluation was made by. Values and rank of the row
    are those of a board that is built from the computed values and the archived values of the other rows.

    Raises:
        RunnerError: E102 for a row that there is not, E301 when no engine answers, E307 when the event log is damaged.
    """
    task, table, row = _named(store, tasks, name)
    committed = {
        (e.data["run"], e.data["attempt"], e.data.get("evaluation")): str(e.data["manifest"])
        for e in store.log
        if e.type in ("attempt-committed", "evaluation-committed")
    }
    checked, computed = [], list[tuple[Run, Mapping[Key, float]]]()
    for run in (find_run(store, id, [task]) for id in row.runs):
        one, values = _checked(machine, store, task, run, committed)
        checked.append(one)
        computed.append((run, values))
    again = None
    if all(values for _, values in computed):
        archived = [(run, _archived(store, run)) for run in _others(store, task, table, row)]
        again = _row_from(store, task, table, row, [*archived, *computed])
    made = {
        id: (value.mean, again.values[id].mean if again is not None and id in again.values else None)
        for id, value in row.values.items()
    }
    wrong = [
        f"{id} is {old!r} on the board, and {new!r} from the record"
        for id, (old, new) in made.items()
        if new is not None and new != old
    ]
    rank = None if again is None else again.rank
    if rank not in (None, row.rank):
        wrong.append(f"the rank is {row.rank} on the board, and {rank} from the record")
    return RowChecked(name, (row.rank, rank), made, tuple(checked), tuple(wrong))


def _others(store: Store, task: Task, table: LeaderboardTable, row: Row) -> list[Run]:
    """The runs of the other rows of a board."""
    return [find_run(store, id, [task]) for one in table.rows if one is not row for id in one.runs]


def _archived(store: Store, run: Run) -> dict[Key, float]:
    """The values of a run by its archived evaluation."""
    evaluation = _sealed(store, run)[1]
    return _values(evaluation.record(check=False), evaluation.result() or {}, evaluation.scores())


def _sealed(store: Store, run: Run) -> tuple[Attempt, Evaluation]:
    number, judged = run.outcome.attempt, run.outcome.evaluation
    assert number is not None and judged is not None, "a row is made of evaluated runs"
    attempt = store.archive.attempt(run.submission.task, run.id, number)
    return attempt, attempt.evaluation(judged)


def _row_from(
    store: Store,
    task: Task,
    table: LeaderboardTable,
    row: Row,
    values: Iterable[tuple[Run, Mapping[Key, float]]],
) -> Row | None:
    """The row as the board has it if these are the values of runs; None if it is not ranked then."""

    def write(connection: Connection) -> None:
        for run, found in values:
            of = {"run": run.id, "attempt": run.outcome.attempt, "evaluation": run.outcome.evaluation}
            stored = _stored_values(connection, of)
            for (measure, topic, facets), value in found.items():
                if facets or stored.get((measure, topic), value) == value:
                    continue
                rows = t.topic_scores if topic else t.measures
                key = {**of, "measure": measure, **({"topic": topic} if topic else {})}
                connection.execute(rows.update().filter_by(**key).values(value=value))

    with store.supposing(write) as supposed:
        board = build(supposed, task, table.table, ORGANISER)
    return next((one for one in board.rows if (one.team, one.software) == (row.team, row.software)), None)


def _stored_values(connection: Connection, of: Mapping[str, object]) -> dict[tuple[str, str], float]:
    """Return the values of an evaluation as the store has them, by measure and topic (empty: of all topics)."""
    single, whole = t.topic_scores, t.measures
    rows = connection.execute(select(single.c.measure, single.c.topic, single.c.value).filter_by(**of))
    stored = {(measure, topic): value for measure, topic, value in rows}
    totals = connection.execute(select(whole.c.measure, whole.c.value).filter_by(**of))
    return stored | {(measure, ""): value for measure, value in totals}


def _named(store: Store, tasks: Mapping[str, Task], name: str) -> tuple[Task, LeaderboardTable, Row]:
    """The task, table and row of ``TASK/TABLE/ROW``; a row is a software (``TEAM/SOFTWARE``), or a team."""
    task_id, _, rest = name.partition("/")
    table_id, _, wanted = rest.partition("/")
    if task_id not in tasks:
        raise no_such("task", task_id, tasks, fix="name a row as TASK/TABLE/TEAM/SOFTWARE")
    table = build(store, tasks[task_id], table_id, ORGANISER)
    rows = {key: row for row in table.rows for key in (software_of(row), f"{row.team}/{row.software}")}
    if wanted not in rows:
        fix = f"runner leaderboard {task_id} --table {table_id} lists them; only ranked rows can be verified"
        raise no_such("row", wanted, rows, of=f"{task_id}/{table_id}", fix=fix)
    return tasks[task_id], table, rows[wanted]


def _checked(
    machine: Machine, store: Store, task: Task, run: Run, committed: Mapping[tuple[str, int, int | None], str]
) -> tuple[RunChecked, dict[Key, float]]:
    """What is wrong with a run's record, and its values computed again (none where they could not be)."""
    attempt, evaluation = _sealed(store, run)
    number, judged = attempt.number, evaluation.number
    wrong: list[Problem] = []
    for sealed, key in ((attempt, (run.id, number, None)), (evaluation, (run.id, number, judged))):
        wrong += whole(store.archive, sealed, committed.get(key, ""))
    said = [f"{problem.where}: {problem.what}" for problem in wrong]
    try:
        kept = _archived(store, run)
    except (RunnerError, KeyError, TypeError) as error:
        return RunChecked(run.id, 0, (*said, f"its scores cannot be read: {error}"), "its scores"), {}
    said += _differences("the database has", _stored(store, run), "the archive", kept, only_first=True)
    try:
        again = _again(machine, task, attempt, evaluation, run)
    except RunnerError as error:
        why = " ".join(part for part in (f"{error.what}.", error.why) if part)
        return RunChecked(run.id, 0, tuple(said), why), {}
    said += _differences("the archive has", kept, "computed again it is", again)
    return RunChecked(run.id, len(again), tuple(said)), again


def _again(
    machine: Machine, task: Task, attempt: Attempt, evaluation: Evaluation, run: Run
) -> dict[Key, float]:
    """The values of an archived output by the evaluator, truths and definitions of its evaluation.

    Raises RunnerError where one of them is not there any more, or the evaluator fails.
    """
    record, dataset = evaluation.record(check=False), task.datasets[run.dataset]
    by, then, engine = record["evaluator"], _as_asked(task, record["asked"]), machine.engine()
    sidecars = machine.sidecars(needed=True) if then.evaluation_gateway is not None else None
    evaluator = Evaluator.of(
        replace(then, evaluator_image=by["image_id"]),
        [dataset],
        engine,
        "",
        sidecars=sidecars,
        replies=replies_of(machine.config.home, task.id),
    )
    evaluator = replace(evaluator, task=then, default=by["default"])
    _check_data(evaluator, dataset, record)
    name = engine_attempt(attempt.run_id, attempt.number, "verify-row")
    with tempfile.TemporaryDirectory(prefix="row-") as scratch, attempt.output() as output:
        served = attempt.lock(check=False)["workflow"] == "interactive"
        files = RunFiles(output, attempt.record(check=False)["output"]["file"], served)
        done = EvaluationJob(evaluator, dataset, run.scenario, files, engine, name, Path(scratch)).evaluate()
        if done.status == "error":
            raise PlatformError("the evaluator failed", why=str(done.detail))
        result = read_json(Path(scratch) / "result.json", None)
        return _values({"status": done.status}, result, read_lines(KeptFile(Path(scratch) / "scores.jsonl")))


def _check_data(evaluator: Evaluator, dataset: Dataset, record: Mapping[str, Any]) -> None:
    """Raise E402 unless inputs, truths and data of services are those of the record of an evaluation."""
    place, now = f"{evaluator.task.id}/{dataset.id}", evaluator.digests[dataset.id]
    pairs = [(f"the {side} of {place}", now[side], record[f"{side}_digest"]) for side in now]
    pairs += [
        (f"the data of the service {name}", digest, record["services"].get(name))
        for name, digest in evaluator.services.items()
    ]
    for what, digest, kept in pairs:
        if digest != kept:
            raise RunnerError(
                "E402",
                f"{what} are not those that it was evaluated with",
                why=f"They have the digest {digest[:16]}, the record says {str(kept)[:16]}.",
                fix="restore them, or evaluate again: runner reevaluate",
            )


def _as_asked(task: Task, asked: Mapping[str, Any]) -> Task:
    """The task with the definitions that an evaluation was made by."""
    made = {
        id: Measure(
            id,
            m["measure"],
            m["truths"],
            task.measures[id].direction if id in task.measures else "higher",
            options=m["options"],
        )
        for id, m in asked["measures"].items()
    }
    parts = {name: asked[name] for name in ("kind", "options", "severities", "score_precision")}
    return replace(task, measures=made, **parts)


def _values(
    record: Mapping[str, Any], result: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]
) -> dict[Key, float]:
    """Every value of an evaluation: aggregates and, line by line, scores. Raises KeyError, TypeError for what is none."""
    if record["status"] != "valid":
        return {}
    found: dict[Key, float] = {(id, "", ""): m["value"] for id, m in result["measures"].items()}
    for line in lines:
        facets = schemas.canonical(line["facets"]).decode() if line.get("facets") else ""
        found[str(line["measure"]), str(line["topic"]), facets] = line["value"]
    return found


def _stored(store: Store, run: Run) -> dict[Key, float]:
    """What the database says of a run."""
    found: dict[Key, float] = {(id, "", ""): m.value for id, m in measures(store, run).items()}
    for id, by_topic in all_topic_scores(store, run).items():
        found |= {(id, topic, ""): value for topic, value in by_topic.items()}
    return found


def _differences(
    one: str, first: Mapping[Key, float], other: str, second: Mapping[Key, float], *, only_first: bool = False
) -> list[str]:
    """What two sides say differently, in words; ``only_first``: what the second has beside the first is no difference."""
    keys = [*first, *(() if only_first else (key for key in second if key not in first))]
    found = [
        f"{_called(key)}: {one} {first.get(key)!r}, {other} {second.get(key)!r}"
        for key in keys
        if first.get(key) != second.get(key)
    ]
    more = [f"… and {len(found) - MOST} more values"] if len(found) > MOST else []
    return found[:MOST] + more


def _called(key: Key) -> str:
    measure, topic, facets = (schemas.show(part, 80) for part in key)
    return f"{measure} of topic {topic}{f' {facets}' if facets else ''}" if topic else measure
