"""Commands start quickly: they import no heavy package that they do not need. Times are in benchmarks/startup.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest
import typer

from runner.cli.app import app
from runner.cli.help import name_of
from runner.cli.main import COMMANDS, load_commands
from tests.worlds.mini import Project, Said

HEAVY = {
    "docker", "ir_measures", "jinja2", "jsonschema", "numpy", "pandas", "pydantic", "requests", "scipy", "sqlalchemy", "yaml",
}  # fmt: skip
READS_FILES = {"yaml", "jsonschema"}
ASKS_THE_ENGINE = {"docker", "requests"}


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("--help", set()),
        ("submit --help", set()),
        ("task list", READS_FILES),
        ("task check mini", READS_FILES | ASKS_THE_ENGINE),
        ("runs", READS_FILES | {"sqlalchemy"}),
        ("leaderboard mini", READS_FILES | {"sqlalchemy"}),
        ("show nothing", READS_FILES | {"sqlalchemy"}),
        ("doctor", READS_FILES | ASKS_THE_ENGINE | {"sqlalchemy"}),
    ],
)
def test_a_command_imports_what_it_needs(command: str, needed: set[str], project: Project) -> None:
    assert HEAVY & imported(project, command.split()) <= needed


@pytest.mark.slow
@pytest.mark.engine
def test_local_evaluation_imports_no_host_code(live: Project, runner_cli: Callable[..., Said]) -> None:
    live.software("good")
    submitted = runner_cli("submit", "-t", "alpha", "--no-check", "--json").json
    found = imported(live, ["evaluate", "--run", f"{submitted[0]['submission']}.test"])
    assert runner_cli("runs", "--json").json[0]["outcome"]["name"] == "scored"
    of_hosts = {name for name in found if name.startswith("runner.execution.cluster.")}
    assert of_hosts == {f"runner.execution.cluster.{name}" for name in ("places", "roles", "tails")}
    assert not {"distributed", "fsspec", "jinja2", "pandas", "pydantic", "scipy"} & found
    commands = [name for name in found if name.startswith("runner.cli.commands.")]
    assert commands == ["runner.cli.commands.evaluate"]


def imported(project: Project, words: Sequence[str]) -> set[str]:
    """The modules that a process of ``runner`` with these words has imported when it ends well."""
    code = (
        f"import sys; sys.argv = ['runner', *{[*words]!r}]\n"
        "from runner.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('IMPORTED', *sorted(sys.modules))"
    )
    environment = {**os.environ, **project.environment()}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    _, *found = done.stdout.splitlines()[-1].split()
    return {*found}


def test_only_what_is_asked_for_is_made_ready() -> None:
    load_commands()
    every = names(app)
    assert names(app.only("runs")) == ["runs"] and names(app.only("task")) == ["task"]
    assert set(names(app.only("rnus"))) == set(names(app.only("--debug"))) == set(every)
    assert [names(app.only(name)) for name in every] == [[name] for name in every]
    assert names(app) == every and len(every) > 40


def names(commands: typer.Typer) -> list[str]:
    """What can be the first word of a command line."""
    return list(typer.main.get_command(commands).commands)  # type: ignore[attr-defined]


def test_the_modules_of_commands_register_the_words_by_which_they_are_found() -> None:
    load_commands()
    modules = defaultdict(set)
    for one in app.registered_commands:
        modules[one.callback.__module__].add(name_of(one))  # type: ignore[union-attr]
    for group in app.registered_groups:
        for one in group.typer_instance.registered_commands:  # type: ignore[union-attr]
            modules[one.callback.__module__].add(group.name)  # type: ignore[union-attr]
    said = {f"runner.cli.commands.{module}": {*words} for module, words in COMMANDS.items()}
    assert said == modules, "say in runner/cli/main.py which first words a module of commands has"
