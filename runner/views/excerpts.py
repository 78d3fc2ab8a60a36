"""Excerpts from the log of a blinded run that the organiser gives to its team: without hidden text, within a budget of bytes.

Whatever a software wrote can carry hidden inputs out, also in a form that nobody recognises. So three things bound an excerpt:
the organiser reads it and gives single lines; what occurs in the hidden files is masked; and all excerpts of a team on a dataset
together have at most so many bytes as the task's ``log_excerpts`` says, 8 bits each.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from runner.model.errors import RunnerError, no_such
from runner.records.store.decisions import excerpt_bytes
from runner.tasks.data_files import folder_files
from runner.views.audience import ORGANISER
from runner.views.listing import looked_up
from runner.views.logs import log_lines

if TYPE_CHECKING:
    from runner.model.run import Run
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail

MASK = "[hidden]"
WORDS = 3  # in a row that are hidden where they stand so in any hidden file
LETTERS = (
    4  # of a word that is hidden alone where it stands in topics or truths; one with a digit may be shorter
)
AROUND = 1000  # characters of the lines before and after an excerpt with which it is read
MOST = 32 * 1024  # characters of one excerpt, as it has to stand in an event
STREAMS = ("stdout", "stderr")
_WORD = re.compile(r"[^\W_]+")
_COLOUR = r"\\x1b\[[0-9;?]*[A-Za-z]"
_UNPRINTED = re.compile(rf"{_COLOUR}|\\(?:x[0-9a-f]{{2}}|u[0-9a-f]{{4}}|U[0-9a-f]{{8}})")  # as logs are shown
# Escapes as programs write them: bytes, characters by their numbers, signs such as \n.
_WRITTEN = re.compile(
    rf"{_COLOUR}|((?:\\x[0-9a-fA-F]{{2}})+)|\\u([0-9a-fA-F]{{4}})|\\U([0-9a-fA-F]{{8}})|\\[abefnrtv]|\\(?=\W)"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_PIECE = 1 << 20  # characters of a line that are looked at together
_OPENERS: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Excerpt:
    """Lines ``first`` to ``last`` of a log as its team gets them; ``masked`` says how many places were hidden."""

    stream: str
    first: int
    last: int
    text: str
    masked: int

    @property
    def size(self) -> int:
        """Its bytes in UTF-8, which the budget counts."""
        return len(self.text.encode())

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text in UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """For the event."""
        return {**vars(self), "bytes": self.size, "sha256": self.sha256}


def excerpt(found: RunDetail, task: Task, dataset: Dataset, stream: str, lines: str) -> Excerpt:
    """The lines ``A-B`` (or ``A``, from 1) of a log, escaped as ``runner logs`` prints them, without what is in hidden files.

    Raises:
        RunnerError: E101 for another stream or range, E102 for lines that the log does not have, E402 where the hidden files,
            with which it must be compared, are not here.
    """
    if stream not in STREAMS:
        raise no_such("stream", stream, STREAMS, fix="use stdout or stderr", code="E101")
    first, last = lines_of(lines)
    chosen, before, after = list[str](), "", ""
    count = 0
    for count, line in enumerate(log_lines(found, ORGANISER, dataset, stream), 1):
        if count < first:
            before = f"{before}{line}\n"[-AROUND:]
        elif count <= last:
            chosen.append(line)
        elif len(after) < AROUND:
            after = f"{after}\n{line}"[:AROUND]
    if last > count:
        why = f"Its {stream} has {count:,}."
        raise no_such("line", last, of=found.run.id, why=why, fix="runner logs prints them")
    if sum(map(len, chosen)) > MOST:
        raise RunnerError(
            "E101", "these lines are too long for an excerpt", fix=f"name at most {MOST:,} characters"
        )
    text, masked = masked_text("\n".join(chosen), dataset, task.public_dataset(), before, after)
    return Excerpt(stream, first, last, text, masked)


def check_budget(task: Task, team: str, dataset: Dataset, used: int, size: int) -> int:
    """How many bytes are left for a team on a dataset after another ``size``. Raises E103 when that is too much."""
    left = task.log_excerpts - used
    if size > left:
        raise RunnerError(
            "E103",
            f"an excerpt of {size:,} bytes is more than {team} can still be given on {dataset.id}",
            why=f"{left:,} of {task.log_excerpts:,} bytes (log_excerpts in task.yaml) are left; each can carry 8 bits of hidden data.",
            fix=f"name fewer lines, at most {left:,} bytes" if left else "nothing more can be given",
        )
    return left - size


@dataclass(frozen=True)
class Prepared:
    """An excerpt that its team can be given: what it is of, whether it is ``new``, and how many bytes are ``left`` after it."""

    run: Run
    task: Task
    dataset: Dataset
    attempt: int
    part: Excerpt
    new: bool
    left: int

    def give(self, store: Store) -> None:
        """Note in the event log that the team is given it; one that it has costs nothing again."""
        if self.new:
            team = self.run.submission.team
            place = {"task": self.task.id, "dataset": self.dataset.id, "team": team, "run": self.run.id}
            data = {**place, "attempt": self.attempt, **self.part.as_dict()}
            store.commit("log-excerpt-released", data, actor="organiser")

    def numbered(self) -> list[str]:
        """Its lines with their numbers, as the team reads them; escaped."""
        return [
            f"{number:>6}  {line}" for number, line in enumerate(self.part.text.split("\n"), self.part.first)
        ]

    def says(self, goes: str) -> str:
        """How much it is, for a person; ``goes`` is what becomes of it."""
        size, masked = self.part.size, self.part.masked
        team = self.run.submission.team
        return f"{size:,} bytes ({masked} masked) {goes} to {team}: at most {size * 8:,} bits of hidden data"

    def left_says(self) -> str:
        """What can still be given after it."""
        team, place = self.run.submission.team, f"{self.task.id}/{self.dataset.id}"
        return f"{self.left:,} of {self.task.log_excerpts:,} bytes are left for {team} on {place}"


def hidden_run(store: Store, tasks: Mapping[str, Task], run: str) -> tuple[RunDetail, Task, Dataset, int]:
    """A run of whose log excerpts can be given, with its task, dataset and the attempt that counts.

    Raises E101 for one on a public dataset, E102 where there is none, or its task or dataset is gone.
    """
    found, dataset, task = looked_up(store, tasks, ORGANISER, run)
    made = found.run
    if task is None or dataset.id not in task.datasets:
        what = f"the task or dataset of {made.id} is gone"
        why = "Nobody can say any more what of its log is hidden."
        raise RunnerError("E102", what, why=why, fix=f"bring back tasks/{made.submission.task}")
    if dataset.visibility == "public":
        what, why = f"{made.id} is on a public dataset", "Of public data its team sees everything."
        raise RunnerError("E101", what, why=why, fix="nothing to do")
    if found.attempt is None or found.attempt.number != made.outcome.attempt:
        what = f"{made.id} has no such attempt that counts"
        raise RunnerError("E102", what, fix="name the run without #n")
    return found, task, dataset, found.attempt.number


def prepared(store: Store, tasks: Mapping[str, Task], run: str, stream: str, lines: str) -> Prepared:
    """Lines of the log of a run on hidden data as its team would get them. Raises as :func:`hidden_run`, :func:`excerpt` and
    :func:`check_budget`."""
    found, task, dataset, attempt = hidden_run(store, tasks, run)
    part, team = excerpt(found, task, dataset, stream, lines), found.run.submission.team
    new = (part.stream, part.first, part.last, part.text) not in [
        (one.stream, one.first, one.last, one.text) for one in found.excerpts
    ]
    used = excerpt_bytes(store, task.id, dataset.id, team)
    left = check_budget(task, team, dataset, used, part.size if new else 0)
    return Prepared(found.run, task, dataset, attempt, part, new, left)


def lines_of(text: str) -> tuple[int, int]:
    """The first and the last line that ``A-B`` or ``A`` names. Raises E101."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise RunnerError("E101", "that is no range of lines", fix="write --lines 12, or --lines 3-9")
    return first, last


