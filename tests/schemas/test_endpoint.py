"""What the address of an endpoint may look like, for task.yaml and for the gateway."""

from __future__ import annotations

import pytest

from schemas.endpoint import address_problems


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        *("http://127.0.0.1:8000/v1", "http://10.0.0.5/v1", "http://ollama:11434/v1", "http://[::1]:1/v1"),
        "http://models.internal/v1",
    ],
)
def test_an_address_that_can_be_used(url: str) -> None:
    assert address_problems(url) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://api.example.com/v1", "https"),
        ("ftp://api.example.com/v1", "https://"),
        ("https://hunter2@api.example.com/v1", "credentials"),
        ("https://api.example.com/v1?key=hunter2", "query"),
        ("https://api.example.com/v1#hunter2", "fragment"),
        ("https://api.example.com/\r\nHost: evil", "characters"),
        ("https://", "no host"),
        ("https://api.example.com:0/", "no host"),
        ("https://api.example.com:99999/", "not an address"),
        ("https://[hunter2/", "not an address"),
    ],
)
def test_an_address_that_cannot_be_used_and_is_not_repeated(url: str, said: str) -> None:
    problems = address_problems(url)
    assert len(problems) == 1 and said in problems[0]
    assert "hunter2" not in problems[0]
