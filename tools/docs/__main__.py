"""``python -m tools.docs [--check]``: pages of ``docs/reference``, and overviews in the READMEs of tasks."""

import sys

from tools.docs import main, readmes

if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(given) or readmes(check="--check" in given))
