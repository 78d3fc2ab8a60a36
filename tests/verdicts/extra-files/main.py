import os

import common

common.write(common.good_lines())
common.write("notes", "notes.txt")
os.makedirs(f"{common.OUTPUT}/cache/deep")
common.write("x", "cache/deep/run.txt")
