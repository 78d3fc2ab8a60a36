"""The artefact store: where the coordinator and the hosts of a cluster lay down files for each other.

Any address that fsspec understands will do (a folder that all machines share, S3 and what is compatible, SSH). Contents are
kept under their SHA-256 and verified by whoever takes them out, and what hosts deliver is signed by a key that the coordinator gave for
that attempt alone, so nobody has to believe the store.
``contents/<2 digits>/<sha256>`` is what the coordinator brings, ``attempts/<home>/<attempt>/`` what a host delivers
(:mod:`runner.execution.cluster.storage.delivery`); its manifest comes last, and what has none was never delivered.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from runner.execution.cluster.storage.delivery import (
    MANIFEST,
    PACK,
    Mismatch,
    Pack,
    another,
    opened,
    receive,
    sealed,
)
from runner.execution.cluster.storage.grants import LONGEST, Grants
from runner.execution.stop import Stop
from runner.model.clock import SystemClock
from runner.model.config import without_secrets
from runner.model.errors import PlatformError
from runner.records.contents import Content
from runner.records.files import MAX_JSON, file_sha256, on_disk

KEPT = timedelta(days=30)  # for which a content stays at least, counted from when it was last brought
PAUSES = (1, 2, 4, 8, 15, 30, 30)  # seconds between tries, where the store is away for a while
_CONTENT = re.compile(r"[0-9a-f]{64}(\.[0-9a-f]{8})?")
T = TypeVar("T")


def patiently(do: Callable[[], T], stop: Stop) -> T:
    """What ``do`` gives, tried again for a minute and a half where the store is away, unless everything is to stop.

    Raises as ``do`` the last time; :class:`Mismatch` at once.
    """
    for pause in PAUSES:
        try:
            return do()
        except PlatformError as error:
            if error.code != "E313" or isinstance(error, Mismatch):
                raise
        if stop.wait(pause):
            break
    return do()


class Artefacts:
    """The store at an address, with the ``options`` of its file system. Used by several threads.

    Raises E313 where it cannot be read or written; no error says anything of what is secret in address and options.
    """

    def __init__(self, address: str, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        from fsspec.core import url_to_fs
        from fsspec.dircache import DirCache
        from fsspec.implementations.local import LocalFileSystem

        from runner.execution.cluster.storage.folder import Folder

        self.address, self.place = address, without_secrets(address)
        self._secrets = _secrets(address, options)
        with self._answering():
            found, self._root = url_to_fs(address, **_with_signatures(address, options))
            self._fs = Folder(self._root) if isinstance(found, LocalFileSystem) else found
            # Others write there, too: what is listed now is not what will be there.
            self._fs.dircache = DirCache(use_listings_cache=False)

    def put(self, what: Path | bytes) -> Content:
        """Bring a file or bytes; what is there already, and :meth:`stays`, is not sent again. Returns its digest and size."""
        if isinstance(what, Path):
            content, pieces = Content(file_sha256(what), what.stat().st_size), iter(Pack({"": what}))
        else:
            content, pieces = Content(hashlib.sha256(what).hexdigest(), len(what)), iter([what])
        if not self.stays(content):
            self._write(pieces, self._place(content.sha256))
        return content

    def stays(self, content: Content) -> bool:
        """Whether a content is there, as far as its size tells, and is not swept for half of :data:`KEPT`."""
        place = self._place(content.sha256)
        with self._answering():
            try:
                info = self._fs.info(place)
            except FileNotFoundError:
                return False
            if info["size"] != content.size:
                return False
            since = self._modified(place)
        return since is None or SystemClock().now() - since < KEPT / 2

    def sweep_contents(self, *, dry_run: bool = False) -> list[str]:
        """Remove contents, and halves of some, that nobody brought for :data:`KEPT`: who orders something has them stay. Returns their
        names, sorted; with ``dry_run`` nothing is removed.
        """
        with self._answering():
            self._fs.invalidate_cache()
            found = self._fs.find(f"{self._root}/contents")
            now, old = SystemClock().now(), list[str]()
            for place in sorted(map(str, found)):
                name, since = place.rpartition("/")[2], self._modified(place)
                if since is not None and now - since > KEPT and _CONTENT.fullmatch(name):
                    old.append(name)
                    if not dry_run:
                        self._fs.rm(place)
        return old

    def fetch(self, content: Content, target: Path) -> None:
        """Write a content to the new file ``target``. Raises E313 also where it is missing or another one."""
        self._read(self._place(content.sha256), [(target, content)])

    def deliver(self, name: str, files: Mapping[str, Path], facts: Mapping[str, Any], key: bytes) -> None:
        """Lay down the files of an attempt under its ``name``, and then its manifest, which has ``facts``, too, signed by ``key``."""
        manifest = sealed(files, facts, key)
        self._write(Pack(files), self._attempt(name, PACK))
        self._write([manifest], self._attempt(name, MANIFEST))

    @property
    def signs(self) -> bool:
        """Whether it can grant single files to somebody who has no credentials."""
        protocol = self._fs.protocol
        return "s3" in ((protocol,) if isinstance(protocol, str) else protocol)

    def grants(self, contents: Collection[Content], name: str, seconds: float) -> Grants:
        """Grants to read these contents and to deliver under that ``name``, for so long (a week at most). Raises E313."""
        read = {one.sha256: self._signed(self._place(one.sha256), "get_object", seconds) for one in contents}
        write = {
            file: self._signed(self._attempt(name, file), "put_object", seconds) for file in (PACK, MANIFEST)
        }
        return Grants(read, write)

    def delivered(self, home: str) -> list[str]:
        """The attempts that were delivered whole under names that begin with ``home`` and a slash: what is behind it, sorted."""
        with self._answering():
            self._fs.invalidate_cache()
            found = self._fs.glob(f"{self._root}/attempts/{home}/*/{MANIFEST}")
        return sorted(str(path).rsplit("/", 2)[-2] for path in found)

    def attempts(self) -> list[str]:
        """The names of all that was delivered, by whomever, also halves; sorted."""
        with self._answering():
            self._fs.invalidate_cache()
            found = self._fs.glob(f"{self._root}/attempts/*/*")
        return sorted("/".join(str(path).rsplit("/", 2)[-2:]) for path in found)

    def changed(self, name: str) -> datetime | None:
        """When something was delivered under a name the last time, by the store's clock; None where it does not say."""
        with self._answering():
            place = f"{self._root}/attempts/{name}"
            found = [self._modified(path) for path in self._fs.find(place) or [place]]
        return max((one for one in found if one is not None), default=None)

    def manifest(self, name: str, key: bytes) -> dict[str, Any]:
        """What a host says that it delivered, who had the ``key``: unchecked but for being a JSON object of bounded size. Raises E313."""
        place = self._attempt(name, MANIFEST)
        with self._answering():
            self._plain_file(place)
            with self._fs.open(place, "rb") as stream:
                data = stream.read(MAX_JSON + 1)
        if (read := opened(data, key)) is None:
            raise another(place)
        return read

    def take(self, name: str, files: Mapping[str, Content], folder: Path) -> None:
        """Write the files of a delivered attempt, all that its manifest lists, as new ones below ``folder``. Raises as :meth:`fetch`."""
        wanted = [(folder / file, files[file]) for file in sorted(files)]
        for parent in {target.parent for target, _ in wanted}:
            with on_disk(f"{parent} cannot be made"):
                parent.mkdir(parents=True, exist_ok=True)
        self._read(self._attempt(name, PACK), wanted)

    def forget(self, name: str) -> None:
        """Remove what was delivered under a name, or half of it; nothing where there is nothing."""
        with self._answering():
            folder = f"{self._root}/attempts/{name}"
            if self._fs.exists(folder):
                self._fs.rm(folder, recursive=True)

    def _modified(self, place: str) -> datetime | None:
        """When something was written or a folder changed, by the store's clock; None where it does not say, or is gone."""
        try:
            found: datetime = self._fs.modified(place)
        except (NotImplementedError, FileNotFoundError, IsADirectoryError):
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Turn whatever a file system of fsspec raises into E313."""
        try:
            yield
        except PlatformError:
            raise
        except Exception as error:  # noqa: BLE001 - raised again, without what is secret
            what = f"the artefact store {self.place} cannot be used"
            why = f"{type(error).__name__}: {error}"
            for secret in self._secrets:
                why = why.replace(secret, "…")
            fix = "see that it is there, and that this machine may read and write it"
            raise PlatformError(what, why=why[:500], fix=fix, code="E313") from None

    def _plain_file(self, place: str) -> None:
        """Nobody waits at what is no file."""
        if self._fs.info(place).get("type") != "file":
            raise another(place)

    def _place(self, sha256: str) -> str:
        return f"{self._root}/contents/{sha256[:2]}/{sha256}"

    def _attempt(self, name: str, file: str) -> str:
        return f"{self._root}/attempts/{name}/{file}"

    def _signed(self, place: str, method: str, seconds: float) -> str:
        with self._answering():
            return str(self._fs.sign(place, expiration=int(min(seconds, LONGEST)), client_method=method))

    def _write(self, pieces: Iterable[bytes], place: str) -> None:
        """Write a file that is there as a whole or not at all."""
        part = f"{place}.{secrets.token_hex(4)}"
        with self._answering():
            self._fs.makedirs(place.rpartition("/")[0], exist_ok=True)
            with self._fs.open(part, "wb") as stream:
                for piece in pieces:
                    stream.write(piece)
            self._fs.mv(part, place)

    def _read(self, place: str, wanted: Sequence[tuple[Path, Content]]) -> None:
        with self._answering():
            self._plain_file(place)
            with self._fs.open(place, "rb") as source:
                receive(source.read, place, wanted)


def _with_signatures(address: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a file system; S3's signatures are of the kind that expires and is accepted everywhere, unless another is asked for."""
    if not address.startswith(("s3://", "s3a://")):
        return dict(options)
    config = {"signature_version": "s3v4", **(options.get("config_kwargs") or {})}
    return {**options, "config_kwargs": config}


def _secrets(address: str, options: Mapping[str, Any]) -> list[str]:
    """What must not be repeated: the user's part of an address and what is behind ``?``, and every text in options; longest first."""
    rest = address.partition("://")[2]
    before, at, _ = rest.rpartition("@")
    found = {before, before.rpartition(":")[2], rest.partition("?")[2]} if at or "?" in rest else set()
    found.update(_texts(options))
    found |= {unquote(one) for one in found} | {quote(one, safe="") for one in found}
    return sorted((one for one in found if len(one) > 3), key=len, reverse=True)


def _texts(value: Any) -> Iterator[str]:
    """All texts in JSON data but keys."""
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _texts(one)
