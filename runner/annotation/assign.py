"""Judging debates by people: which transcripts there are, who judges what, and what became of it.

Debates to be judged come from the archived runs of a task of the kind ``debate``, or from the inputs of a task of the
kind ``meta`` (there the debates are what is judged). Labels end in the truths of the dataset, where evaluations see them:
a new label makes evaluations stale, and they are done again.

The key (which item is which debate of which run) stays in ``RUNNER_HOME/labels/<task>/<dataset>/``; what annotators get
names no run, team or software.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import RunnerError, no_such
from runner.model.kinds import kind_spec, kinds_with
from runner.model.run import run_named
from runner.tasks.transcripts import OWN, Transcripts
from schemas.debates import Debate, transcript_digest

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store


@dataclass(frozen=True)
class Item:
    """One debate to be judged, under a name that says nothing."""

    id: str
    run: str  # transcript digest of the file it is in
    transcript: str
    number: int  # of the debate in that file, from 1
    debate: Debate


def sources(store: Store, task: Task, dataset: Dataset, run: str | None = None) -> list[Transcripts]:
    """The transcripts that a dataset has: of its scored runs (or only of ``run``), or of its inputs where the kind says that the debates are there.

    ``run`` may be the beginning of an id. Raises E101 for tasks of other kinds, E102 when there is nothing.
    """
    from runner.records.store import queries

    where = kind_spec(task.kind).annotation
    if where is None:
        raise RunnerError(
            "E101",
            f"{task.id} has no debates",
            why=f"It is of the kind {task.kind}; labels are for {' and '.join(kinds_with('annotation'))}.",
        )
    if where == "inputs":
        path = dataset.inputs / "debates.jsonl"
        path = path if path.is_file() else path.with_name("debates.jsonl.gz")
        return [Transcripts.read(path, f"inputs of {dataset.id}", OWN)]
    found = []
    runs = queries.runs(store, [task], task=task.id)
    scored = [one for one in runs if one.dataset == dataset.id and one.outcome.name == "scored"]
    if run is not None:
        wanted = run_named([one.id for one in scored], run.partition("#")[0], "scored run")
        scored = [one for one in scored if one.id == wanted]
    for one in scored:
        if one.outcome.attempt is None:
            continue
        attempt = store.archive.attempt(task.id, one.id, one.outcome.attempt)
        for name in (task.output, f"{task.output}.gz"):
            if (file := attempt.file(f"output/{name}")) is not None:
                with file.local() as path:
                    found.append(Transcripts.read(path, attempt.id))
                break
    if not found:
        what = f"on {dataset.id}" if run is None else run
        raise no_such("scored run", what, fix="runner runs lists them; runner evaluate makes them")
    return found


def items(transcripts: Iterable[Transcripts], seed: int) -> list[list[Item]]:
    """The debates that can be judged, by file. A debate that is there several times is one item: its labels count for all.

    Debates without any answer are left out.
    """
    seen: set[str] = set()
    found = []
    for one in sorted(transcripts, key=lambda t: (t.digest, t.name)):
        debates = []
        for number, debate in enumerate(one.debates, 1):
            transcript = transcript_digest([debate])
            if transcript in seen or all(turn.failed for turn in debate.turns):
                continue
            seen.add(transcript)
            name = hashlib.sha256(f"{seed}:{one.digest}:{number}".encode()).hexdigest()[:10]
            debates.append(Item(f"d-{name}", one.digest, transcript, number, debate))
        found.append(debates)
    return [debates for debates in found if debates]


def assign(
    by_run: Sequence[Sequence[Item]],
    annotators: int,
    *,
    overlap: float = 0.2,
    per_annotator: int | None = None,
    seed: int = 0,
) -> dict[str, list[Item]]:
    """Who judges which debates.

    Every run is dealt to all annotators in turn, so that no run is judged by one person only.

    Args:
        by_run: The debates that can be judged, run by run.
        annotators: How many people judge.
        overlap: The share of the debates (spread over all runs) that two people judge, each time another pair if possible.
        per_annotator: Debates for each at most; as many are chosen as fit, from every run as many. None: all debates.
        seed: The same seed gives the same assignment.

    Returns:
        The debates of ``a1``, ``a2``, … with about as many each, in an order of their own.
    """
    rng = random.Random(seed)  # noqa: S311
    shuffled = [rng.sample(list(debates), len(debates)) for debates in by_run]
    rng.shuffle(shuffled)
    runs = len(shuffled)
    dealt = [
        (debates[row], column + row)
        for row in range(max(map(len, shuffled), default=0))
        for column, debates in enumerate(shuffled)
        if row < len(debates)
    ]
    limit = per_annotator if per_annotator is not None else len(dealt)
    if per_annotator is not None:
        dealt = dealt[: int(annotators * per_annotator / (1 + overlap))]
    if runs == 0:
        return {}
    twice = round(overlap * len(dealt)) if annotators > 1 else 0
    doubled = {k * len(dealt) // twice for k in range(twice)}
    names = [f"a{n + 1}" for n in range(annotators)]
    lists: dict[str, list[Item]] = {name: [] for name in names}
    pairs: dict[frozenset[str], int] = {}
    for place, (item, turn) in enumerate(dealt):
        usual = names[turn % annotators]
        first = min(names, key=lambda n: (len(lists[n]) >= limit, n != usual, len(lists[n])))
        if len(lists[first]) >= limit:
            break
        lists[first].append(item)
        if place in doubled:
            others = [n for n in names if n != first and len(lists[n]) < limit]
            if others:
                second = min(others, key=lambda n: (pairs.get(frozenset((first, n)), 0), len(lists[n])))
                pair = frozenset((first, second))
                pairs[pair] = pairs.get(pair, 0) + 1
                lists[second].append(item)
    return {name: rng.sample(debates, len(debates)) for name, debates in lists.items()}


# --- the key -----------------------------------------------------------------------------------------------


def key_folder(config: Config, task: Task, dataset: Dataset) -> Path:
    """Where the keys of a dataset's forms are."""
    return config.home / "labels" / task.id / dataset.id


