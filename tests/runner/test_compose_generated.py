"""The generated Compose files: what is committed is what would be generated, and it says the task's limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from definitions import project, write_task

import schemas
from runner import compose, tasks, tira
from runner.config import Config
from runner.engines.base import Limits

ROOT = Path(__file__).resolve().parents[2]
HERE = Config(root=ROOT, home=ROOT / ".runner", truths=None)


def services(task: tasks.Task) -> dict[str, Any]:
    doc = schemas.load_yaml(compose.render(task), "compose.yaml")
    assert doc.problems == []
    found: dict[str, Any] = doc.data["services"]
    return found


@pytest.mark.parametrize("name", tasks.task_ids(HERE))
def test_committed_is_generated(name: str) -> None:
    task = tasks.load_task(HERE, name)
    assert compose.path(task).read_text("utf-8") == compose.render(task), "run: python -m runner.compose"


@pytest.mark.parametrize("name", tasks.task_ids(HERE))
def test_sources_are_there(name: str) -> None:
    task = tasks.load_task(HERE, name)
    for service in services(task).values():
        for volume in service.get("volumes", ()):
            assert (task.folder / volume["source"]).exists()
            assert volume["read_only"] is True


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
def task(tmp_path: Path) -> tasks.Task:
    config = project(tmp_path / "root")
    write_task(
        config,
        limits={
            "memory": "300MiB",
            "cpus": 0.5,
            "pids": 33,
            "tmp": "5MiB",
            "shm": "6MiB",
            "log": "7kB",
            "open_files": 99,
            "output": "8MiB",
            "tmp_exec": True,
        },
        evaluator={"limits": {"memory": "400MiB"}},
    )
    return tasks.load_task(config, "toy")


def test_limits_are_the_task_s(task: tasks.Task) -> None:
    found = services(task)
    assert_limits(found["software"], task.limits)
    assert_limits(found["evaluator"], task.evaluator_limits)


def test_both_are_sealed(task: tasks.Task) -> None:
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


def test_the_software_sees_the_public_inputs_and_no_truths(task: tasks.Task) -> None:
    software = services(task)["software"]
    assert [(v["source"], v["target"]) for v in software["volumes"]] == [
        ("./datasets/dev/inputs", tira.INPUT)
    ]
    assert software["environment"] == tira.container_env("dev") | {"HOME": "/tmp"}
    evaluator = services(task)["evaluator"]
    assert [(v["source"], v["target"]) for v in evaluator["volumes"]] == [
        ("./datasets/dev/inputs", "/inputs"),
        ("./datasets/dev/truths", "/truths"),
    ]


def test_a_scenario_s_view_is_bound_file_by_file(task: tasks.Task) -> None:
    narrow = replace(task, scenarios={"default": tasks.Scenario("default", ("queries.*",))})
    assert [v["target"] for v in services(narrow)["software"]["volumes"]] == [f"{tira.INPUT}/queries.jsonl"]


def test_a_gpu_is_asked_for(task: tasks.Task) -> None:
    asked = services(replace(task, limits=replace(task.limits, gpus=2)))["software"]["deploy"]["resources"][
        "reservations"
    ]["devices"]
    assert asked == [{"driver": "nvidia", "count": 2, "capabilities": ["gpu"]}]
    assert "deploy" not in services(task)["software"]


def test_writing_is_idempotent(task: tasks.Task) -> None:
    assert compose.outdated({"toy": task}) == ["toy"]
    assert compose.write(task) is True
    assert compose.write(task) is False
    assert compose.outdated({"toy": task}) == []
    assert sorted(p.name for p in task.folder.iterdir()) == ["compose.yaml", "datasets", "task.yaml"]


def test_dollar_signs_are_not_variables() -> None:
    assert compose._scalar("$HOME") == '"$$HOME"'
