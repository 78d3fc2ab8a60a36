"""Proposals: what discloses or gives power is only asked for on the web, and done by who approves it at the terminal.

A proposal is the event of its request (``request-decided`` of the kind ``propose``); its number is that of the event, which
work gives. What it means is looked up in work's own data when it is made, shown and approved: nobody who holds the front
can have one thing shown and another done, and nothing happens before somebody approves beside work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from runner.model.errors import RunnerError, no_such
from runner.records.review import closed_run, publish, release
from runner.records.store.queries import published, runs
from runner.views.audience import escape
from runner.views.excerpts import STREAMS, hidden_run, lines_of, prepared
from runner.views.text import plural
from runner.work.managing import Managing
from runner.work.members.registrations import Registration

if TYPE_CHECKING:
    from runner.exchange.access import Role
    from runner.model.task import Task
    from runner.records.events import Event

MOST = 50  # that wait at a time
MOST_DECIDED = 500  # that the web still knows
DECIDED = "proposal-decided"
Done = list[str]  # lines for the terminal


@dataclass(frozen=True)
class Proposal:
    """A change that ``account`` proposed with ``request``. ``number`` identifies it.

    ``state`` is waits, approved, rejected, or done: the same was done at the terminal without the proposal.
    """

    number: int
    time: str
    account: str
    asked: Mapping[str, Any]
    state: str = "waits"
    request: str = ""

    @property
    def says(self) -> str:
        """What is asked for, in a few words; every part was checked by work when it was taken."""
        words = [
            str(self.asked[name])
            for name in ("action", "task", "dataset", "run", "stream", "lines", "role", "account")
            if name in self.asked
        ]
        return " ".join(escape(word, 200) for word in words)


# The events by which what was proposed is done, with the facts that the two have in common.
_DONE_BY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "dataset-published": ("publish", ("task", "dataset")),
    "run-released": ("release", ("run", "attempt")),
    "account-added": ("admit", ("account",)),
}


def proposals(events: Iterable[Event]) -> list[Proposal]:
    """All proposals of an event log, oldest first."""
    found: dict[int, Proposal] = {}
    for event in events:
        data = event.data
        if event.type == "request-decided" and data.get("kind") == "propose" and data.get("accepted"):
            found[event.seq] = Proposal(
                event.seq, event.time, data["account"], data["proposal"], request=str(data.get("request", ""))
            )
        elif event.type == DECIDED and data["proposal"] in found:
            state = "approved" if data["approved"] else "rejected"
            found[data["proposal"]] = replace(found[data["proposal"]], state=state)
        elif event.type in _DONE_BY:
            action, facts = _DONE_BY[event.type]
            wanted = {"action": action, **{name: data.get(name) for name in facts}}
            for one in list(found.values()):
                if one.state == "waits" and dict(one.asked) == wanted:
                    found[one.number] = replace(one, state="done")
    return list(found.values())


def waiting(events: Iterable[Event]) -> list[Proposal]:
    """Return the proposals that are still to be decided."""
    return [one for one in proposals(events) if one.state == "waits"]


def decided(events: Iterable[Event]) -> dict[str, str]:
    """Return the states of the newest proposals that do not wait, by request."""
    return {one.request: one.state for one in proposals(events)[-MOST_DECIDED:] if one.state != "waits"}


@dataclass(frozen=True)
class Desk:
    """Where proposals are looked at and decided."""

    managing: Managing
    tasks: Mapping[str, Task]

    def checked(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What is asked for, with what it is about as it is now. Raises RunnerError where it means nothing, E101 where too many wait."""
        if len(waiting(self.managing.store.log)) >= MOST:
            raise RunnerError("E101", f"{MOST} proposals wait", fix="runner requests list, beside work")
        made = {"action": asked["action"], **ACTIONS[asked["action"]].look(self, asked)}
        if any(one.asked == made for one in waiting(self.managing.store.log)):
            raise RunnerError("E101", "the same is proposed already", fix="runner requests list, beside work")
        return made

    def find(self, number: int) -> Proposal:
        """A proposal that waits. Raises E101 and E102."""
        known = {one.number: one for one in proposals(self.managing.store.log)}
        if number not in known:
            raise no_such("proposal", str(number), map(str, known), fix="runner requests list")
        if known[number].state != "waits":
            raise RunnerError(
                "E101", f"proposal {number} was {known[number].state} already", fix="nothing to do"
            )
        return known[number]

    def shown(self, one: Proposal | Registration) -> list[str]:
        """What happens when it is approved, in lines; from work's own data. Raises E101 and E103 where it cannot be approved any more."""
        if isinstance(one, Registration):
            return _admit_says(self, {"account": one.account})
        self._still(one)
        return ACTIONS[one.asked["action"]].says(self, one.asked)

    def approve(self, one: Proposal | Registration) -> Done:
        """Do what was proposed, or let a team in; what is to be printed of it. Raises as :meth:`shown`."""
        if isinstance(one, Registration):
            return _admit_do(self, {"account": one.account})
        self._still(one)
        done = ACTIONS[one.asked["action"]].do(self, one.asked)
        self._decided(one, True)
        return done

    def reject(self, one: Proposal | Registration, reason: str = "") -> None:
        """Have nothing happen; a registration is refused, and erased."""
        if isinstance(one, Registration):
            self.managing.reject(one, reason)
        else:
            self._decided(one, False, reason)

    def _still(self, one: Proposal) -> None:
        """Raise unless who asked may still ask for it, and it means what it meant."""
        account = next((a for a in self.managing.accounts.all() if a.id == one.account), None)
        if account is None or account.closed is not None or account.role != "organiser":
            why = "Its account was closed, or is no organiser's any more."
            raise RunnerError(
                "E103",
                f"who proposed {one.number} may not any more",
                why=why,
                fix=f"runner requests reject {one.number}",
            )
        now = {"action": one.asked["action"], **ACTIONS[one.asked["action"]].look(self, one.asked)}
        if now != one.asked:
            fix = f"runner requests reject {one.number}, and propose it anew"
            raise RunnerError("E101", f"what proposal {one.number} is about has changed since", fix=fix)

    def _decided(self, one: Proposal, approved: bool, reason: str = "") -> None:
        data = {"proposal": one.number, "approved": approved, "reason": escape(reason, 500)}
        self.managing.store.commit(DECIDED, data, actor="organiser")


