"""A small project for tests that go through the front doors: one toy task, softwares that are one line of code."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO
from unittest.mock import patch

from runner.model.config import Config

if TYPE_CHECKING:
    import pytest

DOCUMENTS = [f"doc-{n:02}" for n in range(1, 13)]

TASK: dict[str, Any] = {
    "schema_version": 1,
    "id": "mini",
    "title": "Mini",
    "kind": "adhoc",
    "datasets": [
        {"id": "dev", "visibility": "public", "topics": "queries.jsonl", "corpus": "documents.jsonl.gz"},
        {"id": "test", "visibility": "blinded", "topics": "queries.jsonl", "corpus": "documents.jsonl.gz"},
    ],
    "measures": [
        {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"},
        {"id": "p_10", "measure": "P@10", "truths": "qrels.txt"},
    ],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10"}],
    "limits": {"memory": "64MiB", "pids": 32, "wall_clock": "30s", "output": "4MiB", "tmp": "8MiB", "shm": "8MiB"},
    "evaluator": {"limits": {"memory": "512MiB", "wall_clock": "60s"}},
}  # fmt: skip

# A valid run: for every topic the documents in the order of the collection, or in the opposite one.
GOOD = """
import gzip, json, os, sys
root, out = os.environ["inputDataset"], os.environ["outputDir"]
docs = [json.loads(line)["docno"] for line in gzip.open(root + "/documents.jsonl.gz", "rt")]
if "reversed" in sys.argv: docs = docs[::-1]
with open(out + "/run.txt", "w") as run:
    for line in open(root + "/queries.jsonl"):
        for rank, doc in enumerate(docs[:10], 1):
            run.write(f"{json.loads(line)['qid']} Q0 {doc} {rank} {20 - rank} mini\\n")
