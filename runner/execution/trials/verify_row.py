"""A row of a leaderboard is computed once more from its record: archived output, evaluator's image and truths, all by digest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import schemas
from runner.execution.attempt import engine_attempt
from runner.execution.contract import RunFiles
from runner.execution.evaluation import evaluate as run_evaluator
from runner.execution.evaluator import Evaluator, GatewaySetup, services_digests
from runner.execution.machine import Machine
from runner.execution.replies import replies_of
from runner.model.errors import PlatformError, Problem, RunnerError, no_such
from runner.model.run import MeasureValue, Run, rounded
from runner.model.task import Cell, Dataset, Measure, Task
from runner.records.archive import Attempt, Evaluation
from runner.records.contents import KeptFile
from runner.records.files import read_json, read_lines
from runner.records.integrity import whole
from runner.records.split import Split
from runner.records.store.connect import Store
from runner.records.store.queries import find_run
from runner.records.store.results import all_topic_scores, measures, over
from runner.tasks.files import inputs_digest, truths_digest
from runner.tasks.request import with_data
from runner.tasks.services import data_digest
from runner.views.audience import ORGANISER
from runner.views.leaderboard import ranks
from runner.views.leaderboard.rows import LeaderboardTable, Row, Value, software_of
from runner.views.leaderboard.table import build
from runner.views.scores import board_split

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
    evaluator judges the archived output again, by the definitions that the evaluation was made by. The rank follows from the
    archived values of the other rows.

    Raises:
        RunnerError: E102 for a row that there is not, E301 when no engine answers, E307 when the event log is damaged.
    """
    task, table, row = _named(store, tasks, name)
    committed = {
        (e.data["run"], e.data["attempt"], e.data.get("evaluation")): str(e.data["manifest"])
        for e in store.log
        if e.type in ("attempt-committed", "evaluation-committed")
    }
    board = _Board(task, table, board_split(store, task, [cell.dataset for cell in table.cells], ORGANISER))
    checked, again = [], dict[Cell, dict[str, float]]()
    for run in _runs(store, tasks, row):
        one, values = _checked(machine, store, task, run, committed)
        checked.append(one)
        again[run.cell] = board.shown(run.cell, values)
    made = {id: (value.mean, board.together(again, id)) for id, value in row.values.items()}
    wrong = [
        f"{id} is {old!r} on the board, and {new!r} from the record"
        for id, (old, new) in made.items()
        if new is not None and new != old
    ]
    rank = _rank(store, tasks, board, row, again)
    if rank is not None and rank != row.rank:
        wrong.append(f"the rank is {row.rank} on the board, and {rank} from the record")
    return RowChecked(name, (row.rank, rank), made, tuple(checked), tuple(wrong))


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
    number, judged = run.outcome.attempt, run.outcome.evaluation
    assert number is not None and judged is not None, "a row is made of evaluated runs"
    attempt = store.archive.attempt(task.id, run.id, number)
    evaluation = attempt.evaluation(judged)
    wrong: list[Problem] = []
    for sealed, key in ((attempt, (run.id, number, None)), (evaluation, (run.id, number, judged))):
        wrong += whole(store.archive, sealed, committed.get(key, ""))
    said = [f"{problem.where}: {problem.what}" for problem in wrong]
    try:
        kept = _values(evaluation.record(check=False), evaluation.result() or {}, evaluation.scores())
    except (RunnerError, KeyError, TypeError) as error:
        return RunChecked(run.id, 0, (*said, f"its scores cannot be read: {error}"), "its scores"), {}
    said += _differences("the database has", _stored(store, run), "the archive", kept, only_first=True)
    try:
        again = _again(machine, task, attempt, evaluation, task.datasets[run.dataset], run.scenario)
    except RunnerError as error:
        why = " ".join(part for part in (f"{error.what}.", error.why) if part)
        return RunChecked(run.id, 0, tuple(said), why), {}
    said += _differences("the archive has", kept, "computed again it is", again)
    return RunChecked(run.id, len(again), tuple(said)), again


def _again(
    machine: Machine, task: Task, attempt: Attempt, evaluation: Evaluation, dataset: Dataset, scenario: str
) -> dict[Key, float]:
    """The values of an archived output by the evaluator, truths and definitions of its evaluation.

    Raises RunnerError where one of them is not there any more, or the evaluator fails.
    """
    record = evaluation.record(check=False)
    digests = _same_data(task, dataset, record)
    then = _as_asked(task, record.get("asked"))
    engine = machine.engine()
    image = engine.resolve(str(record["evaluator"]["image_id"]))
    gateway = None
    if then.evaluation_gateway is not None:
        sidecars = machine.sidecars(needed=True)
        if sidecars is None:
            raise RunnerError("E304", "our image of sidecars is not there", fix="run `make setup`")
        gateway = GatewaySetup(engine.resolve(sidecars), replies_of(machine.config.home, task.id))
    default = bool(record["evaluator"].get("default"))
    evaluator = Evaluator(then, image, default, {dataset.id: digests}, gateway, services_digests(then))
    run_file, records = attempt.record(check=False)["output"]["file"], attempt.lock(check=False)
    with tempfile.TemporaryDirectory(prefix="row-") as scratch, attempt.output() as output:
        staging = Path(scratch) / "evaluation"
        staging.mkdir()
        done = run_evaluator(
            evaluator,
            dataset,
            scenario,
            RunFiles(output, run_file, records["workflow"] == "interactive"),
            engine,
            attempt_id=engine_attempt(attempt.run_id, attempt.number, "verify-row"),
            staging=staging,
            cancelled=lambda: False,
        )
        if done.status == "error":
            raise PlatformError("the evaluator failed", why=str(done.detail))
        result = read_json(staging / "result.json", None)
        return _values({"status": done.status}, result, read_lines(KeptFile(staging / "scores.jsonl")))


