"""The kind meta as the runner calls it: a request in, three files out."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

import schemas
from evaluator.__main__ import main
from evaluator.kinds.base import Checker, find
from tests.worlds.judged import CRITERIA, debate, everything, judgments, official, write

LABELS: list[list[dict[str, Any]]] = [
    [{"quantity": 1, "quality": 0, "relation": 1, "manner": 1}, {"quantity": 0, "quality": 0, "relation": 1, "manner": None}],
    [{"quantity": 1, "quality": 1, "relation": 1, "manner": 0}] * 3,
]  # fmt: skip
SCORES: list[list[dict[str, Any]]] = [
    [{"quantity": 0.9, "quality": 0.5, "relation": 0.2, "manner": 1}, {"quantity": 0.7, "quality": 0.1, "relation": 1, "manner": 0}],
    [{"quantity": 0.1, "quality": 0.6, "relation": 0.9, "manner": 0.8}] * 3,
]  # fmt: skip


class Room:
    """Folders for one evaluation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("run", "inputs", "truths", "out"):
            (folder / name).mkdir()

    def evaluate(self, measures: Sequence[str], options: dict[str, Any], **more: Any) -> dict[str, Any]:
        folders = {"run": "run", "inputs": "inputs", "truths": "truths", "output": "out"}
        asked = [{"id": f"m{n}", "measure": text, "truths": "truth"} for n, text in enumerate(measures)]
        request = {
            "schema_version": 1, "kind": "meta", "task": "t", "dataset": "d", "visibility": "public",
            "paths": {key: str(self.folder / name) for key, name in folders.items()},
            "run_file": "run.txt", "measures": asked, "options": options, **more,
        }  # fmt: skip
        assert not schemas.validate(request, "request")
        path = self.folder / "request.json"
        path.write_text(json.dumps(request), encoding="utf-8")
        assert main(["run", "--request", str(path)]) == 0
        result = schemas.load_json(self.folder / "out" / "result.json")
        assert not result.problems
        data: dict[str, Any] = result.data
        return data

    def values(self, measures: Sequence[str], options: dict[str, Any], **more: Any) -> dict[str, float]:
        result = self.evaluate(measures, options, **more)
        assert result["status"] == "valid", result
        return {text: result["measures"][f"m{n}"]["value"] for n, text in enumerate(measures)}

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "out" / f"{name}.jsonl").open(encoding="utf-8")]

    def codes(self) -> list[str]:
        return [finding["code"] for finding in self.lines("findings")]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    made = Room(tmp_path)
    write(tmp_path / "inputs" / "debates.jsonl", [debate(1, 2), debate(2, 3)])
    write(tmp_path / "truths" / "truth", LABELS)
    write(tmp_path / "run" / "run.txt", [judgments(turns) for turns in SCORES])
    return made


JUDGMENTS = {"form": "judgments"}


def test_values_are_those_of_the_official_evaluator(room: Room) -> None:
    names = [f"{name}@{c}" for c in CRITERIA for name in ("precision", "recall", "f1")]
    found = room.values(["score", *names], JUDGMENTS)
    expected = official(LABELS, SCORES)
    assert found["score"] == pytest.approx(expected.pop("score"))
    assert {f"{c} {n}": found[f"{n}@{c}"] for n, c in (t.split("@") for t in names)} == pytest.approx(
        expected
    )
    # Worked out by hand: quantity says yes to 2, one of them right; three of four "yes" are missed.
    assert found["precision@quantity"] == 0.5 and found["recall@quantity"] == 0.25


def test_the_request_names_the_debates(room: Room) -> None:
    (room.folder / "inputs" / "debates.jsonl").rename(room.folder / "inputs" / "others.jsonl")
    without = room.values(["score"], JUDGMENTS)
    assert room.values(["score"], JUDGMENTS, topics="others.jsonl") == without
    result = room.evaluate(["score"], JUDGMENTS, topics="none.jsonl")
    assert result["status"] == "error" and "none.jsonl" in result["message"]


