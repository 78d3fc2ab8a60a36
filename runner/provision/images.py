"""The platform's own images: built when missing or when the sources in them have changed, never pulled.

Which sources an image holds is written on it as the label ``proctor.source``, a digest; an image with
another digest is stale. Builds have no network: the locked packages are fetched by pip on this side, checked
by hash, and carried in.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model.errors import PlatformError
from runner.provision import api
from runner.provision.base import REGISTRY_IMAGE, base_image, wheels
from runner.provision.engine import engine_host

if TYPE_CHECKING:
    from runner.engines.base import Engine
    from runner.model.config import Config
    from runner.model.container import ImageRef

_STAGE = re.compile(r"^FROM (\S+) AS (\S+)$", re.MULTILINE)
_COPIED = re.compile(r"^COPY --from=(\S+)", re.MULTILINE)
PROJECT = Path(__file__).resolve().parents[2]  # our images hold our sources, whatever RUNNER_ROOT says
LABEL = "proctor.source"


@dataclass(frozen=True)
class OwnImage:
    """One image of ours: a target of the Dockerfile, the lock file and the packages (folders) in it.

    ``debian`` says that it needs a Debian package that the registry's base image lacks.
    """

    name: str
    requirements: str
    sources: tuple[str, ...]
    debian: bool = False


IMAGES: tuple[OwnImage, ...] = (
    OwnImage("evaluator", "evaluator/requirements.lock", ("evaluator", "schemas")),
    OwnImage("sidecars", "sidecars/requirements.lock", ("sidecars", "schemas"), debian=True),
)


@dataclass(frozen=True)
class ImageState:
    """Whether an image of ours can be used: ``id`` is None when it is missing."""

    name: str
    tag: str
    id: str | None
    stale: bool


def tag(image: OwnImage) -> str:
    """The name under which people see the image; it is always run by identity."""
    return f"proctor/{image.name}:{_version()}"


def open_engine(config: Config, tell: Callable[[str], None] = lambda _: None) -> Engine:
    """The engine of this invocation; ``tell`` is given what it waits for. Raises E301 when there is none."""
    from runner.engines.docker.engine import DockerEngine

    host = engine_host(config)
    evaluator = _state(host, IMAGES[0])  # stale or not, it can keep volumes
    return DockerEngine(
        host, locks=config.locks, keeper_image=evaluator.id, engine_for=config.engine_for, tell=tell
    )


def states(config: Config) -> list[ImageState]:
    """How our images stand in the engine of this invocation; nothing is built. Raises E301."""
    host = engine_host(config)
    return [_state(host, image) for image in IMAGES]


def images(engine: Engine, config: Config, names: Sequence[str] = (IMAGES[0].name,)) -> dict[str, ImageRef]:
    """Our images of these names, as they are (default: what every evaluation needs, the evaluator alone).

    Raises E304 when one is missing or stale.
    """
    found: dict[str, ImageRef] = {}
    for state in states(config):
        if state.name not in names:
            continue
        if state.id is None or state.stale:
            raise PlatformError(
                f"our image {state.tag} is {'missing' if state.id is None else 'older than its sources'}",
                why="It is built by the set-up.",
                fix="run `make setup`",
                code="E304",
            )
        found[state.name] = engine.resolve(state.id)
    return found


def ensure_images(
    engine: Engine, config: Config, say: Callable[[str], None] | None = None
) -> dict[str, ImageRef]:
    """All our images by name; what is missing or stale is built first, one process at a time.

    Raises E203 when a build fails, E301 without an engine, E303 when there is no base image.
    """
    from filelock import FileLock

    tell = say or (lambda _line: None)
    if any(state.id is None or state.stale for state in states(config)):
        config.home.joinpath("engine").mkdir(parents=True, exist_ok=True)
        with FileLock(config.home / "engine" / "images.lock", timeout=1800):
            wanted = [
                image
                for image, state in zip(IMAGES, states(config), strict=True)
                if state.id is None or state.stale
            ]
            _build_all(engine, config, wanted, tell)
    # Not asked again whether they are stale: a source that was saved meanwhile is the next call's business.
    return {image.name: engine.resolve(tag(image)) for image in IMAGES}


def source_digest(image: OwnImage, root: Path | None = None) -> str:
    """SHA-256 over the image's stages of the Dockerfile and every file that goes into it, with their names."""
    root = root or PROJECT
    digest = hashlib.sha256()
    for path in _files(image, root):
        content = path.read_bytes()
        if path == root / "Dockerfile":
            content = stages(content.decode("utf-8"), image.name).encode()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def stages(dockerfile: str, target: str) -> str:
    """The Dockerfile with only the stages that ``target`` needs: a classic builder builds all that stand before it."""
    parts: list[str] = [""]
    for line in dockerfile.splitlines(keepends=True):
        if line.startswith("FROM "):
            # Comments above a stage are about it.
            lines = parts[-1].splitlines(keepends=True)
            keep = len(lines)
            while (
                len(parts) > 1 and keep and (lines[keep - 1].startswith("#") or not lines[keep - 1].strip())
            ):
                keep -= 1
            parts[-1] = "".join(lines[:keep])
            parts.append("".join(lines[keep:]) if len(parts) > 1 else "")
        parts[-1] += line
    named = {m[2]: (m[1], part) for part in parts if (m := _STAGE.search(part))}
    needed, todo = set[str](), [target]
    while todo:
        name = todo.pop()
        if name in named and name not in needed:
            needed.add(name)
            todo += [named[name][0], *_COPIED.findall(named[name][1])]
    return parts[0] + "".join(part for part in parts if (m := _STAGE.search(part)) and m[2] in needed)


