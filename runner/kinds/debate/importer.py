"""Imports files of Retrieval-Augmented Debating 2025: claims, debates in every form, and positional label files.

A release is a folder, an archive or a single file. What a file is, its content says: claims (``id``, ``claim``,
``description``; or the parameter file of a configuration, ``*.tsv`` with a column ``TOPIC_DESCRIPTION``), debates (GenIRSim's
``simulation``, ``debate``, ``simulated_debate``), labels (an array a line). Of several files of a sort the one with the split
in its name is taken. For debates the dataset gets ``claims.jsonl`` and ``labels/labels.jsonl``, for judging
``debates.jsonl`` in GenIRSim's form and ``debates-labels.jsonl``; labels are in our form.

Debates to be judged are blinded and shuffled as those of a stage are: written anew from what was said, without their ids, in an
order that their words alone decide. Labels go with them, and ``provenance.json`` in the truths says which line was which.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from runner.annotation.exchange import positional, write_rows
from runner.kinds import Say, quiet, release
from runner.kinds.release import Wrong as _Wrong
from runner.model.errors import Problem
from runner.model.kinds import Importer
from runner.tasks.transcripts import OWN, Transcripts, json_lines
from schemas import show
from schemas.debates import Debate, parse, transcript_digest

Sort = Literal["claims", "debates", "labels"]
_TOPIC = "TOPIC_DESCRIPTION"
PROVENANCE = "provenance.json"


Maker = Callable[[Mapping[Sort, Path], Path, Path], list[Problem]]


def _import(
    make: Maker, source: Path, target: Path, split: str, *, truths: Path | None = None, say: Say = quiet
) -> list[Problem]:
    """See :class:`runner.model.kinds.Importer`; ``make`` writes the dataset. Raises OSError when ``target`` cannot be written."""

    def read(scratch: Path) -> release.Write:
        files = release.files_of(source, scratch)
        chosen = _choose(files, split)
        used = [name for name, path in files.items() if path in chosen.values()]
        for remark in release.passed_over(files, used):
            say(remark)
        return partial(make, chosen)

    return release.imported(source, target, truths, read)


# --- what is there -----------------------------------------------------------------------------------------


def _head(path: Path) -> str:
    """The first line of a file, unpacked, as far as it matters; "" for one that cannot be read."""
    try:
        with release.unpacked(path) as stream:
            line = stream.readline(1 << 16)
    except (OSError, EOFError, zlib.error):
        return ""
    return line.decode("utf-8-sig", "replace").rstrip("\r\n")


def _tabular(path: Path) -> bool:
    """Whether a file is the parameter file of a configuration."""
    return _TOPIC in _head(path).split("\t")


def _sort(path: Path) -> Sort | None:
    """What a file is by its first lines; None for one that is nothing of ours."""
    if _tabular(path):
        return "claims"
    problems: list[Problem] = []
    for _, data in json_lines(path, problems, OWN):
        if isinstance(data, list):
            return None if problems else "labels"
        if problems or not isinstance(data, dict):
            return None
        if not data:
            continue  # a failed debate; the next line tells
        debate = {"debate", "simulated_debate", "simulation", "userTurns"} & data.keys()
        if debate and "userTurnsEvaluations" not in data:
            return "debates"
        return "claims" if isinstance(data.get("claim"), str) else None
    return None


def _choose(files: Mapping[str, Path], split: str) -> dict[Sort, Path]:
    """One file of each sort. Raises :class:`_Wrong` when it is not clear which."""
    found: dict[Sort, dict[str, Path]] = {}
    for name, path in sorted(files.items()):
        sort = _sort(path)
        if sort is not None:
            found.setdefault(sort, {})[name] = path
    chosen: dict[Sort, Path] = {}
    for sort, there in found.items():
        if len(there) > 1:
            word = re.compile(rf"(?<![a-z0-9]){re.escape(split.lower())}(?![a-z0-9])")
            there = {n: p for n, p in there.items() if word.search(n.lower())} or there
        if len(there) > 1:
            names = ", ".join(show(n) for n in list(there)[:5])
            raise _Wrong(
                f"holds several files of {sort}: {names}",
                f'keep one, or put "{show(split)}" (the dataset) into its name',
            )
        chosen[sort] = next(iter(there.values()))
    if not chosen:
        raise _Wrong("holds neither claims nor debates", "give the official files (JSON Lines), unchanged")
    return chosen


# --- what is made ------------------------------------------------------------------------------------------


def _claims_dataset(chosen: Mapping[Sort, Path], inputs: Path, truths: Path) -> list[Problem]:
    problems: list[Problem] = []
    if "claims" in chosen:
        path = chosen["claims"]
        claims = list(_parameters(path, problems) if _tabular(path) else _claims(path, problems))
    elif "debates" in chosen:
        claims = _claims_of_debates(chosen["debates"], problems)
    else:
        return [Problem("the release", "holds labels only", "give the claims, too")]
    if not problems and not claims:
        problems.append(Problem("the release", "holds no claim"))
    ids: set[str] = set()
    for number, claim in enumerate(claims, 1):
        if claim["id"] in ids:
            problems.append(Problem(f"claim {number}", f"the id {show(claim['id'], 60)} is there twice"))
        ids.add(claim["id"])
    if problems:
        return problems
    write_rows(inputs / "claims.jsonl", claims)
    # An empty file where the release has none: labels are imported later, and other measures need truths, too.
    write_rows(truths / "labels" / "labels.jsonl", _labels(chosen))
    return []


def _debates_dataset(chosen: Mapping[Sort, Path], inputs: Path, truths: Path) -> list[Problem]:
    if "debates" not in chosen:
        return [Problem("the release", "holds no debates", "give the file of the debates, too")]
    path = chosen["debates"]
    problems: list[Problem] = []
    found: list[Debate] = []
    for number, data in json_lines(path, problems, OWN):
        debate, faults = parse(data)
        where = f"{show(path.name)}:{number}"
        bad = [Problem(where, fault.what) for fault in faults if fault.kind == "form"]
        problems += bad
        if debate is not None and debate.failed:
            problems.append(Problem(where, "the debate failed", "leave it out"))
        elif debate is not None and not bad:
            found.append(debate)
    if not problems and not found:
        problems.append(Problem(show(path.name), "holds no debate"))
    if problems:
        return problems
    from runner.execution.stage import blinded

    order = _shuffled(found)
    shuffled = [found[place]._replace(id="") for place in order]
    write_rows(inputs / "debates.jsonl", [blinded(debate) for debate in shuffled])
    if labels := _labels(chosen):
        lines = {place + 1: line for line, place in enumerate(order, 1)}
        run = transcript_digest(shuffled)
        moved = [{**label, "run": run, "debate": lines[label["debate"]]} for label in labels]
        write_rows(truths / "debates-labels.jsonl", sorted(moved, key=lambda m: (m["debate"], m["turn"])))
    write_rows(truths / PROVENANCE, [_provenance(path.name, found, order)])
    return []


def _shuffled(found: Sequence[Debate]) -> list[int]:
    """Their places in the file in the order of a dataset: a lot drawn from the words of each, so that where it stood has no part."""
    lots = [hashlib.sha256(f"order\0{transcript_digest([debate])}".encode()).hexdigest() for debate in found]
    return sorted(range(len(found)), key=lambda place: (lots[place], place))


def _provenance(name: str, found: Sequence[Debate], order: Sequence[int]) -> dict[str, Any]:
    """Which line of the dataset is which debate of the release: for the organiser, beside the truths."""
    debates = [(n, place, found[place]) for n, place in enumerate(order, 1)]
    lines = [
        {"line": n, "debate": place + 1, "id": debate.id, "transcript": transcript_digest([debate])}
        for n, place, debate in debates
    ]
    return {"schema_version": 1, "file": name, "lines": lines}


def _labels(chosen: Mapping[Sort, Path]) -> list[dict[str, Any]]:
    """The labels in our form; none if the release has none. Raises E402."""
    if "labels" not in chosen or "debates" not in chosen:
        return []
    debates = Transcripts.read(chosen["debates"], chosen["debates"].name, OWN)
    return positional(chosen["labels"], debates, "official")


def _claims(path: Path, problems: list[Problem]) -> Iterator[dict[str, str]]:
    for number, data in json_lines(path, problems, OWN):
        where = f"{show(path.name, 200)}:{number}"
        if not isinstance(data, dict) or not isinstance(data.get("claim"), str) or not data["claim"].strip():
            problems.append(Problem(where, "there is no claim", 'every line is {"id": …, "claim": …}'))
            continue
        name = data.get("id", str(number))
        if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
            problems.append(Problem(where, "the id is no text"))
            continue
        yield _claim(str(name), data["claim"], data.get("description"))


def _claim(name: str, claim: str, description: Any = None) -> dict[str, str]:
    described = isinstance(description, str) and description
    return {"id": name, "claim": claim, **({"description": description} if described else {})}


def _parameters(path: Path, problems: list[Problem]) -> Iterator[dict[str, str]]:
    """GenIRSim's parameter file: its values are pasted into JSON text, so a quotation mark is written with a backslash."""
    lines = release.read(path).decode("utf-8-sig", "replace").split("\n")
    column = lines[0].rstrip("\r").split("\t").index(_TOPIC)
    for number, line in enumerate(lines[1:], 2):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        cells = line.split("\t")
        try:
            claim = json.loads(f'"{cells[column]}"')
        except (IndexError, ValueError):
            where, what = f"{show(path.name, 200)}:{number}", f"there is no {_TOPIC} that can be read"
            problems.append(Problem(where, what, 'write \\" for "'))
            continue
        yield _claim(f"claim-{number - 1}", claim)


def _claims_of_debates(path: Path, problems: list[Problem]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for number, data in json_lines(path, problems, OWN):
        debate, faults = parse(data)
        if debate is None or (not debate.claim and not debate.failed):
            what = faults[0].what if faults else "the debate does not say its claim"
            problems.append(Problem(f"{show(path.name, 200)}:{number}", what))
        elif debate.claim:
            name = debate.id or f"claim-{number}"
            found.setdefault(name, _claim(name, debate.claim, data.get("description")))
    return list(found.values())


# Debates about the claims of a release, and their labels if it has any.
import_release: Importer = partial(_import, _claims_dataset)
# The debates of a release, to be judged, and their labels.
import_judging: Importer = partial(_import, _debates_dataset)
