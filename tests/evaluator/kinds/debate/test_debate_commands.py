"""``evaluator debate`` and ``evaluator agreement``, for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.__main__ import main
from schemas.debates import parse, transcript_digest
from tests.worlds.debate_runs import CLAIMS, INDEX, REAL, debate, turn, write


def test_a_table_of_the_real_debates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debate", str(REAL), "--by-debate"]) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["answered"] == ["1.0000"] and "readability-official" in rows
    assert (
        json.loads(REAL.read_text().splitlines()[0])["simulation"]["configuration"]["topic"]["description"]
        in out
    )
    assert "F207" in err  # an answer of 62 words


def test_as_json_with_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [debate(turn("Night buses do not run.", "1.1"), turn("", user="x"), id="c1")]
    index = [{"id": k, "text": v} for k, v in INDEX.items()]
    labels = [[{"quantity": 1, "manner": 0}, {"quantity": 0}]]
    contents = {"claims": list(CLAIMS), "index": index, "served": [{"hits": []}], "labels": labels}
    call = ["debate", str(write(tmp_path / "simulations.jsonl", rows)), "--json"]
    for name, content in contents.items():
        call += [f"--{name}", str(write(tmp_path / f"{name}.jsonl", content))]
    assert main(call) == 0
    found = json.loads(capsys.readouterr().out)
    measures = found["measures"]
    assert found["turns"] == 2 and measures["answered"]["value"] == 1 / 4
    assert measures["provenance"]["value"] == 0.0 and found["findings"]["codes"]["F210"]["count"] == 1
    assert measures["words"]["by_debate"] == [5.0, None]
    people = {"quantity": 1 / 4, "quality": None, "relation": None, "manner": 0.0, "score": None}
    assert found["criteria"]["human"] == people
    run = transcript_digest([d for r in rows if (d := parse(r)[0])])
    ours = {"run": run, "debate": 1, "turn": 1, "annotator": "a", "quantity": 1}
    write(tmp_path / "labels.jsonl", [ours])
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["criteria"]["human"]["quantity"] == 1 / 4


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debate", str(write(tmp_path / "s.jsonl", ["{"]))]) == 1
    assert "F101" in capsys.readouterr().err
    assert main(["debate", str(REAL), "--served", str(tmp_path / "none")]) == 2
    assert main(["debate", str(REAL), "--index", str(tmp_path / "none")]) == 4
    with pytest.raises(SystemExit):
        main(["debate", str(REAL), "--word-limit", "0"])


def test_hostile_text_is_not_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write(tmp_path / "s.jsonl", [debate(turn("word " * 70), id="\x1b[31mx", claim="\x1b]0;x\x07")])
    assert main(["debate", str(run), "--by-debate"]) == 0
    assert "\x1b" not in "".join(capsys.readouterr())


def test_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = {"run": "0" * 64, "debate": 1}
    votes = [(1, "a", 1), (1, "b", 1), (2, "a", 0), (2, "b", 1), (3, "a", 0), (3, "b", 0)]
    rows = [{**where, "turn": t, "annotator": a, "quality": q} for t, a, q in votes]
    labels = write(tmp_path / "labels.jsonl", rows)
    assert main(["agreement", str(labels)]) == 0
    assert "kappa 0.400" in capsys.readouterr().out
    assert main(["agreement", str(labels), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["criteria"]
    assert found["quality"]["doubled"] == 3 and found["manner"]["alpha"] is None
    assert main(["agreement", str(write(tmp_path / "bad.jsonl", ["x"]))]) == 4
