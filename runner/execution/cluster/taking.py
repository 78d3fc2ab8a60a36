"""Taking in what a host delivered: nothing of it is believed before it was compared with what was asked for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import schemas
from runner.execution.cluster.artefacts import Artefacts, Mismatch
from runner.execution.job import Job
from runner.model.limits import MIB
from runner.records.archive import Attempt, RunArchive
from runner.records.contents import Content
from runner.records.files import file_sha256, read_json
from runner.records.staging import Staging

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FOLDERS = ("output", "logs")
_BESIDE = 16 * MIB  # of what the platform itself writes beside output and logs
_FILES = 64  # beside those of the output


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

    ``host`` is where it was executed (empty: as the record says). Whatever lay in ``staging`` is removed first. Raises E313 when it
    is not what was ordered (:class:`Mismatch`), or cannot be had.
    """
    for path in staging.path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    manifest = artefacts.manifest(name, key)
    for file, content in _listed(manifest, job).items():
        target = staging.path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        artefacts.take(name, file, content, target)
    record = manifest.get("record")
    problem = _problem(record, staging, job)
    if problem:
        raise _refused(name, problem)
    assert isinstance(record, dict)
    return archive.seal(staging, {**record, "placed": {"host": host}} if host else record)


def _listed(manifest: dict[str, Any], job: Job) -> dict[str, Content]:
    """The files that are taken, by their names; as many and as large as the job's limits allow."""
    files, limits = manifest.get("files"), job.limits
    if not isinstance(files, dict) or "lock.json" not in files:
        raise _refused(str(manifest)[:100], "it has no list of files with a lock")
    found: dict[str, Content] = {}
    for file, entry in files.items():
        parts = file.split("/")
        plain = len(parts) == 2 and parts[0] in _FOLDERS and parts[1] not in ("", ".", "..")
        known = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int) and entry[1] >= 0
        if (
            not (plain or file == "lock.json")
            or "\0" in file
            or not known
            or not _SHA256.fullmatch(str(entry[0]))
        ):
            raise _refused(schemas.show(file, 100), "it is no file of an attempt")
        found[file] = Content(str(entry[0]), entry[1])
    size = sum(content.size for content in found.values())
    if size > limits.output + 2 * limits.log + _BESIDE or len(found) > limits.output_files + _FILES:
        raise _refused("it", "it is larger than its limits")
    return found


def _problem(record: object, staging: Staging, job: Job) -> str:
    """What is wrong with a record (run.json) and the files in ``staging``; empty when nothing is."""
    if not isinstance(record, dict) or schemas.validate(record, "run"):
        return "its run.json is none"
    wanted = {"run_id": job.run_id, "attempt": staging.number, "lock_digest": job.lock_digest}
    if any(record[key] != value for key, value in wanted.items()):
        return "its run.json is of another attempt"
    if schemas.digest(read_json(staging.path / "lock.json", "lock")) != job.lock_digest:
        return "its lock is another one"
    said = {one["name"]: (one["sha256"], one["size"]) for one in record["output"]["files"]}
    return "" if said == _lying(staging.path / "output") else "its output is not what run.json says"


def _lying(folder: Path) -> dict[str, tuple[str, int]]:
    if not folder.is_dir():
        return {}
    return {path.name: (file_sha256(path), path.stat().st_size) for path in folder.iterdir()}


def _refused(name: str, why: str) -> Mismatch:
    what = f"{name}, which a host delivered, is not taken"
    fix = "look at that host: it runs other software than this, or somebody else's"
    return Mismatch(what, why=f"{why[:1].upper()}{why[1:]}.", fix=fix)
