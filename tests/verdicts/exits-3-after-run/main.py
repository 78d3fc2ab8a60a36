import sys

import common

common.write(common.good_lines())
sys.exit(3)
