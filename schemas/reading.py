"""Reading YAML and JSON that may be hostile: restricted, capped, without recursion, with the line of every value."""

from __future__ import annotations

import math
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.documents import MAX_PROBLEMS, Document, Node, Problem, capped, escape, render_pointer, show
from schemas.file_sorts import find_wrong_sort

YAML_BYTES = 64 * 1024
JSON_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 16  # of YAML
MAX_EXPANDED = 20_000  # values of foreign YAML, with all that its aliases repeat


class _Refused(Exception):
    """Reading cannot go on; carries the problem's words."""

    def __init__(self, what: str, fix: str = "", line: int | None = None) -> None:
        super().__init__(what)
        self.what, self.fix, self.line = what, fix, line


def _read(path: Path, cap: int) -> bytes:
    """The bytes of a regular file of at most ``cap`` bytes; never blocks on a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _Refused("is not a regular file")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(cap + 1)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise _Refused(
            f"cannot be read ({reason.lower()})", "check the file's name and its permissions"
        ) from None
    if len(data) > cap:
        raise _Refused(
            f"is larger than {cap // 1024} KiB",
            "a file of this sort is small: move data into files of its own",
        )
    return data


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Refused(
            "is not UTF-8 text", "save the file as UTF-8", raw.count(b"\n", 0, error.start) + 1
        ) from None


def _source(source: Path | str | bytes, cap: int) -> str:
    """The text of a path, of bytes or of text, with the size cap applied to each."""
    if isinstance(source, Path):
        if sort := find_wrong_sort(data := _read(source, cap)):
            raise _Refused(f"is {sort.name}", sort.fix)
        return _decode(data)
    raw = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    if len(raw) > cap:
        raise _Refused(f"is larger than {cap // 1024} KiB")
    return source if isinstance(source, str) else _decode(source)


def _name(source: Path | str | bytes, name: str | None) -> str:
    return name if name is not None else str(source) if isinstance(source, Path) else "input"


def load_yaml(source: Path | str | bytes, name: str | None = None, *, foreign: bool = False) -> Document:
    """Read restricted YAML from a path, or from text or bytes that are the content itself.

    At most 64 KiB, one document, no aliases, anchors, tags, directives, merge keys, duplicate keys or keys that
    are not text. Plain scalars are those of YAML 1.2's core schema, decimal only: ``no``, ``12:30``, ``0o7`` and
    ``007`` stay text. Never raises; the document's ``problems`` say what was wrong, each with its line.

    Files that were written for other programs (``foreign``) may have numbers as keys, which become text, and aliases of
    what stands before them, while that makes no more than 20,000 values in all.
    """
    doc = Document(_name(source, name))
    try:
        text = _source(source, YAML_BYTES)
        quick = _quickly(text, doc.name, foreign)
        if quick is not None:
            return quick
        _Builder(doc, foreign).build(text)
    except _Refused as refused:
        doc.data = None
        where = show(doc.name, 200) + (f":{refused.line}" if refused.line else "")
        doc.problems.append(Problem(where, refused.what, refused.fix, "", refused.line))
    doc.problems = capped(doc.problems, doc.name)
    return doc


def _quickly(text: str, name: str, foreign: bool) -> Document | None:
    """What libyaml reads, in a tenth of the time; None where something is wrong with it, or nothing in it: what, PyYAML's own reader says."""
    import yaml

    if not yaml.__with_libyaml__ or _READ_OTHERWISE.search(text):
        return None
    doc = Document(name)
    try:
        _Builder(doc, foreign).build(text, yaml.CSafeLoader)
    except _Refused:
        return None
    return None if doc.problems or doc.data is None else doc


def load_json(
    source: Path | str | bytes, name: str | None = None, *, max_bytes: int = JSON_BYTES
) -> Document:
    """Read JSON from a path, or from text or bytes. Never raises.

    Refused are duplicate keys, NaN and infinities, numbers too large to hold, nesting beyond 64 levels, more than
    ``max_bytes``, and what is not UTF-8.
    """
    doc = Document(_name(source, name))
    try:
        doc.data = _parse(_source(source, max_bytes))
    except _Refused as refused:
        where = show(doc.name, 200) + (f":{refused.line}" if refused.line else "")
        doc.problems.append(Problem(where, refused.what, refused.fix, "", refused.line))
    return doc


