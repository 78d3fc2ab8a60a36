"""Which step starts next: fair among teams, within the memory and processors of the engine's machine."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from runner.execution.plan import Planned, Step
from runner.model.limits import Limits
from runner.model.task import Task, Visibility
from runner.submissions.bundle import Bundle
from runner.tasks.services import room_limits, services_of_run


def needs_of(task: Task, bundle: Bundle | None, step: Step) -> Limits:
    """What one step needs of the machine: its own limits, and the memory of the sidecars next to it."""
    if step == "execute":
        chosen = None if bundle is None or bundle.data["runs"] else bundle.data.get("workflow", task.workflow)
        if chosen == "interactive":
            return room_limits(task.limits, services_of_run(task.services), interactive=True)
        return task.limits
    gateway = task.evaluation_gateway
    sidecars = {} if gateway is None else {gateway.name: gateway}
    return room_limits(task.evaluator_limits, sidecars, interactive=False)


@dataclass
class Capacity:
    """What the engine's machine has left: bytes of memory, and processors."""

    memory: float
    cpus: float

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

    def next(self) -> Planned | None:
        """The next step to start: of the team that was served least, first come first served within it.

        Public before blinded, and never both at once: the engine would let one wait for the other, and has its
        caches emptied whenever public runs follow blinded ones (:mod:`runner.engines.turns`). None while nothing can start.
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
            if (entry := self._first_ready(steps)) is not None
        ]
        if not ready:
            return None
        *_, lane, entry = min(ready, key=lambda choice: choice[:4])
        self._lanes[lane].remove(entry)
        if not self._lanes[lane]:
            del self._lanes[lane]
        return entry[1]

    def _first_ready(self, steps: deque[tuple[int, Planned]]) -> tuple[int, Planned] | None:
        return next((entry for entry in steps if not self._open.intersection(entry[1].needs)), None)

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
