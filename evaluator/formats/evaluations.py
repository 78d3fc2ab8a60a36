"""Judgments of debates (``evaluations.jsonl``): what a judge says of every answer, for four criteria.

One line per debate, in the order of the debates: ``{"userTurnsEvaluations": [{"Quantity": {"score": 0.7}, …}, …]}``.
Whatever else GenIRSim writes (``configuration``, ``simulation``, ``overallEvaluations``, times, explanations) may be there
and is not needed. The file is streamed, and every problem is reported with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain, show
from evaluator.formats.dialogue import FAILURES, records_of
from evaluator.formats.files import Source, organisers
from evaluator.formats.lines import BROKEN, numbered, parse, parse_or_report, reporting
from evaluator.formats.mistaken import no_json_lines
from schemas import debates
from schemas.debates import CRITERIA
from schemas.jsonl import Twice, kind_of

MAX_LINE = 16 << 20  # bytes of one debate's judgments with everything that was said in it
MAX_DEBATE = 64 << 20  # the organiser's
MAX_RECORDS = 1_000_000
Reading = Literal["strict", "official"]
READINGS: tuple[Reading, ...] = ("strict", "official")

Words = tuple[tuple[str, str], ...]  # what user and system said, turn by turn


class Shape(NamedTuple):
    """The debates that were to be judged: how many turns each has and, where they are known, the words of each.

    Labels may name them by ``digest``, that of the whole transcript, or one by one by ``singles`` (in their order).
    """

    turns: Sequence[int]
    words: Sequence[Words] | None = None
    digest: str = ""
    singles: Sequence[str] = ()


class Judgments(NamedTuple):
    """``scores[debate][turn][criterion]``: a number; None where there is none; NaN for one that is malformed.

    Criteria are in the order of :data:`CRITERIA`. ``part`` are those in which the judge took part: with a judgment of
    whatever form, or an attempt at one.
    """

    scores: list[list[list[float | None]]]
    part: frozenset[str]

    def of(self, debate: int, criterion: str) -> list[float | None]:
        """The scores of one debate's turns for one criterion."""
        place = CRITERIA.index(criterion)
        return [turn[place] for turn in self.scores[debate]]


def read_shape(path: Path, name: str, broken: Callable[[EvaluatorError], None] | None = None) -> Shape:
    """Read the debates that were judged (any form of :mod:`schemas.debates`). Raises :class:`EvaluatorError`.

    ``broken`` is told what is wrong with a line, if there is one; else that is raised.
    """
    log = Log(name)
    found: list[debates.Debate] = []
    with organisers(f"the organiser's file {plain(name, 200)}", ""), Source(path, follow=True) as source:
        for number, line in numbered(source.read, log, MAX_DEBATE, too_long="F241"):
            try:
                debate, faults = debates.parse(parse(line))
                what = faults[0].what if debate is None else ""
            except ValueError:
                debate, what = None, "the line is not JSON"
            if debate is not None:
                found.append(debate)
                continue
            error = _organiser(name, number, what)
            if broken is None:
                raise error
            broken(error)
    if log.invalid or not found:
        raise _organiser(name, None, "it holds a line that is too long" if log.invalid else "it is empty")
    words = [_words(debate) for debate in found]
    digest = debates.transcript_digest
    return Shape([len(turns) for turns in words], words, digest(found), [digest([one]) for one in found])


def _words(debate: debates.Debate) -> Words:
    return tuple((turn.user, turn.answer) for turn in debate.turns)


def _organiser(name: str, line: int | None, what: str) -> EvaluatorError:
    place = plain(name, 200) if line is None else f"{plain(name, 200)}:{line}"
    return EvaluatorError(f"the organiser's file {plain(name, 200)} is wrong", f"{place}: {what}")


def read_judgments(
    path: str | Path,
    shape: Shape,
    log: Log,
    *,
    reading: Reading = "strict",
    failures: Mapping[tuple[int, int, str], str] | None = None,
    max_bytes: int | None = None,
) -> Judgments:
    """Return what the judge said, in the shape of the debates; report everything wrong to ``log``.

    ``reading`` strict demands numbers from 0 to 1; official takes what the task's own evaluator takes: every number,
    numbers in quotes, true and false; NaN is a no. ``failures`` are judgments that were asked for and failed, from
    :func:`read_failures`. Never raises for anything a participant can write.
    """
    reader = _Reader(shape, log, reading, failures or {})
    with reporting(log, max_bytes):
        if said := no_json_lines(path):
            log.add("F101", 1, said)
        if not (said and log.invalid):
            with Source(path, max_bytes) as source:
                for number, line in numbered(source.read, log, MAX_LINE, too_long="F241", gaps=True):
                    reader.line(line, number)
            reader.end()
    log.answered = reader.seen
    return Judgments(reader.scores, frozenset(reader.part))


