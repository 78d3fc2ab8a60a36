"""``evaluator argue correlation``: whether two judges order the same runs alike, by the coefficients of ``evaluator leaderboards``.

Each side is what one judge said about the runs: scores files or leaderboards (``run topic measure value``), or judgments, which are
scored first. The same measure is compared on both sides, by the runs' values over all topics.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.argue.arguments import Parser
from evaluator.argue.trust import figures
from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.printing import number, table

if TYPE_CHECKING:
    from evaluator.formats.leaderboards import Board

MEASURES = (
    "nugget_coverage",
    "nugget_coverage_weighted",
    "citation_relevance",
    "citation_support",
    "sentence_support",
    "f1",
    "f1_weighted",
)
METHODS = ("kendall", "tauap_b", "spearman", "pearson")
JUDGMENTS = (".jsonl", ".jsonl.gz")


def run(words: Sequence[str]) -> int:
    """Do what the words after ``evaluator argue correlation`` say. Raises :class:`EvaluatorError`."""
    parser = Parser(
        prog="evaluator argue correlation",
        description="Whether two judges order the same runs alike (at least three runs).",
        epilog="FILE is a scores file, a leaderboard (run topic measure value), or judgments (.jsonl; give --nuggets)",
    )
    parser.option("--truth", type=Path, nargs="+", required=True, metavar="FILE", help="what one judge says")
    parser.option("--judge", type=Path, nargs="+", required=True, metavar="FILE", help="what the other says")
    parser.option("--nuggets", type=Path, metavar="NUGGETS", help="nuggets, to score judgments with")
    parser.option("--measures", nargs="+", metavar="M",
                  help=f"measures that both have (default: those there are of {', '.join(MEASURES)})")  # fmt: skip
    parser.option("--coefficients", nargs="+", default=list(METHODS), metavar="C",
                  help="default: kendall (tau-b), tauap_b, spearman, pearson; also tau_gap, and each with @K")  # fmt: skip
    parser.option("--on-missing", choices=("error", "warn", "skip", "default"), default="error",
                  help="runs that one side lacks: refuse, leave out (with a warning or not), or count as 0")  # fmt: skip
    figures.add_output(parser, reliability=False)
    args = parser.parse_args(words)
    rows = correlation(
        read_side(args.truth, args.nuggets),
        read_side(args.judge, args.nuggets),
        args.measures,
        args.coefficients,
        args.on_missing,
    )
    names = list(args.coefficients)
    body = [[plain(row["measure"], 60), f"{row['runs']:,}", *(number(row[n]) for n in names)] for row in rows]
    figures.show({"correlations": rows}, table([["measure", "runs", *names], *body]), as_json=args.json)
    return 0


def correlation(
    truth: Board,
    judge: Board,
    measures: Sequence[str] | None = None,
    coefficients: Sequence[str] = METHODS,
    on_missing: str = "error",
) -> list[dict[str, Any]]:
    """A row for each measure: its name, how many runs both sides have, and the coefficients (None if undefined).

    Raises :class:`EvaluatorError` for measures that one side lacks, for fewer than three runs in common, and with ``error`` for runs
    that one side lacks.
    """
    from evaluator.measures.comparing import compare

    chosen = measures or [m for m in MEASURES if m in truth.measures and m in judge.measures]
    if not chosen:
        raise EvaluatorError(
            "both sides have no measure in common",
            f"looked for {', '.join(MEASURES)}",
            "name measures with --measures",
            usage=True,
        )
    rows = []
    for name in chosen:
        found = compare(
            truth,
            judge,
            coefficients,
            truth_measures=[name],
            judge_measures=[name],
            on_missing=on_missing,
            warn=lambda text: print(text, file=sys.stderr),
        )
        for row in found:
            rows.append({"measure": name, **{k: v for k, v in row.items() if k not in ("truth", "judge")}})
    return rows


def read_side(paths: Sequence[Path], nuggets: Path | None) -> Board:
    """What one judge says about runs: ``_macro`` under the measure's own name, without ``_micro``.

    Raises :class:`EvaluatorError`, also for a run that is there twice.
    """
    from evaluator.formats.leaderboards import Board, Row, read_boards

    board = Board()
    scores = [p for p in paths if not p.name.endswith(JUDGMENTS)]
    rows = list(read_boards(scores, "ir_measures").rows()) if scores else []
    for path in paths:
        if path.name.endswith(JUDGMENTS):
            rows += [Row(*row) for row in _scored(path, nuggets)]
    for row in rows:
        if row.measure.endswith("_micro"):
            continue
        if not board.add(row._replace(measure=row.measure.removesuffix("_macro"))):
            raise EvaluatorError(
                f"the run {plain(row.run, 60)!r} is there twice",
                f"{plain(row.measure, 60)} of topic {plain(row.topic, 60)}",
                "name each run's scores once",
            )
    return board


def _scored(path: Path, nuggets: Path | None) -> list[tuple[str, str, str, float]]:
    from evaluator.argue.formats.judgments import load_judgments
    from evaluator.argue.formats.nugget_formats import load_nuggets
    from evaluator.argue.scoring.measures import Options
    from evaluator.argue.scoring.output import leaderboard_rows
    from evaluator.argue.scoring.runs import score_runs

    if nuggets is None:
        raise EvaluatorError(
            f"{path.name} holds judgments, which have to be scored",
            fix="name the nuggets: --nuggets NUGGETS",
            usage=True,
        )
    runs = score_runs(load_judgments(path), load_nuggets(nuggets), Options(missing="penalize"))
    return [(r.run, r.topic, r.measure, r.value) for r in leaderboard_rows(runs.values())]
