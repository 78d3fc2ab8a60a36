"""What strangers send to the front byte by byte: heads, bodies, paths and forms that no browser makes."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import Inbox
from runner.exchange.published import Publisher
from runner.web.connections import Connection
from runner.web.door import HEADERS
from tests.runner.web.test_routes import TABLE, Front, address, form_of, served, shared, task

HAND_IN = "/tasks/mini/hand-in"


class Hasty(Connection):
    """As the front's connections, in a hurry; ``lost`` is set when one has ended."""

    most, head, grace, rate = 8, 0.5, 0.5, 200.0
    lost = threading.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()


class Lenient(Hasty):
    """As those, but each byte of a body that is counted lets it stand still for a second, as a busy machine may."""

    grace, rate = 1.0, 1.0


front = shared


@pytest.fixture
def lenient(front: Front, tmp_path: Path) -> Iterator[Front]:
    yield from served(front.exchange, tmp_path / "lenient/state", front.tokens, front.style, Lenient)


@pytest.fixture
def hasty(front: Front, tmp_path: Path) -> Iterator[Front]:
    yield from served(front.exchange, tmp_path / "hasty/state", front.tokens, front.style, Hasty)


def connected(front: Front) -> socket.socket:
    at = urlsplit(front.url)
    made = socket.create_connection((str(at.hostname), int(at.port or 0)), timeout=100)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def raw(
    front: Front, *lines: str, body: bytes = b"", host: str | None = "", half_close: bool = True
) -> bytes:
    """The answer to these lines, with ``Host`` (as it should be; None: without) and ``Connection: close`` behind them.

    With ``half_close`` the client closes its side after the request. The server may then drop the connection without an answer.
    """
    named = [] if host is None else [f"Host: {host or urlsplit(front.url).netloc}"]
    head = "\r\n".join([*lines, *named, "Connection: close", "", ""])
    with closing(connected(front)) as connection:
        connection.sendall(head.encode("latin-1") + body)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        return received(connection)


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer
    return int(answer[9:12])


def ends_within(connection: socket.socket, seconds: float) -> bool:
    begun = time.monotonic()
    received(connection)
    return time.monotonic() - begun < seconds


def bearer(front: Front, name: str = "team") -> str:
    return f"Authorization: Bearer {front.tokens[name]}"


