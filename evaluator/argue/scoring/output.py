"""Scores as files: Auto-ARGUE's TSV, and the leaderboards that tools around TREC read.

=============  ===============================================================  ==========================================
format         a line                                                           which rows
=============  ===============================================================  ==========================================
tsv            ``run_id  request_id  metric  value`` (with a header)            all, in Auto-ARGUE's order
ir_measures    ``run topic measure value``                                      without ``_micro``; ``_macro`` without its ending
tot            ``run measure topic value``                                      the same
trec_eval      ``measure topic value`` (the file is called like the run)        the same
rag4reports    ``topic run measure value``                                      the same
ranking        ``topic Q0 run rank value measure``                              the same; rank 1 is the highest value
jsonl          ``{"run_id", "topic_id", "measure", "value"}``                   the same
=============  ===============================================================  ==========================================

None of these formats has space for a remark, so :func:`about` is written next to each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluator.argue.formats.lines import line_of
from evaluator.argue.models import COMPAT
from evaluator.argue.scoring.explaining import policy
from evaluator.argue.scoring.runs import Row, RunScores
from evaluator.errors import EvaluatorError
from evaluator.formats.leaderboards import FORMATS, ORDER, as_object

HEADER = "run_id\trequest_id\tmetric\tvalue\n"


def scores_tsv(runs: Iterable[RunScores]) -> str:
    """The scores file of Auto-ARGUE: every value in repr form, so that nothing is lost."""
    lines = [
        f"{_cell(r.run)}\t{_cell(r.topic)}\t{r.measure}\t{r.value!r}\n" for run in runs for r in run.rows()
    ]
    return HEADER + "".join(lines)


def leaderboard_rows(runs: Iterable[RunScores]) -> list[Row]:
    """The rows of a leaderboard: no ``_micro``, and ``_macro`` under the measure's own name."""
    return [
        r._replace(measure=r.measure.removesuffix("_macro"))
        for run in runs
        for r in run.rows()
        if not r.measure.endswith("_micro")
    ]


def _ranked(rows: Sequence[Row]) -> Iterator[tuple[int, Row]]:
    """The rows with their rank, board by board: 1 is the highest value, equal ones are ordered by the run's name."""
    boards: dict[tuple[str, str], list[Row]] = {}
    for r in rows:
        boards.setdefault((r.measure, r.topic), []).append(r)
    for board in boards.values():
        yield from enumerate(sorted(board, key=lambda r: (-r.value, r.run)), 1)


def leaderboard(runs: Sequence[RunScores], form: str) -> str:
    """A leaderboard in one of :data:`FORMATS`. Raises :class:`EvaluatorError` for another, or for ``trec_eval`` of many runs."""
    if form not in FORMATS:
        raise EvaluatorError(
            f"there is no leaderboard format {form[:40]!r}", f"known are {', '.join(FORMATS)}", usage=True
        )
    if form == "trec_eval" and len(runs) != 1:
        raise EvaluatorError(
            "the format trec_eval holds one run a file", f"there are {len(runs)} runs", usage=True
        )
    rows = leaderboard_rows(runs)
    if form == "jsonl":
        return "".join(line_of(as_object(*r)).decode() for r in rows)
    lines = []
    for rank, r in _ranked(rows) if form == "ranking" else enumerate(rows):
        fields = {"run": _word(r.run), "topic": _word(r.topic), "measure": r.measure, "value": repr(r.value)}
        fields |= {"Q0": "Q0", "rank": str(rank)}
        lines.append(" ".join(fields[name] for name in ORDER[form].split()) + "\n")
    return "".join(lines)


def about(runs: Iterable[RunScores], judge: Any = None) -> dict[str, Any]:
    """What has to be known about scores and cannot be written into their file: version, policies, judge, topics."""
    return {
        "compat": COMPAT,
        "judge": judge,
        "runs": {
            run.run: {
                "policy": policy(run),
                "topics": len(run.topics),
                "missing": list(run.missing),
                "skipped": list(run.skipped),
            }
            for run in runs
        },
    }


def write_scores(runs: Sequence[RunScores], path: Path, *, judge: Any = None) -> list[Path]:
    """Write a scores file and, next to it, ``.about.json``. Returns the paths."""
    return _write(path, scores_tsv(runs), about(runs, judge))


def write_leaderboard(runs: Sequence[RunScores], path: Path, form: str, *, judge: Any = None) -> list[Path]:
    """Write a leaderboard and, next to it, ``.about.json``. Returns the paths. Raises as :func:`leaderboard`."""
    return _write(path, leaderboard(runs, form), about(runs, judge))


def _write(path: Path, text: str, about: Any) -> list[Path]:
    path.write_text(text, encoding="utf-8")
    target = path.with_name(path.name + ".about.json")
    said = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False)
    target.write_text(said + "\n", encoding="utf-8")
    return [path, target]


def _cell(text: str) -> str:
    """A value between tabs: nothing in it can end a line or a column."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _word(text: str) -> str:
    """A value between blanks: blanks become underscores, and nothing is empty."""
    return "_".join(_cell(text).split()) or "_"
