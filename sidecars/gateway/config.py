"""What the gateway may do: its definition, checked whole before anything listens, and the key."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from schemas import load_json, show

MODELS, NAME = 64, 256


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
    """The definition in ``path`` with the key in ``key_file``. Raises :class:`ConfigError`.

    For ``replay`` no key is read and no address is needed: nothing is ever asked.
    """
    doc = load_json(path)
    if doc.problems:
        raise ConfigError([str(problem) for problem in doc.problems])
    if not isinstance(doc.data, dict):
        raise ConfigError([f"{show(path.name)} is not an object"])
    problems: list[str] = []
    given = _fields(doc.data, problems)
    if not replay and "base_url" in given:
        problems += _address(given["base_url"])
    elif not replay and "base_url" not in doc.data:
        problems.append("base_url is missing")
    if given.get("cost") is not None and "price" not in doc.data:
        problems.append("cost needs price, else nothing can be counted")
    if key_file is not None and not replay:
        given["key"] = _key(key_file, problems)
    if problems:
        raise ConfigError(problems)
    given.setdefault("base_url", "")
    return Config(**given)


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _number(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) in (int, float) and low <= value <= high


def _names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= MODELS
        and all(isinstance(name, str) and 0 < len(name) <= NAME and name.isprintable() for name in value)
    )


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "schema_version": (lambda value: value == 1, "1"),
    "base_url": (lambda value: isinstance(value, str), "an address such as https://api.openai.com/v1"),
    "models": (_names, f"a list of 1 to {MODELS} model names"),
    "calls": (_whole(0, 10**9), "a whole number, 0 or more"),
    "tokens": (_whole(0, 10**13), "a whole number, 0 or more"),
    "cost": (_number(0, 1e9), "a number, 0 or more"),
    "concurrency": (_whole(1, 1000), "a whole number from 1 to 1000"),
    "timeout": (_number(0.1, 3600), "seconds, from 0.1 to 3600"),
    "retries": (_whole(0, 20), "a whole number from 0 to 20"),
    "max_tokens": (_whole(1, 10**6), "a whole number from 1 to 1000000"),
    "max_body": (_whole(1024, 64 << 20), "bytes, from 1 KiB to 64 MiB"),
}
_GROUPS = {"price": ("input", "output"), "spent": ("calls", "tokens", "cost")}
_MAY_BE_NULL = {"calls", "tokens", "cost", *_GROUPS}


def _fields(data: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in sorted({"schema_version", "models"} - set(data)):
        problems.append(f"{name} is missing")
    for name, value in data.items():
        if name in _MAY_BE_NULL and value is None:
            continue
        if name in _GROUPS:
            inner = value if isinstance(value, dict) else {"": None}
            wrong = [key for key in inner if key not in _GROUPS[name] or not _number(0, 1e13)(inner[key])]
            if wrong:
                problems.append(f"{name} is an object of numbers with {', '.join(_GROUPS[name])}")
            elif name == "price":
                given |= {f"price_{key}": price for key, price in inner.items()}
            else:
                given["spent"] = Spent(**{key: number for key, number in inner.items() if number is not None})
        elif name not in _FIELDS:
            problems.append(f"{show(name)} is not a field; there are {', '.join([*_FIELDS, *_GROUPS])}")
        elif not _FIELDS[name][0](value):
            problems.append(f"{name} must be {_FIELDS[name][1]}")
        elif name != "schema_version":
            given[name] = tuple(value) if name == "models" else value
    return given


def _address(url: str) -> list[str]:
    """What is wrong with the address: only https, or http to this machine and private networks."""
    if not re.fullmatch(r"[!-~]{1,500}", url):
        return ["base_url has characters that an address has not"]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return ["base_url is not an address"]
    if not host or parts.scheme not in ("http", "https"):
        return ["base_url must start with https:// and name a host"]
    problems = []
    if parts.username is not None or parts.password is not None:
        problems.append("base_url must not hold a user or password; a key belongs into the key file")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        problems.append("base_url must not have a query or fragment")
    if parts.scheme == "http" and not _private(host):
        problems.append("base_url must be https: over http the key could be read on the way")
    return problems


def _private(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(".internal")
    return address.is_private or address.is_loopback


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