def make_key(
    task: Task, dataset: Dataset, transcripts: Sequence[Transcripts], lists: Mapping[str, Sequence[Item]]
) -> dict[str, Any]:
    """Which item is which debate: for the organiser only. ``form`` is its identity."""
    chosen = {item.id: item for debates in lists.values() for item in debates}
    key: dict[str, Any] = {
        "schema_version": 1,
        "task": task.id,
        "dataset": dataset.id,
        "runs": {t.digest: t.name for t in transcripts},
        "items": {
            item.id: {
                "run": item.run,
                "transcript": item.transcript,
                "debate": item.number,
                "turns": len(item.debate.turns),
            }
            for item in chosen.values()
        },
        "annotators": {name: sorted(item.id for item in debates) for name, debates in lists.items()},
    }
    return {"form": schemas.digest(key)[:12], **key}


def find_key(config: Config, task: Task, dataset: Dataset, form: str, given: Path | None) -> dict[str, Any]:
    """The key of a form: the file ``given``, or the one that was kept. Raises E102, E402."""
    safe = form.isascii() and form.isalnum() and len(form) <= 64
    path = given or key_folder(config, task, dataset) / f"{form if safe else 'unknown'}.json"
    if not path.is_file():
        why = f"It was not made by runner labels export {task.id} --dataset {dataset.id} with this data directory."
        raise no_such("key for the form", form, why=why, fix="name the key file with --key", limit=40)
    doc = schemas.load_json(path)
    if doc.problems or not isinstance(doc.data, dict) or not isinstance(doc.data.get("items"), dict):
        raise RunnerError("E402", f"{schemas.show(str(path), 200)} is not a key", fix="get it from a backup")
    if doc.data.get("form") != form:
        raise RunnerError("E402", "the key is that of another form", fix="name the right one with --key")
    return dict(doc.data)
