"""The command that checks a task, and how its report is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import tasks
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.doctor.checks import Check
    from runner.execution.check_measures import Answer
    from runner.execution.trials.prove import Ordered
    from runner.model.config import Config
    from runner.model.task import Task
    from runner.tasks.check_contents import Contents
    from runner.tasks.views import ViewSummary


@tasks.command(
    epilog="Examples:  runner task check vaswani  |  runner task check vaswani --run  |  runner task check vaswani --ready"
)
def check(
    name: options.TaskArgument,
    run: options.ProveOption = False,
    ready: options.ReadyOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Check task.yaml, every file it names, topics, corpus, judgments and baselines against one another, and whether the
    evaluator image can compute the measures; say what is there and what each scenario sees. --run proves it with its
    baseline, and with outputs that the evaluator makes from the truths (they never leave its container). --ready says what is
    still to be done before it opens.
    """
    from runner.execution.check_measures import refusal
    from runner.tasks import compose
    from runner.tasks.files import view_sights
    from runner.tasks.tables import doubts

    where = context.config()
    task = context.load_task(where, name)
    contents = _contents(where, task)
    if compose.write(task):
        output.say(f"tasks/{task.id}/compose.yaml was written anew from task.yaml")
    output.say(f"{name}: task.yaml and its files are fine")
    _say_demo(task)
    _show_contents(contents, statistics=not as_json)
    for doubt in (doubtful := doubts(task)):
        output.say(f"warning: {doubt}")
    missing = _missing(task)
    measures = _measures(where, task)
    sights = view_sights(task) if any(scenario.rules for scenario in task.scenarios.values()) else []
    if sights and not as_json:
        _show_sights(sights)
    ordered, results = _proofs(where, task, show=not as_json) if run else ([], [])
    good = all(result["good"] for result in results) and all(one.computed is not False for one in measures)
    listed = _ready(where, task, show=not as_json) if ready else []
    good = good and not any(one.wrong for one in ordered) and all(check.status != "FAIL" for check in listed)
    if as_json:
        output.as_json(
            {
                "task": name,
                "good": good,
                "runs": results,
                "order": [one.as_dict() for one in ordered],
                "ready": [check.as_dict() for check in listed],
                "views": [sight.as_dict() for sight in sights],
                "missing": missing,
                "contents": [one.as_dict() for one in contents],
                "doubts": doubtful,
                "measures": [answer._asdict() for answer in measures],
            }
        )
    if (refused := refusal(task, measures)) is not None:
        raise refused
    if not good:
        raise typer.Exit(1)


def _say_demo(task: Task) -> None:
    """That what is blinded in a demo is in everybody's reach."""
    if task.demo and (blinded := [d.id for d in task.datasets.values() if d.visibility == "blinded"]):
        output.say(
            f"{task.id} is a demo: what is blinded ({', '.join(blinded)}) may lie in the tree, and hides nothing"
        )


def _ready(where: Config, task: Task, *, show: bool) -> list[Check]:
    """The organiser's list before the task opens; also printed with ``show``."""
    from runner.doctor.ready import ready
    from runner.model.clock import SystemClock

    with context.store(where) as store:
        found = ready(where, task, store, SystemClock())
    if show:
        output.checks(found)
    return found


def _proofs(where: Config, task: Task, *, show: bool) -> tuple[list[Ordered], list[dict[str, Any]]]:
    """What outputs of a known order score, and what the baselines do; both also printed with ``show``."""
    from runner.execution.trials.prove import prove, prove_order

    machine = context.machine(where)
    ordered = prove_order(machine, task, output.say)
    if show:
        _show_order(ordered)
    results = prove(machine, task, output.say, context.registered_baselines(where, task))
    if show:
        _show_proof(results)
    return ordered, results


def _show_order(ordered: list[Ordered]) -> None:
    """What outputs of a known order showed, in a line for each measure, and what is wrong."""
    rows = [
        (
            one.dataset,
            one.scenario,
            measure,
            " > ".join(output.figure(value) for value in values.values()),
        )
        for one in ordered
        for measure, values in one.values.items()
    ]
    if rows:
        output.table(("dataset", "scenario", "measure", "best > … > worst output"), rows)
    for one in ordered:
        where = f"{one.dataset}, {one.scenario}"
        if one.why:
            output.say(f"not proven: the order of outputs on {where}: {one.why}")
        if one.unproven:
            output.say(f"not proven: the order of outputs on {where} by {', '.join(one.unproven)}")
        for what in one.wrong:
            output.say(f"FAIL: {where}: {output.printable(what)}")