@pytest.mark.slow
def test_who_sends_nothing_or_slowly_does_not_keep_a_connection(hasty: Front) -> None:
    host = f"Host: {urlsplit(hasty.url).netloc}\r\n".encode()
    with closing(connected(hasty)) as silent:
        assert ends_within(silent, 60)
    with closing(connected(hasty)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n" + host)
        try:
            for _ in range(600):
                time.sleep(0.1)
                slow.sendall(b"X: y\r\n")
            pytest.fail("it would have waited for ever")
        except OSError:
            pass
    form = b"content-type: multipart/form-data; boundary=b\r\ncontent-length: 90000\r\n"
    for more in (
        b"",
        bearer(hasty).encode() + b"\r\n",
    ):  # a body that nobody reads, and one that is waited for
        with closing(connected(hasty)) as slow:
            slow.sendall(b"POST /tasks/mini/hand-in HTTP/1.1\r\n" + host + more + form + b"\r\n--b\r\n")
            assert ends_within(slow, 60)
    with closing(connected(hasty)) as endless:
        endless.sendall(b"POST /sign-out HTTP/1.1\r\n" + host + b"transfer-encoding: chunked\r\n\r\n")
        with pytest.raises(OSError):
            for _ in range(1200):
                endless.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
                time.sleep(0.05)


def test_who_reads_nothing_does_not_keep_an_answer(hasty: Front) -> None:
    to = Publisher(hasty.exchange / "published")
    board = to.object("tasks/mini/open", "board", "Mini", {}, "<p>" + "x" * 30_000_000, hasty.style)
    pointer = (hasty.exchange / "published/current.json").read_bytes()
    to.publish({"public": [*task(to, hasty.style), board]})
    Hasty.lost.clear()
    with closing(connected(hasty)) as deaf:
        deaf.sendall(f"GET /tasks/mini/open HTTP/1.1\r\nHost: {urlsplit(hasty.url).netloc}\r\n\r\n".encode())
        assert Hasty.lost.wait(60)
        assert len(received(deaf)) < 20_000_000
    (hasty.exchange / "published/current.json").write_bytes(pointer)


def test_many_connections_without_requests_lock_nobody_out(front: Front, tmp_path: Path) -> None:
    class Few(Connection):
        most, head = 8, 60.0

    for few in served(front.exchange, tmp_path / "few/state", front.tokens, front.style, Few):
        idle = [connected(few) for _ in range(30)]
        with few.client() as client:
            assert client.get("/healthz").status_code == 200
        for one in idle[:20]:  # those that were there for the longest time
            assert received(one) == b""
        for one in idle:
            one.close()


def test_an_upload_that_keeps_its_pace_is_not_cut(lenient: Front) -> None:
    body = b"--b\r\n" + b'content-disposition: form-data; name="file"; filename="r.txt"\r\n\r\n'
    body += (
        b"1 Q0 d 1 1 x\n" * 400
        + b'\r\n--b\r\ncontent-disposition: form-data; name="software"\r\n\r\no\r\n--b--\r\n'
    )
    head = f"POST {HAND_IN} HTTP/1.1\r\nHost: {urlsplit(lenient.url).netloc}\r\n{bearer(lenient)}\r\n"
    head += f"content-type: multipart/form-data; boundary=b\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with closing(connected(lenient)) as steady:
        steady.sendall(head.encode())
        for at in range(0, len(body), 300):
            steady.sendall(body[at : at + 300])
            time.sleep(0.1)
        assert status(received(steady)) == 202


BAD_HEADS = {
    "two lengths": ("POST /sign-in HTTP/1.1", "Content-Length: 5", "Content-Length: 6"),
    "length and chunks": ("POST /sign-in HTTP/1.1", "Content-Length: 5", "Transfer-Encoding: chunked"),
    "chunks twice": ("POST /sign-in HTTP/1.1", "Transfer-Encoding: chunked, chunked"),
    "other coding": ("POST /sign-in HTTP/1.1", "Transfer-Encoding: gzip, chunked"),
    "hidden coding": ("POST /sign-in HTTP/1.1", "Transfer-Encoding: x\tchunked"),
    "blank before colon": ("POST /sign-in HTTP/1.1", "Transfer-Encoding : chunked"),
    "signed length": ("POST /sign-in HTTP/1.1", "Content-Length: +5"),
    "long length": ("POST /sign-in HTTP/1.1", "Content-Length: " + "9" * 5000),
    "large length": ("POST /sign-in HTTP/1.1", "Content-Length: " + "9" * 19),
    "two hosts": ("GET / HTTP/1.1", "Host: evil.example"),
    "huge head": ("GET / HTTP/1.1", "X: " + "y" * 100_000),
    "many heads": ("GET / HTTP/1.1", *["X: y"] * 20_000),
    "no version": ("GET /",),
    "other protocol": ("PRI * HTTP/2.0",),
    "control in path": ("GET /\x01 HTTP/1.1",),
    "bytes in path": ("GET /\xff HTTP/1.1",),
    "return in value": ("GET / HTTP/1.1", "X: a\rSet-Cookie: b"),
    "nul in value": ("GET / HTTP/1.1", "X: a\0b"),
    "other host": ("GET http://evil.example/ HTTP/1.1",),
}


@pytest.mark.parametrize("name", BAD_HEADS)
def test_heads_that_servers_could_read_differently_are_refused(front: Front, name: str) -> None:
    answer = raw(front, *BAD_HEADS[name], body=b"0\r\n\r\nGET /team HTTP/1.1\r\n\r\n")
    assert status(answer) in (400, 404, 413, 431, 501), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1, "nothing behind it counts as a request"
    head = answer.partition(b"\r\n\r\n")[0].decode().lower()
    for header, value in HEADERS.items():
        assert f"{header.lower()}: {value.lower()}" in head
    assert "cache-control: no-" in head


@pytest.mark.parametrize(
    ("path", "status_"),
    [("/sign-in", 400), ("/api/v1/tasks/mini/run-files", 400), ("/nowhere", 400)],
)
@pytest.mark.parametrize("length", [0, 5, 40, 10_000])
def test_a_body_with_two_lengths_ends_the_connection(
    front: Front, path: str, status_: int, length: int
) -> None:
    """A proxy may take one length and the server the other: the bytes behind are no request then, of nobody."""
    host = f"Host: {urlsplit(front.url).netloc}\r\n"
    smuggled = f"GET /healthz HTTP/1.1\r\n{host}\r\n".encode()
    two = f"Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"
    for body in (b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b""):
        with closing(connected(front)) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\n{host}{two}\r\n".encode() + body + smuggled)
            said = received(connection)  # ends: the server closes
        assert status(said) == status_ and said.count(b"HTTP/1.1 ") == 1, said[:300]
        assert b"connection: close" in said.lower().partition(b"\r\n\r\n")[0]


@pytest.mark.parametrize("name", BAD_HEADS)
def test_nothing_behind_a_head_that_was_refused_is_a_request(front: Front, name: str) -> None:
    """As above, by clients that do not ask for the end of the connection."""
    host = f"Host: {urlsplit(front.url).netloc}\r\n"
    head = "\r\n".join(BAD_HEADS[name])
    smuggled = f"GET /healthz HTTP/1.1\r\n{host}\r\n"
    with closing(connected(front)) as connection:
        with suppress(OSError):  # the server may end while more is sent
            connection.sendall(f"{head}\r\n{host}\r\n0\r\n\r\n{smuggled}".encode("latin-1"))
            connection.shutdown(socket.SHUT_WR)
        said = received(connection)
    # Behind a GET, which has no body, the chunk is a second request, and a bad one.
    statuses = re.findall(rb"^HTTP/1.1 (\d+)", said, re.MULTILINE)
    assert statuses[1:] == [b"400"] * (head.startswith(("GET", "PRI")) and len(statuses) > 1), said[:300]


def test_requests_in_a_row_are_answered_in_their_order(front: Front) -> None:
    host = urlsplit(front.url).netloc
    one = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    answer = raw(
        front,
        f"GET /team HTTP/1.1\r\nHost: {host}\r\n{bearer(front)}\r\n\r\n"
        + one.decode() * 50
        + "GET / HTTP/1.1",
    )
    assert answer.count(b"HTTP/1.1 200") == 52 and answer.index(b"Team alpha") < answer.index(b"ok\n")
    assert b"Team alpha" not in answer[answer.index(b"ok\n") :], "who asked first is not who asks next"


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "127.0.0.1:1", "127.0.0.1@evil.example", "a b", "[::1", "x" * 5000]
)
def test_no_answer_repeats_a_host_that_somebody_made_up(front: Front, host: str | None) -> None:
    with closing(connected(front)) as connection:
        lines = b"" if host is None else f"Host: {host}\r\n".encode()
        connection.sendall(b"GET /team HTTP/1.1\r\n" + lines + b"Connection: close\r\n\r\n")
        answer = received(connection)
    assert status(answer) == 400 and b"evil" not in answer


