"""Ordinary images in the sandbox: a user with a name, a home, folders declared as VOLUME, and the host name."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines import sandbox
from runner.engines.base import ContainerSpec
from runner.engines.docker import volumes
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import Processors
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import MIB, Exceptions, Limits
from tests.contracts.conftest import Ran, run_software

pytestmark = pytest.mark.engine

LIMITS = Limits(memory=128 * MIB, pids=32, wall_clock=40, output=MIB, tmp=8 * MIB, shm=4 * MIB, log=64 * 1024)
WHO = """
import getpass, grp, json, os, pathlib, pwd, socket
found = {"uid": os.getuid(), "user": getpass.getuser(), "logname": os.environ["LOGNAME"], "home": os.environ["HOME"]}
found["entry"] = list(pwd.getpwuid(os.getuid())) if os.getuid() in [p.pw_uid for p in pwd.getpwall()] else None
found["group"] = os.getgid() in [g.gr_gid for g in grp.getgrall()]
found["names"] = [p.pw_name for p in pwd.getpwall()]
found["groups"] = os.getgroups()
found["host"] = socket.gethostbyname(socket.gethostname())
def tell(path):
    try:
        return pathlib.Path(path).expanduser().read_text()
    except OSError as error:
        return error.errno
def write(path):
    try:
        pathlib.Path(path).expanduser().write_text("x")
    except OSError as error:
        return error.errno
    return 0
"""


Run = Callable[..., Any]


@pytest.fixture
def start(engine: DockerEngine, build_image: Callable[..., ImageRef], tmp_path: Path) -> Callable[..., Ran]:
    """Run Python text after :data:`WHO` in an image with these lines."""

    def go(tag: str, *lines: str, text: str = "", limits: Limits = LIMITS, **changes: Any) -> Ran:
        image = build_image(f"proctor/test-{tag}", *lines)
        code = f"{WHO}{text}\nprint(json.dumps(found))"
        return run_software(engine, image, code, tmp_path / "out", limits, **changes)

    return go


@pytest.fixture
def run(start: Callable[..., Ran]) -> Run:
    """The same; it must succeed. Returns what the program found."""

    def go(tag: str, *lines: str, **changes: Any) -> Any:
        result = start(tag, *lines, **changes)
        assert result.exit.code == 0, result.stderr
        return json.loads(result.stdout)

    return go


@pytest.mark.slow
@pytest.mark.parametrize("loopback", [True, False])
def test_the_user_of_a_run_has_a_name_and_a_host_name(run: Run, loopback: bool) -> None:
    text = "socket.create_server((socket.gethostname(), 0))" if loopback else ""
    report = run("accounts:plain", "RUN true", text=text, limits=replace(LIMITS, loopback=loopback))
    assert report["user"] == report["logname"] == report["entry"][0] == "sandbox"
    assert report["entry"][2:4] == [report["uid"], report["uid"]] and report["uid"] > sandbox.FIRST_UID
    assert report["home"] == report["entry"][5] == "/tmp" and report["group"]
    assert {"root", "nobody", "www-data"} < set(report["names"])  # accounts of the image
    assert report["host"] == "127.0.0.1"


@pytest.mark.slow
def test_the_home_of_an_image_stays_and_can_be_read(run: Run) -> None:
    report = run(
        "home:open",
        "ENV HOME=/opt/home USER=someone LOGNAME=someone",
        "RUN mkdir -p /opt/home/.cache && echo 1 > /opt/home/.cache/model",
        text="found['model'] = tell('~/.cache/model'); found['tmp'] = write('/tmp/x')",
    )
    assert (report["model"], report["tmp"]) == ("1\n", 0)
    assert report["home"] == report["entry"][5] == "/opt/home"
    assert (report["user"] == "sandbox" and report["entry"][0] == "sandbox") or report["user"] == "someone"


@pytest.mark.slow
@pytest.mark.parametrize("home", ["", "ENV HOME=/root"])
def test_the_home_of_root_can_be_read_and_not_written(run: Run, home: str) -> None:
    text = """
