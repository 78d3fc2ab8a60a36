"""Interaction, services and several workflows in task.yaml: what is read, what is refused, what they change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.execution.job import Job
from runner.execution.lock import make_job
from runner.execution.schedule import needs_of
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.limits import GIB, MIB, Limits
from runner.model.sidecars import SIDECARS as SPECS
from runner.model.sidecars import Interaction
from runner.model.task import Task
from runner.submissions.bundle import Bundle, bundle_digest, describe
from runner.submissions.load import load_submission
from runner.tasks.check_data import task_problems
from runner.tasks.files import work_digest
from runner.tasks.load import load_task
from runner.tasks.services import (
    gateway_key,
    gateway_ready,
    room_limits,
    service_digest,
    services_of_run,
)
from tests.worlds import definitions
from tests.worlds.definitions import told

GATEWAY: dict[str, Any] = {
    "base_url": "https://models.example.org/v1",
    "key": "EXAMPLE_KEY",
    "models": ["small-1", "large-1"],
    "calls": 100,
    "tokens": 1000,
}
SERVICES: dict[str, Any] = {
    "search": {"data": "services/arguments", "limits": {"memory": "1GiB"}},
    "user": {"model": "any-user", "data": "services/arguments"},
}
DEBATE: dict[str, Any] = {
    "workflow": "interactive",
    "output": "simulations.jsonl",
    "interaction": {"mode": "debate", "ready": "90s", "answer": {"time": "20s", "bytes": "64KiB"}, "seed": 2025},
    "services": SERVICES,
}  # fmt: skip


JUDGE = {
    "workflow": ["interactive", "batch"],
    "interaction": {"mode": "judge"},
    "output": "evaluations.jsonl",
}

PRIVATE_HOSTS = ["127.0.0.1:8000", "localhost", "10.1.2.3:1", "[::1]:80", "llm.internal"]


def with_gateway(**changes: Any) -> dict[str, Any]:
    """A batch task whose evaluator asks models."""
    gateway = {key: value for key, value in {**GATEWAY, **changes}.items() if value is not None}
    return {"evaluator": {"gateway": True}, "services": {"gateway": gateway}}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return definitions.project(tmp_path)


def write(config: Config, changes: Mapping[str, Any], *, files: bool = True) -> Path:
    """A task with ``changes``, and the files that its driver and services read."""
    folder = definitions.write_task(config, **changes)
    if files:
        for dataset in ("dev", "test"):
            for name in ("claims.jsonl", "debates.jsonl"):
                (folder / f"datasets/{dataset}/inputs/{name}").write_text('{"id": "1", "claim": "x"}\n')
        (folder / "services/arguments").mkdir(parents=True)
        (folder / "services/arguments/arguments.jsonl").write_text('{"id": "1.1", "text": "x"}\n')
    return folder


def refused(config: Config, changes: Mapping[str, Any]) -> str:
    """Everything that is said of a definition that cannot be used."""
    write(config, changes)
    with pytest.raises(RunnerError) as caught:
        load_task(config, "toy")
    assert caught.value.code == "E401"
    return told(caught.value)


def changed(base: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """``base`` with the key at ``a.b.c`` set, or removed (None)."""
    made = deepcopy(dict(base))
    *above, last = path.split(".")
    at = made
    for key in above:
        at = at.setdefault(key, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return made


# --- what is read ------------------------------------------------------------------------------------------


def test_a_debate_is_read_with_its_defaults(config: Config) -> None:
    folder = write(config, DEBATE)
    task = load_task(config, "toy")
    assert (task.workflow, task.workflows) == ("interactive", ("interactive",))
    assert task.interaction == Interaction(
        "debate", ready=90.0, answer_time=20.0, answer_bytes=65536, seed=2025
    )
    assert task.interaction.input == "claims.jsonl"
    assert list(task.services) == ["search", "user"]
    search = task.services["search"]
    assert (search.data, search.image, search.limits.memory) == (folder / "services/arguments", None, GIB)
    assert task.needs_sidecars and task.evaluation_gateway is None
    assert task_problems(task, config) == []


def test_a_batch_task_has_none_of_it(config: Config) -> None:
    write(config, {})
    task = load_task(config, "toy")
    assert (task.workflows, task.interaction, dict(task.services)) == (("batch",), None, {})
    assert not task.needs_sidecars


def test_the_gateway_of_an_evaluator(config: Config) -> None:
    write(config, with_gateway(cost=2.5, price={"input": 0.15, "output": 0.6}))
    task = load_task(config, "toy")
    gateway = task.evaluation_gateway
    assert gateway is not None and gateway.options["models"] == ["small-1", "large-1"]
    assert task.needs_sidecars and task_problems(task, config) == []


def test_a_foreign_index(config: Config) -> None:
    image = f"elasticsearch@sha256:{'0' * 64}"
    search = {
        "image": image, "server_port": 9200, "env": {"discovery.type": "single-node"},
        "command": ["elasticsearch", "-Ecluster.name=a b"], "health": "/_cluster/health?timeout=1s",
    }  # fmt: skip
    write(config, changed(DEBATE, "services.search", search))
    task = load_task(config, "toy")
    assert (task.services["search"].image, task.services["search"].data) == (image, None)
    assert task.services["search"].options["health"] == "/_cluster/health?timeout=1s"
    assert task.services["search"].options["command"] == ["elasticsearch", "-Ecluster.name=a b"]
    assert task_problems(task, config) == []


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("interaction", None, "interaction"),
        ("output", None, "simulations.jsonl"),
        ("output", "run.txt", "simulations.jsonl"),
        ("interaction.mode", "chat", "debate, judge"),
        ("interaction.mode", None, '"mode"'),
        ("interaction.port", 80, "1024"),
        ("interaction.concurrency", 0, '"concurrency"'),
        ("interaction.turns", 1000, "50"),
        ("workflow", "batch", "interaction"),
        ("workflow", ["interactive", "batch"], "batch"),
        ("workflow", ["interactive", "upload"], "batch, interactive"),
        ("workflow", [], "workflow"),
        ("workflow", "talk", "`interactive`"),
        ("services.user", None, "user"),
        ("services.user.data", None, '"data"'),
        ("services.user.data", "../elsewhere", "../elsewhere"),
        ("services.search.data", None, "data"),
        ("services.search", {}, "data"),
        ("services.search.data", "/etc", "/etc"),
        ("services.search.port", 8080, "port"),
        ("services.search.server_port", 9300, "server_port"),
        ("services.search.command", ["x"], "command"),
        ("services.search.health", "/", "health"),
        ("services.search.health", "healthz", "/_cluster/health"),
        ("services.search.health", "/a\r\nHost: b", "/_cluster/health"),
        ("services.search.command", "elasticsearch", '"command"'),
        ("services.search.image", "elasticsearch:8", "digest"),
        ("services.search.prefix", "arguments", "/arguments"),
        ("services.search.limits", {"memory": "0MiB"}, "0MiB"),
        ("services.other", {}, "other"),
        ("services.user.llm", {"model": "small-1"}, "gateway"),
        ("services.gateway", GATEWAY, "gateway"),
        ("evaluator", {"gateway": True}, "gateway"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_debate_is_refused(config: Config, path: str, value: Any, expected: str) -> None:
    assert expected in refused(config, changed(DEBATE, path, value))


def test_all_problems_come_at_once(config: Config) -> None:
    wrong = changed(changed(DEBATE, "output", "run.txt"), "services.search.port", 8080)
    text = refused(config, changed(wrong, "services.user.data", "../x"))
    assert "simulations.jsonl" in text and "port" in text and "../x" in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({**JUDGE, "services": {"user": SERVICES["user"]}}, "mode debate"),
        ({"services": SERVICES}, "interactive"),
    ],
)
def test_services_without_a_use_are_refused(config: Config, changes: dict[str, Any], expected: str) -> None:
    assert expected in refused(config, changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"base_url": "https://user:hunter2@models.example.org/v1"}, "base_url"),
        ({"base_url": "https://hunter2@models.example.org/v1"}, "base_url"),
        ({"base_url": "https://models.example.org/v1?key=hunter2"}, "base_url"),
        ({"base_url": "https://models.example.org:99999/v1"}, "base_url"),
        ({"base_url": "https:///v1"}, "base_url"),
        ({"base_url": "http://models.example.org/v1"}, "http"),
        ({"base_url": "ftp://models.example.org"}, "https"),
        ({"key": "sk-hunter2hunter2hunter2"}, "_API_KEY"),
        ({"key": "hunter2"}, "_API_KEY"),
        ({"models": []}, "models"),
        ({"models": ["a b"]}, "models"),
        ({"calls": None}, '"calls"'),
        ({"tokens": None}, '"tokens"'),
        ({"calls": 0}, '"calls"'),
        ({"cost": 5.0}, "price"),
        ({"network": "a b"}, "network"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_gateways_without_secrets(config: Config, changes: dict[str, Any], expected: str) -> None:
    text = refused(config, with_gateway(**changes))
    assert expected in text
    assert "hunter2" not in text


@pytest.mark.parametrize("url", [f"http://{host}/v1" for host in PRIVATE_HOSTS])
def test_an_endpoint_in_a_private_network_may_be_http(config: Config, url: str) -> None:
    write(config, with_gateway(base_url=url))
    assert load_task(config, "toy").services["gateway"].options["base_url"] == url


def test_the_users_model_must_be_one_of_the_gateways(config: Config) -> None:
    services = {
        **SERVICES,
        "gateway": GATEWAY,
        "user": {**SERVICES["user"], "llm": {"model": "small-2", "prompts": "prompts"}},
    }
    text = refused(config, {**DEBATE, "services": services})
    assert '"small-2"' in text and "small-1" in text


@pytest.mark.parametrize("place", ["datasets/dev/truths", "datasets/dev", "datasets/dev/truths/deeper"])
def test_truths_must_not_lie_in_the_data_of_a_service(config: Config, place: str) -> None:
    text = refused(config, changed(DEBATE, "services.search.data", place))
    assert "truths" in text and "search" in text


def test_the_files_of_services_are_checked(config: Config) -> None:
    folder = write(config, DEBATE)
    data = folder / "services/arguments"
    (data / "arguments.jsonl").rename(data / "other.jsonl")
    (folder / "datasets/dev/inputs/claims.jsonl").unlink()
    found = "\n".join(str(p) for p in task_problems(load_task(config, "toy"), config))
    assert found.count("arguments.jsonl") == 2 and '"dev"' in found and "claims.jsonl" in found
    (data / "other.jsonl").unlink()
    data.rmdir()
    found = "\n".join(str(p) for p in task_problems(load_task(config, "toy"), config))
    assert "service search" in found


def test_a_copy_of_truths_among_the_data_of_a_service_is_a_leak(config: Config) -> None:
    folder = write(config, DEBATE)
    (folder / "services/arguments/help.txt").write_text("test-1 0 d1 1\n")
    found = "\n".join(str(p) for p in task_problems(load_task(config, "toy"), config))
    assert "service search" in found and "help.txt" in found


def test_a_view_that_hides_the_drivers_file_is_found(config: Config) -> None:
    scenarios = [{"id": "default", "files": ["documents.jsonl"]}, {"id": "all"}]
    write(config, {**DEBATE, "scenarios": scenarios})
    found = "\n".join(str(p) for p in task_problems(load_task(config, "toy"), config))
    assert '"dev"' in found and "claims.jsonl" in found and "line" not in found


# --- identity ----------------------------------------------------------------------------------------------


def test_a_services_digest_covers_its_files_and_options(config: Config) -> None:
    folder = write(config, DEBATE)
    task = load_task(config, "toy")
    before = {name: service_digest(one) for name, one in task.services.items()}
    assert before["search"] != before["user"]
    assert service_digest(replace(task.services["search"], limits=Limits())) == before["search"]
    (folder / "services/arguments/arguments.jsonl").write_text('{"id": "1.1", "text": "xyz"}\n')
    after = {name: service_digest(one) for name, one in task.services.items()}
    assert all(before[name] != after[name] for name in before)


def test_the_gateways_identity_is_its_models_alone(config: Config) -> None:
    write(config, with_gateway())
    gateway = load_task(config, "toy").services["gateway"]
    other = {**gateway.options, "base_url": "http://127.0.0.1:1/v1", "calls": 1, "network": "host"}
    assert service_digest(replace(gateway, options=other)) == service_digest(gateway)
    assert service_digest(replace(gateway, options={**other, "models": ["x"]})) != service_digest(gateway)


def test_the_key_is_read_from_the_environment(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    write(config, with_gateway())
    gateway = load_task(config, "toy").services["gateway"]
    monkeypatch.delenv("EXAMPLE_KEY", raising=False)
    assert gateway_key(gateway) is None and not gateway_ready(gateway)
    monkeypatch.setenv("EXAMPLE_KEY", "hunter2")
    assert gateway_key(gateway) == "hunter2" and gateway_ready(gateway)
    assert "hunter2" not in repr(gateway)
    open_ = replace(gateway, options={k: v for k, v in gateway.options.items() if k != "key"})
    assert gateway_key(open_) is None and gateway_ready(open_)


# --- submissions, jobs and locks -----------------------------------------------------------------------------

IMAGE = {"id": "sha256:" + "1" * 64, "repo_digest": None, "platform": "linux/amd64", "archive": None}
SIDECARS = "sha256:" + "2" * 64


def job(task: Task, *, sidecars: str | None = SIDECARS, **more: Any) -> Job:
    """The job of a software of ``task``, as its bundle says."""
    data = {
        "schema_version": 1, "team": "alpha", "software": "one", "task": "toy", "scenarios": ["default"],
        "image": IMAGE, "runs": [], "command": None, "tag": "one", "description": "", "method": "automatic",
        "inputs": {}, "check": None, "packed": "2026-01-01T00:00:00Z", **more,
    }  # fmt: skip
    bundle = Bundle(Path("nowhere"), data, bundle_digest(data))
    dataset = task.datasets["test"]
    return make_job(bundle, task, dataset, "default", own_profile=True, sidecars=sidecars, replies=Path("r"))


def test_a_submission_chooses_its_workflow(config: Config) -> None:
    write(config, JUDGE)
    definitions.write_submission(config, "task: toy\nbuild: {}\nworkflow: batch\n")
    definitions.write_submission(config, "task: toy\nbuild: {}\n", software="two")
    task = load_task(config, "toy")
    one, two = (load_submission(config, "alpha", name) for name in ("one", "two"))
    assert (one.workflow, two.workflow) == ("batch", None)
    assert describe(one, None)["workflow"] == "batch" and "workflow" not in describe(two, None)
    batch, server = job(task, workflow="batch"), job(task)
    assert (batch.workflow, server.workflow) == ("batch", "interactive")
    assert batch.sidecars is None and "sidecars" not in batch.lock
    assert server.sidecars == SIDECARS and server.env["PORT"] == "8080"
    assert "inputDataset" in batch.env and "inputDataset" not in server.env


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("build: {}\nworkflow: interactive\n", '"interactive"'),
        ("build: {}\nworkflow: upload\n", "batch, interactive"),
        ("run: run.txt\nworkflow: batch\n", "workflow"),
    ],
)
def test_a_choice_that_is_none_is_refused(config: Config, text: str, says: str) -> None:
    write(config, {"uploads": True})
    folder = definitions.write_submission(config, f"task: toy\n{text}")
    (folder / "run.txt").write_text("x")
    with pytest.raises(RunnerError) as caught:
        load_submission(config, "alpha", "one")
    assert says in told(caught.value)


def test_a_bundle_whose_workflow_is_not_offered_any_more(config: Config) -> None:
    write(config, {})
    with pytest.raises(RunnerError, check=lambda error: error.code == "E207"):
        job(load_task(config, "toy"), workflow="interactive")


def test_the_lock_of_a_server_pins_what_it_talks_to(config: Config) -> None:
    folder = write(config, DEBATE)
    task = load_task(config, "toy")
    made = job(task)
    assert made.env["ARGUMENTS_URL"] == made.env["ELASTICSEARCH_URL"] == "http://127.0.0.1:9200/arguments"
    assert made.env["ARGUMENTS_INDEX"] == "claimrev"
    assert set(made.services) == {"search", "user"} and made.replies is None
    assert made.lock["sidecars"] == SIDECARS and made.lock["interaction"]["seed"] == 2025
    assert job(task).lock_digest == made.lock_digest
    assert job(task, sidecars="sha256:" + "3" * 64).lock_digest != made.lock_digest
    (folder / "services/arguments/arguments.jsonl").write_text('{"id": "1.1", "text": "y"}\n')
    assert job(task).lock_digest != made.lock_digest
    json.dumps(made.lock)


def test_budget_and_address_of_the_gateway_are_not_the_work(config: Config) -> None:
    user = {**SERVICES["user"], "llm": {"model": "small-1"}}
    write(config, {**DEBATE, "services": {"user": user, "gateway": GATEWAY}})
    task = load_task(config, "toy")
    made = job(task)
    assert set(made.services) == {"user", "gateway"} and made.replies == Path("r")
    gateway = task.services["gateway"]
    cheaper = replace(gateway, options={**gateway.options, "calls": 1, "base_url": "http://other.example"})
    same = replace(task, services={**task.services, "gateway": cheaper})
    assert job(same).lock_digest == made.lock_digest
    assert "models.example.org" not in json.dumps(made.lock)


def test_other_locks_are_what_they_were(config: Config) -> None:
    """A batch task that learns of a second workflow or of a gateway starts none of its runs again."""
    write(config, {"output": "evaluations.jsonl"})
    task = load_task(config, "toy")
    before = job(task)
    both = replace(task, workflow="interactive", workflows=("interactive", "batch"), interaction=Interaction("judge"))  # fmt: skip
    assert work_digest(both, "batch") == work_digest(task)
    assert job(both, workflow="batch").lock["digests"] == before.lock["digests"]
    assert set(before.lock) == set(job(both, workflow="batch").lock)


def test_memory_of_the_whole_room_is_planned_with(config: Config) -> None:
    write(config, DEBATE)
    task = load_task(config, "toy")
    alone = task.limits
    room = needs_of(task, None, "execute")
    assert room == alone  # of an unknown bundle nothing is known
    bundle = Bundle(Path("nowhere"), {"runs": []}, "")
    room = needs_of(task, bundle, "execute")
    beside = sum(one.limits.memory for one in task.services.values()) + 64 * MIB  # what watches the index
    assert room.memory == alone.memory + beside + sum(
        SPECS[name].limits.memory for name in ("driver", "relay")
    )
    assert (room.cpus, room.pids) == (alone.cpus, alone.pids)
    uploaded = Bundle(Path("nowhere"), {"runs": [{}]}, "")
    assert needs_of(task, uploaded, "execute") == alone
    assert needs_of(task, bundle, "evaluate") == task.evaluator_limits
    assert room_limits(Limits(memory=MIB), {}, interactive=False) == Limits(memory=MIB)


def test_the_gateway_is_part_of_a_run_only_for_a_user_that_is_a_model(config: Config) -> None:
    plain = {**DEBATE, **with_gateway(), "services": {**SERVICES, "gateway": GATEWAY}}
    write(config, plain)
    task = load_task(config, "toy")
    assert set(services_of_run(task.services)) == {"search", "user"}
    assert needs_of(task, None, "evaluate").memory == task.evaluator_limits.memory + 512 * MIB
