"""Imports a release of Perspective Argument Retrieval 2024: the official files as they are, or the form its README shows.

What is accepted beyond the official format: a zip archive, one folder around everything, files that other systems add
(``__MACOSX``, ``.DS_Store``, ``._*``), a byte order mark, Windows line ends, JSON arrays instead of lines, ids as text, and
the README's field names (``text``, ``target``, ``demographic_properties``) and stance (``CON``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, NoReturn

from runner.errors import Problem
from schemas import show

SPLITS = ("train", "dev", "test")
MAX_FILE = 1 << 30  # bytes of one file, unpacked
MAX_MEMBERS = 10_000
MAX_PROBLEMS = 50

_CORPUS = ("argument_id", "argument", "topic", "stance", "demographic_profile")
_ISSUES = "important_political_issues"
_PROFILE = (
    "gender",
    "age",
    "residence",
    "civil_status",
    "denomination",
    "education",
    "political_spectrum",
    _ISSUES,
)
_ISSUE_LABELS = (
    "Offene Aussenpolitik", "Liberale Wirtschaftspolitik", "Restriktive Finanzpolitik", "Law & Order",
    "Restriktive Migrationspolitik", "Ausgebauter Umweltschutz", "Ausgebauter Sozialstaat", "Liberale Gesellschaft",
)  # fmt: skip
_ASKED = {"age": "age_bin", _ISSUES: "important_political_issue"}  # other spellings of query properties
_ASKABLE = frozenset(("age_bin", "important_political_issue", *_PROFILE)) - {"age", _ISSUES}
_STANCES = {"FAVOR": "FAVOR", "PRO": "FAVOR", "AGAINST": "AGAINST", "CON": "AGAINST"}
_DIGITS = re.compile(r"[0-9]{1,18}")
_SPACE = re.compile(r"[ \t\r\n]*")


class _Wrong(Exception):
    """One object or file is wrong: what, and how to mend it."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


class Release(NamedTuple):
    """A release in the official format: the corpus, and queries by word (baseline, perspective) and split."""

    corpus: list[dict[str, Any]]
    queries: dict[tuple[str, str], list[dict[str, Any]]]


