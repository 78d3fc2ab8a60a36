"""Badges of leaderboards and softwares: small pictures of what everybody may see, to stand on other people's pages."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

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
