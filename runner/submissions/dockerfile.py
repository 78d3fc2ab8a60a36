"""Which images a Dockerfile takes something from: every ``FROM``, ``COPY --from``, ``RUN --mount=from`` and ``ONBUILD``.

Versions of the builder read some lines differently (which comments may stand inside an instruction, whether a doubled
escape character goes on with the line, which directives count). A stranger chooses the lines, so every reading is made
and what any of them finds is reported; what is not clear from the text is reported as such. Nothing is ever built.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_BYTES = 256 * 1024  # a Dockerfile is a page of text; this bounds what reading it several times costs

_ESCAPE_LINE = re.compile(r"^\s*#\s*escape\s*=\s*(\S)", re.IGNORECASE | re.MULTILINE)
_HEREDOC = re.compile(r"""<<(-?)\s*("[^"]*"|'[^']*'|[^\s<]+)""")
_VARIABLE = re.compile(
    r"\$(?:(?P<plain>\w+)|\{(?P<name>\w+)(?::(?P<how>[-+?])(?P<word>(?:[^{}$]|\$\w+|\$\{\w+\})*))?\})"
)
_QUOTING = re.compile(r"[\\`\"']")
_STAGE_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_COPYING = ("copy", "add", "run")


@dataclass(frozen=True)
class Source:
    """One image that is used: the line (from 1), the instruction, and the image's name after expansion.

    ``stages`` are the names of own stages that stand before it. Where the name is not clear, ``trouble`` says why
    and ``name`` is what was written.
    """

    line: int
    how: str
    name: str
    trouble: str = ""
    stages: frozenset[str] = frozenset()


class _Unclear(Exception):
    """A name that is not clear from the text."""


def sources(text: str, arguments: Mapping[str, str] | None = None) -> list[Source]:
    """All images that a Dockerfile uses apart from its own earlier stages, by line; ``arguments`` are build arguments.

    The stages that it builds itself and ``scratch`` are left out.
    """
    if len(text.encode("utf-8", "surrogateescape")) > MAX_BYTES:
        return [Source(1, "Dockerfile", "", f"it is larger than {MAX_BYTES} bytes")]
    text = text.removeprefix("\ufeff")
    escapes = {"\\"} | {mark for mark in _ESCAPE_LINE.findall(text) if mark == "`"}
    found: dict[tuple[int, str, str, str], Source] = {}
    for escape, doubled, indented in itertools.product(sorted(escapes), (False, True), (False, True)):
        lines = list(_instructions(text, escape, doubled=doubled, indented=indented))
        for source in [*_used(lines, dict(arguments or {})), *_hidden_stages(text)]:
            found.setdefault((source.line, source.how, source.name, source.trouble), source)
    return sorted(found.values(), key=lambda s: (s.line, s.how, s.name))


def triggers(onbuild: Sequence[str], line: int, stages: frozenset[str]) -> list[Source]:
    """The images that the ``ONBUILD`` triggers of a base image use, reported at the line of its ``FROM``.

    ``stages`` are own stages before that line: a trigger may copy from them.
    """
    found = []
    for trigger in onbuild:
        for source in sources(trigger):
            # By number a trigger can only mean a stage; builders refuse numbers that are none.
            number = source.name.isascii() and source.name.isdigit()
            own = source.how != "FROM" and (number or (source.name.lower() in stages and not source.trouble))
            if not own:
                found.append(
                    Source(line, f"ONBUILD {source.how} of the base image", source.name, source.trouble)
                )
    return found


def _instructions(text: str, escape: str, *, doubled: bool, indented: bool) -> Iterator[tuple[int, str]]:
    """The instructions with the number of their first line, continued lines joined.

    ``doubled``: a doubled escape character at the end of a line does not continue it. ``indented``: a comment inside
    a continued instruction may stand after blanks.
    """
    mark = re.escape(escape)
    ending = re.compile(rf"(?<!{mark}){mark}[ \t]*$" if doubled else rf"{mark}[ \t]*$")
    joined, start = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r")
        if not start:
            line = line.lstrip()
        if (line.lstrip() if indented else line).startswith("#") or (start and not line.strip()):
            continue
        start = start or number
        rest = ending.sub("", line)
        joined += rest
        if rest != line:
            continue
        if joined.strip():
            yield start, joined.strip()
        joined, start = "", 0
    if joined.strip():
        yield start, joined.strip()


def _split(text: str) -> tuple[str, str]:
    """The first word of a text, and the rest."""
    words = text.split(None, 1)
    return words[0] if words else "", words[1] if len(words) > 1 else ""


def _used(lines: Sequence[tuple[int, str]], arguments: Mapping[str, str]) -> Iterator[Source]:
    """The images that instructions use, in one reading."""
    names: list[str] = []  # of the stages so far, in order; empty where a stage has none
    values: dict[str, str] = {}
    for number, instruction in lines:
        word, rest = _split(instruction)
        word = word.lower()
        if word == "arg" and not names:
            values.update(_declared(rest, values, arguments))
        elif word == "from":
            source = _from(number, rest, names, values)
            names.append(_alias(rest))
            if source is not None:
                yield source
        else:
            yield from _copied(number, instruction, names)


def _from(number: int, rest: str, names: Sequence[str], values: Mapping[str, str]) -> Source | None:
    words = [word for word in rest.split() if not word.startswith("--")]
    written = words[0] if words else ""
    stages = frozenset(name for name in names if name)
    if any(_QUOTING.search(word) for word in rest.split() if word.startswith("--")):
        return Source(number, "FROM", rest[:100], "its flags are quoted: write them as they are", stages)
    try:
        name = _expanded(written, values)
    except _Unclear as why:
        return Source(number, "FROM", written, str(why), stages)
    if name == "scratch" or name.lower() in stages:
        return None
    return Source(number, "FROM", name, "" if name else "it names no image", stages)


