"""A sidecar is added in the places that docs/CONTRIBUTING.md lists, and nowhere else: one is added to a copy of the packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ENTRY = """\
    "clock": SidecarSpec(
        "clock",
        "says what time it is in the debate",
        program="clock",
        limits=Limits(memory=64 * MIB),
        arguments=lambda talk, services: ["serve", "--socket", socket_path("clock")],
        service=True,
        socket="clock",
        port=9300,
        env=lambda service: {"CLOCK_URL": f"http://127.0.0.1:{port_of(service)}"},
        watch="watch",
        disputed=True,
    ),
"""
PROGRAM = '''\
"""``python -m sidecars.clock serve``: what time it is."""

import argparse

from sidecars import http

parser = argparse.ArgumentParser(prog="python -m sidecars.clock", description=__doc__)
parser.add_argument("command", choices=["serve"])
http.add_address(parser)
parser.parse_args()
'''
USE = """\
import json, sys
from pathlib import Path
from runner.model.sidecars import Service
from runner.model.sidecars import SIDECARS
from tools.docs.commands import command_lines
from runner.tasks.services import parse_services, room_limits, service_env
from tests.worlds import interactive_jobs as jobs
import schemas

folder = Path(sys.argv[1])
rows = {"clock": {"port": 9400}}
assert "clock" in schemas.schema("task")["properties"]["services"]["properties"]
assert schemas.validate(rows["clock"], "services/clock") == []
assert schemas.validate({"port": "now"}, "services/clock") != []
clock = parse_services(folder, rows)["clock"]
services = {"user": jobs.user(folder / "arguments"), "clock": clock}
job = jobs.make_job(folder / "task", services=services)
engine = jobs.engine(clock=jobs.stays)
done = jobs.execute(job, engine, folder / "staging")
broken = jobs.execute(
    jobs.make_job(folder / "again", services=services),
    jobs.engine(clock=jobs.stays, watch=lambda mounts: mounts.say("ready"), driver=jobs.stays),
    folder / "broken",
)
print(json.dumps({
    "verdict": done.verdict.name,
    "broken": str(broken.verdict.detail),
    "started": [list(spec.command or ()) for spec in engine.started],
    "mounts": [[m.target for m in spec.mounts] for spec in engine.started],
    "env": service_env(job.task.interaction, services),
    "memory": room_limits(job.limits, services, interactive=True).memory,
    "documented": "| `clock` | says what time it is in the debate |" in command_lines(),
}))
"""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run with the new sidecar looks like on the scripted engine."""
    copy = tmp_path_factory.mktemp("copy")
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    for package in ("runner", "sidecars", "schemas", "evaluator", "tools"):
        shutil.copytree(ROOT / package, copy / package, ignore=ignore)
    shutil.copytree(ROOT / "tests/worlds", copy / "tests/worlds", ignore=ignore)
    before = files(copy)
    table = copy / "runner/model/sidecars.py"
    text = table.read_text("utf-8")
    assert text.count('    "relay": SidecarSpec(') == 1
    table.write_text(text.replace('    "relay": SidecarSpec(', ENTRY + '    "relay": SidecarSpec('))
    (copy / "sidecars/clock").mkdir()
    (copy / "sidecars/clock/__init__.py").write_text('"""What time it is."""\n')
    (copy / "sidecars/clock/__main__.py").write_text(PROGRAM)
    port = {"type": "integer", "description": "Its port.", "minimum": 1024, "maximum": 65535}
    schema = {"type": "object", "description": "A clock.", "additionalProperties": False}
    schema_file = copy / "schemas/services/clock.schema.json"
    schema_file.write_text(json.dumps({**schema, "properties": {"port": port}}))
    touched = sorted(name for name, data in files(copy).items() if before.get(name) != data)
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    work = tmp_path_factory.mktemp("work")
    command = [sys.executable, "-c", USE, str(work)]
    ended = subprocess.run(command, cwd=copy, env=env, text=True, capture_output=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    return {**json.loads(ended.stdout), "touched": touched}


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_list_of_files_is_true(used: dict[str, Any]) -> None:
    text = (ROOT / "docs/CONTRIBUTING.md").read_text("utf-8").partition("## Adding a sidecar")[2]
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \|", text.partition("\n## ")[0], re.M)
    listed = [place.replace("NAME", "clock") for row in rows for place in re.findall(r"`([^`]+)`", row)]
    generated = {place for place in listed if place.startswith("docs/reference/")}
    assert used["documented"] and len(generated) == 2
    places = set(listed) - generated
    assert all(any(name.startswith(place) for place in places) for name in used["touched"])
    assert all(any(name.startswith(place) for name in used["touched"]) for place in places)


def test_the_new_sidecar_runs_with_everything_that_its_entry_says(used: dict[str, Any]) -> None:
    commands = [" ".join(command[2:]) for command in used["started"]]
    assert used["verdict"] == "ok"
    assert "sidecars.clock serve --socket /clock/clock.sock" in commands
    watch = next(command for command in commands if command.startswith("sidecars.watch"))
    assert "--socket /clock/clock.sock --path /healthz" in watch
    relay = next(n for n, command in enumerate(commands) if command.startswith("sidecars.relay"))
    assert "--listen-port 9400 --to-socket /clock/clock.sock" in commands[relay]
    assert "/clock" in used["mounts"][relay]
    assert used["env"]["CLOCK_URL"] == "http://127.0.0.1:9400"
    assert used["memory"] > 64 << 20
    assert "clock" in used["broken"]
