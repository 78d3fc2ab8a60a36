"""Two runs beside each other as one HTML page: no script, nothing loaded from elsewhere, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from runner.exchange.look.sides import rows
from runner.model.comparing import Compared, sorted_pairs
from runner.model.kinds import Content
from runner.views.audience import Audience, escape
from runner.views.comparison.topics import Comparison, resamples_of
from runner.views.pages import macros, render
from runner.views.redact import RunView
from runner.views.show.contents import Contents, inside
from runner.views.show.page import STYLE
from runner.views.show.topics import measure_names

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail

MAX_TOPICS = 2000
MAX_TEXT = 500  # characters of a topic
MAX_INSIDE = 6_000_000  # characters of debates, reports or records


@dataclass(frozen=True)
class Within:
    """What a page has next to figures: ``texts`` of topics, and what is ``inside`` both runs; empty or None if that is missing or the
    audience may not see it."""

    texts: Mapping[str, str] = field(default_factory=dict)
    inside: tuple[Contents[Any] | None, Contents[Any] | None] = (None, None)


def within(both: Sequence[tuple[RunDetail, Dataset]], task: Task, audience: Audience) -> Within:
    """What ``audience`` may see of two runs beside their figures."""
    dataset = both[0][1]
    may = dataset.visibility == "public" or audience.kind == "organiser"
    texts = _texts(dataset) if may else {}
    contents = [inside(found, task, audience, of).contents for found, of in both]
    shown = [one if isinstance(one, Contents) and one.pieces else None for one in contents]
    return Within(texts, (shown[0], shown[1]))


def page(made: Comparison, task: Task, audience: Audience, beside: Within) -> str:
    """The page of a comparison.

    Args:
        made: Both runs on each measure.
        task: Their task.
        audience: For whom the page is.
        beside: What it has beside figures.
    """
    ranked = next((one for one in made.measures if one.pairs), None)
    shown = [one for one in made.measures if one.id in made.shown] or list(made.measures)
    return render(
        "runner.views.comparison/comparison.html",
        style=STYLE,
        made=made,
        task=task.id,
        audience=audience,
        names=measure_names(task, [one.id for one in made.measures]),
        measures=[*shown, *(one for one in made.measures if one not in shown)],
        ranked=ranked,
        pairs=[] if ranked is None else sorted_pairs(ranked)[:MAX_TOPICS],
        widest=max((abs(one.difference) for one in ranked.pairs), default=0.0) if ranked else 0.0,
        texts=beside.texts,
        inside=list(_beside(*beside.inside, ranked)),
        noun=beside.inside[0].key if beside.inside[0] else "",
    )


def _beside(
    first: Contents[Any] | None, second: Contents[Any] | None, ranked: Compared | None
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What both runs have on a topic: its name and both pieces of a page in rows, those that differ most first."""
    if first is None or second is None:
        return
    theirs = {one.name: one for one in second.pieces or ()}
    apart = {} if ranked is None else {pair.topic: abs(pair.difference) for pair in ranked.pairs}
    left = MAX_INSIDE
    for one in sorted(first.pieces or (), key=lambda one: -apart.get(one.name, 0.0)):
        if one.name not in theirs:
            continue
        both = (
            str(macros(first.template).piece(first, one)),
            str(macros(second.template).piece(second, theirs[one.name])),
        )
        left -= sum(map(len, both))
        if left < 0:
            return
        yield one.name, rows(*both)


def published(
    found: RunDetail, view: RunView, dataset: Dataset, contents: Content | None
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """What a server has of a run for whoever compares it: what is inside it in its order, names and pieces of a page; and the
    texts of topics, where they are public; and its values in the same resamples as others'. None where it has no scores, or the audience of
    ``view`` may not see those by topic."""
    if not view["scores"] or "per-topic scores" in view["hidden"]:
        return None
    pieces = [*_pieces(contents)] if isinstance(contents, Contents) else []
    texts = _texts(dataset) if dataset.visibility == "public" else {}
    noun = contents.key if contents is not None and pieces else ""
    drawn = resamples_of(found, view.audience)
    return {"noun": noun, "pieces": pieces, "resamples": drawn}, texts


def _pieces(contents: Contents[Any]) -> Iterator[tuple[str, str]]:
    """What is inside a run: names and pieces of a page, as far as half of :data:`MAX_INSIDE` reaches."""
    left = MAX_INSIDE // 2
    for one in contents.pieces or ():
        made = str(macros(contents.template).piece(contents, one))
        left -= len(made)
        if left < 0:
            return
        yield one.name, made


def _texts(dataset: Dataset) -> dict[str, str]:
    """What the topics of a dataset say, escaped, each in one line."""
    from runner.tasks.views import topic_texts

    path = dataset.inputs / dataset.topics if dataset.topics else None
    found = topic_texts(path) if path is not None and path.is_file() else {}
    return {escape(topic, 200): escape(text, MAX_TEXT) for topic, text in islice(found.items(), MAX_TOPICS)}
