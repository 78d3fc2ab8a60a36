"""The work process: one clerk and one coordinator, for as long as nobody ends them.

The **clerk** (a thread) decides what comes into the inbox, publishes what has changed, and says that work is there; what it
does never waits for an evaluation. The **coordinator** (this thread) does what ``runner evaluate --all`` does, again and
again: whenever something was handed in, and at least every :data:`ROUND` seconds, so that what is due by a date is done.
Ended by SIGTERM or Ctrl-C, containers go, what is sealed is committed, and the next start goes on from there.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import schemas
from runner.exchange.published import Publisher
from runner.exchange.receipts import KEY, Signer, publish_key
from runner.execution.cluster.tails import FOLDER
from runner.execution.coordinator import EvaluationRequest, Listener, coordinating
from runner.execution.machine import Machine
from runner.execution.pool import HEED, Control
from runner.model.calendar import announced
from runner.model.clock import Clock, SystemClock
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError, disk_error
from runner.model.task import Task
from runner.records.archive_lock import WORK_LOCK
from runner.records.store.connect import Store, open_store
from runner.submissions.parcel import note_bases
from runner.tasks.load import load_tasks
from runner.views.overview.offering import Offering
from runner.views.plots.published import DRAWING_SECONDS, Drawings
from runner.work.between import Between, Ended
from runner.work.checks import Checks, Slot
from runner.work.front import Front
from runner.work.link import Link, forget_contact
from runner.work.live_logs import LiveLogs
from runner.work.members.accounts import Accounts, open_accounts, publish_access
from runner.work.news import Told
from runner.work.notices.telling import Telling, of_teams
from runner.work.publishing import Desk
from runner.work.requests import Requests
from runner.work.run_pages import Kept
from runner.work.shelf import NAME, Shelf, started_as
from schemas.files import make_private, settled
from schemas.interrupts import Interrupts

TICK = 0.5  # seconds between two looks into the inbox
ALIVE = 5.0  # seconds between two signs of life
REST = 4.0  # publishing, with what was begun anew, takes at most one part in so many plus one of the clerk's time, however many runs end
REFRESH = 60.0  # seconds until everything is looked at again, for what changes with time alone
ROUND = 60.0  # seconds between two rounds of the coordinator in which nothing was handed in
PAUSE = 5.0  # seconds after something of ours failed
BASES_SECONDS = 600.0  # between two looks for new base images in the engine


class Work:
    """The work process of a data directory.

    Args:
        config: Whose data directory.
        listener: Where it is reported what goes on.
        machine: The engine and images; by default those of ``config``.
        clock: Gives the time by which dates are due and requests arrive.
        front: The front, where it stands on another machine; else it has the same exchange folder.
    """

    def __init__(
        self,
        config: Config,
        listener: Listener,
        *,
        machine: Machine | None = None,
        clock: Clock | None = None,
        front: Front | None = None,
    ) -> None:
        self.config = replace(config, person=None)  # what teams ask for is commanded by nobody here
        self.listener, self.machine, self.clock = listener, machine, clock or SystemClock()
        self.stop = threading.Event()
        self.front = front
        self._wake = threading.Event()
        self._failure: BaseException | None = None
        self._stuck = ""  # why nothing can be published
        self._said = 0.0  # when work last said that it is there
        self._unkept = ""  # why what was made is not kept over a restart
        self._told = Told(self.clock, config.news)

    def run(self) -> None:
        """Work until :attr:`stop` is set, or a signal comes: then it raises KeyboardInterrupt after everything was put away.

        Raises E306 when another work process is there.
        """
        started_as()  # before anything waits: the files on the disk are those of this process
        with _only(self.config), Interrupts() as interrupts:
            threads = [
                threading.Thread(target=self._beside, args=(self._clerk,), name="clerk"),
                threading.Thread(target=self._beside, args=(self._tell,), name="notices"),
                threading.Thread(target=self._beside, args=(self._keep_bases,), name="base images"),
            ]
            if self.front is not None:
                threads.append(threading.Thread(target=self._beside, args=(self._link,), name="link"))
            else:
                forget_contact(self.config)
            try:
                for thread in threads:
                    thread.start()
                while not (interrupts.came or self.stop.is_set()):
                    self._round(interrupts)
                    last = time.monotonic() + ROUND
                    while not interrupts.came and time.monotonic() < last and not self._wake.wait(HEED):
                        pass
                    self._wake.clear()
            finally:
                interrupts.hold()
                self.end()
                for thread in threads:
                    if thread.ident is not None:  # it was started
                        thread.join()
            if self._failure is not None:
                raise self._failure

    def end(self) -> None:
        """Have :meth:`run` return, once what it is at has come to its end."""
        self.stop.set()
        self._wake.set()

    def _round(self, interrupts: Interrupts) -> None:
        """Do what ``runner evaluate --all`` does; what fails is said, and tried again in the next round."""
        request = EvaluationRequest(changed="keep")
        control = replace(Control.of(self.config), asked=lambda: interrupts.came)
        try:
            with coordinating(
                self.config, self.listener, machine=self.machine, clock=self.clock, is_work=True
            ) as coordinator:
                todo = coordinator.plan(request)
                if todo.work and not (interrupts.came or self.stop.is_set()):
                    coordinator.run(todo, request, control=control)
        except RunnerError as error:
            self.listener.problem(error)

    def _beside(self, what: Callable[[], None]) -> None:
        try:
            what()
        except BaseException as error:  # noqa: BLE001  (a thread's border: run() raises it)
            self._failure = error
            self.end()

    def _link(self) -> None:
        assert self.front is not None
        self.front.stopped = self.stop.is_set
        Link(self.config, self.front, self.listener.say, self.listener.problem).run(self.stop)

    def _tell(self) -> None:
        Telling(self.config, self.clock, self.listener.say, self.listener.problem).run(self.stop)

    def _keep_bases(self) -> None:
        """Keep the archives of base images, whose layers teams need not send. What fails is tried again later."""
        machine = self.machine or Machine(self.config)
        while not self.stop.is_set():
            with suppress(OSError, RunnerError):
                note_bases(self.config.home, machine.engine(), self.config.bases)
            self.stop.wait(BASES_SECONDS)

    def _clerk(self) -> None:
        while not self.stop.is_set():
            try:
                self._at_the_desk()
            except RunnerError as error:
                self.listener.problem(error)
                self.stop.wait(PAUSE)
            except OSError as error:
                self.listener.problem(disk_error("the clerk cannot go on", error, self.config.exchange))
                self.stop.wait(PAUSE)

    def _at_the_desk(self) -> None:
        """Decide and publish until the end. Raises RunnerError and OSError for what is worth another try."""
        config, to = self.config, Publisher(self.config.published)
        config.inbox.mkdir(exist_ok=True)
        with (
            open_store(config) as store,
            store.coordinating("runner work"),
            open_accounts(config, clock=self.clock) as accounts,
            closing(Checks.on(machine := self.machine or Machine(config, self.listener.say))) as checks,
            closing(Slot()) as slot,
            closing(Offering(to, self.listener.problem, beside=True)) as offering,
            closing(LiveLogs(config.published, config.home / FOLDER, machine.engine, self._no_logs)) as logs,
        ):
            drawings = Drawings(to, self.listener.say, seconds=DRAWING_SECONDS)
            publish_access(config, accounts)
            signer = Signer.load(config.home / KEY)
            publish_key(config.published, signer)
            known = (
                store,
                accounts,
                self.listener.say,
                self.clock,
                checks,
                signer,
                self.front is not None,
                slot,
            )
            requests = Requests(config, *known, machine.engine, told=self._told)
            definitions, shelf = Definitions(config), Shelf(config.home / NAME)
            kept = shelf.load()
            seen: object = None
            looked = due = 0.0

            alive = partial(self._say_alive, to, logs)
            attend = partial(self._attend, alive, requests, definitions)
            beside = attend if store.writes_beside_readers() else alive
            between = Between(TICK, self.stop, beside, alive, requests)
            while not self.stop.is_set():
                now = time.monotonic()
                alive()
                again = now >= due and now - looked >= REFRESH
                tasks = definitions.now(anew=again)
                state = (definitions.read, *self._state(store, accounts, drawings, offering))
                if again or (state != seen and now >= due):
                    between.begin()
                    with self._publishing(logs, kept), self._told.store(store, tasks) as as_told:
                        shown = accounts.registrations.shown(tasks.values(), self.clock.now())
                        told, accepted = of_teams(config, accounts), accounts.registrations.acceptances()
                        found = (kept, shown, told, drawings, offering, accepted)
                        desk = Desk(as_told, tasks, to, self.listener.problem, self.clock, *found, logs=logs)
                        replace(desk, meanwhile=between).publish(*_teams(accounts))
                    self._keep(shelf, kept)
                    spent = between.end()
                    seen, looked, due = None if between.anew else state, now, time.monotonic() + REST * spent
                drawings.collect()
                offering.collect()
                attend()
                self.stop.wait(TICK)

    def _keep(self, shelf: Shelf, kept: Kept) -> None:
        """Keep what was made over a restart. Where that cannot be it is told, once until it is for another reason or gone, and stops nothing."""
        try:
            shelf.save(kept)
        except OSError as error:
            if str(error) != self._unkept:
                what = "what pages of runs were made of is not kept over a restart"
                self.listener.problem(disk_error(what, error, self.config.home / NAME))
            self._unkept = str(error)
        else:
            self._unkept = ""

    def _attend(self, alive: Callable[[], None], requests: Requests, definitions: Definitions) -> None:
        """Do what does not wait for a publishing, which may take minutes."""
        alive()
        # By the definitions of now: much may change while it is published, and when that is put off for a moment.
        if requests.round(announced(definitions.now(), self.clock.now())):
            self._wake.set()

    def _say_alive(self, to: Publisher, logs: LiveLogs) -> None:
        logs.write()
        now = time.monotonic()
        if now - self._said >= ALIVE or not self._said:
            to.alive(bool(self._stuck))
            self._said = now

    def _no_logs(self, error: Exception) -> None:
        """Say that what softwares write as they run cannot be published."""
        what = "pages cannot show what softwares write"
        if isinstance(error, OSError):
            self.listener.problem(disk_error(what, error, self.config.published))
        else:
            fix = "report this; it is tried again, and nothing else depends on it"
            self.listener.problem(_defect(what, _where(error), fix))

    @contextmanager
    def _publishing(self, logs: LiveLogs, kept: Kept) -> Iterator[None]:
        """A defect of ours in the block is told, once until it is another one or gone, and the clerk goes on deciding. No log grows meanwhile:
        who may read it was not decided. What was ``kept`` may be what is wrong, and is forgotten."""
        try:
            yield
        except (RunnerError, OSError):
            raise
        except Ended:
            logs.forget()
        except Exception as error:  # noqa: BLE001  (what is published is one step; teams are answered all the same)
            logs.forget()
            why = _where(error)
            if why != self._stuck:
                fix = "report this; it is tried again, and what is asked for is decided meanwhile"
                self.listener.problem(_defect("nothing new can be published", why, fix))
                kept.clear()
            self._stuck = why
        else:
            self._stuck = ""

    def _state(
        self, store: Store, accounts: Accounts, drawings: Drawings, offering: Offering
    ) -> tuple[object, ...]:
        """What is published again when it is another one, beside the definitions of tasks."""
        return (
            store.catch_up().seq,
            tuple(store.archive.live()),
            _teams(accounts),
            [one.account for one in accounts.registrations.waiting()],
            accounts.registrations.acceptances(),
            accounts.people.all_wants(),
            self._told.time(),
            drawings.rounds,
            offering.done,
        )


class Definitions:
    """The tasks that there are, read again when one was written. ``read`` says which they were, and when each was written."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._tasks: Mapping[str, Task] = {}
        self._settled = True  # whether what was written since has another time
        self.read: object = None

    def now(self, *, anew: bool = False) -> Mapping[str, Task]:
        """The tasks by their ids; with ``anew`` read in any case."""
        paths = sorted(self._config.tasks.glob("*/task.yaml"))
        facts = [(path.parent.name, path.stat()) for path in paths]
        found = tuple((name, one.st_mtime_ns) for name, one in facts)
        if anew or found != self.read or not self._settled:
            self._settled = all(settled(one) for _, one in facts)
            self._tasks, self.read = load_tasks(self._config)[0], found
        return self._tasks


def _where(error: Exception) -> str:
    """What an exception says, and where it came from."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {schemas.show(str(error), 300)} ({Path(at.filename).name}:{at.lineno})"


def _defect(what: str, why: str, fix: str) -> PlatformError:
    return PlatformError(f"{what}: a defect of runner itself", why=why, fix=fix, code="E308")


def _teams(accounts: Accounts) -> tuple[Sequence[str], Sequence[str]]:
    """The teams with an open account, and those with a closed one."""
    closed = (one.team for one in accounts.all() if one.team is not None and one.closed is not None)
    return accounts.teams(), sorted(closed)


@contextmanager
def _only(config: Config) -> Iterator[None]:
    """Be the only work process of a data directory. Raises E306 when there is another."""
    from filelock import FileLock, Timeout

    make_private(config.locks)
    lock = FileLock(config.locks / WORK_LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        why, fix = f"It holds {config.locks / WORK_LOCK}.", "end it, or leave the work to it"
        what = "runner work is running for this data directory"
        raise PlatformError(what, why=why, fix=fix, code="E306") from error
    try:
        yield
    finally:
        lock.release()
