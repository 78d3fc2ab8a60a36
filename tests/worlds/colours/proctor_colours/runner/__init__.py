"""What the runner needs: what people see of a run of colours."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from runner.model.kinds import KindSpec
from runner.views.audience import Audience, escape, sees_inside


@dataclass(frozen=True)
class Colours:
    """The lines of a run; None for those who may not see them."""

    audience: Audience
    lines_: list[str] | None
    key: str = "colours"

    def topics(self) -> list[str] | None:
        """The topics in the order of the run."""
        return None if self.lines_ is None else [line.partition(" ")[0] for line in self.lines_]

    def data(self) -> dict[str, Any]:
        """The lines with their numbers."""
        rows = (
            None if self.lines_ is None else [{"number": n, "line": x} for n, x in enumerate(self.lines_, 1)]
        )
        return {"colours": rows}

    def lines(self, wanted: Collection[int]) -> Iterator[str]:
        """The lines as they are."""
        yield f"colours: {len(self.lines_ or ())}"
        yield from (line for n, line in enumerate(self.lines_ or (), 1) if n in wanted)

    def sections(self, wanted: Collection[int] | None, most: int) -> Iterator[str]:
        """Nothing on a page."""
        yield from ()


def read(found: Any, task: Any, audience: Audience, dataset: Any) -> Colours | None:
    """The lines of a run's file, as far as ``audience`` may see them."""
    if not sees_inside(audience, found.run.submission.team, dataset, found.published):
        return Colours(audience, None)
    with found.attempt.file(f"output/{found.record['output']['file']}").open() as file:
        text = file.read().decode("utf-8", "replace")
    return Colours(audience, [escape(line, 80) for line in text.splitlines()])


SPEC = KindSpec(presenter=read)
