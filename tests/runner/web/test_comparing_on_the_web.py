"""Comparing runs on the web: what was published of both to the visitor, and nothing else; whole without a script."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binomtest

import schemas
from runner.exchange.access import Access, Token
from runner.exchange.published import Object, Published, Publisher
from runner.model.task import Task
from runner.records.store.queries import runs
from runner.views.audience import ORGANISER, Audience
from runner.views.listing import listed_runs
from runner.views.plots.published import Drawings
from runner.views.redact import redact_row
from runner.work.run_pages import RunPages
from tests.runner.views.test_show_page import Read
from tests.runner.web.test_routes import Front, grant, served
from tests.worlds import records
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, debate, debated, judged_line, reported, wrong_lines

ALPHA = Audience("team", "alpha")
TASK = {
    "id": "toy",
    "measures": [
        {"id": "ndcg", "measure": "nDCG@10", "direction": "higher"},
        {"id": "rr", "measure": "RR", "direction": "higher"},
    ],
}
CANARY = "canary-5521"
VALUES = ({"1": 0.9, "2": 0.5, "<i>3": 0.2}, {"1": 0.1, "2": 0.5, "<i>3": 0.4})


LONG = "Which of all the questions that may be asked about bees has an answer that is longer than ninety characters? Bees."
DOCUMENTS = ("abc", "bcx")


def toy(root: Path, kind: str = "adhoc") -> Task:
    """The toy task; what its topics say lies in files, in those of the blinded dataset a canary."""
    made = records.task()
    found = {}
    for name, one in made.datasets.items():
        folder = root / "inputs" / name
        folder.mkdir(parents=True, exist_ok=True)
        says = {"dev": [f"{LONG} <b>", "two", "three"], "test": [f"{CANARY} {n}" for n in (1, 2, 3)]}[name]
        lines = [
            json.dumps({"id": id, "query": text}) + "\n" for id, text in zip(VALUES[0], says, strict=True)
        ]
        (folder / "topics.jsonl").write_text("".join(lines))
        found[name] = replace(one, inputs=folder, truths=folder / "truths", topics="topics.jsonl")
    return replace(made, datasets=found, kind=kind)


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Two runs of alpha on public data, two on blinded data, and one of beta on public data."""
    world = World.make(tmp_path)
    for n, (values, documents) in enumerate(zip(VALUES, DOCUMENTS, strict=True)):
        submission = world.register("alpha", f"s{n}")
        for dataset in ("dev", "test"):
            secret = "" if dataset == "dev" else CANARY
            lines = [f"{t} Q0 {secret}{d} 1 {-n} t\n" for t in values for n, d in enumerate(documents)]
            attempt = world.attempt(submission, dataset=dataset, output={"run.txt": "".join(lines)})
            world.evaluation(attempt, {"ndcg": values, "rr": values})
    world.scored("beta", "other", scores=VALUES[0], datasets=("dev",))
    return sorted(run.id for run in runs(world.store, [records.task()]) if run.submission.team == "alpha")


def by_dataset(names: list[str]) -> dict[str, list[str]]:
    return {part: [name for name in names if name.endswith(f".{part}")] for part in ("dev", "test")}


@pytest.fixture
def front(tmp_path: Path, names: list[str]) -> Iterator[Front]:
    with front_of(tmp_path, World.make(tmp_path), toy(tmp_path)) as front:
        yield front


@contextmanager
def front_of(root: Path, world: World, of: Task) -> Iterator[Front]:
    """A front for what work publishes of the runs of a world."""
    exchange = root / "exchange"
    to = Publisher(exchange / "published")
    style = to.keep(b"p {}")
    made, rows, objects = RunPages(world.store, {of.id: of}, to, {}, Drawings(to)), [], list[Object]()
    for one in listed_runs(world.store, {of.id: of}, ORGANISER):
        if one.run.submission.team == "alpha":
            rows.append(dict(redact_row(one.run, ALPHA, one.dataset) or {}))
            objects += made.of(one, ALPHA)
    task = to.object("tasks/toy", "task", "A toy task", TASK, "<pre>toy</pre>", style)
    everybody = [task, to.object("tasks", "tasks", "Tasks", [])]
    alpha = to.object("runs", "runs", "Runs", rows)
    to.publish({"public": everybody, "team:alpha": [*everybody, alpha, *objects], "team:beta": everybody})
    to.alive()
    tokens = {name: Token.new() for name in ("team", "other")}
    Access({one.id: replace(grant(one, name)) for name, one in tokens.items()}).write(exchange / "published")
    yield from served(exchange, root / "state", tokens, style)


