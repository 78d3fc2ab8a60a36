"""The event log in plain words, for the organiser: who did what, about which task and team."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from string import Formatter
from typing import TYPE_CHECKING, Any

from runner.model.errors import no_such
from runner.records.events import COORDINATOR, TYPES
from runner.views.audience import escape

if TYPE_CHECKING:
    from runner.records.events import Event

# What happened, by the type of the event: parts with the fields of its data. A part of which a field is empty is left out.
_SAYS: Mapping[str, tuple[str, ...]] = {
    "submission-registered": ("{submission} was registered for {task}", " (tag {tag})"),
    "submission-withdrawn": ("{submission} was withdrawn", ", free of charge{uncharged}"),
    "submission-chosen": ("{submission} was chosen to count",),
    "display-name-set": ("{team}", "/{software}", " is shown as {display_name}"),
    "texts-cleared": ("texts of {team} were cleared",),
    "quota-extended": ("{team} may hand in {submissions} more for {task}",),
    "deadline-extended": ("{team} may hand in until {until} for {task}", "/{dataset}"),
    "limits-extended": ("{team} has other limits for {task}", ", {wall_clock} s", ", {memory} bytes"),
    "dataset-paused": ("{task}", "/{dataset}", " was paused"),
    "dataset-resumed": ("{task}", "/{dataset}", " was resumed"),
    "attempt-committed": ("{run} was executed, attempt {attempt}",),
    "evaluation-committed": (
        "{run} was evaluated, attempt {attempt}, evaluation {evaluation}",
        ", which waits to be accepted{proposed}",
    ),
    "evaluations-discarded": ("{count} new evaluations of {task} were discarded",),
    "evaluations-accepted": ("{count} new evaluations of {task} were accepted, and count",),
    "run-cancelled": ("{run} was cancelled",),
    "run-restarted": ("{run} is to be executed again",),
    "dataset-published": ("scores on {task}/{dataset} were opened", ", due {publish_at}"),
    "dataset-unpublished": ("scores on {task}/{dataset} were closed",),
    "key-drawn": ("the key of {task} was drawn, by which topics are split and names made up",),
    "names-opened": ("the names of the teams of {task} are shown", ", due {until}"),
    "run-released": ("{run} was opened to its team", ", attempt {attempt}"),
    "run-closed": ("{run} was closed to its team again", ", attempt {attempt}"),
    "run-verified": (
        "{run} was executed again",
        ", on {sample} topics",
        ", at the host {host}",
        ", and was the same{same}",
        ", {topics} topics differ",
    ),
    "round-frozen": ("the round {round} of {task} was frozen", ", SHA-256 {sha256}"),
    "labels-imported": ("{count} labels went into {file} of {task}/{dataset}", ", SHA-256 {sha256}"),
    "run-reviewed": ("{run} was reviewed: {state}", ", attempt {attempt}"),
    "log-excerpt-released": (
        "{bytes} bytes of {run} went to its team: lines {first} to {last} of {stream}",
        ", SHA-256 {sha256}",
    ),
    "run-commented": ("{run} was commented for the {to}", ": {text}"),
    "policy-changed": ("rules of {task}", ": {changes}", " and {more} more"),
    "results-exported": (
        "{what} {name}",
        " of {task}",
        " went out as {format} for {audience}",
        ", SHA-256 {sha256}",
    ),
    "request-decided": (
        "request {request} ({kind}) of {team} was decided",
        ": it is {submission}",
        ": refused, {code}: {what}",
    ),
    "proposal-decided": ("proposal {proposal} was decided", ": approved and done{approved}"),
    "account-added": ("the account {account} was made", ", as {role}"),
    "token-replaced": ("the account {account} was given a new token, {token}",),
    "token-added": ("the account {account} has a new token, {token}, asked for with {by}",),
    "link-made": ("a one-time link, {token}, was made for the account {account}",),
    "account-tied": ("somebody may sign in at a provider for the account {account}",),
    "account-untied": ("nobody signs in at a provider for the account {account} any more",),
    "account-closed": ("the account {account} was closed",),
    "account-reopened": ("the account {account} was opened again",),
    "account-erased": ("what was known of {account} was erased", ": of its member {member}"),
    "loss-accepted": ("{count} lost parts of this log were given up",),
}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ROLES = {COORDINATOR: "the platform"}


@dataclass(frozen=True)
class Told:
    """An event in words. ``who``, ``says`` and the names are escaped; ``task`` and ``team`` are empty where it has none."""

    event: Event
    task: str
    team: str

    @property
    def who(self) -> str:
        """The person who gave the command; the role where none was noted."""
        if self.event.person is not None:
            return escape(self.event.person, 100)
        return _ROLES.get(self.event.actor) or escape(self.event.actor, 100)

    @property
    def says(self) -> str:
        """What happened."""
        data = self.event.data
        if self.event.type == "policy-changed" and not data.get("changes"):
            return f"rules of {escape(self.task, 80)} were noted for the first time"
        parts = _SAYS.get(self.event.type, (TYPES.get(self.event.type, escape(self.event.type, 80)),))
        words = "".join(_filled(parts, data))
        return f"{words}: {escape(data['reason'], 300)}" if data.get("reason") else words

    def as_dict(self) -> dict[str, Any]:
        """The event as it is in the log but for a key, with ``says``, ``task`` and ``team`` beside it."""
        whole = self.event.as_dict()
        return {
            **whole,
            **({"data": {**whole["data"], "key": "…"}} if "key" in whole["data"] else {}),
            "who": self.who,
            "says": self.says,
            "task": self.task,
            "team": self.team,
        }


def _filled(parts: Iterable[str], data: Mapping[str, Any]) -> Iterator[str]:
    for part in parts:
        names = [name for _, name, _, _ in Formatter().parse(part) if name]
        if all(data.get(name) not in (None, "", False) for name in names):
            yield part.format_map({name: _worded(data[name]) for name in names})


def _worded(value: Any) -> str:
    """A field in words: what is only true says nothing beside its part, of a list every one, of a SHA-256 the beginning."""
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return f"{value[:12]}…"
    if isinstance(value, list):
        return "; ".join(escape(one, 300) for one in value)
    return "" if value is True else escape(value, 200)


def told(
    events: Iterable[Event],
    *,
    task: str | None = None,
    team: str | None = None,
    kind: str | None = None,
    since: datetime | None = None,
    actor: str | None = None,
) -> list[Told]:
    """The events that fit, oldest first.

    Args:
        events: All of the log: what an event is about may stand in one before it.
        task: Only what is about this task.
        team: Only what is about this team or its submissions.
        kind: Only this type.
        since: Only what was done then or later.
        actor: Only what this person did, or this role where no person was noted.

    Raises:
        RunnerError: E101 for a type that there is not.
    """
    if kind is not None and kind not in TYPES:
        raise no_such("kind of event", kind, TYPES, fix=f"use one of {', '.join(TYPES)}", code="E101")
    about: dict[str, tuple[str, str]] = {}
    found = []
    for event in events:
        one = Told(event, *_about(event, about))
        asked = ((task, one.task), (team, one.team), (kind, event.type), (actor, _name(event)))
        early = since is not None and datetime.fromisoformat(event.time) < since
        if not early and all(wanted in (None, there) for wanted, there in asked):
            found.append(one)
    return found


def _name(event: Event) -> str:
    return event.actor if event.person is None else event.person.name


def _about(event: Event, known: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """Task and team that an event is about; what is ``known`` of submissions grows with their registrations."""
    data = {name: text for name, text in event.data.items() if isinstance(text, str)}
    if event.type == "submission-registered":
        known[data.get("submission", "")] = data.get("task", ""), data.get("team", "")
    run = data.get("run", "").split(".")
    ids = (data.get("submission", ""), *(".".join(run[:n]) for n in range(len(run), 0, -1)))
    task, team = next((known[id] for id in ids if id in known), ("", ""))
    return data.get("task", task), data.get("team", team)
