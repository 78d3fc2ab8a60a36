"""Badges of leaderboards and softwares: small pictures of what everybody may see, to stand on other people's pages."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.exchange.published import Object, Published, Publisher, View
from runner.web.routes.boards import Kept
from tests.runner.web import test_api_v1
from tests.runner.web.test_routes import Front

front = test_api_v1.front


def words(text: str) -> list[str]:
    root = ElementTree.fromstring(text)
    return [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_badge_says_rank_and_score_of_a_software_and_how_many_there_are(front: Front) -> None:
    with front.client() as client:
        board = client.get("/badges/toy/main.svg")
        one = client.get("/badges/toy/main/alpha/y.svg")
    assert board.headers["content-type"] == "image/svg+xml"
    assert words(board.text)[1] == "3 ranked"
    left, right = words(one.text)
    assert left == "alpha/y" and re.fullmatch(r"rank \d of 3 · nDCG@10 0\.\d{4}", right)
    assert one.headers.get_list("cross-origin-resource-policy") == ["cross-origin"], (
        "it may stand on other pages"
    )
    with front.client("team") as client:
        page = client.get("/tasks/toy/main")
    assert page.headers.get_list("cross-origin-resource-policy") == ["same-origin"], "nothing else may"


@pytest.mark.parametrize(
    "path", ["toy/none.svg", "none/main.svg", "toy/main/alpha/none.svg", "toy/main/<b>/x.svg"]
)
def test_of_what_is_not_on_a_board_there_is_none(front: Front, path: str) -> None:
    with front.client("team") as client:
        assert client.get(f"/badges/{path}").status_code == 404


def test_words_of_strangers_stay_words(front: Front) -> None:
    from runner.web.routes.boards import badge

    text = badge('<script>"', "x" * 500 + "]]>")
    assert words(text)[0] == '<script>"' and len(words(text)[1]) == 60 and "<script" not in text


def test_a_board_is_read_once_for_all_its_softwares_and_again_when_it_is_another(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, read, reads = "tasks/toy/main", list[str](), View.data

    def counted(view: View, of: Object) -> Any:
        read.append(of.path)
        return reads(view, of)

    view = Published(front.exchange / "published").view("public")
    objects = {one.path: one for one in view.below("")}
    data = view.data(objects[board])
    monkeypatch.setattr(View, "data", counted)
    with front.client() as client:

        def said(team: str) -> str:
            page = client.get(f"/tasks/toy/softwares/{team}/y")
            assert page.status_code == 200 and f"{team}/y" in page.text
            return words(client.get(f"/badges/toy/main/{team}/y.svg").text)[1]

        assert {said(row["team"])[:11] for row in data["rows"]} == {f"rank {n} of 3"[:11] for n in (1, 2, 3)}
        assert read.count(board) <= 1
        last = data["rows"].pop()
        to = Publisher(front.exchange / "published")
        changed = to.object(board, "board", "Toy", data, "<p>two</p>", objects[board].style)
        to.publish({"public": [*(objects | {board: changed}).values()]})
        assert said(data["rows"][0]["team"]).startswith("rank 1 of 2")
        assert client.get(f"/badges/toy/main/{last['team']}/y.svg").status_code == 404


def test_as_many_leaderboards_are_kept_as_said_those_that_were_asked_for_last() -> None:
    read = list[str]()

    class Read(View):
        def __init__(self) -> None:
            pass

        def data(self, of: Object) -> Any:
            read.append(of.data)
            return {"digest": of.data}

    boards = [Object(f"tasks/t/{n}", "board", "", f"digest{n}", "", "") for n in range(5)]
    kept, view = Kept[Any](4), Read()
    for one in (*boards[:4] * 3, boards[0], boards[4], boards[0], boards[1]):
        assert kept.of(view, one, dict) == {"digest": one.data}
    assert read == ["digest0", "digest1", "digest2", "digest3", "digest4", "digest1"]
