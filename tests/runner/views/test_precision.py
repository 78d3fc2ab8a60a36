"""Scores with as many decimals as the task says: shown, exported and ranked so, and with more for the organiser alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.api import Home
from runner.model.run import MeasureValue, rounded
from runner.views.audience import ORGANISER, Audience
from tests.worlds.looking import ALPHA, EVERYBODY, PUBLIC, Views

# Means that are the same with two decimals, and have more that say who is better.
MEANS = {"alpha": 0.42373737, "beta": 0.42181818, "baselines": 0.31191919}
BASELINE = {
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg", "baseline": "baselines/x"}]
}


def by_topic(mean: float) -> dict[str, float]:
    return {str(n): mean + (0.0313131 if n % 2 else -0.0313131) for n in range(1, 31)}


def views_of(root: Path, rule: str = "public", public_topics: str | None = None, **task: Any) -> Views:
    """Three teams on a blinded dataset whose scores everybody sees."""
    given = {"precision": 2, **BASELINE, **task}
    more = {} if public_topics is None else {"public_topics": public_topics}
    return Views(
        root, rule, by_topic={team: by_topic(mean) for team, mean in MEANS.items()}, task=given, **more
    )


def numbers(value: Any) -> Iterator[float]:
    """All numbers of JSON data that are no whole ones."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value