def masked_text(
    text: str, dataset: Dataset, public: Dataset | None, before: str = "", after: str = ""
) -> tuple[str, int]:
    """The text with :data:`MASK` for what hidden files hold, and how often it stands there. Lines stay lines.

    It is read twice: as it stands, and with the escapes of JSON and of programming languages as what they mean; and with what stood
    ``before`` and ``after`` it: a row of words that one excerpt begins and the next one ends is hidden in both.
    """
    first, last = len(before), len(before) + len(text)
    text = before + text + after
    readings = [_spoken(text, _UNPRINTED, lambda _: " "), _spoken(text, _WRITTEN, _written)]
    alone, rows = _hidden([[word for word, _, _ in one] for one in readings], dataset, public)
    places = sorted(place for one in readings for place in _places(text, one, alone, rows))
    shown, end, masked = "", first, 0
    for start, stop in ((max(first, start), min(last, stop)) for start, stop in places):
        if start >= stop:  # it lies before or after the text
            continue
        if start >= end:
            shown += text[end:start] + MASK
            masked += 1
        end = max(end, stop)
    return shown + text[end:last], masked


_Spoken = list[tuple[str, int, int]]  # words of a text, and where each begins and ends in it


def _spoken(text: str, escapes: re.Pattern[str], meant: Callable[[re.Match[str]], str]) -> _Spoken:
    """The words of a text in which escapes were replaced by what is ``meant``."""
    letters, starts, ends, at = list[str](), list[int](), list[int](), 0
    for escape in (*escapes.finditer(text), None):
        stop = len(text) if escape is None else escape.start()
        letters += text[at:stop]
        starts += range(at, stop)
        ends += range(at + 1, stop + 1)
        if escape is not None:
            found = meant(escape)
            letters += found
            starts += [escape.start()] * len(found)
            ends += [escape.end()] * len(found)
            at = escape.end()
    words = _WORD.finditer("".join(letters))
    return [(one[0].casefold(), starts[one.start()], ends[one.end() - 1]) for one in words]