def _show_proof(results: list[dict[str, Any]]) -> None:
    output.table(
        ("software", "dataset", "scenario", "outcome", "scores", "why"),
        [
            (r["software"], r["dataset"], r["scenario"], r["outcome"], ", ".join(f"{k} {v:.4f}" for k, v in r["scores"].items()), r["why"])
            for r in results
        ],
    )  # fmt: skip


def _contents(where: Config, task: Task) -> list[Contents]:
    """What is in the data of each dataset. Raises one error with all that is wrong with files, data and baselines."""
    from runner.model.problems import refuse
    from runner.submissions.load import baseline_problems
    from runner.tasks.check_contents import read_contents
    from runner.tasks.check_data import task_problems

    problems = task_problems(task, where, registered=context.registered_baselines(where, task))
    contents = read_contents(task, where, output.say)
    problems += [problem for one in contents for problem in one.problems]
    problems += baseline_problems(task, where)
    try:
        refuse(problems, f"the files of the task {task.id} are not right")
    except RunnerError:
        _show_contents(contents, statistics=False)
        raise
    return contents


def _show_contents(contents: list[Contents], *, statistics: bool) -> None:
    """Warnings, what was not read, and with ``statistics`` how much is there."""
    import textwrap

    for one in contents:
        for line in one.lines() if statistics else ():
            output.data("\n".join(textwrap.wrap(output.printable(line), 80, subsequent_indent="    ")))
        for warning in one.warnings:
            output.say(f"warning: {warning}")
    unchecked: dict[str, list[str]] = {}
    for one in contents:
        if one.unchecked:
            unchecked.setdefault(one.unchecked, []).append(one.dataset)
    for why, names in unchecked.items():
        output.say(f"not read against one another: {', '.join(names)} ({why})")


def _measures(where: Config, task: Task) -> list[Answer]:
    """What the evaluator image says of each measure; nothing, and why, where it cannot be asked."""
    from runner.execution.check_measures import Answer, ask
    from runner.provision.engine import open_engine
    from runner.provision.images import images

    try:
        engine = open_engine(where, output.say)
        default = images(engine)["evaluator"].id if task.evaluator_image is None else ""
        answers = ask(engine, task, default)
    except RunnerError as error:
        why = f"{error.what} ({error.code})"
        answers = [Answer(m.id, m.measure, None, why) for m in task.measures.values()]
    names = ", ".join(output.printable(one.measure) for one in answers if one.computed)
    if names:
        output.say(f"the evaluator image computes {names}")
    unknown: dict[str, list[str]] = {}
    for one in answers:
        if one.computed is None:
            unknown.setdefault(one.why, []).append(output.printable(one.measure))
    for why, found in unknown.items():
        output.say(
            f"not checked: whether the evaluator image computes {', '.join(found)}: {output.printable(why)}"
        )
    return answers


def _missing(task: Task) -> list[dict[str, Any]]:
    """Files that still have to be fetched; said, because what is not there was not checked."""
    from runner.tasks.files import missing_sources

    found = [
        {"dataset": dataset.id, "path": source.name, "url": source.url, "size": source.size}
        for dataset in task.datasets.values()
        for source in missing_sources(dataset)
    ]
    for dataset in dict.fromkeys(str(entry["dataset"]) for entry in found):
        names = ", ".join(str(entry["path"]) for entry in found if entry["dataset"] == dataset)
        output.say(
            f"not checked: {dataset}, of which {output.printable(names)} have not been fetched "
            f"(runner data pull {task.id} --dataset {dataset})"
        )
    return found


def _show_sights(sights: list[ViewSummary]) -> None:
    """What each scenario sees, one line a file; datasets where it is the same stand together."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for sight in sights:
        for name, found in sight.files.items():
            fields, hidden = found or ([], [])
            seen = ", ".join(fields) if found else "the whole file"
            rows.setdefault((sight.scenario, name, seen, ", ".join(hidden)), []).append(sight.dataset)
        for name in sight.unseen:
            rows.setdefault((sight.scenario, name, "not seen", ""), []).append(sight.dataset)
    ordered = sorted(rows.items(), key=lambda row: [s.scenario for s in sights].index(row[0][0]))
    output.table(
        ("scenario", "datasets", "file", "sees", "hidden"),
        [(key[0], ", ".join(datasets), *key[1:]) for key, datasets in ordered],
    )
