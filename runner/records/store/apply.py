"""How one event changes the store: the only code that writes rows.

What an event's ``data`` holds (and ``request``, where it was done because of one of the web):

=======================  ================================================================================
submission-registered    submission, task, team, software, scenarios, tag, description, paper, affiliation, method, image, workflow,
                         cells (pairs of dataset and scenario; none: all), display_name and team_display_name where
                         the software and the team have one; source (remote, commit, dirty) where git knew its folder; limits that
                         it asks for in the task's frame
display-name-set         team, software (empty: the team itself), display_name (empty: none any more)
texts-cleared            team, submissions (ids): their texts are not shown from now on
submission-withdrawn     submission, reason, and uncharged (true) where its place in the quota was given back
submission-chosen        submission: its team names it as the one that counts
quota-extended           task, team, submissions (how many more)
deadline-extended        task, team, until (a date with its zone), dataset where it is of one, and reason
limits-extended          task, team, wall_clock (seconds) or memory (bytes) or both, reason; the last one of each counts
dataset-paused           task, dataset (empty: the whole task), reason: it takes no submissions, and no run is begun
dataset-resumed          task, dataset, reason
attempt-committed        task, run, attempt, manifest (SHA-256 of manifest.json)
evaluation-committed     task, run, attempt, evaluation, manifest, and proposed (true) where it does not count yet
evaluations-accepted     task, count, evaluations (triples of run, attempt, evaluation), reason: these count from now on
evaluations-discarded    the same facts: these never count
run-cancelled            task, run, submission, dataset, scenario
run-restarted            task, run, submission, dataset, scenario, reason: it is executed once more
dataset-published        task, dataset, and publish_at where it was due by this date
dataset-unpublished      task, dataset, reason: the scores are closed again
key-drawn                task, key: 32 bytes in hexadecimal digits, once for each task
names-opened             task, until: the date by which this was due
run-released             task, run, attempt, reason: its team may see the words and figures of this attempt
run-closed               task, run, attempt: not any more
run-verified             task, run, attempt, same, identical, ended, topics (how many differ), moved (by measure), sample (so many topics; none: all),
                         host (of the cluster; none: the coordinator's machine): what executing it again gave
round-frozen             task, round, sha256 (of the snapshot), frozen
labels-imported          task, dataset, file (name in the truths), sha256 (of that file with them in it), count
run-reviewed             task, run, attempt, state (approved, flagged, or open: neither any more), reason, to (organiser or team)
log-excerpt-released     task, dataset, team, run, attempt, stream, first and last (lines), text, masked (places), bytes, sha256 (of the text)
run-commented            task, run, text, to (organiser or team)
policy-changed           task, policy (its rules), changes (in words; none: noted for the first time), more (how many were too many)
results-exported         task, what, name (of a table, run or dataset), format, audience, sha256
request-decided          request, account, team, kind, arrival, sha256 (of what was sent), accepted, and submission or code and what: no row
proposal-decided         proposal (number of the event that it was taken with), approved, reason: no row
account-added            account (opaque id), role: no row, as of the other events of accounts
token-replaced           account, token (id)
token-added              account, token, by (ids of the new token and of the token or link that asked)
link-made                account, token (id of the link)
account-tied, -untied    account
account-closed, -reopened  account
account-erased           account, member (opaque id) where only one person's data went
loss-accepted            lost (where it was remembered, seq and hash of the event), count
=======================  ================================================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, select

from runner.model.dates import DateError, parse
from runner.model.names import ABOUT
from runner.records.archive import RunArchive
from runner.records.events import TYPES, Event
from runner.records.snapshot import read_snapshot
from runner.records.split import KEY_BYTES
from runner.records.store import tables as t
from runner.records.store.evaluated import (
    UNREADABLE,
    WRONG,
    evaluation_of,
    insert_evaluations,
    insert_rows,
    rows_of,
    settle_evaluations,
)
from runner.records.store.rows import (
    clear_texts,
    contradiction,
    ensure_runs,
    insert,
    insert_attempts,
    remove,
)


def apply(connection: Connection, event: Event, archive: RunArchive) -> None:
    """Apply one event to the store.

    Args:
        connection: In the caller's transaction; nothing is committed here.
        event: The event; those before it must have been applied.
        archive: Holds what the event names.

    Raises:
        PlatformError: E307, when log and archive contradict each other.
    """
    if (rule := _RULES.get(event.type)) is None:
        raise contradiction(
            event, "this version of runner knows no such events; a newer one may have written it"
        )
    try:
        rule(connection, event, archive)
    except KeyError as error:
        raise contradiction(event, f"{error} is missing in its data, or in files that it names") from error
    except (*WRONG, AttributeError) as error:
        raise contradiction(event, f"its data cannot be used: {type(error).__name__}: {error}") from error


def apply_all(connection: Connection, events: Sequence[Event], archive: RunArchive) -> None:
    """As :func:`apply` of each in turn; attempts and evaluations, which come from hosts many at a time, are written together."""
    ways = {"attempt-committed": insert_attempts, "evaluation-committed": insert_evaluations}
    alone = list[Event]()
    if any(event.type not in ways for event in events):
        ways, alone = {}, [*events]
    for type, insert_all in ways.items():
        some = [event for event in events if event.type == type]
        if len(some) < 2 or not _inserted(insert_all, connection, some, archive):
            alone += some
    for event in alone:
        apply(connection, event, archive)


def _inserted(
    insert_all: Callable[[Connection, Sequence[Event], RunArchive], None],
    connection: Connection,
    events: Sequence[Event],
    archive: RunArchive,
) -> bool:
    """Whether the rows of events could be written together; none is where not."""
    try:
        with connection.begin_nested():
            insert_all(connection, events, archive)
    except UNREADABLE:
        return False
    return True


def _registered(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    image = d.get("image")
    insert(
        connection,
        t.submissions,
        event,
        *("task", "team", "software"),
        id=d["submission"],
        scenarios=json.dumps(list(d.get("scenarios") or ["default"])),
        tag=d.get("tag") or "",
        description=d.get("description") or "",
        **{key: d.get(key) or "" for key in ABOUT},
        method=d.get("method") or "automatic",
        image=image.get("id") if isinstance(image, dict) else image,
        # Events of before there were uploads beside software say neither.
        workflow=d.get("workflow") or ("batch" if image else "upload"),
        source=json.dumps(d["source"], sort_keys=True) if isinstance(d.get("source"), dict) else None,
        cells=None if d.get("cells") is None else json.dumps([list(pair) for pair in d["cells"]]),
        limits=json.dumps(d["limits"]) if d.get("limits") else None,
        # When it was handed in; taking in a large image after that may last.
        registered=d.get("received") or event.time,
    )
    for software, key in ((d["software"], "display_name"), ("", "team_display_name")):
        if key in d:
            _show_as(connection, event, software, d[key])


def _named(connection: Connection, event: Event, _: RunArchive) -> None:
    _show_as(connection, event, str(event.data.get("software") or ""), event.data["display_name"])


def _show_as(connection: Connection, event: Event, software: str, text: Any) -> None:
    """Store the display name of a software of the event's team, or of the team itself (empty); the latest one counts."""
    c, team = t.display_names.c, event.data["team"]
    connection.execute(t.display_names.delete().where(c.team == team, c.software == software))
    if text:
        insert(connection, t.display_names, event, "team", software=software, display_name=str(text))


