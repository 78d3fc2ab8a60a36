"""Interactive runs on a real engine: real sidecars, and softwares that misbehave in each way that has to be survived."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import schemas
from runner.engines.docker.engine import DockerEngine
from runner.execution.job import Executed
from runner.execution.workflows import interactive, servers
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.outcome import AttemptFacts, derive
from runner.model.sidecars import Service
from schemas.debates import digest_of_lines
from schemas.details import Detail
from tests.worlds import interactive_jobs as jobs
from tests.worlds.openai_server import OpenAIServer

pytestmark = pytest.mark.engine
PROGRAM = (Path(__file__).parents[2] / "worlds" / "interactive_server.py").read_text()
Execute = Callable[..., Executed]


@pytest.fixture
def held(
    engine: DockerEngine, scratch_image: ImageRef, sidecars_image: ImageRef, tmp_path: Path, attempt: str
) -> Execute:
    """Executes a job whose software behaves as named; output and logs are in ``tmp_path / 'staging'``."""

    def execute(how: str, cancelled: Callable[[], bool] = lambda: False, **changes: Any) -> Executed:
        folder = tmp_path / f"task-{len(list(tmp_path.iterdir()))}"
        job = jobs.make_job(
            folder,
            image=scratch_image.id,
            sidecars=sidecars_image.id,
            command=("python3", "-c", PROGRAM, how),
            **changes,
        )
        staging = tmp_path / "staging" / how
        staging.mkdir(parents=True)
        return interactive.run(job, engine, f"{attempt}-{how}", staging, cancelled)

    return execute


def lines(tmp_path: Path, how: str, name: str) -> list[Any]:
    text = (tmp_path / "staging" / how / "output" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def classes(tmp_path: Path, how: str) -> list[str | None]:
    return [turn["failure"] and turn["failure"]["class"] for turn in lines(tmp_path, how, "turns.jsonl")]


def logs(tmp_path: Path, how: str) -> str:
    """Everything that was said, for the message of a failing test."""
    return jobs.logs(tmp_path / "staging" / how)


def our_failure(done: Executed, title: str, message: str = "") -> None:
    """Assert that a run failed on our side, by the part of this title."""
    assert (done.verdict.name, done.verdict.blame) == ("platform-error", "platform"), (done.verdict, message)
    assert title in str(done.verdict.detail), message


@pytest.mark.slow
def test_a_good_software_debates_and_does_so_again(held: Execute, tmp_path: Path) -> None:
    digests = []
    for _ in range(2):
        done = held("good", claims=4, turns=5)
        assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "good"))
        assert done.verdict.warnings == ()
        assert set(done.collected.files) == {"simulations.jsonl", "turns.jsonl", "served.jsonl"}
        assert classes(tmp_path, "good") == [None] * 20
        turns = lines(tmp_path, "good", "turns.jsonl")
        assert all(turn["arguments"] == 1 and turn["argument_ids"][0].startswith("7.") for turn in turns)
        assert [turn["target"] for turn in turns[:5]] == [None, 1, 2, 3, 4]
        digests.append(digest_of_lines(lines(tmp_path, "good", "simulations.jsonl")))
        # What the index served to this run is what the software claims to have retrieved.
        served = lines(tmp_path, "good", "served.jsonl")
        assert {hit for line in served for hit in line["hits"]} >= {t["argument_ids"][0] for t in turns}
        assert len(served) == 20
        assert (tmp_path / "staging" / "good" / "logs" / "stdout.log").read_text().count("turn 1") == 4
        assert done.exit is not None and (done.exit.killed, done.exit.resources.memory_peak) != (None, None)
        (tmp_path / "staging" / "good").rename(tmp_path / f"done-{len(digests)}")
    assert digests[0] == digests[1]


FAULTS = {
    "html": "not-json",
    "empty": "empty",
    "large": "too-large",
    "broken": "not-json",
    "wrong": "wrong-type",
    "error": "status",
    "many": "too-large",
    "closes": "connection",
    "hangs": "timeout",
    "late": "timeout",
    "drips": "timeout",
}


@pytest.mark.slow
def test_every_bad_answer_is_a_defect_of_its_turn(held: Execute, tmp_path: Path) -> None:
    """One debate a fault, beside a good one, all at once."""
    claims = [{"id": name, "claim": f"fault:{name} is what happens"} for name in (*FAULTS, "good")]
    text = "".join(json.dumps(row) + "\n" for row in claims)
    done = _with_claims(held, text)
    assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "good"))
    found: dict[str, set[Any]] = {}
    for turn in lines(tmp_path, "good", "turns.jsonl"):
        found.setdefault(turn["id"], set()).add(turn["failure"] and turn["failure"]["class"])
    assert found == {**{name: {kind} for name, kind in FAULTS.items()}, "good": {None}}
    failed = done.verdict.warnings[0]
    assert (failed.kind, failed.fields["failed"], failed.fields["turns"]) == ("answers-failed", 22, 24)


def _with_claims(held: Execute, text: str, **changes: Any) -> Executed:
    original = jobs.make_job

    def make(folder: Path, **more: Any) -> Any:
        job = original(folder, **more)
        (job.dataset.inputs / "claims.jsonl").write_text(text)
        view = jobs.files_digest(jobs.folder_files(job.dataset.inputs))
        return replace(job, lock={"digests": {"view": view}})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "make_job", make)
        return held("good", turns=2, answer_time=6.0, concurrency=12, **changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "name", "detail"),
    [
        ("never-listens", "unhealthy", Detail("never-listened", port=8080, seconds=2.0)),
        ("exits", "run-error", Detail("exit-code", code=3)),
    ],
)
def test_servers_that_never_become_ready(
    held: Execute, tmp_path: Path, how: str, name: str, detail: Detail
) -> None:
    done = held(how, ready=2.0)
    assert (done.verdict.name, done.verdict.detail) == (name, detail), logs(tmp_path, how)
    assert done.run_file is None


@pytest.mark.slow
def test_a_server_that_dies_at_turn_three(held: Execute, tmp_path: Path) -> None:
    done = held("dies", claims=2, turns=5, concurrency=1)
    assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "dies"))
    assert classes(tmp_path, "dies") == [None, None] + ["server-ended"] * 8
    failed = Detail("answers-failed", failed=8, turns=10, classes={"server-ended": 8})
    assert {str(Detail("server-ended", code=7)), str(failed)} <= set(map(str, done.verdict.warnings))


@pytest.mark.slow
def test_a_server_that_runs_out_of_memory(held: Execute, tmp_path: Path) -> None:
    limits = Limits(loopback=True, memory=128 * MIB, wall_clock=60, output=8 * MIB)
    done = held("eats-memory", claims=1, limits=limits)
    assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "eats-memory"))
    assert classes(tmp_path, "eats-memory") == [None, "server-ended", "server-ended"]
    assert "server-ended-memory" in [warning.kind for warning in done.verdict.warnings]


FLOODS = {"claims": 1, "turns": 2, "answer_time": 2.0, "ready": 20.0}
THINKS = {"claims": 2, "turns": 1, "concurrency": 2, "answer_time": 30.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "options", "turns", "good"),
    [
        ("forks", {"claims": 1, "answer_time": 6.0}, 3, 1),  # a fork bomb
        ("floods", FLOODS, 2, 0),  # connections to the index, whose way for this software they block
        ("thinks", THINKS, 2, 2),  # its connection through the relay is kept meanwhile
    ],
)
def test_the_debate_goes_on_with_software_that_takes_much(
    held: Execute, tmp_path: Path, how: str, options: dict[str, Any], turns: int, good: int
) -> None:
    done = held(how, **options)
    assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, how))
    found = classes(tmp_path, how)
    assert len(found) == turns and found[:good] == [None] * good, logs(tmp_path, how)


@pytest.mark.slow
def test_the_end_of_the_runs_time(held: Execute, tmp_path: Path) -> None:
    limits = Limits(loopback=True, memory=256 * MIB, wall_clock=3, output=8 * MIB)
    done = held("hangs", claims=2, limits=limits, answer_time=30.0)
    assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "hangs"))
    assert classes(tmp_path, "hangs") == ["run-limit"] * 6


FOREIGN = """
import os, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def do_POST(self):
        print("boom", flush=True); os._exit(9)
