"""Where submissions come from: what git knows of their folder, and nothing that a repository could have run."""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import schemas
from runner.engines.fake import FakeEngine
from runner.model.container import Exit, ImageRef
from runner.model.errors import RunnerError
from runner.provision.base import LOCAL_IMAGE
from runner.submissions.bundle import bundle_digest, registration
from runner.submissions.checkout import Caps, check_out
from runner.submissions.load import load_submission
from runner.submissions.pack import image_of, write
from runner.submissions.source import public_address, source_of
from tests.worlds.definitions import project, write_submission, write_task
from tests.worlds.machines import without_engine
from tests.worlds.repository import git, require_git

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched


@pytest.fixture(scope="module", autouse=True)
def has_git() -> None:
    """A bare machine has no git."""
    require_git()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a committed software, and an ignored file."""
    made = tmp_path / "repository/software"
    made.mkdir(parents=True)
    (made / "main.py").write_text("print(1)\n")
    (made / "naïve name.txt").write_text("x\n")
    (made / "run.sh").write_text("true\n")
    (made / "run.sh").chmod(0o755)
    (made / "link").symlink_to("main.py")
    (made / ".gitignore").write_text("cache\n")
    (made / "cache").write_text("left out\n")
    git(made.parent, "init", "-q")
    git(made.parent, "add", "-A")
    git(made.parent, "commit", "-qm", "one")
    return made


def test_a_committed_folder_has_remote_commit_and_no_change(folder: Path) -> None:
    commit = git(folder, "rev-parse", "HEAD")
    assert source_of(folder) == {"remote": None, "commit": commit, "dirty": False}
    git(folder, "remote", "add", "other", "https://other.example/x.git")
    git(folder, "remote", "add", "origin", "https://ann:secret@code.example/team/software.git")
    remote = "https://code.example/team/software.git"
    assert source_of(folder) == {"remote": remote, "commit": commit, "dirty": False}


@pytest.mark.parametrize("change", ["edited", "new", "gone", "mode", "link"])
def test_what_is_not_as_it_was_committed_is_dirty(folder: Path, change: str) -> None:
    if change == "edited":
        (folder / "main.py").write_text("print(2)\n")
    elif change == "new":
        (folder / "new.py").write_text("")
    elif change == "gone":
        (folder / "main.py").unlink()
    elif change == "mode":
        (folder / "main.py").chmod(0o755)
    else:
        (folder / "link").unlink()
        (folder / "link").symlink_to("run.sh")
    found = source_of(folder)
    assert found is not None and found["dirty"] is True


def test_without_a_repository_there_is_nothing(tmp_path: Path, folder: Path) -> None:
    assert source_of(tmp_path) is None
    outside = folder.parent / "never-committed"
    outside.mkdir()
    (outside / "main.py").write_text("")
    assert source_of(outside) is None, "a folder of which the repository knows nothing"
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert source_of(empty) is None


def test_nothing_that_a_repository_names_is_run(folder: Path, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{proof}'\ncat\n")
    trap.chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=trap diff=trap\n")
    for key in ("core.fsmonitor", "filter.trap.clean", "filter.trap.process", "diff.external", "core.pager"):
        git(folder, "config", key, str(trap))
    for key in ("core.sshCommand", "credential.helper", "diff.trap.textconv", "alias.ls-tree"):
        git(folder, "config", key, f"!{trap}")
    git(folder, "config", "remote.origin.url", f"ext::{trap}")
    git(folder, "config", "remote.origin.promisor", "true")
    git(folder, "config", "extensions.partialClone", "origin")
    hooks = folder.parent / ".git/hooks"
    for hook in ("post-index-change", "pre-commit", "post-checkout"):
        hooks.joinpath(hook).write_text(trap.read_text())
        hooks.joinpath(hook).chmod(0o755)
    os.utime(folder / "main.py", (1, 1))
    subprocess.run(["git", "status"], cwd=folder, check=False, capture_output=True)
    assert proof.exists(), "git itself falls into the trap"
    proof.unlink()
    found = source_of(folder)
    assert found is not None and found["dirty"] is True and found["remote"] is None
    for thing in (folder.parent / ".git/objects").rglob("*"):  # git would fetch missing objects
        if thing.is_file():
            thing.unlink()
    assert source_of(folder) is None and not proof.exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://code.example/a/b.git", "https://code.example/a/b.git"),
        ("https://token@code.example/a", "https://code.example/a"),
        ("https://u:p@ss@code.example:8443/a@v1", None),
        ("https://u:p@ss@code.example:8443/a", "https://code.example:8443/a"),
        ("https://code.example/a?private_token=x#y", "https://code.example/a"),
        ("ssh://git@code.example:22/a", "ssh://code.example:22/a"),
        ("git@code.example:a/b.git", "code.example:a/b.git"),
        ("me:pw@code.example:a", "code.example:a"),
        ("file:///home/ann/private", None),
        ("/home/ann/private", None),
        ("../other", None),
        ("C:\\Users\\ann", None),
        ("ext::sh -c true", None),
        ("https://code.example/\x1b[2J", None),
        ("", None),
    ],
)
def test_addresses_carry_no_secret_and_no_folder_of_a_machine(url: str, shown: str | None) -> None:
    assert public_address(url) == shown


def test_the_source_is_in_the_bundle_and_does_not_change_its_digest(tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    write_task(config)
    folder = write_submission(config, f"task: toy\nimage: sha256:{'0' * 64}\n", "mine", "first")
    submission, image = load_submission(config, "mine", "first"), ImageRef(f"sha256:{'0' * 64}")

    def packed() -> dict[str, object]:
        bundle = write(submission, image, tmp_path / "b", engine=None, check=None, with_archive=False)
        assert schemas.validate(schemas.load_json(bundle.folder / "bundle.json", "b"), "bundle") == []
        return {"digest": bundle_digest(bundle.data), **registration(bundle)}

    before = packed()
    assert "source" not in before
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "remote", "add", "origin", "git@code.example:mine/first")
    after = packed()
    commit = git(folder, "rev-parse", "HEAD")
    assert after["source"] == {"remote": "code.example:mine/first", "commit": commit, "dirty": False}
    assert after["submission"] == before["submission"] and after["digest"] == before["digest"]


def test_what_a_team_says_of_its_experiment_travels_and_makes_no_other_submission(tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    write_task(config)
    folder = write_submission(config, f"task: toy\nimage: sha256:{'0' * 64}\n", "mine", "first")
    image, said = ImageRef(f"sha256:{'0' * 64}"), folder / "ir-metadata.yml"

    def packed() -> tuple[str, bool]:
        submission = load_submission(config, "mine", "first")
        bundle = write(submission, image, tmp_path / "b", engine=None, check=None, with_archive=False)
        return bundle.digest, (bundle.folder / "ir-metadata.yml").is_file()

    digest, there = packed()
    assert not there
    said.write_text("tag: x\n")
    assert packed() == (digest, True)
    said.write_text("x" * 70_000)
    assert packed() == (digest, False), "as much as is read, and no more"
    said.unlink()
    said.symlink_to("/etc/passwd")
    assert packed() == (digest, False)


def built(tmp_path: Path, git_keys: str, *, handing_in: bool = False) -> tuple[set[str], dict[str, object]]:
    """What the build of a submission that names a commit was given, and the source in its bundle."""
    config = replace(project(tmp_path / "root"), handing_in=handing_in, base_image="local")
    write_task(config)
    write_submission(config, f"task: toy\nbuild: {{{git_keys}}}\n", "mine", "first")
    submission = load_submission(config, "mine", "first")
    engine = FakeEngine({"mine": Exit(code=0), LOCAL_IMAGE: Exit(code=0)})
    engine.labels[LOCAL_IMAGE] = {"proctor.base": "python3,python3-pip,python3-venv,ca-certificates,socat"}
    try:
        image = image_of(config, engine, submission)
        bundle = write(submission, image, tmp_path / "b", engine=None, check=None, with_archive=False)
        return engine.built[-1][1], bundle.data["source"]
    finally:
        engine.close()


@pytest.fixture
def commit(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A commit with a Dockerfile, and a working tree that is otherwise by now."""
    without_engine(monkeypatch, tmp_path)
    (folder / "Dockerfile").write_text("# fake: mine\nFROM scratch\n")
    (folder / "outside").symlink_to("/etc")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "two")
    made = git(folder, "rev-parse", "HEAD")
    (folder / "Dockerfile").write_text("# fake: another\nFROM scratch\n")
    (folder / "later.py").write_text("")
    return made


