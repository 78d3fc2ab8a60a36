"""What the gateway may do: its definition, checked whole before anything listens, and the key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas import load_json, validate
from schemas.endpoint import address_problems


class ConfigError(Exception):
    """The definition cannot be used. ``problems`` are all of them, in words that repeat no key."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Spent:
    """Calls to the endpoint, tokens of questions and answers together, and cost in the currency of the prices."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Config:
    """The gateway's limits. Seconds and bytes; ``price_input`` and ``price_output`` per million tokens.

    ``calls``, ``tokens`` and ``cost`` bound what one process may spend, with ``spent`` already gone (None: no bound).
    ``timeout`` is for one try upstream, of which there are at most ``retries`` + 1. ``max_tokens`` is the largest
    reply that may be asked for.
    """

    base_url: str
    models: tuple[str, ...]
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price_input: float = 0.0
    price_output: float = 0.0
    concurrency: int = 10
    timeout: float = 60.0
    retries: int = 5
    max_tokens: int = 4096
    max_body: int = 1 << 20
    spent: Spent = Spent()
    key: str | None = field(default=None, repr=False)


def load(path: Path, key_file: Path | None = None, *, replay: bool = False) -> Config:
    """The definition in ``path`` (schema ``gateway``) with the key in ``key_file``. Raises :class:`ConfigError`.

    For ``replay`` no key is read and no address is needed: nothing is ever asked.
    """
    doc = load_json(path)
    problems = [str(problem) for problem in validate(doc, "gateway")]
    data: dict[str, Any] = dict(doc.data) if isinstance(doc.data, dict) else {}
    url = data.setdefault("base_url", "")
    if isinstance(url, str) and not replay:
        problems += [f"base_url {what}" for what in address_problems(url)] if url else ["base_url is missing"]
    if data.get("cost") is not None and "price" not in data:
        problems.append("cost needs price, else nothing can be counted")
    key = _key(key_file, problems) if key_file is not None and not replay else None
    if problems:
        raise ConfigError(problems)
    del data["schema_version"]
    price, spent = data.pop("price", None) or {}, data.pop("spent", None) or {}
    data |= {f"price_{of}": amount for of, amount in price.items()}
    return Config(**data | {"models": tuple(data["models"])}, spent=Spent(**spent), key=key)


def _key(path: Path, problems: list[str]) -> str | None:
    try:
        with path.open("rb") as source:
            key = source.read(4097).strip()
    except OSError as error:
        problems.append(f"the key file cannot be read: {error.strerror}")
        return None
    if not re.fullmatch(rb"[!-~]{1,4096}", key):
        problems.append("the key file must hold one key: printable characters without blanks")
        return None
    return key.decode("ascii")
