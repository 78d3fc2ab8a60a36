"""Registered submissions: the organiser's side of the hand-over. Never builds, believes only hashes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import schemas
from runner.engines.base import Engine, find_image
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError, no_such
from runner.model.names import check_name
from runner.model.run import QuotaUse
from runner.model.run import cells as counted
from runner.model.task import Cell, Task
from runner.records.deadlines import check_open
from runner.records.events import Position
from runner.records.store.connect import Store
from runner.records.store.queries import quota, submission, submissions
from runner.submissions.bundle import IMAGE, MAX_IMAGE, Bundle, read_bundle, read_registered, registration
from runner.submissions.origins import ORGANISERS, RESERVED, kept_as, origins, resolve_expected
from runner.tasks.files import how_to_get, missing_sources
from schemas.files import scratch_folder


@dataclass(frozen=True)
class Receipt:
    """What a registration gave: the submission's id, whether it was new, and the quota after it.

    ``head`` is the last known head of the event log then: who keeps the receipt can ask whether it is still on the chain.
    ``put_back`` says that the image of a submission which was registered already had vanished from the engine, and is
    there again.
    """

    submission: str
    new: bool
    quota: QuotaUse
    image: str | None
    head: Position
    put_back: bool = False


def home_of(config: Config, submission_id: str) -> Path:
    """Where the bundle of a registered submission is kept."""
    return config.registered / submission_id / "bundle"


def registered(config: Config, store: Store) -> tuple[dict[str, Bundle], list[RunnerError]]:
    """The bundles of registered submissions by id, and an error for each that is missing or damaged."""
    found: dict[str, Bundle] = {}
    errors: list[RunnerError] = []
    for entry in submissions(store):
        try:
            found[entry.id] = read_registered(home_of(config, entry.id), entry.id)
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
    team: str | None = None,
) -> Receipt:
    """Register the bundle in ``folder``: check every hash, take the image in, apply the quota, keep a copy.

    Registering the same bundle again changes nothing, but puts its image back where the engine has lost it. What counts
    is when it was received: the time of this call.

    Args:
        config: where the project and its data directory are.
        store: the open store.
        engine: where the image is taken in.
        tasks: the tasks by id.
        folder: the bundle; it is not changed.
        actor: who registers, for the event log.
        clock: gives the time of this call; by default the system's.
        team: the team that the organiser was given the bundle by, if that is known.

    Returns:
        The receipt: the submission's id, whether it was new, and the quota after it.

    Raises:
        RunnerError: E205 for a bundle that does not match its hashes, E213 for one of another team, E204 for a missing
            image, E212 for one that is not the team's, E206 when the quota is used up, E102 or E207 when it fits no
            task, E210 before the task opens and after its deadline.
    """
    from filelock import FileLock

    received = (clock or SystemClock()).now()
    bundle = read_bundle(folder)
    _check_team(config, bundle, team)
    task = task_of(bundle, tasks)
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
        back = _put_back(config, engine, bundle)
        left = quota(store, task, bundle.data["team"])
        image_id = bundle.data["image"]["id"] if bundle.data["image"] else None
        return Receipt(identity, False, left, image_id, store.head(), back)
    check_open(task, bundle.data["team"], received, store)
    use = quota(store, task, bundle.data["team"])
    if use.left < 1:
        what = f"team {bundle.data['team']} has used its {use.limit} submissions for {task.id}"
        why = f"{use.used} are settled and {use.open} are still to be run."
        fix = "withdraw one that has not run yet, or ask the organiser for an extension"
        raise RunnerError("E206", what, why=why, fix=fix)
    _check_evaluable(bundle, task)
    image = _take_in(config, engine, bundle)
    event = {**registration(bundle), "received": stamp(received)}
    store.commit("submission-registered", event, actor=actor)
    left = quota(store, task, bundle.data["team"])
    return Receipt(identity, True, left, image.id if image else None, store.head())


def _check_evaluable(bundle: Bundle, task: Task) -> None:
    """Raise E402 when files of the organiser's are missing in every dataset that the bundle is for: nothing could be scored."""
    wanted = counted(task) if bundle.cells is None else [Cell(*cell) for cell in bundle.cells]
    datasets = [task.datasets[name] for name in dict.fromkeys(cell.dataset for cell in wanted)]
    missing = [(dataset, found) for dataset in datasets if (found := missing_sources(dataset))]
    if not datasets or len(missing) < len(datasets):
        return
    dataset, found = missing[0]
    names = schemas.show(", ".join(source.name for source in found), 300)
    raise RunnerError(
        "E402",
        f"{bundle.data['team']}/{bundle.data['software']} could not be evaluated: files of {task.id} are missing here",
        why=f"Not fetched for {dataset.id}: {names}. That is the organiser's side; it costs no quota.",
        fix=how_to_get(found[0], dataset.id, task.id) + ", then register again",
    )


