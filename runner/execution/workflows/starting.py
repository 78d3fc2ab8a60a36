"""What workflows have in common: the verdict in the end, and starting, watching and ending a container of ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import Handle
from runner.execution.job import Executed, Job
from runner.model.clock import SystemClock, stamp
from runner.model.container import Collected, Exit
from runner.model.errors import PlatformError
from runner.model.verdict import Facts, decide

KIB = 1024
POLL = 0.1  # seconds between looks
WORDS = 5  # lines that are repeated of what a server said before it ended


def now() -> str:
    """The time as records have it."""
    return stamp(SystemClock().now())


def begin(staging: Path) -> str:
    """Make ``output/`` and ``logs/`` in ``staging``; returns the time as records have it."""
    (staging / "output").mkdir()
    (staging / "logs").mkdir()
    return now()


def conclude(job: Job, started: str, collected: Collected, exit_: Exit | None, **known: Any) -> Executed:
    """What a workflow returns of a run that ended now; ``known`` are further fields of the verdict's :class:`Facts`."""
    expected = job.task.output
    run_file = next((name for name in (expected, f"{expected}.gz") if name in collected.files), None)
    facts = Facts(exit_, run_file is not None, collected.full, collected.refused, **known)
    return Executed(decide(facts, job.limits, expected), exit_, collected, run_file, started, now())


def keep_logs(handle: Handle, folder: Path, most: int) -> None:
    """Write the streams of a container to ``stdout.log`` and ``stderr.log``, ``most`` bytes of each."""
    (folder / "stdout.log").write_bytes(handle.logs("stdout", most))
    (folder / "stderr.log").write_bytes(handle.logs("stderr", most))


def keep_log(handle: Handle, path: Path, most: int) -> None:
    """Write both streams of a container to one file, ``most`` bytes of each."""
    path.write_bytes(handle.logs("stdout", most) + handle.logs("stderr", most))


def unusable(title: str, words: str) -> PlatformError:
    """The error (E402) of a sidecar that the task's own data or options are no use to; ``words`` are what it said."""
    what = f"the {title} cannot use what task.yaml gives it"
    return PlatformError(what, why=words, fix="correct the task's files", code="E402")


def last_words(handle: Handle, most: int = 1) -> str:
    """The last ``most`` lines that a container complained, escaped, in one line."""
    text = handle.logs("stderr", 4 * KIB).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(schemas.show(line, 300) for line in lines[-most:])


def wait_ready(
    handle: Handle,
    title: str,
    seconds: float,
    check: Callable[[], None],
    *,
    speaker: Handle | None = None,
    fix: str = "",
) -> None:
    """Wait until a container of ours says ``ready``.

    Args:
        handle: The container.
        title: What people call it.
        seconds: How long it may take.
        check: Called in between; raises when there is no hope.
        speaker: Whose last words say why it takes longer (default: its own).
        fix: What to do when it does.

    Raises:
        PlatformError: It takes longer, or what ``check`` raises.
    """
    until = time.monotonic() + seconds
    while b"ready" not in handle.logs("stdout", 4 * KIB).split():
        check()
        if time.monotonic() >= until:
            why = f"It was not ready within {seconds:g} s. {last_words(speaker or handle, WORDS)}".strip()
            raise PlatformError(f"the {title} did not start", why=why, fix=fix)
        time.sleep(POLL)