def words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_two_runs_topic_by_topic(front: Front, names: list[str]) -> None:
    dev = by_dataset(names)["dev"]
    with front.browser() as client:
        said = client.get(f"/tasks/toy/compare?first={dev[0]}&second={dev[1]}")
        assert said.status_code == 200 and said.headers["cache-control"] == "no-store"
        text = words(said.text)
        assert "nDCG@10 0.5333 0.3333 +0.2000 1 / 1 / 1 1.000 +0.38" in text
        assert (
            text.index("0.9000 0.1000 +0.8000")
            < text.index("two 0.5000 0.5000 +0.0000")
            < text.index("-0.2000")
        )
        assert "<i>3" not in said.text and "&lt;i&gt;3" in said.text
        assert f"{binomtest(1, 2).pvalue:.3f}" == "1.000"
        form = client.get("/tasks/toy/compare", params={"first": dev[1], "second": dev[0], "measure": "rr"})
        assert "+0.8000" not in words(form.text) and "-0.8000" in words(form.text)
        assert 'aria-current="page" dir="auto">RR' in form.text


def test_topics_say_what_they_ask(front: Front, names: list[str]) -> None:
    dev = by_dataset(names)["dev"]
    with front.browser() as client:
        page = client.get(f"/tasks/toy/compare?first={dev[0]}&second={dev[1]}").text
    text = words(html.unescape(page))
    assert "two 0.5000 0.5000" in text and f'<details class="long"><summary>{LONG[:12]}' in page
    assert LONG[80:] in page and "&lt;b&gt;" in page and "<b>" not in page


def test_nothing_of_blinded_data_is_published_for_comparing(front: Front, names: list[str]) -> None:
    kept = [path for path in (front.exchange / "published").rglob("*") if path.is_file()]
    assert not [path for path in kept if CANARY.encode() in path.read_bytes()]
    assert any(LONG.encode() in path.read_bytes() for path in kept), "what topics of public data say is there"
    of = by_dataset(names)
    view = Published(front.exchange / "published").view("team:alpha")
    assert [one.path for one in view.below("beside/")] == [f"beside/{name}" for name in of["dev"]]


def test_a_form_chooses_two_different_runs_of_those_that_can_be_compared(
    front: Front, names: list[str]
) -> None:
    of = by_dataset(names)
    with front.browser() as client:
        text = client.get("/tasks/toy/compare").text
        assert re.findall(r"<select id=\"\w+\" name=\"(\w+)\"", text) == ["first", "second"]
        assert "<script" not in text.partition("<main")[2]
        assert sorted(re.findall(r"<option[^>]*>([^<]+)", text)) == sorted(of["dev"] * 2)
        begin = re.findall(r"<option selected>([^<]+)", text)
        assert sorted(begin) == of["dev"] and not any(name in text for name in of["test"])
        assert (
            client.get(
                "/tasks/toy/compare", params=dict(zip(("first", "second"), begin, strict=True))
            ).text.count('role="alert"')
            == 0
        )
        chosen = client.get("/tasks/toy/compare", params={"first": of["dev"][1], "second": of["dev"][0]}).text
        assert re.findall(r"<option selected>([^<]+)", chosen) == of["dev"][::-1]


def alert(page: str) -> str:
    """Return the text of the alert of a page."""
    return words(html.unescape(page.partition('role="alert">')[2].partition("</p>")[0]))


def test_why_runs_cannot_be_compared(
    front: Front, names: list[str], golden: Callable[[str, str], None]
) -> None:
    of = by_dataset(names)
    of |= {"same": [of["dev"][0]] * 2, "nobody": ["<script>alert(1)</script>"] * 2}
    reasons = ""
    with front.browser() as client:
        for pair in (("dev", "test"), ("test", "test"), ("same", "same"), ("nobody", "dev")):
            asked = {"first": of[pair[0]][0], "second": of[pair[1]][1]}
            text = client.get("/tasks/toy/compare", params=asked).text
            assert "0.9000" not in text and "alert(1)" not in text
            reasons += f"{' '.join(pair)}: {alert(text)}\n"
    golden("compare-refusals.txt", re.sub("[0-9a-f]{8}", "00000000", reasons))


def beside(root: Path, kind: str) -> str:
    """The page of two runs of a kind, whose contents have hostile words."""
    world, of = World.make(root), toy(root, kind)
    for n in range(2):
        if kind == "debate":
            turns = [(f"Why? {t}", f"Because {n} {t} {HOSTILE}", []) for t in range(1, 3 + n)]
            debated(
                world,
                replace(of, output="simulations.jsonl"),
                [debate("c1", "A claim.", *turns)],
                software=f"s{n}",
            )
        else:
            lines = [judged_line()] if kind == "report" else wrong_lines(HOSTILE)
            reported(world, lines, software=f"s{n}")
    if kind == "debate":
        of = replace(of, output="simulations.jsonl")
    names = sorted(run.id for run in runs(world.store, [of]) if run.dataset == "dev")
    with front_of(root, world, of) as front, front.browser() as client:
        return client.get(
            "/tasks/toy/compare", params=dict(zip(("first", "second"), names, strict=True))
        ).text


