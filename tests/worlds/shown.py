"""Runs with debates, reports or records in them, as sealed archives, for tests of what shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.model.sidecars import Service
from runner.model.task import Measure, Task
from runner.records.store import run_detail
from runner.tasks.services import data_digest
from tests.worlds import records
from tests.worlds.records import World

# What a participant might write to get out of where it is shown.
HOSTILE = (
    "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\"></span></p>"
    "<a href=\"javascript:document.title='pwned'\">\"'&amp;</a><style>*{display:none}</style>"
    "\x1b[2J\x1b]0;pwned\x07\x00‮‍ zebra"
)
INDEX = {"1.1": "Bees make honey.", "1.2": "Ants  make hills.", "1.3": "Wasps sting."}


def debate(name: str, claim: str, *turns: tuple[str, str, Sequence[Any]]) -> dict[str, Any]:
    """A line of simulations.jsonl: (user, system, arguments) a turn."""
    topic = {"description": claim, "id": name}
    return {
        "simulation": {
            "configuration": {"topic": topic, "maxTurns": len(turns)},
            "userTurns": [
                {
                    "utterance": user,
                    "systemResponse": {
                        "utterance": answer,
                        "response": {"content": answer, "arguments": list(arguments)},
                        "milliseconds": 30.0,
                    },
                }
                for user, answer, arguments in turns
            ],
        }
    }


def record(debate: int, turn: int, failure: tuple[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A line of turns.jsonl."""
    return {
        "debate": debate,
        "turn": turn,
        "target": None,
        "outcome": "failed" if failure else "answered",
        "failure": {"class": failure[0], "detail": failure[1]} if failure else None,
        "user_ms": 3.0,
        "system_ms": 1234.0,
        **more,
    }


def task(root: Path, *, index: Mapping[str, str] | None = None) -> Task:
    """The toy task with debates; ``index`` makes it a search service with these texts."""
    made = replace(
        records.task(),
        kind="debate",
        output="simulations.jsonl",
        measures={
            "quality": Measure("quality", "quality@human", "labels"),
            "words": Measure("words", "words", "-"),
        },
    )
    if index is None:
        return made
    data = root / "arguments"
    data.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps({"id": k, "text": v}) + "\n" for k, v in index.items())
    (data / "arguments.jsonl").write_text(text)
    return replace(made, services={"search": Service("search", data)})


def jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def debated(
    world: World,
    made: Task,
    lines: Sequence[Any],
    turns: Sequence[Any] = (),
    *,
    served: Sequence[str] | None = None,
    dataset: str = "dev",
    scores: Sequence[Mapping[str, Any]] = (),
    team: str = "alpha",
    software: str = "x",
    workflow: str = "interactive",
) -> run_detail.RunDetail:
    """A scored run of these debates."""
    submission = world.register(team, software)
    output = {"simulations.jsonl": jsonl(lines)}
    if turns:
        output["turns.jsonl"] = jsonl(turns)
    if served is not None:
        output["served.jsonl"] = jsonl([{"n": 1, "kind": "match", "status": 200, "hits": list(served)}])
    attempt = world.attempt(submission, dataset=dataset, output=output, workflow=workflow)
    for name in ("search", "driver"):
        (attempt.path / "logs" / f"{name}.log").write_text(f"CANARY of {name} \x1b[2J\n")
    (attempt.path / "logs" / "driver.json").write_text("{}\n")
    evaluation = world.evaluation(attempt, {"ndcg": {"c1": 0.5}, "rr": {"c1": 0.5}})
    (evaluation.path / "scores.jsonl").write_text(jsonl(scores))
    service = made.services.get("search")
    if service is not None:
        path = evaluation.path / "evaluation.json"
        services = {"services": {"search": data_digest(service)}}
        path.write_text(json.dumps(json.loads(path.read_text()) | services))
    return run_detail.detail(world.store, attempt.run_id)


