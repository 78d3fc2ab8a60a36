"""Execute a run's software once more, apart from what counts, and say how far its output and its scores moved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, NamedTuple, TypeVar

from runner.execution.cluster.one_host import check_host
from runner.execution.job import Job
from runner.execution.machine import Machine
from runner.execution.plan import plan
from runner.execution.trials.software import check
from runner.execution.workflows.beside import SERVED, TURNS
from runner.execution.workspace import Workspace
from runner.model.comparing import TIE, by_number
from runner.model.errors import PlatformError, RunnerError
from runner.model.run import Run, Selection
from runner.model.task import Dataset, Scenario, Task
from runner.records.archive import Attempt
from runner.records.contents import KeptFile
from runner.records.store.connect import Store
from runner.records.store.run_detail import RunDetail
from runner.submissions.bundle import Bundle
from runner.submissions.kept import registered, take_image
from runner.tasks.files import part, topics_of
from runner.views.audience import ORGANISER, Audience, escape
from runner.views.redact import RunView, redact_run
from schemas import jsonl
from schemas.measures import meaning

T = TypeVar("T")

TIMES = ("ms", "s")  # units of measures that no execution repeats
# Where they stand: keys from the outside in, * for each element of a list and each value of an object. What is not named here was said
# by the software, whatever it calls it.
_DEBATES = (
    "simulation.milliseconds",
    "simulation.userTurns.*.systemResponse.milliseconds",
    "userTurnsEvaluations.*.milliseconds",
    "userTurnsEvaluations.*.*.milliseconds",
    "overallEvaluations.milliseconds",
    "overallEvaluations.*.milliseconds",
    "millisecondsEvaluation",
)
_RULES = jsonl.Rules(duplicates="last", constants=True, bounded=False)  # whatever a software may say
_BESIDE = {TURNS: ("user_ms", "system_ms"), SERVED: ("at_ms", "n")}
SETTLED = ("scored", "invalid", "failed")


@dataclass(frozen=True)
class Verified:
    """How another execution of a run differs from its archived attempt, as one audience may see it.

    ``same`` says whether it ended the same way, with the same score on every measure and topic; ``identical`` whether the
    output files have the same bytes (of an interactive run but for measured times), and ``files`` which have not (None and none where the audience may not see files).
    ``ended`` and ``values`` (by measure) are before and after, ``topics`` the differences (after minus before; None where
    one has no value) of the topics that differ, by measure. ``hidden`` names what was left out for this audience.

    ``sample`` is how many topics were executed, None for all. Of a sample the values are means over its topics, and
    ``uncompared`` are measures that have no value by topic; files are not compared. ``times`` are measures of time, which no
    execution repeats: they are among the values, and decide nothing. ``host`` is the host of the cluster that executed it again
    (None: this machine).
    """

    run: str
    same: bool
    identical: bool | None
    ended: tuple[str, str]
    files: tuple[str, ...]
    values: Mapping[str, tuple[float | None, float | None]]
    topics: Mapping[str, Mapping[str, float | None]]
    hidden: tuple[str, ...]
    sample: int | None = None
    uncompared: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    host: str | None = None

    @property
    def moved(self) -> dict[str, float]:
        """How far each measure moved, after minus before, where both have a value."""
        return {
            name: after - before
            for name, (before, after) in self.values.items()
            if before is not None and after is not None
        }


class Ready(NamedTuple):
    """A settled run that can be executed again: its bundle, its task with the limits of its team, its job, and the part of its
    dataset with the topics of the sample, where one is wanted."""

    bundle: Bundle
    task: Task
    job: Job
    sample: tuple[Dataset, frozenset[str]] | None = None
    address: str | None = None  # of the host that executes it; None: this machine


def ready(
    machine: Machine,
    store: Store,
    tasks: Mapping[str, Task],
    found: RunDetail,
    *,
    sample: int | None = None,
    host: str | None = None,
) -> Ready:
    """What is needed to execute a settled run again: same image, lock, data and evaluator. Nothing is executed.

    Raises:
        RunnerError: E101 for run files, for another attempt than the one that counts and for a ``sample`` that the dataset cannot
            give, E102 for a run that is not settled, or has no scores by topic to be sampled,
            E402 when it was executed or evaluated under something that has changed since, E3xx when our side fails; for a ``host``
            of the cluster also as :func:`check_host`.
    """
    run = found.run
    if run.submission.how == "uploaded":
        raise RunnerError(
            "E101", f"{run.id} is a run file", why="It was not executed.", fix="name a software's run"
        )
    if found.attempt is not None and found.attempt.number != run.outcome.attempt:
        what = f"#{found.attempt.number} is not the attempt of {run.id} that counts"
        raise RunnerError("E101", what, fix=f"runner verify {run.id}")
    known = tasks.get(run.submission.task)
    if known is None or run.dataset not in known.datasets or run.scenario not in known.scenarios:
        raise _changed(run, "its task, dataset or scenario is not there any more", "runner evaluate")
    bundles, _ = registered(machine.config, store)
    workspace = Workspace(store, tasks, bundles, machine.own_profile(), machine.sidecars())
    _check_settled(workspace, run)
    task, job = workspace.task_for(run.submission), workspace.job(run)
    if job.lock_digest != run.lock_digest:
        raise _changed(run, "its input runs, or the images that serve it", "runner evaluate")
    _check_evaluator(machine, task, run)
    dataset, part_ = task.datasets[run.dataset], None
    if sample is not None:
        view = redact_run(found, ORGANISER, dataset)
        part_ = _sample(run, view, dataset, task.scenarios[run.scenario], sample)
    address = None if host is None else check_host(machine, host, job)
    return Ready(bundles[run.submission.id], task, job, part_, address)


def verify(
    machine: Machine,
    store: Store,
    tasks: Mapping[str, Task],
    found: RunDetail,
    audience: Audience,
    *,
    sample: int | None = None,
    host: str | None = None,
) -> Verified:
    """Execute and evaluate a settled run again in a scratch data directory: same image, lock, data and evaluator.

    Nothing of it counts: there is no attempt, no score and no use of a quota, only an event with what differs. Returns the
    differences that ``audience`` may see.

    With a ``sample`` it is executed on so many topics alone, always the same ones (:func:`runner.tasks.files.part`), and only
    the scores of these topics are compared. The ``host`` of the cluster that is called so executes it (None: this machine).

    Raises:
        RunnerError: as :func:`ready`; E103 where the audience may not know of it, E204 when its image is gone; of a sample E101
            where the dataset cannot give it, E102 where the run has no scores by topic.
    """
    run = found.run
    bundle, task, job, some, address = ready(machine, store, tasks, found, sample=sample, host=host)
    dataset = task.datasets[run.dataset]
    before = {who: redact_run(found, who, dataset) for who in (ORGANISER, audience)}
    shown, only = some or (dataset, None)
    take_image(machine.engine(), bundle)
    inputs = job.input_runs
    with check(machine, bundle, task, shown, run.scenario, input_runs=inputs, host=address) as checked:
        if checked.detail.run.outcome.name not in SETTLED:
            why = checked.our_failure or checked.detail.run.outcome.reason
            raise PlatformError(f"{run.id} could not be verified", why=why, fix="run the command again")
        again = replace(checked.detail, published=found.published, released=found.released, key=found.key)
        views = {who: (view, redact_run(again, who, dataset)) for who, view in before.items()}
        served = job.workflow == "interactive" and only is None
        sums = (untimed(found.attempt), untimed(again.attempt)) if served else ({}, {})
    times = frozenset(m.id for m in task.measures.values() if meaning(task.kind, m.measure).unit in TIMES)
    made = {who: _compared(*pair, only, times, sums) for who, pair in views.items()}
    whole = replace(made[ORGANISER], host=host)
    store.commit("run-verified", _event(found, whole), actor="organiser")
    return replace(made[audience], same=whole.same, host=host)


def _sample(
    run: Run, before: RunView, dataset: Dataset, scenario: Scenario, count: int
) -> tuple[Dataset, frozenset[str]]:
    """A part of a run's dataset, and its topics as scores name them. Raises E101 and E102 where scores cannot be compared."""
    some = part(dataset, scenario, count) if count > 0 and dataset.topics else None
    if some is None:
        what = f"{dataset.id} has no sample of {count} topics"
        why = "It needs a list of topics (topics: in task.yaml) that the scenario sees and that has more than these."
        raise RunnerError("E101", what, why=why, fix="leave --sample away, or take fewer topics")
    topics = frozenset(escape(topic, 200) for topic in topics_of(some, scenario))
    if run.outcome.name != "scored" or not any(topics & by.keys() for by in before["topic_scores"].values()):
        why = "A sample compares the scores of its topics."
        raise RunnerError(
            "E102", f"{run.id} has no scores for single topics", why=why, fix="leave --sample away"
        )
    return some, topics


