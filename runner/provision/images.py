"""The platform's own images: built when missing or when the sources in them have changed, never pulled.

Which sources an image holds is written on it as the label ``proctor.source``, a digest; an image with
another digest is stale. Builds have no network: the locked packages are fetched by pip on this side, checked
by hash, and carried in.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from runner.engines.base import BuildSpec, find_image
from runner.model.errors import PlatformError
from runner.provision.base import REGISTRY_IMAGE, base_image, wheels
from runner.provision.kinds import kind_files, tag_suffix
from runner.provision.steps import Steps
from schemas.files import make_private

if TYPE_CHECKING:
    from runner.engines.base import Engine, Images
    from runner.model.config import Config
    from runner.model.container import ImageRef

_STAGE = re.compile(r"^FROM (\S+) AS (\S+)$", re.MULTILINE)
# With the comments above, which are about it.
_STAGE_HEAD = re.compile(r"^((?:(?:#.*)?\n)*FROM .*\n)", re.MULTILINE)
_COPIED = re.compile(r"^COPY --from=(\S+)", re.MULTILINE)
PROJECT = Path(__file__).resolve().parents[2]  # our images hold our sources, whatever RUNNER_ROOT says
LABEL = "proctor.source"


@dataclass(frozen=True)
class OwnImage:
    """One image of ours: a target of the Dockerfile, the lock file and the packages (folders) in it, all below ``root``.

    ``debian`` says that it needs a Debian package that the registry's base image lacks, ``kinds`` that installed packages
    with kinds of tasks go into it.
    """

    name: str
    requirements: str
    sources: tuple[str, ...]
    debian: bool = False
    kinds: bool = False
    root: Path = PROJECT


IMAGES: tuple[OwnImage, ...] = (
    OwnImage("evaluator", "evaluator/requirements.lock", ("evaluator", "schemas"), kinds=True),
    OwnImage("sidecars", "sidecars/requirements.lock", ("sidecars", "schemas"), debian=True),
)
# The front in a container (deploy/compose.yaml): made for whoever asks for it.
FRONT = OwnImage("front", "runner/web/requirements.lock", ("runner", "schemas"))


@dataclass(frozen=True)
class ImageState:
    """Whether an image of ours can be used: ``id`` is None when it is missing."""

    name: str
    tag: str
    id: str | None
    stale: bool

    @property
    def problem(self) -> str:
        """What is wrong with it; empty when it can be used."""
        if self.id is None:
            return f"{self.tag} is missing"
        return f"{self.tag} is older than its sources" if self.stale else ""


def tag(image: OwnImage) -> str:
    """The name under which people see the image; it is always run by identity."""
    return f"proctor/{image.name}:{version('proctor-ir')}{tag_suffix() if image.kinds else ''}"


def states(engine: Images, wanted: Sequence[OwnImage] | None = None) -> list[ImageState]:
    """How our images (default: all) stand in the engine; nothing is built. Raises E301."""
    known = [(image, find_image(engine, tag(image))) for image in (IMAGES if wanted is None else wanted)]
    return [
        ImageState(image.name, tag(image), None, False)
        if ref is None
        else ImageState(image.name, tag(image), ref.id, ref.labels.get(LABEL) != source_digest(image))
        for image, ref in known
    ]


def images(engine: Images, names: Sequence[str] = (IMAGES[0].name,)) -> dict[str, ImageRef]:
    """Our images of these names, as they are (default: what every evaluation needs, the evaluator alone).

    Raises E304 when one is missing or stale.
    """
    ready: dict[str, ImageRef] = {}
    for state in states(engine, [image for image in IMAGES if image.name in names]):
        if state.id is None or state.stale:
            raise PlatformError(
                f"our image {state.problem}",
                why="It is built by the set-up.",
                fix="run `make setup`",
                code="E304",
            )
        ready[state.name] = engine.resolve(state.id)
    return ready


def ensure_images(
    engine: Engine,
    config: Config,
    say: Callable[[str], None] = lambda _: None,
    wanted: Sequence[OwnImage] = IMAGES,
) -> dict[str, ImageRef]:
    """Our images by name; what is missing or stale is built first, one process at a time.

    Raises E203 when a build fails, E301 without an engine, E303 when there is no base image.
    """
    from filelock import FileLock

    if any(state.problem for state in states(engine, wanted)):
        make_private(config.home / "engine")
        with FileLock(config.home / "engine" / "images.lock", timeout=1800):
            looked = zip(wanted, states(engine, wanted), strict=True)
            steps, base = Steps.of(say), base_image(config, engine, say)
            for image in [image for image, state in looked if state.problem]:
                with tempfile.TemporaryDirectory(prefix="proctor-build-") as folder:
                    context = Path(folder) / image.name
                    wheels(config, engine, image.root / image.requirements, context / "wheels", steps)
                    _build(engine, steps, image, context, base)
    # Not asked again whether they are stale: a source that was saved meanwhile is the next call's business.
    return {image.name: engine.resolve(tag(image)) for image in wanted}


def usual(engine: Images) -> list[OwnImage]:
    """Our images that a set-up makes: the evaluator, and others that were made before; these are made when first needed."""
    return [
        image
        for image, state in zip(IMAGES, states(engine), strict=True)
        if image.name == IMAGES[0].name or state.id is not None
    ]


def first_needed(engine: Engine, config: Config, names: Sequence[str], say: Callable[[str], None]) -> None:
    """Make those of these images that a set-up leaves for later and that are not there. Raises E203, E303."""
    later = [image for image in IMAGES[1:] if image.name in names]
    absent = [image for image, state in zip(later, states(engine, later), strict=True) if state.id is None]
    if absent:
        say(f"{', '.join(tag(image) for image in absent)} is needed for the first time and is made now.")
        ensure_images(engine, config, say, absent)


def source_digest(image: OwnImage, root: Path | None = None) -> str:
    """SHA-256 over the image's stages of the Dockerfile and every file that goes into it, with their names."""
    root = root or image.root
    digest = hashlib.sha256()
    for path in _files(image, root):
        content = path.read_bytes()
        if path == root / "Dockerfile":
            content = stages(content.decode("utf-8"), image.name).encode()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    for name, content in (kind_files() if image.kinds else {}).items():
        digest.update(f"kinds/{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def stages(dockerfile: str, target: str) -> str:
    """The Dockerfile with only the stages that ``target`` needs: a classic builder builds all that stand before it."""
    head, *rest = _STAGE_HEAD.split(dockerfile)
    parts = [above + below for above, below in zip(rest[::2], rest[1::2], strict=True)]
    named = {m[2]: (m[1], part) for part in parts if (m := _STAGE.search(part))}
    needed, todo = set[str](), [target]
    while todo:
        name = todo.pop()
        if name in named and name not in needed:
            needed.add(name)
            todo += [named[name][0], *_COPIED.findall(named[name][1])]
    return head + "".join(part for part in parts if (m := _STAGE.search(part)) and m[2] in needed)


def _files(image: OwnImage, root: Path) -> Iterator[Path]:
    yield root / "Dockerfile"
    for folder in image.sources:
        found = list[str]()
        for place, folders, names in os.walk(root / folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [f"{place}/{name}" for name in names if not name.endswith(".pyc")]
        # In the order of pathlib, which would take longer than reading the files.
        for path in sorted(found, key=lambda path: path.split("/")):
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield Path(path)


def _build(engine: Engine, steps: Steps, image: OwnImage, context: Path, base: str) -> ImageRef:
    for path in _files(image, image.root):
        into = context / path.relative_to(image.root)
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, into)
        into.chmod(0o644)
    for name, content in (kind_files() if image.kinds else {}).items():
        into = context / "kinds" / name
        into.parent.mkdir(parents=True, exist_ok=True)
        into.write_bytes(content)
    # Of the copies: sources may change meanwhile.
    digest = source_digest(image, context)
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(stages(dockerfile.read_text(encoding="utf-8"), image.name), encoding="utf-8")
    spec = BuildSpec(context, tag=tag(image), target=image.name, args={"BASE_IMAGE": base})
    spec = replace(spec, labels={LABEL: digest}, network=image.debian and base == REGISTRY_IMAGE)
    with steps.step(f"building {tag(image)}", note=f"on {base}"):
        return engine.build(spec)
