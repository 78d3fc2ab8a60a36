"""``python -m runner.reference [--check]``."""

import sys

from runner.reference import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
