"""The platform's own images: built when missing or when the sources in them have changed, never pulled.

Which sources an image holds is written on it as the label ``proctor.source``, a digest; an image with
another digest is stale. Builds have no network: the locked packages are fetched by pip on this side, checked
by hash, and carried in.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import PlatformError
from runner.setup import api
from runner.setup.base import base_image, wheels
from runner.setup.engine import engine_host

if TYPE_CHECKING:
    from runner.config import Config
    from runner.engines.base import Engine, ImageRef

PROJECT = Path(__file__).resolve().parents[2]  # our images hold our sources, whatever RUNNER_ROOT says
LABEL = "proctor.source"


@dataclass(frozen=True)
class OwnImage:
    """One image of ours: a target of the Dockerfile, the lock file and the packages (folders) in it."""

    name: str
    requirements: str
    sources: tuple[str, ...]


IMAGES: tuple[OwnImage, ...] = (
    OwnImage("evaluator", "evaluator/requirements.lock", ("evaluator", "schemas")),
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


def open_engine(config: Config) -> Engine:
    """The engine of this invocation. Raises E301 when there is none."""
    from runner.engines.docker import DockerEngine

    host = engine_host(config)
    evaluator = _state(host, IMAGES[0])  # stale or not, it can keep volumes
    return DockerEngine(host, locks=config.locks, keeper_image=evaluator.id)


def states(config: Config) -> list[ImageState]:
    """How our images stand in the engine of this invocation; nothing is built. Raises E301."""
    host = engine_host(config)
    return [_state(host, image) for image in IMAGES]


def images(engine: Engine, config: Config) -> dict[str, ImageRef]:
    """Our images by name, as they are, for an evaluation. Raises E304 when one is missing or stale."""
    found: dict[str, ImageRef] = {}
    for state in states(config):
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
    """Our images by name; what is missing or stale is built first, one process at a time.

    Raises E203 when a build fails, E301 without an engine, E303 when there is no base image.
    """
    from filelock import FileLock

    tell = say or (lambda _line: None)
    if any(state.id is None or state.stale for state in states(config)):
        config.home.joinpath("engine").mkdir(parents=True, exist_ok=True)
        with FileLock(config.home / "engine" / "images.lock", timeout=1800):
            for image, state in zip(IMAGES, states(config), strict=True):
                if state.id is None or state.stale:
                    _build(engine, config, image, tell)
    return images(engine, config)


def source_digest(image: OwnImage) -> str:
    """SHA-256 over the Dockerfile and every file that goes into the image, with their names."""
    digest = hashlib.sha256()
    for path in _files(image):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(PROJECT).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _version() -> str:
    from importlib.metadata import version

    return version("proctor-ir")


def _files(image: OwnImage) -> Iterator[Path]:
    yield PROJECT / "Dockerfile"
    for folder in image.sources:
        for path in sorted((PROJECT / folder).rglob("*")):
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


def _build(engine: Engine, config: Config, image: OwnImage, tell: Callable[[str], None]) -> None:
    base = base_image(config, tell)
    digest = source_digest(image)
    with tempfile.TemporaryDirectory(prefix="proctor-build-") as folder:
        context = Path(folder)
        for path in _files(image):
            into = context / path.relative_to(PROJECT)
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, into)
            into.chmod(0o644)
        tell(f"Building {tag(image)} on {base}: fetching its packages.")
        wheels(config, PROJECT / image.requirements, context / "wheels")
        tell(f"Building {tag(image)} on {base}.")
        engine.build(
            context,
            tag=tag(image),
            target=image.name,
            build_args={"BASE_IMAGE": base, "SOURCE_DIGEST": digest},
            network=False,
        )
