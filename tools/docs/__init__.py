"""The pages that are generated: those named by :func:`pages`, in ``docs/reference``.

Their source are the schemas, the register of error codes and the command lines, so that the pages cannot say
something else than the program does. ``python -m tools.docs`` writes them; ``--check`` compares (exit 1 when
one is out of date).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools.docs.codes import errors, findings, verdicts
from tools.docs.commands import command_lines, runner_commands
from tools.docs.files import archive, evaluator, server, submission, task
from tools.docs.frames import frames
from tools.docs.http_api import http_api, openapi
from tools.docs.measure_pages import measure_pages
from tools.docs.tables import fields_of, table

__all__ = ["fields_of", "folder", "main", "pages", "runner_commands", "table"]


def pages() -> dict[str, str]:
    """Every generated page: file name and text."""
    return {
        "task.md": task(),
        "submission.md": submission(),
        "evaluator-contract.md": evaluator(),
        "errors.md": errors(),
        "findings.md": findings(),
        "cli.md": command_lines(),
        "archive.md": archive(),
        "server.md": server(),
        "verdicts.md": verdicts(),
        **measure_pages(),
        "api.md": frames(),
        "http-api.md": http_api(),
        "openapi.json": openapi(),
    }


def folder() -> Path:
    """Where the pages lie: ``docs/reference`` of the project this module belongs to."""
    return Path(__file__).resolve().parents[2] / "docs" / "reference"


def main(arguments: list[str], where: Path | None = None, say: Callable[[str], None] = print) -> int:
    """Write the pages, or compare with ``--check``. Exit code 0, 1 (out of date) or 2 (usage)."""
    target = folder() if where is None else where
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.docs [--check]", file=sys.stderr)
        return 2
    made = pages()
    old = [
        name
        for name, text in made.items()
        if not (target / name).is_file() or (target / name).read_text("utf-8") != text
    ]
    if arguments:
        for name in old:
            say(f"docs/reference/{name} is out of date; write it with: python -m tools.docs")
        return 1 if old else 0
    target.mkdir(parents=True, exist_ok=True)
    for name in old:
        (target / name).write_text(made[name], "utf-8")
        say(f"docs/reference/{name}")
    return 0
