"""Debates for people: turns with the arguments behind every answer, as lines for a terminal, as JSON and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from runner.views.show.contents import Contents
from runner.views.text import counted, cut, figures, one_line, plural, quoted, wrapped

ARGUMENT_TEXT = 240  # characters of an argument that a terminal gets; --json and --html have all


@dataclass(frozen=True)
class Argument:
    """One argument of an answer. ``found`` in the index, ``altered``, ``served`` to this run: None if nobody can say."""

    id: str
    text: str | None
    found: bool | None = None
    altered: bool | None = None
    served: bool | None = None

    @property
    def marks(self) -> list[tuple[str, bool | None, str]]:
        """How it stands, as facts for a page: in words, and whether that is good (None: nobody can say)."""
        known = (
            (self.found, True, "in the index", "not in the index"),
            (self.altered, False, "text altered", "text unchanged"),
            (self.served, True, "served to this run", "never served to this run"),
        )
        found = [(yes if fact else no, fact is good, "") for fact, good, yes, no in known if fact is not None]
        return [*found] or [("not compared", None, "")]


@dataclass(frozen=True)
class Turn:
    """One turn. ``target``: number of the answer that the user attacks. Times in milliseconds. ``failure``: its class.

    ``listed`` is how many arguments came with the answer, ``arguments`` are the first of them. ``scores``: by measure.
    """

    number: int
    user: str
    answer: str
    failed: bool
    failure: str = ""
    detail: str = ""
    target: int | None = None
    words: int = 0
    system_ms: float | None = None
    user_ms: float | None = None
    listed: int = 0
    arguments: tuple[Argument, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def own_scores(self) -> Mapping[str, float]:
        """Its scores, without those that only say that a failed answer counts 0."""
        return {} if self.failed and not any(self.scores.values()) else self.scores

    @property
    def why_failed(self) -> str:
        """Why it has no answer, in words."""
        return ": ".join(part for part in (self.failure, self.detail) if part) or "no answer"

    @property
    def facts(self) -> str:
        """Its words and times, short."""
        facts = [] if self.failed else [plural(self.words, "word")]
        facts += [f"{self.system_ms:,.0f} ms"] if self.system_ms is not None else []
        facts += [f"user {self.user_ms:,.0f} ms"] if self.user_ms is not None else []
        return ", ".join(facts)

    @property
    def faulty(self) -> int:
        """How many of its arguments have something wrong with them."""
        return sum(any(good is False for _, good, _ in one.marks) for one in self.arguments)

    @property
    def compared(self) -> bool:
        """Whether anything is known of any of its arguments."""
        return any(good is not None for one in self.arguments for _, good, _ in one.marks)


@dataclass(frozen=True)
class Debate:
    """One debate. ``number`` counts from 1 in the order of the file; ``scores`` are those of the whole debate."""

    number: int
    id: str
    claim: str
    turns: tuple[Turn, ...]
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What ``--topic`` calls it."""
        return self.id

    @property
    def answered(self) -> int:
        """How many turns have an answer."""
        return sum(not turn.failed for turn in self.turns)

    @property
    def short(self) -> str:
        """The beginning of its claim, without line breaks."""
        return cut(" ".join(self.claim.split()), 200)


@dataclass(frozen=True)
class Debates(Contents[Debate]):
    """The debates of a run, for one audience.

    ``counts`` (empty when it may not see these either): ``debates``, ``turns``, ``answered``, ``failed`` and ``failures`` (by
    class). ``criteria``: which measures are one of the four criteria, and what to call them.
    """

    counts: Mapping[str, Any] = field(default_factory=dict)
    criteria: Mapping[str, str] = field(default_factory=dict)
    noun: ClassVar[str] = "debate"
    closed: ClassVar[str] = "claims and transcripts"
    template: ClassVar[str] = "runner.kinds.debate/page.html"
    choice: ClassVar[str] = "N"

    def facts(self) -> dict[str, Any]:
        """The counts."""
        return {"counts": dict(self.counts)}

    @property
    def failures(self) -> list[tuple[str, str]]:
        """How often answers failed, by class."""
        return [(name, f"{count:,}") for name, count in self.counts["failures"].items()]

    def marks(self, scores: Mapping[str, float]) -> list[tuple[str, bool | None, str]]:
        """Scores on the criteria as facts for a page: 1 is good, 0 is not, others are figures."""
        found = []
        for name, words in self.criteria.items():
            if (value := scores.get(name)) is not None:
                good = {0.0: False, 1.0: True}.get(value)
                found.append((words if good is not None else f"{words} {value:.4g}", good, ""))
        return found

    def rest(self, scores: Mapping[str, float]) -> dict[str, float]:
        """The other scores."""
        return {name: value for name, value in scores.items() if name not in self.criteria}

    def heading(self) -> Iterator[str]:
        """How many debates and turns there are, and how many failed."""
        if c := self.counts:
            yield (
                f"\ndebates: {c['debates']:,} with {c['turns']:,} turns, {c['answered']:,} answered"
                + (f", {c['failed']:,} failed" if c["failed"] else "")
                + (f" ({counted(c['failures'].items())})" if c["failures"] else "")
            )

    def line(self, piece: Debate) -> str:
        """How many turns were answered, and the claim."""
        answered = f"{piece.answered}/{len(piece.turns)} answered"
        return cut(f"  {piece.number:>3}  {answered}  {one_line(piece.claim)}")

    def full(self, piece: Debate) -> Iterator[str]:
        """The claim, then turn by turn what was said, and its arguments and scores."""
        yield f"\ndebate {piece.number} of {len(self.pieces or ())}: {piece.id}"
        yield from quoted(piece.claim, "    claim   | ")
        if piece.scores:
            yield from wrapped(f"scores: {figures(piece.scores)}", "    ")
        for turn in piece.turns:
            yield from _lines(turn)


def _lines(turn: Turn) -> Iterator[str]:
    """A turn for a terminal."""
    target = f", the user attacks answer {turn.target}" if turn.target else ""
    yield f"  turn {turn.number}{target}"
    if turn.user:
        yield from quoted(turn.user, "    user    | ")
    if turn.failed:
        yield from wrapped(turn.why_failed, "    FAILED    ")
    else:
        yield from quoted(turn.answer, "    system  | ")
    if turn.facts:
        yield f"              {turn.facts}"
    if turn.listed:
        more = f", the first {len(turn.arguments)}" if turn.listed > len(turn.arguments) else ""
        yield f"    arguments: {turn.listed:,}{more}"
    for one in turn.arguments:
        yield cut(f"      {one.id or '(no id)'}  [{', '.join(words for words, _, _ in one.marks)}]")
        yield from quoted(cut(one_line(one.text or ""), ARGUMENT_TEXT), "        | ")
    if turn.own_scores:
        yield from wrapped(f"scores: {figures(turn.own_scores)}", "    ")