def taken_out(found: run_detail.RunDetail, name: str) -> Path:
    """A file of the run's output as archives had it before there was a content store: in the attempt's folder, to be changed."""
    assert found.attempt is not None
    file, path = found.attempt.file(f"output/{name}"), found.attempt.path / "output" / name
    assert file is not None
    path.parent.chmod(0o755)
    file.copy(path)
    return path


def reported(
    world: World, details: Sequence[Any], *, dataset: str = "dev", team: str = "alpha", software: str = "x"
) -> run_detail.RunDetail:
    """A scored run whose evaluation has these lines of details."""
    submission = world.register(team, software)
    attempt = world.attempt(submission, dataset=dataset)
    evaluation = world.evaluation(attempt, {"ndcg": {"t1": 0.5}, "rr": {"t1": 0.5}})
    (evaluation.path / "details.jsonl").write_text(jsonl(details))
    return run_detail.detail(world.store, attempt.run_id)


def judged_line() -> dict[str, Any]:
    """A line of details as the evaluator writes it: rewards, penalties, citations, a hostile sentence."""
    from evaluator.argue.formats import judgments as make
    from evaluator.argue.models import Answer, Bank, Cited, JudgedReport, Match, Nugget, Reference, Segment
    from evaluator.argue.scoring.explaining import detail
    from evaluator.argue.scoring.runs import score_run

    def nugget(question: str, *answers: str) -> Nugget:
        return Nugget(question, tuple(Answer(a, (Reference("d1"),)) for a in answers))

    bank = Bank("t1", (nugget("Who flies?", "Bees", "Wasps"), nugget(f"Why? {HOSTILE}", "Because")))
    good = Segment(
        "Bees fly.",
        (Cited("d1", "text"),),
        (
            make.relevance("d1", True),
            make.answers("d1", [Match("Who flies?", ("Bees",), None)], "lexical"),
            make.attested("d1", True, "lexical"),
        ),
    )
    bad = Segment(
        HOSTILE,
        (Cited("d2", "text"),),
        (make.relevance("d2", False), make.answers("d2", [], "null"), make.attested("d2", False, "lexical")),
    )
    uncited = Segment(
        "No source.", (), (make.requires_citation(True, "lexical"), make.first_instance(True, "lexical"))
    )
    report = JudgedReport("t1", "run", (good, bad, uncited))
    scores = score_run([report], {"t1": bank})
    return detail(scores.topics["t1"], report, cut=2)


def wrong_lines(words: str) -> list[dict[str, Any]]:
    """Lines of details as the evaluator writes them of records: labels, numbers and texts, with ``words`` wherever somebody has a say."""
    place = {"output": "run.jsonl", "truths": "truths.jsonl"}
    counts = {"total": 120, "wrong": 9, "missing": 2}
    labels = {
        "labels": ["cat", "dog", words],
        "matrix": [[60, 4, 1, 0, 2], [1, 50, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]],
        "others": 1,
        "pairs": [
            {"right": "cat", "said": "dog", "count": 4, "ids": ["r-1", "r-2"]},
            {"right": "cat", "said": None, "count": 2, "ids": ["r-3", words]},
            {"right": "dog", "said": words, "count": 1, "ids": ["r-4"]},
        ],
    }
    differences = {"shares": [[50, 1], [75, 2.5], [90, 7], [95, 9]], "largest": 12, "above": 3, "below": 4}
    number = {"id": "r-5", "said": 4012, "right": 4000, "value": 12}
    text = {"id": words, "said": words, "right": "Bees fly.", "value": 0.25}
    return [
        {"topic": "label", "field": "label", "truth": "label", "measures": ["f1"], **place, **counts, "classes": labels},
        {"topic": "mass", "field": "mass", "truth": "mass", "measures": ["mae"], **place, **counts,
         "differences": differences, "records": [number], "missing_ids": ["r-3", words]},
        {"topic": words, "field": words, "truth": "answer", "measures": ["em", "f"], **place, **counts,
         "values": {"measure": "em"}, "records": [text], "missing_ids": []},
    ]  # fmt: skip
