"""Registered bundles against the events that registered them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.model.errors import PlatformError, Problem
from runner.records.events import Event
from runner.records.files import file_sha256, read_json, shown, walk
from runner.records.sealing import MANIFEST

_BACKUP = "restore it from a backup"


def bundle_digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of what was submitted: bundle.json without how, when and from which commit it was packed, and the local check's result.

    The same software is the same submission, whether its image travels in the bundle or not.
    """
    fields = {k: v for k, v in data.items() if k not in ("packed", "check", "source")}
    if fields["image"]:
        fields["image"] = {k: v for k, v in fields["image"].items() if k != "archive"}
    return schemas.digest(fields)


def verify_bundles(registered: Path, events: Iterable[Event]) -> list[Problem]:
    """Compare the kept bundle of each registration with its event, and the files with the bundle's manifest.

    Run files in the content store are not read here: :func:`runner.records.integrity.verify` reads them.

    Args:
        registered: The folder of the registered bundles.
        events: The events; an event without the digest of a bundle registered none.

    Returns:
        The problems, each with its place in the data directory.
    """
    problems: list[Problem] = []
    for event in events:
        submission, digest = event.data.get("submission"), event.data.get("digest")
        if event.type == "submission-registered" and isinstance(submission, str) and isinstance(digest, str):
            folder = registered / submission / "bundle"
            problems += _verify_bundle(folder, f"submissions/{shown(submission)}/bundle", event)
    return problems


def _verify_bundle(folder: Path, place: str, event: Event) -> Iterator[Problem]:
    if not folder.is_dir():
        yield Problem(place, f"is missing, but event {event.seq} registered it.", _BACKUP)
        return
    manifest = folder / MANIFEST
    try:
        listed = read_json(manifest, "manifest")["files"]
        noted = noted_manifest(event)
        if noted is not None and file_sha256(manifest) != noted:
            yield Problem(f"{place}/{MANIFEST}", f"is not what event {event.seq} registered.", _BACKUP)
            return
        yield from _compare_files(folder, place, listed)
    except PlatformError as error:
        yield Problem(place, error.why, _BACKUP)
        return
    if not _has_digest(folder / "bundle.json", event.data["digest"]):
        yield Problem(f"{place}/bundle.json", f"is not what event {event.seq} registered.", _BACKUP)


def noted_manifest(event: Event) -> str | None:
    """Return the SHA-256 of the bundle's manifest.json; None in events of versions that did not note it."""
    noted = event.data.get("manifest")
    return noted if isinstance(noted, str) else None


def _compare_files(folder: Path, place: str, listed: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    missing = {name for name in listed if not name.startswith("runs/")}
    for name, path in walk(folder):
        if name == MANIFEST:
            continue
        missing.discard(name)
        entry = listed.get(name)
        if entry is None:
            yield Problem(f"{place}/{shown(name)}", "was added after the registration.", "remove it")
        elif (path.stat().st_size, file_sha256(path)) != (entry["size"], entry["sha256"]):
            yield Problem(f"{place}/{shown(name)}", "was changed after the registration.", _BACKUP)
    for name in sorted(missing):
        yield Problem(f"{place}/{shown(name)}", "is missing.", _BACKUP)


def _has_digest(path: Path, digest: str) -> bool:
    """True if a bundle.json has the digest, or if another problem already names the file."""
    if not path.is_file():
        return True
    try:
        return bundle_digest(read_json(path, None)) == digest
    except (PlatformError, KeyError, TypeError, AttributeError, ValueError):
        return False
