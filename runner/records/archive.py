"""The run archive: one write-once folder for each attempt, its evaluations within it, a hash of every file.

``<root>/<task>/<run id>/attempts/<n>/`` holds ``run.json``, ``lock.json``, ``output/``, ``logs/`` and
``manifest.json``; ``…/evaluations/<k>/`` the same for one evaluation. The bytes of output files and of other
large ones are in the content store (:mod:`runner.records.contents`), which the manifest says of each; in archives
from before there was one, they lie in the folder. A folder is written under ``<root>/.tmp``, synced, and renamed to
its place, so it is there as a whole or not at all, whenever the process is killed. Nothing follows links, nothing but
regular files is kept, and no file is read into memory as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.model.errors import PlatformError
from runner.model.names import NAME
from runner.records.contents import Content, ContentStore, KeptFile, Stored, folder_of
from runner.records.files import (
    damaged,
    file_sha256,
    folders,
    on_disk,
    read_json,
    read_lines,
    walk,
)
from runner.records.sealing import MANIFEST, NOTHING, Known, Manifest, seal_folder
from runner.records.staging import Staging, StagingFolders
from schemas.files import settle

_RUN = re.compile(r"[a-z0-9][a-z0-9._-]{0,250}")
Key = tuple[str, str, int, int | None]  # task, run id, attempt, and evaluation of a committed thing


class _Sealed:
    """What attempts and evaluations have in common: a folder whose manifest names the hash of every file."""

    path: Path
    contents: ContentStore
    sealed: Manifest | None  # as it was written, where this process has sealed it just now

    def manifest(self) -> dict[str, dict[str, Any]]:
        """``sha256``, ``size`` and whether it is ``stored`` of every file, by its name. Raises E307."""
        if self.sealed is not None:
            return {name: dict(entry) for name, entry in self.sealed.files.items()}
        listed = read_json(self.path / MANIFEST, "manifest")["files"]
        return {str(name): dict(entry) for name, entry in listed.items()}

    def file(self, name: str) -> KeptFile | None:
        """One file by its name in the folder; None when there is none. Its content may be hostile."""
        path = self.path / name
        if path.is_file() and not path.is_symlink():
            return KeptFile(path)
        return self._stored().get(name)

    def files(self, folder: str = "") -> dict[str, KeptFile]:
        """All files below ``folder`` by their names in it, sorted. Raises E307 for links and special files."""
        prefix = f"{folder}/" if folder else ""
        here = (
            walk(self.path / folder, skip="" if folder else "evaluations")
            if (self.path / folder).is_dir()
            else ()
        )
        found = {name: KeptFile(path) for name, path in here}
        for name, file in self._stored().items():
            if name.startswith(prefix):
                found[name.removeprefix(prefix)] = file
        return dict(sorted(found.items()))

    def lines(self, name: str, most: int | None = None) -> Iterator[dict[str, Any]]:
        """The objects of a JSON Lines file, of about ``most`` bytes, one at a time; none when it is missing. Raises E307 for a line that is no object."""
        return read_lines(self.file(name), most)

    def _stored(self) -> dict[str, KeptFile]:
        if not (self.path / MANIFEST).is_file():
            return {}
        return {
            name: KeptFile(self.path / name, Stored(self.contents, Content(entry["sha256"], entry["size"])))
            for name, entry in self.manifest().items()
            if entry.get("stored")
        }

    def manifest_digest(self) -> str:
        """SHA-256 of ``manifest.json``: what the event log pins. Raises E307 when it cannot be read."""
        return file_sha256(self.path / MANIFEST) if self.sealed is None else self.sealed.sha256


@dataclass(frozen=True)
class Evaluation(_Sealed):
    """A sealed evaluation of an attempt: ``number`` counts from 1."""

    task: str
    run_id: str
    attempt: int
    number: int
    path: Path
    contents: ContentStore = field(repr=False, compare=False)
    sealed: Manifest | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> Key:
        """What names it in the event log."""
        return self.task, self.run_id, self.attempt, self.number

    @property
    def id(self) -> str:
        """As people name it: that of the attempt, and its number."""
        return f"{self.run_id}#{self.attempt} evaluation {self.number}"

    def record(self, *, check: bool = True) -> dict[str, Any]:
        """``evaluation.json``, unless ``check`` is False checked against its schema. Raises E307 when it is broken."""
        return read_json(self.path / "evaluation.json", "evaluation" if check else None)

    def result(self) -> dict[str, Any] | None:
        """``result.json`` as the evaluator wrote it, or None when the evaluation has none."""
        path = self.path / "result.json"
        return read_json(path, None) if path.is_file() else None

    def scores(self) -> Iterator[dict[str, Any]]:
        """The lines of ``scores.jsonl``, one at a time. Raises E307 for a line that is no object."""
        return self.lines("scores.jsonl")

    def findings(self) -> Iterator[dict[str, Any]]:
        """The lines of ``findings.jsonl``, one at a time. Their text is the evaluator's: escape it."""
        return self.lines("findings.jsonl")


