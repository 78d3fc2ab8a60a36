"""Packing: the team's side of the hand-over. Builds or resolves the image, and writes the bundle."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import BuildSpec, Engine
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.limits import GIB
from runner.model.problems import Problems
from runner.submissions.bundle import IMAGE, MAX_METADATA, METADATA, Bundle, describe, write_bundle
from runner.submissions.check import check_paths
from runner.submissions.checkout import check_out
from runner.submissions.definition import Build, SubmissionFile
from runner.submissions.hints import of_build
from runner.submissions.origins import origins, refused
from runner.submissions.source import public_address, source_of

BUILD_SECONDS = 1800.0
BUILD_MEMORY = 4 * GIB
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def image_of(config: Config, engine: Engine, submission: SubmissionFile) -> ImageRef | None:
    """The image of a submission: built from its folder, or resolved by name. None for uploaded run files.

    Builds have no network unless the submission asks for one, a memory limit and a time limit. Raises E203
    when the build fails, E204 when the image is not to be had, E212 when it is not the team's to use.
    """
    if submission.run:
        return None
    allowed = origins(config, engine, submission.team)
    if submission.image is not None:
        with _helping(network=False, carried=False):
            return allowed.image(submission.image)
    from runner.provision.base import base_image

    base = base_image(config, engine)  # first: it settles whether packages must be carried into the build
    with _checked_out(submission, strict=allowed.strict) as build:
        dockerfile = str(build.dockerfile)
        arguments = {"BASE_IMAGE": base, **build.args}
        path = build.context / dockerfile
        shown = f"{dockerfile} of {build.git}" if build.git else str(path.relative_to(config.root))
        allowed.dockerfile(path, arguments, shown, network=build.network)
        return _built(config, engine, build, arguments, isolated=allowed.strict)


def _built(
    config: Config,
    engine: Engine,
    build: Build,
    arguments: Mapping[str, str],
    *,
    isolated: bool,
) -> ImageRef:
    """The image of a build whose Dockerfile was checked. Raises E203."""
    from runner.provision.base import carries_wheels

    with build_context(config, engine, build) as context:
        spec = BuildSpec(
            context,
            dockerfile=str(build.dockerfile),
            args=arguments,
            # Where packages are carried in as wheels no build needs the network, whatever it asks for.
            network=build.network and not carries_wheels(config),
            memory=BUILD_MEMORY,
            timeout=BUILD_SECONDS,
            isolated=isolated,
        )
        with _helping(network=build.network, carried=carries_wheels(config)):
            return engine.build(spec)


@contextmanager
def _checked_out(submission: SubmissionFile, *, strict: bool) -> Iterator[Build]:
    """How to build a submission, its context on this machine: as it is, or a clean checkout of the commit that it names.

    Raises E203 when the commit is not to be had, E202 when its folder or Dockerfile is not in it, E212 for a folder of this
    machine where the team is a stranger to it (``strict``).
    """
    build = submission.build
    assert build is not None
    if not build.git:
        yield build
        return
    if strict and not build.git.startswith("https://"):
        why = "A repository on this machine may be anybody's."
        raise refused(
            "build.git names a folder", why, "name an address of https, or pack on your own machine"
        )
    with tempfile.TemporaryDirectory(prefix="checkout-") as scratch:
        root = Path(scratch) / "files"
        check_out(build.git, build.commit, submission.folder, root)
        context = str(submission.definition["build"].get("context", "."))
        problems = Problems(
            schemas.load_yaml(submission.folder / "submission.yaml", "submission.yaml"), "E202"
        )
        check_paths(
            root, {"build": {"context": context, "dockerfile": build.dockerfile}}, problems, "repository"
        )
        problems.refuse(f"the commit {build.commit[:12]} cannot be built")
        yield replace(build, context=root / context)


@contextmanager
def _helping(*, network: bool, carried: bool) -> Iterator[None]:
    """Errors about an image come out with the hint for them, where there is one, as what to do."""
    try:
        yield
    except RunnerError as error:
        helps = of_build(error.why, network=network, carried=carried)
        if error.code not in ("E203", "E204") or not helps:
            raise
        raise RunnerError(error.code, error.what, why=error.why, fix=helps) from error


@contextmanager
def build_context(config: Config, engine: Engine, build: Build) -> Iterator[Path]:
    """The build context: the folder itself, or a copy with shared files and the wheels that this machine carries in."""
    from runner.provision.base import build_context_extras

    extras = {path.name: path for path in build.shared} | build_context_extras(config, engine, build.context)
    if not extras:
        yield build.context
        return
    with tempfile.TemporaryDirectory(prefix="context-") as scratch:
        copy = Path(scratch) / "context"
        shutil.copytree(build.context, copy, symlinks=True)
        for name, source in extras.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy / name)
        yield copy


def run_entries(submission: SubmissionFile) -> list[tuple[dict[str, str], Path]]:
    """The run files of a submission as bundle.json names them, and where each lies.

    Files keep their names where these are plain and each there once; else they are named after what they are for.
    """
    from runner.records.files import file_sha256

    names = [run.path.name for run in submission.run]
    plain = len(set(names)) == len(names) and all(_PLAIN.fullmatch(name) for name in names)
    found = []
    for run in submission.run:
        zipped = ".gz" if run.path.name.endswith(".gz") else ""
        name = run.path.name if plain else f"{run.dataset}.{run.scenario}{zipped}"
        entry = {
            "file": name,
            "dataset": run.dataset,
            "scenario": run.scenario,
            "sha256": file_sha256(run.path),
        }
        found.append((entry, run.path))
    return found


def write(
    submission: SubmissionFile,
    image: ImageRef | None,
    target: Path,
    *,
    engine: Engine | None,
    check: Mapping[str, Any] | None,
    with_archive: bool,
) -> Bundle:
    """Write the bundle of a submission to ``target``. ``with_archive`` puts the image itself into it.

    ``engine`` may be None where no archive is wanted. Raises E101 when ``target`` holds something else than a bundle.
    """
    runs = run_entries(submission)
    data = describe(submission, image, [entry for entry, _ in runs])
    data["check"] = dict(check) if check else None
    build = submission.build
    if build is not None and build.git:
        data["source"] = {"remote": public_address(build.git), "commit": build.commit, "dirty": False}
    elif (source := source_of(submission.folder)) is not None:
        data["source"] = source
    files: dict[str, Path] = {f"runs/{entry['file']}": path for entry, path in runs}
    files["submission.yaml"] = submission.folder / "submission.yaml"
    metadata = submission.folder / METADATA
    if metadata.is_file() and not metadata.is_symlink() and metadata.stat().st_size <= MAX_METADATA:
        files[METADATA] = metadata
    with tempfile.TemporaryDirectory(prefix="pack-") as scratch:
        if image is not None and with_archive and image.repo_digest is None and engine is not None:
            engine.save(image, Path(scratch) / IMAGE)
            data["image"]["archive"] = IMAGE
            files[IMAGE] = Path(scratch) / IMAGE
        return write_bundle(target, data, files)
