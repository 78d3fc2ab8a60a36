"""The overview of a task in its README: a section between two marks, written from task.yaml and the public data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from runner.views.overview.facts import overview
from runner.views.overview.screen import lines
from schemas.files import atomic_file

if TYPE_CHECKING:
    from runner.model.task import Task

BEGIN = '<!-- overview: written by "make docs" and "runner task check" from task.yaml; do not edit -->'
END = "<!-- end of the overview -->"
SECTION = re.compile(r"<!-- overview: .*?<!-- end of the overview -->", re.DOTALL)
_HEADING = re.compile(r"^## ", re.MULTILINE)


def path(task: Task) -> Path:
    """Where a task's README lies."""
    return task.folder / "README.md"


def with_overview(task: Task, text: str) -> str:
    """A README with the section as it is now; where it has none, before the first section or at the end.

    What is in the section stays when the public data that it describes are not here.
    """
    of = overview(task)
    found = SECTION.search(text)
    if found and not of.inputs and "\ninputs     in " in found[0]:
        return text
    section = "\n".join([BEGIN, "## At a glance", "", "```text", *lines(of), "```", END])
    if found:
        return text[: found.start()] + section + text[found.end() :]
    heading = _HEADING.search(text)
    place = heading.start() if heading else len(text)
    return f"{text[:place].rstrip()}\n\n{section}\n\n{text[place:]}".rstrip() + "\n"


def write(task: Task) -> bool:
    """Bring the section of a task's README up to date; True when something changed. Without a README nothing is written."""
    target = path(task)
    if not outdated([task]):
        return False
    text = with_overview(task, target.read_text("utf-8"))
    with atomic_file(target) as file:
        file.write(text.encode())
    return True


def outdated(tasks: Iterable[Task]) -> list[str]:
    """The tasks whose README does not have the section as it would be written."""
    found = []
    for task in tasks:
        target = path(task)
        text = target.read_text("utf-8") if target.is_file() else None
        if text is not None and with_overview(task, text) != text:
            found.append(task.id)
    return found
