"""The judges' client over real sockets, against everything that an endpoint can do wrong."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.judges.chat import Chat, JudgeError, Reply
from evaluator.judges.replies import Replies
from tests.worlds.openai_server import OpenAIServer, failure


def message(text: str = "Is it so?") -> list[dict[str, str]]:
    return [{"role": "system", "content": "Say YES or NO."}, {"role": "user", "content": text}]


def asking(*texts: str, **options: Any) -> list[Reply | BaseException]:
    """The replies to these questions, asked all at once."""

    async def ask() -> list[Reply | BaseException]:
        parameters = {name: options.pop(name) for name in ("max_tokens", "grammar") if name in options}
        async with Chat(**{"model": "m", "timeout": 5, "retries": 1, **options}) as chat:
            questions = (chat.ask(message(text), **parameters) for text in texts)
            return await asyncio.gather(*questions, return_exceptions=True)

    return asyncio.run(ask())


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="c-") as folder:
        yield Path(folder) / "s"


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("exact", "YES"),
        ("wrong-case", "yes"),
        ("chatty", "**YES**"),
        ("empty", ""),
        ("null", ""),
        ("no-usage", "YES"),
        ("cut-off", "YES"),
        ("429-then-good", "YES"),
        ("500-then-good", "YES"),
        ("cut-then-good", "YES"),
    ],
)
def test_what_a_model_says_is_given_as_it_is(socket: Path, mode: str, text: str) -> None:
    with OpenAIServer(mode) as server:
        [reply] = asking("Is it so?", base_url=server.base_url, max_tokens=10)
        assert isinstance(reply, Reply) and text in reply.text and (text or not reply.text)
        assert len(server.chats) == (2 if "then" in mode else 1)
        sent = {"model": "m", "messages": message(), "temperature": 0, "max_tokens": 10}
        assert server.chats[-1].json == sent
        assert reply.finish == ("length" if mode == "cut-off" else "stop")
    with OpenAIServer(mode, socket=socket) as server:
        [again] = asking("Is it so?", socket=socket, max_tokens=10)
        assert again == reply


@pytest.mark.parametrize(
    ("mode", "transient", "value"),
    [
        ("always-429", True, "429"),
        ("always-500", True, "500"),
        ("401", False, "401"),
        ("400", False, "400"),
        ("redirect", False, "307"),
        ("slow", True, "0.3 s"),
        ("hang", True, "0.3 s"),
        *((mode, True, "") for mode in ("close", "truncated", "not-json", "wrong-json", "stream", "huge")),
    ],
)
def test_what_goes_wrong_is_named_and_never_shows_the_key(mode: str, transient: bool, value: str) -> None:
    timeout = 0.3 if mode in ("slow", "hang") else 5.0
    with OpenAIServer() as elsewhere, OpenAIServer(mode, location=elsewhere.base_url) as server:
        key = "sk-canary-1234567890"
        [error] = asking("Is it so?", base_url=server.base_url, api_key=key, timeout=timeout)
        assert not elsewhere.requests
    assert isinstance(error, JudgeError) and error.transient is transient and value in error.what
    assert key not in " ".join(error.lines()) and len(error.lines()) <= 3


def test_nobody_there() -> None:
    [error] = asking("Is it so?", socket=Path("/nowhere/s"), retries=0)
    assert isinstance(error, JudgeError) and error.transient


def test_the_environments_key_goes_to_no_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    with OpenAIServer() as server:
        asking("Is it so?", base_url=server.base_url)
        assert server.requests[0].headers["authorization"] == "Bearer none"
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        asking("Is it so?")
        assert server.requests[1].headers["authorization"] == "Bearer sk-environment"
    monkeypatch.delenv("OPENAI_API_KEY")
    [error] = asking("Is it so?")
    assert isinstance(error, JudgeError) and not error.transient


def test_questions_are_bounded_and_equal_ones_are_one() -> None:
    texts = [f"number {number % 8}" for number in range(24)]
    with OpenAIServer("slow", delay=0.1, text=lambda request: request.last) as server:
        replies = asking(*texts, base_url=server.base_url, concurrency=3)
        assert [reply.text for reply in replies if isinstance(reply, Reply)] == texts
        assert len(server.chats) == 8 and server.most_at_once <= 3


def test_an_error_is_not_remembered() -> None:
    async def ask(base_url: str) -> tuple[int, int, int, int]:
        async with Chat(model="m", base_url=base_url, retries=0) as chat:
            with pytest.raises(JudgeError):
                await chat.ask(message())
            assert not (await chat.ask(message())).cached
            assert (await chat.ask(message())).cached
            return chat.usage.asked, chat.usage.cached, chat.usage.failed, chat.usage.prompt_tokens

    with OpenAIServer(["always-500", "exact"]) as server:
        assert asyncio.run(ask(server.base_url)) == (2, 1, 1, 7)


def test_a_second_evaluation_is_free_and_knows_no_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with OpenAIServer(text=lambda request: f"about {request.last}") as server, Replies(path) as replies:
        first = asking("a", "b", base_url=server.base_url, replies=replies)
    kept = path.read_bytes()
    with Replies(path) as replies:
        second = asking("a", "b", base_url="http://127.0.0.1:9/v1", replies=replies)
        [other] = asking("c", base_url="http://127.0.0.1:9/v1", replies=replies, retries=0)
    assert path.read_bytes() == kept
    replies_of = [(reply.text, reply.cached) for reply in first + second if isinstance(reply, Reply)]
    assert replies_of == [(text, cached) for cached in (False, True) for text in ("about a", "about b")]
    assert isinstance(other, JudgeError)


def test_parameters_of_other_servers_pass_and_none_leaves_out() -> None:
    with OpenAIServer() as server:
        options = {"base_url": server.base_url, "parameters": {"temperature": None, "guided_choice": ["YES"]}}
        asking("Is it so?", grammar='root ::= "YES"', **options)
        sent = server.chats[0].json
    assert sent["guided_choice"] == ["YES"] and sent["grammar"] and "temperature" not in sent


def test_a_caller_that_gives_up_does_not_take_the_others_along() -> None:
    async def ask(base_url: str) -> Reply:
        async with Chat(model="m", base_url=base_url) as chat:
            first = asyncio.ensure_future(chat.ask(message()))
            second = asyncio.ensure_future(chat.ask(message()))
            await asyncio.sleep(0.1)
            first.cancel()
            return await second

    with OpenAIServer("slow", delay=0.4) as server:
        assert asyncio.run(ask(server.base_url)).text == "YES"
        assert len(server.chats) == 1


def test_a_wrong_key_is_asked_once() -> None:
    with OpenAIServer("401") as server:
        texts = [f"number {n}" for n in range(24)]
        errors = asking(*texts, base_url=server.base_url, api_key="sk-wrong-1234567890")
        assert len(server.requests) == 1
    assert {str(error) for error in errors} == {str(errors[0])} and "401" in str(errors[0])


@pytest.mark.parametrize("later", [False, True])
def test_a_dead_address_is_given_up_at_once(later: bool) -> None:
    """Three tries of one question, whatever ``retries`` says; the others, and those that come later, ask nothing."""

    async def ask() -> list[Any]:
        async with Chat(model="m", base_url="http://127.0.0.1:9/v1", retries=9) as chat:
            first = [chat.ask(message(f"number {n}")) for n in range(40)]
            found = await asyncio.gather(*first, return_exceptions=True)
            return [await _error(chat)] if later else found

    start = time.monotonic()
    errors = asyncio.run(ask())
    assert all(isinstance(e, JudgeError) and "http://127.0.0.1:9/v1" in e.what for e in errors)
    assert time.monotonic() - start < 10


async def _error(chat: Chat) -> BaseException:
    with pytest.raises(JudgeError) as raised:
        await chat.ask(message("later"))
    return raised.value


def test_one_question_that_is_refused_is_no_fault_of_the_others() -> None:
    def says(request: Any) -> Any:
        if "filtered" in request.last:
            return failure(400, "content_filter", "The response was filtered.")
        return "YES" if "odd" not in request.last else failure(403, "moderation", "Flagged.")

    with OpenAIServer(text=says) as server:
        found = asking("filtered", "good", "odd", "fine", base_url=server.base_url)
    assert [isinstance(one, Reply) for one in found] == [False, True, False, True]
    assert all(isinstance(e, JudgeError) and e.refused and not e.lasting for e in (found[0], found[2]))


def test_a_filtered_question_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    """With the same words; one that may have been about the account is asked again."""

    def says(request: Any) -> Any:
        if "filtered" in request.last:
            return failure(400, "content_filter", "The response was filtered.")
        return "YES" if "odd" not in request.last else failure(400, "billing", "No credit.")

    path = tmp_path / "replies.jsonl"
    with OpenAIServer(text=says) as server:
        first = asking("good", "filtered", "odd", base_url=server.base_url, replies=Replies(path))
        before = len(server.chats)
        again = asking("good", "filtered", "odd", base_url=server.base_url, replies=Replies(path))
        assert (before, len(server.chats)) == (3, 4) and "odd" in server.chats[-1].last
    assert [str(one) for one in again[1:]] == [str(one) for one in first[1:]]
    assert all(isinstance(one, JudgeError) and one.refused for one in again[1:])


def test_an_endpoint_that_refuses_its_first_questions_takes_none() -> None:
    with OpenAIServer("400") as server:
        errors = asking(*(f"number {n}" for n in range(24)), base_url=server.base_url)
        assert len(server.requests) == 5
    assert sum(isinstance(e, JudgeError) and e.refused for e in errors) == 4
    assert sum(isinstance(e, JudgeError) and e.lasting for e in errors) == 20


def test_an_endpoint_that_answered_before_is_waited_for() -> None:
    async def ask(server: OpenAIServer) -> JudgeError:
        async with Chat(model="m", base_url=server.base_url, retries=1) as chat:
            await chat.ask(message("a"))
            return await _error(chat)  # type: ignore[return-value]

    with OpenAIServer(["exact", "close"]) as server:
        error = asyncio.run(ask(server))
    assert error.transient and not error.lasting
