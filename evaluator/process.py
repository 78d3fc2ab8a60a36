"""The border of a process: what a command raises becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from evaluator.errors import EvaluatorError

FINE, INVALID, USAGE, PLATFORM, ORGANISER, INTERRUPTED = 0, 1, 2, 3, 4, 130


def run(call: Callable[[], int], *, debug: bool = False) -> int:
    """Do ``call``. Returns its exit code, or the one of what it raised: 2 usage, 3 internal, 4 organiser's files, 130 interrupted.

    With ``debug`` what nobody expected is raised.
    """
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
        print(
            f"internal error: {type(error).__name__}\n      Fix: report it, with the traceback that --debug shows",
            file=sys.stderr,
        )
        return PLATFORM
