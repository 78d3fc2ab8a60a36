"""What an endpoint sends back: made anew from an allow-list, without the key in any field, within what was held."""

from __future__ import annotations

import base64
import codecs
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import canonical
from sidecars.gateway.budget import Budget
from sidecars.gateway.config import Config
from sidecars.gateway.question import read
from sidecars.gateway.secret import Secret
from tests.worlds.openai_server import Answer, OpenAIServer, Request, failure
from tests.worlds.running import CANARY, Place, lines, question

MESSAGE = dict.fromkeys(("role", "refusal"), CANARY) | {"tool_calls": [{"id": CANARY}]}
CHOICE = {"index": CANARY, "finish_reason": CANARY, "logprobs": {"content": [{"token": CANARY}]}}
EVERYWHERE: dict[str, Any] = {
    **dict.fromkeys(("id", "object", "created", "model", "system_fingerprint", "service_tier"), CANARY),
    CANARY: CANARY,
    "choices": [
        {**CHOICE, "message": {**MESSAGE, "content": f"YES {CANARY}"}},
        {"message": {"content": CANARY}, "finish_reason": CANARY},
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "details": CANARY, CANARY: 1},
}


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_no_field_of_a_reply_brings_the_key(place: Place, ask: Any, status: int) -> None:
    """Also in headers, in errors, and in what is written down."""
    body = EVERYWHERE if status == 200 else {"error": {"message": CANARY, "code": CANARY, "type": CANARY}}
    headers = {"x-request-id": CANARY, "retry-after": CANARY, "set-cookie": CANARY, CANARY: CANARY}
    answer = Answer(json.dumps(body).encode(), status, headers)
    with (
        OpenAIServer(text=lambda _: answer) as server,
        place.gateway(server.base_url, retries=0) as gateway,
        gateway.client() as client,
    ):
        said = [ask(gateway), ask(gateway)]
        said += [client.get(path) for path in ("/usage", "/v1/models")]
    if status == 200:
        assert said[0].status_code == 200
        message = {"role": "assistant", "content": "YES [key]"}
        assert said[0].json()["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    written = [path.read_text() for path in place.folder.iterdir() if path.name not in ("key", "s")]
    for text in (*(s.text + str(s.headers) for s in said), gateway.printed, *written):
        assert CANARY not in text and CANARY[:12] not in text


def test_replies_that_another_version_kept_are_made_anew_too(place: Place, ask: Any) -> None:
    with OpenAIServer() as server, place.gateway(server.base_url) as gateway:
        assert ask(gateway).is_success
    [kept] = lines(place.replies)
    kept |= {"reply": f"no, {CANARY}", "finish_reason": CANARY}
    kept["usage"]["prompt_tokens"] = 10**30
    place.replies.write_bytes(canonical(kept) + b"\n")
    with OpenAIServer() as server, place.gateway(server.base_url) as gateway:
        answer = ask(gateway)
        assert not server.chats
    assert answer.json()["choices"][0]["finish_reason"] == "stop" and CANARY not in answer.text
    assert answer.json()["usage"]["prompt_tokens"] <= 1 << 40


DISGUISES = {
    "as it is": CANARY,
    "upper case": CANARY.upper(),
    "blanks between": " ".join(CANARY),
    "lines and quotes": '"\n"'.join(CANARY),
    "invisible characters": "\u200b".join(CANARY),
    "wide letters": "".join(chr(ord(c) + 0xFEE0) for c in CANARY),
    "backwards": CANARY[::-1],
    "base64": base64.b64encode(CANARY.encode()).decode(),
    "base64 of a header": base64.b64encode(f"Bearer {CANARY}".encode()).decode(),
    "base64, shifted by two": base64.urlsafe_b64encode(f"k={CANARY}!".encode()).decode(),
    "base32": base64.b32encode(CANARY.encode()).decode(),
    "hexadecimal": CANARY.encode().hex(),
    "hexadecimal with colons": CANARY.encode().hex(":"),
    "percent": "".join(f"%{byte:02X}" for byte in CANARY.encode()),
    "JSON escapes": "".join(f"\\u{ord(c):04x}" for c in CANARY),
    "C escapes": "".join(f"\\x{ord(c):02x}" for c in CANARY),
    "HTML": "".join(f"&#{ord(c)};" for c in CANARY),
    "codes": ", ".join(str(ord(c)) for c in CANARY),
    "rot13": codecs.encode(CANARY, "rot13"),
    "the greater part": CANARY[4:-3],
}


@pytest.mark.parametrize("name", DISGUISES)
def test_a_key_in_disguise_is_covered(name: str) -> None:
    said = f"it was {DISGUISES[name]}, they say"
    covered = Secret(CANARY).covered(said)
    assert "[key]" in covered and len(covered) < len("it was , they say") + 24
    assert covered.startswith("it was ") and covered.endswith(", they say")


def test_other_words_stay_as_they_are() -> None:
    secret = Secret(CANARY)
    dice = random.Random(5)
    words = ["canary", "yes", "no", "9c51", "115107", "1.1571e4", "naïve", "\u200bx", "=="]
    for _ in range(300):
        text = " ".join(dice.choices(words, k=40))
        assert secret.covered(text) == text
    assert Secret(None).covered(CANARY) == CANARY
    assert Secret("test").covered("a test of it: tes t") == "a [key] of it: tes t"


def test_a_long_text_is_looked_through_in_time(place: Place, ask: Any) -> None:
    text = "a naïve answer sk-cana " * 40_000 + CANARY
    with OpenAIServer(text=text) as server, place.gateway(server.base_url, timeout=30) as gateway:
        answer = ask(gateway)
    assert answer.is_success and CANARY not in answer.text and answer.text.count("[key]") == 1


LIES: list[Any] = [
    *(-1, -(10**9), 10**6, 1 << 39, 10**40, 0, True, False, 1.5, 1e308, float("nan"), float("inf")),
    *("7", "10000000", None, [], {}, [5], {"n": 5}),
]


def test_a_lying_count_of_tokens_books_no_more_than_was_held_and_no_less_than_is_known(place: Place) -> None:
    choices = [{"index": 0, "message": {"content": "YES"}, "finish_reason": "stop"}]
    lies = [({"prompt_tokens": lie, "completion_tokens": lie, "total_tokens": lie}, lie) for lie in LIES]
    lies += [(lie, None) for lie in LIES]

    def reply(request: Request) -> Answer:
        return Answer(json.dumps({"choices": choices, "usage": lies[int(request.last)][0]}).encode())

    with (
        OpenAIServer(text=reply) as server,
        place.gateway(server.base_url, price={"input": 1, "output": 2}) as gateway,
        gateway.client() as client,
    ):
        before = client.get("/usage").json()["spent"]
        for number, (_, lie) in enumerate(lies):
            asked = question(f"{number:04}")
            held = read(canonical(asked), Config("https://h/", ("m",)))
            answer = client.post("/v1/chat/completions", json=asked).json()["usage"]
            after = client.get("/usage").json()["spent"]
            tokens = after["tokens"] - before["tokens"]
            cost = (after["cost"] - before["cost"]) * 1e6
            before = after
            assert 0 < tokens <= held.most_prompt + held.most_reply
            assert 0 < cost <= held.most_prompt + 2 * held.most_reply + 1
            assert all(type(c) is int and 0 <= c <= held.most_prompt + 10 for c in answer.values())
            if type(lie) is not int or lie <= 0:
                assert tokens == held.most_prompt + held.most_reply, "nobody counted: all that was held"


@given(st.lists(st.tuples(st.integers(), st.integers()), max_size=20), st.integers(0, 3000))
def test_no_count_at_all_breaks_the_arithmetic_of_a_budget(
    counted: list[tuple[int, int]], tokens: int
) -> None:
    budget = Budget(Config("https://h/", ("m",), tokens=tokens, price_input=1, price_output=3))
    asked = read(canonical(question("x", max_tokens=9)), Config("https://h/", ("m",)))
    for prompt, said in counted:
        if budget.tokens + asked.most_prompt + asked.most_reply > tokens:
            break
        before = budget.tokens, budget.cost
        budget.settle(budget.take(asked), prompt, said)
        assert before[0] <= budget.tokens <= tokens and before[1] <= budget.cost
    assert budget.held_tokens == 0 and budget.held_cost == 0


def filtered(request: Request) -> Answer | str:
    """An endpoint with a filter of contents, which does not always say that it is one."""
    if "bomb" in request.last:
        return failure(400, "content_filter", f"The response was filtered, {CANARY}.")
    return failure(400, "", "No.") if "odd" in request.last else "YES"


@pytest.mark.slow
def test_a_refusal_is_kept_and_repeated_for_nothing(place: Place, ask: Any) -> None:
    """The same bytes without key and endpoint: of a filter also where somebody could be asked, of anything else only there."""
    asked = ("an odd one", "a bomb", "fine", "another odd one")
    with OpenAIServer(text=filtered) as server:
        with place.gateway(server.base_url) as gateway:
            first = [ask(gateway, text) for text in asked]
        assert [a.status_code for a in first] == [400, 400, 200, 400] and len(server.chats) == 4
        kept = lines(place.replies)
        codes = sorted((k["reply"], k.get("refused", {}).get("code")) for k in kept)
        assert codes == [("", ""), ("", ""), ("", "content_filter"), ("YES", None)]
        assert CANARY not in place.replies.read_text()
        known = place.replies.rename(place.folder / "known.jsonl")
        place.calls.unlink()
        with place.gateway(server.base_url, "--known", known, "--replay", key=False) as gateway:
            assert [ask(gateway, text).content for text in asked] == [a.content for a in first]
            with gateway.client() as client:
                used = client.get("/usage").json()
        assert len(server.chats) == 4 and place.replies.read_bytes() == b""
        assert (used["cached"], used["failed"], used["refused"], used["spent"]["calls"]) == (4, 0, 0, 0)
        assert all(line["cached"] and "upstream" not in line for line in lines(place.calls))
    with OpenAIServer() as server, place.gateway(server.base_url, "--known", known) as gateway:
        again = [ask(gateway, text) for text in asked]
        assert [a.status_code for a in again] == [200, 400, 200, 200] and len(server.chats) == 2
    # An answer that came later counts more than the refusal before it.
    known.write_bytes(known.read_bytes() + place.replies.read_bytes())
    with place.gateway("http://127.0.0.1:9/v1", "--known", known, "--replay", key=False) as gateway:
        assert [ask(gateway, text).content for text in asked] == [a.content for a in again]


def test_an_endpoint_that_takes_nothing_is_not_remembered(place: Place, ask: Any) -> None:
    with OpenAIServer("400") as server, place.gateway(server.base_url) as gateway:
        assert [ask(gateway, text).status_code for text in ("a", "b")] == [400, 400]
    assert place.replies.read_bytes() == b""
    with OpenAIServer() as server, place.gateway(server.base_url) as gateway:
        assert ask(gateway, "a").is_success
