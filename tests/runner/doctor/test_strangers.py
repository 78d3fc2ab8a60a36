"""The alarm for what strangers would see of blinded data: canaries are planted wherever something is handed out."""

from __future__ import annotations

import gzip
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from runner.model.config import Config
from runner.submissions.source import history
from tests.runner.doctor.conftest import SECRET
from tests.worlds.repository import git, require_git


@pytest.mark.parametrize("side", ["inputs", "truths"])
def test_hidden_data_in_the_tree_are_an_alarm(look: Any, config: Config, side: str) -> None:
    """Also copies that nothing uses."""
    copy = config.tasks / "toy" / "datasets" / "test" / side
    copy.mkdir(parents=True)
    (copy / "left.txt").write_text("x")
    statuses, said = look()
    assert statuses["strangers: tree"] == statuses["hidden data"] == "FAIL"
    assert f"ALARM: {side} of test" in said["strangers: tree"]
    assert "hide toy" in said["strangers: tree"]


def test_what_hidden_judgments_quote_of_a_public_corpus_is_no_alarm(look: Any, config: Config) -> None:
    """Nuggets are words of documents, and name them. A hidden topic that a document has is an alarm anywhere else."""
    data = json.loads((config.tasks / "toy" / "task.yaml").read_text())
    data["datasets"][0]["corpus"] = "documents.jsonl.gz"
    corpus = config.tasks / "toy" / "datasets" / "dev" / "inputs" / "documents.jsonl.gz"
    short = "gilded feathers"
    text = f"Nobody knows {SECRET}, and why, but for some with {short} on them."
    with gzip.open(corpus, "wb") as file:
        # The first is shown to all.
        for name, words in (("first", "Some words."), ("document-of-owls", text)):
            file.write(json.dumps({"docno": name, "text": words}).encode() + b"\n")
    assert config.private is not None
    hidden = config.private / "toy" / "test" / "truths"
    nugget = {"answer": short, "doc_id": "document-of-owls"}
    (hidden / "nuggets.json").write_text(json.dumps(nugget, indent=1))
    (config.tasks / "toy" / "notes.md").write_text(f"{short}\n")
    statuses, said = look(datasets=data["datasets"])
    assert statuses["strangers: test"] == "PASS", said["strangers: test"]
    (config.tasks / "toy" / "notes.md").write_text(f"Among others {SECRET}.\n")
    assert "notes.md" in look()[1]["strangers: test"]
    other = "which colour the gate of the harbour has"
    (hidden / "notes.json").write_text(json.dumps({"answer": other}, indent=1))
    corpus.with_name("notes.txt").write_text(f"We know {other}.\n")
    assert "datasets/dev/inputs/notes.txt" in look()[1]["strangers: test"]
    corpus.with_name("notes.txt").unlink()
    (config.tasks / "toy" / "notes.md").unlink()
    assert look()[0]["strangers: test"] == "PASS"
    old = config.tasks / "toy" / "old-datasets" / "dev" / "inputs"  # a path that only ends alike
    old.mkdir(parents=True)
    (old / corpus.name).write_bytes(corpus.read_bytes())
    assert "old-datasets/dev/inputs/documents.jsonl.gz" in look()[1]["strangers: test"]


@pytest.fixture
def repository(config: Config) -> Path:
    """The project as a repository with one commit."""
    require_git()
    git(config.root, "init", "-q")
    (config.root / ".gitignore").write_text("tasks/toy/datasets/test/\n")
    commit(config.root, "begin")
    return config.root


def commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


@pytest.mark.parametrize("where", ["README.md", "notes/old.jsonl", "task.yaml"])
def test_hidden_text_that_strangers_see_is_an_alarm(look: Any, config: Config, where: str) -> None:
    changes = {}
    if where == "task.yaml":
        changes = {"description": f"Say {SECRET}."}
    else:
        file = config.tasks / "toy" / where
        file.parent.mkdir(exist_ok=True)
        file.write_text(SECRET if where == "README.md" else json.dumps({"text": SECRET}) + "\n")
    statuses, said = look(**changes)
    assert statuses["strangers: test"] == "FAIL" and "ALARM" in said["strangers: test"]
    assert where in said["strangers: test"] and SECRET not in said["strangers: test"]


