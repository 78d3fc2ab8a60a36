"""Evaluations that see more than a run file: all of its output, services' data, and models behind the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import ROOM, ContainerSpec
from runner.engines.fake import FakeEngine, Mounts
from runner.execution.attempt import evaluate
from runner.execution.contract import files_for_evaluator
from runner.execution.evaluator import Evaluator
from runner.execution.replies import Spent, replies_of, spent
from runner.execution.stop import Stop
from runner.execution.workflows.gateway import gateway_config, read_calls, refusal
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.model.task import Task
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.tasks.load import load_task
from tests.runner.tasks.test_services import DEBATE, GATEWAY, write
from tests.worlds import definitions
from tests.worlds.records import fill_attempt

EVALUATOR, SIDECARS = "proctor/evaluator", "proctor/sidecars"
SECRET = "hunter2-canary"  # made up, to be looked for
KEY = "a" * 64
REPLY = json.dumps({"key": KEY, "model": "small-1", "reply": "yes"}) + "\n"


def result(**changes: Any) -> dict[str, Any]:
    measures = {m: {"value": 0.5, "topics": 3, "covered": 3, "interval": None} for m in ("ndcg_10", "ap")}
    return {
        "schema_version": 1,
        "status": "valid",
        "evaluator": {"name": "fake", "version": "1"},
        "measures": measures,
        "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
        "run_tag": None,
        "message": "",
    } | changes


class Room:
    """A scripted evaluator and gateway; what they saw is kept."""

    def __init__(self, folder: Path, **definition: Any) -> None:
        config = definitions.project(folder)
        write(config, definition)
        self.config = config
        self.task: Task = load_task(config, "toy")
        self.archive = RunArchive(config.archive)
        self.book = replies_of(config.home, "toy")
        self.calls: list[dict[str, Any]] = [{"n": 1, "status": 200, "cached": False}]
        self.replies = REPLY
        self.answer: dict[str, Any] = result()
        self.details = ""
        self.ends: Exit | int | None = None
        self.gateway_ends: BaseException | int | None = None
        self.seen: dict[str, Any] = {}
        self.engine = FakeEngine({EVALUATOR: self.evaluator, SIDECARS: self.gateway})

    def evaluator(self, mounts: Mounts, out: Path) -> Exit | int | None:
        self.seen["request"] = json.loads((mounts["/in"] / "request.json").read_text())
        self.seen["files"] = sorted(p.name for p in (mounts["/in"] / "run").iterdir())
        self.seen["mounts"] = {t: sorted(p.name for p in mounts[t].iterdir()) for t in mounts}
        self.seen["evaluator"] = mounts.spec
        (mounts["/out"] / "result.json").write_text(json.dumps(self.answer))
        for name in ("scores.jsonl", "findings.jsonl"):
            (mounts["/out"] / name).touch()
        if self.details:
            (mounts["/out"] / "details.jsonl").write_text(self.details)
        return self.ends

    def gateway(self, mounts: Mounts, out: Path) -> int | None:
        self.seen["gateway"] = mounts.spec
        self.seen["config"] = json.loads((mounts["/in"] / "gateway.json").read_text())
        self.seen["key"] = (mounts["/in"] / "key").read_text() if (mounts["/in"] / "key").exists() else None
        known = mounts.get("/known")
        self.seen["known"] = (known / "replies.jsonl").read_text() if known else None
        if isinstance(self.gateway_ends, int):
            mounts.complain("no-such-network")
            return self.gateway_ends
        (mounts["/log"] / "calls.jsonl").write_text("".join(json.dumps(c) + "\n" for c in self.calls))
        (mounts["/log"] / "replies.jsonl").write_text(self.replies)
        mounts.say("ready")
        mounts.stopped.wait(100)
        return 0

    def attempt(self, files: dict[str, str] | None = None, workflow: str = "batch") -> Attempt:
        staging = self.archive.begin("toy", "alpha.one.12345678.test")
        return fill_attempt(self.archive, staging, "alpha.one.12345678", output=files, workflow=workflow)

    def desk(self) -> Evaluator:
        datasets = [self.task.datasets["test"]]
        return Evaluator.of(
            self.task, datasets, self.engine, EVALUATOR, sidecars=SIDECARS, replies=self.book
        )  # fmt: skip

    def evaluate(self, attempt: Attempt | None = None) -> Evaluation:
        attempt = attempt or self.attempt()
        self.seen = {}
        what = (attempt, self.desk(), self.task.datasets["test"], "default")
        made = evaluate(*what, self.engine, self.archive, Stop())
        assert made.record()  # as the schema says
        return made


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_KEY", SECRET)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path, evaluator={"gateway": True}, services={"gateway": GATEWAY})
    yield made
    made.engine.close()


# --- what is handed over -----------------------------------------------------------------------------------


def test_all_of_the_output_is_handed_over_within_bounds(tmp_path: Path) -> None:
    for name, size in (("run.txt", 50), ("a.jsonl", 30), ("b.jsonl", 30), ("c.jsonl", 10)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    assert list(files_for_evaluator(tmp_path, "run.txt", 200)) == ["run.txt", "a.jsonl", "b.jsonl", "c.jsonl"]
    assert list(files_for_evaluator(tmp_path, "run.txt", 100)) == ["run.txt", "a.jsonl", "c.jsonl"]
    # The run file always: a limit may have been lowered.
    assert list(files_for_evaluator(tmp_path, "run.txt", 10)) == ["run.txt"]
    for n in range(100):
        (tmp_path / f"many-{n}").touch()
    assert len(files_for_evaluator(tmp_path, "run.txt", 200)) == 64


@pytest.mark.parametrize("name", ["/etc/hostname", "../beside.txt", "missing.txt", "link.txt", "", "."])
def test_no_other_file_than_one_of_the_output_is_evaluated(tmp_path: Path, name: str) -> None:
    (tmp_path / "beside.txt").touch()
    (output := tmp_path / "output").mkdir()
    (output / "link.txt").symlink_to(tmp_path / "beside.txt")
    with pytest.raises(PlatformError) as error:
        files_for_evaluator(output, name, 200)
    assert error.value.code == "E307"


def test_an_evaluator_sees_the_data_of_services_but_no_gateway_without_leave(tmp_path: Path) -> None:
    room = Room(tmp_path, **DEBATE)
    files = {"simulations.jsonl": "{}\n", "turns.jsonl": "{}\n", "served.jsonl": "{}\n"}
    room.evaluate(room.attempt(files, "interactive"))
    assert room.seen["request"]["records"] is True
    paths = room.seen["request"]["paths"]
    assert (paths["services"], paths["gateway"]) == ("/services", None)
    assert room.seen["files"] == ["served.jsonl", "simulations.jsonl", "turns.jsonl"]
    assert room.seen["mounts"]["/services/search"] == ["arguments.jsonl"]
    assert room.seen["mounts"]["/services/user"] == ["arguments.jsonl"]
    assert all(m.read_only for m in room.seen["evaluator"].mounts if m.target not in ("/out", ROOM))
    assert [spec.role for spec in room.engine.started] == ["evaluator"]
    room.engine.close()


def test_a_run_file_that_fills_the_limit_does_not_push_out_what_was_served(tmp_path: Path) -> None:
    room = Room(tmp_path, **DEBATE)
    room.task = replace(room.task, limits=replace(room.task.limits, output=1000))
    files = {room.task.output: "x" * 900, "served.jsonl": "y" * 500}
    room.evaluate(room.attempt(files, workflow="interactive"))
    assert "served.jsonl" in room.seen["files"]
    room.evaluate(room.attempt(files))
    assert "served.jsonl" not in room.seen["files"]
    room.engine.close()


@pytest.mark.parametrize("workflow", ["batch", "upload"])
def test_what_lies_beside_another_run_file_is_not_ours(tmp_path: Path, workflow: str) -> None:
    """Only the driver's records are vouched for: nobody else can say what was served, or how an answer failed."""
    room = Room(tmp_path, **DEBATE)
    room.evaluate(room.attempt({"simulations.jsonl": "{}\n", "served.jsonl": "{}\n"}, workflow))
    assert not room.seen["request"].get("records", False)
    room.engine.close()