def test_a_commit_is_built_as_it_was_committed(folder: Path, commit: str, tmp_path: Path) -> None:
    files, source = built(tmp_path, f"git: '{folder.parent}', commit: '{commit}', context: software")
    assert "main.py" in files and "Dockerfile" in files and "later.py" not in files and "cache" not in files
    assert not any(".git/" in name for name in files)
    assert source == {"remote": None, "commit": commit, "dirty": False}


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("git: 'GIT', commit: 'COMMIT', context: ../..", "E202"),
        ("git: 'GIT', commit: 'COMMIT', context: software/outside, dockerfile: passwd", "E202"),
        ("git: 'GIT', commit: 'COMMIT', context: /etc, dockerfile: passwd", "E202"),
        ("git: 'GIT', commit: 'COMMIT'", "E202"),
        ("git: 'GIT', commit: '0000000000000000000000000000000000000000', context: software", "E203"),
        ("git: nowhere, commit: 'COMMIT'", "E203"),
        ("git: 'GIT', commit: HEAD", "E201"),
        ("git: 'GIT'", "E201"),
        ("commit: 'COMMIT'", "E201"),
        ("git: 'GIT', commit: 'COMMIT', shared: [other/x]", "E201"),
        ("git: '--upload-pack=touch ran', commit: 'COMMIT'", "E201"),
        ("git: 'ext::sh -c true', commit: 'COMMIT'", "E201"),
        ("git: 'http://code.example/a', commit: 'COMMIT'", "E201"),
        ("git: 'https://u:secret@code.example/a', commit: 'COMMIT'", "E201"),
        ("git: 'file:///etc', commit: 'COMMIT'", "E201"),
    ],
)
def test_what_cannot_be_built_from_is_refused(
    folder: Path, commit: str, tmp_path: Path, keys: str, code: str
) -> None:
    keys = keys.replace("GIT", str(folder.parent)).replace("COMMIT", commit)
    with pytest.raises(RunnerError) as refused:
        built(tmp_path, keys)
    assert refused.value.code == code, refused.value
    assert "secret" not in str(refused.value) + refused.value.why