@dataclass(frozen=True)
class Attempt(_Sealed):
    """A sealed attempt: one execution of a run."""

    task: str
    run_id: str
    number: int
    path: Path
    contents: ContentStore = field(repr=False, compare=False)
    sealed: Manifest | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> Key:
        """What names it in the event log."""
        return self.task, self.run_id, self.number, None

    @property
    def id(self) -> str:
        """As people name it: run id and number."""
        return f"{self.run_id}#{self.number}"

    def output(self) -> AbstractContextManager[Path]:
        """A folder with its output files, as long as the context lasts; their content is hostile.

        What is in the content store is copied out and compared with its digest. Raises E306, E307.
        """
        return folder_of(self.files("output"), self.path / "output")

    def record(self, *, check: bool = True) -> dict[str, Any]:
        """``run.json``, unless ``check`` is False checked against its schema. Raises E307 when it is broken."""
        return read_json(self.path / "run.json", "run" if check else None)

    def lock(self, *, check: bool = True) -> dict[str, Any]:
        """``lock.json``, unless ``check`` is False checked against its schema. Raises E307 when it is broken."""
        return read_json(self.path / "lock.json", "lock" if check else None)

    def submission(self) -> str:
        """The submission that it is an attempt at, as its lock says. Raises E307 when that cannot be read."""
        found = self.lock(check=False).get("submission_id")
        if not isinstance(found, str):
            raise damaged(f"{self.path}/lock.json names no submission")
        return found

    def evaluation(self, number: int) -> Evaluation:
        """Its evaluation of that number, whether or not it is there."""
        path = self.path / f"evaluations/{number}"
        return Evaluation(self.task, self.run_id, self.number, number, path, self.contents)

    def evaluations(self) -> list[Evaluation]:
        """Its sealed evaluations, oldest first."""
        return [self.evaluation(number) for number in _numbers(self.path / "evaluations")]


