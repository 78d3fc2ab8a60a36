"""Limits of processor time in verdicts: what decides, what is said, and what files keep."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

import pytest

from runner.model.container import Exit, Resources
from runner.model.limits import Limits, absurd, as_record, parse_limits
from runner.model.outcome import AttemptFacts, derive
from runner.model.verdict import Facts, Verdict, decide

LIMITS = Limits(cpu_time=10.0, wall_clock=60.0)


def verdict(used: float | None, limits: Limits = LIMITS, wall: float = 20.0, **end: object) -> Verdict:
    exit_ = Exit(**{"code": 0, "resources": Resources(wall, used, 1, "exact"), **end})  # type: ignore[arg-type]
    return decide(Facts(exit=exit_, output_present=True, output_full=False), limits, "run.txt")


def test_who_is_killed_at_the_limit_is_told_both_figures() -> None:
    found = verdict(10.42, code=137, killed="processor")
    assert (found.name, found.blame) == ("cpu-limit", "participant")
    assert "10.4 s" in str(found.detail) and " 10 s" in str(found.detail)
    assert found.as_dict()["details"]["reason"] == {"kind": "processor-time", "used": 10.42, "limit": 10.0}


def test_who_ends_a_moment_before_it_is_looked_at_is_judged_alike() -> None:
    assert verdict(10.01).name == "cpu-limit"
    assert verdict(10.01, code=1).name == verdict(10.01, code=137, oom_killed=True).name == "cpu-limit"
    assert verdict(10.0).name == verdict(0.1).name == "ok"


def test_others_come_first_and_without_a_limit_nothing_changes() -> None:
    assert verdict(11.0, killed="time").name == "time-limit"
    assert verdict(11.0, killed="cancel").name == "cancelled"
    assert verdict(11.0, outside="no memory").name == "killed-outside"
    assert verdict(1e6, Limits()).name == "ok"


def test_what_nobody_measured_is_said_where_it_matters() -> None:
    (warning,) = verdict(None).warnings
    assert str(warning) and verdict(None).name == "ok"
    assert verdict(None, wall=9.0).warnings == ()  # on one processor nobody can have used more
    assert verdict(None, Limits()).warnings == ()


def test_locks_from_before_there_was_such_a_limit_stay_what_they_were() -> None:
    assert "cpu_time" not in as_record(Limits()) and as_record(LIMITS)["cpu_time"] == 10.0
    assert as_record(LIMITS) | {"pinned": False, "labels": ()} == asdict(LIMITS)
    assert as_record(replace(LIMITS, pinned=True))["pinned"] is True
    assert parse_limits({"cpu_time": "10min"}).cpu_time == 600.0


@pytest.mark.parametrize(
    ("limits", "count"),
    [(Limits(cpu_time=0.1), 1), (Limits(cpu_time=601.0), 1), (LIMITS, 0)],
)
def test_limits_that_mean_nothing(limits: Limits, count: int) -> None:
    assert [key for key, _, _ in absurd(limits)].count("cpu_time") == count


# --- the load of the machine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("idle", "used", "waited", "found"),
    [
        (0.0, 15.9, 4.0, "platform-error"),
        (0.049, 0.0, 20.0, "platform-error"),
        (0.0, 15.9, 3.9, "time-limit"),  # it slept, and wanted no processor
        (0.0, 16.0, 9.0, "time-limit"),  # it had what it may use: nobody took it away
        (0.05, 1.0, 9.0, "time-limit"),  # there was time left that it did not want
        (None, 1.0, 9.0, "time-limit"),
        (0.0, None, 9.0, "time-limit"),
        (0.0, 1.0, None, "time-limit"),
    ],
)
def test_who_got_no_processor_is_not_blamed_for_the_time(
    idle: float | None, used: float | None, waited: float | None, found: str
) -> None:
    """The edges: less than 5 % free, less than 80 % of 20 s on one processor, and ready to run for the rest of them."""
    limits = Limits(wall_clock=20.0)
    assert verdict(used, limits, code=137, killed="time", idle=idle, waited=waited).name == found


def test_a_busy_machine_is_said_and_the_run_is_tried_again() -> None:
    found = verdict(3.0, Limits(wall_clock=20.0), code=137, killed="time", idle=0.01, waited=17.0)
    assert found.blame == "platform"
    assert re.findall(r"[\d.]+ s", str(found.detail)) == ["20 s", "3.0 s", "20.0 s"]
    outcome = derive([AttemptFacts(1, found.name, found.detail)])
    assert (outcome.name, outcome.todo, outcome.costs_quota) == ("pending", "run", False)


def test_a_moment_of_waiting_excuses_nothing() -> None:
    limits = Limits(wall_clock=5.0)
    for waited, found in ((1.9, "time-limit"), (2.0, "platform-error")):
        assert verdict(0.1, limits, 5.0, code=137, killed="time", idle=0.0, waited=waited).name == found


def test_a_load_excuses_nothing_else() -> None:
    assert verdict(11.0, killed="processor", idle=0.0, waited=9.0).name == "cpu-limit"
    assert verdict(1.0, code=1, idle=0.0, waited=9.0).name == "run-error"
    assert verdict(1.0, idle=0.0, waited=9.0).name == "ok"
