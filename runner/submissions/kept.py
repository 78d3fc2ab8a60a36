"""What is kept of registered submissions: a copy of the bundle in the data directory, and its image in the engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from runner.engines.base import Engine, find_image
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.records.contents import ContentStore
from runner.records.events import Position
from runner.records.files import on_disk
from runner.records.store.connect import Store
from runner.records.store.queries import submissions
from runner.submissions.bundle import IMAGE, MAX_IMAGE, Bundle, read_bundle, read_registered, store_runs
from runner.submissions.origins import check_platform, check_size, kept_as, origins, resolve_expected
from schemas.files import make_private, scratch_folder


def home_of(config: Config, submission_id: str) -> Path:
    """Where the bundle of a registered submission is kept."""
    return config.registered / submission_id / "bundle"


def registered(config: Config, store: Store) -> tuple[dict[str, Bundle], list[RunnerError]]:
    """The bundles of registered submissions by id, and an error for each that is missing or damaged."""
    found: dict[str, Bundle] = {}
    errors: list[RunnerError] = []
    for entry in submissions(store):
        try:
            folder = home_of(config, entry.id)
            found[entry.id] = read_registered(folder, entry.id, store.archive.contents)
        except RunnerError as error:
            errors.append(error)
    return found, errors


def packed_here(config: Config, folder: Path) -> bool:
    """Whether a bundle was packed on this machine, into the data directory: nobody else writes there."""
    return folder.resolve().is_relative_to((config.home / "bundles").resolve())


def take_image(engine: Engine, bundle: Bundle) -> ImageRef | None:
    """The image of a registered bundle in ``engine``: already there, loaded from its archive, or pulled by digest.

    None for run files. Raises E204, with what to do, when it is none of these; E205 when an archive holds another image.
    """
    return None if bundle.data["image"] is None else _present(engine, bundle)


def _present(engine: Engine, bundle: Bundle) -> ImageRef:
    image = bundle.data["image"]
    if (present := find_image(engine, image["id"])) is not None:
        return present
    if image.get("archive"):
        return _loaded(engine, bundle)
    if image.get("repo_digest"):
        return resolve_expected(engine, image["repo_digest"], image["id"])
    name = f"{bundle.data['team']}/{bundle.data['software']}"
    raise RunnerError(
        "E204",
        f"the image of {name} has vanished from this engine",
        why=f"It was {image['id'][:19]}, and {bundle.submission_id} was packed here, without an archive of it.",
        fix="put that very image back, which costs no quota: load it into the engine again, or run runner register with "
        "the bundle that runner pack … --to FOLDER writes where the image still is; another image is another submission: when "
        "nobody has this one any more, runner withdraw SUBMISSION --uncharged --reason TEXT, and submit again for no quota",
    )


def _loaded(engine: Engine, bundle: Bundle) -> ImageRef:
    return engine.load(bundle.folder / IMAGE, max_bytes=MAX_IMAGE, expect=bundle.data["image"]["id"])


def _image(config: Config, engine: Engine, bundle: Bundle, here: bool) -> ImageRef:
    """The image of a bundle that is being registered, by identity. Raises E204, E205, E212.

    Only where it was packed ``here`` may the engine have it already. From elsewhere the bundle brings it along or
    names one of a registry: whatever else the engine holds may be anybody's.
    """
    image = bundle.data["image"]
    if image.get("archive"):
        return _loaded(engine, bundle)
    if here:
        return _present(engine, bundle)
    if image.get("repo_digest"):
        return origins(config, engine, bundle.data["team"]).registry(image["repo_digest"], image["id"])
    what = f"the image of {bundle.data['team']}/{bundle.data['software']} is not in the bundle"
    why = "A bundle from elsewhere brings its image along, or names one of a registry by its digest."
    fix = "pack with runner pack … --to FOLDER, which writes the image into the bundle"
    raise RunnerError("E204", what, why=why, fix=fix)


@contextmanager
def _copied(config: Config, bundle: Bundle) -> Iterator[Bundle]:
    """A copy of a bundle in the data directory, hashes checked: the sender's folder may change at any time."""
    make_private(config.registered)
    with scratch_folder(config.registered) as staging:
        shutil.copytree(bundle.folder, staging / "bundle", symlinks=True, copy_function=_copy)
        staging.chmod(0o755)
        copied = read_bundle(staging / "bundle")
        if copied.digest != bundle.digest:
            what = "the bundle was changed while it was being registered"
            raise RunnerError("E205", what, fix="register it again")
        yield copied


