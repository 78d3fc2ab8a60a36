"""Files of debates that organisers have: read strictly, with every line that is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import schemas
from runner.model.errors import Problem, RunnerError, no_such
from schemas import jsonl
from schemas.debates import Debate, parse, transcript_digest

MAX_LINE = 32 << 20  # bytes
MAX_PROBLEMS = 50  # that are shown of one file


@dataclass(frozen=True)
class Transcripts:
    """The debates of one file. ``name`` says where they are from; ``digest`` is that of all of them."""

    name: str
    debates: tuple[Debate, ...]
    digest: str = field(default="", compare=False)

    @classmethod
    def read(cls, path: Path, name: str) -> Transcripts:
        """Read a file of debates in any form. Raises E402 with every line that is none."""
        debates: list[Debate] = []
        problems: list[Problem] = []
        for number, data in json_lines(path, problems):
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


def json_lines(path: Path, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file's lines (plain or gzip) with their numbers; what is none goes to ``problems``.

    Raises E102 when there is no such file.
    """
    if not path.is_file():
        raise no_such("file", path, fix="name a file", limit=200)
    name = schemas.show(path.name, 200)
    for number, value, fault in jsonl.read(path, max_line=MAX_LINE, rules=jsonl.LENIENT):
        if fault is None:
            yield number, value
        elif fault.kind == "unreadable":
            problems.append(Problem(name, f"cannot be read ({fault.detail})", "check its permissions"))
        elif fault.kind == "damaged":
            problems.append(Problem(f"{name}:{number}", "the compressed data are damaged", "get it again"))
        elif fault.kind == "too-long":
            problems.append(Problem(f"{name}:{number}", f"the line is longer than {MAX_LINE:,} bytes"))
            return
        else:
            problems.append(Problem(f"{name}:{number}", "the line is not JSON"))
        if len(problems) > MAX_PROBLEMS:
            return
