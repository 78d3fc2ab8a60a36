"""Options and arguments that several commands have, each with its help and completion, and the selection they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.run import Selection


def _completion(names: Callable[[Config], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion from names: never an error, never a slow look."""

    def complete(incomplete: str) -> list[str]:

        try:
            return sorted(name for name in names(context.config()) if name.startswith(incomplete))
        except (RunnerError, OSError):
            return []

    return complete


def _visible(found: Iterable[Path]) -> Iterable[str]:
    return (path.name for path in found if not path.name.startswith("."))


_tasks = _completion(lambda where: (path.parent.name for path in where.tasks.glob("*/task.yaml")))
_teams = _completion(lambda where: (path.name for path in where.submissions.iterdir() if path.is_dir()))
_submissions = _completion(lambda where: _visible(where.registered.iterdir()))
_runs = _completion(
    lambda where: (path.name for path in where.archive.glob("*/*") if not path.parent.name.startswith("."))
)

TaskOption = Annotated[str | None, typer.Option("--task", help="Only this task.", autocompletion=_tasks)]
TeamOption = Annotated[str | None, typer.Option("--team", help="Only this team.", autocompletion=_teams)]
DatasetOption = Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")]
SubmissionOption = Annotated[
    str | None, typer.Option("--submission", help="Only this submission.", autocompletion=_submissions)
]
RunOption = Annotated[
    str | None, typer.Option("--run", help="Only this run, or the beginning of its id.", autocompletion=_runs)
]
AllOption = Annotated[bool, typer.Option("--all", help="Everything that is registered.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Name every run: in the plan, and when it is done.")
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="At most so many containers at once.")
]
ExcelOption = Annotated[
    bool, typer.Option("--excel", help="Print CSV with a byte order mark, so that Excel reads it as UTF-8.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
AsOption = Annotated[
    str, typer.Option("--as", envvar="RUNNER_AS", help="Who looks: organiser, team:NAME or public.")
]
AcceptOption = Annotated[
    bool, typer.Option("--accept", help="Have the new scores count, in the place of the old ones.")
]
DiscardOption = Annotated[
    bool,
    typer.Option("--discard", help="Discard new scores that were not accepted. Nothing is evaluated."),
]
UnitOption = Annotated[
    str | None, typer.Option("--unit", help="What a row is: software or team; default as the table says.")
]
HowOption = Annotated[
    str | None, typer.Option("--how", help="Only rows of this way of taking part: executed or uploaded.")
]
BoardOption = Annotated[
    str | None, typer.Option("--table", help="One of the task's tables; default the first.")
]
RoundOption = Annotated[
    str | None, typer.Option("--round", help="One of the task's rounds; default: everything up to now.")
]
MethodOption = Annotated[
    str | None, typer.Option("--method", help="Only rows of this method: automatic or manual.")
]
WideOption = Annotated[
    bool, typer.Option("--wide", "-w", help="Every column, with run ids and descriptions, however wide.")
]
PickOption = Annotated[
    str | None,
    typer.Option(
        "--pick",
        help="What counts of a row in each cell: latest, best or chosen; default as the table says.",
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Test all rows against this one: a run, its submission, or TEAM/SOFTWARE; default the table's baseline.",
    ),
]
TopicsOption = Annotated[
    str | None,
    typer.Option(
        "--topics",
        help="Over which part of split topics: public, private or all; default those that are open, for the organiser the private ones.",
    ),
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Kept in the event log.")]
MoreOption = Annotated[
    int | None, typer.Option("--submissions", "-n", min=1, max=1000, help="How many more.")
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", help='A later deadline with its zone, such as "2026-05-18 23:59 AoE".'),
]
DeadlineOfOption = Annotated[
    str | None, typer.Option("--dataset", help="The deadline of this dataset instead of the task's.")
]
TimeOption = Annotated[
    str | None, typer.Option("--time", help="How long each of its runs may take, such as 2h.")
]
MemoryOption = Annotated[
    str | None, typer.Option("--memory", help="How much memory each of its runs may use, such as 8GiB.")
]
InsideOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        help="What is inside it on this topic (or field of records), by its name or number, or all. Default: the first.",
    ),
]
PublicDatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="Default: the task's first public dataset.")
]
_team = typer.Option("--team", "-t", help="The team: a folder of submissions/.", autocompletion=_teams)
NeededTeam = Annotated[str, _team]
OneTeamOption = Annotated[str | None, _team]
NeededTask = Annotated[str, typer.Option("--task", help="The task whose rules apply.", autocompletion=_tasks)]
NeededDataset = Annotated[str, typer.Option("--dataset", help="A dataset of the task.")]
RequestArgument = Annotated[
    str, typer.Argument(help="A request, as a hand-in printed it.", show_default=False)
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="NAME",
        help="At a server that you have logged in to (runner login), not on this machine.",
    ),
]
SoftwareOption = Annotated[
    str | None, typer.Option("--software", "-s", help="One software; default all of the team.")
]
ProveOption = Annotated[
    bool,
    typer.Option(
        "--run",
        help="Also run its baseline on every dataset, and prove that it scores; and that outputs made from the truths "
        "score in the right order.",
    ),
]
ReadyOption = Annotated[
    bool,
    typer.Option(
        "--ready",
        help="Also go through the list before opening: data, licence, terms, contact, baselines within the limits, "
        "quota, dates, and what strangers would see of blinded data.",
    ),
]
OutOption = Annotated[Path, typer.Option("--out", help="The folder to write to; made where it is not there.")]
CheckOption = Annotated[bool, typer.Option(help="Run it on the public dataset first.")]

