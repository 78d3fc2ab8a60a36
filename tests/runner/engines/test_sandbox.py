"""The options of a container as data; that they hold is shown in tests/contracts."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import cast

import pytest

from benchmarks import make_seccomp
from runner.engines import masks, sandbox
from runner.engines.base import ContainerSpec, Handle, Mount, Role, Volume
from runner.engines.docker.facts import gpu_kinds
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.limits import Exceptions, Limits

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
    wrong = [(role, network) for network in ("bridge", "none", "")]
    wrong += [("gateway", network) for network in ("container:x", "", "a b", "-x")]
    for of, network in wrong:
        with pytest.raises(ValueError):
            sandbox.container_options(replace(SPEC, role=of, network=network), 7)


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
        with pytest.raises(ValueError):
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
    monkeypatch.setattr(sandbox, "seccomp_profile", lambda *_: "{}")
    assert sandbox.sandbox_digest.__wrapped__() != before  # what it would be without the cache


def test_a_task_without_a_loopback_has_unix_sockets_only() -> None:
    with_, without = (json.loads(sandbox.seccomp_profile(loopback)) for loopback in (True, False))
    families = {
        rule["args"][0]["valueTwo"]: rule["action"]
        for rule in without["syscalls"]
        if "socket" in rule["names"]
    }
    assert families == {1: "SCMP_ACT_ALLOW", 2: "SCMP_ACT_ERRNO", 10: "SCMP_ACT_ERRNO"}
    others = [[r for r in p["syscalls"] if r["names"] != ["socket"]] for p in (with_, without)]
    assert others[0] == others[1]


def test_what_sockets_may_hold_follows_the_memory() -> None:
    held = [sandbox.socket_memory(Limits(memory=mib << 20)) >> 20 for mib in (1, 64, 1024, 1 << 20)]
    assert held == [4, 8, 128, 256]


def test_the_engines_own_masks_are_kept_and_the_drivers_of_gpus_find_theirs() -> None:
    alone, gpus = set(masks.masked()), set(masks.masked(1))
    assert {"/proc/kcore", "/proc/keys", "/sys/firmware", "/proc/timer_list", "/proc/locks"} <= gpus < alone
    assert not gpus & {"/proc/driver", "/sys/bus", "/sys/module", "/sys/devices/pci0000:00"}
    for needed in [
        "/proc/stat",
        "/proc/meminfo",
        "/proc/cgroups",
        "/sys/fs/cgroup",
        "/sys/devices/system/cpu",
    ]:
        assert not any(needed == path or needed.startswith(path + "/") for path in alone)


def test_the_committed_profile_is_the_generated_one() -> None:
    """Where this machine's libseccomp knows the same calls; the rules with arguments are the same on all."""
    committed = json.loads(sandbox.seccomp_profile())["syscalls"]
    assert committed[1:] == make_seccomp.conditional()
    patterns = [p for group in make_seccomp.DENIED.values() for p in group.split()]
    assert not [n for n in committed[0]["names"] if any(fnmatch(n, p) for p in patterns)]


def test_no_two_rules_of_a_call_fit_the_same_arguments() -> None:
    rules: dict[str, list[dict[int, tuple[int, int]]]] = {}
    for rule in json.loads(sandbox.seccomp_profile())["syscalls"]:
        checks = {a["index"]: (a["value"], a["valueTwo"]) for a in rule.get("args", [])}
        for name in rule["names"]:
            rules.setdefault(name, []).append(checks)
    for name, found in rules.items():
        for one, other in itertools.combinations(found, 2):
            apart = [
                i for i in one.keys() & other.keys() if (one[i][1] ^ other[i][1]) & one[i][0] & other[i][0]
            ]
            assert apart, f"{name}: {one} and {other}"


def test_the_profile_is_an_allow_list() -> None:
    profile = json.loads(Path(sandbox.__file__).with_name("seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    always = set(profile["syscalls"][0]["names"])
    assert {"read", "execve", "openat", "futex"} <= always
    never = "ptrace mount unshare io_uring_setup bpf keyctl clone3 socket setuid mknod chroot"
    assert not always.intersection(never.split())
    assert not sandbox.own_seccomp("aarch64") and sandbox.own_seccomp("x86_64")


def test_a_pinned_container_has_its_processors_and_no_other_one_has_any() -> None:
    pinned = replace(SPEC, limits=replace(SPEC.limits, cpus=1.5, pinned=True))
    host = sandbox.container_options(pinned, 7, processors=(1, 3))["HostConfig"]
    assert host["CpusetCpus"] == "1,3" and host["NanoCpus"] == 1_500_000_000
    assert "CpusetCpus" not in sandbox.container_options(SPEC, 7)["HostConfig"]
    wrong = [(pinned, one) for one in ((), (1,), (1, 1), (1, 2, 3))]
    for spec, processors in [*wrong, (SPEC, (1,))]:
        with pytest.raises(ValueError):
            sandbox.container_options(spec, 7, processors=processors)


def test_kinds_of_gpus_are_words(tmp_path: Path) -> None:
    a100 = "NVIDIA A100-SXM4-40GB"
    for name, model in (("0000:01:00.0", a100), ("0000:02:00.0", a100), ("x", "Tesla T4")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "information").write_text(f"Model: \t\t {model}\nIRQ:   11\n")
    (tmp_path / "broken").mkdir()
    assert gpu_kinds(tmp_path) == ("nvidia-a100-sxm4-40gb", "tesla-t4")
    assert gpu_kinds(tmp_path / "no driver") == ()