def _withdrawn(connection: Connection, event: Event, _: RunArchive) -> None:
    reason, uncharged = str(event.data.get("reason") or ""), event.data.get("uncharged") is True
    change = t.submissions.update().where(t.submissions.c.id == event.data["submission"])
    done = connection.execute(
        change.values(withdrawn=event.time, withdrawn_reason=reason, uncharged=uncharged)
    )
    if done.rowcount != 1:
        raise contradiction(event, "it withdraws a submission that was never registered")


def _chosen(connection: Connection, event: Event, _: RunArchive) -> None:
    there = select(t.submissions.c.id).where(t.submissions.c.id == event.data["submission"])
    if connection.execute(there).first() is None:
        raise contradiction(event, "it names a submission that was never registered")
    insert(connection, t.choices, event, "submission", at=event.time)


def _extended(connection: Connection, event: Event, _: RunArchive) -> None:
    insert(connection, t.extensions, event, "task", "team", submissions=int(event.data["submissions"]))


def _deadline(connection: Connection, event: Event, _: RunArchive) -> None:
    try:
        parse(event.data["until"])
    except (DateError, AttributeError) as error:
        raise contradiction(event, f"its date cannot be read: {error}") from error
    dataset = str(event.data.get("dataset") or "")
    insert(connection, t.deadlines, event, "task", "team", "until", dataset=dataset)


