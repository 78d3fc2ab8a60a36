"""Plots through `runner plot`: what they say, their formats, hostile texts, and who may have which."""

from __future__ import annotations

import csv
import io
import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.records.store.queries import submissions
from runner.views.plots.making import KINDS
from tests.worlds import records
from tests.worlds.commands import Answer, At
from tests.worlds.records import World

Plot = Callable[..., Answer]
Refused = Callable[..., None]
TOPICS = {str(n): n / 10 for n in (1, 2, 3, 4, 5, 6, 7, 9)} | {"10": 0.8}
HOSTILE_TOPIC = "=1+1<script>alert(1)</script>"
TAGS = [
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred",
    "]]>&amp;",
]
OF_BOARD = tuple(kind for kind in KINDS if kind != "run")
BY_TOPIC = ("topics", "critical")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("plots")
    records.write_project(root)
    place = root / "tasks" / records.TASK / "task.yaml"
    data = json.loads(place.read_text())
    data["tables"].append({"id": "open", "cells": [{"dataset": "dev"}], "rank_by": "ndcg"})
    place.write_text(json.dumps(data))
    world = World.make(root)
    for n, tag in enumerate(TAGS):
        submission = world.register(f"team-{n}", "x", tag=tag, method="manual" if n == 1 else "automatic")
        for dataset in ("dev", "test"):
            values = {topic: round(value / (n + 1), 6) for topic, value in TOPICS.items()}
            values[HOSTILE_TOPIC] = 0.05 * n
            attempt = world.attempt(submission, dataset=dataset, wall=10.0 ** (n - 1))
            world.evaluation(attempt, {"ndcg": values, "rr": {"1": 1 / (n + 1), "2": 0.0}})
    world.scored("baselines", "bm25", scores={**TOPICS, HOSTILE_TOPIC: 0.5}, datasets=("dev", "test"))
    return world


@pytest.fixture
def plot(home: World) -> Plot:
    """Return a function that runs ``runner plot``."""
    at = At(home.config.root, home)
    return lambda *rest: at.run("plot", records.TASK, *rest, env={"COLUMNS": "80"})


@pytest.fixture
def refused(plot: Plot) -> Callable[..., None]:
    """Return a function that asserts that a plot ends with an error, and which values this names."""

    def check(words: tuple[str, ...], code: str, *values: str) -> None:
        error = plot(*words).error
        assert error.code == code, (words, error.code)
        assert all(value in f"{error.what} {error.why} {error.fix}" for value in values), (words, error)

    return check


def rows(answer: Answer) -> list[dict[str, str]]:
    assert answer.exit_code == 0, answer.text
    return list(csv.DictReader(io.StringIO(answer.out)))


def run_of(home: World, team: str, dataset: str) -> str:
    return next(f"{one.id}.{dataset}" for one in submissions(home.store) if one.team == team)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*OF_BOARD, "run"])
def test_every_kind_in_every_format_twice_the_same(
    home: World, plot: Plot, tmp_path: Path, kind: str
) -> None:
    more = ("--run", run_of(home, "team-1", "dev")) if kind == "run" else ()
    starts = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "json": b"{", "csv": b""}
    for form, start in starts.items():
        out = [tmp_path / f"{n}.{form}" for n in (1, 2)]
        for path in out:
            said = plot(kind, *more, "--out", str(path))
            assert said.exit_code == 0, said.text
            assert said.err.count(". ") >= 1  # two sentences, at least
        assert out[0].read_bytes().startswith(start) and out[0].read_bytes() == out[1].read_bytes(), form
    spec = json.loads((tmp_path / "1.json").read_text())
    assert "vega-lite" in spec["$schema"] and spec["description"]


