"""Details: what is said of a run in addition to verdicts and scores, as a kind and its fields.

Where a fact arises it becomes a :class:`Detail`; words are made of it only where somebody reads them. What an audience may
see is decided over kinds and fields (``runner.views.audience``), so that no program reads wording back.

:data:`KINDS` and what kinds of tasks note (:func:`notes_of_kinds`) are the closed set. A row is a template: its replacement
fields are the kind's fields, each with the name of its type (:data:`TYPES`). Kinds in :data:`CODES` name a cause that only the
organiser can correct.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any, NamedTuple

from schemas.checking import kinds, schema

WITHHELD = "…"  # stands for a field that an audience may not see

KINDS: Mapping[str, str] = {
    "text": "{text:text}",  # of archives from before there were kinds, and of evaluators that are not ours
    "coded-text": "{code:text}: {text:text}",  # the same, of a cause that only the organiser can correct
    # Why an attempt has its verdict.
    "never-ran": "the container never ran",
    "platform": "{what:text}. {why:text}",
    "task-files": "{what:text}{why:more}; {fix:text}, then {then:text}",
    "stopped": "stopped by a person",
    "machine-busy": "the machine was busy with other work: until its {limit:seconds} s were over it had {used:tenths} s of "
    "processor time, of {most:tenths} s that it may use, and nothing was free",
    "ended-outside": "{how:text}",
    "reachable-ended": "the {part:text} ended while the run went on ({how:end}{said:more})",
    "reachable-silent": "the {part:text} stopped answering: {how:end}{said:more}",
    "wall-clock": "killed after {limit:seconds} s",
    "processor-time": "it used {used:tenths} s of processor time; limit {limit:seconds} s",
    "not-started": "could not be started: {error:text}",
    "memory": "exit code {code:int}; limit {limit:mebibytes}",
    "output-full": "exit code {code:int}; the output directory was full",  # of archives from before the limit was said
    "output-limit": "exit code {code:int}; the output directory was full; limits {limit:mebibytes}, {files:int} files",
    "signal": "killed by signal {signal:int}",
    "killed": "killed by signal {signal:int} (SIGKILL that we did not send: often memory)",
    "exit-code": "exit code {code:int}",
    "ended-before-ready": "it ended with exit code {code:int} before it listened on port {port:int}",
    "never-listened": "nothing listened on port {port:int} within {seconds:seconds} s",
    "unusable-file": "{file:text} is not usable: {why:text}",
    "no-file": "{file:text} (or {file:text}.gz) is not in the output directory",
    "ended": "{how:end}{said:more}",  # a container of ours; within other details
    # Warnings.
    "answers-failed": "{failed:int} of {turns:int} answers failed{classes:counts}",
    "server-ended": "the server ended by itself during the run, with exit code {code:int}",
    "server-ended-memory": "the server ended by itself during the run, with exit code {code:int} (memory)",
    "child-memory": "a child process was killed for memory while the main process went on",
    "full-at-end": "the output directory was full at the end: the run file may be cut off",
    "processor-unmeasured": "its processor time could not be measured, so the limit of {limit:seconds} s did not apply",
    "log-cut": "the log was longer than its limit and was cut",
    "refused-file": "not taken from the output directory: {file:text} ({why:text})",
    "first-cases": "it ended on the first cases, {topics:count} of the topics, so it was not run on the others",
    # Of a gateway that refused questions for a reason of the organiser's.
    "replies-unknown": "{refused:int} of {calls:int} questions to models have no kept reply, and there is no key to ask "
    "them: set {key:text} in the runner's environment, then {then:text}",
    "key-refused": "the endpoint of services.gateway refuses the key: correct {key:text}, then {then:text}",
    "share-spent": "this work used up its share of the budget, {calls:int} calls: raise calls_per_run of "
    "services.gateway in task.yaml, then {then:text}; what was answered is kept and costs nothing again",
    "budget-spent": "the budget of services.gateway was used up after {asked:int} calls of this work: raise calls, tokens "
    "or cost in task.yaml, then {then:text}; what was answered is kept and costs nothing again",
    # How an evaluation ended.
    "evaluator-said": "{message:text}",
    "evaluator-outside": "the evaluator was ended from outside: {how:text}",
    "evaluator-time": "the evaluator was killed at its limit of {limit:seconds} s",
    "evaluator-processor": "the evaluator used more than its limit of {limit:seconds} s of processor time",
    "evaluator-memory": "the evaluator was killed because it used more memory than its limit",
    "evaluator-not-started": "the evaluator ended with {error:text}",
    "evaluator-exit": "the evaluator ended with exit code {code:int}",
    "results-missing": "the evaluator did not write {files:text}",
    "contract-broken": "the evaluator's output breaks the contract: {what:text}",
    "gateway-ended": "the gateway ended before the evaluator; {message:text}",
    # Notes of our evaluator that are of no kind of task; those of a kind stand in its schema (notes_of_kinds).
    "nothing-judged": "{message:text}",
    "documents-unchecked": "ids of documents were not checked: {corpus:text} is not here",
    # Of a judge.
    "word-counts": "counts words only: a weak judge, for orientation",
    "embeddings": "Counts words and compares embeddings. The figures are its accuracy on labelled pairs that it was not tuned "
    "on: in English, about aerodynamics, half of them with the answer YES.",
    "entailment": "An entailment model decides whether a text supports a claim. The figures are accuracy and kappa on labelled pairs "
    "that it was not fitted on: in English, about aerodynamics, half of them with the answer YES.",
    "majority": "{annotators:annotators}; the majority counts, a tie is one half",
    "strict-majority": "{annotators:annotators}; the majority counts, a tie counts against the report",
}
CREDITS = {
    "citation": "of the citations that support their sentence",
    "sentence": "of fully supported sentences",
    "none": "of all sentences",
}

# The error codes of causes that only the organiser can correct: trying again before that would end the same way.
CODES: Mapping[str, str] = {
    "task-files": "E402",
    "replies-unknown": "E408",
    "key-refused": "E408",
    "share-spent": "E409",
    "budget-spent": "E409",
}


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_int(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_end(value: object) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"code", "memory", "outside"}


def _is_counts(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(k) and _is_int(v) for k, v in value.items())


def _end(value: Mapping[str, Any]) -> str:
    return str(value["outside"] or ("out of memory" if value["memory"] else f"exit code {value['code']}"))


def _counts(value: Mapping[str, int]) -> str:
    return ": " + ", ".join(f"{name} {count}" for name, count in sorted(value.items())) if value else ""


# By type: whether a value is of it, and its words.
TYPES: Mapping[str, tuple[Callable[[object], bool], Callable[[Any], str]]] = {
    "text": (_is_text, str),
    "more": (_is_text, lambda value: f". {value}" if value else ""),  # what else there is to say, or nothing
    "int": (_is_int, str),
    "count": (_is_int, "{:,}".format),
    "seconds": (_is_number, "{:g}".format),
    "tenths": (_is_number, "{:.1f}".format),  # of seconds that were measured
    "mebibytes": (_is_int, lambda value: f"{value / 2**20:.0f} MiB"),  # of bytes
    "end": (
        _is_end,
        _end,
    ),  # how a container ended: its exit code, whether it lacked memory, who else ended it
    "counts": (_is_counts, _counts),  # how often, by name
    "annotators": (_is_int, lambda value: f"{value} annotator{'' if value == 1 else 's'}"),
    "credit": (CREDITS.__contains__, CREDITS.__getitem__),  # which sentences count for a nugget
}


class _Words(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return WITHHELD if value == WITHHELD else TYPES[format_spec][1](value)


_WORDS = _Words()


class Note(NamedTuple):
    """What a kind of task says beside scores: a template, and which of its fields are ``open`` (None: not even the words).

    Open is what those see who may not see a run's own words: nothing that a software or a judge chooses.
    """

    says: str
    open: frozenset[str] | None


@cache
def notes_of_kinds() -> Mapping[str, Note]:
    """The notes of all kinds of tasks by name: ``x-notes`` in the schemas of their options. None has a name of :data:`KINDS`."""
    found: dict[str, Note] = {}
    for kind in kinds():
        try:
            rows = schema(f"kinds/{kind}").get("x-notes", {})
        except (OSError, ValueError):  # of an installed package; whoever uses that kind is told
            continue
        for name, row in rows.items():
            if name not in KINDS:
                found.setdefault(name, Note(row["says"], frozenset(row["open"]) if "open" in row else None))
    return found


def _template(kind: str) -> str:
    """The words of a kind. Raises ValueError for one that there is not."""
    if kind in KINDS:
        return KINDS[kind]
    if kind not in notes_of_kinds():
        raise ValueError(f"there is no detail {kind!r}")
    return notes_of_kinds()[kind].says


@cache
def fields_of(kind: str) -> Mapping[str, str]:
    """The fields of a kind with the names of their types. Raises ValueError for one that there is not."""
    return {name: spec or "" for _, name, spec, _ in _WORDS.parse(_template(kind)) if name}


@dataclass(frozen=True, init=False)
class Detail:
    """One fact: its ``kind`` (of :data:`KINDS` or :func:`notes_of_kinds`) and the values of its fields. ``str()`` gives its words.

    Raises ValueError for an unknown kind, and for fields that are not the kind's or not of their type.
    """

    kind: str
    fields: Mapping[str, Any]

    def __init__(self, kind: str, /, **fields: Any) -> None:
        wanted = fields_of(kind)
        if fields.keys() != wanted.keys():
            raise ValueError(f"{kind} has the fields {', '.join(wanted) or '(none)'}")
        for name, value in fields.items():
            if value != WITHHELD and not TYPES[wanted[name]][0](value):
                raise ValueError(f"{kind}: {name} is no {wanted[name]}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "fields", fields)

    def __str__(self) -> str:
        words = _WORDS.vformat(_template(self.kind), (), self.fields).strip()
        return f"{CODES[self.kind]}: {words}" if self.kind in CODES else words

    @property
    def code(self) -> str:
        """The code of the error that only the organiser can correct; empty when there is none."""
        return str(self.fields["code"]) if self.kind == "coded-text" else CODES.get(self.kind, "")

    def only(self, names: Collection[str]) -> Detail:
        """The same with the fields ``names`` alone; the words have "…" in place of the others."""
        return Detail(self.kind, **{n: value if n in names else WITHHELD for n, value in self.fields.items()})

    def as_dict(self) -> dict[str, Any]:
        """As it is written to files (definition ``detail`` of the schemas)."""
        return {"kind": self.kind, **self.fields}


def noted(detail: Detail) -> dict[str, Any]:
    """The keys ``note`` and ``note_detail`` of facts about a judge (schema ``result``)."""
    return {"note": str(detail), "note_detail": detail.as_dict()}


def read(stored: object, text: str = "") -> Detail:
    """The detail that was ``stored``; of a file from before there were kinds (or of kinds that are not known), its ``text``."""
    if isinstance(stored, Mapping):
        try:
            return Detail(str(stored.get("kind")), **{str(k): v for k, v in stored.items() if k != "kind"})
        except (ValueError, TypeError):
            pass
    code, colon, rest = text.partition(": ")
    if colon and code in CODES.values():
        return Detail("coded-text", code=code, text=rest)
    return Detail("text", text=text)
