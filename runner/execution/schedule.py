"""Which step starts next: fair among teams, within the memory and processors of the engine's machine."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

from runner.engines.base import EngineInfo
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
        data = {} if bundle is None else bundle.data
        limits = chosen(task.limits, task.frame, data.get("limits", {}))
        if limits.pinned:
            limits = replace(limits, cpus=float(limits.processors))
        workflow = None if bundle is None or data["runs"] else data.get("workflow", task.workflow)
        if workflow == "interactive":
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
    return Lane(task.datasets[planned.run.dataset].visibility, planned.step, submission.team, limits)


def slots(info: EngineInfo, jobs: int | None) -> int:
    """How many steps are done at once at most: ``jobs``, or as many as the engine's machine has processors."""
    return max(1, jobs or int(info.cpus) or 1)


@dataclass
class Capacity:
    """What the engine's machine has left: bytes of memory, and processors."""

    memory: float
    cpus: float

    @classmethod
    def of(cls, info: EngineInfo) -> Capacity:
        """All that steps may use: a tenth of the memory is left to the machine."""
        return cls(info.memory * 0.9, float(info.cpus))

    def fits(self, limits: Limits) -> bool:
        """Whether a step with these limits can start now."""
        return limits.memory <= self.memory and limits.cpus <= self.cpus + 1e-9

    def take(self, limits: Limits, sign: int = 1) -> None:
        """Reserve what a step may use; with ``sign`` -1 give it back."""
        self.memory -= sign * limits.memory
        self.cpus -= sign * limits.cpus


@dataclass(frozen=True)
class Lane:
    """What decides when a step may start; steps of one lane start in the order in which they came."""

    visibility: Visibility
    step: Step
    team: str
    limits: Limits


class Schedule:
    """The steps that wait, and what is running now.

    ``lane_of`` says what a step needs. Steps wait by lane, so that choosing one costs as much as there are teams and
    kinds of steps, not as much as there are steps.
    """

    def __init__(
        self, work: Iterable[Planned], capacity: Capacity, lane_of: Callable[[Planned], Lane]
    ) -> None:
        self.capacity, self._lane_of = capacity, lane_of
        self._lanes: dict[Lane, deque[tuple[int, Planned]]] = {}
        self._served: Counter[str] = Counter()
        self._active: Counter[Visibility] = Counter()
        self._earlier = count(-1, -1)
        self._open: set[str] = set()
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

    def next(self, held: Callable[[Planned], object] = lambda _: False) -> Planned | None:
        """The next step to start: of the team that was served least, first come first served within it.

        Public before blinded, and never both at once: the engine would let one wait for the other, and has its
        caches emptied whenever public runs follow blinded ones (:mod:`runner.engines.turns`). Those that are ``held`` are
        passed over. None while nothing can start.
        """
        now = next((visibility for visibility, number in self._active.items() if number), None)
        ready = [
            (
                lane.visibility == "blinded",
                lane.step == "execute",
                self._served[lane.team],
                entry[0],
                lane,
                entry,
            )
            for lane, steps in self._lanes.items()
            if now in (None, lane.visibility) and self.capacity.fits(lane.limits)
            if (entry := self._first_ready(steps, held)) is not None
        ]
        if not ready:
            return None
        *_, lane, entry = min(ready, key=lambda choice: choice[:4])
        self._lanes[lane].remove(entry)
        if not self._lanes[lane]:
            del self._lanes[lane]
        return entry[1]

    def _first_ready(
        self, steps: deque[tuple[int, Planned]], held: Callable[[Planned], object]
    ) -> tuple[int, Planned] | None:
        ready = (entry for entry in steps if not self._open.intersection(entry[1].needs))
        return next((entry for entry in ready if not held(entry[1])), None)

    def started(self, planned: Planned) -> None:
        """Count a step as running."""
        self._count(planned, 1)
        if planned.step == "execute":
            self._served[planned.run.submission.team] += 1

    def ended(self, planned: Planned) -> None:
        """Give back what a running step has used."""
        self._count(planned, -1)

    def _count(self, planned: Planned, sign: int) -> None:
        lane = self._lane_of(planned)
        self.capacity.take(lane.limits, sign)
        self._active[lane.visibility] += sign


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
    schedule, free = Schedule(known, Capacity.of(info), lane), slots(info, jobs)
    now, ends = 0.0, list[tuple[float, int, Planned]]()
    numbers = count()
    while True:
        while len(ends) < free and (planned := schedule.next()) is not None:
            schedule.started(planned)
            heappush(ends, (now + (times[planned.run.id] or 0.0), next(numbers), planned))
        if not ends:
            break
        now, _, planned = heappop(ends)
        schedule.ended(planned)
        schedule.settled(planned.run.id)
    unknown = [lane(p).limits.wall_clock for p in work if times[p.run.id] is None]
    return Forecast(now, min(free, max(1, len(work))), len(known), len(unknown), max(unknown, default=0.0))


def _seconds(planned: Planned, took: Took) -> float | None:
    """What a step took the last time; an execution is followed by its evaluation."""
    if planned.step == "evaluate":
        return took.evaluation
    return None if took.execution is None else took.execution + (took.evaluation or 0.0)
