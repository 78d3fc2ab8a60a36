"""``runner task check --ready``: what an organiser looks at before a task opens, a line each, with the command or edit that helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from runner.doctor.checks import Check, caution, failed, passed
from runner.doctor.strangers import strangers
from runner.doctor.tasks import budget_check, hidden_check, kernel_check, sources_check
from runner.model.calendar import calendar
from runner.model.clock import Clock

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.run import Run
    from runner.model.task import Stated, Task
    from runner.records.store.connect import Store

CLOSE = 0.8  # of a limit: a baseline that uses more leaves others little room
# What task.yaml has to say to those who take part, and what helps.
STATED: Mapping[Stated, str] = {
    "licence": "write the licence of the data into task.yaml, such as licence: CC BY 4.0",
    "terms": "write into task.yaml under which terms teams take part, or the address of a page, as terms: …",
    "contact": "write into task.yaml whom teams can ask, such as contact: chair@example.org",
}


def ready(config: Config, task: Task, store: Store, clock: Clock) -> list[Check]:
    """The list for ``task``, in the order in which people do these things. Raises E401 when a date is none."""
    return [
        *_data(config, task),
        *_words(task),
        *_baselines(task, store),
        _quota(task),
        budget_check(task, store),
        *_dates(task, clock),
        *strangers(config, task, store),
    ]


def _data(config: Config, task: Task) -> Iterator[Check]:
    yield sources_check([task])
    gone = [d.id for d in task.datasets.values() if d.stage is None and not d.truths.is_dir()]
    if gone:
        yield failed("truths", f"not there: {', '.join(gone)}", f"runner task check {task.id}")
    else:
        yield hidden_check(config, [task])
    yield kernel_check(config, [task])
    if task.demo:
        what = "demo: true: blinded data may lie in the tree, and dates are not enforced"
        yield caution("demo", what, f"remove demo from task.yaml; then: runner task hide {task.id}")


def _words(task: Task) -> Iterator[Check]:
    """What the task has to say to those who take part, of each of its datasets."""
    if task.title == task.id:  # as it was made
        yield caution("title", f"it is still {task.title}", "write title and description into task.yaml")
    for name, fix in STATED.items():
        by_dataset = task.stated(name)
        silent = [dataset for dataset, text in by_dataset.items() if not text]
        if silent:
            of = "" if len(silent) == len(by_dataset) else f" of {', '.join(silent)}"
            yield caution(name, f"task.yaml says nothing{of}", fix)
        else:
            yield passed(name, "; ".join(dict.fromkeys(by_dataset.values())) or "no dataset needs one")


def _baselines(task: Task, store: Store) -> Iterator[Check]:
    """Whether each baseline was run and scored in every cell of its tables, and how near it came to the limits."""
    from runner.records.store.queries import runs

    named = {
        (table.baseline, cell)
        for table in task.tables.values()
        for cell in table.cells
        if table.baseline and task.datasets[cell.dataset].stage is None
    }
    if not named:
        yield failed(
            "baseline", "no table names one", "write baseline: team/software into a table of task.yaml"
        )
        return
    latest: dict[tuple[str, object], Run] = {
        (f"{run.submission.team}/{run.submission.software}", run.cell): run
        for run in runs(store, [task], task=task.id)
    }
    for name in sorted({name for name, _ in named if name}):
        wanted = [cell for one, cell in named if one == name]
        mine = [latest[name, cell] for cell in wanted if (name, cell) in latest]
        team, _, software = name.partition("/")
        scored = [run for run in mine if run.outcome.name == "scored"]
        if len(scored) < len(wanted):
            what = f"{name} is scored in {len(scored)} of {len(wanted)} cells of its tables"
            send = f"runner submit --team {team} --software {software}; "
            yield failed("baseline", what, f"{'' if mine else send}runner evaluate --task {task.id}")
            continue
        yield passed("baseline", f"{name} is scored in all {len(wanted)} cells of its tables")
        yield _limits(task, name, scored)


def _limits(task: Task, name: str, scored: Iterable[Run]) -> Check:
    limits = task.limits
    shares = {"memory": 0.0, "wall_clock": 0.0, "cpu_time": 0.0}
    for run in scored:
        for key, used, most in (
            ("memory", run.memory_peak, limits.memory),
            ("wall_clock", run.wall_seconds, limits.wall_clock),
            ("cpu_time", run.cpu_seconds, limits.cpu_time),
        ):
            if used is not None and most is not None:
                shares[key] = max(shares[key], used / most)
    said = ", ".join(f"{share:.0%} of {key}" for key, share in shares.items() if share)
    near = [key for key, share in shares.items() if share > CLOSE]
    if near:
        return caution("limits", f"{name} uses {said}", f"raise {', '.join(near)} under limits in task.yaml")
    return passed("limits", f"{name} uses {said or 'what was not measured'}")


def _quota(task: Task) -> Check:
    quota = task.quota
    said = f"{quota.submissions:,} submissions a team, {quota.attempts:,} attempts a run"
    if "quota" in task.definition:
        return passed("quota", said)
    return caution("quota", f"{said}: the default, nobody set it", "write quota into task.yaml")


def _dates(task: Task, clock: Clock) -> Iterator[Check]:
    """The dates of the task, and of datasets that have some of their own."""
    dates, now = calendar(task), clock.now()
    spans = {"dates": (dates.opens, dates.closes)} if dates.phases.keys() != task.datasets.keys() else {}
    for name, phase in dates.phases.items():
        spans[f"dates: {name}"] = (phase.opens or dates.opens, phase.closes or dates.closes)
    if "announced" in task.definition:
        if dates.announced is None:
            fix = "remove announced from task.yaml, or write a date"
            yield caution("web", "announced: never: the web does not show the task", fix)
        else:
            yield passed("web", f"shown from {dates.announced.own}")
    for name, (opens, closes) in spans.items():
        if closes is None:
            yield caution(name, "it never closes", "write closes into task.yaml")
        elif closes.end <= now:
            yield failed(name, f"it has closed: {closes.own}", "write a later date for closes into task.yaml")
        elif opens is None:
            yield caution(name, "it is open from now on", "write opens into task.yaml")
        else:
            yield passed(name, f"opens {opens.own}, closes {closes.own}")
