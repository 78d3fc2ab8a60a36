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


# Addresses with the same mistake; "hunter2" stands for a key.
MISTAKES = [
    ["http://api.example.com/v1"],
    ["ftp://hunter2.example.com/v1", "https://", "https://api.example.com:0/"],
    ["https://hunter2@api.example.com/v1"],
    ["https://api.example.com/v1?key=hunter2", "https://api.example.com/v1#hunter2"],
    ["https://hunter2.example.com/\r\nHost: evil"],
    ["https://api.example.com:99999/", "https://[hunter2/"],
]


def test_every_mistake_has_a_problem_of_its_own_that_does_not_repeat_the_address() -> None:
    problems = [{tuple(address_problems(url)) for url in urls} for urls in MISTAKES]
    assert [[len(problem) for problem in same] for same in problems] == [[1]] * len(MISTAKES), problems
    assert len(set.union(*problems)) == len(MISTAKES) and "hunter2" not in str(problems)
