"""Settings: the environment before the file before the default, each with where it comes from, and a file that is wrong."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest

from runner.doctor.home import settings_checks
from runner.model.config import BASES, REGISTRIES, Person, load
from runner.model.errors import RunnerError
from tests.worlds.mini import Project, call, call_here

WHOLE = """\
# of this machine
home: data
truths: ../hidden
engine: unix:///lab.sock
database: postgresql+psycopg://me:secret@host/scores?password=secret
base: local
engine_for: blinded
bases: [lab/base:1, "lab/base:2"]
"""
SETTINGS = (
    "root home private web truths engine database base engine_for bases news registries cluster artefacts certificates "
    "blinded_artefacts evaluation_cluster evaluation_artefacts evaluation_certificates store_credentials"
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("tasks/mini", "submissions"):
        (tmp_path / "project" / name).mkdir(parents=True)
    return tmp_path / "project"


def test_the_file_goes_before_defaults(root: Path) -> None:
    bare = load({}, root / "tasks" / "mini")
    assert (bare.root, bare.home, bare.truths, bare.bases) == (root, root / ".runner", None, BASES)
    assert (bare.engine, bare.database_url, bare.base_image, bare.engine_for) == (None, None, "auto", "both")
    assert dict(bare.origins)["home"] == "default"
    (root / "proctor.yaml").write_text(WHOLE)
    found = load({}, root / "tasks")
    assert (found.home, found.truths) == (root / "data", root / "../hidden")
    assert (found.engine, found.base_image, found.engine_for) == ("unix:///lab.sock", "local", "blinded")
    assert found.database_url is not None and found.database_url.startswith("postgresql+psycopg://me:secret")
    assert found.bases == (*BASES, "lab/base:1", "lab/base:2")
    assert dict(found.origins)["truths"] == "proctor.yaml:3"


def test_the_environment_goes_before_the_file(root: Path, tmp_path: Path) -> None:
    (root / "proctor.yaml").write_text(WHOLE)
    env = {
        "RUNNER_ROOT": str(root), "RUNNER_HOME": str(tmp_path / "h"), "RUNNER_TRUTHS": str(tmp_path / "t"), "RUNNER_BASE": "auto",
        "RUNNER_ENGINE_FOR": "public", "RUNNER_BASES": "a, b", "RUNNER_REGISTRIES": "lab:5000", "DOCKER_HOST": "tcp://x:1", "RUNNER_DATABASE": "sqlite:////x",
    }  # fmt: skip
    found = load(env, tmp_path)
    assert (found.root, found.home, found.truths) == (root, tmp_path / "h", tmp_path / "t")
    assert (found.engine, found.database_url) == ("tcp://x:1", "sqlite:////x")
    assert (found.base_image, found.engine_for, found.bases) == ("auto", "public", (*BASES, "a", "b"))
    assert found.registries == (*REGISTRIES, "lab:5000")
    origins = dict(found.origins)
    assert origins["root"] == "RUNNER_ROOT"
    assert origins["truths"].startswith("RUNNER_TRUTHS, ") and origins["truths"].endswith(" proctor.yaml:3")


def test_a_context_of_the_docker_client_in_the_environment_goes_before_the_files_engine(root: Path) -> None:
    (root / "proctor.yaml").write_text("engine: unix:///lab.sock\n")
    assert load({"DOCKER_CONTEXT": "mine"}, root).engine is None
    assert load({"DOCKER_CONTEXT": "mine", "DOCKER_HOST": "unix:///a"}, root).engine == "unix:///a"
    assert load({"DOCKER_CONTEXT": ""}, root).engine == "unix:///lab.sock"


def test_folders_of_the_file_may_begin_at_home(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere/me")
    (root / "proctor.yaml").write_text("truths: ~/truths\nhome: /data\n")
    assert (load({}, root).truths, load({}, root).home) == (Path("/nowhere/me/truths"), Path("/data"))


@pytest.mark.parametrize(
    ("text", "code", "where", "pattern"),
    [
        ("home: x\ntruth: y\n", "E101", "proctor.yaml:2", '"truth".*"truths"'),
        ("home: x\nhome: y\n", "E101", "proctor.yaml:2", '"home".* line 1'),
        ("base: mine\n", "E101", "proctor.yaml:1", '"base".* auto, registry, local.*"mine"'),
        ("engine: /var/run/docker.sock\n", "E101", "proctor.yaml:1", "unix:///var/run/docker.sock"),
        ("home: 3\n", "E101", "proctor.yaml:1", '"home".* 3'),
        ("- home\n", "E101", "proctor.yaml:1", "key: value"),
        ("home: [\n", "E405", "proctor.yaml:2", "YAML"),
        ("", "E405", "proctor.yaml", ""),
        ("a: &a [x]\nb: *a\n", "E101", "proctor.yaml:1", "&"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    root: Path, text: str, code: str, where: str, pattern: str
) -> None:
    (root / "proctor.yaml").write_text(text)
    with pytest.raises(RunnerError) as caught:
        load({}, root)
    problem = caught.value.problems[0]
    assert (caught.value.code, problem.where) == (code, where)
    assert re.search(pattern, f"{problem.what} {problem.fix}".strip())


def test_a_word_of_the_environment_that_there_is_not(root: Path) -> None:
    for name in ("RUNNER_BASE", "RUNNER_ENGINE_FOR"):
        with pytest.raises(RunnerError) as caught:
            load({name: "x"}, root)
        assert name in caught.value.what and "'x'" in caught.value.what


def test_doctor_shows_origins_without_secrets(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (project.root / "proctor.yaml").write_text(WHOLE)
    project.env["RUNNER_BASE"] = "auto"
    said = call(project, "doctor", "--json", expect=None)
    found = {one["name"]: one["detail"] for one in said.json if one["name"].startswith("setting ")}
    assert found["setting home"].startswith(f"{project.home} (RUNNER_HOME, ")
    assert found["setting home"].endswith(" proctor.yaml:2)")
    assert found["setting database"] == "postgresql+psycopg://host/scores (proctor.yaml:5)"
    assert found["setting root"] == f"{project.root} (RUNNER_ROOT)"
    assert set(found) == {f"setting {name}" for name in SETTINGS.split()}
    assert "secret" not in said.all
    (project.root / "proctor.yaml").write_text("hoem: x\n")
    wrong = call_here(project, ["doctor"], capsys)
    assert wrong.code == 2 and re.search('proctor.yaml:1: .*"hoem".*"home"', wrong.err)


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("RUNNER_DATABASE", "postgresql://me:p/secret@host:1/db", "postgresql://host:1/db"),
        ("RUNNER_DATABASE", "postgresql://me:p?secret@host/db?sslmode=prefer", "postgresql://host/db"),
        ("RUNNER_DATABASE", "postgresql://me:p@secret@host/db", "an address that cannot be used"),
        ("RUNNER_DATABASE", "postgresql://me:p@b/secret@host/db", "an address that cannot be used"),
        ("RUNNER_DATABASE", "secret", "an address that cannot be used"),
        ("RUNNER_ARTEFACTS", "s3://key:p/secret@bucket/place?token=secret", "s3://…@bucket/place"),
        ("RUNNER_ARTEFACTS", "sftp://me:p?secret@host/place", "sftp://…"),
        ("RUNNER_ARTEFACTS", "s3://bucket/place?token=a@secret", "s3://…"),
        ("RUNNER_ARTEFACTS", "filecache://x::sftp://me:p://secret@host/place", "filecache://…@host/place"),
        ("RUNNER_CLUSTER", "tls://10.0.0.1:8786", "tls://10.0.0.1:8786"),
    ],
)
def test_no_setting_shows_a_password(root: Path, variable: str, value: str, shown: str) -> None:
    found = load({variable: value}, root)
    said = {one.name: one.detail for one in settings_checks(found)}
    name = variable.removeprefix("RUNNER_").lower()
    assert said[f"setting {name}"] == f"{shown} ({variable})"
    assert "secret" not in str(said)


def test_an_option_precedes_the_environment_and_the_system_user_as_person(root: Path) -> None:
    assert load({}, root).person == Person(pwd.getpwuid(os.getuid()).pw_name, "system")
    assert str(load({"RUNNER_ACTOR": ""}, root).person).endswith(" (system user)")
    assert load({"RUNNER_ACTOR": "anna.b"}, root).person == Person("anna.b")
    assert load({"RUNNER_ACTOR": "anna"}, root, actor="bert").person == Person("bert")
    for wrong in ("", " anna", "a\x1b[31m", "a" * 41, "runner", "Organiser", "a/b", "anna\n"):
        with pytest.raises(RunnerError) as caught:
            Person.named(wrong)
        assert caught.value.code == "E101" and "\x1b" not in caught.value.what