found["model"], found["at home"] = tell("/root/.cache/models/w.bin"), tell("~/.cache/models/w.bin")
found["write"], found["write home"] = write("/root/x"), write("~/x")
found["link"] = tell("/root/link")
found["list"] = sorted(os.listdir("/root"))
found["mode"] = oct(os.stat("/root/prog").st_mode & 0o7777)
"""
    report = run(
        f"home:root{len(home)}",
        *filter(None, [home]),
        "RUN mkdir -p /root/.cache/models && echo 1 > /root/.cache/models/w.bin && chmod -R go= /root && ln -s /etc/shadow /root/link",
        "RUN mkfifo /root/pipe && cp /bin/true /root/prog && chmod 4700 /root/prog",
        text=text,
    )
    assert report["model"] == "1\n" and report["write"] != 0 and report["link"] == 13
    assert "pipe" not in report["list"] and report["mode"] == "0o755"
    assert report["at home"] == ("1\n" if home else 2)
    assert (report["write home"] == 0) is not bool(home)


@pytest.mark.slow
def test_files_below_a_volume_are_visible_and_read_only(run: Run, engine: DockerEngine) -> None:
    lines = (
        "RUN mkdir -p /models/m/inner /empty && echo 1 > /models/m/w.bin && ln /models/m/w.bin /models/hard && chmod 700 /models/m",
        'VOLUME ["/data", "/models", "/empty", "/models/m/inner", "/models/new/deep"]',
    )
    # Engines give the memory file system over a folder of the image the owner and mode of this folder.
    written = {"/data": 0, "/models": 30, "/empty": 13, "/models/m/inner": 13, "/models/new/deep": 0}
    text = f"""
found["model"], found["hard"] = tell("/models/m/w.bin"), tell("/models/hard")
found["written"] = {{path: write(path + "/x") for path in {list(written)!r}}}
"""
    report = run("volumes:full", *lines, text=text)
    assert report["model"] == report["hard"] == "1\n"
    assert report["written"] == written
    before = set(engine.clients.volumes(data=None))
    run("volumes:full", *lines)
    assert set(engine.clients.volumes(data=None)) == before  # copied once


@pytest.mark.slow
def test_a_volume_that_is_too_large_or_taken(
    run: Run, start: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "RUN mkdir -p /large /more && head -c 1500000 /dev/zero | tee /large/x > /more/x",
        'VOLUME ["/large", "/more", "/tmp", "/etc", "/out"]',
    )
    monkeypatch.setattr("runner.engines.docker.volumes.MAX_COPIED", 2_000_000)
    for _ in range(2):  # neither does a second try get further
        ended = start("volumes:large", *lines).exit
        assert ended.code is None and "VOLUME" in str(ended.start_error)
    granted = Exceptions(writable=("/large/x.d", "/more/x.d"))
    text = "found['write'] = write('/large/x.d/y')"
    assert run("volumes:large", *lines, text=text, exceptions=granted)["write"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("paths", ['"/models", "/models/a"', '"/models/", "/models", "//models/a"'])
def test_a_volume_in_a_volume_keeps_its_files_and_links(run: Run, paths: str) -> None:
    report = run(
        f"volumes:nested{len(paths)}",
        "RUN mkdir -p /models/a && echo 1 > /models/a/w.bin && ln /models/a/w.bin /models/b && mkfifo /models/p && ln /models/p /models/q",
        f"VOLUME [{paths}]",
        text="found['read'] = [tell('/models/a/w.bin'), tell('/models/b'), tell('/models/q')]",
    )
    assert report["read"] == ["1\n", "1\n", 2]


@pytest.mark.slow
def test_what_no_run_needs_any_more_is_removed(
    engine: DockerEngine, build_image: Callable[..., ImageRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = build_image(
        "proctor/test-volumes:gone", "RUN mkdir /models && echo gone > /models/x", "VOLUME /models"
    )
    copy = engine.image_mounts(image, ["/models"], [])[0].volume.name
    files = {"/etc/passwd": b"some"}
    paths = []
    for days in (0, 1, 2):
        with monkeypatch.context() as earlier:
            now = time.time() - days * volumes.DAY
            earlier.setattr(time, "time", lambda now=now: now)
            paths.append(Path(engine.file_mounts(files)[0]["Source"]))
    engine.reap()
    left = set(engine.clients.volumes(data=None))
    # Yesterday's may be in the hands of a process that is about to mount them.
    assert copy in left and [path.parts[-3] in left for path in paths] == [True, True, False]
    engine.clients.get().remove_image(image.id, force=True)
    engine.reap()
    assert copy not in engine.clients.volumes(data=None)
    assert copy not in engine.markers()


@pytest.mark.slow
def test_a_copy_is_kept_for_a_container_that_is_made_while_it_is_removed(
    engine: DockerEngine,
    build_image: Callable[..., ImageRef],
    scratch_image: ImageRef,
    attempt: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine does not know of mounts by path."""
    image = build_image(
        "proctor/test-volumes:race", "RUN mkdir /models && echo race > /models/x", "VOLUME /models"
    )
    (mount,) = engine.image_mounts(image, ["/models"], [])
    engine.clients.get().remove_image(image.id, force=True)
    spec = ContainerSpec("software", scratch_image, ("sleep", "30"), LIMITS, (mount,))
    with engine.session(attempt) as session:
        session.start(spec)
        answers = iter([set[str]()])
        mounted = engine.clients.mounted
        monkeypatch.setattr(engine.clients, "mounted", lambda: next(answers, None) or mounted())
        engine.remove_outdated()
        assert mount.volume.name in engine.clients.volumes(data=None)
        marker = engine.markers()[mount.volume.name]
        engine.clients.remove_volume(marker)  # as a removal begins
        with pytest.raises(PlatformError) as caught:
            session.start(spec)
        assert caught.value.code == "E303"
    engine.clients.remove_volume(mount.volume.name)


