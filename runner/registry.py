"""Registered submissions: the organiser's side of the hand-over. Never builds, believes only hashes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import schemas
from runner.bundle import IMAGE, MAX_IMAGE, Bundle, read_bundle
from runner.clock import Clock, SystemClock, stamp
from runner.config import Config
from runner.engines.base import Engine, ImageRef
from runner.errors import RunnerError
from runner.events import Position
from runner.records import registration
from runner.rounds import check_open
from runner.store.connect import Store
from runner.store.queries import QuotaUse, quota, submission, submissions
from runner.store.queries import cells as counted
from runner.tasks import Cell, Task


@dataclass(frozen=True)
class Receipt:
    """What a registration gave: the submission's id, whether it was new, and the quota after it.

    ``head`` is the last known head of the event log then: who keeps the receipt can ask whether it is still on the chain.
    """

    submission: str
    new: bool
    quota: QuotaUse
    image: str | None
    head: Position


def home_of(config: Config, submission_id: str) -> Path:
    """Where the bundle of a registered submission is kept."""
    return config.registered / submission_id / "bundle"


def registered(config: Config, store: Store) -> tuple[dict[str, Bundle], list[RunnerError]]:
    """The bundles of registered submissions by id, and an error for each that is missing or damaged."""
    found: dict[str, Bundle] = {}
    errors: list[RunnerError] = []
    for entry in submissions(store):
        try:
            bundle = read_bundle(home_of(config, entry.id), verify=False)
            if bundle.submission_id != entry.id:
                raise RunnerError(
                    "E307",
                    f"the bundle of {entry.id} is not what was registered",
                    why="Its content has another digest than its id says.",
                    fix="restore it from a backup",
                )
            found[entry.id] = bundle
        except RunnerError as error:
            errors.append(error)
    return found, errors


def register(
    config: Config,
    store: Store,
    engine: Engine,
    tasks: Mapping[str, Task],
    folder: Path,
    *,
    actor: str = "organiser",
    clock: Clock | None = None,
) -> Receipt:
    """Register the bundle in ``folder``: check every hash, take the image in, apply the quota, keep a copy.

    Registering the same bundle again changes nothing. Raises E205 for a bundle that does not match its
    hashes, E204 for a missing image, E206 when the quota is used up, E102/E207 when it fits no task, E210
    before the task opens and after its deadline. What counts is when it was received, by our own ``clock``:
    the time of this call.
    """
    from filelock import FileLock

    received = (clock or SystemClock()).now()
    bundle = read_bundle(folder)
    task = _task_of(bundle, tasks)
    config.locks.mkdir(parents=True, exist_ok=True)
    # Between looking at the quota and using it nobody else may register.
    with FileLock(config.locks / "register.lock"):
        return _register(config, store, engine, bundle, task, actor, received)


def _register(
    config: Config,
    store: Store,
    engine: Engine,
    bundle: Bundle,
    task: Task,
    actor: str,
    received: datetime,
) -> Receipt:
    identity = bundle.submission_id
    known = {entry.id for entry in submissions(store, task=task.id)}
    if identity in known:
        return Receipt(
            identity, False, quota(store, task, bundle.data["team"]), _image_id(bundle), store.head()
        )
    check_open(task, bundle.data["team"], received, store)
    use = quota(store, task, bundle.data["team"])
    if use.left < 1:
        raise RunnerError(
            "E206",
            f"team {bundle.data['team']} has used its {use.limit} submissions for {task.id}",
            why=f"{use.used} are settled and {use.open} are still to be run.",
            fix="withdraw one that has not run yet, or ask the organiser for an extension",
        )
    image = _take_in(config, engine, bundle)
    event = {**registration(bundle), "received": stamp(received)}
    store.commit("submission-registered", event, actor=actor)
    left = quota(store, task, bundle.data["team"])
    return Receipt(identity, True, left, image.id if image else None, store.head())


def _task_of(bundle: Bundle, tasks: Mapping[str, Task]) -> Task:
    data = bundle.data
    task = tasks.get(data["task"])
    if task is None:
        raise RunnerError(
            "E102",
            f"there is no task {data['task']}",
            why="The bundle was packed for it.",
            fix="runner task list",
        )
    if not (task.takes_uploads if data["runs"] else task.takes_software):
        wanted, given = ("software", "run files") if data["runs"] else ("run files", "software")
        raise RunnerError(
            "E207",
            f"the task {task.id} takes {wanted}, not {given}",
            why="What a bundle may hold is decided by the task, however the bundle was made.",
            fix=f"hand in {wanted}",
        )
    unknown = [name for name in data["scenarios"] if name not in task.scenarios]
    if unknown:
        raise RunnerError(
            "E207",
            f"{task.id} has no scenario {', '.join(unknown)}",
            why=f"It has {', '.join(task.scenarios)}.",
            fix="mend scenarios in submission.yaml and pack again",
        )
    cells = bundle.cells
    for dataset, scenario in cells or ():
        if dataset not in task.datasets or scenario not in task.scenarios:
            raise RunnerError(
                "E207",
                f"{task.id} has no dataset {dataset} in a scenario {scenario}",
                why=f"It has the datasets {', '.join(task.datasets)} and the scenarios {', '.join(task.scenarios)}.",
                fix="mend submission.yaml and pack again",
            )
    if cells is not None and not data["runs"] and not {Cell(*cell) for cell in cells} & set(counted(task)):
        raise RunnerError(
            "E207",
            f"{data['team']}/{data['software']} would never be run",
            why=f"No table of {task.id} counts one of its datasets in one of its scenarios.",
            fix="mend datasets in submission.yaml and pack again",
        )
    return task


def _image_id(bundle: Bundle) -> str | None:
    image: dict[str, Any] | None = bundle.data["image"]
    return image["id"] if image else None


def take_image(engine: Engine, bundle: Bundle) -> ImageRef | None:
    """The image of a bundle in ``engine``, by identity: already there, loaded from its archive, or pulled by digest.

    Raises E204 when it is none of these, E205 when the archive holds another image than the bundle says.
    """
    image = bundle.data["image"]
    if image is None:
        return None
    try:
        return engine.resolve(image["id"])
    except RunnerError as error:
        if error.code != "E204":
            raise
    if image.get("archive"):
        return engine.load(bundle.folder / IMAGE, max_bytes=MAX_IMAGE, expect=image["id"])
    if image.get("repo_digest"):
        pulled = engine.resolve(image["repo_digest"])
        if pulled.id != image["id"]:
            raise RunnerError(
                "E205", "the registry holds another image than the bundle says", fix="pack again"
            )
        return pulled
    raise RunnerError(
        "E204",
        f"the image of {bundle.data['team']}/{bundle.data['software']} is not in this engine",
        why="The bundle carries no image archive, so it can be registered only where it was packed.",
        fix="pack with runner pack … --to FOLDER, which writes the image into the bundle",
    )


def _take_in(config: Config, engine: Engine, bundle: Bundle) -> ImageRef | None:
    """Copy the bundle into the data directory and its image into the engine, as a whole or not at all.

    The image is read from our copy, whose hashes were checked: the sender's folder may change at any time.
    """
    target = home_of(config, bundle.submission_id)
    config.registered.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".new-", dir=config.registered))
    try:
        shutil.copytree(bundle.folder, staging / "bundle", symlinks=True)
        staging.chmod(0o755)
        copied = read_bundle(staging / "bundle")
        if copied.digest != bundle.digest:
            raise RunnerError(
                "E205", "the bundle was changed while it was being registered", fix="register it again"
            )
        image = take_image(engine, copied)
        if image is not None:
            engine.keep(image, f"proctor-submissions/{bundle.data['task']}:{bundle.submission_id}")
        if target.parent.exists():  # left by a process that was killed before it recorded the registration
            shutil.rmtree(target.parent)
        staging.rename(target.parent)
        return image
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def withdraw(store: Store, submission_id: str, reason: str, *, actor: str = "organiser") -> bool:
    """Withdraw a submission; nothing is deleted. False when it was withdrawn already. Raises E102."""
    entry = submission(store, submission_id)
    if entry.withdrawn is not None:
        return False
    store.commit(
        "submission-withdrawn", {"submission": entry.id, "reason": schemas.show(reason, 500)}, actor=actor
    )
    return True
