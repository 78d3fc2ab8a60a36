"""``runner task kit``: what is in the participants' package, that nothing hidden is, and that a participant gets along with it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.submissions.load import load_submission
from runner.tasks.load import load_task
from runner.views.kit.package import Kit, write_kit
from tests.worlds.mini import DOCUMENTS, TASK, Project, call_here

# What each package that a checker requires is made of, as it is installed.
_JSONSCHEMA = (
    "jsonschema", "jsonschema_specifications", "attr", "attrs", "referencing", "rpds", "idna", "typing_extensions.py",
)  # fmt: skip
REQUIRED = {"jiter": ("jiter",), "jsonschema": _JSONSCHEMA, "jsonschema-rs": ("jsonschema_rs",)}
CANARY = "canary-that-nobody-may-see"
ROOT = Path(__file__).parents[3]


def canary(place: str) -> str:
    return f"{CANARY} {place}\n"


@pytest.fixture
def planted(project: Project) -> Project:
    """A task with a baseline, and canaries wherever something is hidden or is nobody's business."""
    folder = project.write_task(
        licence="CC BY 4.0",
        contact="chair@example.org",
        tables=[
            {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10", "baseline": "base/line"}
        ],
    )
    project.software("line", team="base", image=None, build={"context": "."})
    baseline = project.root / "submissions/base/line"
    (baseline / "Dockerfile").write_text("FROM python:3.11-slim\nCOPY main.py /\n")
    (baseline / "main.py").write_text("print('a baseline')\n")
    (folder / "README.md").write_text("# Mini\n\nData: ours, CC BY 4.0.\n")
    (folder / "LICENSE").write_text("CC BY 4.0\n")
    for place, path in (
        ("truths", project.truths / "mini/test/judged-again.txt"),
        ("inputs", project.private / "mini/test/inputs/notes.txt"),
        ("private root", project.private / "other/secret.txt"),
        ("log", project.home / "archive/mini/run/attempts/1/logs/stdout.txt"),
        ("task folder", folder / "notes.txt"),
        ("dot file", baseline / ".env"),
        ("dot folder", baseline / ".git/config"),
        ("cache", baseline / "__pycache__/main.pyc"),
        ("other team", project.root / "submissions/alpha/mine/main.py"),
        ("project", project.root / "proctor-notes.md"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(canary(place))
    packed = project.private / "mini/test/inputs/packed.jsonl.gz"
    packed.write_bytes(gzip.compress(canary("packed").encode()))
    return project


def made(project: Project, out: Path, task: str = "mini") -> Kit:
    return write_kit(project.config, load_task(project.config, task), out)


def members(archive: str | Path) -> dict[str, bytes]:
    with tarfile.open(archive) as file:
        return {m.name: file.extractfile(m).read() for m in file}  # type: ignore[union-attr]


def every_byte(data: bytes, name: str = "") -> list[bytes]:
    """The data, and what is packed in them, however deep."""
    found = [name.encode(), data]
    if data[:2] == b"\x1f\x8b":
        found += every_byte(gzip.decompress(data))
    elif data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as inner:
            for member in inner:
                found += every_byte(inner.extractfile(member).read(), member.name)  # type: ignore[union-attr]
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for name in packed.namelist():
                found += every_byte(packed.read(name), name)
    return found


def test_the_terms_of_registration_are_in_it(planted: Project, tmp_path: Path) -> None:
    terms = {"file": "rules/terms.txt", "version": "1"}
    folder = planted.write_task(registration={"terms": terms})
    (folder / "rules").mkdir()
    (folder / "rules/terms.txt").write_text("Be fair.\n")
    with tarfile.open(made(planted, tmp_path / "out").archive) as archive:
        archive.extractall(tmp_path, filter="data")
    config = replace(planted.config, root=tmp_path / "mini-kit", private=None)
    assert load_task(config, "mini").definition["registration"]["terms"] == terms


def test_a_baseline_may_be_an_uploaded_run_file(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10", "baseline": "base/file"}
    check, kit = "task check mini", f"task kit mini --out {tmp_path / 'out'}"
    register = f"register --table {tmp_path / 'runs.csv'} --task mini"
    (tmp_path / "run.txt").write_text("test-1 Q0 doc-01 1 1.0 file\n")
    (tmp_path / "runs.csv").write_text("team,run,file,dataset\nbase,file,run.txt,test\n")
    project.write_task(tables=[table], uploads=True)
    for words, code in ((check, 4), (register, 0), (check, 0), (kit, 0)):
        said = call_here(project, words.split(), capsys)
        assert said.code == code and ("E402" in said.err) is (code == 4), said.all
    names = members(tmp_path / "out/mini-kit.tar.gz")
    assert not [name for name in names if "submissions/base" in name]
    project.write_task(tables=[table | {"baseline": "base/none"}], uploads=True)
    assert "E402" in call_here(project, kit.split(), capsys).err


def test_what_is_in_it(planted: Project, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    kit = made(planted, tmp_path / "out")
    assert kit.archive == str(tmp_path / "out/mini-kit.tar.gz") and kit.without == ("test: blinded",)
    files = {name.removeprefix("mini-kit/"): data for name, data in members(kit.archive).items()}
    ours = {name for name in files if not name.startswith(("checker/evaluator/", "checker/schemas/"))}
    assert ours == {
        *[
            "README.md",
            "RULES.md",
            "SHA256SUMS",
            "submissions/README.md",
            "checker/check.py",
            "checker/requirements.txt",
        ],
        *["checker/LICENSE", "checker/requests/dev.json", "tasks/mini/task.yaml", "tasks/mini/README.md"],
        *["tasks/mini/LICENSE", "tasks/mini/datasets/dev/truths/qrels.txt"],
        *(f"tasks/mini/datasets/dev/inputs/{name}" for name in ("queries.jsonl", "documents.jsonl.gz")),
        *(f"submissions/base/line/{name}" for name in ("submission.yaml", "Dockerfile", "main.py")),
    }
    texts = "\n".join(files[name].decode() for name in ("README.md", "RULES.md", "submissions/README.md"))
    golden("kit.md", texts)
    assert "| CC BY 4.0 |" in texts and "| chair@example.org |" in texts and "| terms |" not in texts
    listed = dict(line.split("  ")[::-1] for line in files["SHA256SUMS"].decode().splitlines())
    assert listed == {n: hashlib.sha256(d).hexdigest() for n, d in files.items() if n != "SHA256SUMS"}
    assert kit.sha256 == hashlib.sha256(Path(kit.archive).read_bytes()).hexdigest()
    assert kit.files == len(files)
    assert str(planted.root).encode() not in b"".join(files.values()), "no path of this machine"


def test_nothing_hidden_is_in_any_byte_of_it(planted: Project, tmp_path: Path) -> None:
    kit = made(planted, tmp_path / "out")
    found = every_byte(Path(kit.archive).read_bytes())
    hidden = [CANARY, "words of test-1", "test-1 0 doc-01"]
    assert any(b"words of dev-1" in data for data in found), "the search finds what is there"
    assert any(b'"doc-01"' in data for data in found), "also in packed members"
    for text in hidden:
        assert [data[:80] for data in found if text.encode() in data] == []


def test_the_same_files_are_the_same_bytes(planted: Project, tmp_path: Path) -> None:
    first = made(planted, tmp_path / "one")
    for path in planted.root.rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))
    old = os.umask(0o077)
    try:
        second = made(planted, tmp_path / "two")
    finally:
        os.umask(old)
    assert Path(first.archive).read_bytes() == Path(second.archive).read_bytes()
    assert first.sha256 == second.sha256


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\n(.*?)^```$", text, re.S | re.M)


Shell = Callable[[str], subprocess.CompletedProcess[str]]


def at_home(archive: str, home: Path) -> tuple[Path, Shell]:
    """Unpack a kit; return its folder and a shell whose Python has only what the checker requires."""
    home.mkdir()
    with tarfile.open(archive) as file:
        file.extractall(home, filter="data")
    (kit,) = home.iterdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kit / ".venv"], check=True)
    (site,) = kit.glob(".venv/lib/python*/site-packages")
    needed = Path(sysconfig.get_paths()["purelib"])
    for line in (kit / "checker/requirements.txt").read_text().split():
        for name in REQUIRED[line.partition("==")[0]]:
            (site / name).symlink_to(needed / name)
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}

    def shell(command: str) -> subprocess.CompletedProcess[str]:
        words = ["sh", "-c", command]
        return subprocess.run(
            words, cwd=kit, env=clean, capture_output=True, text=True, timeout=120, check=False
        )

    return kit, shell


def test_a_participant_checks_a_run_at_home(
    planted: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From an empty folder by the README alone, with nothing of ours but what is in the kit."""
    kit, shell = at_home(made(planted, tmp_path / "out").archive, tmp_path / "participant")
    sums, check, *_ = blocks((kit / "README.md").read_text())
    assert shell(sums).returncode == 0
    make, install, command = check.splitlines()
    assert install.endswith("-r checker/requirements.txt") and make == "python3 -m venv .venv"
    ours = shell(".venv/bin/python -c 'import evaluator'")
    assert ours.returncode != 0

    rows = [f"dev-{t} Q0 {d} {r} {20 - r} mine" for t in (1, 2, 3) for r, d in enumerate(DOCUMENTS[:3], 1)]
    (kit / "mine.txt").write_text("\n".join(rows) + "\n")
    good = shell(command.replace("RUN", "mine.txt"))
    assert (good.returncode, good.stderr) == (0, "") and "mine.txt" in good.stdout
    (kit / "bad.txt").write_text("dev-1 Q0 nowhere 1 2.0 mine\n")
    bad = shell(command.replace("RUN", "bad.txt"))
    assert bad.returncode == 1 and '"nowhere"' in bad.stdout and "F019" in bad.stdout
    told = shell(command.replace("RUN", "bad.txt --json"))
    assert told.returncode == 1 and json.loads(told.stdout)["status"] == "invalid"
    wrong = shell(command.replace("RUN", "nowhere.txt"))
    assert wrong.returncode == 2 and "nowhere.txt" in wrong.stderr
    assert not list(kit.rglob("__pycache__")), "the checksums still fit"
    # Where Proctor is installed, the folder is a project.
    there = Project(kit, tmp_path / "data", tmp_path / "none")
    assert call_here(there, ["check", str(kit / "mine.txt"), "--task", "mini"], capsys).code == 0
    assert call_here(there, ["task", "show", "mini", "--json"], capsys).json["title"] == "Mini"


@pytest.mark.parametrize("where", ["tasks/mini/README.md", "submissions/base/line/main.py"])
def test_text_of_hidden_data_stops_it(planted: Project, tmp_path: Path, where: str) -> None:
    with (planted.root / where).open("a") as file:
        file.write("# such as words of test-1\n")
    with pytest.raises(RunnerError) as caught:
        made(planted, tmp_path / "out")
    assert caught.value.code == "E411" and where in caught.value.why and "test-1" not in caught.value.why
    assert not (tmp_path / "out").exists()


def test_while_the_check_fails_there_is_none(planted: Project, tmp_path: Path) -> None:
    copy = planted.root / "tasks/mini/datasets/test/inputs"
    copy.mkdir(parents=True)
    (copy / "queries.jsonl").write_text("{}\n")
    with pytest.raises(RunnerError) as caught:
        made(planted, tmp_path / "out")
    assert caught.value.code == "E411" and not (tmp_path / "out").exists()


def test_what_is_not_ours_to_pass_on_stays_away(planted: Project, tmp_path: Path) -> None:
    """Files from elsewhere, though they are here, and run files of a baseline, which answer hidden topics."""
    datasets: list[dict[str, Any]] = json.loads(json.dumps(TASK["datasets"]))
    datasets[0]["sources"] = [{"path": "inputs/big.txt", "url": "https://x.example/big"}]
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10", "baseline": "base/run"}
    planted.write_task(datasets=datasets, tables=[table], uploads=True)
    (planted.root / "tasks/mini/datasets/dev/inputs/big.txt").write_text("licensed")
    (planted.root / "submissions/base/run").mkdir()
    (planted.root / "submissions/base/run/run.txt").write_text("test-1 Q0 doc-01 1 1.0 x\n")
    planted.software(
        "run", team="base", image=None, command=None, run=[{"file": "run.txt", "dataset": "test"}]
    )
    kit = made(planted, tmp_path / "out")
    names = [name for name in members(kit.archive) if "/base/" in name or "big" in name]
    assert names == ["mini-kit/submissions/base/run/submission.yaml"]
    assert kit.without == ("dev: inputs/big.txt (from elsewhere)", "test: blinded")


def test_the_command(planted: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["task", "kit", "mini", "--out", str(tmp_path / "kits")]
    said = call_here(planted, words, capsys)
    archive = tmp_path / "kits/mini-kit.tar.gz"
    assert said.out.strip() == str(archive) and "test: blinded" in said.err
    data = call_here(planted, [*words, "--json"], capsys).json
    assert data["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest() and data["sha256"] in said.err


@pytest.mark.parametrize("task", sorted(path.parent.name for path in ROOT.glob("tasks/*/task.yaml")))
def test_bundled_tasks_have_kits(tmp_path: Path, task: str) -> None:
    """Demos, too: what they call blinded stays away."""
    project = Project(ROOT, tmp_path / "home", tmp_path / "none")
    loaded = load_task(project.config, task)
    names = members(write_kit(project.config, loaded, tmp_path).archive)
    blinded = [d.id for d in loaded.datasets.values() if d.visibility == "blinded"]
    assert blinded and not [n for n in names for d in blinded if f"/datasets/{d}/" in n]
    sizes = {n: len(data) for n, data in names.items() if "/datasets/" in n}
    assert sizes and all(sizes.values())


RECORDS: dict[str, Any] = {
    "schema_version": 1,
    "id": "words",
    "title": "Words",
    "kind": "records",
    "demo": True,
    "output": "answers.csv",
    "datasets": [
        {"id": "dev", "visibility": "public", "topics": "texts.jsonl"},
        {"id": "test", "visibility": "blinded", "topics": "texts.jsonl"},
    ],
    "options": {
        "outputs": [
            {"path": "answers.csv", "schema": "answer.schema.json", "example": "examples/answers.csv"},
            {"path": "spans.jsonl", "schema": {"required": ["id", "start"]}, "example": "spans.txt"},
            {"path": "notes.jsonl", "schema": {}, "required": False},
        ]
    },
    "measures": [{"id": "accuracy", "measure": "Accuracy(label)", "truths": "labels.jsonl"}],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "accuracy"}],
}


def write_records(project: Project, **changes: Any) -> Path:
    """A task of records with three outputs, two of which have examples."""
    folder = project.root / "tasks/words"
    files = {
        "task.yaml": json.dumps({**RECORDS, **changes}),
        "answer.schema.json": json.dumps(
            {"properties": {"id": {"type": "string"}, "label": {"type": "string"}}}
        ),
        "examples/answers.csv": "id,label\ndev-1,kind\ndev-2,rude\n",
        "spans.txt": '{"id": "dev-1", "start": 3}\n',
    }
    for dataset in ("dev", "test"):
        ids = [f"{dataset}-{n}" for n in (1, 2, 3)]
        files[f"datasets/{dataset}/inputs/texts.jsonl"] = "".join(
            json.dumps({"id": i, "text": "x"}) + "\n" for i in ids
        )
        truths = "".join(json.dumps({"id": i, "label": "kind"}) + "\n" for i in ids)
        files[f"datasets/{dataset}/truths/labels.jsonl"] = truths
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_participant_begins_with_the_examples_of_all_outputs(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stub of the kit writes every example, and the checker accepts them; by the README alone."""
    write_records(project)
    kit, shell = at_home(made(project, tmp_path / "out", "words").archive, tmp_path / "home")
    begin = next(text for text in blocks((kit / "README.md").read_text()) if "main.py" in text)
    done = shell(begin)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {p.name: p.read_text() for p in (kit / "out").iterdir()} == {
        "answers.csv": "id,label\ndev-1,kind\ndev-2,rude\n",
        "spans.jsonl": '{"id": "dev-1", "start": 3}\n',
    }
    assert "answers.csv" in done.stdout and "error" not in done.stdout
    (kit / "out/spans.jsonl").write_text('{"id": "dev-1"}\n{"id": "dev-9", "start": 3}\n')
    (kit / "out/answers.csv").write_text("id,label\ndev-1,kind\ndev-1,rude\n")
    check = begin.strip().splitlines()[-1]
    wrong = shell(check)
    said = ("row 2", '"dev-1"', "spans.jsonl", "start", "dev-9")
    assert wrong.returncode == 1 and all(one in wrong.stdout for one in said), wrong.stdout
    # Where Proctor is installed, the folder is a project with a software in it.
    there = Project(kit, tmp_path / "data", tmp_path / "none")
    shown = call_here(there, ["task", "show", "words"], capsys)
    assert shown.code == 0 and "spans.jsonl" in shown.out
    found = load_submission(there.config, "my-team", "stub", {"words": load_task(there.config, "words")})
    assert found.build is not None and found.task == "words"


def test_without_examples_there_is_no_stub(project: Project, tmp_path: Path) -> None:
    options = {"outputs": [{"path": "answers.csv", "schema": "answer.schema.json"}]}
    write_records(project, options=options)
    archive = made(project, tmp_path / "out", "words").archive
    names = [name.removeprefix("words-kit/") for name in members(archive)]
    assert "tasks/words/answer.schema.json" in names and not [n for n in names if "my-team" in n]
    assert "my-team" not in members(archive)["words-kit/README.md"].decode()
    write_records(project, workflow="upload")  # nobody runs anything there
    names = [*members(made(project, tmp_path / "again", "words").archive)]
    assert "words-kit/tasks/words/examples/answers.csv" in names and not [n for n in names if "my-team" in n]


@pytest.mark.parametrize(
    "task",
    [p.parent.name for p in sorted(ROOT.glob("tasks/*/task.yaml")) if "\nkind: records" in p.read_text()],
)
def test_stubs_of_bundled_tasks_are_valid(tmp_path: Path, task: str) -> None:
    project = Project(ROOT, tmp_path / "home", tmp_path / "none")
    kit, shell = at_home(made(project, tmp_path / "out", task).archive, tmp_path / "participant")
    begin = next(text for text in blocks((kit / "README.md").read_text()) if "main.py" in text)
    done = shell(begin)
    assert done.returncode == 0, done.stdout + done.stderr
