"""The gateway over real sockets, against a scripted endpoint: what comes through, what it costs, what is kept."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evaluator.judges.chat import Chat, JudgeError
from schemas.replies import reply_key
from tests.worlds.openai_server import Answer, OpenAIServer, Request, completion, failure
from tests.worlds.running import CANARY, Place, lines, question, serving


def test_a_reply_comes_through_once_and_is_known_from_then_on(place: Place, ask: Any) -> None:
    with OpenAIServer(text="YES") as server, place.gateway(server.base_url) as gateway:
        first, second, other = ask(gateway), ask(gateway), ask(gateway, "Something else?")
        assert first.status_code == second.status_code == other.status_code == 200
        assert first.content == second.content
        assert first.json()["choices"][0]["message"]["content"] == "YES"
        assert [answer.headers["x-gateway-cached"] for answer in (first, second)] == ["false", "true"]
        assert len(server.chats) == 2
    assert gateway.code == 0
    log = lines(place.calls)
    assert [(line["n"], line["status"]) for line in log] == [(1, 200), (2, 200), (3, 200)]
    assert [line["cached"] for line in log] == [False, True, False]
    body = question()
    parameters = {"max_tokens": 10, "temperature": 0}
    assert log[0]["key"] == reply_key("m", body["messages"], parameters) == lines(place.replies)[0]["key"]
    assert log[0]["prompt_tokens"] == 3 and log[0]["completion_tokens"] == 1 and log[0]["answered_by"] == "m"
    assert [line["reply"] for line in lines(place.replies)] == ["YES", "YES"]


def test_only_what_was_checked_goes_up_with_our_headers_alone(place: Place) -> None:
    with OpenAIServer() as server, place.gateway(server.base_url) as gateway, gateway.client() as client:
        sent = {"Authorization": "Bearer theirs", "Cookie": "a=b", "Proxy-Authorization": "x"}
        sent |= dict.fromkeys(("Host", "X-Forwarded-Host", "OpenAI-Organization"), "evil.example")
        body = {**question(), "n": 1, "stream": False, "stop": ["\n"], "seed": 7, "top_p": None}
        assert client.post("/v1/chat/completions?x=http://evil.example", json=body, headers=sent).is_success
        [request] = server.requests
        assert request.target == "/v1/chat/completions"
        ours = {"host", "accept", "accept-encoding", "content-type", "content-length", "authorization"}
        assert set(request.headers) - {"connection"} == {*ours, "user-agent"}
        assert request.headers["host"] == f"127.0.0.1:{server.port}"
        assert request.headers["authorization"] == f"Bearer {CANARY}"
        assert request.json == {**question(), "stop": ["\n"], "seed": 7}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "status", "code", "asked"),
    [
        *((mode, 200, None, 2) for mode in ("429-then-good", "500-then-good", "cut-then-good")),
        *((mode, 200, None, 1) for mode in ("empty", "null", "cut-off", "no-usage")),
        ("always-429", 429, "rate_limited", 2),
        *((mode, 502, "upstream_failed", 2) for mode in ("always-500", "close", "truncated", "hang", "slow")),
        *((mode, 502, "upstream_failed", 2) for mode in ("not-json", "wrong-json", "stream", "huge")),
        ("redirect", 502, "upstream_refused", 1),
        ("401", 502, "key_refused", 1),
        ("400", 400, "upstream_refused", 1),
    ],
)
def test_faults_of_an_endpoint_are_retried_or_reported_and_never_show_the_key(
    place: Place, ask: Any, mode: str, status: int, code: str | None, asked: int
) -> None:
    with OpenAIServer() as elsewhere, OpenAIServer(mode, location=elsewhere.base_url, delay=3) as server:
        # Only answers that shall be too late are: a busy machine takes its time.
        with place.gateway(server.base_url, timeout=0.7 if mode in ("hang", "slow") else 30) as gateway:
            answer = ask(gateway)
            with gateway.client() as client:
                used = client.get("/usage").text
        assert len(server.chats) == asked and not elsewhere.requests
    assert answer.status_code == status
    if code is None:
        assert answer.json()["choices"][0]["message"]["content"] in ("YES", "")
    else:
        assert answer.json()["error"]["code"] == code and answer.headers["x-should-retry"] == "false"
    [line] = lines(place.calls)
    assert line["status"] == status and line["retries"] == asked - 1
    written = [path.read_text() for path in place.folder.iterdir() if path.name not in ("key", "s")]
    for text in (answer.text, str(answer.headers), used, gateway.printed, *written):
        assert CANARY not in text and CANARY[:10] not in text


def test_a_key_that_the_endpoint_repeats_goes_no_further(place: Place, ask: Any) -> None:
    with (
        OpenAIServer(text=lambda request: f"it is {request.headers['authorization']}!") as server,
        place.gateway(server.base_url) as gateway,
    ):
        said = ask(gateway).json()["choices"][0]["message"]["content"]
        environment = Path(f"/proc/{gateway.process.pid}/environ").read_bytes()
        arguments = Path(f"/proc/{gateway.process.pid}/cmdline").read_bytes()
    assert said == "it is Bearer [key]!"
    assert CANARY.encode() not in environment + arguments + place.replies.read_bytes()


def test_proxies_and_certificates_of_the_environment_are_not_used(place: Place, ask: Any) -> None:
    with OpenAIServer() as proxy, OpenAIServer() as server:
        aside = f"http://127.0.0.1:{proxy.port}"
        env = {**os.environ, "HTTP_PROXY": aside, "http_proxy": aside, "ALL_PROXY": aside, "NO_PROXY": ""}
        with place.gateway(server.base_url, env=env, key=False) as gateway:
            assert ask(gateway).is_success
        assert len(server.requests) == 1 and not proxy.requests
        assert "authorization" not in server.requests[0].headers, "there is no key"


@pytest.mark.slow
def test_retry_after_is_kept_to(place: Place, ask: Any) -> None:
    for seconds, status, asked in (("1.2", 200, 2), ("3600", 429, 1)):
        with OpenAIServer("429-then-good", retry_after=seconds) as server:
            began = time.monotonic()
            with place.gateway(server.base_url) as gateway:
                assert ask(gateway, seconds).status_code == status and len(server.chats) == asked
            assert time.monotonic() - began >= 1.2 or status != 200


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"calls": 2}, "calls"),
        ({"tokens": 500}, "tokens"),
        ({"cost": 0.5, "price": {"input": 1000.0, "output": 1000.0}}, "cost"),
        ({"calls": 10, "spent": {"calls": 8}}, "calls"),
    ],
)
def test_a_budget_ends_before_it_is_exceeded(place: Place, ask: Any, limits: Any, named: str) -> None:
    with OpenAIServer(text="word " * 100) as server, place.gateway(server.base_url, **limits) as gateway:
        answers = [ask(gateway, f"number {number}", max_tokens=100) for number in range(12)]
        with gateway.client() as client:
            used = client.get("/usage").json()
    refused = [answer for answer in answers if not answer.is_success]
    assert 0 < len(server.chats) < 12 and len(refused) == 12 - len(server.chats)
    for answer in refused:
        assert answer.status_code == 429 and answer.json()["error"]["code"] == "budget_exceeded"
        assert named in answer.json()["error"]["message"]
    for name, limit in used["budget"].items():
        assert limit is None or used["spent"][name] <= limit
    assert used["refused"] == len(refused)


@pytest.mark.slow
def test_calls_count_with_their_retries(place: Place, ask: Any) -> None:
    with OpenAIServer("always-500") as server, place.gateway(server.base_url, calls=3, retries=5) as gateway:
        assert ask(gateway).json()["error"]["code"] == "budget_exceeded"
        assert len(server.chats) == 3


@pytest.mark.parametrize(("mode", "charged"), [("truncated", True), ("429-then-good", False)])
def test_calls_that_may_have_been_charged_for_count_in_full(
    place: Place, ask: Any, mode: str, charged: bool
) -> None:
    with OpenAIServer(mode) as server, place.gateway(server.base_url, retries=0) as gateway:
        assert not ask(gateway, "x" * 1000, max_tokens=50).is_success
        with gateway.client() as client:
            tokens = client.get("/usage").json()["spent"]["tokens"]
    assert tokens > 1050 if charged else tokens == 0


def test_no_more_calls_are_open_than_allowed_and_equal_ones_are_one(place: Place, ask: Any) -> None:
    with (
        OpenAIServer("slow", delay=0.3) as server,
        place.gateway(server.base_url, concurrency=3) as gateway,
        ThreadPoolExecutor(12) as pool,
    ):
        answers = list(pool.map(lambda number: ask(gateway, f"number {number % 6}"), range(12)))
        assert all(answer.is_success for answer in answers)
        assert len(server.chats) == 6 and 1 <= server.most_at_once <= 3


def test_a_client_that_goes_away_does_not_lose_a_reply_that_is_paid_for(place: Place, ask: Any) -> None:
    with OpenAIServer("slow", delay=0.8) as server, place.gateway(server.base_url) as gateway:
        body = json.dumps(question()).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place.socket))
            client.sendall(head.encode() + body)
            time.sleep(0.3)
        answer = ask(gateway)
        assert answer.is_success and len(server.chats) == 1


def test_a_replay_needs_neither_key_nor_endpoint(place: Place, ask: Any) -> None:
    with OpenAIServer(text="NO") as server:
        with place.gateway(server.base_url) as gateway:
            first = ask(gateway)
        known = place.replies.rename(place.folder / "known.jsonl")
        asked = len(server.requests)
        with place.gateway(server.base_url, "--known", known, "--replay", key=False) as gateway:
            assert ask(gateway).content == first.content
            unknown = ask(gateway, "Was this asked?")
        assert len(server.requests) == asked
    assert unknown.status_code == 404 and unknown.json()["error"]["code"] == "unknown_reply"
    assert place.replies.read_bytes() == b""  # what was known is not written again
    assert [line.get("code") for line in lines(place.calls)][1:] == [None, "unknown_reply"]


def test_what_cannot_be_logged_is_not_asked(place: Place, ask: Any) -> None:
    with OpenAIServer() as server, place.gateway(server.base_url, "--log", "/dev/full") as gateway:
        ask(gateway)
        answer = ask(gateway, "And now?")
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "log_unavailable"
        assert len(server.chats) == 1


def test_models_health_and_usage(place: Place) -> None:
    models = ["m", "n/o"]
    with (
        OpenAIServer() as server,
        place.gateway(server.base_url, models=models) as gateway,
        gateway.client() as client,
    ):
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["m", "n/o"]
        assert client.get("/healthz").is_success
        assert client.get("/usage").json()["requests"] == 0
        assert not server.requests


def test_it_listens_on_tcp_too(place: Place) -> None:
    with OpenAIServer() as server:
        with place.gateway(server.base_url):
            pass  # writes the definition
        with serving("sidecars.gateway", "--config", place.folder / "gateway.json", "--port", 0) as gateway:
            assert isinstance(gateway.where, int)
            with gateway.client() as client:
                assert client.post("/v1/chat/completions", json=question()).is_success


def test_the_judges_client_through_the_gateway(place: Place) -> None:
    """The two of them share what a key is, and what is worth another try."""

    async def ask(
        content: str, model: str = "m", retries: int = 3, **parameters: Any
    ) -> tuple[Any, list[str]]:
        async with Chat(model=model, socket=place.socket, retries=retries, timeout=20) as chat:
            messages = [{"role": "user", "content": content}]
            return await chat.ask(messages, max_tokens=10, **parameters), [*chat.replies._known]

    async def judge() -> tuple[Any, ...]:
        first, [key] = await ask("Is it so?")
        second, _ = await ask("Is it so?", temperature=0.0, top_p=None)
        with pytest.raises(JudgeError) as unknown:
            await ask("Is it so?", model="other")
        with pytest.raises(JudgeError) as spent:
            await ask("More?")
        return first, second, key, unknown.value, spent.value

    with OpenAIServer("429-then-good") as server, place.gateway(server.base_url, calls=2) as gateway:
        first, second, key, unknown, spent = asyncio.run(judge())
        assert len(server.chats) == 2
    assert gateway.code == 0
    assert (first.text, first.cached, second.cached) == ("YES", False, True)
    assert lines(place.replies)[0]["key"] == key
    assert not unknown.transient and "model_not_found" in unknown.why
    assert not spent.transient and "budget_exceeded" in spent.why


def test_reply_texts_survive_whatever_they_hold(place: Place, ask: Any) -> None:
    text = 'a "b" \\ \x00 \u2028 \u202e é 𝄞 </script>\n{"c": 1}'
    with OpenAIServer(text=lambda request: completion(request, text)) as server:
        with place.gateway(server.base_url) as gateway:
            assert ask(gateway).json()["choices"][0]["message"]["content"] == text
        with place.gateway(server.base_url) as gateway:  # started again on the same files
            again = ask(gateway)
            assert again.json()["choices"][0]["message"]["content"] == text
            assert again.headers["x-gateway-cached"] == "true"
        assert len(server.chats) == 1


@pytest.mark.slow
def test_a_wrong_key_and_a_dead_address_are_not_asked_again(place: Place, ask: Any) -> None:
    """The next question is refused at once."""
    with OpenAIServer("401") as server, place.gateway(server.base_url) as gateway:
        codes = [ask(gateway, f"question {n}").json()["error"]["code"] for n in range(5)]
        assert codes == ["key_refused"] * 5 and len(server.chats) == 1
    with place.gateway("http://127.0.0.1:9/v1", retries=9) as gateway:
        codes = [ask(gateway, f"question {n}").json()["error"]["code"] for n in range(5)]
    assert codes == ["upstream_failed"] * 5
    assert "1 of 3" in gateway.printed


def test_a_text_that_is_flagged_with_403_is_not_the_keys_fault(place: Place, ask: Any) -> None:
    def moderate(request: Request) -> Answer | str:
        return failure(403, "moderation", "flagged") if "x" in request.last else "YES"

    with OpenAIServer(text=moderate) as server, place.gateway(server.base_url) as gateway:
        codes = [ask(gateway, text).status_code for text in ("a", "x", "b")]
    assert codes == [200, 422, 200]
