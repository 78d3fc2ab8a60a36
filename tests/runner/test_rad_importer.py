"""Importing files of Retrieval-Augmented Debating 2025. The fixtures are written by hand from its formats."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.importers import IMPORTERS
from runner.importers.rad import import_judging, import_release
from schemas.debates import digest_of_lines as of_lines
from schemas.debates import parse, transcript_digest

REAL = Path(__file__).parent.parent / "evaluator" / "debate" / "genirsim" / "simulations.jsonl"
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


def folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(f"release/{name}", data)
    return path


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_kinds_have_importers() -> None:
    assert IMPORTERS["debate"] == "rad" and IMPORTERS["meta"] == "rad_judging"
    from runner.importers import rad_judging

    assert rad_judging.import_release is import_judging


@pytest.mark.parametrize("form", ["folder", "zip", "file", "packed"])
def test_official_claims(tmp_path: Path, form: str) -> None:
    files = {"claims-test.jsonl": lines(CLAIMS), "README.md": b"# x", "__MACOSX/claims-test.jsonl": b"x"}
    source = {
        "folder": lambda: folder(tmp_path / "release", files),
        "zip": lambda: archive(tmp_path / "release.zip", files),
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
    assert "several files of claims" in problem.what and not (tmp_path / "other" / "inputs").exists()


def test_a_parameter_file(tmp_path: Path) -> None:
    text = 'TOPIC_DESCRIPTION\tUSER\r\nZoos are cruel.\tbase-user\r\nHe said \\"no\\".\tbase-user\r\n'
    assert (
        import_release(folder(tmp_path / "r", {"parameters.tsv": text.encode()}), tmp_path / "out", "test")
        == []
    )
    assert [c["claim"] for c in rows(tmp_path / "out/inputs/claims.jsonl")] == [c["claim"] for c in CLAIMS]
    (tmp_path / "r/parameters.tsv").write_text('TOPIC_DESCRIPTION\nHe said "no".\n')
    (problem,) = import_release(tmp_path / "r", tmp_path / "bad", "test")
    assert problem.where.endswith(":2") and 'write \\"' in problem.fix


@pytest.mark.parametrize("debates", [TRAINING, ANNOTATED])
def test_debates_of_both_keys_with_labels(tmp_path: Path, debates: list[Any]) -> None:
    source = folder(tmp_path / "r", {"debates.jsonl": lines(debates), "x-labels.jsonl": lines(LABELS)})
    assert import_judging(source, tmp_path / "out", "test", truths=tmp_path / "hidden") == []
    made = rows(tmp_path / "out/inputs/debates.jsonl")
    assert [d["id"] for d in made] == [c["id"] for c in CLAIMS]
    first = made[0]["simulation"]["userTurns"][0]
    assert first == {
        "utterance": "U0",
        "systemResponse": {"utterance": "S1", "response": {"content": "S1", "arguments": [ARGUMENT]}},
    }
    assert all(schemas.validate(d, "debate-simulation") == [] for d in made)
    # What was said is the same in both forms, so that labels find it.
    known = [found for d in debates if (found := parse(d)[0]) is not None]
    assert of_lines(made) == transcript_digest(known)
    labels = rows(tmp_path / "hidden/debates-labels.jsonl")
    assert [p for row in labels for p in schemas.validate(row, "debate-labels")] == []
    assert [(r["debate"], r["turn"], r.get("quality", "-"), r["run"] == of_lines(made)) for r in labels] == [
        (1, 1, 0, True),
        (1, 2, "-", True),
        (2, 1, "-", True),
    ]
    # The same files make a dataset for debates.
    assert import_release(source, tmp_path / "debating", "test") == []
    assert rows(tmp_path / "debating/inputs/claims.jsonl") == CLAIMS
    assert rows(tmp_path / "debating/truths/labels/labels.jsonl") == labels


def test_debates_of_genirsim_stay_as_they_are(tmp_path: Path) -> None:
    assert import_judging(REAL, tmp_path / "out", "test") == []
    assert rows(tmp_path / "out/inputs/debates.jsonl") == [
        json.loads(line) for line in REAL.read_text().splitlines()
    ]
    assert list((tmp_path / "out/truths").iterdir()) == []  # no labels yet
    assert import_release(REAL, tmp_path / "debating", "test") == []
    assert [c["claim"] for c in rows(tmp_path / "debating/inputs/claims.jsonl")] == [
        "Television is bad",
        "Television is good",
    ]


def test_everything_wrong_is_said_and_nothing_written(tmp_path: Path) -> None:
    bad = {"id": "x", "claim": "c", "debate": [{"role": "nobody", "content": 1}, *messages("a")]}
    source = folder(tmp_path / "r", {"debates.jsonl": lines([TRAINING[0], bad, {}]) + b"{broken\n"})
    found = [str(p) for p in import_judging(source, tmp_path / "out", "test")]
    assert len(found) == 3
    assert (
        "debates.jsonl:2" in found[0]
        and "debates.jsonl:3: the debate failed" in found[1]
        and "not JSON" in found[2]
    )
    wrong = lines(
        [{"claim": ""}, {"id": True, "claim": "c"}, {"id": "a", "claim": "c"}, {"id": "a", "claim": "d"}]
    )
    (tmp_path / "claims.jsonl").write_bytes(wrong)
    assert len(import_release(tmp_path / "claims.jsonl", tmp_path / "out", "test")) == 3
    labels = folder(
        tmp_path / "s", {"d.jsonl": lines(TRAINING), "x-labels.jsonl": lines([LABELS[1], LABELS[0]])}
    )
    found = [str(p) for p in import_judging(labels, tmp_path / "out", "test")]
    assert "debate 1 has 2 turns, and labels of 1" in found[0] and len(found) == 2
    assert not any(
        p.name in ("inputs", "truths") or p.name.startswith(".") for p in (tmp_path / "out").iterdir()
    )


def test_releases_that_are_none(tmp_path: Path) -> None:
    for name, data, says in (
        ("x.zip", b"PK nonsense", "not a zip archive"),
        ("x.jsonl", b'{"a": 1}\n', "neither claims nor debates"),
        ("labels.jsonl", lines(LABELS), "labels only"),
    ):
        (tmp_path / name).write_bytes(data)
        assert says in import_release(tmp_path / name, tmp_path / "out", "test")[0].what
    assert (
        "no debates"
        in import_judging(folder(tmp_path / "c", {"c.jsonl": lines(CLAIMS)}), tmp_path / "out", "test")[
            0
        ].what
    )
    (tmp_path / "out" / "inputs").mkdir(parents=True)
    (tmp_path / "out" / "inputs" / "x").touch()
    assert "is there already" in import_judging(REAL, tmp_path / "out", "test")[0].what


def test_an_archive_leads_nowhere_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as made:
        made.writestr("../../claims.jsonl", lines(CLAIMS))
        made.writestr("/etc/other.txt", b"x")
    assert (
        import_release(tmp_path / "evil.zip", tmp_path / "deep/out", "test") == []
    )  # read, never unpacked by its name
    assert not (tmp_path / "claims.jsonl").exists()
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as made:
        info = zipfile.ZipInfo("claims.jsonl")
        info.external_attr = 0o120777 << 16
        made.writestr(info, b"/etc/passwd")
    assert "a link" in import_release(tmp_path / "link.zip", tmp_path / "out", "test")[0].what
