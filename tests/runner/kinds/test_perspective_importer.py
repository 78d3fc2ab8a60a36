"""Importing releases of Perspective Argument Retrieval 2024. The fixtures are written by hand from its formats."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.kinds import release
from runner.kinds.diversity.importer import import_release

# Two arguments that differ in everything, as the official files have them.
CORPUS = r"""
{"argument_id": 201900, "argument": "Jede soll das selbst entscheiden.", "topic": "Healthcare", "stance": "AGAINST", "demographic_profile": {"gender": "Männlich", "age": "50-64", "residence": "Land", "civil_status": "Verheiratet", "denomination": "Nicht bekannt", "education": "Universität", "political_spectrum": "Rechts und Konservativ", "important_political_issues": ["Restriktive Finanzpolitik", "Law & Order", "Liberale Wirtschaftspolitik", "Restriktive Migrationspolitik"]}}
{"argument_id": 2019010, "argument": "La santé d'abord.", "topic": "Healthcare", "stance": "FAVOR", "demographic_profile": {"gender": "Weiblich", "age": "18-34", "residence": "Stadt", "civil_status": "Ledig", "denomination": "Konfessionslos", "education": "Nicht bekannt", "political_spectrum": "Links und Liberal", "important_political_issues": ["Offene Aussenpolitik", "Ausgebauter Umweltschutz", "Ausgebauter Sozialstaat", "Liberale Gesellschaft"]}}
""".lstrip()
QUESTION = "Soll Zucker besteuert werden?"
BASELINE = (
    '{"query_id": 0, "text": "Soll Zucker besteuert werden?", "relevant_candidates": [201900, 2019010]}\n'
)
PERSPECTIVE = (
    '{"query_id": 201910, "text": "Soll Zucker besteuert werden?", "demographic_property": {"age_bin": "18-34"}, "relevant_candidates": [2019010]}\n'
    '{"query_id": 201911, "text": "Soll Zucker besteuert werden?", "demographic_property": {"important_political_issue": "Law & Order"}, "relevant_candidates": [201900]}\n'
)
OFFICIAL = {
    "corpus.jsonl": CORPUS,
    **{f"baseline-queries/queries_{split}.jsonl": BASELINE for split in ("train", "dev", "test")},
    **{f"perspective-queries/queries_{split}.jsonl": PERSPECTIVE for split in ("train", "dev", "test")},
}

# The same in the form that the README shows.
README = {
    "corpus.jsonl": json.dumps(
        [
            {
                "argument_id": str(row["argument_id"]),
                "text": row["argument"],
                "target": QUESTION,
                "stance": {"AGAINST": "CON"}.get(row["stance"], row["stance"]),
                "demographic_profile": row["demographic_profile"],
            }
            for row in map(json.loads, CORPUS.splitlines())
        ],
        indent=2,
    ),
    "baseline-queries/queries_dev.jsonl": f"[{BASELINE}]",
    "perspective-queries/queries_dev.jsonl": json.dumps([
        {"query_id": "201910", "text": QUESTION, "demographic_properties": {"age": "18-34"}, "relevant_candidates": ["2019010"]},
    ]),
}  # fmt: skip


def folder(path: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def archive(path: Path, files: Mapping[str, str | bytes], prefix: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(prefix + name, text)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tree(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}


MAC = {"__MACOSX/._corpus.jsonl": b"\0\5\26\7", "__MACOSX/x/corpus.jsonl": b"no", ".DS_Store": b"\0"}


@pytest.mark.parametrize(
    "make",
    [
        lambda p: folder(p / "r", OFFICIAL),
        lambda p: folder(p / "r", {f"data-release/{k}": v for k, v in OFFICIAL.items()} | MAC).parent / "r",
        lambda p: archive(p / "r.zip", OFFICIAL),
        lambda p: archive(p / "r.zip", {f"data-release-v1.5/{k}": v for k, v in OFFICIAL.items()} | MAC),
        lambda p: folder(p / "r", {k: "\ufeff" + v.replace("\n", "\r\n") for k, v in OFFICIAL.items()}),
    ],
)
def test_the_official_release_as_it_is(make: Callable[[Path], Path], tmp_path: Path) -> None:
    target = tmp_path / "dataset"
    assert import_release(make(tmp_path), target, "dev") == []
    assert tree(target) == {
        "inputs/corpus.jsonl", "truths/corpus.jsonl",
        "inputs/baseline-queries/queries_train.jsonl", "inputs/baseline-queries/queries_dev.jsonl",
        "inputs/perspective-queries/queries_train.jsonl", "inputs/perspective-queries/queries_dev.jsonl",
        "truths/baseline-queries/queries_dev.jsonl", "truths/perspective-queries/queries_dev.jsonl",
    }  # fmt: skip
    assert rows(target / "truths" / "corpus.jsonl") == [json.loads(line) for line in CORPUS.splitlines()]
    shown = rows(target / "inputs" / "perspective-queries" / "queries_dev.jsonl")
    assert [set(r) for r in shown] == [{"query_id", "text", "demographic_property"}] * 2
    assert "relevant_candidates" in rows(target / "inputs" / "perspective-queries" / "queries_train.jsonl")[0]
    assert rows(target / "truths" / "perspective-queries" / "queries_dev.jsonl") == [
        json.loads(line) for line in PERSPECTIVE.splitlines()
    ]


def test_the_form_of_the_readme(tmp_path: Path) -> None:
    target = tmp_path / "dataset"
    assert import_release(folder(tmp_path / "r", README), target, "dev") == []
    corpus = rows(target / "truths" / "corpus.jsonl")
    expected = [json.loads(line) for line in CORPUS.splitlines()]
    assert corpus == [{**row, "topic": QUESTION} for row in expected]
    (query,) = rows(target / "truths" / "perspective-queries" / "queries_dev.jsonl")
    assert query == json.loads(PERSPECTIVE.splitlines()[0])


def test_what_is_imported_can_be_evaluated(tmp_path: Path) -> None:
    import_release(folder(tmp_path / "r", README), tmp_path / "dataset", "dev")
    run = tmp_path / "run.jsonl"
    run.write_text('{"query_id": 201910, "relevant_candidates": [2019010]}\n')
    words = ["perspective", "--data", str(tmp_path / "dataset/truths"), "--predictions", str(run), "--json"]
    words += ["--scenario", "implicit", "--split", "dev", "--output", str(tmp_path / "out")]
    command = [sys.executable, "-m", "evaluator", *words]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["relevance"][0]["ndcg@k"] == 1.0


def test_truths_may_lie_elsewhere_and_test_relevance_stays_out(tmp_path: Path) -> None:
    target, truths = tmp_path / "dataset", tmp_path / "secret" / "truths"
    assert import_release(folder(tmp_path / "r", OFFICIAL), target, "test", truths=truths) == []
    queries = {f"{kind}-queries/queries_test.jsonl" for kind in ("baseline", "perspective")}
    assert tree(truths) == {"corpus.jsonl", *queries}
    assert not (target / "truths").exists()
    assert "relevant_candidates" not in rows(target / "inputs" / "baseline-queries" / "queries_test.jsonl")[0]


def changed(name: str, old: str, new: str) -> dict[str, str | bytes]:
    assert old in OFFICIAL[name]
    return {**OFFICIAL, name: OFFICIAL[name].replace(old, new, 1)}


C, B, P = "corpus.jsonl", "baseline-queries/queries_dev.jsonl", "perspective-queries/queries_dev.jsonl"


@pytest.mark.parametrize(
    ("files", "where", "what"),
    [
        (changed(C, '"argument_id": 2019010', '"argument_id": 201900'), f"{C}:2", "201900"),
        (changed(C, '"argument_id": 2019010', '"argument_id": "x"'), f"{C}:2", "argument_id"),
        (changed(C, '"topic": "Healthcare", ', ""), f"{C}:1", "topic"),
        (changed(C, '"topic"', '"language": "de", "topic"'), f"{C}:1", "language"),
        (changed(C, '"AGAINST"', '"MAYBE"'), f"{C}:1", "stance"),
        (changed(C, '"important_political_issues"', '"issues"'), f"{C}:1", "issues"),
        (changed(C, '["Offene', '[7, "Offene'), f"{C}:2", "important_political_issues"),
        (changed(C, '"Healthcare", "stance"', '"Healthcare "stance"'), f"{C}:1", "JSON"),
        (changed(B, "2019010", "424242"), f"{B}:1", "424242"),
        (changed(B, ', "relevant_candidates": [201900, 2019010]', ""), f"{B}:1", "relevant_candidates"),
        (changed(P, "201911", "201910"), f"{P}:2", "201910"),
        (changed(P, '"age_bin"', '"party"'), f"{P}:1", "party"),
        (changed(P, '{"age_bin": "18-34"}', '{"age_bin": "18-34", "gender": "x"}'), f"{P}:1", ""),
        ({**OFFICIAL, B: "[1, 2"}, f"{B}:1", ""),
        ({**OFFICIAL, B: '[\n{"query_id": }]'}, f"{B}:2", ""),
        ({**OFFICIAL, B: b'\n{"\xff'}, f"{B}:2", "UTF-8"),
        ({**OFFICIAL, B: ""}, B, ""),
        ({k: v for k, v in OFFICIAL.items() if k != P}, P, ""),
        ({k: v for k, v in OFFICIAL.items() if k != C}, "r", ""),
        ({**OFFICIAL, "again/corpus.jsonl": CORPUS}, "r", "corpus.jsonl"),
    ],
)  # fmt: skip
def test_problems_have_a_place(files: dict[str, str | bytes], where: str, what: str, tmp_path: Path) -> None:
    problems = import_release(folder(tmp_path / "r", files), tmp_path / "dataset", "dev")
    assert any(p.where == where and what in p.what for p in problems), problems
    assert not (tmp_path / "dataset").exists() or tree(tmp_path / "dataset") == set()


def test_all_problems_are_counted(tmp_path: Path) -> None:
    files = {**OFFICIAL, B: "oops\n" * 500}
    problems = import_release(folder(tmp_path / "r", files), tmp_path / "dataset", "dev")
    assert len(problems) == 51 and "450" in problems[-1].what


@pytest.mark.parametrize("name", ["../evil.jsonl", "/evil.jsonl", "C:/evil.jsonl", "a\\..\\..\\evil.jsonl"])
def test_archives_that_lead_outside_are_refused(name: str, tmp_path: Path) -> None:
    source = archive(tmp_path / "r.zip", {**OFFICIAL, name: "x"})
    assert len(import_release(source, tmp_path / "dataset", "dev")) == 1
    assert tree(tmp_path) == {"r.zip"}


def test_archives_with_links_copies_damage_or_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "link.zip", OFFICIAL)
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as made:
        made.writestr(link, "/etc/passwd")
    assert len(import_release(path, tmp_path / "d", "dev")) == 1

    path = archive(tmp_path / "twice.zip", OFFICIAL)
    with zipfile.ZipFile(path, "a") as made, pytest.warns(UserWarning):
        made.writestr("corpus.jsonl", "")
    assert len(import_release(path, tmp_path / "d", "dev")) == 1

    path = archive(tmp_path / "damaged.zip", OFFICIAL)
    content = bytearray(path.read_bytes())
    content[60:90] = b"\0" * 30
    path.write_bytes(content)
    assert import_release(path, tmp_path / "d", "dev")
    path.write_bytes(b"PK no zip")
    assert len(import_release(path, tmp_path / "d", "dev")) == 1

    monkeypatch.setattr(release, "MAX_FILE", 10_000)
    path = archive(tmp_path / "bomb.zip", {**OFFICIAL, "notes.bin": b" " * 5_000_000})
    assert len(import_release(path, tmp_path / "d", "dev")) == 1
    assert not (tmp_path / "d").exists()
    path = archive(tmp_path / "small.zip", {**OFFICIAL, "notes.bin": b" " * 5_000})
    assert import_release(path, tmp_path / "d", "dev") == []


def tarred(path: Path, files: dict[str, str | bytes], mode: Any = "w:gz") -> Path:
    with tarfile.open(path, mode) as made:
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return path


def packed(files: dict[str, Any], ending: str) -> dict[str, str | bytes]:
    return {f"{k}{ending}": gzip.compress(v.encode()) for k, v in files.items()}


@pytest.mark.parametrize(
    "make",
    [
        lambda p: tarred(p / "release.zip", OFFICIAL),
        lambda p: archive(p / "release.tar.gz", OFFICIAL),
        lambda p: tarred(p / "release.tgz", {f"v1/{k}": v for k, v in OFFICIAL.items()}),
        lambda p: tarred(p / "release", OFFICIAL, "w:xz"),
        lambda p: tarred(p / "release.gz", OFFICIAL, "w"),
        lambda p: folder(p / "r", packed(OFFICIAL, ".gz")),
        lambda p: folder(p / "r", packed(OFFICIAL, ".gzip")),
        lambda p: folder(p / "r", packed(OFFICIAL, "")),
        lambda p: tarred(p / "release.zip", packed(OFFICIAL, ".gzip")),
        lambda p: folder(p / "r", {k.removesuffix(".jsonl"): v for k, v in OFFICIAL.items()}),
    ],
)
def test_the_content_of_a_release_decides(make: Callable[[Path], Path], tmp_path: Path) -> None:
    assert import_release(folder(tmp_path / "plain", OFFICIAL), tmp_path / "wanted", "dev") == []
    said: list[str] = []
    assert import_release(make(tmp_path), tmp_path / "dataset", "dev", say=said.append) == []
    assert tree(tmp_path / "dataset") == tree(tmp_path / "wanted")
    for name in tree(tmp_path / "wanted"):
        assert (tmp_path / "dataset" / name).read_bytes() == (tmp_path / "wanted" / name).read_bytes()
    assert not any(line.startswith("passed over") and "corpus" in line for line in said)


def test_what_is_passed_over_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    more = {"README.md": "# x", "baseline-queries/queries_dev.csv": "1", "evil\x1b[31m": "x"}
    source = folder(tmp_path / "r", {**OFFICIAL, **more} | MAC)
    assert import_release(source, tmp_path / "d", "dev", say=said.append) == []
    (line,) = [line for line in said if line.startswith("passed over")]
    assert "README.md" in line and "baseline-queries/queries_dev.csv" in line and "corpus" not in line
    assert "\x1b" not in line and ".DS_Store" not in line


def test_two_files_that_could_be_meant_are_a_problem(tmp_path: Path) -> None:
    source = folder(tmp_path / "r", {**OFFICIAL, "corpus.jsonl.gz": gzip.compress(b"{}")})
    (problem,) = import_release(source, tmp_path / "d", "dev")
    assert "corpus.jsonl" in problem.what and "corpus.jsonl.gz" in problem.what


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('"residence": "Stadt"', '"residence": "Land"', "residence"),
        ('"Offene Aussenpolitik", ', "", "Offene Aussenpolitik"),
    ],
)
def test_a_property_with_one_value_is_named(old: str, new: str, name: str, tmp_path: Path) -> None:
    said: list[str] = []
    source = folder(tmp_path / "r", changed(C, old, new))
    assert import_release(source, tmp_path / "d", "dev", say=said.append) == []
    assert any(name in line and not line.startswith("passed over") for line in said)


@pytest.mark.parametrize("kind", ["outside", "link", "device", "twice", "damaged"])
def test_tar_archives_with_links_copies_or_damage_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "r.tar"
    with tarfile.open(path, "w:gz" if kind == "damaged" else "w") as made:
        for name, text in OFFICIAL.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            made.addfile(member, io.BytesIO(text.encode()))
        member = tarfile.TarInfo({"outside": "../../evil", "twice": "corpus.jsonl"}.get(kind, "x"))
        member.type = {"link": tarfile.SYMTYPE, "device": tarfile.CHRTYPE}.get(kind, tarfile.REGTYPE)
        member.linkname = "/etc/passwd" if kind == "link" else ""
        made.addfile(member)
    if kind == "damaged":
        path.write_bytes(path.read_bytes()[:-200])
    assert len(import_release(path, tmp_path / "d", "dev")) == 1
    assert tree(tmp_path) == {"r.tar"}


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    source = folder(tmp_path / "r", OFFICIAL)
    assert import_release(source, tmp_path / "d", "dev") == []
    before = (tmp_path / "d" / "inputs" / "corpus.jsonl").stat()
    assert "already" in import_release(source, tmp_path / "d", "dev")[0].what
    assert (tmp_path / "d" / "inputs" / "corpus.jsonl").stat() == before
    assert sorted(os.listdir(tmp_path / "d")) == ["inputs", "truths"]
