"""The formats of a leaderboard, with hostile tags in all of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import schemas
from runner.exchange.look import source
from runner.model.errors import RunnerError
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.export import FORMATS, export, from_dict, print_table, to_prototext
from runner.views.leaderboard.formats.page import STYLE
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from runner.views.redact import redact_run
from tests.runner.views.test_show_page import Read
from tests.worlds import records
from tests.worlds.records import World, with_scores

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(1)",
    "-2+3",
    "\x1b[31mred\x07",
    "a\nb,c\td\r",
    "x | y | [link](https://evil.example) `code` **b** @alice",
    "\\input{/etc/passwd} $x$ %& #_^~ {}",
    "\u202egnirts",
    "]]>&amp;<!--",
]


# What exports may be made of.
LATEX = {
    *("usepackage", "begin", "end", "centering", "caption", "label", "textbf", "dagger", "ddagger"),
    *("toprule", "midrule", "bottomrule", "ldots", "downarrow", "approx", "textbackslash", "textbar"),
    *("textasciicircum", "textasciitilde", "textless", "textgreater", "textquotedbl"),
}
HTML = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "div", "p", "small", "wbr", "details"),
    *("summary", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "form", "label", "input", "select"),
    *("option", "button", "span", "script", "pre", "svg", "line", "path", "circle"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LeaderboardTable:
    world = World.make(tmp_path_factory.mktemp("world"))
    world.scored("baselines", "bm25", mean=0.5)
    world.scored("good", "x", mean=0.8)
    for n, tag in enumerate(EVIL):
        world.scored("evil", f"s{n}", tag=tag, topics=30)
    for n, tag in enumerate(EVIL):
        world.attempt(
            world.register("worse", f"s{n}", tag=tag), verdict="no-output", detail=f"{tag} is not there"
        )
    return build(world.store, records.task(), "main", ORGANISER)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_format_is_repeatable_and_has_no_control_characters(
    table: LeaderboardTable, format: str
) -> None:
    text = export(table, format)
    assert text.endswith("\n") and text == export(table, format)
    between = {"\n", "\t"} if format == "tsv" else {"\n"}
    assert [c for c in set(text) - between if not c.isprintable()] == []


def test_plain_text_has_one_line_a_row(table: LeaderboardTable) -> None:
    lines = export(table, "table").splitlines()
    assert sum("evil/s" in line for line in lines) == len(EVIL)
    assert sum("worse/s" in line for line in lines) == len(EVIL)
    assert any(line.split()[:3] == ["1", "good/x", "x"] and "†" in line for line in lines)
    legend = next(line for line in lines if line.startswith("†"))
    assert "randomisation" in legend and "Holm" in legend and "0.05" in legend and "n = 30" in legend


def test_json_keeps_its_schema_and_full_precision(table: LeaderboardTable) -> None:
    data = json.loads(export(table, "json"))
    assert schemas.validate(data, "leaderboard") == []
    assert data["rows"][0]["team"] == "good"
    assert data["rows"][0]["scores"]["ndcg"]["mean"] == table.rows[0].values["ndcg"].mean
    assert data["rows"][0]["comparison"]["mark"] == "better"
    assert data["significance"]["correction"] == "Holm"


def test_tsv_is_csv_with_tabs(table: LeaderboardTable) -> None:
    rows = [
        list(csv.reader(io.StringIO(export(table, form)), delimiter=by))
        for form, by in (("csv", ","), ("tsv", "\t"))
    ]
    assert rows[0] == rows[1] and len(rows[0]) > 2


def test_for_tools_around_trec_there_are_means_alone(table: LeaderboardTable) -> None:
    for form in ("ir_measures", "tot", "jsonl"):
        assert len(export(table, form).splitlines()) == sum(len(row.values) for row in table.rows)


def test_csv_starts_no_formula_and_parses_back(table: LeaderboardTable) -> None:
    rows = list(csv.DictReader(io.StringIO(export(table, "csv"))))
    assert len(rows) == 2 + 2 * len(EVIL)
    for row in rows:
        for name in ("team", "software", "tag", "reason", "method", "blame"):
            assert row[name][:1] not in tuple("=+-@\t\r"), row[name]
        assert None not in row
    assert float(rows[0]["ndcg"]) == table.rows[0].values["ndcg"].mean
    assert {r["outcome"] for r in rows} == {"scored", "failed"}


def test_markdown_cells_stay_cells(table: LeaderboardTable) -> None:
    lines = [line for line in export(table, "markdown").splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert len(widths) == 2  # the ranked and the unranked table
    text = export(table, "markdown")
    assert "<script" not in text and "<img" not in text and "](http" not in text and " @alice" not in text


def test_latex_has_no_command_of_a_participant(table: LeaderboardTable) -> None:
    text = export(table, "latex")
    assert "\\input" not in text
    assert "\\textbackslash{}input\\{/etc/passwd\\} \\$x\\$" in text
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= LATEX
    assert text.count("\\textbf{") == len(table.columns)
    assert "$^{\\dagger}$" in text
    for word in ("Holm", "randomisation", "alpha = 0.05", "n = 30"):
        assert word in text
    body = text.split("\\midrule")[1].split("\\bottomrule")[0].strip().splitlines()
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {6}


def test_html_is_one_closed_page_that_fetches_nothing(
    table: LeaderboardTable, golden: Callable[[str, str], None]
) -> None:
    text = export(table, "html")
    page = Read(text)
    golden("board-page.txt", "\n".join(page.phrases))
    assert page.tags <= HTML
    assert not {"src", "href", "onerror", "onclick"} & {name for name, _ in page.attributes}
    assert text.count('scope="row"') == 2 + 2 * len(EVIL)
    assert ("http-equiv", "Content-Security-Policy") in page.attributes
    assert re.findall('<p[^>]* id="([a-z]+)"', text) == ["ranked", "below"]
    assert [value for name, value in page.attributes if name == "aria-labelledby"] == ["ranked", "below"]


def test_an_empty_leaderboard_exports_everywhere(world: World) -> None:
    table = build(world.store, records.task(), "main", PUBLIC)
    for format in FORMATS:
        assert export(table, format)
    assert schemas.validate(json.loads(export(table, "json")), "leaderboard") == []


def test_an_unknown_format_names_the_known_ones(table: LeaderboardTable) -> None:
    with pytest.raises(RunnerError) as caught:
        export(table, "xlsx")
    assert caught.value.code == "E101"
    assert "latex" in caught.value.fix


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_and_lines_only_on_a_terminal(
    table: LeaderboardTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    pipe, terminal, quiet = io.StringIO(), Terminal(), Terminal()
    print_table(table, pipe)
    print_table(table, terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(table, quiet)
    assert pipe.getvalue() == export(table, "table")
    assert "\x1b" not in quiet.getvalue() and "─" not in quiet.getvalue()
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[31mred" not in terminal.getvalue()
    assert "good/x" in terminal.getvalue() and "nDCG@10" in terminal.getvalue()


def test_prototext_keeps_keys_and_values(world: World) -> None:
    world.pinned = False  # names that the evaluation keeps come first: tests/runner/records/test_stale.py
    submission = world.scored("a", "x", scores={"1": 0.25, "2": 0.63})
    detail = run_detail.detail(world.store, f"{submission}.test")
    task = records.task()
    names = {m.id: m.measure for m in task.measures.values()}
    view = redact_run(detail, Audience("team", "a"), task.datasets["test"])
    assert to_prototext(view, names) == (
        'measure{\n  key: "nDCG@10"\n  value: "0.44"\n}\nmeasure{\n  key: "RR"\n  value: "0.44"\n}\n'
    )
    assert 'key: "ndcg"' in to_prototext(view, {"ndcg": "same", "rr": "same"})
    assert to_prototext(view, {"ndcg": 'a"\n\\'}).splitlines()[1] == '  key: "a\\"\\\\x0a\\\\"'
    perfect = run_detail.detail(world.store, f"{world.scored('a', 'y', scores={'1': 1, '2': 1})}.test")
    text = to_prototext(redact_run(perfect, Audience("team", "a"), task.datasets["test"]), names)
    assert 'key: "nDCG@10"\n  value: "1.0"\n' in text
    closed = with_scores(task, "test", "organiser").datasets["test"]
    with pytest.raises(RunnerError) as caught:
        to_prototext(redact_run(detail, Audience("team", "a"), closed))
    assert caught.value.code == "E103"


@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize("width", [60, 80, 120, 400])
def test_a_terminal_gets_whole_columns(
    table: LeaderboardTable, width: int, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is left out by name; numbers and names are never cut."""
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    print_table(table, stream, color=color)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    if color:
        assert max(map(len, lines)) <= width
    ranked = [line for line in lines if line.split()[1:2] == ["good/x"]]
    assert len(ranked) == 1 and len(ranked[0]) <= width and "…" not in ranked[0]
    assert f"{table.rows[0].values['ndcg'].mean:.4f}" in ranked[0]
    assert f"{table.rows[0].covered}/30" in ranked[0]  # coverage stays beside the score
    assert any("--wide" in line for line in lines) == (width < 400)


