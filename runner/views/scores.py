"""What an audience sees of scores: over which topics, where these are split in a public and a private part, and how many decimals.

Boards have the decimals that the task says (``precision``) for everybody, so that they rank the same for everybody; of single
runs the organiser sees all.

Until the scores are published they are shown over the public topics, from then on over the private ones, which decide. The
organiser sees the deciding ones, too, and may ask for any part; so may everybody for what is published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError, no_such
from runner.model.run import rounded
from runner.records.split import PARTS, WHOLE, Part, Split
from runner.records.store import queries
from runner.records.store.results import measures_of, over
from runner.views.audience import ORGANISER, Audience, not_for

if TYPE_CHECKING:
    from runner.model.run import MeasureValue, Run
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail


def parts_open(audience: Audience, published: bool) -> tuple[Part, ...]:
    """The parts of the topics of a split dataset over which ``audience`` may see scores, the one that is meant first."""
    return ("private", "public", "all") if published or audience.kind == "organiser" else ("public",)


def split_of(task: Task, key: str, parts: Mapping[str, Part]) -> Split:
    """The split of a task's topics by its ``key``, of which ``parts`` are looked at. Without a key nothing is split."""
    shares = {d.id: d.public_topics for d in task.datasets.values() if d.public_topics is not None}
    return Split(key, shares, {name: part for name, part in parts.items() if name in shares and key})


def board_split(
    store: Store, task: Task, datasets: Collection[str], audience: Audience, wanted: str | None = None
) -> Split:
    """Over which topics a board of ``datasets`` is for ``audience``.

    Args:
        store: The open store.
        task: The task.
        datasets: Those of the board.
        audience: Who looks.
        wanted: A part of :data:`runner.records.split.PARTS`; None: the one that is meant for this audience now.

    Raises:
        RunnerError: E101 for another part, or where no topics are split; E103 when the audience may not see it (yet).
    """
    split = [name for name in datasets if name in task.datasets and task.datasets[name].public_topics]
    if wanted is not None and (wanted not in PARTS or not split):
        if wanted in PARTS:
            what, fix = "no topics are split here", "leave --topics away"
            raise RunnerError("E101", what, why="Its datasets have no public_topics.", fix=fix)
        raise no_such("part of the topics", wanted, PARTS, fix=f"use {', '.join(PARTS)}", code="E101")
    if not split:
        return Split()
    with store.read() as connection:
        key, published = queries.key_in(connection, task.id), queries.published_in(connection, task.id)
    if not key and audience.kind != "organiser":
        raise not_for(audience, f"scores on {', '.join(split)}: their topics are not split yet")
    parts = dict[str, Part]()
    for name in split:
        may = parts_open(audience, name in published)
        part = next((one for one in may if wanted in (None, one)), None)
        if part is None:
            raise not_for(audience, f"scores over the {wanted} topics of {name} (they are not published)")
        parts[name] = part
    return split_of(task, key, parts)


def any_split(store: Store, task: Task, datasets: Collection[str], wanted: str | None) -> Split:
    """As :func:`board_split` for the organiser; where no topics are split, over all of them whatever is wanted."""
    has = any(task.datasets[name].public_topics is not None for name in datasets if name in task.datasets)
    return board_split(store, task, datasets, ORGANISER, wanted if has else None)


def shown_values(
    store: Store, task: Task, runs: Iterable[Run], split: Split = WHOLE
) -> dict[str, dict[str, MeasureValue]]:
    """The values of runs by measure as boards show and rank them."""
    found = measures_of(store, task.id, runs, split)
    return {
        run: {
            name: value.rounded(task.measures[name].precision) if name in task.measures else value
            for name, value in one.items()
        }
        for run, one in found.items()
    }


def run_topics(found: RunDetail, audience: Audience) -> Mapping[str, Mapping[str, float]]:
    """The scores of a run by measure and topic, for who may see them."""
    return found.topics if audience.kind == "organiser" else topics_rounded(found.topics, found.decimals)


def topics_rounded(
    scores: Mapping[str, Mapping[str, float]], decimals: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    """Scores by measure and topic with so many decimals."""
    return {
        name: {topic: rounded(value, decimals.get(name)) for topic, value in one.items()}
        for name, one in scores.items()
    }


def run_part(found: RunDetail, audience: Audience, dataset: Dataset) -> Part:
    """Over which of the topics ``audience`` sees the scores of a run: all for the organiser."""
    if dataset.public_topics is None or audience.kind == "organiser":
        return "all"
    return parts_open(audience, found.published)[0]


def run_scores(found: RunDetail, audience: Audience, dataset: Dataset) -> Mapping[str, MeasureValue]:
    """The aggregates of a run as ``audience`` may see them, where it may see any."""
    if audience.kind == "organiser":
        return found.measures
    part, seen = run_part(found, audience, dataset), found.measures
    if part != "all":
        if not found.key or dataset.public_topics is None:
            return {}
        split = Split(found.key, {dataset.id: dataset.public_topics}, {dataset.id: part})
        seen = over(split, dataset.id, found.measures, found.topics, found.unanswered)
    return {name: value.rounded(found.decimals.get(name)) for name, value in seen.items()}


def run_notes(found: RunDetail, audience: Audience, dataset: Dataset) -> Iterator[str]:
    """What the scores of a run are over, where the topics of its dataset are split."""
    if dataset.public_topics is not None:
        yield says(dataset.id, dataset.public_topics, run_part(found, audience, dataset))


def says(dataset: str, share: float, part: Part) -> str:
    """What scores on a dataset whose topics are split are over, in a sentence."""
    if part == "public":
        return f"Scores on {dataset} are over its public topics only, about {share:.0%}; once they are published, over the others."
    if part == "private":
        return f"Scores on {dataset} are over its private topics; until they are published, over the public ones, about {share:.0%}."
    return f"Scores on {dataset} are over all its topics; about {share:.0%} of them are public."


def notes(split: Split) -> Iterator[str]:
    """What the scores of a board are over, in a sentence for each dataset whose topics are split."""
    for name, part in split.parts.items():
        yield says(name, split.shares[name], part)
