"""Registered submissions: the organiser's side of the hand-over. Never builds, believes only hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import Engine
from runner.exchange.handing_in import Takes
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError, no_such
from runner.model.limits import beyond
from runner.model.names import (
    ABOUT,
    BASELINES,
    SAID,
    check_apart,
    check_display,
    check_name,
    text_problem,
    unasked,
)
from runner.model.quota import QuotaUse
from runner.model.run import Submission
from runner.model.run import cells as counted
from runner.model.task import Cell, Task
from runner.records.commit import registering
from runner.records.deadlines import check_open
from runner.records.events import Position
from runner.records.files import file_sha256
from runner.records.policy import note_policies
from runner.records.store.charges import quotas
from runner.records.store.connect import Store
from runner.records.store.queries import submission, submissions
from runner.submissions.admission import cells_on, datasets_of, datasets_taken
from runner.submissions.bundle import MANIFEST, Bundle, read_bundle, registration
from runner.submissions.kept import give_back, home_of, packed_here, put_back, take_in_all
from runner.tasks.files import how_to_get, missing_sources


@dataclass(frozen=True)
class Receipt:
    """What a registration gave: the submission's id, whose it is, whether it was new, and the quota after it.

    ``head`` is the last known head of the event log then: who keeps the receipt can ask whether it is still on the chain.
    ``put_back`` says that the image of a submission which was registered already had vanished from the engine, and is
    there again.
    """

    submission: str
    team: str
    software: str
    new: bool
    quota: QuotaUse
    image: str | None
    head: Position
    put_back: bool = False
    quotas: Mapping[str, QuotaUse] = field(default_factory=dict)  # of datasets that have one of their own
    left_out: tuple[str, ...] = ()  # datasets of the task that did not take it


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
        RunnerError: E205 for a bundle that does not match its hashes, E208 for names that may not be, E213 for a
            bundle of another team, E215 when the name is nearly that of another team or software, E216 for an image larger than
            the task allows, E217 for one that was built for other machines, E204 for a missing
            image, E212 for one that is not the team's, E206 when the quota is used up, E102 or E207 when it fits no
            task, E210 before the task opens and after its deadline.
    """
    return register_all(config, store, engine, tasks, [folder], actor=actor, clock=clock, team=team)[0]


def register_all(
    config: Config,
    store: Store,
    engine: Engine | None,
    tasks: Mapping[str, Task],
    folders: Sequence[Path],
    *,
    actor: str = "organiser",
    clock: Clock | None = None,
    team: str | None = None,
) -> list[Receipt]:
    """Register the bundles in ``folders``, in this order: all of them, or none.

    Args and what one bundle means are as in :func:`register`; ``engine`` may be None where all bundles hold run files.

    Returns:
        A receipt for each.

    Raises:
        RunnerError: the first of :func:`refusals`; E205 for a bundle that does not match its hashes; as :func:`register`
            for an image.
    """
    received = (clock or SystemClock()).now()
    bundles = [read_bundle(folder) for folder in folders]
    # Between looking at the quota and using it nobody else may register.
    with registering(config):
        for refusal in refusals(config, store, tasks, bundles, received, team):
            if refusal is not None:
                raise refusal
        known = {entry.id for entry in submissions(store)}
        back = {b.submission_id for b in bundles if b.submission_id in known and put_back(config, engine, b)}
        new = {b.submission_id: b for b in bundles if b.submission_id not in known}
        take_in_all(config, engine, tasks, list(new.values()), store.archive.contents)
        try:
            note_policies(
                store, {name: tasks[name] for name in (b.data["task"] for b in new.values())}.values()
            )
            events = [_event(config, store, tasks, bundle, received) for bundle in new.values()]
            if events:
                store.commit_all(events, actor=actor)
        except BaseException:
            give_back(config, store, new)
            raise
    return [_receipt(store, tasks, bundle, new, bundle.submission_id in back, received) for bundle in bundles]


def _event(
    config: Config, store: Store, tasks: Mapping[str, Task], bundle: Bundle, received: datetime
) -> tuple[str, dict[str, Any]]:
    """Return type and data of the event by which a bundle is registered."""
    task = tasks[bundle.data["task"]]
    datasets = datasets_taken(bundle, task, received, store)
    event = {**registration(bundle), "received": stamp(received)}
    event["manifest"] = file_sha256(home_of(config, bundle.submission_id) / MANIFEST)
    if datasets != datasets_of(bundle, task):
        event["cells"] = cells_on(bundle, task, datasets)
    return "submission-registered", event


