"""What a download of a large file costs the front: its memory beside the file's size, its pace, and how long publishing it takes.

``python -m benchmarks.downloads [--gib 1]``: the file is made up, published in pieces, and got over real HTTP as a whole and in
ranges, by several at once.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from runner.exchange.pieces import keep
from runner.exchange.published import FILE, Object, Publisher
from schemas import canonical

BLOCK = 1 << 20
WHERE = "/tasks/mini/data/dev/inputs/large.bin"


def peak(pid: int) -> float:
    """The most memory (MiB) that a process had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def written(path: Path, size: int) -> str:
    """Write a file that does not compress; its SHA-256."""
    digest, block = hashlib.sha256(), hashlib.sha256(b"block").digest() * (BLOCK // 32)
    with path.open("wb") as file:
        for n in range(size // BLOCK):
            part = n.to_bytes(8, "big") + block[8:]
            digest.update(part)
            file.write(part)
    return digest.hexdigest()


@contextmanager
def front(exchange: Path, state: Path) -> Iterator[tuple[str, int]]:
    """The address and the process id of a front as ``runner front`` starts it."""
    command = [
        sys.executable,
        "-m",
        "runner",
        "front",
        "--exchange",
        str(exchange),
        "--state",
        str(state),
        "--bind",
        "127.0.0.1:0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if "ready" in line)
            yield line.split()[-1], process.pid
        finally:
            process.terminate()


def got(url: str, start: int) -> tuple[str, int]:
    """SHA-256 and bytes of what the front sends from ``start`` on."""
    digest, size = hashlib.sha256(), 0
    with requests.get(url + WHERE, headers={"Range": f"bytes={start}-"}, stream=True, timeout=600) as said:
        for block in said.iter_content(BLOCK):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def main(given: Sequence[str] | None = None) -> int:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description="What a download of a large file costs the front.")
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--readers", type=int, default=4)
    options = parser.parse_args(given)
    size = int(options.gib * 1024) * BLOCK
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        digest = written(root / "large.bin", size)
        to, began = Publisher(root / "exchange/published"), time.monotonic()
        pieces = {**keep(to, root / "large.bin").as_dict(), "name": "large.bin"}
        print(
            f"published {size / BLOCK:,.0f} MiB in {len(pieces['pieces'])} pieces: {time.monotonic() - began:.1f} s"
        )
        one = Object(
            WHERE.removeprefix("/tasks/").replace("mini/data", "data/mini"),
            FILE,
            "large.bin",
            to.keep(canonical(pieces)),
        )
        to.publish({"public": [one]})
        to.alive()
        with front(root / "exchange", root / "state") as (url, pid):
            requests.get(f"{url}/", timeout=60)
            before = peak(pid)
            for what in ("first (pieces are compared with their names)", "second"):
                began = time.monotonic()
                assert got(url, 0) == (digest, size), "other content"
                took = time.monotonic() - began
                print(
                    f"{what}: {took:.1f} s, {size / BLOCK / took:,.0f} MiB/s, peak +{peak(pid) - before:.1f} MiB"
                )
            threads = [threading.Thread(target=got, args=(url, size // 2)) for _ in range(options.readers)]
            began = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took = time.monotonic() - began
            print(f"{options.readers} halves at once: {took:.1f} s, peak +{peak(pid) - before:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
