"""A small dataset of reports, and the kind at work on it: requests, documents, nuggets, and what an evaluation writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.commands.runs import run_request
from evaluator.findings import Log
from evaluator.kinds.report.kind import KIND
from evaluator.request import load

DOCUMENTS = {
    "bridge": "The bridge over the river was opened in 1901 by the mayor of the town.",
    "cost": "The bridge cost two million crowns and has twelve arches of granite.",
    "bees": "Bees make honey in summer, and sleep in winter.",
    "ferry": "The electric ferry crosses the fjord in nine minutes.",
    "crew": "The ferry has a crew of four.",
}
# question -> (kind, answers with the documents that attest them)
Questions = Mapping[str, tuple[str, Mapping[str, Sequence[str]]]]
NUGGETS: dict[str, Questions] = {
    "1": {
        "When was the bridge opened?": ("OR vital", {"1901": ["bridge"], "1910": []}),
        "What is known about its building?": (
            "AND okay",
            {"two million crowns": ["cost"], "twelve arches": ["cost"]},
        ),
        "Who designed it?": ("OR", {"nobody knows": []}),
    },
    "2": {"How long does the crossing take?": ("OR vital", {"nine minutes": ["ferry"]})},
    "3": {"How large is the crew?": ("OR", {"four": ["crew"]})},
}
RATIOS = (
    "citation_relevance",
    "citation_support",
    "sentence_support",
    "nugget_coverage",
    "nugget_coverage_weighted",
    "f1",
    "f1_weighted",
)
Sentence = tuple[str, Sequence[str]]
GOOD: dict[str, list[Sentence]] = {
    "1": [("The bridge was opened in 1901.", ["bridge"]), ("Bees make honey in summer.", ["bees"])],
    "2": [("The ferry crosses the fjord in nine minutes.", ["ferry"])],
    "3": [("The ferry has a crew of four.", ["crew"])],
}


def report(topic: str, sentences: Iterable[Sentence], run: str = "run", **more: Any) -> dict[str, Any]:
    rows = [{"text": text, "citations": [*cited]} for text, cited in sentences]
    return {
        "metadata": {"team_id": "team", "run_id": run, "topic_id": topic},
        "responses": rows,
        "references": sorted({d for row in rows for d in row["citations"]}),
        **more,
    }


def reports(of: Mapping[str, Sequence[Sentence]] | None = None) -> list[dict[str, Any]]:
    return [report(topic, sentences) for topic, sentences in (GOOD if of is None else of).items()]


def v3(topic: str, questions: Questions) -> dict[str, Any]:
    made = {}
    for question, (kind, answers) in questions.items():
        aggregator, _, importance = kind.partition(" ")
        made[question] = {
            "question": question,
            "aggregator_type": aggregator,
            "importance": importance or None,
            "answers": {
                a: {"answer": a, "references": [{"doc_id": d} for d in docs]} for a, docs in answers.items()
            },
        }
    return {"query_id": topic, "format_version": "v3", "nugget_bank": made}


def lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), "utf-8")
    return path


@dataclass
class Said:
    """What an evaluation wrote."""

    result: dict[str, Any]
    rows: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    details: list[dict[str, Any]]
    files: dict[str, bytes]

    def value(self, measure: str) -> float:
        return float(self.result["measures"][measure]["value"])

    def by_topic(self, measure: str) -> dict[str, float]:
        return {r["topic"]: r["value"] for r in self.rows if r["measure"] == measure}

    @property
    def codes(self) -> list[str]:
        return sorted({f["code"] for f in self.findings})

    def effects(self, topic: str, sentence: int) -> list[str]:
        (one,) = (d for d in self.details if d["topic"] == topic)
        return [e["code"] for e in one["sentences"][sentence - 1]["effects"]]


def _id(measure: str) -> str:
    """An id for a measure; in what :meth:`World.evaluate` returns it is called by its name again."""
    return measure.replace("@", ".")[-40:].lstrip("_")


@dataclass
class World:
    """The dataset in a folder. Files may be changed before :meth:`evaluate`."""

    root: Path
    measures: list[str] = field(
        default_factory=lambda: [f"{m}@{j}" for m in RATIOS for j in ("macro", "micro")]
    )
    count: int = 0

    @classmethod
    def make(cls, root: Path, *measures: str, nuggets: Mapping[str, Questions] = NUGGETS) -> World:
        world = cls(root)
        world.measures += measures
        for folder in (world.inputs, world.truths / "nuggets", world.run):
            folder.mkdir(parents=True)
        lines(world.inputs / "documents.jsonl", ({"id": i, "text": t} for i, t in DOCUMENTS.items()))
        world.requests({topic: {} for topic in nuggets})
        for topic, questions in nuggets.items():
            path = world.truths / "nuggets" / f"nuggets_{topic}.v3.json"
            path.write_text(json.dumps(v3(topic, questions)))
        return world

    @property
    def inputs(self) -> Path:
        return self.root / "inputs"

    @property
    def truths(self) -> Path:
        return self.root / "truths"

    @property
    def run(self) -> Path:
        return self.root / "run"

    def requests(self, of: Mapping[str, Mapping[str, Any]]) -> None:
        rows = ({"request_id": topic, "title": f"About {topic}", **more} for topic, more in of.items())
        lines(self.inputs / "requests.jsonl", rows)

    def request(self, options: Mapping[str, Any], **more: Any) -> Path:
        self.count += 1
        output = self.root / f"out-{self.count}"
        output.mkdir()
        paths = {"run": self.run, "inputs": self.inputs, "truths": self.truths, "output": output}
        if (gateway := more.pop("gateway", None)) is not None:
            paths["gateway"] = gateway
        data = {
            "schema_version": 1,
            "kind": "report",
            "task": "small",
            "dataset": "test",
            "visibility": "blinded",
            "paths": {k: str(v) for k, v in paths.items()},
            "run_file": "reports.jsonl",
            "topics": "requests.jsonl",
            "corpus": "documents.jsonl",
            "measures": [{"id": _id(m), "measure": m, "truths": "nuggets"} for m in self.measures],
            "options": dict(options),
            **more,
        }
        path = output / "request.json"
        path.write_text(json.dumps(data))
        return path

    def evaluate(self, of: Iterable[Any] | None = None, gateway: Path | None = None, **options: Any) -> Said:
        """Evaluate these reports (default: those that are in the folder, else :data:`GOOD`)."""
        target = self.run / "reports.jsonl"
        if of is not None or not target.exists():
            lines(target, reports() if of is None else of)
        path = self.request(options, gateway=gateway)
        assert run_request(path) == 0
        made = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.name != "request.json"}

        names = {_id(m): m for m in self.measures}

        def rows(name: str) -> list[dict[str, Any]]:
            found = [*map(json.loads, made.get(name, b"").splitlines())]
            return [{**r, "measure": names[r["measure"]]} if "measure" in r else r for r in found]

        result = json.loads(made["result.json"])
        for part in (result, result.get("judge", {})):
            for key in {"measures", "pending", "canaries"} & part.keys():
                part[key] = {names[i]: value for i, value in part[key].items()}
        return Said(result, rows("scores.jsonl"), rows("findings.jsonl"), rows("details.jsonl"), made)

    def check(self, of: Iterable[Any], **options: Any) -> list[str]:
        """What the checker alone says; it has no truths."""
        path = lines(self.run / "reports.jsonl", of)
        request = load(self.request(options))
        log = Log(path.name, request.severities)
        KIND.check(path, self.inputs, request, log)
        return [f"{f.code}:{f.line}" for f in log.sorted()]

    def refused(self, **options: Any) -> str:
        """The error that these options make."""
        said = self.evaluate(**options)
        assert said.result["status"] == "error" and not said.rows and not said.details
        return str(said.result["message"])
