"""ir_metadata (https://www.ir-metadata.org): what a team says of its experiment, and what was measured of it.

A team's words stand in ``ir-metadata.yml`` beside its submission or in a software's output, or in a run file before its
lines, as comments from ``# ir_metadata.start`` to ``# ir_metadata.end``. The schema is open: what it does not name stays, and
what has another form than it says is only remarked.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runner.model.errors import PlatformError
from runner.records.contents import KeptFile
from runner.views.audience import Audience, escape, permissions_of
from schemas import load_yaml

if TYPE_CHECKING:
    from runner.model.task import Dataset
    from runner.records.store.run_detail import RunDetail

NAME = "ir-metadata.yml"
START, END = "ir_metadata.start", "ir_metadata.end"
MAX = 64 * 1024  # bytes
MOST = 200  # values that are kept
PARTS = ("platform", "research goal", "implementation", "method", "actor", "data")
# What the schema says of the form of single values.
FORMS: Mapping[str, tuple[type, str]] = {
    "tag": (str, "a text"),
    "actor.team": (str, "a text"),
    "method.automatic": (bool, "true or false"),
    "platform.hardware.cpu.model": (str, "a text"),
    "platform.hardware.cpu.number of cores": (int, "a whole number"),
    "implementation.source.repository": (str, "an address"),
    "implementation.source.commit": (str, "a commit"),
}


@dataclass(frozen=True)
class Given:
    """What a team says: ``values`` as they are written (hostile text), in which ``file``, and ``remarks`` on their form."""

    file: str
    values: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For a view: the values by their paths, all text escaped; values that have no space are counted."""
        flat = [(escape(path, 200), escape(value, 300)) for path, value in _flat(self.values)]
        remarks = [escape(one, 300) for one in self.remarks]
        if len(flat) > MOST:
            remarks.append(f"{len(flat) - MOST} more values are not shown.")
        return {"file": escape(self.file, 120), "values": dict(flat[:MOST]), "remarks": remarks}


def given(found: RunDetail) -> Given | None:
    """What the team says of this run: in its output, before the lines of its run file, or beside its submission; None: nothing."""
    if found.run.submission.texts_cleared:
        return None
    if found.attempt is not None:
        output = found.record.get("output") or {}
        file = found.attempt.file(f"output/{NAME}")
        if file is not None:
            return _read(NAME, _beginning(file))
        run_file = output.get("file")
        file = found.attempt.file(f"output/{run_file}") if run_file else None
        header = _header(_beginning(file)) if file is not None else None
        if header is not None:
            return _read(str(run_file), header)
    if found.declared is not None and found.declared.is_file() and not found.declared.is_symlink():
        return _read(NAME, _beginning(KeptFile(found.declared)))
    return None


def measured(found: RunDetail) -> dict[str, Any]:
    """What is known of a run from its record, in the places of the schema; ``resources`` is an extension of it.

    Seconds, bytes and joules are written with their unit. What was not measured is left out.
    """
    run, record, lock = found.run, found.record, found.lock
    s, machine, source = run.submission, record.get("machine") or {}, run.submission.source or {}
    used = record.get("resources") or {}
    memory, energy = used.get("memory_peak"), machine.get("energy")
    tree = {
        "tag": s.tag or None,
        "actor": {"team": s.team},
        "platform": {
            "hardware": {
                "cpu": {
                    "model": machine.get("cpu"),
                    "architecture": machine.get("architecture"),
                    "number of cores": machine.get("cores"),
                },
                "ram": _unit(machine.get("memory"), 1e9, "GB"),
            },
            "operating system": {"kernel": machine.get("kernel")},
        },
        "implementation": {
            "executable": {"cmd": " ".join(map(str, lock.get("command") or ())) or None},
            "source": {
                "repository": source.get("remote"),
                "commit": source.get("commit"),
                "uncommitted changes": source.get("dirty"),
            },
            "container image": s.image,
        },
        "method": {"automatic": s.method == "automatic"},
        "data": {"test collection": {"name": f"{s.task}/{run.dataset}"}},
        "resources": {
            "runtime": {"wallclock": _unit(used.get("wall_seconds"), 1e-3, "ms")},
            "cpu": {
                "time": _unit(used.get("cpu_seconds"), 1e-3, "ms"),
                "energy used system": _unit(energy, 1, "J"),
            },
            "ram": {"used process": _unit(memory, 1e3, "KB")},
        },
    }
    return dict(_without_empty(tree))