class _Problems:
    """The first 50 problems, and how many there were."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.count = 0

    def add(self, where: str, what: str, fix: str = "") -> None:
        self.count += 1
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(Problem(show(where, 200), what, fix))

    def all(self) -> list[Problem]:
        if self.count > MAX_PROBLEMS:
            more = Problem(
                "the release", f"and {self.count - MAX_PROBLEMS:,} more problems", "mend these first"
            )
            return [*self.kept, more]
        return self.kept


def import_release(source: Path, target: Path, split: str, *, truths: Path | None = None) -> list[Problem]:
    """Import the release ``source`` (folder or zip) as a dataset on which ``split`` is evaluated.

    Writes ``target/inputs`` (corpus; train and dev with relevance; ``split`` without) and ``truths`` (default:
    ``target/truths``; the corpus, and ``split`` with relevance). Returns every problem with file and line; when there
    is one, nothing was written. Raises nothing for what is in the release, OSError when ``target`` cannot be written.
    """
    if split not in SPLITS:
        return [Problem(show(split), "is no split", f"say one of {', '.join(SPLITS)}")]
    inputs, truths = target / "inputs", truths or target / "truths"
    taken = [p for p in (inputs, truths) if os.path.lexists(p) and not (p.is_dir() and not any(p.iterdir()))]
    if taken:
        return [Problem(show(str(p), 200), "is there already", "move it away first") for p in taken]
    problems = _Problems()
    release = read_release(source, split, problems)
    if release is None or problems.count:
        return problems.all()
    hidden = {word: release.queries[word, split] for word in ("baseline", "perspective")}
    staged = [(inputs, _beside(inputs)), (truths, _beside(truths))]
    try:
        for (word, one), rows in release.queries.items():
            if one == split:
                shown = [{k: v for k, v in row.items() if k != "relevant_candidates"} for row in rows]
                _write(staged[0][1] / f"{word}-queries" / f"queries_{one}.jsonl", shown)
            elif one != "test":  # the relevance of another test set is nobody's training data
                _write(staged[0][1] / f"{word}-queries" / f"queries_{one}.jsonl", rows)
        for word, rows in hidden.items():
            _write(staged[1][1] / f"{word}-queries" / f"queries_{split}.jsonl", rows)
        for final, folder in staged:
            _write(folder / "corpus.jsonl", release.corpus)
            if final.exists():
                final.rmdir()  # empty, see above
            folder.rename(final)
    finally:
        for _, folder in staged:
            shutil.rmtree(folder, ignore_errors=True)
    return []


def _beside(final: Path) -> Path:
    folder = final.parent / f".{final.name}.importing"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        # A lone surrogate is legal in JSON but not in UTF-8: such a text stays escaped.
        for row in rows:
            line = json.dumps(row, ensure_ascii=False)
            if any("\ud800" <= c <= "\udfff" for c in line):
                line = json.dumps(row)
            file.write(line + "\n")


def read_release(source: Path, split: str, problems: _Problems) -> Release | None:
    """Read and check a release; None when there is no corpus. Problems go to ``problems``."""
    try:
        files = _zip_files(source) if source.is_file() else _folder_files(source)
    except _Wrong as error:
        problems.add(source.name, error.what, error.fix)
        return None
    try:
        with files:
            return _read(files, split, problems)
    except _Wrong as error:
        problems.add(source.name, error.what, error.fix)
        return None


def _read(files: _Files, split: str, problems: _Problems) -> Release | None:
    release = Release([], {})
    ids: set[int] = set()
    name = files.name("corpus")
    assert name is not None  # the root is where it is
    for line, data in _objects(files, name, problems):
        try:
            argument = _argument(data)
            if argument["argument_id"] in ids:
                raise _Wrong(f"the argument_id {argument['argument_id']} is there twice", "keep one of them")
        except _Wrong as error:
            problems.add(f"{name}:{line}", error.what, error.fix)
            continue
        ids.add(argument["argument_id"])
        release.corpus.append(argument)
    if not release.corpus and not problems.count:
        problems.add(name, "holds no argument")
    _values(release.corpus, name, problems)
    for word in ("baseline", "perspective"):
        for one in SPLITS:
            found = files.name(f"{word}-queries/queries_{one}")
            if found is None:
                if one == split:
                    problems.add(
                        f"{word}-queries/queries_{one}.jsonl", "is missing", f"the split {one} needs it"
                    )
                continue
            if one == "test" and split != "test":
                continue
            rows = list(_queries(files, found, word, ids, problems))
            if not rows and not problems.count:
                problems.add(found, "holds no query")
            release.queries[word, one] = rows
    return release


def _queries(
    files: _Files, name: str, word: str, arguments: set[int], problems: _Problems
) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    for line, data in _objects(files, name, problems):
        try:
            query = _query(data, perspective=word == "perspective")
            if query["query_id"] in seen:
                raise _Wrong(f"the query_id {query['query_id']} is there twice", "keep one of them")
            unknown = next((a for a in query["relevant_candidates"] if a not in arguments), None)
            if unknown is not None and arguments:
                raise _Wrong(f"the relevant argument {unknown} is not in the corpus")
        except _Wrong as error:
            problems.add(f"{name}:{line}", error.what, error.fix)
            continue
        seen.add(query["query_id"])
        yield query


# --- one object ---------------------------------------------------------------------------------------------


def _argument(data: Any) -> dict[str, Any]:
    """An argument in the official form. Raises :class:`_Wrong`."""
    data = dict(_mapping(data))
    if "argument" not in data and "text" in data:
        data["argument"] = data.pop("text")
    if "target" in data:  # the README's; the real files have the policy field, topic, instead
        target = data.pop("target")
        data.setdefault("topic", target)
    _complete(data, _CORPUS)
    extra = next((key for key in data if key not in _CORPUS), None)
    if extra is not None:
        raise _Wrong(
            f'the field "{show(extra)}" is not part of the format',
            "leave it out: it would count as a property",
        )
    argument: dict[str, Any] = {"argument_id": _id(data["argument_id"], "argument_id")}
    for key in ("argument", "topic", "stance"):
        if not isinstance(data[key], str):
            raise _Wrong(f"{key} is not text")
        argument[key] = data[key]
    stance = _STANCES.get(data["stance"])
    if stance is None:
        raise _Wrong(f'the stance is "{show(data["stance"])}"', "write FAVOR or AGAINST")
    argument["stance"] = stance
    profile = data["demographic_profile"]
    if not isinstance(profile, dict):
        raise _Wrong("demographic_profile is not an object")
    for key, value in profile.items():
        if key not in _PROFILE:
            raise _Wrong(f'demographic_profile has the unknown key "{show(key)}"')
        if key != _ISSUES and value is not None and not isinstance(value, str):
            raise _Wrong(f"{key} is not text")
    issues = profile.get(_ISSUES)
    if not isinstance(issues, list) or not all(isinstance(i, str) for i in issues):
        raise _Wrong(f"{_ISSUES} is missing or not a list of texts", "write [] for none")
    argument["demographic_profile"] = profile
    return argument


def _query(data: Any, *, perspective: bool) -> dict[str, Any]:
    """A query in the official form. Raises :class:`_Wrong`."""
    data = dict(_mapping(data))
    if "demographic_property" not in data and "demographic_properties" in data:
        data["demographic_property"] = data.pop("demographic_properties")
    if data.get("relevant_candidates") is None:
        raise _Wrong("relevant_candidates is missing", "without relevance the split cannot be evaluated")
    own = ("demographic_property",) if perspective else ()
    _complete(data, ("query_id", "text", *own, "relevant_candidates"))
    query: dict[str, Any] = {"query_id": _id(data["query_id"], "query_id")}
    if not isinstance(data["text"], str):
        raise _Wrong("text is not text")
    query["text"] = data["text"]
    if perspective:
        wanted = data["demographic_property"]
        if not isinstance(wanted, dict) or len(wanted) != 1:
            raise _Wrong("demographic_property is not an object with one key")
        ((key, value),) = wanted.items()
        key = _ASKED.get(key, key)
        if key not in _ASKABLE:
            raise _Wrong(f'demographic_property has the unknown key "{show(key)}"')
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, str):
            raise _Wrong(f"{key} is not text")
        query["demographic_property"] = {key: value}
    relevant = data["relevant_candidates"]
    if not isinstance(relevant, list):
        raise _Wrong("relevant_candidates is not a list")
    query["relevant_candidates"] = [_id(a, "a relevant candidate") for a in relevant]
    return query


def _mapping(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _Wrong("is not an object", "write one object a line")
    return data


def _complete(data: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key not in data:
            raise _Wrong(f"{key} is missing")


def _id(value: Any, what: str) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise _Wrong(f"{what} is not an integer")
    return value


def _values(corpus: list[dict[str, Any]], name: str, problems: _Problems) -> None:
    """Every one of the 15 diversity properties needs two values: rKL has no meaning otherwise."""
    if len(corpus) < 2:
        return
    for key in ("stance", *_PROFILE):
        if key in ("denomination", _ISSUES):
            continue
        seen = {a["stance"] if key == "stance" else a["demographic_profile"].get(key, 0) for a in corpus}
        if len(seen) < 2:
            problems.add(name, f"all arguments have the same {key}", "diversity needs two values at least")
    for label in _ISSUE_LABELS:
        named = sum(label in a["demographic_profile"][_ISSUES] for a in corpus)
        if named in (0, len(corpus)):
            problems.add(
                name, f"{'no author calls' if not named else 'all authors call'} {label} important",
                "diversity needs two values at least",
            )  # fmt: skip


# --- files ------------------------------------------------------------------------------------------------


def _objects(files: _Files, name: str, problems: _Problems) -> Iterator[tuple[int, Any]]:
    """Every object of a file with its line, whichever form it has."""
    try:
        text = files.read(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problems.add(f"{name}:{line}", "is not UTF-8", "save the file as UTF-8")
        return
    except _Wrong as error:
        problems.add(name, error.what, error.fix)
        return
    if text[_blank(text, 0) :][:1] == "[":
        yield from _array(text, name, problems)
        return
    for number, row in enumerate(text.split("\n"), 1):
        if row.strip():
            try:
                yield number, json.loads(row, parse_constant=_constant)
            except (ValueError, RecursionError):
                problems.add(f"{name}:{number}", "is not JSON", "write one object a line, or one JSON array")


def _array(text: str, name: str, problems: _Problems) -> Iterator[tuple[int, Any]]:
    scan = json.JSONDecoder(parse_constant=_constant).raw_decode
    at = _blank(text, 0) + 1
    line, counted, first = 1, 0, True
    while True:
        at = _blank(text, at)
        if text.startswith("]", at) and not text[at + 1 :].strip():
            return
        if not first and text.startswith(",", at):
            at = _blank(text, at + 1)
        elif not first:
            at = len(text)
        line += text.count("\n", counted, at)
        counted = at
        try:
            value, at = scan(text, at)
        except (ValueError, RecursionError):
            problems.add(f"{name}:{line}", "the JSON array is broken from here on")
            return
        first = False
        yield line, value


def _constant(_: str) -> NoReturn:
    raise ValueError


def _blank(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


class _Files:
    """The files of a release by name, relative to where its corpus is."""

    def __init__(self, names: dict[str, Any], archive: zipfile.ZipFile | None = None) -> None:
        self._archive = archive
        roots = sorted(
            {
                str(PurePosixPath(n).parent)
                for n in names
                if PurePosixPath(n).name in ("corpus.jsonl", "corpus.json")
            }
        )
        roots = [r for r in roots if len(PurePosixPath(r).parts) <= 1]
        if len(roots) != 1:
            raise _Wrong(
                "has more than one corpus.jsonl" if roots else "has no corpus.jsonl",
                "give the folder or archive of one release, with corpus.jsonl in it or one folder below",
            )
        prefix = "" if roots[0] == "." else f"{roots[0]}/"
        self._names = {n.removeprefix(prefix): v for n, v in names.items() if n.startswith(prefix)}

    def name(self, stem: str) -> str | None:
        """The file's name with its ending, or None."""
        return next((n for n in (f"{stem}.jsonl", f"{stem}.json") if n in self._names), None)

    def read(self, name: str) -> bytes:
        """Its bytes, at most :data:`MAX_FILE`. Raises :class:`_Wrong`."""
        where = self._names[name]
        try:
            with self._archive.open(where) if self._archive else open(where, "rb") as file:  # noqa: PTH123
                data: bytes = file.read(MAX_FILE + 1)
        except (
            OSError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            RuntimeError,
            NotImplementedError,
        ) as error:
            raise _Wrong(f"cannot be read ({show(str(error))})") from None
        if len(data) > MAX_FILE:
            raise _Wrong(f"is larger than {MAX_FILE >> 20} MiB")
        return data

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive:
            self._archive.close()


