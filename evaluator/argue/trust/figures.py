"""What all four commands print, and the file of figures that stand next to a judge's scores.

Such a file is ``{"judge": {"model", "prompts" or "rules"}, "figures": {name: number}}``. It belongs to one judge: one model with
one set of prompts. Figures of several commands add up in it, as long as they are about the same judge.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.printing import number, pretty, table, writing
from schemas.files import atomic_file

if TYPE_CHECKING:
    from evaluator.argue.arguments import Parser

MAX_FIGURES = 14  # result.json has room for 20, and some come from elsewhere
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.()'%/-]{0,79}")  # as in result.json
_WHO = ("model", "prompts", "rules")


def add_output(parser: Parser, *, reliability: bool = True) -> None:
    """How the result is printed, and where figures are put that stand next to scores."""
    parser.flags({"--json": "print everything as JSON"})
    if reliability:
        parser.option("--reliability", type=Path, metavar="FILE",
            help="also put the main figures into FILE, next to those that are there about the same judge",
        )  # fmt: skip


def publish(
    args: argparse.Namespace,
    result: Mapping[str, Any],
    reliability: Mapping[str, float],
    lines: Sequence[str],
) -> None:
    """Print a result, as JSON or as lines for people, and put its main figures into the file of ``--reliability``."""
    if args.reliability:
        put_reliability(args.reliability, result["judge"], reliability)
    show(result, lines, as_json=args.json)


def show(data: Mapping[str, Any], lines: Sequence[str], *, as_json: bool) -> None:
    """Print the one or the other."""
    print(pretty(data) if as_json else "\n".join(lines))


def by_type(result: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    """The figures of a result by judgment type as a table; ``columns`` are heads and which figure stands below each."""
    rows = [["", *columns]]
    for kind, row in result["types"].items():
        cells = (row[name] for name in columns.values())
        rows.append([titled(kind), *(f"{c:,}" if isinstance(c, int) else number(c) for c in cells)])
    return table(rows)


def titled(kind: str) -> str:
    """A judgment type in words."""
    return kind.lower().replace("_", " ")


# --- the file of figures ---------------------------------------------------------------------------------------


def who(identity: Mapping[str, Any]) -> dict[str, str]:
    """What makes two judges the same one here: their model and prompts. Empty for judgments that do not say."""
    return {key: str(identity[key]) for key in _WHO if identity.get(key)}


def put_reliability(path: Path, identity: Mapping[str, Any], figures: Mapping[str, float]) -> None:
    """Add figures to a file, in the place of those with the same names.

    Raises :class:`EvaluatorError` if nobody knows which judge they are about, or the file is about another one.
    """
    judge = who(identity)
    if not judge:
        raise EvaluatorError(
            "the figures cannot be kept: the judgments do not say which model and prompts made them",
            fix="judge with this program, or leave --reliability out",
        )
    known = read_reliability(path, identity) if path.exists() else {}
    merged = {**known, **{name: round(float(value), 4) for name, value in figures.items()}}
    if len(merged) > MAX_FIGURES:
        raise EvaluatorError(
            f"{path.name} would hold {len(merged)} figures", f"{MAX_FIGURES} fit beside a score"
        )
    with writing(path), atomic_file(path, mode=0o644) as file:
        file.write((pretty({"judge": judge, "figures": merged}) + "\n").encode())


def read_reliability(path: Path, identity: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a file, for ``judge.reliability`` of a result.

    Raises :class:`EvaluatorError` for a file that is none, and for figures about another judge than ``identity``.
    """
    doc = schemas.load_json(path, path.name, max_bytes=1 << 20)
    data = doc.data
    problems = [str(p) for p in doc.problems]
    figures = data.get("figures") if isinstance(data, dict) else None
    judge = data.get("judge") if isinstance(data, dict) else None
    if not problems and not (
        isinstance(figures, dict)
        and isinstance(judge, dict)
        and len(figures) <= MAX_FIGURES
        and all(_NAME.fullmatch(name) and _is_number(value) for name, value in figures.items())
    ):
        problems = [
            f"it has to hold judge and at most {MAX_FIGURES} figures, which are numbers under plain names"
        ]
    if problems:
        raise EvaluatorError(
            f"{path.name} holds no figures about a judge",
            "; ".join(problems[:3]),
            "make it with evaluator argue agreement, consistency or canaries: --reliability FILE",
        )
    assert isinstance(figures, dict) and isinstance(judge, dict)
    if who(judge) != who(identity):
        theirs, ours = (", ".join(f"{k} {v}" for k, v in who(one).items()) for one in (judge, identity))
        raise EvaluatorError(
            f"the figures in {path.name} are about another judge",
            plain(f"they are about {theirs}, this is {ours}", 400),
            "measure this judge, and name another file",
        )
    return {str(name): float(value) for name, value in figures.items()}


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e12  # type: ignore[arg-type]  # False for NaN