def _receipt(
    store: Store, tasks: Mapping[str, Task], bundle: Bundle, new: Container[str], back: bool, now: datetime
) -> Receipt:
    identity, data = bundle.submission_id, bundle.data
    task = tasks[data["task"]]
    left = quotas(store, task, data["team"], now)
    cells = submission(store, identity).cells_of(task)
    on = tuple(dict.fromkeys(cell.dataset for cell in cells))
    closed = tuple(name for name in datasets_of(bundle, task) if name not in on)
    own = {name: left[name] for name in on if name in left}
    image = data["image"]["id"] if data["image"] else None
    who = data["team"], data["software"]
    return Receipt(identity, *who, identity in new, left[""], image, store.head(), back, own, closed)


def refusals(
    config: Config,
    store: Store,
    tasks: Mapping[str, Task],
    bundles: Sequence[Bundle],
    received: datetime,
    team: str | None = None,
) -> list[RunnerError | None]:
    """Why each bundle cannot be registered, were they received then in this order; None where it can be, or is already.

    The quota counts those that come before, and their names are taken. Codes: E102, E206, E207, E208, E210, E213, E215 and E402,
    as of :func:`register`.
    """
    there = submissions(store)
    known = {entry.id for entry in there}
    names: dict[str, set[str]] = {}  # of softwares by team
    for entry in there:
        names.setdefault(entry.team, set()).add(entry.software)
    teams = {entry.team: entry.team_display_name for entry in there}
    before: Counter[tuple[str, str, str]] = Counter()
    found: list[RunnerError | None] = []
    for bundle in bundles:
        whose = (bundle.data["task"], bundle.data["team"])
        try:
            _check_team(config, bundle, team)
            task = task_of(bundle, tasks)
            if bundle.submission_id not in known:
                _check_apart(names, bundle)
                _check_displayed(teams, bundle)
                _check_about(bundle, task)
                scopes = ("", *datasets_taken(bundle, task, received, store))
                counts = {scope: before[*whose, scope] for scope in scopes}
                _check_quota(store, task, whose[1], counts, received)
                before.update((*whose, scope) for scope in scopes)
                _check_evaluable(bundle, task)
                names.setdefault(whose[1], set()).add(bundle.data["software"])
                teams[whose[1]] = bundle.data.get("team_display_name") or teams.get(whose[1], "")
            found.append(None)
        except RunnerError as error:
            found.append(error)
    return found


def _check_quota(store: Store, task: Task, team: str, before: Mapping[str, int], now: datetime) -> None:
    """Raise E206 when nothing is left of a team's quota for the task or a dataset, after so many more submissions ``before``."""
    for name, use in quotas(store, task, team, now).items():
        if name not in before or use.after(before[name]).left:
            continue
        of = f"{task.id}/{name}" if name else task.id
        what = f"team {team} may hand in no more for {of} now" if use.left_in_all else ""
        what = what or f"team {team} has used its {use.limit} submissions for {of}"
        why = f"{use.used} are settled and {use.open} are still to be run."
        if use.after(before[name]).left_in_all:
            why = f"The quota: {use.says}."
        if before[name] and use.left:
            what = f"team {team} may hand in {use.left} more submissions for {of}, and this is one more"
        fix = "withdraw one that has not run yet, or ask the organiser for an extension"
        if soon := use.after(before[name]).next_free:
            fix = f"hand it in again {soon}"
        raise RunnerError("E206", what, why=why, fix=fix)


def _check_apart(names: Mapping[str, Iterable[str]], bundle: Bundle) -> None:
    """Raise E215 when the team of a bundle, or its software, would be taken for another one of ``names`` (softwares by team)."""
    team, software = bundle.data["team"], bundle.data["software"]
    check_apart("team", team, names)
    check_apart("software", software, names.get(team, ()))


def _check_displayed(teams: Mapping[str, str], bundle: Bundle) -> None:
    """Raise E208 for display names that may not be, E215 when one of ``teams`` is called or shown as this one would be."""
    data = bundle.data
    if "display_name" in data:
        check_display("software", data["software"], data["display_name"])
    if "team_display_name" in data or data["team"] not in teams:  # a new team's name is what is shown of it
        check_display("team", data["team"], data.get("team_display_name") or data["team"], teams)


