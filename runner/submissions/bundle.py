"""Bundles: a submission packed to travel from a team's machine to the organiser's.

A bundle is a folder: ``bundle.json``, ``manifest.json`` with a SHA-256 of every other file, optionally an
image archive and run files. Nothing in it is believed before its hash was checked, and nothing in it is
executed by reading it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import schemas
from runner.model.clock import SystemClock, stamp
from runner.model.container import ImageRef
from runner.model.errors import Problem, RunnerError
from runner.model.names import ABOUT, DISPLAYED
from runner.model.run import submission_id
from runner.records.contents import Content, ContentStore, KeptFile, Stored
from runner.records.files import file_sha256, on_disk
from runner.submissions.definition import SubmissionFile
from schemas.files import atomic_folder

MAX_BUNDLE_JSON = 1024 * 1024
MAX_IMAGE = 32 * 1024**3
IMAGE = "image.tar"
MANIFEST = "manifest.json"
RUNS = "runs"
METADATA = "ir-metadata.yml"  # what the team says of its experiment: https://www.ir-metadata.org
MAX_METADATA = 64 * 1024


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files match their hashes. ``digest`` identifies what was submitted.

    The run files of one that was registered are in ``contents``; those of others, and of bundles that were registered before
    there was a content store, lie in its folder.
    """

    folder: Path
    data: Mapping[str, Any]
    digest: str
    contents: ContentStore | None = field(default=None, repr=False, compare=False)

    def run_file(self, run: Mapping[str, Any]) -> KeptFile:
        """The file of an entry of ``runs`` in its bundle.json. Raises E307 when nobody knows where it is."""
        path = self.folder / RUNS / run["file"]
        if self.contents is None or path.is_file():
            return KeptFile(path)
        sizes = _read_json(self.folder / MANIFEST, "manifest", self.folder)["files"]
        content = Content(run["sha256"], sizes[f"{RUNS}/{run['file']}"]["size"])
        return KeptFile(path, Stored(self.contents, content))

    @property
    def cells(self) -> list[tuple[str, str]] | None:
        """The (dataset, scenario) pairs it is for; None for all of its task."""
        if self.data["runs"]:
            return [(run["dataset"], run["scenario"]) for run in self.data["runs"]]
        if "datasets" in self.data:
            return [(d, s) for d in self.data["datasets"] for s in self.data["scenarios"]]
        return None

    @property
    def submission_id(self) -> str:
        """The id under which it is registered: team, software and the beginning of its digest."""
        return submission_id(self.data["team"], self.data["software"], self.digest)


