"""Who is told what: ``notices.yaml`` beside ``proctor.yaml`` (schemas/notices.schema.json). Without the file nobody is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.model.errors import RunnerError
from runner.work.notices.due import ADMITTED

FILE = "notices.yaml"
CHOSEN = ("done", "held", "deadline")  # of these a team says itself which it wants
ABOUT = (*CHOSEN, ADMITTED)


@dataclass(frozen=True)
class Hook:
    """An address that is called. ``team``: only what is of that team; ``private``: it may lie in a private network."""

    id: str
    url: str
    about: tuple[str, ...] = ABOUT
    team: str | None = None
    private: bool = False
    secret_env: str | None = None


@dataclass(frozen=True)
class Mail:
    """How mail is sent, and to whom: ``organisers`` are addresses, ``teams`` says whether those of teams get their own."""

    host: str
    sender: str
    port: int = 587
    tls: str = "starttls"
    ca: str | None = None
    user: str | None = None
    password_env: str | None = None
    organisers: tuple[str, ...] = ()
    teams: bool = False
    about: tuple[str, ...] = ABOUT


@dataclass(frozen=True)
class Settings:
    """What ``notices.yaml`` says. ``url`` is the address of the front; ``quiet`` are teams that want no mail."""

    url: str
    deadline_hours: float = 24.0
    hooks: tuple[Hook, ...] = ()
    mail: Mail | None = None
    quiet: frozenset[str] = field(default_factory=frozenset)


def load(root: Path) -> Settings | None:
    """The settings of a project; None where there are none. Raises E101 and E405 with what is wrong, by line."""
    path = root / FILE
    if not os.path.lexists(path):
        return None
    import schemas

    doc = schemas.load_yaml(path, FILE)
    problems = [*doc.problems, *(schemas.validate(doc, "notices") if doc.data is not None else ())]
    if problems:
        code = "E405" if doc.data is None else "E101"
        raise RunnerError(
            code,
            f"{FILE} cannot be used",
            why=f"It is {path}.",
            fix="correct what is listed",
            problems=problems,
        )
    data: Mapping[str, Any] = doc.data
    hooks = [Hook(**_plain(one)) for one in data.get("hooks", ())]
    if len({one.id for one in hooks}) != len(hooks):
        raise RunnerError("E101", f"{FILE}: two hooks have one id", fix="give each its own")
    mail = data.get("mail")
    return Settings(
        data["url"].rstrip("/"),
        float(data.get("deadline_hours", Settings.deadline_hours)),
        tuple(hooks),
        None
        if mail is None
        else Mail(**_plain({"sender": mail["from"], **{k: v for k, v in mail.items() if k != "from"}})),
        frozenset(data.get("quiet", ())),
    )


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
