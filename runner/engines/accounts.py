"""Whether the account files of an image would change who its software runs as.

We give user and group as numbers. The runtime looks each number up in the image's ``/etc/group`` all the same,
as a *name* first: a group called ``20001`` with the id 0 puts our group 20001 into group 0. No option of the
engine turns that off, so an image with such a name is refused, and what the kernel made of it is read back.

Two look: the runtime below all mounts, the daemon before in the image's own root. Links can lead each to files of its own, through
places over which something is mounted, or such places to the files. So both are looked at.

The same look at the image alone also gives the text of both files, to which :func:`with_user` adds the user of a run, and the
folders that :func:`find_contents` returns. Nothing of the image runs for it, and nothing of it is opened on this machine.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import posixpath
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.engines.collect import CHUNK, CappedReader
from runner.engines.tarstream import TooMuch, engine_archive
from runner.engines.text import clean_path
from runner.model.container import ImageRef
from runner.model.limits import MIB
from schemas.files import atomic_file

FILES = ("/etc/passwd", "/etc/group")
MAX_BYTES = 1024 * 1024
MAX_LINKS = 8
SECONDS = 30
STAT = "X-Docker-Container-Path-Stat"
LINK = 1 << 27  # the bits of Go's file modes: a link
FOLDER = 1 << 31
RULES = 4  # another number has every image looked at again
USER_NAME = "sandbox"
PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
WRITABLE_HOME = "/tmp"  # noqa: S108
ROOT_HOME = "/root"
CLOSED_TO_OTHERS = 0o005
# Files of base images and package managers in /root; no system needs them.
UNIMPORTANT = (".bashrc", ".profile", ".wget-hsts", ".python_history", ".cache/pip")
# Limits for the search for files, of all folders of an image together.
MAX_FOLDERS = 8
MAX_LOOKED_AT = 256 * MIB
MAX_ENTRIES = 50_000
MAX_TEXT = 64 * 1024  # bytes of an account file that gets an entry for the user of a run
MAX_HELD = 1000  # images whose facts are held in memory
OLD = 30 * 24 * 3600.0  # seconds after which the file with the facts about an image is removed
CONTENT = re.compile("sha256:[0-9a-f]{64}")  # an identity that follows from content
NO_FILE = 1 << 31 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19  # folder, device, pipe, socket, the rest


@dataclass(frozen=True)
class ImageFacts:
    """Facts about an image from a created container that never runs.

    Attributes:
        refusal: Why the image cannot be run under a numeric user, or None.
        texts: The account files by path, as Latin-1 text. None if a link leads to one of them or if one is large.
        contents: The folders that :func:`find_contents` returns.
    """

    refusal: str | None = None
    texts: Mapping[str, str] | None = None
    contents: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the facts of a sound image for a file."""
        return json.dumps({"texts": self.texts, "contents": self.contents}).encode()

    @classmethod
    def from_json(cls, data: bytes) -> ImageFacts:
        """Return the facts that :meth:`to_json` wrote."""
        record = json.loads(data)
        return cls(None, record["texts"], tuple(record["contents"]))


