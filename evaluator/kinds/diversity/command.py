"""``evaluator perspective``: what the evaluation script of Perspective Argument Retrieval 2024 does, from its files to its files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import zip_longest
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.printing import print_json
from schemas.details import Detail

if TYPE_CHECKING:  # other commands build this parser too, and need none of these
    from evaluator.findings import Log
    from evaluator.formats.perspective import Query
    from evaluator.measures.diversity import Scores

SCENARIOS = ("baseline", "explicit", "implicit", "perspective")
CUTOFFS = (4, 8, 16, 20)  # of the official files
SPLITS = ("train", "dev", "test")
MAX_CANDIDATES = 1000
PRINTED = 50
_TRUE, _FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off")
EPILOG = """scenarios:
  baseline   baseline queries
  explicit   perspective queries (the script's "--scenario perspective")
  implicit   perspective queries, and arguments with the same text as a relevant one are hits
             (the script's "--scenario perspective --implicit True")

The official script understands "--implicit False" and "--diversity False" as true. Here they mean what they say.

files (in OUTPUT/baseline/SPLIT or OUTPUT/perspective/SPLIT, as the script has them):
  relevance_results.csv, diversity_results.csv, diversity_results_per_variable.csv, and per_query.csv (ours)
Explicit and implicit go to the same folder, so the second overwrites the first; --own-directories keeps them apart.
"""


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE + _FALSE:
        raise argparse.ArgumentTypeError("say True or False")
    return word in _TRUE


def add_commands(commands: Any) -> None:
    """Add the command to argparse's ``commands``."""
    parser = commands.add_parser(
        "perspective",
        help="score predictions like the script of Perspective Argument Retrieval 2024",
        description="Check and score one predictions file by a release in the official format.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR",
        help="release: corpus.jsonl, baseline-queries/, perspective-queries/",
    )  # fmt: skip
    parser.add_argument(
        "--predictions", type=Path, required=True, metavar="FILE", help="JSON Lines, plain or gzip"
    )
    parser.add_argument("--scenario", choices=SCENARIOS, required=True)
    parser.add_argument("--split", choices=SPLITS, required=True)
    parser.add_argument("--output", "--output_dir", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--implicit", type=_boolean, nargs="?", const=True, metavar="BOOL",
        help="with --scenario perspective: implicit instead of explicit",
    )  # fmt: skip
    parser.add_argument(
        "--diversity", type=_boolean, nargs="?", const=True, default=True, metavar="BOOL",
        help="also alpha-nDCG and rKL (default: True)",
    )  # fmt: skip
    parser.add_argument(
        "--duplicates", choices=("error", "score"), default="error",
        help="candidates listed twice: an error, or every copy is scored as the script does",
    )  # fmt: skip
    parser.add_argument(
        "--own-directories",
        action="store_true",
        help="OUTPUT/explicit and OUTPUT/implicit, not OUTPUT/perspective",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(call=run)


class Means(NamedTuple):
    """Means over queries by cut-off; ``variables``: (cut-off, property) -> alpha-nDCG and rKL."""

    relevance: dict[int, tuple[float, float]]
    diversity: dict[int, tuple[float, float]]
    variables: dict[tuple[int, str], tuple[float, float]]


def scenario(word: str, implicit: bool | None) -> str:
    """``baseline``, ``explicit`` or ``implicit``. Raises :class:`EvaluatorError` for words that contradict each other."""
    if word == "perspective":
        return "implicit" if implicit else "explicit"
    if implicit is not None and implicit != (word == "implicit"):
        raise EvaluatorError(
            f"--scenario {word} and --implicit {implicit} contradict each other",
            "--implicit belongs to --scenario perspective",
            "leave --implicit out",
            usage=True,
        )
    return word


def means(n: int, scores: Scores, properties: Sequence[str]) -> Means:
    """The official figures: means over all ``n`` queries, then for diversity over properties."""
    found = Means({}, {}, {})
    for k in CUTOFFS:
        found.relevance[k] = (
            fsum(scores.ndcg[k].tolist()) / n,
            fsum(scores.precision[k].tolist()) / n,
        )
        if not scores.alpha_ndcg:
            continue
        columns = zip(properties, scores.alpha_ndcg[k].T.tolist(), scores.rkl[k].T.tolist(), strict=True)
        for name, alphas, rkls in columns:
            found.variables[k, name] = (fsum(alphas) / n, fsum(rkls) / n)
        alpha, rkl = zip(*(found.variables[k, name] for name in properties), strict=True)
        found.diversity[k] = (fsum(alpha) / len(alpha), fsum(rkl) / len(rkl))
    return found


def run(args: argparse.Namespace) -> int:
    """Check, score, write the files and print the means. Returns 1 for predictions that are not valid."""
    from evaluator.findings import Log
    from evaluator.formats.perspective import query_file, read_corpus, read_queries
    from evaluator.formats.predictions import Rules, read_predictions
    from evaluator.measures.diversity_scorer import Scorer

    name = scenario(args.scenario, args.implicit)
    queries_of = "baseline" if name == "baseline" else "perspective"
    if not args.data.is_dir():
        raise EvaluatorError(
            f"--data {args.data} is not a folder", fix="give the folder with corpus.jsonl", usage=True
        )
    population = read_corpus(args.data)
    queries = read_queries(
        args.data, query_file(queries_of, args.split), population, perspective=queries_of == "perspective"
    )
    if args.diversity and population.left_out:
        left_out = Detail("same-value", names=", ".join(population.left_out))
        print(f"{args.data}: {left_out}", file=sys.stderr)
    diversity = args.diversity and bool(population.properties)
    scorer = Scorer(population, CUTOFFS, twins=name == "implicit", diversity=diversity)
    rules = Rules(
        frozenset(q.id for q in queries),
        frozenset(population.values),
        kept=scorer.depth,
        least=CUTOFFS[-1],
        most=MAX_CANDIDATES,
        repeats=args.duplicates == "score",
        suggest=True,
    )
    log = Log(str(args.predictions))
    found = read_predictions(args.predictions, rules, log)
    if log.invalid:
        if args.json:
            _print_json(args, name, log, None, None)
        print(log.printed(PRINTED), end="", file=sys.stderr)
        return 1
    scores = scorer.score([q.relevant for q in queries], [found.get(q.id, ()) for q in queries])
    result = means(len(queries), scores, population.properties)
    folder = args.output / (name if args.own_directories else queries_of) / args.split
    replaced = _write(folder, queries, scores, result)
    print(log.printed(PRINTED), end="", file=sys.stderr)
    if replaced and not args.own_directories and name != "baseline":
        print(
            f"{folder}: earlier results were replaced (explicit and implicit share this folder; --own-directories keeps both)",
            file=sys.stderr,
        )
    if args.json:
        _print_json(args, name, log, result, folder)
    else:
        _print_table(result, name, args.split, len(queries), folder)
    return 0


def _write(folder: Path, queries: Sequence[Query], scores: Scores, result: Means) -> bool:
    """Write the four files; returns whether there were results before. Floats are written in full."""
    relevance = [f"{k},{a!r},{b!r}" for k, (a, b) in result.relevance.items()]
    files = {"relevance_results.csv": ["k,ndcg@k,precision@k", *relevance]}
    if result.diversity:
        files["diversity_results.csv"] = [
            "k,alpha_ndcg@k,kl_divergence@k",
            *(f"{k},{a!r},{b!r}" for k, (a, b) in result.diversity.items()),
        ]
        files["diversity_results_per_variable.csv"] = [
            "k,socio_var,alpha_ndcg@k,kl_divergence@k",
            *(f"{k},{name},{a!r},{b!r}" for (k, name), (a, b) in result.variables.items()),
        ]
    files["per_query.csv"] = _per_query(queries, scores, diverse=bool(result.diversity))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replaced = (folder / "relevance_results.csv").exists()
        for name in ("diversity_results.csv", "diversity_results_per_variable.csv"):
            if name not in files:  # of an earlier call: they would not belong to the others
                (folder / name).unlink(missing_ok=True)
        for name, lines in files.items():
            part = folder / f".{name}.part"
            part.write_text("\n".join(lines) + "\n", encoding="utf-8")
            part.replace(folder / name)
    except OSError as error:
        raise EvaluatorError(
            "the results cannot be written",
            f"{error.filename or folder}: {os.strerror(error.errno or 0).lower()}",
            "give --output a folder that can be written",
            usage=True,
        ) from None
    return replaced


def _per_query(queries: Sequence[Query], scores: Scores, *, diverse: bool) -> list[str]:
    from evaluator.measures.diversity import Measure

    names = {"ndcg@k": "nDCG", "precision@k": "P"}
    if diverse:
        names |= {
            "alpha_ndcg@k": "alpha-nDCG",
            "kl_divergence@k": "rKL",
            "alpha_ndcg_unqueried@k": "alpha-nDCG-unqueried",
            "kl_divergence_unqueried@k": "rKL-unqueried",
        }
    asked = [q.asked for q in queries]
    measures = {k: [Measure(f"{name}@{k}") for name in names.values()] for k in CUTOFFS}
    # For each cut-off the values of all measures, query by query.
    rows = [list(zip(*(m.values(scores, asked) for m in measures[k]), strict=True)) for k in CUTOFFS]
    return [
        ",".join(("query_id", "k", *names)),
        *(
            f"{q.id},{k}," + ",".join(map(repr, at[i]))
            for i, q in enumerate(queries)
            for k, at in zip(CUTOFFS, rows, strict=True)
        ),
    ]


def _print_table(result: Means, name: str, split: str, count: int, folder: Path) -> None:
    print(f"{name}, {split}: {count:,} queries")
    print("  k    nDCG       P" + ("   alpha-nDCG      rKL" if result.diversity else ""))
    rows = zip_longest(result.relevance.items(), result.diversity.values(), fillvalue=None)
    for relevance, diversity in rows:
        assert relevance is not None
        k, (ndcg, precision) = relevance
        line = f"{k:>3}  {ndcg:.4f}  {precision:.4f}"
        print(line if diversity is None else f"{line}       {diversity[0]:.4f}   {diversity[1]:.4f}")
    print(f"written: {folder}")


def _print_json(
    args: argparse.Namespace, name: str, log: Log, result: Means | None, folder: Path | None
) -> None:
    data: dict[str, Any] = {
        "schema_version": 1,
        "status": log.status,
        "scenario": name,
        "split": args.split,
        "findings": log.with_kept(),
    }
    if result is not None:
        data["relevance"] = [
            {"k": k, "ndcg@k": a, "precision@k": b} for k, (a, b) in result.relevance.items()
        ]
        data["diversity"] = [
            {"k": k, "alpha_ndcg@k": a, "kl_divergence@k": b} for k, (a, b) in result.diversity.items()
        ]
        data["diversity_per_variable"] = [
            {"k": k, "socio_var": name, "alpha_ndcg@k": a, "kl_divergence@k": b}
            for (k, name), (a, b) in result.variables.items()
        ]
        data["output"] = str(folder)
    print_json(data)