def _check_settled(workspace: Workspace, run: Run) -> None:
    """Raise unless the planner finds nothing to do for a run that was executed."""
    todo = plan(workspace, Selection(run=run.id))
    for planned in todo.work:
        if planned.changed:
            raise _changed(run, planned.changed, "runner evaluate")
    for skipped in todo.skipped:
        if skipped.stale:
            why, fix = f"{skipped.why.partition(';')[0]}.", f"runner reevaluate --run {run.id}"
            raise RunnerError("E402", f"the scores of {run.id} are stale", why=why, fix=fix)
    if todo.work or run.outcome.name not in SETTLED or any(skipped.blocked for skipped in todo.skipped):
        why = next((skipped.why for skipped in todo.skipped), run.outcome.says)
        fix = f"runner evaluate --run {run.id}"
        raise RunnerError(
            "E102", f"{run.id} has nothing to verify", why=f"It is {run.outcome.name}: {why}", fix=fix
        )


def _check_evaluator(machine: Machine, task: Task, run: Run) -> None:
    """Raise E402 when another evaluator would score it now: what moves then is not luck."""
    if run.outcome.evaluation is None:
        return
    if machine.engine().resolve(task.evaluator_image or machine.evaluator()).id != run.evaluator_image:
        raise _changed(run, "the evaluator's image", "runner reevaluate")


