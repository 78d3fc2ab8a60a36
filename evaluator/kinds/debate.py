"""Debates of a simulated user with a software: what can be counted, and the four criteria from people, judges and models.

Inputs: the claims (``claims.jsonl``, or the file that the dataset names as its topics). The run's file has one debate a
line; where the request says that our driver held the debates, ``turns.jsonl`` and ``served.jsonl`` beside it are its
records. Nobody else's are looked at: they could say that arguments were retrieved which never were. The index that arguments are
compared with is the data of the task's search service. Truths: ``labels/`` (people's labels), ``judgments/`` (judges'
scores) and, if the task has its own, prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.formats.dialogue import (
    Held,
    Read,
    index_file,
    place,
    read_claims,
    read_debates,
    read_index,
    read_served,
    read_turns,
    turn_key,
)
from evaluator.formats.labels import label_files, read_folder, read_scores
from evaluator.judges import canaries, criteria, heuristic
from evaluator.judges.addressing import speaks_to_the_judge
from evaluator.judges.criteria import Judgments
from evaluator.measures import debate as automatic
from evaluator.measures.examination import (
    MAX_ARGUMENTS,
    WORD_LIMIT,
    Examined,
    Rules,
    cited_ids,
    examine,
    turns_of,
)
from evaluator.measures.interval import intervals
from evaluator.request import Request
from evaluator.scores import Sink
from schemas.debates import CRITERIA, transcript_digest
from schemas.details import Detail, noted

SOURCES = ("human", "llm", "software", "heuristic")
_FACTS_FIRST = ("llm", "heuristic", "software", "human")  # whose facts stand beside the scores


class Criterion(NamedTuple):
    """A measure such as ``quality@llm``: one of the criteria or ``score``, its source, and which judge of it ("": all)."""

    name: str
    source: str
    judge: str = ""


class Debate:
    """Options: ``turns``, ``word_limit``, ``max_arguments``, ``search``, ``judge``, ``labels``, ``interval``."""

    name = "debate"
    measures = (
        f"{', '.join(automatic.NAMES)}; and {', '.join(CRITERIA)} or score (their mean), each with "
        + ", ".join(f"@{s}" for s in SOURCES)
    )

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the debates; see :class:`evaluator.kinds.base.Kind`."""
        options = Options(request.options)
        measures = {m.id: parse_measure(m.measure) for m in request.measures}
        log = sink.findings
        run_ = _Run(run, inputs, request, options, log)
        if log.invalid:
            return
        sources = Sources(run_.held, run_.reads, run_.examined, truths, request, options)
        report = _Report(run_, sources, sink, options)
        for i, measure in measures.items():
            if isinstance(measure, Criterion):
                report.criterion(i, measure)
            else:
                report.automatic(i, measure)
        report.close({i: m for i, m in measures.items() if isinstance(m, Criterion)})

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the debates alone; see :class:`evaluator.kinds.base.Checker`."""
        run_ = _Run(run, inputs, request, Options(request.options), log)
        log.answered = run_.covered


KIND = Debate()


def parse_measure(text: str) -> str | Criterion:
    """The name of an automatic measure, or a criterion with its source. Raises :class:`EvaluatorError`."""
    if text in automatic.NAMES:
        return text
    name, _, source = text.partition("@")
    source, slash, judge = source.partition("/")
    named = source == "software" and judge
    if name in (*CRITERIA, "score") and source in SOURCES and (named or not slash):
        return Criterion(name, source, judge)
    raise EvaluatorError(
        f"there is no measure {text[:60]!r}",
        f"measures are {Debate.measures}",
        "write for example provenance, latency@p95, quality@human or score@software/NAME",
    )


class Options:
    """The kind's options, checked."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises :class:`EvaluatorError` for options that the kind does not have."""
        known: dict[str, tuple[Callable[[Any], bool], str]] = {
            "turns": (_positive, "a positive integer"),
            "word_limit": (_positive, "a positive integer"),
            "max_arguments": (_positive, "a positive integer"),
            "search": (lambda v: isinstance(v, str) and "/" not in v and v not in (".", ".."), "a service"),
            "judge": (
                _judge,
                "an object with model, and if need be prompts, parameters, arguments and canaries",
            ),
            "labels": (_labels, "an object with least, a number from 0 to 1"),
            "interval": (lambda v: isinstance(v, bool), "true or false"),
        }
        for key, value in options.items():
            if key not in known:
                raise EvaluatorError(
                    f"the kind debate has no option {str(key)[:40]!r}", f"it has {', '.join(known)}"
                )
            legal, expected = known[key]
            if not legal(value):
                raise EvaluatorError(f"the option {key} is wrong", f"it has to be {expected}")
        self.turns: int | None = options.get("turns")
        self.word_limit: int = options.get("word_limit", WORD_LIMIT)
        self.max_arguments: int = options.get("max_arguments", MAX_ARGUMENTS)
        self.search: str = options.get("search", "search")
        self.judge: Mapping[str, Any] | None = options.get("judge")
        self.least: float = options.get("labels", {}).get("least", 1.0)
        self.interval: bool = options.get("interval", True)


