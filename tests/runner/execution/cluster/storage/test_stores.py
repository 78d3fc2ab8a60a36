"""Artefact stores: secrets are never shown, settings keep truths apart, and SSH works as a folder does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from runner.execution.cluster.certificates import make
from runner.execution.cluster.places import places
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.stores import store_at
from runner.model.errors import PlatformError, RunnerError
from runner.records.contents import Content
from tests.worlds.contents import read_content
from tests.worlds.mini import Project
from tests.worlds.ssh_server import ssh_server


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
        read_content(store, store.put(b"x"))
    text = f"{error.value.what} {error.value.why} {error.value.fix}"
    assert error.value.code == "E313" and opened == [options]
    assert not any(one in text for one in ("KEY", "sEcReT", "pass-word", "tok=en")), text
    assert error.value.__cause__ is None and "pass-word" not in store.place


@pytest.mark.parametrize(
    ("text", "mode", "fix"), [("{}", 0o644, "chmod 600"), ("{", 0o600, "JSON"), ('{"s3://a": "KEY"}', 0o600, "s3://name")]
)  # fmt: skip
def test_a_file_of_credentials_that_is_none(tmp_path: Path, text: str, mode: int, fix: str) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(RunnerError) as error:
        store_at(f"file://{tmp_path}", file)
    assert error.value.code == "E101" and fix in error.value.fix and "KEY" not in error.value.why


SETTINGS = {
    "cluster": "tls://127.0.0.1:1",
    "artefacts": "file:///srv/open",
    "blinded_artefacts": "file:///srv/blinded",
    "evaluation_cluster": "tls://127.0.0.1:2",
    "evaluation_artefacts": "file:///srv/opened",
}


def apart(project: Project, folder: Path, **change: Any) -> list[str]:
    """What the clusters of settings with this change are for, where all else is apart."""
    settings: dict[str, Any] = {
        **SETTINGS,
        "certificates": make(folder / "first", ["127.0.0.1"])[0],
        "evaluation_certificates": make(folder / "second", ["127.0.0.1"])[0],
    }
    return [place.role for place in places(replace(project.config, **{**settings, **change}))]


def refused(project: Project, folder: Path, **change: Any) -> str:
    """What an error says of settings that are not taken."""
    with pytest.raises(RunnerError) as error:
        apart(project, folder, **change)
    assert error.value.code == "E101" and error.value.fix
    return f"{error.value.what} {error.value.why} {error.value.fix}"


STORE, SCHEDULER, AUTHORITY = "RUNNER_EVALUATION_ARTEFACTS", "cluster scheduler", "cluster certificates"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"evaluation_cluster": "tls://127.0.0.1:1"}, SCHEDULER),
        ({"evaluation_artefacts": "file:///srv/open"}, STORE),
        ({"evaluation_artefacts": "file:///srv/open/truths/"}, STORE),
        ({"evaluation_artefacts": "file:///srv"}, STORE),
        ({"evaluation_artefacts": "file:///srv/blinded"}, STORE),
        ({"evaluation_artefacts": None}, STORE),
        ({"artefacts": None}, "RUNNER_ARTEFACTS"),
        ({"evaluation_cluster": "tcp://10.0.0.1:1"}, "tcp://10.0.0.1:1"),
    ],
)
def test_what_sees_truths_is_apart_from_what_executes_software(
    project: Project, tmp_path: Path, change: dict[str, Any], name: str
) -> None:
    assert name in refused(project, tmp_path, **change)


def test_hosts_that_evaluate_may_have_another_certificate_of_another_authority(
    project: Project, tmp_path: Path
) -> None:
    assert apart(project, tmp_path) == ["software", "evaluations"]
    (same,) = make(tmp_path / "first", ["127.0.0.2"])
    assert AUTHORITY in refused(project, tmp_path / "other", certificates=same, evaluation_certificates=same)


SAME = [
    ("/srv/a", "file:///srv/a"),
    ("local:///srv/a", "file:///srv/a"),
    ("FILE:///srv/a", "file:///srv/a"),
    ("file:///srv/a/../j", "file:///srv/j"),
    ("file:///srv//a/./", "file:///srv/a"),
    ("file://srv/a", "srv/a"),
    ("file:srv/a", "srv/a"),
    ("~/a", "file://~/a"),
    ("s3a://b", "s3://b"),
    ("s3://key:secret@b/in", "s3://B//in/"),
    ("sftp://one:pass@host/a", "sftp://two:word@host/a"),
    ("ssh://Host./a", "sftp://me@host:22/a"),
    ("sftp://host/b/../a", "sftp://host/a"),
    ("sftp://host/%61", "sftp://host/a"),
    ("sftp://[fd00:0:0:0:0:0:0:1]/a", "sftp://[FD00:0:0:0:0:0:0:01]:22/a"),
    ("sftp://localhost/a", "sftp://127.0.0.1/a"),
]
WITHIN = [
    ("/srv/a", "file:///srv/a/truths"),
    ("/", "file:///srv/a"),
    ("s3://b", "s3a://b/truths"),
    ("ssh://host/a", "sftp://host/a/truths"),
]
APART = [
    ("/srv/a", "/srv/ab"),
    ("/srv/a", "s3://srv/a"),
    ("s3://b/in", "s3://b/in-truths"),
    ("s3://b/x@y", "s3://c/x@y"),
    ("sftp://host:22/a", "sftp://host:23/a"),
    ("sftp://host/a", "sftp://other/a"),
    ("sftp://[fd00:0:0:0:0:0:0:1]/a", "sftp://[fd00:0:0:0:0:0:0:2]/a"),
]


@pytest.mark.parametrize("first", ["artefacts", "blinded_artefacts", "evaluation_artefacts"])
@pytest.mark.parametrize(("one", "other"), SAME + WITHIN)
def test_one_store_is_known_however_it_is_spelled(
    project: Project, tmp_path: Path, first: str, one: str, other: str
) -> None:
    second = "artefacts" if first == "evaluation_artefacts" else "evaluation_artefacts"
    text = refused(project, tmp_path, **{first: one, second: other})
    assert STORE in text and not any(word in text for word in ("pass", "word", "secret"))


@pytest.mark.parametrize(("one", "other"), APART)
def test_stores_that_are_apart_are_taken(project: Project, tmp_path: Path, one: str, other: str) -> None:
    for ours, theirs in ((one, other), (other, one)):
        shutil.rmtree(tmp_path / "first", ignore_errors=True)
        shutil.rmtree(tmp_path / "second", ignore_errors=True)
        found = apart(project, tmp_path, artefacts=ours, evaluation_artefacts=theirs)
        assert found == ["software", "evaluations"]


@pytest.mark.parametrize("first", ["artefacts", "blinded_artefacts", "evaluation_artefacts"])
@pytest.mark.parametrize(
    "address",
    ["gs://b", "abfs://c@account/in", "memory://a", "simplecache::file:///srv/x", "sftp://host:x/a"],
)
def test_stores_that_cannot_be_compared_are_refused(
    project: Project, tmp_path: Path, first: str, address: str
) -> None:
    assert refused(project, tmp_path, **{first: address})


@pytest.mark.parametrize("below", ["", "/truths"])
def test_a_link_to_a_store_is_that_store(project: Project, tmp_path: Path, below: str) -> None:
    (tmp_path / "store" / "truths").mkdir(parents=True)
    (tmp_path / "link").symlink_to("store")
    stores = {"artefacts": f"{tmp_path}/store", "evaluation_artefacts": f"file://{tmp_path}/link{below}"}
    assert STORE in refused(project, tmp_path, **stores)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tls://Host:8786", "tls://host:8786"),
        ("tls://host.:8786", "tls://host:08786"),
        ("tls://[fd00::1]:1", "tls://[FD00:0::1]:1"),
        ("tls://[::ffff:10.0.0.1]:1", "tls://10.0.0.1:1"),
        ("tls://localhost:1", "tls://127.0.0.1:1"),
        ("tls://host:1/", "tls://host:1"),
    ],
)
def test_one_scheduler_is_known_however_it_is_spelled(
    project: Project, tmp_path: Path, one: str, other: str
) -> None:
    assert SCHEDULER in refused(project, tmp_path, cluster=one, evaluation_cluster=other)


WRITTEN = {
    "a line more": lambda first, second: first + b"\n",
    "both": lambda first, second: second + first,
    "text around": lambda first, second: b"our authority\r\n" + first.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_one_authority_is_known_however_it_is_written(
    project: Project, tmp_path: Path, written: Callable[[bytes, bytes], bytes]
) -> None:
    folders = [make(tmp_path / name, ["127.0.0.1"])[0] for name in ("one", "other")]
    first, second = ((folder / "ca.pem").read_bytes() for folder in folders)
    (folders[1] / "ca.pem").write_bytes(written(first, second))
    certificates = dict(zip(("certificates", "evaluation_certificates"), folders, strict=True))
    assert AUTHORITY in refused(project, tmp_path, **certificates)


def test_an_authority_whose_certificate_was_made_anew_is_the_same(project: Project, tmp_path: Path) -> None:
    folders = [make(tmp_path / name, ["127.0.0.1"])[0] for name in ("one", "other")]
    key = load_pem_private_key((tmp_path / "one" / "authority" / "key.pem").read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "anew")]), datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    dated = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    (folders[1] / "ca.pem").write_bytes(dated.sign(key, None).public_bytes(Encoding.PEM))
    certificates = dict(zip(("certificates", "evaluation_certificates"), folders, strict=True))
    assert AUTHORITY in refused(project, tmp_path, **certificates)


@pytest.mark.parametrize("text", [b"", b"no certificate", b"\xff" * 9])
def test_an_authority_that_is_none_is_refused(project: Project, tmp_path: Path, text: bytes) -> None:
    (folder,) = make(tmp_path / "one", ["127.0.0.1"])
    (folder / "ca.pem").write_bytes(text)
    assert "ca.pem" in refused(project, tmp_path, evaluation_certificates=folder)


def test_a_store_has_what_fsspec_finds_where_nothing_is_said(tmp_path: Path) -> None:
    store = Artefacts(f"file://{tmp_path}")
    assert read_content(store, store.put(b"some")) == b"some"


NAME = f"{'0' * 16}/a~mini~x~1~00000000"


def test_a_store_over_ssh(tmp_path: Path) -> None:
    (folder := tmp_path / "ssh").mkdir()
    (file := tmp_path / "file").write_bytes(b"some data" * 400_000)
    with ssh_server(folder) as server:
        store = Artefacts(server.address, server.options())
        content = store.put(file)
        store.fetch(content, tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == file.read_bytes() and not store.signs
        store.deliver(NAME, {"run.txt": file}, {"fact": 1}, b"key")
        assert store.attempts() == [NAME] and store.changed(NAME) is not None
        files = {name: Content(*entry) for name, entry in store.manifest(NAME, b"key")["files"].items()}
        store.take(NAME, files, tmp_path / "taken")
        assert (tmp_path / "taken" / "run.txt").read_bytes() == file.read_bytes()
        store.forget(NAME)
        assert store.attempts() == []
        for options, why in (
            (server.options(key="other"), "denied"),
            (server.options(known="other"), "not trusted"),
        ):
            with pytest.raises(PlatformError) as error:
                Artefacts(server.address, options)
            assert error.value.code == "E313" and why in error.value.why and "own" not in error.value.why
