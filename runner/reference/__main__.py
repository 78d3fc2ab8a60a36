"""``python -m runner.reference [--check]``: pages of ``docs/reference``, and overviews in the READMEs of tasks."""

import sys

from runner.reference import main, readmes

if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(given) or readmes(check="--check" in given))
