import os

import common

os.symlink("/etc/passwd", f"{common.OUTPUT}/run.txt")
