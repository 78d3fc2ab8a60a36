"""Whether the archive is as it was sealed, and as the event log says: looking for damage, and for what has no event yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from runner.model.errors import PlatformError, Problem
from runner.records.archive import MANIFEST, Attempt, Evaluation, Key, RunArchive
from runner.records.events import Event
from runner.records.files import damaged, file_sha256, read_json, shown, walk

_BACKUP = "restore it from a backup"


def uncommitted(archive: RunArchive, events: Iterable[Event]) -> list[Attempt | Evaluation]:
    """What was sealed but never got its event (a crash in between), in the order to commit it."""
    known = {key for key, _ in _committed(events)}
    return [sealed for sealed in archive.sealed() if sealed.key not in known]


def verify(archive: RunArchive, events: Iterable[Event] = (), *, complete: bool = False) -> list[Problem]:
    """Check every file against its manifest, and every manifest against the event log. Reads the whole archive.

    Args:
        archive: What is checked.
        events: The events that name what it must hold.
        complete: Whether these are all events there are: what none of them names is a problem, too.

    Returns:
        What is wrong, each with its place in the archive.
    """
    problems: list[Problem] = []
    folders: dict[Key, Path] = {}
    for sealed in archive.sealed():
        problems += _check_folder(archive.root, sealed)
        folders[sealed.key] = sealed.path
    named = set()
    for key, event in _committed(events):
        named.add(key)
        problems += _check_event(archive, key, event)
    if complete:
        fix = "runner evaluate takes it over if a command was killed just before; else the log was cut: restore it"
        problems += [
            Problem(str(path.relative_to(archive.root)), "is in the archive, but no event names it.", fix)
            for key, path in folders.items()
            if key not in named
        ]
    return problems


def check_whole(archive: RunArchive, sealed: Attempt | Evaluation, manifest: str) -> None:
    """Raise E307 unless every file of ``sealed`` is as it was when its ``manifest`` (SHA-256) was committed."""
    check_manifest(sealed, manifest)
    wrong = _check_folder(archive.root, sealed)
    if wrong:
        error = damaged(str(wrong[0]))
        error.problems = tuple(wrong)
        raise error


def check_manifest(sealed: Attempt | Evaluation, manifest: str) -> None:
    """Raise E307 unless the manifest of ``sealed`` is the one that was committed. Reads that file only."""
    if sealed.manifest_digest() != manifest:
        raise damaged(f"{sealed.path} holds other files than those that were committed")


def _committed(events: Iterable[Event]) -> Iterator[tuple[Key, Event]]:
    """The events that commit an attempt or an evaluation, with what they name."""
    for event in events:
        if event.type in ("attempt-committed", "evaluation-committed"):
            d = event.data
            yield (d["task"], d["run"], d["attempt"], d.get("evaluation")), event


def _check_folder(root: Path, sealed: Attempt | Evaluation) -> list[Problem]:
    place = str(sealed.path.relative_to(root))
    try:
        listed = read_json(sealed.path / MANIFEST, None)["files"]
        wanted = {name: (entry["size"], entry["sha256"]) for name, entry in listed.items()}
    except (PlatformError, KeyError, TypeError, AttributeError):
        return [Problem(f"{place}/{MANIFEST}", "is missing or damaged.", _BACKUP)]
    problems = []
    missing = set(wanted)
    try:
        for name, path in walk(sealed.path, skip="evaluations" if isinstance(sealed, Attempt) else None):
            if name == MANIFEST:
                continue
            missing.discard(name)
            if name not in wanted:
                problems.append(Problem(f"{place}/{shown(name)}", "was added after sealing.", "remove it"))
            elif (path.stat().st_size, file_sha256(path)) != wanted[name]:
                problems.append(Problem(f"{place}/{shown(name)}", "was changed after sealing.", _BACKUP))
    except PlatformError as error:
        problems.append(Problem(place, error.why))
    return problems + [Problem(f"{place}/{shown(name)}", "is missing.", _BACKUP) for name in sorted(missing)]


def _check_event(archive: RunArchive, key: Key, event: Event) -> list[Problem]:
    task, run, attempt, evaluation = key
    folder = archive.root / task / run / "attempts" / str(attempt)
    if evaluation is not None:
        folder = folder / "evaluations" / str(evaluation)
    place = str(folder.relative_to(archive.root))
    if not (folder / MANIFEST).is_file():
        return [Problem(place, f"is missing, but event {event.seq} names it.", _BACKUP)]
    if file_sha256(folder / MANIFEST) != event.data["manifest"]:
        return [Problem(place, f"is not what event {event.seq} committed.", _BACKUP)]
    return []
