"""The names of tasks, teams, softwares and datasets."""

from __future__ import annotations

import re

from runner.model.errors import RunnerError
from schemas import show

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def check_name(noun: str, name: str, why: str = "") -> None:
    """Raise E208, with ``why``, unless ``name`` may be that of a ``noun``."""
    if not NAME.fullmatch(name):
        fix = "use lower-case letters, digits and hyphens, starting with a letter or digit, at most 40"
        raise RunnerError("E208", f'"{show(name)}" is not a name for a {noun}', why=why, fix=fix)
