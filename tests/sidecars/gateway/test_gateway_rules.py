"""The gateway's definition, its allow-list and its budget, without any server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import canonical
from sidecars.gateway.__main__ import main
from sidecars.gateway.budget import Budget
from sidecars.gateway.config import Config, ConfigError, Spent, load
from sidecars.gateway.question import PARAMETERS, read
from sidecars.gateway.upstream import retry_after
from sidecars.http import HttpError
from tests.worlds.running import CANARY, question

GOOD = {"schema_version": 1, "base_url": "https://api.example.com/v1", "models": ["m"]}
CONFIG = Config("https://api.example.com/v1", ("m",))


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "gateway.json"
    path.write_text(json.dumps({**GOOD, **changes}))
    return path


def test_a_definition_and_its_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f" {CANARY}\r\n")
    limits = {"calls": 5, "cost": 2.5, "tokens": None, "spent": {"cost": 1.5}}
    config = load(write(tmp_path, price={"input": 1, "output": 2.5}, **limits), tmp_path / "key")
    assert (config.key, config.calls, config.tokens) == (CANARY, 5, None)
    assert (config.price_output, config.spent) == (2.5, Spent(cost=1.5))
    assert CANARY not in repr(config)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"base_url": "http://api.example.com/v1"}, "base_url"),
        ({"base_url": "ftp://api.example.com/v1"}, "base_url"),
        ({"base_url": "https://user:pass@api.example.com/v1"}, "base_url"),
        ({"base_url": "https://api.example.com/v1?key=1"}, "base_url"),
        ({"base_url": "https://api.example.com/\r\nHost: evil"}, "base_url"),
        ({"base_url": "https://"}, "base_url"),
        ({"base_url": "https://h:99999/"}, "base_url"),
        ({"base_url": None}, "base_url"),
        ({"models": []}, "models"),
        ({"models": "m"}, "models"),
        ({"calls": -1}, "calls"),
        ({"calls": 1.5}, "calls"),
        ({"concurrency": 0}, "concurrency"),
        ({"timeout": "60s"}, "timeout"),
        ({"cost": 1.0}, "price"),
        ({"price": {"input": "1"}}, "input"),
        ({"price": 3}, "price"),
        ({"key": "sk-1"}, "key"),
        ({"schema_version": 2}, "schema_version"),
    ],
)
def test_a_definition_that_cannot_be_used(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    """The one problem is that of the key that was changed."""
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, **changes))
    [problem] = error.value.problems
    assert named in problem


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8000/v1", "http://10.0.0.5/v1", "http://ollama:11434/v1", "http://[::1]:1/v1"],
)
def test_http_is_for_this_machine_and_private_networks(tmp_path: Path, address: str) -> None:
    assert load(write(tmp_path, base_url=address)).base_url == address


def test_all_problems_are_reported_and_none_shows_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text(f"{CANARY} and more")
    path = write(tmp_path, models=[], calls=-1, base_url="http://x.example/")
    options = ["--key-file", str(tmp_path / "key"), "--socket", str(tmp_path / "s")]
    assert main(["serve", "--config", str(path), *options]) == 2
    printed = capsys.readouterr()
    assert len(printed.err.splitlines()) == 4
    assert CANARY not in printed.out + printed.err


def test_a_replay_needs_no_address(tmp_path: Path) -> None:
    path = tmp_path / "gateway.json"
    path.write_text('{"schema_version":1,"models":["m"]}')
    assert load(path, tmp_path / "no key", replay=True).key is None
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert ["base_url" in problem for problem in caught.value.problems] == [True]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), TEXTS), min_size=1, max_size=5),
    st.fixed_dictionaries(
        {"max_tokens": st.integers(1, 4096)},
        optional={
            "temperature": st.floats(0, 2),
            "top_p": st.floats(0, 1),
            "seed": st.integers(0, 2**31),
            "stop": st.text("ab", min_size=1, max_size=5),
        },
    ),
)
def test_what_is_asked_is_what_was_written_and_nothing_else(
    messages: list[tuple[str, str]], parameters: dict[str, Any]
) -> None:
    written = [{"role": role, "content": content} for role, content in messages]
    body = json.dumps({"model": "m", "messages": written, **parameters}).encode()
    asked = read(body, CONFIG)
    sent = json.loads(asked.body())
    assert sent == {"model": "m", "messages": written, **parameters}
    assert asked.most_prompt >= sum(len(content.encode()) for _, content in messages)
    assert asked.most_reply == parameters["max_tokens"]
    assert read(asked.body(), CONFIG) == asked


@given(
    st.dictionaries(
        st.text(max_size=20), st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS), max_size=6
    )
)
def test_any_other_body_is_refused_or_clean(data: dict[str, Any]) -> None:
    try:
        asked = read(canonical({**question("x"), **data}), CONFIG)
    except HttpError as refused:
        assert 400 <= refused.status < 500 and len(refused.message) < 1000
    else:
        assert set(json.loads(asked.body())) <= {"model", "messages", *PARAMETERS}


CALLS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 100), st.floats(0, 1), st.floats(0, 1)), max_size=40
)


@given(CALLS, st.integers(0, 3000), st.floats(0, 0.01), st.integers(1, 20))
def test_no_order_of_calls_exceeds_a_budget(
    calls: list[tuple[int, int, float, float]], tokens: int, cost: float, count: int
) -> None:
    """Whatever is used of what was held, and however many calls are open."""
    budget = Budget(
        Config("https://h/", ("m",), calls=count, tokens=tokens, cost=cost, price_input=1, price_output=3)
    )
    open_calls = []
    for size, most, prompt, said in calls:
        asked = read(canonical(question("x" * size, max_tokens=most)), CONFIG)
        try:
            hold = budget.take(asked)
        except HttpError as refused:
            assert refused.code == "budget_exceeded"
        else:
            open_calls.append((hold, int(asked.most_prompt * prompt), int(asked.most_reply * said)))
        if len(open_calls) > 3:
            budget.settle(*open_calls.pop(0))
        assert budget.tokens + budget.held_tokens <= tokens
        assert budget.calls <= count
        assert budget.cost + budget.held_cost <= cost * (1 + 1e-9) + 1e-12
    for held in open_calls:
        budget.settle(*held)
    assert budget.held_tokens == 0 and budget.held_cost == 0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *((None, None), ("3", 3.0), (" 1.5 ", 1.5), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)),
        *(("-1", None), ("nan", None), ("soon", None), ("9" * 30, None)),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds
