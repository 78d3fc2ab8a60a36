"""What became of a run: derived from its attempts' verdicts, their evaluations and what people did (design.md 7).

Nothing here is stored. The same facts always give the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from runner.model.verdict import TABLE, Blame
from schemas.details import Detail

Name = Literal["pending", "running", "scored", "invalid", "failed", "held", "cancelled", "withdrawn"]
Todo = Literal["run", "evaluate", "nothing"]

# A failure of ours is tried again twice by itself; then the organiser has to look.
TRIES = 3


@dataclass(frozen=True)
class EvaluationFacts:
    """One evaluation: its status, and (for errors) whether trying again is pointless."""

    number: int
    status: str
    final: bool = False
    message: str = ""
    errors: int = 0
    defects: int = 0
    warnings: int = 0
    fault: str = ""


@dataclass(frozen=True)
class AttemptFacts:
    """One attempt, its evaluations oldest first. ``seq`` is the event that committed it."""

    number: int
    verdict: str
    detail: Detail | None = None
    seq: int = 0
    evaluations: tuple[EvaluationFacts, ...] = ()

    @property
    def why(self) -> str:
        """The detail in words; empty without one."""
        return "" if self.detail is None else str(self.detail)


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    ``says`` is a fixed sentence and safe for everybody; ``reason`` adds facts that may hold words of the
    participant or of the evaluator (escape it, and mind the audience). ``todo`` is what the platform does
    next by itself. ``attempt`` and ``evaluation`` are the numbers of those that decided.

    ``fault`` is of the attempt's last evaluation, if that failed: ``organiser`` (the task's files are to be corrected) or
    ``platform``. ``old`` says that the scores are those of an evaluation before it.
    """

    name: Name
    says: str
    reason: str
    next: str
    blame: Blame = "none"
    ranked: bool = False
    costs_quota: bool = False
    listed: bool = False
    todo: Todo = "nothing"
    attempt: int | None = None
    evaluation: int | None = None
    verdict: str | None = None
    fault: str = ""
    old: bool = False


def derive(
    attempts: Sequence[AttemptFacts],
    *,
    running: bool = False,
    cancelled_seq: int | None = None,
    withdrawn: str | None = None,
    uncharged: bool = False,
) -> Outcome:
    """The outcome of a run from its attempts (oldest first) and the events about it.

    The latest attempt that says something about the software decides: failures of the platform, kills from
    outside and cancelled attempts never displace it. ``withdrawn`` is the time the submission was withdrawn, ``uncharged``
    whether the organiser gave its place in the quota back then, though it had run.
    """
    outcome = _of_attempts(attempts, cancelled_seq)
    if withdrawn is not None:
        return replace(
            outcome,
            name="withdrawn",
            says="The submission was withdrawn.",
            reason=f"withdrawn on {withdrawn}",
            next="",
            blame="none",
            ranked=False,
            costs_quota=outcome.costs_quota and not uncharged,
            listed=False,
            todo="nothing",
        )
    if running:
        return Outcome(
            "running",
            "The run is being executed.",
            "being executed now",
            "Wait for it; runner logs --follow shows how far it is.",
            attempt=outcome.attempt,
            evaluation=outcome.evaluation,
            verdict=outcome.verdict,
        )
    return outcome


def _of_attempts(attempts: Sequence[AttemptFacts], cancelled_seq: int | None) -> Outcome:
    settled = [a for a in attempts if a.verdict not in ("platform-error", "killed-outside", "cancelled")]
    if settled:
        return _settled(settled[-1])
    last = attempts[-1] if attempts else None
    if cancelled_seq is not None and (last is None or cancelled_seq > last.seq):
        return _cancelled(last)
    if last is None:
        return Outcome("pending", "The run has not been executed yet.", "not executed yet", _WAIT, todo="run")
    if last.verdict == "cancelled":
        return _cancelled(last)
    if last.verdict == "killed-outside":
        # Whoever ends containers on the machine would end the next one too: it is not tried again by itself.
        return _held(last, None, "platform", f"killed-outside: {last.why}", says=TABLE["killed-outside"].says)
    broken = [a for a in attempts if a.verdict == "platform-error"]
    verdict = TABLE["platform-error"]
    # What only the organiser can correct would end the same way until then.
    if len(broken) < TRIES and not (last.detail and last.detail.code):
        return Outcome(
            "pending",
            verdict.says,
            f"platform failure {len(broken)} of {TRIES}: {last.why}",
            "Nothing to do: it is run again.",
            "platform",
            todo="run",
            attempt=last.number,
            verdict=last.verdict,
        )
    return _held(last, None, "platform", f"{len(broken)} attempts failed on our side; the last: {last.why}")


