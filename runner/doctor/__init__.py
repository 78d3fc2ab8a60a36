"""What is wrong with this machine, and the command that corrects it: ``runner doctor``.

Every check looks at one thing and never changes anything. PASS is fine; CAUTION works, but a person should
know; FAIL means that runs will be refused or cannot be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runner.doctor.checks import Check, Status, guarded
from runner.doctor.engine import base_check, engine_checks
from runner.doctor.home import (
    clock_check,
    database_check,
    disk_check,
    mode_check,
    plots_checks,
    records_check,
    settings_checks,
)
from runner.doctor.tasks import task_checks

if TYPE_CHECKING:
    from runner.model.clock import Clock
    from runner.model.config import Config


def diagnose(config: Config, clock: Clock | None = None) -> list[Check]:
    """Every check of this machine, in the order in which faults build on one another. Never raises RunnerError.

    ``clock`` is the clock that deadlines are judged by (default: this machine's).
    """
    from runner.model.clock import SystemClock

    now = (clock or SystemClock()).now()
    checks = [*settings_checks(config), *engine_checks(config, now)]
    checks += guarded("base image", lambda: [base_check(config)])
    checks += [
        disk_check(
            "disk of the data directory",
            config.home,
            "delete what is not needed (runner gc), or set RUNNER_HOME",
        ),
        mode_check(config),
        *guarded("database", lambda: [database_check(config)]),
        *plots_checks(config),
        clock_check(config, now),
    ]
    checks += guarded("records", lambda: [records_check(config)])
    checks += guarded("tasks", lambda: list(task_checks(config)))
    return checks


def worst(checks: Sequence[Check]) -> Status:
    """The worst status among ``checks``; PASS for none."""
    order: tuple[Status, ...] = ("FAIL", "CAUTION", "PASS")
    return next((status for status in order if any(check.status == status for check in checks)), "PASS")
