"""A collection out of ``ir_datasets``, which fetches what it does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runner.kinds import Say
from runner.kinds.adhoc.collection import Entry, Source, document, topic
from runner.kinds.adhoc.formats import Judgment, Record, Report
from runner.kinds.release import Wrong
from runner.model.errors import RunnerError, no_such
from schemas import show

PREFIX = "irds:"
_PARTS = {"docs": "documents", "queries": "topics", "qrels": "judgments"}


def from_irds(name: str, report: Report, say: Say, text_fields: Sequence[str] = ()) -> Source | None:
    """Return the collection that ``ir_datasets`` calls ``name``; None when ``report`` says what is wrong with it.

    Raises E101 when ir_datasets is not installed, E102 when it has no such dataset, and E407 when it cannot fetch it.
    """
    try:
        import ir_datasets
    except ImportError:
        fix = "install it: .venv/bin/pip install 'proctor-ir[irds]' (or ir-datasets)"
        raise RunnerError(
            "E101", "ir_datasets is not installed", why=f"{PREFIX} needs it.", fix=fix
        ) from None
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        fix = "name one that it lists, and of that the part with topics and judgments"
        raise no_such(
            "dataset", name, ir_datasets.registry, of="ir_datasets", why="It is none of its ids.", fix=fix
        ) from None
    for part, noun in _PARTS.items():
        if not getattr(dataset, f"has_{part}")():
            report.add(name, f"has no {noun}", "name a part of it that has")
    if report.count:
        return None
    hidden: set[str] = set()
    topics = list(
        _entries(
            dataset.queries_iter,
            "queries",
            name,
            lambda record: topic(record, hidden, text_fields),
            report,
            bool(text_fields),
        )
    )
    judged = [
        Judgment(
            name, f"{name}/qrels:{n}", q.query_id, getattr(q, "iteration", "0"), q.doc_id, int(q.relevance)
        )
        for n, q in enumerate(_fetched(dataset.qrels_iter, name), 1)
    ]
    if hidden:
        say(f"left out of the topics, as they could hold answers: {', '.join(sorted(hidden))}")
    return Source(lambda: _entries(dataset.docs_iter, "docs", name, document, report), topics, judged)


def _fetched(rows: Callable[[], Iterator[Any]], name: str) -> Iterator[Any]:
    try:
        yield from rows()
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors
        why, fix = (
            show(str(error.args[0] if error.args else error), 300),
            "see what ir_datasets says of this dataset and where its files go",
        )
        raise RunnerError("E407", f"{show(name)} cannot be fetched", why=why, fix=fix) from None


def _entries(
    rows: Callable[[], Iterator[Any]],
    part: str,
    name: str,
    read: Callable[[Record], Entry],
    report: Report,
    keeps_text: bool = False,
) -> Iterator[Entry]:
    for number, row in enumerate(_fetched(rows, name), 1):
        place = f"{name}/{part}:{number}"
        fields = {key: value for key, value in row._asdict().items() if _is_text(value)}
        try:
            entry = read(Record(place, fields))
            # ir_datasets knows best which text is the query, if the organiser names no field.
            yield entry if keeps_text else entry._replace(text=row.default_text())
        except Wrong as error:
            report.add(place, error.what, error.fix)


def _is_text(value: Any) -> bool:
    """Whether a value is plain: text, a number, or a list of these."""
    if isinstance(value, list | tuple):
        return all(_is_text(one) for one in value)
    return value is None or isinstance(value, str | int | float)
