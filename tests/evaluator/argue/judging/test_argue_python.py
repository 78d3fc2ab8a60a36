"""The Python interface: the documented example with only its imports changed, offline and with a model."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluator.argue.formats.nugget_formats import load_nuggets
from evaluator.argue.judge import JudgedReport, ModelProvider, evaluate_report
from evaluator.argue.scoring.topic import score_topic
from evaluator.argue.utils import Report
from evaluator.errors import EvaluatorError
from tests.evaluator.argue.conftest import Argue, Serve
from tests.worlds.judging_play import LOOKUP, NUGGETS, REPORT, SAMPLES, rows
from tests.worlds.openai_server import OpenAIServer

# Every call of the example in the documentation of Auto-ARGUE, in its order and with its arguments, told again.
EXAMPLE = """
import asyncio, json, os
from pathlib import Path
from evaluator.argue.judge import evaluate_report, ModelProvider
from evaluator.argue.utils import Report

async def evaluate():
    reports = []
    with open("assets/sample-inputs/sample_report.jsonl", "r") as lines:
        for line in lines:
            reports.append(Report.model_validate(json.loads(line)))
    folder = "assets/sample-inputs/sample-docs-lookup/"
    assert os.path.isdir(folder)
    collections = ["neuclir/1/ru", "neuclir/1/fa", "neuclir/1/zh"]
    return await asyncio.gather(
        *[
            evaluate_report(
                report,
                Path("assets/sample-inputs/sample_nuggets_388.v3.json"),
                collections,
                folder,
                provider=ModelProvider.PROVIDER,
            )
            for report in reports
        ]
    )

if __name__ == "__main__":
    print(asyncio.run(evaluate()))
"""


def run(provider: str, **env: str) -> subprocess.CompletedProcess[str]:
    root = SAMPLES.parents[4]
    return subprocess.run(
        [sys.executable, "-c", EXAMPLE.replace("PROVIDER", provider)],
        cwd=SAMPLES.parents[1],
        env={**os.environ, "PYTHONPATH": str(root), **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_example_runs_offline() -> None:
    done = run("LEXICAL")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[JudgedReport(request_id='388', run_id='careful'")
    assert done.stderr == ""


def test_the_example_runs_with_its_own_provider() -> None:
    with OpenAIServer("exact") as server:
        done = run("TOGETHER", TOGETHER_API_KEY="k", TOGETHER_BASE_URL=server.base_url)
        assert done.returncode == 0, done.stderr
        assert len(server.chats) == 22
        assert {r.json["model"] for r in server.chats} == {"meta-llama/Llama-3.3-70B-Instruct-Turbo"}


def evaluate(*reports: object, **options: object) -> list[JudgedReport]:
    async def everything() -> list[JudgedReport]:
        given = {"collection_dir": LOOKUP, "provider": ModelProvider.LEXICAL, **options}
        return await asyncio.gather(*[evaluate_report(r, NUGGETS, **given) for r in reports])  # type: ignore[arg-type]

    return asyncio.run(everything())


def test_what_comes_back_can_be_scored_and_is_what_the_command_line_writes(
    argue: Argue, tmp_path: Path
) -> None:
    [judged] = evaluate(*rows(REPORT))
    assert argue("annotate", REPORT, NUGGETS, tmp_path / "x", "-p", "lexical", "-C", LOOKUP).code == 0
    assert [judged.model_dump()] == rows(tmp_path / "x.judgments.jsonl")
    values = score_topic(judged, load_nuggets(NUGGETS)["388"]).values
    assert values["sentences"] == 6 and values["nuggets"] == 10


def test_calls_at_the_same_time_share_one_client(
    serving: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ARGUE_MAX_CONCURRENCY", "2")
    server = serving("slow", delay=0.02)
    report = Report.model_validate(rows(REPORT)[0])
    options = {"provider": "openai", "model_name": "m", "cache": tmp_path / "replies.jsonl"}
    one, two, three = evaluate(report, report, report, **options)
    assert one == two == three
    assert len(server.chats) == 22  # the same question is asked once
    assert server.most_at_once <= 2
    assert evaluate(report, **options) == [one]  # another event loop, and nothing is asked
    assert len(server.chats) == 22


@pytest.mark.usefixtures("clean")
def test_broken_reports_and_other_topics() -> None:
    with pytest.raises(ValueError):
        evaluate({"metadata": {}})
    [report] = rows(REPORT)
    other = {**report, "metadata": {**report["metadata"], "topic_id": "1"}}
    cases: list[tuple[Any, dict[str, object], str]] = [
        (other, {}, '"1"'),
        (report, {"collection_dir": "nowhere"}, "nowhere"),
        (report, {"provider": "nobody"}, "nobody"),
        (report, {"provider": ModelProvider.TOGETHER}, "TOGETHER_API_KEY"),
    ]
    for data, options, value in cases:
        with pytest.raises(EvaluatorError) as caught:
            evaluate(data, **options)
        assert value in "".join(caught.value.lines())


def test_documents_that_the_report_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOC_LOOKUP", raising=False)
    [report] = rows(REPORT)
    text = "The station was opened in May 2021 and has twelve turbines."
    report["documents"] = {"ru-001": {"id": "ru-001", "text": text}}
    [judged] = evaluate(report, collection_dir=None)
    assert [citation.text for citation in judged.segments[1].citations[:2]] == [text, ""]
