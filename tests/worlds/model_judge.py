"""Tasks that a language model judges through the gateway, and a task of debates for hostile software."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.worlds.interactive_jobs import arguments
from tests.worlds.mini import Project, Said, cli, digests
from tests.worlds.openai_server import OpenAIServer

CANARY = "sk-canary-0123456789"
KEY = {"EXAMPLE_KEY": CANARY}
TALK: dict[str, Any] = {
    "schema_version": 1, "id": "talk", "title": "Talk", "kind": "debate", "workflow": "interactive",
    "interaction": {"mode": "debate", "turns": 2, "ready": "20s", "answer": {"time": "20s"}, "concurrency": 2},
    "datasets": [{"id": "dev", "visibility": "public", "topics": "claims.jsonl"}],
    "output": "simulations.jsonl",
    "tables": [{"id": "main", "cells": [{"dataset": "dev"}], "rank_by": "score"}],
    "limits": {"memory": "256MiB", "wall_clock": "90s", "output": "16MiB"},
    "evaluator": {"limits": {"memory": "512MiB", "wall_clock": "60s"}},
}  # fmt: skip


def write_talk(project: Project, measures: dict[str, str], **keys: Any) -> Path:
    """Write the task "talk" of two claims that nobody has labelled; returns its definition."""
    folder = project.root / "tasks" / "talk"
    inputs, labels = folder / "datasets" / "dev" / "inputs", folder / "datasets" / "dev" / "truths" / "labels"
    for path in (inputs, labels):
        path.mkdir(parents=True)
    (labels / "labels.jsonl").touch()
    rows = [{"id": f"c{n}", "claim": f"Claim number {n} is right"} for n in (1, 2)]
    (inputs / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments(folder / "services" / "arguments")
    of_task = [{"id": i, "measure": m, "truths": "labels/labels.jsonl"} for i, m in measures.items()]
    (folder / "task.yaml").write_text(json.dumps(TALK | {"measures": of_task} | keys, indent=1))
    return folder / "task.yaml"


def gateway(endpoint: OpenAIServer, network: str, **more: Any) -> dict[str, Any]:
    """Return the service of a task whose evaluator asks the endpoint."""
    service = {"base_url": endpoint.base_url, "key": "EXAMPLE_KEY", "models": ["judge-1"], "calls": 100}
    return service | {"tokens": 1_000_000, "network": network} | more


def evaluations(project: Project, task: str) -> list[Path]:
    """Return the folders of the evaluations of the only attempt, oldest first."""
    found = project.home.glob(f"archive/{task}/*/attempts/1/evaluations/*")
    return sorted(found, key=lambda path: int(path.name))


def judge_again(project: Project, task: str, endpoint: OpenAIServer) -> Said:
    """Evaluate again without a key: the files have the same bytes, and the model is not asked."""
    asked, (first,) = len(endpoint.chats), evaluations(project, task)
    said = cli(project, "reevaluate", "--all")
    _, second = evaluations(project, task)
    before, after = digests(first), digests(second)
    names = {"result.json", "scores.jsonl", "findings.jsonl"} | {"details.jsonl"} & before.keys()
    assert {name: after[name] for name in names} == {name: before[name] for name in names}
    record = json.loads((second / "evaluation.json").read_text())["gateway"]
    assert (record["asked"], record["replay"], len(endpoint.chats)) == (0, True, asked)
    return said


def assert_no_key(project: Project, *said: Said) -> None:
    """The key is in nothing that was printed or stored."""
    for one in said:
        assert CANARY not in one.all
    for path in project.home.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path
