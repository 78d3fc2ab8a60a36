"""The command line as people meet it: exit codes, one shape for errors, plain output, and who may see what."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.cli.app import app
from runner.cli.help import READERS
from runner.cli.main import load_commands
from runner.model.errors import CODES
from tests.worlds.mini import GOOD, Project, Said, call, call_here
from tools.docs import runner_commands

NOBODY = "sha256:" + "0" * 64


# ---- usage and errors


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["nonsense"], 2, "nonsense"),
        (["evaluate"], 2, "E101"),
        (["evaluate", "--all", "--jobs", "0"], 2, "--jobs"),
        (["evaluate", "--task", "nope"], 2, "E102"),
        (["evaluate", "--run", "nope"], 2, "E102"),
        (["evaluate", "--team", "\x1b[2J"], 2, "E102"),
        (["show", "nope"], 2, "E102"),
        (["runs", "--outcome", "nope"], 2, "E101"),
        (["show", "../../etc/passwd"], 2, "E102"),
        (["show", "a#99999999999999999999999"], 2, "E102"),
        (["logs", "nope"], 2, "E102"),
        (["export", "nope", "/nonexistent/x"], 2, "E102"),
        (["cancel", "nope"], 2, "E102"),
        (["withdraw", "nope"], 2, "E102"),
        (["leaderboard", "nope"], 2, "E102"),
        (["leaderboard", "../mini"], 2, "E102"),
        (["leaderboard", "mini", "--format", "pdf"], 2, "E101"),
        (["leaderboard", "mini", "--table", "nope"], 2, "E102"),
        (["leaderboard", "mini", "--as", "root"], 2, "E101"),
        (["runs", "--as", "team:../x"], 2, "E101"),
        (["runs", "--as", "team:\x1b[31m"], 2, "E101"),
        (["register", "/nonexistent"], 2, "E205"),
        (["pack", "--team", "nobody"], 2, "E102"),
        (["pack", "--team", "../x"], 2, "E208"),
        (["submit", "--team", "nobody"], 2, "E102"),
        (["try", "--team", "a\x1bb"], 2, "E208"),
        (["check", "/nonexistent", "--task", "mini"], 2, "E102"),
        (["check", "/etc/hostname", "--task", "mini", "--dataset", "nope"], 2, "E102"),
        (["task", "check", "nope"], 2, "E102"),
        (["task", "new", "Not A Name"], 2, "E208"),
        (["task", "new", "mini"], 2, "E101"),
        (["task", "new", "other", "--like", "qa"], 2, "E101"),
        (["task", "new", "other", "--kind", "records", "--like", "qa", "--from", "irds:vaswani"], 2, "E101"),
        (["publish", "mini", "nope"], 2, "E102"),
        (["extend", "mini", "Ärger", "-n", "1"], 2, "E208"),
    ],
)
def test_bad_arguments(
    arguments: list[str], code: int, word: str, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call_here(project, arguments, capsys)
    assert said.code == code, said.all
    assert word in said.err
    assert said.out == ""
    assert "\x1b" not in said.all
    if word.startswith("E"):
        assert "docs/reference/errors.md#e" in said.err


@pytest.mark.parametrize("arguments", [["evaluate", "--all"], ["doctor"], ["gc"], ["try", "-t", "alpha"]])
def test_no_engine_is_the_platforms(
    arguments: list[str], project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.software("good", image=NOBODY)
    if arguments[0] == "evaluate":  # nothing to do needs no engine
        assert call_here(project, arguments, capsys).code == 0
        return
    said = call_here(project, arguments, capsys)
    assert said.code == 3
    assert "E301" in said.all or "FAIL" in said.out


def test_outside_a_project(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("RUNNER_")}
    done = subprocess.run(
        [sys.executable, "-m", "runner", "runs"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 2 and "E101" in done.stderr and "Fix:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("home", b""),  # a file where a folder should be
        ("home/events.jsonl", b"not an event\n"),
        ("home/events.jsonl", b"\xff\xfe\n{}\n"),
        ("home/store.sqlite", b"this is no database, whatever its name says" * 100),
    ],
)
def test_a_damaged_data_directory(
    place: str, content: bytes, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project.home.parent / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    said = call_here(project, ["runs"], capsys)
    assert said.code == 3, said.all
    assert "E306" in said.err or "E307" in said.err


def test_a_folder_that_cannot_be_written(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.home.mkdir()
    project.root.joinpath("tasks", "file").write_text("x")
    said = call_here(project, ["task", "new", "file"], capsys)
    assert said.code in (2, 3) and "E1" in said.err + said.err.replace("E306", "E1")
    project.home = Path("/proc/nobody/can/write/here")
    said = call_here(project, ["runs"], capsys)
    assert said.code == 3 and "E306" in said.err


def test_task_errors_have_a_line_and_exit_4(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    task = project.root / "tasks" / "mini" / "task.yaml"
    task.write_text("schema_version: 1\nid: mini\nid: other\nkind: [adhoc\n")
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code == 4 and "tasks/mini/task.yaml:" in said.err
    project.write_task(limits={"memory": "much"}, tables=[], nonsense=1)
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code == 4 and "E401" in said.err
    assert all(word in said.err for word in ("memory", "tables", "nonsense"))
    project.write_task()
    leaked = project.private / "mini" / "test" / "inputs" / "q.txt"
    leaked.write_bytes((project.truths / "mini" / "test" / "qrels.txt").read_bytes())
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code == 4 and "E403" in said.err


def test_every_code_has_an_exit_code_that_people_know() -> None:
    assert {code.exit for code in CODES.values()} <= {1, 2, 3, 4}


# ---- hostile files

_KEYS = [
    "task",
    "image",
    "command",
    "tag",
    "run",
    "build",
    "inputs",
    "scenarios",
    "description",
    "x",
    "é\u202e",
]
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["mini", "../x", "/etc", "\x1b[2J"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_FUZZ = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_FUZZ
@given(
    data=st.dictionaries(st.sampled_from(_KEYS), _VALUE).map(lambda d: json.dumps(d).encode())
    | st.text(alphabet="ab:-[]{}&*!#'\"\n\t |>%@", max_size=60).map(str.encode)
    | st.binary(max_size=60)
)
def test_any_submission_yaml(data: bytes, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project.root / "submissions" / "alpha" / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "submission.yaml").write_bytes(data)
    before = sorted(project.home.rglob("*"))
    said = call_here(project, ["pack", "-t", "alpha", "-s", "fuzz", "--no-check"], capsys)
    assert said.code in (2, 3, 4)
    assert "E308" not in said.err, said.err
    assert "\x1b" not in said.all and "\u202e" not in said.all
    assert said.code != 2 or "E2" in said.err or "E405" in said.err or "E102" in said.err
    left = [p for p in sorted(project.home.rglob("*")) if p not in before and "locks" not in p.parts]
    assert not left


@pytest.mark.slow
@_FUZZ
@given(
    key=st.sampled_from(["id", "kind", "datasets", "measures", "tables", "limits", "quota", "exceptions", "evaluator", "options", "severities", "models", "scenarios", "output", "workflow"]),
    value=_VALUE,
)  # fmt: skip
def test_any_task_yaml_gets_an_answer(
    key: str, value: Any, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project.root / "tasks" / "mini" / "task.yaml"
    good = path.read_text()
    path.write_text(json.dumps({**json.loads(good), key: value}))
    try:
        for arguments in (["task", "check", "mini"], ["leaderboard", "mini"], ["task", "list"]):
            said = call_here(project, arguments, capsys)
            assert said.code in (0, 4), said.all
            assert "E308" not in said.err, said.err
            assert "\x1b" not in said.all
    finally:
        path.write_text(good)


# ---- manners


def test_every_command_has_help_with_an_example(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    load_commands()
    root: Any = typer.main.get_command(app)

    def walk(command: Any, path: list[str]) -> None:
        if getattr(command, "commands", None):
            for name, inner in command.commands.items():
                walk(inner, [*path, name])
            return
        said = call_here(project, [*path, "-h"], capsys)
        assert said.code == 0 and "Examples:" in said.out, path

    walk(root, [])


def test_a_reader_that_leaves_early(project: Project) -> None:
    for command in ("-h", "runs --json", "task list", "leaderboard mini --format json"):
        script = f"set -o pipefail; {sys.executable} -m runner {command} | true"
        env = project.environment()
        done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
        assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr, command
        assert done.returncode in (0, 1, 141), done.stderr


def test_plain_output_and_json_of_every_listing(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["runs"], ["task", "list"], ["doctor"]):
        said = call_here(project, [*arguments, "--json"], capsys)
        json.loads(said.out)
    said = call_here(project, ["leaderboard", "mini", "--format", "json"], capsys)
    assert json.loads(said.out)["rows"] == []
    for form in ("table", "csv", "markdown", "latex", "html"):
        said = call_here(project, ["leaderboard", "mini", "--format", form], capsys)
        assert said.code == 0 and said.out and "\x1b" not in said.out


# ---- who may see what

CANARY = "zqcanary"
# Reads the hidden inputs and tries every way out that it has.
LEAKER = """
import glob, json, os, sys
words = [json.loads(line)["qid"] for line in open(os.environ["inputDataset"] + "/queries.jsonl")]
for word in words:
    print("stdout", word, flush=True); print("stderr", word, file=sys.stderr)
    open(os.environ["outputDir"] + "/" + word + ".txt", "w").write(word)
    os.makedirs(os.environ["outputDir"] + "/d-" + word)
