"""Files of debates: those that organisers have are read strictly, with every line that is none, and those of runs within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import schemas
from runner.model.errors import Problem, RunnerError, no_such
from runner.model.limits import MIB
from schemas import jsonl
from schemas.debates import Debate, parse, transcript_digest

MAX_LINE = 32 * MIB
MAX_PROBLEMS = 50  # that are shown of one file


class Most(NamedTuple):
    """How much of a file is read: ``bytes`` after unpacking, bytes of one ``line``, and ``lines``, blank ones too."""

    bytes: int
    line: int
    lines: int


LOOKED_AT = Most(32 * MIB, 8 * MIB, 10_000)  # of what a participant wrote, for a page
OF_A_RUN = Most(256 * MIB, MAX_LINE, 100_000)  # the same, where a command of the organiser reads all of it
OWN = Most(1 << 40, MAX_LINE, 1 << 40)  # of what the organiser has, whatever its size


@dataclass(frozen=True)
class Transcripts:
    """The debates of one file. ``name`` says where they are from; ``digest`` is that of all of them."""

    name: str
    debates: tuple[Debate, ...]
    digest: str = field(default="", compare=False)

    @classmethod
    def read(cls, path: Path, name: str, most: Most = OF_A_RUN) -> Transcripts:
        """Read a file of debates in any form. Raises E402 with every line that is none, and for more than ``most``."""
        debates: list[Debate] = []
        problems: list[Problem] = []
        for number, data in json_lines(path, problems, most):
            debate, faults = parse(data)
            if debate is None:
                problems.append(Problem(f"{schemas.show(path.name)}:{number}", faults[0].what))
            else:
                debates.append(debate)
        refuse(path, problems)
        return cls(name, tuple(debates), transcript_digest(debates))


def refuse(path: Path, problems: Sequence[Problem]) -> None:
    """Raise E402 with the problems of a file, if there are any."""
    if problems:
        what, why = f"{schemas.show(path.name, 200)} cannot be used", "Nothing was written."
        problems = problems[:MAX_PROBLEMS]
        raise RunnerError("E402", what, why=why, fix="correct what is listed", problems=problems)


def json_lines(
    path: Path, problems: list[Problem], most: Most = LOOKED_AT, *, packed: bool | None = None
) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file's lines with their numbers; what is none goes to ``problems``, and so does that there is more than ``most``.

    Whether it is gzip its first bytes say, or ``packed``. Raises E102 when there is no such file.
    """
    if not path.is_file():
        raise no_such("file", path, fix="name a file", limit=200)
    name = schemas.show(path.name, 200)
    rows = jsonl.read(
        path, max_line=most.line, max_bytes=most.bytes, rules=jsonl.LENIENT, packed=packed, blanks=True
    )
    for number, value, fault in rows:
        if number > most.lines:
            problems.append(Problem(name, f"only the first {most.lines:,} lines were read"))
            return
        if fault is None:
            yield number, value
        elif fault.kind != "blank":
            problems.append(_wrong(name, number, fault, most))
        if len(problems) > MAX_PROBLEMS or (fault is not None and fault.kind == "too-long"):
            return


def _wrong(name: str, number: int, fault: jsonl.Fault, most: Most) -> Problem:
    """What is wrong with line ``number`` of the file ``name``, or with all of it."""
    if fault.kind == "unreadable":
        return Problem(name, f"cannot be read ({fault.detail})", "check its permissions")
    if fault.kind == "too-large":
        return Problem(name, f"only the first {most.bytes:,} bytes were read")
    if fault.kind == "damaged":
        return Problem(f"{name}:{number}", "the compressed data are damaged", "get it again")
    long = fault.kind == "too-long"
    what = f"the line is longer than {most.line:,} bytes" if long else "the line is not JSON"
    return Problem(f"{name}:{number}", what)
