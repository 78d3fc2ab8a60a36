"""The feed of leaderboards: what everybody may see, the newest first, with names that stay."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from runner.exchange.published import Publisher
from tests.runner.web import test_api_v1
from tests.runner.web.test_routes import Front, fronts
from tests.worlds.records import TASK

front = test_api_v1.front
ATOM = "{http://www.w3.org/2005/Atom}"


def test_each_open_leaderboard_and_round_has_an_entry(front: Front) -> None:
    with front.client() as client, front.client("team") as team:
        said = client.get("/feed.atom")
        assert said.headers["content-type"].startswith("application/atom+xml")
        assert said.text == team.get("/feed.atom").text, "it is the same for whoever signed in"
        root = ElementTree.fromstring(said.text)
        entries = root.findall(f"{ATOM}entry")
        at = [one.find(f"{ATOM}link").attrib["href"] for one in entries]  # type: ignore[union-attr]
        assert {f"/tasks/{TASK}/main", f"/tasks/{TASK}/rounds/final/main"} == {*at}
        assert {client.get(one).status_code for one in at} == {200}
    times = [one.findtext(f"{ATOM}updated", "") for one in entries]
    assert times == sorted(times, reverse=True) and root.findtext(f"{ATOM}updated") == times[0]
    names = [one.findtext(f"{ATOM}id", "") for one in (root, *entries)]
    assert len({*names}) == 3 and all(name.startswith("urn:uuid:") for name in names)
    assert "frozen" in said.text


def test_every_page_says_where_the_feed_is_and_robots_where_not_to_look(front: Front) -> None:
    with front.client() as client:
        assert '<link rel="alternate" type="application/atom+xml"' in client.get("/").text
        assert client.get("/robots.txt").text.startswith("User-agent: *\nDisallow: ")


def test_no_title_breaks_the_feed(tmp_path: Path) -> None:
    """What XML forbids or means something by is a blank, or words."""
    title = "a\x00\x08\ufffe\ud7ff & <b> ]]> <!-- \u202e"
    row = {"registered": "2031-05-01T00:00:00Z"}
    data = {
        "rows": [row],
        "round": {"title": title, "frozen": None},
        "title": title,
        "heading": "",
        "table": "main",
    }
    for front in fronts(tmp_path):
        to = Publisher(front.exchange / "published")
        to.publish({"public": [to.object("tasks/mini/main", "board", "Mini", data)]})
        with front.client() as client:
            [entry] = ElementTree.fromstring(client.get("/feed.atom").text).findall(f"{ATOM}entry")
    said = entry.findtext(f"{ATOM}title", "")
    assert "& <b> ]]> <!--" in said and not {*"\x00\x08\ufffe"}.intersection(said)