def packed_here(config: Config, folder: Path) -> bool:
    """Whether a bundle was packed on this machine, into the data directory: nobody else writes there."""
    return folder.resolve().is_relative_to((config.home / "bundles").resolve())


def _check_team(config: Config, bundle: Bundle, team: str | None) -> None:
    """Raise E208 or E213 unless the bundle may be of the team that it says."""
    says = bundle.data["team"]
    if team is not None:
        check_name("team", team)
    if team is not None and team != says:
        why = f"It says that it is of the team {says}, whose quota and place in the tables it would take."
        fix = "ask whoever sent it, or name the right team"
        raise RunnerError("E213", f"the bundle is not one of {team}", why=why, fix=fix)
    if says in RESERVED and not (says == ORGANISERS and packed_here(config, bundle.folder)):
        what = f"{says} are the organiser's, packed here"
        what = what if says == ORGANISERS else f"no team may be called {says}"
        why = "That name stands for the organiser or the platform."
        raise RunnerError("E213", what, why=why, fix="pack it again as another team")


def task_of(bundle: Bundle, tasks: Mapping[str, Task]) -> Task:
    """The task of a bundle. Raises E102 when there is none, E207 when the bundle does not fit it."""
    data = bundle.data
    task = tasks.get(data["task"])
    if task is None:
        raise no_such("task", data["task"], why="The bundle was packed for it.", fix="runner task list")
    if not (task.takes_uploads if data["runs"] else task.takes_software):
        wanted, given = ("software", "run files") if data["runs"] else ("run files", "software")
        why = "What a bundle may hold is decided by the task, however the bundle was made."
        what = f"the task {task.id} takes {wanted}, not {given}"
        raise RunnerError("E207", what, why=why, fix=f"hand in {wanted}")
    cells = bundle.cells
    named: dict[str, tuple[Iterable[str], Mapping[str, object]]] = {
        "scenario": ([*data["scenarios"], *(scenario for _, scenario in cells or ())], task.scenarios),
        "dataset": ((dataset for dataset, _ in cells or ()), task.datasets),
    }
    for noun, (names, known) in named.items():
        for name in names:
            if name not in known:
                fix = f"correct {noun}s in submission.yaml and pack again"
                raise no_such(noun, name, known, of=task.id, fix=fix, code="E207")
    if cells is not None and not data["runs"] and not {Cell(*cell) for cell in cells} & set(counted(task)):
        what = f"{data['team']}/{data['software']} would never be run"
        why = f"No table of {task.id} counts one of its datasets in one of its scenarios."
        raise RunnerError("E207", what, why=why, fix="correct datasets in submission.yaml and pack again")
    return task


def take_image(engine: Engine, bundle: Bundle) -> ImageRef | None:
    """The image of a registered bundle in ``engine``: already there, loaded from its archive, or pulled by digest.

    Raises E204, with what to do, when it is none of these; E205 when an archive holds another image.
    """
    image = bundle.data["image"]
    if image is None:
        return None
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