@pytest.mark.parametrize("kind", ["report", "records", "debate"])
def test_what_is_inside_stands_beside_each_other(tmp_path: Path, kind: str) -> None:
    text = beside(tmp_path, kind)
    read = Read(text[text.index("<main") : text.index("</main>") + 7])
    contents = {"report": ["Bees fly."], "records": ["zebra"], "debate": ["Because 0 1", "Because 1 3"]}
    assert 'id="inside"' in text and all(one in text for one in contents[kind])
    assert "javascript:" not in [value[:11] for key, value in read.attributes if key == "href" and value]
    assert "img" not in read.tags and "<style>" not in text.partition("<main")[2]
    ids = Counter(value for key, value in read.attributes if key == "id")
    assert max(ids.values()) == 1
    links = [value[1:] for key, value in read.attributes if key == "href" and value and value[0] == "#"]
    assert {*links} <= ids.keys()


def test_debates_stand_turn_beside_turn(tmp_path: Path) -> None:
    rows = beside(tmp_path, "debate").split('<div class="sides">')[1:]
    assert len(rows) == 4, "what stands before the turns, and three turns"
    for n, row in enumerate(rows[1:3], 1):
        assert f"Because 0 {n}" in row and f"Because 1 {n}" in row and row.count(f"<h4>Turn {n}</h4>") == 2
    assert rows[3].count("<h4>") == 1 and "Because 1 3" in rows[3]
    assert all(row.count("<div") + 1 - row.count("</div>") == 0 for row in rows[:3])
    assert rows[0].count("<section") == rows[0].count("</section>") == 2 and "<section" not in "".join(
        rows[1:]
    )


def test_two_runs_in_the_api(front: Front, names: list[str]) -> None:
    of, at = by_dataset(names), "/api/v1/tasks/toy/comparison"
    dev = of["dev"]
    with front.client("team") as program:
        given = program.get(at, params={"run": dev})
        data = given.json()
        assert schemas.validate(data, "comparison") == [] and given.headers["etag"]
        assert [data["first"], data["second"]] == dev
        one = data["measures"][0]
        assert (one["p"], one["wins"], one["losses"], one["test"]) == (1.0, 1, 1, "sign test")
        for wrong in ([*dev, dev[0]], [dev[0]] * 2, [dev[0], of["test"][0]], dev[:1]):
            refused = program.get(at, params={"run": wrong})
            assert (refused.status_code, refused.json()["code"]) == (400, "E101")
        assert program.get(at, params={"run": [dev[0], "x"]}).status_code == 404
    with front.client("other") as program:
        assert program.get(at, params={"run": dev}).status_code == 404


def test_another_team_sees_none_of_them(front: Front, names: list[str]) -> None:
    dev = by_dataset(names)["dev"]
    with front.browser("other") as client:
        text = client.get(f"/tasks/toy/compare?first={dev[0]}&second={dev[1]}").text
        assert "alpha" not in text and "0.9000" not in text and "<select" not in text
        assert client.get("/tasks/none/compare").status_code == 404
    with front.client() as client:
        assert client.get("/tasks/toy/compare").headers["location"] == "/sign-in"


def judges(root: Path) -> list[str]:
    """Three runs without values by topic, on public and on blinded data: they have values in the same resamples; and one without a measure of theirs."""
    world = World.make(root)
    for n, (value, measures) in enumerate(((0.4, ("ndcg", "rr")), (0.8, ("ndcg", "rr")), (0.5, ("ndcg",)))):
        submission = world.register("alpha", f"judge-{n}")
        for dataset in ("dev", "test"):
            drawn = [value + k / 1000 for k in range(-9, 10)] if dataset == "dev" else [0.55215521] * 19
            one = {"value": value, "topics": 9, "covered": 9, "interval": None}
            found = {id: one | {"resamples": {"drawn": "0" * 64, "values": drawn}} for id in measures}
            world.evaluation(world.attempt(submission, dataset=dataset), {}, more={"measures": found})
    found = sorted((run.submission.software, run.id) for run in runs(world.store, [records.task()]))
    return [id for _, id in found if id.endswith(".dev")]


def test_figures_without_topics_are_compared_by_resamples(tmp_path: Path) -> None:
    names = judges(tmp_path)
    with (
        front_of(tmp_path, World.make(tmp_path), toy(tmp_path)) as front,
        front.browser() as client,
        front.client("team") as program,
    ):

        def page(first: str, second: str) -> str:
            return words(client.get("/tasks/toy/compare", params={"first": first, "second": second}).text)

        text = page(*names[:2])
        assert "nDCG@10 0.4000 0.8000 -0.4000 [-0.4000, -0.4000] 0.050" in text and "w / l / t" not in text
        assert f"RR: {names[2]}" in page(*names[1:])
        data = program.get("/api/v1/tasks/toy/comparison", params={"run": names[:2]}).json()
        assert {"bootstrap", "19"} <= {*data["measures"][0]["test"].split()}
    kept = [path for path in (front.exchange / "published").rglob("*") if path.is_file()]
    assert not [path for path in kept if b"0.55215521" in path.read_bytes()], "those of blinded data stay"
