"""The interactive workflow on the scripted engine: which facts become which verdict, and what is kept."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import Mounts
from runner.execution.attempt import execute as pipeline_execute
from runner.execution.workflows import workflow
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB, Limits
from runner.model.outcome import AttemptFacts, derive
from runner.model.sidecars import Service
from runner.records.archive import RunArchive
from schemas.details import Detail
from tests.worlds import interactive_jobs as jobs
from tests.worlds.interactive_jobs import execute, make_job, said, stays, waits, writes


def verdict(
    tmp_path: Path, software: Any = waits, *, talk: dict[str, Any] | None = None, **parts: Any
) -> Any:
    job = make_job(tmp_path / "task", **(talk or {}))
    return execute(job, jobs.engine(software, **parts), tmp_path / "staging")


def test_a_good_run_leaves_everything(tmp_path: Path) -> None:
    job = make_job(tmp_path / "task")
    engine = jobs.engine()
    staging = tmp_path / "staging"
    done = execute(job, engine, staging)
    assert (done.verdict.name, done.verdict.warnings) == ("ok", ())
    assert done.run_file == "simulations.jsonl"
    assert set(done.collected.files) == {"simulations.jsonl", "turns.jsonl", "served.jsonl"}
    assert {path.name for path in (staging / "output").iterdir()} == set(done.collected.files)
    assert {path.name for path in (staging / "logs").iterdir()} == {
        "stdout.log", "stderr.log", "driver.json",
        "search.log", "watch.log", "user.log", "relay.log", "driver.log",
    }  # fmt: skip
    assert {path.name for path in staging.iterdir()} == {"output", "logs"}
    assert done.exit is not None and done.exit.killed == "stop"
    assert workflow("interactive") is not None


def test_who_is_in_the_room(tmp_path: Path) -> None:
    job = make_job(tmp_path / "task")
    engine = jobs.engine()
    execute(job, engine, tmp_path / "staging")
    specs = {spec.command[2] if spec.command else "software": spec for spec in engine.started}
    begun = [name.removeprefix("sidecars.") for name in specs]
    assert begun == ["user", "search", "watch", "relay", "software", "driver"]
    software = specs["software"]
    # The software has no file of ours at all: no claims, no sockets, no output.
    assert software.mounts == () and software.role == "software"
    assert software.join is not None
    assert all(spec.join is None for name, spec in specs.items() if name != "software")
    assert all(
        spec.role == "sidecar" and spec.network is None for n, spec in specs.items() if n != "software"
    )
    assert software.network is None
    assert dict(software.env) == {
        "PORT": "8080",
        "ARGUMENTS_URL": "http://127.0.0.1:9200/arguments",
        "ELASTICSEARCH_URL": "http://127.0.0.1:9200/arguments",
        "ARGUMENTS_INDEX": "claimrev",
    }
    # Clients have a socket's volume read-only, and each hop is another volume.
    writable = {name: [m.target for m in spec.mounts if not m.read_only] for name, spec in specs.items()}
    assert writable == {
        "sidecars.user": ["/user"],
        "sidecars.search": ["/search", "/log"],
        "sidecars.watch": [],
        "sidecars.relay": ["/software"],
        "software": [],
        "sidecars.driver": ["/out"],
    }
    driver = {m.target for m in specs["sidecars.driver"].mounts}
    assert driver == {"/inputs", "/in", "/out", "/software", "/user"}
    assert {m.target for m in specs["sidecars.relay"].mounts} == {"/software", "/search"}
    # All volumes are named before anything starts.
    assert max(i for i, c in enumerate(engine.calls) if c in ("socket_volume", "output_volume")) < (
        engine.calls.index("start")
    )


def test_what_the_driver_is_told(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def driver(mounts: Mounts) -> None:
        seen.update(json.loads((mounts["/in"] / "driver.json").read_text()))
        assert (mounts["/inputs"] / "claims.jsonl").is_file()
        writes()(mounts)

    verdict(tmp_path, driver=driver, talk={"concurrency": 7, "word_limit": 50, "seed": 3, "answer_bytes": 9})
    import schemas

    assert schemas.validate(seen, "driver") == []
    assert (seen["mode"], seen["input"]) == ("debate", "/inputs/claims.jsonl")
    assert seen["user"]["model"] == "base-user"
    assert (seen["concurrency"], seen["turns"], seen["seed"], seen["word_limit"]) == (7, 3, 3, 50)
    assert (seen["answer_bytes"], seen["ready_seconds"], seen["deadline_seconds"]) == (9, 10.0, 60)


def test_mode_judge_needs_neither_user_nor_index(tmp_path: Path) -> None:
    def driver(mounts: Mounts) -> None:
        (mounts["/out"] / "evaluations.jsonl").write_text("{}\n")
        (mounts["/out"] / "turns.jsonl").write_text("")
        (mounts["/out"] / "driver.json").write_text(json.dumps(said()))

    job = make_job(tmp_path / "task", services={}, debates='{"simulation": {"userTurns": []}}\n')
    done = execute(job, jobs.engine(driver=driver), tmp_path / "staging")
    assert done.verdict.name == "ok" and done.run_file == "evaluations.jsonl"
    assert set(done.collected.files) == {"evaluations.jsonl", "turns.jsonl"}


def test_failed_answers_become_a_warning(tmp_path: Path) -> None:
    done = verdict(tmp_path, driver=writes(failed=2))
    assert done.verdict.name == "ok"
    classes = {"status": 1, "timeout": 1}
    assert done.verdict.warnings == (Detail("answers-failed", failed=2, turns=6, classes=classes),)


# -- the software's own failures ------------------------------------------------------------------------------


def dies(code: int | None, **facts: Any) -> Any:
    return lambda mounts: Exit(code=code, **facts)


def never_ready(mounts: Mounts) -> None:
    """A driver that gives up when the software's container has ended, or when its time is over."""
    end = time.monotonic() + 1.0
    while time.monotonic() < end and not (mounts["/in"] / "software-ended").exists():
        time.sleep(0.01)
    report = said(ready=False, ready_ms=None, debates=0, turns=0)
    (mounts["/out"] / "driver.json").write_text(json.dumps(report))


