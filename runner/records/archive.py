"""The run archive: one write-once folder for each attempt, its evaluations beside it, a hash of every file.

``<root>/<task>/<run id>/attempts/<n>/`` holds ``run.json``, ``lock.json``, ``output/``, ``logs/`` and
``manifest.json``; ``…/evaluations/<k>/`` the same for one evaluation. A folder is written under
``<root>/.tmp``, synced, and renamed to its place, so it is there as a whole or not at all, whenever the
process is killed. Nothing follows links, nothing but regular files is kept, and no file is read into memory
as a whole.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import PlatformError, Problem
from schemas import jsonl
from schemas.files import file_sha256 as sha256_of
from schemas.files import sync_folder

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from runner.records.events import Event

MANIFEST = "manifest.json"
MAX_JSON = 16 * 1024 * 1024
MAX_LINE = 1024 * 1024
_WRITTEN = jsonl.Rules(duplicates="last", bounded=False)  # our own parts wrote it
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_RUN = re.compile(r"[a-z0-9][a-z0-9.-]{0,250}")


@dataclass(frozen=True)
class Staging:
    """A folder being filled. It belongs to the process that began it; ``sweep`` leaves it alone until that dies.

    ``number`` is the attempt's (or the evaluation's) number, reserved when it was begun.
    """

    path: Path
    task: str
    run_id: str
    number: int
    lock: BaseFileLock = field(repr=False, compare=False)

    def __fspath__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Evaluation:
    """A sealed evaluation of an attempt: ``number`` counts from 1."""

    task: str
    run_id: str
    attempt: int
    number: int
    path: Path

    def record(self, *, check: bool = True) -> dict[str, Any]:
        """``evaluation.json``, checked against its schema unless told not to. Raises E307 when it is broken."""
        return read_json(self.path / "evaluation.json", "evaluation" if check else None)

    def result(self) -> dict[str, Any] | None:
        """``result.json`` as the evaluator wrote it, or None when the evaluation has none."""
        path = self.path / "result.json"
        return read_json(path, None) if path.is_file() else None

    def scores(self) -> Iterator[dict[str, Any]]:
        """The lines of ``scores.jsonl``, one at a time."""
        return read_lines(self.path / "scores.jsonl")

    def findings(self) -> Iterator[dict[str, Any]]:
        """The lines of ``findings.jsonl``, one at a time. Their text is the evaluator's: escape it."""
        return read_lines(self.path / "findings.jsonl")

    def manifest_digest(self) -> str:
        """SHA-256 of ``manifest.json``: what the event log pins."""
        return file_sha256(self.path / MANIFEST)


@dataclass(frozen=True)
class Attempt:
    """A sealed attempt: one execution of a run."""

    task: str
    run_id: str
    number: int
    path: Path

    @property
    def id(self) -> str:
        return f"{self.run_id}#{self.number}"

    @property
    def output(self) -> Path:
        return self.path / "output"

    def record(self, *, check: bool = True) -> dict[str, Any]:
        """``run.json``, checked against its schema unless told not to. Raises E307 when it is broken."""
        return read_json(self.path / "run.json", "run" if check else None)

    def lock(self, *, check: bool = True) -> dict[str, Any]:
        """``lock.json``, checked against its schema unless told not to. Raises E307 when it is broken."""
        return read_json(self.path / "lock.json", "lock" if check else None)

    def log(self, stream: str) -> Path:
        """Where the log of ``stdout`` or ``stderr`` is; raw and hostile."""
        return self.path / "logs" / f"{stream}.log"

    def manifest_digest(self) -> str:
        """SHA-256 of ``manifest.json``: what the event log pins."""
        return file_sha256(self.path / MANIFEST)

    def evaluation(self, k: int) -> Evaluation:
        """Its evaluation number ``k``, whether or not it is there."""
        return Evaluation(self.task, self.run_id, self.number, k, self.path / "evaluations" / str(k))

    def evaluations(self) -> list[Evaluation]:
        """Its sealed evaluations, oldest first."""
        return [self.evaluation(k) for k in _numbers(self.path / "evaluations")]


