"""A run as one HTML page: no script, nothing loaded from elsewhere, every text escaped.

The page's policy allows its own style sheet by its hash and nothing else, so that words of a participant that slipped
through would still be only words.
"""

from __future__ import annotations

from collections.abc import Collection

from runner.model.kinds import Content
from runner.model.names import ABOUT
from runner.views.pages import render
from runner.views.redact import RunView
from runner.views.show.presentation import FINDING_HEADS, SCORE_HEADS, comments, present
from runner.views.show.topics import Topics

STYLE = "runner.views.show/run.css"
MAX_TOPICS = 2000
MAX_INSIDE = 8_000_000  # characters of debates or reports: what browsers still open at once
FACTS = (
    *(
        "called",
        "task",
        "dataset",
        "team",
        "software",
        "outcome",
        "review",
        "why",
        "what next",
        "verdict",
        "warnings",
        "started",
    ),
    *("time", "memory", "size", "limits", "source", "ir_metadata", "description", *ABOUT),
)


def page(
    view: RunView,
    contents: Content | None = None,
    wanted: Collection[int] | None = None,
    topics: Topics | None = None,
    hint: str = "",
    *,
    piece: bool = False,
) -> str:
    """One self-contained page of a run, with what is inside it where its audience may see that.

    Args:
        view: The run.
        contents: Its debates or reports. It says so when not all have space.
        wanted: The numbers of those that are to be on it; None for all of them.
        topics: Its scores by topic.
        hint: What helps after a failure.
        piece: Only what stands in the page, for one that brings :data:`STYLE` itself.
    """
    return render(
        f"runner.views.show/{'run_body' if piece else 'run'}.html",
        style=STYLE,
        run=present(view),
        view=view,
        facts=FACTS,
        comments=comments(view),
        heads=(SCORE_HEADS, FINDING_HEADS),
        topics=topics,
        all_topics=[] if topics is None else topics.order[:MAX_TOPICS],
        hint=hint,
        sections=[] if contents is None else contents.sections(wanted, MAX_INSIDE),
    )
