"""What is shown of a run's reports: the evaluator's own details, sentence by sentence, and to whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.kinds.report import presenter as reporting
from runner.model.errors import RunnerError
from runner.views import redact
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.show.contents import Inside
from tests.worlds import records
from tests.worlds.records import World
from tests.worlds.shown import judged_line, reported

ALPHA, BETA = Audience("team", "alpha"), Audience("team", "beta")


def shown_run(
    tmp_path: Path, details: list[Any], dataset: str = "dev", audience: Audience = ORGANISER
) -> Inside:
    found = reported(World.make(tmp_path), details, dataset=dataset)
    read = reporting.read(found, None, audience, records.task().datasets[dataset])
    return Inside(found.run.id, audience, read)


def test_every_sentence_is_shown_with_what_it_was_worth(tmp_path: Path) -> None:
    run = shown_run(tmp_path, [judged_line(), {**judged_line(), "topic": "t2"}])
    text = "\n".join(run.lines())
    assert "topic t1: 3 sentences, 2 more beyond the limit, 1 of 2 nuggets" in text
    assert "    1 | Bees fly." in text and "cites d1" in text
    assert 'judged sentence answers question of d1: "Who flies?" with Bees' in text
    assert "judged sentence attested of d1: yes" in text
    assert '+ answers "Who flies?" with "Bees"' in text
    assert "- a citation is required, and there is none" in text
    assert '[x] "Who flies?" (OR): 1 of 2 answers, in sentence 1' in text
    assert "[ ] " in text
    assert text.count("Bees fly.") == 1  # t2 is a line of the overview only
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert "\n".join(run.choose(None, "all").lines()).count("Bees fly.") == 2
    assert "topic t2: " in "\n".join(run.choose(None, "t2").lines())
    with pytest.raises(RunnerError) as caught:
        run.choose(None, "t3")
    assert caught.value.code == "E102" and "t1, t2" in caught.value.fix
    with pytest.raises(RunnerError) as caught:
        run.choose("1", None)
    assert caught.value.code == "E102"


def test_one_of_something_is_called_so(tmp_path: Path) -> None:
    line = judged_line()
    effects = [one for sentence in line["sentences"] for one in sentence["effects"]]
    kept = {kind: next(one for one in effects if one["kind"] == kind) for kind in ("reward", "penalty")}
    line["sentences"] = [{**line["sentences"][0], "effects": list(kept.values())}]
    text = "\n".join(shown_run(tmp_path, [line]).lines())
    assert "t1: 1 sentence, " in text and ", 1 reward, 1 penalty" in text


def test_json_has_the_same(tmp_path: Path) -> None:
    data = json.loads(json.dumps(shown_run(tmp_path, [judged_line()]).data(), allow_nan=False))
    one = data["reports"]["reports"][0]
    assert one["sentences"][0]["judgments"][0] == {
        "type": "CITED_DOCUMENT_RELEVANCE",
        "doc_id": "d1",
        "said": "yes",
        "evaluator": "null",
    }
    assert {e["kind"] for s in one["sentences"] for e in s["effects"]} >= {"reward", "penalty"}
    assert one["nuggets"][0]["answers"] == [["Bees", True], ["Wasps", False]]


def test_nuggets_of_a_blinded_dataset_are_for_the_organiser_only(tmp_path: Path) -> None:
    run = shown_run(tmp_path / "a", [judged_line()], "test", ALPHA)
    assert run.data() == {"reports": {"reports": None, "notes": []}}
    assert "not shown to team:alpha" in "\n".join(run.lines())
    with pytest.raises(RunnerError) as caught:
        run.choose(None, "t1")
    assert caught.value.code == "E103"
    assert "Bees" in "\n".join(shown_run(tmp_path / "b", [judged_line()], "test").lines())
    assert "Bees" in "\n".join(shown_run(tmp_path / "c", [judged_line()], "dev", ALPHA).lines())
    for n, audience in enumerate((BETA, PUBLIC)):
        with pytest.raises(RunnerError):
            shown_run(tmp_path / str(n), [judged_line()], "dev", audience)


def test_details_of_another_form_are_survived(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    line = judged_line()
    line["measures"] = {"f1": 1e400, "b": 10**400, "ok": 0.5, "t": True}
    line["nuggets"] = [5, {"question": 7, "answers": [3, {"answer": None}], "sentences": ["x", 1]}]
    line["sentences"] += [
        None,
        {},
        {"number": "x", "text": 5, "citations": "d", "effects": [{"kind": "party"}]},
    ]
    line["sentences"].append({"judgments": [{"type": 5, "value": deep}, {"matches": [1, {"answers": 2}]}, 3]})
    text_line = json.dumps(line).replace("Infinity", "1e999")
    run_lines = [{"topic": "big", "truncated": True}, {"topic": 5}, {"x": 1}, {"sentences": []}]
    found = reported(World.make(tmp_path), run_lines)
    path = found.evaluation.path / "details.jsonl"  # type: ignore[union-attr]
    path.write_text(path.read_text() + text_line + "\n")
    read = reporting.read(found, None, ORGANISER, records.task().datasets["dev"])
    run = Inside(found.run.id, ORGANISER, read).choose(None, "all")
    text = "\n".join(run.lines())
    assert "topic big: too much for the evaluation's details" in text
    assert "3 lines of the details are no report" in text
    assert "measures: ok 0.5" in text
    json.dumps(run.data(), allow_nan=False)


def test_long_details_are_read_as_far_as_a_page_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev = records.task().datasets["dev"]
    lines = [{"topic": f"t{n}", "sentences": [], "more": "x" * 50} for n in range(9)]
    found = reported(World.make(tmp_path), lines)

    def shown() -> tuple[int, bool]:
        read = reporting.read(found, None, ORGANISER, dev)
        assert read is not None and read.pieces is not None
        return len(read.pieces), any("too long" in note for note in read.notes)

    assert shown() == (9, False)
    monkeypatch.setattr(reporting, "MAX_TOPICS", 5)
    assert shown() == (5, True)
    monkeypatch.setattr(redact, "MAX_DETAILS", 200)  # within the third line, which is read whole
    assert shown() == (3, True)


def test_an_evaluation_without_details_shows_nothing(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    from runner.records.store import run_detail

    found = run_detail.detail(world.store, f"{world.scored('alpha', 'x')}.test")
    assert reporting.read(found, None, ORGANISER, records.task().datasets["test"]) is None
