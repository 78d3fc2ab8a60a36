"""One line of the report of ``runner doctor``, and how a look that fails becomes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from runner.model.errors import RunnerError

Status = Literal["PASS", "CAUTION", "FAIL"]

GIB = 1024**3
DRIFT = timedelta(seconds=60)  # clocks further apart than this make deadlines a matter of dispute


@dataclass(frozen=True)
class Check:
    """One line of the report: what was looked at, what was seen, and how to correct it (empty when fine)."""

    status: Status
    name: str
    detail: str
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        """The check as ``runner doctor --json`` prints it."""
        return {"status": self.status, "name": self.name, "detail": self.detail, "fix": self.fix}


def passed(name: str, detail: str) -> Check:
    """A check that found nothing wrong."""
    return Check("PASS", name, one_line(detail))


def caution(name: str, detail: str, fix: str = "") -> Check:
    """A check that found what works, but a person should know."""
    return Check("CAUTION", name, one_line(detail), one_line(fix))


def failed(name: str, detail: str, fix: str) -> Check:
    """A check that found what makes runs impossible, or not to be trusted."""
    return Check("FAIL", name, one_line(detail), one_line(fix))


def of_error(name: str, error: RunnerError, fix: str = "") -> Check:
    """An error as a failed check; ``fix`` where the error names none."""
    return failed(name, f"{error.what}. {error.why}", error.fix or fix)


def guarded(name: str, look: Callable[[], list[Check]]) -> list[Check]:
    """What ``look`` found, or its error as a failed check: one broken part must not hide the others."""
    try:
        return look()
    except RunnerError as error:
        return [of_error(name, error)]
    except OSError as error:
        return [failed(name, str(error), "see that the file system works and may be read")]


def one_line(text: str) -> str:
    """``text`` on one line, without control characters, of bearable length."""
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in flat)[:400]