def _same_data(task: Task, dataset: Dataset, record: Mapping[str, Any]) -> dict[str, str]:
    """The digests of inputs and truths, which must be those of the record. Raises E402 otherwise."""
    place = f"{task.id}/{dataset.id}"
    now = {"inputs": inputs_digest(dataset), "truths": truths_digest(dataset)}
    pairs = [(f"the {side} of {place}", now[side], record.get(f"{side}_digest")) for side in now]
    then = record.get("services") or {}
    pairs += [
        (f"the data of the service {name}", str(data_digest(service)), then.get(name))
        for name, service in with_data(task).items()
    ]
    for what, digest, kept in pairs:
        if digest != kept:
            raise RunnerError(
                "E402",
                f"{what} are not those that it was evaluated with",
                why=f"They have the digest {digest[:16]}, the record says {str(kept)[:16]}.",
                fix="restore them, or evaluate again: runner reevaluate",
            )
    return now


def _as_asked(task: Task, asked: Mapping[str, Any] | None) -> Task:
    """The task with the definitions that an evaluation was made by; as it is now where that was not kept."""
    if asked is None:
        return task
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


@dataclass(frozen=True)
class _Board:
    """A board, and how it makes its values: over which part of the topics, and with how many decimals."""

    task: Task
    table: LeaderboardTable
    split: Split

    def shown(self, cell: Cell, values: Mapping[Key, float]) -> dict[str, float]:
        """The values of a run as the board has them in a cell, by measure."""
        whole = {id: MeasureValue(value, 0, 0) for (id, topic, _), value in values.items() if not topic}
        topics: dict[str, dict[str, float]] = {}
        for (id, topic, facets), value in values.items():
            if topic and not facets:
                topics.setdefault(id, {})[topic] = value
        made = over(self.split, cell.dataset, whole, topics, {})
        return {id: value.rounded(self._decimals(id)).value for id, value in made.items()}

    def together(self, again: Mapping[Cell, Mapping[str, float]], id: str) -> float | None:
        """The value of a row from those of its cells; None where one is not there."""
        found = [again.get(cell, {}).get(id) for cell in self.table.cells]
        present = [value for value in found if value is not None]
        if len(present) < len(found):
            return None
        return rounded(ranks.aggregated(self.table.aggregate, self.table.cells, present), self._decimals(id))

    def rank(
        self, rows: Sequence[tuple[Row, Mapping[Cell, Mapping[str, float]]]]
    ) -> dict[tuple[str, str], int]:
        """The ranks of rows, by team and software, that have these values in each cell."""
        by, cells = self.table.rank_by, self.table.cells
        made = []
        for row, values in rows:
            whole = self.together(values, by.first)
            made.append(row if whole is None else replace(row, values={**row.values, by.first: Value(whole)}))
        directions = {id: self.task.measures[id].direction for id in by.measures}
        parts = [[dict(values.get(cell, {})) for cell in cells] for _, values in rows]
        combined = ranks.with_components(made, parts, cells, by, directions)
        return {(r.team, r.software): r.rank for r in ranks.ranked(combined, by, directions[by.first])}

    def _decimals(self, id: str) -> int | None:
        return self.task.measures[id].precision if id in self.task.measures else None


def _rank(
    store: Store,
    tasks: Mapping[str, Task],
    board: _Board,
    row: Row,
    again: Mapping[Cell, Mapping[str, float]],
) -> int | None:
    """The row's rank from its values computed again and the archived values of the others; None where something is not
    there, or where nobody is ranked because the judge cannot be trusted."""
    table = board.table
    if len({table.deciding(one) for one in table.rows}) > 1 and {one.rank for one in table.rows} == {1}:
        return None
    rows = [(one, again if one is row else _archived(store, tasks, board, one)) for one in table.rows]
    if any(not values for _, cells in rows for values in cells.values()):
        return None
    return board.rank(rows)[row.team, row.software]


def _runs(store: Store, tasks: Mapping[str, Task], row: Row) -> list[Run]:
    return [find_run(store, run, tasks.values()) for run in row.runs]


def _archived(
    store: Store, tasks: Mapping[str, Task], board: _Board, row: Row
) -> dict[Cell, dict[str, float]]:
    """The values of a row's runs from the archive, by cell."""
    found = {}
    for run in _runs(store, tasks, row):
        assert run.outcome.attempt is not None and run.outcome.evaluation is not None
        attempt = store.archive.attempt(run.submission.task, run.id, run.outcome.attempt)
        evaluation = attempt.evaluation(run.outcome.evaluation)
        result = evaluation.result() or {}
        lines = evaluation.scores() if run.dataset in board.split.partial else ()
        found[run.cell] = board.shown(run.cell, _values({"status": result.get("status")}, result, lines))
    return found
