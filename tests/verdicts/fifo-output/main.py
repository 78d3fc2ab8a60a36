import os

import common

os.mkfifo(f"{common.OUTPUT}/run.txt")
