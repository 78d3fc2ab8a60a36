"""The border of a process: what a command raises becomes a message and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable

from evaluator.errors import EvaluatorError

FINE, INVALID, USAGE, PLATFORM, ORGANISER, INTERRUPTED = 0, 1, 2, 3, 4, 130


def run(call: Callable[[], int], *, debug: bool = False) -> int:
    """Do ``call``. Returns its exit code, or the one of what it raised: 2 usage, 3 internal, 4 organiser's files, 130 interrupted.

    With ``debug`` what nobody expected is raised.
    """
    # What files are made into holds no cycles; looking for them after every 700 objects took a tenth of the time.
    gc.set_threshold(100_000)
    # At its end Python looks for cycles among all that is left, which then goes with the process anyway.
    atexit.register(gc.freeze)
    # For what a run takes, numpy's library would start threads that cost more than they do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = call()
        sys.stdout.flush()
        return code
    except EvaluatorError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return USAGE if error.usage else ORGANISER
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except Exception as error:  # the process border
        if debug:
            raise
        print("\n      ".join(_explained(error)), file=sys.stderr)
        return PLATFORM


def _explained(error: Exception) -> list[str]:
    """What nobody expected, in lines: a package that a set-up leaves for later, or a defect of ours."""
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if missing in ("", "evaluator", "schemas"):
        return [
            f"internal error: {type(error).__name__}",
            "Fix: report it, with the traceback that --debug shows",
        ]
    return [
        f"the Python package {missing} is not installed here",
        "It is needed for judges, or for figures that few need.",
        "Fix: run `make tools` in a clone, or pip install 'proctor-ir[judges]'",
    ]
