"""The names of tasks, teams, softwares and datasets: what may be one, and which people would take for each other.

Teams and softwares are called as they call themselves (:data:`IDENTIFIER`); tasks, datasets and the rest keep to lower case
(:data:`NAME`). The schemas have both patterns as ``$defs`` called ``identifier`` and ``name``. Beside
its name, which ids and folders are made of, a team or software may have a display name, any text, for people.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from runner.model.errors import RunnerError
from schemas import show
from schemas.words import blank

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
# What of ASCII looks alike is that of Unicode's confusables (UTS 39), and o as O: case does not tell names apart.
_SHAPES = str.maketrans("OolI", "0011")
_SEPARATORS = re.compile(r"[._-]+")
_M = re.compile("rn", re.IGNORECASE)
_SCRIPTS = {
    "LATIN",
    "GREEK",
    "CYRILLIC",
    "ARMENIAN",
    "CHEROKEE",
    "COPTIC",
    "LISU",
}  # that share shapes of letters


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

    The same name is no other one: whoever has it is meant, also where names of before this rule stand beside it.
    """
    there = tuple(known)
    if name not in there and (other := look_alike(name, there)):
        why = f'There is the {noun} "{show(other)}", which looks the same or nearly so.'
        fix = f'write "{show(other)}" if that is the one, or choose another name'
        raise RunnerError("E215", f'"{show(name)}" cannot be told from another {noun}', why=why, fix=fix)


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """The first other name among ``known`` that differs only in case, in which of ``.``, ``_`` and ``-`` stand between words and how
    many of them, or in letters and digits that look the same (``O`` and ``0``; ``l``, ``I`` and ``1``; ``rn`` and ``m``)."""
    folded, drawn, capitals = _drawn(name)

    def alike(other: str) -> bool:
        by_case, by_shape, large = _drawn(other)
        if len(by_case) != len(folded):
            return False
        each = zip(folded, by_case, drawn, by_shape, strict=True)
        return large == drawn or capitals == by_shape or all(a == b or c == d for a, b, c, d in each)

    return next((one for one in known if one != name and alike(one)), None)


DISPLAYED = ("display_name", "team_display_name")  # how fields are called that hold display names
MAX_DISPLAY = 100  # characters
_STACKED = 3  # accents on one letter, at most


def display_problem(text: str) -> str:
    """Why ``text`` may not be the display name of a team or software; empty when it may."""
    if not 0 < len(text) <= MAX_DISPLAY or blank(text):
        return f"must have 1 to {MAX_DISPLAY} characters, some of them to be seen"
    hidden = next((one for one in text if not one.isprintable()), None)
    if hidden is not None:
        return f"holds the character {show(hidden)}, which does not print"
    if text != text.strip():
        return "must not begin or end with a blank"
    row = 0
    for one in text:
        row = row + 1 if unicodedata.category(one) in ("Mn", "Me") else 0
        if row > _STACKED:
            return "has too many accents on one letter"
    return ""


def paragraph_problem(text: str) -> str:
    """Why ``text`` is not plain text of one line or several; empty when it is."""
    hidden = next((one for one in text if not one.isprintable() and one not in "\t\r\n"), None)
    return "" if hidden is None else f"holds the character {show(hidden)}, which does not print"


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"  # RFC 5322, section 3.2.3
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_MAIL = re.compile(
    rf"(?=[^@]{{1,64}}@)(?=.{{1,254}}\Z){_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+(?:[A-Za-z]{{2,63}}|(?=[Xx][Nn]--){_LABEL})"
)


def contact_problem(text: str) -> str:
    """Why ``text`` cannot be the mail address by which somebody is reached; empty when it can. Nobody writes to it here.

    Other letters than ASCII's would need SMTPUTF8 (RFC 6531) at every server on the way: domains have their form in ASCII (RFC 5890), names before the @ have none.
    """
    if problem := display_problem(text):
        return problem
    if not text.isascii():
        return "has letters that not every mail server takes: write the domain in ASCII (xn--…), or another address"
    return "" if _MAIL.fullmatch(text) else "is no mail address, such as ada@example.org"


ABOUT = ("paper", "affiliation")  # what a task may ask a team to say beside a description
_ADDRESS = re.compile(
    r"https?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9/?#:@!$&()*+,;=._~%-]*)?"
)
MAX_ADDRESS = 300  # characters


