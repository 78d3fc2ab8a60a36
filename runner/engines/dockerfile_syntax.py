"""The syntax of Dockerfiles: instructions of a text, words and variables in them. Nothing is built here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ESCAPE_DIRECTIVE = re.compile(r"^\s*#\s*escape\s*=\s*(\S)", re.IGNORECASE | re.MULTILINE)
_VARIABLE = re.compile(
    r"\$(?:(?P<plain>\w+)|\{(?P<name>\w+)(?::(?P<how>[-+?])(?P<word>(?:[^{}$]|\$\w+|\$\{\w+\})*))?\})"
)


class UnclearError(Exception):
    """A value that is not clear from the text of a Dockerfile. ``line`` is its line number (from 1), if that is known."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


def read_dockerfile(path: Path) -> str:
    """Return the text of a Dockerfile.

    All readers use this function: a reader that splits lines in another way would see other instructions.

    Raises:
        UnclearError: A carriage return is not followed by a line feed.
    """
    # Path.read_text() would replace every carriage return by a line feed.
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    if match := re.search(r"\r(?!\n)", text):
        number = text.count("\n", 0, match.start()) + 1
        raise UnclearError("a carriage return is not followed by a line feed", number)
    return text


def instructions(text: str, escape: str, *, doubled: bool, indented: bool) -> Iterator[tuple[int, str]]:
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


def split_word(text: str) -> tuple[str, str]:
    """The first word of a text, and the rest."""
    words = text.split(None, 1)
    return words[0] if words else "", words[1] if len(words) > 1 else ""


def json_words(text: str) -> list[str] | None:
    """Return the words of the JSON form of an instruction; None if the text is not a JSON list of texts."""
    if not text.startswith("["):
        return None
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def copied_paths(rest: str) -> list[str]:
    """Return the paths of COPY or ADD after its flags; the last one is the destination."""
    words = json_words(rest)
    return rest.split() if words is None else words


def declared(rest: str, values: Mapping[str, str], arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of an ARG: the build argument, else the default."""
    defaults: dict[str, str] = {}
    for part in re.findall(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""", rest):
        name, given, default = part.partition("=")
        if name in arguments:
            defaults[name] = arguments[name]
        elif given:
            try:
                defaults[name] = expanded(default, {**values, **defaults})
            except UnclearError:
                defaults[name] = "\0"  # marks a value that is not known
        else:
            # Builders differ in whether it keeps what an earlier line gave it.
            defaults[name] = "\0" if values.get(name) else ""
    return defaults


def expanded(word: str, values: Mapping[str, str], depth: int = 0) -> str:
    """A word as the builder's shell expansion gives it, quotes dropped. Raises UnclearError."""
    if "\\" in word or "`" in word or depth > 8:
        raise UnclearError("its name is escaped: write it as it is")
    pieces = re.findall(r"""'[^']*'|"[^"]*"|[^'"]+|['"]""", word)
    text = ""
    for piece in pieces:
        if piece[0] == "'":
            if len(piece) < 2:
                raise UnclearError("a quotation mark is not closed")
            text += piece[1:-1]
        elif piece == '"':
            raise UnclearError("a quotation mark is not closed")
        else:
            text += _filled(piece.strip('"') if piece[0] == '"' else piece, values, depth)
    if "\0" in text:
        raise UnclearError("the values of the arguments in it are not known")
    return text


def _filled(text: str, values: Mapping[str, str], depth: int) -> str:
    """The variables in a text filled in, as far as their forms are plain: ``$X ${X} ${X:-y} ${X:+y} ${X:?y}``."""

    def value(found: re.Match[str]) -> str:
        name = found["plain"] or found["name"]
        if name not in values:
            raise UnclearError(f"${name} is not set by an ARG before the first FROM")
        held, word = values[name], found["word"] or ""
        if found["how"] == "+":
            return expanded(word, values, depth + 1) if held else ""
        return expanded(word, values, depth + 1) if found["how"] == "-" and not held else held

    filled = _VARIABLE.sub(value, text)
    if "$" in _VARIABLE.sub("", text):
        raise UnclearError("its name is put together in a form that is not read here: write it as it is")
    return filled