def _written(escape: re.Match[str]) -> str:
    """What an escape means: bytes in hexadecimal digits are UTF-8 where they can be."""
    if escape[1]:
        data = bytes.fromhex(escape[1].replace("\\x", ""))
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")
    number = int(escape[2] or escape[3] or "20", 16)
    return chr(number) if number <= sys.maxunicode else " "


def _places(
    text: str, spoken: _Spoken, alone: set[str], rows: set[tuple[str, ...]]
) -> Iterator[tuple[int, int]]:
    """Where words stand that are hidden; those beside each other in a line are one place."""
    words = [word for word, _, _ in spoken]
    hide = {n for n, word in enumerate(words) if word in alone}
    for n, row in enumerate(_rows(words)):
        hide |= {*range(n, n + WORDS)} if row in rows else set()
    place: tuple[int, int] | None = None
    for n in sorted(hide):
        _, start, end = spoken[n]
        if place is not None and n - 1 in hide and "\n" not in text[place[1] : start]:
            place = place[0], end
            continue
        if place is not None:
            yield place
        place = start, end
    if place is not None:
        yield place


def _rows(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[n:] for n in range(WORDS)), strict=False))


def _hidden(
    readings: Sequence[Sequence[str]], dataset: Dataset, public: Dataset | None
) -> tuple[set[str], set[tuple[str, ...]]]:
    """Of the words of some readings those that stand in topics or truths, and the rows of them that stand in any hidden file.

    What the task's public dataset holds in the same place is nobody's secret: names of fields, common words, a common corpus.
    """
    words = {word for one in readings for word in one}
    alone = {word for word in words if len(word) >= LETTERS or any(one.isdigit() for one in word)}
    found = _looked_up(dataset, alone, {row for one in readings for row in _rows(one)})
    known = _Known()
    if public is not None and public.id != dataset.id and any((found.words, found.rows, found.in_corpus)):
        known = _looked_up(public, found.words, found.rows | found.in_corpus)
    rows = (found.rows - known.rows) | (found.in_corpus - known.rows - known.in_corpus)
    return found.words - known.words, rows


@dataclass(frozen=True)
class _Known:
    """What of some words a dataset holds: single ones and rows of them in its files but the corpus, and rows in that."""

    words: set[str] = field(default_factory=set)
    rows: set[tuple[str, ...]] = field(default_factory=set)
    in_corpus: set[tuple[str, ...]] = field(default_factory=set)


def _looked_up(dataset: Dataset, single: set[str], wanted: set[tuple[str, ...]]) -> _Known:
    """Which words and which rows of words are in the files of a dataset."""
    known = _Known()
    starts = {row[0] for row in wanted}
    for folder in (dataset.inputs, dataset.truths):
        for name, path in folder_files(folder):
            corpus = folder == dataset.inputs and str(name) == dataset.corpus
            for words in _words_of(path):
                if not corpus:
                    known.words.update(single.intersection(words))
                if not starts.isdisjoint(words):
                    rows = known.in_corpus if corpus else known.rows
                    rows.update(wanted.intersection(_rows(words)))
    return known


def _words_of(path: Path) -> Iterator[list[str]]:
    """The words of each line; where it has escapes, as JSON does, also those of the text that is meant."""
    opener = _OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as stream:
            while line := stream.readline(_PIECE):
                yield _WORD.findall(line.casefold())
                if "\\" in line:
                    yield _WORD.findall(_ESCAPE.sub(_meant, line).casefold())
    except (OSError, EOFError, lzma.LZMAError) as error:
        why = f"{path.name}: {error}"
        raise RunnerError("E402", "a hidden file cannot be read", why=why, fix="runner task check") from error


def _meant(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "
