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

None of these formats has room for a remark, so :func:`write_about` puts one beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from evaluator.argue.formats.lookup import Lookup
from evaluator.argue.formats.report import Report, as_json, carried
from evaluator.argue.formats.writing import line_of
from evaluator.argue.models import COMPAT, Bank
from evaluator.argue.scoring.explaining import policy
from evaluator.argue.scoring.runs import Row, RunScores
from evaluator.errors import EvaluatorError

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


def _ranking(rows: Sequence[Row]) -> list[str]:
    boards: dict[tuple[str, str], list[Row]] = {}
    for r in rows:
        boards.setdefault((r.measure, r.topic), []).append(r)
    return [
        f"{_word(r.topic)} Q0 {_word(r.run)} {rank} {r.value!r} {r.measure}\n"
        for board in boards.values()
        for rank, r in enumerate(sorted(board, key=lambda r: (-r.value, r.run)), 1)
    ]


def _jsonl(rows: Sequence[Row]) -> list[str]:
    return [
        line_of({"run_id": r.run, "topic_id": r.topic, "measure": r.measure, "value": r.value}).decode()
        for r in rows
    ]


FORMATS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    "ir_measures": lambda rows: [f"{_word(r.run)} {_word(r.topic)} {r.measure} {r.value!r}\n" for r in rows],
    "tot": lambda rows: [f"{_word(r.run)} {r.measure} {_word(r.topic)} {r.value!r}\n" for r in rows],
    "trec_eval": lambda rows: [f"{r.measure} {_word(r.topic)} {r.value!r}\n" for r in rows],
    "rag4reports": lambda rows: [f"{_word(r.topic)} {_word(r.run)} {r.measure} {r.value!r}\n" for r in rows],
    "ranking": _ranking,
    "jsonl": _jsonl,
}


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
    return "".join(FORMATS[form](leaderboard_rows(runs)))


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
    """Write a scores file and, beside it, ``.about.json``. Returns the paths."""
    path.write_text(scores_tsv(runs), encoding="utf-8")
    return [path, write_about(runs, path, judge=judge)]


def write_leaderboard(runs: Sequence[RunScores], path: Path, form: str, *, judge: Any = None) -> list[Path]:
    """Write a leaderboard and, beside it, ``.about.json``. Returns the paths. Raises as :func:`leaderboard`."""
    path.write_text(leaderboard(runs, form), encoding="utf-8")
    return [path, write_about(runs, path, judge=judge)]


def write_about(runs: Sequence[RunScores], path: Path, *, judge: Any = None) -> Path:
    """Write what :func:`about` says beside ``path``, and return where."""
    target = path.with_name(path.name + ".about.json")
    text = json.dumps(about(runs, judge), indent=2, ensure_ascii=False, allow_nan=False)
    target.write_text(text + "\n", encoding="utf-8")
    return target


# --- for TREC AutoJudge --------------------------------------------------------------------------------------


def autojudge_report(report: Report, lookup: Lookup) -> dict[str, Any]:
    """The report with the cited documents that the look-up has under ``documents``, as AutoJudge's judges read it."""
    documents = {d: carried(found) for d in report.cited if (found := lookup.get(d)) is not None}
    return as_json(report) | {"documents": documents}


def write_autojudge_reports(reports: Iterable[Report], lookup: Lookup, path: Path) -> None:
    """Write reports with their documents, one a line."""
    with path.open("wb") as file:
        for report in reports:
            file.write(line_of(autojudge_report(report, lookup)))


def qrels(banks: Iterable[Bank]) -> str:
    """``topic 0 document grade`` of the documents that attest an answer: 2 for a vital nugget's, else 1."""
    lines = []
    for bank in banks:
        for doc_id, pairs in sorted(bank.by_document.items()):
            grade = 2 if any(n.importance == "vital" for n, _ in pairs) else 1
            lines.append(f"{_word(bank.topic_id)} 0 {_word(doc_id)} {grade}\n")
    return "".join(lines)


def _cell(text: str) -> str:
    """A value between tabs: nothing in it can end a line or a column."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _word(text: str) -> str:
    """A value between blanks: blanks become underscores, and nothing is empty."""
    return "_".join(_cell(text).split()) or "_"