def committed(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "more")
    return git(folder, "rev-parse", "HEAD")


def too_large(folder: Path, commit: str, target: Path, **caps: float) -> str:
    with pytest.raises(RunnerError) as refused:
        check_out(str(folder), commit, folder, target, Caps(**{"bytes": 2**20, **caps}))  # type: ignore[arg-type]
    assert refused.value.code == "E203"
    assert not (target / "main.py").exists() and not (target / "software").exists(), "nothing is unpacked"
    return refused.value.why


def test_what_is_too_large_is_not_unpacked(folder: Path, tmp_path: Path) -> None:
    root = folder.parent
    (folder / "noise").write_bytes(os.urandom(2 * 2**20))
    assert "1 MiB" in too_large(root, committed(root), tmp_path / "a")
    (folder / "noise").write_bytes(bytes(2 * 2**20))
    assert "1 MiB" in too_large(root, committed(root), tmp_path / "b")
    (folder / "noise").unlink()
    commit = committed(root)
    assert "4 files" in too_large(root, commit, tmp_path / "c", files=4)
    assert "0.01 s" in too_large(root, commit, tmp_path / "d", seconds=0.01)
    check_out(str(root), commit, root, tmp_path / "e", Caps(2**20, 5))
    assert (tmp_path / "e/software/main.py").is_file() and not (tmp_path / "e/.git").exists()


def test_a_tree_with_very_many_files_is_refused_at_once(folder: Path, tmp_path: Path) -> None:
    root = folder.parent
    kind, made = "blob", git(root, "hash-object", "-w", str(folder / "main.py"))
    for _ in range(10):
        mode = "100644" if kind == "blob" else "040000"
        lines = "".join(f"{mode} {kind} {made}\t{n}\n" for n in range(10))
        command = ["git", "mktree"]
        listed = subprocess.run(command, cwd=root, input=lines, check=True, capture_output=True, text=True)
        kind, made = "tree", listed.stdout.strip()
    commit = git(root, "commit-tree", "-m", "bomb", made)
    git(root, "branch", "bomb", commit)
    assert too_large(root, commit, tmp_path / "out", bytes=2**30).count("50,000") == 1


class _Backend(BaseHTTPRequestHandler):
    """git's own server of repositories behind HTTP, in ``root``."""

    root: Path

    def do_GET(self) -> None:
        """Discovery of references."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Packs."""
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        encoding = self.headers.get("Content-Encoding")
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "uploadpack.allowAnySHA1InWant",
            "GIT_CONFIG_VALUE_0": "true",
            "GIT_CONFIG_KEY_1": "safe.directory",
            "GIT_CONFIG_VALUE_1": "*",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            **({"HTTP_CONTENT_ENCODING": encoding} if encoding else {}),
        }
        made = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=False)
        head, _, answer = made.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(lines.pop("Status", "200").split(" ")[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of the repository on a server of https, and the certificate that vouches for it."""
    key, certificate = tmp_path / "tls.key", tmp_path / "tls.crt"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made += ["-keyout", str(key), "-out", str(certificate), "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*made, *names], check=True, capture_output=True, timeout=60)
    handler = type("Backend", (_Backend,), {"root": folder.parent.parent})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}/{folder.parent.name}/.git", certificate
    server.shutdown()
    server.server_close()


def test_a_commit_comes_over_https_from_whom_a_certificate_vouches_for(
    folder: Path, commit: str, served: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, certificate = served
    keys = f"git: '{address}', commit: '{commit}', context: software"
    for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunnerError) as refused:
        built(tmp_path / "stranger", keys)
    assert refused.value.code == "E203" and "certificate" in refused.value.why
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    files, source = built(tmp_path / "known", keys, handing_in=True)
    assert "main.py" in files and "later.py" not in files
    assert source == {"remote": address, "commit": commit, "dirty": False}
    with pytest.raises(RunnerError, check=lambda error: error.code == "E203"):
        built(tmp_path / "nothing", keys.replace(commit, "0" * 40))
    (folder / "noise").write_bytes(os.urandom(2 * 2**20))
    with pytest.raises(RunnerError) as refused:
        check_out(address, committed(folder.parent), folder, tmp_path / "large", Caps(2**20))
    assert "1 MiB" in refused.value.why


def test_strangers_name_no_folder_of_the_machine_that_takes_them_in(
    folder: Path, commit: str, tmp_path: Path
) -> None:
    with pytest.raises(RunnerError) as refused:
        built(tmp_path, f"git: '{folder.parent}', commit: '{commit}', context: software", handing_in=True)
    assert refused.value.code == "E212" and "https" in refused.value.fix
