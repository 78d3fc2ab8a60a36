"""Entity tags and compression: of what is public and of answers to programs; of nothing that holds a secret."""

from __future__ import annotations

import pytest

from runner.exchange.published import Publisher
from runner.web.vega import script
from tests.runner.web import test_routes
from tests.runner.web.test_routes import PLOT, TABLE, Front, task
from tests.worlds.site import notices

front = test_routes.front
BOARD = "/tasks/mini/open"


@pytest.fixture
def board(front: Front) -> Front:
    to = Publisher(front.exchange / "published")
    open_ = to.object(
        BOARD[1:], "board", "Mini", {"rows": ["x" * 9] * 400}, "<h1>open</h1>" * 400, front.style
    )
    to.publish({one: [*task(to, front.style), open_] for one in ("public", "team:alpha")})
    return front


@pytest.mark.parametrize("path", [BOARD, "/api/v1/tasks/mini/boards/open", "/site.css", "/site.js"])
def test_what_holds_no_secret_is_compressed_under_a_tag_of_its_own(board: Front, path: str) -> None:
    with board.client() as client:
        plain = client.get(path, headers={"accept-encoding": "identity"})
        packed = client.get(path, headers={"accept-encoding": "br, gzip"})
        assert plain.content == packed.content
        assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < len(plain.content)
        tags = plain.headers["etag"], packed.headers["etag"]
        assert tags[0] != tags[1] and not any(one.startswith("W/") for one in tags)
        assert all("Accept-Encoding" in said.headers["vary"] for said in (plain, packed))
        for tag in (*tags, f"W/{tags[1]}", f'"other", {tags[0]}'):
            again = client.get(path, headers={"if-none-match": tag})
            assert (again.status_code, again.content) == (304, b""), tag
            assert again.headers["etag"] in tags and "Accept-Encoding" in again.headers["vary"]
        assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize("asked", ["", "identity", "gzip;q=0", "gzip; q=0.0", "br", "notgzip"])
def test_who_does_not_take_gzip_gets_none(board: Front, asked: str) -> None:
    with board.client() as client:
        assert "content-encoding" not in client.get(BOARD, headers={"accept-encoding": asked}).headers


def test_pages_with_a_secret_are_never_compressed_nor_tagged(board: Front) -> None:
    with board.client() as client:
        assert "set-cookie" in client.get("/sign-in").headers
        assert not {"content-encoding", "etag"} & set(client.get("/sign-in").headers)
    with board.browser() as team:
        for path in (BOARD, "/", "/team", "/tasks/mini/hand-in"):
            said = team.get(path)
            assert "form-token" in said.text and said.headers["cache-control"] == "no-store"
            assert not {"content-encoding", "etag"} & set(said.headers), path
        assert team.get("/site.css").headers["content-encoding"] == "gzip"
    with board.client("team") as program:
        assert program.get("/api/v1/tasks/mini/boards/open").headers["cache-control"].startswith("private")


def test_no_page_with_a_form_for_strangers_is_compressed(board: Front) -> None:
    forms = set()
    for method, path in TABLE:
        if method == "GET" and "{" not in path and path != "/live":
            with board.client(cookie=f"form={'f' * 40}") as client:
                said = client.get(path)
            if "form-token" in said.text:
                forms.add(path)
                assert "content-encoding" not in said.headers, path
    assert "/sign-in" in forms


def test_a_tag_changes_with_all_that_is_shown(board: Front) -> None:
    with board.client() as client:
        before = client.get(BOARD).headers["etag"]
        assert client.get(BOARD).headers["etag"] == before
        (board.exchange / "published/alive.json").unlink()
        late = client.get(BOARD, headers={"if-none-match": before})
        assert late.status_code == 200 and notices(late.text) == ["bad"]


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_of_a_plot_nobody_keeps_what_was_withdrawn(front: Front, ending: str) -> None:
    """Names and scores are in it: whoever has it asks again each time, and the script alone is kept for good."""
    to, path = Publisher(front.exchange / "published"), f"/plots/{PLOT}.{ending}"
    drawn = to.object(path[1:].partition(".")[0], "plot", "plot", {"vega": {"of": "open"}, "csv": "open"})
    to.publish({"public": [*task(to, front.style), drawn]})
    with front.client() as client:
        said = client.get(path)
        assert said.status_code == 200 and said.headers["cache-control"] == "no-cache"
        known = {"if-none-match": said.headers["etag"]}
        again = client.get(path, headers=known)
        assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")
        assert "immutable" in client.get(f"/vega/{script()[0]}.js").headers["cache-control"]
        to.publish({"public": task(to, front.style)})
        assert client.get(path, headers=known).status_code == 404
