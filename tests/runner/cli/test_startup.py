"""Commands start quickly: they import no heavy package that they do not need. Times are in benchmarks/startup.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import typer

from runner.cli.app import app
from runner.cli.main import load_commands
from tests.worlds.mini import Project

HEAVY = {
    "docker", "ir_measures", "jinja2", "jsonschema", "numpy", "pandas", "pydantic", "requests", "scipy", "sqlalchemy", "yaml",
}  # fmt: skip
READS_FILES = {"yaml"}  # what is wrong with one, jsonschema says
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
    code = (
        f"import sys; sys.argv = ['runner', *{command.split()!r}]\n"
        "from runner.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', *sorted({HEAVY!r} & sys.modules.keys()))"
    )
    environment = {**os.environ, **project.environment()}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()[-1].split()[1:]) <= needed


def test_only_what_is_asked_for_is_made_ready() -> None:
    load_commands()
    every = names(app)
    assert names(app.only("runs")) == ["runs"] and names(app.only("task")) == ["task"]
    assert set(names(app.only("rnus"))) == set(names(app.only("--debug"))) == set(every), (
        "suggestions need all"
    )
    assert [names(app.only(name)) for name in every] == [[name] for name in every]
    assert names(app) == every and len(every) > 40


def names(commands: typer.Typer) -> list[str]:
    """What can be the first word of a command line."""
    return list(typer.main.get_command(commands).commands)  # type: ignore[attr-defined]