def bundle_digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of what was submitted: bundle.json without how, when and from which commit it was packed, and the local check's result.

    The same software is the same submission, whether its image travels in the bundle or not.
    """
    fields = {k: v for k, v in data.items() if k not in ("packed", "check", "source")}
    if fields["image"]:
        fields["image"] = {k: v for k, v in fields["image"].items() if k != "archive"}
    return schemas.digest(fields)


def store_runs(bundle: Bundle, contents: ContentStore) -> None:
    """Move the run files of a bundle to ``contents``. Raises E306 when the disk fails: then its folder is as it was."""
    files = [bundle.folder / RUNS / run["file"] for run in bundle.data["runs"]]
    with on_disk("a run file cannot be taken in", contents.root):
        for path in files:
            contents.put(path)
        for path in files:
            path.unlink()


def write_bundle(
    target: Path, data: Mapping[str, Any], files: Mapping[str, Path], *, move: bool = False
) -> Bundle:
    """Write a bundle to ``target`` as a whole or not at all, replacing an older one there.

    Args:
        target: the folder.
        data: the content of bundle.json (schema ``bundle``).
        files: the other files, by their names inside the bundle.
        move: move the files instead of copying them.

    Returns:
        The bundle, read back and verified.

    Raises:
        RunnerError: E101 when ``target`` is a folder that holds something else than a bundle.
    """
    import json

    if target.exists() and any(target.iterdir()) and not (target / "bundle.json").is_file():
        why = "It holds something else than a bundle."
        raise RunnerError("E101", f"{target} is not empty", why=why, fix="name a new folder")
    with atomic_folder(target, replace=True) as staging:
        for name, source in files.items():
            (staging / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.move if move else shutil.copyfile)(str(source), str(staging / name))
        (staging / "bundle.json").write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
        entries = {
            str(p.relative_to(staging)): {"sha256": file_sha256(p), "size": p.stat().st_size}
            for p in sorted(staging.rglob("*"))
            if p.is_file()
        }
        manifest = {"schema_version": 1, "files": entries}
        (staging / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    return read_bundle(target)


def read_bundle(folder: Path, *, verify: bool = True) -> Bundle:
    """The bundle in ``folder``. Raises E205 with every problem: missing, changed, extra or irregular files.

    Files are listed without following links; with ``verify`` every hash is checked.
    """
    if not folder.is_dir():
        raise _no_bundle(folder, "There is no such folder.")
    data = _read_json(folder / "bundle.json", "bundle", folder)
    manifest = _read_json(folder / MANIFEST, "manifest", folder)
    if verify:
        problems = _file_problems(folder, manifest["files"])
        problems += _content_problems(data, manifest["files"])
        if problems:
            what, why = f"{folder} is not a valid bundle", "Files are missing or were changed after packing."
            raise RunnerError("E205", what, why=why, fix="pack it again with runner pack", problems=problems)
    return Bundle(folder, data, bundle_digest(data))


def read_registered(folder: Path, submission_id: str, contents: ContentStore) -> Bundle:
    """The bundle that was kept when ``submission_id`` was registered, its run files in ``contents``; they are not hashed.

    Its schema was checked then: what still has the digest that the id was made of is not checked again. Raises E205 for a
    bundle that is missing or damaged, E307 for another one.
    """
    path = folder / "bundle.json"
    if path.is_file() and not path.is_symlink() and (folder / MANIFEST).is_file():
        data = schemas.load_json(path, path.name, max_bytes=MAX_BUNDLE_JSON).data
        with suppress(KeyError, TypeError, AttributeError):  # another file altogether
            bundle = Bundle(folder, data, bundle_digest(data), contents)
            if bundle.submission_id == submission_id:
                return bundle
    read_bundle(folder, verify=False)  # says what is damaged
    what = f"the bundle of {submission_id} is not what was registered"
    why = "Its content has another digest than its id says."
    raise RunnerError("E307", what, why=why, fix="restore it from a backup")


def _read_json(path: Path, schema: str, folder: Path) -> dict[str, Any]:
    if path.is_symlink() or not path.is_file():
        raise _no_bundle(folder, f"It has no {path.name}.")
    document = schemas.load_json(path, path.name, max_bytes=MAX_BUNDLE_JSON)
    problems = schemas.validate(document, schema)
    if problems:
        what = f"{path.name} of the bundle is not valid"
        raise RunnerError("E205", what, fix="pack it again with runner pack", problems=problems)
    return dict(document.data)


def _no_bundle(folder: Path, why: str) -> RunnerError:
    return RunnerError("E205", f"{folder} is not a bundle", why=why, fix="runner pack … --to FOLDER")


def _file_problems(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    problems = []
    seen = set()
    for root, folders, names in os.walk(folder):
        here = Path(root)
        for name in [*folders, *names]:
            path = here / name
            relative = str(path.relative_to(folder))
            shown = schemas.show(relative)
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                problems.append(Problem(shown, "is a link or a special file.", "pack only regular files"))
            elif path.is_file() and relative != MANIFEST:
                seen.add(relative)
                if relative not in files:
                    problems.append(Problem(shown, "is not in manifest.json.", "remove it, or pack again"))
                elif (
                    path.stat().st_size != files[relative]["size"]
                    or file_sha256(path) != files[relative]["sha256"]
                ):
                    problems.append(Problem(shown, "was changed after packing.", "pack again"))
    problems += [
        Problem(schemas.show(name), "is missing.", "pack again") for name in sorted(set(files) - seen)
    ]
    return problems


def _content_problems(data: Mapping[str, Any], files: Mapping[str, Any]) -> list[Problem]:
    image = data.get("image")
    runs = data.get("runs", [])
    wanted = [f"{RUNS}/{run['file']}" for run in runs]
    if image and image.get("archive"):
        wanted.append(image["archive"])
    problems = [
        Problem("bundle.json", f"names {schemas.show(n)}, which is not in the bundle.")
        for n in wanted
        if n not in files
    ]
    problems += [
        Problem(f"runs/{schemas.show(run['file'])}", "is not what bundle.json says.", "pack again")
        for run in runs
        if files.get(f"runs/{run['file']}", {}).get("sha256", run["sha256"]) != run["sha256"]
    ]
    for what, names in (
        ("name one file twice", [run["file"] for run in runs]),
        ("have two files for one dataset and scenario", [(run["dataset"], run["scenario"]) for run in runs]),
    ):
        if len(set(names)) != len(names):
            problems.append(Problem("bundle.json", f"must not {what}.", "pack again"))
    if files.get(METADATA, {}).get("size", 0) > MAX_METADATA:
        problems.append(Problem(METADATA, f"is larger than {MAX_METADATA // 1024} KiB.", "pack again"))
    carried = {"bundle.json", "submission.yaml", METADATA, *wanted}
    problems += [
        Problem(schemas.show(n), "does not belong into this bundle.", "pack again")
        for n in sorted(set(files) - carried)
    ]
    if bool(image) == bool(data.get("runs")):
        problems.append(Problem("bundle.json", "must have either an image or run files."))
    return problems


def describe(
    submission: SubmissionFile, image: ImageRef | None, runs: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """The content of bundle.json for a submission (schema ``bundle``), without archive and check."""
    command = submission.command
    datasets = {} if submission.datasets is None else {"datasets": list(submission.datasets)}
    # Only what was said: a bundle that says nothing keeps the identity it always had.
    chosen: dict[str, Any] = {} if submission.workflow is None else {"workflow": submission.workflow}
    chosen |= {"limits": dict(submission.limits)} if submission.limits else {}
    chosen |= {name: text for name in (*DISPLAYED, *ABOUT) if (text := getattr(submission, name))}
    return {
        **datasets,
        **chosen,
        "schema_version": 1,
        "team": submission.team,
        "software": submission.software,
        "task": submission.task,
        "scenarios": list(submission.scenarios),
        "image": {
            "id": image.id,
            "repo_digest": image.repo_digest,
            "platform": image.platform,
            "archive": None,
        }
        if image
        else None,
        "runs": [dict(run) for run in runs],
        "command": list(command) if isinstance(command, tuple) else command,
        "tag": submission.tag or submission.software,
        "description": submission.description,
        "method": submission.method,
        "inputs": dict(submission.inputs),
        "check": None,
        "packed": stamp(SystemClock().now()),
    }


def provisional(
    submission: SubmissionFile,
    image: ImageRef | None,
    folder: Path,
    runs: Sequence[Mapping[str, str]] = (),
) -> Bundle:
    """A bundle that was not written: what the local check runs, and what can be asked about before it is."""
    data = describe(submission, image, runs)
    return Bundle(folder, data, bundle_digest(data))


def registration(bundle: Bundle) -> dict[str, Any]:
    """What the event of a registration says about a bundle."""
    data = bundle.data
    copied = ("task", "team", "software", "scenarios", "tag", "description", "method")
    cells = bundle.cells
    return {
        "submission": bundle.submission_id,
        "digest": bundle.digest,
        **{key: data[key] for key in copied},
        **{key: data[key] for key in (*DISPLAYED, *ABOUT, "limits", "source") if key in data},
        "image": data["image"]["id"] if data["image"] else None,
        "workflow": "upload" if data["runs"] else data.get("workflow", "batch"),
        "cells": None if cells is None else [list(cell) for cell in cells],
    }
