"""Packing: the team's side of the hand-over. Builds or resolves the image, and writes the bundle."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.bundle import IMAGE, Bundle, write_bundle
from runner.config import Config
from runner.engines.base import GIB, Engine, ImageRef
from runner.errors import RunnerError
from runner.local import describe
from runner.submissions import SubmissionFile

BUILD_SECONDS = 1800.0
BUILD_MEMORY = 4 * GIB


def image_of(
    config: Config,
    engine: Engine,
    submission: SubmissionFile,
    *,
    on_line: Callable[[str], None] | None = None,
) -> ImageRef | None:
    """The image of a submission: built from its folder, or resolved by name. None for uploaded run files.

    Builds have no network unless the submission asks for one, a memory limit and a time limit. Raises E203
    when the build fails, E204 when the image is not to be had.
    """
    if submission.run:
        return None
    if submission.image is not None:
        return engine.resolve(submission.image)
    from runner.setup.base import base_image, carries_wheels

    build = submission.build
    assert build is not None
    dockerfile = str(build.dockerfile)
    base = base_image(config)  # first: it settles whether packages must be carried into the build
    with _context(config, build.context) as context:
        return engine.build(
            context,
            dockerfile=dockerfile,
            build_args={"BASE_IMAGE": base, **build.args},
            # Where packages are carried in as wheels no build needs the network, whatever it asks for.
            network=build.network and not carries_wheels(config),
            memory=BUILD_MEMORY,
            timeout=BUILD_SECONDS,
            on_line=on_line,
        )


@contextmanager
def _context(config: Config, folder: Path) -> Iterator[Path]:
    """The build context: the folder itself, or a copy with the wheels that this machine has to carry in."""
    from runner.setup.base import build_context_extras

    extras = build_context_extras(config, folder)
    if not extras:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="context-") as scratch:
        copy = Path(scratch) / "context"
        shutil.copytree(folder, copy, symlinks=True)
        for name, source in extras.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy / name)
        yield copy


def write(
    submission: SubmissionFile,
    image: ImageRef | None,
    target: Path,
    *,
    engine: Engine,
    check: Mapping[str, Any] | None,
    with_archive: bool,
) -> Bundle:
    """Write the bundle of a submission to ``target``. ``with_archive`` puts the image itself into it.

    Raises E101 when ``target`` holds something else than a bundle.
    """
    names = [path.name for path in submission.run]
    if len(set(names)) != len(names):
        raise RunnerError("E201", "two run files have the same name", fix="rename one of them")
    data = describe(submission, image, names)
    data["check"] = dict(check) if check else None
    files: dict[str, Path] = {f"runs/{path.name}": path for path in submission.run}
    files["submission.yaml"] = submission.folder / "submission.yaml"
    with tempfile.TemporaryDirectory(prefix="pack-") as scratch:
        if image is not None and with_archive and image.repo_digest is None:
            engine.save(image, Path(scratch) / IMAGE)
            data["image"]["archive"] = IMAGE
            files[IMAGE] = Path(scratch) / IMAGE
        return write_bundle(target, data, files)
