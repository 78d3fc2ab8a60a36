import sys

import common

common.write(common.good_lines())
for _ in range(10):
    sys.stdout.write(("all work and no play " * 50 + "\n") * 1000)
