"""Imports a release of Perspective Argument Retrieval 2024: the official files as they are, or the form its README shows.

What is accepted beyond the official format: any archive, packed files, one folder around everything, files that other systems add
(``__MACOSX``, ``.DS_Store``, ``._*``), a byte order mark, Windows line ends, JSON arrays instead of lines, ids as text, and
the README's field names (``text``, ``target``, ``demographic_properties``) and stance (``CON``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from runner.kinds import Say, quiet, release
from runner.kinds.adhoc.formats import Report, json_array, json_lines
from runner.kinds.diversity.objects import read_argument, read_query, same_values
from runner.kinds.release import Wrong as _Wrong
from runner.model.errors import Problem
from schemas import show

SPLITS = ("train", "dev", "test")


class Release(NamedTuple):
    """A release in the official format: the corpus, and queries by word (baseline, perspective) and split."""

    corpus: list[dict[str, Any]]
    queries: dict[tuple[str, str], list[dict[str, Any]]]


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
    problems = Report()

    def read(scratch: Path) -> list[Problem] | release.Write:
        found = _read_release(source, scratch, split, problems)
        for remark in problems.remarks:
            say(remark)
        if found is None or problems.count:
            return problems.all()
        return partial(_write_dataset, found, split)

    return release.imported(source, target, truths, read)


def _write_dataset(found: Release, split: str, inputs: Path, truths: Path) -> list[Problem]:
    for (word, part), rows in found.queries.items():
        name = f"{word}-queries/queries_{part}.jsonl"
        if part == split:
            _write(truths / name, rows)
            _write(inputs / name, [{k: v for k, v in r.items() if k != "relevant_candidates"} for r in rows])
        elif part != "test":  # the relevance of another test set is nobody's training data
            _write(inputs / name, rows)
    for folder in (inputs, truths):
        _write(folder / "corpus.jsonl", found.corpus)
    return []


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        # A lone surrogate is legal in JSON but not in UTF-8: such a text stays escaped.
        for row in rows:
            line = json.dumps(row, ensure_ascii=False)
            if any("\ud800" <= c <= "\udfff" for c in line):
                line = json.dumps(row)
            file.write(line + "\n")


def _read_release(source: Path, scratch: Path, split: str, problems: Report) -> Release | None:
    """Read and check a release; None when there is no corpus. Problems go to ``problems``."""
    try:
        files = _Files(release.files_of(source, scratch))
        found = _read(files, split, problems)
    except _Wrong as error:
        problems.add(source.name, error.what, error.fix)
        return None
    problems.remarks += release.passed_over(files.all, files.used)
    return found


def _read(files: _Files, split: str, problems: Report) -> Release | None:
    made = Release([], {})
    name = files.name("corpus")
    assert name is not None  # the root is where it is
    made.corpus.extend(_rows(files, name, "argument_id", read_argument, problems))
    ids = {argument["argument_id"] for argument in made.corpus}
    if not made.corpus and not problems.count:
        problems.add(name, "holds no argument")
    problems.remarks += same_values(made.corpus)
    for word in ("baseline", "perspective"):
        for one in SPLITS:
            stem = f"{word}-queries/queries_{one}"
            found = files.name(stem)
            if found is None and one == split:
                problems.add(f"{stem}.jsonl", "is missing", f"the split {one} needs it")
            if found is None or (one == "test" and split != "test"):
                continue
            read = partial(_query, ids, word == "perspective")
            rows = list(_rows(files, found, "query_id", read, problems))
            if not rows and not problems.count:
                problems.add(found, "holds no query")
            made.queries[word, one] = rows
    return made


def _query(arguments: set[int], perspective: bool, data: Any) -> dict[str, Any]:
    """A query whose relevant arguments are in the corpus. Raises :class:`Wrong`."""
    query = read_query(data, perspective=perspective)
    unknown = next((a for a in query["relevant_candidates"] if a not in arguments), None)
    if unknown is not None and arguments:
        raise _Wrong(f"the relevant argument {unknown} is not in the corpus")
    return query


def _rows(
    files: _Files, name: str, key: str, read: Callable[[Any], dict[str, Any]], problems: Report
) -> Iterator[dict[str, Any]]:
    """The objects of a file as ``read`` returns them, each number under ``key`` once; the others are problems."""
    seen: set[int] = set()
    try:
        is_array = files.begins_with_bracket(name)
    except _Wrong as error:
        problems.add(name, error.what, error.fix)
        return
    records = (json_array if is_array else json_lines)(files.path(name), name, problems)
    for place, data in records:
        try:
            row = read(data)
            if row[key] in seen:
                raise _Wrong(f"the {key} {row[key]} is there twice", "keep one of them")
        except _Wrong as error:
            problems.add(place, error.what, error.fix)
            continue
        seen.add(row[key])
        yield row


class _Files:
    """The files of a release by name, relative to where its corpus is, whatever their endings are."""

    def __init__(self, names: Mapping[str, Path]) -> None:
        self.all, self.used = names, set[str]()
        paths = [PurePosixPath(name) for name in names]
        roots = {str(p.parent) for p in paths if release.stem(p.name) == "corpus" and len(p.parts) <= 2}
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

    def path(self, name: str) -> Path:
        """Where a file is."""
        return self.all[self._prefix + name]

    def begins_with_bracket(self, name: str) -> bool:
        """True if a file is one JSON array. Raises :class:`Wrong` for a file that cannot be read."""
        return release.read(self.path(name)).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