def _changed(run: Run, what: str, command: str) -> RunnerError:
    return RunnerError(
        "E402",
        f"{run.id} is other work now than when it was scored",
        why=f"Changed since: {what}.",
        fix=f"{command} --run {run.id}",
    )


def _compared(
    before: RunView,
    after: RunView,
    only: frozenset[str] | None,
    times: frozenset[str],
    untimed_sums: tuple[Mapping[str, str], Mapping[str, str]],
) -> Verified:
    """Two views of a run for one audience, side by side; of a sample only what its topics (``only``) can tell.

    ``untimed_sums`` are digests of files that are not compared byte by byte.
    """
    views = (before, after)
    old, new = (_by_topic(view, only) for view in views)
    files, seen = list[str](), only is None and any(view["output"] is not None for view in views)
    uncompared: tuple[str, ...] = ()
    if only is None:
        first, second = (_sums(view, sums) for view, sums in zip(views, untimed_sums, strict=True))
        files = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
        values = {
            name: (_value(before, name), _value(after, name))
            for name in {**before["scores"], **after["scores"]}
        }
        moved = any(_differ(*pair) for pair in _without(values, times).values())
    else:
        values = {name: (_mean(old[name]), _mean(new.get(name, {}))) for name in old if old[name]}
        uncompared = tuple(name for name in before["scores"] if before["topic_scores"] and name not in values)
        moved = False  # means of topics move where a topic does
    topics, ended = _topics(_without(old, times), _without(new, times)), (_ended(before), _ended(after))
    return Verified(
        run=before["run"],
        same=ended[0] == ended[1] and not topics and not moved,
        identical=not files if seen else None,
        ended=ended,
        files=tuple(files),
        values=values,
        topics=topics,
        hidden=tuple(before["hidden"]),
        sample=None if only is None else len(only),
        uncompared=uncompared,
        times=tuple(name for name in values if name in times),
    )