@dataclass(frozen=True)
class Action:
    """What can be proposed: ``look`` finds what it is about, ``says`` what would happen, ``do`` does it. All raise RunnerError."""

    look: Callable[[Desk, Mapping[str, Any]], dict[str, Any]]
    says: Callable[[Desk, Mapping[str, Any]], list[str]]
    do: Callable[[Desk, Mapping[str, Any]], Done]


def _scores(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    task = desk.tasks.get(str(asked.get("task")))
    dataset = task.datasets.get(str(asked.get("dataset"))) if task else None
    if task is None or dataset is None:
        known = [f"{t.id}/{d}" for t in desk.tasks.values() for d in t.datasets]
        raise no_such("dataset", f"{asked.get('task')}/{asked.get('dataset')}", known, fix="runner task list")
    if dataset.visibility == "public" or dataset.id in published(desk.managing.store, task.id):
        raise RunnerError(
            "E101", f"the scores on {task.id}/{dataset.id} are open already", fix="nothing to do"
        )
    return {"task": task.id, "dataset": dataset.id}


def _scores_says(desk: Desk, asked: Mapping[str, Any]) -> list[str]:
    found = runs(desk.managing.store, desk.tasks.values(), task=asked["task"])
    scored = [one for one in found if one.dataset == asked["dataset"] and one.outcome.ranked]
    teams = {one.submission.team for one in scored}
    return [
        f"The mean scores on {asked['task']}/{asked['dataset']} are opened to everybody,",
        f"as runner publish {asked['task']} {asked['dataset']} does: {plural(len(scored), 'scored run')} of {plural(len(teams), 'team')}.",
    ]


def _scores_do(desk: Desk, asked: Mapping[str, Any]) -> Done:
    publish(desk.managing.store, desk.tasks[asked["task"]], asked["dataset"])
    return []


def _run(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    found = closed_run(desk.managing.store, desk.tasks, str(asked.get("run")))
    if found.released:
        raise RunnerError("E101", f"{found.id} was released already", fix="nothing to do")
    return {"run": found.id, "attempt": found.outcome.attempt}


def _run_says(desk: Desk, asked: Mapping[str, Any]) -> list[str]:
    found = closed_run(desk.managing.store, desk.tasks, asked["run"])
    return [
        f"Attempt {asked['attempt']} of {found.id} is opened to its team {found.submission.team}:",
        "its log, findings with their places, exit code and exact figures.",
        f"Read them first: runner show {found.id}; runner logs {found.id}",
    ]


def _run_do(desk: Desk, asked: Mapping[str, Any]) -> Done:
    found = closed_run(desk.managing.store, desk.tasks, asked["run"])
    release(desk.managing.store, found, "proposed on the web")
    return []


def _log(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked for, without a look into the log: an answer on the web shall say nothing of it."""
    store, stream, lines = desk.managing.store, asked.get("stream", "stderr"), str(asked.get("lines"))
    if stream not in STREAMS:
        raise no_such("stream", str(stream), STREAMS, fix="use stdout or stderr", code="E101")
    lines_of(lines)
    found, _, _, attempt = hidden_run(
        store, desk.tasks, closed_run(store, desk.tasks, str(asked.get("run"))).id
    )
    return {"run": found.run.id, "attempt": attempt, "stream": stream, "lines": lines}


def _log_says(desk: Desk, asked: Mapping[str, Any]) -> list[str]:
    made = prepared(desk.managing.store, desk.tasks, asked["run"], asked["stream"], asked["lines"])
    head = f"These lines of {asked['stream']}, without what stands in the hidden files:"
    return [head, *made.numbered(), made.says("go"), made.left_says()]


def _log_do(desk: Desk, asked: Mapping[str, Any]) -> Done:
    store = desk.managing.store
    prepared(store, desk.tasks, asked["run"], asked["stream"], asked["lines"]).give(store)
    return []


ROLES = ("organiser", "assistant")


def _role(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked.get("role") not in ROLES:
        raise no_such("role", str(asked.get("role")), ROLES, fix=f"use {', '.join(ROLES)}", code="E101")
    return {"role": asked["role"]}


def _role_says(desk: Desk, asked: Mapping[str, Any]) -> list[str]:
    return [
        f"A new account of the role {asked['role']} is made, as runner account add does;",
        "its token is printed here, once, for you to give to whom you mean.",
    ]


def _role_do(desk: Desk, asked: Mapping[str, Any]) -> Done:
    _, token = desk.managing.add(cast("Role", asked["role"]))
    return [str(token)]


def _registration(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    there = {one.account for one in desk.managing.accounts.registrations.waiting()}
    account = str(asked.get("account"))
    if account not in there:
        raise no_such("registration", account, there, fix="runner team waiting")
    return {"account": account}


def _refusal(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**_registration(desk, asked), "reason": escape(str(asked.get("reason", "")), 500)}


def _admit_says(desk: Desk, asked: Mapping[str, Any]) -> list[str]:
    one = desk.managing.accounts.registrations.named(asked["account"])
    said = {"contact": one.contact, "affiliation": one.affiliation, "members": ", ".join(one.members)}
    more = [
        f"  {name}: {escape(text, 500)}" for name, text in {**said, "purpose": one.purpose}.items() if text
    ]
    head = f"The team {escape(one.team, 100)} registered for {one.task}, {one.arrival}, as {one.account}."
    return [head, *more, "It is let in, as runner team approve does."]


def _refuse_says(desk: Desk, asked: Mapping[str, Any]) -> list[str]:
    reason = f" The team is told: {asked['reason']}" if asked["reason"] else ""
    what = f"It is refused, as runner team reject does, and what was said is erased.{reason}"
    return [*_admit_says(desk, asked)[:-1], what]


def _admit_do(desk: Desk, asked: Mapping[str, Any]) -> Done:
    account = desk.managing.admit(desk.managing.accounts.registrations.named(asked["account"]))
    return [f"{account.team} is in; its account is {account.id}"]


def _refuse_do(desk: Desk, asked: Mapping[str, Any]) -> Done:
    desk.managing.reject(desk.managing.accounts.registrations.named(asked["account"]), asked["reason"])
    return []


ACTIONS: Mapping[str, Action] = {
    "admit": Action(_registration, _admit_says, _admit_do),
    "refuse": Action(_refusal, _refuse_says, _refuse_do),
    "publish": Action(_scores, _scores_says, _scores_do),
    "release": Action(_run, _run_says, _run_do),
    "release-log": Action(_log, _log_says, _log_do),
    "role": Action(_role, _role_says, _role_do),
}
