"""Software in a room: nothing but the argument index can be reached, by the clients that participants use."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.workflows import interactive
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.sidecars import Service
from runner.model.task import Model
from runner.tasks.files import model_digest
from tests.worlds import interactive_jobs as jobs
from tests.worlds.openai_server import OpenAIServer

pytestmark = pytest.mark.engine
PROGRAM = (Path(__file__).parents[2] / "worlds" / "interactive_spy.py").read_text()
CANARY = "sk-canary-of-the-gateway"


@pytest.fixture
def found(
    engine: DockerEngine,
    scratch_image: ImageRef,
    sidecars_image: ImageRef,
    gateway_network: tuple[str, str],
    tmp_path: Path,
    attempt: str,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[list[dict[str, Any]], OpenAIServer]:
    """What the software found in each of its two turns, and the model's endpoint, with what reached it."""
    network, address = gateway_network
    monkeypatch.setenv("SPY_KEY", CANARY)
    with OpenAIServer("exact", text="I still think that this claim holds.", host=address) as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        options = {
            "base_url": server.base_url, "models": ["test-model"], "calls": 100, "tokens": 1_000_000,
            "network": network, "timeout": 30, "key": "SPY_KEY",
        }  # fmt: skip
        user = jobs.user(tmp_path / "data", options={"model": "base-user", "llm": {"model": "test-model"}})
        services = {
            "search": jobs.search(tmp_path / "data"),
            "user": user,
            "gateway": Service("gateway", options=options, limits=Limits(loopback=True, memory=512 * MIB)),
        }
        command = ("python3", "-c", PROGRAM, address, str(port))
        job = jobs.make_job(
            tmp_path / "task", image=scratch_image.id, sidecars=sidecars_image.id, command=command,
            services=services, claims=1, turns=2, answer_time=40.0, answer_bytes=1 << 20,
        )  # fmt: skip
        staging = tmp_path / "staging"
        staging.mkdir()
        done = interactive.run(job, engine, attempt, staging, lambda: False)
        assert done.verdict.name == "ok", (done.verdict, jobs.logs(staging))
        for path in staging.rglob("*"):
            assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path
    (line,) = (staging / "output" / "simulations.jsonl").read_text().splitlines()
    turns = json.loads(line)["simulation"]["userTurns"]
    return [json.loads(turn["systemResponse"]["utterance"]) for turn in turns], server


def test_there_is_no_way_to_gateway_user_or_driver(found: tuple[list[dict[str, Any]], OpenAIServer]) -> None:
    turns, server = found
    assert len(turns) == 2 and server.chats  # the model was asked, by the gateway: it was there all the time
    for seen in turns:
        # Network: a loopback with its own port and the index, and nothing that answers elsewhere.
        assert (seen["interfaces"], seen["listening"]) == (["lo"], [8080, 9200])
        for name in ("outside", "fetched", "named"):
            assert seen[name] in ("OSError", "URLError", "gaierror"), (name, seen[name])
        # Sockets: none to be found, none at the places where others have theirs, none without a place.
        assert seen["sockets"] == [] and seen["abstract"] == []
        assert set(seen["unix"].values()) == {"FileNotFoundError"}
        # The index is neither a proxy nor a way to the others.
        for head, said in seen["asked"].items():
            assert said.startswith("worked: HTTP/1.1 4"), (head, said)
        # Files, processes and environment: nothing of anybody else's.
        own = (
            "/inputs",
            "/in",
            "/out",
            "/log",
            "/data",
            "/gateway",
            "/user",
            "/search",
            "/software",
            "/sock",
        )
        assert not [place for place in seen["mounts"] if place.startswith(own)]
        assert seen["processes"] <= 3
        assert CANARY not in json.dumps(seen) and "SPY_KEY" not in json.dumps(seen)
        assert not [name for name in seen["environment"] if "KEY" in name or name.startswith("RUNNER")]
        # The driver says nothing about itself: neither the claims to come nor where it is.
        assert {name.lower() for name in seen["heard"]} <= {
            "host", "content-type", "content-length", "accept", "accept-encoding", "connection", "user-agent"
        }  # fmt: skip


def test_nothing_but_the_gateways_questions_reached_the_model(
    found: tuple[list[dict[str, Any]], OpenAIServer],
) -> None:
    _, server = found
    assert {request.headers.get("user-agent") for request in server.requests} == {"proctor-gateway"}
    assert {request.target for request in server.requests} == {"/v1/chat/completions"}
    assert {request.headers.get("authorization") for request in server.requests} == {f"Bearer {CANARY}"}


pytestmark = pytest.mark.engine
CLIENT = (Path(__file__).parents[2] / "worlds" / "interactive_client.py").read_text()
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


@pytest.mark.slow
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
        command=("python3", "-c", CLIENT), services=services, claims=1, turns=len(WAYS), answer_time=40.0,
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
