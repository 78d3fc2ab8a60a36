"""Debates and reports as lines for a terminal. Every line of a participant stands behind a mark of ours."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Collection, Iterator, Mapping

from runner.views.show.debates import Argument, Debate, Debates, Turn
from runner.views.show.reports import Nugget, Report, Reports, Sentence
from runner.views.show.texts import counted

LISTED = 200  # lines of an overview
ARGUMENT_TEXT = 240  # characters of an argument that a terminal gets; --json and --html have all
SIGNS = {"reward": "+", "penalty": "-", "none": "·"}


def width() -> int:
    """Columns of the terminal, 100 when there is none."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def debates(found: Debates, wanted: Collection[int]) -> Iterator[str]:
    """A line for each debate, then those that are ``wanted`` by number in full."""
    counts = found.counts
    if counts:
        yield (
            f"\ndebates: {counts['debates']:,} with {counts['turns']:,} turns, {counts['answered']:,} answered"
            + (f", {counts['failed']:,} failed" if counts["failed"] else "")
            + (f" ({counted(counts['failures'].items())})" if counts["failures"] else "")
        )
    if found.debates is None:
        yield f"not shown to {found.audience}: claims and transcripts of a blinded dataset"
        return
    for note in found.notes:
        yield f"note: {note}"
    if len(wanted) < len(found.debates):
        for one in found.debates[:LISTED]:
            yield _cut(
                f"  {one.number:>3}  {one.answered}/{len(one.turns)} answered  {_first(one.claim)}", width()
            )
        yield from _more(len(found.debates))
    for one in found.debates:
        if one.number in wanted:
            yield from debate(one, len(found.debates))
    if len(wanted) < len(found.debates):
        yield "\n--debate N shows another one (also 2-5, 1,4 or all); --html FILE writes a page of all"


def _more(count: int) -> Iterator[str]:
    if count > LISTED:
        yield f"  … and {count - LISTED:,} more, which --json lists"


def debate(one: Debate, of: int) -> Iterator[str]:
    """One debate in full."""
    yield f"\ndebate {one.number} of {of}: {one.id}"
    yield from _quoted(one.claim, "    claim   | ")
    if one.scores:
        yield from _wrapped(f"scores: {_figures(one.scores)}", "    ")
    for turn in one.turns:
        yield from _turn(turn)


def _turn(turn: Turn) -> Iterator[str]:
    target = f", the user attacks answer {turn.target}" if turn.target else ""
    yield f"  turn {turn.number}{target}"
    if turn.user:
        yield from _quoted(turn.user, "    user    | ")
    if turn.failed:
        yield from _wrapped(failure_of(turn), "    FAILED    ")
    else:
        yield from _quoted(turn.answer, "    system  | ")
    facts = facts_of(turn)
    if facts:
        yield f"              {facts}"
    if turn.listed:
        more = f", the first {len(turn.arguments)}" if turn.listed > len(turn.arguments) else ""
        yield f"    arguments: {turn.listed:,}{more}"
    for one in turn.arguments:
        yield _cut(f"      {one.id or '(no id)'}  [{', '.join(words for _, words in marks(one))}]", width())
        yield from _quoted(_cut(_first(one.text or ""), ARGUMENT_TEXT), "        | ")
    if turn.telling:
        yield from _wrapped(f"scores: {_figures(turn.telling)}", "    ")


def failure_of(turn: Turn) -> str:
    """Why a turn has no answer."""
    return ": ".join(part for part in (turn.failure, turn.detail) if part) or "no answer"


def facts_of(turn: Turn) -> str:
    """Words and times of a turn, short."""
    facts = [] if turn.failed else [f"{turn.words:,} word{'' if turn.words == 1 else 's'}"]
    facts += [f"{turn.system_ms:,.0f} ms"] if turn.system_ms is not None else []
    facts += [f"user {turn.user_ms:,.0f} ms"] if turn.user_ms is not None else []
    return ", ".join(facts)


