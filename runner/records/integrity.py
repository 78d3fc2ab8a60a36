"""Whether the archive is as it was sealed, and as the event log says: looking for damage, and for what has no event yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.model.errors import PlatformError, Problem
from runner.records.archive import Attempt, Evaluation, Key, RunArchive
from runner.records.contents import Content
from runner.records.events import Event
from runner.records.files import damaged, file_sha256, read_json, shown, walk
from runner.records.sealing import MANIFEST

MOST = 20  # of what needs a content that are named
_BACKUP = "restore it from a backup"
_RUNS = "runs/"  # begins the names of run files in a bundle


def uncommitted(archive: RunArchive, events: Iterable[Event]) -> list[Attempt | Evaluation]:
    """What was sealed but never got its event (a crash in between), in the order to commit it."""
    known = {key for key, _ in _committed(events)}
    return [sealed for sealed in archive.sealed() if sealed.key not in known]


def needed(archive: RunArchive, registered: Path) -> dict[Content, list[str]]:
    """Every content that an attempt, an evaluation or a registered bundle (in ``registered``) needs, with these as people name them.

    Raises E307 for a manifest that cannot be read: what it needs is not known.
    """
    found: dict[Content, list[str]] = {}
    for sealed in archive.sealed():
        _add(found, _stored(sealed))
    _add(found, _of_bundles(registered))
    return found


def verify(
    archive: RunArchive,
    events: Iterable[Event] = (),
    *,
    registered: Path | None = None,
) -> list[Problem]:
    """Check every file against its manifest, and every manifest against the event log. Reads the whole archive.

    Each content of the content store is read once, however many need it.

    Args:
        archive: What is checked.
        events: The events that name what it must hold.
        registered: The registered bundles, whose run files have to be in the content store, too.

    Returns:
        What is wrong, each with its place in the archive.
    """
    problems: list[Problem] = []
    contents: dict[Content, list[str]] = {}
    for sealed in archive.sealed():
        problems += _check_folder(archive.root, sealed)
        with suppress(PlatformError):  # said just now
            _add(contents, _stored(sealed))
    if registered is not None:
        try:
            _add(contents, _of_bundles(registered))
        except PlatformError as error:
            problems.append(Problem("submissions", error.why, _BACKUP))
    problems += _check_contents(archive, contents)
    for key, event in _committed(events):
        problems += _check_event(archive, key, event)
    return problems


def check_whole(archive: RunArchive, sealed: Attempt | Evaluation, manifest: str) -> None:
    """Raise E307 unless every file of ``sealed`` is as it was when its ``manifest`` (SHA-256) was committed."""
    check_manifest(sealed, manifest)
    if wrong := whole(archive, sealed, manifest):
        error = damaged(str(wrong[0]))
        error.problems = tuple(wrong)
        raise error


def whole(archive: RunArchive, sealed: Attempt | Evaluation, manifest: str) -> list[Problem]:
    """What of ``sealed`` is not as it was when its ``manifest`` (SHA-256) was committed; empty when every file is."""
    place = str(sealed.path.relative_to(archive.root))
    try:
        if sealed.manifest_digest() != manifest:
            return [Problem(place, "holds other files than those that were committed.", _BACKUP)]
    except PlatformError as error:
        return [Problem(place, error.why, _BACKUP)]
    wrong = _check_folder(archive.root, sealed)
    if not wrong:
        contents: dict[Content, list[str]] = {}
        _add(contents, _stored(sealed))
        wrong = _check_contents(archive, contents)
    return wrong


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
        listed = {name: entry for name, entry in sealed.manifest().items() if "stored" not in entry}
    except PlatformError:
        return [Problem(f"{place}/{MANIFEST}", "is missing or damaged.", _BACKUP)]
    skip = "evaluations" if isinstance(sealed, Attempt) else None
    return list(_compare_files(sealed.path, place, listed, listed, "sealing", skip=skip))


def _compare_files(
    folder: Path,
    place: str,
    listed: Mapping[str, Mapping[str, Any]],
    needed: Iterable[str],
    since: str,
    *,
    skip: str | None = None,
) -> Iterator[Problem]:
    """Compare the files of a folder with those that its manifest ``listed``; the ``needed`` ones may not be missing."""
    missing = set(needed)
    try:
        for name, path in walk(folder, skip=skip):
            if name == MANIFEST:
                continue
            missing.discard(name)
            entry = listed.get(name)
            if entry is None:
                yield Problem(f"{place}/{shown(name)}", f"was added after {since}.", "remove it")
            elif (path.stat().st_size, file_sha256(path)) != (entry["size"], entry["sha256"]):
                yield Problem(f"{place}/{shown(name)}", f"was changed after {since}.", _BACKUP)
    except PlatformError as error:
        yield Problem(place, error.why, _BACKUP)
    for name in sorted(missing):
        yield Problem(f"{place}/{shown(name)}", "is missing.", _BACKUP)


def verify_bundles(registered: Path, events: Iterable[Event]) -> list[Problem]:
    """Compare the kept bundle of each registration with its event, and the files with the bundle's manifest.

    Run files in the content store are not read here: :func:`verify` reads them.

    Args:
        registered: The folder of the registered bundles.
        events: The events; an event without the digest of a manifest registered no bundle.

    Returns:
        The problems, each with its place in the data directory.
    """
    problems: list[Problem] = []
    for event in events:
        submission, manifest = event.data.get("submission"), event.data.get("manifest")
        if (
            event.type == "submission-registered"
            and isinstance(submission, str)
            and isinstance(manifest, str)
        ):
            folder = registered / submission / "bundle"
            problems += _verify_bundle(folder, f"submissions/{shown(submission)}/bundle", event)
    return problems


def _verify_bundle(folder: Path, place: str, event: Event) -> Iterator[Problem]:
    if not folder.is_dir():
        yield Problem(place, f"is missing, but event {event.seq} registered it.", _BACKUP)
        return
    try:
        listed = read_json(folder / MANIFEST, "manifest")["files"]
        is_noted = file_sha256(folder / MANIFEST) == event.data["manifest"]
    except PlatformError as error:
        yield Problem(place, error.why, _BACKUP)
        return
    if not is_noted:
        yield Problem(f"{place}/{MANIFEST}", f"is not what event {event.seq} registered.", _BACKUP)
        return
    needed = (name for name in listed if not name.startswith(_RUNS))
    yield from _compare_files(folder, place, listed, needed, "the registration")


def _add(found: dict[Content, list[str]], more: Iterable[tuple[Content, str]]) -> None:
    for content, who in more:
        found.setdefault(content, []).append(who)


def _stored(sealed: Attempt | Evaluation) -> Iterator[tuple[Content, str]]:
    """The contents that an attempt or evaluation needs, each with what it is to it."""
    for name, entry in sealed.manifest().items():
        if "stored" in entry:
            yield Content(entry["sha256"], entry["size"]), f"{sealed.id} ({shown(name)})"


def _of_bundles(registered: Path) -> Iterator[tuple[Content, str]]:
    """The contents that registered bundles need: the run files of their manifests that do not lie beside these."""
    for path in sorted(registered.glob(f"[!.]*/bundle/{MANIFEST}")):
        for name, entry in read_json(path, "manifest")["files"].items():
            if name.startswith(_RUNS) and not (path.parent / name).is_file():
                yield Content(entry["sha256"], entry["size"]), f"{path.parts[-3]} ({shown(name)})"


def _check_contents(archive: RunArchive, contents: Mapping[Content, list[str]]) -> list[Problem]:
    problems = []
    for content, users in sorted(contents.items()):
        if wrong := archive.contents.problem(content):
            more = f" and {len(users) - MOST} more" if len(users) > MOST else ""
            what = f"{wrong}. It belongs to {', '.join(users[:MOST])}{more}."
            problems.append(Problem(archive.contents.place(content), what, _BACKUP))
    return problems


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
