"""Numbers in requests: no text that somebody sends as a number is an internal error, on any route."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from runner.web.limits import Limits, whole_number
from tests.runner.web.test_hostile_clients import raw, status
from tests.runner.web.test_routes import ROLES, TABLE, Front, address, shared

NUMBERS = (
    *(
        "0",
        "-1",
        "+1",
        "1_0",
        " 1",
        "1 ",
        "1.5",
        "1e3",
        "0x10",
        "٣",
        "²",
        "１",
        "",
        "NaN",
        "Infinity",
        "\x00",
    ),
    *("9" * 18, "9" * 19, "9" * 4301, "0" * 5000 + "1", "000000001" + "0" * 5000, "000000500999"),
)
ASCII = tuple(text for text in NUMBERS if text.isascii() and text.isprintable())
QUERY = [
    "limit",
    "after",
    "page",
    "log",
    "have",
    "task",
    "against",
    "version",
    "sha256",
    "measure",
    "run",
    "topic",
    "seed",
    "level",
    "offset",
    "since",
    "cursor",
    "by",
    "teams",
    "runs",
    "events",
    "held",
    "upload",
]
HEADERS = [
    "Content-Range",
    "Range",
    "If-Range",
    "If-None-Match",
    "Cookie",
    "X-Forwarded-For",
    "Referer",
    "Accept-Encoding",
    "Content-Type",
]
_SHAPES = {
    "Range": "bytes={}-",
    "Content-Range": "bytes */{}",
    "Cookie": "session={}",
    "Content-Type": "text/plain; charset={}",
}
FIELDS = [
    "software",
    "dataset",
    "name",
    "upload",
    "version",
    "members",
    "submission",
    "reason",
    "account",
    "token",
]
front = shared


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_of_ascii_digits_and_within_its_bounds(text: str) -> None:
    expected = int(text) if re.fullmatch("[0-9]{1,18}", text, re.ASCII) else None
    assert whole_number(text) == expected
    assert whole_number(text, 1, 500) == (expected if expected is not None and 1 <= expected <= 500 else None)


def test_a_page_of_a_list_has_at_most_its_bound(front: Front) -> None:
    with front.client() as client:
        for text in NUMBERS:
            said = client.get("/api/v1/tasks", params={"limit": text})
            assert said.status_code == 400 and said.json()["code"] == "E101", (text[:20], said.text)
        for text in ("1", "500", "007"):
            assert client.get("/api/v1/tasks", params={"limit": text}).status_code == 200
        said = client.get("/api/v1/tasks?limit=501&limit=" + "0" * 5000)
        assert said.status_code == 400


@pytest.mark.parametrize("text", ASCII)
def test_a_length_that_is_no_number_is_refused_by_its_head(front: Front, text: str) -> None:
    said = raw(front, "POST /sign-in HTTP/1.1", f"Content-Length: {text}")
    assert status(said) in (400, 403, 413), said[:200]


def reader(method: str, path: str) -> str | None:
    """The first role that a route does not refuse; None for everybody."""
    columns = dict(zip((None, *ROLES, "other"), TABLE[method, path], strict=True))
    fine = [role for role in ("team", "organiser", None) if columns[role] not in ("in", 401, 403)]
    return fine[0] if fine else None


@pytest.mark.parametrize(("method", "path"), TABLE, ids=" ".join)
def test_no_route_fails_for_a_number(
    front: Front, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "take", lambda *_: 0)
    names = re.findall(r"\{([^}]+)\}", path)

    def at(changed: str = "", text: str = "") -> str:
        return address(path, **{changed: quote(text, safe="")})

    with front.client(reader(method, path)) as client:

        def ask(where: str, **more: Any) -> None:
            said = client.request(method, where, **more)
            assert said.status_code not in (500, 503), (where[:80], {k: str(v)[:80] for k, v in more.items()})

        for number, text in enumerate(NUMBERS):
            most = 24_000 // len(quote(text) + "x" * 10)  # the head of a request is bounded
            for first in range(0, len(QUERY), most):
                ask(at(), params=dict.fromkeys(QUERY[first : first + most], text))
            if names:
                ask(at(names[number % len(names)], text))
            if text in ASCII and text == text.strip():
                for first in range(0, len(HEADERS), most):
                    given = HEADERS[first : first + most]
                    ask(at(), headers={name: _SHAPES.get(name, "{}").format(text) for name in given})
                ask(at(), headers={"Authorization": f"Bearer x{text}", "Range": f"bytes=-{text}"})
                ask(at(), headers={"Range": f"bytes=0-{text}", "Origin": f"http://[{text}"})
            if method in ("POST", "PATCH"):
                ask(at(), data=dict.fromkeys(FIELDS, text))
                ask(at(), content=f'{{"nonce": {text or 0}}}'.encode())
