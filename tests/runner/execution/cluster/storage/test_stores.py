"""What opens an artefact store is said nowhere, and settings that mix what must be apart are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.execution.cluster.certificates import make
from runner.execution.cluster.places import places
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.stores import store_at
from runner.model.errors import RunnerError
from tests.worlds.mini import Project


class Talkative:
    """A file system that repeats what it was opened with in its errors."""

    def __init__(self, said: str) -> None:
        self.said = said

    def info(self, place: str) -> Any:
        raise OSError(f"cannot log in as {self.said} at {place}")


def test_errors_say_nothing_of_what_opens_a_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = {"key": "KEY-1234", "client_kwargs": {"secret": "sEcReT/99", "retries": 3}}
    said = "KEY-1234:sEcReT/99 sEcReT%2F99 user:pass-word tok=en"
    address = "memory://user:pass-word@host/place?tok=en"
    opened: list[dict[str, Any]] = []

    def url_to_fs(address: str, **given: Any) -> tuple[Any, str]:
        opened.append(given)
        return Talkative(said), "place"

    monkeypatch.setattr("fsspec.core.url_to_fs", url_to_fs)
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({"memory://…@host/place": options, "memory://other": {"key": "no"}}))
    file.chmod(0o600)
    store = store_at(address, file)
    with pytest.raises(RunnerError) as error:
        store.get_bytes(store.put_bytes(b"x"))
    text = f"{error.value.what} {error.value.why} {error.value.fix}"
    assert "cannot log in" in text and opened == [options]
    assert not any(one in text for one in ("KEY", "sEcReT", "pass-word", "tok=en")), text
    assert error.value.__cause__ is None and "pass-word" not in store.place


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [("{}", 0o644, "read by others"), ("{", 0o600, "cannot be read"), ('{"s3://a": "KEY"}', 0o600, "no object of objects")],
)  # fmt: skip
def test_a_file_of_credentials_that_is_none(tmp_path: Path, text: str, mode: int, says: str) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(RunnerError, match=says) as error:
        store_at(f"file://{tmp_path}", file)
    assert error.value.code == "E101" and error.value.fix and "KEY" not in error.value.why


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"evaluation_cluster": "tls://127.0.0.1:1"}, "one scheduler"),
        ({"evaluation_certificates": "one"}, "one authority"),
        ({"evaluation_artefacts": "file:///srv/open"}, "is in the other"),
        ({"evaluation_artefacts": "file:///srv/open/truths/"}, "is in the other"),
        ({"evaluation_artefacts": "file:///srv"}, "is in the other"),
        ({"evaluation_artefacts": "file:///srv/blinded"}, "is in the other"),
        ({"evaluation_artefacts": None}, "RUNNER_EVALUATION_ARTEFACTS is not set"),
        ({"artefacts": None}, "RUNNER_ARTEFACTS is not set"),
        ({"evaluation_cluster": "tcp://10.0.0.1:1"}, "is not encrypted"),
    ],
)
def test_what_sees_truths_is_apart_from_what_executes_software(
    project: Project, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    folders = {name: make(tmp_path / name, ["127.0.0.1"])[0] for name in ("one", "other")}
    if "evaluation_certificates" in change:
        change = {"evaluation_certificates": make(tmp_path / "one", ["127.0.0.2"])[0]}
    settings: dict[str, Any] = {
        "cluster": "tls://127.0.0.1:1",
        "artefacts": "file:///srv/open",
        "blinded_artefacts": "file:///srv/blinded",
        "certificates": folders["one"],
        "evaluation_cluster": "tls://127.0.0.1:2",
        "evaluation_artefacts": "file:///srv/opened",
        "evaluation_certificates": folders["other"],
    }
    config = replace(project.config, **{**settings, **change})
    if not says:
        assert [place.role for place in places(config)] == ["software", "evaluations"]
        return
    with pytest.raises(RunnerError, match=says) as error:
        places(config)
    assert error.value.code == "E101" and error.value.fix


def test_a_store_has_what_fsspec_finds_where_nothing_is_said(tmp_path: Path) -> None:
    store = Artefacts(f"file://{tmp_path}")
    assert store.get_bytes(store.put_bytes(b"some")) == b"some"
