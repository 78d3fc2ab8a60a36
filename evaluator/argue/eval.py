"""``python -m evaluator.argue.eval``: the command line of Auto-ARGUE under the module that its scripts call."""

from __future__ import annotations

import sys

from evaluator.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["argue", *sys.argv[1:]]))
