"""Whatever a participant writes, in any format: findings and no exception, in bounded time and memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.findings import Log
from evaluator.kinds.records.kind import KIND
from evaluator.scores import Sink
from tests.evaluator.kinds.records.records_runs import evaluate_records, records_request

SCHEMA: dict[str, Any] = {
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": ["string", "integer"]},
        "label": {"enum": ["a", "b", 1, True]},
        "n": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "$defs": {
        "tree": {
            "type": "object",
            "propertyNames": {"maxLength": 3},
            "additionalProperties": {"$ref": "#/$defs/tree"},
        }
    },
}
PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"id"', b'"label"', b'"n"', b'"tree"', b":", b",", b"\t", b"\n", b"\r\n", b'"', b'"a"', b"1", b"1e999", b"NaN",
     b'"\\ud800"', b"\xef\xbb\xbf", b"\xff", b"\0", b"[" * 70, b"9" * 50, b"id,label,n\n", b"id\tlabel\n", b"\x1f\x8b", b'{"id":1}', b"\x1b[2J"]
)  # fmt: skip
RECORD = st.dictionaries(st.sampled_from(["id", "label", "n", "tree", "\x1b"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6))  # fmt: skip
FILES = (
    st.binary(max_size=300)
    | st.lists(PIECES, max_size=40).map(b"".join)
    | st.lists(RECORD, max_size=5).map(lambda rows: "\n".join(map(json.dumps, rows)).encode())
    | st.lists(RECORD, max_size=5).map(
        lambda rows: json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass")
    )
)


def run(
    folder: Path, data: bytes, form: str, severities: dict[str, str], schema: dict[str, Any] = SCHEMA
) -> Sink:
    (folder / "run").write_bytes(data)
    truths = folder / "truths.jsonl"
    truths.write_text('{"id":"1","label":"a","n":1}\n{"id":"a","label":"b","n":2}\n')
    outputs = [{"path": "run", "schema": schema, "format": form}]
    request = records_request(
        folder, outputs, {"a": "Accuracy(label)", "m": "MAE(n)"},
        run_file="run", severities=severities, public=True, max_bytes=64 << 20,
    )  # fmt: skip
    KIND.check(folder / "run", folder, request, Log("run", severities))
    return evaluate_records(request)


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv"])
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=FILES, lenient=st.booleans())
def test_any_bytes_give_findings_that_can_be_printed(
    tmp_path: Path, form: str, data: bytes, lenient: bool
) -> None:
    sink = run(
        tmp_path, data, form, {"F401": "defect", "F101": "warning", "F409": "warning"} if lenient else {}
    )
    assert all(one.message.isprintable() for one in sink.findings.sorted())
    assert all(0 <= one["value"] < 1e150 for one in sink.aggregates.values())
    sink.write(tmp_path)


SLOW = {
    "an open quote over many lines": ("csv", b"id,label\n1," + b'"' + (b"x" * 99 + b"\n") * 200_000),
    "cells in quotes over many lines": ("csv", b"id,label\n1" + (b',"' + (b"x" * 99 + b"\n") * 10 + b'"') * 10_000),
    "many cells": ("csv", b"id,label\n" + b"," * 4_000_000 + b"\n"),
    "many columns": ("csv", b"id" + b",id" * 200_000),
    "an entry without an end": ("json", b"[" + b'{"a":' * 1_000_000),
    "many small entries": ("json", b"[" + b"{}," * 60_000 + b"{}]"),
    "wrong entries in one record": ("jsonl", (b'{"id":1,"tree":{' + b",".join(b'"k%d":1' % n for n in range(200_000)) + b"}}\n") * 2),
    "broken lines": ("jsonl", b"{\n" * 50_000),
    "double keys": ("jsonl", b'{"id":1,"id":2}\n' * 30_000),
    "long keys": ("jsonl", b'{"' + b"k" * 4_000_000 + b'":1}\n'),
    "no line ends": ("jsonl", b"x" * 30_000_000),
    "deep trees": ("jsonl", (b'{"id":1,"tree":' + b'{"a":' * 60 + b"{}" + b"}" * 60 + b"}\n") * 5_000),
}  # fmt: skip


# Each of these gzip members gives a few bytes of one entry that does not end for long.
SLOW["an entry in many pieces"] = ("json", gzip.compress(b'[{"id":"') + gzip.compress(b"x" * 50, 1) * 60_000)


@pytest.mark.parametrize("name", SLOW)
def test_large_hostile_files_take_bounded_time(tmp_path: Path, name: str) -> None:
    form, data = SLOW[name]
    start = time.process_time()
    sink = run(tmp_path, data, form, {})
    assert sink.findings.invalid and time.process_time() - start < 40


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Two hundred thousand records of which the dataset has two, with long ids that differ, need as much memory as a thousand."""
    (tmp_path / "s.json").write_text('{"type": "object"}')
    (tmp_path / "t.jsonl").write_text('{"id":"1","label":"a"}\n')
    peaks = []
    for count in (1_000, 200_000):
        with (tmp_path / "run.jsonl").open("w") as file:
            file.writelines(f'{{"id":"{n:0200}","label":"a{n}"}}\n' for n in range(count))
        code = (
            "import resource, sys; from evaluator.__main__ import main; main(sys.argv[1:]); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        words = ["records", "run.jsonl", "--schema", "s.json", "--truths", "t.jsonl", "-m", "Accuracy(label)"]
        done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=200,
                              env={"PYTHONPATH": str(Path(__file__).parents[4])}, check=False)  # fmt: skip
        peaks.append(int(done.stdout.splitlines()[-1]) / 1024)
    assert peaks[1] < peaks[0] + 30, peaks
