"""``evaluator judges`` and ``evaluator leaderboards``: judges against people's labels, one leaderboard against another."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.errors import EvaluatorError
from evaluator.printing import number, pretty, print_json, table, writing

if TYPE_CHECKING:  # other commands build this parser too, and need none of these
    from evaluator.measures.judging import Counts

FORMATS = ("ir_measures", "tot", "trec_eval", "rag4reports", "ranking", "jsonl")
OFFICIAL = ("precision", "recall", "f1")
BESIDE = ("accuracy", "balanced-accuracy", "kappa", "yes-rate")
PRINTED = 50
JUDGES = """labels are the shared task's (*-labels.jsonl, matched by position) or ours (schemas/debate-labels.schema.json, which
need --debates). The first values are those of the official evaluator, under its names. A criterion that is judged
nowhere is left out, and then there is no score. What is missing or malformed elsewhere counts as no.

files (in DIR, which is made if need be):
  evaluation.prototext   the official values; evaluation.json: all values and counts
"""
BOARDS = """formats (columns; the topic "all" is the value over all topics):
  ir_measures   run topic measure value
  tot           run measure topic value
  trec_eval     measure topic value (the run: its runid row, else the file's name)
  rag4reports   topic run measure value
  ranking       topic Q0 run rank value measure
  jsonl         {"run_id": ..., "topic_id": ..., "measure": ..., "value": ...}

coefficients: kendall (tau-b), tauap_b, tau_gap, spearman, pearson; with @K over the truth's best K runs (kendall@10)
"""


def add_commands(commands: Any) -> None:
    """Add both commands to argparse's ``commands``."""
    raw = argparse.RawDescriptionHelpFormatter
    judges = commands.add_parser(
        "judges",
        help="score judgments of debates by people's labels, like the evaluator of Touché 2025",
        description="Compare a judge's scores with people's labels: precision, recall and F1 of four criteria.",
        epilog=JUDGES,
        formatter_class=raw,
    )
    judges.add_argument("--labels", type=Path, required=True, metavar="FILE", help="people's labels")
    judges.add_argument(
        "--judgments", type=Path, required=True, metavar="FILE", help="evaluations.jsonl of the judge"
    )
    judges.add_argument("--debates", type=Path, metavar="FILE", help="the debates that were judged")
    judges.add_argument(
        "--reading",
        choices=("strict", "official"),
        default="strict",
        help="official: also take what the official evaluator takes (numbers in quotes, true, 7, NaN)",
    )
    judges.add_argument("--json", action="store_true", help="print everything as JSON")
    judges.add_argument("--output", type=Path, metavar="DIR", help="also write files")
    judges.set_defaults(call=run_judges)

    boards = commands.add_parser(
        "leaderboards",
        help="correlate a judge's leaderboard with the true one, or convert one",
        description="Correlate every measure of one leaderboard with every measure of another, over the same runs.",
        epilog=BOARDS,
        formatter_class=raw,
    )
    boards.add_argument("--truth", type=Path, nargs="+", metavar="FILE", help="the true leaderboard")
    boards.add_argument("--truth-format", choices=FORMATS, default="ir_measures", metavar="FORMAT")
    boards.add_argument(
        "--judge", type=Path, nargs="+", required=True, metavar="FILE", help="files, or folders of files"
    )
    boards.add_argument("--judge-format", choices=FORMATS, default="ir_measures", metavar="FORMAT")
    boards.add_argument(
        "--measures", nargs="+", default=[], metavar="M", help="coefficients (default: all five, and kendall@10)"
    )  # fmt: skip
    boards.add_argument(
        "--truth-measures", nargs="+", default=[], metavar="M", help="only these of the truth"
    )
    boards.add_argument(
        "--judge-measures", nargs="+", default=[], metavar="M", help="only these of the judge"
    )
    boards.add_argument(
        "--on-missing",
        choices=("error", "warn", "skip", "default"),
        default="error",
        help="runs that one side lacks: refuse, leave out (with a warning or not), or count as 0",
    )
    boards.add_argument(
        "--recompute", action="store_true", help='take means over topics, not the lines for "all"'
    )
    boards.add_argument("--convert", choices=FORMATS, metavar="FORMAT", help="only rewrite --judge")
    boards.add_argument("--json", action="store_true", help="print JSON Lines")
    boards.add_argument("--output", type=Path, metavar="FILE", help="write there, not to the screen")
    boards.set_defaults(call=run_leaderboards)


# --- judges ------------------------------------------------------------------------------------------------


def run_judges(args: argparse.Namespace) -> int:
    """Print the values. Returns 1 for judgments that are not valid."""
    from evaluator.findings import Log
    from evaluator.formats.evaluations import Shape, read_judgments, read_shape
    from evaluator.formats.gold import read_gold
    from evaluator.kinds.meta.judgments import counted, lacking
    from evaluator.measures.judging import Measure, total
    from schemas.debates import CRITERIA

    shape = read_shape(args.debates, str(args.debates)) if args.debates else None
    labels = read_gold(args.labels, shape, reading=args.reading)
    log = Log(str(args.judgments))
    judged = read_judgments(
        args.judgments, shape or Shape([len(turns) for turns in labels]), log, reading=args.reading
    )
    print(log.printed(PRINTED), end="", file=sys.stderr)
    if log.invalid:
        if args.json:
            print_json({"status": "invalid", "findings": [f.as_json() for f in log.sorted()]})
        return 1
    debates = counted(labels, judged)
    counts = {c: total([debate[c] for debate in debates]) for c in CRITERIA}
    values: dict[str, dict[str, float]] = {}
    pending: dict[str, str] = {}
    for group, names, means in (("official", OFFICIAL, ("score",)), ("beside", BESIDE, BESIDE)):
        of_criteria = {f"{c} {name}": Measure(f"{name}@{c}") for c in CRITERIA for name in names}
        measures = of_criteria | {name: Measure(name) for name in means}
        reasons = {name: lacking(measure, counts, judged) for name, measure in measures.items()}
        values[group] = {name: m.value(counts) for name, m in measures.items() if not reasons[name]}
        pending |= {name: reason for name, reason in reasons.items() if reason}
    result = {
        "status": "valid",
        "values": values["official"],
        "beside": values["beside"],
        "pending": pending,
        "counts": {c: counts[c]._asdict() for c in CRITERIA},
        "findings": [f.as_json() for f in log.sorted()],
    }
    if args.output:
        _write_evaluation(args.output, values["official"], result)
    if args.json:
        print_json(result)
    else:
        _print_judge(values, pending, counts)
    return 0


def _print_judge(
    values: Mapping[str, Mapping[str, float]], pending: Mapping[str, str], counts: Mapping[str, Counts]
) -> None:
    """The official values one a line, then a table of the figures beside them."""
    lines = [f"{name:<19} {value:.4f}" for name, value in values["official"].items()]
    if "score" in pending:
        lines.append(f"{'score':<19} –  {pending['score']}")
    heads = ["", "accuracy", "balanced acc.", "kappa", "says yes", "people yes", "turns"]
    rows = [heads]
    for criterion, c in counts.items():
        n = sum(c)
        figures = (number(values["beside"].get(f"{criterion} {name}")) for name in BESIDE)
        rows.append([criterion, *figures, number((c.tp + c.fn) / n if n else None), f"{n:,}"])
    rows.append(["mean", *(number(values["beside"].get(name)) for name in BESIDE), "", ""])
    lines += ["", *table(rows)]
    print("\n".join(lines))


def _write_evaluation(folder: Path, official: Mapping[str, float], result: Mapping[str, Any]) -> None:
    """``evaluation.prototext`` as the official evaluator writes it: numbers in full (``1.0``), nothing as ``0``."""
    # A figure is as that evaluator's own arithmetic leaves it: a float, but the whole number 0 without a true positive.
    text = "".join(
        f'measure{{\n  key: "{name}"\n  value: "{repr(value) if value else "0"}"\n}}\n'
        for name, value in official.items()
    )
    with writing(folder):
        folder.mkdir(exist_ok=True)
        (folder / "evaluation.prototext").write_text(text, encoding="utf-8")
        (folder / "evaluation.json").write_text(pretty(result) + "\n", encoding="utf-8")


# --- leaderboards ------------------------------------------------------------------------------------------


def run_leaderboards(args: argparse.Namespace) -> int:
    """Print one row for every pair of measures, or the judge's leaderboard in another format."""
    from evaluator.formats.leaderboards import read_boards, write_board
    from evaluator.measures.comparing import compare

    judge = read_boards(args.judge, args.judge_format)
    if args.convert:
        _put(args.output, list(write_board(judge, args.convert)))
        return 0
    if not args.truth:
        raise EvaluatorError("--truth is missing", fix="name the true leaderboard, or --convert", usage=True)
    rows = compare(
        read_boards(args.truth, args.truth_format),
        judge,
        args.measures,
        truth_measures=args.truth_measures,
        judge_measures=args.judge_measures,
        recompute=args.recompute,
        on_missing=args.on_missing,
        warn=lambda text: print(text, file=sys.stderr),
    )
    if args.json or args.output:
        import json

        _put(args.output, [json.dumps(row, ensure_ascii=False) for row in rows])
    else:
        heads = list(dict.fromkeys(key for row in rows for key in row))
        print("\n".join(table([heads, *([_cell(row.get(key)) for key in heads] for row in rows)])))
    return 0


def _cell(value: Any) -> str:
    from evaluator.findings import plain

    return number(value) if isinstance(value, float | None) else plain(str(value), 40)


def _put(path: Path | None, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    if path is None:
        sys.stdout.write(text)
        return
    with writing(path):
        path.write_text(text, encoding="utf-8")
