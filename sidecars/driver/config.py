"""What the driver is to do (driver.json), checked, and what it is to debate or have judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import schemas
from schemas import jsonl
from sidecars.surrogates import with_whole_pairs

MAX_LINE = 8 * 1024 * 1024  # bytes of one line of the inputs
MAX_LINES = 100_000

Mode = Literal["debate", "judge"]


class InputError(Exception):
    """The driver's own files are not as they have to be: nobody's fault but the organiser's or ours."""


@dataclass(frozen=True)
class Config:
    """driver.json as data. Times in seconds, sizes in bytes; see :mod:`sidecars.driver.__main__` for the file."""

    mode: Mode
    input: Path
    software: Path  # the socket behind which the software listens
    ended: Path  # a file that appears when the software's container has ended
    output: Path
    user: Path | None = None  # the socket of the simulated user; none in mode judge
    user_path: str = "/user-sim/api/chat"
    user_model: str = "base-user"
    user_seconds: float = 120.0
    port: int = 8080
    turns: int = 5
    concurrency: int = 4
    seed: int = 0
    word_limit: int = 60
    ready_seconds: float = 60.0
    answer_seconds: float = 60.0
    answer_bytes: int = 262_144
    deadline_seconds: float = 600.0
    output_bytes: int = 64 * 1024 * 1024  # of what the software says, in all

    @property
    def address(self) -> str:
        """The address of the software as it is written into the output."""
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    def load(cls, path: Path) -> Config:
        """The configuration in ``path``. Raises :class:`InputError` with everything that is wrong."""
        doc = schemas.load_json(path, path.name, max_bytes=64 * 1024)
        problems = list(doc.problems) or schemas.validate(doc, "driver")
        if problems:
            raise InputError("; ".join(str(problem) for problem in problems))
        data: Mapping[str, Any] = doc.data
        user = data.get("user") or {}
        if data["mode"] == "debate" and not user:
            raise InputError(f"{path.name}: mode debate needs a user")
        plain = {field.name for field in fields(cls)} & set(data) - {
            "input",
            "software",
            "ended",
            "output",
            "user",
        }
        return cls(
            input=Path(data["input"]),
            software=Path(data["software"]["socket"]),
            port=data["software"].get("port", cls.port),
            ended=Path(data["ended"]),
            output=Path(data["output"]),
            user=Path(user["socket"]) if user else None,
            **{f"user_{key}": user[key] for key in ("path", "model", "seconds") if key in user},
            **{key: data[key] for key in plain},
        )


@dataclass(frozen=True)
class Claim:
    """What one debate is about. ``number`` counts from 1, in the order of the file."""

    number: int
    id: str
    claim: str


@dataclass(frozen=True)
class Transcript:
    """One finished debate that is to be judged: its line as it is in the file, None for a debate that failed."""

    number: int
    simulation: Mapping[str, Any] | None


def claims(path: Path) -> list[Claim]:
    """The claims of a file, one JSON object a line; blank lines do not count. Raises :class:`InputError`."""
    found: list[Claim] = []
    for where, row in _rows(path):
        if not isinstance(row.get("id"), str) or not isinstance(row.get("claim"), str) or not row["claim"]:
            raise InputError(f"{where}: needs the texts id and claim")
        found.append(Claim(len(found) + 1, row["id"], row["claim"]))
    if not found:
        raise InputError(f"{path.name} has no claim")
    return found


def transcripts(path: Path) -> list[Transcript]:
    """The debates of a file in the form of ``simulations.jsonl``. Raises :class:`InputError`."""
    found: list[Transcript] = []
    for where, row in _rows(path):
        simulation = row.get("simulation")
        if row and not (isinstance(simulation, dict) and _turns(simulation)):
            raise InputError(f"{where}: needs simulation.userTurns, a list of objects")
        found.append(Transcript(len(found) + 1, simulation if row else None))
    if not found:
        raise InputError(f"{path.name} has no debate")
    return found


def _turns(simulation: Mapping[str, Any]) -> bool:
    turns = simulation.get("userTurns")
    return isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file with their places. Raises :class:`InputError`."""
    try:
        with path.open("rb") as file:
            for number, _, raw in jsonl.split(file.read, MAX_LINE):
                where = f"{path.name}:{number}"
                if raw is None or number > MAX_LINES:
                    raise InputError(f"{where}: longer than {MAX_LINE} bytes, or more than {MAX_LINES} lines")
                if raw.strip():
                    doc = schemas.load_json(with_whole_pairs(raw), where, max_bytes=MAX_LINE)
                    if doc.problems or not isinstance(doc.data, dict):
                        problems = "; ".join(map(str, doc.problems))
                        raise InputError(problems or f"{where}: is not a JSON object")
                    yield where, doc.data
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}") from None
