"""Report judging at size: the index of a million documents, and scoring from stored judgments.

``python -m benchmarks.argue [--documents 1000000] [--runs 50]`` generates the files, runs whole processes, and prints
Markdown. It ends with 1 when indexing or look-ups take more than 500 MiB, or scoring more than its bar, or when the offline judge takes
more than twice its goal for a question about the reports of this repository's baselines.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.trec import cost

BAR_MIB = 500
GOAL_QUESTION = 0.02  # CPU seconds of the offline judge
ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "tasks" / "report-generation" / "datasets" / "test"
BASELINES = ROOT / "submissions" / "baselines"
BAR_SCORING = 30.0  # CPU seconds for 50 runs on 50 topics
WORDS = 150  # of a document
LOOKUPS = 10_000
TOPICS, SENTENCES, NUGGETS = 50, 30, 15

INDEX = """
import sys
from pathlib import Path
from evaluator.argue import open_collection
with open_collection(Path(sys.argv[1])) as found:
    assert len(found) == int(sys.argv[2]), len(found)
"""
LOOK_UP = """
import random, sys
from pathlib import Path
from benchmarks.argue import name_of
from evaluator.argue import open_lookup
rng, count = random.Random(2), int(sys.argv[2])
with open_lookup(Path(sys.argv[1])) as found:
    for _ in range(int(sys.argv[3])):
        assert found.text(name_of(rng.randrange(count))) is not None
"""
SCORE = """
import sys
from pathlib import Path
from evaluator.argue import load_judgments, load_nuggets, score_runs, write_scores
banks = load_nuggets(Path(sys.argv[1], "nuggets.jsonl"))
runs = list(score_runs(load_judgments(Path(sys.argv[1], "judgments.jsonl")), banks).values())
write_scores(runs, Path(sys.argv[1], "scores.tsv"))
"""
JUDGE = """
import asyncio, gzip, json, sys, time
from pathlib import Path
from evaluator.argue import Report, load_nuggets
from evaluator.argue.judges.lexical import LexicalJudge
from evaluator.argue.judging import Judging
data, out = Path(sys.argv[1]), Path(sys.argv[2])
with gzip.open(data / "inputs" / "documents.jsonl.gz") as lines:
    texts = {row["id"]: row["text"] for row in map(json.loads, lines)}
