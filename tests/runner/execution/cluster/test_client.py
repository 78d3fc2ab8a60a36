"""What processes of a cluster tell Dask. The line itself is in ``test_line.py``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from runner.execution.cluster.client import settle

WORKER = """
import asyncio, json
from distributed import Worker
from runner.execution.cluster.client import settle

async def main():
    before = set(Worker("tcp://127.0.0.1:1", dashboard_address="127.0.0.1:0").periodic_callbacks)
    settle()
    print(json.dumps(sorted(before - set(Worker("tcp://127.0.0.1:1", dashboard_address="127.0.0.1:0").periodic_callbacks))))

asyncio.run(main())
"""


def test_a_host_does_not_look_at_what_its_threads_do_all_the_time():
    ended = subprocess.run(
        [sys.executable, "-c", WORKER], check=True, stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert json.loads(ended.stdout) == ["profile", "profile-cycle"]


def test_a_setting_that_dask_does_not_know_is_refused():
    with pytest.raises(KeyError):
        settle({"worker.profile.on": False})
