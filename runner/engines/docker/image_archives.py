"""Image archives from strangers: read with caps, checked, and written anew before an engine sees them.

An archive as it comes could re-tag an image of ours, name files outside itself, or unpack to terabytes. So
nothing of it is passed on but the configuration and the layers of one image; the list that ties them
together is written by us, without tags.
"""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from runner.engines import tarsizes, tarstream
from runner.engines.text import printable
from runner.model.errors import RunnerError
from runner.model.limits import MIB

MAX_ENTRIES = 4096
MAX_LAYERS = 512
MAX_JSON = 4 * MIB
MAX_EXTENDED = 8 * 1024  # bytes of an extended header of the outer archive
MAX_LAYER_ENTRIES = 2_000_000
CHUNK = tarstream.CHUNK
GZIP = b"\x1f\x8b"
OTHER_COMPRESSION = (b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")


def refuse(why: str) -> RunnerError:
    """E205 about an image archive."""
    return RunnerError(
        "E205",
        "the image archive is not valid",
        why=why,
        fix="pack the submission again with 'runner pack' (or write the archive with 'docker save')",
    )


class Archive:
    """A checked archive of one image.

    ``image_id`` is the digest of its configuration (what Docker calls the image's id); ``identities`` holds
    that and, for engines that identify images by manifest, the manifest's digest. Raises E205 on every doubt;
    ``max_bytes`` bounds the archive and, separately, everything its layers unpack to.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._max = max_bytes
        self._unpacked = 0
        self._file = self._open(path)
        try:
            self._bounded()
            self._tar = tarfile.open(fileobj=self._file, mode="r:", errors="surrogateescape")  # noqa: SIM115
            self._members = self._index()
            entry = self._manifest()
            self._config = self._small(self._find(entry.get("Config")))
            self.image_id = "sha256:" + hashlib.sha256(self._config).hexdigest()
            self._layers = [self._find(name) for name in entry["Layers"]]
            self._check_config()
            checked: dict[int, str] = {}
            for layer, diff_id in zip(self._layers, self.diff_ids, strict=True):
                if layer.offset_data not in checked:
                    checked[layer.offset_data] = self._check_layer(layer)
                # An engine that has the image already looks at nothing but its identity: whoever brings only the
                # configuration of somebody's image does not have that image.
                if checked[layer.offset_data] != diff_id:
                    raise refuse("A layer is not the one that its configuration names.")
            self.identities = (self.image_id, *self._manifest_digests())
        except (tarfile.TarError, UnicodeError, ValueError, EOFError, zlib.error, OSError) as error:
            self._file.close()
            raise refuse(f"It cannot be read: {printable(str(error), 300)}.") from error
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._file.close()

    def stream(self) -> Iterator[bytes]:
        """The archive for the engine: configuration, layers, and a list without tags."""
        config_name = self.image_id.removeprefix("sha256:") + ".json"
        names: dict[int, str] = {}
        yield tarstream.header(config_name, size=len(self._config))
        yield self._config + tarstream.padding(len(self._config))
        for layer in self._layers:
            if layer.offset_data in names:
                continue
            names[layer.offset_data] = name = f"layer-{len(names)}.tar"
            yield tarstream.header(name, size=layer.size)
            yield from self._chunks(layer)
            yield tarstream.padding(layer.size)
        listed = [names[layer.offset_data] for layer in self._layers]
        manifest = json.dumps([{"Config": config_name, "RepoTags": None, "Layers": listed}]).encode()
        yield tarstream.header("manifest.json", size=len(manifest))
        yield manifest + tarstream.padding(len(manifest)) + b"\0" * (2 * tarstream.BLOCK)

    # -- the outer archive --------------------------------------------------------------------------------

    def _open(self, path: Path) -> IO[bytes]:
        """The archive as a plain tar; one packed with gzip is unpacked to a temporary file within the cap."""
        try:
            file = path.open("rb")
            size = path.stat().st_size
        except OSError as error:
            raise refuse(f"It cannot be opened: {printable(str(error), 300)}.") from error
        if size > self._max:
            file.close()
            raise refuse(f"It has {size} bytes, more than the {self._max} that are allowed.")
        if file.read(2) != GZIP:
            file.seek(0)
            return file
        file.seek(0)
        plain: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            with file:
                shutil.copyfileobj(_Unpacked(iter(lambda: file.read(CHUNK), b""), self._max), plain, CHUNK)
        except BaseException as error:
            plain.close()
            if isinstance(error, zlib.error | EOFError):
                raise refuse("It is not a whole gzip file.") from error
            raise
        plain.seek(0)
        return plain

    def _bounded(self) -> None:
        """Refuse what would keep the reader of the index busy: it trusts the sizes of extended headers."""
        for count, entry in enumerate(tarsizes.walk(self._file, max_extended=MAX_EXTENDED)):
            if count >= MAX_ENTRIES:
                raise refuse(f"It has more than {MAX_ENTRIES} entries.")
            if entry.sparse:
                raise refuse("It holds sparse entries.")
        self._file.seek(0)

    def _index(self) -> dict[str, tarfile.TarInfo]:
        found: dict[str, tarfile.TarInfo] = {}
        for member in self._tar:
            name = _plain(member.name)
            if name is None:
                raise refuse(f"An entry has the path {printable(member.name)}, which leaves the archive.")
            if member.issparse():
                raise refuse("It holds sparse entries.")
            if name in found and not member.isdir():
                raise refuse(f"{printable(name)} is in it twice.")
            found[name] = member
        return found

    def _find(self, name: object) -> tarfile.TarInfo:
        """The regular entry of that name; links (which 'docker save' writes for equal layers) are followed inside."""
        plain = _plain(name) if isinstance(name, str) else None
        for _ in range(8):
            member = self._members.get(plain) if plain is not None else None
            if member is None or plain is None:
                break
            if member.isreg():
                return member
            if member.issym():
                plain = _plain(posixpath.join(posixpath.dirname(plain), member.linkname))
            elif member.islnk():
                plain = _plain(member.linkname)
            else:
                break
        raise refuse(f"{printable(str(name))} is not a file of the archive.")

    def _small(self, member: tarfile.TarInfo) -> bytes:
        if member.size > MAX_JSON:
            raise refuse(f"{printable(member.name)} is too large.")
        return b"".join(self._chunks(member))

    def _chunks(self, member: tarfile.TarInfo) -> Iterator[bytes]:
        file = self._tar.extractfile(member)
        assert file is not None  # only regular members come here
        with file:
            while chunk := file.read(CHUNK):
                yield chunk

    def _manifest(self) -> dict[str, Any]:
        if "manifest.json" not in self._members:
            raise refuse("It holds no manifest.json.")
        entries = _json(self._small(self._find("manifest.json")))
        if not isinstance(entries, list) or len(entries) != 1 or not isinstance(entries[0], dict):
            raise refuse("It does not hold exactly one image.")
        layers = entries[0].get("Layers")
        if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
            raise refuse("Its list of layers is not usable.")
        return entries[0]

    def _check_config(self) -> None:
        config = _json(self._config)
        rootfs = config.get("rootfs") if isinstance(config, dict) else None
        ids = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
        if not isinstance(ids, list) or len(ids) != len(self._layers):
            raise refuse("Its configuration does not fit its layers.")
        self.diff_ids = [str(one) for one in ids]

    def _manifest_digests(self) -> list[str]:
        """Digests of manifests in the archive (newer engines write them) that name this very configuration."""
        found = []
        for name, member in self._members.items():
            if name.startswith("blobs/sha256/") and member.isreg() and member.size <= 64 * 1024:
                raw = self._small(member)
                if b'"config"' not in raw:
                    continue
                try:
                    described = _json(raw)
                except RunnerError:
                    continue
                config = described.get("config") if isinstance(described, dict) else None
                if isinstance(config, dict) and config.get("digest") == self.image_id:
                    found.append("sha256:" + hashlib.sha256(raw).hexdigest())
        return found

    # -- the layers ---------------------------------------------------------------------------------------

    def _check_layer(self, layer: tarfile.TarInfo) -> str:
        """Count what a layer unpacks to: bytes after decompression, and the sizes its entries declare.

        Returns the digest of the unpacked layer.
        """
        chunks = self._chunks(layer)
        first = next(chunks, b"")
        if first.startswith(OTHER_COMPRESSION):
            raise refuse(
                "A layer is compressed in a form other than gzip, whose size cannot be checked here."
            )

        def again() -> Iterator[bytes]:
            yield first
            yield from chunks

        packed = first.startswith(GZIP)
        source = _Unpacked(again(), self._max) if packed else tarstream.Chunks(again())
        reader = io.BufferedReader(source, CHUNK)
        for count, entry in enumerate(tarsizes.walk(reader)):
            # A sparse entry declares what it grows to, and the engine writes that out.
            self._unpacked += entry.unpacked + tarstream.BLOCK
            if self._unpacked > self._max or count > MAX_LAYER_ENTRIES:
                raise refuse(f"Its layers unpack to more than the {self._max} bytes that are allowed.")
        # The engine keeps what follows the end of the tar, so it has to be within the cap.
        while reader.read(CHUNK):
            pass
        return f"sha256:{source.hash.hexdigest()}"


class _Unpacked(tarstream.Chunks):
    """A file over gzip chunks that refuses to give more than ``cap`` bytes."""

    def __init__(self, chunks: Iterator[bytes], cap: int) -> None:
        super().__init__(chunks)
        self._left = cap
        self._packed = b""
        self._inflate = zlib.decompressobj(wbits=31)

    def more(self) -> bytes:
        while True:
            if self._inflate.eof:
                # gzip files may follow one another
                rest = self._inflate.unused_data or self._packed or next(self.chunks, b"")
                if not rest.strip(b"\0"):
                    return b""
                self._inflate, self._packed = zlib.decompressobj(wbits=31), rest
            if not self._packed:
                self._packed = next(self.chunks, b"")
                if not self._packed:
                    raise EOFError("the gzip data is cut off")
            data = self._inflate.decompress(self._packed, CHUNK)
            self._packed = self._inflate.unconsumed_tail
            self._left -= len(data)
            if self._left < 0:
                raise refuse("It unpacks to more bytes than are allowed.")
            if data:
                return data


def _plain(name: str) -> str | None:
    """A path of the archive in its shortest form; None when it leaves the archive."""
    if name.startswith("/") or "\0" in name or "\\" in name:
        return None
    norm = posixpath.normpath(name)
    return None if norm == ".." or norm.startswith("../") else norm


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise refuse("A JSON file in it is broken.") from error
