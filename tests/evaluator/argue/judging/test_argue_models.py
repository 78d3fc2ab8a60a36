"""Judging with a model over real sockets: what it says, what goes wrong, what is paid once, and what it may cost."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evaluator.argue.models import JudgmentType
from evaluator.argue.prompting import own_prompts
from evaluator.argue.terminal import Progress
from tests.evaluator.argue.conftest import Argue, Serve
from tests.worlds.judging_play import LOOKUP, NUGGETS, PROMPTS, REPORT, rows
from tests.worlds.openai_server import Request, failure

T = JudgmentType
QUESTIONS = 23  # at most, of the sample report; one is asked twice
CALLS = 22


def truthful(request: Request) -> str:
    """YES to all but the trap: what the sample's fa-101 says about turbines."""
    return "NO" if "twelve turbines" in request.last and "herring" in request.last else "YES"


@pytest.fixture
def judge(argue: Argue) -> Argue:
    """Return a function that has the sample judged; the files are called ``x``."""
    return functools.partial(argue, REPORT, NUGGETS, "x", "-p", "openai", "-C", LOOKUP)


def test_what_is_sent_and_what_is_written(serving: Serve, judge: Argue) -> None:
    server = serving(text=truthful)
    said = judge("--validate-judgments")
    assert said.code == 0 and len(server.chats) == CALLS and str(CALLS) in said.err
    for request in server.chats:
        assert request.json["model"] == "gpt-4o-mini-2024-07-18"
        assert (request.json["max_tokens"], request.json["temperature"]) == (10, 0)
        assert [m["role"] for m in request.messages] == ["system", "user"]
        assert request.headers["authorization"] == "Bearer sk-test-4711"
    [judged] = rows(Path("x.judgments.jsonl"))
    second = {(j["judgment_type_id"], j["provenance"]["doc_id"]): j["response"] for j in judged["segments"][1]["judgments"]}  # fmt: skip
    assert second["SENTENCE_ATTESTED", "ru-001"]["is_attested"] is True
    assert second["SENTENCE_ATTESTED", "fa-101"]["is_attested"] is False
    assert judged["judge"]["model"] == "gpt-4o-mini-2024-07-18"
    assert judged["judge"]["prompts"] == f"sha256:{own_prompts().digest()}"
    for path in Path().iterdir():  # the key is nowhere
        assert b"4711" not in path.read_bytes()
    assert "4711" not in said.all


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["exact", "wrong-case", "chatty", "429-then-good", "500-then-good", "cut-then-good", "no-usage"])  # fmt: skip
def test_the_same_judgments_whatever_the_manners_of_the_endpoint(
    serving: Serve, argue: Argue, judge: Argue, mode: str
) -> None:
    serving(text=truthful)
    assert argue(REPORT, NUGGETS, "reference", "-p", "openai", "-C", LOOKUP).code == 0
    server = serving(mode, text=truthful)
    said = judge()
    assert said.code == 0 and "SENTENCE_" not in said.err  # no type has unreadable replies
    assert Path("x.scores.tsv").read_bytes() == Path("reference.scores.tsv").read_bytes()
    assert len(server.chats) == (2 * CALLS if "then" in mode else CALLS)


@pytest.mark.parametrize("mode", ["empty", "null", "both"])
def test_an_unreadable_reply_counts_as_the_default(
    serving: Serve, judge: Argue, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(mode)
    assert judge().code == 4, "no scores are made of replies of which most cannot be read"
    assert not Path("x.scores.tsv").exists() and not Path("x.judgments.jsonl").exists()
    monkeypatch.setattr("evaluator.argue.judging.MOST_FAILED", 1)
    said = judge()
    assert said.code == 0 and re.search(r"\b6 of 6\b.*SENTENCE_ATTESTED", said.err)
    assert "--max-tokens" in said.err
    [judged] = rows(Path("x.judgments.jsonl"))
    values = [j["response"] for s in judged["segments"] for j in s["judgments"]]
    assert not any(v.get("is_attested") or v.get("matched_nuggets") for v in values)
    assert [v["requires_citation"] for v in values if "requires_citation" in v] == [True]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    ["always-429", "always-500", "401", "400", "truncated", "not-json", "wrong-json", "close", "redirect"],
)
def test_what_keeps_failing_leaves_no_half_judged_report(serving: Serve, judge: Argue, mode: str) -> None:
    server = serving(mode)
    said = judge()
    assert said.code != 0 and "1 of 1" in said.err and "4711" not in said.err
    status = {"redirect": "307"}.get(mode, mode.removeprefix("always-"))
    assert not status.isdigit() or status in said.err
    assert not Path("x.judgments.jsonl").exists() and not Path("x.scores.tsv").exists()
    if mode in ("401", "400", "redirect"):  # asking again cannot help: it stops at once
        assert len(server.chats) <= 5


