"""Leaderboards as files: one value of one measure for one run and one topic a line, in the formats of the field.

========================  ====================================================
``ir_measures``           run topic measure value
``tot``                   run measure topic value
``trec_eval``             measure topic value (the run: its runid row, else the file's name)
``rag4reports``           topic run measure value
``ranking``               topic Q0 run rank value measure
``jsonl``                 {"run_id", "topic_id", "measure", "value"}
========================  ====================================================

Columns stand between blanks or, if a line has tabs, between tabs. The topic ``all`` is a run's value over all topics. Files
may be gzipped. A header is passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, show
from evaluator.formats.files import Source
from evaluator.formats.lines import BROKEN, numbered, parse_or_report, reporting
from evaluator.formats.mistaken import no_columns, no_json_lines
from schemas.jsonl import kind_of

ALL = "all"
MAX_LINE = 1 << 16
MAX_ROWS = 1_000_000
MAX_NAME = 500
LARGEST = 1e100  # nothing that is measured is larger, and sums stay finite
ORDER = {  # format -> its columns
    "ir_measures": "run topic measure value",
    "tot": "run measure topic value",
    "trec_eval": "measure topic value",
    "rag4reports": "topic run measure value",
    "ranking": "topic Q0 run rank value measure",
}
FORMATS = (*ORDER, "jsonl")


class Row(NamedTuple):
    """One value. A ``value`` that is no number is text (trec_eval's runid)."""

    run: str
    topic: str
    measure: str
    value: float | str


class Board:
    """A leaderboard: ``values[measure][run][topic]``, and ``runs`` in the order in which they came."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, dict[str, float | str]]] = {}
        self.runs: dict[str, None] = {}

    @property
    def measures(self) -> list[str]:
        """The measures that have a number somewhere, in their order."""
        return [m for m, runs in self.values.items() if any(map(_numbers, runs.values()))]

    def add(self, row: Row) -> bool:
        """Take in a value; False if there is one already."""
        topics = self.values.setdefault(row.measure, {}).setdefault(row.run, {})
        if row.topic in topics:
            return False
        topics[sys.intern(row.topic)] = row.value
        self.runs[row.run] = None
        return True

    def rows(self) -> Iterator[Row]:
        """All values, by measure and run."""
        for measure, runs in self.values.items():
            for run, topics in runs.items():
                for topic, value in topics.items():
                    yield Row(run, topic, measure, value)

    def overall(self, measure: str, *, recompute: bool = False) -> tuple[dict[str, float], list[str]]:
        """Every run's value over all topics, and the runs for which it had to be computed.

        That is the value of the topic ``all``; where there is none (or always, with ``recompute``) the mean over all
        topics that any run has for this measure, a missing one counting 0. Runs without any number are left out.
        """
        runs = {run: _numbers(topics) for run, topics in self.values.get(measure, {}).items()}
        topics = {topic for numbers in runs.values() for topic in numbers} - {ALL}
        found: dict[str, float] = {}
        computed = []
        for run, numbers in runs.items():
            if ALL in numbers and not (recompute and topics):
                found[run] = numbers[ALL]
            elif numbers and topics:
                found[run] = fsum(numbers.get(topic, 0.0) for topic in topics) / len(topics)
                computed.append(run)
        return found, computed


def _numbers(topics: dict[str, float | str]) -> dict[str, float]:
    return {topic: value for topic, value in topics.items() if not isinstance(value, str)}


def read_board(
    path: Path, form: str, log: Log, *, max_bytes: int | None = None, into: Board | None = None
) -> Board:
    """Read one leaderboard; report everything wrong to ``log``. Never raises for what a participant can write.

    Values that are no numbers stay text under trec_eval and jsonl, where the format has them, and are F243 elsewhere.
    """
    board = into if into is not None else Board()
    rows: list[Row] = []
    with reporting(log, max_bytes), Source(path, max_bytes) as source:
        said = no_json_lines(path) if form == "jsonl" else no_columns(path, ORDER[form])
        if said:
            log.add("F242", 1, said)
            if log.invalid:
                return board
        for number, line in numbered(source.read, log, MAX_LINE, too_long="F009"):
            row = _row(line, number, form, log)
            if row is None:
                continue
            rows.append(row)
            if len(rows) > MAX_ROWS:
                log.add("F027", number, f"there are more than {MAX_ROWS:,} values")
                break
    name = _own_name(rows, path) if form == "trec_eval" else ""
    for row in rows:
        row = row._replace(run=name) if form == "trec_eval" else row
        if not board.add(row):
            message = ""
            if log.wants("F244"):
                message = f"run {show(row.run)} has {show(row.measure)} for {show(row.topic)} twice"
            log.add("F244", None, message)
    if not rows and not log.invalid:
        log.add("F001", None, "the file holds no value")
    log.answered = len(board.runs)
    return board


def read_boards(paths: Sequence[Path], form: str) -> Board:
    """Read an organiser's leaderboard from one or several files or folders. Raises :class:`EvaluatorError`."""
    files = [
        f
        for path in paths
        for f in (sorted(p for p in path.iterdir() if p.is_file() and p.name[0] != ".") if path.is_dir() else [path])
    ]  # fmt: skip
    board = Board()
    for path in files:
        log = Log(str(path))
        read_board(path, form, log, into=board)
        if log.invalid:
            first = next(f for f in log.sorted() if f.severity == "error")
            place = first.file if first.line is None else f"{first.file}:{first.line}"
            raise EvaluatorError(
                f"the leaderboard {first.file} cannot be used",
                f"{place}: {first.message}",
                f"write it as {form}: {ORDER.get(form, 'one object a line')}",
            )
    if not board.runs:
        raise EvaluatorError("there is no leaderboard", "no file was found", usage=True)
    return board


def _own_name(rows: list[Row], path: Path) -> str:
    """The run of a trec_eval file: what its runid row says, else the file's name."""
    for row in rows:
        if row.measure == "runid" and isinstance(row.value, str):
            return row.value
    return path.name


def _row(line: bytes, number: int, form: str, log: Log) -> Row | None:
    if form == "jsonl":
        return _object(line, number, log)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        log.add("F005", number, f"the line is not UTF-8: {show(line)}")
        return None
    parts = [p.strip() for p in text.split("\t")] if "\t" in text.strip() else text.split()
    names = ORDER[form].split()
    if len(parts) != len(names):
        count = "one column" if len(parts) == 1 else f"{len(parts)} columns"
        log.add("F242", number, f"the line has {count} instead of {ORDER[form]}")
        return None
    columns = {"run": "", **dict(zip(names, parts, strict=True))}
    if number == 1 and columns["value"] == "value":
        return None  # the header
    run, topic, measure, value = (columns[name] for name in Row._fields)
    return _checked(run, topic, measure, value, number, form, log)


def _object(line: bytes, number: int, log: Log) -> Row | None:
    data = parse_or_report(line, number, log)
    if data is BROKEN:
        return None
    if not isinstance(data, dict):
        log.add("F242", number, f"there is {kind_of(data)} instead of an object")
        return None
    names = []
    for key in ("run_id", "topic_id", "measure"):
        value = data.get(key)
        if not isinstance(value, str) and not (isinstance(value, int) and not isinstance(value, bool)):
            there = f"{key} is {kind_of(value)}" if key in data else f"there is no {key}"
            log.add("F242", number, there)
            return None
        names.append(value if isinstance(value, str) else "too large" if abs(value) > 10**30 else str(value))
    if "value" not in data:
        log.add("F242", number, "there is no value")
        return None
    return _checked(names[0], names[1], names[2], data["value"], number, "jsonl", log)


def _checked(run: str, topic: str, measure: str, value: Any, number: int, form: str, log: Log) -> Row | None:
    for name, what in ((run, "run"), (topic, "topic"), (measure, "measure")):
        if (not name and not (form == "trec_eval" and what == "run")) or len(name) > MAX_NAME:
            length = f"has more than {MAX_NAME} characters" if name else "is empty"
            log.add("F242", number, f"the name of the {what} {length}")
            return None
    # Only these formats have measures whose values are text.
    if isinstance(value, str) and (form == "jsonl" or (form == "trec_eval" and measure == "runid")):
        return Row(run, topic, measure, value[:MAX_NAME])
    found = _number(value)
    if found is None:
        there = show(value) if isinstance(value, str) else kind_of(value)
        log.add("F243", number, f"the value of {show(measure)} is {there}")
        return None
    return Row(run, topic, measure, found)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and (len(value) > 100 or "_" in value):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if abs(found) <= LARGEST else None  # False for NaN and infinities


def write_board(board: Board, form: str) -> Iterator[str]:
    """The lines of a board in a format, numbers in full. Raises :class:`EvaluatorError` for what the format cannot hold.

    trec_eval holds one run; formats with columns hold no text values but runid. A name with blanks makes a line with tabs.
    """
    import json

    if form == "trec_eval" and len(board.runs) > 1:
        raise EvaluatorError(
            "a file of trec_eval holds one run", f"this leaderboard has {len(board.runs)}", usage=True
        )
    ranks = _ranks(board) if form == "ranking" else {}
    for row in board.rows():
        if form == "jsonl":
            yield json.dumps(as_object(*row), ensure_ascii=False)
            continue
        if isinstance(row.value, str) and form != "trec_eval":
            continue
        fields = row._asdict() | {"value": row.value if isinstance(row.value, str) else repr(row.value)}
        fields |= {"Q0": "Q0", "rank": str(ranks.get((row.measure, row.topic, row.run)))}
        columns = [fields[name] for name in ORDER[form].split()]
        blank = any(not c or len(c.split()) > 1 or c != c.strip() for c in columns)
        if any("\t" in c or "\n" in c or "\r" in c for c in columns):
            raise EvaluatorError("a name holds a tab or a line end", "no format with columns can hold it")
        yield ("\t" if blank or form == "trec_eval" else " ").join(columns)


def as_object(run: str, topic: str, measure: str, value: float | str) -> dict[str, float | str]:
    """A value as an object of the format ``jsonl``."""
    return {"run_id": run, "topic_id": topic, "measure": measure, "value": value}


def _ranks(board: Board) -> dict[tuple[str, str, str], int]:
    """The place of every run by measure and topic, the largest value first, equal ones by name."""
    lists: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for row in board.rows():
        if not isinstance(row.value, str):
            lists.setdefault((row.measure, row.topic), []).append((-row.value, row.run))
    return {(m, t, run): n for (m, t), runs in lists.items() for n, (_, run) in enumerate(sorted(runs), 1)}