def test_a_judge_of_some_criteria(room: Room) -> None:
    rows = [[{"relation": t["relation"]} for t in turns] for turns in SCORES]
    write(room.folder / "run" / "run.txt", [judgments(turns) for turns in rows])
    result = room.evaluate(["score", "f1@relation", "f1@quality", "kappa"], JUDGMENTS)
    assert result["status"] == "valid"
    assert set(result["measures"]) == {"m1"} and result["measures"]["m1"]["covered"] == 5
    named = {m: [c for c in CRITERIA if c.capitalize() in why] for m, why in result["pending"].items()}
    others = ["quantity", "quality", "manner"]
    assert named == {"m0": others, "m2": ["quality"], "m3": others}


def test_a_criterion_that_nobody_labelled_waits(room: Room) -> None:
    write(room.folder / "truths" / "truth", [[{**t, "manner": None} for t in turns] for turns in LABELS])
    result = room.evaluate(["score", "f1@quality"], JUDGMENTS)
    assert result["pending"].keys() == {"m0"} and "Manner" in result["pending"]["m0"]
    assert "m1" in result["measures"]


def test_what_is_missing_or_malformed_counts_as_no(room: Room) -> None:
    spoilt = [judgments(turns) for turns in SCORES]
    spoilt[1]["userTurnsEvaluations"] = [{**turn} for turn in spoilt[1]["userTurnsEvaluations"]]
    del spoilt[1]["userTurnsEvaluations"][0]["Quality"]
    spoilt[1]["userTurnsEvaluations"][1]["Quality"] = {"score": "1"}
    write(room.folder / "run" / "run.txt", spoilt)
    result = room.evaluate(["recall@quality", "accuracy@quality"], JUDGMENTS)
    assert result["measures"]["m0"]["value"] == pytest.approx(1 / 3), "two of the three are lost"
    assert (result["measures"]["m0"]["topics"], result["measures"]["m0"]["covered"]) == (5, 3)
    assert result["findings"]["defect"] == 2
    rows = [row for row in room.lines("scores") if row["measure"] == "m1" and "facets" not in row]
    turns = {row["topic"]: row["value"] for row in rows}
    assert turns == {"1.1": 0, "1.2": 1, "2.1": 0, "2.2": 0, "2.3": 1}
    assert sum(turns.values()) / 5 == result["measures"]["m1"]["value"], "accuracy is a mean over turns"


def test_debates_have_values_of_their_own(room: Room) -> None:
    room.values(["f1@quantity", "score"], JUDGMENTS)
    rows = [row for row in room.lines("scores") if row["measure"] == "m0"]
    assert rows == [
        {"measure": "m0", "topic": "1", "value": pytest.approx(2 / 3), "facets": {"debate": 1}},
        {"measure": "m0", "topic": "2", "value": 0, "facets": {"debate": 2}},
    ]


def test_intervals_can_be_left_out(room: Room) -> None:
    with_interval = room.evaluate(["score"], JUDGMENTS)["measures"]["m0"]
    assert with_interval["interval"][0] <= with_interval["value"] <= with_interval["interval"][1]
    assert room.evaluate(["score"], {**JUDGMENTS, "interval": False})["measures"]["m0"]["interval"] is None


def test_judges_can_be_tested_by_resamples_of_debates_or_by_turns(room: Room) -> None:
    found = room.evaluate(["score", "accuracy@quantity", "kappa"], JUDGMENTS)["measures"]
    drawn = {one["resamples"]["drawn"] for name, one in found.items() if name != "m1"}
    assert len(drawn) == 1 and len(found["m0"]["resamples"]["values"]) == 1000
    assert "resamples" not in found["m1"], "a mean over turns, which have values"
    assert "resamples" not in room.evaluate(["score"], {**JUDGMENTS, "interval": False})["measures"]["m0"]