@pytest.mark.parametrize(
    ("software", "name", "detail"),
    [
        (waits, "unhealthy", Detail("never-listened", port=8080, seconds=10.0)),
        (dies(0), "unhealthy", Detail("ended-before-ready", code=0, port=8080)),
        (dies(3), "run-error", Detail("exit-code", code=3)),
        (dies(139), "signal", Detail("signal", signal=11)),
        (dies(137, oom_killed=True), "memory-limit", Detail("memory", code=137, limit=256 * MIB)),
        (dies(None, start_error="ENOENT"), "run-error", Detail("not-started", error="ENOENT")),
    ],
)
def test_never_ready(tmp_path: Path, software: Any, name: str, detail: Detail) -> None:
    done = verdict(tmp_path, software, driver=never_ready)
    assert (done.verdict.name, done.verdict.detail) == (name, detail)
    assert done.verdict.blame == "participant" and done.run_file is None


@pytest.mark.parametrize(
    ("end", "warning"),
    [
        (dies(1), Detail("server-ended", code=1)),
        (dies(0), Detail("server-ended", code=0)),
        (dies(137, oom_killed=True), Detail("server-ended-memory", code=137)),
    ],
)
def test_a_server_that_dies_during_the_run_keeps_its_answers(
    tmp_path: Path, end: Any, warning: Detail
) -> None:
    def driver(mounts: Mounts) -> None:
        deadline = time.monotonic() + 60
        while not (mounts["/in"] / "software-ended").exists():
            assert time.monotonic() < deadline, "the driver was never told"
            time.sleep(0.01)
        writes()(mounts)

    done = verdict(tmp_path, end, driver=driver)
    assert (done.verdict.name, done.run_file) == ("ok", "simulations.jsonl")
    assert done.verdict.warnings == (warning,)


def test_a_worker_killed_for_memory_is_a_warning(tmp_path: Path) -> None:
    def software(mounts: Mounts) -> Exit:
        mounts.stopped.wait(100)
        return Exit(code=143, oom_killed=True)

    done = verdict(tmp_path, software)
    assert (done.verdict.name, done.verdict.warnings) == ("ok", (Detail("child-memory"),))


