"""Programs of Debian that single tests need: found, or installed by root, or the test fails and says what to install."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from runner.provision.engine import can_install, install


def program(name: str, package: str) -> str:
    """The path of a program that a Debian package brings."""
    where = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    found = shutil.which(name, path=where)
    if found is None and can_install():
        with FileLock(Path(tempfile.gettempdir()) / f"install-{package}-for-tests.lock", timeout=1000):
            if shutil.which(name, path=where) is None:
                install(package)
        found = shutil.which(name, path=where)
    if found is None:
        pytest.fail(f"there is no {name}. Fix: apt-get install {package}", pytrace=False)
    return found
