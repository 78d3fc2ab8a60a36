"""The names of tasks, teams, softwares and datasets: what may be one, and which people would take for each other.

Teams and softwares are called as they call themselves (:data:`IDENTIFIER`); tasks, datasets and the rest keep to lower case
(:data:`NAME`). The schemas have both patterns as ``$defs`` called ``identifier`` and ``name``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runner.model.errors import RunnerError
from schemas import show

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
IDENTIFIER = re.compile(r"[A-Za-z0-9](?:(?:[A-Za-z0-9_-]|\.(?!\.)){0,38}[A-Za-z0-9])?")
BASELINES = "baselines"  # the team whose softwares the organiser brings along

# What audiences, commands and messages mean by a word of their own: no team is called so.
WORDS = {"all", "evaluator", "organiser", "organizer", "platform", "proctor", "public", "runner"}
# Files that some systems take for devices, whatever follows after a dot.
_DEVICES = frozenset(
    {"aux", "con", "nul", "prn", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
)
_RULES = {
    True: "use letters, digits, _, - and single dots inside, with a letter or digit at both ends, at most 40 characters",
    False: "use lower-case letters, digits and hyphens, starting with a letter or digit, at most 40",
}
_SEPARATORS = str.maketrans("._", "--")
_SHAPES = str.maketrans("OolI", "0011")


def check_name(noun: str, name: str, why: str = "") -> None:
    """Raise E208, with ``why``, unless ``name`` may be that of a ``noun``."""
    free = noun in ("team", "software")
    if not (IDENTIFIER if free else NAME).fullmatch(name):
        raise RunnerError("E208", f'"{show(name)}" is not a name for a {noun}', why=why, fix=_RULES[free])
    if word := reserved(noun, name):
        why = f"{word} is a word of the platform's own, or a device of some systems."
        raise RunnerError("E208", f'no {noun} may be called "{name}"', why=why, fix="choose another name")


def reserved(noun: str, name: str) -> str:
    """The reserved word that ``name`` is or looks like; empty when a ``noun`` may be called so."""
    first = name.partition(".")[0].casefold()
    if first in _DEVICES:
        return first
    words = {"team": WORDS | ({BASELINES} - {name}), "software": {"all"}}.get(noun, set())
    return name if name in words else look_alike(name, sorted(words)) or ""


def check_apart(noun: str, name: str, known: Iterable[str]) -> None:
    """Raise E215 when another ``noun`` is ``known`` that people, or a file system, would take for ``name``.

    The same name is no other one: whoever has it is meant.
    """
    if other := look_alike(name, known):
        why = f'There is the {noun} "{show(other)}", which looks the same or nearly so.'
        fix = f'write "{show(other)}" if that is the one, or choose another name'
        raise RunnerError("E215", f'"{show(name)}" cannot be told from another {noun}', why=why, fix=fix)


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """The first other name among ``known`` that differs only in case, in which of ``.``, ``_`` and ``-`` stands, or in
    letters and digits that look the same (``O`` and ``0``; ``l``, ``I`` and ``1``)."""
    plain, drawn = _key(name), _key(name.translate(_SHAPES))
    others = (one for one in known if one != name)
    return next((one for one in others if _key(one) == plain or _key(one.translate(_SHAPES)) == drawn), None)


def id_part(name: str) -> str:
    """``name`` as a part of ids and of folders' names, where dots part: in lower case, ``_`` for a dot.

    Names that give the same part look alike; the names of before there were capitals and dots are their own.
    """
    return name.lower().replace(".", "_")


def _key(name: str) -> str:
    return name.translate(_SEPARATORS).casefold()
