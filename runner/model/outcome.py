"""What became of a run: derived from its attempts' verdicts, their evaluations and what people did (design.md 7).

Nothing here is stored. The same facts always give the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from runner.model.verdict import TABLE, Blame, next_with_log
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
    """One attempt, its evaluations oldest first. ``seq`` is the event that committed it; ``first_cases`` says that it ended on
    the topics that are run first."""

    number: int
    verdict: str
    detail: Detail | None = None
    seq: int = 0
    evaluations: tuple[EvaluationFacts, ...] = ()
    first_cases: bool = False

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

    ``next`` is what to do for those who may not read the software's log, ``with_log`` for those who may (empty: the same), ``organiser`` for
    organisers (empty: as for those who may read it): teams are told of no command that only organisers can give.

    ``again``: the organiser wants it executed once more, which takes nothing from anybody; until then scores stay.

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
    own_failure: bool = (
        False  # it failed, or is invalid, by the team's own fault; of a withdrawn one: had done so
    )
    first_cases: bool = False  # and that on the first cases: it costs a part of a submission
    listed: bool = False
    todo: Todo = "nothing"
    attempt: int | None = None
    evaluation: int | None = None
    verdict: str | None = None
    fault: str = ""
    old: bool = False
    with_log: str = ""
    organiser: str = ""
    again: bool = False

    @property
    def failed_through_us(self) -> bool:
        """Whether it is held because its execution failed by what is not its software's doing. A ``disputed`` one may be, and so
        may be one whose evaluation failed: by what the software wrote."""
        return self.name == "held" and self.verdict in ("platform-error", "killed-outside")

    def next_for(self, *, organiser: bool, log: bool) -> str:
        """What to do next for an organiser, or for others, who may read the software's ``log`` or may not."""
        return (organiser and self.organiser) or (log and self.with_log) or self.next


def derive(
    attempts: Sequence[AttemptFacts],
    *,
    running: bool = False,
    cancelled_seq: int | None = None,
    restarted_seq: int | None = None,
    withdrawn: str | None = None,
    uncharged: bool = False,
) -> Outcome:
    """The outcome of a run from its attempts (oldest first) and the events about it.

    The latest attempt that says something about the software decides: failures of the platform, kills from
    outside and cancelled attempts never displace it. ``cancelled_seq`` and ``restarted_seq`` are the events by which
    somebody stopped the run, and wanted it executed again, last: that holds until the next attempt. ``withdrawn`` is the time the submission was withdrawn, ``uncharged``
    whether the organiser gave its place in the quota back then, though it had run.
    """
    outcome = _of_attempts(attempts, cancelled_seq)
    if restarted_seq is not None and restarted_seq > max(
        attempts[-1].seq if attempts else 0, cancelled_seq or 0
    ):
        outcome = _again(outcome)
    if withdrawn is not None:
        return replace(
            outcome,
            name="withdrawn",
            says="The submission was withdrawn.",
            reason=f"withdrawn on {withdrawn}",
            next="",
            with_log="",
            organiser="",
            blame="none",
            ranked=False,
            costs_quota=outcome.costs_quota and not uncharged,
            listed=False,
            todo="nothing",
            again=False,
        )
    if running:
        return Outcome(
            "running",
            "The run is being executed.",
            "being executed now",
            "Wait for it.",
            with_log="Wait for it; runner logs RUN --follow shows how far it is, and its page where the data are public.",
            attempt=outcome.attempt,
            evaluation=outcome.evaluation,
            verdict=outcome.verdict,
        )
    return outcome


def once(outcome: Outcome) -> Outcome:
    """The outcome as it is for somebody who ran a software once, where nothing is recorded: nobody tries it again by itself."""
    if outcome.name not in ("pending", "held"):
        return outcome
    return replace(
        outcome,
        says=_ONCE,
        reason="",
        next="Correct what failed here, then try again: nothing was recorded, and nothing is tried again by itself.",
        organiser="",
        todo="nothing",
    )


def _again(outcome: Outcome) -> Outcome:
    """An outcome that the organiser has replaced by another execution: what was scored, invalid or failed stays until then."""
    if outcome.name not in ("held", "cancelled"):
        return replace(outcome, todo="run", again=True)
    says = "The organiser has the run executed again."
    return Outcome(
        "pending",
        says,
        "executed again",
        _WAIT,
        todo="run",
        again=True,
        attempt=outcome.attempt,
        organiser=_NEXT,
    )


_ONCE = "It could not be executed or evaluated here."


def _of(name: Name, says: str, reason: str, next: str, last: AttemptFacts | None, **more: Any) -> Outcome:
    """An outcome that rests on the attempt ``last`` (None: there is none yet)."""
    number, verdict = (None, None) if last is None else (last.number, last.verdict)
    return Outcome(name, says, reason, next, attempt=number, verdict=verdict, **more)


UNSETTLED = (
    "platform-error",
    "killed-outside",
    "cancelled",
)  # verdicts that say nothing of the software: an attempt before counts
AGAIN_FAILED = "Evaluating it again failed: this is from before."
WAITING = "It was evaluated again with another result, which the organiser has not accepted yet."
_WAIT = "Nothing to do: its turn comes by itself."
_NEXT = "Nothing to do on a server; elsewhere the next runner evaluate does it."


