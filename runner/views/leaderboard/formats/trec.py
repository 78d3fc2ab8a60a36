"""A leaderboard as the files that tools around TREC read: one value of one measure for one run and one topic a line.

===============  ==================================================
``ir_measures``  ``run topic measure value``
``tot``          ``run measure topic value``
``trec_eval``    ``measure topic value``, of one run, with its ``runid``
``jsonl``        ``{"run_id", "topic_id", "measure", "value"}``
===============  ==================================================

The topic ``all`` is the value over all topics. None of them has a place for a remark: who judged, intervals and what is not
ranked stand in the other formats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from runner.model.errors import RunnerError
from runner.views.leaderboard.rows import LeaderboardTable, Row

ALL = "all"
Topics = Mapping[tuple[str, str], Mapping[str, float]]
"""(the submission of a row, measure) to values by topic."""


class Line(NamedTuple):
    """One value; ``run`` and ``topic`` hold neither blanks nor control characters."""

    run: str
    topic: str
    measure: str
    value: float


def to_trec(table: LeaderboardTable, form: str, topics: Topics | None = None) -> str:
    """The ranked rows in one of :data:`FORMATS`, the best first; scores at full precision.

    Runs are called by their tags if no two rows share one, else ``team.software``, or by their ids where two would have the same. Measures have the task's names for them; a measure without a
    value is left out. Raises E101 for ``trec_eval`` of several runs.
    """
    if form == "trec_eval" and len(table.rows) != 1:
        raise RunnerError(
            "E101",
            f"the format trec_eval holds one run, here are {len(table.rows):,}",
            fix="use ir_measures, tot or jsonl",
        )
    return "".join(FORMATS[form](_lines(table, topics or {})))


def _lines(table: LeaderboardTable, topics: Topics) -> Iterator[Line]:
    names = _names(table.rows)
    for row, name in zip(table.rows, names, strict=True):
        for column in table.columns:
            if column.id in row.values:
                for topic, value in topics.get((row.submission, column.id), {}).items():
                    yield Line(name, _word(topic), column.id, value)
                yield Line(name, ALL, column.id, row.values[column.id].mean)


def _names(rows: tuple[Row, ...]) -> list[str]:
    tags = [_word(row.tag) for row in rows]
    if len(set(tags)) == len(tags) and all(row.tag.strip() for row in rows):
        return tags
    names = [_word(f"{row.team}.{'+'.join(row.software.split(', '))}") for row in rows]
    return names if len(set(names)) == len(names) else [row.submission for row in rows]  # a.b.c may be two


def _trec_eval(lines: Iterable[Line]) -> Iterator[str]:
    for n, line in enumerate(lines):
        if not n:
            yield f"runid\t{ALL}\t{line.run}\n"
        yield f"{line.measure}\t{line.topic}\t{line.value!r}\n"


def _word(text: str) -> str:
    """A name between blanks: blanks become underscores, and nothing is empty."""
    return "_".join("".join(c if c.isprintable() else "?" for c in text).split()) or "_"


FORMATS: dict[str, Callable[[Iterable[Line]], Iterator[str]]] = {
    "ir_measures": lambda lines: (f"{r.run} {r.topic} {r.measure} {r.value!r}\n" for r in lines),
    "tot": lambda lines: (f"{r.run} {r.measure} {r.topic} {r.value!r}\n" for r in lines),
    "trec_eval": _trec_eval,
    "jsonl": lambda lines: (
        json.dumps(
            {"run_id": r.run, "topic_id": r.topic, "measure": r.measure, "value": r.value}, ensure_ascii=False
        )
        + "\n"
        for r in lines
    ),
}
