"""Judgments about the answers of debates: people's labels, the shared task's label files, and judges' scores.

Ours (``schemas/debate-labels.schema.json``) name the run by the digest of its transcript. The shared task's label files
are positional: line n is debate n, an array with one object per turn; in a folder of labels, ``mapping.json`` says which
run such a file is about: ``{"file-labels.jsonl": {"run": "<digest>", "annotator": "a1"}}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.formats.dialogue import organisers_lines
from evaluator.formats.files import files_in, read_all
from evaluator.formats.lines import parse
from schemas.debates import CRITERIA

MAX_LABELS = 2_000_000
_MISSING = object()

MAPPING = "mapping.json"  # says which run a positional file of the folder is about


class Label(NamedTuple):
    """What one annotator said about one answer: criterion → 1, 0 or None (don't know). Numbers count from 1.

    ``run`` and ``transcript`` are digests of the whole run and of the debate alone, "" where they are not given.
    """

    run: str
    transcript: str
    debate: int
    turn: int
    annotator: str
    values: Mapping[str, int | None]


class Score(NamedTuple):
    """What a judge said about one answer of the debate with this transcript: criterion → a number from 0 to 1."""

    transcript: str
    turn: int
    judge: str
    values: Mapping[str, float]


def wrong(path: Path, number: int, what: str, fix: str = "") -> EvaluatorError:
    """An error about a line of the organiser's files. It names no value: labels are secret."""
    return EvaluatorError(f"{path.name}:{number}: {what}", fix=fix)


Broken = Callable[[EvaluatorError], None]  # told what is wrong with a line, which is left out then


def _raise(error: EvaluatorError) -> None:
    raise error


def objects(path: Path, broken: Broken = _raise) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file's lines with their numbers; blank lines are left out. Raises :class:`EvaluatorError`."""
    for number, line in organisers_lines(path, f"the labels in {path.name}"):
        try:
            data = parse(line)
        except ValueError:
            broken(wrong(path, number, "the line is not JSON"))
            continue
        yield number, data


def label_files(folder: Path) -> list[Path]:
    """The label files of a folder, sorted; none if there is no such folder."""
    if not folder.is_dir():
        return []
    return [p for p in files_in(folder, (".jsonl", ".jsonl.gz", ".jsonl.gzip", MAPPING)) if p.name != MAPPING]


def read_folder(folder: Path) -> list[Label]:
    """All labels of a folder. Raises :class:`EvaluatorError` for a file that is wrong, or that nothing maps to a run."""
    return [label for _, labels in by_file(folder) for label in labels]


def by_file(folder: Path, broken: Broken = _raise) -> Iterator[tuple[Path, list[Label]]]:
    """The same, file by file. ``broken`` takes what is wrong with a line, if it does not raise."""
    mapping: dict[str, Any] = {}
    if (folder / MAPPING).is_file():
        try:
            mapping = json.loads(read_all(folder / MAPPING, 1 << 20, follow=True))
        except (ValueError, RecursionError):
            raise EvaluatorError("labels/mapping.json is not JSON") from None
    for path in label_files(folder):
        entry = mapping.get(path.name) if isinstance(mapping, dict) else None
        run = entry.get("run") if isinstance(entry, dict) else None
        annotator = entry.get("annotator", path.name) if isinstance(entry, dict) else path.name
        run = run if isinstance(run, str) else None
        yield path, read_labels(path, run=run, annotator=str(annotator), broken=broken)


def read_labels(
    path: Path, *, run: str | None = None, annotator: str = "labels", broken: Broken = _raise
) -> list[Label]:
    """The labels of one file of either form. ``run`` is the digest of the run that a positional file is about.

    Raises :class:`EvaluatorError`, unless ``broken`` takes what is wrong with a line.
    """
    found: list[Label] = []
    for place, (number, data) in enumerate(objects(path, broken), 1):
        try:
            if isinstance(data, list):
                found += _positional(path, number, place, data, run, annotator)
            else:
                found.append(_ours(path, number, data))
        except EvaluatorError as error:
            broken(error)
        if len(found) > MAX_LABELS:
            raise wrong(path, number, f"there are more than {MAX_LABELS:,} labels")
    return found


def _positional(
    path: Path, number: int, place: int, turns: Sequence[Any], run: str | None, annotator: str
) -> Iterator[Label]:
    if run is None:
        raise wrong(
            path,
            number,
            "nothing says which run these labels are about",
            "import the file with runner labels import --run, or name it in mapping.json",
        )
    for turn, one in enumerate(turns, 1):
        if one is None:
            continue
        if not isinstance(one, dict):
            raise wrong(path, number, f"turn {turn} is not an object")
        values = {c: _label(path, number, one[c]) for c in CRITERIA if c in one}
        yield Label(run, "", place, turn, annotator, values)


def _ours(path: Path, number: int, data: Any) -> Label:
    if not isinstance(data, dict):
        raise wrong(path, number, "the line is neither an object nor an array")
    run, debate, turn, annotator = (data.get(k) for k in ("run", "debate", "turn", "annotator"))
    if not isinstance(run, str) or not isinstance(annotator, str):
        raise wrong(path, number, "run and annotator have to be text")
    if type(debate) is not int or type(turn) is not int or debate < 1 or turn < 1:
        raise wrong(path, number, "debate and turn have to be whole numbers from 1")
    transcript = data.get("transcript", "")
    if not isinstance(transcript, str):
        raise wrong(path, number, "transcript has to be text")
    values = {c: _label(path, number, data[c]) for c in CRITERIA if c in data}
    return Label(run, transcript, debate, turn, annotator, values)


def _label(path: Path, number: int, value: Any) -> int | None:
    if value is None or (value in (0, 1) and isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise wrong(path, number, "a label is none of 0, 1 and null")


def read_scores(path: Path, broken: Broken = _raise) -> list[Score]:
    """The judgments of a file as ``runner labels import`` writes them.

    Raises :class:`EvaluatorError`, unless ``broken`` takes what is wrong with a line.
    """
    found: list[Score] = []
    for number, data in objects(path, broken):
        try:
            found.append(_score(path, number, data))
        except EvaluatorError as error:
            broken(error)
    return found


def _score(path: Path, number: int, data: Any) -> Score:
    if not isinstance(data, dict):
        raise wrong(path, number, "the line is not an object")
    transcript, turn, judge = data.get("transcript"), data.get("turn"), data.get("judge")
    if not isinstance(transcript, str) or not isinstance(judge, str) or type(turn) is not int or turn < 1:
        raise wrong(path, number, "transcript and judge have to be text, turn a whole number from 1")
    values: dict[str, float] = {}
    for criterion in CRITERIA:
        value = data.get(criterion, _MISSING)
        if value is _MISSING or value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise wrong(path, number, f"{criterion} is not a number from 0 to 1")
        values[criterion] = float(value)
    return Score(transcript, turn, judge, values)