class Accounts:
    """Facts about images: each image is looked at once by itself, and once with the places over which something is mounted.

    An image's identity follows from its content, so the facts of a sound image are also left in a file of ``folder``, which
    is this user's alone, for processes that come later. That is of one ``engine`` and platform: an identity may be that of an index, out
    of which engines take what fits them. An image that was refused is looked at again by each process.
    """

    def __init__(self, folder: Callable[[], Path], engine: Callable[[], str]) -> None:
        self._folder, self._engine = folder, engine
        self._facts: dict[tuple[str, ...], ImageFacts] = {}

    def facts(self, api: Any, image: ImageRef, bare: Mapping[str, Any]) -> ImageFacts:
        """Return the facts about ``image`` by itself.

        Args:
            api: The client of the engine.
            image: The image.
            bare: Options of a container without mounts, which is made where it is needed, never started, and removed.
        """

        def look() -> ImageFacts:
            with _made(api, bare) as container:
                return examine(api, container, image)

        return self._known(image, look)

    def refusal(self, api: Any, container: str, image: ImageRef, places: Iterable[str]) -> str | None:
        """Return why a created container of ``image`` with mounts at ``places`` cannot run, or None."""
        return self._known(image, lambda: examine(api, container), "with", *sorted(places)).refusal

    def _known(self, image: ImageRef, look: Callable[[], ImageFacts], *places: str) -> ImageFacts:
        key = (self._engine(), image.platform, image.id, *places)
        facts = self._facts.get(key)
        if facts is None:
            facts = self._from_file(key, look) if CONTENT.fullmatch(image.id) else look()
            if len(self._facts) >= MAX_HELD:
                self._facts.clear()
            self._facts[key] = facts
        return facts

    def _from_file(self, key: tuple[str, ...], look: Callable[[], ImageFacts]) -> ImageFacts:
        digest = hashlib.sha256(json.dumps([RULES, *key]).encode()).hexdigest()
        path = self._folder() / f"accounts-{digest}"
        with suppress(FileNotFoundError):
            return ImageFacts.from_json(path.read_bytes())
        facts = look()
        if facts.refusal is None:
            with atomic_file(path) as file:
                file.write(facts.to_json())
        return facts

    @property
    def held(self) -> int:
        """The number of facts in memory."""
        return len(self._facts)

    def remove_old(self) -> None:
        """Remove files with facts, and locks on data volumes, that were written long ago.

        An image in use is looked at again. These locks only save work.
        """
        folder = self._folder()
        for path in (*folder.glob("accounts-*"), *folder.glob("data-*.lock")):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > OLD:
                    path.unlink()


@contextmanager
def _made(api: Any, options: Mapping[str, Any]) -> Iterator[str]:
    """A container that is not started, for as long as the context lasts."""
    container = api.create_container_from_config(options)["Id"]
    try:
        yield container
    finally:
        api.remove_container(container, v=True, force=True)


def examine(api: Any, container: str, image: ImageRef | None = None) -> ImageFacts:
    """Return the facts about the image of a created container; the contents only where ``image`` is given.

    Nothing of the image is run for this. A file that is not there names nobody. Both files are looked at
    before either is fetched: engines hang for ever where one is a named pipe, when they fetch any file and
    when they start the container.
    """
    try:
        paths = [_resolve(api, container, path) for path in FILES]
        texts = [b"" if path is None else _read(api, container, path) for path in paths]
    except ValueError as error:
        return ImageFacts(f"the image cannot be run: {error}")
    for path, text in zip(FILES, texts, strict=True):
        for line in text.decode("utf-8", "replace").split("\n"):
            # The runtime strips every kind of blank that Unicode knows, as this does.
            name, *fields = [field.strip() for field in line.split(":")]
            if name.isdigit() and fields[1:2] != [name]:
                return ImageFacts(f"{path} of the image names an account {name[:20]} that has another number")
    if image is None:
        return ImageFacts()
    # A mount over a linked file would land where the link leads.
    direct = not any(_mode(api, container, path) & LINK for path in ("/etc", *FILES))
    direct = direct and all(len(text) <= MAX_TEXT for text in texts)
    named = {path: text.decode("latin-1") for path, text in zip(FILES, texts, strict=True)}
    return ImageFacts(None, named if direct else None, tuple(find_contents(api, container, image)))


def home_of(image: ImageRef) -> str:
    """Return the home folder that the image sets with ENV; empty if it sets none that is a plain absolute path.

    A plain path fits in an account file, and has no ``..``, which could follow a link.
    """
    home = dict(entry.partition("=")[::2] for entry in image.env).get("HOME", "")
    plain = home.startswith("/") and home.isascii() and home.isprintable() and ":" not in home
    return clean_path(home) if plain and ".." not in home.split("/") else ""


def with_user(texts: Mapping[str, str], uid: int, home: str) -> tuple[str, dict[str, bytes]]:
    """Return the name of ``uid`` and account files that name it.

    Args:
        texts: The image's own files by path.
        uid: The number of the user and its group.
        home: The user's home folder.

    Returns:
        The name, and the files by path. There are none if the image names the user itself.
    """
    for line in texts["/etc/passwd"].split("\n"):
        name, *fields = line.split(":")
        if fields[1:2] == [str(uid)] and PLAIN_NAME.fullmatch(name):
            return name, {}
    # First, so that neither an account of the same name nor a damaged line hides them.
    own = {
        "/etc/passwd": f"{USER_NAME}:x:{uid}:{uid}:{USER_NAME}:{home}:/bin/sh\n",
        "/etc/group": f"{USER_NAME}:x:{uid}:\n",
    }
    return USER_NAME, {path: (own[path] + texts[path]).encode("latin-1") for path in FILES}


