"""The clients that participants use find the argument index where the room announces it, and need no change."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.workflows import interactive
from runner.model.container import ImageRef
from runner.model.task import Model
from runner.tasks.files import model_digest
from tests.worlds import interactive_jobs as jobs

pytestmark = pytest.mark.engine
PROGRAM = (Path(__file__).parents[2] / "worlds" / "interactive_client.py").read_text()
# What pip installs for the official clients; all of it is plain Python.
PACKAGES = (
    "elasticsearch8", "elasticsearch9", "elastic-transport", "urllib3", "certifi", "python-dateutil", "tzdata",
    "typing-extensions",
)  # fmt: skip
WAYS = ["elasticsearch8", "elasticsearch9", "fetch", "curl", "genirsim", "knn"]


def clients(folder: Path) -> Model:
    """The packages as this environment has them, to be mounted as the task's models are."""
    for name in PACKAGES:
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            wanted = file.suffix in (".py", ".pem") or file.name == "METADATA"
            if wanted and not str(file).startswith(".."):
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), target)
    made = Model(folder, "/client", "")
    return replace(made, digest=model_digest(made))


@pytest.mark.timeout(900)
def test_official_clients_and_plain_requests_in_the_room(
    engine: DockerEngine, scratch_image: ImageRef, sidecars_image: ImageRef, tmp_path: Path, attempt: str
) -> None:
    services = {"search": jobs.search(tmp_path / "data"), "user": jobs.user(tmp_path / "data")}
    vectors = np.random.default_rng(1).normal(size=(12, 1024)).astype("float32")
    for field in ("text", "supports", "attacks"):
        np.save(tmp_path / "data" / f"{field}_embedding_stella.npy", vectors)
    job = jobs.make_job(
        tmp_path / "task", image=scratch_image.id, sidecars=sidecars_image.id,
        command=("python3", "-c", PROGRAM), services=services, claims=1, turns=len(WAYS), answer_time=40.0,
    )  # fmt: skip
    job = replace(job, models=(clients(tmp_path / "client"),))
    staging = tmp_path / "staging"
    staging.mkdir()
    done = interactive.run(job, engine, attempt, staging, lambda: False)
    said = (staging / "logs" / "stderr.log").read_text()
    assert (done.verdict.name, done.verdict.warnings) == ("ok", ()), (done.verdict, said[-3000:])
    (line,) = (staging / "output" / "simulations.jsonl").read_text().splitlines()
    turns = json.loads(line)["simulation"]["userTurns"]
    answers = [turn["systemResponse"]["response"] for turn in turns]
    assert [answer["content"] for answer in answers] == WAYS
    assert [len(answer["arguments"]) for answer in answers] == [1, 1, 1, 10, 1, 3]
    assert (
        len({answer["arguments"][0]["id"] for answer in answers[:3]}) == 1
    )  # the same question, the same hit
    # All of it stands in the index's own record, which provenance is checked against.
    rows = [json.loads(row) for row in (staging / "output" / "served.jsonl").read_text().splitlines()]
    served = [row["hits"] for row in rows if row["status"] == 200]
    assert served == [[shown["id"] for shown in answer["arguments"]] for answer in answers]
    assert [row["status"] for row in rows if row["status"] != 200] == [404, 404]