def test_a_text_that_is_public_anyway_is_none(look: Any, config: Config) -> None:
    dev = config.tasks / "toy" / "datasets" / "dev" / "inputs" / "queries.jsonl"
    dev.write_text(json.dumps({"qid": "dev-1", "query": SECRET}) + "\n")
    assert look()[0]["strangers: test"] == "PASS"


def test_hidden_text_on_a_board_is_an_alarm(board: Any) -> None:
    """A team's software read the topics, and its tag says one of them."""
    world, look = board()
    world.scored("alpha", "quiet")
    assert look()["strangers: test"].startswith("PASS")
    world.scored("alpha", "loud", tag=SECRET)
    assert look()["strangers: test"].startswith("FAIL ALARM") and "board main" in look()["strangers: test"]


@pytest.mark.parametrize(
    ("text", "alarm"),
    [
        ("test-1 0 document-of-owls 1", True),  # a copy of the truths
        (f"Among others we ask {SECRET}, and why.", True),
        (f"We ask\n{textwrap.fill(SECRET.upper(), 12)}\nand more", True),
        (f'<p class="x">{SECRET.replace(" ", "  ")}</p>', True),
        (json.dumps({"note": f"see: {SECRET}!"}), True),
        ("Whether owls hunt at night, and at noon: whether owls sleep.", False),
    ],
)
def test_hidden_text_is_found_however_it_is_written_and_common_words_are_no_alarm(
    look: Any, config: Config, text: str, alarm: bool
) -> None:
    (config.tasks / "toy" / "notes.md").write_text(f"{text}\n")
    statuses, said = look()
    assert statuses["strangers: test"] == ("FAIL" if alarm else "PASS")
    assert ("notes.md" in said["strangers: test"]) is alarm


def test_a_clean_repository_passes(look: Any, repository: Path) -> None:
    statuses, _ = look()
    assert statuses["strangers: test"] == "PASS" and "strangers: history" not in statuses


@pytest.mark.parametrize(
    "where", ["tasks/toy/old.txt", "elsewhere/backup.jsonl.gz", "a commit message", "another branch"]
)
def test_what_was_committed_once_is_an_alarm_though_it_is_gone(
    look: Any, repository: Path, where: str
) -> None:
    name = "old.txt" if where[0] == "a" else where
    file, message = repository / name, "change"
    if where == "a commit message":
        message = f"Topic: {SECRET}"
    else:
        if where == "another branch":
            git(repository, "checkout", "-qb", "draft")
        line = json.dumps({"query": SECRET}).encode() + b"\n"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    commit(repository, message)
    if where == "another branch":
        git(repository, "checkout", "-q", "main")
    elif file.exists():
        file.unlink()
        commit(repository, "tidy")
    assert not file.exists()
    statuses, said = look()
    assert statuses["strangers: test"] == "FAIL" and SECRET not in said["strangers: test"]
    found = f"{'a commit message' if where == 'a commit message' else name} (history)"
    assert found in said["strangers: test"]


def test_a_history_that_cannot_be_read_is_said(look: Any, repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("nonsense\n")
    statuses, said = look()
    assert statuses["strangers: history"] == "CAUTION" and said["strangers: history"]


def test_a_version_that_is_too_large_is_said(look: Any, repository: Path) -> None:
    (repository / "large.bin").write_bytes(bytes(17 * 1024 * 1024))
    commit(repository, "large")
    assert ("large.bin", None) in list(history(repository))
    statuses, said = look()
    assert statuses["strangers: history"] == "CAUTION" and said["strangers: history"].startswith("1 file")
