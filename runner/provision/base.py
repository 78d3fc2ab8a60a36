"""The image that ours are built on, and the Python packages carried into builds that have no network.

``RUNNER_BASE`` chooses: ``registry`` pulls the public Python image; ``local`` makes a Debian image with
mmdebstrap, under a name of our own (never under the public one's: nobody should mistake it for that);
``auto`` tries the registry for a short time and falls back. The choice is remembered in ``RUNNER_HOME``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.engines.base import find_image
from runner.model.errors import PlatformError, RunnerError
from runner.provision.engine import can_install, install, run_tool, uses_own
from runner.provision.steps import Steps
from schemas.files import atomic_file, make_private

if TYPE_CHECKING:
    from runner.engines.base import Images, Probe
    from runner.model.config import Config

REGISTRY_IMAGE = "python:3.11-slim"
LOCAL_IMAGE = "proctor/base:bookworm"
LABEL = "proctor.base"  # on an image made here: what it was made of
_INCLUDED = ("python3", "python3-pip", "python3-venv", "ca-certificates", "socat")
_PYTHON = "3.11"  # of both base images; the wheels carried in are made for it
_SILENCE = 20.0  # seconds without a word from the registry until we go on without it
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_NO_NAME = re.compile(r"-(?!-hash=)|.*(?:[/@\ufffd]|\$\{)")  # options, addresses, paths, variables, not ASCII
_GLIBC = range(36, 4, -1)  # 2.36 is bookworm's; wheels name the oldest that they need


def base_image(config: Config, engine: Images, say: Callable[[str], None] = lambda _: None) -> str:
    """The name of the base image, present in ``engine`` when this returns; made or pulled when it must be.

    Raises PlatformError E301 without an engine, E303 when the image can neither be pulled nor made.
    """
    if base_mode(config) == "local":
        return _ensure_local(config, engine, say)
    if find_image(engine, REGISTRY_IMAGE) is None:
        try:
            with Steps.of(say).step("base image", note=f"asking a registry for {REGISTRY_IMAGE}"):
                engine.pull(REGISTRY_IMAGE, silence=_SILENCE)
        except RunnerError as error:
            if config.base_image != "auto":
                raise PlatformError(
                    f"the base image {REGISTRY_IMAGE} cannot be pulled",
                    why=error.why,
                    fix="check the engine's network, or set RUNNER_BASE=local on Debian as root",
                ) from error
            say(
                "No registry answers: a base image made with mmdebstrap is used (RUNNER_BASE=registry to insist)."
            )
            return _ensure_local(config, engine, say)
    _remember(config, "registry")
    return REGISTRY_IMAGE


def base_mode(config: Config) -> str:
    """``registry`` or ``local``: what builds use; ``auto`` when that has not been settled by a set-up yet."""
    return config.base_image if config.base_image != "auto" else _remembered(config) or "auto"


def wheels(
    config: Config, engine: Probe, requirements: Path, dest: Path, steps: Steps | None = None
) -> list[Path]:
    """Put the wheels that ``requirements`` names into ``dest``, for Python 3.11 in our base image.

    They come from a cache in the data directory when the same file was asked for before. ``steps`` says that they are
    fetched. Returns the files.
    Raises PlatformError when pip cannot get them (no network, no wheel for this platform, no hash or a wrong one).
    """
    found = _cached(config, engine, requirements, True, steps or Steps())
    dest.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copyfile(file, dest / file.name)) for file in found]


def carries_wheels(config: Config) -> bool:
    """Whether builds get their packages carried in: the base has no registry, or the engine no network."""
    return base_mode(config) == "local" or uses_own(config)


def build_context_extras(config: Config, engine: Probe, context: Path) -> dict[str, Path]:
    """What to add to a submission's build context on this machine: ``{path in the context: file}``.

    Where builds have no network and the context has a ``requirements.txt``, these are its wheels, as
    ``wheels/<file>``; else nothing. A context with a ``wheels`` folder of its own is left alone. The files
    belong to the data directory: read them, never move them. Raises RunnerError E203 when a package is not
    to be had as a wheel.
    """
    requirements = context / "requirements.txt"
    if not carries_wheels(config) or os.path.lexists(context / "wheels"):
        return {}
    if requirements.is_symlink() or not requirements.is_file():
        return {}
    named = _named(requirements)
    if not named:
        return {}
    try:
        with tempfile.TemporaryDirectory(prefix="requirements-") as scratch:
            # What was read is what pip gets: the file itself could change, or name another encoding.
            plain = Path(scratch) / "requirements.txt"
            plain.write_text("\n".join(named) + "\n", encoding="ascii")
            files = _cached(config, engine, plain, any("--hash=" in line for line in named), Steps())
    except PlatformError as error:
        raise RunnerError(
            "E203",
            "the packages of requirements.txt cannot be carried into the build",
            why=error.why,
            fix="name packages with wheels for Python 3.11 on Linux, or put the wheels into a folder wheels/",
        ) from error
    return {f"wheels/{file.name}": file for file in files}


def _named(requirements: Path) -> list[str]:
    """The packages that the file names, one a line, without comments. Raises E203 for anything else in it.

    The file is the team's, and pip runs on this machine. pip obeys a comment that names an encoding, in which
    an option or an address can look harmless, so no comment and nothing but ASCII reaches it.
    """
    named = []
    text = requirements.read_bytes().decode("ascii", "replace").replace("\\\n", " ")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if any(map(_NO_NAME.match, words)):
            raise RunnerError(
                "E203",
                "requirements.txt holds more than names of packages",
                why=f"{requirements.name}, requirement {number}: only names, versions, markers and --hash are carried in.",
                fix="leave out options, addresses and paths, or put the wheels into a folder wheels/",
            )
        if words:
            named.append(" ".join(words))
    return named


def _state(config: Config) -> Path:
    return config.home / "engine" / "base.json"


def _remembered(config: Config) -> str | None:
    try:
        mode: Any = json.loads(_state(config).read_bytes())["mode"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mode if mode in ("registry", "local") else None


def _remember(config: Config, mode: str) -> None:
    if _remembered(config) == mode:
        return
    path = _state(config)
    make_private(path.parent)
    with atomic_file(path) as file:
        file.write(json.dumps({"mode": mode}).encode() + b"\n")


def _ensure_local(config: Config, engine: Images, say: Callable[[str], None]) -> str:
    from filelock import FileLock

    if not _usable(engine):
        make_private(config.home / "engine")
        with FileLock(config.home / "engine" / "base.lock", timeout=900):
            if not _usable(engine):
                _make_local(engine, say)
    _remember(config, "local")
    return LOCAL_IMAGE


def _usable(engine: Images) -> bool:
    """Whether our base image is there with what is in it today; where none can be made, any of that name is."""
    image = find_image(engine, LOCAL_IMAGE)
    return image is not None and (image.labels.get(LABEL) == ",".join(_INCLUDED) or not can_install())


def _make_local(engine: Images, say: Callable[[str], None]) -> None:
    """Assemble Debian with Python in a temporary folder and import it under our name."""
    if not can_install():
        raise PlatformError(
            "no base image can be had",
            why=f"{REGISTRY_IMAGE} cannot be pulled, and making one needs root on Debian or Ubuntu.",
            fix=f"give the engine a network, or load an image with Python 3.11 and tag it {LOCAL_IMAGE}",
        )
    if shutil.which("mmdebstrap") is None:
        with Steps.of(say).step("mmdebstrap", note="installing it"):
            install("mmdebstrap", "debian-archive-keyring", "ca-certificates")
    with (
        Steps.of(say).step("base image", note=f"{LOCAL_IMAGE}, made with mmdebstrap, about a minute"),
        tempfile.TemporaryDirectory(prefix="proctor-base-") as folder,
    ):
        archive = Path(folder) / "root.tar"
        hooks = [
            'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED; ln -sf python3 "$1"/usr/bin/python',
            'rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*',
        ]
        # A machine behind a company's proxy knows certificates that Debian does not.
        if _CERTIFICATES.is_file():
            hooks.append(f"upload {_CERTIFICATES} {_CERTIFICATES}")
        command = ["mmdebstrap", "--verbose", "--variant=apt"]
        command.append(f"--include={','.join(_INCLUDED)}")
        command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale")]
        command += [f"--customize-hook={hook}" for hook in hooks]
        run_tool([*command, "bookworm", str(archive)], timeout=900, env={"TMPDIR": folder})
        changes = ("ENV LANG=C.UTF-8", 'CMD ["python3"]', f'LABEL {LABEL}="{",".join(_INCLUDED)}"')
        engine.import_root(archive, LOCAL_IMAGE, changes)


def _cached(
    config: Config,
    engine: Probe,
    requirements: Path,
    require_hashes: bool,
    steps: Steps,
) -> list[Path]:
    """The wheels of ``requirements`` in the data directory, fetched when the file is new."""
    machine = engine.info().platform.split("/")[1]
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    asked = f"{architecture}\n{require_hashes}\n".encode() + requirements.read_bytes()
    key = hashlib.sha256(asked).hexdigest()[:24]
    cached = config.home / "data" / "wheels" / key
    if not cached.is_dir():
        make_private(cached.parent)
        name = f"packages for {requirements.parent.name}"
        with steps.step(name):
            _download(requirements, cached, architecture, require_hashes)
    return sorted(cached.iterdir())


def _download(requirements: Path, into: Path, architecture: str, require_hashes: bool) -> None:
    """Fill ``into`` with pip; it appears whole or not at all."""
    into.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        *["-m", "pip", "download", "--disable-pip-version-check", "--no-input"],
    ]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", _PYTHON]
    command += ["--abi", f"cp{_PYTHON.replace('.', '')}", "--abi", "abi3", "--abi", "none"]
    names = [f"manylinux_2_{glibc}" for glibc in _GLIBC] + ["manylinux2014", "manylinux2010", "manylinux1"]
    for name in names:
        command += ["--platform", f"{name}_{architecture}"]
    command += ["--require-hashes"] if require_hashes else []
    with tempfile.TemporaryDirectory(prefix=".wheels-", dir=into.parent) as folder:
        whole = Path(folder) / "wheels"
        command += ["--requirement", str(requirements), "--dest", str(whole)]
        run_tool(command, timeout=1200)
        try:
            whole.rename(into)
        except OSError:
            if not into.is_dir():  # another process was not faster: it is the disk
                raise
