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
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import schemas
from runner.engines.base import Engine
from runner.exchange.inbox import MAX_PARCEL, MAX_PAYLOAD, Inbox, Refused, Request, answer, answered
from runner.exchange.receipts import SAME, Signer
from runner.exchange.security import SecurityLog
from runner.model.clock import Clock, FixedClock, SystemClock, stamp
from runner.model.config import Config
from runner.model.errors import FAILED, USAGE, RunnerError
from runner.model.task import Task
from runner.records.store.connect import Store, open_store
from runner.work.arrivals import Arrivals, difference, moment
from runner.work.checks import Checks, Later, Slot
from runner.work.daily_limits import DailyLimits
from runner.work.handlers import HANDLERS, check_data
from runner.work.handlers.wish import NotGood, Wish
from runner.work.members.accounts import Accounts
from runner.work.members.tokens import Account
from runner.work.news import Told
from runner.work.pending import INTERNAL, PendingRequests
from schemas.files import scratch_folder

AT_ONCE = 2.0  # seconds that one round may take, apart from the request that it is at
LOOKED_AT = 10_000  # requests of which it is kept when they were seen first
LINES = 20  # lines a minute about requests
CLEANING_SECONDS = 10.0  # between two deletions of refused folders
MAX_CLEANING_SECONDS = 0.5  # of one deletion
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
    limits: DailyLimits = field(default_factory=DailyLimits)
    told: Told | None = None
    taken_away: int = 0  # decisions that took something away
    _decided: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _pending: PendingRequests = field(default_factory=PendingRequests)
    _cleaned: float = -math.inf
    _minute: int = 0
    _lines: int = 0  # in this minute

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.config.inbox)
        self._arrivals = Arrivals(self.config.home, lambda: self.clock.now(), brought=self.brought)
        for left in self.config.home.glob(f".{SCRATCH}-*"):  # work was killed
            shutil.rmtree(left, ignore_errors=True)
        self._decided = {str(e.data["request"]): e.data for e in self.store.log if e.type == EVENT}
        self._count_last_day()

    def round(self, tasks: Mapping[str, Task]) -> int:
        """Decide what waits, in order, for :data:`AT_ONCE` seconds; returns how many requests were accepted.

        Raises OSError when nothing can be kept.
        """
        if (back := self._arrivals.set_back()) > SET_BACK:
            self.say(
                f"the clock of this machine was set back by {back.total_seconds():,.0f} s: dates and arrivals follow it as it is now"
            )
        self._arrivals.look([identity for _, identity in self.inbox.waiting(LOOKED_AT)])
        self._pending.keep(lambda name: os.path.lexists(self.inbox.root / name), *self._slots)
        if time.monotonic() - self._cleaned > CLEANING_SECONDS:
            self.inbox.delete_refused(MAX_CLEANING_SECONDS)
            self._cleaned = time.monotonic()
        accepted, begun = 0, time.monotonic()
        waiting = [*self._pending.ready(*self._slots), *self.inbox.waiting(skip=self._pending.is_idle)]
        for name, identity in waiting:
            if time.monotonic() - begun > AT_ONCE:
                break
            accepted += self._attend(name, identity, tasks)
        return accepted

    @property
    def _slots(self) -> tuple[Slot | None, Slot | None]:
        return self.slot, self.checks.slot if self.checks is not None else None

    def _attend(self, name: str, identity: str, tasks: Mapping[str, Task]) -> bool:
        """Decide one request, and remove it unless it waits. Return true if it was accepted now."""
        accepted = False
        try:
            if identity in self._decided:
                self._answer_again(identity)
            else:
                accepted = self._decide(name, tasks)
        except Later as later:
            self._pending.wait(identity, name, later.slot)
            return False
        except Refused as refused:
            self._refuse(identity, refused)
        except Exception as error:  # noqa: BLE001  (an error in one request must not stop the others)
            if not self._fail(name, identity, error):
                return False
        self._pending.forget(identity)
        if not self.inbox.remove(name):
            self._pending.ignore(identity, name)
        return accepted

    def _fail(self, name: str, identity: str, error: Exception) -> bool:
        """Note a failure of the platform. Return true if the request is refused for it."""
        if self._pending.fail(identity, name, error, reason := _failure_text(error)) is not None:
            self._report(f"request {identity} waits: {reason}")
        if not self._pending.has_failed(identity):
            return False
        try:
            request = self.inbox.read(name)
            self._allowed(request)
            what = "the request could not be processed because of an internal error"
            refusal = RunnerError(INTERNAL, what, fix="tell the organiser")
            self._note(request, self._arrived(request), {"accepted": False, **_words(refusal)})
        except (OSError, RunnerError):
            return False
        except Exception as second:  # noqa: BLE001  (no answer can be written for this request)
            self._refuse(identity, Refused(_failure_text(second)))
        return True

    def _refuse(self, identity: str, why: Refused) -> None:
        """Report a folder that is not a request."""
        if self._report(f"request {identity} is not valid: {why}"):
            SecurityLog(self.config.home).note("request refused", request=identity, why=str(why))

    def _report(self, line: str) -> bool:
        """Print a line about a request. False if there were too many in this minute."""
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            if self._lines > LINES:
                self.say(f"{self._lines - LINES} more lines about requests were left out")
            self._minute, self._lines = minute, 0
        self._lines += 1
        if self._lines <= LINES:
            self.say(line)
        return self._lines <= LINES

    def _decide(self, name: str, tasks: Mapping[str, Task]) -> bool:
        """Decide one request; whether it was accepted. Raises Refused for what is none, RunnerError for what waits."""
        request = self.inbox.read(name)
        account, handler = self._allowed(request), HANDLERS[request.kind]
        if request.sha256 is not None and not handler.takes_file:
            raise Refused("requests of its kind have no payload")
        if self._had_too_many(request):
            return False
        arrival = self._arrived(request)

        def do(store: Store) -> Mapping[str, Any]:
            with scratch_folder(self.config.home, SCRATCH) as scratch:
                payload = self.inbox.payload(name, request, scratch / "request", most=_most(request))
                about = (account, request.data, payload, FixedClock(arrival), scratch, self.accounts)
                asked = (request.token, request.id, request.sha256)
                wish = Wish(self.config, store, tasks, *about, *asked, self.checks, self.engine, self.told)
                return handler.do(wish)

        if not handler.slow or self.slot is None:
            return self._said(request, account, arrival, lambda: do(self.store))
        slot, team = self.slot, account.team or ""

        def job() -> Mapping[str, Any]:
            """Do it in the slot, with a store of its own."""
            with open_store(self.config) as store:
                store.fenced_as(self.store)
                return do(store)

        def result() -> Mapping[str, Any]:
            done: Mapping[str, Any] = slot.result(request.id, team, request.proof, lambda: job)
            return done

        had = slot.has_begun(request.id, request.proof)  # what the proof was of is what is done
        return self._said(request, account, arrival, result, had=had)

    def _count_last_day(self) -> None:
        """Count the requests that were decided in the last day, from their events."""
        now = self.clock.now()
        for id, facts in self._decided.items():
            age = (now - moment(str(facts["decided"]))).total_seconds()
            self.limits.note(facts["team"], str(facts["account"]), str(facts["kind"]), id, age)

    def _had_too_many(self, request: Request) -> bool:
        """Answer a request of a sender whose limit for a day is reached, without an event. False if it is to be decided.

        Raises:
            Refused: So many requests of the sender were answered in that way that this one is not.
        """
        if HANDLERS[request.kind].strangers and answered(self.config.published, request.id) is not None:
            return True
        refusal = self.limits.refusal(request, self.clock.now())
        if refusal is None:
            return False
        self._report(f"request {request.id} of account {request.account} is refused: {refusal.what}")
        self._answer_unsigned(request, self._arrived(request), {"accepted": False, **_words(refusal)})
        return True

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
            check_data(request.kind, request.data)
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
            self._report(f"request {request.id} arrived {stamp(arrival)}: {told}")
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

    def _note(self, request: Request, arrival: datetime, said: Mapping[str, Any]) -> None:
        if HANDLERS[request.kind].strangers:
            self._answer_unsigned(request, arrival, said)
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

    def _answer_unsigned(self, request: Request, arrival: datetime, said: Mapping[str, Any]) -> None:
        """Write an answer without an event, and so without a receipt."""
        about = {"kind": request.kind, "arrival": stamp(arrival), "sha256": request.sha256}
        answer(self.config.published, request.id, {"team": request.team, **about, **said})

    def _answer(self, facts: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        """Write an answer with the signed decision."""
        about = {name: facts[name] for name in ("team", "kind", "arrival", "sha256")}
        signed: dict[str, Any] = {"said": facts["said"]} if facts["said"] != facts["arrival"] else {}
        if self.signer is not None:
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


def _failure_text(error: Exception) -> str:
    """Return the reason for a failure of the platform, in one line."""
    if isinstance(error, RunnerError):
        return f"{error.code} {error.what}"
    return str(error) if isinstance(error, OSError) else f"internal error ({type(error).__name__})"


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
