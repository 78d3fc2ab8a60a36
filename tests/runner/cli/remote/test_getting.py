"""`runner data get`: the data of a task at a server on one's own disk, after a cut, after other terms, and from a server that lies."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.access import Token
from tests.runner.cli.remote.test_hostile_answers import known
from tests.runner.web.test_downloads import CORPUS, TERMS, Site, site
from tests.worlds.hostile_server import DATA, FILE, Answer, hostile
from tests.worlds.mini import Project, Said, call_here, cli

__all__ = ["site"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "got"


def logged_in(site: Site, tmp_path: Path) -> None:
    site.project.env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    folder = tmp_path / "config/proctor/servers"
    folder.mkdir(parents=True, mode=0o700)
    facts = {"name": "local", "url": site.url, "token": str(site.tokens["alpha"]), "team": "alpha"}
    (folder / "local.json").write_text(json.dumps(facts))
    (folder / "local.json").chmod(0o600)


def get(project: Project, out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Said:
    words = ["data", "get", "mini", "dev", "--to", "local", "--out", str(out)]
    return call_here(project, [*words, *more], capsys)


def test_what_was_cut_goes_on_and_what_is_there_stays(
    site: Site, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logged_in(site, tmp_path)
    site.write(inputs="everybody")
    (out / "inputs").mkdir(parents=True)
    (out / "inputs/.corpus.txt.part").write_bytes(CORPUS[:50_001])
    said = get(site.project, out, capsys, "--json")
    assert said.code == 0, said.all
    found = {one["name"]: one for one in said.json}
    assert (out / "inputs/corpus.txt").read_bytes() == CORPUS and len(found) == 3
    assert found["inputs/corpus.txt"]["sha256"] == hashlib.sha256(CORPUS).hexdigest()
    again = get(site.project, out, capsys, "--json")
    assert again.code == 0 and not any(one["new"] for one in again.json)
    (out / "inputs/corpus.txt").write_bytes(b"mine")
    changed = get(site.project, out, capsys)
    assert "E406" in changed.err and "task.yaml" not in changed.all
    assert (out / "inputs/corpus.txt").read_bytes() == b"mine"


def test_the_terms_are_read_and_accepted(
    site: Site, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged_in(site, tmp_path)
    refused = get(site.project, out, capsys)
    assert refused.code != 0 and "E103" in refused.err and "Be fair." in refused.all
    exactly = f"1@{hashlib.sha256(TERMS.encode()).hexdigest()}"
    assert f"--accept-terms {exactly}" in "".join(refused.err.split()).replace("terms1", "terms 1")
    assert (out / "inputs/corpus.txt").is_file()
    assert not (out / "truths").exists()
    other = get(site.project, out, capsys, "--accept-terms", "2")
    assert "E103" in other.err and "version 1" in other.err
    monkeypatch.setattr("time.sleep", lambda seconds: site.decide())  # work, while the command waits
    unread = get(site.project, out, capsys, "--accept-terms", "1")  # nobody is asked, so nothing is accepted
    assert "E103" in unread.err and "Be fair." in unread.all and not (out / "truths").exists()
    taken = get(site.project, out, capsys, "--accept-terms", exactly)
    assert taken.code == 0, taken.all
    truths = site.project.root / "tasks/mini/datasets/dev/truths/qrels.txt"
    assert (out / "truths/qrels.txt").read_bytes() == truths.read_bytes()
    assert "E102" in call_here(site.project, ["data", "get", "mini", "test", "--to", "local"], capsys).err


def test_another_text_of_the_same_version_is_not_accepted_unseen(
    site: Site, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged_in(site, tmp_path)
    get(site.project, out, capsys)
    site.write(terms="Be fair.\nAnd pay.\n", inputs="everybody", truths="teams")
    monkeypatch.setattr("time.sleep", lambda seconds: site.decide())
    read = f"1@{hashlib.sha256(TERMS.encode()).hexdigest()}"
    for accept in ("1", read):
        said = get(site.project, out, capsys, "--accept-terms", accept)
        assert "E103" in said.err and "Traceback" not in said.all, said.all
        assert not (out / "truths").exists() and not site.listed("alpha")["accepted"]
    assert "--accept-terms" in said.err


@pytest.mark.parametrize(("answer", "accepted"), [("n\n", False), ("y\n", True)])
def test_whoever_names_a_version_is_shown_the_text_and_asked(
    site: Site,
    tmp_path: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    accepted: bool,
) -> None:
    logged_in(site, tmp_path)
    monkeypatch.setattr("time.sleep", lambda seconds: site.decide())
    words = ("data", "get", "mini", "dev", "--to", "local", "--out", str(out), "--accept-terms", "1")
    told = cli(site.project, *words, expect=None, typed=answer).err
    assert told.index("Be fair.") < told.rindex("version 1")
    assert site.listed("alpha")["accepted"] == accepted == (out / "truths/qrels.txt").exists()


def test_terms_whose_digest_is_that_of_another_text_are_not_accepted(
    project: Project, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_task()
    project.env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "RUNNER_TOKEN": str(Token.new())}
    data = {**DATA, "terms": {"version": "1", "sha256": "a" * 64, "text": "Pay."}}
    asked: list[str] = []

    def answer(method: str, path: str) -> Answer:
        asked.append(method)
        return Answer(json.dumps(data).encode())

    with hostile(answer) as (url, _):
        known(project, url)
        said = get(project, out, capsys, "--accept-terms", f"1@{'a' * 64}")
    assert "E312" in said.err and "POST" not in asked, said.all


@pytest.mark.parametrize(
    "name",
    ["../a", "inputs/../../a", "/etc/a", "inputs//a", "inputs/.ssh", "inputs/a\\b", "inputs/\x1b[2J", "other/a", "inputs", "link/a", "inputs/out/a"],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(
    project: Project, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    project.write_task()
    project.env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "RUNNER_TOKEN": str(Token.new())}
    (tmp_path / "elsewhere").mkdir()
    (out / "inputs").mkdir(parents=True)
    (out / "inputs/out").symlink_to(tmp_path / "elsewhere")
    data: Any = {**DATA, "datasets": [{**DATA["datasets"][0], "files": [{**FILE, "name": name}]}]}  # type: ignore[index]

    def answer(method: str, path: str) -> Answer:
        listed = path.endswith("/data")
        return Answer(json.dumps(data).encode() if listed else b"12345")

    before = sorted(tmp_path.rglob("*"))
    with hostile(answer) as (url, _):
        known(project, url)
        said = get(project, out, capsys)
    assert said.code != 0 and "Fix:" in said.err and "\x1b" not in said.all and "E308" not in said.all
    after = {path for path in tmp_path.rglob("*") if "config" not in path.parts}
    assert after <= {*before}, after - {*before}


@pytest.mark.parametrize("size", [5, 3, 10**15])
def test_what_is_not_as_it_was_said_is_not_kept(
    project: Project,
    tmp_path: Path,
    out: Path,
    capsys: pytest.CaptureFixture[str],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.write_task()
    project.env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "RUNNER_TOKEN": str(Token.new())}
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    data: Any = {**DATA, "datasets": [{**DATA["datasets"][0], "files": [{**FILE, "size": size}]}]}  # type: ignore[index]
    with hostile(
        lambda method, path: Answer(json.dumps(data).encode() if path.endswith("/data") else b"12345")
    ) as (url, _):
        known(project, url)
        said = get(project, out, capsys)
    assert said.code != 0 and ("E406" in said.err or "E407" in said.err), said.all
    assert not (out / "inputs/a.txt").exists()
