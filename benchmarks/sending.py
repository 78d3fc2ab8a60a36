"""What handing in a large image takes of memory: of who sends it, of the front, and of work that puts it together.

``python -m benchmarks.sending [--mib 5120]`` makes an image archive of so many MiB in eight layers, starts a front, sends the parcel
as ``runner submit --to`` does, and unpacks it as work does. Each of the three is a process of its own; of each the
highest resident memory is read (``VmHWM``) before and after. The bar: none grows by more than 96 MiB, whatever the size. A
second hand-in with one layer changed has to send little more than this layer. The time is that of three processes on this machine.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from runner.cli.remote.client import Client
from runner.cli.remote.servers import Server
from runner.cli.remote.uploading import CHUNK, upload
from runner.exchange.access import Access, Grant, Token, verifier
from runner.exchange.published import Publisher
from runner.model.limits import MIB
from runner.submissions.bundle import Bundle, write_bundle
from runner.submissions.parcel import note_parts, parcel, parts_of, unpack

BAR = 96.0  # MiB
LAYERS = 8
TEAM = "bench"


class _Layer(io.RawIOBase):
    """So many bytes that no other layer begins with, made while they are read."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__()
        self._left, self._block = size, (name.encode() + os.urandom(MIB))[:MIB]

    def read(self, size: int = -1) -> bytes:
        found = self._block[: min(size, self._left)]
        self._left -= len(found)
        return found


def make(folder: Path, mib: int, layers: int = LAYERS) -> Bundle:
    """A bundle with an image archive of so many MiB; what is in its layers no engine could use."""
    folder.mkdir(parents=True)
    with tarfile.open(folder / "image", "w") as tar:
        for n in range(layers):
            entry = tarfile.TarInfo(f"{n}/layer.tar")
            entry.size = mib * MIB // layers
            tar.addfile(entry, _Layer(entry.size, f"{folder.name} {n}"))
    (folder / "submission.yaml").write_text("task: mini\n")
    image = {
        "id": "sha256:" + "1" * 64,
        "repo_digest": None,
        "platform": "linux/amd64",
        "archive": "image.tar",
    }
    data: dict[str, Any] = {
        **{"schema_version": 1, "team": TEAM, "software": "one", "task": "mini", "scenarios": ["default"]},
        **{
            "image": image,
            "runs": [],
            "command": None,
            "tag": "one",
            "description": "",
            "method": "automatic",
        },
        **{"inputs": {}, "check": None, "packed": "2031-01-01T00:00:00Z"},
    }
    files = {"submission.yaml": folder / "submission.yaml", "image.tar": folder / "image"}
    return write_bundle(folder / "bundle", data, files, move=True)


def peak(pid: int | str = "self") -> float:
    """The highest resident memory of a process so far, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def send(url: str, token: str, bundle: Path, there: list[str]) -> dict[str, Any]:
    """Send the parcel of a bundle; its size, the upload's id, and what this process took."""
    from runner.submissions.bundle import read_bundle

    made = read_bundle(bundle, verify=False)
    with Client(Server("bench", url, token, TEAM)) as client:
        client.all("api-upload", "uploads")
        before, began = peak(), time.monotonic()
        sent = parcel(made, there)
        with io.BufferedReader(sent, CHUNK) as file:
            id = upload(client, file, sent.size, sent.sha256, lambda done: None)
    return {"grew": peak() - before, "seconds": time.monotonic() - began, "size": sent.size, "id": id}


def put_together(path: Path, registered: Path, target: Path) -> dict[str, Any]:
    """Unpack a parcel; what this process took."""
    own = parts_of(registered, [one.name for one in registered.iterdir()])
    before, began = peak(), time.monotonic()
    unpack(path, own, target / "bundle")
    note_parts(target)
    return {"grew": peak() - before, "seconds": time.monotonic() - began}


def apart(role: str, *arguments: str) -> dict[str, Any]:
    """One of these in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.sending", "--role", role, *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def measure(root: Path, mib: int) -> list[tuple[str, float, float, float]]:
    """Hand in an image, and one with a layer more: for each step MiB that were moved, seconds, and MiB by which it grew."""
    exchange, registered = root / "exchange", root / "registered"
    registered.mkdir()
    Publisher(exchange / "published").publish({})
    token = Token.new()
    grant = Grant(token.id, verifier(token.key), "a-" + "0" * 16, "team", TEAM, ("read", "hand-in"))
    Access({token.id: grant}).write(exchange / "published")
    command = ["front", "--bind", "127.0.0.1:0", "--exchange", str(exchange), "--state", str(root / "state")]
    front = subprocess.Popen([sys.executable, "-m", "runner", *command], stdout=subprocess.PIPE, text=True)
    try:
        url = _ready(front.stdout)
        make(root / "first", mib)
        rows = []
        apart("send", url, str(token), str(_small(root)), "")  # the front has its modules then
        before = peak(front.pid)
        sent = apart("send", url, str(token), str(root / "first/bundle"), "")
        rows.append(("send", sent["size"] / MIB, sent["seconds"], sent["grew"]))
        rows.append(("front", sent["size"] / MIB, sent["seconds"], peak(front.pid) - before))
        (registered / "one").mkdir()
        path = exchange / "inbox/.uploads" / sent["id"]
        took = apart("unpack", str(path), str(registered), str(registered / "one"))
        rows.append(("put together", sent["size"] / MIB, took["seconds"], took["grew"]))
        again = apart("send", url, str(token), str(root / "first/bundle"), str(registered))
        rows.append(("send the same again", again["size"] / MIB, again["seconds"], again["grew"]))
        return rows
    finally:
        front.terminate()
        front.wait(60)


def _small(root: Path) -> Path:
    return make(root / "small", 1).folder


def _ready(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().split()[1]


def main(arguments: list[str] | None = None) -> int:
    """Print one table, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sending")
    parser.add_argument("--mib", type=int, default=5120)
    parser.add_argument("--role", choices=("send", "unpack"))
    parser.add_argument("rest", nargs="*")
    args = parser.parse_args(arguments)
    if args.role == "send":
        url, token, bundle, known = args.rest
        own = parts_of(Path(known), ["one"]) if known else {}
        print(json.dumps(send(url, token, Path(bundle), list(own))))
        return 0
    if args.role == "unpack":
        print(json.dumps(put_together(*map(Path, args.rest))))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-sending-") as name:
        rows = measure(Path(name), args.mib)
    print("| step | MiB | s | grew by MiB |")
    print("|---|---|---|---|")
    for step, size, seconds, grew in rows:
        print(f"| {step} | {size:.1f} | {seconds:.1f} | {grew:.1f} |")
    if max(grew for *_, grew in rows) > BAR or rows[-1][1] > 1:
        print("beyond the bar", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
