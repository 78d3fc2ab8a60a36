"""Which step starts next, and where: fair among teams, within the memory and processors of the hosts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count

from runner.engines.base import EngineInfo
from runner.execution.executors.base import Host
from runner.execution.lock import asked_workflow
from runner.execution.plan import Planned, Step
from runner.execution.workspace import Workspace
from runner.model.limits import Limits, chosen
from runner.model.task import Task, Visibility
from runner.records.store.results import Took
from runner.submissions.bundle import Bundle
from runner.tasks.services import room_limits, services_of_run


def needs_of(task: Task, bundle: Bundle | None, step: Step) -> Limits:
    """What one step needs of the machine: its own limits, and the memory of the sidecars next to it."""
    if step == "execute":
        limits = chosen(task.limits, task.frame, {} if bundle is None else bundle.data.get("limits", {}))
        if limits.pinned:
            limits = replace(limits, cpus=float(limits.processors))
        if bundle is not None and asked_workflow(bundle, task) == "interactive":
            return room_limits(limits, services_of_run(task.services), interactive=True)
        return limits
    gateway = task.evaluation_gateway
    sidecars = {} if gateway is None else {gateway.name: gateway}
    return room_limits(task.evaluator_limits, sidecars, interactive=False)


def lane_of(workspace: Workspace, planned: Planned) -> Lane:
    """What decides when a step of a plan may start."""
    submission = planned.run.submission
    task = workspace.task_for(submission)
    limits = needs_of(task, workspace.bundles.get(submission.id), planned.step)
    bundle = workspace.bundles.get(submission.id)
    workflow = asked_workflow(bundle, task) if planned.step == "execute" and bundle is not None else None
    visibility = task.datasets[planned.run.dataset].visibility
    if planned.step == "execute":
        asks = workflow == "interactive" and "gateway" in services_of_run(task.services)
    else:
        asks = task.evaluation_gateway is not None
    return Lane(visibility, planned.step, submission.team, limits, workflow, asks)


@dataclass(frozen=True)
class Lane:
    """What decides when and where a step may start; steps of one lane start in the order in which they came.

    ``workflow`` is that of the software; None for an evaluation. ``asks``: models are asked beside it, so it stays on the coordinator's
    machine whatever needs as much.
    """

    visibility: Visibility
    step: Step
    team: str
    limits: Limits
    workflow: str | None = None
    asks: bool = False

    @cached_property
    def of_all(self) -> Lane:
        """The same of all teams: what hosts may do it does not depend on the team."""
        return replace(self, team="")

    @cached_property
    def _hash(self) -> int:
        return hash((self.visibility, self.step, self.team, self.limits, self.workflow, self.asks))

    def __hash__(self) -> int:  # kept: lanes are looked up again and again
        return self._hash


class Schedule:
    """The steps that wait.

    ``lane_of`` says what a step needs. Steps wait by lane, so that choosing one costs as much as there are teams and
    kinds of steps, not as much as there are steps.
    """

    def __init__(self, work: Iterable[Planned], lane_of: Callable[[Planned], Lane]) -> None:
        self._lane_of = lane_of
        self._lanes: dict[Lane, deque[tuple[int, Planned]]] = {}
        self._served: Counter[str] = Counter()
        self._earlier = count(-1, -1)
        self._open: set[str] = set()
        self._running: dict[tuple[str, Step], Lane] = {}  # of steps that were taken out, by run and step
        for number, planned in enumerate(work):
            self._lanes.setdefault(lane_of(planned), deque()).append((number, planned))
            self._open.add(planned.run.id)

    def waiting(self) -> list[Planned]:
        """The steps that have not started, in order."""
        steps = (entry for lane in self._lanes.values() for entry in lane)
        return [planned for _, planned in sorted(steps, key=lambda entry: entry[0])]

    def continue_with(self, planned: Planned) -> None:
        """The next step of a run comes before those that wait already."""
        self._lanes.setdefault(self._lane_of(planned), deque()).appendleft((next(self._earlier), planned))

    def settled(self, run_id: str) -> None:
        """Steps that wait for this run as their input may start now."""
        self._open.discard(run_id)

    def next(
        self,
        hosts: Sequence[Host],
        held: Callable[[Planned], object] = lambda _: False,
        takes: Callable[[Host, Planned], bool] = lambda *_: True,
    ) -> tuple[Planned, Host] | None:
        """The next step to start, of the team that was served least, first come first served within it; and the host for it.

        Public before blinded, and never both at once on one host: its engine would let one wait for the other, and has its
        caches emptied whenever public runs follow blinded ones (:mod:`runner.engines.turns`). Those that are ``held`` are
        passed over. Of the hosts that have room and may take it (``takes``), the one that holds most of what it needs, then the
        one that has most left. None while nothing can start.
        """
        idle = [(one, one.turn()) for one in hosts if one.slots > 0]
        # Lanes in the order in which their first steps would be chosen: the others are looked at only where those may not start.
        lanes = [(self._order(lane, steps[0]), lane) for lane, steps in self._lanes.items()] if idle else []
        heapify(lanes)
        known: dict[Lane, list[Host]] = {}
        while lanes:
            order, lane = lanes[0]
            steps = self._lanes[lane]
            # Where one step of a lane may be done, all may, of all teams.
            if (free := known.get(lane.of_all)) is None:
                free = [
                    one for one, turn in idle if turn in (None, lane.visibility) and one.fits(lane.limits)
                ]
                free = known[lane.of_all] = [one for one in free if takes(one, steps[0][1])]
            entry = self._first_ready(steps, held, free, hosts) if free else None
            if entry is None:
                heappop(lanes)
            elif (now := self._order(lane, entry)) > order:
                heapreplace(lanes, (now, lane))
            else:
                return self._taken(lane, entry, free, hosts)
        return None

    def _order(self, lane: Lane, entry: tuple[int, Planned]) -> tuple[bool, bool, int, int]:
        return lane.visibility == "blinded", lane.step == "execute", self._served[lane.team], entry[0]

    def _taken(
        self, lane: Lane, entry: tuple[int, Planned], free: Sequence[Host], hosts: Sequence[Host]
    ) -> tuple[Planned, Host]:
        """Take a step out of its lane; returns it and the best of the hosts that are free for it."""
        self._lanes[lane].remove(entry)
        if not self._lanes[lane]:
            del self._lanes[lane]
        planned, wanted = entry[1], needed_digests(entry[1])
        self._running[planned.run.id, planned.step] = lane
        fit = (host for host in free if _may(host, planned, hosts))
        return planned, max(fit, key=lambda host: (len(host.holds & wanted), host.cpus, host.memory))

    def _first_ready(
        self,
        steps: deque[tuple[int, Planned]],
        held: Callable[[Planned], object],
        free: Sequence[Host],
        hosts: Sequence[Host],
    ) -> tuple[int, Planned] | None:
        for entry in steps:
            planned = entry[1]
            if self._open.intersection(planned.needs) or held(planned):
                continue
            if any(_may(host, planned, hosts) for host in free):
                return entry
        return None

    def started(self, planned: Planned, host: Host) -> None:
        """Count a step as running at a host."""
        self._count(planned, host, 1)
        if planned.step == "execute":
            self._served[planned.run.submission.team] += 1

    def given_up(self, planned: Planned, host: Host) -> None:
        """A step that was counted as running is not begun, and nothing waits for its run any more."""
        self._count(planned, host, -1)
        if planned.step == "execute":
            self._served[planned.run.submission.team] -= 1
        self.settled(planned.run.id)

    def ended(self, planned: Planned, host: Host) -> None:
        """Give back what a running step has used."""
        self._count(planned, host, -1)

    def _count(self, planned: Planned, host: Host, sign: int) -> None:
        key = planned.run.id, planned.step
        lane = self._running[key] if sign > 0 else self._running.pop(key)
        host.take(lane.limits, lane.visibility, sign)


def _may(host: Host, planned: Planned, hosts: Sequence[Host]) -> bool:
    """Whether a host is tried: not where it failed to do that run or has no room for its data, unless all that are for the same are so;
    never again where it had no room for that run itself."""
    if planned.run.id in host.full:
        return False
    return not _failed(host, planned) or all(_failed(one, planned) for one in hosts if one.role == host.role)


def _failed(host: Host, planned: Planned) -> bool:
    return planned.run.id in host.avoid or not host.no_room.isdisjoint(needed_digests(planned))


def needed_digests(planned: Planned) -> set[str]:
    """The digests of image and data that a step needs at its host, as far as its job is made already."""
    job = planned.job
    return set() if job is None or job.image is None else {job.image, job.lock["digests"]["view"]}


@dataclass(frozen=True)
class Forecast:
    """How long a plan takes, by what its runs took the last time.

    ``seconds`` is from the start to the end of those ``known`` steps of which that is recorded, ``slots`` at once; of
    ``unknown`` ones nothing is: each of them takes ``longest`` seconds at most.
    """

    seconds: float
    slots: int
    known: int
    unknown: int
    longest: float


def forecast(
    work: Sequence[Planned],
    took: Mapping[str, Took],
    info: EngineInfo,
    jobs: int | None,
    lane: Callable[[Planned], Lane],
) -> Forecast:
    """How long ``work`` takes on the engine's machine with at most ``jobs`` steps at once, in the order in which it would be done.

    ``took`` is what runs took before, by their ids.
    """
    times = {p.run.id: _seconds(p, took.get(p.run.id, Took())) for p in work}
    known = [p for p in work if times[p.run.id] is not None]
    schedule, host = Schedule(known, lane), Host.of(info, jobs)
    free = host.slots
    now, ends = 0.0, list[tuple[float, int, Planned]]()
    numbers = count()
    while True:
        while (found := schedule.next([host])) is not None:
            schedule.started(*found)
            heappush(ends, (now + (times[found[0].run.id] or 0.0), next(numbers), found[0]))
        if not ends:
            break
        now, _, planned = heappop(ends)
        schedule.ended(planned, host)
        schedule.settled(planned.run.id)
    unknown = [lane(p).limits.wall_clock for p in work if times[p.run.id] is None]
    return Forecast(now, min(free, max(1, len(work))), len(known), len(unknown), max(unknown, default=0.0))


def _seconds(planned: Planned, took: Took) -> float | None:
    """What a step took the last time; an execution is followed by its evaluation."""
    if planned.step == "evaluate":
        return took.evaluation
    return None if took.execution is None else took.execution + (took.evaluation or 0.0)
