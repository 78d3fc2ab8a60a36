"""Looking at the debates of a run, turn by turn: what is wrong with them, what is known, and what a judge is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from evaluator.findings import Log, plain, show
from evaluator.formats.dialogue import FAILURES, Held, Served, TurnRecord, report_faults, turn_key
from evaluator.measures.debate import FAILED, Cited, Facts, content_words, facts, same_text
from schemas.debates import Turn
from schemas.words import LONGEST, longest_word

WORD_LIMIT = 60
MAX_ARGUMENTS = 50


class Rules(NamedTuple):
    """What debates are compared with.

    ``turns`` is how many each has. ``texts`` are the index's, by id, at least of the arguments that the run cites; None
    if there is no index. ``served`` are the ids that it returned to this run; None if nobody noted that.
    """

    turns: int
    word_limit: int = WORD_LIMIT
    max_arguments: int = MAX_ARGUMENTS
    texts: Mapping[str, str] | None = None
    served: Served | None = None


class Examined(NamedTuple):
    """The facts of every turn by claim, and the answers for those who judge. Turns that are a defect are failed."""

    facts: list[list[Facts]]
    answers: list[Answer]

    @property
    def all(self) -> list[Facts]:
        """The facts of all turns."""
        return [fact for one in self.facts for fact in one]


def turns_of(held: Sequence[Held]) -> int:
    """How many turns the debates of a run have, by what they say themselves: the most of any, at least 1."""
    return (
        max((max(h.read.debate.planned or 0, len(h.read.debate.turns)) for h in held if h.read), default=0)
        or 1
    )


def cited_ids(held: Sequence[Held]) -> set[str]:
    """The ids of all arguments that the debates list."""
    return {
        argument.id
        for one in held
        if one.read
        for turn in one.read.debate.turns
        for argument in turn.arguments
        if argument.id
    }


def examine(
    held: Sequence[Held], records: Mapping[tuple[int, int], TurnRecord], rules: Rules, log: Log
) -> Examined:
    """Examine every turn; what is wrong goes to ``log``. A defect sets its turn (or its debate) to failed."""
    look = _Look(records, rules, log)
    if rules.texts is not None and rules.served is not None and rules.served.cut:
        log.add("F220", None, "the record of what the index returned ends too early")
    found = [look.debate(number, one) for number, one in enumerate(held)]
    for number, one in enumerate(held):
        whole = one.claim.topic.encode() in log.defects
        for turn in range(1, rules.turns + 1):
            if whole or turn_key(one.claim.topic, turn) in log.defects:
                found[number][turn - 1] = FAILED
    kept = [a for a in look.answers if found[a.place[0]][a.place[1] - 1].answered]
    return Examined(found, kept)


class _Look:
    def __init__(self, records: Mapping[tuple[int, int], TurnRecord], rules: Rules, log: Log) -> None:
        self.records, self.rules, self.log = records, rules, log
        self.answers: list[Answer] = []

    def debate(self, number: int, held: Held) -> list[Facts]:
        read, topic, wanted = held.read, held.claim.topic, self.rules.turns
        if read is None:
            return [FAILED] * wanted
        report_faults(read, topic, self.log)
        turns = read.debate.turns
        if not turns:
            self.log.add("F201", read.line, f"the debate about {show(topic)} failed", topic.encode())
            return [FAILED] * wanted
        if len(turns) < wanted:
            message = f"the debate about {show(topic)} has {len(turns)} of {wanted} turns"
            self.log.add("F217", read.line, message, turn_key(topic, len(turns) + 1))
        elif len(turns) > wanted:
            message = f"the debate about {show(topic)} has {len(turns)} turns, {wanted} count"
            self.log.add("F218", read.line, message, topic.encode())
        found: list[Facts] = []
        before: list[tuple[str, str]] = []
        earlier: list[frozenset[str]] = []
        for n, turn in enumerate(turns[:wanted], 1):
            record = self.records.get((read.place, n))
            self._compare(turn, record, read.line, topic, n)
            if turn.failed:
                self._failed(record, read.line, topic, n)
                found.append(FAILED)
            else:
                texts, cited = self._arguments(turn, read.line, topic, n)
                said = record.system_ms if record is not None else turn.milliseconds
                found.append(facts(turn.answer, turn.cited, cited, texts, said, earlier))
                self.answers.append(Answer((number, n), tuple(before), turn.user, turn.answer, tuple(texts)))
                earlier.append(content_words(turn.answer))
                self._words(turn, found[-1].words, read.line, topic, n)
            before.append((turn.user, turn.answer))
        return found + [FAILED] * (wanted - len(found))

    def _compare(self, turn: Turn, record: TurnRecord | None, line: int, topic: str, n: int) -> None:
        if record is not None and record.answered == turn.failed and self.log.once("F221"):
            self._note("F221", line, topic, n, " is answered in one file and failed in the other")

    def _words(self, turn: Turn, words: int, line: int, topic: str, n: int) -> None:
        if words > self.rules.word_limit:
            self._note("F207", line, topic, n, f" has {words:,} words, {self.rules.word_limit} are allowed")
        if (longest := longest_word(turn.answer)) > LONGEST:
            self._note("F225", line, topic, n, f" has a word of {longest:,} characters")

    def _failed(self, record: TurnRecord | None, line: int, topic: str, n: int) -> None:
        why = ""
        if record is not None and record.failure:
            words = FAILURES.get(record.failure, plain(record.failure, 40))
            why = f": {plain(record.detail, 150) if record.detail else words}"
        self._note("F202", line, topic, n, f" has no answer{why}")

    def _note(self, code: str, line: int, topic: str, n: int, what: str) -> None:
        """Add a finding about turn ``n`` to the log."""
        self.log.add(code, line, f"turn {n} of {show(topic)}{what}", turn_key(topic, n))

    def _arguments(self, turn: Turn, line: int, topic: str, n: int) -> tuple[list[str], Cited | None]:
        """The texts that the answer may rest on (the index's, where there is one), and how its arguments stand."""
        rules, note = self.rules, partial(self._note, line=line, topic=topic, n=n)
        if turn.cited > rules.max_arguments:
            note("F212", what=f" lists {turn.cited:,} arguments")
        seen: set[str] = set()
        texts: list[str] = []
        ok = 0
        for at, argument in enumerate(turn.arguments):
            again = argument.id in seen
            if again:
                note("F222", what=f" lists {show(argument.id)} again")
            known = None if rules.texts is None else rules.texts.get(argument.id)
            text = argument.text if rules.texts is None else known
            # An answer that lists the whole index rests on none of it.
            if text is not None and not again and len(texts) < rules.max_arguments:
                texts.append(text)
            if argument.id:
                seen.add(argument.id)
            if rules.texts is None or not argument.id:
                continue
            if known is None:
                note("F208", what=f": there is no argument {show(argument.id)}")
                continue
            same = argument.text is not None and same_text(argument.text, known)
            if argument.text is not None and not same:
                note("F209", what=f": {show(argument.id)} has another text")
            served = rules.served is None or argument.id in rules.served.ids
            if not served:
                note("F210", what=f": {show(argument.id)} was not retrieved")
            # Good arguments must not make up for a bad one by being repeated, or by the hundred.
            ok += same and served and not again and at < rules.max_arguments
        return texts, None if rules.texts is None else Cited(turn.cited, ok)


Place = tuple[int, int]  # a claim's number from 0, a turn's from 1


class Answer(NamedTuple):
    """An answer to be judged, with the dialogue ``before`` it as (user, system), and the texts of its arguments."""

    place: Place
    before: tuple[tuple[str, str], ...]
    user: str
    text: str
    arguments: tuple[str, ...]
