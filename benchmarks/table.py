"""The evaluator at the limit: ratios of whole processes, ours and another's in turn, with the goal of each.

``python -m benchmarks.table [--pairs 3] [--only WORD] [--quick]`` prints them as Markdown, with the machine and the versions. Ours also validates
every line. Ratios are medians over pairs, of processor time and of wall time. It ends with 1 when a goal is missed
(``--gross``: twice the goal is allowed, and processor time alone counts, since wall times of a busy machine are noise). ``--quick`` leaves out what takes minutes.
``TREC_EVAL`` may name a trec_eval built with -O3.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from benchmarks.generate import SIZES, names
from benchmarks.trec import OURS, Cost, commands, cost

RUNS = 100  # files in one call
SHAPES = (
    "lines in random order",
    "ungrouped topics",
    "tabs",
    "Windows line ends",
    "long floats",
    "gzip",
)
DEFECTS = {"one defect": 1.5, "ten thousand defects": 3.0}  # and what they may cost


class Row(NamedTuple):
    """Two commands, and what ours may take: processor time and (where it is another) wall time by the other's, and MiB.

    ``each`` is how often the other runs for one of ours.
    """

    what: str
    ours: list[str]
    other: list[str]
    against: str
    goal: float
    peak: float = 800
    each: int = 1
    wall: float | None = None


def shapes(lines: list[bytes]) -> dict[str, list[bytes]]:
    """The lines of a run in other orders and forms, all legal."""
    rng = random.Random(1)
    half = [line for i, line in enumerate(lines) if i % 1000 < 500]
    return {
        "lines in random order": rng.sample(lines, len(lines)),
        "ungrouped topics": half + [line for i, line in enumerate(lines) if i % 1000 >= 500],
        "tabs": [line.replace(b" ", b"\t") for line in lines],
        "Windows line ends": [line.replace(b"\n", b"\r\n") for line in lines],
        "long floats": [b" ".join((*w[:4], repr(float(w[4]) / 3).encode(), w[5])) + b"\n" for w in map(bytes.split, lines)],
    }  # fmt: skip


def broken(lines: list[bytes]) -> dict[str, list[bytes]]:
    """The lines with one defect in the middle, and with ten thousand."""
    middle = len(lines) // 2
    one = [*lines[:middle], lines[middle].replace(b" Q0 ", b" q0 "), *lines[middle + 1 :]]
    step = max(1, len(lines) // 10_000)
    many = [line.replace(b" Q0 ", b" q0 ") if i % step == 0 else line for i, line in enumerate(lines)]
    return {"one defect": one, "ten thousand defects": many}


def variant(data: Path, what: str) -> Path:
    """The file of medium size in another form."""
    # ir_measures knows what is packed by its name.
    return data / f"medium-{what.replace(' ', '-')}.run{'.gz' if what == 'gzip' else ''}"


def make(data: Path) -> None:
    """Write all variants of the run of medium size."""
    with (data / "medium.run").open("rb") as file:
        lines = file.readlines()
    for what, form in (shapes(lines) | broken(lines)).items():
        with variant(data, what).open("wb") as file:
            file.writelines(form)
    with gzip.open(variant(data, "gzip"), "wb", 6) as packed:
        packed.writelines(lines)


def generated(data: Path, size: str) -> tuple[Path, Path]:
    """The run and the judgements of a size, made in a process of its own: a child's peak memory begins at its parent's."""
    maker = [sys.executable, "-m", "benchmarks.generate", str(data), "--sizes", size]
    subprocess.run(maker, check=True, stdout=subprocess.DEVNULL)
    return data / f"{size}.run", data / f"{size}.qrels"


def plain(data: Path, size: str, goal: float, peak: float) -> Row:
    """Validating and scoring a run as generated, against ir_measures."""
    both = commands(*generated(data, size))
    spec = SIZES[size]
    what = f"{spec.topics:,} x {spec.depth:,}"
    return Row(what, both[OURS], both["ir_measures"], "ir_measures", goal, peak)


def rows(data: Path, *, quick: bool) -> Iterator[Row]:
    """The rows of the table, whose files are made as they come."""
    yield plain(data, "small", 0.45, 150)
    yield plain(data, "medium", 0.20, 150)
    # In a process of its own, as above: it holds the lines.
    subprocess.run([sys.executable, "-m", "benchmarks.table", "--make", "--data", str(data)], check=True)
    run, qrels = data / "medium.run", data / "medium.qrels"
    for what in SHAPES:
        both = commands(variant(data, what), qrels)
        yield Row(f"1,000 x 1,000, {what}", both[OURS], both["ir_measures"], "ir_measures", 0.6)
    for what, goal in DEFECTS.items():
        checked, without = (
            [sys.executable, "-m", "evaluator", "check", str(one)] for one in (variant(data, what), run)
        )
        yield Row(f"1,000 x 1,000, {what}, checked", checked, without, "ours without", goal)
    both = commands(data / "small.run", data / "small.qrels")
    many = both[OURS][:5] + [str(data / "small.run")] * RUNS + both[OURS][6:]
    yield Row(f"{RUNS} runs of 50 x 1,000 in one call", many, both["ir_measures"], "ir_measures, one process each", 0.25, 150, RUNS)  # fmt: skip
    if not quick:
        yield from large(data)


def large(data: Path) -> Iterator[Row]:
    """Those of seven million lines."""
    yield plain(data, "large", 0.15, 150)._replace(wall=0.10)
    both = commands(data / "large.run", data / "large.qrels")
    if peer := os.environ.get("TREC_EVAL"):
        asked = [word for m in ("ndcg_cut.5,10", "map", "recip_rank", "P.10", "recall.1000") for word in ("-m", m)]  # fmt: skip
        theirs = [peer, *asked, str(data / "large.qrels"), str(data / "large.run")]
        yield Row("6,980 x 1,000", both[OURS], theirs, "trec_eval", 0.25, 150)
    corpus = data / "large.ids"
    if not corpus.exists():
        import numpy as np

        with corpus.open("w") as file:
            for start in range(0, SIZES["large"].corpus, 100_000):
                end = min(start + 100_000, SIZES["large"].corpus)
                file.writelines(one + "\n" for one in names(np.arange(start, end)))
    check = [sys.executable, "-m", "evaluator", "check", str(data / "large.run")]
    with_ids = [*check, "--corpus", str(corpus)]
    yield Row("6,980 x 1,000, checked with 8.8 M ids", with_ids, check, "ours without", 1.5, 250)


def compare(row: Row, pairs: int) -> tuple[Cost, Cost, float, float]:
    """The medians of ours and of the other, and of their ratios: processor time and wall time."""
    cost(row.ours, fine=(0, 1))  # warms the caches, also ours of ids
    seen = [(cost(row.ours, fine=(0, 1)), cost(row.other)) for _ in range(pairs)]
    ours, other = (
        Cost(*map(statistics.median, zip(*column, strict=True))) for column in zip(*seen, strict=True)
    )
    cpu = statistics.median(a.cpu / (b.cpu * row.each) for a, b in seen)
    return ours, other, cpu, statistics.median(a.wall / (b.wall * row.each) for a, b in seen)


def main() -> int:
    """Print the table. Returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.table", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gross", action="store_true", help="allow twice the goals")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir(), "proctor-benchmarks"))
    args = parser.parse_args()
    if args.make:
        make(args.data)
        return 0
    os.environ.setdefault("EVALUATOR_CACHE", str(args.data / "ids"))
    versions = ", ".join(f"{one} {version(one)}" for one in ("numpy", "ir_measures", "pytrec_eval-terrier"))
    load = f"load {os.getloadavg()[0]:.1f}"
    print(
        f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}, {versions}, {load}\n"
    )
    print("| what | ours: CPU s | MiB | other: CPU s | MiB | ratio: CPU | wall | goal | against |")
    print("|---|---|---|---|---|---|---|---|---|")
    missed = []
    for row in rows(args.data, quick=args.quick):
        if args.only not in row.what:
            continue
        ours, other, cpu, wall = compare(row, args.pairs)
        print(
            f"| {row.what} | {ours.cpu:.2f} | {ours.peak:.0f} | {other.cpu:.2f} | {other.peak:.0f} "
            f"| {cpu:.2f} | {wall:.2f} | {row.goal:.2f}, wall {row.wall or row.goal:.2f}, {row.peak:.0f} MiB | {row.against} |",
            flush=True,
        )
        # Wall times of a busy machine are noise, so where bars are coarse they do not count.
        over = cpu > row.goal * 2 if args.gross else cpu > row.goal or wall > (row.wall or row.goal)
        if over or ours.peak > row.peak:
            missed.append(row.what)
    if missed:
        print(f"GOAL MISSED: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