class _Reader:
    """Takes one line after the other and fills in the scores."""

    def __init__(
        self, shape: Shape, log: Log, reading: Reading, failures: Mapping[tuple[int, int, str], str]
    ) -> None:
        self.shape, self.log, self.reading, self.failures = shape, log, reading, failures
        self.scores: list[list[list[float | None]]]
        self.scores = [[[None] * len(CRITERIA) for _ in range(turns)] for turns in shape.turns]
        self.lines: list[int | None] = [None] * len(shape.turns)  # where each debate's judgments are
        self.explained: set[tuple[int, int | None]] = set()  # debates and turns whose lack was said already
        self.part = {criterion for _, _, criterion in failures}
        self.seen = 0

    def line(self, line: bytes, number: int) -> None:
        place = self.seen
        self.seen += 1
        if place >= len(self.shape.turns):
            return  # said once, in the end
        self.lines[place] = number
        if not line or not self._read(line, place, number):
            self.explained.add((place, None))

    def _read(self, line: bytes, place: int, number: int) -> bool:
        """Take in one debate's judgments; False, having said why, if there are none to be had."""
        data = parse_or_report(line, number, self.log)
        if data is BROKEN:
            return False
        if not isinstance(data, dict):
            self.log.add("F231", number, f"there is {kind_of(data)}")
            return False
        if not self._same(data.get("simulation"), place, number):
            return False
        turns = data.get("userTurnsEvaluations")
        expected = self.shape.turns[place]
        if not expected and not turns:
            return True  # a debate that failed: there was nothing to judge
        if not isinstance(turns, list):
            there = f"is {kind_of(turns)}" if "userTurnsEvaluations" in data else "is not there"
            self.log.add("F232", number, f"debate {place + 1}: userTurnsEvaluations {there}", _topic(place))
            return False
        if len(turns) != expected:
            self.log.add(
                "F233", number, f"debate {place + 1} has {expected} turns, and judgments for {len(turns):,}"
            )
            # They are not scored; where nothing is, what else is wrong with them is said, too.
            for turn, judged in enumerate(turns[:expected] if self.log.severity["F233"] == "error" else ()):
                self._turn(judged, place, turn, number)
            return False
        for turn, judged in enumerate(turns):
            self._turn(judged, place, turn, number)
        return True

    def _same(self, simulation: Any, place: int, number: int) -> bool:
        """Whether the debate that a line repeats, if it repeats one, is the one in its place."""
        known = self.shape.words
        if known is None or not isinstance(simulation, dict) or not simulation.get("userTurns"):
            return True
        debate, _ = debates.parse({"simulation": simulation})
        if debate is None or _words(debate) == known[place]:
            return True
        words = _words(debate)
        other = next((n for n, one in enumerate(known, 1) if one == words), None)
        what = "a debate that is not in the input" if other is None else f"debate {other}"
        self.log.add("F237", number, f"in the place of debate {place + 1} is {what}")
        return False

    def _turn(self, judged: Any, place: int, turn: int, number: int) -> None:
        where = f"debate {place + 1}, turn {turn + 1}"
        topic = _topic(place, turn)
        if not isinstance(judged, dict):
            self.log.add("F234", number, f"{where}: there is {kind_of(judged)}, not an object", topic)
            self.explained.add((place, turn))
            return
        doubled = judged.doubled if isinstance(judged, Twice) else frozenset()
        for column, criterion in enumerate(CRITERIA):
            title = criterion.capitalize()
            # The official keys have a capital; a few systems leave it out, and what is meant is plain.
            names = [name for name in (title, criterion) if name in judged]
            if not names:
                continue
            value: float | None = nan
            if len(names) > 1 or names[0] in doubled:
                self.log.add("F236", number, f"{where}: {title} is there twice", topic)
            else:
                value = self._score(judged[names[0]], f"{where}: {title}", number, topic)
            self.scores[place][turn][column] = value
            if value is not None:
                self.part.add(criterion)

    def _score(self, judgment: Any, where: str, number: int, topic: bytes) -> float | None:
        if not isinstance(judgment, dict) or "score" not in judgment:
            there = "has no score" if isinstance(judgment, dict) else f"is {kind_of(judgment)}"
            self.log.add("F234", number, f"{where} {there}", topic)
            return nan
        if isinstance(judgment, Twice) and "score" in judgment.doubled:
            self.log.add("F236", number, f"{where} has two scores", topic)
            return nan
        value = judgment["score"]
        if value is None:
            return None  # "I do not judge this"
        found = number_of(value, self.reading)
        if found is None:
            self.log.add("F235", number, f"{where} has the score {_shown(value)}", topic)
            return nan
        return found

    def end(self) -> None:
        """Say what is missing, now that everything was read."""
        expected = len(self.shape.turns)
        if self.seen != expected:
            code = "F233" if self.seen else "F001"
            count = "line" if self.seen == 1 else "lines"
            what = f"there are {expected:,} debates, and {self.seen:,} {count} of judgments"
            self.log.add(code, None, what)
            return
        if not self.part:
            if not self.log.invalid:
                self.log.add("F239", None, "there is no judgment in the file")
            return
        for criterion in CRITERIA:
            if criterion not in self.part:
                self.log.add("F240", None, f"{criterion.capitalize()} is judged nowhere")
                continue
            column = CRITERIA.index(criterion)
            for place, turns in enumerate(self.scores):
                if (place, None) in self.explained:
                    continue
                for turn, scores in enumerate(turns):
                    if scores[column] is None and (place, turn) not in self.explained:
                        self._missing(place, turn, criterion)

    def _missing(self, place: int, turn: int, criterion: str) -> None:
        message = ""
        if self.log.wants("F238"):
            why = self.failures.get((place + 1, turn + 1, criterion))
            message = f"debate {place + 1}, turn {turn + 1}: {criterion.capitalize()} is not judged"
            message += f" ({why})" if why else ", other turns are"
        self.log.add("F238", self.lines[place], message, _topic(place, turn))