def _positive(value: Any) -> bool:
    return type(value) is int and value >= 1


def _judge(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= {"model", "prompts", "parameters", "arguments", "canaries"}
        and isinstance(value.get("model"), str)
        and isinstance(value.get("prompts", ""), str)
        and ".." not in value.get("prompts", "").split("/")
        and not value.get("prompts", "").startswith("/")
        and isinstance(value.get("parameters", {}), dict)
        and _positive(value.get("arguments", 1))
        and type(value.get("canaries", 0)) is int
        and 0 <= value.get("canaries", 0) <= 20
    )


def _labels(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() - {"least"}:
        return False
    least = value.get("least", 1)
    return isinstance(least, int | float) and not isinstance(least, bool) and 0 <= least <= 1


class _Run:
    """A run that was read and examined, with everything wrong in it in the log."""

    def __init__(self, path: Path, inputs: Path, request: Request, options: Options, log: Log) -> None:
        claims = read_claims(inputs / (request.topics or "claims.jsonl"))
        self.reads: list[Read] = read_debates(path, log, max_bytes=request.max_bytes)
        self.held: list[Held] = place(self.reads, claims, log)
        self.index: Path | None = None
        if request.services is not None:
            self.index = index_file(request.services / options.search)
        texts = None if self.index is None else read_index(self.index, cited_ids(self.held))
        self.rules = Rules(
            options.turns or turns_of(self.held),
            options.word_limit,
            options.max_arguments,
            texts,
            read_served(path.parent / "served.jsonl") if request.records else None,
        )
        records = read_turns(path.parent / "turns.jsonl", log) if request.records else {}
        self.examined: Examined = examine(self.held, records, self.rules, log)

    @property
    def covered(self) -> int:
        """How many debates have an answer."""
        return sum(any(f.answered for f in one) for one in self.examined.facts)


class Sources:
    """Who judged this run: each source is read, or asked, when a measure needs it."""

    def __init__(
        self,
        held: Sequence[Held],
        reads: Sequence[Read],
        examined: Examined,
        truths: Path,
        request: Request,
        options: Options,
    ) -> None:
        self.held, self.reads, self.examined = held, reads, examined
        self.truths, self.request, self.options = truths, request, options
        self._wanted = {
            c
            for m in request.measures
            if isinstance(one := parse_measure(m.measure), Criterion) and one.source == "llm"
            for c in (CRITERIA if one.name == "score" else (one.name,))
        }
        self._software: dict[str, Judgments] = {}
        self.worthless: dict[str, dict[str, float]] = {}  # what the model gives for answers without worth

    def of(self, measure: Criterion) -> Judgments:
        """The judgments that a measure is about."""
        if measure.source == "software":
            return self.software(measure.judge)
        found: Judgments = getattr(self, measure.source)
        return found

    @cached_property
    def _transcripts(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, one in enumerate(self.held):
            if one.read is not None and one.read.debate.turns:
                found.setdefault(transcript_digest([one.read.debate]), []).append(number)
        return found

    @cached_property
    def human(self) -> Judgments:
        """People's labels."""
        labels = read_folder(self.truths / "labels")
        digest = transcript_digest([read.debate for read in self.reads])
        places = {one.read.place: number for number, one in enumerate(self.held) if one.read is not None}
        return criteria.human(labels, digest, places, self._transcripts)

    def software(self, judge: str) -> Judgments:
        """Judges of the task of judging."""
        if judge not in self._software:
            scores = [s for path in label_files(self.truths / "judgments") for s in read_scores(path)]
            found = criteria.software(scores, self._transcripts, judge)
            # Which softwares judged is part of who judged: rows of other ones cannot be compared.
            names = found.facts.get("note")
            facts = {"name": "software", "model": names[:200] if names else None}
            self._software[judge] = found._replace(facts=facts)
        return self._software[judge]

    @cached_property
    def heuristic(self) -> Judgments:
        """The judge that counts words."""
        values = {}
        for answer in self.examined.answers:
            claim, turn = answer.place
            opening = answer.before[0][0] if answer.before else answer.user
            facts = self.examined.facts[claim][turn - 1]
            values[answer.place] = heuristic.judge(
                answer.text, answer.user, opening, facts, self.options.word_limit
            )
        return Judgments(values, frozenset(values), {"name": heuristic.NAME, **noted(Detail("word-counts"))})

    @cached_property
    def llm(self) -> Judgments:
        """A model, asked through the gateway."""
        options = self.options.judge
        if options is None:
            raise EvaluatorError(
                "a measure is judged by a model, and the task names none",
                fix="name it in task.yaml: options: {judge: {model: ...}}",
            )
        folder = self.truths / options["prompts"] if "prompts" in options else None
        prompts = criteria.read_prompts(folder)
        wanted = [c for c in CRITERIA if c in self._wanted]
        if self.request.gateway is None:
            reason = "no model can be asked here: there is no gateway"
            return Judgments({}, frozenset(), {"name": "llm"}, dict.fromkeys(wanted, reason))
        from evaluator.judges.chat import Chat

        chat = Chat(
            model=options["model"],
            socket=self.request.gateway,
            parameters={**criteria.PARAMETERS, **options.get("parameters", {})},
        )
        shown = options.get("arguments", criteria.ARGUMENTS)
        answers = [a._replace(arguments=a.arguments[:shown]) for a in self.examined.answers]
        if answers:
            answers += canaries.worthless(
                (one.claim.text for one in self.held), options.get("canaries", canaries.CLAIMS)
            )
        judged = criteria.llm(chat, prompts, answers, wanted)
        self.worthless = canaries.shares(judged, wanted)
        return canaries.without(judged)


class _Report:
    """Puts values by turn, by debate and over all into the sink."""

    def __init__(self, run: _Run, sources: Sources, sink: Sink, options: Options) -> None:
        self.run, self.sources, self.sink, self.options = run, sources, sink, options
        self.topics = [one.claim.topic for one in run.held]
        self._measures = automatic.measures(options.word_limit)

    def automatic(self, i: str, name: str) -> None:
        """One measure that needs no judge."""
        if name.startswith("provenance") and self.run.index is None:
            self.sink.pending[i] = "there is no index that arguments could be compared with"
            return
        if name == "provenance@cited":
            self._cited(i)
            return
        if name.startswith("latency") and not self.sources.request.records:
            self.sink.note("own-times")
        measure = self._measures[name]
        by_topic: list[float] = []
        for topic, facts in zip(self.topics, self.run.examined.facts, strict=True):
            for n, turn in enumerate(facts, 1):
                value = measure.of(turn)
                if value is not None:
                    self.sink.score(i, topic, value, {"turn": n})
            if values := measure.values(facts):
                by_topic.append(measure.join(values))
                self.sink.score(i, topic, by_topic[-1])
        values = measure.values(self.run.examined.all)
        if values:
            self._total(i, measure.join(values), by_topic if measure.share else ())
        else:
            self.sink.pending[i] = "no turn was answered" if name != "latency" else "no turn has a time"

    def _cited(self, i: str) -> None:
        for topic, facts in zip(self.topics, self.run.examined.facts, strict=True):
            for n, turn in enumerate(facts, 1):
                if (value := automatic.provenance_cited([turn])) is not None:
                    self.sink.score(i, topic, value, {"turn": n})
            if (value := automatic.provenance_cited(facts)) is not None:
                self.sink.score(i, topic, value)
        self._total(i, automatic.provenance_cited(self.run.examined.all) or 0.0, ())

    def criterion(self, i: str, measure: Criterion) -> None:
        """One criterion, or the mean of all four, as one source judges it."""
        judged = self.sources.of(measure)
        names = CRITERIA if measure.name == "score" else (measure.name,)
        reason = next((r for c in names if (r := self._pending(c, measure, judged))), None)
        if reason is not None:
            self.sink.pending[i] = reason[:300]
            return
        whole: dict[str, list[float]] = {c: [] for c in names}
        by_topic: list[float] = []
        covered = 0
        for claim, topic in enumerate(self.topics):
            mine: dict[str, list[float]] = {c: [] for c in names}
            for n, turn in enumerate(self.run.examined.facts[claim], 1):
                said = judged.values.get((claim, n), {})
                values = {c: said.get(c) if turn.answered else 0.0 for c in names}
                known = {c: v for c, v in values.items() if v is not None}
                for c, v in known.items():
                    mine[c].append(v)
                if len(known) == len(names):
                    self.sink.score(i, topic, fsum(known.values()) / len(known), {"turn": n})
            for c in names:
                whole[c] += mine[c]
            if all(mine.values()):
                by_topic.append(_mean_of_means(mine))
                self.sink.score(i, topic, by_topic[-1])
                # A debate without any answer counts 0, and is none that the run has something in.
                covered += any(turn.answered for turn in self.run.examined.facts[claim])
        self._total(i, _mean_of_means(whole), by_topic, covered=covered)

    def _pending(self, criterion: str, measure: Criterion, judged: Judgments) -> str | None:
        """Why a criterion has no value yet; None if it has one."""
        if criterion in judged.pending:
            return judged.pending[criterion]
        places = [a.place for a in self.sources.examined.answers]
        looked = sum(p in judged.looked for p in places)
        if measure.source in ("human", "software") and not places and not judged.looked:
            # All its turns count 0, but as long as nobody has judged anything that would be the first place.
            who = "nobody has labelled" if measure.source == "human" else "no judge has scored"
            return f"{who} this run: it has no answer"
        if measure.source in ("human", "software") and places:
            who = "people" if measure.source == "human" else "judges"
            if looked == 0:
                return f"{who} have not judged this run yet"
            if looked < self.options.least * len(places):
                return f"{who} have judged {looked:,} of {len(places):,} answers; at least {self.options.least:.0%} are wanted"
        if places and not any(criterion in judged.values.get(p, {}) for p in places):
            return f"nobody has said yes or no about {criterion}"
        return None

    def _total(self, i: str, value: float, by_topic: Sequence[float], *, covered: int | None = None) -> None:
        spans = intervals({i: by_topic}) if self.options.interval and by_topic else {}
        self.sink.aggregate(
            i,
            value,
            topics=len(self.topics),
            covered=self.run.covered if covered is None else covered,
            interval=spans.get(i),
        )

    def close(self, criteria_: Mapping[str, Criterion]) -> None:
        """Say who judged, and what was counted. ``criteria_`` are the measures that need a judge, by id."""
        used = {i: m.source for i, m in criteria_.items()}
        note, everything = self.sink.note, self.run.examined.all
        failed = sum(not f.answered for f in everything)
        if failed:
            note("turns-unanswered", failed=failed, turns=len(everything))
        if self.run.index is not None and self.run.rules.served is None:
            note("index-unnoted")
        if not used:
            return
        people = self.sources.human
        for source in (s for s in _FACTS_FIRST if s in used.values()):
            judged = self.sources.of(Criterion("score", source))
            facts = {k: v for k, v in judged.facts.items() if v is not None}
            if source != "human" and (figures := criteria.reliability(judged, people)):
                facts["reliability"] = figures
            mine = sorted(i for i, s in used.items() if s == source)
            if source == "llm" and self.sources.worthless:
                facts |= self._worthless({i: criteria_[i].name for i in mine}, facts.get("reliability", {}))
            if self.sink.judge is None and judged.values:
                self.sink.judge = {**facts, "measures": mine}
            if source in ("human", "software") and self.sources.examined.answers:
                answers = self.sources.examined.answers
                looked = sum(a.place in judged.looked for a in answers)
                note(
                    "people-judged" if source == "human" else "judges-judged",
                    judged=looked,
                    answers=len(answers),
                )
            if source == "llm" and judged.values:
                self._cut_answers()
                self._addressed()
            if judged.refused:
                note("refused-as-no", refused=len(judged.refused), asked=judged.asked)
            for place_, criterion in judged.refused:
                topic = self.topics[place_[0]]
                told = f"the judge's endpoint refused the question about {criterion} of turn {place_[1]}"
                self.sink.findings.add("F226", None, told, turn_key(topic, place_[1]))
            for place_, criterion in judged.missing:
                topic = self.topics[place_[0]]
                self.sink.findings.add(
                    "F223",
                    None,
                    f"the judge said neither yes nor no about {criterion} of turn {place_[1]}",
                    turn_key(topic, place_[1]),
                )

    def _worthless(self, measures: Mapping[str, str], reliability: Mapping[str, float]) -> dict[str, Any]:
        """What the judge gives for answers without worth: of each sort for people, and the best by measure."""
        found = self.sources.worthless
        best: dict[str, float] = {}
        for i, name in measures.items():
            wanted = CRITERIA if name == "score" else (name,)
            best[i] = max(fsum(by[c] for c in wanted) / len(wanted) for by in found.values())
        shown = {f"yes to an {sort}": fsum(by.values()) / len(by) for sort, by in found.items()}
        return {"reliability": {**reliability, **shown}, "canaries": best}

    def _addressed(self) -> None:
        for answer in self.sources.examined.answers:
            words = speaks_to_the_judge(answer.text)
            if words is not None:
                topic, turn = self.topics[answer.place[0]], answer.place[1]
                message = f"the answer of turn {turn} seems to speak to the judge: {plain(words, 80)}"
                self.sink.findings.add("F227", None, message, turn_key(topic, turn))

    def _cut_answers(self) -> None:
        for answer in self.sources.examined.answers:
            if len(answer.text) > criteria.ANSWER_CHARACTERS:
                topic, turn = self.topics[answer.place[0]], answer.place[1]
                message = f"the judge saw {criteria.ANSWER_CHARACTERS:,} of {len(answer.text):,} characters of turn {turn}"
                self.sink.findings.add("F224", None, message, turn_key(topic, turn))


def _mean_of_means(values: Mapping[str, Sequence[float]]) -> float:
    means = [fsum(v) / len(v) if v else 0.0 for v in values.values()]
    return fsum(means) / len(means)
