"""Looking at runs: runs, show, logs, export. Each for an audience."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.model.errors import RunnerError, no_such

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail
    from runner.views.audience import Audience
    from runner.views.redact import RunView


def _detail(
    where: Config, store: Store, run: str, audience: Audience
) -> tuple[RunDetail, Dataset, Task | None]:
    """One run, its dataset, and its task while there is one; see :func:`runner.views.listing.looked_up`."""
    from runner.views.listing import looked_up

    return looked_up(store, context.all_tasks(where), audience, run)


@app.command(
    epilog="Examples:  runner runs  |  runner runs --task vaswani --team mine  |  runner runs --as team:mine --json"
)
def runs(
    task: options.TaskOption = None,
    team: options.TeamOption = None,
    dataset: options.DatasetOption = None,
    submission: options.SubmissionOption = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="Only this outcome, for example failed.")
    ] = None,
    as_: options.AsOption = "organiser",
    to: options.ServerOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """List runs with what became of them."""
    from typing import get_args

    from runner.model.outcome import Name
    from runner.model.run import Selection
    from runner.views.listing import listed_runs

    if outcome not in (None, *get_args(Name)):
        fix = f"use one of {', '.join(get_args(Name))}"
        raise no_such("outcome", outcome, get_args(Name), fix=fix, code="E101")
    if to is not None:
        from runner.cli.remote.looking import runs_at

        wishes = {"task": task, "team": team, "dataset": dataset, "submission": submission}
        _list(runs_at(to, wishes, outcome), as_json)
        return
    where, audience = context.config(), context.audience(as_)
    wanted = Selection(task, team, dataset, submission)
    with context.store(where) as store:
        views = [
            listed.view
            for listed in listed_runs(store, context.all_tasks(where), audience)
            if wanted.takes(listed.run) and outcome in (None, listed.run.outcome.name)
        ]
    _list(views, as_json)


def _list(views: Sequence[RunView], as_json: bool) -> None:
    """Print runs."""
    if as_json:
        output.as_json([dict(view) for view in views])
    elif not views:
        output.say("no runs")
    else:
        columns = ("run", "task", "outcome", "verdict", "time", "memory", "why")
        output.table(
            columns,
            [_row(view) for view in views],
            right=("time", "memory"),
            drop=("memory", "time", "verdict", "task"),
            texts=("why",),
        )


def _row(view: RunView) -> tuple[str, ...]:
    """A run in the table of runs."""
    from runner.views.show.presentation import memory_of, time_of

    outcome = view["outcome"]
    name = outcome["name"] + (" (stale)" if view["stale"] else "")
    name += f" ({view['review']['state']})" if view["review"] else ""
    memory = memory_of(view) if view["attempts"] or view["steps"] else ""
    says = "" if outcome["name"] == "scored" else outcome["says"]
    why = outcome["reason"] or " ".join(view["stale"]) or says
    return view["run"], view["task"], name, outcome["verdict"] or "", time_of(view), memory, why


@app.command(
    epilog="Examples:  runner show baselines.bm25.1a2b3c4d.test  |  runner show RUN --as team:baselines  |  runner show 'RUN#1'  |  runner show RUN --topics  |  runner show RUN --topic 301  |  runner show RUN --html run.html"
)
def show(
    run: options.RunArgument,
    topic: options.InsideOption = None,
    topics: Annotated[
        bool, typer.Option("--topics", help="The scores of all topics; default: of the worst and the best.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help="Write it as one page, which needs neither scripts nor a network: all, or what was chosen.",
        ),
    ] = None,
    as_: options.AsOption = "organiser",
    to: options.ServerOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show one run: outcome, why, whose fault, what next, findings, resources, files, scores by topic; its debates, reports
    or wrong records.
    """
    from runner.cli import render
    from runner.records.commit import record_export
    from runner.views.hints import hint
    from runner.views.redact import redact_run
    from runner.views.show.contents import inside
    from runner.views.show.topics import medians_for, topics_of

    if to is not None:
        from runner.cli.remote.looking import show_at

        show_at(to, run, as_json=as_json, part=bool(topic or topics or page))
        return
    where, audience = context.config(), context.audience(as_)
    with context.store(where) as store:
        found, dataset, task = _detail(where, store, run, audience)
        view = redact_run(found, audience, dataset)
        within = inside(found, task, audience, dataset).choose(topic)
        helps = hint(view, task)
        medians = medians_for(store, task, view, dataset)
        by_topic = topics_of(view, task, medians)
        if page is not None:
            written = within.write_page(page, view, by_topic, helps, task)
            record_export(store, task, "page", view["run"], "html", audience, written)
    if page is not None:
        output.say(f"{page} has the run as {audience} may see it")
    if as_json:
        medians_data = None if medians is None else medians.as_dict()
        output.as_json({**view, **within.data(), "topic_medians": medians_data, "hint": helps})
    elif page is None:
        render.show(view, by_topic, all_topics=topics)
        for line in within.lines():
            output.data(line)
        render.hint(helps)