def test_account_files_are_made_after_the_wait_for_processors(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    for owner, name in ((Processors, "take"), (DockerEngine, "file_mounts")):

        def call(*values: Any, name: str = name, real: Any = getattr(owner, name)) -> Any:
            calls.append(name)
            return real(*values)

        monkeypatch.setattr(owner, name, call)
    run("accounts:plain", "RUN true", limits=replace(LIMITS, cpus=1, pinned=True))
    assert calls == ["take", "file_mounts"]


HOSTILE = {
    "missing": "RUN rm /etc/passwd /etc/group",
    "link": "RUN mv /etc/passwd /usr/p && ln -s /usr/p /etc/passwd",
    "outside": "RUN rm /etc/passwd && ln -s ../../../../../../etc/shadow-of-nothing /etc/passwd",
    "output": "RUN rm /etc/passwd && ln -s /out/run.txt /etc/passwd",
    "bytes": r"RUN printf '\377\0:x:0:0\nsandbox:x:0:0::/:/bin/sh\n+::::::' >> /etc/passwd && echo 'root:x:0:sandbox' > /etc/group",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_odd_account_files_give_nobody_a_right(run: Run, kind: str) -> None:
    report = run(f"passwd:{kind}", HOSTILE[kind], text="found['out'] = os.listdir('/out')")
    assert report["user"] == "sandbox" and report["uid"] > sandbox.FIRST_UID
    assert report["groups"] in ([], [report["uid"]]) and report["out"] == []
    assert (report["entry"] is None) is (kind in ("link", "outside", "output"))
    if report["entry"]:
        assert report["entry"][:1] == ["sandbox"]


@pytest.mark.parametrize(
    "line",
    [
        "RUN rm /etc/passwd && mkdir /etc/passwd",
        "RUN rm /etc/passwd && mkfifo /etc/passwd",
        "RUN truncate -s 2M /etc/passwd",
        "RUN rm /etc/group && ln -s /dev/zero /etc/group",
    ],
)
def test_account_files_that_cannot_be_read_are_refused(start: Callable[..., Ran], line: str) -> None:
    ended = start("passwd:refused", line).exit
    assert ended.code is None and "/etc/" in str(ended.start_error)
    assert not os.path.exists("/etc/shadow-of-nothing")
