"""Taking in what a host delivered: nothing of it is believed before it was compared with what was asked for."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import schemas
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.delivery import Mismatch
from runner.execution.contract import MAX_RESULT_BYTES, RESULT_FILES, contract_problem
from runner.execution.evaluation import RESULTS
from runner.execution.job import Job
from runner.execution.workflows.batch import output_files
from runner.execution.workflows.beside import Sizes
from runner.model.clock import SystemClock, stamp
from runner.model.errors import PlatformError
from runner.model.limits import MIB
from runner.model.task import Task
from runner.model.verdict import TABLE, read_verdict
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.contents import Content
from runner.records.files import MAX_JSON, is_name, is_utf8, read_json, readable
from runner.records.staging import Staging
from schemas.details import read

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FOLDERS = ("output", "logs")
_BESIDE = 16 * MIB  # of what the platform itself writes beside output and logs
_FILES = 64  # beside those of the output
_DEEPEST = 16  # levels of a record
_WHOLE = 2**63  # what whole numbers of the store stay below
_AHEAD = timedelta(days=1)  # by which a time may lie after now: clocks of hosts are off by less
_TOO_LARGE = "it is larger than the archive reads"
_ENDED = ("started", "finished", "status", "final", "fault", "exit")  # what a host says of an evaluation
_NONE = "its evaluation.json is none"


def take_in(
    artefacts: Artefacts,
    name: str,
    key: bytes,
    staging: Staging,
    archive: RunArchive,
    job: Job,
    host: str = "",
) -> Attempt:
    """Seal what was delivered under ``name``, signed by ``key``, as the attempt that was begun as ``staging``.

    ``host`` is where it was executed (empty: as the delivery says). Whatever lay in ``staging`` is removed first. Raises E313 when it
    is not what was ordered (:class:`Mismatch`), or cannot be had.
    """
    with _unusable(name):
        manifest = artefacts.manifest(name, key)
        files = _listed(manifest, job)
        _fetch(artefacts, name, files, staging)
        said = manifest.get("record")
        record = {**said, **_placed(host, manifest)} if isinstance(said, dict) else {}
        if problem := _problem(record, staging, job, files):
            raise _refused(name, problem)
        return archive.seal(staging, record, files)


def take_in_evaluation(
    artefacts: Artefacts,
    name: str,
    key: bytes,
    staging: Staging,
    archive: RunArchive,
    attempt: Attempt,
    asked: Mapping[str, Any],
    task: Task,
    host: str = "",
) -> Evaluation:
    """Seal what was delivered under ``name`` as the evaluation of ``attempt`` that was begun as ``staging``.

    ``asked`` is what its record says of what was asked for, whatever the host says; ``task`` is what its results have to fit, by the same
    contract as where they are made here. Otherwise as :func:`take_in`.
    """
    with _unusable(name):
        manifest = artefacts.manifest(name, key)
        ended = manifest.get("ended")
        if manifest.get("asked") != schemas.digest(dict(asked)) or not isinstance(ended, dict):
            raise _refused(name, "it is another evaluation")
        if not _is_plain(ended):
            raise _refused(name, _NONE)
        limits = task.evaluator_limits
        most = MAX_RESULT_BYTES + 2 * limits.log + _BESIDE
        files = _files(manifest, ("logs",), RESULTS, most, _FILES)
        _fetch(artefacts, name, files, staging)
        (staging.path / "logs").mkdir(exist_ok=True)
        record = {**asked, **{key: ended.get(key) for key in _ENDED}}
        record["detail"] = (detail := read(ended.get("detail"))).as_dict()
        record["message"] = str(detail)
        record |= _placed(host, manifest)
        if problem := _evaluation_problem(record, staging.path, task):
            raise _refused(name, problem)
        return archive.add_evaluation(attempt, staging, record, files)


@contextmanager
def _unusable(name: str) -> Iterator[None]:
    """Refuse what was delivered under ``name`` where nothing can be made of it, whatever it is: no later try can make more of it."""
    try:
        yield
    except (ValueError, OverflowError, RecursionError) as error:
        raise _refused(name, f"nothing can be made of it ({type(error).__name__})") from error


def _placed(host: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """What a record says of where it was made."""
    name = host or schemas.show(str(manifest.get("host") or ""), 90)
    return {"placed": {"host": name}} if name else {}


def _evaluation_problem(record: dict[str, Any], folder: Path, task: Task) -> str:
    """What is wrong with a record (evaluation.json) and the files in ``folder``; empty when nothing is."""
    if schemas.validate(record, "evaluation"):
        return _NONE
    if (record["started"], record["finished"]) != ("", "") and not _is_timed(record):
        return _NONE  # a platform's failure has no times
    if len(readable(record)) > MAX_JSON:
        return _TOO_LARGE
    left = {path.name for path in folder.iterdir()} - {"logs"}
    if record["status"] == "error":
        return "it has results, and says that it has none" if left else ""
    if not left.issuperset(RESULT_FILES):
        return "its results are not all there"
    if problem := contract_problem(folder, task):
        return f"it breaks the contract of evaluators: {problem}"
    said = read_json(folder / "result.json", None)["status"]
    return "" if said == record["status"] else "its evaluation.json is not what the evaluator said"


def _fetch(artefacts: Artefacts, name: str, files: Mapping[str, Content], staging: Staging) -> None:
    """Write the files of a delivery into ``staging``, from which all else is removed."""
    for path in staging.path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    artefacts.take(name, files, staging.path)


def _listed(manifest: dict[str, Any], job: Job) -> dict[str, Content]:
    """The files of an attempt that are taken, by their names; as many and as large as the job's limits allow, and in its output those
    that could have come to be there."""
    limits, most, each = (
        job.limits,
        job.limits.output,
        dict.fromkeys(output_files(job.task), job.limits.output),
    )
    if job.workflow == "interactive":
        sizes = Sizes.of(job)
        most, each = sizes.most, sizes.files(job.task.output)
    most += 2 * limits.log + _BESIDE
    found = _files(manifest, _FOLDERS, ("lock.json",), most, limits.output_files + _FILES)
    if "lock.json" not in found:
        raise _refused(schemas.show(str(manifest)[:100], 100), "it has no list of files with a lock")
    for file, content in found.items():
        folder, _, name = file.partition("/")
        if folder == "output" and content.size > each.get(name, -1):
            why = (
                "it is larger than what writes it can make it" if name in each else "nothing writes it there"
            )
            raise _refused(schemas.show(file, 100), why)
    return found


def _files(
    manifest: dict[str, Any], folders: Collection[str], alone: Collection[str], most: int, number: int
) -> dict[str, Content]:
    """The files of a delivery by their names: below ``folders``, or those ``alone``; of ``most`` bytes, and as many as ``number``."""
    files = manifest.get("files")
    if not isinstance(files, dict):
        raise _refused(schemas.show(str(manifest)[:100], 100), "it has no list of files")
    found: dict[str, Content] = {}
    for file, entry in files.items():
        parts = file.split("/")
        plain = len(parts) == 2 and parts[0] in folders and is_name(parts[1])
        known = isinstance(entry, list) and len(entry) == 2 and type(entry[1]) is int and entry[1] >= 0
        if not (plain or file in alone) or not known or not _SHA256.fullmatch(str(entry[0])):
            raise _refused(schemas.show(file, 100), "it is no file of what was ordered")
        found[file] = Content(str(entry[0]), entry[1])
    size = sum(content.size for content in found.values())
    if size > most or len(found) > number:
        raise _refused("it", "it is larger than its limits")
    return found


def _problem(record: dict[str, Any], staging: Staging, job: Job, files: Mapping[str, Content]) -> str:
    """What is wrong with a record (run.json) and the ``files`` that were taken into ``staging``; empty when nothing is."""
    if not _is_plain(record):
        return "its run.json is none"
    if len(readable(record)) > MAX_JSON:
        return _TOO_LARGE
    if schemas.validate(record, "run"):
        return "its run.json is none"
    wanted = {"run_id": job.run_id, "attempt": staging.number, "lock_digest": job.lock_digest}
    if any(record[key] != value for key, value in wanted.items()):
        return "its run.json is of another attempt"
    if not (_is_timed(record) and _is_ended(record)):
        return "its run.json says neither when nor how it ended"
    if not _is_lock(staging.path / "lock.json", job.lock_digest):
        return "its lock is another one"
    output = record["output"]
    said = {f"output/{one['name']}": (one["sha256"], one["size"]) for one in output["files"]}
    lying = {name: content for name, content in files.items() if name.startswith("output/")}
    if len(said) != len(output["files"]) or said != lying:
        return "its output is not what run.json says"
    there = (
        f"output/{output['file']}" in said
        if output["file"] is not None
        else record["verdict"]["name"] != "ok"
    )
    return "" if there else "its run file is none that it delivered"


def _is_lock(path: Path, digest: str) -> bool:
    try:
        return schemas.digest(read_json(path, None)) == digest  # of our own, which is a lock
    except (PlatformError, ValueError):  # what is no lock
        return False


def _is_plain(value: object, levels: int = _DEEPEST) -> bool:
    """Whether the archive, the store and all their readers can have JSON data: PostgreSQL has no NUL and 64 bits, JSON no NaN."""
    if isinstance(value, str):
        return "\0" not in value and is_utf8(value)
    if isinstance(value, dict | list):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        return levels > 0 and all(_is_plain(one, levels - 1) for one in inside)
    if isinstance(value, int):
        return -_WHOLE <= value < _WHOLE
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _is_timed(record: Mapping[str, Any]) -> bool:
    """Whether a record says when it was started and finished, in this order and by now."""
    started, finished = record["started"], record["finished"]
    if not (_is_time(started) and _is_time(finished)):
        return False
    return bool(started <= finished <= stamp(SystemClock().now() + _AHEAD))  # which sort as they are


def _is_time(said: object) -> bool:
    """Whether it is a time as records have it."""
    try:
        return isinstance(said, str) and stamp(datetime.fromisoformat(said)) == said
    except ValueError:
        return False


def _is_ended(record: Mapping[str, Any]) -> bool:
    """Whether a record (run.json) says how it ended in words of ours."""
    verdict, first = record["verdict"], record.get("first_cases")
    if not {verdict["name"], first["verdict"] if first else "ok"} <= TABLE.keys():
        return False
    try:
        return bool(read_verdict(verdict).as_dict() == verdict)
    except (ValueError, TypeError, OverflowError):
        return False


def _refused(name: str, why: str) -> Mismatch:
    what = f"{name}, which a host delivered, is not taken"
    fix = "look at that host: it runs other software than this, or somebody else's"
    return Mismatch(what, why=f"{why[:1].upper()}{why[1:]}.", fix=fix)
