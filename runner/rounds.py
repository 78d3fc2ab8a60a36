"""The calendar of a task: when it opens and closes, its rounds, and the snapshots that freeze them.

A snapshot (``RUNNER_HOME/snapshots/<task>/<round>.json``) says which evaluations counted and holds the finished
tables. Its SHA-256 stands in the event ``round-frozen``; nothing that happens later changes it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.clock import Clock, SystemClock, stamp
from runner.dates import DateError, Moment, parse
from runner.errors import PlatformError, Problem, RunnerError

if TYPE_CHECKING:
    from runner.audience import Audience
    from runner.config import Config
    from runner.events import Event
    from runner.leaderboard.rows import LeaderboardTable, Part
    from runner.store.connect import Store
    from runner.store.queries import Run
    from runner.tasks import Task

MAX_SNAPSHOT = 64 * 2**20
Pointer = tuple[str | int, ...]


@dataclass(frozen=True)
class Round:
    """An official evaluation: what was received by ``at`` counts, on ``datasets``."""

    id: str
    title: str
    at: Moment
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Calendar:
    """The dates of a task. ``extensions`` are those of task.yaml; later ones are events."""

    opens: Moment | None = None
    closes: Moment | None = None
    rounds: Mapping[str, Round] = field(default_factory=dict)
    extensions: Mapping[str, Moment] = field(default_factory=dict)
    rule: str = "latest-per-software"

    def deadline(self, team: str, granted: Mapping[str, Moment] | None = None) -> Moment | None:
        """Until when ``team`` may hand in: never earlier than the closing date; ``granted`` by events comes first."""
        if self.closes is None:
            return None
        own = (granted or {}).get(team) or self.extensions.get(team)
        return self.closes if own is None else max(self.closes, own, key=lambda moment: moment.end)

    def cutoff(self, round_: Round, team: str, granted: Mapping[str, Moment] | None = None) -> Moment:
        """Until when what counts in ``round_`` may be received from ``team``.

        An extension moves the rounds at the closing date or later; earlier ones are the same for everybody.
        """
        own = self.deadline(team, granted)
        if self.closes is None or own is None or round_.at.end < self.closes.end:
            return round_.at
        return max(round_.at, own, key=lambda moment: moment.end)


def calendar(task: Task) -> Calendar:
    """The calendar of a task that was loaded. Raises E401 when a date in it is none."""
    data = task.definition
    everything = tuple(task.datasets)
    try:
        rounds = [
            Round(
                row["id"],
                row.get("title", row["id"]),
                parse(row["at"]),
                tuple(row.get("datasets", everything)),
            )
            for row in data.get("rounds", ())
        ]
        return Calendar(
            opens=parse(data["opens"]) if "opens" in data else None,
            closes=parse(data["closes"]) if "closes" in data else None,
            rounds={r.id: r for r in rounds},
            extensions={team: parse(text) for team, text in data.get("extensions", {}).items()},
            rule=data.get("round_rule", "latest-per-software"),
        )
    except DateError as error:
        raise RunnerError(
            "E401", f"a date of the task {task.id} cannot be read", why=error.what, fix=error.fix
        ) from error


def problems(data: Mapping[str, Any]) -> Iterator[tuple[Pointer, str, str]]:
    """What is wrong with the dates of a raw definition: place, what, fix. Tolerates what the schema refuses."""
    found: dict[Pointer, Moment] = {}
    texts: list[tuple[Pointer, Any]] = [((key,), data[key]) for key in ("opens", "closes") if key in data]
    rows = data.get("rounds")
    rounds = [
        (i, row) for i, row in enumerate(rows if isinstance(rows, list) else ()) if isinstance(row, dict)
    ]
    texts += [(("rounds", i, "at"), row.get("at")) for i, row in rounds]
    extensions = data.get("extensions")
    texts += [
        (("extensions", team), text)
        for team, text in (extensions.items() if isinstance(extensions, dict) else ())
    ]
    for pointer, text in texts:
        if not isinstance(text, str):
            continue
        try:
            found[pointer] = parse(text)
        except DateError as error:
            yield pointer, f'"{schemas.show(text, 60)}": {error.what}', error.fix
    opens, closes = found.get(("opens",)), found.get(("closes",))
    if opens is not None and closes is not None and opens.at >= closes.end:
        yield ("closes",), "the task closes before it opens", "exchange the dates"
    for pointer, moment in found.items():
        if pointer[0] == "extensions" and closes is None:
            if "closes" not in data:
                yield pointer, "there is no closing date to extend", "add closes:"
        elif pointer[0] == "extensions" and closes is not None and moment.end < closes.end:
            yield pointer, "the extension ends before the closing date", "write a later date"
        elif pointer[0] == "rounds" and opens is not None and moment.end <= opens.at:
            yield pointer, "the round is over before the task opens", "write a later date"
    names = data.get("datasets")
    known = [r.get("id") for r in names if isinstance(r, dict)] if isinstance(names, list) else []
    seen: set[str] = set()
    for i, row in rounds:
        name = row.get("id")
        if isinstance(name, str) and name in seen:
            yield (
                ("rounds", i, "id"),
                f'"{schemas.show(name)}" is in rounds twice',
                "give each a name of its own",
            )
        seen.add(str(name))
        wanted = row.get("datasets")
        for k, dataset in enumerate(wanted if isinstance(wanted, list) else ()):
            if isinstance(dataset, str) and dataset not in known:
                near = schemas.closest(dataset, [n for n in known if isinstance(n, str)]).strip()
                yield (
                    ("rounds", i, "datasets", k),
                    f'there is no dataset "{schemas.show(dataset)}"',
                    near or "name a dataset of this task",
                )


def check_open(task: Task, team: str, received: datetime, store: Store) -> None:
    """Raise E210 when the task takes nothing from ``team`` at ``received``: not opened yet, or closed.

    A bundled demonstration shows the calendar of a task that is long over; its dates keep nobody out.
    """
    if task.demo:
        return
    dates = calendar(task)
    if dates.opens is not None and not dates.opens.began(received):
        raise RunnerError(
            "E210",
            f"{task.id} does not take submissions yet",
            why=f"It opens at {dates.opens.says()}; this was received at {_at(received)}.",
            fix="hand it in again then",
        )
    deadline = dates.deadline(team, granted(store, task.id))
    if deadline is not None and not deadline.admits(received):
        whose = "" if deadline == dates.closes else f" (extended for {team})"
        raise RunnerError(
            "E210",
            f"the deadline of {task.id} is over",
            why=f"It was {deadline.says()}{whose}; this was received at {_at(received)}.",
            fix="ask the organiser for an extension",
        )


def _at(received: datetime) -> str:
    return f"{received:%Y-%m-%d %H:%M:%S} UTC"


def granted(store: Store, task_id: str) -> dict[str, Moment]:
    """The extensions of deadlines that were granted by events, by team; the last one counts."""
    from runner.store.queries import deadlines

    return {team: parse(until) for team, until in deadlines(store, task_id).items()}


def later(task: Task, text: str) -> Moment:
    """The date to which a deadline of ``task`` may be extended. Raises E101 when it is none or not later."""
    try:
        moment = parse(text)
    except DateError as error:
        raise RunnerError("E101", f"{schemas.show(text, 60)}: {error.what}", fix=error.fix) from error
    closes = calendar(task).closes
    if closes is None:
        raise RunnerError(
            "E101", f"{task.id} has no deadline", why="Its task.yaml has no closes.", fix="add it first"
        )
    if moment.end <= closes.end:
        raise RunnerError(
            "E101",
            "that is no extension",
            why=f"{task.id} closes at {closes.says()}.",
            fix="name a later date",
        )
    return moment


def the_round(task: Task, name: str) -> Round:
    """The round ``name`` of ``task``. Raises E102."""
    rounds = calendar(task).rounds
    if name not in rounds:
        raise RunnerError(
            "E102",
            f"{task.id} has no round {schemas.show(name)}",
            why=f"Its rounds are: {', '.join(rounds) or 'none'}.",
            fix=schemas.closest(name, rounds).strip() or "runner round list lists them",
        )
    return rounds[name]


def ends(task: Task, round_: Round, store: Store) -> Moment:
    """The last date that counts in ``round_`` for any team: from its end on it can be frozen."""
    dates, later = calendar(task), granted(store, task.id)
    teams = {*dates.extensions, *later}
    return max((dates.cutoff(round_, team, later) for team in ("", *sorted(teams))), key=lambda m: m.end)


def part(task: Task, round_: Round, store: Store) -> Part:
    """What of the store belongs to ``round_``: submissions received in time, on its datasets; not frozen (yet)."""
    from runner.leaderboard.rows import Part, RoundInfo

    dates, later = calendar(task), granted(store, task.id)

    def admits(team: str, registered: str) -> bool:
        return dates.cutoff(round_, team, later).admits(datetime.fromisoformat(registered))

    return Part(
        RoundInfo(round_.id, round_.title, round_.at.own, round_.at.utc, None), round_.datasets, admits
    )


@dataclass(frozen=True)
class State:
    """How far a round is: ``frozen`` (time and SHA-256 of its snapshot, else None), ``due`` or still to come."""

    round: Round
    ends: Moment
    frozen: str | None
    digest: str | None
    due: bool

    @property
    def name(self) -> str:
        return "frozen" if self.frozen else "due" if self.due else "open"


def states(task: Task, store: Store, clock: Clock | None = None) -> list[State]:
    """Every round of ``task`` in its order, with how far it is."""
    from runner.store.queries import frozen_rounds

    now, done = (clock or SystemClock()).now(), frozen_rounds(store, task.id)
    found = []
    for round_ in calendar(task).rounds.values():
        end, mark = ends(task, round_, store), done.get(round_.id)
        found.append(
            State(
                round_,
                end,
                mark.frozen if mark else None,
                mark.digest if mark else None,
                mark is None and not end.admits(now),
            )
        )
    return found


def due(tasks: Iterable[Task], store: Store, clock: Clock | None = None) -> list[tuple[Task, State]]:
    """The rounds whose date is over and that nobody froze yet; those of demonstrations need nobody."""
    return [
        (task, s)
        for task in tasks
        if task.definition.get("rounds") and not task.demo
        for s in states(task, store, clock)
        if s.due
    ]


# --- snapshots ---------------------------------------------------------------------------------------------


def snapshot_path(home: Path, task_id: str, round_id: str) -> Path:
    """Where the snapshot of a round lies in the data directory ``home``."""
    return home / "snapshots" / task_id / f"{round_id}.json"


def freeze(
    config: Config,
    store: Store,
    task: Task,
    round_id: str,
    *,
    clock: Clock | None = None,
    anyway: bool = False,
    actor: str = "organiser",
) -> tuple[State, bool]:
    """Freeze a round: write its snapshot, then the event with its hash. Returns its state and whether that was new.

    Nobody may register meanwhile, and the caller holds the coordinator's lock. Raises E102 for an unknown
    round; E211 before its date, or while runs that count are not settled (unless ``anyway``).
    """
    from filelock import FileLock

    clock = clock or SystemClock()
    round_ = the_round(task, round_id)
    config.locks.mkdir(parents=True, exist_ok=True)
    with FileLock(config.locks / "register.lock"):
        state = _state(task, store, round_id, clock)
        if state.frozen:
            return state, False
        now = clock.now()
        if not state.due:
            raise RunnerError(
                "E211",
                f"the round {round_id} of {task.id} is not over",
                why=f"It ends at {state.ends.says()}; now it is {_at(now)}.",
                fix="freeze it after that",
            )
        belongs = part(task, round_, store)
        open_ = _unsettled(store, task, belongs, store.archive.live())
        if open_ and not anyway:
            raise RunnerError(
                "E211",
                f"{len(open_)} run{'s' if len(open_) > 1 else ''} of the round {round_id} are not settled",
                why="They were handed in in time and could count.",
                fix=f"runner evaluate --task {task.id}, then freeze again; --anyway freezes without them",
                problems=[Problem(run.id, run.outcome.says) for run in open_],
            )
        data = _snapshot(store, task, round_, belongs, stamp(now), open_)
        text = schemas.canonical(data) + b"\n"
        _write(snapshot_path(config.home, task.id, round_id), text)
        facts = {
            "task": task.id,
            "round": round_id,
            "sha256": hashlib.sha256(text).hexdigest(),
            "frozen": stamp(now),
        }
        store.commit("round-frozen", facts, actor=actor)
        return _state(task, store, round_id, clock), True


def _state(task: Task, store: Store, round_id: str, clock: Clock) -> State:
    return next(s for s in states(task, store, clock) if s.round.id == round_id)


def _unsettled(store: Store, task: Task, belongs: Part, running: Iterable[str]) -> list[Run]:
    """Runs of the round that may still get a score: they wait, run, or are held for the organiser."""
    from runner.store import queries

    return [
        run
        for run in queries.runs(store, [task], task=task.id, running=list(running))
        if run.outcome.name in ("pending", "running", "held") and belongs.takes(run)
    ]


def _snapshot(
    store: Store, task: Task, round_: Round, belongs: Part, now: str, open_: Iterable[Run]
) -> dict[str, Any]:
    from runner.leaderboard.export import as_dict
    from runner.leaderboard.table import frozen_tables
    from runner.store import queries

    tables, used = frozen_tables(store, task, belongs)
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
        "evaluations": queries.evaluation_manifests(store, used),
        "unsettled": sorted(run.id for run in open_),
        "tables": {table.table: as_dict(table) for table in tables},
    }


def _write(path: Path, text: bytes) -> None:
    """Write a snapshot as a whole. One without an event was never acknowledged and is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.chmod(0o444)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def read_snapshot(home: Path, task_id: str, round_id: str, digest: str) -> dict[str, Any]:
    """The snapshot whose SHA-256 is ``digest``. Raises E307 when it is missing or was changed."""
    path = snapshot_path(home, task_id, round_id)
    try:
        if path.stat().st_size > MAX_SNAPSHOT:
            raise _changed(path, "is larger than any snapshot")
        text = path.read_bytes()
    except OSError as error:
        raise _changed(path, f"cannot be read ({error.strerror or error})") from error
    if hashlib.sha256(text).hexdigest() != digest:
        raise _changed(path, "is not what was frozen: its hash does not match the event log")
    data: dict[str, Any] = json.loads(text)
    wrong = schemas.validate(data, "snapshot")
    if wrong:
        raise _changed(path, f"cannot be used by this program: {wrong[0].what}")
    return data