# -- servers that the software can reach ----------------------------------------------------------------------


DRIVING = threading.Event()  # the driver has begun


@pytest.fixture(autouse=True)
def _nobody_drives() -> None:
    DRIVING.clear()


def meanwhile(code: int, words: str = "", **facts: Any) -> Any:
    """A part that ends once the driver has begun."""

    def part(mounts: Mounts) -> Exit:
        mounts.say("ready")
        assert DRIVING.wait(100)
        mounts.complain(words)
        return Exit(code=code, **facts)

    return part


def slow_driver(mounts: Mounts) -> None:
    DRIVING.set()
    if not mounts.stopped.wait(100):
        writes()(mounts)


@pytest.mark.parametrize(
    ("parts", "kind", "part", "said"),
    [
        ({"search": meanwhile(137, oom_killed=True)}, "reachable-ended", "argument index", ""),
        (
            {"search": meanwhile(1, "Traceback\nValueError: \x1b[31mred")},
            *("reachable-ended", "argument index", r"ValueError: \x1b[31mred"),
        ),
        ({"relay": meanwhile(1, "relay: socat ended")}, "reachable-ended", "relay", "relay: socat ended"),
        ({"watch": meanwhile(3, "watch: silent for 30 s")}, "reachable-silent", "argument index", "30 s"),
    ],
)
def test_a_broken_server_in_reach_is_disputed(
    tmp_path: Path, parts: Any, kind: str, part: str, said: str
) -> None:
    done = verdict(tmp_path, driver=slow_driver, **parts)
    assert (done.verdict.name, done.verdict.blame) == ("disputed", "none")
    detail = done.verdict.detail
    assert (detail.kind, detail.fields["part"]) == (kind, part) and said in detail.fields["said"]
    assert detail.fields["how"]["memory"] is ("search" in parts and not said)


def test_a_dispute_comes_before_what_else_broke(tmp_path: Path) -> None:
    """The software takes the index with it when it goes, or the user ends a moment before the index: still disputed."""
    gone = meanwhile(1)

    def gone_later(mounts: Mounts) -> Exit:
        exit_: Exit = gone(mounts)
        time.sleep(0.1)
        return exit_

    done = verdict(tmp_path, meanwhile(1), search=gone_later, user=gone, driver=slow_driver)
    assert done.verdict.name == "disputed"


# -- our own failures -----------------------------------------------------------------------------------------


BAD = "error: /data/text.npy: 3 rows, but there are 12 arguments\n  Fix: one row an argument\n"
FAILED = {"part": "user", "message": "status 502"}
AGAIN = "--run team.one.00000000.dev --force"


@pytest.mark.parametrize(
    ("parts", "kind", "names"),
    [
        ({"user": meanwhile(1, "boom"), "driver": slow_driver}, "platform", ["simulated user", "boom"]),
        (
            {"user": meanwhile(2, "no data"), "driver": slow_driver},
            "task-files",
            ["simulated user", "no data"],
        ),
        ({"driver": writes(failure=FAILED)}, "platform", ["simulated user", "502"]),
        (
            {"driver": writes(failure={"part": "input", "message": "claims.jsonl:1"})},
            *("task-files", ["E402", "driver", "claims.jsonl:1", AGAIN]),
        ),
        ({"driver": lambda m: Exit(code=1)}, "platform", ["driver", "1"]),
        ({"driver": lambda m: Exit(code=137, oom_killed=True)}, "platform", ["driver", "memory"]),
        ({"driver": writes({"ready": "perhaps"})}, "platform", ["driver", "0"]),
        ({"search": lambda m: Exit(code=1), "watch": lambda m: Exit(code=1)}, "platform", ["argument index"]),
        ({"relay": lambda m: Exit(code=1)}, "platform", ["relay"]),
        ({"gateway": meanwhile(1, "boom"), "driver": slow_driver}, "platform", ["gateway", "boom"]),
        ({"gateway": lambda m: Exit(code=2)}, "task-files", ["E402", "gateway", AGAIN]),
    ],
)
def test_our_failures_are_not_the_softwares(tmp_path: Path, parts: Any, kind: str, names: list[str]) -> None:
    done = verdict(tmp_path, talk={"services": asks_a_model(tmp_path)}, **parts)
    assert (done.verdict.name, done.verdict.blame) == ("platform-error", "platform")
    assert done.verdict.detail.kind == kind
    assert [name for name in names if name not in str(done.verdict.detail)] == []