def find_contents(api: Any, container: str, image: ImageRef) -> Iterator[str]:
    """Yield the image's folders with files that the sandbox would hide, or that are too large to be searched.

    These are the first folders that the image declares as VOLUME, and its home folder (by default root's) if only
    its owner can read it.
    """
    home, left = home_of(image) or ROOT_HOME, _Limits(MAX_LOOKED_AT, MAX_ENTRIES)
    for path in image.volumes[:MAX_FOLDERS]:
        if _mode(api, container, path) & (FOLDER | LINK) == FOLDER and left.find_file(api, container, path):
            yield path
    mode = _mode(api, container, home)
    closed = mode & (FOLDER | LINK) == FOLDER and mode & CLOSED_TO_OTHERS != CLOSED_TO_OTHERS
    if home not in image.volumes and closed and left.find_file(api, container, home):
        yield home


def _mode(api: Any, container: str, path: str) -> int:
    """Return the bits of Go's file mode of a path, 0 if the path is missing."""
    answer = _look(api, container, path)
    if answer.status_code != 200:
        return 0
    return int(json.loads(base64.b64decode(answer.headers[STAT]))["mode"])


@dataclass
class _Limits:
    """The bytes and entries that may still be read of an image's folders."""

    bytes: int
    entries: int

    def find_file(self, api: Any, container: str, folder: str) -> bool:
        """True if a folder of a container has a file that matters, or if a limit is reached."""
        if self.bytes <= 0 or self.entries <= 0:
            return True
        request = {"params": {"path": f"{folder}/."}, "stream": True, "timeout": SECONDS}
        with closing(api.get(_archive(api, container), **request)) as answer:
            answer.raise_for_status()
            source = CappedReader(answer.iter_content(CHUNK), self.bytes)
            try:
                with engine_archive(source) as archive:
                    for entry in archive:
                        self.entries -= 1
                        name = entry.name.removeprefix("./")
                        if self.entries <= 0 or (entry.isreg() and not name.startswith(UNIMPORTANT)):
                            return True
            except TooMuch:
                return True
            finally:
                self.bytes = source.left
        return False


def _resolve(api: Any, container: str, path: str) -> str | None:
    """The file behind a path, through its links; None when there is none. Raises ValueError for anything else."""
    import docker.errors

    asked = path
    for _ in range(MAX_LINKS):
        answer = _look(api, container, path)
        if answer.status_code == 404:
            return None
        if answer.status_code != 200:
            if _look(api, container, "/").status_code == 200:
                raise ValueError(f"{asked} leads nowhere")
            api.get_archive(container, "/")  # fails too, and says why: volumes that cannot be mounted
            raise docker.errors.APIError("cannot look at a file of a container", answer)
        facts = json.loads(base64.b64decode(answer.headers[STAT]))
        mode = int(facts["mode"])
        if mode & NO_FILE:
            raise ValueError(f"{asked} is not a file")
        if not mode & LINK:
            if int(facts["size"]) > MAX_BYTES:
                raise ValueError(f"{asked} is larger than {MAX_BYTES} bytes")
            return path
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), str(facts["linkTarget"])))
    raise ValueError(f"{asked} leads nowhere")


def _look(api: Any, container: str, path: str) -> Any:
    """What the engine says of one path of a container, without opening it."""
    return api.head(_archive(api, container), params={"path": path}, timeout=SECONDS)


def _archive(api: Any, container: str) -> str:
    """Return the address at which the engine gives the files of a container."""
    return f"{api.base_url}/v{api.api_version}/containers/{container}/archive"


def _read(api: Any, container: str, path: str) -> bytes:
    chunks, _stat = api.get_archive(container, path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        return file.read() if file is not None else b""


def identities(pid: int) -> set[int] | None:
    """Every group of a running process of this machine; None when it has ended."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        return {int(number) for row in ("Gid", "Groups") for number in rows.get(row, "").split()}
    return None