@pytest.mark.parametrize("number", [1, 4])
def test_slow_replies_are_awaited_and_no_more_are_open_than_allowed(
    serving: Serve, judge: Argue, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    server = serving("slow", delay=0.03, text=truthful)
    monkeypatch.setenv("ARGUE_MAX_CONCURRENCY", str(number))
    assert judge().code == 0
    assert server.most_at_once <= number
    assert number == 1 or server.most_at_once > 1


def test_a_second_run_is_free_and_byte_identical(
    serving: Serve, judge: Argue, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(text=truthful)
    assert judge().code == 0
    names = ("x.judgments.jsonl", "x.scores.tsv", "x.replies.jsonl")
    first = {name: Path(name).read_bytes() for name in names}
    # Without judgments, server and key.
    Path("x.judgments.jsonl").unlink()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert judge().code == judge("--rerun", "--max-calls", "1").code == 0
    assert len(server.chats) == CALLS
    assert {name: Path(name).read_bytes() for name in names} == first


def test_other_prompts_models_and_lengths_are_asked_again(serving: Serve, judge: Argue) -> None:
    server = serving(text=truthful)
    asked = 0
    # Only the type whose prompt has changed is asked again.
    options = [((), CALLS), (("-P", PROMPTS), 6), (("--max_tokens", "99"), CALLS), (("-m", "another"), CALLS)]
    for words, calls in options:
        assert judge(*words).code == 0
        asked += calls
        assert len(server.chats) == asked
        if "-P" in words:
            prompt = json.loads(PROMPTS.read_text())["sentence_attested"]
            assert prompt["system_prompt"] in server.chats[-1].prompt
    assert server.chats[-1].json["model"] == "another"


def test_parameters_that_a_model_wants_or_refuses(serving: Serve, judge: Argue) -> None:
    server = serving(text=truthful)
    parameters = ("max_completion_tokens=2000", "max_tokens=null", "temperature=null", "reasoning_effort=low")
    said = judge(*(word for parameter in parameters for word in ("--parameter", parameter)))
    assert said.code == 0 and f"{2000 * CALLS:,}" in said.err
    sent = {k: v for k, v in server.chats[0].json.items() if k not in ("model", "messages")}
    assert sent == {"max_completion_tokens": 2000, "reasoning_effort": "low"}
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["parameters"] == sent
    for wrong in ("model=x", "messages=[]", "x", "=3", "a b=1"):
        assert judge("--parameter", wrong).code == 2


def test_without_cache_everything_is_asked_again(serving: Serve, judge: Argue) -> None:
    server = serving()
    assert judge("--disable-cache").code == judge("--disable_cache", "--rerun").code == 0
    assert len(server.chats) == 2 * CALLS and not Path("x.replies.jsonl").exists()


def test_what_was_answered_before_a_failure_is_not_paid_again(serving: Serve, judge: Argue) -> None:
    seen: list[str] = []

    def failing(request: Request) -> object:
        seen.append(request.last)
        return "YES" if len(seen) <= 12 else failure(401, "broken", "no more")

    serving(text=failing)
    assert judge().code != 0
    kept = len(rows(Path("x.replies.jsonl")))
    assert 0 < kept <= 12
    server = serving()
    assert judge().code == 0
    assert len(server.chats) == CALLS - kept


def test_a_budget_is_kept_by_not_beginning(serving: Serve, judge: Argue) -> None:
    server = serving()
    said = judge("--max-calls", CALLS - 1)
    assert said.code == 2 and server.requests == []
    assert str(CALLS) in said.err and f"--max-calls allows {CALLS - 1}" in said.err
    assert judge("--max-calls", CALLS).code == 0


def test_everything_is_asked_on_demand_and_announced(serving: Serve, judge: Argue) -> None:
    server = serving(text="NO")
    said = judge("--always_check_all_nuggets", "--dry-run")
    assert said.code == 0 and server.requests == []
    announced = int(said.err.split(" calls")[0].split()[-1].replace(",", ""))
    assert judge("--always-check-all-nuggets").code == 0
    assert CALLS < len(server.chats) <= announced
    [judged] = rows(Path("x.judgments.jsonl"))
    judgments = [j for s in judged["segments"] for j in s["judgments"]]
    relevance = [j for j in judgments if j["judgment_type_id"] == T.CITED_DOCUMENT_RELEVANCE]
    assert {j["evaluator"] for j in relevance} == {"openai"}
    assert not any(j["response"]["is_relevant"] for j in relevance)


def test_keys_from_the_file_in_the_working_directory(
    serving: Serve, judge: Argue, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving()
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    Path(".env").write_text(f"OPENAI_API_KEY=sk-of-the-file\nOPENAI_BASE_URL={server.base_url}\n")
    assert judge().code == 0
    assert server.chats[0].headers["authorization"] == "Bearer sk-of-the-file"


@pytest.mark.parametrize(
    "provider", ["anthropic", "together", "huggingface", "from_env", "huggingface_local"]
)
def test_every_preset_speaks_to_a_compatible_endpoint(
    serving: Serve, argue: Argue, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    server = serving()
    name = "BASE_URL" if provider == "from_env" else f"{provider.upper()}_BASE_URL"
    monkeypatch.setenv(name, server.base_url)
    for key in ("ANTHROPIC_API_KEY", "TOGETHER_API_KEY", "HUGGINGFACEHUB_API_TOKEN"):
        monkeypatch.setenv(key, key.lower())
    words = ["-m", "mine"] if provider == "from_env" else []
    assert argue(REPORT, NUGGETS, "x", "-p", provider, "-C", LOOKUP, *words).code == 0
    assert len(server.chats) == CALLS
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["name"] == provider


def test_a_bar_is_drawn_for_people_only(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(3, "judging", shown=True) as progress:
        progress.tick()
    drawn = capsys.readouterr().err
    assert "judging [" in drawn and "1/3 at most" in drawn
    with Progress(0, "judging", shown=True) as progress:
        progress.tick()
    capsys.readouterr()
    with Progress(3, "judging") as progress:  # stderr is a file here
        progress.tick()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_the_bar_and_removes_it(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = (REPORT, NUGGETS, tmp_path / "x", "-p", "lexical", "-C", LOOKUP)
    command = [sys.executable, "-m", "evaluator", "argue", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, timeout=120)
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while piece := os.read(ours, 4096):
            drawn += piece
    os.close(ours)
    assert done.returncode == 0
    assert b"judging [" in drawn and b"/23 at most" in drawn
    assert drawn.rfind(b"\r" + b" " * 40) > drawn.rfind(b"judging [")


def test_an_interruption_keeps_what_was_answered(serving: Serve) -> None:
    answered = threading.Event()

    def slowly(request: Request) -> str:
        if len(server.chats) > 5:
            answered.set()
            time.sleep(1)
        return "YES"

    server = serving(text=slowly)
    words = [sys.executable, "-m", "evaluator", "argue", REPORT, NUGGETS, "x", "-p", "openai", "-C", LOOKUP]
    env = {**os.environ, "ARGUE_MAX_CONCURRENCY": "2"}
    running = subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert answered.wait(60)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert b"Traceback" not in err and out == b""
    assert rows(Path("x.replies.jsonl")) and not Path("x.judgments.jsonl").exists()