def marks(one: Argument) -> list[tuple[bool | None, str]]:
    """How an argument stands: whether that is good, and in words."""
    found: list[tuple[bool | None, str]] = []
    if one.found is not None:
        found.append((one.found, "in the index" if one.found else "not in the index"))
    if one.altered is not None:
        found.append((not one.altered, "text altered" if one.altered else "text unchanged"))
    if one.served is not None:
        found.append((one.served, "served to this run" if one.served else "never served to this run"))
    return found or [(None, "not compared")]


def faulty(one: Argument) -> bool:
    """Whether something is wrong with an argument."""
    return any(good is False for good, _ in marks(one))


def reports(found: Reports, wanted: Collection[int]) -> Iterator[str]:
    """A line for each report, then those that are ``wanted`` by number in full."""
    if found.reports is None:
        yield f"\nnot shown to {found.audience}: sentences and nuggets of a blinded dataset"
        return
    yield f"\nreports: {len(found.reports):,}"
    for note in found.notes:
        yield f"note: {note}"
    if len(wanted) < len(found.reports):
        for one in found.reports[:LISTED]:
            yield _cut(f"  {one.topic}: {summary_of(one)}", width())
        yield from _more(len(found.reports))
    for one in found.reports:
        if one.number in wanted:
            yield from report(one)
    if len(wanted) < len(found.reports):
        yield "\n--topic ID shows another one (or all); --html FILE writes a page of all"


def summary_of(one: Report) -> str:
    """One report in figures."""
    if one.truncated:
        return "too much for the evaluation's details, which leave it out"
    if not one.answered:
        return "no report"
    cut = f", {one.cut} more beyond the limit" if one.cut else ""
    if one.left_out:
        cut += f", {one.left_out} more judged but not kept in the details"
    return (
        f"{len(one.sentences)} sentences{cut}, {one.correct} of {len(one.nuggets)} nuggets, "
        f"{one.rewards} rewards, {one.penalties} penalties"
    )


def report(one: Report) -> Iterator[str]:
    """One report in full."""
    yield f"\ntopic {one.topic}: {summary_of(one)}"
    if one.title or one.request:
        yield from _quoted(": ".join(filter(None, (one.title, one.request))), "    request | ")
    if one.measures:
        yield from _wrapped(f"measures: {_figures(one.measures)}", "    ")
    for sentence in one.sentences:
        yield from _sentence(sentence)
    if one.nuggets:
        yield "  nuggets:"
    for nugget in one.nuggets:
        yield from _wrapped(nugget_of(nugget), f"  [{'x' if nugget.correct else ' '}] ")


def _sentence(one: Sentence) -> Iterator[str]:
    yield from _quoted(one.text, f"  {one.number:>3} | ")
    if one.citations:
        yield from _wrapped(f"cites {', '.join(one.citations)}", "        ")
    for judgment in one.judgments:
        of = f" of {judgment.doc_id}" if judgment.doc_id else ""
        yield from _wrapped(
            f"judged {judgment.type.lower().replace('_', ' ')}{of}: {judgment.said}", "        "
        )
    for effect in one.effects:
        yield from _wrapped(effect.text or effect.code, f"      {SIGNS[effect.kind]} ")


def nugget_of(one: Nugget) -> str:
    """One nugget in words."""
    given = sum(g for _, g in one.answers)
    kind = ", ".join(part for part in (one.aggregator, one.importance) if part)
    at = f", in sentence {', '.join(map(str, one.sentences))}" if one.sentences else ""
    return f'"{one.question}"{f" ({kind})" if kind else ""}: {given} of {len(one.answers)} answers{at}'


def _figures(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in sorted(scores.items()))


def _first(text: str) -> str:
    return " ".join(text.split("\n"))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _quoted(text: str, head: str) -> Iterator[str]:
    """Words of somebody else: each line marked, so that none can pass for ours."""
    rest = " " * (len(head) - 2) + "| "
    for line in text.split("\n"):
        for part in textwrap.wrap(line, width() - len(head)) or [""]:
            yield head + part
            head = rest


def _wrapped(text: str, head: str) -> Iterator[str]:
    yield from textwrap.wrap(
        _first(text), width(), initial_indent=head, subsequent_indent=" " * len(head)
    ) or [head]
