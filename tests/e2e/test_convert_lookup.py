"""Pickled look-ups through ``runner data convert-lookup``: documents come out of the sandbox, and nothing is run."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.mini import Project, cli

pytestmark = pytest.mark.engine
DOCUMENTS = {
    f"d{n}": {"title": f"Title {n}", "text": f"Text {n}: ünïcode \u2028 {'x' * 200}"} for n in range(500)
}


class Evil:
    """Runs a command as soon as somebody unpickles it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def test_a_look_up_becomes_documents(live: Project, tmp_path: Path) -> None:
    source, target = tmp_path / "doc_mapping_ru.pkl", tmp_path / "neuclir_1_ru.jsonl.gz"
    source.write_bytes(pickle.dumps(DOCUMENTS))
    said = cli(live, "data", "convert-lookup", str(source), str(target), "--json")
    assert said.json == {"file": str(target), "bytes": target.stat().st_size}
    assert f"{target.name}: 500 " in said.err
    with gzip.open(target, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    assert {d["id"]: {"title": d["title"], "text": d["text"]} for d in found} == DOCUMENTS
    assert target.stat().st_uid == os.getuid()
    # Where it is now, reports can be judged with it.
    reports, nuggets = tmp_path / "r.jsonl", tmp_path / "n_1.v3.json"
    reports.write_text(json.dumps({"metadata": {"team_id": "t", "run_id": "r", "topic_id": "1"}, "references": ["d7"],
                                   "responses": [{"text": "Text 7.", "citations": ["d7"]}]}))  # fmt: skip
    nuggets.write_text(json.dumps({"query_id": "1", "nugget_bank": {"Q?": {"question": "Q?", "answers": {"7": {"answer": "7", "references": [{"doc_id": "d7"}]}}}}}))  # fmt: skip
    command = [sys.executable, "-m", "evaluator", "argue", "annotate", reports, nuggets, tmp_path / "x"]
    command += ["-p", "lexical", "-C", tmp_path, "-c", "neuclir/1/ru"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "d7" not in done.stderr, done.stderr
    content = target.read_bytes()
    again = cli(live, "data", "convert-lookup", str(source), str(target), expect=2).err
    assert "E101" in again and target.name in again and source.name not in again
    assert target.read_bytes() == content


@pytest.mark.slow
def test_a_hostile_pickle_is_refused_and_nothing_is_run(live: Project, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    evil = tmp_path / "evil\x1b[31m.pkl"
    mark = marks / "pwned"
    target = tmp_path / "out.jsonl"
    documents = {"d1": {"title": "", "text": "fine"}, "d2": Evil(f"touch {mark}; touch /out/pwned")}
    for content in (documents, {}):
        evil.write_bytes(pickle.dumps(content))
        assert "E402" in cli(live, "data", "convert-lookup", str(evil), str(target), expect=4).err
        assert not target.exists() and not list(marks.iterdir())
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".convert-")]


@pytest.mark.slow
def test_a_pickle_that_unpacks_without_an_end_meets_its_limit(live: Project, tmp_path: Path) -> None:
    source = tmp_path / "bomb.pkl"
    text = "x" * 500_000
    source.write_bytes(pickle.dumps({f"d{n}": text for n in range(400)}))  # one text, remembered 400 times
    assert source.stat().st_size < 1_000_000
    said = cli(
        live, "data", "convert-lookup", str(source), str(tmp_path / "x.jsonl"), "--limit", "8MiB", expect=4
    )
    assert "8 MiB" in said.err
    assert not (tmp_path / "x.jsonl").exists()
    cli(live, "data", "convert-lookup", str(source), str(tmp_path / "x.jsonl.gz"), "--limit", "8MiB")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.pkl", "x.jsonl"], "nowhere.pkl"),
        (["x.pkl", "x.txt"], ".jsonl"),
        (["x.pkl", "nowhere/x.jsonl"], "/nowhere"),
        (["x.pkl", "x.jsonl", "--limit", "much"], "--limit"),
    ],
)
def test_mistakes_in_the_arguments_are_named(live: Project, words: list[str], said: str) -> None:
    live.root.joinpath("x.pkl").write_bytes(pickle.dumps({"d": "t"}))
    paths = [str(live.root / word) for word in words[:2]]
    assert said in cli(live, "data", "convert-lookup", *paths, *words[2:], expect=2).all
