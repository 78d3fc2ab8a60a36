"""Programs of ours end in order when they are interrupted, also where they were started with the signal ignored."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

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
