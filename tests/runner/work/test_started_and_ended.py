"""SIGTERM at every step of the start of work: it ends in order, wherever it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds.mini import Project

# This process reads the program; each of its children starts work and gets SIGTERM, of every other one two, before the Nth line of what
# starts the threads, does a round and ends them. It prints how each child ended: "" is in order.
STARTS = """
import os, signal, sys, threading
from runner.execution.coordinator import Silent
from runner.execution.machine import Machine
from runner.model.config import load
from runner.records.store.connect import open_store
from runner.work import loop
from tests.runner.execution.test_pool import EVALUATOR, evaluator
from runner.engines.fake import FakeEngine
config = load()
open_store(config).close()
traced_ones = {loop.Work.run.__code__, threading.Thread.start.__code__, threading.Thread.join.__code__}

def child(at):
    left = [at]
    def traced(frame, event, argument):
        if frame.f_code not in traced_ones:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0 or (left[0] == -1 and at % 2):
                os.kill(os.getpid(), signal.SIGTERM)
        return traced
    def stop(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, stop)
    engine = FakeEngine({EVALUATOR: evaluator})
    machine = Machine(config, engine=engine, images={"evaluator": EVALUATOR})
    work = loop.Work(config, Silent(), machine=machine)
    sys.settrace(traced)
    try:
        work.run()
    except KeyboardInterrupt:
        sys.settrace(None)
        left = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
        return f"left behind: {left}" if left else ""
    return "it was not told"

loop.ROUND = 0.0
for at in range(1, 46):
    came, goes = os.pipe()
    if os.fork() == 0:
        signal.alarm(20)
        try:
            said = child(at)
        except BaseException as error:
            said = repr(error)
        os.write(goes, said.encode())
        os._exit(0)
    os.close(goes)
    with open(came) as file:
        said = file.read()
    code = os.wait()[1]
    if said or code:
        print(at, said, code, flush=True)
print("all")
"""


@pytest.mark.slow
def test_work_ends_in_order_at_whatever_step_of_its_start_it_is_told_to(project: Project) -> None:
    project.write_task(uploads=True)
    environment = project.environment(PYTHONPATH=str(Path(__file__).parents[3]))
    said = subprocess.run(
        [sys.executable, "-c", STARTS], env=environment, capture_output=True, text=True, timeout=300
    )
    assert said.stdout == "all\n" and said.returncode == 0, said.stdout + said.stderr
