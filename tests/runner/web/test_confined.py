"""The front closes to itself what it does not need, as whatever user it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sqlite3, subprocess, sys, tempfile
from pathlib import Path
from runner.web.confined import confine
home, exchange = Path(sys.argv[1]), Path(sys.argv[2])
if not confine([exchange / "published"], [exchange / "front", exchange / "inbox"]):
    sys.exit(7)
had = []
def had_if(name, do):
    try:
        do()
    except OSError:
        return
    had.append(name)
secret = home / "secret"
had_if("read", lambda: secret.read_text())
had_if("write", lambda: secret.write_text("x"))
had_if("list", lambda: list(home.iterdir()))
had_if("new", lambda: (home / "new").write_text("x"))
had_if("link", lambda: os.link(secret, exchange / "inbox/link"))
had_if("through", lambda: (exchange / "inbox/symlink").symlink_to(secret) or (exchange / "inbox/symlink").read_text())
had_if("publish", lambda: (exchange / "published/evil").write_text("x"))
had_if("parent's memory", lambda: open(f"/proc/{os.getppid()}/environ").read())
had_if("parent's end", lambda: os.kill(os.getppid(), 0))
had_if("passwords", lambda: open("/etc/shadow").read())
had_if("temporary files", lambda: list(Path("/tmp").iterdir()))
had_if("a program's eyes", lambda: subprocess.run(["/bin/cat", secret], check=True, capture_output=True) if
       subprocess.run(["/bin/cat", secret], capture_output=True).returncode == 0 else open("/nothing"))
assert (exchange / "published/current.json").read_text() == "{}"
(exchange / "inbox/.x").mkdir(); (exchange / "inbox/.x/payload").write_text("x")
(exchange / "inbox/.x").rename(exchange / "inbox/x")
(exchange / "front/ready").write_text("x"); (exchange / "front/ready").rename(exchange / "inbox/x/moved")
sqlite3.connect(exchange / "front/front.sqlite").execute("CREATE TABLE a (b)")
tempfile.TemporaryFile().write(b"x")
import starlette.applications, uvicorn, runner.web.server, encodings.idna
print(json.dumps(had))
"""


def test_nothing_but_its_own_folders_is_open(tmp_path: Path) -> None:
    home = tmp_path / "home"
    exchange = home / "web"
    for folder in (exchange / "published", exchange / "inbox"):
        folder.mkdir(parents=True)
    (home / "secret").write_text("truths")
    (exchange / "published/current.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), str(exchange)],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    if done.returncode == 7:
        pytest.fail(
            "this kernel has no Landlock of version 3: the second wall cannot be tested here", pytrace=False
        )
    assert done.returncode == 0, done.stderr
    kernel = tuple(int(one) for one in os.uname().release.split(".")[:2])
    open_ = [] if kernel >= (6, 12) else ["parent's end"]  # older ones do not close signals
    assert json.loads(done.stdout) == open_
    assert (home / "secret").read_text() == "truths"
