"""What of a task's data is offered: nothing that is not named, and nothing hidden, whatever a task.yaml says."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runner.exchange.published import LONGEST as PATH
from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.tasks.transfer.offers import LONGEST, hidden_files, offers, read_hidden
from tests.worlds.mini import TASK, Project, call_here

BOTH = {"inputs": "everybody", "truths": "teams"}


def write(project: Project, *downloads: dict[str, str] | None, **changes: Any) -> None:
    rows = [
        {**row, **({"downloads": to} if to else {}), **changes.get(row["id"], {})}
        for row, to in zip(TASK["datasets"], downloads, strict=True)
    ]
    project.write_task(datasets=rows)


def test_only_named_files_are_offered(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, None, None)
    assert offers(load_task(project.config, "mini")) == []
    write(project, {"inputs": "everybody"}, None)
    found = offers(load_task(project.config, "mini"))
    assert {(one.place, one.to) for one in found} == {
        ("inputs/documents.jsonl.gz", "everybody"),
        ("inputs/queries.jsonl", "everybody"),
    }
    write(project, BOTH, None)
    (project.root / "tasks/mini/datasets/dev/inputs/.notes").write_text("mine")
    found = offers(load_task(project.config, "mini"))
    assert [one.place for one in found if one.to == "teams"] == ["truths/qrels.txt"]
    assert ".notes" not in {one.name for one in found}
    assert call_here(project, ["task", "check", "mini"], capsys).code == 0


@pytest.mark.parametrize(("side", "code"), [("inputs", "E411"), ("truths", "E403")])
def test_what_is_hidden_cannot_be_offered(
    project: Project, capsys: pytest.CaptureFixture[str], side: str, code: str
) -> None:
    write(project, None, {side: "teams"})
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code != 0
    assert all(words in said.all for words in (code, "task.yaml:", "visibility: public"))
    write(project, None, None)
    task = load_task(project.config, "mini")  # as if loading had not looked
    hidden = replace(task.datasets["test"], downloads={side: "everybody"})
    with pytest.raises(RunnerError, check=lambda error: error.code == code):
        offers(replace(task, datasets={**task.datasets, "test": hidden}))


def test_no_folder_around_hidden_ones(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """In a demo what is hidden lies in the task's folder, too."""
    rows = [{**TASK["datasets"][0], "inputs": "datasets", "downloads": BOTH}, TASK["datasets"][1]]
    project.write_task(datasets=rows, demo=True)
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code != 0 and "E403" in said.all and '"dev"' in said.all and '"test"' in said.all


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("what", ["truths", "topics"])
def test_a_copy_of_a_hidden_file_is_found(
    project: Project, capsys: pytest.CaptureFixture[str], what: str, packed: bool
) -> None:
    write(project, BOTH, None)
    folder = project.root / "tasks/mini/datasets/dev/inputs"
    truths, topics = (
        project.truths / "mini/test/qrels.txt",
        project.private / "mini/test/inputs/queries.jsonl",
    )
    source = truths if what == "truths" else topics
    copy = folder / "more.gz"
    if packed:
        copy.write_bytes(gzip.compress(source.read_bytes()))
    else:
        shutil.copy(source, copy)
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code != 0 and "more.gz" in said.all and "E403" in said.all
    task = load_task(project.config, "mini")
    hidden = read_hidden(hidden_files([task]))
    for offer in offers(task):
        if offer.name == "more.gz":
            with pytest.raises(RunnerError, check=lambda error: error.code == "E403"):
                hidden.refuse(offer)
        else:
            hidden.refuse(offer)


def _zipped(content: bytes, password: bool = False) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("notes.txt", content)
    found = bytearray(made.getvalue())
    if password:  # as its two headers say it
        found[6] |= 1
        found[found.index(b"PK\x01\x02") + 8] |= 1
    return bytes(found)


def _tarred(content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo("notes.gz")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


@pytest.mark.parametrize(
    ("pack", "said"),
    [
        (lambda truths: _zipped(gzip.compress(truths)), "truths"),
        (lambda truths: _tarred(gzip.compress(truths)), "truths"),
        (lambda truths: _zipped(truths, password=True), "password"),
        (lambda truths: _zipped(truths).replace(b"PK\x01\x02", b"PK\x01\x03"), "damaged"),
        (lambda truths: gzip.compress(truths * 2)[:-4], "damaged"),
        (lambda truths: b"\x28\xb5\x2f\xfd" + truths, "Zstandard"),
    ],
    ids=["gzip in zip", "gzip in tar", "password", "damaged zip", "cut gzip", "zstd"],
)
def test_what_may_hold_something_hidden_is_not_offered(
    project: Project, pack: Callable[[bytes], bytes], said: str
) -> None:
    write(project, BOTH, None)
    truths = (project.truths / "mini/test/qrels.txt").read_bytes()
    more = project.root / "tasks/mini/datasets/dev/inputs/more.dat"
    more.write_bytes(pack(truths))
    task = load_task(project.config, "mini")
    offer = next(one for one in offers(task) if one.name == "more.dat")
    with pytest.raises(RunnerError) as error:
        read_hidden(hidden_files([task])).refuse(offer)
    assert error.value.code == "E403" and said in f"{error.value.what} {error.value.why}"


def test_archives_with_other_things_are_offered(project: Project) -> None:
    write(project, BOTH, None)
    folder = project.root / "tasks/mini/datasets/dev/inputs"
    for name, content in {
        "a.zip": _zipped(b"notes" * 99),
        "a.tar.gz": _tarred(gzip.compress(b"notes" * 99)),
        "a.gz": gzip.compress(b"notes" * 10**6),
    }.items():
        (folder / name).write_bytes(content)
    task = load_task(project.config, "mini")
    hidden = read_hidden(hidden_files([task]))
    found = offers(task)
    assert len(found) == 6
    for one in found:
        hidden.refuse(one)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a b;$(x).txt", "a b;$(x).txt"),
        ("/".join(["n" * 99] * 5), "400"),
        ("Queries.jsonl", "Queries.jsonl"),
    ],
)
def test_names_must_be_valid_in_addresses_and_file_systems(
    project: Project, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    write(project, BOTH, None)
    path = project.root / "tasks/mini/datasets/dev/inputs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code != 0 and "E402" in said.all and why in said.all


def test_the_longest_name_is_found_where_it_is_published() -> None:
    assert len(f"data/{'t' * 40}/{'d' * 40}/inputs/") + LONGEST <= PATH


def test_what_comes_from_elsewhere_is_not_passed_on(project: Project) -> None:
    source = {"path": "inputs/documents.jsonl.gz", "url": "https://data.example.org/d.gz"}
    write(project, BOTH, None, dev={"sources": [source]})
    assert "inputs/documents.jsonl.gz" not in {one.place for one in offers(load_task(project.config, "mini"))}