FORWARDED = {
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "gopher",
    "x-forwarded-for": "10.9.8.7",
    "x-forwarded-prefix": "/evil",
    "x-original-url": "/team",
    "x-rewrite-url": "/team",
    "x-http-method-override": "POST",
    "forwarded": "for=evil;host=evil.example",
    "range": "bytes=0-3",
    "accept-language": "evil",
    "user-agent": "evil",
    "referer": "http://evil.example",
}


def test_headers_that_no_cache_looks_at_change_no_answer(front: Front) -> None:
    for path in ("/", "/tasks/mini", "/sign-in", "/team", "/none", "/site.css"):
        with front.client() as client:
            plain, odd = client.get(path), client.get(path, headers=FORWARDED)
        same = [re.sub(r'value="[^"]+"', "", one.text) for one in (plain, odd)]
        assert same[0] == same[1] and plain.status_code == odd.status_code != 206
        assert plain.headers.get("location") == odd.headers.get("location")
        for name, value in plain.headers.items():
            assert value == odd.headers[name] or name == "set-cookie"


def test_nothing_redirects_to_elsewhere(front: Front) -> None:
    evil = ["//evil.example", "https://evil.example", "/\\evil.example", "/%5cevil.example"]
    evil += ["/%09/evil.example", "///evil.example/.."]
    with front.client() as client:
        for place in evil:
            for start in ("/", "/team/", "/sign-in?next=", "/team?next=", ""):
                path = f"{start}{place}" if start else f"{place}/"
                answer = raw(front, f"GET {path} HTTP/1.1")
                where = re.findall(rb"(?i)\r\nlocation: ([^\r]*)", answer.partition(b"\r\n\r\n")[0])
                assert where in ([], [b"/sign-in"]), (path, where)
        form = form_of(client.get("/sign-in?next=//evil.example").text)
        said = client.post(
            "/sign-in?next=//evil.example",
            data={"form-token": form, "token": str(front.tokens["team"]), "next": "//evil.example"},
        )
        assert said.headers["location"] == "/"
    for path in ("/team/", "/sign-in/", "/site.css/", "/healthz/"):
        assert status(raw(front, f"GET {path} HTTP/1.1")) == 404, path


