"""All rows of a leaderboard against one of them, as a page without a script and as JSON: what the command says."""

from __future__ import annotations

import re
from typing import Any

import pytest

import schemas
from runner.exchange.published import Object, View
from tests.runner.web import test_api_v1
from tests.runner.web.test_routes import Front

front = test_api_v1.front
PAGE = "/tasks/toy/against/{}/main"


def test_a_board_leads_to_a_page_of_each_row_with_all_rows_against_it(front: Front) -> None:
    with front.client() as client:
        board = client.get("/tasks/toy/main").text
        (first,) = re.findall('href="(/tasks/toy/against/[^"]+)"', board)
        links = set(re.findall('href="(/tasks/toy/against/[^"]+)"', client.get(first).text))
        assert sorted(links) == [PAGE.format(f"{team}.y") for team in ("alpha", "baselines", "beta")]
        for link in links:
            page = client.get(link)
            assert page.status_code == 200 and page.text.count("this row") == 1
            name = link.split("/")[4].replace(".", "/<wbr>")
            own = page.text[page.text.index('aria-current="page">' + name) :].partition("</tr>")[0]
            assert "this row" in own, "in the order of the ranks"
            others = set(re.findall('href="(/tasks/toy/against/[^"]+)"', page.text))
            assert others == links, "from there to all others"


def test_the_api_gives_the_board_with_the_tests_of_the_command(front: Front) -> None:
    asked = {}
    with front.client() as client:
        plain = client.get("/api/v1/tasks/toy/boards/main").json()
        for row in ("alpha/y", "baselines/y"):
            asked[row] = client.get("/api/v1/tasks/toy/boards/main", params={"against": row}).json()
    assert plain["significance"] is None, "it has no baseline"
    tested = {row: {one["team"]: one["comparison"] for one in data["rows"]} for row, data in asked.items()}
    mine, base = tested["alpha/y"], tested["baselines/y"]
    assert mine["alpha"] is base["baselines"] is None
    assert mine["baselines"]["difference"] == -base["alpha"]["difference"]
    assert mine["baselines"]["p"] == base["alpha"]["p"]
    for row, data in asked.items():
        assert data["significance"]["against"] == row and schemas.validate(data, "leaderboard") == []
        others = {"rows": [one | {"comparison": None} for one in data["rows"]], "significance": None}
        assert {**data, **others, "notes": []} == {**plain, "notes": []}, "all else is as it was"


@pytest.mark.parametrize("row", ["none.y", "alpha", "alpha.x", "<b>"])
def test_of_what_is_no_row_there_is_no_page(front: Front, row: str) -> None:
    with front.client("team") as client:
        assert client.get(PAGE.format(row)).status_code == 404
        assert client.get("/api/v1/tasks/toy/boards/main", params={"against": row}).status_code == 404


def test_the_tests_of_a_board_are_read_once_for_all_its_pages(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They grow with the square of the rows, and there are as many pages: with 200 rows a page took seconds."""
    read, reads = list[str](), View.data

    def counted(view: View, of: Object) -> Any:
        read.append(of.kind)
        return reads(view, of)

    monkeypatch.setattr(View, "data", counted)
    with front.client() as client:
        for team in ("alpha", "baselines", "beta"):
            assert f"All against {team}/y" in client.get(PAGE.format(f"{team}.y")).text
    assert read.count("tests") <= 1 and read.count("board") >= 3
