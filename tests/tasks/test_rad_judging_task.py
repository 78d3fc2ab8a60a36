"""The task rad-2025-judging and its baselines, as plain processes: as batches and as servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from tests.worlds.baselines import baseline_folder
from tests.worlds.judged import CRITERIA, judgments, write

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "tasks" / "rad-2025-judging"
# Score on dev and test, or None for one that does not judge all four.
JUDGES = {
    "rad-judge-1": (0.8149, 0.8332),
    "rad-judge-heuristic": (0.7968, 0.8419),
    "rad-judge-relation": (None, None),
}


def batch(name: str, dataset: str, into: Path, seed: str = "0") -> Path:
    into.mkdir(parents=True)
    env = {"inputDataset": str(TASK / "datasets" / dataset / "inputs"), "outputDir": str(into)}
    env["PYTHONHASHSEED"] = seed
    subprocess.run([sys.executable, baseline_folder(name) / "judge.py"], env=env, check=True, timeout=60)
    return into / "evaluations.jsonl"


def values(dataset: str, run: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    folder = TASK / "datasets" / dataset
    files = ["--labels", folder / "truths/debates-labels.jsonl", "--debates", folder / "inputs/debates.jsonl"]
    capsys.readouterr()
    assert main(["judges", *map(str, files), "--judgments", str(run), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@contextmanager
def server(name: str) -> Iterator[str]:
    """A baseline that serves on a free port; its address."""
    env = {**os.environ, "PORT": "0", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, baseline_folder(name) / "judge.py"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("listening on "), said
            yield f"http://127.0.0.1:{said.split()[-1]}"
        finally:
            process.kill()


def post(address: str, body: bytes) -> tuple[int, Any]:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("dataset", ["dev", "test"])
def test_scores_of_the_baselines(
    name: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = values(dataset, batch(name, dataset, tmp_path / "out"), capsys)
    score = JUDGES[name][dataset == "test"]
    if score is None:
        assert "score" not in found["values"] and found["values"]["relation f1"] > 0.7
        assert found["beside"]["relation kappa"] > 0.2
    else:
        assert found["values"]["score"] == pytest.approx(score, abs=5e-5)
        assert found["findings"] == []
        kappa = found["beside"]["kappa"]
        assert kappa == 0 if name == "rad-judge-1" else kappa > 0.3, "yes to everything shows nothing"


@pytest.mark.parametrize("name", JUDGES)
def test_a_server_says_what_the_batch_says(name: str, tmp_path: Path) -> None:
    lines = batch(name, "dev", tmp_path / "out").read_text("utf-8").splitlines()
    debates = (TASK / "datasets" / "dev" / "inputs" / "debates.jsonl").read_text("utf-8").splitlines()
    with server(name) as address:
        for line, written in list(zip(debates, lines, strict=True))[:4]:
            simulation = json.loads(line)["simulation"]
            said: list[dict[str, Any]] = [{} for _ in simulation["userTurns"]]
            for criterion in CRITERIA:
                for turn, kept in enumerate(said):
                    body = json.dumps({"simulation": simulation, "userTurnIndex": turn}).encode()
                    status, answer = post(f"{address}/{criterion}", body)
                    assert status == 200
                    if answer["score"] is not None:
                        kept[criterion] = answer["score"]
                whole = json.dumps({"simulation": simulation}).encode()
                status, answer = post(f"{address}/{criterion}", whole)
                assert (status, answer) == (200, {"score": None}), "no opinion on the whole debate"
            assert judgments(said) == json.loads(written)


def test_a_server_survives_nonsense() -> None:
    with server("rad-judge-heuristic") as address:
        turn = {"utterance": "u", "systemResponse": {"utterance": ""}}
        good = {"simulation": {"userTurns": [turn]}, "userTurnIndex": 0}
        for path, body, status in (
            ("/quality", b"{", 400),
            ("/quality", b"[]", 400),
            ("/quality", b'{"simulation": {"userTurns": []}, "userTurnIndex": 0}', 400),
            ("/beauty", b"{}", 404),
            ("/quality", json.dumps(good).encode(), 200),
        ):
            assert post(address + path, body)[0] == status


def test_batches_repeat(tmp_path: Path) -> None:
    made = {batch("rad-judge-heuristic", "dev", tmp_path / s, s).read_bytes() for s in ("1", "2")}
    assert len(made) == 1


def test_the_data_are_those_that_the_generator_makes(tmp_path: Path) -> None:
    # The real debates are the first two lines of dev, rewritten by the same rules.
    real = (TASK / "datasets" / "dev" / "inputs" / "debates.jsonl").read_text("utf-8").splitlines()[:2]
    source = write(tmp_path / "simulations.jsonl", [json.loads(line) for line in real])
    subprocess.run([sys.executable, TASK / "generate.py", source, tmp_path / "made"], check=True, timeout=60)
    made = sorted(p.relative_to(tmp_path / "made") for p in (tmp_path / "made").rglob("*.jsonl"))
    assert made == sorted(p.relative_to(TASK / "datasets") for p in (TASK / "datasets").rglob("*.jsonl"))
    for path in made:
        assert (tmp_path / "made" / path).read_bytes() == (TASK / "datasets" / path).read_bytes(), path


def test_labels_are_not_in_what_judges_see() -> None:
    for dataset in ("dev", "test"):
        text = (TASK / "datasets" / dataset / "inputs" / "debates.jsonl").read_text("utf-8")
        assert not any(f'"{criterion}"' in text for criterion in CRITERIA)
