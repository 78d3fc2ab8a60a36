"""Programs of ours end in order when they are interrupted, also where they were started with the signal ignored."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

# Each is given a main program that says when it is at work, and then waits.
PROGRAMS = {
    "runner": """
        import time
        from runner.cli import main as program
        def work(**_):
            print("at work", flush=True)
            time.sleep(60)
        program.app, program.load_commands = work, lambda word: None
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
        (Path(sys.argv[1]) / "slow.py").write_text("print('there', flush=True); input(); print('whole', flush=True)")
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


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program of these lines, which print "interrupted" for a KeyboardInterrupt."""
    with ExitStack() as stack:

        def start(lines: str, *arguments: str) -> subprocess.Popen[str]:
            head = "import signal, sys, time\nfrom schemas.interrupts import Interrupts, interrupted\ntry:\n"
            foot = "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
            text = head + textwrap.indent(textwrap.dedent(lines).strip(), "    ") + "\n" + foot
            options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            command = [sys.executable, "-c", text, *arguments]
            process = stack.enter_context(subprocess.Popen(command, text=True, **options))  # type: ignore[call-overload]
            stack.callback(process.kill)
            assert process.stdout.readline() == "there\n"
            return process  # type: ignore[no-any-return]

        yield start


@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_waits_for_what_must_not_be_left_half_way(
    place: str, tmp_path: Path, program: Callable[..., subprocess.Popen[str]]
) -> None:
    """Else threads that import wait for ever, or nobody is interrupted at all."""
    lines = textwrap.dedent(PLACES[place])
    lines = f"signal.signal(signal.SIGTERM, interrupted)\n{lines}\nprint('left', flush=True)\ntime.sleep(60)"
    process = program(lines, str(tmp_path))
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.2)  # would it break that off, it did it here
    said, _ = process.communicate("\n", timeout=60)
    whole = ["whole"] if place == "an import" else []
    assert [one for one in said.splitlines() if one != "left"] == [*whole, "interrupted"], said


KEPT = """
import schemas.interrupts
schemas.interrupts.PATIENCE = 0.3
with Interrupts() as interrupts:
    print("there", flush=True)
    while not interrupts.came:
        time.sleep(0.01)
    {}
    print("came", flush=True)
    input()
    print("to the end", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_kept_until_the_end(
    number: signal.Signals, program: Callable[..., subprocess.Popen[str]]
) -> None:
    process = program(KEPT.format(""))
    process.send_signal(number)
    assert process.stdout is not None and process.stdout.readline() == "came\n"
    process.send_signal(signal.SIGTERM)  # as it follows on Ctrl-C where somebody ends its children
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.6)  # it has looked, so nothing is broken off
    assert process.communicate("\n", timeout=60)[0].splitlines() == ["to the end", "interrupted"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_does_not_look_is_broken_off(
    number: signal.Signals, program: Callable[..., subprocess.Popen[str]]
) -> None:
    """It waits for another program, or for who reads what it prints."""
    thread = "import threading\n    threading.Thread(target=lambda: interrupts.came, daemon=True).start()"
    process = program(KEPT.format("").replace("while not interrupts.came:", f"{thread}\n    while True:"))
    process.send_signal(number)
    assert process.communicate(timeout=60)[0].splitlines() == ["interrupted"]


def test_who_presses_ctrl_c_again_waits_no_longer(program: Callable[..., subprocess.Popen[str]]) -> None:
    process = program(KEPT.format(""))
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and process.stdout.readline() == "came\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"


def test_an_end_that_has_begun_is_not_broken_off(program: Callable[..., subprocess.Popen[str]]) -> None:
    process = program(KEPT.format("interrupts.hold()"))
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and process.stdout.readline() == "came\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate("\n", timeout=60)[0].splitlines() == ["to the end", "interrupted"]
