"""The calendar of a task: when it opens and closes, its rounds, and the snapshots that freeze them.

A snapshot (``RUNNER_HOME/snapshots/<task>/<round>.json``) says which evaluations counted and holds the finished
tables. Its SHA-256 stands in the event ``round-frozen``; nothing that happens later changes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.calendar import Round, calendar, get_round
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.dates import ZonedTime
from runner.model.errors import Problem, RunnerError, no_such
from runner.records.commit import registering
from runner.records.deadlines import draw_keys, ends, granted
from runner.records.snapshot import read_snapshot, snapshot_changed, snapshot_path, write_snapshot

SECONDS = "%Y-%m-%d %H:%M:%S UTC"

if TYPE_CHECKING:
    from pathlib import Path

    from runner.model.config import Config
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.split import Split
    from runner.records.store.connect import Store
    from runner.views.audience import Audience
    from runner.views.leaderboard.rows import LeaderboardTable, Part


def part(task: Task, round_: Round, store: Store) -> Part:
    """What of the store belongs to ``round_``: submissions received in time, on its datasets; not frozen (yet)."""
    from runner.views.leaderboard.rows import Part, RoundInfo

    dates, later = calendar(task), granted(store, task.id)
    own = {name: granted(store, task.id, name) for name in task.datasets}

    def admits(team: str, dataset: str, received: str) -> bool:
        last = dates.cutoff(round_, dataset, team, later, own.get(dataset))
        return last.admits(datetime.fromisoformat(received))

    return Part(
        RoundInfo(round_.id, round_.title, round_.at.own, round_.at.utc, None), round_.datasets, admits
    )


@dataclass(frozen=True)
class RoundStatus:
    """How far a round is: ``frozen`` (time and SHA-256 of its snapshot, else None), ``due`` or still to come."""

    round: Round
    ends: ZonedTime
    frozen: str | None
    digest: str | None
    due: bool

    @property
    def name(self) -> str:
        """``frozen``, ``due`` or ``open``."""
        return "frozen" if self.frozen else "due" if self.due else "open"


def states(task: Task, store: Store, clock: Clock | None = None) -> list[RoundStatus]:
    """Every round of ``task`` in its order, with how far it is."""
    from runner.records.store.queries import frozen_rounds

    now, done = (clock or SystemClock()).now(), frozen_rounds(store, task.id)
    found = []
    for round_ in calendar(task).rounds.values():
        end, mark = ends(task, round_, store), done.get(round_.id)
        found.append(
            RoundStatus(round_, end, mark.frozen, mark.digest, False)
            if mark
            else RoundStatus(round_, end, None, None, not end.admits(now))
        )
    return found


def due(tasks: Iterable[Task], store: Store, clock: Clock | None = None) -> list[tuple[Task, RoundStatus]]:
    """The rounds whose date is over and that nobody froze yet; those of demonstrations need nobody."""
    return [
        (task, s)
        for task in tasks
        if task.definition.get("rounds") and not task.demo
        for s in states(task, store, clock)
        if s.due
    ]


# --- snapshots ---------------------------------------------------------------------------------------------


def freeze(
    config: Config,
    store: Store,
    task: Task,
    round_id: str,
    *,
    clock: Clock | None = None,
    anyway: bool = False,
    actor: str = "organiser",
) -> tuple[RoundStatus, bool]:
    """Freeze a round: write its snapshot, then the event with its hash. Returns its state and whether that was new.

    Nobody may register meanwhile, and the caller holds the coordinator's lock. Raises E102 for an unknown
    round; E211 before its date, or while runs that count are not settled (unless ``anyway``).
    """
    clock = clock or SystemClock()
    round_ = get_round(task, round_id)
    with registering(config):
        state = _state(task, store, round_id, clock)
        if state.frozen:
            return state, False
        now = clock.now()
        if not state.due:
            raise RunnerError(
                "E211",
                f"the round {round_id} of {task.id} is not over",
                why=f"Its date is {state.ends.says()}. It is over at {state.ends.end:{SECONDS}}; now it is {now:{SECONDS}}.",
                fix="freeze it after that",
            )
        belongs = part(task, round_, store)
        open_ = _unsettled(store, task, belongs, store.archive.live())
        if open_ and not anyway:
            raise RunnerError(
                "E211",
                f"{len(open_)} run{'s' if len(open_) > 1 else ''} of the round {round_id} are not settled",
                why="They were received in time and could count.",
                fix=f"runner evaluate --task {task.id}, then freeze again; --anyway freezes without them",
                problems=[Problem(run.id, _why_open(run)) for run in open_],
            )
        draw_keys(store, [task])  # without one nothing is split, and no name made up, for good
        data = _snapshot(store, task, round_, belongs, stamp(now), open_)
        text = schemas.canonical(data) + b"\n"
        write_snapshot(snapshot_path(config.home, task.id, round_id), text)
        facts = {"task": task.id, "round": round_id, "frozen": stamp(now)}
        facts["sha256"] = hashlib.sha256(text).hexdigest()
        store.commit("round-frozen", facts, actor=actor)
        return _state(task, store, round_id, clock), True


def _state(task: Task, store: Store, round_id: str, clock: Clock) -> RoundStatus:
    return next(s for s in states(task, store, clock) if s.round.id == round_id)


def _why_open(run: Run) -> str:
    return (
        f"nobody has reviewed it: runner review {run.id} --approve"
        if run.outcome.ranked
        else run.outcome.says
    )


def _unsettled(store: Store, task: Task, belongs: Part, running: Iterable[str]) -> list[Run]:
    """Runs of the round that may still count: they wait, run, are held for the organiser, or nobody has reviewed them yet where
    the task requires that."""
    from runner.records.store import queries
    from runner.views.audience import on_boards

    return [
        run
        for run in queries.runs(store, [task], task=task.id, running=list(running))
        if belongs.takes(run)
        and (
            run.outcome.name in ("pending", "running", "held")
            or (run.review is None and not on_boards(run, task, organiser=False))
        )
    ]


def _snapshot(
    store: Store, task: Task, round_: Round, belongs: Part, now: str, open_: Iterable[Run]
) -> dict[str, Any]:
    from runner.records.store import results
    from runner.views.audience import ORGANISER, PUBLIC
    from runner.views.leaderboard.export import as_dict
    from runner.views.leaderboard.table import frozen_tables

    _, used = frozen_tables(store, task, belongs)
    split = any(task.datasets[name].public_topics is not None for name in belongs.datasets)

    def made(audience: Audience) -> dict[str, Any]:
        parts = {"tables": None, **({"public_tables": "public"} if split else {})}
        return {
            key: {one.table: as_dict(one) for one in frozen_tables(store, task, belongs, part, audience)[0]}
            for key, part in parts.items()
        }

    position = store.catch_up()
    return {
        "schema_version": 1,
        "task": task.id,
        "round": round_.id,
        "title": round_.title,
        "at": round_.at.own,
        "at_utc": round_.at.utc,
        "frozen": now,
        "datasets": list(round_.datasets),
        "rule": calendar(task).rule,
        "task_digest": task.digest,
        "events": {"seq": position.seq, "hash": position.hash},
        "evaluations": results.evaluation_manifests(store, used),
        "unsettled": sorted(run.id for run in open_),
        **made(ORGANISER),
        **({"anonymous": made(PUBLIC)} if task.anonymous_until else {}),
    }


def board(
    store: Store,
    task: Task,
    round_id: str,
    table_id: str | None,
    audience: Audience,
    *,
    running: Iterable[str] = (),
    unit: str | None = None,
    pick: str | None = None,
    topics: str | None = None,
    against: str | None = None,
) -> LeaderboardTable:
    """A table (None: the first) of a round: as it was frozen, or, before that, as it stands now.

    Raises E101 for another ``unit``, ``pick`` or ``against`` of a frozen round, E102 for an unknown round or table, E103 when its scores
    are not open to ``audience``, E307 when the snapshot was changed.
    """
    from runner.records.store.queries import frozen_rounds
    from runner.views.leaderboard import table as tables

    mark = frozen_rounds(store, task.id).get(round_id)
    if mark is None:
        belongs = part(task, get_round(task, round_id), store)
        return tables.build(
            store,
            task,
            table_id,
            audience,
            running=list(running),
            part=belongs,
            unit=unit,
            pick=pick,
            topics=topics,
            against=against,
        )
    if unit is not None or pick is not None or against is not None:
        what, why = (
            f"the round {round_id} is frozen",
            "What counts in it was decided then, and its tests were kept.",
        )
        raise RunnerError("E101", what, why=why, fix="leave --unit, --pick and --against away")
    return _frozen_board(
        store, task, read_snapshot(_home(store), task.id, round_id, mark.digest), table_id, audience, topics
    )


def _home(store: Store) -> Path:
    return store.archive.root.parent


def _frozen_board(
    store: Store,
    task: Task,
    frozen: dict[str, Any],
    table_id: str | None,
    audience: Audience,
    topics: str | None,
) -> LeaderboardTable:
    """A table (None: the first) of a snapshot, as ``audience`` may see it."""
    from runner.records.store.queries import submissions
    from runner.views.leaderboard import table as tables
    from runner.views.leaderboard.anonymous import names_for
    from runner.views.leaderboard.export import from_dict
    from runner.views.scores import board_split
    from runner.views.team_texts import without_cleared_texts

    round_id: str = frozen["round"]
    name = next(iter(frozen["tables"]), "") if table_id is None else table_id
    if name not in frozen["tables"]:
        of = f"the round {schemas.show(round_id)} of {task.id}"
        raise no_such("table", name, frozen["tables"], of=of, fix="name one")
    cells = [cell["dataset"] for cell in frozen["tables"][name]["cells"]]
    tables.check_open(store, task, name, cells, audience)
    names = names_for(store, task, audience)
    kept: dict[str, Any] = frozen.get("anonymous", {}) if names.key else frozen
    split = board_split(store, task, cells, audience, topics)
    data = _of_part({"round": round_id, **kept}, name, split, audience)
    if names.key and audience.team:
        data = names.revealed(data, submissions(store, task=task.id, team=audience.team))
    if schemas.validate(data, "leaderboard"):
        raise snapshot_changed(
            snapshot_path(_home(store), task.id, round_id), "holds a table that this program cannot read"
        )
    made = from_dict(without_cleared_texts(store, data), str(audience))
    if audience.kind != "organiser":  # rounds that were frozen by older versions hold exact figures
        made = tables.closed(made, task)
    assert made.round is not None
    return replace(made, round=replace(made.round, frozen=frozen["frozen"]))


def _of_part(frozen: dict[str, Any], name: str, split: Split, audience: Audience) -> dict[str, Any]:
    """The frozen table ``name`` over the part of the topics that is looked at. Raises E103 when none was frozen over it."""
    from runner.views.audience import not_for

    public = [dataset for dataset, part in split.parts.items() if part == "public"]
    kept: dict[str, Any] = frozen.get("public_tables" if public else "tables", {}).get(name, {})
    over = kept.get("parts", {})
    if (
        not kept
        or any(over.get(dataset) != "public" for dataset in public)
        or (over and "all" in split.parts.values())
    ):
        what = f"the round {frozen['round']} over these topics, or with these names"
        raise not_for(audience, what, "look at the parts that were frozen: --topics public or private")
    return kept
