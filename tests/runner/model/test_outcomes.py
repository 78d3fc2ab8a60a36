"""Outcomes: what became of a run, from verdicts, evaluations and events (design.md 7)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from runner.model.outcome import TRIES, AttemptFacts, EvaluationFacts, derive
from runner.model.verdict import TABLE
from schemas.details import Detail

VALID = EvaluationFacts(1, "valid", final=True)
INVALID = EvaluationFacts(1, "invalid", final=True, errors=3)
BROKEN = EvaluationFacts(1, "error", message="exit code 7")


def attempt(
    verdict: str = "ok", *evaluations: EvaluationFacts, number: int = 1, seq: int = 10
) -> AttemptFacts:
    return AttemptFacts(number, verdict, Detail("text", text=f"detail of {verdict}"), seq, evaluations)


def summary(*attempts: AttemptFacts, **events: object) -> tuple[str, bool, bool, bool, str, str]:
    o = derive(attempts, **events)  # type: ignore[arg-type]
    return o.name, o.ranked, o.costs_quota, o.listed, o.blame, o.todo


HELD = ("held", False, False, True, "platform", "nothing")
RETRIED = ("pending", False, False, False, "platform", "evaluate")
PLATFORM_ERRORS = [attempt("platform-error", number=n) for n in range(1, TRIES + 2)]
CANCELLED = ("cancelled", False, False, False, "none", "nothing")
RUNNING = ("running", False, False, False, "none", "nothing")


@pytest.mark.parametrize(
    ("attempts", "events", "expected"),
    [
        ([], {}, ("pending", False, False, False, "none", "run")),
        ([attempt("ok")], {}, ("pending", False, False, False, "none", "evaluate")),
        # Platform errors are tried again, then held, and cost nothing.
        *((PLATFORM_ERRORS[:n], {}, ("pending", False, False, False, "platform", "run")) for n in range(1, TRIES)),
        *((PLATFORM_ERRORS[:n], {}, HELD) for n in (TRIES, TRIES + 1)),
        *(([attempt("ok", *[BROKEN] * n)], {}, RETRIED) for n in (1, 2)),
        ([attempt("ok", *[BROKEN] * 3)], {}, HELD),
        ([attempt("ok", EvaluationFacts(1, "error", final=True))], {}, HELD),
        # A cancelled run stays cancelled until it is started again.
        ([], {"cancelled_seq": 5}, CANCELLED),
        ([attempt("cancelled")], {}, CANCELLED),
        ([attempt("platform-error", seq=10)], {"cancelled_seq": 11}, CANCELLED),
        ([attempt("platform-error", seq=12)], {"cancelled_seq": 11}, ("pending", False, False, False, "platform", "run")),
        ([attempt("ok", VALID)], {"cancelled_seq": 11}, ("scored", True, True, False, "none", "nothing")),
        ([], {"running": True}, RUNNING),
        ([attempt("platform-error")], {"running": True}, RUNNING),
    ],
)  # fmt: skip
def test_outcomes_of_attempts_and_events(
    attempts: list[AttemptFacts], events: dict[str, Any], expected: tuple[str, bool, bool, bool, str, str]
) -> None:
    assert summary(*attempts, **events) == expected


def test_valid_is_scored_and_invalid_is_listed() -> None:
    assert summary(attempt("ok", VALID)) == ("scored", True, True, False, "none", "nothing")
    assert summary(attempt("ok", INVALID)) == ("invalid", False, True, True, "participant", "nothing")
    invalid = derive([attempt("ok", INVALID)])
    # Everybody may read what it says, so a count belongs into the reason.
    assert "3 errors" in invalid.reason and not any(c.isdigit() for c in invalid.says)


NOT_THEIRS = {"ok", "platform-error", "killed-outside", "cancelled", "disputed"}


@pytest.mark.parametrize("verdict", sorted(set(TABLE) - NOT_THEIRS))
def test_the_participants_verdicts_fail_cost_and_are_listed(verdict: str) -> None:
    outcome = derive([attempt(verdict)])
    assert (outcome.name, outcome.blame, outcome.verdict) == ("failed", "participant", verdict)
    assert outcome.costs_quota and outcome.listed and not outcome.ranked
    assert outcome.says == TABLE[verdict].says
    assert outcome.next == TABLE[verdict].next


OF_ORGANISERS = re.compile(r"runner (evaluate|reevaluate|show|review|work)|--force")


@pytest.mark.parametrize(
    "attempts",
    [
        [],
        [attempt("ok")],
        [attempt("ok", BROKEN)],
        [attempt("ok", BROKEN, BROKEN, BROKEN)],
        [attempt("ok", VALID, BROKEN)],
        [attempt("ok", INVALID, BROKEN)],
        *([attempt(verdict)] for verdict in TABLE),
        [attempt("platform-error", number=n) for n in range(1, TRIES + 1)],
    ],
)
def test_teams_are_told_of_no_command_that_only_organisers_can_give(attempts: list[AttemptFacts]) -> None:
    changes = ({"running": True}, {"cancelled_seq": 99}, {"restarted_seq": 99}, {"withdrawn": "2026-05-01"})
    for more in ({}, *changes):
        outcome = derive(attempts, **more)  # type: ignore[arg-type]
        for log in (False, True):
            assert not OF_ORGANISERS.search(outcome.next_for(organiser=False, log=log)), outcome
        assert outcome.next_for(organiser=True, log=True) or outcome.name in ("scored", "withdrawn")
    for row in TABLE.values():
        assert not OF_ORGANISERS.search(row.next + row.with_log)


def test_no_log_is_named_for_software_that_did_not_start() -> None:
    never = replace(attempt("run-error"), detail=Detail("not-started", error="No command specified"))
    for one, lines in ((attempt("run-error"), True), (never, False)):
        said = derive([one]).next_for(organiser=False, log=True)
        assert ("log lines" in said) is lines and "runner try" in said


def test_what_failed_by_the_teams_own_fault_is_known_also_of_what_it_withdrew() -> None:
    """A quota may forgive such failures (`failures`), and nothing else."""
    own = {
        derive(attempts, withdrawn=when).own_failure
        for attempts in ([attempt("run-error")], [attempt("ok", INVALID)], [attempt("time-limit")])
        for when in (None, "2026-05-01")
    }
    assert own == {True}
    ours: list[list[AttemptFacts]] = [[], [attempt("ok", VALID)], [attempt("ok", BROKEN)]]
    ours += [[attempt(verdict)] for verdict in sorted(NOT_THEIRS)]
    assert not any(derive(attempts).own_failure for attempts in ours)
    again = [attempt("run-error"), attempt("ok", VALID, number=2)]
    assert not derive(again).own_failure and not derive(again, running=True).own_failure


def test_platform_failures_are_told_from_disputes_and_evaluator_errors() -> None:
    ours = [[attempt("platform-error", number=n) for n in range(1, 4)], [attempt("killed-outside")]]
    assert all(derive(one).name == "held" and derive(one).failed_through_us for one in ours)
    final = EvaluationFacts(1, "error", final=True)
    others = [[attempt("disputed")], [attempt("ok", final)]]
    assert all(derive(one).name == "held" and not derive(one).failed_through_us for one in others)
    verdicts = ("ok", "time-limit", "platform-error")
    assert not any(derive([attempt(verdict)]).failed_through_us for verdict in verdicts)


def test_a_disputed_run_is_held_at_once_and_never_tried_again_by_itself() -> None:
    held = ("held", False, False, True, "none", "nothing")
    assert summary(attempt("disputed")) == held
    outcome = derive([attempt("disputed")])
    assert outcome.verdict == "disputed" and outcome.reason.startswith("disputed: ")
    assert outcome.says.endswith(TABLE["disputed"].says) and "--force" in outcome.organiser
    # Neither a failure of ours nor a cancelled attempt after it opens it again; the organiser's new try does.
    for later in ("platform-error", "cancelled"):
        assert summary(attempt("disputed"), attempt(later, number=2)) == held
    assert summary(attempt("disputed"), attempt("ok", VALID, number=2))[0] == "scored"
    assert summary(attempt("ok", VALID), attempt("disputed", number=2)) == held


def test_a_kill_from_outside_is_held_costs_nothing_and_never_displaces_what_was_known() -> None:
    held = ("held", False, False, True, "platform", "nothing")
    killed = attempt("killed-outside", number=2)
    assert summary(attempt("killed-outside")) == held
    outcome = derive([attempt("killed-outside")])
    assert outcome.reason.startswith("killed-outside: ") and outcome.says
    assert summary(attempt("ok", VALID), killed)[0] == "scored"
    assert summary(attempt("run-error"), killed)[:3] == ("failed", False, True)
    assert summary(attempt("disputed"), killed)[0] == "held"
    # The organiser's own new try decides anew, whatever becomes of it.
    assert summary(attempt("killed-outside"), attempt("ok", VALID, number=2))[0] == "scored"
    assert summary(attempt("killed-outside"), attempt("platform-error", number=2))[0] == "pending"


def test_a_failure_of_ours_never_displaces_what_was_settled() -> None:
    good = attempt("ok", VALID)
    for later in ("platform-error", "cancelled"):
        outcome = derive([good, attempt(later, number=2)])
        assert (outcome.name, outcome.attempt) == ("scored", 1)
    outcome = derive([attempt("ok", VALID, EvaluationFacts(2, "error", final=True))])
    assert (outcome.name, outcome.evaluation) == ("scored", 1)


def test_the_latest_settled_attempt_and_evaluation_decide() -> None:
    outcome = derive([attempt("ok", VALID), attempt("time-limit", number=2)])
    assert (outcome.name, outcome.attempt) == ("failed", 2)
    outcome = derive([attempt("time-limit"), attempt("ok", INVALID, EvaluationFacts(2, "valid"), number=2)])
    assert (outcome.name, outcome.attempt, outcome.evaluation) == ("scored", 2, 2)


def test_a_withdrawn_run_is_not_shown_and_costs_its_score_unless_uncharged() -> None:
    when = "2026-01-01T00:00:00Z"
    assert summary(withdrawn=when) == ("withdrawn", False, False, False, "none", "nothing")
    assert summary(attempt("platform-error"), withdrawn=when)[2] is False
    scored = ("withdrawn", False, True, False, "none", "nothing")
    assert summary(attempt("ok", VALID), withdrawn=when) == scored
    for facts in ((attempt("ok", VALID),), (attempt("run-error"),), ()):
        outcome = derive(facts, withdrawn=when, uncharged=True)
        assert (outcome.name, outcome.costs_quota, outcome.ranked) == ("withdrawn", False, False)
    assert derive((attempt("ok", VALID),), uncharged=True).costs_quota  # of one that was not withdrawn


def test_says_is_a_fixed_sentence_without_the_participants_words() -> None:
    evil = AttemptFacts(1, "no-output", Detail("text", text="EVIL is not usable: a link"), 1)
    assert "EVIL" not in derive([evil]).says
    assert "EVIL" in derive([evil]).reason
