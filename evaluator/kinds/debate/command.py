"""``evaluator debate`` and ``evaluator agreement``: debates and labels looked at without a task."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.errors import EvaluatorError
from evaluator.printing import number, print_json

if TYPE_CHECKING:  # other commands build these parsers too, and need none of these
    from collections.abc import Mapping, Sequence

    from evaluator.findings import Log
    from evaluator.formats.dialogue import Held
    from evaluator.measures.examination import Examined

PRINTED = 30
_EPILOG = """measures:
  answered, within the word limit, citing arguments, provenance, groundedness, unrepeated: shares of all turns
  words, time, readability: over the answered turns
  criteria: as the word-counting judge says, and as people say with --labels

Beside FILE, turns.jsonl and served.jsonl are used if they are there.
"""


def add_commands(commands: Any) -> None:
    """Add the commands to argparse's ``commands``."""
    parser = commands.add_parser(
        "debate",
        help="what can be said about a file of debates (simulations.jsonl)",
        description="Check debates and print their automatic measures.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="debates as JSON Lines, plain or gzip")
    parser.add_argument("--claims", type=Path, metavar="FILE", help="claims that should have been debated")
    parser.add_argument("--index", type=Path, metavar="FILE", help="the index's arguments.jsonl")
    parser.add_argument("--served", type=Path, metavar="FILE", help="record of what the index returned")
    parser.add_argument("--turns", type=Path, metavar="FILE", help="record of the turns")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="people's labels, ours or positional")
    parser.add_argument("--word-limit", type=_positive, default=60, metavar="N")
    parser.add_argument("--turns-per-debate", type=_positive, metavar="N", help="default: what the file says")
    parser.add_argument("--by-debate", action="store_true", help="also print values by debate")
    parser.add_argument("--transcript", action="store_true", help="print what was said first")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(call=debate)

    parser = commands.add_parser(
        "agreement",
        help="how far annotators of debates agree (Cohen's kappa, Krippendorff's alpha)",
        description="Print how often annotators agree about the answers that several of them judged.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="labels.jsonl")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(call=agreement)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1_000_000:
        raise argparse.ArgumentTypeError("say a positive number")
    return int(text)


def debate(args: argparse.Namespace) -> int:
    """Check and measure one file. Returns 1 if it is invalid."""
    from evaluator.findings import Log
    from evaluator.formats.dialogue import (
        place,
        read_claims,
        read_debates,
        read_index,
        read_served,
        read_turns,
        unplaced,
    )
    from evaluator.formats.labels import read_labels
    from evaluator.judges.heuristic import judge_all
    from evaluator.kinds.debate.sources import people
    from evaluator.measures.examination import Rules, cited_ids, examine, turns_of
    from schemas.debates import transcript_digest

    log = Log(str(args.file))
    reads = read_debates(args.file, log)
    held = place(reads, read_claims(args.claims), log) if args.claims else unplaced(reads)
    beside = args.file.parent
    rules = Rules(
        args.turns_per_debate or turns_of(held),
        args.word_limit,
        texts=read_index(args.index, cited_ids(held)) if args.index else None,
        served=read_served(_there(args.served) or beside / "served.jsonl"),
    )
    records = read_turns(_there(args.turns) or beside / "turns.jsonl", log)
    examined = examine(held, records, rules, log)
    judged_by: dict[str, Mapping[tuple[int, int], Mapping[str, float]]] = {
        "heuristic": judge_all(examined, rules.word_limit)
    }
    if args.labels:
        labels = read_labels(args.labels, run=transcript_digest([read.debate for read in reads]))
        judged_by["human"] = people(labels, held, reads).values
    values = _values(held, examined, rules.word_limit, args.index is not None)
    judged = _shares(judged_by, examined)
    if args.json:
        data = {
            "schema_version": 1,
            "status": log.status,
            "turns": rules.turns,
            "measures": {name: {"value": v, "by_debate": rows} for name, (v, rows) in values.items()},
            "criteria": judged,
            "findings": log.with_kept(),
        }
        print_json(data)
    else:
        if args.transcript:
            from evaluator.kinds.debate.transcript import lines

            print("\n".join(lines(held, examined, records, rules)) + "\n", flush=True)
        print(log.printed(PRINTED), end="", file=sys.stderr)
        if not log.invalid:
            _print_table(log, held, rules.turns, values, judged, by_debate=args.by_debate)
    return 1 if log.invalid else 0


def _there(path: Path | None) -> Path | None:
    """A file that was named on the command line has to be there."""
    if path is not None and not path.is_file():
        raise EvaluatorError(f"there is no file {path}", usage=True)
    return path


Values = dict[str, tuple[float | None, list[float | None]]]  # measure -> over all, by debate


def _values(held: Sequence[Held], examined: Examined, limit: int, index: bool) -> Values:
    from evaluator.measures.debate import measures, provenance_cited

    found: Values = {}
    for name, measure in measures(limit).items():
        if name == "latency@mean" or (name == "provenance" and not index):
            continue
        found[name] = measure.joined(examined.all), [measure.joined(facts) for facts in examined.facts]
    if index:
        by_debate = [provenance_cited(facts) for facts in examined.facts]
        found["provenance@cited"] = provenance_cited(examined.all), by_debate
    return found


def _shares(
    sources: Mapping[str, Mapping[tuple[int, int], Mapping[str, float]]], examined: Examined
) -> dict[str, dict[str, float | None]]:
    """By source the share of turns that are a yes, by criterion and as their mean; None where nobody has judged."""
    from schemas.debates import CRITERIA

    counted: dict[str, dict[str, float | None]] = {}
    answers = {a.place for a in examined.answers}
    failed = len(examined.all) - len(answers)
    for source, by_place in sources.items():
        shares: dict[str, float | None] = {}
        for c in CRITERIA:
            said = [v[c] for p, v in by_place.items() if p in answers and c in v]
            shares[c] = sum(said) / (len(said) + failed) if said else None
        known = [v for v in shares.values() if v is not None]
        shares["score"] = sum(known) / len(known) if len(known) == len(CRITERIA) else None
        counted[source] = shares
    return counted


def _print_table(
    log: Log,
    held: Sequence[Held],
    turns: int,
    values: Values,
    judged: dict[str, dict[str, float | None]],
    *,
    by_debate: bool,
) -> None:
    from evaluator.findings import plain

    print(f"{log.file}: {len(held):,} debates of {turns} turns")
    for name, (value, _) in values.items():
        print(f"  {name:<22}{_figure(name, value):>10}")
    for source, shares in judged.items():
        says = "counts words, weak" if source == "heuristic" else "labels"
        print(f"  judged by {source} ({says}):")
        for criterion, share in shares.items():
            print(f"    {criterion:<20}{_figure(criterion, share):>10}")
    if by_debate:
        for n, one in enumerate(held):
            claim = plain(one.claim.text, 50) or "(no claim)"
            print(f"{plain(one.claim.topic, 40)}  {claim}")
            for name, (_, rows) in values.items():
                print(f"  {name:<22}{_figure(name, rows[n]):>10}")


def _figure(name: str, value: float | None) -> str:
    if value is not None and name.startswith("latency"):
        return f"{value:,.0f} ms"
    return number(value, 1 if name in ("words", "readability") else 4)


def agreement(args: argparse.Namespace) -> int:
    """Print how far annotators agree."""
    from evaluator.findings import plain
    from evaluator.formats.labels import read_labels
    from evaluator.measures.agreement import agreement as compare
    from schemas.debates import CRITERIA

    labels = [label for path in args.files for label in read_labels(path)]
    found: dict[str, Any] = {}
    for criterion in CRITERIA:
        items: dict[Any, dict[str, Any]] = {}
        for label in labels:
            if criterion in label.values:
                # A debate is the same one in every file that has it.
                debate = label.transcript or (label.run, label.debate)
                items.setdefault((debate, label.turn), {})[label.annotator] = label.values[criterion]
        found[criterion] = compare(items)
    if args.json:
        print_json({"schema_version": 1, "criteria": found})
        return 0
    for criterion, one in found.items():
        alpha = number(one["alpha"], 3)
        print(f"{criterion}: Krippendorff's alpha {alpha} ({one['doubled']:,} answers judged by two or more)")
        for pair in one["pairs"]:
            first, second = (plain(name, 30) for name in pair["annotators"])
            value = number(pair["kappa"], 3)
            print(f"  {first}, {second}: kappa {value}, {pair['equal']:.0%} of {pair['items']:,} equal")
        for name, counts in one["annotators"].items():
            if counts["judged"]:
                share = counts["yes"] / counts["judged"]
                print(f"  {plain(name, 30)}: {counts['judged']:,} judged, {share:.0%} yes")
    return 0
