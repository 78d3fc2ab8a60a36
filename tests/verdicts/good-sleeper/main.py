import time

import common

time.sleep(2)
common.write(common.good_lines())