def _limits(connection: Connection, event: Event, _: RunArchive) -> None:
    d = event.data
    if not d.keys() & {"wall_clock", "memory"}:
        raise KeyError("wall_clock or memory")
    granted = {"wall_clock": float(d["wall_clock"])} if "wall_clock" in d else {}
    granted |= {"memory": int(d["memory"])} if "memory" in d else {}
    insert(connection, t.team_limits, event, "task", "team", **granted)


def _paused(connection: Connection, event: Event, _: RunArchive) -> None:
    remove(connection, t.pauses, event, "task", "dataset")
    insert(connection, t.pauses, event, "task", "dataset", reason=str(event.data.get("reason") or ""))


def _resumed(connection: Connection, event: Event, _: RunArchive) -> None:
    if not remove(connection, t.pauses, event, "task", "dataset"):
        raise contradiction(event, "it resumes what was not paused")


def _published(connection: Connection, event: Event, _: RunArchive) -> None:
    _take_down(connection, event)
    insert(connection, t.publications, event, "task", "dataset", since=event.time, open=True)


def _unpublished(connection: Connection, event: Event, _: RunArchive) -> None:
    if not _take_down(connection, event):
        raise contradiction(event, "it closes scores that were not open")
    insert(connection, t.publications, event, "task", "dataset", since=event.time, open=False)


def _take_down(connection: Connection, event: Event) -> bool:
    """Remove what was decided about the scores of a dataset before; returns whether they were open."""
    c, d = t.publications.c, event.data
    here = (c.task == d["task"], c.dataset == d["dataset"])
    was_open = connection.execute(select(c.open).where(*here)).scalar() is True
    connection.execute(t.publications.delete().where(*here))
    return was_open


def _key(connection: Connection, event: Event, _: RunArchive) -> None:
    if len(bytes.fromhex(event.data["key"])) != KEY_BYTES:
        raise contradiction(event, "its key has another length")
    insert(connection, t.keys, event, "task", "key")


def _names(connection: Connection, event: Event, _: RunArchive) -> None:
    insert(connection, t.opened_names, event, "task")


def _commanded(connection: Connection, event: Event, _: RunArchive) -> None:
    """Note the event by which a run was last cancelled, or restarted."""
    d, column = event.data, f"{event.type.removeprefix('run-')}_seq"
    ensure_runs(connection, {d["run"]: {name: d[name] for name in ("submission", *_PLACE)}})
    connection.execute(t.runs.update().where(t.runs.c.id == d["run"]).values({column: event.seq}))


_PLACE = ("task", "dataset", "scenario")


def _released(connection: Connection, event: Event, _: RunArchive) -> None:
    remove(connection, t.releases, event, "run", "attempt")
    insert(connection, t.releases, event, "run", "attempt")


def _closed(connection: Connection, event: Event, _: RunArchive) -> None:
    if not remove(connection, t.releases, event, "run", "attempt"):
        raise contradiction(event, "it closes an attempt that was never released")


def _attempt(connection: Connection, event: Event, archive: RunArchive) -> None:
    insert_attempts(connection, [event], archive)


def _evaluation(connection: Connection, event: Event, archive: RunArchive) -> None:
    evaluation, record = evaluation_of(event, archive)
    if record["status"] != "error":
        try:
            with connection.begin_nested():
                insert_rows(connection, [rows_of(event, evaluation, record)])
            return
        except UNREADABLE as error:
            # Checked before it was committed; a result that still cannot be read is the evaluator's error,
            # never a reason for the store to stand still.
            why = f"the evaluator's result cannot be read ({type(error).__name__})"
            record = {**record, "status": "error", "message": why, "exit": {"code": 0}}
    insert_rows(connection, [rows_of(event, evaluation, record)])


def _settled(connection: Connection, event: Event, _: RunArchive) -> None:
    accepted = event.type == "evaluations-accepted"
    if not settle_evaluations(connection, event.data["evaluations"], accepted=accepted):
        raise contradiction(
            event, "it names an evaluation that was never committed, or does not wait any more"
        )


