"""What a task's gateways have used of its budget: one account for all its runs and evaluations.

``RUNNER_HOME/replies/<task>.spent.json`` is the account. It is derived: every call is logged, and the logs lie in the
archive next to the attempt or evaluation that asked (``calls.jsonl``). Where the account is missing it is counted
again from them. Calls of work that left nothing there (given up in the middle, or a local check) stand in the account
alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.execution.replies import gateway_files, locked
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from schemas import jsonl
from schemas.files import atomic_file, make_private

CALLS = "calls.jsonl"
MAX_LINE = 64 * 1024


@dataclass(frozen=True)
class Spent:
    """What a task's gateways have used: calls to the endpoint (retries count), tokens, and cost in its currency."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)


def used_by(line: Mapping[str, Any], price: Mapping[str, float]) -> Spent:
    """What one line of a call log used of the budget: nothing when the endpoint was not asked.

    ``price`` is what a million tokens cost, of questions (``input``) and replies (``output``).
    """
    counts = [line.get(name) for name in ("prompt_tokens", "completion_tokens", "retries")]
    prompt, reply, retries = (n if type(n) is int and 0 <= n < 1 << 53 else 0 for n in counts)
    if line.get("cached") is True or not ("upstream" in line or line.get("status") == 200 or retries):
        return Spent()
    cost = (prompt * price.get("input", 0.0) + reply * price.get("output", 0.0)) / 1_000_000
    return Spent(1 + retries, prompt + reply, cost)


def calls(path: Path) -> Iterator[dict[str, Any] | None]:
    """The lines of a call log; None for one that cannot be read. Nothing when there is no log."""
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for _, data, _ in jsonl.rows(stream.read, max_line=MAX_LINE, rules=jsonl.LENIENT):
            yield data if isinstance(data, dict) else None


def spent(book: Path, price: Mapping[str, float] | None = None) -> Spent:
    """What has been spent by now of the budget of the task whose kept replies are in ``book``.

    Raises E306 when the account cannot be read.
    """
    path = account(book)
    if not path.is_file():
        return recount(book, price)
    try:
        data = json.loads(path.read_bytes())
        return Spent(int(data["calls"]), int(data["tokens"]), float(data["cost"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Never taken for nothing: that would open the whole budget again.
        what, why = "what models have cost cannot be read", f"{path} is damaged."
        fix = "remove it: it is counted again from the archive"
        raise PlatformError(what, why=why, fix=fix, code="E306") from error


def charge(book: Path, used: Spent, price: Mapping[str, float] | None = None) -> Spent:
    """Add what one gateway has used; returns the sum. Raises E306."""
    make_private(book.parent)
    with locked(book):
        total = spent(book, price) + used
        with atomic_file(account(book)) as file:
            file.write(json.dumps(asdict(total)).encode() + b"\n")
    return total


def account(book: Path) -> Path:
    """Where the account of a book's task is."""
    return book.with_suffix(".spent.json")


def recount(book: Path, price: Mapping[str, float] | None = None) -> Spent:
    """The sum over all call logs in the archive of the task."""
    total = Spent()
    for path in gateway_files(RunArchive(book.parent.parent / "archive"), book.stem, CALLS):
        for line in calls(path):
            total += used_by(line or {}, price or {})
    return total