def _noise(path: PurePosixPath) -> bool:
    """Files that operating systems add."""
    return "__MACOSX" in path.parts or path.name.startswith(".") or path.name in ("Thumbs.db", "desktop.ini")


def _folder_files(source: Path) -> _Files:
    if not source.is_dir():
        raise _Wrong("is neither a folder nor a file", "give the release's folder or zip archive")
    names: dict[str, Any] = {}
    for folder, below, files in os.walk(source):
        relative = PurePosixPath(Path(folder).relative_to(source).as_posix())
        if len(relative.parts) >= 3:
            below.clear()
        for file in files:
            path = relative / file
            if not _noise(path) and (Path(folder) / file).is_file():
                names[str(path)] = Path(folder) / file
        if len(names) > MAX_MEMBERS:
            raise _Wrong(f"holds more than {MAX_MEMBERS:,} files", "give the folder of the release only")
    return _Files(names)


def _zip_files(source: Path) -> _Files:
    """Nothing is unpacked: members are read by name, with a cap, so no name can lead anywhere."""
    try:
        archive = zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError):
        raise _Wrong("is not a zip archive", "give the release's folder or zip archive") from None
    try:
        names: dict[str, Any] = {}
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise _Wrong(f"holds more than {MAX_MEMBERS:,} files", "give the release's own archive")
        for member in members:
            name = member.filename.replace("\\", "/")
            path = PurePosixPath(name)
            if member.is_dir() or _noise(path):
                continue
            if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", name):
                raise _Wrong(
                    f'holds the file "{show(name)}", outside its own folder', "do not trust this archive"
                )
            if stat.S_ISLNK(member.external_attr >> 16):
                raise _Wrong(f'holds the link "{show(name)}"', "pack files only")
            if member.flag_bits & 1:
                raise _Wrong("is encrypted", "unpack it first, and give the folder")
            if str(path) in names:
                raise _Wrong(f'holds the file "{show(name)}" twice', "pack it again")
            names[str(path)] = member
        return _Files(names, archive)
    except _Wrong:
        archive.close()
        raise
