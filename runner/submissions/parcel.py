"""Parcels: a bundle with its image on its way to a server, without what the server has of the team's earlier ones.

An image archive is taken apart into its members, each known by its SHA-256: the layers of an image that was changed a little are those
of the one before. A parcel is a file::

    {"files": …, "image": …, "sent": …}\\n     one line of JSON, schemas/parcel.schema.json
    <content><content>…                        what is ``sent``, one behind the other

``files`` are the files of the bundle, ``image`` the members of its image archive in their order (None: it names one of a registry). Who
unpacks it (:func:`unpack`) has every content hashed again, finds what was not sent among parts of the same team, and nobody else's.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import Engine, find_image
from runner.model.errors import Problem, RunnerError
from runner.model.limits import in_units
from runner.submissions.bundle import IMAGE, MANIFEST, MAX_BUNDLE_JSON, MAX_IMAGE, Bundle, write_bundle
from schemas.files import atomic_file, file_sha256, make_private

MAX_HEAD = 4 * 1024 * 1024  # bytes of the line of JSON
SMALLEST = 64 * 1024  # bytes of a part that is worth being asked for
PARTS = "parts.json"  # beside a registered bundle: where the parts of its image archive are
BASES = "bases"  # in the data directory: base images, each a folder as a registered bundle has it
_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class Part:
    """Some bytes of a file, and their digest."""

    path: Path
    offset: int
    size: int
    sha256: str

    def chunks(self) -> Iterator[bytes]:
        """The bytes. Raises E205 where the file has become shorter."""
        left = self.size
        with self.path.open("rb") as file:
            file.seek(self.offset)
            while left and (piece := file.read(min(_CHUNK, left))):
                left -= len(piece)
                yield piece
        if left:
            raise _refused("a file ends before its time")


class Parcel(io.RawIOBase):
    """A parcel as a file that is put together while it is read: it takes no room, and memory stays flat.

    ``sent`` are the parts that go along; ``left`` is how many bytes of the bundle the server has already.
    """

    def __init__(self, head: bytes, sent: Iterable[Part], left: int) -> None:
        super().__init__()
        self._head, self._parts, self.left = head, list(sent), left
        self.size = len(head) + sum(part.size for part in self._parts)
        self._at = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """One can go anywhere in it."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, counted from the beginning."""
        assert whence == 0, "nobody asks for more"
        self._at = offset
        return offset

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        start, wanted = 0, memoryview(buffer)
        for size, open_ in [(len(self._head), None), *((part.size, part) for part in self._parts)]:
            if start <= self._at < start + size:
                inside, most = self._at - start, min(len(wanted), start + size - self._at)
                if open_ is None:
                    found = self._head[inside : inside + most]
                else:
                    with open_.path.open("rb") as file:
                        file.seek(open_.offset + inside)
                        found = file.read(most)
                wanted[: len(found)] = found
                self._at += len(found)
                return len(found)
            start += size
        return 0

    @property
    def sha256(self) -> str:
        """The digest of the whole; it is read for that."""
        digest = hashlib.sha256(self._head)
        for part in self._parts:
            for chunk in part.chunks():
                digest.update(chunk)
        return digest.hexdigest()


def parcel(bundle: Bundle, there: Iterable[str]) -> Parcel:
    """The parcel of a bundle for a server that has the parts ``there`` (digests) of the team."""
    known, files, image, parts = set(there), [], None, []
    for path in sorted(bundle.folder.rglob("*")):
        name = path.relative_to(bundle.folder).as_posix()
        if not path.is_file() or name == MANIFEST:
            continue
        if name == IMAGE:
            image, found = _members(path)
            parts += found
        else:
            part = Part(path, 0, path.stat().st_size, file_sha256(path))
            files.append({"name": name, "size": part.size, "sha256": part.sha256})
            parts.append(part)
    sent = {part.sha256: part for part in parts if part.sha256 not in known}
    head: dict[str, Any] = {"schema_version": 1, "files": files, "image": image}
    head["sent"] = [{"sha256": one.sha256, "size": one.size} for one in sent.values()]
    left = sum(one.size for one in {part.sha256: part for part in parts}.values() if one.sha256 not in sent)
    return Parcel(schemas.canonical(head) + b"\n", sent.values(), left)


def _members(path: Path) -> tuple[list[dict[str, Any]], list[Part]]:
    """The members of an image archive as a parcel names them, and the parts that they are."""
    named: list[dict[str, Any]] = []
    parts: list[Part] = []
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.issym():
                named.append({"name": member.name, "link": member.linkname})
            elif member.isreg():
                part = _part(path, member.offset_data, member.size)
                named.append({"name": member.name, "size": part.size, "sha256": part.sha256})
                parts.append(part)
    return named, parts


def _part(path: Path, offset: int, size: int) -> Part:
    digest = hashlib.sha256()
    for chunk in Part(path, offset, size, "").chunks():
        digest.update(chunk)
    return Part(path, offset, size, digest.hexdigest())