http.server.ThreadingHTTPServer(("127.0.0.1", 9333), Handler).serve_forever()
"""


# One request at a time, and none is answered.
STARVING = FOREIGN.replace('print("boom", flush=True); os._exit(9)', "__import__('time').sleep(600)")
STARVING = STARVING.replace("ThreadingHTTPServer", "HTTPServer")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "kind", "ends"),
    [(FOREIGN, "reachable-ended", 9), (STARVING, "reachable-silent", 3)],
    ids=["breaks", "starves"],
)
def test_an_index_that_the_software_breaks_or_starves_is_disputed(
    held: Execute,
    tmp_path: Path,
    scratch_image: ImageRef,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    kind: str,
    ends: int,
) -> None:
    """The index is a foreign server on its own relay."""
    monkeypatch.setattr(servers, "PATIENCE", 3.0)
    options = {"server_port": 9333, "command": ["python3", "-c", code]}
    index = jobs.search(tmp_path / "data", image=scratch_image.id, data=None, options=options)
    services = {"search": index, "user": jobs.user(tmp_path / "data")}
    done = held("kills-the-index", claims=1, services=services, answer_time=20.0)
    assert done.verdict.name == "disputed", (done.verdict, logs(tmp_path, "kills-the-index"))
    detail = done.verdict.detail
    assert detail is not None and (detail.kind, detail.fields["part"]) == (kind, "argument index")
    assert (detail.fields["how"]["code"], done.verdict.blame) == (ends, "none")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "title"),
    [("search", "argument index"), ("relay", "relay"), ("user", "simulated user"), ("driver", "driver")],
)
def test_a_part_of_ours_that_ends_in_the_middle(
    held: Execute, engine: DockerEngine, attempt: str, tmp_path: Path, part: str, title: str
) -> None:
    """The engine says that it was told to end them: no software can do that, wherever it reaches."""
    killed = threading.Event()
    killer = threading.Thread(target=kill_part, args=(engine, f"{attempt}-hangs", part, killed))
    killer.start()
    done = held("hangs", claims=1, turns=2, answer_time=30.0)
    killer.join()
    assert killed.is_set()
    our_failure(done, title, logs(tmp_path, "hangs"))


def kill_part(engine: DockerEngine, attempt: str, part: str, killed: threading.Event) -> None:
    """Kill a container of ours as soon as the software of the attempt has been asked something."""
    api = engine.clients.get()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = {}
        for one in api.containers(filters={"label": [f"proctor.attempt={attempt}"]}):
            config = api.inspect_container(one["Id"])["Config"]
            words = [*(config["Entrypoint"] or ()), *(config["Cmd"] or ())]
            if f"sidecars.{part}" in words:
                found[part] = one["Id"]
            elif words[-1:] == ["hangs"]:
                found["software"] = one["Id"]
        if {"software", part} <= found.keys() and b"turn 1" in api.logs(found["software"], stderr=False):
            api.kill(found[part])
            killed.set()
            return
        time.sleep(0.2)


@pytest.mark.slow
def test_two_debates_on_one_claim_at_once(held: Execute, tmp_path: Path) -> None:
    """The same claim under two ids and under one: debates that a stateless server cannot mix up."""
    names = ("a", "b", "b")
    text = "".join(json.dumps({"id": name, "claim": "Claim number 1 is right"}) + "\n" for name in names)
    done = _with_claims(held, text)
    assert (done.verdict.name, done.verdict.warnings) == ("ok", ()), logs(tmp_path, "good")
    found = lines(tmp_path, "good", "simulations.jsonl")
    assert [one["configuration"]["topic"]["id"] for one in (row["simulation"] for row in found)] == [*names]
    assert len({digest_of_lines([row]) for row in found}) == 1
    turns = lines(tmp_path, "good", "turns.jsonl")
    assert [(turn["debate"], turn["turn"]) for turn in turns] == [(d, t) for d in (1, 2, 3) for t in (1, 2)]


def test_a_user_that_cannot_start_is_our_failure(held: Execute, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "README").write_text("no arguments here")
    services = {"user": replace(jobs.user(tmp_path / "data"), data=empty)}
    our_failure(held("good", services=services), "simulated user")


def test_an_index_that_refuses_its_vectors_is_held_at_once(held: Execute, tmp_path: Path) -> None:
    """As fast as it ends, with what it says; nobody tries again what would end the same way."""
    services = {"search": jobs.search(tmp_path / "index"), "user": jobs.user(tmp_path / "data")}
    np.save(tmp_path / "index" / "text_embedding.npy", np.zeros((3, 4), dtype=np.float16))
    started = time.monotonic()
    done = held("good", services=services)
    assert time.monotonic() - started < 40, "not the two minutes that an index may take"
    our_failure(done, "argument index")
    assert done.verdict.detail is not None and done.verdict.detail.code == "E402"
    assert "text_embedding.npy: 3 " in str(done.verdict.detail)
    assert derive([AttemptFacts(1, "platform-error", done.verdict.detail)]).name == "held"


@pytest.mark.slow
def test_cancelling_in_the_middle(held: Execute, tmp_path: Path) -> None:
    asked = threading.Event()
    threading.Timer(6.0, asked.set).start()
    started = time.monotonic()
    done = held("hangs", asked.is_set, claims=1, answer_time=50.0)
    assert done.verdict.name == "cancelled" and time.monotonic() - started < 30


def test_a_judge(held: Execute, tmp_path: Path) -> None:
    turn = {
        "utterance": "u",
        "systemResponse": {"utterance": "s", "response": {"content": "s", "arguments": []}},
    }
    debates = json.dumps({"simulation": {"userTurns": [turn, turn]}}) + "\n{}\n"
    done = held("judge", services={}, debates=debates)
    assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "judge"))
    assert done.run_file == "evaluations.jsonl"
    one, none = lines(tmp_path, "judge", "evaluations.jsonl")
    assert none == {} and len(one["userTurnsEvaluations"]) == 2
    assert one["userTurnsEvaluations"][1]["Manner"]["explanation"] == "/manner"
    records = lines(tmp_path, "judge", "turns.jsonl")
    assert len(records) == 4 * 3 and schemas.validate(records[0], "turn") == []


@pytest.fixture
def model(gateway_network: tuple[str, str]) -> Callable[..., OpenAIServer]:
    """Makes an OpenAI-compatible server that a gateway can reach."""

    def make(mode: str) -> OpenAIServer:
        return OpenAIServer(mode, text="I still think that this claim holds.", host=gateway_network[1])

    return make


def asks_a_model(server: OpenAIServer, network: str, data: Path) -> dict[str, Service]:
    """A simulated user that is a language model, and the gateway that it needs."""
    options = {
        "base_url": server.base_url, "models": ["test-model"], "calls": 100, "tokens": 1_000_000,
        "network": network, "timeout": 5,
    }  # fmt: skip
    gateway = Service("gateway", options=options, limits=Limits(loopback=True, memory=512 * MIB))
    user = jobs.user(data, options={"model": "base-user", "llm": {"model": "test-model"}})
    return {"search": jobs.search(data), "user": user, "gateway": gateway}


@pytest.mark.slow
def test_a_user_that_is_a_language_model(
    held: Execute, tmp_path: Path, model: Callable[..., OpenAIServer], gateway_network: tuple[str, str]
) -> None:
    with model("exact") as server:
        services = asks_a_model(server, gateway_network[0], tmp_path / "data")
        done = held("good", claims=1, turns=2, services=services)
        assert done.verdict.name == "ok", (done.verdict, logs(tmp_path, "good"))
        assert server.chats
    (line,) = lines(tmp_path, "good", "simulations.jsonl")
    assert "claim holds" in line["simulation"]["userTurns"][1]["utterance"]
    staging = tmp_path / "staging" / "good"
    assert {path.name for path in staging.iterdir()} == {"output", "logs", "calls.jsonl", "replies.jsonl"}
    assert (staging / "logs" / "gateway.log").is_file()


@pytest.mark.slow
def test_a_language_model_that_fails_is_our_failure(
    held: Execute, tmp_path: Path, model: Callable[..., OpenAIServer], gateway_network: tuple[str, str]
) -> None:
    with model("always-500") as server:
        services = asks_a_model(server, gateway_network[0], tmp_path / "data")
        done = held("good", claims=1, turns=2, services=services)
    our_failure(done, "simulated user", logs(tmp_path, "good"))


@pytest.mark.slow
def test_a_gateway_that_ends_in_the_middle_is_our_failure(
    held: Execute,
    engine: DockerEngine,
    attempt: str,
    tmp_path: Path,
    model: Callable[..., OpenAIServer],
    gateway_network: tuple[str, str],
) -> None:
    """The software cannot reach it: nobody disputes that, and it is tried again."""
    killed = threading.Event()
    killer = threading.Thread(target=kill_part, args=(engine, f"{attempt}-hangs", "gateway", killed))
    with model("exact") as server:
        services = asks_a_model(server, gateway_network[0], tmp_path / "data")
        killer.start()
        done = held("hangs", claims=1, turns=2, services=services, answer_time=30.0)
        killer.join()
    assert killed.is_set()
    our_failure(done, "gateway", logs(tmp_path, "hangs"))
    assert derive([AttemptFacts(1, "platform-error", done.verdict.detail)]).todo == "run"