class RunArchive:
    """The archive under ``root``. Many processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tmp = root / ".tmp"

    # Writing

    def begin(self, task: str, run_id: str) -> Staging:
        """A new staging folder for the next attempt of ``run_id``; its number is reserved. Raises E306.

        Only one process at a time may be at work on a run: E306 says who has to end first.
        """
        _check_names(task, run_id)
        with self._lock():
            live = [
                name
                for name, _, _ in self._stagings()
                if self._run_of(name) == run_id and self._is_live(name)
            ]
            if live:
                raise PlatformError(
                    f"{run_id} is being run already",
                    why="Another process is at work on this run.",
                    fix="wait for it, or stop it with runner cancel",
                    code="E306",
                )
            numbers = _numbers(self.root / task / run_id / "attempts")
            return self._stage("a", task, run_id, (max(numbers) if numbers else 0) + 1)

    def seal(self, staging: Staging, run_json: Mapping[str, Any]) -> Attempt:
        """Write ``run.json`` and ``manifest.json``, sync everything, and move the attempt to its place.

        ``run_json`` must carry the staging's run id and number. Raises E306 when the disk fails.
        """
        target = self.root / staging.task / staging.run_id / "attempts" / str(staging.number)
        if run_json.get("attempt") != staging.number or run_json.get("run_id") != staging.run_id:
            raise ValueError("run.json names another attempt than the one that was begun")
        with _disk("the attempt cannot be archived"):
            write_json(staging.path / "run.json", run_json)
            (staging.path / "evaluations").mkdir()
            self._commit(staging, target, skip="evaluations")
        return Attempt(staging.task, staging.run_id, staging.number, target)

    def begin_evaluation(self, attempt: Attempt) -> Staging:
        """A new staging folder for the next evaluation of ``attempt``."""
        with self._lock():
            numbers = _numbers(attempt.path / "evaluations")
            taken = [
                int(n.split("~")[3]) for n, _, _ in self._stagings("e") if self._run_of(n) == attempt.run_id
            ]
            return self._stage("e", attempt.task, attempt.run_id, max([0, *numbers, *taken]) + 1)

    def add_evaluation(
        self, attempt: Attempt, staging: Staging, evaluation_json: Mapping[str, Any]
    ) -> Evaluation:
        """Write ``evaluation.json`` and ``manifest.json`` and move the evaluation beside its attempt."""
        wanted = (attempt.run_id, attempt.number, staging.number)
        if tuple(evaluation_json.get(key) for key in ("run_id", "attempt", "evaluation")) != wanted:
            raise ValueError("evaluation.json names another evaluation than the one that was begun")
        target = attempt.path / "evaluations" / str(staging.number)
        with _disk("the evaluation cannot be archived"):
            write_json(staging.path / "evaluation.json", evaluation_json)
            self._commit(staging, target)
        return Evaluation(attempt.task, attempt.run_id, attempt.number, staging.number, target)

    def discard(self, staging: Staging) -> None:
        """Throw a staging folder away (the attempt was given up before it was sealed)."""
        with self._lock():
            self._remove(staging.path.name)
            staging.lock.release(force=True)

    def sweep(self) -> list[str]:
        """Remove staging folders whose process has died; returns their run ids. Those of the living stay."""
        swept: list[str] = []
        if not self.tmp.is_dir():
            return swept
        with self._lock():
            for name, _, _ in self._stagings():
                if not self._is_live(name):
                    swept.append(self._run_of(name))
                    self._remove(name)
            for lock in self.tmp.glob("*.lock"):
                if not (self.tmp / lock.name.removesuffix(".lock")).exists() and not self._is_live(lock.stem):
                    lock.unlink(missing_ok=True)
        return swept

    # Reading

    def tasks(self) -> list[str]:
        """The tasks that have runs, sorted."""
        return _folders(self.root)

    def runs(self, task: str | None = None) -> list[tuple[str, str]]:
        """``(task, run id)`` of every run that has an attempt, sorted."""
        tasks = [task] if task else _folders(self.root)
        return [(t, run) for t in tasks for run in _folders(self.root / t)]

    def attempts(self, task: str, run_id: str) -> list[Attempt]:
        """The sealed attempts of a run, oldest first."""
        folder = self.root / task / run_id / "attempts"
        return [Attempt(task, run_id, n, folder / str(n)) for n in _numbers(folder)]

    def attempt(self, task: str, run_id: str, number: int) -> Attempt:
        """One sealed attempt. Raises E307 when the archive does not have it."""
        _check_names(task, run_id)
        path = self.root / task / run_id / "attempts" / str(number)
        if not (path / MANIFEST).is_file():
            raise _damaged(f"{path} is missing")
        return Attempt(task, run_id, number, path)

    def evaluations(self, attempt: Attempt) -> list[Evaluation]:
        """The sealed evaluations of an attempt, oldest first."""
        return attempt.evaluations()

    def live(self) -> dict[str, int]:
        """Run id → attempt number of what living processes are running at this moment."""
        if not self.tmp.is_dir():
            return {}
        with self._lock():
            return {
                self._run_of(name): int(name.split("~")[3])
                for name, _, _ in self._stagings("a")
                if self._is_live(name)
            }

    def uncommitted(self, events: Iterable[Event]) -> list[Attempt | Evaluation]:
        """What was sealed but never got its event (a crash in between), in the order to commit it."""
        known: set[tuple[Any, ...]] = set()
        for event in events:
            if event.type in ("attempt-committed", "evaluation-committed"):
                d = event.data
                known.add((d["task"], d["run"], d["attempt"], d.get("evaluation")))
        found: list[Attempt | Evaluation] = []
        for task, run_id in self.runs():
            for attempt in self.attempts(task, run_id):
                if (task, run_id, attempt.number, None) not in known:
                    found.append(attempt)
                found += [
                    e for e in attempt.evaluations() if (task, run_id, e.attempt, e.number) not in known
                ]
        return found

    def verify(self, events: Iterable[Event] = (), *, complete: bool = False) -> list[Problem]:
        """Check every file against its manifest, and every manifest against the event log. Returns what is wrong.

        Reads the whole archive. With ``complete``, the events are all there are: what none of them names is listed too.
        """
        problems: list[Problem] = []
        found: dict[tuple[Any, ...], str] = {}
        for task, run_id in self.runs():
            for attempt in self.attempts(task, run_id):
                problems += self._verify_folder(attempt.path, skip="evaluations")
                found[task, run_id, attempt.number, None] = str(attempt.path.relative_to(self.root))
                for evaluation in attempt.evaluations():
                    problems += self._verify_folder(evaluation.path)
                    found[task, run_id, attempt.number, evaluation.number] = str(
                        evaluation.path.relative_to(self.root)
                    )
        named: set[tuple[Any, ...]] = set()
        for event in events:
            if event.type in ("attempt-committed", "evaluation-committed"):
                d = event.data
                named.add((d["task"], d["run"], d["attempt"], d.get("evaluation")))
                problems += self._verify_event(event)
        if complete:
            problems += [
                Problem(
                    shown,
                    "is in the archive, but no event names it.",
                    "runner evaluate takes it over if a command was killed just before; else the log was cut: restore it",
                )
                for key, shown in found.items()
                if key not in named
            ]
        return problems

    def check_whole(self, sealed: Attempt | Evaluation, manifest: str) -> None:
        """Raise E307 unless every file of ``sealed`` is as it was when its ``manifest`` (SHA-256) was committed."""
        check_manifest(sealed, manifest)
        wrong = self._verify_folder(sealed.path, skip="evaluations" if isinstance(sealed, Attempt) else None)
        if wrong:
            error = _damaged(str(wrong[0]))
            error.problems = tuple(wrong)
            raise error

    def _verify_folder(self, folder: Path, skip: str | None = None) -> list[Problem]:
        shown = str(folder.relative_to(self.root))
        try:
            listed = read_json(folder / MANIFEST, None)["files"]
            wanted = {name: (entry["sha256"], entry["size"]) for name, entry in listed.items()}
        except (PlatformError, KeyError, TypeError, AttributeError):
            return [Problem(f"{shown}/{MANIFEST}", "is missing or damaged.", "restore it from a backup")]
        problems = []
        found = set()
        try:
            for name, path in walk(folder, skip=skip):
                if name == MANIFEST:
                    continue
                found.add(name)
                if name not in wanted:
                    problems.append(
                        Problem(f"{shown}/{_shown(name)}", "was added after sealing.", "remove it")
                    )
                elif (path.stat().st_size, file_sha256(path)) != wanted[name][::-1]:
                    problems.append(
                        Problem(
                            f"{shown}/{_shown(name)}",
                            "was changed after sealing.",
                            "restore it from a backup",
                        )
                    )
        except PlatformError as error:
            problems.append(Problem(shown, error.why))
        problems += [
            Problem(f"{shown}/{_shown(name)}", "is missing.", "restore it from a backup")
            for name in sorted(set(wanted) - found)
        ]
        return problems

    def _verify_event(self, event: Event) -> list[Problem]:
        d = event.data
        folder = self.root / d["task"] / d["run"] / "attempts" / str(d["attempt"])
        if event.type == "evaluation-committed":
            folder = folder / "evaluations" / str(d["evaluation"])
        shown = str(folder.relative_to(self.root))
        if not (folder / MANIFEST).is_file():
            return [
                Problem(shown, f"is missing, but event {event.seq} names it.", "restore it from a backup")
            ]
        if file_sha256(folder / MANIFEST) != d["manifest"]:
            return [Problem(shown, f"is not what event {event.seq} committed.", "restore it from a backup")]
        return []

    # Staging

    def _lock(self) -> BaseFileLock:
        from filelock import FileLock

        try:
            self.tmp.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable("the archive cannot be written", error) from error
        return FileLock(self.tmp / ".lock", timeout=60)

    def _stage(self, sort: str, task: str, run_id: str, number: int) -> Staging:
        """Called under the archive's lock, so that nobody sweeps between the lock file and the folder."""
        from filelock import FileLock

        name = "~".join((sort, task, run_id, str(number), secrets.token_hex(4)))
        with _disk("a run cannot be begun"):
            lock = FileLock(self.tmp / f"{name}.lock", timeout=0, thread_local=False)
            lock.acquire()
            path = self.tmp / name
            path.mkdir()
        return Staging(path, task, run_id, number, lock)

    def _stagings(self, sort: str | None = None) -> list[tuple[str, str, str]]:
        if not self.tmp.is_dir():
            return []
        names = [entry.name for entry in os.scandir(self.tmp) if entry.is_dir(follow_symlinks=False)]
        parts = [(name, *name.split("~")[:2]) for name in sorted(names) if name.count("~") == 4]
        return [(n, s, t) for n, s, t in parts if sort is None or s == sort]

    @staticmethod
    def _run_of(name: str) -> str:
        return name.split("~")[2]

    def _is_live(self, name: str) -> bool:
        """Whether the process that began this folder still holds its lock (the kernel frees it at any death)."""
        from filelock import FileLock, Timeout

        probe = FileLock(self.tmp / f"{name}.lock", timeout=0)
        try:
            probe.acquire()
        except Timeout:
            return True
        probe.release()
        return False

    def _remove(self, name: str) -> None:
        for folder, _, _ in os.walk(
            self.tmp / name
        ):  # sealing may have been broken off with read-only folders
            Path(folder).chmod(0o755)
        shutil.rmtree(self.tmp / name, ignore_errors=True)
        (self.tmp / f"{name}.lock").unlink(missing_ok=True)

    def _commit(self, staging: Staging, target: Path, skip: str | None = None) -> None:
        files: dict[str, dict[str, Any]] = {}
        for name, path in walk(staging.path, skip=skip):
            files[name] = {"sha256": _hash_and_sync(path), "size": path.stat().st_size}
            path.chmod(0o444)
        write_json(staging.path / MANIFEST, {"schema_version": 1, "files": files})
        _hash_and_sync(staging.path / MANIFEST)
        (staging.path / MANIFEST).chmod(0o444)
        for inner, _, _ in os.walk(staging.path, topdown=False):
            sync_folder(Path(inner))
            # The top one later, because a read-only folder cannot be moved; evaluations come in later still.
            if Path(inner) != staging.path and Path(inner).name != skip:
                Path(inner).chmod(0o555)
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if target.exists():
                raise PlatformError(
                    f"{target} is already there", why="Attempts are written once.", code="E306"
                )
            staging.path.rename(target)
        target.chmod(0o555)
        for folder in (target.parent, target.parent.parent, target.parent.parent.parent, self.root):
            sync_folder(folder)
        staging.lock.release(force=True)
        (self.tmp / f"{staging.path.name}.lock").unlink(missing_ok=True)


