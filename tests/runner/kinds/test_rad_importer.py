"""Importing files of Retrieval-Augmented Debating 2025. The fixtures are written by hand from its formats."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.kinds import import_release as import_into
from runner.kinds.debate.importer import import_judging, import_release
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.kinds import KindSpec, kind_spec, kinds_with
from runner.tasks.load import load_task
from schemas.debates import CRITERIA, parse, transcript_digest
from schemas.debates import digest_of_lines as of_lines
from tests.runner.kinds.test_perspective_importer import archive, folder, rows

ROOT = Path(__file__).parents[3]
REAL = ROOT / "tests/evaluator/kinds/debate/genirsim/simulations.jsonl"
CLAIMS = [
    {"id": "touche25-rad-cmv-1", "claim": "Zoos are cruel.", "description": "A long post."},
    {"id": "touche25-rad-cmv-2", "claim": 'He said "no".', "description": "Another."},
]
ARGUMENT = {
    "id": "1.1",
    "text": "t",
    "topic": "T",
    "tags": ["x"],
    "attacks": "a",
    "supports": "b",
    "references": [],
    "original": "attacks",
    "key": 1,
    "score": 2.0,
}


def messages(*answers: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for n, answer in enumerate(answers):
        found.append({"role": "user", "content": f"U{n}", "arguments": None if n == 0 else [ARGUMENT]})
        found.append({"role": "assistant", "content": answer, "arguments": [ARGUMENT]})
    return found


TRAINING = [{**CLAIMS[0], "debate": messages("S1", "S2")}, {**CLAIMS[1], "debate": messages("S3")}]
ANNOTATED = [
    {**{k: v for k, v in d.items() if k != "debate"}, "simulated_debate": d["debate"]} for d in TRAINING
]
LABELS = [[{"quantity": 1, "quality": 0, "relation": 1, "manner": None}, {"quantity": 0}], [{"manner": 1}]]


def lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_the_kinds_have_importers() -> None:
    assert kinds_with("importer") == ["debate", "diversity", "meta"]
    assert kind_spec("debate").importer is import_release
    assert kind_spec("meta").importer is import_judging
    assert kind_spec("none") == KindSpec()


@pytest.mark.parametrize("form", ["folder", "zip", "file", "packed"])
def test_official_claims(tmp_path: Path, form: str) -> None:
    files = {"claims-test.jsonl": lines(CLAIMS), "README.md": b"# x", "__MACOSX/claims-test.jsonl": b"x"}
    source = {
        "folder": lambda: folder(tmp_path / "release", files),
        "zip": lambda: archive(tmp_path / "release.zip", files, "release/"),
        "file": lambda: folder(tmp_path, {"claims.jsonl": lines(CLAIMS)}) / "claims.jsonl",
        "packed": lambda: (
            folder(tmp_path, {"claims.jsonl.gz": gzip.compress(lines(CLAIMS))}) / "claims.jsonl.gz"
        ),
    }[form]()
    assert import_release(source, tmp_path / "out", "test") == []
    assert rows(tmp_path / "out/inputs/claims.jsonl") == CLAIMS
    assert (tmp_path / "out/truths/labels/labels.jsonl").read_bytes() == b""
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["inputs", "truths"]


def test_the_split_in_the_name_decides(tmp_path: Path) -> None:
    files = {"claims-train.jsonl": lines(CLAIMS[:1]), "claims-test.jsonl": lines(CLAIMS[1:])}
    assert import_release(folder(tmp_path / "r", files), tmp_path / "out", "test") == []
    assert rows(tmp_path / "out/inputs/claims.jsonl") == CLAIMS[1:]
    (problem,) = import_release(tmp_path / "r", tmp_path / "other", "dev")
    assert "claims-test.jsonl" in problem.what and not (tmp_path / "other" / "inputs").exists()


def test_a_parameter_file(tmp_path: Path) -> None:
    text = 'TOPIC_DESCRIPTION\tUSER\r\nZoos are cruel.\tbase-user\r\nHe said \\"no\\".\tbase-user\r\n'
    source = folder(tmp_path / "r", {"parameters.tsv": text.encode()})
    assert import_release(source, tmp_path / "out", "test") == []
    assert [c["claim"] for c in rows(tmp_path / "out/inputs/claims.jsonl")] == [c["claim"] for c in CLAIMS]
    (tmp_path / "r/parameters.tsv").write_text('TOPIC_DESCRIPTION\nHe said "no".\n')
    (problem,) = import_release(tmp_path / "r", tmp_path / "bad", "test")
    assert problem.where.endswith(":2") and '\\"' in problem.fix


@pytest.mark.parametrize("debates", [TRAINING, ANNOTATED])
def test_debates_of_both_keys_with_labels(tmp_path: Path, debates: list[Any]) -> None:
    source = folder(tmp_path / "r", {"debates.jsonl": lines(debates), "x-labels.jsonl": lines(LABELS)})
    assert import_judging(source, tmp_path / "out", "test", truths=tmp_path / "hidden") == []
    made = rows(tmp_path / "out/inputs/debates.jsonl")
    assert {topic(d) for d in made} == {c["claim"] for c in CLAIMS}
    place = [topic(d) for d in made].index(CLAIMS[0]["claim"])
    response = {"content": "S1", "arguments": [{"id": "1.1", "text": "t"}]}
    answer = {"utterance": "S1", "response": response}
    assert made[place]["simulation"]["userTurns"][0] == {"utterance": "U0", "systemResponse": answer}
    assert all(schemas.validate(d, "debate-simulation") == [] for d in made)
    # What was said is the same in both forms, so that labels find it.
    known = [found for d in debates if (found := parse(d)[0]) is not None]
    order = [d["debate"] - 1 for d in rows(tmp_path / "hidden/provenance.json")[0]["lines"]]
    assert of_lines(made) == transcript_digest(known[n] for n in order)
    labels = rows(tmp_path / "hidden/debates-labels.jsonl")
    assert [p for row in labels for p in schemas.validate(row, "debate-labels")] == []
    # Labels stand where their debates went.
    moved = {n: order.index(n - 1) + 1 for n in (1, 2)}
    assert [(r["debate"], r["turn"], r.get("quality", "-"), r["run"] == of_lines(made)) for r in labels] == (
        sorted([(moved[1], 1, 0, True), (moved[1], 2, "-", True), (moved[2], 1, "-", True)])
    )
    # The same files make a dataset for debates.
    assert import_release(source, tmp_path / "debating", "test") == []
    assert rows(tmp_path / "debating/inputs/claims.jsonl") == CLAIMS
    assert len(rows(tmp_path / "debating/truths/labels/labels.jsonl")) == len(labels)


def topic(line: dict[str, Any]) -> str:
    said: str = line["simulation"]["configuration"]["topic"]["description"]
    return said


# Six systems debate the same claims; everything that could name one of them does.
SYSTEMS = [f"system-{name}" for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")]


def told(system: str, number: int) -> dict[str, Any]:
    """A debate in GenIRSim's form with its system's name wherever there is room for one, but in what was said."""
    answer = {
        "utterance": f"S{number}{len(system)}",
        "milliseconds": 100 + len(system),
        "systemName": system,
        "response": {"content": f"S{number}{len(system)}", "arguments": [{**ARGUMENT, "origin": system}]},
    }
    turn = {"utterance": f"U{number}", "systemResponse": answer, "by": system}
    configuration = {
        "topic": {"id": f"{system}-{number}", "description": f"Claim {number}.", "system": system},
        "system": {"class": system, "url": f"http://{system}/"},
        "maxTurns": 3,
    }
    return {
        "id": f"{system}-{number}",
        "team": system,
        "simulation": {"configuration": configuration, "userTurns": [turn] * 3, "system": system},
        "overallEvaluations": {system: {"score": 1}},
    }


def test_nothing_of_imported_debates_tells_whose_they_are(tmp_path: Path) -> None:
    debates = [told(system, number) for system in SYSTEMS for number in range(8)]
    labels = [[{"quality": n % 2, "manner": t % 2} for t in range(3)] for n in range(len(debates))]
    files = {"debates.jsonl": lines(debates), "x-labels.jsonl": lines(labels)}
    assert import_judging(folder(tmp_path / "r", files), tmp_path / "out", "test") == []
    text = (tmp_path / "out/inputs/debates.jsonl").read_text()
    assert "system-" not in text and "milliseconds" not in text and '"id": "1.1"' in text
    assert [p.name for p in (tmp_path / "out/inputs").iterdir()] == ["debates.jsonl"]
    # Neither does the order: it is the same whatever order the release has.
    turned = {"debates.jsonl": lines(debates[::-1]), "x-labels.jsonl": lines(labels[::-1])}
    assert import_judging(folder(tmp_path / "t", turned), tmp_path / "other", "test") == []
    assert (tmp_path / "other/inputs/debates.jsonl").read_text() == text
    whose = [
        line["id"].rpartition("-")[0] for line in rows(tmp_path / "out/truths/provenance.json")[0]["lines"]
    ]
    runs = 1 + sum(a != b for a, b in itertools.pairwise(whose))
    assert runs > len(debates) / 2  # in the release they stand in six blocks
    # Each label is where its debate is.
    made = {(r["debate"], r["turn"]): r for r in rows(tmp_path / "out/truths/debates-labels.jsonl")}
    for line in rows(tmp_path / "out/truths/provenance.json")[0]["lines"]:
        assert [made[line["line"], t + 1]["quality"] for t in range(3)] == [(line["debate"] - 1) % 2] * 3


def test_official_figures_are_those_of_the_unshuffled_files(tmp_path: Path) -> None:
    """Whatever a judge says and however debates repeat: precision, recall and F1 are the same in both orders."""
    dice = random.Random(11)
    debates = [told(system, number) for system in SYSTEMS for number in range(4)]
    debates += [debates[3], debates[3]]  # the same words twice more, with other labels
    labels = [[{c: dice.choice((0, 1, None)) for c in CRITERIA} for _ in range(3)] for _ in debates]
    turns = [
        [{c.capitalize(): {"score": dice.random()} for c in CRITERIA} for _ in range(3)] for _ in debates
    ]
    said = [{"userTurnsEvaluations": turn} for turn in turns]
    source = folder(tmp_path / "r", {"debates.jsonl": lines(debates), "x-labels.jsonl": lines(labels)})
    (tmp_path / "said.jsonl").write_bytes(lines(said))
    before = judged(source / "x-labels.jsonl", tmp_path / "said.jsonl", source / "debates.jsonl")
    assert import_judging(source, tmp_path / "out", "test") == []
    order = [line["debate"] - 1 for line in rows(tmp_path / "out/truths/provenance.json")[0]["lines"]]
    (tmp_path / "moved.jsonl").write_bytes(lines([said[n] for n in order]))
    after = judged(
        tmp_path / "out/truths/debates-labels.jsonl",
        tmp_path / "moved.jsonl",
        tmp_path / "out/inputs/debates.jsonl",
    )
    assert len(before["values"]) > 8
    assert all(before[key] == after[key] for key in ("values", "beside", "counts"))


def judged(labels: Path, judgments: Path, debates: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "evaluator", "judges", "--json", "--labels", labels]
    done = subprocess.run(
        [*command, "--judgments", judgments, "--debates", debates], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_debates_of_genirsim_lose_all_but_what_was_said(tmp_path: Path) -> None:
    assert import_judging(REAL, tmp_path / "out", "test") == []
    originals = [json.loads(line) for line in REAL.read_text().splitlines()]
    made = rows(tmp_path / "out/inputs/debates.jsonl")
    assert sorted(of_lines([d]) for d in made) == sorted(of_lines([d]) for d in originals)
    assert all(set(d["simulation"]["configuration"]) <= {"topic", "maxTurns"} for d in made)
    assert [p.name for p in (tmp_path / "out/truths").iterdir()] == ["provenance.json"]  # no labels yet
    assert import_release(REAL, tmp_path / "debating", "test") == []
    topics = {topic(debate) for debate in originals}
    assert [c["claim"] for c in rows(tmp_path / "debating/inputs/claims.jsonl")] == sorted(topics)
    assert len(topics) == 2


def test_all_problems_are_reported_and_nothing_is_written(tmp_path: Path) -> None:
    bad = {"id": "x", "claim": "c", "debate": [{"role": "nobody", "content": 1}, *messages("a")]}
    source = folder(tmp_path / "r", {"debates.jsonl": lines([TRAINING[0], bad, {}]) + b"{broken\n"})
    places = [problem.where for problem in import_judging(source, tmp_path / "out", "test")]
    assert places == [f"debates.jsonl:{line}" for line in (2, 3, 4)]
    pairs = (("", ""), (True, "c"), ("a", "c"), ("a", "d"))
    wrong = [{"id": name, "claim": claim} if name else {"claim": claim} for name, claim in pairs]
    (tmp_path / "claims.jsonl").write_bytes(lines(wrong))
    assert len(import_release(tmp_path / "claims.jsonl", tmp_path / "out", "test")) == 3
    labels = folder(tmp_path / "s", {"d.jsonl": lines(TRAINING), "x-labels.jsonl": lines(LABELS[::-1])})
    found = import_judging(labels, tmp_path / "out", "test")
    assert len(found) == 2 and re.findall(r"\d+", found[0].what) == ["1", "2", "1"]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert not names & {"inputs", "truths"} and not any(name.startswith(".") for name in names)


@pytest.mark.parametrize("name", ["claims.jsonl.gzip", "claims.zip", "claims", "claims.tsv"])
def test_content_decides_and_never_the_name(name: str, tmp_path: Path) -> None:
    said: list[str] = []
    files = {name: gzip.compress(b"\xef\xbb\xbf" + lines(CLAIMS)), "x.json": b"{\n}"}
    source = folder(tmp_path / "r", files | {"notes.jsonl": b'{"a": 1}\n'})
    assert import_release(source, tmp_path / "out", "test", say=said.append) == []
    assert rows(tmp_path / "out/inputs/claims.jsonl") == CLAIMS
    assert len(said) == 1 and said[0].endswith(": notes.jsonl, x.json")
    table = gzip.compress(b"USER\tTOPIC_DESCRIPTION\r\nu\tZoos are cruel.\r\n")
    assert import_release(folder(tmp_path / "t", {name: table}), tmp_path / "two", "test") == []
    assert rows(tmp_path / "two/inputs/claims.jsonl")[0]["claim"] == CLAIMS[0]["claim"]


def test_files_that_are_not_releases(tmp_path: Path) -> None:
    files = {"x.zip": b"PK nonsense", "x.jsonl": b'{"a": 1}\n', "labels.jsonl": lines(LABELS)}
    for name in folder(tmp_path / "files", files).iterdir():
        assert len(import_release(name, tmp_path / "out", "test")) == 1
    claims = folder(tmp_path / "c", {"c.jsonl": lines(CLAIMS)})
    assert len(import_judging(claims, tmp_path / "out", "test")) == 1
    assert import_judging(REAL, tmp_path / "free", "test") == []
    (tmp_path / "out" / "inputs").mkdir(parents=True)
    (tmp_path / "out" / "inputs" / "x").touch()
    assert len(import_judging(REAL, tmp_path / "out", "test")) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["inputs"]


@pytest.mark.parametrize(
    ("task_id", "files", "made"),
    [
        ("rad-2025-debate", {"claims.jsonl": lines(CLAIMS)}, "claims.jsonl"),
        ("rad-2025-judging", {"debates.jsonl": lines(TRAINING)}, "debates.jsonl"),
    ],
)
def test_the_kind_has_its_importer(tmp_path: Path, task_id: str, files: dict[str, bytes], made: str) -> None:
    task = load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), task_id)
    dataset = replace(
        next(iter(task.datasets.values())), inputs=tmp_path / "to/inputs", truths=tmp_path / "to/truths"
    )
    import_into(task, dataset, folder(tmp_path / "r", files))
    assert (dataset.inputs / made).is_file()
    adhoc = load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), "vaswani")
    with pytest.raises(RunnerError) as caught:
        import_into(adhoc, dataset, tmp_path)
    assert "debate, diversity, meta" in caught.value.why
