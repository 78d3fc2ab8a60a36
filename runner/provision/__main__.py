"""``python -m runner.provision [WHAT]``: the set-up alone, for the Makefile and for continuous integration.

``all`` (default) sets up what commands need · ``everything`` also what is otherwise made when it is needed · ``packages``
only the Python packages of the commands · ``tools`` those of tests, linters, judges and sidecars, too · ``engine`` only the
container engine · ``host`` prints the engine's address ·
``stop`` ends the engine of our own, if one runs · ``remove`` also deletes its images and volumes.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.model.config import Config

WORDS = ("all", "everything", "packages", "tools", "engine", "host", "stop", "remove")


def main(arguments: list[str]) -> int:
    """Do one of :data:`WORDS`; results go to stdout, everything else to stderr. Returns the exit code."""
    from runner.model.config import load, wide_mode, wide_mode_text
    from runner.model.errors import INTERRUPTED, USAGE, RunnerError
    from schemas.interrupts import heard

    heard()
    word = arguments[0] if arguments else "all"
    if len(arguments) > 1 or word not in WORDS:
        _say(f"usage: python -m runner.provision [{'|'.join(WORDS)}]")
        return USAGE
    try:
        config = load()
        mode = wide_mode(config.home)
        if mode is not None:
            _say(f"CAUTION: {wide_mode_text(mode)}. Fix: chmod 700 {shlex.quote(str(config.home))}")
        _do(word, config)
    except RunnerError as error:
        _say(f"{error.code}: {error.what}")
        for line in (error.why, error.fix and f"Fix: {error.fix}"):
            if line:
                _say(line)
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted; repeat the command to go on")
        return INTERRUPTED
    return 0


def _do(word: str, config: Config) -> None:
    from runner import provision as setup
    from runner.provision import engine
    from runner.provision.steps import Steps

    steps = Steps(_say)
    if word in ("all", "everything"):
        for name, image in setup.run(config, steps, everything=word == "everything").items():
            _say(f"ready: {name} {image.id[7:19]}")
    elif word in ("packages", "tools"):
        from runner.provision.packages import Packages

        Packages(word == "tools").install(steps)
    elif word == "engine":
        engine.ensure_engine(config, steps)
    elif word == "host":
        print(engine.docker_host(config) or "")
    elif word == "stop":
        _say("Engine stopped." if engine.stop(config) else "No engine of our own was running.")
    else:
        engine.remove(config)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
