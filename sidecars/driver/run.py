"""A whole run: wait for the software, hold all debates (some at the same time), and report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import schemas
from sidecars.driver.config import Claim, Config, InputError, Transcript, claims, transcripts
from sidecars.driver.debate import hold
from sidecars.driver.judging import judge
from sidecars.driver.output import Output, Part
from sidecars.driver.software import Software
from sidecars.driver.user import User, UserFailure

RUN_FILES = {"debate": "simulations.jsonl", "judge": "evaluations.jsonl"}
Task = TypeVar("Task", Claim, Transcript)
Whose = Literal["user", "driver", "input"]


@dataclass
class Report:
    """driver.json: whether the software became ready, whose failure ended the run, and what was counted."""

    ready: bool = False
    ready_ms: float | None = None
    part: Whose | None = None
    message: str = ""
    debates: int = 0
    turns: int = 0
    failed: int = 0

    def fail(self, part: Whose, message: str) -> None:
        """Note a failure that is not the software's; the first one counts."""
        if self.part is None:
            self.part, self.message = part, schemas.show(message, 1000)

    def data(self) -> dict[str, Any]:
        """The content of the file."""
        counts = {"debates": self.debates, "turns": self.turns, "failed": self.failed}
        ready_ms = None if self.ready_ms is None else round(self.ready_ms, 3)
        failure = {"part": self.part, "message": self.message} if self.part else None
        return {"schema_version": 1, "ready": self.ready, "ready_ms": ready_ms, "failure": failure, **counts}


async def run(config: Config, say: Callable[[str], None]) -> Report:
    """Do everything that ``config`` asks for and leave the output. ``say`` is called with how far it is.

    Nothing that the software does ends it early. A failure of the user, of the inputs or of the driver's own
    disk does, and so does being cancelled; it is in the report, beside what was finished by then.
    """
    report = Report()
    output = Output(config.output, RUN_FILES[config.mode])
    try:
        if config.mode == "debate":
            await _debates(config, report, output, say)
        else:
            await _judgments(config, report, output, say)
    except InputError as error:
        report.fail("input", str(error))
    except UserFailure as error:
        report.fail("user", str(error))
    except OSError as error:
        report.fail("driver", f"{error.strerror}: {error.filename or ''}")
    except asyncio.CancelledError:
        report.fail("driver", "it was stopped")
    output.report(report.data())
    return report


async def _debates(config: Config, report: Report, output: Output, say: Callable[[str], None]) -> None:
    work = claims(config.input)
    user = User(config)
    await user.ready()
    software = Software(config)  # its time starts when there is somebody to talk to it
    share = config.output_bytes // len(work)
    await _all(work, lambda claim: hold(claim, config, software, user, share), software, report, output, say)


async def _judgments(config: Config, report: Report, output: Output, say: Callable[[str], None]) -> None:
    work = transcripts(config.input)
    software = Software(config)
    share = config.output_bytes // len(work)
    await _all(work, lambda debate: judge(debate, config, software, share), software, report, output, say)


async def _all(
    work: Sequence[Task],
    do: Callable[[Task], Awaitable[Part]],
    software: Software,
    report: Report,
    output: Output,
    say: Callable[[str], None],
) -> None:
    """Once the software listens: all of ``work``, ``concurrency`` at a time; what is finished is kept.

    The first failure that is not the software's stops all the others and is raised.
    """
    report.ready_ms = await software.ready()
    report.ready = report.ready_ms is not None
    say("the server is ready" if report.ready else "the server never became ready")
    if not report.ready:
        return
    places = asyncio.Semaphore(software.config.concurrency)

    async def one(task: Task) -> None:
        async with places:
            part = await do(task)
        output.keep(part)
        failed = sum(record["outcome"] == "failed" for record in part.records)
        report.debates += 1
        report.turns += len(part.records)
        report.failed += failed
        done = f"{report.debates}/{len(work)}"
        say(f"debate {task.number}: {len(part.records)} answers, {failed} of them failed ({done})")

    tasks = [asyncio.create_task(one(task)) for task in work]
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for ended in finished:
            ended.result()
    finally:
        for left in tasks:
            left.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        output.join(task.number for task in work)
