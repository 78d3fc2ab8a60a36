"""``python -m tools.docs [--check]``: pages of ``docs/reference``."""

import sys

from tools.docs import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
