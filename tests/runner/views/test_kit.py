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
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.views.kit.package import Kit, write_kit
from tests.worlds.mini import DOCUMENTS, TASK, Project, call

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


def test_what_is_in_it(planted: Project, tmp_path: Path) -> None:
    kit = made(planted, tmp_path / "out")
    assert kit.archive == str(tmp_path / "out/mini-kit.tar.gz") and kit.without == ("test: blinded",)
    files = {name.removeprefix("mini-kit/"): data for name, data in members(kit.archive).items()}
    assert {name for name in files if not name.startswith(("checker/evaluator/", "checker/schemas/"))} == {
        *("README.md", "RULES.md", "SHA256SUMS", "submissions/README.md"),
        *(
            f"tasks/mini/{name}"
            for name in ("task.yaml", "README.md", "LICENSE", "datasets/dev/truths/qrels.txt")
        ),
        *(f"tasks/mini/datasets/dev/inputs/{name}" for name in ("queries.jsonl", "documents.jsonl.gz")),
        *(f"submissions/base/line/{name}" for name in ("submission.yaml", "Dockerfile", "main.py")),
        *(f"checker/{name}" for name in ("check.py", "requirements.txt", "LICENSE", "requests/dev.json")),
    }
    readme = files["README.md"].decode()
    assert "| licence of the data | CC BY 4.0 |" in readme and "| whom to ask | chair@example.org |" in readme
    assert "| terms |" not in readme, "nothing is said of them"
    assert "nDCG@10" in files["RULES.md"].decode() and "64 MiB of memory" in files["RULES.md"].decode()
    listed = dict(line.split("  ")[::-1] for line in files["SHA256SUMS"].decode().splitlines())
    assert listed == {n: hashlib.sha256(d).hexdigest() for n, d in files.items() if n != "SHA256SUMS"}
    assert kit.sha256 == hashlib.sha256(Path(kit.archive).read_bytes()).hexdigest() and kit.files == len(
        files
    )
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
    assert (
        Path(first.archive).read_bytes() == Path(second.archive).read_bytes()
        and first.sha256 == second.sha256
    )


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\n(.*?)^```$", text, re.S | re.M)


def test_a_participant_checks_a_run_at_home(planted: Project, tmp_path: Path) -> None:
    """From an empty folder by the README alone, with nothing of ours but what is in the kit."""
    archive = made(planted, tmp_path / "out").archive
    home = tmp_path / "home-of-a-participant"
    home.mkdir()
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}

    def shell(command: str, folder: Path = home) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert shell(f"tar xzf {archive}").returncode == 0
    kit = home / "mini-kit"
    sums, check, *_ = blocks((kit / "README.md").read_text())
    assert shell(sums, kit).returncode == 0
    make, install, command = check.splitlines()
    # What is needed is taken from here instead of the package index; nothing else of ours is found.
    assert install.endswith("-r checker/requirements.txt") and make == "python3 -m venv .venv"
    assert shell(f"{sys.executable} -m venv --without-pip .venv", kit).returncode == 0
    (site,) = kit.glob(".venv/lib/python*/site-packages")
    needed = Path(sysconfig.get_paths()["purelib"])
    for package in (
        "jiter",
        "jsonschema",
        "jsonschema_rs",
        "jsonschema_specifications",
        "attr",
        "attrs",
        "referencing",
        "rpds",
        "idna",
    ):
        (site / package).symlink_to(needed / package)
    (site / "typing_extensions.py").symlink_to(needed / "typing_extensions.py")
    assert shell(".venv/bin/python -c 'import evaluator'").returncode != 0

    rows = [f"dev-{t} Q0 {d} {r} {20 - r} mine" for t in (1, 2, 3) for r, d in enumerate(DOCUMENTS[:3], 1)]
    (kit / "mine.txt").write_text("\n".join(rows) + "\n")
    good = shell(command.replace("RUN", "mine.txt"), kit)
    assert (good.returncode, good.stderr) == (0, "") and "mine.txt" in good.stdout
    (kit / "mine.txt").write_text("dev-1 Q0 nowhere 1 2.0 mine\n")
    bad = shell(command.replace("RUN", "mine.txt"), kit)
    assert bad.returncode == 1 and 'the dataset has no document "nowhere"' in bad.stdout
    told = shell(command.replace("RUN", "mine.txt --json"), kit)
    assert told.returncode == 1 and json.loads(told.stdout)["status"] == "invalid"
    wrong = shell(command.replace("RUN", "nowhere.txt"), kit)
    assert wrong.returncode == 2 and "is no file" in wrong.stderr
    assert not list(kit.rglob("__pycache__")), "the checksums still fit"
    # Where Proctor is installed, the folder is a project.
    (kit / "mine.txt").write_text("\n".join(rows) + "\n")
    there = Project(kit, tmp_path / "data", tmp_path / "none")
    assert call(there, "check", str(kit / "mine.txt"), "--task", "mini").code == 0
    assert call(there, "task", "show", "mini").out.startswith("mini: Mini")


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


def test_the_command(planted: Project, tmp_path: Path) -> None:
    said = call(planted, "task", "kit", "mini", "--out", str(tmp_path / "kits"))
    archive = tmp_path / "kits/mini-kit.tar.gz"
    assert said.out.strip() == str(archive) and "not in it: test: blinded" in said.err
    data = call(planted, "task", "kit", "mini", "--out", str(tmp_path / "kits"), "--json").json
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
