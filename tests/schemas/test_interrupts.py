"""Programs of ours end in order when they are interrupted, also where they were started with the signal ignored."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runner.work.loop import ROUND
from tests.worlds.mini import Project

# Each is given a main program that says when it is at work, and then waits.
PROGRAMS = {
    "runner": """
        import time
        from runner.cli import main as program
        def work(**_):
            print("at work", flush=True)
            time.sleep(60)
        program.app, program.load_commands = work, lambda: None
        program.main()
        """,
    "evaluator": """
        import sys, time
        from evaluator import __main__ as program
        def parsed(_):
            import argparse
            def call(_):
                print("at work", flush=True)
                time.sleep(60)
            return argparse.Namespace(call=call, debug=False)
        program._parsed = parsed
        sys.exit(program.main([]))
        """,
}


@pytest.mark.parametrize("inherited", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "default"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_is_heard_however_a_program_was_started(name: str, inherited: signal.Handlers) -> None:
    def background() -> None:
        signal.signal(signal.SIGINT, inherited)  # as a shell does with what follows with &
        signal.signal(signal.SIGQUIT, inherited)

    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAMS[name])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=background,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
        assert process.returncode == 130, said
        assert "Traceback" not in said
    finally:
        process.kill()
        process.wait()


def test_another_handler_is_left_as_it_is() -> None:
    from schemas.interrupts import heard

    before = signal.getsignal(signal.SIGINT)
    try:
        for handler, after in (
            (signal.SIG_IGN, signal.default_int_handler),
            (signal.SIG_DFL, signal.SIG_DFL),
            (print, print),
        ):
            signal.signal(signal.SIGINT, handler)
            heard()
            assert signal.getsignal(signal.SIGINT) == after
    finally:
        signal.signal(signal.SIGINT, before)


# Each says when the main thread is at what must not be left half-way, stays there until it is told to go on, and waits afterwards.
PLACES = {
    "an import": """
        import sys
        from pathlib import Path
        (Path(sys.argv[1]) / "slow.py").write_text("print('there', flush=True); input(); whole = True")
        sys.path.insert(0, sys.argv[1])
        import slow
        """,
    "the end of an object": """
        class Ending:
            def __del__(self):
                print("there", flush=True)
                input()
        ending = Ending()
        del ending
        """,
    "the end of what is held weakly": """
        import weakref
        class Held:
            pass
        held = Held()
        def gone(_=None):
            print("there", flush=True)
            input()
        weakref.finalize(held, gone)
        del held
        """,
}
HANDLERS = {
    "a handler": "signal.signal(signal.SIGTERM, interrupted)",
    "a context": "interrupts = Interrupts(); interrupts.__enter__(); interrupts.let()",
}


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_waits_for_what_must_not_be_left_half_way(
    place: str, handler: str, tmp_path: Path
) -> None:
    """Else threads that import wait for ever, or nobody is interrupted at all."""
    program = (
        "import signal, sys, time\nfrom schemas.interrupts import Interrupts, interrupted\n"
        f"{HANDLERS[handler]}\ntry:\n{textwrap.indent(textwrap.dedent(PLACES[place]), '    ')}\n"
        "    print('left', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
        "    print(getattr(sys.modules.get('slow'), 'whole', None))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "there\n"
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)  # would it break that off, it did it here
            said, _ = process.communicate("\n", timeout=60)
        finally:
            process.kill()
    whole = "True" if place == "an import" else "None"
    assert said.removeprefix("left\n").splitlines() == ["interrupted", whole], said


# Other people's code takes an interrupt for itself; here it is what the coordinator tells a problem.
SWALLOWED = """
import threading, time
from runner.model import config
from runner.cli.terminal import Terminal
from runner.work.loop import Work
class Swallowing(Terminal):
    asked = False
    def problem(self, error):
        if threading.current_thread() is threading.main_thread() and not self.asked:
            self.asked = True
            print("there", flush=True)
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                pass
Work(config.load(), Swallowing(verbose=True)).run()
"""


def test_work_ends_also_where_an_interrupt_was_swallowed(project: Project) -> None:
    next(project.root.rglob("task.yaml")).write_text("id: [")
    with subprocess.Popen(
        [sys.executable, "-c", SWALLOWED],
        env=project.environment(),
        cwd=project.root,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "there\n"
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(ROUND) == 0
            assert time.monotonic() - began < ROUND
        finally:
            process.kill()
