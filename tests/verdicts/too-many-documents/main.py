import common

common.write(common.good_lines(depth=60))
