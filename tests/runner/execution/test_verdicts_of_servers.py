"""The verdict table for servers: what their end, a dispute and a failure of ours make of an attempt."""

from __future__ import annotations

from typing import Any

import pytest

from runner.model.container import Exit
from runner.model.limits import MIB, Limits
from runner.model.verdict import Facts, decide
from schemas.details import Detail

NOTE = Detail("answers-failed", failed=2, turns=6, classes={})
STOPPED = Exit(code=143, killed="stop")


def name(exit_: Exit | None, output: bool = True, **facts: Any) -> str:
    details = {k: Detail("text", text=v) if isinstance(v, str) else v for k, v in facts.items()}
    given = Facts(exit=exit_, output_present=output, output_full=False, **details)
    return decide(given, Limits(memory=256 * MIB), "simulations.jsonl").name


@pytest.mark.parametrize("code", [0, 137, 143])
def test_being_stopped_by_us_is_no_failure(code: int) -> None:
    stopped = Exit(code=code, killed="stop")
    assert name(stopped, ready=True) == "ok"
    assert name(stopped, output=False, ready=True) == "no-output"
    assert name(stopped, output=False, unhealthy="nothing listened") == "unhealthy"


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        (Exit(code=0), "unhealthy"),
        (Exit(code=1), "run-error"),
        (Exit(code=134), "signal"),
        (Exit(code=137, oom_killed=True), "memory-limit"),
        (Exit(code=None, start_error="no such file"), "run-error"),
    ],
)
def test_an_end_before_it_was_ready(end: Exit, verdict: str) -> None:
    assert name(end, output=False, unhealthy="it ended") == verdict


@pytest.mark.parametrize("end", [Exit(code=0), Exit(code=1), Exit(code=139), Exit(code=137, oom_killed=True)])
def test_an_end_after_it_was_ready_decides_nothing(end: Exit) -> None:
    assert name(end, ready=True) == "ok"


def test_the_order() -> None:
    cancelled = Exit(code=137, killed="cancel")
    assert name(cancelled, platform="disk full", disputed="gone") == "platform-error"
    assert name(cancelled, disputed="gone", unhealthy="never") == "cancelled"
    outside = Exit(code=137, outside="somebody had the container engine send it signal 9")
    assert name(outside, disputed="gone", unhealthy="never") == "killed-outside"
    assert name(outside, ready=True) == "killed-outside"
    assert name(STOPPED, disputed="gone", unhealthy="never") == "disputed"
    assert name(None, disputed="gone") == "platform-error"


def test_notes_become_warnings() -> None:
    given = Facts(exit=STOPPED, output_present=True, output_full=False, ready=True, notes=(NOTE,))
    assert decide(given, Limits(), "x").warnings == (NOTE,)