def test_a_plain_task_has_neither(tmp_path: Path) -> None:
    room = Room(tmp_path)
    made = room.evaluate()
    paths = room.seen["request"]["paths"]
    assert (paths["services"], paths["gateway"]) == (None, None)
    assert sorted(m.target for m in room.seen["evaluator"].mounts) == ["/inputs", ROOM, "/truths"]
    assert made.record()["gateway"] is None
    room.engine.close()


def test_details_are_taken_when_they_are_there(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.details = '{"topic": "1", "sentences": []}\n'
    made = room.evaluate()
    assert (made.path / "details.jsonl").read_text() == room.details
    room.details = "[1]\n"
    broken = room.evaluate()
    assert broken.record()["status"] == "error" and "details.jsonl:1" in broken.record()["message"]
    assert not (broken.path / "details.jsonl").exists()
    room.engine.close()


# --- the gateway -------------------------------------------------------------------------------------------


def _words(spec: ContainerSpec) -> str:
    return f"{spec.command} {dict(spec.env)} {spec.network} {spec.workdir} {spec.image}"


def test_only_the_gateway_has_network_and_key(room: Room) -> None:
    made = room.evaluate()
    gateway, evaluator = room.seen["gateway"], room.seen["evaluator"]
    assert [spec.role for spec in room.engine.started] == ["gateway", "evaluator"]
    assert (gateway.network, evaluator.network) == ("bridge", None)
    assert room.seen["key"] == SECRET
    assert room.seen["config"] == {
        "schema_version": 1, "base_url": GATEWAY["base_url"], "models": ["small-1", "large-1"], "calls": 100,
        "tokens": 1000, "cost": None, "price": None, "concurrency": 10, "timeout": 60.0,
        "spent": {"calls": 0, "tokens": 0, "cost": 0.0},
    }  # fmt: skip
    # One volume in common, with the socket; the evaluator cannot write into it.
    shared = {m.volume.name for m in gateway.mounts} & {m.volume.name for m in evaluator.mounts}
    assert shared == {m.volume.name for m in evaluator.mounts if m.target == "/gateway"}
    assert all(m.read_only for m in evaluator.mounts if m.target == "/gateway")
    assert room.seen["request"]["paths"]["gateway"] == "/gateway/gateway.sock"
    assert "/gateway/gateway.sock" in gateway.command and "--replay" not in gateway.command
    for spec in room.engine.started:
        assert SECRET not in _words(spec)
    for path in [*made.path.rglob("*"), *room.config.home.rglob("*.json*")]:
        assert not path.is_file() or SECRET not in path.read_text()


def test_what_was_answered_is_kept_and_given_in_again(room: Room) -> None:
    first = room.evaluate()
    assert room.seen["known"] is None
    assert (first.path / "replies.jsonl").read_text() == REPLY == room.book.read_text()
    assert first.record()["gateway"] | {"image_id": ""} == {
        "image_id": "", "models": GATEWAY["models"], "replay": False, "calls": 1, "asked": 1, "refused": {}
    }  # fmt: skip
    room.calls, room.replies = [{"n": 1, "status": 200, "cached": True}], ""
    second = room.evaluate()
    assert room.seen["known"] == REPLY
    assert second.record()["gateway"]["asked"] == 0
    assert (second.path / "result.json").read_bytes() == (first.path / "result.json").read_bytes()


def test_without_the_key_only_known_replies_are_used(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.evaluate()
    monkeypatch.delenv("EXAMPLE_KEY")
    room.calls, room.replies = [{"n": 1, "status": 200, "cached": True}], ""
    again = room.evaluate()
    gateway = room.seen["gateway"]
    assert "--replay" in gateway.command and "--key-file" not in gateway.command
    assert gateway.network is None and room.seen["key"] is None
    assert (again.record()["status"], again.record()["gateway"]["replay"]) == ("valid", True)


@pytest.mark.parametrize("status", ["valid", "error"])
def test_an_unknown_reply_without_a_key_holds_the_evaluation(
    room: Room, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """Whatever the evaluator makes of a refusal: scores without these answers are not believed."""
    monkeypatch.delenv("EXAMPLE_KEY")
    room.calls = [{"n": 1, "status": 404, "code": "unknown_reply"}, {"n": 2, "status": 200, "cached": True}]
    room.answer = result(status=status, **({"measures": {}} if status == "error" else {}))
    record = room.evaluate().record()
    assert (record["status"], record["final"]) == ("error", True)
    assert record["message"].startswith("E408: 1 of 2 questions") and "EXAMPLE_KEY" in record["message"]


@pytest.mark.parametrize(("code", "says"), [("budget_exceeded", "E409"), ("key_refused", "E408")])
def test_what_the_organiser_has_to_correct_is_held_at_once(room: Room, code: str, says: str) -> None:
    room.calls.append({"n": 2, "status": 429, "code": code})
    record = room.evaluate().record()
    assert (record["status"], record["final"]) == ("error", True) and record["message"].startswith(says)
    assert room.book.read_text() == REPLY  # what came before costs nothing again


def test_the_budget_is_one_for_all_evaluations(room: Room) -> None:
    room.calls = [
        {"n": 1, "status": 200, "cached": False, "prompt_tokens": 100, "completion_tokens": 10, "retries": 2},
        {"n": 2, "status": 200, "cached": True, "prompt_tokens": 100, "completion_tokens": 10},
        {"n": 3, "status": 502, "code": "upstream_failed", "upstream": 500, "retries": 5},
        {"n": 4, "status": 429, "code": "budget_exceeded"},
    ]
    room.evaluate()
    assert spent(room.book) == Spent(calls=3 + 6, tokens=110)
    room.evaluate()
    assert room.seen["config"]["spent"] == {"calls": 9, "tokens": 110, "cost": 0.0}
    assert spent(room.book) == Spent(calls=18, tokens=220)


def test_a_damaged_account_never_opens_the_budget_again(room: Room) -> None:
    room.evaluate()
    room.book.with_suffix(".spent.json").write_text("{")
    record = room.evaluate().record()
    assert record["status"] == "error" and ".spent.json" in record["message"]
    assert [spec.role for spec in room.engine.started] == ["gateway", "evaluator"]  # only the first time


def test_a_missing_account_is_counted_again_from_the_archive(room: Room) -> None:
    """Also what an attempt's own gateway used; nothing that the archive knows can be spent a second time."""
    room.calls = [{"status": 200, "cached": False, "prompt_tokens": 30, "completion_tokens": 4, "retries": 1}]
    attempt = room.attempt()
    room.evaluate(attempt)
    room.evaluate(attempt)
    assert spent(room.book) == Spent(calls=4, tokens=68)
    room.book.with_suffix(".spent.json").unlink()
    assert spent(room.book, {"input": 1e6, "output": 1e6}) == Spent(calls=4, tokens=68, cost=68.0)
    room.evaluate(attempt)
    assert room.seen["config"]["spent"] == {"calls": 4, "tokens": 68, "cost": 0.0}
    assert spent(room.book) == Spent(calls=6, tokens=102)
    assert room.book.with_suffix(".spent.json").is_file()


def test_what_calls_cost(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    line = {"status": 200, "cached": False, "prompt_tokens": 1_000_000, "completion_tokens": 500_000}
    odd = {"status": 200, "cached": False, "prompt_tokens": -5, "completion_tokens": True, "retries": "x"}
    path.write_text(json.dumps(line) + "\n" + json.dumps(odd) + "\n")
    facts = read_calls(path, replay=False, price={"input": 0.15, "output": 0.6})
    assert facts.used == Spent(calls=2, tokens=1_500_000, cost=0.45)


def test_an_endpoint_that_fails_is_tried_again(room: Room) -> None:
    room.calls.append({"n": 2, "status": 502, "code": "upstream_failed"})
    room.ends = 1
    record = room.evaluate().record()
    assert (record["status"], record["final"]) == ("error", False)
    assert record["gateway"]["refused"] == {"upstream_failed": 1}


def test_a_gateway_that_does_not_start_is_our_failure(room: Room) -> None:
    room.gateway_ends = 1
    record = room.evaluate().record()
    assert (record["status"], record["final"]) == ("error", False)
    assert "gateway" in record["message"] and "no-such-network" in record["message"]
    assert [spec.role for spec in room.engine.started] == ["gateway"]


def test_what_was_paid_for_is_kept_when_the_evaluation_is_given_up(room: Room) -> None:
    room.ends = Exit(code=None, killed="cancel")
    attempt = room.attempt()
    with pytest.raises(KeyboardInterrupt):
        room.evaluate(attempt)
    assert room.book.read_text() == REPLY
    assert attempt.evaluations() == []


def test_a_task_that_needs_our_image_says_so(room: Room) -> None:
    with pytest.raises(RunnerError) as caught:
        Evaluator.of(room.task, [], room.engine, EVALUATOR)
    assert caught.value.code == "E304"


def test_calls_that_cannot_be_read_are_calls(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(
        b'x\n[1]\n\n{"status":200,"cached":false}\n{"status":429,"code":"budget_exceeded"}\n\xff\n'
    )
    facts = read_calls(path, replay=False)
    assert (facts.calls, facts.asked, dict(facts.refused)) == (5, 1, {"budget_exceeded": 1})
    assert facts.over_budget and not facts.unknown
    assert read_calls(tmp_path / "absent", replay=True).calls == 0


def test_the_gateways_configuration_is_in_seconds(room: Room) -> None:
    service = room.task.services["gateway"]
    told = replace(service, options={**service.options, "timeout": "2min", "concurrency": 3, "retries": 0})
    config = gateway_config(told)
    assert (config["timeout"], config["concurrency"], config["retries"]) == (120.0, 3, 0)
    assert "max_tokens" not in config  # the gateway's own default


def test_no_run_can_use_up_the_budget_of_all(room: Room, tmp_path: Path) -> None:
    service = room.task.services["gateway"]
    whole = int(service.options["calls"])
    shared = replace(service, options={**service.options, "calls_per_run": 2})
    assert gateway_config(service)["calls"] == gateway_config(service, Spent(calls=1))["calls"] == whole
    assert gateway_config(shared, Spent(calls=5))["calls"] == 7
    assert gateway_config(shared, Spent(calls=whole - 1))["calls"] == whole, "what is left for all ends first"
    path = tmp_path / "calls.jsonl"
    asked = {"status": 200, "cached": False}
    refused = {"status": 429, "code": "budget_exceeded"}
    path.write_text("".join(json.dumps(row) + "\n" for row in (asked, asked, refused)))
    facts = read_calls(path, replay=False)
    said = str(refusal(shared, facts, "again"))
    assert said.startswith("E409") and "calls_per_run" in said and "2 calls" in said
    assert "calls_per_run" not in str(refusal(service, facts, "again"))
