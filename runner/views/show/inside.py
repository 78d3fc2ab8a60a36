"""What is inside a run for one audience: its debates, its reports, or nothing; a part of it chosen; text, JSON or a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.model.errors import RunnerError
from runner.views.audience import Audience, escape
from runner.views.redact import RunView
from runner.views.show import debates as debating
from runner.views.show import reports as reporting
from runner.views.show.debates import Debates
from runner.views.show.reports import Reports
from runner.views.show.texts import chosen
from schemas.files import atomic_file

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.queries import RunDetail


@dataclass(frozen=True)
class Inside:
    """The debates or reports of a run, as one audience may see them; both None for runs that have neither.

    ``wanted`` are the numbers of those to be shown in full; None: the first in text, all of them in JSON.
    """

    run: str
    debates: Debates | None = None
    reports: Reports | None = None
    wanted: frozenset[int] | None = None

    def choose(self, debate: str | None, topic: str | None) -> Inside:
        """The same with a choice of debates (``3``, ``2-5``, ``all``) or of one topic (or ``all``).

        Raises E101 for a choice that this run cannot have, E102 when there is nothing under that name, and E103 when
        the audience may not see it.
        """
        if debate is None and topic is None:
            return self
        if debate is not None and self.debates is None:
            raise RunnerError("E102", f"{self.run} has no debates", fix="leave --debate out")
        if debate is not None and topic is not None:
            raise RunnerError("E101", "--debate and --topic both choose", fix="give one of them")
        found = self.debates or self.reports
        if found is None:
            raise RunnerError("E102", f"{self.run} has neither debates nor reports", fix="leave --topic out")
        topics = self._topics()
        if topics is None:
            from runner.views.audience import not_for

            raise not_for(found.audience, "what is inside a run on a blinded dataset")
        if debate is not None or topic == "all":
            return replace(self, wanted=chosen(debate or "all", len(topics)))
        numbers = frozenset(n for n, name in enumerate(topics, 1) if name == topic)
        if not numbers:
            raise RunnerError(
                "E102",
                f"{self.run} has nothing on the topic {escape(topic or '', 60)}",
                fix=f"name one of {', '.join(topics[:20])}"
                if topics
                else "runner show tells how far the run is",
            )
        return replace(self, wanted=numbers)

    def _topics(self) -> list[str] | None:
        if self.debates is not None:
            return None if self.debates.debates is None else [one.id for one in self.debates.debates]
        assert self.reports is not None
        return None if self.reports.reports is None else [one.topic for one in self.reports.reports]

    def lines(self) -> Iterator[str]:
        """What a terminal shows: an overview, and what was chosen (else the first) in full."""
        from runner.views.show import text

        wanted = frozenset({1}) if self.wanted is None else self.wanted
        if self.debates is not None:
            yield from text.debates(self.debates, wanted)
        if self.reports is not None:
            yield from text.reports(self.reports, wanted)

    def data(self) -> dict[str, Any]:
        """JSON data: the keys ``debates`` or ``reports``, without what was not chosen; empty when there is neither."""
        data: dict[str, Any] = {}
        if self.debates is not None:
            data["debates"] = self._only(self.debates.data(), "debates")
        if self.reports is not None:
            data["reports"] = self._only(self.reports.data(), "reports")
        return data

    def _only(self, data: dict[str, Any], key: str) -> dict[str, Any]:
        if self.wanted is not None and data[key] is not None:
            data[key] = [one for one in data[key] if one["number"] in self.wanted]
        return data

    def write_page(self, target: Path, view: RunView) -> None:
        """Write the run as one HTML page, as a whole or not at all, readable by its owner only. Raises E101.

        What was chosen is on it, else everything as far as a page goes. It replaces a file that is there.
        """
        from runner.views.show.page import page

        body = page(view, self.debates, self.reports, self.wanted)
        try:
            with atomic_file(target, mode=0o600) as file:
                file.write(body.encode())
        except OSError as error:
            raise RunnerError(
                "E101",
                f"{escape(str(target), 200)} cannot be written",
                why=str(error.strerror),
                fix="name a file in a folder that is there and can be written to",
            ) from error


def inside(found: RunDetail, task: Task | None, audience: Audience, dataset: Dataset) -> Inside:
    """What is inside a run, by the kind of its task. Raises E103 for those who may not know of the run."""
    kind = task.kind if task is not None else ""
    return Inside(
        found.run.id,
        debating.read(found, task, audience, dataset) if kind == "debate" else None,
        reporting.read(found, audience, dataset) if kind == "report" else None,
    )
