"""Our servers as processes: started as in a container, watched whole, ended as the engine ends them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parents[2]
CANARY = "sk-canary-7f3a9c51e2"


@dataclass
class Running:
    """A server process. ``output`` is everything it has printed so far; ``code`` is there after its end."""

    process: subprocess.Popen[str]
    where: Path | int | None = None
    output: list[str] = field(default_factory=list)
    code: int | None = None

    def client(self, **options: Any) -> httpx2.Client:
        """A client that reaches only this server."""
        if isinstance(self.where, Path):
            options["transport"] = httpx2.HTTPTransport(uds=str(self.where))
            return httpx2.Client(base_url="http://server", trust_env=False, timeout=60, **options)
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{self.where}", trust_env=False, timeout=60, **options
        )

    @property
    def printed(self) -> str:
        return "".join(self.output)


@contextmanager
def serving(module: str, *arguments: object, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """``python -m <module> serve …`` until the end of the block; it has to say that it is ready, and to end cleanly."""
    words = [str(argument) for argument in arguments]
    process = subprocess.Popen(
        [sys.executable, "-m", module, "serve", *words],
        cwd=ROOT,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    running = Running(process)
    ready = threading.Event()
    bound: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            running.output.append(line)
            if line.startswith("ready"):
                bound.extend(line.split()[1:])
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert ready.wait(120), "it never became ready"
        assert process.poll() is None or not bound, running.printed
        socket = Path(words[words.index("--socket") + 1]) if "--socket" in words else None
        running.where = socket or (int(bound[0]) if bound else None)
        assert running.where is not None, running.printed
        yield running
    finally:
        process.terminate()
        try:
            running.code = process.wait(100)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(100)
        reader.join(60)
        assert process.stdout is not None
        process.stdout.close()


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@dataclass
class Place:
    """The folder of a gateway, and how to start one there."""

    folder: Path

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    @property
    def calls(self) -> Path:
        return self.folder / "calls.jsonl"

    @property
    def replies(self) -> Path:
        return self.folder / "replies.jsonl"

    def gateway(
        self, base_url: str, *arguments: object, key: bool = True, env: Any = None, **config: Any
    ) -> AbstractContextManager[Running]:
        """A gateway to ``base_url``; ``config`` are further fields of its definition."""
        definition = {"schema_version": 1, "base_url": base_url, "models": ["m"], "timeout": 5, "retries": 1}
        (self.folder / "gateway.json").write_text(json.dumps({**definition, **config}))
        given: list[object] = ["--config", self.folder / "gateway.json", "--socket", self.socket]
        if "--log" not in arguments:
            given += ["--log", self.calls]
        if "--replies" not in arguments:
            given += ["--replies", self.replies]
        if key:
            (self.folder / "key").write_text(f"{CANARY}\n")
            given += ["--key-file", self.folder / "key"]
        return serving("sidecars.gateway", *given, *arguments, env=env)


def question(content: str = "Is it so?", **parameters: Any) -> dict[str, Any]:
    """The body of a question."""
    messages = [{"role": "user", "content": content}]
    return {"model": "m", "messages": messages, "max_tokens": 10, "temperature": 0, **parameters}
