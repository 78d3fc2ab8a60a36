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

from runner.engines.dockerfile_syntax import (
    ESCAPE_DIRECTIVE,
    UnclearError,
    copied_paths,
    declared,
    expanded,
    instructions,
    split_word,
)

MAX_BYTES = 256 * 1024  # a Dockerfile is a page of text; this bounds what reading it several times costs

_HEREDOC = re.compile(r"""<<(-?)\s*("[^"]*"|'[^']*'|[^\s<]+)""")
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


def sources(text: str, arguments: Mapping[str, str] | None = None) -> list[Source]:
    """All images that a Dockerfile uses apart from its own earlier stages, by line; ``arguments`` are build arguments.

    The stages that it builds itself and ``scratch`` are left out.
    """
    if _is_too_large(text):
        return [Source(1, "Dockerfile", "", f"it is larger than {MAX_BYTES} bytes")]
    text = text.removeprefix("\ufeff")
    found: dict[tuple[int, str, str, str], Source] = {}
    for lines in _readings(text):
        for source in [*_used(lines, dict(arguments or {})), *_hidden_stages(text)]:
            found.setdefault((source.line, source.how, source.name, source.trouble), source)
    return sorted(found.values(), key=lambda s: (s.line, s.how, s.name))


def unproven_additions(text: str) -> list[tuple[int, str]]:
    """Return every ADD with a source that may lie on another machine, as line number (from 1) and source.

    ADD also fetches addresses and Git repositories, over the network of the engine. A source counts as local only if its
    plain text proves that. Triggers (ONBUILD) are instructions like others.
    """
    if _is_too_large(text):
        return [(1, f"a Dockerfile of more than {MAX_BYTES} bytes")]
    text = text.removeprefix("\ufeff")
    readings = _readings(text)
    if _HEREDOC.search(text):
        # The end of a here-document can hide where the next instruction begins: every line may begin one.
        lines = text.split("\n")
        readings += [
            [(number, instruction)]
            for number in range(1, len(lines) + 1)
            for _, instruction in itertools.islice(
                instructions("\n".join(lines[number - 1 :]), "\\", doubled=True, indented=True), 1
            )
        ]
    return sorted(
        {
            (number, source)
            for reading in readings
            for number, instruction in reading
            for source in _addition_sources(instruction)
            if not _is_local(source)
        }
    )


def _addition_sources(instruction: str) -> Sequence[str]:
    """Return the sources of an ADD as they are written; nothing for another instruction."""
    word, rest = split_word(instruction)
    while word.lower() == "onbuild":
        word, rest = split_word(rest)
    if word.lower() != "add":
        return ()
    while rest.startswith("--"):
        rest = split_word(rest)[1]
    return copied_paths(rest)[:-1]


def _is_local(source: str) -> bool:
    """True if the text of a source, before variables are filled in, can only name a file of the build context."""
    if re.match(r"https?:|github\.com/", source, re.IGNORECASE):
        return False
    # After a slash or a leading dot no scheme (x://) and no user (x@host:) can follow.
    return bool(
        re.match(r"[./]|[\w.-]+/", source, re.ASCII) or re.fullmatch(r"[\w.*?+,=~-]+", source, re.ASCII)
    )


def _readings(text: str) -> list[list[tuple[int, str]]]:
    """Return the instructions of a Dockerfile in every way that a builder may read it."""
    escapes = {"\\"} | {mark for mark in ESCAPE_DIRECTIVE.findall(text) if mark == "`"}
    return [
        list(instructions(text, escape, doubled=doubled, indented=indented))
        for escape, doubled, indented in itertools.product(sorted(escapes), (False, True), (False, True))
    ]


def _is_too_large(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) > MAX_BYTES


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


def _used(lines: Sequence[tuple[int, str]], arguments: Mapping[str, str]) -> Iterator[Source]:
    """The images that instructions use, in one reading."""
    names: list[str] = []  # of the stages so far, in order; empty where a stage has none
    values: dict[str, str] = {}
    for number, instruction in lines:
        word, rest = split_word(instruction)
        word = word.lower()
        if word == "arg" and not names:
            values.update(declared(rest, values, arguments))
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
        name = expanded(written, values)
    except UnclearError as why:
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
    word, rest = split_word(instruction)
    prefix = ""
    while word.lower() == "onbuild":
        prefix = "ONBUILD "
        word, rest = split_word(rest)
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
                word = split_word(lines[inner])[0].lower()
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
