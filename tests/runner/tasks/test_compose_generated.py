"""The generated Compose files: what is committed is what would be generated, and it says the task's limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.config import Config
from runner.model.limits import Limits
from runner.model.sidecars import SIDECARS
from runner.model.task import Scenario, Task
from runner.tasks import compose, tira
from runner.tasks import compose_services as composeroom
from runner.tasks import load as tasks
from runner.tasks.services import service_env
from tests.worlds.definitions import project, write_task

ROOT = Path(__file__).resolve().parents[3]
HERE = Config(root=ROOT, home=ROOT / ".runner", truths=None)


def services(task: Task) -> dict[str, Any]:
    """Those that anything can start."""
    doc = schemas.load_yaml(compose.render(task), "compose.yaml")
    assert doc.problems == []
    found: dict[str, Any] = doc.data["services"]
    assert set(found) == {"prepare", "software", "evaluator", *composeroom.NAMES}
    return {
        name: one
        for name, one in found.items()
        if one != composeroom.UNUSED and one != {"network_mode": "none"}
    }


@pytest.mark.parametrize("name", tasks.task_ids(HERE))
def test_committed_files_are_generated_and_name_existing_folders(name: str) -> None:
    task = tasks.load_task(HERE, name)
    assert compose.path(task).read_text("utf-8") == compose.render(task)
    for service in services(task).values():
        for volume in service.get("volumes", ()):
            assert (task.folder / volume["source"]).exists() and volume["read_only"] is True
        evaluation = json.loads(service.get("environment", {}).get("EVALUATOR_REQUEST_JSON", "{}"))
        assert "records" not in evaluation, "files next to a batch run are not records"


def assert_limits(service: dict[str, Any], limits: Limits) -> None:
    """Every limit that Compose can enforce is the task's own."""
    assert service["mem_limit"] == service["memswap_limit"] == limits.memory
    assert service["cpus"] == limits.cpus
    assert service["pids_limit"] == limits.pids
    assert service["ulimits"] == {"nofile": limits.open_files, "core": 0, "fsize": limits.output}
    assert f"size={limits.tmp}," in service["tmpfs"][0]
    assert f"size={limits.shm}," in service["tmpfs"][1]
    assert ("noexec" in service["tmpfs"][0]) is not limits.tmp_exec
    assert service["logging"]["options"]["max-size"] == str(limits.log)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    config = project(tmp_path / "root")
    limits = {"memory": "300MiB", "cpus": 0.5, "pids": 33, "open_files": 99, "tmp_exec": True}
    limits |= {"tmp": "5MiB", "shm": "6MiB", "log": "7kB", "output": "8MiB"}
    write_task(config, limits=limits, evaluator={"limits": {"memory": "400MiB"}})
    return tasks.load_task(config, "toy")


def test_both_are_sealed_and_have_the_limits_of_the_task(task: Task) -> None:
    assert_limits(services(task)["software"], task.limits)
    assert_limits(services(task)["evaluator"], task.evaluator_limits)
    users = set()
    for service in services(task).values():
        assert service["network_mode"] == "none"
        assert service["ipc"] == "none"
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["init"] is True
        assert service["healthcheck"] == {"disable": True}
        users.add(service["user"])
    assert users == {"20000:20000", "20001:20001"}


def test_the_software_sees_the_public_inputs_and_no_truths(task: Task) -> None:
    software = services(task)["software"]
    inputs = "./datasets/dev/inputs"
    assert [(v["source"], v["target"]) for v in software["volumes"]] == [(inputs, tira.INPUT)]
    assert software["environment"] == tira.container_env("dev") | composeroom.USER_ENV
    evaluator = services(task)["evaluator"]
    assert [(v["source"], v["target"]) for v in evaluator["volumes"]] == [
        (inputs, "/inputs"),
        ("./datasets/dev/truths", "/truths"),
    ]


def test_a_scenario_s_view_is_bound_file_by_file(task: Task) -> None:
    narrow = replace(task, scenarios={"default": Scenario("default", ("queries.*",))})
    assert [v["target"] for v in services(narrow)["software"]["volumes"]] == [f"{tira.INPUT}/queries.jsonl"]


def test_a_gpu_is_asked_for(task: Task) -> None:
    software = services(replace(task, limits=replace(task.limits, gpus=2)))["software"]
    devices = software["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": 2, "capabilities": ["gpu"]}]
    assert "deploy" not in services(task)["software"]


@pytest.fixture
def room() -> dict[str, Any]:
    return services(tasks.load_task(HERE, "rad-2025-debate"))