AGAIN_FAILED = "Evaluating it again failed: this is from before."
_WAIT = "Nothing to do: the organiser's next runner evaluate does it."


def _settled(attempt: AttemptFacts) -> Outcome:
    if attempt.verdict == "disputed":
        return _disputed(attempt)
    if attempt.verdict != "ok":
        row = TABLE[attempt.verdict]
        return Outcome(
            "failed",
            row.says,
            f"{attempt.verdict}: {attempt.detail}" if attempt.detail else attempt.verdict,
            row.next,
            row.blame,
            costs_quota=row.blame == "participant",
            listed=True,
            attempt=attempt.number,
            verdict=attempt.verdict,
        )
    judged = [e for e in attempt.evaluations if e.status in ("valid", "invalid")]
    if judged:
        return _still(_judged(attempt, judged[-1]), attempt.evaluations[-1])
    if not attempt.evaluations:
        return Outcome(
            "pending",
            "The run has been executed and waits for its evaluation.",
            "not evaluated yet",
            _WAIT,
            todo="evaluate",
            attempt=attempt.number,
            verdict=attempt.verdict,
        )
    last = attempt.evaluations[-1]
    if last.final or len(attempt.evaluations) >= TRIES:
        return _held(
            attempt, last.number, "platform", f"evaluation failed: {last.message}", last.fault or "platform"
        )
    return Outcome(
        "pending",
        "The evaluation failed on our side.",
        f"evaluation failure {len(attempt.evaluations)} of {TRIES}: {last.message}",
        "Nothing to do: it is evaluated again.",
        "platform",
        todo="evaluate",
        attempt=attempt.number,
        evaluation=last.number,
        verdict=attempt.verdict,
        fault=last.fault or "platform",
    )


def _judged(attempt: AttemptFacts, evaluation: EvaluationFacts) -> Outcome:
    if evaluation.status == "valid":
        return Outcome(
            "scored",
            "The run is valid and was scored.",
            "",
            "",
            ranked=True,
            costs_quota=True,
            attempt=attempt.number,
            evaluation=evaluation.number,
            verdict=attempt.verdict,
        )
    count = f"{evaluation.errors} error{'' if evaluation.errors == 1 else 's'}"
    return Outcome(
        "invalid",
        "The run file is not valid.",
        f"{count} in the run file",
        "Correct what the findings name; runner check shows them on a file of yours.",
        "participant",
        costs_quota=True,
        listed=True,
        attempt=attempt.number,
        evaluation=evaluation.number,
        verdict=attempt.verdict,
    )


def _still(outcome: Outcome, last: EvaluationFacts) -> Outcome:
    """The outcome of the last evaluation that said something, when the ``last`` one of all failed."""
    if last.status in ("valid", "invalid"):
        return outcome
    return replace(
        outcome,
        says=f"{outcome.says} {AGAIN_FAILED}",
        reason="; ".join(
            part for part in (outcome.reason, f"evaluating it again failed: {last.message}") if part
        ),
        next=outcome.next
        or "Nothing to do for the team. The organiser: correct what the message names, then runner reevaluate.",
        fault=last.fault or "platform",
        old=True,
    )


def _held(
    attempt: AttemptFacts,
    evaluation: int | None,
    blame: Blame,
    reason: str,
    fault: str = "",
    says: str = "it could not be executed or evaluated on our side.",
) -> Outcome:
    return Outcome(
        "held",
        f"The run waits for the organiser: {says[0].lower()}{says[1:]}",
        reason,
        "Nothing to do for the team. The organiser: runner show, then runner evaluate --force or runner reevaluate.",
        blame,
        listed=True,
        attempt=attempt.number,
        evaluation=evaluation,
        verdict=attempt.verdict,
        fault=fault,
    )


def _disputed(attempt: AttemptFacts) -> Outcome:
    """Never tried again by itself: a software that breaks what it can reach must not get another try for it."""
    row = TABLE["disputed"]
    return Outcome(
        "held",
        f"The run waits for the organiser. {row.says}",
        f"disputed: {attempt.detail}" if attempt.detail else "disputed",
        "Nothing to do for the team. The organiser: runner show and the logs of the servers beside the software; "
        "then runner evaluate --force for another try, or let it stand.",
        row.blame,
        listed=True,
        attempt=attempt.number,
        verdict=attempt.verdict,
    )


def _cancelled(last: AttemptFacts | None) -> Outcome:
    row = TABLE["cancelled"]
    return Outcome(
        "cancelled",
        row.says,
        "stopped by a person",
        row.next,
        attempt=last.number if last else None,
        verdict=last.verdict if last else None,
    )
