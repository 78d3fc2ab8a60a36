"""The wrong records of a run by class, size of error and value, and the audiences that see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.kinds.records import presenter
from runner.kinds.report import presenter as reporting
from runner.model.errors import RunnerError
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.redact import redact_run
from runner.views.show.contents import Inside
from runner.views.show.page import page
from tests.worlds import records
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, judged_line, reported, wrong_lines

ALPHA, BETA = Audience("team", "alpha"), Audience("team", "beta")


def shown_run(
    tmp_path: Path,
    details: list[Any],
    dataset: str = "dev",
    audience: Audience = ORGANISER,
    module: Any = presenter,
) -> Inside:
    found = reported(World.make(tmp_path), details, dataset=dataset)
    read = module.read(found, None, audience, records.task().datasets[dataset])
    return Inside(found.run.id, audience, read)


def test_record_lines_and_the_choice_of_a_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = shown_run(tmp_path, wrong_lines("a cow"))
    overview, everything = ("\n".join(one.lines()) for one in (run, run.choose("all")))
    assert "r-5" not in overview, "the other fields are lines of the overview only"
    assert max(map(len, everything.splitlines())) <= 80
    assert "r-5" in "\n".join(run.choose("mass").lines())
    golden("wrong-records.txt", f"{overview}\n\n{everything}\n")


def test_words_of_participants_pass_for_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hostile = (HOSTILE, "(missing)", "", "x\n  9 × all right", 'x" taken for "y', "unbroken" * 300)
    for n, words in enumerate(hostile):
        run = shown_run(tmp_path / str(n), wrong_lines(words)).choose("all")
        text = "\n".join(run.lines())
        assert [c for c in text if not c.isprintable() and c != "\n"] == []
        ours = "\n".join(line for line in text.splitlines() if " | " not in line)
        assert "\n  9 × all" not in text and 'x" taken' not in ours.replace('\\"', "")
        assert text.count("taken for (missing)") == 1
        assert max(map(len, text.splitlines())) <= 80
        json.dumps(run.data(), allow_nan=False)


def test_a_wide_matrix_is_for_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    line = wrong_lines("x")[0]
    names = [f"a-class-with-a-long-name-{n}" for n in range(20)]
    line["classes"] |= {"labels": names, "matrix": [[1] * 22 for _ in range(21)]}
    text = "\n".join(shown_run(tmp_path, [line]).lines())
    assert "--html" in text and " 21 " in text and names[19] not in text and "dog" in text


def test_a_terminal_has_the_first_of_many_records(tmp_path: Path) -> None:
    line = wrong_lines("x")[1]
    line["records"] = [{**line["records"][0], "id": f"r-{n}"} for n in range(50)]
    text = "\n".join(shown_run(tmp_path, [line]).lines())
    assert "r-9: 4,012" in text and "r-10: " not in text and "… and 40 more" in text


def test_a_page_has_them_too_and_hostile_words_stay_words(tmp_path: Path) -> None:
    found = reported(World.make(tmp_path), wrong_lines(HOSTILE))
    dataset = records.task().datasets["dev"]
    text = page(redact_run(found, ORGANISER, dataset), presenter.read(found, None, ORGANISER, dataset))
    assert '<strong class="good">60</strong>' in text and '<strong class="bad">4</strong>' in text
    assert "mass" in text and "4,012" in text and "Bees fly." in text
    assert "<script>" not in text and "<img" not in text and "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("module", "details", "secret"),
    [(presenter, wrong_lines("CANARY"), "CANARY"), (reporting, [judged_line()], "Bees")],
    ids=["records", "reports"],
)
def test_truths_of_a_blinded_dataset_are_for_the_organiser_only(
    tmp_path: Path, module: Any, details: list[Any], secret: str
) -> None:
    run = shown_run(tmp_path / "a", details, "test", ALPHA, module)
    key = "fields" if module is presenter else "reports"
    assert run.data() == {key: {key: None, "notes": []}}
    text = "\n".join(run.lines())
    assert "team:alpha" in text and secret not in text and "cat" not in text
    with pytest.raises(RunnerError, check=lambda error: error.code == "E103"):
        run.choose(str(details[0]["topic"]))
    for name, dataset, audience in (("b", "test", ORGANISER), ("c", "dev", ALPHA)):
        seen = shown_run(tmp_path / name, details, dataset, audience, module)
        assert secret in "\n".join(seen.lines())
    for n, audience in enumerate((BETA, PUBLIC)):
        with pytest.raises(RunnerError):
            shown_run(tmp_path / str(n), details, "dev", audience, module)


def test_the_page_of_a_blinded_run_holds_nothing_of_them(tmp_path: Path) -> None:
    found = reported(World.make(tmp_path), wrong_lines("CANARY"), dataset="test")
    dataset = records.task().datasets["test"]
    text = page(redact_run(found, ALPHA, dataset), presenter.read(found, None, ALPHA, dataset))
    assert all(word not in text for word in ("CANARY", "Bees", '<strong class="good">', "matrix"))


def test_details_of_another_form_are_survived(tmp_path: Path) -> None:
    first, second, third = wrong_lines("x")
    first["classes"] |= {"matrix": [[1, 2]], "pairs": [5, {"right": 7, "count": -1, "ids": "x"}]}
    second |= {
        "differences": {"shares": [[1], "x", [5, "y"]], "largest": 10**400, "above": 2.5},
        "records": [None],
    }
    third |= {"total": "x", "measures": 5, "records": [{"id": 3, "said": [1], "value": "x"}]}
    lines = [first, second, third, {"topic": "big", "truncated": True}, {"topic": 5}, {"x": 1}]
    run = shown_run(tmp_path, lines).choose("all")
    data = json.loads(json.dumps(run.data(), allow_nan=False))["fields"]
    assert len(data["notes"]) == 1 and data["notes"][0].startswith("2 ")
    assert "big" in "\n".join(run.lines())


def test_an_evaluation_without_details_shows_nothing(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    found = run_detail.detail(world.store, f"{world.scored('alpha', 'x')}.test")
    for module in (presenter, reporting):
        assert module.read(found, None, ORGANISER, records.task().datasets["test"]) is None


def test_fields_stand_in_the_order_of_their_outputs_and_schemas(tmp_path: Path) -> None:
    found = reported(World.make(tmp_path), wrong_lines("10"), dataset="dev")
    schemas = [{"path": "a.jsonl", "schema": {"properties": {"label": {}}}},
               {"path": "run.jsonl", "schema": {"properties": {"mass": {}, "9": {}, "label": {}}}},
               {"path": "b.jsonl", "schema": True}]  # fmt: skip
    task = replace(records.task(), options={"outputs": schemas})
    read = presenter.read(found, task, ORGANISER, records.task().datasets["dev"])
    assert read is not None and read.pieces is not None
    assert [one.name for one in read.pieces] == ["mass", "label", "10"]


def test_missed_spans_are_shown_with_their_record(tmp_path: Path) -> None:
    said, missed = '[[5, 8, "b"]]', '[[4, 8, "b"]]'
    records_ = [{"id": "r-1", "said": said, "right": missed, "value": 2}]
    counts = {"total": 40, "wrong": 3, "missing": 0, "spans": {"missed": 7, "extra": 5}}
    line = {"topic": "x", "output": "spans.jsonl", "measures": ["f1"], **counts, "records": records_, "missing_ids": []}  # fmt: skip
    run = shown_run(tmp_path, [line])
    text = "\n".join(run.lines())
    assert f"| {missed}" in text and f"| {said}" in text
    (field,) = run.data()["fields"]["fields"]
    assert field["spans"] == {"missed": 7, "extra": 5}
    found, dataset = reported(World.make(tmp_path / "page"), [line]), records.task().datasets["dev"]
    html = page(redact_run(found, ORGANISER, dataset), presenter.read(found, None, ORGANISER, dataset))
    assert "7 " in html and missed.replace('"', "&#34;") in html