def test_a_server_that_failed_is_not_excused(room: Room) -> None:
    rows = [[{"relation": t["relation"]} for t in turns] for turns in SCORES]
    write(room.folder / "run" / "run.txt", [judgments(turns) for turns in rows])
    failure = {"outcome": "failed", "failure": {"class": "status", "detail": "500"}}
    record = {"debate": 1, "turn": 1, "criterion": "quality", **failure}
    write(room.folder / "run" / "turns.jsonl", [record])
    result = room.evaluate(["f1@quality", "f1@manner"], JUDGMENTS, records=True)
    assert result["measures"]["m0"]["value"] == 0 and result["pending"].keys() == {"m1"}
    # A file of that name beside a run that was handed in is nobody's record.
    result = room.evaluate(["f1@quality", "f1@manner"], JUDGMENTS)
    assert set(result["pending"]) == {"m0", "m1"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, '"form"'),
        ({"form": "judgements"}, "form: "),
        ({"form": "judgments", "depth": 3}, '"depth"'),
        ({"form": "judgments", "interval": "no"}, "interval: "),
    ],
)
def test_options_are_checked(room: Room, options: dict[str, Any], named: str) -> None:
    result = room.evaluate(["score"], options)
    assert result["status"] == "error" and named in result["message"]


def test_wrong_labels_are_the_organisers(room: Room) -> None:
    write(room.folder / "truths" / "truth", [LABELS[0], LABELS[0]])
    result = room.evaluate(["score"], JUDGMENTS)
    assert result["status"] == "error" and "debate 2 " in result["message"]


