"""What a judge said of debates, for people: of every answer yes or no by four criteria; as lines for a terminal, as JSON and on a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from runner.views.show.contents import Contents
from runner.views.text import cut, wrapped

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
