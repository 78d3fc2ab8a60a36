"""What the baselines of Perspective Argument Retrieval share: read a release, rank by text, write predictions.

The same file lies in both folders, because an image is built from one folder alone.

A release is a folder with corpus.jsonl, baseline-queries/ or perspective-queries/. What lies there tells the
scenario: without perspective-queries/ it is `baseline`; with them and with demographic_profile in the corpus it is
`explicit`; with them and without the profiles it is `implicit`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

DEPTH = 1000
PREDICTIONS = "predictions.jsonl"
SCENARIOS = ("baseline", "explicit", "implicit")
# Keys of a query's property that have another name in an argument's profile.
PROFILE_KEYS = {"age_bin": "age", "important_political_issue": "important_political_issues"}

Scorer = Callable[[Sequence[str], Sequence[str]], Iterable[Sequence[float]]]
"""Scores arguments for queries: (texts of the arguments, texts of the queries) -> for each query a score for each
argument, higher is better."""


@dataclass(frozen=True)
class Query:
    """A query to answer; ``wanted`` is the (key, value) that it asks for, None where it asks for no property."""

    id: int
    text: str
    wanted: tuple[str, str] | None = None


@dataclass(frozen=True)
class Release:
    """What a scenario shows of a release, in the order of its files; ``profiles`` is None unless explicit."""

    scenario: str
    ids: array[int]
    texts: list[str]
    profiles: list[dict[str, Any]] | None
    queries: list[Query]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file; empty lines are skipped."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def queries_to_answer(folder: Path) -> Path:
    """The queries file without relevant_candidates; of several, and where all have them, test before dev.

    Raises FileNotFoundError when the folder has no queries file.
    """
    found = [folder / f"queries_{split}.jsonl" for split in ("test", "dev", "train")]
    present = [path for path in found if path.is_file()]
    for path in present:
        first = next(lines(path), None)
        if first is not None and "relevant_candidates" not in first:
            return path
    if not present:
        raise FileNotFoundError(f"no queries_*.jsonl in {folder}")
    return present[0]


def load(release: Path, scenario: str | None = None) -> Release:
    """The release as ``scenario`` sees it; without one, as what lies there tells."""
    folder = release / "perspective-queries"
    if scenario == "baseline" or (scenario is None and not folder.is_dir()):
        folder = release / "baseline-queries"
    queries = []
    for line in lines(queries_to_answer(folder)):
        wanted = next(iter(line.get("demographic_property", {}).items()), None)
        queries.append(Query(line["query_id"], line["text"], wanted))
    ids, texts, profiles = array("q"), [], []
    for line in lines(release / "corpus.jsonl"):
        ids.append(line["argument_id"])
        texts.append(line["argument"])
        profiles.append(line.get("demographic_profile"))
    if scenario is None and folder.name == "perspective-queries":
        scenario = "explicit" if profiles and profiles[0] is not None else "implicit"
    scenario = scenario or "baseline"
    return Release(scenario, ids, texts, profiles if scenario == "explicit" else None, queries)


def has(profile: dict[str, Any] | None, key: str, value: str) -> bool:
    """Whether an author has the property that a query asks for."""
    held = (profile or {}).get(PROFILE_KEYS.get(key, key))
    return value in held if isinstance(held, list) else held == value


def predict(release: Release, score: Scorer, depth: int = DEPTH) -> Iterator[tuple[int, list[int]]]:
    """Each query's id with its candidates, best first; ties are in the order of ids.

    In `explicit` the arguments of authors with the wanted property come first, in the order of their scores, and
    the others fill the list up. Scores are rounded, so that a last digit that differs between machines seldom
    changes an order.
    """
    texts = list(dict.fromkeys(query.text for query in release.queries))
    orders: dict[str, array[int]] = {}
    for text, scores in zip(texts, score(release.texts, texts), strict=True):
        keys = [(-round(float(value), 5), number) for value, number in zip(scores, release.ids, strict=True)]
        orders[text] = array("q", sorted(range(len(keys)), key=keys.__getitem__))
    masks: dict[tuple[str, str], bytes] = {}
    for query in release.queries:
        order: Iterable[int] = orders[query.text]
        if release.profiles is not None and query.wanted is not None:
            if query.wanted not in masks:
                masks[query.wanted] = bytes(has(profile, *query.wanted) for profile in release.profiles)
            mask = masks[query.wanted]
            # As long as a list is to be; only a rare value leaves room for arguments of others.
            first = list(islice(compress(order, map(mask.__getitem__, order)), depth))
            rest = (position for position in orders[query.text] if not mask[position])
            order = [*first, *islice(rest, depth - len(first))]
        yield query.id, [release.ids[position] for position in islice(order, depth)]


def write(predictions: Iterable[tuple[int, list[int]]], path: Path) -> int:
    """Write predictions.jsonl; returns the number of queries."""
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for query, candidates in predictions:
            line = {"query_id": query, "relevant_candidates": candidates}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            count += 1
    return count


def command(description: str, score: Scorer) -> None:
    """Command line of a baseline; the defaults come from the environment that the platform sets."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--input", type=Path, default=os.environ.get("inputDataset"))
    parser.add_argument("--output", type=Path, default=os.environ.get("outputDir"))
    parser.add_argument("--scenario", choices=SCENARIOS, help="default: what the input shows")
    parser.add_argument("--depth", type=int, default=DEPTH)
    options = parser.parse_args()
    if options.input is None or options.output is None:
        parser.error("set $inputDataset and $outputDir, or give --input and --output")
    release = load(options.input, options.scenario)
    written = write(predict(release, score, options.depth), options.output / PREDICTIONS)
    print(f"{release.scenario}: {written} queries, {len(release.ids)} arguments", file=sys.stderr)
