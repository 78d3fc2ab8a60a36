"""Small runs of debates, and an evaluation of them in folders of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.kinds.debate.kind import KIND
from evaluator.request import Request, parse
from evaluator.scores import Sink

REAL = Path(__file__).parents[1] / "evaluator" / "kinds" / "debate" / "genirsim" / "simulations.jsonl"
INDEX = {
    "1.1": "Night buses do not run in most towns.",
    "1.2": "Nurses travel to work at night by car.",
    "1.3": "Bicycles are slow in winter.",
}
CLAIMS = ({"id": "c1", "claim": "Cars should be banned."}, {"id": "c2", "claim": "Zoos are cruel."})


def turn(
    answer: str, *cited: str | tuple[str, str | None], user: str = "I say so.", ms: float = 100.0
) -> dict[str, Any]:
    """A turn in GenIRSim's form. Arguments are ids of :data:`INDEX`, or pairs of an id and a text."""
    arguments = []
    for one in cited:
        name, text = (one, INDEX.get(one, "made up")) if isinstance(one, str) else one
        arguments.append({"id": name} if text is None else {"id": name, "text": text})
    response = {"content": answer, "arguments": arguments}
    return {
        "utterance": user,
        "systemResponse": {"utterance": answer, "response": response, "milliseconds": ms},
    }


def debate(
    *turns: Mapping[str, Any], id: str = "", claim: str = "", planned: int | None = None
) -> dict[str, Any]:
    """A line of simulations.jsonl."""
    topic = {"description": claim, **({"id": id} if id else {})}
    configuration = {"topic": topic, **({"maxTurns": planned} if planned else {})}
    return {"simulation": {"configuration": configuration, "userTurns": list(turns), "milliseconds": 1.0}}


def write(path: Path, rows: Sequence[Any]) -> Path:
    """JSON Lines; rows that are text are written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", errors="surrogatepass")
    return path


class World:
    """Folders with claims, an index and truths, and evaluations of runs there."""

    def __init__(self, root: Path, claims: Sequence[Mapping[str, Any]] = CLAIMS) -> None:
        self.root = root
        write(root / "inputs" / "claims.jsonl", list(claims))
        write(root / "services/search/arguments.jsonl", [{"id": k, "text": v} for k, v in INDEX.items()])
        (root / "truths" / "labels").mkdir(parents=True)
        (root / "out").mkdir()
        self.services = True
        self.records = True  # as if our driver had held the debates
        self.gateway: Path | None = None

    def run(
        self, rows: Sequence[Any], *, served: Sequence[str] | None = tuple(INDEX), turns: Sequence[Any] = ()
    ) -> None:
        """Write a run; ``served`` are the ids that the index returned, None for no record."""
        write(self.root / "run" / "simulations.jsonl", rows)
        if served is not None:
            write(self.root / "run" / "served.jsonl", [{"n": 1, "status": 200, "hits": list(served)}])
        if turns:
            write(self.root / "run" / "turns.jsonl", turns)

    def request(self, measures: Sequence[str], **options: Any) -> Request:
        """A request for these measures, whose ids are their names with hyphens."""
        paths: dict[str, str | None] = {n: str(self.root / n) for n in ("run", "inputs", "truths")}
        paths["output"] = str(self.root / "out")
        paths["services"] = str(self.root / "services") if self.services else None
        paths["gateway"] = str(self.gateway) if self.gateway else None
        return parse(
            {
                "schema_version": 1,
                "kind": "debate",
                "visibility": "public",
                "paths": paths,
                "run_file": "simulations.jsonl",
                "records": self.records,
                "measures": [{"id": key(m), "measure": m, "truths": "labels/labels.jsonl"} for m in measures],
                "options": {"interval": False, **options},
            }
        )

    def evaluate(
        self, measures: Sequence[str], severities: Mapping[str, str] | None = None, **options: Any
    ) -> Sink:
        """Evaluate the run."""
        request = self.request(measures, **options)
        sink = Sink(Log(request.run_file, severities))
        KIND.evaluate(request.run / request.run_file, request.inputs, request.truths, request, sink)
        return sink

    def value(self, measure: str, **options: Any) -> float:
        """One measure's value over all."""
        sink = self.evaluate([measure], **options)
        assert key(measure) in sink.aggregates, (sink.pending, sink.findings.sorted())
        value: float = sink.aggregates[key(measure)]["value"]
        return value


def key(measure: str) -> str:
    return measure.replace("@", "-").replace("/", "-")


def codes(log: Log) -> dict[str, int]:
    return dict(log.counts)