@app.command(
    epilog="Examples:  runner logs RUN  |  runner logs RUN --evaluator  |  runner logs RUN --sidecar driver  |  runner logs RUN --follow"
)
def logs(
    run: options.RunArgument,
    evaluator: Annotated[
        bool, typer.Option("--evaluator", help="The evaluator's log (organiser only).")
    ] = False,
    sidecar: Annotated[
        str | None,
        typer.Option(
            "--sidecar",
            help="The log of a container beside an interactive software: search, user, driver … (organiser only).",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Show what a run writes as it comes; wait for one that has not begun."
        ),
    ] = False,
    as_: options.AsOption = "organiser",
    to: options.ServerOption = None,
) -> None:
    """Print the log of a run: stdout to stdout, stderr to stderr, control characters escaped."""
    import sys

    from runner.views.audience import check_log
    from runner.views.logs import log_lines

    if to is not None:
        from runner.cli.remote.looking import logs_at

        if evaluator or sidecar or follow:
            fix = "leave --evaluator, --sidecar and --follow away"
            raise RunnerError("E101", "a server gives the log of a software, once it is sealed", fix=fix)
        logs_at(to, run)
        return
    where, audience = context.config(), context.audience(as_)
    with context.store(where) as store:
        found, dataset, _ = _detail(where, store, run, audience)
        if follow:  # waiting alone would show when the run ends
            check_log(found, audience, dataset, evaluator=evaluator, sidecar=sidecar)
            from runner.cli.live import follow as follow_live

            tasks = context.all_tasks(where)
            if follow_live(where, store, found.run.id, tasks, show=not evaluator and sidecar is None):
                return
            found, dataset, _ = _detail(where, store, run, audience)
        if sidecar is not None:
            for line in log_lines(found, audience, dataset, sidecar=sidecar):
                sys.stdout.write(line + "\n")
            return
        for stream, file in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            for line in log_lines(found, audience, dataset, stream, evaluator=evaluator):
                file.write(line + "\n")


@app.command(epilog="Examples:  runner export RUN /tmp/run")
def export(
    run: options.RunArgument,
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    as_: options.AsOption = "organiser",
) -> None:
    """Copy the files of a run, with its evaluation, TIRA's evaluation.prototext and an ir-metadata.yml of what was measured, into a new folder."""
    from runner.records.commit import record_export
    from runner.records.integrity import check_whole
    from runner.views.audience import may_export
    from runner.views.export import export_run
    from runner.views.redact import redact_run

    where, audience = context.config(), context.audience(as_)
    with context.store(where) as store:
        found, dataset, task = _detail(where, store, run, audience)
        may_export(found, audience, dataset)
        for sealed, manifest in found.sealed():
            check_whole(store.archive, sealed, manifest)
        names = {name: measure.measure for name, measure in task.measures.items()} if task else {}
        view = redact_run(found, audience, dataset)
        written = export_run(found, view, folder, names)
        manifests = " ".join(manifest for _, manifest in found.sealed())
        record_export(store, task, "run", view["run"], "files", audience, manifests)
    output.say(f"{written} files in {folder}")
