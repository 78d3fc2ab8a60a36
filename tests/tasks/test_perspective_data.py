"""The synthetic data of perspective-2024: made again it is the same, and it hides what it has to hide."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.commands.runs import run_request
from evaluator.formats.perspective import read_corpus, read_queries
from runner.model import config
from runner.tasks.load import load_task
from runner.tasks.request import request

TASK = Path(__file__).parents[2] / "tasks" / "perspective-2024"
TESTS = {"dev": "dev", "test-1": "test", "test-2": "test", "test-3": "test"}


def generate(*words: str) -> None:
    subprocess.run([sys.executable, str(TASK / "generate.py"), *words], check=True, timeout=120)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_bundled_datasets_are_what_the_generator_makes(tmp_path: Path) -> None:
    generate("demo", "--output", str(tmp_path))
    made = tree(tmp_path)
    assert made == tree(TASK / "datasets")
    assert sum(map(len, made.values())) < 2_000_000


def test_inputs_hold_no_relevance_of_their_split_and_truths_can_be_evaluated() -> None:
    for dataset, split in TESTS.items():
        inputs, truths = TASK / "datasets" / dataset / "inputs", TASK / "datasets" / dataset / "truths"
        population = read_corpus(truths)
        assert (inputs / "corpus.jsonl").read_bytes() == (truths / "corpus.jsonl").read_bytes()
        for word in ("baseline", "perspective"):
            name = f"{word}-queries/queries_{split}.jsonl"
            queries = read_queries(truths, name, population, perspective=word == "perspective")
            assert queries and all(q.relevant for q in queries)
            shown = [json.loads(line) for line in (inputs / name).read_text("utf-8").splitlines()]
            assert [q["query_id"] for q in shown] == [q.id for q in queries]
            assert not any("relevant_candidates" in q for q in shown)


def test_releases_have_the_official_proportions(tmp_path: Path) -> None:
    generate("full", "--output", str(tmp_path), "--arguments", "4000", "--train", "5", "--dev", "2")
    population = read_corpus(tmp_path)
    assert len(population.values) == 4000
    assert len(set(population.texts.values())) < 3900  # twins
    queries = read_queries(tmp_path, "perspective-queries/queries_train.jsonl", population, perspective=True)
    assert 5 * 3 * 40 <= len(queries) <= 5 * 3 * 57
    sizes = sorted(len(q.relevant) for q in queries)
    assert sizes[0] >= 1 and sizes[len(sizes) // 2] < sum(sizes) / len(sizes)


@pytest.mark.slow
def test_every_dataset_can_be_evaluated_in_every_scenario(tmp_path: Path) -> None:
    task = load_task(config.load(cwd=TASK), "perspective-2024")
    for dataset in task.datasets.values():
        for scenario in task.scenarios:
            word = "baseline" if scenario == "baseline" else "perspective"
            name = f"{word}-queries/queries_{TESTS[dataset.id]}.jsonl"
            folder = tmp_path / f"{dataset.id}.{scenario}"
            folder.mkdir()
            rows = [json.loads(line) for line in (dataset.truths / name).read_text("utf-8").splitlines()]
            lines = [json.dumps({k: row[k] for k in ("query_id", "relevant_candidates")}) for row in rows]
            (folder / "predictions.jsonl").write_text("\n".join(lines))
            wanted = request(task, dataset, scenario, "predictions.jsonl")
            wanted["paths"] = {"run": str(folder), "output": str(folder)}
            wanted["paths"] |= {"inputs": str(dataset.inputs), "truths": str(dataset.truths)}
            (folder / "request.json").write_text(json.dumps(wanted))
            assert run_request(folder / "request.json") == 0
            result = json.loads((folder / "result.json").read_text("utf-8"))
            assert result["status"] == "valid", result["message"]
            assert result["measures"].keys() == task.measures.keys()
            # what is relevant, in any order, is perfect by nDCG; and short lists have full precision
            assert abs(result["measures"]["ndcg"]["value"] - 1) < 1e-12
            assert result["measures"]["p"]["value"] == 1
            assert 0 < result["measures"]["alpha_ndcg"]["value"] <= 1


def test_the_largest_real_files_fit() -> None:
    """The first release asks 5,577 perspective queries on train; systems list 1,000 arguments for each."""
    line = json.dumps({"query_id": 20191099999, "relevant_candidates": [2023032422] * 1000}) + "\n"
    task = load_task(config.load(cwd=TASK), "perspective-2024")
    assert 63 * 2**20 < 5577 * len(line) < task.limits.output
    assert task.options["max_candidates"] == 1000