def _image(config: Config, engine: Engine, bundle: Bundle, here: bool) -> ImageRef | None:
    """The image of a bundle that is being registered, by identity. Raises E204, E205, E212.

    Only where it was packed ``here`` may the engine have it already. From elsewhere the bundle brings it along or
    names one of a registry: whatever else the engine holds may be anybody's.
    """
    image = bundle.data["image"]
    if image is None:
        return None
    if image.get("archive"):
        return _loaded(engine, bundle)
    if here:
        return take_image(engine, bundle)
    if image.get("repo_digest"):
        return origins(config, engine, bundle.data["team"]).registry(image["repo_digest"], image["id"])
    what = f"the image of {bundle.data['team']}/{bundle.data['software']} is not in the bundle"
    why = "A bundle from elsewhere brings its image along, or names one of a registry by its digest."
    fix = "pack with runner pack … --to FOLDER, which writes the image into the bundle"
    raise RunnerError("E204", what, why=why, fix=fix)


@contextmanager
def _copied(config: Config, bundle: Bundle) -> Iterator[Bundle]:
    """A copy of a bundle in the data directory, hashes checked: the sender's folder may change at any time."""
    config.registered.mkdir(parents=True, exist_ok=True)
    with scratch_folder(config.registered) as staging:
        shutil.copytree(bundle.folder, staging / "bundle", symlinks=True)
        staging.chmod(0o755)
        copied = read_bundle(staging / "bundle")
        if copied.digest != bundle.digest:
            what = "the bundle was changed while it was being registered"
            raise RunnerError("E205", what, fix="register it again")
        yield copied


def _take_in(config: Config, engine: Engine, bundle: Bundle) -> ImageRef | None:
    """Copy the bundle into the data directory and its image into the engine, as a whole or not at all."""
    target = home_of(config, bundle.submission_id)
    with _copied(config, bundle) as copied:
        image = _image(config, engine, copied, packed_here(config, bundle.folder))
        if image is not None:
            engine.keep(image, kept_as(bundle.data["task"], bundle.submission_id))
        if target.parent.exists():  # left by a process that was killed before it recorded the registration
            shutil.rmtree(target.parent)
        copied.folder.parent.rename(target.parent)
        return image


def _put_back(config: Config, engine: Engine, bundle: Bundle) -> bool:
    """Put the image of a registered submission back where the engine has lost it; whether that was needed.

    Raises E205 unless the bundle is the one that was registered, image included: an id shows a part of its digest.
    """
    image = bundle.data["image"]
    if image is None:
        return False
    try:
        registered_then = read_bundle(home_of(config, bundle.submission_id), verify=False)
    except RunnerError:
        return False  # our copy is damaged: nobody can tell whether this is the same
    if registered_then.digest != bundle.digest:
        what = "another bundle was registered under this id"
        raise RunnerError("E205", what, fix="register it under another software's name")
    kept = kept_as(bundle.data["task"], bundle.submission_id)
    if (present := find_image(engine, image["id"])) is not None:
        engine.keep(present, kept)
        return False
    with _copied(config, bundle) as copied:
        loaded = _image(config, engine, copied, packed_here(config, bundle.folder))
        assert loaded is not None
        engine.keep(loaded, kept)
    return True


def withdraw(
    store: Store, submission_id: str, reason: str, *, uncharged: bool = False, actor: str = "organiser"
) -> bool:
    """Withdraw a submission; nothing is deleted. False when it was withdrawn already.

    A submission that has run keeps its place in the quota, unless it is ``uncharged``: then the organiser gives it back,
    also of one that was withdrawn before. That needs a reason. Raises E101 without one, and E102.
    """
    entry = submission(store, submission_id)
    shown = schemas.show(reason, 500)
    if uncharged and not shown.strip():
        what = "a place in the quota is given back for a reason"
        why = "Whoever reads the event log later must see why this team was not charged."
        raise RunnerError("E101", what, why=why, fix="add --reason TEXT")
    if entry.withdrawn is not None and (entry.uncharged or not uncharged):
        return False
    given_back = {"uncharged": True} if uncharged else {}
    store.commit("submission-withdrawn", {"submission": entry.id, "reason": shown, **given_back}, actor=actor)
    return True
