"""Whether the account files of an image would change who its software runs as.

We give user and group as numbers. The runtime looks each number up in the image's ``/etc/group`` all the same,
as a *name* first: a group called ``20001`` with the id 0 puts our group 20001 into group 0. No option of the
engine turns that off, so an image with such a name is refused, and what the kernel made of it is read back.

Two look: the runtime below all mounts, the daemon before in the image's own root. Links can lead each to files of its own, through
places over which something is mounted, or such places to the files. So both are looked at.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import posixpath
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from runner.model.container import ImageRef

FILES = ("/etc/passwd", "/etc/group")
MAX_BYTES = 1024 * 1024
MAX_LINKS = 8
SECONDS = 30
STAT = "X-Docker-Container-Path-Stat"
LINK = 1 << 27  # the bits of Go's file modes: a link
RULES = 2  # another number has every image looked at again
CONTENT = re.compile("sha256:[0-9a-f]{64}")  # an identity that follows from content
NO_FILE = 1 << 31 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19  # folder, device, pipe, socket, the rest


class Accounts:
    """What is known of images' account files: each image is looked at once by itself, and once with the places over which something is mounted.

    An image's identity follows from its content, so what was found sound is also left as the name of an empty file in ``folder``, which
    is this user's alone, for processes that come later. That is of one ``engine`` and platform: an identity may be that of an index, out
    of which engines take what fits them. An image that was refused is looked at again by each process.
    """

    def __init__(self, folder: Callable[[], Path], engine: Callable[[], str]) -> None:
        self._folder, self._engine = folder, engine
        self._refusals: dict[tuple[str, ...], str | None] = {}

    def refusal(
        self, api: Any, container: str, image: ImageRef, places: Iterable[str], bare: Mapping[str, Any]
    ) -> str | None:
        """As :func:`refusal`, of a created container of ``image`` with mounts at ``places``, and of one without any.

        ``bare`` are the options of the latter, which is made where it is needed, never started, and removed.
        """
        alone = self._known(api, image, lambda: _made(api, bare))
        return alone or self._known(api, image, lambda: nullcontext(container), "with", *sorted(places))

    def _known(
        self, api: Any, image: ImageRef, made: Callable[[], AbstractContextManager[str]], *places: str
    ) -> str | None:
        key = (self._engine(), image.platform, image.id, *places)
        if key not in self._refusals:
            said = json.dumps([RULES, *key]).encode()
            sound = self._folder() / f"accounts-{hashlib.sha256(said).hexdigest()}"
            lasts = CONTENT.fullmatch(image.id) is not None
            if lasts and sound.exists():
                self._refusals[key] = None
            else:
                with made() as container:
                    self._refusals[key] = refusal(api, container)
                if lasts and self._refusals[key] is None:
                    sound.touch()
        return self._refusals[key]


@contextmanager
def _made(api: Any, options: Mapping[str, Any]) -> Iterator[str]:
    """A container that is not started, for as long as the context lasts."""
    container = api.create_container_from_config(options)["Id"]
    try:
        yield container
    finally:
        api.remove_container(container, v=True, force=True)


def refusal(api: Any, container: str) -> str | None:
    """Why the image of a created container cannot be run under a numeric user; None when it can.

    Nothing of the image is run for this. A file that is not there names nobody. Both files are looked at
    before either is fetched: engines hang for ever where one is a named pipe, when they fetch any file and
    when they start the container.
    """
    try:
        found = [_resolve(api, container, path) for path in FILES]
        contents = [b"" if path is None else _read(api, container, path) for path in found]
    except ValueError as error:
        return f"the image cannot be run: {error}"
    for path, content in zip(FILES, contents, strict=True):
        for line in content.decode("utf-8", "replace").split("\n"):
            # The runtime strips every kind of blank that Unicode knows, as this does.
            name, *fields = [field.strip() for field in line.split(":")]
            if name.isdigit() and fields[1:2] != [name]:
                return f"{path} of the image names an account {name[:20]} that has another number"
    return None


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
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/archive"
    return api.head(url, params={"path": path}, timeout=SECONDS)


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