def ends(code: int, words: str = "", **facts: Any) -> Any:
    """A server of ours that ends before it is ready."""

    def part(mounts: Mounts) -> Exit:
        mounts.complain(words)
        return Exit(code=code, **facts)

    return part


@pytest.mark.parametrize(
    ("parts", "kind", "names"),
    [
        ({"search": ends(4, BAD)}, "task-files", ["E402", "argument index", "/data/text.npy: 3 rows", AGAIN]),
        (
            {"search": ends(1, "1\n2\n3\n4\n\n5\n\x1b[31mred\n")},
            *("platform", ["argument index", "2; 3; 4; 5; \\x1b[31mred"]),
        ),
        ({"search": ends(137, oom_killed=True)}, "platform", ["argument index", "memory"]),
        (
            {"user": ends(2, "error: /data"), "search": stays},
            "task-files",
            ["simulated user", "error: /data"],
        ),
        ({"user": ends(1, "boom")}, "platform", ["simulated user", "boom"]),
    ],
)
def test_a_server_that_ends_before_it_is_ready_is_noticed_at_once(
    tmp_path: Path, parts: Any, kind: str, names: list[str]
) -> None:
    """Though only the watch is waited for, which goes on looking. What would end so again is held at once."""
    started = time.monotonic()
    done = verdict(tmp_path, watch=waits, **parts)
    assert time.monotonic() - started < 10
    assert (done.verdict.name, done.verdict.blame) == ("platform-error", "platform")
    assert done.verdict.detail.kind == kind
    assert [name for name in names if name not in str(done.verdict.detail)] == []
    outcome = derive([AttemptFacts(1, "platform-error", done.verdict.detail)])
    assert (outcome.name, outcome.todo) == (("pending", "run") if kind == "platform" else ("held", "nothing"))
    assert not outcome.costs_quota


def test_what_a_foreign_index_means_by_its_exit_code_is_not_known(tmp_path: Path) -> None:
    index = jobs.search(tmp_path / "data", image=jobs.identity("their/elastic"), data=None)
    services = {"search": index, "user": jobs.user(tmp_path / "data")}
    job = make_job(tmp_path / "task", services=services)
    engine = jobs.engine()
    engine.script["their/elastic"] = lambda mounts, _: Exit(code=4)
    done = execute(job, engine, tmp_path / "staging")
    assert done.verdict.detail.kind == "platform" and "argument index" in done.verdict.detail.fields["what"]


def asks_a_model(tmp_path: Path) -> dict[str, Any]:
    """Services of a simulated user that is a language model."""
    gateway = {"base_url": "https://models.example.org/v1", "models": ["m"], "key": "NO_KEY"}
    gateway |= {"calls": 9, "tokens": 9}
    user = jobs.user(tmp_path / "data", options={"model": "base-user", "llm": {"model": "m"}})
    return {
        "search": jobs.search(tmp_path / "data"),
        "user": user,
        "gateway": Service("gateway", options=gateway, limits=Limits(loopback=True, memory=512 * MIB)),
    }


