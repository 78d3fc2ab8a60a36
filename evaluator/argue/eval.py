"""``python -m evaluator.argue.eval``: the command line of Auto-ARGUE under the module that its scripts call."""

from __future__ import annotations

import sys

from evaluator import process
from evaluator.argue.cli import call
from schemas.interrupts import heard

if __name__ == "__main__":
    heard()
    sys.exit(process.run(lambda: call(sys.argv[1:])))