def unpack(path: Path, own: Mapping[str, Part], target: Path) -> Bundle:
    """The bundle that a parcel holds, every byte of it hashed.

    Args:
        path: The parcel.
        own: Parts of the same team by their digests, which need not be sent.
        target: A new folder.

    Returns:
        The bundle, written to ``target`` and verified.

    Raises:
        RunnerError: E205 for what is no parcel, is not what it says, or leaves out what is not there.
    """
    head, sent = _opened(path)
    needed = {
        one["sha256"]: one["size"] for one in [*head["files"], *(head["image"] or ())] if "sha256" in one
    }
    if (
        sum(one.get("size", 0) for one in head["image"] or ()) > MAX_IMAGE
    ):  # one part may stand in it many times
        raise _refused(f"the image is larger than {in_units(MAX_IMAGE)}")
    missing = [
        digest for digest, size in needed.items() if digest not in sent and not _fits(own.get(digest), size)
    ]
    if missing:
        problems = [
            Problem("", f"sha256:{digest} was not sent, and no earlier hand-in of the team has it.")
            for digest in missing
        ]
        raise _refused("parts of the image are missing", problems)

    def part(entry: Mapping[str, Any]) -> Part:
        found = sent.get(entry["sha256"]) or own[entry["sha256"]]
        if found.size != entry["size"]:
            raise _refused("a part has another size than it says")
        if _part(found.path, found.offset, found.size).sha256 != found.sha256:
            raise _refused(f"sha256:{found.sha256} is another content")
        return found

    staging = target.with_name(f"{target.name}.parts")
    files: dict[str, Path] = {}
    for entry in head["files"]:
        to = staging / entry["name"]
        if entry["name"] in files:
            raise _refused("a file is in it twice")
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("xb") as file:
            file.writelines(part(entry).chunks())
        files[entry["name"]] = to
    if head["image"] is not None:
        _write_archive(staging / IMAGE, head["image"], part)
        files[IMAGE] = staging / IMAGE
    data = _data(files)
    return write_bundle(target, data, {k: v for k, v in files.items() if k != "bundle.json"}, move=True)


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, Part]]:
    """The head of a parcel, and what was sent, by digest; its contents are hashed before they are copied."""
    with path.open("rb") as file:
        line = file.readline(MAX_HEAD + 1)
        size = file.seek(0, 2)
    try:
        head = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        head = None
    if head is None or (problems := schemas.validate(head, "parcel")):
        raise _refused("its first line is not what it should be", problems if head is not None else ())
    sent: dict[str, Part] = {}
    at = len(line)
    for one in head["sent"]:
        sent[one["sha256"]] = Part(path, at, one["size"], one["sha256"])
        at += one["size"]
    if at != size:
        raise _refused("it is longer or shorter than it says")
    return head, sent


def _write_archive(
    path: Path, members: Iterable[Mapping[str, Any]], part: Callable[[Mapping[str, Any]], Part]
) -> None:
    """Write an image archive from its members; what it means is looked at when it is loaded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "x:", format=tarfile.GNU_FORMAT) as tar:
        for member in members:
            entry = tarfile.TarInfo(member["name"])
            if "link" in member:
                entry.type, entry.linkname = tarfile.SYMTYPE, member["link"]
                tar.addfile(entry)
                continue
            found = part(member)
            entry.size = found.size
            with found.path.open("rb") as content:
                content.seek(found.offset)
                tar.addfile(entry, content)


def _data(files: Mapping[str, Path]) -> dict[str, Any]:
    """The content of bundle.json, which fits its schema."""
    if "bundle.json" not in files:
        raise _refused("it has no bundle.json")
    document = schemas.load_json(files["bundle.json"], "bundle.json", max_bytes=MAX_BUNDLE_JSON)
    if problems := schemas.validate(document, "bundle"):
        raise _refused("bundle.json is not valid", problems)
    return dict(document.data)


def _fits(part: Part | None, size: int) -> bool:
    return part is not None and part.size == size


def _refused(why: str, problems: Iterable[Problem] = ()) -> RunnerError:
    what, fix = f"the parcel is not valid: {why}", "submit it again"
    return RunnerError("E205", what, fix=fix, problems=tuple(problems))


def note_parts(folder: Path) -> None:
    """Note beside a registered bundle (``folder`` holds ``bundle/``) where the parts of its image archive are. Raises OSError."""
    archive = folder / "bundle" / IMAGE
    if not archive.is_file() or (folder / PARTS).exists():
        return
    found = [[one.sha256, one.offset, one.size] for one in _members(archive)[1] if one.size >= SMALLEST]
    with atomic_file(folder / PARTS, mode=0o600) as file:
        file.write(json.dumps(found).encode())


def parts_of(registered: Path, submissions: Iterable[str]) -> dict[str, Part]:
    """The parts of image archives of these submissions, by digest. They are hashed when they are used."""
    found: dict[str, Part] = {}
    for one in submissions:
        archive = registered / one / "bundle" / IMAGE
        try:
            rows = json.loads((registered / one / PARTS).read_bytes()) if archive.is_file() else []
        except (OSError, ValueError):
            continue
        for sha256, offset, size in rows:
            found.setdefault(sha256, Part(archive, offset, size, sha256))
    return found


def note_bases(home: Path, engine: Engine, names: Iterable[str]) -> None:
    """Keep the image archives of base images that the organiser named for everybody, of those that the engine has: their layers need
    not be sent by anybody. Those of others go. Raises OSError, PlatformError when the engine fails."""
    folder, kept = home / BASES, set()
    for name in names:
        image = find_image(engine, name)
        if image is None:
            continue
        one = folder / image.id.removeprefix("sha256:")
        kept.add(one.name)
        if not (one / PARTS).exists():
            make_private(one / "bundle")
            engine.save(image, one / "bundle" / IMAGE)
            note_parts(one)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in kept:
            shutil.rmtree(path)


def parts_for(home: Path, submissions: Iterable[str]) -> dict[str, Part]:
    """The parts that a team need not send: of its own ``submissions``, and of base images."""
    bases = home / BASES
    names = sorted(path.name for path in bases.iterdir()) if bases.is_dir() else []
    return {**parts_of(bases, names), **parts_of(home / "submissions", submissions)}