def test_a_task_of_debates_has_a_room_and_no_batch_services(room: dict[str, Any], task: Task) -> None:
    assert list(room) == list(composeroom.NAMES)
    assert {tuple(one["profiles"]) for one in room.values()} == {("debate",)}
    assert list(services(task)) == ["software", "evaluator"]
    assert not any("profiles" in one for one in services(task).values()), "they start without being asked for"


def test_the_room_is_sealed_and_has_the_graded_limits(room: dict[str, Any]) -> None:
    task = tasks.load_task(HERE, "rad-2025-debate")
    for name, service in room.items():
        assert service.get("network_mode") == (None if name == "server" else "none")
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"].split(":")[0] == {"server": "20000", "transcript": "20001"}.get(name, "20002")
        assert "stop_signal" not in service, "a server ends when it is told to"
    assert_limits(room["server"], task.limits)
    assert_limits(room["transcript"], task.evaluator_limits)
    for name in ("search", "user"):
        assert_limits(room[name], task.services[name].limits)
    assert_limits(room["relay"], SIDECARS["relay"].limits)
    assert_limits(room["driver"], SIDECARS["driver"].limits)


def test_the_server_has_addresses_and_nothing_else(room: dict[str, Any]) -> None:
    task = tasks.load_task(HERE, "rad-2025-debate")
    assert task.interaction is not None
    server = room["server"]
    assert "volumes" not in server and "command" not in server
    assert server["environment"] == {
        "HF_HUB_OFFLINE": "1", **composeroom.USER_ENV, **service_env(task.interaction, task.services)
    }  # fmt: skip


def test_the_driver_is_told_what_the_graded_one_is(room: dict[str, Any]) -> None:
    settings = json.loads(room["driver"]["environment"]["DRIVER_JSON"])
    assert schemas.validate(settings, "driver") == []
    assert (settings["turns"], settings["seed"], settings["concurrency"]) == (5, 2025, 4)
    assert settings["deadline_seconds"] == 900 and settings["answer_seconds"] == 30
    assert settings["user"] == {"socket": "/user/user.sock", "model": "any-user"}


def test_records_of_a_debate_are_ours_and_those_of_a_batch_run_are_not_believed(room: dict[str, Any]) -> None:
    """``evaluator debate`` reads the files next to the run as records of the platform."""
    assert not any("EVALUATOR_REQUEST_JSON" in one.get("environment", {}) for one in room.values())
    doc = schemas.load_yaml(ROOT / "docker-compose.yml", "docker-compose.yml")
    shared: dict[str, dict[str, tuple[str, bool]]] = {"debates": {}, "served": {}}
    for name, service in doc.data["services"].items():
        for volume in service.get("volumes", ()):
            if isinstance(volume, dict) and volume["source"] in shared:
                shared[volume["source"]][name] = (volume["target"], volume.get("read_only", False))
    assert shared == {
        "debates": {"driver": ("/out", False), "transcript": ("/in/run", True)},
        "served": {"search": ("/served", False), "transcript": ("/in/served", True)},
    }
    script = "".join(doc.data["services"]["transcript"]["command"])
    assert 'evaluator debate "/in/run/$$RUN"' in script and "--served /in/served/served.jsonl" in script


@pytest.mark.parametrize("change", ["image", "llm", "judge"])
def test_a_room_that_needs_more_is_not_offered(change: str) -> None:
    task = tasks.load_task(HERE, "rad-2025-debate")
    assert task.interaction is not None
    given = dict(task.services)
    if change == "image":
        given["search"] = replace(given["search"], image="elasticsearch@sha256:" + "0" * 64)
    elif change == "llm":
        given["user"] = replace(given["user"], options={**given["user"].options, "llm": {"model": "m"}})
    else:
        task = replace(task, interaction=replace(task.interaction, mode="judge"))
    changed = replace(task, services=given)
    assert services(changed) == {}
    assert 'use "runner try"' in compose.render(changed)


def test_writing_is_idempotent(task: Task) -> None:
    assert compose.outdated({"toy": task}) == ["toy"]
    assert compose.write(task) is True
    assert compose.write(task) is False
    assert compose.outdated({"toy": task}) == []
    assert sorted(p.name for p in task.folder.iterdir()) == ["compose.yaml", "datasets", "task.yaml"]


def test_dollar_signs_are_not_variables() -> None:
    assert compose.to_yaml({"a": "$HOME"}) == "a: $$HOME\n"
