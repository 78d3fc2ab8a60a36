"""The debates of a run: what was said, how long it took, what failed, which arguments stood behind it, how it was judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import schemas.debates
from runner.kinds.debate.arguments import Index, compare, look_up, ours
from runner.kinds.debate.debates import Argument, Debate, Debates, Turn
from runner.model.errors import Problem
from runner.model.limits import MIB
from runner.tasks.transcripts import LOOKED_AT, OWN, Most, json_lines
from runner.views.audience import Audience, escape, not_for, permissions_for, sees_inside
from runner.views.text import MAX_ID, number, shown, whole
from schemas.debates import CRITERIA
from schemas.words import count_words

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.contents import KeptFile
    from runner.records.store.run_detail import RunDetail

MAX_ARGUMENTS = 50  # of one answer that are shown
MAX_SHOWN = 200_000  # turns and arguments of a run; debates beyond are not read
# The driver writes one line of about 4 KiB for each answer.
MOST_RECORDS = Most(64 * MIB, MIB, 100_000)
MAX_TURNS = 100  # of one debate that are shown
FAILURES = (
    *("timeout", "connection", "status", "empty", "too-large", "not-json", "wrong-type", "no-content"),
    *("run-limit", "server-ended"),
)  # the driver's own words; nothing else is ever counted under a name
# Measures of a turn that are shown in another way.
SHOWN = ("answered", "within-word-limit", "words", "latency")


def read(found: RunDetail, task: Task | None, audience: Audience, dataset: Dataset) -> Debates | None:
    """The debates of a run; None when there is no file of them. Raises E103 for those who may not know of the run.

    On a blinded dataset a transcript holds the claims, and how many turns were answered is up to the software: everybody but
    the organiser gets neither, and the counts of a run that was released.
    """
    may = permissions_for(audience, found.run.submission.team, dataset, found.published, found.released)
    if not may.run:
        raise not_for(audience, f"run {found.run.id}")
    if not may.free_text:
        return Debates(audience, None)
    file = _output_file(found, (found.record.get("output") or {}).get("file"))
    if file is None:
        return None
    turns = _output_file(found, "turns.jsonl") if ours(found) else None
    problems: list[Problem] = []
    unread: list[Problem] = []
    records = {} if turns is None else _records(turns, unread)
    raw = _transcript(file, problems)
    counts = _counts(raw, records)
    if not sees_inside(audience, found.run.submission.team, dataset, found.published):
        return Debates(audience, None, counts=counts)
    notes = [f"{escape(p.where, 200)}: {escape(p.what, 200)}" for p in (*unread[:1], *problems[:5])]
    cited = {a.id for one in raw for t in one.turns for a in t.arguments[:MAX_ARGUMENTS] if a.id}
    index = look_up(found, task, cited)
    if cited and index.texts is None:
        notes.append(
            "The index that this run was evaluated with is not there: texts of arguments were not compared."
        )
    if cited and index.served is None:
        notes.append("Nobody noted what the index returned to this run.")
    elif index.cut:
        notes.append("The record of what the index returned ends too early.")
    known = _Known(records, index, _Topics(found, task, dataset))
    debates = tuple(known.debate(n, one) for n, one in enumerate(raw, 1))
    return Debates(audience, debates, tuple(notes), counts, _criteria(task))


def _criteria(task: Task | None) -> dict[str, str]:
    """``quality@human`` is ``quality (human)`` under whatever id the task measures it."""
    found = {}
    for measure in task.measures.values() if task is not None else ():
        name, _, judge = measure.measure.partition("@")
        if name in CRITERIA:
            found[measure.id] = f"{name} ({judge.partition('?')[0]})" if judge else name
    return found


def _transcript(file: KeptFile, problems: list[Problem]) -> list[schemas.debates.Debate]:
    """The debates of a file; lines that are none are left out, as the evaluator counts places. What is not read is a problem."""
    found: list[schemas.debates.Debate] = []
    size = 0
    with file.local() as path:
        for number, data in json_lines(path, problems, LOOKED_AT):
            debate, _ = schemas.debates.parse(data, MAX_ARGUMENTS)
            if debate is None:
                continue
            size += len(debate.turns) + sum(len(turn.arguments) for turn in debate.turns)
            if size > MAX_SHOWN:
                what = f"not read from here on: there are more than {MAX_SHOWN:,} turns and arguments before"
                problems.append(Problem(f"{schemas.show(path.name, 200)}:{number}", what))
                break
            found.append(debate)
    return found


def _output_file(found: RunDetail, name: object) -> KeptFile | None:
    """A file of the run's output by its name, if there is one."""
    if found.attempt is None or not isinstance(name, str):
        return None
    return found.attempt.file(f"output/{name}")


class _Record(NamedTuple):
    """What the driver noted down of one answer. ``failure`` and ``detail`` are empty where it did not fail."""

    failed: bool = False
    failure: str = ""
    detail: str = ""
    target: int | None = None
    system_ms: float | None = None
    user_ms: float | None = None


_Records = Mapping[tuple[int, int], _Record]


