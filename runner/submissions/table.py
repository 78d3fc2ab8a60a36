"""One table of many teams' run files (CSV or TSV), read strictly, with all that is wrong said at once by its line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import schemas
from runner.model.errors import RunnerError, disk_error, no_such
from runner.model.names import ABOUT, DISPLAYED, SAID, check_name, text_problem
from runner.model.problems import Problems
from runner.model.task import Task
from runner.submissions.check import check_asked, check_fit, check_paths
from runner.submissions.definition import SubmissionFile, Upload
from runner.submissions.run_files import cell_of
from schemas.documents import Node
from schemas.file_sorts import find_wrong_sort

NEEDED = ("team", "run", "file")
COLUMNS = (*NEEDED, "dataset", "scenario", "method", "description", *DISPLAYED, *ABOUT)
METHODS = ("automatic", "manual")
MAX_BYTES = 4 * 1024 * 1024
MAX_ROWS = 10_000
_SEPARATOR_LINE = re.compile(r"""["']?sep=([,;\t|])["']?[ ,;\t]*\r?\n""", re.IGNORECASE)  # Excel's
MAX_DESCRIPTION = 4000  # characters, as in submission.yaml


@dataclass
class RunTable:
    """A table that was read: ``problems`` of its lines, and its good lines as ``submissions``, in their order.

    ``lines`` has the line of each submission, the first one where several lines are runs of one software.
    """

    problems: Problems
    submissions: list[SubmissionFile] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def refused(self, number: int, what: str, fix: str = "") -> None:
        """Note a problem of the submission ``number`` (from 0)."""
        where = f"{schemas.show(self.problems.doc.name, 200)}:{self.lines[number]}"
        self.problems.take([schemas.Problem(where, what, fix, line=self.lines[number])])

    def refuse(self) -> None:
        """Raise E214 with every problem, if there are any."""
        found = self.problems.in_order()
        if found:
            count = "one problem" if len(found) == 1 else f"{len(found)} problems"
            what = f"the table {schemas.show(self.problems.doc.name, 200)} cannot be taken"
            why, fix = f"{count} found; nothing was registered.", "correct what is listed, and give it again"
            raise RunnerError("E214", what, why=why, fix=fix, problems=found)


def read_table(path: Path, task: Task, scratch: Path) -> RunTable:
    """The run files for ``task`` that a table names; paths are relative to its folder, which they must not leave.

    Args:
        path: the table. Its first line has the names of :data:`COLUMNS`, in any order; comma, semicolon or tab between.
        task: the task that all lines are for.
        scratch: an empty folder, for the definitions (submission.yaml) that are made from the lines.

    Raises:
        RunnerError: E102 when there is no such file, E214 when it is no table at all. What is wrong with lines is in
            the result.
    """
    text = _text(path)
    rows: dict[int, dict[str, str]] = {}
    table = RunTable(Problems(schemas.Document(path.name, lines=Node(1)), "E214"))
    for line, cells in _rows(text, table):
        if cells.get("file"):
            cells["file"] = _posix_path(path.parent, cells["file"])
        rows[line] = cells
    numbers = list(rows)
    table.problems.doc.lines = Node(1, {"run": Node(1, {n: Node(line) for n, line in enumerate(numbers)})})
    good = [_good(n, cells, table.problems) for n, cells in enumerate(rows.values())]
    data = {"run": good}
    check_paths(path.parent, data, table.problems, of="table")
    check_fit(data, task, table.problems)
    for n, cells in enumerate(rows.values()):
        check_asked(cells, task, table.problems, ("run", n))
    _check_teams([c if good[n] else {} for n, c in enumerate(rows.values())], numbers, table.problems)
    wrong = {problem.line for problem in table.problems.found}
    softwares: dict[str, list[int]] = {}
    for n, entry in enumerate(good):
        if entry is not None and numbers[n] not in wrong:
            softwares.setdefault(entry["name"], []).append(n)
    for name, places in softwares.items():
        if _agree(places, list(rows.values()), numbers, table.problems):
            entries = [good[n] for n in places]
            table.submissions.append(
                _submission(
                    path.parent,
                    scratch / str(len(table.submissions)),
                    name,
                    entries,
                    rows[numbers[places[0]]],
                    task,
                )
            )
            table.lines.append(numbers[places[0]])
    return table


def _text(path: Path) -> str:
    """The text of a table. Raises E102 or E214."""
    if not path.is_file():
        raise no_such("table", path, fix="name a CSV file", limit=1000)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise disk_error("the table cannot be read", error, path) from error

    def refused(why: str, fix: str, at: int | None = None) -> RunnerError:
        line = "" if at is None else f":{1 + raw[:at].count(10)}"
        return RunnerError("E214", f"{schemas.show(path.name, 200)}{line} is not a table", why=why, fix=fix)

    save = "save it as CSV in UTF-8"
    sort = find_wrong_sort(raw)
    if sort is not None:
        raise refused(f"It is {sort.name}.", sort.fix)
    if len(raw) > MAX_BYTES:
        raise refused(f"It is larger than {MAX_BYTES // 2**20} MiB.", "split it")
    if (at := raw.find(b"\0")) >= 0:
        raise refused("It holds a NUL byte.", save, at)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused("It is not in UTF-8.", save, error.start) from None


def _rows(text: str, table: RunTable) -> Iterator[tuple[int, dict[str, str]]]:
    """Each line that is not empty: its number, and its cells by column; what has no place in the header is a problem."""
    reader, skipped = _reader(text)
    name = schemas.show(table.problems.doc.name, 200)

    def problem(line: int, what: str, fix: str = "") -> None:
        table.problems.take([schemas.Problem(f"{name}:{line}", what, fix, line=line)])

    columns: list[str] | None = None
    count, start = 0, 1 + skipped
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1 + skipped
            if columns is None:
                columns = _header(cells, partial(problem, line))
                if not set(NEEDED) <= set(columns):
                    return
            elif any(cell.strip() for cell in cells):
                if any(cell.strip() for cell in cells[len(columns) :]):
                    what = f"has {len(cells)} cells, and the header {len(columns)}"
                    problem(line, what, "put text that holds a comma in quotes")
                count += 1
                if count > MAX_ROWS:
                    problem(line, f"there are more than {MAX_ROWS} run files", "split the table")
                    return
                yield line, {c: cell.strip() for c, cell in zip(columns, cells, strict=False) if c}
    except csv.Error as error:
        problem(start, f"cannot be read as CSV: {error}", "is a quotation mark missing?")
    if not count:
        problem(1, "names no run file", f"add lines under the header {','.join(NEEDED)}")


def _reader(text: str) -> tuple[Any, int]:
    """Return a reader of the cells of each line, and the number of lines before the header (Excel's ``sep=;``)."""
    separator = _SEPARATOR_LINE.match(text)
    if separator is not None:
        body = io.StringIO(text[separator.end() :], newline="")
        return csv.reader(body, delimiter=separator[1], strict=True), 1
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 0


def _posix_path(folder: Path, file: str) -> str:
    """Return a path as Windows writes it with slashes, unless a file has the name as it is."""
    if "\\" not in file:
        return file
    with suppress(OSError, ValueError):  # the name is too long, or holds a null byte
        if (folder / file).is_file():
            return file
    return file.replace("\\", "/")


def _header(cells: Sequence[str], problem: Callable[[str, str], None]) -> list[str]:
    """The columns as they are called; empty for those that are not known, which are problems, as are missing ones."""
    found: list[str] = []
    names = [cell.strip().lower() for cell in cells]
    while names and not names[-1]:  # spreadsheets write empty cells at the end
        names.pop()
    for name in names:
        if name and name in found:
            problem(f'the column "{schemas.show(name)}" is there twice', "remove one")
        elif name and name not in COLUMNS:
            near = schemas.closest(name, [c for c in COLUMNS if c not in found]).strip()
            problem(f'unknown column "{schemas.show(name)}"', near or f"known: {', '.join(COLUMNS)}")
        found.append(name if name in COLUMNS and name not in found else "")
    for name in NEEDED:
        if name not in found:
            problem(
                f'the column "{name}" is missing', f"the first line has the columns: {', '.join(COLUMNS)}"
            )
    return found


def _good(number: int, cells: Mapping[str, str], problems: Problems) -> dict[str, str] | None:
    """A line as an entry of ``run`` in a submission.yaml, named ``team/software``; None when it cannot be one."""
    before = len(problems.found)
    at = ("run", number)
    for column, cell in cells.items():
        text = " ".join(cell.splitlines()) if column == "description" else cell
        if not text.isprintable():
            problems.add(
                at, f'{column} holds characters that do not print: "{schemas.show(text)}"', "remove them"
            )
    for column in (*DISPLAYED, *ABOUT):
        if cells.get(column) and (wrong := text_problem(column, cells[column])):
            problems.add(at, f"{column} {wrong}", SAID[column])
    for noun, column in (("team", "team"), ("software", "run")):
        try:
            check_name(noun, cells.get(column, ""))
        except RunnerError as error:
            problems.add(at, f"{column} {error.what}", error.fix)
    if not cells.get("file"):
        problems.add(at, "no file is named", "name the run file, relative to the table's folder")
    method = cells.get("method") or METHODS[0]
    problems.known(at, "method", method, METHODS)
    if len(cells.get("description", "")) > MAX_DESCRIPTION:
        problems.add(at, f"the description has more than {MAX_DESCRIPTION} characters", "shorten it")
    if len(problems.found) > before:
        return None
    entry = {key: cells[key] for key in ("file", "dataset", "scenario") if cells.get(key)}
    return {**entry, "name": f"{cells['team']}/{cells['run']}"}


def _check_teams(rows: Sequence[Mapping[str, str]], lines: Sequence[int], problems: Problems) -> None:
    """Note lines that show a team under another name than the first line that gives it one."""
    first: dict[str, int] = {}
    for n, cells in enumerate(rows):
        if cells.get("team_display_name"):
            there = first.setdefault(cells["team"], n)
            if rows[there]["team_display_name"] != cells["team_display_name"]:
                what = f'another team_display_name of "{cells["team"]}" than in line {lines[there]}'
                problems.add(("run", n), what, "say the same of all runs of one team")


def _agree(
    places: Sequence[int], rows: Sequence[Mapping[str, str]], lines: Sequence[int], problems: Problems
) -> bool:
    """Whether the lines of one software say the same of it; what does not is a problem."""
    first = rows[places[0]]
    good = True
    for n in places[1:]:
        for column in ("method", "description", *DISPLAYED, *ABOUT):
            if rows[n].get(column, "") != first.get(column, ""):
                what = f'another {column} of "{first["team"]}/{first["run"]}" than in line {lines[places[0]]}'
                problems.add(("run", n), what, "say the same of all runs of one software")
                good = False
    return good


def _submission(
    folder: Path,
    home: Path,
    name: str,
    entries: Sequence[Any],
    cells: Mapping[str, str],
    task: Task,
) -> SubmissionFile:
    """The submission of one software, with a submission.yaml of its own in ``home``."""
    team, _, software = name.partition("/")
    uploads = tuple(Upload(folder / e["file"], *cell_of({}, e, task)) for e in entries)
    said = {
        "method": cells.get("method") or METHODS[0],
        "description": " ".join(cells.get("description", "").splitlines()),
        **{column: cells[column] for column in (*DISPLAYED, *ABOUT) if cells.get(column)},
    }
    files = [{"file": u.path.name, "dataset": u.dataset, "scenario": u.scenario} for u in uploads]
    definition = {"task": task.id, **said, "run": files}
    home.mkdir(parents=True)
    (home / "submission.yaml").write_text(json.dumps(definition, indent=1) + "\n", "utf-8")
    return SubmissionFile(
        team=team,
        software=software,
        task=task.id,
        folder=home,
        scenarios=tuple(dict.fromkeys(u.scenario for u in uploads)),
        run=uploads,
        tag=software,
        definition=definition,
        **said,  # type: ignore[arg-type]  # the method was checked to be one of METHODS
    )