def _changed(path: Path, what: str) -> PlatformError:
    return PlatformError(
        "a frozen round was changed or damaged",
        why=f"{path.parent.name}/{path.name} {what}.",
        fix="restore the folder snapshots/ from a backup",
        code="E307",
    )


def verify(home: Path, events: Iterable[Event]) -> list[Problem]:
    """What is wrong with the snapshots that the event log names."""
    found = []
    for event in events:
        if event.type == "round-frozen":
            d = event.data
            try:
                read_snapshot(home, d["task"], d["round"], d["sha256"])
            except PlatformError as error:
                found.append(Problem(f"snapshots/{d['task']}/{d['round']}.json", error.why, error.fix))
    return found


def board(
    store: Store,
    task: Task,
    round_id: str,
    table_id: str | None,
    audience: Audience,
    *,
    running: Iterable[str] = (),
) -> LeaderboardTable:
    """A table (None: the first) of a round: as it was frozen, or, before that, as it stands now.

    Raises E102 for an unknown round or table, E103 when its scores are not open to ``audience``, E307 when
    the snapshot was changed.
    """
    from runner.leaderboard import table as tables
    from runner.leaderboard.export import from_dict
    from runner.store.queries import frozen_rounds

    mark = frozen_rounds(store, task.id).get(round_id)
    if mark is None:
        belongs = part(task, the_round(task, round_id), store)
        return tables.build(store, task, table_id, audience, running=list(running), part=belongs)
    home = store.archive.root.parent
    frozen = read_snapshot(home, task.id, round_id, mark.digest)
    name = next(iter(frozen["tables"]), "") if table_id is None else table_id
    if name not in frozen["tables"]:
        raise RunnerError(
            "E102",
            f"the round {schemas.show(round_id)} of {task.id} has no table {schemas.show(name)}",
            why=f"Its tables are: {', '.join(frozen['tables']) or 'none'}.",
            fix="name one",
        )
    data = frozen["tables"][name]
    if schemas.validate(data, "leaderboard"):
        raise _changed(snapshot_path(home, task.id, round_id), "holds a table that this program cannot read")
    tables.check_open(store, task, name, [cell["dataset"] for cell in data["cells"]], audience)
    made = from_dict(data, str(audience))
    if audience.kind != "organiser":  # rounds that were frozen by older versions hold exact figures
        made = tables.closed(made, task)
    assert made.round is not None
    return replace(made, round=replace(made.round, frozen=frozen["frozen"]))
