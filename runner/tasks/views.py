"""What a scenario sees of a dataset: rules that choose files, and the fields of their JSON lines.

A view is a list of rules. For every input file the first rule that fits decides; a file that no rule names is
not seen. A rule with ``fields`` keeps only those keys of each line's object: such files are written anew, once,
into ``RUNNER_HOME/views``, under an address made from the file's hash and the fields. So is the file of topics where a
dataset is shown with a part of its topics alone (:attr:`Shown.topics`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import schemas
from runner.model.errors import RunnerError, disk_error
from runner.model.task import Rule
from runner.tasks.data_files import file_digest
from schemas import jsonl
from schemas.files import make_private, scratch_folder

Files = Sequence[tuple[PurePosixPath, Path]]  # names in a folder, and where each lies
MAX_LINE = 64 * 1024 * 1024  # bytes
# The version of how fields are taken out: counted up when that changes, so that no old file is taken for a new one.
_VERSION = 1
_MOST_KEYS = 200  # that are shown of one file


@dataclass(frozen=True)
class Shown:
    """One file of a view: its name in the container, the file of the inputs, the keys that stay (None: all), and how many
    of the topics in it (None: all)."""

    name: PurePosixPath
    path: Path
    fields: tuple[str, ...] | None = None
    topics: int | None = None

    @property
    def whole(self) -> bool:
        """Whether it is shown as it lies there."""
        return self.fields is None and self.topics is None

    @property
    def identity(self) -> Any:
        """What its content is made from: the hash of the file, and the fields and topics that are kept of it."""
        digest = file_digest(self.path)
        if self.whole:
            return digest
        kept = {} if self.fields is None else {"fields": sorted(set(self.fields))}
        some = {} if self.topics is None else {"topics": self.topics}
        return {"sha256": digest, **kept, **some, "version": _VERSION}


def seen(dataset: str, files: Files, rules: Sequence[Rule] | None) -> list[Shown]:
    """What ``rules`` (None: everything) let be seen of the ``files`` of ``dataset``, in the same order."""
    if rules is None:
        return [Shown(name, path) for name, path in files]
    found = []
    for name, path in files:
        rule = next((rule for rule in rules if rule.takes(dataset, str(name))), None)
        if rule is not None:
            found.append(Shown(name, path, rule.fields))
    return found


def view_digest(view: Iterable[Shown]) -> str:
    """SHA-256 (hex) over names and contents of a view; nothing is written for it.

    A view of whole files has the digest that :func:`runner.tasks.data_files.files_digest` gives for them.
    """
    return schemas.digest({str(shown.name): shown.identity for shown in view})


def address(shown: Shown) -> str:
    """The folder below ``views/`` of a file that is not shown whole."""
    return schemas.digest(shown.identity)


def materialise(view: Iterable[Shown], home: Path) -> list[tuple[PurePosixPath, Path]]:
    """Names and files of a view, ready to be copied: whole files are those of the inputs, others lie in ``home``.

    Each is written once, as a whole or not at all, and read-only; several processes may do it at once. Raises
    E402 for a line that is no JSON object, E306 when ``home`` cannot be written.
    """
    return [(shown.name, shown.path if shown.whole else _file(shown, home)) for shown in view]


def _file(shown: Shown, home: Path) -> Path:
    from filelock import FileLock

    folder = home / address(shown)
    target = folder / shown.name.name
    # The folder is made under another name and renamed when it is complete: being there means being whole. Two
    # names of one content share a folder only when they are equal, so a missing file means another name.
    if target.is_file():
        return target
    with _writing(home):
        make_private(home / ".locks")
        with FileLock(home / ".locks" / f"{folder.name}.lock"):  # only saves work
            if target.is_file():
                return target
            with scratch_folder(home) as staging:
                _write(shown, staging / target.name)
                if folder.is_dir():
                    folder.chmod(0o755)
                    (staging / target.name).replace(target)
                else:
                    staging.chmod(0o755)
                    staging.rename(folder)
                folder.chmod(0o555)
    return target


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error("a view of the data could not be written", error, home) from error


def _write(shown: Shown, target: Path) -> None:
    """The file that is shown: first the topics are chosen, then fields are taken out of what is left."""
    some = target.with_name(f"{target.name}.topics")
    if shown.topics is not None:
        _put(target if shown.fields is None else some, shown, [_of_topics(_read(shown.path), shown.topics)])
    if shown.fields is not None:
        source = shown.path if shown.topics is None else some
        _put(target, shown, _filtered(source, str(shown.name), frozenset(shown.fields)))
        some.unlink(missing_ok=True)


def _filtered(path: Path, name: str, keep: frozenset[str]) -> Iterator[bytes]:
    for row in objects(path, name):
        if row is not None:
            kept = {key: value for key, value in row.items() if key in keep}
            yield json.dumps(kept, ensure_ascii=False, allow_nan=False).encode()
        yield b"\n"


def _put(target: Path, shown: Shown, pieces: Iterable[bytes]) -> None:
    with target.open("xb") as raw:
        # Without name and time, so that the same content always gives the same bytes.
        zipped = shown.name.name.endswith(".gz")
        out: Any = gzip.GzipFile("", "wb", 6, raw, 0) if zipped else raw
        for piece in pieces:
            out.write(piece)
        if zipped:
            out.close()
        raw.flush()
        os.fsync(raw.fileno())
    target.chmod(0o444)


# A topic: an element of XML or of TREC's markup, else a line that is not blank.
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_ELEMENT = re.compile(rb"<(topic|query|top)\b[^>]*>.*?</\1\s*>\s*", re.DOTALL | re.IGNORECASE)
_LINE = re.compile(rb"[^\n]*\S[^\n]*\n?")


def _read(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _topics(data: bytes) -> list[tuple[int, int]]:
    form = _ELEMENT if _MARKUP.match(data) else _LINE
    return [match.span() for match in form.finditer(data)]


def count_topics(path: Path) -> int:
    """How many topics a file lists, plain or gzip: a line each, or an element ``topic``, ``query`` or ``top``. Raises OSError."""
    return len(_topics(_read(path)))


_ID_KEYS = ("qid", "query_id", "topic_id", "request_id", "id", "number", "num", "_id")
_FIELDS = re.compile(r"<(?:title|query|text|question|desc\w*)\b[^>]*>\s*([^<]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"<\w+\b[^>]*?\s(?:number|id|num|qid)\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE)
_CHILD = re.compile(rb"<(?:number|id|num|qid)>\s*(?:number:)?\s*([^\s<]+)", re.IGNORECASE)


def topic_ids(path: Path) -> list[str]:
    """The ids of the topics that a file lists (see :func:`count_topics`), where they can be told. Raises OSError."""
    data = _read(path)
    return [found for span in _topics(data) if (found := _id(data[slice(*span)].strip()))]


def topic_texts(path: Path) -> dict[str, str]:
    """What a file of topics says of each, by id, as text without keys and markup (see :func:`topic_ids`). Raises OSError."""
    data = _read(path)
    topics = [data[slice(*span)].strip() for span in _topics(data)]
    return {found: _words(topic, found) for topic in topics if (found := _id(topic))}


def _words(topic: bytes, id: str) -> str:
    """The first text of a topic beside its id: its title, query or question."""
    if topic.startswith(b"<"):
        fields = [re.sub(r"<[^>]*>", " ", one) for one in _FIELDS.findall(topic.decode("utf-8", "replace"))]
    elif topic.startswith(b"{"):
        fields = [
            one for key, one in json.loads(topic).items() if isinstance(one, str) and key not in _ID_KEYS
        ]
    else:
        fields = topic.decode("utf-8", "replace").split("\t" if b"\t" in topic else None, 1)[1:]
    named = [" ".join(one.split()) for one in fields]
    return next((one for one in named if one and one != id), "")


def _id(topic: bytes) -> str:
    if topic.startswith(b"<"):
        match = _ATTRIBUTE.match(topic) or _CHILD.search(topic)
        return match[1].decode("utf-8", "replace").strip() if match else ""
    if not topic.startswith(b"{"):
        return topic.split(b"\t" if b"\t" in topic else None, 1)[0].decode("utf-8", "replace").strip()
    try:
        row = json.loads(topic)
    except ValueError:
        return ""
    return next((str(row[key]).strip() for key in _ID_KEYS if key in row), "")


def _of_topics(data: bytes, count: int) -> bytes:
    """The content of a file of topics with ``count`` of them: those whose text has the least SHA-256, in their order.

    Which ones they are depends on nothing but the topics, not on their order nor on what a scenario sees of them.
    """
    spans = _topics(data)
    by_hash = sorted(spans, key=lambda span: hashlib.sha256(data[slice(*span)].strip()).digest())
    for start, end in sorted(by_hash[count:], reverse=True):
        data = data[:start] + data[end:]
    return data


def objects(path: Path, name: str) -> Iterator[dict[str, Any] | None]:
    """The objects of a file of JSON lines, plain or ``.gz``, one at a time; None for an empty line.

    Raises E402, with file and line, for what is no JSON object: a broken line cannot be cut to its fields; OSError for
    a file that cannot be read.
    """

    for number, row, fault in jsonl.read(
        path, max_line=MAX_LINE, rules=_LINES, packed=name.endswith(".gz"), blanks=True
    ):
        if fault is not None and fault.kind == "blank":
            yield None
        elif fault is not None and fault.kind == "unreadable":
            raise OSError(fault.detail)
        elif isinstance(row, dict):
            yield row
        else:
            what = f"{schemas.show(name, 200)}:{number} is not a JSON object"
            why = "the line holds another value" if fault is None else _why(fault)
            why = f"{why[:1].upper()}{why[1:]}. A view with fields needs one object in each line."
            fix = "correct the line, or take fields out of the scenario's view"
            raise RunnerError("E402", what, why=why, fix=fix)


def _why(fault: jsonl.Fault) -> str:
    return {
        "damaged": "the compressed data are damaged",
        "too-long": f"the line is longer than {MAX_LINE} bytes",
        "encoding": "the line is not UTF-8",
        "duplicate": "a key is there twice",
        "constant": f"{fault.detail} is not a number of JSON",
        "deep": _TOO_MUCH,
        "number": _TOO_MUCH,
    }.get(fault.kind, fault.detail)


_LINES = jsonl.Rules(bom=False, bounded=False)
_TOO_MUCH = "the line is nested too deeply, or has a number that is too long"


def is_lines(name: str) -> bool:
    """Whether a file is read as JSON lines, by its name."""
    return name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def keys(path: Path, name: str) -> list[str]:
    """The keys that occur in the objects of a file of JSON lines, in the order in which they appear first."""
    found: dict[str, None] = {}
    for row in objects(path, name):
        for key in row or ():
            if key not in found and len(found) < _MOST_KEYS:
                found[key] = None
    return list(found)


@dataclass(frozen=True)
class ViewSummary:
    """What one scenario sees of one dataset: the file names, and for JSON lines which keys are there and which are not.

    ``unseen`` are the files of the inputs that are not in the view.
    """

    scenario: str
    dataset: str
    files: Mapping[str, tuple[list[str], list[str]] | None]
    unseen: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for ``--json``."""
        return {
            "scenario": self.scenario,
            "dataset": self.dataset,
            "files": {
                name: None if found is None else {"fields": found[0], "hidden": found[1]}
                for name, found in self.files.items()
            },
            "unseen": list(self.unseen),
        }


def view_summary(scenario: str, dataset: str, files: Files, view: Sequence[Shown], home: Path) -> ViewSummary:
    """What is in the files that a container will get, and what is missing from them; the files are read."""
    found: dict[str, tuple[list[str], list[str]] | None] = {}
    for shown, (name, path) in zip(view, materialise(view, home), strict=True):
        text = str(name)
        if shown.fields is None and not is_lines(text):
            found[text] = None
            continue
        kept = keys(path, text)
        hidden = [] if shown.fields is None else [k for k in keys(shown.path, text) if k not in kept]
        found[text] = (kept, hidden)
    unseen = tuple(str(name) for name, _ in files if str(name) not in found)
    return ViewSummary(scenario, dataset, found, unseen)


def sweep(home: Path, keep: Iterable[str], *, dry_run: bool = False) -> list[str]:
    """Remove materialised files whose :func:`address` is not in ``keep``; returns their addresses."""
    wanted = set(keep)
    old = [p for p in home.glob("*") if p.is_dir() and not p.name.startswith(".") and p.name not in wanted]
    for folder in [] if dry_run else old:
        folder.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
    return sorted(p.name for p in old)
