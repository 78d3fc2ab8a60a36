"""A million records: how long validators take, and how long it takes to read, validate, join and score them.

``jsonschema`` and ``fastjsonschema`` are measured on fewer records; ``fastjsonschema`` only where it is installed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jiter import from_json

from evaluator.findings import Log
from evaluator.kinds.records.kind import KIND
from evaluator.kinds.records.schema import validator
from evaluator.request import MeasureRequest, Request
from evaluator.scores import Sink

TIMES = 3
LABELS = ["positive", "negative", "neutral"]
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["id", "label", "score"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^q[0-9]+$", "maxLength": 20},
        "label": {"enum": LABELS},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "spans": {
            "type": "array",
            "maxItems": 20,
            "items": {
                "type": "object",
                "required": ["start", "end"],
                "additionalProperties": False,
                "properties": {
                    "start": {"type": "integer", "minimum": 0},
                    "end": {"type": "integer", "minimum": 0},
                },
            },
        },
        "note": {"type": "string", "maxLength": 500},
    },
}
MEASURES = {"accuracy": "Accuracy(label)", "f1": "F1(label)", "mae": "MAE(score, range=[0, 1])"}


def lines(count: int, seed: int) -> Iterator[str]:
    """Records as JSON Lines."""
    rng = random.Random(seed)
    for number in range(count):
        spans = [{"start": 3, "end": 9}] * rng.randrange(3)
        record = {
            "id": f"q{number}",
            "label": rng.choice(LABELS),
            "score": rng.random(),
            "spans": spans,
            "note": "some words",
        }
        yield json.dumps(record) + "\n"


def timed(name: str, work: Callable[[], object], count: int, times: int = 1) -> float:
    """Print and return processor seconds per million records: the median of some times, since machines have other work, too."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) / count * 1e6)
    found = statistics.median(taken)
    print(f"{name:<58} {found:8.2f} s", flush=True)
    return found


def validators(path: Path, count: int) -> float:
    """Measure the validators; returns what reading and validating takes with the one that was chosen."""
    made = validator(SCHEMA, "schema")

    def chosen() -> None:
        with path.open("rb") as file:
            assert all(made.is_valid(json.loads(line)) for line in file)

    whole = timed("json.loads and jsonschema-rs", chosen, count, TIMES)
    timed("jiter and jsonschema-rs", lambda: quickest(path, made), count)
    with path.open("rb") as file:
        some = [json.loads(line) for _, line in zip(range(min(count, 200_000)), file, strict=False)]
    timed("jsonschema-rs, of records in memory", lambda: [made.is_valid(r) for r in some], len(some))
    try:
        import fastjsonschema
    except ImportError:
        print("fastjsonschema is not installed")
    else:
        fast = fastjsonschema.compile(SCHEMA)
        timed("fastjsonschema, of records in memory", lambda: [fast(r) for r in some], len(some))
    import jsonschema

    slow, few = jsonschema.Draft202012Validator(SCHEMA), some[:20_000]
    timed("jsonschema, of records in memory", lambda: [slow.is_valid(r) for r in few], len(few))
    return whole


def quickest(path: Path, made: Any) -> None:
    """Read and validate a file with the parser that we use, too, and nothing besides."""
    with path.open("rb") as file:
        assert all(made.is_valid(from_json(line)) for line in file)


def scored(run: Path, truths: Path) -> Sink:
    """What the kind makes of the run."""
    measures = tuple(
        MeasureRequest(name, text, truths.name, "lower" if name == "mae" else "higher")
        for name, text in MEASURES.items()
    )
    options = {"outputs": [{"path": run.name, "schema": SCHEMA}]}
    request = Request(
        "records",
        run.parent,
        run.parent,
        run.parent,
        run.parent,
        run.name,
        options=options,
        measures=measures,
    )
    sink = Sink(Log(run.name))
    KIND.evaluate(run, run.parent, truths.parent, request, sink)
    assert not sink.findings.counts, sink.findings.counts
    return sink


def memory(run: Path, truths: Path, schema: Path) -> float:
    """Highest memory of a process that validates and scores a run, in MiB."""
    code = (
        "import resource, sys; from evaluator.__main__ import main; main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    words = ["records", str(run), "--schema", str(schema), "--truths", str(truths)]
    words += [word for text in MEASURES.values() for word in ("-m", text)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def written(path: Path, count: int, seed: int, form: str) -> Path:
    """A file of records in a format, beside ``path``; tables have no spans."""
    made = path.with_suffix(f".{form}")
    with made.open("w") as file:
        if form == "jsonl":
            file.writelines(lines(count, seed))
        elif form == "json":
            file.writelines(f"{',' if n else '['}{line}" for n, line in enumerate(lines(count, seed)))
            file.write("]\n")
        else:
            tab = "\t" if form == "tsv" else ","
            names = ("id", "label", "score", "note")
            file.write(tab.join(names) + "\n")
            rows = map(json.loads, lines(count, seed))
            file.writelines(tab.join(str(row[name]) for name in names) + "\n" for row in rows)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    count = parser.parse_args().records
    missed = []
    with tempfile.TemporaryDirectory() as scratch:
        schema = Path(scratch) / "schema.json"
        schema.write_text(json.dumps(SCHEMA))
        truths = written(Path(scratch) / "truths", count, 1, "jsonl")
        run = written(Path(scratch) / "run", count, 2, "jsonl")
        print(f"{count:,} records, {run.stat().st_size / 2**20:,.0f} MiB; processor seconds per million")
        alone = validators(run, count)
        loaded = timed("json.loads, of the truths", lambda: load(truths), count, TIMES)
        options = {"outputs": [{"path": run.name, "schema": SCHEMA}]}
        place = run.parent
        request = Request("records", place, place, place, place, run.name, options=options)
        log = Log(run.name)
        checked = timed("evaluator: strict reading, validating, ids", lambda: KIND.check(run, run, request, log), count, TIMES)  # fmt: skip
        whole = timed(
            "evaluator: the same, truths, three measures", lambda: scored(run, truths), count, TIMES
        )
        print(f"validating: {checked / alone:.2f} times json.loads and jsonschema-rs")
        print(
            f"validating and scoring: {whole / (alone + loaded):.2f} times these and json.loads of the truths, "
            f"{whole / alone:.2f} times these alone"
        )
        if whole > 2 * alone:
            missed.append(
                "validating and scoring takes more than twice what json.loads and jsonschema-rs take"
            )
        for form in ("jsonl", "json", "csv", "tsv"):
            peaks = []
            for name, size in (("few", 1_000), ("many", count)):
                file = written(Path(scratch) / name, size, 2, form)
                peaks.append(memory(file, truths, schema))
                file.unlink()
            print(f"memory with {count:,} truths: a run of 1,000 records as {form} {peaks[0]:,.0f} MiB, of all {peaks[1]:,.0f} MiB")  # fmt: skip
            if peaks[1] > peaks[0] + 64:
                missed.append(f"memory grows with a file of {form}")
    for one in missed:
        print(one)
    return 1 if missed else 0


def load(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


if __name__ == "__main__":
    sys.exit(main())