def _check_about(bundle: Bundle, task: Task) -> None:
    """Raise E207 unless a bundle says of itself what the task asks for, nothing that it does not take, and in the right form."""
    data = bundle.data
    found = [Problem(key, what, fix) for key, what, fix in unasked(data, task.id, task.asks)]
    for key in ABOUT:
        if wrong := text_problem(key, data[key]) if key in data else "":
            found.append(Problem(key, f"{key} {wrong}", SAID[key]))
    if found:
        what = (
            f"the bundle of {data['team']}/{data['software']} does not say of itself what {task.id} asks for"
        )
        fix = "correct what is listed in submission.yaml, and pack again"
        raise RunnerError("E207", what, fix=fix, problems=found)


def _check_evaluable(bundle: Bundle, task: Task) -> None:
    """Raise E402 when files of the organiser's are missing in every dataset that the bundle is for: nothing could be scored."""
    datasets = [task.datasets[name] for name in datasets_of(bundle, task)]
    software = not bundle.data["runs"]
    missing = [(d, found) for d in datasets if (found := missing_sources(d, optional=software))]
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


def _check_team(config: Config, bundle: Bundle, team: str | None) -> None:
    """Raise E208 or E213 unless the bundle may be of the team that it says, and called as it is."""
    says = bundle.data["team"]
    if team is not None:
        check_name("team", team)
    check_name("team", says, "The bundle says that it is of this team.")
    check_name("software", bundle.data["software"], f"The bundle says that it is one of {says}.")
    if team is not None and team != says:
        why = f"It says that it is of the team {says}, whose quota and place in the tables it would take."
        fix = "ask whoever sent it, or name the right team"
        raise RunnerError("E213", f"the bundle is not one of {team}", why=why, fix=fix)
    if says == BASELINES and not packed_here(config, bundle.folder):
        what, why = f"{says} are the organiser's, packed here", "That name stands for the organiser."
        raise RunnerError("E213", what, why=why, fix="pack it again as another team")


def task_of(bundle: Bundle, tasks: Mapping[str, Task]) -> Task:
    """The task of a bundle. Raises E102 when there is none, E207 when the bundle does not fit it."""
    data = bundle.data
    task = tasks.get(data["task"])
    if task is None:
        raise no_such("task", data["task"], why="The bundle was packed for it.", fix="runner task list")
    Takes.of(task).check("run files" if data["runs"] else "software")
    for _, what, _ in beyond(task.limits, task.frame, data.get("limits", {})):
        fix = "correct limits in submission.yaml and pack again"
        raise RunnerError("E207", f"{data['team']}/{data['software']}: {what}", fix=fix)
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


def show_as(
    config: Config, store: Store, team: str, software: str | None, text: str, *, actor: str = "organiser"
) -> None:
    """Record the display name of a team, or of a ``software`` of its; an empty one takes it away.

    Raises E102 for what is not registered, E208 for what is no display name, E215 for that of another team.
    """
    with registering(config):
        there = submissions(store)
        teams = {entry.team: entry.team_display_name for entry in there}
        if team not in teams:
            raise no_such("team", team, teams, fix="runner runs lists what is registered")
        softwares = {entry.software for entry in there if entry.team == team}
        if software is not None and software not in softwares:
            raise no_such(
                "software", software, softwares, of=f"the team {team}", fix="runner runs lists them"
            )
        if text and software is None:
            check_display("team", team, text, teams)
        elif text and software is not None:
            check_display("software", software, text)
        facts = {"team": team, "software": software or "", "display_name": text}
        store.commit("display-name-set", facts, actor=actor)


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


def choose(
    store: Store, task: Task, submission_id: str, *, clock: Clock | None = None, actor: str = "organiser"
) -> Submission:
    """Name a submission as the one that counts for its row, where a table's ``pick`` is ``chosen``; returns it.

    It counts on the datasets that are open then. Raises E102 when there is none or it was withdrawn, and E210 when none of its
    datasets takes anything from the team: not open yet, paused, or after its deadline.
    """
    entry = submission(store, submission_id)
    if entry.withdrawn is not None:
        raise RunnerError("E102", f"{entry.id} was withdrawn", why="It cannot count.", fix="name another one")
    datasets = list(dict.fromkeys(cell.dataset for cell in entry.cells_of(task)))
    check_open(task, entry.team, (clock or SystemClock()).now(), store, datasets, named=False)
    store.commit("submission-chosen", {"submission": entry.id}, actor=actor)
    return entry
