"""The debating baselines as plain processes beside the real argument index."""

from __future__ import annotations

import filecmp
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schemas.debates import parse
from tests.worlds.baselines import baseline_folder
from tests.worlds.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
BASELINES = ROOT / "submissions" / "baselines"
DATA = ROOT / "tasks" / "rad-2025-debate" / "services" / "arguments"
HOMEWORK = "Homework is beneficial."
SAID = [
    HOMEWORK,
    "I do not agree. Giving homework will seem as natural in twenty years as running water does today.",
    'Quotes " and \\ and tabs\t, and ünïcödé – “signs” 🙂: should teachers get tenure?',
    "Should social security be privatized? " * 50,
]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "it ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("it did not listen")


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "sidecars.search", "serve", "--data", str(DATA), "--port", str(port)]
    process = subprocess.Popen([*command, "--prefix", "/arguments"], cwd=ROOT)
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/arguments"
    finally:
        process.terminate()
        process.wait(60)


@dataclass(frozen=True)
class Asked:
    """A baseline that listens; called with a body it gives status and JSON."""

    port: int

    def __call__(self, body: Any) -> tuple[int, Any]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", raw, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture
def start() -> Iterator[Callable[..., Asked]]:
    """Starts a baseline and gives a function that asks it."""
    started = []

    def make(index: str, *command: str) -> Asked:
        port = free_port()
        env = {"PATH": os.environ["PATH"], "PORT": str(port)}
        env |= {"ARGUMENTS_URL": index, "ARGUMENTS_INDEX": "claimrev"}
        process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
        started.append(process)
        wait_for(port, process)

        return Asked(port)

    yield make
    for process in started:
        process.terminate()
        process.wait(60)


PYTHON = (sys.executable, str(BASELINES / "rad-elastic-python" / "elastic.py"))
PERL = ("perl", str(BASELINES / "rad-elastic-perl" / "elastic.pl"))
DENSE = (sys.executable, str(baseline_folder("rad-dense") / "dense.py"))


def user(*said: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]}


def test_two_languages_give_the_same_answers(index: str, start: Callable[..., Asked]) -> None:
    one, other = start(index, *PYTHON), start(index, *PERL)
    for text in SAID:
        (status, mine), (their_status, theirs) = one(user(text)), other(user(text))
        assert status == their_status == 200
        assert mine == theirs
        assert len(mine["content"].split()) <= 60
        assert [argument["key"] for argument in mine["arguments"]] == [1]
        assert mine["content"] in mine["arguments"][0]["text"]


@pytest.mark.parametrize("command", [PYTHON, PERL, DENSE], ids=["python", "perl", "dense"])
def test_servers_stay_available(index: str, start: Callable[..., Asked], command: tuple[str, ...]) -> None:
    ask = start(index, *command)
    with ThreadPoolExecutor(8) as many:  # of several debates at the same time, nothing mixed up
        alone = [ask(user(text))[1]["content"] for text in SAID]
        again = list(many.map(lambda text: ask(user(text))[1]["content"], SAID * 4))
    assert again == alone * 4
    assistant = b'{"messages": [{"role": "assistant", "content": "x"}]}'
    for wrong in (b"", b"{", b"[]", b'{"messages": []}', assistant):
        assert ask(wrong)[0] == 400
    # Keys that nobody knows, and dialogues of any length.
    status, answer = ask({**user(HOMEWORK, "No.", "Yes, it is."), "model": "x"})
    assert status == 200 and answer["content"]


@pytest.mark.parametrize("command", [PYTHON, PERL], ids=["python", "perl"])
def test_an_answer_without_a_hit(index: str, start: Callable[..., Asked], command: tuple[str, ...]) -> None:
    status, answer = start(index, *command)(user("Xyzzy qwrtp zzyzx."))
    assert (status, answer["arguments"]) == (200, [])
    assert answer["content"]


@pytest.mark.parametrize("command", [PYTHON, PERL], ids=["python", "perl"])
def test_without_an_index_it_says_so(start: Callable[..., Asked], command: tuple[str, ...]) -> None:
    ask = start(f"http://127.0.0.1:{free_port()}/arguments", *command)
    assert ask(user(HOMEWORK))[0] == 503


def test_the_dense_one_finds_what_is_near_and_new(index: str, start: Callable[..., Asked]) -> None:
    ask = start(index, *DENSE)
    _, first = ask(user(HOMEWORK))
    assert "omework" in first["arguments"][0]["topic"]
    _, second = ask(user(HOMEWORK, first["content"], HOMEWORK))
    assert second["content"] != first["content"] and len(second["content"].split()) <= 60


def test_both_embedding_baselines_pin_the_same_packages() -> None:
    names = ("rad-dense", "perspective-sbert")
    assert filecmp.cmp(*(BASELINES / name / "requirements.txt" for name in names), shallow=False)


def test_answers_are_debates_that_we_read(index: str, start: Callable[..., Asked]) -> None:
    """What a baseline says is, in the output's form, without a fault."""
    answer = start(index, *PERL)(user(SAID[2]))[1]
    turn = {"utterance": SAID[2], "systemResponse": {"utterance": answer["content"], "response": answer}}
    debate, faults = parse({"simulation": {"configuration": {}, "userTurns": [turn]}})
    assert faults == [] and debate is not None and debate.turns[0].cited == 1


def test_a_slow_client_keeps_nobody_waiting(index: str, start: Callable[..., Asked]) -> None:
    """Half a request, held open, while another debate goes on."""
    for command in (PYTHON, PERL):
        ask = start(index, *command)
        with socket.create_connection(("127.0.0.1", ask.port)) as slow:
            slow.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            with ThreadPoolExecutor(1) as other:
                assert other.submit(ask, user(SAID[0])).result(100)[0] == 200