banks = load_nuggets(data / "truths" / "nuggets")
reports = [Report.model_validate_json(line) for line in (out / "reports.jsonl").open()]
judging = Judging(LexicalJudge())
began = time.process_time()
asyncio.run(judging.reports((one, banks[one.topic_id], texts.get) for one in reports if one.topic_id in banks))
print(judging.counts.total, time.process_time() - began)
"""


def name_of(i: int) -> str:
    """The id of a document: in no order, as identifiers in real collections are."""
    return f"{i * 2_654_435_761 % 2**32:08x}-{i:012x}"


def documents(path: Path, count: int) -> None:
    """Write a collection, about a kilobyte a document; compressed if the name ends in ``.gz``."""
    rng = random.Random(1)
    words = [f"w{i:x}" for i in range(5000)]
    pages = [" ".join(rng.choices(words, k=WORDS)) for _ in range(997)]
    with gzip.open(path, "wt", 1) if path.suffix == ".gz" else path.open("w") as file:
        for i in range(count):
            file.write(
                json.dumps({"id": name_of(i), "title": f"Document {i}", "text": pages[i % 997]}) + "\n"
            )


def judgments(folder: Path, runs: int) -> None:
    """Write nuggets and complete judgments of ``runs`` runs on 50 topics, with the texts of the cited documents."""
    from evaluator.argue import Cited, JudgedReport, Match, Segment, load_nuggets, write_judgments
    from evaluator.argue.formats import judgments as j

    rng = random.Random(3)
    with (folder / "nuggets.jsonl").open("w") as file:
        for topic in range(TOPICS):
            bank = [
                {
                    "question": f"question {n}?",
                    "aggregator_type": "AND" if n % 5 == 0 else "OR",
                    "importance": "vital" if n % 3 == 0 else "okay",
                    "answers": [
                        {"answer": f"answer {a}", "references": [f"d{rng.randrange(200)}" for _ in range(5)]}
                        for a in range(4)
                    ],
                }
                for n in range(NUGGETS)
            ]
            file.write(json.dumps({"query_id": f"t{topic}", "nugget_bank": bank}) + "\n")
    banks = load_nuggets(folder / "nuggets.jsonl")
    text = "word " * 300

    def one(run: int, topic: str) -> JudgedReport:
        segments = []
        for s in range(SENTENCES):
            docs = [f"d{d}" for d in rng.sample(range(200), rng.randrange(4))]
            made = [] if docs else [j.requires_citation(True, "m"), j.first_instance(rng.random() < 0.5, "m")]
            for doc in docs:
                pairs = [p for p in banks[topic].candidates(doc) if rng.random() < 0.5]
                made.append(j.relevance(doc, banks[topic].relevant(doc)))
                made.append(
                    j.answers(doc, [Match(n.question, (a.text,), n.importance) for n, a in pairs], "m")
                )
                made.append(j.attested(doc, rng.random() < 0.8, "m"))
            segments.append(Segment(f"Sentence {s}.", tuple(Cited(d, text) for d in docs), tuple(made)))
        return JudgedReport(topic, f"run{run}", tuple(segments))

    write_judgments((one(run, topic) for run in range(runs) for topic in banks), folder / "judgments.jsonl")


def judged(folder: Path) -> Iterator[tuple[str, int, float]]:
    """Each baseline of the task ``report-generation`` judged offline: its name, questions, and processor seconds without starting."""
    inputs = {"inputDataset": str(REPORTS / "inputs"), "PYTHONPATH": str(BASELINES / "report-extractive")}
    for name in ("extractive", "uncited", "hallucinated"):
        out = folder / name
        out.mkdir()
        program = BASELINES / f"report-{name}" / f"report_{name}.py"
        subprocess.run(
            [sys.executable, program], env=os.environ | inputs | {"outputDir": str(out)}, check=True
        )
        words = [sys.executable, "-c", JUDGE, str(REPORTS), str(out)]
        count, took = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        yield name, int(count), float(took)


def main() -> int:
    """Print one table, as Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.argue", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=50)
    args = parser.parse_args()
    bad = False
    print("| what | MB | wall s | CPU s | peak MiB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="proctor-argue-") as name:
        folder, count = Path(name), str(args.documents)
        for path in (folder / "c.jsonl", folder / "c.jsonl.gz"):
            documents(path, args.documents)
            index = path.with_name(path.name + ".index")
            for what, code, more in (
                ("index", INDEX, ()),
                ("open again", INDEX, ()),
                (f"{LOOKUPS:,} look-ups", LOOK_UP, (str(LOOKUPS),)),
            ):
                took = cost([sys.executable, "-c", code, str(path), count, *more])
                bad = bad or took.peak > BAR_MIB
                size = (index if what == "index" else path).stat().st_size / 1e6
                print(
                    f"| {path.name}, {args.documents:,} documents: {what} | {size:,.0f} | {took.wall:.1f} | {took.cpu:.1f} | {took.peak:.0f} |",
                    flush=True,
                )
            path.unlink()
            index.unlink()
        judgments(folder, args.runs)
        took = cost([sys.executable, "-c", SCORE, str(folder)])
        bad = bad or (args.runs <= 50 and took.cpu > BAR_SCORING)
        size = (folder / "judgments.jsonl").stat().st_size / 1e6
        print(
            f"| scoring {args.runs} runs on {TOPICS} topics, {SENTENCES} sentences each | {size:,.0f} | {took.wall:.1f} | {took.cpu:.1f} | {took.peak:.0f} |"
        )
        print("\n| reports judged offline | questions | CPU ms a question |\n|---|---|---|")
        rows = [*judged(folder)]
        rows.append(("all three", sum(n for _, n, _ in rows), sum(seconds for _, _, seconds in rows)))
        for name, asked, seconds in rows:
            print(f"| {name} | {asked} | {1000 * seconds / asked:.1f} |")
        bad = bad or seconds > 2 * GOAL_QUESTION * asked
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
