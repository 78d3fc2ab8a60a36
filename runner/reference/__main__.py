"""``python -m runner.reference [--check]``: pages of ``docs/reference``."""

import sys

from runner.reference import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