def _alias(rest: str) -> str:
    words = [word for word in rest.split() if not word.startswith("--")]
    if len(words) == 3 and words[1].lower() == "as" and _STAGE_NAME.fullmatch(words[2].lower()):
        return words[2].lower()
    return ""


def _copied(number: int, instruction: str, names: Sequence[str]) -> Iterator[Source]:
    """The images that COPY, ADD and RUN take files from, also when they are triggers for later."""
    word, rest = _split(instruction)
    prefix = ""
    while word.lower() == "onbuild":
        prefix = "ONBUILD "
        word, rest = _split(rest)
    if prefix and word.lower() == "from":
        yield Source(number, "ONBUILD FROM", rest[:100], "a trigger cannot start a stage")
    if word.lower() not in _COPYING:
        return
    earlier = [name for name in names[:-1] if name]
    for flag in rest.split():
        if not flag.startswith("--"):
            break  # flags stand before everything else
        if _QUOTING.search(flag):
            yield Source(
                number, f"{prefix}{word.upper()}", flag, "its flags are quoted: write them as they are"
            )
            break
        for kind, value in _taken(flag):
            how = f"{prefix}{word.upper()} {kind}"
            if "$" in value:
                why = "variables are not filled in there: give the image a stage of its own with FROM"
                yield Source(number, how, value, why)
            elif value.isascii() and value.isdigit():
                if len(value) > 6 or int(value) >= len(names) - 1:
                    yield Source(number, how, value, "there is no earlier stage of that number")
            elif value.lower() not in earlier:
                yield Source(number, how, value, "" if value else "it names no image", frozenset(earlier))


def _taken(flag: str) -> Iterator[tuple[str, str]]:
    """The images that one flag names: ``--from=x``, ``--mount=type=bind,from=x``."""
    name, _, value = flag.partition("=")
    if name.lower() == "--from":
        yield "--from", value
    elif name.lower() == "--mount":
        for part in value.split(","):
            key, _, image = part.partition("=")
            if key.strip().lower() == "from":
                yield "--mount from", image.strip()


def _hidden_stages(text: str) -> Iterator[Source]:
    """Stages and arguments inside a here-document, which only some builders know: they would change what names mean."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        begin = number + 1
        for dash, quoted in _HEREDOC.findall(line):
            end = _end_of_document(lines, begin, _QUOTING.sub("", quoted), bool(dash))
            if end is None:
                continue
            for inner in range(begin, end):
                word = _split(lines[inner])[0].lower()
                if word in ("from", "arg"):
                    why = "it stands in a here-document, which not every builder knows: put that text into a file"
                    yield Source(inner + 1, word.upper(), lines[inner].strip()[:100], why)
            begin = end + 1


def _end_of_document(lines: Sequence[str], begin: int, name: str, tabs: bool) -> int | None:
    """The line that ends a here-document, as late as any builder has it; None when there is none."""
    for trimmed in (False, True):  # with carriage returns it may be that no line is the name itself
        for at in range(begin, len(lines)):
            line = lines[at].removesuffix("\r") if trimmed else lines[at]
            if (line.lstrip("\t") if tabs else line) == name:
                return at
    return None


def _declared(rest: str, values: Mapping[str, str], arguments: Mapping[str, str]) -> dict[str, str]:
    """What an ARG before the first FROM gives: the build argument, else its default."""
    found: dict[str, str] = {}
    for part in re.findall(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""", rest):
        name, given, default = part.partition("=")
        if name in arguments:
            found[name] = arguments[name]
        elif given:
            try:
                found[name] = _expanded(default, {**values, **found})
            except _Unclear:
                found[name] = "\0"  # marks a value that is not known
        else:
            # Builders differ in whether it keeps what an earlier line gave it.
            found[name] = "\0" if values.get(name) else ""
    return found


def _expanded(word: str, values: Mapping[str, str], depth: int = 0) -> str:
    """A word as the builder's shell expansion gives it, quotes dropped. Raises _Unclear."""
    if "\\" in word or "`" in word or depth > 8:
        raise _Unclear("its name is escaped: write it as it is")
    pieces = re.findall(r"""'[^']*'|"[^"]*"|[^'"]+|['"]""", word)
    text = ""
    for piece in pieces:
        if piece[0] == "'":
            if len(piece) < 2:
                raise _Unclear("a quotation mark is not closed")
            text += piece[1:-1]
        elif piece == '"':
            raise _Unclear("a quotation mark is not closed")
        else:
            text += _filled(piece.strip('"') if piece[0] == '"' else piece, values, depth)
    if "\0" in text:
        raise _Unclear("the values of the arguments in it are not known")
    return text


def _filled(text: str, values: Mapping[str, str], depth: int) -> str:
    """The variables in a text filled in, as far as their forms are plain: ``$X ${X} ${X:-y} ${X:+y} ${X:?y}``."""

    def value(found: re.Match[str]) -> str:
        name = found["plain"] or found["name"]
        if name not in values:
            raise _Unclear(f"${name} is not set by an ARG before the first FROM")
        held, word = values[name], found["word"] or ""
        if found["how"] == "+":
            return _expanded(word, values, depth + 1) if held else ""
        return _expanded(word, values, depth + 1) if found["how"] == "-" and not held else held

    filled = _VARIABLE.sub(value, text)
    if "$" in _VARIABLE.sub("", text):
        raise _Unclear("its name is put together in a form that is not read here: write it as it is")
    return filled
