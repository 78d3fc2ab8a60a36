"""Steps done by hosts of a cluster: software is executed there, and everything else on the coordinator's machine.

Truths never travel: runs are evaluated here. A host is ordered one attempt at a time; what it delivers is taken in once, and
what was lost with it begins anew as another attempt.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import schemas
from runner.engines.sandbox import sandbox_digest
from runner.execution.attempt import first_cases
from runner.execution.cluster.artefacts import Artefacts, Mismatch, patiently
from runner.execution.cluster.joining import host_of, named, unfit
from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.line import Line, check_line
from runner.execution.cluster.order import Bringing, Order, OrderedImage
from runner.execution.cluster.taking import take_in
from runner.execution.executors.base import Host, Lost, Result
from runner.execution.executors.local import LocalExecutor
from runner.execution.job import Job
from runner.execution.lock import asked_workflow
from runner.execution.plan import Planned
from runner.execution.workspace import Workspace
from runner.model.config import Config
from runner.model.errors import CODES, PlatformError, RunnerError
from runner.records.archive import Attempt
from runner.records.contents import Content
from runner.records.staging import Staging
from runner.submissions.kept import take_image
from schemas.files import scratch_folder

WAIT = 60.0  # seconds without any host of the cluster after which runs that need one are given up
SENDING = 4  # attempts that are prepared or taken in at once
ENDING = 60.0  # seconds for which hosts are waited for when everything ends
SETTLING = 5.0  # seconds after a host came or went in which others may
LATE = 1800.0  # seconds that an attempt may take beside the software itself: data and image are fetched, and what it wrote is delivered
# What is the matter with a host, not with what it was to do: its engine, or its images.
SICK = frozenset({"E301", "E302", "E304", "E311"})
# What another host may have: other walls, room on the disk, a way to the store, an engine that does it.
ELSEWHERE = frozenset({"E303", "E305", "E306", "E313"})


@dataclass(frozen=True)
class _Begun:
    """An attempt that a host was ordered to make."""

    name: str
    planned: Planned
    host: Host
    job: Job
    staging: Staging
    needs: frozenset[str]
    until: float  # by the steady clock: then it is given up


class ClusterExecutor:
    """Hosts of a cluster, and this machine for what must not leave it.

    Args:
        local: This machine.
        line: The line to the scheduler.
        artefacts: Where files are laid down for the hosts.
        say: Told what goes wrong with hosts.
        wait: Seconds for which hosts are waited for.
        only: The name or address of the one host that is given work; None: all that are fit.
    """

    fixed = False

    def __init__(
        self,
        local: LocalExecutor,
        line: Line,
        artefacts: Artefacts,
        *,
        say: Callable[[str], None] = lambda _: None,
        wait: float = WAIT,
        only: str | None = None,
    ) -> None:
        self.local, self.line, self.artefacts = local, line, artefacts
        self.workspace, self.stop = local.workspace, local.stop
        self._say, self._bringing, self._wait, self._only = say, Bringing(artefacts), wait, only
        self._key = key_of(self.workspace.store.archive)
        self._home = home_of(self._key)
        self._sandbox = sandbox_digest(local.engine.info().seccomp)
        self._archives: dict[str, Content] = {}  # image -> its archive in the store
        self._hosts: dict[str, Host] = {}  # by address
        self._changed = time.monotonic()  # when hosts came or went the last time
        self._sick: set[str] = set()  # addresses of hosts whose engine or disk failed
        self._refused: dict[str, str] = {}  # address -> why it is given no work
        self._left: list[str] = []  # what hosts delivered to a coordinator that was killed
        self._begun: dict[str, _Begun] = {}
        self._stopped: set[str] = set()
        self._results = local.results
        self._sending = ThreadPoolExecutor(SENDING, thread_name_prefix="sending")
        self._taking = ThreadPoolExecutor(SENDING, thread_name_prefix="taking")
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._left = self._delivered()
        self.local.__enter__()
        self.line.start(self._told, self._home)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._end_all()
            self._taking.shutdown(wait=True)
            self.line.close()
        finally:
            self.local.__exit__(*error)

    def hosts(self) -> Sequence[Host]:
        """This machine, and those of the cluster that are there."""
        with self._lock:
            return (self.local.host, *self._hosts.values())

    def takes(self, host: Host, planned: Planned) -> bool:
        """Software is executed in the cluster; interactive software, run files and evaluations stay here."""
        return (host is not self.local.host) == self._travels(planned)

    def expects(self, waiting: Sequence[Planned]) -> bool:
        """Whether a host may still come: for a while where there is none, and a moment after one came or went."""
        with self._lock:
            wait = SETTLING if self._hosts else self._wait
            soon = time.monotonic() - self._changed < wait
        return soon and any(map(self._travels, waiting))

    def begin(self, planned: Planned, host: Host) -> None:
        """See :class:`Executor`."""
        if host is self.local.host:
            self.local.begin(planned, host)
        else:
            self._sending.submit(self._order, planned, host)

    def ended(self, timeout: float | None) -> tuple[Planned, Result] | None:
        """See :class:`Executor`."""
        self._stop_cancelled()
        try:
            return self._results.get(timeout=timeout)
        except queue.Empty:
            return None

    def _travels(self, planned: Planned) -> bool:
        return travels(self.workspace, planned)

    def _order(self, planned: Planned, host: Host) -> None:
        """In a thread: bring what a host needs and order it. Whatever happens comes back as a result."""
        try:
            begun, order = patiently(lambda: self._prepared(planned, host), self._stopping)
            try:
                if (left := self._taken_over(begun)) is not None:
                    self._results.put((planned, left))
                    return
                with self._lock:
                    if self._closed:
                        raise KeyboardInterrupt
                    self._begun[begun.name] = begun
            except BaseException:
                self.workspace.store.archive.discard(begun.staging)
                raise
            host.holds |= begun.needs
            self.line.begin(begun.name, host.name, order, key_for(self._key, begun.name))
        except BaseException as error:  # noqa: BLE001 - the worker's border: the coordinator decides
            self._results.put((planned, error))

    def _prepared(self, planned: Planned, host: Host) -> tuple[_Begun, Content]:
        """An attempt that is begun here, and its order in the store with everything that it needs."""
        if self._stopping():
            raise KeyboardInterrupt
        job = planned.job or self.workspace.job(planned.run)
        self.workspace.check_current(job)
        first = first_cases(job)
        data, image = self._bringing.data(job, first), self._image(planned, job)
        archive = self.workspace.store.archive
        staging = archive.begin(job.task.id, job.run_id)
        try:
            name = f"{self._home}/{staging.path.name}"
            order = self.artefacts.put_bytes(Order(name, staging.number, job, first, image, data).dump())
        except BaseException:
            archive.discard(staging)
            raise
        longest = job.limits.wall_clock * (1 if first is None else 2) + LATE
        needs = frozenset({image.id, *data})
        return _Begun(name, planned, host, job, staging, needs, time.monotonic() + longest), order

    def _stopping(self) -> bool:
        return self._closed or self.stop.stopping()

    def _take(self, name: str, begun: _Begun, host: str = "") -> Attempt:
        archive = self.workspace.store.archive
        return take_in(
            self.artefacts, name, key_for(self._key, name), begun.staging, archive, begun.job, host
        )

    def _taken_over(self, begun: _Begun) -> Attempt | None:
        """The attempt of that run and number that was delivered to a coordinator which was killed before it took it in."""
        mine = begun.staging.path.name.rpartition("~")[0]
        found = None
        for name in [left for left in self._left if left.rpartition("~")[0] == mine]:
            if found is None:
                try:
                    found = self._take(f"{self._home}/{name}", begun)
                except Mismatch:
                    pass  # it is another one: the run is executed again
                except PlatformError:
                    continue  # it cannot be read now, and stays
            with suppress(PlatformError):
                self.artefacts.forget(f"{self._home}/{name}")
        return found

    def _image(self, planned: Planned, job: Job) -> OrderedImage:
        """Where hosts get the image: from the registry that it came from, else from an archive that is made once."""
        bundle = self.workspace.bundles[planned.run.submission.id]
        image, engine = bundle.data["image"], self.local.engine
        if digest := image.get("repo_digest"):
            return OrderedImage(image["id"], repo_digest=digest)
        with self._lock:
            known = self._archives.get(image["id"])
        if known is None:
            found = take_image(engine, bundle)
            assert found is not None, "batch software has an image"
            with scratch_folder(self.workspace.store.archive.root.parent) as folder:
                engine.save(found, folder / "image.tar")
                known = self.artefacts.put(folder / "image.tar")
            with self._lock:
                self._archives[image["id"]] = known
        return OrderedImage(image["id"], archive=known)

    def _told(self, what: dict[str, Any]) -> None:
        """By the line: hosts came or went, or an order ended."""
        if "hosts" in what:
            self._see(what["hosts"])
            return
        with self._lock:
            begun = self._begun.pop(str(what.get("ended") or what.get("lost")), None)
        if begun is not None:
            self._taking.submit(self._end, begun, what)

    def _see(self, said: Any) -> None:
        """Take the hosts that are fit for this work; of the others it is told once why not."""
        there = said if isinstance(said, dict) else {}
        if self._only is not None:
            there = named(there, self._only)
        problems = {address: unfit(one, self._sandbox, self.artefacts) for address, one in there.items()}
        with self._lock:
            for address in [known for known in self._hosts if known not in there]:
                self._gone(address)
            for address, one in there.items():
                if not problems[address] and address not in self._hosts and address not in self._sick:
                    self._hosts[address] = host_of(address, one)
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
        answer = what.get("answer")
        answer = answer if isinstance(answer, dict) else {}
        forget = True
        try:
            if "delivered" in answer or (not answer and self._was_delivered(begun)):
                result = patiently(lambda: self._take(begun.name, begun, begun.host.label), self._stopping)
        except BaseException as error:  # noqa: BLE001 - the worker's border: the coordinator decides
            result, forget = error, isinstance(error, Mismatch)
        try:
            if not isinstance(result, Attempt):
                self.workspace.store.archive.discard(begun.staging)
            elif result.record(check=False)["verdict"]["name"] == "platform-error":
                begun.host.avoid.add(begun.planned.run.id)
            if forget:
                self.artefacts.forget(begun.name)
        except Exception as error:  # noqa: BLE001 - what is left lying about is swept by the next start
            self._say(f"{begun.job.run_id}: {type(error).__name__} while tidying up")
        self._results.put((begun.planned, result or self._without(begun, answer)))

    def _was_delivered(self, begun: _Begun) -> bool:
        return begun.staging.path.name in patiently(self._delivered, self._stopping)

    def _delivered(self) -> list[str]:
        return self.artefacts.delivered(self._home)

    def _without(self, begun: _Begun, answer: dict[str, Any]) -> BaseException:
        """Why nothing came of an order."""
        host = begun.host
        if isinstance(error := answer.get("error"), dict):
            code = str(error.get("code"))
            what, why, fix = (schemas.show(str(error.get(key, "")), 500) for key in ("what", "why", "fix"))
            if code in SICK:
                with self._lock:
                    self._sick.add(host.name)
                    self._gone(host.name)
                self._say(f"{host.label} is given no more work: {what}. {why}")
            if code in SICK | ELSEWHERE:
                host.avoid.add(begun.planned.run.id)
                return Lost(f"{what}, at the host {host.label}")
            return RunnerError(code if code in CODES else "E308", what, why=why, fix=fix)
        if "stopped" in answer and self._stopping():
            return KeyboardInterrupt()
        return Lost(f"the host {host.label} was lost with it")

    def _stop_cancelled(self) -> None:
        """Tell hosts to end the runs that somebody cancelled, and give up what takes longer than it can."""
        with self._lock:
            found, now = list(self._begun.values()), time.monotonic()
        for begun in found:
            if now > begun.until:
                self._say(f"{begun.host.label} says nothing of {begun.job.run_id} any more")
                self.line.stop(begun.host.name, begun.name, drop=True)
                begun.host.avoid.add(begun.planned.run.id)
                self._told({"lost": begun.name})
            elif begun.name not in self._stopped and self.stop.cancelled(begun.job.run_id):
                self._stopped.add(begun.name)
                self.line.stop(begun.host.name, begun.name, drop=self.stop.stopping())

    def _end_all(self) -> None:
        """Have everything that is going on dropped, and wait until it is; what was delivered by then is taken in."""
        with self._lock:
            self._closed = True
        self._sending.shutdown(wait=True, cancel_futures=True)
        until = time.monotonic() + ENDING
        while self._begun and time.monotonic() < until:
            self._stop_cancelled()
            time.sleep(0.1)
        with self._lock:
            left, self._begun = list(self._begun.values()), {}
        for begun in left:
            self._taking.submit(self._end, begun, {"lost": begun.name})


def over_hosts(
    config: Config, local: LocalExecutor, say: Callable[[str], None], *, only: str | None = None
) -> ClusterExecutor | None:
    """The executor of a configuration that names a cluster, with all of its hosts or ``only`` one; None where it names none.

    Raises E101, E313.
    """
    if config.cluster is None:
        return None
    check_line(config)
    artefacts = Artefacts(config.artefacts or "")
    line = Line(config.cluster, config.certificates, say)
    return ClusterExecutor(local, line, artefacts, say=say, only=only)


def travels(workspace: Workspace, planned: Planned) -> bool:
    """Whether a step is done by hosts of a cluster, where there is one: batch software is executed there."""
    if planned.step != "execute":
        return False
    submission = planned.run.submission
    return asked_workflow(workspace.bundles[submission.id], workspace.task_for(submission)) == "batch"
