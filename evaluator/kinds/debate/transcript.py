"""Debates as people read them: who said what, on which arguments it rests, and what went wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from evaluator.findings import plain
from evaluator.formats.dialogue import Held, TurnRecord
from evaluator.measures.debate import Facts
from evaluator.measures.examination import Examined, Rules
from schemas.debates import Turn

WIDTH = 110
MAX_SAID = 4000  # characters of one utterance that are printed
MAX_ARGUMENTS = 5  # of one answer whose text is printed


def lines(
    held: Sequence[Held], examined: Examined, records: Mapping[tuple[int, int], TurnRecord], rules: Rules
) -> Iterator[str]:
    """The lines of all debates, nothing in them that a terminal would obey, and of bounded length."""
    for number, one in enumerate(held):
        claim = plain(one.claim.text, 300).replace('\\"', '"') or "(no claim)"
        yield f"Debate {number + 1} of {len(held)}, {plain(one.claim.topic, 60)}: {claim}"
        if one.read is None or not one.read.debate.turns:
            yield "  (there is none)"
        else:
            turns = one.read.debate.turns[: rules.turns]
            for n, turn in enumerate(turns, 1):
                record = records.get((one.read.place, n))
                yield from _turn(n, turn, examined.facts[number][n - 1], record, rules)
        yield ""


def _turn(n: int, turn: Turn, facts: Facts, record: TurnRecord | None, rules: Rules) -> Iterator[str]:
    target = f" (attacks answer {record.target})" if record is not None and record.target else ""
    yield from _said(f"  {n} user{target}: ", turn.user)
    if turn.failed:
        why = record.detail or record.failure if record is not None else ""
        yield from _said("    software: ", f"(no answer{': ' + why if why else ''})")
        return
    yield from _said("    software: ", turn.answer)
    notes = [f"{facts.words:,} words" + (" (TOO MANY)" if facts.words > rules.word_limit else "")]
    if record is not None and record.system_ms is not None:
        notes.append(f"{record.system_ms:,.0f} ms")
    notes.append(f"{turn.cited:,} argument{'' if turn.cited == 1 else 's'}")
    yield f"      [{', '.join(notes)}]"
    for argument in turn.arguments[:MAX_ARGUMENTS]:
        yield from _said(f"      {plain(argument.id, 60) or '(no id)'}: ", argument.text or "(no text)")
    if turn.cited > MAX_ARGUMENTS:
        yield f"      ... and {turn.cited - MAX_ARGUMENTS:,} more"


def _said(head: str, text: str) -> Iterator[str]:
    text = plain(" ".join(text[: MAX_SAID * 2].split()), MAX_SAID).replace('\\"', '"')
    yield from textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * 8) or [head.rstrip()]