def _copy(source: str, target: str) -> None:
    """Copy one file of a bundle, with links as links. Raises E306: copytree would report an OSError without its number."""
    with on_disk("the submission cannot be kept", target):
        shutil.copy2(source, target, follow_symlinks=False)


def give_back(config: Config, store: Store, submission_ids: Iterable[str]) -> None:
    """Remove the copies of submissions whose registration failed, unless the event log has them."""
    recorded = {event.data.get("submission") for event, _ in store.log.after(Position())}
    for submission_id in submission_ids:
        if submission_id not in recorded:
            shutil.rmtree(home_of(config, submission_id).parent, ignore_errors=True)


def take_in_all(
    config: Config,
    engine: Engine | None,
    tasks: Mapping[str, Task],
    bundles: Sequence[Bundle],
    contents: ContentStore,
) -> None:
    """Copy bundles into the data directory and their images into the engine, all or none; no event knows of them yet.

    Run files go to ``contents``, where the runs that are made of them find them again. Raises E216 for an image that is
    larger than its task allows, E217 for one that was built for other machines, and as :func:`runner.submissions.register.register`.
    """
    done: list[Path] = []
    try:
        for bundle in bundles:
            with on_disk("the submission cannot be kept", config.registered):
                done.append(_take_in(config, engine, tasks[bundle.data["task"]], bundle, contents))
    except BaseException:
        for folder in done:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _take_in(
    config: Config, engine: Engine | None, task: Task, bundle: Bundle, contents: ContentStore
) -> Path:
    """The folder in the data directory to which a bundle was copied, its image in the engine: as a whole or not at all."""
    target = home_of(config, bundle.submission_id).parent
    with _copied(config, bundle) as copied:
        if copied.data["image"] is not None:
            assert engine is not None, "an image needs an engine"
            name = f"{bundle.data['team']}/{bundle.data['software']}"
            if copied.data["image"].get("archive"):  # before the engine has it
                check_size((copied.folder / IMAGE).stat().st_size, task, name)
            image = _image(config, engine, copied, packed_here(config, bundle.folder))
            check_size(image.size, task, name)
            check_platform(image, engine, name)
            engine.keep(image, kept_as(bundle.data["task"], bundle.data["team"], bundle.submission_id))
        store_runs(copied, contents)
        if target.exists():  # left by a process that was killed before it recorded the registration
            shutil.rmtree(target)
        copied.folder.parent.rename(target)
        return target


def put_back(config: Config, engine: Engine | None, bundle: Bundle) -> bool:
    """Put the image of a registered submission back where the engine has lost it; whether that was needed.

    Raises E205 unless the bundle is the one that was registered, image included: an id shows a part of its digest.
    """
    image = bundle.data["image"]
    if image is None or engine is None:
        return False
    try:
        registered_then = read_bundle(home_of(config, bundle.submission_id), verify=False)
    except RunnerError:
        return False  # our copy is damaged: nobody can tell whether this is the same
    if registered_then.digest != bundle.digest:
        what = "another bundle was registered under this id"
        raise RunnerError("E205", what, fix="register it under another software's name")
    kept = kept_as(bundle.data["task"], bundle.data["team"], bundle.submission_id)
    if (present := find_image(engine, image["id"])) is not None:
        engine.keep(present, kept)
        return False
    with _copied(config, bundle) as copied:
        engine.keep(_image(config, engine, copied, packed_here(config, bundle.folder)), kept)
    return True