def check_manifest(sealed: Attempt | Evaluation, manifest: str) -> None:
    """Raise E307 unless the manifest of ``sealed`` is the one that was committed. Reads that file only."""
    if sealed.manifest_digest() != manifest:
        raise _damaged(f"{sealed.path} holds other files than those that were committed")


def walk(folder: Path, *, skip: str | None = None) -> Iterator[tuple[str, Path]]:
    """Every regular file below ``folder`` as (relative name, path), sorted, without following links.

    ``skip`` names one folder at the top that is left out. Raises E307 for anything that is neither a regular
    file nor a folder, and for names that are no UTF-8.
    """
    stack = [("", folder)]
    found: list[tuple[str, Path]] = []
    while stack:
        prefix, here = stack.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                name = prefix + entry.name
                if not prefix and entry.name == skip:
                    continue
                try:
                    name.encode()
                except UnicodeEncodeError:
                    raise _damaged(f"{here} holds a name that is not UTF-8") from None
                if entry.is_dir(follow_symlinks=False):
                    stack.append((f"{name}/", Path(entry.path)))
                elif entry.is_file(follow_symlinks=False):
                    found.append((name, Path(entry.path)))
                else:
                    raise _damaged(f"{here}/{_shown(entry.name)} is a link or a special file")
    return iter(sorted(found))


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces. Raises E307 when it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise _damaged(f"{path}: {error.strerror}") from error


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write ``data`` readably, with sorted keys; refuses NaN."""
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path, schema: str | None) -> dict[str, Any]:
    """A JSON object of the archive, checked against a schema when one is named. Raises E307."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise _damaged(f"{path} is larger than 16 MiB")
        data = json.loads(path.read_bytes(), parse_constant=_refuse)
    except OSError as error:
        raise _damaged(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise _damaged(f"{path} is not JSON") from None
    if not isinstance(data, dict):
        raise _damaged(f"{path} is not a JSON object")
    if schema is not None:
        problems = schemas.validate(data, schema)
        if problems:
            raise _damaged(f"{path}: {problems[0].what}")
    return data


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a JSON Lines file, one at a time; lines that are none raise E307."""
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for number, data, _ in jsonl.rows(stream.read, max_line=MAX_LINE, rules=_WRITTEN):
            if not isinstance(data, dict):
                raise _damaged(f"{path}:{number} is not a JSON object")
            yield data


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _check_names(task: str, run_id: str) -> None:
    if not _NAME.fullmatch(task) or not _RUN.fullmatch(run_id) or ".." in run_id:
        raise ValueError(f"not a task and run id: {task!r}, {run_id!r}")


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(
                e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def _numbers(path: Path) -> list[int]:
    return sorted(int(name) for name in _folders(path) if re.fullmatch(r"[1-9][0-9]{0,5}", name))


def _hash_and_sync(path: Path) -> str:
    with path.open("rb") as stream:
        digest = sha256_of(stream)
        os.fsync(stream.fileno())
    return digest


def _shown(name: str) -> str:
    return schemas.show(name, 200)


def _damaged(why: str) -> PlatformError:
    return PlatformError(
        "the archive was changed or damaged",
        why=f"{why}.",
        fix="restore the archive from a backup; runner store verify lists everything",
        code="E307",
    )


def _unusable(what: str, error: OSError) -> PlatformError:
    return PlatformError(
        what,
        why=f"{error.filename or 'the data directory'}: {error.strerror or error}.",
        fix="check the space and the permissions of the data directory",
        code="E306",
    )


class _disk:
    """Turns an ``OSError`` inside the block into E306."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise _unusable(self.what, error) from error
