"""A task of records from another platform: its files are read in that platform's own form, and written in ours."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from runner.kinds import Say
from runner.kinds.records import codabench, tira
from runner.kinds.records.foreign import FILE_NAME, Asked, Part, Taken, name_of
from runner.kinds.records.truth_files import FORMS, Records, read_records
from runner.kinds.release import Wrong
from runner.model.errors import Problem, RunnerError, no_such
from runner.tasks.data_files import file_digest
from runner.views.pages import render
from schemas import show
from schemas.checking import schema

SOURCES: Mapping[str, Callable[[Path, Path], Taken]] = {
    tira.PREFIX: tira.from_tira,
    codabench.PREFIX: codabench.from_bundle,
}
TRUTHS = "truths.jsonl"
IDS = "records.jsonl"
_MOST_FIELDS = 10
_CONTACT = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|https?://[!-~]+")


def from_elsewhere(
    task_id: str,
    source: str,
    folder: Path,
    hidden: Path,
    say: Say,
    text_fields: Sequence[str] = (),
) -> list[Problem]:
    """Write the files of a task of another platform; see :class:`runner.model.kinds.Collector`."""
    prefix = next((one for one in SOURCES if source.startswith(one)), None)
    if prefix is None:
        why = f"It reads {' and '.join(f'{one}PATH' for one in SOURCES)}."
        raise RunnerError(
            "E101", "this kind makes tasks of other platforms' only", why=why, fix="name one of these"
        )
    if text_fields:
        fix = "leave it out: the files of the other platform decide that"
        raise RunnerError("E101", f"--topic-text is not for {prefix}PATH", fix=fix)
    path = Path(source.removeprefix(prefix))
    if not path.exists():
        raise no_such("folder or file", str(path), fix="name the folder or the archive", limit=1000)
    with tempfile.TemporaryDirectory(prefix="elsewhere-") as scratch:
        try:
            _write(SOURCES[prefix](path, Path(scratch)), task_id, folder, hidden, say)
        except Wrong as error:
            return [Problem(show(path.name, 200), error.what, error.fix, code="E402")]
        except RunnerError as error:
            if not error.problems:
                raise
            return [replace(one, code="E402") for one in error.problems]
    return []


def _write(taken: Taken, task_id: str, folder: Path, hidden: Path, say: Say) -> None:
    """Write all files of the task; raises :class:`Wrong` where the data do not go together."""
    if not taken.parts:
        raise Wrong(
            "has no data with truths in it",
            "add them, or make a task of your own: runner task new NAME --kind records",
        )
    found = {part.id: _truths_of(part, taken, say) for part in taken.parts}
    first = next(iter(found.values()))
    if len(first.id) > 100:
        raise Wrong("tells records apart by a field whose name has more than 100 characters", "shorten it")
    for part in taken.parts:
        if found[part.id].id != first.id:
            raise Wrong(
                f"tells records apart by {show(first.id)}, and those of {part.id} by {show(found[part.id].id)}"
            )
    fields = _fields(taken, list(found.values()))
    measures = measures_of(taken, fields, first)
    form = first.form if first.form in ("json", "jsonl", "tsv") else "csv"
    taken.output = taken.output if FILE_NAME.fullmatch(taken.output) else f"predictions.{form}"
    topics = {}
    for part in taken.parts:
        place = hidden / part.id if part.visibility == "blinded" else folder / "datasets" / part.id
        topics[part.id] = _part(part, found[part.id], place, taken)
    schema = _schema(first, fields, taken)
    (folder / "answer.schema.json").write_text(
        json.dumps(schema, indent=2, ensure_ascii=False) + "\n", "utf-8"
    )
    bare = taken.output.removesuffix(".gz")
    example = f"{PurePosixPath(bare).stem}.example{PurePosixPath(bare).suffix or '.jsonl'}"
    (folder / example).write_text(_example(schema, first.id, bare), "utf-8")
    if taken.contact and not _CONTACT.fullmatch(taken.contact):
        taken.left.append(f"the contact {show(taken.contact)}: it is no address")
        taken.contact = ""
    values = {
        "id": task_id, "taken": taken, "topics": topics, "measures": measures, "example": example, "key": first.id,
        "q": partial(json.dumps, ensure_ascii=False),
    }  # fmt: skip
    (folder / "task.yaml").write_text(render("runner.kinds.records/task.yaml", **values), "utf-8")
    for page in ("README", "TODO"):
        text = render(f"runner.kinds.records/{page.lower()}.md", **values)
        (folder / f"{page}.md").write_text(text, "utf-8")
    for one in taken.left:
        say(f"not taken over: {one}")


def _truths_of(part: Part, taken: Taken, say: Say) -> Records:
    """The records of a dataset's truths: those of the one file that holds some and that software is not given."""
    given = {file_digest(path) for path in part.inputs.values()}
    own = {name: path for name, path in part.truths.items() if file_digest(path) not in given}
    shared = not own
    read: dict[str, Records] = {}
    wrong: dict[str, Wrong] = {}
    for name, path in sorted((own or part.truths).items()):
        try:
            read[name] = read_records(path, name, taken.truth_id or taken.id_field)
            if read[name].headless:
                columns = ", ".join(read[name].rows[0])
                taken.left.append(f"{show(name, 100)} has no header: its columns are named {columns}")
        except Wrong as error:
            wrong[name] = error
    if len(read) != 1:
        fix = "put the truths into one file of records, or bring an evaluator of your own (docs/how-to/own-evaluator.md)"
        if read:
            raise Wrong(f"has several files of truths for {part.id}: {', '.join(map(show, read))}", fix)
        said = "; ".join(f'"{show(n, 100)}" {e.what}' for n, e in wrong.items())
        raise Wrong(
            f"has no truths of {part.id} that can be read as records ({said})",
            next(iter(wrong.values())).fix or fix,
        )
    ((name, found),) = read.items()
    if shared and part.visibility == "blinded":
        raise Wrong(
            f'gives the truths of {part.id} to software, too ("{show(name, 100)}")',
            "keep them out of the inputs",
        )
    if wanted := taken.id_field if taken.truth_id else "":
        for row in found.rows:
            row[wanted] = row.pop(found.id)
        found.id = wanted
    say(
        f"{part.id} ({part.visibility}): {len(found.rows):,} records in {show(name, 100)} ({FORMS[found.form]}), told apart by {show(found.id)}"
    )
    if found.form == "lines":
        say(f"{part.id}: the records have no ids, and are numbered from 1: an output says id and value")
    taken.left += [
        f"the file {show(other, 100)} of the truths of {part.id}: {e.what}" for other, e in wrong.items()
    ]
    return found


