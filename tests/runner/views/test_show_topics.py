"""Scores by topic where a run is shown: the worst and the best, the median of the board, and who may see them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.model.task import Measure
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience, bests_open, medians_open
from runner.views.redact import redact_run
from runner.views.show.page import page
from runner.views.show.topics import Medians, measure_names, topics_of
from tests.worlds import records
from tests.worlds.commands import Answer, At
from tests.worlds.records import World

ALPHA = Audience("team", "alpha")
HOSTILE = "<b>\x1b[2J topic"
Show = Callable[..., Answer]


@pytest.fixture
def world(tmp_path: Path) -> World:
    records.write_project(tmp_path)
    return World.make(tmp_path)


@pytest.fixture
def show(world: World) -> Show:
    """Return a function that runs ``runner show``."""
    return lambda *words: At(world.config.root, world).run("show", *words, env={"COLUMNS": "80"})


def scores(first: float = 0.1, topics: int = 9) -> dict[str, float]:
    return {f"t{n}": round(first + n / 20, 4) for n in range(topics)}


def table(text: str) -> list[list[str]]:
    """Return the words of each line of the table of topics."""
    lines = text.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("topic "))
    return [line.split() for line in lines[start : lines.index("", start)]]


def test_the_worst_and_the_best_on_the_terminal(world: World, show: Show) -> None:
    world.scored("alpha", "x", scores=scores())
    world.scored("beta", "y", scores=scores(0.3))
    head, *rows = table(show("alpha").out)
    assert head == ["topic", "nDCG@10", "median", "of", "2", "best"] and len(rows) == 7
    assert rows[0] == ["t0", "0.1000", "0.2000", "0.3000"] and rows[-1] == [
        "t8",
        "0.5000",
        "0.6000",
        "0.7000",
    ]
    assert [row[0] for row in rows] == ["t0", "t1", "t2", "…", "t6", "t7", "t8"]
    head, *rows = table(show("alpha", "--topics").out)
    assert head == ["topic", "nDCG@10", "median", "of", "2", "best", "RR"] and len(rows) == 9
    data = json.loads(show("alpha", "--json").out)
    medians, best = data["topic_medians"], data["topic_medians"].pop("best")
    assert medians == {"measure": "ndcg", "runs": 2, "topics": pytest.approx(scores(0.2))}
    assert best == pytest.approx(scores(0.3)) and list(data["scores"]) == ["ndcg", "rr"]


def test_lower_is_better_and_few_topics(world: World) -> None:
    task = records.task(direction="lower")
    run = world.scored("alpha", "x", scores={"a": 0.2, "b": 0.9, "c": 0.5})
    view = redact_run(run_detail.detail(world.store, f"{run}.test"), ORGANISER, task.datasets["test"])
    found = topics_of(view, task)
    assert found is not None and found.chosen == found.order == ("b", "c", "a")
    gone = topics_of(view, None)  # the task is gone: ids in place of names
    assert gone is not None and gone.heads() == ["topic", "ndcg", "rr"] and gone.order == ("a", "c", "b")
    beside = topics_of(view, task, Medians("rr", 3, {}))
    assert beside is not None and beside.heads() == [
        "topic",
        "nDCG@10",
        "RR",
    ]  # no medians of another measure


def test_two_measures_of_one_name_are_told_apart() -> None:
    measures = {id: Measure(id, "nDCG@5", f"{id}.qrels") for id in ("relevance", "quality")}
    task = replace(records.task(), measures={**measures, "rr": Measure("rr", "RR", "q")})
    named = {"relevance": "nDCG@5 (relevance)", "quality": "nDCG@5 (quality)", "rr": "RR", "old": "old"}
    assert measure_names(task, [*named]) == named
    assert measure_names(task, ["quality"]) == {"quality": "nDCG@5"}
    assert measure_names(None, ["a"]) == {"a": "a"}


def test_too_narrow_for_all_measures(world: World) -> None:
    names = {f"m{n}": Measure(f"m{n}", f"measure-number-{n}", "q") for n in range(9)}
    task = replace(records.task(), measures=names, tables={})
    attempt = world.attempt(world.register("alpha", "x"), dataset="dev")
    world.evaluation(attempt, {name: scores() for name in names})
    view = redact_run(run_detail.detail(world.store, attempt.run_id), ORGANISER, task.datasets["dev"])
    found = topics_of(view, task)
    assert found is not None and found.heads()[1:] == [one.measure for one in names.values()]
    assert found.fitting(60).heads() == ["topic", *found.heads()[1:4]]
    assert found.fitting(5).heads() == ["topic", "measure-number-0"] and found.fitting(999) == found


def test_who_sees_them(world: World, show: Show) -> None:
    own = world.scored("alpha", "x", scores={**scores(), HOSTILE: 0.7}, datasets=("dev", "test"))
    target = world.config.root / "run.html"
    for run, audience, seen in (
        (f"{own}.dev", "team:alpha", True),
        (f"{own}.test", "team:alpha", False),
        (f"{own}.test", "organiser", True),
    ):
        told = show(run, "--as", audience).out
        show(run, "--as", audience, "--html", str(target))
        text = target.read_text("utf-8")
        assert ("\ntopic " in told) is ('<h2 id="topics">' in text) is (">t8<" in text) is seen, (
            run,
            audience,
        )
        assert "<b>" not in text and "\x1b" not in told + text
        data = json.loads(show(run, "--as", audience, "--json").out)
        assert bool(data["topic_scores"]) is seen
        assert (data["topic_medians"] is not None) is (audience == "organiser")


@pytest.mark.slow
def test_the_median_is_of_other_teams_and_only_of_many(world: World, show: Show) -> None:
    def medians(audience: str) -> Any:
        return json.loads(show(f"{own}.dev", "--as", audience, "--json").out)["topic_medians"]

    own = world.scored("alpha", "x", scores=scores(), datasets=("dev",))
    world.scored("alpha", "z", scores=scores(0.0), datasets=("dev",))
    for n, team in enumerate(("beta", "gamma", "delta", "epsilon")):
        world.scored(team, "y", scores=scores(0.2 + n / 100), datasets=("dev",))
    assert medians("team:alpha") is None and medians("organiser")["runs"] == 6
    world.scored("zeta", "y", scores=scores(0.4), datasets=("dev",))
    found = medians("team:alpha")
    assert found["runs"] == 5 and found["topics"]["t0"] == pytest.approx(0.22)  # neither of its own two
    assert found["best"] == {}, "the best is one run's own value"
    assert medians("organiser")["topics"]["t0"] == pytest.approx(0.21)
    assert medians("organiser")["best"]["t0"] == pytest.approx(0.4)
    assert "median of 5" in show(f"{own}.dev", "--as", "team:alpha").out
    for n in range(5):  # one team makes half of the board: its values would be the median
        world.scored("zeta", f"more{n}", scores=scores(0.4), datasets=("dev",))
    assert medians("team:alpha") is None


def test_extra_teams_without_scores_do_not_bring_out_the_one_that_has_some(world: World, show: Show) -> None:
    own = world.scored("alpha", "x", scores=scores(), datasets=("dev",))
    for team in ("extra", "odd", "third", "idle"):
        world.scored(team, "y", scores=dict.fromkeys(scores(), 0.0), datasets=("dev",))
    world.scored("beta", "y", scores=scores(0.1123), datasets=("dev",))
    target = world.config.root / "run.html"
    for audience, seen in (("team:alpha", False), ("organiser", True)):
        told = show(f"{own}.dev", "--as", audience, "--topics").out
        data = show(f"{own}.dev", "--as", audience, "--json").out
        show(f"{own}.dev", "--as", audience, "--html", str(target))
        assert "median of" in told and json.loads(data)["topic_medians"]["runs"] >= 5
        for text in (told, data, target.read_text("utf-8")):
            assert ("0.1123" in text and "0.5123" in text) is seen, (audience, text)


def test_whose_medians_are_open() -> None:
    dev, test = records.task().datasets["dev"], records.task().datasets["test"]
    teams = list("abcde")
    assert medians_open(ORGANISER, test, []) and medians_open(ALPHA, dev, teams)
    assert not medians_open(ALPHA, test, teams) and not medians_open(PUBLIC, test, teams)
    assert bests_open(ORGANISER) and not bests_open(ALPHA) and not bests_open(PUBLIC)
    assert not medians_open(ALPHA, dev, teams[:4]) and not medians_open(ALPHA, dev, [*teams, *"aaaa"])


def test_the_page_draws_each_topic_beside_the_median_and_for_the_organiser_the_best(
    world: World, show: Show
) -> None:
    own = world.scored("alpha", "x", scores=scores(), datasets=("dev",))
    for n, team in enumerate(("beta", "gamma", "delta", "epsilon", "zeta")):
        world.scored(team, "y", scores=scores(0.2 + n / 10), datasets=("dev",))
    target = world.config.root / "run.html"
    marks = {}
    for audience in ("team:alpha", "organiser"):
        show(f"{own}.dev", "--as", audience, "--html", str(target))
        found = target.read_text("utf-8")
        found = found[found.index("<body") :]
        kinds = ("whiskers", "dot", "against", "best")
        marks[audience] = [found.count(f'class="{kind}"') // 2 for kind in kinds]
        assert "median" in found and ("triangle" in found) is (audience == "organiser")
        # t0 of the run is the least of all that is drawn, its best of all the highest
        assert 'class="dot" cx="4.0"' in found
    of_each = [7, 7, 7]  # of six topics and of all nine, by two
    assert marks == {"team:alpha": [*of_each, 0], "organiser": [*of_each, 7]}


def test_the_page_has_all_topics_within_what_can_be_opened(world: World) -> None:
    run = world.scored("alpha", "x", scores={f"t{n:04}": n / 3000 for n in range(2500)})
    task = records.task()
    view = redact_run(run_detail.detail(world.store, f"{run}.test"), ORGANISER, task.datasets["test"])
    text = page(view, topics=topics_of(view, task, Medians("ndcg", 3, {"t0000": 0.5})))
    assert "median of 3" in text and re.search("<summary>[^<]*2,500[^<]*</summary>", text)
    assert "2,000 of 2,500" in text and text.count("<tr") < 2020
    assert '<h2 id="topics">' in text and '<h2 id="topics">' not in page(view)


def test_the_page_escapes_its_hint(world: World) -> None:
    found = run_detail.detail(
        world.store, world.attempt(world.register("alpha", "x"), verdict="run-error").run_id
    )
    view = redact_run(found, ORGANISER, records.task().datasets["test"])
    assert "</strong> use &lt;b&gt;." in page(view, hint="use <b>") and "Hint" not in page(view)
