"""Debates on a page: each a conversation, with what stands behind every answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from runner.views.show import text
from runner.views.show.debates import Argument, Debate, Debates, Turn
from runner.views.show.markup import Chip, chips, figures, h, link, table
from runner.views.show.texts import plural

MAX_LISTED = 1000  # in the overview


def sections(found: Debates, wanted: Collection[int] | None, room: int) -> Iterator[str]:
    """The debates that are ``wanted`` by number (None: all) as far as ``room`` characters reach, and what is missing."""
    counts = found.counts
    yield "<h2>Debates</h2>"
    if counts:
        line = f"{plural(counts['debates'], 'debate')} with {plural(counts['turns'], 'turn')}: {counts['answered']:,} answered, {counts['failed']:,} failed."
        yield f"<p>{h(line)}</p>"
    if counts and counts["failures"]:
        rows = [(name, f"{count:,}") for name, count in counts["failures"].items()]
        yield from table("Failed answers", ("why", "turns"), rows, number=(1,))
    if found.debates is None:
        yield f"<p>Claims and transcripts of a blinded dataset are not shown to {h(found.audience)}.</p>"
        return
    for note in found.notes:
        yield f"<p>Note: {h(note)}</p>"
    chosen = [one for one in found.debates if wanted is None or one.number in wanted]
    bodies: list[str] = []
    for one in chosen:
        body = "\n".join(_debate(one, found.criteria))
        if bodies and len(body) > room:
            break
        room -= len(body)
        bodies.append(body)
    yield from _overview(found, chosen, len(bodies))
    yield from bodies


def _overview(found: Debates, chosen: list[Debate], full: int) -> Iterator[str]:
    assert found.debates is not None
    if len(chosen) < len(found.debates):
        yield f"<p>Note: {len(chosen):,} of the {len(found.debates):,} debates were chosen for this page.</p>"
    if full < len(chosen):
        rest = f"{chosen[full].number}-{chosen[-1].number}"
        yield (
            f"<p>Note: this page is full. It has the first {full:,} of {len(chosen):,} debates; "
            f"<code>runner show RUN --debate {rest} --html FILE</code> writes the others.</p>"
        )
    yield '<nav aria-label="Debates"><ol>'
    for k, one in enumerate(chosen[:MAX_LISTED]):
        claim = " ".join(one.claim.split())
        short = claim if len(claim) <= 200 else claim[:199] + "…"
        words = link(f"d{one.number}", short or one.id) if k < full else h(short)
        state = f"{one.answered} of {len(one.turns)} answered"
        css = "" if one.answered == len(one.turns) else ' class="bad"'
        yield f'<li value="{one.number}"><bdi dir="auto">{words}</bdi> <span{css}>({state})</span></li>'
    yield "</ol></nav>"


def _debate(one: Debate, criteria: Mapping[str, str]) -> Iterator[str]:
    yield f'<section class="one" id="d{one.number}" aria-labelledby="h{one.number}">'
    yield f'<h3 id="h{one.number}">Debate {one.number}: {h(one.id)}</h3>'
    yield f'<p class="claim" dir="auto">{h(one.claim)}</p>'
    yield from chips(_criteria(one.scores, criteria), "Criteria, means over its turns")
    rest = {name: value for name, value in one.scores.items() if name not in criteria}
    if rest:
        yield f'<p class="about">{h(figures(rest))}</p>'
    for turn in one.turns:
        yield from _turn(turn, criteria)
    yield "</section>"


def _turn(turn: Turn, criteria: Mapping[str, str]) -> Iterator[str]:
    target = f", attacks answer {turn.target}" if turn.target else ""
    yield f"<h4>Turn {turn.number}</h4>"
    if turn.user:
        yield f'<div class="said user"><span class="who">Simulated user{target}</span><span dir="auto">{h(turn.user)}</span></div>'
    yield '<div class="reply">'
    if turn.failed:
        yield f'<div class="said failed"><span class="who bad">✗ No answer</span><span dir="auto">{h(text.failure_of(turn))}</span></div>'
    else:
        yield f'<div class="said system"><span class="who">System</span><span dir="auto">{h(turn.answer)}</span></div>'
    facts = text.facts_of(turn)
    if facts:
        yield f'<p class="about">{h(facts)}</p>'
    yield from chips(_criteria(turn.telling, criteria), "Criteria")
    yield from _behind(turn, {name: v for name, v in turn.telling.items() if name not in criteria})
    yield "</div>"


def _criteria(scores: Mapping[str, float], criteria: Mapping[str, str]) -> Iterator[Chip]:
    for name, words in criteria.items():
        value = scores.get(name)
        if value is not None:
            good = {0.0: False, 1.0: True}.get(value)
            yield Chip(words if good is not None else f"{words} {value:.4g}", good)


def _behind(turn: Turn, rest: Mapping[str, float]) -> Iterator[str]:
    """The arguments of an answer and its other figures, to be opened."""
    if not turn.arguments and not rest:
        return
    summary = "Figures"
    if turn.arguments:
        bad = sum(text.faulty(a) for a in turn.arguments)
        known = any(mark is not None for a in turn.arguments for mark, _ in text.marks(a))
        more = f", the first {len(turn.arguments)} are shown" if turn.listed > len(turn.arguments) else ""
        state = (
            f'<span class="bad">✗ {bad:,} not in order</span>'
            if bad
            else '<span class="good">✓ in order</span>'
            if known
            else "not compared"
        )
        summary = f"{plural(turn.listed, 'argument')}{more}: {state}"
    yield f"<details><summary>{summary}</summary>"
    if turn.arguments:
        yield "<ul>"
        for one in turn.arguments:
            yield from _argument(one)
        yield "</ul>"
    if rest:
        yield f'<p class="about">{h(figures(rest))}</p>'
    yield "</details>"


def _argument(one: Argument) -> Iterator[str]:
    yield f'<li><bdi dir="auto">{h(one.id or "(no id)")}</bdi>'
    yield from chips((Chip(words, good) for good, words in text.marks(one)), "How it stands")
    if one.text:
        yield f'<div class="words" dir="auto">{h(one.text)}</div>'
    yield "</li>"
