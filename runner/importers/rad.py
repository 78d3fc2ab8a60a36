"""Imports files of Retrieval-Augmented Debating 2025: claims, debates in every form, and positional label files.

A release is a folder, a zip archive or a single file. What a file is, its content says: claims (``id``, ``claim``,
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
import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from runner.errors import Problem, RunnerError
from runner.labelfiles import positional, write_rows
from runner.labels import Transcripts, json_lines
from schemas import show
from schemas.debates import Debate, parse, transcript_digest

Sort = Literal["claims", "debates", "labels"]
MAX_FILES = 1000
MAX_FILE = 1 << 30
MAX_ALL = 4 << 30
_ENDINGS = (".jsonl", ".jsonl.gz", ".ndjson", ".tsv")
_TOPIC = "TOPIC_DESCRIPTION"
PROVENANCE = "provenance.json"


class _Wrong(Exception):
    """The release as a whole is wrong."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def import_release(source: Path, target: Path, split: str, *, truths: Path | None = None) -> list[Problem]:
    """Import ``source`` as a dataset of debates about its claims: ``target/inputs/claims.jsonl``, and labels if it has any.

    Returns every problem with file and line; when there is one, nothing was written. Raises OSError when ``target``
    cannot be written.
    """
    return _import(source, target, split, truths, _claims_dataset)


def import_judging(source: Path, target: Path, split: str, *, truths: Path | None = None) -> list[Problem]:
    """Import ``source`` as a dataset of debates to be judged: ``target/inputs/debates.jsonl``, and its labels.

    Returns and raises as :func:`import_release`.
    """
    return _import(source, target, split, truths, _debates_dataset)


Maker = Callable[[Mapping[Sort, Path], Path, Path], list[Problem]]


def _import(source: Path, target: Path, split: str, truths: Path | None, make: Maker) -> list[Problem]:
    inputs, truths = target / "inputs", truths or target / "truths"
    taken = [p for p in (inputs, truths) if os.path.lexists(p) and not (p.is_dir() and not any(p.iterdir()))]
    if taken:
        return [Problem(show(str(p), 200), "is there already", "move it away first") for p in taken]
    with ExitStack() as stack:
        try:
            files = _files(source, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rad-"))))
            chosen = _choose(files, split)
        except _Wrong as error:
            return [Problem(show(source.name, 200), error.what, error.fix)]
        staged = {final: _beside(final) for final in (inputs, truths)}
        try:
            try:
                problems = make(chosen, staged[inputs], staged[truths])
            except RunnerError as error:  # of the readers; every problem has its place
                problems = list(error.problems) or [Problem(show(source.name, 200), error.what, error.fix)]
            if not problems:
                for final, made in staged.items():
                    if final.is_dir():
                        final.rmdir()
                    made.rename(final)
        finally:
            for made in staged.values():
                shutil.rmtree(made, ignore_errors=True)
    return problems


def _beside(final: Path) -> Path:
    final.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    made.chmod(0o755)
    return made


# --- what is there -----------------------------------------------------------------------------------------


def _files(source: Path, scratch: Path) -> dict[str, Path]:
    """The files of a release by name; members of an archive are copied, capped, under names of ours."""
    if source.is_dir():
        return {str(name): path for name, path in _walk(source)}
    if source.suffix.lower() != ".zip":
        return {source.name: source}
    try:
        with zipfile.ZipFile(source) as archive:
            return dict(_unpacked(archive, scratch))
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError):
        raise _Wrong(
            "is not a zip archive that can be read", "give the release's folder or zip archive"
        ) from None


def _walk(source: Path) -> Iterator[tuple[PurePosixPath, Path]]:
    count = 0
    for folder, below, names in os.walk(source):
        relative = PurePosixPath(Path(folder).relative_to(source).as_posix())
        if len(relative.parts) >= 4:
            below.clear()
        for name in sorted(names):
            path = Path(folder) / name
            if _noise(relative / name) or not stat.S_ISREG(path.lstat().st_mode):
                continue
            count += 1
            if count > MAX_FILES:
                raise _Wrong(f"holds more than {MAX_FILES:,} files", "give the folder of the release only")
            if path.stat().st_size > MAX_FILE:
                raise _Wrong(f"holds a file larger than {MAX_FILE >> 20} MiB")
            yield relative / name, path


def _unpacked(archive: zipfile.ZipFile, scratch: Path) -> Iterator[tuple[str, Path]]:
    members = archive.infolist()
    if len(members) > MAX_FILES:
        raise _Wrong(f"holds more than {MAX_FILES:,} files", "give the release's own archive")
    left = MAX_ALL
    for number, member in enumerate(members):
        name = member.filename.replace("\\", "/")
        if member.is_dir() or _noise(PurePosixPath(name)) or not name.lower().endswith(_ENDINGS):
            continue
        if member.flag_bits & 1 or stat.S_ISLNK(member.external_attr >> 16):
            raise _Wrong(f'holds "{show(name)}", which is encrypted or a link', "unpack it first")
        path = scratch / f"{number}-{re.sub('[^A-Za-z0-9._-]', '_', PurePosixPath(name).name)[-80:]}"
        with archive.open(member) as packed, path.open("xb") as out:
            size = 0
            while block := packed.read(1 << 20):
                size, left = size + len(block), left - len(block)
                if size > MAX_FILE or left < 0:
                    raise _Wrong("unpacks to too much", "give the release's own archive")
                out.write(block)
        yield name, path


def _noise(path: PurePosixPath) -> bool:
    """Files that operating systems add."""
    return "__MACOSX" in path.parts or path.name.startswith(".") or path.name in ("Thumbs.db", "desktop.ini")


def _sort(name: str, path: Path) -> Sort | None:
    """What a file is by its first line; None for one that is nothing of ours."""
    if name.lower().endswith(".tsv"):
        with path.open("rb") as file:
            head = file.readline(1 << 16).decode("utf-8-sig", "replace")
        return "claims" if _TOPIC in head.split("\n")[0].rstrip("\r").split("\t") else None
    if not name.lower().endswith(_ENDINGS):
        return None
    for _, data in json_lines(path, []):
        if isinstance(data, list):
            return "labels"
        if not isinstance(data, dict):
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
        sort = _sort(name, path)
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
        claims = list(_parameters(path, problems) if path.suffix == ".tsv" else _claims(path, problems))
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
    from runner.stages import blinded

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
    lines = path.read_bytes().decode("utf-8-sig", "replace").split("\n")
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
