"""What is shown of a run on a blinded dataset in place of figures: a few steps, few or many, the day.

Its software has read the hidden inputs and can choose whatever is measured of it: seconds, bytes, how often it breaks which rule, its
exit code. Each of these would carry bits of the inputs to its team. So everybody but the organiser gets fields with few values;
``docs/explanation/threat-model.md`` counts them, and ``tests/runner/views/test_bits_of_a_blinded_run.py`` counts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.model.run import FindingCount, Run

KIB, MIB, GIB = 2**10, 2**20, 2**30
# The end of each step, with what the step is called.
Steps = Sequence[tuple[float, str]]
_NO_END = float("inf")
TIME: Steps = (
    *((60.0, "under 1 min"), (600.0, "under 10 min"), (3600.0, "under 1 h")),
    (_NO_END, "1 h or more"),
)
MEMORY: Steps = (
    *((256 * MIB, "under 256 MiB"), (GIB, "under 1 GiB"), (4 * GIB, "under 4 GiB")),
    (_NO_END, "4 GiB or more"),
)
SIZE: Steps = (
    *((64 * KIB, "under 64 KiB"), (MIB, "under 1 MiB"), (16 * MIB, "under 16 MiB")),
    (_NO_END, "16 MiB or more"),
)
FEW = 10  # findings of one code; more are many
AMOUNTS = ("few", "many")
SEVERITIES = ("error", "defect", "warning")
UNNAMED = "finding"  # what an evaluator that is not ours found: its codes are words of its own
# Outcomes of which steps are shown: the software brought them about.
SETTLED = ("scored", "invalid", "failed")


def step(value: float | None, steps: Steps) -> str:
    """The step that ``value`` is in; the lowest one for what was not measured, which would be one value more."""
    return next(name for end, name in steps if (value or 0) < end)


def ends() -> dict[str, float]:
    """Where each step ends, by what it is called."""
    return {name: end for steps in (TIME, MEMORY, SIZE) for end, name in steps if end != _NO_END}


def amount(count: int) -> str:
    """``few`` or ``many``."""
    return AMOUNTS[count > FEW]


def day(stamp: str | None) -> str | None:
    """The day of a time in ISO 8601."""
    return None if stamp is None else stamp[:10]


def steps_of(run: Run) -> dict[str, str | None]:
    """Time and memory of a run in steps; None where nothing of ours measured it, and while it is not settled."""
    settled = run.outcome.name in SETTLED and run.submission.how != "uploaded"
    return {
        "time": step(run.wall_seconds, TIME) if settled else None,
        "memory": step(run.memory_peak, MEMORY) if settled else None,
    }


def size_of(run: Run, record: Mapping[str, Any]) -> str | None:
    """The size of the run file in steps; None where the run was not evaluated."""
    if run.outcome.name not in ("scored", "invalid"):
        return None
    output = record.get("output") or {}
    sizes = [f["size"] for f in output.get("files") or () if f["name"] == output.get("file")]
    return step(sum(sizes), SIZE)


def gravest(findings: Iterable[FindingCount], ours: bool) -> dict[str, dict[str, Any]]:
    """The gravest code, the first by name of equally grave ones, with few or many; empty when nothing was found.

    ``ours``: the platform's evaluator found it. The code and title of another one are not shown, only the severity.
    """
    grave = {severity: place for place, severity in enumerate(SEVERITIES)}
    known = [f for f in findings if f.severity in grave]
    if not known:
        return {}
    worst = min(known, key=lambda f: (grave[f.severity], f.code))
    return {
        worst.code if ours else UNNAMED: {
            "severity": worst.severity,
            "count": None,
            "amount": amount(worst.count),
            "title": worst.title if ours else "",
        }
    }
