"""Every measure string that ir_measures accepts, from its own registry, and runs to try them on."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures

# Values for each parameter that some measure has; a parameter that is not here makes `strings` fail, so that none is missed.
VALUES: dict[str, list[Any]] = {
    "T": [2.0],
    "alpha": [0.3],
    "beta": [0.7],
    "cutoff": [1, 3, 10],
    "gains": [{0: 0, 1: 1, 2: 5, 3: 7}],
    "judged_only": [True],
    "max_rel": [3],
    "min_rel": [1],
    "normalize": [False],
    "p": [0.6],
    "recall": [0.0, 0.5],
    "rel": [2],
    "relative": [True],
}


def strings() -> list[str]:
    """Every name with every combination of its parameters: each left out where it may be, else with the values above."""
    found = []
    for name, measure in sorted(ir_measures.measures.registry.items()):
        choices = []
        for key, spec in measure.SUPPORTED_PARAMS.items():
            given = spec.choices if isinstance(spec.choices, list) else VALUES[key]
            values = [] if spec.required or key in measure.params else [None]
            choices.append([(key, v) for v in (*values, *given) if v != spec.default])
        for combination in product(*choices):
            found.append(_text(name, measure.AT_PARAM, {k: v for k, v in combination if v is not None}))
    return found


def _text(name: str, at: str, values: dict[str, Any]) -> str:
    inside = ",".join(f"{k}={v!r}" for k, v in values.items() if k != at)
    return name + (f"({inside})" if inside else "") + (f"@{values[at]}" if at in values else "")


class World(NamedTuple):
    """Files of one case: judgements and a run."""

    qrels: Path
    run: Path


def world(folder: Path, seed: int, *, ties: bool = False, subtopics: int = 0) -> World:
    """Unjudged documents, negative grades, topics missing on either side, and ties and negative scores if asked for.

    ``subtopics``: for how many a document may be judged; 0 leaves them out, 1 gives each document one of three.
    """
    rng = random.Random(seed)
    docs = [f"d{i}" for i in range(30)]
    qrels, run = [], []
    for topic in range(1, 7):
        judged = rng.sample(docs, 12)
        for doc in judged if topic != 6 else ():
            for subtopic in rng.sample("abc", rng.randint(1, subtopics or 1)):
                grade = rng.choice((-2, -1, 0, 0, 1, 1, 2, 3)) if topic != 4 else 0
                qrels.append(f"{topic} {subtopic if subtopics else 0} {doc} {grade}")
        listed = rng.sample(docs, rng.choice((5, 14, 22)))
        for rank, doc in enumerate(listed if topic != 2 else (), 1):
            score = (
                rng.choice((3, 2, 1.5, 1.5000000001, 0, -1, -2.5)) if ties else 100 - rank + rng.random() / 2
            )
            run.append(f"{topic} Q0 {doc} {rank} {score} tag")
    folder.mkdir(exist_ok=True)
    (folder / "qrels").write_text("\n".join(qrels) + "\n")
    (folder / "run").write_text("\n".join(run) + "\n")
    return World(folder / "qrels", folder / "run")