def written(found: RunDetail) -> str:
    """``ir-metadata.yml`` of a run: what its team says, and over it what was measured."""
    import yaml

    theirs = given(found)
    tree = _merged({} if theirs is None else theirs.values, measured(found))
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=False, default_flow_style=False)


def to_take(found: RunDetail, audience: Audience, dataset: Dataset) -> str:
    """The same for an audience that may have the files of the run; empty for others, and where nothing was executed."""
    may = permissions_of(found, audience, dataset)
    return written(found) if found.attempt is not None and may.run and may.content else ""


def _header(beginning: bytes) -> bytes | None:
    """The header of a run file as YAML; None where it has none."""
    lines = beginning.removeprefix(b"\xef\xbb\xbf").splitlines()
    if not lines or lines[0].strip(b"# \t") != START.encode():
        return None
    inner: list[bytes] = []
    for line in lines[1:]:
        if not line.startswith(b"#"):
            return None
        if line.strip(b"# \t") == END.encode():
            return b"\n".join(inner)
        inner.append(line[1:].removeprefix(b" "))
    return None


def _beginning(file: KeptFile) -> bytes:
    """The first bytes of a file, unpacked where it is compressed; empty where they are damaged."""
    try:
        with file.open() as stream:
            data = stream.read(MAX + 1)
    except (OSError, PlatformError):
        return b""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, MAX + 1)
    except zlib.error:
        return b""


def _read(file: str, text: bytes) -> Given:
    lines = [
        line for line in io.BytesIO(text) if line.strip(b"# \t\r\n") not in (START.encode(), END.encode())
    ]
    document = load_yaml(b"".join(lines), file)
    if not isinstance(document.data, Mapping):
        what = str(document.problems[0]) if document.problems else "it is no mapping"
        return Given(file, {}, (f"It cannot be read: {what}",))
    remarks = [str(problem) for problem in document.problems]
    remarks += [
        f"{path} should be {says}."
        for path, (form, says) in FORMS.items()
        if (value := _at(document.data, path)) is not None and (type(value) is not form)
    ]
    remarks += [
        f"{part} should have parts." for part in PARTS if not isinstance(document.data.get(part, {}), Mapping)
    ]
    return Given(file, document.data, tuple(remarks))


def _at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def _flat(tree: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The single values of a tree with their paths; those of lists are joined."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _flat(value, f"{path}.{name}" if path else str(name))
    elif isinstance(tree, list) and not any(isinstance(one, Mapping | list) for one in tree):
        yield path, ", ".join(map(str, tree))
    elif isinstance(tree, list):
        for number, value in enumerate(tree, start=1):
            yield from _flat(value, f"{path}.{number}")
    elif tree is not None:
        yield path, str(tree).lower() if isinstance(tree, bool) else str(tree)


def _unit(value: float | None, of: float, unit: str) -> str | None:
    """A value as the schema writes it, a number and its unit."""
    return None if value is None else f"{value / of:.0f} {unit}"


def _without_empty(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        kept = dict(_without_empty(value)) if isinstance(value, Mapping) else value
        if kept is not None and kept != {}:
            yield name, kept


def _merged(one: Any, over: Any) -> Any:
    """Two trees as one; where both have a value, that of ``over``."""
    if not isinstance(one, Mapping) or not isinstance(over, Mapping):
        return over
    return {**one, **{name: _merged(one.get(name), value) for name, value in over.items()}}
