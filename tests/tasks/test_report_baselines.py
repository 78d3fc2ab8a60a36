"""The baselines of report-generation: what they write is valid, within the limit, and fares as it is meant to."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from evaluator.argue import Report, length, load_nuggets, read_requests
from evaluator.argue.judging import Flow, questions_at_most
from tests.tasks.test_vaswani import module
from tests.worlds.baselines import baseline_folder

ROOT = Path(__file__).parents[2]
BASELINES = ROOT / "submissions" / "baselines"
DATASETS = ROOT / "tasks" / "report-generation" / "datasets"
NAMES = ("extractive", "uncited", "hallucinated")


def run(name: str, inputs: Path, into: Path, seed: str = "0") -> list[dict[str, Any]]:
    into.mkdir()
    env = os.environ | {"inputDataset": str(inputs), "outputDir": str(into)}
    env |= {"PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
    program = baseline_folder(f"report-{name}") / f"report_{name}.py"
    subprocess.run([sys.executable, program], env=env, check=True, timeout=120, capture_output=True)
    return [*map(json.loads, (into / "reports.jsonl").read_text("utf-8").splitlines())]


@cache
def documents() -> dict[str, str]:
    with gzip.open(DATASETS / "train" / "inputs" / "documents.jsonl.gz", "rb") as lines:
        return {row["id"]: row["text"] for row in map(json.loads, lines)}


def shared() -> ModuleType:
    return module(BASELINES / "report-extractive" / "reports.py")


def test_definitions_are_complete() -> None:
    for name in NAMES:
        defined = yaml.safe_load((BASELINES / f"report-{name}" / "submission.yaml").read_text("utf-8"))
        assert defined["task"] == "report-generation" and defined["tag"] == f"report-{name}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_reports_answer_every_request_within_its_limit(name: str, split: str, tmp_path: Path) -> None:
    inputs = DATASETS / split / "inputs"
    requests = read_requests(inputs / "requests.jsonl")
    made = [Report.model_validate(row) for row in run(name, inputs, tmp_path / "out")]
    assert [report.topic_id for report in made] == [*requests]
    for report in made:
        texts = [sentence.text for sentence in report.sentences]
        limit = requests[report.topic_id].limit
        assert len(texts) >= 5 and len({*texts}) == len(texts)
        assert limit is not None and length(texts) <= limit
        assert report.run_id == f"report-{name}" and report.references == report.cited


def test_judging_a_report_takes_far_fewer_questions_than_are_allowed(tmp_path: Path) -> None:
    allowed = yaml.safe_load((DATASETS.parent / "task.yaml").read_text("utf-8"))["options"]["max_questions"]
    banks = load_nuggets(DATASETS / "test" / "truths" / "nuggets")
    rows = run("extractive", DATASETS / "test" / "inputs", tmp_path / "out")
    made = [Report.model_validate(row) for row in rows]
    most = max(questions_at_most(one, banks[one.topic_id], Flow(strict=True)) for one in made)
    assert 10 < most < allowed / 5


def test_the_extractive_one_cites_the_documents_that_its_sentences_are_from(tmp_path: Path) -> None:
    for report in run("extractive", DATASETS / "train" / "inputs", tmp_path / "out"):
        for row in report["responses"]:
            (cited,) = row["citations"]
            assert row["text"][1:].rstrip(".") in documents()[cited]


def test_the_other_two_have_its_sentences_with_no_citations_and_with_wrong_ones(tmp_path: Path) -> None:
    inputs = DATASETS / "train" / "inputs"
    plain, uncited, wrong = (run(name, inputs, tmp_path / name) for name in NAMES)
    for one, without, invented in zip(plain, uncited, wrong, strict=True):
        texts = [[row["text"] for row in report["responses"]] for report in (one, without, invented)]
        assert texts[0] == texts[1] == texts[2]
        assert not without["references"] and not any(row["citations"] for row in without["responses"])
        for true, false in zip(one["responses"], invented["responses"], strict=True):
            assert false["citations"] and not {*true["citations"]} & {*false["citations"]}
        assert any(name not in documents() for name in invented["references"])
        assert any(name in documents() for name in invented["references"])


@pytest.mark.parametrize("name", NAMES)
def test_it_writes_the_same_bytes_every_time(name: str, tmp_path: Path) -> None:
    inputs = DATASETS / "train" / "inputs"
    for seed in ("1", "2"):
        run(name, inputs, tmp_path / seed, seed)
    assert (tmp_path / "1" / "reports.jsonl").read_bytes() == (tmp_path / "2" / "reports.jsonl").read_bytes()


def test_sentences_end_where_they_end() -> None:
    split = shared().sentences
    old = "the first sentence here is rather short . in his study, h. l. dryden found a long trip wire ."
    first, second = split(old)
    assert first == "The first sentence here is rather short." and second.startswith(
        "In his study, h. l. dryden"
    )
    modern = "Modern texts have a normal full stop. They start with capital letters too! No."
    assert split(modern) == [modern[:37], modern[38:73] + "."]
    assert split("") == [] and split(" . ") == []


def test_nothing_to_say_and_a_small_limit_give_an_empty_report() -> None:
    program = shared()
    found = [program.Document("1", "wings", "the lift of slender wings depends on their thin edges .")]
    for documents_, words, limit, sources in (
        (found, "unheard words", 1000, []),
        (found, "slender wings", 10, []),
        (found, "slender wings", 1000, ["1"]),
        ([], "lift", 1000, []),
    ):
        picked = program.pick(program.Index(documents_), program.Request("a", words, limit))
        assert [source for _, source in picked] == sources
