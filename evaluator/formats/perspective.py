"""A release of Perspective Argument Retrieval 2024: its corpus and its queries, checked while they are read.

All files are JSON Lines (plain or gzip). Messages name file and line, never a value: relevance is secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.formats.files import Source, organisers, plain_or_gzip
from evaluator.formats.lines import parse

# As labelled in profiles, with the English names that result files use. Order: of the result files.
ISSUES = {
    "Liberale Gesellschaft": "Liberal Society",
    "Ausgebauter Umweltschutz": "Enhanced Environmental Protection",
    "Restriktive Finanzpolitik": "Restrictive Fiscal Policy",
    "Law & Order": "Law & Order",
    "Liberale Wirtschaftspolitik": "Liberal Economic Policy",
    "Restriktive Migrationspolitik": "Restrictive Immigration Policy",
    "Ausgebauter Sozialstaat": "Expanded Welfare State",
    "Offene Aussenpolitik": "Open Foreign Policy",
}
PLAIN = ("gender", "age", "residence", "civil_status", "education", "political_spectrum")
PROFILE = frozenset({*PLAIN, "denomination", "important_political_issues"})
FIELDS = frozenset({"argument_id", "argument", "topic", "stance", "demographic_profile"})
# Sorted as the official files sort them: by the labels in the data.
PROPERTIES = tuple(sorted(("stance", *PLAIN, *ISSUES)))
_ISSUES = tuple(p for p in PROPERTIES if p in ISSUES)
_TEXTS = tuple(p for p in PROPERTIES if p in PLAIN)
assert (*_ISSUES, *_TEXTS, "stance") == PROPERTIES  # _properties gives them in this order
NAMES = tuple(ISSUES.get(p, p) for p in PROPERTIES)
QUERIED = {"age_bin": "age", "important_political_issue": "important_political_issues"}
_MISSING = object()
_TEXT = {str, type(None), type(_MISSING)}


class Query(NamedTuple):
    """A query: ``relevant`` as listed, ``asked`` the number of the property it asks for (None: none of those that count)."""

    id: int
    relevant: list[int]
    asked: int | None


Broken = Callable[[EvaluatorError], None]  # told what is wrong with a line, which is left out then


class _Reader:
    """The objects of a JSON Lines file of the organiser, one by one, and errors that name the line."""

    def __init__(self, folder: Path, name: str, broken: Broken | None = None) -> None:
        self.name, self.line = name, 0
        self._broken = broken
        self._path = plain_or_gzip(folder / name)

    def wrong(self, what: str, fix: str = "") -> NoReturn:
        raise EvaluatorError(
            f"the organiser's file {plain(self.name, 200)} is wrong",
            f"{plain(self.name, 200)}:{self.line}: {what}",
            fix,
        )

    def objects(self) -> Iterator[dict[str, Any]]:
        fix = "give a folder with corpus.jsonl, baseline-queries/ and perspective-queries/"
        what = f"the organiser's file {plain(self.name, 200)}"
        with organisers(what, fix), Source(self._path, follow=True) as source:
            for line in source.lines():
                self.line += 1
                if line.strip():
                    try:
                        data = self._object(line)
                    except EvaluatorError as error:
                        self.failed(error)
                        continue
                    yield data

    def failed(self, error: EvaluatorError) -> None:
        """Raise the error of a line, or tell it to whoever wants to know of all."""
        if self._broken is None:
            raise error
        self._broken(error)

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            data = parse(line)
        except UnicodeDecodeError:
            self.wrong("not UTF-8")
        except ValueError:
            fix = "write one object a line: other forms have to be imported first"
            self.wrong("not JSON", fix if self.line == 1 else "")
        if not isinstance(data, dict):
            self.wrong("not an object", "write one object a line: other forms have to be imported first")
        return data

    def integer(self, data: dict[str, Any], key: str) -> int:
        value = data.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(f"{key} is missing or not an integer")
        return value


def read_corpus(folder: Path, name: str = "corpus.jsonl", broken: Broken | None = None) -> Population:
    """Read the corpus and number its texts and property values.

    The 15 properties: stance, six of the profile, and one for each political issue (named by its author or not).
    A missing or null value is a value like another. A property of which all arguments have the same value is left out:
    rKL has no meaning for it, and relevance does not need it. Raises :class:`EvaluatorError` naming the line, also for
    arguments without ``important_political_issues`` and fields that the format does not have (the official script would
    make properties of them).
    """
    reader = _Reader(folder, name, broken)
    codes: list[dict[Any, int]] = [{} for _ in PROPERTIES]
    texts: dict[str, int] = {}
    values: dict[int, tuple[int, ...]] = {}
    text_of: dict[int, int] = {}
    issues: dict[tuple[str, ...], tuple[bool, ...]] = {}
    for data in reader.objects():
        try:
            argument = reader.integer(data, "argument_id")
            if argument in values:
                reader.wrong("argument_id is there twice")
            row = _properties(reader, data, issues)
        except EvaluatorError as error:
            reader.failed(error)
            continue
        try:
            numbers = [code[value] for code, value in zip(codes, row, strict=True)]
        except KeyError:  # a value that was not there before
            numbers = [code.setdefault(value, len(code)) for code, value in zip(codes, row, strict=True)]
        values[argument] = tuple(numbers)
        text_of[argument] = texts.setdefault(data["argument"], len(texts))
    if not values:
        reader.wrong("the corpus is empty")
    kept = [p for p, code in enumerate(codes) if len(code) > 1]
    if len(kept) < len(codes):
        values = {argument: tuple([row[p] for p in kept]) for argument, row in values.items()}
    total = len(values)
    counts = [Counter(column) for column in zip(*values.values(), strict=True)]
    return Population(
        tuple(NAMES[p] for p in kept),
        values,
        [[count[code] / total for code in range(len(count))] for count in counts],
        [_majority(p, count, values) for p, count in enumerate(counts)],
        text_of,
        tuple(name for p, name in enumerate(NAMES) if p not in kept),
    )


def _majority(p: int, count: Counter[int], values: dict[int, tuple[int, ...]]) -> int:
    """The most frequent value; of several the one that the smallest argument_id has."""
    most = max(count.values())
    tied = {code for code, n in count.items() if n == most}
    if len(tied) == 1:
        return tied.pop()
    return values[min(argument for argument, row in values.items() if row[p] in tied)][p]


def _properties(
    reader: _Reader, data: dict[str, Any], issues: dict[tuple[str, ...], tuple[bool, ...]]
) -> tuple[Any, ...]:
    """Check one argument; its values in the order of :data:`PROPERTIES`. ``issues``: those of lists that were there before."""
    if data.keys() != FIELDS:
        missing, extra = sorted(FIELDS - data.keys()), sorted(data.keys() - FIELDS)
        if missing:
            reader.wrong(f"{missing[0]} is missing")
        reader.wrong(
            f"the field {plain(extra[0])} is not part of the format",
            "leave it out: it would become one more diversity property",
        )
    for key in ("argument", "topic", "stance"):
        if not isinstance(data[key], str):
            reader.wrong(f"{key} is not text")
    profile = data["demographic_profile"]
    if not isinstance(profile, dict):
        reader.wrong("demographic_profile is not an object")
    if not profile.keys() <= PROFILE:
        extra = sorted(profile.keys() - PROFILE)
        reader.wrong(f"demographic_profile has the unknown key {plain(extra[0])}")
    listed = profile.get("important_political_issues")
    if not isinstance(listed, list) or not set(map(type, listed)) <= {str}:
        reader.wrong("important_political_issues is missing or not a list of texts")
    named = tuple(listed)
    if named not in issues:
        issues[named] = tuple([label in listed for label in _ISSUES])
    texts = [profile.get(label, _MISSING) for label in _TEXTS]
    if not set(map(type, texts)) <= _TEXT:
        wrong = next(label for label, value in zip(_TEXTS, texts, strict=True) if type(value) not in _TEXT)
        reader.wrong(f"{wrong} is not text")
    return *issues[named], *texts, data["stance"]


def read_queries(
    folder: Path, name: str, population: Population, *, perspective: bool, broken: Broken | None = None
) -> list[Query]:
    """Read the queries of one split, sorted by id.

    Raises :class:`EvaluatorError` naming the line, also when relevance is missing or names unknown arguments.
    """
    reader = _Reader(folder, name, broken)
    found: dict[int, Query] = {}
    for data in reader.objects():
        try:
            query = _query(reader, data, population, perspective=perspective)
            if query.id in found:
                reader.wrong("query_id is there twice")
        except EvaluatorError as error:
            reader.failed(error)
            continue
        found[query.id] = query
    if not found:
        reader.wrong("there is no query")
    return [found[q] for q in sorted(found)]


def _query(reader: _Reader, data: dict[str, Any], population: Population, *, perspective: bool) -> Query:
    query, relevant = reader.integer(data, "query_id"), data.get("relevant_candidates")
    if relevant is None:
        reader.wrong(
            "relevant_candidates is missing: without relevance nothing can be scored",
            "use a split with relevance",
        )
    if not isinstance(relevant, list) or not set(map(type, relevant)) <= {int}:
        reader.wrong("relevant_candidates is not a list of integers")
    if not population.values.keys() >= set(relevant):
        reader.wrong("relevant_candidates names an argument that is not in the corpus")
    return Query(query, relevant, _asked(reader, data, population.properties) if perspective else None)


def read_ids(folder: Path, name: str, key: str) -> frozenset[int]:
    """Read nothing but the ids of a corpus or of queries: ``key`` of every object.

    Raises :class:`EvaluatorError` naming the line, also for an id given twice and for a file without any.
    """
    return frozenset(placed_ids(folder, name, key))


def placed_ids(
    folder: Path,
    name: str,
    key: str,
    broken: Broken | None = None,
    look: Callable[[int, Mapping[str, Any]], None] = lambda line, data: None,
) -> dict[int, int]:
    """The same ids with their lines. ``look`` is shown every object with its line."""
    reader = _Reader(folder, name, broken)
    found: dict[int, int] = {}
    for data in reader.objects():
        try:
            number = reader.integer(data, key)
            if found.setdefault(number, reader.line) != reader.line:
                reader.wrong(f"{key} is there twice")
        except EvaluatorError as error:
            reader.failed(error)
        look(reader.line, data)
    if not found:
        reader.wrong("the corpus is empty" if key == "argument_id" else "there is no query")
    return found


def _asked(reader: _Reader, data: dict[str, Any], properties: tuple[str, ...]) -> int | None:
    """The number of the property that a query asks for; None for one that is not among ``properties``."""
    wanted = data.get("demographic_property")
    if not isinstance(wanted, dict) or len(wanted) != 1:
        reader.wrong("demographic_property is missing or not an object with one key")
    ((key, value),) = wanted.items()
    key = QUERIED.get(key, key)
    if key not in PROFILE:
        reader.wrong("demographic_property has an unknown key")
    if key == "important_political_issues":
        key = ISSUES.get(value, "") if isinstance(value, str) else ""
    # denomination is asked for, but is not among the 15 properties
    return properties.index(key) if key in properties else None


def query_file(queries: str, split: str) -> str:
    """The name of the queries' file: ``queries`` is ``baseline`` or ``perspective``."""
    return f"{queries}-queries/queries_{split}.jsonl"


class Population(NamedTuple):
    """The arguments that can be retrieved, as numbers.

    ``properties``: names; ``values``: argument -> number of its value for each property; ``shares``: for each
    property and value the share of arguments that have it; ``majority``: each property's most frequent value;
    ``texts``: argument -> number of its text (twins have the same); ``left_out``: names of properties of which all
    arguments have the same value, so that neither measure of diversity has a meaning for them.
    """

    properties: tuple[str, ...]
    values: Mapping[int, tuple[int, ...]]
    shares: Sequence[Sequence[float]]
    majority: Sequence[int]
    texts: Mapping[int, int]
    left_out: tuple[str, ...] = ()
