"""Options that say which runs a command is about, the same for every command that takes them."""

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, get_type_hints

from runner.cli import context

if TYPE_CHECKING:
    from runner.execution.plan import Selection


def takes_selection(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of :func:`_selection`, which is given what they say as ``wanted``, its first parameter."""
    options = inspect.signature(_selection)
    own = inspect.signature(command)

    @functools.wraps(command)
    def with_options(**given: object) -> None:
        chosen = {name: given.pop(name) for name in options.parameters}
        command(_selection(**chosen), **given)  # type: ignore[arg-type]

    # Types, not their names: typer would look names up here, and the command's module knows them.
    named = {name: hint for name, hint in command.__annotations__.items() if name != "wanted"}
    hints = get_type_hints(SimpleNamespace(__annotations__=named), command.__globals__, include_extras=True)
    parameters = [*options.parameters.values()]
    parameters += [p.replace(annotation=hints[p.name]) for p in [*own.parameters.values()][1:]]
    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def _selection(
    everything: context.AllOption = False,
    task: context.TaskOption = None,
    team: context.TeamOption = None,
    dataset: context.DatasetOption = None,
    submission: context.SubmissionOption = None,
    run: context.RunOption = None,
) -> "Selection":
    """The selection that the options say. Raises E101 when they say nothing."""
    from runner.execution.plan import Selection
    from runner.model.errors import RunnerError

    named = Selection(task, team, dataset, submission, run)
    if not everything and named == Selection():
        raise RunnerError(
            "E101",
            "nothing was named",
            why="An evaluation can take hours.",
            fix="runner evaluate --all, or name a --task, --team or --run",
        )
    return named
