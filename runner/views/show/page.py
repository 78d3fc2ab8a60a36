"""A run as one HTML page: no script, nothing loaded from elsewhere, every text escaped.

The page's policy allows its own style sheet by its hash and nothing else, so that words of a participant that slipped
through would still be only words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from runner.exchange.look import date
from runner.model.calendar import calendar
from runner.model.kinds import Content
from runner.model.names import ABOUT
from runner.views.pages import render
from runner.views.redact import RunView
from runner.views.show.presentation import FINDING_HEADS, SCORE_HEADS, comments, present, resources
from runner.views.show.topics import Topics
from schemas.measures import meaning

if TYPE_CHECKING:
    from runner.model.task import Task

STYLE = "runner.views.show/run.css"
MAX_TOPICS = 2000
MAX_INSIDE = 8_000_000  # characters of debates or reports: what browsers still open at once
FIRST = ("why", "whose fault", "what next", "review")  # beside the outcome
FACTS = (
    *("called", "task", "dataset", "team", "software", "verdict", "warnings", "started"),
    *("limits", "source", "ir_metadata", "description", *ABOUT),
)


def page(
    view: RunView,
    contents: Content | None = None,
    wanted: Collection[int] | None = None,
    topics: Topics | None = None,
    hint: str = "",
    task: Task | None = None,
    *,
    piece: bool = False,
    metadata: str = "",
    by_topic: str | None = None,
) -> str:
    """One self-contained page of a run, with what is inside it where its audience may see that.

    Args:
        view: The run.
        contents: Its debates or reports. It says so when not all have space.
        wanted: The numbers of those that are to be on it; None for all of them.
        topics: Its scores by topic.
        hint: What helps after a failure.
        task: Gives the order of its measures, and what they tell.
        by_topic: What :func:`topics_part` made of its topics, where that was made before.
        metadata: Address of its ir-metadata.yml, where it can be had.
        piece: Only what stands in the page, for one that brings :data:`STYLE` itself.
    """
    shown = present(view)
    return render(
        f"runner.views.show/{'run_body' if piece else 'run'}.html",
        style=STYLE,
        run=shown,
        view=view,
        first=[(name, shown.facts[name]) for name in FIRST],
        rest=[
            (name, _dated(shown.facts[name]) if name == "started" else shown.facts[name]) for name in FACTS
        ],
        scores=list(_scores(view, task)),
        used=resources(view),
        again=list(_again(view, "run.txt" if task is None else task.output)),
        metadata=metadata,
        closed=_closed(view, task),
        comments=comments(view),
        heads=(SCORE_HEADS, FINDING_HEADS),
        by_topic=topics_part(topics) if by_topic is None else by_topic,
        hint=hint,
        sections=[] if contents is None else contents.sections(wanted, MAX_INSIDE),
    )


def topics_part(topics: Topics | None, plot: str = "") -> str:
    """The part of a page that has the scores by topic, beside the medians, and a ``plot`` of them (HTML); empty where there are none."""
    if topics is None:
        return ""
    shown = {"topics": topics, "all_topics": topics.order[:MAX_TOPICS], "plot": plot}
    return render("runner.views.show/by_topic.html", **shown)


def _scores(view: RunView, task: Task | None) -> Iterator[tuple[str, ...]]:
    """Rows of scores in the task's order: measure, mean, interval, topics answered, and what it tells in a line."""
    order = [] if task is None else list(task.measures)
    found = {row[0]: row for row in present(view).scores}
    for name in (*(one for one in order if one in found), *(one for one in found if one not in order)):
        _, computed, *figures = found[name]
        unit, says = meaning(task.kind, computed or name) if task else ("", "")
        says += task.truths_apart(name) if task else ""
        tells = f"{says} ({unit})" if says and unit else says or unit
        yield f"{computed} ({name})" if computed else name, *figures, tells


def _closed(view: RunView, task: Task | None) -> str:
    """That the scores of a run are closed to its audience, and until when; empty where they are not, or there are none."""
    if "scores" not in view["hidden"] or view["outcome"]["name"] != "scored":
        return ""
    opens = None if task is None else calendar(task).publish.get(view["dataset"])
    until = "the organiser opens them" if opens is None else date(f"{opens.at:%Y-%m-%dT%H:%M:%SZ}")
    return f"The scores on {view['dataset']} are closed until {until}."


def _dated(time: str) -> str:
    """A time as pages have it; a day, which is all that some are told, as it is."""
    return date(time) if "T" in time else time


def _again(view: RunView, output: str) -> Iterator[tuple[str, str]]:
    """Commands by which it can be looked into or done again, each with what it does: for organisers, and for its team at home."""
    if view.audience.kind == "team" and view["how"] == "executed":
        same = "; it is the same software where its image has the digest above" if view["image"] else ""
        yield (
            f"At home the software is tried on public data, with the same limits{same}:",
            f"runner try --team {view['team']} --software {view['software']}",
        )
    elif view.audience.kind == "team":
        yield (
            "At home a run file is checked by the same rules:",
            f"runner check {output} --task {view['task']}",
        )
    if view.audience.kind != "organiser":
        return
    if view["how"] == "executed" and view["outcome"]["verdict"] == "ok":
        yield (
            "The software is executed again, apart from what counts, and compared:",
            f"runner verify {view['run']}",
        )
    yield "Files, evaluation and ir-metadata.yml in a new folder:", f"runner export {view['run']} FOLDER"