def _frozen(connection: Connection, event: Event, archive: RunArchive) -> None:
    """The round's file (``snapshots/`` beside the archive) must be the one that was frozen."""
    d = event.data
    read_snapshot(archive.root.parent, d["task"], d["round"], d["sha256"])
    insert(connection, t.rounds, event, "task", "round", "frozen", digest=d["sha256"])


def _labels(_: Connection, event: Event, __: RunArchive) -> None:
    """Labels lie in the truths and reach the store through evaluations; the log keeps when they came, and which."""
    if not {"task", "dataset", "file", "sha256", "count"} <= event.data.keys():
        raise KeyError("the facts of an import")


def _verified(connection: Connection, event: Event, _: RunArchive) -> None:
    """What executing an attempt again gave; the latest counts. That some topics are the same says nothing of the others."""
    d = event.data
    if "sample" in d and d["same"] is True:
        return
    remove(connection, t.verifications, event, "run", "attempt")
    insert(connection, t.verifications, event, "run", "attempt", same=d["same"] is True)


def _reviewed(connection: Connection, event: Event, _: RunArchive) -> None:
    remove(connection, t.reviews, event, "run", "attempt")
    if event.data["state"] != "open":
        insert(connection, t.reviews, event, "run", "attempt", "state", "reason", "to")


def _excerpt(connection: Connection, event: Event, _: RunArchive) -> None:
    text = event.data["text"].encode()
    if (len(text), hashlib.sha256(text).hexdigest()) != (event.data["bytes"], event.data["sha256"]):
        raise contradiction(event, "its text is not the one that its digest names")
    columns = [column.name for column in t.excerpts.columns if column.name != "seq"]
    insert(connection, t.excerpts, event, *columns)


def _commented(connection: Connection, event: Event, _: RunArchive) -> None:
    who = event.person.name if event.person else event.actor
    insert(connection, t.comments, event, "run", "text", "to", at=event.time, who=who)


def _policy(connection: Connection, event: Event, _: RunArchive) -> None:
    remove(connection, t.policies, event, "task")
    insert(connection, t.policies, event, "task", policy=json.dumps(event.data["policy"], sort_keys=True))


def _exported(connection: Connection, event: Event, _: RunArchive) -> None:
    keys = {k: event.data[k] for k in ("task", "what", "name", "format", "audience")}
    keys["person"] = event.person.name if event.person else ""
    connection.execute(t.exports.delete().where(*(t.exports.c[k] == value for k, value in keys.items())))
    insert(connection, t.exports, event, "sha256", **keys)


def _loss(_: Connection, event: Event, __: RunArchive) -> None:
    """Nothing to store: the log keeps that a part of it was given up, and :mod:`runner.records.store.history` reads it there."""
    if not {"lost", "count"} <= event.data.keys():
        raise KeyError("what was lost")


_NO_ROWS = ("request-", "proposal-", "account-", "token-", "link-")
_RULES: dict[str, Callable[[Connection, Event, RunArchive], None]] = {
    "submission-registered": _registered,
    "texts-cleared": clear_texts,
    "submission-withdrawn": _withdrawn,
    "submission-chosen": _chosen,
    "display-name-set": _named,
    "quota-extended": _extended,
    "deadline-extended": _deadline,
    "limits-extended": _limits,
    "dataset-paused": _paused,
    "dataset-resumed": _resumed,
    "attempt-committed": _attempt,
    "evaluation-committed": _evaluation,
    "evaluations-accepted": _settled,
    "evaluations-discarded": _settled,
    "run-cancelled": _commanded,
    "run-restarted": _commanded,
    "dataset-published": _published,
    "dataset-unpublished": _unpublished,
    "key-drawn": _key,
    "names-opened": _names,
    "run-released": _released,
    "run-closed": _closed,
    "run-verified": _verified,
    "round-frozen": _frozen,
    "labels-imported": _labels,
    "run-reviewed": _reviewed,
    "run-commented": _commented,
    "log-excerpt-released": _excerpt,
    "policy-changed": _policy,
    "results-exported": _exported,
    # Work asks the log for them, and the accounts are a record of their own.
    **dict.fromkeys((t for t in TYPES if t.startswith(_NO_ROWS)), lambda *_: None),
    "loss-accepted": _loss,
}
