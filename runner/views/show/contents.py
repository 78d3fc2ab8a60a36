"""What is inside a run, such as debates, reports or wrong records, for one audience: a part of it chosen; as text, JSON or on a page.

A kind of task whose runs can be looked into makes a subclass of :class:`Contents`, with a template beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from runner.model.errors import RunnerError
from runner.model.kinds import Content, kind_spec
from runner.views.audience import Audience, escape, not_for
from runner.views.pages import macros, write_page
from runner.views.redact import RunView

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail
    from runner.views.show.topics import Topics

LISTED = 200  # lines of an overview on a terminal


class Piece(Protocol):
    """One debate or report."""

    @property
    def number(self) -> int:
        """Its place in the file, from 1."""
        ...

    @property
    def name(self) -> str:
        """Its topic."""
        ...


PieceType = TypeVar("PieceType", bound=Piece)


@dataclass(frozen=True)
class Contents(ABC, Generic[PieceType]):
    """What is inside a run for one audience, as :class:`runner.model.kinds.Content` has it: ``pieces``, or None when it may not see them.

    ``notes``: what could not be compared or read. A subclass names its pieces (``noun``, such as ``debate``), what of a
    blinded dataset is not shown (``closed``), what it says of a single piece on a terminal, and the template of a page,
    which has the macros ``heading(contents)``, ``overview(contents, pieces, linked)`` and ``piece(contents, piece)``.
    """

    audience: Audience
    pieces: tuple[PieceType, ...] | None
    notes: tuple[str, ...] = ()
    noun: ClassVar[str]
    closed: ClassVar[str]
    template: ClassVar[str]
    choice: ClassVar[str] = "ID"

    @property
    def key(self) -> str:
        """What several pieces are called: their key in JSON."""
        return f"{self.noun}s"

    def heading(self) -> Iterator[str]:
        """The first lines on a terminal."""
        yield "" if self.pieces is None else f"\n{self.key}: {len(self.pieces):,}"

    @abstractmethod
    def line(self, piece: PieceType) -> str:
        """A piece in one line of the overview."""

    @abstractmethod
    def full(self, piece: PieceType) -> Iterator[str]:
        """A piece in full, as lines for a terminal."""

    def facts(self) -> dict[str, Any]:
        """What JSON has besides pieces and notes."""
        return {}

    def topics(self) -> list[str] | None:
        """The topic of each piece, in order; None when the audience may not see them."""
        return None if self.pieces is None else [one.name for one in self.pieces]

    def data(self) -> dict[str, Any]:
        """JSON data, with the pieces under :attr:`key`."""
        pieces = None if self.pieces is None else [asdict(cast(Any, p)) for p in self.pieces]
        return {**self.facts(), self.key: pieces, "notes": list(self.notes)}

    def chosen(self, wanted: Collection[int] | None) -> list[PieceType]:
        """The pieces with these numbers (None: all)."""
        return [one for one in self.pieces or () if wanted is None or one.number in wanted]

    def lines(self, wanted: Collection[int]) -> Iterator[str]:
        """Lines for a terminal: an overview, then the pieces with the numbers ``wanted`` in full."""
        yield from self.heading()
        if self.pieces is None:
            yield f"not shown to {self.audience}: {self.closed} of a blinded dataset"
            return
        yield from (f"note: {note}" for note in self.notes)
        some = len(wanted) < len(self.pieces)
        if some:
            yield from map(self.line, self.pieces[:LISTED])
            if len(self.pieces) > LISTED:
                yield f"  … and {len(self.pieces) - LISTED:,} more, which --json lists"
        for one in self.chosen(wanted):
            yield from self.full(one)
        if some:
            yield f"\n--topic {self.choice} shows another one (or all); --html FILE writes a page of all"

    def sections(self, wanted: Collection[int] | None, most: int) -> Iterator[str]:
        """Parts of an HTML page: the pieces ``wanted`` (None: all) as far as ``most`` characters reach, and what is missing."""
        made = macros(self.template)
        pieces = self.chosen(wanted)
        bodies: list[str] = []
        for one in pieces:
            body = made.piece(self, one)
            if bodies and len(body) > most:
                break
            most -= len(body)
            bodies.append(body)
        yield macros("runner.views.show/macros.html").contents(self, made, pieces, bodies)


@dataclass(frozen=True)
class Inside:
    """What is inside ``run`` for one audience (``contents`` is None: nothing), and the numbers of the pieces to be shown in full.

    ``wanted`` None: the first in text, all of them in JSON and on a page.
    """

    run: str
    audience: Audience
    contents: Content | None = None
    wanted: frozenset[int] | None = None

    def choose(self, topic: str | None) -> Inside:
        """Return the same with the piece of one topic chosen, by its name or its number, or ``all``.

        Raises E102 if there is nothing under that name, and E103 if the audience may not see it.
        """
        if topic is None:
            return self
        if self.contents is None:
            raise RunnerError(
                "E102", f"{self.run} has nothing inside to choose from", fix="leave --topic out"
            )
        topics = self.contents.topics()
        if topics is None:
            raise not_for(self.audience, "what is inside a run on a blinded dataset")
        named = {n for n, name in enumerate(topics, 1) if topic in ("all", name)}
        wanted = frozenset(named or {n for n in range(1, len(topics) + 1) if topic == str(n)})
        if not wanted and topic != "all":
            names = ", ".join(topics[:20])
            raise RunnerError(
                "E102",
                f"{self.run} has nothing on the topic {escape(topic, 60)}",
                fix=f"name one of {names}" if names else "runner show says how far the run is",
            )
        return replace(self, wanted=wanted)

    def lines(self) -> Iterator[str]:
        """What a terminal shows: an overview, and what was chosen (else the first) in full."""
        if self.contents is not None:
            yield from self.contents.lines(frozenset({1}) if self.wanted is None else self.wanted)

    def data(self) -> dict[str, Any]:
        """JSON data under the key ``debates`` or ``reports``, without what was not chosen; empty when there is neither."""
        if self.contents is None:
            return {}
        key, data = self.contents.key, self.contents.data()
        if self.wanted is not None and data[key] is not None:
            data[key] = [one for one in data[key] if one["number"] in self.wanted]
        return {key: data}

    def write_page(
        self,
        target: Path,
        view: RunView,
        topics: Topics | None = None,
        hint: str = "",
        task: Task | None = None,
    ) -> str:
        """Write the run as one HTML page, as a whole or not at all, readable by its owner only. Raises E101.

        What was chosen is on it, else everything as far as a page goes. It replaces a file that is there. Returns the page.
        """
        from runner.views.show.page import page

        body = page(view, self.contents, self.wanted, topics, hint, task)
        write_page(target, body)
        return body


def inside(found: RunDetail, task: Task | None, audience: Audience, dataset: Dataset) -> Inside:
    """What is inside a run, by the presenter of its kind.

    Args:
        found: The run with its attempt and evaluation.
        task: Its task; None when that is gone, and then nothing is shown.
        audience: Who looks.
        dataset: The dataset that it ran on.

    Raises:
        RunnerError: E103 when the audience may not know of the run.
    """
    present = None if task is None else kind_spec(task.kind).presenter
    return Inside(found.run.id, audience, present(found, task, audience, dataset) if present else None)