def number_of(value: Any, reading: Reading) -> float | None:
    """A score as a number (NaN possible under the official reading), or None if the reading does not take it."""
    if reading == "official" and isinstance(value, str | bool):
        if isinstance(value, str) and len(value) > 100:
            return None
        try:
            return float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    if reading == "official":
        return found
    return found if isfinite(found) and 0 <= found <= 1 else None


def read_failures(path: Path, shape: Shape) -> dict[tuple[int, int, str], str]:
    """Judgments that the driver asked for and did not get (``turns.jsonl`` beside the run), with the class of failure.

    Keys are debate and turn (from 1) and criterion. Whatever does not fit is left out, and nothing raises: what is
    said here can only turn "does not take part" into "took part, and failed".
    """
    found: dict[tuple[int, int, str], str] = {}
    for _, data in islice(records_of(path), MAX_RECORDS):
        if (one := _failure(data, shape)) is not None:
            found[one[0]] = one[1]
    return found


def _failure(data: Any, shape: Shape) -> tuple[tuple[int, int, str], str] | None:
    if not isinstance(data, dict) or data.get("outcome") != "failed":
        return None
    debate, turn, criterion = data.get("debate"), data.get("turn"), data.get("criterion")
    if type(debate) is not int or type(turn) is not int or not isinstance(criterion, str):
        return None
    criterion = criterion.lower()
    if not (1 <= debate <= len(shape.turns) and 1 <= turn <= shape.turns[debate - 1]):
        return None
    if criterion not in CRITERIA:
        return None
    failure = data.get("failure")
    why = failure.get("class") if isinstance(failure, dict) else None
    return (debate, turn, criterion), why if isinstance(why, str) and why in FAILURES else "failed"


def _topic(place: int, turn: int | None = None) -> bytes:
    return f"{place + 1}".encode() if turn is None else f"{place + 1}.{turn + 1}".encode()


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return show(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and isnan(value):
        return "NaN"
    if isinstance(value, int | float):
        return str(value) if abs(value) < 1e30 else "that is too large"
    return kind_of(value)
