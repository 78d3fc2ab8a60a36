"""Judging with a model over real sockets: what it says, what goes wrong, what is paid once, and what it may cost."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.argue.models import JudgmentType
from evaluator.argue.prompting import own_prompts
from evaluator.argue.terminal import Progress
from tests.worlds.judging_play import LOOKUP, NUGGETS, PROMPTS, REPORT, rows
from tests.worlds.openai_server import OpenAIServer, Request

T = JudgmentType
QUESTIONS = 23  # at most, of the sample report; one is asked twice
CALLS = 22
Call = Callable[..., int]


def truthful(request: Request) -> str:
    """YES to all but the trap: what the sample's fa-101 says about turbines."""
    return "NO" if "twelve turbines" in request.last and "herring" in request.last else "YES"


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., OpenAIServer]]:
    """Starts a server that the provider ``openai`` asks; the folder is the test's own."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "DOC_LOOKUP")) or name.startswith(("ARGUE_", "OPENAI")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evaluator.judges.chat.UNUSABLE_RETRIES", 0)
    # The pauses of the client between its attempts.
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.02)
    started: list[OpenAIServer] = []

    def serve(mode: str = "exact", text: object = truthful, **options: object) -> OpenAIServer:
        server = OpenAIServer(mode, text=text, **options)  # type: ignore[arg-type]
        started.append(server.__enter__())
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-4711")
        return server

    yield serve
    for server in started:
        server.__exit__()


def judge(out: Path | str, *words: str) -> int:
    return main(["argue", str(REPORT), str(NUGGETS), str(out), "-p", "openai", "-C", str(LOOKUP), *words])


def test_what_is_sent_and_what_is_written(
    serving: Callable[..., OpenAIServer], capsys: pytest.CaptureFixture[str]
) -> None:
    server = serving()
    assert judge("x", "--validate-judgments") == 0
    assert len(server.chats) == CALLS
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
    said = capsys.readouterr()
    assert f"{CALLS} asked" in said.err
    for path in Path().iterdir():  # the key is nowhere
        assert b"4711" not in path.read_bytes()
    assert "4711" not in said.out + said.err


@pytest.mark.parametrize("mode", ["exact", "wrong-case", "chatty", "429-then-good", "500-then-good", "cut-then-good", "no-usage"])  # fmt: skip
def test_the_same_judgments_whatever_the_manners_of_the_endpoint(
    serving: Callable[..., OpenAIServer], mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    serving()
    assert judge("reference") == 0
    server = serving(mode)
    assert judge("x") == 0
    assert Path("x.scores.tsv").read_bytes() == Path("reference.scores.tsv").read_bytes()
    assert len(server.chats) == (2 * CALLS if "then" in mode else CALLS)
    assert "could not be read" not in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["empty", "null", "both"])
def test_what_says_nothing_counts_as_the_default_and_is_told(
    serving: Callable[..., OpenAIServer],
    mode: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serving(mode)
    assert judge("x") == 4, "no scores are made of replies of which most cannot be read"
    assert not Path("x.scores.tsv").exists()
    assert not Path("x.judgments.jsonl").exists()
    monkeypatch.setattr("evaluator.argue.judging.MOST_FAILED", 1)
    assert judge("x") == 0
    said = capsys.readouterr().err
    assert "6 of 6 replies about SENTENCE_ATTESTED could not be read" in said
    assert "--max-tokens" in said
    [judged] = rows(Path("x.judgments.jsonl"))
    values = [j["response"] for s in judged["segments"] for j in s["judgments"]]
    assert not any(v.get("is_attested") or v.get("matched_nuggets") for v in values)
    assert [v["requires_citation"] for v in values if "requires_citation" in v] == [True]


@pytest.mark.parametrize(
    ("mode", "said"),
    [("always-429", "429"), ("always-500", "500"), ("401", "401"), ("400", "400"), ("truncated", "reached"),
     ("not-json", "no chat completion"), ("wrong-json", "no chat completion"), ("close", "reached"), ("redirect", "307")],
)  # fmt: skip
def test_what_keeps_failing_leaves_no_half_judged_report(
    serving: Callable[..., OpenAIServer], mode: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serving(mode)
    assert judge("x") != 0
    err = capsys.readouterr().err
    assert "1 of 1 reports could not be judged" in err and said in err
    assert "4711" not in err
    assert not Path("x.judgments.jsonl").exists() and not Path("x.scores.tsv").exists()
    if mode in ("401", "400", "redirect"):  # asking again cannot help: it stops at once
        assert len(server.chats) <= 5


def test_slow_replies_are_waited_for(
    serving: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving("slow", delay=1.0)
    monkeypatch.setenv("ARGUE_MAX_CONCURRENCY", "30")
    begun = time.monotonic()
    assert judge("x") == 0
    assert time.monotonic() - begun < CALLS / 2  # at the same time


@pytest.mark.parametrize("number", [1, 4])
def test_no_more_are_open_than_allowed(
    serving: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    server = serving("slow", delay=0.03)
    monkeypatch.setenv("ARGUE_MAX_CONCURRENCY", str(number))
    assert judge("x") == 0
    assert server.most_at_once <= number
    assert number == 1 or server.most_at_once > 1


def test_a_second_run_is_free_and_byte_identical(
    serving: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serving()
    assert judge("x") == 0
    first = {
        name: Path(name).read_bytes() for name in ("x.judgments.jsonl", "x.scores.tsv", "x.replies.jsonl")
    }
    capsys.readouterr()
    # Without judgments, server and key.
    Path("x.judgments.jsonl").unlink()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert judge("x") == 0
    assert "all answered before" in capsys.readouterr().err
    assert judge("x", "--rerun", "--max-calls", "1") == 0
    assert {name: Path(name).read_bytes() for name in first} == first


def test_other_prompts_models_and_lengths_are_asked_anew(serving: Callable[..., OpenAIServer]) -> None:
    server = serving()
    assert judge("x") == 0
    asked = len(server.chats)
    assert judge("x", "-P", str(PROMPTS)) == 0
    assert len(server.chats) == asked + 6  # only the type whose prompt has changed
    assert "You check reports against their sources." in server.chats[-1].prompt
    assert judge("x", "--max_tokens", "99") == 0
    assert len(server.chats) == asked + 6 + CALLS
    assert judge("x", "-m", "another") == 0
    assert len(server.chats) == asked + 6 + 2 * CALLS
    assert server.chats[-1].json["model"] == "another"


def test_parameters_that_a_model_wants_or_refuses(
    serving: Callable[..., OpenAIServer], capsys: pytest.CaptureFixture[str]
) -> None:
    server = serving()
    words = ["--parameter", "max_completion_tokens=2000", "--parameter", "max_tokens=null",
             "--parameter", "temperature=null", "--parameter", "reasoning_effort=low"]  # fmt: skip
    assert judge("x", *words) == 0
    assert f"+ {2000 * CALLS:,} tokens" in capsys.readouterr().err
    sent = {k: v for k, v in server.chats[0].json.items() if k not in ("model", "messages")}
    assert sent == {"max_completion_tokens": 2000, "reasoning_effort": "low"}
    [judged] = rows(Path("x.judgments.jsonl"))
    assert judged["judge"]["parameters"] == sent
    for wrong in ("model=x", "messages=[]", "x", "=3", "a b=1"):
        assert judge("y", "--parameter", wrong) == 2


def test_without_cache_everything_is_asked_again(serving: Callable[..., OpenAIServer]) -> None:
    server = serving()
    assert judge("x", "--disable-cache") == 0
    assert judge("x", "--disable_cache", "--rerun") == 0
    assert len(server.chats) == 2 * CALLS and not Path("x.replies.jsonl").exists()


def test_what_was_answered_before_an_interruption_is_not_paid_again(
    serving: Callable[..., OpenAIServer],
) -> None:
    seen: list[str] = []

    def failing(request: Request) -> object:
        from tests.worlds.openai_server import failure

        seen.append(request.last)
        return "YES" if len(seen) <= 12 else failure(401, "broken", "no more")

    serving(text=failing)
    assert judge("x") != 0
    kept = len(rows(Path("x.replies.jsonl")))
    assert 0 < kept <= 12
    server = serving()
    assert judge("x") == 0
    assert len(server.chats) == CALLS - kept


def test_a_budget_is_kept_by_not_beginning(
    serving: Callable[..., OpenAIServer], capsys: pytest.CaptureFixture[str]
) -> None:
    server = serving()
    assert judge("x", "--max-calls", str(CALLS - 1)) == 2
    said = capsys.readouterr().err
    assert f"judging may take {CALLS} calls" in said and f"--max-calls allows {CALLS - 1}" in said
    assert server.requests == []
    assert judge("x", "--max-calls", str(CALLS)) == 0


def test_everything_is_asked_on_demand_and_announced(
    serving: Callable[..., OpenAIServer], capsys: pytest.CaptureFixture[str]
) -> None:
    server = serving(text="NO")
    assert judge("x", "--always_check_all_nuggets", "--dry-run") == 0
    assert server.requests == []
    announced = int(capsys.readouterr().err.split(" calls")[0].split()[-1].replace(",", ""))
    assert judge("x", "--always-check-all-nuggets") == 0
    assert CALLS < len(server.chats) <= announced
    [judged] = rows(Path("x.judgments.jsonl"))
    relevance = [j for s in judged["segments"] for j in s["judgments"] if j["judgment_type_id"] == T.CITED_DOCUMENT_RELEVANCE]  # fmt: skip
    assert {j["evaluator"] for j in relevance} == {"openai"}
    assert not any(j["response"]["is_relevant"] for j in relevance)


def test_keys_from_the_file_in_the_working_directory(
    serving: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving()
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    Path(".env").write_text(f"OPENAI_API_KEY=sk-of-the-file\nOPENAI_BASE_URL={server.base_url}\n")
    assert judge("x") == 0
    assert server.chats[0].headers["authorization"] == "Bearer sk-of-the-file"


@pytest.mark.parametrize(
    "provider", ["anthropic", "together", "huggingface", "from_env", "huggingface_local"]
)
def test_every_preset_speaks_to_a_compatible_endpoint(
    serving: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    server = serving()
    monkeypatch.setenv(
        "BASE_URL" if provider == "from_env" else f"{provider.upper()}_BASE_URL", server.base_url
    )
    for key in ("ANTHROPIC_API_KEY", "TOGETHER_API_KEY", "HUGGINGFACEHUB_API_TOKEN"):
        monkeypatch.setenv(key, key.lower())
    words = ["-m", "mine"] if provider == "from_env" else []
    assert main(["argue", str(REPORT), str(NUGGETS), "x", "-p", provider, "-C", str(LOOKUP), *words]) == 0
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


def test_a_terminal_shows_the_bar_and_loses_it_again() -> None:
    ours, theirs = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        words = [
            sys.executable,
            "-m",
            "evaluator",
            "argue",
            REPORT,
            NUGGETS,
            f"{folder}/x",
            "-p",
            "lexical",
            "-C",
            LOOKUP,
        ]
        done = subprocess.run(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=theirs, timeout=120)
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while piece := os.read(ours, 4096):
            drawn += piece
    os.close(ours)
    assert done.returncode == 0
    assert b"judging [" in drawn and b"/23 at most" in drawn
    assert drawn.rfind(b"\r" + b" " * 40) > drawn.rfind(b"judging [")


def test_an_interruption_keeps_what_was_answered(serving: Callable[..., OpenAIServer]) -> None:
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
