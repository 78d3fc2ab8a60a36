"""Requests decided: each once, by work's own accounts and the rules that hold at the terminal.

The steps of a decision, in this order: take (copied and hashed), right and proof, do it, **event**, answer, remove. Done
things are done by functions that change nothing when they are called again with the same (registering is by the bundle's
hash), and the event ``request-decided`` names the request: killed after any step, work repeats what it has to and charges
nothing twice. What is not proven leaves no event: who took the front over shall not be able to fill the log. What fails on
our side (disk, engine, the organiser's files) is not decided: the request waits, and is tried again.

A kind of request is a row of :data:`runner.work.handlers.HANDLERS`.
"""

from __future__ import annotations

import math
import shutil
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import Engine
from runner.exchange.inbox import MAX_PARCEL, MAX_PAYLOAD, Inbox, Refused, Request, Taken, answer, answered
from runner.exchange.receipts import SAME, Signer
from runner.exchange.security import SecurityLog
from runner.model.clock import Clock, FixedClock, SystemClock, stamp
from runner.model.config import Config
from runner.model.errors import FAILED, USAGE, RunnerError
from runner.model.task import Task
from runner.records.store.connect import Store, open_store
from runner.work.arrivals import Arrivals, difference
from runner.work.checks import Checks, Later, Slot
from runner.work.handlers import HANDLERS
from runner.work.handlers.wish import NotGood, Wish
from runner.work.members.accounts import Accounts
from runner.work.members.tokens import Account
from runner.work.news import Told
from schemas.files import scratch_folder

AGAIN = 60.0  # seconds until a request that could not be decided is tried again
AT_ONCE = 2.0  # seconds that one round may take, apart from the request that it is at
LOOKED_AT = 10_000  # requests of which it is kept when they were seen first
DAY = 86_400.0  # seconds
STRANGERS = (
    1000  # requests a day, of each kind, of people without an account: they cost an answer, or an account
)
TOLD = 10  # times as many are told when to come again; of more than that nothing is kept
LINES = 20  # lines a minute about what is no request
SET_BACK = timedelta(minutes=1)  # by which a clock may go back, as clocks that are corrected do
EVENT = "request-decided"
SCRATCH = "request"
_TOLD = ("accepted", "submission", "runs", "code")  # of a decision, to the team and in the event


