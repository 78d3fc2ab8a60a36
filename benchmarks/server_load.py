"""The load generator: a process of its own that asks a front over real sockets, and says what came of it.

``python -m benchmarks.server_load`` reads what to do from stdin (JSON) and prints what it saw (JSON). It is plain asyncio over
sockets, so that it takes as little of the processor as may be; what it took is in its answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

CHUNK = 8 * 1024 * 1024  # bytes of a part of an upload, as runner submit sends them
RUN_FILES = "/api/v1/tasks/bench/run-files"
POLL_SECONDS = 5.0  # between two questions of an open page whether it changed
WARM = 1.0  # seconds at the beginning that do not count


@dataclass
class Answer:
    """Status, size of the body in bytes as it was sent, entity tag, the body, and the header ``Location``."""

    status: int
    size: int
    etag: str
    body: bytes


class Connection:
    """A connection that is kept."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self.host, self.port, self.name = str(at.hostname), int(at.port or 80), at.netloc

    async def open(self) -> Connection:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port, limit=1 << 22)
        return self

    async def ask(
        self, path: str, headers: dict[str, str] | None = None, body: bytes | None = None, method: str = ""
    ) -> Answer:
        """Send a request and read its answer to the end."""
        method = method or ("GET" if body is None else "POST")
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.name}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b""))
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        size = int(fields.get("content-length", 0))
        found = await self.reader.readexactly(size) if size else b""
        return Answer(int(head[0].split()[1]), size, fields.get("etag", ""), found)

    def close(self) -> None:
        """Close it."""
        self.writer.close()


async def readers(url: str, path: str, count: int, seconds: float, headers: dict[str, str]) -> dict[str, Any]:
    """``count`` readers, each a page a second, begun evenly; a wait counts from when the page was due."""
    waits: list[float] = []
    statuses: dict[str, int] = {}
    sizes: set[int] = set()
    begun = time.perf_counter() + 0.2

    async def reader(number: int) -> None:
        connection = await Connection(url).open()
        for turn in range(int(seconds + WARM)):
            due = begun + turn + number / count
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            said = await connection.ask(path, headers)
            if turn >= WARM:
                waits.append(time.perf_counter() - due)
                statuses[str(said.status)] = statuses.get(str(said.status), 0) + 1
                sizes.add(said.size)
        connection.close()

    await asyncio.gather(*(reader(number) for number in range(count)))
    return {"waits": waits, "statuses": statuses, "bytes": max(sizes)}


async def busy(url: str, path: str, count: int, seconds: float, headers: dict[str, str]) -> dict[str, Any]:
    """``count`` connections, each asking again as soon as it was answered."""
    first = await (await Connection(url).open()).ask(path, headers)
    sent = dict(headers)
    if sent.pop("Cached", None):
        sent["If-None-Match"] = first.etag
    statuses: dict[str, int] = {}
    end = time.perf_counter() + seconds

    async def one() -> None:
        connection = await Connection(url).open()
        while time.perf_counter() < end:
            said = await connection.ask(path, sent)
            statuses[str(said.status)] = statuses.get(str(said.status), 0) + 1
        connection.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    took = time.perf_counter() - begun
    return {"statuses": statuses, "each": sum(statuses.values()) / took, "bytes": first.size}


async def hand_ins(url: str, path: str, tokens: dict[str, str], times: int) -> dict[str, Any]:
    """Every team hands in a file of its own, all at once and each ``times`` times at once."""
    gate = asyncio.Event()

    async def one(team: str, token: str) -> tuple[str, float, Answer]:
        connection = await Connection(url).open()
        await gate.wait()
        begun = time.perf_counter()
        said = await connection.ask(path, *_form(team, token))
        connection.close()
        return team, time.perf_counter() - begun, said

    tasks = [asyncio.create_task(one(team, token)) for team, token in tokens.items() for _ in range(times)]
    await asyncio.sleep(0.5)
    gate.set()
    found = await asyncio.gather(*tasks)
    answers = [{"team": team, "status": said.status, **json.loads(said.body)} for team, _, said in found]
    return {"waits": [wait for _, wait, _ in found], "answers": answers}


def _form(team: str, token: str) -> tuple[dict[str, str], bytes]:
    lines = "".join(f"1 Q0 d{n} {n} {200 - n}.0 {team}\n" for n in range(1, 101))
    parts = [
        f'name="{name}"\r\n\r\n{value}' for name, value in (("software", "at-once"), ("dataset", "test"))
    ]
    parts.append(f'name="file"; filename="run.txt"\r\nContent-Type: text/plain\r\n\r\n{lines}')
    body = "".join(f"--b\r\nContent-Disposition: form-data; {part}\r\n" for part in parts) + "--b--\r\n"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "multipart/form-data; boundary=b"}
    return headers, body.encode()


