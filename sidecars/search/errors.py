"""What can go wrong: a request that is refused (in Elasticsearch's shape), and a data folder that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.jsonl import Fault

SHOWN = 200


def quote(value: object) -> str:
    """``value`` as one short piece of an error message. What clients send is never repeated at length."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def not_json(fault: Fault) -> str:
    """Why a request's body or a line is not JSON, in words."""
    words = {"duplicate": "a key is there twice", "constant": f"{fault.detail} is not a number"}
    words |= {"number": "a number is too large", "encoding": "not UTF-8", "deep": "nested too deeply"}
    return f"not JSON: {quote(words.get(fault.kind, fault.detail))}"


class SearchError(Exception):
    """A request that is refused: HTTP status, Elasticsearch's name for the kind of error, a sentence."""

    def __init__(self, status: int, kind: str, reason: str, **details: Any) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason = status, kind, reason
        self.details: Mapping[str, Any] = {key.replace("__", "."): value for key, value in details.items()}

    def body(self) -> dict[str, Any]:
        """The error as Elasticsearch writes it: what went wrong, its root cause, and the status again."""
        what = {"type": self.kind, "reason": self.reason, **self.details}
        return {"error": {"root_cause": [what], **what}, "status": self.status}


def illegal(reason: str) -> SearchError:
    """A request that is well-formed but asks for what is not allowed, or not supported here (status 400)."""
    return SearchError(400, "illegal_argument_exception", reason)


def malformed(reason: str) -> SearchError:
    """A request that is not in the form that is asked for (status 400)."""
    return SearchError(400, "parsing_exception", reason)


def no_index(name: str) -> SearchError:
    """There is no such index (status 404)."""
    name = quote(name)
    return SearchError(
        404,
        "index_not_found_exception",
        f"no such index [{name}]",
        resource__type="index_or_alias",
        resource__id=name,
        index_uuid="_na_",
        index=name,
    )


class DataError(Exception):
    """A data folder that cannot be used: all that is wrong with it, a line each."""

    def __init__(self, problems: Sequence[str], fix: str = "") -> None:
        super().__init__("; ".join(problems))
        self.problems, self.fix = list(problems), fix

    def lines(self) -> list[str]:
        """The message for people: one line a problem, then what to do."""
        return [f"error: {p}" for p in self.problems] + ([f"  Fix: {self.fix}"] if self.fix else [])
