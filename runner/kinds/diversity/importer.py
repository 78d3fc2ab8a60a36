"""Imports a release of Perspective Argument Retrieval 2024: the official files as they are, or the form its README shows.

What is accepted beyond the official format: any archive, packed files, one folder around everything, files that other systems add
(``__MACOSX``, ``.DS_Store``, ``._*``), a byte order mark, Windows line ends, JSON arrays instead of lines, ids as text, and
the README's field names (``text``, ``target``, ``demographic_properties``) and stance (``CON``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, NoReturn

from runner.kinds import Say, quiet, release
from runner.kinds.release import Wrong as _Wrong
from runner.model.errors import Problem
from schemas import show

SPLITS = ("train", "dev", "test")
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


class Release(NamedTuple):
    """A release in the official format: the corpus, and queries by word (baseline, perspective) and split."""

    corpus: list[dict[str, Any]]
    queries: dict[tuple[str, str], list[dict[str, Any]]]


class _Problems:
    """The first 50 problems, how many there were, and remarks."""

    def __init__(self) -> None:
        self.remarks: list[str] = []  # what is no problem, but has to be known
        self.kept: list[Problem] = []
        self.count = 0

    def add(self, where: str, what: str, fix: str = "") -> None:
        self.count += 1
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(Problem(show(where, 200), what, fix))

    def all(self) -> list[Problem]:
        if self.count > MAX_PROBLEMS:
            more = Problem(
                "the release", f"and {self.count - MAX_PROBLEMS:,} more problems", "correct these first"
            )
            return [*self.kept, more]
        return self.kept


def import_release(
    source: Path, target: Path, split: str, *, truths: Path | None = None, say: Say = quiet
) -> list[Problem]:
    """Import the release ``source`` (folder or zip) as a dataset on which ``split`` is evaluated.

    Writes ``target/inputs`` (corpus; train and dev with relevance; ``split`` without) and ``truths`` (default:
    ``target/truths``; the corpus, and ``split`` with relevance). Returns every problem with file and line; when there
    is one, nothing was written. What else has to be known goes to ``say``. Raises nothing for what is in the release, OSError when ``target`` cannot be written.
    """
    if split not in SPLITS:
        return [Problem(show(split), "is no split", f"say one of {', '.join(SPLITS)}")]
    inputs, truths = target / "inputs", truths or target / "truths"
    taken = [p for p in (inputs, truths) if os.path.lexists(p) and not (p.is_dir() and not any(p.iterdir()))]
    if taken:
        return [Problem(show(str(p), 200), "is there already", "move it away first") for p in taken]
    problems = _Problems()
    found = read_release(source, split, problems)
    for remark in problems.remarks:
        say(remark)
    if found is None or problems.count:
        return problems.all()
    hidden = {word: found.queries[word, split] for word in ("baseline", "perspective")}
    staged = [(inputs, _beside(inputs)), (truths, _beside(truths))]
    try:
        for (word, one), rows in found.queries.items():
            if one == split:
                shown = [{k: v for k, v in row.items() if k != "relevant_candidates"} for row in rows]
                _write(staged[0][1] / f"{word}-queries" / f"queries_{one}.jsonl", shown)
            elif one != "test":  # the relevance of another test set is nobody's training data
                _write(staged[0][1] / f"{word}-queries" / f"queries_{one}.jsonl", rows)
        for word, rows in hidden.items():
            _write(staged[1][1] / f"{word}-queries" / f"queries_{split}.jsonl", rows)
        for final, folder in staged:
            _write(folder / "corpus.jsonl", found.corpus)
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
        with tempfile.TemporaryDirectory(prefix="release-") as scratch:
            files = _Files(release.files_of(source, Path(scratch)))
            found = _read(files, split, problems)
            problems.remarks += release.passed_over(files.all, files.used)
            return found
    except _Wrong as error:
        problems.add(source.name, error.what, error.fix)
        return None


def _read(files: _Files, split: str, problems: _Problems) -> Release | None:
    made = Release([], {})
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
        made.corpus.append(argument)
    if not made.corpus and not problems.count:
        problems.add(name, "holds no argument")
    problems.remarks += _same(made.corpus)
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
            made.queries[word, one] = rows
    return made


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


def _same(corpus: list[dict[str, Any]]) -> list[str]:
    """A line that names the diversity properties of which all arguments have one value, or none: they will not count."""
    keys = [key for key in ("stance", *_PROFILE) if key not in ("denomination", _ISSUES)]
    same = [
        key
        for key in keys
        if len({a["stance"] if key == "stance" else a["demographic_profile"].get(key, 0) for a in corpus}) < 2
    ]
    named = {
        label: sum(label in a["demographic_profile"][_ISSUES] for a in corpus) for label in _ISSUE_LABELS
    }
    same += [label for label, count in named.items() if count in (0, len(corpus))]
    return (
        [f"left out of diversity, because all arguments have the same value: {', '.join(same)}"]
        if same
        else []
    )


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
    """The files of a release by name, relative to where its corpus is, whatever their endings are."""

    def __init__(self, names: Mapping[str, Path]) -> None:
        self.all, self.used = names, set[str]()
        roots = {
            str(PurePosixPath(n).parent) for n in names if release.stem(PurePosixPath(n).name) == "corpus"
        }
        roots = {r for r in roots if len(PurePosixPath(r).parts) <= 1}
        if len(roots) != 1:
            raise _Wrong(
                "has more than one corpus.jsonl" if roots else "has no corpus.jsonl",
                "give the folder or archive of one release, with corpus.jsonl in it or one folder below",
            )
        (root,) = roots
        self._prefix = "" if root == "." else f"{root}/"
        self._names = [n.removeprefix(self._prefix) for n in sorted(names) if n.startswith(self._prefix)]

    def name(self, stem: str) -> str | None:
        """The file's name with its endings, or None. Raises :class:`Wrong` if several could be meant."""
        found = [n for n in self._names if release.stem(n) == stem]
        if len(found) > 1:
            raise _Wrong(f"holds {' and '.join(show(n) for n in found[:3])}", "keep the one that counts")
        self.used.update(f"{self._prefix}{n}" for n in found)
        return found[0] if found else None

    def read(self, name: str) -> bytes:
        """Its bytes, unpacked. Raises :class:`Wrong`."""
        return release.read(self.all[self._prefix + name])
