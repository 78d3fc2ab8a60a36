"""Who judged a run of debates: people's labels, judges' scores, a judge that counts words, or a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.dialogue import Held, Read
from evaluator.formats.labels import Label, label_files, read_folder, read_scores
from evaluator.judges import canaries, criteria, heuristic
from evaluator.judges.criteria import Judgments
from evaluator.kinds.debate.measures import Criterion, parse_measure
from evaluator.kinds.debate.run import Run
from schemas.debates import CRITERIA, transcript_digest
from schemas.details import Detail, noted


def people(labels: Sequence[Label], held: Sequence[Held], reads: Sequence[Read]) -> Judgments:
    """What people's labels say about the debates ``held``, those of the file that ``reads`` are the lines of."""
    places = {one.read.place: n for n, one in enumerate(held) if one.read is not None}
    return criteria.human(
        labels, transcript_digest([read.debate for read in reads]), places, _transcripts(held)
    )


def _transcripts(held: Sequence[Held]) -> dict[str, list[int]]:
    """The numbers of the debates by the identity of what was said in them."""
    found: dict[str, list[int]] = {}
    for number, one in enumerate(held):
        if one.read is not None and one.read.debate.turns:
            found.setdefault(transcript_digest([one.read.debate]), []).append(number)
    return found


class Sources:
    """The judgments about a run by source: each is read, or asked for, when a measure needs it."""

    def __init__(self, run: Run, truths: Path) -> None:
        self.run, self.truths, self.request = run, truths, run.request
        measures = (parse_measure(m.measure) for m in self.request.measures)
        asked = {c for m in measures if isinstance(m, Criterion) and m.source == "llm" for c in m.criteria}
        self._wanted = [c for c in CRITERIA if c in asked]  # of the model
        self._software: dict[str, Judgments] = {}
        self.worthless: dict[str, dict[str, float]] = {}  # what the model gives for answers without worth

    def of(self, measure: Criterion) -> Judgments:
        """The judgments that a measure is about."""
        if measure.source == "software":
            return self.software(measure.judge)
        found: Judgments = getattr(self, measure.source)
        return found

    @cached_property
    def human(self) -> Judgments:
        """People's labels."""
        return people(read_folder(self.truths / "labels"), self.run.held, self.run.reads)

    def software(self, judge: str) -> Judgments:
        """Scores by the judge of that name of the task of judging; "": by all of them."""
        if judge not in self._software:
            scores = [s for path in label_files(self.truths / "judgments") for s in read_scores(path)]
            found = criteria.software(scores, _transcripts(self.run.held), judge)
            # Which softwares judged is part of who judged: rows of other ones cannot be compared.
            names = found.facts.get("note")
            facts = {"name": "software", "model": names[:200] if names else None}
            self._software[judge] = found._replace(facts=facts)
        return self._software[judge]

    @cached_property
    def heuristic(self) -> Judgments:
        """The judge that counts words."""
        values = heuristic.judge_all(self.run.examined, self.run.rules.word_limit)
        return Judgments(values, frozenset(values), {"name": heuristic.NAME, **noted(Detail("word-counts"))})

    @cached_property
    def llm(self) -> Judgments:
        """A model, asked through the gateway. Raises :class:`EvaluatorError` when the task names none."""
        options = self.run.options.get("judge")
        if options is None:
            raise EvaluatorError(
                "a measure is judged by a model, and the task names none",
                fix="name it in task.yaml: options: {judge: {model: ...}}",
            )
        prompts = criteria.read_prompts(self.truths / options["prompts"] if "prompts" in options else None)
        if self.request.gateway is None:
            reason = "no model can be asked here: there is no gateway"
            return Judgments({}, frozenset(), {"name": "llm"}, dict.fromkeys(self._wanted, reason))
        from evaluator.judges.chat import Chat

        chat = Chat(
            model=options["model"],
            socket=self.request.gateway,
            parameters={**criteria.PARAMETERS, **options.get("parameters", {})},
        )
        shown = options["arguments"]
        answers = [a._replace(arguments=a.arguments[:shown]) for a in self.run.examined.answers]
        if answers:
            answers += canaries.worthless((held.claim.text for held in self.run.held), options["canaries"])
        judged = criteria.llm(chat, prompts, answers, self._wanted)
        self.worthless = canaries.shares(judged, self._wanted)
        return canaries.without(judged)