def _records(file: KeptFile, problems: list[Problem]) -> _Records:
    """The driver's records by (debate, turn)."""
    found: dict[tuple[int, int], _Record] = {}
    with file.local() as path:
        for _, row in json_lines(path, problems, MOST_RECORDS, packed=False):
            if not isinstance(row, dict):
                continue
            debate, turn = whole(row.get("debate")), whole(row.get("turn"))
            if debate is not None and turn is not None:
                times = number(row.get("system_ms")), number(row.get("user_ms"))
                failed = row.get("outcome") == "failed"
                found[debate, turn] = _Record(failed, *_failure(row), whole(row.get("target")), *times)
    return found


def _counts(raw: list[schemas.debates.Debate], records: _Records) -> dict[str, Any]:
    failures = Counter(one.failure or "other" for one in records.values() if one.failed)
    turns = sum(len(one.turns) for one in raw)
    answered = sum(not turn.failed for one in raw for turn in one.turns)
    counts = {"debates": len(raw), "turns": turns, "answered": answered, "failed": turns - answered}
    return {**counts, "failures": dict(sorted(failures.items()))}


def _failure(row: Mapping[str, Any]) -> tuple[str, str]:
    """Class (one of ours) and detail of a failure; two empty texts when there is none."""
    failure = row.get("failure")
    if not isinstance(failure, dict):
        return "", ""
    name, detail = failure.get("class"), failure.get("detail")
    return name if name in FAILURES else "other", escape(detail, 400) if isinstance(detail, str) else ""


class _Topics:
    """Which topic of the evaluation a debate is, and the scores by topic and turn."""

    def __init__(self, found: RunDetail, task: Task | None, dataset: Dataset) -> None:
        self.turns: dict[tuple[str, int], dict[str, float]] = {}
        self.wholes: dict[str, dict[str, float]] = {}
        self.taken: Counter[str] = Counter()
        measures = list(task.measures.values()) if task else []
        known = {one.id for one in measures if one.measure.partition("@")[0] in SHOWN}
        for row in found.evaluation.scores() if found.evaluation is not None else ():
            measure, topic, value = row["measure"], row["topic"], number(row["value"])
            facets = row.get("facets") or {}
            if value is None:
                continue
            if not facets:
                self.wholes.setdefault(topic, {})[measure] = value
                continue
            turn = whole(facets["turn"]) if facets.keys() == {"turn"} else None
            if turn is not None and measure not in known:
                self.turns.setdefault((topic, turn), {})[measure] = value
        order = {one.id: n for n, one in enumerate(measures)}
        for scores in (*self.wholes.values(), *self.turns.values()):
            ordered = sorted(scores.items(), key=lambda one: order.get(one[0], len(order)))
            scores.clear()
            scores.update(ordered)
        self.claims = _claims(dataset)

    def of(self, n: int, debate: schemas.debates.Debate) -> str:
        """The topic of debate ``n``: its id, else what the dataset calls its claim, else its number."""
        name = debate.id or self.claims.get(" ".join(debate.claim.split()), "") or str(n)
        self.taken[name] += 1
        return name if self.taken[name] == 1 else f"{name}#{self.taken[name]}"


def _claims(dataset: Dataset) -> dict[str, str]:
    path = dataset.inputs / (dataset.topics or "claims.jsonl")
    if not path.is_file():
        return {}
    rows = [row for _, row in json_lines(path, [], OWN) if isinstance(row, dict)]
    return {
        " ".join(row["claim"].split()): row["id"] if isinstance(row.get("id"), str) and row["id"] else str(n)
        for n, row in reversed(list(enumerate(rows, 1)))
        if isinstance(row.get("claim"), str)
    }


@dataclass(frozen=True)
class _Known:
    """What is known besides the transcript: the driver's records, the index, and the evaluation's scores."""

    records: _Records
    index: Index
    topics: _Topics

    def debate(self, n: int, one: schemas.debates.Debate) -> Debate:
        """Debate ``n`` with all that is known of it."""
        topic = self.topics.of(n, one)
        turns = enumerate(one.turns[:MAX_TURNS], 1)
        return Debate(
            n,
            escape(one.id or topic, MAX_ID),
            shown(one.claim or (one.turns[0].user if one.turns else "")),
            tuple(self._turn(k, turn, self.records.get((n, k)), topic) for k, turn in turns),
            self.topics.wholes.get(topic, {}),
        )

    def _turn(self, k: int, turn: schemas.debates.Turn, noted: _Record | None, topic: str) -> Turn:
        record = noted or _Record(system_ms=turn.milliseconds)
        return Turn(
            number=k,
            user=shown(turn.user),
            answer=shown(turn.answer),
            failed=turn.failed,
            failure=record.failure,
            detail=record.detail,
            target=record.target,
            words=count_words(turn.answer),
            system_ms=record.system_ms,
            user_ms=record.user_ms,
            listed=turn.cited,
            arguments=tuple(self._argument(a) for a in turn.arguments[:MAX_ARGUMENTS]),
            scores=self.topics.turns.get((topic, k), {}),
        )

    def _argument(self, one: schemas.debates.Argument) -> Argument:
        text = None if one.text is None else shown(one.text)
        return Argument(escape(one.id, MAX_ID), text, **compare(self.index, one.id, one.text))