def test_excel_is_for_csv_alone(plot: Plot, refused: Refused, tmp_path: Path) -> None:
    refused(("scores", "--excel", "--out", str(tmp_path / "x.svg")), "E101")
    assert plot("scores", "--excel", "--out", str(tmp_path / "x.csv")).exit_code == 0
    assert (tmp_path / "x.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("kind", [*OF_BOARD, "run"])
def test_words_of_others_stay_words(home: World, plot: Plot, kind: str) -> None:
    more = ("--run", run_of(home, "team-1", "dev")) if kind == "run" else ()
    text = plot(kind, *more, "--format", "svg").out
    tree = ET.fromstring(text)
    names = {one.tag.rpartition("}")[2] for one in tree.iter()}
    assert names <= {"svg", "g", "path", "rect", "line", "text", "defs", "clipPath", "title", "tspan"}, names
    attributes = {name.rpartition("}")[2] for one in tree.iter() for name in one.attrib}
    assert not [name for name in attributes if name.startswith("on") or name in ("href", "style")]
    assert "\x1b" not in text and "<script" not in text
    for row in rows(plot(kind, *more, "--format", "csv")):
        for cell in row.values():
            assert "\x1b" not in cell and (cell[:1] not in tuple("=+@") and "<script>" not in cell[:1]), cell


def test_dots_and_whiskers_have_the_figures_of_the_board(home: World, plot: Plot) -> None:
    found = rows(plot("scores", "--format", "csv"))
    assert [row["row"] for row in found][:2] == ["baselines/bm25", "team-0/x"]
    assert [row["group"] for row in found][:3] == ["baseline", "automatic", "manual"]
    assert float(found[0]["value"]) == pytest.approx(0.5) and float(found[0]["low"]) == pytest.approx(0.1)
    said = plot("scores", "--measure", "rr", "--format", "csv")
    assert "RR" in said.err and " 6 " in said.err and "nDCG" not in said.err


def test_rows_by_topic_can_be_chosen(home: World, plot: Plot, refused: Refused) -> None:
    run = run_of(home, "team-1", "dev")
    found = rows(plot("topics", "--dataset", "dev", "--run", run, "--format", "csv"))
    assert {row["row"] for row in found} == {"team-1/x"} and len(found) == len(TOPICS) + 1
    assert {row["topic"] for row in found} > {"'" + HOSTILE_TOPIC}
    assert [row["topic"] for row in found if row["topic"] in TOPICS] == list(TOPICS), "10 is behind 9"
    refused(("scores", "--run", run), "E101", "--run")


def test_a_run_next_to_median_and_best(home: World, plot: Plot) -> None:
    run = run_of(home, "team-1", "dev")
    found = {row["topic"]: row for row in rows(plot("run", "--run", run, "--format", "csv"))}
    assert [float(found["9"][name]) for name in ("value", "best")] == pytest.approx([0.45, 0.9])
    # Its team sees the median of the others where these are many enough, and none of its own are in it; no best.
    own = rows(plot("run", "--run", run, "--as", "team:team-1", "--format", "csv"))
    assert [float(row["median"]) for row in own if row["topic"] == "9"] == pytest.approx([0.3])
    assert {row["best"] for row in own} == {""}


@pytest.mark.slow
def test_nobody_plots_what_they_could_not_read(home: World, plot: Plot, refused: Refused) -> None:
    team, public, table = ("--as", "team:team-1"), ("--as", "public"), ("--table", "open")
    for audience in (public, team):
        for kind in BY_TOPIC:
            refused((kind, *audience), "E103")
        assert plot("scores", *audience).exit_code == 0  # its scores are open
    for kind in BY_TOPIC:
        refused((kind, *table, *public), "E103")
    own = rows(plot("topics", *table, *team, "--format", "csv"))
    assert {row["row"] for row in own} == {"team-1/x"}
    blinded, other = run_of(home, "team-1", "test"), run_of(home, "team-2", "dev")
    refused(("run", "--run", blinded, *team), "E102", "blinded")
    for run in (blinded, other):
        refused(("run", "--run", run, *public), "E102", run)
    refused(("run", "--run", other, *team), "E102", other)
    refused(("topics", *table, "--run", other, *team), "E102", other)


@pytest.mark.parametrize(
    ("words", "code", "value"),
    [
        ("pie", "E101", "critical"),
        ("scores --format bmp", "E101", "svg"),
        ("scores --measure map", "E102", "ndcg"),
        ("scores --dataset nowhere", "E102", "test"),
        ("scores --dataset dev --table open", "E101", "--table"),
        ("run", "E101", "--run"),
    ],
)
def test_wrong_options_are_refused(refused: Refused, words: str, code: str, value: str) -> None:
    refused(tuple(words.split()), code, value)


def test_plots_that_went_out_are_in_the_log(home: World, plot: Plot) -> None:
    plot("topics", "--dataset", "dev", "--format", "csv")
    lines = (json.loads(line) for line in home.config.events.read_text("utf-8").splitlines())
    told: list[dict[str, Any]] = [one["data"] for one in lines if one["type"] == "results-exported"]
    assert any(one["what"] == "plot" and one["name"] == "topics dev" for one in told)


def test_without_the_packages_the_data_are_still_there(
    plot: Plot, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # as if nobody had installed it
    refused(("scores",), "E101", "vl_convert", "proctor-ir[plots]")
    assert rows(plot("scores", "--format", "csv"))


def test_descriptions_of_many_rows_and_of_one(
    plot: Plot, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    records.write_project(tmp_path)
    world = World.make(tmp_path)
    world.scored("alpha", "x", scores=dict.fromkeys(TOPICS, 0.9726), datasets=("dev", "test"))
    at = At(tmp_path, world)

    def single(kind: str, form: str = "csv") -> Answer:
        return at.run("plot", records.TASK, kind, "--format", form, env={"COLUMNS": "80"})

    texts = [f"{kind}\n{plot(kind, '--format', 'csv').err}" for kind in OF_BOARD]
    texts.append(f"scores of one row\n{single('scores').err}")
    golden("plots.txt", "\n".join(texts))
    text = single("scores", "svg").out
    assert ">1<" not in text and (">0.9" in text or ">1.0" in text), "no tick is rounded to another figure"


def test_labels_at_the_ends_of_an_axis_keep_their_places(home: World, plot: Plot) -> None:
    """Pulled inwards, the first and the last lay over their neighbours; and names take half a phone at most."""
    axis = json.loads(plot("scores", "--format", "json").out)["config"]["axis"]
    assert axis["labelFlush"] is False and axis["labelLimit"] <= 150
