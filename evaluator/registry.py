"""Where kinds of tasks are found: a folder each in ``evaluator/kinds``, or an installed package (:mod:`schemas.external`).

The only module of the evaluator that imports by name. What a kind has beside its module ``kind`` it may leave out:
``codes`` (what can be found wrong, ``CODES``), ``command`` (commands of its own, ``add_commands``), ``data`` (what is wrong with a
dataset, ``check_data``), ``page`` (what the reference says of its measures by name) and ``proof`` (outputs whose order is known, ``proof``).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from schemas.external import external_kinds

FOLDER = Path(__file__).parent / "kinds"
DEFAULT = "adhoc"  # what a file is taken for where nobody says of which kind it is


@cache
def built_in() -> list[str]:
    """The names of the kinds that come with the evaluator, sorted."""
    return sorted(path.parent.name.replace("_", "-") for path in FOLDER.glob("[a-z]*/kind.py"))


def names() -> list[str]:
    """The names of all kinds, sorted."""
    return sorted({*built_in(), *external_kinds()})


def part(kind: str, name: str) -> ModuleType | None:
    """The module ``name`` of a kind; None when there is no such kind, or when it has no such module."""
    if kind in built_in():
        package = f"evaluator.kinds.{kind.replace('-', '_')}"
    elif kind in external_kinds():
        package = f"{external_kinds()[kind].value}.evaluator"
    else:
        return None
    try:
        return import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (package, f"{package}.{name}"):
            raise
        return None