def _fields(taken: Taken, found: Sequence[Records]) -> list[str]:
    """The fields of the truths that a software has to say, which every dataset has."""
    named = taken.truth_value or taken.value_field
    fields = [one for one in found[0].fields() if all(one in other.fields() for other in found[1:])]
    if named and named not in fields:
        raise Wrong(f"has no {show(named)} in its truths, which is what it evaluates", "correct value_field")
    if not fields:
        raise Wrong(
            "has no field in its truths beside the ids", "add what is right as a field of each record"
        )
    if len(fields) > _MOST_FIELDS:
        rest = ", ".join(map(show, fields[_MOST_FIELDS : _MOST_FIELDS + 10]))
        taken.left.append(f"fields of the truths, of which there are {len(fields)}: {rest} …")
    kept = [named] if named else fields[:_MOST_FIELDS]
    if not named and len(kept) > 1:
        taken.left.append(
            f"which field counts: {', '.join(map(show, kept))} are all expected of an output, remove what is not"
        )
    return kept


def _schema(of: Records, fields: Sequence[str], taken: Taken) -> dict[str, Any]:
    """The schema of an output's record: types only, since the values of hidden truths are nobody's business."""
    said = {field_of(name, taken): of.type(name) for name in fields}
    properties: dict[str, Any] = {of.id: {"type": ["string", "integer"]}}
    properties |= {name: {"type": kind} if kind else {} for name, kind in said.items()}
    properties |= {name: {} for name in taken.required if name not in properties}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": list(properties),
        "properties": properties,
    }


def _example(schema: Mapping[str, Any], key: str, name: str) -> str:
    """An output of two records that were made up."""
    values = {"integer": 1, "number": 0.5, "boolean": True}
    row = {n: values.get(one.get("type"), "…") if n != key else "" for n, one in schema["properties"].items()}
    rows = [{**row, key: f"example-{n}"} for n in (1, 2)]
    if name.endswith((".csv", ".tsv")):
        sign = "," if name.endswith(".csv") else "\t"
        cells = [
            list(row),
            *([json.dumps(v) if isinstance(v, bool) else str(v) for v in one.values()] for one in rows),
        ]
        return "".join(sign.join(map(partial(_cell, sign), line)) + "\n" for line in cells)
    if name.endswith(".json"):
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)


def _cell(sign: str, text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in (sign, '"')) else text


def _part(part: Part, found: Records, place: Path, taken: Taken) -> str:
    """Write inputs and truths of a dataset; returns the file of the inputs that lists the ids, or an empty text."""
    inputs, truths = place / "inputs", place / "truths"
    truths.mkdir(parents=True)
    with (truths / TRUTHS).open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in found.rows)
    inputs.mkdir()
    for name, path in sorted(part.inputs.items()):
        if not name.isprintable():
            raise Wrong(f'has a file "{show(name)}", whose name does not print', "rename it")
        target = inputs / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    if not part.inputs:
        with (inputs / IDS).open("w", encoding="utf-8") as out:
            out.writelines(
                json.dumps({found.id: row[found.id]}, ensure_ascii=False) + "\n" for row in found.rows
            )
        taken.left.append(f"inputs of {part.id}: there are none; {IDS} lists the ids that are asked for")
        return IDS
    return next(_listing(part.inputs, found), "")