def address_problem(text: str) -> str:
    """Why ``text`` may not be the address of a paper; empty when it may. Users and passwords in it are refused."""
    if len(text) > MAX_ADDRESS:
        return f"must have at most {MAX_ADDRESS} characters"
    return "" if _ADDRESS.fullmatch(text) else "is no plain address that begins with https:// or http://"


SAID = {  # how each is written correctly
    **dict.fromkeys(("display_name", "affiliation"), "write plain text on one line"),
    "team_display_name": "write plain text on one line, each word in letters of one script",
    "paper": "write its address in full, like https://doi.org/10.1000/1",
}


def text_problem(key: str, text: str) -> str:
    """Why ``text`` may not be what a submission says under ``key`` (of :data:`DISPLAYED` and :data:`ABOUT`); empty when it may."""
    if key == "team_display_name" and (problem := mixed_scripts(text)):
        return problem
    return address_problem(text) if key == "paper" else display_problem(text)


def mixed_scripts(text: str) -> str:
    """That a word of ``text`` has letters of several scripts that share shapes, such as a Cyrillic ``е`` among Latin letters; else empty.

    A word that is all of one script stays whatever it looks like: the name stands beside it.
    """
    for word in re.findall(r"\w+", unicodedata.normalize("NFKC", text)):
        found = {unicodedata.name(one, "").partition(" ")[0] for one in word if one.isalpha()} & _SCRIPTS
        if len(found) > 1:
            first, second = sorted(one.capitalize() for one in found)[:2]
            return f'has {first} and {second} letters in one word, "{show(word, 40)}"'
    return ""


def unasked(said: Mapping[str, Any], task: str, asks: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What a submission says of itself and the task does not take, or does not say and has to: the key, what is wrong, and a fix."""
    for key, rule in asks.items():
        given = bool(str(said.get(key) or "").strip())
        if rule == "off" and given:
            yield key, f'the task "{task}" takes no {key}', f"remove {key}"
        elif rule == "required" and not given:
            example = "https://…" if key == "paper" else "…"
            yield key, f'the task "{task}" asks for the {key}', f'add {key}: "{example}"'


def check_display(noun: str, name: str, text: str, others: Mapping[str, str] = {}) -> None:
    """Raise E208 unless ``text`` may be the display name of the ``noun`` called ``name``; E215 when it is another's.

    ``others``: the names of the others of its kind, and their display names (empty: none). What only looks like one of these
    in letters of another script is taken: the name itself always stands beside it.
    """
    key = "team_display_name" if noun == "team" else "display_name"
    if problem := text_problem(key, text):
        what = f"the display name of the {noun} {show(name)} {problem}"
        raise RunnerError("E208", what, fix=SAID[key])
    same = display_key(text)
    taken = next((o for o, shown in others.items() if o != name and same in map(display_key, (o, shown))), "")
    if noun == "team" and not taken:
        taken = next((word for word in sorted(WORDS | {BASELINES}) if word != name and same == word), "")
    if taken:
        what = f'the {noun} {show(name)} cannot be shown as "{show(text)}"'
        why = f'The {noun} "{show(taken)}" is called or shown so.'
        raise RunnerError("E215", what, why=why, fix="choose another display name")


@lru_cache(maxsize=10_000)
def display_key(text: str) -> str:
    """What is the same of two display names that differ in case, in blanks and what is not seen, or in how their characters are
    written (NFKC)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # Marks that are not seen take no space; other characters without a glyph do, as blanks.
    seen = (one if not blank(one) else "" if unicodedata.category(one) == "Mn" else " " for one in folded)
    return " ".join("".join(seen).split())


def id_part(name: str) -> str:
    """``name`` as a part of ids and of folders' names, where dots part: in lower case, ``_`` for a dot.

    Names that give the same part look alike; the names of before there were capitals and dots are their own.
    """
    return name.lower().replace(".", "_")


@lru_cache(maxsize=10_000)
def _drawn(name: str) -> tuple[str, str, str]:
    """A name whose characters are equal where they differ in case, one where they are equal when they look the same, and the latter of
    the name in capitals."""
    plain = _M.sub("m", _SEPARATORS.sub("-", name))
    return plain.casefold(), plain.translate(_SHAPES), plain.upper().translate(_SHAPES)
