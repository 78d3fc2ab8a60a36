"""Display names on boards: as they were handed in, with the name beside them, harmless in every format."""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path

import pytest

import schemas
from runner.model.task import Task
from runner.records.store import connect
from runner.records.store.run_detail import detail
from runner.views.audience import ORGANISER, PUBLIC
from runner.views.leaderboard.export import as_dict, export, from_dict, text
from runner.views.leaderboard.formats.terminal import columns_of
from runner.views.leaderboard.frames import leaderboard
from runner.views.leaderboard.table import build, filtered
from runner.views.redact import redact_run
from tests.worlds import records
from tests.worlds.records import World

TEAM, SOFTWARE = "TeamA_v2.1", "webis_run-1.0"
SHOWN = "Grünfeld & Söhne <b>"
CALLED = f"{SHOWN}: $BM25_k1$ 50 %"
TASK: Task = records.task(baseline=None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World.make(tmp_path)
    named = {"display_name": "$BM25_k1$ 50 %", "team_display_name": SHOWN}
    entries = (
        (TEAM, SOFTWARE, named),
        ("alpha", "x", {}),
        ("sums", "y", {"team_display_name": "=1+1"}),
        ("wide", "z", {"team_display_name": "東京大学"}),
    )
    for n, (team, software, names) in enumerate(entries):
        run = world.attempt(world.register(team, software, **names))
        world.evaluation(run, {m: records.per_topic(team, mean=0.8 - n / 6) for m in records.MEASURES})
    world.attempt(world.register(TEAM, "broken"), verdict="run-error")
    return world


def test_every_format_shows_them_as_they_are_and_the_name_beside(world: World) -> None:
    table = build(world.store, TASK, None, ORGANISER)
    assert table.names == {
        TEAM: SHOWN,
        f"{TEAM}/{SOFTWARE}": "$BM25_k1$ 50 %",
        "sums": "=1+1",
        "wide": "東京大学",
    }
    plain = export(table, "table")
    (line,) = [line for line in plain.splitlines() if CALLED in line]
    assert f"{TEAM}/{SOFTWARE}" in line and "alpha/x" in plain
    below = plain.partition("Not ranked:")[2]
    assert f"{TEAM}/broken" in below and SHOWN in below
    rows = {row["software"]: row for row in csv.DictReader(io.StringIO(export(table, "csv")))}
    shown = {name: row["team_display_name"] for name, row in rows.items()}
    assert shown == {SOFTWARE: SHOWN, "x": "", "y": "'=1+1", "z": "東京大学", "broken": SHOWN}
    assert (rows[SOFTWARE]["team"], rows[SOFTWARE]["display_name"]) == (TEAM, "$BM25_k1$ 50 %")
    page = export(table, "html")
    assert f"<bdi>{html.escape(CALLED)}</bdi>" in page and "<b>" not in page
    assert f"{TEAM}/<wbr>{SOFTWARE}" in page.replace("<wbr>.", ".")
    tex = export(table, "latex")
    assert r"Grünfeld \& Söhne \textless{}b\textgreater{}: \$BM25\_k1\$ 50 \%" in tex
    assert r"TeamA\_v2.1/webis\_run-1.0" in tex
    assert r"Grünfeld &amp; Söhne &lt;b&gt;" in export(table, "markdown")
    data = json.loads(export(table, "json"))
    assert data["names"] == dict(table.names) and schemas.validate(data, "leaderboard") == []
    assert from_dict(as_dict(table), "organiser") == table
    assert SHOWN in set(leaderboard(table)["team_display_name"])
    first = next(row for row in table.rows if row.team == TEAM)
    assert filtered(table, method="automatic").displayed(first) == CALLED


def test_a_page_has_a_head_for_every_cell(world: World) -> None:
    page = export(build(world.store, TASK, None, ORGANISER), "html")
    assert page.count("<table") == 2
    for table in page.split("<table")[1:]:
        head, _, body = table.partition("<tbody>")
        cells = {row.count("<td") + row.count("<th ") for row in body.split("<tr")[1:]}
        assert cells == {head.count("<th ")}, table


def test_nothing_of_them_where_nobody_has_one(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    run = world.attempt(world.register("alpha", "x"))
    world.evaluation(run, {m: records.per_topic("a") for m in records.MEASURES})
    table = build(world.store, TASK, None, ORGANISER)
    assert "names" not in as_dict(table)
    assert "display_name" not in export(table, "csv") and " name " not in export(table, "table")


def test_columns_stay_aligned_and_fit_a_terminal(world: World) -> None:
    table = build(world.store, TASK, None, ORGANISER)
    lines = text(table).splitlines()
    ends = set()
    for row in table.rows:
        (line,) = [x for x in lines if f" {row.team}/{row.software} " in x and "0." in x]
        score = f"{row.values['ndcg'].mean:.4f}"
        ends.add(columns_of(line[: line.index(score) + len(score)]))
    assert len(table.rows) == 4 and len(ends) == 1, "\n".join(lines)
    narrow = text(table, 80).splitlines()
    assert max(map(columns_of, narrow)) <= 80 and f"{TEAM}: {SHOWN}" in narrow and "wide: 東京大学" in narrow
    assert [columns_of(one) for one in ("abc", "東京", "e\u0301", "ü")] == [3, 4, 1, 1]


def test_the_organiser_gives_another_one_and_the_rebuilt_store_says_the_same(world: World) -> None:
    world.commit("display-name-set", team=TEAM, software="", display_name="Webis")
    world.commit("display-name-set", team=TEAM, software=SOFTWARE, display_name="")
    table = build(world.store, TASK, None, PUBLIC)
    first = next(row for row in table.rows if row.team == TEAM)
    assert table.displayed(first) == "Webis"
    before = {name: export(table, name) for name in ("json", "html", "csv", "latex")}
    world.store.close()
    connect.rebuild(world.config)
    with connect.open_store(world.config) as store:
        again = build(store, TASK, None, PUBLIC)
        assert {name: export(again, name) for name in before} == before
        view = redact_run(detail(store, first.runs[0], [TASK]), ORGANISER, TASK.datasets["test"])
        assert (view["team_display_name"], "display_name" in view) == ("Webis", False)


def test_what_stands_in_a_log_is_shown_escaped(tmp_path: Path) -> None:
    """Registration refuses it; who wrote into the log by hand moves no terminal either."""
    world = World.make(tmp_path)
    run = world.attempt(world.register("alpha", "x", team_display_name="a\x1b[2J\u202eb\nc" + "d" * 200))
    world.evaluation(run, {m: records.per_topic("a") for m in records.MEASURES})
    table = build(world.store, TASK, None, ORGANISER)
    for name in ("table", "html", "csv", "latex", "markdown", "json"):
        said = export(table, name)
        assert "\x1b" not in said and "\u202e" not in said and "d" * 120 not in said
