"""People's labels of debates, turn by turn: the truths that judges are compared with.

Two forms, told apart by the first line. The task's own (``*-labels.jsonl``): one line per debate, an array with one object
per turn, matched by position. Ours (``schemas/debate-labels.schema.json``): one line per judged turn and annotator,
which names the transcript, the debate and the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.formats.evaluations import Reading, Shape
from evaluator.formats.labels import Broken, objects, read_labels, wrong
from schemas.debates import CRITERIA
from schemas.jsonl import kind_of

Gold = list[list[tuple[int | None, ...]]]  # [debate][turn][criterion, in the order of CRITERIA]


def read_gold(
    path: Path, shape: Shape | None = None, *, reading: Reading = "strict", broken: Broken | None = None
) -> Gold:
    """Return the labels: 1, 0 or None (not judged, or "don't know").

    Where several annotators judged one turn, the majority of those who said yes or no decides; a tie is None. ``shape``
    is needed for our own form, and checked for the other. ``reading`` official also takes true, false, "1" and "0".
    Raises :class:`EvaluatorError` naming the line, or the debate whose number of turns is wrong; ``broken`` takes all of
    that, if it is there.
    """
    first = next(objects(path), None)
    if first is None:
        raise EvaluatorError(f"the organiser's file {plain(path.name, 200)} is empty")
    if not isinstance(first[1], list):
        return _attributed(path, shape)
    gold: Gold = []
    say = broken or _raise
    for line, data in objects(path, say):
        turns: list[tuple[int | None, ...]] = []
        gold.append(turns)
        if not isinstance(data, list):
            say(wrong(path, line, f"there is {kind_of(data)} instead of a list of turns"))
            continue
        for n, turn in enumerate(data, 1):
            try:
                turns.append(_turn(turn, path, line, n, reading))
            except EvaluatorError as error:
                say(error)
                turns.append((None,) * len(CRITERIA))
        expected = shape.turns[len(gold) - 1] if shape is not None and len(gold) <= len(shape.turns) else None
        if expected is not None and expected != len(turns):
            say(wrong(path, line, f"debate {len(gold)} has {expected} turns, and labels of {len(turns)}"))
    if shape is not None and len(gold) != len(shape.turns):
        name = plain(path.name, 200)
        what = f"{name}: labels of {len(gold)} debates, but there are {len(shape.turns)} debates"
        say(EvaluatorError(what))
    return gold


def _raise(error: EvaluatorError) -> None:
    raise error


def _attributed(path: Path, shape: Shape | None) -> Gold:
    name = plain(path.name, 200)
    if shape is None:
        raise EvaluatorError(
            f"the labels in {name} name debates, which are not here", fix="give the debates, too"
        )
    places: dict[str, list[int]] = {}
    for place, single in enumerate(shape.singles):
        places.setdefault(single, []).append(place)
    votes: dict[tuple[int, int], list[tuple[int | None, ...]]] = {}
    others = 0
    for label in read_labels(path):
        # A label of another file may be about a debate that is here nevertheless, even several times.
        fitting = [label.debate - 1] if label.run == shape.digest else places.get(label.transcript, [])
        others += not fitting
        for place in fitting:
            if place >= len(shape.turns) or label.turn > shape.turns[place]:
                raise EvaluatorError(
                    f"{name}: there is no turn {label.turn} of debate {place + 1}",
                    "the labels and the debates do not belong together",
                )
            row = tuple(label.values.get(c) for c in CRITERIA)
            votes.setdefault((place, label.turn - 1), []).append(row)
    if not votes:
        raise EvaluatorError(
            f"{name}: no label is about these debates",
            f"{others:,} are about others",
            "give the debates that were labelled, unchanged",
        )
    return [[_majority(votes.get((d, t), ())) for t in range(n)] for d, n in enumerate(shape.turns)]


def _turn(data: Any, path: Path, line: int, turn: int, reading: Reading) -> tuple[int | None, ...]:
    """The labels of one turn of a file of the shared task's own form."""
    if not isinstance(data, dict):
        raise wrong(path, line, f"turn {turn} is {kind_of(data)} instead of an object")
    labels: list[int | None] = []
    for criterion in CRITERIA:
        value = data.get(criterion)
        if isinstance(value, bool | str):
            legal = reading == "official" and value in (True, False, "0", "1")
        else:
            legal = value is None or (isinstance(value, int | float) and value in (0, 1))
        if not legal:
            raise wrong(path, line, f"{criterion} of turn {turn} is neither 0, 1 nor null")
        labels.append(None if value is None else int(value))
    return tuple(labels)


def _majority(votes: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    out: list[int | None] = []
    for said in zip(*votes, strict=True) if votes else [()] * len(CRITERIA):
        yes, no = sum(v == 1 for v in said), sum(v == 0 for v in said)
        out.append(None if yes == no else int(yes > no))
    return tuple(out)
