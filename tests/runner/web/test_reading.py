"""Where the page of a run leads, and what it says to whom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Publisher
from tests.runner.web.test_routes import Front, fronts

RUN, SOFTWARE = "alpha.dense.0.dev", "/tasks/mini/softwares/alpha/dense"
ROW: dict[str, Any] = {
    **{"run": RUN, "submission": "alpha.dense.0", "task": "mini", "team": "alpha", "software": "dense"},
    **{"how": "executed", "outcome": {"name": "scored"}, "dataset": "dev", "tag": "", "registered": "2031-05-01T12:00:00Z"},
}  # fmt: skip


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    yield from fronts(tmp_path)


def publish(front: Front, *, announced: bool) -> None:
    to = Publisher(front.exchange / "published")
    page = to.object(f"runs/{RUN}", "run", RUN, {}, "<main>its page</main>", to.keep(b"p { }"))
    objects = [to.object("runs", "runs", "Runs", [ROW]), page]
    if announced:
        objects.append(to.object("tasks/mini", "task", "Mini", {"id": "mini", "boards": [], "datasets": []}))
    tasks = to.object("tasks", "tasks", "Tasks", [])
    console = to.object("console", "console", "Console", {})
    to.publish(
        {"team:alpha": [tasks, *objects], "team:beta": [tasks], "organiser": [tasks, console, *objects]}
    )


@pytest.mark.parametrize("role", ["team", "organiser"])
def test_a_run_leads_to_its_software_and_tells_the_organiser_more(front: Front, role: str) -> None:
    publish(front, announced=True)
    with front.browser(role) as client:
        page = client.get(f"/runs/{RUN}").text
        assert f'<a href="{SOFTWARE}"' in page and client.get(SOFTWARE).status_code == 200
        told = role == "organiser"
        assert ('<aside class="above"' in page) == (f"runner show {RUN}" in page) == told


def test_a_run_in_a_task_that_is_not_announced_leads_nowhere(front: Front) -> None:
    publish(front, announced=False)
    with front.browser("team") as client:
        page = client.get(f"/runs/{RUN}")
        assert "its page" in page.text and "/softwares/" not in page.text
        assert client.get(SOFTWARE).status_code == 404
