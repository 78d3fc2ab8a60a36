"""The judgments of a run (``evaluations.jsonl``) beside the debates that were judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import schemas.debates
from runner.tasks.transcripts import LOOKED_AT, OWN, json_lines
from runner.views.audience import Audience, escape, not_for, permissions_for, sees_inside
from runner.views.show.contents import Contents
from runner.views.text import cut, wrapped
from schemas.debates import CRITERIA

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail


THRESHOLD = 0.5  # a score from here on means yes, as the evaluator counts
SHORT = 70  # characters of a debate in the overview


@dataclass(frozen=True)
class Verdict:
    """What was said of an answer by one criterion: a score, or None for none that counts."""

    criterion: str
    score: float | None

    @property
    def says(self) -> str:
        """The verdict in words."""
        if self.score is None:
            return "none"
        return f"{'yes' if self.score >= THRESHOLD else 'no'} ({self.score:.2f})"


@dataclass(frozen=True)
class Answer:
    """An answer of a debate, what it answers (both are empty where the debates are not here), and the verdicts on it."""

    number: int
    user: str
    answer: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class JudgedDebate:
    """A debate as a judge sees it."""

    number: int
    name: str
    turns: tuple[Answer, ...]


@dataclass(frozen=True)
class Judged(Contents[JudgedDebate]):
    """The judgments of a run."""

    noun: ClassVar[str] = "judgment"
    closed: ClassVar[str] = "the judgments"
    template: ClassVar[str] = "runner.kinds.meta/page.html"

    def line(self, piece: JudgedDebate) -> str:
        """A debate with how it begins."""
        return f"  {piece.name}: {cut(piece.turns[0].user, SHORT) if piece.turns else ''}"

    def full(self, piece: JudgedDebate) -> Iterator[str]:
        """Each answer of a debate with its verdicts."""
        yield f"\ndebate {piece.name}"
        for turn in piece.turns:
            said = ", ".join(f"{one.criterion} {one.says}" for one in turn.verdicts)
            yield from wrapped(turn.user, f"  {turn.number} user: ")
            yield from wrapped(turn.answer, f"  {turn.number} system: ")
            yield f"    {said}"


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
