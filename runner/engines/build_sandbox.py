"""The sandbox of one RUN step: the walls of a run, with the few rights that installing software needs."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from runner.engines.sandbox import COVER, inodes, seccomp_profile, tmpfs_size, walls
from runner.model.limits import Limits

# Package managers change owners and work under accounts of their own.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SETGID", "SETUID")
ACCOUNT_CALLS = (
    *("setuid", "setgid", "setgroups", "setresuid", "setresgid", "setreuid", "setregid", "setfsuid", "setfsgid"),
    "capset",
)  # fmt: skip
NETLINK = 16  # address family
HIDDEN_LABELS = ("proctor.attempt", "proctor.owner", "proctor.role")


def step_options(
    image: str,
    config: Mapping[str, Any],
    command: Sequence[str],
    limits: Limits,
    *,
    labels: Mapping[str, str],
    own_profile: bool,
    network: str,
    largest_file: int,
) -> dict[str, Any]:
    """Return the options of the container that runs one RUN step.

    Nothing may be in them that is not in the image's own configuration, except the command and labels: a commit copies
    every other value into the new image.

    Args:
        image: the identity of the image to run the step on.
        config: the configuration of that image, as the engine describes it.
        command: program and arguments.
        limits: limits of the container.
        labels: labels with names from ``HIDDEN_LABELS``.
        own_profile: the engine takes our seccomp profile.
        network: the network mode of the engine.
        largest_file: bytes of the largest file.
    """
    host = walls(limits, own_profile, "")
    if own_profile:
        host["SecurityOpt"] = ["no-new-privileges", f"seccomp={_seccomp_profile()}"]
    host |= {
        "Init": False,  # its mount point would become a file of the image
        "CapAdd": list(CAPABILITIES),
        "NetworkMode": network,
        "Tmpfs": {
            # The engine's own volumes have no limit.
            **dict.fromkeys(config.get("Volumes") or {}, COVER),
            "/dev/shm": f"rw,nosuid,nodev,noexec,{tmpfs_size(limits.shm, inodes(limits.shm))},mode=1777",  # noqa: S108
        },
    }
    # Installers may open as many files as the engine allows.
    host["Ulimits"] = [limit for limit in host["Ulimits"] if limit["Name"] != "nofile"]
    host["Ulimits"].append({"Name": "fsize", "Soft": largest_file, "Hard": largest_file})
    body: dict[str, Any] = {
        "Image": image,
        "User": str(config.get("User") or ""),
        "WorkingDir": str(config.get("WorkingDir") or ""),
        "Entrypoint": list(command),
        "Cmd": [],
        "Labels": dict(labels),
        "HostConfig": host,
    }
    if config.get("Healthcheck"):
        body["Healthcheck"] = {"Test": ["NONE"]}
    return body


def image_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the image after a step: that of the image before it, without triggers.

    A commit fills in what is missing from the container, so that nothing may be missing that the container has.
    """
    return dict(config) | {
        "Entrypoint": config.get("Entrypoint") or [],
        "Cmd": config.get("Cmd") or [],
        "Labels": dict(config.get("Labels") or {}) | dict.fromkeys(HIDDEN_LABELS, ""),
        "OnBuild": [],
    }


@cache
def _seccomp_profile() -> str:
    profile = json.loads(seccomp_profile(loopback=True, disk=True))
    profile["syscalls"] += [
        {"names": list(ACCOUNT_CALLS), "action": "SCMP_ACT_ALLOW"},
        {  # without this error useradd believes that a log of the kernel must be written
            "names": ["socket"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": errno.EAFNOSUPPORT,
            "args": [{"index": 0, "value": 0xFFFFFFFF, "valueTwo": NETLINK, "op": "SCMP_CMP_MASKED_EQ"}],
        },
    ]
    return json.dumps(profile, separators=(",", ":"))