def _parse(text: str) -> Any:
    """Return the value of strict JSON text. Raises _Refused."""
    from schemas import jsonl

    value = jsonl.parse(text.encode("utf-8", "surrogatepass"), jsonl.Rules(bom=False))
    if not isinstance(value, jsonl.Fault):
        return value
    if value.kind == "syntax":
        raise _Refused(f"is not JSON ({value.detail[:1].lower()}{value.detail[1:]})", "", value.line)
    raise _Refused(_FAULTS[value.kind].format(show(value.detail)))


_FAULTS = {
    "duplicate": 'has the key "{}" twice in one object',
    "constant": "has the number {}, which is not JSON",
    "number": "has a number that is too large, or has more than 40 digits",
    "deep": "is nested too deeply",
    "surrogate": "has text with half of a surrogate pair",
    "encoding": "has text with half of a surrogate pair",  # of text that holds one itself
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
# Control characters but tab and line feed, half surrogates, and characters that turn the direction of text:
# nothing a person writes into a definition, and all of them can deceive a reader.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# libyaml takes tabs, question marks in brackets and |# where PyYAML's own reader refuses them, and ends lines elsewhere.
_READ_OTHERWISE = re.compile("[?\t\r\x85\u2028\u2029\ufeff]|[|>][-+0-9]*#")
_SYNTAX_FIXES = (
    ("\\t", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", 'put text that holds ": " in quotes, and check the indentation'),
    ("could not find expected ':'", "write keys as key: value, and check quotes and indentation"),
    ("block end", "check the indentation: keys of one level start in the same column"),
    ("end of stream", "close what was opened: a quote or a bracket is missing"),
)
_DISCARD = object()  # stands for a key that was refused: its value is read and thrown away


@dataclass
class _Frame:
    """A list or mapping that is being read. ``key`` is the key that waits for its value."""

    value: Any
    node: Node
    key: Any = None
    key_line: int = 0
    anchor: str | None = None
    before: int = 0  # values that were read before it


class _Builder:
    """Builds data and lines from PyYAML's events, without recursion and without PyYAML's constructors.

    Nothing that YAML can expand (aliases, merges, tags) ever reaches the data, so the result is never larger
    than the text. In foreign files aliases do: what is repeated counts each time, and there is a limit to that.
    """

    def __init__(self, doc: Document, foreign: bool = False) -> None:
        self.doc, self.foreign = doc, foreign
        self.frames: list[_Frame] = []
        self.documents = 0
        self.count = 0  # values so far, those of aliases as often as they stand there
        self.anchors: dict[str, tuple[Any, int]] = {}  # the value, and how many values it is

    def problem(self, line: int, what: str, fix: str = "") -> None:
        if len(self.doc.problems) <= 4 * MAX_PROBLEMS:
            self.doc.problems.append(
                Problem(f"{show(self.doc.name, 200)}:{line}", what, fix, self._pointer(), line)
            )

    def _pointer(self) -> str:
        keys: list[str | int] = []
        for frame in self.frames:
            if isinstance(frame.value, list):
                keys.append(len(frame.value))
            elif isinstance(frame.key, str):
                keys.append(frame.key)
        return render_pointer(keys)

    def build(self, text: str, loader: Any = None) -> None:
        """Read ``text`` into the document, by default with PyYAML's own reader. Raises _Refused where reading cannot go on."""
        import yaml

        try:
            for event in yaml.parse(text, Loader=loader or yaml.SafeLoader):
                self.take(event, yaml)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else None
            raise _Refused("has a control character, or is not text", "remove it", line) from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            words = show(", ".join(p for p in (error.problem, error.context) if p), 150)
            fix = next((fix for part, fix in _SYNTAX_FIXES if part in words), "")
            raise _Refused(f"is not YAML: {words}", fix, mark.line + 1 if mark else None) from None
        except (yaml.YAMLError, ValueError, OverflowError):
            # ValueError and OverflowError: escapes beyond Unicode and version numbers of thousands of digits.
            raise _Refused("is not YAML") from None
        if self.documents == 0:
            raise _Refused("is empty")

    def take(self, event: Any, yaml: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise _Refused("holds more than one YAML document", 'remove the second "---"', line)
            if event.version or event.tags:
                self.problem(
                    line, "has a YAML directive, which is not accepted", "remove the line that starts with %"
                )
        elif isinstance(event, yaml.AliasEvent):
            self.repeat(event.anchor, line)
        elif isinstance(event, yaml.ScalarEvent):
            self.decorations(event, line)
            self.anchored(event.anchor, self.scalar(event, line), 1, line)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self.decorations(event, line)
            if len(self.frames) >= MAX_DEPTH:
                raise _Refused(f"is nested more than {MAX_DEPTH} levels deep", "", line)
            empty: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self.frames.append(_Frame(empty, Node(line), anchor=event.anchor, before=self.count))
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            frame = self.frames.pop()
            size = self.count - frame.before + 1
            self.anchored(frame.anchor, frame.value, size, frame.node.line, frame.node)

    def anchored(
        self, anchor: str | None, value: Any, size: int, line: int, node: Node | None = None
    ) -> None:
        """Put a finished value where it belongs, and keep it for aliases."""
        if anchor is not None:
            self.anchors[anchor] = value, size
        self.add(value, line, node)

    def repeat(self, anchor: str, line: int) -> None:
        """Put the value of an anchor in once more. Raises _Refused where that would be too much."""
        value, size = self.anchors.get(anchor, (None, 0)) if self.foreign else (None, 0)
        if not self.foreign:
            what = "uses a YAML alias (*), which is not accepted"
            self.problem(line, what, "write the value out, or put it in quotes")
        elif not size:
            self.problem(line, "has an alias of what has not ended before it", "write the value out")
        self.count += size
        if self.count > MAX_EXPANDED and self.foreign:
            raise _Refused(f"repeats more than {MAX_EXPANDED:,} values by aliases", "write them out", line)
        self.add(value, line)

    def decorations(self, event: Any, line: int) -> None:
        if event.anchor is not None and not self.foreign:
            self.problem(
                line, "has a YAML anchor (&), which is not accepted", "remove it, or put the value in quotes"
            )
        if event.tag is not None:
            self.problem(
                line, "has a YAML tag (!), which is not accepted", "remove it, or put the value in quotes"
            )

    def scalar(self, event: Any, line: int) -> Any:
        text: str = event.value
        unseen = _UNSEEN.search(text)
        if unseen:
            self.problem(line, f"has text with the character {escape(unseen[0])}", "remove it")
            return _UNSEEN.sub("?", text)
        if event.style or event.tag is not None:  # plain: None, and empty of libyaml
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _LEADING_ZERO.fullmatch(text) or not _NUMBER.fullmatch(text):
            return text
        if _INTEGER.fullmatch(text):
            if len(text) > 18:
                self.problem(
                    line, "has a number with more than 18 digits", "put it in quotes if it is a name"
                )
                return 0
            return int(text)
        value = float(text)
        if not math.isfinite(value):
            self.problem(line, "has a number that is too large")
            return 0.0
        return value

    def add(self, value: Any, line: int, node: Node | None = None) -> None:
        """Put a finished value where it belongs: into the list, as key or value of the mapping, or as the root."""
        self.count += 1
        if not self.frames:
            self.doc.data, self.doc.lines = value, node or Node(line)
            return
        frame = self.frames[-1]
        if isinstance(frame.value, list):
            frame.node.children[len(frame.value)] = node or Node(line)
            frame.value.append(value)
        elif frame.key is None:
            frame.key, frame.key_line = self.key(frame, value, line), line
        else:
            if frame.key is not _DISCARD:
                frame.value[frame.key] = value
                frame.node.children[frame.key] = Node(frame.key_line, node.children if node else {})
            frame.key = None

    def key(self, frame: _Frame, value: Any, line: int) -> Any:
        if self.foreign and type(value) is int:
            value = str(value)
        if not isinstance(value, str):
            self.problem(line, "has a key that is not text", "put the key in quotes")
        elif value == "<<":
            self.problem(line, "uses a YAML merge key (<<), which is not accepted", "write the keys out")
        elif value in frame.value:
            first = frame.node.children[value].line
            self.problem(
                line, f'has the key "{show(value)}" twice (first at line {first})', "keep one of them"
            )
        else:
            return value
        return _DISCARD