def _version() -> str:
    from importlib.metadata import version

    return version("proctor-ir")


def _files(image: OwnImage, root: Path) -> Iterator[Path]:
    yield root / "Dockerfile"
    for folder in image.sources:
        for path in sorted((root / folder).rglob("*")):
            if (
                path.is_file()
                and not path.is_symlink()
                and "__pycache__" not in path.parts
                and path.suffix != ".pyc"
            ):
                yield path


def _state(host: str, image: OwnImage) -> ImageState:
    known = api.image(host, tag(image))
    if known is None:
        return ImageState(image.name, tag(image), None, False)
    labels = (known.get("Config") or {}).get("Labels") or {}
    return ImageState(image.name, tag(image), str(known["Id"]), labels.get(LABEL) != source_digest(image))


def _build_all(
    engine: Engine, config: Config, wanted: Sequence[OwnImage], tell: Callable[[str], None]
) -> None:
    """Build images: the base and all packages at the same time first, because most of that is waiting."""
    if not wanted:
        return
    names = " and ".join(tag(image) for image in wanted)
    tell(f"Fetching the packages of {names}.")
    with tempfile.TemporaryDirectory(prefix="proctor-build-") as folder, ThreadPoolExecutor() as pool:
        contexts = {image: Path(folder) / image.name for image in wanted}
        fetched = [
            pool.submit(wheels, config, PROJECT / image.requirements, context / "wheels")
            for image, context in contexts.items()
        ]
        base = base_image(config, tell)
        for done in fetched:
            done.result()
        tell(f"Building {names} on {base}.")
        built = [pool.submit(_build, engine, image, context, base) for image, context in contexts.items()]
        for image_built in built:
            image_built.result()


def _build(engine: Engine, image: OwnImage, context: Path, base: str) -> ImageRef:
    for path in _files(image, PROJECT):
        into = context / path.relative_to(PROJECT)
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, into)
        into.chmod(0o644)
    # Of the copies: sources may change meanwhile.
    digest = source_digest(image, context)
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(stages(dockerfile.read_text(encoding="utf-8"), image.name), encoding="utf-8")
    return engine.build(
        context,
        tag=tag(image),
        target=image.name,
        build_args={"BASE_IMAGE": base, "SOURCE_DIGEST": digest},
        network=image.debian and base == REGISTRY_IMAGE,
    )