print("all done")
"""
SLEEPER = "import time; print('asleep', flush=True); time.sleep(280)"


@dataclass
class Said:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        return self.out + self.err


@dataclass
class Project:
    """A project's folder, its data directory, and what is hidden."""

    root: Path
    home: Path
    truths: Path
    image: str = ""
    docker_host: str = "unix:///nonexistent/docker.sock"
    env: dict[str, str] = field(default_factory=dict)
    database: str | None = None  # of another kind than SQLite's

    @property
    def config(self) -> Config:
        return Config(
            root=self.root,
            home=self.home,
            truths=self.truths,
            private=self.private,
            news="at-once",
            database_url=self.database,
        )

    @property
    def private(self) -> Path:
        """Hidden inputs. Truths lie in a folder of their own, as the older setting has them."""
        return self.truths.with_name("private")

    def write_task(self, name: str = "mini", prefix: str = "", **changes: Any) -> Path:
        """Write the mini task under ``name``, with other top-level keys; topics and documents get ``prefix``."""
        data = {**deepcopy(TASK), "id": name, **changes}
        folder = self.root / "tasks" / name
        (self.root / "submissions").mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "task.yaml").write_text(json.dumps(data, indent=1))
        for dataset in data["datasets"]:
            inputs = folder / "datasets" / dataset["id"] / "inputs"
            hidden = dataset["visibility"] == "blinded" and not data.get("demo")
            inputs = self.private / name / dataset["id"] / "inputs" if hidden else inputs
            truths = self.truths / name / dataset["id"] if hidden else inputs.parent / "truths"
            mark = prefix if dataset["visibility"] == "blinded" else ""
            for one in (inputs, truths):
                one.mkdir(parents=True, exist_ok=True)
            topics = [f"{mark}{dataset['id']}-{n}" for n in range(1, 4)]
            documents = [mark + d for d in DOCUMENTS]
            inputs.joinpath("queries.jsonl").write_text(
                "".join(json.dumps({"qid": t, "query": f"{mark}words of {t}"}) + "\n" for t in topics)
            )
            with gzip.GzipFile(inputs / "documents.jsonl.gz", "wb", mtime=0) as file:
                file.write(
                    b"".join(json.dumps({"docno": d, "text": "x"}).encode() + b"\n" for d in documents)
                )
            truths.joinpath("qrels.txt").write_text(
                "".join(f"{t} 0 {d} {int(n < 3)}\n" for t in topics for n, d in enumerate(documents[:6]))
            )
        return folder

    def write_task_only(self, name: str = "mini", **changes: Any) -> None:
        """Write the definition again, with other top-level keys; inputs and truths stay as they are."""
        data = {**deepcopy(TASK), "id": name, **changes}
        (self.root / "tasks" / name / "task.yaml").write_text(json.dumps(data, indent=1))

    def software(self, name: str = "good", code: str = GOOD, *, team: str = "alpha", **keys: Any) -> str:
        """Write a software that runs ``code`` with python3; ``keys`` replace keys of submission.yaml."""
        folder = self.root / "submissions" / team / name
        folder.mkdir(parents=True, exist_ok=True)
        data: dict[str, Any] = {
            "task": "mini",
            "image": self.image,
            "command": ["python3", "-c", code],
            "tag": "mini",
        }
        data |= keys
        (folder / "submission.yaml").write_text(json.dumps({k: v for k, v in data.items() if v is not None}))
        return name

    def run_files(self, files: Mapping[str, str | bytes], *entries: Mapping[str, str], **at: str) -> Path:
        """Write a submission of run files: ``entries`` of ``run`` in submission.yaml; ``at``: team, name and task."""
        folder = self.root / "submissions" / at.get("team", "alpha") / at.get("name", "handed-in")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        data = {"task": at.get("task", "mini"), "run": entries}
        (folder / "submission.yaml").write_text(json.dumps(data))
        return folder

    def of_the_tree(self, folder: Path, module: str, main: str, **keys: Any) -> str:
        """A software of two files, ``main.py`` and the ``module`` that it imports, in an image that exists already."""
        code = f"import sys, types\nm = sys.modules[{module!r}] = types.ModuleType({module!r})\n"
        code += f"exec({(folder / f'{module}.py').read_text('utf-8')!r}, m.__dict__)\n"
        code += f"exec({(folder / f'{main}.py').read_text('utf-8')!r}, {{'__name__': '__main__'}})"
        return self.software(keys.pop("name", folder.name), code, **keys)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a call: nothing of this process but the path."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "RUNNER_ROOT": str(self.root),
            "RUNNER_HOME": str(self.home),
            "RUNNER_PRIVATE": str(self.private),
            "RUNNER_TRUTHS": str(self.truths),
            "RUNNER_NEWS": "at-once",  # tests do not wait for ten minutes: see tests/runner/work/test_news.py
            "RUNNER_ENGINE_FOR": "both-without-eviction",  # tests share the engine: see tests/conftest.py
            "DOCKER_HOST": self.docker_host,
            "RUNNER_BASES": self.image,  # the teams of a test share it
            **({"RUNNER_DATABASE": self.database} if self.database else {}),
            **self.env,
            **more,
        }

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Start ``runner`` and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "runner", *arguments],
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def call(
    project: Project,
    *arguments: str,
    expect: int | None = 0,
    env: dict[str, str] | None = None,
    timeout: float = 280,
) -> Said:
    """Run ``runner`` to its end; the exit code must be ``expect`` (None: any), and never is there a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "runner", *arguments],
        env=project.environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return _checked(Said(done.returncode, done.stdout.decode(), done.stderr.decode()), expect)


@contextmanager
def _captured(name: str, *, terminal: bool) -> Iterator[BinaryIO]:
    """Send a stream and its file descriptor, which subprocesses inherit, to a file; yield the file."""
    number = ("stdin", "stdout", "stderr").index(name)
    stream: TextIO = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if terminal:
        stream.isatty = lambda: True  # type: ignore[method-assign]
    before = os.dup(number)
    with TemporaryFile() as file, patch.object(sys, name, stream):
        os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            stream.flush()
            os.dup2(before, number)
            os.close(before)


def cli(
    project: Project,
    *arguments: str,
    expect: int | None = 0,
    env: dict[str, str] | None = None,
    typed: str | None = None,
) -> Said:
    """Run ``runner`` in this process, without a second of start-up; like :func:`call` in all else.

    With ``typed``, standard input and the stream of errors claim to be a terminal, at which this text is typed; the
    stream of errors may hold escape sequences then.
    """
    from runner.cli import output
    from runner.cli.main import main

    flags = (output.options.debug, output.options.quiet, output.options.actor)
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    environment = {"COLUMNS": "100", **project.environment(**(env or {}))}  # the width without a terminal
    stdin, terminal = io.StringIO(typed), typed is not None
    stdin.isatty = lambda: terminal  # type: ignore[method-assign]
    code: Any = 0
    with (
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "argv", ["runner", *arguments]),
        patch.object(sys, "stdin", stdin),
        _captured("stdout", terminal=False) as out,
        _captured("stderr", terminal=terminal) as err,
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            output.options.debug, output.options.quiet, output.options.actor = flags
            for number, handler in handlers:
                signal.signal(number, handler)
        for stream, file in ((sys.stdout, out), (sys.stderr, err)):
            stream.flush()
            file.seek(0)
        texts = [file.read().decode() for file in (out, err)]
    assert isinstance(code, int)
    return _checked(Said(code, *texts), expect, terminal)


def call_here(
    project: Project, arguments: Sequence[str], capsys: pytest.CaptureFixture[str] | None = None
) -> Said:
    """Run ``runner`` in this process and accept any exit code. What the test printed before is dropped."""
    if capsys is not None:
        capsys.readouterr()
    return cli(project, *arguments, expect=None)


def _checked(said: Said, expect: int | None, terminal: bool = False) -> Said:
    assert "Traceback" not in said.all, said.all
    assert terminal or "\x1b" not in said.all, said.all
    if expect is not None:
        assert said.code == expect, f"exit code {said.code}, not {expect}:\n{said.all}"
    return said


def exported(project: Project, run: str) -> Path:
    """The folder with all that ``runner export`` gives the organiser of a run."""
    folder = project.home.parent / "exported" / run
    if not folder.exists():
        call(project, "export", run, str(folder))
    return folder


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the files of an attempt or evaluation, by their names."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    return {name: entry["sha256"] for name, entry in files.items()}