PATHS = [
    "/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/tasks/..%2f..%2fcurrent.json", "/styles/..%2f..%2faccess.json.css",
    "/tasks/%00", "/tasks/mini%00", "/tasks/mini/%2e%2e/%2e%2e", "/tasks/%c0%ae%c0%ae/", "/tasks/%ff", "/tasks/%ed%a0%80", "/tasks//mini",
    "/runs/..%5c..%5c", "/tasks/mini/main%00", "/tasks/mini/" + "a/" * 2000, "/tasks/" + "%41" * 5000, "/published/current.json", "/requests/" + "%66" * 32 + "%0a",
    "/tasks/mini/main;x=1", "/TASKS/mini", "/tasks/m%C4%B1ni", "/tasks/ｍini".encode().decode("latin-1"), "*", "/tasks/mini/main/../../../team",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:30])
def test_no_path_leads_out(front: Front, path: str) -> None:
    answer = raw(front, f"GET {path} HTTP/1.1", bearer(front, "other"))
    assert status(answer) in (400, 404), answer[:300]
    assert b"secret" not in answer and b"Traceback" not in answer and b"verifier" not in answer


def test_methods_that_no_page_has_do_nothing(front: Front) -> None:
    for method in ("OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "PROPFIND", "CONNECT", "get", "GETX"):
        for path in ("/", "/team", HAND_IN, "/sign-out"):
            answer = raw(front, f"{method} {path} HTTP/1.1", bearer(front), "X-Canary: canary-77")
            assert status(answer) in (400, 405) and b"canary" not in answer, (method, answer)
    for path in ("/", "/team", "/none", "/tasks/mini/main"):
        with front.client("team") as client:
            got, head = client.get(path), client.head(path)
        assert got.status_code == head.status_code and head.content == b""
        assert {k: v for k, v in got.headers.items() if k != "connection"} == dict(head.headers.items())


def multipart(*parts: bytes, end: bytes = b"--b--\r\n") -> bytes:
    return b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + end


def part(name: str, content: bytes = b"x", more: str = "") -> bytes:
    return f'content-disposition: form-data; name="{name}"{more}\r\n\r\n'.encode("latin-1") + content


BODIES = {
    "no boundary": ("multipart/form-data", b"x"),
    "empty boundary": ("multipart/form-data; boundary=", multipart(part("file"))),
    "long boundary": ("multipart/form-data; boundary=" + "b" * 5000, b"x"),
    "cut": ("multipart/form-data; boundary=b", multipart(part("software"), end=b"")),
    "thousands of parts": ("multipart/form-data; boundary=b", multipart(*[part("a")] * 1000)),
    "huge name": ("multipart/form-data; boundary=b", multipart(part("a" * 80_000))),
    "huge part": ("multipart/form-data; boundary=b", multipart(part("software", b"x" * 90_000))),
    "no name": ("multipart/form-data; boundary=b", multipart(b"x: y\r\n\r\nz")),
    "two files": ("multipart/form-data; boundary=b", multipart(*[part("file", more='; filename="x"')] * 2)),
    "no boundary line": ("multipart/form-data; boundary=b", b"x" * 90_000),
    "many headers": ("multipart/form-data; boundary=b", multipart(b"x: y\r\n" * 5000 + part("a"))),
    "surrogates": ("multipart/form-data; boundary=b; charset=unicode_escape", multipart(part("form-token", b"\\ud800"))),
    "idna": ("multipart/form-data; boundary=b; charset=idna", multipart(part("software", b"xn--" + b"a" * 60_000))),
    "undefined": ('multipart/form-data; boundary=b; Charset="undefined"', multipart(part("form-token", b"\\ud800"))),
    "thousands of fields": ("application/x-www-form-urlencoded", b"a=b&" * 20_000),
    "broken escapes": ("application/x-www-form-urlencoded", b"form-token=%ff%ed%a0%80%00&token=%&%=%"),
    "json": ("application/json", b"[" * 50_000),
    "xml": ("text/xml", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'),
    "nothing": ("", b""),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", [HAND_IN, "/sign-in", "/sign-out"])
def test_a_body_that_no_browser_sends_is_refused_and_nothing_kept(front: Front, name: str, path: str) -> None:
    kind, body = BODIES[name]
    before = Inbox(front.exchange / "inbox").waiting()
    with front.browser() as client:
        signed_in = dict(client.cookies)
    cookies = "; ".join(f"{key}={value}" for key, value in signed_in.items())
    lines = (f"POST {path} HTTP/1.1", f"Content-Type: {kind}", f"Content-Length: {len(body)}")
    for who in (f"Cookie: {cookies}", "Cookie: session=x; form=" + "f" * 40, bearer(front)):
        answer = raw(front, *lines, who, body=body, half_close=False)
        assert status(answer) in (400, 401, 403, 413, 415) or (
            path == "/sign-out" and status(answer) == 303
        ), answer
        assert b"Traceback" not in answer and b"starlette" not in answer.lower()
    assert Inbox(front.exchange / "inbox").waiting() == before


def test_forms_are_bounded_where_no_file_is_taken(front: Front, tmp_path: Path) -> None:
    with front.client() as client:
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=b"):
            said = client.post("/sign-in", content=b"a" * 99_000, headers={"content-type": kind})
            assert said.status_code in (400, 403)

    for large in served(front.exchange, tmp_path / "large/state", front.tokens, front.style, most=50_000_000):
        with large.client("team") as client:
            for path in ("/sign-in", "/sign-out"):
                said = client.post(path, content=b"-" * 2_000_000, headers={"content-type": BODIES["cut"][0]})
                assert said.status_code == 413
            said = client.post(HAND_IN, data={"software": "x"}, files={"file": ("r", b"x" * 2_000_000)})
            assert said.status_code == 202


def test_a_form_that_work_would_not_take_is_refused_at_once(front: Front) -> None:
    before = Inbox(front.exchange / "inbox").waiting()
    with front.client("team") as client:
        fields = {"software": "x", "description": "y" * 40_000, "affiliation": "z" * 40_000}
        said = client.post(HAND_IN, data=fields, files={"file": ("r", b"x")})
    assert said.status_code == 400 and Inbox(front.exchange / "inbox").waiting() == before


def test_what_goes_wrong_inside_shows_nothing(front: Front, tmp_path: Path) -> None:
    for broken in served(front.exchange, tmp_path / "own/state", front.tokens, front.style):
        with broken.browser() as team:
            (tmp_path / "own/state/front.sqlite").write_bytes(b"")  # all of its tables are gone
            for path in ("/team", "/"):
                said = team.get(path)
                assert said.status_code in (500, 503) and "sqlite" not in said.text
                assert "Traceback" not in said.text
                assert all(said.headers[name] == value for name, value in HEADERS.items())
                assert said.headers["cache-control"] in ("no-store", "no-cache")


WRITING = [one for one in TABLE if one[0] not in ("GET", "HEAD", "OPTIONS")]


@pytest.mark.parametrize("role", ["team", "organiser"])
def test_no_other_site_can_have_a_browser_do_anything(front: Front, role: str) -> None:
    """Every route that does something, by the table: with the cookie of somebody who signed in, and a form made elsewhere."""
    before = Inbox(front.exchange / "inbox").waiting()
    with front.browser(role) as browser, front.browser("other") as another:
        theirs = form_of(another.get("/token").text)
        for method, path in WRITING:
            for form in ("", "x" * 32, theirs):
                for headers in ({}, {"origin": "https://evil.example"}, {"sec-fetch-site": "same-site"}):
                    data = {"form-token": form, "software": "one", "token": str(front.tokens["other"])}
                    files = {"file": ("run.txt", b"x")}
                    said = browser.request(method, address(path), data=data, files=files, headers=headers)
                    assert said.status_code in (400, 401, 403, 404, 412), (method, path, form, said.text)
        assert browser.get("/token").status_code == 200, "nobody was signed out, or in as somebody else"
    assert Inbox(front.exchange / "inbox").waiting() == before


def test_a_wrong_token_tells_nothing_of_those_that_are_right(front: Front) -> None:
    right = front.tokens["other"]
    wrong = [replace(right, secret="x" * 43), Token.new(), Token("0" * 12, right.secret)]
    texts = set()
    for token in wrong:
        with front.client() as client:
            form = form_of(client.get("/sign-in").text)
            said = client.post("/sign-in", data={"form-token": form, "token": str(token)})
            page = re.sub(r'value="[^"]*"', "", said.text)
            program = client.get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
            texts.add((said.status_code, page, program.status_code, program.text))
    assert len(texts) == 1 and next(iter(texts))[0] == 403


# Titles in a feed are text: test_feed.py.
SHOWN = ("text/html", "text/css", "text/javascript", "text/plain", "application/json")
SHOWN += ("application/problem+json", "application/atom+xml")


def test_nothing_that_is_shown_can_be_a_page_of_a_stranger(front: Front) -> None:
    """No answer has a kind that a browser would run but our own pages and scripts; those are none of a stranger's."""
    for role in (None, "team", "other", "organiser"):
        with front.client(role) as client:
            for method, path in TABLE:
                if method != "GET":
                    continue
                said = client.get(address(path, digest="none").replace("none.css", f"{front.style}.css"))
                kind = said.headers.get("content-type", "text/plain").partition(";")[0]
                is_file = "attachment" in said.headers.get("content-disposition", "")
                assert kind in SHOWN or is_file, (path, kind)
                assert said.headers["x-content-type-options"] == "nosniff"