def _of_attempts(attempts: Sequence[AttemptFacts], cancelled_seq: int | None) -> Outcome:
    settled = [a for a in attempts if a.verdict not in UNSETTLED]
    if settled:
        return _settled(settled[-1])
    last = attempts[-1] if attempts else None
    if cancelled_seq is not None and (last is None or cancelled_seq > last.seq):
        return _cancelled(last)
    if last is None:
        return _of(
            "pending",
            "The run has not been executed yet.",
            "not executed yet",
            _WAIT,
            None,
            todo="run",
            organiser=_NEXT,
        )
    if last.verdict == "cancelled":
        return _cancelled(last)
    if last.verdict == "killed-outside":
        # Whoever ends containers on the machine would end the next one too: it is not tried again by itself.
        return _held(last, f"killed-outside: {last.why}", says=TABLE["killed-outside"].says)
    broken = sum(a.verdict == "platform-error" for a in attempts)
    # What only the organiser can correct would end the same way until then.
    if broken >= TRIES or (last.detail is not None and last.detail.code):
        return _held(last, f"{broken} attempts failed on our side; the last: {last.why}")
    says, reason = TABLE["platform-error"].says, f"platform failure {broken} of {TRIES}: {last.why}"
    return _of("pending", says, reason, "Nothing to do: it is run again.", last, blame="platform", todo="run")


def _settled(attempt: AttemptFacts) -> Outcome:
    row = TABLE[attempt.verdict]
    if attempt.verdict == "disputed":
        return _disputed(attempt)
    if attempt.verdict != "ok":
        costs = row.blame == "participant"
        reason = f"{attempt.verdict}: {attempt.why}" if attempt.why else attempt.verdict
        reason = f"on the first cases: {reason}" if attempt.first_cases else reason
        more: dict[str, Any] = {
            "blame": row.blame,
            "costs_quota": costs,
            "own_failure": costs,
            "first_cases": costs and attempt.first_cases,
            "with_log": next_with_log(attempt.verdict, attempt.detail),
        }
        return _of("failed", row.says, reason, row.next, attempt, listed=True, **more)
    if not attempt.evaluations:
        says = "The run has been executed and waits for its evaluation."
        return _of("pending", says, "not evaluated yet", _WAIT, attempt, todo="evaluate", organiser=_NEXT)
    last = attempt.evaluations[-1]
    judged = [e for e in attempt.evaluations if e.status in ("valid", "invalid")]
    if judged:
        return _still(_judged(attempt, judged[-1]), last)
    fault, failures = last.fault or "platform", len(attempt.evaluations)
    if last.final or failures >= TRIES:
        return _held(attempt, f"evaluation failed: {last.message}", evaluation=last.number, fault=fault)
    return _of(
        "pending",
        "The evaluation failed on our side.",
        f"evaluation failure {failures} of {TRIES}: {last.message}",
        "Nothing to do: it is evaluated again.",
        attempt,
        blame="platform",
        todo="evaluate",
        evaluation=last.number,
        fault=fault,
    )


def _judged(attempt: AttemptFacts, evaluation: EvaluationFacts) -> Outcome:
    number = evaluation.number
    if evaluation.status == "valid":
        says = "The run is valid and was scored."
        return _of("scored", says, "", "", attempt, evaluation=number, ranked=True, costs_quota=True)
    return _of(
        "invalid",
        "The run file is not valid.",
        f"{evaluation.errors} error{'' if evaluation.errors == 1 else 's'} in the run file",
        "Correct what the findings name; runner check shows them on a file of yours.",
        attempt,
        evaluation=number,
        blame="participant",
        costs_quota=True,
        own_failure=True,
        listed=True,
    )


def _still(outcome: Outcome, last: EvaluationFacts) -> Outcome:
    """The outcome of the last evaluation that said something, when the ``last`` one of all failed."""
    if last.status in ("valid", "invalid"):
        return outcome
    failed = f"evaluating it again failed: {last.message}"
    return replace(
        outcome,
        says=f"{outcome.says} {AGAIN_FAILED}",
        reason=f"{outcome.reason}; {failed}" if outcome.reason else failed,
        next=outcome.next or "Nothing to do: the organiser looks at it.",
        organiser=outcome.next
        or "Nothing to do for the team. The organiser: correct what the message names, then runner reevaluate.",
        fault=last.fault or "platform",
        old=True,
    )


def _held(
    attempt: AttemptFacts, reason: str, *, says: str = "", evaluation: int | None = None, fault: str = ""
) -> Outcome:
    says = says or "it could not be executed or evaluated on our side."
    return _of(
        "held",
        f"The run waits for the organiser: {says[0].lower()}{says[1:]}",
        reason,
        "Nothing to do: the organiser looks at it. It costs nothing.",
        attempt,
        organiser="Nothing to do for the team. The organiser: runner show, then runner evaluate --force or runner reevaluate.",
        blame="platform",
        listed=True,
        evaluation=evaluation,
        fault=fault,
    )


def _disputed(attempt: AttemptFacts) -> Outcome:
    """Never tried again by itself: a software that breaks what it can reach must not get another try for it."""
    row = TABLE["disputed"]
    return _of(
        "held",
        f"The run waits for the organiser. {row.says}",
        f"disputed: {attempt.why}" if attempt.why else "disputed",
        row.next,
        attempt,
        organiser="Nothing to do for the team. The organiser: runner show and the logs of the servers beside the software; "
        "then runner evaluate --force for another try, or let it stand.",
        blame=row.blame,
        listed=True,
    )


def _cancelled(last: AttemptFacts | None) -> Outcome:
    row = TABLE["cancelled"]
    return _of("cancelled", row.says, "stopped by a person", row.next, last, organiser=row.organiser)
