"""Steps done by hosts of a cluster: those of its duty, and all others by whom there is besides.

A host is ordered one attempt or evaluation at a time; what it delivers is taken in once, and what was lost with it begins anew as
another one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import schemas
from runner.engines.base import Engine
from runner.engines.sandbox import sandbox_digest
from runner.execution.attempt import discard_on_error
from runner.execution.cluster.duties import Duty, Prepared
from runner.execution.cluster.joining import Wanted, host_of, unfit
from runner.execution.cluster.keys import key_for
from runner.execution.cluster.line import Line
from runner.execution.cluster.roles import role_of
from runner.execution.cluster.storage.artefacts import Artefacts, patiently
from runner.execution.cluster.storage.delivery import Mismatch
from runner.execution.cluster.storage.sweeping import sweep
from runner.execution.cluster.tails import Tails, may_leave
from runner.execution.executors.base import Host, Lost, NoRoom, NotTaken, Result, Unheard
from runner.execution.executors.local import LocalExecutor, Results
from runner.execution.plan import Planned
from runner.execution.schedule import needed_digests
from runner.execution.stop import Stop
from runner.execution.workspace import Workspace
from runner.model.clock import SystemClock
from runner.model.errors import PlatformError
from runner.records.archive import Attempt, Evaluation

WAIT = 60.0  # seconds without any host of the cluster after which runs that need one are given up
SENDING = 4  # attempts that are prepared at once
TAKING = 16  # attempts that are taken in at once: each waits for the disk, and those that wait at once do so together
ENDING = 60.0  # seconds for which hosts are waited for when everything ends
LOOK = 0.5  # seconds between two looks at what was cancelled, or takes too long: each is at all that is being done
SETTLING = 5.0  # seconds after a host came or went in which others may
# What is the matter with a host, not with what it was to do: its engine, or its images.
SICK = frozenset({"E301", "E302", "E304", "E311"})


@dataclass(frozen=True)
class _Begun:
    """A step that a host was ordered to do."""

    planned: Planned
    host: Host
    step: Prepared
    until: float  # by the steady clock: then it is given up


class _Ending(Stop):
    """Stops where another one does, and once it is ``closed``."""

    def __init__(self, outer: Stop) -> None:
        self._outer, self.closed, self.called_off = outer, False, outer.called_off  # type: ignore[method-assign]

    def stopping(self) -> bool:
        """See :class:`Stop`."""
        return self.closed or self._outer.stopping()


class ClusterExecutor:
    """Hosts of a cluster, and others for what they do not do.

    Args:
        rest: This machine, or another cluster and this machine.
        duty: What the hosts are for.
        line: The line to the scheduler.
        say: Told what goes wrong with hosts.
        wait: Seconds for which hosts are waited for.
        following: Where those who follow runs ask for what softwares write (:mod:`runner.execution.cluster.tails`); None: nobody does.
        only: The address of the one host that is given work; None: all that are fit.
    """

    fixed = False

    def __init__(
        self,
        rest: LocalExecutor | ClusterExecutor,
        duty: Duty,
        line: Line,
        *,
        say: Callable[[str], None] = lambda _: None,
        wait: float = WAIT,
        following: Path | None = None,
        only: str | None = None,
    ) -> None:
        self.rest, self.duty, self.line = rest, duty, line
        self.engine: Engine = rest.engine
        self.workspace: Workspace = rest.workspace
        self.stop: _Ending = _Ending(rest.stop)
        self.results: Results = rest.results
        self._say, self._wait, self._only = say, wait, only
        self._wanted = Wanted(duty.role, sandbox_digest(rest.engine.info().seccomp), duty.stores)
        self._hosts: dict[str, Host] = {}  # by address
        self._changed = time.monotonic()  # when hosts came or went the last time
        self._sick: set[str] = set()  # addresses of hosts whose engine or images failed
        self._refused: dict[str, str] = {}  # address -> why it is given no work
        self._left: list[tuple[Artefacts, str]] = []  # what hosts delivered to a coordinator that was killed
        self._begun: dict[str, _Begun] = {}
        self._stopped: set[tuple[str, bool]] = set()  # what hosts were told to end, and whether to drop it
        self._sending = ThreadPoolExecutor(SENDING, thread_name_prefix="sending")
        self._taking = ThreadPoolExecutor(TAKING, thread_name_prefix="taking")
        self._tails = None if following is None else Tails(following)
        self._looked = 0.0  # for what was cancelled, by the steady clock
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        stores = self.duty.stores.all()
        self._left = [(store, name) for store in stores for name in store.delivered(self.duty.home)]
        self._sweep()
        self.rest.__enter__()
        self.line.start(self._told, self.duty.home)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._end_all()
            self._taking.shutdown(wait=True)
            self.line.close()
            self._sweep()
        finally:
            self.rest.__exit__(*error)

    def _sweep(self) -> None:
        """Remove from the store what nobody waits for; what cannot be removed now is the next time."""
        for store in self.duty.stores.all():
            with suppress(PlatformError):
                sweep(store, self.duty.key, self.workspace.store.archive, SystemClock().now())

    def hosts(self) -> Sequence[Host]:
        """Those of the cluster that are there, and the others."""
        with self._lock:
            return (*self.rest.hosts(), *self._hosts.values())

    def takes(self, host: Host, planned: Planned) -> bool:
        """The hosts of the cluster do what is their duty, and no others do that."""
        if role_of(self.workspace, planned) != self.duty.role:
            return host.role != self.duty.role and self.rest.takes(host, planned)
        public = self.workspace.tasks[planned.run.submission.task].datasets[planned.run.dataset]
        return host.role == self.duty.role and (host.hidden or public.visibility == "public")

    def expects(self, waiting: Sequence[Planned]) -> bool:
        """Whether a host may still come: for a while where there is none, and a moment after one came or went."""
        with self._lock:
            wait = SETTLING if self._hosts else self._wait
            soon = time.monotonic() - self._changed < wait
        ours = any(role_of(self.workspace, planned) == self.duty.role for planned in waiting)
        return (soon and ours) or self.rest.expects(waiting)

    def begin(self, planned: Planned, host: Host) -> None:
        """See :class:`Executor`."""
        if host.role == self.duty.role:
            self._sending.submit(self._order, planned, host)
        else:
            self.rest.begin(planned, host)

    def ended(self, timeout: float | None) -> tuple[Planned, Result] | None:
        """See :class:`Executor`."""
        if (now := time.monotonic()) >= self._looked + LOOK:
            self._looked = now
            self._stop_cancelled()
            self._ask_tails()
        return self.rest.ended(timeout)

    def _order(self, planned: Planned, host: Host) -> None:
        """In a thread: bring what a host needs and order it. Whatever happens comes back as a result."""
        try:
            step = patiently(lambda: self._prepared(planned, host), self.stop)
            with discard_on_error(self.workspace.store.archive, step.staging):
                if (left := self._taken_over(step)) is not None:
                    self.results.put((planned, left))
                    return
                with self._lock:
                    if self.stop.closed:
                        raise KeyboardInterrupt
                    self._begun[step.name] = _Begun(planned, host, step, time.monotonic() + step.seconds)
            host.holds |= step.needs
            hidden = step.store is not self.duty.stores.open
            key = key_for(self.duty.key, step.name)
            self.line.begin(step.name, host.name, step.order, key, hidden=hidden, url=step.url)
        except BaseException as error:  # noqa: BLE001 - the worker's border: the coordinator decides
            self.results.put((planned, error))

    def _prepared(self, planned: Planned, host: Host) -> Prepared:
        if self.stop.stopping():
            raise KeyboardInterrupt
        return self.duty.prepare(planned, host)

    def _taken_over(self, step: Prepared) -> Attempt | Evaluation | None:
        """What was delivered of that step to a coordinator which was killed before it took it in."""
        mine = step.staging.path.name.rpartition("~")[0]
        found = None
        for store, name in [one for one in self._left if one[1].rpartition("~")[0] == mine]:
            if found is None and store is step.store:
                try:
                    found = step.take(f"{self.duty.home}/{name}", "")
                except Mismatch:
                    pass  # it is another one: the run is executed again
                except PlatformError:
                    continue  # it cannot be read now, and stays
            with suppress(PlatformError):
                store.forget(f"{self.duty.home}/{name}")
        return found

    def _told(self, what: dict[str, Any]) -> None:
        """By the line: hosts came or went, or an order ended."""
        if "hosts" in what:
            self._see(what["hosts"])
            return
        if "tail" in what:
            if self._tails is not None:
                self._tails.take(str(what["tail"]), what.get("said"))
            return
        with self._lock:
            begun = self._begun.pop(str(what.get("ended") or what.get("lost")), None)
        if begun is not None:
            if self._tails is not None:
                self._tails.forget(begun.step.name)
            self._taking.submit(self._end, begun, what)

    def _see(self, said: Any) -> None:
        """Take the hosts that are fit for this work; of the others it is told once why not."""
        there = said if isinstance(said, dict) else {}
        if self._only is not None:
            there = {address: one for address, one in there.items() if address == self._only}
        problems = {address: unfit(one, self._wanted) for address, one in there.items()}
        with self._lock:
            for address in [known for known in self._hosts if known not in there]:
                self._gone(address)
            for address, one in there.items():
                if not problems[address] and address not in self._hosts and address not in self._sick:
                    self._hosts[address] = host_of(address, one, self._wanted)
                    self._changed = time.monotonic()
        for address, why in problems.items():
            if why and self._refused.get(address) != why:
                self._refused[address] = why
                self._say(f"{schemas.show(address, 100)} is given no work: {why}")

    def _gone(self, address: str) -> None:
        """Under the lock: a host takes no more."""
        if self._hosts.pop(address, None) is not None:
            self._changed = time.monotonic()

    def _end(self, begun: _Begun, what: dict[str, Any]) -> None:
        """In a thread: take in what was delivered, also by a host that was lost afterwards. Whatever happens comes back as a result."""
        result: Result | None = None
        answer, step = what.get("answer"), begun.step
        answer = answer if isinstance(answer, dict) else {}
        forget = True
        try:
            result = self._delivered(begun, answer)
        except Mismatch as error:
            self._failed(begun, f"what it delivered is not taken. {error.why}")
            result = NotTaken(error.what, why=error.why, fix=error.fix, code=error.code)
        except BaseException as error:  # noqa: BLE001 - the worker's border: the coordinator decides
            result, forget = error, False
        try:
            if not isinstance(result, Attempt | Evaluation):
                self.workspace.store.archive.discard(step.staging)
            elif self.duty.failed(result):
                self._failed(begun, "it ended with a failure of the platform")
            if forget:
                step.store.forget(step.name)
        except Exception as error:  # noqa: BLE001 - what is left lying about is swept by the next start
            self._say(f"{begun.planned.run.id}: {type(error).__name__} while tidying up")
        if result is None and what.get("unheard"):
            result = Unheard(f"the scheduler was lost while {begun.host.label} did it")
        self.results.put((begun.planned, result or self._without(begun, answer)))

    def _delivered(self, begun: _Begun, answer: dict[str, Any]) -> Attempt | Evaluation | None:
        """What a host delivered, also one that was lost afterwards; None where it is not there, whatever it says."""
        step = begun.step
        if "delivered" in answer:
            try:
                return step.take(step.name, begun.host.label)
            except Mismatch:
                raise
            except PlatformError as error:
                if error.code != "E313":
                    raise
        elif answer:
            return None
        if not self._was_delivered(step):
            return None
        return patiently(lambda: step.take(step.name, begun.host.label), self.stop)

    def _was_delivered(self, step: Prepared) -> bool:
        found = patiently(lambda: step.store.delivered(self.duty.home), self.stop)
        return step.staging.path.name in found

    def _without(self, begun: _Begun, answer: dict[str, Any]) -> BaseException:
        """Why nothing came of an order. Whatever it was, another host may be able to do it."""
        host = begun.host
        if isinstance(error := answer.get("error"), dict):
            code = str(error.get("code"))
            what, why, fix = (schemas.show(str(error.get(key, "")), 500) for key in ("what", "why", "fix"))
            if code == "E306":
                host.avoid[begun.planned.run.id] = what
                host.no_room |= needed_digests(begun.planned)
                host.full.add(begun.planned.run.id)
                self._say(f"{host.label} is given no more that does not fit: {what}. {why}")
                return NoRoom(f"{what}, at the host {host.label}")
            if code in SICK:
                with self._lock:
                    self._sick.add(host.name)
                    self._gone(host.name)
                self._say(f"{host.label} is given no more work: {what}. {why}")
            self._failed(begun, f"{what}. {why}".strip())
            if code == "E308":
                return NotTaken(
                    f"a defect of runner itself at the host {host.label}", why=why, fix=fix, code=code
                )
            return Lost(f"{what}, at the host {host.label}. {why}".strip())
        if "stopped" in answer and self.stop.stopping():
            return KeyboardInterrupt()
        if host.name in self._hosts:
            self._failed(begun, "nothing came of it")
        return Lost(f"the host {host.label} was lost with it")

    def _failed(self, begun: _Begun, why: str) -> None:
        """A host did not do a step: others are tried before it is ordered that run again."""
        begun.host.avoid[begun.planned.run.id] = why
        self._say(f"{begun.host.label} did not do {begun.planned.run.id}: {why}")

    def _stop_cancelled(self) -> None:
        """Tell hosts to end the runs that somebody cancelled, and give up what takes longer than it can."""
        with self._lock:
            found, now = list(self._begun.values()), time.monotonic()
        off = self.stop.called_off({begun.planned.run.id for begun in found})
        drop = (
            self.rest.stop.stopping()
        )  # after it: who is stopped in between drops what it ends, and cancels none
        for begun in found:
            host, run, name = begun.host, begun.planned.run.id, begun.step.name
            if now > begun.until:
                self._say(f"{host.label} says nothing of {run} any more")
                self.line.stop(host.name, name, drop=True)
                host.avoid[run] = "it said nothing of it any more"
                self._told({"lost": name})
            elif (name, drop) not in self._stopped and run in off:
                self._stopped.add((name, drop))
                self.line.stop(host.name, name, drop=drop)

    def _ask_tails(self) -> None:
        """Ask hosts what softwares on public data write whose runs somebody follows."""
        if self._tails is None:
            return
        followed = self._tails.followed()
        with self._lock:
            found = [begun for begun in self._begun.values() if begun.planned.run.id in followed]
        for begun in found:
            run, name = begun.planned.run, begun.step.name
            if may_leave(self.workspace.tasks[run.submission.task].datasets[run.dataset]):
                start = self._tails.due(name, run.id, begun.step.staging.number)
                if start is not None:
                    self.line.tail(begun.host.name, name, start)

    def _end_all(self) -> None:
        """Have everything that is going on dropped, and wait until it is; what was delivered by then is taken in."""
        with self._lock:
            self.stop.closed = True
        self._sending.shutdown(wait=True, cancel_futures=True)
        until = time.monotonic() + ENDING
        while self._begun and time.monotonic() < until:
            self._stop_cancelled()
            time.sleep(0.1)
        with self._lock:
            left, self._begun = list(self._begun.values()), {}
        for begun in left:
            if self._tails is not None:
                self._tails.forget(begun.step.name)
            self._taking.submit(self._end, begun, {"lost": begun.step.name})
