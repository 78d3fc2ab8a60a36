"""The images in a Docker engine: found, pulled, and moved as archives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from runner.engines.docker.client import ignoring
from runner.engines.docker.facts import DockerFacts
from runner.engines.moving import moving
from runner.engines.text import clean_path, printable
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB
from schemas.files import atomic_file

PULL = TRANSFER = 3600.0  # seconds

IMAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,500}")


class DockerImages(DockerFacts):
    """See :class:`runner.engines.base.Images`."""

    def resolve(self, image: str) -> ImageRef:
        """The image by identity.

        It is pulled only when it is named by digest or with its registry: a bare name that is not here may be
        a local image of ours, and a stranger may hold that name in a public registry. Raises E204.
        """
        if not IMAGE_NAME.fullmatch(image):
            raise _missing_image(image, "That is not an image's name.", _NAME)
        try:
            with self.clients.calling("looking for an image") as api, ignoring(404):
                return reference(api.inspect_image(image), image)
        except PlatformError as error:
            if (
                "invalid reference format" in error.why
            ):  # the engine knows names better than a pattern of ours
                raise _missing_image(image, f"The engine says: {error.why}.", _NAME) from error
            raise
        first = image.partition("/")[0] if "/" in image else ""
        if "@sha256:" not in image and not ("." in first or ":" in first or first == "localhost"):
            raise _missing_image(image, "The engine has no image of that name.")
        return self.pull(image)

    def pull(self, image: str, *, silence: float = PULL) -> ImageRef:
        """The image of a registry, given up when nothing is heard for ``silence`` seconds. Raises E204, E303."""
        import docker.errors

        name, _, digest = image.partition("@")
        repository, tag = (name, digest) if digest else _split_tag(name)

        # It asks when it is read: the first answer may not come either.
        def said(api: Any) -> Iterator[dict[str, Any]]:
            yield from api.pull(repository, tag=tag, stream=True, decode=True)

        try:
            with self.clients.streaming("pulling an image", PULL) as (api, _):
                for line in moving(said(api), "pulling an image", stall=silence, seconds=PULL):
                    if "error" in line:
                        raise _missing_image(
                            image, f"It could not be pulled: {printable(str(line['error']), 300)}."
                        )
                return reference(api.inspect_image(image), image)
        except PlatformError as error:
            if isinstance(error.__cause__, docker.errors.APIError):
                raise _missing_image(image, f"It could not be pulled: {error.why}.") from error
            raise

    def import_root(self, archive: Path, name: str, changes: Sequence[str]) -> ImageRef:
        """An image of one layer from a tar archive of a root file system. Raises E303."""
        repository, tag = _split_tag(name)
        with archive.open("rb") as stream, self.clients.streaming("importing an image", TRANSFER) as (api, _):
            # The client announces chunks, which requests sends of an iterator only: a file it would send whole.
            chunks = iter(partial(stream.read, 1 << 20), b"")
            said = api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=list(changes))
        if '"error"' in said:
            raise PlatformError("the container engine could not import an image", why=printable(said, 500))
        return self.resolve(name)

    def keep(self, image: ImageRef, name: str) -> None:
        """Give the image a name of ours, so that nobody's clean-up of nameless images takes it away."""
        repository, tag = _split_tag(name)
        with self.clients.calling("naming an image") as api:
            api.tag(image.id, repository, tag)

    def save(self, image: ImageRef, to: Path) -> None:
        """Write the image's archive; asked for by identity, it holds no tags."""
        # The answer is complete only when the call is over: then the file is moved into place.
        with atomic_file(to) as file, self.clients.streaming("saving an image", TRANSFER) as (api, _):
            for chunk in api.get_image(image.id, chunk_size=MIB):
                file.write(chunk)

    def load(self, archive: Path, *, max_bytes: int, expect: str | None = None) -> ImageRef:
        """Load an image archive, tags stripped; see :mod:`runner.engines.docker.image_archives`. Raises E205."""
        from runner.engines.docker.image_archives import Archive, refuse

        with Archive(archive, max_bytes=max_bytes) as checked:
            if expect is not None and expect not in checked.identities:
                raise refuse(f"It holds the image {checked.image_id}, not {printable(expect)}.")
            for known in checked.identities:
                with self.clients.calling("looking for an image") as api, ignoring(404):
                    return reference(api.inspect_image(known), known)
            said = ""
            with self.clients.streaming("loading an image", TRANSFER) as (api, _):
                for event in api.load_image(checked.stream(), quiet=True):
                    said += str(event.get("stream", ""))
                    if "no space left" in str(event.get("error", "")):
                        raise PlatformError(
                            "the disk of the container engine is full", why="Loading an image failed."
                        )
                    if "error" in event:
                        raise refuse(f"The engine refused it: {printable(str(event['error']), 300)}.")
            # Engines that identify images by manifest give it an identity of their own: compare what is in it.
            for known in (*checked.identities, *re.findall(r"sha256:[0-9a-f]{64}", said)):
                with self.clients.calling("looking for the loaded image") as api, ignoring(404):
                    facts = api.inspect_image(known)
                    if (facts.get("RootFS") or {}).get("Layers") == checked.diff_ids:
                        return reference(facts, known)
        raise refuse("The engine loaded it under another identity than it claims.")


def reference(facts: Mapping[str, Any], asked: str = "") -> ImageRef:
    """An :class:`ImageRef` from the engine's description of an image, which was ``asked`` for by this name."""
    config = facts.get("Config") or {}
    digests = sorted(facts.get("RepoDigests") or [])
    repository = _split_tag(asked.partition("@")[0])[0]
    chosen = next((d for d in digests if d == asked or d.startswith(repository + "@")), None)
    variant = f"/{facts['Variant']}" if facts.get("Variant") else ""
    health = (config.get("Healthcheck") or {}).get("Test") or ["NONE"]
    return ImageRef(
        id=str(facts["Id"]),
        repo_digest=chosen or next(iter(digests), None),
        platform=f"{facts.get('Os') or 'linux'}/{facts.get('Architecture') or 'amd64'}{variant}",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        cmd=tuple(config.get("Cmd") or ()),
        workdir=str(config.get("WorkingDir") or ""),
        user=str(config.get("User") or ""),
        env=tuple(config.get("Env") or ()),
        volumes=tuple(sorted(set(map(clean_path, config.get("Volumes") or ())))),
        has_healthcheck=health[0] != "NONE",
        size=int(facts.get("Size") or 0),
        names=(*sorted(facts.get("RepoTags") or []), *digests),
        labels=dict(config.get("Labels") or {}),
        onbuild=tuple(config.get("OnBuild") or ()),
    )


def _split_tag(name: str) -> tuple[str, str]:
    head, slash, last = name.rpartition("/")
    base, _, tag = last.partition(":")
    return f"{head}{slash}{base}", tag or "latest"


_NAME = "correct the image's name: repository:tag in lower case, or repository@sha256:…"
_GET_IT = "build it or pull it on this machine first, or name it with its digest (repository@sha256:…)"


def _missing_image(image: str, why: str, fix: str = _GET_IT) -> RunnerError:
    return RunnerError("E204", f"the image {printable(image)} is missing", why=why, fix=fix)