def refuses(code: str) -> Any:
    """A gateway that refuses one of two questions."""

    def gateway(mounts: Mounts) -> None:
        lines = [{"status": 200, "cached": False}, {"status": 429, "code": code}]
        (mounts["/log"] / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        stays(mounts)

    return gateway


@pytest.mark.parametrize(
    ("code", "key", "said", "kind", "fields"),
    [
        ("unknown_reply", None, "E408", "replies-unknown", {"refused": 1, "calls": 2, "key": "NO_KEY"}),
        ("key_refused", "sk-x", "E408", "key-refused", {"key": "NO_KEY"}),
        ("budget_exceeded", "sk-x", "E409", "budget-spent", {"asked": 1}),
    ],
)
@pytest.mark.parametrize("how", ["the user gives up", "the user goes on"])
def test_what_the_gateway_refuses_is_the_organisers_to_correct(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    key: str | None,
    said: str,
    kind: str,
    fields: dict[str, Any],
    how: str,
) -> None:
    """The cause is reported, not a failure of the user. The run is held, because a new try would end the same way."""
    if key:
        monkeypatch.setenv("NO_KEY", key)
    failed = {"failure": FAILED} if "gives" in how else {}
    parts = {"gateway": refuses(code), "driver": writes(**failed)}
    done = verdict(tmp_path, talk={"services": asks_a_model(tmp_path)}, **parts)
    assert (done.verdict.name, done.verdict.blame) == ("platform-error", "platform")
    detail = done.verdict.detail
    assert (detail.code, detail.kind) == (said, kind) and detail.fields.items() >= fields.items()
    assert AGAIN in detail.fields["then"]
    held = derive([AttemptFacts(1, "platform-error", detail)])
    assert (held.name, held.todo, held.costs_quota) == ("held", "nothing", False)
    assert derive([AttemptFacts(1, "platform-error", Detail("text", text="x"))]).todo == "run"


def test_a_broken_index_is_disputed_whatever_the_gateway_says(tmp_path: Path) -> None:
    """Else a software that breaks what it can reach would get another try when the organiser has paid."""
    parts = {"gateway": refuses("budget_exceeded"), "search": meanwhile(1), "driver": slow_driver}
    done = verdict(tmp_path, talk={"services": asks_a_model(tmp_path)}, **parts)
    assert done.verdict.name == "disputed"


@pytest.mark.parametrize(("call", "code"), [("start", "E305"), ("session", "E301")])
def test_an_engine_that_lacks_the_network_or_is_gone_says_nothing_about_the_run(
    tmp_path: Path, call: str, code: str
) -> None:
    engine = jobs.engine()
    engine._faults[call] = [PlatformError("x", code=code)]
    with pytest.raises(PlatformError) as caught:
        execute(make_job(tmp_path / "task", services=asks_a_model(tmp_path)), engine, tmp_path / "staging")
    assert caught.value.code == code


def test_the_index_is_there_before_the_software(tmp_path: Path) -> None:
    """And when it is not, no software is started that could be blamed for it."""
    job = make_job(tmp_path / "task")
    engine = jobs.engine(watch=lambda m: Exit(code=1))
    execute(job, engine, tmp_path / "staging")
    assert all(spec.role == "sidecar" for spec in engine.started)


def test_an_engine_that_fails_is_a_platform_error(tmp_path: Path) -> None:
    job = make_job(tmp_path / "task")
    engine = jobs.engine()
    engine._faults["copy_in"] = [PlatformError("disk full")]
    done = execute(job, engine, tmp_path / "staging")
    assert done.verdict.name == "platform-error"
    assert done.verdict.detail == Detail("platform", what="disk full", why="")


def test_missing_inputs_are_the_organisers(tmp_path: Path) -> None:
    job = make_job(tmp_path / "task")
    (job.dataset.inputs / "claims.jsonl").unlink()
    with pytest.raises(RunnerError) as caught:
        execute(job, jobs.engine(), tmp_path / "staging")
    assert all(name in caught.value.what for name in ("claims.jsonl", "talk/dev"))


def test_a_driver_that_never_ends_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.execution.workflows.interactive.GRACE", 0.0)
    monkeypatch.setattr("runner.execution.workflows.interactive.USER_READY", 0.0)
    job = make_job(tmp_path / "task")
    job = replace(job, limits=replace(job.limits, wall_clock=0.6))
    done = execute(job, jobs.engine(driver=waits), tmp_path / "staging")
    assert done.verdict.name == "platform-error" and "driver" in done.verdict.detail.fields["what"]


# -- cancelling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["before", "search", "relay", "driver"])
def test_cancelling_works_in_every_phase(tmp_path: Path, phase: str) -> None:
    asked = threading.Event()

    def hangs(mounts: Mounts) -> None:
        asked.set()
        mounts.stopped.wait(100)

    if phase == "before":
        asked.set()
    parts = {} if phase == "before" else {"watch" if phase == "search" else phase: hangs}
    job = make_job(tmp_path / "task")
    started = time.monotonic()
    done = execute(job, jobs.engine(**parts), tmp_path / "staging", asked.is_set)
    assert done.verdict.name == "cancelled"
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("phase", ["search", "driver"])
def test_a_kill_from_another_process_is_a_cancellation(tmp_path: Path, phase: str) -> None:
    asked = threading.Event()

    def hangs(mounts: Mounts) -> None:
        asked.set()
        mounts.stopped.wait(100)

    engine = jobs.engine(**{"watch" if phase == "search" else "driver": hangs})
    requested = threading.Event()

    def kill() -> None:
        asked.wait(60)
        requested.set()  # as runner cancel does: the request first
        engine.kill("a-1")

    other = threading.Thread(target=kill)
    other.start()
    done = execute(make_job(tmp_path / "task"), engine, tmp_path / "staging", requested.is_set)
    other.join()
    assert done.verdict.name == "cancelled"


def test_a_run_is_not_cancelled_by_a_server_that_just_ended(tmp_path: Path) -> None:
    """Cancelled a moment after the software went: it is still cancelled, not failed."""
    gone = threading.Event()

    def software(mounts: Mounts) -> Exit:
        gone.set()
        return Exit(code=1)

    done = execute(
        make_job(tmp_path / "task"), jobs.engine(software, driver=waits), tmp_path / "staging", gone.is_set
    )
    assert done.verdict.name == "cancelled"


# -- a server that is not ours --------------------------------------------------------------------------------


def test_a_foreign_index_gets_a_relay_of_its_own(tmp_path: Path) -> None:
    service = jobs.search(
        tmp_path / "data",
        image=jobs.identity("their/elastic"),
        options={"server_port": 9201, "env": {"discovery.type": "single-node"}, "writable": ["/data2"]},
    )
    job = make_job(tmp_path / "task", services={"search": service, "user": jobs.user(tmp_path / "data")})
    engine = jobs.engine()
    engine.script["their/elastic"] = lambda mounts, _: stays(mounts)
    done = execute(job, engine, tmp_path / "staging")
    assert done.verdict.name == "ok"
    assert set(done.collected.files) == {"simulations.jsonl", "turns.jsonl"}
    foreign, relay = engine.started[1:3]
    assert foreign.image.id == jobs.identity("their/elastic") and foreign.command is None
    assert foreign.env == {"discovery.type": "single-node"} and foreign.exceptions.writable == ("/data2",)
    assert relay.join is not None
    assert relay.command is not None
    assert relay.command[2:] == (
        "sidecars.relay", "--listen-socket", "/search/search.sock", "--to-port", "9201",
    )  # fmt: skip


# -- records ---------------------------------------------------------------------------------------------------


def test_a_batch_software_cannot_hand_in_records(tmp_path: Path) -> None:
    """Only its run file is taken: nothing beside it could pass for what driver and index noted down."""
    job = replace(make_job(tmp_path / "task"), workflow="batch", services={})

    def software(mounts: Mounts) -> None:
        for name in ("simulations.jsonl", "turns.jsonl", "served.jsonl", "driver.json", "replies.jsonl"):
            (mounts["/tira-data/output"] / name).write_text("{}\n")

    staging = tmp_path / "staging"
    staging.mkdir()
    done = workflow("batch")(job, jobs.engine(software), "a-1", staging, lambda: False)
    assert (done.verdict.name, done.collected.files) == ("ok", ("simulations.jsonl",))
    assert [path.name for path in (staging / "output").iterdir()] == ["simulations.jsonl"]


# -- in the archive -------------------------------------------------------------------------------------------


def test_an_attempt_is_sealed_with_everything(tmp_path: Path) -> None:
    job = make_job(tmp_path / "task")
    archive = RunArchive(tmp_path / "archive")
    attempt = pipeline_execute(job, jobs.engine(driver=writes(failed=2)), archive)
    record = attempt.record()
    assert record["verdict"]["name"] == "ok" and record["exit"]["killed"] == "stop"
    assert record["output"]["file"] == "simulations.jsonl"
    files = [file["name"] for file in record["output"]["files"]]
    assert files == ["served.jsonl", "simulations.jsonl", "turns.jsonl"]
    assert (attempt.path / "logs" / "driver.json").is_file()