@pytest.mark.slow
def test_nobody_but_the_organiser_sees_more_decimals(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    # What has three or more decimals and begins like a mean, a bound, a value by topic or a difference of these.
    more = re.compile(
        r"0\.(?:42[0-9]|31[0-9]|45[0-9]|39[0-9]|41[0-9]|43[0-9]|11[0-9]|10[0-9]|28[0-9]|34[0-9])"
    )
    assert more.search(views.all(str(ORGANISER)))
    for audience in EVERYBODY:
        assert not more.findall(views.all(audience)), audience


def test_equal_ones_share_a_rank_for_everybody(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    for audience in ("organiser", ALPHA, PUBLIC):
        board = json.loads(views.command("leaderboard", "toy", "--json", "--as", audience))
        ranks = [(row["team"], row["rank"]) for row in board["rows"]]
        assert ranks == [("alpha", 1), ("beta", 1), ("baselines", 3)]
        assert {row["scores"]["ndcg"]["mean"] for row in board["rows"]} == {0.42, 0.31}
        assert board["rows"][0]["comparison"]["difference"] == 0.11
        assert all(one == round(one, 2) for row in board["rows"] for one in numbers(row["scores"]))
    options = ("--json", "--method", "automatic", "--as", PUBLIC)
    filtered = json.loads(views.command("leaderboard", "toy", *options))
    assert [row["rank"] for row in filtered["rows"]] == [1, 1, 3]
    text = views.command("leaderboard", "toy", "--as", PUBLIC)
    assert "0.42 " in text and "2 decimals" in text


def test_the_organiser_sees_all_decimals_of_a_run(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    run = json.loads(views.command("show", views.runs[0], "--json"))
    assert run["scores"]["ndcg"]["value"] == pytest.approx(MEANS["alpha"], abs=1e-12)
    own = json.loads(views.command("show", views.runs[0], "--json", "--as", ALPHA))
    assert own["scores"]["ndcg"]["value"] == 0.42 and own["scores"]["ndcg"]["precision"] == 2
    assert " 0.42 " in views.command("show", views.runs[0], "--as", ALPHA)


def test_each_measure_may_have_its_own(tmp_path: Path) -> None:
    measures = [
        {"id": "ndcg", "measure": "nDCG@10", "truths": "qrels.txt", "precision": 3},
        {"id": "rr", "measure": "RR", "truths": "qrels.txt"},
    ]
    views = views_of(tmp_path, measures=measures, precision=1)
    board = json.loads(views.command("leaderboard", "toy", "--json", "--as", PUBLIC))
    first = board["rows"][0]
    means = [first["scores"][name]["mean"] for name in ("ndcg", "rr")]
    assert first["team"] == "alpha" and means == [0.424, 0.4]
    assert [one["precision"] for one in board["measures"]] == [3, 1]
    task = json.loads(views.command("task", "show", "toy", "--json"))
    assert [one["precision"] for one in task["measures"]] == [3, 1]


def test_a_measure_that_the_task_has_no_more_is_rounded_as_all_are(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    views.runs.append(
        f"{views.world.scored('alpha', 'y', scores=by_topic(0.51234567), datasets=('dev',))}.dev"
    )
    path = tmp_path / "tasks" / "toy" / "task.yaml"
    task = json.loads(path.read_text())
    path.write_text(json.dumps({**task, "measures": task["measures"][:1]}))
    for run in (views.runs[0], views.runs[-1]):
        shown = json.loads(views.command("show", run, "--json", "--as", ALPHA))
        found = [*numbers(shown["scores"]), *numbers(shown["topic_scores"])]
        assert "rr" in shown["scores"] and all(one == round(one, 2) for one in found)
    frame = Home(views.world.config, Audience.parse(ALPHA)).topic_scores()
    assert set(frame["measure"]) == {"ndcg", "rr"} and set(frame["value"]) == {0.54, 0.48}


def test_a_public_part_of_topics_is_rounded_too(tmp_path: Path) -> None:
    views = views_of(tmp_path, public_topics="50%")
    views.world.commit("key-drawn", task="toy", key="5e" * 32)
    board, run = ("leaderboard", "toy", "--as", PUBLIC), ("show", views.runs[0], "--as", ALPHA)
    for words in ((*board, "--json"), (*run, "--json")):
        scores = json.loads(views.command(*words))
        scored = scores.get("rows", [scores])
        found = [one for row in scored for one in numbers(row["scores"])]
        assert found and all(one == round(one, 2) for one in found)


def test_without_the_key_ranks_are_at_full_precision(tmp_path: Path) -> None:
    views = Views(tmp_path, "public", by_topic={team: by_topic(mean) for team, mean in MEANS.items()})
    board = json.loads(views.command("leaderboard", "toy", "--json", "--as", PUBLIC))
    assert [row["rank"] for row in board["rows"]] == [1, 2, 3]
    assert "precision" not in board["measures"][0]


def test_runs_on_public_data_are_exported_without_the_evaluators_figures(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    made = views.world.scored("alpha", "y", scores=by_topic(0.5), datasets=("dev",))
    for audience, there in ((ALPHA, False), ("organiser", True)):
        folder = tmp_path / audience
        views.command("export", f"{made}.dev", str(folder), "--as", audience)
        assert (folder / "output" / "run.txt").is_file()
        for name in ("result.json", "scores.jsonl"):
            assert (folder / "evaluation" / name).is_file() is there
    shown = json.loads(views.command("show", f"{made}.dev", "--json", "--as", ALPHA))
    assert set(shown["topic_scores"]["ndcg"].values()) == {0.53, 0.47}


@given(st.floats(-1e6, 1e6), st.integers(0, 10))
def test_a_rounded_value_has_no_more_decimals(value: float, decimals: int) -> None:
    found = MeasureValue(value, 3, 3, value - 1, value + 1).rounded(decimals)
    for one in (found.value, found.low, found.high):
        assert one is not None and one == round(one, decimals) and str(one) != "-0.0"
    assert abs(found.value - value) <= 0.5 * 10**-decimals * (1 + 1e-9) + 1e-9
    assert rounded(value, None) == value and rounded(None, decimals) is None


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=2, max_size=4), st.integers(0, 4))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_boards_of_any_values_rank_by_what_they_show(
    tmp_path_factory: pytest.TempPathFactory, means: list[float], decimals: int
) -> None:
    values = {f"team-{n}": {"1": mean, "2": mean / 2} for n, mean in enumerate(means)}
    views = Views(tmp_path_factory.mktemp("any"), "public", by_topic=values, task={"precision": decimals})
    rows = json.loads(views.command("leaderboard", "toy", "--json", "--as", PUBLIC))["rows"]
    shown = [row["scores"]["ndcg"]["mean"] for row in rows]
    assert all(one == round(one, decimals) for row in rows for one in numbers([row["scores"], row["cells"]]))
    assert shown == sorted(shown, reverse=True)
    assert [row["rank"] for row in rows] == [1 + sum(other > one for other in shown) for one in shown]
    tied = [row["team"] for row in rows if row["rank"] == 1]
    assert tied == sorted(tied)  # the order within a rank says nothing