def _listing(inputs: Mapping[str, Path], found: Records) -> Iterator[str]:
    """Files of the inputs that have the ids of all records."""
    wanted = {str(row[found.id]) for row in found.rows}
    for name, path in sorted(inputs.items()) if found.form != "lines" else ():
        try:
            records = read_records(path, name, found.id)
        except Wrong:
            continue
        rows = [] if records.headless else records.rows
        if wanted <= {str(row[found.id]) for row in rows} and "*" not in name:
            yield name


# Figures whose names say what they are, by their letters and digits alone: the measure, and of what it is.
_AVERAGED = {
    f"{first}{second}": (f"{measure}({{}}, average={average})", "labels")
    for name, measure in (("f1", "F1"), ("precision", "Precision"), ("recall", "Recall"))
    for average in ("macro", "micro", "weighted")
    for first, second in ((name, average), (average, name))
}
_FIGURES = {
    "accuracy": ("Accuracy({})", "labels"),
    "acc": ("Accuracy({})", "labels"),
    "balancedaccuracy": ("BalancedAccuracy({})", "labels"),
    **_AVERAGED,
    "mcc": ("MCC({})", "labels"),
    "matthewscorrelation": ("MCC({})", "labels"),
    "cohenkappa": ("Kappa({})", "labels"),
    "mae": ("MAE({})", "numbers"),
    "meanabsoluteerror": ("MAE({})", "numbers"),
    "rmse": ("RMSE({})", "numbers"),
    "pearson": ("Pearson({})", "numbers"),
    "pearsonr": ("Pearson({})", "numbers"),
    "spearman": ("Spearman({})", "numbers"),
    "spearmanr": ("Spearman({})", "numbers"),
    "kendall": ("Kendall({})", "numbers"),
    "kendalltau": ("Kendall({})", "numbers"),
    "exactmatch": ("ExactMatch({})", "texts"),
    "bleu": ("BLEU({})", "texts"),
    "sacrebleu": ("BLEU({})", "texts"),
    "chrf": ("chrF({})", "texts"),
    "rouge1": ("ROUGE({}, type=rouge1)", "texts"),
    "rouge2": ("ROUGE({}, type=rouge2)", "texts"),
    "rougel": ("ROUGE({}, type=rougeL)", "texts"),
}
_LOWER = ("MAE(", "RMSE(")


class Measured(NamedTuple):
    """A measure of the new task."""

    id: str
    measure: str
    precision: int | None

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return self.measure.startswith(_LOWER)


def measures_of(taken: Taken, fields: Sequence[str], of: Records) -> list[Measured]:
    """A measure for each figure whose name says what it is; without any, one for each field."""
    known = set(schema("kinds/records")["x-measures"])
    found: dict[str, Measured] = {}
    for asked in taken.asked:
        template, sort = _FIGURES.get(re.sub("[^a-z0-9]", "", asked.name.lower()), ("", ""))
        fits = [one for one in fields if template.partition("(")[0] in known and _is(of, one, sort)]
        if not fits:
            taken.left.append(
                f"the figure {show(asked.name)}: its name does not say how it is computed from one field"
            )
            continue
        for name in fits:
            one = _measured(template, name, asked, taken, len(fits) > 1, [m.id for m in found.values()])
            found.setdefault(one.measure, one)
    if not found:
        for name in fields:
            template = "MAE({})" if of.numbers(name) else "Accuracy({})"
            ids = [m.id for m in found.values()]
            one = _measured(template, name, Asked(""), taken, len(fields) > 1, ids)
            found[one.measure] = one
        names = ", ".join(found)
        taken.left.append(
            f"what is computed: {names} stand in task.yaml to begin with, take what fits your task"
        )
    else:
        taken.left.append(f"how figures are computed: {', '.join(found)} are ours, compare them with yours")
    return list(found.values())


def _is(of: Records, name: str, sort: str) -> bool:
    """Whether a field of the truths holds ``labels``, ``numbers`` (amounts) or ``texts``."""
    if sort == "texts":
        return of.type(name) == "string"
    return bool(sort) and of.numbers(name) is (sort == "numbers")


def _measured(
    template: str, name: str, asked: Asked, taken: Taken, several: bool, ids: Sequence[str]
) -> Measured:
    text = template.format(_quoted(field_of(name, taken)))
    if asked.lower is not None and asked.lower is not text.startswith(_LOWER):
        better = "higher" if asked.lower else "lower"
        taken.left.append(f"the direction of {show(asked.name)}: of {text} {better} values are better")
    if (right := taken.truth_value) and right == name and taken.value_field not in ("", name):
        text = f"{text[:-1]}, truth={_quoted(name)})"
    parts = [asked.name or template.partition("(")[0], *([name] if several else [])]
    precision = asked.precision if asked.precision is not None and asked.precision <= 10 else None
    return Measured(name_of("-".join(parts), ids, "measure"), text, precision)


def field_of(name: str, taken: Taken) -> str:
    """What an output calls a field of the truths."""
    return taken.value_field if name == taken.truth_value and taken.value_field else name


def _quoted(name: str) -> str:
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_.-]*", name) and name not in ("true", "false")
    return name if plain else f"'{name}'"
