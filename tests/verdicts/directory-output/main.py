import os

import common

os.mkdir(f"{common.OUTPUT}/run.txt")
common.write(common.good_lines(), "run.txt/run.txt")
