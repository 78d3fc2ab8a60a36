"""The options of a container as data; that they hold is shown in tests/contracts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from runner.engines import sandbox
from runner.engines.base import ContainerSpec, Exceptions, Handle, ImageRef, Limits, Mount, Role, Volume
from runner.errors import RunnerError

HOST = cast(Handle, object())
IMAGE = ImageRef(id="sha256:" + "1" * 64, workdir="/app", volumes=("/data", "/in"))
SPEC = ContainerSpec(
    "software", IMAGE, ("run", "it"), Limits(), (Mount(Volume("v"), "/in"),), {"outputDir": "/out"}
)


@pytest.mark.parametrize("role", ["evaluator", "sidecar", "gateway"])
def test_all_roles_have_the_same_walls(role: Role) -> None:
    assert sandbox.container_options(SPEC, 7) == sandbox.container_options(replace(SPEC, role=role), 7)


@pytest.mark.parametrize("role", ["evaluator", "sidecar", "gateway"])
def test_only_software_gets_exceptions(role: Role) -> None:
    for exceptions in (Exceptions(root=True), Exceptions(writable=("/var/x",))):
        spec = replace(SPEC, role=role, exceptions=exceptions)
        if role == "sidecar" and not exceptions.root:
            assert "/var/x" in sandbox.container_options(spec, 7)["HostConfig"]["Tmpfs"]
            continue
        with pytest.raises(RunnerError) as caught:
            sandbox.container_options(spec, 7)
        assert caught.value.code == "E402"


@pytest.mark.parametrize("role", ["software", "evaluator", "sidecar"])
def test_only_a_gateway_has_a_network(role: Role) -> None:
    open_ = sandbox.container_options(replace(SPEC, role="gateway", network="bridge"), 7)
    closed = sandbox.container_options(SPEC, 7)
    assert open_["HostConfig"].pop("NetworkMode") == "bridge"
    assert closed["HostConfig"].pop("NetworkMode") == "none"
    assert open_ == closed
    for network in ("bridge", "none", ""):
        with pytest.raises(ValueError, match="network"):
            sandbox.container_options(replace(SPEC, role=role, network=network), 7)
    for network in ("container:x", "", "a b", "-x"):
        with pytest.raises(ValueError, match="network"):
            sandbox.container_options(replace(SPEC, role="gateway", network=network), 7)


def test_who_joins_shares_the_loopback_and_nothing_else() -> None:
    guest = sandbox.container_options(replace(SPEC, join=HOST), 7, joined="abc")
    alone = sandbox.container_options(SPEC, 7)
    assert guest["HostConfig"].pop("NetworkMode") == "container:abc"
    assert alone["HostConfig"].pop("NetworkMode") == "none"
    assert alone.pop("Hostname") == "sandbox"
    assert guest == alone
    for spec, joined in (
        (SPEC, "abc"),
        (replace(SPEC, join=HOST), None),
        (replace(SPEC, role="evaluator", join=HOST), "abc"),
        (replace(SPEC, role="gateway", join=HOST), "abc"),
    ):
        with pytest.raises(ValueError, match="joins"):
            sandbox.container_options(spec, 7, joined=joined)


def test_command_and_working_directory() -> None:
    body = sandbox.container_options(SPEC, 7)
    assert (body["Entrypoint"], body["Cmd"], body["WorkingDir"]) == (["run", "it"], [], "/app")
    own = sandbox.container_options(replace(SPEC, command=None, workdir="/else"), 7)
    assert "Entrypoint" not in own and "Cmd" not in own and own["WorkingDir"] == "/else"


def test_volumes_of_the_image_are_covered_but_not_our_mounts() -> None:
    tmpfs = sandbox.container_options(SPEC, 7)["HostConfig"]["Tmpfs"]
    assert set(tmpfs) == {"/data", "/tmp", "/dev/shm"}


@pytest.mark.parametrize(
    "path",
    ["/", "//", "", "/in", "/in/x", "/inputs", "/truths/x", "/out", "/proc", "/proc/sys", "/sys/x", "/dev", "/dev/shm",
     "/tmp", "/var/../in", "relative", "../x", "/a,b", "/a:b", "/a\nb", "//in"],
)  # fmt: skip
def test_paths_that_are_never_writable(path: str) -> None:
    with pytest.raises(RunnerError) as caught:
        sandbox.container_options(replace(SPEC, exceptions=Exceptions(writable=(path,))), 7)
    assert caught.value.code == "E402"


def test_a_writable_path_is_small_and_its_files_too() -> None:
    granted = Exceptions(writable=("/var/cache/x/",), writable_bytes=1 << 33)
    host = sandbox.container_options(replace(SPEC, exceptions=granted), 7)["HostConfig"]
    assert f"size={1 << 33}," in host["Tmpfs"]["/var/cache/x"]
    assert {"Name": "fsize", "Soft": 1 << 33, "Hard": 1 << 33} in host["Ulimits"]


def test_the_digest_names_the_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sandbox.sandbox_digest()
    assert before == sandbox.sandbox_digest() != sandbox.sandbox_digest(own_profile=False)
    monkeypatch.setattr(sandbox, "seccomp_profile", lambda: "{}")
    assert sandbox.sandbox_digest() != before


def test_the_profile_is_an_allow_list() -> None:
    profile = json.loads(Path(sandbox.__file__).with_name("seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    always = set(profile["syscalls"][0]["names"])
    assert {"read", "execve", "openat", "futex"} <= always
    never = {
        "ptrace",
        "mount",
        "unshare",
        "io_uring_setup",
        "bpf",
        "keyctl",
        "clone3",
        "socket",
        "setuid",
        "mknod",
        "chroot",
    }
    assert not always & never
    assert not sandbox.own_seccomp("aarch64") and sandbox.own_seccomp("x86_64")
