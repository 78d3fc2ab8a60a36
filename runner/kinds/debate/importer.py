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

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from runner.annotation.files import positional, write_rows
from runner.kinds import Say, quiet, release
from runner.kinds.release import Wrong as _Wrong
from runner.model.errors import Problem
from runner.tasks.transcripts import Transcripts, json_lines
from schemas import show
from schemas.debates import Debate, parse, transcript_digest

Sort = Literal["claims", "debates", "labels"]
_TOPIC = "TOPIC_DESCRIPTION"
PROVENANCE = "provenance.json"


def import_release(
    source: Path, target: Path, split: str, *, truths: Path | None = None, say: Say = quiet
) -> list[Problem]:
    """Import ``source`` as a dataset of debates about its claims: ``target/inputs/claims.jsonl``, and labels if it has any.

    Returns every problem with file and line; when there is one, nothing was written. Raises OSError when ``target``
    cannot be written.
    """
    return _import(source, target, split, truths, _claims_dataset, say)


def import_judging(
    source: Path, target: Path, split: str, *, truths: Path | None = None, say: Say = quiet
) -> list[Problem]:
    """Import ``source`` as a dataset of debates to be judged: ``target/inputs/debates.jsonl``, and its labels.

    Returns and raises as :func:`import_release`.
    """
    return _import(source, target, split, truths, _debates_dataset, say)


Maker = Callable[[Mapping[Sort, Path], Path, Path], list[Problem]]


def _import(
    source: Path, target: Path, split: str, truths: Path | None, make: Maker, say: Say
) -> list[Problem]:
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
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            line = (gzip.GzipFile(fileobj=raw) if zipped else raw).readline(1 << 16)
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
    for _, data in json_lines(path, problems):
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
    problems: list[Problem] = []
    found: list[Debate] = []
    for number, data in json_lines(chosen["debates"], problems):
        debate, faults = parse(data)
        bad = [f for f in faults if f.kind == "form"]
        problems += [Problem(f"{show(chosen['debates'].name)}:{number}", f.what) for f in bad]
        if debate is not None and debate.failed:
            problems.append(
                Problem(f"{show(chosen['debates'].name)}:{number}", "the debate failed", "leave it out")
            )
        elif debate is not None and not bad:
            found.append(debate)
    if not problems and not found:
        problems.append(Problem(show(chosen["debates"].name), "holds no debate"))
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
    write_rows(truths / PROVENANCE, [_provenance(chosen["debates"].name, found, order)])
    return []


def _shuffled(found: Sequence[Debate]) -> list[int]:
    """Their places in the file in the order of a dataset: a lot drawn from the words of each, so that where it stood has no part."""
    lots = [hashlib.sha256(f"order\0{transcript_digest([debate])}".encode()).hexdigest() for debate in found]
    return sorted(range(len(found)), key=lambda place: (lots[place], place))


def _provenance(name: str, found: Sequence[Debate], order: Sequence[int]) -> dict[str, Any]:
    """Which line of the dataset is which debate of the release: for the organiser, beside the truths."""
    lines = [
        {
            "line": n,
            "debate": place + 1,
            "id": found[place].id,
            "transcript": transcript_digest([found[place]]),
        }
        for n, place in enumerate(order, 1)
    ]
    return {"schema_version": 1, "file": name, "lines": lines}


def _labels(chosen: Mapping[Sort, Path]) -> list[dict[str, Any]]:
    """The labels in our form; none if the release has none. Raises E402."""
    if "labels" not in chosen or "debates" not in chosen:
        return []
    debates = Transcripts.read(chosen["debates"], chosen["debates"].name)
    return positional(chosen["labels"], debates, "official")


def _claims(path: Path, problems: list[Problem]) -> Iterator[dict[str, str]]:
    for number, data in json_lines(path, problems):
        where = f"{show(path.name, 200)}:{number}"
        if not isinstance(data, dict) or not isinstance(data.get("claim"), str) or not data["claim"].strip():
            problems.append(Problem(where, "there is no claim", 'every line is {"id": …, "claim": …}'))
            continue
        name = data.get("id", str(number))
        if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
            problems.append(Problem(where, "the id is no text"))
            continue
        description = data.get("description")
        yield _claim(str(name), data["claim"], description if isinstance(description, str) else "")


def _claim(name: str, claim: str, description: str) -> dict[str, str]:
    return {"id": name, "claim": claim, **({"description": description} if description else {})}


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
            problems.append(
                Problem(
                    f"{show(path.name, 200)}:{number}",
                    f"there is no {_TOPIC} that can be read",
                    'write \\" for "',
                )
            )
            continue
        yield _claim(f"claim-{number - 1}", claim, "")


def _claims_of_debates(path: Path, problems: list[Problem]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for number, data in json_lines(path, problems):
        debate, faults = parse(data)
        if debate is None or (not debate.claim and not debate.failed):
            what = faults[0].what if faults else "the debate does not say its claim"
            problems.append(Problem(f"{show(path.name, 200)}:{number}", what))
        elif debate.claim:
            name = debate.id or f"claim-{number}"
            description = data.get("description")
            found.setdefault(
                name, _claim(name, debate.claim, description if isinstance(description, str) else "")
            )
    return list(found.values())
