"""The driver as a command: its configuration, its exit codes, and being stopped."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sidecars.driver.__main__ import main
from sidecars.driver.config import Config, InputError
from tests.worlds.standins import Room


def told(room: Room, **changes: Any) -> Path:
    config = room.config()
    data = {
        "schema_version": 1,
        "mode": "debate",
        "input": str(config.input),
        "software": {"socket": str(config.software), "port": 8081},
        "user": {"socket": str(config.user)},
        "turns": 2,
        "answer_seconds": 5,
        "ended": str(config.ended),
        "output": str(config.output),
        **changes,
    }
    path = room.folder / "driver.json"
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))
    return path


def test_what_is_not_said_has_a_default(room: Room) -> None:
    config = Config.load(told(room))
    assert (config.mode, config.turns, config.port) == ("debate", 2, 8081)
    assert config.address == "http://127.0.0.1:8081"
    assert (config.concurrency, config.answer_bytes, config.word_limit) == (4, 262_144, 60)
    assert (config.user_model, config.user_path) == ("base-user", "/user-sim/api/chat")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"mode": "talk"}, "mode"),
        ({"turns": 0}, "turns"),
        ({"turns": 2.5}, "turns"),
        ({"concurency": 3}, "concurency"),
        ({"output": ...}, "output"),
        ({"user": None}, "user"),
        ({"software": {}}, "socket"),
        ({"answer_seconds": 0}, "answer_seconds"),
        ({"turns": 0, "concurrency": 0}, "turns concurrency"),
    ],
)
def test_a_wrong_configuration_is_named(
    room: Room, changes: dict[str, Any], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = told(room, **changes)
    with pytest.raises(InputError) as caught:
        Config.load(path)
    assert main(["--config", str(path)]) == 2
    printed = capsys.readouterr().err
    for name in named.split():
        assert name in str(caught.value) and name in printed
    assert not (room.folder / "out").exists()


SERVERS = """
import asyncio, json, sys
late = []  # the second answer to a dialogue never comes
async def user(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    body = json.dumps({"message": {"role": "assistant", "content": "I think so"}}).encode()
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body); writer.close()
async def software(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    size = int(head.lower().partition(b"content-length: ")[2].split()[0])
    asked = await reader.readexactly(size)
    if b"assistant" in asked and not late.append(1) and len(late) > 1: await asyncio.sleep(60)
    body = b'{"content": "No"}'
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body); writer.close()
async def main():
    await asyncio.start_unix_server(user, sys.argv[1] + "/user.sock")
    await asyncio.start_unix_server(software, sys.argv[1] + "/software.sock")
    print("up", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_what_is_finished_is_kept_when_it_is_stopped(room: Room) -> None:
    room.claims("One", "Two")
    command = [sys.executable, "-c", SERVERS, str(room.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as servers:
        try:
            assert servers.stdout is not None and servers.stdout.readline() == b"up\n"
            config = str(told(room, concurrency=1, answer_seconds=50))
            command = [sys.executable, "-m", "sidecars.driver", "--config", config]
            pipe = subprocess.PIPE
            driver = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
            assert driver.stdout is not None and driver.stdout.readline()
            assert re.findall(r"\d+", driver.stdout.readline()) == ["1", "2", "0", "1", "2"]
            time.sleep(0.3)
            driver.send_signal(signal.SIGTERM)
            _, complained = driver.communicate(timeout=100)
        finally:
            servers.kill()
    assert driver.returncode == 0
    assert complained.startswith("driver: ") and complained.count("\n") == 1
    report = json.loads((room.folder / "out" / "driver.json").read_text())
    assert report["failure"]["part"] == "driver" and report["debates"] == 1
    first, second = room.lines("simulations.jsonl")
    assert len(first["simulation"]["userTurns"]) == 2 and second == {}
