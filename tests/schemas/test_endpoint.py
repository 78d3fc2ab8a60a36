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
    "url",
    [
        *("http://api.example.com/v1", "ftp://api.example.com/v1", "https://hunter2@api.example.com/v1"),
        *("https://api.example.com/v1?key=hunter2", "https://api.example.com/v1#hunter2"),
        *("https://api.example.com/\r\nHost: evil", "https://", "https://api.example.com:0/"),
        *("https://api.example.com:99999/", "https://[hunter2/"),
    ],
)
def test_an_address_that_cannot_be_used_and_is_not_repeated(url: str) -> None:
    (problem,) = address_problems(url)
    assert "hunter2" not in problem