TaskArgument = Annotated[str, typer.Argument(help="A task.", autocompletion=_tasks)]
OnlyTaskArgument = Annotated[str | None, typer.Argument(help="Only this task.", autocompletion=_tasks)]
TeamArgument = Annotated[str, typer.Argument(help="A team.", autocompletion=_teams)]
OnlyDatasetArgument = Annotated[str | None, typer.Argument(help="Only this dataset.")]
DatasetArgument = Annotated[str, typer.Argument(help="A dataset of the task.")]
AccountArgument = Annotated[str, typer.Argument(help="The id of an account, or the name of a team.")]
RoleArgument = Annotated[str, typer.Argument(help="organiser or assistant.")]
MemberOption = Annotated[
    list[str] | None,
    typer.Option("--member", help="The name of a person behind it; may be given several times."),
]
MemberIdOption = Annotated[
    str | None,
    typer.Option("--member", help="Only this person: an id that runner account list --people shows."),
]
ContactOption = Annotated[
    str | None, typer.Option("--contact", help="How they are reached, such as a mail address.")
]
AffiliationOption = Annotated[str | None, typer.Option("--affiliation", help="Where they work.")]
SubjectOption = Annotated[
    str | None, typer.Option("--subject", help="The id that the provider has for them (sub).")
]
MailOption = Annotated[
    str | None, typer.Option("--mail", help="Their mail address, where the provider says that it is theirs.")
]
RegistrationArgument = Annotated[
    str, typer.Argument(help="The account of a registration, as runner team waiting lists it, or its team.")
]
OtherNameOption = Annotated[str | None, typer.Option("--name", help="Call the team so instead.")]
PeopleUrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="How people reach the server, such as https://task.example.org; default: as the front was told.",
    ),
]
HoursOption = Annotated[int, typer.Option("--hours", min=1, max=720, help="How long the link can be used.")]
PeopleOption = Annotated[
    bool, typer.Option("--people", help="Also who is behind each: contact, affiliation, members.")
]
SubmissionArgument = Annotated[str, typer.Argument(help="A submission id.", autocompletion=_submissions)]
SampleOption = Annotated[
    int | None,
    typer.Option("--sample", min=1, help="Execute so many topics only, always the same ones. Default: all."),
]
OnOption = Annotated[
    str | None,
    typer.Option("--on", metavar="HOST", help="Execute it on that host of the cluster. Default: here."),
]
RunArgument = Annotated[
    str,
    typer.Argument(help="A run, as runner runs lists it, or the beginning of its id.", autocompletion=_runs),
]
RunsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Two runs, as runner runs lists them, or the beginnings of their ids.",
        autocompletion=_runs,
        show_default=False,
    ),
]
ReceiptArgument = Annotated[Path, typer.Argument(help="A receipt, as the server gave it.")]
KeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--key", help="A public key of the server, or a file with its keys (from URL/keys). Repeatable."
    ),
]
OnlyRunArgument = Annotated[
    str | None,
    typer.Argument(help="A run, as runner runs lists it, or the beginning of its id.", autocompletion=_runs),
]
RowOption = Annotated[
    str | None,
    typer.Option("--row", metavar="TASK/TABLE/TEAM/SOFTWARE", help="A row of a leaderboard instead."),
]


def selection(everything: bool, *names: str | None) -> Selection:
    """The selection that ``--all`` and names of task, team, dataset, submission and run say. Raises E101 when they say nothing."""
    from runner.model.run import Selection

    named = Selection(*names)
    if not everything and named == Selection():
        fix = "runner evaluate --all, or name a --task, --team or --run"
        raise RunnerError("E101", "nothing was named", why="An evaluation can take hours.", fix=fix)
    return named