def test_check_needs_no_truths(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(find("meta"), Checker)
    room.evaluate(["score"], JUDGMENTS)
    (room.folder / "truths" / "truth").unlink()
    call = ["check", str(room.folder / "run" / "run.txt"), "--request", str(room.folder / "request.json")]
    assert main(call) == 0
    write(room.folder / "run" / "run.txt", [judgments(SCORES[0]), {**debate(9, 3), **judgments(SCORES[1])}])
    assert main(call) == 1
    assert "F237" in capsys.readouterr().out
    board(room, "run1 all M 1\n")
    room.evaluate(["kendall@nDCG/M"], BOARD)
    assert main(call) == 0
    board(room, "run1 all X 1\n")
    assert main(call) == 1


# --- leaderboards ------------------------------------------------------------------------------------------

TRUTH = "".join(f"run{n} {topic} nDCG {n / 10}\n" for n in (1, 2, 3, 4) for topic in ("all", "leaf"))
BOARD = {"form": "leaderboard"}


def board(room: Room, text: str, truth: str = TRUTH) -> None:
    (room.folder / "truths" / "truth").write_text(truth, encoding="utf-8")
    (room.folder / "run" / "run.txt").write_text(text, encoding="utf-8")


def test_one_swapped_pair(room: Room) -> None:
    board(room, "".join(f"run{n} all M {v}\n" for n, v in ((1, 1), (2, 3), (3, 2), (4, 4))))
    names = ("kendall", "tauap_b", "tau_gap", "spearman", "kendall@10")
    found = room.values([f"{name}@nDCG/M" for name in names], BOARD)
    assert [round(v, 4) for v in found.values()] == [0.6667, 0.6667, 0.6667, 0.8, 0.6667]


def test_the_best_measure_of_the_judge(room: Room) -> None:
    board(room, "".join(f"run{n} all UP {n}\nrun{n} all DOWN {-n}\n" for n in (1, 2, 3, 4)))
    measures = ["kendall@nDCG/*", "kendall@nDCG/DOWN"]
    assert room.values(measures, BOARD) == dict(zip(measures, (1, -1), strict=True))


@pytest.mark.slow
def test_coefficients_have_intervals_from_resampling_runs(room: Room) -> None:
    draw = random.Random(7)
    truth = {f"run{n}": n / 10 for n in range(12)}
    text = "".join(f"{run} all nDCG {value}\n" for run, value in truth.items())
    measures = ["kendall@nDCG/M", "pearson@nDCG/M", "kendall@4@nDCG/M"]
    drawn = []
    for noise in (0.1, 0.9):
        judged = {run: value + draw.uniform(0, noise) for run, value in truth.items()}
        board(room, "".join(f"{run} all M {value}\n" for run, value in judged.items()), text)
        found = room.evaluate(measures, BOARD)
        for one in found["measures"].values():
            low, high = one["interval"]
            assert low - 1e-9 <= one["value"] <= high + 1e-9
        drawn.append([one["resamples"]["drawn"] for one in found["measures"].values()])
        assert len(found["measures"]["m0"]["resamples"]["values"]) == 1000
    low, high = found["measures"]["m1"]["interval"]
    of = scipy.stats.bootstrap(
        ([*truth.values()], [*judged.values()]),
        lambda a, b: scipy.stats.pearsonr(a, b).statistic,
        paired=True, vectorized=False, method="percentile", n_resamples=2000, rng=1,
    ).confidence_interval  # fmt: skip
    assert (low, high) == pytest.approx((of.low, of.high), abs=0.05)
    assert drawn[0] == drawn[1], "the runs of two judges are drawn alike"
    assert drawn[0][0] == drawn[0][1] != drawn[0][2]
    notes = [one for one in found["note_details"] if one["kind"] == "runs-resampled"]
    assert {one["measure"] for one in notes} == {*measures} and {one["times"] for one in notes} == {1000}
    assert room.evaluate(measures, {**BOARD, "interval": False})["measures"]["m0"]["interval"] is None


def test_other_formats(room: Room) -> None:
    rows = [{"run_id": f"run{n}", "topic_id": "all", "measure": "M", "value": n} for n in (1, 2, 3, 4)]
    truth = "".join(f"all run{n} nDCG {n}\n" for n in (1, 2, 3))
    board(room, "".join(json.dumps(row) + "\n" for row in rows), truth)
    found = room.evaluate(["kendall@nDCG/M"], {**BOARD, "format": "jsonl", "truth_format": "rag4reports"})
    assert found["measures"]["m0"] == {"value": 1, "topics": 3, "covered": 3, "interval": None}
    assert room.codes() == ["F247"]


@pytest.mark.parametrize(
    ("on_missing", "codes", "value"),
    [("error", ["F245"], None), ("warn", ["F246"], 1), ("skip", [], 1), ("default", ["F246"], 0)],
)
def test_missing_runs(room: Room, on_missing: str, codes: list[str], value: float | None) -> None:
    board(room, "run1 all M 1\nrun2 all M 2\nrun3 all M 3\n")
    result = room.evaluate(["kendall@nDCG/M"], {**BOARD, "on_missing": on_missing})
    assert (result["status"], room.codes()) == ("invalid" if value is None else "valid", codes)
    if value is not None:
        figures = result["measures"]["m0"]
        assert figures["value"] == pytest.approx(value)
        assert (figures["topics"], figures["covered"]) == (4, 3)


def test_hidden_runs_are_not_named(room: Room) -> None:
    board(room, "run1 all M 1\n")
    room.evaluate(["kendall@nDCG/M"], BOARD, visibility="blinded")
    assert "run2" not in json.dumps(room.lines("findings"))
    room.evaluate(["kendall@nDCG/M"], BOARD)
    assert "run2" in json.dumps(room.lines("findings"))


def test_a_truth_with_two_runs_is_the_organisers_mistake(room: Room) -> None:
    board(room, "run1 all M 1\n", "run1 all nDCG 1\nrun2 all nDCG 2\n")
    assert room.evaluate(["kendall@nDCG/M"], BOARD)["status"] == "error"


def test_the_schema_of_a_line() -> None:
    assert not schemas.validate(judgments(SCORES[0]), "meta-evaluation")
    assert not schemas.validate({**debate(1, 2), **judgments([everything(None)])}, "meta-evaluation")
    assert schemas.validate(judgments([everything(7)]), "meta-evaluation")
    assert schemas.validate(judgments([everything("0.7")]), "meta-evaluation")
