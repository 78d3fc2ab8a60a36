"""``evaluator check`` needs little memory, whatever a large file repeats."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, islice, repeat
from pathlib import Path

import pytest

from evaluator.findings import Log
from evaluator.formats import dialogue

ROOT = Path(__file__).parents[2]
FILE_MIB = 12


# The peak of the process itself: the usage that the kernel reports for a child includes its parent, the test runner.
MEASURE = """
import re, runpy, sys
try:
    runpy.run_module("evaluator", run_name="__main__", alter_sys=True)
finally:
    with open("/proc/self/status") as status:
        print(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1], file=sys.stderr)
"""


def many(line: Callable[[int], bytes]) -> Iterator[bytes]:
    return map(line, count(1))


# Bounds in MiB for files of 12 MiB; the comments say what they needed when a topic was read in one piece.
SHAPES: dict[str, tuple[Callable[[], Iterator[bytes]], int]] = {
    "one line": (lambda: repeat(b"1 Q0 d1 1 1.0 tag\n"), 240),  # 344
    "three columns": (lambda: repeat(b"1 2 3\n"), 160),  # 705
    "no number as score": (lambda: repeat(b"1 Q0 d1 1 x tag\n"), 250),  # 419
    "empty lines": (lambda: repeat(b"\n"), 160),  # 574
    "many columns": (lambda: repeat(b"1 Q0 d1 1 1.0 tag " + b"a " * 30_000 + b"\n"), 160),  # 225
    "one document": (lambda: many(lambda n: b"1 Q0 d1 %d %d.0 tag\n" % (n, 9**9 - n)), 210),  # 251
    "other tags": (lambda: many(lambda n: b"1 Q0 d%d 1 1.0 tag%d\n" % (n, n)), 320),  # 398
}


def peak_of(folder: Path, *words: str) -> float:
    """Return the peak memory in MiB of the evaluator with these arguments."""
    program = subprocess.run(
        [sys.executable, "-c", MEASURE, *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.returncode in (0, 1)
    return int(program.stderr.splitlines()[-1]) / 1024


def write(path: Path, lines: Iterator[bytes], *, packed: bool = False) -> None:
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as file:
        size = 0
        while size < FILE_MIB << 20:
            size += file.write(b"".join(islice(lines, 20)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_topic_takes_bounded_memory(tmp_path: Path, shape: str) -> None:
    lines, bound = SHAPES[shape]
    write(tmp_path / "run.txt", lines())
    assert peak_of(tmp_path, "check", "run.txt") < bound


@pytest.mark.slow
def test_a_packed_line_takes_bounded_memory(tmp_path: Path) -> None:
    write(tmp_path / "run.txt.gz", repeat(b"1 Q0 d1 1 1.0 tag\n"), packed=True)
    assert peak_of(tmp_path, "check", "run.txt.gz") < 200  # 326


def test_more_debates_than_a_dataset_has_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogue, "MAX_CLAIMS", 3)
    (tmp_path / "run.jsonl").write_bytes(b"{}\n" * 1000)
    log = Log("run.jsonl")
    reads = dialogue.read_debates(tmp_path / "run.jsonl", log)
    assert len(reads) == 4 and log.lines == 4
    assert log.invalid and log.counts["F027"] == 1
