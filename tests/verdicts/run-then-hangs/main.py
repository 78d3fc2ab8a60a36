import time

import common

common.write(common.good_lines())
time.sleep(3600)