@dataclass
class Requests:
    """The inbox of a data directory and what was decided of it. ``say`` takes lines for the log, ``checks`` looks at run files,
    ``signer`` signs what was decided; ``brought`` says that the front is on another machine. What is slow is done in ``slot`` (None: at once), on ``engine``."""

    config: Config
    store: Store
    accounts: Accounts
    say: Any = print
    clock: Clock = field(default_factory=SystemClock)
    checks: Checks | None = None
    signer: Signer | None = None
    brought: bool = False
    slot: Slot | None = None
    engine: Callable[[], Engine] | None = None
    strangers: int = STRANGERS
    told: Told | None = None
    taken_away: int = 0  # decisions that took something away
    _decided: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _later: dict[str, float] = field(default_factory=dict)
    _parked: dict[str, str] = field(default_factory=dict)  # by id whose they are: they wait for a check
    _minute: int = 0
    _refused: int = 0
    # Strangers in the last day by the kind of their request, and those of them who were told to come again.
    _came: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _told: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.config.inbox)
        self._arrivals = Arrivals(self.config.home, lambda: self.clock.now(), brought=self.brought)
        for left in self.config.home.glob(f".{SCRATCH}-*"):  # work was killed
            shutil.rmtree(left, ignore_errors=True)
        self._decided = {str(e.data["request"]): e.data for e in self.store.log if e.type == EVENT}

    def round(self, tasks: Mapping[str, Task]) -> int:
        """Decide what waits, in order, for :data:`AT_ONCE` seconds; returns how many requests were accepted.

        Raises OSError when nothing can be kept.
        """
        if (back := self._arrivals.set_back()) > SET_BACK:
            self.say(
                f"the clock of this machine was set back by {back.total_seconds():,.0f} s: dates and arrivals follow it as it is now"
            )
        self._arrivals.look([identity for _, identity in self.inbox.waiting(LOOKED_AT)])
        accepted, begun, waiting = 0, time.monotonic(), self._in_turn()
        there = {identity for _, identity in waiting}
        self._later = {one: due for one, due in self._later.items() if one in there}
        for name, identity in waiting:
            if time.monotonic() - begun > AT_ONCE:
                break
            if self._later.get(identity, 0.0) > time.monotonic():
                continue
            try:
                if identity in self._decided:
                    self._answer_again(identity)
                else:
                    accepted += self._decide(name, tasks)
            except Later:
                continue
            except Refused as refused:
                self._refuse(identity, refused)
            except Exception as error:  # noqa: BLE001  (a request's border: ours, it waits, and stops no other)
                self._later[identity] = time.monotonic() + AGAIN
                self.say(f"request {identity} waits: {_ours(error)}")
                continue
            if not self.inbox.remove(name):
                self._later[identity] = math.inf
            self._parked.pop(identity, None)
        return accepted

    def _refuse(self, identity: str, why: Refused) -> None:
        """Say what was no request; not without end, whatever the front does."""
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            if self._refused > LINES:
                self.say(f"{self._refused - LINES} more were none")
            self._minute, self._refused = minute, 0
        self._refused += 1
        if self._refused <= LINES:
            self.say(f"request {identity} is none: {why}")
            SecurityLog(self.config.home).note("request refused", request=identity, why=str(why))

    def _in_turn(self) -> list[tuple[str, str]]:
        """What waits, in order; of files that wait for a check the teams take turns, and none is copied while one is looked at."""
        waiting, checks = self.inbox.waiting(), self.checks
        if checks is None:
            return waiting
        if checks.busy:
            return [one for one in waiting if one[1] not in self._parked]
        return sorted(waiting, key=lambda one: checks.served[self._parked.get(one[1], "")])

    def _decide(self, name: str, tasks: Mapping[str, Task]) -> bool:
        """Decide one request; whether it was accepted. Raises Refused for what is none, RunnerError for what waits."""
        if self.slot is not None and HANDLERS[(request := self.inbox.read(name)).kind].slow:
            return self._beside(self.slot, name, request, tasks)
        with scratch_folder(self.config.home, SCRATCH) as scratch:
            taken = self.inbox.take(name, scratch / "request", allow=self._allowed)
            request, account = taken.request, self._allowed(taken.request)
            handler, arrival = HANDLERS[request.kind], self._arrived(request)
            if handler.strangers and self._had_stranger(request):
                return False
            wish = self._wish(self.store, taken, account, arrival, tasks, scratch)
            try:
                return self._said(request, account, arrival, lambda: handler.do(wish))
            except Later:
                self._parked[request.id] = account.team or ""
                raise

    def _had_stranger(self, request: Request) -> bool:
        """Whether a stranger's request is answered: before, or now since too many of its kind came in a day. Raises Refused far beyond that: whoever has
        the front, or many addresses, shall fill neither disk nor log, and hold no team up."""
        if answered(self.config.published, request.id) is not None:
            return True
        now, came, told = time.monotonic(), self._came[request.kind], self._told[request.kind]
        for one in (came, told):
            while one and now - one[0] > DAY:
                one.popleft()
        if len(came) < self.strangers:
            came.append(now)
            return False
        if len(told) >= TOLD * self.strangers:
            raise Refused("too many people without an account asked for something in a day")
        told.append(now)
        again = stamp(self.clock.now() + timedelta(seconds=DAY - (now - came[0]) + 1))
        did = "registered" if request.kind == "register" else "signed in by a provider"
        what = f"so many people {did} today that no more are heard"
        refusal = RunnerError("E106", what, fix=f"come again after {again}")
        self._note(request, self._arrived(request), {"accepted": False, **_words(refusal)})
        return True

    def _beside(self, slot: Slot, name: str, request: Request, tasks: Mapping[str, Task]) -> bool:
        """The same for what takes long: in the slot, with a store of its own; what the proof was of is what is done."""
        account, arrival = self._allowed(request), self._arrived(request)
        handler = HANDLERS[request.kind]

        def job() -> Mapping[str, Any]:
            with scratch_folder(self.config.home, SCRATCH) as scratch, open_store(self.config) as store:
                store.fenced_as(self.store)
                payload = self.inbox.payload(name, request, scratch / "request", most=_most(request))
                wish = self._wish(store, Taken(request, payload), account, arrival, tasks, scratch)
                return handler.do(wish)

        return self._said(
            request, account, arrival, lambda: slot.of(request.id, job), had=slot.has(request.id)
        )

    def _said(
        self,
        request: Request,
        account: Account,
        arrival: datetime,
        do: Callable[[], Mapping[str, Any]],
        *,
        had: bool = False,
    ) -> bool:
        """Do what is asked for where the right is there (``had``: it was when this began), and note what became of it."""
        scope = HANDLERS[request.kind].scope
        try:
            if scope is not None and not had:
                self.accounts.tokens.check(account, request.token, scope, arrival)
            said: dict[str, Any] = {"accepted": True, **do()}
        except RunnerError as error:
            if error.exit_code not in (FAILED, USAGE):
                raise
            said = {"accepted": False, **_words(error)}
            if error.code == "E103":
                refused = {"account": account.id, "token": request.token}
                SecurityLog(self.config.home).note("request refused", request=request.id, **refused)
        self.taken_away += bool(said["accepted"] and HANDLERS[request.kind].takes_away)
        self._note(request, arrival, said)
        return bool(said["accepted"])

    def _arrived(self, request: Request) -> datetime:
        """When a request came, as it counts."""
        arrival = self._arrivals.counts(request.id, request.arrival, schemas.digest(request.signed))
        if told := difference(arrival, request.arrival):
            self.say(f"request {request.id} arrived {stamp(arrival)}: {told}")
        return arrival

    def _allowed(self, request: Request) -> Account:
        """Whose request it is; of strangers the account that they want to have. Raises Refused for what is not proven."""
        known = self.accounts.known(request.account, request.token)
        if HANDLERS[request.kind].strangers:
            wanted = Account(request.account, "team", None, request.arrival, None, ())
            known = wanted, str(request.data.get("key"))
        if known is None or not request.is_proven(known[1]) or request.team != known[0].team:
            raise Refused("nobody with that token made it")
        return known[0]

    def _wish(
        self,
        store: Store,
        taken: Taken,
        account: Account,
        arrival: datetime,
        tasks: Mapping[str, Task],
        scratch: Path,
    ) -> Wish:
        clock = FixedClock(arrival)
        return Wish(
            self.config,
            store,
            tasks,
            account,
            taken.request.data,
            taken.payload,
            clock,
            scratch,
            self.accounts,
            taken.request.token,
            taken.request.id,
            taken.request.sha256,
            self.checks,
            self.engine,
            self.told,
        )

    def _note(self, request: Request, arrival: datetime, said: Mapping[str, Any]) -> None:
        if HANDLERS[request.kind].strangers:
            about = {"team": None, "kind": request.kind, "arrival": stamp(arrival), "sha256": request.sha256}
            answer(self.config.published, request.id, {**about, **said})
            return
        task = request.data.get("task")
        facts = {
            "request": request.id,
            **{name: getattr(request, name) for name in ("account", "team", "kind", "sha256", "size")},
            "task": task if isinstance(task, str) else None,
            "arrival": stamp(arrival),
            "said": request.arrival,
            "decided": stamp(self.clock.now()),
            **{name: said[name] for name in (*_TOLD, "what", "proposal") if name in said},
        }
        self.accounts.uses.note(request.token, stamp(arrival))
        self.store.commit(EVENT, facts, actor=request.team or "runner")
        self._decided[request.id] = facts
        self._answer(facts, said)

    def _answer(self, facts: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        """Write an answer with the signed decision."""
        about = {name: facts[name] for name in ("team", "kind", "arrival", "sha256")}
        signed: dict[str, Any] = {}
        if facts.get("said", facts["arrival"]) != facts["arrival"]:
            signed["said"] = facts["said"]
        if self.signer is not None and "decided" in facts:  # older events do not say when
            statement = {
                name: facts[name] for name in (*SAME, "said", "arrival", "decided", *_TOLD) if name in facts
            }
            signed["receipt"] = self.signer.sign("decision", statement)
        answer(self.config.published, str(facts["request"]), {**about, **said, **signed})

    def _answer_again(self, identity: str) -> None:
        """Write the answer of a request whose event is there; killed before, work had not."""
        if answered(self.config.published, identity) is None:
            facts = self._decided[identity]
            self._answer(facts, {name: facts[name] for name in (*_TOLD, "what") if name in facts})


def _ours(error: Exception) -> str:
    """In words what failed on our side."""
    if isinstance(error, RunnerError):
        return f"{error.code} {error.what}"
    return str(error) if isinstance(error, OSError) else f"an error of this program, {type(error).__name__}"


def _words(error: RunnerError) -> dict[str, Any]:
    """An error for its answer: what, why, fix, and every problem in a line, without places in files that only we have written."""
    return {
        "code": error.code,
        "what": error.what[:500],
        "why": error.why,
        "fix": error.fix,
        "problems": error.lines(),
        **(error.more if isinstance(error, NotGood) else {}),
    }


def _most(request: Request) -> int:
    """Bytes that the payload of a request may have."""
    return MAX_PARCEL if HANDLERS[request.kind].slow else MAX_PAYLOAD