def _without(found: Mapping[str, T], names: frozenset[str]) -> dict[str, T]:
    return {name: value for name, value in found.items() if name not in names}


def _by_topic(view: RunView, only: frozenset[str] | None) -> dict[str, dict[str, float]]:
    """The scores of a view by measure and topic, of the topics ``only``."""
    return {
        name: {topic: value for topic, value in by.items() if only is None or topic in only}
        for name, by in view["topic_scores"].items()
    }


def _mean(values: Mapping[str, float]) -> float | None:
    return fsum(values.values()) / len(values) if values else None


def _sums(view: RunView, untimed_sums: Mapping[str, str]) -> dict[str, str]:
    """The digests of the files that an audience may see, by name."""
    if view["output"] is None:
        return {}
    found = {file["name"]: file["sha256"] for file in view["output"].get("files", ())}
    return found | {escape(name, 2000): digest for name, digest in untimed_sums.items()}


def _value(view: RunView, name: str) -> float | None:
    return view["scores"][name]["value"] if name in view["scores"] else None


def _ended(view: RunView) -> str:
    return f"{view['outcome']['name']} ({view['outcome']['verdict']})"


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(after - before) > TIE


def _topics(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float | None]]:
    """The differences of the topics that differ, by topic and measure; the largest first."""
    found: dict[str, dict[str, float | None]] = {}
    for measure in {**before, **after}:
        old, new = before.get(measure, {}), after.get(measure, {})
        for topic in {**old, **new}:
            pair = old.get(topic), new.get(topic)
            if _differ(*pair):
                moved = None if None in pair else new[topic] - old[topic]
                found.setdefault(topic, {})[measure] = moved
    sizes = {topic: max(abs(moved or 1.0) for moved in by.values()) for topic, by in found.items()}
    return {
        topic: found[topic] for topic in sorted(found, key=lambda topic: (-sizes[topic], by_number(topic)))
    }


def _event(found: RunDetail, whole: Verified) -> dict[str, Any]:
    """What the log keeps: no topic is named there."""
    return {
        "task": found.run.submission.task,
        "run": found.run.id,
        "attempt": found.run.outcome.attempt,
        "same": whole.same,
        "identical": bool(whole.identical),
        "ended": whole.ended[1],
        "topics": len(whole.topics),
        "moved": whole.moved,
        **({} if whole.sample is None else {"sample": whole.sample}),
        **({} if whole.host is None else {"host": whole.host}),
    }


def untimed(attempt: Attempt | None) -> dict[str, str]:
    """A digest of each output file of an interactive attempt, by name: the same for two that differ in measured times only.

    Debates are held at the same time, so the order in which the argument index was asked by several is one of these. Raises E307 for
    damaged files.
    """
    return {
        name: _digest(file, _BESIDE.get(name, _DEBATES), ordered=name != SERVED)
        for name, file in (attempt.files("output") if attempt else {}).items()
    }


def _digest(file: KeptFile, times: Sequence[str], *, ordered: bool) -> str:
    lines = list(_lines(file, [path.split(".") for path in times]))
    return hashlib.sha256(b"".join(lines if ordered else sorted(lines))).hexdigest()


def _lines(file: KeptFile, times: Sequence[Sequence[str]]) -> Iterator[bytes]:
    """A digest of each line; of one that is no JSON, of its bytes."""
    with file.open() as stream:
        for raw in stream:
            found = jsonl.parse(raw, _RULES)
            if not isinstance(found, jsonl.Fault):
                for path in times:
                    _drop(found, path)
                raw = json.dumps(found, sort_keys=True).encode()
            yield hashlib.sha256(raw).digest()


def _drop(value: Any, path: Sequence[str]) -> None:
    """Take what stands at ``path`` out of JSON data."""
    key, *rest = path
    inside: Sequence[Any] = ()
    if key == "*":
        inside = (
            list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        )
    elif isinstance(value, dict) and not rest:
        value.pop(key, None)
    elif isinstance(value, dict) and key in value:
        inside = [value[key]]
    for one in inside:
        _drop(one, rest)