async def streams(url: str, path: str, count: int) -> dict[str, Any]:
    """Have ``count`` open pages ask whether they changed. Print ``open``, wait for a line on stdin, and until all know that the page
    changed."""
    shown = await (await Connection(url).open()).ask(path)
    tag = re.search(rb'data-tag="([0-9a-f]+)"', shown.body)
    if tag is None:
        raise SystemExit("the page does not follow")
    opened = [await Connection(url).open() for _ in range(count)]
    tasks = [asyncio.create_task(_news(one, f"/live?page={path}", tag[1])) for one in opened]
    sys.stdout.write("open\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    begun = time.perf_counter()
    done, waiting = await asyncio.wait(tasks, timeout=30)
    for task in waiting:
        task.cancel()
    for one in opened:
        one.close()
    waits = [task.result() - begun for task in done]
    return {"open": len(opened), "heard": len(waits), "waits": waits}


async def _news(one: Connection, path: str, tag: bytes) -> float:
    """Ask as site.js does until the tag of a page is another one; return when that was."""
    await asyncio.sleep(POLL_SECONDS * random.random())
    while (await one.ask(path)).body == tag:
        await asyncio.sleep(POLL_SECONDS)
    return time.perf_counter()


async def mix(
    url: str, tokens: dict[str, str], pages: dict[str, str], streams: int, uploads: int, size: int
) -> dict[str, Any]:
    """Open log streams and upload files, until a line comes on stdin; print ``open`` once all streams are open.

    Args:
        url: Address of the front.
        tokens: Token of each team. Streams and uploads are shared out evenly among the teams.
        pages: Page of each team whose log is followed.
        streams: Number of log streams.
        uploads: Number of uploads at a time. A finished upload is submitted, and the next one
            begins, at most one a second each: a team may send only so much.
        size: Bytes of one upload.

    Returns:
        Number of open ``streams``, of ``events`` with log text, of finished ``uploads`` and of bytes ``sent``.
    """
    counts: Counter[str] = Counter()
    teams = [list(tokens)[number % len(tokens)] for number in range(max(streams, uploads))]
    tasks = [
        asyncio.create_task(_follow_log(url, pages[team], tokens[team], counts)) for team in teams[:streams]
    ]
    tasks += [asyncio.create_task(_upload_again(url, tokens[team], size, counts)) for team in teams[:uploads]]
    stop = asyncio.get_running_loop().run_in_executor(None, _told_to_stop)
    finished, _ = await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for future in finished:
        await future  # an upload or stream that failed raises its error
    return {name: counts[name] for name in ("streams", "events", "uploads", "sent")}


def _told_to_stop() -> None:
    sys.stdout.write("open\n")
    sys.stdout.flush()
    sys.stdin.readline()


async def _follow_log(url: str, page: str, token: str, counts: Counter[str]) -> None:
    """Follow the page of a running run as site.js does, and count how often it is loaded again."""
    connection, tag, headers = await Connection(url).open(), b"", {"Authorization": f"Bearer {token}"}
    counts["streams"] += 1
    while True:
        now = (await connection.ask(f"/live?page={page}", headers)).body
        if now != tag:
            tag = now
            _expect(200, await connection.ask(page, headers))
            counts["events"] += 1
        await asyncio.sleep(POLL_SECONDS)


@dataclass(frozen=True)
class _File:
    """A file to upload: a part that is sent several times, and the digest of the whole."""

    part: bytes
    offsets: range
    sha256: str

    @classmethod
    def make(cls, size: int) -> _File:
        """Return a random file of ``size`` bytes, in parts as ``runner submit`` sends them."""
        part = random.randbytes(min(size, CHUNK))
        offsets, whole = range(0, size, len(part)), hashlib.sha256()
        for _ in offsets:
            whole.update(part)
        return cls(part, offsets, whole.hexdigest())


async def _upload_again(url: str, token: str, size: int, counts: Counter[str]) -> None:
    """Upload a file as ``runner submit`` does, submit it, and begin again, at most once a second."""
    connection, file = await Connection(url).open(), _File.make(size)
    headers = {"Authorization": f"Bearer {token}"}
    total = len(file.part) * len(file.offsets)
    for number in itertools.count():
        next_start = time.perf_counter() + 1.0
        for offset in file.offsets:
            part = {"Content-Range": f"bytes {offset}-{offset + len(file.part) - 1}/{total}"}
            where = f"/api/v1/uploads/{file.sha256}"
            answer = _expect(200, await connection.ask(where, {**headers, **part}, file.part, "PUT"))
            counts["sent"] += len(file.part)
        upload = json.loads(answer.body)["id"]
        form = {"software": f"upload-{number}", "dataset": "test", "upload": upload, "name": "run.txt"}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        _expect(202, await connection.ask(RUN_FILES, {**headers, **kind}, urlencode(form).encode()))
        counts["uploads"] += 1
        await asyncio.sleep(max(0.0, next_start - time.perf_counter()))


def _expect(status: int, answer: Answer) -> Answer:
    if answer.status != status:
        raise SystemExit(f"{answer.status} instead of {status}: {answer.body.decode()[:500]}")
    return answer


DOES = {one.__name__: one for one in (readers, busy, hand_ins, streams, mix)}


def generator() -> subprocess.Popen[str]:
    """A load generator that waits for what to do."""
    command = [sys.executable, "-m", "benchmarks.server_load"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main() -> int:
    """Do what one line of stdin says; print what came of it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    order = json.loads(sys.stdin.readline())
    begun = time.process_time()
    found = asyncio.run(DOES[order.pop("do")](**order))
    print(json.dumps({**found, "cpu": time.process_time() - begun}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