def test_measures_have_units_and_meanings_and_older_boards_have_none(table: LeaderboardTable) -> None:
    page = export(table, "html")
    assert 'data-key="nDCG@10" data-measure="higher">nDCG@<wbr>10 <small>0 to 1</small></th>' in page
    assert page.index("nDCG@<wbr>10 <small>") < page.index("RR <small>")
    data = json.loads(export(table, "json"))
    meanings = [f"<li>{column.measure}: {column.says}</li>" for column in table.columns]
    assert data["measures"][1]["unit"] == "0 to 1" and all(meaning in page for meaning in meanings)
    for measure in data["measures"]:
        del measure["unit"], measure["says"]
    assert schemas.validate(data, "leaderboard") == []  # a round that was frozen before
    older = export(from_dict(data, "public"), "html")
    assert 'data-measure="higher">nDCG@<wbr>10</th>' in older
    assert older.count("<details>") == page.count("<details>") - 1 and not any(
        one in older for one in meanings
    )


def test_html_breaks_no_names(table: LeaderboardTable) -> None:
    assert "anywhere" not in (source(STYLE) or "") and "<wbr>" in export(table, "html")


def test_a_column_of_steps_is_in_no_order_and_one_of_figures_is(world: World) -> None:
    """Of blinded data time is told in steps, whose words are no figures: such a head is no button."""
    for name in ("x", "y"):
        world.scored("a", name)
    task = with_scores(records.task(), "test", "public")
    for audience, step in ((PUBLIC, True), (ORGANISER, False)):
        made = build(world.store, task, None, audience)
        rows = [
            replace(row, time_step=f"under {n} min") if step else replace(row, wall_seconds=float(n))
            for n, row in enumerate(made.rows, 1)
        ]
        text = export(replace(made, rows=tuple(rows)), "html")
        assert ('data-key="time" data-unsorted' in text) is step
        assert ('data-sort="1.0"' in text) is not step and 'data-sort=""' not in text
