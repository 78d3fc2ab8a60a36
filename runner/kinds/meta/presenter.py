"""The judgments of a run (``evaluations.jsonl``) beside the debates that were judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import schemas.debates
from runner.kinds.meta.judged import Answer, Judged, JudgedDebate, Verdict
from runner.tasks.transcripts import LOOKED_AT, OWN, json_lines
from runner.views.audience import Audience, escape, not_for, permissions_for, sees_inside
from schemas.debates import CRITERIA

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail

MAX_DEBATES = 2000
MAX_TURNS = 100  # of one debate that are shown
MAX_TEXT = 2000  # characters of what was said
DEBATES = "debates.jsonl"


def read(found: RunDetail, task: Task | None, audience: Audience, dataset: Dataset) -> Judged | None:
    """The judgments of a run; None where its output holds none, such as a leaderboard. Raises E103 for those who may not know of the run.

    On a blinded dataset only the organiser sees them.
    """
    team = found.run.submission.team
    if not permissions_for(audience, team, dataset, found.published, found.released).run:
        raise not_for(audience, f"run {found.run.id}")
    if not sees_inside(audience, team, dataset, found.published):
        return Judged(audience, None)
    name = (found.record.get("output") or {}).get("file")
    file = found.attempt.file(f"output/{name}") if found.attempt and isinstance(name, str) else None
    if file is None:
        return None
    words = _debates(dataset)
    with file.local() as path:
        # Each line becomes what is shown of it at once: of what a judge wrote beside, nothing is held.
        rows = enumerate(json_lines(path, [], LOOKED_AT._replace(lines=MAX_DEBATES)), 1)
        pieces = tuple(
            JudgedDebate(n, str(n), _answers(_turns(row), words[n - 1] if n <= len(words) else ()))
            for n, (_, row) in rows
        )
    return Judged(audience, pieces) if any(one.turns for one in pieces) else None


def _turns(row: Any) -> Sequence[Any]:
    found = row.get("userTurnsEvaluations") if isinstance(row, dict) else None
    return found[:MAX_TURNS] if isinstance(found, list) else ()


def _debates(dataset: Dataset) -> list[Sequence[schemas.debates.Turn]]:
    """The debates of a dataset, in their order; empty where they are not here."""
    path = dataset.inputs / (dataset.topics or DEBATES)
    if not path.is_file():
        return []
    parsed = (schemas.debates.parse(row)[0] for _, row in islice(json_lines(path, [], OWN), MAX_DEBATES))
    return [one.turns if one is not None else () for one in parsed]


def _answers(judged: Sequence[Any], said: Sequence[schemas.debates.Turn]) -> tuple[Answer, ...]:
    return tuple(
        Answer(
            n + 1,
            escape(said[n].user, MAX_TEXT) if n < len(said) else "",
            escape(said[n].answer, MAX_TEXT) if n < len(said) else "",
            _verdicts(one),
        )
        for n, one in enumerate(judged)
    )


def _verdicts(one: Any) -> tuple[Verdict, ...]:
    given = {key.lower(): value for key, value in one.items()} if isinstance(one, Mapping) else {}
    return tuple(Verdict(name, _score(given.get(name))) for name in CRITERIA)


def _score(judgment: Any) -> float | None:
    score = judgment.get("score") if isinstance(judgment, Mapping) else None
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    return float(score) if 0 <= score <= 1 else None