""" + GOOD.replace("mini\\n", "{json.loads(line)['qid']}\\n")


@pytest.fixture
def hidden(live: Project) -> tuple[Project, list[str]]:
    """A project whose hidden topics and documents bear a canary, and softwares that try to carry it out."""
    live.write_task(prefix=CANARY)
    live.software("leaker", LEAKER)
    live.software("crasher", LEAKER + "\nsys.exit(words[0])")
    live.software("wrecker", LEAKER.replace("Q0", "Q0 ' + chr(10) + '"))
    live.software("unknown", LEAKER.replace("{doc}", "{doc}x"))
    replace = "\nos.unlink(out + '/run.txt'); os.symlink('/' + words[0], out + '/run.txt')"
    live.software("linker", LEAKER + replace)
    live.software("shouter", command=["sh", "-c", "exec /no/$(cat $inputDataset/queries.jsonl)"])
    said = call(live, "submit", "-t", "alpha", "--no-check", "--json")
    call(live, "evaluate", "--all", timeout=240)
    return live, [row["submission"] + ".test" for row in said.json]


@pytest.mark.slow
@pytest.mark.engine
def test_no_hidden_word_comes_out(
    hidden: tuple[Project, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, runs = hidden
    kinds = {r["software"]: r["outcome"]["name"] for r in call(project, "runs", "--json").json}
    assert kinds == {
        "leaker": "invalid",  # a tag for every topic
        "crasher": "failed",
        "wrecker": "invalid",
        "unknown": "invalid",
        "linker": "failed",
        "shouter": "failed",
    }
    assert CANARY in call(project, "logs", runs[0]).out, "the organiser sees it"
    seen = ""
    for published in (False, True):
        for audience in ("team:alpha", "team:other", "public"):
            commands: list[list[str]] = [["runs"], ["runs", "--json"]]
            for form in ("table", "json", "csv", "markdown", "latex", "html"):
                commands.append(["leaderboard", "mini", "--format", form])
            for number, run in enumerate([] if published else runs):
                commands += [["show", run], ["show", run, "--json"], ["show", f"{run}#1"]]
                commands += [["logs", run], ["logs", run, "--evaluator"]]
                commands += [["export", run, str(tmp_path / audience / str(number))]]
            for command in commands:
                said = call_here(project, [*command, "--as", audience], capsys)
                assert said.code in (0, 2) and "E308" not in said.err, said.all
                seen += said.all
        if not published:
            call(project, "publish", "mini", "test")
    assert CANARY not in seen
    assert "E103" in seen and "outcome" in seen
    assert not any(path.is_file() for path in (tmp_path / "team:alpha").rglob("*"))
    # The audience can also come from the environment, as in a job that builds a web page.
    said = call(project, "show", runs[0], env={"RUNNER_AS": "team:alpha"})
    assert CANARY not in said.all and "team:alpha" in said.out
    said = call(project, "show", runs[0], env={"RUNNER_AS": "team:other"}, expect=2)
    assert "E103" in said.err or "E102" in said.err


@pytest.mark.slow
@pytest.mark.engine
def test_json_of_every_listing_after_a_real_run(live: Project, runner_cli: Callable[..., Said]) -> None:
    live.software("good")
    run = runner_cli("submit", "-t", "alpha", "--json").json[0]["submission"] + ".test"
    assert runner_cli("pack", "-t", "alpha", "--json").json[0]["check"]["verdict"] == "ok"
    assert runner_cli("evaluate", "--all", "--dry-run", "--json").json["work"][0]["run"] == run
    assert runner_cli("evaluate", "--all", "--json").json["done"][0]["outcome"]["name"] == "scored"
    again = runner_cli("verify", run, "--json").json
    assert again["same"] is again["identical"] is True and len(runner_cli("runs", "--json").json) == 1
    for command in (["show", run], ["runs"], ["doctor"], ["gc", "--dry-run"], ["task", "check", "mini"]):
        assert runner_cli(*command, "--json").json is not None
    tried = runner_cli("try", "-t", "alpha", "--json")
    assert tried.json["outcome"]["name"] == "scored" and tried.json["image_bytes"] > 1e8
    assert "16 GiB" in tried.err
    live.software("bad", "raise SystemExit(1)")
    tried = runner_cli("try", "-t", "alpha", "-s", "bad", "--json", expect=1).json
    assert tried["outcome"]["verdict"] == "run-error"
    refused = runner_cli("submit", "-t", "alpha", "-s", "bad", "--json", expect=1).json
    assert refused[0]["submission"] is None and refused[0]["check"]["outcome"]["name"] == "failed"
    assert len(runner_cli("runs", "--json").json) == 1
    live.write_task_only(limits={"image": "1MB"})
    for command in ("try", "submit"):
        assert "E216" in runner_cli(command, "-t", "alpha", "-s", "good", expect=2).err


def test_command_modules_import_no_other_command_module() -> None:
    folder = Path(__file__).parents[3] / "runner/cli"
    commands = {path.stem for path in folder.glob("commands/*.py")} - {"__init__"}
    assert len(commands) > 8
    for path in folder.rglob("*.py"):
        if path == folder / "main.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported = [f"{node.module}.{alias.name}." for alias in node.names]
                found = [i for i in imported if i.startswith("runner.cli.commands.")]
                assert not found, f"{path.name} imports {found}"


def test_help_says_whom_commands_are_for_and_cuts_nothing(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(project.env, "COLUMNS", "80")
    everything = runner_commands()
    groups = [name for name, command in everything.items() if hasattr(command, "commands")]
    placed = [f"runner {name}" for names in READERS.values() for name in names]
    assert set(everything) - {"runner"} <= set(placed), "say in runner/cli/help.py whom it is for"
    assert len(placed) == len(set(placed))
    for name in everything:
        said = call_here(project, [*name.split()[1:], "--help"], capsys)
        assert max(map(len, said.out.splitlines())) <= 80, name
        assert said.code == 0, name
        below_usage = said.out.partition("\n\n")[2]  # click writes how pytest was started into the usage
        assert not [line for line in below_usage.splitlines() if line.endswith("...")], name
    for group in groups:
        said = call_here(project, [*group.split()[1:], "--help"], capsys)
        assert any(f"\n{reader}:\n" in said.out for reader in READERS) and "Others:" not in said.out
        commands = [c for c in everything if c.rpartition(" ")[0] == group]
        for command in commands:
            assert len(re.findall(rf"^  {command.split()[-1]} ", said.out, re.M)) == 1, command
    text = call_here(project, ["--help"], capsys).out
    places = [text.index(f"\n{reader}:\n") for reader in READERS]
    places += [text.index(f"  {name} ") for name in ("submit", "evaluate", "gc")]
    assert places[:-3] == sorted(places[:-3]) and places[-3:] == sorted(places[-3:])
    assert any(line.split()[1:3] == ["submit", "--team"] for line in text.splitlines()), "an example"


def test_long_examples_can_be_copied(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.env["COLUMNS"] = "80"
    text = call_here(project, ["withdraw", "--help"], capsys).out.split("Examples:\n")[1]
    commands = [shlex.split(line) for line in text.replace("\\\n", "").splitlines()]
    assert [words[:2] for words in commands] == [["runner", "withdraw"]] * 2
    assert len(commands[1]) > 4 and len(commands[1][-1].split()) > 1, "the last word is quoted"
