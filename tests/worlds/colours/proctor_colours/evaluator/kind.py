"""Colours, read and scored."""

from __future__ import annotations

from pathlib import Path

from evaluator.findings import Log
from evaluator.kinds.options import checked_options
from evaluator.request import Request
from evaluator.scores import Sink

COLOURS = {"red", "green", "blue"}


class Colours:
    """One colour a topic."""

    name = "colours"
    measures = "hits"

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Score the run: 1 for the right colour of a topic, else 0."""
        said = self._read(run, request, sink.findings)
        for measure in request.measures:
            right = dict(line.split() for line in (truths / measure.truths).read_text().splitlines())
            values = {topic: float(said.get(topic) == colour) for topic, colour in right.items()}
            for topic, value in values.items():
                sink.score(measure.id, topic, value)
            covered = len(said.keys() & right.keys())
            if missing := len(right) - covered:
                sink.note("colours-missing", missing=missing, colour=next(reversed(said.values()), "none"))
            sink.aggregate(
                measure.id, sum(values.values()) / len(values), topics=len(values), covered=covered
            )

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Note what is wrong with the run."""
        log.answered = len(self._read(run, request, log))

    def _read(self, run: Path, request: Request, log: Log) -> dict[str, str]:
        known = COLOURS | ({"grey"} if checked_options(self.name, request.options)["grey"] else set())
        said = {}
        for number, line in enumerate(run.read_text("utf-8", "replace").splitlines(), 1):
            log.lines = number
            topic, _, colour = line.partition(" ")
            if colour in known:
                said[topic] = colour
            else:
                log.add("F901", number, "that is no colour")
        return said


KIND = Colours()