class RunArchive:
    """The archive under ``root``. Many processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tmp = root / ".tmp"
        self.contents = ContentStore(root)
        self._staging = StagingFolders(self.tmp)

    # Writing

    def begin(self, task: str, run_id: str) -> Staging:
        """Begin the next attempt of a run, and reserve its number.

        Args:
            task: Id of the task.
            run_id: Id of the run. Only one process at a time may be at work on it.

        Returns:
            An empty folder that belongs to this process, for :meth:`seal` or :meth:`discard`.

        Raises:
            ValueError: For ids that are none.
            PlatformError: E306, when the disk fails or another process is at work on the run.
        """
        _check_names(task, run_id)
        staging = self._begin("a", task, run_id, self._attempts(task, run_id))
        if staging is None:
            raise PlatformError(
                f"{run_id} is being run already",
                why="Another process is at work on this run.",
                fix="wait for it, or stop it with runner cancel",
                code="E306",
            )
        return staging

    def seal(self, staging: Staging, run_json: Mapping[str, Any], known: Known = NOTHING) -> Attempt:
        """Write ``run.json`` and ``manifest.json``, sync everything, and move the attempt to its place.

        Args:
            staging: What :meth:`begin` gave, filled.
            run_json: The content of ``run.json`` (schema ``run``), with the run id and number of ``staging``.
            known: What was hashed when it was written there, by the names in the folder.

        Returns:
            The attempt, whose files never change from now on.

        Raises:
            ValueError: When ``run_json`` is of another attempt.
            PlatformError: E306, when the disk fails; the staging folder stays.
        """
        target = self._attempts(staging.task, staging.run_id) / str(staging.number)
        if run_json.get("attempt") != staging.number or run_json.get("run_id") != staging.run_id:
            raise ValueError("run.json names another attempt than the one that was begun")
        with on_disk("the attempt cannot be archived", self.root):
            sealed = self._commit(staging, target, ("run.json", run_json), known, above=4)
        return Attempt(staging.task, staging.run_id, staging.number, target, self.contents, sealed)

    def settle(self, sealed: Attempt | Evaluation) -> None:
        """Wait until the place of what a process sealed that was killed then is on the disk. Raises E306."""
        with on_disk("what was sealed cannot be kept", self.root):
            settle(sealed.path.parents[: 4 if isinstance(sealed, Attempt) else 1])

    def begin_evaluation(self, attempt: Attempt) -> Staging:
        """As :meth:`begin`, for the next evaluation of ``attempt``; end with :meth:`add_evaluation` or :meth:`discard`."""
        staging, above = None, 0
        while staging is None:  # others may be at work on other evaluations of it
            staging = self._begin("e", attempt.task, attempt.run_id, attempt.path / "evaluations", above)
            above += 1
        return staging

    def _begin(self, sort: str, task: str, run_id: str, places: Path, above: int = 0) -> Staging | None:
        """A staging folder of the number after the last in ``places``, or so many ``above``; None where a living process has that one."""
        while True:
            number = max(_numbers(places), default=0) + 1 + above
            staging = self._staging.make(sort, task, run_id, number)
            if staging is None:
                return None
            try:
                with on_disk("a run cannot be begun", self.root):
                    sealed = (places / str(number)).exists()  # meanwhile
            except BaseException:
                self.discard(staging)
                raise
            if not sealed:
                return staging
            self.discard(staging)

    def add_evaluation(
        self, attempt: Attempt, staging: Staging, evaluation_json: Mapping[str, Any], known: Known = NOTHING
    ) -> Evaluation:
        """Write ``evaluation.json`` and ``manifest.json`` and move the evaluation to its attempt.

        Args:
            attempt: What was evaluated.
            staging: What :meth:`begin_evaluation` gave, filled.
            evaluation_json: The content of ``evaluation.json`` (schema ``evaluation``).
            known: As for :meth:`seal`.

        Returns:
            The evaluation, whose files never change from now on.

        Raises:
            ValueError: When ``evaluation_json`` is of another evaluation.
            PlatformError: E306, when the disk fails.
        """
        wanted = (attempt.run_id, attempt.number, staging.number)
        if tuple(evaluation_json.get(key) for key in ("run_id", "attempt", "evaluation")) != wanted:
            raise ValueError("evaluation.json names another evaluation than the one that was begun")
        target = attempt.path / "evaluations" / str(staging.number)
        with on_disk("the evaluation cannot be archived", self.root):
            sealed = self._commit(staging, target, ("evaluation.json", evaluation_json), known, above=2)
        return replace(attempt.evaluation(staging.number), sealed=sealed)

    def discard(self, staging: Staging) -> None:
        """Throw a staging folder away (the attempt was given up before it was sealed)."""
        self._staging.discard(staging)

    def sweep(self, *, dry_run: bool = False) -> list[str]:
        """Remove what processes that have died left in the middle; returns the run ids, and names of half-written contents.

        What belongs to the living stays. With ``dry_run`` nothing is removed.
        """
        return self._staging.sweep(dry_run=dry_run) + self.contents.sweep_parts(dry_run=dry_run)

    # Reading

    def tasks(self) -> list[str]:
        """The tasks that have runs, sorted."""
        return folders(self.root)

    def runs(self, task: str | None = None) -> list[tuple[str, str]]:
        """``(task, run id)`` of every run that has an attempt, sorted."""
        tasks = [task] if task else folders(self.root)
        return [(t, run) for t in tasks for run in folders(self.root / t)]

    def attempts(self, task: str, run_id: str) -> list[Attempt]:
        """The sealed attempts of a run, oldest first."""
        folder = self._attempts(task, run_id)
        return [Attempt(task, run_id, n, folder / str(n), self.contents) for n in _numbers(folder)]

    def attempt(self, task: str, run_id: str, number: int) -> Attempt:
        """One sealed attempt. Raises E307 when the archive does not have it."""
        _check_names(task, run_id)
        path = self._attempts(task, run_id) / str(number)
        if not (path / MANIFEST).is_file():
            raise damaged(f"{path} is missing")
        return Attempt(task, run_id, number, path, self.contents)

    def has_attempt(self, task: str, run_id: str, number: int) -> bool:
        """Whether there is a sealed attempt of that number."""
        return (self._attempts(task, run_id) / str(number) / MANIFEST).is_file()

    def _attempts(self, task: str, run_id: str) -> Path:
        return Path(
            f"{self.root}/{task}/{run_id}/attempts"
        )  # parsed once: this is done many times for each run

    def live(self) -> dict[str, int]:
        """Run id → attempt number of what living processes are running at this moment."""
        return self._staging.live("a")

    def sealed(self, task: str | None = None) -> Iterator[Attempt | Evaluation]:
        """Every sealed attempt (of a task), each followed by its evaluations: oldest first of each run, runs sorted."""
        for name, run_id in self.runs(task):
            for attempt in self.attempts(name, run_id):
                yield attempt
                yield from attempt.evaluations()

    def _commit(
        self,
        staging: Staging,
        target: Path,
        record: tuple[str, Mapping[str, Any]],
        known: Known,
        *,
        above: int,
    ) -> Manifest:
        """Seal a folder with its record and move it to ``target``; all of it, and the names in so many folders ``above``, is on the disk then."""
        manifest = seal_folder(staging.path, *record, self.contents, known)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise PlatformError(f"{target} is already there", why="Attempts are written once.", code="E306")
        staging.path.rename(target)
        target.chmod(0o555)
        settle(target.parents[:above])
        self._staging.finish(staging)
        return manifest


def _check_names(task: str, run_id: str) -> None:
    if not NAME.fullmatch(task) or not _RUN.fullmatch(run_id) or ".." in run_id:
        raise ValueError(f"not a task and run id: {task!r}, {run_id!r}")


def _numbers(path: Path) -> list[int]:
    return sorted(int(name) for name in folders(path) if re.fullmatch(r"[1-9][0-9]{0,5}", name))
